//! Compiled programs compute what the reference interpreter computes, and stop with the same errors: random programs and the
//! problems of the test kit, with their gradients. With strict floating point and the functions of the primitive table they
//! give the same bits.

mod common;

use common::executables;
use pullback_core::{FunId, Program, Type, Value};
use pullback_cpu::Options;
use pullback_driver::{Kind, Session, Settings, Wrt, derive, pipeline};
use pullback_interp::core::{Compiled, Options as Interpreter};
use pullback_kernel::lower;
use pullback_llvm::{Floats, Functions, text};
use pullback_testkit::generate::Config;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::properties::case_of_seed;

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

/// Equal up to rounding: floats differ by at most this part of the largest one beside them. A sum of some thousand terms of
/// one size errs by about so much of it when each term changes in its last bits, which is what contraction and other functions
/// do.
const ROUNDING: f64 = 1e-11;

fn near(a: &Value, b: &Value) -> bool {
    /// The size of a finite float.
    fn size(v: &Value) -> Option<f64> {
        match v {
            Value::Scalar(x) if x.scalar().is_float() => {
                Some(x.as_f64()).filter(|x| x.is_finite()).map(f64::abs)
            }
            _ => None,
        }
    }
    fn within(a: &Value, b: &Value, largest: f64) -> bool {
        match (a, b) {
            (Value::Array(x), Value::Array(y)) => {
                let largest = x.elements().filter_map(|x| size(&x)).fold(largest, f64::max);
                (x.shape == y.shape || (x.count() == 0 && y.count() == 0))
                    && x.elements().zip(y.elements()).all(|(a, b)| within(&a, &b, largest))
            }
            (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b).all(|(a, b)| within(a, b, 1.0)),
            (Value::Sum(j, a), Value::Sum(k, b)) => {
                j == k && a.iter().zip(b.iter()).all(|(a, b)| within(a, b, 1.0))
            }
            (Value::Scalar(x), Value::Scalar(y)) => {
                let largest = size(a).map(|size| size.max(largest));
                same(a, b) || largest.is_some_and(|l| (x.as_f64() - y.as_f64()).abs() <= ROUNDING * l)
            }
            _ => false,
        }
    }
    within(a, b, 1.0)
}

/// With the bits of the interpreter: loops as they are.
fn strict() -> Options {
    let text =
        text::Options { floats: Floats::Strict, functions: Functions::Table, ..text::Options::default() };
    Options { text, lanes: Some(0), ..Options::default() }
}

/// Compares so many compilers with the interpreter; false if the program has no kernel IR.
fn compare(
    what: &str,
    program: &Program,
    fun: FunId,
    args: &[Value],
    compilers: usize,
    options: &Options,
    agree: fn(&Value, &Value) -> bool,
) -> bool {
    let Ok((module, id)) = lower(program, fun) else { return false };
    let expected = Compiled::new(program).run(fun, args, &Interpreter::default());
    let params: Vec<Type> = program.funs[fun].params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let args: Vec<(&Type, &Value)> = params.iter().zip(args).collect();
    for executable in executables(&module, options.clone()).take(compilers) {
        let compiler = executable.compiler();
        let found = executable.session().call(id, &args, &program.funs[fun].results, None);
        match (&expected, found) {
            (Ok(expected), Ok(found)) => {
                let all = expected.results.iter().zip(&found.results).all(|(a, b)| agree(a, b));
                assert!(
                    all,
                    "{what} {compiler:?}: expected {:?}\nfound {:?}",
                    expected.results, found.results
                );
            }
            // Lanes may come upon another error first.
            (Err(_), Err(_)) if options.lanes != Some(0) => {}
            (Err(expected), Err(found)) => {
                let text = |e: &pullback_base::RuntimeError| format!("{:?}: {e}", e.kind);
                assert_eq!(text(expected), text(&found), "{what} {compiler:?}");
            }
            (expected, found) => panic!("{what} {compiler:?}: expected {expected:?}\nfound {found:?}"),
        }
    }
    true
}

#[test]
fn random_programs_and_their_gradients() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default);
    let (from, count) = (number("SEED", 0), number("COUNT", 8));
    let mut native = 0;
    for seed in from..from + count {
        let case = case_of_seed(seed, &Config::default());
        let mut check = |what: &str, program: &Program, fun: FunId, args: &[Value]| {
            let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
            let choice = Settings::default().choice;
            if pipeline::run(&mut program, pipeline::steps(true), &choice, &mut |_, _| {}).is_ok() {
                let what = format!("seed {seed} {what}");
                native += u64::from(compare(&what, &program, roots[0], args, usize::MAX, &strict(), same));
                compare(&what, &program, roots[0], args, 1, &Options::default(), near);
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
    eprintln!("{native} programs were compiled");
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
        let both = |what: &str, program: &Program, fun: FunId, args: &[Value]| {
            compare(what, program, fun, args, 1, &strict(), same)
                && compare(what, program, fun, args, 1, &Options::default(), near)
        };
        if !both(&what, &primal.program, primal.fun, &args) {
            foreign.push(what);
        }
        let wrt = Wrt::parse(problem.wrt);
        let selected = session.select(&entry, &wrt).expect(problem.name);
        let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect(problem.name);
        // The results themselves are cotangents as good as any.
        let bars = Compiled::new(&primal.program).run(primal.fun, &args, &Interpreter::default());
        let args: Vec<Value> = args.into_iter().chain(bars.expect(problem.name).results).collect();
        let what = format!("{} gradient", problem.name);
        if !both(&what, &ready.program, ready.fun, &args) {
            foreign.push(what);
        }
    }
    eprintln!("without kernel IR: {foreign:?}");
    assert!(foreign.len() * 5 < PROBLEMS.len(), "too many have no kernel IR: {foreign:?}");
}
