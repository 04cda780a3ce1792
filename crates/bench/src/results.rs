//! What was measured, as a file: written, read again, compared.

use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use std::path::Path;

/// A function of a workload, run by a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The problem's name.
    pub(crate) problem: String,
    /// What grows along the series of sizes that it is of; empty: sizes of all shapes.
    pub(crate) series: String,
    /// The sizes.
    pub(crate) workload: String,
    /// The function's name.
    pub(crate) function: String,
    /// Which tool.
    pub(crate) tool: String,
    /// Elementary operations of the primal function: what curves are drawn over.
    pub(crate) work: f64,
    /// The sums and products, and the bytes, that it cannot avoid; 0 where nobody has counted.
    pub(crate) least: (f64, f64),
    /// Whether its floats are of single precision.
    pub(crate) is_single: bool,
    /// Whether it is the derivative of the function before it.
    pub(crate) is_derivative: bool,
    /// What happened.
    pub(crate) outcome: Result<Times, String>,
}

#[cfg(test)]
impl Default for Row {
    fn default() -> Row {
        Row {
            problem: String::new(),
            series: String::new(),
            workload: String::new(),
            function: String::new(),
            tool: String::new(),
            work: 1.0,
            least: (0.0, 0.0),
            is_single: false,
            is_derivative: false,
            outcome: Err(String::new()),
        }
    }
}

/// What a machine does on one thread, measured with programs of our own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    /// Sums and products in a second, double precision.
    pub(crate) flops: f64,
    /// The same in single precision.
    pub(crate) single_flops: f64,
    /// Bytes read and written in a second, where the arrays have so many together: a cache, or memory, which is last.
    pub(crate) bytes: Vec<(f64, f64)>,
    /// Seconds that a measured call takes beside the function: reading the clock, and what every call costs.
    pub(crate) call: f64,
}

impl Rates {
    /// The rate of memory.
    pub(crate) fn memory(&self) -> f64 {
        self.bytes.last().map_or(0.0, |(_, rate)| *rate)
    }
    /// The rate of sums and products for a row.
    pub(crate) fn flops_of(&self, row: &Row) -> f64 {
        if row.is_single { self.single_flops } else { self.flops }
    }
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

/// A rate that was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reached {
    /// So much in a second.
    pub(crate) each_second: f64,
    /// Which is so much of what the machine does.
    pub(crate) share: f64,
}

/// A session of measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    /// What the machine is, in words.
    pub(crate) machine: String,
    /// What it does in a second.
    pub(crate) rates: Rates,
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
            let mut out = json!({"problem": r.problem, "series": r.series, "workload": r.workload, "function": r.function, "tool": r.tool,
                "work": r.work, "flops": r.least.0, "bytes": r.least.1, "single": r.is_single,
                "derivative": r.is_derivative});
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
                    out["time_ratio"] = json!(self.ratio(r, t));
                    let [flops, bytes] = self.reached(r, t);
                    out["flop_share"] = json!(flops.map(|r| r.share));
                    out["byte_share"] = json!(bytes.map(|r| r.share));
                    out["off"] = if t.off.is_finite() { json!(t.off) } else { json!("infinite") };
                }
                Err(e) => out["error"] = json!(e),
            }
            out
        };
        let bytes = |(size, rate): &(f64, f64)| json!({"size": size, "bytes_per_second": rate});
        json!({"machine": self.machine, "unit": "seconds",
            "rates": {"flops_per_second": self.rates.flops, "single_flops_per_second": self.rates.single_flops,
                "bytes": self.rates.bytes.iter().map(bytes).collect::<Vec<_>>(), "call": self.rates.call},
            "tools": self.tools.iter().map(|(n, c)| json!({"name": n, "command": c})).collect::<Vec<_>>(),
            "defined": self.defined.iter().map(|(t, p, s)| json!({"tool": t, "problem": p, "seconds": s})).collect::<Vec<_>>(),
            "results": self.rows.iter().map(row).collect::<Vec<_>>()})
    }

    /// From JSON. Errors: a field that is missing or of another kind.
    pub(crate) fn from_json(json: &Json) -> Result<Results> {
        let list = |name: &str| json[name].as_array().with_context(|| format!("no list `{name}`"));
        let mut out = Results { machine: text(json, "machine")?, ..Results::default() };
        let rates = &json["rates"];
        out.rates = Rates {
            flops: number(rates, "flops_per_second")?,
            single_flops: number(rates, "single_flops_per_second")?,
            bytes: Vec::new(),
            call: number(rates, "call")?,
        };
        for b in rates["bytes"].as_array().context("no list `bytes`")? {
            out.rates.bytes.push((number(b, "size")?, number(b, "bytes_per_second")?));
        }
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
                series: text(r, "series")?,
                workload: text(r, "workload")?,
                function: text(r, "function")?,
                tool: text(r, "tool")?,
                work: number(r, "work")?,
                least: (number(r, "flops")?, number(r, "bytes")?),
                is_single: truth(r, "single")?,
                is_derivative: truth(r, "derivative")?,
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
    /// How many times as long as its function a derivative takes, by the least times.
    pub(crate) fn ratio(&self, row: &Row, times: &Times) -> Option<f64> {
        Some(times.least / self.primal_of(row)?.least)
    }
    /// The rates of sums and products, and of bytes, that a row reaches in its least time with what it cannot avoid, if that is known.
    pub(crate) fn reached(&self, row: &Row, times: &Times) -> [Option<Reached>; 2] {
        let (flops, bytes) = row.least;
        [(flops, self.rates.flops_of(row)), (bytes, self.rates.memory())].map(|(amount, rate)| {
            let each_second = amount / times.least;
            (amount > 0.0).then_some(Reached { each_second, share: each_second / rate })
        })
    }
}

fn text(json: &Json, name: &str) -> Result<String> {
    json[name].as_str().map(str::to_string).with_context(|| format!("no text `{name}`"))
}
fn truth(json: &Json, name: &str) -> Result<bool> {
    json[name].as_bool().with_context(|| format!("no truth value `{name}`"))
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
            ..Row::default()
        };
        Results {
            machine: "a machine".into(),
            rates: Rates {
                flops: 1e11,
                single_flops: 2e11,
                bytes: vec![(1e5, 9e10), (1e8, 5e10)],
                call: 2e-8,
            },
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
        let json: Json = serde_json::from_str(&text).expect("JSON");
        let ratio = |k: usize| json["results"][k]["time_ratio"].as_f64();
        assert_eq!((ratio(0), ratio(1), ratio(2)), (None, Some(4.0), None));
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
