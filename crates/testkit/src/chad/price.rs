//! What the theory costs: gradients of the problems by algorithms on lambda, above all Efficient CHAD on arrays, and by Fast CHAD, counted.

use crate::problems::{PROBLEMS, Problem, ones};
use pullback_ad::chad::d_arrays;
use pullback_base::Diagnostic;
use pullback_core::Value;
use pullback_driver::{Backend, EntryPoint, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::{Options, Outcome};
use std::num::NonZeroUsize;
use std::path::Path;

/// A problem at one size.
#[derive(Clone, Debug)]
pub struct Price {
    /// Value and gradient by both.
    pub results: [Vec<Value>; 2],
    /// Steps of the program on lambda, and of its value and gradient there.
    pub on_lambda: [u64; 2],
    /// The same on core, after all passes.
    pub on_core: [u64; 2],
}

/// A problem at one size, compiled, and run without its derivative.
pub(crate) struct Prepared {
    pub(crate) session: Session,
    entry: EntryPoint,
    wanted: Vec<bool>,
    pub(crate) args: Vec<Value>,
    /// With ones for cotangents.
    pub(crate) seeded: Vec<Value>,
    pub(crate) primal: Outcome,
}

fn shown(name: &str, d: &Diagnostic) -> ! {
    panic!("{name}: {}", d.message)
}

/// A problem, compiled, and what its derivatives are wanted of.
fn compiled(problem: &Problem) -> (Session, EntryPoint, Vec<bool>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text =
        std::fs::read_to_string(root.join(problem.file)).unwrap_or_else(|e| panic!("{}: {e}", problem.file));
    let session = Session::compile(problem.file, &text, Settings::default())
        .unwrap_or_else(|e| panic!("{}", e.render()));
    let entry = session.entry(Some(problem.entry)).unwrap_or_else(|d| shown(problem.name, &d));
    let wanted = session.select(&entry, &Wrt::parse(problem.wrt)).unwrap_or_else(|d| shown(problem.name, &d));
    (session, entry, wanted)
}

pub(crate) fn prepared(problem: &Problem, size: usize) -> Prepared {
    let (session, entry, wanted) = compiled(problem);
    let args = (problem.args)(size);
    let compiled = session.primal(&entry).unwrap_or_else(|d| shown(problem.name, &d));
    let primal =
        compiled.interpret(&args, &Options::default()).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    let seeded: Vec<Value> = args.iter().cloned().chain(ones(&primal.results)).collect();
    Prepared { session, entry, wanted, args, seeded, primal }
}

impl Prepared {
    pub(crate) fn derivative(&self) -> Result<pullback_driver::Ready, Diagnostic> {
        self.session.derivative(&self.entry, Kind::Vjp, &self.wanted, &mut |_, _| {})
    }
}

/// The costs of a problem by an algorithm on lambda; `Err`: why it does not take it.
///
/// # Panics
/// If the problem does not compile or run.
pub fn price(problem: &Problem, size: usize, algorithm: &str) -> Result<Price, Diagnostic> {
    let mut made = prepared(problem, size);
    let options = Options::default();
    let fast = made.derivative().unwrap_or_else(|d| shown(problem.name, &d));
    let fast = fast.interpret(&made.seeded, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    made.session.settings.choice.reverse = Some(algorithm.into());
    let compiled = made.derivative()?;
    let Some(derivative) = &compiled.on_lambda else { panic!("an algorithm of another kind") };
    let own = derivative.run_primal(&made.args, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    let chad = compiled.interpret(&made.seeded, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    Ok(Price {
        on_lambda: [own.counts.work, chad.counts.work],
        on_core: [made.primal.counts.work, fast.counts.work],
        results: [chad.results, fast.results],
    })
}

/// A gradient by an algorithm on lambda, lowered to core, and by Fast CHAD.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// Value and gradient by both.
    pub results: [Vec<Value>; 2],
    /// Steps of the program and of the lowered gradient in the interpreter of core, after all passes; zeros on other executors.
    pub work: [u64; 2],
    /// Seconds of the fastest of so many runs: the program, and its value and gradient by both.
    pub seconds: [f64; 3],
}

/// A problem and its gradients by an algorithm, lowered to core, and by Fast CHAD: derived once, for all sizes and executors.
#[allow(missing_debug_implementations, reason = "the problem is functions")]
pub struct Gradients<'a> {
    problem: &'a Problem,
    primal: Ready,
    fast: Ready,
    own: Ready,
}

impl Gradients<'_> {
    /// Derives them; `Err`: why the algorithm does not take the problem.
    ///
    /// # Panics
    /// If the problem does not compile.
    pub fn of<'a>(problem: &'a Problem, algorithm: &str) -> Result<Gradients<'a>, Diagnostic> {
        let (mut session, entry, wanted) = compiled(problem);
        session.settings.lowered = true;
        let derivative = |session: &Session| session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {});
        let (primal, fast) = (session.primal(&entry)?, derivative(&session)?);
        session.settings.choice.reverse = Some(algorithm.into());
        Ok(Gradients { problem, primal, fast, own: derivative(&session)? })
    }
    /// Both at one size, on this executor and so many threads; each is run once, and so many times more to be timed.
    ///
    /// # Panics
    /// If one of them does not run.
    pub fn priced(&self, size: usize, backend: Backend, threads: usize, runs: usize) -> Lowered {
        let args = (self.problem.args)(size);
        let run = |ready: &Ready, args: &[Value]| {
            let mut ready = Ready::new(ready.program.clone(), ready.fun, backend);
            ready.threads = NonZeroUsize::new(threads);
            let once = || {
                let out = ready.run(args, &Options::default());
                out.unwrap_or_else(|e| panic!("{}: {e}", self.problem.name))
            };
            let first = once();
            let seconds = (0..runs).map(|_| once().ran.seconds).fold(first.ran.seconds, f64::min);
            (first, seconds)
        };
        let (value, primal_seconds) = run(&self.primal, &args);
        let seeded: Vec<Value> = args.iter().cloned().chain(ones(&value.results)).collect();
        let (fast, fast_seconds) = run(&self.fast, &seeded);
        let (own, seconds) = run(&self.own, &seeded);
        Lowered {
            work: [value.counts.work, own.counts.work],
            seconds: [primal_seconds, seconds, fast_seconds],
            results: [own.results, fast.results],
        }
    }
}

