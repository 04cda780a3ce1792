//! The rewriting: locations instead of arrays where branches and loops meet.
//!
//! A location is a value of a sum type of its class: an alternative for each owner and form, with the numbers of the form as payload.
//!
//! ```text
//! loop (s, v = v0) ..  body in (s', r)      =>   loop (s, l = L(v0), S..) ..  v = array l; body' in (s', L(r), S'..);  y = array l'
//! y = if c then b1 in r1 else b2 in r2      =>   l, S.. = if c then b1' in L(r1), S1.. else b2' in L(r2), S2..;        y = array l
//! array l = match l { root w -> w | part of w, i.. -> w[i..] | slot k -> S_k }
//! ```
//!
//! [`made`] is about what is made and overwritten, [`returned`] about what functions return. The slots are ordinary loop states, so that their cotangents are carried as dense
//! arrays in place, and are made anew, as zeros, where a new array took the slot: whoever made that pays for it.
//!
//! One piece of more than 500 lines: every construct changes the same four things, what is bound, where it lies, which slots there are, and
//! how many are needed.

mod lend;
mod made;
mod returned;

use super::flow::{Def, Flow, Merge, Place};
use super::forms::Form;
use super::places::{Class, Owner, Spot};
use super::results::Places;
use super::{Wanted, nothing};
use pullback_base::index::IdSet;
use pullback_core::rename::{Subst, substitute_body};
use pullback_core::traverse::free_vars;
use pullback_core::{Atom, Body, Builder, Exp, Lam, Loop, LoopForm, Soac, Stm, Type, Var, Variant, View};
use pullback_prim::Op;
use returned::Returned;
use std::collections::{BTreeMap, BTreeSet};

/// Where an array lies, as far as that is known.
#[derive(Clone, Debug)]
enum Location {
    /// There, cut out like this.
    At(Whose, Form, Vec<Atom>),
    /// Where this value says, which is one of these alternatives.
    Said(Atom, Vec<usize>),
}

/// One alternative of the locations of a class.
#[derive(Clone, Debug, PartialEq)]
struct Alternative {
    owner: Whose,
    form: Form,
}

#[derive(Clone, Debug, PartialEq)]
enum Whose {
    Root(Var),
    /// Of this family, this slot.
    Slot(usize, usize),
}

/// How many slots a class needs for arrays of each type.
pub(super) type Needed = BTreeMap<Type, usize>;

/// The slots for arrays of one type.
#[derive(Clone, Debug)]
struct Family {
    ty: Type,
    count: usize,
}

/// A class with its slots.
struct Layout {
    class: Class,
    families: Vec<Family>,
    alternatives: Vec<Alternative>,
    ty: Type,
}

impl Layout {
    fn new(class: Class, counts: &Needed) -> Layout {
        let spots: BTreeSet<&Spot> = class.spots.values().flatten().collect();
        let mut families: Vec<Family> = Vec::new();
        for (owner, _) in &spots {
            if let Owner::Made(ty) = owner
                && !families.iter().any(|f| f.ty == *ty)
            {
                families.push(Family { ty: ty.clone(), count: counts.get(ty).copied().unwrap_or(1) });
            }
        }
        let mut alternatives = Vec::new();
        for (owner, form) in spots {
            match owner {
                Owner::Root(v) => {
                    alternatives.push(Alternative { owner: Whose::Root(*v), form: form.clone() });
                }
                Owner::Made(ty) => {
                    let Some(g) = families.iter().position(|f| f.ty == *ty) else { continue };
                    for k in 0..families[g].count {
                        alternatives.push(Alternative { owner: Whose::Slot(g, k), form: form.clone() });
                    }
                }
            }
        }
        let variants = alternatives.iter().enumerate().map(|(k, a)| {
            let what = match a.owner {
                Whose::Root(_) => "root",
                Whose::Slot(..) => "slot",
            };
            let name = format!("{what}{k}");
            Variant { name: name.as_str().into(), fields: vec![Type::I64; a.form.holes()] }
        });
        let ty = Type::Sum(variants.collect());
        Layout { class, families, alternatives, ty }
    }
    fn number(&self, owner: &Whose, form: &Form) -> Option<usize> {
        self.alternatives.iter().position(|a| a.owner == *owner && a.form == *form)
    }
    /// Whether an array with these spots may lie in an alternative.
    fn may_be(&self, spots: &BTreeSet<Spot>, k: usize) -> bool {
        let Alternative { owner, form } = &self.alternatives[k];
        spots.iter().any(|(o, f)| {
            f == form
                && match (owner, o) {
                    (Whose::Root(v), Owner::Root(w)) => v == w,
                    (Whose::Slot(g, _), Owner::Made(ty)) => self.families[*g].ty == *ty,
                    _ => false,
                }
        })
    }
}

