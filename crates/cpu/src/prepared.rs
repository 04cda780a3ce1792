//! Calls that are made ready once, for callers with buffers of their own who call often.

#![allow(unsafe_code, reason = "compiled code is called; the blocks say why it may be")]

use crate::executable::Executable;
use crate::session::Session;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::Type;
use pullback_kernel::FunctionId;
use pullback_words::{Argument, Place, Slot, set_words, take_results};
use std::sync::atomic::AtomicBool;

/// A function with a workspace and room for its words: a call allocates nothing once the workspace has been used.
#[derive(Debug)]
pub struct Prepared<'a> {
    session: Session<'a>,
    function: FunctionId,
    params: Vec<Slot>,
    results: Vec<Slot>,
    given: Vec<u64>,
    found: Vec<u64>,
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
        Ok(Prepared { session: self.session_within(memory_limit), function, params, results, given, found })
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
        set_words(&self.params, args, &mut self.given)?;
        // SAFETY: the words have just been made from arguments of the types of the function, which are borrowed.
        unsafe { self.session.call_words(self.function, &self.given, &mut self.found, cancel)? };
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
    /// The most bytes of the workspace that the last call had in use at one time.
    pub fn peak_bytes(&mut self) -> u64 {
        self.session.peak_bytes()
    }
}
