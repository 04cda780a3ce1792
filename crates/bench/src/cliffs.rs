//! How cost grows: time for each unit of work, from one size of a series to the next. A cliff is a size at which it doubles.

use crate::results::{Results, time};
use std::fmt::Write;

/// From which growth of the time per unit of work on a size is a cliff.
const CLIFF: f64 = 2.0;

/// A series of sizes of one function with one tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// The problem's name.
    pub(crate) problem: String,
    /// What grows; empty: sizes of all shapes.
    pub(crate) along: String,
    /// The function's name.
    pub(crate) function: String,
    /// The tool's name.
    pub(crate) tool: String,
    /// Name, work and least time of each size that has a time, in the order of the work.
    pub(crate) sizes: Vec<(String, f64, f64)>,
}

/// A step of a series: which size it ends at, and how many times as long as at the one before a unit of work takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The larger size's place in the series.
    pub(crate) to: usize,
    /// The ratio.
    pub(crate) growth: f64,
}

impl Step {
    /// Whether the larger size is a cliff.
    pub(crate) fn is_cliff(self) -> bool {
        self.growth >= CLIFF
    }
}

impl Series {
    /// All steps.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let per_work = |k: usize| self.sizes[k].2 / self.sizes[k].1;
        (1..self.sizes.len()).map(|to| Step { to, growth: per_work(to) / per_work(to - 1) }).collect()
    }
    /// The step where a unit of work becomes dearest; nothing where there is one size.
    pub(crate) fn worst(&self) -> Option<Step> {
        self.steps().into_iter().max_by(|a, b| a.growth.total_cmp(&b.growth))
    }
}

/// The series of what was measured, in the order of the rows.
pub(crate) fn series(results: &Results) -> Vec<Series> {
    let mut out: Vec<Series> = Vec::new();
    for row in &results.rows {
        let Ok(times) = &row.outcome else { continue };
        let size = (row.workload.clone(), row.work, times.least);
        let same = |s: &&mut Series| {
            (&s.problem, &s.along, &s.function, &s.tool)
                == (&row.problem, &row.series, &row.function, &row.tool)
        };
        match out.iter_mut().find(same) {
            Some(s) => s.sizes.push(size),
            None => out.push(Series {
                problem: row.problem.clone(),
                along: row.series.clone(),
                function: row.function.clone(),
                tool: row.tool.clone(),
                sizes: vec![size],
            }),
        }
    }
    for s in &mut out {
        s.sizes.sort_by(|a, b| a.1.total_cmp(&b.1));
    }
    out.retain(|s| s.sizes.len() > 1);
    out
}

/// The cliffs as lines of text, or that there are none.
pub(crate) fn text(results: &Results) -> String {
    let all = series(results);
    let mut out = String::new();
    for s in &all {
        for step in s.steps().into_iter().filter(|step| step.is_cliff()) {
            let [(small, _, before), (large, _, after)] = [&s.sizes[step.to - 1], &s.sizes[step.to]];
            writeln!(
                out,
                "cliff: {} {}, {}: a unit of work takes {:.1} times as long at {large} ({}) as at {small} ({})",
                s.problem,
                s.function,
                s.tool,
                step.growth,
                time(*after),
                time(*before)
            )
            .ok();
        }
    }
    if out.is_empty() && !all.is_empty() {
        let steps: usize = all.iter().map(|s| s.steps().len()).sum();
        writeln!(out, "no cliff: in {steps} steps from size to size no unit of work takes twice as long")
            .ok();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Row, Times};

    #[test]
    fn a_size_where_a_unit_of_work_takes_twice_as_long_is_a_cliff() {
        // Units of work: 10, 30 and 100; each takes 1, 0.5 and 1.25 seconds. Given out of order.
        let row = |work: f64, seconds: f64| Row {
            problem: "lse".into(),
            workload: format!("n{work}"),
            function: "primal".into(),
            tool: "ours".into(),
            work,
            outcome: Ok(Times::of(&[seconds], 0.0, 0.0)),
            ..Row::default()
        };
        let results =
            Results { rows: vec![row(100.0, 125.0), row(10.0, 10.0), row(30.0, 15.0)], ..Results::default() };
        let found = series(&results);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].steps(), [Step { to: 1, growth: 0.5 }, Step { to: 2, growth: 2.5 }]);
        assert_eq!(found[0].worst(), Some(Step { to: 2, growth: 2.5 }));
        let said = text(&results);
        assert!(said.contains("2.5 times as long at n100") && said.contains("as at n30"), "{said}");
        let smooth = Results { rows: vec![row(10.0, 10.0), row(30.0, 59.0)], ..Results::default() };
        assert!(text(&smooth).starts_with("no cliff: in 1 steps"), "{}", text(&smooth));
        assert_eq!(text(&Results::default()), "");
    }
}
