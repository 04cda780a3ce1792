//! What instructions and events do with moments.

use super::super::Callee;
use super::super::flow::{Face, Flow, Met, is_dead, old, recent, site_of};
use super::super::layout::{ENTRY, Makes, NOBODY, Point, Site};
use super::super::sets::{EMPTY, Set};
use super::{Ages, Late, Layer};
use crate::ghosts::Ghost;
use crate::ir::{Function, Ins, Operand, Reg};

impl<'a> Flow<'a> {
    /// Goes through a function with events; alarms are in the layer.
    pub(super) fn valued(f: &'a Function, callees: &'a [Callee], values: Layer<'a>) -> Flow<'a> {
        let mut flow = Flow::with(f, callees, Some(values));
        flow.number_bindings();
        flow.pass();
        flow.reports = true;
        flow.met = Some(Met::default());
        flow.pass();
        flow
    }
    fn number_bindings(&mut self) {
        let f = self.f;
        let Some(values) = &mut self.values else { return };
        let mut number = 0;
        for (site, info) in self.layout.sites.iter().enumerate() {
            if let (Makes::Moment, Some(r)) = (info.makes, info.to)
                && let Some(bound) = values.bound.get_mut(&r)
            {
                *bound = (number, site as u32);
                number += 1;
            }
        }
        crate::walk(&f.body, &mut |ins| {
            if let Ins::Set { to, value: Operand::Reg(pointer) } = ins
                && let Some((number, _)) = values.bound.get(to)
            {
                values.bindings.entry(*pointer).or_default().push(*number);
            }
        });
    }

    // --- sets ---

    pub(super) fn is_moment(&self, face: Face) -> bool {
        matches!(self.layout.sites[site_of(face) as usize].makes, Makes::Moment)
    }
    pub(super) fn moments(&self, set: Set) -> Vec<Face> {
        self.sets.items(set).iter().copied().filter(|face| self.is_moment(*face)).collect()
    }
    pub(super) fn memory(&self, set: Set) -> Vec<Face> {
        let is_meant = |face: &Face| self.is_memory(*face) && !is_dead(*face);
        self.sets.items(set).iter().copied().filter(is_meant).collect()
    }
    /// The set without moments, but for these.
    fn with_moments(&mut self, set: Set, moments: &[Face]) -> Set {
        let mut items: Vec<Face> =
            self.sets.items(set).iter().copied().filter(|face| !self.is_moment(*face)).collect();
        items.extend(moments);
        self.sets.of(items)
    }

    // --- events ---

    pub(in super::super) fn event(&mut self, to: Reg, value: Operand) -> bool {
        let Some(values) = &self.values else { return false };
        let events = values.events;
        let (Some(ghost), Operand::Reg(pointer)) = (events.get(&to), value) else { return false };
        let set = self.points(value);
        match ghost {
            Ghost::Bind { .. } => {
                self.note_met(value, set);
                let bound = self.bind(to, set);
                self.set(to, bound);
                if let Some((number, _)) = self.binding(to) {
                    self.cells.put(self.cells.moved(number), 0);
                }
            }
            Ghost::Read { of } => {
                self.set(to, set);
                self.read_for(pointer, set, *of);
            }
            Ghost::Check { .. } => {
                self.set(to, set);
                self.note_met(value, set);
                self.loaded(value, set);
                let now = self.checked(to, set);
                self.show(pointer, now);
            }
            Ghost::Own => {
                self.set(to, set);
                let own = self.with_moments(set, &[recent(NOBODY)]);
                self.show(pointer, own);
            }
        }
        true
    }
    /// The number of the binding of an event, and the site of its moment.
    fn binding(&self, event: Reg) -> Option<(u32, u32)> {
        self.values.as_ref()?.bound.get(&event).copied()
    }
    /// The register is as it was, but for what it is read for.
    fn show(&mut self, r: Reg, set: Set) {
        let cell = self.cells.pointers[r];
        self.cells.put(cell, set);
        self.watch(cell, set);
    }
    /// A variable is what is shown: what it was for another one, or what is there now.
    fn bind(&mut self, to: Reg, set: Set) -> Set {
        let is_new = self.sets.has(set, recent(NOBODY));
        let Some((_, site)) = self.binding(to).filter(|_| is_new) else { return set };
        self.moment(site, set);
        let mut moments = self.moments(set);
        moments.retain(|face| *face != recent(NOBODY));
        moments.push(recent(site));
        self.with_moments(set, &moments)
    }
    /// What was right until now is what is there now.
    fn checked(&mut self, to: Reg, set: Set) -> Set {
        let moments = self.moments(set);
        let is_shown = moments.iter().any(|face| *face != recent(NOBODY));
        let Some((_, site)) = self.binding(to).filter(|_| is_shown) else { return set };
        self.moment(site, set);
        let nobody = moments.into_iter().filter(|face| *face == recent(NOBODY));
        let moments: Vec<Face> = nobody.chain([recent(site)]).collect();
        self.with_moments(set, &moments)
    }
    /// A variable has got a value in this memory.
    pub(super) fn moment(&mut self, site: u32, set: Set) {
        let (new, before) = (recent(site), old(site));
        self.rename(site, |_, face| if face == new { before } else { face });
        self.bind_moment(site, set);
    }
    pub(super) fn bind_moment(&mut self, site: u32, set: Set) {
        let moment = self.sets.one(recent(site));
        for face in self.memory(set) {
            let param = self.param(face);
            if let (Some(k), Some(values)) = (param, &mut self.values) {
                values.own.binds[k] = true;
            }
            let cell = self.cells.bound(face);
            self.cells.note_read(cell);
            self.cells.join_in(cell, moment, &mut self.sets);
            self.watch(cell, moment);
        }
    }
    fn read_for(&mut self, pointer: Reg, set: Set, of: Reg) {
        let variable = self.cells.points(of);
        let moved = self.binding(of).is_none_or(|(number, _)| self.cells.get(self.cells.moved(number)) != 0);
        if !moved {
            return self.show(pointer, variable);
        }
        // Another pointer is compared with the time of the variable.
        let moments = self.moments(variable);
        let lost = self.sets.of(moments.clone());
        for face in self.memory(set) {
            self.lose(face, lost);
        }
        let set = self.with_moments(set, &moments);
        self.show(pointer, set);
    }
    /// A pointer has got another value.
    pub(in super::super) fn moves(&mut self, r: Reg) {
        let numbers = self.values.as_ref().and_then(|values| values.bindings.get(&r)).cloned();
        for number in numbers.into_iter().flatten() {
            self.cells.put(self.cells.moved(number), 1);
        }
    }

    // --- memory ---

    fn lose(&mut self, face: Face, moments: Set) {
        let cell = self.cells.lost(face);
        self.cells.note_read(cell);
        self.cells.join_in(cell, moments, &mut self.sets);
        self.watch(cell, moments);
    }
    /// Elements are written.
    pub(in super::super) fn written(&mut self, pointer: Operand, into: Set) {
        if self.values.is_none() {
            return;
        }
        for face in self.memory(into) {
            // Nothing is written where there is no element.
            if self.layout.sites[site_of(face) as usize].is_empty {
                continue;
            }
            self.note_effect(face);
            let cell = self.cells.bound(face);
            let bound = self.cells.get(cell);
            if bound != EMPTY {
                let (kept, lost) = self.hit(pointer, bound);
                self.lose(face, lost);
                self.cells.put(cell, kept);
            }
        }
    }
    /// The moments of variables that a write does not hit, and the others.
    fn hit(&mut self, pointer: Operand, bound: Set) -> (Set, Set) {
        let (Some(values), Some((ins, _)), Operand::Reg(r)) = (&self.values, self.path.last(), pointer)
        else {
            return (EMPTY, bound);
        };
        let is_missed =
            |face: &Face| *face == recent(site_of(*face)) && values.places.misses(ins, r, site_of(*face));
        let (kept, lost) = self.sets.items(bound).iter().copied().partition(is_missed);
        (self.sets.of(kept), self.sets.of(lost))
    }
    fn note_effect(&mut self, face: Face) {
        let (is_caller, param) = (self.is_caller(face), self.param(face));
        let Some(values) = &mut self.values else { return };
        match param {
            Some(k) => values.own.params[k] = true,
            None => values.own.beyond |= is_caller,
        }
    }
    /// Elements are loaded, or used as they are.
    pub(in super::super) fn loaded(&mut self, pointer: Operand, from: Set) {
        self.compare(pointer, from, "was written over");
    }
    pub(super) fn compare(&mut self, pointer: Operand, from: Set, reason: &str) {
        if self.values.is_none() || !self.reports {
            return;
        }
        let moments = self.moments(from);
        for face in self.memory(from) {
            let lost = self.cells.get(self.cells.lost(face));
            if let Some(moment) = moments.iter().find(|moment| self.sets.has(lost, **moment)) {
                let reason = format!("{reason}, in {}", self.face(face));
                self.late(pointer, *moment, reason);
            }
        }
    }
    pub(super) fn late(&mut self, pointer: Operand, moment: Face, reason: String) {
        let (function, path, register) =
            (self.f.name.clone(), self.lines(), pointer.as_reg().map(|r| self.name(r)));
        let to = self.layout.sites[site_of(moment) as usize].to;
        let Some(values) = &mut self.values else { return };
        let variable = match (site_of(moment), to.and_then(|r| values.events.get(&r))) {
            (_, Some(Ghost::Bind { name, .. })) => {
                values.names.get(*name as usize).map_or("", String::as_str)
            }
            (ENTRY, _) => "an argument",
            (NOBODY, _) => "what has no name",
            (_, Some(_)) => "a value that was used as a whole",
            (_, None) => "a result of a call",
        };
        let variable = variable.to_string();
        values.late.insert(Late { function, path, variable, register, reason });
    }
    /// What a site made last is old: with its moments.
    pub(in super::super) fn age_values(&mut self, site: u32) {
        if self.values.is_none() {
            return;
        }
        let (new, before) = (recent(site), old(site));
        for (from, to) in [
            (self.cells.bound(new), self.cells.bound(before)),
            (self.cells.lost(new), self.cells.lost(before)),
        ] {
            let held = self.cells.get(from);
            if held != EMPTY {
                self.cells.note_read(to);
                self.cells.join_in(to, held, &mut self.sets);
                self.watch(to, held);
                self.cells.put(from, EMPTY);
            }
        }
    }
    /// Memory of a face is gone.
    pub(in super::super) fn forget_values(&mut self, face: Face) {
        if self.values.is_some() && !is_dead(face) {
            for cell in [self.cells.bound(face), self.cells.lost(face)] {
                self.cells.put(cell, EMPTY);
            }
        }
    }

    // --- loops ---

    /// Whether iterations of a loop leave a cell as it is for each other.
    pub(in super::super) fn are_apart(&self, number: u32, cell: u32, is_any_order: bool) -> bool {
        let (Some(values), Some((face, is_lost))) = (&self.values, self.cells.is_of_face(cell)) else {
            return false;
        };
        if !is_lost {
            return values.places.are_kept(number, face);
        }
        let checks = self.layout.loops[number as usize].checks;
        values.places.are_apart((number, checks), face, is_any_order)
    }
    /// What earlier iterations made is old, on all ways through this one; and variables of them are where they were then.
    pub(in super::super) fn new_iteration(&mut self, point: Point, is_counted: bool) {
        let Some(ages) = self.values.as_ref().map(|values| values.ages) else { return };
        let sites = self.layout.loops[point.number as usize].sites.clone();
        let is_inner = |info: &Site| info.around != point.number && matches!(info.makes, Makes::Memory(_));
        let is_nest =
            ages == Ages::Nests && sites.clone().any(|site| is_inner(&self.layout.sites[site as usize]));
        for site in sites {
            let new = recent(site);
            let info = self.layout.sites[site as usize];
            let ages = match ages {
                Ages::Counted => is_counted,
                Ages::Around => info.around != point.number,
                Ages::Nests => info.around != point.number || is_counted && is_nest,
            };
            match info.makes {
                Makes::Moment => self.rename(site, |_, face| if face == new { old(site) } else { face }),
                Makes::Memory(_) if ages && self.cells.get(self.cells.level(new)) > 0 => {
                    self.age(site);
                    self.cells.put(self.cells.level(new), 0);
                    self.cells.put(self.cells.holds(new), EMPTY);
                }
                _ => {}
            }
        }
    }
}
