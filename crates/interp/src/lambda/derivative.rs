//! Derivatives on dual numbers. Tangents and cotangents have the types of the values themselves; their discrete parts
//! are ignored on the way in and zero on the way out, and functions carry none. Many seeds are taken one by one.

use super::machine::Machine;
use super::value::{Arr, Collector, Elems, Node, Num, Store, Val, wrong};
use crate::core::arrays::{agree, mismatch};
use crate::core::compile::deep;
use crate::core::machine::{Res, internal};
use crate::dual::number::Number;
use pullback_lambda::{Derivative, Seeds, Type};
use std::rc::Rc;

/// What happens to a scalar.
type OnNum<'a> = &'a mut dyn FnMut(&Num) -> Res<Num>;

/// Applies `f` to the number inside a float.
fn on_number(x: &Num, f: &mut dyn FnMut(&Number) -> Number) -> Num {
    match x {
        Num::F32(x) => Num::F32(f(x)),
        Num::F64(x) => Num::F64(f(x)),
        other => other.clone(),
    }
}

fn number(x: &Num) -> Option<&Number> {
    match x {
        Num::F32(x) | Num::F64(x) => Some(x),
        Num::I8(_)
        | Num::I16(_)
        | Num::I32(_)
        | Num::I64(_)
        | Num::U8(_)
        | Num::U16(_)
        | Num::U32(_)
        | Num::U64(_)
        | Num::Bool(_) => None,
    }
}

