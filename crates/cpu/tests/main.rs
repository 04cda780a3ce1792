//! The integration tests of the crate, as one program: each file is a module.

mod baseline;
mod cache;
mod common;
mod contractions;
mod instructions;
mod lanes;
mod loops;
mod pieces;
mod primitives;
mod programs;
mod speculation;
mod threads;
mod versions;
