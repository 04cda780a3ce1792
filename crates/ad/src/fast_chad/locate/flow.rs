//! Where arrays come from: what every array variable is, and what flows where branches and loops meet.
//!
//! A *merge* is a result of a branch or a component of a loop's state: what it is depends on the way that the program took. All
//! other arrays are made by their statement, overwritten there, or other names for (parts of) arrays. Only arrays that depend on
//! what is differentiated matter. Nothing flows into or out of the functions of array operations: elements are copied.

use super::super::reverse::alias;
use super::results::Parts;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Loop, Program, Soac, Stm, Type, Var, View};
use std::collections::{BTreeMap, BTreeSet};

/// A merge: the first variable of its statement, and which result or component.
pub(super) type Merge = (Var, usize);
/// A body: the first variable of the statement around it, and which of its bodies; `None`: that of the lambda.
pub(super) type Place = Option<(Var, usize)>;

/// An argument that a function may overwrite, at a call that may not give it away.
#[derive(Clone, Debug)]
pub(crate) struct Lend {
    pub(super) of: Atom,
    /// The array of which it is a part, if that is given away: one for each type.
    pub(super) given: Vec<Var>,
    /// Whether one is, and which part of it the argument is.
    pub(super) own: Var,
    /// The function, and which of its parameters.
    pub(super) to: (FunId, usize),
    /// The parts that may be given away.
    pub(super) parts: Parts,
}

/// For each of them the argument if it is kept.
pub(crate) type Lends = IdMap<Var, Lend>;

/// What a variable is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Def {
    /// Bound by a lambda, the payload of a sum, or outside.
    Given,
    Merge(Merge),
    /// An array with a part of it overwritten: in place if nobody else has it.
    Written(Atom),
    Made,
}

/// What surrounds a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The lambda itself.
    Whole,
    /// An arm of a branch, or a body with a mark.
    Arm,
    /// The body of a loop.
    Loop,
    /// The condition of a loop.
    Condition,
    /// The function of an operation.
    Function,
}

#[derive(Debug)]
struct Around {
    parent: Place,
    kind: Kind,
    depth: usize,
}

/// How something flows into a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From an arm of a branch, or as the next state of a loop.
    Inside,
    /// As the first state of a loop.
    First,
}

/// In which way one array may be another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct As {
    pub(super) part: bool,
    pub(super) written: bool,
}

/// The facts.
pub(super) struct Flow<'a> {
    /// The arrays that matter, with their types.
    arrays: IdMap<Var, Type>,
    defs: IdMap<Var, Def>,
    /// Other names: of what, and which part.
    pub(super) names: IdMap<Var, (Atom, Option<View>)>,
    pub(super) stms: IdMap<Var, &'a Stm>,
    /// In which body a variable is bound.
    home: IdMap<Var, Place>,
    around: BTreeMap<Place, Around>,
    /// The bodies.
    pub(super) bodies: BTreeMap<Place, &'a Body>,
    pub(super) merges: Vec<Merge>,
    /// Arrays that lie nowhere as far as is known.
    pub(super) unknown: IdSet<Var>,
    /// Parameters that the caller gives away: their cotangents are returned as whole arrays.
    pub(super) given_away: IdSet<Var>,
    /// Parameters that the caller keeps: they are only read. A copy is overwritten.
    pub(super) kept: IdSet<Var>,
    /// Arguments that are given away or kept.
    pub(super) lends: Lends,
}

