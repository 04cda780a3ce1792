//! Code that is run a second time leaves out what it adds to accumulators from outside, and checks.
//!
//! Source: Fast CHAD for accumulators in the source (`accumulators`): adding is an effect of the forward pass and happens
//! once. What has been checked there holds. Assumes that accumulators from outside reach an addition through names, views and branches.

use pullback_base::index::IdSet;
use pullback_core::traverse::free_vars;
use pullback_core::{Atom, Body, Exp, Program, Stm, Var};

/// Whether the effects of these statements can be left out: none is inside a function that is called, and no result is
/// an accumulator.
pub(crate) fn can_leave_out(p: &Program, body: &Body) -> bool {
    let is_acc = |a: &Atom| p.atom_type(*a).is_acc();
    !body.result.iter().any(is_acc) && body.stms.iter().all(|stm| can_leave_out_stm(p, stm))
}

fn can_leave_out_stm(p: &Program, stm: &Stm) -> bool {
    let mut called = false;
    if let Exp::Call(_, args) = &stm.exp {
        called = args.iter().any(|&a| p.atom_type(a).is_acc());
    }
    !called && stm.exp.bodies().iter().all(|s| s.body.stms.iter().all(|stm| can_leave_out_stm(p, stm)))
}

/// The statements without checks, and without additions to accumulators that they do not open themselves.
pub(crate) fn without_effects(p: &Program, stms: Vec<Stm>) -> Vec<Stm> {
    let mut body = Body { stms, result: Vec::new() };
    let mut outside: IdSet<Var> = free_vars(&body).into_iter().filter(|&v| p.vars[v].ty.is_acc()).collect();
    leave_out(&mut body, &mut outside);
    body.stms
}

fn leave_out(body: &mut Body, outside: &mut IdSet<Var>) {
    for stm in &mut body.stms {
        let from_outside = |a: &Atom| a.var().is_some_and(|v| outside.contains(&v));
        match &stm.exp {
            Exp::AccAdd(acc, ..) if from_outside(acc) => stm.exp = Exp::Tuple(Vec::new()),
            Exp::Check(..) => stm.exp = Exp::Tuple(Vec::new()),
            Exp::Atom(acc) | Exp::AccView(acc, _) if from_outside(acc) => {
                outside.insert(stm.pat[0]);
            }
            _ => {}
        }
        for scope in stm.exp.bodies_mut() {
            leave_out(scope.body, outside);
        }
        if matches!(stm.exp, Exp::If(..) | Exp::Match(..)) {
            for scope in stm.exp.bodies() {
                for (v, a) in stm.pat.iter().zip(&scope.body.result) {
                    if a.var().is_some_and(|r| outside.contains(&r)) {
                        outside.insert(*v);
                    }
                }
            }
        }
    }
}
