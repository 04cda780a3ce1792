//! The state of the analysis at a place of the program, as cells that hold numbers.
//!
//! There is one state, which instructions change. Changes inside of branches and loops are logged: so a branch costs what its arms change, not
//! the size of the state. Inside of loops it is noted which cells are read and written, so that a later visit of the loop knows
//! whether anything is new.

use super::layout::{Layout, Makes};
use super::sets::{EMPTY, Set, Sets};
use crate::ir::{Function, Reg, Ty};
use pullback_base::index::{Index, IndexVec};

/// Whether a register is set: not at all, surely, on some ways; from [`WHEN`] on: where a condition holds, or does not.
pub(super) const UNSET: u32 = 0;
pub(super) const SET: u32 = 1;
pub(super) const MAYBE: u32 = 2;
const WHEN: u32 = 3;

/// The register is set where this condition has this value.
pub(super) fn when(condition: Reg, holds: bool) -> u32 {
    WHEN + 2 * condition.index() as u32 + u32::from(holds)
}

/// Whether that is so of this condition, with any value.
pub(super) fn is_when(known: u32, condition: Reg) -> bool {
    known >= WHEN && (known - WHEN) / 2 == condition.index() as u32
}

/// Whether a mark may be released: it has not been set, it is open, it is gone.
pub(super) const OPEN: u32 = 1;
pub(super) const GONE: u32 = 2;

/// Cells with what they hold after an arm.
type Changes<'a> = &'a [(u32, u32)];

/// A register that is no pointer has no cell for what it points to.
const NONE: u32 = u32::MAX;

/// Something that was new when a loop was looked at, and may have grown since.
pub(super) type List = u32;

/// What is read and written in a loop.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) reads: Vec<u32>,
    pub(super) writes: Vec<u32>,
    pub(super) lists: Vec<List>,
    /// Marks from outside that are released.
    pub(super) marks: Vec<u32>,
}

pub(super) struct Cells {
    values: Vec<u32>,
    /// Cells with what they held before, since the outermost branch or loop began.
    log: Vec<(u32, u32)>,
    /// How many branches and loops are open.
    open: u32,
    /// Where it is kept what a register points to.
    pub(super) pointers: IndexVec<Reg, u32>,
    registers: u32,
    first_site: u32,
    highest: u32,
    /// The home of the register of each of the first cells, and the innermost loop around that.
    homes: Vec<u32>,
    loops: Vec<u32>,
    is_mark: Vec<bool>,
    /// The loop that is looked at, and what is noted in it.
    pub(super) around: u32,
    pub(super) trace: Trace,
    epoch: u32,
    read_in: Vec<u32>,
    written_in: Vec<u32>,
    /// For comparing the arms of a branch.
    side: Vec<(u32, u32)>,
    sides: u32,
    /// Cells looked at, written, put back and joined.
    pub(super) work: u64,
}

impl Cells {
    pub(super) fn new(f: &Function, layout: &Layout, bindings: Option<usize>) -> Cells {
        let registers = f.regs.len() as u32;
        let mut homes: Vec<u32> = f.regs.ids().map(|r| layout.homes[r]).collect();
        let mut loops: Vec<u32> = f.regs.ids().map(|r| layout.loop_of(r)).collect();
        let mut pointers = IndexVec::new();
        for (r, info) in f.regs.iter_enumerated() {
            if info.ty == Ty::Pointer {
                pointers.push(homes.len() as u32);
                homes.push(layout.homes[r]);
                loops.push(layout.loop_of(r));
            } else {
                pointers.push(NONE);
            }
        }
        let first_site = homes.len() as u32;
        let sites = 4 * layout.sites.len();
        let count = first_site as usize + sites + 1 + bindings.map_or(0, |count| sites + count);
        Cells {
            values: vec![0; count],
            log: Vec::new(),
            open: 0,
            pointers,
            registers,
            first_site,
            highest: first_site + sites as u32,
            homes,
            loops,
            is_mark: layout.sites.iter().map(|s| matches!(s.makes, Makes::Mark(_))).collect(),
            around: 0,
            trace: Trace::default(),
            epoch: 1,
            read_in: vec![0; count],
            written_in: vec![0; count],
            side: vec![(0, 0); count],
            sides: 0,
            work: 0,
        }
    }
    /// Back to the state in which nothing is known.
    pub(super) fn clear(&mut self) {
        self.values.fill(0);
    }

    // --- which cell holds what ---

