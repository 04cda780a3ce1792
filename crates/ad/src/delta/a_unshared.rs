//! Delta terms and the evaluators that do not see sharing.
//!
//! Source: Krawiec et al., POPL 2022; T. Smeding, thesis, 4.1.2 to 4.1.4: Figs. 4.1 to 4.3, with the correction of `eval_2` below.
//!
//! Judgement: `G |- t : s` becomes `D[G] |- D[t] : Z -> (D[s], Z)`, threaded as in [`crate::dual_numbers`].
//!
//! Types:
//! ```text
//! D[f64] = (f64, Delta)
//! Delta  = #zero | #input Z | #add Delta Delta | #scale f64 Delta        a linear function of the numbers of the arguments; `#share` comes in 4.1.5
//! ```
//!
//! Notation: `e_i` component `i` · `g with [i] = x` an array with another element · `0` an array of zeros, as many as the arguments have numbers
//!
//! Rules:
//! ```text
//! constant     = #zero
//! operation    = #add (#scale (d1op 1) d1) .. (#scale (dnop 1) dn)      without `#scale` by one; d1, .., dn: what stands beside the arguments
//! argument     = #input i
//! cotangents z = with d = #add (#scale z1 d1) .. (#scale zm dm) over the numbers of the result: the arguments with
//!                eval_0 d e_i at their number i;    (eval_1 d)[i];    (eval_2 d 0)[i];    (eval_3 1 d 0)[i]
//!
//! eval_0 #zero e = 0             eval_0 (#input i) e = e_i              eval_0 (#add a b) e = eval_0 a e + eval_0 b e       eval_0 (#scale r d) e = r * eval_0 d e
//! eval_1 #zero = 0               eval_1 (#input i) = e_i                eval_1 (#add a b) = eval_1 a + eval_1 b             eval_1 (#scale r d) = r * eval_1 d
//! eval_2 #zero g = g             eval_2 (#input i) g = g with [i] + 1   eval_2 (#add a b) g = eval_2 b (eval_2 a g)         eval_2 (#scale r d) g = g + r * eval_2 d 0
//! eval_3 c #zero g = g           eval_3 c (#input i) g = g with [i] + c eval_3 c (#add a b) g = eval_3 c b (eval_3 c a g)   eval_3 c (#scale r d) g = eval_3 (c * r) d g
//! ```
//!
//! Differences from the paper:
//! 1. `eval_2` of `#scale` is printed as `(r .) . eval_2 d`, which multiplies what was collected before as well; a test has the counterexample.
//! 2. Cotangents of numbers are `f64` until they arrive, also those of `f32`. Results may have any shape.
//!
//! Guarantee: none. A shared value is evaluated once per use, `2^n` times where values are shared `n` deep; `eval_0` runs once per number of the arguments, `eval_1` and
//! `eval_2` cost all of them per operation. Tests demand that they are slow.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::terms::{self, ADD, INPUT, SCALE, STRONG};
use crate::contract::Unsupported;
use crate::dual_numbers::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use crate::dual_numbers::structure::added;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var};
use pullback_prim::{Op, Scalar};

/// The name of `eval_0`.
pub const DIRECT: &str = "delta-direct";
/// The name of `eval_1`.
pub const VECTORS: &str = "delta-vectors";
/// The name of `eval_2`.
pub const CHANGES: &str = "delta-changes";
/// The name of `eval_3`.
pub const INWARDS: &str = "delta-inwards";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments, by `eval_0`.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn direct(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    vjp::<0>(program, f)
}

/// As [`direct`], by `eval_1`.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vectors(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    vjp::<1>(program, f)
}

/// As [`direct`], by `eval_2`.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn changes(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    vjp::<2>(program, f)
}

/// As [`direct`], by `eval_3`.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn inwards(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    vjp::<3>(program, f)
}

fn vjp<const K: usize>(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Unshared::<K>(terms::declare(b)))
}

/// With the evaluator of this number.
struct Unshared<const K: usize>(TypeId);

impl<const K: usize> Stage for Unshared<K> {
    const ID: &'static str = [DIRECT, VECTORS, CHANGES, INWARDS][K];

    fn dual(&self) -> Type {
        Type::Named(self.0)
    }
    // [delta.constant]  #zero
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        terms::zero(f, f.stage.0)
    }
    // [delta.operation]  #add (#scale (d1op 1) d1) .. (#scale (dnop 1) dn)
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let sum = terms::linear(f, f.stage.0, op);
        f.emit(sum, "delta")
    }
    // [delta.argument]  #input i
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        let id = f.next();
        terms::input(f, f.stage.0, id)
    }
    // [delta.cotangents]  the evaluator of #add (#scale z1 d1) .. (#scale zm dm)
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let total = terms::total(f, f.stage.0, run)?;
        match K {
            0 => by_direction(f, run, total),
            1 => by_vector(f, run, total),
            2 => by_change(f, run, total),
            _ => by_cotangent(f, run, total),
        }
    }
}

