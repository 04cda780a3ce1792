//! What algorithms with a language of their own share that translate core: functions without calls, wanted inputs, what is at hand, the statements that are needed.

use crate::contract::Unsupported;
use pullback_base::Span;
use pullback_base::index::IdSet;
use pullback_core::rename::{Subst, copy_applied, copy_lam};
use pullback_core::traverse::{bound_vars, for_each_stm, free_vars_exp, leads_to};
use pullback_core::{Atom, Body, Exp, Lam, Program, Stm, Var};

/// How many statements a function may have with the bodies of others in it, and a translation with loops written out. A choice, not measured.
pub(crate) const STATEMENTS: usize = 4_000;

/// The function with bodies for calls, and with operations of one rule each.
pub(crate) fn inlined(program: &mut Program, lam: &Lam) -> Lam {
    let mut lam = copy_lam(program, lam, &Subst::new());
    let mut room = STATEMENTS;
    inline(program, &mut lam.body, &mut room);
    pullback_core::fused::split(program, &mut lam.body);
    pullback_core::choose::operators_choose(program, &mut lam.body);
    lam
}

/// Puts the bodies of functions for calls, but of those that call themselves, while there is room.
fn inline(program: &mut Program, body: &mut Body, room: &mut usize) {
    let mut stms = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        for scope in stm.exp.bodies_mut() {
            inline(program, scope.body, room);
        }
        match &stm.exp {
            Exp::Call(f, args) if !leads_to(program, &program.funs[*f].body, *f) => {
                let (fun, args) = (program.funs[*f].clone(), args.clone());
                let mut size = 0;
                for_each_stm(&fun.body, &mut |_| size += 1);
                match room.checked_sub(size) {
                    Some(left) => *room = left,
                    None => {
                        stms.push(stm);
                        continue;
                    }
                }
                let lam = Lam { params: fun.params, body: fun.body };
                let mut inner = copy_applied(program, &lam, &args, &Subst::new());
                inline(program, &mut inner, room);
                stms.extend(inner.stms);
                let results = stm.pat.into_iter().zip(inner.result);
                stms.extend(results.map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
            }
            _ => stms.push(stm),
        }
    }
    body.stms = stms;
}

/// Those statements that results need, and whose results are `wanted`.
pub(crate) fn needed(stms: &[Stm], results: &[Atom], wanted: &dyn Fn(&Var) -> bool) -> Vec<bool> {
    let mut asked: IdSet<Var> = results.iter().filter_map(|a| a.var()).collect();
    let mut needed: Vec<bool> = stms
        .iter()
        .rev()
        .map(|stm| {
            let is_needed = stm.pat.iter().any(|v| asked.contains(v) && wanted(v));
            if is_needed {
                asked.extend(free_vars_exp(&stm.exp).iter().copied());
            }
            is_needed
        })
        .collect();
    needed.reverse();
    needed
}

/// The active parameters with respect to which derivatives are wanted.
pub(crate) fn wanted_inputs(program: &Program, lam: &Lam, wanted: &[bool]) -> Vec<Var> {
    let is_active = |v: &Var| program.is_active(&program.vars[*v].ty);
    lam.params.iter().zip(wanted).filter(|(p, w)| **w && is_active(p)).map(|(p, _)| *p).collect()
}

/// The variables that inner bodies of the function bind. All others are at hand.
pub(crate) fn bound_inside(lam: &Lam) -> IdSet<Var> {
    let mut inner = IdSet::new();
    for scope in lam.body.stms.iter().flat_map(|s| s.exp.bodies()) {
        inner.extend(scope.binds.iter());
        inner.extend(bound_vars(scope.body).iter().copied());
    }
    inner
}

/// The place of the first result that has one.
pub(crate) fn place(program: &Program, lam: &Lam) -> Option<Span> {
    lam.body.result.iter().find_map(|a| program.vars[a.var()?].origin.span)
}

/// The construct is refused, with advice.
pub(crate) fn refusal(algorithm: &'static str, construct: &str, span: Option<Span>) -> Unsupported {
    let help = "use `fast_chad`, which differentiates it".to_string();
    Unsupported { algorithm, construct: construct.to_string(), span, help }
}