    /// What a face of a site holds: the recent or the old one.
    pub(super) fn holds(&self, face: u32) -> u32 {
        self.first_site + 4 * (face / 3) + face % 3
    }
    /// One more than the level of the memory of a face; 0 where there is none.
    pub(super) fn level(&self, face: u32) -> u32 {
        self.holds(face) + 2
    }
    /// Whether a mark is open.
    pub(super) fn state_of_mark(&self, site: u32) -> u32 {
        self.first_site + 4 * site
    }
    /// The highest level in use.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }
    /// Moments of variables that are in memory of a face, which was not written since.
    pub(super) fn bound(&self, face: u32) -> u32 {
        self.highest + 1 + 4 * (face / 3) + face % 3
    }
    /// Moments of variables that were in memory of a face, which was written since.
    pub(super) fn lost(&self, face: u32) -> u32 {
        self.bound(face) + 2
    }
    /// The face of which a cell is [`Cells::lost`], or else [`Cells::bound`].
    pub(super) fn is_of_face(&self, cell: u32) -> Option<(u32, bool)> {
        let k = cell.checked_sub(self.highest + 1)?;
        (k < self.highest - self.first_site).then_some((3 * (k / 4) + k % 2, k % 4 >= 2))
    }
    /// Whether the pointer of a binding is another one by now.
    pub(super) fn moved(&self, binding: u32) -> u32 {
        2 * self.highest - self.first_site + 1 + binding
    }
    /// The least upper bound of what a cell holds on two ways.
    fn join(&self, cell: u32, (a, b): (u32, u32), sets: &mut Sets) -> u32 {
        if a == b {
            a
        } else if cell < self.registers {
            either(a, b)
        } else if self.holds_sets(cell) {
            sets.union(a, b)
        } else {
            a.max(b)
        }
    }
    fn holds_sets(&self, cell: u32) -> bool {
        if cell < self.first_site || cell >= self.highest {
            return cell != self.highest && cell < self.moved(0);
        }
        let k = cell - self.first_site;
        k % 4 < 2 && !self.is_mark[(k / 4) as usize]
    }

    // --- reading and writing ---

    /// What a cell holds, without a note.
    pub(super) fn value(&self, cell: u32) -> u32 {
        self.values[cell as usize]
    }
    pub(super) fn get(&mut self, cell: u32) -> u32 {
        self.note_read(cell);
        self.values[cell as usize]
    }
    /// Notes that a cell is read, for a loop that it matters to.
    pub(super) fn note_read(&mut self, cell: u32) {
        if !self.is_inside(cell)
            && std::mem::replace(&mut self.read_in[cell as usize], self.epoch) != self.epoch
        {
            self.trace.reads.push(cell);
        }
    }
    /// Whether no loop is looked at, or nothing of the register of this cell leaves it.
    fn is_inside(&self, cell: u32) -> bool {
        self.around == 0 || self.loops.get(cell as usize).is_some_and(|l| *l == self.around)
    }
    /// A list was gone through.
    pub(super) fn note_list(&mut self, list: List) {
        if self.around != 0 {
            self.trace.lists.push(list);
        }
    }
    /// Notes that a cell is written.
    pub(super) fn note_written(&mut self, cell: u32) {
        if !self.is_inside(cell)
            && std::mem::replace(&mut self.written_in[cell as usize], self.epoch) != self.epoch
        {
            self.trace.writes.push(cell);
        }
    }
    pub(super) fn put(&mut self, cell: u32, value: u32) {
        self.note_written(cell);
        let before = std::mem::replace(&mut self.values[cell as usize], value);
        if before != value && self.open > 0 {
            self.log.push((cell, before));
        }
        self.work += 1;
    }
    /// Whether a register is set.
    pub(super) fn known(&mut self, r: Reg) -> u32 {
        self.get(r.index() as u32)
    }
    pub(super) fn set_known(&mut self, r: Reg, known: u32) {
        self.put(r.index() as u32, known);
    }
    /// What a register points to.
    pub(super) fn points(&mut self, r: Reg) -> Set {
        let cell = self.pointers[r];
        if cell == NONE { EMPTY } else { self.get(cell) }
    }

    // --- branches and loops ---

