//! Many terms, examined on all processors.

use super::measure::{Outcome, examine};
use super::shrink::shrink;
use super::terms::{Term, for_each_program};
use crate::on_all_processors;
use crate::properties::Reverse;
use std::fmt::Write;

/// How many failures are made smaller: the first ones.
const SHRUNK: usize = 8;

/// What came of the terms.
#[derive(Debug, Default)]
pub struct Found {
    /// How many were examined.
    pub count: usize,
    /// Of how many no second derivative was taken.
    pub large: usize,
    /// The ones whose ratio grows or whose derivative is wrong, in the order of the terms.
    pub failures: Vec<(Term, Outcome)>,
}

impl Found {
    /// Counts, and the failures in words.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} programs, {} failures; {} too large for a second derivative",
            self.count,
            self.failures.len(),
            self.large
        );
        for (term, outcome) in &self.failures {
            let _ = writeln!(out, "{outcome:?}\n    {term:?}");
        }
        out
    }
}

/// The programs of at most `largest` terms, of every `step` of them the one at position `from`.
pub fn every(largest: usize, step: usize, from: usize) -> Vec<Term> {
    let (mut out, mut number) = (Vec::new(), 0);
    for_each_program(largest, &mut |term| {
        if number % step == from % step {
            out.push(term);
        }
        number += 1;
    });
    out
}

/// Examines the terms. The first failures are replaced by smaller ones that fail, too.
pub fn search(terms: impl IntoIterator<Item = Term, IntoIter: Send>, reverse: Reverse<'_>) -> Found {
    let all = on_all_processors(terms, |term| (examine(&term, reverse), term));
    let count = all.len();
    let large = all.iter().filter(|(outcome, _)| matches!(outcome, Outcome::Large(_))).count();
    let failures =
        all.into_iter().filter(|(outcome, _)| !matches!(outcome, Outcome::Flat(_) | Outcome::Large(_)));
    let smaller = |(k, (outcome, term)): (usize, (Outcome, Term))| {
        if k >= SHRUNK {
            return (term, outcome);
        }
        let kind = std::mem::discriminant(&outcome);
        let small = shrink(&term, &mut |t| std::mem::discriminant(&examine(t, reverse)) == kind);
        let outcome = examine(&small, reverse);
        (small, outcome)
    };
    Found { count, large, failures: failures.enumerate().map(smaller).collect() }
}
