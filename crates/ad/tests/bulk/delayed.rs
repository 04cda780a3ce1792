//! Arrays that are made only where they have to be: what core each rule leaves, and that it computes the same.

use super::build::*;
use super::from_core::derived;
use super::translated::{checked, from_core, results};
use crate::common::{bulk_mismatch, run};
use pullback_ad::bulk::a_core::{Extremum, Term};
use pullback_ad::bulk::to_core::function;
use pullback_core::print::print;
use pullback_core::{Array, Buffer, Program as CoreProgram, Value as CoreValue};
use pullback_prim::{Op, Scalar};

/// The text of a program as a function of core, once its values are those of the program for these arguments.
fn text_of(d: Draft, body: Term, arguments: &[Value]) -> String {
    let program = d.program(body);
    let mut core = CoreProgram::default();
    let f = function(&mut core, &program, "f").expect("core has all that it needs");
    checked(&core);
    let found = from_core(&results(&core, f, arguments)[0], program.body.ty());
    let wanted = value(&program, arguments);
    assert!(agree(&found, &wanted, 1e-12), "{found:?} {wanted:?}\n{program}\n{}", print(&core));
    print(&core)
}

fn lacks(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(!text.contains(word), "there is `{word}`:\n{text}"));
}

fn matrix(n: usize, m: usize) -> Value {
    reals(&[n, m], &(0..n * m).map(|x| x as f64 + 1.0).collect::<Vec<_>>())
}

#[test]
fn gathers_and_scatters_by_permuted_indices_are_transpositions() {
    let moved = |is_gather: bool| {
        let mut d = Draft::default();
        let (k, m) = (d.size("k"), d.size("m"));
        let a = d.reals("a", &[k.clone(), m.clone()]);
        let swap = |_: &mut Draft, i: &[Term]| vec![i[1].clone(), i[0].clone()];
        let t = if is_gather { d.gather(&[m, k], &a, 2, swap) } else { d.scatter(&[m, k], &a, 2, swap) };
        text_of(d, t, &[matrix(2, 3)])
    };
    for text in [moved(true), moved(false)] {
        assert!(text.contains("rearrange([1, 0]"), "{text}");
        lacks(&text, &["map", "if ", "withacc"]);
    }
}

#[test]
fn gathers_that_use_some_counters_are_copies_and_scatters_by_some_are_sums() {
    let mut d = Draft::default();
    let (k, m) = (d.size("k"), d.size("m"));
    let (a, b) = (d.reals("a", std::slice::from_ref(&m)), d.reals("b", &[k.clone(), m.clone()]));
    let copies = d.gather(&[k, m.clone()], &a, 2, |_, i| vec![i[1].clone()]);
    let sums = d.scatter(&[m], &mul(&copies, &b), 2, |_, i| vec![i[1].clone()]);
    let text = text_of(d, sums, &[one_to(3), matrix(2, 3)]);
    assert!(text.contains("reduce"), "{text}");
    lacks(&text, &["withacc", "if ", "replicate", "[][]f64 = map"]);
}

/// `n - 1 - i` and `i + 2`: what was sent is found again; what comes from outside is zero.
#[test]
fn scatters_by_moved_and_reversed_indices_are_maps() {
    for is_reversed in [true, false] {
        let mut d = Draft::default();
        let k = d.size("k");
        let a = d.reals("a", std::slice::from_ref(&k));
        let last = Term::size(&k.minus(&n(1)));
        let sent = d.scatter(&[k], &a, 1, |_, i| match is_reversed {
            true => vec![op2(Op::Sub, &last, &i[0])],
            false => vec![op2(Op::Add, &i[0], &int(2))],
        });
        let text = text_of(d, sent, &[one_to(5)]);
        lacks(&text, &["withacc", "update"]);
        assert_eq!(text.contains("if "), !is_reversed, "{text}");
    }
}

