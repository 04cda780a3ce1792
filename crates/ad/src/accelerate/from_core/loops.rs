//! Loops of core, and reductions and scans by operators that read what changes between iterations, as `collectl`.
//!
//! A body is a scalar function of its state, with the iteration as one more axis of the nest. What it computes without its state is moved out (loop distribution): variables, and elements that are read in every iteration, become elements
//! of an array over the axes and the iterations. Arrays that are read where the state says, or in a branch, are read in the function.
//!
//! Rules, inside of a nest:
//! ```text
//! states     collectl (\(x, y). body) (the first states over the axes) (what the body reads, over the axes and the iterations)
//! for        the last states: slice (All, .., n) states;   what is left in each iteration: zipWith (\(x, y). it) states elements
//! arrays     where a state is an array or the body works on it:  iterate n (\(a, i). body) (the first states), and its last states: over the axes, all iterations of the nest at once
//! while      `counted`
//! folded     of a reduction the last states, where the first operand is the state and the second one an element
//! prefixes   of a scan the states after the first one
//! ```
//!
//! Not supported: loops of arrays in a branch of an inner body, and those that collect; `while` in inner bodies.

use super::forms::Result;
use super::nests::{Lets, Place, needed, places, variables};
use super::sizes::Size;
use super::{Axis, FromCore, Part, arr};
use crate::accelerate::iterate::at_outer;
use crate::accelerate::language::{
    AVar, Arr, ArrForm, ArrTy, Direction, EVar, Exp, ExpForm, Fun, Step, Ty, made,
};
use crate::accelerate::rows::shortened;
use pullback_base::index::IdSet;
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Exp as Core, Lam, Loop, LoopForm, Program, Var};
use pullback_prim::{Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// What a loop starts from.
struct Start {
    states: Vec<(Var, Part)>,
    counter: Option<Var>,
    /// The elements that each iteration takes.
    elements: Vec<(Var, Part)>,
}

/// The states of a loop over the axes, before each iteration and after the last one.
struct States {
    all: AVar,
    n: Size,
    /// The forms of the components of a state.
    forms: Vec<Part>,
    /// What each iteration leaves.
    left: Vec<Part>,
}

impl FromCore<'_> {
    // [accelerate.loop.for]
    pub(super) fn loop_of_scalars(&mut self, l: &Loop) -> Result<Vec<Part>> {
        let LoopForm::For { i, n } = &l.form else {
            return self.refuse("a `while` loop in an inner body, or one that collects");
        };
        let n = match n {
            Atom::Const(n) => Size::constant(n.as_i64().max(0)),
            Atom::Var(_) => self.width(*n)?,
        };
        let mut states = Vec::new();
        for (v, a) in &l.params {
            states.push((*v, self.part(*a)?));
        }
        let of_arrays = states.iter().any(|(_, part)| has_array(part)) || works_on_state(self.program, l);
        if of_arrays {
            return self.loop_of_arrays((l, *i), &n);
        }
        let start = Start { states, counter: Some(*i), elements: Vec::new() };
        let states = self.states(n, start, &l.body)?;
        let mut results = self.last(&states)?;
        results.extend(states.left);
        Ok(results)
    }

    // [accelerate.loop.arrays]
    fn loop_of_arrays(&mut self, (l, i): (&Loop, Var), n: &Size) -> Result<Vec<Part>> {
        if l.collect > 0 {
            return self.refuse("a loop of arrays that collects");
        }
        let first = l.params.iter().map(|(_, a)| self.whole_array(*a)).collect::<Result<Vec<AVar>>>()?;
        let state = ArrTy::Tuple(first.iter().map(|a| a.ty().clone()).collect());
        let state = self.names.fresh("state", state);
        let counter = self.names.fresh("i", ArrTy::Array(Ty::Scalar(Scalar::I64), 0));
        self.dims.insert(counter.clone(), Vec::new());
        self.constant.insert(counter.clone());
        let dims: Vec<Vec<Size>> = first.iter().map(|a| self.dims[a].clone()).collect();
        let body = self.apart(|this| {
            for (k, ((v, _), dims)) in l.params.iter().zip(&dims).enumerate() {
                let hint = this.program.vars[*v].hint.clone();
                let a = this.let_(hint.as_str(), Arr::var(&state).proj(k), dims.clone());
                let part = this.own_part(a);
                this.parts.insert(*v, part);
            }
            let number = made(Exp::index(&counter, Exp::tuple(Vec::new())));
            this.count(i, number);
            this.body(&l.body)?;
            l.body.result.iter().map(|a| this.whole_array(*a)).collect()
        });
        let (lets, next) = body?;
        if next.iter().zip(&dims).any(|(a, dims)| self.dims[a] != *dims) {
            return self.refuse("a loop whose state changes its size");
        }
        let body = made(Arr::lets(lets, Arr::tuple(next.iter().map(Arr::var).collect())));
        let count = self.size_exp(n);
        let step = Step { state, counter, body };
        let first = Arr::tuple(first.iter().map(Arr::var).collect());
        let all = self.let_("states", arr(ArrForm::Iterate(count.clone(), step, first)), Vec::new());
        let mut parts = Vec::new();
        for (k, dims) in dims.into_iter().enumerate() {
            let last = self.let_("last", at_outer(&Arr::var(&all).proj(k), &count), dims);
            parts.push(self.own_part(last));
        }
        Ok(parts)
    }

    // [accelerate.loop.folded]
    pub(super) fn folded(
        &mut self,
        n: Size,
        lam: &Lam,
        (zs, arrays): (&[Atom], &[Part]),
    ) -> Result<Vec<Part>> {
        let states = self.states_of_operator(n, lam, (zs, arrays))?;
        self.last(&states)
    }

    // [accelerate.loop.prefixes]
    pub(super) fn prefixes(
        &mut self,
        n: Size,
        lam: &Lam,
        (zs, arrays): (&[Atom], &[Part]),
    ) -> Result<Vec<Part>> {
        let States { all, n, .. } = self.states_of_operator(n, lam, (zs, arrays))?;
        let mut dims = self.dims[&all].clone();
        dims.pop();
        dims.push(n);
        let after = shortened(&mut self.names, &all, 1, true);
        let after = self.let_("scan", after, dims);
        Ok(self.components(after, arrays.len()).into_iter().map(|a| Part::Array(self.own(a))).collect())
    }

    fn states_of_operator(&mut self, n: Size, lam: &Lam, (zs, arrays): (&[Atom], &[Part])) -> Result<States> {
        let (lefts, rights) = lam.params.split_at(zs.len());
        let zs = self.each_part(zs)?;
        let states = lefts.iter().copied().zip(zs).collect();
        let elements = rights.iter().copied().zip(arrays.iter().cloned()).collect();
        self.states(n, Start { states, counter: None, elements }, &lam.body)
    }

    /// The last states, component by component.
    fn last(&mut self, states: &States) -> Result<Vec<Part>> {
        let mut dims = self.dims[&states.all].clone();
        dims.pop();
        let slc = dims.iter().map(|_| None).chain([Some(self.size_exp(&states.n))]).collect();
        let last = self.let_("last", arr(ArrForm::Slice(slc, Arr::var(&states.all))), dims);
        let each = self.components(last, states.forms.len());
        let here = Exp::tuple(self.counters(self.top()));
        let part = |(a, form): (AVar, &Part)| {
            let e = made(Exp::index(&a, here.clone()));
            match form {
                Part::Scalar(..) => Ok(Part::Scalar(e, self.top())),
                _ => self.unflat(form, e),
            }
        };
        each.into_iter().zip(&states.forms).map(part).collect()
    }

    // [accelerate.loop.states]
    fn states(&mut self, n: Size, start: Start, body: &Body) -> Result<States> {
        if start.states.is_empty() {
            return self.refuse("a loop without a state");
        }
        if start.states.iter().any(|(_, part)| has_array(part)) {
            return self.refuse("a loop whose state is an array, in an inner body");
        }
        let (first, forms) = self.inside(&[], |this, _| {
            let first = start.states.iter().map(|(_, part)| this.flat(part));
            let (es, forms): (Vec<Exp>, Vec<Part>) = first.collect::<Result<Vec<_>>>()?.into_iter().unzip();
            Ok((this.over_axes("first", &Exp::packed(es))?, forms))
        })?;
        let state = self.names.fresh("x", made(first.ty().array()).0.clone());
        let outer = self.dims[&first].clone();
        let (step, elements, left) = self.inside(std::slice::from_ref(&n), |this, i| {
            this.enter(&start, (&state, &forms), &i[0])?;
            let mut parts = this.body(body)?;
            let left = parts.split_off(forms.len());
            let flat = parts.iter().map(|part| this.flat(part)).collect::<Result<Vec<_>>>()?;
            let next = Exp::packed(flat.into_iter().map(|(e, _)| e).collect());
            if next.ty() != state.ty() {
                return this.refuse("a loop whose state changes its form");
            }
            this.distributed(&state, next, left)
        })?;
        let all = ArrForm::Collect(Direction::Left, step, Arr::var(&first), Arr::var(&elements));
        let longer = |n: &Size| [outer.clone(), vec![n.clone()]].concat();
        let all = self.let_("states", arr(all), longer(&n.plus(&Size::constant(1))));
        let left = self.left(left, (&all, &elements), longer(&n));
        Ok(States { all, n, forms, left })
    }

    /// Says what states, counter and elements are inside of a loop.
    fn enter(&mut self, start: &Start, (state, forms): (&EVar, &[Part]), i: &Exp) -> Result<()> {
        let all = Exp::var(state);
        for (k, ((v, _), form)) in start.states.iter().zip(forms).enumerate() {
            let e = if forms.len() == 1 { all.clone() } else { all.proj(k) };
            let part = self.unflat(form, e)?;
            self.parts.insert(*v, part);
        }
        if let Some(counter) = start.counter {
            self.count(counter, i.clone());
        }
        for (v, array) in &start.elements {
            let part = self.at(array, vec![i.clone()])?;
            self.parts.insert(*v, part);
        }
        Ok(())
    }

    /// Says what the counter of a loop is, which may have another type.
    fn count(&mut self, counter: Var, i: Exp) {
        let scalar = self.program.vars[counter].ty.scalar().unwrap_or(Scalar::I64);
        let at = match scalar {
            Scalar::I64 => i,
            _ => made(Exp::prim(Prim::Convert(Scalar::I64, scalar), vec![i])),
        };
        let at = self.bind("i", at);
        self.parts.insert(counter, Part::Scalar(at, self.top()));
    }

    /// What the iterations leave: arrays over the axes and the iterations.
    fn left(&mut self, left: Vec<Kept>, (all, elements): (&AVar, &AVar), dims: Vec<Size>) -> Vec<Part> {
        let part = |kept: Kept| {
            let a = match kept {
                Kept::Array(a) => a,
                Kept::Scalar(f) => {
                    let u = ArrForm::ZipWith(f, Arr::var(all), Arr::var(elements));
                    self.let_("left", arr(u), dims.clone())
                }
            };
            Part::Array(self.own(a))
        };
        left.into_iter().map(part).collect()
    }

    /// The step of a loop as a function of state and element, the elements, and what is left of each iteration. What does not depend on the state stays in the nest.
    fn distributed(&mut self, state: &EVar, next: Exp, left: Vec<Part>) -> Result<(Fun, AVar, Vec<Kept>)> {
        let top = self.top();
        let mut own: BTreeSet<EVar> = BTreeSet::from([state.clone()]);
        let (mut stays, mut moves) = (Lets::new(), Lets::new());
        for (x, u) in self.nests[top].frames.pop().unwrap_or_default() {
            let mut read = BTreeSet::new();
            variables(&u, &mut read);
            if read.is_disjoint(&own) {
                moves.push((x, u));
            } else {
                own.insert(x.clone());
                stays.push((x, u));
            }
        }
        self.nests[top].frames.push(moves);
        let mut kept = Vec::new();
        let mut scalars = Vec::new();
        for part in left {
            kept.push(match part {
                Part::Scalar(e, level) => {
                    scalars.push(self.carried(&e, level)?);
                    None
                }
                Part::Array(view) => Some(self.owned(&view)?),
                Part::Iota | Part::Tuple(_) => return self.refuse("a product, as a whole"),
            });
        }
        let axes = self.nests[top].axes.clone();
        let mut elements = Elements { from: self, axes, own, found: Vec::new(), vars: BTreeMap::new() };
        let stays: Lets = stays.iter().map(|(x, u)| (x.clone(), elements.taken(u, true))).collect();
        let next = elements.taken(&next, true);
        let scalars: Vec<Exp> = scalars.iter().map(|e| elements.taken(e, true)).collect();
        let found = elements.found;
        let count = found.len();
        let (vars, es): (Vec<EVar>, Vec<Exp>) = found.into_iter().unzip();
        let element = Exp::packed(es);
        let pair = Ty::Tuple(vec![state.ty().clone(), element.ty().clone()]);
        let elements = self.over_axes("elements", &element)?;
        let mut function = |e: Exp| {
            let param = self.names.fresh("q", pair.clone());
            let (x, y) = (Exp::var(&param).proj(0), Exp::var(&param).proj(1));
            let part = |k: usize| if count == 1 { y.clone() } else { y.proj(k) };
            let mut all = vec![(state.clone(), x)];
            all.extend(vars.iter().enumerate().map(|(k, z)| (z.clone(), part(k))));
            all.extend(stays.iter().cloned());
            let bindings = needed(all.iter(), &e);
            Fun { param, body: made(Exp::lets(bindings, e)) }
        };
        let step = function(next);
        let mut scalars = scalars.into_iter().map(function);
        let kept = kept.into_iter().filter_map(|a| match a {
            Some(a) => Some(Kept::Array(a)),
            None => scalars.next().map(Kept::Scalar),
        });
        let kept = kept.collect();
        Ok((step, elements, kept))
    }
}

