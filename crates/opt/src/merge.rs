//! Components of a reduction that are the same.
//!
//! What is fused may reduce the same numbers by the same operator twice: in a function and in its derivative, say. One of the two is left.
//!
//! Assumes a checked program. Guarantees: the same values bit for bit.

use pullback_core::rename::Subst;
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Exp, FusedForm, Lam, Soac, Stm, Var};
use pullback_prim::{Op, Prim};

/// Of components of a reduction that are the same numbers under the same operator, one is left; `same` says what stands for the others.
pub(crate) fn merge_equal(stm: &mut Stm, same: &mut Subst) {
    let Exp::Soac(Soac::Fused { form: FusedForm::Reduce { .. }, pre, lam, neutral, .. }) = &mut stm.exp
    else {
        return;
    };
    let mut kept: Vec<(Op, Atom, Atom, Var)> = Vec::new();
    let mut k = 0;
    while k < neutral.len() {
        let n = neutral.len();
        let Some((at, op)) = operator_of(lam, k, n) else {
            k += 1;
            continue;
        };
        let key = |(o, x, z, _): &(Op, Atom, Atom, Var)| (*o, *x, *z) == (op, pre.body.result[k], neutral[k]);
        match kept.iter().find(|other| key(other)) {
            Some((.., v)) => {
                same.insert(stm.pat[k], (*v).into());
                lam.body.stms.remove(at);
                lam.body.result.remove(k);
                lam.params.remove(n + k);
                lam.params.remove(k);
                pre.body.result.remove(k);
                neutral.remove(k);
                stm.pat.remove(k);
            }
            None => {
                kept.push((op, pre.body.result[k], neutral[k], stm.pat[k]));
                k += 1;
            }
        }
    }
}

/// The primitive that component `k` of `n` of an operator is, and its place, if nothing else uses the component.
fn operator_of(lam: &Lam, k: usize, n: usize) -> Option<(usize, Op)> {
    let (result, args) = (lam.body.result[k], [Atom::from(lam.params[k]), Atom::from(lam.params[n + k])]);
    let at = lam.body.stms.iter().position(|s| s.pat.iter().any(|v| result == (*v).into()))?;
    let op = match &lam.body.stms[at].exp {
        Exp::Prim(Prim::Op(op, _), found) if found[..] == args => *op,
        _ => return None,
    };
    let mentions = |s: &Stm| {
        let free = free_vars_exp(&s.exp);
        args.iter().chain([&result]).any(|a| a.var().is_some_and(|v| free.contains(&v)))
    };
    let others = lam.body.stms.iter().enumerate().any(|(j, s)| j != at && mentions(s));
    let is_once = lam.body.result.iter().filter(|a| **a == result || args.contains(a)).count() == 1;
    (!others && is_once).then_some((at, op))
}
