//! What a block reads, sets and writes.

use crate::ir::{Fold, Function, Ins, Operand, Order, Reg};
use pullback_base::Table;

/// How often registers are read and set, in blocks inside too. States of folds are read by their loop.
#[derive(Default)]
pub(super) struct Uses {
    reads: Table<Reg, usize>,
    sets: Table<Reg, usize>,
    /// The registers that are set, in the order in which they are first.
    set: Vec<Reg>,
}

impl Uses {
    pub(super) fn of(block: &[Ins]) -> Uses {
        let mut uses = Uses::default();
        uses.block(block);
        uses
    }
    /// Of a function; its parameters and results are read by others.
    pub(super) fn of_function(f: &Function) -> Uses {
        Uses::within(f, &f.body)
    }
    /// The same with another body.
    pub(super) fn within(f: &Function, body: &[Ins]) -> Uses {
        let mut uses = Uses { reads: Table::with_room(f.regs.len()), ..Uses::default() };
        uses.sets = Table::with_room(f.regs.len());
        uses.block(body);
        f.params.iter().chain(&f.results).for_each(|r| uses.read(*r));
        uses
    }
    /// The registers that are set, in the order of their numbers.
    pub(super) fn set(&self) -> Vec<Reg> {
        let mut set = self.set.clone();
        set.sort();
        set
    }
    /// Whether a register is read or set.
    pub(super) fn mentions(&self, r: Reg) -> bool {
        self.reads(r) + self.sets(r) > 0
    }
    fn read(&mut self, r: Reg) {
        *self.reads.or_insert_with(r, || 0) += 1;
    }
    fn block(&mut self, block: &[Ins]) {
        for ins in block {
            self.ins(ins);
            ins.blocks().into_iter().for_each(|b| self.block(b));
        }
    }
    fn ins(&mut self, ins: &Ins) {
        ins.reads(&mut |a| a.as_reg().into_iter().for_each(|r| self.read(r)));
        let own = ins.sets();
        let of_folds = folds(ins).iter().flat_map(|f| {
            let combine = f.combine.iter().flat_map(Ins::sets).copied();
            f.left.iter().chain(&f.right).copied().chain(combine)
        });
        for r in own.iter().copied().chain(of_folds) {
            let times = self.sets.or_insert_with(r, || 0);
            *times += 1;
            if *times == 1 {
                self.set.push(r);
            }
        }
        folds(ins).iter().flat_map(|f| &f.state).for_each(|r| self.read(*r));
    }
    pub(super) fn reads(&self, r: Reg) -> usize {
        self.reads.get(&r).copied().unwrap_or(0)
    }
    pub(super) fn sets(&self, r: Reg) -> usize {
        self.sets.get(&r).copied().unwrap_or(0)
    }
}

fn folds(ins: &Ins) -> &[Fold] {
    match ins {
        Ins::For { order: Order::Any(folds), .. } => folds,
        _ => &[],
    }
}

/// Whether an instruction, or one inside, reads a register.
fn reads(ins: &Ins, r: Reg) -> bool {
    let mut found = folds(ins).iter().any(|f| f.state.contains(&r));
    ins.reads(&mut |a| found |= a == Operand::Reg(r));
    found || ins.blocks().into_iter().flatten().any(|ins| reads(ins, r))
}

/// Whether an instruction, or one inside, reads or sets a register.
fn mentions(ins: &Ins, r: Reg) -> bool {
    let sets = |f: &Fold| {
        f.left.contains(&r) || f.right.contains(&r) || f.combine.iter().any(|ins| ins.sets().contains(&r))
    };
    let mut found = ins.sets().contains(&r);
    found |= folds(ins).iter().any(|f| f.state.contains(&r) || sets(f));
    ins.reads(&mut |a| found |= a == Operand::Reg(r));
    found || ins.blocks().into_iter().flatten().any(|ins| mentions(ins, r))
}

/// Whether the block sets a register before it reads it; `None`: it does neither.
pub(super) fn sets_first(block: &[Ins], r: Reg) -> Option<bool> {
    for (k, ins) in block.iter().enumerate() {
        if !mentions(ins, r) {
            continue;
        }
        let mut first = folds(ins).iter().any(|f| f.state.contains(&r));
        ins.reads(&mut |a| first |= a == Operand::Reg(r));
        if first {
            return Some(false);
        }
        if ins.sets().contains(&r) {
            return Some(true);
        }
        return Some(match ins {
            Ins::If { then, otherwise, .. } => match (sets_first(then, r), sets_first(otherwise, r)) {
                (Some(false), _) | (_, Some(false)) => false,
                (Some(true), Some(true)) => true,
                // Set in one arm only: nobody else may look.
                _ => sets_first(&block[k + 1..], r) != Some(false),
            },
            // The body may run no time at all: nobody else may look.
            _ => {
                let here = ins.blocks().into_iter().all(|b| sets_first(b, r) != Some(false));
                here && !block[k + 1..].iter().any(|ins| reads(ins, r))
            }
        });
    }
    None
}

/// Whether an instruction, or one inside, writes memory.
pub(super) fn writes(ins: &Ins) -> bool {
    let here = matches!(
        ins,
        Ins::Store { .. }
            | Ins::StoreLanes { .. }
            | Ins::Accumulate { .. }
            | Ins::AccumulateLanes { .. }
            | Ins::Fill { .. }
            | Ins::Copy { .. }
            | Ins::Call { .. }
            | Ins::Chunks { .. }
    );
    here || ins.blocks().into_iter().flatten().any(writes)
}
