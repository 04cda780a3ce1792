//! Programs that compute a value whose partial derivatives are infinite or no number, and then do not take it. Their twins compute the
//! value at a harmless point instead (the "double where"), so that their derivatives need no rule about zero and infinity.
//!
//! What a term may do with the value before it is dropped depends on how far the guarantee goes (`docs/book/kinks.md`): an
//! infinite *value* may be added to, but not multiplied; second derivatives are compared where the value is finite, and only scaled
//! by constants and added to. A tangent of zero is one of the value itself: behind products it would meet an infinite cotangent.

use super::compare::{Mean, put};
use pullback_core::Value;
use pullback_testkit::rng::Rng;

/// A term with a point where its partial derivatives are not finite.
pub(crate) struct Spoiler {
    /// The term; `@` is the argument.
    pub(crate) term: &'static str,
    /// The point.
    edge: f64,
    /// A point where it is smooth.
    pub(crate) regular: f64,
    /// What distinguishes the regular points around.
    safe: &'static str,
    /// Whether the value at the edge is finite.
    finite: bool,
}

const fn spoiler(term: &'static str, edge: f64, regular: f64, safe: &'static str, finite: bool) -> Spoiler {
    Spoiler { term, edge, regular, safe, finite }
}

pub(crate) const SPOILERS: &[Spoiler] = &[
    spoiler("f64.sqrt @", 0.0, 2.0, "@ > 0", true),
    spoiler("f64.cbrt @", 0.0, 1.5, "@ > 0", true),
    spoiler("f64.asin @", 1.0, 0.4, "@ < 1", true),
    spoiler("f64.acos @", -1.0, 0.3, "@ > -1", true),
    spoiler("f64.acosh @", 1.0, 1.8, "@ > 1", true),
    spoiler("@ ** 0.5", 0.0, 1.7, "@ > 0", true),
    spoiler("f64.pow @ 0.25", 0.0, 0.6, "@ > 0", true),
    spoiler("f64.atan2 @ (@ + @ * @)", 0.0, 0.8, "@ > 0", true),
    spoiler("f64.sqrt (@ * @)", 0.0, 1.1, "@ > 0", true),
    spoiler("f64.sqrt (f64.sqrt @)", 0.0, 1.3, "@ > 0", true),
    spoiler("f64.acos (f64.cos @)", 0.0, 1.2, "@ > 0", true),
    spoiler("f64.log @", 0.0, 1.4, "@ > 0", false),
    spoiler("f64.log2 @", 0.0, 2.5, "@ > 0", false),
    spoiler("f64.log1p (-@)", 1.0, 0.5, "@ < 1", false),
    spoiler("f64.log (f64.sqrt @)", 0.0, 0.7, "@ > 0", false),
    spoiler("f64.log @", -1.0, 1.4, "@ > 0", false),
    spoiler("f64.sqrt @", -2.0, 1.9, "@ > 0", false),
    spoiler("1 / @", 0.0, 1.6, "@ > 0", false),
    spoiler("@ / @", 0.0, 2.1, "@ > 0", false),
    spoiler("1 / f64.sqrt @", 0.0, 2.2, "@ > 0", false),
    spoiler("@ ** (-1.5)", 0.0, 1.2, "@ > 0", false),
    spoiler("f64.atanh @", 1.0, 0.3, "@ < 1", false),
    spoiler("f64.exp @", 1000.0, 0.9, "@ < 700", false),
    spoiler("f64.log1p (f64.exp @)", 1000.0, 1.1, "@ < 700", false),
    spoiler("f64.cosh @", -1000.0, 0.8, "@ > -700", false),
    spoiler("f64.lgamma @", 0.0, 2.6, "@ > 0", false),
];

/// What is done with a value before it is dropped: whether it may be infinite, and whether that is linear with constants.
const WRAPPERS: &[(&str, bool, bool)] = &[
    ("@", true, true),
    ("2.5 * @", true, true),
    ("(@ + 0.5)", true, true),
    ("(1 - @)", true, true),
    ("(w + @)", true, true),
    ("w * @", false, false),
    ("@ * @", false, false),
    ("f64.sin @", false, false),
    ("f64.exp (0.5 * @) * w", false, false),
    ("(@ + w) / (2 + @ * @)", false, false),
];

/// What is taken instead.
const OTHERS: &[&str] = &["w * @", "0", "f64.cos @ + w", "@ * @"];

/// A program that drops a value, of this seed.
pub(crate) fn program(seed: u64) -> Mean {
    let mut rng = Rng::new(seed);
    let number = rng.below(CONTEXTS);
    let is_derivative = number >= FIRST_DERIVATIVE;
    let usable: Vec<_> = WRAPPERS.iter().filter(|w| w.2 || !is_derivative).collect();
    let wrapper = *rng.choose(&usable);
    let fits = |s: &&Spoiler| {
        let alone = number != FIRST_DERIVATIVE || !s.term.contains('(');
        s.finite && alone || wrapper.1 && !is_derivative
    };
    let usable: Vec<&Spoiler> = SPOILERS.iter().filter(fits).collect();
    let spoiler = *rng.choose(&usable);
    let other = *rng.choose(OTHERS);
    let n = rng.range(1, 4);
    let at = rng.below(n);
    let mut x = |k: usize| {
        let edge = k == at || rng.chance(0.3);
        if edge { spoiler.edge } else { spoiler.regular * (1.0 + 0.05 * rng.signed()) }
    };
    let x: Vec<f64> = (0..n).map(&mut x).collect();
    let args = vec![Value::f64s(&x), Value::f64(0.5 + rng.unit())];
    let (body, twin) = context(number, spoiler, wrapper.0, other, &x);
    let entry = |body: String| format!("entry main [n] (x: [n]f64) (w: f64): f64 =\n  {body}\n");
    Mean {
        program: entry(body),
        twins: vec![(1.0, entry(twin))],
        ieee_twins: false,
        args,
        second: wrapper.2 && spoiler.finite && !is_derivative,
    }
}

