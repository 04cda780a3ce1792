//! Histograms of core by every kind of operator, at sizes 0 to 20 and in all variants, against forward mode, Fast CHAD and differences. Those by hand are in `permutes`.

use super::gradients::is_near;
use super::translated::derived;
use crate::common::{Numbers, add_vjp, mismatch_of};
use pullback_ad::accelerate::from_core::VARIANTS;
use pullback_ad::fast_chad::Config;
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::{Options, run};

/// The results of a function of three vectors: a target, places and values, and of a factor.
pub(super) fn function(operator: &str) -> String {
    format!(
        "fun f(a: []f64, is: []i64, vs: []f64, c: f64): []f64 {{
            let n: i64 = size(is, 0)
            {operator}
            in b
        }}"
    )
}

fn closed(operation: &str, neutral: &str) -> String {
    function(&format!(
        "let b: []f64 = hist n [{neutral}] [a] is [vs] (x: f64, y: f64) {{ let t: f64 = {operation} in t }}"
    ))
}

/// 1 + c r is a product where r = x + y + c x y: the operator reads what varies.
const READS: &str = "let b: []f64 = hist n [0.0f64] [a] is [vs] (x: f64, y: f64) {
    let p: f64 = mul.f64(x, y)
    let q: f64 = mul.f64(c, p)
    let s: f64 = add.f64(x, y)
    let t: f64 = add.f64(q, s)
    in t
}";

/// The larger number, and its weight: elements are pairs.
const PAIRS: &str = "let m: i64 = size(a, 0)
    let cs: []f64 = replicate([m], c)
    let ws: []f64 = map n [vs] (v: f64) { let w: f64 = sin.f64(v) in w }
    let l: []f64, b: []f64 = hist n [-f64.inf, 0.0f64] [a, cs] is [vs, ws] (x: f64, p: f64, y: f64, q: f64) {
        let stays: bool = le.f64(y, x)
        let t: f64 = select.f64(stays, x, y)
        let z: f64 = select.f64(stays, p, q)
        in t, z
    }";

/// In a row for each value: products, and then their sums.
const NEST: &str = "let bs: [][]f64 = map n [vs] (v: f64) {
        let ws: []f64 = map n [vs] (u: f64) { let w: f64 = mul.f64(u, v) in w }
        let h: []f64 = hist n [1.0f64] [a] is [ws] (x: f64, y: f64) { let t: f64 = mul.f64(x, y) in t }
        let g: []f64 = hist n [-f64.inf] [h] is [ws] (x2: f64, y2: f64) { let t2: f64 = max.f64(x2, y2) in t2 }
        in g
    }
    let m: i64 = size(a, 0)
    let zeros: []f64 = replicate([m], 0.0f64)
    let b: []f64 = reduce n [zeros] [bs] (xs: []f64, ys: []f64) {
        let s: []f64 = map m [xs, ys] (p: f64, q: f64) { let t3: f64 = add.f64(p, q) in t3 }
        in s
    }";

/// Rows of two, by products of their elements.
const ROWS: &str = "let m: i64 = size(a, 0)
    let ones: []f64 = replicate([2i64], 1.0f64)
    let rows: [][]f64 = map m [a] (x: f64) { let r: []f64 = array(x, c): f64 in r }
    let ws: [][]f64 = map n [vs] (v: f64) { let d: f64 = add.f64(v, c) let k: []f64 = array(v, d): f64 in k }
    let hs: [][]f64 = hist n [ones] [rows] is [ws] (xs: []f64, ys: []f64) {
        let s: []f64 = map 2i64 [xs, ys] (p: f64, q: f64) { let t: f64 = mul.f64(p, q) in t }
        in s
    }
    let b: []f64 = map m [hs] (h: []f64) { let y: f64 = h[0i64] let z: f64 = h[1i64] let u: f64 = add.f64(y, z) in u }";

