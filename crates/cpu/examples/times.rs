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
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::lower;
use pullback_testkit::problems::{PROBLEMS, Problem, uniform};
use std::time::Instant;

const RUNS: usize = 15;

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let size = names.first().and_then(|s| s.parse().ok());
    if size.is_some() {
        names.remove(0);
    }
    println!(
        "| problem | objective, ms | gradient, ms | ratio | compiling both, s | workspace of the gradient, kB |"
    );
    println!("|---|---|---|---|---|---|");
    let large = PROBLEMS.iter().filter(|p| p.name == "gmm").map(|p| Problem {
        name: "gmm-large",
        args: gmm_large,
        ..*p
    });
    for problem in PROBLEMS.iter().map(|p| Problem { ..*p }).chain(large) {
        if names.is_empty() || names.iter().any(|n| n == problem.name) {
            line(&problem, size.unwrap_or(1000));
        }
    }
}

fn gmm_large(n: usize) -> Vec<Value> {
    let (d, k) = (10, 25);
    let array = |s: u32, shape: &[usize]| Value::f64_array(shape, &uniform(s, shape.iter().product()));
    let parameters =
        [array(12, &[k]), array(13, &[k, d]), array(14, &[k, d]), array(15, &[k, d * (d - 1) / 2])];
    [array(11, &[n, d]), Value::f64(1.0), Value::i64(0)].into_iter().chain(parameters).collect()
}

fn line(problem: &Problem, size: usize) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(problem.file)).unwrap();
    let session = Session::compile(problem.file, &text, Settings::default()).unwrap();
    let entry = session.entry(Some(problem.entry)).unwrap();
    let args = (problem.args)(size);
    let plain = session.primal(&entry).unwrap();
    let objective = time(&plain.program, plain.fun, &args);
    let selected = session.select(&entry, &Wrt::parse(problem.wrt)).unwrap();
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).unwrap();
    let ones = objective.results.iter().filter_map(|v| match v {
        Value::Array(a) => Some(Value::f64_array(&a.shape, &vec![1.0; a.count()])),
        Value::Scalar(_) => Some(Value::f64(1.0)),
        _ => None,
    });
    let args: Vec<Value> = args.iter().cloned().chain(ones).collect();
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
        Options { threads, sizes: vec![(id, pullback_words::sizes(&args))], lanes, ..Options::default() };
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
