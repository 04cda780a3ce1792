//! The integration tests of the crate, as one program: each file is a module.

mod accelerate;
mod branch_tapes;
mod bulk;
mod common;
mod cotangents;
mod cut;
mod descriptors;
mod exceptions;
mod fast_chad;
mod fast_chad_calls;
mod fast_chad_checkpoint;
mod fast_chad_folds;
mod fast_chad_growth;
mod fast_chad_indexed;
mod fast_chad_rules;
mod forward;
mod locations;
mod locations_functions;
mod many;
mod structure;
mod tapes;
mod unsupported;
