//! Which registers and constants instructions read.

use pullback_base::index::IndexVec;
use pullback_kernel::{Function, Ins, Operand, Reg, walk};

/// Shows the operands that an instruction itself reads, not those of the blocks inside.
pub(crate) fn operands(ins: &Ins, f: &mut impl FnMut(Operand)) {
    let mut all = |operands: &[Operand]| operands.iter().for_each(|a| f(*a));
    match ins {
        Ins::Set { value, .. } => all(&[*value]),
        Ins::Prim { args, .. } | Ins::Call { args, .. } | Ins::Chunks { args, .. } => all(args),
        Ins::Load { pointer, index, .. } => all(&[*pointer, *index]),
        Ins::Store { pointer, index, value, .. } | Ins::Accumulate { pointer, index, value, .. } => {
            all(&[*pointer, *index, *value]);
        }
        // What is said about room is not read.
        Ins::Offset { pointer, index, .. } => all(&[*pointer, *index]),
        Ins::Alloc { count, .. } => all(&[*count]),
        Ins::Mark { .. } | Ins::LaneNumber { .. } | Ins::Clock { .. } => {}
        Ins::Release { mark } => all(&[*mark]),
        Ins::Fill { pointer, count, value, .. } => all(&[*pointer, *count, *value]),
        Ins::Copy { to, from, count, .. } => all(&[*to, *from, *count]),
        Ins::For { from, to, .. } | Ins::Lanes { from, to, .. } => all(&[*from, *to]),
        Ins::LoadLanes { pointer, index, stride, mask, .. } => {
            all(&[*pointer, *index, *stride]);
            all(mask.as_slice());
        }
        Ins::StoreLanes { pointer, index, stride, value, mask, .. }
        | Ins::AccumulateLanes { pointer, index, stride, value, mask, .. } => {
            all(&[*pointer, *index, *stride, *value]);
            all(mask.as_slice());
        }
        Ins::FoldLanes { neutral, from, mask, .. } => {
            all(&[Operand::Const(*neutral), *from]);
            all(mask.as_slice());
        }
        Ins::Lane { from, .. } => all(&[*from]),
        Ins::While { test, .. } => all(&[*test]),
        Ins::If { condition, .. } => all(&[*condition]),
        Ins::Fail { condition, values, .. } => {
            all(&[*condition]);
            all(values);
        }
    }
}

/// Shows the registers that an instruction reads itself.
pub(crate) fn reads(ins: &Ins, f: &mut impl FnMut(Reg)) {
    operands(ins, &mut |a| {
        if let Operand::Reg(r) = a {
            f(r);
        }
    });
}

/// Shows the registers that an instruction or one inside it reads or sets.
pub(crate) fn mentioned(ins: &Ins, f: &mut impl FnMut(Reg)) {
    ins.sets().iter().copied().for_each(&mut *f);
    reads(ins, f);
    ins.blocks().into_iter().for_each(|block| block.iter().for_each(|ins| mentioned(ins, f)));
}

/// Whether an instruction or one inside it reads or sets a register.
pub(crate) fn mentions(ins: &Ins, r: Reg) -> bool {
    let mut found = false;
    mentioned(ins, &mut |x| found |= x == r);
    found
}

/// How often registers are set and read.
pub(crate) struct Counts {
    pub(crate) sets: IndexVec<Reg, u32>,
    pub(crate) reads: IndexVec<Reg, u32>,
}

impl Counts {
    /// Those of a function.
    pub(crate) fn of(f: &Function) -> Counts {
        let none = || f.regs.iter().map(|_| 0).collect();
        let mut counts = Counts { sets: none(), reads: none() };
        f.params.iter().for_each(|r| counts.sets[*r] += 1);
        f.results.iter().for_each(|r| counts.reads[*r] += 1);
        walk(&f.body, &mut |ins| {
            ins.sets().iter().for_each(|&r| counts.sets[r] += 1);
            reads(ins, &mut |r| counts.reads[r] += 1);
        });
        counts
    }
}
