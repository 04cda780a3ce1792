//! Terms that only move elements: `replicate`, `slice`, `reshape`, `backpermute`.
//!
//! Rules:
//! ```text
//! replicate    \i. u ! (the components of i at `All`)
//! slice        \i. u ! (the components of i at `All`, the integers elsewhere)
//! reshape      in memory: a reshape of core.  else \i. u ! j, where j has the row-major number of i; outer and inner sizes that are the same stay
//! before       where a delayed reshape goes to memory as a whole, or by rows, the array before it does
//! backpermute  \i. u ! (f i)
//! ```

use super::delayed::{Form, Pull};
use super::uses::moves_once;
use super::{INDEX, Lower};
use crate::accelerate::language::{Arr, Fun, Slice};
use pullback_core::{Atom, Check, Exp as Core};
use pullback_prim::Op;
use std::rc::Rc;

impl Lower<'_, '_> {
    /// The entries of a slice, where the builder stands.
    pub(super) fn entries(&mut self, slc: &Slice) -> Vec<Option<Atom>> {
        slc.iter().map(|e| e.as_ref().map(|e| self.closed(e)[0])).collect()
    }
    // [accelerate_to_core.replicate]  \i. u ! (the components of i at `All`)
    pub(super) fn replicate(&mut self, slc: &Slice, u: &Arr) -> Pull {
        let entries = self.entries(slc);
        let p = self.array(u);
        let is_again = entries.iter().any(Option::is_some);
        let p = if is_again { self.settled(p) } else { p };
        let mut sizes = p.dims.iter().copied();
        let dims = entries.iter().map(|e| e.or_else(|| sizes.next()));
        let dims: Vec<Atom> = dims.flatten().collect();
        Pull::delayed(p.ty.clone(), dims, p.cost(), move |this, ix| {
            let kept: Vec<Atom> =
                ix.iter().zip(&entries).filter(|(_, e)| e.is_none()).map(|(i, _)| *i).collect();
            this.element(&p, &kept)
        })
    }
    // [accelerate_to_core.slice]  \i. u ! (the components of i at `All`, the integers elsewhere)
    pub(super) fn slice(&mut self, slc: &Slice, u: &Arr) -> Pull {
        let entries = self.entries(slc);
        let p = self.array(u);
        let dims = p.dims.iter().zip(&entries).filter(|(_, e)| e.is_none()).map(|(n, _)| *n).collect();
        Pull::delayed(p.ty.clone(), dims, p.cost(), move |this, ix| {
            let mut kept = ix.iter().copied();
            let at: Vec<Atom> = entries.iter().filter_map(|e| e.or_else(|| kept.next())).collect();
            this.checked(&p, &at, 0..p.ty.scalars().len())
        })
    }
    // [accelerate_to_core.backpermute]  \i. u ! (f i)
    pub(super) fn backpermute(&mut self, dims: Vec<Atom>, f: &Fun, p: Pull) -> Pull {
        let p = if moves_once(&f.param, &f.body) { p } else { self.settled(p) };
        let (f, cost) = (f.clone(), self.cost(&f.body).saturating_add(p.cost()));
        Pull::delayed(p.ty.clone(), dims, cost, move |this, ix| {
            let at = this.apply(&f, ix.to_vec());
            this.checked(&p, &at, 0..p.ty.scalars().len())
        })
    }

    // [accelerate_to_core.reshape]  \i. u ! j, where j has the row-major number of i
    pub(super) fn reshape(&mut self, dims: Vec<Atom>, p: Pull) -> Pull {
        if dims == p.dims {
            return p;
        }
        if let Form::Stored(leaves) = &p.form
            && !leaves.is_empty()
            && !dims.is_empty()
            && !p.dims.is_empty()
        {
            let leaves = self.reshaped(leaves, &dims, p.dims.len());
            return Pull::in_memory(p.ty.clone(), dims, leaves);
        }
        self.same_count(&dims, &p.dims);
        let shorter = dims.len().min(p.dims.len());
        let outer = dims.iter().zip(&p.dims).take_while(|(a, b)| a == b).count();
        let inner = dims.iter().rev().zip(p.dims.iter().rev()).take_while(|(a, b)| a == b).count();
        let inner = inner.min(shorter - outer);
        let cost = p.cost().saturating_add(4);
        let new = dims.clone();
        let before = (shorter > 0).then(|| Rc::new(p.clone()));
        let reshaped = Pull::delayed(p.ty.clone(), dims, cost, move |this, ix| {
            let middle = &ix[outer..ix.len() - inner];
            let number = this.number(middle, &new[outer..new.len() - inner]);
            let old = &p.dims[outer..p.dims.len() - inner];
            let middle = this.places(number, old);
            let at = [&ix[..outer], &middle, &ix[ix.len() - inner..]].concat();
            this.element(&p, &at)
        });
        Pull { before, ..reshaped }
    }
    /// Stops the program unless two shapes have as many elements.
    fn same_count(&mut self, dims: &[Atom], old: &[Atom]) {
        let (m, n) = (self.product(dims), self.product(old));
        if m != n {
            let (new, old) = (filled(dims), filled(old));
            self.b.emit(Core::Check(Check::Reshape(new.len()), [new, old].concat()), "fits");
        }
    }
    /// The row-major number of an index.
    pub(super) fn number(&mut self, ix: &[Atom], dims: &[Atom]) -> Atom {
        let pairs = ix.iter().zip(dims);
        pairs.fold(Atom::i64(0), |number, (i, n)| {
            let before = if number == Atom::i64(0) { number } else { self.op2(Op::Mul, INDEX, number, *n) };
            self.op2(Op::Add, INDEX, before, *i)
        })
    }
    /// The index with this number.
    fn places(&mut self, number: Atom, dims: &[Atom]) -> Vec<Atom> {
        let mut rest = number;
        let mut at = vec![Atom::i64(0); dims.len()];
        for d in (0..dims.len()).rev() {
            if d == 0 || dims[d] == Atom::i64(1) {
                at[d] = if d == 0 { rest } else { Atom::i64(0) };
                self.facts.is_below(at[d], dims[d]);
                continue;
            }
            at[d] = self.op2(Op::Mod, INDEX, rest, dims[d]);
            self.facts.is_below(at[d], dims[d]);
            rest = self.op2(Op::Div, INDEX, rest, dims[d]);
        }
        at
    }
}

/// Sizes, at least one.
fn filled(dims: &[Atom]) -> Vec<Atom> {
    if dims.is_empty() { vec![Atom::i64(1)] } else { dims.to_vec() }
}
