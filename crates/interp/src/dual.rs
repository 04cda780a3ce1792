//! The independent oracle: programs evaluated on dual numbers.
//!
//! Forward derivatives of any core program, by arithmetic on numbers that carry their tangents through every construct
//! (reductions, histograms, scatters, loops, accumulators, sums, calls). The only thing shared with the AD algorithms is the
//! primitive table. Derivatives inside programs are evaluated by nested dual numbers, reverse ones by one run per input;
//! custom derivatives mean their primal function.
//!
//! Flat directions list the floats of all arguments (or results) in the order of [`pullback_core::Value::floats`].

pub(crate) mod derive;
mod flat;
mod many;
pub(crate) mod number;

pub use flat::{central_difference, count_floats, inner, perturb, with_floats};

use crate::core::machine::{Machine, Res};
use crate::core::value::{Meter, Val};
use crate::core::{Compiled, Counts, Options};
use derive::{each_float, forward};
use number::{Dual, Number};
use pullback_base::RuntimeError;
use pullback_base::index::Index;
use pullback_core::{FunId, Program, Type, Value};

/// Results with their tangents.
#[derive(Clone, Debug, PartialEq)]
pub struct DualOutcome {
    /// The results of the function.
    pub results: Vec<Value>,
    /// One tangent per result with floats inside, of the cotangent type of the result.
    pub tangents: Vec<Value>,
    /// How often a primitive was evaluated at or near a point where it has no derivative: if this is not 0, differences
    /// and other algorithms need not agree.
    pub kinks: u64,
    /// The cost of the run.
    pub counts: Counts,
}

/// Results with a flat tangent.
#[derive(Clone, Debug, PartialEq)]
pub struct Directional {
    /// The results of the function.
    pub results: Vec<Value>,
    /// The tangents of all floats of all results.
    pub tangent: Vec<f64>,
    /// See [`DualOutcome::kinks`].
    pub kinks: u64,
}

/// A Jacobian matrix over the floats of arguments and results.
#[derive(Clone, Debug, PartialEq)]
pub struct Jacobian {
    /// The results of the function.
    pub results: Vec<Value>,
    /// One column per float of the arguments; each has one entry per float of the results.
    pub columns: Vec<Vec<f64>>,
    /// See [`DualOutcome::kinks`].
    pub kinks: u64,
}

impl Jacobian {
    /// The product with a cotangent from the left: the gradient of the inner product of results and cotangent.
    pub fn pull_back(&self, cotangent: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|column| inner(column, cotangent)).collect()
    }
    /// The product with a tangent from the right.
    pub fn push_forward(&self, tangent: &[f64]) -> Vec<f64> {
        let rows = self.columns.first().map_or(0, Vec::len);
        let mut out = vec![0.0; rows];
        for (column, t) in self.columns.iter().zip(tangent) {
            out.iter_mut().zip(column).for_each(|(sum, x)| *sum += x * t);
        }
        out
    }
}

/// The forward derivative of a function at `args`, one tangent per argument with floats inside.
///
/// Errors: those of the program and of the limits; `Internal` for arguments or tangents of wrong types.
pub fn jvp(
    program: &Program,
    fun: FunId,
    args: &[Value],
    tangents: &[Value],
    options: &Options<'_>,
) -> Result<DualOutcome, RuntimeError> {
    let code = Compiled::new(program);
    jvp_of(&code, fun, args, tangents, options).map_err(|e| *e)
}

fn jvp_of(
    code: &Compiled<'_>,
    fun: FunId,
    args: &[Value],
    tangents: &[Value],
    options: &Options<'_>,
) -> Res<DualOutcome> {
    let mut machine: Machine<'_, Dual> = Machine::new(code, *options, Meter::new(options.memory_limit));
    let args = code.arguments(&machine, fun, args)?;
    let tangents = tangents.iter().map(|t| Val::from_value(&machine.meter, t, 0)).collect::<Res<Vec<_>>>()?;
    let f = &code.program.funs[fun];
    let types: Vec<Type> = f.params.iter().map(|p| code.program.vars[*p].ty.clone()).collect();
    let out = forward(&mut machine, &types, &f.results, args, tangents, &mut |m, a| m.run(fun.index(), a))?;
    let mut results = out.iter().map(Val::result).collect::<Res<Vec<_>>>()?;
    let tangents = results.split_off(f.results.len());
    Ok(DualOutcome { results, tangents, kinks: machine.state.kinks, counts: machine.counts() })
}

/// The derivative in a flat direction: one number per float of the arguments.
///
/// Errors: as [`jvp`].
pub fn directional(
    code: &Compiled<'_>,
    fun: FunId,
    args: &[Value],
    direction: &[f64],
    options: &Options<'_>,
) -> Result<Directional, RuntimeError> {
    directional_of(code, fun, args, direction, options).map_err(|e| *e)
}

fn directional_of(
    code: &Compiled<'_>,
    fun: FunId,
    args: &[Value],
    direction: &[f64],
    options: &Options<'_>,
) -> Res<Directional> {
    let mut machine: Machine<'_, Dual> = Machine::new(code, *options, Meter::new(options.memory_limit));
    let level = machine.state.fresh_level();
    let mut direction = direction.iter();
    // A direction of exactly zero is no direction: 0 times an infinite slope is not wanted here.
    let mut seed = |x: &Number| match direction.next() {
        Some(&t) if t != 0.0 => Number::pair(level, x.clone(), Number::Real(t)),
        _ => x.clone(),
    };
    let args = code.arguments(&machine, fun, args)?;
    let args = args.into_iter().map(|v| each_float(&machine, v, &mut seed)).collect::<Res<Vec<_>>>()?;
    let out = machine.run(fun.index(), args)?;
    let mut tangent = Vec::new();
    for value in &out {
        each_float(&machine, value.clone(), &mut |x| {
            tangent.push(x.split(level).1.map_or(0.0, |t| t.primal()));
            x.clone()
        })?;
    }
    let results = out.iter().map(Val::result).collect::<Res<Vec<_>>>()?;
    Ok(Directional { results, tangent, kinks: machine.state.kinks })
}

/// The whole Jacobian: one run per float of the arguments.
///
/// Errors: as [`jvp`].
pub fn jacobian(
    program: &Program,
    fun: FunId,
    args: &[Value],
    options: &Options<'_>,
) -> Result<Jacobian, RuntimeError> {
    let code = Compiled::new(program);
    let n = count_floats(args);
    let mut direction = vec![0.0; n];
    let first = directional(&code, fun, args, &direction, options)?;
    let mut out = Jacobian { results: first.results, columns: Vec::with_capacity(n), kinks: 0 };
    for k in 0..n {
        direction[k] = 1.0;
        let column = directional(&code, fun, args, &direction, options)?;
        direction[k] = 0.0;
        out.kinks = out.kinks.max(column.kinks);
        out.columns.push(column.tangent);
    }
    Ok(out)
}
