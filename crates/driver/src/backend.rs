//! Which executor runs a program.
//!
//! The reference interpreter runs everything, counts steps, and finds NaNs. Programs of the native rules run many times faster
//! on the vm, which is ready at once, and faster still as machine code, which takes time to make. The results are the same but
//! for rounding: the order of sums that may be re-associated, and the last bits of functions such as `exp`.

use crate::memory;
use crate::report::{CodeReport, Executor, Fallback, Outcome, Ran, timed};
use crate::session::Ready;
use crate::versions::Sizes;
use crate::vm::Vm;
use pullback_abi::Room;
use pullback_base::{Code, Diagnostic, RuntimeError, RuntimeErrorKind};
use pullback_core::{Type, Value};
use pullback_cpu::{Draft, Executable, LlvmError, Prepared};
use pullback_interp::core::{Counts, Options};
use pullback_kernel::{Bytes, FunctionId, Module, NotNative, Plan, lower, lower_unproved, prove};
use pullback_llvm::load::candidates;
use pullback_llvm::{Llvm, text};
use pullback_vm::is_out_of_work;
use std::path::{Path, PathBuf};

/// An executor, or how one is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// The vm; machine code if there is much work and it can be made; the interpreter for programs that are not native.
    #[default]
    Auto,
    /// The interpreter of blocks of lanes.
    Vm,
    /// Compiled by LLVM.
    Llvm,
    /// The reference interpreter.
    Interp,
}

/// What to do where there is no native code.
pub(crate) const HINT: &str = "`--backend interp` runs every program; `--backend auto` chooses";

/// Where to look.
const DOCTOR: &str = "see `pullback doctor`";

/// A function as machine code.
#[derive(Debug)]
pub struct Native {
    executable: Executable,
    function: FunctionId,
    plan: Plan,
    report: CodeReport,
}

impl Native {
    /// Compiles what is ready to run.
    ///
    /// Errors: a program that is not native, and an LLVM that is missing or fails, with what to do.
    pub(crate) fn new(ready: &Ready, args: &[Value]) -> Result<Native, Box<Diagnostic>> {
        let (lowered, lowering) = timed(|| lower_unproved(&ready.program, ready.fun).map_err(not_native));
        let (module, function) = lowered?;
        let cache = ready.cache.clone();
        let text = text::Options { floats: ready.floats, ..text::Options::default() };
        let sizes = sizes(ready, function, args);
        let options = pullback_cpu::Options { cache, text, sizes, ..pullback_cpu::Options::default() };
        let threads = ready.threads.unwrap_or(options.threads);
        let workspaces = ready.workspaces.clone();
        let options = pullback_cpu::Options { threads, relaxed: ready.relaxed, workspaces, ..options };
        let (made, compiling) = timed(|| compiled(ready, (module, function), &options));
        let (executable, function, plan) = made?;
        let plan = plan.as_scheduled(executable.module());
        let report = CodeReport {
            compiler: format!("LLVM {}", executable.compiler().version),
            was_kept: executable.was_kept(),
            stages: vec![("lower", lowering), ("LLVM", compiling)],
        };
        Ok(Native { executable, function, plan, report })
    }
    /// What making it took.
    pub fn report(&self) -> &CodeReport {
        &self.report
    }
    /// `available`: bytes that the process can take. Workspaces that are kept have been taken before.
    fn run(
        &self,
        ready: &Ready,
        args: &[Value],
        options: &Options<'_>,
        available: u64,
    ) -> Result<Outcome, RuntimeError> {
        let fun = &ready.program.funs[ready.fun];
        let args = with_types(ready, args)?;
        let call = || {
            let there = available.saturating_add(self.executable.kept_bytes());
            let limit = options.memory_limit.min(there);
            let planned = fits(&self.plan, &args, limit)?;
            let mut session = self.executable.session_within(limit);
            Ok((planned, session.call(self.function, &args, &fun.results, options.cancel)?))
        };
        let (out, seconds) = timed(call);
        let (planned, out) = out?;
        let peak_tape_bytes = planned.tapes;
        let counts = Counts { peak_bytes: out.peak_bytes, peak_tape_bytes, ..Counts::default() };
        let fallbacks = self.executable.module().fallbacks.clone();
        let ran = Ran { executor: Executor::Llvm, seconds, code: Some(self.report.clone()), fallbacks };
        Ok(Outcome { results: out.results, counts, ran })
    }
}

