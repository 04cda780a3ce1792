//! A module of kernel IR as bytecode, with the workspaces of its calls.

use crate::code::Code;
use crate::kernels::Machine;
use crate::session::{Session, Spaces};
use crate::translate::translate;
use pullback_kernel::schedule::without_chunks;
use pullback_kernel::{FunctionId, Module};
use std::sync::{Mutex, PoisonError};

/// How many lanes a module should have: a register of doubles is four kilobytes, so that several are in the first-level cache.
pub const LANES: usize = 512;

/// How functions such as `exp` are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Functions {
    /// By `pullback-maths`: many lanes at once, with the errors that are stated there.
    #[default]
    Lanes,
    /// By the primitive table, one value at a time: the bits of the reference interpreter. Lanes are added to one element of
    /// memory one after the other.
    Table,
}

/// How a module is translated and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The instruction set. The results do not depend on it.
    pub machine: Machine,
    /// How functions such as `exp` are evaluated.
    pub functions: Functions,
    /// A call stops with a `Limit` error before its workspace and its results hold more bytes than this.
    pub memory_limit: u64,
    /// A call stops with a `Limit` error when so many calls of recursive functions are open.
    pub call_depth_limit: u64,
    /// Whether memory and registers are filled with what is no sensible number before they are used, to show where something is
    /// read that was never written.
    pub poison: bool,
}

impl Default for Options {
    /// The best instruction set of the processor; functions of lanes; 8 GiB, 10,000 open calls; no poison.
    fn default() -> Self {
        Options {
            machine: Machine::best(),
            functions: Functions::default(),
            memory_limit: 8 << 30,
            call_depth_limit: 10_000,
            poison: false,
        }
    }
}

/// Bytecode of a module. May be called from many threads at once.
#[derive(Debug)]
pub struct Executable {
    pub(crate) module: Module,
    pub(crate) options: Options,
    pub(crate) code: Code,
    workspaces: Mutex<Vec<Spaces>>,
}

impl Executable {
    /// Translates a module.
    ///
    /// # Panics
    /// If the options name an instruction set that the processor does not have.
    pub fn new(module: &Module, options: &Options) -> Executable {
        assert!(options.machine.is_there(), "the instruction set is one of this processor");
        let mut module = module.clone();
        without_chunks(&mut module);
        let code = translate(&module, options);
        Executable { module, options: options.clone(), code, workspaces: Mutex::default() }
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }
    /// The function with this name.
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        self.module.functions.iter_enumerated().find(|(_, f)| f.name == name).map(|(id, _)| id)
    }
    /// A workspace for calls, one after the other. It is given back when the session is dropped.
    pub fn session(&self) -> Session<'_> {
        self.session_within(self.options.memory_limit)
    }
    /// The same with another limit on its bytes.
    pub fn session_within(&self, memory_limit: u64) -> Session<'_> {
        let kept = self.pool().pop().filter(|s| s.data.asked() >= memory_limit);
        let reserve = || Spaces::new(memory_limit, self.options.memory_limit);
        Session::new(self, kept.unwrap_or_else(reserve), memory_limit)
    }
    /// Bytes of the workspace that the next session takes over which the system has given already.
    pub fn kept_bytes(&self) -> u64 {
        self.pool().last().map_or(0, |s| s.data.touched())
    }
    /// Workspaces that no call uses.
    pub(crate) fn pool(&self) -> std::sync::MutexGuard<'_, Vec<Spaces>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
