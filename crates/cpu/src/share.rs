//! Parts of loops on several threads.
//!
//! Compiled code asks for the parts of a loop to be run by calling the function in its context. The thread that calls it
//! takes part with its own workspace; the others have one each, kept with the session.

#![allow(unsafe_code, reason = "compiled code is called and calls back; each block says why it may")]

use pullback_abi::{Workspace, Workspaces};
use pullback_llvm::Context;
use pullback_llvm::abi::{self, Entry};
use std::num::NonZeroUsize;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// The threads of a session.
#[derive(Debug)]
pub(crate) struct Share {
    threads: usize,
    /// Those of the threads besides the one that calls.
    helpers: Vec<Mutex<Helper>>,
    /// Room for the words of a part, of each thread, where there are many.
    words: Vec<Mutex<Vec<u64>>>,
}

#[derive(Debug)]
struct Helper {
    workspace: Option<Workspace>,
    limit: u64,
    /// Where the workspace comes from and goes to.
    store: Workspaces,
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(workspace) = self.workspace.take() {
            self.store.give(workspace);
        }
    }
}

/// Why a part stopped.
struct Stop {
    message: i64,
    count: u64,
    values: [i64; abi::MAX_VALUES],
}

/// What the parts of a launch have in common.
struct Launch {
    caller: *mut Context,
    cancel: *const AtomicBool,
    call_limit: u64,
    entry: Entry,
    words: *const u64,
    width: usize,
}

// SAFETY: the caller's context is used by the thread of worker 0 only; the words are only read.
unsafe impl Sync for Launch {}

impl Share {
    /// So many threads, whose workspaces, from this store, hold at most so many bytes each.
    pub(crate) fn new(threads: NonZeroUsize, limit: u64, store: &Workspaces) -> Share {
        let helper = || Mutex::new(Helper { workspace: None, limit, store: store.clone() });
        let threads = threads.get();
        let words = (0..threads).map(|_| Mutex::default()).collect();
        Share { threads, helpers: (1..threads).map(|_| helper()).collect(), words }
    }

    fn run(&self, launch: &Launch, index: u32, worker: usize) -> Result<(), Box<Stop>> {
        // SAFETY: the caller of `share` gives so many words.
        let given = unsafe { std::slice::from_raw_parts(launch.words, launch.width) };
        let mut few = [0; 64];
        let (mut kept, mut many);
        let words = match few.get_mut(..given.len()) {
            Some(few) => few,
            None => {
                // Taken for the time of the part; a part inside of a part of the same thread would find none.
                kept = self.words.get(worker).and_then(|words| words.try_lock().ok());
                many = Vec::new();
                let words = kept.as_deref_mut().unwrap_or(&mut many);
                words.resize(given.len(), 0);
                &mut words[..]
            }
        };
        words.copy_from_slice(given);
        words[0] = u64::from(index);
        let Some(helper) = worker.checked_sub(1).and_then(|k| self.helpers.get(k)) else {
            // SAFETY: this is the thread that called, and its context is not used elsewhere while it runs a part.
            return unsafe { part(&mut *launch.caller, launch.entry, words) };
        };
        let mut helper = helper.lock().unwrap_or_else(PoisonError::into_inner);
        let Helper { workspace, limit, store } = &mut *helper;
        let limit = *limit;
        let new = || store.take(limit).unwrap_or_else(|| Workspace::new(limit));
        let workspace = workspace.get_or_insert_with(new);
        let mut context = Context {
            top: workspace.start(),
            end: workspace.end_within(limit),
            peak: null_mut(),
            cancel: launch.cancel,
            share: None,
            shared: null(),
            calls: 0,
            call_limit: launch.call_limit,
            stack_limit: 0,
            message: 0,
            count: 0,
            values: [0; abi::MAX_VALUES],
            elsewhere: 0,
        };
        // SAFETY: the context is that of a workspace that is locked.
        unsafe { part(&mut context, launch.entry, words) }
    }
}

/// Runs a part and gives back what it has allocated.
///
/// # Safety
/// As for calling the entry.
unsafe fn part(context: &mut Context, entry: Entry, words: &mut [u64]) -> Result<(), Box<Stop>> {
    let top = context.top;
    // SAFETY: the condition of this function; the entry has no results, so nothing is written to them.
    let status = unsafe { entry(context, words.as_ptr(), null_mut()) };
    context.peak = context.peak.max(context.top);
    context.top = top;
    match status {
        abi::DONE => Ok(()),
        _ => {
            let (message, count, values) = (context.message, context.count, context.values);
            Err(Box::new(Stop { message, count, values }))
        }
    }
}

/// [`abi::Share`]: runs the parts of a loop on the threads of the context's [`Share`].
///
/// # Safety
/// `context` is that of a running call whose `shared` points to a [`Share`]; the words are those of the entry's arguments.
pub(crate) unsafe extern "C" fn share(
    context: *mut Context,
    entry: Entry,
    words: *const u64,
    width: u64,
    count: i64,
) -> i32 {
    // SAFETY: see above; nobody else uses the context now.
    let (shared, cancel, call_limit) = unsafe {
        let context = &*context;
        (&*context.shared.cast::<Share>(), context.cancel, context.call_limit)
    };
    let launch = Launch { caller: context, cancel, call_limit, entry, words, width: width as usize };
    let parts = u32::try_from(count).unwrap_or(0);
    let done = pullback_pool::shared().launch(shared.threads, parts, |chunk| {
        let launch = &launch;
        shared.run(launch, chunk.index, chunk.worker)
    });
    match done {
        Ok(()) => abi::DONE,
        Err(stop) => {
            // SAFETY: all parts have ended, so the context is the caller's again.
            let context = unsafe { &mut *context };
            (context.message, context.count, context.values) = (stop.message, stop.count, stop.values);
            abi::STOPPED
        }
    }
}
