//! Bulk dual numbers (`crates/ad/src/bulk`), step by step. Programs are built by [`build`], and drawn by [`generate`].

mod against;
mod arrays;
mod bot;
mod build;
mod claims;
mod core;
mod costs;
mod delayed;
mod extrema;
mod from_core;
pub(crate) mod generate;
mod interpreted;
mod loops;
mod refused;
mod rules;
mod scalar;
mod sent;
mod staged;
mod symbolic;
mod taken;
mod translated;
