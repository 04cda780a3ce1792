//! Where the time of a call goes: the program as it runs, with a clock around its loops ([`pullback_kernel::profile`]).
//!
//! Calls with and without clocks take turns, so that what looking costs is seen. Of the calls with clocks the one whose time is
//! the median is shown: its parts add up.

use crate::backend::{Backend, HINT, about_memory, compiles, not_native, sizes, with_types};
use crate::memory;
use crate::report::{Executor, timed};
use crate::session::{Ready, deep};
use pullback_base::{Code, Diagnostic, RuntimeError, RuntimeErrorKind};
use pullback_core::{Type, Value};
use pullback_interp::core::Options;
use pullback_kernel::profile::{Profiled, Slot, WORDS, instrument};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{FunctionId, Module, Sweep, lower_with_sites};
use pullback_llvm::{Llvm, text};
use pullback_prim::Scalar;
use pullback_vm::{LANES, Limits};
use std::time::{Duration, Instant};

/// The clock is compared with that of the system over this time at least.
const COMPARED: Duration = Duration::from_millis(20);

/// Whether programs may read the counter that LLVM gives. On ARM the system forbids it.
const HAS_CLOCK: bool = cfg!(target_arch = "x86_64");

/// Where the time of a call goes.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What ran it.
    pub executor: Executor,
    /// Calls of each kind.
    pub runs: usize,
    /// Threads that share loops.
    pub threads: usize,
    /// Seconds of a call without clocks: the median.
    pub plain_seconds: f64,
    /// Seconds of a call with clocks: the median.
    pub clocked_seconds: f64,
    /// The most bytes of workspace that a call held.
    pub peak_bytes: u64,
    /// The whole call first, then its parts, each after the one that it is in.
    pub rows: Vec<Row>,
}

/// A construct that was measured.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub slot: Slot,
    /// Seconds, with what is in it.
    pub seconds: f64,
    /// Seconds without the parts that are measured by themselves.
    pub own_seconds: f64,
    /// How often it ran.
    pub count: u64,
    /// Bytes of memory that it asked for, all together.
    pub bytes: u64,
    /// Those of them that are tapes.
    pub tape_bytes: u64,
}

/// Advice about a construct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The row of the construct; the first one: the whole call.
    pub row: usize,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: String,
}

/// Measures so many calls with clocks and so many without, after one of each that is not counted.
///
/// Errors: a program that is not native, the interpreter as its executor, and those of the calls.
pub fn profile(
    ready: &Ready,
    args: &[Value],
    options: &Options<'_>,
    runs: usize,
) -> Result<Profile, Box<Diagnostic>> {
    let executor = match ready.backend {
        Backend::Vm => Executor::Vm,
        Backend::Llvm if HAS_CLOCK => Executor::Llvm,
        Backend::Llvm => {
            let message = "machine code has no clock that a program may read on this kind of processor";
            return Err(Box::new(Diagnostic::global(Code::Unsupported, message).hint("use `--backend vm`")));
        }
        Backend::Auto if HAS_CLOCK && compiles(ready).is_ok() => Executor::Llvm,
        Backend::Auto => Executor::Vm,
        Backend::Interp => {
            let message = "the interpreter counts steps, it has no profile";
            let hint =
                "`--backend vm` and `--backend llvm` are profiled; `pullback run --report` counts steps";
            return Err(Box::new(Diagnostic::global(Code::Input, message).hint(hint)));
        }
    };
    let made = deep(|| Made::new(ready, args, executor))?;
    let (asked, available) = (options.memory_limit, memory::available().unwrap_or(u64::MAX));
    let stopped = |e: RuntimeError| Box::new(about_memory(e, asked, available).to_diagnostic());
    let memory_limit = asked.min(available);
    let options = &Options { memory_limit, ..*options };
    let look = || made.look(ready, args, options).map(|(_, look)| look).map_err(stopped);
    let plain = || made.plain(ready, args, options).map_err(stopped);
    let mut looks = vec![look()?];
    let peak_bytes = plain()?.peak_bytes;
    let mut without = Vec::new();
    for _ in 0..runs.max(1) {
        let (out, seconds) = timed(plain);
        out?;
        without.push(seconds);
        looks.push(look()?);
    }
    let wait = COMPARED.saturating_sub(looks[0].began.elapsed());
    std::thread::sleep(wait);
    let last = look()?;
    let first = looks.remove(0);
    let ticks = (last.word(0) - first.word(0)).max(1) as f64;
    let tick = last.began.duration_since(first.began).as_secs_f64() / ticks;
    let clocked_seconds = median(looks.iter().map(|l| l.seconds).collect());
    looks.sort_by_key(|l| l.word(1));
    let middle = &looks[(looks.len() - 1) / 2];
    Ok(Profile {
        executor,
        runs: runs.max(1),
        threads: if executor == Executor::Llvm { made.threads } else { 1 },
        plain_seconds: median(without),
        clocked_seconds,
        peak_bytes,
        rows: rows(&made.profiled.slots, middle, tick),
    })
}

