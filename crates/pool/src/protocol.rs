//! How a caller and workers share the chunks of a launch.
//!
//! All that threads must agree on is one word, the gate: whether a launch is open, how many workers are inside, how many
//! threads take part, how many workers sleep. A launch goes like this:
//!
//! 1. The caller takes the launch lock, writes the ranges of chunks and the job, and opens the gate (*release*).
//! 2. Workers that see the open gate count themselves in by an exchange of the word as they saw it (*acquire*), so none
//!    enters a closed gate. Inside they take chunks until none is left, then count themselves out (*release*).
//! 3. The caller takes chunks until none is left, closes the gate, and waits until no worker is inside (*acquire*). Then
//!    nobody looks at the job any more.
//!
//! All changes of the gate are read-modify-writes, so each of them hands on what was released before. A worker that goes to
//! sleep counts itself as a sleeper by an exchange of a word in which there is nothing for it to do; so whoever opens the gate
//! later sees the count and wakes it. Threads are woken along a binary tree, since waking takes microseconds.
//!
//! Chunks are taken from both ends of a range: its owner takes the first, others the last, so that what the owner does
//! changes little from launch to launch.
//!
//! Assumes: `new` is for at least as many threads as take part. Guarantees: see the crate. What runs a job may panic: the
//! gate is closed, and workers are waited for, all the same.

#![allow(unsafe_code, reason = "the job is written and read through a cell; each block says why it may be")]

use crate::gate::{Gate, INSIDE, MAX_THREADS, OPEN, SHUT, SLEEPER, WAITING};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Spin, UnsafeCell, lock, park, wait};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Alone on its lines of the cache (processors fetch them in pairs).
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// What the threads of a pool share.
#[derive(Debug)]
pub(crate) struct Shared<J> {
    gate: Apart<AtomicU64>,
    /// Of each thread, the chunks that it still has: the first in the low half, the end in the high half.
    ranges: Box<[Apart<AtomicU64>]>,
    /// Written while the gate is closed and nobody is inside, read inside.
    job: UnsafeCell<Option<J>>,
    /// Whether some caller has a launch.
    is_held: AtomicBool,
    mutex: Mutex<()>,
    /// The last worker has left.
    all_left: Condvar,
}

// SAFETY: the cell is the only part that is not `Sync` by itself; its content is written by the thread that holds the launch
// lock while nobody is inside, and copied by threads inside, which therefore need `J: Send`.
unsafe impl<J: Copy + Send> Sync for Shared<J> {}

// A launch that panics is closed as any other, so what it leaves behind is whole.
impl<J> RefUnwindSafe for Shared<J> {}
impl<J> UnwindSafe for Shared<J> {}

impl<J: Copy + Send> Shared<J> {
    pub(crate) fn new(threads: usize) -> Shared<J> {
        assert!(threads <= MAX_THREADS, "more threads than the gate can count");
        Shared {
            gate: Apart(AtomicU64::new(0)),
            ranges: (0..threads).map(|_| Apart(AtomicU64::new(0))).collect(),
            job: UnsafeCell::new(None),
            is_held: AtomicBool::new(false),
            mutex: Mutex::new(()),
            all_left: Condvar::new(),
        }
    }

