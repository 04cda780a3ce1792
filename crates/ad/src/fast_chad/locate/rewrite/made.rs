//! What is made, or overwritten, comes to lie in a slot.
//!
//! ```text
//! f = made                 =>   f = made;  q = a slot that no location says;  S_q := f;  L(f) = slot q
//! y = v with ..            =>   u = if L(v) is slot k, and no other location says so, then take S_k (S_k := empty) else v;
//!                               y = u with ..;  S_q := y with q = k, or another slot as above;  L(y) = slot q
//! y = v with [i..] = x     =>   if L(v) may be a part, and is one of slot k or all of it, and no other location says so, then S_k := S_k with [I..] = x;  L(y) = L(v)
//!                               else as above
//! ```
//!
//! Where a statement overwrites several arrays, a slot from which one was taken is not free for another: the first comes back to it.
//! `I` are the indices in the whole of what lies at `i` in the part.

use super::{Alternative, Arm, Location, Rewriter, Whose, arithmetic, replace_written};
use crate::fast_chad::locate::flow::{Def, written};
use crate::fast_chad::locate::forms::Form;
use crate::fast_chad::locate::nothing;
use pullback_core::{Atom, Body, Check, Exp, Stm, Var};
use pullback_prim::Op;
use std::collections::BTreeSet;

