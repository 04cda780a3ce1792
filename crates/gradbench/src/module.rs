//! A problem, compiled: its functions by name.

use crate::message::{Runs, Timing};
use crate::programs;
use pullback_base::{Diagnostic, RuntimeError};
use pullback_core::{EntryType, Value};
use pullback_driver::values::{Data, decode, encode_all, json, type_text};
use pullback_driver::{EntryPoint, Failed, Ready, Session, Settings};
use pullback_interp::core::{Counts, Options};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A compiled problem.
#[derive(Debug)]
pub struct Module {
    session: Session,
    /// How long it took to check the program.
    front: Duration,
    functions: BTreeMap<String, Function>,
}

#[derive(Debug)]
struct Function {
    entry: EntryPoint,
    ready: Ready,
}

/// What a function gave, with the time of each run and of what came before them.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The result.
    pub output: Json,
    /// How long what took.
    pub timings: Vec<Timing>,
}

/// How long it takes until a function can be called; nothing for what it cannot run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimesToReady {
    /// On the vm.
    pub vm: Option<Duration>,
    /// As machine code.
    pub native: Option<Duration>,
}

impl Module {
    /// Compiles a problem of the suite. Errors: an unknown one, or messages of the compiler.
    pub fn compile(name: &str, settings: Settings) -> Result<Module, String> {
        let known = programs::PROBLEMS.iter().find(|(n, _)| *n == name);
        let Some((_, path)) = known else {
            let names: Vec<&str> = programs::PROBLEMS.iter().map(|(n, _)| *n).collect();
            return Err(format!("no module `{name}`; there are {}", names.join(", ")));
        };
        let text = programs::read(Path::new(path)).map_err(|e| format!("{path}: {e}"))?;
        Module::of(|| Session::compile_with(path, &text, &mut programs::read, settings))
    }

