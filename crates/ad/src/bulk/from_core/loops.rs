//! Loops, scans and reductions whose operator is no sum and no extremum, as `scanl` with a closed function.
//!
//! A body reads more than its state: the counter, elements, values from outside. What does not depend on the state is moved out of the loop (loop distribution): each largest such term becomes an array over the
//! iterations, `build1 n (\i. t)`, and the body takes its elements.
//!
//! Guarantees: the function of `scanl` is closed. The work is that of the loop, but for arrays that a body reads as a whole: they are copied for each iteration.
//!
//! Not supported: several states; a state that changes its size, or is a large array of which single elements are read or written; an array from outside that is read where the state says.

use super::forms::{Translated, WRITTEN_OUT};
use super::{FromCore, Part};
use crate::bulk::a_core::{Exp as Form, Fold, IndexFn, Term, Ty, Var as Variable, made};
use crate::bulk::sizes::Size;
use crate::bulk::terms::with_parts;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Exp, Lam, Loop, LoopForm, Var};
use std::collections::BTreeSet;
use std::sync::Arc;

impl FromCore<'_> {
    // [bulk.folded]  index (scanl n (\a [x ..]. body) z ts) [n]
    pub(super) fn folded(&mut self, l: &Loop) -> Translated<Vec<Part>> {
        let LoopForm::For { i, n } = &l.form else {
            return self.refuse("a `while` loop");
        };
        let ([(state, start)], 0) = (&l.params[..], l.collect) else {
            return self
                .refuse("a loop with several states, whose number of iterations is no small constant");
        };
        if self.program.vars[*i].ty.scalar() != Some(pullback_prim::Scalar::I64) {
            return self.refuse("a loop that counts in another type than i64");
        }
        let (n, z) = (self.width(*n)?, self.array(*start)?);
        let all = self.states(&n, &z, (*state, Some(*i), None), &l.body)?;
        Ok(vec![Part::Array(made(Form::Index(all, vec![Term::size(&n)])))])
    }

    // [bulk.scan]  gather (n ::: sh) (scanl n (\p [q]. op) z [a]) (\[i]. [i + 1])
    pub(super) fn scan(
        &mut self,
        n: &Size,
        lam: &Lam,
        (zs, arrays): (&[Atom], &[Term]),
    ) -> Translated<Vec<Part>> {
        let ([z], [a]) = (zs, arrays) else { return self.refuse("a scan of several values") };
        let all = self.of_operator(n, lam, (*z, a))?;
        let shape = [std::slice::from_ref(n), &all.ty().shape[1..]].concat();
        let i = self.names.index("i");
        let next = super::forms::integer(pullback_prim::Op::Add, &Term::var(&i), &Term::i64(1));
        let f = IndexFn { params: vec![i], index: vec![next] };
        Ok(vec![Part::Array(made(Form::Gather(shape, all, f)))])
    }

    /// All states of a reduction from the left.
    pub(super) fn of_operator(&mut self, n: &Size, lam: &Lam, (z, a): (Atom, &Term)) -> Translated<Term> {
        let z = self.array(z)?;
        let rows = [std::slice::from_ref(n), &a.ty().shape[1..]].concat();
        let a = self.as_shape(a, &rows);
        self.states(n, &z, (lam.params[0], None, Some((lam.params[1], &a))), &lam.body)
    }

    /// `scanl` with a body of core: its state, its counter, and its element of an array.
    fn states(
        &mut self,
        n: &Size,
        z: &Term,
        (state, counter, element): (Var, Option<Var>, Option<(Var, &Term)>),
        body: &Body,
    ) -> Translated<Term> {
        let a = self.names.fresh("a", z.ty().clone());
        let i = self.names.index("i");
        self.parts.insert(state, Part::Array(Term::var(&a)));
        if let Some(counter) = counter {
            self.parts.insert(counter, Part::Array(Term::var(&i)));
        }
        if let Some((q, array)) = element {
            let at = made(Form::Index(array.clone(), vec![Term::var(&i)]));
            self.parts.insert(q, Part::Array(at));
        }
        self.scopes.push(Vec::new());
        let parts = self.body(body, &[true])?;
        let inside = self.scopes.pop().unwrap_or_default();
        let Some(Part::Array(t)) = parts.into_iter().next() else {
            return self.refuse("a product, as a whole");
        };
        let is_small = Size::product(&z.ty().shape).as_constant().is_some_and(|n| n <= WRITTEN_OUT);
        if !is_small && reads_elements(body, &mut IdSet::from_iter([state])) {
            return self.refuse("a loop that reads or writes single elements of its state");
        }
        if t.ty() != z.ty() {
            return self.refuse("a loop whose state changes its size");
        }
        let bind = |body: Term, (x, u): (Variable, Term)| made(Form::Let(x, u, body));
        let whole = inside.into_iter().rev().fold(t, bind);
        let mut moved = Distributed { from: self, out: Vec::new() };
        let body = moved.rest(&whole, &BTreeSet::from([a.id()]), &BTreeSet::new())?;
        let out = moved.out;
        let arrays = out.iter().map(|(_, t)| self.each(n, &i, t)).collect();
        let params = std::iter::once(a).chain(out.into_iter().map(|(x, _)| x)).collect();
        Ok(made(Form::Scanl(Arc::new(Fold { size: n.clone(), params, body }), z.clone(), arrays)))
    }
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
            Form::Gather(_, _, f) | Form::Scatter(_, _, f) => {
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
