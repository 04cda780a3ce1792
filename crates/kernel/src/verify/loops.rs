//! Branches and loops.
//!
//! A loop is gone through until its head, the state before an iteration, grows no more. Heads are kept between visits, with the cells that the loop
//! reads and writes: a visit that brings nothing new to these takes over the cells that it wrote, and nothing else. So nested loops
//! cost a few passes each, not a product of them. The last pass, in which alarms are noted, passes by no loop: it finds for itself that no head grows.

use super::alarm::Rule;
use super::cells::{List, SET, UNSET};
use super::flow::{Flow, old, recent};
use super::layout::{Makes, Point};
use super::sets::EMPTY;
use crate::ir::{Block, Fold, Ins, Operand, Order, Reg, Ty};

/// What is known of a loop from visits before.
pub(super) struct Head {
    /// Cells that are read, with what they held at the head.
    reads: Vec<(u32, u32)>,
    writes: Vec<Written>,
    /// Lists that were gone through, and how long they were.
    lists: Vec<(List, u32)>,
    /// Marks from outside that are given back to.
    marks: Vec<u32>,
    /// Whether the program has stopped after the loop.
    ended: bool,
}

/// A cell that a loop writes: what it holds at the head, and after the loop.
#[derive(Clone, Copy)]
struct Written {
    cell: u32,
    head: u32,
    exit: u32,
}

