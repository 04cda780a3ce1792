//! Arithmetic of numbers with derivatives, written once for all of them.
//!
//! A lifted type says how a value and its partial derivatives become a new number (`unary`, `binary`); everything else is the same:
//! each operation asks its rule, which computes with the numbers one level below.

use crate::Scalar;

/// Operators and `Scalar` for a type with the inherent functions `lift`, `primal`, `unary` and `binary`. The last two have relatives:
/// `linear_..` where partial derivatives are plain numbers, `steep_..` where they are not finite at some finite arguments (at an edge of the
/// domain, or where they overflow). The braces hold the methods of `Scalar` that the types do in their own ways.
///
/// What records itself, by the inherent function `many`, has `lifted!(@recorded inner)` among these, and its inherent functions by
/// `lifted!(@rows inner)`.
///
/// Arithmetic with plain numbers comes from `lifted!(@constants [generics] type, inner, f64)`.
macro_rules! lifted {
    ([$($generics:tt)*] $type:ty, $inner:ident, { $($special:tt)* }) => {
        lifted!(@operator [$($generics)*] $type, linear_binary, Add, add, AddAssign, add_assign);
        lifted!(@operator [$($generics)*] $type, linear_binary, Sub, sub, SubAssign, sub_assign);
        lifted!(@operator [$($generics)*] $type, binary, Mul, mul, MulAssign, mul_assign);
        lifted!(@operator [$($generics)*] $type, steep_binary, Div, div, DivAssign, div_assign);

        impl<$($generics)*> std::ops::Neg for $type {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                self.linear_unary(-self.primal(), -$inner::Float::one())
            }
        }
        impl<$($generics)*> std::ops::Neg for &$type {
            type Output = $type;
            #[inline(always)]
            fn neg(self) -> $type {
                -*self
            }
        }
        impl<$($generics)*> PartialEq for $type {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool {
                self.value() == other.value()
            }
        }
        impl<$($generics)*> PartialOrd for $type {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.value().partial_cmp(&other.value())
            }
        }
        impl<$($generics)*> std::iter::Sum for $type {
            #[inline]
            fn sum<I: Iterator<Item = Self>>(xs: I) -> Self {
                xs.reduce(|a, b| a + b).unwrap_or_else(Self::zero)
            }
        }
        impl<'x, $($generics)*> std::iter::Sum<&'x $type> for $type {
            #[inline]
            fn sum<I: Iterator<Item = &'x Self>>(xs: I) -> Self {
                xs.copied().sum()
            }
        }
        impl<$($generics)*> std::iter::Product for $type {
            #[inline]
            fn product<I: Iterator<Item = Self>>(xs: I) -> Self {
                xs.reduce(|a, b| a * b).unwrap_or_else(Self::one)
            }
        }
        impl<$($generics)*> crate::Scalar for $type {
            type Float = $inner::Float;
            #[inline(always)]
            fn constant(x: Self::Float) -> Self {
                Self::lift($inner::constant(x))
            }
            #[inline(always)]
            fn value(self) -> Self::Float {
                self.primal().value()
            }
            lifted!(@unary unary: sin cos tan atan tanh asinh sigmoid abs);
            lifted!(@unary steep_unary: recip sqrt cbrt exp exp2 exp_m1 ln log2 log10 ln_1p asin acos sinh cosh acosh atanh);
            lifted!(@binary binary: hypot max min);
            lifted!(@binary steep_binary: atan2);
            #[inline(always)]
            fn pow(self, e: Self) -> Self {
                let (y, da, de) = crate::rules::pow(self.primal(), e.primal());
                self.steep_binary(e, y, da, de)
            }
            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                let (y, d) = crate::rules::powi(self.primal(), n);
                self.steep_unary(y, d)
            }
            #[inline(always)]
            fn powf(self, e: Self::Float) -> Self {
                let (y, d) = crate::rules::powf(self.primal(), e);
                self.steep_unary(y, d)
            }
            $($special)*
        }
    };
    // The functions of a type that records rows, from `with_factor` (one number, with its derivative with respect to what the row computed)
    // and `joined` (two numbers, with theirs).
    (@rows $inner:ident) => {
        #[inline(always)]
        fn linear_unary(self, value: $inner, d: $inner::Float) -> Self {
            self.with_factor(value, self.factor.scaled(d))
        }
        #[inline(always)]
        fn linear_binary(self, other: Self, value: $inner, da: $inner::Float, db: $inner::Float) -> Self {
            if other.is_constant() {
                return self.linear_unary(value, da);
            }
            if self.is_constant() {
                return other.linear_unary(value, db);
            }
            self.joined(other, value, [self.factor.scaled(da), other.factor.scaled(db)])
        }
        #[inline(always)]
        fn unary(self, value: $inner, d: $inner) -> Self {
            self.with_factor(value, d.chain_mul(self.factor))
        }
        /// A product inside of derivatives one level above, of this value. Where the tangent or cotangent (`self`) is zero, it does not depend on
        /// the partial derivative, steep as that may be: there is no edge.
        #[inline(always)]
        fn product(self, partial: Self, value: $inner) -> Self {
            if self.is_inert() || partial.is_inert() {
                Self::lift(value)
            } else if self.value.is_inert() {
                self.unary(value, partial.value)
            } else {
                self.binary(partial, value, partial.value, self.value)
            }
        }
        /// The reverse pass asks whether a cotangent is zero, however steep the function is.
        #[inline(always)]
        fn steep_unary(self, value: $inner, d: $inner) -> Self {
            self.unary(value, d)
        }
        #[inline(always)]
        fn steep_binary(self, other: Self, value: $inner, da: $inner, db: $inner) -> Self {
            self.binary(other, value, da, db)
        }
        #[inline(always)]
        fn binary(self, other: Self, value: $inner, da: $inner, db: $inner) -> Self {
            if other.is_constant() {
                return self.unary(value, da);
            }
            if self.is_constant() {
                return other.unary(value, db);
            }
            self.joined(other, value, [da.chain_mul(self.factor), db.chain_mul(other.factor)])
        }
    };
    (@recorded $inner:ident) => {
        fn total(xs: &[Self]) -> Self {
            let value = xs.iter().map(|x| x.value).sum();
            Self::many(value, crate::lifted::by_twos(xs, |x| (*x, $inner::one())))
        }
        fn dot(xs: &[Self], ys: &[Self]) -> Self {
            crate::scalar::same_length(xs.len(), ys.len());
            let pairs = xs.iter().zip(ys);
            let value = pairs.clone().fold($inner::zero(), |sum, (x, y)| sum + x.value * y.value);
            Self::many(value, pairs.map(|(x, y)| [(*x, y.value), (*y, x.value)]))
        }
        #[inline(always)]
        fn is_inert(&self) -> bool {
            self.is_constant() && self.value.is_inert()
        }
        fn strong_mul(self, partial: Self) -> Self {
            if self.is_inert() {
                return Self::zero();
            }
            self.product(partial, self.value.strong_mul(partial.value))
        }
        #[inline(always)]
        fn chain_mul(self, partial: Self) -> Self {
            self.product(partial, self.value.chain_mul(partial.value))
        }
        fn mutual_mul(self, other: Self) -> Self {
            let value = self.value.mutual_mul(other.value);
            if other.value.is_inert() { other.product(self, value) } else { self.product(other, value) }
        }
        #[inline(always)]
        fn scaled(self, c: Self::Float) -> Self {
            self.linear_unary(self.value.scaled(c), c)
        }
        #[inline(always)]
        fn has_nan(&self) -> bool {
            self.value.has_nan()
        }
    };
    (@operator [$($generics:tt)*] $type:ty, $lift:ident, $op:ident, $method:ident, $assign:ident, $assign_method:ident) => {
        impl<$($generics)*> std::ops::$op for $type {
            type Output = $type;
            #[inline(always)]
            fn $method(self, other: $type) -> $type {
                let (y, da, db) = crate::rules::$method(self.primal(), other.primal());
                self.$lift(other, y, da, db)
            }
        }
        impl<$($generics)*> std::ops::$op<&$type> for $type {
            type Output = $type;
            #[inline(always)]
            fn $method(self, other: &$type) -> $type {
                std::ops::$op::$method(self, *other)
            }
        }
        impl<$($generics)*> std::ops::$op<$type> for &$type {
            type Output = $type;
            #[inline(always)]
            fn $method(self, other: $type) -> $type {
                std::ops::$op::$method(*self, other)
            }
        }
        impl<$($generics)*> std::ops::$op<&$type> for &$type {
            type Output = $type;
            #[inline(always)]
            fn $method(self, other: &$type) -> $type {
                std::ops::$op::$method(*self, *other)
            }
        }
        impl<$($generics)*> std::ops::$assign for $type {
            #[inline(always)]
            fn $assign_method(&mut self, other: $type) {
                *self = std::ops::$op::$method(*self, other);
            }
        }
    };
    (@constants [$($generics:tt)*] $type:ty, $inner:ident, $float:ident) => {
        lifted!(@constant [$($generics)*] $type, $inner, $float, linear_unary, Add, add, AddAssign, add_assign,
            |_c, _x, _y| 1.0, |_c, _x, _y| 1.0);
        lifted!(@constant [$($generics)*] $type, $inner, $float, linear_unary, Sub, sub, SubAssign, sub_assign,
            |_c, _x, _y| 1.0, |_c, _x, _y| -1.0);
        lifted!(@constant [$($generics)*] $type, $inner, $float, linear_unary, Mul, mul, MulAssign, mul_assign,
            |c, _x, _y| c, |c, _x, _y| c);
        lifted!(@constant [$($generics)*] $type, $inner, $float, steep_unary, Div, div, DivAssign, div_assign,
            |c: $float, _x, _y| $inner::constant(c.recip()), |_c, x: $inner, y: $inner| -(y / x));
    };
    (@constant [$($generics:tt)*] $type:ty, $inner:ident, $float:ident, $lift:ident, $op:ident, $method:ident, $assign:ident,
     $assign_method:ident, $right:expr, $left:expr) => {
        impl<$($generics)*> std::ops::$op<$float> for $type
        where
            $inner: Scalar<Float = $float>,
        {
            type Output = $type;
            #[inline(always)]
            fn $method(self, c: $float) -> $type {
                let y = std::ops::$op::$method(self.primal(), $inner::constant(c));
                let d: fn($float, $inner, $inner) -> _ = $right;
                self.$lift(y, d(c, self.primal(), y))
            }
        }
        impl<$($generics)*> std::ops::$op<$float> for &$type
        where
            $inner: Scalar<Float = $float>,
        {
            type Output = $type;
            #[inline(always)]
            fn $method(self, c: $float) -> $type {
                std::ops::$op::$method(*self, c)
            }
        }
        impl<$($generics)*> std::ops::$op<$type> for $float
        where
            $inner: Scalar<Float = $float>,
        {
            type Output = $type;
            #[inline(always)]
            fn $method(self, x: $type) -> $type {
                let y = std::ops::$op::$method($inner::constant(self), x.primal());
                let d: fn($float, $inner, $inner) -> _ = $left;
                x.$lift(y, d(self, x.primal(), y))
            }
        }
        impl<$($generics)*> std::ops::$op<&$type> for $float
        where
            $inner: Scalar<Float = $float>,
        {
            type Output = $type;
            #[inline(always)]
            fn $method(self, x: &$type) -> $type {
                std::ops::$op::$method(self, *x)
            }
        }
        impl<$($generics)*> std::ops::$assign<$float> for $type
        where
            $inner: Scalar<Float = $float>,
        {
            #[inline(always)]
            fn $assign_method(&mut self, c: $float) {
                *self = std::ops::$op::$method(*self, c);
            }
        }
    };
    (@unary $lift:ident: $($name:ident)*) => { $(
        #[inline(always)]
        fn $name(self) -> Self {
            let (y, d) = crate::rules::$name(self.primal());
            self.$lift(y, d)
        }
    )* };
    (@binary $lift:ident: $($name:ident)*) => { $(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            let (y, da, db) = crate::rules::$name(self.primal(), other.primal());
            self.$lift(other, y, da, db)
        }
    )* };
}

pub(crate) use lifted;

/// What `f` makes of all items, two at a time; the last is repeated with zero if it is alone.
pub(crate) fn by_twos<I, V: Copy, S: Scalar>(
    items: &[I],
    f: impl Fn(&I) -> (V, S) + Clone,
) -> impl Iterator<Item = [(V, S); 2]> + Clone {
    items.chunks(2).map(move |pair| {
        let (a, d) = f(&pair[0]);
        [(a, d), pair.get(1).map_or((a, S::zero()), &f)]
    })
}
