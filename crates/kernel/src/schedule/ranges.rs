//! Whether an index stays in a row.
//!
//! An index is a polynomial: a sum of products of registers that are set once. It is at most what it is with the last number in place of
//! each counter that adds to it, and the first number in place of each that takes away from it; counters of inner loops go
//! first, since their ends may mention those of outer ones. What is left is compared with the elements of the row, a polynomial as well.
//!
//! Assumes: the memory has elements (else no place of it is used), so the factors of its row are at least 1. Arithmetic of indices wraps,
//! which is no matter: the index as a whole number is shown to be in the row. Guarantees: an index that is said to stay in a
//! row does so whatever the sizes are; where that cannot be shown the answer is no.

use crate::ir::{Block, Ins, Operand, Reg};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// Not more terms, steps to make a polynomial of a number, and counters replaced than these: then nothing is shown.
const MOST: usize = 32;

/// From each product of registers (in order) to how often it is there.
type Polynomial = BTreeMap<Vec<Reg>, i64>;

/// What a register counts: from, and up to and not including; how many loops are around it.
#[derive(Clone, Copy, Debug)]
struct Counter {
    from: Operand,
    to: Operand,
    depth: usize,
}

/// Numbers, each at least zero and less than an operand: the program has been asked, and has not stopped.
pub(super) type Asked = Vec<(Operand, Operand)>;

/// How the numbers of a function are computed: those that are set once.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    ops: IdMap<Reg, (Op, Vec<Operand>)>,
    counters: IdMap<Reg, Counter>,
    /// Sizes that are equal, or the program has stopped: each with one that is equal and stands for both.
    equal: IdMap<Reg, Operand>,
    /// Registers that are set more than once: nothing is known about them.
    changing: IdSet<Reg>,
}

