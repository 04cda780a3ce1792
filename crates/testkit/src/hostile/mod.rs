//! Hostile sizes: programs of shape operations with sizes around 2^31, 2^32, 2^59 .. 2^63 and below zero, and with rows that do not
//! match, on the native executors against the interpreter.
//!
//! Each program and its gradient run with several arguments, three ways: on the vm as they were lowered, and on the vm and as machine code
//! as users run them. All have little memory ([`MEMORY`]) and little time. What must hold:
//! - Where the interpreter gives a value, so do the others, and the same.
//! - Where it stops, so do the others. The plain way says the same; it may have found before that there is no memory for a result. In loops that
//!   ask before they begin, another one of several errors may come first.
//! - Where there are too many elements to count, the others stop as well, even if they would never store them.
//! - Where the interpreter has no memory for an array, compiled code may need none (a replicated number, an array that is only read at one
//!   place): then it may give a value, which nobody can check, or stop later for another reason. It may not crash, and it is never an
//!   internal error.
//! - Where the interpreter takes too many steps, compiled code may not be done at once: a loop whose count wraps round would be.
//!   (Machine code may know the sum of a loop without running it.)
//!
//! [`process`] runs programs in processes of their own, with a limit on their addresses.

pub mod process;
mod programs;

pub use programs::{Program, parts_of_forms, program};

use crate::native::{ROUNDING, near, same};
use crate::text::show as show_value;
use pullback_base::{Fault, RuntimeError, RuntimeErrorKind};
use pullback_core::{Type, Value};
use pullback_driver::{Backend, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options;
use pullback_kernel::lower;
use pullback_vm::{Functions, Limits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes that a run may take.
pub const MEMORY: u64 = 256 << 20;
/// Steps of the interpreter.
const STEPS: u64 = 300_000;
/// Work of the vm, in instructions on scalars: many times what that many steps are.
const WORK: u64 = 100 * STEPS;
/// How long compiled code may take.
const TIME: Duration = Duration::from_millis(400);
/// Fewer instructions than this cannot be what takes the interpreter more than [`STEPS`].
const AT_ONCE: u64 = STEPS / 100;

/// A way to run a program natively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the vm, loops as they were lowered, functions of the primitive table: every bit, and the text of errors.
    Plain,
    /// On the vm, as users run it.
    Vm,
    /// As machine code, as users run it.
    Llvm,
}

impl Way {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Vm => "vm",
            Way::Llvm => "llvm",
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
enum Ended {
    Value(Vec<Value>),
    Stopped(RuntimeError),
    /// It was given no more time; after so much work, if that is counted.
    Unfinished,
}

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same value.
    Value,
    /// The same error.
    Stops,
    /// The interpreter has no memory for what the others may not need to store.
    Memory,
    /// It takes too long.
    Long,
    /// It is wrong.
    Fails(String),
}

impl Verdict {
    /// One word.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Value => "value",
            Verdict::Stops => "stops",
            Verdict::Memory => "memory",
            Verdict::Long => "long",
            Verdict::Fails(_) => "FAILS",
        }
    }
}

/// What came of some programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often there was a verdict, by name; also `refused`: programs that have no types, and `foreign`: functions that are not native.
    pub verdicts: BTreeMap<String, u64>,
    /// What was wrong.
    pub failures: Vec<String>,
}

impl Counts {
    fn count(&mut self, verdict: &str) {
        *self.verdicts.entry(verdict.into()).or_default() += 1;
    }
    /// How often there was this verdict.
    pub fn of(&self, verdict: &str) -> u64 {
        self.verdicts.get(verdict).copied().unwrap_or(0)
    }
    /// Adds those of others.
    pub fn extend(&mut self, other: Counts) {
        for (verdict, n) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += n;
        }
        self.failures.extend(other.failures);
    }
}

/// The program of a seed and its gradient. Machine code takes most of the time: it is made of one of the two.
pub fn examine(seed: u64) -> Counts {
    examine_program(&program(seed), seed)
}

