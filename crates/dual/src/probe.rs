//! Numbers that can only be put in places. Implementations of [`Differentiable`] by hand are tried with them before they are used.
//!
//! Derivatives rely on `map` being a map: the numbers that its function gives are the inputs of a tape, or the parts of a gradient. Were
//! they computed with on the way, rows would lie between inputs, and gradients would be computed with too: wrong numbers without a
//! word. A probe panics in every operation, so whatever `map` does with it shows, and it knows its place, so that `zip` can be held to the
//! same numbers in the same order. Implementations of the library and of the macro are known to be right and are only walked through.

use crate::{Custom, Differentiable, Float, Function, Scalar};
use std::cmp::Ordering;
use std::fmt;

/// A number of a value that is mapped, or a constant.
#[derive(Clone, Copy)]
struct Probe<F> {
    /// Of a constant.
    value: F,
    /// Of a number: how many came before it, and the type whose implementation has it.
    number: Option<(usize, &'static str)>,
}

/// Panics if an implementation by hand computes while it maps, or if its two walks do not agree. Cost: a `map` and a `zip`.
pub(crate) fn verify<S: Scalar, X: Differentiable<S> + ?Sized>(x: &X) {
    let of = std::any::type_name::<X>();
    let mut handed: Vec<S::Float> = Vec::new();
    let mapped = x.map(&mut |number: &S| {
        handed.push(number.value());
        Probe { value: S::Float::zero(), number: Some((handed.len() - 1, of)) }
    });
    let mut visited = 0;
    let zipped = x.zip(&mapped, &mut |number: &S, probe: &Probe<S::Float>| {
        let same =
            |a: S::Float, b: S::Float| a == b || (a.partial_cmp(&a).is_none() && b.partial_cmp(&b).is_none());
        let is_next = probe.number.is_some_and(|(place, _)| place == visited);
        let is_handed = handed.get(visited).is_some_and(|x| same(*x, number.value()));
        if !(is_next && is_handed) {
            disagree(of);
        }
        visited += 1;
    });
    if zipped.is_err() || visited != handed.len() {
        disagree(of);
    }
}

#[cold]
fn disagree(of: &str) -> ! {
    panic!(
        "`Differentiable` for `{of}` is written by hand and wrong: `map` and `zip` must visit the same numbers of the value, each once, in one \
         order, and put each in its own place. Derive the trait, or mend the two"
    )
}

/// The result of an operation on constants, `value`. One on numbers is a mistake.
fn computed<F: Float, const N: usize>(
    operation: &str,
    xs: [Probe<F>; N],
    value: impl FnOnce([F; N]) -> F,
) -> Probe<F> {
    Probe::constant(read(operation, xs, value))
}

/// What constants say; numbers say nothing.
fn read<F: Float, R, const N: usize>(
    operation: &str,
    xs: [Probe<F>; N],
    of_values: impl FnOnce([F; N]) -> R,
) -> R {
    if let Some((_, of)) = xs.iter().find_map(|x| x.number) {
        panic!(
            "`Differentiable` for `{of}` is written by hand and wrong: `map` computes (`{operation}`) with the numbers that its function \
             gives. It must put them in their places and do no more. Derive the trait, and compute in the function that is differentiated"
        )
    }
    of_values(xs.map(|x| x.value))
}

macro_rules! operators {
    ($($trait:ident $method:ident, $assign:ident $assign_method:ident;)*) => { $(
        impl<F: Float> std::ops::$trait for Probe<F> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                computed(stringify!($method), [self, other], |[a, b]| std::ops::$trait::$method(a, b))
            }
        }
        impl<F: Float> std::ops::$assign for Probe<F> {
            fn $assign_method(&mut self, other: Self) {
                *self = std::ops::$trait::$method(*self, other);
            }
        }
    )* };
}

operators! {
    Add add, AddAssign add_assign;
    Sub sub, SubAssign sub_assign;
    Mul mul, MulAssign mul_assign;
    Div div, DivAssign div_assign;
}

impl<F: Float> std::ops::Neg for Probe<F> {
    type Output = Self;
    fn neg(self) -> Self {
        computed("neg", [self], |[x]| -x)
    }
}
impl<F: Float> std::iter::Sum for Probe<F> {
    fn sum<I: Iterator<Item = Self>>(xs: I) -> Self {
        xs.fold(Self::zero(), |a, b| a + b)
    }
}
impl<F: Float> std::iter::Product for Probe<F> {
    fn product<I: Iterator<Item = Self>>(xs: I) -> Self {
        xs.fold(Self::one(), |a, b| a * b)
    }
}
impl<F: Float> PartialEq for Probe<F> {
    fn eq(&self, other: &Self) -> bool {
        read("==", [*self, *other], |[a, b]| a == b)
    }
}
impl<F: Float> PartialOrd for Probe<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        read("<", [*self, *other], |[a, b]| a.partial_cmp(&b))
    }
}
impl<F: Float> fmt::Debug for Probe<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => fmt::Debug::fmt(&self.value, f),
            Some((place, _)) => write!(f, "number {place} of what is mapped"),
        }
    }
}

macro_rules! scalar {
    ([$($one:ident)*] [$($two:ident)*]) => {
        impl<F: Float> Scalar for Probe<F> {
            type Float = F;
            fn constant(value: F) -> Self {
                Probe { value, number: None }
            }
            fn value(self) -> F {
                read("value", [self], |[x]| x)
            }
            $(fn $one(self) -> Self {
                computed(stringify!($one), [self], |[x]| x.$one())
            })*
            $(fn $two(self, other: Self) -> Self {
                computed(stringify!($two), [self, other], |[a, b]| a.$two(b))
            })*
            fn powi(self, n: i32) -> Self {
                computed("powi", [self], |[x]| x.powi(n))
            }
            fn powf(self, e: F) -> Self {
                computed("powf", [self], |[x]| x.powf(e))
            }
            fn with_partials(value: F, partials: &[(Self, F)]) -> Self {
                partials.iter().for_each(|(x, _)| _ = computed("with_partials", [*x], |[x]| x));
                Self::constant(value)
            }
            fn custom<R: Custom>(rule: &R, xs: &[Self]) -> Vec<Self> {
                let xs: Vec<F> = xs.iter().map(|x| read("custom", [*x], |[x]| x)).collect();
                rule.value(&xs).into_iter().map(Self::constant).collect()
            }
            fn checkpoint<C: Function>(f: &C, xs: &[Self]) -> Vec<Self> {
                f.call(xs)
            }
            fn is_inert(&self) -> bool {
                self.number.is_none() && self.value.is_inert()
            }
            fn scaled(self, c: F) -> Self {
                self * Self::constant(c)
            }
            fn has_nan(&self) -> bool {
                self.number.is_none() && self.value.has_nan()
            }
        }
    };
}

scalar!(
    [recip sqrt cbrt exp exp2 exp_m1 ln log2 log10 ln_1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid abs]
    [pow atan2 hypot max min strong_mul chain_mul mutual_mul]
);
