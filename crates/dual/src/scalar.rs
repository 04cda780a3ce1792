//! The trait that user code is generic over, and plain numbers as its simplest instances.

use std::fmt::{Debug, Display};
use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A number that may carry derivatives.
///
/// Write a function once for every `S: Scalar`; with `f64` it is the plain function, with [`Var`](crate::Var) it records itself
/// for reverse mode, with [`Dual`](crate::Dual) it carries tangents. Comparisons look at primal values only.
///
/// ```
/// use pullback_dual::{Scalar, derivative, grad};
///
/// fn area<S: Scalar>(r: S) -> S {
///     S::from_f64(std::f64::consts::PI) * r * r
/// }
/// assert_eq!(area(2.0), 4.0 * std::f64::consts::PI);
/// assert_eq!(grad(|&r| area(r), &2.0), derivative(|r| area(r), 2.0).1);
/// ```
///
/// For arithmetic with literals, see [`Real`].
pub trait Scalar:
    Copy
    + Debug
    + PartialEq
    + PartialOrd
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + Product
{
    /// The plain number underneath: `f64` or `f32`.
    type Float: Float;

    /// A number without derivatives.
    fn constant(x: Self::Float) -> Self;
    /// The plain number, without any derivatives. What is computed from it is constant.
    fn value(self) -> Self::Float;
    /// A constant, rounded to the precision of this type.
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self::constant(Self::Float::of_f64(x))
    }
    /// Zero, a constant.
    #[inline(always)]
    fn zero() -> Self {
        Self::from_f64(0.0)
    }
    /// One, a constant.
    #[inline(always)]
    fn one() -> Self {
        Self::from_f64(1.0)
    }
    /// The same value without its derivatives.
    #[inline(always)]
    fn stop_gradient(self) -> Self {
        Self::constant(self.value())
    }

    /// `1 / x`.
    fn recip(self) -> Self;
    /// The square root. Its derivative at 0 is infinite.
    fn sqrt(self) -> Self;
    /// The cube root.
    fn cbrt(self) -> Self;
    /// `e^x`.
    fn exp(self) -> Self;
    /// `2^x`.
    fn exp2(self) -> Self;
    /// `e^x - 1`, accurate near 0.
    fn exp_m1(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The logarithm to base 2.
    fn log2(self) -> Self;
    /// The logarithm to base 10.
    fn log10(self) -> Self;
    /// `ln(1 + x)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// The sine.
    fn sin(self) -> Self;
    /// The cosine.
    fn cos(self) -> Self;
    /// The tangent.
    fn tan(self) -> Self;
    /// The arcsine.
    fn asin(self) -> Self;
    /// The arccosine.
    fn acos(self) -> Self;
    /// The arctangent.
    fn atan(self) -> Self;
    /// The hyperbolic sine.
    fn sinh(self) -> Self;
    /// The hyperbolic cosine.
    fn cosh(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// The inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// The inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// The logistic function `1 / (1 + e^-x)`.
    fn sigmoid(self) -> Self;
    /// The absolute value. Its derivative at 0 is 0.
    fn abs(self) -> Self;
    /// -1, 0 or 1 (0 at both zeros); a constant.
    #[inline(always)]
    fn signum(self) -> Self {
        let zero = Self::Float::zero();
        let x = self.value();
        if x > zero {
            Self::one()
        } else if x < zero {
            -Self::one()
        } else if x == zero {
            Self::zero()
        } else {
            Self::constant(x)
        }
    }
    /// `x^n`.
    fn powi(self, n: i32) -> Self;
    /// `x^e` for a constant `e`. With `e = 0` the derivative is 0 everywhere.
    fn powf(self, e: Self::Float) -> Self;
    /// `x^e`. With `e = 0` the derivative with respect to `x` is 0; where `x` is not above 0, so is the one with respect to `e`.
    fn pow(self, e: Self) -> Self;
    /// The angle of the point `(x, self)`. Its derivatives at the origin are NaN: it has no limit there.
    fn atan2(self, x: Self) -> Self;
    /// The length of `(self, other)`. Its derivatives at the origin are 0.
    fn hypot(self, other: Self) -> Self;
    /// The larger one; -0 is below 0. Equal ones have half of the derivative each. If one is NaN, the other.
    fn max(self, other: Self) -> Self;
    /// The smaller one; -0 is below 0. Equal ones have half of the derivative each. If one is NaN, the other.
    fn min(self, other: Self) -> Self;
    /// The product of a tangent or cotangent (`self`) and a partial derivative: zero if the first is zero and the second infinite or NaN,
    /// else the plain product, in derivatives of every order too (a strong zero). For rules by hand, see [`Custom`].
    ///
    /// ```
    /// use pullback_dual::{Scalar, derivative};
    ///
    /// assert_eq!(0.0.strong_mul(f64::INFINITY), 0.0);
    /// assert_eq!(2.0.strong_mul(3.0), 6.0);
    /// assert_eq!(derivative(|d| d.strong_mul(Scalar::from_f64(3.0)), 0.0).1, 3.0);
    /// ```
    fn strong_mul(self, partial: Self) -> Self;
    /// The same of floats that are finite, or of which none is zero: the plain product. The tangents of other numbers are those of
    /// [`strong_mul`](Self::strong_mul).
    #[doc(hidden)]
    fn chain_mul(self, partial: Self) -> Self;
    /// Zero if one is zero, however infinite the other may be, else the product.
    #[doc(hidden)]
    fn mutual_mul(self, other: Self) -> Self;
    /// The product with a plain number.
    #[doc(hidden)]
    fn scaled(self, c: Self::Float) -> Self;
    /// Whether it or one of its tangents is NaN.
    #[doc(hidden)]
    fn has_nan(&self) -> bool;

    /// The sum of `xs`: one row of the tape, however many there are.
    #[inline]
    fn total(xs: &[Self]) -> Self {
        xs.iter().copied().sum()
    }
    /// The sum of products `xs[i] ys[i]`, as one row of the tape. Panics if the lengths differ.
    #[inline]
    fn dot(xs: &[Self], ys: &[Self]) -> Self {
        same_length(xs.len(), ys.len());
        xs.iter().zip(ys).fold(Self::zero(), |sum, (x, y)| sum + *x * *y)
    }
    /// A value whose partial derivatives the caller knows: `(x, d)` says that the derivative with respect to `x` is `d`. Derivatives
    /// of higher order take the `d` as constants; [`custom`](Self::custom) does not.
    ///
    /// ```
    /// use pullback_dual::{Scalar, grad};
    ///
    /// // A table in place of a function, with slopes that the caller has.
    /// let g = grad(|&x| Scalar::with_partials(7.0, &[(x, 0.5)]) * 2.0, &3.0);
    /// assert_eq!(g, 1.0);
    /// ```
    fn with_partials(value: Self::Float, partials: &[(Self, Self::Float)]) -> Self;
    /// The outputs of a function with a derivative of its own; see [`Custom`].
    fn custom<R: Custom>(rule: &R, xs: &[Self]) -> Vec<Self>;
    /// The outputs of `f`, which reverse mode runs a second time instead of keeping its tape; see [`Function`].
    fn checkpoint<F: Function>(f: &F, xs: &[Self]) -> Vec<Self>;

    /// Whether adding any multiple of it changes nothing: then the reverse pass skips a row.
    #[doc(hidden)]
    fn is_inert(&self) -> bool;
}

/// A [`Scalar`] over `f64` that also computes with literals: `x * 2.0 + 1.0`.
///
/// ```
/// use pullback_dual::{Real, grad};
///
/// fn parabola<S: Real>(x: S) -> S {
///     x * x * 0.5 + 1.0
/// }
/// assert_eq!(grad(|&x| parabola(x), &3.0), 3.0);
/// ```
pub trait Real:
    Scalar<Float = f64>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
}

