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
//! `join_tapes` is for branches that differentiation makes to choose what a loop keeps (`TapePolicy::Near`): one before the forward
//! loop, one before the reverse loop. If little is between them, that goes into both arms: each arm then is a program of its own, with
//! its tape in one body, and all later passes see it whole. Else the loop keeps everything, which its second arm does: tapes in results of
//! branches would be worse than larger ones. Code at most doubles: of choices inside of a choice the outer one stays.
//!
//! Source: ours; for conditions in the flow graph of a function this is jump threading.

use crate::Ctx;
use crate::effects::is_silent;
use crate::fuse::writes;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_stms, substitute_atom, substitute_body, substitute_exp};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Exp, Lam, Program, Stm, TapePolicy, Var};

/// So many statements may stand in both arms.
const BETWEEN: usize = 250;

/// Runs the pass `join_branches`. Cost: the size of the program times its nesting depth.
pub fn join_branches(program: &mut Program, _ctx: &Ctx) {
    for fun in program.funs.iter_mut() {
        join_in(&mut fun.body);
    }
}

/// Runs the pass `join_tapes`. Cost: the size of the program times its nesting depth.
pub fn join_tapes(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        join_tapes_in(program, &mut body, true);
        program.funs[id].body = body;
    }
}

/// `may`: whether choices may stay.
fn join_tapes_in(program: &mut Program, body: &mut Body, may: bool) {
    let mut first = 0;
    while first < body.stms.len() {
        let stm = &body.stms[first];
        let Some(z) = choice_of_tape(&stm.exp) else {
            for scope in body.stms[first].exp.bodies_mut() {
                join_tapes_in(program, scope.body, may);
            }
            first += 1;
            continue;
        };
        let same = |s: &Stm| matches!(&s.exp, Exp::If(Atom::Var(y), ..) if *y == z);
        let second = body.stms[first + 1..].iter().position(same).map(|k| first + 1 + k);
        match second.filter(|&k| may && may_be_copied(program, &body.stms[first + 1..k])) {
            Some(second) => {
                let then = body.stms.remove(second);
                let mut between = Body { stms: body.stms.drain(first + 1..second).collect(), result: vec![] };
                join_tapes_in(program, &mut between, false);
                both_arms(program, &mut body.stms[first], &between.stms);
                join(&mut body.stms[first], then);
                settle(&mut body.stms[first]);
                first += 1;
            }
            None => {
                // (Reverse code may have got the condition on a tape: it is settled where it is computed.)
                if let Some(stm) = body.stms[..first].iter_mut().find(|s| s.pat == [z]) {
                    stm.exp = Exp::Atom(Atom::bool(false));
                }
                first += 1;
            }
        }
    }
}

/// The condition of a branch that chooses what a loop keeps: the loop that keeps everything is in its second arm.
fn choice_of_tape(exp: &Exp) -> Option<Var> {
    let Exp::If(Atom::Var(z), _, all) = exp else { return None };
    let is = |s: &Stm| matches!(&s.exp, Exp::Loop(l) if l.attrs.tape == Some(TapePolicy::Chosen));
    all.stms.iter().any(is).then_some(*z)
}

/// The branch is no choice any more.
fn settle(branch: &mut Stm) {
    let Exp::If(_, _, all) = &mut branch.exp else { return };
    for stm in &mut all.stms {
        if let Exp::Loop(l) = &mut stm.exp
            && l.attrs.tape == Some(TapePolicy::Chosen)
        {
            l.attrs.tape = Some(TapePolicy::All);
        }
    }
}

/// The statements go to the end of both arms, and what they bind is a result.
fn both_arms(program: &mut Program, branch: &mut Stm, stms: &[Stm]) {
    for scope in branch.exp.bodies_mut() {
        let mut subst: Subst = branch.pat.iter().copied().zip(scope.body.result.iter().copied()).collect();
        let copy = copy_stms(program, stms, &mut subst);
        scope.body.stms.extend(copy);
        let made = stms.iter().flat_map(|s| &s.pat);
        scope.body.result.extend(made.map(|v| substitute_atom((*v).into(), &subst)));
    }
    branch.pat.extend(stms.iter().flat_map(|s| s.pat.iter().copied()));
}

/// Whether the statements are few, and what they bind can be a result.
fn may_be_copied(program: &Program, stms: &[Stm]) -> bool {
    let mut count = stms.len();
    stms.iter().flat_map(|s| s.exp.bodies()).for_each(|scope| count += crate::size(scope.body));
    count <= BETWEEN && stms.iter().flat_map(|s| &s.pat).all(|v| !program.vars[*v].ty.is_acc())
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
    !matches!(exp, Exp::AccAdd(..) | Exp::Assert(..) | Exp::Call(..))
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
