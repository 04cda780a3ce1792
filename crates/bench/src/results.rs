//! What was measured, as a file: written, read again, compared.

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use std::path::Path;

/// A function of a workload, run by a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The problem's name.
    pub(crate) problem: String,
    /// The sizes.
    pub(crate) workload: String,
    /// The function's name.
    pub(crate) function: String,
    /// Which tool.
    pub(crate) tool: String,
    /// Elementary operations of the primal function: what curves are drawn over.
    pub(crate) work: f64,
    /// The sums and products, and the bytes, that the derivative cannot avoid; 0 for other functions.
    pub(crate) least: (f64, f64),
    /// Whether it is the derivative of the function before it.
    pub(crate) is_derivative: bool,
    /// What happened.
    pub(crate) outcome: Result<Times, String>,
}

/// Seconds of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    /// How many runs.
    pub(crate) runs: usize,
    /// The first.
    pub(crate) first: f64,
    /// The least.
    pub(crate) least: f64,
    /// The middle one.
    pub(crate) median: f64,
    /// Their mean, which the suite shows.
    pub(crate) mean: f64,
    /// Of what came before: reading, compiling.
    pub(crate) before: f64,
    /// How far the result is from that of the first tool, relative to its largest number.
    pub(crate) off: f64,
}

impl Times {
    /// From the seconds of runs, of which there is at least one.
    pub(crate) fn of(runs: &[f64], before: f64, off: f64) -> Times {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        Times {
            runs: runs.len(),
            first: runs[0],
            least: sorted[0],
            median: sorted[sorted.len() / 2],
            mean,
            before,
            off,
        }
    }
}

/// A session of measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    /// What the machine is, in words.
    pub(crate) machine: String,
    /// The most sums and products, and the most bytes, that our own programs do in a second on one thread.
    pub(crate) rates: (f64, f64),
    /// Names and commands of tools.
    pub(crate) tools: Vec<(String, String)>,
    /// Seconds to define each problem, by each tool.
    pub(crate) defined: Vec<(String, String, f64)>,
    /// What was measured.
    pub(crate) rows: Vec<Row>,
}

impl Results {
    /// As JSON.
    pub(crate) fn to_json(&self) -> Json {
        let row = |r: &Row| {
            let mut out = json!({"problem": r.problem, "workload": r.workload, "function": r.function, "tool": r.tool,
                "work": r.work, "flops": r.least.0, "bytes": r.least.1, "derivative": r.is_derivative});
            match &r.outcome {
                Ok(t) => {
                    out["runs"] = json!(t.runs);
                    for (name, x) in [
                        ("first", t.first),
                        ("least", t.least),
                        ("median", t.median),
                        ("mean", t.mean),
                        ("before", t.before),
                    ] {
                        out[name] = json!(x);
                    }
                    out["off"] = if t.off.is_finite() { json!(t.off) } else { json!("infinite") };
                }
                Err(e) => out["error"] = json!(e),
            }
            out
        };
        json!({"machine": self.machine, "flops_per_second": self.rates.0, "bytes_per_second": self.rates.1,
            "unit": "seconds",
            "tools": self.tools.iter().map(|(n, c)| json!({"name": n, "command": c})).collect::<Vec<_>>(),
            "defined": self.defined.iter().map(|(t, p, s)| json!({"tool": t, "problem": p, "seconds": s})).collect::<Vec<_>>(),
            "results": self.rows.iter().map(row).collect::<Vec<_>>()})
    }

    /// From JSON. Errors: a field that is missing or of another kind.
    pub(crate) fn from_json(json: &Json) -> Result<Results> {
        let list = |name: &str| json[name].as_array().with_context(|| format!("no list `{name}`"));
        let mut out = Results { machine: text(json, "machine")?, ..Results::default() };
        out.rates = (number(json, "flops_per_second")?, number(json, "bytes_per_second")?);
        for t in list("tools")? {
            out.tools.push((text(t, "name")?, text(t, "command")?));
        }
        for d in list("defined")? {
            out.defined.push((text(d, "tool")?, text(d, "problem")?, number(d, "seconds")?));
        }
        for r in list("results")? {
            let outcome = match r["error"].as_str() {
                Some(e) => Err(e.to_string()),
                None => Ok(Times {
                    runs: number(r, "runs")? as usize,
                    first: number(r, "first")?,
                    least: number(r, "least")?,
                    median: number(r, "median")?,
                    mean: number(r, "mean")?,
                    before: number(r, "before")?,
                    off: if r["off"].is_string() { f64::INFINITY } else { number(r, "off")? },
                }),
            };
            out.rows.push(Row {
                problem: text(r, "problem")?,
                workload: text(r, "workload")?,
                function: text(r, "function")?,
                tool: text(r, "tool")?,
                work: number(r, "work")?,
                least: (number(r, "flops")?, number(r, "bytes")?),
                is_derivative: r["derivative"].as_bool().context("no truth value `derivative`")?,
                outcome,
            });
        }
        Ok(out)
    }

