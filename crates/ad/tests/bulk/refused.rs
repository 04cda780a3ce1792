//! What the algorithm `bulk` refuses, each with its place.

use super::from_core::{fs, results};
use crate::common::{add_bulk, first, parse};
use pullback_ad::contract::Unsupported;
use pullback_core::Value;

fn refused(text: &str) -> Unsupported {
    let mut program = parse(text);
    let f = first(&program);
    add_bulk(&mut program, f).expect_err("not supported")
}

/// What has no form in the fragment is told with its place. (Where it does not vary with an input, the function's own body computes it.)
#[test]
fn what_has_no_form_is_refused_with_its_place() {
    let mul = "(p: f64, q: f64) { let r: f64 = mul.f64(p, q) in r }";
    let programs = [
        (
            "fun f(a: []f64, is: []i64, n: i64): f64 {
                let y: f64, k: i64 = reduce n [-f64.inf, -1i64] [a, is] (p: f64, i: i64, q: f64, j: i64) {
                    let c: bool = le.f64(p, q)
                    let r: f64 = if c { in q } else { in p }
                    let l: i64 = if c { in j } else { in i }
                    in r, l
                }
                in y
            }"
            .into(),
            "states of several types",
            "y",
        ),
        (
            // The operator of `argMax`, which does not start from the worst number.
            "fun f(a: [][]f64, n: i64): []f64 {
                let y: []f64 = map n [a] (row: []f64) {
                    let m: i64 = size(row, 0)
                    let is: []i64 = iota(m)
                    let x: f64, k: i64 = reduce m [-f64.inf, 7i64] [row, is] (p: f64, i: i64, q: f64, j: i64) {
                        let b: f64 = max.f64(p, q)
                        let c: bool = eq.f64(p, b)
                        let l: i64 = select.i64(c, i, 9223372036854775807i64)
                        let d: bool = eq.f64(q, b)
                        let r: i64 = select.i64(d, j, 9223372036854775807i64)
                        let s: i64 = min.i64(l, r)
                        in b, s
                    }
                    let z: f64 = row[k]
                    in z
                }
                in y
            }"
            .into(),
            "states of several types",
            "x",
        ),
        (
            "fun f(a: []f64, bs: []bool, n: i64): f64 {
                let b: bool, y: f64 = reduce n [false, 0.0f64] [bs, a] (p: bool, u: f64, q: bool, v: f64) {
                    let c: bool = lt.bool(p, q)
                    let r: bool = if c { in q } else { in p }
                    let s: f64 = if c { in v } else { in u }
                    in r, s
                }
                in y
            }"
            .into(),
            "states of several types",
            "b",
        ),
        (
            format!(
                "fun f(a: []f64, d: []f64, is: []i64): []f64 {{ let y: []f64 = hist 3i64 [1.0f64] [d] is [a] {mul} in y }}"
            ),
            "a histogram with another operator",
            "y",
        ),
        (
            "fun f(a: []f64, d: [][]i64, is: []i64): []f64 {
                let y: []f64 = map 2i64 [d] (row: []i64) {
                    let h: []i64 = hist 3i64 [0i64] [row] is [is] (p: i64, q: i64) { let r: i64 = add.i64(p, q) in r }
                    let k: i64 = h[0i64]
                    let x: f64 = a[k]
                    in x
                }
                in y
            }"
            .into(),
            "a histogram of integers",
            "h",
        ),
        (
            "fun f(x: f64): f64 {
                let y: f64 = loop (s: f64 = x) while { let c: bool = lt.f64(s, 9.0f64) in c } {
                    let t: f64 = mul.f64(s, s)
                    in t
                }
                in y
            }"
            .into(),
            "a `while` loop",
            "y",
        ),
        (
            "fun f(a: []f64, x: f64, n: i64): []f64 {
                let y: []f64 = loop (s: []f64 = a) for i: i64 < n { let t: []f64 = update(s, [i], x) in t }
                in y
            }"
            .into(),
            "single elements of its state",
            "y",
        ),
        (
            "fun f(a: []f64, n: i64): []f64 {
                let y: []f64 = loop (s: []f64 = a) for i: i64 < n { let t: []f64 = concat(s, a) in t }
                in y
            }"
            .into(),
            "whose state changes its size",
            "y",
        ),
        (
            "fun f(a: []f64, x: f64, n: i64): f64 {
                let y: f64 = loop (s: f64 = x) for i: i64 < n {
                    let k: i64 = convert.f64.i64(s)
                    let t: f64 = a[k]
                    in t
                }
                in y
            }"
            .into(),
            "where its state says",
            "y",
        ),
        (
            "fun f(x: f64): f64 {
                let z: (#a f64 | #b) = inject(0, x): (#a f64 | #b)
                let y: f64 = match z case (p: f64) { let q: f64 = sin.f64(p) in q } case () { in 0.0f64 }
                in y
            }"
            .into(),
            "a sum type",
            "z",
        ),
        (
            "fun f(x: f64, n: i64): f64 { let y: f64 = call g(x, n) in y }
             fun g(a: f64, k: i64): f64 {
                let c: bool = lt.i64(k, 1i64)
                let r: f64 = if c { in a } else {
                    let less: i64 = sub.i64(k, 1i64)
                    let s: f64 = call g(a, less)
                    let t: f64 = mul.f64(s, a)
                    in t
                }
                in r
             }"
            .into(),
            "a call of `g`",
            "y",
        ),
        (
            "fun f(x: f64, ks: []i64): []f64 {
                let y: []f64 = map 2i64 [ks] (k: i64) {
                    let copies: []f64 = replicate([k], x)
                    let s: f64 = reduce k [0.0f64] [copies] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
                    in s
                }
                in y
            }"
            .into(),
            "a size that is computed in an inner body",
            "copies",
        ),
        (
            "fun f(x: f64, n: i64): f64 {
                let c: bool = lt.i64(n, 9i64)
                let y: f64 = if c {
                    let copies: []f64 = replicate([n], x)
                    let s: f64 = reduce n [0.0f64] [copies] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
                    in s
                } else { in x }
                in y
            }"
            .into(),
            "a number of elements that is an integer, in a branch",
            "copies",
        ),
        (
            "fun f(xs: []f64): []f64 {
                let y: []f64 = map 2i64 [xs] (x: f64) {
                    let k: f64 = stop_gradient(x)
                    let t: f64 = mul.f64(x, k)
                    in t
                }
                in y
            }"
            .into(),
            "`stop_gradient` in an inner body",
            "k",
        ),
        (
            "fun f(x: f64): f64 {
                let y: f64 = custom [x] (a: f64) { let b: f64 = mul.f64(a, a) in b }
                    (a2: f64, b2: f64, bar: f64) { let d: f64 = mul.f64(bar, a2) in d }
                in y
            }"
            .into(),
            "a function with its own rule",
            "y",
        ),
        (
            "fun f(x: f64): f64 {
                let y: f64, d: f64 = vjp [x] [1.0f64] (a: f64) { let b: f64 = mul.f64(a, a) in b }
                in d
            }"
            .into(),
            "not expanded before",
            "y",
        ),
        (
            "fun f(x: f64, z: []f64): []f64 {
                let r: []f64 = withacc [z] (acc: acc []f64) { let u: () = add_to(acc, [0i64], x) in }
                in r
            }"
            .into(),
            "an accumulator",
            "r",
        ),
        (
            "fun f(x: ((#a f64 | #b), f64)): f64 { let a: (#a f64 | #b) = proj(x, 0) let y: f64 = proj(x, 1) in y }".into(),
            "a value of a sum type",
            "x",
        ),
    ];
    for (text, construct, place) in programs {
        let error = refused(&text);
        assert_eq!(error.algorithm, "bulk");
        assert!(error.construct.contains(construct), "{error}\n{text}");
        assert!(error.help.contains("fast_chad"), "{}", error.help);
        let span = error.span.unwrap_or_else(|| panic!("{construct} has no place"));
        let marked = &text[span.start as usize..span.end as usize];
        assert!(marked.contains(place), "the place of {construct} is `{marked}`");
    }
    // Not active: a scan of integers is computed as before.
    let text = "fun f(a: []f64, ks: []i64): []f64 {
        let at: []i64 = scan 2i64 [0i64] [ks] (p: i64, q: i64) { let r: i64 = add.i64(p, q) in r }
        let y: []f64 = gather(a, at)
        in y
    }";
    let found = results(text, &[fs(&[1.0, 2.0, 3.0]), Value::i64s(&[1, 1]), fs(&[1.0, 10.0])]);
    assert_eq!(found, [fs(&[2.0, 3.0]), fs(&[0.0, 1.0, 10.0])]);
}