/// What an iteration leaves: a function of state and element, or an array that is there without the loop.
enum Kept {
    Scalar(Fun),
    Array(AVar),
}

fn has_array(part: &Part) -> bool {
    match part {
        Part::Scalar(..) => false,
        Part::Array(_) | Part::Iota => true,
        Part::Tuple(parts) => parts.iter().any(has_array),
    }
}

/// Whether an array operation of the body reads the state.
fn works_on_state(program: &Program, l: &Loop) -> bool {
    fn walk(program: &Program, body: &Body, own: &mut IdSet<Var>) -> bool {
        body.stms.iter().any(|stm| {
            let reads = free_vars_exp(&stm.exp).iter().any(|v| own.contains(v));
            let is_array = stm.pat.iter().any(|v| program.vars[*v].ty.rank() > 0);
            let works = reads && (is_array || matches!(stm.exp, Core::Soac(_)));
            let inside = stm.exp.bodies().into_iter().any(|scope| reads && walk(program, scope.body, own));
            if reads {
                own.extend(stm.pat.iter());
            }
            works || inside
        })
    }
    walk(program, &l.body, &mut l.params.iter().map(|p| p.0).collect())
}

/// What a function takes as parts of its elements.
struct Elements<'a, 'p> {
    from: &'a mut FromCore<'p>,
    axes: Vec<Axis>,
    /// What depends on the state, or is bound in a branch.
    own: BTreeSet<EVar>,
    found: Vec<(EVar, Exp)>,
    vars: BTreeMap<(Option<AVar>, Vec<Place>), EVar>,
}

