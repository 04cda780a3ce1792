//! Where the arrays of a class of merges can lie: whose part they are, and how it is cut out.
//!
//! An *owner* is an array from outside of all bodies that the class is about (a root), or one that is made inside; those are kept in
//! slots as long as some location says so; so are parameters that the caller gives away. Statements inside that make or overwrite an array which comes to a merge are the *events*
//! of the class.

use super::choose::Group;
use super::flow::{Def, Flow, Merge, Place};
use super::forms::Form;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::{Atom, Exp, Type, Var};
use std::collections::BTreeSet;

/// Whose part an array is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A variable from outside.
    Root(Var),
    /// An array of this type that is made inside.
    Made(Type),
}

/// A way to lie somewhere.
pub(super) type Spot = (Owner, Form);

/// Whether a statement overwrites something at one place of the whole, if it overwrites this part of it.
fn overwrites(flow: &Flow<'_>, v: Var, (owner, form): (&Owner, &Form)) -> bool {
    let (Owner::Made(ty), Some(Exp::Update(_, ix, _))) = (owner, flow.stms.get(&v).map(|stm| &stm.exp))
    else {
        return false;
    };
    let numbers = |n: usize| vec![Atom::i64(0); n];
    let (holes, sizes) = (numbers(form.holes()), numbers(ty.rank()));
    form.indices_in_whole((&holes, &sizes), ix, &mut |_, _, _| Atom::i64(0)).is_some()
}

/// The class of a group.
pub(super) struct Class {
    pub(super) home: Place,
    pub(super) merges: BTreeSet<Merge>,
    /// Where each of its merges' variables and events may lie.
    pub(super) spots: IdMap<Var, BTreeSet<Spot>>,
    /// What is made or overwritten inside.
    pub(super) events: IdSet<Var>,
    /// The bodies with events.
    pub(super) changing: BTreeSet<Place>,
}

impl Class {
    /// The class before anything is known of its arrays.
    pub(super) fn new(Group { merges, home }: Group) -> Class {
        Class { home, merges, spots: IdMap::new(), events: IdSet::new(), changing: BTreeSet::new() }
    }
    pub(super) fn of(flow: &Flow<'_>, group: Group) -> Class {
        let mut class = Class::new(group);
        let home = class.home;
        while class.visit(flow) {}
        let places: Vec<Place> = class.events.iter().map(|v| flow.home(*v)).collect();
        for mut place in places {
            while place != home && class.changing.insert(place) {
                place = flow.parent(place);
            }
        }
        class
    }

