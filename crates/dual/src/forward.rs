//! Forward mode: numbers that carry their tangents.
//!
//! Source: dual numbers, `T` 2.2.3; with several tangents at once `T` 2.2.8.

use crate::brand::call;
use crate::lifted::lifted;
use crate::{Custom, Differentiable, Error, Function, Scalar};
use std::fmt;
use std::marker::PhantomData;

/// A number of forward mode: a value and its tangents in `N` directions. Only functions such as [`derivative`] and [`jvp`] make them.
///
/// The lifetime is a brand, so that tangents of nested derivatives cannot be confused: the number of an outer derivative enters an
/// inner one by [`Dual::lift`] only.
///
/// ```
/// use pullback_dual::{Dual, derivative};
///
/// // d/dx (x * d/dy (x + y)) = 1: confused tangents would give 2.
/// let (_, d) = derivative(|x| x * derivative(|y| Dual::lift(x) + y, x).1, 1.0);
/// assert_eq!(d, 1.0);
/// ```
/// ```compile_fail
/// use pullback_dual::derivative;
/// derivative(|x| x * derivative(|y| x + y, x).1, 1.0); // numbers of two levels
/// ```
/// ```compile_fail,E0521
/// let mut kept = None;
/// pullback_dual::derivative(|x| { kept = Some(x); x }, 1.0); // x may not leave
/// ```
pub struct Dual<'b, S = f64, const N: usize = 1> {
    value: S,
    tangent: [S; N],
    brand: PhantomData<fn(&'b ()) -> &'b ()>,
}

impl<S: Copy, const N: usize> Clone for Dual<'_, S, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Copy, const N: usize> Copy for Dual<'_, S, N> {}

impl<S: fmt::Debug, const N: usize> fmt::Debug for Dual<'_, S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} + {:?}ε", self.value, self.tangent)
    }
}
impl<S: fmt::Display, const N: usize> fmt::Display for Dual<'_, S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<'b, S: Scalar, const N: usize> Dual<'b, S, N> {
    /// A number one level below, as a constant of this level.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Dual::new(value, [S::zero(); N])
    }
    /// The number one level below.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// The tangents.
    #[inline(always)]
    pub fn tangent(self) -> [S; N] {
        self.tangent
    }
    /// Whether all tangents are zero.
    #[inline(always)]
    pub fn is_constant(&self) -> bool {
        self.tangent.iter().all(S::is_inert)
    }
    #[inline(always)]
    pub(crate) fn new(value: S, tangent: [S; N]) -> Self {
        Dual { value, tangent, brand: PhantomData }
    }
    #[inline(always)]
    fn linear_unary(self, value: S, d: S::Float) -> Self {
        Dual::new(value, std::array::from_fn(|i| self.tangent[i].scaled(d)))
    }
    #[inline(always)]
    fn linear_binary(self, other: Self, value: S, da: S::Float, db: S::Float) -> Self {
        let part = |i: usize| self.tangent[i].scaled(da) + other.tangent[i].scaled(db);
        Dual::new(value, std::array::from_fn(part))
    }
    #[inline(always)]
    fn unary(self, value: S, d: S) -> Self {
        Dual::new(value, std::array::from_fn(|i| self.tangent[i].chain_mul(d)))
    }
    #[inline(always)]
    fn binary(self, other: Self, value: S, da: S, db: S) -> Self {
        let part = |i: usize| self.tangent[i].chain_mul(da) + other.tangent[i].chain_mul(db);
        Dual::new(value, std::array::from_fn(part))
    }
    #[inline(always)]
    fn steep_unary(self, value: S, d: S) -> Self {
        Dual::new(value, std::array::from_fn(|i| self.tangent[i].strong_mul(d)))
    }
    #[inline(always)]
    fn steep_binary(self, other: Self, value: S, da: S, db: S) -> Self {
        let part = |i: usize| self.tangent[i].strong_mul(da) + other.tangent[i].strong_mul(db);
        Dual::new(value, std::array::from_fn(part))
    }
    /// A product inside of derivatives one level above, whose value is `value` of the values. What is zero, of a tangent or cotangent (`self`)
    /// or of what is differentiated here, stops at what is infinite.
    #[inline(always)]
    fn product(self, partial: Self, value: fn(S, S) -> S) -> Self {
        let part =
            |i: usize| self.tangent[i].chain_mul(partial.value) + self.value.chain_mul(partial.tangent[i]);
        let plain = Dual::new(self.value.chain_mul(partial.value), std::array::from_fn(part));
        // Else something was zero times infinity.
        if !plain.has_nan() { plain } else { self.stopped(partial, value) }
    }
    #[cold]
    #[inline(never)]
    fn stopped(self, partial: Self, value: fn(S, S) -> S) -> Self {
        let part =
            |i: usize| self.tangent[i].strong_mul(partial.value) + self.value.mutual_mul(partial.tangent[i]);
        Dual::new(value(self.value, partial.value), std::array::from_fn(part))
    }
    fn values(xs: &[Self]) -> Vec<S> {
        xs.iter().map(|x| x.value).collect()
    }
}