/// What is still to come in a body that is being rewritten.
struct Ahead<'a> {
    stms: &'a [Stm],
    at: usize,
    result: Vec<Atom>,
    place: Place,
}

/// The rewriting of one lambda.
pub(super) struct Rewriter<'a, 'p> {
    b: Builder<'p>,
    flow: &'a Flow<'a>,
    layouts: Vec<Layout>,
    locations: BTreeMap<(usize, Var), Location>,
    /// Per class and family the arrays in the slots.
    slots: Vec<Vec<Vec<Atom>>>,
    ahead: Vec<Ahead<'a>>,
    /// Per class and type, how many slots were needed.
    needed: Vec<Needed>,
    /// The variables that are slots.
    all_slots: Vec<Var>,
    /// What is bound already.
    bound: IdSet<Var>,
    /// Arguments of the next call that are kept: the class that knows where, and what they are without it.
    kept: Vec<(usize, Var, Atom)>,
}

/// A rewritten lambda.
pub(super) struct Rewritten {
    pub(super) lam: Lam,
    /// How many slots the classes need for arrays of each type.
    pub(super) needed: Vec<Needed>,
    /// The variables that are slots.
    pub(super) slots: Vec<Var>,
}

/// A state of a loop, and what it is first.
type State = (Var, Atom);

/// A rewritten body before its last results are known: the body, and the slots at its end.
type Arm = (Body, Vec<Vec<Vec<Atom>>>);

impl<'a, 'p> Rewriter<'a, 'p> {
    pub(super) fn new(b: Builder<'p>, flow: &'a Flow<'a>, classes: Vec<Class>, counts: &[Needed]) -> Self {
        let none = Needed::new();
        let layouts: Vec<Layout> = classes
            .into_iter()
            .enumerate()
            .map(|(k, class)| Layout::new(class, counts.get(k).unwrap_or(&none)))
            .collect();
        let slots = layouts.iter().map(|l| vec![Vec::new(); l.families.len()]).collect();
        let needed = vec![Needed::new(); layouts.len()];
        Rewriter {
            b,
            flow,
            layouts,
            locations: BTreeMap::new(),
            slots,
            ahead: Vec::new(),
            needed,
            all_slots: Vec::new(),
            bound: IdSet::new(),
            kept: Vec::new(),
        }
    }

    /// Rewrites the whole lambda; some of its results become locations, with the arrays beside them after all results.
    pub(super) fn lambda(mut self, lam: &'a Lam, wanted: &Wanted<'_>) -> Rewritten {
        let named = lam.body.result.iter().zip(wanted.results).enumerate();
        let named: Vec<(usize, Atom, &Places)> =
            named.filter_map(|(k, (&a, places))| Some((k, a, places.as_ref()?))).collect();
        self.enter(&lam.body, None, &lam.params, named.iter().map(|(_, a, _)| *a).collect());
        self.stms(&lam.body.stms);
        let mut result = lam.body.result.clone();
        for (k, a, places) in named {
            let beside = places.beside(k).into_iter().map(|j| (j, lam.body.result[j])).collect();
            let (params, written) = (&lam.params[..], wanted.written);
            let to = Returned { result: k, places, params, written, earlier: beside };
            let out = self.returned(a, &to);
            result[k] = out[0];
            result.extend(&out[1..]);
        }
        self.ahead.pop();
        let lam = Lam { params: lam.params.clone(), body: self.b.close(result) };
        Rewritten { lam, needed: self.needed, slots: self.all_slots }
    }

