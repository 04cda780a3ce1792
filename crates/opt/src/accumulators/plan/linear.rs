//! Linear functions leave sums: `sum over n of (Q^T z_n)` is `Q^T (sum over n of z_n)`.
//!
//! ```text
//! acc[k] += sum over e of q[k, e, d] * z[n, k, e]   for all n, k, d
//!     =>   s[k, e] = sum over n of z[n, k, e];   acc[k] += sum over e of q[k, e, d] * s[k, e]   for all k, d
//! ```
//!
//! The factors that depend on a dimension that is summed over the nest (`n`) are summed first; the others must not depend
//! on one, and the first ones must not depend on every dimension that stays (`d`): so the first sum has fewer points than
//! the nest, and the second does not have its dimensions. The old sum must have no other use, so that it disappears:
//! never more steps but for one array of the size of `s`, less by a factor of `n` otherwise. Terms may be zero but for a
//! condition on counters (a triangular `q`): it stays with the second sum, if the first factors can be read without it.
//!
//! Rounding: the sum is re-associated, which accumulators leave open, and a factor is multiplied with a sum instead of each
//! term. For finite terms both are exact up to rounding; where terms overflow, infinities and NaN may come in different
//! places, as in every product that is taken out of a sum (`nest`). Source: Fast CHAD notes 3.3, GMM.

use super::whole::add_sum;
use super::{CHEAP, Plan};
use crate::accumulators::delayed::sums::Sum;
use crate::accumulators::delayed::{Dim, Id, Node};
use crate::accumulators::escape::binds;
use crate::accumulators::index::{Affine, affine};
use crate::accumulators::nest::Nest;
use pullback_core::prune::prune_body;
use pullback_core::{Builder, Exp, Program, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeSet;

impl Plan<'_> {
    /// The program with the accumulation as a linear function of a sum over the nest.
    pub(super) fn linear(&mut self, coordinates: &[Id]) -> Option<Program> {
        (self.guards.is_empty() && !self.is_loop).then_some(())?;
        let affine: Vec<Option<Affine>> = coordinates.iter().map(|c| affine(&self.values, *c)).collect();
        let axes = self.axes(&affine)?;
        let kept: Vec<Dim> = axes.moving.iter().flat_map(|a| a.dims.iter().copied()).collect();
        let outer: BTreeSet<Dim> = (0..self.values.widths.len()).filter(|d| !kept.contains(d)).collect();
        let Exp::AccAdd(_, _, value) = &self.add.exp else { return None };
        let scalar = self.values.program.atom_type(*value).base().scalar()?;
        let rows: Vec<Id> = self.rows.clone().into_iter().map(|d| self.values.dim(d)).collect();
        let sum = self.values.linear(*value, self.env, &rows)?;
        let Split { moving, fixed, conditions } = self.split(&sum, &outer, scalar)?;
        let of_moving = self.values.dims(moving).clone();
        let (wide, all) = (kept.iter().all(|d| of_moving.contains(d)), outer.is_subset(&of_moving));
        (!wide && all && !outer.is_empty() && self.operations(moving) <= CHEAP).then_some(())?;

        let mut work = self.values.program.clone();
        let (parts, mut shapes) = self.hand_out(&mut work, &[moving, fixed])?;
        let mut b = Builder::new(&mut work);
        b.origin = self.values.program.vars[self.site.done].origin.clone();
        let stays: Vec<Dim> =
            kept.iter().copied().chain([sum.dim]).filter(|d| of_moving.contains(d)).collect();
        let given = self.extents(&mut b)?;
        let loops = stays.iter().chain(&outer).copied().collect();
        let mut nest = Nest {
            values: &mut self.values,
            loops,
            kept: stays.len(),
            shapes: &shapes,
            given: given.clone(),
        };
        (conditions.is_empty() || nest.is_total(parts[0])).then_some(())?;
        let inner = nest.emit(&mut b, parts[0])?.var()?;
        let places: Vec<Id> = stays.iter().map(|d| self.values.dim(*d)).collect();
        let inner_element = match places[..] {
            [] => Node::Var(inner),
            _ => Node::Read(inner, places),
        };
        shapes.insert(inner, stays.iter().map(|d| self.values.widths[*d]).collect());
        let inner_element = self.values.intern(inner_element);
        let mut element = self.values.op2(Op::Mul, scalar, parts[1], inner_element);
        element = self.values.guard(element, &conditions, scalar);
        if sum.negative {
            element = self.values.intern(Node::Prim(Prim::Op(Op::Neg, scalar), vec![element]));
        }
        let loops = kept.iter().copied().chain([sum.dim]).collect();
        let mut nest = Nest { values: &mut self.values, loops, kept: kept.len(), shapes: &shapes, given };
        let total = nest.emit(&mut b, element)?;
        add_sum(&mut nest, &mut b, self.root, &axes, total)?;
        let stms = b.finish();
        self.insert(&mut work, stms);
        self.is_gone(&mut work, sum.result).then_some(work)
    }

    /// The product of the factors that depend on these dimensions, and of the others; conditions on counters without which a
    /// term is zero are factors of the second kind.
    fn split(&mut self, sum: &Sum, outer: &BTreeSet<Dim>, scalar: Scalar) -> Option<Split> {
        let mut factors = sum.factors.clone();
        let (mut term, mut conditions) = (sum.element, Vec::new());
        while let Some((c, holds, value)) = self.values.guarded(term)
            && self.values.counts(c)
        {
            self.values.dims(c).is_disjoint(outer).then_some(())?;
            conditions.push((c, holds));
            term = value;
        }
        self.factors(term, &mut factors);
        let (moving, fixed): (Vec<Id>, Vec<Id>) =
            factors.into_iter().partition(|f| !self.values.dims(*f).is_disjoint(outer));
        let mut product =
            |ids: Vec<Id>| ids.into_iter().reduce(|x, y| self.values.op2(Op::Mul, scalar, x, y));
        Some(Split { moving: product(moving)?, fixed: product(fixed)?, conditions })
    }
    fn factors(&self, id: Id, out: &mut Vec<Id>) {
        match self.values.node(id) {
            Node::Prim(Prim::Op(Op::Mul, _), args) => args.iter().for_each(|x| self.factors(*x, out)),
            _ => out.push(id),
        }
    }
    /// How many operations an element takes.
    fn operations(&self, id: Id) -> usize {
        match self.values.node(id) {
            Node::Prim(_, ids) => 1 + ids.iter().map(|i| self.operations(*i)).sum::<usize>(),
            Node::If(a, b, c) => 1 + [a, b, c].iter().map(|i| self.operations(**i)).sum::<usize>(),
            _ => 0,
        }
    }
    /// Whether nothing needs a variable of the nest any more.
    fn is_gone(&self, work: &mut Program, v: Var) -> bool {
        work.vars.share();
        let (mut body, vars) = (work.funs[self.function].body.clone(), work.vars.clone());
        prune_body(work, &mut body);
        work.vars = vars;
        !binds(&body, v)
    }
}

struct Split {
    moving: Id,
    fixed: Id,
    /// Each with whether it has to hold.
    conditions: Vec<(Id, bool)>,
}
