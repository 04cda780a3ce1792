//! Suite files: Markdown with programs, arguments, values, hand-derived derivatives and their origin.
//!
//! The format is described in `suite/README.md`. Every case becomes several tests: its value, and its derivatives by
//! each algorithm, each with the optimiser off and on, and by the dual-number oracle; every program one that compares its
//! second derivatives in all mixes of modes on all executors, and for a third of them third ones. Nothing here writes expectations.
//!
//! Guarantees: a file that cannot be read, a case without an origin, and a block of an unknown kind are failing tests.

use crate::nested::{self, Compared, Function};
use crate::properties::{Case, Property, Verdict};
use crate::text::{self, Tree};
use pullback_base::index::Index;
use pullback_base::{Code, Diagnostic, FileId};
use pullback_core::Value;
use pullback_driver::Backend;
use pullback_driver::Sweep;
use pullback_driver::leaves::Wrt;
use pullback_driver::session::{EntryPoint, Ready, Session, Settings};
use pullback_driver::values::{Sizes, encode, encode_all, text as value_text};
use pullback_interp::core::{Compiled, Options};
use pullback_llvm::Llvm;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A test of the suite.
pub struct Test {
    /// `topic/subject::case::check`.
    pub name: String,
    /// Runs it; `Err` says what differs.
    pub run: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

/// What the tests of [`tests`] that compare mixes of modes have compared.
pub type Total = Arc<Mutex<Compared>>;

/// All tests of the suite files below a folder, in order of their names.
pub fn tests(root: &Path, total: &Total) -> Vec<Test> {
    let mut files = Vec::new();
    collect(root, root, &mut files);
    files.sort();
    let mut out = Vec::new();
    for (name, path) in files {
        match std::fs::read_to_string(&path) {
            Ok(text) => match parse(&text) {
                Ok(cases) => {
                    out.extend(programs(&cases).map(|group| mixes(&name, group, total)));
                    cases.into_iter().for_each(|case| case.into_tests(&name, &mut out));
                }
                Err(e) => out.push(failing(format!("{name}::format"), e)),
            },
            Err(e) => out.push(failing(format!("{name}::format"), e.to_string())),
        }
    }
    out
}

fn failing(name: String, text: String) -> Test {
    Test { name, run: Box::new(move || Err(text)) }
}

/// The suite files below a folder, with their names.
pub(crate) fn collect(root: &Path, folder: &Path, out: &mut Vec<(String, std::path::PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, out);
        } else if path.extension().is_some_and(|e| e == "md")
            && path.file_name() != Some("README.md".as_ref())
        {
            let relative = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            out.push((relative.to_string_lossy().replace('\\', "/"), path));
        }
    }
}

/// The language of a program block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The source language.
    Futhark,
    /// Core text.
    Core,
}

/// A case with its program.
#[derive(Clone, Debug)]
pub struct SuiteCase {
    /// The name after `case`.
    pub name: String,
    /// The program it belongs to.
    pub program: Arc<(Language, String)>,
    /// Its lines: key and text. A line that starts with a blank continues the one before.
    pub lines: BTreeMap<String, String>,
}

/// A check of a case.
type CaseCheck = Box<dyn FnOnce(&SuiteCase) -> Result<(), String> + Send>;

const KEYS: [&str; 11] = [
    "main",
    "value",
    "jacobian",
    "gradient",
    "origin",
    "error",
    "entry",
    "property",
    "tolerance",
    "wrt",
    "mixes",
];

