//! Index analysis: coordinates as integer polynomials in the dimensions of a nest, and when a list of them is injective.
//!
//! Assumes that index arithmetic does not wrap around (an index that did would be out of range). Source: Fast CHAD
//! notes 3.1, conditions (P) and (M).

use super::delayed::{Delayed, Dim, Id, Node};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// A polynomial with integer coefficients: products of nodes (sorted) and their factors, none of which is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polynomial(BTreeMap<Vec<Id>, i64>);

impl Polynomial {
    /// A number.
    pub fn constant(k: i64) -> Polynomial {
        let mut out = Polynomial::default();
        out.add(Vec::new(), k);
        out
    }
    /// A product of nodes (sorted) times a number.
    pub(crate) fn monomial(factors: &[Id], k: i64) -> Polynomial {
        let mut out = Polynomial::default();
        out.add(factors.to_vec(), k);
        out
    }
    /// The value of a node.
    pub fn of(id: Id) -> Polynomial {
        let mut out = Polynomial::default();
        out.add(vec![id], 1);
        out
    }
    fn add(&mut self, monomial: Vec<Id>, k: i64) {
        let sum = self.0.get(&monomial).copied().unwrap_or(0).wrapping_add(k);
        if sum == 0 {
            self.0.remove(&monomial);
        } else {
            self.0.insert(monomial, sum);
        }
    }
    pub(crate) fn plus(&self, other: &Polynomial, scale: i64) -> Polynomial {
        let mut out = self.clone();
        for (monomial, k) in &other.0 {
            out.add(monomial.clone(), k.wrapping_mul(scale));
        }
        out
    }
    pub(crate) fn times(&self, other: &Polynomial) -> Polynomial {
        let mut out = Polynomial::default();
        for (a, j) in &self.0 {
            for (b, k) in &other.0 {
                let mut both: Vec<Id> = a.iter().chain(b).copied().collect();
                both.sort_unstable();
                out.add(both, j.wrapping_mul(*k));
            }
        }
        out
    }
    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<i64> {
        match self.0.iter().next() {
            None => Some(0),
            Some((monomial, k)) if monomial.is_empty() && self.0.len() == 1 => Some(*k),
            Some(_) => None,
        }
    }
    pub(crate) fn monomials(&self) -> impl Iterator<Item = (&[Id], i64)> {
        self.0.iter().map(|(m, k)| (m.as_slice(), *k))
    }
}

/// The polynomial of an integer node.
pub(super) fn polynomial(values: &Delayed<'_>, id: Id) -> Polynomial {
    match values.node(id) {
        Node::Const(c) => Polynomial::constant(c.as_i64()),
        Node::Prim(Prim::Op(op, Scalar::I64), args) => {
            let part = |k: usize| polynomial(values, args[k]);
            match op {
                Op::Add => part(0).plus(&part(1), 1),
                Op::Sub => part(0).plus(&part(1), -1),
                Op::Neg => Polynomial::default().plus(&part(0), -1),
                Op::Mul => part(0).times(&part(1)),
                _ => Polynomial::of(id),
            }
        }
        _ => Polynomial::of(id),
    }
}

/// A coordinate: `rest + sum of strides[d] * d`, where neither depends on a dimension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Affine {
    /// What does not depend on a dimension.
    pub rest: Polynomial,
    /// By what a dimension is multiplied, where it occurs.
    pub strides: BTreeMap<Dim, Polynomial>,
}

/// The coordinate as an affine function of the dimensions, if it is one.
pub(super) fn affine(values: &Delayed<'_>, id: Id) -> Option<Affine> {
    let mut out = Affine::default();
    for (monomial, k) in polynomial(values, id).monomials() {
        let mut dim = None;
        let mut others = Polynomial::constant(k);
        for factor in monomial {
            match values.node(*factor) {
                Node::Dim(d) if dim.is_none() => dim = Some(*d),
                _ if values.dims(*factor).is_empty() => others = others.times(&Polynomial::of(*factor)),
                _ => return None,
            }
        }
        match dim {
            None => out.rest = out.rest.plus(&others, 1),
            Some(d) => {
                let stride = out.strides.entry(d).or_default();
                *stride = stride.plus(&others, 1);
            }
        }
    }
    out.strides.retain(|_, stride| stride.number() != Some(0));
    Some(out)
}

