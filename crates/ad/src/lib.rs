//! The AD algorithms, one folder each, behind one contract.
//!
//! Place in the pipeline: core to core, between simplification and code generation. Reading order: [`contract`] (what
//! every algorithm promises), [`tangent`] (vocabulary shared by all), [`forward`] (dual numbers), [`fast_chad`] (the
//! production reverse mode), [`mod@differentiate`] (expands `vjp`/`jvp` of a program, innermost first),
//! [`many`] (Jacobians: many directions at once). From lambda to lambda, selectable ([`on_lambda`]): [`chad`], [`dual_numbers`], [`delta`].
//! On a language of its own, to which core is translated: [`bulk`].
//!
//! Algorithms share vocabulary, never control flow: each writes out its own walk over statements.

pub mod accelerate;
pub mod activity;
pub mod bulk;
pub mod chad;
pub mod contract;
pub mod delta;
pub mod differentiate;
pub mod dual_numbers;
pub mod fast_chad;
pub mod forward;
mod iterations;
pub mod many;
pub mod on_lambda;
mod products;
pub mod regularity;
mod size_names;
pub mod tangent;
mod translation;

pub use contract::{ALGORITHMS, Algorithm, Bound, Status, Unsupported};
pub use differentiate::differentiate;

/// Parts of Fast CHAD: only the tests of this crate use them one by one.
#[doc(hidden)]
pub mod internals {
    pub use crate::fast_chad::cotangent::{Cotangent, coerce, pack, plus};
    pub use crate::fast_chad::cut::{NEVER, Step, cheapest};
    pub use crate::fast_chad::desc::{
        Alternative, Desc, Entry, array, as_hot, choice, full, hot, join, maybe, optional, product, sum,
    };
    pub use crate::fast_chad::reverse::Reverse;
}
