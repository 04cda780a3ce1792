//! Dual-numbers reverse AD (thesis of Smeding, chapter 3), from lambda to lambda.
//!
//! One transformation that keeps the structure of programs: every number becomes the number with its *backpropagator*, everything else stays as it
//! is. The chapter refines what a backpropagator is; each step has a file:
//!
//! | file | a number becomes | section | cost of a gradient of `T` operations with `I` numbers as arguments |
//! |---|---|---|---|
//! | [`a_naive`] | the number and a linear function to the cotangents of all arguments | 3.3 | exponential in the depth of shared values |
//! | [`b_staged`] | ... with an identity; calls of functions with the same identity become one | 3.4 | `O(T (I + log T))` |
//! | [`c_cayley`] | ... a function that changes the staged calls, not one that gives some to be added | 3.5 | `O(T log T)`, and for each argument the depth it is at |
//! | [`d_scalars`] | the same; cotangents of the arguments are collected by identity | 3.6 | `O(T log T + I log I)` |
//! | [`e_arrays`] | the same on mutable arrays | 3.7 | `O(T + I)` |
//! | [`f_contrib`] | an identity and what it contributes to which others, as data | 3.8.1, 3.8.2 | `O(T + I)` |
//! | [`f_taping`] | an identity; what it contributes to is on a tape | 3.8.3 | `O(T + I)` |
//! | [`g_parallel`] | as in [`f_contrib`], with identities per job of a program that forks and joins | 3.10 | work `O(T + I)`, span of the program; loops that write elements copy arrays |
//!
//! From the second stage on identities have to be handed out, so programs thread a state; all stages share that (`forward`) and say only what stands beside a number.
//! Costs are tested by counting (`crates/testkit/tests/dual_numbers_growth.rs`).

pub mod a_naive;
pub mod b_staged;
pub mod c_cayley;
pub mod d_scalars;
pub mod e_arrays;
pub mod f_contrib;
pub mod f_taping;
pub mod g_parallel;

mod effects;
pub(crate) mod forward;
pub(crate) mod maps;
mod rows;
pub(crate) mod structure;

use crate::contract::{Bound, Status};
use crate::on_lambda::OnLambda;

/// The algorithms of this chapter, in its order.
pub const ON_LAMBDA: &[OnLambda] = &[
    OnLambda {
        id: a_naive::ID,
        title: "Dual numbers in reverse, naive",
        citation: "Smeding, thesis, 3.3",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: true,
        vjp: a_naive::vjp,
    },
    OnLambda {
        id: b_staged::ID,
        title: "Dual numbers in reverse, staged",
        citation: "Smeding, thesis, 3.4",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: b_staged::vjp,
    },
    OnLambda {
        id: c_cayley::ID,
        title: "Dual numbers in reverse, with changes of staged calls",
        citation: "Smeding, thesis, 3.5",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: c_cayley::vjp,
    },
    OnLambda {
        id: d_scalars::ID,
        title: "Dual numbers in reverse, of numbers by identity",
        citation: "Smeding, thesis, 3.6",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: d_scalars::vjp,
    },
    OnLambda {
        id: e_arrays::ID,
        title: "Dual numbers in reverse, on mutable arrays",
        citation: "Smeding, thesis, 3.7",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: false,
        vjp: e_arrays::vjp,
    },
    OnLambda {
        id: f_contrib::ID,
        title: "Dual numbers in reverse, with contributions as data",
        citation: "Smeding, thesis, 3.8.1 and 3.8.2",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: false,
        vjp: f_contrib::vjp,
    },
    OnLambda {
        id: f_taping::ID,
        title: "Dual numbers in reverse, taping",
        citation: "Smeding, thesis, 3.8.3",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: false,
        vjp: f_taping::vjp,
    },
    OnLambda {
        id: g_parallel::ID,
        title: "Dual numbers in reverse, parallel",
        citation: "Smeding, thesis, 3.10",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: false,
        vjp: g_parallel::vjp,
    },
];
