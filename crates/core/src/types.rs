//! Types of core values.

use pullback_base::Symbol;
use pullback_prim::Scalar;
use std::sync::Arc;

pullback_base::index_type! {
    /// A recursive sum type of the program's type table.
    pub struct TypeId
}

/// A type. Sums are structural; recursion goes through the program's type table. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Type {
    /// A scalar.
    Scalar(Scalar),
    /// A product; the empty one is the unit type.
    Tuple(Arc<[Type]>),
    /// A k-ary sum.
    Sum(Arc<[Variant]>),
    /// A (recursive) sum of the type table.
    Named(TypeId),
    /// A regular array of any element that is not a product (arrays of products are products of arrays: `docs/decisions`).
    /// Rank 2 is an array of arrays. Sizes are run-time values.
    Array(Arc<Type>),
    /// An accumulator for a value of this type: may be added to, may not be read.
    Acc(Arc<Type>),
}

/// One alternative of a sum.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Variant {
    /// Its name, without `#`.
    pub name: Symbol,
    /// The types of its payload fields.
    pub fields: Vec<Type>,
}

impl Type {
    /// `f64`
    pub const F64: Type = Type::Scalar(Scalar::F64);
    /// `f32`
    pub const F32: Type = Type::Scalar(Scalar::F32);
    /// `i64`
    pub const I64: Type = Type::Scalar(Scalar::I64);
    /// `bool`
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);

    /// The unit type.
    pub fn unit() -> Type {
        Type::Tuple(Arc::from([]))
    }
    /// The product of these types.
    pub fn tuple(items: impl Into<Vec<Type>>) -> Type {
        Type::Tuple(items.into().into())
    }
    /// The sum of these alternatives.
    pub fn sum(variants: impl IntoIterator<Item = (&'static str, Vec<Type>)>) -> Type {
        Type::Sum(variants.into_iter().map(|(n, fields)| Variant { name: n.into(), fields }).collect())
    }
    /// The sum `#none | #some t`.
    pub fn option(t: Type) -> Type {
        Type::sum([("none", vec![]), ("some", vec![t])])
    }
    /// Arrays of `t`.
    pub fn array(t: Type) -> Type {
        Type::Array(Arc::new(t))
    }
    /// Arrays of `t` of this rank (0: `t` itself).
    pub fn array_of_rank(t: Type, rank: usize) -> Type {
        (0..rank).fold(t, |t, _| Type::array(t))
    }
    /// Many values of this type side by side: arrays of them, where an array of a product is the product of arrays.
    pub fn stacked(&self) -> Type {
        match self {
            Type::Tuple(ts) => Type::Tuple(ts.iter().map(Type::stacked).collect()),
            Type::Scalar(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => {
                Type::array(self.clone())
            }
        }
    }
    /// Accumulators for `t`.
    pub fn acc(t: Type) -> Type {
        Type::Acc(Arc::new(t))
    }
    /// Number of leading array dimensions.
    pub fn rank(&self) -> usize {
        match self {
            Type::Array(t) => 1 + t.rank(),
            Type::Scalar(_) | Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Acc(_) => 0,
        }
    }
    /// The type after removing all array dimensions.
    pub fn base(&self) -> &Type {
        match self {
            Type::Array(t) => t.base(),
            Type::Scalar(_) | Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Acc(_) => self,
        }
    }
    /// The type after removing `n` array dimensions, if there are so many.
    pub fn peel(&self, n: usize) -> Option<&Type> {
        match (n, self) {
            (0, t) => Some(t),
            (_, Type::Array(t)) => t.peel(n - 1),
            _ => None,
        }
    }
    /// What a box holds: the field of a sum with one alternative that has one field. (A box of a product or of an accumulator
    /// is none: arrays have no such elements.)
    pub fn boxed(&self) -> Option<&Type> {
        let Type::Sum(variants) = self else { return None };
        let [Variant { name: _, fields }] = &variants[..] else { return None };
        match &fields[..] {
            [Type::Tuple(_) | Type::Acc(_)] => None,
            [inside] => Some(inside),
            _ => None,
        }
    }
    /// The scalar type, if it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) => Some(*s),
            Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => None,
        }
    }
    /// Whether a recursive sum is inside.
    pub fn is_recursive(&self) -> bool {
        match self {
            Type::Scalar(_) => false,
            Type::Tuple(ts) => ts.iter().any(Type::is_recursive),
            Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).any(Type::is_recursive),
            Type::Named(_) => true,
            Type::Array(t) | Type::Acc(t) => t.is_recursive(),
        }
    }
    /// Whether it is an accumulator.
    pub fn is_acc(&self) -> bool {
        matches!(self, Type::Acc(_))
    }
}

impl From<Scalar> for Type {
    fn from(s: Scalar) -> Type {
        Type::Scalar(s)
    }
}
