//! Functions to run, with arguments.

use crate::generate::shape::Sizes;
use crate::generate::{Config, Generated, generate};
use crate::problems::Problem;
use crate::properties::Case;
use pullback_base::Fault;
use pullback_core::{FunId, Program, Type, Value};
use pullback_driver::pipeline::Checks;
use pullback_driver::{Kind, Settings, derive, pipeline};
use pullback_interp::core::{Compiled, Options};

/// Around the numbers of lanes of registers and blocks.
const AWKWARD: [usize; 8] = [0, 1, 7, 8, 9, 63, 64, 65];

/// A function without derivatives inside, and arguments for it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is, for reports.
    pub what: String,
    /// The program.
    pub program: Program,
    /// The function.
    pub fun: FunId,
    /// Its arguments, for several runs. The first ones say for which sizes loops are scheduled.
    pub args: Vec<Vec<Value>>,
    /// Whether there are arrays without elements.
    pub empties: bool,
}

/// A random program and its gradient, each as it is and optimised, at the sizes that it was made for and at awkward ones. Left out: what
/// cannot be differentiated.
///
/// # Panics
/// If a pass makes a malformed program.
pub fn runs_of_seed(seed: u64) -> Vec<Run> {
    let generated = generate(seed, &Config::default());
    let empties = generated.features.empty_arrays > 0 || generated.sizes.m == 0;
    runs_of(&[false, true], seed, &generated.program, generated.main, &all_args(&generated), empties)
}

/// What [`runs_of_seed`] runs, each of its arguments in a case of its own.
pub fn cases_of_seed(seed: u64) -> Vec<Case> {
    let generated = generate(seed, &Config::default());
    all_args(&generated).into_iter().map(|args| Case { args, ..Case::of(&generated) }).collect()
}

/// A program and its gradient, for the arguments of the case alone: what is shrunk.
///
/// # Panics
/// If a pass makes a malformed program.
pub fn runs_of_case(case: &Case) -> Vec<Run> {
    let args = std::slice::from_ref(&case.args);
    runs_of(&[false, true], case.seed, &case.program, case.main, args, case.empties)
}

/// Those of [`runs_of_case`] that are optimised.
///
/// # Panics
/// If a pass makes a malformed program.
pub fn optimised_runs_of_case(case: &Case) -> Vec<Run> {
    let args = std::slice::from_ref(&case.args);
    runs_of(&[true], case.seed, &case.program, case.main, args, case.empties)
}

/// `optimise`: what is asked for of each, as it is and optimised.
fn runs_of(
    optimise: &[bool],
    seed: u64,
    program: &Program,
    main: FunId,
    args: &[Vec<Value>],
    empties: bool,
) -> Vec<Run> {
    let mut out = finished(optimise, &format!("seed {seed} program"), program, main, args, empties);
    let params = &program.funs[main].params;
    let wanted: Vec<bool> = params.iter().map(|p| program.is_active(&program.vars[*p].ty)).collect();
    let mut derived = program.clone();
    if let Ok(fun) = derive::add(&mut derived, main, Kind::Vjp, &wanted) {
        let args: Vec<_> = args.iter().filter_map(|args| with_cotangents(program, main, args)).collect();
        if !args.is_empty() {
            out.extend(finished(optimise, &format!("seed {seed} gradient"), &derived, fun, &args, empties));
        }
    }
    out
}

fn all_args(generated: &Generated) -> Vec<Vec<Value>> {
    let Sizes { n, m } = generated.sizes;
    let k = AWKWARD[(generated.seed % 8) as usize];
    // Programs are for these sizes and larger ones.
    let sizes = [Sizes { n, m }, Sizes { n: n.max(k), m }, Sizes { n, m: m.max(k) }];
    let mut out = vec![generated.inputs(sizes[0], 0)];
    out.extend(sizes[1..].iter().filter(|s| **s != sizes[0]).map(|s| generated.inputs(*s, 0)));
    out
}

/// The arguments and the results, which are cotangents as good as any. `None`: cotangents would be of other types, or it stops.
fn with_cotangents(program: &Program, fun: FunId, args: &[Value]) -> Option<Vec<Value>> {
    let options = Options { work_limit: super::STEPS, ..Options::default() };
    let primal = Compiled::new(program).run(fun, args, &options).ok()?;
    let types = &program.funs[fun].results;
    let bars = primal.results.iter().zip(types).filter(|(_, t)| program.is_active(t));
    let fits = |t: &Type| t.base().scalar().is_some_and(|s| s.is_float());
    if !bars.clone().all(|(_, t)| fits(t)) {
        return None;
    }
    Some(args.iter().cloned().chain(bars.map(|(v, _)| v.clone())).collect())
}

fn finished(
    optimise: &[bool],
    what: &str,
    program: &Program,
    fun: FunId,
    args: &[Vec<Value>],
    empties: bool,
) -> Vec<Run> {
    let made = |optimise: bool| {
        let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
        let choice = Settings::default().choice;
        let steps = pipeline::steps(optimise);
        let what = format!("{what}{}", if optimise { ", optimised" } else { "" });
        if let Err(d) = pipeline::run_with(&mut program, steps, &choice, Checks::EachStep, &mut |_, _| {}) {
            assert!(d.code.fault() != Fault::Bug, "{what}: {}", d.message);
            return None;
        }
        Some(Run { what, program, fun: roots[0], args: args.to_vec(), empties })
    };
    optimise.iter().copied().filter_map(made).collect()
}

/// The objective of a problem and its gradient.
///
/// # Panics
/// If the problem does not compile.
pub fn runs_of_problem(problem: &Problem) -> [Run; 2] {
    let [primal, ready] = problem.ready();
    let args = (problem.args)(5);
    let bars = Compiled::new(&primal.program).run(primal.fun, &args, &Options::default());
    let all: Vec<Value> = args.iter().cloned().chain(bars.expect(problem.name).results).collect();
    let run = |what: &str, program: &Program, fun: FunId, args: Vec<Value>| Run {
        what: format!("{} {what}", problem.name),
        program: program.clone(),
        fun,
        args: vec![args],
        empties: false,
    };
    [run("objective", &primal.program, primal.fun, args), run("gradient", &ready.program, ready.fun, all)]
}
