//! The integration tests of the crate, as one program: each file is a module.

mod chapters;
mod checker;
mod round_trip;
