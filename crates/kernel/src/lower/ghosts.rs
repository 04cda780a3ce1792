//! What is said of values ([`crate::ghosts`]): nothing, unless it was asked for.
//!
//! One call for each place where a value gets a name, is looked up, is used as a whole, or is made; each says what the program does there, whatever was decided
//! about memory.

use super::rep::{ArrayRep, Rep};
use super::{Lower, Val};
use crate::ghosts::{Dimensions, Ghost, Ghosts};
use crate::ir::{FunctionId, Ins, Reg, RegInfo, Ty};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::{Atom, Var};

/// What is said in a function.
pub(super) struct Notes<'p> {
    ghosts: &'p mut Ghosts,
    id: FunctionId,
    /// The pointers of variables, each with the register that it was bound by.
    bound: IdMap<Var, Vec<(Reg, Reg)>>,
}

impl<'p> Notes<'p> {
    pub(super) fn new(ghosts: &'p mut Ghosts, id: FunctionId) -> Notes<'p> {
        Notes { ghosts, id, bound: IdMap::new() }
    }
    /// The registers that are set to say something.
    pub(super) fn registers(&self) -> IdSet<Reg> {
        self.ghosts.events.get(&self.id).into_iter().flat_map(|events| events.keys().copied()).collect()
    }
}

/// A pointer of a value, and the array of which it is one; `None`: a record, which nobody writes over.
type Pointed<'a> = (Reg, Option<&'a ArrayRep>);

fn pointed<'a>(rep: &'a Rep, out: &mut Vec<Pointed<'a>>) {
    match rep {
        Rep::Scalar(_) | Rep::Acc(_) => {}
        Rep::Tuple(items) => items.iter().for_each(|item| pointed(item, out)),
        Rep::Sum(_, fields) => fields.iter().flatten().for_each(|field| pointed(field, out)),
        Rep::Array(array) => out.extend(array.pointers().map(|p| (p, Some(array)))),
        Rep::Record(_, pointers) => out.extend(pointers.iter().filter_map(|p| Some((p.as_reg()?, None)))),
    }
}

fn shape(a: &ArrayRep) -> Dimensions {
    a.dims.iter().copied().zip(a.strides.iter().copied()).collect()
}

impl Lower<'_> {
    fn note(&mut self, ghost: Ghost, pointer: Reg, hint: &str) -> Reg {
        let to = self.regs.push(RegInfo::new(Ty::Pointer, hint));
        self.emit(Ins::Set { to, value: pointer.into() });
        if let Some(notes) = &mut self.notes {
            notes.ghosts.add(notes.id, to, ghost);
        }
        to
    }
    fn note_each(&mut self, rep: &Rep, event: impl Fn(Option<&ArrayRep>) -> Option<Ghost>) {
        if self.notes.is_none() {
            return;
        }
        let mut all = Vec::new();
        pointed(rep, &mut all);
        for (pointer, array) in all {
            if let Some(ghost) = event(array) {
                self.note(ghost, pointer, "event");
            }
        }
    }
    /// From here on the variable is what its pointers show.
    pub(super) fn note_bound(&mut self, v: Var) {
        let Some(notes) = &mut self.notes else { return };
        notes.bound.remove(&v);
        let Some(rep) = self.env.get(&v).cloned() else { return };
        let hint = self.program.vars[v].hint.to_string();
        let mut all = Vec::new();
        pointed(&rep, &mut all);
        for (k, (pointer, array)) in all.into_iter().enumerate() {
            let Some(notes) = &mut self.notes else { return };
            let name = notes.ghosts.names.len() as u32;
            notes.ghosts.names.push(format!("`{hint}`, pointer {k}"));
            let to = self.note(Ghost::Bind { name, shape: array.map(shape) }, pointer, &hint);
            if let Some(notes) = &mut self.notes {
                notes.bound.entry(v).or_default().push((pointer, to));
            }
        }
    }
    /// What is loaded through the pointers of the variable from here on is loaded for it.
    pub(super) fn note_read(&mut self, v: Var) {
        let Some(notes) = &self.notes else { return };
        for (pointer, of) in notes.bound.get(&v).cloned().unwrap_or_default() {
            self.note(Ghost::Read { of }, pointer, "event");
        }
    }
    /// All elements of the value are used as they are now.
    pub(super) fn note_used(&mut self, rep: &Rep) {
        self.note_each(rep, |array| Some(Ghost::Check { shape: shape(array?) }));
    }
    /// Values are still what they were, after something was lowered that must not write over them.
    pub(super) fn note_kept(&mut self, values: &[Atom]) {
        values.iter().for_each(|a| drop(self.whole(*a)));
    }
    /// The memory of the value is nobody's from here on: it holds, or is to hold, what has just been made.
    pub(super) fn note_made(&mut self, rep: &Rep) {
        self.note_each(rep, |_| Some(Ghost::Own));
    }
    /// A value that has just been made.
    pub(super) fn made(&mut self, val: Val) -> Val {
        self.note_made(&val.rep);
        val
    }
    /// What an atom is, to be used as a whole, or later: after others were looked up that may lie in the same memory.
    pub(super) fn whole(&mut self, a: Atom) -> Val {
        let val = self.val(a);
        self.note_used(&val.rep);
        val
    }
    pub(super) fn whole_array(&mut self, a: Atom) -> ArrayRep {
        let array = self.array(a);
        if self.notes.is_some() {
            self.note_used(&Rep::Array(array.clone()));
        }
        array
    }
    /// An array of this form has just been made, or is being made.
    pub(super) fn note_made_array(&mut self, array: &ArrayRep) {
        if self.notes.is_some() {
            self.note_made(&Rep::Array(array.clone()));
        }
    }
}
