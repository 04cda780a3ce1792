//! Kernel IR to machine code through LLVM, found at run time: nothing of LLVM is needed to build this crate.
//!
//! Place in the pipeline: after the lowering to kernel IR, below the executors. `text` and `maths` are pure: equal inputs give
//! equal text, which LLVM 15 and later read; `load` opens a library.

pub mod abi;
pub mod library;
pub mod load;
pub mod maths;
pub mod pieces;
pub mod text;

pub use abi::Context;
pub use load::{Found, Level, Linked, Llvm, LlvmError};
pub use maths::{Machine, Precision, Shape, definition, module};
pub use text::{Emitted, Floats, Functions, Options, Symbol, Texts, emit, emit_several, entry_symbol};

/// Parts of libraries, and of the search for LLVM: only the tests of this crate use them by themselves.
#[doc(hidden)]
pub mod internals {
    pub use crate::library::explain::{Format, Value, formats};
    pub use crate::load::find::{libraries, major};
}
