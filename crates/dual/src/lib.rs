//! Derivatives of ordinary Rust code: reverse mode, forward mode and nests of them, for functions that are generic over their numbers.
//!
//! ```
//! use pullback_dual::{Differentiable, Real, grad, hessian, value_and_grad};
//!
//! #[derive(Debug, PartialEq, Differentiable)]
//! struct Line<S> {
//!     slope: S,
//!     offset: S,
//! }
//!
//! fn squares<S: Real>(line: &Line<S>, points: &[(f64, f64)]) -> S {
//!     let error = |(x, y): &(f64, f64)| line.slope * *x + line.offset - *y;
//!     points.iter().map(|p| error(p) * error(p)).sum()
//! }
//!
//! let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)];
//! let line = Line { slope: 1.0, offset: 1.0 };
//! let (value, gradient) = value_and_grad(|line| squares(line, &points), &line);
//! assert_eq!((value, gradient), (5.0, Line { slope: -10.0, offset: -6.0 }));
//! assert_eq!(hessian(|line| squares(line, &points), &line), [[10.0, 6.0], [6.0, 6.0]]);
//! # assert_eq!(grad(|line| squares(line, &points), &line).slope, -10.0);
//! ```
//!
//! Loops, recursion, early returns, closures, sums, lists and trees: the function is Rust, and what it computes is recorded while it
//! runs. A gradient costs a small multiple of the function, whatever the number of variables.
//!
//! # How to write a function
//!
//! - Be generic over [`Scalar`], or over [`Real`] for arithmetic with literals (`x * 2.0`).
//! - Call it in a closure: `grad(|x| f(x), &x)`, not `grad(f, &x)`, since the closure works for numbers of every lifetime. The closure gets a
//!   reference: `|&x|` or `|&[a, b]|` takes numbers out of it.
//! - Data types are generic over their numbers and derive [`Differentiable`]. Gradients have their shape.
//! - Comparisons look at values. Where a function has a kink, the derivative is that of the branch taken; at a tie of
//!   [`max`](Scalar::max) and [`min`](Scalar::min) each argument has a half, [`abs`](Scalar::abs) has 0 at 0. So sums of kinked terms that
//!   are smooth together have the right first derivative: `max(x, 0) + log(1 + exp(-|x|))` has 1/2 at 0. Second derivatives at a tie are
//!   those of the constants. See also [`pow`](Scalar::pow).
//!
//! # What there is
//!
//! | | |
//! |---|---|
//! | [`grad`], [`value_and_grad`] | the gradient of a function of one result, by reverse mode |
//! | [`vjp`] | the value, and the pullback as an object that can be called again |
//! | [`jacobian`], [`jacobian_forward`] | by rows (few results), by columns (few variables) |
//! | [`derivative`], [`jvp`], [`gradient_forward`] | forward mode |
//! | [`hessian`], [`hvp`] | forward over reverse mode |
//! | [`Scalar::dot`], [`Scalar::total`] | sums as one row of the tape: also of `ndarray`'s arrays, by `as_slice` |
//! | [`Scalar::checkpoint`] | runs a part again instead of keeping its tape |
//! | [`Scalar::custom`], [`Scalar::with_partials`] | derivatives of your own |
//! | [`Settings`] | limits and costs of the tape |
//! | [`parallel`] | functions that fork and join, on several threads |
//!
//! # Nesting
//!
//! Derivatives nest: inside of a closure for [`grad`] another `grad`, [`derivative`] or [`hessian`] may be taken at numbers of the outer
//! one. Levels have different types and lifetimes, so confusing them is an error of the compiler; a number of the outer level enters the
//! inner one by [`Var::lift`] or [`Dual::lift`].
//!
//! # Cost
//!
//! 24 bytes of tape for each operation on two `f64` that depend on inputs (16 on `f32`), and 8 (4) for its cotangent in the reverse
//! pass. Constants cost nothing, and neither do functions of one number, or of two that were made of the same one: a number carries its
//! derivative with respect to the last row that it comes from. Memory is kept by the thread for the next call ([`kept_memory`]); tapes are
//! chains of blocks, so growing copies nothing and dropping does not recur.
//!
//! # Zeros
//!
//! A tangent or cotangent that is exactly zero stops at a partial derivative that is infinite or NaN, in all modes and nests of them: what does
//! not count cannot spoil what counts. Where partial derivatives are finite, products are plain, so derivatives of higher order lose nothing.
//! Rules by hand do the same with [`Scalar::strong_mul`].
//!
//! ```
//! use pullback_dual::{Real, Scalar, derivative, grad, hessian};
//!
//! fn masked<S: Real>(x: S) -> S {
//!     let root = x.sqrt(); // infinitely steep at 0
//!     if x.value() > 0.0 { root } else { x }
//! }
//! assert_eq!(grad(|&x| masked(x), &0.0), 1.0);
//! assert_eq!(derivative(|x| masked(x), 0.0).1, 1.0);
//! assert_eq!(grad(|[z, x]| *z * x.sqrt(), &[0.0, 0.0]), [0.0, 0.0]);
//! // Zero times a finite partial derivative: the second derivative is 1/2.
//! assert_eq!(hessian(|x| (x.sqrt() - 1.0) * (x.sqrt() - 1.0), &1.0), [[0.5]]);
//! ```
//!
//! The functions that stop zeros are those that have such a partial derivative at a finite argument: quotients, roots, logarithms, powers, exponentials
//! (which overflow), and the inverse ones of circular and hyperbolic functions. Sums and products do not: an infinite *value* makes NaN of a
//! product in forward mode. And only the tangent or cotangent stops: in reverse mode `(x * x).sqrt()` has NaN at 0, where an infinite
//! cotangent meets the partial derivative 0.
//!
//! # From other libraries
//!
//! | library | there | here |
//! |---|---|---|
//! | `reverse` | `let t = Tape::new(); let x = t.add_var(3.0); f(x).grad().wrt(&x)` | `grad(\|&x\| f(x), &3.0)` |
//! | `aad` | `let t = Tape::default(); let [x] = t.create_variables(&[3.0]); f(x).compute_gradients()?.get_gradient(&x)?` | the same |
//! | `num-dual` | `first_derivative(f, 3.0)` | `derivative(\|x\| f(x), 3.0)` |
//! | `num-dual` | `gradient(f, &v)`, `hessian(f, &v)`, `DualSVec64<N>` | [`gradient_forward`]`::<N, ..>`, [`hessian`], [`Dual`]`<'_, f64, N>` |
//! | `autodiff` | `diff(f, 3.0)`, `grad(f, &xs)` | `derivative(\|x\| f(x), 3.0).1`, `gradient_forward::<4, ..>` |
//! | all | `T: Float` (`num_traits`) | `S: Real` or `S: Scalar` |
//!
//! There is no tape to make or to clear, numbers cannot outlive their call, and parameters may be any data type.

/// What cells are made of. The test under the model checker puts the checker's types in its place.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
mod brand;
mod cell;
mod error;
mod forward;
mod lifted;
mod memory;
#[cfg(feature = "parallel")]
pub mod parallel;
mod probe;
mod reverse;
mod rules;
mod scalar;
mod second;
mod tape;
#[cfg(test)]
mod tests;
mod value;
mod var;

pub use error::Error;
pub use forward::{Dual, derivative, gradient_forward, jacobian_forward, jvp};
pub use memory::{kept_memory, release_memory};
pub use pullback_derive::Differentiable;
pub use reverse::{Outcome, Pullback, Report, Settings, grad, jacobian, value_and_grad, vjp};
pub use scalar::{Custom, Float, Function, Real, Scalar};
pub use second::{Second, hessian, hvp};
pub use value::{Differentiable, mismatch};
pub use var::Var;
