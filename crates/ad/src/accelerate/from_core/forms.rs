//! Statements of core in the language, an arm for each construct in the order of `Exp`; those of operations that take functions are in `soacs`.
//!
//! Rules, inside of a nest; `j` are new counters, of the dimensions of the result:
//! ```text
//! atom, prim, tuple, proj     scalars of the nest
//! if, of scalars              cond c (let .. in us) (let .. in vs)
//! if, of arrays               acond c (let .. in us) (let .. in vs)          outside of all inner bodies
//! loop                        a small constant number of iterations, one after the other;  others: `loops`
//! array_lit [e_0, ..]         \j. cond (j = 0) e_0 (cond (j = 1) e_1 ..)
//! index a is                  a view, or a read
//! slice a s n t               \j. a[s + j * t, ..]
//! update a is v               \j. cond (j = is) v[..] a[j]
//! update_slice a s n t v      \j. cond (j = s + t * k for a k from 0 to n - 1) v[k, ..] a[j]         t a constant that is not zero
//! gather a is                 \j. a[is[j], ..]
//! size a k                    its size
//! iota n                      \j. j
//! replicate ns e              \j. e[..]
//! rearrange p a               \j. a[j turned by p]
//! reshape ns a                \j. a[the place of j in the old shape]
//! concat a b                  \j. cond (j < the size of a) a[j] b[j - the size of a]
//! reverse a                   \j. a[n - 1 - j, ..]
//! rotate a k                  \j. a[(j + k) mod n, ..]
//! plus x y                    x + y, of arrays \j. x[j] + y[j]
//! marked, par                 their bodies
//! stop_gradient               at hand, outside of inner bodies
//! assert, check               the function's own body has them
//! ```
//!
//! `form` is longer than other functions: an arm for each construct.

use super::sizes::Size;
use super::{FromCore, Part, View, arr};
use crate::accelerate::language::{AVar, Arr, ArrForm, Exp, made};
use crate::accelerate::zeros::plus as sum;
use crate::contract::Unsupported;
use crate::translation::needed;
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Exp as Core, Loop, LoopForm, SliceDim, Stm, Var};
use pullback_prim::{Op, Prim, Scalar};

/// How many iterations of a loop, or elements that are written out, are translated one by one. A choice, not measured.
const WRITTEN_OUT: i64 = 64;

pub(super) type Result<T> = std::result::Result<T, Unsupported>;

/// A let-stack of arrays.
pub(super) type ArrayLets = Vec<(AVar, Arr)>;

pub(super) fn integer(op: Op, x: &Exp, y: &Exp) -> Exp {
    made(Exp::prim(Prim::Op(op, Scalar::I64), vec![x.clone(), y.clone()]))
}

pub(super) fn both(x: Exp, y: Exp) -> Exp {
    made(Exp::prim(Prim::Op(Op::And, Scalar::Bool), vec![x, y]))
}

