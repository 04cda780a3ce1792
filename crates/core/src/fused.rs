//! Fused array operations taken apart again: [`Soac::Fused`] is a `map`, then a `reduce` or `scan`.
//!
//! The rules of differentiation are those of the parts, so derivatives are taken of split programs. Guarantees: the same
//! values; variables stay unique. Cost: linear in the code.

use crate::builder::Builder;
use crate::ir::{Atom, Body, Exp, FusedForm, Program, Soac, Stm, Var};
use crate::traverse::for_each_stm;
use crate::types::Type;

/// Splits every fused operation of a body, nested bodies included.
pub fn split(program: &mut Program, body: &mut Body) {
    let mut any = false;
    for_each_stm(body, &mut |s| any |= matches!(s.exp, Exp::Soac(Soac::Fused { .. })));
    if any {
        split_in(program, body);
    }
}

fn split_in(program: &mut Program, body: &mut Body) {
    let mut out = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        for scope in stm.exp.bodies_mut() {
            split_in(program, scope.body);
        }
        match stm.exp {
            Exp::Soac(Soac::Fused { form, width, pre, lam, neutral, arrays }) => {
                let count = neutral.len();
                let columns: Vec<Type> =
                    pre.body.result.iter().take(count).map(|a| Type::array(program.atom_type(*a))).collect();
                let mut b = Builder::new(program);
                let columns: Vec<Var> = columns.into_iter().map(|t| b.fresh(t, "ys")).collect();
                let (results, others) = stm.pat.split_at(count);
                let pat = columns.iter().chain(others).copied().collect();
                out.push(Stm { pat, exp: Exp::Soac(Soac::Map { width, lam: pre, arrays }) });
                let arrays: Vec<Atom> = columns.into_iter().map(Atom::Var).collect();
                let soac = match form {
                    FusedForm::Reduce { commutative } => {
                        Soac::Reduce { width, lam, neutral, arrays, commutative }
                    }
                    FusedForm::Scan => Soac::Scan { width, lam, neutral, arrays },
                };
                out.push(Stm { pat: results.to_vec(), exp: Exp::Soac(soac) });
            }
            exp => out.push(Stm { pat: stm.pat, exp }),
        }
    }
    body.stms = out;
}
