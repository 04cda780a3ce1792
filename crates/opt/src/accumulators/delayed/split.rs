//! E4: a dimension of `m * c` points is two dimensions, segments and places in a segment.
//!
//! An index that names the segment of a point, `p / c`, or its place there, `p % c`, is not affine in `p`. With
//! `p = q * c + r`, where `q` has the extent `m` and `r` the extent `c`, they are `q` and `r`, and the other rules apply:
//! sums over `r` are sums of segments. Arrays of `m * c` elements are read as arrays of `m` rows.
//!
//! Assumes that a node is evaluated only where the nest has a point: there `c`, which divided, is not 0. Guarantees the
//! same value at each point. A dimension is split only if its extent is known to be a product with `c` as a factor, and
//! both factors are known not to be negative: constants, and products of sizes. Source: Fast CHAD notes 3.1, E4.

use super::{Delayed, Dim, Id, Node};
use crate::accumulators::index::{Polynomial, affine, polynomial, radix_order};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// How many dimensions of a nest are split.
const SPLITS: usize = 6;

/// Dimensions that together run through one extent.
pub(super) struct Flat {
    /// From the slowest to the fastest.
    dims: Vec<Dim>,
    extent: Id,
}

impl Delayed<'_> {
    /// Coordinates and an element, with those dimensions split whose segments the coordinates name; none if coordinates
    /// stay that are not affine because they divide.
    pub(in crate::accumulators) fn split(
        &mut self,
        coordinates: Vec<Id>,
        element: Id,
    ) -> Option<(Vec<Id>, Id)> {
        if coordinates.iter().all(|c| affine(self, *c).is_some() || !self.divides(*c)) {
            return Some((coordinates, element));
        }
        let (mut coordinates, mut element) = self.rewritten(&coordinates, element, &BTreeMap::new());
        for _ in 0..SPLITS {
            let Some((d, segments, length)) = coordinates.iter().find_map(|n| self.asked(*n)) else { break };
            let place = self.split_dimension(d, &segments, length);
            (coordinates, element) = self.rewritten(&coordinates, element, &BTreeMap::from([(d, place)]));
        }
        let comes_out = !coordinates.iter().any(|c| self.divides(*c));
        comes_out.then_some((coordinates, element))
    }
    fn rewritten(&mut self, coordinates: &[Id], element: Id, new: &BTreeMap<Dim, Id>) -> (Vec<Id>, Id) {
        let mut done = BTreeMap::new();
        let element = self.rewrite(element, new, &mut done);
        (coordinates.iter().map(|c| self.rewrite(*c, new, &mut done)).collect(), element)
    }

    /// The dimensions, from the slowest to the fastest, that an index runs through from 0 to its last place, and the extent of
    /// that.
    pub(in crate::accumulators) fn run_through(&self, index: Id) -> Option<(Vec<Dim>, Id)> {
        if let Node::Dim(d) = self.node(index) {
            return Some((vec![*d], *self.widths.get(*d)?));
        }
        let dims = self.dims(index);
        let flat = self
            .flats
            .iter()
            .find(|f| f.dims.len() == dims.len() && f.dims.iter().all(|d| dims.contains(d)))?;
        let index = affine(self, index)?;
        let strides: BTreeMap<Dim, Polynomial> =
            index.strides.iter().map(|(d, s)| (*d, self.plain(s))).collect();
        let list: Vec<(Dim, &Polynomial)> = strides.iter().map(|(d, s)| (*d, s)).collect();
        let order = radix_order(&list, &|d| self.extent(d))?;
        let from_zero = index.rest.number() == Some(0) && strides[&order[0]].number() == Some(1);
        (from_zero && order.iter().rev().eq(&flat.dims)).then(|| (flat.dims.clone(), flat.extent))
    }

    fn extent(&self, d: Dim) -> Polynomial {
        self.widths.get(d).map_or_else(Polynomial::default, |w| self.factors(*w))
    }
    /// Whether a division by something fixed is left.
    fn divides(&self, id: Id) -> bool {
        self.parts(id).iter().any(|n| self.division(*n).is_some())
    }
    fn parts(&self, id: Id) -> BTreeSet<Id> {
        let mut seen = BTreeSet::new();
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                match self.node(id) {
                    Node::Prim(_, ids) | Node::Read(_, ids) | Node::Local(_, ids) => work.extend(ids),
                    Node::If(a, b, c) => work.extend([*a, *b, *c]),
                    Node::Const(_) | Node::Var(_) | Node::Dim(_) | Node::Size(..) => {}
                }
            }
        }
        seen
    }
    /// A division of something that moves: whether its remainder is asked for, and the two numbers.
    fn division(&self, id: Id) -> Option<(bool, Id, Id)> {
        let Node::Prim(Prim::Op(op, Scalar::I64), args) = self.node(id) else { return None };
        let remainder = match op {
            Op::Div => false,
            Op::Mod => true,
            _ => return None,
        };
        let [x, c] = args[..] else { return None };
        (!self.dims[x].is_empty() && self.dims[c].is_empty()).then_some((remainder, x, c))
    }
    /// A dimension to split, the number of segments and their length.
    fn asked(&mut self, id: Id) -> Option<(Dim, Polynomial, Id)> {
        self.parts(id).into_iter().find_map(|n| {
            let (_, x, c) = self.division(n)?;
            let Node::Dim(d) = *self.node(x) else { return None };
            let width = *self.widths.get(d)?;
            let length = self.factors(c);
            let known = |n: Id| self.same(n, width);
            let equal: Vec<Id> = (0..self.nodes.len()).filter(|n| known(*n)).collect();
            let segments = equal.into_iter().find_map(|n| Self::quotient(&self.factors(n), &length))?;
            let fits = self.is_natural(&segments) && self.is_natural(&length) && self.is_safe(c);
            (fits && length.number() != Some(0)).then_some((d, segments, c))
        })
    }
    /// A constant, or a product of sizes: never negative, and what it counts exists.
    fn is_natural(&self, p: &Polynomial) -> bool {
        let is_size = |id: &Id| {
            (0..self.nodes.len()).any(|n| self.same(n, *id) && matches!(self.node(n), Node::Size(..)))
        };
        p.monomials().all(|(factors, k)| k > 0 && factors.iter().all(is_size))
    }
    /// The dimension becomes the outer one of two; what it was as a function of them.
    fn split_dimension(&mut self, d: Dim, segments: &Polynomial, length: Id) -> Id {
        let inner = self.widths.len();
        let whole = std::mem::replace(&mut self.widths[d], 0);
        self.widths[d] = self.sum_of(segments);
        self.widths.push(length);
        self.full.insert(inner);
        for flat in &mut self.flats {
            if let Some(k) = flat.dims.iter().position(|other| *other == d) {
                flat.dims.insert(k + 1, inner);
            }
        }
        self.flats.push(Flat { dims: vec![d, inner], extent: whole });
        let (q, r) = (self.dim(d), self.dim(inner));
        let start = self.op2(Op::Mul, Scalar::I64, q, length);
        self.op2(Op::Add, Scalar::I64, start, r)
    }

    /// The node with these in place of dimensions, and divisions done that come out.
    fn rewrite(&mut self, id: Id, new: &BTreeMap<Dim, Id>, done: &mut BTreeMap<Id, Id>) -> Id {
        if let Some(known) = done.get(&id) {
            return *known;
        }
        let mut all = |this: &mut Self, ids: &[Id]| {
            ids.iter().map(|i| this.rewrite(*i, new, done)).collect::<Vec<Id>>()
        };
        let out = match self.node(id).clone() {
            Node::Const(_) | Node::Var(_) | Node::Size(..) => id,
            Node::Dim(d) => new.get(&d).copied().unwrap_or(id),
            Node::Read(v, ids) => {
                let ids = all(self, &ids);
                self.intern(Node::Read(v, ids))
            }
            Node::Local(v, ids) => {
                let ids = all(self, &ids);
                self.intern(Node::Local(v, ids))
            }
            Node::If(a, b, c) => {
                let ids = all(self, &[a, b, c]);
                self.intern(Node::If(ids[0], ids[1], ids[2]))
            }
            Node::Prim(prim, ids) => {
                let ids = all(self, &ids);
                let id = self.intern(Node::Prim(prim, ids));
                self.divided(id).unwrap_or(id)
            }
        };
        done.insert(id, out);
        out
    }
    /// A division that comes out: `(c * a + rest) / c` is `a` and its remainder `rest`, where the rest is below `c`; without
    /// that the multiples go all the same.
    fn divided(&mut self, id: Id) -> Option<Id> {
        let (remainder, x, c) = self.division(id)?;
        let length = self.factors(c);
        let (mut multiple, mut rest) = (Polynomial::default(), Polynomial::default());
        for (factors, k) in self.factors(x).monomials() {
            let term = Polynomial::monomial(factors, k);
            match Self::quotient(&term, &length) {
                Some(part) => multiple = multiple.plus(&part, 1),
                None => rest = rest.plus(&term, 1),
            }
        }
        let below = self.is_below(&rest, &length);
        let unchanged = !below && multiple.number() == Some(0);
        if unchanged {
            return None;
        }
        let rest_node = self.sum_of(&rest);
        if below {
            return Some(if remainder { rest_node } else { self.sum_of(&multiple) });
        }
        let op = if remainder { Op::Mod } else { Op::Div };
        let left = self.op2(op, Scalar::I64, rest_node, c);
        if remainder {
            return Some(left);
        }
        let multiple = self.sum_of(&multiple);
        Some(self.op2(Op::Add, Scalar::I64, multiple, left))
    }
    /// Whether `0 <= rest < c` at every point: 0, or what some dimensions run through if that is at most `c`.
    fn is_below(&mut self, rest: &Polynomial, c: &Polynomial) -> bool {
        if rest.number() == Some(0) {
            return true;
        }
        let node = self.sum_of(rest);
        let Some(index) = affine(self, node) else { return false };
        if index.rest.number() != Some(0) {
            return false;
        }
        let strides: BTreeMap<Dim, Polynomial> =
            index.strides.iter().map(|(d, s)| (*d, self.plain(s))).collect();
        let list: Vec<(Dim, &Polynomial)> = strides.iter().map(|(d, s)| (*d, s)).collect();
        let Some(order) = radix_order(&list, &|d| self.extent(d)) else { return false };
        let Some(one) = strides[&order[0]].number().filter(|k| *k > 0) else { return false };
        let points = order.iter().fold(Polynomial::constant(one), |n, d| n.times(&self.extent(*d)));
        match (points.number(), c.number()) {
            (Some(points), Some(c)) => points <= c,
            _ => Self::quotient(&points, c).is_some_and(|q| q.number() == Some(1)),
        }
    }

    /// The polynomial of a node.
    fn factors(&self, id: Id) -> Polynomial {
        self.plain(&polynomial(self, id))
    }
    /// The polynomial with one name for equal sizes, a number where one is known.
    fn plain(&self, p: &Polynomial) -> Polynomial {
        let number = |f: Id| {
            let mut equal = (0..self.nodes.len()).filter(|n| self.same(*n, f));
            equal.find_map(|n| match self.node(n) {
                Node::Const(c) => Some(c.as_i64()),
                _ => None,
            })
        };
        let mut out = Polynomial::default();
        for (factors, k) in p.monomials() {
            let term = factors.iter().fold(Polynomial::constant(k), |term, f| {
                term.times(
                    &number(*f).map_or_else(|| Polynomial::of(self.representative(*f)), Polynomial::constant),
                )
            });
            out = out.plus(&term, 1);
        }
        out
    }
    /// The quotient of two products, if it comes out.
    fn quotient(x: &Polynomial, c: &Polynomial) -> Option<Polynomial> {
        let (mut xs, mut cs) = (x.monomials(), c.monomials());
        let ((factors, k), None) = (xs.next()?, xs.next()) else { return None };
        let ((divisors, j), None) = (cs.next()?, cs.next()) else { return None };
        let mut left = factors.to_vec();
        for divisor in divisors {
            let at = left.iter().position(|f| f == divisor)?;
            left.remove(at);
        }
        (j > 0 && k % j == 0).then(|| Polynomial::monomial(&left, k / j))
    }
}
