//! One launch: the function, and what its chunks said when they failed.
//!
//! Guarantees: of all chunks that would fail, the one with the lowest number is run and its failure is the result, whatever
//! the number of threads and the order in which chunks are run. For a failing chunk is passed over only if a lower one failed.

use crate::pool::Chunk;
use crate::sync::lock;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// Why a chunk did not end well.
enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

pub(crate) struct Task<'f, F, E> {
    f: &'f F,
    /// The lowest chunk that failed; more than any chunk if none did.
    stopped_by: AtomicU32,
    /// With the number of the chunk. Kept until the end, since dropping one may panic.
    failures: Mutex<Vec<(u32, Failure<E>)>>,
}

impl<'f, E: Send, F: Fn(Chunk) -> Result<(), E> + Sync> Task<'f, F, E> {
    pub(crate) fn new(f: &'f F) -> Self {
        Task { f, stopped_by: AtomicU32::new(u32::MAX), failures: Mutex::new(Vec::new()) }
    }

    /// Runs a chunk, unless a lower one has failed. Never panics.
    pub(crate) fn run(&self, chunk: Chunk) {
        if chunk.index > self.stopped_by.load(Relaxed) {
            return;
        }
        // What the function leaves behind is its caller's to judge, who gets the panic.
        let failure = match catch_unwind(AssertUnwindSafe(|| (self.f)(chunk))) {
            Ok(Ok(())) => return,
            Ok(Err(e)) => Failure::Error(e),
            Err(panic) => Failure::Panic(panic),
        };
        self.stopped_by.fetch_min(chunk.index, Relaxed);
        lock(&self.failures).push((chunk.index, failure));
    }

    /// The failure of the lowest chunk, when all chunks are done.
    pub(crate) fn result(self) -> Result<(), E> {
        let failures = self.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failures.into_iter().min_by_key(|(chunk, _)| *chunk) {
            None => Ok(()),
            Some((_, Failure::Error(e))) => Err(e),
            Some((_, Failure::Panic(panic))) => resume_unwind(panic),
        }
    }
}
