//! LLVM opened at run time: text to machine code in this process. For tests.
//!
//! The library is that of the Rust toolchain (or `PULLBACK_LIBLLVM`). Text is parsed and compiled to an object in a plain
//! context, and the object given to ORC: the functions used are the same in all versions from 15 on.

#![allow(unsafe_code, reason = "a library's C functions; the reason stands at each block")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::null_mut;

use libloading::Library;

type Pointer = *mut c_void;

/// The library, open.
pub(crate) struct Llvm {
    library: Library,
}

/// Compiled code. It is never freed: tests keep addresses of it.
pub(crate) struct Code<'a> {
    llvm: &'a Llvm,
    jit: Pointer,
}

/// Where the library may be: linker scripts of the same name are small.
fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os("PULLBACK_LIBLLVM") {
        return vec![path.into()];
    }
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(compiler).args(["--print", "sysroot"]).output().ok();
    let sysroot = output.and_then(|o| String::from_utf8(o.stdout).ok()).unwrap_or_default();
    let entries = std::fs::read_dir(PathBuf::from(sysroot.trim()).join("lib"));
    let mut found: Vec<_> = entries.into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.retain(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libLLVM")));
    found.retain(|p| p.metadata().is_ok_and(|m| m.len() > 1_000_000));
    found.sort();
    found
}

/// A C function of the library.
macro_rules! function {
    ($llvm:expr, $name:literal ( $($arg:ty),* ) -> $result:ty) => {
        $llvm.library
            .get::<unsafe extern "C" fn($($arg),*) -> $result>(concat!($name, "\0").as_bytes())
            .expect(concat!("the library has ", $name))
    };
}

