//! The experiments of the Accelerate thesis (chapter 5): Gaussian mixtures and bundle adjustment at its sizes, in its versions.
//!
//! `cargo xtask bench accelerate` measures, and writes the result file and the page of the book that is made from it. Cases run in the order
//! of their work, each in a process of its own. One that is predicted to exceed a limit is not run, and the file has the reason.

mod cases;
mod child;
mod page;
mod results;

pub(crate) use child::Case;

use anyhow::{Context, Result, anyhow};
use cases::{ALGORITHMS, OF_FORMS, Problem, Sizes, VERSIONS, Version};
use clap::Args;
use pullback_driver::Settings;
use pullback_testkit::fused::array_operations;
use results::{Measured, Report, Row};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const GIB: f64 = (1u64 << 30) as f64;

/// Seconds of a case beside its calls: a process, its arguments, and compiling the objective.
const OVERHEAD: f64 = 1.0;

/// The limits of a session. Those of the thesis are 10 calls, 10 s for them, 900 s for a case.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Seconds for everything; what is predicted not to fit is not run.
    #[arg(long, default_value_t = 3600.0)]
    budget: f64,
    /// GiB that a call may take.
    #[arg(long, default_value_t = 20.0)]
    memory: f64,
    /// The most timed calls of a function.
    #[arg(long, default_value_t = 10)]
    runs: usize,
    /// Seconds after which no other call of it is made.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Seconds after which a case is stopped.
    #[arg(long, default_value_t = 900.0)]
    limit: f64,
    /// Run the suite twice, to see what repeats; each time has half of the budget.
    #[arg(long)]
    twice: bool,
    /// Every so many sizes only, in the order of their work.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Measure nothing: write the page from the result file.
    #[arg(long)]
    page: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The result file, which is kept with the page.
const RESULTS: &str = "benches/accelerate/results.json";

/// Measures, if that is wanted, and writes the page.
pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.page {
        let cache = std::env::temp_dir().join(format!("pullback-accelerate-{}", std::process::id()));
        let mut suite = Suite::new(options, cache)?;
        suite.forms()?;
        for turn in 0..if options.twice { 2 } else { 1 } {
            suite.turn(turn)?;
        }
        std::fs::remove_dir_all(&suite.cache).context("the machine code that was kept")?;
    }
    let report = Report::read(&root().join(RESULTS))?;
    for (name, text) in page::files(&report)? {
        let path = root().join("docs/book").join(name);
        crate::save(&path, &text)?;
    }
    Ok(())
}

/// A session that runs.
struct Suite<'a> {
    options: &'a Options,
    report: Report,
    /// Machine code of this session: the second turn compiles nothing.
    cache: PathBuf,
    began: Instant,
}

