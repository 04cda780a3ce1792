//! Values at the beginning and the end of functions, and at calls.

use super::super::flow::{Face, Flow, is_dead, recent, site_of};
use super::super::layout::{CALLER, ENTRY, Makes, NOBODY, NULL};
use super::super::sets::{EMPTY, Set};
use super::{Effects, Target};
use crate::ir::{FunctionId, Operand, Reg};
use pullback_base::index::Index;

impl Flow<'_> {
    /// The beginning of a function: what is reached from arguments is as it was when it was called.
    pub(in super::super) fn begin_values(&mut self) {
        if self.values.is_none() {
            return;
        }
        let entry = self.sets.one(recent(ENTRY));
        let held = self.sets.of(vec![recent(CALLER), recent(NULL), recent(ENTRY)]);
        let params: Vec<(Reg, u32)> = self.layout.params.iter().map(|(r, site)| (*r, *site)).collect();
        for site in params.iter().map(|(_, site)| *site).chain([CALLER]) {
            self.cells.put(self.cells.holds(recent(site)), held);
            self.cells.put(self.cells.bound(recent(site)), entry);
        }
        for (k, r) in self.f.params.iter().enumerate() {
            let site = params.iter().find(|(p, _)| p == r).map(|(_, site)| *site);
            let given = self.values.as_ref().and_then(|values| values.given.get(k)).copied();
            let (Some(site), Some(given)) = (site, given) else { continue };
            let moments = [(given.named, ENTRY), (given.nobody, NOBODY)];
            let moments = moments.into_iter().filter(|(is, _)| *is).map(|(_, site)| recent(site));
            let points = self.sets.of(moments.chain([recent(site)]).collect());
            self.set(*r, points);
        }
    }
    /// The end of a function.
    pub(in super::super) fn end_values(&mut self) {
        if self.values.is_none() {
            return;
        }
        for (k, r) in self.f.results.iter().enumerate() {
            let points = self.cells.points(*r);
            let result = self.outside(points);
            if let Some(values) = &mut self.values {
                values.own.results[k].add(&result);
            }
            for face in self.reachable(points) {
                if !self.is_memory(face) || is_dead(face) || self.is_caller(face) {
                    continue;
                }
                let held = self.cells.get(self.cells.holds(face));
                let result = self.outside(held);
                if let Some(values) = &mut self.values {
                    values.own.holds.add(&result);
                }
            }
        }
    }
    /// Where pointers point to, as callers see it.
    fn outside(&self, points: Set) -> Target {
        let moments = self.moments(points);
        let mut result = Target { params: vec![false; self.f.params.len()], ..Target::default() };
        for face in self.memory(points) {
            match self.param(face) {
                Some(k) => result.params[k] = true,
                None if self.is_caller(face) => result.beyond = true,
                None => result.own = true,
            }
        }
        result.entry = moments.contains(&recent(ENTRY));
        result.now = moments.iter().any(|m| *m != recent(ENTRY));
        result
    }
    /// What is reached from here is used as it is now.
    pub(in super::super) fn used_wholly(&mut self, a: Operand, set: Set, reason: &str) {
        if self.values.is_none() || !self.reports {
            return;
        }
        self.compare(a, set, reason);
        for face in self.reachable(set) {
            if self.is_memory(face) && !is_dead(face) {
                let held = self.cells.get(self.cells.holds(face));
                self.compare(a, held, reason);
            }
        }
    }
    /// What a call does with memory of its arguments.
    pub(in super::super) fn call_writes(&mut self, function: FunctionId, args: &[Operand], first: usize) {
        for a in args {
            let set = self.points(*a);
            self.used_wholly(*a, set, "was written over before the call");
        }
        for (k, a) in args.iter().enumerate() {
            let set = self.points(*a);
            let moments = self.moments(set);
            if let Some(values) = &mut self.values {
                let given = values.gives.entry((function, first + k)).or_default();
                given.nobody |= moments.contains(&recent(NOBODY));
                given.named |= moments.iter().any(|m| *m != recent(NOBODY));
            }
        }
        let Some(effects) = self.effects(function) else { return };
        for (k, a) in args.iter().enumerate() {
            let set = self.points(*a);
            if effects.params.get(first + k).copied().unwrap_or(false) {
                self.shares(set, (Some(k), first), args, &effects);
                self.written(*a, set);
            }
            if effects.beyond {
                let beyond = self.beyond(set);
                self.shares(beyond, (None, first), args, &effects);
                self.written(Operand::Null, beyond);
            }
        }
    }
    /// What memory holds that can be reached from here.
    fn beyond(&mut self, set: Set) -> Set {
        let mut held = Vec::new();
        for face in self.reachable(set) {
            if self.is_memory(face) && !is_dead(face) {
                held.push(self.cells.get(self.cells.holds(face)));
            }
        }
        self.sets.union_of(held)
    }
    /// What is written through an argument is not read through another, nor through what memory holds; what is written through that is not read through an argument. (The
    /// callee knows these as different memory.)
    fn shares(
        &mut self,
        written: Set,
        (k, first): (Option<usize>, usize),
        args: &[Operand],
        effects: &Effects,
    ) {
        if !self.reports {
            return;
        }
        let written = self.memory(written);
        for (l, a) in args.iter().enumerate() {
            let direct = self.points(*a);
            let held = if k.is_some() { self.beyond(direct) } else { EMPTY };
            let binds = effects.binds.get(first + l).copied().unwrap_or(true);
            let direct = if k == Some(l) { EMPTY } else { direct };
            for (set, binds) in [(direct, binds), (held, true)] {
                let moment = self.moments(set).into_iter().find(|m| binds || *m != recent(NOBODY));
                if let Some(moment) = moment
                    && let Some(face) = written.iter().find(|face| self.sets.has(set, **face))
                {
                    let reason = format!("is given to a call that writes {}", self.face(*face));
                    self.late(*a, moment, reason);
                }
            }
        }
    }
    /// Where results of a call point to, and at the end what the memory points to that it makes, of all that they may.
    pub(in super::super) fn call_makes(
        &mut self,
        site: u32,
        function: FunctionId,
        args: &[Operand],
    ) -> Option<(Vec<Set>, Set)> {
        let effects = self.effects(function)?;
        // A moment that is older than the call is another one.
        self.moment(site + 1, EMPTY);
        let args: Vec<Set> = args.iter().map(|a| self.points(*a)).collect();
        let given = args.iter().fold(EMPTY, |all, set| self.sets.union(all, *set));
        let all = self.beyond(given);
        let mut of = |result: &Target| {
            let points = self.result(site, result, &args, all);
            if result.now {
                self.bind_moment(site + 1, points);
            }
            points
        };
        let results: Vec<Set> = effects.results.iter().map(&mut of).collect();
        Some((results, of(&effects.holds)))
    }
    fn result(&mut self, site: u32, result: &Target, args: &[Set], all: Set) -> Set {
        let mut out: Vec<Face> = vec![recent(NULL)];
        if result.beyond {
            out.extend(self.sets.items(all));
        }
        out.extend(result.own.then_some(recent(site)));
        out.extend(result.now.then_some([recent(site + 1), recent(NOBODY)]).into_iter().flatten());
        for (set, _) in args.iter().zip(&result.params).filter(|(_, is)| **is) {
            let items = self.sets.items(*set).iter().copied();
            out.extend(items.filter(|face| result.entry || !self.is_moment(*face)));
        }
        self.sets.of(out)
    }
    pub(super) fn is_caller(&self, face: Face) -> bool {
        self.layout.sites[site_of(face) as usize].makes == Makes::Caller
    }
    /// The parameter that points to memory.
    pub(super) fn param(&self, face: Face) -> Option<usize> {
        let to = self.layout.sites[site_of(face) as usize].to?;
        self.is_caller(face).then(|| self.f.params.iter().position(|p| *p == to))?
    }
    fn effects(&self, function: FunctionId) -> Option<Effects> {
        self.values.as_ref()?.effects.get(function.index()).cloned()
    }
}
