//! Each pass on programs before and after (`tests/*.core`), and all passes on programs that are then run: the values are
//! the same bit for bit.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use crate::common::load;
use pullback_core::{FunId, Program, Rules, Type, Value, check, print};
use pullback_interp::core::{Options, run};
use pullback_opt::{
    COPY_ELISION, CSE, Ctx, DEAD_ARGUMENT_ELIMINATION, ELIMINATE_ACCUMULATORS, FUSE, GATHER,
    GUARD_ELIMINATION, HOIST, INLINE, JOIN_BRANCHES, ONE_HOT_REDUCTION, PASSES, PRUNE, Pass, REMATERIALISE,
    SHORTEN, SIMPLIFY, SINK, UNBOX, UNROLL, pass,
};
use pullback_prim::{Scalar, ScalarValue};

/// Hints aside: passes keep them, but the texts after the arrow are written by hand.
fn shape(program: &Program) -> String {
    let mut program = program.clone();
    program.vars.iter_mut().for_each(|i| i.hint = "x".into());
    print(&program)
}

fn cases(text: &str) -> Vec<(String, String, String)> {
    let split = |case: &str| {
        let (name, rest) = case.split_once('\n').unwrap();
        let (before, after) = rest.split_once("// --->").unwrap();
        (name.to_string(), before.to_string(), after.to_string())
    };
    text.split("// === ").skip(1).map(split).collect()
}

fn context(text: &str) -> Ctx {
    Ctx { derivatives_done: text.contains("// derivatives done"), ..Ctx::default() }
}

fn apply(pass: &Pass, program: &mut Program, ctx: &Ctx) {
    (pass.run)(program, ctx);
    check(program, Rules::SURFACE).unwrap_or_else(|e| panic!("{}\n{}", e.after(pass.name), print(program)));
}

fn expect(text: &str, passes: &[&Pass], count: usize) {
    let cases = cases(text);
    assert_eq!(cases.len(), count);
    for (name, before, after) in cases {
        let mut program = load(&before);
        for pass in passes {
            apply(pass, &mut program, &context(&before));
        }
        assert_eq!(shape(&program), shape(&load(&after)), "{name}\n{}", print(&program));
        same_values(&name, &load(&before), &program);
    }
}

/// An argument of this type: sizes 3, so that sizes and indices given as numbers fit.
fn argument(program: &Program, ty: &Type, seed: u64) -> Option<Value> {
    Some(match ty {
        Type::Scalar(Scalar::Bool) => Value::Scalar(ScalarValue::Bool(seed.is_multiple_of(2))),
        Type::Scalar(s) if s.is_integer() => Value::Scalar(s.from_i64(3)),
        Type::Scalar(s) => Value::Scalar(s.from_f64(0.75 + 0.5 * (seed % 7) as f64)),
        Type::Tuple(ts) => {
            let items = ts.iter().enumerate().map(|(k, t)| argument(program, t, seed + k as u64));
            Value::Tuple(items.collect::<Option<_>>()?)
        }
        Type::Array(_) => {
            let rank = ty.rank();
            let count = 3usize.pow(rank as u32);
            let mut data = pullback_core::Buffer::with_capacity(ty.base().scalar(), count);
            for k in 0..count {
                data.push(argument(program, ty.base(), seed + k as u64)?);
            }
            Value::Array(pullback_core::Array::new(vec![3; rank], data))
        }
        Type::Sum(_) | Type::Named(_) => {
            let variants = program.variants(ty)?;
            let k = seed as usize % variants.len();
            let fields = variants[k].fields.iter().enumerate();
            let fields = fields.map(|(j, t)| argument(program, t, seed + j as u64 + 1));
            Value::Sum(k, std::sync::Arc::new(fields.collect::<Option<_>>()?))
        }
        Type::Acc(_) => return None,
    })
}

/// Runs the first function of both programs; where the first one runs to its end, the second gives the same.
fn same_values(name: &str, before: &Program, after: &Program) {
    let main: FunId = before.funs.ids().next().unwrap();
    for seed in 0..4 {
        let types = before.funs[main].params.iter().map(|p| &before.vars[*p].ty);
        let args: Option<Vec<Value>> =
            types.enumerate().map(|(k, t)| argument(before, t, seed + 3 * k as u64)).collect();
        // Accumulators cannot be given from outside.
        let Some(args) = args else { return };
        let options = Options { work_limit: 1_000_000, ..Options::default() };
        let Ok(first) = run(before, main, args.clone(), &options) else { continue };
        let second =
            run(after, main, args, &options).unwrap_or_else(|e| panic!("{name}: {e}\n{}", print(after)));
        assert_eq!(first.results, second.results, "{name}\n{}", print(after));
    }
}

