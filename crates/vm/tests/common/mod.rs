//! The vm with every instruction set of this processor.

#![allow(unsafe_code, reason = "bytecode is called with words")]

use pullback_base::RuntimeError;
use pullback_kernel::{FunctionId, Module};
use pullback_testkit::conformance;
use pullback_vm::{Executable, Functions, Limits, Machine, Options};
use std::sync::atomic::AtomicBool;

/// Bytecode, as the tests of all executors take it.
struct Translated(Executable);
struct Running<'a>(pullback_vm::Session<'a>);

impl conformance::Executable for Translated {
    fn name(&self) -> String {
        self.0.options().machine.name().to_string()
    }
    fn function(&self, name: &str) -> Option<FunctionId> {
        self.0.function(name)
    }
    fn session(&self) -> Box<dyn conformance::Session + '_> {
        Box::new(Running(self.0.session()))
    }
}

impl conformance::Session for Running<'_> {
    unsafe fn call(
        &mut self,
        function: FunctionId,
        args: &[u64],
        results: &mut [u64],
        cancel: Option<&AtomicBool>,
    ) -> Result<(), RuntimeError> {
        // SAFETY: the conditions are the same.
        unsafe { self.0.call_words(function, args, results, Limits { cancel, work: None }) }
    }
    fn peak_bytes(&mut self) -> u64 {
        self.0.peak_bytes()
    }
}

/// The instruction sets of this processor.
pub(crate) fn machines() -> impl Iterator<Item = Machine> {
    Machine::ALL.into_iter().filter(|m| m.is_there())
}

/// Translates a module for every instruction set.
pub(crate) fn make(module: &Module, setup: conformance::Setup) -> conformance::Executables<'_> {
    let functions = match setup.functions {
        conformance::Functions::Own => Functions::Lanes,
        conformance::Functions::Table => Functions::Table,
    };
    let options = move |machine| Options {
        machine,
        functions,
        memory_limit: setup.memory,
        call_depth_limit: setup.calls,
        poison: true,
    };
    Box::new(machines().map(move |m| Box::new(Translated(Executable::new(module, &options(m)))) as _))
}
