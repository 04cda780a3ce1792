//! Which merges carry locations, and which of them share their slots.
//!
//! The state of a loop is carried as an array, and its cotangent as a dense array, where that costs no more than a constant factor: every next
//! state is a whole state of the iteration before, or that overwritten, or new; no array is two of them; and whoever enters the loop
//! pays for an array of zeros. A branch needs no location if its arms only name arrays from outside (see
//! `Reverse::derive_chosen`), or all make new ones, or if no accumulator will be opened for its result.
//!
//! What is found to need a location spreads: to where an array comes from and, in loops, to where it goes. Merges between which arrays
//! pass are a class.

use super::flow::{As, Def, Flow, Kind, Merge, Place, Way};
use super::places::Class;
use crate::fast_chad::chosen::opens;
use crate::fast_chad::map::consumes;
use pullback_base::index::IdSet;
use pullback_core::traverse::{free_vars, free_vars_exp};
use pullback_core::{Atom, Body, Exp, Loop, LoopForm, Soac, Var};
use std::collections::{BTreeMap, BTreeSet};

/// Merges that share slots.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) merges: BTreeSet<Merge>,
    /// The innermost body around all of them.
    pub(super) home: Place,
}

/// The merges that need locations, in groups; `wanted` do in any case.
pub(super) fn groups(flow: &Flow<'_>, once: bool, wanted: &[Merge]) -> Vec<Group> {
    let mut edges = edges(flow);
    edges.extend(next_states(flow));
    let mut chosen = loops(flow, once);
    chosen.extend(wanted);
    loop {
        let before = chosen.len();
        chosen.extend(branches(flow, once, &chosen));
        spread(flow, &edges, &mut chosen);
        let groups = connected(flow, &edges, &chosen);
        // A first state that is bound inside of what its group is about cannot be named there.
        let missing = edges.iter().filter(|e| e.way == Way::First && chosen.contains(&e.to)).filter(|e| {
            let home = groups.iter().find(|g| g.merges.contains(&e.to)).map(|g| g.home);
            home.is_some_and(|home| !flow.within(home, flow.home(e.var)))
        });
        let missing: Vec<Merge> = missing.map(|e| e.from).collect();
        chosen.extend(missing);
        if chosen.len() == before {
            return groups;
        }
    }
}

/// An array of one merge that may be that of another.
#[derive(Debug)]
struct Edge {
    from: Merge,
    var: Var,
    to: Merge,
    way: Way,
}

fn edges(flow: &Flow<'_>) -> Vec<Edge> {
    let mut out = Vec::new();
    for &to in &flow.merges {
        for (a, way) in flow.sources(to) {
            for var in flow.comes_from(a) {
                if let Def::Merge(from) = flow.def(var) {
                    out.push(Edge { from, var, to, way });
                }
            }
        }
    }
    out
}

/// The states of a loop that come to be others of its states an iteration later, on whatever way.
fn next_states(flow: &Flow<'_>) -> Vec<Edge> {
    let mut out = Vec::new();
    for &to in &flow.merges {
        let Some(l) = flow.loop_of(to.0) else { continue };
        for var in flow.terms(l.body.result[to.1], flow.body_of(to.0)).into_keys() {
            if let Some(k) = l.params.iter().position(|p| p.0 == var) {
                out.push(Edge { from: (to.0, k), var, to, way: Way::Inside });
            }
        }
    }
    out
}

/// Where a location is needed, locations are needed of all arrays that come there, and wherever the array goes on.
fn spread(flow: &Flow<'_>, edges: &[Edge], chosen: &mut BTreeSet<Merge>) {
    let cycles = cycles(edges);
    loop {
        let before = chosen.len();
        for e in edges {
            let around = e.way == Way::First && cycles[&e.to] == cycles[&e.from];
            if e.way == Way::Inside || around {
                if chosen.contains(&e.to) {
                    chosen.insert(e.from);
                }
                let goes_on = flow.loop_of(e.to.0).is_some() || around;
                if goes_on && chosen.contains(&e.from) {
                    chosen.insert(e.to);
                }
            }
        }
        if chosen.len() == before {
            return;
        }
    }
}

