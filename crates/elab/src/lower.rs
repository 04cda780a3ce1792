//! Lambda to core: A-normal form, products flattened, function values eliminated.
//!
//! What it does: every value of a data type becomes its *leaves*, core atoms (see the module `types`); `let`, tuples, components,
//! zip and unzip vanish. Function values known at lowering time are inlined where they are applied; those chosen at run
//! time by `if` or `match` become sums of their captured leaves, with a `match` where they are applied
//! (defunctionalisation). Top-level functions are inlined where small or where they take or return functions, and
//! otherwise become core functions, one for each static shape of their function arguments (specialisation). Functions that are data
//! (in sums, in the state of loops, results of functions that call themselves) become recursive sums, which one core function per type applies
//! (module `open`). Of the target vocabulary of the chapters, accumulating computations run over the leaves of their cells (`evm`), and sparse
//! cotangents and bags are sums (`sparse`).
//!
//! Assumes a program that the lambda checker accepts. Guarantees a program that the core checker accepts, with the same
//! meaning, whose variables carry the source positions of the terms they come from. What has no core form is an
//! `Unsupported` diagnostic with its position: functions that capture functions without end, staged calls, maps and mutable arrays.

mod array;
mod branch;
mod derivative;
mod evm;
mod open;
mod plan;
mod sparse;
mod term;
mod types;
mod value;

use plan::Plan;
use pullback_base::index::{IdMap, IdSet};
use pullback_base::{Code, Diagnostic, Span, Symbol};
use pullback_core as core;
use pullback_lambda as lambda;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use value::{Sig, Val};

/// The result of a step of the lowering; the error is boxed because it is large and rare.
type Lowered<T> = Result<T, Box<Diagnostic>>;

/// More variables than this are taken for an explosion by inlining.
const MAX_VARS: usize = 1_000_000;
/// More steps than this likewise.
const MAX_STEPS: usize = 20_000_000;
/// More versions of functions than this are taken for specialisation without end.
const MAX_VERSIONS: usize = 2_000;
/// A function argument that captures functions that capture functions, and so on, deeper than this becomes data.
const MAX_CAPTURE_DEPTH: usize = 16;
/// So many versions of a function that calls itself are being made at once. What others would be made for becomes data. (Of taste: what is given from
/// outside, wrapped, and wrapped again. More make code longer: with the limit of depth alone a recursion of one function became 69, with this 6.)
const MAX_OPEN_VERSIONS: usize = 3;
/// Deeper inlining than this is refused: every level holds a nest of Rust calls.
const MAX_INLINE_DEPTH: usize = 2_000;

/// Lowers the entry points of a program and what they call; of a program without entry points, every function whose
/// parameters and result are data. Costs time proportional to the core program and to the number of inlined terms.
///
/// # Errors
/// `Unsupported` for what has no core form, with its position; the first one of each function lowered.
pub fn lower(source: &lambda::Program) -> Result<core::Program, Vec<Diagnostic>> {
    let entries = source.funs.iter().any(|f| f.entry.is_some());
    let roots = source.funs.iter_enumerated().filter(|(_, fun)| {
        let mut data = fun.params.iter().map(|v| &source.vars[*v].ty).chain([&fun.result]);
        if entries { fun.entry.is_some() } else { data.all(types::is_of_the_source) }
    });
    let roots: Vec<lambda::FunId> = roots.map(|(id, _)| id).collect();
    lower_functions(source, &roots).map(|(program, _)| program)
}

/// Lowers these functions, whose parameters and results are data, and what they call; gives their numbers in core as well. Costs as [`lower`].
///
/// # Errors
/// As for [`lower`].
pub fn lower_functions(
    source: &lambda::Program,
    roots: &[lambda::FunId],
) -> Result<(core::Program, Vec<core::FunId>), Vec<Diagnostic>> {
    let mut program = core::Program::default();
    let mut lowerer = Lowerer {
        source,
        plan: Plan::new(source),
        b: core::Builder::new(&mut program),
        env: IdMap::new(),
        versions: BTreeMap::new(),
        making: Vec::new(),
        entered: BTreeMap::new(),
        copies: IdMap::new(),
        names: source.funs.iter().filter(|f| f.entry.is_some()).map(|f| f.name.clone()).collect(),
        free: IdMap::new(),
        constants: Constants::default(),
        outer_sizes: IdMap::new(),
        kinds: Vec::new(),
        bags: Vec::new(),
        known_zeros: IdSet::new(),
        steps: 0,
        inline_depth: 0,
        body_depth: 0,
    };
    let lowered = lowerer.functions(roots)?;
    Ok((program, lowered))
}

