//! A session: one source program, compiled once, whose entry points can be run and differentiated.

use crate::backend::{Backend, Native};
use crate::derive::{self, Kind};
use crate::front::Lowered;
use crate::imports::{self, Reader};
use crate::leaves::{Leaf, Wrt, leaves, parameter_leaves};
use crate::on_fragment::{self, OnFragment};
use crate::on_lambda::{self, OnLambda};
use crate::pipeline;
use crate::report::{self, Stage, timed};
use crate::versions::Versions;
use crate::vm::Vm;
use pullback_abi::Workspaces;
use pullback_ad::bulk::interpreted;
use pullback_ad::differentiate::Choice;
use pullback_base::{Code, Diagnostic, RuntimeError, Severity, SourceMap};
use pullback_core::{Entry, FunId, Program, Type, Value};
use pullback_interp::core::{Compiled, Options, Outcome};
use pullback_llvm::Floats;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// How to compile.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Algorithms for `vjp` and `jvp` where the program does not say.
    pub choice: Choice,
    /// Whether to optimise.
    pub optimise: bool,
    /// Which executor runs what is ready.
    pub backend: Backend,
    /// The folder where machine code is kept between processes; `None`: it is not kept.
    pub cache: Option<PathBuf>,
    /// What machine code may change about floating point.
    pub floats: Floats,
    /// How many threads run the parts of loops in machine code; `None`: those of the machine.
    pub threads: Option<NonZeroUsize>,
    /// Whether the threads may add floats to memory in any order.
    pub relaxed: bool,
    /// Whether what an algorithm on lambda makes is lowered to core and goes through the pipeline, as it is where machine code is asked for; if not,
    /// the reference interpreter runs it as it is.
    pub lowered: bool,
}

impl Settings {
    /// Whether what an algorithm on lambda makes runs as it is, in the reference interpreter.
    pub fn runs_on_lambda(&self) -> bool {
        !self.lowered && matches!(self.backend, Backend::Auto | Backend::Interp)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            choice: Choice::default(),
            optimise: true,
            backend: Backend::Interp,
            cache: None,
            floats: Floats::default(),
            threads: None,
            relaxed: false,
            lowered: false,
        }
    }
}

/// A program that could not be compiled: the sources, to show places, and what is wrong.
#[derive(Debug)]
pub struct Failed {
    /// The sources that diagnostics point into.
    pub sources: SourceMap,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Failed {
    /// All messages with their source lines.
    pub fn render(&self) -> String {
        self.diagnostics.iter().map(|d| d.render(&self.sources)).collect::<Vec<_>>().join("\n")
    }
}

/// A compiled source program.
#[derive(Debug)]
pub struct Session {
    /// The sources that positions point into.
    pub sources: SourceMap,
    /// Warnings of the front end.
    pub warnings: Vec<Diagnostic>,
    /// How derivatives and programs are compiled.
    pub settings: Settings,
    pub(crate) program: Program,
    /// The source on lambda, where there was one.
    pub(crate) lambda: Option<pullback_lambda::Program>,
    /// Seconds from the source text to core.
    pub(crate) front_seconds: f64,
    /// What calls of its functions leave for later ones.
    pub(crate) workspaces: Workspaces,
}

/// An entry point.
#[derive(Clone, Debug)]
pub struct EntryPoint {
    /// Its name.
    pub name: String,
    /// Its interface.
    pub entry: Entry,
    /// Its core parameters.
    pub parameters: Vec<Leaf>,
    /// Their core types.
    pub parameter_types: Vec<Type>,
    /// Its core results.
    pub results: Vec<Leaf>,
    /// Their core types.
    pub result_types: Vec<Type>,
    pub(crate) fun: FunId,
}

/// A program ready to run: one function of it.
#[derive(Debug)]
pub struct Ready {
    /// The program after the pipeline.
    pub program: Program,
    /// The function.
    pub fun: FunId,
    /// Which executor runs it.
    pub backend: Backend,
    /// Where its machine code is kept between processes.
    pub cache: Option<PathBuf>,
    /// What its machine code may change about floating point.
    pub floats: Floats,
    /// How many threads its machine code uses; `None`: those of the machine.
    pub threads: Option<NonZeroUsize>,
    /// Whether the threads may add floats to memory in any order.
    pub relaxed: bool,
    /// Seconds of each stage from the source to this program.
    pub stages: Vec<Stage>,
    /// A derivative by an algorithm on lambda, which is run instead.
    pub on_lambda: Option<OnLambda>,
    /// A derivative whose delta terms are made while it runs; the program is only its first part.
    pub on_fragment: Option<OnFragment>,
    /// Memory that calls of its machine code leave for later ones.
    pub(crate) workspaces: Workspaces,
    pub(crate) native: Versions<Native>,
    pub(crate) vm: Versions<Vm>,
}

impl Ready {
    /// A function of a program that has been through the pipeline.
    pub fn new(program: Program, fun: FunId, backend: Backend) -> Ready {
        Ready {
            program,
            fun,
            backend,
            cache: None,
            floats: Floats::default(),
            threads: None,
            relaxed: false,
            stages: Vec::new(),
            on_lambda: None,
            on_fragment: None,
            workspaces: Workspaces::default(),
            native: Versions::default(),
            vm: Versions::default(),
        }
    }
    /// Runs the function in the reference interpreter.
    pub fn interpret(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        match (&self.on_lambda, &self.on_fragment) {
            (Some(derivative), _) => deep(|| derivative.run(args, options)),
            (None, Some(derivative)) => deep(|| derivative.run(args, options)),
            (None, None) => deep(|| Compiled::new(&self.program).run(self.fun, args, options)),
        }
    }
}

/// Bytes of stack for passes, which recurse as deeply as programs nest (the parser limits how deeply that is).
const STACK: usize = 256 << 20;

/// Runs `work` with room to recurse, wherever it is called from.
pub(crate) fn deep<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(STACK, work)
}

