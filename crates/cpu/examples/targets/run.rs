//! Running kernels: memory that begins at multiples of 64 bytes, times, and the two programs that they are compared with.

#![allow(unsafe_code, reason = "compiled code is called; the block says why it may be")]

use crate::workload::{Ready, difference, flat};
use pullback_llvm::{Level, Linked, Llvm};
use pullback_testkit::baseline::Baseline;
use pullback_testkit::workloads::WORKLOADS;
use std::time::Instant;

unsafe extern "C" {
    fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8;
    fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
}

/// Numbers that begin at a multiple of 64 bytes.
pub(crate) struct Memory {
    all: Vec<f64>,
    start: usize,
    count: usize,
}

/// Memory with these numbers.
pub(crate) fn filled(numbers: &[f64]) -> Memory {
    let mut memory = room(numbers.len());
    memory.all[memory.start..][..numbers.len()].copy_from_slice(numbers);
    memory
}
/// Memory for so many numbers.
pub(crate) fn room(count: usize) -> Memory {
    let all = vec![0.0; count + 8];
    let start = all.as_ptr().align_offset(64);
    Memory { all, start, count }
}

impl Memory {
    /// The numbers.
    pub(crate) fn read(&self) -> &[f64] {
        &self.all[self.start..][..self.count]
    }
    fn address(&mut self) -> u64 {
        self.all[self.start..].as_mut_ptr() as u64
    }
}

/// The least time of some runs of a module with the function `entry`, in seconds.
pub(crate) fn time(text: &str, memory: &mut [Memory], sizes: &[usize], runs: usize) -> f64 {
    let llvm = Llvm::find().expect("a libLLVM is found");
    if std::env::var("SHOW").is_ok() {
        println!("{}", llvm.assembly(text, Level::O3).expect("LLVM compiles it"));
    }
    let object = llvm.compile(text, Level::O3).expect("LLVM compiles it");
    let symbols = [("memset", memset as *const () as usize), ("memcpy", memcpy as *const () as usize)];
    let linked: Linked = llvm.link(&[object], &symbols).expect("it links");
    let address = linked.address("entry").expect("it has an entry");
    // SAFETY: the text defines `entry` with this type, and reads and writes inside the memory it is given.
    let entry = unsafe { std::mem::transmute::<usize, extern "C" fn(*const u64)>(address) };
    let pointers: Vec<u64> = memory.iter_mut().map(Memory::address).collect();
    let words: Vec<u64> = pointers.into_iter().chain(sizes.iter().map(|s| *s as u64)).collect();
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        entry(words.as_ptr());
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// The table of one kernel: what else computes the same, then its variants.
pub(crate) struct Table {
    /// What is expected of the derivatives.
    expected: Vec<f64>,
    c: Option<f64>,
}

impl Table {
    /// Heads the table, with the times of the C program (if there is gcc) and of our compiler.
    pub(crate) fn new(name: &str, sizes: &[usize], runs: usize) -> Table {
        println!("\n{name} {sizes:?}\n\n| variant | us | of the time of C | off by |\n|---|---|---|---|");
        let workload = WORKLOADS.iter().find(|w| w.name == name).expect("the test kit has it");
        let ready = Ready::new(workload, sizes);
        let results = flat(&ready.call().results);
        let values = usize::from(workload.wrt.is_some());
        let baseline = Baseline::build().expect("the C programs compile");
        let c = baseline.as_ref().map(|b| b.times(workload, sizes, runs).expect("it runs").minimum);
        let expected = match &baseline {
            Some(b) => b.results(workload, sizes).expect("it runs"),
            None => results.clone(),
        };
        let table = Table { expected: expected[values..].to_vec(), c };
        if let Some(c) = c {
            table.row("C by hand, gcc", c, &table.expected);
        }
        let mut session = ready.executable.session();
        let mut given = pullback_abi::Arguments::default();
        ready.args.iter().for_each(|(ty, value)| given.push(ty, value).expect("they are of its types"));
        let mut words = vec![0; ready.module.functions[ready.function].results.len()];
        let mut best = f64::INFINITY;
        for _ in 0..runs.min(20) {
            let start = Instant::now();
            // SAFETY: the words are made from values of the function's types, which live until the end.
            unsafe { session.call_words(ready.function, &given.words, &mut words, None) }.expect("it runs");
            best = best.min(start.elapsed().as_secs_f64());
        }
        table.row("compiled from the program", best, &results[values..]);
        table
    }

    /// A variant and the derivatives it gave.
    pub(crate) fn row(&self, name: &str, seconds: f64, found: &[f64]) {
        let share = self.c.map_or("–".to_string(), |c| format!("{:.2}", seconds / c));
        let off = difference(found, &self.expected);
        println!("| {name} | {:.1} | {share} | {off:.0e} |", seconds * 1e6);
    }
}
