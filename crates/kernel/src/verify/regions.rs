//! Memory: who points where, what is there, what calls do to it.
//!
//! Levels take the place of the stack that a workspace is. Marks have levels in the order of the text. Memory has the level of the last
//! mark before it, at most; once a mark is set, all memory that is there is below. To go back to a mark is therefore to give
//! back all memory of its level and above, and no mark above is open any more. Where ways meet, the higher level counts: more is given back then than may be.

use super::alarm::Rule;
use super::cells::{GONE, OPEN};
use super::flow::{Face, Flow, dead, is_dead, old, recent, site_of};
use super::layout::{CALLER, Makes, NULL};
use super::sets::{EMPTY, Set};
use super::stored::{PART, Reached, Region, Summary, brought};
use crate::ir::{FunctionId, Operand, Reg, Ty};
use pullback_base::index::Index;

impl Flow<'_> {
    // --- who points where ---

    /// A cell holds these faces: it is to be looked at when they change.
    pub(super) fn watch(&mut self, cell: u32, set: Set) {
        if self.held_sets.insert((cell, set), ()).is_some() {
            return;
        }
        for face in self.sets.items(set) {
            let site = site_of(*face);
            if site > CALLER && self.watched.insert((cell, site), ()).is_none() {
                self.watchers[site as usize].push(cell);
            }
        }
        self.cells.work += self.sets.items(set).len() as u64;
    }
    /// Gives faces other names in all cells that hold one of this site.
    pub(super) fn rename(&mut self, site: u32, to: impl Fn(&[bool], Face) -> Face) {
        self.cells.note_list(site);
        for k in 0..self.watchers[site as usize].len() {
            let cell = self.watchers[site as usize][k];
            let set = self.cells.get(cell);
            self.cells.work += 1;
            if set == EMPTY {
                continue;
            }
            let gone = &self.gone;
            let renamed = self.sets.map(set, |face| to(gone, face));
            if renamed != set {
                self.cells.put(cell, renamed);
                self.watch(cell, renamed);
            }
        }
    }
    /// Pointers that are held by memory that these point to. What was never written holds the null pointer.
    pub(super) fn held(&mut self, from: Set) -> Set {
        let mut held = Vec::new();
        for k in 0..self.sets.items(from).len() {
            let face = self.sets.items(from)[k];
            if self.is_memory(face) && !is_dead(face) {
                held.push(self.cells.get(self.cells.holds(face)));
            } else if site_of(face) == NULL {
                held.push(self.sets.one(face));
            }
        }
        let out = self.sets.union_of(held);
        if out == EMPTY && from != EMPTY { self.sets.one(recent(NULL)) } else { out }
    }
    pub(super) fn is_memory(&self, face: Face) -> bool {
        matches!(self.layout.sites[site_of(face) as usize].makes, Makes::Caller | Makes::Memory(_))
    }
    fn is_mark(&self, face: Face) -> bool {
        matches!(self.layout.sites[site_of(face) as usize].makes, Makes::Mark(_))
    }
    /// Whether it is memory that may hold pointers: what was allocated for numbers does not.
    fn holds_pointers(&self, face: Face) -> bool {
        match self.layout.sites[site_of(face) as usize].makes {
            Makes::Caller => true,
            Makes::Memory(of) => of.is_none_or(|ty| ty == Ty::Pointer),
            _ => false,
        }
    }
    /// Pointers are stored. Whether some are new there.
    pub(super) fn hold(&mut self, into: Set, what: Set) -> bool {
        if self.sets.items(what).iter().any(|face| self.is_mark(*face)) {
            self.alarm(Rule::Mark, None, "a mark is stored".to_string());
        }
        let mut grows = false;
        for k in 0..self.sets.items(into).len() {
            let face = self.sets.items(into)[k];
            if !self.holds_pointers(face) || is_dead(face) {
                continue;
            }
            let cell = self.cells.holds(face);
            self.cells.note_read(cell);
            grows |= self.cells.join_in(cell, what, &mut self.sets);
            self.watch(cell, what);
        }
        grows
    }
    /// All faces that can be reached.
    pub(super) fn reachable(&mut self, set: Set) -> Vec<Face> {
        let mut out: Vec<Face> = self.sets.items(set).to_vec();
        self.searches += 1;
        out.iter().for_each(|face| self.seen[*face as usize] = self.searches);
        let mut at = 0;
        while let Some(face) = out.get(at).copied() {
            at += 1;
            self.cells.work += 1;
            if !self.is_memory(face) || is_dead(face) {
                continue;
            }
            let held = self.cells.get(self.cells.holds(face));
            for face in self.sets.items(held) {
                let seen = std::mem::replace(&mut self.seen[*face as usize], self.searches);
                out.extend((seen != self.searches).then_some(*face));
            }
        }
        out
    }
    /// Memory that is used through a pointer, elements of this type.
    pub(super) fn used(&mut self, pointer: Operand, ty: Ty) -> Set {
        let set = self.points(pointer);
        if !self.reports {
            return set;
        }
        self.note_met(pointer, set);
        if let Some(text) = self.misused(set, ty) {
            self.alarm(Rule::Memory, pointer.as_reg(), format!("{} {text}", self.operand(pointer)));
        }
        set
    }
    /// What is wrong with a pointer to these faces, if it is used for elements of this type.
    fn misused(&self, set: Set, ty: Ty) -> Option<String> {
        let items = self.sets.items(set);
        let fits = |face: &Face| match self.layout.sites[site_of(*face) as usize].makes {
            Makes::Memory(Some(of)) => of == ty,
            _ => true,
        };
        if items.is_empty() {
            Some("points to nothing that was allocated".to_string())
        } else if let Some(face) = items.iter().find(|face| is_dead(**face) || self.is_mark(**face)) {
            Some(format!("points to {}", self.face(*face)))
        } else if !items.iter().any(fits) {
            Some("points to elements of another type only".to_string())
        } else {
            None
        }
    }

    // --- what is there ---

    fn note_level(&mut self, face: Face, level: u32) {
        if self.leveled.insert((level, face), ()).is_none() {
            self.levels[level as usize].push(face);
        }
    }
    /// The faces of memory of a level.
    fn at_level(&mut self, level: u32) -> Vec<Face> {
        self.cells.note_list((self.watchers.len() + level as usize) as u32);
        let mut out = Vec::new();
        for k in 0..self.levels[level as usize].len() {
            let face = self.levels[level as usize][k];
            self.cells.work += 1;
            if self.cells.get(self.cells.level(face)) == level + 1 {
                out.push(face);
            }
        }
        out
    }
    /// A site makes memory. What it made before is old.
    pub(super) fn make(&mut self, site: u32) {
        self.age(site);
        let new = recent(site);
        let here = self.cells.get(self.cells.highest());
        self.cells.put(self.cells.level(new), here + 1);
        self.cells.put(self.cells.holds(new), EMPTY);
        self.note_level(new, here);
    }
    /// What a site made last is old.
    pub(super) fn age(&mut self, site: u32) {
        let (new, before) = (recent(site), old(site));
        let (level, holds) = (self.cells.level(new), self.cells.holds(new));
        let last = self.cells.get(level);
        if last > 0 {
            self.rename(site, |_, face| if face == new { before } else { face });
            let held = self.cells.get(holds);
            let of_old = self.cells.holds(before);
            self.cells.note_read(of_old);
            self.cells.join_in(of_old, held, &mut self.sets);
            self.watch(of_old, held);
            let level_of_old = self.cells.level(before);
            self.cells.note_read(level_of_old);
            self.cells.join_in(level_of_old, last, &mut self.sets);
            self.note_level(before, last - 1);
        }
        self.age_values(site);
    }
    /// A mark is set: all that is there is below it, and an older mark of this place is no mark any more.
    pub(super) fn mark(&mut self, to: Reg, site: u32) {
        let Makes::Mark(level) = self.layout.sites[site as usize].makes else { return };
        let highest = self.cells.get(self.cells.highest());
        for above in level..=highest {
            for face in self.at_level(above) {
                self.cells.put(self.cells.level(face), level);
                self.note_level(face, level - 1);
            }
            self.close(above);
        }
        let (this, stale) = (recent(site), dead(site));
        self.rename(site, |_, face| if face == this { stale } else { face });
        self.cells.put(self.cells.state_of_mark(site), OPEN);
        self.cells.put(self.cells.highest(), level);
        let points = self.sets.one(this);
        self.set(to, points);
    }
    /// The mark of a level is no mark any more.
    fn close(&mut self, level: u32) {
        if let Some(site) = self.layout.marks.get(level as usize)
            && self.cells.get(self.cells.state_of_mark(*site)) == OPEN
        {
            self.cells.put(self.cells.state_of_mark(*site), GONE);
        }
    }
    /// All since a mark is given back.
    pub(super) fn release(&mut self, mark: Operand) {
        let set = self.points(mark);
        let [face] = *self.sets.items(set) else {
            let text = format!("{} is not one mark", self.operand(mark));
            return self.alarm(Rule::Mark, mark.as_reg(), text);
        };
        let site = site_of(face);
        let Makes::Mark(level) = self.layout.sites[site as usize].makes else {
            let text = format!("{} is no mark", self.operand(mark));
            return self.alarm(Rule::Mark, mark.as_reg(), text);
        };
        if is_dead(face) || self.cells.get(self.cells.state_of_mark(site)) != OPEN {
            let text = format!("{} is gone, or another mark by now", self.operand(mark));
            return self.alarm(Rule::Mark, mark.as_reg(), text);
        }
        self.cells.trace.marks.push(site);
        let highest = self.cells.get(self.cells.highest());
        let mut gone = self.at_level(level);
        for above in level + 1..=highest {
            gone.extend(self.at_level(above));
            self.close(above);
        }
        self.cells.put(self.cells.highest(), level);
        self.give_back(&gone);
    }
    pub(super) fn give_back(&mut self, faces: &[Face]) {
        for face in faces {
            self.gone[*face as usize] = true;
            self.cells.put(self.cells.level(*face), 0);
            self.cells.put(self.cells.holds(*face), EMPTY);
            self.forget_values(*face);
        }
        for face in faces {
            let site = site_of(*face);
            self.rename(site, |gone, face| if gone[face as usize] { dead(site_of(face)) } else { face });
        }
        faces.iter().for_each(|face| self.gone[*face as usize] = false);
    }

    // --- calls ---

    /// What arguments reach is there.
    fn given(&mut self, args: &[Operand]) {
        for a in args {
            let set = self.points(*a);
            if self.reports {
                let reachable = self.reachable(set);
                let dead = reachable.iter().find(|face| is_dead(**face) || self.is_mark(**face));
                if let Some(face) = dead {
                    let text = format!("the argument {} reaches {}", self.operand(*a), self.face(*face));
                    self.alarm(Rule::Memory, a.as_reg(), text);
                }
                self.note_met(*a, set);
                self.note_reached(*a, reachable);
            }
        }
    }
    /// A callee, whose parameter `first` is the first of these arguments, stores pointers in what they reach, and in memory that it makes. As two arguments may reach the
    /// same, this is gone through until nothing is new.
    fn stores(&mut self, function: FunctionId, own: Face, (args, first): (&[Operand], usize)) {
        let Some(callee) = self.callees.get(function.index()) else { return };
        let Summary { stores, made } = &callee.summary;
        // (Where values are looked at, it is known better what memory holds that the callee made.)
        let made: &[Region] = if self.values.is_none() { made } else { &[] };
        let own = self.sets.one(own);
        let mut grows = !stores.is_empty() || !made.is_empty();
        while std::mem::take(&mut grows) {
            let mut reached = vec![Reached::NOTHING; first];
            for a in args {
                let at = self.points(*a);
                let held = self.held(at);
                let beyond = self.reachable(held);
                reached.push(Reached { at, beyond: self.sets.of(beyond) });
            }
            for (into, sources) in stores {
                let what = brought(sources, own, &reached, &mut self.sets);
                let what = self.sets.with(what, recent(NULL));
                grows |= self.hold(into.of(own, &reached), what);
            }
            let what = brought(made, own, &reached, &mut self.sets);
            grows |= self.hold(own, what);
        }
    }
    /// Results may point to all that arguments reach, and to memory that the callee made.
    pub(super) fn call(&mut self, site: u32, to: &[Reg], function: FunctionId, args: &[Operand]) {
        self.given(args);
        self.call_writes(function, args, 0);
        // What the same call made last is old by now.
        self.make(site);
        let own = recent(site);
        let made = self.call_makes(site, function, args);
        if let Some((_, held)) = &made {
            self.cells.put(self.cells.holds(own), *held);
            self.watch(self.cells.holds(own), *held);
        }
        self.stores(function, own, (args, 0));
        let mut given = EMPTY;
        for a in args {
            let points = self.points(*a);
            given = self.sets.union(given, points);
        }
        let mut reachable = self.reachable(given);
        reachable.extend([own, recent(NULL)]);
        let out = self.sets.of(reachable);
        for (k, r) in to.iter().enumerate() {
            let is_pointer = self.f.regs[*r].ty == Ty::Pointer;
            let points = made.as_ref().and_then(|(results, _)| results.get(k)).copied().unwrap_or(out);
            self.set(*r, if is_pointer { points } else { EMPTY });
        }
    }
    /// The same without results; what the calls make is given back.
    pub(super) fn chunks(&mut self, site: u32, function: FunctionId, args: &[Operand]) {
        self.given(args);
        self.call_writes(function, args, PART);
        self.stores(function, dead(site), (args, PART));
    }
}
