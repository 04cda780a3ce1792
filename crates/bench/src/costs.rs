//! What our own programs cost beside time: steps of the interpreter, memory, tapes. And what the machine can do.

use crate::inputs::Workload;
use anyhow::{Result, anyhow};
use pullback_core::Value;
use pullback_driver::{Backend, Session, Settings};
use pullback_gradbench::module::Module;
use pullback_interp::core::Options;
use pullback_testkit::problems::uniform;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
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
}

/// Compiled problems.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    modules: BTreeMap<String, Module>,
}

impl Counter {
    /// The costs of a function on an input.
    pub(crate) fn count(&mut self, w: &Workload, function: &str) -> Result<Costs> {
        let (problem, input) = (w.problem, &w.input);
        if !self.modules.contains_key(problem) {
            let settings =
                Settings { backend: Backend::Auto, threads: NonZeroUsize::new(1), ..Settings::default() };
            self.modules
                .insert(problem.to_string(), Module::compile(problem, settings).map_err(|e| anyhow!(e))?);
        }
        let module = &self.modules[problem];
        let options = Options { memory_limit: u64::MAX, ..Options::default() };
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
        })
    }
}

/// The most sums and products in a second, and the most bytes read and written, that our own programs reach on one thread; the best of a few
/// runs.
pub(crate) fn rates() -> Result<(f64, f64)> {
    let text = "
entry product [n] (a: [n][n]f64) (b: [n][n]f64) : [n][n]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose b)) a
entry copied [n] (a: [n]f64) : [n]f64 = map (+ 1) a";
    let settings = Settings { backend: Backend::Auto, threads: NonZeroUsize::new(1), ..Settings::default() };
    let session = Session::compile("rates.fut", text, settings).map_err(|e| anyhow!(e.render()))?;
    let least = |name: &str, args: &[Value]| -> Result<f64> {
        let entry = session.entry(Some(name)).map_err(|d| anyhow!(d.message))?;
        let ready = session.primal(&entry).map_err(|d| anyhow!(d.message))?;
        ready.warm(args).map_err(|d| anyhow!(d.message))?;
        let (mut least, mut total) = (f64::INFINITY, 0.0);
        let mut again = |time: Duration| {
            least = least.min(time.as_secs_f64());
            total += time.as_secs_f64();
            total < 1.0
        };
        ready.repeat(args, &Options::default(), &mut again).map_err(|e| anyhow!(e.message))?;
        Ok(least)
    };
    let (n, m) = (256, 8 << 20);
    let matrix = Value::f64_array(&[n, n], &uniform(1, n * n));
    let flops = 2.0 * (n * n * n) as f64 / least("product", &[matrix.clone(), matrix])?;
    let bytes = 16.0 * m as f64 / least("copied", &[Value::f64s(&uniform(2, m))])?;
    Ok((flops, bytes))
}

/// As JSON.
pub(crate) fn to_json(costs: &[Costs]) -> Json {
    let one = |c: &Costs| {
        json!({"problem": c.problem, "workload": c.workload, "function": c.function, "steps": c.steps,
               "peak_bytes": c.peak_bytes, "tape_bytes": c.tape_bytes})
    };
    costs.iter().map(one).collect()
}
