//! The typed source program to lambda: monomorphic, without names of fields, patterns, operators or sizes.
//!
//! Assumes a typed program without error diagnostics, with the conventions of [`pullback_front::typed`]. Guarantees:
//! the result has one function per entry point and per instance of a definition that entry points reach; its terms
//! pass lambda's checker; whatever cannot be expressed is a diagnostic. Pure and deterministic: instances are made in
//! the order in which they are first needed.
//!
//! What becomes of the source:
//! * A definition becomes one function per vector of types it is used at; sizes do not count, they are values here.
//!   Constants become functions without parameters.
//! * Records are tuples, fields sorted by name; sums keep their alternatives.
//! * Size parameters are bound to the sizes of the parameters they come from, and size checks that type checking left
//!   open become [`pullback_lambda::Exp::SameSize`].
//! * Patterns are compiled to matches of one level (module `matching`).
//! * Functions stay values; `lower` removes them.

mod array;
mod builtin;
mod chain;
mod entry;
mod exp;
mod matching;
mod pattern;

use pullback_base::{Code, Diagnostic, Span, Symbol};
use pullback_front::typed::{self, DefId, TypeParamId, VarId};
use pullback_lambda::{Builder, FunId, Program, Term, Type, Var, Variant};
use std::collections::{BTreeMap, VecDeque};

/// More instances than this are taken for a definition that uses itself at ever larger types.
const MAX_INSTANCES: usize = 20_000;

/// Elaborates a program without type errors.
///
/// Errors: `Unsupported` for what lambda cannot express (recursive types in the interface of an entry point), `TooDeep`
/// for a program that needs too many instances, `Internal` for a typed program that breaks its conventions.
/// Time: linear in the sizes of all instances.
pub fn elaborate(source: &typed::Program) -> Result<Program, Vec<Diagnostic>> {
    let mut program = Program::default();
    let builder = Builder::new(&mut program);
    let mut elaborator = Elaborator {
        source,
        b: builder,
        instances: BTreeMap::new(),
        pending: VecDeque::new(),
        names: BTreeMap::new(),
        type_env: BTreeMap::new(),
        vars: BTreeMap::new(),
        local_functions: BTreeMap::new(),
        equalities: BTreeMap::new(),
        algorithm: None,
        arms: 0,
        in_prelude: false,
        diagnostics: Vec::new(),
    };
    elaborator.run();
    let mut diagnostics = elaborator.diagnostics;
    for (span, message) in elaborator.b.errors {
        let mut diagnostic =
            Diagnostic::global(Code::Internal, format!("elaboration made an ill-typed term: {message}"))
                .hint("please report this program");
        diagnostic.span = span;
        diagnostics.push(diagnostic);
    }
    if diagnostics.is_empty() { Ok(program) } else { Err(diagnostics) }
}

/// What is put around a term that is built from the inside out.
enum Wrap {
    /// `let x = value in _`.
    Let(Var, Term),
    /// `match value { the only alternative -> _ }`.
    Only(Term, Vec<Var>),
    /// The sizes must agree.
    SameSize(Term, Term, Span),
    /// The condition must hold, or the program stops here.
    Assert(Term, &'static str, Option<Span>),
    /// The instances of a polymorphic local function that the inside uses.
    Functions(VarId),
}

/// A polymorphic local function: one lambda variable for each vector of types it is used at.
struct LocalFunction<'s> {
    fun: &'s typed::Function,
    name: Symbol,
    instances: Vec<(Vec<Type>, Var)>,
}

struct Elaborator<'s, 'p> {
    source: &'s typed::Program,
    b: Builder<'p>,
    instances: BTreeMap<(DefId, Vec<Type>), FunId>,
    pending: VecDeque<(DefId, Vec<Type>, FunId)>,
    /// How often each function name was used.
    names: BTreeMap<Symbol, usize>,
    type_env: BTreeMap<TypeParamId, Type>,
    vars: BTreeMap<VarId, Var>,
    local_functions: BTreeMap<VarId, LocalFunction<'s>>,
    equalities: BTreeMap<Type, FunId>,
    /// The algorithm asked for by `#[ad(..)]` on the derivative that comes next.
    algorithm: Option<Symbol>,
    /// Arms of `match` elaborated so far.
    arms: usize,
    /// Whether a definition of the prelude is being elaborated. Its terms get no position, so that whatever stops
    /// inside it is reported where the user called it.
    in_prelude: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'s> Elaborator<'s, '_> {
    fn run(&mut self) {
        self.declare_types();
        for (id, def) in self.source.defs.iter_enumerated() {
            if let Some(entry) = &def.entry {
                self.b.span = Some(def.span);
                self.entry_point(id, entry);
            }
        }
        while let Some((id, types, fun)) = self.pending.pop_front() {
            self.define(id, types, fun);
            if !self.diagnostics.is_empty() && self.diagnostics.len() > 20 {
                break;
            }
        }
    }

