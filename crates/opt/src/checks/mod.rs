//! Derivatives stop where their functions stop.
//!
//! What can stop a program is part of an operation (an index, a division), and goes with it if nobody needs its value. In a primal
//! that is meant. In a derivative it is not: of a linear function no value is needed. So in functions to be differentiated each such operation gets
//! a check before it ([`keep`]), a statement that stays. All passes and the algorithms treat it as they treat an assertion: reverse mode
//! runs it in the forward sweep.
//!
//! Most checks need not run ([`settle`]): of what they ask it is known that it holds, or an operation that stays asks the same.
//! A check is there once per place that can stop the program. What it costs where it stays is a comparison.

mod ask;
mod keep;
mod known;
mod linear;
mod settle;

pub use keep::{keep_all_checks, keep_checks};
pub use settle::settle_checks;
