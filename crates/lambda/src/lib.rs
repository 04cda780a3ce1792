//! The elaborated source and theory IR: monomorphic, typed lambda terms.
//!
//! Place in the pipeline: `elab` makes lambda from typed source and lowers it to core; CHAD, dual numbers and delta
//! terms are lambda to lambda. Assumes nothing; a program that `check` accepts is well scoped and well typed.
//! Delta terms and tapes are recursive sums ([`Type::Named`]) and mutable arrays. Pure.

pub mod builder;
pub mod children;
pub mod term;
pub mod types;
pub mod typing;

pub use builder::Builder;
pub use term::{
    Arm, Derivative, Entry, EntryType, Exp, Fun, FunId, Loop, LoopAttrs, LoopForm, Mark, Node, Program,
    SliceDim, Soac, TapePolicy, Term, TypeDef, Var, VarInfo,
};
pub use types::{Type, TypeId, Variant};
