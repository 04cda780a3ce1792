//! Where the time of compiling goes, for the entry points of `examples/*.fut` and their gradients, with sizes that are not known.
//!
//! `cargo run --release -p pullback-cpu --example compiling -- [NAME..]`: times are of the processor, on one thread, the least of
//! `ROUNDS` (3); `two` is what two threads need that have nothing else to do. `DUMP=FOLDER` writes the texts.
#![allow(
    unsafe_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a table and stops at what is wrong"
)]

use pullback_core::{FunId, Program};
use pullback_cpu::{Options, scheduled};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::{Block, Module, lower, print};
use pullback_llvm::{Level, Llvm, emit_several, pieces, text};
use std::path::Path;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "fut"));
    files.sort();
    println!(
        "| program | instructions | kB | texts | schedule, ms | text | LLVM | largest | two | all, two |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let entries = source.lines().filter_map(|l| l.strip_prefix("entry "));
        let entries = entries.filter_map(|l| l.split([' ', '(', '[']).find(|w| !w.is_empty()));
        for entry in entries {
            let name = format!("{}.{entry}", file.file_stem().unwrap().display());
            if !names.is_empty() && !names.iter().any(|n| name.starts_with(n.as_str())) {
                continue;
            }
            let session = Session::compile(&name, &source, Settings::default()).unwrap();
            let entry = session.entry(Some(entry)).unwrap();
            let plain = session.primal(&entry).unwrap();
            line(&name, &plain.program, plain.fun);
            let selected = session.select(&entry, &Wrt::parse("")).unwrap();
            let selected = if selected.iter().any(|s| *s) { selected } else { vec![true; selected.len()] };
            if let Ok(ready) = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}) {
                line(&format!("{name} vjp"), &ready.program, ready.fun);
            }
        }
    }
}

/// Milliseconds of the processor that this thread has had.
#[cfg(target_os = "linux")]
fn now() -> f64 {
    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, to: *mut Time) -> i32;
    }
    /// `CLOCK_THREAD_CPUTIME_ID`.
    const OF_THREAD: i32 = 3;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the function of the C library, with room for a time.
    unsafe { clock_gettime(OF_THREAD, &raw mut time) };
    time.seconds as f64 * 1e3 + time.nanoseconds as f64 * 1e-6
}
/// Milliseconds of the clock.
#[cfg(not(target_os = "linux"))]
fn now() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64() * 1e3
}

fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = now();
    let out = f();
    (out, now() - start)
}

fn size(block: &Block) -> usize {
    block.iter().map(|ins| 1 + ins.blocks().into_iter().map(size).sum::<usize>()).sum()
}

fn line(name: &str, program: &Program, fun: FunId) {
    let Ok((module, _)) = lower(program, fun) else { return };
    let rounds = std::env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(3);
    let mut best: Option<Vec<f64>> = None;
    let (mut about, mut texts) = (String::new(), 0);
    for _ in 0..rounds {
        let (row, what) = once(name, &module);
        texts = row.len() - 2;
        about = what;
        let least = |best: Vec<f64>| best.into_iter().zip(&row).map(|(a, b)| a.min(*b)).collect();
        best = Some(best.map_or_else(|| row.clone(), least));
    }
    let best = best.unwrap();
    let (before, each) = best.split_at(2);
    // As threads take them.
    let mut two = [0.0_f64; 2];
    each.iter().for_each(|t| *two.iter_mut().min_by(|a, b| f64::total_cmp(a, b)).unwrap() += t);
    let two = two[0].max(two[1]);
    let largest = each.iter().copied().fold(0.0, f64::max);
    println!(
        "| {name} | {about} | {texts} | {:.1} | {:.1} | {:.1} | {largest:.1} | {two:.1} | {:.1} |",
        before[0],
        before[1],
        each.iter().sum::<f64>(),
        before[0] + before[1] + two
    );
}

/// Times of scheduling, of making texts, and of compiling each.
fn once(name: &str, module: &Module) -> (Vec<f64>, String) {
    let llvm = Llvm::find().unwrap();
    let machine = llvm.instructions();
    let (module, scheduling) = timed(|| scheduled(module, machine, &Options::default()));
    let options = text::Options { machine, ..text::Options::default() };
    let (emitted, text) = timed(|| emit_several(&module, &options));
    if let Ok(folder) = std::env::var("DUMP") {
        let pieces = print(&pieces::cut(&module, &pieces::Limits::default()).module);
        std::fs::write(format!("{folder}/{name}.lanes"), pieces).unwrap();
        for (k, text) in emitted.texts.iter().enumerate() {
            std::fs::write(format!("{folder}/{name}.{k}.ll"), text).unwrap();
        }
    }
    let mut row = vec![scheduling, text];
    row.extend(emitted.texts.iter().map(|text| timed(|| llvm.compile(text, Level::O3).unwrap()).1));
    let instructions: usize = module.functions.iter().map(|f| size(&f.body)).sum();
    let bytes: usize = emitted.texts.iter().map(String::len).sum();
    (row, format!("{instructions} | {}", bytes / 1000))
}
