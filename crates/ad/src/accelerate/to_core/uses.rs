//! How often bindings are used, so that the lowering knows what goes to memory.
//!
//! Rules:
//! ```text
//! term       an array variable as a term counts once; a component of it counts for this component
//! leaves     map (\x. some leaves of x) a, and (a ! i).k, count for these leaves of the elements of a
//! element    a ! i, where i is the index of a `generate`, counts once: each element is read at most once
//! many       any other a ! e in a function counts as many;  one outside of functions counts once
//! shape      shape a counts as no use, but keeps the sizes of the binding; what these need, counts
//! loops      what the body of a loop uses and does not bind counts as many
//! branches   of a conditional the larger count: one of them is evaluated
//! empty      of an array whose elements have no scalars, only the sizes are used
//! ```
//!
//! Guarantee: bindings that nothing uses do not count what they use.

use super::expressions::component as leaves_of_component;
use crate::accelerate::language::{AVar, Arr, ArrForm, EVar, Exp, ExpForm, Fun, arrs, exps};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Of a component of a variable: uses, two for many.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    counts: BTreeMap<(u32, Part), u32>,
    known: BTreeSet<u32>,
}

/// What of a variable is used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Part {
    /// A component; of no path all of it.
    Component(Vec<usize>),
    /// A leaf of the elements of an array.
    Leaf(usize),
}

/// What is wanted of a term.
#[derive(Clone, Copy)]
enum Wanted {
    /// Its elements.
    Elements,
    /// Its sizes.
    Sizes,
}

/// More than one.
pub(super) const MANY: u32 = 2;

/// Where an expression stands.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// It is evaluated once.
    Once,
    /// Once for each value of this index.
    At(&'a EVar),
    /// Any number of times.
    Often,
}

impl Place<'_> {
    /// How often an element is read at such an index.
    fn reads(self, ix: &Exp) -> u32 {
        match self {
            Place::Once => 1,
            Place::At(i) if moves_once(i, ix) => 1,
            Place::At(_) | Place::Often => MANY,
        }
    }
}

