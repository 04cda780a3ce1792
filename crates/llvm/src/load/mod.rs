//! libLLVM at run time: finding it, text to an object, an object to code that runs.
//!
//! Assumes a libLLVM from version 15 on with its C interface. Text is compiled in a context of its own and linked as an
//! object: the interface of these parts is the same in all these versions. A library is never closed, since LLVM does not
//! survive it. Guarantees: what LLVM reports as an error is an [`LlvmError`]; one library may be used by many threads.

#![allow(unsafe_code, reason = "a foreign library is called; each block says why it may be")]

mod api;
pub(crate) mod find;

use crate::maths;
use api::{Api, Diagnostics, Handle};
pub use find::{Found, candidates, linkers};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What went wrong, and in which library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlvmError {
    /// The library; `None` if none was found.
    pub library: Option<PathBuf>,
    /// What was tried and how it failed.
    pub message: String,
}

impl fmt::Display for LlvmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.library {
            Some(path) => write!(f, "{}: {}", path.display(), self.message),
            None => f.write_str(&self.message),
        }
    }
}
impl std::error::Error for LlvmError {}

/// How much LLVM tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Level {
    /// No passes, and instructions chosen one by one: code comes soonest.
    O0,
    /// LLVM's own quick passes.
    O1,
    /// Passes chosen for our text, and the best instructions.
    #[default]
    O3,
}

/// The stack of a thread that compiles, in bytes.
const STACK: usize = 16 << 20;

/// The passes: registers for slots, one look at common values, simpler instructions, what does not vary out of loops. Loops that
/// matter are in lanes and unrolled already, so what LLVM could do to them is left out: it took half of the time of compiling.
const PASSES: [&CStr; 2] = [
    c"function(sroa,early-cse<memssa>,simplifycfg),inline,function(instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(loop-rotate,licm),gvn,simplifycfg)",
    // Before version 18.
    c"function(sroa,early-cse<memssa>,simplifycfg),inline,function(instcombine,simplifycfg,loop-mssa(loop-rotate,licm),gvn,simplifycfg)",
];

/// What is said to LLVM once: no other forms of the addresses in loops. It took up to a third of the time of compiling, and loops
/// over many arrays became slower. A name that a version does not know is ignored.
const ARGUMENTS: [&CStr; 2] = [c"pullback", c"-disable-lsr"];

/// An open libLLVM.
#[derive(Debug)]
pub struct Llvm {
    api: Api,
    found: Found,
    triple: CString,
    cpu: CString,
    features: CString,
}

/// Every library that was opened, for the rest of the process.
fn opened() -> &'static Mutex<BTreeMap<PathBuf, &'static Llvm>> {
    static OPENED: OnceLock<Mutex<BTreeMap<PathBuf, &'static Llvm>>> = OnceLock::new();
    OPENED.get_or_init(Mutex::default)
}