impl Llvm {
    /// The library, if there is one, ready for this machine.
    pub(crate) fn open() -> Option<Llvm> {
        let path = candidates().into_iter().next()?;
        // SAFETY: opening runs the library's initialisers, as linking to it would.
        let library = unsafe { Library::new(path) }.ok()?;
        for part in ["TargetInfo", "Target", "TargetMC", "AsmPrinter"] {
            let name = format!("LLVMInitializeX86{part}\0");
            // SAFETY: the function has this type in all versions; it may be called more than once.
            unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()).ok()?() };
        }
        Some(Llvm { library })
    }

    fn text(pointer: *const c_char) -> String {
        // SAFETY: LLVM's strings end with zero, and live as long as the process here.
        unsafe { CStr::from_ptr(pointer).to_string_lossy().into_owned() }
    }

    /// The features of this processor: `+avx512f,+fma`, and so on.
    pub(crate) fn features(&self) -> String {
        // SAFETY: the function has this type in all versions.
        Self::text(unsafe { function!(self, "LLVMGetHostCPUFeatures"() -> *const c_char)() })
    }

    /// The target machine of this processor, and its triple.
    fn machine(&self) -> (Pointer, CString) {
        // SAFETY: types as in llvm-c/TargetMachine.h; all pointers are from LLVM or live through the call.
        unsafe {
            let triple = Self::text(function!(self, "LLVMGetDefaultTargetTriple"() -> *const c_char)());
            let triple = CString::new(triple).expect("no zero");
            let processor = function!(self, "LLVMGetHostCPUName"() -> *const c_char)();
            let features = CString::new(self.features()).expect("no zero");
            let (mut target, mut message) = (null_mut(), null_mut::<c_char>());
            let from_triple = function!(self, "LLVMGetTargetFromTriple"(*const c_char, *mut Pointer, *mut *mut c_char) -> c_int);
            assert_eq!(from_triple(triple.as_ptr(), &mut target, &mut message), 0, "a target");
            let create = function!(self, "LLVMCreateTargetMachine"(Pointer, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Pointer);
            // Optimised; position independent; the default code model.
            (create(target, triple.as_ptr(), processor, features.as_ptr(), 2, 2, 0), triple)
        }
    }

    /// Compiles text; an error is LLVM's message.
    pub(crate) fn compile(&self, text: &str) -> Result<Code<'_>, String> {
        let (machine, triple) = self.machine();
        // SAFETY: types as in llvm-c/{Core,IRReader,Target,TargetMachine,Error,Orc,LLJIT}.h; ownership passes as there:
        // the buffer to the parser, the object to the JIT.
        unsafe {
            let context = function!(self, "LLVMContextCreate"() -> Pointer)();
            let copy = function!(self, "LLVMCreateMemoryBufferWithMemoryRangeCopy"(*const u8, usize, *const c_char) -> Pointer);
            let buffer = copy(text.as_ptr(), text.len(), c"text".as_ptr());
            let (mut module, mut message) = (null_mut(), null_mut::<c_char>());
            let parse = function!(self, "LLVMParseIRInContext"(Pointer, Pointer, *mut Pointer, *mut *mut c_char) -> c_int);
            if parse(context, buffer, &mut module, &mut message) != 0 {
                return Err(Self::text(message));
            }
            let layout = function!(self, "LLVMCreateTargetDataLayout"(Pointer) -> Pointer)(machine);
            function!(self, "LLVMSetModuleDataLayout"(Pointer, Pointer) -> ())(module, layout);
            function!(self, "LLVMSetTarget"(Pointer, *const c_char) -> ())(module, triple.as_ptr());
            let options = function!(self, "LLVMCreatePassBuilderOptions"() -> Pointer)();
            let run = function!(self, "LLVMRunPasses"(Pointer, *const c_char, Pointer, Pointer) -> Pointer);
            self.check(run(module, c"default<O2>".as_ptr(), machine, options))?;
            let mut object = null_mut();
            let emit = function!(self, "LLVMTargetMachineEmitToMemoryBuffer"(Pointer, Pointer, c_int, *mut *mut c_char, *mut Pointer) -> c_int);
            if emit(machine, module, 1, &mut message, &mut object) != 0 {
                return Err(Self::text(message));
            }
            let mut jit = null_mut();
            let create = function!(self, "LLVMOrcCreateLLJIT"(*mut Pointer, Pointer) -> Pointer);
            self.check(create(&mut jit, null_mut()))?;
            let library = function!(self, "LLVMOrcLLJITGetMainJITDylib"(Pointer) -> Pointer)(jit);
            // Functions of the C library, where the processor has no instruction.
            let prefix = function!(self, "LLVMOrcLLJITGetGlobalPrefix"(Pointer) -> c_char)(jit);
            let mut generator = null_mut();
            let search = function!(self, "LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess"(*mut Pointer, c_char, Pointer, Pointer) -> Pointer);
            self.check(search(&mut generator, prefix, null_mut(), null_mut()))?;
            function!(self, "LLVMOrcJITDylibAddGenerator"(Pointer, Pointer) -> ())(library, generator);
            let add = function!(self, "LLVMOrcLLJITAddObjectFile"(Pointer, Pointer, Pointer) -> Pointer);
            self.check(add(jit, library, object))?;
            Ok(Code { llvm: self, jit })
        }
    }

    fn check(&self, error: Pointer) -> Result<(), String> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: type as in llvm-c/Error.h; the error is consumed.
        Err(Self::text(unsafe { function!(self, "LLVMGetErrorMessage"(Pointer) -> *const c_char)(error) }))
    }
}

impl Code<'_> {
    fn address(&self, name: &str) -> usize {
        let name = CString::new(name).expect("no zero");
        let mut address = 0u64;
        // SAFETY: type as in llvm-c/LLJIT.h.
        let error = unsafe {
            function!(self.llvm, "LLVMOrcLLJITLookup"(Pointer, *mut u64, *const c_char) -> Pointer)(
                self.jit,
                &mut address,
                name.as_ptr(),
            )
        };
        self.llvm.check(error).expect("the symbol");
        address as usize
    }

    /// Calls `void NAME(ptr x, ptr y, ptr result)`, which reads and writes as many numbers as the slices have.
    pub(crate) fn call<T: Copy>(&self, name: &str, x: &[T], y: &[T], result: &mut [T]) {
        assert!(x.len() == result.len() && y.len() == result.len(), "equal lengths");
        let address = self.address(name);
        // SAFETY: the caller's text defines NAME with this type and these bounds.
        unsafe {
            let code = std::mem::transmute::<usize, extern "C" fn(*const T, *const T, *mut T)>(address);
            code(x.as_ptr(), y.as_ptr(), result.as_mut_ptr());
        }
    }
}
