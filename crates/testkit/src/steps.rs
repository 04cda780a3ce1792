//! What gradients of real problems cost, in steps of the interpreter.

use crate::problems::{PROBLEMS, Problem};
use pullback_core::{Program, Value};
use pullback_driver::pipeline::{STANDARD, Step};
use pullback_driver::{Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::{Counts, Options};
use pullback_opt::{Ctx, ELIMINATE_ACCUMULATORS};
use std::path::Path;

/// The size of all problems in the table of the book.
pub const SIZE: usize = 32;

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
    let compiled = Compiled::new(root, problem, settings)?;
    let args = (problem.args)(size);
    let plain = compiled.primal.run(&args, &Options::default()).map_err(|e| e.to_string())?;
    let all = with_cotangents(&args, &plain.results);
    let derived = compiled.gradient.run(&all, &Options::default()).map_err(|e| e.to_string())?;
    Ok(Measured { primal: plain.counts, gradient: derived.counts })
}

/// The table of `docs/book/steps.md`: all problems at a size, as Markdown. `root`: the repository.
pub fn table(root: &Path, size: usize) -> String {
    let mut out = "| problem | size | objective, steps | with gradient, steps | ratio | ratio at twice the size | ratio of flops | adds into accumulators |\n\
         |---|---|---|---|---|---|---|---|\n"
        .to_string();
    for problem in PROBLEMS {
        out += &row(root, problem, size);
    }
    out
}

/// A line of the table.
fn row(root: &Path, problem: &Problem, size: usize) -> String {
    let of = |size| measure(root, problem, size, &Settings::default());
    let label = if problem.size.is_empty() { "-".to_string() } else { format!("{size} {}", problem.size) };
    match (of(size), of(2 * size)) {
        (Ok(s), Ok(b)) => format!(
            "| {} | {label} | {} | {} | {:.2} | {:.2} | {:.2} | {} |\n",
            problem.name,
            s.primal.work,
            s.gradient.work,
            s.ratio(),
            b.ratio(),
            s.flops(),
            s.gradient.acc_adds,
        ),
        (Err(e), _) | (_, Err(e)) => format!("| {} | {label} | {e} | | | | | |\n", problem.name),
    }
}

/// What objective and gradient of a problem cost with and without the elimination of accumulators.
pub fn measure_elimination(root: &Path, problem: &Problem, size: usize) -> Result<[Counts; 2], String> {
    let compiled = Compiled::new(root, problem, &Settings::default())?;
    let mut program = compiled.before.clone();
    let is_elimination = |s: &Step| matches!(s, Step::Pass(p) if p.name == ELIMINATE_ACCUMULATORS.name);
    let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
    for step in STANDARD.iter().skip_while(|s| !is_elimination(s)).skip(1) {
        if let Step::Pass(pass) = step {
            (pass.run)(&mut program, &ctx);
        }
    }
    let args = (problem.args)(size);
    let plain = compiled.primal.run(&args, &Options::default()).map_err(|e| e.to_string())?;
    let all = with_cotangents(&args, &plain.results);
    let without = Ready::new(program, compiled.gradient.fun, pullback_driver::Backend::Interp);
    let run = |ready: &Ready| ready.run(&all, &Options::default()).map_err(|e| e.to_string());
    Ok([run(&compiled.gradient)?.counts, run(&without)?.counts])
}

struct Compiled {
    primal: Ready,
    gradient: Ready,
    /// The gradient before accumulators are eliminated.
    before: Program,
}

impl Compiled {
    fn new(root: &Path, problem: &Problem, settings: &Settings) -> Result<Compiled, String> {
        let text =
            std::fs::read_to_string(root.join(problem.file)).map_err(|e| format!("{}: {e}", problem.file))?;
        let session = Session::compile(problem.file, &text, settings.clone()).map_err(|e| e.render())?;
        let entry = session.entry(Some(problem.entry)).map_err(|d| d.message)?;
        let primal = session.primal(&entry).map_err(|d| d.message)?;
        let wanted = session.select(&entry, &Wrt::parse(problem.wrt)).map_err(|d| d.message)?;
        let (mut before, mut last) = (Program::default(), Program::default());
        let mut watch = |name: &'static str, p: &Program| {
            let previous = std::mem::replace(&mut last, p.clone());
            if name == ELIMINATE_ACCUMULATORS.name {
                before = previous;
            }
        };
        let gradient = session.derivative(&entry, Kind::Vjp, &wanted, &mut watch).map_err(|d| d.message)?;
        Ok(Compiled { primal, gradient, before })
    }
}

/// The arguments of the derivative: those of the objective, and ones.
fn with_cotangents(args: &[Value], results: &[Value]) -> Vec<Value> {
    let ones = results.iter().filter_map(|v| match v {
        Value::Array(a) => Some(Value::f64_array(&a.shape, &vec![1.0; a.count()])),
        Value::Scalar(_) => Some(Value::f64(1.0)),
        _ => None,
    });
    args.iter().cloned().chain(ones).collect()
}
