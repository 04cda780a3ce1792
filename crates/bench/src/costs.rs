//! What our own programs cost beside time: steps of the interpreter, memory, tapes, compiling. And what the machine can do.

use crate::inputs::Workload;
use crate::programs;
use crate::results::{Rates, Results, Row};
use crate::sizes;
use anyhow::{Result, anyhow};
use pullback_core::{Array, Buffer, Value};
use pullback_driver::{Backend, Session, Settings};
use pullback_gradbench::module::{Module, TimesToReady};
use pullback_interp::core::Options;
use pullback_testkit::problems::uniform;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Programs of more steps than this are not counted: the interpreter does some ten million in a second.
const MOST_STEPS: u64 = 50_000_000;

/// And programs that do more operations are not tried: they are counted at a smaller size.
const MOST_OPERATIONS: f64 = 3e5;

/// Costs of a function of a workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    /// The problem's name.
    pub(crate) problem: String,
    /// The sizes.
    pub(crate) workload: String,
    /// The function's name.
    pub(crate) function: String,
    /// Steps of the interpreter, if there are not too many, and the sizes at which they were counted: those of the workload, or smaller ones
    /// of the same problem.
    pub(crate) steps: Option<(f64, String)>,
    /// The most bytes in use at one time.
    pub(crate) peak_bytes: u64,
    /// Of these, tapes.
    pub(crate) tape_bytes: u64,
    /// Seconds from the text until it could be called: on the vm, as machine code; measured once for each function of a problem.
    pub(crate) ready: Option<(Option<f64>, Option<f64>)>,
}

/// Compiled problems.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    modules: BTreeMap<String, Module>,
    /// Problems and functions whose compiling has been measured.
    compiled: BTreeSet<(String, String)>,
    /// Steps at smaller sizes, by problem and function.
    smaller: BTreeMap<(String, String), Option<(f64, String)>>,
}

impl Counter {
    /// The costs of a function on an input.
    pub(crate) fn count(&mut self, w: &Workload, function: &str) -> Result<Costs> {
        let (problem, input) = (w.problem, &w.input);
        if !self.modules.contains_key(problem) {
            let module = match programs::path(problem) {
                Some(path) => Module::of_file(&path, settings()),
                None => Module::compile(problem, settings()),
            };
            self.modules.insert(problem.to_string(), module.map_err(|e| anyhow!(e))?);
        }
        let module = &self.modules[problem];
        let options = Options { memory_limit: u64::MAX, ..Options::default() };
        let is_new = self.compiled.insert((problem.to_string(), function.to_string()));
        let ready = if is_new { ready(module, function, input, &options) } else { None };
        let bytes = module.counts(function, input.clone(), &options, false).map_err(|e| anyhow!(e))?;
        let steps = if w.work < MOST_OPERATIONS {
            steps(module, function, w)
        } else {
            let key = (problem.to_string(), function.to_string());
            let count = || sizes::counted(problem).and_then(|w| steps(module, function, &w));
            self.smaller.entry(key).or_insert_with(count).clone()
        };
        Ok(Costs {
            problem: problem.to_string(),
            workload: w.name.clone(),
            function: function.to_string(),
            steps,
            peak_bytes: bytes.peak_bytes,
            tape_bytes: bytes.peak_tape_bytes,
            ready,
        })
    }
}

/// Steps of a function on the input of a workload, with its sizes.
fn steps(module: &Module, function: &str, w: &Workload) -> Option<(f64, String)> {
    let options = Options { memory_limit: u64::MAX, work_limit: MOST_STEPS, ..Options::default() };
    let counts = module.counts(function, w.input.clone(), &options, true).ok()?;
    Some((counts.work as f64, w.name.clone()))
}

/// The costs of the function of a row.
pub(crate) fn of_row<'a>(costs: &'a [Costs], row: &Row) -> Option<&'a Costs> {
    costs
        .iter()
        .find(|c| (&c.problem, &c.workload, &c.function) == (&row.problem, &row.workload, &row.function))
}

/// How many times as many steps as its function a derivative takes, and the sizes at which both were counted.
pub(crate) fn step_ratio(costs: &[Costs], results: &Results, row: &Row) -> Option<(f64, String)> {
    let same = |r: &&Row| (&r.problem, &r.workload) == (&row.problem, &row.workload);
    let primal = results.rows.iter().filter(same).find(|r| !r.is_derivative).filter(|_| row.is_derivative)?;
    let steps = |row: &Row| of_row(costs, row)?.steps.clone();
    let ((steps, at), (of_primal, with)) = (steps(row)?, steps(primal)?);
    (at == with).then_some((steps / of_primal, at))
}

/// Adds ratios of steps to the results in JSON, which have the order of the rows.
pub(crate) fn add_step_ratios(json: &mut Json, results: &Results, costs: &[Costs]) {
    for (k, row) in results.rows.iter().enumerate() {
        let ratio = step_ratio(costs, results, row);
        let out = &mut json["results"][k];
        out["step_ratio"] = json!(ratio.as_ref().map(|(ratio, _)| ratio));
        out["steps_counted_at"] = json!(ratio.map(|(_, at)| at));
    }
}

/// Seconds until a function is ready, the least of three times.
fn ready(
    module: &Module,
    function: &str,
    input: &Json,
    options: &Options<'_>,
) -> Option<(Option<f64>, Option<f64>)> {
    let once = || module.times_to_ready(function, input.clone(), options).ok();
    let least = |a: Option<Duration>, b: Option<Duration>| a.zip(b).map(|(a, b)| a.min(b));
    let mut best = once()?;
    for again in [once()?, once()?] {
        best = TimesToReady { vm: least(best.vm, again.vm), native: least(best.native, again.native) };
    }
    Some((best.vm.map(|d| d.as_secs_f64()), best.native.map(|d| d.as_secs_f64())))
}

