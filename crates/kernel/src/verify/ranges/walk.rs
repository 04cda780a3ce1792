//! How a walk goes through branches and loops.

use super::super::layout::{Layout, Point, has_point};
use super::super::types::each_inside;
use super::values::{Test, Value, Values};
use crate::ir::{Block, Ins, Operand, Reg};

/// A walk over a function in the order of its text.
pub(in crate::verify) trait Walk<'a> {
    fn values(&mut self) -> &mut Values<'a>;
    /// Whether the program has stopped on this way.
    fn ended(&mut self) -> &mut bool;
    fn layout(&self) -> &Layout;
    /// Goes through an instruction.
    fn step(&mut self, ins: &'a Ins, point: Point);
    /// The end of an arm of a branch: what is held there is still known.
    fn arm_ends(&mut self, _: &'a Ins) {}
    /// An arm that no run comes into: it is not gone through.
    fn passes_by(&mut self, _: &'a Block) {}

    fn block(&mut self, block: &'a Block, id: u32) {
        let mut at = self.layout().blocks[id as usize].first;
        for ins in block {
            if *self.ended() {
                return;
            }
            let point = if has_point(ins) { self.layout().points[at] } else { Point::default() };
            at += usize::from(has_point(ins));
            self.step(ins, point);
        }
    }
    fn branch(&mut self, ins: &'a Ins, (condition, arms): (Operand, [&'a Block; 2]), ids: [u32; 2]) {
        let test = self.values().test(condition);
        if let Test::Known(holds) = *test {
            let k = usize::from(!holds);
            self.passes_by(arms[1 - k]);
            return self.block(arms[k], ids[k]);
        }
        let [(then, stopped), (otherwise, stops)] = [0, 1].map(|k| {
            let (begin, known) = (self.values().open(), self.values().begin());
            self.values().learn(&test, k == 0);
            self.block(arms[k], ids[k]);
            if !*self.ended() {
                self.arm_ends(ins);
            }
            self.values().end(known);
            (self.values().close(begin), std::mem::take(self.ended()))
        });
        match (stopped, stops) {
            (true, true) => *self.ended() = true,
            (true, false) => self.after_other(&test, false, otherwise),
            (false, true) => self.after_other(&test, true, then),
            (false, false) => self.values().meet(then, otherwise),
        }
    }
    /// One arm stops the program: what follows is behind the other one.
    fn after_other(&mut self, test: &Test, holds: bool, values: Vec<(Reg, Value)>) {
        self.values().learn(test, holds);
        self.values().take(values);
    }
}

/// All registers that an instruction with blocks sets.
pub(in crate::verify) fn all_sets(ins: &Ins) -> Vec<Reg> {
    let mut sets: Vec<Reg> = ins.sets().to_vec();
    each_inside(ins, &mut |ins| sets.extend(ins.sets()));
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// The blocks of a loop, by number.
pub(in crate::verify) fn blocks_of(ins: &Ins, point: Point) -> Vec<u32> {
    if let Ins::While { .. } = ins { point.blocks.to_vec() } else { vec![point.blocks[1]] }
}
