//! The algorithm `bulk` on functions of core: gradients by hand, what stops, and random programs against Fast CHAD.

use super::generate::{Indices, scalar_program, seeds};
use super::translated::{checked, to_core};
use crate::common::{add_bulk, add_vjp, first, mismatch_of, parse, run};
use pullback_ad::bulk::to_core::function;
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_ad::fast_chad::Config;
use pullback_core::print::print;
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::Options;
use std::collections::BTreeSet;

pub(super) fn f(x: f64) -> Value {
    Value::f64(x)
}
pub(super) fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}

pub(super) fn derived(text: &str) -> (Program, FunId, FunId) {
    let mut program = parse(text);
    let f = first(&program);
    let g = add_bulk(&mut program, f).unwrap_or_else(|e| panic!("{e}"));
    checked(&program);
    (program, f, g)
}

/// All results of the derivative.
pub(super) fn results(text: &str, args: &[Value]) -> Vec<Value> {
    let (program, _, g) = derived(text);
    run(&program, g, args).0
}

fn sum(name: &str, n: &str, of: &str) -> String {
    format!(
        "let {name}: f64 = reduce {n} [0.0f64] [{of}] ({name}1: f64, {name}2: f64) {{
            let {name}3: f64 = add.f64({name}1, {name}2) in {name}3
        }}"
    )
}

fn dot_product() -> String {
    format!(
        "fun f(a: []f64, b: []f64): f64 {{
            let n: i64 = size(a, 0)
            let m: i64 = size(b, 0)
            let same: bool = eq.i64(n, m)
            let u: () = assert(same, \"two sizes\")
            let p: []f64 = map n [a, b] (x: f64, y: f64) {{ let t: f64 = mul.f64(x, y) in t }}
            {}
            in s
        }}",
        sum("s", "n", "p")
    )
}

/// `d (a . b) = b . da + a . db`; the cotangent is 2.
#[test]
fn a_dot_product() {
    let (a, b) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
    let found = results(&dot_product(), &[fs(&a), fs(&b), f(2.0)]);
    assert_eq!(found, [f(32.0), fs(&[8.0, 10.0, 12.0]), fs(&[2.0, 4.0, 6.0])]);
    // As one would write it: two maps after the function itself, as equal sizes are known.
    let (program, _, g) = derived(&dot_product());
    let text = print(&program);
    let gradient = text.split("f_bulk").nth(1).expect("the gradient");
    assert!(!gradient.contains("if ") && !gradient.contains("withacc"), "{text}");
    assert!(!program.funs[g].body.stms.is_empty());
}

const MATRIX_VECTOR: &str = "fun f(a: [][]f64, x: []f64): []f64 {
    let n: i64 = size(a, 0)
    let m: i64 = size(x, 0)
    let y: []f64 = map n [a] (row: []f64) {
        let k: i64 = size(row, 0)
        let same: bool = eq.i64(k, m)
        let u: () = assert(same, \"two sizes\")
        let p: []f64 = map m [row, x] (v: f64, w: f64) { let t: f64 = mul.f64(v, w) in t }
        let s: f64 = reduce m [0.0f64] [p] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
        in s
    }
    in y
}";

