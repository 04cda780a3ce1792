//! Times of objectives and gradients on the vm and as machine code, one thread: the least of some runs, and how long making them
//! took.
//!
//! `cargo run --release -p pullback-vm --example both -- [SIZE] [PROBLEM..]`; the problems are those of
//! `docs/book/steps.md`, and `gmm-large`: the mixture model with 10 dimensions and 25 components.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a table and stops at what is wrong"
)]

use pullback_core::{FunId, Program, Type, Value};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{FunctionId, Module, lower};
use pullback_testkit::problems::{Problem, asked_for, ones};
use pullback_vm::{Executable, LANES, Limits, Options};
use std::time::Instant;

const RUNS: usize = 15;

fn main() {
    let (size, problems) = asked_for();
    println!(
        "| problem | made for the vm, ms | scalars, ms | lanes, ms | machine code, ms | lanes / machine code |"
    );
    println!("|---|---|---|---|---|---|");
    for problem in &problems {
        lines(problem, size);
    }
}

fn lines(problem: &Problem, size: usize) {
    let [plain, ready] = problem.ready();
    let mut args = (problem.args)(size);
    let results = line(problem.name, "objective", &plain.program, plain.fun, &args);
    args.extend(ones(&results));
    line(problem.name, "gradient", &ready.program, ready.fun, &args);
}

/// What is timed: a function, and values for it.
struct Call<'a> {
    id: FunctionId,
    args: Vec<(&'a Type, &'a Value)>,
    results: &'a [Type],
}

fn line(name: &str, what: &str, program: &Program, fun: FunId, args: &[Value]) -> Vec<Value> {
    let f = &program.funs[fun];
    let types = f.params.iter().map(|p| &program.vars[*p].ty);
    let mut made = f64::INFINITY;
    let args: Vec<(&Type, &Value)> = types.zip(args).collect();
    let sizes = pullback_abi::sizes(&args);
    for _ in 0..3 {
        let start = Instant::now();
        let (mut module, id) = lower(program, fun).unwrap();
        in_lanes(&mut module, id, &sizes);
        Executable::new(&module, &Options::default());
        made = made.min(start.elapsed().as_secs_f64());
    }
    let (plain, id) = lower(program, fun).unwrap();
    let mut wide = plain.clone();
    in_lanes(&mut wide, id, &sizes);
    if std::env::var("PRINT").is_ok() {
        println!("{}", pullback_kernel::print(&wide));
    }
    let options = pullback_cpu::Options { sizes: vec![(id, sizes)], ..pullback_cpu::Options::default() };
    let call = Call { id, args, results: &f.results };
    let scalars = on_vm(&plain, &call);
    let lanes = on_vm(&wide, &call);
    let executable = pullback_cpu::Executable::new(&plain, &options).unwrap();
    let mut session = executable.session();
    let mut results = Vec::new();
    let machine = least(|| {
        results = session.call(call.id, &call.args, call.results, None).unwrap().results;
    });
    println!(
        "| {name} {what} | {:.1} | {:.3} | {:.3} | {:.3} | {:.2} |",
        made * 1e3,
        scalars * 1e3,
        lanes * 1e3,
        machine * 1e3,
        lanes / machine
    );
    results
}

fn in_lanes(module: &mut Module, id: FunctionId, sizes: &[Option<i64>]) {
    let sizes = vec![(id, sizes.to_vec())];
    schedule(module, &schedule::Options { sizes, ..schedule::Options::new(LANES, Model::interpreter()) });
}

fn on_vm(module: &Module, call: &Call<'_>) -> f64 {
    let executable = Executable::new(module, &Options::default());
    let mut session = executable.session();
    least(|| {
        session.call(call.id, &call.args, call.results, Limits::default()).unwrap();
    })
}

/// The least time of some runs, after one that is not counted.
fn least(mut run: impl FnMut()) -> f64 {
    run();
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}
