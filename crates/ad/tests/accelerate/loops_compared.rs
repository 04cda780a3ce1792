//! Loops of arrays in nests, and `while` loops, at sizes 0 to 20 and in all variants, against forward mode, Fast CHAD and differences. Those by hand are in `loops`.

use super::histograms::{arguments, compare, function};

/// For each value: all elements of the target times the value, and then the sines of it all, as often as there are elements.
const INNER: &str = "let m: i64 = size(a, 0)
    let bs: [][]f64 = map n [vs] (v: f64) {
        let y: []f64, z: f64 = loop (s: []f64 = a, p: f64 = v) for i: i64 < m {
            let t: []f64 = map m [s] (x: f64) {
                let u: f64 = mul.f64(x, p)
                let w: f64 = add.f64(u, v)
                let r: f64 = sin.f64(w)
                in r
            }
            let e: f64 = t[i]
            let q: f64 = mul.f64(e, c)
            in t, q
        }
        let h: []f64 = map m [y] (g: f64) { let k: f64 = mul.f64(g, z) in k }
        in h
    }
    let zeros: []f64 = replicate([m], 0.0f64)
    let b: []f64 = reduce n [zeros] [bs] (xs: []f64, ys: []f64) {
        let sums: []f64 = map m [xs, ys] (left: f64, right: f64) { let d: f64 = add.f64(left, right) in d }
        in sums
    }";

/// Until a number that grows from c has passed 3, or twice as many times as there are elements.
const UNTIL: &str = "let m: i64 = size(a, 0)
    let b: []f64, last: f64 = loop (s: []f64 = a, p: f64 = c) while { let go: bool = lt.f64(p, 3.0f64) in go } {
        let t: []f64 = map m [s] (x: f64) {
            let u: f64 = mul.f64(x, p)
            let w: f64 = sin.f64(u)
            in w
        }
        let q: f64 = add.f64(p, 0.7f64)
        in t, q
    }";

/// The states are numbers, one of which counts.
const NUMBERS: &str =
    "let x: f64, k: i64 = loop (s: f64 = c, i: i64 = 0i64) while { let go: bool = lt.i64(i, n) in go } {
        let v: f64 = vs[i]
        let u: f64 = mul.f64(s, v)
        let t: f64 = cos.f64(u)
        let j: i64 = add.i64(i, 1i64)
        in t, j
    }
    let m: i64 = size(a, 0)
    let b: []f64 = map m [a] (e: f64) { let w: f64 = mul.f64(e, x) in w }";

#[test]
fn loops_of_arrays_and_while_loops_are_right_at_all_sizes() {
    for operator in [INNER, UNTIL, NUMBERS] {
        for size in 0..=20 {
            compare(&function(operator), &arguments(size, [0, 1, 2, 5, 9][size % 5], false), true);
        }
    }
}
