//! Kernel text: modules from everywhere, which are printed and read again.

use crate::suite::{self, Language};
use pullback_core::{FunId, Program};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::profile::instrument;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::{Module, lower, lower_with_parts, lower_with_sites, print_whole, read};
use std::path::Path;

/// A program of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its file.
    pub name: String,
    /// The program.
    pub text: String,
}

/// The programs of suite files, of the examples, and of the benchmarks.
///
/// # Panics
/// If a file cannot be read.
pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out = of_suite(&root.join("suite"));
    for folder in ["examples", "benches/programs"] {
        let entries = std::fs::read_dir(root.join(folder)).expect(folder);
        let paths = entries.map(|e| e.expect(folder).path());
        let mut paths: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == "fut")).collect();
        paths.sort();
        out.extend(paths.into_iter().map(|path| Source {
            name: path.display().to_string(),
            text: std::fs::read_to_string(&path).expect("a program"),
        }));
    }
    out
}

/// The programs of suite files, each once.
fn of_suite(root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    suite::collect(root, root, &mut files);
    files.sort();
    let mut out: Vec<Source> = Vec::new();
    for (name, path) in files {
        let text = std::fs::read_to_string(&path).expect("a suite file");
        for case in suite::parse(&text).expect("a suite file") {
            let (language, text) = &*case.program;
            let is_new = out.last().is_none_or(|last| last.text != *text);
            if *language == Language::Futhark && is_new {
                out.push(Source { name: name.clone(), text: text.clone() });
            }
        }
    }
    out
}

/// A function without derivatives inside.
#[derive(Clone, Debug)]
pub struct Function {
    /// What it is, for messages.
    pub what: String,
    /// The program.
    pub program: Program,
    /// The function.
    pub fun: FunId,
}

/// The entry points of a source and their derivatives. Left out: what is not well-formed or cannot be differentiated.
pub fn functions(source: &Source) -> Vec<Function> {
    let Ok(session) = Session::compile(&source.name, &source.text, Settings::default()) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for entry in session.entries() {
        let derived = |kind: Kind| {
            let selected = session.select(&entry, &Wrt::default()).ok()?;
            session.derivative(&entry, kind, &selected, &mut |_, _| {}).ok()
        };
        let all = [
            ("", session.primal(&entry).ok()),
            ("vjp of ", derived(Kind::Vjp)),
            ("jvp of ", derived(Kind::Jvp)),
        ];
        let made = all.into_iter().filter_map(|(what, ready)| Some((what, ready?)));
        out.extend(made.map(|(what, ready)| Function {
            what: format!("{what}{} in {}", entry.name, source.name),
            program: ready.program,
            fun: ready.fun,
        }));
    }
    out
}

/// A function as kernel IR: lowered in three ways, scheduled in three, and with clocks. Nothing if it has no kernel IR.
pub fn modules(program: &Program, fun: FunId) -> Vec<(&'static str, Module)> {
    let free = Model { block: 0.0, lane: 0.0, apart: 0.01, registers: 8, tiles: [1.0; 4], near: Some(0) };
    let in_parts = |lanes: usize, model: Model| Options {
        most: 4 * lanes,
        grain: Some(2.0),
        ..Options::new(lanes, model)
    };
    let lowered = lower(program, fun).ok();
    let clocks = lowered.as_ref().map(|(module, id)| instrument(module, *id).module);
    let plain = lowered.map(|(module, _)| module);
    let parts = lower_with_parts(program, fun, 2).ok().map(|(module, _)| module);
    let sites = lower_with_sites(program, fun).ok().map(|(module, _)| module);
    let scheduled = |module: &Option<Module>, options: &Options| {
        let mut module = module.clone()?;
        schedule(&mut module, options);
        Some(module)
    };
    let all = [
        ("in small lanes and parts", scheduled(&parts, &in_parts(2, free))),
        ("for a machine", scheduled(&sites, &in_parts(8, Model::machine(8)))),
        ("for an interpreter", scheduled(&plain, &Options::new(512, Model::interpreter()))),
        ("lowered", plain),
        ("lowered in small parts", parts),
        ("lowered with sites", sites),
        ("lowered with clocks", clocks),
    ];
    all.into_iter().filter_map(|(how, module)| Some((how, module?))).collect()
}

/// Prints a module and reads the text: an equal module, with an equal text.
///
/// # Errors
/// What is wrong, with the text.
pub fn round_trip(module: &Module) -> Result<(), String> {
    let text = print_whole(module);
    let again = read(&text).map_err(|e| format!("{e}\n{text}"))?;
    let printed = print_whole(&again);
    if printed != text {
        return Err(format!("another text:\n{text}\nfrom its module:\n{printed}"));
    }
    if again == *module { Ok(()) } else { Err(format!("another module has the same text:\n{text}")) }
}

/// The same for all modules of a function; how many there are.
///
/// # Errors
/// Of the first module that has one.
pub fn round_trips(program: &Program, fun: FunId) -> Result<usize, String> {
    let modules = modules(program, fun);
    for (how, module) in &modules {
        round_trip(module).map_err(|e| format!("{how}: {e}"))?;
    }
    Ok(modules.len())
}
