//! Running calls, and what is said when they stop.

#![allow(unsafe_code, reason = "bytecode works on raw memory; each block says why it may be run")]

use crate::executable::Executable;
use crate::run::{Context, Frame, Stop, run};
use pullback_abi::{Outcome, Room, Workspace, stop, with_values};
use pullback_base::index::Index;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{Type, Value};
use pullback_kernel::FunctionId;
use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicBool;

/// What ends a call early.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// Set from outside to stop the call soon.
    pub cancel: Option<&'a AtomicBool>,
    /// So much work at most, counted in instructions on scalars; one on lanes counts by the number of lanes. The count depends on
    /// the program and its arguments only. More is the error that [`is_out_of_work`] knows.
    pub work: Option<u64>,
}

/// The message of a call that would be more work than allowed.
const OUT_OF_WORK: &str = "more work than allowed";

/// Whether a call stopped because it was more work than allowed.
pub fn is_out_of_work(e: &RuntimeError) -> bool {
    e.kind == RuntimeErrorKind::Limit && e.message == OUT_OF_WORK
}

/// Room for the frames of open calls. Memory is there where it is used.
const FRAMES_BYTES: u64 = 256 << 20;

/// What a call works in.
#[derive(Debug)]
pub(crate) struct Spaces {
    pub(crate) data: Workspace,
    frames: Workspace,
}

impl Spaces {
    pub(crate) fn new(memory_limit: u64, roomy: u64) -> Spaces {
        Spaces { data: Workspace::with_room(memory_limit, roomy), frames: Workspace::new(FRAMES_BYTES) }
    }
}

/// A workspace with which an executable is called.
#[derive(Debug)]
pub struct Session<'a> {
    executable: &'a Executable,
    /// Given back to the executable when the session ends.
    spaces: ManuallyDrop<Spaces>,
    memory_limit: u64,
    /// Open calls; kept, so that calls need no allocation.
    frames: Vec<Frame>,
    /// Of the last call.
    peak_bytes: u64,
    /// Of the last call, when it ended.
    room: Room,
    /// The most bytes of the workspace that a call has had in use.
    highest: u64,
    /// Of the last call.
    work_done: u64,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the workspace is not used again.
        let mut spaces = unsafe { ManuallyDrop::take(&mut self.spaces) };
        spaces.data.touch(self.highest);
        self.executable.pool().push(spaces);
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(executable: &'a Executable, spaces: Spaces, memory_limit: u64) -> Session<'a> {
        let (spaces, room) = (ManuallyDrop::new(spaces), Room { in_use: 0, limit: 0 });
        Session {
            executable,
            spaces,
            memory_limit,
            frames: Vec::new(),
            peak_bytes: 0,
            room,
            highest: 0,
            work_done: 0,
        }
    }

    /// Calls a function with words. Results that are addresses are of the workspace, until the next call with this session, or of
    /// the arguments.
    ///
    /// # Errors
    /// Those of the program, `Limit` and `Cancelled`.
    ///
    /// # Panics
    /// If there are not as many arguments and results as the function has.
    ///
    /// # Safety
    /// The arguments are of the types of the function's parameters, and memory that they point to is as the function expects.
    pub unsafe fn call_words(
        &mut self,
        function: FunctionId,
        args: &[u64],
        results: &mut [u64],
        limits: Limits<'_>,
    ) -> Result<(), RuntimeError> {
        let f = &self.executable.module.functions[function];
        assert_eq!((args.len(), results.len()), (f.params.len(), f.results.len()), "arguments and results");
        let Spaces { data, frames } = &mut *self.spaces;
        let start = data.start();
        let mut context = Context {
            start,
            top: start,
            end: data.end_within(self.memory_limit),
            peak: start,
            frames_start: frames.start(),
            frames_end: frames.end_within(FRAMES_BYTES),
            cancel: limits.cancel,
            work_done: 0,
            work_limit: limits.work.unwrap_or(u64::MAX),
            calls: 0,
            frames: &mut self.frames,
        };
        context.frames.clear();
        // SAFETY: the workspace is this session's own; the rest is the condition of this function.
        let done = unsafe { run(self.executable, Index::index(function), &mut context, args, results) };
        let bytes = |to: *mut u8| (to.addr() - start.addr()) as u64;
        self.room = Room { in_use: bytes(context.top), limit: bytes(context.end) };
        self.peak_bytes = bytes(context.peak).max(bytes(context.top));
        self.highest = self.highest.max(self.peak_bytes);
        self.work_done = context.work_done;
        let calls = context.calls;
        done.map_err(|why| self.stopped(why, calls))
    }

    /// The most bytes of the workspace that the last call had in use at one time, without the frames of functions.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// The work of the last call; see [`Limits::work`].
    pub fn work_done(&self) -> u64 {
        self.work_done
    }

    /// Calls a function with values of core.
    ///
    /// # Errors
    /// Those of the program, `Limit`, `Cancelled`, and `Internal` for arguments of wrong types.
    pub fn call(
        &mut self,
        function: FunctionId,
        args: &[(&Type, &Value)],
        results: &[Type],
        limits: Limits<'_>,
    ) -> Result<Outcome, RuntimeError> {
        let executable = self.executable;
        // SAFETY: the words are made from values by the layout of the lowering, what they point to lives until the end, and
        // the workspace is not changed before the next call.
        let values = unsafe {
            with_values(&executable.module.functions[function], args, results, |args, results| {
                self.call_words(function, args, results, limits)?;
                Ok(self.room.clone())
            })?
        };
        Ok(Outcome { results: values, peak_bytes: self.peak_bytes })
    }

    fn stopped(&self, why: Stop, calls: u64) -> RuntimeError {
        let executable = self.executable;
        let name = |f: usize| &*executable.module.functions[FunctionId::new(f)].name;
        let call = |f: usize| executable.module.calls.get(&FunctionId::new(f)).map(|(_, span)| *span);
        match why {
            Stop::Message(message, values) => {
                let m = &executable.module.messages[message];
                RuntimeError::new(m.kind.clone(), m.render(&values)).at(m.span)
            }
            Stop::OutOfMemory { count, size, function, to } => {
                let register = executable.code.functions[function].register(to);
                let place = register.map(|r| (FunctionId::new(function), r));
                let span = place.and_then(|(f, r)| executable.module.facts(f, r)?.place);
                stop::out_of_memory(count, size, &self.room).at(span)
            }
            Stop::Cancelled => stop::cancelled(),
            Stop::OutOfWork => RuntimeError::new(RuntimeErrorKind::Limit, OUT_OF_WORK),
            Stop::TooManyCalls(f) => {
                stop::too_many_calls(executable.options.call_depth_limit, name(f)).at(call(f))
            }
            Stop::StackFull(f) => stop::stack_full(calls, name(f)).at(call(f)),
        }
    }
}