impl Llvm {
    /// The first library found that can be used; see [`candidates`] for the order. The answer is remembered.
    pub fn find() -> Result<&'static Llvm, LlvmError> {
        static FIRST: OnceLock<Result<&'static Llvm, LlvmError>> = OnceLock::new();
        FIRST.get_or_init(Llvm::search).clone()
    }
    fn search() -> Result<&'static Llvm, LlvmError> {
        let mut tried = String::new();
        for path in candidates() {
            match Llvm::open(&path) {
                Ok(llvm) => return Ok(llvm),
                Err(error) => tried += &format!("\n  {error}"),
            }
        }
        let message = if tried.is_empty() {
            "no libLLVM was found; install LLVM 15 or later or a Rust toolchain, or set PULLBACK_LLVM to the path of the library"
                .to_string()
        } else {
            format!("no libLLVM can be used; tried:{tried}")
        };
        Err(LlvmError { library: None, message })
    }

    /// Opens a library, once per process.
    pub fn open(path: &Path) -> Result<&'static Llvm, LlvmError> {
        let mut opened = opened().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(llvm) = opened.get(path) {
            return Ok(llvm);
        }
        let llvm: &'static Llvm = Box::leak(Box::new(Llvm::load(path)?));
        opened.insert(path.to_path_buf(), llvm);
        Ok(llvm)
    }

    fn load(path: &Path) -> Result<Llvm, LlvmError> {
        let error = |message| LlvmError { library: Some(path.to_path_buf()), message };
        let api = Api::load(path).map_err(error)?;
        // SAFETY: the functions return strings that are freed by `string`; initialising targets twice does nothing. No other thread
        // uses this library yet, so that it may be told what holds for all that it compiles.
        let (triple, cpu, features) = unsafe {
            for initialize in &api.initialize {
                initialize();
            }
            let arguments = ARGUMENTS.map(CStr::as_ptr);
            (api.parse_command_line)(arguments.len() as i32, arguments.as_ptr(), c"".as_ptr());
            (
                api.string((api.default_triple)()),
                api.string((api.host_cpu)()),
                api.string((api.host_features)()),
            )
        };
        let version = api.version().unwrap_or_else(|| find::version_in_name(path));
        let found = Found { path: path.to_path_buf(), version };
        let llvm = Llvm {
            api,
            found,
            triple: c_string(&triple),
            cpu: c_string(&cpu),
            features: c_string(&features),
        };
        // Pointers without a type came with version 15.
        llvm.parse("define void @probe(ptr %x) {\n  ret void\n}\n")
            .map_err(|_| error("LLVM 15 or later is needed".to_string()))?;
        Ok(llvm)
    }

    /// Which library this is.
    pub fn found(&self) -> &Found {
        &self.found
    }
    /// The processor that code is made for, with its features.
    pub fn processor(&self) -> (&str, &str) {
        (self.cpu.to_str().unwrap_or(""), self.features.to_str().unwrap_or(""))
    }

    /// Which instructions functions of lanes may use on it.
    pub fn instructions(&self) -> maths::Machine {
        let (_, features) = self.processor();
        let has = |feature: &str| features.split(',').any(|f| f == feature);
        if has("+avx512f") && has("+avx512dq") { maths::Machine::Avx512 } else { maths::Machine::Generic }
    }

    fn error(&self, what: &str, why: &str) -> LlvmError {
        let message = format!("{what}: {}", why.trim_end());
        LlvmError { library: Some(self.found.path.clone()), message }
    }

    fn parse(&self, text: &str) -> Result<Parsed<'_>, LlvmError> {
        // SAFETY: a new context is owned by `Parsed`, which disposes of it after the module. The buffer is a copy of the text,
        // and the parser takes it over. `diagnostics` is on the heap and lives as long as the context.
        unsafe {
            let context = (self.api.context_create)();
            let diagnostics = Box::<Diagnostics>::new(Diagnostics::new(&self.api));
            (self.api.context_set_diagnostic_handler)(
                context,
                api::on_diagnostic,
                std::ptr::from_ref(&*diagnostics).cast_mut().cast(),
            );
            let mut parsed = Parsed { llvm: self, context, module: null_mut(), diagnostics };
            let buffer = (self.api.buffer_copy)(text.as_ptr(), text.len(), c"pullback".as_ptr());
            let mut message = null_mut();
            if (self.api.parse_ir)(context, buffer, &mut parsed.module, &mut message) != 0 {
                // A module is left unset by an error.
                parsed.module = null_mut();
                return Err(self.error("the IR was not read", &self.api.string(message)));
            }
            Ok(parsed)
        }
    }

    /// Text to an object file for this machine.
    pub fn compile(&self, text: &str, level: Level) -> Result<Vec<u8>, LlvmError> {
        self.emit(text, level, api::OBJECT_FILE)
    }
    /// Texts to objects, so many at the same time. How many changes nothing but the time.
    pub fn compile_all(
        &self,
        texts: &[String],
        level: Level,
        threads: NonZeroUsize,
    ) -> Result<Vec<Vec<u8>>, LlvmError> {
        let next = AtomicUsize::new(0);
        let one = |k: usize| Some((k, self.compile(texts.get(k)?, level)));
        let some =
            || -> Vec<_> { std::iter::from_fn(|| one(next.fetch_add(1, Ordering::Relaxed))).collect() };
        let helpers = threads.get().min(texts.len()).saturating_sub(1);
        let mut made = std::thread::scope(|scope| {
            let start = |_| {
                let builder = std::thread::Builder::new().stack_size(STACK);
                // Where there is no other thread, this one does it all.
                builder.spawn_scoped(scope, some).ok()
            };
            let helpers: Vec<_> = (0..helpers).filter_map(start).collect();
            let mut made = some();
            for helper in helpers {
                made.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            made
        });
        made.sort_by_key(|(k, _)| *k);
        made.into_iter().map(|(_, object)| object).collect()
    }
    /// Text to assembly, for people.
    pub fn assembly(&self, text: &str, level: Level) -> Result<String, LlvmError> {
        Ok(String::from_utf8_lossy(&self.emit(text, level, api::ASSEMBLY_FILE)?).into_owned())
    }

    fn emit(&self, text: &str, level: Level, kind: i32) -> Result<Vec<u8>, LlvmError> {
        let parsed = self.parse(text)?;
        let machine = self.machine(level)?;
        parsed.optimise(&machine, level)?;
        parsed.emit(&machine, kind)
    }

    fn machine(&self, level: Level) -> Result<Machine<'_>, LlvmError> {
        let mut target = null_mut();
        let mut message = null_mut();
        let level = match level {
            Level::O0 => 0,
            Level::O1 => 1,
            Level::O3 => 3,
        };
        // SAFETY: the strings live as long as `self`; the target belongs to LLVM; the machine is owned by `Machine`.
        unsafe {
            if (self.api.target_from_triple)(self.triple.as_ptr(), &mut target, &mut message) != 0 {
                return Err(self.error("no code can be made for this machine", &self.api.string(message)));
            }
            let machine = (self.api.machine_create)(
                target,
                self.triple.as_ptr(),
                self.cpu.as_ptr(),
                self.features.as_ptr(),
                level,
                api::RELOCATION_PIC,
                api::CODE_MODEL_DEFAULT,
            );
            if machine.is_null() {
                return Err(self.error("no code can be made for this machine", "no target machine"));
            }
            Ok(Machine { llvm: self, machine })
        }
    }

    /// Links objects into this process. `symbols` are the functions that they call, with their addresses.
    pub fn link(&'static self, objects: &[Vec<u8>], symbols: &[(&str, usize)]) -> Result<Linked, LlvmError> {
        let api = &self.api;
        let names: Vec<CString> = symbols.iter().map(|(name, _)| c_string(name)).collect();
        // SAFETY: every handle is one that the library just gave; errors are looked at before a handle is used. Definitions
        // and the copies of objects are taken over by the linker, also when it refuses them.
        unsafe {
            let mut jit = null_mut();
            self.check("no linker", (api.jit_create)(&mut jit, null_mut()))?;
            let linked = Linked { llvm: self, jit };
            let library = (api.jit_main_library)(jit);
            let mut pairs: Vec<api::SymbolPair> = names
                .iter()
                .zip(symbols)
                .map(|(name, (_, address))| api::SymbolPair {
                    name: (api.jit_intern)(jit, name.as_ptr()),
                    address: *address as u64,
                    generic_flags: api::EXPORTED,
                    target_flags: 0,
                })
                .collect();
            if !pairs.is_empty() {
                let unit = (api.jit_absolute_symbols)(pairs.as_mut_ptr(), pairs.len());
                self.check("symbols were not defined", (api.jit_define)(library, unit))?;
            }
            for object in objects {
                let buffer = (api.buffer_copy)(object.as_ptr(), object.len(), c"pullback".as_ptr());
                self.check("the object was not linked", (api.jit_add_object)(jit, library, buffer))?;
            }
            Ok(linked)
        }
    }

    /// An error handle as an error. It is consumed.
    fn check(&self, what: &str, error: Handle) -> Result<(), LlvmError> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the handle is an error that was not consumed; getting the message consumes it, and the message is freed.
        let message = unsafe {
            let message = (self.api.error_message)(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.api.dispose_error_message)(message);
            text
        };
        Err(self.error(what, &message))
    }
}

