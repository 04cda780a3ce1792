//! How long it takes until the vm is ready, stage by stage: from the source text to bytecode, for the entry points of programs and
//! their reverse derivatives. The least of some rounds.
//!
//! `cargo run --release -p pullback-driver --example ready -- [FILE..]`; without files: every program of `examples`. From the
//! environment: `ROUNDS`, `ENTRY` (only entry points with this in their names), `WRT` (as `--wrt`), `PASSES=1` (a line for each pass).
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a table and stops at what is wrong"
)]

use pullback_core::Program;
use pullback_driver::{EntryPoint, Kind, Session, Settings, Wrt};
use pullback_kernel::lower;
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_vm::{Executable, LANES};
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() {
    let mut files: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    if files.is_empty() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "fut"));
        files.sort();
    }
    let rounds: usize = std::env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(10);
    let only = std::env::var("ENTRY").unwrap_or_default();
    println!(
        "| function | ready, ms | front end | differentiate | optimise | lower | schedule | translate |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let session = Session::compile(&name, &text, Settings::default()).unwrap();
        for entry in session.entries().iter().filter(|e| e.name.contains(&only)) {
            for kind in [None, Some(Kind::Vjp)] {
                line(&name, &text, entry, kind, rounds);
            }
        }
    }
}

/// What the derivative of an entry point is wanted for: what the example's own derivatives are for, else all floats.
fn wanted(file: &str, entry: &str) -> String {
    if let Ok(wrt) = std::env::var("WRT") {
        return wrt;
    }
    let wrt = match (file, entry) {
        ("gmm", "objective") => "params",
        ("hand", "simple" | "simple_jacobian") => "theta",
        ("hand", _) => "us,theta",
        ("lstm", _) => "main_params,extra_params",
        ("kmeans", _) => "centroids",
        _ => "",
    };
    wrt.to_string()
}

fn line(file: &str, text: &str, entry: &EntryPoint, kind: Option<Kind>, rounds: usize) {
    let mut best: Option<Vec<(&'static str, f64)>> = None;
    for _ in 0..rounds {
        let Some(stages) = stages(file, text, entry, kind) else { return };
        let best = best.get_or_insert_with(|| stages.clone());
        for (old, new) in best.iter_mut().zip(stages) {
            old.1 = old.1.min(new.1);
        }
    }
    let best = best.unwrap_or_default();
    let of = |wanted: &dyn Fn(&str) -> bool| {
        1e3 * best.iter().filter(|(n, _)| wanted(n)).map(|(_, s)| s).sum::<f64>()
    };
    let is_pass = |n: &str| !["front end", "differentiate", "lower", "schedule", "translate"].contains(&n);
    let gradient = if kind.is_some() { ", gradient" } else { "" };
    println!(
        "| {file} {}{gradient} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
        entry.name,
        of(&|_| true),
        of(&|n| n == "front end"),
        of(&|n| n == "differentiate"),
        of(&is_pass),
        of(&|n| n == "lower"),
        of(&|n| n == "schedule"),
        of(&|n| n == "translate"),
    );
    if std::env::var("PASSES").is_ok() {
        for (name, seconds) in best.iter().filter(|(n, _)| is_pass(n)) {
            println!("    {name}: {:.2}", seconds * 1e3);
        }
    }
}

/// Seconds of each stage and pass; nothing for what has no derivative, or is not native.
fn stages(
    file: &str,
    text: &str,
    entry: &EntryPoint,
    kind: Option<Kind>,
) -> Option<Vec<(&'static str, f64)>> {
    let mut out: Vec<(&'static str, f64)> = Vec::new();
    let mut start = Instant::now();
    let mut stage = |name: &'static str| {
        out.push((name, start.elapsed().as_secs_f64()));
        start = Instant::now();
    };
    let session = Session::compile(file, text, Settings::default()).unwrap();
    stage("front end");
    let mut watch = |name: &'static str, _: &Program| stage(if name == "lower" { "check" } else { name });
    let ready = match kind {
        None => session.watch(entry, &mut watch),
        Some(kind) => {
            let wanted = session.select(entry, &Wrt::parse(&wanted(file, &entry.name))).ok()?;
            session.derivative(entry, kind, &wanted, &mut watch)
        }
    };
    let ready = ready.ok()?;
    let (mut module, _) = lower(&ready.program, ready.fun).ok()?;
    stage("lower");
    schedule(&mut module, &schedule::Options::new(LANES, Model::interpreter()));
    stage("schedule");
    Executable::new(&module, &pullback_vm::Options::default());
    stage("translate");
    Some(out)
}
