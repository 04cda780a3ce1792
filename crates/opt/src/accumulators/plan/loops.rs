//! Sums of loops: E2 and E9 where iterations follow one another.
//!
//! - Stacked: every iteration adds somewhere else. The loop collects what is added, and the stack is added once after it;
//!   it has at most as many elements as the accumulator.
//! - Carried: every iteration adds to the same place. The sum is a state of the loop, and is added once after it.
//!
//! Guarantees that neither does work where the program did none: what is done once per loop is paid for by an iteration
//! that has added as much, or by the first value of the accumulator.

use super::{Axes, Plan, at};
use crate::accumulators::delayed::{Dim, Id, Node, OUTSIDE};
use crate::accumulators::nest::{Known, Nest};
use crate::accumulators::sites::Way;
use pullback_base::index::IdMap;
use pullback_core::{Atom, Body, Builder, Exp, Loop, LoopForm, Soac, Var};
use pullback_prim::Op;
use std::collections::BTreeSet;

impl<'a> Plan<'a> {
    pub(super) fn is_carried(&self) -> bool {
        self.attempt.way == Way::Carried
    }
    /// The environment of an iteration; the loop is one more dimension.
    pub(super) fn enter_loop(&mut self, l: &'a Loop, scope: usize, place: Id) -> Option<()> {
        self.is_loop = true;
        match &l.form {
            LoopForm::For { i: _, n } => {
                let width = self.values.element(*n, self.env, &[]);
                self.env = self.values.iterate(l, self.env, place)?;
                let unknown = self.is_carried().then(|| self.values.int(-1));
                self.values.widths.push(width.or(unknown)?);
            }
            LoopForm::While(_) => {
                (self.is_carried() && scope == 1).then_some(())?;
                self.env = self.values.some_iteration(l, self.env);
                let unknown = self.values.int(-1);
                self.values.widths.push(unknown);
            }
        }
        Some(())
    }

    /// Whether the sum of a loop with these coordinates can be taken out of it, and the axes for that.
    pub(super) fn around_loop(&mut self, seen: &BTreeSet<Dim>, mut axes: Axes) -> Option<Axes> {
        let rows: BTreeSet<Dim> = self.rows.iter().copied().collect();
        let invariant = seen.is_subset(&rows);
        let fits = match self.attempt.way {
            Way::Anew => !seen.contains(&0),
            Way::HandedOut => {
                *seen == self.values.full && (self.is_unconditional() || self.is_stack_paid_for(&axes))
            }
            Way::Carried if !invariant => false,
            Way::Carried if rows.is_empty() => true,
            Way::Carried if axes.moving.iter().all(|a| a.whole) && self.is_scope_paid_for() => true,
            Way::Carried => {
                // Where no iteration runs, nothing is added to a part without elements.
                axes.moving.iter_mut().for_each(|a| a.whole = false);
                self.trips = self.trips().filter(|_| self.is_unconditional());
                self.trips.is_some()
            }
            Way::Histogram | Way::Linear | Way::Columns => false,
        };
        fits.then_some(axes)
    }
    /// Every iteration adds.
    fn is_unconditional(&self) -> bool {
        self.guards.is_empty() && self.values.widths.len() == 1 + self.rows.len()
    }
    /// A stack of which only some elements are added: of numbers, or as large as an accumulator that was made for it.
    fn is_stack_paid_for(&mut self, axes: &Axes) -> bool {
        let Some(axis) = axes.moving.iter().find(|a| a.dims == [0]) else { return false };
        let size = self.values.size(self.init, OUTSIDE, axis.number);
        let covers = size.is_some_and(|n| self.values.same(n, self.values.widths[0]));
        covers && (self.rows.is_empty() || self.is_scope_paid_for())
    }
    /// Whether the loop runs at most once per scope, whose first value was made, element by element, in the same body.
    fn is_scope_paid_for(&self) -> bool {
        let fun = &self.values.program.funs[self.function];
        let mut body = at(&fun.body, &self.site.path[..self.site.root]);
        let made = self.init.var().is_some_and(|v| is_made(body, v));
        let once = self.site.path[self.site.root..self.attempt.nest].iter().all(|(stm, scope)| {
            let exp = &body.stms[*stm].exp;
            body = exp.bodies()[*scope].body;
            matches!(exp, Exp::If(..) | Exp::Match(..) | Exp::WithAcc(..) | Exp::Marked(..))
        });
        made && once
    }
    /// The number of iterations of the loop that is taken as the nest.
    fn trips(&self) -> Option<Atom> {
        let fun = &self.values.program.funs[self.function];
        let region = at(&fun.body, &self.site.path[..self.attempt.nest]);
        match &region.stms[self.site.path[self.attempt.nest].0].exp {
            Exp::Loop(Loop { form: LoopForm::For { i: _, n }, .. }) => Some(*n),
            _ => None,
        }
    }

    /// Code for the extents of the dimensions. Where the code that has them did not run they could be anything: then they
    /// count as 0.
    pub(super) fn extents(&mut self, b: &mut Builder<'_>) -> Option<Known> {
        if let Some(given) = &self.given {
            return Some(given.clone());
        }
        let mut given = Known::new();
        let carried = self.is_carried();
        let dims = if carried { self.rows.clone() } else { (0..self.values.widths.len()).collect() };
        let runs = self.trips.map(|n| b.op2(Op::Lt, Atom::Const(b.scalar(n).zero()), n));
        for d in dims {
            let width = self.values.widths[d];
            let certain = (d == 0 && !self.is_loop) || matches!(self.values.node(width), Node::Size(..));
            if given.contains_key(&width) || (certain && runs.is_none()) {
                continue;
            }
            let shapes = IdMap::new();
            let none = Known::new();
            let mut nest =
                Nest { values: &mut self.values, loops: Vec::new(), kept: 0, shapes: &shapes, given: none };
            let n = nest.scalar(b, width, &mut given)?;
            let n = match (n, runs) {
                (Atom::Const(c), None) => Atom::i64(c.as_i64().max(0)),
                (n, None) => b.op2(Op::Max, n, Atom::i64(0)),
                (n, Some(runs)) => b.select(runs, n, Atom::i64(0)),
            };
            given.insert(width, n);
        }
        self.given = Some(given.clone());
        Some(given)
    }
}

/// Whether a statement of this body computes every element of the variable.
fn is_made(body: &Body, v: Var) -> bool {
    let Some((exp, k)) = body.stms.iter().find_map(|s| Some((&s.exp, s.pat.iter().position(|p| *p == v)?)))
    else {
        return false;
    };
    match exp {
        Exp::Replicate(..) | Exp::Plus(..) | Exp::Soac(Soac::Map { .. }) => true,
        Exp::WithAcc(inits, _) => inits.get(k).and_then(|a| a.var()).is_some_and(|v| is_made(body, v)),
        _ => false,
    }
}
