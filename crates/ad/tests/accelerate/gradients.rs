//! Gradients of programs that are written by hand, in each variant of the algorithm, and counts of what their terms have.

#![allow(dead_code, reason = "each test file uses a part")]

use super::build::*;
use pullback_ad::accelerate::combine::{Gradient, gradient};
use pullback_ad::accelerate::expression::Temporaries;
use pullback_ad::accelerate::language::{AVar, Arr, ArrForm, ArrTy, Exp, ExpForm, Program, arrs, exps, funs};
use pullback_ad::accelerate::primal::{Keep, Options};
use pullback_core::Value;

/// The variant of the text.
pub(super) const TEXT: Options = Options { keep: Keep::Store, temporaries: Temporaries::All, ieee: false };
/// The same with those temporaries that are read.
pub(super) const TRIMMED: Options =
    Options { keep: Keep::Store, temporaries: Temporaries::Needed, ieee: false };

/// All variants.
pub(super) fn variants() -> Vec<Options> {
    let with = |keep| {
        [Temporaries::All, Temporaries::Needed].map(|temporaries| Options { keep, temporaries, ieee: false })
    };
    [Keep::Store, Keep::Recompute, Keep::Checkpoints, Keep::Below(20)].into_iter().flat_map(with).collect()
}

/// The gradient, which is well-formed.
pub(super) fn derived(program: &Program, options: Options) -> Gradient {
    let g = gradient(program, options);
    g.program.check().unwrap_or_else(|why| panic!("{why}\n{}", g.program));
    g
}

/// The number of leaves of a value of this type.
pub(super) fn leaves(ty: &ArrTy) -> usize {
    match ty {
        ArrTy::Array(t, _) => t.scalars().len(),
        ArrTy::Tuple(ts) => ts.iter().map(leaves).sum(),
    }
}

/// The arguments of the gradient: the adjoints stand between the free arrays and the argument.
pub(super) fn with_seeds(program: &Program, args: &[Value], seeds: &[Value]) -> Vec<Value> {
    let free = program.free.iter().map(|a| leaves(a.ty())).sum();
    [&args[..free], seeds, &args[free..]].concat()
}

/// The leaves of the value and of the gradient, of a program whose result is a number.
pub(super) fn slope(program: &Program, options: Options, args: &[Value]) -> Vec<Value> {
    run(&derived(program, options).program, &with_seeds(program, args, &[Value::f64(1.0)]))
}

/// The floats of these, in order.
pub(super) fn floats(values: &[Value]) -> Vec<f64> {
    values.iter().flat_map(Value::floats).collect()
}

/// Numbers are near, relative to the expected one, or to 1 if that is larger.
pub(super) fn is_near(x: f64, expected: f64, tolerance: f64) -> bool {
    x == expected
        || x.is_nan() && expected.is_nan()
        || (x - expected).abs() <= tolerance * expected.abs().max(1.0)
}

/// Why the value and the gradient are not these, in some variant.
pub(super) fn differs(
    program: &Program,
    args: &[Value],
    value: f64,
    gradient: &[f64],
    tolerance: f64,
) -> Option<String> {
    let expected = [&[value], gradient].concat();
    let plain = floats(&run(program, args));
    if plain.len() != 1 || !is_near(plain[0], value, tolerance) {
        return Some(format!("the value is {plain:?}, not {value}\n{program}"));
    }
    variants().into_iter().find_map(|options| {
        let found = floats(&slope(program, options, args));
        let near = |(x, e): (&f64, &f64)| is_near(*x, *e, tolerance);
        let same = found.len() == expected.len() && found.iter().zip(&expected).all(near);
        (!same).then(|| format!("{options:?}: {found:?}, not {expected:?}\n{program}"))
    })
}

/// The value and the gradient are these, in all variants.
#[track_caller]
pub(super) fn expect(program: &Program, args: &[Value], value: f64, gradient: &[f64], tolerance: f64) {
    if let Some(why) = differs(program, args, value, gradient, tolerance) {
        panic!("{why}");
    }
}

/// Visits an array term and those in it.
pub(super) fn each_arr(u: &Arr, see: &mut dyn FnMut(&Arr)) {
    see(u);
    arrs(u.form()).into_iter().for_each(|u| each_arr(u, see));
}

/// Visits an expression and those in it.
pub(super) fn each_exp(e: &Exp, see: &mut dyn FnMut(&Exp)) {
    see(e);
    match e.form() {
        ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Shape(_) => {}
        ExpForm::Let(bindings, e) => {
            bindings.iter().for_each(|(_, u)| each_exp(u, see));
            each_exp(e, see);
        }
        ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| each_exp(e, see)),
        ExpForm::Proj(e, _) | ExpForm::Index(_, e) => each_exp(e, see),
        ExpForm::Cond(c, t, e) => [c, t, e].into_iter().for_each(|e| each_exp(e, see)),
    }
}

/// Visits the expressions of an array term, those of its functions included.
pub(super) fn each_exp_of(u: &Arr, see: &mut dyn FnMut(&Exp)) {
    each_arr(u, &mut |u| {
        exps(u.form()).into_iter().for_each(|e| each_exp(e, see));
        funs(u.form()).into_iter().for_each(|f| each_exp(&f.body, see));
    });
}

/// How many terms have such a form.
pub(super) fn forms(u: &Arr, has: impl Fn(&ArrForm<()>) -> bool) -> usize {
    let mut count = 0;
    each_arr(u, &mut |u| count += usize::from(has(u.form())));
    count
}

pub(super) fn is_permute(form: &ArrForm<()>) -> bool {
    matches!(form, ArrForm::Permute(..))
}

/// The bindings at the top of a program.
pub(super) fn bindings(program: &Program) -> Vec<(AVar, Arr)> {
    match program.body.form() {
        ArrForm::Let(bindings, _) => bindings.clone(),
        _ => Vec::new(),
    }
}

/// Their names, in order.
pub(super) fn named(program: &Program) -> Vec<String> {
    bindings(program).iter().map(|(a, _)| a.name().to_string()).collect()
}

/// How many bindings an array term has, at any depth.
pub(super) fn lets(u: &Arr) -> usize {
    let mut count = 0;
    each_arr(u, &mut |u| {
        if let ArrForm::Let(bindings, _) = u.form() {
            count += bindings.len();
        }
    });
    count
}

/// The product of all elements of the inner dimension.
pub(super) fn product(b: &Draft, u: &Arr) -> Arr {
    b.fold(|x, y| x * y, &r(1.0), u)
}

/// The only element of an array of rank 0, in an expression.
pub(super) fn the(s: &AVar) -> E {
    at(s, &ix([]))
}
