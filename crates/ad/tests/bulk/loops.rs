//! Loops, scans and reductions by other operators, as `scanl` with a closed function: derivatives by hand, and against the interpreter's dual numbers.

use super::from_core::{f, fs, results};
use crate::common::{add_bulk, add_vjp, first, mismatch_of, parse, run};
use pullback_ad::bulk::interpreted::ALGORITHMS;
use pullback_ad::fast_chad::Config;
use pullback_core::Value;
use pullback_interp::core::Options;

const HORNER: &str = "fun f(a: []f64, x: f64): f64 {
    let n: i64 = size(a, 0)
    let y: f64 = loop (s: f64 = 0.0f64) for i: i64 < n {
        let t: f64 = mul.f64(s, x)
        let c: f64 = a[i]
        let u: f64 = add.f64(t, c)
        in u
    }
    in y
}";

fn add(name: &str) -> String {
    format!("({name}1: f64, {name}2: f64) {{ let {name}: f64 = add.f64({name}1, {name}2) in {name} }}")
}

/// A polynomial by Horner's rule: `d/da_i = x^(n-1-i)`, `d/dx` the derivative of the polynomial. Arrays without elements, too.
#[test]
fn a_polynomial() {
    let of = |a: &[f64]| results(HORNER, &[fs(a), f(2.0), f(3.0)]);
    // 1 x^3 + 5 x^2 - x + 4 = 30 and 3 x^2 + 10 x - 1 = 31, at 2.
    assert_eq!(of(&[1.0, 5.0, -1.0, 4.0]), [f(30.0), fs(&[24.0, 12.0, 6.0, 3.0]), f(93.0)]);
    assert_eq!(of(&[7.0]), [f(7.0), fs(&[3.0]), f(0.0)]);
    assert_eq!(of(&[]), [f(0.0), fs(&[]), f(0.0)]);
}

/// The cotangents of a sum of all elements before are sums of all cotangents after.
#[test]
fn a_scan_of_sums() {
    let text = format!(
        "fun f(a: []f64): []f64 {{ let n: i64 = size(a, 0) let y: []f64 = scan n [0.0f64] [a] {} in y }}",
        add("r")
    );
    let found = results(&text, &[fs(&[1.0, 2.0, 4.0]), fs(&[1.0, 10.0, 100.0])]);
    assert_eq!(found, [fs(&[1.0, 3.0, 7.0]), fs(&[111.0, 110.0, 100.0])]);
    assert_eq!(results(&text, &[fs(&[]), fs(&[])]), [fs(&[]), fs(&[])]);
}

/// A product has the products of the others, also where an element is zero.
#[test]
fn a_product() {
    let text = "fun f(a: []f64, n: i64): f64 {
        let y: f64 = reduce n [1.0f64] [a] (p: f64, q: f64) { let r: f64 = mul.f64(p, q) in r }
        in y
    }";
    let of = |a: &[f64]| results(text, &[fs(a), Value::i64(a.len() as i64), f(2.0)]);
    assert_eq!(of(&[3.0, 5.0, 7.0]), [f(105.0), fs(&[70.0, 42.0, 30.0])]);
    assert_eq!(of(&[3.0, 0.0, 7.0]), [f(0.0), fs(&[0.0, 42.0, 0.0])]);
    assert_eq!(of(&[]), [f(1.0), fs(&[])]);
}

/// The last of equal elements, by an operator that says so; and the maxima of columns.
#[test]
fn other_maxima() {
    let text = "fun f(a: []f64, n: i64): f64 {
        let y: f64 = reduce n [-f64.inf] [a] (p: f64, q: f64) {
            let c: bool = le.f64(p, q)
            let r: f64 = if c { in q } else { in p }
            in r
        }
        in y
    }";
    let found = results(text, &[fs(&[4.0, 9.0, 9.0, 1.0]), Value::i64(4), f(5.0)]);
    assert_eq!(found, [f(9.0), fs(&[0.0, 0.0, 5.0, 0.0])]);
    let text = "fun f(a: [][]f64, z: []f64, n: i64): []f64 {
        let k: i64 = size(z, 0)
        let y: []f64 = reduce n [z] [a] (p: []f64, q: []f64) {
            let r: []f64 = map k [p, q] (v: f64, w: f64) {
                let c: bool = le.f64(w, v)
                let t: f64 = if c { in v } else { in w }
                in t
            }
            in r
        }
        in y
    }";
    let rows = Value::f64_array(&[2, 3], &[1.0, 8.0, 3.0, 4.0, 5.0, 3.0]);
    let found = results(text, &[rows, fs(&[2.0, 2.0, 9.0]), Value::i64(2), fs(&[1.0, 10.0, 100.0])]);
    let of_rows = Value::f64_array(&[2, 3], &[0.0, 10.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(found, [fs(&[4.0, 8.0, 9.0]), of_rows, fs(&[0.0, 0.0, 100.0])]);
}

/// `x^(2^n)`, with a number of iterations that is negative, zero, or more.
#[test]
fn a_number_of_iterations_that_is_an_argument() {
    let text = "fun f(x: f64, n: i64): f64 {
        let y: f64 = loop (s: f64 = x) for i: i64 < n { let t: f64 = mul.f64(s, s) in t }
        in y
    }";
    let of_type = |t: &str| text.replace("n: i64", &format!("n: {t}")).replace("i: i64", &format!("i: {t}"));
    let n = Value::Scalar(pullback_prim::ScalarValue::I32(3));
    assert_eq!(results(&of_type("i32"), &[f(2.0), n, f(1.0)]), [f(256.0), f(1024.0)]);
    for (n, value, slope) in [(-3, 2.0, 1.0), (0, 2.0, 1.0), (1, 4.0, 4.0), (3, 256.0, 1024.0)] {
        assert_eq!(results(text, &[f(2.0), Value::i64(n), f(1.0)]), [f(value), f(slope)], "{n}");
    }
}

