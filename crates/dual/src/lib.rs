//! Derivatives of ordinary Rust code.

mod brand;
mod cell;
mod error;
mod forward;
mod lifted;
mod memory;
mod reverse;
mod rules;
mod scalar;
mod second;
mod tape;
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