/// A program and its gradient; the seed decides whether it is optimised, and of which of the two machine code is made.
pub fn examine_program(program: &Program, seed: u64) -> Counts {
    let mut counts = Counts::default();
    let settings = Settings { optimise: !seed.is_multiple_of(4), ..Settings::default() };
    let session = match Session::compile("hostile.fut", &program.text(), settings) {
        Ok(session) => session,
        Err(failed) => {
            counts.count("refused");
            if failed.diagnostics.iter().any(|d| d.code.fault() == Fault::Bug) {
                counts.failures.push(format!("does not compile: {}", failed.render()));
            }
            return counts;
        }
    };
    let both = !program.has_gradient();
    primal(&session, program, both || (seed / 4).is_multiple_of(2), &mut counts);
    if program.has_gradient() {
        gradient(&session, program, seed / 4 % 2 == 1, &mut counts);
    }
    counts
}

fn primal(session: &Session, program: &Program, compiled: bool, counts: &mut Counts) {
    let Ok(entry) = session.entry(None) else { return counts.failures.push("no entry point".into()) };
    match session.primal(&entry) {
        Ok(ready) => all_ways(ready, "value", &program.args, compiled, counts),
        Err(d) => counts.failures.push(format!("value: {}", d.message)),
    }
}

fn gradient(session: &Session, program: &Program, compiled: bool, counts: &mut Counts) {
    let Ok(entry) = session.entry(None) else { return };
    let Ok(selected) = session.select(&entry, &Wrt::parse("xs,mat,w")) else { return };
    let args: Vec<Vec<Value>> = program.args.iter().map(|args| with_seed(args)).collect();
    match session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}) {
        Ok(ready) => all_ways(ready, "gradient", &args, compiled, counts),
        Err(d) if d.code.fault() == Fault::Bug => {
            counts.failures.push(format!("gradient: {}", d.message));
        }
        Err(_) => counts.count("foreign"),
    }
}

fn with_seed(args: &[Value]) -> Vec<Value> {
    args.iter().cloned().chain([Value::f64(1.0)]).collect()
}

fn all_ways(mut ready: Ready, what: &str, args: &[Vec<Value>], compiled: bool, counts: &mut Counts) {
    let Some(plain) = plain(&ready, args) else { return counts.count("foreign") };
    let mut compare = |way: Way, (expected, found): (&Ended, &Ended), work: Option<u64>, args: &[Value]| {
        let verdict = compared(way, expected, found, work);
        counts.count(verdict.name());
        if let Verdict::Fails(text) = verdict {
            let args = args.iter().map(show_value).collect::<Vec<_>>().join(" ");
            counts.failures.push(format!("{what}, {}, main {args}: {text}", way.name()));
        }
    };
    let expected: Vec<Ended> = args.iter().map(|args| interpreted(&ready, args)).collect();
    for ((expected, (found, work)), args) in expected.iter().zip(&plain).zip(args) {
        compare(Way::Plain, (expected, found), Some(*work), args);
    }
    for (way, backend) in [(Way::Vm, Backend::Vm), (Way::Llvm, Backend::Llvm)] {
        if way == Way::Llvm && !compiled {
            continue;
        }
        ready.backend = backend;
        for ((expected, (plain, _)), args) in expected.iter().zip(&plain).zip(args) {
            // (Innermost loops of machine code do not look whether they are to stop.)
            if !matches!(plain, Ended::Unfinished) {
                compare(way, (expected, &native(&ready, args)), None, args);
            }
        }
    }
}

/// What is left of an error: it is the same whatever the executor.
fn ended(result: Result<Vec<Value>, RuntimeError>) -> Ended {
    match result {
        Ok(values) => Ended::Value(values),
        Err(e) if e.kind == RuntimeErrorKind::Cancelled || is_out_of_steps(&e) => Ended::Unfinished,
        Err(e) => Ended::Stopped(e),
    }
}