fn outputs(program: &Program, f: FunId, args: &[Value]) -> Vec<f64> {
    let out = run(program, f, args.to_vec(), &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
    out.results.iter().flat_map(Value::floats).collect()
}

/// Target, places, values and a factor. Some places are outside; of numbers that are halves some are equal, and some are zero.
pub(super) fn arguments(size: usize, bins: usize, halves: bool) -> Vec<Value> {
    let mut random = Numbers((size * 31 + bins) as u64);
    let mut numbers = |n: usize| -> Vec<f64> {
        let one = |x: f64| if halves { (x * 3.0).round() / 2.0 } else { x };
        (0..n).map(|_| one(random.next())).collect()
    };
    let places: Vec<f64> = numbers(size);
    let places: Vec<i64> = places.iter().map(|x| ((x + 1.1) / 2.0 * bins as f64).floor() as i64).collect();
    vec![Value::f64s(&numbers(bins)), Value::i64s(&places), Value::f64s(&numbers(size)), Value::f64(0.75)]
}

/// The derivative of the sum of the results, weighted, along a direction, by central differences.
fn slope(program: &Program, f: FunId, args: &[Value], seeds: &[f64], along: &[Vec<f64>]) -> f64 {
    let h = 1e-6;
    let moved = |by: f64| -> f64 {
        let mut along = along.iter();
        let args: Vec<Value> = args
            .iter()
            .map(|v| match v.floats() {
                xs if xs.is_empty() => v.clone(),
                xs => {
                    let d = along.next().expect("a direction for each argument of floats");
                    let xs: Vec<f64> = xs.iter().zip(d).map(|(x, d)| x + by * d).collect();
                    if matches!(v, Value::Scalar(_)) { Value::f64(xs[0]) } else { Value::f64s(&xs) }
                }
            })
            .collect();
        outputs(program, f, &args).iter().zip(seeds).map(|(y, w)| y * w).sum()
    };
    (moved(h) - moved(-h)) / (2.0 * h)
}

/// The derivatives in all variants are those of forward mode and of Fast CHAD, and of differences where the function is smooth.
pub(super) fn compare(text: &str, args: &[Value], is_smooth: bool) {
    let mut expected = None;
    for variant in 0..VARIANTS.len() {
        let (mut program, f, g) = derived(text, variant).unwrap_or_else(|e| panic!("{e}: {text}"));
        if let Some(why) = mismatch_of(&program, f, g, args) {
            panic!("variant {variant}, {args:?}: {why}\n{text}");
        }
        let bins = args[0].floats().len();
        let seeds: Vec<f64> = (0..bins).map(|k| 1.0 + 0.25 * k as f64).collect();
        let all = [args, &[Value::f64s(&seeds)]].concat();
        let found = outputs(&program, g, &all);
        let fast = expected.get_or_insert_with(|| {
            let fast = add_vjp(&mut program, f, &Config::default()).expect("supported");
            outputs(&program, fast, &all)
        });
        let is_same =
            found.len() == fast.len() && found.iter().zip(fast.iter()).all(|(x, y)| is_near(*x, *y, 1e-9));
        assert!(is_same, "variant {variant}, {args:?}: {found:?}, Fast CHAD {fast:?}\n{text}");
        if is_smooth {
            let mut random = Numbers(5);
            let floats: Vec<Vec<f64>> = args.iter().map(Value::floats).filter(|xs| !xs.is_empty()).collect();
            let along: Vec<Vec<f64>> =
                floats.iter().map(|xs| xs.iter().map(|_| random.next()).collect()).collect();
            let ours: f64 = found[bins..].iter().zip(along.iter().flatten()).map(|(x, d)| x * d).sum();
            let numeric = slope(&program, f, args, &seeds, &along);
            assert!(
                is_near(ours, numeric, 1e-5),
                "variant {variant}, {args:?}: {ours}, differences {numeric}\n{text}"
            );
        }
    }
}

/// Of which results are smooth where the numbers are no halves.
fn all_kinds() -> Vec<String> {
    vec![
        closed("mul.f64(x, y)", "1.0f64"),
        closed("max.f64(x, y)", "-f64.inf"),
        closed("min.f64(x, y)", "f64.inf"),
        function(READS),
        function(PAIRS),
        function(NEST),
        function(ROWS),
    ]
}

#[test]
fn histograms_by_every_operator_are_right_at_all_sizes() {
    for text in all_kinds() {
        for size in 0..=20 {
            let bins = [0, 1, 2, 5, 9][size % 5];
            compare(&text, &arguments(size, bins, false), true);
        }
        compare(&text, &arguments(20, 20, false), true);
    }
}

/// Equal numbers, and products with zeros.
#[test]
fn histograms_with_ties_and_zeros_are_right() {
    for text in all_kinds() {
        for size in [2, 7, 13, 20] {
            compare(&text, &arguments(size, 3, true), false);
        }
    }
}
