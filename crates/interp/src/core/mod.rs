//! The reference interpreter of core: what a program means and what it costs.
//!
//! Meaning: the documentation of `pullback_core::Exp` and the edge cases of the language. Cost: the step model of the Fast
//! CHAD specification, section 4.1 (thesis of Smeding, chapters 6 and 7, restated for core):
//!
//! - one step per executed statement, per loop iteration, per iteration of a SOAC, per element that a bulk operation
//!   writes, per scalar leaf added by `Plus` or into an accumulator, per element of a replicate or a dense zero;
//! - nothing for passing values, for views (a row, a slice, a transposition, a reshape), for an in-place write to an array
//!   at its last use, or for taking such an array as the initial value of an accumulator;
//! - a write to an array that is still used costs a copy of it.
//!
//! Physically a write at the last use takes constant time. Transpositions, reversals and slices with a stride other than one
//! copy, although some of them are free in the model; a write to such a view costs what it would cost if it were none. Parallel
//! schedules are simulated from a seed.
//!
//! ```
//! use pullback_core::{Builder, Program, Type, Value};
//! use pullback_interp::core::{Options, run};
//! use pullback_prim::Op;
//! let mut program = Program::default();
//! let square = Builder::function(&mut program, "square", &[("x", Type::F64)], vec![Type::F64], |b, p| {
//!     vec![b.op2(Op::Mul, p[0].into(), p[0].into())]
//! });
//! let outcome = run(&program, square, vec![Value::f64(3.0)], &Options::default())?;
//! assert_eq!(outcome.results, [Value::f64(9.0)]);
//! assert_eq!(outcome.counts.work, 1);
//! # Ok::<(), pullback_base::RuntimeError>(())
//! ```

mod acc;
pub(crate) mod arrays;
mod checks;
pub(crate) mod code;
pub(crate) mod compile;
mod exec;
mod finite;
mod fused;
pub(crate) mod machine;
pub(crate) mod num;
mod plus;
pub(crate) mod schedule;
pub(crate) mod shapes;
pub(crate) mod soac;
pub(crate) mod value;

use code::FunCode;
use machine::Machine;
use num::{Domain, Primal};
use pullback_base::RuntimeError;
use pullback_base::index::Index;
use pullback_core::{FunId, Program, Value};
use std::sync::atomic::AtomicBool;
use value::{Meter, Val};

/// How to run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// `None`: left to right. `Some`: parallel constructs in an order and bracketing drawn from this seed.
    pub schedule_seed: Option<u64>,
    /// The run stops with a `Limit` error after so many steps.
    pub work_limit: u64,
    /// The run stops with a `Limit` error before it holds more bytes of values than this.
    pub memory_limit: u64,
    /// The run stops with a `Limit` error when so many calls are open.
    pub call_depth_limit: usize,
    /// The run stops with a `Cancelled` error soon after this becomes true.
    pub cancel: Option<&'a AtomicBool>,
    /// The run stops with a `NotFinite` error at the first scalar operation that makes a NaN or an infinity out of finite
    /// operands.
    pub check_nan: bool,
    /// Whether a value at its last use is taken over, so that a write to an array may overwrite it. Without, every value
    /// stays where it is until its variable is bound again, and every write copies: the same results at more work, so that
    /// tests can tell whether something that was overwritten is read later.
    pub in_place: bool,
    /// Called now and then with the number of steps done.
    pub progress: Option<&'a dyn Fn(u64)>,
}

impl Default for Options<'_> {
    /// Sequential, in place, 8 GiB, 10,000 open calls, no limit on steps.
    fn default() -> Self {
        Options {
            schedule_seed: None,
            work_limit: u64::MAX,
            memory_limit: 8 << 30,
            call_depth_limit: 10_000,
            cancel: None,
            check_nan: false,
            in_place: true,
            progress: None,
        }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("schedule_seed", &self.schedule_seed)
            .field("work_limit", &self.work_limit)
            .field("memory_limit", &self.memory_limit)
            .field("call_depth_limit", &self.call_depth_limit)
            .finish_non_exhaustive()
    }
}

