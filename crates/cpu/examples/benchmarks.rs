//! The table of `docs/benchmarks/README.md`: derivatives as compiled here against derivatives in C by hand.
//!
//! `cargo run --release -p pullback-cpu --example benchmarks -- [WORKLOAD..]`; `ROUNDS` in the environment: how often the two
//! take turns (5); `THREADS`: how many threads ours has (1). Each turn is many calls; the least time of all counts, since the
//! machine may be busy with other things.
//! Calls go into memory of the workspace: conversions of values are not timed. Without gcc there are our times only.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints a table and stops at what is wrong"
)]
#![allow(unsafe_code, reason = "calls with words are timed; the block says why it may be")]

#[path = "../tests/common/workload.rs"]
mod workload;

use pullback_testkit::baseline::{Baseline, FLAGS};
use pullback_testkit::workloads::{WORKLOADS, Workload};
use std::time::Instant;
use workload::{Ready, difference, flat};

/// So long is a turn, in seconds, unless one call takes longer.
const TURN: f64 = 0.1;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let rounds = std::env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(5);
    let baseline = Baseline::build().expect("the C programs compile");
    match &baseline {
        Some(_) => {
            println!("C: gcc {}. Least of {rounds} turns of many calls.\n", FLAGS.join(" "))
        }
        None => println!("gcc was not found: our times only. Least of {rounds} turns of many calls.\n"),
    }
    println!(
        "| workload | sizes | C, us | ours, us | ratio | ours, GFLOP/s | calls of functions, /us | GB/s | off by | tape and memory, kB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for workload in WORKLOADS {
        if names.is_empty() || names.iter().any(|n| n == workload.name) {
            line(workload, baseline.as_ref(), rounds);
        }
    }
}

fn line(workload: &Workload, baseline: Option<&Baseline>, rounds: usize) {
    let ready = Ready::new(workload, workload.sizes);
    let first = ready.call();
    let mut ours = turn(&ready, 1);
    let mut theirs = f64::INFINITY;
    for _ in 0..rounds {
        let runs = |one: f64| ((TURN / one) as usize).clamp(2, 10_000);
        ours = ours.min(turn(&ready, runs(ours)));
        if let Some(baseline) = baseline {
            let times =
                baseline.times(workload, workload.sizes, runs(theirs.min(ours))).expect("the C program runs");
            theirs = theirs.min(times.minimum);
        }
    }
    let sizes: Vec<String> =
        workload.size_names.iter().zip(workload.sizes).map(|(n, s)| format!("{n} {s}")).collect();
    let floats: Vec<f64> = workload.sizes.iter().map(|s| *s as f64).collect();
    let work = (workload.work)(&floats);
    let (c, ratio, off) = match baseline {
        None => ("–".to_string(), "–".to_string(), "–".to_string()),
        Some(baseline) => {
            let expected = baseline.results(workload, workload.sizes).expect("the C program runs");
            let values = usize::from(workload.wrt.is_some());
            let off = difference(&flat(&first.results)[values..], &expected[values..]);
            (format!("{:.1}", theirs * 1e6), format!("{:.2}", ours / theirs), format!("{off:.0e}"))
        }
    };
    println!(
        "| {} | {} | {c} | {:.1} | {ratio} | {:.1} | {:.0} | {:.1} | {off} | {} |",
        workload.name,
        sizes.join(", "),
        ours * 1e6,
        work.flops / ours * 1e-9,
        work.calls / ours * 1e-6,
        work.bytes / ours * 1e-9,
        first.peak_bytes / 1000
    );
}

/// The least time of so many calls, in seconds.
fn turn(ready: &Ready, calls: usize) -> f64 {
    let mut session = ready.executable.session();
    let mut given = pullback_abi::Arguments::default();
    for (ty, value) in &ready.args {
        given.push(ty, value).expect("the inputs are of the function's types");
    }
    let mut results = vec![0; ready.module.functions[ready.function].results.len()];
    let mut best = f64::INFINITY;
    for _ in 0..calls {
        let start = Instant::now();
        // SAFETY: the words are made from values of the function's types, which live until the end.
        unsafe { session.call_words(ready.function, &given.words, &mut results, None) }.expect("it runs");
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}
