//! Reverse derivatives by the algorithms on lambda (`--ad chad`, ...), which the reference interpreter runs.
//!
//! The entry point is inlined, its loops become functions that call themselves where the algorithm takes these, it is transformed, and given cotangents of the types of its values ([`pullback_ad::chad::dense`]). Outside it looks like a
//! derivative on core: one value per leaf of the arguments, then one cotangent per leaf of the result; the results, then one cotangent per
//! wanted leaf.

use crate::derive::Kind;
use crate::session::{EntryPoint, Ready, Session};
use crate::{Backend, Leaf};
use pullback_ad::chad::dense::dense_vjp;
use pullback_ad::chad::{OnLambda as Algorithm, c_accumulating, d_arrays};
use pullback_base::{Code, Diagnostic, RuntimeError, RuntimeErrorKind};
use pullback_core::{EntryType, Value};
use pullback_interp::core::{Options, Outcome};
use pullback_lambda::inline::{Loops, inline};
use pullback_lambda::print::print_reachable;
use pullback_lambda::{FunId, Program, Type};

/// A derivative by an algorithm on lambda.
#[derive(Debug)]
pub struct OnLambda {
    program: Program,
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

/// The reverse derivative of an entry point.
pub(crate) fn derivative(
    session: &Session,
    algorithm: &Algorithm,
    entry: &EntryPoint,
    kind: Kind,
    wanted: &[bool],
) -> Result<Ready, Diagnostic> {
    let refuse = |message: String, hint: &str| Diagnostic::global(Code::Unsupported, message).hint(hint);
    let id = algorithm.id;
    if kind != Kind::Vjp {
        let message = format!(
            "`{id}` gives the reverse derivative for one cotangent, not several or second derivatives"
        );
        return Err(refuse(message, "use `pullback grad` or `pullback vjp`, or leave out --ad"));
    }
    if !matches!(session.settings.backend, Backend::Auto | Backend::Interp) {
        let message = format!("what `{id}` makes runs in the reference interpreter");
        return Err(refuse(message, "leave out --backend, or use --backend interp"));
    }
    if let Some(leaf) = entry.parameters.iter().chain(&entry.results).find(|l| !is_plain(&l.ty)) {
        let message = format!(
            "`{id}` cannot differentiate an entry point with a value of a sum type (`{}`)",
            name(leaf)
        );
        return Err(refuse(message, "make the value inside of the program, or use `fast_chad`"));
    }
    if let Some(leaf) = entry.results.iter().find(|l| !holds_floats(&l.ty)) {
        let message = format!(
            "`{id}` cannot differentiate an entry point whose result has a part without floats (`{}`)",
            name(leaf)
        );
        return Err(refuse(message, "return only floats, or use `fast_chad`"));
    }
    let start = std::time::Instant::now();
    let found = session.lambda.as_ref().and_then(|program| {
        let same =
            |f: &FunId| program.funs[*f].entry.is_some() && program.funs[*f].name.as_str() == entry.name;
        Some((program.clone(), program.funs.ids().find(same)?))
    });
    let Some((mut program, f)) = found else {
        let message = format!("`{id}` needs a program in the source language");
        return Err(refuse(message, "use `fast_chad`"));
    };
    let loops = if algorithm.recursion { Loops::Functions } else { Loops::Kept };
    let inlined = inline(&mut program, f, loops);
    let made = (algorithm.vjp)(&mut program, inlined).map_err(|e| {
        let mut d = e.to_diagnostic();
        if id == c_accumulating::ID && e.construct == c_accumulating::ARRAYS {
            d = d.hint(format!("`{}` does", d_arrays::ID));
        }
        d
    })?;
    let fun = dense_vjp(&mut program, inlined, made);
    debug_assert_eq!(pullback_lambda::check::check(&program), Ok(()));
    let params = program.funs[inlined].params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let result = program.funs[inlined].result.clone();
    let mut ready = Ready::new(session.program.clone(), entry.fun, Backend::Interp);
    ready.stages =
        vec![("front end", session.front_seconds), ("differentiate", start.elapsed().as_secs_f64())];
    ready.on_lambda =
        Some(OnLambda { program, fun, entry: inlined, made, params, result, wanted: wanted.to_vec() });
    Ok(ready)
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

fn holds_floats(ty: &EntryType) -> bool {
    match ty {
        EntryType::Scalar(s) => s.is_float(),
        EntryType::Array(_, t) => holds_floats(t),
        EntryType::Sum(_) | EntryType::Tuple(_) | EntryType::Record(_) => false,
    }
}

impl OnLambda {
    /// Runs the entry point itself, which costs what the cost model of CHAD says (`pullback_interp::lambda`): arguments and results as those of
    /// the derivative, without cotangents.
    ///
    /// Errors: those of the program, and of the options.
    pub fn run_primal(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let mut given = args.iter().cloned();
        let whole: Option<Vec<Value>> = self.params.iter().map(|t| gathered(t, &mut given)).collect();
        let whole = whole.ok_or_else(|| internal("a call with another number of arguments"))?;
        let out = pullback_interp::lambda::run(&self.program, self.entry, whole, options)?;
        let mut results = Vec::new();
        spread(&out.result, &self.result, &mut results);
        Ok(Outcome { results, counts: out.counts })
    }
    /// Its text, and that of what it calls.
    pub fn text(&self) -> String {
        print_reachable(&self.program, self.made)
    }
    /// Runs it; see the module.
    ///
    /// Errors: those of the program, and of the options.
    pub(crate) fn run(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let mut given = args.iter().cloned();
        let types = self.params.iter().chain([&self.result]);
        let whole: Option<Vec<Value>> = types.map(|t| gathered(t, &mut given)).collect();
        let (Some(whole), None) = (whole, given.next()) else {
            return Err(internal("a derivative with another number of arguments"));
        };
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

/// A value of a type from the values of its leaves. Arrays of products are products of arrays.
fn gathered(t: &Type, from: &mut dyn Iterator<Item = Value>) -> Option<Value> {
    match base(t) {
        Type::Tuple(parts) => {
            let parts = parts.iter().map(|part| gathered(part, from));
            Some(Value::Tuple(parts.collect::<Option<Vec<_>>>()?))
        }
        _ => from.next(),
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
