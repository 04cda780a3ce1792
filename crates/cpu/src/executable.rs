//! A module of kernel IR as machine code, with the workspaces of its calls.

#![allow(unsafe_code, reason = "addresses of compiled functions become functions; see the block")]

use crate::cache;
use crate::session::Session;
use crate::symbols;
use pullback_abi::{Workspace, Workspaces};
use pullback_base::index::IndexVec;
use pullback_kernel::schedule::{self, Model, schedule_unproved};
use pullback_kernel::verify::Fallback;
use pullback_kernel::{FunctionId, Module};
use pullback_llvm::abi::Entry;
use pullback_llvm::text::{self, Texts};
use pullback_llvm::{Found, Level, Linked, Llvm, LlvmError, Machine, emit_several};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How code is made and run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much the compiler tries.
    pub level: Level,
    /// How the text for LLVM is made.
    pub text: text::Options,
    /// How many iterations run side by side in every loop; `None`: as the machine and each loop suggest; 0: loops stay as they are. A module that
    /// has lanes already is taken as it is.
    pub lanes: Option<usize>,
    /// What the arguments of functions are expected to be, if they are sizes: the choice of loops depends on it.
    pub sizes: Vec<(FunctionId, Vec<Option<i64>>)>,
    /// Passes of scheduling that are left out.
    pub without: Vec<&'static str>,
    /// The library; `None`: the first one found.
    pub library: Option<PathBuf>,
    /// Where compiled objects are kept; `None`: nowhere. See [`cache::folder`].
    pub cache: Option<PathBuf>,
    /// How many threads run the parts of loops. Results do not depend on it, but see `relaxed`.
    pub threads: NonZeroUsize,
    /// Threads may add to memory at the same time where a copy for each part would cost too much: the order in which floats are
    /// added is not fixed then.
    pub relaxed: bool,
    /// A call stops with a `Limit` error before its workspace and its results hold more bytes than this.
    pub memory_limit: u64,
    /// A call stops with a `Limit` error when so many calls of recursive functions are open.
    pub call_depth_limit: u64,
    /// Where workspaces are kept between calls; those of all executables with this store.
    pub workspaces: Workspaces,
}

impl Default for Options {
    /// All optimisations; the threads of the machine; nothing is kept on disk; 8 GiB, 10,000 open calls.
    fn default() -> Self {
        Options {
            level: Level::O3,
            text: text::Options::default(),
            lanes: None,
            sizes: Vec::new(),
            without: Vec::new(),
            library: None,
            cache: None,
            threads: pullback_pool::available_threads(),
            relaxed: false,
            memory_limit: 8 << 30,
            call_depth_limit: 10_000,
            workspaces: Workspaces::default(),
        }
    }
}

/// Machine code of a module. May be called from many threads at once.
#[derive(Debug)]
pub struct Executable {
    pub(crate) module: Module,
    pub(crate) options: Options,
    pub(crate) is_recursive: bool,
    pub(crate) entries: IndexVec<FunctionId, Entry>,
    found: Found,
    was_kept: bool,
    /// The code that the entries are in.
    _linked: Linked,
}

/// Code as it is given to LLVM, which is not compiled yet.
#[derive(Debug)]
pub struct Draft<'o> {
    options: &'o Options,
    llvm: &'static Llvm,
    scheduled: Scheduled,
    emitted: Texts,
}

/// A module with loops in lanes.
#[derive(Debug)]
enum Scheduled {
    /// One that is taken as it is.
    Given(Module),
    Unproved(schedule::Unproved),
}

impl Scheduled {
    fn of(module: &Module, machine: Machine, options: &Options) -> Scheduled {
        let module = module.clone();
        if module.lanes == 0 && options.lanes != Some(0) {
            return Scheduled::Unproved(schedule_unproved(module, &scheduling(machine, options)));
        }
        Scheduled::Given(module)
    }
    fn module(&self) -> &Module {
        match self {
            Scheduled::Given(module) => module,
            Scheduled::Unproved(unproved) => unproved.module(),
        }
    }
    fn proved(self) -> Module {
        match self {
            Scheduled::Given(module) => module,
            Scheduled::Unproved(unproved) => unproved.proved(),
        }
    }
}

