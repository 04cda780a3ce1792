//! Names, types and sizes: from the syntax tree to a typed source program.
//!
//! Place in the pipeline: after `syntax`, before `elab`. Assumes a tree of the parser (limited height). Guarantees: every
//! problem is a diagnostic with a span, checking never stops at the first, and a program without error diagnostics
//! satisfies the conventions of [`typed`]. Pure: no files, clock, threads or global state.

pub mod intrinsics;
pub mod typed;

mod binding;
mod checker;
mod complete;
mod control;
mod defs;
mod expr;
mod finish;
mod operator;
mod pattern;
mod print;
mod product;
mod scheme;
mod size;
mod types;
mod unify;
mod unique;

pub use defs::{File, check_files, check_program};
pub use print::type_text;
