//! Reductions and scans, also fused with what makes their elements.
//!
//! A reduction to scalars whose operator is commutative, by declaration or because it is symmetric, may take its elements in any
//! order; another one is done in parts if it can be; what remains goes one element after the other.

use super::aliasing::Roots;
use super::loops::{Collector, Slots, Trip};
use super::rep::Rep;
use super::shape_inference::Inside;
use super::state::Cell;
use super::symmetric::is_symmetric;
use super::{Lower, Res, Val, roots};
use crate::ir::{Fold, Operand, Order, Ty};
use pullback_base::index::IdSet;
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Exp, FusedForm, Lam, Soac, Type, Var};

/// `reduce`, `scan`, and both fused with what makes their elements.
pub(super) struct Combine<'a> {
    pub(super) width: Atom,
    pub(super) pre: Option<&'a Lam>,
    pub(super) lam: &'a Lam,
    pub(super) neutral: &'a [Atom],
    pub(super) arrays: &'a [Atom],
    pub(super) scan: bool,
    /// Whether the elements may be taken in any order.
    pub(super) commutative: bool,
}

impl Combine<'_> {
    /// What the bodies mention, as an operation without operands.
    fn soac(&self) -> Soac {
        let lam = self.lam.clone();
        let pre = self.pre.cloned().unwrap_or_else(|| lam.clone());
        let form = FusedForm::Scan;
        Soac::Fused { form, width: self.width, pre, lam, neutral: Vec::new(), arrays: Vec::new() }
    }
}

impl Lower<'_> {
    pub(super) fn combine(&mut self, pat: &[Var], c: Combine<'_>) -> Res<Vec<Val>> {
        let n = self.width(c.width, c.arrays);
        let m = c.neutral.len();
        let mut users = free_vars_exp(&Exp::Soac(c.soac()));
        let (prefixes, rest) = if c.scan { pat.split_at(m) } else { (&pat[..0], &pat[m..]) };
        let operator = |_: &Self| Inside::operator(c.lam, c.neutral);
        let mut collectors = self.collectors(Some(n), prefixes, &c.lam.body.result, operator)?;
        let also = users.iter().copied().chain(c.neutral.iter().filter_map(|a| a.var())).collect();
        if let Some(pre) = c.pre {
            collectors.extend(self.collectors_over(n, rest, pre, (c.arrays, &also))?);
        }
        users.extend(c.arrays.iter().filter_map(|a| a.var()));
        let scalars = c.lam.params.iter().all(|p| self.ty(*p).scalar().is_some());
        let any = !c.scan && scalars && (c.commutative || is_symmetric(c.lam));
        if !c.scan
            && !any
            && let Some(mut out) = self.combined_in_parts(&c, n, &collectors, &users)?
        {
            for collector in &collectors {
                out.push(self.collected(collector, n, Roots::new())?);
            }
            return Ok(out);
        }
        let cells = self.cells_of(&c, &users)?;
        self.owners.enter();
        let seen = cells.iter().map(|cell| self.seen(cell)).collect::<Res<Vec<_>>>()?;
        let mut iteration = |s: &mut Self, i: Operand, state: Vec<Val>, slots: &Slots| {
            s.taken_in(&c, &collectors, i, state, slots)
        };
        let order = if any { self.order_of(&c, &cells)? } else { Order::Given };
        let trip = Trip::Count(n);
        let (mut out, arrays, _) = self.iterate(trip, &cells, &collectors, seen, order, &mut iteration)?;
        if c.scan {
            out.clear();
        }
        out.extend(arrays);
        Ok(out)
    }
    /// Cells that hold the neutral element.
    pub(super) fn cells_of(&mut self, c: &Combine<'_>, users: &IdSet<Var>) -> Res<Vec<Cell>> {
        let mut cells = Vec::new();
        for (k, (p, init)) in c.lam.params.iter().zip(c.neutral).enumerate() {
            let ty = self.ty(*p).clone();
            let others = c.neutral.iter().enumerate().filter(|(j, _)| *j != k).filter_map(|(_, a)| a.var());
            let users = users.iter().copied().chain(others).collect();
            cells.push(self.cell(*init, &ty, self.is_fixed(*p), &users)?);
        }
        Ok(cells)
    }
    /// The state with element `i` taken in, and what is collected.
    pub(super) fn taken_in(
        &mut self,
        c: &Combine<'_>,
        collectors: &[Collector],
        i: Operand,
        state: Vec<Val>,
        slots: &Slots,
    ) -> Res<(Vec<Val>, Vec<Val>)> {
        let m = c.neutral.len();
        let scanned = if c.scan { m } else { 0 };
        let mut made = Vec::new();
        if let Some(pre) = c.pre {
            self.bind_rows(&pre.params, c.arrays, i)?;
            self.want_collected(&pre.body, &collectors[scanned..], &slots[scanned..]);
            made = self.results(&pre.body)?;
        }
        let extra = made.split_off(m.min(made.len()));
        for (p, val) in c.lam.params.iter().zip(state.into_iter().chain(made)) {
            self.bind_val(*p, val);
        }
        if c.pre.is_none() {
            self.bind_rows(&c.lam.params[m..], c.arrays, i)?;
        }
        let next = self.holding(roots(&extra), |s| s.results(&c.lam.body))?;
        if let Some(pre) = c.pre {
            self.note_kept(&pre.body.result[m..]);
        }
        let mut values = if c.scan { next.clone() } else { Vec::new() };
        values.extend(extra);
        Ok((next, values))
    }
    /// How the iterations of a reduction to scalars may be ordered.
    fn order_of(&mut self, c: &Combine<'_>, cells: &[Cell]) -> Res<Order> {
        let (lam, m) = (c.lam, cells.len());
        let (mut state, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for (k, cell) in cells.iter().enumerate() {
            let Cell::Words(Type::Scalar(s), regs, _) = cell else { return Ok(Order::Given) };
            state.extend(regs);
            for (side, p) in [(&mut left, lam.params[k]), (&mut right, lam.params[m + k])] {
                let reg = self.reg(Ty::Scalar(*s), "side");
                side.push(reg);
                self.bind(p, Rep::Scalar(reg.into()), Roots::new());
            }
        }
        let neutral = c.neutral.iter().map(|a| self.scalar(*a)).collect();
        let (combine, out) = self.block(|s| s.results(&lam.body))?;
        let out =
            out.iter().filter_map(|v| if let Rep::Scalar(x) = v.rep { Some(x) } else { None }).collect();
        Ok(Order::Any(vec![Fold { state, neutral, combine, left, right, out }]))
    }
}
