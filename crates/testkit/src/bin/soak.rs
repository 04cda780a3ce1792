//! `soak COUNT [SEED] [PROPERTY..]`: random programs with all (or the named) properties; exits with 1 if one fails.

#![allow(clippy::print_stdout, reason = "a program that prints a report")]

use pullback_testkit::generate::Config;
use pullback_testkit::properties::Property;
use pullback_testkit::soak::soak_with;

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
    if report.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
