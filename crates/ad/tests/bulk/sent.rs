//! The algorithm `bulk` on scatters, and on histograms by minimum and maximum: which element gets the cotangent, by hand, as Fast CHAD and forward mode have it, and against differences.

use super::from_core::{derived, fs, results};
use crate::common::{Numbers, add_vjp, mismatch_of, run};
use pullback_ad::fast_chad::Config;
use pullback_core::{Array, Buffer, Value};

fn integers(shape: &[usize], xs: &[i64]) -> Value {
    Value::Array(Array::new(shape.to_vec(), Buffer::I64(xs.to_vec())))
}

/// The squares of `a`, sent to places of `d`.
const SCATTER: &str = "fun f(d: []f64, is: []i64, a: []f64): []f64 {
    let k: i64 = size(is, 0)
    let b: []f64 = map k [a] (x: f64) { let y: f64 = mul.f64(x, x) in y }
    let z: []f64 = scatter(k, d, is, b)
    in z
}";

/// The same by an operator that keeps the better number.
fn histogram(op: &str) -> String {
    format!(
        "fun f(d: []f64, is: []i64, a: []f64): []f64 {{
            let k: i64 = size(is, 0)
            let b: []f64 = map k [a] (x: f64) {{ let y: f64 = mul.f64(x, x) in y }}
            let z: []f64 = hist k [{}] [d] is [b] (u: f64, v: f64) {{ let w: f64 = {op}.f64(u, v) in w }}
            in z
        }}",
        if op == "max" { "-f64.inf" } else { "f64.inf" }
    )
}

/// The last of those that are sent to one place stays, and gets the cotangent; what was there has none. What is sent outside is dropped.
#[test]
fn scatters() {
    let (d, is) = (fs(&[10.0, 20.0, 30.0, 40.0]), integers(&[5], &[1, 7, 1, -1, 3]));
    let found = results(SCATTER, &[d, is, fs(&[1.0, 2.0, 3.0, 4.0, 5.0]), fs(&[1.0, 10.0, 100.0, 1000.0])]);
    let a_bar = fs(&[0.0, 0.0, 60.0, 0.0, 10_000.0]);
    assert_eq!(found, [fs(&[10.0, 9.0, 30.0, 25.0]), fs(&[1.0, 0.0, 100.0, 0.0]), a_bar]);
    // Nothing is sent; there is no place.
    let none = integers(&[0], &[]);
    let found = results(SCATTER, &[fs(&[2.0]), none, fs(&[]), fs(&[3.0])]);
    assert_eq!(found, [fs(&[2.0]), fs(&[3.0]), fs(&[])]);
    let found = results(SCATTER, &[fs(&[]), integers(&[1], &[0]), fs(&[5.0]), fs(&[])]);
    assert_eq!(found, [fs(&[]), fs(&[]), fs(&[0.0])]);
}

