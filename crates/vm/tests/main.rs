//! The integration tests of the crate, as one program: each file is a module.

mod common;
mod instructions;
mod kernels;
mod plan;
mod programs;
