//! Rows: which are worth a copy to where lanes lie side by side, and which could lie interleaved in the first place.

use crate::ir::{Block, Ins, Operand, Reg, Ty};
use crate::walk::walk;
use pullback_base::Table;
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

/// Uses of pointers in the body of a loop.
pub(super) struct Uses<'a> {
    rows: Table<Reg, Row>,
    /// Memory that is written.
    written: IdSet<Reg>,
    /// Whether memory that is not known is written.
    anything: bool,
    /// The memory that a pointer points into, if it is known.
    root: &'a dyn Fn(Reg) -> Option<Reg>,
}

#[derive(Debug, Default)]
struct Row {
    /// How many loops are around the place where it is made.
    depth: usize,
    /// Loads, and the most loops between the place where it is made and one of them.
    loads: usize,
    deepest: usize,
    /// Whether it is used in another way.
    other: bool,
}

impl<'a> Uses<'a> {
    /// Uses in a body; `root`: the memory that a pointer points into, if it is known.
    pub(super) fn of(body: &Block, root: &'a dyn Fn(Reg) -> Option<Reg>) -> Uses<'a> {
        let mut uses = Uses { rows: Table::new(), written: IdSet::new(), anything: false, root };
        uses.block(body, 0);
        uses
    }
    /// Whether a row is only read, and elements of it more than once.
    pub(super) fn is_read_often(&self, row: Reg) -> bool {
        let Some(uses) = self.rows.get(&row) else { return false };
        let root = (self.root)(row);
        let is_read = !uses.other && !self.anything && root.is_some_and(|root| !self.written.contains(&root));
        is_read && (uses.deepest >= 2 || (uses.deepest >= 1 && uses.loads >= 2))
    }
    fn write(&mut self, pointer: Operand) {
        if let Operand::Reg(r) = pointer {
            match (self.root)(r) {
                Some(root) => {
                    self.written.insert(root);
                }
                None => self.anything = true,
            }
        }
        self.other(pointer);
    }

    fn block(&mut self, block: &Block, depth: usize) {
        for ins in block {
            self.ins(ins, depth);
            let inner = depth + usize::from(!matches!(ins, Ins::If { .. }));
            for block in ins.blocks() {
                self.block(block, inner);
            }
        }
    }
    fn ins(&mut self, ins: &Ins, depth: usize) {
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
                self.write(*pointer);
                if *ty == Ty::Pointer {
                    self.other(*value);
                }
            }
            Ins::Accumulate { pointer, .. } | Ins::Fill { pointer, .. } => {
                self.write(*pointer);
            }
            Ins::Copy { to, from, .. } => {
                self.write(*to);
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
    walk(block, &mut |ins| {
        ins.reads(&mut |a| a.as_reg().into_iter().for_each(&mut *f));
        ins.sets().iter().copied().for_each(&mut *f);
    });
}