/// Programs with loops, and arguments. Each reads something else: its counter, a matrix from outside, another loop, a branch.
fn programs() -> Vec<(String, Vec<Value>)> {
    let numbers = |k: usize| (0..k).map(|i| 0.3 * i as f64 - 0.4).collect::<Vec<f64>>();
    let in_maps = format!(
        "fun f(rows: [][]f64, x: f64): []f64 {{
            let m: i64 = size(rows, 0)
            let y: []f64 = map m [rows] (row: []f64) {{
                let n: i64 = size(rows, 1)
                let z: f64 = loop (s: f64 = x) for i: i64 < n {{
                    let c: f64 = row[i]
                    let t: f64 = mul.f64(s, c)
                    let u: f64 = sin.f64(t)
                    let v: f64 = add.f64(u, x)
                    in v
                }}
                let all: []f64 = scan n [0.0f64] [row] {}
                let last: f64 = reduce n [0.0f64] [all] {}
                let w: f64 = mul.f64(z, last)
                in w
            }}
            in y
        }}",
        add("q"),
        add("r")
    );
    let recurrent = "fun f(w: [][]f64, xs: [][]f64): []f64 {
        let n: i64 = size(xs, 0)
        let d: i64 = size(w, 0)
        let e: i64 = size(xs, 1)
        let same: bool = eq.i64(d, e)
        let u: () = assert(same, \"two sizes\")
        let width: i64 = size(w, 1)
        let square: bool = eq.i64(d, width)
        let u2: () = assert(square, \"no square\")
        let zeros: []f64 = replicate([d], 0.0f64)
        let y: []f64 = loop (h: []f64 = zeros) for i: i64 < n {
            let x: []f64 = xs[i]
            let next: []f64 = map d [w, x] (row: []f64, b: f64) {
                let ps: []f64 = map d [row, h] (c: f64, v: f64) { let cv: f64 = mul.f64(c, v) in cv }
                let s: f64 = reduce d [0.0f64] [ps] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
                let t: f64 = add.f64(s, b)
                let h2: f64 = tanh.f64(t)
                in h2
            }
            in next
        }
        in y
    }";
    let nested = "fun f(x: f64, n: i64): f64 {
        let y: f64 = loop (s: f64 = x) for i: i64 < n {
            let k: f64 = convert.i64.f64(i)
            let c: bool = lt.f64(k, 2.5f64)
            let t: f64 = loop (r: f64 = s) for j: i64 < i {
                let p: f64 = mul.f64(r, x)
                let q: f64 = cos.f64(p)
                in q
            }
            let u: f64 = if c { let v: f64 = mul.f64(t, k) in v } else { let v2: f64 = add.f64(t, x) in v2 }
            in u
        }
        in y
    }";
    let recurrence = "fun f(a: []f64, b: []f64): []f64, f64 {
        let n: i64 = size(a, 0)
        let m: i64 = size(b, 0)
        let same: bool = eq.i64(n, m)
        let u: () = assert(same, \"two sizes\")
        let y: []f64, z: []f64 = scan n [1.0f64, 0.0f64] [a, b] (p: f64, q: f64, v: f64, w: f64) {
            let r: f64 = mul.f64(p, v)
            let s: f64 = mul.f64(q, v)
            let t: f64 = add.f64(s, w)
            in r, t
        }
        let s2: f64, r2: f64 = loop (s3: f64 = 0.5f64, r3: f64 = 0.1f64) for i: i64 < n {
            let c: f64 = z[i]
            let t3: f64 = mul.f64(s3, c)
            let u3: f64 = add.f64(t3, r3)
            let v3: f64 = sin.f64(s3)
            in v3, u3
        }
        in z, r2
    }";
    let collected = "fun f(x: f64, n: i64): []f64, f64 {
        let y: f64, all: []f64, more: []f64 = loop (s: f64 = x) for i: i64 < n collect 2 {
            let t: f64 = mul.f64(s, x)
            let u: f64 = sin.f64(t)
            let k: f64 = convert.i64.f64(i)
            let v: f64 = mul.f64(u, k)
            in u, s, v
        }
        let z: []f64 = map n [all, more] (p: f64, q: f64) { let r: f64 = mul.f64(p, q) in r }
        in z, y
    }";
    let mixed = "fun f(x: f64, n: i64, a: [][]f64): f64, [][]f64 {
        let k: i64 = size(a, 0)
        let m: i64 = size(a, 1)
        let y: f64, z: [][]f64, w: f64 = loop (s: f64 = x, r: [][]f64 = a, q: f64 = 1.0f64) for i: i64 < n {
            let t: f64 = sin.f64(s)
            let u: [][]f64 = map k [r] (row: []f64) {
                let v: []f64 = map m [row] (b: f64) { let c: f64 = mul.f64(b, s) in c }
                in v
            }
            let d: f64 = mul.f64(q, x)
            in t, u, d
        }
        let e: f64 = mul.f64(y, w)
        in e, z
    }";
    vec![
        (mixed.into(), vec![f(0.9), Value::i64(3), Value::f64_array(&[2, 3], &numbers(6))]),
        (collected.into(), vec![f(0.9), Value::i64(4)]),
        (recurrence.into(), vec![fs(&numbers(5)), fs(&[0.3, -1.0, 0.2, 0.9, 1.5])]),
        (HORNER.into(), vec![fs(&numbers(5)), f(0.7)]),
        (in_maps, vec![Value::f64_array(&[3, 4], &numbers(12)), f(0.6)]),
        (
            recurrent.into(),
            vec![Value::f64_array(&[3, 3], &numbers(9)), Value::f64_array(&[4, 3], &numbers(12))],
        ),
        (nested.replace("for j: i64 < i", "for j: i64 < n"), vec![f(0.8), Value::i64(5)]),
    ]
}