/// The cases of a suite file.
pub fn parse(text: &str) -> Result<Vec<SuiteCase>, String> {
    let mut program: Option<Arc<(Language, String)>> = None;
    let mut cases: Vec<SuiteCase> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut block = String::new();
        let mut closed = false;
        for (_, line) in lines.by_ref() {
            if line.trim_end() == "```" {
                closed = true;
                break;
            }
            block += line;
            block.push('\n');
        }
        if !closed {
            return Err(format!("line {}: the block is not closed", number + 1));
        }
        match info.trim().split_once(' ').unwrap_or((info.trim(), "")) {
            ("futhark", _) => program = Some(Arc::new((Language::Futhark, block))),
            ("core", _) => program = Some(Arc::new((Language::Core, block))),
            ("case", name) => {
                let Some(program) = &program else {
                    return Err(format!("line {}: a case before any program", number + 1));
                };
                if name.is_empty() || cases.iter().any(|c| c.name == name) {
                    return Err(format!("line {}: a case needs a name of its own", number + 1));
                }
                let lines = key_lines(&block).map_err(|e| format!("case {name}: {e}"))?;
                cases.push(SuiteCase { name: name.to_string(), program: program.clone(), lines });
            }
            ("text", _) => {}
            (other, _) => return Err(format!("line {}: unknown block `{other}`", number + 1)),
        }
    }
    if cases.is_empty() { Err("no case in the file".into()) } else { Ok(cases) }
}