impl FromCore<'_> {
    pub(super) fn statement(&mut self, stm: &Stm) -> Result<()> {
        let outer = self.place;
        self.place = self.program.vars[stm.pat[0]].origin.span.or(outer);
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return self.refuse("a program of so many statements, with loops and calls written out"),
        }
        self.learn_size(stm);
        let parts = self.form(stm)?;
        for (v, part) in stm.pat.iter().zip(parts) {
            self.parts.insert(*v, part);
        }
        self.place = outer;
        Ok(())
    }

    /// Those statements that the results need; of those outside, only active ones, because others are at hand.
    pub(super) fn needed(&self, stms: &[Stm], results: &[Atom], outside: bool) -> Vec<bool> {
        needed(stms, results, &|v| !outside || self.active.contains(v))
    }

    /// The results of a body; its bindings go where we are.
    pub(super) fn body(&mut self, body: &Body) -> Result<Vec<Part>> {
        let needed = self.needed(&body.stms, &body.result, false);
        for (stm, is_needed) in body.stms.iter().zip(needed) {
            if is_needed {
                self.statement(stm)?;
            }
        }
        self.each_part(&body.result)
    }

    /// A scalar where we are.
    pub(super) fn scalar(&mut self, a: Atom) -> Result<Exp> {
        match self.part(a)? {
            Part::Scalar(e, level) => self.carried(&e, level),
            Part::Array(_) | Part::Iota => self.refuse("an array where a number is wanted"),
            Part::Tuple(_) => self.refuse("a product, as a whole"),
        }
    }

    pub(super) fn scalars(&mut self, atoms: &[Atom]) -> Result<Vec<Exp>> {
        atoms.iter().map(|a| self.scalar(*a)).collect()
    }

    /// An array where we are.
    pub(super) fn view(&mut self, a: Atom) -> Result<View> {
        match self.part(a)? {
            Part::Array(view) => self.here(&view),
            Part::Iota => {
                let Some(v) = a.var() else { return self.refuse("an array of constants") };
                let Part::Array(view) = self.generate(v, |_, j| Ok(j[0].clone()))? else {
                    return self.refuse("an array of counters");
                };
                Ok(view)
            }
            Part::Scalar(..) => self.refuse("a number where an array is wanted"),
            Part::Tuple(_) => self.refuse("a product, as a whole"),
        }
    }

    /// The part of a value at an index: an element, or a view.
    pub(super) fn at(&mut self, part: &Part, index: Vec<Exp>) -> Result<Part> {
        match part {
            Part::Iota => match &index[..] {
                [j] => Ok(Part::Scalar(j.clone(), self.top())),
                _ => self.refuse("an index of counters"),
            },
            Part::Array(view) => {
                let mut view = self.here(view)?;
                view.prefix.extend(index);
                if view.prefix.len() < self.dims[&view.array].len() {
                    return Ok(Part::Array(view));
                }
                let e = made(Exp::index(&view.array, Exp::tuple(view.prefix)));
                Ok(Part::Scalar(e, self.top()))
            }
            Part::Scalar(..) | Part::Tuple(_) => self.refuse("an index of what is no array"),
        }
    }

    fn named(&mut self, e: Exp) -> Part {
        let e = self.bind("t", e);
        Part::Scalar(e, self.top())
    }

    /// An element of a value: of a number, itself.
    pub(super) fn element_of(&mut self, part: &Part, index: &[Exp]) -> Result<Exp> {
        match part {
            Part::Scalar(e, level) if index.is_empty() => self.carried(e, *level),
            Part::Array(view) => self.element(view, index),
            Part::Iota if index.len() == 1 => Ok(index[0].clone()),
            Part::Scalar(..) | Part::Iota => self.refuse("an index of another rank"),
            Part::Tuple(_) => self.refuse("a product, as a whole"),
        }
    }

    /// The result of an array operation that reads one array.
    fn moved(
        &mut self,
        v: Var,
        a: Atom,
        index: impl FnOnce(&mut Self, &[Exp]) -> Result<Vec<Exp>>,
    ) -> Result<Vec<Part>> {
        let a = self.part(a)?;
        let part = self.generate(v, |this, j| {
            let at = index(this, j)?;
            this.element_of(&a, &at)
        })?;
        Ok(vec![part])
    }

    /// The size of the outer dimension of an array.
    fn outer(&mut self, a: Atom) -> Result<Exp> {
        let Some(v) = a.var() else { return self.refuse("an array of constants") };
        let dims = self.dims_of(v)?;
        match dims.first() {
            Some(n) => Ok(self.size_exp(n)),
            None => self.refuse("a number where an array is wanted"),
        }
    }

    fn form(&mut self, stm: &Stm) -> Result<Vec<Part>> {
        let v = stm.pat[0];
        match &stm.exp {
            // [accelerate.atom]
            Core::Atom(a) => Ok(vec![self.part(*a)?]),
            // [accelerate.prim]
            Core::Prim(op, args) => {
                let args = self.scalars(args)?;
                Ok(vec![self.named(made(Exp::prim(*op, args)))])
            }
            // [accelerate.tuple]
            Core::Tuple(atoms) => {
                let parts = self.each_part(atoms)?;
                Ok(vec![Part::Tuple(parts)])
            }
            // [accelerate.proj]
            Core::Proj(a, k) => match self.part(*a)? {
                Part::Tuple(parts) => Ok(vec![parts[*k].clone()]),
                _ => self.refuse("a product, as a whole"),
            },
            Core::Inject(..) | Core::Match(..) => self.refuse("a value of a sum type"),
            // [accelerate.if]
            Core::If(c, then, other) => self.branch(stm, *c, then, other),
            // [accelerate.loop]
            Core::Loop(l) if is_small(l) => self.written_out(l),
            Core::Loop(l) => self.loop_of_scalars(l),
            Core::Call(..) => self.refuse("a call of a function that calls itself, or of a large one"),
            // [accelerate.array_lit]
            Core::ArrayLit(_, atoms) => self.literal(v, atoms),
            // [accelerate.index]
            Core::Index(a, is) => {
                let (a, is) = (self.part(*a)?, self.scalars(is)?);
                Ok(vec![self.at(&a, is)?])
            }
            // [accelerate.slice]
            Core::Slice(a, SliceDim { start, len: _, stride }) => {
                let (start, stride) = (self.part(*start)?, self.part(*stride)?);
                self.moved(v, *a, |this, j| {
                    let (start, stride) = (this.element_of(&start, &[])?, this.element_of(&stride, &[])?);
                    Ok(first(j, integer(Op::Add, &start, &integer(Op::Mul, &j[0], &stride))))
                })
            }
            // [accelerate.update]
            Core::Update(a, is, x) => self.updated(v, *a, is, *x),
            // [accelerate.update_slice]
            Core::UpdateSlice(a, slice, x) => self.updated_slice(v, *a, slice, *x),
            // [accelerate.gather]
            Core::Gather(a, is) => {
                let is = self.part(*is)?;
                self.moved(v, *a, |this, j| {
                    let at = this.element_of(&is, &j[..1])?;
                    Ok(first(j, at))
                })
            }
            // [accelerate.size]
            Core::Size(..) => {
                let n = self.width(v.into())?;
                Ok(vec![Part::Scalar(self.size_exp(&n), 0)])
            }
            // [accelerate.iota]
            Core::Iota(_) => Ok(vec![Part::Iota]),
            // [accelerate.replicate]
            Core::Replicate(ns, x) => {
                let (x, n) = (self.part(*x)?, ns.len());
                Ok(vec![self.generate(v, |this, j| this.element_of(&x, &j[n..]))?])
            }
            // [accelerate.rearrange]
            Core::Rearrange(perm, a) => self.moved(v, *a, |_, j| {
                let mut at = j.to_vec();
                perm.iter().enumerate().for_each(|(k, p)| at[*p] = j[k].clone());
                Ok(at)
            }),
            // [accelerate.reshape]
            Core::Reshape { shape, from, array } => self.reshaped(v, shape.len(), *from, *array),
            // [accelerate.concat]
            Core::Concat(arrays) => self.joined(v, arrays),
            // [accelerate.reverse]
            Core::Reverse(a) => {
                let n = self.outer(*a)?;
                self.moved(v, *a, |_, j| {
                    let last = integer(Op::Sub, &n, &Exp::i64(1));
                    Ok(first(j, integer(Op::Sub, &last, &j[0])))
                })
            }
            // [accelerate.rotate]
            Core::Rotate(a, k) => {
                let (n, k) = (self.outer(*a)?, self.part(*k)?);
                self.moved(v, *a, |this, j| {
                    let k = this.element_of(&k, &[])?;
                    Ok(first(j, integer(Op::Mod, &integer(Op::Add, &j[0], &k), &n)))
                })
            }
            Core::Soac(soac) => self.soac(stm, soac),
            Core::WithAcc(..) | Core::AccView(..) | Core::AccAdd(..) => self.refuse("an accumulator"),
            // [accelerate.plus]
            Core::Plus(x, y) => {
                let (x, y) = (self.part(*x)?, self.part(*y)?);
                if let (Part::Scalar(..), Part::Scalar(..)) = (&x, &y) {
                    let (x, y) = (self.element_of(&x, &[])?, self.element_of(&y, &[])?);
                    return Ok(vec![self.named(sum(&x, &y))]);
                }
                let part =
                    self.generate(v, |this, j| Ok(sum(&this.element_of(&x, j)?, &this.element_of(&y, j)?)))?;
                Ok(vec![part])
            }
            Core::Vjp { .. } | Core::Jvp { .. } => self.refuse("a derivative that was not expanded before"),
            Core::Custom { .. } => self.refuse("a function with its own rule"),
            // [accelerate.marked]
            Core::Marked(_, body) => self.body(body),
            Core::StopGradient(a) if self.is_active(*a) => self.refuse("`stop_gradient` in an inner body"),
            // [accelerate.stop_gradient]
            Core::StopGradient(a) => Ok(vec![self.part(*a)?]),
            // [accelerate.par]
            Core::Par(bodies) => {
                let all: Vec<Vec<Part>> = bodies.iter().map(|b| self.body(b)).collect::<Result<_>>()?;
                Ok(all.into_iter().flatten().collect())
            }
            // [accelerate.assert] [accelerate.check]  the function's own body has them
            Core::Assert(..) | Core::Check(..) => Ok(vec![Part::Tuple(Vec::new())]),
        }
    }

    fn literal(&mut self, v: Var, atoms: &[Atom]) -> Result<Vec<Part>> {
        if atoms.len() as i64 > WRITTEN_OUT {
            return self.refuse("an array of so many elements that are written out");
        }
        let parts = self.each_part(atoms)?;
        let base = self.program.vars[v].ty.base().scalar();
        let Some(scalar) = base else { return self.refuse("an array of values of a sum type") };
        let part = self.generate(v, |this, j| {
            let Some((last, before)) = parts.split_last() else { return Ok(Exp::constant(scalar.zero())) };
            let mut e = this.element_of(last, &j[1..])?;
            for (k, part) in before.iter().enumerate().rev() {
                let is_here = integer(Op::Eq, &j[0], &Exp::i64(k as i64));
                e = made(Exp::cond(is_here, this.element_of(part, &j[1..])?, e));
            }
            Ok(e)
        })?;
        Ok(vec![part])
    }

    fn updated(&mut self, v: Var, a: Atom, is: &[Atom], x: Atom) -> Result<Vec<Part>> {
        let (a, x) = (self.part(a)?, self.part(x)?);
        let is = self.each_part(is)?;
        let part = self.generate(v, |this, j| {
            let (here, inner) = j.split_at(is.len());
            let mut is_here = Exp::bool(true);
            for (i, j) in is.iter().zip(here) {
                let same = integer(Op::Eq, j, &this.element_of(i, &[])?);
                is_here = both(is_here, same);
            }
            let new = this.element_of(&x, inner)?;
            Ok(made(Exp::cond(is_here, new, this.element_of(&a, j)?)))
        })?;
        Ok(vec![part])
    }

    fn updated_slice(&mut self, v: Var, a: Atom, slice: &SliceDim, x: Atom) -> Result<Vec<Part>> {
        let SliceDim { start, len, stride } = slice;
        match stride {
            Atom::Const(c) if c.as_i64() != 0 => {}
            _ => return self.refuse("a slice that is overwritten, whose distance is no constant"),
        }
        let (a, x) = (self.part(a)?, self.part(x)?);
        let [start, len, stride] = [self.part(*start)?, self.part(*len)?, self.part(*stride)?];
        let part = self.generate(v, |this, j| {
            let start = this.element_of(&start, &[])?;
            let (len, stride) = (this.element_of(&len, &[])?, this.element_of(&stride, &[])?);
            let nth = integer(Op::Div, &integer(Op::Sub, &j[0], &start), &stride);
            let nth = this.bind("nth", nth);
            let back = integer(Op::Add, &start, &integer(Op::Mul, &stride, &nth));
            let inside = both(integer(Op::Le, &Exp::i64(0), &nth), integer(Op::Lt, &nth, &len));
            let is_here = both(integer(Op::Eq, &back, &j[0]), inside);
            let new = this.element_of(&x, &first(j, nth))?;
            Ok(made(Exp::cond(is_here, new, this.element_of(&a, j)?)))
        })?;
        Ok(vec![part])
    }

    fn reshaped(&mut self, v: Var, to: usize, from: usize, a: Atom) -> Result<Vec<Part>> {
        let (view, new) = (self.view(a)?, self.dims_of(v)?);
        let old = self.view_dims(&view);
        if self.top() == 0 && view.prefix.is_empty() {
            let shape = Exp::tuple(new.iter().map(|n| self.size_exp(n)).collect());
            let u = arr(ArrForm::Reshape(shape, Arr::var(&view.array)));
            let array = self.let_("reshaped", u, new);
            return Ok(vec![self.whole(array)]);
        }
        let mut sizes = |dims: &[Size]| dims.iter().map(|n| self.size_exp(n)).collect::<Vec<Exp>>();
        let (new, old) = (sizes(&new[..to]), sizes(&old[..from]));
        let part = self.generate(v, |this, j| {
            let (outer, inner) = j.split_at(to);
            let place = outer
                .iter()
                .zip(&new)
                .fold(Exp::i64(0), |sum, (j, n)| integer(Op::Add, &integer(Op::Mul, &sum, n), j));
            let mut rest = this.bind("place", place);
            let mut at = Vec::new();
            for n in old.iter().rev() {
                at.push(this.bind("i", integer(Op::Mod, &rest, n)));
                rest = this.bind("place", integer(Op::Div, &rest, n));
            }
            at.reverse();
            at.extend(inner.iter().cloned());
            this.element(&view, &at)
        })?;
        Ok(vec![part])
    }

    fn joined(&mut self, v: Var, arrays: &[Atom]) -> Result<Vec<Part>> {
        let parts = self.each_part(arrays)?;
        let sizes = arrays.iter().map(|a| self.outer(*a)).collect::<Result<Vec<Exp>>>()?;
        let part = self.generate(v, |this, j| {
            let (mut start, mut starts) = (Exp::i64(0), Vec::new());
            for n in &sizes {
                let end = this.bind("end", integer(Op::Add, &start, n));
                starts.push((start, end.clone()));
                start = end;
            }
            let mut e = None;
            for (part, (start, end)) in parts.iter().zip(starts).rev() {
                let at = this.bind("at", integer(Op::Sub, &j[0], &start));
                let here = this.element_of(part, &first(j, at))?;
                e = Some(match e {
                    None => here,
                    Some(e) => made(Exp::cond(integer(Op::Lt, &j[0], &end), here, e)),
                });
            }
            let Some(e) = e else { return this.refuse("a concatenation of nothing") };
            Ok(e)
        })?;
        Ok(vec![part])
    }

    fn written_out(&mut self, l: &Loop) -> Result<Vec<Part>> {
        let LoopForm::For { i, n: Atom::Const(n) } = l.form else { return self.loop_of_scalars(l) };
        let mut state = l.params.iter().map(|(_, a)| self.part(*a)).collect::<Result<Vec<Part>>>()?;
        for k in 0..n.as_i64() {
            for ((v, _), part) in l.params.iter().zip(state) {
                self.parts.insert(*v, part);
            }
            self.integer_is(i, k);
            self.parts.insert(i, Part::Scalar(Exp::constant(n.scalar().from_i64(k)), 0));
            state = self.body(&l.body)?;
        }
        Ok(state)
    }

    fn branch(&mut self, stm: &Stm, c: Atom, then: &Body, other: &Body) -> Result<Vec<Part>> {
        let is_array = |v: &Var| self.program.vars[*v].ty.rank() > 0;
        let mut of_arrays = stm.pat.iter().any(is_array);
        for body in [then, other] {
            for_each_stm(body, &mut |s| {
                of_arrays |= match &s.exp {
                    Core::Soac(_) => true,
                    Core::Loop(l) => !is_small(l),
                    _ => s.pat.iter().any(is_array),
                };
            });
        }
        let c = self.scalar(c)?;
        match (of_arrays, self.top()) {
            (false, _) => self.branch_of_scalars(&c, then, other),
            (true, 0) => self.branch_of_arrays(stm, &c, then, other),
            (true, _) => self.refuse("an array operation in a branch of an inner body"),
        }
    }

    // [accelerate.if.scalars]
    fn branch_of_scalars(&mut self, c: &Exp, then: &Body, other: &Body) -> Result<Vec<Part>> {
        let mut branch = |body: &Body| {
            let top = self.top();
            self.nests[top].frames.push(Vec::new());
            let results = self
                .body(body)
                .and_then(|parts| parts.iter().map(|p| self.flat(p)).collect::<Result<Vec<(Exp, Part)>>>());
            let frame = self.nests[top].frames.pop().unwrap_or_default();
            let (es, shapes): (Vec<Exp>, Vec<Part>) = results?.into_iter().unzip();
            Ok((made(Exp::lets(frame, Exp::tuple(es))), shapes))
        };
        let ((t, shapes), (e, _)) = (branch(then)?, branch(other)?);
        if t.ty() != e.ty() {
            return self.refuse("a branch that gives products of different forms");
        }
        let all = self.bind("branch", made(Exp::cond(c.clone(), t, e)));
        shapes.iter().enumerate().map(|(k, shape)| self.unflat(shape, all.proj(k))).collect()
    }

    /// Scalars and products of them as an expression; and the form, to take it apart.
    pub(super) fn flat(&mut self, part: &Part) -> Result<(Exp, Part)> {
        match part {
            Part::Scalar(e, level) => Ok((self.carried(e, *level)?, part.clone())),
            Part::Tuple(parts) => {
                let all = parts.iter().map(|p| self.flat(p)).collect::<Result<Vec<(Exp, Part)>>>()?;
                Ok((Exp::tuple(all.into_iter().map(|(e, _)| e).collect()), part.clone()))
            }
            Part::Array(_) | Part::Iota => self.refuse("an array in a branch of an inner body"),
        }
    }

    pub(super) fn unflat(&mut self, form: &Part, e: Exp) -> Result<Part> {
        match form {
            Part::Tuple(parts) => {
                let parts = parts.iter().enumerate().map(|(k, p)| self.unflat(p, e.proj(k)));
                Ok(Part::Tuple(parts.collect::<Result<_>>()?))
            }
            Part::Scalar(..) => Ok(self.named(e)),
            Part::Array(_) | Part::Iota => self.refuse("an array in a branch of an inner body"),
        }
    }

    /// Arrays that are made at a place of their own, and their let-stack: what is made there is not there outside of it.
    pub(super) fn apart(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<Vec<AVar>>,
    ) -> Result<(ArrayLets, Vec<AVar>)> {
        let (before, top) = (self.nests.clone(), self.top());
        self.nests[top].frames.push(Vec::new());
        self.nests[top].of_arrays += 1;
        self.arrays.push(Vec::new());
        let arrays = f(self);
        let lets = self.arrays.pop().unwrap_or_default();
        self.nests = before;
        Ok((lets, arrays?))
    }

    // [accelerate.if.arrays]
    fn branch_of_arrays(&mut self, stm: &Stm, c: &Exp, then: &Body, other: &Body) -> Result<Vec<Part>> {
        // The condition of arrays is closed.
        let c = self.bind("c", c.clone());
        let c = self.closed(&c)?;
        let mut branch = |body: &Body| {
            let (lets, arrays) = self.apart(|this| {
                this.body(body)?;
                body.result.iter().map(|a| this.whole_array(*a)).collect()
            })?;
            Ok(made(Arr::lets(lets, Arr::tuple(arrays.iter().map(Arr::var).collect()))))
        };
        let (t, e) = (branch(then)?, branch(other)?);
        let all = self.let_("branch", arr(ArrForm::Cond(c, t, e)), Vec::new());
        let mut parts = Vec::new();
        for (k, v) in stm.pat.iter().enumerate() {
            let a = self.let_("chosen", Arr::var(&all).proj(k), Vec::new());
            let dims = self.dims_of_branch(*v, &a);
            self.dims.insert(a.clone(), dims);
            parts.push(self.whole(a));
        }
        Ok(parts)
    }

    /// A scalar of the function's own body as an expression that stands anywhere.
    pub(super) fn closed(&mut self, e: &Exp) -> Result<Exp> {
        let a = self.over_axes("c", e)?;
        Ok(made(Exp::index(&a, Exp::tuple(Vec::new()))))
    }
}

/// Whether the iterations of a loop are written out.
fn is_small(l: &Loop) -> bool {
    matches!(l.form, LoopForm::For { n: Atom::Const(n), .. } if n.as_i64() <= WRITTEN_OUT && l.collect == 0)
}

/// The index with another first component.
fn first(j: &[Exp], e: Exp) -> Vec<Exp> {
    std::iter::once(e).chain(j.iter().skip(1).cloned()).collect()
}