    /// Rewrites a body. `located`: results that become locations, each of a class. Slots are added to the results by the caller.
    fn block(&mut self, body: &'a Body, place: Place, given: &[Var], located: &[(usize, usize)]) -> Arm {
        self.enter(body, place, given, located.iter().map(|(k, _)| body.result[*k]).collect());
        let arm = self.rest_of_block(body, located);
        self.ahead.pop();
        arm
    }
    /// Starts on a body of whose results some are asked for their locations.
    fn enter(&mut self, body: &'a Body, place: Place, given: &[Var], result: Vec<Atom>) {
        self.b.open();
        self.ahead.push(Ahead { stms: &body.stms, at: 0, result, place });
        self.empty_slots(place);
        self.put_all(given);
    }
    fn stms(&mut self, stms: &'a [Stm]) {
        for (k, stm) in stms.iter().enumerate() {
            if let Some(here) = self.ahead.last_mut() {
                here.at = k + 1;
            }
            self.stm(stm);
        }
    }
    fn rest_of_block(&mut self, body: &'a Body, located: &[(usize, usize)]) -> Arm {
        self.stms(&body.stms);
        let mut result = body.result.clone();
        for &(k, c) in located {
            let l = self.location(c, body.result[k]);
            result[k] = self.said(c, &l);
        }
        (self.b.close(result), self.slots.clone())
    }

    /// The slots of the classes that are about this body are empty at its start.
    fn empty_slots(&mut self, place: Place) {
        for c in 0..self.layouts.len() {
            if self.layouts[c].class.home != place {
                continue;
            }
            for g in 0..self.layouts[c].families.len() {
                let Family { ty, count } = self.layouts[c].families[g].clone();
                self.slots[c][g] = (0..count).map(|_| nothing(&mut self.b, &ty)).collect();
            }
        }
    }
    fn stm(&mut self, stm: &'a Stm) {
        let origin = self.b.program.vars[stm.pat[0]].origin.clone();
        self.b.origin = origin;
        self.b.origin.rule = Some(("fast_chad.locate", stm.pat.first().copied()));
        if self.lend(stm.pat[0]) {
            return;
        }
        match &stm.exp {
            Exp::Call(_, args) => {
                self.find_kept();
                self.forget(stm, (args, &[]));
                self.other(stm, stm.exp.clone());
            }
            Exp::If(..) | Exp::Match(..) | Exp::Marked(..) => self.branch(stm),
            Exp::Loop(l) => self.loop_(stm, l),
            exp => {
                let [used, beside] = self.overwritten(stm).map(|all| all.into_iter().map(|(_, of)| of));
                self.forget(stm, (&used.collect::<Vec<_>>(), &beside.collect::<Vec<_>>()));
                let exp = self.functions(stm.pat[0], exp);
                self.other(stm, exp);
            }
        }
    }

    /// An operation with its functions rewritten: they know what is around, and nothing comes out of them. So what they put into slots
    /// lies there as long as they run.
    fn functions(&mut self, first: Var, exp: &'a Exp) -> Exp {
        let mut bodies = Vec::new();
        for (k, scope) in exp.bodies().into_iter().enumerate() {
            let given: Vec<Var> = scope.binds.iter().collect();
            let around = self.slots.clone();
            bodies.push(self.block(scope.body, Some((first, k)), &given, &[]).0);
            self.slots = around;
        }
        let mut exp = exp.clone();
        for (scope, body) in exp.bodies_mut().into_iter().zip(bodies) {
            *scope.body = body;
        }
        exp
    }

    /// The class of a merge.
    fn class_of(&self, m: Merge) -> Option<usize> {
        self.layouts.iter().position(|l| l.class.merges.contains(&m))
    }
    fn located(&self, stm: Var, count: usize) -> Vec<(usize, usize)> {
        (0..count).filter_map(|k| Some((k, self.class_of((stm, k))?))).collect()
    }

    // --- branches ---

