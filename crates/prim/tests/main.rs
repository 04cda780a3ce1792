//! The integration tests of the crate, as one program: each file is a module.

mod derivatives;
mod edges;
mod integers;
mod kinks;
mod special;
mod stops;