/// How often compiled code runs to be timed.
const RUNS: usize = 5;

/// The table of times on one thread, as machine code where there is LLVM: how often the program's time the gradient takes, at these sizes.
pub fn times(sizes: [usize; 2], algorithm: &str) -> String {
    let mut out = format!(
        "{:<20} {:>6} {:>11} {:>12} {:>10}\n",
        "problem", "size", "program us", algorithm, "fast_chad"
    );
    for problem in PROBLEMS {
        let Ok(gradients) = Gradients::of(problem, algorithm) else { continue };
        for size in sizes {
            let [primal, chad, fast] = gradients.priced(size, Backend::Auto, 1, RUNS).seconds;
            out += &format!(
                "{:<20} {:>6} {:>11.2} {:>12.1} {:>10.1}\n",
                problem.name,
                size,
                primal * 1e6,
                chad / primal,
                fast / primal
            );
        }
    }
    out
}

/// The table for the book: how often the program's steps the gradient takes, at two sizes.
pub fn table() -> String {
    let header = ["problem", "size", "program", "chad-arrays", "", "lowered", "", "fast_chad", ""];
    let line = |cells: [&str; 9]| {
        let [name, size, steps, ratio, larger, lowered, both, fast, faster] = cells;
        let first = format!("{name:<20} {size:>6} {steps:>9} {ratio:>12} {larger:>6}");
        let line = format!("{first} {lowered:>9} {both:>6} {fast:>11} {faster:>6}");
        line.trim_end().to_string() + "\n"
    };
    let mut out = line(header);
    for problem in PROBLEMS {
        let lowered = Gradients::of(problem, d_arrays::ID);
        let both: [Result<_, Diagnostic>; 2] = SIZES.map(|n| {
            let lowered = lowered.as_ref().map_err(Clone::clone)?.priced(n, Backend::Interp, 1, 0);
            Ok((price(problem, n, d_arrays::ID)?, lowered))
        });
        let [small, large] = both;
        let ratio = |steps: [u64; 2]| format!("{:.1}", steps[1] as f64 / steps[0] as f64);
        out += &match (small, large) {
            (Ok((small, small_lowered)), Ok((large, large_lowered))) => line([
                problem.name,
                &SIZES.map(|n| n.to_string()).join(", "),
                &small.on_lambda[0].to_string(),
                &ratio(small.on_lambda),
                &ratio(large.on_lambda),
                &ratio(small_lowered.work),
                &ratio(large_lowered.work),
                &ratio(small.on_core),
                &ratio(large.on_core),
            ]),
            (Err(d), _) | (_, Err(d)) => {
                let why = d.message.split("differentiate ").nth(1).unwrap_or(&d.message);
                format!("{:<20} {}\n", problem.name, format_args!("not taken: {why}"))
            }
        };
    }
    out
}

/// The sizes of the table.
pub const SIZES: [usize; 2] = [8, 64];
