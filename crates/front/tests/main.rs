//! The integration tests of the crate, as one program: each file is a module.

mod common;
mod ill_typed;
mod mutated;
mod prelude;
mod well_typed;
