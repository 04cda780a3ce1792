//! What a run was: its results, its cost, which executor ran it, and what compiling took.

use pullback_core::Value;
use pullback_interp::core::Counts;
pub use pullback_kernel::verify::Fallback;
use std::time::Instant;

/// What ran a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The reference interpreter.
    Interp,
    /// The interpreter of blocks of lanes.
    Vm,
    /// Machine code made by LLVM.
    Llvm,
}

impl Executor {
    /// Its name, as `--backend` has it.
    pub fn name(self) -> &'static str {
        match self {
            Executor::Interp => "interp",
            Executor::Vm => "vm",
            Executor::Llvm => "llvm",
        }
    }
}

/// Results of a run and what it was like.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The results of the function.
    pub results: Vec<Value>,
    /// What it cost. Only the interpreter counts more than bytes.
    pub counts: Counts,
    /// What ran it, and how long that took.
    pub ran: Ran,
}

/// Which executor ran, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The executor.
    pub executor: Executor,
    /// Seconds of the run itself, without compiling.
    pub seconds: f64,
    /// Machine code or bytecode, where that ran.
    pub code: Option<CodeReport>,
    /// What was given up to run code without an alarm of the verifier: nothing, unless the compiler has a fault.
    pub fallbacks: Vec<Fallback>,
}

/// What making machine code or bytecode took.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeReport {
    /// The library that made it, as `LLVM 22.1.2`, or what runs it, as `kernels for AVX2`.
    pub compiler: String,
    /// Whether an earlier process had made it and kept it on disk.
    pub was_kept: bool,
    /// Seconds of each stage.
    pub stages: Vec<Stage>,
}

/// A stage of compiling, and its seconds.
pub type Stage = (&'static str, f64);

/// What `work` gives, and the seconds it takes.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let out = work();
    (out, start.elapsed().as_secs_f64())
}

/// Adds seconds to a stage; a new one comes last.
pub(crate) fn add(stages: &mut Vec<Stage>, name: &'static str, seconds: f64) {
    match stages.iter_mut().find(|(n, _)| *n == name) {
        Some((_, total)) => *total += seconds,
        None => stages.push((name, seconds)),
    }
}
