//! Functions that are not inlined and hand on names of arrays say where those arrays lie.
//!
//! A result that may be (a part of) an argument has a dense cotangent in each call, and so has the argument, whatever the program does with
//! it. So such a result becomes its *location*: which argument, and which part of it. Where some call makes the array, or the one of which it is a
//! part, that stands beside it (then the location is `#made`), and else an array without elements.
//!
//! ```text
//! f (i, v, w) = if c i then f (i + 1, w, w) else v
//!   =>  f' (i, v, w) = if c i then (l = f' (i + 1, w, w); match l { argument v -> #w | argument w -> #w }) else #v
//! y = f (i, a, b)  =>  l = f' (i, a, b);  y = match l { argument v -> a | argument w -> b }
//! ```
//!
//! The caller finds the array by a branch, as [`rewrite`](super::rewrite) does it for loops: the rules of branches and names send every contribution
//! to the accumulator of the argument. The function itself only reads its arguments then, so the reverse function is given their accumulators.
//!
//! Which places a result may have is a least fixed point over the functions that call each other. An argument that a function may
//! overwrite in place is no place: who calls gives it away, and what comes back counts as made. Where some call does not give it away, or gives away
//! a part of another array, see [`lend`]. Statements that overwrite several elements of such a part become loops ([`wide`]) before the
//! places are looked for.
//!
//! Assumes core without `vjp`, `jvp`. Guarantees the same results; work grows by a constant factor. Functions of which no result
//! names an argument, and that need nothing else, stay as they are.

use super::choose::Group;
use super::flow::{Flow, Lends, Place, written};
use super::forms::Form;
use super::places::{Class, Owner, Spot};
use super::results::{MAX_PLACES, Parts, Places, cut, only_named};
use super::{Locate, Wanted, choose, flow_of, lend, rewritten, unbox, wide};
use crate::differentiate::callees_first;
use crate::fast_chad::reads::is_used;
use crate::tangent::fresh_function_name;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::{called_functions, for_each_stm, leads_to, reachable_functions};
use pullback_core::{Atom, Body, Builder, Exp, Fun, FunId, Lam, Program, Stm, Type, Var};
use std::collections::BTreeSet;

/// What is known about a function.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// The parameters that it may overwrite.
    pub(super) written: Vec<bool>,
    /// Which of them, as the program has them, become several: kept, given away, which of both; and the parts that are given away.
    pub(super) lent: Vec<Option<Parts>>,
    /// The statements that overwrite several elements at once of what may be such a part: they become loops.
    wide: IdSet<Var>,
    /// Its results that may become locations.
    pub(super) results: Vec<Option<Places>>,
    /// What is called instead.
    instead: FunId,
}

impl Facts {
    /// Nothing is known but which parameters become several.
    fn nothing(program: &Program, f: FunId, lent: Option<&Vec<Option<Parts>>>) -> Facts {
        let fun = &program.funs[f];
        let of_float_array = |ty: &Type| ty.rank() > 0 && program.is_active(ty);
        let results = fun.results.iter().map(|ty| of_float_array(ty).then(Places::default));
        let lent = lent.cloned().unwrap_or_else(|| vec![None; fun.params.len()]);
        let written = lend::given(&lent);
        Facts { written, lent, wide: IdSet::new(), results: results.collect(), instead: f }
    }
}

pub(super) type Known = IdMap<FunId, Facts>;

/// The lambda, in which functions that will not be inlined return locations where that saves work in its derivative: those that call
/// themselves, and what they call; all if they have more than `most` statements together. Those that are `located` then need no
/// locations any more.
pub(crate) fn locate_functions(
    program: &mut Program,
    lam: Lam,
    most: usize,
    located: &mut IdSet<FunId>,
) -> (Lam, Lends) {
    let reached = reachable_functions(program, called_functions(&lam.body));
    let recursive: IdSet<FunId> =
        reached.iter().copied().filter(|&f| leads_to(program, &program.funs[f].body, f)).collect();
    let inside = match inlined_size(program, &lam.body, &recursive) > most {
        true => reached.clone(),
        false => reachable_functions(program, recursive),
    };
    if inside.is_empty() {
        return (lam, Lends::new());
    }
    let (lam, reached) = unbox::unbox_functions(program, lam, &reached, &inside);
    let inside: IdSet<FunId> = inside.iter().map(|f| reached[f]).collect();
    let reached: IdSet<FunId> = reached.values().copied().collect();
    let lam = unbox::unbox(program, lam);
    let mut lent = lend::Params::new();
    let known = loop {
        let known = places(program, (&inside, &reached, &lam), &lent);
        let Some(f) = lend::first_kept(program, &known, &reached, &lam) else { break known };
        // What else it is given away must be taken out of its slot likewise.
        lent.insert(f, lend::with_written(program, f, &known[&f]));
    };
    rewrite_all(program, lam, &reached, (known, located))
}

