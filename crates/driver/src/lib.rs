//! Pipelines, sessions, options and value formats: the only crate that knows all passes.
//!
//! Place in the pipeline: above every pass, below the command line and the facade.

pub mod values;