/// Where the best of what is sent to each place is: by two histograms. Numbers that are no better than the worst, what is no number and indices outside of one dimension count for nothing.
#[test]
fn places_of_what_is_sent_are_histograms() {
    let (infinite, nan) = (f64::INFINITY, f64::NAN);
    let xs = reals(&[2, 4], &[-infinite, 5.0, 5.0, infinite, 9.0, nan, -infinite, 5.0]);
    for which in [Extremum::Max, Extremum::Min] {
        let mut d = Draft::default();
        let (n, m) = (d.size("n"), d.size("m"));
        let a = d.reals("a", &[n.clone(), m.clone()]);
        let f = d.function(2, |_, i| vec![i[0].clone(), sub(&i[1], &int(1))]);
        let text = text_of(d, arg_at(which, &[n.clone(), m], &a, f), std::slice::from_ref(&xs));
        assert_eq!(text.matches(" hist ").count(), 2, "{text}");
        // All of a row at one place.
        let mut d = Draft::default();
        let (n, m) = (d.size("n"), d.size("m"));
        let a = d.reals("a", &[n.clone(), m]);
        let f = d.function(2, |_, i| vec![i[0].clone()]);
        text_of(d, arg_at(which, &[n], &a, f), std::slice::from_ref(&xs));
        // All of it.
        let mut d = Draft::default();
        let (n, m) = (d.size("n"), d.size("m"));
        let a = d.reals("a", &[n, m]);
        let f = d.function(2, |_, _| Vec::new());
        text_of(d, arg_at(which, &[], &a, f), std::slice::from_ref(&xs));
    }
}

#[test]
fn scatters_by_computed_places_are_sent() {
    let mut d = Draft::default();
    let k = d.size("k");
    let a = d.reals("a", &[k]);
    let sent = d.scatter(&[n(2)], &a, 1, |_, i| vec![op2(Op::Mod, &i[0], &int(2))]);
    let text = text_of(d, sent, &[one_to(5)]);
    assert!(text.contains("withacc"), "{text}");
}

/// One element for each row, at a place that is read: a map, as no two are sent to one place.
#[test]
fn scatters_of_one_element_for_each_row_are_maps() {
    let mut d = Draft::default();
    let k = d.size("k");
    let a = d.reals("a", std::slice::from_ref(&k));
    let places = d.input("places", Scalar::I64, std::slice::from_ref(&k));
    let sent = d.scatter(&[k, n(3)], &a, 1, |_, i| vec![i[0].clone(), index(&places, &[i[0].clone()])]);
    let text = text_of(d, sent, &[one_to(4), Value::i64s(&[4], &[2, 0, -1, 3])]);
    lacks(&text, &["withacc", "update"]);
}

/// Choices of elements are branches; both arrays together are never made.
#[test]
fn choices_of_elements_are_branches() {
    let mut d = Draft::default();
    let k = d.size("k");
    let (a, b) = (d.reals("a", std::slice::from_ref(&k)), d.reals("b", std::slice::from_ref(&k)));
    let chosen = d.build(&k, |_, i| {
        let (x, y) = (index(&a, std::slice::from_ref(&i)), index(&b, std::slice::from_ref(&i)));
        cond(&op2(Op::Lt, &x, &y), &mul(&x, &x), &y)
    });
    let bulk = {
        let program = d.program(chosen);
        let (bulk, _) =
            pullback_ad::bulk::b_bot::transform(&program, pullback_ad::bulk::b_bot::Rules::Guarded);
        let mut core = CoreProgram::default();
        function(&mut core, &bulk, "f").expect("core has all that it needs");
        print(&core)
    };
    assert_eq!(bulk.matches(" if ").count(), 1, "{bulk}");
    lacks(&bulk, &["[][]f64", "array("]);
}

/// Sums of the rows before these ones, of which the first has none; and of the row at the place of the largest of no numbers, which is -1. Both are sums that do not depend
/// on the loop over `[.., ..]`, but in front of it nothing shows that there is a row.
#[test]
fn sums_behind_a_condition_stay_there() {
    let mut d = Draft::default();
    let (k, m) = (d.size("k"), d.size("m"));
    let (x, a) = (d.reals("x", std::slice::from_ref(&k)), d.reals("a", &[k.clone(), m.clone()]));
    let before = d.gather(&[k, m], &a, 1, |_, i| vec![sub(&i[0], &int(1))]);
    let text = text_of(d, stack(&[x, sum(&transpose(&[1, 0], &before))]), &[one_to(3), matrix(3, 2)]);
    assert!(text.contains("if "), "{text}");

    for none in [0, 3] {
        let mut d = Draft::default();
        let (k, m, l) = (d.size("k"), d.size("m"), d.size("l"));
        let (x, a) = (d.reals("x", &[l]), d.reals("a", &[k, m]));
        let row = index(&a, &[arg_max(&x)]);
        text_of(d, stack(&[real(1.0), sum(&row)]), &[one_to(none), matrix(3, 2)]);
    }
}