/// For each merge a number, the same for those whose arrays can come to each other.
fn cycles(edges: &[Edge]) -> BTreeMap<Merge, usize> {
    let (mut next, mut before): (BTreeMap<Merge, Vec<Merge>>, BTreeMap<Merge, Vec<Merge>>) =
        Default::default();
    for e in edges {
        next.entry(e.from).or_default().push(e.to);
        before.entry(e.to).or_default().push(e.from);
    }
    // Kosaraju: in the reverse of the order in which they are left, along the edges backwards.
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for e in edges {
        [e.from, e.to].into_iter().for_each(|m| visit(m, &next, &mut seen, &mut order));
    }
    let mut out = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (number, &m) in order.iter().rev().enumerate() {
        let mut here = Vec::new();
        visit(m, &before, &mut seen, &mut here);
        out.extend(here.into_iter().map(|m| (m, number)));
    }
    out
}
/// Adds what can be reached and was not seen before, each after all that it leads to.
fn visit(start: Merge, next: &BTreeMap<Merge, Vec<Merge>>, seen: &mut BTreeSet<Merge>, out: &mut Vec<Merge>) {
    if !seen.insert(start) {
        return;
    }
    let after = |m: Merge| next.get(&m).map_or(&[][..], Vec::as_slice).iter();
    let mut way = vec![(start, after(start))];
    while let Some((m, rest)) = way.last_mut() {
        match rest.next() {
            Some(&n) if seen.insert(n) => way.push((n, after(n))),
            Some(_) => {}
            None => {
                out.push(*m);
                way.pop();
            }
        }
    }
}

fn connected(flow: &Flow<'_>, edges: &[Edge], chosen: &BTreeSet<Merge>) -> Vec<Group> {
    let cycles = cycles(edges);
    let mut number: BTreeMap<Merge, usize> = chosen.iter().enumerate().map(|(k, m)| (*m, k)).collect();
    loop {
        let mut news = false;
        for e in edges {
            let around = cycles[&e.to] == cycles[&e.from];
            // Between loops that follow each other the first one's result is an array like others. But of an argument it depends on its
            // location whether it is overwritten in place.
            let is_apart = || !shares_home(flow, &number, e) && !flow.may_be_given(e.from);
            if e.way == Way::First && !around && is_apart() {
                continue;
            }
            if let (Some(&a), Some(&b)) = (number.get(&e.from), number.get(&e.to))
                && a != b
            {
                number.values_mut().filter(|n| **n == a.max(b)).for_each(|n| *n = a.min(b));
                news = true;
            }
        }
        if !news {
            break;
        }
    }
    let mut groups: BTreeMap<usize, BTreeSet<Merge>> = BTreeMap::new();
    for (m, n) in number {
        groups.entry(n).or_default().insert(m);
    }
    let group = |merges: BTreeSet<Merge>| {
        let mut places = merges.iter().map(|m| flow.home(m.0));
        let first = places.next().unwrap_or(None);
        let home = places.fold(first, |a, b| flow.common(a, b));
        // An array that is given away is made before everything else.
        let given = flow.can_carry(None, home) && merges.iter().any(|m| flow.may_be_given(*m));
        Group { home: if given { None } else { home }, merges }
    };
    groups.into_values().map(group).collect()
}

/// Whether the array with which a loop starts is bound inside of what the loop's group is about.
fn shares_home(flow: &Flow<'_>, number: &BTreeMap<Merge, usize>, e: &Edge) -> bool {
    let Some(n) = number.get(&e.to) else { return false };
    let mut places = number.iter().filter(|(_, k)| *k == n).map(|(m, _)| flow.home(m.0));
    let first = places.next().unwrap_or(None);
    let home = places.fold(first, |a, b| flow.common(a, b));
    !flow.within(home, flow.home(e.var))
}

/// The states of loops that need locations of themselves. `once`: the lambda runs once.
fn loops(flow: &Flow<'_>, once: bool) -> BTreeSet<Merge> {
    let mut out = BTreeSet::new();
    for (&place, body) in &flow.bodies {
        for stm in &body.stms {
            let repeats = !once || flow.repeated(place).is_some();
            if let Exp::Loop(l) = &stm.exp {
                out.extend(states(flow, (stm.pat[0], l), body, repeats));
            }
        }
    }
    out
}

