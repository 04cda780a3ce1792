//! Arguments that a function may overwrite, where some call does not give them away.
//!
//! Who calls gives an array away if nobody uses it any more. Then the function overwrites it in place, and returns its cotangent as a whole array.
//! An array that somebody else has must only be read, so that contributions go to its accumulator: what is overwritten is a copy of it. One call may
//! give its argument away and the next one not. So the parameter becomes three: the array if it is kept, the array if it is given away, and
//! which of both.
//!
//! ```text
//! f (v)    =>   f' (kept, given, own) = v = if own then given else kept; ..
//! f (a)    =>   own = L(a) is slot k, and no other location says so;  given = if own then take S_k (S_k := empty) else empty;
//!               kept = if own then anything else a;  f' (kept, given, own)
//! ```
//!
//! The branch at the start is a class of locations, with `given` in its slot and `kept` as an array from outside. The call is written in two
//! steps: here `given` is empty and `own` false, and [`Lends`] says so; [`rewrite`](super::rewrite) knows the locations.
//!
//! Source: own design.

use super::flow::{As, Flow, Lend, Lends, Place};
use super::functions::{Called, Calls, Facts, Known, float_params};
use super::{flow_of, nothing};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Builder, Exp, FunId, Lam, Program, Stm, Type, Var};
use std::collections::BTreeSet;

/// For each function with such parameters which ones they are.
pub(super) type Params = IdMap<FunId, Vec<bool>>;

/// The parameters of the function that takes three for each of these: whether the caller gives them away.
pub(super) fn given(lent: &[bool]) -> Vec<bool> {
    marked(lent, &[false, true, false])
}
/// Whether the caller keeps them.
pub(super) fn kept(lent: &[bool]) -> Vec<bool> {
    marked(lent, &[true, false, false])
}
fn marked(lent: &[bool], three: &[bool; 3]) -> Vec<bool> {
    lent.iter().flat_map(|lent| if *lent { &three[..] } else { &[false] }).copied().collect()
}

/// The others, as the program has them, and where they are among its parameters.
fn plain(lent: &[bool]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let at = |k: usize| k + 2 * lent[..k].iter().filter(|lent| **lent).count();
    (0..lent.len()).filter(|k| !lent[*k]).map(move |k| (k, at(k)))
}

/// A function that takes three parameters for each of these.
pub(super) fn taken(b: &mut Builder<'_>, mut lam: Lam, lent: &[bool]) -> Lam {
    if !lent.contains(&true) {
        return lam;
    }
    b.open();
    let mut params = Vec::new();
    for (&v, lent) in lam.params.iter().zip(lent) {
        if !lent {
            params.push(v);
            continue;
        }
        let (kept, given, own) = (b.fresh_like(v), b.fresh_like(v), b.fresh(Type::BOOL, "own"));
        params.extend([kept, given, own]);
        let arm = |v: Var| Body { stms: Vec::new(), result: vec![v.into()] };
        b.emit_to(vec![v], Exp::If(own.into(), arm(given), arm(kept)));
    }
    let start = b.close(Vec::new()).stms;
    lam.params = params;
    lam.body.stms.splice(0..0, start);
    lam
}

/// The arguments of a call, three for each of those that may be given away.
pub(super) fn lend(b: &mut Builder<'_>, args: &[Atom], lent: &[bool], lends: &mut Lends) -> Vec<Atom> {
    let mut out = Vec::new();
    for (&of, lent) in args.iter().zip(lent) {
        if !lent {
            out.push(of);
            continue;
        }
        let ty = b.ty(of);
        let (kept, given, own) =
            (b.fresh(ty.clone(), "kept"), b.fresh(ty.clone(), "given"), b.fresh(Type::BOOL, "own"));
        b.emit_to(vec![kept], Exp::Atom(of));
        let empty = nothing(b, &ty);
        b.emit_to(vec![given], Exp::Atom(empty));
        b.emit_to(vec![own], Exp::Atom(Atom::bool(false)));
        lends.insert(kept, Lend { of, given, own });
        out.extend([kept, given, own].map(Atom::Var));
    }
    out
}

/// The parameters that become three, those that the function may overwrite among them.
pub(super) fn with_written(facts: &Facts) -> Vec<bool> {
    let mut lent = facts.lent.clone();
    plain(&facts.lent).for_each(|(k, at)| lent[k] = facts.written[at]);
    lent
}

