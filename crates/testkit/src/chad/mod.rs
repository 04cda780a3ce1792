//! Efficient CHAD under test: random terms, what they cost, and CHAD once more in direct style.
//!
//! The language is that of the thesis' Agda text (6.10.4), as terms of lambda: `f64` for R, `i64` for Z, products and sums of two, primitives
//! of one argument, which is a product for the binary ones. A case is a function whose parameters are the environment, outermost
//! first, with its arguments, a cotangent for its result and the initial cells.

pub mod direct;
pub mod measure;
pub mod mutants;
pub mod price;
pub mod shrink;
pub mod terms;

use crate::rng::Rng;
use pullback_core::{Array, Buffer, Value};
use pullback_lambda::term::{Derivative, Seeds};
use pullback_lambda::{Builder, Exp, FunId, Program, Type};
use pullback_prim::Scalar;
use std::sync::Arc;

/// A function with what its derivative is run on.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// The function.
    pub f: FunId,
    /// Its arguments.
    pub args: Vec<Value>,
    /// A cotangent of its result.
    pub seed: Value,
    /// The cells at first, one per parameter.
    pub cells: Vec<Value>,
}

/// The size of a cotangent as the thesis counts it, which is its potential: one per node, and of a product one less than its components.
pub fn size(bar: &Value, ty: &Type) -> i64 {
    match (bar, ty) {
        (Value::Sum(0, _), _) | (Value::Scalar(_), _) => 1,
        (Value::Sum(_, parts), Type::SparseTuple(types)) => {
            let parts: i64 = parts.iter().zip(types.iter()).map(|(v, t)| size(v, t)).sum();
            types.len().saturating_sub(1).max(1) as i64 + parts
        }
        (Value::Sum(k, part), Type::SparseSum(types)) => 1 + size(&part[0], &types[k - 1]),
        _ => 1,
    }
}

/// A random value of a first-order type.
pub fn value(rng: &mut Rng, ty: &Type) -> Value {
    match ty {
        Type::Scalar(Scalar::F64) => Value::f64(number(rng)),
        Type::Tuple(ts) => Value::Tuple(ts.iter().map(|t| value(rng, t)).collect()),
        Type::Sum(variants) => {
            let k = rng.below(variants.len());
            let fields = variants[k].fields.iter().map(|t| value(rng, t));
            Value::Sum(k, Arc::new(fields.collect()))
        }
        Type::Array(element) => rows(rng, vec![terms::ROWS], element),
        _ => Value::i64(rng.below(7) as i64 - 3),
    }
}

/// A random array of these sizes: arrays of products are products of arrays.
fn rows(rng: &mut Rng, mut sizes: Vec<usize>, element: &Type) -> Value {
    match element {
        Type::Array(inner) => {
            sizes.push(terms::ROWS);
            rows(rng, sizes, inner)
        }
        Type::Tuple(ts) if !ts.is_empty() => {
            Value::Tuple(ts.iter().map(|t| rows(rng, sizes.clone(), t)).collect())
        }
        element => {
            let count = sizes.iter().product();
            let mut buffer = Buffer::with_capacity(element.scalar(), count);
            (0..count).for_each(|_| buffer.push(value(rng, element)));
            Value::Array(Array::new(sizes, buffer))
        }
    }
}

/// A random cotangent with the type of this value, zeros for what is discrete.
pub fn like(rng: &mut Rng, primal: &Value) -> Value {
    let floats: Vec<f64> = primal.floats().iter().map(|_| number(rng)).collect();
    pullback_interp::dual::with_floats(primal, &mut floats.into_iter())
}

/// Small dyadic numbers, zero among them: sums and products of a few are exact.
fn number(rng: &mut Rng) -> f64 {
    (rng.below(17) as f64 - 8.0) / 4.0
}