impl Uses {
    /// Of all variables that the term uses.
    pub(super) fn of(u: &Arr) -> Uses {
        let mut uses = Uses::default();
        uses.arr(u);
        uses
    }
    /// Whether anything reads elements of the variable.
    pub(super) fn is_read(&self, a: &AVar) -> bool {
        self.count(a, &[]) > 0
    }
    /// Whether anything uses the variable.
    pub(super) fn is_used(&self, a: &AVar) -> bool {
        self.known.contains(&a.id())
    }
    /// How often the elements of a component are read: itself, what it is in, or a part of it.
    pub(super) fn count(&self, a: &AVar, path: &[usize]) -> u32 {
        let is_of = |part: &Part| match part {
            Part::Component(other) => other.starts_with(path) || path.starts_with(other),
            Part::Leaf(_) => true,
        };
        self.parts(a).filter(|(part, _)| is_of(part)).map(|(_, n)| n).sum()
    }
    /// How often each leaf of the elements of a component is read.
    pub(super) fn leaves(&self, a: &AVar, path: &[usize], count: usize) -> Vec<u32> {
        let all = self.count(a, path);
        let of = |k: usize| {
            let others = self.parts(a).filter(|(part, _)| matches!(part, Part::Leaf(j) if *j != k));
            all - others.map(|(_, n)| n).sum::<u32>()
        };
        (0..count).map(of).collect()
    }
    fn parts(&self, a: &AVar) -> impl Iterator<Item = (&Part, u32)> {
        let first = |id: u32| (id, Part::Component(Vec::new()));
        self.counts.range(first(a.id())..first(a.id() + 1)).map(|((_, part), n)| (part, *n))
    }
    fn add(&mut self, a: &AVar, path: Vec<usize>, n: u32) {
        self.add_part(a, Part::Component(path), n);
    }
    fn add_part(&mut self, a: &AVar, part: Part, n: u32) {
        self.known.insert(a.id());
        *self.counts.entry((a.id(), part)).or_default() += n;
    }
    fn add_leaves(&mut self, a: &AVar, leaves: Range<usize>, n: u32) {
        // Who chooses no leaf makes elements all the same.
        if leaves.is_empty() {
            self.add(a, Vec::new(), n);
        }
        leaves.for_each(|k| self.add_part(a, Part::Leaf(k), n));
    }
    fn arr(&mut self, u: &Arr) {
        if u.ty().has_no_scalars() {
            return self.sizes(u);
        }
        match u.form() {
            ArrForm::Var(a) => self.add(a, Vec::new(), 1),
            ArrForm::Let(bindings, body) => {
                self.arr(body);
                self.bindings(bindings);
            }
            ArrForm::Proj(v, _) => match component(u) {
                Some((a, path)) => self.add(a, path, 1),
                None => self.arr(v),
            },
            ArrForm::Cond(e, u, v) => {
                self.exp(e, Place::Once);
                self.alternatives(u, v, Wanted::Elements);
            }
            ArrForm::Generate(_, f) => {
                self.simple(u);
                self.exp(&f.body, Place::At(&f.param));
            }
            ArrForm::Map(f, v) => match (v.form(), leaves_of_param(&f.body, &f.param)) {
                (ArrForm::Var(a), Some(leaves)) => self.add_leaves(a, leaves, 1),
                _ => {
                    self.simple(u);
                    self.fun(f);
                }
            },
            ArrForm::ZipWith(f, ..)
            | ArrForm::Foldl(f, ..)
            | ArrForm::Fold1(f, _)
            | ArrForm::Scanl(f, ..)
            | ArrForm::Scanr(f, ..)
            | ArrForm::Scanl1(f, _)
            | ArrForm::Collect(_, f, ..)
            | ArrForm::Backpermute(_, f, _) => {
                self.simple(u);
                self.fun(f);
            }
            ArrForm::Permute(c, _, f, _) => {
                self.simple(u);
                self.fun(c);
                self.exp(&f.body, Place::At(&f.param));
            }
            ArrForm::Iterate(e, step, first) => {
                self.exp(e, Place::Once);
                self.arr(first);
                self.often(&step.body);
            }
            ArrForm::Use(..)
            | ArrForm::Tuple(_)
            | ArrForm::Reshape(..)
            | ArrForm::Replicate(..)
            | ArrForm::Slice(..)
            | ArrForm::Sum(_) => self.simple(u),
        }
    }
    /// Of a term that is evaluated any number of times: what it binds itself counts as usual.
    fn often(&mut self, u: &Arr) {
        let (inner, mut own) = (Uses::of(u), BTreeSet::new());
        binds(u, &mut own);
        self.known.extend(inner.known);
        for ((id, part), n) in inner.counts {
            let n = if own.contains(&id) { n } else { MANY };
            *self.counts.entry((id, part)).or_default() += n;
        }
    }
    fn bindings(&mut self, bindings: &[(AVar, Arr)]) {
        for (a, v) in bindings.iter().rev() {
            if self.is_read(a) {
                self.arr(v);
            } else if self.is_used(a) {
                self.sizes(v);
            }
        }
    }
    fn alternatives(&mut self, u: &Arr, v: &Arr, wanted: Wanted) {
        let of = |u: &Arr| {
            let mut uses = Uses::default();
            match wanted {
                Wanted::Elements => uses.arr(u),
                Wanted::Sizes => uses.sizes(u),
            }
            uses
        };
        let (then, other) = (of(u), of(v));
        self.known.extend(then.known.iter().chain(&other.known));
        let mut most = then.counts;
        for (key, n) in other.counts {
            let most = most.entry(key).or_default();
            *most = n.max(*most);
        }
        for (key, n) in most {
            *self.counts.entry(key).or_default() += n;
        }
    }
    /// Of a term of which only the sizes are wanted.
    fn sizes(&mut self, u: &Arr) {
        match u.form() {
            ArrForm::Use(..) => {}
            ArrForm::Var(a) => {
                self.known.insert(a.id());
            }
            ArrForm::Let(bindings, body) => {
                self.sizes(body);
                self.bindings(bindings);
            }
            ArrForm::Tuple(us) => us.iter().for_each(|u| self.sizes(u)),
            ArrForm::Replicate(slc, u) => {
                slc.iter().flatten().for_each(|e| self.exp(e, Place::Once));
                self.sizes(u);
            }
            ArrForm::Reshape(e, _) | ArrForm::Generate(e, _) | ArrForm::Backpermute(e, ..) => {
                self.exp(e, Place::Once);
            }
            ArrForm::Iterate(e, _, first) => {
                self.exp(e, Place::Once);
                self.sizes(first);
            }
            ArrForm::Proj(u, _)
            | ArrForm::Slice(_, u)
            | ArrForm::Map(_, u)
            | ArrForm::Sum(u)
            | ArrForm::Foldl(_, _, u)
            | ArrForm::Fold1(_, u)
            | ArrForm::Scanl(_, _, u)
            | ArrForm::Scanr(_, _, u)
            | ArrForm::Scanl1(_, u)
            | ArrForm::Permute(_, u, ..) => self.sizes(u),
            ArrForm::ZipWith(_, u, v) | ArrForm::Collect(_, _, u, v) => {
                self.sizes(u);
                self.sizes(v);
            }
            ArrForm::Cond(e, u, v) => {
                self.exp(e, Place::Once);
                self.alternatives(u, v, Wanted::Sizes);
            }
        }
    }
    /// Expressions and arguments, but for functions.
    fn simple(&mut self, u: &Arr) {
        exps(u.form()).into_iter().for_each(|e| self.exp(e, Place::Once));
        arrs(u.form()).into_iter().for_each(|u| self.arr(u));
    }
    fn fun(&mut self, f: &Fun) {
        self.exp(&f.body, Place::Often);
    }
    fn exp(&mut self, e: &Exp, place: Place<'_>) {
        match e.form() {
            ExpForm::Const(_) | ExpForm::Var(_) => {}
            ExpForm::Let(bindings, e) => {
                bindings.iter().for_each(|(_, v)| self.exp(v, place));
                self.exp(e, place);
            }
            ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| self.exp(e, place)),
            ExpForm::Proj(u, _) => match leaves_of_index(e) {
                Some((a, ix, leaves)) => {
                    self.exp(ix, place);
                    self.add_leaves(a, leaves, place.reads(ix));
                }
                None => self.exp(u, place),
            },
            ExpForm::Index(a, ix) => {
                self.exp(ix, place);
                self.add(a, Vec::new(), place.reads(ix));
            }
            ExpForm::Shape(a) => {
                self.known.insert(a.id());
            }
            ExpForm::Cond(c, t, e) => [c, t, e].into_iter().for_each(|e| self.exp(e, place)),
        }
    }
}

