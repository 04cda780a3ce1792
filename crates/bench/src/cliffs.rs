//! How cost grows: time for each unit of work, from one size of a series to the next. A cliff is a size at which it doubles.

use crate::costs::Costs;
use crate::plots;
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
    /// Each size that has a time, in the order of the work.
    pub(crate) sizes: Vec<Size>,
}

/// A size of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Size {
    /// How people write it.
    pub(crate) name: String,
    /// Elementary operations of the primal function.
    pub(crate) work: f64,
    /// Least time in seconds.
    pub(crate) time: f64,
    /// Bytes of arguments and results of a derivative; 0 where nobody has counted.
    pub(crate) bytes: f64,
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
        let per_work = |k: usize| self.sizes[k].time / self.sizes[k].work;
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
        let size = Size { name: row.workload.clone(), work: row.work, time: times.least, bytes: row.least.1 };
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
        s.sizes.sort_by(|a, b| a.work.total_cmp(&b.work));
    }
    out.retain(|s| s.sizes.len() > 1);
    out
}

/// The cliffs as lines of text, or that there are none. With the bytes that derivatives have in and out, and of their workspaces: most
/// cliffs are where data leave a cache.
pub(crate) fn text(results: &Results, costs: &[Costs]) -> String {
    let all = series(results);
    let mut out = String::new();
    for s in &all {
        let about = |size: &Size| {
            let mut text = time(size.time);
            if size.bytes > 0.0 {
                let rate = size.bytes / size.time / 1e9;
                write!(text, ", {} in and out: {rate:.1} GB/s", plots::bytes(size.bytes)).ok();
            }
            let own =
                |c: &&Costs| (&c.problem, &c.workload, &c.function) == (&s.problem, &size.name, &s.function);
            if let Some(c) = costs.iter().find(own) {
                write!(text, ", {} of workspace", plots::bytes(c.peak_bytes as f64)).ok();
            }
            text
        };
        for step in s.steps().into_iter().filter(|step| step.is_cliff()) {
            let [small, large] = [&s.sizes[step.to - 1], &s.sizes[step.to]];
            writeln!(
                out,
                "cliff: {} {}, {}: a unit of work takes {:.1} times as long at {} ({}) as at {} ({})",
                s.problem,
                s.function,
                s.tool,
                step.growth,
                large.name,
                about(large),
                small.name,
                about(small)
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
            least: (0.0, 1e9 * work),
            outcome: Ok(Times::of(&[seconds], 0.0, 0.0)),
            ..Row::default()
        };
        let results =
            Results { rows: vec![row(100.0, 125.0), row(10.0, 10.0), row(30.0, 15.0)], ..Results::default() };
        let found = series(&results);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].steps(), [Step { to: 1, growth: 0.5 }, Step { to: 2, growth: 2.5 }]);
        assert_eq!(found[0].worst(), Some(Step { to: 2, growth: 2.5 }));
        let said = text(&results, &[]);
        assert!(said.contains("2.5 times as long at n100") && said.contains("as at n30"), "{said}");
        assert!(said.contains("100000 MB in and out: 0.8 GB/s"), "{said}");
        let smooth = Results { rows: vec![row(10.0, 10.0), row(30.0, 59.0)], ..Results::default() };
        assert!(text(&smooth, &[]).starts_with("no cliff: in 1 steps"), "{}", text(&smooth, &[]));
        assert_eq!(text(&Results::default(), &[]), "");
    }
}
