//! Programs and gradients as functions of core, run by the interpreter.

use super::arrays::{dot_product, self_convolution};
use super::build::*;
use super::generate::{Indices, Random, program as any_program, scalar_program, seeds};
use pullback_ad::bulk::a_core::{Program, Ty};
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_ad::bulk::e_symbolic;
use pullback_ad::bulk::partials::Zeros;
use pullback_ad::bulk::to_core::{derivative, function};
use pullback_core::check::{Rules as Checks, check};
use pullback_core::print::print;
use pullback_core::{Array, Buffer, FunId, Program as CoreProgram, Value as CoreValue};
use pullback_interp::core::{Options, run};
use pullback_prim::{Op, Scalar};

pub(super) fn to_core(a: &Value) -> CoreValue {
    if a.shape.is_empty() {
        return CoreValue::Scalar(a.elements[0]);
    }
    let mut data = Buffer::with_capacity(Some(a.scalar), a.elements.len());
    a.elements.iter().for_each(|x| data.push(CoreValue::Scalar(*x)));
    CoreValue::Array(Array::new(a.shape.clone(), data))
}

pub(super) fn from_core(v: &CoreValue, ty: &Ty) -> Value {
    match v {
        CoreValue::Scalar(x) => Value::scalar(*x),
        CoreValue::Array(a) => {
            let mut elements = Vec::new();
            flatten(v, &mut elements);
            Value::new(ty.scalar, a.shape.clone(), elements)
        }
        other => panic!("{other:?}"),
    }
}

fn flatten(v: &CoreValue, out: &mut Vec<pullback_prim::ScalarValue>) {
    match v {
        CoreValue::Scalar(x) => out.push(*x),
        CoreValue::Array(a) => a.elements().for_each(|x| flatten(&x, out)),
        other => panic!("{other:?}"),
    }
}

pub(super) fn checked(core: &CoreProgram) {
    if let Err(e) = check(core, Checks::NO_AD) {
        panic!("{}\n{}", e.to_diagnostic().message, print(core));
    }
}

pub(super) fn results(core: &CoreProgram, f: FunId, arguments: &[Value]) -> Vec<CoreValue> {
    let arguments = arguments.iter().map(to_core).collect();
    match run(core, f, arguments, &Options::default()) {
        Ok(out) => out.results,
        Err(e) => panic!("{e:?}\n{}", print(core)),
    }
}

/// A program and its gradient in one program of core.
pub(super) fn both(source: &Program) -> Option<(CoreProgram, FunId, FunId)> {
    let mut core = CoreProgram::default();
    let f = function(&mut core, source, "f").ok()?;
    let bulk = transform(source, Rules::Guarded).0;
    let made = e_symbolic::vjp(&bulk, Zeros::Stop).ok()?;
    let g = derivative(&mut core, &made, "f_bulk").ok()?;
    checked(&core);
    Some((core, f, g))
}

/// What the fragment means, the interpreter of core finds: of sources with `build1`, and of bulk operations.
#[test]
fn functions_of_core_have_the_values_of_programs() {
    let mut tried = 0;
    for (seed, indices) in seeds(150).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = any_program(seed, indices);
        let bulk = transform(&source, Rules::Guarded).0;
        let wanted = value(&source, &arguments);
        for program in [source, bulk] {
            let mut core = CoreProgram::default();
            let Ok(f) = function(&mut core, &program, "f") else { continue };
            checked(&core);
            let found = from_core(&results(&core, f, &arguments)[0], program.body.ty());
            assert!(
                agree(&found, &wanted, 1e-12),
                "seed {seed}: {found:?} {wanted:?}\n{program}\n{}",
                print(&core)
            );
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried}");
}

/// The gradient as a function of core: against the interpreter's own dual numbers, which know nothing of this crate.
#[test]
fn gradients_are_functions_of_core() {
    let mut tried = 0;
    for (seed, indices) in seeds(120).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = scalar_program(seed, indices);
        let Some((core, f, g)) = both(&source) else { continue };
        let all = [arguments.clone(), vec![reals(&[], &[1.0])]].concat();
        let cotangents = &results(&core, g, &all)[1..];
        let mut random = Random(seed);
        let floats: Vec<&Value> = arguments.iter().filter(|a| a.scalar.is_float()).collect();
        let mut tangent = |a: &Value| {
            let xs: Vec<f64> = a.elements.iter().map(|_| random.unit()).collect();
            to_core(&reals(&a.shape, &xs))
        };
        let tangents: Vec<CoreValue> = floats.into_iter().map(&mut tangent).collect();
        let inputs: Vec<CoreValue> = arguments.iter().map(to_core).collect();
        let oracle = pullback_interp::dual::jvp(&core, f, &inputs, &tangents, &Options::default());
        let forwards: f64 = oracle.expect("runs").tangents.iter().flat_map(CoreValue::floats).sum();
        let dot = |(a, b): (&CoreValue, &CoreValue)| -> f64 {
            a.floats().into_iter().zip(b.floats()).map(|(x, y)| x * y).sum()
        };
        assert_eq!(cotangents.len(), tangents.len());
        let backwards: f64 = cotangents.iter().zip(&tangents).map(dot).sum();
        assert!(
            (forwards - backwards).abs() <= 1e-9 * (1.0 + forwards.abs()),
            "seed {seed}: {forwards} {backwards}\n{source}"
        );
        tried += 1;
    }
    assert!(tried > 120, "{tried}");
}

/// One function for all sizes, which the text does not have in it.
#[test]
fn one_function_serves_all_sizes() {
    let (core, _, g) = both(&self_convolution()).expect("core has all that it needs");
    for n in [1, 4, 50] {
        let found = &results(&core, g, &[one_to(n), reals(&[], &[1.0])])[1];
        let wanted: Vec<f64> = (1..=n).rev().map(|x| 2.0 * x as f64).collect();
        assert_eq!(found.floats(), wanted);
    }
    let (core, _, g) = both(&dot_product()).expect("core has all that it needs");
    let text = print(&core);
    let gradient = text.split("f_bulk").nth(1).expect("the gradient");
    assert!(
        !gradient.contains("withacc") && !gradient.contains("if "),
        "two maps, as one would write them: {text}"
    );
    let arguments: Vec<CoreValue> = [one_to(2), one_to(3), reals(&[], &[1.0])].iter().map(to_core).collect();
    let stopped = run(&core, g, arguments, &Options::default()).expect_err("sizes differ");
    assert!(format!("{stopped:?}").contains("sizes of arguments differ"), "{stopped:?}");
}

#[test]
fn what_core_has_no_form_for_is_refused() {
    let mut d = Draft::default();
    let k = d.input("k", Scalar::I64, &[n(3)]);
    let counts = d.scatter(&[n(2)], &k, 1, |_, i| vec![op2(Op::Mod, &i[0], &int(2))]);
    let program = d.program(counts);
    let refused = function(&mut CoreProgram::default(), &program, "f").expect_err("integers");
    assert!(refused.0.contains("floats only"), "{refused}");
    let mut d = Draft::default();
    let k = d.size("n");
    let a = d.reals("a", &[k.times(&k)]);
    let square = reshape(&[k.clone(), k], &a);
    let program = d.program(total(&square));
    let refused = function(&mut CoreProgram::default(), &program, "f").expect_err("no input has n elements");
    assert!(refused.0.contains("the size of no input"), "{refused}");
}
