//! Random numbers and programs, and how many of them (`COUNT` in the environment).

#![allow(dead_code, reason = "each test uses a part")]

use pullback_dual::Scalar;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// Between -1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        self.next() as f64 / 2f64.powi(63) - 1.0
    }
}

/// How many random cases a test takes: `COUNT`, or so many.
pub(crate) fn count(default: u64) -> u64 {
    std::env::var("COUNT").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The message of the panic of `f`.
#[track_caller]
pub(crate) fn panics<R>(f: impl FnOnce() -> R) -> String {
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).err().expect("a panic");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().map_or_else(String::new, |s| (*s).to_string()),
    }
}

#[track_caller]
pub(crate) fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-10 * (1.0 + a.abs().max(b.abs())), "{a} and {b}");
}

/// A random program of four numbers, determined by the seed, smooth where it is defined and of bounded size.
pub(crate) fn expression<S: Scalar>(seed: u64, x: &[S]) -> S {
    let mut random = Random(seed ^ 0xabcd);
    let mut values = x.to_vec();
    let c = |x: f64| S::from_f64(x);
    for _ in 0..12 {
        // Recent values are likelier, so that data flow on.
        let n = values.len();
        let mut pick = || values[n - 1 - random.below(n).min(random.below(n))];
        let (a, b) = (pick(), pick());
        let squares = a * a + b * b;
        let y = match random.below(32) {
            0 => a + b,
            1 => a - b,
            2 => (a * b).tanh(),
            3 => a / (b * b + c(1.0)),
            4 => a.sin(),
            5 => a.cos(),
            6 => a.tanh().exp(),
            7 => (squares + c(0.5)).ln(),
            8 => (squares + c(0.5)).sqrt(),
            9 => a.atan(),
            10 => a.tanh().asin() * c(0.5),
            11 => a.tanh().acos() * c(0.5),
            12 => a.tanh().sinh(),
            13 => a.tanh().cosh(),
            14 => a.asinh(),
            15 => (squares + c(1.5)).acosh(),
            16 => (a.tanh() * c(0.9)).atanh(),
            17 => a.sigmoid(),
            18 => (squares + c(0.5)).recip(),
            19 => (squares + c(0.5)).cbrt(),
            20 => a.tanh().exp2(),
            21 => a.tanh().exp_m1(),
            22 => (squares + c(0.5)).log2(),
            23 => (squares + c(0.5)).log10(),
            24 => squares.ln_1p(),
            25 => a.tanh().tan(),
            26 => (squares + c(0.5)).pow(b.tanh()),
            27 => a.atan2(squares + c(0.5)),
            28 => a.hypot(b + c(2.0)).ln_1p(),
            29 => a.tanh().powi(3) + (squares + c(0.5)).powf(S::constant_of(1.5)).tanh(),
            30 => S::dot(&[a, b, a], &[b, x[0], x[1]]).tanh() + S::total(&values).tanh(),
            _ => (-a).max(b * c(1.25)) + a.abs().min(c(2.0) - b),
        };
        values.push(y);
    }
    S::total(&values)
}

trait ConstantOf: Scalar {
    fn constant_of(x: f64) -> Self::Float;
}
impl<S: Scalar> ConstantOf for S {
    fn constant_of(x: f64) -> S::Float {
        <S::Float as pullback_dual::Float>::of_f64(x)
    }
}
