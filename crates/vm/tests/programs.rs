//! The vm computes what the reference executor of kernel IR computes from the same module, bit for bit, and stops with the same
//! errors: random programs and the problems of the test kit, with their gradients, as lowered and in lanes.

use crate::common;

use pullback_base::RuntimeError;
use pullback_core::{FunId, Program, Type, Value};
use pullback_interp::core::{Compiled, Options as Interpreter};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Module, lower};
use pullback_testkit::draws::draws;
use pullback_testkit::generate::Config;
use pullback_testkit::native::{Run, optimised_runs_of_case, runs_of_problem};
use pullback_testkit::problems::{PROBLEMS, Problem};
use pullback_testkit::properties::case_of_seed;
use pullback_testkit::tampered::Error;
use pullback_vm::{Executable, Functions, Limits, Options};

/// Equal bits (any NaN for a NaN). Arrays without elements may differ in their other sizes.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            (a.shape == b.shape || (a.count() == 0 && b.count() == 0))
                && a.elements().zip(b.elements()).all(|(a, b)| same(&a, &b))
        }
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Sum(j, a), Value::Sum(k, b)) => j == k && a.iter().zip(b.iter()).all(|(a, b)| same(a, b)),
        (Value::Scalar(a), Value::Scalar(b)) => a == b || (a.as_f64().is_nan() && b.as_f64().is_nan()),
        _ => false,
    }
}

type Results = Result<Vec<Value>, String>;

fn text(e: &RuntimeError) -> String {
    format!("{:?}: {}", e.kind, e.message)
}

/// What a function takes and gives.
struct Interface<'a> {
    params: Vec<Type>,
    results: &'a [Type],
}

/// The reference executor.
fn reference(module: &Module, id: FunctionId, interface: &Interface<'_>, args: &[Value]) -> Results {
    reference_within(STEPS, module, id, interface, args)
}

/// How much a program may do.
const STEPS: u64 = 400_000_000;

