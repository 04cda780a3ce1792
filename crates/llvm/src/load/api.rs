//! The functions of LLVM's C interface that are used, as a table of pointers, and their constants.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// An object of LLVM.
pub(super) type Handle = *mut c_void;

/// `LLVMObjectFile`
pub(super) const OBJECT_FILE: c_int = 1;
/// `LLVMAssemblyFile`
pub(super) const ASSEMBLY_FILE: c_int = 0;
/// `LLVMRelocPIC`
pub(super) const RELOCATION_PIC: c_int = 2;
/// `LLVMCodeModelDefault`
pub(super) const CODE_MODEL_DEFAULT: c_int = 0;
/// `LLVMReturnStatusAction`
pub(super) const RETURN_STATUS: c_int = 2;
/// `LLVMJITSymbolGenericFlagsExported`
pub(super) const EXPORTED: u8 = 1;
/// `LLVMDSError`
const SEVERITY_ERROR: c_int = 0;

/// `LLVMOrcCSymbolMapPair`
#[repr(C)]
pub(super) struct SymbolPair {
    pub(super) name: Handle,
    pub(super) address: u64,
    pub(super) generic_flags: u8,
    pub(super) target_flags: u8,
}

type Initialize = unsafe extern "C" fn();
type SetOption = unsafe extern "C" fn(Handle, c_int);
type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
pub(super) type OnDiagnostic = unsafe extern "C" fn(Handle, *mut c_void);

/// The passes that an option of the pass builder switches on.
const PASS_OPTIONS: [&str; 4] =
    ["LoopVectorization", "LoopInterleaving", "SLPVectorization", "LoopUnrolling"];

/// The name of this machine's target in LLVM.
const TARGET: &str = if cfg!(target_arch = "aarch64") { "AArch64" } else { "X86" };

fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    let bytes = format!("{name}\0");
    // SAFETY: the type that the caller asks for is that of the function in LLVM's headers. The library is never closed.
    let found = unsafe { library.get::<T>(bytes.as_bytes()) };
    found.map(|f| *f).map_err(|_| format!("it has no function {name}"))
}

macro_rules! api {
    ($($field:ident = $name:literal: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions.
        #[derive(Debug)]
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            pub(super) initialize: Vec<Initialize>,
            pub(super) pass_options_set: Vec<SetOption>,
            /// Missing before version 16.
            get_version: Option<GetVersion>,
        }

        impl Api {
            fn from_library(library: &Library) -> Result<Api, String> {
                let mut initialize = Vec::new();
                for part in ["TargetInfo", "Target", "TargetMC", "AsmPrinter"] {
                    initialize.push(symbol(library, &format!("LLVMInitialize{TARGET}{part}"))?);
                }
                let mut pass_options_set = Vec::new();
                for option in PASS_OPTIONS {
                    pass_options_set.push(symbol(library, &format!("LLVMPassBuilderOptionsSet{option}"))?);
                }
                Ok(Api {
                    $($field: symbol(library, $name)?,)*
                    initialize,
                    pass_options_set,
                    get_version: symbol(library, "LLVMGetVersion").ok(),
                })
            }
        }
    };
}

