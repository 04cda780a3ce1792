//! Typed source to lambda (`elaborate`), and lambda to core (`lower`).
//!
//! Place in the pipeline: after `front`, before `ad`. Pure: no files, clock, threads or global state.

pub mod elaborate;
pub mod lower;

pub use elaborate::elaborate;
pub use lower::{lower, lower_functions};