impl Ranges {
    pub(super) fn of(block: &Block, defined: &IndexVec<Reg, usize>) -> Ranges {
        let changing = defined.iter_enumerated().filter(|(_, n)| **n > 1).map(|(r, _)| r).collect();
        let mut ranges = Ranges { changing, ..Ranges::default() };
        ranges.find(block, defined, 0);
        ranges.compare(block);
        ranges
    }
    /// Learns which sizes are equal from the checks before the first loop.
    fn compare(&mut self, block: &Block) {
        for ins in block {
            match ins {
                Ins::Fail { condition, .. } => {
                    let (asked, differs) = match self.op(*condition) {
                        Some((Op::Not, [same])) => (*same, Op::Eq),
                        _ => (*condition, Op::Ne),
                    };
                    let Some((op, [a, b])) = self.op(asked) else { continue };
                    let (a, b) = (self.one_of(*a), self.one_of(*b));
                    if a != b && op == differs {
                        self.stand(a, b);
                    }
                }
                ins if !ins.blocks().is_empty() || matches!(ins, Ins::Call { .. }) => return,
                _ => {}
            }
        }
    }
    /// One of two sizes that are equal stands for the other, which it is not made of: `n` for `n * m`.
    fn stand(&mut self, a: Operand, b: Operand) {
        let mut either = [(a, b), (b, a)].into_iter().filter_map(|(a, b)| Some((a.as_reg()?, b)));
        if let Some((r, other)) =
            either.find(|(r, other)| !self.is_made_of(*other, *r, &mut IdSet::default()))
        {
            self.equal.insert(r, other);
        }
    }
    /// Whether a number is another one, or is computed from it; `seen`: what has been looked at, and is not.
    fn is_made_of(&self, a: Operand, r: Reg, seen: &mut IdSet<Reg>) -> bool {
        let a = self.one_of(a);
        let is_new = a.as_reg().is_some_and(|a| seen.insert(a));
        let args = if is_new { self.op(a).map_or(&[][..], |(_, args)| args) } else { &[] };
        a == Operand::Reg(r) || args.iter().any(|a| self.is_made_of(*a, r, seen))
    }
    /// What stands for a size and all that are equal.
    pub(super) fn one_of(&self, mut a: Operand) -> Operand {
        while let Some(other) = a.as_reg().and_then(|r| self.equal.get(&r)) {
            a = *other;
        }
        a
    }
    fn find(&mut self, block: &Block, defined: &IndexVec<Reg, usize>, depth: usize) {
        let once = |a: Operand| a.as_reg().is_none_or(|r| defined.get(r) == Some(&1));
        for ins in block {
            match ins {
                Ins::Prim { to, prim: Prim::Op(op, Scalar::I64 | Scalar::Bool), args }
                    if once((*to).into()) && args.iter().all(|a| once(*a)) =>
                {
                    self.ops.insert(*to, (*op, args.clone()));
                }
                Ins::For { i, from, to, .. } if [(*i).into(), *from, *to].into_iter().all(once) => {
                    self.counters.insert(*i, Counter { from: *from, to: *to, depth });
                }
                _ => {}
            }
            ins.blocks().into_iter().for_each(|b| self.find(b, defined, depth + 1));
        }
    }
    /// How a number is computed, if it and what it is computed from are set once.
    pub(super) fn op(&self, a: Operand) -> Option<(Op, &[Operand])> {
        self.ops.get(&a.as_reg()?).map(|(op, args)| (*op, &args[..]))
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

    /// What is known where a condition has not stopped the program: a number is at least zero and less than an operand.
    pub(super) fn asked(&self, condition: Operand) -> Option<(Operand, Operand)> {
        let (Op::Or, [a, b]) = self.op(condition)? else { return None };
        let ((Op::Lt, [i, zero]), (Op::Le, [n, j])) = (self.op(*a)?, self.op(*b)?) else { return None };
        (zero.as_i64() == Some(0) && i == j).then_some((*i, *n))
    }
    /// The same where a condition holds: that a number is not out of bounds.
    pub(super) fn asked_by(&self, condition: Operand) -> Option<(Operand, Operand)> {
        let (Op::Not, [outside]) = self.op(condition)? else { return None };
        self.asked(*outside)
    }
    /// Whether the sum of some numbers, and as many as `count` from there on, are at least zero and less than `row`.
    pub(super) fn is_in_row(&self, terms: &[Operand], count: Operand, row: Operand, asked: &Asked) -> bool {
        self.question(asked).is_in(terms, count, row).unwrap_or(false)
    }
    fn question<'a>(&'a self, asked: &'a Asked) -> Question<'a> {
        Question { ranges: self, asked, row: None, sizes: Vec::new(), steps: MOST }
    }
    /// In which rows the sum of some numbers is: from which one to which one, where row 0 begins at zero; both at most `most` from there.
    pub(super) fn rows(&self, terms: &[Operand], row: Operand, most: i64) -> Option<(i64, i64)> {
        let asked = Asked::new();
        let mut q = self.question(&asked);
        let (elements, index) = q.row_and_sum(terms, row)?;
        let mut shows = |rows: i64, is_above: bool| {
            q.steps = MOST;
            q.is_beside((&elements, &index), rows, is_above).unwrap_or(false)
        };
        let first = (-most..=most).rev().find(|first| shows(*first, true))?;
        let last = (-most..=most).find(|last| shows(last + 1, false))?;
        Some((first, last))
    }
    /// Whether a number is so many times a row, or a number that the program states.
    pub(super) fn is_multiple(&self, a: Operand, row: Operand) -> bool {
        let asked = Asked::new();
        let q = self.question(&asked);
        let polynomials = q.polynomial(a).zip(q.polynomial(row));
        polynomials.is_some_and(|(a, row)| {
            let mut products = a.keys();
            let (first, others) = (products.next(), products.next());
            others.is_none() && first.is_none_or(|p| p.is_empty() || row.keys().eq([p]))
        })
    }
}

/// A question about a row, and how much work is left for it.
struct Question<'a> {
    ranges: &'a Ranges,
    asked: &'a Asked,
    /// The elements of the row, if that is no product.
    row: Option<Operand>,
    /// The factors of the row: at least 1.
    sizes: Vec<Reg>,
    steps: usize,
}

