//! Test machinery: random programs, properties, growth tests, shrinking, suite files.
//!
//! Place in the pipeline: beside it; used from integration tests, `cargo xtask soak` and fuzzers only.

pub mod baseline;
pub mod book;
pub mod chad;
pub mod checkpoints;
pub mod checks;
pub mod compared;
pub mod conformance;
pub mod cost;
pub mod draws;
pub mod dual_mutants;
pub mod empties;
pub mod flat;
pub mod fork_join;
pub mod fused;
pub mod generate;
pub mod growth;
pub mod hostile;
pub mod kernel_text;
pub mod kernels;
pub mod native;
pub mod nested;
pub mod problems;
pub mod properties;
pub mod rng;
pub mod shrink;
pub mod soak;
pub mod stages;
pub mod steps;
pub mod stops;
pub mod suite;
pub mod tampered;
pub mod text;
pub mod workloads;

use std::sync::{Mutex, PoisonError};

/// What `work` makes of each item, in the order of the items, on all processors: whoever is done takes the next one.
///
/// # Panics
/// As `work` does.
pub fn on_all_processors<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || std::iter::from_fn(next).map(|(k, item)| (k, work(item))).collect::<Vec<_>>();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        // Generated programs nest less deeply than this stack allows by far; a small stack would hide that.
        let start = || std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, worker);
        let workers: Vec<_> = (0..threads).map(|_| start().expect("a thread can be started")).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    });
    done.sort_by_key(|(k, _)| *k);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A number that the environment gives a test (`COUNT`, `SEED`), or this one.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}
