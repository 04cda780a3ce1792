//! The production IR: first-order ANF with second-order array operations (SOACs) and scoped accumulators.
//!
//! Place in the pipeline: everything that is compiled passes through core; forward mode and Fast CHAD are core to core.

pub mod builder;
pub mod check;
pub mod choose;
pub mod cotangent;
pub mod fused;
pub mod ir;
pub mod metrics;
pub mod print;
pub mod prune;
pub mod read;
pub mod rename;
pub mod shapes;
mod shell;
pub mod traverse;
pub mod types;
pub mod typing;
pub mod usage;
pub mod value;

pub use builder::Builder;
pub use check::{Malformed, Rules, check};
pub use ir::*;
pub use print::{print, renumber};
pub use read::read;
pub use types::{Type, TypeId, Variant};
pub use value::{Array, Buffer, Value, count_elements};
