//! Carrying a sum through loops: what one statement adds becomes one more state of the loops around it (E9).
//!
//! A branch that does not reach the statement leaves the sum as it was. Assumes that the caller has checked that the way
//! leads through loops, branches, marked bodies and accumulator scopes only. Guarantees: the additions are those of the
//! program, in its order; each costs what it did, and nothing is added where nothing was.

use super::escape::binds;
use pullback_core::{Atom, Body, Exp, LoopForm, Program, Stm, Type, Var, VarInfo};
use pullback_prim::{Op, Prim};

/// The variable that holds `first` and all values of `wanted` after the statement; `None` if the way is another one.
pub(super) fn carry_out(program: &mut Program, stm: &mut Stm, wanted: Var, first: Atom) -> Option<Var> {
    match &mut stm.exp {
        Exp::Loop(l) => {
            if let LoopForm::While(condition) = &l.form
                && binds(condition, wanted)
            {
                return None;
            }
            let state = fresh(program, wanted);
            let next = from_body(program, &mut l.body, wanted, state.into())?;
            let place = l.params.len();
            l.params.push((state, first));
            l.body.result.insert(place, next.into());
            let total = fresh(program, wanted);
            stm.pat.insert(place, total);
            Some(total)
        }
        Exp::If(_, then, otherwise) => {
            let (taken, other) = if binds(then, wanted) { (then, otherwise) } else { (otherwise, then) };
            let next = from_body(program, taken, wanted, first)?;
            taken.result.push(next.into());
            other.result.push(first);
            Some(bind(program, stm, wanted))
        }
        Exp::Match(_, arms) => {
            for arm in arms {
                let here = binds(&arm.body, wanted);
                let next =
                    if here { from_body(program, &mut arm.body, wanted, first)?.into() } else { first };
                arm.body.result.push(next);
            }
            Some(bind(program, stm, wanted))
        }
        Exp::WithAcc(_, lam) => {
            let next = from_body(program, &mut lam.body, wanted, first)?;
            lam.body.result.push(next.into());
            Some(bind(program, stm, wanted))
        }
        Exp::Marked(_, body) => {
            let next = from_body(program, body, wanted, first)?;
            body.result.push(next.into());
            Some(bind(program, stm, wanted))
        }
        _ => None,
    }
}

/// The sum at the end of a body that starts with `first`.
fn from_body(program: &mut Program, body: &mut Body, wanted: Var, first: Atom) -> Option<Var> {
    if let Some(at) = body.stms.iter().position(|s| s.pat.contains(&wanted)) {
        let next = fresh(program, wanted);
        let exp = match program.vars[wanted].ty {
            Type::Scalar(s) => Exp::Prim(Prim::Op(Op::Add, s), vec![first, wanted.into()]),
            _ => Exp::Plus(first, wanted.into()),
        };
        body.stms.insert(at + 1, Stm { pat: vec![next], exp });
        return Some(next);
    }
    let inside = |s: &Stm| s.exp.bodies().iter().any(|scope| binds(scope.body, wanted));
    let stm = body.stms.iter_mut().find(|s| inside(s))?;
    carry_out(program, stm, wanted, first)
}

fn bind(program: &mut Program, stm: &mut Stm, wanted: Var) -> Var {
    let total = fresh(program, wanted);
    stm.pat.push(total);
    total
}

/// A variable for a sum of values of this one.
fn fresh(program: &mut Program, wanted: Var) -> Var {
    let info = VarInfo { hint: "sum".into(), ..program.vars[wanted].clone() };
    program.vars.push(info)
}