fn key_lines(block: &str) -> Result<BTreeMap<String, String>, String> {
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in block.lines().filter(|l| !l.trim().is_empty()) {
        if line.starts_with(char::is_whitespace) {
            let Some(text) = out.get_mut(&last) else { return Err(format!("`{line}` continues nothing")) };
            text.push(' ');
            text.push_str(line.trim());
            continue;
        }
        let (key, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !KEYS.contains(&key) {
            return Err(format!("unknown line `{key}`"));
        }
        if key == "mixes" {
            let text = rest.trim();
            let reason = ["no ", ONLY_TWICE].iter().find_map(|way| text.strip_prefix(way));
            if reason.is_none_or(|reason| reason.trim().is_empty()) {
                return Err(
                    "mixes are left out for a reason: `mixes no REASON`, or `mixes twice REASON`".into()
                );
            }
        }
        if out.insert(key.to_string(), rest.trim().to_string()).is_some() {
            return Err(format!("two lines `{key}`"));
        }
        last = key.to_string();
    }
    if !out.contains_key("origin") {
        return Err("where the expectation comes from must be said (`origin`)".into());
    }
    Ok(out)
}

impl SuiteCase {
    fn get(&self, key: &str) -> Option<&str> {
        self.lines.get(key).map(String::as_str)
    }

    fn into_tests(self, file: &str, out: &mut Vec<Test>) {
        let base = format!("{file}::{}", self.name);
        let case = Arc::new(self);
        let mut add = |suffix: &str, f: CaseCheck| {
            let case = case.clone();
            out.push(Test { name: format!("{base}::{suffix}"), run: Box::new(move || f(&case)) });
        };
        if let Some(name) = case.get("property") {
            add(&format!("property[{name}]"), Box::new(SuiteCase::property));
            return;
        }
        if let Some(error) = case.get("error") {
            // What stops a run stops it on every executor.
            let runs = error.starts_with(Code::Runtime.as_str());
            let all = [("interp", Backend::Interp), ("vm", Backend::Vm), ("llvm", Backend::Llvm)];
            for (executor, backend) in all.into_iter().take(if runs { 3 } else { 1 }) {
                add(&format!("error::{executor}"), Box::new(move |c| c.error(backend)));
            }
            return;
        }
        if case.program.0 == Language::Core {
            add("core", Box::new(SuiteCase::core_value));
            return;
        }
        for optimise in [false, true] {
            let executor = if optimise { "full" } else { "off" };
            if case.get("value").is_some() {
                add(&format!("value::interp::{executor}"), Box::new(move |c| c.value(optimise)));
                add(
                    &format!("value::vm::{executor}"),
                    Box::new(move |c| c.value_natively(optimise, Backend::Vm)),
                );
                if optimise {
                    add("value::llvm::full", Box::new(|c| c.value_natively(true, Backend::Llvm)));
                }
            }
            if case.get("jacobian").or(case.get("gradient")).is_some() {
                let reverse = move |c: &SuiteCase| c.derivative(Sweep::Reverse, optimise);
                let forward = move |c: &SuiteCase| c.derivative(Sweep::Forward, optimise);
                add(&format!("vjp[fast_chad]::interp::{executor}"), Box::new(reverse));
                add(&format!("jvp[forward]::interp::{executor}"), Box::new(forward));
            }
        }
        if case.get("jacobian").or(case.get("gradient")).is_some() {
            add("dual::interp", Box::new(SuiteCase::dual));
        }
    }

    fn tolerance(&self) -> Result<f64, String> {
        self.get("tolerance").map_or(Ok(1e-10), |t| t.parse().map_err(|_| format!("`{t}` is no tolerance")))
    }

    pub(crate) fn session(&self, optimise: bool) -> Result<(Session, EntryPoint), String> {
        let settings = Settings { optimise, ..Settings::default() };
        let session = Session::compile("program.fut", &self.program.1, settings).map_err(|e| e.render())?;
        let entry = session.entry(self.get("entry")).map_err(|d| d.render(&session.sources))?;
        Ok((session, entry))
    }

    pub(crate) fn arguments(&self, entry: &EntryPoint) -> Result<Vec<Value>, String> {
        let given = value_text::read_all(self.get("main").unwrap_or("")).map_err(|e| e.to_string())?;
        if given.len() != entry.entry.params.len() {
            return Err(format!("{} arguments for {} parameters", given.len(), entry.entry.params.len()));
        }
        let given: Vec<_> = given.iter().collect();
        encode_all(&entry.entry.params, &given).map_err(|(_, e)| e.to_string())
    }

    fn value(&self, optimise: bool) -> Result<(), String> {
        let (session, entry) = self.session(optimise)?;
        let args = self.arguments(&entry)?;
        let ready = session.primal(&entry).map_err(|d| d.render(&session.sources))?;
        let found = ready.run(&args, &Options::default()).map_err(|e| e.to_string())?.results;
        let copying = Options { in_place: false, ..Options::default() };
        let copied = ready.run(&args, &copying).map_err(|e| e.to_string())?.results;
        if format!("{found:?}") != format!("{copied:?}") {
            return Err(format!("writes in place change the result: {found:?}, else {copied:?}"));
        }
        self.compare_value(&entry, &found)
    }

    /// The value as bytecode, or as machine code.
    fn value_natively(&self, optimise: bool, backend: Backend) -> Result<(), String> {
        if is_missing(backend) {
            return Ok(());
        }
        let (session, entry) = self.session(optimise)?;
        let args = self.arguments(&entry)?;
        let mut ready = session.primal(&entry).map_err(|d| d.render(&session.sources))?;
        ready.backend = backend;
        let found = ready.run(&args, &Options::default()).map_err(|e| e.to_string())?.results;
        self.compare_value(&entry, &found)
    }

    fn compare_value(&self, entry: &EntryPoint, found: &[Value]) -> Result<(), String> {
        let data = value_text::read(self.get("value").unwrap_or("")).map_err(|e| e.to_string())?;
        let expected =
            encode(&entry.entry.result, &data, &mut Sizes::new(), "value").map_err(|e| e.to_string())?;
        same(&expected, found, self.tolerance()?)
    }

    /// Which arguments the expectation is about: `wrt` names them; otherwise all with floats.
    fn selected(&self, session: &Session, entry: &EntryPoint) -> Result<Vec<bool>, String> {
        let wrt = match self.get("wrt") {
            Some(names) => Wrt { paths: names.split_whitespace().map(str::to_string).collect() },
            None => Wrt::default(),
        };
        session.select(entry, &wrt).map_err(|d: Diagnostic| d.render(&session.sources))
    }

    fn derivative(&self, sweep: Sweep, optimise: bool) -> Result<(), String> {
        let (session, entry) = self.session(optimise)?;
        let args = self.arguments(&entry)?;
        let selected = self.selected(&session, &entry)?;
        let found = session.jacobian(&entry, &selected, &args, sweep, &Options::default());
        let found = found.map_err(|d| d.render(&session.sources))?;
        let (rows, columns) = found.shape();
        let entries = Value::Array(found.dense()).floats();
        let copying = Options { in_place: false, ..Options::default() };
        let copied = session.jacobian(&entry, &selected, &args, sweep, &copying);
        let copied = Value::Array(copied.map_err(|d| d.render(&session.sources))?.dense()).floats();
        if format!("{entries:?}") != format!("{copied:?}") {
            return Err(format!("writes in place change the Jacobian: {entries:?}, else {copied:?}"));
        }
        self.compare_matrix(&entries, rows, columns)
    }

    fn dual(&self) -> Result<(), String> {
        let (session, entry) = self.session(false)?;
        let args = self.arguments(&entry)?;
        let selected = self.selected(&session, &entry)?;
        let program = session.lowered();
        let Some((fun, _)) = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == entry.name)
        else {
            return Err("the entry point has no function".into());
        };
        let found = pullback_interp::dual::jacobian(program, fun, &args, &Options::default())
            .map_err(|e| e.to_string())?;
        let wanted: Vec<bool> =
            args.iter().zip(&selected).flat_map(|(v, s)| std::iter::repeat_n(*s, v.floats().len())).collect();
        let columns: Vec<&Vec<f64>> =
            found.columns.iter().zip(&wanted).filter(|(_, w)| **w).map(|(c, _)| c).collect();
        let rows = found.results.iter().map(|v| v.floats().len()).sum();
        let flat: Vec<f64> = (0..rows).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        self.compare_matrix(&flat, rows, columns.len())
    }

    /// Compares with the `jacobian` line (a row per float of the result) or the `gradient` line (any nesting).
    fn compare_matrix(&self, found: &[f64], rows: usize, columns: usize) -> Result<(), String> {
        let line = self.get("jacobian").or(self.get("gradient")).unwrap_or("");
        let trees = text::trees(line)?;
        let mut expected = Vec::new();
        for tree in &trees {
            numbers(tree, &mut expected)?;
        }
        if let (Some(_), [Tree::Array(items)]) = (self.get("jacobian"), trees.as_slice())
            && items.len() != rows
        {
            return Err(format!("{} rows are expected, there are {rows}", items.len()));
        }
        if expected.len() != rows * columns {
            return Err(format!(
                "{} numbers are expected, the Jacobian is {rows} x {columns}",
                expected.len()
            ));
        }
        let tolerance = self.tolerance()?;
        for (k, (e, f)) in expected.iter().zip(found).enumerate() {
            if !near(*e, *f, tolerance) {
                let (i, j) = (k / columns.max(1), k % columns.max(1));
                return Err(format!("row {i}, column {j}: expected {e:?}, found {f:?}\nall: {found:?}"));
            }
        }
        Ok(())
    }

    /// `error CODE words`: compilation, differentiation or the run with this executor stops with this code and a message with these words.
    fn error(&self, backend: Backend) -> Result<(), String> {
        if is_missing(backend) {
            return Ok(());
        }
        let line = self.get("error").unwrap_or("");
        let (code, words) = line.split_once(' ').unwrap_or((line, ""));
        let fits = |d: &Diagnostic| d.code.as_str() == code && d.message.contains(words);
        if self.program.0 == Language::Core {
            let case = self.core_case()?;
            let out = Ready::new(case.program, case.main, backend).run(&case.args, &Options::default());
            let d = out.map_err(|e| e.to_diagnostic());
            return match d {
                Err(d) if fits(&d) => Ok(()),
                Err(d) => Err(format!("another diagnostic: {}: {}", d.code.as_str(), d.message)),
                Ok(out) => Err(format!("no error, but the value {:?}", out.results)),
            };
        }
        let session = match Session::compile("program.fut", &self.program.1, Settings::default()) {
            Ok(session) => session,
            Err(failed) => {
                let errors = || failed.diagnostics.iter();
                return match errors().find(|d| fits(d)) {
                    Some(d) if d.span.is_some() => Ok(()),
                    Some(_) => Err("the diagnostic has no place".into()),
                    None => Err(format!("other diagnostics:\n{}", failed.render())),
                };
            }
        };
        let check = |d: Diagnostic| {
            if fits(&d) {
                Ok(())
            } else {
                Err(format!("another diagnostic:\n{}", d.render(&session.sources)))
            }
        };
        let entry = match session.entry(self.get("entry")) {
            Ok(entry) => entry,
            Err(d) => return check(d),
        };
        let args = self.arguments(&entry)?;
        let versions: &[bool] = if backend == Backend::Llvm { &[true] } else { &[false, true] };
        for &optimise in versions {
            let settings = Settings { optimise, backend, ..Settings::default() };
            let session = Session::compile("program.fut", &self.program.1, settings);
            let run = match session.map_err(|e| e.render())?.primal(&entry) {
                Err(d) => check(d),
                Ok(ready) => match ready.run(&args, &Options::default()) {
                    Err(e) => check(e.to_diagnostic()),
                    Ok(out) => Err(format!("no error, but the value {:?}", out.results)),
                },
            };
            run.map_err(|text| format!("optimised {optimise}: {text}"))?;
        }
        Ok(())
    }

    pub(crate) fn core_case(&self) -> Result<Case, String> {
        let program = pullback_core::read::read(FileId::new(0), &self.program.1).map_err(|d| d.message)?;
        let found = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == "main");
        let Some((main, fun)) = found else { return Err("there is no function `main`".into()) };
        let trees = text::trees(self.get("main").unwrap_or(""))?;
        if trees.len() != fun.params.len() {
            return Err(format!("{} arguments for {} parameters", trees.len(), fun.params.len()));
        }
        let args = trees.iter().zip(&fun.params).map(|(t, p)| text::value(&program, t, &program.vars[*p].ty));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        Ok(Case { program, main, args, growing: Vec::new(), seed: 0, smooth: true, empties: false })
    }

    fn core_value(&self) -> Result<(), String> {
        let case = self.core_case()?;
        let out = Compiled::new(&case.program).run(case.main, &case.args, &Options::default());
        let found = out.map_err(|e| e.to_string())?.results;
        let trees = text::trees(self.get("value").unwrap_or(""))?;
        let types = &case.program.funs[case.main].results;
        if trees.len() != types.len() {
            return Err(format!("{} values for {} results", trees.len(), types.len()));
        }
        let expected = trees.iter().zip(types).map(|(t, ty)| text::value(&case.program, t, ty));
        same(&expected.collect::<Result<Vec<_>, _>>()?, &found, self.tolerance()?)
    }

    fn property(&self) -> Result<(), String> {
        let case = self.core_case()?;
        let name = self.get("property").unwrap_or("");
        let Some(property) = Property::ALL.into_iter().find(|p| p.name() == name) else {
            return Err(format!("there is no property `{name}`"));
        };
        match property.check(&case, &pullback_ad::fast_chad::vjp) {
            Verdict::Holds => Ok(()),
            Verdict::Skipped(skip) => Err(format!("the property does not apply: {skip:?}")),
            Verdict::Fails(text) => Err(text),
        }
    }
}

