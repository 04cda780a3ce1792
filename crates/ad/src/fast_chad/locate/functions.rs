//! Functions that are not inlined and hand on names of arrays say where those arrays lie.
//!
//! A result that may be (a part of) an argument has a dense cotangent in each call, and so has the argument, whatever the program does with
//! it. So such a result becomes its *location*: which argument, and which part of it. Beside it stands the array, where some call
//! makes one (then the location is `#made`), and else an array without elements.
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
//! overwrite in place is no place: who calls gives it away, and what comes back counts as made. Where some call does not give it away,
//! see [`lend`].
//!
//! Assumes core without `vjp`, `jvp`. Guarantees the same results; work grows by a constant factor. Functions of which no result
//! names an argument, and that need nothing else, stay as they are.

use super::choose::Group;
use super::flow::{Flow, Lends, Place, written};
use super::forms::Form;
use super::places::{Class, Owner};
use super::{Locate, Wanted, choose, flow_of, lend, rewritten, unbox};
use crate::differentiate::callees_first;
use crate::fast_chad::reads::is_used;
use crate::tangent::fresh_function_name;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::{called_functions, for_each_stm, leads_to, reachable_functions};
use pullback_core::{Atom, Body, Builder, Exp, Fun, FunId, Lam, Program, Stm, Type, Var, Variant};
use std::collections::BTreeSet;

/// A result with more places than this is returned as it is: each is an arm of every branch that finds the result. A choice, not measured.
const MAX_PLACES: usize = 16;

/// Where a result may lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Places {
    /// In an argument, cut out like this.
    arguments: BTreeSet<(usize, Form)>,
    /// Some call makes it.
    pub(super) made: bool,
}

impl Places {
    /// The type of locations.
    pub(super) fn ty(&self) -> Type {
        let named = |(k, (_, form)): (usize, &(usize, Form))| Variant {
            name: format!("argument{k}").as_str().into(),
            fields: vec![Type::I64; form.holes()],
        };
        let made = self.made.then(|| Variant { name: "made".into(), fields: Vec::new() });
        Type::Sum(self.arguments.iter().enumerate().map(named).chain(made).collect())
    }
    /// The number of the alternative for a part of an argument.
    pub(super) fn number(&self, argument: usize, form: &Form) -> Option<usize> {
        self.arguments.iter().position(|(j, f)| *j == argument && f == form)
    }
    /// The number of the alternative for what a call makes.
    pub(super) fn number_of_made(&self) -> usize {
        self.arguments.len()
    }
    /// How many holes the first alternative has.
    pub(super) fn first_holes(&self) -> usize {
        self.arguments.first().map_or(0, |(_, form)| form.holes())
    }
    fn is_empty(&self) -> bool {
        self.arguments.is_empty() && !self.made
    }
}

