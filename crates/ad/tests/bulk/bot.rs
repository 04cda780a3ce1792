//! The bulk-operation transformation.

use super::build::*;
use super::generate::{Indices, program, seeds};
use pullback_ad::bulk::a_core::{Exp, Program, Term};
use pullback_ad::bulk::b_bot::{Rules, Step, transform};
use pullback_ad::bulk::sizes::Size;
use pullback_prim::Op;
use std::collections::BTreeMap;

fn bulk(program: &Program, rules: Rules) -> (Program, Vec<Step>) {
    let (bulk, steps) = transform(program, rules);
    bulk.check().unwrap_or_else(|why| panic!("{why}\n{program}\n{bulk}"));
    assert!(bulk.body.is_normal(), "not in normal form:\n{bulk}");
    assert!(is_normal_form(&bulk.body), "not in normal form:\n{bulk}");
    (bulk, steps)
}

/// Theorem 2, read off the text.
fn is_normal_form(t: &Term) -> bool {
    let here = match t.exp() {
        Exp::Build1(..) => false,
        Exp::Index(array, ix) => is_last(array, ix),
        _ => true,
    };
    here && children(t).iter().all(is_normal_form)
}

/// The forms of `index` that no rule takes apart.
fn is_last(array: &Term, ix: &[Term]) -> bool {
    match array.exp() {
        Exp::Var(_)
        | Exp::Const(_)
        | Exp::Iota(_)
        | Exp::Scatter(..)
        | Exp::ArgScatter(..)
        | Exp::Scanl(..) => !ix.is_empty(),
        Exp::Stack(_) => ix.len() == 1,
        _ => false,
    }
}

/// The parts of a term, index functions too.
fn children(t: &Term) -> Vec<Term> {
    match t.exp() {
        Exp::Const(_) | Exp::Size(_) | Exp::Iota(_) | Exp::Var(_) => Vec::new(),
        Exp::Let(_, u, v) => vec![u.clone(), v.clone()],
        Exp::Cond(b, u, v) => vec![b.clone(), u.clone(), v.clone()],
        Exp::Op(_, ts) | Exp::Stack(ts) => ts.clone(),
        Exp::Index(t, ix) => [std::slice::from_ref(t), ix].concat(),
        Exp::SumOuter(t)
        | Exp::ArgOuter(_, t)
        | Exp::Replicate(_, t)
        | Exp::Transpose(_, t)
        | Exp::Reshape(_, t)
        | Exp::Build1(_, _, t) => vec![t.clone()],
        Exp::Gather(_, t, f) | Exp::Scatter(_, t, f) | Exp::ArgScatter(_, _, t, f) => {
            [std::slice::from_ref(t), f.index.as_slice()].concat()
        }
        Exp::Scanl(f, z, ts) => [ts.as_slice(), &[z.clone(), f.body.clone()]].concat(),
    }
}

/// Programs of this kind of indices whose values these rules change.
fn changed(seeds: std::ops::Range<u64>, indices: Indices, rules: Rules) -> Vec<u64> {
    let is_changed = |seed: &u64| {
        let (source, arguments) = program(*seed, indices);
        let (bulk, _) = bulk(&source, rules);
        !agree(&value(&source, &arguments), &value(&bulk, &arguments), 1e-12)
    };
    seeds.filter(is_changed).collect()
}

#[test]
fn guarded_rules_keep_values_also_outside_of_arrays() {
    for indices in [Indices::Inside, Indices::Anywhere] {
        assert_eq!(changed(seeds(1000), indices, Rules::Guarded), [0; 0], "{indices:?}");
    }
}

#[test]
fn printed_and_repaired_rules_keep_values_inside_of_arrays() {
    for rules in [Rules::Printed, Rules::Repaired] {
        assert_eq!(changed(seeds(500), Indices::Inside, rules), [0; 0], "{rules:?}");
    }
}

