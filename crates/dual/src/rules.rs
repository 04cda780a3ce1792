//! The derivatives of the elementary functions, each written once: forward and reverse mode read the same row.
//!
//! A rule takes primal values and gives the value of the function and its partial derivatives there. It is generic, so that the
//! partial derivatives of a nested mode are differentiated too. Formulas and conventions at kinks are those of the language's table of
//! primitives: `abs` has the derivative 0 at 0, the arguments of `max` and `min` have a half each at a tie, `x^0` has the
//! derivative 0 everywhere. They neither overflow nor cancel before their result does.
//!
//! Products with what may be infinite are `chain_mul`: then a partial derivative that does not vary along a direction has the tangent zero
//! there, infinite as its slope may be.

use crate::{Float, Scalar};

/// The rules by name, for the test that each of them is checked.
#[cfg(test)]
pub(crate) const UNARY: &[&str] = &[
    "recip", "sqrt", "cbrt", "exp", "exp2", "exp_m1", "ln", "log2", "log10", "ln_1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "abs", "sigmoid",
];

/// Rules of two arguments by name: each has two partial derivatives.
#[cfg(test)]
pub(crate) const BINARY: &[&str] = &["add", "sub", "mul", "div", "pow", "atan2", "hypot", "max", "min"];

macro_rules! unary {
    ($($name:ident($x:ident) = $value:expr, $y:ident => $d:expr;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name<S: Scalar>($x: S) -> (S, S) {
            let $y: S = $value;
            ($y, $d)
        }
    )* };
}

unary! {
    recip(x) = x.recip(), y => -y.chain_mul(y);
    sqrt(x) = x.sqrt(), y => (y + y).recip();
    cbrt(x) = x.cbrt(), y => cbrt_slope(y);
    exp(x) = x.exp(), y => y;
    exp2(x) = x.exp2(), y => y.chain_mul(S::from_f64(std::f64::consts::LN_2));
    exp_m1(x) = x.exp_m1(), _y => x.exp();
    ln(x) = x.ln(), _y => x.recip();
    log2(x) = x.log2(), _y => S::from_f64(std::f64::consts::LOG2_E) / x;
    log10(x) = x.log10(), _y => S::from_f64(std::f64::consts::LOG10_E) / x;
    ln_1p(x) = x.ln_1p(), _y => (S::one() + x).recip();
    sin(x) = x.sin(), _y => x.cos();
    cos(x) = x.cos(), _y => -x.sin();
    tan(x) = x.tan(), y => S::one() + y * y;
    asin(x) = x.asin(), _y => one_minus_square(x).sqrt().recip();
    acos(x) = x.acos(), _y => -one_minus_square(x).sqrt().recip();
    atan(x) = x.atan(), _y => (S::one() + x * x).recip();
    sinh(x) = x.sinh(), _y => x.cosh();
    cosh(x) = x.cosh(), _y => x.sinh();
    tanh(x) = x.tanh(), y => tanh_slope(x, y);
    asinh(x) = x.asinh(), _y => x.hypot(S::one()).recip();
    acosh(x) = x.acosh(), _y => ((x - S::one()).sqrt() * (x + S::one()).sqrt()).recip();
    atanh(x) = x.atanh(), _y => one_minus_square(x).recip();
    abs(x) = x.abs(), _y => x.signum();
    sigmoid(x) = x.sigmoid(), y => sigmoid_slope(x, y);
}

/// Sums and differences have plain numbers as partial derivatives.
macro_rules! linear {
    ($($name:ident($a:ident, $b:ident) = $value:expr => $da:literal, $db:literal;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name<S: Scalar>($a: S, $b: S) -> (S, S::Float, S::Float) {
            ($value, S::Float::of_f64($da), S::Float::of_f64($db))
        }
    )* };
}

linear! {
    add(a, b) = a + b => 1.0, 1.0;
    sub(a, b) = a - b => 1.0, -1.0;
}

macro_rules! binary {
    ($($name:ident($a:ident, $b:ident) = $value:expr, $y:ident => $da:expr, $db:expr;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name<S: Scalar>($a: S, $b: S) -> (S, S, S) {
            let $y: S = $value;
            ($y, $da, $db)
        }
    )* };
}

