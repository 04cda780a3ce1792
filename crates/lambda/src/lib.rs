//! The elaborated source and theory IR: monomorphic, typed lambda terms.
//!
//! Place in the pipeline: `elab` makes lambda from typed source and lowers it to core; CHAD, dual numbers and delta
//! terms are lambda to lambda. Assumes nothing; a program that `check` accepts is well scoped and well typed.
//! Delta terms and tapes are recursive sums ([`Type::Named`]) and mutable arrays. Pure.

pub mod builder;
pub mod check;
pub mod children;
pub mod choose;
pub mod inline;
mod lex;
pub mod print;
pub mod read;
pub mod term;
pub mod types;
pub mod typing;

pub use builder::Builder;
pub use term::{
    Arm, Derivative, Entry, EntryType, Exp, Fun, FunId, Loop, LoopAttrs, LoopForm, Mark, Node, Program,
    Seeds, SliceDim, Soac, TapePolicy, Term, TypeDef, Var, VarInfo,
};
pub use types::{Type, TypeId, Variant};

/// Nesting beyond this (other than in chains of `let`) is refused by the checker and the reader.
pub const MAX_DEPTH: usize = 100_000;

/// Runs `f` with at least 128 KiB of stack left, on a new piece of stack if need be: for recursion over terms.
pub fn with_stack<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(128 * 1024, 4 * 1024 * 1024, f)
}
