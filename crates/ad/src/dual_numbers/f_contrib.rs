//! Dual-numbers reverse AD without functions: what a backpropagator would do is data.
//!
//! Source: T. Smeding, thesis, 3.8.1 (one array) and 3.8.2 (`Contrib`).
//!
//! Judgement: `G |- t : s` becomes `D4[G] |- D4[t] : Z -> (D4[s], Z)`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! D4[f64] = (f64, (Z, Contrib))                    an identity, and to what it contributes
//! Contrib = #contrib [](f64, Z, Contrib)           times what, to which identity, which has these contributions
//! ```
//!
//! Notation: `m >>= k`, `return` [`Exp::IoBind`], [`Exp::IoReturn`] · arrays [`Exp::MutNew`], [`Exp::MutModify`]
//!
//! Rules:
//! ```text
//! constant     = (i, #contrib [])
//! operation    = (i, #contrib [(d1op 1, d1), .., (dnop 1, dn)])        d1, .., dn: what stands beside the arguments
//! argument     = (i, #contrib [])
//! cotangents z = the arguments, with what is in m after
//!                m <- new identities (#contrib [], 0); add d1 z1 m; ..; add dm zm m; resolve m
//!
//! add (i, cb) a m = m[i] := (cb, m[i].1 + a)
//! resolve m       = for the highest identity i first, down to the arguments: let (#contrib row, d) = m[i] in add (ij, cbj) (aj * d) m for (aj, ij, cbj) of row
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//!
//! Guarantee: a gradient costs a constant times the program and the size of its arguments, for programs without array operations of higher cost than their
//! elements (tests count the steps).
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::effects::{silent, then, unit};
use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use crate::chad::component;
use crate::contract::Unsupported;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, Scalar};
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "dual-contrib";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Contrib::new(b))
}

struct Contrib {
    contrib: TypeId,
    add: FunId,
    resolve: FunId,
}

/// `(f64, Z, Contrib)`
fn entry(contrib: TypeId) -> Type {
    Type::tuple([Type::F64, Type::I64, Type::Named(contrib)])
}

/// `(Contrib, f64)`
fn cell(contrib: TypeId) -> Type {
    Type::tuple([Type::Named(contrib), Type::F64])
}

impl Contrib {
    fn new(b: &mut Builder<'_>) -> Contrib {
        let count = b.program.types.len();
        let id = b.declare_type(&format!("contrib_{count}"));
        b.define_type(id, vec![Variant { name: "contrib".into(), fields: vec![Type::array(entry(id))] }]);
        let cells = Type::MutArray(Arc::new(cell(id)));
        let nothing = Type::io(Type::unit());

        // m[i] := (cb, m[i].1 + a)
        let params = [("i", Type::I64), ("cb", Type::Named(id)), ("a", Type::F64), ("m", cells.clone())];
        let add = b.declare(&format!("add_{count}"), &params, nothing.clone(), None);
        let v = b.params(add);
        let change = b.lam("old", cell(id), |b, old| {
            let (cb, before, a) = (b.var(v[1]), component(b, old, 1), b.var(v[2]));
            let sum = b.op2(Op::Add, before, a);
            b.tuple(vec![cb, sum])
        });
        let (m, i) = (b.var(v[3]), b.var(v[0]));
        let changed = b.term(Exp::MutModify(m, i, change));
        let body = silent(b, changed);
        b.define(add, body);

        // Entry k of a row and those after it.
        let params =
            [("row", Type::array(entry(id))), ("k", Type::I64), ("d", Type::F64), ("m", cells.clone())];
        let contribute = b.declare(&format!("contribute_{count}"), &params, nothing.clone(), None);
        let v = b.params(contribute);
        let (row, k) = (b.var(v[0]), b.var(v[1]));
        let one = b.index(row.clone(), vec![k.clone()]);
        let on = b.let_("e", one, |b, e| {
            let (a, i, cb) = (component(b, e, 0), component(b, e, 1), component(b, e, 2));
            let (d, m) = (b.var(v[2]), b.var(v[3]));
            let a = b.op2(Op::Mul, a, d.clone());
            let first = b.call(add, vec![i, cb, a, m.clone()]);
            let (row, k, one) = (b.var(v[0]), b.var(v[1]), b.i64(1));
            let k = b.op2(Op::Add, k, one);
            let rest = b.call(contribute, vec![row, k, d, m]);
            then(b, first, rest)
        });
        let n = b.size(row, 0);
        let more = b.op2(Op::Lt, k, n);
        let end = unit(b);
        let body = b.if_(more, on, end);
        b.define(contribute, body);

        // From identity i down to that of the last operation.
        let params = [("i", Type::I64), ("last", Type::I64), ("m", cells)];
        let resolve = b.declare(&format!("resolve_{count}"), &params, nothing, None);
        let v = b.params(resolve);
        let (i, last, m) = (b.var(v[0]), b.var(v[1]), b.var(v[2]));
        let get = b.term(Exp::MutGet(m, i.clone()));
        let rest = b.lam("c", cell(id), |b, c| {
            let contrib = component(b, c, 0);
            b.match_(contrib, |b, _, row| {
                let (row, zero, d, m) = (b.var(row[0]), b.i64(0), component(b, c, 1), b.var(v[2]));
                let first = b.call(contribute, vec![row, zero, d, m]);
                let (i, one, last, m) = (b.var(v[0]), b.i64(1), b.var(v[1]), b.var(v[2]));
                let i = b.op2(Op::Sub, i, one);
                let rest = b.call(resolve, vec![i, last, m]);
                then(b, first, rest)
            })
        });
        let on = b.term(Exp::IoBind(get, rest));
        let done = b.op2(Op::Lt, i, last);
        let end = unit(b);
        let body = b.if_(done, end, on);
        b.define(resolve, body);
        Contrib { contrib: id, add, resolve }
    }
}