/// Cotangents of `a x` are `y_bar x^T` and `a^T y_bar`.
#[test]
fn a_matrix_times_a_vector() {
    let a = Value::f64_array(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let found = results(MATRIX_VECTOR, &[a, fs(&[7.0, 8.0]), fs(&[1.0, 10.0, 100.0])]);
    let a_bar = Value::f64_array(&[3, 2], &[7.0, 8.0, 70.0, 80.0, 700.0, 800.0]);
    assert_eq!(found, [fs(&[23.0, 53.0, 83.0]), a_bar, fs(&[531.0, 642.0])]);
}

/// A matrix without rows, of rows of two numbers: zeros for the vector. The program has no element to read, and the derivative none.
#[test]
fn arrays_without_elements() {
    let none = Value::f64_array(&[0, 2], &[]);
    let found = results(MATRIX_VECTOR, &[none.clone(), fs(&[7.0, 8.0]), fs(&[])]);
    assert_eq!(found[0], fs(&[]));
    assert_eq!(found[2], fs(&[0.0, 0.0]));
    let empty = Value::f64_array(&[3, 0], &[]);
    let found = results(MATRIX_VECTOR, &[empty.clone(), fs(&[]), fs(&[1.0, 2.0, 3.0])]);
    assert_eq!(found, [fs(&[0.0, 0.0, 0.0]), empty, fs(&[])]);
    // Columns of nothing are turned: what a map makes of no rows has no inner size.
    let text = "fun f(x: []f64, n: i64): []f64 {
        let is: []i64 = iota(n)
        let b: [][]f64 = map n [is] (i: i64) {
            let k: f64 = convert.i64.f64(i)
            let r: []f64 = map 2i64 [x] (v: f64) { let t: f64 = mul.f64(v, k) in t }
            in r
        }
        let c: [][]f64 = rearrange([1, 0], b)
        let y: []f64 = map 2i64 [c] (column: []f64) {
            let s: f64 = reduce n [0.0f64] [column] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
            in s
        }
        in y
    }";
    // (0 + 1 + 2) x
    let found = results(text, &[fs(&[1.0, 2.0]), Value::i64(3), fs(&[1.0, 10.0])]);
    assert_eq!(found, [fs(&[3.0, 6.0]), fs(&[3.0, 30.0])]);
}

/// The squares of copies of `x`: the cotangent of `x` is the sum of rows that a map makes, and there may be none.
#[test]
fn the_sum_of_no_rows() {
    let text = "fun f(x: []f64, n: i64): [][]f64 {
        let b: [][]f64 = replicate([n], x)
        let y: [][]f64 = map n [b] (row: []f64) {
            let r: []f64 = map 2i64 [row] (v: f64) { let t: f64 = mul.f64(v, v) in t }
            in r
        }
        in y
    }";
    let bar = Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let found = results(text, &[fs(&[1.0, 2.0]), Value::i64(2), bar]);
    assert_eq!(found[1], fs(&[8.0, 24.0]));
    let found = results(text, &[fs(&[1.0, 2.0]), Value::i64(0), Value::f64_array(&[0, 2], &[])]);
    assert_eq!(found[1], fs(&[0.0, 0.0]));
}

/// The gradient of `log (sum (exp x))` is the softmax.
#[test]
fn the_logarithm_of_a_sum_of_exponentials() {
    let text = format!(
        "fun f(x: []f64): f64 {{
            let n: i64 = size(x, 0)
            let e: []f64 = map n [x] (v: f64) {{ let t: f64 = exp.f64(v) in t }}
            {}
            let y: f64 = log.f64(s)
            in y
        }}",
        sum("s", "n", "e")
    );
    let found = results(&text, &[fs(&[0.0, 0.0, 0.0, 0.0]), f(1.0)]);
    assert_eq!(found, [f(4f64.ln()), fs(&[0.25; 4])]);
    let x = [0.0, 1.0, 2.0, 3.0];
    let total: f64 = x.iter().map(|v| f64::exp(*v)).sum();
    let found = results(&text, &[fs(&x), f(1.0)])[1].floats();
    for (g, v) in found.iter().zip(x) {
        assert!((g - v.exp() / total).abs() < 1e-15, "{found:?}");
    }
}

/// The sum of the squares of `a[is]`: an element that is taken twice counts twice.
#[test]
fn elements_that_are_gathered() {
    let text = format!(
        "fun f(a: []f64, is: []i64): f64 {{
            let n: i64 = size(is, 0)
            let q: []f64 = map n [is] (i: i64) {{
                let v: f64 = a[i]
                let t: f64 = mul.f64(v, v)
                in t
            }}
            {}
            in s
        }}",
        sum("s", "n", "q")
    );
    let found = results(&text, &[fs(&[1.0, 2.0, 3.0]), Value::i64s(&[2, 0, 2]), f(1.0)]);
    assert_eq!(found, [f(19.0), fs(&[2.0, 0.0, 12.0])]);
}