/// What a run cost. See the module's description for the model. Simulated schedules cost somewhat more work than running
/// left to right; comparisons of costs use the latter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps.
    pub work: u64,
    /// Steps on the longest chain: parallel iterations count as the longest of them, reductions as a balanced tree.
    pub span: u64,
    /// Costs of the scalar primitives executed, as the primitive table lists them (an addition is 1).
    pub flops: u64,
    /// The most bytes of values that were live at one time, arguments included.
    pub peak_bytes: u64,
    /// The most bytes that were live on tapes at one time: of the arrays and boxes in variables that a reverse-mode
    /// algorithm marks as tapes (see `pullback_core::Origin::is_tape`), with whatever they hold. Scalars outside arrays
    /// and sums are not counted.
    pub peak_tape_bytes: u64,
    /// Elements made by replicating a floating point zero.
    pub zero_cells: u64,
    /// Scalar leaves added into accumulators.
    pub acc_adds: u64,
    /// Elements copied because an array was written while still in use.
    pub copied_cells: u64,
}

/// Results and cost of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The results of the function.
    pub results: Vec<Value>,
    /// The cost.
    pub counts: Counts,
}

/// A program ready to run any number of times.
#[derive(Debug)]
pub struct Compiled<'p> {
    pub(crate) program: &'p Program,
    pub(crate) funs: Vec<FunCode>,
}

impl<'p> Compiled<'p> {
    /// Prepares a program, which must be well-formed (accepted by the checker of core). Cost: linear in the program.
    pub fn new(program: &'p Program) -> Compiled<'p> {
        Compiled { program, funs: compile::compile(program) }
    }
    /// Runs a function. Errors: those of the program, the limits of the options, and `Internal` for arguments of wrong types.
    pub fn run(&self, fun: FunId, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let mut machine: Machine<'_, Primal> = Machine::new(self, *options, Meter::new(options.memory_limit));
        let args = self.arguments(&machine, fun, args).map_err(|e| *e)?;
        let results = machine.run(fun.index(), args).map_err(|e| *e)?;
        let counts = machine.counts();
        // Results are copied.
        let bytes = results.iter().map(Val::bytes).sum();
        let _room = machine.meter.charge(bytes).map_err(|e| *e)?;
        let results = results.iter().map(Val::result).collect::<Result<_, _>>().map_err(|e| *e)?;
        Ok(Outcome { results, counts })
    }
    /// Checks arguments against the parameters and takes them in.
    pub(crate) fn arguments<D: Domain>(
        &self,
        machine: &Machine<'_, D>,
        fun: FunId,
        args: &[Value],
    ) -> machine::Res<Vec<Val<D>>> {
        let Some(f) = self.program.funs.get(fun) else {
            return Err(machine::internal("run of an unknown function"));
        };
        if f.params.len() != args.len() {
            return Err(machine::internal(format!(
                "function {} takes {} arguments, not {}",
                f.name,
                f.params.len(),
                args.len()
            )));
        }
        for (i, (p, value)) in f.params.iter().zip(args).enumerate() {
            let info = &self.program.vars[*p];
            if !value::has_type(self.program, value, &info.ty) {
                return Err(machine::internal(format!(
                    "argument {i} ({}) of function {} is not of type {:?}",
                    info.hint, f.name, info.ty
                )));
            }
        }
        args.iter().map(|v| Val::from_value(&machine.meter, v, 0)).collect()
    }
}

/// Runs one function of a program once; see [`Compiled`].
pub fn run(
    program: &Program,
    fun: FunId,
    args: Vec<Value>,
    options: &Options<'_>,
) -> Result<Outcome, RuntimeError> {
    Compiled::new(program).run(fun, &args, options)
}
