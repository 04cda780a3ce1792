//! Products of matrices as machine code, on one thread or `THREADS`: the table of `docs/benchmarks/history.md`.
//!
//! `cargo run --release -p pullback-cpu --example contractions -- [NAME..]`, names as in the table; `ROUNDS` in the environment: how many
//! turns of a tenth of a second there are for a line (5); the least time of a call counts. `PRINT=1`: the kernel IR, too.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints a table and stops at what is wrong"
)]
#![allow(unsafe_code, reason = "calls with words are timed; the block says why it may be")]

use pullback_core::value::{Array, Buffer};
use pullback_core::{Type, Value};
use pullback_cpu::{Executable, Options};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::lower;
use pullback_testkit::problems::uniform;
use std::time::Instant;

/// Products with the factors as they are and turned, and a layer of a network, in `f64`; `f32` by replacement.
const TEXT: &str = "
entry ab [n][k][m] (a: [n][k]f64) (b: [k][m]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose b)) a
entry atb [n][k][m] (a: [k][n]f64) (b: [k][m]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose b)) (transpose a)
entry abt [n][k][m] (a: [n][k]f64) (b: [m][k]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) b) a
entry layer [n][k][m] (a: [n][k]f64) (b: [m][k]f64) (c: [m]f64) : [n][m]f64 =
  map (\\row -> map2 (\\weights start -> f64.tanh (f64.sum (map2 (*) row weights) + start)) b c) a
";

/// What is measured: name, sizes `n`, `k`, `m`.
const SIZES: [[usize; 3]; 6] =
    [[16, 16, 16], [64, 64, 64], [256, 256, 256], [1024, 1024, 1024], [128, 784, 300], [128, 300, 100]];

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    println!("| product | n, k, m | f64 | f32 | gradient, f64 | gradient, f32 |");
    println!("|---|---|---|---|---|---|");
    for entry in ["ab", "atb", "abt", "layer"] {
        for sizes in SIZES {
            let name = format!("{entry}-{}", sizes.map(|n| n.to_string()).join("-"));
            if names.is_empty() || names.iter().any(|n| name.starts_with(n)) {
                let cell = |ty, gradient| format!("{:.1}", rate(entry, sizes, ty, gradient));
                let cells = [("f64", false), ("f32", false), ("f64", true), ("f32", true)];
                let cells = cells.map(|(ty, gradient)| cell(ty, gradient)).join(" | ");
                println!("| {entry} | {} | {cells} |", sizes.map(|n| n.to_string()).join(", "));
            }
        }
    }
}

/// GFLOP/s; a gradient gives the value, too: three products.
fn rate(entry: &str, [n, k, m]: [usize; 3], ty: &str, gradient: bool) -> f64 {
    let text = TEXT.replace("f64", ty);
    let session = Session::compile("products.fut", &text, Settings::default()).expect("it compiles");
    let found = session.entry(Some(entry)).expect("it is there");
    let array = |seed, shape: &[usize]| {
        let xs = uniform(seed, shape.iter().product());
        match ty {
            "f64" => Value::f64_array(shape, &xs),
            _ => {
                Value::Array(Array::new(shape.to_vec(), Buffer::F32(xs.iter().map(|x| *x as f32).collect())))
            }
        }
    };
    let shape_a = if entry == "atb" { [k, n] } else { [n, k] };
    let shape_b = if matches!(entry, "abt" | "layer") { [m, k] } else { [k, m] };
    let mut args = vec![array(1, &shape_a), array(2, &shape_b)];
    if entry == "layer" {
        args.push(array(3, &[m]));
    }
    let ready = if gradient {
        args.push(array(4, &[n, m]));
        let wanted = session.select(&found, &Wrt::parse("a,b")).expect("parameters");
        session.derivative(&found, Kind::Vjp, &wanted, &mut |_, _| {})
    } else {
        session.primal(&found)
    };
    let ready = ready.expect("it is differentiable");
    let (module, function) = lower(&ready.program, ready.fun).expect("it is native");
    let f = &ready.program.funs[ready.fun];
    let types: Vec<Type> = f.params.iter().map(|p| ready.program.vars[*p].ty.clone()).collect();
    let given: Vec<(&Type, &Value)> = types.iter().zip(&args).collect();
    let threads = std::env::var("THREADS").ok().and_then(|n| n.parse().ok());
    let threads = threads.unwrap_or(std::num::NonZeroUsize::MIN);
    let sizes = vec![(function, pullback_abi::sizes(&given))];
    let options = Options { threads, sizes, ..Options::default() };
    let start = Instant::now();
    let executable = Executable::new(&module, &options).expect("LLVM compiles it");
    if std::env::var_os("PRINT").is_some() {
        println!("{}", pullback_kernel::print(executable.module()));
        println!("compiled in {:.3} s", start.elapsed().as_secs_f64());
    }
    let products = if gradient { 3.0 } else { 1.0 };
    2.0 * (n * k * m) as f64 * products / time(&executable, function, &given) * 1e-9
}

/// The least time of a call.
fn time(executable: &Executable, function: pullback_kernel::FunctionId, given: &[(&Type, &Value)]) -> f64 {
    let mut arguments = pullback_abi::Arguments::default();
    for (ty, value) in given {
        arguments.push(ty, value).expect("the inputs are of the function's types");
    }
    let mut session = executable.session();
    let mut results = vec![0; executable.module().functions[function].results.len()];
    let rounds = std::env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(5);
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let turn = Instant::now();
        while turn.elapsed().as_secs_f64() < 0.1 {
            let start = Instant::now();
            // SAFETY: the words are made from values of the function's types, which live until the end.
            unsafe { session.call_words(function, &arguments.words, &mut results, None) }.expect("it runs");
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best
}