impl Machine<'_> {
    /// `vjp` or `jvp`. Cost: one run of the function per float of the argument, or one run.
    pub(super) fn derivative(&mut self, d: &Derivative, reverse: bool) -> Res<Val> {
        self.step(1)?;
        let f = self.eval(&d.f)?;
        let arg = self.eval(&d.arg)?;
        let seed = self.eval(&d.seed)?;
        match d.seeds {
            Seeds::One => self.once(&f, &arg, &seed, reverse),
            Seeds::Many => self.many(d, &f, &arg, &seed.array()?, reverse),
        }
    }
    fn once(&mut self, f: &Val, arg: &Val, seed: &Val, reverse: bool) -> Res<Val> {
        if reverse { self.reverse(f, arg, seed) } else { self.forward(f, arg, seed) }
    }
    /// One derivative per seed, one after the other. Without seeds the function is only run.
    fn many(&mut self, d: &Derivative, f: &Val, arg: &Val, seeds: &Arr, reverse: bool) -> Res<Val> {
        let element = match d.f.ty() {
            _ if reverse => d.arg.ty(),
            Type::Fun(_, result) => result,
            _ => return Err(internal("a derivative of what is no function")),
        };
        let n = seeds.outer()?;
        let mut out = Collector::new(&self.meter, element, Some(n))?;
        let mut value = None;
        for i in 0..n {
            let seed = seeds.part(&self.meter, 1, i)?;
            let Val::Tuple(both) = self.once(f, arg, &seed, reverse)? else {
                return Err(internal("a derivative that is no pair"));
            };
            let [first, derivative] = &both.items[..] else {
                return Err(internal("a derivative that is no pair"));
            };
            out.push(derivative.clone())?;
            value.get_or_insert_with(|| first.clone());
        }
        let value = match value {
            Some(value) => value,
            None => self.apply(f, arg.clone())?,
        };
        out.see(if reverse { arg } else { &value })?;
        let derivatives = Val::Arr(out.finish()?);
        self.tuple(vec![value, derivatives])
    }
    fn forward(&mut self, f: &Val, arg: &Val, tangent: &Val) -> Res<Val> {
        let level = self.dual.fresh_level();
        let mut tangents = Vec::new();
        self.pair_floats(arg, tangent, &mut |_, t| {
            tangents.push(t.clone());
            Ok(())
        })?;
        let mut tangents = tangents.into_iter();
        let dual = self.each_float(arg, &mut |x| {
            let t = tangents.next().ok_or_else(|| internal("too few tangents"))?;
            let t = number(&t).cloned().ok_or_else(|| internal("a tangent that is no float"))?;
            Ok(on_number(x, &mut |x| Number::pair(level, x.clone(), t.clone())))
        })?;
        let result = self.apply(f, dual)?;
        let value = self.each_float(&result, &mut |x| Ok(on_number(x, &mut |x| x.split(level).0)))?;
        let tangent = self.each_float_and_zero(&result, &mut |x| {
            Ok(on_number(x, &mut |x| x.split(level).1.unwrap_or(Number::Real(0.0))))
        })?;
        self.tuple(vec![value, tangent])
    }
    fn reverse(&mut self, f: &Val, arg: &Val, cotangent: &Val) -> Res<Val> {
        let mut total = 0;
        self.each_float(arg, &mut |x| {
            total += 1;
            Ok(x.clone())
        })?;
        let mut slopes = Vec::with_capacity(total);
        let mut value = None;
        for k in 0..total {
            let level = self.dual.fresh_level();
            let mut position = 0;
            let dual = self.each_float(arg, &mut |x| {
                position += 1;
                let here = position == k + 1;
                Ok(on_number(x, &mut |x| {
                    if here { Number::pair(level, x.clone(), Number::Real(1.0)) } else { x.clone() }
                }))
            })?;
            let result = self.apply(f, dual)?;
            let mut slope = Number::Real(0.0);
            self.pair_floats(&result, cotangent, &mut |x, c| {
                if let (Some(x), Some(c)) = (number(x), number(c))
                    && let Some(t) = x.split(level).1
                {
                    slope = slope.add(&c.strong(&t));
                }
                Ok(())
            })?;
            slopes.push(slope);
            if value.is_none() {
                value = Some(self.each_float(&result, &mut |x| Ok(on_number(x, &mut |x| x.split(level).0)))?);
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.apply(f, arg.clone())?,
        };
        let mut slopes = slopes.into_iter();
        let gradient = self.each_float_and_zero(arg, &mut |x| {
            let slope = slopes.next().unwrap_or(Number::Real(0.0));
            Ok(on_number(x, &mut |_| slope.clone()))
        })?;
        self.tuple(vec![value, gradient])
    }

    /// Replaces every float of data, in order; functions and computations stay as they are.
    pub(super) fn each_float(&self, value: &Val, f: OnNum<'_>) -> Res<Val> {
        self.each_scalar(value, &mut |x| if x.scalar().is_float() { f(x) } else { Ok(x.clone()) })
    }
    /// Replaces every float, in order, and everything discrete by zero.
    fn each_float_and_zero(&self, value: &Val, f: OnNum<'_>) -> Res<Val> {
        self.each_scalar(value, &mut |x| {
            if x.scalar().is_float() { f(x) } else { Ok(Num::lift(x.scalar().zero())) }
        })
    }
    fn each_scalar(&self, value: &Val, f: OnNum<'_>) -> Res<Val> {
        let mut node = |n: &Node| -> Res<Rc<Node>> {
            let items = n.items.iter().map(|v| deep(|| self.each_scalar(v, f))).collect::<Res<Vec<_>>>()?;
            Node::new(&self.meter, items)
        };
        Ok(match value {
            Val::Num(x) => Val::Num(f(x)?),
            Val::Tuple(n) => Val::Tuple(node(n)?),
            Val::Sum(k, n) => Val::Sum(*k, node(n)?),
            Val::SparseTuple(n) => Val::SparseTuple(node(n)?),
            Val::SparseSum(k, n) => Val::SparseSum(*k, node(n)?),
            Val::Arr(a) => Val::Arr(self.each_element(a, f)?),
            Val::Fun(..)
            | Val::SparseZero
            | Val::Bag(..)
            | Val::Evm(..)
            | Val::Io(..)
            | Val::Staged(_)
            | Val::Map(_)
            | Val::Mut(_)
            | Val::Gone => value.clone(),
        })
    }
    fn each_element(&self, a: &Arr, f: OnNum<'_>) -> Res<Arr> {
        match &a.elems {
            Elems::Product(parts) => {
                // Row by row, so that the order is that of the elements.
                let n = a.count();
                let mut columns: Vec<Vec<Val>> = vec![Vec::with_capacity(n); parts.len()];
                let mut shapes = Vec::with_capacity(parts.len());
                let k = a.shape.len();
                for i in 0..n {
                    for (column, part) in columns.iter_mut().zip(parts) {
                        let item = part.part(&self.meter, k, i)?;
                        column.push(deep(|| self.each_scalar(&item, f))?);
                    }
                }
                for (part, column) in parts.iter().zip(columns) {
                    let mut part = part.clone();
                    part.own(&self.meter)?;
                    for (i, value) in column.iter().enumerate() {
                        part.write("derivative", k, i, value)?;
                    }
                    shapes.push(part);
                }
                Ok(Arr { shape: a.shape.clone(), elems: Elems::Product(shapes) })
            }
            Elems::Cells { offset, data } => {
                let n = a.count();
                let mut store = Store::with_capacity(data.store.kind(), n);
                for i in *offset..offset + n {
                    store.push(deep(|| self.each_scalar(&data.store.get(i), f))?)?;
                }
                Arr::from_store(&self.meter, &a.shape, store)
            }
        }
    }

    /// Walks over a value and a tangent of the same type together, in the order of [`Machine::each_float`].
    fn pair_floats(&self, value: &Val, tangent: &Val, f: &mut dyn FnMut(&Num, &Num) -> Res<()>) -> Res<()> {
        let mut nodes = |a: &Node, b: &Node| {
            if a.items.len() != b.items.len() {
                return Err(internal("a tangent with another number of components"));
            }
            a.items.iter().zip(&b.items).try_for_each(|(a, b)| deep(|| self.pair_floats(a, b, f)))
        };
        match (value, tangent) {
            (Val::Num(x), Val::Num(t)) if x.scalar().is_float() => f(x, t),
            (Val::Num(_), Val::Num(_)) => Ok(()),
            (Val::Tuple(a), Val::Tuple(b)) | (Val::SparseTuple(a), Val::SparseTuple(b)) => nodes(a, b),
            (Val::Sum(j, a), Val::Sum(k, b)) | (Val::SparseSum(j, a), Val::SparseSum(k, b)) if j == k => {
                nodes(a, b)
            }
            (Val::Sum(j, _), Val::Sum(k, _)) | (Val::SparseSum(j, _), Val::SparseSum(k, _)) => {
                Err(internal(format!("a tangent of alternative {k} for a value of alternative {j}")))
            }
            (Val::SparseZero, Val::SparseZero) | (Val::Fun(..), Val::Fun(..)) => Ok(()),
            (Val::Arr(a), Val::Arr(b)) => {
                if !agree(&a.shape, &b.shape) {
                    return Err(mismatch("tangent of an array", &a.shape, &b.shape));
                }
                let k = a.shape.len();
                for i in 0..a.count() {
                    let (x, t) = (a.part(&self.meter, k, i)?, b.part(&self.meter, k, i)?);
                    deep(|| self.pair_floats(&x, &t, f))?;
                }
                Ok(())
            }
            (_, tangent) => Err(wrong("a tangent of the type of its value", tangent)),
        }
    }
}
