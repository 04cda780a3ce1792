//! Growth of cost, searched for: all small programs with loops over names of arrays, and random larger ones.
//!
//! The families of [`crate::cost`] are programs that somebody thought of. Here programs are enumerated from a grammar
//! ([`terms`]): loops whose states are inputs, rows, columns, slices, choices, exchanges, new and overwritten arrays, in several
//! frames. Of each the work of the derivative over that of the program is measured at growing sizes, in steps of the
//! interpreter; and its gradient is compared with forward mode.

pub mod build;
pub mod draw;
pub mod measure;
pub mod search;
pub mod shrink;
pub mod terms;
