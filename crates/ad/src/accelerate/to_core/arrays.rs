//! Array terms: an arm for each form of the grammar.
//!
//! Guarantee: the bindings of a let are walked one after the other; only the depth of a term costs stack.
//!
//! The function `arr` is long: it is the grammar, an arm for each form.

use super::Lower;
use super::delayed::{COSTLY, Form, Pull, Value};
use super::uses::MANY;
use crate::accelerate::language::{AVar, Arr, ArrForm, ArrTy, Exp, Fun, Ty};
use pullback_core::{Atom, Body, Exp as Core, Type};
use pullback_prim::{Scalar, ScalarValue};
use std::rc::Rc;

impl Lower<'_, '_> {
    /// The value of a term where the builder stands.
    pub(super) fn arr(&mut self, u: &Arr) -> Value {
        if u.ty().has_no_scalars() {
            return self.sized(u);
        }
        let ty = || match u.ty() {
            ArrTy::Array(t, _) => t.clone(),
            ArrTy::Tuple(_) => unreachable!("only arrays are made by this form"),
        };
        let array = match u.form() {
            ArrForm::Use(elements, shape, scalar) => self.constants(elements, shape, *scalar),
            ArrForm::Var(a) => return self.variable(a),
            ArrForm::Let(bindings, u) => {
                self.bind(bindings);
                return self.arr(u);
            }
            // [accelerate_to_core.tuple]  (u_1, .., u_n): no array is made
            ArrForm::Tuple(us) => return Value::Tuple(us.iter().map(|u| self.arr(u)).collect()),
            // [accelerate_to_core.proj]  u.k
            ArrForm::Proj(u, k) => match self.arr(u) {
                Value::Tuple(parts) => return parts[*k].clone(),
                Value::Array(_) => unreachable!("the type of the term is that of a tuple"),
            },
            ArrForm::Reshape(e, u) => {
                let dims = self.closed(e);
                let p = self.array(u);
                self.reshape(dims, p)
            }
            ArrForm::Replicate(slc, u) => self.replicate(slc, u),
            ArrForm::Slice(slc, u) => self.slice(slc, u),
            ArrForm::Generate(e, f) => {
                let dims = self.closed(e);
                self.generate(ty(), dims, f)
            }
            ArrForm::Map(f, u) => {
                let p = self.array(u);
                self.map(ty(), f, p)
            }
            ArrForm::ZipWith(f, u, v) => {
                let (p, q) = (self.array(u), self.array(v));
                self.zip_with(ty(), f, p, q)
            }
            ArrForm::Sum(u) => {
                let p = self.array(u);
                self.sum(p)
            }
            ArrForm::Foldl(f, e, u) => {
                let e = self.closed(e);
                let p = self.array(u);
                self.foldl(f, e, p)
            }
            ArrForm::Fold1(f, u) => {
                let p = self.array(u);
                self.fold1(f, p)
            }
            ArrForm::Scanl(f, e, u) => {
                let e = self.closed(e);
                let p = self.array(u);
                self.scanl(f, &e, &p)
            }
            ArrForm::Scanr(f, e, u) => {
                let e = self.closed(e);
                let p = self.array(u);
                self.scanr(f, &e, &p)
            }
            ArrForm::Scanl1(f, u) => {
                let p = self.array(u);
                self.scanl1(f, &p)
            }
            ArrForm::Collect(from, f, first, u) => {
                let first = self.array(first);
                let p = self.array(u);
                self.collect(*from, f, &first, p)
            }
            ArrForm::Iterate(e, step, first) => return self.iterate(e, step, first),
            ArrForm::Permute(c, d, f, u) => {
                let d = self.array(d);
                let p = self.array(u);
                self.permute(c, d, f, p)
            }
            ArrForm::Backpermute(e, f, u) => {
                let dims = self.closed(e);
                let p = self.array(u);
                self.backpermute(dims, f, p)
            }
            ArrForm::Cond(e, u, v) => return self.conditional(e, u, v),
        };
        Value::Array(array)
    }
    /// The value of a term that is an array.
    pub(super) fn array(&mut self, u: &Arr) -> Pull {
        self.arr(u).array()
    }