/// A module in its context.
struct Parsed<'a> {
    llvm: &'a Llvm,
    context: Handle,
    module: Handle,
    diagnostics: Box<Diagnostics>,
}

impl Drop for Parsed<'_> {
    fn drop(&mut self) {
        // SAFETY: both are owned and not used again; the module goes before its context.
        unsafe {
            if !self.module.is_null() {
                (self.llvm.api.module_dispose)(self.module);
            }
            (self.llvm.api.context_dispose)(self.context);
        }
    }
}

impl Parsed<'_> {
    /// Checks the module and runs LLVM's passes.
    fn optimise(&self, machine: &Machine<'_>, level: Level) -> Result<(), LlvmError> {
        let api = &self.llvm.api;
        let pipelines: &[&CStr] = match level {
            Level::O0 => &[c"default<O0>"],
            Level::O1 => &[c"default<O1>"],
            Level::O3 => &PASSES,
        };
        // SAFETY: module and machine are alive; layout, options and message are disposed of here.
        unsafe {
            (api.module_set_triple)(self.module, self.llvm.triple.as_ptr());
            let layout = (api.machine_layout)(machine.machine);
            (api.module_set_layout)(self.module, layout);
            (api.layout_dispose)(layout);
            let mut message: *mut c_char = null_mut();
            let is_broken = (api.module_verify)(self.module, api::RETURN_STATUS, &mut message) != 0;
            let message = api.string(message);
            if is_broken {
                return Err(self.llvm.error("the IR is malformed", &message));
            }
            let options = (api.pass_options_create)();
            for set in &api.pass_options_set {
                set(options, 0);
            }
            let mut done = Ok(());
            for pipeline in pipelines {
                // Nothing has been done where a name is not known.
                let error = (api.run_passes)(self.module, pipeline.as_ptr(), machine.machine, options);
                done = self.llvm.check("the passes failed", error);
                if done.is_ok() {
                    break;
                }
            }
            (api.pass_options_dispose)(options);
            done
        }
    }

    fn emit(&self, machine: &Machine<'_>, kind: i32) -> Result<Vec<u8>, LlvmError> {
        let api = &self.llvm.api;
        let mut message = null_mut();
        let mut buffer = null_mut();
        // SAFETY: module and machine are alive; the bytes are copied before their buffer is disposed of.
        let bytes = unsafe {
            if (api.machine_emit)(machine.machine, self.module, kind, &mut message, &mut buffer) != 0 {
                return Err(self.llvm.error("no code was made", &api.string(message)));
            }
            let bytes =
                std::slice::from_raw_parts((api.buffer_start)(buffer), (api.buffer_size)(buffer)).to_vec();
            (api.buffer_dispose)(buffer);
            bytes
        };
        match self.diagnostics.first_error() {
            Some(message) => Err(self.llvm.error("no code was made", &message)),
            None => Ok(bytes),
        }
    }
}

