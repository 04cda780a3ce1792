//! The integration tests of the crate, as one program: each file is a module.

mod check;
mod cotangents;
mod prune;
mod text;
