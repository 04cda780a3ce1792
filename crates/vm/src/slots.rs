//! Where registers of lanes lie: those that are never needed at the same time share a slot of the frame, so that blocks stay
//! in the first-level cache.
//!
//! A register is taken to be needed from the first to the last place where it is mentioned, in the order of the text, and for the
//! whole of every loop in which it is read before it is set, or inside and outside of which it is mentioned.

use crate::checks::Checks;
use crate::uses::reads;
use pullback_kernel::{Block, Function, Ins, Operand, Reg};
use std::collections::{BTreeMap, BTreeSet};

/// The slots of the registers of lanes, and how many there are.
pub(crate) fn slots(f: &Function, checks: &Checks) -> (BTreeMap<Reg, usize>, usize) {
    let mut walk = Walk { f, checks, position: 0, ranges: BTreeMap::new(), loops: Vec::new() };
    walk.block(&f.body);
    let mut ranges: Vec<(Range, Reg)> =
        walk.ranges.iter().map(|(r, range)| (walk.whole(*r, *range), *r)).collect();
    ranges.sort();
    let (mut out, mut ends) = (BTreeMap::new(), Vec::new());
    for (range, r) in ranges {
        let free = ends.iter().position(|end| *end < range.first);
        let slot = free.unwrap_or(ends.len());
        match ends.get_mut(slot) {
            Some(end) => *end = range.last,
            None => ends.push(range.last),
        }
        out.insert(r, slot);
    }
    (out, ends.len())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    first: usize,
    last: usize,
}

/// A loop, and the registers that its iterations read before they set them.
struct Loop {
    range: Range,
    carried: BTreeSet<Reg>,
}

struct Walk<'a> {
    f: &'a Function,
    checks: &'a Checks,
    position: usize,
    ranges: BTreeMap<Reg, Range>,
    loops: Vec<Loop>,
}

/// Registers that are read before they are set, and those that are set for sure.
#[derive(Default)]
struct Flow {
    read: BTreeSet<Reg>,
    set: BTreeSet<Reg>,
}

impl Flow {
    fn then(&mut self, next: Flow) {
        self.read.extend(next.read.difference(&self.set).copied().collect::<Vec<_>>());
        self.set.extend(next.set);
    }
}

impl Walk<'_> {
    /// The range with all loops in which the register is needed from one iteration to the next, or behind the loop.
    fn whole(&self, r: Reg, range: Range) -> Range {
        let mut out = range;
        for l in &self.loops {
            let outside = range.first < l.range.first || range.last > l.range.last;
            let touches = range.first <= l.range.last && range.last >= l.range.first;
            if touches && (outside || l.carried.contains(&r)) {
                out.first = out.first.min(l.range.first);
                out.last = out.last.max(l.range.last);
            }
        }
        out
    }
    fn mention(&mut self, r: Reg) {
        let here = Range { first: self.position, last: self.position };
        self.ranges.entry(r).or_insert(here).last = self.position;
    }
    fn is_lanes(&self, r: Reg) -> bool {
        self.f.regs[r].ty.is_lanes()
    }
    fn block(&mut self, block: &Block) -> Flow {
        let mut flow = Flow::default();
        for ins in block {
            let next = self.ins(ins);
            flow.then(next);
        }
        flow
    }
    fn ins(&mut self, ins: &Ins) -> Flow {
        self.position += 1;
        let mut flow = Flow::default();
        reads(ins, &mut |r| {
            flow.read.extend(self.is_lanes(r).then_some(r));
        });
        // The mask is looked at where the check is done.
        if let Ins::Fail { condition: Operand::Reg(c), .. } = ins
            && let Some(outside) = self.checks.outside.get(c)
        {
            flow.read.extend(outside.mask.and_then(Operand::as_reg));
        }
        flow.set.extend(ins.sets().iter().copied().filter(|r| self.is_lanes(*r)));
        flow.read.iter().chain(&flow.set).for_each(|r| self.mention(*r));
        let start = self.position;
        match ins {
            Ins::For { body, .. } | Ins::Lanes { body, .. } => {
                let inner = self.block(body);
                flow.read.extend(&inner.read);
                self.end_of_loop(start, inner.read);
            }
            Ins::While { condition, body, .. } => {
                let mut inner = self.block(condition);
                let set = inner.set.clone();
                let rest = self.block(body);
                inner.then(rest);
                flow.read.extend(&inner.read);
                flow.set.extend(set);
                self.end_of_loop(start, inner.read);
            }
            Ins::If { then, otherwise, .. } => {
                let (a, b) = (self.block(then), self.block(otherwise));
                flow.read.extend(a.read.union(&b.read));
                flow.set.extend(a.set.intersection(&b.set));
            }
            _ => {}
        }
        flow
    }
    fn end_of_loop(&mut self, start: usize, carried: BTreeSet<Reg>) {
        self.position += 1;
        self.loops.push(Loop { range: Range { first: start, last: self.position }, carried });
    }
}