impl<S> Real for S where
    S: Scalar<Float = f64>
        + Add<f64, Output = S>
        + Sub<f64, Output = S>
        + Mul<f64, Output = S>
        + Div<f64, Output = S>
{
}

/// A function on lists of numbers, for every scalar type. Closures cannot be generic; a type that implements this can, and can
/// therefore be handed to [`Scalar::checkpoint`].
///
/// ```
/// use pullback_dual::{Function, Scalar, grad};
///
/// /// A hundred steps of a logistic map.
/// #[derive(Clone)]
/// struct Steps;
/// impl Function for Steps {
///     fn call<S: Scalar>(&self, xs: &[S]) -> Vec<S> {
///         let mut x = xs[0];
///         for _ in 0..100 {
///             x = xs[1] * x * (S::one() - x);
///         }
///         vec![x, xs[1]]
///     }
/// }
/// let plain = grad(|&[x, r]| Steps.call(&[x, r])[0], &[0.3, 2.9]);
/// let again = grad(|&[x, r]| Scalar::checkpoint(&Steps, &[x, r])[0], &[0.3, 2.9]);
/// assert_eq!(plain, again);
/// ```
pub trait Function: Clone + Send + Sync + 'static {
    /// Runs it. Equal arguments must give equal results.
    fn call<S: Scalar>(&self, xs: &[S]) -> Vec<S>;
}

