//! The protocol under a model checker, which tries the schedules of small programs, and the values that the memory model
//! allows each read to see. It finds unordered accesses to the cells below, lost wake-ups (as deadlocks), and wrong counts.
//!
//! The source of the protocol is compiled a second time here, with the types of the checker.

#![allow(
    unsafe_code,
    reason = "cells of the checker are read and written by pointers, as the protocol promises"
)]
#![allow(dead_code, reason = "the limit on threads is of use to the library only")]
#![allow(unreachable_pub, reason = "the library makes it public")]

#[path = "../src/gate.rs"]
mod gate;
#[path = "../src/protocol.rs"]
mod protocol;

/// What `src/sync.rs` has for the library.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::park;

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("no panics")
    }
    pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).expect("no panics")
    }

    /// Asks once more, then sleeps: more often would only repeat states.
    #[derive(Default)]
    pub(crate) struct Spin {
        asked: bool,
    }

    impl Spin {
        pub(crate) fn pause(&mut self) -> bool {
            !std::mem::replace(&mut self.asked, true)
        }
    }
}

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread::{JoinHandle, Thread};
use protocol::Shared;
use sync::UnsafeCell;

/// A pool as the protocol sees it; a job is the number of a launch.
struct Model {
    shared: Shared<usize>,
    /// How often each chunk of each launch was run.
    runs: Vec<Vec<UnsafeCell<u32>>>,
    /// Read by every chunk of a launch, written by the caller after it.
    alive: Vec<UnsafeCell<bool>>,
}

impl Model {
    fn new(threads: usize, launches: &[u32]) -> Arc<Model> {
        let counters = |chunks: &u32| (0..*chunks).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Model {
            shared: Shared::new(threads),
            runs: launches.iter().map(counters).collect(),
            alive: launches.iter().map(|_| UnsafeCell::new(true)).collect(),
        })
    }

    /// A chunk.
    fn run(&self, launch: usize, chunk: u32) {
        // SAFETY: the checker stops if a write is not ordered with this.
        assert!(self.alive[launch].with(|alive| unsafe { *alive }), "run after the end of the launch");
        // SAFETY: the checker stops if another access is not ordered with this.
        self.runs[launch][chunk as usize].with_mut(|runs| unsafe { *runs += 1 });
    }

    fn workers(model: &Arc<Model>, threads: usize) -> Vec<JoinHandle<()>> {
        let worker = |thread| {
            let model = model.clone();
            let serve = move || {
                let run = |launch: &usize, chunk| model.run(*launch, chunk);
                model.shared.serve(thread, run, |_| unreachable!("two workers are both below the caller"));
            };
            loom::thread::spawn(serve)
        };
        (1..threads).map(worker).collect()
    }

    /// A launch, if nobody else has one.
    fn launch(&self, launch: usize, members: usize, handles: &[Thread]) -> bool {
        let Some(mut held) = self.shared.hold() else { return false };
        let wake = |thread: usize| handles[thread - 1].unpark();
        let chunks = self.runs[launch].len() as u32;
        held.launch(launch, chunks, members, |chunk| self.run(launch, chunk), wake);
        drop(held);
        // SAFETY: the checker stops if a chunk is not ordered with this.
        self.alive[launch].with_mut(|alive| unsafe { *alive = false });
        true
    }

    fn end(&self, workers: Vec<JoinHandle<()>>) {
        self.shared.shut();
        for worker in workers {
            worker.thread().unpark();
            worker.join().expect("a worker that ends");
        }
    }

    /// Every chunk of a launch was run once.
    fn is_done(&self, launch: usize) -> bool {
        // SAFETY: the checker stops if a chunk is not ordered with this.
        self.runs[launch].iter().all(|runs| runs.with(|runs| unsafe { *runs } == 1))
    }
}

/// All schedules, or those with so many preemptions.
fn check(preemptions: Option<usize>, program: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(program);
}

/// A caller that makes these launches.
fn launches(threads: usize, launches: &'static [u32], preemptions: Option<usize>) {
    check(preemptions, move || {
        let model = Model::new(threads, launches);
        let workers = Model::workers(&model, threads);
        let handles: Vec<Thread> = workers.iter().map(|w| w.thread().clone()).collect();
        for launch in 0..launches.len() {
            assert!(model.launch(launch, threads, &handles));
            assert!(model.is_done(launch));
        }
        model.end(workers);
    });
}

#[test]
fn one_worker_one_launch() {
    launches(2, &[3], Some(4));
}

#[test]
fn one_worker_two_launches() {
    launches(2, &[2, 2], Some(3));
}

#[test]
fn two_workers() {
    launches(3, &[2], Some(2));
}

#[test]
fn two_callers() {
    check(Some(2), || {
        let model = Model::new(2, &[1, 1, 2]);
        let workers = Model::workers(&model, 2);
        let handles: Vec<Thread> = workers.iter().map(|w| w.thread().clone()).collect();
        let (other, other_handles) = (model.clone(), handles.clone());
        let caller = loom::thread::spawn(move || {
            let launched = [0, 1].map(|launch| other.launch(launch, 2, &other_handles));
            assert!([0, 1].iter().all(|launch| !launched[*launch] || other.is_done(*launch)));
            launched[0]
        });
        let launched = model.launch(2, 2, &handles);
        assert!(!launched || model.is_done(2));
        let other_launched = caller.join().expect("a caller that ends");
        assert!(launched || other_launched, "one of them gets the workers");
        model.end(workers);
    });
}
