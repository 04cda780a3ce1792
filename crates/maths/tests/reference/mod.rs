//! The functions to 150 bits and more, from series and Newton's iteration on [`big::Big`].
//!
//! None of it uses a coefficient or a formula of the crate: `pi` is Machin's, `log 2` a sum of inverse hyperbolic
//! tangents, every function a power series, a continued fraction or a Newton step from the C library's value.

pub(crate) mod big;

use big::Big;
use pullback_maths::Function;
use std::sync::LazyLock;

type B = Big<4>;
/// Enough for 1024 bits before the point.
type Wide = Big<24>;

static PI: LazyLock<B> = LazyLock::new(pi);
static LN_2: LazyLock<B> = LazyLock::new(|| {
    let part = |n| inverse_tangent::<4>(n, false);
    part(26).times(18).sub(part(4801).times(2)).add(part(8749).times(8))
});
static WIDE_PI: LazyLock<Wide> = LazyLock::new(pi);
static TWO_OVER_PI: LazyLock<Wide> = LazyLock::new(|| WIDE_PI.inverse().shift(1));

/// `atan (1/n)`, or with `alternating` false `atanh (1/n)`.
fn inverse_tangent<const N: usize>(n: u64, alternating: bool) -> Big<N> {
    let mut power = Big::from_u64(1).over(n);
    let mut sum = power;
    let mut k = 1;
    while power.magnitude() > -64 * N as i64 - 10 {
        power = power.over(n * n);
        let term = power.over(2 * k + 1);
        sum = if alternating && k % 2 == 1 { sum.sub(term) } else { sum.add(term) };
        k += 1;
    }
    sum
}

fn pi<const N: usize>() -> Big<N> {
    inverse_tangent(5, true).times(16).sub(inverse_tangent(239, true).times(4))
}

fn one() -> B {
    B::from_u64(1)
}

fn exp(x: B) -> B {
    let (k, r) = x.div(*LN_2).split();
    let r = r.mul(*LN_2).shift(-8);
    let (mut term, mut sum) = (one(), one());
    let mut n = 1;
    while !term.is_zero() && term.magnitude() > -270 {
        term = term.mul(r).over(n);
        sum = sum.add(term);
        n += 1;
    }
    (0..8).fold(sum, |s, _| s.square()).shift(k)
}

/// One step of Halley's iteration from the C library's value: three times its digits.
fn log(x: B) -> B {
    let mut exponent = x.magnitude();
    if x.shift(-exponent).to_f64() > 1.4 {
        exponent += 1;
    }
    let m = x.shift(-exponent);
    let start = B::from_f64(m.to_f64().ln());
    let e = exp(start);
    let step = m.sub(e).div(m.add(e)).shift(1);
    let whole = B::from_u64(exponent.unsigned_abs()).mul(*LN_2);
    start.add(step).add(if exponent < 0 { whole.neg() } else { whole })
}

/// `log (1 + x)`, with the digits of `x`.
fn log1p(x: B) -> B {
    if x.magnitude() > -60 {
        return log(x.add(one()));
    }
    // x - x^2/2 + x^3/3 - x^4/4
    let term = |n: u64| (1..n).fold(x, |p, _| p.mul(x)).over(n);
    x.sub(term(2)).add(term(3)).sub(term(4))
}

fn expm1(x: B) -> B {
    if x.is_zero() || x.magnitude() > -40 {
        return exp(x).sub(one());
    }
    (2..8).rev().fold(one(), |sum, n| sum.mul(x).over(n).add(one())).mul(x)
}

/// Sine and cosine of |x| <= 1 or so.
fn series(x: B) -> (B, B) {
    let (mut term, mut sums) = (one(), [one(), B::ZERO]);
    let mut n = 1;
    while !term.is_zero() && term.magnitude() > -330 {
        term = term.mul(x).over(n);
        let slot = &mut sums[n as usize % 2];
        *slot = if n % 4 < 2 { slot.add(term) } else { slot.sub(term) };
        n += 1;
    }
    (sums[1], sums[0])
}

/// Quarter turns modulo 4, and the sine and cosine of what is left.
fn turned(x: f64) -> (i64, B, B) {
    let turns = Wide::from_f64(x).mul(*TWO_OVER_PI).fraction_modulo_4();
    let (quarters, rest) = turns.split();
    let (sine, cosine) = series(rest.mul(*WIDE_PI).shift(-1).resize());
    (quarters.rem_euclid(4), sine, cosine)
}

