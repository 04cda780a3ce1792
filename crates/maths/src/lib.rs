//! Vector mathematics, written once for all executors.
//!
//! Each function is generic over [`Lanes`], the straight-line operations that an executor provides: plain numbers
//! ([`portable`]), processor intrinsics, or an emitter that writes the operations down. There are no branches and no
//! memory but small tables; one table of coefficients serves all. The arithmetic is exactly prescribed, so all executors
//! give the same bits.
//!
//! Special values (NaN, infinities, signed zeros, subnormals, overflow, underflow) are those of the interpreter, which
//! evaluates by `libm`. Values differ from it by the errors of both.
//!
//! # Errors and costs
//!
//! "Stated": the largest error in units in the last place of the exact result, which the tests hold the functions to.
//! "Seen": the largest error of 200 000 arguments of every size and kind, against 256 bits (`cargo run --release -p
//! pullback-maths --bin accuracy 200000 11`). The other columns count operations: arithmetic (a fused one is one);
//! divisions and square roots; comparisons, selections and bits; table elements; and all those of the part for rare
//! arguments, which an executor may skip.
//!
//! `lgamma` errs absolutely near its zeros at negative arguments: there add 1e-16 to what is stated. Functions of `f32`
//! are computed in `f64` and rounded: [`MAX_ULP_SINGLE`]. `single 1 FUNCTION` tries all of `f32` against the interpreter's
//! double precision; done for `exp`, `log`, `tanh`: at most 0.500000 units.
//!
//! | function | stated | seen | arithmetic | divisions | bits | tables | rare |
//! |---|---|---|---|---|---|---|---|
//! | `exp` | 1.2 | 1.08 | 13 | 0 | 14 | 1 | 0 |
//! | `exp2` | 1.2 | 1.05 | 12 | 0 | 14 | 1 | 0 |
//! | `expm1` | 1.6 | 1.47 | 27 | 0 | 11 | 2 | 0 |
//! | `log` | 1.2 | 0.97 | 21 | 0 | 16 | 3 | 0 |
//! | `log2` | 1 | 0.50 | 44 | 0 | 16 | 3 | 0 |
//! | `log10` | 1 | 0.50 | 44 | 0 | 16 | 3 | 0 |
//! | `log1p` | 1 | 0.51 | 36 | 0 | 21 | 3 | 0 |
//! | `sin` | 1 | 0.71 | 42 | 0 | 8 | 0 | 71 |
//! | `cos` | 1 | 0.71 | 42 | 0 | 8 | 0 | 71 |
//! | `tan` | 1.2 | 0.84 | 52 | 1 | 11 | 0 | 71 |
//! | `asin` | 1 | 0.60 | 27 | 2 | 9 | 0 | 0 |
//! | `acos` | 1 | 0.58 | 27 | 2 | 12 | 0 | 0 |
//! | `atan` | 1 | 0.78 | 41 | 1 | 22 | 0 | 0 |
//! | `atan2` | 1.6 | 0.76 | 44 | 1 | 37 | 0 | 0 |
//! | `sinh` | 1.6 | 0.99 | 38 | 0 | 19 | 4 | 0 |
//! | `cosh` | 1 | 0.53 | 38 | 0 | 15 | 4 | 0 |
//! | `tanh` | 1.8 | 1.38 | 48 | 1 | 17 | 4 | 0 |
//! | `asinh` | 1 | 0.50 | 80 | 2 | 28 | 3 | 0 |
//! | `acosh` | 1 | 0.50 | 80 | 2 | 26 | 3 | 0 |
//! | `atanh` | 1 | 0.50 | 64 | 1 | 21 | 3 | 0 |
//! | `pow` | 1.3 | 0.78 | 65 | 0 | 57 | 5 | 0 |
//! | `cbrt` | 1 | 0.50 | 32 | 0 | 22 | 0 | 0 |
//! | `hypot` | 1 | 0.60 | 23 | 2 | 21 | 0 | 0 |
//! | `erf` | 1.5 | 1.04 | 82 | 2 | 10 | 2 | 0 |
//! | `erfc` | 1.5 | 1.17 | 87 | 2 | 16 | 2 | 0 |
//! | `lgamma` | 1 | 0.63 | 212 | 1 | 50 | 3 | 183 |
//! | `sigmoid` | 1 | 0.75 | 33 | 1 | 27 | 2 | 0 |

#[allow(clippy::approx_constant, clippy::excessive_precision, reason = "coefficients are as computed")]
mod coefficients;
mod pair;

mod circular;
mod error_function;
mod exponential;
mod gamma;
mod hyperbolic;
mod inverse;
mod logarithm;
mod power;

pub mod count;
pub mod function;
pub mod lanes;
pub mod portable;

pub use function::{Facts, Function, MAX_ULP_SINGLE, Named, Visitor, apply, apply_single, named};
pub use lanes::{Lanes, SingleLanes, scale_in_two_steps};
