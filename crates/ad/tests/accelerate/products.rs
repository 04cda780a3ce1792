//! Arguments and results that are products. Expected numbers are calculated by hand.

use super::translated::{derived, f, fs, refused, results};
use crate::common::{add_vjp, mismatch_of};
use pullback_ad::accelerate::from_core::VARIANTS;
use pullback_ad::fast_chad::Config;
use pullback_core::Value;
use pullback_interp::core::{Options, run};

/// ((a, (x, k)), y) becomes (a x, (x y, k)) and the product of x and all elements; k is an integer.
const TEXT: &str = "fun f(p: ([]f64, (f64, i64)), y: f64): ([]f64, (f64, i64)), f64 {
    let a: []f64 = proj(p, 0)
    let q: (f64, i64) = proj(p, 1)
    let n: i64 = size(a, 0)
    let b: []f64 = map n [a] (v: f64) {
        let x: f64 = proj(q, 0)
        let w: f64 = mul.f64(v, x)
        in w
    }
    let x2: f64 = proj(q, 0)
    let k: i64 = proj(q, 1)
    let z: f64 = mul.f64(x2, y)
    let inner: (f64, i64) = tuple(z, k)
    let r: ([]f64, (f64, i64)) = tuple(b, inner)
    let t: f64 = reduce n [x2] [a] (u: f64, v2: f64) { let o: f64 = mul.f64(u, v2) in o }
    in r, t
}";

fn product(xs: &[f64], x: f64, k: Value) -> Value {
    Value::Tuple(vec![fs(xs), Value::Tuple(vec![f(x), k])])
}

#[test]
fn products_are_arguments_and_results() {
    let unit = Value::Tuple(Vec::new());
    let args = [
        product(&[2.0, 3.0], 5.0, Value::i64(4)),
        f(7.0),
        product(&[1.0, 10.0], 100.0, unit.clone()),
        f(1000.0),
    ];
    let found = results(TEXT, &args);
    // (10, 15), 35 and 5 2 3.
    assert_eq!(found[..2], [product(&[10.0, 15.0], 35.0, Value::i64(4)), f(30.0)]);
    // By a: 5 + 15 1000, 50 + 10 1000; by x: 2 + 30 + 700 + 6 1000; by y: 500.
    assert_eq!(found[2..], [product(&[15005.0, 10050.0], 6732.0, unit), f(500.0)]);
}

/// (x, y) becomes (x^2 y, y).
#[test]
fn components_of_one_type_keep_their_places() {
    let text = "fun f(p: (f64, f64)): (f64, f64) {
        let x: f64 = proj(p, 0)
        let y: f64 = proj(p, 1)
        let s: f64 = mul.f64(x, x)
        let t: f64 = mul.f64(s, y)
        let r: (f64, f64) = tuple(t, y)
        in r
    }";
    let pair = |x: f64, y: f64| Value::Tuple(vec![f(x), f(y)]);
    let found = results(text, &[pair(3.0, 5.0), pair(1.0, 10.0)]);
    assert_eq!(found, [pair(45.0, 5.0), pair(30.0, 19.0)]);
}

#[test]
fn products_are_right_at_all_sizes() {
    for size in 0..=20 {
        let xs: Vec<f64> = (0..size).map(|k| 0.5 + 0.1 * k as f64).collect();
        let args = [product(&xs, 1.5, Value::i64(3)), f(0.75)];
        for variant in 0..VARIANTS.len() {
            let (mut program, main, g) = derived(TEXT, variant).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(mismatch_of(&program, main, g, &args), None);
            let seeds = [product(&xs, 2.0, Value::Tuple(Vec::new())), f(3.0)];
            let all = [&args[..], &seeds].concat();
            let fast = add_vjp(&mut program, main, &Config::default()).expect("supported");
            let [ours, fast] =
                [g, fast].map(|f| run(&program, f, all.clone(), &Options::default()).expect("runs"));
            let floats = |values: &[Value]| values.iter().flat_map(Value::floats).collect::<Vec<f64>>();
            let (ours, fast) = (floats(&ours.results), floats(&fast.results));
            assert_eq!(ours.len(), fast.len());
            assert!(
                ours.iter().zip(&fast).all(|(x, y)| (x - y).abs() <= 1e-9 * y.abs().max(1.0)),
                "{ours:?} {fast:?}"
            );
        }
    }
}

/// A product that is no argument of the derivative is read in an inner body; a product without floats has no adjoint.
#[test]
fn products_that_do_not_vary() {
    let text = "fun f(p: (i64, (i64, i64)), a: []f64): []f64, (i64, i64) {
        let q: (i64, i64) = proj(p, 1)
        let n: i64 = size(a, 0)
        let b: []f64 = map n [a] (v: f64) {
            let k: i64 = proj(q, 1)
            let c: f64 = convert.i64.f64(k)
            let w: f64 = mul.f64(v, c)
            in w
        }
        in b, q
    }";
    let whole = |k: i64| Value::Tuple(vec![Value::i64(k), Value::i64(3)]);
    let args = [Value::Tuple(vec![Value::i64(1), whole(2)]), fs(&[1.0, 2.0]), fs(&[1.0, 10.0])];
    assert_eq!(results(text, &args), [fs(&[3.0, 6.0]), whole(2), fs(&[3.0, 30.0])]);
}

#[test]
fn arrays_of_products_are_refused() {
    let text = "fun f(a: [](f64, f64)): f64 { let p: (f64, f64) = a[0i64] let x: f64 = proj(p, 0) in x }";
    assert_eq!(refused(text), "an array of products");
}
