//! Dual-numbers reverse AD (thesis of Smeding, chapter 3), from lambda to lambda.
//!
//! One transformation that keeps the structure of programs: every number becomes the number with its *backpropagator*, everything else stays as it
//! is. The chapter refines what a backpropagator is; each step has a file:
//!
//! | file | a number becomes | section | cost of a gradient |
//! |---|---|---|---|
//! | [`a_naive`] | the number and a linear function to the cotangents of all arguments | 3.3 | exponential in the depth of shared values |
//!
//! The other steps are not written yet.

pub mod a_naive;

use crate::contract::{Bound, Status};
use crate::on_lambda::OnLambda;

/// The algorithms of this chapter, in its order.
pub const ON_LAMBDA: &[OnLambda] = &[OnLambda {
    id: a_naive::ID,
    title: "Dual numbers in reverse, naive",
    citation: "Smeding, thesis, 3.3",
    bound: Bound::None,
    status: Status::Didactic,
    recursion: true,
    vjp: a_naive::vjp,
}];
