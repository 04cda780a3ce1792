//! Types with symbolic sizes: what the generator knows about a value beyond its core type.
//!
//! Every program has two sizes `n` and `m`; the size of a dimension is a linear form in them, so that one program runs
//! at any two sizes (the growth property needs that).

use crate::rng::Rng;
use pullback_core::{Array, Buffer, Type, Value, Variant};
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

/// The two sizes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The first size.
    pub n: usize,
    /// The second size.
    pub m: usize,
}

/// The size of a dimension: `n * sizes.n + m * sizes.m + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// How many `n`.
    pub n: usize,
    /// How many `m`.
    pub m: usize,
    /// The constant.
    pub c: usize,
}

impl Dim {
    /// The size `n`.
    pub const N: Dim = Dim { n: 1, m: 0, c: 0 };
    /// The size `m`.
    pub const M: Dim = Dim { n: 0, m: 1, c: 0 };
    /// A constant size.
    pub fn constant(c: usize) -> Dim {
        Dim { n: 0, m: 0, c }
    }
    /// The number, if it does not depend on the sizes.
    pub fn as_constant(self) -> Option<usize> {
        if self.n == 0 && self.m == 0 { Some(self.c) } else { None }
    }
    /// The number at these sizes.
    pub fn at(self, sizes: Sizes) -> usize {
        self.n * sizes.n + self.m * sizes.m + self.c
    }
    /// The sum of two sizes.
    pub fn plus(self, other: Dim) -> Dim {
        Dim { n: self.n + other.n, m: self.m + other.m, c: self.c + other.c }
    }
    /// A multiple.
    pub fn times(self, k: usize) -> Dim {
        Dim { n: self.n * k, m: self.m * k, c: self.c * k }
    }
}

/// A type with the sizes of its arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shaped {
    /// A scalar.
    Scalar(Scalar),
    /// A product.
    Tuple(Vec<Shaped>),
    /// A sum: the payload of each alternative.
    Sum(Vec<Vec<Shaped>>),
    /// An array; the element is no product.
    Array(Dim, Box<Shaped>),
}

/// Names of the alternatives of generated sums.
const ALTERNATIVES: [&str; 4] = ["a", "b", "c", "d"];

impl Shaped {
    /// `f64`
    pub const F64: Shaped = Shaped::Scalar(Scalar::F64);
    /// `i64`
    pub const I64: Shaped = Shaped::Scalar(Scalar::I64);
    /// `bool`
    pub const BOOL: Shaped = Shaped::Scalar(Scalar::Bool);

    /// An array of this outer size.
    pub fn array(dim: Dim, element: Shaped) -> Shaped {
        Shaped::Array(dim, Box::new(element))
    }
    /// The core type.
    pub fn ty(&self) -> Type {
        match self {
            Shaped::Scalar(s) => Type::Scalar(*s),
            Shaped::Tuple(items) => Type::tuple(items.iter().map(Shaped::ty).collect::<Vec<_>>()),
            Shaped::Sum(alternatives) => Type::Sum(
                alternatives
                    .iter()
                    .zip(ALTERNATIVES)
                    .map(|(fields, name)| Variant {
                        name: name.into(),
                        fields: fields.iter().map(Shaped::ty).collect(),
                    })
                    .collect(),
            ),
            Shaped::Array(_, element) => Type::array(element.ty()),
        }
    }
    /// Whether there are floats inside.
    pub fn has_floats(&self) -> bool {
        match self {
            Shaped::Scalar(s) => s.is_float(),
            Shaped::Tuple(items) => items.iter().any(Shaped::has_floats),
            Shaped::Sum(alternatives) => alternatives.iter().flatten().any(Shaped::has_floats),
            Shaped::Array(_, element) => element.has_floats(),
        }
    }
    /// Whether it is a float or an array of floats of one type.
    pub fn is_numeric(&self) -> bool {
        self.base().is_some_and(Scalar::is_float)
    }
    /// The scalar type below all dimensions, unless there are sums or products.
    pub fn base(&self) -> Option<Scalar> {
        match self {
            Shaped::Scalar(s) => Some(*s),
            Shaped::Array(_, element) => element.base(),
            Shaped::Tuple(_) | Shaped::Sum(_) => None,
        }
    }
    /// The number of array dimensions.
    pub fn rank(&self) -> usize {
        match self {
            Shaped::Array(_, element) => 1 + element.rank(),
            Shaped::Scalar(_) | Shaped::Tuple(_) | Shaped::Sum(_) => 0,
        }
    }
    /// The sizes, outermost first.
    pub fn dims(&self) -> Vec<Dim> {
        match self {
            Shaped::Array(d, element) => std::iter::once(*d).chain(element.dims()).collect(),
            Shaped::Scalar(_) | Shaped::Tuple(_) | Shaped::Sum(_) => Vec::new(),
        }
    }
    /// What is below all array dimensions.
    pub fn innermost(&self) -> &Shaped {
        match self {
            Shaped::Array(_, element) => element.innermost(),
            Shaped::Scalar(_) | Shaped::Tuple(_) | Shaped::Sum(_) => self,
        }
    }
    /// Arrays of these sizes of `element`.
    pub fn of_dims(dims: &[Dim], element: Shaped) -> Shaped {
        dims.iter().rev().fold(element, |t, d| Shaped::array(*d, t))
    }
    /// Whether a scalar of this type is anywhere inside.
    pub fn mentions(&self, scalar: Scalar) -> bool {
        match self {
            Shaped::Scalar(s) => *s == scalar,
            Shaped::Tuple(items) => items.iter().any(|t| t.mentions(scalar)),
            Shaped::Sum(alternatives) => alternatives.iter().flatten().any(|t| t.mentions(scalar)),
            Shaped::Array(_, element) => element.mentions(scalar),
        }
    }

    /// A random value: floats within `bound`; with `ties`, floats from a grid of five numbers that holds 0.
    pub fn random_value(&self, rng: &mut Rng, sizes: Sizes, bound: f64, ties: bool) -> Value {
        match self {
            Shaped::Scalar(s) => Value::Scalar(random_scalar(rng, *s, bound, ties)),
            Shaped::Tuple(items) => {
                Value::Tuple(items.iter().map(|t| t.random_value(rng, sizes, bound, ties)).collect())
            }
            Shaped::Sum(alternatives) => {
                let k = rng.below(alternatives.len());
                let fields = alternatives[k].iter().map(|t| t.random_value(rng, sizes, bound, ties));
                Value::Sum(k, Arc::new(fields.collect()))
            }
            Shaped::Array(..) => {
                let shape: Vec<usize> = self.dims().iter().map(|d| d.at(sizes)).collect();
                let count = shape.iter().product();
                let inner = self.innermost();
                let mut buffer = Buffer::with_capacity(inner.base(), count);
                for _ in 0..count {
                    buffer.push(inner.random_value(rng, sizes, bound, ties));
                }
                Value::Array(Array::new(shape, buffer))
            }
        }
    }
}

fn random_scalar(rng: &mut Rng, s: Scalar, bound: f64, ties: bool) -> ScalarValue {
    if s.is_float() {
        let x = if ties { (rng.below(5) as f64 - 2.0) * 0.5 * bound } else { rng.signed() * bound };
        s.from_f64(x)
    } else if s == Scalar::Bool {
        ScalarValue::Bool(rng.chance(0.5))
    } else {
        s.from_i64(rng.below(8) as i64)
    }
}