/// What an error says, without its numbers: which of several rows is the first that does not match may differ.
fn words(e: &RuntimeError) -> String {
    e.message.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn is_out_of_steps(e: &RuntimeError) -> bool {
    pullback_vm::is_out_of_work(e)
        || (e.kind == RuntimeErrorKind::Limit && e.message.ends_with("steps is reached"))
}

fn is_out_of_memory(e: &RuntimeError) -> bool {
    e.kind == RuntimeErrorKind::Limit && e.message.starts_with("out of memory")
}

fn interpreted(ready: &Ready, args: &[Value]) -> Ended {
    let options = Options { work_limit: STEPS, memory_limit: MEMORY, ..Options::default() };
    ended(ready.interpret(args, &options).map(|out| out.results))
}

/// On the vm without a schedule, with the work that was done; nothing if the program is not native.
fn plain(ready: &Ready, args: &[Vec<Value>]) -> Option<Vec<(Ended, u64)>> {
    let (module, id) = lower(&ready.program, ready.fun).ok()?;
    let functions = Functions::Table;
    let options =
        pullback_vm::Options { functions, poison: true, memory_limit: MEMORY, ..Default::default() };
    let executable = pullback_vm::Executable::new(&module, &options);
    let fun = &ready.program.funs[ready.fun];
    let run = |args: &Vec<Value>| {
        let types = fun.params.iter().map(|p| &ready.program.vars[*p].ty);
        let typed: Vec<(&Type, &Value)> = types.zip(args).collect();
        let mut session = executable.session_within(MEMORY);
        let limits = Limits { cancel: None, work: Some(WORK) };
        let out = session.call(id, &typed, &fun.results, limits);
        (ended(out.map(|o| o.results)), session.work_done())
    };
    Some(args.iter().map(run).collect())
}

/// With the executor that is chosen, for some time.
fn native(ready: &Ready, args: &[Value]) -> Ended {
    let cancel = Arc::new(AtomicBool::new(false));
    let (done, waits) = std::sync::mpsc::channel::<()>();
    let flag = cancel.clone();
    let watch = std::thread::spawn(move || {
        if waits.recv_timeout(TIME).is_err() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    let options = Options { memory_limit: MEMORY, cancel: Some(&*cancel), ..Options::default() };
    let out = ready.run(args, &options);
    // (The watch is gone if time is up.)
    let _ = done.send(());
    let _ = watch.join();
    ended(out.map(|out| out.results))
}

/// `work`: what was found took so much, if that was counted.
fn compared(way: Way, expected: &Ended, found: &Ended, work: Option<u64>) -> Verdict {
    let fails =
        |what: &str| Verdict::Fails(format!("{what}: expected {}, found {}", show(expected), show(found)));
    if let Ended::Stopped(e) = found
        && e.kind == RuntimeErrorKind::Internal
    {
        return fails("an internal error");
    }
    match (expected, found) {
        (Ended::Value(a), Ended::Value(b)) => {
            let equal = |(a, b): (&Value, &Value)| match way {
                Way::Plain => same(a, b),
                Way::Vm | Way::Llvm => near(a, b, ROUNDING),
            };
            let is_right = a.len() == b.len() && a.iter().zip(b).all(equal);
            if is_right { Verdict::Value } else { fails("another value") }
        }
        (Ended::Stopped(e), _) if e.kind == RuntimeErrorKind::Internal => {
            fails("an internal error of the interpreter")
        }
        (Ended::Stopped(e), _) if is_out_of_memory(e) => Verdict::Memory,
        (Ended::Stopped(e), Ended::Stopped(f)) => {
            // Memory is asked for early where several arrays become one.
            let is_same = e.kind == f.kind && words(e) == words(f);
            let is_right = is_same || way != Way::Plain || f.kind == RuntimeErrorKind::Limit;
            if is_right { Verdict::Stops } else { fails("another error") }
        }
        (Ended::Unfinished, Ended::Value(_)) if work.is_some_and(|work| work < AT_ONCE) => {
            fails("done at once")
        }
        (Ended::Unfinished, _) | (_, Ended::Unfinished) => Verdict::Long,
        (Ended::Value(_), Ended::Stopped(_)) => fails("it stops"),
        (Ended::Stopped(_), Ended::Value(_)) => fails("it does not stop"),
    }
}

fn show(ended: &Ended) -> String {
    match ended {
        Ended::Value(values) => values.iter().map(show_value).collect::<Vec<_>>().join(" "),
        Ended::Stopped(e) => format!("{:?}: {e}", e.kind),
        Ended::Unfinished => "no end".into(),
    }
}
