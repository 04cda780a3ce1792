//! The integration tests of the crate, as one program: each file is a module.

mod loader;
mod maths;
mod pieces;
mod text;
