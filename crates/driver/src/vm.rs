//! A function on the vm.

use crate::backend::{fits, lowered, sizes, with_types};
use crate::report::{CodeReport, Executor, Outcome, Ran, timed};
use crate::session::Ready;
use pullback_base::{Diagnostic, RuntimeError};
use pullback_core::Value;
use pullback_interp::core::{Counts, Options};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::verify::Fallback;
use pullback_kernel::{FunctionId, Plan};
use pullback_vm::{Executable, LANES, Limits, Machine};
use std::sync::atomic::{AtomicU64, Ordering};

/// Work after which machine code pays, in all calls together: about a tenth of a second.
const PATIENCE: u64 = 50_000_000;

/// A function as bytecode.
#[derive(Debug)]
pub struct Vm {
    executable: Executable,
    function: FunctionId,
    plan: Plan,
    report: CodeReport,
    fallbacks: Vec<Fallback>,
    /// Work that calls have done.
    done: AtomicU64,
}

impl Vm {
    /// Translates what is ready to run. Errors: a program that is not native.
    pub(crate) fn new(ready: &Ready, args: &[Value]) -> Result<Vm, Box<Diagnostic>> {
        let (lowered, lowering) = timed(|| lowered(ready));
        let (mut module, function) = lowered?;
        let plan = Plan::new(&module, function);
        let ((), scheduling) = timed(|| {
            let sizes = sizes(ready, function, args);
            let options = schedule::Options { sizes, ..schedule::Options::new(LANES, Model::interpreter()) };
            schedule(&mut module, &options);
        });
        let plan = plan.as_scheduled(&module);
        let (executable, translating) = timed(|| Executable::new(&module, &pullback_vm::Options::default()));
        let report = CodeReport {
            compiler: format!("kernels for {}", executable.options().machine.name()),
            was_kept: false,
            stages: vec![("lower", lowering), ("schedule", scheduling), ("translate", translating)],
        };
        let fallbacks = module.fallbacks;
        Ok(Vm { executable, function, plan, report, fallbacks, done: AtomicU64::new(0) })
    }
    /// What making it took.
    pub fn report(&self) -> &CodeReport {
        &self.report
    }
    /// Work that calls may still do before machine code pays.
    pub(crate) fn patience(&self) -> u64 {
        PATIENCE.saturating_sub(self.done.load(Ordering::Relaxed))
    }
    /// `available`: bytes that the process can take. `work`: at most so much, or the error that `pullback_vm` gives.
    pub(crate) fn run(
        &self,
        ready: &Ready,
        args: &[Value],
        options: &Options<'_>,
        available: u64,
        work: Option<u64>,
    ) -> Result<Outcome, RuntimeError> {
        let fun = &ready.program.funs[ready.fun];
        let args = with_types(ready, args)?;
        let limits = Limits { cancel: options.cancel, work };
        let call = || {
            let there = available.saturating_add(self.executable.kept_bytes());
            let limit = options.memory_limit.min(there);
            let planned = fits(&self.plan, &args, limit)?;
            let mut session = self.executable.session_within(limit);
            let out = session.call(self.function, &args, &fun.results, limits);
            self.done.fetch_add(session.work_done(), Ordering::Relaxed);
            Ok((planned, out?))
        };
        let (out, seconds) = timed(call);
        let (planned, out) = out?;
        let peak_tape_bytes = planned.tapes;
        let counts = Counts { peak_bytes: out.peak_bytes, peak_tape_bytes, ..Counts::default() };
        let fallbacks = self.fallbacks.clone();
        let ran = Ran { executor: Executor::Vm, seconds, code: Some(self.report.clone()), fallbacks };
        Ok(Outcome { results: out.results, counts, ran })
    }
}

/// The instruction set that the vm uses, and those that this processor lacks, best first.
pub fn machines() -> (Machine, Vec<Machine>) {
    let lacking = Machine::ALL.into_iter().rev().filter(|m| !m.is_there()).collect();
    (Machine::best(), lacking)
}