/// The code of a module that the verifier has not seen, and what calls are sure to take. Code that was kept is verified; other code is before it is compiled.
fn compiled(
    ready: &Ready,
    (module, function): (Module, FunctionId),
    options: &pullback_cpu::Options,
) -> Result<(Executable, FunctionId, Plan), Box<Diagnostic>> {
    let failed = |e: LlvmError| {
        let message = format!("no native code: {e}");
        Box::new(Diagnostic::global(Code::Unsupported, message).hint(HINT).hint(DOCTOR))
    };
    let draft = Draft::new(&module, options).map_err(failed)?;
    if let Some(executable) = draft.kept().map_err(failed)? {
        return Ok((executable, function, Plan::new(&module, function)));
    }
    let (module, function) = prove(&ready.program, ready.fun, (module, function)).map_err(not_native)?;
    let plan = Plan::new(&module, function);
    let made = match module.fallbacks.is_empty() {
        true => draft.compiled(),
        false => Executable::new(&module, options),
    };
    Ok((made.map_err(failed)?, function, plan))
}

/// What a call with these arguments is sure to take of so many bytes. Errors: if it is sure that they are too few.
pub(crate) fn fits(plan: &Plan, args: &[(&Type, &Value)], limit: u64) -> Result<Bytes, RuntimeError> {
    plan.check(&pullback_abi::sizes(args), limit).map_err(|s| {
        let room = Room { in_use: s.in_use, limit };
        pullback_abi::stop::out_of_memory(s.count, s.size, &room).at(s.span)
    })
}

/// Arguments with the types of the parameters. Errors: their number.
pub(crate) fn with_types<'a>(
    ready: &'a Ready,
    args: &'a [Value],
) -> Result<Vec<(&'a Type, &'a Value)>, RuntimeError> {
    let fun = &ready.program.funs[ready.fun];
    if fun.params.len() != args.len() {
        let message =
            format!("function {} takes {} arguments, not {}", fun.name, fun.params.len(), args.len());
        return Err(RuntimeError::new(RuntimeErrorKind::Internal, message));
    }
    Ok(fun.params.iter().map(|p| &ready.program.vars[*p].ty).zip(args).collect())
}

