//! What is known of numbers and pointers at each point of a function: for whoever compares places in memory.
//!
//! Begin with [`values`]: a register holds a sum of products ([`sums`]) of numbers of which bounds are known ([`numbers`]). A walk over
//! the code ([`walk`]) is what learns them, from counters and from tests that the program has made.

pub(in crate::verify) mod numbers;
pub(in crate::verify) mod sums;
pub(in crate::verify) mod values;
pub(in crate::verify) mod walk;
