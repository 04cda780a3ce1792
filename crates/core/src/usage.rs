//! How often and where variables are used.

use crate::ir::{Body, Stm, Var};
use crate::traverse::{for_each_stm, free_vars_exp};
use pullback_base::index::{IdMap, IdSet};

/// How often each variable is mentioned in a body, nested bodies and results included. Variables never mentioned have
/// no entry.
pub fn use_counts(body: &Body) -> IdMap<Var, usize> {
    let mut counts = IdMap::new();
    let mut count = |v: Var| *counts.entry(v).or_insert(0) += 1;
    let mut visit = |stm: &Stm| {
        stm.exp.for_each_atom(|a| a.var().into_iter().for_each(&mut count));
        for scope in stm.exp.bodies() {
            scope.body.result.iter().filter_map(|a| a.var()).for_each(&mut count);
        }
    };
    for_each_stm(body, &mut visit);
    body.result.iter().filter_map(|a| a.var()).for_each(&mut count);
    counts
}

/// For each statement of the body (not of nested ones): the variables that are mentioned in it (nested bodies
/// included) and nowhere later in the body, nor in its results. Variables bound outside the body count too: the caller
/// knows whether they are used after it.
///
/// Cost: the size of the body, nested bodies counted once per call.
pub fn last_uses(body: &Body) -> Vec<IdSet<Var>> {
    let mut later: IdSet<Var> = body.result.iter().filter_map(|a| a.var()).collect();
    let mut out: Vec<IdSet<Var>> = body
        .stms
        .iter()
        .rev()
        .map(|stm| {
            let here = free_vars_exp(&stm.exp);
            here.into_iter().filter(|v| later.insert(*v)).collect()
        })
        .collect();
    out.reverse();
    out
}
