//! The checker: what a well-formed core program is. This header is its specification.
//!
//! **Names.** Types and functions have different names. Every variable is bound once in the whole program and is used
//! only where it is in scope: after its statement in the same body and the bodies nested there; parameters in their
//! body; loop state in the condition and the body of the loop, the counter in the body.
//!
//! **Types.** The element type of an array is neither a product (other than unit) nor an accumulator; products, sums and
//! accumulators do not hold accumulators; sums have at least one alternative; named types exist. Every statement binds
//! at least one variable, as many as its expression has results, of exactly their types. Operands have the types that
//! [`Exp`] describes: sizes, indices and widths are `i64`, conditions `bool`; primitives exist at their type and get the
//! arguments of the table in `pullback-prim`. Types are compared by structure; a named type equals only itself.
//!
//! **Shapes of operators.** `map`: parameters are the elements of the arrays. `reduce`, `scan`, `reduce_by_index`: the
//! operator takes two groups of values of the neutral elements' types and returns one. Loops: the body returns the state,
//! then the stacked values. `match`: one arm for each alternative, its parameters are the payload. Branches agree.
//! A permutation names each of the first dimensions once.
//!
//! **Accumulators.** Bound by `withacc` and function parameters only; used by views, additions, calls, other names, and as
//! results of the branches of `if` and `match`. They are not results of anything else, are not loop state, and are not
//! mentioned from inside operators of `reduce`, `scan`, `reduce_by_index`, conditions of loops, `vjp`, `jvp` and custom
//! rules unless opened there (those may run any number of times).
//!
//! **Derivatives.** `vjp`, `jvp` and custom rules take and return tangents and cotangents as [`Program::cotangent`] says;
//! [`Rules::NO_AD`] has no `vjp` and `jvp`. Custom rules and marks stay (their primal meaning is that of their body).
//!
//! **Functions.** Bodies return what the function declares; no function returns an accumulator. An interface, flattened,
//! gives the parameter and result types.
//!
//! **Limits.** Bodies nest at most [`MAX_DEPTH`] deep, types likewise.
//!
//! Not checked: shapes (they are run-time values), termination.

use crate::ir::{
    Atom, Body, Check, EntryType, Exp, Fun, Lam, Loop, LoopForm, Program, SliceDim, Soac, Stm, Var, View,
};
use crate::metrics::construct;
use crate::print::Names;
use crate::types::{Type, Variant};
use crate::typing::{active, directions, result_types};
use pullback_base::index::IdTable;
use pullback_base::{Code, Diagnostic, Span, Symbol};
use pullback_prim::{Prim, Scalar};
use std::fmt;

/// The deepest nesting of bodies, and of types, in a well-formed program.
pub const MAX_DEPTH: usize = 300;

/// Which constructs are legal at a stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether `vjp` and `jvp` may occur.
    pub derivatives: bool,
}

impl Rules {
    /// Everything.
    pub const SURFACE: Rules = Rules { derivatives: true };
    /// After differentiation: no `vjp`, no `jvp`.
    pub const NO_AD: Rules = Rules { derivatives: false };
}

