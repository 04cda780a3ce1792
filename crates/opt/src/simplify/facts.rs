//! What is known at a place besides definitions: widths of arrays, ranges of counters, sizes that an `assert` made equal.
//!
//! An assertion holds for what comes after it in its body, and nowhere else.

use super::Simplifier;
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
            (Atom::Var(i), n) => self.below.get(&i) == Some(&n),
            (Atom::Const(_), Atom::Var(_)) => false,
        }
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