    /// The launch lock, if nobody has it.
    pub(crate) fn hold(&self) -> Option<Held<'_, J>> {
        let got = self.is_held.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        // Made only where it is got: what is dropped gives the lock back.
        got.then(|| Held { shared: self })
    }

    /// The life of a worker: `run` runs a chunk of a job, `wake` ends the sleep of a thread.
    pub(crate) fn serve(&self, thread: usize, mut run: impl FnMut(&J, u32), wake: impl Fn(usize)) {
        let mut seen = None;
        let mut spin = Spin::default();
        loop {
            let gate = self.load();
            if !gate.calls(thread, seen) {
                if !spin.pause() {
                    self.sleep(thread, seen);
                    spin = Spin::default();
                }
                continue;
            }
            if gate.is(SHUT) {
                return;
            }
            if self.exchange(gate, gate.0 + INSIDE) {
                let _inside = Inside { shared: self };
                seen = Some(gate.launch());
                gate.wake_below(thread, &wake);
                // SAFETY: this thread is inside, so the job was written before the gate was opened, and stays.
                if let Some(job) = self.job.with(|job| unsafe { *job }) {
                    self.drain(thread, gate.members(), |chunk| run(&job, chunk));
                }
                spin = Spin::default();
            }
        }
    }

    /// Ends all workers that are awake; the others must be woken.
    pub(crate) fn shut(&self) {
        self.gate.0.fetch_or(SHUT, Release);
    }

    fn load(&self) -> Gate {
        Gate(self.gate.0.load(Relaxed))
    }
    fn exchange(&self, from: Gate, to: u64) -> bool {
        self.gate.0.compare_exchange(from.0, to, AcqRel, Relaxed).is_ok()
    }

    /// Sleeps until there is something to do.
    fn sleep(&self, thread: usize, seen: Option<u64>) {
        loop {
            let gate = self.load();
            if gate.calls(thread, seen) {
                return;
            }
            if self.exchange(gate, gate.0 + SLEEPER) {
                break;
            }
        }
        while !self.load().calls(thread, seen) {
            park();
        }
        self.gate.0.fetch_sub(SLEEPER, AcqRel);
    }

    /// Runs chunks until all are taken: the thread's own from the front, then others' from the back.
    fn drain(&self, thread: usize, members: usize, mut run: impl FnMut(u32)) {
        while let Some(chunk) = self.take(thread, first) {
            run(chunk);
        }
        for k in 1..members {
            while let Some(chunk) = self.take((thread + k) % members, last) {
                run(chunk);
            }
        }
    }

    /// Takes a chunk of a thread's range. The ranges are published with the gate; taking is no more than an agreement on who
    /// has which chunk, so it orders nothing.
    fn take(&self, thread: usize, end: fn(u32, u32) -> (u32, u64)) -> Option<u32> {
        let range = &self.ranges[thread].0;
        let mut seen = range.load(Relaxed);
        loop {
            let (from, to) = (seen as u32, (seen >> 32) as u32);
            if from >= to {
                return None;
            }
            let (chunk, rest) = end(from, to);
            match range.compare_exchange(seen, rest, Relaxed, Relaxed) {
                Ok(_) => return Some(chunk),
                Err(now) => seen = now,
            }
        }
    }

    /// Waits until no worker is inside a closed gate.
    fn await_all_left(&self) {
        let mut spin = Spin::default();
        while spin.pause() {
            if Gate(self.gate.0.load(Acquire)).inside() == 0 {
                return;
            }
        }
        let mut guard = lock(&self.mutex);
        self.gate.0.fetch_or(WAITING, AcqRel);
        while Gate(self.gate.0.load(Acquire)).inside() != 0 {
            guard = wait(&self.all_left, guard);
        }
        self.gate.0.fetch_and(!WAITING, AcqRel);
    }
}

/// The first chunk of a range, and the rest.
fn first(from: u32, to: u32) -> (u32, u64) {
    (from, packed(from + 1, to))
}
/// The last chunk of a range, and the rest.
fn last(from: u32, to: u32) -> (u32, u64) {
    (to - 1, packed(from, to - 1))
}
fn packed(from: u32, to: u32) -> u64 {
    u64::from(from) | u64::from(to) << 32
}

/// The first chunk of a thread.
fn begin(thread: usize, members: usize, chunks: u32) -> u32 {
    (thread as u64 * u64::from(chunks) / members as u64) as u32
}

/// A worker inside the gate; leaves it in the end.
struct Inside<'a, J: Copy + Send> {
    shared: &'a Shared<J>,
}

impl<J: Copy + Send> Drop for Inside<'_, J> {
    fn drop(&mut self) {
        let before = Gate(self.shared.gate.0.fetch_sub(INSIDE, Release));
        if before.inside() == 1 && before.is(WAITING) {
            // The caller has the lock from when it says that it waits until it does wait.
            drop(lock(&self.shared.mutex));
            self.shared.all_left.notify_all();
        }
    }
}

/// The launch lock.
pub(crate) struct Held<'a, J: Copy + Send> {
    shared: &'a Shared<J>,
}

impl<J: Copy + Send> Drop for Held<'_, J> {
    fn drop(&mut self) {
        self.shared.is_held.store(false, Release);
    }
}

impl<J: Copy + Send> Held<'_, J> {
    /// Runs the chunks of a job on this thread, number 0, and on the workers below `members`. Nobody looks at the job after.
    pub(crate) fn launch(
        &mut self,
        job: J,
        chunks: u32,
        members: usize,
        run: impl FnMut(u32),
        wake: impl Fn(usize),
    ) {
        let shared = self.shared;
        for (thread, range) in shared.ranges[..members].iter().enumerate() {
            let (from, to) = (begin(thread, members, chunks), begin(thread + 1, members, chunks));
            range.0.store(packed(from, to), Relaxed);
        }
        // SAFETY: this thread has the launch lock, the gate is closed and nobody is inside: no other thread looks at the job.
        shared.job.with_mut(|place| unsafe { *place = Some(job) });
        let open = Open { shared };
        let mut gate = shared.load();
        while !shared.exchange(gate, gate.opened(members).0) {
            gate = shared.load();
        }
        gate.opened(members).wake_below(0, &wake);
        shared.drain(0, members, run);
        drop(open);
    }
}

/// An open gate; in the end it is closed, and nobody is inside.
struct Open<'a, J: Copy + Send> {
    shared: &'a Shared<J>,
}

impl<J: Copy + Send> Drop for Open<'_, J> {
    fn drop(&mut self) {
        let before = Gate(self.shared.gate.0.fetch_and(!OPEN, AcqRel));
        if before.inside() > 0 {
            self.shared.await_all_left();
        }
    }
}