/// What is known about a function.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// The parameters that it may overwrite.
    pub(super) written: Vec<bool>,
    /// Which of them, as the program has them, become three: kept, given away, which of both.
    pub(super) lent: Vec<bool>,
    /// Its results that may become locations.
    results: Vec<Option<Places>>,
    /// What is called instead.
    instead: FunId,
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
    let mut lent = lend::Params::new();
    let known = loop {
        let known = places(program, &inside, &lent);
        let Some(f) = lend::first_kept(program, &known, &reached, &lam) else { break known };
        // What else it is given away must be taken out of its slot likewise.
        lent.insert(f, lend::with_written(&known[&f]));
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

/// Where the results of these functions, which call no others, may lie.
fn places(program: &mut Program, functions: &IdSet<FunId>, lent: &lend::Params) -> Known {
    let of_float_array = |program: &Program, ty: &Type| ty.rank() > 0 && program.is_active(ty);
    let nothing_known = |&f: &FunId| {
        let fun = &program.funs[f];
        let results = fun.results.iter().map(|ty| of_float_array(program, ty).then(Places::default));
        let lent = lent.get(&f).cloned().unwrap_or_else(|| vec![false; fun.params.len()]);
        (f, Facts { written: lend::given(&lent), lent, results: results.collect(), instead: f })
    };
    let mut known: Known = functions.iter().map(nothing_known).collect();
    let start = program.vars.len();
    loop {
        let mut news = false;
        for &f in functions {
            let (written, results) = look(program, &known, f);
            program.vars.truncate(start);
            if written != known[&f].written {
                // What was an argument is made now.
                for facts in known.values_mut() {
                    facts.results.iter_mut().flatten().for_each(|places| *places = Places::default());
                }
                known.entry(f).and_modify(|facts| facts.written = written);
                news = true;
                continue;
            }
            let Some(facts) = known.get_mut(&f) else { continue };
            for (before, after) in facts.results.iter_mut().zip(results) {
                let Some(places) = before else { continue };
                if *places == after {
                    continue;
                }
                news = true;
                *before = (after.arguments.len() <= MAX_PLACES).then_some(after);
            }
        }
        if !news {
            break;
        }
    }
    for facts in known.values_mut() {
        let named = |places: &Option<Places>| places.as_ref().is_some_and(|p| !p.arguments.is_empty());
        facts.results.iter_mut().filter(|places| !named(places)).for_each(|places| *places = None);
    }
    known
}

/// Looks at a function: which of its parameters it may overwrite, and where its results may lie.
fn look(program: &mut Program, known: &Known, f: FunId) -> (Vec<bool>, Vec<Places>) {
    let Called { lam, unknown, lends } = Calls::new(program, known).function(f);
    let inputs = float_params(program, &lam);
    let (mut flow, _) = flow_of(program, &lam, &inputs, &[]);
    flow.unknown = unknown;
    let Facts { written, lent, .. } = &known[&f];
    let mut written = written.clone();
    flow.hand_over(&lam.params, (&written, &lend::kept(lent)), lends);
    for v in overwritten(&flow, known) {
        if let Some(k) = lam.params.iter().position(|p| *p == v && !flow.kept.contains(p)) {
            written[k] = true;
        }
    }
    let mut merges = flow.merges_of(&lam.body.result);
    merges.extend(flow.lent_merges());
    let mut classes: Vec<Class> =
        choose::groups(&flow, false, &merges).into_iter().map(|g| Class::of(&flow, g)).collect();
    classes.push(Class::new(Group { merges: BTreeSet::new(), home: None }));
    let mut results = Vec::new();
    for (&a, before) in lam.body.result.iter().zip(&known[&f].results) {
        let mut found = before.clone().unwrap_or_default();
        let spots = classes
            .iter_mut()
            .find(|c| flow.base(a).is_some_and(|(v, _)| c.is_merged(&flow, v)) || c.merges.is_empty());
        let spots = spots.map_or(BTreeSet::new(), |class| class.spots_of(&flow, a));
        found.made |= flow.array(a).is_none();
        for (owner, form) in spots {
            let argument = match owner {
                Owner::Root(v) => lam.params.iter().position(|p| *p == v).filter(|k| !written[*k]),
                Owner::Made(_) => None,
            };
            match argument {
                Some(k) => found.arguments.extend([(k, form)]),
                None => found.made = true,
            }
        }
        results.push(found);
    }
    (written, results)
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
                    let lent = flow.lends.iter().find(|(_, lend)| a == lend.given.into());
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
        let Fun { params, body, .. } = self.b.program.funs[f].clone();
        let lam = copy_lam(self.b.program, &Lam { params, body }, &Subst::new());
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
        let args = &lend::lend(&mut self.b, args, &facts.lent, &mut self.lends)[..];
        let mut pat = stm.pat.clone();
        let mut found = Vec::new();
        for (k, places) in facts.results.iter().enumerate() {
            match places {
                Some(places) if places.is_empty() => {
                    self.unknown.insert(pat[k]);
                }
                Some(places) => {
                    pat[k] = self.b.fresh(places.ty(), "at");
                    let ty = self.b.ty(stm.pat[k].into());
                    let made = places.made.then(|| self.b.fresh(ty, "made"));
                    pat.extend(made);
                    found.push((k, places, made));
                }
                None => {}
            }
        }
        self.b.emit_to(pat.clone(), Exp::Call(facts.instead, args.to_vec()));
        for (k, places, made) in found {
            let mut arms = Vec::new();
            for (j, form) in &places.arguments {
                let params: Vec<Var> = (0..form.holes()).map(|_| self.b.fresh(Type::I64, "i")).collect();
                let holes: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
                self.b.open();
                let part = form.cut(&mut self.b, args[*j], &holes);
                arms.push(Lam { params, body: self.b.close(vec![part]) });
            }
            arms.extend(made.map(|made| Lam {
                params: Vec::new(),
                body: Body { stms: Vec::new(), result: vec![made.into()] },
            }));
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
        let lends = facts.lent.contains(&true);
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
        let Fun { name, results: types, params, .. } = program.funs[f].clone();
        let mut facts = known.get(&f).cloned().unwrap_or_else(|| Facts {
            written: vec![false; params.len()],
            lent: vec![false; params.len()],
            results: vec![None; types.len()],
            instead: f,
        });
        let mut results = types.clone();
        let mut made = Vec::new();
        for (k, places) in facts.results.iter().enumerate() {
            let Some(places) = places else { continue };
            results[k] = places.ty();
            made.extend(places.made.then(|| types[k].clone()));
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
        let Facts { written, lent, results, instead } = &known[&f];
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
    let lam = Calls::new(program, known).function(f).lam;
    let inputs = float_params(program, &lam);
    let carries = !choose::groups(&flow_of(program, &lam, &inputs, &[]).0, false, &[]).is_empty();
    program.vars.truncate(start);
    carries
}