/// How many statements of functions would stand for the calls in a body, but for those of functions that call themselves.
fn inlined_size(program: &Program, body: &Body, recursive: &IdSet<FunId>) -> usize {
    let mut sizes: IdMap<FunId, usize> = IdMap::new();
    let size_of = |body: &Body, own: usize, sizes: &IdMap<FunId, usize>| {
        let mut size: usize = 0;
        for_each_stm(body, &mut |stm| {
            let called = match &stm.exp {
                Exp::Call(f, _) => sizes.get(f).copied().unwrap_or(0),
                _ => 0,
            };
            size = size.saturating_add(called).saturating_add(own);
        });
        size
    };
    for f in callees_first(program).into_iter().filter(|f| !recursive.contains(f)) {
        let size = size_of(&program.funs[f].body, 1, &sizes);
        sizes.insert(f, size);
    }
    size_of(body, 0, &sizes)
}

// --- places ---

/// What is known about these functions, which call no others: least facts that agree with each other. All functions that are `reached`, and the
/// whole lambda, give arrays away.
fn places(
    program: &mut Program,
    (functions, reached, whole): (&IdSet<FunId>, &IdSet<FunId>, &Lam),
    lent: &lend::Params,
) -> Known {
    let mut known: Known = functions.iter().map(|&f| (f, Facts::nothing(program, f, lent.get(&f)))).collect();
    let start = program.vars.len();
    loop {
        let mut news = false;
        // The others only give away.
        let lends = known.values().any(|facts| facts.lent.iter().any(Option::is_some));
        let all = reached.iter().copied().map(Some).chain([None]);
        for f in all.filter(|f| lends || f.is_some_and(|f| functions.contains(&f))) {
            let seen = look(program, &known, (f, whole));
            program.vars.truncate(start);
            news |= learn(&mut known, f, seen);
        }
        if !news {
            break;
        }
    }
    known.values_mut().for_each(|facts| only_named(&mut facts.results));
    known
}

/// What is seen in a function, or in the whole lambda.
struct Seen {
    /// The parameters that it may overwrite.
    written: Vec<bool>,
    wide: IdSet<Var>,
    results: Vec<Places>,
    /// What it gives away: to which function, for which of its parameters, which part.
    given: Vec<(FunId, usize, (Type, Form))>,
}

/// Adds what is seen in a function to what is known; says whether that is news.
fn learn(known: &mut Known, f: Option<FunId>, Seen { written, wide, results, given }: Seen) -> bool {
    let mut changed = false;
    for (g, k, part) in given {
        let Some(facts) = known.get_mut(&g) else { continue };
        let Some(parts) = &mut facts.lent[k] else { continue };
        if parts.len() < MAX_PLACES && !parts.contains(&part) {
            let before = facts.lent.clone();
            facts.lent[k].get_or_insert_default().insert(part);
            facts.written = lend::moved(&facts.written, &before, &facts.lent);
            changed = true;
        }
    }
    // Its parameters are not where they were when it was looked at.
    let here = f.filter(|_| !changed).and_then(|f| known.get_mut(&f));
    if let Some(facts) = here {
        if facts.written != written || facts.wide != wide {
            (facts.written, facts.wide) = (written, wide);
            changed = true;
        } else if results.iter().all(|places| places.count() <= MAX_PLACES) {
            return learn_places(&mut facts.results, results);
        } else {
            let many =
                facts.results.iter_mut().zip(results).filter(|(_, places)| places.count() > MAX_PLACES);
            many.for_each(|(places, _)| *places = None);
            changed = true;
        }
    }
    if changed {
        // What was an argument is made now.
        for facts in known.values_mut() {
            facts.results.iter_mut().flatten().for_each(|places| *places = Places::default());
        }
    }
    changed
}
fn learn_places(known: &mut [Option<Places>], results: Vec<Places>) -> bool {
    let mut news = false;
    for (before, after) in known.iter_mut().zip(results) {
        let Some(places) = before else { continue };
        news |= *places != after;
        *places = after;
    }
    news
}

