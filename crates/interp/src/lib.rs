//! Reference interpreters: the meaning and the cost of programs.
//!
//! [`core`] runs core programs and counts work, span and live memory. [`dual`] runs the same programs on dual numbers
//! of any nesting and is the oracle for every AD algorithm: it shares no code with the AD crate, only the primitive table.

pub mod core;
pub mod dual;
pub mod lambda;
