//! Native executors against the interpreter: random programs and their gradients, optimised or not, at awkward sizes, with
//! memory that holds no sensible numbers.
//!
//! What is compared, for each [`Way`] to run a program:
//! - where loops are as they were lowered, and functions those of the primitive table, every bit, and the text of errors; only sums
//!   through a rotated or reshaped view of an accumulator may be rounded otherwise (decision 10);
//! - else values up to rounding ([`ROUNDING`]), unless the interpreter itself gives other values when it adds in another order or
//!   its arguments or the results of functions change in their last bits: then the program decides nothing. Long sums in single precision may instead be near
//!   to what they are in double precision. Both have to stop, or none.
//!
//! Every program is run twice in one session: the second run finds what the first one left in memory, and gives the same bits.

mod agree;
mod cases;
pub mod soak;
pub mod twins;
mod ways;

pub use agree::{ROUNDING, is_unstable, near, same};
pub use cases::{Programs, Run, optimised_runs_of_case, runs_of_problem};
pub use ways::{Executable, Way};

use agree::{equal_errors, rounding};
use pullback_base::RuntimeErrorKind;
use pullback_core::Value;
use pullback_interp::core::{Compiled, Options};

/// What came of running a program one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The interpreter's bits, or its error.
    Bits,
    /// Its values up to rounding.
    Rounded,
    /// Other values, but the interpreter gives others too when it adds in another order.
    Unstable,
    /// The program has no kernel IR.
    Foreign,
    /// It stops where an array without elements has lost its inner sizes (decision 10).
    Lost,
    /// The interpreter would take too long, or more memory than it may: compiled code may need no memory where it does, and go on for
    /// minutes.
    Long,
    /// This machine has nothing that could run it.
    Skipped,
    /// It is wrong.
    Fails(String),
}

impl Verdict {
    /// One word.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Bits => "bits",
            Verdict::Rounded => "rounded",
            Verdict::Unstable => "unstable",
            Verdict::Foreign => "foreign",
            Verdict::Lost => "lost",
            Verdict::Long => "long",
            Verdict::Skipped => "skipped",
            Verdict::Fails(_) => "FAILS",
        }
    }
}

/// So many steps of the interpreter at most.
const STEPS: u64 = 3_000_000;

/// Compares a program with the interpreter, for all its arguments. The first of the verdicts that is the worst.
pub fn examine(run: &Run, way: Way) -> Verdict {
    let work = std::panic::AssertUnwindSafe(|| all_arguments(run, way));
    std::panic::catch_unwind(work).unwrap_or_else(|e| {
        let text = e.downcast_ref::<String>().map(String::as_str).or(e.downcast_ref::<&str>().copied());
        Verdict::Fails(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn all_arguments(run: &Run, way: Way) -> Verdict {
    let executable = match Executable::new(run, way) {
        Ok(executable) => executable,
        Err(verdict) => return verdict,
    };
    let verdicts = run.args.iter().map(|args| one(run, &executable, args));
    verdicts.max().unwrap_or(Verdict::Skipped)
}

/// Whether plain code gives the same bits as the interpreter once it takes long reductions together in one part: then it differed by the
/// brackets of sums only.
fn is_right_in_one_part(run: &Run, way: Way, args: &[Value], expected: &[Value]) -> bool {
    let Ok(executable) = Executable::in_one_part(run, way) else { return false };
    let Ok(Ok(found)) = executable.twice(args) else { return false };
    expected.iter().zip(&found).all(|(a, b)| same(a, b))
}

fn one(run: &Run, executable: &Executable<'_>, args: &[Value]) -> Verdict {
    let interpreter = Options { work_limit: STEPS, ..Options::default() };
    let expected = Compiled::new(&run.program).run(run.fun, args, &interpreter);
    if matches!(&expected, Err(e) if e.kind == RuntimeErrorKind::Limit) {
        return Verdict::Long;
    }
    let found = executable.twice(args);
    let found = match found {
        Ok(found) => found,
        Err(text) => return Verdict::Fails(text),
    };
    match (&expected, &found) {
        (Ok(expected), Ok(found)) => {
            let expected = &expected.results;
            if expected.iter().zip(found).all(|(a, b)| same(a, b)) {
                return Verdict::Bits;
            }
            let tolerance = rounding(&run.program, executable.way().is_plain());
            if expected.iter().zip(found).all(|(a, b)| near(a, b, tolerance)) {
                return Verdict::Rounded;
            }
            let doubles = || twins::run_in_double(&run.program, run.fun, args, &interpreter);
            let is_right = |exact: Vec<Value>| exact.iter().zip(found).all(|(a, b)| near(a, b, tolerance));
            if !executable.way().is_plain() && doubles().is_some_and(is_right) {
                return Verdict::Rounded;
            }
            if !executable.way().is_plain() && is_unstable(run, args, expected, Some(found), tolerance) {
                return Verdict::Unstable;
            }
            if executable.way().is_plain()
                && is_right_in_one_part(run, executable.way(), args, expected)
                && is_unstable(run, args, expected, Some(found), tolerance)
            {
                return Verdict::Unstable;
            }
            Verdict::Fails(format!(
                "{}expected {expected:?}\nfound {found:?}",
                agree::differences(expected, found)
            ))
        }
        (Err(expected), Err(found)) if executable.way().is_plain() && !equal_errors(expected, found) => {
            Verdict::Fails(format!("should stop with {:?}: {expected}\nfound {found:?}", expected.kind))
        }
        (Err(_), Err(_)) => Verdict::Bits,
        (Ok(_), Err(found)) if run.empties && agree::is_lost_size(found) => Verdict::Lost,
        (Ok(expected), Err(found)) => {
            if !executable.way().is_plain() && is_unstable(run, args, &expected.results, None, ROUNDING) {
                return Verdict::Unstable;
            }
            Verdict::Fails(format!("stopped: {:?}: {found}", found.kind))
        }
        (Err(expected), Ok(_)) if run.empties && agree::is_lost_size(expected) => Verdict::Lost,
        (Err(expected), Ok(found)) => {
            Verdict::Fails(format!("should stop with {:?}: {expected}\nfound {found:?}", expected.kind))
        }
    }
}