    // [accelerate_to_core.use]  use c: its elements, in its shape
    fn constants(&mut self, elements: &[ScalarValue], shape: &[usize], scalar: Scalar) -> Pull {
        let ty = Ty::Scalar(scalar);
        let dims: Vec<Atom> = shape.iter().map(|n| Atom::i64(*n as i64)).collect();
        let atoms: Vec<Atom> = elements.iter().map(|c| Atom::Const(*c)).collect();
        if let ([], Some(c)) = (shape, atoms.first()) {
            return Pull::in_memory(ty, dims, vec![*c]);
        }
        let flat = self.b.emit(Core::ArrayLit(Type::Scalar(scalar), atoms), "constants");
        let array = match shape {
            [_] => flat,
            _ => self.b.emit(Core::Reshape { shape: dims.clone(), from: 1, array: flat }, "constants"),
        };
        Pull::in_memory(ty, dims, vec![array])
    }

    // [accelerate_to_core.avar]  a: its value
    pub(super) fn variable(&mut self, a: &AVar) -> Value {
        match self.arrays.get(a) {
            Some(value) => value.clone(),
            None => unreachable!("`{}` is bound where it is read", a.name()),
        }
    }

    // [accelerate_to_core.alet]  let a_1 = u_1 ..: in order, as far as something uses them
    pub(super) fn bind(&mut self, bindings: &[(AVar, Arr)]) {
        for (a, u) in bindings {
            let value = if self.uses.is_read(a) {
                let value = self.arr(u);
                self.kept_parts(a, &mut Vec::new(), value)
            } else if self.uses.is_used(a) {
                self.sized(u)
            } else {
                continue;
            };
            self.arrays.insert(a.clone(), value);
        }
    }
    fn kept_parts(&mut self, a: &AVar, path: &mut Vec<usize>, value: Value) -> Value {
        match value {
            Value::Array(p) => {
                let uses = self.uses.count(a, path);
                let count = p.ty.scalars().len();
                let leaves = match self.stored.contains(a) {
                    true => vec![MANY; count],
                    false => self.uses.leaves(a, path, count),
                };
                Value::Array(self.kept(p, uses, &leaves))
            }
            Value::Tuple(parts) => {
                let mut kept = Vec::new();
                for (k, part) in parts.into_iter().enumerate() {
                    path.push(k);
                    kept.push(self.kept_parts(a, path, part));
                    path.pop();
                }
                Value::Tuple(kept)
            }
        }
    }

    // [accelerate_to_core.generate]  \i. f i
    fn generate(&mut self, ty: Ty, dims: Vec<Atom>, f: &Fun) -> Pull {
        let (f, cost) = (f.clone(), self.cost(&f.body));
        Pull::delayed(ty, dims, cost, move |this, ix| this.apply(&f, ix.to_vec()))
    }
    // [accelerate_to_core.selected]  a function that only chooses leaves makes no elements
    fn selected(&mut self, f: &Fun, p: &Pull) -> Option<Form> {
        if self.cost(&f.body) > 0 || !p.is_stored() {
            return None;
        }
        let scalars = f.param.ty().scalars();
        let leaves: Vec<Atom> = scalars.iter().map(|s| self.b.fresh(Type::Scalar(*s), "x").into()).collect();
        self.b.open();
        let chosen = self.apply(f, leaves.clone());
        self.b.close(Vec::new());
        let places: Option<Vec<usize>> =
            chosen.iter().map(|a| leaves.iter().position(|leaf| leaf == a)).collect();
        places.and_then(|places| p.form.chosen(&places))
    }
    // [accelerate_to_core.map]  \i. f (u ! i)
    fn map(&mut self, ty: Ty, f: &Fun, p: Pull) -> Pull {
        if let Some(form) = self.selected(f, &p) {
            return Pull { ty, dims: p.dims, form, before: None };
        }
        let before = p.before.as_ref().map(|q| Rc::new(self.map(ty.clone(), f, Pull::clone(q))));
        let (f, cost) = (f.clone(), self.cost(&f.body).saturating_add(p.cost()));
        let mapped = Pull::delayed(ty, p.dims.clone(), cost, move |this, ix| {
            let x = this.element(&p, ix);
            this.apply(&f, x)
        });
        Pull { before, ..mapped }
    }
    /// The smaller size of each dimension.
    pub(super) fn smaller(&mut self, p: &Pull, q: &Pull) -> Vec<Atom> {
        p.dims.iter().zip(&q.dims).map(|(m, n)| self.smaller_size(*m, *n)).collect()
    }
    // [accelerate_to_core.zip_with]  \i. f (u ! i, v ! i), with the smaller sizes
    fn zip_with(&mut self, ty: Ty, f: &Fun, p: Pull, q: Pull) -> Pull {
        let dims = self.smaller(&p, &q);
        let cost = self.cost(&f.body).saturating_add(p.cost()).saturating_add(q.cost());
        let f = f.clone();
        Pull::delayed(ty, dims, cost.min(COSTLY), move |this, ix| {
            let xs = this.element(&p, ix);
            let ys = this.element(&q, ix);
            this.apply(&f, [xs, ys].concat())
        })
    }

