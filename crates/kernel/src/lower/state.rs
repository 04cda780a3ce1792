//! The state of a loop: where it lives, and how the next one takes its place.
//!
//! State of a fixed shape lives in memory made before the loop; other state lives in registers. What becomes the next state is
//! copied at the end of an iteration if it was not made where it belongs, all of it at once: an array is copied before it is
//! overwritten.

use super::aliasing::Roots;
use super::rep::{ArrayRep, Rep, has_boxes, words};
use super::{Lower, Res, Val};
use crate::ir::{Ins, Operand, Reg};
use pullback_base::index::IdSet;
use pullback_core::{Atom, Type, Var};

/// A component of a loop's state.
pub(super) enum Cell {
    /// Words in registers, and where the memory lies that they point to at first.
    Words(Type, Vec<Reg>, Roots),
    /// An array of a shape that does not change, in memory of its own.
    Buffer(Type, ArrayRep, Roots),
    /// An array of a shape that does not change, in one of several places in turn: what was made so many iterations ago.
    Turns(ArrayRep, usize, Roots),
    Tuple(Vec<Cell>),
}

/// An array that is to become the value of a cell.
struct Pending {
    ty: Type,
    to: ArrayRep,
    /// The memory of the cell.
    over: Roots,
    from: ArrayRep,
    /// Where the array may lie.
    roots: Roots,
}

