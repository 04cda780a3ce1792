//! Types of lambda terms.

use pullback_base::Symbol;
use pullback_prim::Scalar;
use std::sync::Arc;

pullback_base::index_type! {
    /// A recursive sum type of the program's type table.
    pub struct TypeId
}

/// A type. Sums are structural; recursion goes through the program's type table. Cheap to clone.
///
/// Records are tuples here: their field names live in [`crate::Entry`] only.
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
    /// An array of any element. Rank 2 is an array of arrays. Sizes are run-time values.
    Array(Arc<Type>),
    /// A function of one argument; functions of several arguments are curried.
    Fun(Arc<Type>, Arc<Type>),

    /// A linear function: a monoid homomorphism between types with zero and plus.
    Linear(Arc<Type>, Arc<Type>),
    /// A sparse product (Efficient CHAD, thesis 6.3.1): zero, or all components. Zero costs O(1).
    SparseTuple(Arc<[Type]>),
    /// A sparse sum: zero, or one alternative with its cotangent.
    SparseSum(Arc<[Type]>),
    /// A bag of values at positions, each position any number of times: the cotangent of an array (thesis 6.6). Zero and
    /// addition cost O(1).
    Bag(Arc<Type>),
    /// A computation that accumulates into an environment of cells of the first types (innermost first) and returns
    /// the second: `EVM G a` of thesis 6.3.2. Addition is its only effect, so computations commute.
    Evm(Arc<[Type]>, Arc<Type>),
    /// Staged linear calls that will yield a cotangent of this type: `Staged c` of "dual numbers" 6.2.
    Staged(Arc<Type>),
    /// A finite map from `i64` keys, ordered by key. Persistent.
    Map(Arc<Type>),
    /// A computation with mutable arrays.
    Io(Arc<Type>),
    /// A mutable, growable array; only computations touch its cells.
    MutArray(Arc<Type>),
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
    /// `#apart (#below () | #above ()) | #zero ()`: below zero, above zero; zero or NaN.
    pub fn sign() -> Type {
        let side = Type::sum([("below", vec![Type::unit()]), ("above", vec![Type::unit()])]);
        Type::sum([("apart", vec![side]), ("zero", vec![Type::unit()])])
    }
    /// Arrays of `t`.
    pub fn array(t: Type) -> Type {
        Type::Array(Arc::new(t))
    }
    /// Arrays of `t` of this rank (0: `t` itself).
    pub fn array_of_rank(t: Type, rank: usize) -> Type {
        (0..rank).fold(t, |t, _| Type::array(t))
    }
    /// Functions from `a` to `b`.
    pub fn fun(a: Type, b: Type) -> Type {
        Type::Fun(Arc::new(a), Arc::new(b))
    }
    /// Curried functions of several arguments.
    pub fn funs(params: impl IntoIterator<Item = Type, IntoIter: DoubleEndedIterator>, result: Type) -> Type {
        params.into_iter().rev().fold(result, |r, a| Type::fun(a, r))
    }
    /// Linear functions from `a` to `b`.
    pub fn linear(a: Type, b: Type) -> Type {
        Type::Linear(Arc::new(a), Arc::new(b))
    }
    /// Accumulating computations over the cells `env`.
    pub fn evm(env: impl Into<Arc<[Type]>>, result: Type) -> Type {
        Type::Evm(env.into(), Arc::new(result))
    }
    /// Bags of values at positions.
    pub fn bag(t: Type) -> Type {
        Type::Bag(Arc::new(t))
    }
    /// Computations with mutable arrays.
    pub fn io(t: Type) -> Type {
        Type::Io(Arc::new(t))
    }
    /// Number of leading array dimensions.
    pub fn rank(&self) -> usize {
        let mut rank = 0;
        let mut t = self;
        while let Type::Array(inner) = t {
            rank += 1;
            t = inner;
        }
        rank
    }
    /// The element type of an array type.
    pub fn elem(&self) -> Option<&Type> {
        if let Type::Array(t) = self { Some(t) } else { None }
    }
    /// The type after removing `n` array dimensions, if there are so many.
    pub fn peel(&self, n: usize) -> Option<&Type> {
        (0..n).try_fold(self, |t, _| t.elem())
    }
    /// The scalar type, if it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        if let Type::Scalar(s) = self { Some(*s) } else { None }
    }
    /// The components of a product type.
    pub fn items(&self) -> Option<&[Type]> {
        if let Type::Tuple(ts) = self { Some(ts) } else { None }
    }
    /// Whether it is the unit type.
    pub fn is_unit(&self) -> bool {
        self.items().is_some_and(<[Type]>::is_empty)
    }
}

impl From<Scalar> for Type {
    fn from(s: Scalar) -> Type {
        Type::Scalar(s)
    }
}

impl std::fmt::Display for Type {
    /// The form the reader reads; a type of the type table is `$` and its number.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |f: &mut std::fmt::Formatter<'_>, ts: &[Type], close: &str| {
            for (i, t) in ts.iter().enumerate() {
                write!(f, "{}{t}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(close)
        };
        match self {
            Type::Scalar(s) => write!(f, "{s}"),
            Type::Tuple(ts) => {
                f.write_str("(")?;
                list(f, ts, if ts.len() == 1 { ",)" } else { ")" })
            }
            Type::Sum(vs) => {
                f.write_str("{")?;
                for (i, v) in vs.iter().enumerate() {
                    write!(
                        f,
                        "{}#{}",
                        if i == 0 { "" } else { " | " },
                        crate::print::quoted(v.name.as_str())
                    )?;
                    v.fields.iter().try_for_each(|t| write!(f, " {t}"))?;
                }
                f.write_str("}")
            }
            Type::Named(id) => write!(f, "${}", pullback_base::index::Index::index(*id)),
            Type::Array(t) => write!(f, "[]{t}"),
            Type::Fun(a, b) => write!(f, "<{a} -> {b}>"),
            Type::Linear(a, b) => write!(f, "<{a} -o {b}>"),
            Type::SparseTuple(ts) => {
                f.write_str("sparse(")?;
                list(f, ts, ")")
            }
            Type::SparseSum(ts) => {
                f.write_str("oneof(")?;
                list(f, ts, ")")
            }
            Type::Bag(t) => write!(f, "bag({t})"),
            Type::Evm(env, t) => {
                f.write_str("evm[")?;
                list(f, env, "]")?;
                write!(f, "({t})")
            }
            Type::Staged(t) => write!(f, "staged({t})"),
            Type::Map(t) => write!(f, "map({t})"),
            Type::Io(t) => write!(f, "io({t})"),
            Type::MutArray(t) => write!(f, "mut({t})"),
        }
    }
}