impl Stage for Contrib {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        Type::tuple([Type::I64, Type::Named(self.contrib)])
    }
    // [dual_contrib.constant]  (i, #contrib [])
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let id = f.next();
        let none = contrib(f, Vec::new());
        let none = f.emit(none, "cb");
        f.tuple(&[id, none])
    }
    // [dual_contrib.operation]  (i, #contrib [(d1op 1, d1), .., (dnop 1, dn)])
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let id = f.next();
        let operands: Vec<_> = Forward::<Self>::operands(op).collect();
        let mut row = Vec::new();
        for (k, partial) in operands {
            let (a, d) = (f.factor(op, partial), f.beside(op, k));
            let d = f.emit(d, "d");
            let (i, cb) = (component(&mut f.b, d, 0), component(&mut f.b, d, 1));
            row.push(f.b.tuple(vec![a, i, cb]));
        }
        let made = contrib(f, row);
        let made = f.emit(made, "cb");
        f.tuple(&[id, made])
    }
    // [dual_contrib.argument]  (i, #contrib [])
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        Self::constant(f)
    }
    // [dual_contrib.cotangents]  new identities (#contrib [], 0); add d1 z1; ..; add dm zm; resolve
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let state = f.state;
        let contrib_type = f.stage.contrib;
        let io = f.around(|f| {
            let (n, none, zero) = (f.b.var(state), contrib(f, Vec::new()), f.b.f64(0.0));
            let empty = f.b.tuple(vec![none, zero]);
            let m = f.b.term(Exp::MutNew(n, empty));
            let m = f.perform(m, "m");
            let (n, one, last, cells) = (f.b.var(state), f.b.i64(1), f.b.var(run.arguments), f.b.var(m));
            let first = f.b.op2(Op::Sub, n, one);
            let resolve = f.b.call(f.stage.resolve, vec![first, last, cells]);
            let resolve = f.emit(resolve, "resolve");
            let all = f.results(run.result, run.result_type, run.seed, resolve, &mut |f, d, z, rest| {
                let (i, cb) = (component(&mut f.b, d, 0), component(&mut f.b, d, 1));
                let (z, m, rest) = (f.b.var(z), f.b.var(m), f.b.var(rest));
                let added = f.b.call(f.stage.add, vec![i, cb, z, m]);
                let both = then(&mut f.b, added, rest);
                f.emit(both, "all")
            })?;
            let all = f.b.var(all);
            f.perform(all, "_");
            let cells = f.b.var(m);
            Ok(f.b.term(Exp::MutFreeze(cells)))
        })?;
        let cells = f.b.term(Exp::IoRun(io));
        let cells = f.emit(cells, "cells");
        debug_assert_eq!(f.b.program.vars[cells].ty, Type::array(cell(contrib_type)));
        f.gathered(run, &mut |f, i| {
            let (all, i) = (f.b.var(cells), f.b.var(i));
            let one = f.b.index(all, vec![i]);
            f.b.proj(one, 1)
        })
    }
}

/// `#contrib [rows]`
fn contrib(f: &mut Forward<'_, Contrib>, row: Vec<Term>) -> Term {
    let id = f.stage.contrib;
    let row = f.b.term(Exp::ArrayLit(entry(id), row));
    f.b.term(Exp::Inject(Type::Named(id), 0, vec![row]))
}
