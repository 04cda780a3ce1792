//! Which memory a loop uses, and whether each iteration keeps to a row of it.
//!
//! A place is followed to the memory that it is in and to the sum that is its index there. It is in row `i` if one term of the sum is `i` times the
//! elements of a row, and what the other terms add up to is less than those: numbers of loops that end at a factor of the
//! row, and products of them with its other factors.
//!
//! Assumes: sizes are not negative. Guarantees: what has a row is in it, whatever the sizes are; where that cannot be shown there is none.

use super::{added, registers, rows};
use crate::ir::{Block, Function, Ins, Operand, Reg};
use crate::mutation::Mutation;
use pullback_base::index::{IdMap, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

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
    scalars: rows::Scalars,
    /// Counters that begin at a number that is not negative, and where they end.
    ends: IdMap<Reg, Operand>,
    /// Sizes that are equal, or the program has stopped: each with one that is equal and stands for both.
    equal: IdMap<Reg, Operand>,
}

impl Places {
    pub(super) fn of(f: &Function, body: &Block) -> Places {
        let (defined, roots) = registers(f, body);
        let (counts, offsets) = added::pointers(body, &defined, &f.regs);
        let scalars = rows::Scalars::of(body, &defined);
        let mut ends = IdMap::new();
        added::visit(body, &mut |ins| {
            if let Ins::For { i, from, to, .. } = ins
                && from.as_i64().is_some_and(|n| n >= 0)
                && defined[*i] == 1
            {
                ends.insert(*i, *to);
            }
        });
        let mut places = Places { defined, roots, counts, offsets, scalars, ends, equal: IdMap::new() };
        places.compare(body);
        places
    }
    /// Learns from the checks before the first loop.
    fn compare(&mut self, body: &Block) {
        let mut opposites = IdMap::new();
        for ins in body {
            match ins {
                Ins::Prim { to, prim: Prim::Op(Op::Not, Scalar::Bool), args } if self.defined[*to] == 1 => {
                    opposites.insert(*to, args[0]);
                }
                Ins::Fail { condition: Operand::Reg(r), .. } => {
                    let condition = opposites.get(r).copied().unwrap_or(Operand::Reg(*r));
                    if Mutation::SizesUncompared.is_on() {
                        return;
                    }
                    let wanted = if opposites.contains_key(r) { Op::Eq } else { Op::Ne };
                    if let Some((op, [a, b])) = self.op(condition)
                        && op == wanted
                    {
                        match (self.one_of(*a), self.one_of(*b)) {
                            (a, b) if a == b => {}
                            (Operand::Reg(r), other) | (other, Operand::Reg(r)) => {
                                self.equal.insert(r, other);
                            }
                            _ => {}
                        }
                    }
                }
                ins if !ins.blocks().is_empty() || matches!(ins, Ins::Call { .. }) => return,
                _ => {}
            }
        }
    }
    /// What stands for a size and all that are equal.
    fn one_of(&self, mut a: Operand) -> Operand {
        while let Some(other) = a.as_reg().and_then(|r| self.equal.get(&r)) {
            a = *other;
        }
        a
    }