    fn branch(&mut self, stm: &'a Stm) {
        let first = stm.pat[0];
        let located = self.located(first, stm.pat.len());
        let before = self.slots.clone();
        let mut arms = Vec::new();
        for (k, scope) in stm.exp.bodies().into_iter().enumerate() {
            self.slots.clone_from(&before);
            let given: Vec<Var> = scope.binds.iter().collect();
            arms.push(self.block(scope.body, Some((first, k)), &given, &located));
        }
        self.slots = before;
        let changed = self.changed(&mut arms);
        let mut exp = stm.exp.clone();
        for (scope, (body, _)) in exp.bodies_mut().into_iter().zip(arms) {
            *scope.body = body;
        }
        let mut pat = stm.pat.clone();
        for &(k, c) in &located {
            pat[k] = self.b.fresh(self.layouts[c].ty.clone(), "at");
        }
        let pat = self.slots_after(pat, &changed);
        self.b.emit_to(pat.clone(), exp);
        for &(k, c) in &located {
            self.bind(c, stm.pat[k], pat[k]);
        }
        self.put_all(&stm.pat);
    }
    /// The slots that some arm of a branch changes: they become results of all of them.
    fn changed(&self, arms: &mut [Arm]) -> Vec<(usize, usize, usize)> {
        let before = &self.slots;
        let differs = |&(c, g, k): &(usize, usize, usize)| {
            arms.iter().any(|(_, slots)| slots[c][g].get(k) != before[c][g].get(k))
        };
        let changed: Vec<(usize, usize, usize)> = slot_numbers(before).filter(differs).collect();
        for (body, slots) in arms {
            body.result.extend(changed.iter().map(|&(c, g, k)| slots[c][g][k]));
        }
        changed
    }
    /// What a branch binds, with the slots that leave it.
    fn slots_after(&mut self, mut pat: Vec<Var>, changed: &[(usize, usize, usize)]) -> Vec<Var> {
        for &(c, g, k) in changed {
            let slot = self.fresh_slot(c, g);
            pat.push(slot);
            self.slots[c][g][k] = slot.into();
        }
        pat
    }
    fn fresh_slot(&mut self, c: usize, g: usize) -> Var {
        let slot = self.b.fresh(self.layouts[c].families[g].ty.clone(), "slot");
        self.all_slots.push(slot);
        slot
    }
    /// The variable is the array where `at` says.
    fn bind(&mut self, c: usize, v: Var, at: Var) {
        let possible = self.possible(c, v);
        let array = self.array_at(c, at.into(), &possible);
        self.b.emit_to(vec![v], Exp::Atom(array));
        self.locations.insert((c, v), Location::Said(at.into(), possible));
    }
    /// Where a variable may lie.
    fn possible(&self, c: usize, v: Var) -> Vec<usize> {
        let layout = &self.layouts[c];
        let Some(spots) = layout.class.spots.get(&v) else { return Vec::new() };
        (0..layout.alternatives.len()).filter(|k| layout.may_be(spots, *k)).collect()
    }

    // --- loops ---

    fn loop_(&mut self, stm: &'a Stm, l: &'a Loop) {
        let first = stm.pat[0];
        let located = self.located(first, l.params.len());
        let place = self.flow.body_of(first);
        let carried: Vec<(usize, usize, usize)> = slot_numbers(&self.slots)
            .filter(|&(c, ..)| {
                let class = &self.layouts[c].class;
                class.changing.contains(&place) && class.home != place
            })
            .collect();
        let mut params = l.params.clone();
        let mut pat = stm.pat[..l.params.len()].to_vec();
        let inits: Vec<Location> = located.iter().map(|&(j, c)| self.location(c, l.params[j].1)).collect();
        for (&(j, c), init) in located.iter().zip(&inits) {
            let at = self.b.fresh(self.layouts[c].ty.clone(), "at");
            params[j] = (at, self.said(c, init));
            pat[j] = self.b.fresh(self.layouts[c].ty.clone(), "at");
        }
        let outer = self.slots.clone();
        let mut after = outer.clone();
        for &(c, g, k) in &carried {
            let (inside, last) = (self.fresh_slot(c, g), self.fresh_slot(c, g));
            params.push((inside, self.slots[c][g][k]));
            pat.push(last);
            self.slots[c][g][k] = inside.into();
            after[c][g][k] = last.into();
        }
        let form = match &l.form {
            LoopForm::For { .. } => l.form.clone(),
            LoopForm::While(condition) => {
                LoopForm::While(self.condition((first, 0), condition, (&l.params, &params), &located))
            }
        };
        let body = self.loop_body(l, place, (&params, &located), &carried);
        self.slots = after;
        pat.extend(&stm.pat[l.params.len()..]);
        let states = pat.clone();
        self.b
            .emit_to(pat, Exp::Loop(Loop { params, form, body, collect: l.collect, attrs: l.attrs.clone() }));
        for (j, c) in located {
            self.bind(c, stm.pat[j], states[j]);
        }
        self.put_all(&stm.pat);
    }

