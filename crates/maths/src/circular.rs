//! `sin`, `cos`, `tan`.
//!
//! Method: the argument is `q` quarter turns and a rest `r`, |r| <= pi/4, as a pair. Below 2^20 the rest comes from
//! subtracting `q pi/2` in three parts (W. J. Cody and W. Waite, 1980), beyond from the digits of `2 / pi` that matter
//! (M. Payne and R. Hanek, 1983). Both are exact enough for the arguments next to multiples of `pi / 2`.

use crate::coefficients::{COS, HALF_PI, SIN, TWO_OVER_PI, TWO_OVER_PI_PARTS};
use crate::exponential::{SHIFT, Steps, steps};
use crate::lanes::Lanes;
use crate::pair::{self, Pair, choice, normalised, ordered_sum, polynomial, quotient, sum};

/// A rest, and the bits of a float whose low bits are the number of quarter turns.
struct Turned<L: Lanes> {
    quarters: L::I,
    rest: Pair<L>,
}

/// From here on the digits of `2 / pi` are needed.
const HUGE: f64 = 1_048_576.0;

/// The reduction of `a >= 0`; NaN if `a` is infinite or NaN.
#[inline(always)]
fn reduce<L: Lanes>(cx: &L, a: L::F) -> Turned<L> {
    let Steps { k, bits } = steps(cx, a, TWO_OVER_PI);
    // The first difference is exact: it is a multiple of the last digit of both.
    let first = cx.fnma(k, cx.float(HALF_PI[0]), a);
    let product = pair::product(cx, k, cx.float(HALF_PI[1]));
    let second = sum(cx, first, cx.neg(product.hi));
    let tail = cx.fnma(k, cx.float(HALF_PI[2]), cx.sub(second.lo, product.lo));
    let rest = ordered_sum(cx, second.hi, tail);
    let is_usual = cx.lt(a, cx.float(HUGE));
    let [quarters, hi, lo] = cx.rarely(cx.not(is_usual), [cx.float_of_bits(bits), rest.hi, rest.lo], || {
        let turned = reduce_huge(cx, a);
        [cx.float_of_bits(turned.quarters), turned.rest.hi, turned.rest.lo]
    });
    Turned { quarters: cx.bits(quarters), rest: Pair { hi, lo } }
}

/// The reduction of `a >= 2^20`.
///
/// `a = n 2^s` with a whole number `n` below 2^69 and a multiple `s` of 16, less 32; the table has `2 / pi * 2^s`
/// modulo 4, so that nothing but whole turns is lost, and the products with its four parts are exact pairs.
#[inline(always)]
fn reduce_huge<L: Lanes>(cx: &L, a: L::F) -> Turned<L> {
    let exponent = cx.shift_right(cx.bits(a), 52);
    let row = cx.shift_right(cx.int_sub(exponent, cx.int(1043)), 4);
    let whole = cx.mul(a, cx.power_of_two(cx.int_sub(cx.int(32), cx.shift_left(row, 4))));
    let part = |i: usize| pair::product(cx, whole, cx.table(&TWO_OVER_PI_PARTS[i], row));
    let (a, b, c, d) = (part(0), part(1), part(2), part(3));
    let modulo_4 = |x: L::F| cx.fnma(cx.float(4.0), cx.round(cx.mul(x, cx.float(0.25))), x);
    // The quarter turns, of which the first sum has all digits up to 2^-51; whole ones go.
    let start = cx.add(modulo_4(a.hi), modulo_4(a.lo));
    let turns = sum(cx, start, modulo_4(b.hi));
    let quarters = cx.round(turns.hi);
    let first = sum(cx, cx.sub(turns.hi, quarters), b.lo);
    let second = sum(cx, first.hi, c.hi);
    let third = sum(cx, second.hi, turns.lo);
    let tail = cx.add(third.lo, cx.add(cx.add(first.lo, second.lo), cx.add(c.lo, d.hi)));
    let fraction = ordered_sum(cx, third.hi, tail);
    let rest = pair::times(cx, fraction, pair::constant(cx, (HALF_PI[0], HALF_PI[1])));
    Turned { quarters: cx.bits(cx.add(quarters, cx.float(SHIFT))), rest }
}

/// The sine and the cosine of `r`, |r| <= pi/4, to 2^-56; the second part of each is up to a quarter of the first.
#[inline(always)]
pub(crate) fn sine_and_cosine<L: Lanes>(cx: &L, r: Pair<L>) -> (Pair<L>, Pair<L>) {
    let square = pair::product(cx, r.hi, r.hi);
    let z = square.hi;
    let half = cx.mul(z, cx.float(0.5));
    let sine_tail = cx.fma(cx.mul(r.hi, z), polynomial(cx, z, &SIN), cx.fnma(half, r.lo, r.lo));
    let main = ordered_sum(cx, cx.float(1.0), cx.neg(half));
    // r.lo and the rounding of the square, both times r.
    let correction = cx.fma(cx.float(0.5), square.lo, cx.mul(r.hi, r.lo));
    let cosine_tail = cx.fma(cx.mul(z, z), polynomial(cx, z, &COS), cx.sub(main.lo, correction));
    (Pair { hi: r.hi, lo: sine_tail }, Pair { hi: main.hi, lo: cosine_tail })
}

/// The sine.
#[inline(always)]
pub(crate) fn sin<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let turned = reduce(cx, cx.abs(x));
    let (sine, cosine) = sine_and_cosine(cx, turned.rest);
    let is_odd = cx.any_bit(turned.quarters, 1);
    let result = cx.select(is_odd, pair::rounded(cx, cosine), pair::rounded(cx, sine));
    // Two quarters change the sign, and so does the sign of x.
    let half_turn = cx.shift_left(turned.quarters, 62);
    cx.flip_sign(result, cx.int_xor(half_turn, cx.bits(x)))
}

/// The cosine: the sine a quarter turn later.
#[inline(always)]
pub(crate) fn cos<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let turned = reduce(cx, cx.abs(x));
    let (sine, cosine) = sine_and_cosine(cx, turned.rest);
    let is_odd = cx.any_bit(turned.quarters, 1);
    let result = cx.select(is_odd, pair::rounded(cx, sine), pair::rounded(cx, cosine));
    cx.flip_sign(result, cx.shift_left(cx.int_add(turned.quarters, cx.int(1)), 62))
}

/// The tangent.
#[inline(always)]
pub(crate) fn tan<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let turned = reduce(cx, cx.abs(x));
    let (sine, cosine) = sine_and_cosine(cx, turned.rest);
    let is_odd = cx.any_bit(turned.quarters, 1);
    let (sine, cosine) = (normalised(cx, sine), normalised(cx, cosine));
    let ratio = quotient(cx, choice(cx, is_odd, cosine, sine), choice(cx, is_odd, sine, cosine));
    let quarter_turn = cx.shift_left(turned.quarters, 63);
    cx.flip_sign(pair::rounded(cx, ratio), cx.int_xor(quarter_turn, cx.bits(x)))
}