fn sine_and_cosine(x: f64) -> (B, B) {
    match turned(x) {
        (0, s, c) => (s, c),
        (1, s, c) => (c, s.neg()),
        (2, s, c) => (s.neg(), c.neg()),
        (_, s, c) => (c.neg(), s),
    }
}

/// `atan (y / x)` with `y >= 0`, in `[0, pi]`: one step from the C library's value.
fn angle(y: B, x: B) -> B {
    if y.is_zero() {
        return if x.is_negative { *PI } else { y };
    }
    // Of the same size and about 1, so that they are floats.
    let size = y.magnitude().max(x.magnitude());
    let near = |v: B| if v.is_zero() || v.magnitude() < size - 900 { 0.0 } else { v.shift(-size).to_f64() };
    let start = near(y).atan2(near(x));
    let (s, c) = series_halved(B::from_f64(start));
    // tan (true - start), which is below 2^-50 (or the ratio itself where the start is 0).
    let d = y.mul(c).sub(x.mul(s)).div(x.mul(c).add(y.mul(s)));
    B::from_f64(start).add(d.sub(d.square().mul(d).over(3)))
}

/// Sine and cosine up to pi.
fn series_halved(x: B) -> (B, B) {
    let (s, c) = series(x.shift(-2));
    let (s, c) = (s.mul(c).shift(1), c.square().sub(s.square()));
    (s.mul(c).shift(1), c.square().sub(s.square()))
}

/// `2 / sqrt pi e^(-x^2) (x + 2/3 x^3 + 4/15 x^5 + ..)`
fn erf(x: B) -> B {
    let square = x.square().shift(1);
    let (mut term, mut sum) = (x, x);
    let mut n = 1;
    while !term.is_zero() && term.magnitude() > sum.magnitude() - 270 {
        term = term.mul(square).over(2 * n + 1);
        sum = sum.add(term);
        n += 1;
    }
    sum.mul(exp(x.square().neg())).shift(1).div(PI.sqrt())
}

/// Laplace's continued fraction, by the recurrence of its convergents, from 6 on; else from `erf`.
fn erfc(x: B) -> B {
    if x.is_negative || x.less(B::from_u64(6)) {
        return one().sub(erf(x));
    }
    let mut tops = (B::ZERO, one());
    let mut bottoms = (one(), x);
    for k in 1..90 {
        let half = |v: B| v.times(k).shift(-1);
        tops = (tops.1, x.mul(tops.1).add(half(tops.0)));
        bottoms = (bottoms.1, x.mul(bottoms.1).add(half(bottoms.0)));
    }
    exp(x.square().neg()).mul(tops.1).div(bottoms.1).div(PI.sqrt())
}

/// Bernoulli numbers `B_2k`, as numerator and denominator.
const BERNOULLI: [(i64, u64); 15] = [
    (1, 6),
    (-1, 30),
    (1, 42),
    (-1, 30),
    (5, 66),
    (-691, 2730),
    (7, 6),
    (-3617, 510),
    (43867, 798),
    (-174_611, 330),
    (854_513, 138),
    (-236_364_091, 2730),
    (8_553_103, 6),
    (-23_749_461_029, 870),
    (8_615_841_276_005, 14322),
];

/// For `a > 0`: Stirling's series from 60 on, after a product of steps.
fn lgamma_positive(a: B) -> B {
    let (mut shifted, mut product) = (a, one());
    while shifted.less(B::from_u64(60)) {
        product = product.mul(shifted);
        shifted = shifted.add(one());
    }
    let half = one().shift(-1);
    let mut sum = shifted.sub(half).mul(log(shifted)).sub(shifted).add(log(PI.shift(1)).mul(half));
    let inverse = shifted.inverse();
    let mut power = inverse;
    for (k, (top, bottom)) in (1..).zip(BERNOULLI) {
        let term = power.times(top.unsigned_abs()).over(bottom).over(2 * k * (2 * k - 1));
        sum = if top < 0 { sum.sub(term) } else { sum.add(term) };
        power = power.mul(inverse.square());
    }
    sum.sub(log(product))
}

