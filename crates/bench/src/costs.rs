//! What our own programs cost beside time: steps of the interpreter, memory, tapes, compiling. And what the machine can do.

use crate::inputs::Workload;
use crate::programs;
use crate::results::Rates;
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

/// And programs that do more operations are not tried.
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
    /// Steps of the interpreter, if there are not too many.
    pub(crate) steps: Option<f64>,
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
        let options = Options { work_limit: MOST_STEPS, ..options };
        let counted = || module.counts(function, input.clone(), &options, true).ok().map(|c| c.work as f64);
        let steps = (w.work < MOST_OPERATIONS).then(counted).flatten();
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
        json!({"problem": c.problem, "workload": c.workload, "function": c.function, "steps": c.steps,
               "peak_bytes": c.peak_bytes, "tape_bytes": c.tape_bytes, "vm_ready": c.ready.and_then(|r| r.0),
               "native_ready": c.ready.and_then(|r| r.1)})
    };
    costs.iter().map(one).collect()
}