impl Ready {
    /// Runs the function with the executor of the settings. What only the interpreter can do (simulated schedules, stopping at the
    /// first NaN, a limit on steps) it does whatever the executor. Steps are counted where the interpreter ran. No more memory
    /// is taken than there is, whatever the limit.
    pub fn run(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        self.run_within(args, options, memory::available().unwrap_or(u64::MAX))
    }
    /// The same where so many bytes are there.
    pub(crate) fn run_within(
        &self,
        args: &[Value],
        options: &Options<'_>,
        available: u64,
    ) -> Result<Outcome, RuntimeError> {
        let out = self.run_chosen(args, options, available);
        out.map_err(|e| about_memory(e, options.memory_limit, available))
    }
    fn run_chosen(
        &self,
        args: &[Value],
        options: &Options<'_>,
        available: u64,
    ) -> Result<Outcome, RuntimeError> {
        let special = options.schedule_seed.is_some() || options.check_nan || options.work_limit < u64::MAX;
        let within = Options { memory_limit: options.memory_limit.min(available), ..*options };
        match self.backend {
            _ if special => self.interpreted(args, &within),
            Backend::Interp => self.interpreted(args, &within),
            Backend::Llvm => self.run_native(args, options, available),
            Backend::Vm => match self.vm_for_call(args) {
                Ok(vm) => vm.run(self, args, options, available, None),
                Err(d) => Err(not_made(d)),
            },
            Backend::Auto => self.choose(args, &within, available),
        }
    }
    fn interpreted(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let (out, seconds) = timed(|| self.interpret(args, options));
        let out = out?;
        let ran = Ran { executor: Executor::Interp, seconds, code: None, fallbacks: Vec::new() };
        Ok(Outcome { results: out.results, counts: out.counts, ran })
    }
    fn choose(&self, args: &[Value], options: &Options<'_>, available: u64) -> Result<Outcome, RuntimeError> {
        if let Some(Ok(_)) = self.native.first() {
            return self.run_native(args, options, available);
        }
        let vm = match self.vm_for_call(args) {
            Ok(vm) => vm,
            Err(why) => {
                let mut out = self.interpreted(args, options)?;
                out.ran.fallbacks.extend((why.code == Code::Internal).then_some(Fallback::Interpreted));
                return Ok(out);
            }
        };
        let first = vm.run(self, args, options, available, Some(vm.patience()));
        match first {
            // Blocks of many lanes need more memory, so machine code may do where the vm stopped.
            Err(e) if is_out_of_work(&e) || is_out_of_memory(&e) => match self.native(args) {
                Ok(native) => native.run(self, args, options, available),
                Err(_) if is_out_of_memory(&e) => Err(e),
                Err(_) => vm.run(self, args, options, available, None),
            },
            done => done,
        }
    }
    fn run_native(
        &self,
        args: &[Value],
        options: &Options<'_>,
        available: u64,
    ) -> Result<Outcome, RuntimeError> {
        let native = self.native.for_call(&self.sizes(args), || self.make_native(args));
        native.as_ref().map_err(|d| not_made(d))?.run(self, args, options, available)
    }
    /// The function as machine code, ready to be called with buffers of the caller, with loops chosen for arguments of the sizes
    /// of these; without arguments, for sizes that are not known. Calls may take so many bytes of memory, and no more than there
    /// are now.
    ///
    /// Errors: a program that is not native, a missing LLVM, and arguments or results that are neither scalars nor arrays of
    /// scalars.
    pub fn prepare(&self, args: &[Value], memory_limit: u64) -> Result<Prepared<'_>, Box<Diagnostic>> {
        let native = self.native(args)?;
        let fun = &self.program.funs[self.fun];
        let params: Vec<Type> = fun.params.iter().map(|p| self.program.vars[*p].ty.clone()).collect();
        let limit = memory_limit.min(memory::available().unwrap_or(u64::MAX));
        let made = native.executable.prepare(native.function, &params, &fun.results, limit);
        made.map_err(|e| Box::new(Diagnostic::global(Code::Unsupported, e.message)))
    }
    /// The function as bytecode. It is right for all arguments; loops are chosen for arguments of sizes near those of these, as
    /// long as there are few kinds of sizes.
    pub fn vm(&self, args: &[Value]) -> Result<&Vm, Box<Diagnostic>> {
        self.vm.for_calls(&self.sizes(args), || self.make_vm(args)).as_ref().map_err(Clone::clone)
    }
    /// The function as machine code, which the same is true of.
    pub fn native(&self, args: &[Value]) -> Result<&Native, Box<Diagnostic>> {
        self.native.for_calls(&self.sizes(args), || self.make_native(args)).as_ref().map_err(Clone::clone)
    }
    fn vm_for_call(&self, args: &[Value]) -> &Result<Vm, Box<Diagnostic>> {
        self.vm.for_call(&self.sizes(args), || self.make_vm(args))
    }
    fn make_vm(&self, args: &[Value]) -> Result<Vm, Box<Diagnostic>> {
        crate::session::deep(|| Vm::new(self, args))
    }
    fn make_native(&self, args: &[Value]) -> Result<Native, Box<Diagnostic>> {
        crate::session::deep(|| Native::new(self, args))
    }
    /// What words of arguments are sizes.
    fn sizes(&self, args: &[Value]) -> Sizes {
        let params = self.program.funs[self.fun].params.iter().map(|p| &self.program.vars[*p].ty);
        let given: Vec<(&Type, &Value)> = params.zip(args).collect();
        pullback_abi::sizes(&given)
    }
}