/// The leaves of the parameter that an expression chooses, if it does nothing else.
fn leaves_of_param(e: &Exp, param: &EVar) -> Option<Range<usize>> {
    match e.form() {
        ExpForm::Var(x) => (x == param).then(|| 0..x.ty().scalars().len()),
        ExpForm::Proj(u, k) => Some(within(leaves_of_param(u, param)?, u, *k)),
        _ => None,
    }
}

/// The leaves of the element of an array that an expression chooses, if it does nothing else.
fn leaves_of_index(e: &Exp) -> Option<(&AVar, &Exp, Range<usize>)> {
    match e.form() {
        ExpForm::Index(a, ix) => Some((a, ix, 0..e.ty().scalars().len())),
        ExpForm::Proj(u, k) => {
            let (a, ix, leaves) = leaves_of_index(u)?;
            Some((a, ix, within(leaves, u, *k)))
        }
        _ => None,
    }
}

/// Of the leaves of a tuple those of a component.
fn within(leaves: Range<usize>, tuple: &Exp, k: usize) -> Range<usize> {
    let (from, to) = leaves_of_component(tuple.ty(), k);
    leaves.start + from..leaves.start + to
}

/// The arrays that a term binds.
fn binds(u: &Arr, out: &mut BTreeSet<u32>) {
    if let ArrForm::Let(bindings, _) = u.form() {
        out.extend(bindings.iter().map(|(a, _)| a.id()));
    }
    if let ArrForm::Iterate(_, step, _) = u.form() {
        out.extend([step.state.id(), step.counter.id()]);
    }
    arrs(u.form()).into_iter().for_each(|u| binds(u, out));
}

/// The component of a variable that a term is.
fn component(u: &Arr) -> Option<(&AVar, Vec<usize>)> {
    let (mut path, mut u) = (Vec::new(), u);
    loop {
        match u.form() {
            ArrForm::Proj(v, k) => {
                path.push(*k);
                u = v;
            }
            ArrForm::Var(a) => {
                path.reverse();
                return Some((a, path));
            }
            _ => return None,
        }
    }
}

/// Whether different indices `i` give different `ix`: each component of `i` is one of `ix`, but for an integer that is added.
pub(super) fn moves_once(i: &EVar, ix: &Exp) -> bool {
    let is_param = |e: &Exp| matches!(e.form(), ExpForm::Var(x) if x == i);
    if is_param(ix) {
        return true;
    }
    let (ExpForm::Tuple(es), Some(rank)) = (ix.form(), i.ty().rank()) else { return false };
    let mut found = BTreeSet::new();
    for e in es {
        let e = match e.form() {
            ExpForm::Prim(
                pullback_prim::Prim::Op(pullback_prim::Op::Add | pullback_prim::Op::Sub, _),
                es,
            ) if matches!(es[1].form(), ExpForm::Const(_)) => &es[0],
            _ => e,
        };
        if let ExpForm::Proj(x, k) = e.form()
            && is_param(x)
        {
            found.insert(*k);
        }
    }
    found.len() == rank
}
