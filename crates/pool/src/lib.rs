//! Threads that share the chunks of a parallel loop.
//!
//! A launch runs a function for the chunks `0..n` on the caller and on the workers of a [`Pool`], and returns when all chunks
//! are done. Each thread first takes the chunks of a range of its own, then what is left of the others'. The ranges depend on
//! the number of chunks and threads only, so that a thread finds in its cache what it worked on in the launch before. The
//! caller works too, and waits only for chunks that a worker has begun: a worker that sleeps, or that the system gives no
//! time to, costs nothing but its help. Workers spin for a moment after a launch, then they sleep.
//!
//! - *What may run where*: any chunk on any thread, in any order. Results that must not depend on it are made by chunk, and
//!   put together by the number of the chunk.
//! - *Launches inside a chunk* run on the thread of that chunk, all chunks in order.
//! - *Launches of several threads at once*: one gets the workers; the others run on their own threads and wait for nobody. So
//!   there are never more threads at work than those that call and the workers of one pool.
//! - *Failures*: see [`Pool::launch`].
//! - *Fork*: the child process has no workers. Its launches work and run on the calling thread alone.
//!
//! Assumes nothing of the platform but `std`. Guarantees: every chunk is run at most once, and exactly once if none fails;
//! what chunks wrote is seen by the caller. The order of memory operations is checked by a model checker (`tests/model.rs`).
//!
//! Source: own design, after measurements of shared counters, static ranges and stealing; see
//! `docs/decisions/0013-the-pool.md`.

mod gate;
mod pool;
mod protocol;
mod sync;
mod task;
#[cfg(test)]
mod tests;

pub use gate::MAX_THREADS;
pub use pool::{Chunk, Pool, available_threads, part, shared};
