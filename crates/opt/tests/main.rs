//! The integration tests of the crate, as one program: each file is a module.

mod accumulators;
mod borders;
mod checks;
mod common;
mod injective;
mod passes;
mod random;
mod segments;