/// A random cotangent of type `bar` for this primal value: compatible with it, sparse at random.
pub fn cotangent(rng: &mut Rng, primal: &Value, bar: &Type) -> Value {
    match (primal, bar) {
        (_, Type::SparseTuple(_) | Type::SparseSum(_)) if rng.chance(0.25) => Value::Sum(0, Arc::default()),
        (Value::Tuple(items), Type::SparseTuple(bars)) => {
            let parts = items.iter().zip(bars.iter()).map(|(v, t)| cotangent(rng, v, t));
            Value::Sum(1, Arc::new(parts.collect()))
        }
        (Value::Sum(k, fields), Type::SparseSum(bars)) => {
            let payload = payload(fields);
            Value::Sum(k + 1, Arc::new(vec![cotangent(rng, &payload, &bars[*k])]))
        }
        (_, Type::Scalar(Scalar::F64)) => Value::f64(number(rng)),
        _ => Value::Tuple(Vec::new()),
    }
}

/// The fields of an alternative as one value.
pub fn payload(fields: &[Value]) -> Value {
    match fields {
        [one] => one.clone(),
        fields => Value::Tuple(fields.to_vec()),
    }
}

/// Whether a cotangent belongs to a primal value: of a sum the alternative that there is (`compat`).
pub fn fits(primal: &Value, bar: &Value, ty: &Type) -> bool {
    match (primal, bar, ty) {
        (_, Value::Sum(0, _), Type::SparseTuple(_) | Type::SparseSum(_)) => true,
        (Value::Tuple(items), Value::Sum(1, parts), Type::SparseTuple(types)) => {
            items.len() == parts.len()
                && items.iter().zip(parts.iter()).zip(types.iter()).all(|((v, d), t)| fits(v, d, t))
        }
        (Value::Sum(k, fields), Value::Sum(j, part), Type::SparseSum(types)) => {
            k + 1 == *j && fits(&payload(fields), &part[0], &types[*k])
        }
        (Value::Scalar(x), Value::Scalar(d), Type::Scalar(Scalar::F64)) => x.scalar() == d.scalar(),
        (Value::Scalar(_) | Value::Tuple(_), Value::Tuple(unit), _) => unit.is_empty(),
        _ => false,
    }
}

/// The floats of a cotangent, sparse or not, where those of the primal value are, zeros included.
pub fn dense(primal: &Value, bar: &Value, out: &mut Vec<f64>) {
    match (primal, bar) {
        (Value::Scalar(_), Value::Scalar(d)) => out.push(d.as_f64()),
        (Value::Scalar(x), _) => out.extend(x.scalar().is_float().then_some(0.0)),
        (Value::Tuple(items), Value::Sum(1, parts)) => {
            items.iter().zip(parts.iter()).for_each(|(v, d)| dense(v, d, out));
        }
        (Value::Tuple(items), Value::Tuple(parts)) if items.len() == parts.len() => {
            items.iter().zip(parts).for_each(|(v, d)| dense(v, d, out));
        }
        (Value::Sum(_, fields), Value::Sum(j, part)) if *j > 0 => dense(&payload(fields), &part[0], out),
        (Value::Tuple(items), _) => items.iter().for_each(|v| dense(v, bar, out)),
        (Value::Sum(_, fields), _) => fields.iter().for_each(|v| dense(v, bar, out)),
        _ => {}
    }
}

/// Adds `(xs, seed) -> (f xs, cotangents)`, which the interpreter runs by dual numbers.
pub fn by_dual_numbers(program: &mut Program, f: FunId) -> FunId {
    let types: Vec<Type> = program.funs[f].params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let result = program.funs[f].result.clone();
    let mut b = Builder::new(program);
    let product = Type::tuple(types.clone());
    let lam = b.lam("x", product.clone(), |b, x| {
        let args = (0..types.len()).map(|i| {
            let x = b.var(x);
            b.proj(x, i)
        });
        let args = args.collect();
        b.call(f, args)
    });
    let params: Vec<(&str, Type)> =
        types.iter().map(|t| ("x", t.clone())).chain([("seed", result.clone())]).collect();
    let g = b.declare("by_dual_numbers", &params, Type::tuple([result, product]), None);
    let params = b.params(g);
    let args = params[..types.len()].iter().map(|p| b.var(*p)).collect();
    let (arg, seed) = (b.tuple(args), b.var(params[types.len()]));
    let body = b.term(Exp::Vjp(Derivative { f: lam, arg, seed, seeds: Seeds::One, algorithm: None }));
    b.define(g, body);
    g
}
