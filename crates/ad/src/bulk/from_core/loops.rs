//! Loops, scans and reductions whose operator is no sum and no extremum, as `scanl` with a closed function.
//!
//! A body reads more than its state: the counter, elements, values from outside. What does not depend on the state is moved out of the loop (loop distribution): each largest such term becomes an array over the
//! iterations, `build1 n (\i. t)`, and the body takes its elements.
//!
//! Guarantees: the function of `scanl` is closed. The work is that of the loop, but for arrays that a body reads as a whole: they are copied for each iteration.
//!
//! Not supported: states of several types (of numbers); a state that changes its size, or is a large array of which single elements are read or written; an array from outside that is read where the state says.

use super::forms::{Translated, WRITTEN_OUT, integer};
use super::{FromCore, Part};
use crate::bulk::a_core::{Exp as Form, Fold, Term, Ty, Var as Variable, made};
use crate::bulk::sizes::Size;
use crate::bulk::terms::{substitute_all, with_parts};
use crate::bulk::to_core::Known;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Exp, Lam, Loop, LoopForm, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a loop starts from: its states, and the elements of arrays that each iteration reads.
struct Start<'a> {
    states: Vec<(Var, Term)>,
    counter: Option<Var>,
    elements: Vec<(Var, &'a Term)>,
}

/// How several states are one array: rows of it, if all have one type; else parts of it, one after the other.
struct Packing(Vec<Ty>);

/// The states of a loop, each as one array, after each iteration.
struct All {
    term: Term,
    packing: Packing,
    size: Size,
    /// What each iteration leaves besides.
    collected: Vec<Term>,
}

