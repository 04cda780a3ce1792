//! Test machinery: random programs, properties, growth tests, shrinking, suite files.
//!
//! Place in the pipeline: beside it; used from integration tests, `cargo xtask soak` and fuzzers only.

pub mod flat;
pub mod generate;
pub mod properties;
pub mod rng;
pub mod soak;
