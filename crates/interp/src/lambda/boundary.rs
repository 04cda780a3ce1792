//! Values that enter and leave the interpreter, by their types.
//!
//! Outside, an array of products is a product of arrays (of the same outer sizes), as in core; an array of units is an
//! array of boxed empty products. A sparse zero is alternative 0 without payload; a sparse product that is not zero is
//! alternative 1 with its components; alternative `k` of a sparse sum is alternative `k + 1`. A bag is an array of boxed pairs of position and
//! value, in the order in which it was put together.

use super::value::{Arr, BagForm, Elems, Node, Num, Store, Val, wrong};
use crate::core::arrays::{agree, mismatch};
use crate::core::compile::deep;
use crate::core::machine::{Res, fail, internal};
use crate::core::value::{Meter, Shape};
use pullback_base::RuntimeErrorKind;
use pullback_core::{Array, Buffer, Value};
use pullback_lambda::{Program, Type};
use std::rc::Rc;
use std::sync::Arc;

/// How deeply a value that leaves or enters the interpreter may be nested.
const MAX_DEPTH: usize = 2_000;

/// Conversions for one program.
pub(crate) struct Boundary<'a> {
    pub(crate) program: &'a Program,
    pub(crate) meter: &'a Rc<Meter>,
}

fn too_deep(what: &str) -> Box<pullback_base::RuntimeError> {
    let message = format!("{what} is nested more than {MAX_DEPTH} levels deep");
    fail(RuntimeErrorKind::Limit, message)
}