/// One thread, nothing on disk.
fn settings() -> Settings {
    Settings { backend: Backend::Auto, threads: NonZeroUsize::new(1), ..Settings::default() }
}

/// What the machine does, by programs of our own on one thread: products of matrices, copies of arrays of several sizes, and a function
/// that does nothing. The best of many runs.
pub(crate) fn rates() -> Result<Rates> {
    let text = "
entry product [n] (a: [n][n]f64) (b: [n][n]f64) : [n][n]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose b)) a
entry single_product [n] (a: [n][n]f32) (b: [n][n]f32) : [n][n]f32 =
  map (\\row -> map (\\column -> f32.sum (map2 (*) row column)) (transpose b)) a
entry copied [n] (a: [n]f64) : [n]f64 = map (+ 1) a
entry nothing (x: f64) : f64 = x";
    let session = Session::compile("rates.fut", text, settings()).map_err(|e| anyhow!(e.render()))?;
    let least = |name: &str, args: &[Value]| -> Result<f64> {
        let entry = session.entry(Some(name)).map_err(|d| anyhow!(d.message))?;
        let ready = session.primal(&entry).map_err(|d| anyhow!(d.message))?;
        ready.warm(args).map_err(|d| anyhow!(d.message))?;
        let (mut least, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
        // The memory of the first run is new, which may take all of the time.
        let mut again = |time: Duration| {
            least = least.min(time.as_secs_f64());
            total += time.as_secs_f64();
            runs += 1;
            total < 0.5 || runs < 10
        };
        ready.repeat(args, &Options::default(), &mut again).map_err(|e| anyhow!(e.message))?;
        Ok(least)
    };
    let n = 256;
    let flops = 2.0 * (n * n * n) as f64;
    let doubles = uniform(1, n * n);
    let matrix = Value::f64_array(&[n, n], &doubles);
    let singles = Buffer::F32(doubles.iter().map(|x| *x as f32).collect());
    let single = Value::Array(Array::new(vec![n, n], singles));
    let mut rates = Rates {
        flops: flops / least("product", &[matrix.clone(), matrix])?,
        single_flops: flops / least("single_product", &[single.clone(), single])?,
        bytes: Vec::new(),
        call: least("nothing", &[Value::f64(1.0)])?,
    };
    for numbers in [1 << 10, 1 << 15, 1 << 19, 1 << 23] {
        let size = 16.0 * numbers as f64;
        rates.bytes.push((size, size / least("copied", &[Value::f64s(&uniform(2, numbers))])?));
    }
    Ok(rates)
}

/// As JSON.
pub(crate) fn to_json(costs: &[Costs]) -> Json {
    let one = |c: &Costs| {
        json!({"problem": c.problem, "workload": c.workload, "function": c.function, "steps": c.steps.as_ref().map(|(n, _)| n),
               "steps_counted_at": c.steps.as_ref().map(|(_, at)| at), "peak_bytes": c.peak_bytes, "tape_bytes": c.tape_bytes, "vm_ready": c.ready.and_then(|r| r.0),
               "native_ready": c.ready.and_then(|r| r.1)})
    };
    costs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{Float, ba, lstm};
    use crate::programs::mlp;

    /// The smallest sizes that are too large to be counted.
    fn large() -> [Workload; 3] {
        [ba(10, 100, 4000), lstm(2, 536), mlp(Float::Double, 1)]
    }

    #[test]
    fn what_is_too_large_is_counted_at_a_smaller_size_of_the_same_problem() {
        let mut counter = Counter::default();
        for w in large() {
            assert!(w.work >= MOST_OPERATIONS, "{} {}", w.problem, w.name);
            let names = w.functions.iter().map(|f| f.name);
            let costs: Vec<Costs> =
                names.map(|name| counter.count(&w, name).expect("it can be counted")).collect();
            let row = |k: usize| Row {
                problem: w.problem.to_string(),
                workload: w.name.clone(),
                function: w.functions[k].name.to_string(),
                is_derivative: w.functions[k].is_derivative,
                ..Row::default()
            };
            let results = Results { rows: vec![row(0), row(1)], ..Results::default() };
            let (ratio, at) = step_ratio(&costs, &results, &results.rows[1]).expect("a ratio");
            // A gradient costs a small constant times the function; a Jacobian in compressed rows writes 31 numbers for each three.
            let most = if w.problem == "ba" { 12.0 } else { 4.0 };
            assert!((1.0..most).contains(&ratio), "{}: {ratio}", w.problem);
            let smaller = sizes::counted(w.problem).map(|w| w.name);
            assert_eq!(Some(&at), smaller.as_ref());
            assert!(step_ratio(&costs, &results, &results.rows[0]).is_none(), "of the function itself");
            let mut json = results.to_json();
            add_step_ratios(&mut json, &results, &costs);
            let found = &json["results"];
            assert_eq!((&found[1]["step_ratio"], &found[1]["steps_counted_at"]), (&json!(ratio), &json!(at)));
            assert_eq!(found[0]["step_ratio"], Json::Null);
            assert_eq!(to_json(&costs)[1]["steps_counted_at"], json!(at));
            assert!(Results::from_json(&json).is_ok_and(|read| read == results));
        }
    }

    #[test]
    fn every_problem_of_many_sizes_has_one_that_is_counted() {
        for problem in ["gmm", "kmeans", "llsq", "lse", "ode", "det", "logreg", "stencil", "particles", "ht"]
        {
            let w = sizes::counted(problem).expect(problem);
            assert!(w.problem == problem && w.work < MOST_OPERATIONS, "{problem} {}", w.name);
        }
        assert!(sizes::counted("hello").is_none());
    }
}
