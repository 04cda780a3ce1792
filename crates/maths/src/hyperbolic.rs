//! `sinh`, `cosh`, `tanh`, and their inverses.
//!
//! Method: with `a = |x| = k log 2 / 16 + r` as for the exponential function, the addition theorems give
//! `sinh a = S cosh r + C sinh r` and `cosh a = C cosh r + S sinh r`, where `S` and `C` are those of `k log 2 / 16`,
//! from the table of roots of 2 read at `k` and at `-k`. There is no cancellation and no division: at `k = 0`, `S = 0`.

use crate::coefficients::{COSH, LN2, POWERS, POWERS_REST, SINH, SIXTEEN_OVER_LN2};
use crate::exponential::{SHIFT, Steps, remainder, sixteenths, steps};
use crate::lanes::Lanes;
use crate::logarithm::{Argument, log_pair};
use crate::pair::{self, Pair, constant, ordered_sum, plus, polynomial, quotient, sum};
use crate::power::root;

/// `2^-down` times `sinh a` and `cosh a`, for `0 <= a <= 711`; the second parts are not small.
#[inline(always)]
fn sinh_and_cosh<L: Lanes>(cx: &L, a: L::F, down: i64) -> (Pair<L>, Pair<L>) {
    let Steps { k, bits } = steps(cx, a, SIXTEEN_OVER_LN2);
    let r = remainder(cx, Pair { hi: a, lo: cx.float(0.0) }, k);
    let square = cx.mul(r.hi, r.hi);
    let sinh_r = cx.add(r.hi, cx.fma(cx.mul(r.hi, square), polynomial(cx, square, &SINH), r.lo));
    let cosh_r_less_1 = cx.mul(square, polynomial(cx, square, &COSH));
    // The bits of SHIFT - k.
    let minus = cx.int_sub(cx.int(SHIFT.to_bits().cast_signed().wrapping_mul(2)), bits);
    let down = cx.int(down + 1);
    let up_scale = cx.power_of_two(cx.int_sub(sixteenths(cx, bits), down));
    // Beyond the range of the power of two it is anything: nothing is left of e^-a there.
    let down_scale = cx.power_of_two(cx.int_sub(sixteenths(cx, minus), down));
    let down_scale = cx.select(cx.lt(a, cx.float(40.0)), down_scale, cx.float(0.0));
    let growing = cx.mul(cx.table(&POWERS, bits), up_scale);
    let shrinking = cx.mul(cx.table(&POWERS, minus), down_scale);
    let growing_rest = cx.mul(cx.table(&POWERS_REST, bits), up_scale);
    let shrinking_rest = cx.mul(cx.table(&POWERS_REST, minus), down_scale);
    let s = ordered_sum(cx, growing, cx.neg(shrinking));
    let c = ordered_sum(cx, growing, shrinking);
    let s_lo = cx.add(s.lo, cx.sub(growing_rest, shrinking_rest));
    let c_lo = cx.add(c.lo, cx.add(growing_rest, shrinking_rest));
    let sinh_tail = cx.fma(s.hi, cosh_r_less_1, cx.fma(c_lo, sinh_r, s_lo));
    let cosh_tail = cx.fma(c.hi, cosh_r_less_1, cx.fma(s_lo, sinh_r, c_lo));
    (
        Pair { hi: s.hi, lo: cx.fma(c.hi, sinh_r, sinh_tail) },
        Pair { hi: c.hi, lo: cx.fma(s.hi, sinh_r, cosh_tail) },
    )
}

/// What the power of two is kept below its true size, so that it does not overflow before the result does.
const DOWN: i64 = 2;

/// Beyond this both overflow.
const LARGEST: f64 = 711.0;

/// The hyperbolic sine.
#[inline(always)]
pub(crate) fn sinh<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let size = cx.abs(x);
    let (sinh, _) = sinh_and_cosh(cx, cx.min(cx.float(LARGEST), size), DOWN);
    let result = cx.mul(pair::rounded(cx, sinh), cx.float(4.0));
    cx.select(cx.lt(size, cx.float(1e-8)), x, cx.flip_sign(result, cx.bits(x)))
}

/// The hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let (_, cosh) = sinh_and_cosh(cx, cx.min(cx.float(LARGEST), cx.abs(x)), DOWN);
    cx.mul(pair::rounded(cx, cosh), cx.float(4.0))
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let (sinh, cosh) = sinh_and_cosh(cx, cx.min(cx.float(22.0), cx.abs(x)), 0);
    let ratio = quotient(cx, pair::normalised(cx, sinh), pair::normalised(cx, cosh));
    cx.flip_sign(pair::rounded(cx, ratio), cx.bits(x))
}

/// `log (a + root)`, or `log (2 a)` where `a` is so large that there is no difference.
#[inline(always)]
fn log_of_sum<L: Lanes>(cx: &L, a: L::F, root: Pair<L>) -> L::F {
    let is_large = cx.lt(cx.float(1e9), a);
    let main = sum(cx, a, root.hi);
    let near = ordered_sum(cx, main.hi, cx.add(main.lo, root.lo));
    let far = Pair { hi: a, lo: cx.float(0.0) };
    let log = log_pair(cx, Argument::Pair(pair::choice(cx, is_large, far, near)));
    pair::rounded(cx, pair::choice(cx, is_large, plus(cx, log, constant(cx, LN2)), log))
}

/// The root of `a^2 + one`, for `a` up to 1e9 (bounded by that).
#[inline(always)]
fn root_of_square_plus<L: Lanes>(cx: &L, a: L::F, one: f64) -> Pair<L> {
    let a = cx.min(cx.float(1e9), a);
    root(cx, plus(cx, pair::product(cx, a, a), constant(cx, (one, 0.0))))
}

/// The inverse of the hyperbolic sine.
#[inline(always)]
pub(crate) fn asinh<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let size = cx.abs(x);
    let result = log_of_sum(cx, size, root_of_square_plus(cx, size, 1.0));
    let result = cx.flip_sign(result, cx.bits(x));
    let is_usual = cx.both(cx.le(cx.float(1e-9), size), cx.lt(size, cx.float(f64::INFINITY)));
    cx.select(is_usual, result, x)
}

/// The inverse of the hyperbolic cosine.
#[inline(always)]
pub(crate) fn acosh<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let result = log_of_sum(cx, x, root_of_square_plus(cx, x, -1.0));
    let result = cx.select(cx.lt(x, cx.float(1.0)), cx.float(f64::NAN), result);
    cx.select(cx.lt(x, cx.float(f64::INFINITY)), result, x)
}

/// The inverse of the hyperbolic tangent: half the logarithm of `(1 + a) / (1 - a)`.
#[inline(always)]
pub(crate) fn atanh<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let size = cx.abs(x);
    let one = cx.float(1.0);
    let ratio = quotient(cx, sum(cx, one, size), sum(cx, one, cx.neg(size)));
    let ratio = ordered_sum(cx, ratio.hi, ratio.lo);
    let log = log_pair(cx, Argument::Pair(ratio));
    let result = cx.mul(cx.float(0.5), pair::rounded(cx, log));
    let result = cx.select(cx.lt(size, cx.float(1e-9)), size, result);
    let result = cx.select(cx.eq(size, one), cx.float(f64::INFINITY), result);
    let result = cx.select(cx.le(size, one), result, cx.float(f64::NAN));
    cx.flip_sign(result, cx.bits(x))
}
