//! What an expression does besides returning values.

use pullback_core::traverse::free_vars_exp;
use pullback_core::{Body, Exp, Program};

/// Whether the expression adds to an accumulator that is bound outside it (or hands one to a function).
pub(crate) fn accumulates(program: &Program, exp: &Exp) -> bool {
    match exp {
        Exp::AccAdd(..) => true,
        Exp::AccView(..) | Exp::Atom(_) => false,
        _ => free_vars_exp(exp).iter().any(|v| program.vars[*v].ty.is_acc()),
    }
}

/// Whether running the body does nothing but compute its results: no accumulation, no assertion, no calls (which may
/// hold either).
pub(crate) fn is_silent(body: &Body) -> bool {
    body.stms.iter().all(|s| {
        !matches!(s.exp, Exp::AccAdd(..) | Exp::Assert(..) | Exp::Call(..))
            && s.exp.bodies().iter().all(|scope| is_silent(scope.body))
    })
}
