//! Shared libraries for C programs: an entry point and its derivatives, each through the pipeline, as machine code of this
//! machine's processor with a header.
//!
//! Assumes native programs (see `backend`). Guarantees: every file is made whole in memory before any is written; what cannot
//! be made is an error that says what is missing.

use crate::files::Scratch;
use crate::leaves::{Leaf, leaves};
use crate::session::deep;
use crate::{EntryPoint, Kind, Ready, Session};
use pullback_base::{Code, Diagnostic, Span};
use pullback_core::{EntryType, Type};
use pullback_llvm::library::{self, Dim, Item, Signature};
use pullback_llvm::load::linkers;
use pullback_llvm::{Level, Llvm, emit, text};
use pullback_prim::Scalar;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library in memory.
#[derive(Debug)]
pub struct Library {
    /// The shared library.
    pub shared: Vec<u8>,
    /// Its header.
    pub header: String,
    /// The same code as one object for static linking, if it was asked for.
    pub object: Option<Vec<u8>>,
    /// The functions.
    pub signatures: Vec<Signature>,
}

/// What a library is to have beside the shared library and its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Nothing.
    Shared,
    /// An object for static linking.
    SharedAndObject,
}

fn unsupported(message: impl Into<String>) -> Diagnostic {
    Diagnostic::global(Code::Unsupported, message)
}

/// Makes a library of entry points and of their derivatives in what is selected: `file` is the file name of the shared library,
/// and `prefix` begins the name of every function.
///
/// Errors: programs that are not native, parameters and results that C has no plain type for, a missing LLVM or linker.
pub fn library(
    session: &Session,
    (file, prefix): (&str, &str),
    entries: &[(EntryPoint, Vec<bool>)],
    derivatives: &[Kind],
    parts: Parts,
) -> Result<Library, Diagnostic> {
    let llvm = Llvm::find().map_err(|e| unsupported(format!("no native code: {e}")))?;
    let (mut signatures, mut texts, mut symbols) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, selected) in entries {
        for kind in std::iter::once(None).chain(derivatives.iter().copied().map(Some)) {
            let ready = match kind {
                None => session.primal(entry)?,
                Some(kind) => session.derivative(entry, kind, selected, &mut |_, _| {})?,
            };
            let signature = signature(session, prefix, entry, kind, selected)?;
            let (text, called) = deep(|| one(session, prefix, &signature, &ready, llvm))?;
            signatures.push(signature);
            texts.push(text);
            symbols.extend(called);
        }
    }
    texts.push(library::shared(prefix, &symbols));
    let compile = |text: &String| llvm.compile(text, Level::O3).map_err(|e| unsupported(e.to_string()));
    let objects = texts.iter().map(compile).collect::<Result<Vec<Vec<u8>>, Diagnostic>>()?;
    let about = format!("code of LLVM {} for the processor {}", llvm.found().version, llvm.processor().0);
    Ok(Library {
        shared: link(&objects, Output::Shared(file))?,
        object: match parts {
            Parts::Shared => None,
            Parts::SharedAndObject => Some(link(&objects, Output::Object)?),
        },
        header: library::header(prefix, &signatures, &about),
        signatures,
    })
}

/// The text of one function, and the functions of floats that it calls.
fn one(
    session: &Session,
    prefix: &str,
    signature: &Signature,
    ready: &Ready,
    llvm: &Llvm,
) -> Result<(String, Vec<text::Symbol>), Diagnostic> {
    let (module, function) = crate::backend::lowered(ready).map_err(|d| *d)?;
    let options =
        text::Options { floats: ready.floats, machine: llvm.instructions(), ..text::Options::default() };
    let in_lanes = pullback_cpu::Options { text: options.clone(), ..pullback_cpu::Options::default() };
    let module = pullback_cpu::scheduled(&module, options.machine, &in_lanes);
    let emitted = emit(&module, &options);
    let missing = library::unavailable(&emitted.symbols);
    if !missing.is_empty() {
        let names = missing.join(", ");
        return Err(unsupported(format!("libraries cannot call these functions yet: {names}")));
    }
    let place = |span: Span| {
        let (line, column) = session.sources.line_column(span.file, span.start);
        format!("{}:{line}:{column}: ", session.sources.name(span.file))
    };
    let text = library::function(prefix, signature, (&module, function, &emitted), &place);
    Ok((text, emitted.symbols))
}

// --- signatures ---

/// Words that are no names in C or C++, and names of our own.
const TAKEN: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "handle",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