impl<'a> Suite<'a> {
    fn new(options: &'a Options, cache: PathBuf) -> Result<Suite<'a>> {
        let report = Report { about: about(options)?, kernels: all_kernels()?, ..Report::default() };
        Ok(Suite { options, report, cache, began: Instant::now() })
    }
    /// Runs all algorithms on all forms of mixtures.
    fn forms(&mut self) -> Result<()> {
        for sizes in OF_FORMS {
            let all =
                Problem::FORMS.into_iter().flat_map(|form| ALGORITHMS.map(|algorithm| (form, algorithm)));
            for (problem, algorithm) in all {
                let version = Version { name: algorithm, algorithm, is_parallel: false, problems: &[] };
                let outcome = self.measure(problem, sizes, &version);
                let row = Row { problem, sizes, version: algorithm.to_string(), turn: 0, outcome };
                println!("{}", line(&row));
                self.report.forms.push(row);
            }
        }
        self.save()
    }
    /// Runs the suite once. The second time has the cases that the first one ran.
    fn turn(&mut self, turn: usize) -> Result<()> {
        let is_half = self.options.twice && turn == 0;
        let end = self.options.budget * if is_half { 0.5 } else { 1.0 };
        let mut cases: Vec<(Problem, Sizes)> =
            Problem::ALL.into_iter().flat_map(|p| p.sizes().into_iter().map(move |s| (p, s))).collect();
        cases.sort_by(|a, b| a.0.work(a.1).total_cmp(&b.0.work(b.1)));
        for (problem, sizes) in cases.into_iter().step_by(self.options.every.max(1)) {
            for version in VERSIONS.iter().filter(|v| v.problems.contains(&problem)) {
                if turn > 0 && self.report.measured(problem, sizes, version.name).is_none() {
                    continue;
                }
                let outcome = match self.reason(problem, sizes, version, end) {
                    Some(why) => Err(why),
                    None => self.measure(problem, sizes, version),
                };
                let row = Row { problem, sizes, version: version.name.to_string(), turn, outcome };
                println!("{}", line(&row));
                self.report.rows.push(row);
                self.save()?;
            }
        }
        Ok(())
    }
    fn save(&self) -> Result<()> {
        crate::save(&root().join(RESULTS), &self.report.to_text())
    }
    fn measure(&self, problem: Problem, sizes: Sizes, version: &Version) -> Result<Measured, String> {
        let case = Case {
            problem: problem.name().to_string(),
            sizes,
            algorithm: version.algorithm.to_string(),
            threads: usize::from(!version.is_parallel),
            runs: self.options.runs,
            seconds: self.options.seconds,
            memory: (self.options.memory * GIB) as u64,
            cache: self.cache.clone(),
        };
        let found = case.in_a_process(Duration::from_secs_f64(self.options.limit));
        found.and_then(|json| Measured::from_json(&json)).map_err(|e| match format!("{e:#}") {
            why if why.starts_with("out of memory") => format!("memory: {why}"),
            why => why,
        })
    }
    /// Why a case is not run, if it is predicted to exceed a limit. Time and memory grow with the work from the largest case before.
    fn reason(&self, problem: Problem, sizes: Sizes, version: &Version, end: f64) -> Option<String> {
        let same = |r: &&Row| r.turn == 0 && r.problem == problem && r.version == version.name;
        let smaller = |r: &&Row| problem.work(r.sizes) <= problem.work(sizes);
        let before: Vec<&Row> = self.report.rows.iter().filter(same).filter(smaller).collect();
        if before.iter().any(|r| r.outcome.as_ref().is_err_and(|why| why.starts_with("memory"))) {
            return Some("memory: a case with less work did not fit".to_string());
        }
        let (size, last) = before.iter().rev().find_map(|r| Some((r.sizes, r.outcome.as_ref().ok()?)))?;
        let grown = problem.work(sizes) / problem.work(size);
        let bytes = last.workspace * grown;
        if bytes > self.options.memory * GIB {
            return Some(format!("memory: {:.0} GiB are predicted", bytes / GIB));
        }
        let calls = |seconds: f64| {
            let number = (self.options.seconds / seconds).ceil().clamp(1.0, self.options.runs as f64);
            (number + 1.0) * seconds
        };
        let seconds = OVERHEAD
            + last.compiling
            + calls(last.derivative.median * grown)
            + calls(last.objective.median * grown);
        let left = end - self.began.elapsed().as_secs_f64();
        (seconds > left.min(self.options.limit)).then(|| format!("time: {seconds:.0} s are predicted"))
    }
}

/// What the page says about machine and limits.
fn about(options: &Options) -> Result<Vec<(String, String)>> {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = memory
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    let gib = total.map_or(String::new(), |kib: f64| format!(", {:.0} GiB of memory", 1024.0 * kib / GIB));
    let [ready, _] = Problem::Apart.ready("accelerate", Settings::default())?;
    let [args, _] = Problem::Apart.args([2, 2, 2]);
    let compiler = ready.native(&args).map_err(|d| anyhow!(d.message))?.report().compiler.clone();
    let date = Command::new("date").arg("+%-d %B %Y").output().map(|out| out.stdout).unwrap_or_default();
    let Options { budget, memory, runs, seconds, limit, twice, .. } = options;
    let turns = if *twice { "twice" } else { "once" };
    let all = [
        ("machine", format!("{}{gib}", crate::machine())),
        ("versions", format!("Pullback {}, {compiler}", env!("CARGO_PKG_VERSION"))),
        ("date", String::from_utf8_lossy(&date).trim().to_string()),
        ("timed calls", format!("{runs} of each function, or as many as begin within {seconds} s")),
        ("limits", format!("{memory} GiB for a call, {limit} s for a case")),
        ("suite", format!("{turns}, within {budget} s")),
    ];
    Ok(all.into_iter().map(|(name, text)| (name.to_string(), text)).collect())
}

/// The program of Fig. 2 of the thesis.
const FIGURE: &str = "
def f [n] (a: [n]f64) : f64 = f64.sum (map2 (*) (map (\\x -> x * x) a) (map (+ 1) a))
entry function [n] (a: [n]f64) : f64 = f a
entry gradient [n] (a: [n]f64) : [n]f64 = vjp f a 1";

/// Array operations of derivatives, by program and algorithm.
fn all_kernels() -> Result<Vec<(String, String, usize)>> {
    let mixtures =
        std::fs::read_to_string(root().join("benches/accelerate/gmm.fut")).context("the mixtures")?;
    let programs = [
        ("Fig. 2", FIGURE, "gradient"),
        ("gmm, generate", &mixtures, "generate_gradient"),
        ("gmm, gather", &mixtures, "gather_gradient"),
        ("gmm, apart", &mixtures, "apart_gradient"),
    ];
    let mut out = Vec::new();
    for (name, text, entry) in programs {
        for algorithm in ALGORITHMS {
            let [ready, _] =
                cases::compiled(name, text, [entry; 2].map(str::to_string), algorithm, Settings::default())?;
            let count = array_operations(&ready.program.funs[ready.fun].body);
            out.push((name.to_string(), algorithm.to_string(), count));
        }
    }
    Ok(out)
}

/// A case in words.
fn line(row: &Row) -> String {
    let sizes = row.sizes.map(|size| size.to_string()).join(" ");
    let head = format!("{} {:<8} {sizes:<22} {:<20}", row.turn + 1, row.problem.name(), row.version);
    match &row.outcome {
        Ok(m) => format!(
            "{head} {:>12} {:>12} {:>10}",
            crate::results::time(m.derivative.median),
            crate::results::time(m.objective.median),
            crate::plots::bytes(m.workspace)
        ),
        Err(why) => format!("{head} {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Timed;

    #[test]
    fn what_exceeds_a_limit_is_not_run() {
        let options = Options {
            budget: 100.0,
            memory: 1.0,
            runs: 10,
            seconds: 10.0,
            limit: 900.0,
            twice: false,
            every: 1,
            page: false,
        };
        let version = &VERSIONS[0];
        let seconds = |x: f64| Timed { runs: 10, least: x, median: x, mean: x };
        let row = |sizes: Sizes, outcome: Result<Measured, String>| Row {
            problem: Problem::Gather,
            sizes,
            version: version.name.to_string(),
            turn: 0,
            outcome,
        };
        let small = Measured {
            derivative: seconds(0.5),
            objective: seconds(0.1),
            workspace: 1e8,
            ..Measured::default()
        };
        let mut suite = Suite {
            options: &options,
            report: Report { rows: vec![row([1000, 2, 5], Ok(small))], ..Report::default() },
            cache: PathBuf::new(),
            began: Instant::now(),
        };
        let reason = |suite: &Suite<'_>, sizes| suite.reason(Problem::Gather, sizes, version, 100.0);
        // Nothing is known of other versions.
        assert_eq!(suite.reason(Problem::Gather, [10_000, 2, 50], &VERSIONS[1], 100.0), None);
        // Twice the work: 11 calls of 1 s and of 0.2 s.
        assert_eq!(reason(&suite, [1000, 2, 10]), None);
        // Ten times: 3 calls of 5 s, 11 of 1 s. A hundred times: 10 GB.
        assert_eq!(reason(&suite, [10_000, 2, 5]), None);
        assert_eq!(reason(&suite, [10_000, 2, 50]), Some("memory: 9 GiB are predicted".to_string()));
        // Without memory it is time: 2 calls of 50 s, 2 of 10 s, 1 s.
        suite.report.rows[0].outcome = Ok(Measured { workspace: 0.0, ..small });
        assert_eq!(reason(&suite, [10_000, 2, 50]), Some("time: 121 s are predicted".to_string()));
        suite.report.rows.push(row([1000, 2, 25], Err("memory: out of memory".to_string())));
        assert!(reason(&suite, [1000, 2, 50]).is_some_and(|why| why.starts_with("memory")));
        assert_eq!(reason(&suite, [1000, 2, 10]), None);
    }
}
