//! `hostile COUNT [SEED]`: hostile sizes, `JOBS` processes at a time (by default as many as there are processors); exits with 1 if one is
//! wrong.
//!
//! `hostile show SEED`: the program of a seed, with its arguments and what came of it, and the smallest part of it that fails.

#![allow(clippy::print_stdout, reason = "a program that prints a report")]

use pullback_testkit::hostile::{Counts, examine_program, process, program};
use pullback_testkit::number;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let parsed = |text: &str| text.parse::<u64>().unwrap_or(0);
    match args[..] {
        ["part", from, to] => process::part(parsed(from)..parsed(to)),
        ["show", seed] => show(parsed(seed)),
        [] => return run(50_000, 0),
        [count] => return run(parsed(count), 0),
        [count, seed, ..] => return run(parsed(count), parsed(seed)),
    }
    ExitCode::SUCCESS
}

fn run(count: u64, from: u64) -> ExitCode {
    let Ok(helper) = std::env::current_exe() else { return ExitCode::FAILURE };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    // A run that is stopped has said what it found.
    let said = AtomicUsize::new(0);
    let watch = |counts: &Counts, seeds: u64| {
        let before = said.swap(counts.failures.len(), Ordering::Relaxed);
        for text in &counts.failures[before..] {
            println!("FAILS: {text}\n  again: hostile show\n");
        }
        eprintln!("{seeds} of {count} programs, {} failures", counts.failures.len());
    };
    let counts = process::many(&helper, from, count, number("JOBS", jobs) as usize, &watch);
    println!("{count} programs from seed {from}: {:?}, {} failures", counts.verdicts, counts.failures.len());
    if counts.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(seed: u64) {
    let whole = program(seed);
    println!("{}", whole.text());
    for args in &whole.args {
        println!("{}", args.iter().map(pullback_testkit::text::show).collect::<Vec<_>>().join(" "));
    }
    let counts = examine_program(&whole, seed);
    println!("{:?}\n{}", counts.verdicts, counts.failures.join("\n"));
    let fails = |part: &pullback_testkit::hostile::Program| !examine_program(part, seed).failures.is_empty();
    if let Some(part) = whole.parts().into_iter().find(fails) {
        println!("\na part:\n{}", part.text());
    }
}