/// Why a program is not well-formed. Between passes this is always a bug of Pullback.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// The pass after which it was found; empty if not known.
    pub pass: Symbol,
    /// The function.
    pub function: Symbol,
    /// The first variable of the statement at fault, or the variable itself.
    pub var: Option<Var>,
    /// Its name in the printed program.
    pub name: String,
    /// Its place in the source program, if known.
    pub span: Option<Span>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Malformed {
    /// Says which pass produced the program.
    pub fn after(mut self, pass: &str) -> Self {
        self.pass = pass.into();
        self
    }
    /// The same as a diagnostic (of class "bug").
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut d = Diagnostic::global(Code::Internal, self.to_string());
        d.span = self.span;
        d
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed core")?;
        if !self.pass.as_str().is_empty() {
            write!(f, " after pass `{}`", self.pass)?;
        }
        if !self.function.as_str().is_empty() {
            write!(f, " in function `{}`", self.function)?;
        }
        if !self.name.is_empty() {
            write!(f, " at `{}`", self.name)?;
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}
impl std::error::Error for Malformed {}

/// Checks a whole program against the specification in the header of this module. Cost: its size (times a logarithm).
pub fn check(program: &Program, rules: Rules) -> Result<(), Malformed> {
    let mut checker = Checker {
        program,
        rules,
        scope: IdTable::with_room(program.vars.len()),
        bound: IdTable::with_room(program.vars.len()),
        barrier: 0,
        depth: 0,
        at: None,
        function: Symbol::new(""),
    };
    checker.program().map_err(|wrong| {
        let names = Names::of(program);
        let info = checker.at.and_then(|v| program.vars.get(v));
        Malformed {
            pass: Symbol::new(""),
            function: checker.function.clone(),
            var: checker.at,
            name: checker.at.map_or_else(String::new, |v| names.name(program, v)),
            span: info.and_then(|i| i.origin.span),
            expected: wrong.expected,
            found: wrong.found,
        }
    })
}

struct Wrong {
    expected: String,
    found: String,
}
type Checked<T = ()> = Result<T, Wrong>;

fn wrong<T>(expected: impl Into<String>, found: impl Into<String>) -> Checked<T> {
    Err(Wrong { expected: expected.into(), found: found.into() })
}

struct Checker<'p> {
    program: &'p Program,
    rules: Rules,
    /// Variables in scope, with the number of barriers around their binding.
    scope: IdTable<Var, u32>,
    bound: IdTable<Var, ()>,
    /// How many constructs around here keep outer accumulators out.
    barrier: u32,
    depth: usize,
    at: Option<Var>,
    function: Symbol,
}

