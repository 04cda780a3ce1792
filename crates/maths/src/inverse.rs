//! `asin`, `acos`, `atan`, `atan2`.
//!
//! Method: `atan` is an odd polynomial up to `tan (pi/8)`; larger ratios go there by `atan t = pi/4 + atan ((t-1)/(t+1))`
//! and `atan t = pi/2 - atan (1/t)`, on numerator and denominator, so that there is one division. `asin` is an odd
//! polynomial up to 1/2; beyond, `asin t = pi/2 - 2 asin (sqrt ((1-t)/2))`. All additions of multiples of `pi/4` are of
//! pairs.

use crate::coefficients::{ASIN, ATAN, HALF_PI, QUARTER_PI};
use crate::lanes::Lanes;
use crate::pair::{ordered_sum, polynomial, quotient, sum};

/// `tan (pi / 8)`, about: where the two formulas meet need not be exact.
const TAN_EIGHTH: f64 = 0.414_213_56;

/// `turns pi/4 + atan (y / x)` for `0 <= y <= x`, finite, not both 0, `x` not subnormal and below 2^1020; with the sign of
/// the arc tangent, but not of the turns, changed where `sign` is negative.
#[inline(always)]
fn arc<L: Lanes>(cx: &L, y: L::F, x: L::F, turns: L::F, sign: L::I) -> L::F {
    let is_wide = cx.lt(cx.mul(x, cx.float(TAN_EIGHTH)), y);
    let zero = cx.float(0.0);
    let below = sum(cx, y, cx.select(is_wide, cx.neg(x), zero));
    let above = sum(cx, x, cx.select(is_wide, y, zero));
    let t = quotient(cx, below, above);
    let square = cx.mul(t.hi, t.hi);
    let tail = cx.fma(cx.mul(t.hi, square), polynomial(cx, square, &ATAN), t.lo);
    let one = cx.flip_sign(cx.float(1.0), sign);
    let turns = cx.add(turns, cx.select(is_wide, one, zero));
    let main = cx.mul(turns, cx.float(QUARTER_PI.0));
    let start = ordered_sum(cx, main, cx.flip_sign(t.hi, sign));
    // Three quarters of pi are not exact.
    let lost = cx.fms(turns, cx.float(QUARTER_PI.0), main);
    let rest = cx.fma(turns, cx.float(QUARTER_PI.1), cx.flip_sign(tail, sign));
    cx.add(start.hi, cx.add(cx.add(start.lo, lost), rest))
}

/// The arc tangent.
#[inline(always)]
pub(crate) fn atan<L: Lanes>(cx: &L, x: L::F) -> L::F {
    // From 2^60 on it is pi/2 to rounding.
    let size = cx.min(cx.float(1.152_921_504_606_847e18), cx.abs(x));
    let one = cx.float(1.0);
    let is_large = cx.lt(one, size);
    let low = cx.select(is_large, one, size);
    let high = cx.select(is_large, size, one);
    let turns = cx.select(is_large, cx.float(2.0), cx.float(0.0));
    let sign = cx.bits(cx.select(is_large, cx.float(-1.0), one));
    let result = cx.flip_sign(arc(cx, low, high, turns, sign), cx.bits(x));
    cx.select(cx.is_nan(x), x, result)
}