/// Rows are sent as wholes, in a map of scatters: each starts from the same matrix, so its cotangent is the sum over all.
#[test]
fn scatters_of_rows() {
    let text = "fun f(d: [][]f64, iss: [][]i64, a: [][]f64): [][][]f64 {
        let n: i64 = size(iss, 0)
        let zs: [][][]f64 = map n [iss] (is: []i64) {
            let k: i64 = size(a, 0)
            let z: [][]f64 = scatter(k, d, is, a)
            in z
        }
        in zs
    }";
    let d = Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let a = Value::f64_array(&[3, 2], &[5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    let is = integers(&[2, 3], &[0, 0, 5, 1, -1, 1]);
    let y_bar: Vec<f64> = (0..8).map(|k| f64::from(1 << k)).collect();
    let found = results(text, &[d, is, a, Value::f64_array(&[2, 2, 2], &y_bar)]);
    let value = [7.0, 8.0, 3.0, 4.0, 1.0, 2.0, 9.0, 10.0];
    let d_bar = Value::f64_array(&[2, 2], &[16.0, 32.0, 4.0, 8.0]);
    let a_bar = Value::f64_array(&[3, 2], &[0.0, 0.0, 1.0, 2.0, 64.0, 128.0]);
    assert_eq!(found, [Value::f64_array(&[2, 2, 2], &value), d_bar, a_bar]);
}

/// The inverse of a permutation of each row, by a scatter of integers in a map: `y_j = a_(p^-1 j) j`.
#[test]
fn scatters_of_integers_in_maps() {
    let text = "fun f(a: []f64, ps: [][]i64): [][]f64 {
        let n: i64 = size(ps, 0)
        let ys: [][]f64 = map n [ps] (p: []i64) {
            let k: i64 = size(p, 0)
            let is: []i64 = iota(k)
            let zeros: []i64 = replicate([k], 0i64)
            let back: []i64 = scatter(k, zeros, p, is)
            let y: []f64 = map k [back, is] (j: i64, i: i64) {
                let x: f64 = a[j]
                let w: f64 = convert.i64.f64(i)
                let t: f64 = mul.f64(x, w)
                in t
            }
            in y
        }
        in ys
    }";
    let y_bar = Value::f64_array(&[2, 3], &[1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
    let found = results(text, &[fs(&[3.0, 5.0, 7.0]), integers(&[2, 3], &[2, 0, 1, 0, 1, 2]), y_bar]);
    // The inverses are (1, 2, 0) and (0, 1, 2).
    let value = Value::f64_array(&[2, 3], &[0.0, 7.0, 6.0, 0.0, 5.0, 14.0]);
    assert_eq!(found, [value, fs(&[200.0, 10_000.0, 200_010.0])]);
}

/// The first of the best ones gets the cotangent, what was there before all others. What is no number is never the best one.
#[test]
fn histograms_by_extrema() {
    let nan = f64::NAN;
    let y_bar = fs(&[1.0, 10.0, 100.0, 1000.0]);
    for (op, sign) in [("max", 1.0), ("min", -1.0)] {
        let text = format!(
            "fun f(d: []f64, is: []i64, b: []f64): []f64 {{
                let k: i64 = size(is, 0)
                let z: []f64 = hist k [{}] [d] is [b] (u: f64, v: f64) {{ let w: f64 = {op}.f64(u, v) in w }}
                in z
            }}",
            if op == "max" { "-f64.inf" } else { "f64.inf" }
        );
        let signed = |xs: &[f64]| fs(&xs.iter().map(|x| x * sign).collect::<Vec<_>>());
        // A tie of two that are sent; a tie with what was there; nothing better; nobody, and one outside.
        let is = integers(&[8], &[0, 0, 0, 1, 2, 1, 9, 2]);
        let b = signed(&[3.0, 5.0, 5.0, 4.0, 1.0, 4.0, 8.0, nan]);
        let found = results(&text, &[signed(&[2.0, 4.0, 6.0, -1.0]), is, b, y_bar.clone()]);
        assert_eq!(found[0], signed(&[5.0, 4.0, 6.0, -1.0]), "{op}");
        assert_eq!(
            found[1..],
            [fs(&[0.0, 10.0, 100.0, 1000.0]), fs(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])]
        );
        // Where it is no number, the first of the best ones has it; of what is no number either, what was there.
        let args =
            [signed(&[nan, nan]), integers(&[3], &[0, 1, 0]), signed(&[2.0, nan, 2.0]), fs(&[1.0, 10.0])];
        let found = results(&text, &args);
        assert_eq!(found[1..], [fs(&[0.0, 10.0]), fs(&[1.0, 0.0, 0.0])], "{op}");
    }
}

/// A sum and a maximum of one histogram, in a map over rows; only the second result has a cotangent that is not zero.
#[test]
fn histograms_of_several_components() {
    let text = "fun f(is: [][]i64, a: [][]f64): [][]f64, [][]f64 {
        let n: i64 = size(is, 0)
        let zeros: []f64 = replicate([2i64], 0.0f64)
        let s: [][]f64, m: [][]f64 = map n [is, a] (js: []i64, b: []f64) {
            let k: i64 = size(b, 0)
            let y: []f64, z: []f64 = hist k [0.0f64, -f64.inf] [zeros, zeros] js [b, b] (u1: f64, u2: f64, v1: f64, v2: f64) {
                let w1: f64 = add.f64(u1, v1)
                let w2: f64 = max.f64(u2, v2)
                in w1, w2
            }
            in y, z
        }
        in s, m
    }";
    let rows = |xs: &[f64]| Value::f64_array(&[2, xs.len() / 2], xs);
    let a = rows(&[1.0, -2.0, 3.0, 4.0, 5.0, 6.0]);
    let is = integers(&[2, 3], &[0, 1, 0, 1, 1, -1]);
    let found = results(text, &[is, a, rows(&[0.0; 4]), rows(&[1.0, 10.0, 100.0, 1000.0])]);
    let a_bar = rows(&[0.0, 0.0, 1.0, 0.0, 1000.0, 0.0]);
    assert_eq!(found, [rows(&[4.0, -2.0, 0.0, 9.0]), rows(&[3.0, 0.0, 0.0, 5.0]), a_bar]);
}

