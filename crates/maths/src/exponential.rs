//! `exp`, `exp2`, `expm1` and the logistic function.
//!
//! Method (P. T. P. Tang, "Table-driven implementation of the exponential function", 1989): the argument is `k` steps of
//! `log 2 / 16` and a rest `r`, so `e^x = 2^(k / 16) e^r`, with the sixteen roots of 2 in a table. A float of the size of
//! [`SHIFT`] has no digits behind the point, so that adding it rounds, and leaves `k` in the low bits.

use crate::coefficients::{EXP_LONG, EXP_SHORT, EXP2, LN2_OVER_16, POWERS, POWERS_REST, SIXTEEN_OVER_LN2};
use crate::lanes::Lanes;
use crate::pair::{self, Pair, ordered_sum, polynomial};

/// `1.5 * 2^52`: its own bits end with 51 zeros.
pub(crate) const SHIFT: f64 = 6_755_399_441_055_744.0;

/// A number of steps: as float, and as the bits of `SHIFT + k`.
pub(crate) struct Steps<L: Lanes> {
    pub(crate) k: L::F,
    pub(crate) bits: L::I,
}

/// The whole number nearest to `x * by`, for results below 2^50.
#[inline(always)]
pub(crate) fn steps<L: Lanes>(cx: &L, x: L::F, by: f64) -> Steps<L> {
    let shifted = cx.fma(x, cx.float(by), cx.float(SHIFT));
    Steps { k: cx.sub(shifted, cx.float(SHIFT)), bits: cx.bits(shifted) }
}

/// The whole part of `k / 16`, rounded down, for the bits of `SHIFT + k`.
#[inline(always)]
pub(crate) fn sixteenths<L: Lanes>(cx: &L, bits: L::I) -> L::I {
    cx.int_sub(cx.shift_right(bits, 4), cx.int(SHIFT.to_bits().cast_signed() >> 4))
}

/// `x - k log 2 / 16`, as a pair; the product with the first part and the first difference are exact.
#[inline(always)]
pub(crate) fn remainder<L: Lanes>(cx: &L, x: Pair<L>, k: L::F) -> Pair<L> {
    let first = cx.fnma(k, cx.float(LN2_OVER_16.0), x.hi);
    let second = cx.fnma(k, cx.float(LN2_OVER_16.1), x.lo);
    ordered_sum(cx, first, second)
}

/// `(hi + lo) 2^n`.
pub(crate) struct Scaled<L: Lanes> {
    pub(crate) value: Pair<L>,
    pub(crate) n: L::I,
}

/// `e^x` with a relative error of 2^-58, for |x| <= 1000; the second part is up to a fortieth of the first.
#[inline(always)]
pub(crate) fn exp_pair<L: Lanes>(cx: &L, x: Pair<L>) -> Scaled<L> {
    let Steps { k, bits } = steps(cx, x.hi, SIXTEEN_OVER_LN2);
    let r = remainder(cx, x, k);
    let q = polynomial(cx, r.hi, &EXP_LONG);
    let p = cx.add(r.hi, cx.fma(cx.mul(r.hi, r.hi), q, r.lo));
    let power = cx.table(&POWERS, bits);
    let lo = cx.fma(power, p, cx.table(&POWERS_REST, bits));
    Scaled { value: Pair { hi: power, lo }, n: sixteenths(cx, bits) }
}

/// The exponential function.
#[inline(always)]
pub(crate) fn exp<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let x = cx.max(cx.float(-746.0), cx.min(cx.float(710.0), x));
    let Steps { k, bits } = steps(cx, x, SIXTEEN_OVER_LN2);
    let first = cx.fnma(k, cx.float(LN2_OVER_16.0), x);
    let r = cx.fnma(k, cx.float(LN2_OVER_16.1), first);
    let p = cx.fma(cx.mul(r, r), polynomial(cx, r, &EXP_SHORT), r);
    let power = cx.table(&POWERS, bits);
    cx.scale(cx.fma(power, p, power), sixteenths(cx, bits))
}

/// `2^x`.
#[inline(always)]
pub(crate) fn exp2<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let x = cx.max(cx.float(-1080.0), cx.min(cx.float(1030.0), x));
    let Steps { k, bits } = steps(cx, x, 16.0);
    let f = cx.fnma(k, cx.float(1.0 / 16.0), x);
    let p = cx.mul(f, polynomial(cx, f, &EXP2));
    let power = cx.table(&POWERS, bits);
    cx.scale(cx.fma(power, p, power), sixteenths(cx, bits))
}

/// `e^x - 1`.
///
/// Half of it is computed, so that the power of two does not overflow before the result does.
#[inline(always)]
pub(crate) fn expm1<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let bounded = cx.max(cx.float(-50.0), cx.min(cx.float(709.9), x));
    let Steps { k, bits } = steps(cx, bounded, SIXTEEN_OVER_LN2);
    let r = remainder(cx, Pair { hi: bounded, lo: cx.float(0.0) }, k);
    let p = cx.add(r.hi, cx.fma(cx.mul(r.hi, r.hi), polynomial(cx, r.hi, &EXP_LONG), r.lo));
    let half = cx.power_of_two(cx.int_sub(sixteenths(cx, bits), cx.int(1)));
    let power = cx.mul(cx.table(&POWERS, bits), half);
    let rest = cx.mul(cx.table(&POWERS_REST, bits), half);
    let main = pair::sum(cx, power, cx.float(-0.5));
    let result = cx.add(main.hi, cx.fma(power, p, cx.add(main.lo, rest)));
    let tiny = cx.lt(cx.abs(x), cx.float(1e-17));
    cx.select(tiny, x, cx.mul(result, cx.float(2.0)))
}

/// `1 / (1 + e^-x)`: with `e = e^-|x|` it is `1 / (1 + e)`, or `e / (1 + e)` for negative `x`.
#[inline(always)]
pub(crate) fn sigmoid<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let size = cx.min(cx.float(746.0), cx.abs(x));
    let power = exp_pair(cx, Pair { hi: cx.neg(size), lo: cx.float(0.0) });
    let e = cx.scale(pair::rounded(cx, power.value), power.n);
    let one = cx.float(1.0);
    let is_negative = cx.lt(x, cx.float(0.0));
    let value = pair::normalised(cx, power.value);
    let top = pair::choice(cx, is_negative, value, pair::constant(cx, (1.0, 0.0)));
    let ratio = pair::rounded(cx, pair::quotient(cx, top, ordered_sum(cx, one, e)));
    let result = cx.select(is_negative, cx.scale(ratio, power.n), ratio);
    cx.select(cx.is_nan(x), x, result)
}