api! {
    parse_command_line = "LLVMParseCommandLineOptions": fn(c_int, *const *const c_char, *const c_char);
    dispose_message = "LLVMDisposeMessage": fn(*mut c_char);
    default_triple = "LLVMGetDefaultTargetTriple": fn() -> *mut c_char;
    host_cpu = "LLVMGetHostCPUName": fn() -> *mut c_char;
    host_features = "LLVMGetHostCPUFeatures": fn() -> *mut c_char;
    context_create = "LLVMContextCreate": fn() -> Handle;
    context_dispose = "LLVMContextDispose": fn(Handle);
    context_set_diagnostic_handler = "LLVMContextSetDiagnosticHandler": fn(Handle, OnDiagnostic, *mut c_void);
    diagnostic_severity = "LLVMGetDiagInfoSeverity": fn(Handle) -> c_int;
    diagnostic_text = "LLVMGetDiagInfoDescription": fn(Handle) -> *mut c_char;
    buffer_copy = "LLVMCreateMemoryBufferWithMemoryRangeCopy": fn(*const u8, usize, *const c_char) -> Handle;
    buffer_start = "LLVMGetBufferStart": fn(Handle) -> *const u8;
    buffer_size = "LLVMGetBufferSize": fn(Handle) -> usize;
    buffer_dispose = "LLVMDisposeMemoryBuffer": fn(Handle);
    parse_ir = "LLVMParseIRInContext": fn(Handle, Handle, *mut Handle, *mut *mut c_char) -> c_int;
    module_dispose = "LLVMDisposeModule": fn(Handle);
    module_set_triple = "LLVMSetTarget": fn(Handle, *const c_char);
    module_set_layout = "LLVMSetModuleDataLayout": fn(Handle, Handle);
    module_verify = "LLVMVerifyModule": fn(Handle, c_int, *mut *mut c_char) -> c_int;
    layout_dispose = "LLVMDisposeTargetData": fn(Handle);
    target_from_triple = "LLVMGetTargetFromTriple": fn(*const c_char, *mut Handle, *mut *mut c_char) -> c_int;
    machine_create = "LLVMCreateTargetMachine":
        fn(Handle, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Handle;
    machine_dispose = "LLVMDisposeTargetMachine": fn(Handle);
    machine_layout = "LLVMCreateTargetDataLayout": fn(Handle) -> Handle;
    machine_emit = "LLVMTargetMachineEmitToMemoryBuffer":
        fn(Handle, Handle, c_int, *mut *mut c_char, *mut Handle) -> c_int;
    pass_options_create = "LLVMCreatePassBuilderOptions": fn() -> Handle;
    pass_options_dispose = "LLVMDisposePassBuilderOptions": fn(Handle);
    run_passes = "LLVMRunPasses": fn(Handle, *const c_char, Handle, Handle) -> Handle;
    error_message = "LLVMGetErrorMessage": fn(Handle) -> *mut c_char;
    dispose_error_message = "LLVMDisposeErrorMessage": fn(*mut c_char);
    jit_create = "LLVMOrcCreateLLJIT": fn(*mut Handle, Handle) -> Handle;
    jit_dispose = "LLVMOrcDisposeLLJIT": fn(Handle) -> Handle;
    jit_main_library = "LLVMOrcLLJITGetMainJITDylib": fn(Handle) -> Handle;
    jit_intern = "LLVMOrcLLJITMangleAndIntern": fn(Handle, *const c_char) -> Handle;
    jit_absolute_symbols = "LLVMOrcAbsoluteSymbols": fn(*mut SymbolPair, usize) -> Handle;
    jit_define = "LLVMOrcJITDylibDefine": fn(Handle, Handle) -> Handle;
    jit_add_object = "LLVMOrcLLJITAddObjectFile": fn(Handle, Handle, Handle) -> Handle;
    jit_lookup = "LLVMOrcLLJITLookup": fn(Handle, *mut u64, *const c_char) -> Handle;
}

impl Api {
    /// Opens a library for the rest of the process.
    pub(super) fn load(path: &Path) -> Result<Api, String> {
        // SAFETY: opening libLLVM runs its static constructors, which have no requirements. Its symbols stay its own, so that
        // several versions can be open at once.
        let library =
            unsafe { Library::new(path) }.map_err(|e| format!("the library was not opened: {e}"))?;
        let api =
            Api::from_library(&library).map_err(|e| format!("this is no libLLVM with its C interface: {e}"));
        // LLVM does not survive being closed, whether or not it is of use.
        std::mem::forget(library);
        api
    }

    /// A string that LLVM gave, which is freed. Empty if there is none.
    ///
    /// # Safety
    /// `text` is null or a string of LLVM that is to be disposed of as a message, and not used again.
    pub(super) unsafe fn string(&self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: by the condition of this function.
        unsafe {
            let out = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.dispose_message)(text);
            out
        }
    }

    /// The version, if the library can say it.
    pub(super) fn version(&self) -> Option<String> {
        let get = self.get_version?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three places for numbers, as the function wants.
        unsafe { get(&mut major, &mut minor, &mut patch) };
        Some(format!("{major}.{minor}.{patch}"))
    }
}

/// What LLVM reports about a module.
pub(super) struct Diagnostics {
    severity: unsafe extern "C" fn(Handle) -> c_int,
    text: unsafe extern "C" fn(Handle) -> *mut c_char,
    dispose: unsafe extern "C" fn(*mut c_char),
    errors: Mutex<Vec<String>>,
}

impl Diagnostics {
    pub(super) fn new(api: &Api) -> Diagnostics {
        Diagnostics {
            severity: api.diagnostic_severity,
            text: api.diagnostic_text,
            dispose: api.dispose_message,
            errors: Mutex::default(),
        }
    }
    /// The first error, if there is one.
    pub(super) fn first_error(&self) -> Option<String> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }
}

/// Keeps errors; without it LLVM would print them and exit.
///
/// # Safety
/// `diagnostics` is a pointer to [`Diagnostics`] that is alive.
pub(super) unsafe extern "C" fn on_diagnostic(info: Handle, diagnostics: *mut c_void) {
    // SAFETY: by the condition of this function; `info` is what LLVM gives to its handler, and the text is freed.
    unsafe {
        let diagnostics = &*diagnostics.cast::<Diagnostics>();
        if (diagnostics.severity)(info) != SEVERITY_ERROR {
            return;
        }
        let text = (diagnostics.text)(info);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        (diagnostics.dispose)(text);
        diagnostics.errors.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}