/// The state of the lowering.
struct Lowerer<'l, 'c> {
    source: &'l lambda::Program,
    plan: Plan,
    b: core::Builder<'c>,
    /// The values of the variables in scope.
    env: IdMap<lambda::Var, Val>,
    /// The core functions made so far, by source function and static shape of the arguments.
    versions: BTreeMap<(lambda::FunId, Vec<Sig>), core::FunId>,
    /// The functions whose versions are being made, the innermost last.
    making: Vec<lambda::FunId>,
    /// The core functions made of lambdas so far, by the lambda's parameter and the static shapes of what it captures and of the argument.
    entered: BTreeMap<(lambda::Var, Vec<Sig>), core::FunId>,
    /// How often lambdas have been applied, by their parameter.
    copies: IdMap<lambda::Var, usize>,
    /// Names of core functions in use.
    names: BTreeSet<Symbol>,
    /// The free variables of lambdas, by their parameter.
    free: IdMap<lambda::Var, Rc<[lambda::Var]>>,
    constants: Constants,
    /// The outer sizes of arrays whose size was known where they were made.
    outer_sizes: IdMap<core::Var, core::Atom>,
    /// The types of functions that are data.
    kinds: Vec<open::Kind>,
    bags: Vec<sparse::BagKind>,
    /// Variables whose value is the zero of a sparse sum or bag.
    known_zeros: IdSet<core::Var>,
    steps: usize,
    inline_depth: usize,
    /// How many bodies are open in the core function being made.
    body_depth: usize,
}

/// Functions without parameters, evaluated at the start of the core function being made.
#[derive(Default)]
struct Constants {
    stms: Vec<core::Stm>,
    values: IdMap<lambda::FunId, Val>,
}

impl Lowerer<'_, '_> {
    fn functions(&mut self, roots: &[lambda::FunId]) -> Result<Vec<core::FunId>, Vec<Diagnostic>> {
        self.type_table().map_err(|e| vec![*e])?;
        let (mut lowered, mut errors) = (Vec::new(), Vec::new());
        for &id in roots {
            let fun = &self.source.funs[id];
            let sigs = vec![Sig::Data; fun.params.len()];
            match self.version(id, sigs, None, fun.span) {
                Ok(f) => lowered.push(f),
                Err(e) => errors.push(*e),
            }
        }
        if errors.is_empty()
            && let Err(e) = self.finish_kinds()
        {
            errors.push(*e);
        }
        if errors.is_empty() { Ok(lowered) } else { Err(errors) }
    }

    /// The core function for these arguments, and their leaves. A function that calls itself may wrap what it is given in one function more each
    /// time: what is too deep is handed on as data, which has one shape.
    fn version_for(
        &mut self,
        id: lambda::FunId,
        args: &[Val],
        span: Option<Span>,
    ) -> Lowered<(core::FunId, Vec<core::Atom>)> {
        let sigs = |args: &[Val]| args.iter().map(Val::sig).collect::<Vec<Sig>>();
        let mut key = (id, sigs(args));
        let grows = || {
            self.making.iter().filter(|f| **f == id).count() >= MAX_OPEN_VERSIONS
                || key.1.iter().any(|s| s.deeper_than(MAX_CAPTURE_DEPTH))
        };
        let as_data: Vec<Val>;
        let args = if !self.versions.contains_key(&key) && grows() {
            let source = self.source;
            let types = source.funs[id].params.iter().map(|&v| &source.vars[v].ty);
            let data = |(ty, v): (&lambda::Type, &Val)| {
                let leaves = self.coerced(ty, v.clone(), span)?;
                self.of_leaves(ty, &leaves, span)
            };
            as_data = types.zip(args).map(data).collect::<Lowered<_>>()?;
            key.1 = sigs(&as_data);
            &as_data
        } else {
            args
        };
        let made = self.version(id, key.1, Some(args), span)?;
        let mut leaves = Vec::new();
        args.iter().for_each(|v| v.push_leaves(&mut leaves));
        Ok((made, leaves))
    }

