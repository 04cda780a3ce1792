//! The integration tests of the crate, as one program: each file is a module.

mod found;
mod library;
mod loader;
mod maths;
mod messages;
mod pieces;
mod text;