/// Looks at a function, or at the whole lambda.
fn look(program: &mut Program, known: &Known, (f, whole): (Option<FunId>, &Lam)) -> Seen {
    let calls = Calls::new(program, known);
    let Called { lam, unknown, lends } = match f {
        Some(f) => calls.original(f),
        None => calls.lambda(whole),
    };
    let inputs = float_params(program, &lam);
    let (mut flow, _) = flow_of(program, &lam, &inputs, &[]);
    flow.unknown = unknown;
    let facts = f.and_then(|f| known.get(&f));
    let mut written = facts.map_or_else(|| vec![false; lam.params.len()], |facts| facts.written.clone());
    let kept = facts.map_or(Vec::new(), |facts| lend::kept(&facts.lent));
    flow.hand_over(&lam.params, (&written, &kept), lends);
    if facts.is_some() {
        for v in overwritten(&flow, known) {
            if let Some(k) = lam.params.iter().position(|p| *p == v && !flow.kept.contains(p)) {
                written[k] = true;
            }
        }
    }
    let mut merges = if facts.is_some() { flow.merges_of(&lam.body.result) } else { Vec::new() };
    merges.extend(flow.lent_merges());
    let mut classes: Vec<Class> =
        choose::groups(&flow, f.is_none(), &merges).into_iter().map(|g| Class::of(&flow, g)).collect();
    let given = lend::given_parts(&flow, &classes);
    let mut wide = facts.map_or(IdSet::new(), |facts| facts.wide.clone());
    let mut results = Vec::new();
    if let Some(facts) = facts {
        wide.extend(classes.iter_mut().flat_map(|class| class.wide(&flow)));
        classes.push(Class::new(Group { merges: BTreeSet::new(), home: None }));
        let argument = |v: Var| lam.params.iter().position(|p| *p == v).filter(|k| !written[*k]);
        for (k, (&a, before)) in lam.body.result.iter().zip(&facts.results).enumerate() {
            // Nothing is asked about the others.
            let Some(mut found) = before.clone() else {
                results.push(Places::default());
                continue;
            };
            let spots = spots_of(&flow, &mut classes, a, &|v| program.vars[v].ty.clone());
            for (owner, form) in spots {
                let argument = match &owner {
                    Owner::Root(v) => argument(*v),
                    Owner::Made(_) => None,
                };
                match (argument, owner) {
                    (Some(k), _) => drop(found.arguments.insert((k, form))),
                    (None, Owner::Root(v)) => drop(found.made.insert((k, flow.ty(v).clone(), form))),
                    (None, Owner::Made(ty)) => drop(found.made.insert((k, ty, form))),
                }
            }
            for (j, earlier) in results.iter().enumerate().filter(|(j, _)| facts.results[*j].is_some()) {
                if flow.may_be_same(lam.body.result[j], a) {
                    found.beside_too(k, (j, earlier));
                }
            }
            results.push(found);
        }
    }
    Seen { written, wide, results, given }
}

/// Where a result may lie.
fn spots_of(flow: &Flow<'_>, classes: &mut [Class], a: Atom, ty: &dyn Fn(Var) -> Type) -> BTreeSet<Spot> {
    if flow.array(a).is_none() {
        // It does not depend on the arguments.
        let ty = a.var().map(ty);
        return ty.map(|ty| (Owner::Made(ty.clone()), Form::whole(ty.rank()))).into_iter().collect();
    }
    let about = classes
        .iter_mut()
        .find(|c| flow.base(a).is_some_and(|(v, _)| c.is_merged(flow, v)) || c.merges.is_empty());
    about.map_or(BTreeSet::new(), |class| class.spots_of(flow, a))
}

pub(super) fn float_params(program: &Program, lam: &Lam) -> Vec<Var> {
    lam.params.iter().copied().filter(|v| program.is_active(&program.vars[*v].ty)).collect()
}

