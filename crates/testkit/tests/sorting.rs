//! Sorting and selecting against the standard library's stable sort, and what their gradients cost.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_core::Value;
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::{Counts, Options};

const PROGRAM: &str = "
entry sorted [n] (xs: [n]f64) : [n]f64 = f64.sort xs
entry positions [n] (xs: [n]f64) : [n]i64 = f64.argsort xs
entry by_key [n] (xs: [n]f64) : [n]f64 = sort_by_key (\\x -> f64.abs x) (>=) xs
entry kept [n] (xs: [n]f64) : f64 = f64.sum (map (\\x -> x * x) (filter (> 0.1) xs))
entry parted [n] (xs: [n]f64) : f64 =
  let (a, b) = partition (> 0.1) xs in f64.sum (map (\\x -> x * x) a) + f64.sum (map f64.sin b)
";

fn session() -> Session {
    Session::compile("program.fut", PROGRAM, Settings::default()).map_err(|e| e.render()).unwrap()
}

/// Results and cost of an entry point and of its reverse derivative with these cotangents.
fn run(session: &Session, entry: &str, xs: &[f64], bar: Option<Value>) -> (Vec<Value>, Counts) {
    let entry = session.entry(Some(entry)).unwrap();
    let mut args = vec![Value::f64s(xs)];
    let ready = match &bar {
        None => session.primal(&entry),
        Some(_) => {
            let wanted = session.select(&entry, &Wrt::default()).unwrap();
            session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {})
        }
    };
    args.extend(bar);
    let out = ready.map_err(|d| d.render(&session.sources)).unwrap().run(&args, &Options::default()).unwrap();
    (out.results, out.counts)
}

/// Numbers of which many are equal, and with `odd` some that are special.
fn numbers(n: usize, seed: u64, odd: bool) -> Vec<f64> {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0];
    (0..n)
        .map(|_| match below(12) {
            0 if odd => special[below(5) as usize],
            _ => (below(40) as f64 - 20.0) / 8.0,
        })
        .collect()
}

/// The positions in sorted order: NaN last, 0 and -0 equal, stable.
fn positions(xs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..xs.len()).collect();
    order.sort_by(|&i, &j| xs[i].partial_cmp(&xs[j]).unwrap_or_else(|| xs[i].is_nan().cmp(&xs[j].is_nan())));
    order
}

#[test]
fn sorting_agrees_with_the_standard_library() {
    let session = session();
    for seed in 0..60 {
        let xs = numbers(seed as usize, seed, true);
        let expected = positions(&xs);
        let places: Vec<i64> = expected.iter().map(|&i| i as i64).collect();
        assert_eq!(run(&session, "positions", &xs, None).0, [Value::i64s(&places)], "{xs:?}");
        let sorted: Vec<u64> = expected.iter().map(|&i| xs[i].to_bits()).collect();
        let found: Vec<u64> =
            run(&session, "sorted", &xs, None).0[0].floats().iter().map(|x| x.to_bits()).collect();
        assert_eq!(found, sorted, "{xs:?}");
    }
}

#[test]
fn the_cotangent_is_permuted_back() {
    let session = session();
    for seed in 0..40 {
        let xs = numbers(1 + seed as usize, seed, false);
        let bar: Vec<f64> = (0..xs.len()).map(|i| (i as f64 + 1.0).sqrt()).collect();
        let check = |entry: &str, order: Vec<usize>| {
            let mut expected = vec![0.0; xs.len()];
            order.iter().zip(&bar).for_each(|(&i, b)| expected[i] = *b);
            let (results, _) = run(&session, entry, &xs, Some(Value::f64s(&bar)));
            assert_eq!(results[1].floats(), expected, "{entry} {xs:?}");
        };
        check("sorted", positions(&xs));
        let mut largest_first: Vec<usize> = (0..xs.len()).collect();
        largest_first.sort_by(|&i, &j| xs[j].abs().total_cmp(&xs[i].abs()));
        check("by_key", largest_first);
    }
}

/// The reverse sweep of sorting is one permutation: a gradient costs little more than the sort; of selections a constant
/// times.
#[test]
fn gradients_cost_a_constant_factor() {
    let session = session();
    let ratio = |entry: &str, n: usize| {
        let xs = numbers(n, 3, false);
        let bar =
            if matches!(entry, "sorted" | "by_key") { Value::f64s(&vec![1.0; n]) } else { Value::f64(1.0) };
        let (_, plain) = run(&session, entry, &xs, None);
        let (_, derived) = run(&session, entry, &xs, Some(bar));
        derived.work as f64 / plain.work as f64
    };
    for (entry, most) in [("sorted", 1.3), ("by_key", 1.4), ("kept", 3.5), ("parted", 3.5)] {
        let (small, medium, large) = (ratio(entry, 64), ratio(entry, 256), ratio(entry, 1024));
        assert!(medium <= 1.1 * small && large <= 1.1 * medium, "{entry}: {small} {medium} {large}");
        assert!(large <= most, "{entry}: {large}");
    }
}

/// Work `n log² n`: eight times the elements are at most sixteen times the work here, and far from sixty-four.
#[test]
fn sorting_takes_little_more_than_linear_work() {
    let session = session();
    let work = |n: usize| run(&session, "sorted", &numbers(n, 5, false), None).1.work as f64;
    let (small, large) = (work(256), work(2048));
    assert!(large <= 16.0 * small, "{small} {large}");
    let depth = run(&session, "sorted", &numbers(2048, 5, false), None).1.span;
    assert!(depth < 11 * 11 * 40, "{depth} steps on the longest chain");
}
