//! Programs as kernel IR: those of the suite, the examples and the benchmarks with their derivatives, and random ones, as they are lowered and scheduled.

use crate::native::{Programs, Run};
use crate::on_all_processors;
use crate::problems::ones;
use crate::properties::Case;
use crate::suite::{self, Language};
use pullback_base::SourceMap;
use pullback_core::{FunId, Program, Type, Value, read};
use pullback_driver::{Kind, Session, Settings};
use pullback_interp::core::{Compiled, Options as Running};
use pullback_kernel::schedule::{Model, Options};
use pullback_kernel::{FunctionId, Module, lower};
use pullback_vm::LANES;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// A function without derivatives inside.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is, for reports.
    pub what: String,
    /// The program.
    pub program: Program,
    /// The function.
    pub fun: FunId,
    /// What its words are expected to be, if they are sizes.
    pub sizes: Vec<Option<i64>>,
}

impl Item {
    /// The function of a run, at the sizes of its first arguments.
    pub fn of(run: &Run) -> Item {
        let params = run.program.funs[run.fun].params.iter().map(|p| &run.program.vars[*p].ty);
        let first: Vec<(&Type, &Value)> = params.zip(run.args.first().into_iter().flatten()).collect();
        let sizes = pullback_abi::sizes(&first);
        Item { what: run.what.clone(), program: run.program.clone(), fun: run.fun, sizes }
    }
    /// Its kernel IR; `None`: it has none.
    ///
    /// # Panics
    /// If the verifier has an alarm.
    pub fn lowered(&self) -> Option<(Module, FunctionId)> {
        match lower(&self.program, self.fun) {
            Ok((module, _)) if !module.fallbacks.is_empty() => {
                panic!("{}: {:?}", self.what, module.fallbacks)
            }
            Err(e) if e.is_internal() => panic!("{}: {e}", self.what),
            lowered => lowered.ok(),
        }
    }
    /// The ways in which it is scheduled, with their names: for the vm, for machine code, and with no near memory in as many lanes and parts as
    /// possible.
    pub fn ways(&self, id: FunctionId) -> [(&'static str, Options); 4] {
        let free = Model { block: 0.0, lane: 0.0, apart: 0.01, registers: 8, tiles: [1.0; 4], near: Some(0) };
        let untiled = Model { tiles: [f64::INFINITY; 4], ..free };
        let way = |lanes, most, model, grain| Options {
            most,
            grain,
            sizes: vec![(id, self.sizes.clone())],
            ..Options::new(lanes, model)
        };
        [
            ("for the vm", way(LANES, LANES, Model::interpreter(), None)),
            ("for machine code", way(8, 64, Model::machine(8), Some(30_000.0))),
            ("8 to 16 lanes, parts", way(8, 16, free, Some(2.0))),
            ("64 lanes", way(64, 64, untiled, None)),
        ]
    }
}

/// The entry points of the programs of the suite, the examples and the benchmarks, and their derivatives. They are made once for all tests.
///
/// # Panics
/// If a file cannot be read.
pub fn of_repository() -> &'static [Item] {
    static ALL: LazyLock<Vec<Item>> = LazyLock::new(make_of_repository);
    &ALL
}

fn make_of_repository() -> Vec<Item> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts: Vec<(String, Language, String)> = Vec::new();
    for folder in ["suite", "examples", "benches"] {
        let mut files = Vec::new();
        find(&root.join(folder), &mut files);
        files.sort();
        for path in files {
            let text = std::fs::read_to_string(&path).expect("a text");
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            if path.extension().is_some_and(|e| e == "fut") {
                texts.push((name, Language::Futhark, text));
                continue;
            }
            let mut programs: Vec<_> =
                suite::parse(&text).unwrap_or_default().into_iter().map(|case| case.program).collect();
            programs.dedup();
            let named = |(k, program): (usize, &Arc<(Language, String)>)| {
                (format!("{name} {}", k + 1), program.0, program.1.clone())
            };
            texts.extend(programs.iter().enumerate().map(named));
        }
    }
    let items = |(name, language, text): (String, Language, String)| {
        let mut out = Vec::new();
        of_text(&name, language, &text, &mut out);
        out
    };
    on_all_processors(texts, items).into_iter().flatten().collect()
}

/// The cases of the suite with their arguments, and gradients of them for cotangents of one: optimised and as they are; those in core as they are. They are made
/// once for all tests.
///
/// # Panics
/// If a file cannot be read.
pub fn of_suite() -> &'static [Run] {
    static ALL: LazyLock<Vec<Run>> = LazyLock::new(make_of_suite);
    &ALL
}