impl Boundary<'_> {
    /// Takes in an argument. Errors: nested too deeply; not of the type (`Internal`).
    pub(crate) fn enter(&self, value: &Value, ty: &Type, depth: usize) -> Res<Val> {
        if depth > MAX_DEPTH {
            return Err(too_deep("an argument"));
        }
        let bad = || internal(format!("a value that is not of type {ty}"));
        let all = |vs: &[Value], ts: &[Type]| {
            if vs.len() != ts.len() {
                return Err(bad());
            }
            let items = vs.iter().zip(ts).map(|(v, t)| deep(|| self.enter(v, t, depth + 1)));
            Node::new(self.meter, items.collect::<Res<Vec<_>>>()?)
        };
        match (value, ty) {
            (Value::Scalar(x), Type::Scalar(s)) if x.scalar() == *s => Ok(Val::Num(Num::lift(*x))),
            (Value::Tuple(vs), Type::Tuple(ts)) => Ok(Val::Tuple(all(vs, ts)?)),
            (Value::Sum(k, vs), Type::Sum(_) | Type::Named(_)) => {
                let fields = self.program.variants(ty).and_then(|alts| alts.get(*k)).ok_or_else(bad)?;
                Ok(Val::Sum(*k, all(vs, &fields.fields)?))
            }
            (Value::Sum(0, vs), Type::SparseTuple(_) | Type::SparseSum(_)) if vs.is_empty() => {
                Ok(Val::SparseZero)
            }
            (Value::Sum(1, vs), Type::SparseTuple(ts)) => Ok(Val::SparseTuple(all(vs, ts)?)),
            (Value::Sum(k, vs), Type::SparseSum(ts)) if *k > 0 => {
                let t = ts.get(k - 1).ok_or_else(bad)?;
                Ok(Val::SparseSum(k - 1, all(vs, std::slice::from_ref(t))?))
            }
            (Value::Array(a), Type::Bag(t)) if a.shape.len() == 1 => {
                let mut bag = Val::Bag(BagForm::Empty, Node::new(self.meter, Vec::new())?);
                for pair in a.elements() {
                    let Value::Tuple(pair) = pair else { return Err(bad()) };
                    let (Some(Value::Scalar(i)), Some(x)) = (pair.first(), pair.get(1)) else {
                        return Err(bad());
                    };
                    let x = deep(|| self.enter(x, t, depth + 1))?;
                    let one = Val::Bag(BagForm::One(i.as_i64()), Node::new(self.meter, vec![x])?);
                    bag = Val::Bag(BagForm::Both, Node::new(self.meter, vec![bag, one])?);
                }
                Ok(bag)
            }
            (value, Type::Array(_)) => self.enter_array(value, ty, depth).map(Val::Arr),
            _ => Err(bad()),
        }
    }
    fn enter_array(&self, value: &Value, ty: &Type, depth: usize) -> Res<Arr> {
        if depth > MAX_DEPTH {
            return Err(too_deep("an argument"));
        }
        let bad = || internal(format!("a value that is not of type {ty}"));
        let rank = ty.rank();
        let base = ty.peel(rank).ok_or_else(bad)?;
        match (value, base) {
            (Value::Tuple(parts), Type::Tuple(ts)) if !ts.is_empty() && ts.len() == parts.len() => {
                let parts = parts.iter().zip(ts.iter()).map(|(v, t)| {
                    let t = Type::array_of_rank(t.clone(), rank);
                    deep(|| self.enter_array(v, &t, depth + 1))
                });
                let parts = parts.collect::<Res<Vec<_>>>()?;
                let shape = Shape::new(&parts[0].shape[..rank]);
                for p in &parts {
                    if !agree(&p.shape[..rank], &shape) {
                        return Err(mismatch("components of an array of products", &shape, &p.shape[..rank]));
                    }
                }
                Ok(Arr { shape, elems: Elems::Product(parts) })
            }
            (Value::Array(a), Type::Tuple(ts)) if ts.is_empty() && a.shape.len() == rank => {
                Ok(Arr { shape: Shape::new(&a.shape), elems: Elems::Product(Vec::new()) })
            }
            (Value::Array(a), base) => {
                if a.shape.len() != rank
                    || a.offset + a.count() > a.data.len()
                    || a.data.scalar() != base.scalar()
                {
                    return Err(bad());
                }
                let mut store = Store::with_capacity(base.scalar(), a.count());
                for v in a.elements() {
                    store.push(deep(|| self.enter(&v, base, depth + 1))?)?;
                }
                Arr::from_store(self.meter, &a.shape, store)
            }
            _ => Err(bad()),
        }
    }

    /// Hands out a result; floats lose everything but their primal part. Errors: nested too deeply; not data.
    pub(crate) fn leave(&self, value: &Val, ty: &Type, depth: usize) -> Res<Value> {
        if depth > MAX_DEPTH {
            return Err(too_deep("a result"));
        }
        let all = |node: &Node, ts: &[Type]| {
            let items = node.items.iter().zip(ts).map(|(v, t)| deep(|| self.leave(v, t, depth + 1)));
            items.collect::<Res<Vec<_>>>()
        };
        match (value, ty) {
            (Val::Num(x), Type::Scalar(_)) => Ok(Value::Scalar(x.primal())),
            (Val::Tuple(node), Type::Tuple(ts)) => Ok(Value::Tuple(all(node, ts)?)),
            (Val::Sum(k, node), Type::Sum(_) | Type::Named(_)) => {
                let fields = self.program.variants(ty).and_then(|alts| alts.get(*k));
                let fields = fields.ok_or_else(|| internal("no such alternative"))?;
                Ok(Value::Sum(*k, Arc::new(all(node, &fields.fields)?)))
            }
            (Val::SparseZero, Type::SparseTuple(_) | Type::SparseSum(_)) => Ok(Value::Sum(0, Arc::default())),
            (Val::SparseTuple(node), Type::SparseTuple(ts)) => Ok(Value::Sum(1, Arc::new(all(node, ts)?))),
            (Val::SparseSum(k, node), Type::SparseSum(ts)) => {
                let t = ts.get(*k).ok_or_else(|| internal("no such alternative"))?;
                Ok(Value::Sum(k + 1, Arc::new(all(node, std::slice::from_ref(t))?)))
            }
            (Val::Bag(..), Type::Bag(t)) => {
                let mut pairs = Vec::new();
                let mut pending = vec![value.clone()];
                while let Some(bag) = pending.pop() {
                    let Val::Bag(form, node) = bag else { return Err(wrong("a bag", &bag)) };
                    let mut pair = |i: i64, x: &Val| -> Res<()> {
                        let x = deep(|| self.leave(x, t, depth + 1))?;
                        pairs.push(Value::Tuple(vec![Value::i64(i), x]));
                        Ok(())
                    };
                    match form {
                        BagForm::Empty => {}
                        BagForm::One(i) => pair(i, node.item(0)?)?,
                        BagForm::Both => pending.extend(node.items.iter().rev().cloned()),
                        BagForm::Array => {
                            let (ix, xs) = (node.item(0)?.clone().array()?, node.item(1)?.clone().array()?);
                            for k in 0..ix.outer()? {
                                let Val::Num(Num::I64(i)) = ix.part(self.meter, 1, k)? else {
                                    return Err(internal("a position that is no i64"));
                                };
                                pair(i, &xs.part(self.meter, 1, k)?)?;
                            }
                        }
                    }
                }
                Ok(Value::Array(Array::new(vec![pairs.len()], Buffer::Boxed(pairs))))
            }
            (Val::Arr(a), Type::Array(_)) => self.leave_array(a, ty, depth),
            (value, _) => Err(wrong(&format!("a value of type {ty}"), value)),
        }
    }
    fn leave_array(&self, a: &Arr, ty: &Type, depth: usize) -> Res<Value> {
        if depth > MAX_DEPTH {
            return Err(too_deep("a result"));
        }
        let rank = ty.rank();
        let base = ty.peel(rank).unwrap_or(ty);
        match (&a.elems, base) {
            (Elems::Product(_), Type::Tuple(ts)) if ts.is_empty() => {
                let units = vec![Value::Tuple(Vec::new()); a.count()];
                Ok(Value::Array(Array::new(a.shape.to_vec(), Buffer::Boxed(units))))
            }
            (Elems::Product(parts), Type::Tuple(ts)) => {
                let parts = parts.iter().zip(ts.iter()).map(|(p, t)| {
                    let t = Type::array_of_rank(t.clone(), rank);
                    deep(|| self.leave_array(p, &t, depth + 1))
                });
                Ok(Value::Tuple(parts.collect::<Res<Vec<_>>>()?))
            }
            (Elems::Cells { offset, data }, base) => {
                let n = a.count();
                let mut buffer = Buffer::with_capacity(base.scalar(), n);
                for i in *offset..offset + n {
                    let value = deep(|| self.leave(&data.store.get(i), base, depth + 1))?;
                    buffer.push(value);
                }
                Ok(Value::Array(Array::new(a.shape.to_vec(), buffer)))
            }
            (Elems::Product(_), _) => Err(internal("an array of products of another type")),
        }
    }
}
