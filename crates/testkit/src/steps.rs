//! What gradients of real problems cost, in steps of the interpreter.

use crate::problems::Problem;
use pullback_core::Value;
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::{Counts, Options};
use std::path::Path;

/// Costs of a problem at one size.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Of the objective alone.
    pub primal: Counts,
    /// Of objective and gradient.
    pub gradient: Counts,
}

impl Measured {
    /// Steps of objective and gradient over steps of the objective.
    pub fn ratio(&self) -> f64 {
        self.gradient.work as f64 / self.primal.work as f64
    }
    /// The same for the cost of the scalar primitives.
    pub fn flops(&self) -> f64 {
        self.gradient.flops as f64 / self.primal.flops.max(1) as f64
    }
}

/// Runs a problem of this size: the objective, and its derivative with all cotangents one. `root`: the repository.
///
/// `Err`: why the program cannot be compiled, differentiated or run, in words.
pub fn measure(root: &Path, problem: &Problem, size: usize, settings: &Settings) -> Result<Measured, String> {
    let text =
        std::fs::read_to_string(root.join(problem.file)).map_err(|e| format!("{}: {e}", problem.file))?;
    let session = Session::compile(problem.file, &text, settings.clone()).map_err(|e| e.render())?;
    let entry = session.entry(Some(problem.entry)).map_err(|d| d.message)?;
    let args = (problem.args)(size);
    let plain = session.primal(&entry).map_err(|d| d.message)?;
    let plain = plain.run(&args, &Options::default()).map_err(|e| e.to_string())?;
    let wanted = session.select(&entry, &Wrt::parse(problem.wrt)).map_err(|d| d.message)?;
    let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).map_err(|d| d.message)?;
    let ones = plain.results.iter().filter_map(|v| match v {
        Value::Array(a) => Some(Value::f64_array(&a.shape, &vec![1.0; a.count()])),
        Value::Scalar(_) => Some(Value::f64(1.0)),
        _ => None,
    });
    let all: Vec<Value> = args.iter().cloned().chain(ones).collect();
    let derived = ready.run(&all, &Options::default()).map_err(|e| e.to_string())?;
    Ok(Measured { primal: plain.counts, gradient: derived.counts })
}