fn lgamma(x: f64) -> B {
    if x == 1.0 || x == 2.0 {
        return B::ZERO;
    }
    let a = B::from_f64(x.abs());
    if x > 0.0 {
        return lgamma_positive(a);
    }
    let distance = B::from_f64(x - x.round_ties_even());
    let (sine, _) = series_halved(distance.abs().mul(*PI));
    log(PI.div(sine.mul(a))).sub(lgamma_positive(a))
}

fn cbrt(x: B) -> B {
    let third = x.magnitude().div_euclid(3);
    let t = x.abs().shift(-3 * third);
    let mut y = B::from_f64(t.to_f64().cbrt());
    for _ in 0..2 {
        y = y.add(t.sub(y.square().mul(y)).div(y.square().times(3)));
    }
    let y = y.shift(third);
    if x.is_negative { y.neg() } else { y }
}

/// The function at finite arguments inside its domain, where the result is finite or too large for `f64`.
pub(crate) fn value(function: Function, args: &[f64]) -> B {
    let x = args[0];
    let b = B::from_f64(x);
    let signed = |v: B| if x < 0.0 { v.neg() } else { v };
    let half = |v: B| v.shift(-1);
    match function {
        Function::Exp => exp(b),
        Function::Exp2 => exp(b.mul(*LN_2)),
        Function::Expm1 => expm1(b),
        Function::Log => log(b),
        Function::Log2 => log(b).div(*LN_2),
        Function::Log10 => log(b).div(log(B::from_u64(10))),
        Function::Log1p => log1p(b),
        Function::Sin => sine_and_cosine(x).0,
        Function::Cos => sine_and_cosine(x).1,
        Function::Tan => {
            let (s, c) = sine_and_cosine(x);
            s.div(c)
        }
        Function::Asin => signed(angle(b.abs(), one().sub(b).mul(one().add(b)).sqrt())),
        Function::Acos => angle(one().sub(b).mul(one().add(b)).sqrt(), b),
        Function::Atan => signed(angle(b.abs(), one())),
        Function::Atan2 => signed(angle(b.abs(), B::from_f64(args[1]))),
        Function::Sinh => half(expm1(b).sub(expm1(b.neg()))),
        Function::Cosh => half(exp(b).add(exp(b.neg()))),
        Function::Tanh => {
            let e = expm1(b.shift(1));
            e.div(e.add(B::from_u64(2)))
        }
        Function::Asinh => {
            let a = b.abs();
            let root = a.square().add(one()).sqrt();
            signed(log1p(a.add(a.square().div(root.add(one())))))
        }
        Function::Acosh => {
            let d = b.sub(one());
            log1p(d.add(d.mul(b.add(one())).sqrt()))
        }
        Function::Atanh => half(log1p(b.shift(1).div(one().sub(b)))),
        Function::Pow => {
            let size = exp(log(b.abs()).mul(B::from_f64(args[1])));
            if x < 0.0 && args[1] % 2.0 != 0.0 { size.neg() } else { size }
        }
        Function::Cbrt => cbrt(b),
        Function::Hypot => b.square().add(B::from_f64(args[1]).square()).sqrt(),
        Function::Erf => erf(b),
        Function::Erfc => erfc(b),
        Function::Lgamma => lgamma(x),
        Function::Sigmoid => one().div(one().add(exp(b.neg()))),
    }
}

/// The distance of `computed` from `exact`, in units in the last place of `exact` (of the smallest subnormal at least).
/// Infinity counts as the next power of two after the largest number.
pub(crate) fn ulps(computed: f64, exact: B) -> f64 {
    if computed.is_nan() {
        return f64::INFINITY;
    }
    if computed.is_infinite() || exact.magnitude() > 1024 {
        let overflows = exact.magnitude() >= 1024 || exact.abs().to_f64() > 1.797_693_134_862_315_7e308;
        let agrees = computed.is_infinite() && (computed < 0.0) == exact.is_negative;
        return if overflows && agrees { 0.0 } else { f64::INFINITY };
    }
    let difference = B::from_f64(computed).sub(exact);
    if difference.is_zero() {
        return 0.0;
    }
    let unit = (exact.magnitude() - 52).max(-1074);
    let unit = if exact.is_zero() { -1074 } else { unit };
    if difference.magnitude() - unit > 900 {
        return f64::INFINITY;
    }
    if difference.magnitude() - unit < -900 { 0.0 } else { difference.abs().shift(-unit).to_f64() }
}
