//! Arrays of a loop's state that are made anew in every iteration: two places hold them in turn, so that none is copied.
//!
//! Iteration `i` finds the array in place `i mod 2` and makes the next one in the other place.

use super::rep::{ArrayRep, Rep, has_boxes};
use super::{Lower, Res, Val};
use crate::ir::Operand;
use pullback_core::{Atom, Body, Exp, Soac, Var};
use pullback_prim::{Op, Scalar};

/// Arrays of a known shape with at most so many elements are copied: they may become registers.
const SMALL: i64 = 64;

/// Both places, in an iteration.
pub(super) struct Places {
    /// The array of this iteration.
    pub(super) now: ArrayRep,
    /// Where the array of the next iteration belongs.
    pub(super) next: ArrayRep,
}

impl Lower<'_> {
    /// Two places for the state `v` of a loop, the first of them with its first value; `None` if it is not made anew.
    pub(super) fn pair(&mut self, v: Var, init: Atom, body: &Body, result: Atom) -> Res<Option<ArrayRep>> {
        let ty = self.ty(v).clone();
        let Rep::Array(first) = self.atom(init) else { return Ok(None) };
        let size = first.dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_i64()?));
        if has_boxes(&ty) || size.is_some_and(|n| n <= SMALL) || !is_made_anew(body, result) {
            return Ok(None);
        }
        let dims = std::iter::once(Operand::i64(2)).chain(first.dims.iter().copied()).collect();
        let pair = self.new_array(dims, ty.base())?;
        let place = self.part(&pair, &[Operand::i64(0)]);
        self.copy(&place, &first)?;
        self.in_turn.extend(pair.pointers());
        Ok(Some(pair))
    }

    /// The place of the array after `n` iterations.
    pub(super) fn place_after(&mut self, pair: &ArrayRep, n: Operand) -> ArrayRep {
        let place = self.op(Op::And, Scalar::I64, &[n, Operand::i64(1)]);
        self.part(pair, &[place])
    }

    /// The places in iteration `i`.
    pub(super) fn both_places(&mut self, pair: &ArrayRep, i: Operand) -> Places {
        let now = self.op(Op::And, Scalar::I64, &[i, Operand::i64(1)]);
        let next = self.sub(Operand::i64(1), now);
        Places { now: self.part(pair, &[now]), next: self.part(pair, &[next]) }
    }

    /// Puts the next array where it belongs, if it was not made there.
    pub(super) fn put(&mut self, places: &Places, val: Val) -> Res<Val> {
        if let Rep::Array(from) = &val.rep
            && !places.next.same_place(from)
        {
            self.copy(&places.next, from)?;
        }
        Ok(Val { rep: Rep::Array(places.next.clone()), roots: val.roots })
    }
}

/// Whether a result of a body is an array that the body makes, and not one that it writes in place or has from elsewhere.
fn is_made_anew(body: &Body, result: Atom) -> bool {
    let Some(v) = result.var() else { return false };
    let Some(stm) = body.stms.iter().find(|s| s.pat.contains(&v)) else { return false };
    match &stm.exp {
        Exp::Atom(a) => is_made_anew(body, *a),
        Exp::Reshape { array, shape, from } => shape.len() == *from && is_made_anew(body, *array),
        Exp::WithAcc(inits, _) => {
            let k = stm.pat.iter().position(|p| *p == v);
            k.and_then(|k| inits.get(k)).is_some_and(|init| is_made_anew(body, *init))
        }
        Exp::Soac(Soac::Map { .. } | Soac::Scan { .. } | Soac::Fused { .. }) => true,
        _ => false,
    }
}