impl Elements<'_, '_> {
    /// The expression, where parts of the element stand for what does not depend on the state; whether it is evaluated in every iteration.
    // [accelerate.loop.element]
    fn taken(&mut self, e: &Exp, always: bool) -> Exp {
        let form = match e.form() {
            ExpForm::Const(_) | ExpForm::Shape(_) => return e.clone(),
            ExpForm::Var(x) if self.own.contains(x) => return e.clone(),
            ExpForm::Var(x) => return self.part((None, vec![Place::Var(x.clone())]), e),
            ExpForm::Let(bindings, body) => {
                let mut all = Lets::new();
                for (x, u) in bindings {
                    let u = self.taken(u, always);
                    self.own.insert(x.clone());
                    all.push((x.clone(), u));
                }
                ExpForm::Let(all, self.taken(body, always))
            }
            ExpForm::Tuple(es) => ExpForm::Tuple(es.iter().map(|e| self.taken(e, always)).collect()),
            ExpForm::Proj(e, k) => ExpForm::Proj(self.taken(e, always), *k),
            ExpForm::Prim(op, es) => ExpForm::Prim(*op, es.iter().map(|e| self.taken(e, always)).collect()),
            ExpForm::Index(a, at) => match self.read(a, at, always) {
                Some(read) => return self.part(read, e),
                None => ExpForm::Index(a.clone(), self.taken(at, always)),
            },
            ExpForm::Cond(c, t, e) => {
                ExpForm::Cond(self.taken(c, always), self.taken(t, false), self.taken(e, false))
            }
        };
        made(Exp::new(form))
    }

    /// A read that may be evaluated outside of the loop, of an array that varies.
    fn read(&self, a: &AVar, at: &Exp, always: bool) -> Option<(Option<AVar>, Vec<Place>)> {
        let mut asked = BTreeSet::new();
        variables(at, &mut asked);
        let read = (a.clone(), places(at)?);
        let may_move = asked.is_disjoint(&self.own) && self.from.varies(a);
        let is_inside = always || self.from.aligned(&read, &self.axes).is_some();
        (may_move && is_inside).then_some((Some(read.0), read.1))
    }

    fn part(&mut self, key: (Option<AVar>, Vec<Place>), e: &Exp) -> Exp {
        if let Some(z) = self.vars.get(&key) {
            return Exp::var(z);
        }
        let z = self.from.names.fresh("y", e.ty().clone());
        self.vars.insert(key, z.clone());
        self.found.push((z.clone(), e.clone()));
        Exp::var(&z)
    }
}
