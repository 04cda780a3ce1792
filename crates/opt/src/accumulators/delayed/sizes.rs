//! Sizes: following an array to its extents, which depend on no dimension of the nest.

use super::{Binding, Definition, Delayed, Env, Id, Node, OUTSIDE, SOME};
use pullback_core::{Atom, Exp, Loop, Soac, Var};

impl Delayed<'_> {
    /// A size of an array of an environment.
    pub(in crate::accumulators) fn size(&mut self, a: Atom, env: Env, axis: usize) -> Option<Id> {
        let v = a.var()?;
        self.budget = self.budget.checked_sub(1)?;
        let available = self.available.contains(v);
        if available && let Some(known) = self.sizes.get(&(v, axis)) {
            return Some(self.representative(*known));
        }
        let env = if available { OUTSIDE } else { self.owner(v, env) };
        let found = match self.instances[env].binds.get(&v).cloned() {
            Some(Binding::Element(array, from, _)) => self.size(array, from, axis + 1),
            Some(Binding::Scalar(_)) => None,
            Some(Binding::Opaque) | None => self.defined_size(v, env, axis),
        };
        let size = match found {
            Some(id) if self.dims[id].is_empty() => id,
            _ if available => self.intern(Node::Size(v, axis)),
            _ => return None,
        };
        if available && self.holds() {
            self.sizes.insert((v, axis), size);
        }
        Some(size)
    }
    /// The size of a loop's state, if no iteration changes it: by induction from its first value.
    pub(super) fn state_size(&mut self, l: &Loop, k: usize, v: Var, env: Env, axis: usize) -> Option<Id> {
        if let Some(hypothesis) = self.hypotheses.get(&(v, axis)) {
            return *hypothesis;
        }
        // The first value is computed outside the loop, so the environment of its variables is found from here, too.
        let first = self.size(l.params.get(k)?.1, env, axis)?;
        self.hypotheses.insert((v, axis), Some(first));
        let next = l.body.result.get(k).and_then(|r| self.size(*r, env, axis));
        self.hypotheses.remove(&(v, axis));
        (next? == first).then_some(first)
    }
    pub(super) fn defined_size(&mut self, v: Var, env: Env, axis: usize) -> Option<Id> {
        // Nothing inside is asked for these.
        match self.definitions.get(&v)? {
            Definition::Result(Exp::Soac(Soac::Map { width, .. } | Soac::Scan { width, .. }), _)
                if axis == 0 =>
            {
                return self.element(*width, env, &[]);
            }
            Definition::Result(Exp::WithAcc(inits, _), k) if k < inits.len() => {
                return self.size(inits[k], env, axis);
            }
            _ => {}
        }
        let (exp, k) = match self.definitions.open(v)? {
            Definition::Result(exp, k) => (exp, k),
            Definition::Payload(scrutinee, field) => {
                let (fields, from) = self.payload(scrutinee, env, &[])?;
                return self.size(*fields.get(field)?, from, axis);
            }
            Definition::State(l, k) => return self.state_size(l, k, v, env, axis),
        };
        match exp {
            Exp::Atom(a)
            | Exp::StopGradient(a)
            | Exp::Update(a, ..)
            | Exp::UpdateSlice(a, ..)
            | Exp::Reverse(a)
            | Exp::Rotate(a, _)
            | Exp::Plus(a, _) => self.size(*a, env, axis),
            Exp::Index(b, ix) => self.size(*b, env, axis + ix.len()),
            Exp::Rearrange(perm, b) => self.size(*b, env, perm.get(axis).copied().unwrap_or(axis)),
            Exp::Iota(n) => self.element(*n, env, &[]),
            Exp::Replicate(shape, x) => match shape.get(axis) {
                Some(n) => self.element(*n, env, &[]),
                None => self.size(*x, env, axis - shape.len()),
            },
            Exp::Reshape { shape, from, array } => match shape.get(axis) {
                Some(n) => self.element(*n, env, &[]),
                None => self.size(*array, env, axis - shape.len() + from),
            },
            Exp::Slice(_, s) if axis == 0 => self.element(s.len, env, &[]),
            Exp::Slice(b, _) => self.size(*b, env, axis),
            Exp::Gather(_, is) if axis == 0 => self.size(*is, env, 0),
            Exp::Gather(b, _) => self.size(*b, env, axis),
            Exp::ArrayLit(_, items) if axis == 0 => Some(self.int(items.len() as i64)),
            Exp::Soac(Soac::Map { width, lam, arrays }) => {
                let some = self.dim(SOME);
                let inner = self.enter(*width, lam, arrays, env, some);
                self.size(*lam.body.result.get(k)?, inner, axis - 1)
            }
            Exp::Soac(Soac::Scatter { dst, .. }) => self.size(*dst, env, axis),
            Exp::Soac(Soac::Hist { dst, .. }) => self.size(*dst.get(k)?, env, axis),
            Exp::WithAcc(inits, lam) => {
                self.size(*lam.body.result.get(k.checked_sub(inits.len())?)?, env, axis)
            }
            Exp::Marked(_, body) => self.size(*body.result.get(k)?, env, axis),
            Exp::Match(_, arms) if arms.len() == 1 => self.size(*arms[0].body.result.get(k)?, env, axis),
            Exp::Loop(l) => match l.params.get(k) {
                Some((v, _)) => self.state_size(l, k, *v, env, axis),
                None => None,
            },
            Exp::If(_, then, otherwise) => {
                let x = self.size(*then.result.get(k)?, env, axis)?;
                let y = self.size(*otherwise.result.get(k)?, env, axis)?;
                self.same(x, y).then_some(x)
            }
            _ => None,
        }
    }
}
