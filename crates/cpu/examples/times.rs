//! Times of objectives and gradients as compiled code, on one thread or `THREADS`, with `LANES` side by side: the least of some runs, and how long compiling took.
//!
//! `cargo run --release -p pullback-cpu --example times -- [SIZE] [PROBLEM..]`; the problems are those of
//! `docs/book/steps.md`, and `gmm-large`: the mixture model with 10 dimensions and 25 components.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a table and stops at what is wrong"
)]

use pullback_core::{FunId, Program, Type, Value};
use pullback_cpu::{Executable, Options};
use pullback_kernel::lower;
use pullback_testkit::problems::{Problem, asked_for, ones};
use std::time::Instant;

const RUNS: usize = 15;

fn main() {
    let (size, problems) = asked_for();
    println!(
        "| problem | objective, ms | gradient, ms | ratio | compiling both, s | workspace of the gradient, kB |"
    );
    println!("|---|---|---|---|---|---|");
    for problem in &problems {
        line(problem, size);
    }
}

fn line(problem: &Problem, size: usize) {
    let [plain, ready] = problem.ready();
    let mut args = (problem.args)(size);
    let objective = time(&plain.program, plain.fun, &args);
    args.extend(ones(&objective.results));
    let gradient = time(&ready.program, ready.fun, &args);
    println!(
        "| {} | {:.3} | {:.3} | {:.2} | {:.2} | {} |",
        problem.name,
        objective.best * 1e3,
        gradient.best * 1e3,
        gradient.best / objective.best,
        objective.compile + gradient.compile,
        gradient.peak_bytes / 1000
    );
}

struct Timed {
    compile: f64,
    best: f64,
    peak_bytes: u64,
    results: Vec<Value>,
}

fn time(program: &Program, fun: FunId, args: &[Value]) -> Timed {
    let start = Instant::now();
    let (module, id) = lower(program, fun).unwrap();
    let f = &program.funs[fun];
    let types: Vec<&Type> = f.params.iter().map(|p| &program.vars[*p].ty).collect();
    let args: Vec<(&Type, &Value)> = types.into_iter().zip(args).collect();
    let lanes = std::env::var("LANES").ok().and_then(|s| s.parse().ok());
    let threads = std::env::var("THREADS").ok().and_then(|s| s.parse().ok());
    let threads = threads.unwrap_or(std::num::NonZeroUsize::MIN);
    let options =
        Options { threads, sizes: vec![(id, pullback_abi::sizes(&args))], lanes, ..Options::default() };
    let executable = Executable::new(&module, &options).unwrap();
    let compile = start.elapsed().as_secs_f64();
    let mut session = executable.session();
    let out = session.call(id, &args, &f.results, None).unwrap();
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        session.call(id, &args, &f.results, None).unwrap();
        best = best.min(start.elapsed().as_secs_f64());
    }
    Timed { compile, best, peak_bytes: out.peak_bytes, results: out.results }
}