fn make_of_suite() -> Vec<Run> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite");
    let mut files = Vec::new();
    suite::collect(&root, &root, &mut files);
    files.sort();
    let of_file = |(name, path): (String, PathBuf)| {
        let text = std::fs::read_to_string(&path).expect("a text");
        let mut out = Vec::new();
        for case in suite::parse(&text).unwrap_or_default() {
            for optimise in [false, true] {
                out.extend(
                    runs_of_case(&format!("{name} {}", case.name), &case, optimise).unwrap_or_default(),
                );
            }
        }
        out
    };
    on_all_processors(files, of_file).into_iter().flatten().collect()
}

/// A case and its gradient; `None`: it is not meant to run.
fn runs_of_case(name: &str, case: &suite::SuiteCase, optimise: bool) -> Option<Vec<Run>> {
    if case.program.0 == Language::Core {
        let Case { program, main: fun, args, empties, .. } = case.core_case().ok()?;
        return (!optimise)
            .then(|| vec![Run { what: name.to_string(), program, fun, args: vec![args], empties }]);
    }
    let (session, entry) = case.session(optimise).ok()?;
    let args = case.arguments(&entry).ok()?;
    let run = |what: &str, ready: &pullback_driver::Ready, args: &[Value]| {
        let what = format!("{name}{what}, optimised: {optimise}");
        let (program, fun, args) = (ready.program.clone(), ready.fun, vec![args.to_vec()]);
        Run { what, program, fun, args, empties: false }
    };
    let ready = session.primal(&entry).ok()?;
    let mut out = vec![run("", &ready, &args)];
    let program = session.lowered();
    let wanted: Vec<bool> = entry.parameter_types.iter().map(|t| program.is_active(t)).collect();
    let values = Compiled::new(&ready.program).run(ready.fun, &args, &Running::default());
    if let (true, Ok(values)) = (wanted.contains(&true), values)
        && let Ok(gradient) = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {})
    {
        let args = [args, ones(&values.results)].concat();
        if gradient.program.funs[gradient.fun].params.len() == args.len() {
            out.push(run(" vjp", &gradient, &args));
        }
    }
    Some(out)
}

fn find(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, out);
        } else if path.extension().is_some_and(|e| e == "fut" || e == "md") {
            out.push(path);
        }
    }
}

/// The entry points of a program and their derivatives; nothing where the text is wrong, as some texts of the suite are.
pub fn of_text(name: &str, language: Language, text: &str, out: &mut Vec<Item>) {
    let session = match language {
        Language::Futhark => Session::compile(name, text, Settings::default()).ok(),
        Language::Core => {
            let id = SourceMap::new().add(name, text);
            read::read(id, text).ok().map(|program| Session::from_core(program, Settings::default()))
        }
    };
    let Some(session) = session else { return };
    for entry in session.entries() {
        let mut add = |what: &str, ready: Result<pullback_driver::Ready, _>| {
            if let Ok::<_, pullback_base::Diagnostic>(ready) = ready {
                let what = format!("{name} {}{what}", entry.name);
                out.push(Item { what, program: ready.program.clone(), fun: ready.fun, sizes: Vec::new() });
            }
        };
        add("", session.primal(&entry));
        let program = session.lowered();
        let wanted: Vec<bool> = entry.parameter_types.iter().map(|t| program.is_active(t)).collect();
        if wanted.contains(&true) {
            for (what, kind) in [(" vjp", Kind::Vjp), (" jvp", Kind::Jvp)] {
                add(what, session.derivative(&entry, kind, &wanted, &mut |_, _| {}));
            }
        }
    }
}

/// Seeds of which the runs are kept: what tests of the gate have in common, which draw 60 of the day and the first 30.
const KEPT: usize = 60 + 30;

/// The functions of a random program: as it is and optimised, its gradient, and for those that end in branches more derivatives
/// ([`Programs::in_turn`]). Tests that draw the same seeds have the same runs, which are made once.
///
/// # Panics
/// If a pass makes a malformed program.
pub fn runs_of_seed(seed: u64) -> Arc<Vec<Run>> {
    type Kept = BTreeMap<u64, Arc<OnceLock<Arc<Vec<Run>>>>>;
    static RUNS: Mutex<Kept> = Mutex::new(BTreeMap::new());
    let make = || Arc::new(Programs::in_turn(seed).runs_of_seed(seed));
    let mut kept = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= KEPT && !kept.contains_key(&seed) {
        drop(kept);
        return make();
    }
    let place = kept.entry(seed).or_default().clone();
    drop(kept);
    place.get_or_init(make).clone()
}

/// The functions of [`runs_of_seed`].
///
/// # Panics
/// If a pass makes a malformed program.
pub fn of_seed(seed: u64) -> Vec<Item> {
    runs_of_seed(seed).iter().map(Item::of).collect()
}
