//! The vm computes what the reference executor of kernel IR computes from the same module, bit for bit, and stops with the same
//! errors: random programs and the problems of the test kit, with their gradients, as lowered and in lanes.

use pullback_base::RuntimeError;
use pullback_core::{FunId, Program, Type, Value};
use pullback_driver::{Kind, Session, Settings, Wrt, derive, pipeline};
use pullback_interp::core::{Compiled, Options as Interpreter};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Module, lower};
use pullback_testkit::generate::Config;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::properties::case_of_seed;
use pullback_vm::{Executable, Functions, Limits, Machine, Options};

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
    let mut memory = Memory::new(1 << 24);
    let mut words: Vec<Word> = Vec::new();
    for (ty, value) in interface.params.iter().zip(args) {
        to_words(&mut memory, value, ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 400_000_000, backwards: false };
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
    let out = executable.session().call(id, &args, interface.results, Limits::default());
    out.map(|o| o.results).map_err(|e| text(&e))
}

fn assert_same(what: &str, expected: &Results, found: &Results) {
    let agree = match (expected, found) {
        (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    assert!(agree, "{what}: expected {expected:?}\nfound {found:?}");
}

/// Compares a program, as lowered with the interpreter, and in lanes with the reference executor; false if it has no kernel IR.
fn compare(what: &str, program: &Program, fun: FunId, args: &[Value]) -> bool {
    let Ok((plain, id)) = lower(program, fun) else { return false };
    let f = &program.funs[fun];
    let params = f.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let interface = Interface { params, results: &f.results };
    let exact = Options { functions: Functions::Table, poison: true, ..Options::default() };
    let expected = Compiled::new(program).run(fun, args, &Interpreter::default());
    let expected = expected.map(|o| o.results).map_err(|e| text(&e));
    assert_same(what, &expected, &vm(&plain, id, &interface, args, &exact));
    let free = Model { block: 0.0, lane: 0.0, apart: 0.0, registers: 0, tiles: [f64::INFINITY; 4] };
    for (lanes, model) in [(4, free), (64, free), (512, free), (512, Model::interpreter())] {
        let mut module = plain.clone();
        schedule(&mut module, &schedule::Options::new(lanes, model));
        let expected = reference(&module, id, &interface, args);
        for machine in Machine::ALL.into_iter().filter(|m| m.is_there()) {
            let options = Options { machine, ..exact.clone() };
            let found = vm(&module, id, &interface, args, &options);
            assert_same(&format!("{what} with {lanes} lanes, {machine:?}"), &expected, &found);
        }
    }
    true
}

#[test]
fn random_programs_and_their_gradients() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default);
    let (from, count) = (number("SEED", 0), number("COUNT", 200));
    let mut native = 0;
    for seed in from..from + count {
        let case = case_of_seed(seed, &Config::default());
        let mut check = |what: &str, program: &Program, fun: FunId, args: &[Value]| {
            let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
            let choice = Settings::default().choice;
            if pipeline::run(&mut program, pipeline::steps(true), &choice, &mut |_, _| {}).is_ok() {
                native += u64::from(compare(&format!("seed {seed} {what}"), &program, roots[0], args));
            }
        };
        check("program", &case.program, case.main, &case.args);
        let params = &case.program.funs[case.main].params;
        let wanted: Vec<bool> =
            params.iter().map(|p| case.program.is_active(&case.program.vars[*p].ty)).collect();
        let mut program = case.program.clone();
        let Ok(fun) = derive::add(&mut program, case.main, Kind::Vjp, &wanted) else { continue };
        let Ok(primal) = Compiled::new(&case.program).run(case.main, &case.args, &Interpreter::default())
        else {
            continue;
        };
        // Cotangents of the types of the results: only where those are the same.
        let types = &case.program.funs[case.main].results;
        let bars = primal.results.iter().zip(types).filter(|(_, t)| case.program.is_active(t));
        if bars.clone().any(|(_, t)| t.base().scalar().is_none_or(|s| !s.is_float())) {
            continue;
        }
        let args: Vec<Value> = case.args.iter().cloned().chain(bars.map(|(v, _)| v.clone())).collect();
        check("gradient", &program, fun, &args);
    }
    eprintln!("{native} programs were run");
    assert!(native >= count, "too few have kernel IR: {native}");
}

#[test]
fn the_problems_and_their_gradients() {
    let mut foreign = Vec::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for problem in PROBLEMS {
        let text = std::fs::read_to_string(root.join(problem.file)).expect(problem.file);
        let session = Session::compile(problem.file, &text, Settings::default()).expect(problem.name);
        let entry = session.entry(Some(problem.entry)).expect(problem.name);
        let args = (problem.args)(5);
        let primal = session.primal(&entry).expect(problem.name);
        let what = format!("{} objective", problem.name);
        if !compare(&what, &primal.program, primal.fun, &args) {
            foreign.push(what);
        }
        let wrt = Wrt::parse(problem.wrt);
        let selected = session.select(&entry, &wrt).expect(problem.name);
        let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect(problem.name);
        // The results themselves are cotangents as good as any.
        let bars = Compiled::new(&primal.program).run(primal.fun, &args, &Interpreter::default());
        let args: Vec<Value> = args.into_iter().chain(bars.expect(problem.name).results).collect();
        let what = format!("{} gradient", problem.name);
        if !compare(&what, &ready.program, ready.fun, &args) {
            foreign.push(what);
        }
    }
    eprintln!("without kernel IR: {foreign:?}");
    assert!(foreign.len() * 5 < PROBLEMS.len(), "too many have no kernel IR: {foreign:?}");
}
