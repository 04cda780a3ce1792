//! Terms of which only the sizes are wanted: none of their elements is evaluated.

use super::Lower;
use super::delayed::{Pull, Value};
use super::folds::split;
use crate::accelerate::language::{Arr, ArrForm, ArrTy};
use pullback_core::Atom;
use pullback_prim::Op;

impl Lower<'_, '_> {
    /// The sizes of a term where the builder stands.
    pub(super) fn sized(&mut self, u: &Arr) -> Value {
        let dims = match u.form() {
            ArrForm::Use(_, shape, _) => shape.iter().map(|n| Atom::i64(*n as i64)).collect(),
            ArrForm::Var(a) => return self.variable(a).without_elements(),
            ArrForm::Let(bindings, u) => {
                self.bind(bindings);
                return self.sized(u);
            }
            ArrForm::Tuple(us) => return Value::Tuple(us.iter().map(|u| self.sized(u)).collect()),
            ArrForm::Proj(u, k) => match self.sized(u) {
                Value::Tuple(parts) => return parts[*k].clone(),
                Value::Array(_) => unreachable!("the type of the term is that of a tuple"),
            },
            ArrForm::Reshape(e, _) | ArrForm::Generate(e, _) | ArrForm::Backpermute(e, ..) => self.closed(e),
            ArrForm::Replicate(slc, u) => {
                let entries = self.entries(slc);
                let sizes = self.sized(u).array().dims;
                let mut sizes = sizes.into_iter();
                entries.into_iter().filter_map(|e| e.or_else(|| sizes.next())).collect()
            }
            ArrForm::Slice(slc, u) => {
                let sizes = self.sized(u).array().dims;
                sizes.into_iter().zip(slc).filter(|(_, e)| e.is_none()).map(|(n, _)| n).collect()
            }
            ArrForm::Map(_, u) | ArrForm::Scanl1(_, u) | ArrForm::Permute(_, u, ..) => {
                self.sized(u).array().dims
            }
            ArrForm::ZipWith(_, u, v) => {
                let (p, q) = (self.sized(u).array(), self.sized(v).array());
                self.smaller(&p, &q)
            }
            ArrForm::Sum(u) | ArrForm::Foldl(_, _, u) | ArrForm::Fold1(_, u) => {
                split(&self.sized(u).array()).0
            }
            ArrForm::Scanl(_, _, u) | ArrForm::Scanr(_, _, u) => {
                let (outer, width) = split(&self.sized(u).array());
                let size = self.size(Op::Add, width, Atom::i64(1));
                [outer, vec![size]].concat()
            }
            ArrForm::Collect(_, _, u, v) => {
                let (p, q) = (self.sized(u).array(), self.sized(v).array());
                let outer = self.smaller(&p, &q);
                let size = self.size(Op::Add, split(&q).1, Atom::i64(1));
                [outer, vec![size]].concat()
            }
            ArrForm::Iterate(e, _, first) => {
                let n = self.closed(e)[0];
                let count = self.size(Op::Add, n, Atom::i64(1));
                return self.sized(first).repeated(count);
            }
            ArrForm::Cond(e, u, v) => {
                let c = self.closed(e)[0];
                let mut side = |u: &Arr| {
                    self.b.open();
                    let value = self.apart(|this| this.sized(u));
                    (value, self.b.close(Vec::new()))
                };
                let ((then, t), (other, e)) = (side(u), side(v));
                return self.joined(c, (&then, t), (&other, e));
            }
        };
        match u.ty() {
            ArrTy::Array(ty, _) => Value::Array(Pull::sized(ty.clone(), dims)),
            ArrTy::Tuple(_) => unreachable!("only arrays are made by these forms"),
        }
    }
}

impl Value {
    fn repeated(&self, n: Atom) -> Value {
        match self {
            Value::Array(p) => Value::Array(Pull::sized(p.ty.clone(), [&[n], &p.dims[..]].concat())),
            Value::Tuple(parts) => Value::Tuple(parts.iter().map(|v| v.repeated(n)).collect()),
        }
    }
    fn without_elements(&self) -> Value {
        match self {
            Value::Array(p) => Value::Array(Pull::sized(p.ty.clone(), p.dims.clone())),
            Value::Tuple(parts) => Value::Tuple(parts.iter().map(Value::without_elements).collect()),
        }
    }
}
