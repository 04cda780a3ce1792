//! Copies that are not needed: `t = ..; s = t` becomes `s = ..` where nothing else reads `t` and nothing between uses `s`; also
//! where `t` is set in both arms of branches.
//!
//! Loops leave such copies at the ends of their bodies. For lanes it is right because kernels do the active lanes exactly.

use crate::uses::{Counts, mentions};
use pullback_base::index::Index;
use pullback_kernel::{Block, Function, Ins, Operand, Reg};

/// How far back the place is looked for where the value is made: more would be slow for long blocks.
const WINDOW: usize = 200;

/// Removes the copies of a function.
pub(crate) fn coalesce(f: &mut Function) {
    let mut counts = Counts::of(f);
    let mut body = std::mem::take(&mut f.body);
    in_block(&mut body, f, &mut counts);
    f.body = body;
}

fn in_block(block: &mut Block, f: &Function, counts: &mut Counts) {
    for ins in block.iter_mut() {
        for inner in ins.blocks_mut() {
            in_block(inner, f, counts);
        }
    }
    let mut kept = Block::with_capacity(block.len());
    for ins in std::mem::take(block) {
        kept.push(ins);
        if remove(&mut kept, f, counts) {
            kept.pop();
        }
    }
    *block = kept;
}

/// Gives what is copied by the last instruction the register that it is copied to; whether that was possible.
fn remove(block: &mut [Ins], f: &Function, counts: &mut Counts) -> bool {
    let Some((Ins::Set { to, value: Operand::Reg(from) }, before)) = block.split_last_mut() else {
        return false;
    };
    let (to, from) = (*to, *from);
    if counts.reads[from] != 1 || f.regs[from].ty != f.regs[to].ty {
        return false;
    }
    let first = before.len().saturating_sub(WINDOW);
    let near = &mut before[first..];
    let Some(sets) = made_within(near, from, to) else { return false };
    // Not where it is set elsewhere too.
    if sets != counts.sets[from] {
        return false;
    }
    rename(near, from, to);
    counts.sets[to] += sets - 1;
    (counts.sets[from], counts.reads[from]) = (0, 0);
    true
}

/// How often a block sets `from`: on every way through it once, in a way that lets it set `to` instead, which nothing behind that
/// place uses. `None`: not so.
fn made_within(block: &[Ins], from: Reg, to: Reg) -> Option<u32> {
    for ins in block.iter().rev() {
        match ins {
            Ins::If { then, otherwise, .. } if mentions(ins, from) => {
                return Some(made_within(then, from, to)? + made_within(otherwise, from, to)?);
            }
            _ if ins.sets() == [from] => return can_set_another(ins).then_some(1),
            _ if mentions(ins, to) => return None,
            _ => {}
        }
    }
    None
}

/// Lets what [`made_within`] found set `to`. Copies of `to` to itself are left, and are nothing in bytecode.
fn rename(block: &mut [Ins], from: Reg, to: Reg) {
    for ins in block.iter_mut().rev() {
        if ins.sets() == [from] {
            set_another(ins, to);
            return;
        }
        if mentions(ins, from) {
            return ins.blocks_mut().into_iter().for_each(|b| rename(b, from, to));
        }
    }
}

/// Whether an instruction sets a register at its end, which may be another one. Not an allocation: its register names the place in the
/// source.
fn can_set_another(ins: &Ins) -> bool {
    set_another(&mut ins.clone(), Reg::new(0))
}

/// Makes an instruction set another register, if it may.
fn set_another(ins: &mut Ins, new: Reg) -> bool {
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
