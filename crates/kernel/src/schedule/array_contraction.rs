//! Memory that one loop alone uses, row by row, becomes a row that each of its iterations makes.
//!
//! ```text
//! m = alloc n * d;  for i < n { .. m[i * d + j] .. }   =>   for i < n { m = alloc d;  .. m[j] .. }
//! ```
//!
//! So a block of lanes uses the same rows again and again, and they stay in a cache.
//!
//! Assumes that iterations set what they read, as loops in any order do. Guarantees: the same values; less memory is asked for.

use super::distribution::without_mark;
use super::places::Places;
use super::value_numbering::numbered;
use super::{added, row_layout};
use crate::ir::{Block, Function, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::lower::with_mark;
use crate::walk::walk;
use pullback_base::index::{IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// The body of a function with rows where that can be, and the memory that was made so.
pub(super) fn own_rows(mut body: Block, f: &mut Function) -> (Block, IdSet<Reg>) {
    let mut all = IdSet::new();
    loop {
        body = numbered(f, body);
        let places = Places::of(f, &body);
        let mut o = Own { places: &places, results: &f.results, regs: &mut f.regs, owned: Vec::new() };
        body = o.block(body);
        if o.owned.is_empty() {
            return (body, all);
        }
        // A row may have rows of its own.
        all.extend(o.owned);
    }
}

struct Own<'a> {
    places: &'a Places,
    results: &'a [Reg],
    regs: &'a mut IndexVec<Reg, RegInfo>,
    owned: Vec<Reg>,
}

impl Own<'_> {
    fn block(&mut self, mut block: Block) -> Block {
        let mut rows = IdSet::new();
        for (root, users) in self.users(&block) {
            let [made, user] = users[..] else { continue };
            let Ins::Alloc { to, ty, .. } = block[made] else { continue };
            let is_result = self.results.iter().any(|r| self.places.root((*r).into()) == Some(root));
            if to != root || is_result {
                continue;
            }
            let Some(row) = self.row(&block[user], root) else { continue };
            let Ins::For { i, body, .. } = &mut block[user] else { continue };
            let mut inner = vec![Ins::Alloc { to: root, count: row, ty }];
            let (i, old) = (*i, std::mem::take(body));
            inner.extend(self.in_row(without_mark(&old).to_vec(), root, i));
            *body = with_mark(inner, self.regs);
            rows.insert(root);
        }
        block.retain(|ins| !matches!(ins, Ins::Alloc { to, .. } if rows.contains(to)));
        self.owned.extend(rows);
        for ins in &mut block {
            for inner in ins.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
        }
        block
    }
    /// The memory that instructions of a block use, and which of them do.
    fn users(&self, block: &Block) -> BTreeMap<Reg, Vec<usize>> {
        let mut users: BTreeMap<Reg, Vec<usize>> = BTreeMap::new();
        for (k, ins) in block.iter().enumerate() {
            row_layout::mentioned(std::slice::from_ref(ins), &mut |r| {
                let Some(root) = self.places.root(r.into()) else { return };
                let users = users.entry(root).or_default();
                if users.last() != Some(&k) {
                    users.push(k);
                }
            });
        }
        users
    }
    /// The elements of a row, if the loop uses the memory row by row.
    fn row(&self, user: &Ins, root: Reg) -> Option<Operand> {
        let Ins::For { i, body, order: Order::Any(_), .. } = user else { return None };
        let accesses = self.places.used(body, Some(*i))?;
        let factors = |a| self.places.factors(a);
        let mut used = accesses.iter().filter(|x| x.root == root).map(|x| x.row);
        let row = used.next()??;
        used.all(|r| r.is_some_and(|r| factors(r) == factors(row))).then_some(())?;
        // The row is known before the loop, and pointers into it are not handed on.
        let inside = added::defined(body);
        let known = row.as_reg().is_none_or(|r| !inside.contains(&r) && r != *i);
        (known && !self.is_handed_on(root, body)).then_some(row)
    }
    fn is_handed_on(&self, root: Reg, body: &Block) -> bool {
        let mut found = false;
        walk(body, &mut |ins| {
            let of_root = |a: Operand| self.places.root(a) == Some(root);
            let mut mentions = 0;
            ins.reads(&mut |a| mentions += usize::from(of_root(a)));
            let places = match ins {
                Ins::Load { pointer, .. }
                | Ins::Store { pointer, .. }
                | Ins::Accumulate { pointer, .. }
                | Ins::Offset { pointer, .. }
                | Ins::Fill { pointer, .. } => usize::from(of_root(*pointer)),
                Ins::Copy { to, from, .. } => usize::from(of_root(*to)) + usize::from(of_root(*from)),
                _ => 0,
            };
            found |= mentions != places;
        });
        found
    }
    /// The block with the row in place of row `i` of the memory.
    fn in_row(&mut self, block: Block, root: Reg, i: Reg) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            for inner in ins.blocks_mut() {
                *inner = self.in_row(std::mem::take(inner), root, i);
            }
            let into = |p: &Operand| self.places.root(*p) == Some(root);
            match &mut ins {
                Ins::Offset { to, pointer, index, room, .. } if into(pointer) => {
                    *room = None;
                    *index = self.without_row(*index, i, &mut out);
                    if index.as_i64() == Some(0) {
                        ins = Ins::Set { to: *to, value: *pointer };
                    }
                }
                Ins::Load { pointer, index, .. }
                | Ins::Store { pointer, index, .. }
                | Ins::Accumulate { pointer, index, .. }
                    if into(pointer) =>
                {
                    *index = self.without_row(*index, i, &mut out);
                }
                _ => {}
            }
            out.push(ins);
        }
        out
    }
    /// An index without the term that chooses the row.
    fn without_row(&mut self, index: Operand, i: Reg, out: &mut Block) -> Operand {
        let mut terms = Vec::new();
        self.places.ranges.terms(index, &mut terms);
        let Some(k) = terms.iter().position(|t| self.places.ranges.row_term(*t, i).is_some()) else {
            return index;
        };
        terms.remove(k);
        let mut sum = |a: Operand, b: Operand| {
            let to = self.regs.push(RegInfo::new(Ty::I64, "t"));
            out.push(Ins::Prim { to, prim: Prim::Op(Op::Add, Scalar::I64), args: vec![a, b] });
            Operand::Reg(to)
        };
        terms.into_iter().reduce(&mut sum).unwrap_or(Operand::i64(0))
    }
}
