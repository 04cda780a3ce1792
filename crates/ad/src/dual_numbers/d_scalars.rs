//! Dual-numbers reverse AD that keeps just the numbers: cotangents of the arguments are collected by identity, not in their structure.
//!
//! Source: T. Smeding, thesis, 3.6.
//!
//! Judgement: `G |- t : s` becomes `D3[G] |- D3[t] : Z -> (D3[s], Z)`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! D3[f64] = (f64, (Z, f64 -> Staged -> Staged))
//! Staged = #staged (map f64) (map (f64 -> Staged -> Staged, f64))        as `super::maps` has it; collected are numbers by identity
//! ```
//!
//! Notation: `SCall`, `SResolve` `super::maps` · `id` `\s. s` · `f . g` one after the other, `g` first
//!
//! Rules:
//! ```text
//! constant     = (i, \z. id)
//! operation    = (i, \z. SCall d1 (d1op z) . .. . SCall dn (dnop z))      d1, .., dn: what stands beside the arguments
//! argument     = (i, \z. \#staged k m. #staged (k, with + z at i) m)
//! cotangents z = the arguments, with what SResolve ((d1 z1 . .. . dm zm) (#staged {} {})) has at 0, 1, .. in the place of their numbers
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//!
//! Guarantee: none. Maps cost a logarithm, of the arguments or of the operations; tests count it.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use super::maps::{Maps, found, with};
use crate::contract::Unsupported;
use pullback_lambda::{Exp, FunId, Program, Type, Var};
use pullback_prim::Scalar;
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "dual-scalars";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Scalars { maps: Maps::new(b, &Type::Map(Arc::new(Type::F64))) })
}

struct Scalars {
    maps: Maps,
}

impl Stage for Scalars {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        self.maps.dual()
    }
    // [dual_scalars.constant]  (i, \z. id)
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        f.stage.maps.clone().constant(f)
    }
    // [dual_scalars.operation]  (i, \z. SCall d1 (d1op z) . .. . SCall dn (dnop z))
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        f.stage.maps.clone().operation(f, op)
    }
    // [dual_scalars.argument]  (i, \z. \#staged k m. #staged (k, with + z at i) m)
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        let id = f.next();
        let back = f.stage.maps.collecting(&mut f.b, |b, z, k| {
            let (k, id, z) = (b.var(k), b.var(id), b.var(z));
            with(b, k, id, z)
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_scalars.cotangents]  the arguments, with the numbers that are collected
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let none = f.b.term(Exp::MapEmpty(Type::F64));
        let numbers = f.stage.maps.clone().backward(f, run, none)?;
        let numbers = f.emit(numbers, "numbers");
        f.gathered(run, &mut |f, i| found(&mut f.b, numbers, i))
    }
}
