//! Expressions as statements of core, one atom for each scalar of the type.
//!
//! Rules:
//! ```text
//! known      what is known about a primitive (`facts`)
//! part       of a tuple only the components that are wanted
//! select     a conditional between values that are there is a select; others are conditionals of core
//! ```

use super::Lower;
use super::delayed::{Form, Pull, Value};
use crate::accelerate::language::{AVar, Exp, ExpForm, Fun, Ty};
use pullback_core::{Atom, Exp as Core};
use pullback_prim::{Op, Prim, Scalar};
use std::ops::Range;

impl Lower<'_, '_> {
    /// A function at an argument. Functions are closed but for array variables.
    pub(super) fn apply(&mut self, f: &Fun, argument: Vec<Atom>) -> Vec<Atom> {
        let own = [(f.param.id(), argument)].into_iter().collect();
        let outer = std::mem::replace(&mut self.scalars, own);
        let result = self.exp(&f.body);
        self.scalars = outer;
        result
    }
    /// An expression outside of functions.
    pub(super) fn closed(&mut self, e: &Exp) -> Vec<Atom> {
        let outer = std::mem::take(&mut self.scalars);
        self.is_size = true;
        let result = self.exp(e);
        self.is_size = false;
        self.scalars = outer;
        result
    }
    /// The value where the builder stands.
    pub(super) fn exp(&mut self, e: &Exp) -> Vec<Atom> {
        match e.form() {
            ExpForm::Const(c) => vec![Atom::Const(*c)],
            ExpForm::Var(x) => match self.scalars.get(&x.id()) {
                Some(atoms) => atoms.clone(),
                None => unreachable!("`{}` is bound where it is read", x.name()),
            },
            ExpForm::Let(bindings, e) => {
                for (x, v) in bindings {
                    let atoms = self.exp(v);
                    self.scalars.insert(x.id(), atoms);
                }
                self.exp(e)
            }
            ExpForm::Tuple(es) => es.iter().flat_map(|e| self.exp(e)).collect(),
            ExpForm::Proj(u, k) => {
                let (from, to) = component(u.ty(), *k);
                self.part(u, from..to)
            }
            ExpForm::Prim(prim, es) => {
                let args: Vec<Atom> = es.iter().flat_map(|e| self.exp(e)).collect();
                vec![self.prim(*prim, args)]
            }
            // [accelerate_to_core.index]  a stored array: an index of core; a delayed one: its element, here
            ExpForm::Index(a, ix) => {
                let ix = self.exp(ix);
                let p = self.bound(a);
                self.checked(&p, &ix, 0..p.ty.scalars().len())
            }
            // [accelerate_to_core.shape]  sizes are kept apart
            ExpForm::Shape(a) => self.bound(a).dims,
            ExpForm::Cond(c, t, e) => {
                let c = self.exp(c)[0];
                self.branch(c, &mut |this| this.exp(t), &mut |this| this.exp(e))
            }
        }
    }

    /// Some leaves of the value; others are not evaluated, where the form shows that they are not needed.
    // [accelerate_to_core.part]  (e_1, .., e_n).k is e_k;  (a ! i).k reads leaves of this component only
    fn part(&mut self, e: &Exp, part: Range<usize>) -> Vec<Atom> {
        if part.is_empty() {
            return Vec::new();
        }
        match e.form() {
            ExpForm::Let(bindings, e) => {
                for (x, v) in bindings {
                    let atoms = self.exp(v);
                    self.scalars.insert(x.id(), atoms);
                }
                self.part(e, part)
            }
            ExpForm::Tuple(es) => {
                let (mut at, mut all) = (0, Vec::new());
                for e in es {
                    let end = at + e.ty().scalars().len();
                    let own = part.start.clamp(at, end) - at..part.end.clamp(at, end) - at;
                    all.extend(self.part(e, own));
                    at = end;
                }
                all
            }
            ExpForm::Proj(u, k) => {
                let before = component(u.ty(), *k).0;
                self.part(u, before + part.start..before + part.end)
            }
            ExpForm::Index(a, ix) => {
                let ix = self.exp(ix);
                let p = self.bound(a);
                self.checked(&p, &ix, part)
            }
            ExpForm::Cond(c, t, e) => {
                let c = self.exp(c)[0];
                let (then, other) = (part.clone(), part);
                self.branch(c, &mut |this| this.part(t, then.clone()), &mut |this| {
                    this.part(e, other.clone())
                })
            }
            ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Prim(..) | ExpForm::Shape(_) => {
                self.exp(e)[part].to_vec()
            }
        }
    }
    fn bound(&self, a: &AVar) -> Pull {
        match self.arrays.get(a) {
            Some(Value::Array(p)) => p.clone(),
            Some(Value::Tuple(_)) | None => unreachable!("`{}` is an array that is bound", a.name()),
        }
    }