/// Any text as a name in C.
pub fn c_name(text: &str) -> String {
    let mut out: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// Names that are used already.
struct Names(Vec<String>);

impl Names {
    /// A name like the text that nothing else has.
    fn fresh(&mut self, text: &str) -> String {
        let mut name = c_name(text);
        while TAKEN.contains(&name.as_str()) || self.0.contains(&name) {
            name.push('_');
        }
        self.0.push(name.clone());
        name
    }
}

/// The dimensions and the scalar of a leaf; `None` if it holds sums.
fn plain(ty: &EntryType) -> Option<(Scalar, Vec<Option<String>>)> {
    match ty {
        EntryType::Scalar(s) => Some((*s, Vec::new())),
        EntryType::Array(n, t) => {
            let (s, mut dims) = plain(t)?;
            dims.insert(0, n.as_ref().map(|n| n.as_str().to_string()));
            Some((s, dims))
        }
        EntryType::Tuple(_) | EntryType::Record(_) | EntryType::Sum(_) => None,
    }
}

fn signature(
    session: &Session,
    prefix: &str,
    entry: &EntryPoint,
    kind: Option<Kind>,
    selected: &[bool],
) -> Result<Signature, Diagnostic> {
    let named = |suffix: &str, leaves: Vec<&Leaf>| -> Vec<(String, EntryType)> {
        leaves.into_iter().map(|l| (format!("{}{suffix}", l.path), l.ty.clone())).collect()
    };
    let results: Vec<Leaf> = leaves("result", &entry.entry.result);
    let is_active = |t: &Type| session.lowered().is_active(t);
    let wanted: Vec<&Leaf> =
        entry.parameters.iter().zip(selected).filter(|(_, s)| **s).map(|(l, _)| l).collect();
    let active: Vec<&Leaf> =
        results.iter().zip(&entry.result_types).filter(|(_, t)| is_active(t)).map(|(l, _)| l).collect();
    let mut given = named("", entry.parameters.iter().collect());
    let mut found = named("", results.iter().collect());
    let what = match kind {
        None => "",
        Some(Kind::Vjp) => {
            given.extend(named("_bar", active));
            found.extend(named("_bar", wanted));
            "_vjp"
        }
        Some(Kind::Jvp) => {
            given.extend(named("_dot", wanted));
            found.extend(named("_dot", active));
            "_jvp"
        }
        Some(other) => {
            return Err(unsupported(format!("libraries have no {other:?} yet; there are vjp and jvp")));
        }
    };
    let text = crate::values::type_text;
    let declared: String = entry.entry.params.iter().map(|(n, t)| format!(" ({n}: {})", text(t))).collect();
    let mut about = vec![format!("entry {}{declared} : {}", entry.name, text(&entry.entry.result))];
    about.extend(
        match kind {
            Some(Kind::Vjp) => {
                Some("With the reverse derivative: from cotangents of results (_bar) to those of parameters.")
            }
            Some(Kind::Jvp) => {
                Some("With the forward derivative: from tangents of parameters (_dot) to those of results.")
            }
            _ => None,
        }
        .map(str::to_string),
    );

    let mut names = Names(Vec::new());
    let mut signature = Signature {
        symbol: format!("{prefix}_{}{what}", c_name(&entry.name)),
        about,
        sizes: Vec::new(),
        params: Vec::new(),
        results: Vec::new(),
    };
    // Parameters have their names first: sizes with the same name are their values.
    let given: Vec<(String, String, EntryType)> =
        given.into_iter().map(|(path, ty)| (names.fresh(&path), path, ty)).collect();
    let mut shared: Vec<String> = Vec::new();
    for (name, path, ty) in &given {
        let (scalar, dims) = plain_or(path, ty)?;
        let mut found = Vec::new();
        for dim in dims {
            found.push(dim_of(dim, &given, &mut shared, |text| names.fresh(text), &mut signature.sizes));
        }
        signature.params.push(Item { name: name.clone(), scalar, dims: found });
    }
    for (path, ty) in &found {
        let (scalar, dims) = plain_or(path, ty)?;
        let dims = vec![Dim::Own; dims.len()];
        signature.results.push(Item { name: names.fresh(path), scalar, dims });
    }
    Ok(signature)
}

fn plain_or(path: &str, ty: &EntryType) -> Result<(Scalar, Vec<Option<String>>), Diagnostic> {
    plain(ty).ok_or_else(|| {
        let text = crate::values::type_text(ty);
        unsupported(format!(
            "`{path}` has type {text}: libraries take numbers and arrays of numbers, no sums"
        ))
    })
}

/// Where the size of a dimension comes from. `shared` are the names of sizes so far.
fn dim_of(
    name: Option<String>,
    given: &[(String, String, EntryType)],
    shared: &mut Vec<String>,
    fresh: impl FnOnce(&str) -> String,
    sizes: &mut Vec<String>,
) -> Dim {
    let Some(name) = name else { return Dim::Own };
    if let Ok(n) = name.parse() {
        return Dim::Constant(n);
    }
    let is_number = |ty: &EntryType| *ty == EntryType::Scalar(Scalar::I64);
    if let Some(k) = given.iter().position(|(_, path, ty)| *path == name && is_number(ty)) {
        return Dim::Parameter(k);
    }
    if let Some(k) = shared.iter().position(|s| *s == name) {
        return Dim::Shared(k);
    }
    sizes.push(fresh(&name));
    shared.push(name);
    Dim::Shared(shared.len() - 1)
}

// --- linking ---

#[derive(Clone, Copy)]
enum Output<'a> {
    /// A shared library of this file name.
    Shared(&'a str),
    /// One object of several.
    Object,
}

/// Links objects with the first linker that can.
fn link(objects: &[Vec<u8>], output: Output<'_>) -> Result<Vec<u8>, Diagnostic> {
    let failed = |what: &str, e: std::io::Error| {
        Diagnostic::global(Code::Input, format!("{what} in the folder for temporary files: {e}"))
    };
    let scratch = Scratch::new().map_err(|e| failed("no folder can be made", e))?;
    let mut inputs = Vec::new();
    for (k, object) in objects.iter().enumerate() {
        let path = scratch.0.join(format!("{k}.o"));
        std::fs::write(&path, object).map_err(|e| failed("an object cannot be written", e))?;
        inputs.push(path);
    }
    let to = scratch.0.join("linked");
    let mut tried = String::new();
    for mut command in commands(output) {
        let program = command.get_program().to_string_lossy().into_owned();
        command.arg("-o").arg(&to).args(&inputs);
        match command.output() {
            Ok(out) if out.status.success() => {
                return std::fs::read(&to).map_err(|e| failed("the library cannot be read", e));
            }
            Ok(out) => {
                let said = String::from_utf8_lossy(&out.stderr);
                tried += &format!("\n  {program}: {}", said.lines().next().unwrap_or("it failed"));
            }
            Err(e) => tried += &format!("\n  {program}: {e}"),
        }
    }
    let hint = "install a Rust toolchain with rustup (it has rust-lld), or a C compiler such as gcc or clang";
    Err(unsupported(format!("no linker can be used; tried:{tried}")).hint(hint))
}

/// The linkers that may be there, as far as they are the same for all inputs. Those of Rust come first: they are of the same
/// release as the LLVM that is used.
fn commands(output: Output<'_>) -> Vec<Command> {
    let mut out = Vec::new();
    let own_kind = |command: &mut Command| {
        match output {
            Output::Shared(file) => command.args(["-shared", "-soname", file]),
            Output::Object => command.arg("-r"),
        };
    };
    if cfg!(target_os = "linux") {
        for path in linkers() {
            let mut command = Command::new(path);
            command.args(["-flavor", "gnu"]);
            own_kind(&mut command);
            out.push(command);
        }
    }
    let mut compiler = Command::new("cc");
    match output {
        Output::Shared(file) if cfg!(target_os = "macos") => {
            compiler.args(["-dynamiclib", "-install_name", file]);
        }
        Output::Shared(file) => {
            compiler.arg("-shared").arg(format!("-Wl,-soname,{file}"));
        }
        Output::Object => {
            compiler.args(["-r", "-nostdlib"]);
        }
    }
    out.push(compiler);
    if cfg!(target_os = "linux") {
        for name in ["ld.lld", "ld"] {
            let mut command = Command::new(name);
            own_kind(&mut command);
            out.push(command);
        }
    }
    out
}

/// The file name of a shared library.
pub fn file_name(stem: &str) -> String {
    let ending = if cfg!(target_os = "macos") { "dylib" } else { "so" };
    format!("lib{stem}.{ending}")
}

/// What a path given by a user stands for: the folder, and the name of the library in it.
pub fn folder_and_name(path: &Path) -> Option<(PathBuf, String)> {
    let name = path.file_name()?.to_str()?.to_string();
    Some((path.parent().map(Path::to_path_buf).unwrap_or_default(), name))
}
