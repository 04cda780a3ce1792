//! Calls that are made ready once, for callers with buffers of their own who call often.

#![allow(unsafe_code, reason = "compiled code is called; the blocks say why it may be")]

use crate::executable::Executable;
use crate::session::Session;
use pullback_abi::{Argument, Copies, Kept, Place, Slot, Views, set_words, take_results};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::Type;
use pullback_kernel::FunctionId;
use std::sync::atomic::AtomicBool;

/// A function with a workspace and room for its words: a call allocates nothing once the workspace has been used, nor does it copy arguments, but
/// those that are not in row-major order.
#[derive(Debug)]
pub struct Prepared<'a> {
    session: Session<'a>,
    function: FunctionId,
    params: Vec<Slot>,
    results: Vec<Slot>,
    given: Vec<u64>,
    copies: Copies,
    found: Vec<u64>,
    kept: Kept,
}

impl Executable {
    /// Makes calls of a function ready. Their workspace has at most `memory_limit` bytes.
    ///
    /// # Errors
    /// Types that are neither scalars nor arrays of scalars, and others than those of the function.
    pub fn prepare(
        &self,
        function: FunctionId,
        params: &[Type],
        results: &[Type],
        memory_limit: u64,
    ) -> Result<Prepared<'_>, RuntimeError> {
        let slots = |types: &[Type]| {
            let slot = |ty| Slot::of(ty).ok_or_else(|| wrong(format!("{ty:?} has no buffer")));
            types.iter().map(slot).collect::<Result<Vec<Slot>, RuntimeError>>()
        };
        let (params, results) = (slots(params)?, slots(results)?);
        let width = |slots: &[Slot]| slots.iter().map(|s| s.width()).sum::<usize>();
        let (given, found) = (vec![0; width(&params)], vec![0; width(&results)]);
        let f = &self.module.functions[function];
        if (given.len(), found.len()) != (f.params.len(), f.results.len()) {
            return Err(wrong(format!("function {} has other types", f.name)));
        }
        let session = self.session_within(memory_limit);
        let (copies, kept) = (Copies::default(), Kept::default());
        Ok(Prepared { session, function, params, results, given, copies, found, kept })
    }
}

fn wrong(message: String) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Internal, message)
}

impl Prepared<'_> {
    /// Calls the function. If it stops, or a result does not fit into its place, no place is written to.
    ///
    /// # Errors
    /// Those of the program, `Limit`, `Cancelled`; `ShapeMismatch` for arguments and places of other types than the function
    /// has, and for places that are too small.
    pub fn call(
        &mut self,
        args: &[Argument<'_>],
        results: &mut [Place<'_>],
        cancel: Option<&AtomicBool>,
    ) -> Result<(), RuntimeError> {
        self.run(args, cancel)?;
        let threads = self.session.threads();
        let spread = |count: u32, f: &(dyn Fn(u32) + Sync)| {
            let part = |chunk: pullback_pool::Chunk| -> Result<(), std::convert::Infallible> {
                f(chunk.index);
                Ok(())
            };
            let Ok(()) = pullback_pool::shared().launch(threads, count, part);
        };
        // SAFETY: the words are those of the function. They point into the workspace or into arguments, which are borrowed, and
        // places are borrowed alone.
        unsafe { take_results(&self.results, &self.found, results, &spread) }
    }
    /// Calls the function and gives its results where they were made, until the next call: arrays are copied only if they are not in row-major order
    /// there, and those that are arguments are these. For large results: [`Prepared::call`] writes them, reads them and writes them again.
    ///
    /// # Errors
    /// Those of [`Prepared::call`], but that there are no places.
    pub fn view<'s>(
        &'s mut self,
        args: &'s [Argument<'s>],
        cancel: Option<&AtomicBool>,
    ) -> Result<Views<'s>, RuntimeError> {
        self.run(args, cancel)?;
        let room = self.session.room();
        // SAFETY: the words are those of the function. They point into the workspace, which the next call changes, or into arguments; both are borrowed.
        unsafe { Views::new(&self.results, &mut self.found, &mut self.kept, room) }
    }
    fn run(&mut self, args: &[Argument<'_>], cancel: Option<&AtomicBool>) -> Result<(), RuntimeError> {
        let limit = self.session.room().limit;
        set_words(&self.params, args, &mut self.given, (&mut self.copies, limit))?;
        // SAFETY: the words have just been made from arguments of the types of the function, which are borrowed.
        unsafe { self.session.call_words(self.function, &self.given, &mut self.found, cancel) }
    }
    /// The most bytes of the workspace that the last call had in use at one time.
    pub fn peak_bytes(&mut self) -> u64 {
        self.session.peak_bytes()
    }
}