impl Session {
    /// Compiles a source text; `name` is shown in messages, and the path of the file from which its imports are found.
    ///
    /// Cost: linear in the text, but for type inference, which is nearly so.
    pub fn compile(name: &str, text: &str, settings: Settings) -> Result<Session, Box<Failed>> {
        Session::compile_with(name, text, &mut imports::from_disk, settings)
    }

    /// The same with imported files from elsewhere: `read` gives the text at a path.
    pub fn compile_with(
        name: &str,
        text: &str,
        read: &mut Reader<'_>,
        settings: Settings,
    ) -> Result<Session, Box<Failed>> {
        let mut sources = SourceMap::new();
        let ((program, diagnostics), front_seconds) =
            timed(|| deep(|| crate::front::lower_source(&mut sources, name, text, read)));
        let is_error = |d: &Diagnostic| d.severity == Severity::Error;
        match program {
            Some(Lowered { lambda, core }) if !diagnostics.iter().any(is_error) => Ok(Session {
                sources,
                warnings: diagnostics,
                settings,
                program: core,
                lambda: Some(lambda),
                front_seconds,
                workspaces: Workspaces::default(),
            }),
            _ => Err(Box::new(Failed { sources, diagnostics })),
        }
    }

    /// A session on a core program given directly (text IR, tests, the embedded language).
    pub fn from_core(program: Program, settings: Settings) -> Session {
        Session {
            sources: SourceMap::new(),
            warnings: Vec::new(),
            settings,
            program,
            lambda: None,
            front_seconds: 0.0,
            workspaces: Workspaces::default(),
        }
    }

    /// Whether the file is the prelude, and not the user's.
    pub fn is_prelude(&self, file: pullback_base::FileId) -> bool {
        self.sources.name(file) == pullback_syntax::PRELUDE_NAME
    }

    /// The lowered program, before any pass.
    pub fn lowered(&self) -> &Program {
        &self.program
    }

    /// The entry points, in source order.
    pub fn entries(&self) -> Vec<EntryPoint> {
        let funs = self.program.funs.iter_enumerated();
        funs.filter_map(|(id, fun)| {
            let entry = fun.entry.clone()?;
            let types = |vars: &[pullback_core::Var]| {
                vars.iter().map(|&v| self.program.vars[v].ty.clone()).collect::<Vec<_>>()
            };
            Some(EntryPoint {
                name: fun.name.to_string(),
                parameters: parameter_leaves(&entry),
                parameter_types: types(&fun.params),
                results: leaves("", &entry.result),
                result_types: fun.results.clone(),
                entry,
                fun: id,
            })
        })
        .collect()
    }

    /// The entry point with this name; without a name the only one, or the one called `main` or `objective`.
    pub fn entry(&self, name: Option<&str>) -> Result<EntryPoint, Diagnostic> {
        let mut entries = self.entries();
        let wanted = match name {
            Some(name) => entries.iter().position(|e| e.name == name),
            None if entries.len() == 1 => Some(0),
            None => ["main", "objective"].iter().find_map(|n| entries.iter().position(|e| e.name == *n)),
        };
        if let Some(k) = wanted {
            return Ok(entries.swap_remove(k));
        }
        let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
        let message = match name {
            _ if names.is_empty() => "the program has no entry point".to_string(),
            Some(name) => format!("the program has no entry point `{name}`"),
            None => {
                "the program has several entry points and none is called `main` or `objective`".to_string()
            }
        };
        let hint = if names.is_empty() {
            "write `entry main … = …` instead of `def main`".to_string()
        } else {
            format!("choose one with --entry: {}", names.join(", "))
        };
        Err(Diagnostic::global(Code::Entry, message).hint(hint))
    }

