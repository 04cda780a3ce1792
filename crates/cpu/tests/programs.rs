//! Compiled programs compute what the reference interpreter computes, and stop with the same errors: random programs and the
//! problems of the test kit, with their gradients. With strict floating point and the functions of the primitive table they
//! give the same bits.

use crate::common::executables;
use pullback_core::{FunId, Program, Type, Value};
use pullback_cpu::Options;
use pullback_interp::core::{Compiled, Options as Interpreter};
use pullback_kernel::lower;
use pullback_llvm::{Floats, Functions, text};
use pullback_testkit::draws::draws;
use pullback_testkit::generate::Config;
use pullback_testkit::native::{Run, optimised_runs_of_case, runs_of_problem};
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
    let mut seeds = draws("compiled", (4, 20), 4);
    let mut native = 0;
    for seed in seeds.by_ref() {
        for Run { what, program, fun, args, .. } in
            optimised_runs_of_case(&case_of_seed(seed, &Config::default()))
        {
            native += u64::from(compare(&what, &program, fun, &args[0], usize::MAX, &strict(), same));
            compare(&what, &program, fun, &args[0], 1, &Options::default(), near);
        }
    }
    eprintln!("{native} programs were compiled");
    assert!(native >= seeds.drawn(), "too few have kernel IR: {native}");
}

#[test]
fn the_problems_and_their_gradients() {
    let mut foreign = Vec::new();
    for Run { what, program, fun, args, .. } in PROBLEMS.iter().flat_map(runs_of_problem) {
        let both = compare(&what, &program, fun, &args[0], 1, &strict(), same)
            && compare(&what, &program, fun, &args[0], 1, &Options::default(), near);
        if !both {
            foreign.push(what);
        }
    }
    eprintln!("without kernel IR: {foreign:?}");
    assert!(foreign.len() * 5 < PROBLEMS.len(), "too many have no kernel IR: {foreign:?}");
}
