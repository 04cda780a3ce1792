//! Zeros of both levels, sums of expressions, and arrays that are empty.
//!
//! Source: MSc thesis, 3.4.3 and 3.4.4; the macros of 2.6 in our notes.
//!
//! Rules:
//! ```text
//! zero_value   float, int => 0      bool => false, because it says that an element was not read      (t_1, .., t_n) => each
//! plus         floats and integers add      bool => false      tuples: each component; a zero that is written out adds nothing
//! gen_zero     of t[s], as `u`:  generate (shape u) (\i. zero)      (T_1, .., T_n) => each
//! gen_empty    of t[s]:          generate (0, .., 0) (\i. zero)     (T_1, .., T_n) => each
//! ```

use super::language::{AVar, Arr, ArrForm, ArrTy, Exp, ExpForm, Fun, Names, Ty, made};
use pullback_prim::{Op, Prim, Scalar};

// [accelerate.zero_value]
/// The zero of a type.
pub(super) fn zero_value(ty: &Ty) -> Exp {
    match ty {
        Ty::Scalar(Scalar::Bool) => Exp::bool(false),
        Ty::Scalar(s) => Exp::constant(s.zero()),
        Ty::Tuple(ts) => Exp::tuple(ts.iter().map(zero_value).collect()),
    }
}

/// Whether an expression is a zero that is written out. Of what is discrete, everything counts.
pub(super) fn is_zero(e: &Exp) -> bool {
    !e.ty().is_continuous()
        || match e.form() {
            ExpForm::Const(c) => c.is_float_zero(),
            ExpForm::Tuple(es) => es.iter().all(is_zero),
            _ => false,
        }
}

// [accelerate.plus]
/// The sum of two values of a type that is continuous somewhere; what is discrete in it is zero.
pub(super) fn plus(x: &Exp, y: &Exp) -> Exp {
    match x.ty() {
        _ if is_zero(x) && is_zero(y) => zero_value(x.ty()),
        _ if is_zero(x) => y.clone(),
        _ if is_zero(y) => x.clone(),
        Ty::Scalar(s) => made(Exp::prim(Prim::Op(Op::Add, *s), vec![x.clone(), y.clone()])),
        Ty::Tuple(ts) => Exp::tuple((0..ts.len()).map(|k| plus(&x.proj(k), &y.proj(k))).collect()),
    }
}

/// The addition of source programs: integers add, too.
pub(super) fn add(x: &Exp, y: &Exp) -> Exp {
    match x.ty() {
        Ty::Scalar(Scalar::Bool) => Exp::bool(false),
        Ty::Scalar(s) => made(Exp::prim(Prim::Op(Op::Add, *s), vec![x.clone(), y.clone()])),
        Ty::Tuple(ts) => Exp::tuple((0..ts.len()).map(|k| add(&x.proj(k), &y.proj(k))).collect()),
    }
}

/// The sum of these, all of one type.
pub(super) fn sum(ty: &Ty, es: &[Exp]) -> Exp {
    es.iter().fold(zero_value(ty), |x, y| plus(&x, y))
}

/// `\x. e`
pub(super) fn lambda(
    names: &mut Names,
    name: &str,
    ty: Ty,
    body: impl FnOnce(&mut Names, Exp) -> Exp,
) -> Fun {
    let param = names.fresh(name, ty);
    let body = body(names, Exp::var(&param));
    Fun { param, body }
}

/// `\(x, y). x + y`
pub(super) fn addition(names: &mut Names, ty: &Ty) -> Fun {
    lambda(names, "p", Ty::Tuple(vec![ty.clone(), ty.clone()]), |_, p| add(&p.proj(0), &p.proj(1)))
}

/// `\x. x.k`
pub(super) fn projection(names: &mut Names, ty: &Ty, k: usize) -> Fun {
    lambda(names, "p", ty.clone(), |_, p| p.proj(k))
}

/// `map f u`
pub(super) fn map(f: Fun, u: Arr) -> Arr {
    made(Arr::new(ArrForm::Map(f, u)))
}

/// `map (\x. x.k) u`, for an array of tuples.
pub(super) fn map_projection(names: &mut Names, k: usize, u: Arr) -> Arr {
    let elem = made(u.ty().array()).0.clone();
    map(projection(names, &elem, k), u)
}

/// `generate shape (\i. zero)`
pub(super) fn zeros(names: &mut Names, shape: Exp, elem: &Ty) -> Arr {
    let f = lambda(names, "i", shape.ty().clone(), |_, _| zero_value(elem));
    made(Arr::new(ArrForm::Generate(shape, f)))
}

// [accelerate.gen_zero]
/// Zeros with the shapes of a variable.
pub(super) fn gen_zero(names: &mut Names, of: &AVar) -> Arr {
    gen_zero_of(names, Arr::var(of))
}

fn gen_zero_of(names: &mut Names, u: Arr) -> Arr {
    match u.ty().clone() {
        ArrTy::Tuple(ts) => Arr::tuple((0..ts.len()).map(|k| gen_zero_of(names, u.proj(k))).collect()),
        ArrTy::Array(elem, _) => match u.form() {
            ArrForm::Var(a) => zeros(names, made(Exp::shape(a)), &elem),
            _ => {
                let a = names.fresh("v", u.ty().clone());
                let zeros = zeros(names, made(Exp::shape(&a)), &elem);
                made(Arr::lets(vec![(a, u)], zeros))
            }
        },
    }
}

// [accelerate.gen_empty]
/// Empty arrays of a type; those of rank 0 have one zero, which is only ever added.
pub(super) fn gen_empty(names: &mut Names, ty: &ArrTy) -> Arr {
    match ty {
        ArrTy::Tuple(ts) => Arr::tuple(ts.iter().map(|t| gen_empty(names, t)).collect()),
        ArrTy::Array(elem, rank) => zeros(names, zero_value(&Ty::index(*rank)), elem),
    }
}
