//! Arrays of a loop's state that are made anew in every iteration: two places hold them in turn, so that none is copied.
//!
//! Iteration `i` finds the array in place `i mod 2` and makes the next one in the other place. Where other states are what
//! this one was one iteration ago, two iterations ago, .. (`(u, v)` becomes `(f u v, u)`: schemes of two steps, differences), there
//! is a place more for each of them: the array of iteration `i` is in place `i mod k`, the one before in place `i - 1 mod k`.
//!
//! An array that maps make of the one before, element by element, needs one place only: each map writes over what it reads ([`lineage`]).

use super::aliasing::last_uses;
use super::rep::{ArrayRep, Rep, has_boxes};
use super::{Lower, Res, Val};
use crate::ir::Operand;
use pullback_base::index::IdMap;
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Body, Exp, Loop, Program, Soac, Type, Var};
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

/// The state `c`, and the states that are what it was one iteration ago, two iterations ago, ..
pub(super) fn ring(l: &Loop, c: usize) -> Vec<usize> {
    let mut out = vec![c];
    let mut last = c;
    let follows = |j: usize, last: usize| l.body.result[j] == Atom::Var(l.params[last].0);
    while let Some(j) = (0..l.params.len()).find(|j| follows(*j, last) && !out.contains(j)) {
        out.push(j);
        last = j;
    }
    out
}

impl Lower<'_> {
    /// Places for a state of a loop and for what it was in iterations before, the others of its `ring`, with their first values;
    /// `None` if the state is not made anew.
    pub(super) fn places_for(&mut self, l: &Loop, ring: &[usize]) -> Res<Option<ArrayRep>> {
        let (v, init) = l.params[ring[0]];
        let (body, result) = (&l.body, l.body.result[ring[0]]);
        let ty = self.ty(v).clone();
        let Rep::Array(first) = self.rep(init) else { return Ok(None) };
        let size = first.dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_i64()?));
        if has_boxes(&ty) || size.is_some_and(|n| n <= SMALL) || !is_made_anew(body, result) {
            return Ok(None);
        }
        if let Some(lineage) = lineage(self.program, body, v, result) {
            self.heirs.extend(lineage);
            return Ok(None);
        }
        let count = 1 + ring.len() as i64;
        let dims = std::iter::once(Operand::i64(count)).chain(first.dims.iter().copied()).collect();
        let places = self.new_array(dims, ty.base())?;
        for (ago, k) in ring.iter().enumerate() {
            let place = self.first_place(&places, ago);
            let first = self.array(l.params[*k].1);
            self.copy(&place, &first)?;
        }
        self.in_turn.extend(places.pointers());
        Ok(Some(places))
    }

    /// Where the array of so many iterations before the first one is.
    pub(super) fn first_place(&mut self, places: &ArrayRep, ago: usize) -> ArrayRep {
        self.place_of(places, Operand::i64(0), ago)
    }

    /// Where the array of so many iterations before iteration `i` is.
    pub(super) fn place_of(&mut self, places: &ArrayRep, i: Operand, ago: usize) -> ArrayRep {
        let n = places.dims[0].as_i64().expect("a number that this module wrote");
        let i = self.add(i, Operand::i64((n - ago as i64) % n));
        let place = match n {
            2 => self.op(Op::And, Scalar::I64, &[i, Operand::i64(1)]),
            n => self.op(Op::Rem, Scalar::I64, &[i, Operand::i64(n)]),
        };
        self.part(places, &[place])
    }

    /// The places in iteration `i`.
    pub(super) fn both_places(&mut self, places: &ArrayRep, i: Operand) -> Places {
        let now = self.place_of(places, i, 0);
        let after = self.add(i, Operand::i64(1));
        Places { now, next: self.place_of(places, after, 0) }
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

/// The way from a state of a loop to its next value over maps that may each write over an operand which nobody needs afterwards: each array with the operand that it
/// replaces. `None`: there is none.
fn lineage(program: &Program, body: &Body, state: Var, result: Atom) -> Option<Vec<(Var, Var)>> {
    let mut search = Search { program, body, last: last_uses(body), state, left: STEPS };
    let mut way = Vec::new();
    search.back(result.var()?, body.stms.len(), &mut way).then_some(way)
}

/// How many arrays are looked at on the way back.
const STEPS: usize = 32;

struct Search<'a> {
    program: &'a Program,
    body: &'a Body,
    last: IdMap<Var, usize>,
    state: Var,
    left: usize,
}

impl Search<'_> {
    /// Whether an array goes back to the state; it is made before statement `end`.
    fn back(&mut self, v: Var, end: usize, way: &mut Vec<(Var, Var)>) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let ty = &self.program.vars[v].ty;
        let Some(at) = self.body.stms[..end].iter().position(|s| s.pat.contains(&v)) else { return false };
        let Some((lam, arrays)) = self.body.stms[at].exp.elementwise() else { return false };
        let inside = free_vars_lam(lam);
        if !matches!(ty, Type::Array(elem) if elem.scalar().is_some()) {
            return false;
        }
        let given = |u: &Var| way.iter().any(|(_, operand)| operand == u);
        let operands: Vec<Var> = arrays.iter().filter_map(|a| a.var()).filter(|u| !given(u)).collect();
        operands.iter().any(|u| {
            let once = operands.iter().filter(|w| *w == u).count() == 1 && !inside.contains(u);
            let is_needed = self.last.get(u).is_some_and(|last| *last > at);
            if !once || self.program.vars[*u].ty != *ty || is_needed {
                return false;
            }
            way.push((v, *u));
            let found = *u == self.state || self.back(*u, at, way);
            if !found {
                way.pop();
            }
            found
        })
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
