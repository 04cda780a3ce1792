//! Tasks: who records where.
//!
//! A thread that runs a task says so in `CURRENT`. An operation records on the current task if its arguments belong there, which is one
//! comparison of pointers for each. All else is found out slowly: arguments of other tasks are imported, after it was checked
//! that these tasks came before; arguments of another run are recorded by that run's task on this thread, if there is one.

#![allow(
    unsafe_code,
    reason = "tasks are shared by pointers, of which only some fields may be used by other threads"
)]

use super::Report;
use super::var::Var;
use crate::Float;
use crate::cell::Cell as _;
use crate::error::{Error, stop};
use crate::memory::Buffer;
use crate::tape::{Call, Limit, Tape};
use std::any::TypeId;
use std::cell::{Cell, OnceCell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// What happens between the rows of a task.
pub(super) enum Event<F: Float> {
    /// A function with a reverse of its own.
    Call(Box<Call<F>>),
    /// Two tasks ran, and ended.
    Fork([*const Task<F>; 2]),
}

/// A number of another task that has an index here.
pub(super) struct Import<F: Float> {
    pub(super) local: u32,
    pub(super) task: *const Task<F>,
    pub(super) index: u32,
}

/// A branch of a fork, or the whole function.
///
/// It begins a pair of cache lines: what one thread writes at every operation lies in none that another one reads.
///
/// A small task takes less than a kilobyte: this, and 256 bytes each for its rows and its cotangents.
///
/// Of a task that another thread may be running only `session`, `parent` and `joined` are read.
#[repr(align(128))]
pub(super) struct Task<F: Float> {
    pub(super) session: *const Session<F>,
    /// Null for the whole function.
    parent: *const Task<F>,
    /// Whether the fork that made it has ended: then its numbers may be used by the task that forked, and by all that it forks later.
    joined: AtomicBool,
    /// The next task of the session, in the list that owns them.
    next: *mut Task<F>,
    pub(super) tape: Tape<F, Event<F>>,
    pub(super) imports: RefCell<Vec<Import<F>>>,
    /// Some of the first imports: where they are in the list, by their indices.
    known: [Cell<u16>; KNOWN],
    /// The cotangents, by indices: made when it ends, by the thread that ran it.
    cotangents: OnceCell<Buffer<F::Bits>>,
    /// Its number in an order in which the tasks inside of it follow it, and the first number after those.
    pub(super) order: Cell<(u32, u32)>,
    /// Contributions for numbers outside of it, for the task that forked to hand on.
    pub(super) outward: RefCell<Vec<Outward<F>>>,
}

/// A contribution to a number of another task.
#[derive(Clone, Copy)]
pub(super) struct Outward<F: Float> {
    pub(super) task: *const Task<F>,
    pub(super) index: u32,
    pub(super) cotangent: F,
}

const KNOWN: usize = 16;

const _: () = assert!(size_of::<Task<f64>>() <= 256, "programs that fork often have many of them");

/// A run of a function: its tasks.
pub(super) struct Session<F: Float> {
    tasks: AtomicPtr<Task<F>>,
    root: *const Task<F>,
    limit: Limit,
}

// SAFETY: the list of tasks is changed by atomic operations, the rest is not changed; see `Task` for what threads may do with tasks.
unsafe impl<F: Float> Sync for Session<F> {}

/// What a thread is running.
struct Frame {
    task: *const (),
    /// The type of its numbers.
    numbers: TypeId,
    session: *const (),
    /// For a whole function: what the thread was running when it was called. Branches begin anew, since threads take them from
    /// anywhere.
    outer: *const Frame,
}

thread_local! {
    /// The task of the innermost frame.
    pub(super) static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static FRAME: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Puts back what the thread was running, also if what it runs now panics.
struct Restore {
    task: *const (),
    frame: *const Frame,
}

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.task);
        FRAME.set(self.frame);
    }
}

/// Runs `f` while the thread runs no task: what it does while it waits has nothing to do with the task that waits.
pub(super) fn detached<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore { task: CURRENT.replace(ptr::null()), frame: FRAME.replace(ptr::null()) };
    f()
}

