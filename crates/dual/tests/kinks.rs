//! Kinks: sums of kinked terms that are smooth together have the gradient of the smooth function, also at the kinks.

use crate::common::{Random, count};
use pullback_dual::{Dual, Real, Scalar, derivative, grad, gradient_forward, hessian, jvp};

/// A term with kinks, and the smooth function that it equals. `a` and `b` are sums of variables.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Identity {
    /// `max(a, b) + min(a, b) = a + b`
    MaxAndMin,
    /// `2 max(a, b) - |a - b| = a + b`
    MaxAndAbs,
    /// `|a - b| + 2 min(b, a) = a + b`
    AbsAndMin,
    /// `max(a, b) min(a, b) = a b`
    Product,
    /// `max(a, 0)^2 + min(a, 0)^2 = a^2`
    Squares,
    /// `max(0, a) + log(1 + e^-|a|) = log(1 + e^a)`
    Softplus,
    /// `min(a, 0) - log(1 + e^-|a|) = -log(1 + e^-a)`
    LogSigmoid,
    /// `max(a, b) + log(1 + e^-|a - b|) = log(e^a + e^b)`
    LogAddExp,
    /// `max(a, -a) = max(-a, a) = |a|`, of which the square is smooth.
    Magnitudes,
    /// `hypot(a, 0) |a| = a^2`
    Lengths,
    /// `max(a, a) + min(a, a) = 2 a`
    Self_,
}

const IDENTITIES: [Identity; 11] = {
    use Identity::*;
    [
        MaxAndMin, MaxAndAbs, AbsAndMin, Product, Squares, Softplus, LogSigmoid, LogAddExp, Magnitudes,
        Lengths, Self_,
    ]
};

fn kinked<S: Real>(identity: Identity, a: S, b: S) -> S {
    let zero = S::zero;
    let tail = |x: S| (-x.abs()).exp().ln_1p();
    match identity {
        Identity::MaxAndMin => a.max(b) + a.min(b),
        Identity::MaxAndAbs => a.max(b) * 2.0 - (a - b).abs(),
        Identity::AbsAndMin => (a - b).abs() + b.min(a) * 2.0,
        Identity::Product => a.max(b) * b.min(a),
        Identity::Squares => a.max(zero()).powi(2) + zero().min(a).powi(2),
        Identity::Softplus => zero().max(a) + tail(a),
        Identity::LogSigmoid => a.min(zero()) - tail(a),
        Identity::LogAddExp => a.max(b) + tail(a - b),
        Identity::Magnitudes => a.max(-a) * (-a).max(a) + a.min(-a).powi(2) + a.abs() * a.abs(),
        Identity::Lengths => a.hypot(zero()) * a.abs(),
        Identity::Self_ => a.max(a) + a.min(a),
    }
}

fn smooth<S: Real>(identity: Identity, a: S, b: S) -> S {
    match identity {
        Identity::MaxAndMin | Identity::MaxAndAbs | Identity::AbsAndMin => a + b,
        Identity::Product => a * b,
        Identity::Squares | Identity::Lengths => a * a,
        Identity::Softplus => (a.exp() + 1.0).ln(),
        Identity::LogSigmoid => -((-a).exp() + 1.0).ln(),
        Identity::LogAddExp => (a.exp() + b.exp()).ln(),
        Identity::Magnitudes => a * a * 3.0,
        Identity::Self_ => a + a,
    }
}

/// A random sum of terms, each of two sums of variables with small whole weights, so that ties are frequent and exact.
fn sum<S: Real>(seed: u64, x: &[S], term: impl Fn(Identity, S, S) -> S) -> (S, usize) {
    let mut random = Random(seed);
    let (mut total, mut ties) = (S::zero(), 0);
    for _ in 0..6 {
        let mut linear = || {
            let weights: Vec<f64> = x.iter().map(|_| random.below(3) as f64 - 1.0).collect();
            x.iter().zip(weights).map(|(x, w)| *x * w).sum::<S>()
        };
        let (a, b) = (linear(), linear());
        ties += usize::from(a == b || a == S::zero());
        let identity = IDENTITIES[random.below(IDENTITIES.len())];
        total += term(identity, a, b) * (random.below(5) as f64 - 2.0) * 0.25;
    }
    (total, ties)
}

