//! Scalar types and the primitive table: meaning, partial derivatives, domain and cost of every scalar operation.
//!
//! Place in the pipeline: below both IRs. All executors evaluate floating point functions through [`Prim::eval`].

pub mod scalar;
pub mod table;

pub use scalar::{Scalar, ScalarValue};
pub use table::{Op, Partial, Prim, PrimError};
