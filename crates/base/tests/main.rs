//! The integration tests of the crate, as one program: each file is a module.

mod few;
mod index;
mod table;
