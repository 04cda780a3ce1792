//! Elements: following an array to what one element of it is.

use super::{Binding, Definition, Delayed, Env, Id, Node, OUTSIDE, homes};
use pullback_core::{Atom, Exp, Loop, Soac, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

impl<'a> Delayed<'a> {
    /// The element of `a` at these indices (as many as its rank).
    pub(in crate::accumulators) fn element(&mut self, a: Atom, env: Env, index: &[Id]) -> Option<Id> {
        let v = match a {
            Atom::Const(c) => return Some(self.intern(Node::Const(c))),
            Atom::Var(v) => v,
        };
        self.budget = self.budget.checked_sub(1)?;
        if self.available.contains(v) {
            if index.is_empty()
                && let Some(known) = self.scalars.get(&v)
            {
                return Some(self.representative(*known));
            }
            let known = match self.instances[OUTSIDE].binds.get(&v).cloned() {
                Some(Binding::Element(array, _, here)) => {
                    let whole: Vec<Id> = std::iter::once(here).chain(index.iter().copied()).collect();
                    self.element(array, OUTSIDE, &whole)
                }
                _ => self.definition(v, OUTSIDE, index),
            };
            if let Some(known) = known.filter(|k| self.is_placed(*k)) {
                if index.is_empty() {
                    self.note_name(v, known);
                    self.remember(v, known);
                }
                return Some(known);
            }
            let node = if index.is_empty() { Node::Var(v) } else { Node::Read(v, index.to_vec()) };
            self.program.vars[v].ty.base().scalar()?;
            let id = self.intern(node);
            if index.is_empty() {
                self.remember(v, id);
            }
            return Some(id);
        }
        let env = self.owner(v, env);
        match self.instances[env].binds.get(&v).cloned() {
            Some(Binding::Scalar(id)) => return Some(id),
            Some(Binding::Element(array, from, i)) => {
                let whole: Vec<Id> = std::iter::once(i).chain(index.iter().copied()).collect();
                if let Some(id) = self.element(array, from, &whole) {
                    return Some(id);
                }
            }
            Some(Binding::Opaque) => {}
            None => {
                if let Some(id) = self.definition(v, env, index) {
                    return Some(id);
                }
            }
        }
        self.local(v, env, index)
    }
    /// Keeps what a scalar in scope at the nest is.
    fn remember(&mut self, v: Var, id: Id) {
        if self.holds() {
            self.scalars.insert(v, id);
        }
    }
    /// The value as something that the nest hands out.
    pub(in crate::accumulators) fn local(&mut self, v: Var, env: Env, index: &[Id]) -> Option<Id> {
        let sizes =
            (0..index.len()).map(|axis| self.size(v.into(), env, axis)).collect::<Option<Vec<_>>>()?;
        self.local_of_shape(v, env, index, &sizes)
    }
    /// As [`Delayed::local`]; the value has this shape.
    pub(in crate::accumulators) fn local_of_shape(
        &mut self,
        v: Var,
        env: Env,
        index: &[Id],
        sizes: &[Id],
    ) -> Option<Id> {
        let home = *self.homes.get_or_init(|| homes(self.outermost)).get(&v)? as usize;
        let ty = &self.program.vars[v].ty;
        (ty.base().scalar().is_some() && self.belongs_to_nest(env)).then_some(())?;
        let mut around = Vec::new();
        let mut at = env;
        while at != OUTSIDE {
            around.push(self.instances[at].place?);
            at = self.instances[at].parent;
        }
        around.reverse();
        (around.len() == home).then_some(())?;
        let mut shape = around.iter().map(|p| p.1).collect::<Option<Vec<Id>>>()?;
        shape.extend(sizes);
        self.local_shapes.insert(v, shape);
        let places = around.iter().map(|p| p.0).chain(index.iter().copied());
        Some(self.intern(Node::Local(v, places.collect())))
    }

    pub(super) fn definition(&mut self, v: Var, env: Env, index: &[Id]) -> Option<Id> {
        let (exp, k) = match self.definitions.open(v)? {
            Definition::Result(exp, k) => (exp, k),
            Definition::Payload(scrutinee, field) => {
                let (fields, from) = self.payload(scrutinee, env, &[])?;
                return self.element(*fields.get(field)?, from, index);
            }
            Definition::State(..) => return None,
        };
        match exp {
            Exp::Atom(a) | Exp::StopGradient(a) => self.element(*a, env, index),
            Exp::Prim(prim, args) => self.primitive(*prim, args, env),
            Exp::Size(a, d) => self.size(*a, env, *d),
            Exp::Iota(_) => index.first().copied(),
            Exp::Replicate(shape, x) => self.element(*x, env, index.get(shape.len()..)?),
            Exp::Index(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Reverse(_)
            | Exp::Slice(..)
            | Exp::Gather(..) => {
                let (array, whole) = self.through(exp, env, index)?;
                self.element(array, env, &whole)
            }
            Exp::Plus(a, b) => {
                let s = self.program.vars[v].ty.base().scalar().filter(|s| s.is_float())?;
                if env == OUTSIDE || !self.runs_everywhere(env, index) {
                    return None;
                }
                let (x, y) = (self.element(*a, env, index)?, self.element(*b, env, index)?);
                Some(self.op2(Op::Add, s, x, y))
            }
            Exp::If(c, then, otherwise) => {
                let c = self.element(*c, env, &[])?;
                let then = *then.result.get(k)?;
                let otherwise = *otherwise.result.get(k)?;
                match self.assumed.get(&c) {
                    Some(true) => return self.element(then, env, index),
                    Some(false) => return self.element(otherwise, env, index),
                    None => {}
                }
                self.conditions += 1;
                let (x, y) = (self.element(then, env, index), self.element(otherwise, env, index));
                self.conditions -= 1;
                Some(self.intern(Node::If(c, x?, y?)))
            }
            Exp::Marked(_, body) => self.element(*body.result.get(k)?, env, index),
            Exp::Match(_, arms) if arms.len() == 1 => self.element(*arms[0].body.result.get(k)?, env, index),
            Exp::WithAcc(inits, lam) => {
                let result = *lam.body.result.get(k.checked_sub(inits.len())?)?;
                self.element(result, env, index)
            }
            Exp::Soac(Soac::Map { width, lam, arrays }) => {
                let (first, rest) = index.split_first()?;
                let inner = self.enter(*width, lam, arrays, env, *first);
                self.element(*lam.body.result.get(k)?, inner, rest)
            }
            Exp::Loop(l) => {
                let (first, rest) = index.split_first()?;
                let inner = self.iteration(l, env, *first)?;
                (k >= l.params.len()).then_some(())?;
                self.element(*l.body.result.get(k)?, inner, rest)
            }
            _ => None,
        }
    }
    /// The array that a view shows, and the indices there.
    pub(super) fn through(&mut self, exp: &Exp, env: Env, index: &[Id]) -> Option<(Atom, Vec<Id>)> {
        match exp {
            Exp::Index(b, ix) => {
                let mut whole = self.indices(ix, env)?;
                whole.extend(index);
                Some((*b, whole))
            }
            Exp::Rearrange(perm, b) => {
                let mut whole = index.to_vec();
                for (i, p) in perm.iter().enumerate() {
                    *whole.get_mut(*p)? = *index.get(i)?;
                }
                Some((*b, whole))
            }
            Exp::Reshape { shape, from, array } => {
                let named = self.indices(shape, env)?;
                if shape.len() != *from {
                    return None;
                }
                for (d, n) in named.into_iter().enumerate() {
                    let size = self.size(*array, env, d)?;
                    if !self.agree(size, n) {
                        return None;
                    }
                }
                Some((*array, index.to_vec()))
            }
            Exp::Reverse(b) => {
                let n = self.size(*b, env, 0)?;
                let one = self.int(1);
                let last = self.op2(Op::Sub, Scalar::I64, n, one);
                let (first, rest) = index.split_first()?;
                let i = self.op2(Op::Sub, Scalar::I64, last, *first);
                let whole: Vec<Id> = std::iter::once(i).chain(rest.iter().copied()).collect();
                Some((*b, whole))
            }
            Exp::Slice(b, s) => {
                let (first, rest) = index.split_first()?;
                let [start, stride] = self.indices(&[s.start, s.stride], env)?[..] else { return None };
                let far = self.op2(Op::Mul, Scalar::I64, stride, *first);
                let i = self.op2(Op::Add, Scalar::I64, start, far);
                let whole: Vec<Id> = std::iter::once(i).chain(rest.iter().copied()).collect();
                Some((*b, whole))
            }
            Exp::Gather(b, is) => {
                let (first, rest) = index.split_first()?;
                let i = self.element(*is, env, &[*first])?;
                let whole: Vec<Id> = std::iter::once(i).chain(rest.iter().copied()).collect();
                Some((*b, whole))
            }
            _ => None,
        }
    }
    pub(super) fn iteration(&mut self, l: &'a Loop, env: Env, index: Id) -> Option<Env> {
        // Only of loops that have been run: what one in the nest computes is not known without running it.
        (!self.belongs_to_nest(env)).then_some(())?;
        self.iterate(l, env, index)
    }
    pub(super) fn indices(&mut self, atoms: &[Atom], env: Env) -> Option<Vec<Id>> {
        atoms.iter().map(|a| self.element(*a, env, &[])).collect()
    }
    /// Whether code of this environment, at these further indices, runs once per point of the whole nest.
    pub(super) fn runs_everywhere(&self, env: Env, index: &[Id]) -> bool {
        let mut dims = self.instances[env].dims.clone();
        index.iter().for_each(|i| dims.extend(self.dims[*i].iter().copied()));
        dims == self.full
    }
    pub(super) fn primitive(&mut self, prim: Prim, args: &[Atom], env: Env) -> Option<Id> {
        let floats = args.iter().any(|a| self.program.atom_type(*a).scalar().is_some_and(Scalar::is_float))
            || prim.result().is_float();
        // What the forward sweep computed is read, not computed again; scalars of outer levels are handed out.
        if floats && !(self.belongs_to_nest(env) && self.runs_everywhere(env, &[])) {
            return None;
        }
        let ids = self.indices(args, env)?;
        Some(self.intern(Node::Prim(prim, ids)))
    }
    pub(super) fn belongs_to_nest(&self, env: Env) -> bool {
        let mut env = env;
        while env != OUTSIDE {
            if env == self.nest {
                return true;
            }
            env = self.instances[env].parent;
        }
        false
    }

    /// The fields of a value of a sum type with one alternative, which was built by the forward sweep.
    pub(super) fn payload(&mut self, a: Atom, env: Env, index: &[Id]) -> Option<(Vec<Atom>, Env)> {
        let v = a.var()?;
        self.budget = self.budget.checked_sub(1)?;
        if !self.available.contains(v) {
            let env = self.owner(v, env);
            return self.payload_in(v, env, index);
        }
        // Every field of one value asks for all of them.
        if index.is_empty()
            && let Some(known) = self.payloads.get(&v)
        {
            return Some(known.clone());
        }
        let found = self.payload_in(v, OUTSIDE, index)?;
        if index.is_empty() && self.holds() {
            self.payloads.insert(v, found.clone());
        }
        Some(found)
    }
    fn payload_in(&mut self, v: Var, env: Env, index: &[Id]) -> Option<(Vec<Atom>, Env)> {
        match self.instances[env].binds.get(&v).cloned() {
            Some(Binding::Element(array, from, i)) => {
                let whole: Vec<Id> = std::iter::once(i).chain(index.iter().copied()).collect();
                return self.payload(array, from, &whole);
            }
            Some(Binding::Scalar(_) | Binding::Opaque) => return None,
            None => {}
        }
        let (exp, k) = match self.definitions.open(v)? {
            Definition::Result(exp, k) => (exp, k),
            Definition::Payload(scrutinee, field) => {
                let (fields, from) = self.payload(scrutinee, env, &[])?;
                return self.payload(*fields.get(field)?, from, index);
            }
            Definition::State(..) => return None,
        };
        match exp {
            Exp::Atom(a) => self.payload(*a, env, index),
            Exp::Inject(Type::Sum(variants), _, fields) if variants.len() == 1 && index.is_empty() => {
                Some((fields.clone(), env))
            }
            Exp::Index(b, ix) => {
                let mut whole = self.indices(ix, env)?;
                whole.extend(index);
                self.payload(*b, env, &whole)
            }
            Exp::Match(_, arms) => {
                let [arm] = &arms[..] else { return None };
                self.payload(*arm.body.result.get(k)?, env, index)
            }
            Exp::Soac(Soac::Map { width, lam, arrays }) => {
                let (first, rest) = index.split_first()?;
                let inner = self.enter(*width, lam, arrays, env, *first);
                self.payload(*lam.body.result.get(k)?, inner, rest)
            }
            Exp::Loop(l) => {
                let (first, rest) = index.split_first()?;
                let inner = self.iteration(l, env, *first)?;
                (k >= l.params.len()).then_some(())?;
                self.payload(*l.body.result.get(k)?, inner, rest)
            }
            _ => None,
        }
    }
}
