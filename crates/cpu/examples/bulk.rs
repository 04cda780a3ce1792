//! Gradients by an algorithm with a language of its own beside those by Fast CHAD, as machine code on one thread: ratios of medians of runs in turn, and of compile times.
//!
//! `cargo run --release -p pullback-cpu --example bulk -- [NAME..]`; the names are those of the table. `AD` in the environment: the algorithm (`bulk`; `accelerate`, ..). `ROUNDS` in the environment: how many turns there are (15); `PRINT=1`: the programs, too. In
//! a turn each of the two runs once, so that other work on the machine slows both. Compile times are from the source to code that is ready, each the least of three.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints a table and stops at what is wrong"
)]

use pullback_core::{Program, Type, Value};
use pullback_cpu::{Executable, Options, Session as Running};
use pullback_driver::{Kind, Ready, Session, Settings, Wrt};
use pullback_kernel::{FunctionId, lower};
use pullback_testkit::native::near;
use pullback_testkit::problems::{ones, uniform};
use pullback_testkit::workloads::{WORKLOADS, Work, Workload};
use std::time::Instant;

/// Beside workloads that C has too.
const NETWORK: Workload = Workload {
    name: "mlp",
    file: "benches/programs/mlp_tanh.fut",
    entry: "loss",
    wrt: Some("w0,b0,w1,b1,w2,b2"),
    size_names: &["batch", "n", "h1", "h2", "k"],
    sizes: &[128, 64, 100, 50, 10],
    small: &[],
    args: network,
    work: |_| Work { flops: 0.0, calls: 0.0, bytes: 0.0 },
};

/// How many times the gradient by the other algorithm may take as long, and compiling it.
const BAR: [f64; 2] = [1.5, 2.0];

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let other = std::env::var("AD").unwrap_or_else(|_| "bulk".to_string());
    println!(
        "| gradient | sizes | fast_chad, ms | {other}, ms | ratio | compiling fast_chad, s | {other}, s | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let rows = WORKLOADS.iter().filter(|w| ["gmm", "kmeans", "logreg", "lse"].contains(&w.name));
    for w in rows.chain([&NETWORK]) {
        if names.is_empty() || names.iter().any(|n| n == w.name) {
            row(w, &other);
        }
    }
    println!("\nThe ratios may be {} and {}.", BAR[0], BAR[1]);
}

fn network(sizes: &[usize]) -> Vec<Value> {
    let &[batch, n, h1, h2, k] = sizes else { panic!("a network has five sizes") };
    let shapes: [&[usize]; 8] = [&[batch, n], &[batch, k], &[h1, n], &[h1], &[h2, h1], &[h2], &[k, h2], &[k]];
    let array = |(seed, shape): (u32, &[usize])| {
        let numbers = uniform(seed, shape.iter().product());
        Value::f64_array(shape, &numbers.iter().map(|x| 0.4 * x - 0.2).collect::<Vec<f64>>())
    };
    (60..).zip(shapes).map(array).collect()
}

fn row(w: &Workload, other: &str) {
    let [chad, bulk] = ["fast_chad", other].map(|algorithm| compiled(w, algorithm));
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    let (mut chad_runs, mut bulk_runs) = (chad.executable.session(), bulk.executable.session());
    let (first, second) = (chad.call(&mut chad_runs), bulk.call(&mut bulk_runs));
    let agree = first.iter().zip(&second).all(|(a, b)| near(a, b, 1e-9));
    assert!(agree && first.len() == second.len(), "{}: the gradients differ", w.name);
    let (mut times, mut others) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.push(seconds(|| drop(chad.call(&mut chad_runs))));
        others.push(seconds(|| drop(bulk.call(&mut bulk_runs))));
    }
    let (a, b) = (median(times), median(others));
    println!(
        "| {} | {} | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} | {:.2} |",
        w.name,
        w.sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        a * 1e3,
        b * 1e3,
        b / a,
        chad.compile,
        bulk.compile,
        bulk.compile / chad.compile
    );
}

/// A gradient as machine code, with arguments.
struct Compiled {
    ready: Ready,
    executable: Executable,
    function: FunctionId,
    args: Vec<Value>,
    compile: f64,
}

fn compiled(w: &Workload, algorithm: &str) -> Compiled {
    let mut args = (w.args)(w.sizes);
    args.extend(ones(&[Value::f64(1.0)]));
    let make = || {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = std::fs::read_to_string(root.join(w.file)).expect(w.file);
        let mut settings = Settings::default();
        settings.choice.reverse = Some(pullback_base::Symbol::new(algorithm));
        let session = Session::compile(w.file, &text, settings).expect(w.name);
        let entry = session.entry(Some(w.entry)).expect(w.name);
        let wanted = session.select(&entry, &Wrt::parse(w.wrt.unwrap_or_default())).expect(w.name);
        let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).expect(w.name);
        let (module, function) = lower(&ready.program, ready.fun).expect(w.name);
        let sizes = vec![(function, pullback_abi::sizes(&given(&ready.program, &ready, &args)))];
        let executable = Executable::new(&module, &Options { sizes, ..Options::default() }).expect(w.name);
        (ready, executable, function)
    };
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        best = best.min(seconds(|| drop(make())));
    }
    let start = Instant::now();
    let (ready, executable, function) = make();
    if std::env::var_os("PRINT").is_some() {
        println!("{} by {algorithm}:\n{}", w.name, pullback_core::print::print(&ready.program));
    }
    let compile = best.min(start.elapsed().as_secs_f64());
    Compiled { ready, executable, function, args, compile }
}

fn given<'a>(program: &'a Program, ready: &Ready, args: &'a [Value]) -> Vec<(&'a Type, &'a Value)> {
    program.funs[ready.fun].params.iter().map(|p| &program.vars[*p].ty).zip(args).collect()
}

impl Compiled {
    fn call(&self, session: &mut Running<'_>) -> Vec<Value> {
        let program = &self.ready.program;
        let given = given(program, &self.ready, &self.args);
        session
            .call(self.function, &given, &program.funs[self.ready.fun].results, None)
            .expect("it runs")
            .results
    }
}

fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
