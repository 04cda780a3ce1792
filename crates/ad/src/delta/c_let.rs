//! Delta terms whose parts have names: a sequence of bindings, evaluated from the last one on.
//!
//! Source: Krawiec et al., POPL 2022, in the form of the authors' slides; T. Smeding, thesis, 4.1.5.
//!
//! Judgement: `G |- t : s` becomes `D[G] |- D[t] : (Z, Bindings) -> (D[s], (Z, Bindings))`, threaded as in [`crate::dual_numbers`].
//!
//! Types:
//! ```text
//! D[f64]   = (f64, Delta)
//! Delta    = #zero | #input Z | #add Delta Delta | #scale f64 Delta | #share Z Delta        `#input i` is the variable `i`; there is no `#share`
//! Bindings = #start | #bind Z Delta Bindings                                                 the last one first
//! ```
//!
//! Notation: `m with i + x` a map with `x` added at `i`
//!
//! Rules:
//! ```text
//! constant     = #input i, with the binding i = #zero
//! operation    = #input i, with the binding i = #add (#scale (d1op 1) d1) .. (#scale (dnop 1) dn)      without `#scale` by one
//! argument     = #input i
//! cotangents z = the arguments with what is at 0, 1, .. of m, after:
//!                m = eval zm dm (.. (eval z1 d1 {})); for the bindings i = d, the last one first: m = eval m[i] d m, where there is such a place
//!
//! eval c #zero m = m      eval c (#input i) m = m with i + c      eval c (#add x y) m = eval c y (eval c x m)      eval c (#scale r x) m = eval (c * r) x m
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`. Results may have any shape.
//!
//! Guarantee: none. Every part of a term is evaluated once, but maps cost a logarithm.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::terms::{self, ADD, INPUT, SCALE, STRONG, ZERO};
use crate::chad::component;
use crate::contract::Unsupported;
use crate::dual_numbers::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use crate::dual_numbers::maps::{found, with};
use crate::dual_numbers::structure::{flagged, until};
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, Scalar};
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "delta-let";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| {
        let delta = terms::declare(b);
        let bindings = b.declare_type(&format!("bindings_{}", b.program.types.len()));
        let bind = vec![Type::I64, Type::Named(delta), Type::Named(bindings)];
        b.define_type(
            bindings,
            vec![
                Variant { name: "start".into(), fields: Vec::new() },
                Variant { name: "bind".into(), fields: bind },
            ],
        );
        Named { delta, bindings, eval: eval(b, delta) }
    })
}

struct Named {
    delta: TypeId,
    bindings: TypeId,
    eval: FunId,
}

fn eval(b: &mut Builder<'_>, delta: TypeId) -> FunId {
    let map = Type::Map(Arc::new(Type::F64));
    let name = format!("eval_{}", b.program.types.len());
    let params = [("c", Type::F64), ("d", Type::Named(delta)), ("m", map.clone())];
    let f = b.declare(&name, &params, map, None);
    let v = b.params(f);
    let d = b.var(v[1]);
    let body = b.match_(d, |b, k, payload| {
        let (c, m) = (b.var(v[0]), b.var(v[2]));
        let again = |b: &mut Builder<'_>, c: Term, d: Var, m: Term| {
            let d = b.var(d);
            b.call(f, vec![c, d, m])
        };
        match k {
            // [delta_let.var]  m with i + c
            INPUT => {
                let i = b.var(payload[0]);
                with(b, m, i, c)
            }
            // [delta_let.add]  eval c y (eval c x m)
            ADD => {
                let first = again(b, c.clone(), payload[0], m);
                again(b, c, payload[1], first)
            }
            // [delta_let.scale]  eval (c * r) x m
            SCALE | STRONG => {
                let r = b.var(payload[0]);
                let c = terms::times(b, k, c, r);
                again(b, c, payload[1], m)
            }
            // [delta_let.zero]  m
            _ => m,
        }
    });
    b.define(f, body);
    f
}

/// A new name, bound to this term if there is one.
fn named(f: &mut Forward<'_, Named>, bound: Option<Term>) -> Var {
    let (id, log) = (f.part(f.state, 0), f.part(f.state, 1));
    let (now, one) = (f.b.var(id), f.b.i64(1));
    let next = f.b.op2(Op::Add, now, one);
    let next = f.emit(next, "next");
    let log = match bound {
        None => log,
        Some(d) => {
            let (ty, now, before) = (Type::Named(f.stage.bindings), f.b.var(id), f.b.var(log));
            let log = f.b.term(Exp::Inject(ty, 1, vec![now, d, before]));
            f.emit(log, "log")
        }
    };
    f.state = f.tuple(&[next, log]);
    terms::input(f, f.stage.delta, id)
}

impl Stage for Named {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        Type::Named(self.delta)
    }
    fn state(&self) -> Type {
        Type::tuple([Type::I64, Type::Named(self.bindings)])
    }
    fn start(f: &mut Forward<'_, Self>) -> Var {
        let ty = Type::Named(f.stage.bindings);
        let (zero, none) = (f.b.i64(0), f.b.term(Exp::Inject(ty, 0, Vec::new())));
        let first = f.b.tuple(vec![zero, none]);
        f.emit(first, "log")
    }
    // [delta_let.constant]  #input i, with the binding i = #zero
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let zero = terms::term(&mut f.b, f.stage.delta, ZERO, Vec::new());
        named(f, Some(zero))
    }
    // [delta_let.operation]  #input i, with the binding i = #add (#scale (d1op 1) d1) .. (#scale (dnop 1) dn)
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let sum = terms::linear(f, f.stage.delta, op);
        named(f, Some(sum))
    }
    // [delta_let.argument]  #input i
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        named(f, None)
    }
    // [delta_let.cotangents]  for the bindings i = d, the last one first: m = eval m[i] d m
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let eval = f.stage.eval;
        let log = f.part(f.state, 1);
        let empty = f.b.term(Exp::MapEmpty(Type::F64));
        let empty = f.emit(empty, "m");
        let first = f.results(run.result, run.result_type, run.seed, empty, &mut |f, d, z, rest| {
            let (z, d, rest) = (f.b.var(z), f.b.var(d), f.b.var(rest));
            let next = f.b.call(eval, vec![z, d, rest]);
            f.emit(next, "m")
        })?;
        let start = f.b.term(Exp::Inject(Type::Named(f.stage.bindings), 0, Vec::new()));
        let init = [log, first].map(|v| f.b.var(v)).to_vec();
        let all = until(&mut f.b, init, |b, p| {
            let m = component(b, p, 2);
            b.let_("m", m, |b, m| {
                let log = component(b, p, 1);
                b.match_(log, |b, _, bound| {
                    let [i, d, rest] = *bound else {
                        let m = b.var(m);
                        return flagged(b, false, vec![start.clone(), m]);
                    };
                    let (map, i) = (b.var(m), b.var(i));
                    let c = b.term(Exp::MapLookup(map, i));
                    let next = b.match_(c, |b, _, c| {
                        let (m, d) = (b.var(m), b.var(d));
                        if let [c] = *c {
                            let c = b.var(c);
                            return b.call(eval, vec![c, d, m]);
                        }
                        m
                    });
                    let rest = b.var(rest);
                    flagged(b, true, vec![rest, next])
                })
            })
        });
        let gradient = f.b.proj(all, 2);
        let gradient = f.emit(gradient, "gradient");
        f.gathered(run, &mut |f, i| found(&mut f.b, gradient, i))
    }
}