binary! {
    mul(a, b) = a * b, _y => b, a;
    div(a, b) = a / b, y => b.recip(), -(y / b);
    pow(a, b) = a.pow(b), y => pow_base(a, b), pow_exponent(a, y);
    atan2(a, b) = a.atan2(b), _y => over_square(b, a.hypot(b)), -over_square(a, a.hypot(b));
    hypot(a, b) = a.hypot(b), y => over(a, y), over(b, y);
    max(a, b) = a.max(b), y => S::from_f64(share(a, b, y)), S::from_f64(1.0 - share(a, b, y));
    min(a, b) = a.min(b), y => S::from_f64(share(a, b, y)), S::from_f64(1.0 - share(a, b, y));
}

/// `1 / (3 y^2)`. The reciprocal comes first: at 0 all derivatives of it are infinite, and not of no value.
#[inline(always)]
fn cbrt_slope<S: Scalar>(y: S) -> S {
    let inverse = y.recip();
    inverse.chain_mul(inverse).chain_mul(S::from_f64(1.0 / 3.0))
}

/// `1 - x^2`: the factors are exact next to 1 and -1.
#[inline(always)]
fn one_minus_square<S: Scalar>(x: S) -> S {
    (S::one() - x) * (S::one() + x)
}

/// From here on the difference of a number and 1 loses digits.
const NEAR_ONE: f64 = 0.9;

/// `1 - y^2`, or `4 e / (1 + e)^2` with `e = exp(-2 |x|)`.
#[inline(always)]
fn tanh_slope<S: Scalar>(x: S, y: S) -> S {
    if y.value().abs() <= S::Float::of_f64(NEAR_ONE) {
        return S::one() - y * y;
    }
    let e = (x.abs() * S::from_f64(-2.0)).exp();
    let sum = S::one() + e;
    e * S::from_f64(4.0) / (sum * sum)
}

/// `y (1 - y)`, where the second factor is the function at `-x`.
#[inline(always)]
fn sigmoid_slope<S: Scalar>(x: S, y: S) -> S {
    if y.value() <= S::Float::of_f64(NEAR_ONE) { y * (S::one() - y) } else { y * (-x).sigmoid() }
}

/// `a / length^2`, where the square may be no number.
#[inline(always)]
fn over_square<S: Scalar>(a: S, length: S) -> S {
    a / length / length
}

/// `x^n` for a whole number.
#[inline(always)]
pub(crate) fn powi<S: Scalar>(x: S, n: i32) -> (S, S) {
    let d = match n {
        0 => S::zero(),
        i32::MIN => S::from_f64(f64::from(n)).chain_mul(x.powi(n) / x),
        _ => S::from_f64(f64::from(n)).chain_mul(x.powi(n - 1)),
    };
    (x.powi(n), d)
}

/// `x^e` for a constant `e`.
#[inline(always)]
pub(crate) fn powf<S: Scalar>(x: S, e: S::Float) -> (S, S) {
    let d = pow_base(x, S::constant(e));
    (x.powf(e), d)
}

/// `b a^(b - 1)`, 0 where `b` is, also at 0; there its derivative along `b` is still that of the product.
#[inline(always)]
fn pow_base<S: Scalar>(a: S, b: S) -> S {
    b.strong_mul(a.pow(b - S::one()))
}

/// `a^b log a`, 0 where `a` is not above 0.
#[inline(always)]
fn pow_exponent<S: Scalar>(a: S, y: S) -> S {
    if a.value() <= S::Float::zero() { S::zero() } else { y.chain_mul(a.ln()) }
}

/// `a / y`, 0 where `y` is.
#[inline(always)]
fn over<S: Scalar>(a: S, y: S) -> S {
    if y.value() == S::Float::zero() { S::zero() } else { a / y }
}

/// How much the first argument has of the choice `y` between two: all, a half at a tie, or nothing. All too where both are NaN.
#[inline(always)]
fn share<S: Scalar>(a: S, b: S, y: S) -> f64 {
    let (a, b, y) = (a.value(), b.value(), y.value());
    if a == b {
        0.5
    } else if a == y || b.partial_cmp(&b).is_none() {
        1.0
    } else {
        0.0
    }
}
