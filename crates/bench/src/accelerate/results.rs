//! What the experiments gave, as a file; and the numbers that the page draws from them.

use super::cases::{Problem, Sizes, VERSIONS, Version};
use anyhow::{Context, Result};
use serde_json::{Value as Json, json};
use std::path::Path;

/// Times of one function, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Timed {
    pub(crate) runs: usize,
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) mean: f64,
}

impl Timed {
    /// From the seconds of runs, of which there is at least one.
    pub(crate) fn of(runs: &[f64]) -> Timed {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        Timed { runs: runs.len(), least: sorted[0], median: sorted[sorted.len() / 2], mean }
    }
    pub(crate) fn to_json(self) -> Json {
        json!({"runs": self.runs, "least": self.least, "median": self.median, "mean": self.mean})
    }
    fn from_json(json: &Json) -> Result<Timed> {
        let [runs, least, median, mean] = ["runs", "least", "median", "mean"].map(|name| number(json, name));
        Ok(Timed { runs: runs? as usize, least: least?, median: median?, mean: mean? })
    }
}

/// What one case took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    pub(crate) derivative: Timed,
    pub(crate) objective: Timed,
    /// The most bytes that the derivative had in use at one time, of the thread that calls.
    pub(crate) workspace: f64,
    /// The most bytes of the process until then, compiler and arguments included; 0: the system does not say.
    pub(crate) process: f64,
    /// Seconds to compile the derivative.
    pub(crate) compiling: f64,
}

impl Measured {
    fn to_json(self) -> Json {
        json!({"derivative": self.derivative.to_json(), "objective": self.objective.to_json(),
            "workspace": self.workspace, "process": self.process, "compiling": self.compiling})
    }
    pub(crate) fn from_json(json: &Json) -> Result<Measured> {
        Ok(Measured {
            derivative: Timed::from_json(&json["derivative"])?,
            objective: Timed::from_json(&json["objective"])?,
            workspace: number(json, "workspace")?,
            process: json["process"].as_f64().unwrap_or_default(),
            compiling: number(json, "compiling")?,
        })
    }
}

/// A case, and what it took, or why it was not run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) problem: Problem,
    pub(crate) sizes: Sizes,
    pub(crate) version: String,
    /// How often the suite had been run before.
    pub(crate) turn: usize,
    pub(crate) outcome: Result<Measured, String>,
}

impl Row {
    fn to_json(&self) -> Json {
        let mut out = match &self.outcome {
            Ok(measured) => measured.to_json(),
            Err(why) => json!({"not_run": why}),
        };
        out["problem"] = json!(self.problem.name());
        out["sizes"] = json!(self.sizes);
        out["version"] = json!(self.version);
        out["turn"] = json!(self.turn);
        out
    }
    fn from_json(json: &Json) -> Result<Row> {
        let sizes = (0..3).map(|k| json["sizes"][k].as_u64().map(|size| size as usize));
        let sizes: Vec<usize> = sizes.collect::<Option<_>>().context("three sizes")?;
        let outcome = match json["not_run"].as_str() {
            Some(why) => Err(why.to_string()),
            None => Ok(Measured::from_json(json)?),
        };
        Ok(Row {
            problem: Problem::named(&text(json, "problem")?)?,
            sizes: [sizes[0], sizes[1], sizes[2]],
            version: text(json, "version")?,
            turn: number(json, "turn")? as usize,
            outcome,
        })
    }
}