fn reference_within(
    steps: u64,
    module: &Module,
    id: FunctionId,
    interface: &Interface<'_>,
    args: &[Value],
) -> Results {
    let mut memory = Memory::new(1 << 24);
    let mut words: Vec<Word> = Vec::new();
    for (ty, value) in interface.params.iter().zip(args) {
        to_words(&mut memory, value, ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps, backwards: false };
    let mut words = run(module, id, &words, &mut memory, options).map_err(|e| text(&e))?.into_iter();
    let read = |t: &Type| from_words(&memory, t, &mut words);
    let values: Result<Vec<Value>, _> = interface.results.iter().map(read).collect();
    values.map_err(|e| text(&e))
}

/// The vm.
fn vm(
    module: &Module,
    id: FunctionId,
    interface: &Interface<'_>,
    args: &[Value],
    options: &Options,
) -> Results {
    let executable = Executable::new(module, options);
    let args: Vec<(&Type, &Value)> = interface.params.iter().zip(args).collect();
    let limits = Limits { cancel: None, work: Some(STEPS) };
    let out = executable.session().call(id, &args, interface.results, limits);
    out.map(|o| o.results).map_err(|e| text(&e))
}

/// What is wrong, if something is.
fn difference(what: &str, expected: &Results, found: &Results) -> Option<String> {
    let agree = match (expected, found) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    (!agree).then(|| format!("{what}: expected {expected:?}\nfound {found:?}"))
}

/// A program with arguments, and its name in messages.
struct Case {
    what: String,
    program: Program,
    fun: FunId,
    args: Vec<Value>,
}

/// Compares a program, as lowered with the interpreter, and in lanes with the reference executor; `Ok(false)` if it has no kernel IR.
fn compare(case: &Case, exact: &Options) -> Result<bool, String> {
    let Case { what, program, fun, args } = case;
    let Ok((plain, id)) = lower(program, *fun) else { return Ok(false) };
    let f = &program.funs[*fun];
    let params = f.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let interface = Interface { params, results: &f.results };
    let expected = Compiled::new(program).run(*fun, args, &Interpreter::default());
    let expected = expected.map(|o| o.results).map_err(|e| text(&e));
    let agree = |what: &str, expected: &Results, found: &Results| {
        difference(what, expected, found).map_or(Ok(()), Err)
    };
    agree(what, &expected, &vm(&plain, id, &interface, args, exact))?;
    let free =
        Model { block: 0.0, lane: 0.0, apart: 0.0, registers: 0, tiles: [f64::INFINITY; 4], near: Some(0) };
    for (lanes, model) in [(4, free), (64, free), (512, free), (512, Model::interpreter())] {
        let mut module = plain.clone();
        schedule(&mut module, &schedule::Options::new(lanes, model));
        let expected = reference(&module, id, &interface, args);
        for machine in common::machines() {
            let options = Options { machine, ..exact.clone() };
            let found = vm(&module, id, &interface, args, &options);
            agree(&format!("{what} with {lanes} lanes, {machine:?}"), &expected, &found)?;
        }
    }
    Ok(true)
}

/// Functions of the primitive table, so that bits can be compared, and poison.
fn exact() -> Options {
    Options { functions: Functions::Table, poison: true, ..Options::default() }
}

/// The cases of functions, one for all arguments.
fn cases(runs: impl IntoIterator<Item = Run>) -> Vec<Case> {
    let all = runs.into_iter().flat_map(|Run { what, program, fun, args, .. }| {
        args.into_iter().map(move |args| Case { what: what.clone(), program: program.clone(), fun, args })
    });
    all.collect()
}

/// A random program and its gradient, if they can be made.
fn cases_of_seed(seed: u64) -> Vec<Case> {
    cases(optimised_runs_of_case(&case_of_seed(seed, &Config::default())))
}

/// A problem of the test kit and its gradient.
fn cases_of_problem(problem: &Problem) -> Vec<Case> {
    cases(runs_of_problem(problem))
}

#[test]
fn random_programs_and_their_gradients() {
    let mut seeds = draws("vm and executor", (50, 200), 4);
    let mut native = 0;
    for seed in seeds.by_ref() {
        for case in cases_of_seed(seed) {
            native += u64::from(compare(&case, &exact()).unwrap_or_else(|e| panic!("{e}")));
        }
    }
    eprintln!("{native} programs were run");
    assert!(native >= seeds.drawn(), "too few have kernel IR: {native}");
}

#[test]
fn the_problems_and_their_gradients() {
    let mut foreign = Vec::new();
    for case in PROBLEMS.iter().flat_map(cases_of_problem) {
        if !compare(&case, &exact()).unwrap_or_else(|e| panic!("{e}")) {
            foreign.push(case.what);
        }
    }
    eprintln!("without kernel IR: {foreign:?}");
    assert!(foreign.len() * 5 < PROBLEMS.len(), "too many have no kernel IR: {foreign:?}");
}

/// The reference executor, which checks its memory, is given other code than the vm.
#[test]
fn other_code_is_noticed() {
    for error in [Error::Lost, Error::Late] {
        let (mut all, mut found) = (0, 0);
        for case in (0..6).flat_map(cases_of_seed) {
            let Ok((mut module, id)) = lower(&case.program, case.fun) else { continue };
            schedule(&mut module, &schedule::Options::new(64, Model::interpreter()));
            let f = &case.program.funs[case.fun];
            let params = f.params.iter().map(|p| case.program.vars[*p].ty.clone()).collect();
            let interface = Interface { params, results: &f.results };
            let given = vm(&module, id, &interface, &case.args, &exact());
            for k in (0..).step_by(5) {
                let mut other = module.clone();
                if !error.put(&mut other.functions[id].body, k) {
                    break;
                }
                let expected = reference_within(1_000_000, &other, id, &interface, &case.args);
                all += 1;
                found += usize::from(difference(&case.what, &expected, &given).is_some());
            }
        }
        println!("{error:?}: {found} of {all}");
        assert!(found * 2 > all && all > 0, "{error:?}: {found} of {all} are noticed");
    }
}