/// How the message of a run begins that needs more memory than it may take.
const OUT_OF_MEMORY: &str = "out of memory";

fn is_out_of_memory(e: &RuntimeError) -> bool {
    e.kind == RuntimeErrorKind::Limit && e.message.starts_with(OUT_OF_MEMORY)
}

/// Why there is no code to run.
fn not_made(d: &Diagnostic) -> RuntimeError {
    RuntimeError { span: d.span, ..RuntimeError::new(RuntimeErrorKind::Limit, d.message.clone()) }
}

/// Says what set the limit of memory.
pub(crate) fn about_memory(e: RuntimeError, limit: u64, available: u64) -> RuntimeError {
    if !is_out_of_memory(&e) {
        return e;
    }
    let hint = if available < limit {
        "the limit is what this machine, or the container of the process, has left; make the sizes smaller"
    } else {
        "give more with `--memory-limit`, or make the sizes smaller"
    };
    RuntimeError { hint: Some(hint.to_string()), ..e }
}

pub(crate) fn lowered(ready: &Ready) -> Result<(Module, FunctionId), Box<Diagnostic>> {
    lower(&ready.program, ready.fun).map_err(not_native)
}

/// The error of a program that is not native.
pub(crate) fn not_native(e: Box<NotNative>) -> Box<Diagnostic> {
    let code = if e.is_internal() { Code::Internal } else { Code::Unsupported };
    let mut d = Diagnostic::global(code, e.to_string()).hint(HINT);
    d.span = e.span;
    Box::new(d)
}

/// Whether the program is native; else the error that `--backend vm` gives.
pub(crate) fn is_native(ready: &Ready) -> Result<(), Box<Diagnostic>> {
    lowered(ready).map(|_| ())
}

/// What the sizes in these arguments tell the scheduler of loops.
pub(crate) fn sizes(
    ready: &Ready,
    function: FunctionId,
    args: &[Value],
) -> Vec<(FunctionId, Vec<Option<i64>>)> {
    vec![(function, ready.sizes(args))]
}

/// Whether the program is native and there is an LLVM; else the error that `--backend llvm` gives.
pub(crate) fn compiles(ready: &Ready) -> Result<(), Box<Diagnostic>> {
    lowered(ready)?;
    match Llvm::find() {
        Ok(_) => Ok(()),
        Err(e) => {
            let message = format!("no native code: {e}");
            Err(Box::new(Diagnostic::global(Code::Unsupported, message).hint(HINT).hint(DOCTOR)))
        }
    }
}

/// A libLLVM that was found.
#[derive(Clone, Debug)]
pub struct Library {
    /// Where.
    pub path: PathBuf,
    /// Its version and the processor that it makes code for, or why it cannot be used.
    pub usable: Result<(String, String), String>,
}

/// The folder where the command line keeps machine code between runs.
pub fn cache_folder() -> Option<PathBuf> {
    pullback_cpu::cache::folder()
}

/// What that folder holds, and whether it can be written to.
pub fn cache_contents(folder: &Path) -> pullback_cpu::cache::Contents {
    pullback_cpu::cache::contents(folder)
}

/// Every libLLVM that is found, in the order in which they are tried.
pub fn libraries() -> Vec<Library> {
    let usable = |path: &PathBuf| {
        let llvm = Llvm::open(path).map_err(|e| e.message)?;
        Ok((format!("LLVM {}", llvm.found().version), llvm.processor().0.to_string()))
    };
    candidates().into_iter().map(|path| Library { usable: usable(&path), path }).collect()
}
