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
    /// call. Every call computes everything. From the second one on, machine code leaves results where the calls before left theirs ([`crate::Prepared::view`]).
    ///
    /// Errors: those of [`Ready::run`].
    pub fn repeat(
        &self,
        args: &[Value],
        options: &Options<'_>,
        again: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Vec<Value>, RuntimeError> {
        // How much memory there is, the system is asked for before.
        let available = memory::available().unwrap_or(u64::MAX);
        let start = Instant::now();
        let outcome = self.run_within(args, options, available)?;
        let mut more = again(start.elapsed());
        let mut results = outcome.results;
        let is_native = matches!(self.backend, Backend::Auto | Backend::Llvm);
        let prepared = (more && is_native).then(|| self.prepare(args, options.memory_limit).ok()).flatten();
        if let Some(mut prepared) = prepared
            && let Some(args) = args.iter().map(argument).collect::<Option<Vec<_>>>()
        {
            loop {
                let start = Instant::now();
                let views = prepared.view(&args, options.cancel)?;
                if !again(start.elapsed()) {
                    return Ok(views.map(|view| view.value()).collect());
                }
            }
        }
        while more {
            let start = Instant::now();
            results = self.run_within(args, options, available)?.results;
            more = again(start.elapsed());
        }
        Ok(results)
    }
}

/// A value as an argument of a prepared call; `None`: it is neither a scalar nor an array of scalars.
fn argument(value: &Value) -> Option<Argument<'_>> {
    match value {
        Value::Scalar(x) => Some(each_scalar!(ScalarValue, *x, x => Argument::scalar(x), return None)),
        Value::Array(a) => {
            let elements = a.offset..a.offset + a.count();
            each_scalar!(Buffer, &*a.data, v => Some(Argument::array(v.get(elements)?, &a.shape)), None)
        }
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => None,
    }
}
