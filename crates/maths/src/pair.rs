//! Sums of two floats that are not evaluated: about twice the precision, where a function needs it.
//!
//! Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971; D. E. Knuth, TAOCP 2,
//! 4.2.2, theorem B (exact sum). With a fused multiply-add the error of a product is one operation.

use crate::lanes::Lanes;

/// The number `hi + lo`, where `lo` is small beside `hi`.
pub(crate) struct Pair<L: Lanes + ?Sized> {
    pub(crate) hi: L::F,
    pub(crate) lo: L::F,
}

impl<L: Lanes + ?Sized> Clone for Pair<L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Lanes + ?Sized> Copy for Pair<L> {}

/// A constant.
#[inline(always)]
pub(crate) fn constant<L: Lanes>(cx: &L, (hi, lo): (f64, f64)) -> Pair<L> {
    Pair { hi: cx.float(hi), lo: cx.float(lo) }
}

/// `a + b` exactly.
#[inline(always)]
pub(crate) fn sum<L: Lanes>(cx: &L, a: L::F, b: L::F) -> Pair<L> {
    let hi = cx.add(a, b);
    let from_b = cx.sub(hi, a);
    let from_a = cx.sub(hi, from_b);
    Pair { hi, lo: cx.add(cx.sub(a, from_a), cx.sub(b, from_b)) }
}

/// `a + b` exactly if `|a| >= |b|` or `a = 0`.
#[inline(always)]
pub(crate) fn ordered_sum<L: Lanes>(cx: &L, a: L::F, b: L::F) -> Pair<L> {
    let hi = cx.add(a, b);
    Pair { hi, lo: cx.add(cx.sub(a, hi), b) }
}

/// The same number with the second part as small as it can be.
#[inline(always)]
pub(crate) fn normalised<L: Lanes>(cx: &L, a: Pair<L>) -> Pair<L> {
    ordered_sum(cx, a.hi, a.lo)
}

/// `a * b` exactly (unless the error underflows).
#[inline(always)]
pub(crate) fn product<L: Lanes>(cx: &L, a: L::F, b: L::F) -> Pair<L> {
    let hi = cx.mul(a, b);
    Pair { hi, lo: cx.fms(a, b, hi) }
}

/// `a * b`.
#[inline(always)]
pub(crate) fn times<L: Lanes>(cx: &L, a: Pair<L>, b: Pair<L>) -> Pair<L> {
    let main = product(cx, a.hi, b.hi);
    let lo = cx.fma(a.hi, b.lo, cx.fma(a.lo, b.hi, main.lo));
    ordered_sum(cx, main.hi, lo)
}

/// `a * b`.
#[inline(always)]
pub(crate) fn times_float<L: Lanes>(cx: &L, a: Pair<L>, b: L::F) -> Pair<L> {
    let main = product(cx, a.hi, b);
    ordered_sum(cx, main.hi, cx.fma(a.lo, b, main.lo))
}

/// `a + b`, with an error relative to the larger of them.
#[inline(always)]
pub(crate) fn plus<L: Lanes>(cx: &L, a: Pair<L>, b: Pair<L>) -> Pair<L> {
    let main = sum(cx, a.hi, b.hi);
    ordered_sum(cx, main.hi, cx.add(main.lo, cx.add(a.lo, b.lo)))
}

/// `a / b`: one division, then one step of correction. The parts of the result are not renormalised.
#[inline(always)]
pub(crate) fn quotient<L: Lanes>(cx: &L, a: Pair<L>, b: Pair<L>) -> Pair<L> {
    let inverse = cx.div(cx.float(1.0), b.hi);
    let hi = cx.mul(a.hi, inverse);
    let rest = cx.add(cx.fnma(hi, b.hi, a.hi), cx.fnma(hi, b.lo, a.lo));
    Pair { hi, lo: cx.mul(rest, inverse) }
}

/// The pair with both signs changed.
#[inline(always)]
pub(crate) fn negated<L: Lanes>(cx: &L, a: Pair<L>) -> Pair<L> {
    Pair { hi: cx.neg(a.hi), lo: cx.neg(a.lo) }
}

/// `a` where `m` holds, `b` elsewhere.
#[inline(always)]
pub(crate) fn choice<L: Lanes>(cx: &L, m: L::M, a: Pair<L>, b: Pair<L>) -> Pair<L> {
    Pair { hi: cx.select(m, a.hi, b.hi), lo: cx.select(m, a.lo, b.lo) }
}

/// The float nearest to the pair.
#[inline(always)]
pub(crate) fn rounded<L: Lanes>(cx: &L, a: Pair<L>) -> L::F {
    cx.add(a.hi, a.lo)
}

/// `c[0] + c[1] x + c[2] x^2 + ..`, by Horner's rule.
#[inline(always)]
pub(crate) fn polynomial<L: Lanes>(cx: &L, x: L::F, coefficients: &[f64]) -> L::F {
    let (last, others) = coefficients.split_last().expect("a polynomial has coefficients");
    others.iter().rev().fold(cx.float(*last), |sum, c| cx.fma(sum, x, cx.float(*c)))
}