/// A function that may overwrite a parameter which some call does not give away. (One only: what others overwrite may depend on it.)
pub(super) fn first_kept(
    program: &mut Program,
    known: &Known,
    reached: &IdSet<FunId>,
    lam: &Lam,
) -> Option<FunId> {
    if !known.values().any(|facts| plain(&facts.lent).any(|(_, k)| facts.written[k])) {
        return None;
    }
    let start = program.vars.len();
    let mut functions = reached.iter().copied().map(Some).chain([None]);
    functions.find_map(|f| {
        let found = kept_in(program, known, (f, lam));
        program.vars.truncate(start);
        found
    })
}

/// The function to which a call in a function, or in the whole lambda, does not give away what it may overwrite.
fn kept_in(program: &mut Program, known: &Known, (f, whole): (Option<FunId>, &Lam)) -> Option<FunId> {
    let calls = Calls::new(program, known);
    let Called { lam, .. } = match f {
        Some(f) => calls.function(f),
        None => calls.lambda(whole),
    };
    let inputs = float_params(program, &lam);
    let (flow, _) = flow_of(program, &lam, &inputs, &[]);
    let facts = f.and_then(|f| known.get(&f));
    let is_given = |v: Var| {
        let k = lam.params.iter().position(|p| *p == v);
        k.zip(facts).is_some_and(|(k, facts)| facts.written[k])
    };
    for (&place, body) in &flow.bodies {
        for (at, stm) in body.stms.iter().enumerate() {
            let Exp::Call(g, args) = &stm.exp else { continue };
            let Some(facts) = known.get(g) else { continue };
            let call = (&args[..], (place, at));
            let gives = |k: usize| is_given_away(&flow, call, k, (f.is_none(), &is_given));
            if plain(&facts.lent).any(|(_, k)| facts.written[k] && !gives(k)) {
                return Some(*g);
            }
        }
    }
    None
}

/// Whether nobody uses an argument of a call, as far as it comes from outside of what runs with the call, or as often.
fn is_given_away(
    flow: &Flow<'_>,
    (args, (place, at)): (&[Atom], (Place, usize)),
    k: usize,
    (once, is_given): (bool, &dyn Fn(Var) -> bool),
) -> bool {
    let around = flow.repeated(place);
    if once && around.is_none() {
        return true;
    }
    let inside = around.unwrap_or(None);
    let base = |a: Atom| flow.base(a).map(|base| base.0);
    let again =
        args.iter().enumerate().any(|(j, a)| j != k && base(*a).is_some() && base(*a) == base(args[k]));
    let itself = |(_, ways): &(Var, BTreeSet<As>)| ways.iter().any(|way| !way.written);
    !again
        && flow.terms(args[k], inside).into_iter().filter(itself).all(|(v, ways)| {
            let own = match around {
                Some(_) => flow.is_state(v) && flow.home(v) == inside,
                None => is_given(v),
            };
            own && ways.iter().all(|way| !way.part) && !is_mentioned_after(flow, (place, at), v, inside)
        })
}

/// Whether an array, a part of it, or what may be it, is mentioned after a statement in a body inside of `outer`.
pub(super) fn is_mentioned_after(
    flow: &Flow<'_>,
    (mut place, mut at): (Place, usize),
    v: Var,
    outer: Place,
) -> bool {
    // Results of the branches around: they are what this arm gives.
    let mut given: Vec<Var> = Vec::new();
    loop {
        let body = flow.bodies[&place];
        let is = |a: Atom| flow.may_be_but_by(&given, a, outer).contains(&v);
        let mentioned = |stm: &Stm| free_vars_exp(&stm.exp).into_iter().any(|v| is(v.into()));
        if body.stms[at + 1..].iter().any(mentioned) || body.result.iter().any(|a| is(*a)) {
            return true;
        }
        let Some((stm, _)) = place.filter(|_| place != outer) else { return false };
        place = flow.parent(place);
        let Some(here) = flow.bodies[&place].stms.iter().position(|s| s.pat[0] == stm) else { return false };
        given.extend(&flow.bodies[&place].stms[here].pat);
        at = here;
    }
}
