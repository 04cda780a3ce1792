//! Histograms and scatters of core in Idealised Accelerate, and `permute` as input. Expected numbers are calculated by hand.

use super::build::*;
use super::gradients::{derived as gradient, expect, forms, variants, with_seeds};
use super::translated::{derived, fs, results};
use crate::common::{add_vjp, mismatch_of};
use pullback_ad::accelerate::from_core::VARIANTS;
use pullback_ad::accelerate::language::{ArrForm, ArrTy};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;
use pullback_interp::core::Options;
use pullback_interp::dual::jvp;

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

/// A histogram by another operator, with its neutral element.
fn by(operation: &str, neutral: &str) -> String {
    HISTOGRAM.replace("add.f64(x, y)", operation).replace("[0.0f64]", &format!("[{neutral}]"))
}

/// A product gives each factor the product of the others, whether there are zeros or not.
#[test]
fn a_histogram_of_products_counts_no_zeros() {
    let text = by("mul.f64(x, y)", "1.0f64");
    let places = is(&[0, 1, 0, 2, -1, 2, 9, 1]);
    let values = fs(&[3.0, 4.0, 5.0, 0.0, 7.0, 6.0, 8.0, 10.0]);
    let args = [fs(&[2.0, 0.0, 3.0, 5.0]), places, values, fs(&[1.0, 10.0, 100.0, 1000.0])];
    // 2 3 5, 0 4 10, 3 0 6 and 5.
    let found = results(&text, &args);
    assert_eq!(found[0], fs(&[30.0, 0.0, 0.0, 5.0]));
    assert_eq!(found[1], fs(&[15.0, 400.0, 0.0, 1000.0]));
    assert_eq!(found[2], fs(&[10.0, 0.0, 6.0, 1800.0, 0.0, 0.0, 0.0, 0.0]));
    // Two zeros: each product of the others has one of them.
    let two = results(&text, &[fs(&[0.0]), is(&[0, 0]), fs(&[0.0, 5.0]), fs(&[1.0])]);
    assert_eq!(two, [fs(&[0.0]), fs(&[0.0]), fs(&[0.0, 0.0])]);
    let none = results(&text, &[fs(&[]), is(&[0, -1]), fs(&[4.0, 5.0]), fs(&[])]);
    assert_eq!(none, [fs(&[]), fs(&[]), fs(&[0.0, 0.0])]);
    let nothing = results(&text, &[fs(&[4.0, 5.0]), is(&[]), fs(&[]), fs(&[1.0, 10.0])]);
    assert_eq!(nothing, [fs(&[4.0, 5.0]), fs(&[1.0, 10.0]), fs(&[])]);
}

/// The derivative of a product with two zeros is zero, but its derivative is not: a d v_0 v_1 by v_0 and v_1.
#[test]
fn derivatives_of_histograms_are_differentiated_again() {
    for operation in ["mul.f64(x, y)", "max.f64(x, y)"] {
        for variant in 0..VARIANTS.len() {
            let (mut program, _, g) =
                derived(&by(operation, "1.0f64"), variant).unwrap_or_else(|e| panic!("{e}"));
            let values = fs(&[0.0, 0.0, 3.0, 2.0]);
            let args = [fs(&[2.0, 0.5]), is(&[0, 0, 0, 1]), values, fs(&[1.0, 10.0])];
            let second = add_vjp(&mut program, g, &Config::default()).expect("supported");
            assert_eq!(mismatch_of(&program, g, second, &args), None);
            if operation == "mul.f64(x, y)" {
                let along = [fs(&[0.0, 0.0]), fs(&[0.0, 1.0, 0.0, 0.0]), fs(&[0.0, 0.0])];
                let out = jvp(&program, g, &args, &along, &Options::default()).expect("runs");
                // By v_0: 2 3.
                assert_eq!(out.tangents[2], fs(&[6.0, 0.0, 0.0, 0.0]));
            }
        }
    }
}

/// The first of equal elements wins, and the target stands before all.
#[test]
fn a_histogram_of_extrema_gives_the_adjoint_to_the_winner() {
    let places = is(&[0, 0, 1, 2, 2, 0, -1]);
    let values = [3.0, 4.0, 5.0, 1.0, 2.0, 4.0, 9.0];
    let args = [fs(&[1.0, 5.0, 2.0]), places.clone(), fs(&values), fs(&[1.0, 10.0, 100.0])];
    let largest = results(&by("max.f64(x, y)", "-f64.inf"), &args);
    let adjoints = [fs(&[0.0, 10.0, 100.0]), fs(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])];
    assert_eq!(largest[0], fs(&[4.0, 5.0, 2.0]));
    assert_eq!(largest[1..], adjoints);
    // The same with all signs changed.
    let negative = values.map(|x| -x);
    let args = [fs(&[-1.0, -5.0, -2.0]), places, fs(&negative), fs(&[1.0, 10.0, 100.0])];
    let least = results(&by("min.f64(x, y)", "f64.inf"), &args);
    assert_eq!(least[0], fs(&[-4.0, -5.0, -2.0]));
    assert_eq!(least[1..], adjoints);
    // What is not a number is attained by nobody.
    let none =
        results(&by("max.f64(x, y)", "-f64.inf"), &[fs(&[f64::NAN]), is(&[0]), fs(&[f64::NAN]), fs(&[3.0])]);
    assert_eq!(none[1..], [fs(&[3.0]), fs(&[0.0])]);
}

