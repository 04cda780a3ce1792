//! Parameters that a function does not use, and results that no caller uses, go.
//!
//! Only functions that are called from others and are not entry points: the interface of what may be run from outside
//! stays. A parameter that is only handed on to the same place of a call of the function by itself is not used. What
//! becomes unused in callers and callees is left to `prune`; the two passes together, repeated, reach through chains of
//! calls. Source: classic (dead arguments and results).

use crate::Ctx;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::for_each_stm;
use pullback_core::usage::use_counts;
use pullback_core::{Atom, Body, Exp, FunId, Program, Var};

/// Runs the pass. Cost: linear in the program (times a logarithm).
pub fn eliminate_dead_arguments(program: &mut Program, _ctx: &Ctx) {
    let interfaces = interfaces(program);
    for (id, Interface { params, results }) in &interfaces {
        let fun = &mut program.funs[*id];
        retain(&mut fun.params, params);
        retain(&mut fun.body.result, results);
        retain(&mut fun.results, results);
    }
    let ids: Vec<FunId> = program.funs.ids().collect();
    for id in ids {
        adapt(&mut program.funs[id].body, &interfaces);
    }
}

/// Which parameters and results stay.
struct Interface {
    params: Vec<bool>,
    results: Vec<bool>,
}

fn interfaces(program: &Program) -> IdMap<FunId, Interface> {
    let mut used_results: IdMap<FunId, Vec<bool>> = IdMap::new();
    for (caller, fun) in program.funs.iter_enumerated() {
        let counts = use_counts(&fun.body);
        for_each_stm(&fun.body, &mut |s| {
            if let Exp::Call(f, _) = &s.exp
                && *f != caller
            {
                let used = used_results.entry(*f).or_insert_with(|| vec![false; s.pat.len()]);
                used.iter_mut().zip(&s.pat).for_each(|(u, v)| *u |= counts.contains_key(v));
            }
        });
    }
    let called: IdSet<FunId> = used_results.keys().copied().collect();
    let mut out = IdMap::new();
    for id in called {
        let fun = &program.funs[id];
        let Some(mut results) = used_results.remove(&id) else { continue };
        if fun.entry.is_some() {
            continue;
        }
        results.iter_mut().zip(own_results(program, id)).for_each(|(u, own)| *u |= own);
        if !results.contains(&true) && !results.is_empty() {
            // A statement binds something.
            results[0] = true;
        }
        let params = used_params(program, id);
        if results.contains(&false) || params.contains(&false) {
            out.insert(id, Interface { params, results });
        }
    }
    out
}

/// The results that calls of the function in its own body use.
fn own_results(program: &Program, id: FunId) -> Vec<bool> {
    let fun = &program.funs[id];
    let counts = use_counts(&fun.body);
    let mut used = vec![false; fun.results.len()];
    for_each_stm(&fun.body, &mut |s| {
        if matches!(&s.exp, Exp::Call(f, _) if *f == id) {
            used.iter_mut().zip(&s.pat).for_each(|(u, v)| *u |= counts.contains_key(v));
        }
    });
    used
}

fn used_params(program: &Program, id: FunId) -> Vec<bool> {
    let fun = &program.funs[id];
    let mut counts: IdMap<Var, usize> = use_counts(&fun.body);
    for_each_stm(&fun.body, &mut |s| {
        if let Exp::Call(f, args) = &s.exp
            && *f == id
        {
            for (p, a) in fun.params.iter().zip(args) {
                if Atom::Var(*p) == *a
                    && let Some(count) = counts.get_mut(p)
                {
                    *count -= 1;
                }
            }
        }
    });
    fun.params.iter().map(|p| counts.get(p).is_some_and(|n| *n > 0)).collect()
}

fn adapt(body: &mut Body, interfaces: &IdMap<FunId, Interface>) {
    for stm in &mut body.stms {
        if let Exp::Call(f, args) = &mut stm.exp
            && let Some(Interface { params, results }) = interfaces.get(f)
        {
            retain(args, params);
            retain(&mut stm.pat, results);
        }
        for scope in stm.exp.bodies_mut() {
            adapt(scope.body, interfaces);
        }
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter().copied().chain(std::iter::repeat(true));
    items.retain(|_| flags.next().unwrap_or(true));
}