    /// The entry point itself, through the pipeline.
    pub fn primal(&self, entry: &EntryPoint) -> Result<Ready, Diagnostic> {
        self.finish(&self.program, entry.fun, &mut |_, _| {})
    }

    /// The entry point itself, so that its cost is counted as that of this derivative of it.
    pub fn primal_beside(&self, entry: &EntryPoint, derivative: &Ready) -> Result<Ready, Diagnostic> {
        match &derivative.on_lambda {
            Some(derivative) => Ok(on_lambda::primal(self, entry, derivative)),
            None => self.primal(entry),
        }
    }

    /// Which parameters `wrt` selects.
    pub fn select(&self, entry: &EntryPoint, wrt: &Wrt) -> Result<Vec<bool>, Diagnostic> {
        let selected = wrt.select(&self.program, &entry.parameters, &entry.parameter_types);
        selected.map_err(|message| {
            Diagnostic::global(Code::Input, message).hint("see --wrt in `pullback grad --help`")
        })
    }

    /// A derivative of an entry point with respect to the selected parameters, through the pipeline. `watch` sees the
    /// program after each step.
    pub fn derivative(
        &self,
        entry: &EntryPoint,
        kind: Kind,
        selected: &[bool],
        watch: &mut dyn FnMut(&'static str, &Program),
    ) -> Result<Ready, Diagnostic> {
        if let Some(algorithm) = self.algorithm_on_lambda()
            && kind.is_reverse()
        {
            return on_lambda::derivative(self, algorithm, entry, (kind, selected), watch);
        }
        let name = self.settings.choice.reverse.as_ref();
        if let Some(algorithm) = name.and_then(|n| interpreted::find(n.as_str()))
            && kind.is_reverse()
        {
            return on_fragment::derivative(self, algorithm, entry, (kind, selected), watch);
        }
        let mut program = self.program.clone();
        let fun = derive::add(&mut program, entry.fun, kind, selected)
            .map_err(|message| Diagnostic::global(Code::Unsupported, message))?;
        self.finish(&program, fun, watch)
    }

    /// The algorithm for reverse derivatives, if it is one on lambda.
    pub fn algorithm_on_lambda(&self) -> Option<&'static pullback_ad::on_lambda::OnLambda> {
        pullback_ad::on_lambda::find(self.settings.choice.reverse.as_ref()?.as_str())
    }

    /// The program of an entry point after each step of the pipeline.
    pub fn watch(
        &self,
        entry: &EntryPoint,
        watch: &mut dyn FnMut(&'static str, &Program),
    ) -> Result<Ready, Diagnostic> {
        self.finish(&self.program, entry.fun, watch)
    }

    pub(crate) fn finish(
        &self,
        program: &Program,
        fun: FunId,
        watch: &mut dyn FnMut(&'static str, &Program),
    ) -> Result<Ready, Diagnostic> {
        let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
        let steps = pipeline::steps(self.settings.optimise);
        let mut stages = vec![("front end", self.front_seconds)];
        let mut start = Instant::now();
        let mut watch = |name: &'static str, program: &Program| {
            let stage = if name == pipeline::Step::Differentiate.name() { name } else { "optimise" };
            report::add(&mut stages, stage, start.elapsed().as_secs_f64());
            watch(name, program);
            start = Instant::now();
        };
        let choice = &self.settings.choice;
        let fun = deep(|| pipeline::run_for(&mut program, roots[0], steps, choice, &mut watch))?;
        let mut ready = Ready::new(program, fun, self.settings.backend);
        ready.stages = stages;
        ready.cache = self.settings.cache.clone();
        ready.floats = self.settings.floats;
        ready.threads = self.settings.threads;
        ready.relaxed = self.settings.relaxed;
        ready.workspaces = self.workspaces.clone();
        match self.settings.backend {
            Backend::Llvm => deep(|| crate::backend::compiles(&ready)).map_err(|d| *d)?,
            Backend::Vm => deep(|| crate::backend::is_native(&ready)).map_err(|d| *d)?,
            Backend::Auto | Backend::Interp => {}
        }
        Ok(ready)
    }
}