/// The results of branches that need locations where these merges have some.
fn branches(flow: &Flow<'_>, once: bool, chosen: &BTreeSet<Merge>) -> BTreeSet<Merge> {
    let mut out = BTreeSet::new();
    for v in opened(flow, chosen) {
        let Def::Merge(m) = flow.def(v) else { continue };
        let place = flow.home(m.0);
        let repeats = !once || flow.repeated(place).is_some();
        if repeats && flow.loop_of(m.0).is_none() && mixes(flow, m, v) {
            out.insert(m);
        }
    }
    out
}

/// What comes to the results of branches for which accumulators may be opened, in bodies that run many times.
pub(super) fn named(flow: &Flow<'_>, once: bool, classes: &[Class]) -> IdSet<Var> {
    let chosen = classes.iter().flat_map(|c| c.merges.iter().copied()).collect();
    let mut out = IdSet::new();
    for v in opened(flow, &chosen) {
        let Def::Merge(m) = flow.def(v) else { continue };
        let repeats = !once || flow.repeated(flow.home(m.0)).is_some();
        if !repeats || flow.loop_of(m.0).is_some() {
            continue;
        }
        for (a, _) in flow.sources(m) {
            out.extend(a.var().into_iter().flat_map(|v| flow.way_of(v)));
        }
    }
    out
}

/// The states of a loop whose cotangents must not be dense.
fn states(flow: &Flow<'_>, (stm, l): (Var, &Loop), body: &Body, repeats: bool) -> Vec<Merge> {
    let inside = flow.body_of(stm);
    let arrays: Vec<usize> =
        (0..l.params.len()).filter(|j| flow.variables((stm, *j)).iter().any(|v| flow.is_array(*v))).collect();
    let terms: Vec<BTreeMap<Var, BTreeSet<As>>> =
        arrays.iter().map(|&j| flow.terms(l.body.result[j], inside)).collect();
    let mut out = Vec::new();
    for (&j, here) in arrays.iter().zip(&terms) {
        let state = |v: &Var| l.params.iter().any(|(x, _)| x == v);
        let names_others = here.iter().any(|(v, ways)| !state(v) || ways.iter().any(|way| way.part));
        let shared = here.keys().any(|v| terms.iter().filter(|t| t.contains_key(v)).count() > 1);
        if names_others || shared || (repeats && !is_paid(flow, (stm, l, j), body)) {
            out.push((stm, j));
        }
    }
    out
}

/// Whether whoever runs a loop does as much work as an array of zeros for its state costs, or has its cotangent as a whole.
fn is_paid(flow: &Flow<'_>, (stm, l, j): (Var, &Loop, usize), body: &Body) -> bool {
    let place = flow.home(stm);
    let around = flow.repeated(place).unwrap_or(None);
    let (x, init) = l.params[j];
    let y = flow.stms[&stm].pat[j];
    let mut first = flow.terms(init, around);
    first.retain(|v, ways| !flow.given_away.contains(v) || ways.iter().any(|way| way.part));
    if first.is_empty() || consumes(body, y) || init.var().is_some_and(|v| consumes(body, v)) {
        return true;
    }
    let runs = matches!(l.form, LoopForm::For { n: Atom::Const(n), .. } if n.as_i64() > 0);
    let made = || {
        let made = flow.base(l.body.result[j]).filter(|(v, _)| matches!(flow.def(*v), Def::Made));
        made.is_some_and(|(v, _)| flow.stms.get(&v).is_none_or(|stm| !has_fixed_size(&stm.exp)))
    };
    if runs && (consumes(&l.body, x) || made()) {
        return true;
    }
    // The state of a loop around it, which it hands on.
    if flow.kind(around) != Kind::Loop {
        return false;
    }
    let outer = around.and_then(|(stm, _)| flow.loop_of(stm));
    let hands_on = |l: &Loop| {
        let next = l.body.result.iter().take(l.params.len());
        let is_next = next.into_iter().any(|a| flow.base(*a) == Some((y, As::default())));
        let whole = first
            .iter()
            .all(|(v, ways)| l.params.iter().any(|p| p.0 == *v) && ways.iter().all(|way| !way.part));
        is_next && whole && first.len() == 1
    };
    // Nobody looks at the state after the loop: its cotangent is not asked for before the loop's is there.
    let after = body.stms.iter().skip_while(|s| s.pat[0] != stm).skip(1);
    let unread = || {
        let used: IdSet<Var> = after.flat_map(|s| free_vars_exp(&s.exp)).collect();
        used.into_iter().all(|v| flow.base(v.into()).is_none_or(|(base, _)| !first.contains_key(&base)))
    };
    place == around && outer.is_some_and(hands_on) && unread()
}