impl<'a> Rewriter<'a, '_> {
    pub(super) fn other(&mut self, stm: &'a Stm, mut exp: Exp) {
        if self.overwrite_part(stm) {
            return;
        }
        self.copy_kept(stm, &mut exp);
        let mut puts = Vec::new();
        for c in 0..self.layouts.len() {
            for (k, &v) in stm.pat.iter().enumerate() {
                if self.layouts[c].class.events.contains(&v) {
                    let own = self.take(c, stm, k, &mut exp);
                    puts.push((c, v, own));
                }
            }
        }
        self.b.emit_to(stm.pat.clone(), exp);
        for (at, &(c, v, own)) in puts.iter().enumerate() {
            // What the same statement overwrites comes back to where it was.
            let back = puts[at + 1..].iter().filter(|p| p.0 == c && self.flow.ty(p.1) == self.flow.ty(v));
            let back: Vec<Atom> = back.filter_map(|p| p.2).collect();
            let location = self.put(c, v, v.into(), (own, &back));
            self.locations.insert((c, v), location);
        }
    }

    /// Overwrites elements of a part of what lies in a slot there, if nobody else can name the slot; else in a copy.
    fn overwrite_part(&mut self, stm: &'a Stm) -> bool {
        let Exp::Update(of, ix, value) = &stm.exp else { return false };
        let v = stm.pat[0];
        let mut classes = (0..self.layouts.len()).filter(|c| self.layouts[*c].class.events.contains(&v));
        let (Some(c), None) = (classes.next(), classes.next()) else { return false };
        let mut parts = self.possible(c, v);
        let none_is_part =
            |s: &Self, parts: &[usize]| parts.iter().all(|k| s.layouts[c].alternatives[*k].form.is_whole());
        if none_is_part(self, &parts) {
            return false;
        }
        let location = self.location(c, *of);
        match &location {
            Location::At(owner, form, _) => {
                let lies = self.layouts[c].number(owner, form);
                parts.retain(|k| Some(*k) == lies);
            }
            Location::Said(_, possible) => parts.retain(|k| possible.contains(k)),
        }
        // Where it may be a part of a slot, it may be the whole, which is overwritten there, too. In the arm of copies each element of it
        // would cost an array of zeros: that arm's cotangents.
        if none_is_part(self, &parts) {
            return false;
        }
        let at = self.said(c, &location);
        let alone = self.named_by_nobody(c, v, at, &parts);
        let there = self.arm(|s| {
            // An index that is not in the part may be in the whole.
            let sizes = s.b.shape(*of);
            s.b.emit(Exp::Check(Check::Index(ix.len()), [&ix[..], &sizes].concat()), "inside");
            s.overwrite_there(c, (at, &parts), (ix, *value));
            at
        });
        let copy = self.arm(|s| {
            let mut exp = stm.exp.clone();
            let own = s.take(c, stm, 0, &mut exp);
            let array = s.b.emit(exp, "copy");
            let location = s.put(c, v, array, (own, &[]));
            s.said(c, &location)
        });
        let mut arms = [there, copy];
        let changed = self.changed(&mut arms);
        let [(there, _), (copy, _)] = arms;
        let at = self.b.fresh(self.layouts[c].ty.clone(), "at");
        let pat = self.slots_after(vec![at], &changed);
        self.b.emit_to(pat, Exp::If(alone, there, copy));
        self.bind(c, v, at);
        true
    }
    /// An arm of a branch that is not in the program.
    fn arm(&mut self, result: impl FnOnce(&mut Self) -> Atom) -> Arm {
        let before = self.slots.clone();
        self.b.open();
        let result = result(self);
        (self.b.close(vec![result]), std::mem::replace(&mut self.slots, before))
    }

    /// Whether `at` says one of these parts, of a slot that the location of no other array says.
    fn named_by_nobody(&mut self, c: usize, v: Var, at: Atom, parts: &[usize]) -> Atom {
        let families = 0..self.layouts[c].families.len();
        let said: Vec<Vec<Atom>> = families.map(|g| self.said_by_others(c, g, v)).collect();
        let alone = self.arms(c, at, |s, k, _| match s.layouts[c].alternatives[k].owner {
            Whose::Slot(g, slot) if parts.contains(&k) => {
                vec![s.and_none_is(Atom::bool(true), &said[g], Atom::i64(slot as i64))]
            }
            Whose::Slot(..) | Whose::Root(_) => vec![Atom::bool(false)],
        });
        alone[0]
    }
    /// Whether `own`, and none of these slots is this one.
    fn and_none_is(&mut self, mut own: Atom, said: &[Atom], number: Atom) -> Atom {
        for &other in said {
            let differs = self.b.op2(Op::Ne, other, number);
            own = self.b.op2(Op::And, own, differs);
        }
        own
    }

    /// Overwrites the slot that `at` says, which is one of these parts of slots; the part lies where it was.
    fn overwrite_there(&mut self, c: usize, (at, parts): (Atom, &[usize]), (ix, value): (&[Atom], Atom)) {
        let slot = |k: &usize| match self.layouts[c].alternatives[*k].owner {
            Whose::Slot(g, slot) => Some((g, slot)),
            Whose::Root(_) => None,
        };
        let slots: BTreeSet<(usize, usize)> = parts.iter().filter_map(slot).collect();
        let out = self.arms(c, at, |s, k, holes| {
            let Alternative { owner, form } = s.layouts[c].alternatives[k].clone();
            let mut after = Vec::new();
            for &(g, slot) in &slots {
                let before = s.slots[c][g][slot];
                let is = owner == Whose::Slot(g, slot) && parts.contains(&k);
                after.push(if is { s.update(before, (&form, holes), (ix, value)) } else { before });
            }
            after
        });
        for (&(g, slot), after) in slots.iter().zip(out) {
            self.slots[c][g][slot] = after;
        }
    }
    /// The whole with elements of a part overwritten.
    fn update(&mut self, whole: Atom, (form, holes): (&Form, &[Atom]), (ix, value): (&[Atom], Atom)) -> Atom {
        let sizes = self.b.shape(whole);
        let mut op = |op, x, y| arithmetic(&mut self.b, op, x, y);
        let there = form.indices_in_whole((holes, &sizes), ix, &mut op);
        let there = there.unwrap_or_else(|| panic!("a part that was looked at before"));
        self.b.emit(Exp::Update(whole, there, value), "slot")
    }

    /// Puts those of the variables into slots that are events of a class without being made by an operation.
    pub(super) fn put_all(&mut self, vs: &[Var]) {
        for c in 0..self.layouts.len() {
            for &v in vs {
                if self.layouts[c].class.events.contains(&v) && !self.locations.contains_key(&(c, v)) {
                    let location = self.put(c, v, v.into(), (None, &[]));
                    self.locations.insert((c, v), location);
                }
            }
        }
    }

    /// What result `k` overwrites, taken out of its slot if nobody else can name it: then the slot, else -1, is returned.
    fn take(&mut self, c: usize, stm: &Stm, k: usize, exp: &mut Exp) -> Option<Atom> {
        let v = stm.pat[k];
        let Def::Written(of) = self.flow.def(v) else { return None };
        if !self.layouts[c].class.is_tracked(self.flow, of) {
            return None;
        }
        let location = self.location(c, of);
        let beside: Vec<Atom> =
            (0..stm.pat.len()).filter(|j| *j != k).filter_map(|j| written(&stm.exp, j)).collect();
        // A part of what a slot holds is copied.
        let g = self.family(c, self.flow.ty(v));
        let own = g.and_then(|g| {
            let slot = self.own_slot((c, g), v, (&location, &beside), &Form::is_whole)?;
            Some((g, slot))
        });
        let copied = self.copied_if_kept(c, of, &location);
        let array = match own {
            Some(own) if copied.is_none() => self.in_slot(c, own, of),
            _ => copied.unwrap_or(of),
        };
        replace_written(exp, k, array);
        let (g, own_slot) = own?;
        if self.slots[c][g].len() > 1 {
            self.empty_slot(c, (g, own_slot));
        }
        Some(own_slot)
    }
    /// The slot of a family in which an array with this location lies in one of these forms, if nobody else needs it; else -1. Others need it
    /// if one of their locations says it: of an array but `v` that may be asked for later, or of one `beside`. `None`: it lies in no such slot.
    pub(super) fn own_slot(
        &mut self,
        (c, g): (usize, usize),
        v: Var,
        (location, beside): (&Location, &[Atom]),
        forms: &dyn Fn(&Form) -> bool,
    ) -> Option<Atom> {
        let number = self.slot_number(c, g, location, forms)?;
        let own = self.b.op2(Op::Le, Atom::i64(0), number);
        let mut said = self.said_by_others(c, g, v);
        for of in self.bases(c, beside) {
            said.extend(self.slot_said(c, g, of));
        }
        let own = self.and_none_is(own, &said, number);
        Some(self.b.select(own, number, Atom::i64(-1)))
    }
    /// The array in a slot, or else another one.
    pub(super) fn in_slot(&mut self, c: usize, (g, own_slot): (usize, Atom), mut array: Atom) -> Atom {
        for (k, slot) in self.slots[c][g].clone().into_iter().enumerate() {
            array = self.either(own_slot, k, (slot, array));
        }
        array
    }
    /// A slot is empty, since its array was taken.
    pub(super) fn empty_slot(&mut self, c: usize, (g, own_slot): (usize, Atom)) {
        let ty = self.layouts[c].families[g].ty.clone();
        for (k, slot) in self.slots[c][g].clone().into_iter().enumerate() {
            let here = self.b.op2(Op::Eq, own_slot, Atom::i64(k as i64));
            // Made in the arm: what is left is no name of what was taken, and has a cotangent of its own.
            self.b.open();
            let empty = nothing(&mut self.b, &ty);
            let empty = self.b.close(vec![empty]);
            let rest = Body { stms: Vec::new(), result: vec![slot] };
            self.slots[c][g][k] = self.b.emit(Exp::If(here, empty, rest), "slot");
        }
    }

    /// The slots of a family that locations of arrays but `v` say, of which some may be asked later.
    pub(super) fn said_by_others(&mut self, c: usize, g: usize, v: Var) -> Vec<Atom> {
        let others = self.live(c, v);
        others.into_iter().filter_map(|u| self.slot_said(c, g, u)).collect()
    }

    /// Puts an array, which is what `v` is, into a slot: the one out of which it was taken, or one that no location says.
    /// Those that come `back` are not free.
    fn put(&mut self, c: usize, v: Var, array: Atom, (own, back): (Option<Atom>, &[Atom])) -> Location {
        let ty = self.flow.ty(v).clone();
        let g = self.family(c, &ty).unwrap_or(0);
        let whole = Form::whole(ty.rank());
        let mut said = self.said_by_others(c, g, v);
        said.extend(back);
        let needed = self.needed[c].entry(ty).or_default();
        *needed = (*needed).max(said.len() + 1);
        let count = self.layouts[c].families[g].count;
        if count == 1 {
            self.slots[c][g][0] = array;
            return Location::At(Whose::Slot(g, 0), whole, Vec::new());
        }
        let mut free = Atom::i64(count as i64 - 1);
        for k in (0..count - 1).rev() {
            let mut used = Atom::bool(false);
            for &n in &said {
                let here = self.b.op2(Op::Eq, n, Atom::i64(k as i64));
                used = self.b.op2(Op::Or, used, here);
            }
            free = self.b.select(used, free, Atom::i64(k as i64));
        }
        let slot = match own {
            None => free,
            Some(own) => {
                let mine = self.b.op2(Op::Le, Atom::i64(0), own);
                self.b.select(mine, own, free)
            }
        };
        for k in 0..count {
            let before = self.slots[c][g][k];
            self.slots[c][g][k] = self.either(slot, k, (array, before));
        }
        let ty = self.layouts[c].ty.clone();
        let mut at = Body::default();
        for k in (0..count).rev() {
            let Some(number) = self.layouts[c].number(&Whose::Slot(g, k), &whole) else { continue };
            self.b.open();
            let here = self.b.emit(Exp::Inject(ty.clone(), number, Vec::new()), "at");
            let here = self.b.close(vec![here]);
            if k + 1 == count {
                at = here;
                continue;
            }
            self.b.open();
            let is = self.b.op2(Op::Eq, slot, Atom::i64(k as i64));
            let out = self.b.emit(Exp::If(is, here, at), "at");
            at = self.b.close(vec![out]);
        }
        at.stms.into_iter().for_each(|stm| self.b.emit_stm(stm));
        let slots = 0..count;
        let possible = slots.filter_map(|k| self.layouts[c].number(&Whose::Slot(g, k), &whole)).collect();
        Location::Said(at.result[0], possible)
    }
    /// The first array where the slot is number `k`, else the second.
    fn either(&mut self, slot: Atom, k: usize, (yes, no): (Atom, Atom)) -> Atom {
        let here = self.b.op2(Op::Eq, slot, Atom::i64(k as i64));
        let arm = |a: Atom| Body { stms: Vec::new(), result: vec![a] };
        self.b.emit(Exp::If(here, arm(yes), arm(no)), "slot")
    }
}
