//! Rows: which are worth a copy to where lanes lie side by side, and which could lie interleaved in the first place.

use crate::ir::{Block, Ins, Operand, Reg, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

/// Uses of pointers in the body of a loop.
#[derive(Debug, Default)]
pub(super) struct Uses {
    rows: IdMap<Reg, Row>,
}

#[derive(Debug, Default)]
struct Row {
    /// How many loops are around the place where it is made.
    depth: usize,
    /// Loads, and the most loops between the place where it is made and one of them.
    loads: usize,
    deepest: usize,
    /// Whether it is used in another way, or its memory is written in the body.
    other: bool,
}

impl Uses {
    /// Uses in a body; `root`: the memory that a pointer points into, if it is known.
    pub(super) fn of(body: &Block, root: &dyn Fn(Reg) -> Option<Reg>) -> Uses {
        let mut uses = Uses::default();
        let (mut written, mut anything) = (IdSet::new(), false);
        uses.block(body, 0, &mut |pointer| match pointer {
            Operand::Reg(r) => match root(r) {
                Some(root) => {
                    written.insert(root);
                }
                None => anything = true,
            },
            Operand::Const(_) | Operand::Null => {}
        });
        for (r, row) in uses.rows.iter_mut() {
            let is_written = root(*r).is_none_or(|root| written.contains(&root));
            row.other |= anything || is_written;
        }
        uses
    }
    /// Whether a row is only read, and elements of it more than once.
    pub(super) fn is_read_often(&self, row: Reg) -> bool {
        self.rows.get(&row).is_some_and(|r| !r.other && (r.deepest >= 2 || (r.deepest >= 1 && r.loads >= 2)))
    }

    fn block(&mut self, block: &Block, depth: usize, written: &mut dyn FnMut(Operand)) {
        for ins in block {
            self.ins(ins, depth, written);
            let inner = depth + usize::from(!matches!(ins, Ins::If { .. }));
            for block in ins.blocks() {
                self.block(block, inner, written);
            }
        }
    }
    fn ins(&mut self, ins: &Ins, depth: usize, written: &mut dyn FnMut(Operand)) {
        match ins {
            Ins::Offset { to, pointer, .. } => {
                self.rows.insert(*to, Row { depth, ..Row::default() });
                self.other(*pointer);
            }
            Ins::Load { pointer: Operand::Reg(r), .. } => {
                if let Some(row) = self.rows.get_mut(r) {
                    row.loads += 1;
                    row.deepest = row.deepest.max(depth - row.depth.min(depth));
                }
            }
            Ins::Store { pointer, value, ty, .. } => {
                written(*pointer);
                self.other(*pointer);
                if *ty == Ty::Pointer {
                    self.other(*value);
                }
            }
            Ins::Accumulate { pointer, .. } | Ins::Fill { pointer, .. } => {
                written(*pointer);
                self.other(*pointer);
            }
            Ins::Copy { to, from, .. } => {
                written(*to);
                self.other(*to);
                self.other(*from);
            }
            Ins::Set { value, .. } => self.other(*value),
            Ins::Call { args, .. } => args.iter().for_each(|a| self.other(*a)),
            _ => {}
        }
    }
    fn other(&mut self, a: Operand) {
        if let Operand::Reg(r) = a
            && let Some(row) = self.rows.get_mut(&r)
        {
            row.other = true;
        }
    }
}

/// Memory that could be interleaved: allocated for a number of rows, and how many elements a row has.
pub(super) fn candidates(block: &Block, defined: &IndexVec<Reg, usize>) -> Vec<(Reg, Operand)> {
    let (mut products, mut out) = (IdMap::new(), Vec::new());
    find(block, defined, &mut products, &mut out);
    out
}

fn find(
    block: &Block,
    defined: &IndexVec<Reg, usize>,
    products: &mut IdMap<Reg, Operand>,
    out: &mut Vec<(Reg, Operand)>,
) {
    for ins in block {
        match ins {
            Ins::Prim { to, prim: Prim::Op(Op::Mul, Scalar::I64), args } if defined[*to] == 1 => {
                products.insert(*to, args[1]);
            }
            Ins::Alloc { to, count: Operand::Reg(count), ty: Ty::Scalar(_) } if defined[*to] == 1 => {
                out.extend(products.get(count).map(|row| (*to, *row)));
            }
            _ => {}
        }
        ins.blocks().into_iter().for_each(|b| find(b, defined, products, out));
    }
}

/// Calls `f` with every register that is read outside of lanes, for another purpose than to compute a pointer.
pub(super) fn used_outside_lanes(block: &Block, f: &mut dyn FnMut(Reg)) {
    for ins in block {
        if matches!(ins, Ins::Offset { .. }) {
            continue;
        }
        ins.reads(&mut |a| {
            if let Operand::Reg(r) = a {
                f(r);
            }
        });
        if !matches!(ins, Ins::Lanes { .. }) {
            ins.blocks().into_iter().for_each(|b| used_outside_lanes(b, f));
        }
    }
}

/// Memory that is allocated outside of lanes.
pub(super) fn made_outside_lanes(block: &Block, out: &mut IdSet<Reg>) {
    for ins in block {
        if let Ins::Alloc { to, .. } = ins {
            out.insert(*to);
        }
        if !matches!(ins, Ins::Lanes { .. }) {
            ins.blocks().into_iter().for_each(|b| made_outside_lanes(b, out));
        }
    }
}

/// Calls `f` with every register that is read or set.
pub(super) fn mentioned(block: &[Ins], f: &mut dyn FnMut(Reg)) {
    for ins in block {
        ins.reads(&mut |a| a.as_reg().into_iter().for_each(&mut *f));
        ins.sets().iter().copied().for_each(&mut *f);
        ins.blocks().into_iter().for_each(|b| mentioned(b, f));
    }
}