    fn declare_types(&mut self) {
        let mut names: BTreeMap<Symbol, usize> = BTreeMap::new();
        let mut ids = Vec::new();
        for named in self.source.types.iter() {
            let count = names.entry(named.name.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { named.name.to_string() } else { format!("{}_{count}", named.name) };
            ids.push(self.b.declare_type(&name));
        }
        for (named, id) in self.source.types.iter().zip(ids) {
            let variants = self.variants(&named.variants);
            self.b.define_type(id, variants);
        }
    }

    fn variants(&mut self, variants: &[(Symbol, Vec<typed::Type>)]) -> Vec<Variant> {
        variants
            .iter()
            .map(|(name, fields)| Variant {
                name: name.clone(),
                fields: fields.iter().map(|t| self.ty(t)).collect(),
            })
            .collect()
    }

    /// The lambda type of a source type, type parameters replaced.
    fn ty(&mut self, ty: &typed::Type) -> Type {
        match ty {
            typed::Type::Scalar(s) => Type::Scalar(*s),
            typed::Type::Array(_, element) => Type::array(self.ty(element)),
            typed::Type::Tuple(items) => Type::tuple(items.iter().map(|t| self.ty(t)).collect::<Vec<_>>()),
            typed::Type::Record(fields) => {
                Type::tuple(fields.iter().map(|(_, t)| self.ty(t)).collect::<Vec<_>>())
            }
            typed::Type::Sum(variants) => Type::Sum(self.variants(variants).into()),
            typed::Type::Fun(_, a, b) => Type::fun(self.ty(a), self.ty(b)),
            typed::Type::Param(id, name) => match self.type_env.get(id) {
                Some(t) => t.clone(),
                None => self.broken(format!("the type parameter {name} has no value")),
            },
            typed::Type::Named(id, _) => {
                use pullback_base::index::Index;
                Type::Named(pullback_lambda::TypeId::new(id.index()))
            }
            typed::Type::Meta(_) => self.broken("a type is not known".to_string()),
            typed::Type::Error => self.broken("a type is wrong".to_string()),
        }
    }

    fn types(&mut self, types: &[typed::Type]) -> Vec<Type> {
        types.iter().map(|t| self.ty(t)).collect()
    }

    /// Reports a typed program that breaks its conventions.
    fn broken(&mut self, message: String) -> Type {
        self.report(Code::Internal, message, "please report this program");
        Type::unit()
    }

    fn report(&mut self, code: Code, message: String, hint: &str) {
        let mut diagnostic = Diagnostic::global(code, message).hint(hint);
        diagnostic.span = self.b.span;
        if self.diagnostics.len() < 50 {
            self.diagnostics.push(diagnostic);
        }
    }

    // ---- definitions

    /// The function for a definition at these types.
    fn instance(&mut self, id: DefId, types: Vec<Type>) -> FunId {
        if let Some(fun) = self.instances.get(&(id, types.clone())) {
            return *fun;
        }
        let def = &self.source.defs[id];
        if self.instances.len() == MAX_INSTANCES {
            self.report(
                Code::TooDeep,
                format!("{} is needed at too many different types", def.name),
                "a definition that uses itself at ever larger types cannot be made monomorphic",
            );
        }
        let outer_env = std::mem::take(&mut self.type_env);
        self.type_env = def.fun.type_params.iter().copied().zip(types.iter().cloned()).collect();
        let outer_span = std::mem::replace(&mut self.b.span, (!def.prelude).then_some(def.span));
        let params: Vec<(String, Type)> =
            def.fun.params.iter().map(|p| (self.pattern_name(p), self.ty(&p.ty))).collect();
        let params: Vec<(&str, Type)> = params.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let result = self.ty(&def.fun.result);
        let name = self.function_name(def);
        let fun = self.b.declare(&name, &params, result, None);
        self.b.span = outer_span;
        self.type_env = outer_env;
        self.instances.insert((id, types.clone()), fun);
        if self.instances.len() <= MAX_INSTANCES {
            self.pending.push_back((id, types, fun));
        }
        fun
    }

    /// A name that no other function has. Entry points, unless hidden behind a function that reorders fields, come
    /// first and keep their own.
    fn function_name(&mut self, def: &typed::Def) -> String {
        let count = self.names.entry(def.name.clone()).or_default();
        *count += 1;
        // `.` cannot stand in a source name, so that a numbered name never meets another.
        if *count == 1 { def.name.to_string() } else { format!("{}.{}", def.name, *count - 1) }
    }

    fn define(&mut self, id: DefId, types: Vec<Type>, fun: FunId) {
        let def = &self.source.defs[id];
        self.type_env = def.fun.type_params.iter().copied().zip(types).collect();
        self.vars.clear();
        self.local_functions.clear();
        self.in_prelude = def.prelude;
        self.b.span = (!def.prelude).then_some(def.span);
        let params = self.b.params(fun);
        let body = self.function_body(&def.fun, &params, def.entry.is_some());
        self.b.define(fun, body);
    }

    /// The body of a function whose parameters are these variables.
    fn function_body(&mut self, fun: &'s typed::Function, params: &[Var], entry: bool) -> Term {
        let mut wraps = Vec::new();
        for (pattern, var) in fun.params.iter().zip(params) {
            self.destructure(pattern, *var, &mut wraps);
        }
        for bind in &fun.sizes {
            self.bind_size(bind, params, None, &mut wraps);
        }
        if fun.needs_checks || entry {
            for check in &fun.checks {
                self.check_size(check, params, None, &mut wraps);
            }
        }
        let body = self.exp(&fun.body);
        self.close(wraps, body)
    }

    /// A function as a (curried) value.
    fn function_value(&mut self, fun: &'s typed::Function) -> Term {
        let params: Vec<Var> = fun.params.iter().map(|p| self.parameter(p)).collect();
        let body = self.function_body(fun, &params, false);
        params.into_iter().rev().fold(body, |b, v| self.b.term(pullback_lambda::Exp::Lam(v, b)))
    }
}
