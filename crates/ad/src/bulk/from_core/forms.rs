//! Statements of core as terms: the rules of the module above, an arm for each construct in the order of `Exp`; those of operations that take functions are in `soacs`.
//!
//! Guarantees: terms have types, because core is checked, and arrays of other sizes are put into the shape that a rule wants; each binder is bound once.
//!
//! `form` is longer than other functions: an arm for each construct.

use super::{FromCore, Part};
use crate::bulk::a_core::{Exp as Form, IndexFn, Term, Ty, Var as Variable, made};
use crate::bulk::b_bot::{from_linear, to_linear};
use crate::bulk::sizes::{Shape, Size};
use crate::bulk::values::Tensor;
use crate::contract::Unsupported;
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Body, Exp, Loop, LoopForm, SliceDim, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// How many iterations of a loop, or elements of a reduction, are written out. A choice, not measured.
pub(super) const WRITTEN_OUT: i64 = 64;

/// How large a scalar may be that is copied to its uses: one without derivative. A choice, not measured.
const COPIED: u64 = 64;

pub(super) type Translated<T> = Result<T, Unsupported>;

impl FromCore<'_> {
    pub(super) fn statement(&mut self, stm: &Stm, live: &[bool]) -> Translated<()> {
        let outer = self.place;
        self.place = self.program.vars[stm.pat[0]].origin.span.or(outer);
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return self.refuse("a program of so many statements, with loops and calls written out"),
        }
        let parts = self.form(stm, live)?;
        for (v, part) in stm.pat.iter().zip(parts) {
            let part = self.named(*v, part);
            // [bulk.known]  the function's own body has it
            if let (true, true, Part::Array(t)) = (self.is_outside(), self.is_at_hand(*v), &part)
                && let Form::Var(x) = t.exp()
            {
                self.known.push((x.clone(), *v));
            }
            self.parts.insert(*v, part);
        }
        self.place = outer;
        Ok(())
    }

    /// The results of a body that are asked for; its bindings go where we are.
    pub(super) fn body(&mut self, body: &Body, live: &[bool]) -> Translated<Vec<Part>> {
        let asked = body.result.iter().zip(live).filter(|(_, is)| **is).map(|(a, _)| *a);
        let needed = self.needed(&body.stms, &asked.collect::<Vec<_>>(), false);
        for (stm, is_needed) in body.stms.iter().zip(needed) {
            if is_needed {
                self.statement(stm, &vec![true; stm.pat.len()])?;
            }
        }
        let of = |(a, is): (&Atom, &bool)| if *is { self.part(*a) } else { Ok(Part::AtHand) };
        body.result.iter().zip(live).map(of).collect()
    }

    /// A part that may be used more than once.
    fn named(&mut self, v: Var, part: Part) -> Part {
        match part {
            Part::AtHand => part,
            Part::Tuple(parts) => Part::Tuple(parts.into_iter().map(|p| self.named(v, p)).collect()),
            Part::Array(t) => Part::Array(self.bound(v, t)),
        }
    }

    /// A variable for a term. What costs little and has no derivative is copied, so that it may become part of an index function.
    fn bound(&mut self, v: Var, t: Term) -> Term {
        let is_number = !t.ty().is_float() && t.ty().shape.is_empty();
        let is_small = is_number && t.nodes() <= COPIED && !t.has_whole();
        if t.is_atom() || is_small || matches!(t.exp(), Form::Iota(_)) {
            return t;
        }
        let hint = self.program.vars[v].hint.clone();
        self.let_(hint.as_str(), t)
    }

    /// Binds a term in the innermost scope.
    pub(super) fn let_(&mut self, name: &str, t: Term) -> Term {
        let x = self.names.fresh(name, t.ty().clone());
        let bound = Term::var(&x);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((x, t));
        }
        bound
    }

    pub(super) fn form(&mut self, stm: &Stm, live: &[bool]) -> Translated<Vec<Part>> {
        let one = |t: Term| Ok(vec![Part::Array(t)]);
        match &stm.exp {
            // [bulk.atom]
            Exp::Atom(a) => Ok(vec![self.part(*a)?]),
            // [bulk.prim]  op t_1 .. t_n
            Exp::Prim(prim, args) => {
                let ts = self.arrays(args)?;
                one(primitive(*prim, ts))
            }
            // [bulk.tuple]
            Exp::Tuple(items) => {
                let parts = items.iter().map(|a| self.part(*a)).collect::<Translated<_>>()?;
                Ok(vec![Part::Tuple(parts)])
            }
            // [bulk.proj]
            Exp::Proj(a, k) => match self.part(*a)? {
                Part::Tuple(parts) => Ok(parts.into_iter().skip(*k).take(1).collect()),
                Part::Array(_) | Part::AtHand => {
                    self.refuse("a component of a product that is no product here")
                }
            },
            Exp::Inject(..) | Exp::Match(..) => self.refuse("a value of a sum type"),
            // [bulk.if]  cond c u v
            Exp::If(c, then, other) => self.branch(stm, *c, (then, other), live),
            // [bulk.loop]  the body, as often as it runs;  scanl, if that is no small constant
            Exp::Loop(l) => match &l.form {
                LoopForm::For { n: Atom::Const(n), .. } if n.as_i64() <= WRITTEN_OUT => {
                    self.written_out(stm, l)
                }
                LoopForm::For { .. } | LoopForm::While(_) => self.folded(l),
            },
            Exp::Call(f, _) => {
                let name = self.program.funs[*f].name.clone();
                self.refuse(&format!("a call of `{name}`, which calls itself or is too large to be copied"))
            }
            // [bulk.array_lit]  [t_1, .., t_n]
            Exp::ArrayLit(ty, items) => {
                let ts = self.arrays(items)?;
                one(self.stacked(ty, &ts)?)
            }
            // [bulk.index]  index a ix
            Exp::Index(a, ix) => {
                let (a, ix) = (self.array(*a)?, self.arrays(ix)?);
                one(made(Form::Index(a, ix)))
            }
            // [bulk.slice]  gather (n ::: rest) a (\[i]. [s + d i])
            Exp::Slice(a, SliceDim { start, len, stride }) => {
                let (a, n) = (self.array(*a)?, self.width(*len)?);
                let (start, stride) = (self.array(*start)?, self.array(*stride)?);
                one(self.rows(n, &a, |i| plus(&start, &times(&stride, i))))
            }
            // [bulk.update]  build1 k (\i. .. cond (i = ix_1 and ..) v (index a [i ..]))
            Exp::Update(a, ix, v) => {
                let (a, ix, v) = (self.array(*a)?, self.arrays(ix)?, self.array(*v)?);
                one(self.updated(&a, &ix, &v))
            }
            // [bulk.update_slice]  build1 k (\i. cond (i is in the slice) (index v [(i - s) div d]) (index a [i]))
            Exp::UpdateSlice(a, slice, v) => {
                let (a, v) = (self.array(*a)?, self.array(*v)?);
                one(self.updated_slice(&a, slice, &v)?)
            }
            // [bulk.gather]  gather (n ::: rest) a (\[i]. [index is [i]])
            Exp::Gather(a, is) => {
                let (a, is) = (self.array(*a)?, self.array(*is)?);
                let n = is.ty().shape[0].clone();
                one(self.rows(n, &a, |i| made(Form::Index(is.clone(), vec![i.clone()]))))
            }
            // [bulk.size]
            Exp::Size(a, k) => {
                let named = a.var().and_then(|v| self.shapes.of(v).get(*k).copied());
                let size = match (named, self.part(*a)?) {
                    (_, Part::Array(t)) if *k < t.ty().shape.len() => t.ty().shape[*k].clone(),
                    (Some(d), _) => self.dim(d)?,
                    (None, _) => return self.refuse("a size of something that is no array here"),
                };
                one(Term::size(&size))
            }
            // [bulk.iota]  iota k
            Exp::Iota(n) => one(made(Form::Iota(self.width(*n)?))),
            // [bulk.replicate]  replicate k_1 (replicate k_2 .. t)
            Exp::Replicate(shape, a) => {
                let (shape, t) = (self.widths(shape)?, self.array(*a)?);
                one(shape.into_iter().rev().fold(t, |t, k| made(Form::Replicate(k, t))))
            }
            // [bulk.rearrange]  tr_j a
            Exp::Rearrange(j, a) => one(made(Form::Transpose(j.clone(), self.array(*a)?))),
            // [bulk.reshape]  reshape sh a
            Exp::Reshape { shape, from, array } => {
                let (shape, a) = (self.widths(shape)?, self.array(*array)?);
                one(self.reshaped(shape, *from, &a))
            }
            // [bulk.concat]  build1 (k + l) (\i. cond (i < k) (index a [i]) (index b [i - k]))
            Exp::Concat(arrays) => {
                let arrays = self.arrays(arrays)?;
                let rest = self.rows_of(stm.pat[0], &arrays)?;
                one(self.joined(&arrays, &rest))
            }
            // [bulk.reverse]  gather (n ::: rest) a (\[i]. [n - 1 - i])
            Exp::Reverse(a) => {
                let a = self.array(*a)?;
                let n = a.ty().shape[0].clone();
                let last = Term::size(&n.minus(&Size::constant(1)));
                one(self.rows(n, &a, |i| integer(Op::Sub, &last, i)))
            }
            // [bulk.rotate]  gather (n ::: rest) a (\[i]. [(i + k) mod n])
            Exp::Rotate(a, k) => {
                let (a, k) = (self.array(*a)?, self.array(*k)?);
                let n = a.ty().shape[0].clone();
                let size = Term::size(&n);
                one(self.rows(n, &a, |i| integer(Op::Mod, &plus(i, &k), &size)))
            }
            Exp::Soac(soac) => self.soac(soac, live),
            Exp::WithAcc(..) | Exp::AccView(..) | Exp::AccAdd(..) => self.refuse("an accumulator"),
            // [bulk.plus]  x + (y as the shape of x)
            Exp::Plus(x, y) => {
                let (x, y) = (self.part(*x)?, self.part(*y)?);
                Ok(vec![self.sum(x, y)])
            }
            Exp::Vjp { .. } | Exp::Jvp { .. } => self.refuse("a derivative that was not expanded before"),
            Exp::Custom { .. } => self.refuse("a function with its own rule"),
            // [bulk.marked]
            Exp::Marked(_, body) => self.body(body, live),
            // [bulk.stop_gradient]  at hand, outside of inner bodies
            Exp::StopGradient(a) if self.is_active(*a) => self.refuse("`stop_gradient` in an inner body"),
            Exp::StopGradient(a) => Ok(vec![self.part(*a)?]),
            // [bulk.par]
            Exp::Par(bodies) => {
                let (mut all, mut live) = (Vec::new(), live);
                for body in bodies {
                    let (here, rest) = live.split_at(body.result.len().min(live.len()));
                    all.extend(self.body(body, here)?);
                    live = rest;
                }
                Ok(all)
            }
            // [bulk.check]  the function's own body has them
            Exp::Assert(..) | Exp::Check(..) => Ok(vec![Part::Tuple(Vec::new())]),
        }
    }

    fn branch(
        &mut self,
        stm: &Stm,
        c: Atom,
        (then, other): (&Body, &Body),
        live: &[bool],
    ) -> Translated<Vec<Part>> {
        let c = self.array(c)?;
        self.branches += 1;
        let (us, vs) = (self.body(then, live)?, self.body(other, live)?);
        self.branches -= 1;
        self.chooses |= !then.stms.is_empty() || !other.stms.is_empty();
        let both = us.into_iter().zip(vs).zip(&stm.pat);
        both.map(|((u, v), y)| self.chosen(&c, u, v, *y)).collect()
    }

    /// `cond c u v`; arrays of different sizes only where the one that is chosen is at hand.
    fn chosen(&mut self, c: &Term, u: Part, v: Part, y: Var) -> Translated<Part> {
        match (u, v) {
            (Part::Array(u), Part::Array(v)) => {
                let (mut u, mut v) = (u, v);
                if u.ty().shape != v.ty().shape {
                    if !self.is_at_hand(y) || u.ty().shape.len() != self.shapes.of(y).len() {
                        return self.refuse("a branch that gives arrays of different sizes");
                    }
                    let dims = self.shapes.of(y).to_vec();
                    let shape: Shape = dims.into_iter().map(|d| self.dim(d)).collect::<Translated<_>>()?;
                    (u, v) = (self.as_shape(&u, &shape), self.as_shape(&v, &shape));
                }
                Ok(Part::Array(made(Form::Cond(c.clone(), u, v))))
            }
            (Part::Tuple(us), Part::Tuple(vs)) => {
                let parts = us.into_iter().zip(vs).map(|(u, v)| match (&u, &v) {
                    (Part::Array(a), Part::Array(b)) if a.ty().shape != b.ty().shape => {
                        self.refuse("a branch that gives arrays of different sizes")
                    }
                    _ => self.chosen(c, u, v, y),
                });
                Ok(Part::Tuple(parts.collect::<Translated<_>>()?))
            }
            _ => Ok(Part::AtHand),
        }
    }

    fn written_out(&mut self, stm: &Stm, l: &Loop) -> Translated<Vec<Part>> {
        let LoopForm::For { i, n: Atom::Const(n) } = l.form else {
            return self.refuse("a loop whose number of iterations is no small constant");
        };
        let mut state: Vec<Part> = l.params.iter().map(|(_, a)| self.part(*a)).collect::<Translated<_>>()?;
        let mut collected: Vec<Vec<Term>> = vec![Vec::new(); l.collect];
        for k in 0..n.as_i64() {
            for ((v, _), part) in l.params.iter().zip(state) {
                self.parts.insert(*v, part);
            }
            self.parts.insert(i, Part::Array(Term::scalar(n.scalar().from_i64(k))));
            state = self.body(&l.body, &vec![true; l.body.result.len()])?;
            for (all, part) in collected.iter_mut().zip(state.split_off(l.params.len())) {
                match part {
                    Part::Array(t) => all.push(t),
                    Part::Tuple(_) | Part::AtHand => return self.refuse("a product, as a whole"),
                }
            }
        }
        for (ts, y) in collected.into_iter().zip(&stm.pat[l.params.len()..]) {
            let row = self.program.vars[*y].ty.peel(1).cloned().unwrap_or_else(Type::unit);
            state.push(Part::Array(self.stacked(&row, &ts)?));
        }
        Ok(state)
    }

    /// `[t_1, .., t_n]` of rows of this type.
    pub(super) fn stacked(&mut self, row: &Type, ts: &[Term]) -> Translated<Term> {
        match ts.first() {
            Some(first) => {
                let shape = first.ty().shape.clone();
                let rows = ts.iter().map(|t| self.as_shape(t, &shape)).collect();
                Ok(made(Form::Stack(rows)))
            }
            None => match row.base().scalar() {
                Some(scalar) => {
                    Ok(made(Form::Const(Tensor::new(scalar, vec![0; row.rank() + 1], Vec::new()))))
                }
                None => self.refuse("an array of values of a sum type"),
            },
        }
    }

    fn updated(&mut self, a: &Term, ix: &[Term], v: &Term) -> Term {
        let (outer, rest) = a.ty().shape.split_at(ix.len());
        let (outer, v) = (outer.to_vec(), self.as_shape(v, rest));
        let is: Vec<Variable> = ix.iter().map(|_| self.names.index("i")).collect();
        let here: Vec<Term> = is.iter().map(Term::var).collect();
        let same = here.iter().zip(ix).map(|(i, u)| integer(Op::Eq, i, u));
        let Some(is_here) = same.reduce(|a, b| both(&a, &b)) else { return v };
        let at = made(Form::Cond(is_here, v, made(Form::Index(a.clone(), here))));
        outer.into_iter().zip(is).rev().fold(at, |t, (k, i)| made(Form::Build1(k, i, t)))
    }

    fn updated_slice(&mut self, a: &Term, slice: &SliceDim, v: &Term) -> Translated<Term> {
        let SliceDim { start, len, stride } = slice;
        let Atom::Const(distance) = stride else {
            return self.refuse("a slice that is overwritten, whose distance is no constant");
        };
        if distance.as_i64() == 0 {
            return self.refuse("a slice that is overwritten, of distance 0");
        }
        let (start, stride) = (self.array(*start)?, self.array(*stride)?);
        let len = Term::size(&self.width(*len)?);
        let (k, rest) = (a.ty().shape[0].clone(), &a.ty().shape[1..]);
        let v = self.as_shape(v, &[&v.ty().shape[..1], rest].concat());
        let i = self.names.index("i");
        let here = Term::var(&i);
        let nth = integer(Op::Div, &integer(Op::Sub, &here, &start), &stride);
        let is_hit = integer(Op::Eq, &plus(&start, &times(&stride, &nth)), &here);
        let inside = both(&integer(Op::Le, &Term::i64(0), &nth), &integer(Op::Lt, &nth, &len));
        let new = made(Form::Index(v, vec![nth]));
        let old = made(Form::Index(a.clone(), vec![here]));
        Ok(made(Form::Build1(k, i, made(Form::Cond(both(&is_hit, &inside), new, old)))))
    }

    fn reshaped(&mut self, shape: Shape, from: usize, a: &Term) -> Term {
        let (before, rest) = a.ty().shape.split_at(from);
        let all = [shape.as_slice(), rest].concat();
        if Size::product(&all) == Size::product(&a.ty().shape) {
            return made(Form::Reshape(all, a.clone()));
        }
        let params: Vec<Variable> = shape.iter().map(|_| self.names.index("i")).collect();
        let index = from_linear(before, &to_linear(&shape, &params));
        made(Form::Gather(all, a.clone(), IndexFn { params, index }))
    }

    /// The shape of the rows of arrays that are joined. One without rows may have another shape than the others: then the result says which.
    fn rows_of(&mut self, joined: Var, arrays: &[Term]) -> Translated<Shape> {
        let size = |k: usize| {
            let n = &arrays[0].ty().shape[k];
            match arrays.iter().all(|a| a.ty().shape[k] == *n) {
                true => Ok(n.clone()),
                false if self.is_at_hand(joined) => Ok(self.size_var(Dim::Size(joined, k))),
                false => self
                    .refuse("arrays that are joined in an inner body, whose rows may be of different sizes"),
            }
        };
        (1..arrays[0].ty().shape.len()).map(size).collect()
    }

    pub(super) fn joined(&mut self, arrays: &[Term], rest: &[Size]) -> Term {
        let i = self.names.index("i");
        let (mut end, mut parts) = (Size::constant(0), Vec::new());
        for a in arrays {
            let k = a.ty().shape[0].clone();
            let a = self.as_shape(a, &[std::slice::from_ref(&k), rest].concat());
            let at = integer(Op::Sub, &Term::var(&i), &Term::size(&end));
            end = end.plus(&k);
            parts.push((end.clone(), made(Form::Index(a, vec![at]))));
        }
        let Some((_, last)) = parts.pop() else { unreachable!("`concat` of some array") };
        let choose = |other: Term, (end, t): (Size, Term)| {
            made(Form::Cond(integer(Op::Lt, &Term::var(&i), &Term::size(&end)), t, other))
        };
        let at = parts.into_iter().rev().fold(last, choose);
        made(Form::Build1(end, i.clone(), at))
    }

    fn sum(&mut self, x: Part, y: Part) -> Part {
        match (x, y) {
            (Part::Array(x), Part::Array(y)) if x.ty().is_float() => {
                let y = self.as_shape(&y, &x.ty().shape.clone());
                Part::Array(primitive(Prim::Op(Op::Add, x.ty().scalar), vec![x, y]))
            }
            (Part::Tuple(xs), Part::Tuple(ys)) => {
                Part::Tuple(xs.into_iter().zip(ys).map(|(x, y)| self.sum(x, y)).collect())
            }
            (x, _) => x,
        }
    }

    /// `t as sh`
    pub(super) fn as_shape(&mut self, t: &Term, sh: &[Size]) -> Term {
        if t.ty().shape == sh {
            return t.clone();
        }
        let params: Vec<Variable> = sh.iter().map(|_| self.names.index("i")).collect();
        let index = params.iter().map(Term::var).collect();
        made(Form::Gather(sh.to_vec(), t.clone(), IndexFn { params, index }))
    }

    /// So many rows of an array, each at the index that a function gives.
    pub(super) fn rows(&mut self, n: Size, a: &Term, index: impl FnOnce(&Term) -> Term) -> Term {
        let i = self.names.index("i");
        let index = vec![index(&Term::var(&i))];
        let sh = [&[n], &a.ty().shape[1..]].concat();
        made(Form::Gather(sh, a.clone(), IndexFn { params: vec![i], index }))
    }
}