impl Lower<'_> {
    /// Cells that hold the first state. `fixed`: whether an array keeps its shape. `users`: what the body mentions.
    pub(super) fn cell(&mut self, init: Atom, ty: &Type, fixed: bool, users: &IdSet<Var>) -> Res<Cell> {
        let val = self.val(init);
        if let (Rep::Array(a), true) = (&val.rep, fixed) {
            let take = a.is_writable()
                && init.var().is_some_and(|v| self.owners.may_write(v, users) && !users.contains(&v));
            if take {
                self.note_used(&val.rep);
            }
            let buffer = if take { a.clone() } else { self.copied(a, ty.base())? };
            let mut roots = if take { val.roots.clone() } else { self.owners.fresh() };
            if has_boxes(ty) {
                roots.extend(val.roots);
            }
            return Ok(Cell::Buffer(ty.clone(), buffer, roots));
        }
        self.word_cell(&val.rep, ty, &val.roots)
    }
    pub(super) fn word_cell(&mut self, rep: &Rep, ty: &Type, roots: &Roots) -> Res<Cell> {
        if let (Rep::Tuple(items), Type::Tuple(types)) = (rep, ty) {
            let cells = items.iter().zip(types.iter()).map(|(i, t)| self.word_cell(i, t, roots));
            return Ok(Cell::Tuple(cells.collect::<Res<_>>()?));
        }
        let operands = self.flatten(rep, ty)?;
        let types = words(self.program, ty)?;
        let regs: Vec<Reg> =
            operands.into_iter().zip(types).map(|(x, t)| self.variable(t, "state", x)).collect();
        let words: Vec<Operand> = regs.iter().map(|r| Operand::Reg(*r)).collect();
        self.note_arrays(ty, &words, 0)?;
        Ok(Cell::Words(ty.clone(), regs, roots.clone()))
    }
    /// What the body sees of a cell. Its memory counts as made in this iteration, and used again by the next. What words point to lies,
    /// in the first iteration, where the first state does: what is collected of it keeps that memory.
    pub(super) fn seen(&mut self, cell: &Cell) -> Res<Val> {
        Ok(match cell {
            Cell::Words(ty, regs, first) => {
                let rep = self.unflatten(ty, &mut regs.iter().map(|r| Operand::Reg(*r)))?;
                let mut roots = Roots::new();
                if ty.rank() > 0 || has_boxes(ty) {
                    roots = self.owners.foreign();
                    roots.extend(first);
                }
                Val { rep, roots }
            }
            Cell::Buffer(ty, a, first) => {
                let mut roots = self.owners.state();
                if has_boxes(ty) {
                    roots.extend(self.owners.foreign());
                    roots.extend(first);
                }
                Val { rep: Rep::Array(a.clone()), roots }
            }
            Cell::Turns(places, ago, _) => {
                let first = self.first_place(places, *ago);
                Val { rep: Rep::Array(first), roots: self.owners.state() }
            }
            Cell::Tuple(cells) => {
                let items = cells.iter().map(|c| self.seen(c)).collect::<Res<Vec<Val>>>()?;
                let roots = items.iter().flat_map(|v| v.roots.clone()).collect();
                Val { rep: Rep::Tuple(items.into_iter().map(|v| v.rep).collect()), roots }
            }
        })
    }
    /// At the start of an iteration: the state is what is in its memory now.
    pub(super) fn note_state(&mut self, cell: &Cell) {
        if let Cell::Buffer(_, array, _) = cell {
            self.note_made_array(array);
        }
    }
    /// The value of a cell after so many iterations. `next`: where the states lie that iterations made.
    pub(super) fn finished(&mut self, cell: &Cell, done: Operand, next: &Roots) -> Res<Val> {
        Ok(match cell {
            Cell::Words(ty, regs, first) => {
                let rep = self.unflatten(ty, &mut regs.iter().map(|r| Operand::Reg(*r)))?;
                let arrays = ty.rank() > 0 || has_boxes(ty);
                let mut roots = Roots::new();
                if arrays {
                    roots = self.owners.foreign();
                    roots.extend(first.iter().chain(next).copied());
                }
                Val { rep, roots }
            }
            Cell::Buffer(ty, a, first) => {
                let mut roots = first.clone();
                if has_boxes(ty) {
                    roots.extend(next);
                }
                self.made(Val { rep: Rep::Array(a.clone()), roots })
            }
            Cell::Turns(places, ago, roots) => {
                let place = self.place_of(places, done, *ago);
                place.pointers().for_each(|pointer| {
                    self.in_turn.remove(&pointer);
                });
                Val { rep: Rep::Array(place), roots: roots.clone() }
            }
            Cell::Tuple(cells) => {
                let items = cells.iter().map(|c| self.finished(c, done, next)).collect::<Res<Vec<Val>>>()?;
                let roots = items.iter().flat_map(|v| v.roots.clone()).collect();
                Val { rep: Rep::Tuple(items.into_iter().map(|v| v.rep).collect()), roots }
            }
        })
    }
    /// Puts the next state into the cells, all at once.
    pub(super) fn advance(&mut self, cells: &[Cell], seen: &[Val], next: Vec<Val>) -> Res<()> {
        let mut copies = Vec::new();
        let mut sets = Vec::new();
        // What lies where it belongs is still what it was made to be when all else is done.
        let in_place = cells.iter().zip(&next).filter(|(cell, val)| lies_in(cell, &val.rep));
        let in_place: Vec<Rep> = in_place.map(|(_, val)| val.rep.clone()).collect();
        for ((cell, now), val) in cells.iter().zip(seen).zip(next) {
            self.plan(cell, &now.roots, val, &mut copies, &mut sets)?;
        }
        // First what overwrites nothing that is still to be copied; if there is none, what is read goes out of the way.
        while !copies.is_empty() {
            let reader = |k: usize| copies.iter().position(|c| !c.roots.is_disjoint(&copies[k].over));
            if let Some(k) = (0..copies.len()).find(|k| reader(*k).is_none()) {
                let Pending { to, from, .. } = copies.remove(k);
                self.copy(&to, &from)?;
            } else if let Some(k) = reader(0) {
                copies[k].from = self.copied(&copies[k].from, copies[k].ty.base())?;
                copies[k].roots = Roots::new();
            }
        }
        // A register that another one takes its value from is read before it is set.
        let written: Vec<Reg> = sets.iter().map(|(to, _)| *to).collect();
        let mut safe = Vec::new();
        for (k, (to, value)) in sets.into_iter().enumerate() {
            match value {
                Operand::Reg(r) if r == to => {}
                Operand::Reg(r) if written[..k].contains(&r) => {
                    let ty = self.regs[to].ty;
                    safe.push((to, Operand::Reg(self.reg(ty, "next")), Some(r)));
                }
                value => safe.push((to, value, None)),
            }
        }
        for (_, value, from) in &safe {
            if let (Operand::Reg(to), Some(r)) = (value, from) {
                self.emit(Ins::Set { to: *to, value: (*r).into() });
            }
        }
        for (to, value, _) in safe {
            self.emit(Ins::Set { to, value });
        }
        in_place.iter().for_each(|rep| self.note_used(rep));
        Ok(())
    }
    /// What is to be done for a cell, whose present value lies in `now`.
    fn plan(
        &mut self,
        cell: &Cell,
        now: &Roots,
        val: Val,
        copies: &mut Vec<Pending>,
        sets: &mut Vec<(Reg, Operand)>,
    ) -> Res<()> {
        match (cell, val.rep) {
            (Cell::Buffer(ty, to, _), Rep::Array(from)) => {
                if to.same_place(&from) {
                    return Ok(());
                }
                copies.push(Pending {
                    ty: ty.clone(),
                    to: to.clone(),
                    over: now.clone(),
                    from,
                    roots: val.roots,
                });
            }
            // It lies where it belongs.
            (Cell::Turns(..), _) => {}
            (Cell::Tuple(cells), Rep::Tuple(items)) => {
                for (cell, rep) in cells.iter().zip(items) {
                    self.plan(cell, now, Val { rep, roots: val.roots.clone() }, copies, sets)?;
                }
            }
            (Cell::Words(ty, regs, _), rep) => {
                let val = self.lasting(Val { rep, roots: val.roots }, ty)?;
                let operands = self.flatten(&val.rep, ty)?;
                sets.extend(regs.iter().copied().zip(operands));
            }
            _ => panic!("a state of another kind"),
        }
        Ok(())
    }
}

/// Whether the next state lies where the cell has it already.
fn lies_in(cell: &Cell, next: &Rep) -> bool {
    match (cell, next) {
        (Cell::Buffer(_, to, _), Rep::Array(from)) => to.same_place(from),
        (Cell::Turns(..), _) => true,
        _ => false,
    }
}

/// Whether the next state may point to memory of this iteration.
pub(super) fn keeps_memory(cell: &Cell) -> bool {
    match cell {
        Cell::Words(ty, ..) => ty.rank() > 0 || has_boxes(ty),
        Cell::Buffer(ty, ..) => has_boxes(ty),
        Cell::Turns(..) => false,
        Cell::Tuple(cells) => cells.iter().any(keeps_memory),
    }
}
