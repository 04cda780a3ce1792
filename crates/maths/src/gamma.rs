//! `lgamma`: the logarithm of the absolute value of the gamma function.
//!
//! Method: from 8 on Stirling's series, whose rest is a minimax polynomial. Below, `a = 2 + s + n` with |s| <= 1/2, so
//! that `lgamma a` is a polynomial in `s` and the logarithm of the product of the steps: exact near the zeros 1 and 2.
//! Both take one logarithm, as pairs. Negative arguments by reflection (Abramowitz and Stegun, 6.1.17).

use crate::circular::sine_and_cosine;
use crate::coefficients::{HALF_LN_TWO_PI, LGAMMA, LGAMMA_0, LGAMMA_1, LN_PI, PI, STIRLING};
use crate::lanes::Lanes;
use crate::logarithm::{Argument, log_pair};
use crate::pair::{self, Pair, constant, ordered_sum, plus, polynomial, sum, times_float};

/// From here on Stirling's series.
const LARGE: f64 = 8.0;

/// The largest argument whose value is finite.
const LARGEST: f64 = 2.559_983_327_851_638_3e305;

/// `lgamma a` for `a >= 8`, given the logarithm of `a`.
#[inline(always)]
fn stirling<L: Lanes>(cx: &L, a: L::F, log: Pair<L>) -> Pair<L> {
    let inverse = cx.div(cx.float(1.0), a);
    let series = cx.mul(inverse, polynomial(cx, cx.mul(inverse, inverse), &STIRLING));
    // (a - 1/2) (log a - 1) + (log (2 pi) - 1) / 2 + series
    let less_1 = plus(cx, log, constant(cx, (-1.0, 0.0)));
    let main = pair::times(cx, sum(cx, a, cx.float(-0.5)), less_1);
    let rest = plus(cx, constant(cx, HALF_LN_TWO_PI), Pair { hi: cx.float(-0.5), lo: series });
    plus(cx, main, rest)
}

/// `lgamma a` for `a > 0`.
#[inline(always)]
fn positive<L: Lanes>(cx: &L, a: L::F) -> Pair<L> {
    let (zero, one) = (cx.float(0.0), cx.float(1.0));
    let is_large = cx.le(cx.float(LARGE), a);
    // The number of steps down to [3/2, 5/2], negative if they go up.
    let n = cx.round(cx.sub(cx.min(cx.float(LARGE), a), cx.float(2.0)));
    let mut steps = Pair { hi: one, lo: zero };
    for i in 1..=6 {
        let factor = cx.select(cx.le(cx.float(f64::from(i)), n), cx.sub(a, cx.float(f64::from(i))), one);
        steps = times_float(cx, steps, factor);
    }
    // Up to two steps up: a, or a (a + 1).
    let next = sum(cx, a, one);
    let goes_up = cx.lt(n, zero);
    let twice = cx.lt(n, cx.float(-1.5));
    let second = pair::choice(cx, twice, next, constant(cx, (1.0, 0.0)));
    let up = pair::times(cx, second, Pair { hi: a, lo: zero });
    let steps = pair::choice(cx, goes_up, up, steps);
    let argument = pair::choice(cx, is_large, Pair { hi: a, lo: zero }, steps);
    let log = log_pair(cx, Argument::Pair(argument));
    // s = a - 2 - n, a pair where a is below 1.
    let shift = cx.add(n, cx.float(2.0));
    let s = sum(cx, cx.neg(shift), a);
    let curve = cx.mul(s.hi, polynomial(cx, s.hi, &LGAMMA));
    let slope = ordered_sum(cx, cx.float(LGAMMA_1.0), curve);
    let slope = Pair { hi: slope.hi, lo: cx.add(slope.lo, cx.float(LGAMMA_1.1)) };
    let linear = times_float(cx, slope, s.hi);
    let factor = ordered_sum(cx, cx.float(LGAMMA_0.0), linear.hi);
    let factor = Pair { hi: factor.hi, lo: cx.add(factor.lo, cx.add(linear.lo, cx.float(LGAMMA_0.1))) };
    let near_two = pair::times(cx, factor, s);
    let signed = pair::choice(cx, goes_up, pair::negated(cx, log), log);
    let small = plus(cx, near_two, signed);
    pair::choice(cx, is_large, stirling(cx, a, log), small)
}

/// `log |sin (pi a)|` for `a > 0` that is no whole number.
#[inline(always)]
fn log_of_sine<L: Lanes>(cx: &L, a: L::F) -> Pair<L> {
    let distance = cx.abs(cx.sub(a, cx.round(a)));
    let is_far = cx.lt(cx.float(0.25), distance);
    let within = cx.select(is_far, cx.sub(cx.float(0.5), distance), distance);
    let (sine, cosine) = sine_and_cosine(cx, times_float(cx, constant(cx, PI), within));
    let sine = pair::normalised(cx, pair::choice(cx, is_far, cosine, sine));
    log_pair(cx, Argument::Pair(sine))
}

/// The logarithm of the absolute value of the gamma function.
#[inline(always)]
pub(crate) fn lgamma<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let (zero, infinity) = (cx.float(0.0), cx.float(f64::INFINITY));
    let size = cx.abs(x);
    let value = positive(cx, size);
    // Next to 0 the sign makes no difference, and the sine would be subnormal.
    let is_reflected = cx.lt(x, cx.float(-1e-30));
    let [hi, lo] = cx.rarely(is_reflected, [value.hi, value.lo], || {
        // lgamma (-a) = log pi - log |sin (pi a)| - log a - lgamma a
        let logs = plus(cx, log_of_sine(cx, size), log_pair(cx, Argument::Float(size)));
        let reflected = plus(cx, constant(cx, LN_PI), pair::negated(cx, plus(cx, logs, value)));
        [reflected.hi, reflected.lo]
    });
    let result = cx.add(hi, lo);
    let is_pole = cx.both(cx.le(x, zero), cx.eq(cx.round(x), x));
    let is_infinite = cx.either(is_pole, cx.lt(cx.float(LARGEST), size));
    let result = cx.select(is_infinite, infinity, result);
    cx.select(cx.is_nan(x), x, result)
}
