//! The bulk-operation transformation, rule by rule: what Figs. 4.10 to 4.12 say, and what is ours, by hand.

use super::build::*;
use pullback_ad::bulk::a_core::{Exp, Extremum, Program, Term};
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_prim::Op;
use std::collections::BTreeMap;

/// The inputs of all programs here: `a : [4]`, `m : [3, 4]`, `t : [3, 2, 4]` and the number `r`.
struct Inputs {
    d: Draft,
    a: Term,
    m: Term,
    t: Term,
    r: Term,
}

fn inputs() -> Inputs {
    let mut d = Draft::default();
    let (a, m) = (d.reals("a", &[n(4)]), d.reals("m", &[n(3), n(4)]));
    let (t, r) = (d.reals("t", &[n(3), n(2), n(4)]), d.reals("r", &[]));
    Inputs { d, a, m, t, r }
}

/// `build1 3` of a body.
fn three(x: &mut Inputs, body: impl FnOnce(&mut Inputs, &Term) -> Term) -> Term {
    let i = x.d.names.index("i");
    let body = body(x, &Term::var(&i));
    term(Exp::Build1(n(3), i, body))
}

/// The text, in which variables of one name are told apart by the order in which they appear.
fn by_order(text: &str) -> String {
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
        // Not the type of an operation, as in `add.f64`, or of an array.
        let is_variable = name.len() == 1 && name != word && !out.ends_with('.') && word != "f64";
        if is_variable {
            let known = seen.entry(name.clone()).or_default();
            let place = known.iter().position(|w| *w == word).unwrap_or_else(|| {
                known.push(word.clone());
                known.len() - 1
            });
            out += &(name + &"'".repeat(place));
        } else {
            out += &word;
        }
        out.push(c);
        word.clear();
    }
    out.trim_end().to_string()
}

/// The rule makes this term where it is applied first, and the program has the same value as before.
fn makes(rules: Rules, rule: &str, make: &dyn Fn(&mut Inputs) -> Term, wanted: &str) {
    let mut x = inputs();
    let body = make(&mut x);
    let source: Program = x.d.program(body);
    let (bulk, steps) = transform(&source, rules);
    let step = steps.iter().find(|step| step.rule == rule);
    let step = step.unwrap_or_else(|| panic!("{rule} is not applied: {steps:?}\n{source}"));
    assert_eq!(by_order(&step.after.to_string()), wanted, "{rule} of {}", step.before);
    let sizes: [&[usize]; 4] = [&[4], &[3, 4], &[3, 2, 4], &[]];
    let arguments = sizes.map(|shape| {
        let xs: Vec<f64> = (0..shape.iter().product()).map(|k: usize| 0.5 + k as f64).collect();
        reals(shape, &xs)
    });
    assert_eq!(value(&source, &arguments), value(&bulk, &arguments), "{rule}\n{source}\n{bulk}");
}

type Case<'a> = (&'a str, &'a dyn Fn(&mut Inputs) -> Term, &'a str);

