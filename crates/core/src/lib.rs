//! The production IR: first-order ANF with second-order array operations (SOACs) and scoped accumulators.
//!
//! Place in the pipeline: everything that is compiled passes through core; forward mode and Fast CHAD are core to core.

pub mod builder;
pub mod ir;
pub mod prune;
pub mod rename;
pub mod traverse;
pub mod types;
pub mod typing;
pub mod usage;
pub mod value;

pub use builder::Builder;
pub use ir::*;
pub use types::{Type, TypeId, Variant};
pub use value::{Array, Buffer, Value};
