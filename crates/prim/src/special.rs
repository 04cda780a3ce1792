//! Digamma and polygamma, which `libm` lacks: the derivatives of the logarithm of the gamma function. And `acosh`, whose
//! domain `libm` does not check.
//!
//! Guarantees: bounded time at every argument, no panic. Relative error about 1e-14, except near the roots that lie at
//! negative arguments, where the error is absolute, and for orders above 170. Methods: recurrence to larger arguments, then the asymptotic series
//! (Abramowitz and Stegun, 6.3.18, 6.4.11, 23.2); reflection for negative arguments.

use std::f64::consts::PI;

/// Bernoulli numbers `B_2, B_4, ..`.
const BERNOULLI: [f64; 10] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
];

/// From here on the asymptotic series of digamma is exact to rounding.
const ASYMPTOTIC_FROM: f64 = 10.0;

/// The positive root of digamma, as the sum of two numbers.
const ROOT: (f64, f64) = (1.4616321449683622, 9.549995429965697e-17);

/// Within this distance of the root the recurrence would cancel, and [`AROUND_ROOT`] is exact to rounding.
const ROOT_RADIUS: f64 = 0.25;

/// Taylor coefficients of digamma at its positive root, from the first power on (computed with 50 digits by mpmath).
const AROUND_ROOT: [f64; 21] = [
    0.9676722454476212,
    -0.4427631689835921,
    0.258499760955651,
    -0.16394270544240652,
    0.10782405069126237,
    -0.07219956125645471,
    0.04880428816414311,
    -0.03316112647484736,
    0.022597648232218104,
    -0.01542476590494896,
    0.010538791616612175,
    -0.007204534386356869,
    0.004926781395729853,
    -0.003369801655439328,
    0.002305126326734928,
    -0.0015769367714301972,
    0.0010788252019162967,
    -0.0007380709389960052,
    0.000504953265834602,
    -0.0003454680251063077,
    0.00023635601564027053,
];

/// Orders above this give NaN: the recurrences are not written for them, and almost all values overflow.
const MAX_ORDER: f64 = 1e6;

/// The logarithmic derivative of the gamma function.
///
/// At 0 it is infinite with the sign of the one-sided limit, at negative integers NaN.
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x == 0.0 {
        return if x.is_sign_negative() { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    if x < 0.0 {
        // The distance to the nearest pole is exact, so the tangent is accurate next to the poles.
        let distance = x - libm::rint(x);
        if distance == 0.0 || x == f64::NEG_INFINITY {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / libm::tan(PI * distance);
    }
    if (x - ROOT.0).abs() < ROOT_RADIUS {
        let distance = (x - ROOT.0) - ROOT.1;
        return distance * AROUND_ROOT.iter().rev().fold(0.0, |sum, c| sum * distance + c);
    }
    let mut shifted = x;
    let mut skipped = 0.0;
    while shifted < ASYMPTOTIC_FROM {
        skipped += 1.0 / shifted;
        shifted += 1.0;
    }
    let inverse_square = 1.0 / (shifted * shifted);
    let mut series = 0.0;
    for (k, b) in BERNOULLI.iter().enumerate().rev() {
        series = (series + b / (2.0 * (k as f64 + 1.0))) * inverse_square;
    }
    libm::log(shifted) - 0.5 / shifted - series - skipped
}

/// The derivative of [`digamma`] of the given order, a whole number (0 is digamma itself); NaN at any other order.
///
/// At its poles (0 and the negative integers) it is infinite if the limits from both sides agree, else NaN.
pub fn polygamma(order: f64, x: f64) -> f64 {
    if !(0.0..=MAX_ORDER).contains(&order) || order != libm::trunc(order) || x.is_nan() {
        return f64::NAN;
    }
    if order == 0.0 {
        return digamma(x);
    }
    let is_odd = libm::fmod(order, 2.0) == 1.0;
    let sign = if is_odd { 1.0 } else { -1.0 };
    let s = order + 1.0;
    if x == f64::INFINITY {
        return sign * 0.0;
    }
    if x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x > 0.0 {
        return sign * scaled_zeta(order, s, x);
    }
    let distance = -x - libm::floor(-x);
    if distance == 0.0 {
        return if is_odd { f64::INFINITY } else { f64::NAN };
    }
    // sum over k >= 0 of (x+k)^-s, split at the sign change: terms with x+k > 0, and a finite sum of terms below,
    // itself the difference of two infinite ones.
    let above = scaled_zeta(order, s, 1.0 - distance);
    let below = scaled_zeta(order, s, distance) - scaled_zeta(order, s, 1.0 - x);
    sign * if is_odd { above + below } else { above - below }
}

/// `order! * zeta(s, x)` for `x > 0` and `s = order + 1`, with the Hurwitz zeta function: `sum over k >= 0 of (x+k)^-s`.
fn scaled_zeta(order: f64, s: f64, x: f64) -> f64 {
    scale(order, s, x) * relative_zeta(s, x)
}

/// `order! * x^-s`, arranged so that no intermediate overflows or underflows unless the result does.
fn scale(order: f64, s: f64, x: f64) -> f64 {
    if order > 170.0 {
        return libm::exp(libm::lgamma(s) - s * libm::log(x));
    }
    let mut product = 1.0 / x;
    let mut j = 1.0;
    while j <= order {
        product *= j / x;
        j += 1.0;
    }
    product
}

/// `x^s * zeta(s, x)`: terms are added one by one up to where the Euler-Maclaurin formula is exact to rounding.
fn relative_zeta(s: f64, x: f64) -> f64 {
    let mut sum = 0.0;
    let mut a = x;
    while a < s + 10.0 {
        let term = libm::pow(x / a, s);
        sum += term;
        a += 1.0;
        if term < 1e-18 * sum {
            return sum;
        }
    }
    let mut tail = a / (s - 1.0) + 0.5;
    // b_2k / (2k)! * s (s+1) .. (s+2k-2) / a^(2k-1)
    let mut factor = s / (2.0 * a);
    for (k, b) in BERNOULLI.iter().enumerate() {
        tail += b * factor;
        let j = 2.0 * (k as f64 + 1.0);
        factor *= (s + j - 1.0) / (a * (j + 1.0)) * ((s + j) / (a * (j + 2.0)));
    }
    sum + libm::pow(x / a, s) * tail
}

/// The inverse of the hyperbolic cosine; NaN below 1, where `libm` gives some number.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The same in single precision.
pub fn acosh_single(x: f32) -> f32 {
    if x < 1.0 { f32::NAN } else { libm::acoshf(x) }
}