    fn loop_body(
        &mut self,
        l: &'a Loop,
        place: Place,
        (params, located): (&[State], &[(usize, usize)]),
        carried: &[(usize, usize, usize)],
    ) -> Body {
        self.b.open();
        let result = located.iter().map(|(j, _)| l.body.result[*j]).collect();
        self.ahead.push(Ahead { stms: &l.body.stms, at: 0, result, place });
        self.empty_slots(place);
        for &(j, c) in located {
            self.bind(c, l.params[j].0, params[j].0);
        }
        let states: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        self.put_all(&states);
        let (mut body, slots) = self.rest_of_block(&l.body, located);
        self.ahead.pop();
        let stacked = body.result.split_off(l.params.len());
        body.result.extend(carried.iter().map(|&(c, g, k)| slots[c][g][k]));
        body.result.extend(stacked);
        body
    }

    /// The condition of a loop, which sees locations where it saw arrays.
    fn condition(
        &mut self,
        at: (Var, usize),
        condition: &'a Body,
        (old, new): (&[State], &[State]),
        located: &[(usize, usize)],
    ) -> Body {
        let used = free_vars(condition);
        self.b.open();
        let mut subst = Subst::new();
        for &(j, c) in located.iter().filter(|(j, _)| used.contains(&old[*j].0)) {
            let possible = self.possible(c, old[j].0);
            let array = self.array_at(c, new[j].0.into(), &possible);
            subst.insert(old[j].0, array);
        }
        let before = self.b.close(Vec::new()).stms;
        let around = self.slots.clone();
        let (mut body, _) = self.block(condition, Some(at), &[], &[]);
        self.slots = around;
        substitute_body(&mut body, &subst);
        body.stms.splice(0..0, before);
        body
    }

    /// The slots of a class for arrays of a type.
    fn family(&self, c: usize, ty: &Type) -> Option<usize> {
        self.layouts[c].families.iter().position(|f| f.ty == *ty)
    }

    // --- locations ---

    /// Where an array lies.
    fn location(&mut self, c: usize, a: Atom) -> Location {
        let (whole, views) = self.whole_and_views(Some(c), a);
        self.part(c, whole, &views)
    }
    /// Of what an array is a name, as far as that is known to a class.
    fn whole_and_views(&self, c: Option<usize>, a: Atom) -> (Location, Vec<View>) {
        let mut v = a.var().unwrap_or_else(|| panic!("an array is a variable"));
        let mut views = Vec::new();
        let whole = loop {
            if let Some(known) = c.and_then(|c| self.locations.get(&(c, v))) {
                break known.clone();
            }
            match self.flow.names.get(&v) {
                Some((Atom::Var(of), view)) => {
                    views.extend(view.clone());
                    v = *of;
                }
                _ => {
                    let form = Form::whole(self.b.program.vars[v].ty.rank());
                    break Location::At(Whose::Root(v), form, Vec::new());
                }
            }
        };
        views.reverse();
        (whole, views)
    }

    /// Where a part of what lies somewhere lies.
    fn part(&mut self, c: usize, whole: Location, views: &[View]) -> Location {
        match whole {
            whole if views.is_empty() => whole,
            Location::At(owner, form, holes) => {
                let part = composed(&mut self.b, form, holes, views);
                let (form, holes) =
                    part.unwrap_or_else(|| panic!("a chain of views that was looked at before"));
                Location::At(owner, form, holes)
            }
            Location::Said(at, possible) => {
                let ty = self.layouts[c].ty.clone();
                let mut parts = Vec::new();
                let out = self.arms(c, at, |s, k, holes| {
                    // Where it never lies, anything will do.
                    let Alternative { owner, form } = s.layouts[c].alternatives[k].clone();
                    let part = possible.contains(&k).then(|| composed(&mut s.b, form, holes.to_vec(), views));
                    let known = part
                        .flatten()
                        .and_then(|(form, holes)| Some((s.layouts[c].number(&owner, &form)?, holes)));
                    let Some((k, holes)) = known else { return vec![at] };
                    parts.push(k);
                    vec![s.b.emit(Exp::Inject(ty.clone(), k, holes), "at")]
                });
                Location::Said(out[0], parts)
            }
        }
    }

