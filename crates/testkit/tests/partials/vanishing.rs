//! Programs in which a tangent or cotangent is exactly zero and varies, in front of a partial derivative that is finite. A zero that
//! stops there must be a factor as any other: its own derivative times the slope is not zero. A comparison with zero in the place of
//! a product gives the same numbers in the first order, and loses the next one. Twins multiply as IEEE numbers.

use super::compare::{Mean, put};
use super::not_taken::{SPOILERS, Spoiler};
use pullback_core::Value;
use pullback_testkit::rng::Rng;

/// How many contexts there are.
const CONTEXTS: usize = 11;

/// A program with a zero, `d`, of this seed.
pub(crate) fn program(seed: u64) -> Mean {
    let mut rng = Rng::new(seed);
    let spoiler = rng.choose(SPOILERS);
    let near = |rng: &mut Rng| spoiler.regular * (1.0 + 0.05 * rng.signed());
    let x: Vec<f64> = (0..rng.range(1, 4)).map(|_| near(&mut rng)).collect();
    let w = 0.5 + rng.unit();
    let body = context(rng.below(CONTEXTS), spoiler);
    let program = format!("entry main [n] (x: [n]f64) (w: f64): f64 =\n  let d = w - {w:?}\n  in {body}\n");
    let args = vec![Value::f64s(&x), Value::f64(w)];
    Mean { twins: vec![(1.0, program.clone())], program, ieee_twins: true, args, second: true }
}

/// A body in which the zero stands before the slope of the term.
fn context(number: usize, spoiler: &Spoiler) -> String {
    let t = |v: &str| format!("({})", put(spoiler.term, v));
    let sum = |f: &str| format!("f64.sum (map (\\v -> {f}) x)");
    match number {
        // A cotangent.
        0 => sum(&format!("d * {}", t("v"))),
        1 => sum(&format!("let s = {} in (s + d) * d", t("v"))),
        // An outer slope that is zero, of a square and of a cosine.
        2 => sum(&format!("let s = {} + w in let e = s - stop_gradient s in f64.cos e + e * e", t("v"))),
        3 => format!("loop p = 1.0 for v in x do p + d * {} * p", t("v")),
        4 => {
            format!("let ss = scan (+) 0 (map (\\v -> {}) x) in d * f64.sum (map (\\p -> p * p) ss)", t("v"))
        }
        5 => format!(
            "let h = reduce_by_index [w, 0] (+) 0 (map (% 2) (iota n)) (map (\\v -> {}) x) in d * h[0] + w * h[1]",
            t("v")
        ),
        // Rules that divide, and those that multiply Jacobians.
        6 => "d * f64.product x".to_string(),
        7 => "d * (reduce_by_index [w] (*) 1 (map (\\_ -> 0) x) x)[0]".to_string(),
        8 => "d * f64.sum (scan (\\p v -> f64.sqrt (p * p + v * v)) 0.5 x)".to_string(),
        // A tangent, and a cotangent of a derivative.
        9 => sum(&format!("jvp (\\y -> {}) v d", t("y"))),
        _ => sum(&format!("vjp (\\y -> d * {}) v w", t("y"))),
    }
}
