//! Deliberate errors of the schedule.

use pullback_kernel::{Mutation, switch_on};

/// The errors with which all of the tests pass. Each test runs on a thread of its own, for which the error is on.
pub(crate) fn unnoticed(errors: &[Mutation], tests: &[fn()]) -> Vec<Mutation> {
    let is_noticed = |mutation: Mutation| {
        tests.iter().any(|test| {
            let test = *test;
            let with_error = move || {
                switch_on(mutation);
                test();
            };
            std::thread::spawn(with_error).join().is_err()
        })
    };
    errors.iter().copied().filter(|m| !is_noticed(*m)).collect()
}