/// The number of contexts; from this one on they are derivatives, which are differentiated once more.
const CONTEXTS: usize = 13;
const FIRST_DERIVATIVE: usize = 11;

/// Bodies of program and twin: how the value comes to be dropped.
fn context(number: usize, spoiler: &Spoiler, wrapper: &str, other: &str, x: &[f64]) -> (String, String) {
    let safe = |v: &str| put(spoiler.safe, v);
    let other = |v: &str| format!("({})", put(other, v));
    let full = |v: &str| put(wrapper, &format!("({})", put(spoiler.term, v)));
    let regular = spoiler.regular;
    let guarded = |v: &str| format!("(if {} then {v} else {regular})", safe(v));
    let full_guarded = |v: &str| format!("(let g = {} in {})", guarded(v), full("g"));
    // The value at `v` where that is safe, else something else.
    let chosen = |v: &str, value: &str| format!("(if {} then {value} else {})", safe(v), other(v));
    let kept = |v: &str| chosen(v, &full_guarded(v));
    let sum = |f: &str| format!("f64.sum (map (\\v -> {f}) x)");
    match number {
        // Chosen by a conditional, in an element.
        0 => (sum(&format!("let s = {} in {}", full("v"), chosen("v", "s"))), sum(&kept("v"))),
        // A mask over an array of all values.
        1 => {
            let body =
                format!("f64.sum (map2 (\\v s -> {}) x (map (\\v -> {}) x))", chosen("v", "s"), full("v"));
            (body, sum(&kept("v")))
        }
        // Elements of an array that nobody reads.
        2 => {
            let body = format!(
                "let ss = map (\\v -> {}) x in f64.sum (map (\\i -> let v = x[i] in if {} then ss[i] else {}) (iota n))",
                full("v"),
                safe("v"),
                other("v")
            );
            (body, sum(&kept("v")))
        }
        // A state of a loop.
        3 => {
            let step = |value: String| {
                format!(
                    "loop p = w for v in x do let s = {value} in if {} then p * 0.5 + s else p * 0.75 + {}",
                    safe("v"),
                    other("v")
                )
            };
            (step(full("v")), step(full_guarded("v")))
        }
        // Under a scan.
        4 => {
            let of = |f: &str| format!("f64.sum (map (\\p -> p * p) (scan (+) 0 (map (\\v -> {f}) x)))");
            (of(&format!("let s = {} in {}", full("v"), chosen("v", "s"))), of(&kept("v")))
        }
        // A bin of a histogram that is not read.
        5 => {
            let bins = format!("(map (\\v -> if {} then 0 else 1) x)", safe("v"));
            let body =
                format!("let h = reduce_by_index [w, 0] (+) 0 {bins} (map (\\v -> {}) x) in h[0]", full("v"));
            let twin = sum(&format!("if {} then {} else 0", safe("v"), full_guarded("v")));
            (body, format!("w + {twin}"))
        }
        // Filtered away.
        6 => {
            let body = format!(
                "let ss = map (\\v -> {}) x in f64.sum (map (\\p -> p.1) (filter (\\p -> {}) (zip x ss)))",
                full("v"),
                safe("p.0")
            );
            let twin = sum(&format!("if {} then {} else 0", safe("v"), full_guarded("v")));
            (body, twin)
        }
        // Overwritten.
        7 => {
            let places = format!("(map2 (\\i v -> if {} then -1 else i) (iota n) x)", safe("v"));
            let body = format!(
                "let ss = map (\\v -> {}) x in f64.sum (scatter ss {places} (map (\\v -> {}) x))",
                full("v"),
                other("v")
            );
            (body, sum(&kept("v")))
        }
        // A norm at the origin: the distance of all from where they are.
        8 => {
            let here: Vec<String> = x.iter().map(|v| format!("{v:?}")).collect();
            let norm = format!(
                "let r = f64.sqrt (f64.sum (map2 (\\v c -> (v - c) * (v - c)) x ([{}] :> [n]f64))) in ",
                here.join(", ")
            );
            let body = format!("{norm}if r > 0 then {} else w * w", put(wrapper, "(f64.sqrt r)"));
            (body, "w * w".to_string())
        }
        // A payload that no arm reads.
        9 => {
            let of = |value: String| {
                sum(&format!(
                    "let s = {value} let e: #some f64 | #none = if {} then #some s else #none in match e case #some s -> s case #none -> {}",
                    safe("v"),
                    other("v")
                ))
            };
            (of(full("v")), of(full_guarded("v")))
        }
        // Rows of a matrix, chosen row by row.
        10 => {
            let of = |value: String| {
                format!(
                    "f64.sum (map (\\row -> f64.sum (map2 (\\v s -> {}) x row)) (map (\\c -> map (\\v -> {value} + c) x) [w, 1.5]))",
                    chosen("v", "s")
                )
            };
            (of(full("v")), of(full_guarded("v")))
        }
        // Taken, but nothing varies along it: tangents and cotangents that are zero when the program runs.
        11 => {
            let body = format!(
                "let (_, dots) = jvp2 (\\y -> map (\\v -> {}) y) x (map (\\_ -> 0) x) in w * w + f64.sum dots",
                full("v")
            );
            (body, "w * w".to_string())
        }
        _ => {
            let body = format!(
                "let bars = vjp (\\y -> map (\\v -> {}) y) x (map (\\_ -> 0) x) in w * w + f64.sum bars",
                full("v")
            );
            (body, "w * w".to_string())
        }
    }
}