/// Whether different points of the dimensions (those with more than one point; extents as polynomials) have different
/// coordinates. Sufficient conditions only:
///
/// - (P) every dimension has a coordinate in which it, and no other dimension, occurs with a constant stride;
/// - (M) mixed radix: some coordinate holds all dimensions that (P) leaves, and sorted by stride each stride is at least
///   (a multiple of) the previous stride times the previous extent, starting from a constant stride.
///
/// In (M) constants are compared as numbers; other strides must be the product itself, which is positive wherever
/// the nest has a point at all.
pub fn is_injective(
    coordinates: &[Affine],
    dims: &BTreeSet<Dim>,
    extent: &dyn Fn(Dim) -> Polynomial,
) -> bool {
    let wide: BTreeSet<Dim> =
        dims.iter().copied().filter(|d| !matches!(extent(*d).number(), Some(n) if n <= 1)).collect();
    let private = |d: &Dim| {
        coordinates.iter().any(|c| {
            let alone = || c.strides.keys().all(|other| other == d || !wide.contains(other));
            c.strides.get(d).is_some_and(|s| s.number().is_some()) && alone()
        })
    };
    let left: BTreeSet<Dim> = wide.iter().copied().filter(|d| !private(d)).collect();
    // A private dimension in the row would have to be known first: it is, from its own row; so it counts as fixed.
    left.is_empty() || coordinates.iter().any(|c| is_mixed_radix(c, &left, extent))
}

/// Condition (M) for these dimensions and one coordinate. Other dimensions of the coordinate are taken as fixed.
fn is_mixed_radix(c: &Affine, dims: &BTreeSet<Dim>, extent: &dyn Fn(Dim) -> Polynomial) -> bool {
    let mut strides: Vec<(Dim, &Polynomial)> = Vec::new();
    for d in dims {
        match c.strides.get(d) {
            Some(s) => strides.push((*d, s)),
            None => return false,
        }
    }
    if let Some(numbers) = constant_radix(&strides, extent) {
        return numbers;
    }
    radix_order(&strides, extent).is_some()
}

/// Strides and extents that are all numbers: each stride exceeds what the smaller ones reach together.
fn constant_radix(strides: &[(Dim, &Polynomial)], extent: &dyn Fn(Dim) -> Polynomial) -> Option<bool> {
    let mut numbers: Vec<(i128, i128)> = Vec::new();
    for (d, s) in strides {
        numbers.push((i128::from(s.number()?).abs(), i128::from(extent(*d).number()?)));
    }
    numbers.sort_unstable();
    let mut reach: i128 = 0;
    for (stride, n) in numbers {
        if stride <= reach {
            return Some(false);
        }
        reach += stride * (n - 1).max(0);
    }
    Some(true)
}

/// The dimensions from the fastest to the slowest if the strides are `1, n1, n1*n2, ..` (times one constant).
pub(crate) fn radix_order(
    strides: &[(Dim, &Polynomial)],
    extent: &dyn Fn(Dim) -> Polynomial,
) -> Option<Vec<Dim>> {
    let mut left: Vec<(Dim, &Polynomial)> = strides.to_vec();
    let numbers = left.iter().enumerate().filter_map(|(k, (_, s))| Some((s.number()?.unsigned_abs(), k)));
    let (_, first) = numbers.filter(|(n, _)| *n > 0).min()?;
    let (d, stride) = left.remove(first);
    let mut next = stride.times(&extent(d));
    let mut order = vec![d];
    while !left.is_empty() {
        let k = left.iter().position(|(_, s)| **s == next)?;
        let (d, _) = left.remove(k);
        next = next.times(&extent(d));
        order.push(d);
    }
    Some(order)
}