/// (1 + x) (1 + y) - 1, which is no operation of the table; and subtraction of all elements.
#[test]
fn a_histogram_by_any_operator() {
    let any = by("mul.f64(x, y) let p: f64 = add.f64(t, x) let q: f64 = add.f64(p, y)", "0.0f64");
    let any = any.replace("in t }", "in q }");
    let args = [fs(&[1.0, 2.0]), is(&[0, 1, 0, 5]), fs(&[2.0, 3.0, 4.0, 6.0]), fs(&[1.0, 10.0])];
    // 2 3 5 - 1 and 3 4 - 1.
    let found = results(&any, &args);
    assert_eq!(found, [fs(&[29.0, 11.0]), fs(&[15.0, 40.0]), fs(&[10.0, 30.0, 6.0, 0.0])]);
    // The operands may stand in the other order.
    let turned = HISTOGRAM.replace("add.f64(x, y)", "add.f64(y, x)");
    let found = results(&turned, &[fs(&[1.0]), is(&[0]), fs(&[2.0]), fs(&[3.0])]);
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
        let g = gradient(&program, options).program;
        let found = run(&g, &with_seeds(&program, &[reals(&[1.0, 2.0, 3.0, 4.0])], &[Value::f64(1.0)]));
        assert_eq!(found, [Value::f64(149.0), reals(&[34.0, 42.0, 60.0, 0.0])]);
    }
    // A larger one that shares ties has halves in each step: 1 and 1/2 of what comes before.
    let largest = b.program(vector(real()), |x| {
        let zeros = b.generate(&ix([1]), |_| r(0.0));
        sum(&b.permute(|x, y| x.max(&y), &zeros, |_| (truth(true), ix([0])), &var(x)))
    });
    expect(&largest, &[reals(&[3.0, 1.0, 3.0])], 3.0, &[0.5, 0.0, 0.5], 0.0);
    expect(&largest, &[reals(&[])], 0.0, &[], 0.0);
}

/// A matrix sent to places of another one in another order of rows and columns, by an operator that reads an array that varies.
#[test]
fn a_permutation_of_any_rank_whose_function_reads() {
    let b = Draft::default();
    let program = b.program(ArrTy::Tuple(vec![matrix(real()), scalar(real())]), |p| {
        let (x, factor) = (aproj(&var(p), 0), aproj(&var(p), 1));
        b.alet(&factor, |c| {
            let target = b.generate(&ix([3, 2]), |i| to_real(&(i.get(0) + i.get(1))));
            // Columns are added up in the rows of the target, but for the last column; c x y + x + y is associative.
            let to = |i: E| (i.get(1).lt(&n(2)), tuple([i.get(1), n(1)]));
            let sent = b.permute(|x, y| at(c, &ix([])) * &x * &y + x + y, &target, to, &x);
            sum(&sum(&sent))
        })
    });
    // c = 2: 1 + 2 v becomes (1 + 2 t) (1 + 2 x) (1 + 2 y). Place (0, 1): t = 1, x = 1, y = 3: 3 3 7 = 63; (1, 1): t = 2, x = 2, y = 4: 5 5 9 = 225.
    // Values 31 and 112; the others are 0, 1, 2 and 3. By x: 3 7 and 5 9; by y: 3 3 and 5 5. The last column goes nowhere.
    // By c: the sum of pairs and 2 c times the product: (1 3 + 1 1 + 1 3) + 4 3 and (2 2 + 2 4 + 2 4) + 4 16.
    let args = [reals_of(&[2, 3], &[1.0, 2.0, 9.0, 3.0, 4.0, 9.0]), Value::f64(2.0)];
    expect(&program, &args, 149.0, &[21.0, 45.0, 0.0, 9.0, 25.0, 0.0, 103.0], 1e-12);
}

/// The function of a permutation sees what goes somewhere only: here it would read outside of an array.
#[test]
fn what_goes_nowhere_is_not_combined() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        let target = b.generate(&ix([1]), |_| tuple([r(2.0), n(0)]));
        let elements = b.generate(&shape(x), |i| tuple([at(x, &i), n(1) - i.get(0)]));
        // Elements 2 and 3 have the places -1 and -2.
        let to = |i: E| (i.get(0).lt(&n(2)), ix([0]));
        let c = |p: E, q: E| {
            let k = cond(&p.get(1).lt(&q.get(1)), &p.get(1), &q.get(1));
            b.let_(&k, |k| tuple([p.get(0) * q.get(0) + at1(x, &k) * r(0.0), k]))
        };
        b.map(|p| p.get(0), &b.permute(c, &target, to, &elements))
    });
    for options in variants() {
        let g = gradient(&program, options).program;
        let found = run(&g, &with_seeds(&program, &[reals(&[3.0, 5.0, 7.0, 9.0])], &[reals(&[1.0])]));
        assert_eq!(found, [reals(&[30.0]), reals(&[10.0, 6.0, 0.0, 0.0])]);
    }
}

/// Where nothing varies a permutation stays one: nothing is sorted for it.
#[test]
fn a_permutation_of_constants_stays() {
    let b = Draft::default();
    let program = b.program(scalar(real()), |x| {
        let ones = b.generate(&ix([3]), |i| to_real(&i.get(0)) + r(1.0));
        let target = b.generate(&ix([1]), |_| r(1.0));
        let sent = b.permute(|x, y| x * y, &target, |_| (truth(true), ix([0])), &ones);
        sum(&b.map(|y| y * at(x, &ix([])), &sent))
    });
    expect(&program, &[Value::f64(2.0)], 12.0, &[6.0], 0.0);
    for options in variants() {
        let body = gradient(&program, options).program.body;
        assert_eq!(forms(&body, |form| matches!(form, ArrForm::Iterate(..))), 0);
    }
}
