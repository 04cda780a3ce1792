//! How a function uses its registers and memory, and which functions are parts of loops.

use super::Held;
use pullback_base::index::IndexVec;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Reg, walk};
use std::collections::BTreeSet;

/// What registers are, before any is set. Values are those that are set once, by an instruction that is no loop, and read only after that,
/// in the same block or inside; and those that the function does not mention, since parts of loops have the list of the function that they are from.
/// Cost: the size of the function.
pub(super) fn values(f: &Function) -> IndexVec<Reg, Held> {
    let mut v = Values { is: f.regs.iter().map(|_| Is::New).collect(), open: Vec::new() };
    f.params.iter().for_each(|r| v.set(*r));
    v.block(&f.body);
    f.results.iter().for_each(|r| v.read(*r));
    let held = |is: &Is| if *is == Is::Slot { Held::Slot } else { Held::Value(String::new()) };
    v.is.iter().map(held).collect()
}

/// What is known of a register.
#[derive(Clone, Copy, PartialEq)]
enum Is {
    /// It has not been seen.
    New,
    /// It has been set, in a block that is open.
    Open,
    /// It has been set, in a block that has ended.
    Shut,
    /// It needs a slot.
    Slot,
}

struct Values {
    is: IndexVec<Reg, Is>,
    /// What has been set in the blocks that are open, in this order.
    open: Vec<Reg>,
}

impl Values {
    fn set(&mut self, r: Reg) {
        if self.is[r] == Is::New {
            self.is[r] = Is::Open;
            self.open.push(r);
        } else {
            self.is[r] = Is::Slot;
        }
    }
    fn read(&mut self, r: Reg) {
        if self.is[r] != Is::Open {
            self.is[r] = Is::Slot;
        }
    }
    fn block(&mut self, block: &Block) {
        let before = self.open.len();
        for ins in block {
            ins.reads(&mut |a| a.as_reg().into_iter().for_each(|r| self.read(r)));
            let blocks = ins.blocks();
            let is_plain = blocks.is_empty();
            blocks.into_iter().for_each(|inner| self.block(inner));
            for r in ins.sets() {
                if is_plain { self.set(*r) } else { self.is[*r] = Is::Slot }
            }
        }
        for r in self.open.split_off(before) {
            if self.is[r] == Is::Open {
                self.is[r] = Is::Shut;
            }
        }
    }
}

/// How often each register is read in a function.
pub(super) fn reads(f: &Function) -> IndexVec<Reg, usize> {
    let mut out: IndexVec<Reg, usize> = f.regs.iter().map(|_| 0).collect();
    let mut count = |a: Operand| a.as_reg().into_iter().for_each(|r| out[r] += 1);
    walk(&f.body, &mut |ins| ins.reads(&mut count));
    f.results.iter().for_each(|r| count((*r).into()));
    out
}

/// Whether something in a block may write to memory.
pub(super) fn writes(block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |ins| found |= ins.blocks().is_empty() && !ins.only_sets());
    found
}

/// Whether there are calls and no loops.
pub(super) fn only_calls(block: &Block) -> bool {
    let (mut calls, mut loops) = (false, false);
    walk(block, &mut |ins| match ins {
        Ins::Call { .. } => calls = true,
        Ins::For { .. } | Ins::Lanes { .. } | Ins::While { .. } => loops = true,
        _ => {}
    });
    calls && !loops
}

/// The functions for parts of loops.
pub(crate) fn parts(module: &Module) -> BTreeSet<FunctionId> {
    let mut out = BTreeSet::new();
    for f in module.functions.iter() {
        walk(&f.body, &mut |ins| {
            if let Ins::Chunks { function, .. } = ins {
                out.insert(*function);
            }
        });
    }
    out
}