    /// The location as a value.
    fn said(&mut self, c: usize, location: &Location) -> Atom {
        match location {
            Location::Said(at, _) => *at,
            Location::At(owner, form, holes) => {
                let layout = &self.layouts[c];
                let known = layout.number(owner, form);
                let (k, holes) = match known {
                    Some(k) => (k, holes.clone()),
                    None => (0, vec![Atom::i64(0); layout.alternatives[0].form.holes()]),
                };
                let ty = layout.ty.clone();
                self.b.emit(Exp::Inject(ty, k, holes), "at")
            }
        }
    }

    /// A match on a location.
    fn arms(
        &mut self,
        c: usize,
        at: Atom,
        mut arm: impl FnMut(&mut Self, usize, &[Atom]) -> Vec<Atom>,
    ) -> Vec<Atom> {
        let mut lams = Vec::new();
        for k in 0..self.layouts[c].alternatives.len() {
            let holes = self.layouts[c].alternatives[k].form.holes();
            let params: Vec<Var> = (0..holes).map(|_| self.b.fresh(Type::I64, "i")).collect();
            self.b.open();
            let atoms: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
            let result = arm(self, k, &atoms);
            lams.push(Lam { params, body: self.b.close(result) });
        }
        let out = self.b.emit_all(Exp::Match(at, lams), "found");
        out.into_iter().map(Atom::Var).collect()
    }

    /// The array in one alternative.
    fn cut(&mut self, c: usize, k: usize, holes: &[Atom]) -> Atom {
        let Alternative { owner, form } = self.layouts[c].alternatives[k].clone();
        let owner = self.owner(c, &owner);
        form.cut(&mut self.b, owner, holes)
    }
    fn owner(&self, c: usize, owner: &Whose) -> Atom {
        match *owner {
            Whose::Root(v) => v.into(),
            Whose::Slot(g, k) => self.slots[c][g][k],
        }
    }

    /// The array where `at` says, which is one of these places.
    fn array_at(&mut self, c: usize, at: Atom, possible: &[usize]) -> Atom {
        // Nothing to choose.
        if let [k] = possible[..]
            && self.layouts[c].alternatives[k].form.holes() == 0
        {
            return self.cut(c, k, &[]);
        }
        let out = self.arms(c, at, |s, k, found| {
            let (k, found) = s.or_anywhere(c, possible, (k, found));
            vec![s.cut(c, k, &found)]
        });
        out[0]
    }
    /// A place, if it is possible; else, since the array never lies there, any that is.
    fn or_anywhere(&self, c: usize, possible: &[usize], (k, holes): (usize, &[Atom])) -> (usize, Vec<Atom>) {
        match possible {
            [first, ..] if !possible.contains(&k) => {
                (*first, vec![Atom::i64(0); self.layouts[c].alternatives[*first].form.holes()])
            }
            _ => (k, holes.to_vec()),
        }
    }

    /// The slot of a family in which an array lies in some of the forms, -1 if in none; `None` if that is known.
    fn slot_number(
        &mut self,
        c: usize,
        g: usize,
        location: &Location,
        forms: &dyn Fn(&Form) -> bool,
    ) -> Option<Atom> {
        let of = |owner: &Whose, form: &Form| match owner {
            Whose::Slot(family, slot) if *family == g && forms(form) => Some(*slot as i64),
            Whose::Slot(..) | Whose::Root(_) => None,
        };
        let number = |s: &Self, k: usize| {
            let Alternative { owner, form } = &s.layouts[c].alternatives[k];
            of(owner, form)
        };
        match location {
            Location::At(owner, form, _) => of(owner, form).map(Atom::i64),
            Location::Said(at, possible) => {
                possible.iter().find_map(|k| number(self, *k))?;
                let out = self.arms(c, *at, |s, k, _| vec![Atom::i64(number(s, k).unwrap_or(-1))]);
                Some(out[0])
            }
        }
    }
    /// The slot that the location of an array says, if it may say one.
    fn slot_said(&mut self, c: usize, g: usize, v: Var) -> Option<Atom> {
        let location = self.locations.get(&(c, v))?.clone();
        self.slot_number(c, g, &location, &|_| true)
    }

