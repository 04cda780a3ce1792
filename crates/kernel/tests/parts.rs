//! Reductions in parts and in any order: against plain Rust, at sizes around those where parts begin.
//!
//! Operators are exact here (whole numbers, comparisons), so that values must be the same in every bit however they are
//! bracketed; where only the order in the program is right, another one gives other values.

use crate::common::counted::{count, in_any_order, loops};
use crate::common::{parse, results};
use pullback_core::value::{Array, Buffer};
use pullback_core::{FunId, Program, Value};
use pullback_kernel::{lower, print};

const SIZES: [usize; 16] = [0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200, 1000, 4099, 70_001];

/// Whether the lowered program has loops whose iterations may run in any order.
fn any_order((program, f): &(Program, FunId)) -> bool {
    count(&lower(program, *f).expect("native").0, in_any_order) > 0
}

fn check(text: &str, args: impl Fn(usize) -> Vec<Value>, expected: impl Fn(usize) -> Vec<Value>) {
    let program = parse(text);
    assert!(any_order(&program), "{text}");
    for n in SIZES {
        let (args, expected) = (args(n), expected(n));
        for (part, lanes) in [(64, 0), (1, 0), (64, 8), (3, 2), (5, 16)] {
            let found = results(&program, &args, part, lanes);
            assert_eq!(found, expected, "{n} elements, parts from {part}, {lanes} lanes: {text}");
        }
    }
}

/// Whole numbers that repeat with no simple period.
fn number(k: usize) -> i64 {
    ((k * k + 7 * k) % 23) as i64 - 9
}
fn i64s(n: usize, f: impl Fn(usize) -> i64) -> Value {
    Value::i64s(&(0..n).map(f).collect::<Vec<i64>>())
}

/// `x -> a x + b`, the left map first: the order matters.
const AFFINE: &str = "(la: i64, lb: i64, ra: i64, rb: i64) {
    let c: i64 = mul.i64(la, ra) let t: i64 = mul.i64(lb, ra) let d: i64 = add.i64(t, rb) in c, d }";

fn composed(n: usize) -> (i64, i64) {
    (0..n).fold((1i64, 0i64), |(a, b), k| {
        let (c, d) = (number(k), number(k + 5));
        (a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d))
    })
}

#[test]
fn associative_operators_keep_the_order() {
    let text = format!(
        "fun f(a: []i64, b: []i64): i64, i64 {{
            let n: i64 = size(a, 0)
            let x: i64, y: i64 = reduce n [1i64, 0i64] [a, b] {AFFINE}
            in x, y }}"
    );
    check(
        &text,
        |n| vec![i64s(n, number), i64s(n, |k| number(k + 5))],
        |n| vec![Value::i64(composed(n).0), Value::i64(composed(n).1)],
    );
}

#[test]
fn what_elements_are_made_with_is_collected_in_its_place() {
    let text = format!(
        "fun f(a: []i64, b: []i64): i64, i64, []i64 {{
            let n: i64 = size(a, 0)
            let x: i64, y: i64, z: []i64 = map_reduce n [1i64, 0i64] [a, b] (p: i64, q: i64) {{
                let s: i64 = sub.i64(p, q) in p, q, s
            }} with {AFFINE}
            in x, y, z }}"
    );
    let collected = |n| i64s(n, |k| number(k) - number(k + 5));
    check(
        &text,
        |n| vec![i64s(n, number), i64s(n, |k| number(k + 5))],
        |n| vec![Value::i64(composed(n).0), Value::i64(composed(n).1), collected(n)],
    );
}

