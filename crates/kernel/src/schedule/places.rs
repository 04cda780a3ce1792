//! Which memory a loop uses, and whether each iteration keeps to a row of it.
//!
//! A place is followed to the memory that it is in and to the sum that is its index there. It is in row `i` if one term of the sum is `i`
//! times the elements of a row, and what the other terms add up to is in a row ([`Ranges::is_in_row`]).
//!
//! Assumes: sizes are not negative. Guarantees: what has a row is in it, whatever the sizes are; where that cannot be shown there is none.

use super::added;
use super::ranges::{Asked, Ranges};
use super::registers::registers;
use crate::ir::{Block, Function, Ins, Operand, Reg};
use crate::walk::walk;
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::Op;

/// A use of memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Access {
    pub(super) root: Reg,
    pub(super) kind: Kind,
    /// Each iteration uses one row of so many elements, that of its own number.
    pub(super) row: Option<Operand>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Read,
    Write,
    Add,
}

/// What is known about the places of a function.
pub(super) struct Places {
    /// How often each register is set.
    pub(super) defined: IndexVec<Reg, usize>,
    /// The memory that a pointer points into.
    pub(super) roots: IndexVec<Reg, Option<Reg>>,
    /// How large allocations are.
    pub(super) counts: added::Sizes,
    offsets: added::Offsets,
    pub(super) ranges: Ranges,
}

impl Places {
    pub(super) fn of(f: &Function, body: &Block) -> Places {
        let (defined, roots) = registers(f, body);
        let (counts, offsets) = added::pointers(body, &defined, &f.regs);
        let ranges = Ranges::of(body, &defined);
        Places { defined, roots, counts, offsets, ranges }
    }

    /// The memory that a pointer points into.
    pub(super) fn root(&self, pointer: Operand) -> Option<Reg> {
        self.roots.get(pointer.as_reg()?).copied().flatten()
    }

    /// What a block uses of memory that is made outside of it; `i`: the counter of the loop whose rows count. `None`: that is not known.
    pub(super) fn used(&self, block: &Block, i: Option<Reg>) -> Option<Vec<Access>> {
        let inside = added::defined(block);
        let mut out: Vec<Access> = Vec::new();
        let mut known = true;
        walk(block, &mut |ins| {
            let zero = Operand::i64(0);
            let mut add = |pointer: Operand, index, count: Option<Operand>, kind| match self.root(pointer) {
                None => known = false,
                Some(root) if inside.contains(&root) => {}
                Some(root) => {
                    let row = i.and_then(|i| self.row(pointer, index, count, i));
                    let access = Access { root, kind, row };
                    if !out.contains(&access) {
                        out.push(access);
                    }
                }
            };
            match ins {
                Ins::Load { pointer, index, .. } => add(*pointer, *index, None, Kind::Read),
                Ins::Store { pointer, index, .. } => add(*pointer, *index, None, Kind::Write),
                Ins::Accumulate { pointer, index, .. } => add(*pointer, *index, None, Kind::Add),
                Ins::Fill { pointer, count, .. } => add(*pointer, zero, Some(*count), Kind::Write),
                Ins::Copy { to, from, count, .. } => {
                    add(*to, zero, Some(*count), Kind::Write);
                    add(*from, zero, Some(*count), Kind::Read);
                }
                Ins::Set { .. }
                | Ins::Prim { .. }
                | Ins::Offset { .. }
                | Ins::Alloc { .. }
                | Ins::Mark { .. }
                | Ins::Release { .. }
                | Ins::For { .. }
                | Ins::While { .. }
                | Ins::If { .. }
                | Ins::Fail { .. } => {}
                _ => known = false,
            }
        });
        known.then_some(out)
    }

    /// Memory from outside that a loop adds to, of which each iteration uses a row of its own and nothing else.
    pub(super) fn apart(&self, i: Reg, body: &Block) -> IdSet<Reg> {
        if !added::adds(body) {
            return IdSet::new();
        }
        let accesses = self.used(body, Some(i)).unwrap_or_default();
        let row = |root: Reg| accesses.iter().find(|a| a.root == root).and_then(|a| a.row);
        let mixed = |root: Reg| accesses.iter().any(|a| a.root == root && a.row != row(root));
        accesses.iter().map(|a| a.root).filter(|root| row(*root).is_some() && !mixed(*root)).collect()
    }

    /// The number of elements of a row, if the place, or so many from there on, is in row `i` of its memory.
    fn row(&self, pointer: Operand, index: Operand, count: Option<Operand>, i: Reg) -> Option<Operand> {
        let mut terms = Vec::new();
        self.ranges.terms(index, &mut terms);
        let root = self.root(pointer)?;
        let ty = self.counts.get(&root)?.1;
        for (index, of) in added::way(pointer, root, &self.offsets)? {
            (of == ty).then_some(())?;
            self.ranges.terms(index, &mut terms);
        }
        // One term alone, of those of all pointers on the way: the others are the same in all rows.
        let [k] =
            (0..terms.len()).filter(|k| self.ranges.row_term(terms[*k], i).is_some()).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let row = self.ranges.row_term(terms.remove(k), i)?;
        let (count, asked) = (count.unwrap_or(Operand::i64(1)), Asked::new());
        self.ranges.is_in_row(&terms, count, row, &asked).then_some(row)
    }
    /// The factors of a product, in an order that is the same for equal ones.
    pub(super) fn factors(&self, a: Operand) -> Vec<Operand> {
        let mut out = Vec::new();
        let mut constant = 1i64;
        self.multiply(a, &mut out, &mut constant);
        out.sort_by_key(|a| a.as_reg());
        if constant != 1 {
            out.push(Operand::i64(constant));
        }
        out
    }
    fn multiply(&self, a: Operand, out: &mut Vec<Operand>, constant: &mut i64) {
        let a = self.ranges.one_of(a);
        match (a.as_i64().and_then(|n| constant.checked_mul(n)), self.ranges.op(a)) {
            (Some(n), _) => *constant = n,
            (None, Some((Op::Mul, [a, b]))) => {
                self.multiply(*a, out, constant);
                self.multiply(*b, out, constant);
            }
            _ => out.push(a),
        }
    }
    /// How many bytes memory is expected to have.
    pub(super) fn bytes(&self, root: Reg, sizes: &IdMap<Reg, i64>) -> Option<i64> {
        let (count, ty) = self.counts.get(&root)?;
        let count = count.as_i64().or_else(|| sizes.get(&count.as_reg()?).copied())?;
        count.checked_mul(ty.bytes() as i64)
    }
}