fn median(mut xs: Vec<f64>) -> f64 {
    xs.sort_by(f64::total_cmp);
    xs.get(xs.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

fn rows(slots: &[Slot], look: &Look, tick: f64) -> Vec<Row> {
    let row = |(k, slot): (usize, &Slot)| {
        let word = |w: usize| look.word(1 + k * WORDS + w);
        let seconds = word(0) as f64 * tick;
        let [count, bytes, tape_bytes] = [1, 2, 3].map(|w| u64::try_from(word(w)).unwrap_or(0));
        Row { slot: slot.clone(), seconds, own_seconds: seconds, count, bytes, tape_bytes }
    };
    let mut rows: Vec<Row> = slots.iter().enumerate().map(row).collect();
    for k in 0..rows.len() {
        let seconds = rows[k].seconds;
        if let Some(parent) = rows[k].slot.parent {
            rows[parent].own_seconds = (rows[parent].own_seconds - seconds).max(0.0);
        }
    }
    rows
}

/// A call with clocks.
// Only tests look at one by itself.
#[doc(hidden)]
#[derive(Debug)]
pub struct Look {
    /// When it was begun.
    began: Instant,
    seconds: f64,
    words: Vec<i64>,
}

impl Look {
    fn word(&self, k: usize) -> i64 {
        self.words.get(k).copied().unwrap_or(0)
    }
}

/// A program without clocks, and with them.
// Only tests use one by itself.
#[doc(hidden)]
#[derive(Debug)]
pub struct Made {
    plain: Runs,
    function: FunctionId,
    profiled: Profiled,
    clocked: Runs,
    threads: usize,
}

#[derive(Debug)]
enum Runs {
    Vm(pullback_vm::Executable),
    Llvm(pullback_cpu::Executable),
}

impl Made {
    /// The code of both, for arguments such as these.
    pub fn new(ready: &Ready, args: &[Value], executor: Executor) -> Result<Made, Box<Diagnostic>> {
        let (mut module, function) = lower_with_sites(&ready.program, ready.fun).map_err(not_native)?;
        let sizes = sizes(ready, function, args);
        if executor == Executor::Vm {
            let options = schedule::Options { sizes, ..schedule::Options::new(LANES, Model::interpreter()) };
            schedule(&mut module, &options);
            let profiled = instrument(&module, function);
            let code =
                |m: &Module| Runs::Vm(pullback_vm::Executable::new(m, &pullback_vm::Options::default()));
            let (plain, clocked) = (code(&module), code(&profiled.module));
            return Ok(Made { plain, function, profiled, clocked, threads: 1 });
        }
        let failed = |e: pullback_cpu::LlvmError| {
            Box::new(Diagnostic::global(Code::Unsupported, format!("no native code: {e}")).hint(HINT))
        };
        let machine = Llvm::find().map_err(failed)?.instructions();
        let text = text::Options { floats: ready.floats, ..text::Options::default() };
        let options = pullback_cpu::Options { cache: ready.cache.clone(), text, sizes, ..Default::default() };
        let threads = ready.threads.unwrap_or(options.threads);
        let options = pullback_cpu::Options { threads, relaxed: ready.relaxed, ..options };
        let module = pullback_cpu::scheduled(&module, machine, &options);
        let profiled = instrument(&module, function);
        let code = |m: &Module| pullback_cpu::Executable::new(m, &options).map(Runs::Llvm).map_err(failed);
        let (plain, clocked) = (code(&module)?, code(&profiled.module)?);
        Ok(Made { plain, function, profiled, clocked, threads: threads.get() })
    }
    /// A call without clocks.
    pub fn plain(
        &self,
        ready: &Ready,
        args: &[Value],
        options: &Options<'_>,
    ) -> Result<pullback_cpu::Outcome, RuntimeError> {
        let types = &ready.program.funs[ready.fun].results;
        self.plain.call(self.function, &with_types(ready, args)?, types, options)
    }
    /// The results of a call with clocks, and where its time went.
    pub fn look(
        &self,
        ready: &Ready,
        args: &[Value],
        options: &Options<'_>,
    ) -> Result<(Vec<Value>, Look), RuntimeError> {
        let mut types = ready.program.funs[ready.fun].results.clone();
        types.push(Type::array(Type::Scalar(Scalar::I64)));
        let began = Instant::now();
        let args = with_types(ready, args)?;
        let mut results = self.clocked.call(self.profiled.function, &args, &types, options)?.results;
        let seconds = began.elapsed().as_secs_f64();
        let Some(Value::Array(words)) = results.pop() else {
            let message = "a profile without times";
            return Err(RuntimeError::new(RuntimeErrorKind::Internal, message));
        };
        let number = |x: Value| if let Value::Scalar(s) = x { Some(s.as_i64()) } else { None };
        let words = words.elements().filter_map(number).collect();
        Ok((results, Look { began, seconds, words }))
    }
}

impl Runs {
    fn call(
        &self,
        function: FunctionId,
        args: &[(&Type, &Value)],
        types: &[Type],
        options: &Options<'_>,
    ) -> Result<pullback_cpu::Outcome, RuntimeError> {
        let limit = options.memory_limit;
        match self {
            Runs::Vm(code) => {
                let limits = Limits { cancel: options.cancel, work: None };
                code.session_within(limit).call(function, args, types, limits)
            }
            Runs::Llvm(code) => code.session_within(limit).call(function, args, types, options.cancel),
        }
    }
}

/// The part of the time from which on a construct is worth advice.
const MUCH: f64 = 0.1;

/// Seconds that a call should take if threads are to gain anything: some parts of loops.
const LITTLE: f64 = 100e-6;

impl Profile {
    /// The part of the time of a call that the rows after the first say something about, from 0 to 1.
    pub fn covered(&self) -> f64 {
        1.0 - self.rows[0].own_seconds / self.rows[0].seconds.max(f64::MIN_POSITIVE)
    }
    /// The part of a row in the time of a call.
    pub fn share(&self, row: &Row) -> f64 {
        row.own_seconds / self.rows[0].seconds.max(f64::MIN_POSITIVE)
    }
    /// What could be done, where it is known. `cache`: bytes of the last level, if they are known.
    pub fn advice(&self, cache: Option<u64>) -> Vec<Advice> {
        let mut out = Vec::new();
        for (row, r) in self.rows.iter().enumerate().skip(1) {
            let mut say = |found: String, remedy: &str| {
                out.push(Advice { row, found, remedy: remedy.to_string() });
            };
            let tape = if self.is_repeated(r) { 0 } else { r.tape_bytes };
            if let Some(cache) = cache.filter(|c| tape > *c) {
                say(
                    format!("its tape has {}, the last cache {}", mebibytes(tape), mebibytes(cache)),
                    "keep less: `#[recompute]` before what is cheap to compute, `#[tape(sqrt)]` before a loop",
                );
            }
            let (share, form) = (self.share(r), r.slot.form);
            let is_sum = r.slot.site.is_some_and(|s| s.construct == "sum of copies");
            if is_sum && share >= MUCH {
                say(
                    format!(
                        "threads add to copies of their own, and taking them together is {:.0} % of the time",
                        share * 100.0
                    ),
                    "try `--relaxed`, where threads add to one place, or fewer `--threads`",
                );
            } else if form.is_atomic && share >= MUCH {
                say(
                    "threads add to the same memory (`--relaxed`)".to_string(),
                    "compare with a run without `--relaxed`: copies cost less where they are small",
                );
            }
            if form.has_loops && !form.in_lanes && share >= MUCH && !is_sum {
                let why = match form {
                    _ if form.calls => "its loops call a function",
                    _ if form.has_whiles => "a loop inside ends when a condition says so",
                    _ if form.varies => "a loop inside has another number of iterations each time",
                    _ if form.in_order && !form.in_any_order => "its iterations follow each other",
                    _ => "lanes were expected to cost more than they gain",
                };
                let remedy = match form {
                    _ if form.calls => "write what is called without recursion",
                    _ if form.has_whiles || form.varies => {
                        "a loop with a known number of iterations and an `if` inside can be in lanes"
                    }
                    _ if form.in_order && !form.in_any_order => {
                        "where the order does not matter write `map`, `reduce` or `scan`; or do several of these loops in one `map`"
                    }
                    _ => "longer arrays, and elements that lie beside each other, are worth lanes",
                };
                say(format!("it has no loop in lanes: {why}"), remedy);
            }
        }
        let in_parts = self.rows.iter().any(|r| r.slot.form.in_parts);
        if self.threads > 1 && self.plain_seconds < LITTLE {
            let found = format!(
                "a call takes {:.1} µs: too little for {} threads",
                self.plain_seconds * 1e6,
                self.threads
            );
            let remedy = "do several in one call, with `map`, or give `--threads 1`".to_string();
            out.push(Advice { row: 0, found, remedy });
        } else if self.threads > 1 && !in_parts {
            let found = format!("no loop is shared by the {} threads", self.threads);
            let remedy = "loops of `map`, `reduce`, `scan` and the like are, where one run of them takes 10 µs or more: do more in one, or make one of them the outermost".to_string();
            out.push(Advice { row: 0, found, remedy });
        }
        out
    }
    /// Whether something is in a loop that was looked into, so that its bytes are those of several iterations.
    fn is_repeated(&self, row: &Row) -> bool {
        let around = |r: &&Row| r.slot.parent.map(|p| &self.rows[p]);
        let mut all = std::iter::successors(row.slot.parent.map(|p| &self.rows[p]), around);
        all.any(|r| r.slot.site.is_some_and(|s| s.construct == "loop"))
    }
}

fn mebibytes(n: u64) -> String {
    format!("{:.1} MiB", n as f64 / (1 << 20) as f64)
}

/// Bytes of the last level of the caches of this machine; `None` if the system does not say.
pub fn last_cache() -> Option<u64> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("size")).ok()?;
        let number: u64 = text.trim().trim_end_matches(['K', 'M']).parse().ok()?;
        Some(match text.trim().chars().last() {
            Some('K') => number << 10,
            Some('M') => number << 20,
            _ => number,
        })
    };
    folder.filter_map(|entry| size(entry.ok()?)).max()
}

/// The sweep that work belongs to as a word: `primal`, `reverse` or `both`.
pub fn sweep(slot: &Slot) -> &'static str {
    match slot.sweep {
        Sweep::Primal => "primal",
        Sweep::Reverse => "reverse",
        Sweep::Both => "both",
    }
}
