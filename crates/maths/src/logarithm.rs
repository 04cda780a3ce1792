//! `log`, `log2`, `log10`, `log1p`.
//!
//! Method (Tang, "Table-driven implementation of the logarithm function", 1990): `x = 2^k m` with `m` about 1, and `c`
//! the table's number next to `m`; then `log x = k log 2 + log c + log (1 + r)` with `r = m / c - 1`, which is small
//! and, by the fused multiply-add, exact as a pair. The interval around 1 has `c = 1`: no cancellation near the zero.

use crate::coefficients::{LN2, LOG_LONG, LOG_SHORT, LOG2_E, LOG10_E, LOGS, LOGS_REST, RECIPROCALS};
use crate::lanes::Lanes;
use crate::pair::{self, Pair, ordered_sum, polynomial};

/// The bits of 45/64, where the first interval of mantissas begins.
const FIRST: i64 = 0x3fe6_8000_0000_0000;

/// What a logarithm is taken of.
pub(crate) enum Argument<L: Lanes> {
    Float(L::F),
    Pair(Pair<L>),
}

/// `x = 2^k m`, and `log (2^k c) = main + rest`, where `main` is exact; the reciprocal is that of `c`.
struct Reduced<L: Lanes> {
    /// `k + 1024`
    exponent: L::I,
    mantissa: L::F,
    reciprocal: L::F,
    main: L::F,
    rest: L::F,
}

/// The reduction of positive finite `x`.
#[inline(always)]
fn reduce<L: Lanes>(cx: &L, x: L::F) -> Reduced<L> {
    let is_subnormal = cx.lt(x, cx.float(f64::MIN_POSITIVE));
    let normal = cx.select(is_subnormal, cx.mul(x, cx.float(TWO_54)), x);
    let bits = cx.bits(normal);
    let above = cx.int_sub(bits, cx.int(FIRST));
    // The offset keeps it from being negative.
    let exponent = cx.shift_right(cx.int_add(above, cx.int(1024 << 52)), 52);
    let correction = cx.select(is_subnormal, cx.float(1024.0 + 54.0), cx.float(1024.0));
    let k = cx.sub(cx.float_of_natural(exponent), correction);
    let index = cx.shift_right(above, 48);
    Reduced {
        exponent,
        mantissa: cx.float_of_bits(cx.int_sub(bits, cx.int_and(above, cx.int(-1 << 52)))),
        reciprocal: cx.table(&RECIPROCALS, index),
        main: cx.fma(k, cx.float(LN2.0), cx.table(&LOGS, index)),
        rest: cx.fma(k, cx.float(LN2.1), cx.table(&LOGS_REST, index)),
    }
}

const TWO_54: f64 = 18_014_398_509_481_984.0;

/// `r = m / c - 1`, where `x` may have a second part if it is not subnormal.
#[inline(always)]
fn remainder<L: Lanes>(cx: &L, of: &Reduced<L>, second: Option<L::F>) -> Pair<L> {
    let ratio = pair::product(cx, of.mantissa, of.reciprocal);
    let lo = match second {
        None => ratio.lo,
        Some(second) => {
            // 2^(1-k), which is 0 for the largest numbers, whose second part does not count.
            let unscale = cx.power_of_two(cx.int_sub(cx.int(1024 + 1), of.exponent));
            let mantissa_rest = cx.mul(cx.mul(second, unscale), cx.float(0.5));
            cx.fma(mantissa_rest, of.reciprocal, ratio.lo)
        }
    };
    ordered_sum(cx, cx.sub(ratio.hi, cx.float(1.0)), lo)
}

/// `main + r.hi + tail`, where the tail is the small things and the powers of `r` from the second on.
#[inline(always)]
fn finish<L: Lanes>(cx: &L, main: L::F, r: L::F, small: L::F) -> L::F {
    let start = ordered_sum(cx, main, r);
    let q = cx.fma(r, polynomial(cx, r, &LOG_SHORT), cx.float(-0.5));
    let tail = cx.fma(cx.mul(r, r), q, small);
    cx.add(start.hi, cx.add(start.lo, tail))
}

/// The logarithm of positive finite `x` with a relative error of 2^-63.
#[inline(always)]
pub(crate) fn log_pair<L: Lanes>(cx: &L, x: Argument<L>) -> Pair<L> {
    let (hi, lo) = match x {
        Argument::Float(x) => (x, None),
        Argument::Pair(x) => (x.hi, Some(x.lo)),
    };
    let reduced = reduce(cx, hi);
    let r = remainder(cx, &reduced, lo);
    let first = ordered_sum(cx, reduced.main, r.hi);
    let square = pair::product(cx, r.hi, r.hi);
    let minus_half = cx.float(-0.5);
    let second = ordered_sum(cx, first.hi, cx.mul(square.hi, minus_half));
    let cube = cx.mul(square.hi, r.hi);
    let mut tail = cx.fma(cube, polynomial(cx, r.hi, &LOG_LONG), reduced.rest);
    tail = cx.add(tail, cx.fnma(r.hi, r.lo, cx.fma(square.lo, minus_half, r.lo)));
    tail = cx.add(tail, cx.add(first.lo, second.lo));
    ordered_sum(cx, second.hi, tail)
}

/// `result` where `x` is positive and finite; elsewhere what a logarithm is there.
#[inline(always)]
fn with_specials<L: Lanes>(cx: &L, x: L::F, result: L::F) -> L::F {
    // NaN and infinity are not below infinity.
    let result = cx.select(cx.lt(x, cx.float(f64::INFINITY)), result, x);
    let result = cx.select(cx.lt(x, cx.float(0.0)), cx.float(f64::NAN), result);
    cx.select(cx.eq(x, cx.float(0.0)), cx.float(f64::NEG_INFINITY), result)
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn log<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let reduced = reduce(cx, x);
    // Exact where it counts: in the interval around 1.
    let r = cx.fms(reduced.mantissa, reduced.reciprocal, cx.float(1.0));
    with_specials(cx, x, finish(cx, reduced.main, r, reduced.rest))
}

/// The logarithm to base 2.
#[inline(always)]
pub(crate) fn log2<L: Lanes>(cx: &L, x: L::F) -> L::F {
    to_base(cx, x, LOG2_E)
}

/// The logarithm to base 10.
#[inline(always)]
pub(crate) fn log10<L: Lanes>(cx: &L, x: L::F) -> L::F {
    to_base(cx, x, LOG10_E)
}

/// The natural logarithm times a constant.
#[inline(always)]
fn to_base<L: Lanes>(cx: &L, x: L::F, factor: (f64, f64)) -> L::F {
    let log = log_pair(cx, Argument::Float(x));
    let main = pair::product(cx, log.hi, cx.float(factor.0));
    let tail = cx.fma(log.hi, cx.float(factor.1), cx.fma(log.lo, cx.float(factor.0), main.lo));
    with_specials(cx, x, cx.add(main.hi, tail))
}

/// `log (1 + x)`.
#[inline(always)]
pub(crate) fn log1p<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let shifted = pair::sum(cx, cx.float(1.0), x);
    let reduced = reduce(cx, shifted.hi);
    let r = remainder(cx, &reduced, Some(shifted.lo));
    let result = finish(cx, reduced.main, r.hi, cx.add(r.lo, reduced.rest));
    let result = with_specials(cx, shifted.hi, result);
    // The sign of zero.
    cx.select(cx.eq(x, cx.float(0.0)), x, result)
}