/// The angle of the point with ordinate `y` and abscissa `x`.
#[inline(always)]
pub(crate) fn atan2<L: Lanes>(cx: &L, y: L::F, x: L::F) -> L::F {
    let (height, width) = (cx.abs(y), cx.abs(x));
    let is_steep = cx.lt(width, height);
    let low = cx.select(is_steep, width, height);
    let high = cx.select(is_steep, height, width);
    // Scaled so that neither the division nor its rest leaves the range.
    let large = cx.lt(cx.float(1e300), high);
    let small = cx.lt(high, cx.float(1.0));
    let scale = cx.select(large, cx.float(TWO_MINUS_100), cx.float(1.0));
    let scale = cx.select(small, cx.float(TWO_200), scale);
    let (low, high) = (cx.mul(low, scale), cx.mul(high, scale));
    // The directions of infinity and of the origin are conventions.
    let (zero, one) = (cx.float(0.0), cx.float(1.0));
    let infinity = cx.float(f64::INFINITY);
    let is_infinite = cx.eq(high, infinity);
    let low_of_infinite = cx.select(cx.eq(low, infinity), one, zero);
    let low = cx.select(is_infinite, low_of_infinite, low);
    let high = cx.select(cx.either(is_infinite, cx.eq(high, zero)), one, high);
    // pi - t for x < 0, pi/2 - t or pi/2 + t for steep points.
    let backward = cx.bits(x);
    let leftwards = cx.any_bit(backward, i64::MIN);
    let turns = cx.select(is_steep, cx.float(2.0), cx.select(leftwards, cx.float(4.0), zero));
    let minus_where_steep = cx.bits(cx.select(is_steep, cx.float(-1.0), one));
    let result = arc(cx, low, high, turns, cx.int_xor(minus_where_steep, backward));
    let result = cx.flip_sign(result, cx.bits(y));
    cx.select(cx.either(cx.is_nan(x), cx.is_nan(y)), cx.add(x, y), result)
}

const TWO_MINUS_100: f64 = f64::from_bits((1023 - 100) << 52);
const TWO_200: f64 = f64::from_bits((1023 + 200) << 52);

/// What both functions need of `a = |x|`: the arc sine of `t`, as `t` and a tail, where `t` is `a` up to 1/2, and the root
/// of `(1-a)/2` beyond.
struct Half<L: Lanes> {
    is_large: L::M,
    t: L::F,
    tail: L::F,
}

#[inline(always)]
fn half<L: Lanes>(cx: &L, a: L::F) -> Half<L> {
    let (zero, one) = (cx.float(0.0), cx.float(1.0));
    let is_large = cx.lt(cx.float(0.5), a);
    let z = cx.mul(cx.sub(one, a), cx.float(0.5));
    let root = cx.sqrt(z);
    let twice = cx.select(cx.eq(z, zero), one, cx.add(root, root));
    let root_rest = cx.div(cx.fnma(root, root, z), twice);
    let t = cx.select(is_large, root, a);
    let square = cx.select(is_large, z, cx.mul(a, a));
    let rest = cx.select(is_large, root_rest, zero);
    Half { is_large, t, tail: cx.fma(cx.mul(t, square), polynomial(cx, square, &ASIN), rest) }
}

/// The arc sine.
#[inline(always)]
pub(crate) fn asin<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let Half { is_large, t, tail } = half(cx, cx.abs(x));
    let two = cx.float(2.0);
    let start = ordered_sum(cx, cx.float(HALF_PI[0]), cx.mul(cx.neg(two), t));
    let rest = cx.fnma(two, tail, cx.add(start.lo, cx.float(HALF_PI[1])));
    let result = cx.select(is_large, cx.add(start.hi, rest), cx.add(t, tail));
    cx.flip_sign(result, cx.bits(x))
}

/// The arc cosine.
#[inline(always)]
pub(crate) fn acos<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let Half { is_large, t, tail } = half(cx, cx.abs(x));
    // Up to 1/2: pi/2 - asin x. Beyond: 2 asin t, or pi - 2 asin t for negative x.
    let (zero, one, two) = (cx.float(0.0), cx.float(1.0), cx.float(2.0));
    let is_negative = cx.lt(x, zero);
    let factor = cx.select(is_large, two, one);
    let plus = cx.select(is_negative, cx.neg(factor), factor);
    let minus = cx.neg(plus);
    let factor = cx.select(is_large, plus, minus);
    let quarters = cx.select(is_large, cx.select(is_negative, two, zero), one);
    let start = ordered_sum(cx, cx.mul(quarters, cx.float(HALF_PI[0])), cx.mul(factor, t));
    let rest = cx.fma(factor, tail, cx.fma(quarters, cx.float(HALF_PI[1]), start.lo));
    cx.add(start.hi, rest)
}
