//! One call many times, each with its time: what benchmarks measure.

use crate::backend::Backend;
use crate::memory;
use crate::session::Ready;
use pullback_base::{Diagnostic, RuntimeError};
use pullback_core::{Buffer, Value};
use pullback_cpu::Argument;
use pullback_interp::core::Options;
use pullback_prim::ScalarValue;
use std::time::{Duration, Instant};

/// Runs `$body` with `$v` bound to what is in a scalar or in elements of scalars.
macro_rules! each_scalar {
    ($of:ident, $value:expr, $v:ident => $body:expr, $otherwise:expr) => {
        match $value {
            $of::F32($v) => $body,
            $of::F64($v) => $body,
            $of::I8($v) => $body,
            $of::I16($v) => $body,
            $of::I32($v) => $body,
            $of::I64($v) => $body,
            $of::U8($v) => $body,
            $of::U16($v) => $body,
            $of::U32($v) => $body,
            $of::U64($v) => $body,
            $of::Bool($v) => $body,
            #[allow(unreachable_patterns, reason = "scalars have no other alternatives")]
            _ => $otherwise,
        }
    };
}

impl Ready {
    /// Makes the code that calls with these arguments will run, so that none of them has to.
    ///
    /// Errors: none can be made where the settings want it.
    pub fn warm(&self, args: &[Value]) -> Result<(), Box<Diagnostic>> {
        match self.backend {
            Backend::Interp => Ok(()),
            Backend::Vm => self.vm(args).map(|_| ()),
            Backend::Llvm => self.native(args).map(|_| ()),
            Backend::Auto => {
                if self.native(args).is_err() {
                    // Programs that are not native run in the interpreter.
                    self.vm(args).ok();
                }
                Ok(())
            }
        }
    }

    /// Calls the function until `again`, told the time of the call that has just ended, says no; the results are those of the last
    /// call. Every call computes everything. Machine code is called with what has been made ready before the first one, and leaves results in its workspace,
    /// where later calls leave theirs ([`crate::Prepared::view`]): the first one also pays for the pages of the workspace.
    ///
    /// Errors: those of [`Ready::run`].
    pub fn repeat(
        &self,
        args: &[Value],
        options: &Options<'_>,
        again: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Vec<Value>, RuntimeError> {
        let is_native = matches!(self.backend, Backend::Auto | Backend::Llvm);
        let prepared = is_native.then(|| self.prepare(args, options.memory_limit).ok()).flatten();
        if let Some(mut prepared) = prepared
            && let Some(args) = args.iter().map(argument).collect::<Option<Vec<_>>>()
        {
            loop {
                let start = Instant::now();
                // What a program stops with, a single run says better.
                let Ok(views) = prepared.view(&args, options.cancel) else { break };
                if !again(start.elapsed()) {
                    return Ok(views.map(|view| view.value()).collect());
                }
            }
        }
        // How much memory there is, the system is asked for before.
        let available = memory::available().unwrap_or(u64::MAX);
        loop {
            let start = Instant::now();
            let results = self.run_within(args, options, available)?.results;
            if !again(start.elapsed()) {
                return Ok(results);
            }
        }
    }
}

/// A value as an argument of a prepared call; `None`: it is neither a scalar nor an array of scalars.
pub fn argument(value: &Value) -> Option<Argument<'_>> {
    match value {
        Value::Scalar(x) => Some(each_scalar!(ScalarValue, *x, x => Argument::scalar(x), return None)),
        Value::Array(a) => {
            let elements = a.offset..a.offset + a.count();
            each_scalar!(Buffer, &*a.data, v => Some(Argument::array(v.get(elements)?, &a.shape)), None)
        }
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => None,
    }
}