/// The sum of `w / x` for positive `x`, and of `x^2` for the others. At 0 and -2 the quotient is not chosen: its infinite factor contributes nothing.
#[test]
fn what_is_not_chosen_spoils_nothing() {
    let text = format!(
        "fun f(x: []f64, w: f64): f64 {{
            let n: i64 = size(x, 0)
            let q: []f64 = map n [x] (v: f64) {{
                let c: bool = lt.f64(0.0f64, v)
                let r: f64 = if c {{
                    let p: f64 = div.f64(1.0f64, v)
                    let t: f64 = mul.f64(w, p)
                    in t
                }} else {{
                    let k: f64 = mul.f64(v, v)
                    in k
                }}
                in r
            }}
            {}
            in s
        }}",
        sum("s", "n", "q")
    );
    let args = [fs(&[2.0, 0.0, -2.0]), f(3.0)];
    let found = results(&text, &[&args[..], &[f(1.0)]].concat());
    assert_eq!(found, [f(5.5), fs(&[-0.75, 0.0, -4.0]), f(0.5)]);
    let (mut program, main, _) = derived(&text);
    program.ieee_partials = true;
    let refused = add_bulk(&mut program, main).expect_err("both sides are evaluated");
    assert!(refused.construct.contains("a branch, where zeros are multiplied"), "{refused}");
    // Without a branch they are multiplied: 0 times the infinite slope of the root.
    let text = "fun f(x: f64): f64 { let r: f64 = sqrt.f64(x) let y: f64 = mul.f64(r, 0.0f64) in y }";
    assert_eq!(results(text, &[f(0.0), f(1.0)])[1], f(0.0));
    let mut program = parse(text);
    program.ieee_partials = true;
    let main = first(&program);
    let g = add_bulk(&mut program, main).expect("supported");
    assert!(run(&program, g, &[f(0.0), f(1.0)]).0[1].floats()[0].is_nan());
}

/// Constants, an argument without use, results of all kinds, integers among them: `3 x + 1`, `n x`, the argument itself.
#[test]
fn constants_and_several_results() {
    let text = "fun f(x: f64, unused: []f64, n: i64): f64, i64, f64, []f64, f64, f64 {
        let t: f64 = mul.f64(3.0f64, x)
        let y: f64 = add.f64(t, 1.0f64)
        let k: i64 = add.i64(n, 1i64)
        let m: f64 = convert.i64.f64(n)
        let z: f64 = mul.f64(m, x)
        let c: []f64 = replicate([2i64], 5.0f64)
        in y, k, z, c, x, 7.0f64
    }";
    let bars = [f(1.0), f(10.0), fs(&[1.0, 1.0]), f(100.0), f(1.0)];
    let args = [f(2.0), fs(&[1.0, 2.0]), Value::i64(4)];
    let found = results(text, &[&args[..], &bars].concat());
    let values = [f(7.0), Value::i64(5), f(8.0), fs(&[5.0, 5.0]), f(2.0), f(7.0)];
    assert_eq!(found[..6], values);
    assert_eq!(found[6..], [f(143.0), fs(&[0.0, 0.0])]);
}