fn all(rules: Rules, cases: &[Case<'_>]) {
    cases.iter().for_each(|(rule, make, wanted)| makes(rules, rule, make, wanted));
}

fn at(t: &Term, i: &Term) -> Term {
    index(t, std::slice::from_ref(i))
}

/// Fig. 4.10.
#[test]
fn build1_of_each_form() {
    all(
        Rules::Printed,
        &[
            ("B1", &|x| three(x, |_, i| i.clone()), "(iota (3))"),
            ("B2", &|x| three(x, |x, _| x.r.clone()), "(replicate (3) r)"),
            (
                "B3",
                &|x| three(x, |x, i| x.d.let_(&at(&x.a, i), |_, y| add(&y, &y))),
                "let x = (build1 (3) (\\i. (index a [i]))) in\n(build1 (3) (\\i'. (add.f64 (index x [i']) (index x [i']))))",
            ),
            (
                "B4",
                &|x| three(x, |x, i| cond(&op2(Op::Lt, i, &int(1)), &at(&x.a, i), &x.r)),
                "(build1 (3) (\\i. (index [(index a [i]), r] [(cond (lt.i64 i 1i64) 0i64 1i64)])))",
            ),
            (
                "B5",
                &|x| three(x, |x, i| add(&at(&x.a, i), &x.r)),
                "(add.f64 (build1 (3) (\\i. (index a [i]))) (build1 (3) (\\i'. r)))",
            ),
            (
                "B6",
                &|x| three(x, |x, i| op1(Op::Sin, &at(&x.a, i))),
                "(sin.f64 (build1 (3) (\\i. (index a [i]))))",
            ),
            (
                "B7",
                &|x| three(x, |x, i| sum(&at(&x.m, i))),
                "(sumOuter (tr_{1,0} (build1 (3) (\\i. (index m [i])))))",
            ),
            (
                "B8",
                &|x| three(x, |x, i| x.d.gather(&[n(2)], &at(&x.m, i), 1, |_, j| vec![j[0].clone()])),
                "(gather [3, 2] (build1 (3) (\\i. (index m [i]))) (\\[i', j]. [i', j]))",
            ),
            (
                "B9",
                &|x| three(x, |x, i| x.d.scatter(&[n(2)], &at(&x.m, i), 1, |_, j| vec![j[0].clone()])),
                "(scatter [3, 2] (build1 (3) (\\i. (index m [i]))) (\\[i', j]. [i', j]))",
            ),
            (
                "B10",
                &|x| three(x, |x, i| stack(&[at(&x.a, i), x.r.clone()])),
                "(tr_{1,0} [(build1 (3) (\\i. (index a [i]))), (build1 (3) (\\i'. r))])",
            ),
            (
                "B11",
                &|x| three(x, |x, i| replicate(&n(2), &at(&x.a, i))),
                "(tr_{1,0} (replicate (2) (build1 (3) (\\i. (index a [i])))))",
            ),
            (
                "B12",
                &|x| three(x, |x, i| transpose(&[1, 0], &at(&x.t, i))),
                "(tr_{0,2,1} (build1 (3) (\\i. (index t [i]))))",
            ),
            (
                "B13",
                &|x| three(x, |x, i| reshape(&[n(2), n(2)], &at(&x.m, i))),
                "(reshape [3, 2, 2] (build1 (3) (\\i. (index m [i]))))",
            ),
        ],
    );
}

/// Fig. 4.11.
#[test]
fn index_of_each_form() {
    all(
        Rules::Printed,
        &[
            ("I1", &|x| index(&x.r, &[]), "r"),
            ("I2", &|x| index(&index(&x.m, &[int(1)]), &[int(2)]), "(index m [1i64, 2i64])"),
            (
                "I3",
                &|x| at(&x.d.let_(&x.a.clone(), |_, y| add(&y, &y)), &int(1)),
                "let x = a in\n(index (add.f64 x x) [1i64])",
            ),
            (
                "I4",
                &|x| at(&cond(&op2(Op::Lt, &int(1), &int(2)), &x.a, &x.a), &int(1)),
                "let q = 1i64 in\n(cond (lt.i64 1i64 2i64) (index a [q]) (index a [q]))",
            ),
            (
                "I5",
                &|x| at(&add(&x.a, &x.a), &int(1)),
                "let q = 1i64 in\n(add.f64 (index a [q]) (index a [q]))",
            ),
            ("I6", &|x| at(&op1(Op::Sin, &x.a), &int(1)), "(sin.f64 (index a [1i64]))"),
            ("I7", &|x| at(&sum(&x.m), &int(1)), "(sumOuter (index (tr_{1,0} m) [1i64]))"),
            (
                "I8",
                &|x| index(&stack(&[x.a.clone(), x.a.clone()]), &[int(0), int(1)]),
                "let q = 1i64 in\n(index [(index a [q]), (index a [q])] [0i64])",
            ),
            ("I9", &|x| index(&replicate(&n(2), &x.a), &[int(0), int(1)]), "(index a [1i64])"),
            (
                "I10",
                &|x| index(&transpose(&[1, 0], &x.m), &[int(1), int(2)]),
                "(index (gather [4, 3] m (\\[i, i']. [i', i])) [1i64, 2i64])",
            ),
            (
                "I11",
                &|x| index(&reshape(&[n(2), n(2)], &x.a), &[int(1), int(0)]),
                "(index (gather [2, 2] a (\\[i, i']. [(add.i64 (mul.i64 i 2i64) i')])) [1i64, 0i64])",
            ),
            (
                "I12",
                &|x| index(&x.d.gather(&[n(2), n(2)], &x.m, 2, |_, j| j.to_vec()), &[int(1), int(0)]),
                "(index (gather [2] m (\\[j]. [1i64, j])) [0i64])",
            ),
            (
                "I13",
                &|x| index(&x.d.gather(&[], &x.a, 0, |_, _| vec![int(2)]), &[]),
                "(index (index a [2i64]) [])",
            ),
        ],
    );
}

/// Fig. 4.12.
#[test]
fn build1_of_index() {
    all(
        Rules::Printed,
        &[
            ("BI1", &|x| three(x, |x, i| at(&x.a, i)), "(gather [3] a (\\[i]. [i]))"),
            (
                "BI2",
                &|x| three(x, |_, i| at(&term(Exp::Const(reals(&[3], &[1.0, 2.0, 4.0]))), i)),
                "(gather [3] (constant Array [3] f64 [1.0f64, 2.0f64, 4.0f64]) (\\[i]. [i]))",
            ),
            (
                "BI3",
                &|x| three(x, |x, i| at(&stack(&[at(&x.a, i), x.r.clone()]), &sub(i, &int(1)))),
                "(gather [3] (build1 (3) (\\i. [(index a [i]), r])) (\\[i']. [i', (sub.i64 i' 1i64)]))",
            ),
            (
                "BI4",
                &|x| {
                    three(x, |x, i| {
                        let sent = x.d.scatter(&[n(4)], &x.a.clone(), 1, |_, j| vec![sub(&j[0], i)]);
                        at(&sent, &int(0))
                    })
                },
                "(gather [3] (build1 (3) (\\i. (scatter [4] a (\\[j]. [(sub.i64 j i)])))) (\\[i']. [i', 0i64]))",
            ),
        ],
    );
}

/// What the figures do not have: no copies, no doubling of indices, and the places of largest elements.
#[test]
fn rules_of_ours() {
    all(
        Rules::Guarded,
        &[
            (
                "B3'",
                &|x| {
                    three(x, |x, i| x.d.let_(&x.r.clone(), |d, y| add(&y, &at(&Term::var(&d.inputs[0]), i))))
                },
                "let x = r in\n(build1 (3) (\\i. (add.f64 x (index a [i]))))",
            ),
            (
                "B7'",
                &|x| three(x, |x, i| arg_max(&at(&x.m, i))),
                "(argMax (tr_{1,0} (build1 (3) (\\i. (index m [i])))))",
            ),
            (
                "B9'",
                &|x| {
                    three(x, |x, i| {
                        let f = x.d.function(1, |_, j| vec![sub(&j[0], i)]);
                        arg_at(Extremum::Max, &[n(2)], &at(&x.m, i), f)
                    })
                },
                "(argMaxAt [3, 2] (build1 (3) (\\i. (index m [i]))) (\\[i', j]. [i', (sub.i64 j i')]))",
            ),
            (
                "BI4",
                &|x| {
                    three(x, |x, i| {
                        let f = x.d.function(1, |_, j| vec![sub(&j[0], i)]);
                        at(&arg_at(Extremum::Min, &[n(2)], &x.a, f), &int(0))
                    })
                },
                "(gather [3] (build1 (3) (\\i. (argMinAt [2] a (\\[j]. [(sub.i64 j i)])))) (\\[i']. [i', 0i64]))",
            ),
            (
                "B8'",
                &|x| {
                    three(x, |x, i| {
                        x.d.gather(&[n(2)], &x.m.clone(), 1, |_, j| vec![i.clone(), j[0].clone()])
                    })
                },
                "(gather [3, 2] m (\\[i, j]. [i, j]))",
            ),
            ("I7'", &|x| at(&arg_max(&x.m), &int(1)), "(argMax (index (tr_{1,0} m) [1i64]))"),
            ("I10'", &|x| index(&transpose(&[1, 0], &x.m), &[int(1), int(2)]), "(index m [2i64, 1i64])"),
            (
                "I12'",
                &|x| {
                    let moved = x.d.gather(&[n(2), n(2)], &x.m.clone(), 2, |_, j| j.to_vec());
                    index(&moved, &[sub(&int(2), &int(1)), int(0)])
                },
                "let q = (sub.i64 2i64 1i64) in\n(index (gather [2] m (\\[j]. [q, j])) [0i64])",
            ),
            (
                "BI0",
                &|x| three(x, |x, i| at(&stack(&[x.r.clone(), x.r.clone(), x.r.clone()]), i)),
                "(gather [3] [r, r, r] (\\[i]. [i]))",
            ),
        ],
    );
}