/// The arrays from outside that a body, or a function that it calls, may overwrite in place.
fn overwritten(flow: &Flow<'_>, known: &Known) -> BTreeSet<Var> {
    let mut out = BTreeSet::new();
    for (&place, body) in &flow.bodies {
        for (at, stm) in body.stms.iter().enumerate() {
            let mut arrays: Vec<Var> = Vec::new();
            for a in (0..stm.pat.len()).filter_map(|k| written(&stm.exp, k)) {
                arrays.extend(flow.may_be(a, None));
            }
            if let Exp::Call(g, args) = &stm.exp
                && let Some(facts) = known.get(g)
            {
                for (k, &a) in args.iter().enumerate().filter(|(k, _)| facts.written[*k]) {
                    let lent = flow.lends.iter().find(|(_, l)| a.var().is_some_and(|v| l.given.contains(&v)));
                    let a = lent.map_or(a, |(_, lend)| lend.of);
                    // What is another argument, too, is not given away.
                    let others = args.iter().enumerate().filter(|(j, _)| *j != k);
                    let others = others.filter(|(_, a)| lent.is_none_or(|(kept, _)| **a != (*kept).into()));
                    let others: Vec<Var> = others.flat_map(|(_, a)| flow.may_be(*a, None)).collect();
                    arrays.extend(flow.may_be(a, None).into_iter().filter(|v| !others.contains(v)));
                }
            }
            out.extend(arrays.into_iter().filter(|v| !is_used_after(flow, place, at, *v)));
        }
    }
    out
}

/// Whether an array is used after a statement on every way: then what the statement overwrites is a copy.
fn is_used_after(flow: &Flow<'_>, mut place: Place, mut at: usize, v: Var) -> bool {
    let is = |a: Atom| flow.base(a).is_some_and(|(base, _)| base == v);
    loop {
        let body = flow.bodies[&place];
        if is_used(&body.stms[at + 1..], &body.result, &is) {
            return true;
        }
        let Some((stm, _)) = place else { return false };
        place = flow.parent(place);
        let here = flow.bodies[&place].stms.iter().position(|s| s.pat[0] == stm);
        let Some(here) = here else { return false };
        at = here;
    }
}

// --- calls ---

/// The calls of functions replaced in one body.
pub(super) struct Calls<'a, 'p> {
    b: Builder<'p>,
    known: &'a Known,
    unknown: IdSet<Var>,
    lends: Lends,
}

/// A lambda with calls replaced.
pub(super) struct Called {
    pub(super) lam: Lam,
    /// Results of which nothing is known yet.
    pub(super) unknown: IdSet<Var>,
    /// Arguments that may be given away.
    pub(super) lends: Lends,
}

impl<'a, 'p> Calls<'a, 'p> {
    pub(super) fn new(program: &'p mut Program, known: &'a Known) -> Self {
        Calls { b: Builder::new(program), known, unknown: IdSet::new(), lends: Lends::new() }
    }
    /// A copy of a function.
    pub(super) fn function(mut self, f: FunId) -> Called {
        let lam = self.text(f);
        let lam = copy_lam(self.b.program, &lam, &Subst::new());
        self.taken(f, lam)
    }
    /// A function with its own variables, to be looked at.
    pub(super) fn original(mut self, f: FunId) -> Called {
        let lam = self.text(f);
        self.taken(f, lam)
    }
    fn text(&mut self, f: FunId) -> Lam {
        let Fun { params, body, .. } = self.b.program.funs[f].clone();
        let lam = Lam { params, body };
        match self.known.get(&f) {
            Some(facts) if !facts.wide.is_empty() => wide::one_by_one(self.b.program, lam, &facts.wide),
            _ => lam,
        }
    }
    fn taken(mut self, f: FunId, lam: Lam) -> Called {
        let lent = self.known.get(&f).map_or(&[][..], |facts| &facts.lent);
        let lam = lend::taken(&mut self.b, lam, lent);
        self.lambda(&lam)
    }
    pub(super) fn lambda(mut self, lam: &Lam) -> Called {
        let body = self.body(&lam.body);
        let lam = Lam { params: lam.params.clone(), body };
        Called { lam, unknown: self.unknown, lends: self.lends }
    }

    fn body(&mut self, body: &Body) -> Body {
        self.b.open();
        for stm in &body.stms {
            self.b.origin = self.b.program.vars[stm.pat[0]].origin.clone();
            let mut exp = stm.exp.clone();
            for scope in exp.bodies_mut() {
                *scope.body = self.body(scope.body);
            }
            match &exp {
                Exp::Call(f, args) if self.known.contains_key(f) => {
                    self.b.origin.rule = Some(("fast_chad.locate", Some(stm.pat[0])));
                    self.call(stm, *f, args);
                }
                _ => self.b.emit_to(stm.pat.clone(), exp),
            }
        }
        self.b.close(body.result.clone())
    }

