//! `pow`, `cbrt`, `hypot`.
//!
//! `pow` is `exp (y log |x|)` with the logarithm and the product as pairs. `cbrt` is the inverse cube root of the mantissa
//! by a polynomial and one step of Halley's kind, then one corrected product. `hypot` is the root of a sum of exact
//! squares, of arguments scaled into the middle of the range.

use crate::coefficients::{CBRT, CBRT_HALVES};
use crate::exponential::{SHIFT, exp_pair};
use crate::lanes::Lanes;
use crate::logarithm::{Argument, log_pair};
use crate::pair::{self, Pair, polynomial};

/// `x` to the power `y`.
#[inline(always)]
pub(crate) fn pow<L: Lanes>(cx: &L, x: L::F, y: L::F) -> L::F {
    let (zero, one, infinity) = (cx.float(0.0), cx.float(1.0), cx.float(f64::INFINITY));
    let size = cx.abs(x);
    let log = log_pair(cx, Argument::Float(size));
    // The ends of the range: infinite logarithms.
    let is_zero = cx.eq(x, zero);
    let is_infinite = cx.eq(size, infinity);
    let log_hi = cx.select(is_zero, cx.neg(infinity), cx.select(is_infinite, infinity, log.hi));
    let product = pair::product(cx, y, log_hi);
    let rest = cx.fma(y, log.lo, product.lo);
    // Beyond these bounds the result is 0 or infinite.
    let bounded = cx.max(cx.float(-760.0), cx.min(cx.float(720.0), product.hi));
    let rest = cx.select(cx.eq(bounded, product.hi), rest, zero);
    let power = exp_pair(cx, Pair { hi: bounded, lo: rest });
    let magnitude = cx.scale(pair::rounded(cx, power.value), power.n);
    // A negative base takes whole exponents only, and has the sign of the odd ones.
    let is_whole = cx.eq(cx.round(y), y);
    let half = cx.mul(y, cx.float(0.5));
    let is_odd = cx.both(is_whole, cx.not(cx.eq(cx.round(half), half)));
    let signed = cx.select(is_odd, cx.flip_sign(magnitude, cx.bits(x)), magnitude);
    let is_imaginary = cx.both(cx.both(cx.lt(x, zero), cx.lt(size, infinity)), cx.not(is_whole));
    let result = cx.select(is_imaginary, cx.float(f64::NAN), signed);
    let result = cx.select(cx.either(cx.is_nan(x), cx.is_nan(y)), cx.add(x, y), result);
    // 1 to any power, anything to the power 0, and -1 to an infinite one.
    let is_minus_one = cx.both(cx.eq(size, one), cx.eq(cx.abs(y), infinity));
    let is_one = cx.either(cx.either(cx.eq(x, one), cx.eq(y, zero)), is_minus_one);
    cx.select(is_one, one, result)
}

/// The cube root.
#[inline(always)]
pub(crate) fn cbrt<L: Lanes>(cx: &L, x: L::F) -> L::F {
    let (zero, one) = (cx.float(0.0), cx.float(1.0));
    let size = cx.abs(x);
    let is_subnormal = cx.lt(size, cx.float(f64::MIN_POSITIVE));
    let normal = cx.select(is_subnormal, cx.mul(size, cx.float(TWO_54)), size);
    let bits = cx.bits(normal);
    let bias = cx.select(is_subnormal, cx.float(1023.0 + 54.0), cx.float(1023.0));
    let exponent = cx.sub(cx.float_of_natural(cx.shift_right(bits, 52)), bias);
    // size = m 2^(3 third + left), left is 0, 1 or 2.
    let third = cx.round(cx.mul(cx.sub(exponent, one), cx.float(1.0 / 3.0)));
    let left = cx.fnma(cx.float(3.0), third, exponent);
    let m_bits = cx.int_and(bits, cx.int((1 << 52) - 1));
    let m = cx.float_of_bits(cx.int_add(m_bits, cx.int(1023 << 52)));
    let (is_one, is_two) = (cx.eq(left, one), cx.eq(left, cx.float(2.0)));
    let pick = |a: f64, b: f64| cx.select(is_two, cx.float(b), cx.select(is_one, cx.float(a), one));
    let t = cx.mul(m, pick(2.0, 4.0));
    // r is 1 / cbrt t to 2^-22, then to rounding.
    let r = cx.mul(polynomial(cx, m, &CBRT), pick(CBRT_HALVES[0], CBRT_HALVES[1]));
    let error = cx.fnma(cx.mul(t, cx.mul(r, r)), r, one);
    let step = cx.mul(error, cx.fma(error, cx.float(2.0 / 9.0), cx.float(1.0 / 3.0)));
    let r = cx.fma(r, step, r);
    let r_square = cx.mul(r, r);
    let root = cx.mul(t, r_square);
    let square = pair::product(cx, root, root);
    let missing = cx.fnma(square.lo, root, cx.fnma(square.hi, root, t));
    let root = cx.fma(missing, cx.mul(r_square, cx.float(1.0 / 3.0)), root);
    let third_bits = cx.bits(cx.add(third, cx.float(SHIFT)));
    let n = cx.int_sub(third_bits, cx.int(SHIFT.to_bits().cast_signed()));
    let result = cx.flip_sign(cx.mul(root, cx.power_of_two(n)), cx.bits(x));
    let is_ordinary = cx.both(cx.lt(zero, size), cx.lt(size, cx.float(f64::INFINITY)));
    cx.select(is_ordinary, result, x)
}

const TWO_54: f64 = 18_014_398_509_481_984.0;

/// The length of the vector with these components.
#[inline(always)]
pub(crate) fn hypot<L: Lanes>(cx: &L, x: L::F, y: L::F) -> L::F {
    let (width, height) = (cx.abs(x), cx.abs(y));
    let is_steep = cx.lt(width, height);
    let low = cx.select(is_steep, width, height);
    let high = cx.select(is_steep, height, width);
    // Scaled so that the squares stay in the range.
    let (large, small) = (cx.lt(cx.float(1e150), high), cx.lt(high, cx.float(1e-100)));
    let pick = |a: f64, b: f64| cx.select(large, cx.float(a), cx.select(small, cx.float(b), cx.float(1.0)));
    let scale = pick(power(-600), power(800));
    let (low, high) = (cx.mul(low, scale), cx.mul(high, scale));
    let (square_low, square_high) = (pair::product(cx, low, low), pair::product(cx, high, high));
    let square = pair::plus(cx, square_high, square_low);
    let length = pair::rounded(cx, root(cx, square));
    let result = cx.mul(length, pick(power(600), power(-800)));
    let result = cx.select(cx.either(cx.is_nan(x), cx.is_nan(y)), cx.add(x, y), result);
    let infinity = cx.float(f64::INFINITY);
    cx.select(cx.either(cx.eq(width, infinity), cx.eq(height, infinity)), infinity, result)
}

/// The square root of a number that is 0 or far from the ends of the range.
#[inline(always)]
pub(crate) fn root<L: Lanes>(cx: &L, x: Pair<L>) -> Pair<L> {
    let root = cx.sqrt(x.hi);
    let twice = cx.select(cx.eq(root, cx.float(0.0)), cx.float(1.0), cx.add(root, root));
    let missing = cx.add(cx.fnma(root, root, x.hi), x.lo);
    Pair { hi: root, lo: cx.div(missing, twice) }
}

/// `2^n`.
const fn power(n: i64) -> f64 {
    f64::from_bits((1023 + n).cast_unsigned() << 52)
}
