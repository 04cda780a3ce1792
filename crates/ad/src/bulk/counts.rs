//! Counts: what delta terms are made of, and what their evaluators do.

use std::collections::BTreeMap;

/// Nodes of delta terms, each counted once, without `Zero`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nodes {
    /// All of them.
    pub all: u64,
    /// Those that are `Share`.
    pub shares: u64,
    /// Those that are `Input`.
    pub inputs: u64,
}

/// Nodes that an evaluator visited.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Visits {
    /// All of them; evaluators without sharing look through `Share`.
    pub all: u64,
    /// By the identity of a `Share`: how often the term in it was evaluated.
    pub shared: BTreeMap<u64, u64>,
    /// By the number of an input.
    pub inputs: BTreeMap<usize, u64>,
}

impl Visits {
    /// The term in a `Share` is evaluated.
    pub(super) fn opened(&mut self, id: u64) {
        *self.shared.entry(id).or_default() += 1;
    }
    /// An input is reached.
    pub(super) fn reached(&mut self, input: usize) {
        *self.inputs.entry(input).or_default() += 1;
    }
}