/// As [`same_values`], but for the rounding of sums of accumulators, whose order the language leaves open.
fn same_sums(name: &str, before: &Program, after: &Program) {
    let main: FunId = before.funs.ids().next().unwrap();
    for seed in 0..4 {
        let types = before.funs[main].params.iter().map(|p| &before.vars[*p].ty);
        let args: Option<Vec<Value>> =
            types.enumerate().map(|(k, t)| argument(before, t, seed + 3 * k as u64)).collect();
        let Some(args) = args else { return };
        let options = Options { work_limit: 1_000_000, ..Options::default() };
        let Ok(first) = run(before, main, args.clone(), &options) else { continue };
        let second =
            run(after, main, args, &options).unwrap_or_else(|e| panic!("{name}: {e}\n{}", print(after)));
        let numbers = |values: &[Value]| values.iter().flat_map(Value::floats).collect::<Vec<f64>>();
        let (xs, ys) = (numbers(&first.results), numbers(&second.results));
        assert_eq!(xs.len(), ys.len(), "{name}");
        for (x, y) in xs.iter().zip(&ys) {
            let scale = x.abs().max(y.abs()).max(1.0);
            assert!(x == y || (x - y).abs() <= 1e-14 * scale, "{name}: {x} and {y}\n{}", print(after));
        }
    }
}

#[test]
fn inlining() {
    expect(include_str!("inline.core"), &[&INLINE], 3);
}

/// What became unused is removed, so that the texts show what the rules are about.
#[test]
fn simplification() {
    expect(include_str!("simplify.core"), &[&SIMPLIFY, &PRUNE], 30);
}

#[test]
fn common_subexpressions() {
    expect(include_str!("cse.core"), &[&CSE], 9);
}

#[test]
fn hoisting() {
    expect(include_str!("hoist.core"), &[&HOIST], 7);
}

#[test]
fn fusion() {
    expect(include_str!("fuse.core"), &[&FUSE], 13);
}

/// What became known is used, and what became unused removed.
#[test]
fn unrolling() {
    expect(include_str!("unroll.core"), &[&UNROLL, &SIMPLIFY, &PRUNE], 4);
}

#[test]
fn sinking() {
    expect(include_str!("sink.core"), &[&SINK], 3);
}

#[test]
fn lives_of_arrays() {
    expect(include_str!("shorten.core"), &[&SHORTEN], 3);
}

#[test]
fn branches_on_the_same_value_are_joined() {
    expect(include_str!("join.core"), &[&JOIN_BRANCHES], 3);
}

/// Copies that it leaves are resolved, so that the texts show what it is about.
#[test]
fn unboxing() {
    expect(include_str!("unbox.core"), &[&UNBOX, &SIMPLIFY, &PRUNE], 11);
}

/// Indices that occur twice are one and what became unused is removed, so that the texts show what is stored.
#[test]
fn columns_made_again() {
    expect(include_str!("rematerialise.core"), &[&REMATERIALISE, &CSE, &SIMPLIFY, &CSE, &PRUNE], 3);
}

/// What became unused is removed, so that the texts show what is copied.
#[test]
fn rows_not_copied() {
    expect(include_str!("copy_elision.core"), &[&COPY_ELISION, &PRUNE], 3);
}

#[test]
fn vectors_added_at_moved_places() {
    expect(include_str!("gather.core"), &[&GATHER], 3);
}

#[test]
fn conditions_that_ask_for_places() {
    expect(include_str!("guard_elimination.core"), &[&GUARD_ELIMINATION], 2);
}

#[test]
fn sums_with_one_term() {
    expect(include_str!("one_hot_reduction.core"), &[&ONE_HOT_REDUCTION, &PRUNE], 5);
}

#[test]
fn interfaces() {
    expect(
        include_str!("dead_argument_elimination.core"),
        &[&DEAD_ARGUMENT_ELIMINATION, &PRUNE, &DEAD_ARGUMENT_ELIMINATION],
        2,
    );
}

