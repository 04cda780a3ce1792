//! Lanes that are neighbours in memory need no copy there: an instruction reads them where they are, or writes them where they
//! are to be.

use crate::code::{At, Op};
use crate::translate::{Translator, shift};
use crate::uses::reads;
use pullback_kernel::{Ins, Operand, Reg, Ty};
use pullback_prim::{Op as PrimOp, Prim};

/// How far ahead the reads of a register are looked for.
const WINDOW: usize = 100;
/// How many instructions on words may lie between what makes lanes and what stores them.
const BETWEEN: usize = 4;

impl Translator<'_, '_> {
    /// Whether lanes are neighbours.
    pub(crate) fn is_near(&self, index: Operand, stride: Operand) -> bool {
        stride.as_i64() == Some(1) && !self.is_lanes(index)
    }

    /// Whether all that reads the lanes in `to` are kernels that come before memory could change. `rest`: what follows the load.
    pub(crate) fn may_stay(&self, to: Reg, rest: &[Ins]) -> bool {
        let mut left = self.counts.reads[to];
        if self.counts.sets[to] != 1 {
            return false;
        }
        for ins in rest.iter().take(WINDOW) {
            if left == 0 {
                return true;
            }
            let mut found = 0;
            reads(ins, &mut |r| found += u32::from(r == to));
            match ins {
                Ins::Prim { prim, args, .. } if found == 0 || self.has_kernel(*prim, args) => left -= found,
                Ins::Load { .. }
                | Ins::LoadLanes { .. }
                | Ins::Offset { .. }
                | Ins::Alloc { .. }
                | Ins::FoldLanes { .. }
                | Ins::Lane { .. }
                | Ins::LaneNumber { .. }
                | Ins::Mark { .. }
                | Ins::Fail { .. }
                | Ins::Set { .. }
                    if found == 0 => {}
                _ => return false,
            }
        }
        left == 0
    }
    /// Whether a primitive with lanes among its arguments is one call of a kernel.
    fn has_kernel(&self, prim: Prim, args: &[Operand]) -> bool {
        let chooses = matches!(prim, Prim::Op(PrimOp::Select, _)) && !self.is_lanes(args[0]);
        !chooses && self.chosen(prim, &self.sides(args)).is_some()
    }
    /// Lanes stay where they are.
    pub(crate) fn view(&mut self, to: Reg, pointer: Operand, index: Operand) {
        let (register, ty) = (self.places[to], self.f.regs[to].ty);
        let (pointer, index) = (self.at(pointer), self.at(index));
        let word = self.next_view;
        self.next_view += 8;
        self.views.insert(to, word);
        self.emit(Op::View { shift: shift(ty), to: word, register, pointer, index });
    }

    /// Lets the kernel that makes lanes write them where they are stored, if they are only read for that. The kernel has no
    /// arguments in memory, which might overlap.
    pub(crate) fn made_in_place(&mut self, pointer: Operand, index: Operand, value: Operand, ty: Ty) -> bool {
        let Operand::Reg(r) = value else { return false };
        if !self.is_lanes(value) || self.counts.reads[r] != 1 || self.counts.sets[r] != 1 {
            return false;
        }
        let made = self.places[r];
        let mut set: Vec<At> = Vec::new();
        for k in (self.barrier..self.out.ops.len()).rev().take(BETWEEN + 1) {
            match self.out.ops[k] {
                Op::AddI64 { to, .. }
                | Op::SubI64 { to, .. }
                | Op::MulI64 { to, .. }
                | Op::MulAddI64 { to, .. } => {
                    set.push(to);
                }
                Op::ApplyLanes { kernel, to, a, b, c } if to == made => {
                    if [a, b, c].iter().any(|x| set.contains(x)) {
                        return false;
                    }
                    self.out.ops.remove(k);
                    let (pointer, index) = (self.at(pointer), self.at(index));
                    self.emit(Op::ApplyTo { kernel, shift: shift(ty), a, b, c, pointer, index });
                    return true;
                }
                _ => return false,
            }
        }
        false
    }
}
