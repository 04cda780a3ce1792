//! The application binary interface (ABI) that the native executors share: values of core as words, workspaces, and what is said when a call stops.
//!
//! Place in the pipeline: below the executors of kernel IR. A function of kernel IR is called with one word of eight bytes for
//! each argument and result: the bits of a scalar, zero- or sign-extended, or an address.

mod buffers;
mod call;
pub mod stop;
mod values;
mod views;
mod workspace;

pub use buffers::{Argument, Copies, Element, Place, Slot, Spread, set_words, take_results};
pub use call::{Outcome, with_values};
pub use values::{Arguments, Room, from_words, scalar, sizes, width, word};
pub use views::{Kept, View, Views};
pub use workspace::{ALIGNMENT, Workspace, Workspaces};

/// Parts of taking results: only the tests of this crate use them by themselves.
#[doc(hidden)]
pub mod internals {
    pub use crate::buffers::{Dims, copy_past_caches, without_gaps};
}
