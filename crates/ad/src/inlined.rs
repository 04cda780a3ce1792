//! Functions without calls, and the statements that are needed, for algorithms that translate core into a language of their own.

use pullback_base::index::IdSet;
use pullback_core::rename::{Subst, copy_applied, copy_lam};
use pullback_core::traverse::{for_each_stm, free_vars_exp, leads_to};
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