/// Whether this machine has nothing to run programs with this executor.
fn is_missing(backend: Backend) -> bool {
    backend == Backend::Llvm && Llvm::find().is_err()
}

/// The cases that run, by what is differentiated: program, entry point and arguments.
fn programs(cases: &[SuiteCase]) -> impl Iterator<Item = Vec<SuiteCase>> {
    let runs = |case: &&SuiteCase| {
        let is_mixed = case.get("mixes").is_none_or(|text| text.starts_with(ONLY_TWICE));
        case.program.0 == Language::Futhark && case.get("error").is_none() && is_mixed
    };
    let mut groups: Vec<Vec<SuiteCase>> = Vec::new();
    for case in cases.iter().filter(runs) {
        let same = |group: &&mut Vec<SuiteCase>| {
            let first = &group[0];
            Arc::ptr_eq(&first.program, &case.program)
                && ["entry", "wrt"].iter().all(|key| first.get(key) == case.get(key))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(case.clone()),
            None => groups.push(vec![case.clone()]),
        }
    }
    groups.into_iter()
}

/// Of so many programs one is differentiated three times.
const THIRD: u64 = 3;
/// Before the reason why a program is differentiated twice at most.
const ONLY_TWICE: &str = "twice ";

/// The test that all mixes of modes agree, on all executors, for the arguments of all these cases of one program.
fn mixes(file: &str, cases: Vec<SuiteCase>, total: &Total) -> Test {
    let name = format!("{file}::{}::mixes", cases[0].name);
    let is_third = name.bytes().fold(0, |sum, b| sum + u64::from(b)).is_multiple_of(THIRD);
    let thrice = is_third && cases.iter().all(|case| case.get("mixes").is_none());
    let total = total.clone();
    let run = move || {
        let (session, entry) = cases[0].session(true)?;
        let args = cases.iter().map(|c| c.arguments(&entry)).collect::<Result<Vec<_>, _>>()?;
        if !args[0].iter().any(|v| nested::has_floats(v) || !v.floats().is_empty()) {
            return Ok(());
        }
        let selected = cases[0].selected(&session, &entry)?;
        let differences = !cases[0].program.1.contains("stop_gradient");
        let f = Function { session: &session, entry: &entry, selected: &selected, differences };
        for order in if thrice { 2..=3 } else { 2..=2 } {
            let compared = nested::agree(&[f], order, &args, &nested::executors())?;
            *total.lock().unwrap_or_else(PoisonError::into_inner) += compared;
        }
        Ok(())
    };
    Test { name, run: Box::new(run) }
}

