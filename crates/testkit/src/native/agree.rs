//! When two results are the same.

use super::{Run, twins};
use crate::rng::Rng;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{Program, Type, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_interp::dual::with_floats;

/// Floats differ by at most this part of the largest one beside them. A sum of some thousand terms of one size errs by about so
/// much of it when each term changes in its last bits, which is what contraction and other functions do.
pub const ROUNDING: f64 = 1e-11;
/// The same where sums are taken in the order of the source.
const ROUNDING_IN_ORDER: f64 = 1e-12;
/// The same in programs with single precision.
const ROUNDING_SINGLE: f64 = 1e-5;

pub(super) fn rounding(program: &Program, in_order: bool) -> f64 {
    let single = program.vars.iter().any(|v| *v.ty.base() == Type::F32);
    match (single, in_order) {
        (true, _) => ROUNDING_SINGLE,
        (false, true) => ROUNDING_IN_ORDER,
        (false, false) => ROUNDING,
    }
}

/// Equal bits (any NaN for a NaN). Arrays without elements may differ in their other sizes.
pub fn same(a: &Value, b: &Value) -> bool {
    near(a, b, 0.0)
}

/// Equal up to rounding: floats of an array, or of a tuple, differ by at most this part of the largest one there, or of 1.
pub fn near(a: &Value, b: &Value, rounding: f64) -> bool {
    within(a, b, rounding, 1.0)
}

fn within(a: &Value, b: &Value, rounding: f64, largest: f64) -> bool {
    let all = |a: &[Value], b: &[Value]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| within(a, b, rounding, 1.0))
    };
    match (a, b) {
        (Value::Array(x), Value::Array(y)) => {
            let floats = a.floats().into_iter().filter(|x| x.is_finite());
            let largest = floats.map(f64::abs).fold(largest, f64::max);
            (x.shape == y.shape || (x.count() == 0 && y.count() == 0))
                && x.elements().zip(y.elements()).all(|(a, b)| within(&a, &b, rounding, largest))
        }
        (Value::Tuple(a), Value::Tuple(b)) => all(a, b),
        (Value::Sum(j, a), Value::Sum(k, b)) => j == k && all(a, b),
        (Value::Scalar(x), Value::Scalar(y)) => {
            let (p, q) = (x.as_f64(), y.as_f64());
            let is_near = || p.is_finite() && (p - q).abs() <= rounding * largest.max(p.abs());
            x == y || (p.is_nan() && q.is_nan()) || (x.scalar().is_float() && is_near())
        }
        _ => false,
    }
}

pub(super) fn equal_errors(a: &RuntimeError, b: &RuntimeError) -> bool {
    (&a.kind, &a.message) == (&b.kind, &b.message)
}

/// Whether it is what a size that got lost leads to.
pub(super) fn is_lost_size(e: &RuntimeError) -> bool {
    matches!(e.kind, RuntimeErrorKind::ShapeMismatch | RuntimeErrorKind::OutOfBounds)
}

/// How many floats differ, and the one that differs most, to be read before the whole results.
pub(super) fn differences(expected: &[Value], found: &[Value]) -> String {
    let floats = |values: &[Value]| -> Vec<(usize, usize, f64)> {
        let of_result =
            |(k, v): (usize, &Value)| v.floats().into_iter().enumerate().map(move |(j, x)| (k, j, x));
        values.iter().enumerate().flat_map(of_result).collect()
    };
    let (expected, found) = (floats(expected), floats(found));
    let differ = |(a, b): &(&(usize, usize, f64), &(usize, usize, f64))| a.2.to_bits() != b.2.to_bits();
    let wrong: Vec<_> = expected.iter().zip(&found).filter(differ).collect();
    let far = |x: f64, y: f64| (x - y).abs() / x.abs().max(f64::MIN_POSITIVE);
    let most = wrong.iter().max_by(|(a, b), (c, d)| far(a.2, b.2).total_cmp(&far(c.2, d.2)));
    let Some(((k, j, x), (_, _, y))) = most else { return String::new() };
    format!("{} floats differ, most number {j} of result {k}, {y:e} instead of {x:e}: ", wrong.len())
}

/// How far results are from the expected ones: the least power of ten times a hundredth of `rounding` up to which they are equal,
/// at most [`UNRELATED`] where they are of the same form.
fn deviation(expected: &[Value], other: &[Value], rounding: f64) -> f64 {
    let mut allowed = rounding / WORSE;
    while allowed < HOPELESS && !expected.iter().zip(other).all(|(a, b)| near(a, b, allowed)) {
        allowed *= 10.0;
    }
    if allowed < HOPELESS { allowed.min(UNRELATED) } else { HOPELESS }
}

/// Floats that differ by all of their size have nothing to do with each other; being further away says nothing more.
const UNRELATED: f64 = 1.0;
/// A deviation of values of another form, of infinities and of errors.
const HOPELESS: f64 = 1e30;
/// What was found may be so many times further away than what the interpreter gives.
const WORSE: f64 = 100.0;

/// Whether the interpreter's own results are about as far away as what was found (`None`: an error), when it adds in another
/// order, or when the arguments or the results of functions change in their last bits.
pub fn is_unstable(
    run: &Run,
    args: &[Value],
    expected: &[Value],
    found: Option<&[Value]>,
    rounding: f64,
) -> bool {
    let code = Compiled::new(&run.program);
    let far = |results: Option<&[Value]>| results.map_or(HOPELESS, |r| deviation(expected, r, rounding));
    let enough = far(found) / WORSE;
    let differs = |args: &[Value], schedule_seed| {
        let options = Options { schedule_seed, ..Options::default() };
        let other = code.run(run.fun, args, &options).ok();
        far(other.as_ref().map(|o| &o.results[..])) >= enough
    };
    let step = if rounding == ROUNDING_SINGLE { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let moved = |seed: u64| {
        let mut random = Rng::new(seed);
        let mut floats =
            args.iter().flat_map(Value::floats).map(|x| x * (1.0 + 2.0 * step * random.signed()));
        args.iter().map(|a| with_floats(a, &mut floats)).collect::<Vec<_>>()
    };
    let disturbed = || {
        let other = Compiled::new(&twins::disturbed(&run.program)?).run(run.fun, args, &Options::default());
        Some(far(other.ok().as_ref().map(|o| &o.results[..])) >= enough)
    };
    (0..8).any(|seed| differs(args, Some(seed)))
        || (0..8).any(|seed| differs(&moved(seed), None))
        || disturbed().unwrap_or(false)
}
