//! `collect`: a loop for each inner row, whose states are kept.
//!
//! Rules, of a row `u` with `n` elements and a first state `e`:
//! ```text
//! loop       from the left: loop (x = e) for i < n { f (x, u ! i) }, which keeps each x;   from the right: { f (x, u ! (n - 1 - i)) }, which keeps what f gives
//! state      from the left: \k. if k < n then kept ! k else the last x;   from the right: \k. if k < n then kept ! (n - 1 - k) else e
//! first      state 0 from the right is the last x
//! ```
//!
//! Guarantee: no state is copied. What is kept and not read is dead code: so of a loop whose last state alone is read nothing is kept.

use super::delayed::Pull;
use super::folds::split;
use super::{INDEX, Lower};
use crate::accelerate::language::{Direction, Fun};
use pullback_core::{Atom, Exp as Core, Loop, LoopAttrs, LoopForm, Var};
use pullback_prim::Op;

/// Operations for an element of an array of states: its place, and which array has it.
pub(super) const COST: u64 = 2;

/// What a loop leaves, leaf by leaf.
struct Left {
    kept: Vec<Atom>,
    last: Vec<Atom>,
}

impl Lower<'_, '_> {
    /// The states of a loop over each inner row.
    pub(super) fn collect(&mut self, from: Direction, f: &Fun, first: &Pull, p: Pull) -> Pull {
        let (outer, n) = (self.smaller(first, &p), split(&p).1);
        let all = self.nest(&outer, &mut |this, ix| {
            let e = this.element(first, ix);
            let Left { kept, last } = this.row_of_states((from, f), ix, &e, (&p, n));
            [kept, last, e].concat()
        });
        let leaves = first.ty.scalars().len();
        let dims = [outer, vec![self.size(Op::Add, n, Atom::i64(1))]].concat();
        // [accelerate_to_core.state]
        Pull::delayed(first.ty.clone(), dims, COST, move |this, ix| {
            let Some((k, outer)) = ix.split_last() else {
                unreachable!("an array of states has an inner row")
            };
            let part = |which: usize| &all[which * leaves..(which + 1) * leaves];
            let [kept, last, e] = [0, 1, 2].map(part);
            match from {
                // [accelerate_to_core.first]
                Direction::Right if *k == Atom::i64(0) => this.read(last, outer),
                Direction::Left | Direction::Right => {
                    let is_kept = this.op2(Op::Lt, INDEX, *k, n);
                    this.branch(
                        is_kept,
                        &mut |this| {
                            let place = this.place_of_step(from, *k, n);
                            this.read(kept, &[outer, &[place]].concat())
                        },
                        &mut |this| this.read(if from == Direction::Left { last } else { e }, outer),
                    )
                }
            }
        })
    }

    // [accelerate_to_core.loop]
    fn row_of_states(
        &mut self,
        (from, f): (Direction, &Fun),
        ix: &[Atom],
        e: &[Atom],
        (p, n): (&Pull, Atom),
    ) -> Left {
        let counter = self.counters(&[n])[0];
        let Some(i) = counter.var() else { unreachable!("a counter is a variable") };
        if e.is_empty() {
            return Left { kept: Vec::new(), last: Vec::new() };
        }
        let mut params: Vec<(Var, Atom)> = Vec::new();
        for first in e {
            let ty = self.b.ty(*first);
            params.push((self.b.fresh(ty, "x"), *first));
        }
        let x: Vec<Atom> = params.iter().map(|(x, _)| Atom::from(*x)).collect();
        self.b.open();
        let place = self.place_of_step(from, counter, n);
        let element = self.element(p, &[ix, &[place]].concat());
        let next = self.apply(f, [x.clone(), element].concat());
        let kept = if from == Direction::Left { x } else { next.clone() };
        let body = self.b.close([next, kept].concat());
        let form = LoopForm::For { i, n };
        let collect = params.len();
        let of_row = Loop { params, form, body, collect, attrs: LoopAttrs::default() };
        let mut last: Vec<Atom> =
            self.b.emit_all(Core::Loop(of_row), "states").into_iter().map(Atom::from).collect();
        let kept = last.split_off(collect);
        Left { kept, last }
    }

    fn read(&mut self, arrays: &[Atom], ix: &[Atom]) -> Vec<Atom> {
        arrays.iter().map(|a| self.b.index(*a, ix)).collect()
    }

    /// The place of the element that step `i` takes, and of what it keeps.
    fn place_of_step(&mut self, from: Direction, i: Atom, n: Atom) -> Atom {
        if from == Direction::Left {
            return i;
        }
        let last = self.op2(Op::Sub, INDEX, n, Atom::i64(1));
        let place = self.op2(Op::Sub, INDEX, last, i);
        self.facts.is_below(place, n);
        place
    }
}
