//! Registers that code mentions, numbered in the order of their first mention.
//!
//! Passes declare registers for code that they try and then refuse, and functions of parts begin with all registers of the whole. What nobody
//! mentions costs whoever keeps a table of registers: the executors, and the search for functions that are alike.
//!
//! Guarantees: the same code but for the numbers of registers. All registers are mentioned, but for those of memory that iterations own: after
//! them, since the plan of memory asks for their facts ([`Plan::as_scheduled`](crate::Plan::as_scheduled)).

use super::distribution::rename_as;
use super::pipeline::Step;
use super::work::Work;
use crate::ir::{Block, Ins, Order, Reg};
use pullback_base::index::{Index, IndexVec};

/// Drops registers that no instruction mentions.
pub(super) const STEP: Step = Step {
    name: "register-renumbering",
    optional: true,
    parts: &[],
    does: "drops registers that no instruction mentions",
    assumes: "code that no pass rewrites any more",
    guarantees: "the same code but for the numbers of registers",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let f = &mut w.f;
    let mut mentioned = Mentioned { numbers: f.regs.iter().map(|_| None).collect(), registers: Vec::new() };
    f.params.iter().for_each(|r| mentioned.add(*r));
    mentioned.block(&f.body);
    f.results.iter().for_each(|r| mentioned.add(*r));
    f.regs.ids().filter(|r| f.regs[*r].facts.owned.is_some()).for_each(|r| mentioned.add(r));
    let Mentioned { registers, numbers } = mentioned;
    if registers.iter().copied().eq(f.regs.ids()) {
        return false;
    }
    f.regs = registers.iter().map(|r| f.regs[*r].clone()).collect();
    let number = |r: Reg| numbers[r].unwrap_or(r);
    f.params.iter_mut().chain(&mut f.results).for_each(|r| *r = number(*r));
    rename_as(&mut f.body, &number);
    true
}

/// Registers in the order of their first mention.
struct Mentioned {
    registers: Vec<Reg>,
    /// The place of each register in that order.
    numbers: IndexVec<Reg, Option<Reg>>,
}

impl Mentioned {
    fn add(&mut self, r: Reg) {
        if self.numbers[r].is_none() {
            self.numbers[r] = Some(Reg::new(self.registers.len()));
            self.registers.push(r);
        }
    }
    /// A loop reads what its folds read.
    fn block(&mut self, block: &Block) {
        for ins in block {
            ins.reads(&mut |a| a.as_reg().into_iter().for_each(|r| self.add(r)));
            self.set(ins);
            ins.blocks().into_iter().for_each(|b| self.block(b));
        }
    }
    fn set(&mut self, ins: &Ins) {
        ins.sets().iter().for_each(|r| self.add(*r));
        if let Ins::For { order: Order::Any(folds), .. } = ins {
            for fold in folds {
                fold.state.iter().chain(&fold.left).chain(&fold.right).for_each(|r| self.add(*r));
                self.all_set(&fold.combine);
            }
        }
    }
    fn all_set(&mut self, block: &Block) {
        for ins in block {
            self.set(ins);
            ins.blocks().into_iter().for_each(|b| self.all_set(b));
        }
    }
}
