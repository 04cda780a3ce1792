//! Reverse derivatives by the algorithms on lambda (`--ad chad`, ...), which the reference interpreter runs.
//!
//! The entry point is inlined (unless its copy would be too large), its loops become functions that call themselves where the algorithm takes these, it is transformed,
//! and given cotangents of the types of its values ([`pullback_ad::chad::dense`]). Outside it looks like a
//! derivative on core: one value per leaf of the arguments, then one cotangent per leaf of the result; the results, then one cotangent per
//! wanted leaf.

use crate::derive::Kind;
use crate::session::{EntryPoint, Ready, Session, deep};
use crate::{Backend, Leaf};
use pullback_ad::Unsupported;
use pullback_ad::chad::dense::dense_vjp;
use pullback_ad::chad::parts::forward_pass;
use pullback_ad::chad::{c_accumulating, d_arrays};
use pullback_ad::on_lambda::OnLambda as Algorithm;
use pullback_base::{Code, Diagnostic, RuntimeError, RuntimeErrorKind};
use pullback_core::{Atom, Builder, EntryType, Exp, Program as Core, Type as CoreType, Value};
use pullback_interp::core::{Options, Outcome};
use pullback_lambda::inline::{Loops, inline};
use pullback_lambda::print::print_reachable;
use pullback_lambda::{FunId, Program, Type};
use std::sync::Arc;

/// The most terms that inlining may copy: calls and functions stay as they are in programs where more would be needed.
const INLINE_LIMIT: usize = 1 << 18;

/// What of a derivative is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Entry,
    Derivative,
}

/// A derivative by an algorithm on lambda, or the entry point beside it.
#[derive(Clone, Debug)]
pub struct OnLambda {
    program: Arc<Program>,
    runs: Runs,
    /// `(arguments, cotangent) -> (value, cotangents)`
    fun: FunId,
    /// The entry point, inlined.
    entry: FunId,
    /// What the algorithm itself made.
    made: FunId,
    params: Vec<Type>,
    result: Type,
    wanted: Vec<bool>,
}

/// The reverse derivative of an entry point. A refusal without a place has that of the entry point.
pub(crate) fn derivative(
    session: &Session,
    algorithm: &Algorithm,
    entry: &EntryPoint,
    of: (Kind, &[bool]),
    watch: &mut dyn FnMut(&'static str, &Core),
) -> Result<Ready, Diagnostic> {
    let found = found(session, entry).map(|(program, f)| (program.clone(), f));
    made(session, algorithm, entry, found, of, watch).map_err(|d| with_place(session, entry, d))
}

/// The entry point on lambda.
fn found<'s>(session: &'s Session, entry: &EntryPoint) -> Option<(&'s Program, FunId)> {
    let program = session.lambda.as_ref()?;
    let same = |f: &FunId| program.funs[*f].entry.is_some() && program.funs[*f].name.as_str() == entry.name;
    Some((program, program.funs.ids().find(same)?))
}

/// A refusal without a place has that of the entry point.
pub(crate) fn with_place(session: &Session, entry: &EntryPoint, mut d: Diagnostic) -> Diagnostic {
    if d.code == Code::Unsupported && d.span.is_none() {
        d.span = found(session, entry).and_then(|(program, f)| program.funs[f].span);
    }
    d
}