/// What became unused is removed, so that the texts show what the rules are about.
#[test]
fn accumulators() {
    expect(include_str!("accumulators.core"), &[&ELIMINATE_ACCUMULATORS, &SIMPLIFY, &CSE, &PRUNE], 21);
}

/// Nested maps over a literal: each level is unrolled only as far as the limits allow.
#[test]
fn unrolled_code_is_linear() {
    let sizes = [4, 8, 16].map(|k| {
        let mut text = String::from("fun f(x: f64): f64 {\n let a0: []f64 = array(x, x, x, x): f64\n");
        for i in 0..k {
            let j = i + 1;
            text += &format!(
                " let a{j}: []f64 = map 4i64 [a{i}] (y{i}: f64) {{ let z{i}: f64 = sin.f64(y{i}) in z{i} }}\n"
            );
        }
        text += &format!(" let r: f64 = a{k}[0i64]\n in r\n}}\n");
        let mut program = load(&text);
        apply(&UNROLL, &mut program, &Ctx::default());
        pullback_core::metrics::metrics(&program).statements
    });
    assert!(sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0]), "{sizes:?}");
    let mut text = String::from("fun f(x: f64): f64 {\n");
    for i in 0..12 {
        text += &format!("let r{i}: f64 = loop (s{i}: f64 = x) for i{i}: i64 < 2i64 {{\n");
    }
    text += "let y: f64 = sin.f64(s11)\nin y }\n";
    for i in (0..11).rev() {
        text += &format!("in r{} }}\n", i + 1);
    }
    text += "in r0\n}\n";
    let mut program = load(&text);
    apply(&UNROLL, &mut program, &Ctx::default());
    let size = pullback_core::metrics::metrics(&program).statements;
    assert!(size <= 64, "{size} statements of 4096 iterations");
}

#[test]
fn functions_without_a_caller() {
    let text = "
entry f interface (x: f64) -> f64 (x: f64): f64 { let a: f64 = call h(x) in a }
fun g(y: f64): f64 { in y }
fun h(z: f64): f64 { let b: f64 = sin.f64(z) in b }";
    let mut program = load(text);
    apply(pass("drop_unused_functions").unwrap(), &mut program, &Ctx::default());
    let names: Vec<_> = program.funs.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["f", "h"]);
    same_values("drop", &load(text), &program);
}

#[test]
fn growth_is_limited() {
    let mut text = String::from("fun f0(x: f64): f64 { let y: f64 = sin.f64(x) in y }\n");
    for k in 1..40 {
        let p = k - 1;
        text += &format!(
            "fun f{k}(x{k}: f64): f64 {{ let a{k}: f64 = call f{p}(x{k}) let b{k}: f64 = call f{p}(a{k}) in b{k} }}\n"
        );
    }
    let mut program = load(&text);
    let ctx = Ctx { inline_limit: 1000, ..Ctx::default() };
    apply(&INLINE, &mut program, &ctx);
    for fun in program.funs.iter() {
        let size = pullback_core::metrics::body_metrics(&fun.body).statements;
        assert!(size <= 2000, "{} has {size} statements", fun.name);
    }
}

/// Every pass alone, all in order twice, and in reverse order, on larger programs.
#[test]
fn values_stay_the_same() {
    let zoo = load(include_str!("../../core/tests/programs/zoo.core"));
    let gmm = load(include_str!("../../core/tests/programs/gmm_reverse.core"));
    let gradient = load(include_str!("programs.core"));
    for before in [zoo, gmm, gradient] {
        for ctx in [Ctx::default(), Ctx { derivatives_done: true, ..Ctx::default() }] {
            for pass in PASSES {
                let mut after = before.clone();
                apply(pass, &mut after, &ctx);
                let same = if pass.name == "eliminate_accumulators" { same_sums } else { same_values };
                same(pass.name, &before, &after);
            }
            let mut after = before.clone();
            for pass in PASSES.iter().chain(PASSES) {
                apply(pass, &mut after, &ctx);
            }
            same_sums("all", &before, &after);
            let mut after = before.clone();
            for pass in PASSES.iter().rev() {
                apply(pass, &mut after, &ctx);
            }
            same_sums("all in reverse", &before, &after);
        }
    }
}
