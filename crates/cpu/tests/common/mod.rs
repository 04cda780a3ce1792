//! Modules written by hand, and every libLLVM of this machine.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test uses some of it")]
#![allow(unsafe_code, reason = "compiled code is called with words")]

use pullback_base::RuntimeError;
use pullback_cpu::{Executable, Level, Options, Workspaces};
use pullback_kernel::{FunctionId, Module};
use pullback_llvm::pieces::Limits;
use pullback_llvm::{Floats, Functions, text};
pub(crate) use pullback_testkit::conformance::{
    self, BOOL, F64, I64, PTR, Setup, checked, first, floats, function, int, module, of_floats, of_ints,
};
use pullback_testkit::draws::some_of;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// The library that is used, and a share of the others of this machine, one of each version that can be opened: another share every day. `STEP=1`
/// takes all.
pub(crate) fn libraries() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(search)
}

fn search() -> Vec<PathBuf> {
    let mut versions = Vec::new();
    let mut out = Vec::new();
    for path in pullback_llvm::load::candidates() {
        if let Ok(llvm) = pullback_llvm::Llvm::open(&path)
            && !versions.contains(&llvm.found().version)
        {
            versions.push(llvm.found().version.clone());
            out.push(path);
        }
    }
    if out.is_empty() {
        eprintln!("skipped: no libLLVM was found, 0 versions are tested");
    }
    let others = out.split_off(out.len().min(1));
    let each = others.len().max(1);
    out.extend(some_of(others, each).0);
    out
}

/// Compiles a module with every library at every level, the most used way first; also in as many pieces as possible.
pub(crate) fn executables(module: &Module, options: Options) -> impl Iterator<Item = Executable> {
    let ways = [(Level::O3, Limits::default()), (Level::O1, Limits::SMALL)];
    let ways = libraries().iter().flat_map(move |library| ways.clone().map(|way| (library, way)));
    ways.map(move |(library, (level, pieces))| {
        let pieces =
            if options.text.pieces == Limits::default() { pieces } else { options.text.pieces.clone() };
        let text = text::Options { pieces, ..options.text.clone() };
        let (library, workspaces) = (Some(library.clone()), Workspaces::default());
        let options = Options { level, text, library, workspaces, ..options.clone() };
        Executable::new(module, &options).unwrap_or_else(|error| {
            let text = pullback_llvm::emit(module, &options.text).text;
            panic!("{error}\n{text:.20000}")
        })
    })
}

/// Compiled code, as the tests of all executors take it.
struct Compiled(Executable);
struct Running<'a>(pullback_cpu::Session<'a>);

impl conformance::Executable for Compiled {
    fn name(&self) -> String {
        format!("{:?}", self.0.compiler())
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
        unsafe { self.0.call_words(function, args, results, cancel) }
    }
    fn peak_bytes(&mut self) -> u64 {
        self.0.peak_bytes()
    }
}

/// Compiles a module with every library at every level, without what rounds otherwise.
pub(crate) fn make(module: &Module, setup: Setup) -> conformance::Executables<'_> {
    let functions = match setup.functions {
        conformance::Functions::Own => Functions::Own,
        conformance::Functions::Table => Functions::Table,
    };
    let text = text::Options { floats: Floats::Strict, functions, ..text::Options::default() };
    let options =
        Options { text, memory_limit: setup.memory, call_depth_limit: setup.calls, ..Options::default() };
    Box::new(executables(module, options).map(|e| Box::new(Compiled(e)) as _))
}

/// Tests that every executor must pass.
macro_rules! each {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            pullback_testkit::conformance::$name(&$crate::common::make);
        }
    )* };
}
pub(crate) use each;
