//! The integration tests of the crate, as one program: each file is a module.

mod cache;
mod code;
mod commands;
mod compile_growth;
mod interrupt;
mod library;
mod limits;
mod matrices;
mod profile;
