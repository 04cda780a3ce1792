//! Pools of threads, and launches on them.

#![allow(unsafe_code, reason = "workers get the caller's function as an address; see the blocks")]

use crate::gate::MAX_THREADS;
use crate::protocol::Shared;
use crate::sync::lock;
use crate::task::Task;
use std::cell::Cell;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};

/// The stack of a worker: as much as a main thread mostly has, reserved and not used.
const STACK: usize = 8 << 20;

/// The most threads of the pool of the process. A launch may ask for more threads than there are processors; those beyond this
/// number it does not get.
const SHARED_THREADS: usize = 256;

/// A part of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its number, from 0.
    pub index: u32,
    /// Who runs it: a number below the number of threads of the launch. At one time, a worker runs one chunk of the launch; so
    /// memory for each worker is used by one thread at a time.
    pub worker: usize,
}

/// Threads that share the chunks of launches. They are started when a launch first needs them, and end with the pool.
#[derive(Debug)]
pub struct Pool {
    inner: Arc<Inner>,
    /// The threads of a launch that does not say how many it wants.
    threads: usize,
    /// Workers that were started. Changed by the holder of the launch lock only.
    started: AtomicUsize,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Another process has no workers of this one.
    process: u32,
}

/// What workers see of the pool.
#[derive(Debug)]
struct Inner {
    shared: Shared<Job>,
    /// The workers by number; there is no number 0. Set before the first launch with the worker.
    handles: Box<[OnceLock<Thread>]>,
}

impl Inner {
    fn wake(&self, thread: usize) {
        if let Some(handle) = self.handles[thread].get() {
            handle.unpark();
        }
    }
}

/// A task as workers get it.
#[derive(Clone, Copy, Debug)]
struct Job {
    task: *const (),
    /// Runs a chunk of the task.
    run: unsafe fn(*const (), Chunk),
}

// SAFETY: the task that it points to is `Sync`, see `Pool::launch`, the only place that makes one.
unsafe impl Send for Job {}