    /// Compiles a program on disk: its entry points are the functions. Errors: a file that cannot be read, or messages of the compiler.
    pub fn of_file(path: &str, settings: Settings) -> Result<Module, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
        Module::of(|| Session::compile(path, &text, settings))
    }

    fn of(compile: impl FnOnce() -> Result<Session, Box<Failed>>) -> Result<Module, String> {
        let start = Instant::now();
        let session = compile().map_err(|failed| failed.render())?;
        let front = start.elapsed();
        let mut functions = BTreeMap::new();
        for entry in session.entries() {
            let ready = session.primal(&entry).map_err(|d| d.render(&session.sources))?;
            functions.insert(entry.name.clone(), Function { entry, ready });
        }
        Ok(Module { session, front, functions })
    }

    /// Runs a function on an input, as often as the input says. Errors: what is wrong with the input, or what stopped the program.
    pub fn evaluate(&self, name: &str, input: Json, options: &Options<'_>) -> Result<Evaluation, String> {
        let runs = Runs::of(&input)?;
        let start = Instant::now();
        let (function, args) = self.call(name, input, options)?;
        function.ready.warm(&args).map_err(|d| self.text(&d))?;
        let prepared = start.elapsed();
        let (mut times, mut total) = (Vec::new(), Duration::ZERO);
        let mut again = |time| {
            times.push(time);
            total += time;
            !runs.are_met_by(&times, total)
        };
        let results = function.ready.repeat(&args, options, &mut again).map_err(|e| self.stopped(&e))?;
        let (entry, results) = match self.functions.get(&format!("{name}_output")) {
            Some(from) => (&from.entry, self.run(from, &results, options)?),
            None => (&function.entry, results),
        };
        let (output, lost) = json::write(&decode(&entry.entry.result, &results));
        if lost > 0 {
            return Err(format!(
                "the result has {lost} numbers that are NaN or infinite, which JSON cannot hold"
            ));
        }
        let runs = times.into_iter().map(|time| ("evaluate", time));
        Ok(Evaluation { output, timings: std::iter::once(("prepare", prepared)).chain(runs).collect() })
    }

    /// What a single run of a function costs: in the interpreter, which counts steps, or where the settings want it.
    pub fn counts(
        &self,
        name: &str,
        input: Json,
        options: &Options<'_>,
        steps: bool,
    ) -> Result<Counts, String> {
        let (function, args) = self.call(name, input, options)?;
        if steps {
            let outcome = function.ready.interpret(&args, options);
            return outcome.map(|o| o.counts).map_err(|e| self.stopped(&e));
        }
        function.ready.warm(&args).map_err(|d| self.text(&d))?;
        function.ready.run(&args, options).map(|o| o.counts).map_err(|e| self.stopped(&e))
    }

    /// How long it takes from the text to a function that can be called with an input of these sizes. It is made anew, as
    /// machine code where the settings keep none on disk.
    pub fn times_to_ready(
        &self,
        name: &str,
        input: Json,
        options: &Options<'_>,
    ) -> Result<TimesToReady, String> {
        let (function, args) = self.call(name, input, options)?;
        let start = Instant::now();
        let ready = self.session.primal(&function.entry).map_err(|d| self.text(&d))?;
        let before = self.front + start.elapsed();
        let start = Instant::now();
        let vm = ready.vm(&args).is_ok().then(|| before + start.elapsed());
        let start = Instant::now();
        let native = ready.native(&args).is_ok().then(|| before + start.elapsed());
        Ok(TimesToReady { vm, native })
    }

    /// A function with its arguments.
    fn call(
        &self,
        name: &str,
        input: Json,
        options: &Options<'_>,
    ) -> Result<(&Function, Vec<Value>), String> {
        let is_own = |n: &str| !n.ends_with("_input") && !n.ends_with("_output");
        let Some(function) = self.functions.get(name).filter(|_| is_own(name)) else {
            let names: Vec<&str> = self.functions.keys().map(String::as_str).filter(|n| is_own(n)).collect();
            return Err(format!("no function `{name}`; there are {}", names.join(", ")));
        };
        let args = match self.functions.get(&format!("{name}_input")) {
            Some(from) => self.run(from, &arguments(&from.entry, input)?, options)?,
            None => arguments(&function.entry, input)?,
        };
        Ok((function, args))
    }

    fn run(&self, f: &Function, args: &[Value], options: &Options<'_>) -> Result<Vec<Value>, String> {
        let outcome = f.ready.run(args, options).map_err(|e| self.stopped(&e))?;
        Ok(outcome.results)
    }
    fn stopped(&self, e: &RuntimeError) -> String {
        self.text(&e.to_diagnostic())
    }
    fn text(&self, d: &Diagnostic) -> String {
        d.render(&self.session.sources)
    }
}

/// The arguments of an entry point: fields of the input with the names of its parameters, or all of it for one that has a single
/// parameter and no such field. Other fields are left alone.
fn arguments(entry: &EntryPoint, input: Json) -> Result<Vec<Value>, String> {
    let params = &entry.entry.params;
    let mut fields = match (input, params.as_slice()) {
        (Json::Object(fields), _) => fields,
        (other, [(name, _)]) => Map::from_iter([(name.to_string(), other)]),
        _ => return Err(format!("the input of `{}` is not a JSON object", entry.name)),
    };
    let mut all = Vec::new();
    for (name, ty) in params {
        let Some(given) = fields.remove(name.as_str()) else {
            return Err(format!("the input has no field `{name}` of type {}", type_text(ty)));
        };
        let data = json::from_json(ty, given);
        all.push(known(ty, data));
    }
    let all: Vec<&Data> = all.iter().collect();
    encode_all(params, &all).map_err(|(name, e)| format!("the input's field `{name}`: {e}"))
}

/// A value without the fields that its type does not have.
fn known(ty: &EntryType, data: Data) -> Data {
    match (ty, data) {
        (EntryType::Record(types), Data::Record(fields)) => {
            let one = |(name, data): (String, Data)| {
                let (_, ty) = types.iter().find(|(n, _)| n.as_str() == name)?;
                let data = known(ty, data);
                Some((name, data))
            };
            Data::Record(fields.into_iter().filter_map(one).collect())
        }
        (EntryType::Tuple(types), Data::Tuple(items)) if types.len() == items.len() => {
            Data::Tuple(types.iter().zip(items).map(|(t, d)| known(t, d)).collect())
        }
        (_, data) => data,
    }
}
