//! Copies that are not needed: `t = ..; s = t` becomes `s = ..` where nothing else reads `t` and nothing between uses `s`.
//!
//! Loops leave such copies at the ends of their bodies. For lanes it is right because kernels do the active lanes exactly.

use crate::uses::{mentions, reads, walk};
use pullback_base::index::IndexVec;
use pullback_kernel::{Block, Function, Ins, Operand, Reg};

/// How far back the place is looked for where the value is made: more would be slow for long blocks.
const WINDOW: usize = 200;

/// How often registers are set and read.
struct Counts {
    sets: IndexVec<Reg, u32>,
    reads: IndexVec<Reg, u32>,
}

impl Counts {
    fn of(f: &Function) -> Counts {
        let mut counts = Counts { sets: IndexVec::new(), reads: IndexVec::new() };
        for _ in f.regs.iter() {
            counts.sets.push(0);
            counts.reads.push(0);
        }
        f.params.iter().for_each(|r| counts.sets[*r] += 1);
        f.results.iter().for_each(|r| counts.reads[*r] += 1);
        walk(&f.body, &mut |ins| {
            ins.sets().into_iter().for_each(|r| counts.sets[r] += 1);
            reads(ins, &mut |r| counts.reads[r] += 1);
        });
        counts
    }
}

/// Removes the copies of a function.
pub(crate) fn coalesce(f: &mut Function) {
    let counts = Counts::of(f);
    let mut body = std::mem::take(&mut f.body);
    in_block(&mut body, f, &counts);
    f.body = body;
}

fn in_block(block: &mut Block, f: &Function, counts: &Counts) {
    for ins in block.iter_mut() {
        match ins {
            Ins::For { body, .. } | Ins::Lanes { body, .. } => in_block(body, f, counts),
            Ins::While { condition, body, .. } => {
                in_block(condition, f, counts);
                in_block(body, f, counts);
            }
            Ins::If { then, otherwise, .. } => {
                in_block(then, f, counts);
                in_block(otherwise, f, counts);
            }
            _ => {}
        }
    }
    let mut k = 0;
    while k < block.len() {
        if remove(block, k, f, counts) {
            block.remove(k);
        } else {
            k += 1;
        }
    }
}

/// Gives what is copied by instruction `k` the register that it is copied to; whether that was possible.
fn remove(block: &mut Block, k: usize, f: &Function, counts: &Counts) -> bool {
    let Ins::Set { to, value: Operand::Reg(from) } = block[k] else { return false };
    if counts.sets[from] != 1 || counts.reads[from] != 1 || f.regs[from].ty != f.regs[to].ty {
        return false;
    }
    for j in (k.saturating_sub(WINDOW)..k).rev() {
        if block[j].sets() == [from] {
            return rename(&mut block[j], to);
        }
        if mentions(&block[j], to) {
            return false;
        }
    }
    false
}

/// Makes an instruction set another register, if it is one that sets a register at its end. Not an allocation: its register names the
/// place in the source.
fn rename(ins: &mut Ins, new: Reg) -> bool {
    match ins {
        Ins::Set { to, .. }
        | Ins::Prim { to, .. }
        | Ins::Load { to, .. }
        | Ins::Offset { to, .. }
        | Ins::LaneNumber { to }
        | Ins::LoadLanes { to, .. }
        | Ins::FoldLanes { to, .. }
        | Ins::Lane { to, .. } => {
            *to = new;
            true
        }
        _ => false,
    }
}
