//! Errors that are put into kernel IR from outside, for tests of what compares its values.

use pullback_kernel::{Block, Ins, Operand};
use pullback_prim::{Op, Prim};

/// An error in one instruction.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// A store is left out, or an addition to memory.
    Lost,
    /// A loop begins one iteration late.
    Late,
    /// A difference is taken the other way round.
    Exchanged,
    /// `<=` and `<` are taken for each other.
    Closed,
    /// What is added to memory replaces it.
    Replaced,
}

impl Error {
    /// All kinds.
    pub const ALL: [Error; 5] = [Error::Lost, Error::Late, Error::Exchanged, Error::Closed, Error::Replaced];

    /// The instruction with the error, as none or one; `None`: the error is not one of such instructions.
    fn made(self, ins: &Ins) -> Option<Option<Ins>> {
        match (self, ins.clone()) {
            (Error::Lost, Ins::Store { .. } | Ins::StoreLanes { .. }) => Some(None),
            (Error::Lost, Ins::Accumulate { .. } | Ins::AccumulateLanes { .. }) => Some(None),
            (Error::Late, Ins::For { i, from, to, body, order }) => {
                let from = Operand::i64(from.as_i64()? + 1);
                Some(Some(Ins::For { i, from, to, body, order }))
            }
            (Error::Late, Ins::Lanes { i, from, to, lanes, body }) => {
                let from = Operand::i64(from.as_i64()? + 1);
                Some(Some(Ins::Lanes { i, from, to, lanes, body }))
            }
            (Error::Exchanged, Ins::Prim { to, prim: prim @ Prim::Op(Op::Sub, s), args }) if s.is_float() => {
                Some(Some(Ins::Prim { to, prim, args: vec![args[1], args[0]] }))
            }
            (Error::Closed, Ins::Prim { to, prim: Prim::Op(op @ (Op::Lt | Op::Le), s), args }) => {
                let op = if op == Op::Lt { Op::Le } else { Op::Lt };
                Some(Some(Ins::Prim { to, prim: Prim::Op(op, s), args }))
            }
            (Error::Replaced, Ins::Accumulate { pointer, index, value, ty, .. }) => {
                Some(Some(Ins::Store { pointer, index, value, ty }))
            }
            (Error::Replaced, Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, .. }) => {
                Some(Some(Ins::StoreLanes { pointer, index, stride, value, ty, mask }))
            }
            _ => None,
        }
    }
    /// Puts the error into instruction `k` of those that can have it; whether there is one.
    pub fn put(self, block: &mut Block, mut k: usize) -> bool {
        self.put_into(block, &mut k)
    }
    fn put_into(self, block: &mut Block, k: &mut usize) -> bool {
        for at in 0..block.len() {
            if let Some(made) = self.made(&block[at]) {
                if *k == 0 {
                    block.splice(at..=at, made);
                    return true;
                }
                *k -= 1;
            }
            if block[at].blocks_mut().into_iter().any(|inner| self.put_into(inner, k)) {
                return true;
            }
        }
        false
    }
}