impl FromCore<'_> {
    // [bulk.folded]  index (scanl n (\a [x ..]. body) z ts) [n]
    pub(super) fn folded(&mut self, l: &Loop) -> Translated<Vec<Part>> {
        let LoopForm::For { i, n } = &l.form else {
            return self.refuse("a `while` loop");
        };
        let n = self.iterations(*n)?;
        let states = l.params.iter().map(|(v, z)| Ok((*v, self.array(*z)?))).collect::<Translated<_>>()?;
        let all = self.states(&n, Start { states, counter: Some(*i), elements: Vec::new() }, &l.body)?;
        let last = self.last(&all);
        Ok(last.into_iter().chain(all.collected.into_iter().map(Part::Array)).collect())
    }

    /// How often a loop runs; its bound may be an integer of any type.
    fn iterations(&mut self, n: Atom) -> Translated<Size> {
        match (self.program.atom_type(n).scalar(), n) {
            (Some(Scalar::I64), _) => self.width(n),
            (_, Atom::Const(n)) => Ok(Size::constant(n.as_i64().max(0))),
            (_, Atom::Var(v)) if self.is_at_hand(v) && self.branches == 0 => {
                Ok(Size::var(self.new_size(Known::Converted(v.into()))))
            }
            _ => self.refuse("a size that is computed in an inner body"),
        }
    }

    // [bulk.scan]  build1 n (\i. index (scanl n (\p [q]. op) z [a]) [i + 1])
    pub(super) fn scan(
        &mut self,
        n: &Size,
        lam: &Lam,
        (zs, arrays): (&[Atom], &[Term]),
    ) -> Translated<Vec<Part>> {
        let all = self.of_operator(n, lam, (zs, arrays))?;
        let states = self.let_("states", all.term);
        let each = |j: usize| {
            let i = self.names.index("i");
            let next = integer(Op::Add, &Term::var(&i), &Term::i64(1));
            let state = made(Form::Index(states.clone(), vec![next]));
            let state = self.component(&all.packing, &state, j);
            Part::Array(made(Form::Build1(n.clone(), i, state)))
        };
        Ok((0..all.packing.0.len()).map(each).collect())
    }

    /// The results of a reduction from the left.
    pub(super) fn reduced(
        &mut self,
        n: &Size,
        lam: &Lam,
        (zs, arrays): (&[Atom], &[Term]),
    ) -> Translated<Vec<Part>> {
        let all = self.of_operator(n, lam, (zs, arrays))?;
        Ok(self.last(&all))
    }

    /// The last state, by component.
    fn last(&mut self, all: &All) -> Vec<Part> {
        let last = made(Form::Index(all.term.clone(), vec![Term::size(&all.size)]));
        let last = if all.packing.0.len() > 1 { self.let_("last", last) } else { last };
        (0..all.packing.0.len()).map(|j| Part::Array(self.component(&all.packing, &last, j))).collect()
    }

    // [bulk.packed]  [t_1, .., t_n], or all elements of t_1, then of t_2 ..
    fn packed(&mut self, packing: &Packing, ts: &[Term]) -> Term {
        match ts {
            [t] => t.clone(),
            _ if packing.is_one_type() => made(Form::Stack(ts.to_vec())),
            _ => {
                let flat = |t: &Term| made(Form::Reshape(vec![Size::product(&t.ty().shape)], t.clone()));
                self.joined(&ts.iter().map(flat).collect::<Vec<_>>(), &[])
            }
        }
    }

    /// The component of a state.
    fn component(&mut self, packing: &Packing, state: &Term, j: usize) -> Term {
        let Packing(types) = packing;
        if types.len() == 1 {
            return state.clone();
        }
        if packing.is_one_type() {
            return made(Form::Index(state.clone(), vec![Term::i64(j as i64)]));
        }
        let count = |ty: &Ty| Size::product(&ty.shape);
        let begin = types[..j].iter().fold(Size::constant(0), |n, ty| n.plus(&count(ty)));
        if types[j].shape.is_empty() {
            return made(Form::Index(state.clone(), vec![Term::size(&begin)]));
        }
        let part = self.rows(count(&types[j]), state, |i| integer(Op::Add, &Term::size(&begin), i));
        made(Form::Reshape(types[j].shape.clone(), part))
    }

    fn of_operator(&mut self, n: &Size, lam: &Lam, (zs, arrays): (&[Atom], &[Term])) -> Translated<All> {
        let (lefts, rights) = lam.params.split_at(zs.len());
        let states = lefts.iter().zip(zs).map(|(p, z)| Ok((*p, self.array(*z)?)));
        let states = states.collect::<Translated<Vec<_>>>()?;
        let rows = |a: &Term| [std::slice::from_ref(n), &a.ty().shape[1..]].concat();
        let arrays: Vec<Term> = arrays.iter().map(|a| self.as_shape(a, &rows(a))).collect();
        let elements = rights.iter().copied().zip(&arrays).collect();
        self.states(n, Start { states, counter: None, elements }, &lam.body)
    }

    // [bulk.collected]  build1 n (\i. body [index all [i] / a])
    /// `scanl` with a body of core. Several states are one array.
    fn states(&mut self, n: &Size, start: Start<'_>, body: &Body) -> Translated<All> {
        let (vars, zs): (Vec<Var>, Vec<Term>) = start.states.into_iter().unzip();
        let packing = Packing(zs.iter().map(|z| z.ty().clone()).collect());
        let Some(first) = packing.0.first() else { return self.refuse("a loop without a state") };
        if packing.0.iter().any(|ty| ty.scalar != first.scalar) {
            return self.refuse("a loop with states of several types, whose iterations are not few");
        }
        let z = self.packed(&packing, &zs);
        let (a, i) = (self.names.fresh("a", z.ty().clone()), self.names.index("i"));
        self.scopes.push(Vec::new());
        self.enter((&vars, &packing, &a), (start.counter, &i), start.elements);
        let parts = self.body(body, &vec![true; body.result.len()])?;
        let inside = self.scopes.pop().unwrap_or_default();
        let is_small = Size::product(&z.ty().shape).as_constant().is_some_and(|n| n <= WRITTEN_OUT);
        if !is_small && reads_elements(body, &mut IdSet::from_iter(vars)) {
            return self.refuse("a loop that reads or writes single elements of its state");
        }
        let mut next = Vec::new();
        for part in parts {
            match part {
                Part::Array(t) => next.push(t),
                Part::Tuple(_) | Part::AtHand => return self.refuse("a product, as a whole"),
            }
        }
        let left = next.split_off(packing.0.len());
        if next.iter().zip(&packing.0).any(|(t, ty)| t.ty() != ty) {
            return self.refuse("a loop whose state changes its size");
        }
        let whole = self.packed(&packing, &next);
        let whole = with_needed(&inside, whole);
        let mut term = self.closed(n, (a.clone(), i.clone(), z), &whole)?;
        if !left.is_empty() {
            term = self.let_("states", term);
        }
        let here = BTreeMap::from([(a.id(), made(Form::Index(term.clone(), vec![Term::var(&i)])))]);
        let mut collected = Vec::new();
        for t in left {
            let t = substitute_all(&mut self.names, &with_needed(&inside, t), &here);
            collected.push(self.each(n, &i, &t));
        }
        Ok(All { term, packing, size: n.clone(), collected })
    }

    /// Says what states, counter and elements are inside of a loop.
    fn enter(
        &mut self,
        (states, packing, a): (&[Var], &Packing, &Variable),
        (counter, i): (Option<Var>, &Variable),
        elements: Vec<(Var, &Term)>,
    ) {
        for (j, v) in states.iter().enumerate() {
            let state = self.component(packing, &Term::var(a), j);
            let state = if state.is_atom() { state } else { self.let_("a", state) };
            self.parts.insert(*v, Part::Array(state));
        }
        if let Some(counter) = counter {
            let scalar = self.program.vars[counter].ty.scalar().unwrap_or(Scalar::I64);
            let at = match scalar {
                Scalar::I64 => Term::var(i),
                _ => made(Form::Op(Prim::Convert(Scalar::I64, scalar), vec![Term::var(i)])),
            };
            self.parts.insert(counter, Part::Array(at));
        }
        for (q, array) in elements {
            let at = made(Form::Index(array.clone(), vec![Term::var(i)]));
            self.parts.insert(q, Part::Array(at));
        }
    }

    /// `scanl` of a body, with arrays of all that it computes without its state.
    fn closed(&mut self, n: &Size, (a, i, z): (Variable, Variable, Term), body: &Term) -> Translated<Term> {
        let mut moved = Distributed { from: self, out: Vec::new() };
        let body = moved.rest(body, &BTreeSet::from([a.id()]), &BTreeSet::new())?;
        let out = moved.out;
        let arrays = out.iter().map(|(_, t)| self.each(n, &i, t)).collect();
        let params = std::iter::once(a).chain(out.into_iter().map(|(x, _)| x)).collect();
        Ok(made(Form::Scanl(Arc::new(Fold { size: n.clone(), params, body }), z, arrays)))
    }
}