lifted!(@constants ['b, S: Scalar, const N: usize] Dual<'b, S, N>, S, f64);
lifted!(@constants ['b, S: Scalar, const N: usize] Dual<'b, S, N>, S, f32);
lifted!(['b, S: Scalar, const N: usize] Dual<'b, S, N>, S, {
    #[inline(always)]
    fn strong_mul(self, partial: Self) -> Self {
        self.product(partial, S::strong_mul)
    }
    #[inline(always)]
    fn chain_mul(self, partial: Self) -> Self {
        self.product(partial, S::chain_mul)
    }
    #[inline(always)]
    fn mutual_mul(self, other: Self) -> Self {
        let part = |i: usize| self.tangent[i].mutual_mul(other.value) + self.value.mutual_mul(other.tangent[i]);
        Dual::new(self.value.mutual_mul(other.value), std::array::from_fn(part))
    }
    #[inline(always)]
    fn scaled(self, c: Self::Float) -> Self {
        self.linear_unary(self.value.scaled(c), c)
    }
    #[inline(always)]
    fn has_nan(&self) -> bool {
        // Without a branch for each.
        self.tangent.iter().fold(self.value.has_nan(), |any, x| any | x.has_nan())
    }
    fn with_partials(value: Self::Float, partials: &[(Self, Self::Float)]) -> Self {
        let below: Vec<(S, Self::Float)> = partials.iter().map(|(x, d)| (x.value, *d)).collect();
        let part = |i: usize| {
            let terms = partials.iter().map(|(x, d)| x.tangent[i].strong_mul(S::constant(*d)));
            terms.fold(S::zero(), |sum, term| sum + term)
        };
        Dual::new(S::with_partials(value, &below), std::array::from_fn(part))
    }
    fn custom<R: Custom>(rule: &R, xs: &[Self]) -> Vec<Self> {
        let x = Self::values(xs);
        let y = S::custom(rule, &x);
        let mut out: Vec<Self> = y.iter().map(|y| Self::lift(*y)).collect();
        for lane in 0..N {
            let x_dot: Vec<S> = xs.iter().map(|x| x.tangent[lane]).collect();
            for (out, y_dot) in out.iter_mut().zip(rule.jvp(&x, &x_dot, &y)) {
                out.tangent[lane] = y_dot;
            }
        }
        out
    }
    fn checkpoint<F: Function>(f: &F, xs: &[Self]) -> Vec<Self> {
        f.call(xs)
    }
    #[inline(always)]
    fn is_inert(&self) -> bool {
        self.value.is_inert() && self.is_constant()
    }
});

/// The value and the derivative of a function of one number.
///
/// ```
/// use pullback_dual::{Scalar, derivative};
///
/// assert_eq!(derivative(|x| x * x, 3.0), (9.0, 6.0));
/// // The second derivative of the sine at 0.
/// assert_eq!(derivative(|x| derivative(|y| y.sin(), x).1, 0.0).1, 0.0);
/// ```
#[inline]
pub fn derivative<S, F>(f: F, x: S) -> (S, S)
where
    S: Scalar,
    F: for<'b> FnOnce(Dual<'b, S>) -> Dual<'b, S>,
{
    let y = f(Dual::new(x, [S::one()]));
    (y.value, y.tangent[0])
}

/// The value of a function and its tangent in a direction of the argument's shape. The types of the results must be stated.
///
/// Errors: a direction of another shape. Cost: twice to three times the function's, no memory.
///
/// ```
/// use pullback_dual::jvp;
///
/// let (y, y_dot): (Vec<f64>, _) = jvp(|&[a, b]| vec![a * b, a], &[2.0, 3.0], &[1.0, 10.0])?;
/// assert_eq!((y, y_dot), (vec![6.0, 2.0], vec![23.0, 1.0]));
/// # Ok::<(), pullback_dual::Error>(())
/// ```
pub fn jvp<S, X, Y, F>(f: F, x: &X, x_dot: &X::With<S>) -> Result<(Y, Y), Error>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'b> FnOnce(&'b X::With<Dual<'b, S>>) -> Y::With<Dual<'b, S>>,
    Y: Differentiable<S, With<S> = Y>,
    for<'b> Y::With<Dual<'b, S>>: Differentiable<Dual<'b, S>, With<S> = Y>,
{
    Ok(call(directed(x, &[x_dot])?, f, |y| {
        y.verify();
        (y.map(&mut |y: &Dual<'_, S>| y.value), y.map(&mut |y: &Dual<'_, S>| y.tangent[0]))
    }))
}

/// The numbers of `x` with tangents in these directions.
pub(crate) fn directed<'b, S, X, const N: usize>(
    x: &X,
    directions: &[&X::With<S>; N],
) -> Result<X::With<Dual<'b, S, N>>, Error>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
{
    x.verify();
    let mut tangents = Vec::new();
    for (lane, direction) in directions.iter().enumerate() {
        let mut at = 0;
        x.zip::<S, _>(direction, &mut |_, d| {
            if lane == 0 {
                tangents.push([S::zero(); N]);
            }
            tangents[at][lane] = *d;
            at += 1;
        })?;
    }
    let mut at = tangents.into_iter();
    Ok(x.map(&mut |x| Dual::new(*x, at.next().unwrap_or([S::zero(); N]))))
}

/// The numbers of `x`, of which those from `from` on have the `N` unit directions; and how many numbers there are.
pub(crate) fn unit<'b, S, X, const N: usize>(x: &X, from: usize) -> (X::With<Dual<'b, S, N>>, usize)
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
{
    if from == 0 {
        x.verify();
    }
    let mut index = 0;
    let x = x.map(&mut |x| {
        let tangent = std::array::from_fn(|lane| if from + lane == index { S::one() } else { S::zero() });
        index += 1;
        Dual::new(*x, tangent)
    });
    (x, index)
}

