//! Dual-numbers reverse AD with staged calls: a backpropagator is called once, at the sum of all it is called at.
//!
//! Source: T. Smeding, thesis, 3.4: Figs. 3.8 and 3.9.
//!
//! Judgement: `G |- t : s` becomes `D2[G] |- D2[t] : Z -> (D2[s], Z)`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! D2[f64] = (f64, (Z, f64 -> Staged c))
//! Staged c: a cotangent of the arguments, and for identities a function with the argument that it will be called at
//! ```
//!
//! Notation: `0_Staged`, `+Staged` [`Exp::Zero`], [`Exp::Plus`] · `SCotan` [`Exp::StagedCotangent`] · `SCall` [`Exp::StagedCall`] · `SResolve` [`Exp::StagedResolve`]
//!
//! Rules:
//! ```text
//! constant     = (i, \z. 0_Staged)
//! operation    = (i, \z. SCall d1 (d1op z) +Staged .. +Staged SCall dn (dnop z))      d1, .., dn: what stands beside the arguments
//! argument     = (i, \z. SCotan <0, .., z, .., 0>)
//! cotangents z = SResolve (d1 z1 +Staged .. +Staged dm zm)                             over the numbers of the result
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//! 2. Backpropagators are functions like others: those of arrays write one element, for which linear bodies have no form.
//!
//! Guarantee: none. Each backpropagator is called at most once, but every call and every addition costs the size of the arguments, and maps a logarithm.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use super::structure::{one_hot, zeros};
use crate::contract::Unsupported;
use pullback_lambda::{Exp, FunId, Program, Term, Type, Var};
use pullback_prim::Scalar;
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "dual-staged";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |_, all| Staged { of: Type::Staged(Arc::new(all.clone())) })
}

struct Staged {
    /// `Staged c`
    of: Type,
}

impl Stage for Staged {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        Type::tuple([Type::I64, Type::fun(Type::F64, self.of.clone())])
    }
    // [dual_staged.constant]  (i, \z. 0_Staged)
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let id = f.next();
        let zero = zero(f);
        let back = f.lambda("z", Type::F64, |f, _| f.emit(zero, "zero"));
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_staged.operation]  (i, \z. SCall d1 (d1op z) +Staged .. +Staged SCall dn (dnop z))
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let id = f.next();
        let back = f.lambda("z", Type::F64, |f, z| {
            let mut sum: Option<Term> = None;
            for (k, slope) in op.operands() {
                let d = f.scaled(op, slope, z);
                let beside = f.beside(op, k);
                let beside = f.emit(beside, "d");
                let (id, back) = (f.part(beside, 0), f.part(beside, 1));
                let (id, back) = (f.b.var(id), f.b.var(back));
                let call = f.b.term(Exp::StagedCall(id, back, d));
                sum = Some(match sum {
                    Some(sum) => f.b.term(Exp::Plus(sum, call)),
                    None => call,
                });
            }
            let sum = sum.unwrap_or_else(|| zero(f));
            f.emit(sum, "s")
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_staged.argument]  (i, \z. SCotan <0, .., z, .., 0>)
    fn argument(f: &mut Forward<'_, Self>, s: Scalar, path: &Path<'_>) -> Var {
        let id = f.next();
        let back = f.lambda("z", Type::F64, |f, z| {
            let z = f.b.var(z);
            let z = f.b.convert(z, s);
            let whole = placed(f, z, path);
            let staged = f.b.term(Exp::StagedCotangent(whole));
            f.emit(staged, "s")
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_staged.cotangents]  SResolve (d1 z1 +Staged .. +Staged dm zm)
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let zero = zero(f);
        let zero = f.emit(zero, "zero");
        let staged = f.results(run.result, run.result_type, run.seed, zero, &mut |f, d, z, rest| {
            let (back, z) = (f.part(d, 1), f.b.var(z));
            let back = f.b.var(back);
            let called = f.b.apply(back, [z]);
            let rest = f.b.var(rest);
            let sum = f.b.term(Exp::Plus(called, rest));
            f.emit(sum, "s")
        })?;
        let staged = f.b.var(staged);
        let bars = f.b.term(Exp::StagedResolve(staged));
        Ok(f.emit(bars, "bars"))
    }
}

/// `0_Staged`
fn zero(f: &mut Forward<'_, Staged>) -> Term {
    let staged = f.stage.of.clone();
    f.b.term(Exp::Zero(staged))
}

/// `<0, .., z, .., 0>`, with `z` at the end of the path.
fn placed(f: &mut Forward<'_, Staged>, z: Term, path: &Path<'_>) -> Term {
    match path {
        Path::Whole => z,
        Path::Component(outer, bars, k) => {
            let whole = one_hot(&mut f.b, bars, *k, z);
            placed(f, whole, outer)
        }
        Path::Element(outer, x, t, i) => {
            let (zeros, i) = (zeros(&mut f.b, *x, t), f.b.var(*i));
            let whole = f.b.term(Exp::Update(zeros, vec![i], z));
            placed(f, whole, outer)
        }
        Path::Alternative(outer, bar, k) => {
            let whole = f.b.term(Exp::SparseInject(Type::clone(bar), *k, z));
            placed(f, whole, outer)
        }
    }
}