/// `x^8` by squares in a loop; `(sin x, cos x)` of one map; `x y` and `x` of a tuple that a function gives.
#[test]
fn loops_calls_products_and_maps_of_two_results() {
    let text = "fun f(x: f64): f64 {
        let y: f64 = loop (s: f64 = x) for i: i64 < 3i64 { let t: f64 = mul.f64(s, s) in t }
        in y
    }";
    assert_eq!(results(text, &[f(2.0), f(1.0)]), [f(256.0), f(1024.0)]);
    let text = "fun f(x: []f64, n: i64): []f64, []f64 {
        let p: []f64, q: []f64 = map n [x] (v: f64) {
            let d: f64 = add.f64(v, v)
            let s: f64 = mul.f64(d, d)
            let c: f64 = mul.f64(d, 3.0f64)
            in s, c
        }
        in p, q
    }";
    // 4 x^2 and 6 x
    let found = results(text, &[fs(&[1.0, 2.0]), Value::i64(2), fs(&[1.0, 1.0]), fs(&[10.0, 100.0])]);
    assert_eq!(found, [fs(&[4.0, 16.0]), fs(&[6.0, 12.0]), fs(&[68.0, 616.0])]);
    let text = "fun f(x: f64, y: f64): f64 {
        let t: (f64, f64) = call g(x, y)
        let a: f64 = proj(t, 0)
        let b: f64 = proj(t, 1)
        let z: f64 = mul.f64(a, b)
        in z
    }
    fun g(p: f64, q: f64): (f64, f64) { let r: f64 = mul.f64(p, q) let u: (f64, f64) = tuple(r, p) in u }";
    // x^2 y
    assert_eq!(results(text, &[f(3.0), f(2.0), f(1.0)]), [f(18.0), f(12.0), f(9.0)]);
}

/// Loops in a map, 1,200 iterations in all: the derivative of iterated sines is a product of cosines. Of 4,096 the program is too long.
#[test]
fn long_bodies() {
    let text = |times: usize| {
        format!(
            "fun f(x: []f64): []f64 {{
                let n: i64 = size(x, 0)
                let y: []f64 = map n [x] (v: f64) {{
                    let a: f64 = loop (s: f64 = v) for i: i64 < {times}i64 {{
                        let b: f64 = loop (r: f64 = s) for j: i64 < 60i64 {{ let q: f64 = sin.f64(r) in q }}
                        in b
                    }}
                    in a
                }}
                in y
            }}"
        )
    };
    let found = results(&text(20), &[fs(&[0.5]), fs(&[1.0])]);
    let (mut x, mut slope) = (0.5f64, 1.0f64);
    for _ in 0..1200 {
        slope *= x.cos();
        x = x.sin();
    }
    assert!((found[0].floats()[0] - x).abs() < 1e-15);
    assert!((found[1].floats()[0] - slope).abs() < 1e-12 * slope, "{found:?} {slope}");
    let mut program = parse(&text(64).replace("60i64", "64i64"));
    let main = first(&program);
    let refused = add_bulk(&mut program, main).expect_err("4,096 statements");
    assert!(refused.construct.contains("so many statements"), "{refused}");
}

/// What the function stops at, its derivative stops at: indices, assertions, divisions, numbers of elements below zero.
#[test]
fn a_derivative_stops_where_its_function_stops() {
    let reads = "fun f(a: []f64, i: i64): f64 { let x: f64 = a[i] let y: f64 = mul.f64(x, x) in y }";
    let asserts = "fun f(x: f64): f64 {
        let c: bool = lt.f64(x, 1.0f64)
        let u: () = assert(c, \"too large\")
        let y: f64 = mul.f64(x, x)
        in y
    }";
    let divides = "fun f(x: f64, i: i64): f64 {
        let k: i64 = div.i64(6i64, i)
        let m: f64 = convert.i64.f64(k)
        let y: f64 = mul.f64(x, m)
        in y
    }";
    let makes = "fun f(x: f64, n: i64): []f64 { let y: []f64 = replicate([n], x) in y }";
    for (text, good, bad) in [
        (reads, vec![fs(&[2.0]), Value::i64(0)], vec![fs(&[2.0]), Value::i64(1)]),
        (asserts, vec![f(0.5)], vec![f(2.0)]),
        (divides, vec![f(0.5), Value::i64(2)], vec![f(0.5), Value::i64(0)]),
        (makes, vec![f(0.5), Value::i64(2)], vec![f(0.5), Value::i64(-1)]),
    ] {
        let (program, main, g) = derived(text);
        assert_eq!(mismatch_of(&program, main, g, &good), None);
        let bar = if text == makes { fs(&[1.0, 1.0]) } else { f(1.0) };
        let stopped = |id, args: &[Value]| {
            let out = pullback_interp::core::run(&program, id, args.to_vec(), &Options::default());
            out.expect_err("it stops").kind
        };
        assert_eq!(stopped(g, &[&bad[..], &[bar]].concat()), stopped(main, &bad), "{text}");
    }
}