impl Question<'_> {
    /// The elements of a row, and the sum of some numbers.
    fn row_and_sum(&mut self, terms: &[Operand], row: Operand) -> Option<(Polynomial, Polynomial)> {
        let mut elements = self.polynomial(row)?;
        if elements.len() > 1 {
            self.row = Some(self.ranges.one_of(row));
            elements = self.polynomial(row)?;
        }
        self.sizes = elements.keys().flatten().copied().collect();
        let mut index = Polynomial::new();
        for term in terms {
            add(&mut index, &self.polynomial(*term)?, 1)?;
        }
        Some((elements, index))
    }
    /// Whether a sum is at least so many rows of these elements, or below them.
    fn is_beside(
        &mut self,
        (elements, index): (&Polynomial, &Polynomial),
        rows: i64,
        is_above: bool,
    ) -> Option<bool> {
        let sign = if is_above { -1 } else { 1 };
        let mut p = Polynomial::new();
        add(&mut p, index, sign)?;
        add(&mut p, elements, -sign * rows)?;
        if !is_above {
            add(&mut p, &Polynomial::from([(Vec::new(), 1)]), 1)?;
        }
        Some(self.is_at_most_zero(&p))
    }
    fn is_in(&mut self, terms: &[Operand], count: Operand, row: Operand) -> Option<bool> {
        let (elements, index) = self.row_and_sum(terms, row)?;
        let mut above = index.clone();
        add(&mut above, &self.polynomial(count)?, 1)?;
        add(&mut above, &elements, -1)?;
        let mut below = Polynomial::new();
        add(&mut below, &index, -1)?;
        Some(self.is_at_most_zero(&above) && self.is_at_most_zero(&below))
    }

    /// A number as a polynomial; what has been asked about is left as it is.
    fn polynomial(&self, a: Operand) -> Option<Polynomial> {
        let mut steps = 4 * MOST;
        self.expanded(a, &mut steps)
    }
    fn expanded(&self, a: Operand, steps: &mut usize) -> Option<Polynomial> {
        *steps = steps.checked_sub(1)?;
        let a = self.ranges.one_of(a);
        if let Some(n) = a.as_i64() {
            return Some(if n == 0 { Polynomial::new() } else { Polynomial::from([(Vec::new(), n)]) });
        }
        let r = a.as_reg()?;
        let left = self.row == Some(a) || self.asked.iter().any(|(i, _)| *i == a);
        match self.ranges.op(a) {
            Some((op @ (Op::Add | Op::Sub | Op::Mul), [a, b])) if !left => {
                let (mut x, y) = (self.expanded(*a, steps)?, self.expanded(*b, steps)?);
                match op {
                    Op::Add => add(&mut x, &y, 1)?,
                    Op::Sub => add(&mut x, &y, -1)?,
                    _ => x = product(&x, &y)?,
                }
                Some(x)
            }
            _ => (!self.ranges.changing.contains(&r)).then(|| Polynomial::from([(vec![r], 1)])),
        }
    }

    /// From where to where a register goes: a counter, one that has been asked about, or what is left of a division.
    fn counter(&self, r: Reg) -> Option<Counter> {
        let natural = |to: Operand| Counter { from: Operand::i64(0), to, depth: usize::MAX };
        if let Some((_, to)) = self.asked.iter().find(|(i, _)| *i == Operand::Reg(r)) {
            return Some(natural(*to));
        }
        let counter = self.ranges.counters.get(&r).copied();
        counter.or_else(|| match self.ranges.op(r.into())? {
            (Op::Mod, [_, n]) => n.as_i64().is_some_and(|n| n > 0).then(|| natural(*n)),
            _ => None,
        })
    }
    /// Whether a register is at least zero.
    fn is_natural(&self, r: Reg) -> bool {
        self.is_at_least_zero(r.into(), 6)
    }
    fn is_at_least_zero(&self, a: Operand, steps: usize) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let (a, natural) = (self.ranges.one_of(a), |a: &Operand| self.is_at_least_zero(*a, steps));
        let Some(r) = a.as_reg() else { return a.as_i64().is_some_and(|n| n >= 0) };
        self.sizes.contains(&r)
            || self.counter(r).is_some_and(|c| natural(&c.from))
            || match self.ranges.op(a) {
                Some((Op::Max, args)) => args.iter().any(natural),
                Some((Op::Min, args)) => args.iter().all(natural),
                _ => false,
            }
    }
    /// Whether a polynomial is zero or less.
    fn is_at_most_zero(&mut self, p: &Polynomial) -> bool {
        let Some(steps) = self.steps.checked_sub(1) else { return false };
        self.steps = steps;
        if self.adds_nothing(p) {
            return true;
        }
        // The counter of the innermost loop.
        let counters = p.keys().flatten().filter_map(|r| Some((self.counter(*r)?, *r)));
        if let Some((counter, r)) = counters.max_by_key(|(counter, _)| counter.depth) {
            return self.ends(counter).into_iter().any(|to| {
                let bounded = self.bounded(p, r, counter.from, to);
                bounded.is_some_and(|p| self.is_at_most_zero(&p))
            });
        }
        // The smaller one of some numbers is at most each of them, and the larger one at least each.
        let chosen =
            p.iter().flat_map(|(product, n)| product.iter().map(|r| (*r, *n > 0))).find_map(|(r, adds)| {
                let (op, args) = self.ranges.op(r.into())?;
                (op == if adds { Op::Min } else { Op::Max }).then_some((r, adds, args))
            });
        let Some((r, adds, args)) = chosen else { return false };
        args.iter().any(|a| self.chosen(p, r, adds, *a).is_some_and(|p| self.is_at_most_zero(&p)))
    }
    /// Whether all that adds to a polynomial is taken away again, times sizes (which are at least 1).
    fn adds_nothing(&self, p: &Polynomial) -> bool {
        let mut p = p.clone();
        let part = |p: &Polynomial, adds: bool| -> Vec<Vec<Reg>> {
            p.iter().filter(|(_, n)| (**n > 0) == adds).map(|(product, _)| product.clone()).collect()
        };
        for small in part(&p, true).iter().rev() {
            for large in part(&p, false) {
                let Some(more) = taken(&large, small) else { continue };
                if more.iter().all(|r| self.sizes.contains(r)) && small.iter().all(|r| self.is_natural(*r)) {
                    let n = p.get(small).copied().unwrap_or(0).min(p[&large].saturating_neg());
                    let mut less =
                        |product: &[Reg], n| add(&mut p, &Polynomial::from([(product.to_vec(), n)]), -1);
                    less(small, n).and_then(|()| less(&large, -n));
                }
            }
        }
        p.iter().all(|(product, n)| *n <= 0 && product.iter().all(|r| self.is_natural(*r)))
    }
    /// Where a counter ends if it counts at all: at both of two numbers of which the end is the smaller one, and at the larger one of two if
    /// the other is not above its beginning.
    fn ends(&self, counter: Counter) -> Vec<Operand> {
        let not_above = |a: Operand| {
            let constants = a.as_i64().zip(counter.from.as_i64());
            a == counter.from || constants.is_some_and(|(a, from)| a <= from)
        };
        match self.ranges.op(counter.to) {
            Some((Op::Min, args)) => args.to_vec(),
            Some((Op::Max, [a, b])) if not_above(*a) => vec![*b],
            Some((Op::Max, [a, b])) if not_above(*b) => vec![*a],
            _ => vec![counter.to],
        }
    }
    /// The greatest that a polynomial is over all numbers of a counter, or more.
    fn bounded(&self, p: &Polynomial, r: Reg, from: Operand, to: Operand) -> Option<Polynomial> {
        let (first, mut last) = (self.polynomial(from)?, self.polynomial(to)?);
        add(&mut last, &Polynomial::from([(Vec::new(), 1)]), -1)?;
        self.replaced(p, r, |n| Some(if n > 0 { &last } else { &first }))
    }
    /// A polynomial with a number in place of a register, if that only adds to it, or only takes away.
    fn chosen(&self, p: &Polynomial, r: Reg, adds: bool, by: Operand) -> Option<Polynomial> {
        let by = self.polynomial(by)?;
        self.replaced(p, r, |n| ((n > 0) == adds).then_some(&by))
    }
    /// A polynomial with others in place of a register, by the sign of what it is multiplied by.
    fn replaced<'p>(
        &self,
        p: &Polynomial,
        r: Reg,
        by: impl Fn(i64) -> Option<&'p Polynomial>,
    ) -> Option<Polynomial> {
        let mut out = Polynomial::new();
        for (factors, n) in p {
            match taken(factors, &[r]) {
                None => add(&mut out, &Polynomial::from([(factors.clone(), *n)]), 1)?,
                Some(rest) => {
                    (!rest.contains(&r) && rest.iter().all(|x| self.is_natural(*x))).then_some(())?;
                    add(&mut out, &product(&Polynomial::from([(rest, *n)]), by(*n)?)?, 1)?;
                }
            }
        }
        Some(out)
    }
}

/// `to += n * p`; `None`: numbers or terms are too many.
fn add(to: &mut Polynomial, p: &Polynomial, n: i64) -> Option<()> {
    for (product, k) in p {
        let sum = to.get(product).copied().unwrap_or(0).checked_add(k.checked_mul(n)?)?;
        match sum {
            0 => to.remove(product),
            sum => to.insert(product.clone(), sum),
        };
    }
    (to.len() <= MOST).then_some(())
}

/// `None`: numbers or terms are too many.
fn product(a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
    let mut out = Polynomial::new();
    for (x, n) in a {
        for (y, m) in b {
            let mut both = [&x[..], y].concat();
            both.sort();
            (both.len() <= MOST).then_some(())?;
            add(&mut out, &Polynomial::from([(both, n.checked_mul(*m)?)]), 1)?;
        }
    }
    Some(out)
}

/// A product without the registers of another; `None`: not all are there.
fn taken(product: &[Reg], by: &[Reg]) -> Option<Vec<Reg>> {
    let mut out = product.to_vec();
    for r in by {
        let k = out.iter().position(|x| x == r)?;
        out.remove(k);
    }
    Some(out)
}