    /// Whether an operand is set once.
    fn is_fixed(&self, a: Operand) -> bool {
        a.as_reg().is_none_or(|r| self.defined.get(r) == Some(&1))
    }
    /// How a number is computed, of what is set once.
    fn op(&self, a: Operand) -> Option<(Op, &[Operand])> {
        self.scalars.op(a).filter(|(_, args)| args.iter().all(|a| self.is_fixed(*a)))
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
        added::visit(block, &mut |ins| {
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

    /// The number of elements of a row, if the place, or so many from there on, is in row `i` of its memory.
    fn row(&self, pointer: Operand, index: Operand, count: Option<Operand>, i: Reg) -> Option<Operand> {
        let mut terms = Vec::new();
        self.terms(index, &mut terms);
        let (root, mut at) = (self.root(pointer)?, pointer.as_reg()?);
        let ty = self.counts.get(&root)?.1;
        while at != root {
            let (from, index, of) = *self.offsets.get(&at)?;
            (of == ty).then_some(())?;
            self.terms(index, &mut terms);
            at = from.as_reg()?;
        }
        // One term alone, of those of all pointers on the way: the others are the same in all rows.
        let [k] = (0..terms.len()).filter(|k| self.row_term(terms[*k], i).is_some()).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let row = self.row_term(terms.remove(k), i)?;
        self.factors(row).iter().all(|a| self.is_fixed(*a)).then_some(())?;
        let mut parts: Vec<(Option<Operand>, Operand)> = Vec::new();
        for term in terms {
            parts.push(self.part(term)?);
        }
        parts.extend(count.map(|n| (None, n)));
        self.is_less(&parts, &self.factors(row)).then_some(row)
    }
    /// The terms of a sum.
    pub(super) fn terms(&self, index: Operand, out: &mut Vec<Operand>) {
        match self.op(index) {
            Some((Op::Add, [a, b])) => {
                self.terms(*a, out);
                self.terms(*b, out);
            }
            _ if index.as_i64() == Some(0) => {}
            _ => out.push(index),
        }
    }
    /// `i` times the elements of a row: these.
    pub(super) fn row_term(&self, term: Operand, i: Reg) -> Option<Operand> {
        match self.op(term) {
            _ if term == Operand::Reg(i) => Some(Operand::i64(1)),
            Some((Op::Mul, [a, b])) if *a == Operand::Reg(i) => Some(*b),
            Some((Op::Mul, [a, b])) if *b == Operand::Reg(i) => Some(*a),
            _ => None,
        }
    }
    /// A number of a loop, or its product with a size: that size, and where the loop ends. A constant is the last number of a loop.
    fn part(&self, term: Operand) -> Option<(Option<Operand>, Operand)> {
        let end = |a: Operand| self.ends.get(&a.as_reg()?).copied();
        if let Some(n) = term.as_i64() {
            return (n >= 0).then_some((None, Operand::i64(n.checked_add(1)?)));
        }
        if let Some(to) = end(term) {
            return Some((None, to));
        }
        let (Op::Mul, [a, b]) = self.op(term)? else { return None };
        match (end(*a), end(*b)) {
            (Some(to), _) => Some((Some(*b), to)),
            (None, Some(to)) => Some((Some(*a), to)),
            (None, None) => None,
        }
    }
    /// Whether the parts add up to less than a product.
    fn is_less(&self, parts: &[(Option<Operand>, Operand)], product: &[Operand]) -> bool {
        match parts {
            _ if Mutation::PlacesAreInRows.is_on() => true,
            [] => true,
            [(None, to)] => self.is_within(*to, product),
            _ => parts.iter().enumerate().any(|(k, (size, to))| {
                let Some(size) = size.map(|s| self.factors(s)) else { return false };
                let Some(rest) = without(product, &size) else { return false };
                let others: Vec<_> = parts[..k].iter().chain(&parts[k + 1..]).copied().collect();
                self.is_within(*to, &rest) && self.is_less(&others, &size)
            }),
        }
    }
    /// Whether numbers up to an end are less than a product.
    fn is_within(&self, to: Operand, product: &[Operand]) -> bool {
        if self.factors(to) == product {
            return true;
        }
        let below = |a: Operand| self.is_below(a, product);
        match (to.as_i64(), product, self.op(to)) {
            (Some(to), [], _) => to <= 1,
            (Some(to), [one], _) => one.as_i64().is_some_and(|n| to <= n),
            (_, _, Some((Op::Min, args))) => args.iter().any(|a| self.is_within(*a, product)),
            (_, _, Some((Op::Max, [a, b]))) => {
                [(a, b), (b, a)].iter().any(|(a, b)| a.as_i64() == Some(0) && self.is_within(**b, product))
            }
            (_, _, Some((Op::Add, [a, b]))) => {
                [(a, b), (b, a)].iter().any(|(a, b)| a.as_i64() == Some(1) && below(**b))
            }
            _ => false,
        }
    }
    /// Whether a number is less than a product.
    fn is_below(&self, a: Operand, product: &[Operand]) -> bool {
        let counts =
            a.as_reg().and_then(|r| self.ends.get(&r)).is_some_and(|to| self.is_within(*to, product));
        counts
            || match self.op(a) {
                Some((Op::Min, args)) => args.iter().any(|a| self.is_below(*a, product)),
                Some((Op::Sub, [a, b])) => b.as_i64().is_some_and(|n| n > 0) && self.factors(*a) == product,
                _ => false,
            }
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
        let a = self.one_of(a);
        match (a.as_i64().and_then(|n| constant.checked_mul(n)), self.op(a)) {
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

/// The factors that are left when some are taken away; `None`: not all are there.
fn without(product: &[Operand], taken: &[Operand]) -> Option<Vec<Operand>> {
    let mut out = product.to_vec();
    for factor in taken {
        let k = out.iter().position(|a| a == factor)?;
        out.remove(k);
    }
    Some(out)
}