/// `stored_inside` of what may be outside: sums of rows that are read through copies, of which the first one is not there. The condition has one more counter than the sums.
#[test]
fn copies_of_sums_behind_a_condition_stay_there() {
    let mut d = Draft::default();
    let (k, m) = (d.size("k"), d.size("m"));
    let a = d.reals("a", &[k.clone(), m.clone()]);
    let moved = d.gather(&[n(3), k, m], &replicate(&n(3), &a), 2, |_, i| {
        vec![add(&i[0], &int(1)), sub(&i[1], &int(1))]
    });
    let squares = d.let_(&sum(&transpose(&[2, 0, 1], &moved)), |_, x| mul(&x, &x));
    text_of(d, squares, &[matrix(3, 2)]);
}

/// The text of a gradient, once the dual numbers of the interpreter agree with it.
fn gradient(text: &str, args: &[CoreValue]) -> String {
    assert_eq!(bulk_mismatch(text, args), None);
    let (program, ..) = derived(text);
    print(&program).split("f_bulk").nth(1).expect("the gradient").to_string()
}

/// `sum_i exp (a_i)`: the exponentials of the function are the factors of its gradient.
#[test]
fn what_the_function_computed_is_read() {
    let text = "fun f(a: []f64): f64 {
        let n: i64 = size(a, 0)
        let e: []f64 = map n [a] (x: f64) { let t: f64 = exp.f64(x) in t }
        let s: f64 = reduce n [0.0f64] [e] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
        in s
    }";
    let text = gradient(text, &[CoreValue::f64s(&[0.0, 1.0, -2.0])]);
    assert_eq!(text.matches("exp.f64").count(), 1, "{text}");
}

/// The smallest distance to some points: only the point that is nearest gets something, and costs something.
#[test]
fn one_element_of_each_row_is_sent() {
    let text = "fun f(xs: []f64, cs: []f64): f64 {
        let n: i64 = size(xs, 0)
        let k: i64 = size(cs, 0)
        let ds: []f64 = map n [xs] (x: f64) {
            let es: []f64 = map k [cs] (c: f64) {
                let d: f64 = sub.f64(x, c)
                let e: f64 = mul.f64(d, d)
                in e
            }
            let m: f64 = reduce_comm k [f64.inf] [es] (p: f64, q: f64) { let r: f64 = min.f64(p, q) in r }
            in m
        }
        let s: f64 = reduce n [0.0f64] [ds] (p2: f64, q2: f64) { let r2: f64 = add.f64(p2, q2) in r2 }
        in s
    }";
    let some = |n: usize| CoreValue::f64s(&(0..n).map(|i| (i as f64 * 0.7).sin()).collect::<Vec<_>>());
    let steps = |k: usize| {
        let (program, _, g) = derived(text);
        let args = vec![some(40), some(k), CoreValue::f64(1.0)];
        run(&program, g, &args).1.work
    };
    let _ = gradient(text, &[some(5), some(3)]);
    let (few, many) = (steps(10), steps(110));
    // Per pair: the distances of the function and of the derivative, two reductions, and no more for what is not chosen.
    assert!((many - few) / (40 * 100) <= 26, "{few} {many}");
}

/// Zeros stop at all factors in a branch only.
#[test]
fn zeros_stop_where_something_is_chosen() {
    let text = "fun f(a: []f64, b: []f64): f64 {
        let n: i64 = size(a, 0)
        let p: []f64 = map n [a, b] (x: f64, y: f64) {
            let t: f64 = mul.f64(x, y)
            let c: bool = lt.f64(0.0f64, t)
            let u: f64 = if c { let v: f64 = mul.f64(t, x) in v } else { in t }
            in u
        }
        let s: f64 = reduce n [0.0f64] [p] (p1: f64, q: f64) { let r: f64 = add.f64(p1, q) in r }
        in s
    }";
    let (a, b) = (CoreValue::f64s(&[1.0, 2.0, 3.0]), CoreValue::f64s(&[0.5, -1.0, 2.0]));
    let text = gradient(text, &[a, b]);
    // t * x has two factors, and so has x * y.
    assert_eq!(text.matches("strong_mul.f64").count(), 2, "{text}");
}