/// A session of experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Machine, compiler, date; and the limits of the session: what the page says about them, by name.
    pub(crate) about: Vec<(String, String)>,
    /// Array operations of derivatives after fusion: program, algorithm, number.
    pub(crate) kernels: Vec<(String, String, usize)>,
    /// All forms of mixtures on one thread; a version is an algorithm.
    pub(crate) forms: Vec<Row>,
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// As JSON, a line for each row.
    pub(crate) fn to_text(&self) -> String {
        let list = |name: &str, items: Vec<Json>| {
            let lines: Vec<String> = items.iter().map(Json::to_string).collect();
            format!("\"{name}\": [\n{}\n]", lines.join(",\n"))
        };
        let rows = |rows: &[Row]| rows.iter().map(Row::to_json).collect();
        let lists = [
            list("about", self.about.iter().map(|(name, text)| json!([name, text])).collect()),
            list(
                "kernels",
                self.kernels.iter().map(|(program, algorithm, n)| json!([program, algorithm, n])).collect(),
            ),
            list("forms", rows(&self.forms)),
            list("rows", rows(&self.rows)),
        ];
        format!("{{\n{}\n}}\n", lists.join(",\n"))
    }
    fn from_json(json: &Json) -> Result<Report> {
        let list = |name: &str| json[name].as_array().with_context(|| format!("no list `{name}`"));
        let word = |json: &Json| json.as_str().map(str::to_string).context("a text");
        let mut out = Report::default();
        for pair in list("about")? {
            out.about.push((word(&pair[0])?, word(&pair[1])?));
        }
        for k in list("kernels")? {
            out.kernels.push((word(&k[0])?, word(&k[1])?, k[2].as_u64().context("a number")? as usize));
        }
        out.forms = list("forms")?.iter().map(Row::from_json).collect::<Result<_>>()?;
        out.rows = list("rows")?.iter().map(Row::from_json).collect::<Result<_>>()?;
        Ok(out)
    }
    /// Reads a file of [`Report::to_text`].
    pub(crate) fn read(path: &Path) -> Result<Report> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let json = serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
        Report::from_json(&json).with_context(|| format!("{shown} holds no experiments"))
    }
    pub(crate) fn row(&self, problem: Problem, sizes: Sizes, version: &str, turn: usize) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|r| r.problem == problem && r.sizes == sizes && r.version == version && r.turn == turn)
    }
    /// What a case took in the first turn, if it was run.
    pub(crate) fn measured(&self, problem: Problem, sizes: Sizes, version: &str) -> Option<Measured> {
        self.row(problem, sizes, version, 0)?.outcome.as_ref().ok().copied()
    }
    /// The versions of a problem with the sizes at which they ran, in the order of work.
    pub(crate) fn curves(&self, problem: Problem, wanted: &dyn Fn(Sizes) -> bool) -> Vec<Curve> {
        let of = |version: &Version| {
            let mut sizes = problem.sizes();
            sizes.retain(|s| wanted(*s));
            sizes.sort_by(|a, b| problem.work(*a).total_cmp(&problem.work(*b)));
            let point = |s: Sizes| self.measured(problem, s, version.name).map(|m| (s, m));
            Curve { name: version.name, points: sizes.into_iter().filter_map(point).collect() }
        };
        VERSIONS.iter().filter(|v| v.problems.contains(&problem)).map(of).collect()
    }
    /// Times of the second turn over those of the first, by this number of each.
    pub(crate) fn repeated(&self, of: impl Fn(&Timed) -> f64) -> Vec<f64> {
        let ratio = |second: &Row| {
            let first = self.measured(second.problem, second.sizes, &second.version)?;
            let again = second.outcome.as_ref().ok()?;
            Some(of(&again.derivative) / of(&first.derivative))
        };
        self.rows.iter().filter(|r| r.turn == 1).filter_map(ratio).collect()
    }
}

/// A version of a problem over sizes.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(Sizes, Measured)>,
}

/// The slope of the line of least squares through the logarithms.
pub(crate) fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.ln()));
    let (mx, my) = logs().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (above, below) =
        logs().fold((0.0, 0.0), |(a, b), (x, y)| (a + (x - mx) * (y - my), b + (x - mx) * (x - mx)));
    above / below
}

fn text(json: &Json, name: &str) -> Result<String> {
    json[name].as_str().map(str::to_string).with_context(|| format!("no text `{name}`"))
}
fn number(json: &Json, name: &str) -> Result<f64> {
    json[name].as_f64().with_context(|| format!("no number `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(turn: usize, median: f64) -> Row {
        let timed = Timed { runs: 3, least: 0.5, median, mean: 1.5 };
        let measured =
            Measured { derivative: timed, objective: timed, workspace: 8e3, process: 0.0, compiling: 0.25 };
        Row {
            problem: Problem::Gather,
            sizes: [1000, 2, 5],
            version: "store".into(),
            turn,
            outcome: Ok(measured),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let refused = Row { outcome: Err("memory: too much".into()), ..row(0, 1.0) };
        let report = Report {
            about: vec![("machine".into(), "a processor".into())],
            kernels: vec![("gather".into(), "accelerate".into(), 3)],
            forms: vec![Row { version: "accelerate".into(), ..row(0, 2.0) }],
            rows: vec![row(0, 1.0), row(1, 1.5), Row { version: "default".into(), ..refused }],
        };
        let json = serde_json::from_str(&report.to_text()).expect("JSON");
        assert_eq!(Report::from_json(&json).expect("a report"), report);
        assert_eq!(report.repeated(|t| t.median), [1.5]);
        assert!(report.measured(Problem::Gather, [1000, 2, 5], "default").is_none());
        assert!(Report::from_json(&json!({"about": []})).is_err());
    }

    #[test]
    fn a_power_is_a_straight_line() {
        let points = [1.0, 2.0, 4.0, 8.0].map(|x: f64| (x, 3.0 * x.powf(1.5)));
        assert!((slope(&points) - 1.5).abs() < 1e-12);
        // Logarithms 0, 1, 2 and 0, 3, 0 of the base e: no slope.
        let e = std::f64::consts::E;
        assert!(slope(&[(1.0, 1.0), (e, e.powi(3)), (e * e, 1.0)]).abs() < 1e-12);
    }
}
