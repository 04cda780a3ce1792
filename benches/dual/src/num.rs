//! What the programs need of a number, and how each library gives it.

use num_dual::DualNum;
use pullback_dual::Scalar;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number of some library.
pub trait Num:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    fn val(self) -> f64;
    fn plus(self, c: f64) -> Self;
    fn times(self, c: f64) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn recip(self) -> Self;
    /// The sum of products: a loop, but where the library has one of its own and `Vectors` asks for it.
    fn dot(xs: &[Self], ys: &[Self]) -> Self {
        let mut pairs = xs.iter().zip(ys);
        let (x, y) = pairs.next().expect("not empty");
        pairs.fold(*x * *y, |sum, (x, y)| sum + *x * *y)
    }
}

macro_rules! num {
    ([$($generics:tt)*] $type:ty, |$x:ident| $val:expr, $($special:tt)*) => {
        impl<$($generics)*> Num for $type {
            #[inline(always)]
            fn val(self) -> f64 {
                let $x = self;
                $val
            }
            #[inline(always)]
            fn plus(self, c: f64) -> Self {
                self + c
            }
            #[inline(always)]
            fn times(self, c: f64) -> Self {
                self * c
            }
            $($special)*
        }
    };
}

macro_rules! methods {
    ([$($generics:tt)*] $type:ty, |$x:ident| $val:expr, $exp:expr, $ln:expr, $tanh:expr, $recip:expr) => {
        num!([$($generics)*] $type, |$x| $val,
            #[inline(always)]
            fn exp(self) -> Self { ($exp)(self) }
            #[inline(always)]
            fn ln(self) -> Self { ($ln)(self) }
            #[inline(always)]
            fn tanh(self) -> Self { ($tanh)(self) }
            #[inline(always)]
            fn recip(self) -> Self { ($recip)(self) }
        );
    };
    ([$($generics:tt)*] $type:ty, ours) => {
        methods!([$($generics)*] $type, |x| Scalar::value(x), Scalar::exp, Scalar::ln, Scalar::tanh, Scalar::recip);
    };
    ([$($generics:tt)*] $type:ty, num_dual) => {
        methods!([$($generics)*] $type, |x| x.re, |x: Self| DualNum::exp(&x), |x: Self| DualNum::ln(&x), |x: Self| DualNum::tanh(&x), |x: Self| DualNum::recip(&x));
    };
}

methods!([] f64, ours);
methods!(['t] pullback_dual::Var<'t>, ours);
methods!(['t] pullback_dual::parallel::Var<'t>, ours);
methods!(['b, const N: usize] pullback_dual::Dual<'b, f64, N>, ours);
methods!([] num_dual::Dual64, num_dual);
methods!([const N: usize] num_dual::DualSVec64<N>, num_dual);

num!(['a] reverse::Var<'a>, |x| x.val,
    #[inline(always)]
    fn exp(self) -> Self { reverse::Var::exp(&self) }
    #[inline(always)]
    fn ln(self) -> Self { reverse::Var::ln(&self) }
    #[inline(always)]
    fn tanh(self) -> Self { reverse::Var::tanh(&self) }
    #[inline(always)]
    fn recip(self) -> Self { reverse::Var::recip(&self) }
);
num!(['a] aad::Variable<'a, f64>, |x| aad::Variable::<f64>::value(&x),
    #[inline(always)]
    fn exp(self) -> Self { aad::Variable::<f64>::exp(self) }
    #[inline(always)]
    fn ln(self) -> Self { aad::Variable::<f64>::ln(self) }
    #[inline(always)]
    fn tanh(self) -> Self { aad::Variable::<f64>::tanh(self) }
    #[inline(always)]
    fn recip(self) -> Self { aad::Variable::<f64>::recip(self) }
);
num!(['v] RustQuant_autodiff::Variable<'v>, |x| x.value(),
    #[inline(always)]
    fn exp(self) -> Self { RustQuant_autodiff::Variable::exp(self) }
    #[inline(always)]
    fn ln(self) -> Self { RustQuant_autodiff::Variable::ln(self) }
    #[inline(always)]
    fn tanh(self) -> Self { RustQuant_autodiff::Variable::tanh(self) }
    #[inline(always)]
    fn recip(self) -> Self { RustQuant_autodiff::Variable::recip(self) }
);
// Without a hyperbolic tangent of its own.
num!(['a] easy_ml::differentiation::Record<'a, f64>, |x| x.number,
    #[inline(always)]
    fn exp(self) -> Self { easy_ml::numeric::extra::Exp::exp(self) }
    #[inline(always)]
    fn ln(self) -> Self { easy_ml::numeric::extra::Ln::ln(self) }
    #[inline(always)]
    fn tanh(self) -> Self { -(Num::exp(self * 2.0) + 1.0).recip() * 2.0 + 1.0 }
    #[inline(always)]
    fn recip(self) -> Self { Self::constant(1.0) / self }
);
num!([] autodiff::F1, |x| x.x,
    #[inline(always)]
    fn exp(self) -> Self { num_traits::Float::exp(self) }
    #[inline(always)]
    fn ln(self) -> Self { num_traits::Float::ln(self) }
    #[inline(always)]
    fn tanh(self) -> Self { num_traits::Float::tanh(self) }
    #[inline(always)]
    fn recip(self) -> Self { num_traits::Float::recip(self) }
);

/// The numbers of pullback-dual with its own sums of products, which are one row of the tape.
#[derive(Clone, Copy)]
pub struct Rows<'t>(pub pullback_dual::Var<'t>);

macro_rules! rows {
    ($($op:ident $method:ident)*) => { $(
        impl<'t> $op for Rows<'t> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Rows($op::$method(self.0, other.0))
            }
        }
    )* };
}
rows!(Add add Sub sub Mul mul Div div);
impl Neg for Rows<'_> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Rows(-self.0)
    }
}
impl Num for Rows<'_> {
    fn val(self) -> f64 {
        Num::val(self.0)
    }
    #[inline(always)]
    fn plus(self, c: f64) -> Self {
        Rows(self.0 + c)
    }
    #[inline(always)]
    fn times(self, c: f64) -> Self {
        Rows(self.0 * c)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        Rows(Num::exp(self.0))
    }
    #[inline(always)]
    fn ln(self) -> Self {
        Rows(Num::ln(self.0))
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        Rows(Num::tanh(self.0))
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Rows(Num::recip(self.0))
    }
    fn dot(xs: &[Self], ys: &[Self]) -> Self {
        let values = |xs: &[Self]| xs.iter().map(|x| x.0).collect::<Vec<_>>();
        Rows(<pullback_dual::Var<'_> as Scalar>::dot(&values(xs), &values(ys)))
    }
}
