//! What is known at a place besides definitions: widths of arrays, ranges of counters, sizes that an `assert` made equal.
//!
//! An assertion holds for what comes after it in its body, and nowhere else.

use super::Simplifier;
use crate::beside::{Beside, beside};
use pullback_core::{Atom, Exp, FusedForm, Loop, LoopForm, Soac, Var};
use pullback_prim::{Op, Prim, Scalar};

impl Simplifier<'_> {
    pub(super) fn note_order(&mut self, vars: impl IntoIterator<Item = Var>) {
        for v in vars {
            let place = self.order.place(v);
            if place.is_none() {
                *place = Some(self.bound);
                self.bound += 1;
            }
        }
    }

    /// Sizes of the arrays that the statement binds: the outer one, and those of a map's elements that are known outside.
    pub(super) fn note_width(&mut self, pat: &[Var], exp: &Exp) {
        match exp {
            Exp::Soac(Soac::Map { width, lam, .. }) => {
                for (v, r) in pat.iter().zip(&lam.body.result) {
                    let rank = self.program.atom_type(*r).rank();
                    let inner = (0..rank).map_while(|d| self.size(*r, d).filter(|n| self.is_older(*n, *v)));
                    let sizes = std::iter::once(*width).chain(inner).collect();
                    self.widths.insert(*v, sizes);
                }
            }
            Exp::Soac(Soac::Scan { width, .. }) => {
                self.widths.extend(pat.iter().map(|v| (*v, vec![*width])));
            }
            Exp::Soac(Soac::Fused { form, width, neutral, .. }) => {
                let values = if *form == FusedForm::Scan { 0 } else { neutral.len() };
                self.widths.extend(pat.iter().skip(values).map(|v| (*v, vec![*width])));
            }
            Exp::Loop(Loop {
                params, form: LoopForm::For { i: _, n: n @ Atom::Const(_) }, collect, ..
            }) => {
                // The number of a loop's iterations may be negative; that of its stacked values is not.
                if let Atom::Const(c) = n
                    && c.as_i64() >= 0
                {
                    let stacked = pat.iter().skip(params.len()).take(*collect);
                    self.widths.extend(stacked.map(|v| (*v, vec![Atom::i64(c.as_i64())])));
                }
            }
            _ => {}
        }
    }

    /// Whether an atom was bound before a variable.
    fn is_older(&self, a: Atom, than: Var) -> bool {
        a.var().is_none_or(|v| self.order.get(v) < self.order.get(than))
    }

    /// Counters of loops, and elements of `iota`, are in range.
    pub(super) fn note_below(&mut self, exp: &Exp) {
        match exp {
            Exp::Loop(Loop { form: LoopForm::For { i, n }, .. }) => {
                self.below.insert(*i, *n);
            }
            Exp::Soac(Soac::Map { lam, arrays, .. } | Soac::Fused { pre: lam, arrays, .. }) => {
                for (p, a) in lam.params.iter().zip(arrays) {
                    if let Some(Exp::Iota(n)) = self.def(*a) {
                        let n = *n;
                        self.below.insert(*p, n);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether the atom is a valid index into an outer dimension of this size.
    pub(super) fn in_range(&self, i: Atom, n: Atom) -> bool {
        match (i, n) {
            (Atom::Const(i), Atom::Const(n)) => (0..n.as_i64()).contains(&i.as_i64()),
            (Atom::Var(v), n) => self.below.get(&v) == Some(&n) || self.is_mirrored(i, n),
            (Atom::Const(_), Atom::Var(_)) => false,
        }
    }
    /// Whether the atom is `n - 1 - i`, where `i` counts to `n`: reverse sweeps count in this way.
    fn is_mirrored(&self, a: Atom, n: Atom) -> bool {
        let Some(Exp::Prim(Prim::Op(Op::Sub, Scalar::I64), args)) = self.def(a) else { return false };
        let last = beside(args[0], |v| self.defs.get(v));
        let of = beside(n, |_| None).map(|n| Beside { number: n.number - 1, ..n });
        last.is_some() && last == of && args[1].var().is_some_and(|i| self.below.get(&i) == Some(&n))
    }

    /// Numbers that a loop stacks in every iteration, and that do not vary.
    pub(super) fn note_stacked(&mut self, pat: &[Var], l: &Loop) {
        let LoopForm::For { n, .. } = l.form else { return };
        let state = l.params.len();
        for (v, a) in pat.iter().zip(&l.body.result).skip(state).take(l.collect) {
            let a = self.atom(*a);
            // What is bound inside has no place in the order yet.
            let is_outer = a.var().is_none_or(|v| self.order.get(v).is_some());
            if is_outer && self.program.atom_type(a).scalar().is_some() {
                self.stacked.insert(*v, (n, a));
            }
        }
    }

    /// What a comparison of counters, of numbers beside them and of their bounds is in all iterations.
    pub(super) fn compared(&self, op: Op, x: Atom, y: Atom) -> Option<bool> {
        let (least, most) = self.difference(x, y);
        let (is_positive, is_negative) = (least.is_some_and(|d| d > 0), most.is_some_and(|d| d < 0));
        let is_zero = least == Some(0) && most == Some(0);
        let either = |yes: bool, no: bool| (yes || no).then_some(yes);
        match op {
            Op::Lt => either(is_negative, least.is_some_and(|d| d >= 0)),
            Op::Le => either(most.is_some_and(|d| d <= 0), is_positive),
            Op::Eq => either(is_zero, is_positive || is_negative),
            Op::Ne => either(is_positive || is_negative, is_zero),
            _ => None,
        }
    }

    /// The least and the most that `x - y` may be. Where a counter is, its bound is at least 1.
    fn difference(&self, x: Atom, y: Atom) -> (Option<i64>, Option<i64>) {
        let beside = |a| beside(a, |v| self.defs.get(v));
        let (Some(x), Some(y)) = (beside(x), beside(y)) else { return (None, None) };
        let bound = |x: Beside| self.below.get(&x.base?).map(|n| self.atom(*n));
        let (n, m) = (bound(x), bound(y));
        let (c, d) = (x.number, y.number);
        if x.base == y.base && n.is_some() {
            return (Some(c - d), Some(c - d));
        }
        // A counter and its bound, which may be so large that more than it overflows.
        if n.is_some() && n == y.base.map(Atom::Var) {
            return (None, (d <= 0).then_some(c - 1 - d));
        }
        if m.is_some() && m == x.base.map(Atom::Var) {
            return ((c <= 0).then_some(c + 1 - d), None);
        }
        let least =
            |x: Beside, bound: Option<Atom>| (x.base.is_none() || bound.is_some()).then_some(x.number);
        let most = |x: Beside, bound: Option<Atom>| match (x.base, bound) {
            (None, _) => Some(x.number),
            (_, Some(Atom::Const(n))) => n.as_i64().checked_add(x.number - 1),
            _ => None,
        };
        let minus = |a: Option<i64>, b: Option<i64>| a?.checked_sub(b?);
        (minus(least(x, n), most(y, m)), minus(most(x, n), least(y, m)))
    }

    /// After `assert(a == b)` on sizes, the one that is bound later is the other one. Returns what stops to hold at the end
    /// of the body.
    pub(super) fn asserted(&mut self, exp: &Exp) -> Option<Var> {
        let Exp::Assert(condition, ..) = exp else { return None };
        let Some(Exp::Prim(Prim::Op(Op::Eq, Scalar::I64), args)) = self.def(*condition) else { return None };
        let (a, b) = (self.atom(args[0]), self.atom(args[1]));
        let later = |a: Atom, b: Atom| match (a, b) {
            (Atom::Var(v), Atom::Const(_)) => Some((v, b)),
            (Atom::Var(v), Atom::Var(w)) if self.order.get(v)? > self.order.get(w)? => Some((v, b)),
            _ => None,
        };
        let (v, known) = later(a, b).or_else(|| later(b, a))?;
        self.subst.insert(v, known);
        Some(v)
    }
}
