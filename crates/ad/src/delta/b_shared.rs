//! Delta terms whose shared parts are evaluated once.
//!
//! Source: Krawiec et al., POPL 2022; T. Smeding, thesis, 4.1.5: Fig. 4.5.
//!
//! Judgement: `G |- t : s` becomes `D[G] |- D[t] : Z -> (D[s], Z)`, threaded as in [`crate::dual_numbers`].
//!
//! Types:
//! ```text
//! D[f64] = (f64, Delta)            Delta as in [`super::a_unshared`]
//! State  = (map f64, map Delta, map f64)        by number of the arguments: their cotangents; by identity: a term, and the cotangent it will be evaluated at
//! ```
//!
//! Notation: `m with i + x` a map with `x` added at `i`
//!
//! Rules:
//! ```text
//! constant     = #zero
//! operation    = #share i (#add (#scale (d1op 1) d1) .. (#scale (dnop 1) dn))      without `#scale` by one; d1, .., dn: what stands beside the arguments
//! argument     = #input i
//! cotangents z = the arguments with what is at 0, 1, .. of backprop (eval_4 zm dm (.. (eval_4 z1 d1 ({}, {}, {}))))
//!
//! eval_4 c #zero s = s                                    eval_4 c (#input i) (g, d, a) = (g with i + c, d, a)
//! eval_4 c (#add x y) s = eval_4 c y (eval_4 c x s)       eval_4 c (#scale r x) s = eval_4 (c * r) x s
//! eval_4 c (#share i x) (g, d, a) = (g, d with i = x, a with i + c)
//! backprop (g, d, {}) = g                                 backprop (g, d, a) = backprop (eval_4 c x (g, d without i, a without i)), for the highest i, with x in d and c in a
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`. Results may have any shape.
//!
//! Guarantee: none. Every part of a term is evaluated once, but maps cost a logarithm. Tests count what is evaluated.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::terms::{self, ADD, INPUT, SCALE, SHARE, STRONG};
use crate::chad::component;
use crate::contract::Unsupported;
use crate::dual_numbers::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use crate::dual_numbers::maps::{found, with};
use crate::dual_numbers::structure::{flagged, until};
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var};
use pullback_prim::Scalar;
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "delta-shared";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| {
        let delta = terms::declare(b);
        Shared { delta, eval: eval_4(b, delta) }
    })
}

struct Shared {
    delta: TypeId,
    eval: FunId,
}

/// `(map f64, map Delta, map f64)`
fn state_type(delta: TypeId) -> Type {
    let map = |t: Type| Type::Map(Arc::new(t));
    Type::tuple([map(Type::F64), map(Type::Named(delta)), map(Type::F64)])
}

fn eval_4(b: &mut Builder<'_>, delta: TypeId) -> FunId {
    let state = state_type(delta);
    let name = format!("eval_4_{}", b.program.types.len());
    let params = [("c", Type::F64), ("d", Type::Named(delta)), ("s", state.clone())];
    let f = b.declare(&name, &params, state, None);
    let v = b.params(f);
    let d = b.var(v[1]);
    let body = b.match_(d, |b, k, payload| {
        let (c, s) = (b.var(v[0]), b.var(v[2]));
        let again = |b: &mut Builder<'_>, c: Term, d: Var, s: Term| {
            let d = b.var(d);
            b.call(f, vec![c, d, s])
        };
        match k {
            // [delta_shared.input]  (g with i + c, d, a)
            INPUT => {
                let (accum, frag) = (component(b, v[2], 2), component(b, v[2], 1));
                b.let_("a", accum, |b, a| {
                    b.let_("d", frag, |b, d| {
                        let (grad, i) = (component(b, v[2], 0), b.var(payload[0]));
                        let grad = with(b, grad, i, c);
                        let (d, a) = (b.var(d), b.var(a));
                        b.tuple(vec![grad, d, a])
                    })
                })
            }
            // [delta_shared.add]  eval_4 c y (eval_4 c x s)
            ADD => {
                let first = again(b, c.clone(), payload[0], s);
                again(b, c, payload[1], first)
            }
            // [delta_shared.scale]  eval_4 (c * r) x s
            SCALE | STRONG => {
                let r = b.var(payload[0]);
                let c = terms::times(b, k, c, r);
                again(b, c, payload[1], s)
            }
            // [delta_shared.share]  (g, d with i = x, a with i + c)
            SHARE => {
                let (grad, frag) = (component(b, v[2], 0), component(b, v[2], 1));
                b.let_("g", grad, |b, g| {
                    b.let_("d", frag, |b, d| {
                        let accum = component(b, v[2], 2);
                        b.let_("a", accum, |b, a| {
                            let ty = Type::Named(delta);
                            let combine =
                                b.lams(&[("old", ty.clone()), ("new", ty)], |b, both| b.var(both[0]));
                            let (map, key, value) = (b.var(d), b.var(payload[0]), b.var(payload[1]));
                            let d = b.term(Exp::MapInsert { combine, map, key, value });
                            let (g, a, i) = (b.var(g), b.var(a), b.var(payload[0]));
                            let a = with(b, a, i, c);
                            b.tuple(vec![g, d, a])
                        })
                    })
                })
            }
            // [delta_shared.zero]  s
            _ => s,
        }
    });
    b.define(f, body);
    f
}

impl Stage for Shared {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        Type::Named(self.delta)
    }
    // [delta_shared.constant]  #zero
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        terms::zero(f, f.stage.delta)
    }
    // [delta_shared.operation]  #share i (#add (#scale (d1op 1) d1) .. (#scale (dnop 1) dn))
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let id = f.next();
        let sum = terms::linear(f, f.stage.delta, op);
        let id = f.b.var(id);
        let shared = terms::term(&mut f.b, f.stage.delta, SHARE, vec![id, sum]);
        f.emit(shared, "delta")
    }
    // [delta_shared.argument]  #input i
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        let id = f.next();
        terms::input(f, f.stage.delta, id)
    }
    // [delta_shared.cotangents]  backprop (eval_4 zm dm (.. (eval_4 z1 d1 ({}, {}, {}))))
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let eval = f.stage.eval;
        let delta = Type::Named(f.stage.delta);
        let maps = [Type::F64, delta.clone(), Type::F64].map(|t| f.b.term(Exp::MapEmpty(t)));
        let empty = f.b.tuple(maps.to_vec());
        let empty = f.emit(empty, "s");
        let first = f.results(run.result, run.result_type, run.seed, empty, &mut |f, d, z, rest| {
            let (z, d, rest) = (f.b.var(z), f.b.var(d), f.b.var(rest));
            let next = f.b.call(eval, vec![z, d, rest]);
            f.emit(next, "s")
        })?;
        let gradient = backprop(&mut f.b, &delta, eval, first);
        let gradient = f.emit(gradient, "gradient");
        f.gathered(run, &mut |f, i| found(&mut f.b, gradient, i))
    }
}

/// `backprop s`
fn backprop(b: &mut Builder<'_>, delta: &Type, eval: FunId, s: Var) -> Term {
    let first = b.var(s);
    let all = until(b, vec![first], |b, p| {
        let s = component(b, p, 1);
        b.let_("s", s, |b, s| {
            let grad = component(b, s, 0);
            b.let_("g", grad, |b, g| {
                let frag = component(b, s, 1);
                b.let_("d", frag, |b, d| {
                    let accum = component(b, s, 2);
                    let highest = b.term(Exp::MapPopMax(accum));
                    b.match_(highest, |b, k, popped| {
                        let (g, d) = (b.var(g), b.var(d));
                        if k == 0 {
                            let none = b.term(Exp::MapEmpty(Type::F64));
                            let done = b.tuple(vec![g, d, none]);
                            return flagged(b, false, vec![done]);
                        }
                        // Every identity with a cotangent has a term.
                        let term = b.term(Exp::MapPopMax(d));
                        let next = b.match_(term, |b, k, found| {
                            let rest = b.var(popped[2]);
                            if k == 0 {
                                let none = b.term(Exp::MapEmpty(delta.clone()));
                                return b.tuple(vec![g.clone(), none, rest]);
                            }
                            let (c, x, d) = (b.var(popped[1]), b.var(found[1]), b.var(found[2]));
                            let s = b.tuple(vec![g.clone(), d, rest]);
                            b.call(eval, vec![c, x, s])
                        });
                        flagged(b, true, vec![next])
                    })
                })
            })
        })
    });
    let last = b.proj(all, 1);
    b.proj(last, 0)
}
