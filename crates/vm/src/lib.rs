//! Kernel IR run by an interpreter of blocks of lanes: needs nothing at run time.
//!
//! Place in the pipeline: an executor, after the lowering to kernel IR and the scheduling of its loops. An [`Executable`] is made
//! once, in much less time than machine code, and called from any number of threads; every running call has a [`Session`] with
//! its own workspace, which is kept for later calls.
//!
//! A module is translated to bytecode: instructions on the words and registers of a frame. One instruction on lanes runs a
//! kernel, compiled beforehand for the instruction set of the processor, over all active lanes, so that the time to choose it
//! is spread over up to [`LANES`] elements.

mod checks;
mod coalesce;
mod code;
mod executable;
mod kernels;
mod near;
mod run;
mod session;
mod simplify;
mod slots;
mod translate;
mod uses;

pub use executable::{Executable, Functions, LANES, Options};
pub use kernels::Machine;
pub use pullback_abi::Outcome;
pub use session::{Limits, Session, is_out_of_work};

/// Kernels by themselves: only the tests of this crate call them with registers of their own.
#[doc(hidden)]
pub mod internals {
    pub use crate::kernels::pairs::{Taken, two};
    pub use crate::kernels::{
        CHUNK, Kernel, MemoryKernel, Side, Sums, accumulate, exact, function, identity, load, store,
    };
}
