//! What a launch costs: `y = 1.5 x + 0.25` on all threads, against one thread and threads made for each loop. Prints the median and the
//! least wall time of a loop in microseconds; how long depends on what else the machine does.

#![allow(clippy::print_stdout, reason = "a table for people")]

use pullback_pool::{Pool, available_threads, part};
use std::sync::Mutex;
use std::time::Instant;

/// Measurements of each kind, one after the other so that what else the machine does meets all of them.
const ROUNDS: usize = 41;

/// Enough work for a round, in elements; a loop without elements counts as so many.
const WORK: usize = 20_000_000;
const EMPTY: usize = 20_000;

fn axpy(y: &mut [f64], x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = 1.5 * *x + 0.25;
    }
}

/// The arrays in parts of their own, so that threads share nothing.
struct Parts<'a>(Vec<Mutex<(&'a mut [f64], &'a [f64])>>);

impl<'a> Parts<'a> {
    fn new(mut y: &'a mut [f64], x: &'a [f64], chunks: u32) -> Parts<'a> {
        let count = x.len();
        let mut parts = Vec::new();
        for k in 0..chunks {
            let range = part(k, chunks, count);
            let (first, rest) = y.split_at_mut(range.len());
            y = rest;
            parts.push(Mutex::new((first, &x[range])));
        }
        Parts(parts)
    }
    fn run(&self, chunk: usize) {
        if let Ok(mut guard) = self.0[chunk].try_lock() {
            let (y, x) = &mut *guard;
            axpy(y, x);
        }
    }
}

/// Microseconds of each run, the median and the least of all rounds.
fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    println!("  {name:<34}{:>10.2}{:>10.2}", times[times.len() / 2], times[0]);
}

fn main() {
    let threads = available_threads();
    let pool = Pool::new(threads);
    println!("{threads} threads; microseconds per loop: median, least");
    for count in [0, 1_000, 100_000, 10_000_000] {
        let x: Vec<f64> = (0..count).map(|i| i as f64).collect();
        let (mut y, mut by_one, mut by_four) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
        let one = Parts::new(&mut by_one, &x, threads.get() as u32);
        let four = Parts::new(&mut by_four, &x, 4 * threads.get() as u32);
        let mut kinds: [(&str, &mut dyn FnMut()); 5] = [
            ("serial", &mut || axpy(std::hint::black_box(&mut y), &x)),
            ("pool, 1 chunk for each thread", &mut || pool.run(one.0.len() as u32, |k| one.run(k as usize))),
            ("pool, 4 chunks for each thread", &mut || {
                pool.run(four.0.len() as u32, |k| four.run(k as usize));
            }),
            ("pool after 1 ms of silence", &mut || {
                pool.run(one.0.len() as u32, |k| one.run(k as usize));
            }),
            ("std::thread::scope", &mut || {
                std::thread::scope(|scope| {
                    for k in 1..one.0.len() {
                        let one = &one;
                        scope.spawn(move || one.run(k));
                    }
                    one.run(0);
                });
            }),
        ];
        let mut times = vec![Vec::new(); kinds.len()];
        for _ in 0..ROUNDS {
            for (k, (_, run)) in kinds.iter_mut().enumerate() {
                let runs = match k {
                    3 => 1,
                    4 => (WORK / 20 / (count + EMPTY)).max(2),
                    _ => (WORK / (count + EMPTY)).max(2),
                };
                if k == 3 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                let start = Instant::now();
                for _ in 0..runs {
                    run();
                }
                times[k].push(start.elapsed().as_secs_f64() * 1e6 / runs as f64);
            }
        }
        println!("{count} elements");
        for ((name, _), times) in kinds.iter().zip(times) {
            report(name, times);
        }
    }
}