    /// The arrays whose locations may be asked for later, but for that of `made`, which is made here.
    fn live(&self, c: usize, made: Var) -> Vec<Var> {
        let mut out = IdSet::new();
        let class = &self.layouts[c].class;
        for here in self.ahead.iter().rev() {
            let mut atoms = here.result.clone();
            here.stms[here.at..].iter().for_each(|stm| self.asked(c, stm, &mut atoms));
            let mut found = self.bases(c, &atoms);
            if self.flow.repeated(here.place) == Some(here.place) {
                // The next iteration, or call, asks again for what is from outside.
                let mut again = Vec::new();
                here.stms.iter().for_each(|stm| self.asked(c, stm, &mut again));
                let outside = |v: &Var| !self.flow.within(self.flow.home(*v), here.place);
                found.extend(self.bases(c, &again).into_iter().filter(outside));
            }
            out.extend(found);
            if here.place == class.home {
                break;
            }
        }
        out.into_iter().filter(|v| *v != made && self.locations.contains_key(&(c, *v))).collect()
    }
    /// The variables with locations of which these are names or parts.
    fn bases(&self, c: usize, atoms: &[Atom]) -> Vec<Var> {
        let class = &self.layouts[c].class;
        let base = |a: &Atom| {
            let mut v = self.flow.array(*a)?;
            while !self.locations.contains_key(&(c, v)) && !class.events.contains(&v) {
                v = self.flow.array(self.flow.names.get(&v)?.0)?;
            }
            Some(v)
        };
        atoms.iter().filter_map(base).collect()
    }
    /// The arrays for whose locations a statement asks.
    fn asked(&self, c: usize, stm: &Stm, out: &mut Vec<Atom>) {
        let class = &self.layouts[c].class;
        for k in 0..stm.pat.len() {
            if class.merges.contains(&(stm.pat[0], k)) {
                out.extend(self.flow.sources((stm.pat[0], k)).into_iter().map(|(a, _)| a));
            }
        }
        for &v in stm.pat.iter().filter(|v| class.events.contains(v)) {
            if let Def::Written(of) = self.flow.def(v) {
                out.push(of);
            }
            out.extend(self.flow.lends.get(&v).map(|lend| lend.of));
        }
        for scope in stm.exp.bodies() {
            scope.body.stms.iter().for_each(|stm| self.asked(c, stm, out));
        }
    }
}

fn slot_numbers(slots: &[Vec<Vec<Atom>>]) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    slots.iter().enumerate().flat_map(|(c, families)| {
        families.iter().enumerate().flat_map(move |(g, slots)| (0..slots.len()).map(move |k| (c, g, k)))
    })
}

/// The form and the holes after further views.
fn composed(b: &mut Builder<'_>, form: Form, holes: Vec<Atom>, views: &[View]) -> Option<(Form, Vec<Atom>)> {
    views.iter().try_fold((form, holes), |(form, holes), view| {
        form.compose(&holes, view, &mut |op, x, y| arithmetic(b, op, x, y))
    })
}

/// Arithmetic on indices, the trivial ones left out.
fn arithmetic(b: &mut Builder<'_>, op: Op, x: Atom, y: Atom) -> Atom {
    match (op, x, y) {
        (Op::Mul, x, one) | (Op::Mul, one, x) if one == Atom::i64(1) => x,
        (Op::Add, x, zero) | (Op::Add, zero, x) if zero == Atom::i64(0) => x,
        (Op::Mul, zero, _) | (Op::Mul, _, zero) if zero == Atom::i64(0) => Atom::i64(0),
        _ => b.op2(op, x, y),
    }
}

/// Puts another array in the place of the one that result `k` overwrites.
fn replace_written(exp: &mut Exp, k: usize, by: Atom) {
    match exp {
        Exp::Update(a, ..) | Exp::UpdateSlice(a, ..) => *a = by,
        Exp::Soac(Soac::Scatter { dst, .. }) => *dst = by,
        Exp::Soac(Soac::Hist { dst, .. }) => dst[k] = by,
        Exp::WithAcc(inits, _) => inits[k] = by,
        _ => {}
    }
}
