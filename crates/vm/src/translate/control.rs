//! Loops, jumps and checks.

use super::*;

impl Translator<'_, '_> {
    pub(super) fn counted(&mut self, i: Reg, from: Operand, to: Operand, body: &Block, is_lanes: bool) {
        let (i, from, to) = (self.places[i], self.at(from), self.at(to));
        let end = self.next_end;
        self.next_end += 8;
        let start = self.here();
        self.emit(if is_lanes {
            Op::LanesStart { i, from, to, end, exit: 0 }
        } else {
            Op::ForStart { i, from, to, end, exit: 0 }
        });
        let first = self.label();
        let around = std::mem::take(&mut self.work);
        self.block(body);
        let work = self.work + 1;
        self.emit(if is_lanes {
            Op::LanesNext { i, end, body: first, work }
        } else {
            Op::ForNext { i, end, body: first, work }
        });
        self.work = around;
        self.land(start);
    }
    /// A jump that is taken if a condition does not hold; where to is filled in later.
    pub(super) fn jump_if_not(&mut self, condition: Operand) -> u32 {
        let at = self.at(condition);
        let joined = if self.is_read_once(condition) { self.last() } else { None };
        let jump = match joined {
            Some(Op::LtI64 { to, a, b }) if to == at => Op::JumpIfNotLtI64 { a, b, to: 0 },
            Some(Op::LeI64 { to, a, b }) if to == at => Op::JumpIfNotLeI64 { a, b, to: 0 },
            Some(Op::LtF64 { to, a, b }) if to == at => Op::JumpIfNotLtF64 { a, b, to: 0 },
            Some(Op::LeF64 { to, a, b }) if to == at => Op::JumpIfNotLeF64 { a, b, to: 0 },
            Some(Op::EqWord { to, a, b }) if to == at => Op::JumpIfNotEq { a, b, to: 0 },
            Some(Op::NeWord { to, a, b }) if to == at => Op::JumpIfEq { a, b, to: 0 },
            Some(Op::NotBool { to, a }) if to == at => Op::JumpIf { condition: a, to: 0 },
            _ => {
                let jump = self.here();
                self.emit(Op::JumpIfNot { condition: at, to: 0 });
                return jump;
            }
        };
        self.out.ops.pop();
        let here = self.here();
        self.emit(jump);
        here
    }
    /// A jump leads here.
    pub(super) fn land(&mut self, jump: u32) {
        let here = self.label();
        match &mut self.out.ops[jump as usize] {
            Op::Jump { to }
            | Op::JumpIf { to, .. }
            | Op::JumpIfNot { to, .. }
            | Op::JumpIfNotLtI64 { to, .. }
            | Op::JumpIfNotLeI64 { to, .. }
            | Op::JumpIfNotLtF64 { to, .. }
            | Op::JumpIfNotLeF64 { to, .. }
            | Op::JumpIfNotEq { to, .. }
            | Op::JumpIfEq { to, .. }
            | Op::ForStart { exit: to, .. }
            | Op::LanesStart { exit: to, .. } => *to = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }
    pub(super) fn fail(&mut self, condition: Operand, site: u32) {
        let at = self.at(condition);
        if self.is_lanes(condition) {
            return self.emit(Op::FailLanes { condition: at, site });
        }
        match self.last() {
            Some(Op::NotBool { to, a }) if to == at && self.is_read_once(condition) => {
                self.out.ops.pop();
                self.emit(Op::FailIfNot { condition: a, site });
            }
            Some(Op::OrWord { to, a, b }) if to == at && self.is_read_once(condition) => {
                match self.outside(a, b) {
                    Some((index, size)) => {
                        self.out.ops.truncate(self.out.ops.len() - 3);
                        self.emit(Op::FailOutside { index, size, site });
                    }
                    None => self.emit(Op::Fail { condition: at, site }),
                }
            }
            _ => self.emit(Op::Fail { condition: at, site }),
        }
    }
    /// Index and size, if the last three instructions are `a = index < 0; b = size <= index; a | b`, and nobody else reads `a` and `b`.
    pub(super) fn outside(&self, a: At, b: At) -> Option<(At, At)> {
        let before = &self.out.ops[self.barrier..];
        let [.., Op::LtI64 { to: low, a: index, b: zero }, Op::LeI64 { to: high, a: size, b: same }, _] =
            *before
        else {
            return None;
        };
        let once = |at: At| self.out.register(at).is_some_and(|r| self.counts.reads[r] == 1);
        let fits = (low, high) == (a, b) && index == same && zero == self.constant(0);
        (fits && once(a) && once(b)).then_some((index, size))
    }
}