    /// A call whose results are found at their locations.
    fn call(&mut self, stm: &Stm, f: FunId, args: &[Atom]) {
        let facts = &self.known[&f];
        let args = &lend::lend(&mut self.b, (f, args), &facts.lent, &mut self.lends)[..];
        let mut pat = stm.pat.clone();
        let mut found = Vec::new();
        let mut wholes: Vec<((usize, &Type), Var)> = Vec::new();
        for (k, places) in facts.results.iter().enumerate() {
            match places {
                Some(places) if places.is_empty() => {
                    self.unknown.insert(pat[k]);
                }
                Some(places) => {
                    pat[k] = self.b.fresh(places.ty(), "at");
                    for ty in places.wholes(k) {
                        let whole = self.b.fresh(ty.clone(), "made");
                        pat.push(whole);
                        wholes.push(((k, ty), whole));
                    }
                    found.push((k, places));
                }
                None => {}
            }
        }
        self.b.emit_to(pat.clone(), Exp::Call(facts.instead, args.to_vec()));
        for (k, places) in found {
            let arguments = places.arguments.iter().map(|(j, form)| (args[*j], form));
            let made = places.made.iter().filter_map(|(j, ty, form)| {
                let (_, whole) = wholes.iter().find(|(at, _)| *at == (*j, ty))?;
                Some((Atom::Var(*whole), form))
            });
            let arms = arguments.chain(made).map(|(whole, form)| cut(&mut self.b, whole, form)).collect();
            self.b.emit_to(vec![stm.pat[k]], Exp::Match(pat[k].into(), arms));
        }
    }
}

// --- the functions ---

/// The lambda with the functions in which something changes replaced.
fn rewrite_all(
    program: &mut Program,
    lam: Lam,
    reached: &IdSet<FunId>,
    (mut known, located): (Known, &mut IdSet<FunId>),
) -> (Lam, Lends) {
    let mut needing = Vec::new();
    for (&f, facts) in &known {
        let lends = facts.lent.iter().any(Option::is_some) || !facts.wide.is_empty();
        if lends || facts.results.iter().any(Option::is_some) || carries(program, &known, f) {
            needing.push(f);
        }
    }
    let leads = |f: &FunId| {
        let from = reachable_functions(program, [*f]);
        needing.iter().any(|g| from.contains(g))
    };
    let changed: Vec<FunId> = reached.iter().copied().filter(leads).collect();
    for &f in &changed {
        let Fun { name, results: types, .. } = program.funs[f].clone();
        let unknown = || Facts { results: vec![None; types.len()], ..Facts::nothing(program, f, None) };
        let mut facts = known.get(&f).cloned().unwrap_or_else(unknown);
        let mut results = types.clone();
        let mut made = Vec::new();
        for (k, places) in facts.results.iter().enumerate() {
            let Some(places) = places else { continue };
            results[k] = places.ty();
            made.extend(places.wholes(k).cloned());
        }
        results.extend(made);
        let name = fresh_function_name(program, &format!("{name}_at"));
        let empty = Fun { name, params: Vec::new(), body: Body::default(), results, entry: None };
        facts.instead = program.funs.push(empty);
        known.insert(f, facts);
    }
    for &f in &changed {
        let Called { lam, lends, .. } = Calls::new(program, &known).function(f);
        let inputs = float_params(program, &lam);
        let Facts { written, lent, results, instead, .. } = &known[&f];
        let wanted = Wanted { results, written, kept: &lend::kept(lent), asked: &[] };
        let how = (Locate::Repeated, lends);
        let Lam { params, body } = rewritten(program, lam, &inputs, how, &wanted).lam;
        located.insert(*instead);
        let fun = &mut program.funs[*instead];
        (fun.params, fun.body) = (params, body);
    }
    let Called { lam, lends, .. } = Calls::new(program, &known).lambda(&lam);
    (lam, lends)
}

/// Whether loops and branches in a function need locations.
fn carries(program: &mut Program, known: &Known, f: FunId) -> bool {
    let start = program.vars.len();
    let lam = Calls::new(program, known).original(f).lam;
    let inputs = float_params(program, &lam);
    let carries = !choose::groups(&flow_of(program, &lam, &inputs, &[]).0, false, &[]).is_empty();
    program.vars.truncate(start);
    carries
}
