//! Kernel IR on the processors of this machine, as machine code.
//!
//! Place in the pipeline: an executor, after the lowering to kernel IR. An [`Executable`] is made once and called from any
//! number of threads; every running call has a [`Session`] with its own workspace, which is kept for later calls.

pub mod cache;
mod executable;
mod prepared;
mod session;
mod share;
mod symbols;

pub use executable::{Draft, Executable, Options, scheduled, scheduling};
pub use prepared::Prepared;
pub use pullback_abi::{Argument, Element, Outcome, Place, View, Views, Workspaces};
pub use pullback_llvm::{Found, Level, LlvmError};
pub use session::Session;