/// `sum_ij (a_i b_j) c_j`, as nested sums: a factor comes out of the sum over the others.
#[test]
fn factors_come_out_of_sums_of_cotangents() {
    let text = "fun f(a: []f64, b: [][]f64): f64 {
        let n: i64 = size(b, 0)
        let m: i64 = size(a, 0)
        let k: i64 = size(b, 1)
        let same: bool = eq.i64(k, m)
        let u: () = assert(same, \"two sizes\")
        let rows: []f64 = map n [b] (row: []f64) {
            let ps: []f64 = map m [row, a] (x: f64, y: f64) { let t: f64 = mul.f64(x, y) in t }
            let s: f64 = reduce m [0.0f64] [ps] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
            in s
        }
        let all: f64 = reduce n [0.0f64] [rows] (p2: f64, q2: f64) { let r2: f64 = add.f64(p2, q2) in r2 }
        in all
    }";
    let rows = CoreValue::Array(Array::new(vec![2, 3], Buffer::F64(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let text = gradient(text, &[CoreValue::f64s(&[1.0, 2.0, 3.0]), rows]);
    lacks(&text, &["withacc", "if "]);
}

/// `sum_ijk if c then w_i x_jk^2 else 0`, where `c` is over `i`, `j`, `k` and two numbers `a` and `b` of `i`.
fn chosen(condition: &str) -> String {
    let sum = |name: &str, n: &str, of: &str| {
        format!(
            "let {name}: f64 = reduce {n} [0.0f64] [{of}] ({name}1: f64, {name}2: f64) {{
                let {name}3: f64 = add.f64({name}1, {name}2) in {name}3
            }} in {name}"
        )
    };
    let (of_row, of_rows, of_all) = (sum("s", "m", "es"), sum("r", "l", "rows"), sum("t", "n", "all"));
    format!(
        "fun f(x: [][]f64, w: []f64, p: []i64, q: []i64): f64 {{
            let l: i64 = size(x, 0)
            let m: i64 = size(x, 1)
            let n: i64 = size(w, 0)
            let js: []i64 = iota(l)
            let ks: []i64 = iota(m)
            let all: []f64 = map n [w, p, q] (v: f64, a: i64, b: i64) {{
                let rows: []f64 = map l [x, js] (row: []f64, j: i64) {{
                    let es: []f64 = map m [row, ks] (y: f64, k: i64) {{
                        {condition}
                        let z: f64 = if c {{
                            let square: f64 = mul.f64(y, y)
                            let weighed: f64 = mul.f64(v, square)
                            in weighed
                        }} else {{ in 0.0f64 }}
                        in z
                    }}
                    {of_row}
                }}
                {of_rows}
            }}
            {of_all}
        }}"
    )
}

/// A condition says where something is sent: of each counter one place, which has no counter in it that has a place itself. What it says besides is asked.
#[test]
fn conditions_that_say_more_than_one_place() {
    let integers = |xs: &[i64]| CoreValue::Array(Array::new(vec![xs.len()], Buffer::I64(xs.to_vec())));
    let x = CoreValue::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (w, p, q) = ([1.0, -2.0, 0.5, 3.0], integers(&[0, 2, 1, 0]), integers(&[0, 2, -1, 1]));
    let args = [x, CoreValue::f64s(&w), p, q];
    let is_k = "let is_k: bool = eq.i64(k, a)";
    let is_next = "let after: i64 = add.i64(k, 1i64) let is_next: bool = eq.i64(j, after)";
    let alone =
        "let square2: i64 = mul.i64(j, j) let at: i64 = add.i64(square2, a) let c: bool = eq.i64(j, at)";
    for (condition, is_sent) in [
        (format!("{is_k} let is_b: bool = eq.i64(k, b) let c: bool = and.bool(is_k, is_b)"), true),
        (format!("{is_k} {is_next} let c: bool = and.bool(is_k, is_next)"), true),
        (format!("{is_k} {is_next} let c: bool = and.bool(is_next, is_k)"), true),
        (alone.into(), false),
    ] {
        let text = gradient(&chosen(&condition), &args);
        assert_eq!(text.contains("withacc"), is_sent, "{text}");
    }
}
