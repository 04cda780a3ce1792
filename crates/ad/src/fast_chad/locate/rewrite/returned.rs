//! What a function returns of an array: its location by the arguments, and the whole if it is made.
//!
//! ```text
//! result in argument v      =>   #argument v i..,  no whole
//! result in slot k          =>   #made i..,        the whole: S_k
//! the same slot as a result before   =>   #made beside that result i..,   no whole
//! ```
//!
//! An array of which two results are parts is returned once. Else its cotangent would be a sum of two whole arrays in each call.

use super::{Alternative, Location, Rewriter, Whose, composed};
use crate::fast_chad::locate::forms::Form;
use crate::fast_chad::locate::nothing;
use crate::fast_chad::locate::results::Places;
use pullback_core::{Atom, Body, Exp, Type, Var, View};
use pullback_prim::Op;

/// By what a function says where a result lies.
pub(super) struct Returned<'s> {
    pub(super) result: usize,
    pub(super) places: &'s Places,
    pub(super) params: &'s [Var],
    /// The parameters that are no places.
    pub(super) written: &'s [bool],
    /// The earlier results of which it may be a part of the same array.
    pub(super) earlier: Vec<(usize, Atom)>,
}

/// Where an earlier result lies.
struct Earlier {
    result: usize,
    /// In this array.
    root: Option<Var>,
    /// In which slot of each family.
    slots: Vec<Option<Atom>>,
}

impl Rewriter<'_, '_> {
    /// The location that a function returns, by its arguments, and the arrays beside it.
    pub(super) fn returned(&mut self, a: Atom, to: &Returned<'_>) -> Vec<Atom> {
        let ty = to.places.ty();
        // Outside of the branch, so that all its arms are names.
        let none: Vec<Atom> = to.places.wholes(to.result).map(|ty| nothing(&mut self.b, ty)).collect();
        let (class, whole, views) = self.lies(a);
        let earlier: Vec<Earlier> = to.earlier.iter().map(|&(j, e)| self.earlier(class, j, e)).collect();
        let beside = (&none[..], &earlier[..]);
        let array = self.b.ty(a);
        let as_whole = |s: &mut Self| {
            let whole = (&Form::whole(array.rank()), &[][..]);
            let out = s.made_at(to, (None, a, &array), whole, beside);
            out.unwrap_or_else(|| panic!("an array that is made is no place of the result"))
        };
        match (class, whole) {
            (Some(c), Location::Said(at, possible)) => self.arms(c, at, |s, k, holes| {
                if !possible.contains(&k) {
                    let holes = vec![Atom::i64(0); to.places.first_holes()];
                    let at = s.b.emit(Exp::Inject(ty.clone(), 0, holes), "at");
                    return std::iter::once(at).chain(none.iter().copied()).collect();
                }
                let Alternative { owner, form } = s.layouts[c].alternatives[k].clone();
                let part = composed(&mut s.b, form, holes.to_vec(), &views);
                let out = part
                    .and_then(|(form, holes)| s.returned_at(to, (class, &owner), (&form, &holes), beside));
                out.unwrap_or_else(|| as_whole(s))
            }),
            (_, Location::At(owner, form, holes)) => {
                let part = composed(&mut self.b, form, holes, &views);
                let out = part
                    .and_then(|(form, holes)| self.returned_at(to, (class, &owner), (&form, &holes), beside));
                out.unwrap_or_else(|| as_whole(self))
            }
            (None, Location::Said(..)) => as_whole(self),
        }
    }
    /// Where a result of a function lies, as far as that is known to the class that is about it.
    fn lies(&self, a: Atom) -> (Option<usize>, Location, Vec<View>) {
        let class = self.flow.merges_of(&[a]).into_iter().find_map(|m| self.class_of(m));
        let (whole, views) = self.whole_and_views(class, a);
        (class, whole, views)
    }
    /// In which slots of a class, or in which array, an earlier result lies.
    fn earlier(&mut self, c: Option<usize>, j: usize, a: Atom) -> Earlier {
        let (class, whole, _) = self.lies(a);
        let root = match &whole {
            Location::At(Whose::Root(v), ..) => Some(*v),
            Location::At(..) | Location::Said(..) => None,
        };
        let mut slots = Vec::new();
        if let Some(c) = c.filter(|_| c == class) {
            let families = 0..self.layouts[c].families.len();
            slots = families.map(|g| self.slot_number(c, g, &whole, &|_| true)).collect();
        }
        Earlier { result: j, root, slots }
    }
    /// What a function returns of an array that lies there, if that is one of its places.
    fn returned_at(
        &mut self,
        to: &Returned<'_>,
        (c, owner): (Option<usize>, &Whose),
        part: (&Form, &[Atom]),
        beside: (&[Atom], &[Earlier]),
    ) -> Option<Vec<Atom>> {
        let (whole, ty) = match (owner, c) {
            (Whose::Root(v), _) => {
                let argument = to.params.iter().position(|p| p == v).filter(|k| !to.written[*k]);
                if let Some(k) = argument {
                    let k = to.places.number(k, part.0)?;
                    let at = self.b.emit(Exp::Inject(to.places.ty(), k, part.1.to_vec()), "at");
                    return Some(std::iter::once(at).chain(beside.0.iter().copied()).collect());
                }
                ((*v).into(), self.b.program.vars[*v].ty.clone())
            }
            (&Whose::Slot(g, k), Some(c)) => (self.slots[c][g][k], self.layouts[c].families[g].ty.clone()),
            (Whose::Slot(..), None) => return None,
        };
        self.made_at(to, (Some(owner), whole, &ty), part, beside)
    }
    /// What a function returns of a part of an array that it makes, or was given: if that stands beside an earlier result, it is not returned again.
    fn made_at(
        &mut self,
        to: &Returned<'_>,
        (owner, whole, ty): (Option<&Whose>, Atom, &Type),
        (form, holes): (&Form, &[Atom]),
        (none, earlier): (&[Atom], &[Earlier]),
    ) -> Option<Vec<Atom>> {
        let say = |s: &mut Self, k: usize, whole: Option<Atom>| {
            let at = s.b.emit(Exp::Inject(to.places.ty(), k, holes.to_vec()), "at");
            let arrays = to.places.wholes(to.result).zip(none);
            let arrays = arrays.map(|(t, none)| whole.filter(|_| t == ty).unwrap_or(*none));
            std::iter::once(at).chain(arrays).collect::<Vec<Atom>>()
        };
        let own = to.places.number_of_made(to.result, ty, form)?;
        let mut out = say(self, own, Some(whole));
        // The first of them that lies there is said, since the whole stands beside that one.
        for e in earlier.iter().rev() {
            let Some(there) = to.places.number_of_made(e.result, ty, form) else { continue };
            match owner {
                Some(Whose::Root(v)) if e.root == Some(*v) => out = say(self, there, None),
                Some(&Whose::Slot(g, slot)) => {
                    let Some(&Some(number)) = e.slots.get(g) else { continue };
                    let same = self.b.op2(Op::Eq, number, Atom::i64(slot as i64));
                    self.b.open();
                    let result = say(self, there, None);
                    let there = self.b.close(result);
                    let here = Body { stms: Vec::new(), result: out };
                    let both = self.b.emit_all(Exp::If(same, there, here), "at");
                    out = both.into_iter().map(Atom::Var).collect();
                }
                Some(Whose::Root(_)) | None => {}
            }
        }
        Some(out)
    }
}
