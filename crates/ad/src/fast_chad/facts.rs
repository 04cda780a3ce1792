//! What the rules for indexed writes know about arrays before they see them.
//!
//! Each fact is read off the statement that binds the variable, so it holds wherever the variable is in scope. Unknown is
//! always allowed.

use super::reverse::{Reverse, alias};
use pullback_base::index::IdSet;
use pullback_core::{Atom, Exp, Lam, Soac, Stm, Var};
use pullback_prim::{Op, Prim};

impl Reverse<'_> {
    /// Notes the facts about what these statements bind.
    pub(crate) fn note_facts(&mut self, stms: &[Stm]) {
        for stm in stms {
            self.note_names(stm);
            if is_distinct(&stm.exp, &self.distinct) {
                self.distinct.insert(stm.pat[0]);
            }
            let cheap = match &stm.exp {
                Exp::Atom(_) | Exp::If(..) | Exp::Match(..) | Exp::Update(..) | Exp::UpdateSlice(..) => true,
                Exp::Soac(soac) => matches!(soac, Soac::Hist { .. } | Soac::Scatter { .. }),
                Exp::Loop(l) => {
                    self.unpaid.extend(l.params.iter().map(|p| p.0));
                    true
                }
                exp => {
                    let part = alias(exp).and_then(|(a, _)| a.var());
                    part.is_some_and(|a| self.unpaid.contains(&a))
                }
            };
            if cheap {
                self.unpaid.extend(stm.pat.iter().copied().filter(|&v| self.b.program.vars[v].ty.rank() > 0));
            }
        }
    }
}

/// Whether the elements of an index array differ: positions, and rearrangements and shifts of such.
fn is_distinct(exp: &Exp, known: &IdSet<Var>) -> bool {
    let is = |a: &Atom| a.var().is_some_and(|v| known.contains(&v));
    match exp {
        Exp::Iota(_) => true,
        Exp::Atom(a) | Exp::Reverse(a) | Exp::Rotate(a, _) => is(a),
        Exp::Slice(a, slice) => is(a) && slice.stride.var().is_none() && slice.stride != Atom::i64(0),
        Exp::Gather(a, at) => is(a) && is(at),
        Exp::Soac(Soac::Map { lam, arrays, .. }) => arrays.len() == 1 && is(&arrays[0]) && is_shift(lam),
        _ => false,
    }
}

/// `\i -> i + c` or `\i -> c - i` with `c` from outside (or a constant).
fn is_shift(lam: &Lam) -> bool {
    let ([p], [stm], [result]) = (&lam.params[..], &lam.body.stms[..], &lam.body.result[..]) else {
        return false;
    };
    let Exp::Prim(Prim::Op(Op::Add | Op::Sub, s), args) = &stm.exp else { return false };
    let count = args.iter().filter(|&&a| a == Atom::Var(*p)).count();
    s.is_integer() && count == 1 && *result == Atom::Var(stm.pat[0])
}