/// A function with a derivative of its own, in place of that of its steps.
///
/// ```
/// use pullback_dual::{Custom, Scalar, derivative, grad};
///
/// /// The root of y^3 + y = x by iteration; its derivative by the implicit function theorem.
/// #[derive(Clone)]
/// struct Root;
/// impl Custom for Root {
///     fn value<S: Scalar>(&self, x: &[S]) -> Vec<S> {
///         let mut y = S::zero();
///         for _ in 0..60 {
///             y = y - (y * y * y + y - x[0]) / (S::from_f64(3.0) * y * y + S::one());
///         }
///         vec![y]
///     }
///     fn vjp<S: Scalar>(&self, _x: &[S], y: &[S], y_bar: &[S]) -> Vec<S> {
///         vec![y_bar[0] / (S::from_f64(3.0) * y[0] * y[0] + S::one())]
///     }
/// }
/// // The root for x = 10 is 2, the derivative there 1/13.
/// assert_eq!(grad(|&x| Scalar::custom(&Root, &[x])[0], &10.0), 1.0 / 13.0);
/// assert_eq!(derivative(|x| Scalar::custom(&Root, &[x])[0], 10.0).1, 1.0 / 13.0);
/// ```
pub trait Custom: Clone + Send + Sync + 'static {
    /// The outputs.
    fn value<S: Scalar>(&self, x: &[S]) -> Vec<S>;
    /// The cotangents of the inputs `x`, from the outputs `y` and their cotangents. Must be as many as the inputs. Where a partial derivative
    /// may be infinite, multiply by [`strong_mul`](Scalar::strong_mul), so that an output that does not count has no part in them.
    fn vjp<S: Scalar>(&self, x: &[S], y: &[S], y_bar: &[S]) -> Vec<S>;
    /// The tangents of the outputs. As written here it calls `vjp` once per output; override it where there is a cheaper way.
    fn jvp<S: Scalar>(&self, x: &[S], x_dot: &[S], y: &[S]) -> Vec<S> {
        let mut y_bar = vec![S::zero(); y.len()];
        let mut y_dot = Vec::with_capacity(y.len());
        for i in 0..y.len() {
            y_bar[i] = S::one();
            let row = self.vjp(x, y, &y_bar);
            same_length(row.len(), x_dot.len());
            let terms = x_dot.iter().zip(row).map(|(x_dot, d)| x_dot.strong_mul(d));
            y_dot.push(terms.fold(S::zero(), |sum, term| sum + term));
            y_bar[i] = S::zero();
        }
        y_dot
    }
}

/// `f64` or `f32`.
pub trait Float: Scalar<Float = Self> + Display + Send + Sync + Default + 'static {
    /// Rounded to this type.
    fn of_f64(x: f64) -> Self;
    /// Exactly this number.
    fn to_f64(self) -> f64;
    #[doc(hidden)]
    type Bits: crate::cell::Cell<Self>;
    /// Whether it is far from zero and from infinity, and a number.
    #[doc(hidden)]
    fn is_moderate(self) -> bool;
}

#[track_caller]
#[inline]
pub(crate) fn same_length(a: usize, b: usize) {
    assert!(a == b, "the lengths {a} and {b} differ: give slices of one length");
}