    /// The arrays from outside whose parts its merges may be.
    pub(super) fn roots(&self) -> impl Iterator<Item = Var> + '_ {
        self.spots.values().flatten().filter_map(|(owner, _)| match owner {
            Owner::Root(v) => Some(*v),
            Owner::Made(_) => None,
        })
    }

    /// Looks at what flows into every merge; says whether that is news.
    fn visit(&mut self, flow: &Flow<'_>) -> bool {
        let mut news = false;
        for m in self.merges.clone() {
            let mut all = BTreeSet::new();
            for (a, _) in flow.sources(m) {
                all.extend(self.spots_of(flow, a));
            }
            for v in flow.variables(m) {
                news |= self.add_spots(v, all.clone());
            }
        }
        for v in self.events.clone() {
            let parts = match flow.lends.get(&v) {
                Some(lend) => self.lent_spots(flow, v, lend.of),
                None => self.overwritten_parts(flow, v),
            };
            news |= self.add_spots(v, parts);
        }
        news | self.visit_lends(flow)
    }
    /// Whether an array is given away, or a copy of it overwritten, depends on its location.
    fn visit_lends(&mut self, flow: &Flow<'_>) -> bool {
        let before = self.events.len();
        let given = flow.lends.iter().map(|(kept, lend)| (*kept, lend.of));
        let overwritten = flow.overwritings().filter(|_| !flow.kept.is_empty());
        for (v, of) in given.chain(overwritten) {
            if flow.is_array(v) && flow.can_carry(self.home, flow.home(v)) && self.is_tracked(flow, of) {
                self.spots_of(flow, v.into());
            }
        }
        self.events.len() > before
    }
    /// Where a variable may lie, too; says whether that is news.
    fn add_spots(&mut self, v: Var, spots: BTreeSet<Spot>) -> bool {
        let here = self.spots.entry(v).or_default();
        let before = here.len();
        here.extend(spots);
        here.len() > before
    }

    /// Whether a variable has a name wherever the class is about something.
    pub(super) fn is_root(&self, flow: &Flow<'_>, v: Var) -> bool {
        flow.within(self.home, flow.home(v)) && !self.is_merged(flow, v)
    }
    /// Whether it is a variable of one of the merges.
    pub(super) fn is_merged(&self, flow: &Flow<'_>, v: Var) -> bool {
        matches!(flow.def(v), Def::Merge(m) if self.merges.contains(&m))
    }

    /// Where an array may lie; what must be kept for that becomes an event.
    pub(super) fn spots_of(&mut self, flow: &Flow<'_>, a: Atom) -> BTreeSet<Spot> {
        let Some(v) = flow.array(a).filter(|v| !flow.unknown.contains(v)) else { return BTreeSet::new() };
        if self.is_merged(flow, v) || self.events.contains(&v) {
            return self.spots.get(&v).cloned().unwrap_or_default();
        }
        if let Some(lend) = flow.lends.get(&v) {
            let spots = self.lent_spots(flow, v, lend.of);
            self.events.insert(v);
            self.spots.insert(v, spots.clone());
            return spots;
        }
        if let Some((of, view)) = flow.names.get(&v) {
            let spots = self.spots_of(flow, *of);
            let Some(view) = view else { return spots };
            let part = |(owner, form): Spot| {
                let holes = vec![Atom::i64(0); form.holes()];
                Some((owner, form.compose(&holes, view, &mut |_, _, _| Atom::i64(0))?.0))
            };
            if let Some(parts) = spots.into_iter().map(part).collect() {
                return parts;
            }
        }
        let given_away = self.home.is_none() && flow.given_away.contains(&v);
        if self.is_root(flow, v) && !given_away {
            return BTreeSet::from([(Owner::Root(v), Form::whole(flow.ty(v).rank()))]);
        }
        let ty = flow.ty(v).clone();
        let mut spots = BTreeSet::from([(Owner::Made(ty.clone()), Form::whole(ty.rank()))]);
        spots.extend(self.overwritten_parts(flow, v));
        self.events.insert(v);
        self.spots.insert(v, spots.clone());
        spots
    }

    /// Where an argument lies that may be given away.
    fn lent_spots(&mut self, flow: &Flow<'_>, v: Var, of: Atom) -> BTreeSet<Spot> {
        let mut spots = self.spots_of(flow, of);
        // If the whole of which it is a part is given away, something else must stand for it.
        if spots.iter().any(|(owner, form)| matches!(owner, Owner::Made(_)) && !form.is_whole()) {
            let ty = flow.ty(v).clone();
            let whole = Form::whole(ty.rank());
            spots.insert((Owner::Made(ty), whole));
        }
        spots
    }

    /// The parts of slots that an event may overwrite where they are. What else it overwrites is a copy, or a whole slot.
    fn overwritten_parts(&mut self, flow: &Flow<'_>, v: Var) -> BTreeSet<Spot> {
        // The location of what is overwritten says whether that may be done in place.
        let mut spots = self.parts_of_made(flow, v);
        spots.retain(|(owner, form)| overwrites(flow, v, (owner, form)));
        spots
    }
    /// The events that may overwrite parts of slots, but not where they are: several elements at once, rows that are none of the slot.
    pub(super) fn wide(&mut self, flow: &Flow<'_>) -> Vec<Var> {
        let mut events: Vec<Var> = self.events.iter().copied().collect();
        events.retain(|&v| {
            let writes_many = match flow.stms.get(&v).map(|stm| &stm.exp) {
                Some(Exp::Update(_, ix, _)) => ix.len() < flow.ty(v).rank(),
                Some(Exp::UpdateSlice(..) | Exp::Soac(_)) => true,
                _ => false,
            };
            writes_many && self.parts_of_made(flow, v).iter().any(|(o, f)| !overwrites(flow, v, (o, f)))
        });
        events
    }
    /// The parts of slots that an event may overwrite.
    fn parts_of_made(&mut self, flow: &Flow<'_>, v: Var) -> BTreeSet<Spot> {
        let Def::Written(of) = flow.def(v) else { return BTreeSet::new() };
        if !self.is_tracked(flow, of) {
            return BTreeSet::new();
        }
        let mut spots = self.spots_of(flow, of);
        spots.retain(|(owner, form)| matches!(owner, Owner::Made(_)) && !form.is_whole());
        spots
    }

    /// Whether an array is, or comes by overwriting from, something with a location.
    pub(super) fn is_tracked(&self, flow: &Flow<'_>, a: Atom) -> bool {
        let Some((v, _)) = flow.base(a) else { return false };
        self.is_merged(flow, v)
            || self.events.contains(&v)
            || matches!(flow.def(v), Def::Written(of) if !self.is_root(flow, v) && self.is_tracked(flow, of))
    }
}
