//! The algorithms of dual numbers and delta terms, as tests and the book go through them.

use pullback_ad::delta::{self, a_unshared};
use pullback_ad::dual_numbers::{self, a_naive};
use pullback_ad::on_lambda::OnLambda;

/// Dual numbers in all stages, and delta terms with all evaluators.
pub fn all() -> impl Iterator<Item = &'static OnLambda> {
    dual_numbers::ON_LAMBDA.iter().chain(delta::ON_LAMBDA)
}

/// Those that are exponential in shared values.
pub const EXPONENTIAL: [&str; 5] =
    [a_naive::ID, a_unshared::DIRECT, a_unshared::VECTORS, a_unshared::CHANGES, a_unshared::INWARDS];
