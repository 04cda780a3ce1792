//! The benchmark problems in the interpreter, and compiled where it would take minutes, against values produced by other programs.
//!
//! ADBench: files and reference values of `shared/data/adbench` beside the repository (skipped, and counted as ignored,
//! where that folder is absent). GradBench and the small programs: golden numbers of independent programs, quoted here.
//! Tolerance: 1e-10 relative, the limit that two correct summation orders keep.

#[path = "benchmarks/adbench.rs"]
mod adbench;
#[path = "benchmarks/golden.rs"]
mod golden;
#[path = "benchmarks/gradbench.rs"]
mod gradbench;
#[path = "benchmarks/hand.rs"]
mod hand;
#[path = "benchmarks/nested.rs"]
mod nested;
#[path = "benchmarks/problem.rs"]
mod problem;
#[path = "benchmarks/programs.rs"]
mod programs;
#[path = "benchmarks/small.rs"]
mod small;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let args = Arguments::from_args();
    let mut trials: Vec<Trial> = Vec::new();
    for (name, test) in
        small::TESTS.iter().chain(programs::TESTS).chain(nested::TESTS).chain(gradbench::TESTS)
    {
        trials.push(Trial::test(*name, move || run(test)));
    }
    let absent = !problem::data_folder().is_dir();
    for (name, test) in adbench::TESTS.iter().chain(hand::TESTS).chain(gradbench::FILE_TESTS) {
        trials.push(Trial::test(*name, move || run(test)).with_ignored_flag(absent));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn run(test: &fn()) -> Result<(), libtest_mimic::Failed> {
    std::panic::catch_unwind(test).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default().into()
    })
}
