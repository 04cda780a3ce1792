//! `erf`, `erfc`.
//!
//! Method: up to 1/2 an odd polynomial; beyond, `erfc a = e^(-a^2) f(a) / (1 + a)`, where
//! `f(a) = (1 + a) e^(a^2) erfc a` falls from 1 to `1 / sqrt pi` and is one polynomial in `(a - 7/2) / (a + 7/2)`. The
//! square, the exponential, the polynomial's last step and the quotient are pairs.

use crate::coefficients::{ERF, ERFCX, ERFCX_0, TWO_OVER_SQRT_PI};
use crate::exponential::{Scaled, exp_pair};
use crate::lanes::Lanes;
use crate::pair::{self, Pair, ordered_sum, polynomial, quotient, sum};

/// The error function, |x| <= 1/2.
#[inline(always)]
fn inner<L: Lanes>(cx: &L, x: L::F) -> Pair<L> {
    let square = cx.mul(x, x);
    let main = pair::product(cx, x, cx.float(TWO_OVER_SQRT_PI.0));
    let rest = cx.fma(x, cx.float(TWO_OVER_SQRT_PI.1), main.lo);
    let tail = cx.fma(cx.mul(x, square), polynomial(cx, square, &ERF), rest);
    Pair { hi: main.hi, lo: tail }
}

/// The complement, `0 <= a <= 28`.
#[inline(always)]
fn outer<L: Lanes>(cx: &L, a: L::F) -> Scaled<L> {
    let centre = cx.float(3.5);
    let t = cx.div(cx.sub(a, centre), cx.add(a, centre));
    let slope = cx.mul(t, polynomial(cx, t, &ERFCX));
    let f = ordered_sum(cx, cx.float(ERFCX_0.0), slope);
    let f = Pair { hi: f.hi, lo: cx.add(f.lo, cx.float(ERFCX_0.1)) };
    let ratio = quotient(cx, f, sum(cx, a, cx.float(1.0)));
    let square = pair::product(cx, a, a);
    let power = exp_pair(cx, pair::negated(cx, square));
    let power_value = pair::normalised(cx, power.value);
    let value = pair::product(cx, power_value.hi, ratio.hi);
    let lo = cx.fma(power_value.hi, ratio.lo, cx.fma(power_value.lo, ratio.hi, value.lo));
    Scaled { value: Pair { hi: value.hi, lo }, n: power.n }
}

/// The error function.
#[inline(always)]
pub(crate) fn erf<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let size = cx.abs(x);
    let one = cx.float(1.0);
    let is_small = cx.lt(size, cx.float(0.5));
    let complement = outer(cx, cx.min(cx.float(6.5), size));
    let complement = cx.mul(pair::rounded(cx, complement.value), cx.power_of_two(complement.n));
    let inner = pair::rounded(cx, inner(cx, size));
    cx.flip_sign(cx.select(is_small, inner, cx.sub(one, complement)), cx.bits(x))
}

/// The complement of the error function.
#[inline(always)]
pub(crate) fn erfc<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let size = cx.abs(x);
    let (zero, one, two) = (cx.float(0.0), cx.float(1.0), cx.float(2.0));
    let complement = outer(cx, cx.min(cx.float(28.0), size));
    let complement = cx.scale(pair::rounded(cx, complement.value), complement.n);
    let large = cx.select(cx.lt(x, zero), cx.sub(two, complement), complement);
    let inner = inner(cx, x);
    let start = ordered_sum(cx, one, cx.neg(inner.hi));
    let small = cx.add(start.hi, cx.sub(start.lo, inner.lo));
    cx.select(cx.lt(size, cx.float(0.5)), small, large)
}