/// A function of a term and more; the closure gets the alternative, its payload and the other parameters.
fn evaluator(
    b: &mut Builder<'_>,
    (delta, name): (TypeId, &str),
    more: &[(&str, Type)],
    result: Type,
    mut arm: impl FnMut(&mut Builder<'_>, FunId, usize, &[Var], &[Var]) -> Term,
) -> FunId {
    let name = format!("{name}_{}", b.program.types.len() + b.program.funs.len());
    let params: Vec<(&str, Type)> =
        std::iter::once(("d", Type::Named(delta))).chain(more.iter().cloned()).collect();
    let f = b.declare(&name, &params, result, None);
    let v = b.params(f);
    let d = b.var(v[0]);
    let body = b.match_(d, |b, k, payload| arm(b, f, k, payload, &v[1..]));
    b.define(f, body);
    f
}

fn vars(b: &mut Builder<'_>, vs: &[Var]) -> Vec<Term> {
    vs.iter().map(|v| b.var(*v)).collect()
}

/// `eval_0 d e_i`, where the direction is given by `i`.
fn by_direction<const K: usize>(f: &mut Forward<'_, Unshared<K>>, run: &Run<'_>, total: Var) -> Res<Var> {
    let delta = f.stage.0;
    let eval = evaluator(
        &mut f.b,
        (delta, "eval_0"),
        &[("i", Type::I64)],
        Type::F64,
        |b, eval, k, payload, more| {
            let again = |b: &mut Builder<'_>, d: Var| {
                let args = vars(b, &[d, more[0]]);
                b.call(eval, args)
            };
            match k {
                // [delta.direct.input]  e_i
                INPUT => {
                    let (at, i) = (b.var(payload[0]), b.var(more[0]));
                    let (same, one, zero) = (b.op2(Op::Eq, at, i), b.f64(1.0), b.f64(0.0));
                    b.if_(same, one, zero)
                }
                // [delta.direct.add]  eval_0 a e + eval_0 b e
                ADD => {
                    let (x, y) = (again(b, payload[0]), again(b, payload[1]));
                    b.op2(Op::Add, x, y)
                }
                // [delta.direct.scale]  r * eval_0 d e
                SCALE | STRONG => {
                    let (r, x) = (b.var(payload[0]), again(b, payload[1]));
                    terms::times(b, k, x, r)
                }
                // [delta.direct.zero]  0
                _ => b.f64(0.0),
            }
        },
    );
    f.gathered(run, &mut |f, i| {
        let args = vars(&mut f.b, &[total, i]);
        f.b.call(eval, args)
    })
}

/// An array of as many zeros as the arguments have numbers.
fn zeros<C: Stage>(f: &mut Forward<'_, C>, run: &Run<'_>) -> Var {
    let (n, zero) = (f.b.var(run.arguments), f.b.f64(0.0));
    let zeros = f.b.term(Exp::Replicate(n, zero));
    f.emit(zeros, "zeros")
}

/// `map (\x y. .. ) xs ys`
fn zipped(
    b: &mut Builder<'_>,
    xs: Term,
    ys: Term,
    op: impl FnOnce(&mut Builder<'_>, Term, Term) -> Term,
) -> Term {
    let each = b.lams(&[("x", Type::F64), ("y", Type::F64)], |b, v| {
        let (x, y) = (b.var(v[0]), b.var(v[1]));
        op(b, x, y)
    });
    b.map(each, vec![xs, ys])
}

fn picked<C: Stage>(f: &mut Forward<'_, C>, run: &Run<'_>, gradient: Term) -> Res<Var> {
    let gradient = f.emit(gradient, "gradient");
    f.gathered(run, &mut |f, i| {
        let (all, i) = (f.b.var(gradient), f.b.var(i));
        f.b.index(all, vec![i])
    })
}

/// `eval_1 d`; the zeros are handed down.
fn by_vector<const K: usize>(f: &mut Forward<'_, Unshared<K>>, run: &Run<'_>, total: Var) -> Res<Var> {
    let (delta, array) = (f.stage.0, Type::array(Type::F64));
    let eval = evaluator(
        &mut f.b,
        (delta, "eval_1"),
        &[("zeros", array.clone())],
        array,
        |b, eval, k, payload, more| {
            let again = |b: &mut Builder<'_>, d: Var| {
                let args = vars(b, &[d, more[0]]);
                b.call(eval, args)
            };
            match k {
                // [delta.vectors.input]  e_i
                INPUT => {
                    let (i, one) = (b.var(payload[0]), b.f64(1.0));
                    added(b, more[0], i, one)
                }
                // [delta.vectors.add]  eval_1 a + eval_1 b
                ADD => {
                    let (x, y) = (again(b, payload[0]), again(b, payload[1]));
                    zipped(b, x, y, |b, x, y| b.op2(Op::Add, x, y))
                }
                // [delta.vectors.scale]  r * eval_1 d
                SCALE | STRONG => {
                    let x = again(b, payload[1]);
                    let each = b.lam("x", Type::F64, |b, x| {
                        let (r, x) = (b.var(payload[0]), b.var(x));
                        terms::times(b, k, x, r)
                    });
                    b.map(each, vec![x])
                }
                // [delta.vectors.zero]  0
                _ => b.var(more[0]),
            }
        },
    );
    let zeros = zeros(f, run);
    let args = vars(&mut f.b, &[total, zeros]);
    let gradient = f.b.call(eval, args);
    picked(f, run, gradient)
}