/// Whether an array is made that has the same few elements for all inputs: it may stand in the place of a large one.
fn has_fixed_size(exp: &Exp) -> bool {
    match exp {
        Exp::ArrayLit(..) => true,
        Exp::Replicate(shape, _) => shape.iter().all(|n| n.var().is_none()),
        _ => false,
    }
}

/// The arrays for which an accumulator may be opened: those that functions of operations, loops and calls mention, those of which a part
/// of several elements is taken, what those are names for, and what they may be.
fn opened(flow: &Flow<'_>, chosen: &BTreeSet<Merge>) -> IdSet<Var> {
    let mut work: Vec<Var> = Vec::new();
    for body in flow.bodies.values() {
        for stm in &body.stms {
            match &stm.exp {
                Exp::Soac(soac) => {
                    for scope in stm.exp.bodies() {
                        let bound: Vec<Var> = scope.binds.iter().collect();
                        work.extend(free_vars(scope.body).into_iter().filter(|v| !bound.contains(v)));
                    }
                    if let Soac::Map { lam, arrays, .. } = soac {
                        let rows = lam.params.iter().zip(arrays);
                        let rows = rows.filter(|(p, _)| flow.is_array(**p) && opens(&lam.body, **p));
                        work.extend(rows.filter_map(|(_, a)| a.var()));
                    }
                }
                Exp::Loop(l) => {
                    let bound: Vec<Var> = l.params.iter().map(|p| p.0).collect();
                    work.extend(free_vars(&l.body).into_iter().filter(|v| !bound.contains(v)));
                }
                Exp::Gather(a, _)
                | Exp::Slice(a, _)
                | Exp::Rearrange(_, a)
                | Exp::Reshape { array: a, .. } => work.extend(a.var()),
                Exp::Call(_, args) => work.extend(args.iter().filter_map(|a| a.var())),
                _ => {}
            }
        }
    }
    let mut out = IdSet::new();
    while let Some(v) = work.pop() {
        if !flow.is_array(v) || !out.insert(v) {
            continue;
        }
        if let Some((a, _)) = flow.names.get(&v) {
            work.extend(a.var());
        } else if let Def::Merge(m) = flow.def(v)
            && (flow.loop_of(m.0).is_none() || chosen.contains(&m))
        {
            work.extend(flow.sources(m).into_iter().filter_map(|(a, _)| a.var()));
        }
    }
    out
}

/// Whether a branch gives an array from outside of the present iteration in some way that is not by its name alone, or gives a new one
/// instead.
fn mixes(flow: &Flow<'_>, m: Merge, v: Var) -> bool {
    let place = flow.home(m.0);
    let around = flow.repeated(place).unwrap_or(None);
    if flow.terms(v.into(), around).is_empty() {
        return false;
    }
    let outside = |v: Var| flow.within(place, flow.home(v));
    // A name from outside of the branch, or a view of one by what is known there or by the scrutinee's payload.
    let given =
        |v: Var| matches!(flow.def(v), Def::Given) && matches!(flow.home(v), Some((stm, _)) if stm == m.0);
    let simple = |a: Atom| {
        let mut a = a;
        loop {
            let Some(v) = flow.array(a) else { return false };
            if outside(v) {
                return true;
            }
            let Some((of, view)) = flow.names.get(&v) else { return false };
            let mut known = true;
            if let Some(view) = view {
                for_each_atom(view, &mut |a| known &= a.var().is_none_or(|v| outside(v) || given(v)));
            }
            if !known {
                return false;
            }
            a = *of;
        }
    };
    !flow.sources(m).into_iter().all(|(a, _)| simple(a))
}

/// The numbers in a view.
pub(super) fn for_each_atom(view: &pullback_core::View, f: &mut dyn FnMut(Atom)) {
    use pullback_core::View;
    match view {
        View::Index(ix) => ix.iter().for_each(|a| f(*a)),
        View::Slice(s) => [s.start, s.len, s.stride].into_iter().for_each(f),
        View::Reshape { shape, from: _ } => shape.iter().for_each(|a| f(*a)),
        View::Rotate(k) => f(*k),
        View::Proj(_) | View::Rearrange(_) | View::Reverse => {}
    }
}