thread_local! {
    /// Whether this thread is running a chunk of a launch that has several threads.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread runs chunks, until dropped.
struct Busy;

impl Busy {
    fn new() -> Busy {
        IS_BUSY.set(true);
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        IS_BUSY.set(false);
    }
}

impl Pool {
    /// A pool of so many threads, the caller of a launch included; at most [`MAX_THREADS`].
    pub fn new(threads: NonZeroUsize) -> Pool {
        let threads = threads.get().min(MAX_THREADS);
        Pool::of(threads, threads)
    }

    fn of(threads: usize, most: usize) -> Pool {
        let handles = (0..most).map(|_| OnceLock::new()).collect();
        Pool {
            inner: Arc::new(Inner { shared: Shared::new(most), handles }),
            threads,
            started: AtomicUsize::new(0),
            workers: Mutex::default(),
            process: std::process::id(),
        }
    }

    /// The threads of a launch that does not say how many it wants.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `f` for the chunks `0..chunks` on all threads of the pool. A panic in `f` becomes one here.
    pub fn run(&self, chunks: u32, f: impl Fn(u32) + Sync) {
        let done = self.launch(self.threads, chunks, |chunk| {
            f(chunk.index);
            Ok::<(), Infallible>(())
        });
        match done {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Runs `f` for the chunks `0..chunks`, on the caller and fewer than `threads` workers. It does so on the caller alone, in
    /// order, if there is one chunk or one thread, if the caller is itself running a chunk, and if another thread's launch has the
    /// workers.
    ///
    /// When a chunk fails, or panics, chunks after it are not begun; chunks before it are run. So the result is the failure
    /// of the first chunk that fails, as if all had been run in order. (If what `f` does depends on the order, such as on a flag that
    /// somebody sets meanwhile, it is that of the first that did fail.)
    ///
    /// # Errors
    /// That of the first chunk that fails.
    ///
    /// # Panics
    /// If the first chunk that fails does so by a panic. The pool can be used again.
    pub fn launch<E: Send>(
        &self,
        threads: usize,
        chunks: u32,
        f: impl Fn(Chunk) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let members = threads.min(self.inner.handles.len()).min(chunks as usize);
        if members <= 1 || IS_BUSY.get() {
            return alone(chunks, f);
        }
        let Some(mut held) = self.inner.shared.hold() else { return alone(chunks, f) };
        let members = self.start(members);
        if members <= 1 {
            return alone(chunks, f);
        }
        let task = Task::new(&f);
        let job = job(&task);
        let busy = Busy::new();
        // Nobody looks at the task after this.
        held.launch(
            job,
            chunks,
            members,
            |index| task.run(Chunk { index, worker: 0 }),
            |thread| self.inner.wake(thread),
        );
        drop((busy, held));
        task.result()
    }

    /// Sees to it that so many threads can take part; gives how many can.
    fn start(&self, members: usize) -> usize {
        let started = self.started.load(Relaxed);
        if started + 1 < members { self.start_more(started, members) } else { members }
    }

    #[cold]
    fn start_more(&self, mut started: usize, members: usize) -> usize {
        if self.process != std::process::id() {
            // Threads that exist here were not started by this process; the caller does what they do not.
            return started + 1;
        }
        let mut workers = lock(&self.workers);
        while started + 1 < members {
            let (inner, thread) = (self.inner.clone(), started + 1);
            let worker = std::thread::Builder::new().name(format!("pullback-{thread}")).stack_size(STACK);
            // The system may refuse; then there are fewer.
            let Ok(handle) = worker.spawn(move || serve(&inner, thread)) else { break };
            let _ = self.inner.handles[thread].set(handle.thread().clone());
            workers.push(handle);
            started += 1;
        }
        self.started.store(started, Relaxed);
        started + 1
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let workers = std::mem::take(self.workers.get_mut().unwrap_or_else(PoisonError::into_inner));
        if self.process != std::process::id() {
            // Handles of threads that are not there: nothing must be done with them.
            std::mem::forget(workers);
            return;
        }
        self.inner.shared.shut();
        for worker in workers {
            worker.thread().unpark();
            // A worker does not panic, and this is no place to say so if it did.
            let _ = worker.join();
        }
    }
}

/// The life of a worker.
fn serve(inner: &Inner, thread: usize) {
    let _busy = Busy::new();
    let run = |job: &Job, index| {
        // SAFETY: `run` is for a task of the type of `task`. The launch that it is of waits for this worker.
        unsafe { (job.run)(job.task, Chunk { index, worker: thread }) }
    };
    inner.shared.serve(thread, run, |t| inner.wake(t));
}

/// A task as workers get it.
fn job<E: Send, F: Fn(Chunk) -> Result<(), E> + Sync>(task: &Task<'_, F, E>) -> Job {
    /// # Safety
    /// The address is that of such a task, which lives.
    unsafe fn run<E: Send, F: Fn(Chunk) -> Result<(), E> + Sync>(task: *const (), chunk: Chunk) {
        // SAFETY: as said above.
        unsafe { &*task.cast::<Task<'_, F, E>>() }.run(chunk);
    }
    Job { task: std::ptr::from_ref(task).cast(), run: run::<E, F> }
}

/// All chunks in order on this thread.
fn alone<E>(chunks: u32, f: impl Fn(Chunk) -> Result<(), E>) -> Result<(), E> {
    (0..chunks).try_for_each(|index| f(Chunk { index, worker: 0 }))
}

/// How many threads run at once on this machine, as far as this process may use it.
pub fn available_threads() -> NonZeroUsize {
    // The system may look into files for it.
    static THREADS: OnceLock<NonZeroUsize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// The pool of the process. It has no threads before the first launch, and lasts as long as the process. A launch that asks
/// for so many threads gets up to 256, also if there are fewer processors.
pub fn shared() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let threads = available_threads().get().min(SHARED_THREADS);
        Pool::of(threads, SHARED_THREADS)
    })
}

/// The elements of a chunk, where `count` elements are split into `chunks` parts whose sizes differ by at most one.
///
/// # Panics
/// If there is no such chunk.
pub fn part(chunk: u32, chunks: u32, count: usize) -> Range<usize> {
    assert!(chunk < chunks, "there are {chunks} chunks, and no number {chunk}");
    let begin = |k: u32| (count as u128 * u128::from(k) / u128::from(chunks)) as usize;
    begin(chunk)..begin(chunk + 1)
}
