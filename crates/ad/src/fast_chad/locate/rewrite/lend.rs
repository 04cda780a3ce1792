//! Arguments of calls that are given away if their locations say that nobody else has them, and copies of what callers keep.

use super::{Alternative, Location, Rewriter, Whose, replace_written};
use crate::fast_chad::locate::flow::{As, Lend, written};
use crate::fast_chad::locate::forms::Form;
use crate::fast_chad::locate::lend::{is_kept, is_mentioned_after, is_part};
use crate::fast_chad::locate::nothing;
use crate::fast_chad::locate::results::wholes;
use pullback_core::{Atom, Body, Exp, Stm, Var};
use pullback_prim::Op;

impl Rewriter<'_, '_> {
    /// The arguments that stand for one which may be given away, if a statement binds the first of them.
    pub(super) fn lend(&mut self, v: Var) -> bool {
        if self.bound.contains(&v) {
            return true;
        }
        let Some(lend) = self.flow.lends.get(&v) else { return false };
        self.bound.extend(lend.given.iter().copied().chain([lend.own]));
        let tracks = |c: &usize| {
            let class = &self.layouts[*c].class;
            class.events.contains(&v) && class.is_tracked(self.flow, lend.of)
        };
        let mut tracking = (0..self.layouts.len()).filter(tracks);
        let tracking = tracking.next().filter(|_| tracking.next().is_none());
        if !tracking.is_some_and(|c| self.lend_part(c, v, lend)) {
            self.give_on(v, lend);
        }
        for c in 0..self.layouts.len() {
            if self.layouts[c].class.events.contains(&v) && !self.locations.contains_key(&(c, v)) {
                let location = self.location(c, lend.of);
                self.locations.insert((c, v), location);
            }
        }
        true
    }

    /// Gives away the whole of which an argument is a part, if it lies in a slot that nobody else can name. `false`: it lies in none.
    fn lend_part(&mut self, c: usize, v: Var, lend: &Lend) -> bool {
        let location = self.location(c, lend.of);
        let mut slots = Vec::new();
        for ty in wholes(&lend.parts) {
            let is_given = |form: &Form| lend.parts.contains(&(ty.clone(), form.clone()));
            let g = self.family(c, ty);
            let slot = g.and_then(|g| self.own_slot((c, g), v, (&location, &[]), &is_given));
            slots.push(g.zip(slot));
        }
        if slots.iter().all(Option::is_none) {
            return false;
        }
        let at = self.said(c, &location);
        let mut is_own = Atom::bool(false);
        for ((ty, &given), slot) in wholes(&lend.parts).zip(&lend.given).zip(slots) {
            let mut array = nothing(&mut self.b, ty);
            if let Some((g, own_slot)) = slot {
                array = self.in_slot(c, (g, own_slot), array);
                self.empty_slot(c, (g, own_slot));
                let is_here = self.b.op2(Op::Le, Atom::i64(0), own_slot);
                is_own =
                    if is_own == Atom::bool(false) { is_here } else { self.b.op2(Op::Or, is_own, is_here) };
            }
            self.b.emit_to(vec![given], Exp::Atom(array));
        }
        self.own_part(c, (at, is_own), (&location, lend));
        let location = self.kept_at(c, v, (is_own, &location));
        self.locations.insert((c, v), location);
        self.kept.push((c, v, lend.of));
        true
    }
    /// Says which part of what is given away an argument is.
    fn own_part(&mut self, c: usize, (at, is_own): (Atom, Atom), (location, lend): (&Location, &Lend)) {
        let part = |s: &Self, k: usize, holes: &[Atom]| {
            let Alternative { owner: Whose::Slot(g, _), form } = &s.layouts[c].alternatives[k] else {
                return None;
            };
            is_part(&lend.parts, (&s.layouts[c].families[*g].ty, form), holes.to_vec())
        };
        let possible = match location {
            Location::Said(_, possible) => possible.clone(),
            Location::At(owner, form, _) => self.layouts[c].number(owner, form).into_iter().collect(),
        };
        self.b.open();
        let mut all: Vec<Exp> = possible
            .iter()
            .filter_map(|&k| {
                let holes = vec![Atom::i64(0); self.layouts[c].alternatives[k].form.holes()];
                part(self, k, &holes)
            })
            .collect();
        all.dedup();
        let there = match &all[..] {
            // Nothing to choose.
            [one @ Exp::Inject(_, _, holes)] if holes.is_empty() => self.b.emit(one.clone(), "own"),
            _ => self.arms(c, at, |s, k, holes| {
                let exp = part(s, k, holes).unwrap_or_else(|| is_kept(&lend.parts));
                vec![s.b.emit(exp, "own")]
            })[0],
        };
        let there = self.b.close(vec![there]);
        self.b.open();
        let here = self.b.emit(is_kept(&lend.parts), "own");
        let here = self.b.close(vec![here]);
        self.b.emit_to(vec![lend.own], Exp::If(is_own, there, here));
    }
    /// An argument that no class is about, or lies in no slot: it is kept, if it was not given away to this function.
    fn give_on(&mut self, v: Var, lend: &Lend) {
        let ty = self.b.ty(lend.of);
        let whole = Form::whole(ty.rank());
        let is_own = self.is_given_on(lend.of);
        for (whole, &given) in wholes(&lend.parts).zip(&lend.given) {
            let array = if is_own && *whole == ty { lend.of } else { nothing(&mut self.b, whole) };
            self.b.emit_to(vec![given], Exp::Atom(array));
        }
        let own = is_part(&lend.parts, (&ty, &whole), Vec::new()).filter(|_| is_own);
        self.b.emit_to(vec![lend.own], own.unwrap_or_else(|| is_kept(&lend.parts)));
        let kept = if is_own { nothing(&mut self.b, &ty) } else { lend.of };
        self.b.emit_to(vec![v], Exp::Atom(kept));
    }

