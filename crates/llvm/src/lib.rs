//! Text of LLVM IR. This crate writes it; it neither links nor loads LLVM.
//!
//! Guarantees: equal inputs give equal text. The text is read by LLVM 15 and later (opaque pointers).

pub mod maths;

pub use maths::{Machine, Precision, Shape, definition, module};
