//! Scalar types and the primitive table: meaning, partial derivatives, domain and cost of every scalar operation.
//!
//! Place in the pipeline: below both IRs. All executors evaluate floating point functions through [`Prim::eval`].

pub mod book;
pub mod function;
pub mod prim;
pub mod scalar;
pub mod special;
pub mod table;

mod arith;

pub use book::table_as_markdown;
pub use function::Function;
pub use prim::{MAX_ARITY, Partial, Prim, PrimError, Product, eval_partial};
pub use scalar::{Scalar, ScalarValue};
pub use table::{Op, Row};