/// An inner number of elements that would be below zero, in a map without iterations, and where a branch is not chosen.
#[test]
fn what_does_not_run_does_not_stop() {
    let text = "fun f(x: f64, xs: []f64): f64 {
        let n: i64 = size(xs, 0)
        let less: i64 = sub.i64(n, 1i64)
        let y: []f64 = map n [xs] (v: f64) {
            let is: []i64 = iota(less)
            let p: []f64 = map less [is] (i: i64) {
                let k: f64 = convert.i64.f64(i)
                let t: f64 = mul.f64(x, k)
                let r: f64 = mul.f64(t, v)
                in r
            }
            let s: f64 = reduce less [0.0f64] [p] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
            in s
        }
        let z: f64 = reduce n [0.0f64] [y] (z1: f64, z2: f64) { let z3: f64 = add.f64(z1, z2) in z3 }
        in z
    }";
    // (0 + 1) x (1 + 2 + 3)
    let found = results(text, &[f(2.0), fs(&[1.0, 2.0, 3.0]), f(1.0)]);
    assert_eq!(found, [f(12.0), f(6.0), fs(&[2.0, 2.0, 2.0])]);
    assert_eq!(results(text, &[f(2.0), fs(&[]), f(1.0)]), [f(0.0), f(0.0), fs(&[])]);
    let text = "fun f(x: f64, xs: []f64): f64 {
        let n: i64 = size(xs, 0)
        let c: bool = lt.i64(1i64, n)
        let z: f64 = if c {
            let less: i64 = sub.i64(n, 2i64)
            let k: f64 = xs[less]
            let copies: []f64 = replicate([less], x)
            let s: f64 = reduce less [k] [copies] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
            in s
        } else { in x }
        in z
    }";
    assert_eq!(results(text, &[f(2.0), fs(&[]), f(1.0)]), [f(2.0), f(1.0), fs(&[])]);
    let found = results(text, &[f(2.0), fs(&[1.0, 5.0, 7.0]), f(1.0)]);
    assert_eq!(found, [f(7.0), f(1.0), fs(&[0.0, 1.0, 0.0])]);
}

/// The derivative is a function of core: Fast CHAD differentiates it, and bulk dual numbers do where it adds nothing to accumulators.
#[test]
fn derivatives_are_differentiated_again() {
    let a = Value::f64_array(&[2, 3], &[0.5, -1.0, 2.0, 0.25, 1.5, -0.75]);
    let xs = || fs(&[1.5, -0.5, 2.0]);
    let (product, matrix) = (dot_product(), MATRIX_VECTOR.to_string());
    for (text, args) in
        [(product, vec![xs(), fs(&[0.5, 2.0, 3.0]), f(1.5)]), (matrix, vec![a, xs(), fs(&[1.0, 2.0])])]
    {
        let (mut program, _, g) = derived(&text);
        let again = add_vjp(&mut program, g, &Config::default()).expect("supported");
        assert_eq!(mismatch_of(&program, g, again, &args), None);
        if let Ok(again) = add_bulk(&mut program, g) {
            assert_eq!(mismatch_of(&program, g, again, &args), None);
        } else {
            assert_eq!(text, MATRIX_VECTOR, "two maps have a derivative");
        }
    }
}

