//! Scalar code that does not depend on the iteration moves in front of loops and array operations.
//!
//! Only expressions that cost a constant and cannot stop the program: primitives (not integer division and powers unless
//! the divisor is a constant other than zero), sizes, components. So an operation that runs zero times gains a constant
//! cost, and all others lose it. Code leaves bodies of loops, conditions of `while` loops, and operators of `map`,
//! `reduce`, `scan`, `reduce_by_index`; it does not leave branches, marked bodies, accumulator scopes or functions under
//! a derivative.

use crate::Ctx;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Exp, Program, Soac, Stm, Var};
use pullback_prim::{Op, Prim};

/// Runs the pass. Cost: the size of the program times the nesting depth of the code that moves.
pub fn hoist(program: &mut Program, _ctx: &Ctx) {
    for fun in program.funs.iter_mut() {
        hoist_in(&mut fun.body);
    }
}

fn hoist_in(body: &mut Body) {
    let mut out = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        for scope in stm.exp.bodies_mut() {
            hoist_in(scope.body);
        }
        let repeats = match &stm.exp {
            Exp::Loop(_) => true,
            Exp::Soac(soac) => match soac {
                Soac::Map { .. } | Soac::Reduce { .. } | Soac::Scan { .. } | Soac::Hist { .. } => true,
                Soac::Scatter { .. } => false,
            },
            _ => false,
        };
        if repeats {
            for scope in stm.exp.bodies_mut() {
                let varying: IdSet<Var> = scope.binds.into_iter().collect();
                take_invariant(scope.body, varying, &mut out);
            }
        }
        out.push(stm);
    }
    body.stms = out;
}

/// Moves the statements of `body` that depend on nothing in `varying` to `out`.
fn take_invariant(body: &mut Body, mut varying: IdSet<Var>, out: &mut Vec<Stm>) {
    let mut kept = Vec::with_capacity(body.stms.len());
    for stm in std::mem::take(&mut body.stms) {
        let invariant = stm.exp.atoms().iter().all(|a| a.var().is_none_or(|v| !varying.contains(&v)));
        if invariant && is_cheap_and_safe(&stm.exp) {
            out.push(stm);
        } else {
            varying.extend(&stm.pat);
            kept.push(stm);
        }
    }
    body.stms = kept;
}

fn is_cheap_and_safe(exp: &Exp) -> bool {
    match exp {
        Exp::Prim(prim, args) => match prim {
            Prim::Convert(..) => true,
            Prim::Op(Op::Div | Op::Mod | Op::Quot | Op::Rem, s) if s.is_integer() => {
                matches!(args.get(1), Some(Atom::Const(c)) if c.as_i64() != 0)
            }
            Prim::Op(Op::Pow, s) if s.is_integer() => {
                matches!(args.get(1), Some(Atom::Const(c)) if c.as_i64() >= 0)
            }
            Prim::Op(..) => true,
        },
        Exp::Size(..) | Exp::Proj(..) => true,
        _ => false,
    }
}
