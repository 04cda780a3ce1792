//! Running calls: the context of compiled code, and what it says when it stops.

#![allow(unsafe_code, reason = "compiled code is called; each block says why it may be")]

use crate::executable::Executable;
use crate::share::{self, Share};
use pullback_abi::{Outcome, Room, Workspace, stop, with_values};
use pullback_base::index::Index;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{Type, Value};
use pullback_kernel::{FunctionId, MessageId, Reg};
use pullback_llvm::Context;
use pullback_llvm::abi;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;

/// Where no one cancels.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The stack of a recursive function: so much is there, or a new one of twice the size is made.
const DEEP_STACK: usize = 32 << 20;
/// What stays free of the stack for functions that are not recursive.
const STACK_RESERVE: usize = 256 << 10;

/// A workspace with which an executable is called.
#[derive(Debug)]
pub struct Session<'a> {
    executable: &'a Executable,
    /// Given back to the executable when the session ends.
    workspace: ManuallyDrop<Workspace>,
    /// On the heap, so that compiled code is given the same address each time.
    context: Box<Context>,
    /// The context points to it.
    _share: Box<Share>,
    /// The most bytes of the workspace that a call has had in use.
    highest: u64,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the workspace is not used again.
        let mut workspace = unsafe { ManuallyDrop::take(&mut self.workspace) };
        workspace.touch(self.highest);
        self.executable.options.workspaces.give(workspace);
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(executable: &'a Executable, workspace: Workspace, memory_limit: u64) -> Session<'a> {
        let mut workspace = ManuallyDrop::new(workspace);
        let share =
            Box::new(Share::new(executable.options.threads, memory_limit, &executable.options.workspaces));
        // Recursive functions need a deep stack, which only this thread has.
        let several = executable.options.threads.get() > 1 && !executable.is_recursive;
        let context = Box::new(Context {
            top: workspace.start(),
            end: workspace.end_within(memory_limit),
            peak: null_mut(),
            cancel: &NEVER,
            share: if several { Some(share::share) } else { None },
            shared: std::ptr::from_ref(&*share).cast(),
            calls: 0,
            call_limit: executable.options.call_depth_limit,
            stack_limit: 0,
            message: 0,
            count: 0,
            values: [0; abi::MAX_VALUES],
            elsewhere: 0,
        });
        Session { executable, workspace, context, _share: share, highest: 0 }
    }

    /// Calls a function with words; see [`abi`] for what they are. Results that are addresses are of the workspace, until the
    /// next call with this session, or of the arguments.
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
        cancel: Option<&AtomicBool>,
    ) -> Result<(), RuntimeError> {
        let f = &self.executable.module.functions[function];
        assert_eq!((args.len(), results.len()), (f.params.len(), f.results.len()), "arguments and results");
        let context = &mut *self.context;
        context.top = self.workspace.start();
        context.peak = context.top;
        context.cancel = cancel.unwrap_or(&NEVER);
        context.calls = 0;
        let status = if self.executable.is_recursive {
            stacker::maybe_grow(DEEP_STACK, 2 * DEEP_STACK, || self.enter(function, args, results))
        } else {
            self.enter(function, args, results)
        };
        self.highest = self.highest.max(self.peak_bytes());
        match status {
            abi::DONE => Ok(()),
            _ => Err(self.stopped()),
        }
    }

    /// Calls on this stack, whose end the context knows.
    fn enter(&mut self, function: FunctionId, args: &[u64], results: &mut [u64]) -> i32 {
        let entry = self.executable.entries[function];
        if self.executable.is_recursive {
            let here = std::ptr::from_ref(&entry).addr();
            let free = stacker::remaining_stack().unwrap_or(here);
            self.context.stack_limit = (here - free.min(here)).saturating_add(STACK_RESERVE);
        }
        // SAFETY: the context is that of a workspace that nobody else uses; the rest is the condition of `call_words`.
        unsafe { entry(&mut *self.context, args.as_ptr(), results.as_mut_ptr()) }
    }

    /// How many threads calls run on.
    pub(crate) fn threads(&self) -> usize {
        self.executable.options.threads.get()
    }
    /// The most bytes of the workspace that the last call had in use at one time.
    pub fn peak_bytes(&mut self) -> u64 {
        let highest = self.context.peak.addr().max(self.context.top.addr());
        (highest - self.workspace.start().addr()) as u64
    }

    /// Bytes of the workspace that are in use, and how many there may be.
    pub(crate) fn room(&mut self) -> Room {
        let start = self.workspace.start().addr();
        Room {
            in_use: (self.context.top.addr() - start) as u64,
            limit: (self.context.end.addr() - start) as u64,
        }
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
        cancel: Option<&AtomicBool>,
    ) -> Result<Outcome, RuntimeError> {
        let executable = self.executable;
        // SAFETY: the words are made from values by the layout of the lowering, what they point to lives until the end, and
        // the workspace is not changed before the next call.
        let values = unsafe {
            with_values(&executable.module.functions[function], args, results, |args, results| {
                self.call_words(function, args, results, cancel)?;
                Ok(self.room())
            })?
        };
        Ok(Outcome { results: values, peak_bytes: self.peak_bytes() })
    }

    /// Why the last call stopped.
    fn stopped(&mut self) -> RuntimeError {
        let values: Vec<i64> = {
            let count = (self.context.count as usize).min(abi::MAX_VALUES);
            self.context.values[..count].to_vec()
        };
        let value = |k: usize| values.get(k).copied().unwrap_or(0);
        let module = &self.executable.module;
        let function = || module.functions.iter().nth(value(0) as usize).map_or("", |f| f.name.as_str());
        let call = || module.calls.get(&FunctionId::new(value(0) as usize)).map(|(_, span)| *span);
        match self.context.message {
            abi::OUT_OF_MEMORY => {
                let place = (FunctionId::new(value(2) as usize), Reg::new(value(3) as usize));
                let span = self.executable.module.facts(place.0, place.1).and_then(|facts| facts.place);
                stop::out_of_memory(value(0) as u64, value(1) as u64, &self.room()).at(span)
            }
            abi::CANCELLED => stop::cancelled(),
            abi::TOO_MANY_CALLS => {
                stop::too_many_calls(self.executable.options.call_depth_limit, function()).at(call())
            }
            abi::STACK_FULL => stop::stack_full(self.context.calls, function()).at(call()),
            index => {
                let message = usize::try_from(index)
                    .ok()
                    .and_then(|i| self.executable.module.messages.get(MessageId::new(i)));
                match message {
                    Some(m) => RuntimeError::new(m.kind.clone(), m.render(&values)).at(m.span),
                    None => RuntimeError::new(
                        RuntimeErrorKind::Internal,
                        format!("compiled code stopped with the unknown message {index}"),
                    ),
                }
            }
        }
    }
}