impl<'o> Draft<'o> {
    /// Schedules a module and writes the texts for LLVM. Errors: no library.
    pub fn new(module: &Module, options: &'o Options) -> Result<Draft<'o>, LlvmError> {
        let llvm = match &options.library {
            Some(path) => Llvm::open(path)?,
            None => Llvm::find()?,
        };
        let scheduled = Scheduled::of(module, llvm.instructions(), options);
        let emitted = emitted(llvm, scheduled.module(), options);
        Ok(Draft { options, llvm, scheduled, emitted })
    }
    /// The code, if it was compiled before and kept. Since only verified code is kept, the verifier is not asked. Errors: it does not link.
    pub fn kept(&self) -> Result<Option<Executable>, LlvmError> {
        let Some(folder) = &self.options.cache else { return Ok(None) };
        let Some(objects) = cache::read(folder, &source(self.llvm, &self.emitted.texts, self.options)) else {
            return Ok(None);
        };
        self.linked(&objects, true).map(Some)
    }
    /// Compiles the code of a verified module when its schedule is verified too, and keeps it. Errors: of LLVM.
    pub fn compiled(self) -> Result<Executable, LlvmError> {
        let Draft { options, llvm, scheduled, mut emitted } = self;
        let module = scheduled.proved();
        if module.fallbacks.contains(&Fallback::AsLowered) {
            emitted = self::emitted(llvm, &module, options);
        }
        let threads = pullback_pool::available_threads();
        let objects = llvm.compile_all(&emitted.texts, options.level, threads)?;
        if let Some(folder) = &options.cache {
            cache::write(folder, &source(llvm, &emitted.texts, options), &objects);
        }
        Draft { options, llvm, scheduled: Scheduled::Given(module), emitted }.linked(&objects, false)
    }
    fn linked(&self, objects: &[Vec<u8>], was_kept: bool) -> Result<Executable, LlvmError> {
        let library = symbols::library();
        let mut all: Vec<(&str, usize)> = library.clone();
        for symbol in &self.emitted.symbols {
            all.extend(symbols::address(symbol).map(|address| (symbol.name.as_str(), address)));
        }
        let linked = self.llvm.link(objects, &all)?;
        let mut entries = IndexVec::new();
        for entry in &self.emitted.entries {
            let address = linked.address(entry)?;
            // SAFETY: the address is that of the exported function, whose type the text fixes as that of an entry.
            entries.push(unsafe { std::mem::transmute::<usize, Entry>(address) });
        }
        Ok(Executable {
            module: self.scheduled.module().clone(),
            options: self.options.clone(),
            is_recursive: self.emitted.is_recursive,
            entries,
            found: self.llvm.found().clone(),
            was_kept,
            _linked: linked,
        })
    }
}

fn emitted(llvm: &Llvm, module: &Module, options: &Options) -> Texts {
    emit_several(module, &text::Options { machine: llvm.instructions(), ..options.text.clone() })
}

impl Executable {
    /// Compiles a verified module, or takes the code that was kept.
    pub fn new(module: &Module, options: &Options) -> Result<Executable, LlvmError> {
        let draft = Draft::new(module, options)?;
        match draft.kept()? {
            Some(executable) => Ok(executable),
            None => draft.compiled(),
        }
    }

    /// What was compiled: the module with loops in lanes and parts.
    pub fn module(&self) -> &Module {
        &self.module
    }
    /// The library that made the code.
    pub fn compiler(&self) -> &Found {
        &self.found
    }
    /// Whether the code was compiled before and kept on disk.
    pub fn was_kept(&self) -> bool {
        self.was_kept
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
        let kept = self.options.workspaces.take(memory_limit);
        let reserve = || Workspace::with_room(memory_limit, self.options.memory_limit);
        Session::new(self, kept.unwrap_or_else(reserve), memory_limit)
    }
    /// Bytes of the workspace that the next session takes over which the system has given already.
    pub fn kept_bytes(&self) -> u64 {
        self.options.workspaces.touched()
    }
}

/// A module as it is given to LLVM: with loops in lanes.
pub fn scheduled(module: &Module, machine: Machine, options: &Options) -> Module {
    Scheduled::of(module, machine, options).proved()
}

/// How loops are scheduled for a machine.
pub fn scheduling(machine: Machine, options: &Options) -> schedule::Options {
    let width = match machine {
        Machine::Avx512 => 8,
        Machine::Generic => 4,
    };
    schedule::Options {
        lanes: options.lanes.unwrap_or(width),
        most: options.lanes.unwrap_or(MOST * width),
        model: Model::machine(width),
        grain: Some(GRAIN),
        // A single thread gains nothing.
        relaxed: options.relaxed && options.threads.get() > 1,
        sizes: options.sizes.clone(),
        without: options.without.clone(),
    }
}

/// So many registers are one register of lanes at most.
const MOST: usize = 8;

/// Work that is worth a part of its own when threads share a loop: about 10 microseconds (decision 35).
const GRAIN: f64 = 30_000.0;

/// What objects are made from.
fn source(llvm: &Llvm, texts: &[String], options: &Options) -> String {
    let (found, (cpu, features)) = (llvm.found(), llvm.processor());
    let (version, path, level) = (&found.version, &found.path, options.level);
    format!("{version} {path:?} {level:?} {cpu} {features}\n{}", texts.join("\n---\n"))
}