impl Packing {
    fn is_one_type(&self) -> bool {
        self.0.windows(2).all(|two| two[0] == two[1])
    }
}

/// A term with those bindings that it needs.
fn with_needed(bindings: &[(Variable, Term)], t: Term) -> Term {
    let bind = |body: Term, (x, u): &(Variable, Term)| {
        if body.has_free(x) { made(Form::Let(x.clone(), u.clone(), body)) } else { body }
    };
    bindings.iter().rev().fold(t, bind)
}

/// Whether a body reads or writes elements of an array that it is given or makes, one by one: the derivative of each costs as much as the array.
fn reads_elements(body: &Body, own: &mut IdSet<Var>) -> bool {
    body.stms.iter().any(|stm| {
        let is_own = |a: &Atom| a.var().is_some_and(|v| own.contains(&v));
        let is_one = match &stm.exp {
            Exp::Update(..) | Exp::UpdateSlice(..) => true,
            Exp::Index(a, _) | Exp::Slice(a, _) => is_own(a),
            Exp::Soac(_) => false,
            exp => exp.bodies().into_iter().any(|scope| {
                own.extend(scope.binds.iter());
                reads_elements(scope.body, own)
            }),
        };
        own.extend(stm.pat.iter());
        is_one
    })
}

/// What is moved out of a loop.
struct Distributed<'a, 'p> {
    from: &'a mut FromCore<'p>,
    out: Vec<(Variable, Term)>,
}

impl Distributed<'_, '_> {
    /// What stays of a term: `state` are variables that depend on the state, `local` are bound around the term, or elements.
    fn rest(&mut self, t: &Term, state: &BTreeSet<u32>, local: &BTreeSet<u32>) -> Translated<Term> {
        let stays = |t: &Term| !t.free().is_disjoint(state) || !t.free().is_disjoint(local);
        if t.free().is_empty() {
            return Ok(t.clone());
        }
        if !stays(t) {
            let x = self.from.names.fresh("x", Ty::clone(t.ty()));
            self.out.push((x.clone(), t.clone()));
            return Ok(Term::var(&x));
        }
        let with = |set: &BTreeSet<u32>, xs: &[Variable]| -> BTreeSet<u32> {
            set.iter().copied().chain(xs.iter().map(Variable::id)).collect()
        };
        let reads = |f: &[Term]| f.iter().any(|t| !t.free().is_disjoint(state));
        match t.exp() {
            Form::Let(x, u, v) if !stays(u) => {
                self.out.push((x.clone(), u.clone()));
                self.rest(v, state, &with(local, std::slice::from_ref(x)))
            }
            Form::Let(x, u, v) => {
                let bound = std::slice::from_ref(x);
                let depends = !u.free().is_disjoint(state);
                let u = self.rest(u, state, local)?;
                let (state, local) = if depends {
                    (with(state, bound), local.clone())
                } else {
                    (state.clone(), with(local, bound))
                };
                Ok(made(Form::Let(x.clone(), u, self.rest(v, &state, &local)?)))
            }
            Form::Index(array, ix) if !stays(array) && reads(ix) => self.refuse(),
            Form::Gather(_, array, f) if !stays(array) && reads(&f.index) => self.refuse(),
            Form::Gather(_, _, f) | Form::Scatter(_, _, f) | Form::ArgScatter(_, _, _, f) => {
                let local = with(local, &f.params);
                self.parts(t, state, &local)
            }
            Form::Build1(_, i, _) => {
                let local = with(local, std::slice::from_ref(i));
                self.parts(t, state, &local)
            }
            // Its function is closed.
            Form::Scanl(f, z, ts) => {
                let z = self.rest(z, state, local)?;
                let ts = ts.iter().map(|t| self.rest(t, state, local)).collect::<Translated<_>>()?;
                Ok(made(Form::Scanl(f.clone(), z, ts)))
            }
            _ => self.parts(t, state, local),
        }
    }

    fn parts(&mut self, t: &Term, state: &BTreeSet<u32>, local: &BTreeSet<u32>) -> Translated<Term> {
        let mut refused = None;
        let new = with_parts(t, &mut |part| match self.rest(part, state, local) {
            Ok(part) => part,
            Err(e) => {
                refused.get_or_insert(e);
                part.clone()
            }
        });
        refused.map_or(Ok(new), Err)
    }

    fn refuse(&self) -> Translated<Term> {
        self.from.refuse("an array that a loop reads where its state says")
    }
}