/// Random arguments: Fast CHAD, forward mode, and differences. Squares of numbers from 0.1 to 1, which differ by more than a step.
#[test]
fn what_is_sent_has_the_derivatives_of_other_ways() {
    let mut r = Numbers(5);
    for text in [SCATTER.to_string(), histogram("max"), histogram("min")] {
        let (mut program, main, g) = derived(&text);
        let chad = add_vjp(&mut program, main, &Config::default()).expect("supported");
        for _ in 0..10 {
            let mut below = |n: f64| (r.next().abs() * 1e6).floor() % n;
            let d: Vec<f64> = (0..4).map(|_| below(20.0) / 20.0 + 0.025).collect();
            let a: Vec<f64> = (0..7).map(|k| (below(9.0) * 10.0 + f64::from(k) + 10.0) / 100.0).collect();
            let is: Vec<i64> = (0..7).map(|_| below(6.0) as i64 - 1).collect();
            let y_bar: Vec<f64> = (0..4).map(|_| below(7.0) - 3.0).collect();
            let args = |d: &[f64], a: &[f64]| vec![fs(d), integers(&[7], &is), fs(a)];
            assert_eq!(mismatch_of(&program, main, g, &args(&d, &a)), None, "{text}");
            let all = [args(&d, &a), vec![fs(&y_bar)]].concat();
            let ours = run(&program, g, &all).0;
            assert_eq!(ours, run(&program, chad, &all).0, "{text}");
            let loss = |d: &[f64], a: &[f64]| -> f64 {
                let y = run(&program, main, &args(d, a)).0[0].floats();
                y.iter().zip(&y_bar).map(|(y, c)| y * c).sum()
            };
            const STEP: f64 = 1e-6;
            for (k, slope) in ours[2].floats().iter().enumerate() {
                let at = |step: f64| {
                    let mut a = a.clone();
                    a[k] += step;
                    loss(&d, &a)
                };
                let numeric = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                assert!((slope - numeric).abs() < 1e-6, "{text}: {slope} {numeric}");
            }
        }
    }
}

/// Steps grow as those of the function: what is sent does not cost the number of places for each element.
#[test]
fn work_of_what_is_sent_grows_as_that_of_the_function() {
    for text in [SCATTER.to_string(), histogram("max")] {
        let (program, main, g) = derived(&text);
        let ratio = |n: usize| {
            let is: Vec<i64> = (0..n as i64).rev().collect();
            let args = vec![fs(&vec![0.5; n]), integers(&[n], &is), fs(&vec![0.25; n])];
            let plain = run(&program, main, &args).1.work;
            let both = run(&program, g, &[args, vec![fs(&vec![1.0; n])]].concat()).1.work;
            both as f64 / plain as f64
        };
        let (small, large) = (ratio(20), ratio(400));
        assert!(large < small * 1.1 && large < 20.0, "{small} {large}\n{text}");
    }
}

/// The derivative is a function of core, which Fast CHAD differentiates again.
#[test]
fn derivatives_of_what_is_sent_are_differentiated_again() {
    let args = [fs(&[0.5, -1.0]), integers(&[3], &[1, 0, 1]), fs(&[2.0, 0.25, 1.5]), fs(&[1.5, -0.5])];
    for text in [SCATTER.to_string(), histogram("max")] {
        let (mut program, _, g) = derived(&text);
        let again = add_vjp(&mut program, g, &Config::default()).expect("supported");
        assert_eq!(mismatch_of(&program, g, again, &args), None, "{text}");
    }
}