impl<'a> Flow<'a> {
    pub(super) fn branch(&mut self, condition: Option<Reg>, arms: [&'a Block; 2], ids: [u32; 2]) {
        let since = self.cells.begin();
        let version = condition.map(|c| self.versions[c]);
        let [(then, stopped), (otherwise, stops)] = [0, 1].map(|k| {
            if let Some(c) = condition {
                self.assume(c, k == 0);
            }
            if let Some(last) = self.path.last_mut() {
                last.1 = k == 1;
            }
            self.block(arms[k], ids[k]);
            (self.cells.take(since, ids[k]), std::mem::take(&mut self.ended))
        });
        match (stopped, stops) {
            (true, true) => self.ended = true,
            (true, false) => self.cells.apply(&otherwise),
            (false, true) => self.cells.apply(&then),
            (false, false) => {
                let condition = condition.filter(|c| version == Some(self.versions[*c]));
                let set = self.cells.merge((&then, &otherwise), condition, &mut self.sets);
                if let Some(c) = condition {
                    for r in set.into_iter().filter(|r| self.noted.insert((c, *r), ()).is_none()) {
                        self.conditional[c].push(r);
                    }
                }
            }
        }
        self.cells.end();
    }
    pub(super) fn repeat(&mut self, ins: &'a Ins, point: Point) {
        let (counter, condition, body, folds) = match ins {
            Ins::For { i, from, to, body, order } => {
                [from, to].into_iter().for_each(|a| self.read(*a));
                let folds = if let Order::Any(folds) = order { Some(folds) } else { None };
                (Some(*i), None, body, folds)
            }
            Ins::Lanes { i, from, to, body, .. } => {
                [from, to].into_iter().for_each(|a| self.read(*a));
                (Some(*i), None, body, None)
            }
            Ins::While { condition, test, body } => (None, Some((condition, *test)), body, None),
            _ => return,
        };
        if self.reports {
            for (k, fold) in folds.into_iter().flatten().enumerate() {
                self.fold(fold, self.layout.combines[point.combines + k]);
            }
        }
        let known = self.heads[point.number as usize].take();
        if let Some(head) = &known
            && !self.reports
            && self.brings_nothing_new(head)
        {
            self.pass_by(head);
            self.heads[point.number as usize] = known;
            return;
        }
        let around = self.cells.note_inside(point.number);
        self.cells.begin();
        for written in known.iter().flat_map(|head| &head.writes) {
            self.cells.note_read(written.cell);
            self.cells.join_in(written.cell, written.head, &mut self.sets);
        }
        let exit = self.iterate((counter, condition, body), point, folds.is_some());
        self.cells.end();
        let trace = self.cells.note_outside(around);
        let reads = trace.reads.into_iter().map(|cell| (cell, self.cells.value(cell))).collect();
        let head: Vec<(u32, u32)> =
            trace.writes.into_iter().map(|cell| (cell, self.cells.value(cell))).collect();
        // After the loop.
        self.ended = exit.is_none();
        self.cells.apply(&exit.unwrap_or_default());
        if folds.is_some() {
            self.unset(point.number);
        }
        let writes =
            head.into_iter().map(|(cell, head)| Written { cell, head, exit: self.cells.value(cell) });
        let lists = trace.lists.into_iter().map(|list| (list, self.length(list))).collect();
        let sites = &self.layout.loops[point.number as usize].sites;
        let marks = trace.marks.into_iter().filter(|site| !sites.contains(site)).collect();
        let head = Head { reads, writes: writes.collect(), lists, marks, ended: self.ended };
        self.note_for_outside(&head);
        self.heads[point.number as usize] = Some(head);
    }
    /// Goes through a loop until its head grows no more; leaves the state at the head. What is different after the loop; `None`: the program has
    /// stopped there.
    fn iterate(
        &mut self,
        (counter, condition, body): (Option<Reg>, Option<(&'a Block, Operand)>, &'a Block),
        point: Point,
        any_order: bool,
    ) -> Option<Vec<(u32, u32)>> {
        loop {
            let mut exit = Some(Vec::new());
            let start = self.cells.begin();
            self.new_iteration(point, counter.is_some());
            if let Some((condition, test)) = condition {
                self.block(condition, point.blocks[0]);
                if !self.ended {
                    self.read(test);
                }
                let changes = self.cells.take(start, point.blocks[0]);
                self.cells.apply(&changes);
                exit = (!self.ended).then_some(changes);
            }
            if any_order {
                self.unset(point.number);
                self.forget_iterations(point.number);
            }
            if let Some(i) = counter {
                self.set(i, EMPTY);
            }
            self.block(body, point.blocks[1]);
            if any_order && self.reports && !self.ended {
                self.leaves(point.number);
            }
            let changes = self.cells.take(start, point.blocks[1]);
            self.cells.end();
            let mut grows = false;
            if !std::mem::take(&mut self.ended) {
                for (cell, value) in changes {
                    if self.are_apart(point.number, cell, any_order) {
                        let both = self.cells.joined(cell, value, &mut self.sets);
                        exit.iter_mut().for_each(|exit| exit.push((cell, both)));
                    } else {
                        grows |= self.cells.join_in(cell, value, &mut self.sets);
                    }
                }
            }
            if !grows {
                return exit;
            }
        }
    }
    /// Whether all that a loop reads or writes was so before.
    fn brings_nothing_new(&mut self, head: &Head) -> bool {
        self.cells.work += (head.reads.len() + head.writes.len() + head.lists.len()) as u64;
        let same = head.lists.iter().all(|(list, length)| self.length(*list) == *length);
        let (cells, sets) = (&self.cells, &mut self.sets);
        same && head.marks.is_empty()
            && head.reads.iter().all(|(cell, value)| cells.is_within(*cell, *value, sets))
            && head.writes.iter().all(|w| cells.is_within(w.cell, w.head, sets))
    }
    /// The state after a loop that nothing new came to.
    fn pass_by(&mut self, head: &Head) {
        for written in &head.writes {
            self.cells.put(written.cell, written.exit);
        }
        self.ended = head.ended;
        self.note_for_outside(head);
    }
    /// What a loop reads and writes counts for the loop around it.
    fn note_for_outside(&mut self, head: &Head) {
        for (cell, _) in &head.reads {
            self.cells.note_read(*cell);
        }
        for written in &head.writes {
            self.cells.note_written(written.cell);
        }
        for (list, _) in &head.lists {
            self.cells.note_list(*list);
        }
        self.cells.trace.marks.extend(&head.marks);
    }

    // --- loops in any order ---

    /// What iterations set is not set before them, nor after the loop.
    fn unset(&mut self, number: u32) {
        for k in 0..self.layout.loops[number as usize].sets.len() {
            let r = self.layout.loops[number as usize].sets[k];
            self.cells.set_known(r, UNSET);
            if self.f.regs[r].ty == Ty::Pointer {
                self.cells.put(self.cells.pointers[r], EMPTY);
            }
        }
    }
    /// No iteration sees memory of another one.
    fn forget_iterations(&mut self, number: u32) {
        for site in self.layout.loops[number as usize].sites.clone() {
            if matches!(self.layout.sites[site as usize].makes, Makes::Memory(_)) {
                for face in [recent(site), old(site)] {
                    self.cells.put(self.cells.level(face), 0);
                    self.forget_values(face);
                }
            }
        }
    }
    fn leaves(&mut self, number: u32) {
        for site in self.layout.loops[number as usize].sites.clone() {
            let is_memory = matches!(self.layout.sites[site as usize].makes, Makes::Memory(_));
            let left = [recent(site), old(site)]
                .into_iter()
                .find(|face| self.cells.value(self.cells.level(*face)) > 0);
            if let (true, Some(face)) = (is_memory, left) {
                let text = format!("an iteration leaves {}", self.face(face));
                self.alarm(Rule::Leaves, None, text);
            }
        }
    }
    /// How states are taken together.
    fn fold(&mut self, fold: &'a Fold, id: u32) {
        let since = self.cells.begin();
        fold.neutral.iter().for_each(|a| self.read(*a));
        fold.state.iter().for_each(|r| self.read((*r).into()));
        for r in fold.left.iter().chain(&fold.right) {
            self.cells.set_known(*r, SET);
        }
        self.block(&fold.combine, id);
        if !std::mem::take(&mut self.ended) {
            fold.out.iter().for_each(|a| self.read(*a));
        }
        self.cells.take(since, id);
        self.cells.end();
    }
}
