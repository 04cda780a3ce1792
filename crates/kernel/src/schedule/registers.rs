//! How often registers are set, and where pointers point into: what nearly every pass asks first.

use crate::ir::{Block, Function, Ins, Operand, Reg, Ty};
use pullback_base::index::IndexVec;

/// How often each register is set, and where pointers that are set once point into.
pub(super) fn registers(f: &Function, body: &Block) -> (IndexVec<Reg, usize>, IndexVec<Reg, Option<Reg>>) {
    let mut defined: IndexVec<Reg, usize> = f.regs.iter().map(|_| 0).collect();
    let mut roots: IndexVec<Reg, Option<Reg>> = f.regs.iter().map(|_| None).collect();
    for p in &f.params {
        defined[*p] += 1;
        if f.regs[*p].ty == Ty::Pointer {
            roots[*p] = Some(*p);
        }
    }
    count(body, &mut defined);
    find_roots(body, &defined, &mut roots);
    (defined, roots)
}

fn count(block: &Block, defined: &mut IndexVec<Reg, usize>) {
    for ins in block {
        for &to in ins.sets() {
            defined[to] += 1;
        }
        ins.blocks().into_iter().for_each(|b| count(b, defined));
    }
}

pub(super) fn find_roots(
    block: &[Ins],
    defined: &IndexVec<Reg, usize>,
    roots: &mut IndexVec<Reg, Option<Reg>>,
) {
    for ins in block {
        match ins {
            Ins::Alloc { to, .. } if defined[*to] == 1 => roots[*to] = Some(*to),
            Ins::Offset { to, pointer: Operand::Reg(from), .. }
            | Ins::Set { to, value: Operand::Reg(from) }
                if defined[*to] == 1 =>
            {
                roots[*to] = roots[*from];
            }
            _ => {}
        }
        ins.blocks().into_iter().for_each(|b| find_roots(b, defined, roots));
    }
}
