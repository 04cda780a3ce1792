//! Reverse AD for Accelerate: a second-order array language, differentiated by local rules.
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
//! | `collect`, `iterate` | the same of loops | ours |
//! | `winners` | the same of permutations by the larger or smaller number | ours |
//! | [`fuse`] | combinators whose functions are joined, before all others | 6.1, ours |
//! | `sequential`, `sorted` | folds, scans and permutations without a rule of their own, as loops and scans | ours |
//! | [`combine`] | both, and the gradient | 3.4.5 |
//! | [`to_core`] | array programs as functions of core | 2.3 |
//!
//! [`from_core`] makes programs of functions of core: with [`to_core`] the algorithm `accelerate` (`--ad accelerate`). Beside them: `zeros` (zeros, sums, empty arrays), `rows` (parts of inner rows), `rename` (array variables of scalar functions), `print`.
//!
//! Source: T. Smeding, *Reverse Automatic Differentiation for Accelerate*, MSc thesis, Utrecht University, 2021; chapter 3.
//!
//! Judgement: a program `\a. u` of type `T -> T'` becomes a program of type `T -> (T', T)` with a free variable `seed : T'`: the value, and the adjoint of the argument where the value has the adjoint `seed`.
//!
//! Types: the adjoint of a value has the type of the value; what is discrete in it is zero. They are those of [`language`].
//!
//! Notation: `n` the label of a node · `a_n` its value · `d_n` its adjoint · `m <- u` contributes `u` to node `m` · `P(f)`, `D(f)` the primal and the dual lambda of a scalar function
//!
//! Rules:
//! ```text
//! fuse       u  =>  u of the same value, with fewer combinators                                                                    (`fuse`, ours)
//! gradient   \a. u  =>  \a. let (the primal phase of u) (the dual phase of u) in (a_root, the sum of what was contributed to a)      (`combine`)
//! primal     a binding for each node, after those of its arguments                                                                 (`primal`, Table 1)
//! dual       a binding for each node, before those of its arguments, and contributions to them                                     (`dual`, Table 2)
//! function   f  =>  P(f), which gives temporaries, and D(f), which takes them                                                      (`expression`)
//! ```
//!
//! Differences from the paper: each file lists its own. Several results and any types; values are returned; no array is copied for a variable; temporaries and adjoints that nothing reads are left out; contributions of the full
//! shape are added as they are; loops (`collectl`, `collectr`, `iterate`), scans and all folds have derivatives; scalar functions are joined first, by `from_core`; of a fold by the larger or smaller number one element has the adjoint.
//!
//! Guarantee: terms have types, and the gradient of a program is a program: [`language::Program::new`] checks it. Its work is that of the program, times a constant and the depth of conditionals; but each iteration of an `iterate` adds to the adjoints of the arrays that it reads from outside, as a whole.
//!
//! Not supported: nothing of the language. [`from_core`] says which constructs of core have no form.

pub mod combine;
pub mod contributions;
pub mod dual;
pub mod expression;
pub mod from_core;
pub mod fuse;
pub mod label;
pub mod language;
pub mod primal;
pub mod to_core;

mod additions;
mod collect;
mod folds;
mod iterate;
mod print;
mod rename;
mod rows;
mod sequential;
mod sorted;
mod winners;
mod zeros;
