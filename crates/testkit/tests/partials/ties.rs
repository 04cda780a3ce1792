//! Programs with ties. Minimum and maximum of equal numbers give half to each, so that a derivative is the mean of those of two twins,
//! in each of which one number takes it all; in the operators of reductions, scans and histograms they choose, and there is one
//! twin. Second derivatives are compared where something is chosen: those of a mean are not means.

use super::compare::{Mean, put};
use pullback_core::Value;
use pullback_testkit::rng::Rng;

/// What is made of an extremum `@`.
const AROUND: &[&str] = &["@", "f64.sin (@) * w", "(@) * (@)", "w / (2 + f64.exp (@))"];

/// A program with ties, of this seed.
pub(crate) fn program(seed: u64) -> Mean {
    let mut rng = Rng::new(seed);
    // Numbers of a few values, so that many are equal; the largest one is 2, the smallest one 1.
    let n = rng.range(2, 5);
    let mut x: Vec<f64> = (0..n).map(|_| *rng.choose(&[1.0, 1.5, 2.0])).collect();
    for value in [1.0, 2.0] {
        let k = rng.below(n);
        x[k] = value;
    }
    let around = *rng.choose(AROUND);
    let largest = rng.chance(0.5);
    let (extremum, neutral) = if largest { ("max", "(-f64.inf)") } else { ("min", "f64.inf") };
    // A function that calls itself is still called when derivatives are taken.
    let pick = if rng.chance(0.7) {
        format!("def pick (p: f64) (q: f64): f64 = f64.{extremum} p q\n")
    } else {
        format!(
            "def picked (k: i64) (p: f64) (q: f64): f64 = if k <= 0 then f64.{extremum} p q else picked (k - 1) p q\n\
             def pick (p: f64) (q: f64): f64 = picked 1 p q\n"
        )
    };
    let entry = |body: &str| {
        format!(
            "{pick}entry main [n] (x: [n]f64) (w: f64): f64 =\n  let h = \\v -> v * w + v * v\n  in {body}\n"
        )
    };
    let better = |a: f64, b: f64| if largest { a > b } else { a < b };
    // The first and the last of the best of some positions.
    let first =
        |places: &[usize]| places.iter().copied().reduce(|a, b| if better(x[b], x[a]) { b } else { a });
    let last =
        |places: &[usize]| places.iter().copied().reduce(|a, b| if better(x[a], x[b]) { a } else { b });
    let all: Vec<usize> = (0..n).collect();
    let of = |place: Option<usize>| place.map_or("0".to_string(), |k| format!("h x[{k}]"));
    let literal = all.iter().map(|k| format!("h x[{k}]")).collect::<Vec<_>>().join(", ");
    let chosen = |ts: &str| (put(around, ts), put(around, &of(first(&all))));
    let (body, twins) = match rng.below(16) {
        0 => one(chosen(&format!("f64.{extremum}imum (map h x)"))),
        1 => one(chosen(&format!("reduce f64.{extremum} {neutral} (map h x)"))),
        2 => one(chosen(&format!("reduce (\\p q -> f64.{extremum} p q) {neutral} (map h x)"))),
        3 => one(chosen(&format!("reduce pick {neutral} (map h x)"))),
        4 => one(chosen(&format!("f64.{extremum}imum [{literal}]"))),
        5 => one(chosen(&format!("reduce_comm pick {neutral} [{literal}]"))),
        // The first argument is the element on the right.
        6 => one((
            put(around, &format!("reduce (\\p q -> f64.{extremum} q p) {neutral} (map h x)")),
            put(around, &of(last(&all))),
        )),
        7 => {
            let sum = |terms: Vec<String>| format!("{} + 0", terms.join(" + "));
            let prefixes = (1..=n).map(|k| put(around, &of(first(&all[..k]))));
            let ops = *rng.choose(&["pick", "f64."]);
            let op = if ops == "pick" { ops.to_string() } else { format!("f64.{extremum}") };
            let body = format!("f64.sum (map (\\m -> {}) (scan {op} {neutral} (map h x)))", put(around, "m"));
            one((body, sum(prefixes.collect())))
        }
        8 => {
            let (even, odd): (Vec<usize>, Vec<usize>) = all.iter().partition(|k| *k % 2 == 0);
            let far = if largest { "-100" } else { "100" };
            let body = format!(
                "let bins = map (% 2) (iota n) let b = reduce_by_index [{far}, {far}] pick {neutral} bins (map h x) in {} + 2 * b[1]",
                put(around, "b[0]")
            );
            let of_odd = if odd.is_empty() { far.to_string() } else { of(first(&odd)) };
            one((body, format!("{} + 2 * ({of_odd})", put(around, &of(first(&even))))))
        }
        // Together with a sum, which is an operator of its own.
        9 => {
            let body = format!(
                "let (m, s) = reduce (\\(m, s) (v, t) -> (f64.{extremum} m v, s + t)) ({neutral}, 0) (zip (map h x) x) in s * ({})",
                put(around, "m")
            );
            one((body, format!("f64.sum x * ({})", put(around, &of(first(&all))))))
        }
        // With what depends on both.
        10 => {
            let m = format!("f64.{extremum} m v");
            let far = if largest { "-100" } else { "100" };
            let body = format!(
                "let (m, s) = reduce (\\(m, s) (v, t) -> ({m}, s + t + {m} - {m})) ({far}, 0) (zip (map h x) x) in s * ({})",
                put(around, "m")
            );
            one((body, format!("f64.sum x * ({})", put(around, &of(first(&all))))))
        }
        // By columns.
        11 => {
            let body = format!(
                "let r = reduce (map2 pick) [{neutral}, {neutral}] (map (\\v -> [h v, 3 * v]) x) in {} + r[1]",
                put(around, "r[0]")
            );
            let other = first(&all).map_or(String::new(), |k| format!("3 * x[{k}]"));
            one((body, format!("{} + {other}", put(around, &of(first(&all))))))
        }
        // The last one of equal ones is at the end of what is sorted upwards, the first one at its beginning.
        12 => {
            let (at, place) = if largest { ("n - 1", last(&all)) } else { ("0", first(&all)) };
            one((put(around, &format!("(f64.sort (map h x))[{at}]")), put(around, &of(place))))
        }
        // Two equal arguments of the primitive, with different slopes.
        13 => {
            let v = x[0];
            let (a, b) = ("h x[0]".to_string(), format!("(h x[0] + 3 * (x[0] - {v:?}))"));
            let call = *rng.choose(&["pick", "prim"]);
            let call = if call == "pick" { call.to_string() } else { format!("f64.{extremum}") };
            let body = put(around, &format!("{call} ({a}) ({b})"));
            (body, vec![(0.5, put(around, &a)), (0.5, put(around, &b))])
        }
        // A loop takes halves of halves.
        14 => {
            let v = x[0];
            let terms: Vec<String> = (0..3).map(|k| format!("(h x[0] + {k} * (x[0] - {v:?}))")).collect();
            let body = format!(
                "let ts = [{}] let m = loop m = ts[0] for k < 2 do f64.{extremum} m ts[k + 1] in {}",
                terms.join(", "),
                put(around, "m")
            );
            let twins = [0.25, 0.25, 0.5].into_iter().zip(&terms);
            (body, twins.map(|(weight, t)| (weight, put(around, t))).collect())
        }
        // Kinks that are none.
        _ => {
            let v = x[0];
            let u = format!("(w * (x[0] - {v:?}))");
            let sums = [
                (
                    format!("f64.max {u} 0 + f64.log1p (f64.exp (-(f64.abs {u})))"),
                    format!("f64.log (1 + f64.exp {u})"),
                ),
                (format!("f64.max {u} 0 - f64.max (-{u}) 0"), u.clone()),
                (format!("f64.max (h x[0]) {u} + f64.min (h x[0]) {u}"), format!("h x[0] + {u}")),
                (format!("f64.abs {u} - f64.max {u} (-{u})"), "0 * w".to_string()),
            ];
            let (kinked, smooth) = rng.choose(&sums);
            (put(around, kinked), vec![(1.0, put(around, smooth))])
        }
    };
    let kinked = body.contains(" 0 + f64.log1p") || body.contains("f64.max (-") || body.contains("f64.abs");
    let second = twins.len() == 1 && !kinked && !body.contains("+ f64.min");
    let twins = twins.into_iter().map(|(weight, twin)| (weight, entry(&twin))).collect();
    let args = vec![Value::f64s(&x), Value::f64(0.5 + rng.unit())];
    Mean { program: entry(&body), twins, ieee_twins: false, args, second }
}

/// A program with one twin.
fn one((body, twin): (String, String)) -> (String, Vec<(f64, String)>) {
    (body, vec![(1.0, twin)])
}
