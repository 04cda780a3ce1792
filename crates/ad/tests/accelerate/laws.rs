//! Properties of gradients of random programs.

use super::build::*;
use super::generate::{Random, program, seeds};
use super::gradients::*;
use pullback_ad::accelerate::label::{Label, label_arr, label_exp};
use pullback_ad::accelerate::language::{Arr, ArrForm, Exp, ExpForm, Program, arrs, funs};
use pullback_core::Value;
use pullback_interp::core::Options;
use pullback_interp::dual::jacobian;
use std::collections::BTreeMap;

/// Adjoints of these values: random floats, and zeros for integers.
pub(super) fn adjoints(values: &[Value], random: &mut Random) -> Vec<Value> {
    let of = |v: &Value| match v {
        Value::Scalar(s) if s.scalar().is_float() => Value::f64(random.unit()),
        Value::Scalar(_) => Value::i64(0),
        Value::Array(a) if !v.floats().is_empty() || a.count() == 0 => {
            Value::f64_array(&a.shape, &v.floats().iter().map(|_| random.unit()).collect::<Vec<f64>>())
        }
        Value::Array(a) => ints_of(&a.shape, &vec![0; a.count()]),
        v => panic!("{v:?}"),
    };
    values.iter().map(of).collect()
}

/// The gradient of a program, if it is right: it is compared with dual numbers, in all variants.
fn compared(program: &Program, args: &[Value], random: &mut Random) -> Result<Vec<f64>, String> {
    let (core, f) = lowered(program);
    let plain = run(program, args);
    let seeds = adjoints(&plain, random);
    let oracle = jacobian(&core, f, args, &Options::default()).expect("runs");
    let expected = oracle.pull_back(&floats(&seeds));
    for (k, options) in variants().into_iter().enumerate() {
        let g = derived(program, options).program;
        let all = with_seeds(program, args, &seeds);
        // In the variant of the text, the order of evaluation does not matter.
        let found = if k == 0 { run(&g, &all) } else { counted(&g, &all).0 };
        let (values, gradient) = found.split_at(plain.len());
        if !values.iter().zip(&plain).all(|(x, y)| agree(x, y)) {
            return Err(format!("{options:?}: the value is {values:?}, not {plain:?}"));
        }
        let is_zero = |v: &Value| match v {
            Value::Array(a) => a.elements().all(|x| x == Value::i64(0)),
            v => *v == Value::i64(0),
        };
        if gradient.len() != args.len() || !gradient.iter().all(|v| !v.floats().is_empty() || is_zero(v)) {
            return Err(format!("{options:?}: {gradient:?} is no adjoint of {args:?}"));
        }
        let found = floats(gradient);
        let near = |(x, e): (&f64, &f64)| !e.is_finite() || is_near(*x, *e, 1e-7);
        if found.len() != expected.len() || !found.iter().zip(&expected).all(near) {
            return Err(format!("{options:?}: {found:?}, not {expected:?}"));
        }
    }
    Ok(expected)
}

#[test]
fn gradients_of_random_programs_are_those_of_dual_numbers() {
    let (mut all, mut vary) = (0, 0);
    for seed in seeds(150) {
        let (program, args) = program(seed);
        let gradient = compared(&program, &args, &mut Random(seed));
        let gradient =
            gradient.unwrap_or_else(|why| panic!("SEED={seed} COUNT=1: {why}\n{args:?}\n{program}"));
        all += 1;
        vary += usize::from(gradient.iter().any(|x| x.is_finite() && *x != 0.0));
    }
    // Of most programs the result depends on the argument.
    assert!(all < 100 || vary * 3 > all * 2, "{vary} of {all}");
}

/// The constructs, and how many of the programs have them.
fn constructs(program: &Program, out: &mut BTreeMap<String, usize>) {
    let mut names = BTreeMap::new();
    let head = |text: String| text.split([' ', '(', '{']).next().unwrap_or_default().to_string();
    each_arr(&program.body, &mut |u| {
        names.insert(format!("a{}", head(format!("{:?}", u.form()))), 1);
    });
    each_exp_of(&program.body, &mut |e| {
        names.insert(head(format!("{:?}", e.form())), 1);
    });
    names.into_iter().for_each(|(name, one)| *out.entry(name).or_default() += one);
}