fn numbers(tree: &Tree, out: &mut Vec<f64>) -> Result<(), String> {
    match tree {
        Tree::Word(w) => {
            out.push(text::number(w).ok_or_else(|| format!("`{w}` is no number"))?);
            Ok(())
        }
        Tree::Array(items) | Tree::Tuple(items) => items.iter().try_for_each(|t| numbers(t, out)),
        Tree::Sum(..) => Err("a sum where numbers are expected".into()),
    }
}

/// Equal up to a relative tolerance, or an absolute one below one; NaN equals NaN.
pub fn near(expected: f64, found: f64, tolerance: f64) -> bool {
    expected == found
        || (expected.is_nan() && found.is_nan())
        || (expected - found).abs() <= tolerance * (1.0 + expected.abs())
}

/// Floats up to the tolerance, everything else exactly.
fn same(expected: &[Value], found: &[Value], tolerance: f64) -> Result<(), String> {
    let wrong = || Err(format!("expected {expected:?}\nfound    {found:?}"));
    let floats = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
    let (e, f) = (floats(expected), floats(found));
    if e.len() != f.len() || !e.iter().zip(&f).all(|(a, b)| near(*a, *b, tolerance)) {
        return wrong();
    }
    // With equal floats the rest must be equal.
    let mut e = e.into_iter();
    let replaced: Vec<Value> = found.iter().map(|v| pullback_interp::dual::with_floats(v, &mut e)).collect();
    let same_rest = replaced.len() == expected.len()
        && replaced.iter().zip(expected).all(|(a, b)| a == b || text::show(a) == text::show(b));
    if same_rest { Ok(()) } else { wrong() }
}
