//! Pipelines, sessions, options and value formats: the only crate that knows all passes.
//!
//! Place in the pipeline: above every pass, below the command line and the facade. Reading order: [`pipeline`] (the
//! passes as data), [`session`] (one program), [`mod@derive`] (derivatives of entry points), [`matrices`]
//! (Jacobians, Hessians and their products), [`mod@explain`] (source, rule
//! and result side by side), [`on_lambda`] (derivatives by the algorithms on lambda), [`values`] (formats).

mod accelerate_steps;
pub mod backend;
mod bulk_steps;
pub mod code;
pub mod derive;
pub mod explain;
pub mod files;
pub mod front;
pub mod gradcheck;
pub mod imports;
pub mod leaves;
pub mod library;
pub mod matrices;
pub mod memory;
pub mod on_fragment;
pub mod on_lambda;
pub mod pipeline;
pub mod profile;
mod repeat;
pub mod report;
pub mod session;
pub mod values;
mod versions;
pub mod vm;

use pullback_ad::contract::{Mode, algorithms};

pub use backend::{Backend, Native};
pub use derive::Kind;
pub use leaves::{Leaf, Wrt};
pub use matrices::{Block, Entries, Matrix, Product, Sweep};
pub use pullback_ad::contract::{About, Language, Status};
pub use pullback_cpu::{Argument, Place, Prepared, View, Views};
pub use pullback_llvm::Floats;
pub use repeat::argument;
pub use report::{CodeReport, Executor, Outcome, Ran};
pub use session::{EntryPoint, Failed, Ready, Session, Settings};

// Only the tests of this crate use them by themselves.
#[doc(hidden)]
pub use versions::{MOST, Versions, distance};

/// The algorithms for reverse mode that a user may choose.
pub fn reverse_algorithms() -> Vec<About> {
    algorithms().filter(|a| a.mode == Mode::Reverse).collect()
}