#[test]
fn random_programs_have_all_constructs() {
    let mut found = BTreeMap::new();
    (0..250).for_each(|seed| constructs(&program(seed).0, &mut found));
    let arrays =
        ["Var", "Let", "Tuple", "Proj", "Reshape", "Replicate", "Slice", "Generate", "Map", "ZipWith"];
    let others = ["Sum", "Foldl", "Fold1", "Collect", "Iterate", "Permute", "Backpermute", "Cond"];
    let scalars = ["Const", "Var", "Let", "Tuple", "Proj", "Prim", "Index", "Shape", "Cond"];
    let arrays = arrays.iter().chain(&others).map(|name| format!("a{name}"));
    for name in arrays.chain(scalars.map(String::from)) {
        assert!(found.get(&name).is_some_and(|n| *n >= 15), "{name}: {found:?}");
    }
}

/// The label of a term, if its own is its body's where it is a let; labels are collected.
fn labels(u: &Arr<Label>, out: &mut Vec<Label>) -> Label {
    let of_arguments: Vec<Label> = arrs(u.form()).into_iter().map(|m| labels(m, out)).collect();
    match u.form() {
        ArrForm::Let(..) => assert_eq!(Some(u.label()), of_arguments.last()),
        _ => out.push(*u.label()),
    }
    *u.label()
}
fn labels_exp(e: &Exp<Label>, out: &mut Vec<Label>) -> Label {
    match e.form() {
        ExpForm::Let(bindings, body) => {
            bindings.iter().for_each(|(_, u)| {
                labels_exp(u, out);
            });
            assert_eq!(labels_exp(body, out), *e.label());
            return *e.label();
        }
        ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Shape(_) => {}
        ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| {
            labels_exp(e, out);
        }),
        ExpForm::Proj(e, _) | ExpForm::Index(_, e) => {
            labels_exp(e, out);
        }
        ExpForm::Cond(c, t, e) => [c, t, e].into_iter().for_each(|e| {
            labels_exp(e, out);
        }),
    }
    out.push(*e.label());
    *e.label()
}

/// The labels are the numbers from 1 on, each once.
fn is_counted(mut found: Vec<Label>, next: Label) -> bool {
    found.sort_unstable();
    found.into_iter().eq(1..=next)
}

#[test]
fn each_node_has_a_label_of_its_own_and_a_let_that_of_its_body() {
    for seed in seeds(150) {
        let (program, _) = program(seed);
        let (mut next, mut found) = (0, Vec::new());
        labels(&label_arr(&program.body, &mut next), &mut found);
        assert!(is_counted(found, next), "SEED={seed}\n{program}");
        each_arr(&program.body, &mut |u| {
            for f in funs(u.form()) {
                let (mut next, mut found) = (0, Vec::new());
                labels_exp(&label_exp(&f.body, &mut next), &mut found);
                assert!(is_counted(found, next), "SEED={seed}\n{program}");
            }
        });
    }
}

/// `Map f (Alet a = Use [1, 2, 3] in Map g (Avar a))`: the argument of the outer map has the label of the inner one.
#[test]
fn labels_of_the_example_of_the_text() {
    let b = Draft::default();
    let program = b.program(scalar(real()), |_| {
        let inner = b.alet(&constants(&[3], &[1.0, 2.0, 3.0]), |a| b.map(|x| x * r(2.0), &var(a)));
        b.map(|x| x + r(1.0), &inner)
    });
    let body = label_arr(&program.body, &mut 0);
    let ArrForm::Map(_, argument) = body.form() else { panic!("a map") };
    let ArrForm::Let(bindings, inner) = argument.form() else { panic!("a let") };
    assert_eq!(argument.label(), inner.label());
    let ArrForm::Map(_, read) = inner.form() else { panic!("a map") };
    let all = [*body.label(), *inner.label(), *read.label(), *bindings[0].1.label()];
    assert!(is_counted(all.to_vec(), 4), "{all:?}");
}
