//! Handing a value of a nest out: it becomes a further result of the maps, branches and scopes around it.
//!
//! A branch that does not compute the value gives a neutral one. Assumes that the caller has checked that the way
//! leads through maps, branches, marked bodies, accumulator scopes and (at the outside) counted loops only, and that
//! arrays are regular.

use pullback_core::{Atom, Body, Exp, Loop, LoopForm, Program, Soac, Stm, Type, Var, VarInfo};

/// What a branch without the value gives: atoms for scalars, a shape in scope around the nest for arrays.
#[derive(Clone, Debug)]
pub(super) struct Neutral {
    pub(super) scalar: Atom,
    pub(super) shape: Vec<Atom>,
}

/// The variable that holds the values of `wanted` after the statement; `None` if it cannot be handed out.
pub(super) fn hand_out(program: &mut Program, stm: &mut Stm, wanted: Var, neutral: &Neutral) -> Option<Var> {
    let ty = program.vars[wanted].ty.clone();
    let found = stm.exp.bodies().iter().map(|s| s.binds.contains(wanted) || binds(s.body, wanted)).collect();
    let found: Vec<bool> = found;
    if !found.contains(&true) {
        return None;
    }
    match &mut stm.exp {
        Exp::Soac(Soac::Map { lam, .. }) => {
            let inner = from_body(program, &mut lam.body, lam.params.contains(&wanted), wanted, neutral)?;
            let ty = Type::array(program.vars[inner].ty.clone());
            lam.body.result.push(inner.into());
            Some(bind(program, stm, wanted, ty))
        }
        Exp::Loop(Loop { params, form: LoopForm::For { i, .. }, body, collect, .. }) => {
            let bound = *i == wanted || params.iter().any(|p| p.0 == wanted);
            let inner = from_body(program, body, bound, wanted, neutral)?;
            let ty = Type::array(program.vars[inner].ty.clone());
            body.result.push(inner.into());
            *collect += 1;
            Some(bind(program, stm, wanted, ty))
        }
        Exp::WithAcc(_, lam) => {
            let inner = from_body(program, &mut lam.body, false, wanted, neutral)?;
            let ty = program.vars[inner].ty.clone();
            lam.body.result.push(inner.into());
            Some(bind(program, stm, wanted, ty))
        }
        Exp::Marked(_, body) => {
            let inner = from_body(program, body, false, wanted, neutral)?;
            let ty = program.vars[inner].ty.clone();
            body.result.push(inner.into());
            Some(bind(program, stm, wanted, ty))
        }
        Exp::If(_, then, otherwise) => {
            let (taken, other) = if found[0] { (then, otherwise) } else { (otherwise, then) };
            let inner = from_body(program, taken, false, wanted, neutral)?;
            let inner_ty = program.vars[inner].ty.clone();
            (inner_ty == ty).then_some(())?;
            taken.result.push(inner.into());
            let zero = replacement(program, other, wanted, neutral);
            other.result.push(zero);
            Some(bind(program, stm, wanted, ty))
        }
        Exp::Match(_, arms) => {
            for (arm, here) in arms.iter_mut().zip(&found) {
                let result = if *here {
                    let bound = arm.params.contains(&wanted);
                    let inner = from_body(program, &mut arm.body, bound, wanted, neutral)?;
                    (program.vars[inner].ty == ty).then_some(())?;
                    inner.into()
                } else {
                    replacement(program, &mut arm.body, wanted, neutral)
                };
                arm.body.result.push(result);
            }
            Some(bind(program, stm, wanted, ty))
        }
        _ => None,
    }
}

fn bind(program: &mut Program, stm: &mut Stm, like: Var, ty: Type) -> Var {
    let info = VarInfo { ty, ..program.vars[like].clone() };
    let v = program.vars.push(info);
    stm.pat.push(v);
    v
}

fn replacement(program: &mut Program, body: &mut Body, like: Var, neutral: &Neutral) -> Atom {
    if neutral.shape.is_empty() {
        return neutral.scalar;
    }
    let info = program.vars[like].clone();
    let v = program.vars.push(info);
    body.stms.push(Stm { pat: vec![v], exp: Exp::Replicate(neutral.shape.clone(), neutral.scalar) });
    v.into()
}

fn from_body(
    program: &mut Program,
    body: &mut Body,
    bound: bool,
    wanted: Var,
    neutral: &Neutral,
) -> Option<Var> {
    if bound || body.stms.iter().any(|s| s.pat.contains(&wanted)) {
        return Some(wanted);
    }
    let stm = body.stms.iter_mut().find(|s| mentions_binder(s, wanted))?;
    hand_out(program, stm, wanted, neutral)
}

fn mentions_binder(stm: &Stm, wanted: Var) -> bool {
    stm.exp.bodies().iter().any(|s| s.binds.contains(wanted) || binds(s.body, wanted))
}

/// Whether the body, nested ones included, binds the variable.
pub(super) fn binds(body: &Body, wanted: Var) -> bool {
    body.stms.iter().any(|s| s.pat.contains(&wanted) || mentions_binder(s, wanted))
}