/// The same with the entry point on lambda, if there is one.
fn made(
    session: &Session,
    algorithm: &Algorithm,
    entry: &EntryPoint,
    found: Option<(Program, FunId)>,
    (kind, wanted): (Kind, &[bool]),
    watch: &mut dyn FnMut(&'static str, &Core),
) -> Result<Ready, Diagnostic> {
    let refuse = |message: String, hint: &str| Diagnostic::global(Code::Unsupported, message).hint(hint);
    let id = algorithm.id;
    if kind != Kind::Vjp {
        let message = format!(
            "`{id}` gives the reverse derivative for one cotangent, not several or second derivatives"
        );
        return Err(refuse(message, "use `pullback grad` or `pullback vjp`, or leave out --ad"));
    }
    if let Some(leaf) = entry.parameters.iter().chain(&entry.results).find(|l| !is_plain(&l.ty)) {
        let message = format!(
            "`{id}` cannot differentiate an entry point with a value of a sum type (`{}`)",
            name(leaf)
        );
        return Err(refuse(message, "make the value inside of the program, or use `fast_chad`"));
    }
    if let Some(leaf) = entry.results.iter().find(|l| is_discrete_array(&l.ty)) {
        let message = format!(
            "`{id}` cannot differentiate an entry point whose result has an array without floats (`{}`)",
            name(leaf)
        );
        return Err(refuse(message, "leave the array out of the result, or use `fast_chad`"));
    }
    let start = std::time::Instant::now();
    let Some((mut program, f)) = found else {
        let message = format!("`{id}` needs a program in the source language");
        return Err(refuse(message, "use `fast_chad`"));
    };
    let loops = if algorithm.recursion { Loops::Functions } else { Loops::Kept };
    let copy = inline(&mut program, f, loops, INLINE_LIMIT);
    let inlined = copy.unwrap_or(f);
    pullback_lambda::choose::operators_choose(&mut program, inlined);
    program.ieee_partials = session.settings.choice.ieee_partials;
    let made = (algorithm.vjp)(&mut program, inlined).map_err(|e| {
        // It may be the word of an algorithm that this one is made of.
        let e = Unsupported { algorithm: id, ..e };
        let mut d = e.to_diagnostic();
        if e.construct == c_accumulating::ARRAYS {
            d = d.hint(format!("`{}` does", d_arrays::ID));
        }
        if copy.is_none() {
            d = d.hint(format!(
                "functions were not replaced by their bodies, for that would copy more than {INLINE_LIMIT} terms"
            ));
        }
        d
    })?;
    let fun = dense_vjp(&mut program, inlined, made);
    pullback_lambda::check::check(&program).map_err(|errors| malformed(id, errors))?;
    if !session.settings.runs_on_lambda() {
        return lowered(session, id, entry, (&program, fun), wanted, watch);
    }
    let params = program.funs[inlined].params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let result = program.funs[inlined].result.clone();
    let mut ready = Ready::new(session.program.clone(), entry.fun, Backend::Interp);
    ready.stages =
        vec![("front end", session.front_seconds), ("differentiate", start.elapsed().as_secs_f64())];
    let (program, runs) = (Arc::new(program), Runs::Derivative);
    ready.on_lambda =
        Some(OnLambda { program, runs, fun, entry: inlined, made, params, result, wanted: wanted.to_vec() });
    Ok(ready)
}

/// The same as a function on core.
fn lowered(
    session: &Session,
    id: &str,
    entry: &EntryPoint,
    (program, fun): (&Program, FunId),
    wanted: &[bool],
    watch: &mut dyn FnMut(&'static str, &Core),
) -> Result<Ready, Diagnostic> {
    let first = |errors: Vec<Diagnostic>| malformed(id, errors);
    let (mut core, funs) = deep(|| pullback_elab::lower_functions(program, &[fun])).map_err(|errors| {
        let d = first(errors);
        d.hint(format!("`{id}` runs it in the reference interpreter: use --backend interp"))
    })?;
    let [fun] = funs[..] else { return Err(first(Vec::new())) };
    let floats: Vec<Option<Value>> = entry.result_types.iter().map(discrete_zero).collect();
    let inner = core.funs[fun].clone();
    let count = entry.parameter_types.len();
    let seeds = inner.params.iter().skip(count).zip(&floats).filter(|(_, zero)| zero.is_none());
    let given: Vec<_> = inner.params.iter().take(count).chain(seeds.map(|(p, _)| p)).copied().collect();
    let hints: Vec<String> = given.iter().map(|p| core.vars[*p].hint.to_string()).collect();
    let types = given.iter().map(|p| core.vars[*p].ty.clone());
    let params: Vec<(&str, CoreType)> = hints.iter().map(String::as_str).zip(types).collect();
    let kept = |k: usize| k < floats.len() || wanted.get(k - floats.len()).copied().unwrap_or(false);
    let results =
        inner.results.iter().enumerate().filter(|(k, _)| kept(*k)).map(|(_, t)| t.clone()).collect();
    let name = format!("{}_{}", entry.name, id.replace('-', "_"));
    let wrapper = Builder::function(&mut core, &name, &params, results, |b, vars| {
        let mut args: Vec<Atom> = vars[..count].iter().map(|&v| v.into()).collect();
        let mut seeds = vars[count..].iter();
        for zero in &floats {
            args.extend(match zero {
                Some(Value::Scalar(zero)) => Some(Atom::Const(*zero)),
                _ => seeds.next().map(|&v| v.into()),
            });
        }
        let all = b.emit_all(Exp::Call(fun, args), "r");
        all.into_iter().enumerate().filter(|(k, _)| kept(*k)).map(|(_, v)| v.into()).collect()
    });
    pullback_core::check::check(&core, pullback_core::check::Rules::SURFACE).map_err(|e| {
        Diagnostic::global(Code::Internal, format!("what `{id}` made is malformed in core: {e}"))
    })?;
    // What was the entry point's has no mark any more: all checks are kept.
    pullback_opt::keep_all_checks(&mut core);
    session.finish(&core, wrapper, watch)
}

/// The value that stands in for the cotangent of a result without floats.
fn discrete_zero(ty: &CoreType) -> Option<Value> {
    ty.scalar().filter(|s| !s.is_float()).map(|s| Value::Scalar(s.zero()))
}

/// The entry point alone, as the derivative has it: its steps and those of the derivative are counted alike.
pub(crate) fn primal(session: &Session, entry: &EntryPoint, derivative: &OnLambda) -> Ready {
    let mut ready = Ready::new(session.program.clone(), entry.fun, Backend::Interp);
    ready.stages = vec![("front end", session.front_seconds)];
    ready.on_lambda = Some(OnLambda { runs: Runs::Entry, ..derivative.clone() });
    ready
}

/// What an algorithm made is not accepted by the checker: the program is nested too deeply, or it is our fault.
fn malformed(id: &str, errors: Vec<Diagnostic>) -> Diagnostic {
    let bug = || Diagnostic::global(Code::Internal, format!("what `{id}` made is malformed"));
    let error = errors.into_iter().next().unwrap_or_else(bug);
    let advice = error.code.advice();
    if error.hints.is_empty() { error.hint(advice) } else { error }
}

/// The name of a leaf, or that it is the whole result.
fn name(leaf: &Leaf) -> &str {
    if leaf.path.is_empty() { "the result" } else { &leaf.path }
}

/// Scalars and arrays of them.
fn is_plain(ty: &EntryType) -> bool {
    match ty {
        EntryType::Scalar(_) => true,
        EntryType::Array(_, t) => is_plain(t),
        EntryType::Sum(_) | EntryType::Tuple(_) | EntryType::Record(_) => false,
    }
}

fn is_discrete_array(ty: &EntryType) -> bool {
    match ty {
        EntryType::Array(_, t) => match &**t {
            EntryType::Scalar(s) => !s.is_float(),
            t => is_discrete_array(t),
        },
        EntryType::Scalar(_) | EntryType::Sum(_) | EntryType::Tuple(_) | EntryType::Record(_) => false,
    }
}

/// What parts of a gradient cost, in steps of the cost model of CHAD (`pullback_interp::lambda`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Of the entry point, inlined.
    pub program: u64,
    /// Of making its value and its backpropagator.
    pub forward: u64,
    /// Of calling the backpropagator, and of all that makes the cotangents of the arguments out of what it gives.
    pub backward: u64,
}

impl Costs {
    /// Of value and cotangents.
    pub fn whole(&self) -> u64 {
        self.forward + self.backward
    }
}

impl OnLambda {
    /// Runs it; see the module. What it costs is counted as the cost model of CHAD says (`pullback_interp::lambda`).
    ///
    /// Errors: those of the program, and of the options.
    pub(crate) fn run(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        match self.runs {
            Runs::Entry => self.run_primal(args, options),
            Runs::Derivative => self.run_derivative(args, options),
        }
    }
    /// The entry point itself; the arguments are those of the derivative, without cotangents.
    ///
    /// Errors: those of the program, and of the options.
    pub fn run_primal(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let out = pullback_interp::lambda::run(&self.program, self.entry, self.arguments(args)?, options)?;
        let mut results = Vec::new();
        spread(&out.result, &self.result, &mut results);
        Ok(Outcome { results, counts: out.counts })
    }
    fn arguments(&self, args: &[Value]) -> Result<Vec<Value>, RuntimeError> {
        let mut given = args.iter().cloned();
        let whole: Option<Vec<Value>> =
            self.params.iter().map(|t| gathered(t, &mut |_| given.next())).collect();
        whole.ok_or_else(|| internal("a call with another number of arguments"))
    }
    /// What its parts cost: arguments and cotangents as those of the derivative.
    ///
    /// Errors: those of the program, and of the options. Cost: two runs of the program, and one of the derivative.
    pub fn costs(
        &self,
        args: &[Value],
        cotangents: &[Value],
        options: &Options<'_>,
    ) -> Result<Costs, RuntimeError> {
        let program = deep(|| self.run_primal(args, options))?.counts.work;
        let Some((alone, fun)) = forward_pass(&self.program, self.made) else {
            return Err(internal("a derivative without a forward pass"));
        };
        let given = self.arguments(args)?;
        let forward = deep(|| pullback_interp::lambda::run(&alone, fun, given, options))?.counts.work;
        // Less the `let` and the unit value.
        let forward = forward.saturating_sub(2);
        let all: Vec<Value> = args.iter().chain(cotangents).cloned().collect();
        let whole = deep(|| self.run_derivative(&all, options))?.counts.work;
        Ok(Costs { program, forward, backward: whole.saturating_sub(forward) })
    }
    /// Its text, and that of what it calls.
    pub fn text(&self) -> String {
        print_reachable(&self.program, self.made)
    }
    fn run_derivative(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let mut given = args.iter().cloned();
        // The parts of the result without floats have no cotangents: anything will do.
        let mut seeds = args.iter().skip(self.wanted.len()).cloned();
        let mut cotangent = |t: &Type| match t {
            Type::Scalar(s) if !s.is_float() => Some(Value::Scalar(s.zero())),
            _ => seeds.next(),
        };
        let whole: Option<Vec<Value>> =
            self.params.iter().map(|t| gathered(t, &mut |_| given.next())).collect();
        let seed = gathered(&self.result, &mut cotangent);
        let (Some(mut whole), Some(seed), None) = (whole, seed, seeds.next()) else {
            return Err(internal("a derivative with another number of arguments"));
        };
        whole.push(seed);
        let out = pullback_interp::lambda::run(&self.program, self.fun, whole, options)?;
        let Value::Tuple(parts) = out.result else { return Err(internal("a derivative without cotangents")) };
        let [value, Value::Tuple(bars)] = &parts[..] else {
            return Err(internal("a derivative without cotangents"));
        };
        let mut results = Vec::new();
        spread(value, &self.result, &mut results);
        let mut all = Vec::new();
        bars.iter().zip(&self.params).for_each(|(bar, t)| spread(bar, t, &mut all));
        if all.len() != self.wanted.len() {
            return Err(internal("a derivative with another number of cotangents"));
        }
        results.extend(all.into_iter().zip(&self.wanted).filter(|(_, wanted)| **wanted).map(|(bar, _)| bar));
        Ok(Outcome { results, counts: out.counts })
    }
}

fn internal(message: &str) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Internal, message.to_string())
}

/// A value of a type from the values of its leaves, which `leaf` gives in order. Arrays of products are products of arrays.
fn gathered(t: &Type, leaf: &mut dyn FnMut(&Type) -> Option<Value>) -> Option<Value> {
    match base(t) {
        Type::Tuple(parts) => {
            let parts = parts.iter().map(|part| gathered(part, leaf));
            Some(Value::Tuple(parts.collect::<Option<Vec<_>>>()?))
        }
        _ => leaf(t),
    }
}

/// The leaves of a value of a type.
fn spread(value: &Value, t: &Type, out: &mut Vec<Value>) {
    match (value, base(t)) {
        (Value::Tuple(parts), Type::Tuple(types)) => {
            parts.iter().zip(types.iter()).for_each(|(part, t)| spread(part, t, out));
        }
        (value, _) => out.push(value.clone()),
    }
}

/// What arrays of any rank hold.
fn base(t: &Type) -> &Type {
    match t {
        Type::Array(t) => base(t),
        t => t,
    }
}
