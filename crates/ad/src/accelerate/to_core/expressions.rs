//! Expressions as statements of core, one atom for each scalar of the type.
//!
//! Rules, of what is known:
//! ```text
//! bound      i < n is true, and 0 <= i, where i counts up to n
//! known      a primitive of constants is a constant, unless it stops
//! unit       x + 0, 0 + x, x - 0, x * 1, 1 * x of integers are x;   b and true, b or false are b;   b and false is false, b or true is true
//! select     a conditional between values that are there is a select; others are conditionals of core
//! ```

use super::delayed::{Form, Value};
use super::{INDEX, Lower};
use crate::accelerate::language::{Exp, ExpForm, Fun, Ty};
use pullback_core::{Atom, Exp as Core};
use pullback_prim::{Op, Prim, Scalar};

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
        let result = self.exp(e);
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
                let all = self.exp(u);
                let (from, to) = component(u.ty(), *k);
                all[from..to].to_vec()
            }
            ExpForm::Prim(prim, es) => {
                let args: Vec<Atom> = es.iter().flat_map(|e| self.exp(e)).collect();
                vec![self.prim(*prim, args)]
            }
            // [accelerate_to_core.index]  a stored array: an index of core; a delayed one: its element, here
            ExpForm::Index(a, ix) => {
                let ix = self.exp(ix);
                let p = match self.arrays.get(a) {
                    Some(Value::Array(p)) => p.clone(),
                    Some(Value::Tuple(_)) | None => unreachable!("`{}` is an array that is bound", a.name()),
                };
                self.checked(&p, &ix)
            }
            // [accelerate_to_core.shape]  sizes are kept apart
            ExpForm::Shape(a) => match self.arrays.get(a) {
                Some(Value::Array(p)) => p.dims.clone(),
                Some(Value::Tuple(_)) | None => unreachable!("`{}` is an array that is bound", a.name()),
            },
            ExpForm::Cond(c, t, e) => {
                let c = self.exp(c)[0];
                self.branch(c, &mut |this| this.exp(t), &mut |this| this.exp(e))
            }
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
        self.b.open();
        let xs = then(self);
        let mut t = self.b.close(Vec::new());
        self.b.open();
        let ys = other(self);
        let mut e = self.b.close(Vec::new());
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

    /// A primitive, or what is known that it is.
    // [accelerate_to_core.prim]  op at the values of its arguments
    pub(super) fn prim(&mut self, prim: Prim, args: Vec<Atom>) -> Atom {
        match self.known(prim, &args) {
            Some(atom) => atom,
            None => self.b.emit(Core::Prim(prim, args), "t"),
        }
    }
    fn known(&self, prim: Prim, args: &[Atom]) -> Option<Atom> {
        let constants: Option<Vec<_>> = args
            .iter()
            .map(|a| match a {
                Atom::Const(c) => Some(*c),
                Atom::Var(_) => None,
            })
            .collect();
        if let Some(constants) = constants {
            return prim.eval(&constants).ok().map(Atom::Const);
        }
        let Prim::Op(op, scalar) = prim else { return None };
        let is = |a: Atom, c| a == Atom::Const(c);
        let (zero, one) = (scalar.zero(), scalar.one());
        match (op, scalar, args) {
            (Op::Lt, INDEX, [i, n]) if self.is_inside(*i, *n) => Some(Atom::bool(true)),
            (Op::Le, INDEX, [z, Atom::Var(i)]) if is(*z, zero) && self.bounds.contains_key(i) => {
                Some(Atom::bool(true))
            }
            (Op::Eq | Op::Le, s, [x, y]) if x == y && !s.is_float() => Some(Atom::bool(true)),
            (Op::Lt | Op::Ne, s, [x, y]) if x == y && !s.is_float() => Some(Atom::bool(false)),
            (Op::Min | Op::Max, s, [x, y]) if x == y && !s.is_float() => Some(*x),
            (Op::Add, s, [x, y]) if s.is_integer() && is(*y, zero) => Some(*x),
            (Op::Add, s, [x, y]) if s.is_integer() && is(*x, zero) => Some(*y),
            (Op::Sub, s, [x, y]) if s.is_integer() && is(*y, zero) => Some(*x),
            (Op::Mul, s, [x, y]) if s.is_integer() && is(*y, one) => Some(*x),
            (Op::Mul, s, [x, y]) if s.is_integer() && is(*x, one) => Some(*y),
            (Op::And, Scalar::Bool, [x, y]) => logical(*x, *y, true),
            (Op::Or, Scalar::Bool, [x, y]) => logical(*x, *y, false),
            (Op::Select, _, [Atom::Const(c), x, y]) => Some(if c.is_true() { *x } else { *y }),
            _ => None,
        }
    }
    /// A primitive of two arguments of this type.
    pub(super) fn op2(&mut self, op: Op, scalar: Scalar, x: Atom, y: Atom) -> Atom {
        self.prim(Prim::Op(op, scalar), vec![x, y])
    }
    /// The product of sizes.
    pub(super) fn product(&mut self, dims: &[Atom]) -> Atom {
        dims.iter().fold(Atom::i64(1), |m, n| self.op2(Op::Mul, INDEX, m, *n))
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

/// `and` (the unit is true) or `or` (the unit is false), where an argument is known.
fn logical(x: Atom, y: Atom, unit: bool) -> Option<Atom> {
    match (x, y) {
        (Atom::Const(c), other) | (other, Atom::Const(c)) => {
            Some(if c.is_true() == unit { other } else { Atom::bool(!unit) })
        }
        (x, y) => (x == y).then_some(x),
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