/// `eval_2 d 0`
fn by_change<const K: usize>(f: &mut Forward<'_, Unshared<K>>, run: &Run<'_>, total: Var) -> Res<Var> {
    let (delta, array) = (f.stage.0, Type::array(Type::F64));
    let eval = evaluator(
        &mut f.b,
        (delta, "eval_2"),
        &[("g", array.clone())],
        array,
        |b, eval, k, payload, more| {
            let g = b.var(more[0]);
            let again = |b: &mut Builder<'_>, d: Var, g: Term| {
                let d = b.var(d);
                b.call(eval, vec![d, g])
            };
            match k {
                // [delta.changes.input]  g with [i] + 1
                INPUT => {
                    let (i, one) = (b.var(payload[0]), b.f64(1.0));
                    added(b, more[0], i, one)
                }
                // [delta.changes.add]  eval_2 b (eval_2 a g)
                ADD => {
                    let first = again(b, payload[0], g);
                    again(b, payload[1], first)
                }
                // [delta.changes.scale]  g + r * eval_2 d 0
                SCALE | STRONG => {
                    let (n, zero) = (b.size(g.clone(), 0), b.f64(0.0));
                    let zeros = b.term(Exp::Replicate(n, zero));
                    let own = again(b, payload[1], zeros);
                    zipped(b, g, own, |b, g, x| {
                        let r = b.var(payload[0]);
                        let x = terms::times(b, k, x, r);
                        b.op2(Op::Add, g, x)
                    })
                }
                // [delta.changes.zero]  g
                _ => g,
            }
        },
    );
    let zeros = zeros(f, run);
    let args = vars(&mut f.b, &[total, zeros]);
    let gradient = f.b.call(eval, args);
    picked(f, run, gradient)
}

/// `eval_3 1 d 0`
fn by_cotangent<const K: usize>(f: &mut Forward<'_, Unshared<K>>, run: &Run<'_>, total: Var) -> Res<Var> {
    let (delta, array) = (f.stage.0, Type::array(Type::F64));
    let eval = evaluator(
        &mut f.b,
        (delta, "eval_3"),
        &[("c", Type::F64), ("g", array.clone())],
        array,
        |b, eval, k, payload, more| {
            let (c, g) = (b.var(more[0]), b.var(more[1]));
            let again = |b: &mut Builder<'_>, c: Term, d: Var, g: Term| {
                let d = b.var(d);
                b.call(eval, vec![d, c, g])
            };
            match k {
                // [delta.inwards.input]  g with [i] + c
                INPUT => {
                    let i = b.var(payload[0]);
                    added(b, more[1], i, c)
                }
                // [delta.inwards.add]  eval_3 c b (eval_3 c a g)
                ADD => {
                    let first = again(b, c.clone(), payload[0], g);
                    again(b, c, payload[1], first)
                }
                // [delta.inwards.scale]  eval_3 (c * r) d g
                SCALE | STRONG => {
                    let r = b.var(payload[0]);
                    let c = terms::times(b, k, c, r);
                    again(b, c, payload[1], g)
                }
                // [delta.inwards.zero]  g
                _ => g,
            }
        },
    );
    let zeros = zeros(f, run);
    let (d, one, zeros) = (f.b.var(total), f.b.f64(1.0), f.b.var(zeros));
    let gradient = f.b.call(eval, vec![d, one, zeros]);
    picked(f, run, gradient)
}