impl Checker<'_> {
    fn program(&mut self) -> Checked {
        let mut names = std::collections::BTreeSet::new();
        for def in self.program.types.iter() {
            if !names.insert(&def.name) {
                return wrong("different names of types", format!("two types `{}`", def.name));
            }
            self.variants(&def.variants, 0)?;
        }
        let mut names = std::collections::BTreeSet::new();
        for fun in self.program.funs.iter() {
            if !names.insert(&fun.name) {
                return wrong("different names of functions", format!("two functions `{}`", fun.name));
            }
        }
        for fun in self.program.funs.iter() {
            self.function(fun)?;
        }
        Ok(())
    }

    fn function(&mut self, fun: &Fun) -> Checked {
        self.function = fun.name.clone();
        self.at = None;
        for p in &fun.params {
            self.bind(*p)?;
        }
        for t in &fun.results {
            self.value_type(t, 0)?;
        }
        self.at = None;
        if let Some(entry) = &fun.entry {
            let params: Vec<EntryType> = entry.params.iter().map(|p| p.1.clone()).collect();
            let types: Vec<Type> = fun.params.iter().map(|p| self.program.vars[*p].ty.clone()).collect();
            self.interface(&params, &types, "parameters")?;
            self.interface(std::slice::from_ref(&entry.result), &fun.results, "results")?;
        }
        let found = self.body(&fun.body)?;
        for p in &fun.params {
            self.scope.remove(*p);
        }
        self.at = None;
        self.same(&fun.results, &found, "results of the function")
    }

    fn interface(&self, entry: &[EntryType], types: &[Type], what: &str) -> Checked {
        let mut flat = Vec::new();
        for e in entry {
            flatten(e, 0, &mut flat)?;
        }
        let agree = |e: &Type, t: &Type| equal_through_names(self.program, e, t);
        if flat.len() == types.len() && flat.iter().zip(types).all(|(e, t)| agree(e, t)) {
            return Ok(());
        }
        wrong(
            format!("{what} of types {} as in the interface", list(self.program, &flat)),
            list(self.program, types),
        )
    }

    // Types

    fn any_type(&self, t: &Type) -> Checked {
        match t {
            Type::Acc(t) => self.value_type(t, 1),
            t => self.value_type(t, 0),
        }
    }
    fn value_type(&self, t: &Type, depth: usize) -> Checked {
        if depth > MAX_DEPTH {
            return wrong(format!("types nested at most {MAX_DEPTH} deep"), "a deeper one");
        }
        match t {
            Type::Scalar(_) => Ok(()),
            Type::Tuple(ts) => ts.iter().try_for_each(|t| self.value_type(t, depth + 1)),
            Type::Sum(vs) => self.variants(vs, depth + 1),
            Type::Named(id) => match self.program.types.get(*id) {
                Some(_) => Ok(()),
                None => wrong("a type of the type table", format!("{id:?}")),
            },
            Type::Array(t) => {
                if let Type::Tuple(ts) = &**t
                    && !ts.is_empty()
                {
                    return wrong("an element type that is no product", self.show(t));
                }
                self.value_type(t, depth + 1)
            }
            Type::Acc(_) => wrong("a type without accumulators inside", self.show(t)),
        }
    }
    fn variants(&self, variants: &[Variant], depth: usize) -> Checked {
        if variants.is_empty() {
            return wrong("a sum with alternatives", "none");
        }
        variants.iter().flat_map(|v| &v.fields).try_for_each(|t| self.value_type(t, depth))
    }
    fn show(&self, t: &Type) -> String {
        crate::print::print_type(self.program, t)
    }
    fn same(&self, expected: &[Type], found: &[Type], what: &str) -> Checked {
        if expected == found {
            return Ok(());
        }
        wrong(format!("{what} of types {}", list(self.program, expected)), list(self.program, found))
    }
    fn equal(&self, expected: &Type, found: &Type, what: &str) -> Checked {
        if expected == found {
            return Ok(());
        }
        wrong(format!("{what} of type {}", self.show(expected)), self.show(found))
    }

    // Variables

    fn bind(&mut self, v: Var) -> Checked {
        self.at = Some(v);
        let Some(info) = self.program.vars.get(v) else {
            return wrong("a variable of the variable table", format!("{v:?}"));
        };
        self.any_type(&info.ty)?;
        if self.bound.insert(v, ()).is_some() {
            return wrong("a variable bound once", "a second binding");
        }
        self.scope.insert(v, self.barrier);
        Ok(())
    }
    fn ty(&self, v: Var) -> Type {
        self.program.vars[v].ty.clone()
    }
    fn types(&self, vars: &[Var]) -> Vec<Type> {
        vars.iter().map(|v| self.ty(*v)).collect()
    }
    /// An operand that may be an accumulator.
    fn atom(&self, a: Atom) -> Checked<Type> {
        let Atom::Var(v) = a else { return Ok(self.program.atom_type(a)) };
        let Some(level) = self.scope.get(v) else {
            let name = Names::of(self.program).name(self.program, v);
            return wrong("a variable in scope", format!("`{name}`"));
        };
        let t = self.ty(v);
        if t.is_acc() && *level < self.barrier {
            let name = Names::of(self.program).name(self.program, v);
            return wrong("no accumulator of an enclosing construct", format!("`{name}`"));
        }
        Ok(t)
    }
    /// An operand that is read.
    fn value(&self, a: Atom) -> Checked<Type> {
        match self.atom(a)? {
            Type::Acc(t) => {
                wrong("a value that can be read", format!("an accumulator for {}", self.show(&t)))
            }
            t => Ok(t),
        }
    }
    fn values(&self, atoms: &[Atom]) -> Checked<Vec<Type>> {
        atoms.iter().map(|a| self.value(*a)).collect()
    }
    fn scalar(&self, a: Atom, s: Scalar, what: &str) -> Checked {
        let t = self.value(a)?;
        self.equal(&Type::Scalar(s), &t, what)
    }
    fn ints(&self, atoms: &[Atom], what: &str) -> Checked {
        atoms.iter().try_for_each(|a| self.scalar(*a, Scalar::I64, what))
    }
    fn prim(&self, prim: Prim, args: &[Atom]) -> Checked {
        if !prim.is_valid() {
            return wrong("a primitive of the table", prim.name());
        }
        let (params, found) = (prim.params(), self.values(args)?);
        if found.len() == params.len() && found.iter().zip(&params).all(|(t, s)| *t == Type::Scalar(*s)) {
            return Ok(());
        }
        let params: Vec<Type> = params.into_iter().map(Type::Scalar).collect();
        self.same(&params, &found, &format!("arguments of {prim}"))
    }
    fn check(&self, check: Check, args: &[Atom]) -> Checked {
        let least = match check {
            Check::Index(count) => 2 * count.max(1),
            Check::Slice => 4,
            Check::Gather => 2,
            Check::Prim(prim) => return self.prim(prim, args),
            Check::Sizes | Check::Rows => 1,
            Check::Reshape(count) => count + 1,
            Check::Shapes(_, rank) => 2 * rank.max(1),
        };
        if args.len() < least || (check == Check::Slice && args.len() > least) {
            return wrong(format!("{least} operands of a check"), args.len().to_string());
        }
        if check == Check::Rows {
            let sizes = Type::array(Type::I64);
            return args.iter().try_for_each(|a| self.equal(&sizes, &self.value(*a)?, "sizes of rows"));
        }
        if check == Check::Gather {
            self.equal(&Type::array(Type::I64), &self.value(args[0])?, "indices")?;
            return self.ints(&args[1..], "sizes");
        }
        self.ints(args, "operands of a check")
    }
    fn array(&self, a: Atom) -> Checked<Type> {
        match self.value(a)? {
            Type::Array(t) => Ok(Type::clone(&t)),
            t => wrong("an array", self.show(&t)),
        }
    }
    fn elements(&self, arrays: &[Atom]) -> Checked<Vec<Type>> {
        arrays.iter().map(|a| self.array(*a)).collect()
    }
    fn accumulator(&self, a: Atom) -> Checked<Type> {
        match self.atom(a)? {
            Type::Acc(t) => Ok(Type::clone(&t)),
            t => wrong("an accumulator", self.show(&t)),
        }
    }

    // Bodies

    /// Checks a body; returns the types of its results.
    fn body(&mut self, body: &Body) -> Checked<Vec<Type>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return wrong(format!("bodies nested at most {MAX_DEPTH} deep"), "a deeper one");
        }
        let outer = self.at;
        for stm in &body.stms {
            self.stm(stm)?;
        }
        self.at = outer;
        let types = body.result.iter().map(|a| self.atom(*a)).collect();
        for stm in &body.stms {
            for v in &stm.pat {
                self.scope.remove(*v);
            }
        }
        self.depth -= 1;
        types
    }
    /// Checks a body whose results are values.
    fn closed(&mut self, body: &Body) -> Checked<Vec<Type>> {
        let types = self.body(body)?;
        for t in &types {
            if t.is_acc() {
                return wrong("results that are values", self.show(t));
            }
        }
        Ok(types)
    }
    fn with_params<T>(&mut self, params: &[Var], inner: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        let outer = self.at;
        for p in params {
            self.bind(*p)?;
        }
        self.at = outer;
        let result = inner(self)?;
        for p in params {
            self.scope.remove(*p);
        }
        Ok(result)
    }
    /// Checks a lambda with parameters of these types; returns the types of its results.
    fn lam(&mut self, lam: &Lam, params: &[Type], what: &str) -> Checked<Vec<Type>> {
        if lam.params.iter().any(|p| self.program.vars.get(*p).is_none()) {
            return wrong("variables of the variable table", format!("{:?}", lam.params));
        }
        self.same(params, &self.types(&lam.params), what)?;
        self.with_params(&lam.params, |me| me.closed(&lam.body))
    }
    /// As [`Self::lam`], for code that must not mention outer accumulators.
    fn pure_lam(&mut self, lam: &Lam, params: &[Type], what: &str) -> Checked<Vec<Type>> {
        self.barrier += 1;
        let types = self.lam(lam, params, what)?;
        self.barrier -= 1;
        Ok(types)
    }

    fn stm(&mut self, stm: &Stm) -> Checked {
        let Some(first) = stm.pat.first() else {
            return wrong("a statement that binds a variable", "none bound");
        };
        if let Some(v) = stm.pat.iter().find(|v| self.program.vars.get(**v).is_none()) {
            return wrong("a variable of the variable table", format!("{v:?}"));
        }
        self.at = Some(*first);
        self.exp(&stm.exp)?;
        self.at = Some(*first);
        let results = match result_types(self.program, &stm.exp) {
            Ok(types) => types,
            Err(text) => return wrong("a well-typed expression", text),
        };
        self.same(&results, &self.types(&stm.pat), "variables for results")?;
        for v in &stm.pat {
            self.bind(*v)?;
        }
        Ok(())
    }

    // Expressions: the operands. Result types are compared by `stm`.

    fn exp(&mut self, exp: &Exp) -> Checked {
        match exp {
            Exp::Atom(a) => self.atom(*a).map(drop),
            Exp::StopGradient(a) => self.value(*a).map(drop),
            Exp::Prim(prim, args) => self.prim(*prim, args),
            Exp::Tuple(items) => self.values(items).map(drop),
            Exp::Proj(a, i) => match self.value(*a)? {
                Type::Tuple(ts) if *i < ts.len() => Ok(()),
                t => wrong(format!("a product with a component {i}"), self.show(&t)),
            },
            Exp::Inject(t, k, fields) => self.inject(t, *k, fields),
            Exp::Match(..) | Exp::If(..) => self.branches(exp),
            Exp::Loop(l) => self.loop_(l),
            Exp::Call(f, args) => {
                let Some(fun) = self.program.funs.get(*f) else {
                    return wrong("a function of the program", format!("{f:?}"));
                };
                let found = args.iter().map(|a| self.atom(*a)).collect::<Checked<Vec<_>>>()?;
                self.same(&self.types(&fun.params), &found, &format!("arguments of `{}`", fun.name))
            }
            Exp::Soac(soac) => self.soac(soac),
            Exp::WithAcc(inits, lam) => {
                let types: Vec<Type> = self.values(inits)?.into_iter().map(Type::acc).collect();
                self.lam(lam, &types, "accumulators").map(drop)
            }
            Exp::AccView(acc, view) => {
                let t = self.accumulator(*acc)?;
                self.view(&t, view)
            }
            Exp::AccAdd(acc, ix, value) => {
                let t = self.accumulator(*acc)?;
                self.ints(ix, "indices")?;
                let Some(part) = t.peel(ix.len()) else {
                    return wrong(format!("an accumulator of rank {} at least", ix.len()), self.show(&t));
                };
                self.equal(part, &self.value(*value)?, "an added value")
            }
            Exp::Plus(a, b) => {
                let t = self.value(*a)?;
                self.equal(&t, &self.value(*b)?, "a second operand")
            }
            Exp::Vjp { lam, args, cotangents, seeds, algorithm: _ } => {
                self.derivative("vjp", *seeds)?;
                let results = self.pure_lam(lam, &self.values(args)?, "parameters")?;
                let expected = directions(self.active(&results)?, *seeds);
                self.same(&expected, &self.values(cotangents)?, "cotangents")
            }
            Exp::Jvp { lam, args, tangents, seeds, algorithm: _ } => {
                self.derivative("jvp", *seeds)?;
                let types = self.values(args)?;
                self.pure_lam(lam, &types, "parameters")?;
                let expected = directions(self.active(&types)?, *seeds);
                self.same(&expected, &self.values(tangents)?, "tangents")
            }
            Exp::Custom { primal, rule, args, tape } => {
                let types = self.values(args)?;
                let results = self.pure_lam(primal, &types, "parameters")?;
                let Some(about) = results.get(*tape..) else {
                    return wrong(format!("a tape of at most {} results", results.len()), tape.to_string());
                };
                let mut rule_params = types.clone();
                rule_params.extend(results.iter().cloned());
                rule_params.extend(self.active(about)?);
                let found = self.pure_lam(rule, &rule_params, "parameters of the rule")?;
                self.same(&self.active(&types)?, &found, "results of the rule")
            }
            Exp::Marked(_, body) => self.closed(body).map(drop),
            Exp::Par(bodies) => bodies.iter().try_for_each(|b| self.closed(b).map(drop)),
            Exp::Assert(c, _, values) => {
                self.scalar(*c, Scalar::Bool, "a condition")?;
                self.ints(values, "sizes that must agree")
            }
            Exp::Check(check, args) => self.check(*check, args),
            Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..) => self.array_exp(exp),
        }
    }

    fn derivative(&self, name: &str, seeds: Option<Atom>) -> Checked {
        if !self.rules.derivatives {
            return wrong("no derivatives at this stage", name);
        }
        seeds.map_or(Ok(()), |k| self.ints(&[k], "the number of seeds"))
    }
    fn active(&self, types: &[Type]) -> Checked<Vec<Type>> {
        active(self.program, types).map_err(|found| Wrong { expected: "types with cotangents".into(), found })
    }

    fn inject(&self, t: &Type, k: usize, fields: &[Atom]) -> Checked {
        self.value_type(t, 0)?;
        let found = self.values(fields)?;
        match self.program.variants(t).map(|vs| vs.get(k)) {
            Some(Some(v)) => self.same(&v.fields, &found, "a payload"),
            Some(None) => wrong(format!("an alternative {k}"), self.show(t)),
            None => wrong("a sum type", self.show(t)),
        }
    }

    fn branches(&mut self, exp: &Exp) -> Checked {
        let mut results = Vec::new();
        match exp {
            Exp::If(c, then, otherwise) => {
                self.scalar(*c, Scalar::Bool, "a condition")?;
                results.push(self.body(then)?);
                results.push(self.body(otherwise)?);
            }
            Exp::Match(a, arms) => {
                let t = self.value(*a)?;
                let Some(variants) = self.program.variants(&t).map(<[Variant]>::to_vec) else {
                    return wrong("a value of a sum type", self.show(&t));
                };
                if variants.len() != arms.len() {
                    return wrong(format!("{} arms", variants.len()), arms.len().to_string());
                }
                for (v, arm) in variants.iter().zip(arms) {
                    if arm.params.iter().any(|p| self.program.vars.get(*p).is_none()) {
                        return wrong("variables of the variable table", format!("{:?}", arm.params));
                    }
                    self.same(&v.fields, &self.types(&arm.params), "parameters for the payload")?;
                    results.push(self.with_params(&arm.params, |me| me.body(&arm.body))?);
                }
            }
            _ => return wrong("a conditional or a match", construct(exp)),
        }
        for other in results.iter().skip(1) {
            self.same(&results[0], other, "results of a branch")?;
        }
        Ok(())
    }

    fn loop_(&mut self, l: &Loop) -> Checked {
        let params: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        if params.iter().any(|p| self.program.vars.get(*p).is_none()) {
            return wrong("variables of the variable table", format!("{params:?}"));
        }
        let inits = l.params.iter().map(|p| self.value(p.1)).collect::<Checked<Vec<_>>>()?;
        self.same(&self.types(&params), &inits, "first values of the state")?;
        let mut bound = params.clone();
        match &l.form {
            LoopForm::For { i, n } => {
                let t = self.value(*n)?;
                if !t.scalar().is_some_and(Scalar::is_integer) {
                    return wrong("a number of iterations of an integer type", self.show(&t));
                }
                let Some(info) = self.program.vars.get(*i) else {
                    return wrong("a variable of the variable table", format!("{i:?}"));
                };
                self.equal(&t, &info.ty, "a counter")?;
                bound.push(*i);
            }
            LoopForm::While(_) => {}
        }
        let results = self.with_params(&bound, |me| {
            if let LoopForm::While(cond) = &l.form {
                me.barrier += 1;
                let found = me.closed(cond)?;
                me.barrier -= 1;
                me.same(&[Type::BOOL], &found, "a condition")?;
            }
            me.closed(&l.body)
        })?;
        if results.len() != params.len() + l.collect {
            let expected = format!("{} state components and {} stacked values", params.len(), l.collect);
            return wrong(expected, format!("{} results", results.len()));
        }
        self.same(&self.types(&params), &results[..params.len()], "next state")
    }

    fn array_exp(&self, exp: &Exp) -> Checked {
        match exp {
            Exp::ArrayLit(t, items) => {
                self.value_type(t, 0)?;
                items.iter().try_for_each(|a| self.equal(t, &self.value(*a)?, "an element"))
            }
            Exp::Index(a, ix) => self.part(*a, ix).map(drop),
            Exp::Slice(a, slice) => {
                self.array(*a)?;
                self.slice(slice)
            }
            Exp::Update(a, ix, v) => {
                let part = self.part(*a, ix)?;
                self.equal(&part, &self.value(*v)?, "a new value")
            }
            Exp::UpdateSlice(a, slice, v) => {
                self.array(*a)?;
                self.slice(slice)?;
                self.equal(&self.value(*a)?, &self.value(*v)?, "a new value")
            }
            Exp::Gather(a, is) => {
                self.array(*a)?;
                self.equal(&Type::array(Type::I64), &self.value(*is)?, "indices")
            }
            Exp::Size(a, d) => {
                let t = self.value(*a)?;
                if *d < t.rank() {
                    Ok(())
                } else {
                    wrong(format!("an array with a dimension {d}"), self.show(&t))
                }
            }
            Exp::Iota(n) => self.scalar(*n, Scalar::I64, "a size"),
            Exp::Replicate(shape, v) => {
                self.ints(shape, "sizes")?;
                self.value(*v).map(drop)
            }
            Exp::Rearrange(perm, a) => self.permutation(perm, &self.value(*a)?),
            Exp::Reshape { shape, from, array } => {
                self.ints(shape, "sizes")?;
                let t = self.value(*array)?;
                if *from <= t.rank() {
                    Ok(())
                } else {
                    wrong(format!("an array of rank {from} at least"), self.show(&t))
                }
            }
            Exp::Concat(arrays) => {
                let Some(first) = arrays.first() else { return wrong("arrays to concatenate", "none") };
                self.array(*first)?;
                let t = self.value(*first)?;
                arrays.iter().try_for_each(|a| self.equal(&t, &self.value(*a)?, "an array"))
            }
            Exp::Reverse(a) => self.array(*a).map(drop),
            Exp::Rotate(a, k) => {
                self.array(*a)?;
                self.scalar(*k, Scalar::I64, "a distance")
            }
            _ => wrong("an array operation", construct(exp)),
        }
    }
    fn part(&self, a: Atom, ix: &[Atom]) -> Checked<Type> {
        self.ints(ix, "indices")?;
        let t = self.value(a)?;
        match t.peel(ix.len()) {
            Some(part) => Ok(part.clone()),
            None => wrong(format!("an array of rank {} at least", ix.len()), self.show(&t)),
        }
    }
    fn slice(&self, s: &SliceDim) -> Checked {
        self.ints(&[s.start, s.len, s.stride], "bounds of a slice")
    }
    fn permutation(&self, perm: &[usize], t: &Type) -> Checked {
        let mut sorted = perm.to_vec();
        sorted.sort_unstable();
        if sorted.iter().enumerate().any(|(i, p)| i != *p) {
            return wrong("a permutation", format!("{perm:?}"));
        }
        if perm.len() <= t.rank() {
            Ok(())
        } else {
            wrong(format!("an array of rank {} at least", perm.len()), self.show(t))
        }
    }
    fn view(&self, t: &Type, view: &View) -> Checked {
        match view {
            View::Index(ix) => self.ints(ix, "indices"),
            View::Slice(s) => self.slice(s),
            View::Proj(_) | View::Reverse => Ok(()),
            View::Rearrange(perm) => self.permutation(perm, t),
            View::Reshape { shape, from: _ } => self.ints(shape, "sizes"),
            View::Rotate(k) => self.scalar(*k, Scalar::I64, "a distance"),
        }
    }

    fn soac(&mut self, soac: &Soac) -> Checked {
        match soac {
            Soac::Map { width, lam, arrays } => {
                self.scalar(*width, Scalar::I64, "a width")?;
                self.lam(lam, &self.elements(arrays)?, "parameters").map(drop)
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative: _ }
            | Soac::Scan { width, lam, neutral, arrays } => {
                self.scalar(*width, Scalar::I64, "a width")?;
                let types = self.values(neutral)?;
                self.same(&types, &self.elements(arrays)?, "elements")?;
                self.operator(lam, &types)
            }
            Soac::Fused { form: _, width, pre, lam, neutral, arrays } => {
                self.scalar(*width, Scalar::I64, "a width")?;
                let types = self.values(neutral)?;
                let found = self.lam(pre, &self.elements(arrays)?, "parameters")?;
                self.same(&types, found.get(..types.len()).unwrap_or(&found), "values to combine")?;
                self.operator(lam, &types)
            }
            Soac::Hist { width, lam, neutral, dst, indices, values } => {
                self.scalar(*width, Scalar::I64, "a width")?;
                let types = self.values(neutral)?;
                self.same(&types, &self.elements(dst)?, "elements of the destination")?;
                self.same(&types, &self.elements(values)?, "elements of the values")?;
                self.equal(&Type::array(Type::I64), &self.value(*indices)?, "indices")?;
                self.operator(lam, &types)
            }
            Soac::Scatter { width, dst, indices, values } => {
                self.scalar(*width, Scalar::I64, "a width")?;
                self.equal(&Type::array(Type::I64), &self.value(*indices)?, "indices")?;
                let t = self.array(*dst)?;
                self.equal(&t, &self.array(*values)?, "elements of the values")
            }
        }
    }
    fn operator(&mut self, lam: &Lam, types: &[Type]) -> Checked {
        let twice: Vec<Type> = types.iter().chain(types).cloned().collect();
        let found = self.pure_lam(lam, &twice, "parameters")?;
        self.same(types, &found, "results of the operator")
    }
}