/// The value and gradient by forward mode, `N` variables in each run of the function: for functions of few variables.
///
/// ```
/// use pullback_dual::gradient_forward;
///
/// let (value, gradient) = gradient_forward::<4, _, _, _>(|[x, y]| x * y, &[3.0, 4.0]);
/// assert_eq!((value, gradient), (12.0, [4.0, 3.0]));
/// ```
#[inline]
pub fn gradient_forward<const N: usize, S, X, F>(mut f: F, x: &X) -> (S, X::With<S>)
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'b> FnMut(&'b X::With<Dual<'b, S, N>>) -> Dual<'b, S, N>,
{
    const { assert!(N > 0, "at least one variable in each run") };
    let (input, variables) = unit(x, 0);
    let (value, tangent) = call(input, &mut f, |y| (y.value, y.tangent));
    let mut gradient = Vec::with_capacity(variables);
    gradient.extend(tangent);
    while gradient.len() < variables {
        let (input, _) = unit(x, gradient.len());
        gradient.extend(call(input, &mut f, |y| y.tangent));
    }
    let mut at = gradient.into_iter();
    (value, x.map(&mut |_| at.next().unwrap_or(S::zero())))
}

/// The values of a function with a list of results, and the columns of its Jacobian: the tangent of the results for each variable. Four
/// columns share a run of the function.
///
/// ```
/// use pullback_dual::jacobian_forward;
///
/// let (y, columns) = jacobian_forward(|&[a, b]| vec![a * b, a + b, b], &[2.0, 5.0]);
/// assert_eq!(y, [10.0, 7.0, 5.0]);
/// assert_eq!(columns, [[5.0, 1.0, 0.0], [2.0, 1.0, 1.0]]);
/// ```
pub fn jacobian_forward<S, X, F>(mut f: F, x: &X) -> (Vec<S>, Vec<Vec<S>>)
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'b> FnMut(&'b X::With<Dual<'b, S, 4>>) -> Vec<Dual<'b, S, 4>>,
{
    let (mut value, mut columns) = (Vec::new(), Vec::new());
    loop {
        let from = columns.len();
        let (input, variables) = unit(x, from);
        call(input, &mut f, |y| {
            value = y.iter().map(|y| y.value).collect();
            let lanes = 0..4.min(variables - from);
            columns.extend(lanes.map(|lane| y.iter().map(|y| y.tangent[lane]).collect::<Vec<S>>()));
        });
        if columns.len() == variables {
            return (value, columns);
        }
    }
}
