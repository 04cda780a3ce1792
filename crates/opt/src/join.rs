//! Two branches on the same value become one, arm by arm: what the first computes is at hand in the second.
//!
//! Reverse code branches on what the forward code branched on. Where both are in one body and nothing that the second needs comes
//! between them, one branch does both: the arms need not hand values over through results (an arm that was not taken has holes
//! there), equal code of the two arms is found by `cse`, and operations of the first meet those of the second in `fuse`.
//! Branches on equal comparisons inside of joined arms are found as well, so chains of branches join to the end.
//!
//! Assumes a checked program. Guarantees: steps never rise; statements keep their order, but that the second branch comes before
//! what is between the two. It does not pass what adds to accumulators, stops the program or calls functions if it does
//! so itself, and passes nothing if it may write an array in place.
//!
//! Source: ours; for conditions in the flow graph of a function this is jump threading.

use crate::Ctx;
use crate::effects::is_silent;
use crate::fuse::writes;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, substitute_atom, substitute_body, substitute_exp};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Exp, Lam, Program, Stm, Var};

/// Runs the pass. Cost: the size of the program times its nesting depth.
pub fn join_branches(program: &mut Program, _ctx: &Ctx) {
    for fun in program.funs.iter_mut() {
        join_in(&mut fun.body);
    }
}

fn join_in(body: &mut Body) {
    let mut last: IdMap<Var, usize> = IdMap::new();
    let mut stms: Vec<Stm> = Vec::with_capacity(body.stms.len());
    for stm in std::mem::take(&mut body.stms) {
        let on = match &stm.exp {
            Exp::If(Atom::Var(z), ..) | Exp::Match(Atom::Var(z), _) => Some(*z),
            _ => None,
        };
        let first = on.and_then(|z| last.get(&z).copied());
        match first {
            Some(first) if may_pass(&stms[first + 1..], &stm) => join(&mut stms[first], stm),
            _ => {
                if let Some(z) = on {
                    last.insert(z, stms.len());
                }
                stms.push(stm);
            }
        }
    }
    body.stms = stms;
    for stm in &mut body.stms {
        for scope in stm.exp.bodies_mut() {
            join_in(scope.body);
        }
    }
}

/// Whether the statement may come before these.
fn may_pass(between: &[Stm], stm: &Stm) -> bool {
    if between.is_empty() {
        return true;
    }
    let bound: IdSet<Var> = between.iter().flat_map(|s| s.pat.iter().copied()).collect();
    !free_vars_exp(&stm.exp).iter().any(|v| bound.contains(v))
        && !writes(&stm.exp)
        && (silent(&stm.exp) || between.iter().all(|s| silent(&s.exp)))
}

fn silent(exp: &Exp) -> bool {
    !matches!(exp, Exp::AccAdd(..) | Exp::Assert(..) | Exp::Check(..) | Exp::Call(..))
        && exp.bodies().iter().all(|scope| is_silent(scope.body))
}

/// The second branch goes on where the first ends.
fn join(first: &mut Stm, second: Stm) {
    let Stm { pat, exp: mut then } = second;
    let mut substs: Vec<Subst> = Vec::new();
    match (&first.exp, &then) {
        (Exp::Match(_, firsts), Exp::Match(_, seconds)) => {
            let params = |lam: &Lam| lam.params.clone();
            let pairs = firsts.iter().map(params).zip(seconds.iter().map(params));
            substs.extend(pairs.map(|(a, b)| b.into_iter().zip(a.into_iter().map(Atom::Var)).collect()));
        }
        _ => substs.resize(2, Subst::new()),
    }
    let arms = first.exp.bodies_mut().into_iter().zip(then.bodies_mut());
    for ((to, from), mut subst) in arms.zip(substs) {
        let (to, from) = (to.body, from.body);
        subst.extend(first.pat.iter().copied().zip(to.result.iter().copied()));
        let mut from = std::mem::take(from);
        substitute_body(&mut from, &subst);
        append(to, from);
    }
    first.pat.extend(pat);
}

/// Statements after those of a body, without comparisons and reads that are there already, on which branches may depend.
fn append(to: &mut Body, mut from: Body) {
    let mut known: IdMap<Var, Vec<usize>> = IdMap::new();
    for (k, stm) in to.stms.iter().enumerate() {
        if let Some(v) = key(&stm.exp) {
            known.entry(v).or_default().push(k);
        }
    }
    let mut subst = Subst::new();
    for stm in &mut from.stms {
        substitute_exp(&mut stm.exp, &subst);
        let same = key(&stm.exp).and_then(|v| known.get(&v));
        let same = same.and_then(|all| all.iter().find(|k| to.stms[**k].exp == stm.exp));
        if let Some(&k) = same {
            subst.insert(stm.pat[0], to.stms[k].pat[0].into());
        }
    }
    from.stms.retain(|stm| !subst.contains_key(&stm.pat[0]));
    to.stms.append(&mut from.stms);
    to.result.extend(from.result.into_iter().map(|a| substitute_atom(a, &subst)));
}

/// The first variable of an expression that conditions are made of.
fn key(exp: &Exp) -> Option<Var> {
    match exp {
        Exp::Prim(..) | Exp::Size(..) | Exp::Index(..) => {
            let mut first = None;
            exp.for_each_atom(|a| first = first.or(a.var()));
            first
        }
        _ => None,
    }
}