    /// The core function for a source function and static shapes of its arguments; `args` are argument values of these
    /// shapes, needed where a shape has functions in it.
    fn version(
        &mut self,
        id: lambda::FunId,
        sigs: Vec<Sig>,
        args: Option<&[Val]>,
        span: Option<Span>,
    ) -> Lowered<core::FunId> {
        let key = (id, sigs);
        if let Some(&f) = self.versions.get(&key) {
            return Ok(f);
        }
        if self.versions.len() >= MAX_VERSIONS {
            return self.unsupported(span, "a recursive function whose function arguments grow without end");
        }
        let fun = &self.source.funs[id];
        let Some(body) = &fun.body else { return self.bug(span, format!("{} has no body", fun.name)) };
        let outer_origin = self.b.origin.clone();
        let mut inside = IdMap::new();
        let mut params = Vec::new();
        for (i, &v) in fun.params.iter().enumerate() {
            let info = &self.source.vars[v];
            self.b.origin = core::Origin { span: info.span, rule: None };
            let (types, template) = match args.map(|args| &args[i]) {
                Some(arg) if !matches!(arg, Val::Data(_)) => (arg.leaf_types(&self.b), Some(arg.clone())),
                _ => (self.leaves_at(&info.ty, info.span)?, None),
            };
            let vars: Vec<core::Var> =
                types.into_iter().map(|t| self.b.fresh(t, info.hint.as_str())).collect();
            let atoms: Vec<core::Atom> = vars.iter().map(|&v| v.into()).collect();
            params.extend(vars);
            let value =
                template.map_or_else(|| Val::data(atoms.clone()), |t| t.rebuilt(&mut atoms.iter().copied()));
            inside.insert(v, value);
        }
        // A function that gives a computation takes and gives its cells, too.
        let computation = evm::of_computation(&fun.result);
        let (result, env) = computation.clone().unwrap_or((&fun.result, Vec::new()));
        let mut results = self.leaves_at(result, fun.span)?;
        let mut cells = evm::CellLeaves::new();
        for t in &env {
            let types = self.leaves_at(t, fun.span)?;
            results.extend(types.iter().cloned());
            let vars: Vec<core::Var> = types.into_iter().map(|t| self.b.fresh(t, "c")).collect();
            cells.push(vars.iter().map(|&v| v.into()).collect());
            params.extend(vars);
        }
        let entry = fun.entry.as_ref().map(types::entry);
        let name = self.fresh_name(&fun.name, entry.is_some());
        let new = core::Fun { name, params, body: core::Body::default(), results, entry };
        let f = self.b.program.funs.push(new);
        self.versions.insert(key, f);
        self.b.origin = outer_origin;
        self.making.push(id);
        let body = self.apart(inside, span, |l| match computation {
            Some(_) => {
                let m = l.term(body)?;
                let value = l.run(&m, &mut cells, span)?;
                let mut out = l.coerced(result, value, span)?;
                out.extend(cells.iter().flat_map(|c| c.iter().copied()));
                Ok(out)
            }
            None => Ok(l.data(body)?.to_vec()),
        });
        self.making.pop();
        self.b.program.funs[f].body = body?;
        Ok(f)
    }

    /// The body of a core function apart from what is being lowered, with these values in scope.
    fn apart(
        &mut self,
        env: IdMap<lambda::Var, Val>,
        span: Option<Span>,
        f: impl FnOnce(&mut Self) -> Lowered<Vec<core::Atom>>,
    ) -> Lowered<core::Body> {
        let outer_origin = self.b.origin.clone();
        let outer_env = std::mem::replace(&mut self.env, env);
        let outer_constants = std::mem::take(&mut self.constants);
        let outer_depth = std::mem::replace(&mut self.inline_depth, 0);
        let outer_bodies = std::mem::replace(&mut self.body_depth, 0);
        let body = self.body(span, f);
        let constants = std::mem::replace(&mut self.constants, outer_constants);
        self.env = outer_env;
        self.inline_depth = outer_depth;
        self.body_depth = outer_bodies;
        self.b.origin = outer_origin;
        let mut body = body?;
        body.stms.splice(0..0, constants.stms);
        Ok(body)
    }

    /// Runs `f` in a scope of its own; gives the body that it made and its results became.
    fn body(
        &mut self,
        span: Option<Span>,
        f: impl FnOnce(&mut Self) -> Lowered<Vec<core::Atom>>,
    ) -> Lowered<core::Body> {
        // One level is kept for the bodies that conversions of cotangents make.
        if self.body_depth + 2 >= core::check::MAX_DEPTH {
            let mut d =
                Diagnostic::global(Code::TooDeep, "conditions, loops and functions are nested too deeply")
                    .hint("move inner parts into top-level functions that call themselves, or use a loop");
            d.span = span;
            return Err(Box::new(d));
        }
        self.body_depth += 1;
        self.b.open();
        let result = f(self);
        let body = self.b.close(result.as_ref().cloned().unwrap_or_default());
        self.body_depth -= 1;
        result.map(|_| body)
    }

    /// The name for a version of a function. Entry points keep theirs.
    fn fresh_name(&mut self, name: &Symbol, entry: bool) -> Symbol {
        if entry {
            return name.clone();
        }
        let mut candidate = name.clone();
        let mut number = 1;
        while !self.names.insert(candidate.clone()) {
            candidate = format!("{name}_{number}").into();
            number += 1;
        }
        candidate
    }

    fn unsupported<T>(&self, span: Option<Span>, what: &str) -> Lowered<T> {
        let mut d = Diagnostic::global(Code::Unsupported, format!("{what} cannot be compiled"));
        d.span = span;
        Err(Box::new(d))
    }
    fn bug<T>(&self, span: Option<Span>, what: impl Into<String>) -> Lowered<T> {
        let mut d = Diagnostic::global(Code::Internal, what);
        d.span = span;
        Err(Box::new(d))
    }
}