    /// A branch or a loop begins. The place in the log, for [`Cells::take`].
    pub(super) fn begin(&mut self) -> usize {
        self.open += 1;
        self.log.len()
    }
    /// It ends.
    pub(super) fn end(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.log.clear();
        }
    }
    /// Undoes what was changed since a place in the log. What the cells held at last that are different now, but for registers whose
    /// home is this block: they are not set when it begins again.
    pub(super) fn take(&mut self, since: usize, block: u32) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        self.sides += 1;
        for k in since..self.log.len() {
            let (cell, before) = self.log[k];
            let now = self.values[cell as usize];
            let side = &mut self.side[cell as usize];
            if side.0 != self.sides {
                *side = (self.sides, before);
                if now != before && self.homes.get(cell as usize).is_none_or(|home| *home != block) {
                    out.push((cell, now));
                }
            }
        }
        self.work += (self.log.len() - since) as u64;
        for (cell, before) in self.log.drain(since..).rev() {
            self.values[cell as usize] = before;
        }
        out
    }
    /// Takes changes over.
    pub(super) fn apply(&mut self, changes: &[(u32, u32)]) {
        for (cell, value) in changes {
            self.put(*cell, *value);
        }
    }
    /// Joins a cell with a value. Whether that is new.
    pub(super) fn join_in(&mut self, cell: u32, value: u32, sets: &mut Sets) -> bool {
        let before = self.values[cell as usize];
        let joined = self.join(cell, (before, value), sets);
        self.put(cell, joined);
        joined != before
    }
    /// What a cell holds here, or this.
    pub(super) fn joined(&mut self, cell: u32, value: u32, sets: &mut Sets) -> u32 {
        self.work += 1;
        self.join(cell, (self.values[cell as usize], value), sets)
    }
    /// Whether a cell holds no more than this.
    pub(super) fn is_within(&self, cell: u32, value: u32, sets: &mut Sets) -> bool {
        self.join(cell, (self.values[cell as usize], value), sets) == value
    }
    /// Takes over what two arms changed. Registers that only one arm sets are set under its condition, if there is one. Those registers.
    pub(super) fn merge(
        &mut self,
        (then, otherwise): (Changes<'_>, Changes<'_>),
        condition: Option<Reg>,
        sets: &mut Sets,
    ) -> Vec<Reg> {
        let mut conditional = Vec::new();
        self.sides += 1;
        for (cell, value) in otherwise {
            self.side[*cell as usize] = (self.sides, *value);
        }
        let both = self.sides + 1;
        for (cell, one) in then {
            let side = self.side[*cell as usize];
            let two = if side.0 == self.sides { side.1 } else { self.values[*cell as usize] };
            self.side[*cell as usize].0 = both;
            self.merge_cell(*cell, (*one, two), (condition, &mut conditional), sets);
        }
        for (cell, two) in otherwise {
            if self.side[*cell as usize].0 != both {
                let one = self.values[*cell as usize];
                self.merge_cell(*cell, (one, *two), (condition, &mut conditional), sets);
            }
        }
        self.sides = both;
        conditional
    }
    fn merge_cell(
        &mut self,
        cell: u32,
        (one, two): (u32, u32),
        (condition, conditional): (Option<Reg>, &mut Vec<Reg>),
        sets: &mut Sets,
    ) {
        let joined = match condition {
            Some(c) if cell < self.registers && (one == SET) != (two == SET) => {
                conditional.push(Reg::new(cell as usize));
                when(c, one == SET)
            }
            _ => self.join(cell, (one, two), sets),
        };
        self.put(cell, joined);
    }

    // --- notes ---

    /// Notes are for a loop inside from here on. What was noted so far.
    pub(super) fn note_inside(&mut self, number: u32) -> (u32, Trace) {
        self.epoch += 1;
        (std::mem::replace(&mut self.around, number), std::mem::take(&mut self.trace))
    }
    /// The end of that. What was noted inside, each cell once.
    pub(super) fn note_outside(&mut self, (around, trace): (u32, Trace)) -> Trace {
        self.around = around;
        let mut inside = std::mem::replace(&mut self.trace, trace);
        // A loop further inside has notes of its own, so that a cell may have been noted before it and after it.
        self.epoch += 1;
        let epoch = self.epoch;
        for (cells, last) in
            [(&mut inside.reads, &mut self.read_in), (&mut inside.writes, &mut self.written_in)]
        {
            cells.retain(|cell| std::mem::replace(&mut last[*cell as usize], epoch) != epoch);
        }
        for list in [&mut inside.lists, &mut inside.marks] {
            list.sort_unstable();
            list.dedup();
        }
        self.epoch += 1;
        inside
    }
}

/// What is known of a register that is set thus on one way, and thus on another.
fn either(a: u32, b: u32) -> u32 {
    match (a, b) {
        (a, b) if a == b => a,
        (SET, when) | (when, SET) if when >= WHEN => when,
        _ => MAYBE,
    }
}