    /// Whether an array that no class is about was given away to this function, which gives it on.
    fn is_given_on(&self, of: Atom) -> bool {
        let given = |(v, way): &(Var, As)| *way == As::default() && self.flow.given_away.contains(v);
        let Some((v, _)) = self.flow.base(of).filter(given) else { return false };
        let Some(here) = self.ahead.last() else { return false };
        // The statements that bind arguments are followed by their call.
        let call = here.stms[here.at..].iter().position(|stm| matches!(stm.exp, Exp::Call(..)));
        self.flow.repeated(here.place).is_none()
            && call.is_some_and(|k| !is_mentioned_after(self.flow, (here.place, here.at + k), v, None))
    }

    /// The arguments of a call that are kept. They are found when all that is given away has been taken: then they are no names of that.
    pub(super) fn find_kept(&mut self) {
        for (c, v, of) in std::mem::take(&mut self.kept) {
            let kept = match self.locations.get(&(c, v)).cloned() {
                Some(Location::Said(at, possible)) => self.array_at(c, at, &possible),
                _ => of,
            };
            self.b.emit_to(vec![v], Exp::Atom(kept));
        }
    }

    /// Slots of arrays that a statement uses up, and that nobody names after it, are empty before it. Else what it overwrites would be a
    /// copy, and the cotangents of the slots arrays of zeros. A slot of what it overwrites `beside` them is not empty: it takes that out itself.
    pub(super) fn forget(&mut self, stm: &Stm, (used, beside): (&[Atom], &[Atom])) {
        let is_lent = |a: &Atom| a.var().is_some_and(|v| self.flow.lends.contains_key(&v));
        for (k, &a) in used.iter().enumerate().filter(|(_, a)| !is_lent(a)) {
            let others = used.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, a)| a).chain(beside);
            let others: Vec<Atom> = others.copied().collect();
            let in_scope = |v: &Var| self.ahead.iter().any(|here| here.place == self.flow.home(*v));
            let all: Vec<Var> = self.flow.may_come_from(a).into_iter().filter(in_scope).collect();
            for v in all {
                for c in 0..self.layouts.len() {
                    let Some(location) = self.locations.get(&(c, v)).cloned() else { continue };
                    for g in 0..self.layouts[c].families.len() {
                        let slot = self.own_slot((c, g), stm.pat[0], (&location, &others), &|_| true);
                        slot.into_iter().for_each(|slot| self.empty_slot(c, (g, slot)));
                    }
                }
            }
        }
    }
    /// The arrays that a statement overwrites, with the number of the result: without the result being an event, and the others.
    pub(super) fn overwritten(&self, stm: &Stm) -> [Vec<(usize, Atom)>; 2] {
        let is_event = |v: &Var| self.layouts.iter().any(|l| l.class.events.contains(v));
        let results = stm.pat.iter().enumerate();
        let written = results.filter_map(|(k, v)| Some((is_event(v), (k, written(&stm.exp, k)?))));
        let (events, for_good): (Vec<_>, Vec<_>) = written.partition(|(is_event, _)| *is_event);
        [for_good, events].map(|all| all.into_iter().map(|(_, of)| of).collect())
    }

    /// Where an argument lies that is kept; anywhere if it is given away.
    fn kept_at(&mut self, c: usize, v: Var, (is_own, location): (Atom, &Location)) -> Location {
        let at = self.said(c, location);
        let layout = &self.layouts[c];
        let (ty, array) = (layout.ty.clone(), self.b.program.vars[v].ty.clone());
        let fits = |owner: &Whose| match owner {
            Whose::Root(w) => self.b.program.vars[*w].ty == array && self.is_bound(*w),
            Whose::Slot(g, _) => layout.families[*g].ty == array,
        };
        let whole =
            layout.alternatives.iter().enumerate().filter(|(_, a)| a.form.is_whole() && fits(&a.owner));
        let root = |a: &Whose| !matches!(a, Whose::Root(_));
        let Some((anywhere, _)) = whole.min_by_key(|(_, a)| root(&a.owner)) else { return location.clone() };
        let mut possible = match location {
            Location::Said(_, possible) => possible.clone(),
            Location::At(owner, form, _) => layout.number(owner, form).into_iter().collect(),
        };
        if !possible.contains(&anywhere) {
            possible.push(anywhere);
        }
        self.b.open();
        let there = self.b.emit(Exp::Inject(ty, anywhere, Vec::new()), "at");
        let there = self.b.close(vec![there]);
        let here = Body { stms: Vec::new(), result: vec![at] };
        Location::Said(self.b.emit(Exp::If(is_own, there, here), "at"), possible)
    }

    /// Whether a variable of the lambda is bound before the statement that is being rewritten: the places of a class are named in other bodies, too.
    fn is_bound(&self, v: Var) -> bool {
        let home = self.flow.home(v);
        let Some(here) = self.ahead.iter().find(|here| here.place == home) else { return false };
        here.stms.iter().skip(here.at.saturating_sub(1)).all(|stm| !stm.pat.contains(&v))
    }

    /// What is overwritten, of which a copy is if a caller keeps it; `None`: no caller does. (An array in a slot is copied by whoever
    /// overwrites it, if it must be.)
    pub(super) fn copied_if_kept(&mut self, c: usize, of: Atom, location: &Location) -> Option<Atom> {
        if !self.may_be_kept(of) {
            return None;
        }
        let is_kept = |s: &Self, owner: &Whose| matches!(owner, Whose::Root(v) if s.flow.kept.contains(v));
        match location {
            Location::At(owner, ..) => is_kept(self, owner).then(|| self.copy(of)),
            Location::Said(at, possible) => {
                // The locations of parts of arrays from outside need not be alternatives.
                let is_part = !self.whole_and_views(Some(c), of).1.is_empty();
                let out = self.arms(c, *at, |s, k, holes| {
                    if is_part && !possible.contains(&k) {
                        return vec![s.copy(of)];
                    }
                    let (k, holes) = s.or_anywhere(c, possible, (k, holes));
                    let array = s.cut(c, k, &holes);
                    let kept = is_kept(s, &s.layouts[c].alternatives[k].owner);
                    vec![if kept { s.copy(array) } else { array }]
                });
                Some(out[0])
            }
        }
    }
    fn may_be_kept(&self, a: Atom) -> bool {
        self.flow.terms(a, None).keys().any(|v| self.flow.kept.contains(v))
    }

    /// What is overwritten without being an event, in a function of an operation, is a copy of what a caller keeps, too.
    pub(super) fn copy_kept(&mut self, stm: &Stm, exp: &mut Exp) {
        let [for_good, _] = self.overwritten(stm);
        for (k, of) in for_good {
            if self.may_be_kept(of) {
                let copy = self.copy(of);
                replace_written(exp, k, copy);
            }
        }
    }
    fn copy(&mut self, array: Atom) -> Atom {
        let n = self.b.emit(Exp::Size(array, 0), "n");
        let all = self.b.emit(Exp::Iota(n), "all");
        self.b.emit(Exp::Gather(array, all), "copy")
    }
}