/// The size that a term is, if it is one.
pub(super) fn known_size(t: &Term) -> Option<Size> {
    match t.exp() {
        Form::Size(n) => Some(n.clone()),
        Form::Const(c) if *t.ty() == Ty::index() => Some(Size::constant(c.elements[0].as_i64())),
        _ => None,
    }
}

/// `op t_1 .. t_n`. Sums and products of sizes are sizes.
pub(super) fn primitive(prim: Prim, ts: Vec<Term>) -> Term {
    if let (Prim::Op(op, Scalar::I64), [a, b]) = (prim, &ts[..])
        && let (Some(a), Some(b)) = (known_size(a), known_size(b))
    {
        match op {
            Op::Add => return Term::size(&a.plus(&b)),
            Op::Sub => return Term::size(&a.minus(&b)),
            Op::Mul => return Term::size(&a.times(&b)),
            _ => {}
        }
    }
    made(Form::Op(prim, ts))
}

pub(super) fn integer(op: Op, a: &Term, b: &Term) -> Term {
    primitive(Prim::Op(op, Scalar::I64), vec![a.clone(), b.clone()])
}

fn both(a: &Term, b: &Term) -> Term {
    made(Form::Op(Prim::Op(Op::And, Scalar::Bool), vec![a.clone(), b.clone()]))
}

fn is_integer(t: &Term, n: i64) -> bool {
    matches!(t.exp(), Form::Const(c) if c.elements.first() == Some(&ScalarValue::I64(n)))
}

fn plus(a: &Term, b: &Term) -> Term {
    match (is_integer(a, 0), is_integer(b, 0)) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        (false, false) => integer(Op::Add, a, b),
    }
}

fn times(a: &Term, b: &Term) -> Term {
    if is_integer(a, 1) { b.clone() } else { integer(Op::Mul, a, b) }
}
