//! Histograms and scatters of core in Idealised Accelerate, and `permute` as input. Expected numbers are calculated by hand.

use super::build::*;
use super::gradients::{derived, variants, with_seeds};
use super::translated::{fs, refused, results};
use pullback_ad::accelerate::combine::gradient;
use pullback_core::Value;

fn is(xs: &[i64]) -> Value {
    ints(xs)
}

const HISTOGRAM: &str = "fun f(a: []f64, is: []i64, vs: []f64): []f64 {
    let n: i64 = size(is, 0)
    let b: []f64 = hist n [0.0f64] [a] is [vs] (x: f64, y: f64) { let t: f64 = add.f64(x, y) in t }
    in b
}";

#[test]
fn a_histogram_gives_each_element_the_adjoint_of_its_place() {
    let places = is(&[2, 0, 2, -1, 3]);
    let found = results(
        HISTOGRAM,
        &[fs(&[1.0, 2.0, 3.0]), places, fs(&[4.0, 5.0, 6.0, 7.0, 8.0]), fs(&[1.0, 10.0, 100.0])],
    );
    let adjoints = [fs(&[1.0, 10.0, 100.0]), fs(&[100.0, 1.0, 100.0, 0.0, 0.0])];
    assert_eq!(found[0], fs(&[6.0, 2.0, 13.0]));
    assert_eq!(found[1..], adjoints);
    let none = results(HISTOGRAM, &[fs(&[]), is(&[0]), fs(&[4.0]), fs(&[])]);
    assert_eq!(none, [fs(&[]), fs(&[]), fs(&[0.0])]);
}

/// Of elements that go to one place the last one stays: the others have no adjoint, and neither has what was there.
#[test]
fn a_scatter_gives_the_last_element_the_adjoint_of_its_place() {
    let text = "fun f(a: []f64, is: []i64, vs: []f64): []f64 {
        let n: i64 = size(is, 0)
        let b: []f64 = scatter(n, a, is, vs)
        in b
    }";
    let found = results(
        text,
        &[
            fs(&[1.0, 2.0, 3.0]),
            is(&[2, 0, 2, -1, 3]),
            fs(&[4.0, 5.0, 6.0, 7.0, 8.0]),
            fs(&[1.0, 10.0, 100.0]),
        ],
    );
    assert_eq!(found[0], fs(&[5.0, 2.0, 6.0]));
    assert_eq!(found[1..], [fs(&[0.0, 10.0, 0.0]), fs(&[0.0, 1.0, 100.0, 0.0, 0.0])]);
}

/// In each row of a matrix, with values that the row computes: a[i][k] + the sum of those x^2 whose place is k.
#[test]
fn a_histogram_and_a_scatter_in_a_nest() {
    let operation = "hist n [0.0f64] [row] is [ys] (x: f64, y: f64) { let t: f64 = add.f64(x, y) in t }";
    let text = |operation: &str| {
        format!(
            "fun f(a: [][]f64, is: []i64, xs: []f64): [][]f64 {{
                let n: i64 = size(is, 0)
                let m: i64 = size(a, 0)
                let bs: [][]f64 = map m [a] (row: []f64) {{
                    let first: f64 = row[0i64]
                    let ys: []f64 = map n [xs] (v: f64) {{ let w: f64 = mul.f64(v, first) in w }}
                    let b: []f64 = {operation}
                    in b
                }}
                in bs
            }}"
        )
    };
    let rows = |xs: &[f64]| Value::f64_array(&[2, 2], xs);
    let args =
        [rows(&[1.0, 2.0, 3.0, 4.0]), is(&[1, 1, 5]), fs(&[10.0, 20.0, 30.0]), rows(&[1.0, 1.0, 1.0, 2.0])];
    // Row i: (r_0, r_1 + 10 r_0 + 20 r_0). The adjoint of r_0: 1 + 30 c, of x_0: c_0 1 + c_1 3 with c = 1, 2.
    let found = results(&text(operation), &args);
    assert_eq!(found, [rows(&[1.0, 32.0, 3.0, 94.0]), rows(&[31.0, 1.0, 61.0, 2.0]), fs(&[7.0, 7.0, 0.0])]);
    // Row i: (r_0, 20 r_0).
    let found = results(&text("scatter(n, row, is, ys)"), &args);
    assert_eq!(found, [rows(&[1.0, 20.0, 3.0, 60.0]), rows(&[21.0, 0.0, 41.0, 0.0]), fs(&[0.0, 7.0, 0.0])]);
}