/// Stack that a branch finds at least: for what a function does between two forks, and for what its thread takes over while it waits.
const FREE_STACK: usize = 128 << 10;
/// The stack that it gets where less is free.
const MORE_STACK: usize = 1 << 20;

/// Runs both, side by side if a thread is free. Forks may be nested as deep as memory allows.
pub(super) fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    stacker::maybe_grow(FREE_STACK, MORE_STACK, || rayon::join(a, b))
}

fn framed<F: Float, R>(task: *const Task<F>, outer: *const Frame, f: impl FnOnce() -> R) -> R {
    // SAFETY: tasks live as long as their session; `session` is never changed.
    let session = unsafe { (*task).session }.cast();
    let frame = Frame { task: task.cast(), numbers: TypeId::of::<F>(), session, outer };
    let _restore = Restore { task: CURRENT.replace(task.cast()), frame: FRAME.replace(&raw const frame) };
    let result = f();
    // SAFETY: this thread runs the task.
    unsafe { (*task).end() };
    result
}

impl<F: Float> Session<F> {
    /// A session with the task of the whole function.
    pub(super) fn new(limit: usize) -> Box<Session<F>> {
        let limit = Limit::Shared { limit, left: Arc::new(AtomicUsize::new(limit)) };
        let tasks = AtomicPtr::new(ptr::null_mut());
        let mut session = Box::new(Session { tasks, root: ptr::null(), limit });
        session.root = session.task(ptr::null());
        session
    }
    /// The task of the whole function.
    pub(super) fn root(&self) -> &Task<F> {
        // SAFETY: the session owns its tasks.
        unsafe { &*self.root }
    }
    /// Runs the function.
    pub(super) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        framed(self.root, FRAME.get(), f)
    }
    /// A new task, which the session owns.
    fn task(&self, parent: *const Task<F>) -> *const Task<F> {
        let task = Box::into_raw(Box::new(Task {
            session: self,
            parent,
            joined: AtomicBool::new(false),
            next: ptr::null_mut(),
            tape: Tape::new(self.limit.clone()),
            imports: RefCell::new(Vec::new()),
            known: [const { Cell::new(u16::MAX) }; KNOWN],
            cotangents: OnceCell::new(),
            order: Cell::new((0, 0)),
            outward: RefCell::new(Vec::new()),
        }));
        let mut first = self.tasks.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody else has the task before it is in the list.
            unsafe { (*task).next = first };
            // The list is read when all threads have joined.
            match self.tasks.compare_exchange_weak(first, task, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return task,
                Err(now) => first = now,
            }
        }
    }
    /// All tasks, when no other thread works on them any more.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task<F>> {
        let mut at: *const Task<F> = self.tasks.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: the session owns its tasks.
            let task = unsafe { at.as_ref()? };
            at = task.next;
            Some(task)
        })
    }
    /// What was recorded.
    pub(super) fn report(&self) -> Report {
        self.tasks().fold(Report::default(), |sum, task| Report {
            tasks: sum.tasks + 1,
            rows: sum.rows + task.tape.row_count(),
            imports: sum.imports + task.imports.borrow().len(),
            tape_bytes: sum.tape_bytes + task.tape.bytes(),
            cotangent_bytes: sum.cotangent_bytes + task.cotangents.get().map_or(0, Buffer::bytes),
        })
    }
}

impl<F: Float> Drop for Session<F> {
    fn drop(&mut self) {
        let mut at = *self.tasks.get_mut();
        while !at.is_null() {
            // SAFETY: the session owns its tasks, and numbers that point to them are gone.
            let task = unsafe { Box::from_raw(at) };
            at = task.next;
        }
    }
}

