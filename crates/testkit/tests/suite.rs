//! Runs every case of every suite file: `cargo test --test suite`, `cargo test --test suite 'vjp[fast_chad]'`.

use pullback_testkit::suite::{Total, tests};
use std::path::Path;
use std::sync::PoisonError;

#[allow(clippy::print_stdout, reason = "a test that says how much it compared")]
fn main() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suite");
    let arguments = libtest_mimic::Arguments::from_args();
    let total = Total::default();
    let trials: Vec<_> = tests(Path::new(root), &total)
        .into_iter()
        .map(|test| {
            let run = test.run;
            libtest_mimic::Trial::test(test.name, move || run().map_err(Into::into))
        })
        .collect();
    let everything = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Without a filter: what the mixes of modes were compared on.
    let compared = *total.lock().unwrap_or_else(PoisonError::into_inner);
    if everything {
        println!("mixes of modes: {compared:?}");
    }
    conclusion.exit();
}
