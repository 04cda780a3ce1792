//! The reference interpreter of lambda: what a program means and what it costs.
//!
//! Meaning: the documentation of `pullback_lambda::Exp`; errors and edge cases are those of the core interpreter.
//! Inputs and outputs are values of core: see [`run`]. Derivatives inside a program are evaluated on dual numbers, reverse
//! ones by one forward run per float of the argument; custom derivatives mean their primal function.
//!
//! Cost: for the first-order vocabulary the step counting evaluator of Efficient CHAD (thesis of Smeding, 6.10.3 and 6.10.4):
//!
//! - one step per evaluated term, and what its subterms cost; of `if` and `match` only the branch taken;
//! - primitives and payloads take one argument there: a constant costs 2, a binary primitive 2, a unary one 1; a product of
//!   `n` components counts as nested pairs, `max(1, n - 1)`, and so does a sparse one;
//! - a lambda costs one more per captured variable; an application or a call costs what the body costs;
//! - the zero of a float costs 2, other zeros 1; taking a sparse zero apart costs one more; an addition costs one step per
//!   pair of nodes that meet;
//! - building an accumulating computation costs 1; running one over `n` cells costs `1 + n`, and in it `return` 1,
//!   `bind` 1 and its continuation, an addition to a cell 1 and the addition, `scope` 1; several in parallel 1;
//! - the bag of one value or of an array costs 1, a sum of bags 1; scattering one costs 1 for each place, for each node of the bag, for
//!   each element of its arrays, and what is added.
//!
//! Beyond that vocabulary: array operations cost one more per leaf they write (none for views; a write to an array that is
//! still used elsewhere costs a copy of it), loops and array functions one per iteration, maps the logarithm of their size,
//! operations on mutable arrays 1 when they are built and 1 when they run, `MutNew` and `MutFreeze` one more per cell.
//! Span: as work, with parallel iterations counted as the longest of them and reductions as balanced trees. Computations in parallel count a
//! logarithm of their number more, since what they add to one cell is combined as in a tree; scattering a bag counts its depth and a logarithm.
//!
//! Physically persistent maps and staged cotangents are copied when they are changed while shared.
//!
//! ```
//! use pullback_core::Value;
//! use pullback_interp::lambda::{Options, run};
//! let program = pullback_lambda::read::read("def square (x: f64): f64 = mul.f64(x, x)", None).unwrap();
//! let square = program.funs.ids().next().unwrap();
//! let outcome = run(&program, square, vec![Value::f64(3.0)], &Options::default())?;
//! assert_eq!(outcome.result, Value::f64(9.0));
//! assert_eq!(outcome.counts.work, 4);
//! # Ok::<(), pullback_base::RuntimeError>(())
//! ```

mod arrays;
mod boundary;
mod captures;
mod cotangent;
mod derivative;
mod effects;
mod machine;
mod sizes;
mod soac;
mod uses;
mod value;

pub use crate::core::{Counts, Options};

use crate::core::machine::internal;
use crate::core::value::Meter;
use boundary::Boundary;
use machine::Machine;
use pullback_base::RuntimeError;
use pullback_base::index::{IdMap, IdTable};
use pullback_base::table::Table;
use pullback_core::Value;
use pullback_lambda::{Fun, FunId, Program, Var};
use std::rc::Rc;
use value::LambdaCode;

/// Result and cost of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The result of the function.
    pub result: Value,
    /// The cost.
    pub counts: Counts,
}

/// How often what was run: for claims about what is called, which steps do not show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// How often each lambda was applied, by the variable it binds.
    pub applications: IdTable<Var, u64>,
    /// How often each top-level function was called.
    pub calls: IdTable<FunId, u64>,
    /// Floats inside of products: those of zeros that were made, and those that were added to each other.
    pub touched: u64,
}

/// A program ready to run any number of times.
#[derive(Debug)]
pub struct Compiled<'p> {
    program: &'p Program,
    /// The lambdas, by the variable they bind.
    lambdas: IdMap<Var, Rc<LambdaCode>>,
    /// The variable terms, by address: whether they are the last use of their variable.
    last_uses: Table<usize, bool>,
}

impl<'p> Compiled<'p> {
    /// Prepares a program, which must be well-formed (accepted by the checker of lambda). Cost: linear in the program,
    /// times the nesting of its lambdas.
    pub fn new(program: &'p Program) -> Compiled<'p> {
        Compiled::of(program, program.funs.iter())
    }
    fn of(program: &'p Program, funs: impl Iterator<Item = &'p Fun> + Clone) -> Compiled<'p> {
        Compiled { program, lambdas: captures::lambdas(funs.clone()), last_uses: uses::last_uses(funs) }
    }
    /// Runs a function. Arguments and result are data. Errors: those of the program, the limits of the options, and
    /// `Internal` for arguments that are not of the types of the parameters.
    pub fn run(&self, fun: FunId, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        self.profiled(fun, args, options).map(|(outcome, _)| outcome)
    }
    /// As [`Compiled::run`], with how often what was run.
    ///
    /// Errors: as there.
    pub fn profiled(
        &self,
        fun: FunId,
        args: &[Value],
        options: &Options<'_>,
    ) -> Result<(Outcome, Profile), RuntimeError> {
        let meter = Meter::new(options.memory_limit);
        let mut machine = Machine::new(self, *options, meter.clone());
        let boundary = Boundary { program: self.program, meter: &meter };
        let Some(f) = self.program.funs.get(fun) else {
            return Err(*internal("run of an unknown function"));
        };
        if f.params.len() != args.len() {
            let (name, n) = (&f.name, f.params.len());
            return Err(*internal(format!("function {name} takes {n} arguments, not {}", args.len())));
        }
        let mut values = Vec::with_capacity(args.len());
        for (i, (p, value)) in f.params.iter().zip(args).enumerate() {
            let info = &self.program.vars[*p];
            values.push(boundary.enter(value, &info.ty, 0).map_err(|mut e| {
                if e.kind == pullback_base::RuntimeErrorKind::Internal {
                    e.message = format!("argument {i} ({}) of function {}: {}", info.hint, f.name, e.message);
                }
                *e
            })?);
        }
        let result = machine.run(fun, values).map_err(|e| *e)?;
        let counts = machine.counts();
        let result = boundary.leave(&result, &f.result, 0).map_err(|e| *e)?;
        Ok((Outcome { result, counts }, machine.profile))
    }
}

/// Runs one function of a program once; see [`Compiled::run`]. Only what the function calls is prepared.
///
/// Arguments and result have the form that core gives them: an array of products is a product of arrays. A sparse zero is
/// alternative 0 without payload, another sparse product alternative 1 with its components, alternative `k` of a sparse sum
/// alternative `k + 1`.
pub fn run(
    program: &Program,
    fun: FunId,
    args: Vec<Value>,
    options: &Options<'_>,
) -> Result<Outcome, RuntimeError> {
    let reached = if program.funs.get(fun).is_some() { program.reachable(fun) } else { Vec::new() };
    Compiled::of(program, reached.iter().map(|f| &program.funs[*f])).run(fun, &args, options)
}