fn list(program: &Program, types: &[Type]) -> String {
    let shown: Vec<String> = types.iter().map(|t| crate::print::print_type(program, t)).collect();
    format!("({})", shown.join(", "))
}

/// The core types that a user's type stands for (structure of sums, no names).
fn flatten(e: &EntryType, depth: usize, out: &mut Vec<Type>) -> Checked {
    if depth > MAX_DEPTH {
        return wrong(format!("types nested at most {MAX_DEPTH} deep"), "a deeper one in the interface");
    }
    match e {
        EntryType::Scalar(s) => out.push(Type::Scalar(*s)),
        EntryType::Array(_, t) => {
            let mut inner = Vec::new();
            flatten(t, depth + 1, &mut inner)?;
            out.extend(inner.into_iter().map(Type::array));
        }
        EntryType::Tuple(ts) => ts.iter().try_for_each(|t| flatten(t, depth + 1, out))?,
        EntryType::Record(fs) => fs.iter().try_for_each(|(_, t)| flatten(t, depth + 1, out))?,
        EntryType::Sum(vs) => {
            let variants = vs.iter().map(|(name, fields)| {
                let mut flat = Vec::new();
                fields.iter().try_for_each(|t| flatten(t, depth + 1, &mut flat))?;
                Ok(Variant { name: name.clone(), fields: flat })
            });
            out.push(Type::Sum(variants.collect::<Checked<_>>()?));
        }
    }
    Ok(())
}

/// Whether an interface type (without names) is the structure of a core type.
fn equal_through_names(program: &Program, e: &Type, t: &Type) -> bool {
    match (e, t) {
        (Type::Array(e), Type::Array(t)) => equal_through_names(program, e, t),
        (Type::Sum(es), Type::Sum(_) | Type::Named(_)) => program.variants(t).is_some_and(|ts| {
            es.len() == ts.len()
                && es.iter().zip(ts).all(|(e, t)| {
                    e.name == t.name
                        && e.fields.len() == t.fields.len()
                        && e.fields.iter().zip(&t.fields).all(|(e, t)| equal_through_names(program, e, t))
                })
        }),
        (e, t) => e == t,
    }
}
