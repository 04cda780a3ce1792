//! `iterate`: a loop whose states are arrays.
//!
//! Rules:
//! ```text
//! loop       loop (a = u_0) for i < n { u }, which keeps each state before its step
//! state      \(k, j ..). if k < n then kept ! (k, j ..) else the last state ! (j ..)
//! ```
//!
//! Guarantee: no state is copied. What is kept and not read is dead code: so of a loop whose last state alone is read nothing is kept.

use super::collect::COST;
use super::delayed::{Pull, Value};
use super::{INDEX, Lower, Stored, whole};
use crate::accelerate::language::{Arr, Exp, Step, Ty};
use pullback_core::{Atom, Exp as Core, Loop, LoopAttrs, LoopForm, Var};
use pullback_prim::{Op, Scalar};

impl Lower<'_, '_> {
    // [accelerate_to_core.iterate]
    pub(super) fn iterate(&mut self, e: &Exp, step: &Step, first: &Arr) -> Value {
        let n = self.closed(e)[0];
        let value = self.arr(first);
        let first = self.in_memory(&value);
        let counter = self.counters(&[n])[0];
        let Some(i) = counter.var() else { unreachable!("a counter is a variable") };
        let mut params: Vec<(Var, Atom)> = Vec::new();
        for leaf in first.leaves() {
            let ty = self.b.ty(leaf);
            params.push((self.b.fresh(ty, "a"), leaf));
        }
        let states: Vec<Atom> = params.iter().map(|(x, _)| Atom::from(*x)).collect();
        let number = Pull::in_memory(Ty::Scalar(Scalar::I64), Vec::new(), vec![counter]);
        self.arrays
            .insert(step.state.clone(), Value::stored(&first.with_leaves(&mut states.iter().copied())));
        self.arrays.insert(step.counter.clone(), Value::Array(number));
        self.b.open();
        let next = self.apart(|this| {
            let next = this.arr(&step.body);
            let next = this.in_memory(&next).leaves();
            let next = first.with_leaves(&mut next.into_iter());
            whole(this.b, &next).leaves()
        });
        let collect = states.len();
        let body = self.b.close([next, states].concat());
        let form = LoopForm::For { i, n };
        let looped = Loop { params, form, body, collect, attrs: LoopAttrs::default() };
        let all = if collect == 0 { Vec::new() } else { self.b.emit_all(Core::Loop(looped), "states") };
        let all: Vec<Atom> = all.into_iter().map(Atom::from).collect();
        let (last, kept) = all.split_at(collect);
        let (last, kept) =
            (first.with_leaves(&mut last.iter().copied()), first.with_leaves(&mut kept.iter().copied()));
        self.states(n, &last, &kept)
    }

    // [accelerate_to_core.iterate.state]
    fn states(&mut self, n: Atom, last: &Stored, kept: &Stored) -> Value {
        match (last, kept) {
            (Stored::Array { ty, dims, leaves: last }, Stored::Array { leaves: kept, .. }) => {
                let count = self.size(Op::Add, n, Atom::i64(1));
                let (last, kept) = (last.clone(), kept.clone());
                let dims = [&[count], &dims[..]].concat();
                Value::Array(Pull::delayed(ty.clone(), dims, COST, move |this, ix| {
                    let is_kept = this.op2(Op::Lt, INDEX, ix[0], n);
                    let read = |this: &mut Lower<'_, '_>, arrays: &[Atom], ix: &[Atom]| -> Vec<Atom> {
                        arrays.iter().map(|a| this.b.index(*a, ix)).collect()
                    };
                    this.branch(is_kept, &mut |this| read(this, &kept, ix), &mut |this| {
                        read(this, &last, &ix[1..])
                    })
                }))
            }
            (Stored::Tuple(last), Stored::Tuple(kept)) => {
                Value::Tuple(last.iter().zip(kept).map(|(last, kept)| self.states(n, last, kept)).collect())
            }
            _ => unreachable!("both are of one type"),
        }
    }
}

impl Stored {
    /// All leaves, depth first.
    fn leaves(&self) -> Vec<Atom> {
        match self {
            Stored::Array { leaves, .. } => leaves.clone(),
            Stored::Tuple(parts) => parts.iter().flat_map(Stored::leaves).collect(),
        }
    }
    /// The same sizes, with other leaves.
    fn with_leaves(&self, atoms: &mut dyn Iterator<Item = Atom>) -> Stored {
        match self {
            Stored::Array { ty, dims, leaves } => Stored::Array {
                ty: ty.clone(),
                dims: dims.clone(),
                leaves: atoms.take(leaves.len()).collect(),
            },
            Stored::Tuple(parts) => Stored::Tuple(parts.iter().map(|s| s.with_leaves(atoms)).collect()),
        }
    }
}
