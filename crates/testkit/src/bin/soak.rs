//! `soak COUNT [SEED] [PROPERTY..]`: random programs with all (or the named) properties; exits with 1 if one fails.

#![allow(clippy::print_stdout, reason = "a program that prints a report")]

use pullback_testkit::generate::Config;
use pullback_testkit::properties::{Property, case_of_seed};
use pullback_testkit::shrink::{shrink, suite_file};
use pullback_testkit::soak::soak_with;

/// How many failures are printed as shrunk programs.
const SHRUNK: usize = 8;

fn main() -> std::process::ExitCode {
    let mut args = std::env::args().skip(1);
    let count = args.next().and_then(|a| a.parse().ok()).unwrap_or(2_000);
    let seed = args.next().and_then(|a| a.parse().ok()).unwrap_or(0);
    let names: Vec<String> = args.collect();
    let properties: Vec<Property> = Property::ALL
        .into_iter()
        .filter(|p| names.is_empty() || names.iter().any(|n| n == p.name()))
        .collect();
    // A failing property says what happened in the report; the default message would come in between.
    std::panic::set_hook(Box::new(|_| {}));
    let report = soak_with(count, seed, &Config::default(), &properties, &pullback_ad::fast_chad::vjp);
    println!("{}", report.render());
    for failure in report.failures.iter().take(SHRUNK) {
        let case = case_of_seed(failure.seed, &Config::default());
        let small = shrink(&case, failure.property, &pullback_ad::fast_chad::vjp);
        println!("{}", suite_file(&small, failure.property, &failure.text));
    }
    if report.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
