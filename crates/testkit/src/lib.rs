//! Test machinery: random programs, properties, growth tests, shrinking, suite files.
//!
//! Place in the pipeline: beside it; used from integration tests, `cargo xtask soak` and fuzzers only.

pub mod baseline;
pub mod book;
pub mod chad;
pub mod checkpoints;
pub mod conformance;
pub mod cost;
pub mod dual_mutants;
pub mod flat;
pub mod fork_join;
pub mod generate;
pub mod native;
pub mod nested;
pub mod problems;
pub mod properties;
pub mod rng;
pub mod shrink;
pub mod soak;
pub mod stages;
pub mod steps;
pub mod suite;
pub mod text;
pub mod workloads;

/// A number that the environment gives a test (`COUNT`, `SEED`), or this one.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}
