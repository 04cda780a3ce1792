//! What minimum and maximum of floats are inside of operators: choices of the first of equal arguments.
//!
//! The same as `pullback_core::choose`, for algorithms on lambda: an operator of a reduction, a scan or a histogram may be bracketed in any way,
//! and shares of equal elements would depend on the brackets.
//!
//! Assumes that operators and what they call are written where they are used, as [`crate::inline`] leaves them; an operator that is a variable, and
//! functions that call themselves, stay as they are. Guarantees: the same values, types and costs; a second time nothing changes. Cost: linear in the
//! terms.

use crate::term::{Exp, FunId, Program, Soac, Term};
use crate::with_stack;

/// In a function and in those that it calls.
pub fn operators_choose(program: &mut Program, f: FunId) {
    for g in program.reachable(f) {
        if let Some(body) = &mut program.funs[g].body {
            term(body, false);
        }
    }
}

/// A term; `inside` of an operator.
fn term(t: &mut Term, inside: bool) {
    with_stack(|| match t.exp_mut() {
        Exp::Prim(prim, args) => {
            if inside {
                *prim = prim.in_operator();
            }
            args.iter_mut().for_each(|a| term(a, inside));
        }
        Exp::Soac(Soac::Reduce { op, neutral, array, .. } | Soac::Scan { op, neutral, array }) => {
            term(op, true);
            [neutral, array].into_iter().for_each(|t| term(t, inside));
        }
        Exp::Soac(Soac::Hist { op, neutral, dst, indices, values }) => {
            term(op, true);
            [neutral, dst, indices, values].into_iter().for_each(|t| term(t, inside));
        }
        exp => exp.children_mut(&mut |child| term(child, inside)),
    });
}