/// Runs two branches of the task that this thread runs.
pub(super) fn fork<F, A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    F: Float,
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    struct Shared<F: Float>(*const Task<F>);
    // SAFETY: the task is new, and only the thread that runs it uses it until the fork ends.
    unsafe impl<F: Float> Send for Shared<F> {}
    impl<F: Float> Shared<F> {
        fn run<R>(self, f: impl FnOnce() -> R) -> R {
            framed(self.0, ptr::null(), f)
        }
    }

    let Some(task) = innermost::<F>() else {
        // Constants only.
        return detached(|| join(a, b));
    };
    // SAFETY: the session lives while its tasks run.
    let session = unsafe { &*task.session };
    let branches = [session.task(task), session.task(task)];
    let (left, right) = (Shared(branches[0]), Shared(branches[1]));
    let results = detached(|| join(move || left.run(a), move || right.run(b)));
    for branch in branches {
        // SAFETY: the session owns its tasks.
        unsafe { (*branch).joined.store(true, Ordering::Relaxed) };
    }
    task.tape.event_at(task.tape.len() as u32, Event::Fork(branches));
    results
}

/// The task of the innermost frame, if it has this type of numbers.
fn innermost<'a, F: Float>() -> Option<&'a Task<F>> {
    let frame = FRAME.get();
    // SAFETY: frames are on the stack of this thread below us.
    let frame = unsafe { frame.as_ref()? };
    // SAFETY: the frame says that the task has this type of numbers.
    if frame.numbers == TypeId::of::<F>() { Some(unsafe { &*frame.task.cast::<Task<F>>() }) } else { None }
}

impl<F: Float> Task<F> {
    /// Makes room for the cotangents: nothing is recorded from now on.
    fn end(&self) {
        let Some(cotangents) = Buffer::new(self.tape.len(), F::Bits::zero) else {
            stop(Error::OutOfMemory { rows: self.tape.row_count() });
        };
        self.cotangents.get_or_init(|| cotangents);
    }
    /// The cotangents. None are there before it ends.
    pub(super) fn cotangents(&self) -> &[F::Bits] {
        self.cotangents.get().map_or(&[], |all| all)
    }
    /// A number of the argument.
    pub(super) fn input<'t>(&self, x: F) -> Var<'t, F> {
        Var::on(self, x, self.tape.input())
    }
    /// The task of this thread that records for the run of `task`.
    #[cold]
    pub(super) fn recorder<'a>(task: *const Task<F>) -> &'a Task<F> {
        // SAFETY: numbers live no longer than their session; `session` is never changed.
        let session = unsafe { (*task).session };
        let mut at = FRAME.get();
        // SAFETY: frames are on the stack of this thread, below us.
        while let Some(frame) = unsafe { at.as_ref() } {
            if frame.session == session.cast() {
                // SAFETY: a frame of this session has a task of this session.
                return unsafe { &*frame.task.cast::<Task<F>>() };
            }
            at = frame.outer;
        }
        panic!(
            "a number of `parallel` was used on a thread that does not run its function: fork by `Parallel::join`, `map` or `sum` of \
             the type of that number"
        );
    }
    /// The index here of number `index` of a task.
    pub(super) fn local(&self, task: *const Task<F>, index: u32) -> u32 {
        if task.is_null() || ptr::eq(task, self) {
            return index;
        }
        // Where a task lies in memory has no influence: which imports are made twice decides how sums are rounded.
        let known = &self.known[index as usize % KNOWN];
        if let Some(import) = self.imports.borrow().get(usize::from(known.get()))
            && ptr::eq(import.task, task)
            && import.index == index
        {
            return import.local;
        }
        self.check_before(task);
        let local = self.tape.push_empty();
        let mut imports = self.imports.borrow_mut();
        known.set(u16::try_from(imports.len()).unwrap_or(u16::MAX));
        imports.push(Import { local, task, index });
        local
    }
    /// Panics if `task` does not come before what is recorded here now.
    fn check_before(&self, task: *const Task<F>) {
        let mut at = task;
        // SAFETY: the session owns its tasks; `parent` is never changed, `joined` is atomic. The whole function never joins.
        while unsafe { (*at).joined.load(Ordering::Relaxed) } {
            // SAFETY: as above.
            at = unsafe { (*at).parent };
        }
        let mut ours: *const Task<F> = self;
        while !ptr::eq(ours, at) {
            // SAFETY: as above.
            ours = unsafe { (*ours).parent };
            assert!(
                !ours.is_null(),
                "a number was handed from one branch of a fork to another one that does not come after it: return it from its branch"
            );
        }
    }
}
