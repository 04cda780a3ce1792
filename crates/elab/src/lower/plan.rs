//! Which top-level functions are inlined.
//!
//! Recursive ones never; others where they take or return functions, where they are called once, or where they stay
//! small with everything inlined into them.

use super::types::holds_function;
use pullback_base::index::{Index, IndexVec};
use pullback_lambda::{Exp, FunId, Program};

/// A function of at most this many terms, inlined callees included, is inlined at every call.
const SMALL: usize = 600;
/// A program of more variables than this gets calls instead.
const LARGE: usize = 200_000;

/// What to do with calls.
pub(super) struct Plan {
    inline: IndexVec<FunId, bool>,
    /// Takes or returns functions, or is called once: inlined whatever the size of the program.
    always: Vec<bool>,
    recursive: Vec<bool>,
}

impl Plan {
    pub(super) fn new(program: &Program) -> Plan {
        let n = program.funs.len();
        let mut calls: Vec<Vec<usize>> = vec![Vec::new(); n];
        let mut sizes = vec![0usize; n];
        let mut sites = vec![0usize; n];
        for (id, fun) in program.funs.iter_enumerated() {
            let mut pending: Vec<_> = fun.body.iter().collect();
            while let Some(t) = pending.pop() {
                sizes[id.index()] += 1;
                if let Exp::Call(f, _) = t.exp() {
                    calls[id.index()].push(f.index());
                    sites[f.index()] += 1;
                }
                t.exp().children(&mut |c| pending.push(c));
            }
        }
        let order = callees_first(&calls);
        let recursive: Vec<bool> = (0..n).map(|f| reaches(&calls, f)).collect();
        let mut expanded = sizes.clone();
        let mut inline = vec![false; n];
        let mut always = vec![false; n];
        for f in order {
            for &g in &calls[f] {
                if inline[g] {
                    expanded[f] = expanded[f].saturating_add(expanded[g]);
                }
            }
            let fun = &program.funs[FunId::new(f)];
            let mut types = fun.params.iter().map(|v| &program.vars[*v].ty).chain([&fun.result]);
            let higher_order = types.any(holds_function);
            always[f] = !recursive[f] && (higher_order || sites[f] == 1);
            inline[f] = always[f] || (!recursive[f] && expanded[f] <= SMALL);
        }
        Plan { inline: inline.into_iter().collect(), always, recursive }
    }
    /// Whether a function calls itself, directly or through others.
    pub(super) fn is_recursive(&self, f: FunId) -> bool {
        self.recursive.get(f.index()).copied().unwrap_or(true)
    }
    /// Whether a call is inlined into a program that has so many variables already.
    pub(super) fn inlines(&self, f: FunId, vars: usize) -> bool {
        let always = self.always.get(f.index()).copied().unwrap_or(false);
        always || (vars < LARGE && self.inline.get(f).copied().unwrap_or(false))
    }
}

/// Every function after those it calls, where there is no cycle. Uses no stack.
fn callees_first(calls: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut entered = vec![false; calls.len()];
    for root in 0..calls.len() {
        let mut pending = vec![(root, 0)];
        while let Some((f, next)) = pending.pop() {
            if next == 0 && std::mem::replace(&mut entered[f], true) {
                continue;
            }
            match calls[f].get(next) {
                Some(&g) => {
                    pending.push((f, next + 1));
                    if !entered[g] {
                        pending.push((g, 0));
                    }
                }
                None => order.push(f),
            }
        }
    }
    order
}

/// Whether a function calls itself, directly or through others.
fn reaches(calls: &[Vec<usize>], f: usize) -> bool {
    let mut seen = vec![false; calls.len()];
    let mut pending = calls[f].clone();
    while let Some(g) = pending.pop() {
        if g == f {
            return true;
        }
        if !std::mem::replace(&mut seen[g], true) {
            pending.extend_from_slice(&calls[g]);
        }
    }
    false
}
