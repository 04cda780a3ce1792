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

/// `log (2^k c) = main + rest`, where `main` is exact, and the remainder `r`.
struct Reduced<L: Lanes> {
    main: L::F,
    rest: L::F,
    r: Pair<L>,
}

/// The reduction of positive finite `x`; with a second part only if `x` is not subnormal.
#[inline(always)]
fn reduce<L: Lanes>(cx: &L, x: Argument<L>) -> Reduced<L> {
    let hi = match x {
        Argument::Float(x) => x,
        Argument::Pair(x) => x.hi,
    };
    let is_subnormal = cx.lt(hi, cx.float(f64::MIN_POSITIVE));
    let normal = cx.select(is_subnormal, cx.mul(hi, cx.float(TWO_54)), hi);
    let bits = cx.bits(normal);
    let above = cx.int_sub(bits, cx.int(FIRST));
    // The exponent plus 1024, so that it is not negative.
    let exponent = cx.shift_right(cx.int_add(above, cx.int(1024 << 52)), 52);
    let correction = cx.select(is_subnormal, cx.float(1024.0 + 54.0), cx.float(1024.0));
    let k = cx.sub(cx.float_of_natural(exponent), correction);
    let mantissa = cx.float_of_bits(cx.int_sub(bits, cx.int_and(above, cx.int(-1 << 52))));
    let index = cx.shift_right(above, 48);
    let reciprocal = cx.table(&RECIPROCALS, index);
    let ratio = pair::product(cx, mantissa, reciprocal);
    let r_lo = match x {
        Argument::Float(_) => ratio.lo,
        Argument::Pair(x) => {
            // 2^(1-k), which is 0 for the largest numbers, whose second part does not count.
            let unscale = cx.power_of_two(cx.int_sub(cx.int(1024 + 1), exponent));
            let mantissa_rest = cx.mul(cx.mul(x.lo, unscale), cx.float(0.5));
            cx.fma(mantissa_rest, reciprocal, ratio.lo)
        }
    };
    Reduced {
        main: cx.fma(k, cx.float(LN2.0), cx.table(&LOGS, index)),
        rest: cx.fma(k, cx.float(LN2.1), cx.table(&LOGS_REST, index)),
        r: ordered_sum(cx, cx.sub(ratio.hi, cx.float(1.0)), r_lo),
    }
}

const TWO_54: f64 = 18_014_398_509_481_984.0;

/// The logarithm of positive finite `x`, with half a unit in the last place and little more.
#[inline(always)]
fn log_rounded<L: Lanes>(cx: &L, x: Argument<L>) -> L::F {
    let Reduced { main, rest, r } = reduce(cx, x);
    let start = ordered_sum(cx, main, r.hi);
    let q = cx.fma(r.hi, polynomial(cx, r.hi, &LOG_SHORT), cx.float(-0.5));
    let tail = cx.fma(cx.mul(r.hi, r.hi), q, cx.add(r.lo, rest));
    cx.add(start.hi, cx.add(start.lo, tail))
}

/// The logarithm of positive finite `x` with a relative error of 2^-63.
#[inline(always)]
pub(crate) fn log_pair<L: Lanes>(cx: &L, x: Argument<L>) -> Pair<L> {
    let Reduced { main, rest, r } = reduce(cx, x);
    let first = ordered_sum(cx, main, r.hi);
    let square = pair::product(cx, r.hi, r.hi);
    let minus_half = cx.float(-0.5);
    let second = ordered_sum(cx, first.hi, cx.mul(square.hi, minus_half));
    let cube = cx.mul(square.hi, r.hi);
    let mut tail = cx.fma(cube, polynomial(cx, r.hi, &LOG_LONG), rest);
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
    with_specials(cx, x, log_rounded(cx, Argument::Float(x)))
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
    let result = with_specials(cx, shifted.hi, log_rounded(cx, Argument::Pair(shifted)));
    // The sign of zero.
    cx.select(cx.eq(x, cx.float(0.0)), x, result)
}
