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
//! Notation: `m >>= k`, `return` [`Exp::IoBind`], [`Exp::IoReturn`] · arrays [`Exp::MutNew`], [`Exp::MutModify`] · `add`, `resolve` `super::rows`
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

use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use super::rows::{Rows, changed, gathered, resolved};
use crate::contract::Unsupported;
use pullback_lambda::{Builder, Exp, FunId, Program, Type, Var};
use pullback_prim::{Op, Scalar};

/// The name by which it is chosen.
pub const ID: &str = "dual-contrib";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Contrib::new(b))
}

struct Contrib {
    rows: Rows,
    add: FunId,
    resolve: FunId,
}

impl Contrib {
    fn new(b: &mut Builder<'_>) -> Contrib {
        let rows = Rows::new(b, Type::I64, |cells| cells);
        let add = rows.add(b, |b, m, i, change| {
            let i = b.var(i);
            changed(b, m, i, change)
        });
        let contribute = rows.contribute(b, add);
        // Down to the identity of the first operation.
        let resolve = rows.resolve(b, "resolve", ("last", Type::I64), contribute, |b, v| {
            let (last, m) = (b.var(v[1]), b.var(v[2]));
            (m, last)
        });
        Contrib { rows, add, resolve }
    }
}

impl Stage for Contrib {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        self.rows.dual()
    }
    // [dual_contrib.constant]  (i, #contrib [])
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let (id, none) = (f.next(), f.stage.rows.clone().nothing(f));
        f.tuple(&[id, none])
    }
    // [dual_contrib.operation]  (i, #contrib [(d1op 1, d1), .., (dnop 1, dn)])
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let (id, row) = (f.next(), f.stage.rows.clone().row(f, op));
        f.tuple(&[id, row])
    }
    // [dual_contrib.argument]  (i, #contrib [])
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        Self::constant(f)
    }
    // [dual_contrib.cotangents]  new identities (#contrib [], 0); add d1 z1; ..; add dm zm; resolve
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let state = f.state;
        let io = f.around(|f| {
            let (n, empty) = (f.b.var(state), f.stage.rows.empty(&mut f.b));
            let m = f.b.term(Exp::MutNew(n, empty));
            let m = f.perform(m, "m");
            let (n, one, last, cells) = (f.b.var(state), f.b.i64(1), f.b.var(run.arguments), f.b.var(m));
            let first = f.b.op2(Op::Sub, n, one);
            let resolve = f.b.call(f.stage.resolve, vec![first, last, cells]);
            resolved(f, run, f.stage.add, m, resolve)?;
            let cells = f.b.var(m);
            Ok(f.b.term(Exp::MutFreeze(cells)))
        })?;
        gathered(f, run, io)
    }
}
