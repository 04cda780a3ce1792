//! What came of deliberate errors.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use std::collections::BTreeMap;

/// How often each error was made, seen, and found by a run.
pub(crate) type Counts<E> = BTreeMap<E, [usize; 3]>;

/// All together, printed: what `found` an error has not missed any.
pub(crate) fn total<E: Ord + Copy + std::fmt::Debug>(
    all: Vec<(Counts<E>, Vec<String>)>,
    found: &str,
) -> Counts<E> {
    let mut total = Counts::new();
    let mut missed = Vec::new();
    for (counts, more) in all {
        missed.extend(more);
        for (error, counts) in counts {
            let sum = total.entry(error).or_insert([0; 3]);
            (0..3).for_each(|k| sum[k] += counts[k]);
        }
    }
    for (error, [made, seen, runs]) in &total {
        println!("{error:?}: made {made} times, {seen} seen, {runs} found by {found}");
    }
    assert!(missed.is_empty(), "{} are missed:\n{}", missed.len(), missed[..missed.len().min(12)].join("\n"));
    total
}