/// What code is made for.
struct Machine<'a> {
    llvm: &'a Llvm,
    machine: Handle,
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // SAFETY: owned and not used again.
        unsafe { (self.llvm.api.machine_dispose)(self.machine) }
    }
}

/// Code in this process, until it is dropped.
#[derive(Debug)]
pub struct Linked {
    llvm: &'static Llvm,
    jit: Handle,
}

// SAFETY: LLVM's linker locks itself; the handle is only used for look-ups and to dispose of it once.
unsafe impl Send for Linked {}
// SAFETY: as above.
unsafe impl Sync for Linked {}

impl Linked {
    /// The address of an exported function. The first look-up links.
    pub fn address(&self, name: &str) -> Result<usize, LlvmError> {
        let c_name = c_string(name);
        let mut address = 0u64;
        // SAFETY: the handle is alive.
        let error = unsafe { (self.llvm.api.jit_lookup)(self.jit, &mut address, c_name.as_ptr()) };
        self.llvm.check(&format!("function {name} was not linked"), error)?;
        Ok(address as usize)
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        // SAFETY: owned and not used again. An error while code is given back changes nothing for the caller.
        unsafe {
            let error = (self.llvm.api.jit_dispose)(self.jit);
            let _ = self.llvm.check("the linker was not closed", error);
        }
    }
}

/// The text up to its first zero byte: names and texts of ours have none.
fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|b| *b != 0).collect();
    CString::new(bytes).unwrap_or_default()
}