/// The generator finds that the printed rules are wrong outside of arrays: the notes found 357 in 6,000 programs.
#[test]
fn printed_and_repaired_rules_change_what_is_read_outside() {
    for rules in [Rules::Printed, Rules::Repaired] {
        assert!(changed(0..1500, Indices::Anywhere, rules).len() > 20, "{rules:?}");
    }
}

/// All rules of the figures are tried by the random programs, and those that are ours.
#[test]
fn every_rule_is_applied() {
    let printed = [
        "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9", "B10", "B11", "B12", "B13", "I1", "I2", "I3",
        "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "BI1", "BI2", "BI3", "BI4",
    ];
    let ours = ["B14", "B3'", "B7'", "B9'", "I7'", "B8'", "I10'", "I12'", "BI0"];
    for (rules, names) in [(Rules::Printed, &printed[..]), (Rules::Guarded, &ours)] {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..1500 {
            let (source, _) = program(seed, Indices::Anywhere);
            transform(&source, rules).1.iter().for_each(|step| *count.entry(step.rule).or_default() += 1);
        }
        for name in names {
            assert!(count.get(name).copied().unwrap_or(0) >= 5, "{rules:?}, {name}: {count:?}");
        }
    }
}

/// How much is left to do where a rule applies: of `build1` more than of `index`; then the weight of what it is of; then the components.
fn measure(t: &Term) -> Option<(u8, usize, usize)> {
    match t.exp() {
        Exp::Build1(_, _, body) => Some((1, weight(body), 0)),
        Exp::Index(array, ix) if !is_last(array, ix) => Some((0, weight(array), ix.len())),
        _ => None,
    }
}

/// The depth of a term, in which what a rule turns into something else counts more than that. Index functions and conditions do not count: no rule takes them apart.
fn weight(t: &Term) -> usize {
    let deepest = |ts: &[Term]| ts.iter().map(weight).max().unwrap_or(0);
    match t.exp() {
        Exp::Const(_) | Exp::Size(_) | Exp::Iota(_) | Exp::Var(_) => 0,
        Exp::Let(_, u, v) => 1 + deepest(&[u.clone(), v.clone()]),
        Exp::Cond(_, u, v) => 3 + deepest(&[u.clone(), v.clone()]),
        Exp::Op(_, ts) | Exp::Stack(ts) => 1 + deepest(ts),
        // B3 puts these where variables were.
        Exp::Index(t, _) if weight(t) == 0 => 0,
        Exp::Index(t, _) | Exp::Replicate(_, t) | Exp::Build1(_, _, t) => 1 + weight(t),
        Exp::Gather(_, t, _) | Exp::Scatter(_, t, _) | Exp::ArgScatter(_, _, t, _) => 2 + weight(t),
        Exp::Transpose(_, t) | Exp::Reshape(_, t) => 3 + weight(t),
        Exp::SumOuter(t) | Exp::ArgOuter(_, t) => 4 + weight(t),
        // B14 makes `build1` of all parts, and transposes them and the result.
        Exp::Scanl(f, z, ts) => 4 + deepest(&[ts.as_slice(), &[z.clone(), f.body.clone()]].concat()),
    }
}

fn left(t: &Term) -> Vec<(u8, usize, usize)> {
    measure(t).into_iter().chain(children(t).iter().flat_map(left)).collect()
}