    /// Reads a file that [`Results::to_json`] made.
    pub(crate) fn read(path: &Path) -> Result<Results> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let json = serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
        Results::from_json(&json).with_context(|| format!("{shown} holds no results of this program"))
    }

    /// The time of the primal function that a derivative is compared with.
    pub(crate) fn primal_of(&self, row: &Row) -> Option<Times> {
        let same = |r: &&Row| (&r.problem, &r.workload, &r.tool) == (&row.problem, &row.workload, &row.tool);
        let primal = self.rows.iter().filter(same).find(|r| !r.is_derivative)?;
        primal.outcome.clone().ok().filter(|_| row.is_derivative)
    }
}

fn text(json: &Json, name: &str) -> Result<String> {
    json[name].as_str().map(str::to_string).with_context(|| format!("no text `{name}`"))
}
fn number(json: &Json, name: &str) -> Result<f64> {
    json[name].as_f64().with_context(|| format!("no number `{name}`"))
}

/// A time with a unit that suits it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", 1e9 * s),
        s if s < 1e-3 => format!("{:.3} µs", 1e6 * s),
        s if s < 1.0 => format!("{:.3} ms", 1e3 * s),
        s => format!("{s:.2} s"),
    }
}

/// Two files side by side, as text: the second's least times over the first's.
pub(crate) fn compare(a: &Results, b: &Results) -> String {
    let mut lines = vec![format!(
        "{:<10} {:<28} {:<10} {:<16} {:>12} {:>12} {:>7}",
        "problem", "workload", "function", "tool", "before", "after", "ratio"
    )];
    let mut ratios = Vec::new();
    for row in &b.rows {
        let same = |r: &&Row| {
            (&r.problem, &r.workload, &r.function, &r.tool)
                == (&row.problem, &row.workload, &row.function, &row.tool)
        };
        let old = a.rows.iter().find(same);
        let shown = |r: Option<&Row>| match r.map(|r| &r.outcome) {
            Some(Ok(t)) => time(t.least),
            Some(Err(_)) => "failed".to_string(),
            None => "–".to_string(),
        };
        let ratio = match (old.map(|r| &r.outcome), &row.outcome) {
            (Some(Ok(x)), Ok(y)) => {
                ratios.push(y.least / x.least);
                format!("{:.2}", y.least / x.least)
            }
            _ => String::new(),
        };
        lines.push(format!(
            "{:<10} {:<28} {:<10} {:<16} {:>12} {:>12} {:>7}",
            row.problem,
            row.workload,
            row.function,
            row.tool,
            shown(old),
            shown(Some(row)),
            ratio
        ));
    }
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        lines.push(format!("geometric mean of {} ratios: {mean:.3}", ratios.len()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(least: f64) -> Results {
        let row = |function: &str, is_derivative: bool, outcome| Row {
            problem: "lse".into(),
            workload: "n5".into(),
            function: function.into(),
            tool: "ours".into(),
            work: 15.0,
            least: (20.0, 80.0),
            is_derivative,
            outcome,
        };
        Results {
            machine: "a machine".into(),
            rates: (1e11, 5e10),
            tools: vec![("ours".into(), "pullback gradbench".into())],
            defined: vec![("ours".into(), "lse".into(), 0.01)],
            rows: vec![
                row("primal", false, Ok(Times::of(&[3.0 * least, least, 2.0 * least], 0.5, 0.0))),
                row("gradient", true, Ok(Times::of(&[4.0 * least], 0.5, f64::INFINITY))),
                row("gradient", true, Err("out of memory".into())),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let a = results(1e-6);
        let text = a.to_json().to_string();
        let read = Results::from_json(&serde_json::from_str(&text).expect("JSON")).expect("results");
        assert_eq!(read, a);
        assert_eq!(a.primal_of(&a.rows[1]).map(|t| t.least), Some(1e-6));
        assert!(a.primal_of(&a.rows[0]).is_none());
        assert!(Results::from_json(&json!({"machine": "x"})).is_err());
    }

    #[test]
    fn times_are_least_middle_and_mean() {
        let t = Times::of(&[3.0, 1.0, 5.0], 0.0, 0.0);
        assert_eq!((t.first, t.least, t.median, t.mean, t.runs), (3.0, 1.0, 3.0, 3.0, 3));
        assert_eq!(
            [time(2.5e-8), time(1.5e-4), time(0.25), time(3.0)],
            ["25 ns", "150.000 µs", "250.000 ms", "3.00 s"]
        );
    }

    #[test]
    fn comparing_says_how_many_times_as_long() {
        let text = compare(&results(1e-6), &results(2e-6));
        assert!(text.contains("1.000 µs") && text.contains("2.000 µs") && text.contains("2.00"), "{text}");
        assert!(text.ends_with("geometric mean of 2 ratios: 2.000"), "{text}");
    }
}
