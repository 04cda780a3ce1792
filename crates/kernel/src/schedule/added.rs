//! Memory from outside that a loop adds to: which it is, how large it is, and whether it is used in another way.
//!
//! Pointers are followed to the argument or allocation that they point into. A loop whose additions cannot be followed so has no
//! answer, and is not cut into parts.

use super::chunks::{Known, Scheduled};
use crate::ir::{Block, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::walk::walk;
use pullback_base::index::{IdMap, IdSet, IndexVec};

/// Memory: how many elements of which type.
pub(super) type Sizes = IdMap<Reg, (Operand, Ty)>;
/// Pointers that are offsets: pointer, index, type.
pub(super) type Offsets = IdMap<Reg, (Operand, Operand, Ty)>;

/// Memory from outside that a loop adds to.
#[derive(Default)]
pub(super) struct Added {
    /// How many elements it has, of which type, if that is known.
    pub(super) roots: IdMap<Reg, Option<(Operand, Ty)>>,
}

impl Added {
    /// All of it, if it is known how large it is.
    pub(super) fn sizes(&self) -> Option<Sizes> {
        self.roots.iter().map(|(r, size)| size.map(|size| (*r, size))).collect()
    }
    /// What is known.
    pub(super) fn copied(&self) -> impl Iterator<Item = (Reg, Operand, Ty)> {
        self.roots.iter().filter_map(|(r, size)| size.map(|(count, ty)| (*r, count, ty)))
    }
    /// Lets code add to it while other parts do.
    pub(super) fn make_atomic(&self, code: &mut Block, known: &Known<'_>) {
        for ins in code {
            ins.blocks_mut().into_iter().for_each(|b| self.make_atomic(b, known));
            let (Ins::Accumulate { pointer, atomic, .. } | Ins::AccumulateLanes { pointer, atomic, .. }) =
                ins
            else {
                continue;
            };
            let root = pointer.as_reg().and_then(|r| known.roots.get(r).copied().flatten());
            *atomic = root.is_some_and(|root| self.roots.contains_key(&root));
        }
    }
}

/// The memory from outside that the loop adds to, but for that of which each iteration has a row to itself. `None`: it is not known which, or it is used in
/// another way too.
pub(super) fn added(l: &Scheduled<'_>, known: &Known<'_>) -> Option<Added> {
    let inside = defined(&l.code);
    let (mut out, mut refused, mut other) = (IdMap::new(), false, IdSet::new());
    walk(&l.code, &mut |ins| {
        let target = match ins {
            Ins::Accumulate { pointer, .. } | Ins::AccumulateLanes { pointer, .. } => Some(*pointer),
            _ => None,
        };
        if let Some(pointer) = target {
            let root = pointer.as_reg().and_then(|r| known.roots.get(r).copied().flatten());
            match root {
                None => refused = true,
                Some(root) if inside.contains(&root) || known.apart.contains(&root) => {}
                Some(root) => {
                    out.insert(root, known.counts.get(&root).copied());
                }
            }
        } else if !matches!(ins, Ins::Offset { .. }) {
            ins.reads(&mut |a| {
                let root = a.as_reg().and_then(|r| known.roots.get(r).copied().flatten());
                other.extend(root);
            });
        }
    });
    let offset = |r: Reg| {
        let root = known.roots.get(r).copied().flatten();
        root.is_none_or(|root| !out.contains_key(&root) || way(r.into(), root, known.offsets).is_some())
    };
    let mut simple = true;
    reads(&l.code, &mut |r| simple &= inside.contains(&r) || offset(r));
    let mixed = out.keys().any(|root| other.contains(root));
    (!refused && !mixed && simple).then_some(Added { roots: out })
}

/// By which indices, of elements of which types, a pointer is computed from `root`, the last one first. `None`: not by offsets only.
pub(super) fn way(pointer: Operand, root: Reg, offsets: &Offsets) -> Option<Vec<(Operand, Ty)>> {
    let (mut at, mut out) = (pointer.as_reg()?, Vec::new());
    while at != root {
        let (from, index, ty) = *offsets.get(&at)?;
        out.push((index, ty));
        at = from.as_reg()?;
    }
    Some(out)
}

/// The allocations of a function with their sizes, and the pointers that are offsets. Only registers that are set once.
pub(super) fn pointers(
    block: &Block,
    defined: &IndexVec<Reg, usize>,
    regs: &IndexVec<Reg, RegInfo>,
) -> (Sizes, Offsets) {
    let fixed = |a: Operand| a.as_reg().is_none_or(|r| defined.get(r) == Some(&1));
    let (mut counts, mut offsets) = (IdMap::new(), IdMap::new());
    walk(block, &mut |ins| match ins {
        Ins::Alloc { to, count, ty } if fixed((*to).into()) && fixed(*count) => {
            counts.insert(*to, (*count, *ty));
        }
        Ins::Offset { to, pointer, index, ty, .. }
            if [(*to).into(), *pointer, *index].into_iter().all(fixed) && regs[*to].ty == Ty::Pointer =>
        {
            offsets.insert(*to, (*pointer, *index, *ty));
        }
        _ => {}
    });
    (counts, offsets)
}

/// Whether a block adds to memory.
pub(super) fn adds(block: &[Ins]) -> bool {
    let mut adds = false;
    walk(block, &mut |ins| adds |= matches!(ins, Ins::Accumulate { .. }));
    adds
}
/// Hands over the registers that a block reads.
pub(super) fn reads(block: &[Ins], f: &mut dyn FnMut(Reg)) {
    walk(block, &mut |ins| ins.reads(&mut |a| a.as_reg().into_iter().for_each(&mut *f)));
}
pub(super) fn defined(block: &[Ins]) -> IdSet<Reg> {
    let mut out = IdSet::new();
    walk(block, &mut |ins| {
        out.extend(ins.sets());
        if let Ins::For { order: Order::Any(folds), .. } = ins {
            for fold in folds {
                out.extend(fold.left.iter().chain(&fold.right));
                out.extend(defined(&fold.combine));
            }
        }
    });
    out
}