    /// A conditional: a select between atoms that are there.
    // [accelerate_to_core.cond]  if c then e_1 else e_2: one of them is evaluated
    pub(super) fn branch(
        &mut self,
        c: Atom,
        then: &mut dyn FnMut(&mut Self) -> Vec<Atom>,
        other: &mut dyn FnMut(&mut Self) -> Vec<Atom>,
    ) -> Vec<Atom> {
        if let Atom::Const(c) = c {
            return if c.is_true() { then(self) } else { other(self) };
        }
        let is_size = std::mem::replace(&mut self.is_size, false);
        self.b.open();
        let xs = then(self);
        let mut t = self.b.close(Vec::new());
        self.b.open();
        let ys = other(self);
        let mut e = self.b.close(Vec::new());
        self.is_size = is_size;
        if t.stms.is_empty() && e.stms.is_empty() {
            let both = xs.into_iter().zip(ys);
            return both.map(|(x, y)| if x == y { x } else { self.b.select(c, x, y) }).collect();
        }
        let differ: Vec<bool> = xs.iter().zip(&ys).map(|(x, y)| x != y).collect();
        let parts = |all: &[Atom]| -> Vec<Atom> {
            all.iter().zip(&differ).filter(|(_, d)| **d).map(|(a, _)| *a).collect()
        };
        (t.result, e.result) = (parts(&xs), parts(&ys));
        if t.result.is_empty() {
            // Only checks are left.
            (t.result, e.result) = (vec![Atom::bool(true)], vec![Atom::bool(true)]);
        }
        let mut results = self.b.emit_all(Core::If(c, t, e), "r").into_iter();
        let atom = |(x, d): (Atom, bool)| if d { results.next().map_or(x, Atom::from) } else { x };
        xs.into_iter().zip(differ).map(atom).collect()
    }

    /// A primitive of two arguments of this type.
    pub(super) fn op2(&mut self, op: Op, scalar: Scalar, x: Atom, y: Atom) -> Atom {
        self.prim(Prim::Op(op, scalar), vec![x, y])
    }
    /// The product of sizes, outside of loops.
    pub(super) fn product(&mut self, dims: &[Atom]) -> Atom {
        dims.iter().fold(Atom::i64(1), |m, n| self.size(Op::Mul, m, *n))
    }

    /// An estimate of the operations of an expression, those of delayed arrays that it reads with it.
    pub(super) fn cost(&self, e: &Exp) -> u64 {
        let all = |es: &[Exp]| es.iter().map(|e| self.cost(e)).fold(0, u64::saturating_add);
        match e.form() {
            ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Shape(_) => 0,
            ExpForm::Let(bindings, e) => {
                bindings.iter().map(|(_, v)| self.cost(v)).fold(self.cost(e), u64::saturating_add)
            }
            ExpForm::Tuple(es) => all(es),
            ExpForm::Proj(e, _) => self.cost(e),
            ExpForm::Prim(prim, es) => all(es).saturating_add(prim.cost()),
            ExpForm::Index(a, e) => match self.arrays.get(a) {
                Some(Value::Array(p)) => match &p.form {
                    Form::Stored(_) | Form::Sized => self.cost(e).saturating_add(1),
                    Form::Delayed(..) | Form::Mixed(_) => self.cost(e).saturating_add(p.cost()),
                },
                Some(Value::Tuple(_)) | None => self.cost(e),
            },
            ExpForm::Cond(c, t, e) => {
                self.cost(c).saturating_add(self.cost(t)).saturating_add(self.cost(e)).saturating_add(1)
            }
        }
    }
}

/// The leaves that a component of a tuple has.
pub(super) fn component(ty: &Ty, k: usize) -> (usize, usize) {
    match ty {
        Ty::Tuple(ts) => {
            let before: usize = ts[..k].iter().map(|t| t.scalars().len()).sum();
            (before, before + ts[k].scalars().len())
        }
        Ty::Scalar(_) => unreachable!("only tuples have components"),
    }
}
