//! What an expression does besides returning values.

use pullback_core::{Atom, Body, Exp, Program, Stm, Var};

/// Whether the expression adds to an accumulator that is bound outside it (or hands one to a function).
pub(crate) fn accumulates(program: &Program, exp: &Exp) -> bool {
    match exp {
        Exp::AccAdd(..) => true,
        Exp::AccView(..) | Exp::Atom(_) => false,
        _ => mentions_outer(program, exp, &mut Vec::new()),
    }
}

/// Whether the expression mentions an accumulator that is neither bound inside nor in `bound`, to which the inner ones are added.
fn mentions_outer(program: &Program, exp: &Exp, bound: &mut Vec<Var>) -> bool {
    let is_acc = |v: &Var| program.vars[*v].ty.is_acc();
    let is_outer = |a: Atom, bound: &[Var]| a.var().is_some_and(|v| is_acc(&v) && !bound.contains(&v));
    let mut found = false;
    exp.for_each_atom(|a| found |= is_outer(a, bound));
    found
        || exp.bodies().into_iter().any(|scope| {
            bound.extend(scope.binds.iter().filter(|v| is_acc(v)));
            let in_stm = |s: &Stm| {
                let found = mentions_outer(program, &s.exp, bound);
                bound.extend(s.pat.iter().filter(|v| is_acc(v)));
                found
            };
            scope.body.stms.iter().any(in_stm) || scope.body.result.iter().any(|a| is_outer(*a, bound))
        })
}

/// Whether running the body does nothing but compute its results: no accumulation, no assertion, no check, no calls (which may
/// hold either).
pub(crate) fn is_silent(body: &Body) -> bool {
    body.stms.iter().all(is_silent_stm)
}

/// The same of a statement.
pub(crate) fn is_silent_stm(stm: &Stm) -> bool {
    !matches!(stm.exp, Exp::AccAdd(..) | Exp::Assert(..) | Exp::Check(..) | Exp::Call(..))
        && stm.exp.bodies().iter().all(|scope| is_silent(scope.body))
}

/// Whether an expression mentions one of these variables. They are bound outside of it, and names are unique, so that it need not
/// be known what is bound inside.
pub(crate) fn mentions(exp: &Exp, is: &impl Fn(Var) -> bool) -> bool {
    let mut found = false;
    exp.for_each_atom(|a| found |= a.var().is_some_and(is));
    let in_body = |body: &Body| {
        body.stms.iter().any(|s| mentions(&s.exp, is)) || body.result.iter().any(|a| a.var().is_some_and(is))
    };
    found || exp.bodies().iter().any(|scope| in_body(scope.body))
}
