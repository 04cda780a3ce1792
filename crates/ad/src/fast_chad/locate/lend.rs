//! Arguments that a function may overwrite, where some call does not give them away as a whole.
//!
//! Who calls gives an array away if nobody uses it any more. Then the function overwrites it in place, and returns its cotangent as a whole array.
//! An array that somebody else has must only be read, so that contributions go to its accumulator: what is overwritten is a copy of it. And if a call gives
//! away a part of an array, the function must overwrite the part where it lies. Calls differ. So the parameter becomes several: the array if it is
//! kept, the array of which it is a part if that is given away (one for each type that such arrays have), and a location: which of them, and
//! which part.
//!
//! ```text
//! f (v)    =>   f' (kept, given, own) = v = match own { kept -> kept | part i.. of given -> given[i..] }; ..
//! f (a)    =>   if L(a) is part i.. of slot k, and no other location says so, then own = part i.., given = S_k (S_k := empty), kept = anything,
//!               else own = kept, given = empty, kept = a;  f' (kept, given, own)
//! ```
//!
//! The branch at the start is a class of locations, with `given` in its slot and `kept` as an array from outside. What the function returns of `given` is a part
//! again, with the whole beside it ([`functions`](super::functions)). The call is written in two
//! steps: here `given` is empty and `own` says `kept`, and [`Lends`] says so; [`rewrite`](super::rewrite) knows the locations.
//!
//! Which parts a parameter may be is found together with the other facts about functions: a function that hands on a part of a part hands on another part.
//!
//! Source: own design.

use super::flow::{As, Def, Flow, Lend, Lends, Place};
use super::forms::Form;
use super::functions::{Called, Calls, Facts, Known, float_params};
use super::places::{Class, Owner};
use super::results::{Parts, Places, cut, variants, wholes};
use super::{flow_of, nothing};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Builder, Exp, FunId, Lam, Program, Stm, Type, Var, Variant};
use std::collections::BTreeSet;

/// For each function with such parameters which ones they are, and the parts that are given away for them.
pub(super) type Params = IdMap<FunId, Vec<Option<Parts>>>;

/// The parameters of the function that takes several for each of these: whether the caller gives them away.
pub(super) fn given(lent: &[Option<Parts>]) -> Vec<bool> {
    marked(lent, (false, true))
}
/// Whether the caller keeps them.
pub(super) fn kept(lent: &[Option<Parts>]) -> Vec<bool> {
    marked(lent, (true, false))
}
fn marked(lent: &[Option<Parts>], (kept, given): (bool, bool)) -> Vec<bool> {
    let mut out = Vec::new();
    for parts in lent {
        out.push(kept && parts.is_some());
        let Some(parts) = parts else { continue };
        out.extend(wholes(parts).map(|_| given));
        out.push(false);
    }
    out
}

/// The others, as the program has them, and where they are among its parameters.
fn plain(lent: &[Option<Parts>]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let more = |parts: &Parts| 1 + wholes(parts).count();
    let at = move |k: usize| k + lent[..k].iter().flatten().map(more).sum::<usize>();
    (0..lent.len()).filter(|k| lent[*k].is_none()).map(move |k| (k, at(k)))
}

/// What is known of parameters, when others take more places than before.
pub(super) fn moved(known: &[bool], before: &[Option<Parts>], after: &[Option<Parts>]) -> Vec<bool> {
    let mut out = given(after);
    for ((_, from), (_, to)) in plain(before).zip(plain(after)) {
        out[to] = known[from];
    }
    out
}

/// Whether an argument is kept, or which part of what is given away it is.
fn location(parts: &Parts) -> Type {
    let kept = Variant { name: "kept".into(), fields: Vec::new() };
    Type::Sum(std::iter::once(kept).chain(variants("given", parts.iter().map(|(_, form)| form))).collect())
}
/// The location of what is kept.
pub(super) fn is_kept(parts: &Parts) -> Exp {
    Exp::Inject(location(parts), 0, Vec::new())
}
/// The location of a part.
pub(super) fn is_part(parts: &Parts, (ty, form): (&Type, &Form), holes: Vec<Atom>) -> Option<Exp> {
    let k = parts.iter().position(|(t, f)| t == ty && f == form)?;
    Some(Exp::Inject(location(parts), k + 1, holes))
}

/// A function that takes several parameters for each of these.
pub(super) fn taken(b: &mut Builder<'_>, mut lam: Lam, lent: &[Option<Parts>]) -> Lam {
    if lent.iter().all(Option::is_none) {
        return lam;
    }
    b.open();
    let mut params = Vec::new();
    for (&v, parts) in lam.params.iter().zip(lent) {
        let Some(parts) = parts else {
            params.push(v);
            continue;
        };
        let kept = b.fresh_like(v);
        let given: Vec<(&Type, Var)> = wholes(parts).map(|ty| (ty, b.fresh(ty.clone(), "given"))).collect();
        let own = b.fresh(location(parts), "own");
        params.push(kept);
        params.extend(given.iter().map(|(_, v)| *v));
        params.push(own);
        let body = Body { stms: Vec::new(), result: vec![kept.into()] };
        let mut arms = vec![Lam { params: Vec::new(), body }];
        for (ty, form) in parts {
            let whole = given.iter().find(|(t, _)| *t == ty).map(|(_, v)| Atom::Var(*v));
            arms.extend(whole.map(|whole| cut(b, whole, form)));
        }
        b.emit_to(vec![v], Exp::Match(own.into(), arms));
    }
    let start = b.close(Vec::new()).stms;
    lam.params = params;
    lam.body.stms.splice(0..0, start);
    lam
}