macro_rules! float {
    ($float:ident, $bits:ty, $moderate:literal, $large:literal) => {
        impl Float for $float {
            type Bits = $bits;
            #[inline(always)]
            fn of_f64(x: f64) -> $float {
                x as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn is_moderate(self) -> bool {
                (1.0 / $moderate..=$moderate).contains(&self.abs())
            }
        }
        impl Scalar for $float {
            type Float = $float;
            #[inline(always)]
            fn constant(x: $float) -> $float {
                x
            }
            #[inline(always)]
            fn value(self) -> $float {
                self
            }
            float!(@methods $float: recip sqrt cbrt exp exp2 exp_m1 ln log2 log10 ln_1p sin cos tan asin acos atan sinh cosh
                tanh abs);
            // The standard library's overflows where the logarithm of `2 x` does not; its `acosh` near 1 and its `atanh` near -1 lose digits.
            #[inline]
            fn asinh(self) -> $float {
                let a = self.abs();
                if a < $large { $float::asinh(self) } else { ($float::ln(a) + std::$float::consts::LN_2).copysign(self) }
            }
            #[inline]
            fn acosh(self) -> $float {
                if self < 1.0 {
                    $float::NAN
                } else if self < $large {
                    // `x - 1` is exact where it is small.
                    let t = self - 1.0;
                    $float::ln_1p(t + $float::sqrt(t * (t + 2.0)))
                } else {
                    $float::ln(self) + std::$float::consts::LN_2
                }
            }
            #[inline]
            fn atanh(self) -> $float {
                let a = self.abs();
                (0.5 * $float::ln_1p(2.0 * a / (1.0 - a))).copysign(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> $float {
                if self >= 0.0 {
                    1.0 / (1.0 + $float::exp(-self))
                } else {
                    let e = $float::exp(self);
                    e / (1.0 + e)
                }
            }
            #[inline(always)]
            fn powi(self, n: i32) -> $float {
                let power = $float::powi(self, n);
                // The power of which it is the reciprocal may have overflowed.
                if n < 0 && (power == 0.0 || power.is_infinite()) {
                    return $float::of_f64(f64::powf(self.to_f64(), n.into()));
                }
                power
            }
            #[inline(always)]
            fn powf(self, e: $float) -> $float {
                $float::powf(self, e)
            }
            #[inline(always)]
            fn pow(self, e: $float) -> $float {
                $float::powf(self, e)
            }
            #[inline(always)]
            fn atan2(self, x: $float) -> $float {
                $float::atan2(self, x)
            }
            #[inline(always)]
            fn hypot(self, other: $float) -> $float {
                $float::hypot(self, other)
            }
            // Equal numbers have the same bits, but for zeros.
            #[inline(always)]
            fn max(self, other: $float) -> $float {
                if self == other { $float::from_bits(self.to_bits() & other.to_bits()) } else { $float::max(self, other) }
            }
            #[inline(always)]
            fn min(self, other: $float) -> $float {
                if self == other { $float::from_bits(self.to_bits() | other.to_bits()) } else { $float::min(self, other) }
            }
            #[inline(always)]
            fn strong_mul(self, partial: $float) -> $float {
                if self == 0.0 { 0.0 } else { self * partial }
            }
            #[inline(always)]
            fn chain_mul(self, other: $float) -> $float {
                self * other
            }
            #[inline(always)]
            fn mutual_mul(self, other: $float) -> $float {
                if self == 0.0 || other == 0.0 { 0.0 } else { self * other }
            }
            #[inline(always)]
            fn scaled(self, c: $float) -> $float {
                self * c
            }
            #[inline(always)]
            fn has_nan(&self) -> bool {
                self.is_nan()
            }
            fn with_partials(value: $float, _partials: &[($float, $float)]) -> $float {
                value
            }
            fn custom<R: Custom>(rule: &R, xs: &[$float]) -> Vec<$float> {
                rule.value(xs)
            }
            fn checkpoint<F: Function>(f: &F, xs: &[$float]) -> Vec<$float> {
                f.call(xs)
            }
            #[inline(always)]
            fn is_inert(&self) -> bool {
                *self == 0.0
            }
        }
    };
    (@methods $float:ident: $($name:ident)*) => { $(
        #[inline(always)]
        fn $name(self) -> $float {
            $float::$name(self)
        }
    )* };
}

// 2^256 and 2^32; 2^28 and 2^14, from where on the square of a number plus or minus 1 is the square.
float!(f64, std::sync::atomic::AtomicU64, 1.157920892373162e77, 268_435_456.0);
float!(f32, std::sync::atomic::AtomicU32, 4_294_967_296.0, 16_384.0);
