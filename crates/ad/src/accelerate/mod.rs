//! Reverse AD for Accelerate (MSc thesis of Smeding): a second-order array language, differentiated by local rules.
//!
//! Begin with [`language`]; then read in this order:
//!
//! | file | what | section |
//! |---|---|---|
//! | [`language`] | Idealised Accelerate: array combinators with scalar functions | 3.1 |
//! | [`label`] | a number for each node | 3.4.2 |
//! | [`expression`] | a scalar function in two: its primal lambda and its dual lambda | 3.4.1, 3.5 |
//! | [`primal`] | the let-stack of the values of all nodes | 3.4.3 |
//! | [`contributions`] | what has been contributed to the adjoint of each node | 3.4.4 |
//! | [`dual`] | the let-stack of the adjoints | 3.4.4 |
//! | `folds` | the same of folds and scans | 3.4.4 |
//! | [`combine`] | both, and the gradient | 3.4.5 |
//! | [`to_core`] | array programs as functions of core | 2.3 |
//!
//! [`from_core`] makes programs of functions of core, [`to_core`] the reverse: the algorithm `accelerate` (`--ad accelerate`).
//!
//! Beside them: `zeros` (zeros, sums, empty arrays), `rename` (array variables of scalar functions).

pub mod combine;
pub mod contributions;
pub mod dual;
pub mod expression;
pub mod from_core;
pub mod label;
pub mod language;
pub mod primal;
pub mod to_core;

mod folds;
mod print;
mod rename;
mod zeros;