/// The arguments of a call, several for each of those that may be given away.
pub(super) fn lend(
    b: &mut Builder<'_>,
    (f, args): (FunId, &[Atom]),
    lent: &[Option<Parts>],
    lends: &mut Lends,
) -> Vec<Atom> {
    let mut out = Vec::new();
    for (k, (&of, parts)) in args.iter().zip(lent).enumerate() {
        let Some(parts) = parts else {
            out.push(of);
            continue;
        };
        let (kept, own) = (b.fresh(b.ty(of), "kept"), b.fresh(location(parts), "own"));
        b.emit_to(vec![kept], Exp::Atom(of));
        let mut given = Vec::new();
        for ty in wholes(parts) {
            let whole = b.fresh(ty.clone(), "given");
            let empty = nothing(b, ty);
            b.emit_to(vec![whole], Exp::Atom(empty));
            given.push(whole);
        }
        b.emit_to(vec![own], is_kept(parts));
        out.push(kept.into());
        out.extend(given.iter().map(|v| Atom::Var(*v)));
        out.push(own.into());
        lends.insert(kept, Lend { of, given, own, to: (f, k), parts: parts.clone() });
    }
    out
}

/// The parts that calls may give away: what lies in slots, as far as that is known.
pub(super) fn given_parts(flow: &Flow<'_>, classes: &[Class]) -> Vec<(FunId, usize, (Type, Form))> {
    let mut out = Vec::new();
    for (kept, Lend { to: (f, k), .. }) in &flow.lends {
        let spots = classes.iter().filter(|c| c.events.contains(kept)).filter_map(|c| c.spots.get(kept));
        for (owner, form) in spots.flatten() {
            if let Owner::Made(ty) = owner {
                out.push((*f, *k, (ty.clone(), form.clone())));
            }
        }
    }
    out
}

/// The parameters that become several, those that the function may overwrite among them: as wholes, before anything else is known.
pub(super) fn with_written(program: &Program, f: FunId, facts: &Facts) -> Vec<Option<Parts>> {
    let mut lent = facts.lent.clone();
    for (k, _) in plain(&facts.lent).filter(|(_, at)| facts.written[*at]) {
        let ty = program.vars[program.funs[f].params[k]].ty.clone();
        let whole = Form::whole(ty.rank());
        lent[k] = Some(Parts::from([(ty, whole)]));
    }
    lent
}

/// A function that may overwrite a parameter which some call does not give away. (One only: what others overwrite may depend on it.) Or one that returns a part of what
/// it is given: in the caller that lies in a slot again, and must have been taken out of the one where it lay before.
pub(super) fn first_kept(
    program: &mut Program,
    known: &Known,
    reached: &IdSet<FunId>,
    lam: &Lam,
) -> Option<FunId> {
    let writes = |facts: &Facts| plain(&facts.lent).any(|(_, k)| facts.written[k]);
    let mut writing = known.iter().filter(|(_, facts)| writes(facts)).peekable();
    writing.peek()?;
    let returns_part = |facts: &Facts| facts.results.iter().flatten().any(Places::may_be_part);
    if let Some((f, _)) = writing.find(|(_, facts)| returns_part(facts)) {
        return Some(*f);
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
    // A part of what lies in no slot would be copied.
    let hands_on_part = |v: &Var, ways: &BTreeSet<As>| {
        let k = lam.params.iter().position(|p| p == v).zip(facts);
        let is_plain =
            k.is_some_and(|(k, facts)| facts.written[k] && plain(&facts.lent).any(|(_, at)| at == k));
        is_plain && ways.iter().any(|way| way.part)
    };
    if flow.lends.values().any(|lend| flow.terms(lend.of, None).iter().any(|(v, w)| hands_on_part(v, w))) {
        return f;
    }
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
    if may_be_part(flow, args[k]) {
        return false;
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

/// Whether an array may be a part of another one, or come from a part by overwriting.
fn may_be_part(flow: &Flow<'_>, a: Atom) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![a];
    while let Some(a) = work.pop() {
        let Some((v, way)) = flow.base(a) else { continue };
        if way.part {
            return true;
        }
        if !seen.insert(v) {
            continue;
        }
        match flow.def(v) {
            Def::Written(of) => work.push(of),
            Def::Merge(m) => work.extend(flow.sources(m).into_iter().map(|(a, _)| a)),
            Def::Given | Def::Made => {}
        }
    }
    false
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