/// Products of matrices.
#[test]
fn states_may_be_arrays() {
    let text = "fun f(ms: [][][]i64): [][]i64 {
        let n: i64 = size(ms, 0)
        let top: []i64 = array(1i64, 0i64): i64
        let low: []i64 = array(0i64, 1i64): i64
        let one: [][]i64 = array(top, low): []i64
        let all: [][]i64 = reduce n [one] [ms] (l: [][]i64, r: [][]i64) {
            let a: i64 = l[0i64, 0i64] let b: i64 = l[0i64, 1i64] let c: i64 = l[1i64, 0i64] let d: i64 = l[1i64, 1i64]
            let e: i64 = r[0i64, 0i64] let k: i64 = r[0i64, 1i64] let g: i64 = r[1i64, 0i64] let h: i64 = r[1i64, 1i64]
            let ae: i64 = mul.i64(a, e) let bg: i64 = mul.i64(b, g) let x: i64 = add.i64(ae, bg)
            let af: i64 = mul.i64(a, k) let bh: i64 = mul.i64(b, h) let y: i64 = add.i64(af, bh)
            let ce: i64 = mul.i64(c, e) let dg: i64 = mul.i64(d, g) let z: i64 = add.i64(ce, dg)
            let cf: i64 = mul.i64(c, k) let dh: i64 = mul.i64(d, h) let w: i64 = add.i64(cf, dh)
            let first: []i64 = array(x, y): i64
            let second: []i64 = array(z, w): i64
            let m: [][]i64 = array(first, second): []i64
            in m
        }
        in all }";
    let matrix = |k: usize| {
        let x = number(k);
        if k.is_multiple_of(3) { [1, x, 0, 1] } else { [1, 0, x, 2] }
    };
    let product = |l: [i64; 4], r: [i64; 4]| {
        let at = |i: usize, j: usize| {
            l[2 * i].wrapping_mul(r[j]).wrapping_add(l[2 * i + 1].wrapping_mul(r[2 + j]))
        };
        [at(0, 0), at(0, 1), at(1, 0), at(1, 1)]
    };
    let value = |shape: &[usize], xs: Vec<i64>| Value::Array(Array::new(shape.to_vec(), Buffer::I64(xs)));
    check(
        text,
        |n| vec![value(&[n, 2, 2], (0..n).flat_map(matrix).collect())],
        |n| vec![value(&[2, 2], (0..n).fold([1, 0, 0, 1], |m, k| product(m, matrix(k))).to_vec())],
    );
}

/// Written by a user, who lets the first of equal elements win.
#[test]
fn the_first_of_equal_elements_wins() {
    let text = "fun f(a: []f64): f64, i64 {
        let n: i64 = size(a, 0)
        let is: []i64 = iota(n)
        let x: f64, i: i64 = reduce n [-f64.inf, -1i64] [a, is] (lx: f64, li: i64, rx: f64, ri: i64) {
            let better: bool = lt.f64(lx, rx)
            let x: f64, i: i64 = if better { in rx, ri } else { in lx, li }
            in x, i
        }
        in x, i }";
    let element = |k: usize| match k % 11 {
        3 => f64::NAN,
        _ => number(k) as f64,
    };
    let first = |n: usize| {
        (0..n).fold(
            (f64::NEG_INFINITY, -1),
            |best, k| if best.0 < element(k) { (element(k), k as i64) } else { best },
        )
    };
    check(
        text,
        |n| vec![Value::f64s(&(0..n).map(element).collect::<Vec<f64>>())],
        |n| vec![Value::f64(first(n).0), Value::i64(first(n).1)],
    );
}

/// Exchanging the arguments of the product of complex numbers changes nothing, of matrices it does; branches are looked into.
#[test]
fn symmetric_operators_need_no_parts() {
    let cases = [
        ("let p: f64 = mul.f64(a, c) let q: f64 = mul.f64(b, d) let x: f64 = sub.f64(p, q)
          let r: f64 = mul.f64(a, d) let s: f64 = mul.f64(b, c) let y: f64 = add.f64(r, s)", true),
        ("let x: f64 = mul.f64(a, c) let t: f64 = mul.f64(b, c) let y: f64 = add.f64(t, d)", false),
        ("let x: f64 = sub.f64(a, c) let y: f64 = add.f64(b, d)", false),
        ("let same: bool = eq.f64(a, c) let x: f64, y: f64 = if same { let s: f64 = add.f64(b, d) in a, s }
          else { let m: f64 = max.f64(c, a) in m, 1.0f64 }", false),
        ("let same: bool = eq.f64(a, c) let x: f64, y: f64 = if same { let s: f64 = add.f64(d, b) in b, s }
          else { let m: f64 = max.f64(c, a) in m, 1.0f64 }", false),
        ("let same: bool = eq.f64(c, a) let x: f64, y: f64 = if same { let s: f64 = add.f64(d, b) in 2.0f64, s }
          else { let m: f64 = max.f64(c, a) in m, 1.0f64 }", true),
    ];
    for (body, symmetric) in cases {
        let text = format!(
            "fun f(xs: []f64, ys: []f64): f64, f64 {{
                let n: i64 = size(xs, 0)
                let r: f64, s: f64 = reduce n [0.0f64, 0.0f64] [xs, ys] (a: f64, b: f64, c: f64, d: f64) {{ {body} in x, y }}
                in r, s }}"
        );
        // In parts there are three loops: over the parts, over their elements, and over their results.
        let (program, f) = parse(&text);
        let module = lower(&program, f).expect("native").0;
        assert_eq!(count(&module, loops) == 1, symmetric, "{body}\n{}", print(&module));
    }
}
