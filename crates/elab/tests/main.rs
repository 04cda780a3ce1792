//! The integration tests of the crate, as one program: each file is a module.

mod accepted;
mod interpreters_agree;
mod lower;
mod meaning;
