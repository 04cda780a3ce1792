//! Core to kernel IR: what executors run.
//!
//! Place in the pipeline: after the last pass of core, before an executor. Pure: no files, threads or clock.
//!
//! [`lower`] takes a checked program without derivatives and gives a [`Module`], or [`NotNative`] with the rule that the
//! program breaks.

mod calls;
mod ghosts;
mod ir;
mod lower;
mod plan;
mod print;
pub mod profile;
mod read;
pub mod run;
pub mod schedule;
pub mod values;
pub mod verify;
mod walk;

pub use calls::recursive;
pub use ghosts::{Dimensions, Ghost, Ghosts};
pub use ir::{
    Block, Facts, Fold, Function, FunctionId, Ins, Message, MessageId, Module, Operand, Order, Reg, RegInfo,
    Shape, Site, Sweep, Text, Ty,
};
pub use lower::{
    NotNative, lower, lower_plainly, lower_unproved, lower_with_ghosts, lower_with_parts, lower_with_sites,
    prove,
};
pub use plan::{Bytes, Plan, Shortage};
pub use print::{print, print_whole};
pub use read::{MAX_DEPTH, ReadError, read};
pub use walk::{size, walk};

/// Parts of the lowering, the scheduling and the reference executor: only the tests of this crate use them one by one.
#[doc(hidden)]
pub mod internals {
    pub use crate::lower::{Fault, proved};
    pub use crate::run::fingerprint::of_prim;
    pub use crate::schedule::jam::{fits, shared};
}
