//! The algorithms from lambda to lambda, as they are chosen: those of [`crate::chad`], [`crate::dual_numbers`], [`crate::delta`].

use crate::contract::{Bound, Status, Unsupported};
use pullback_lambda::{FunId, Program};

/// An algorithm on lambda.
#[derive(Debug)]
pub struct OnLambda {
    /// The name it is chosen by (`--ad NAME`).
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where it is from.
    pub citation: &'static str,
    /// Its cost claim.
    pub bound: Bound,
    /// Who it is for.
    pub status: Status,
    /// Whether it takes functions that call themselves; loops can be such.
    pub recursion: bool,
    /// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))` with the algorithm's cotangents.
    pub vjp: fn(&mut Program, FunId) -> Result<FunId, Unsupported>,
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static OnLambda> {
    let dual = crate::dual_numbers::ON_LAMBDA.iter().chain(crate::delta::ON_LAMBDA);
    crate::chad::ON_LAMBDA.iter().chain(dual)
}

/// The one of this name.
pub fn find(name: &str) -> Option<&'static OnLambda> {
    all().find(|a| a.id == name)
}
