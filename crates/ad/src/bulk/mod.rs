//! Bulk dual numbers (thesis of Smeding, chapter 4): dual-numbers reverse AD of whole arrays.
//!
//! The text goes in steps, and so do the files; begin with [`a_core`].
//!
//! | file | what | section |
//! |---|---|---|
//! | [`a_core`] | the language: array operations, and `build1` with a function | 4.2 |
//! | [`b_bot`] | the bulk-operation transformation: no `build1` any more | 4.4 |
//! | [`c_scalar`] | dual numbers, in arrays as elsewhere; evaluators of their terms | 4.1, 4.3.1 |
//! | [`d_arrays`] | dual arrays, and the reverse pass over arrays | 4.5 |
//! | [`e_symbolic`] | the same over terms: the gradient as a program | 4.6 |
//! | [`f_staged`] | programs as functions in Rust: one text, four meanings | 4.10 |
//!
//! Beside them stand `delayed` (arrays that are made only where they have to be), `sizes` (sizes are polynomials), `values` (arrays) and `print`. [`evaluate`](mod@evaluate) says what terms mean in any algebra.
//! [`counts`] are those of nodes and visits, and [`separation`] says what a derivative over terms has to be.
//!
//! [`to_core`] makes functions of core of programs and gradients, [`from_core`] programs of functions of core. Together with the symbolic pass they are the algorithm `bulk` (`--ad bulk`).
//!
//! [`interpreted`] runs dual numbers and dual arrays while a program runs (`--ad bulk-scalar`, `--ad bulk-tape`). `folds` has the derivative of loops with closed functions (4.7).

pub mod a_core;
pub mod b_bot;
pub mod c_scalar;
pub mod counts;
pub mod d_arrays;
pub mod e_symbolic;
pub mod evaluate;
pub mod f_staged;
mod folds;
pub mod from_core;
pub mod interpreted;
pub mod partials;
pub mod separation;
pub mod sizes;
pub mod to_core;
pub mod values;

mod delayed;
mod print;
mod terms;