impl<'a> Flow<'a> {
    pub(super) fn of(program: &Program, lam: &'a Lam, active: &IdSet<Var>) -> Flow<'a> {
        let types = active.iter().map(|&v| (v, program.vars[v].ty.clone()));
        let mut flow = Flow {
            arrays: types.filter(|(_, ty)| ty.rank() > 0).collect(),
            defs: IdMap::new(),
            names: IdMap::new(),
            stms: IdMap::new(),
            home: IdMap::new(),
            around: BTreeMap::new(),
            bodies: BTreeMap::new(),
            merges: Vec::new(),
            unknown: IdSet::new(),
            given_away: IdSet::new(),
            kept: IdSet::new(),
            lends: Lends::new(),
        };
        flow.around.insert(None, Around { parent: None, kind: Kind::Whole, depth: 0 });
        flow.bind(&lam.params, None);
        flow.body(&lam.body, None);
        flow
    }

    /// Arrays that do not matter yet, but come to where others do.
    pub(super) fn others(&self) -> Vec<Var> {
        let sources = self.merges.iter().flat_map(|m| self.sources(*m)).map(|(a, _)| a);
        let bases = self.names.values().map(|(a, _)| *a);
        let mut out: Vec<Var> = sources.chain(bases).filter_map(|a| a.var()).collect();
        out.retain(|v| !self.is_array(*v));
        out
    }

    /// Whether a variable is an array with a cotangent.
    pub(super) fn is_array(&self, v: Var) -> bool {
        self.arrays.contains_key(&v)
    }
    pub(super) fn array(&self, a: Atom) -> Option<Var> {
        a.var().filter(|&v| self.is_array(v))
    }
    /// The type of an array that matters.
    pub(super) fn ty(&self, v: Var) -> &Type {
        &self.arrays[&v]
    }

    fn bind(&mut self, vs: &[Var], place: Place) {
        for &v in vs {
            self.home.insert(v, place);
        }
    }

    fn body(&mut self, body: &'a Body, place: Place) {
        self.bodies.insert(place, body);
        for stm in &body.stms {
            self.bind(&stm.pat, place);
            self.stms.insert(stm.pat[0], stm);
            self.stm(stm, place);
        }
    }

    fn inner(&mut self, body: &'a Body, at: (Var, usize), kind: Kind, parent: Place) {
        let depth = self.around[&parent].depth + 1;
        self.around.insert(Some(at), Around { parent, kind, depth });
        self.body(body, Some(at));
    }

    fn stm(&mut self, stm: &'a Stm, place: Place) {
        let first = stm.pat[0];
        match &stm.exp {
            Exp::Loop(l) => self.loop_(stm, l, place),
            Exp::If(..) | Exp::Match(..) | Exp::Marked(..) => {
                for (k, &v) in stm.pat.iter().enumerate() {
                    if self.is_array(v) {
                        self.merges.push((first, k));
                        self.defs.insert(v, Def::Merge((first, k)));
                    }
                }
                for (k, scope) in stm.exp.bodies().into_iter().enumerate() {
                    let params: Vec<Var> = scope.binds.iter().collect();
                    self.bind(&params, Some((first, k)));
                    self.inner(scope.body, (first, k), Kind::Arm, place);
                }
            }
            exp => {
                for (k, &v) in stm.pat.iter().enumerate() {
                    let def = written(exp, k).map_or(Def::Made, Def::Written);
                    self.defs.insert(v, def);
                }
                if let Some((a, view)) = part(exp)
                    && self.is_array(first)
                {
                    self.names.insert(first, (a, view));
                }
                for (k, scope) in exp.bodies().into_iter().enumerate() {
                    let params: Vec<Var> = scope.binds.iter().collect();
                    self.bind(&params, Some((first, k)));
                    self.inner(scope.body, (first, k), Kind::Function, place);
                }
            }
        }
    }

    fn loop_(&mut self, stm: &'a Stm, l: &'a Loop, place: Place) {
        let first = stm.pat[0];
        for (j, ((x, _), &y)) in l.params.iter().zip(&stm.pat).enumerate() {
            if self.is_array(*x) || self.is_array(y) {
                self.merges.push((first, j));
                self.defs.insert(*x, Def::Merge((first, j)));
                self.defs.insert(y, Def::Merge((first, j)));
            }
        }
        for &v in &stm.pat[l.params.len()..] {
            self.defs.insert(v, Def::Made);
        }
        let scopes = stm.exp.bodies();
        let last = scopes.len() - 1;
        for (k, scope) in scopes.into_iter().enumerate() {
            let kind = if k == last { Kind::Loop } else { Kind::Condition };
            let params: Vec<Var> = scope.binds.iter().collect();
            self.bind(&params, Some((first, last)));
            self.inner(scope.body, (first, k), kind, place);
        }
    }

    /// The body of a loop.
    pub(super) fn body_of(&self, stm: Var) -> Place {
        Some((stm, self.stms[&stm].exp.bodies().len() - 1))
    }
    pub(super) fn loop_of(&self, stm: Var) -> Option<&'a Loop> {
        match &self.stms.get(&stm)?.exp {
            Exp::Loop(l) => Some(l),
            _ => None,
        }
    }
    pub(super) fn def(&self, v: Var) -> Def {
        self.defs.get(&v).copied().unwrap_or(Def::Given)
    }
    pub(super) fn home(&self, v: Var) -> Place {
        self.home.get(&v).copied().unwrap_or(None)
    }
    pub(super) fn parent(&self, place: Place) -> Place {
        self.around[&place].parent
    }
    pub(super) fn kind(&self, place: Place) -> Kind {
        self.around[&place].kind
    }
    /// Whether a body is `outer` or inside of it.
    pub(super) fn within(&self, mut place: Place, outer: Place) -> bool {
        while self.around[&place].depth > self.around[&outer].depth {
            place = self.around[&place].parent;
        }
        place == outer
    }
    /// The innermost body around both.
    pub(super) fn common(&self, a: Place, mut b: Place) -> Place {
        while !self.within(a, b) {
            b = self.parent(b);
        }
        b
    }
    /// Whether an array that is made in a body around a place can be carried there: no function of an operation is between.
    pub(super) fn can_carry(&self, outer: Place, mut place: Place) -> bool {
        while place != outer && self.kind(place) != Kind::Whole {
            if matches!(self.kind(place), Kind::Function | Kind::Condition) {
                return false;
            }
            place = self.parent(place);
        }
        true
    }
    /// Whether what flows into a merge may be an array that the caller gives away.
    pub(super) fn may_be_given(&self, m: Merge) -> bool {
        let sources = self.sources(m).into_iter().flat_map(|(a, _)| self.comes_from(a));
        sources.into_iter().any(|v| self.given_away.contains(&v))
    }
    /// The array of which one is a name, the one that this overwrites, and so on.
    pub(super) fn comes_from(&self, a: Atom) -> impl Iterator<Item = Var> + '_ {
        let base = |a: Atom| self.base(a).map(|b| b.0);
        std::iter::successors(base(a), move |v| match self.def(*v) {
            Def::Written(a) => base(a),
            Def::Given | Def::Merge(_) | Def::Made => None,
        })
    }
    /// The same whichever way the program takes: of the results of branches and loops, too, what they may be.
    pub(super) fn may_come_from(&self, a: Atom) -> BTreeSet<Var> {
        let (mut out, mut work) = (BTreeSet::new(), vec![a]);
        while let Some(a) = work.pop() {
            for v in self.comes_from(a) {
                if out.insert(v)
                    && let Def::Merge(m) = self.def(v)
                {
                    work.extend(self.sources(m).into_iter().map(|(a, _)| a));
                }
            }
        }
        out
    }
    /// Whether two arrays may be, or be parts of, one that was made or given away.
    pub(super) fn may_be_same(&self, a: Atom, b: Atom) -> bool {
        let of_a = self.origins(a);
        self.origins(b).iter().any(|v| of_a.contains(v) && !self.kept.contains(v))
    }
    /// The arrays that an array may be, or be a part of, whichever way the program takes.
    fn origins(&self, a: Atom) -> BTreeSet<Var> {
        let (mut out, mut seen, mut work) = (BTreeSet::new(), BTreeSet::new(), vec![a]);
        while let Some(a) = work.pop() {
            let Some((v, _)) = self.base(a) else { continue };
            match self.def(v) {
                Def::Merge(m) if seen.insert(v) => work.extend(self.sources(m).into_iter().map(|(a, _)| a)),
                Def::Merge(_) => {}
                Def::Given | Def::Made | Def::Written(_) => drop(out.insert(v)),
            }
        }
        out
    }
    /// The innermost body around a place that may run many times; `None` if there is none.
    pub(super) fn repeated(&self, mut place: Place) -> Option<Place> {
        loop {
            match self.kind(place) {
                Kind::Loop | Kind::Condition | Kind::Function => return Some(place),
                Kind::Whole => return None,
                Kind::Arm => place = self.parent(place),
            }
        }
    }
    /// The variables of a merge: of a loop its state before an iteration and its result.
    pub(super) fn variables(&self, (stm, k): Merge) -> Vec<Var> {
        let state = self.loop_of(stm).map(|l| l.params[k].0);
        state.into_iter().chain([self.stms[&stm].pat[k]]).collect()
    }
    /// Whether a variable is the state of a loop in its body.
    pub(super) fn is_state(&self, v: Var) -> bool {
        matches!(self.def(v), Def::Merge((stm, k)) if self.loop_of(stm).is_some_and(|l| l.params[k].0 == v))
    }
    /// What flows into a merge.
    pub(super) fn sources(&self, (stm, k): Merge) -> Vec<(Atom, Way)> {
        let exp = &self.stms[&stm].exp;
        match exp {
            Exp::Loop(l) => vec![(l.params[k].1, Way::First), (l.body.result[k], Way::Inside)],
            exp => exp.bodies().into_iter().map(|s| (s.body.result[k], Way::Inside)).collect(),
        }
    }
    /// What is overwritten, with what it is then.
    pub(super) fn overwritings(&self) -> impl Iterator<Item = (Var, Atom)> + '_ {
        self.defs.iter().filter_map(|(v, def)| match def {
            Def::Written(of) => Some((*v, *of)),
            Def::Given | Def::Merge(_) | Def::Made => None,
        })
    }
    /// Tells what callers give away and keep, and what this lambda lends.
    pub(super) fn hand_over(&mut self, params: &[Var], (given, kept): (&[bool], &[bool]), lends: Lends) {
        let of = |mask: &[bool]| {
            params.iter().zip(mask).filter(|(_, is)| **is).map(|(v, _)| *v).collect::<Vec<_>>()
        };
        self.given_away.extend(of(given));
        self.kept.extend(of(kept));
        self.lends = lends;
    }
    /// The merges that must have locations, since it is asked for somewhere whether their arrays may be given away, or copied.
    pub(super) fn lent_merges(&self) -> Vec<Merge> {
        let given = self.lends.values().flat_map(|lend| self.comes_from(lend.of));
        let mut out: Vec<Merge> = given.flat_map(|v| self.merges_of(&[v.into()])).collect();
        let is_kept = |a: Atom| self.terms(a, None).keys().any(|v| self.kept.contains(v));
        let from_kept = |m: &&Merge| self.sources(**m).into_iter().any(|(a, _)| is_kept(a));
        if !self.kept.is_empty() {
            out.extend(self.merges.iter().filter(from_kept));
        }
        out
    }
    /// The merges that these arrays are names of.
    pub(super) fn merges_of(&self, arrays: &[Atom]) -> Vec<Merge> {
        let merge = |a: &Atom| match self.def(self.base(*a)?.0) {
            Def::Merge(m) => Some(m),
            Def::Given | Def::Made | Def::Written(_) => None,
        };
        arrays.iter().filter_map(merge).collect()
    }
    /// An array, what it is another name or a part of, and so on.
    pub(super) fn way_of(&self, v: Var) -> Vec<Var> {
        std::iter::successors(Some(v), |v| self.names.get(v).and_then(|(of, _)| of.var())).collect()
    }
    /// The variable of which an array is another name, or a part.
    pub(super) fn base(&self, a: Atom) -> Option<(Var, As)> {
        let mut v = self.array(a)?;
        let mut found = As::default();
        while let Some((b, view)) = self.names.get(&v) {
            found.part |= view.is_some();
            v = self.array(*b)?;
        }
        Some((v, found))
    }

    /// The arrays bound outside of a body, or by it, that an array inside may be, be a part of, or come from by overwriting.
    pub(super) fn terms(&self, a: Atom, inside: Place) -> BTreeMap<Var, BTreeSet<As>> {
        let mut out = BTreeMap::new();
        let mut seen = BTreeSet::new();
        self.add_terms(a, As::default(), inside, &mut seen, &mut out);
        out
    }
    fn add_terms(
        &self,
        a: Atom,
        before: As,
        inside: Place,
        seen: &mut BTreeSet<(Var, As)>,
        out: &mut BTreeMap<Var, BTreeSet<As>>,
    ) {
        let Some((v, here)) = self.base(a) else { return };
        let way = As { part: before.part || here.part, written: before.written };
        if !seen.insert((v, way)) {
            return;
        }
        let def = self.def(v);
        let outside = !self.within(self.home(v), inside);
        let state = matches!(def, Def::Merge((stm, _)) if self.body_or_none(stm) == Some(inside) && self.home(v) == inside);
        if outside || state {
            out.entry(v).or_default().insert(way);
            return;
        }
        match def {
            Def::Given => {
                out.entry(v).or_default().insert(way);
            }
            Def::Made => {}
            Def::Written(a) => self.add_terms(a, As { written: true, ..way }, inside, seen, out),
            Def::Merge(m) => {
                for (a, _) in self.sources(m) {
                    self.add_terms(a, way, inside, seen, out);
                }
            }
        }
    }
    /// The arrays bound outside of a body, or by it, that an array inside may be, or be a part of, without having been overwritten.
    pub(super) fn may_be(&self, a: Atom, inside: Place) -> Vec<Var> {
        self.may_be_but_by(&[], a, inside)
    }
    /// The same, but not because some of these arrays may be it.
    pub(super) fn may_be_but_by(&self, not: &[Var], a: Atom, inside: Place) -> Vec<Var> {
        let mut out = BTreeMap::new();
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let ways = all.map(|(part, written)| As { part, written });
        let mut seen = not.iter().flat_map(|v| ways.map(|way| (*v, way))).collect();
        self.add_terms(a, As::default(), inside, &mut seen, &mut out);
        let itself = |ways: &BTreeSet<As>| ways.iter().any(|way| !way.written);
        out.into_iter().filter(|(_, ways)| itself(ways)).map(|(v, _)| v).collect()
    }
    fn body_or_none(&self, stm: Var) -> Option<Place> {
        self.loop_of(stm).map(|_| self.body_of(stm))
    }
}

/// What a statement is another name for: the whole, or a view that costs nothing.
fn part(exp: &Exp) -> Option<(Atom, Option<View>)> {
    alias(exp).filter(|(_, view)| !matches!(view, Some(View::Reverse | View::Rotate(_))))
}

/// The array that result `k` overwrites.
pub(super) fn written(exp: &Exp, k: usize) -> Option<Atom> {
    match exp {
        Exp::Update(a, ..) | Exp::UpdateSlice(a, ..) => Some(*a),
        Exp::Soac(Soac::Scatter { dst, .. }) => Some(*dst),
        Exp::Soac(Soac::Hist { dst, .. }) => dst.get(k).copied(),
        Exp::WithAcc(inits, _) => inits.get(k).copied(),
        _ => None,
    }
}