    // [accelerate_to_core.acond]  if e then u_1 else u_2: the leaves, and those sizes that differ
    fn conditional(&mut self, e: &Exp, u: &Arr, v: &Arr) -> Value {
        let c = self.closed(e)[0];
        if let Atom::Const(c) = c {
            return self.arr(if c.is_true() { u } else { v });
        }
        let mut side = |u: &Arr| {
            self.b.open();
            let stored = self.apart(|this| {
                let value = this.arr(u);
                Value::stored(&this.in_memory(&value))
            });
            (stored, self.b.close(Vec::new()))
        };
        let ((then, t), (other, e)) = (side(u), side(v));
        self.joined(c, (&then, t), (&other, e))
    }
    pub(super) fn joined(
        &mut self,
        c: Atom,
        (then, mut t): (&Value, Body),
        (other, mut e): (&Value, Body),
    ) -> Value {
        let (xs, ys) = (flat(then), flat(other));
        let is_same = |x: &Atom, y: &Atom| x == y;
        for (x, y) in xs.iter().zip(&ys) {
            if !is_same(x, y) {
                t.result.push(*x);
                e.result.push(*y);
            }
        }
        if t.result.is_empty() {
            if t.stms.is_empty() && e.stms.is_empty() {
                return then.clone();
            }
            (t.result, e.result) = (vec![Atom::bool(true)], vec![Atom::bool(true)]);
        }
        let mut made = self.b.emit_all(Core::If(c, t, e), "r").into_iter();
        let results: Vec<Atom> = xs
            .iter()
            .zip(&ys)
            .map(|(x, y)| if is_same(x, y) { *x } else { made.next().map_or(*x, Atom::from) })
            .collect();
        refilled(then, &mut results.into_iter())
    }
}

/// Sizes, then leaves, depth first.
fn flat(value: &Value) -> Vec<Atom> {
    match value {
        Value::Array(p) => [p.dims.clone(), p.leaves()].concat(),
        Value::Tuple(parts) => parts.iter().flat_map(flat).collect(),
    }
}
fn refilled(like: &Value, atoms: &mut dyn Iterator<Item = Atom>) -> Value {
    match like {
        Value::Array(p) => {
            let dims = atoms.take(p.dims.len()).collect();
            let leaves = atoms.take(p.leaves().len()).collect();
            let is_sized = matches!(p.form, Form::Sized);
            let ty = p.ty.clone();
            Value::Array(if is_sized { Pull::sized(ty, dims) } else { Pull::in_memory(ty, dims, leaves) })
        }
        Value::Tuple(parts) => Value::Tuple(parts.iter().map(|v| refilled(v, atoms)).collect()),
    }
}