/// Termination: what a rule leaves to do is less, one by one, than what it was applied to. Innermost first, so nothing else was left.
#[test]
fn what_is_left_to_do_gets_less() {
    let mut tried = 0;
    for rules in [Rules::Printed, Rules::Repaired, Rules::Guarded] {
        for seed in 0..600 {
            let (source, _) = program(seed, Indices::Anywhere);
            for step in transform(&source, rules).1 {
                let before = measure(&step.before).expect("a rule applies");
                let after = left(&step.after).into_iter().max();
                assert!(
                    after < Some(before),
                    "{}: {before:?} {after:?}\n{}\n~>\n{}",
                    step.rule,
                    step.before,
                    step.after
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 5000, "{tried}");
}

#[test]
fn no_rule_changes_a_type() {
    for rules in [Rules::Printed, Rules::Guarded] {
        for seed in 700..1000 {
            let (source, _) = program(seed, Indices::Anywhere);
            for step in transform(&source, rules).1 {
                assert_eq!(step.before.ty(), step.after.ty(), "{}: {}", step.rule, step.before);
            }
        }
    }
}

/// A program over `y : Array [3] f64` that is 4 iterations, of which the last reads outside.
fn outside(body: impl FnOnce(&mut Draft, &Term, Term) -> Term) -> Program {
    let mut d = Draft::default();
    let y = d.reals("y", &[n(3)]);
    let body = d.build(&n(4), |d, i| body(d, &y, i));
    d.program(body)
}

/// The table of the notes, section 2.6: what each rule makes of an index outside, by hand.
#[test]
fn each_unsound_rule_has_a_witness() {
    let witnesses: [(&str, Program, [f64; 4], [f64; 4]); 6] = [
        (
            "I9",
            outside(|_, y, i| index(&replicate(&n(2), &index(y, std::slice::from_ref(&i))), &[i])),
            [2.0, 4.0, 0.0, 0.0],
            [2.0, 4.0, 6.0, 0.0],
        ),
        (
            "I6",
            outside(|_, y, i| index(&op1(Op::Exp, y), &[i])),
            [2f64.exp(), 4f64.exp(), 6f64.exp(), 0.0],
            [2f64.exp(), 4f64.exp(), 6f64.exp(), 1.0],
        ),
        (
            "I5",
            outside(|_, y, i| {
                let same = index(&op2(Op::Eq, y, &op1(Op::Abs, y)), &[i]);
                cond(&same, &real(1.0), &real(0.0))
            }),
            [1.0, 1.0, 1.0, 0.0],
            [1.0, 1.0, 1.0, 1.0],
        ),
        (
            "I11",
            outside(|_, y, i| index(&reshape(&[n(3), n(2)], &stack(&[y.clone(), y.clone()])), &[int(0), i])),
            [2.0, 4.0, 0.0, 0.0],
            [2.0, 4.0, 6.0, 2.0],
        ),
        (
            "I12'",
            outside(|d, y, i| index(&d.gather(&[n(2)], y, 1, |_, _| vec![int(2)]), &[i])),
            [6.0, 6.0, 0.0, 0.0],
            [6.0, 6.0, 6.0, 6.0],
        ),
        (
            "I7'",
            outside(|_, y, i| to_real(&index(&arg_max(&replicate(&n(0), y)), &[i]))),
            [-1.0, -1.0, -1.0, 0.0],
            [-1.0, -1.0, -1.0, -1.0],
        ),
    ];
    for (rule, source, right, repaired) in witnesses {
        let y = [reals(&[3], &[2.0, 4.0, 6.0])];
        let (by_guarded, _) = bulk(&source, Rules::Guarded);
        let (by_repaired, steps) = bulk(&source, Rules::Repaired);
        assert!(steps.iter().any(|step| step.rule == rule), "{rule}: {steps:?}");
        assert_eq!(value(&source, &y), reals(&[4], &right), "{rule}");
        assert_eq!(value(&by_guarded, &y), reals(&[4], &right), "{rule}\n{by_guarded}");
        assert!(agree(&value(&by_repaired, &y), &reals(&[4], &repaired), 1e-15), "{rule}\n{by_repaired}");
    }
}

/// What is known of an index decides whether a guard is needed: of `i` in `0 .. n - 1`, of `n - 1 - i` and of `i mod 2`, nothing is asked at run time.
#[test]
fn guards_that_sizes_show_are_left_out() {
    let conditions = |make: &dyn Fn(&mut Draft, &Size, Term) -> Term| {
        let mut d = Draft::default();
        let k = d.size("n");
        let y = d.reals("y", std::slice::from_ref(&k));
        let body = d.build(&k, |d, i| {
            let at = make(d, &k, i);
            index(&op1(Op::Exp, &y), &[at])
        });
        let (bulk, _) = bulk(&d.program(body), Rules::Guarded);
        bulk.to_string().matches("cond").count()
    };
    assert_eq!(conditions(&|_, _, i| i), 0);
    assert_eq!(conditions(&|_, k, i| sub(&sub(&Term::size(k), &int(1)), &i)), 0);
    assert_eq!(
        conditions(&|_, _, i| op2(Op::Max, &i, &int(0))),
        1,
        "an operation that the analysis does not know"
    );
    assert_eq!(conditions(&|_, _, i| add(&i, &int(1))), 1);
    assert_eq!(conditions(&|_, _, i| sub(&i, &int(1))), 1);
    assert_eq!(conditions(&|_, _, i| op2(Op::Mod, &i, &int(2))), 1, "n may be 1");
}

/// The sum of the sines of a product of matrices `[k, m]` and `[m, n]`.
pub(super) fn product(k: &Size, m: &Size, n: &Size, mut d: Draft) -> Program {
    let a = d.reals("a", &[k.clone(), m.clone()]);
    let b = d.reals("b", &[m.clone(), n.clone()]);
    let rows = d.build(k, |d, i| {
        d.build(n, |d, j| {
            sum(&d.build(m, |_, p| mul(&index(&a, &[i.clone(), p.clone()]), &index(&b, &[p, j.clone()]))))
        })
    });
    d.program(total(&op1(Op::Sin, &rows)))
}

/// T5 of the notes, with its numbers. One program for all sizes.
#[test]
fn a_product_of_matrices_is_quadratic_by_the_printed_rules_only() {
    let mut d = Draft::default();
    let (k, m, n) = (d.size("k"), d.size("m"), d.size("n"));
    let source = product(&k, &m, &n, d);
    let elements = |program: &Program| -> Vec<u64> {
        let arguments = |n: usize| [reals(&[1, 4], &[0.5; 4]), reals(&[4, n], &vec![0.25; 4 * n])];
        [10, 20, 40].into_iter().map(|n| cost(program, &arguments(n))).collect()
    };
    assert_eq!(elements(&source), [271, 541, 1081]);
    assert_eq!(elements(&bulk(&source, Rules::Printed).0), [779, 2349, 7889]);
    assert_eq!(elements(&bulk(&source, Rules::Repaired).0), [375, 745, 1485]);
    assert_eq!(elements(&bulk(&source, Rules::Guarded).0), [375, 745, 1485]);
}

/// T6 of the notes: of a chain of reshapes and transpositions, the printed rules double index expressions with each step. By hand, for `d` steps on 12 elements:
///
/// - Printed: of an index `e` a step makes `(e mod 3) * 4 + e div 3`, with twice its nodes and 7 more, twice its operations and 4 more. Beside it are `gather` and `y`. An element costs one, and its operations.
/// - Repaired: a step has three names. `q mod 3` and `q div 3` are 7 nodes each: `let`, the operation, `gather q`, and a constant that is replicated. `q * 4 + r` has 11. They make 3, 3 and 5 arrays. The first step is of `iota`, and
///   the last one is an index function.
///
/// The notes have `26 * 2^d + 3 d - 16` and `51 d + 10` nodes, and do not say of which program. Here whatever a step adds is part of the index, and the next step doubles it, in any count of nodes. Their `3 d` is not doubled, so
/// it is of something beside the index.
#[test]
fn index_expressions_of_a_chain_double_by_the_printed_rules_only() {
    let of = |steps: usize, rules: Rules| {
        let mut d = Draft::default();
        let y = d.reals("y", &[n(12)]);
        let body = d.build(&n(12), |_, i| {
            let turned = (0..steps).fold(y.clone(), |t, _| {
                let rows = reshape(&[n(3), n(4)], &t);
                reshape(&[n(12)], &transpose(&[1, 0], &rows))
            });
            index(&turned, &[i])
        });
        let source = d.program(body);
        let (bulk, _) = bulk(&source, rules);
        assert_eq!(value(&source, &[one_to(12)]), value(&bulk, &[one_to(12)]));
        (bulk.body.nodes(), cost(&bulk, &[one_to(12)]))
    };
    for d in 1..=6 {
        assert_eq!(of(d, Rules::Printed), (8 * (1 << d) - 5, 12 * (4 * (1 << d) - 3)), "{d} steps");
        let more = d as u64 - 1;
        assert_eq!(of(d, Rules::Repaired), (21 + 25 * more, 12 * (9 + 11 * more)), "{d} steps");
    }
}

/// The examples of the notes, section 2.9, by the rules that make them.
#[test]
fn small_programs_become_what_the_text_says() {
    let names =
        |program: &Program| -> Vec<&str> { bulk(program, Rules::Guarded).1.iter().map(|s| s.rule).collect() };
    let mut d = Draft::default();
    let a = d.reals("a", &[n(5)]);
    let body = d.build(&n(5), |_, i| add(&index(&a, &[i]), &real(1.0)));
    let source = d.program(body);
    assert_eq!(names(&source), ["B5", "BI1", "B2"]);
    let text = bulk(&source, Rules::Guarded).0.body.to_string();
    assert_eq!(text, "(add.f64 (gather [5] a1 (\\[i5]. [i5])) (replicate (5) 1.0f64))");

    let mut d = Draft::default();
    let x = d.reals("x", &[n(4)]);
    let body = d.build(&n(3), |d, i| {
        let four = int(4);
        let sent = d.scatter(&[n(4)], &x, 1, |_, j| vec![op2(Op::Mod, &mul(&j[0], &i), &four)]);
        index(&sent, &[op2(Op::Mod, &mul(&int(2), &i), &four)])
    });
    let source = d.program(body);
    assert_eq!(names(&source), ["BI4", "B9", "B2"]);

    // The places of the largest elements of rows.
    let mut d = Draft::default();
    let a = d.reals("a", &[n(2), n(3)]);
    let body = d.build(&n(2), |_, i| arg_max(&index(&a, &[i])));
    let source = d.program(body);
    assert_eq!(names(&source), ["B7'", "BI1"]);
    let text = bulk(&source, Rules::Guarded).0.body.to_string();
    assert_eq!(text, "(argMax (tr_{1,0} (gather [2, 3] a1 (\\[i3]. [i3]))))");
    let rows = [reals(&[2, 3], &[1.0, 5.0, 5.0, 2.0, 1.0, 0.0])];
    assert_eq!(value(&source, &rows), Value::i64s(&[2], &[1, 0]));
}

/// The concatenation of an array with itself: both branches read outside of it, and nothing stops (4.4.2).
#[test]
fn a_conditional_reads_in_both_branches() {
    let mut d = Draft::default();
    let k = d.size("n");
    let a = d.reals("a", std::slice::from_ref(&k));
    let body = d.build(&k.plus(&k), |_, i| {
        let first = op2(Op::Lt, &i, &Term::size(&k));
        cond(&first, &index(&a, std::slice::from_ref(&i)), &index(&a, &[sub(&i, &Term::size(&k))]))
    });
    let source = d.program(body);
    let (bulk, _) = bulk(&source, Rules::Guarded);
    for k in [0, 1, 10] {
        let twice: Vec<f64> = (1..=k).chain(1..=k).map(|x| x as f64).collect();
        let wanted = reals(&[2 * k], &twice);
        assert_eq!(value(&source, &[one_to(k)]), wanted);
        assert_eq!(value(&bulk, &[one_to(k)]), wanted);
    }
}
