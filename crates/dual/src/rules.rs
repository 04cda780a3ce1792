//! The derivatives of the elementary functions, each written once: forward and reverse mode read the same row.
//!
//! A rule takes primal values and gives the value of the function and its partial derivatives there. It is generic, so that the
//! partial derivatives of a nested mode are differentiated too. Conventions at kinks are those of the language's table of
//! primitives: `abs` has the derivative 0 at 0, `max` and `min` give everything to the first argument at a tie, `x^0` has the
//! derivative 0 everywhere.

use crate::Scalar;

/// The rules by name, for the test that each of them is checked.
#[cfg(test)]
pub(crate) const UNARY: &[&str] = &[
    "recip", "sqrt", "cbrt", "exp", "exp2", "exp_m1", "ln", "log2", "log10", "ln_1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "abs", "sigmoid",
];

/// Rules of two arguments by name: each has two partial derivatives.
#[cfg(test)]
pub(crate) const BINARY: &[&str] = &["add", "sub", "mul", "div", "pow", "atan2", "hypot", "max", "min"];

/// In tests of the tests: one partial derivative is made wrong.
#[cfg(test)]
pub(crate) mod mutation {
    use std::cell::Cell;

    /// How a partial derivative is wrong.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Fault {
        Negated,
        Doubled,
        Dropped,
    }
    thread_local! {
        /// Rule, which partial derivative, how.
        pub(crate) static ACTIVE: Cell<Option<(&'static str, usize, Fault)>> = const { Cell::new(None) };
    }
}

/// The partial derivative, but in tests of the tests.
#[inline(always)]
fn partial<S: Scalar>(_rule: &str, _argument: usize, d: S) -> S {
    #[cfg(test)]
    if let Some((rule, argument, fault)) = mutation::ACTIVE.get()
        && rule == _rule
        && argument == _argument
    {
        return match fault {
            mutation::Fault::Negated => -d,
            mutation::Fault::Doubled => d + d,
            mutation::Fault::Dropped => S::zero(),
        };
    }
    d
}

macro_rules! unary {
    ($($name:ident($x:ident) = $value:expr, $y:ident => $d:expr;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name<S: Scalar>($x: S) -> (S, S) {
            let $y: S = $value;
            ($y, partial(stringify!($name), 0, $d))
        }
    )* };
}

unary! {
    recip(x) = x.recip(), y => -(y * y);
    sqrt(x) = x.sqrt(), y => (y + y).recip();
    cbrt(x) = x.cbrt(), y => (S::from_f64(3.0) * y * y).recip();
    exp(x) = x.exp(), y => y;
    exp2(x) = x.exp2(), y => y * S::from_f64(std::f64::consts::LN_2);
    exp_m1(x) = x.exp_m1(), y => y + S::one();
    ln(x) = x.ln(), _y => x.recip();
    log2(x) = x.log2(), _y => (x * S::from_f64(std::f64::consts::LN_2)).recip();
    log10(x) = x.log10(), _y => (x * S::from_f64(std::f64::consts::LN_10)).recip();
    ln_1p(x) = x.ln_1p(), _y => (S::one() + x).recip();
    sin(x) = x.sin(), _y => x.cos();
    cos(x) = x.cos(), _y => -x.sin();
    tan(x) = x.tan(), y => S::one() + y * y;
    asin(x) = x.asin(), _y => (S::one() - x * x).sqrt().recip();
    acos(x) = x.acos(), _y => -(S::one() - x * x).sqrt().recip();
    atan(x) = x.atan(), _y => (S::one() + x * x).recip();
    sinh(x) = x.sinh(), _y => x.cosh();
    cosh(x) = x.cosh(), _y => x.sinh();
    tanh(x) = x.tanh(), y => S::one() - y * y;
    asinh(x) = x.asinh(), _y => (x * x + S::one()).sqrt().recip();
    acosh(x) = x.acosh(), _y => ((x - S::one()) * (x + S::one())).sqrt().recip();
    atanh(x) = x.atanh(), _y => (S::one() - x * x).recip();
    abs(x) = x.abs(), _y => x.signum();
    sigmoid(x) = x.sigmoid(), y => y * (S::one() - y);
}

macro_rules! binary {
    ($($name:ident($a:ident, $b:ident) = $value:expr, $y:ident => $da:expr, $db:expr;)*) => { $(
        #[inline(always)]
        pub(crate) fn $name<S: Scalar>($a: S, $b: S) -> (S, S, S) {
            let $y: S = $value;
            ($y, partial(stringify!($name), 0, $da), partial(stringify!($name), 1, $db))
        }
    )* };
}

binary! {
    add(a, b) = a + b, _y => S::one(), S::one();
    sub(a, b) = a - b, _y => S::one(), -S::one();
    mul(a, b) = a * b, _y => b, a;
    div(a, b) = a / b, y => b.recip(), -(y / b);
    pow(a, b) = a.pow(b), y => pow_base(a, b), pow_exponent(a, y);
    atan2(a, b) = a.atan2(b), _y => b / (a * a + b * b), -(a / (a * a + b * b));
    hypot(a, b) = a.hypot(b), y => over(a, y), over(b, y);
    max(a, b) = a.max(b), y => first(a, b, y), second(a, b, y);
    min(a, b) = a.min(b), y => first(a, b, y), second(a, b, y);
}

/// `x^n` for a whole number.
#[inline(always)]
pub(crate) fn powi<S: Scalar>(x: S, n: i32) -> (S, S) {
    let d = match n {
        0 => S::zero(),
        i32::MIN => S::from_f64(f64::from(n)) * x.powi(n) / x,
        _ => S::from_f64(f64::from(n)) * x.powi(n - 1),
    };
    (x.powi(n), partial("powi", 0, d))
}

/// `x^e` for a constant `e`.
#[inline(always)]
pub(crate) fn powf<S: Scalar>(x: S, e: S::Float) -> (S, S) {
    let d = pow_base(x, S::constant(e));
    (x.powf(e), partial("powf", 0, d))
}

/// `b a^(b - 1)`, 0 where `b` is.
#[inline(always)]
fn pow_base<S: Scalar>(a: S, b: S) -> S {
    if b.value() == S::Float::zero() { S::zero() } else { b * a.pow(b - S::one()) }
}

/// `a^b log a`, 0 where `a` is.
#[inline(always)]
fn pow_exponent<S: Scalar>(a: S, y: S) -> S {
    if a.value() == S::Float::zero() { S::zero() } else { y * a.ln() }
}

/// `a / y`, 0 where `y` is.
#[inline(always)]
fn over<S: Scalar>(a: S, y: S) -> S {
    if y.value() == S::Float::zero() { S::zero() } else { a / y }
}

/// 1 if a choice is its first argument, also at a tie.
#[inline(always)]
fn first<S: Scalar>(a: S, _b: S, y: S) -> S {
    if a.value() == y.value() { S::one() } else { S::zero() }
}

/// 1 if a choice is its second argument and not its first.
#[inline(always)]
fn second<S: Scalar>(a: S, b: S, y: S) -> S {
    if a.value() != y.value() && b.value() == y.value() { S::one() } else { S::zero() }
}