/// Rows are added as a whole.
#[test]
fn a_histogram_and_a_scatter_of_rows() {
    let operation = "hist n [zeros] [a] is [vs] (x: []f64, y: []f64) {
        let t: []f64 = map d [x, y] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
        in t
    }";
    let text = |operation: &str| {
        format!(
            "fun f(a: [][]f64, is: []i64, vs: [][]f64): [][]f64 {{
                let n: i64 = size(is, 0)
                let d: i64 = size(a, 1)
                let zeros: []f64 = replicate([d], 0.0f64)
                let b: [][]f64 = {operation}
                in b
            }}"
        )
    };
    let matrix = |rows: usize, xs: &[f64]| Value::f64_array(&[rows, 2], xs);
    let args = [
        matrix(2, &[1.0, 2.0, 3.0, 4.0]),
        is(&[1, 1, 7]),
        matrix(3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        matrix(2, &[1.0, 10.0, 100.0, 1000.0]),
    ];
    let found = results(&text(operation), &args);
    assert_eq!(found[0], matrix(2, &[1.0, 2.0, 7.0, 10.0]));
    assert_eq!(found[1], matrix(2, &[1.0, 10.0, 100.0, 1000.0]));
    assert_eq!(found[2], matrix(3, &[100.0, 1000.0, 100.0, 1000.0, 0.0, 0.0]));
    let found = results(&text("scatter(n, a, is, vs)"), &args);
    assert_eq!(found[0], matrix(2, &[1.0, 2.0, 3.0, 4.0]));
    assert_eq!(found[1], matrix(2, &[1.0, 10.0, 0.0, 0.0]));
    assert_eq!(found[2], matrix(3, &[0.0, 0.0, 100.0, 1000.0, 0.0, 0.0]));
}

/// An operator that adds in one component and multiplies in another one is no addition.
#[test]
fn what_is_no_addition_is_refused() {
    for operation in ["mul.f64(x, y)", "add.f64(x, x)", "sub.f64(x, y)"] {
        let why = refused(&HISTOGRAM.replace("add.f64(x, y)", operation));
        assert!(why.contains("something else than add"), "{why}");
    }
    // The operands may stand in the other order.
    let found = results(
        &HISTOGRAM.replace("add.f64(x, y)", "add.f64(y, x)"),
        &[fs(&[1.0]), is(&[0]), fs(&[2.0]), fs(&[3.0])],
    );
    assert_eq!(found, [fs(&[3.0]), fs(&[3.0]), fs(&[3.0])]);
}

/// In the language: pairs whose second component is discrete, places that a predicate refuses, a target that varies.
#[test]
fn a_permutation_as_input() {
    let b = Draft::default();
    // The sum of squares of (x_0 + 3 x_1, x_0 + 3 x_2), where x_0 is in the target, and the place of x_3 is refused.
    let program = b.program(vector(real()), |x| {
        let target = b.generate(&ix([2]), |_| tuple([at1(x, &n(0)), n(7)]));
        let values = b.map(|x| tuple([x * r(3.0), n(1)]), &var(x));
        let to = |i: E| {
            let k = i.get(0);
            (n(0).lt(&k).and(&k.lt(&n(3))), tuple([k - n(1)]))
        };
        let add = |x: E, y: E| b.let_(&(x.get(0) + y.get(0)), |s| tuple([s, x.get(1) * y.get(1)]));
        let sent = b.permute(add, &target, to, &values);
        sum(&b.map(|p| p.get(0) * p.get(0), &sent))
    });
    // (1 + 6, 1 + 9): 49 + 100; 2 (7 + 10), 6 * 7, 6 * 10.
    for options in variants() {
        let g = derived(&program, options).program;
        let found = run(&g, &with_seeds(&program, &[reals(&[1.0, 2.0, 3.0, 4.0])], &[Value::f64(1.0)]));
        assert_eq!(found, [Value::f64(149.0), reals(&[34.0, 42.0, 60.0, 0.0])]);
    }
    let largest = b.program(vector(real()), |x| {
        let zeros = b.generate(&ix([1]), |_| r(0.0));
        sum(&b.permute(|x, y| x.max(&y), &zeros, |_| (truth(true), ix([0])), &var(x)))
    });
    for options in variants() {
        let why = gradient(&largest, options).expect_err("a larger one").0;
        assert!(why.contains("something else than add"), "{why}");
    }
}