/// Values to the bit, and derivatives as the interpreter's dual numbers have them; by the symbolic pass, by a tape, by dual numbers; and derivatives of derivatives.
#[test]
fn loops_have_the_derivatives_of_dual_numbers() {
    for (text, args) in programs() {
        let mut program = parse(&text);
        let main = first(&program);
        let g = add_bulk(&mut program, main).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(mismatch_of(&program, main, g, &args), None, "{text}");
        let ones = |v: &Value| match v {
            Value::Array(a) => Value::f64_array(&a.shape, &vec![1.0; a.count()]),
            _ => f(1.0),
        };
        let seeds: Vec<Value> = run(&program, main, &args).0.iter().map(ones).collect();
        let all = [&args[..], &seeds].concat();
        let floats = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
        let wanted = floats(&run(&program, g, &all).0);
        for algorithm in ALGORITHMS {
            let made = algorithm.derivative(&program, main, &vec![true; args.len()]);
            let made = made.unwrap_or_else(|e| panic!("{e}\n{text}"));
            let (read, fun) = made.first();
            let read = pullback_interp::core::run(read, fun, args.clone(), &Options::default());
            let r = made.after(read.expect("runs").results, &seeds).unwrap_or_else(|e| panic!("{e:?}"));
            let found = floats(&[r.results, r.cotangents].concat());
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
            assert!(found.len() == wanted.len() && found.iter().zip(&wanted).all(close), "{text}");
        }
        let second = add_vjp(&mut program, g, &Config::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(mismatch_of(&program, g, second, &all), None, "{text}");
    }
}

/// A constant number of steps per iteration, however many there are.
#[test]
fn work_of_loops_grows_as_that_of_the_function() {
    let mut program = parse(HORNER);
    let main = first(&program);
    let g = add_bulk(&mut program, main).expect("supported");
    let ratio = |n: usize| {
        let args = [fs(&vec![0.5; n]), f(0.9)];
        let plain = run(&program, main, &args).1.work as f64;
        run(&program, g, &[&args[..], &[f(1.0)]].concat()).1.work as f64 / plain
    };
    let (small, large) = (ratio(100), ratio(1600));
    assert!(large < small * 1.05 && large < 12.0, "{small} {large}");
}
