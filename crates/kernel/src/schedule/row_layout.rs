//! Rows: which are worth a copy to where lanes lie side by side, and which could lie interleaved in the first place.

use crate::ir::{Block, Ins, Operand, Reg, Ty};
use crate::walk::walk;
use pullback_base::Table;
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// Uses of pointers in the body of a loop.
pub(super) struct Uses<'a> {
    rows: Table<Reg, Row>,
    /// Memory that is written, and by how many instructions.
    written: BTreeMap<Reg, usize>,
    /// Whether memory that is not known is written.
    anything: bool,
    /// Open blocks, from the outside in.
    open: Vec<Open>,
    /// How many blocks were opened.
    blocks: usize,
    /// Loads in open loops: pointer, and index if it is one element.
    loads: Vec<(Operand, Option<Operand>)>,
    /// The memory that a pointer points into, if it is known.
    root: &'a dyn Fn(Reg) -> Option<Reg>,
}

/// A block that is being looked through.
#[derive(Clone, Copy)]
struct Open {
    number: usize,
    /// The counter and the end of a loop from 0 whose body it is.
    counts: Option<(Reg, Operand)>,
    /// The row that a store in it fills.
    fills: Option<Reg>,
}

#[derive(Debug, Default)]
struct Row {
    /// How many loops are around the place where it is made.
    depth: usize,
    /// The block in which it is made.
    block: usize,
    /// The counter of the loop in that block which stores each element once, before that element is loaded; how many elements.
    filled: Option<(Reg, Operand)>,
    /// Loads, and the most loops between the place where it is made and one of them.
    loads: usize,
    deepest: usize,
    /// Whether it is used in another way.
    other: bool,
}

impl Row {
    fn are_often(&self) -> bool {
        self.deepest >= 2 || (self.deepest >= 1 && self.loads >= 2)
    }
}

impl<'a> Uses<'a> {
    /// Uses in a body; `root`: the memory that a pointer points into, if it is known.
    pub(super) fn of(body: &Block, root: &'a dyn Fn(Reg) -> Option<Reg>) -> Uses<'a> {
        let (rows, written) = (Table::new(), BTreeMap::new());
        let (open, loads) = (Vec::new(), Vec::new());
        let mut uses = Uses { rows, written, anything: false, open, blocks: 0, loads, root };
        uses.block(body, 0, None);
        uses
    }
    /// Whether a row is only read, and elements of it more than once.
    pub(super) fn is_read_often(&self, row: Reg) -> bool {
        let Some(uses) = self.rows.get(&row) else { return false };
        let root = (self.root)(row);
        let is_read =
            !uses.other && !self.anything && root.is_some_and(|root| !self.written.contains_key(&root));
        is_read && uses.filled.is_none() && uses.are_often()
    }
    /// Of a row that one loop fills, which nothing else writes, and elements of which are read more than once after that: the
    /// counter of the loop, and how many elements.
    pub(super) fn is_filled_and_read_often(&self, row: Reg) -> Option<(Reg, Operand)> {
        let uses = self.rows.get(&row)?;
        let root = (self.root)(row)?;
        let alone = self.written.get(&root) == Some(&1) && !uses.other && !self.anything;
        if alone && uses.are_often() { uses.filled } else { None }
    }
    fn write(&mut self, pointer: Operand) {
        if let Operand::Reg(r) = pointer {
            match (self.root)(r) {
                Some(root) => *self.written.entry(root).or_default() += 1,
                None => self.anything = true,
            }
        }
    }
    /// Notes a store of the element that the loop around it counts, if that loop may fill the row.
    fn fills(&mut self, pointer: Operand, index: Operand) -> Option<()> {
        let [.., outer, of_loop] = &mut self.open[..] else { return None };
        let ((i, end), to) = (of_loop.counts?, pointer.as_reg()?);
        let row = self.rows.get_mut(&to)?;
        let first = row.block == outer.number && row.loads == 0 && row.filled.is_none();
        if !first || index != i.into() || of_loop.fills.is_some() {
            return None;
        }
        row.filled = Some((i, end));
        of_loop.fills = Some(to);
        Some(())
    }
    /// At the end of a loop that has filled a row: whether it has loaded, of the memory of that row, elements that it had stored
    /// through the same pointer only.
    fn is_apart(&self, row: Reg, i: Reg, loads: &[(Operand, Option<Operand>)]) -> bool {
        let root = (self.root)(row);
        loads.iter().all(|(pointer, index)| {
            let of = pointer.as_reg().and_then(self.root);
            let same = *pointer == row.into() && *index == Some(i.into());
            same || (of.is_some() && of != root)
        })
    }

    fn block(&mut self, block: &Block, depth: usize, counts: Option<(Reg, Operand)>) {
        self.blocks += 1;
        self.open.push(Open { number: self.blocks, counts, fills: None });
        let before = self.loads.len();
        for ins in block {
            self.ins(ins, depth);
            let inner = depth + usize::from(!matches!(ins, Ins::If { .. }));
            let counts = match ins {
                Ins::For { i, from, to, .. } if from.as_i64() == Some(0) => Some((*i, *to)),
                _ => None,
            };
            for block in ins.blocks() {
                self.block(block, inner, counts);
            }
        }
        let Some(Open { counts: Some((i, _)), fills: Some(row), .. }) = self.open.pop() else { return };
        if !self.is_apart(row, i, &self.loads[before..]) {
            self.other(row.into());
        }
    }
    fn ins(&mut self, ins: &Ins, depth: usize) {
        match ins {
            Ins::Offset { to, pointer, .. } => {
                let block = self.open.last().map_or(0, |b| b.number);
                self.rows.insert(*to, Row { depth, block, ..Row::default() });
                self.other(*pointer);
            }
            Ins::Load { pointer: pointer @ Operand::Reg(r), index, .. } => {
                self.loads.push((*pointer, Some(*index)));
                if let Some(row) = self.rows.get_mut(r) {
                    row.loads += 1;
                    row.deepest = row.deepest.max(depth - row.depth.min(depth));
                }
            }
            Ins::Store { pointer, index, value, ty } => {
                self.write(*pointer);
                if self.fills(*pointer, *index).is_none() {
                    self.other(*pointer);
                }
                if *ty == Ty::Pointer {
                    self.other(*value);
                }
            }
            Ins::Accumulate { pointer, .. } | Ins::Fill { pointer, .. } => {
                self.write(*pointer);
                self.other(*pointer);
            }
            Ins::Copy { to, from, .. } => {
                self.write(*to);
                self.other(*to);
                self.other(*from);
                self.loads.push((*from, None));
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