#[test]
fn sums_that_are_smooth_have_the_smooth_gradient() {
    let mut met = 0;
    for seed in 0..count(2000) {
        let mut random = Random(seed ^ 0x7777);
        let x: Vec<f64> = (0..3).map(|_| random.below(5) as f64 - 2.0).collect();
        let expected = grad(|x| sum(seed, x, smooth).0, &x);
        let check = |mode: &str, found: &[f64]| {
            let right = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs()));
            assert!(right, "seed {seed}, {mode}: {found:?}, smooth {expected:?}");
        };
        check("reverse", &grad(|x| sum(seed, x, kinked).0, &x));
        check("forward", &gradient_forward::<2, _, _, _>(|x| sum(seed, x, kinked).0, &x).1);
        // The value of a nest.
        let (inner, _): (Vec<f64>, _) =
            jvp(|x: &Vec<Dual<'_>>| grad(|y| sum(seed, y, kinked).0, x), &x, &x).expect("one shape");
        check("reverse under forward", &inner);
        #[cfg(feature = "parallel")]
        check("parallel", &pullback_dual::parallel::grad(|x| sum(seed, x, kinked).0, &x));
        met += sum(seed, &x, smooth).1;
    }
    assert!(met as u64 > 2 * count(2000), "{met} ties: too few to say anything");
}

/// By hand: halves for both arguments of a tie.
#[test]
fn ties_take_halves() {
    assert_eq!(grad(|&[x, y]| x.max(y), &[1.0, 1.0]), [0.5, 0.5]);
    assert_eq!(grad(|&[x, y]| x.min(y), &[1.0, 1.0]), [0.5, 0.5]);
    assert_eq!(grad(|&[x, y]| x.max(y), &[0.0, -0.0]), [0.5, 0.5]);
    assert_eq!(grad(|&[x, y]| x.min(y), &[f64::INFINITY, f64::INFINITY]), [0.5, 0.5]);
    assert_eq!(grad(|&x| x.max(x), &2.0), 1.0);
    assert_eq!(derivative(|x| x.max(Scalar::from_f64(2.0)), 2.0).1, 0.5);
    assert_eq!(derivative(|x| Dual::constant(2.0f32).min(x), 2.0f32).1, 0.5);
    // Elsewhere the one that is the result has everything; so has the one that is a number.
    assert_eq!(grad(|&[x, y]| x.max(y), &[1.0, 2.0]), [0.0, 1.0]);
    assert_eq!(grad(|&[x, y]| x.min(y), &[1.0, 2.0]), [1.0, 0.0]);
    assert_eq!(grad(|&[x, y]| x.max(y), &[f64::NAN, 1.0]), [0.0, 1.0]);
    assert_eq!(grad(|&[x, y]| x.min(y), &[1.0, f64::NAN]), [1.0, 0.0]);
    assert_eq!(grad(|&[x, y]| x.max(y), &[f64::NAN, f64::NAN]), [1.0, 0.0]);
    // Zeros are ordered, as in the language: -0 is below 0.
    assert!(
        <f64 as Scalar>::max(-0.0, 0.0).is_sign_positive()
            && <f32 as Scalar>::min(0.0, -0.0).is_sign_negative()
    );
    assert_eq!(grad(|x| x.abs(), &0.0), 0.0);
    assert_eq!(derivative(|x| x.abs(), 0.0).1, 0.0);
    // max(x, 0) + log(1 + e^-|x|) is log(1 + e^x): the slope at 0 is 1/2.
    assert_eq!(grad(|x| x.max(Scalar::zero()) + (-x.abs()).exp().ln_1p(), &0.0), 0.5);
    // Second derivatives are those of the constants one half.
    assert_eq!(hessian(|[x, y]| x.max(*y) * x.max(*y), &[1.0, 1.0]), [[0.5, 0.5], [0.5, 0.5]]);
}
