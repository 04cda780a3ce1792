//! Dual-numbers reverse AD where staged calls are changed, not added: zeros and sums cost nothing.
//!
//! Source: T. Smeding, thesis, 3.5: Fig. 3.10, the Cayley transform of the monoid of 3.4.
//!
//! Judgement: `G |- t : s` becomes `D3[G] |- D3[t] : Z -> (D3[s], Z)`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! D3[f64] = (f64, (Z, f64 -> Staged -> Staged))
//! Staged = #staged c (map (f64 -> Staged -> Staged, f64))        as `super::maps` has it; collected is the cotangent of the arguments
//! ```
//!
//! Notation: `SCall`, `SResolve` `super::maps` · `id` `\s. s` · `f . g` one after the other, `g` first
//!
//! Rules:
//! ```text
//! constant     = (i, \z. id)
//! operation    = (i, \z. SCall d1 (d1op z) . .. . SCall dn (dnop z))      d1, .., dn: what stands beside the arguments
//! argument     = (i, \z. \#staged k m. #staged (k, with + z at the number's place) m)
//! cotangents z = SResolve ((d1 z1 . .. . dm zm) (#staged 0_ {}))           over the numbers of the result
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//! 2. The zero has the sizes of the arguments, whose arrays are written at one place.
//!
//! Guarantee: none. What a place costs is the depth at which it is in the arguments, and calls cost a logarithm.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use super::maps::Maps;
use super::structure::zeros;
use crate::chad::component;
use crate::contract::Unsupported;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, Var};
use pullback_prim::{Op, Scalar};

/// The name by which it is chosen.
pub const ID: &str = "dual-cayley";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, all| Cayley { maps: Maps::new(b, all) })
}

struct Cayley {
    maps: Maps,
}

impl Stage for Cayley {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        self.maps.dual()
    }
    // [dual_cayley.constant]  (i, \z. id)
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        f.stage.maps.clone().constant(f)
    }
    // [dual_cayley.operation]  (i, \z. SCall d1 (d1op z) . .. . SCall dn (dnop z))
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        f.stage.maps.clone().operation(f, op)
    }
    // [dual_cayley.argument]  (i, \z. \#staged k m. #staged (k, with + z at the number's place) m)
    fn argument(f: &mut Forward<'_, Self>, s: Scalar, path: &Path<'_>) -> Var {
        let id = f.next();
        let mut steps = Vec::new();
        let mut at = path;
        while let Path::Component(outer, ..) | Path::Element(outer, ..) | Path::Alternative(outer, ..) = at {
            steps.push(at);
            at = outer;
        }
        steps.reverse();
        let back = f.stage.maps.collecting(&mut f.b, |b, z, k| {
            let z = b.var(z);
            let z = b.convert(z, s);
            let whole = b.var(k);
            added(b, whole, &steps, z)
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_cayley.cotangents]  SResolve ((d1 z1 . .. . dm zm) (#staged 0_ {}))
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let parts = run.args.iter().zip(run.types).map(|(x, t)| zeros(&mut f.b, *x, t)).collect();
        let zero = f.b.tuple(parts);
        let bars = f.stage.maps.clone().backward(f, run, zero)?;
        Ok(f.emit(bars, "bars"))
    }
}

/// The cotangent with `+ z` at the end of the steps.
fn added(b: &mut Builder<'_>, whole: Term, steps: &[&Path<'_>], z: Term) -> Term {
    match steps.split_first() {
        None | Some((Path::Whole, _)) => b.op2(Op::Add, whole, z),
        Some((Path::Component(_, bars, k), rest)) => b.let_("k", whole, |b, whole| {
            let parts = (0..bars.len()).map(|i| {
                let part = component(b, whole, i);
                if i == *k { added(b, part, rest, z.clone()) } else { part }
            });
            let parts = parts.collect();
            b.tuple(parts)
        }),
        Some((Path::Element(_, _, _, i), rest)) => b.let_("k", whole, |b, whole| {
            let (read, written, at) = (b.var(whole), b.var(whole), b.var(*i));
            let old = b.index(read, vec![at.clone()]);
            let new = added(b, old, rest, z);
            b.term(Exp::Update(written, vec![at], new))
        }),
        Some((Path::Alternative(_, bar, k), rest)) => {
            let old = b.term(Exp::SparseCast(whole, *k));
            let new = added(b, old, rest, z);
            b.term(Exp::SparseInject(Type::clone(bar), *k, new))
        }
    }
}
