//! Random blocks that set, add to and load elements.

use super::numbers::Numbers;
use pullback_base::index::IndexVec;
use pullback_kernel::{Block, Ins, Operand, Order, Reg, RegInfo, Ty};
use pullback_prim::{Scalar, ScalarValue};

pub(crate) const F64: Ty = Ty::Scalar(Scalar::F64);

pub(crate) fn number(x: i64) -> Operand {
    Operand::Const(ScalarValue::F64(x as f64))
}

/// What is at hand while a block is written.
pub(crate) struct Written {
    pub(crate) regs: IndexVec<Reg, RegInfo>,
    pub(crate) numbers: Numbers,
    /// Pointers, and how many elements are there.
    pub(crate) pointers: Vec<(Reg, i64)>,
    pub(crate) values: Vec<Operand>,
    /// A number below three.
    pub(crate) moved: Reg,
}

impl Written {
    /// The beginning of a function of a number below three.
    pub(crate) fn new(seed: u64) -> Written {
        let mut regs = IndexVec::new();
        let moved = regs.push(RegInfo::new(Ty::I64, "moved"));
        let values = vec![number(1), number(5)];
        Written { regs, numbers: Numbers(seed), pointers: Vec::new(), values, moved }
    }
    pub(crate) fn reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(RegInfo::new(ty, "r"))
    }
    pub(crate) fn value(&mut self) -> Operand {
        let k = self.numbers.below(self.values.len());
        self.values[k]
    }
    /// One of the first elements; one place in so many is at a distance that is not known.
    pub(crate) fn place(&mut self, unknown: usize) -> (Operand, Operand) {
        let (pointer, room) = self.pointers[self.numbers.below(self.pointers.len())];
        let index = match self.numbers.below(unknown) {
            0 if room >= 3 => self.moved.into(),
            _ => Operand::i64(self.numbers.below(room.min(3) as usize) as i64),
        };
        (pointer.into(), index)
    }
    /// Sets some elements at once, in one of two ways.
    pub(crate) fn fill(&mut self, out: &mut Block) {
        let (to, room) = self.pointers[self.numbers.below(self.pointers.len())];
        let count = Operand::i64(room.min(3));
        let (pointer, value) = (to.into(), number(self.numbers.below(2) as i64));
        if self.numbers.below(2) == 0 {
            return out.push(Ins::Fill { pointer, count, value, ty: F64 });
        }
        let i = self.reg(Ty::I64);
        let body = vec![Ins::Store { pointer, index: i.into(), value, ty: F64 }];
        out.push(Ins::For { i, from: Operand::i64(0), to: count, body, order: Order::Given });
    }
    /// Loads an element, which is a value from then on.
    pub(crate) fn load(&mut self, (pointer, index): (Operand, Operand), out: &mut Block) {
        let to = self.reg(F64);
        out.push(Ins::Load { to, pointer, index });
        self.values.push(to.into());
    }
    /// A pointer to memory, or to a row of it, and one that begins one or two elements, or `moved`, later.
    pub(crate) fn points(&mut self, row: Reg, room: i64, out: &mut Block) {
        let part = self.reg(Ty::Pointer);
        let index = match self.numbers.below(3) {
            0 => self.moved.into(),
            k => Operand::i64(k as i64),
        };
        out.push(Ins::Offset { to: part, pointer: row.into(), index, ty: F64, room: None });
        self.pointers.extend([(row, room), (part, room - 2)]);
    }
}