/// A derivative inside of a program names its algorithm: `2 a`.
#[test]
fn a_derivative_inside_of_a_program() {
    let text = "fun main(a: []f64): []f64 {
        let y: f64, d: []f64 = vjp #[ad(bulk)] [a] [1.0f64] (x: []f64) {
            let p: []f64 = map 2i64 [x] (v: f64) { let t: f64 = mul.f64(v, v) in t }
            let s: f64 = reduce 2i64 [0.0f64] [p] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
            in s
        }
        in d
    }";
    let mut program = parse(text);
    differentiate(&mut program, &Choice::default()).expect("supported");
    checked(&program);
    let main = first(&program);
    assert_eq!(run(&program, main, &[fs(&[1.0, 3.0])]).0, [fs(&[2.0, 6.0])]);
}

/// Steps of a matrix-vector product and its derivative grow as those of the product.
#[test]
fn work_grows_as_that_of_the_function() {
    let (program, main, g) = derived(MATRIX_VECTOR);
    let ratio = |n: usize| {
        let x = vec![0.5; n];
        let args = [Value::f64_array(&[n, n], &vec![0.25; n * n]), fs(&x)];
        let plain = run(&program, main, &args).1.work;
        let both = run(&program, g, &[&args[..], &[fs(&x)]].concat()).1.work;
        both as f64 / plain as f64
    };
    let (small, large) = (ratio(8), ratio(64));
    assert!(large < small * 1.2 && large < 20.0, "{small} {large}");
}

/// Random programs of the fragment, as functions of core, which know nothing of it: translated back and differentiated, and differentiated by Fast CHAD.
#[test]
fn random_functions_have_the_gradients_of_fast_chad() {
    let (mut tried, mut refused) = (0, BTreeSet::new());
    let mut not = 0;
    for (seed, indices) in seeds(100).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = scalar_program(seed, indices);
        let mut core = Program::default();
        let Ok(main) = function(&mut core, &source, "f") else { continue };
        let g = match add_bulk(&mut core, main) {
            Ok(g) => g,
            Err(e) => {
                not += 1;
                refused.insert(e.construct);
                continue;
            }
        };
        checked(&core);
        let chad = add_vjp(&mut core, main, &Config::default()).expect("supported");
        let mut all: Vec<Value> = arguments.iter().map(to_core).collect();
        all.push(f(1.5));
        let of = |id| {
            let out = pullback_interp::core::run(&core, id, all.clone(), &Options::default());
            let results = out.unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{}", print(&core))).results;
            results.iter().flat_map(Value::floats).collect::<Vec<f64>>()
        };
        let (ours, theirs) = (of(g), of(chad));
        let same = ours.iter().zip(&theirs).all(|(x, y)| (x - y).abs() <= 1e-9 * (1.0 + y.abs()));
        assert!(same && ours.len() == theirs.len(), "seed {seed}: {ours:?} {theirs:?}\n{source}");
        tried += 1;
    }
    // What `scatter` is in core: additions to an accumulator.
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), ["an accumulator"]);
    assert!(tried > 60 && not < tried, "{tried} {not}");
}

/// Rows of a loop that does not run, and then three numbers `x`: `x + x` by a gather. An array without rows does not say how long rows are.
#[test]
fn an_array_without_rows_says_nothing_of_rows() {
    let text = "fun f(x: f64): f64 {
        let last: f64, none: [][]f64 = loop (s: f64 = x) for i: i64 < 0i64 collect 1 {
            let row: []f64 = replicate([0i64], s)
            in s, row
        }
        let rows: [][]f64 = replicate([1i64, 3i64], last)
        let all: [][]f64 = concat(none, rows)
        let first: []f64 = all[0i64]
        let y: f64 = first[2i64]
        let z: f64 = add.f64(y, y)
        in z
    }";
    assert_eq!(results(text, &[f(5.0), f(1.0)]), [f(10.0), f(2.0)]);
}
