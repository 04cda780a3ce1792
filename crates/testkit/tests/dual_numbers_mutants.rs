//! Every deliberate error in what dual numbers and delta terms make is found by comparing gradients of random terms and of random programs that fork.

use pullback_ad::chad::dense::dense_vjp;
use pullback_ad::dual_numbers::e_arrays;
use pullback_ad::on_lambda::OnLambda;
use pullback_core::Value;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::{FunId, Program};
use pullback_testkit::chad::like;
use pullback_testkit::chad::terms::{Language, applied};
use pullback_testkit::dual_mutants::{Mutation, mutated};
use pullback_testkit::fork_join;
use pullback_testkit::native::near;
use pullback_testkit::stages::all;

/// What is no error: the identity made last has no function that is called but by the result itself.
const EQUIVALENT: &[(&str, Mutation)] = &[(e_arrays::ID, Mutation::StartsLate)];

/// How many random programs an error may survive.
const PROGRAMS: u64 = 100;

/// A gradient, with the number of the first function that belongs to it.
struct Case {
    program: Program,
    first: usize,
    gradient: FunId,
    args: Vec<Value>,
    expected: Value,
}

fn options() -> Options<'static> {
    Options { work_limit: 200_000, memory_limit: 64 << 20, ..Options::default() }
}

fn case(seed: u64, algorithm: &OnLambda) -> Option<Case> {
    let (mut program, f, args) = if seed.is_multiple_of(2) {
        let (program, f, args, primal, mut rng) = applied(seed, true, Language::Wide)?;
        let args: Vec<Value> = args.into_iter().chain([like(&mut rng, &primal)]).collect();
        (program, f, args)
    } else {
        let (text, mut args) = fork_join::program(seed, 8);
        let program = pullback_lambda::read::read(&text, None).expect("a program");
        let f = program.funs.ids().next_back()?;
        args.push(Value::f64(1.0));
        (program, f, args)
    };
    let first = program.funs.len();
    let made = (algorithm.vjp)(&mut program, f).ok()?;
    let gradient = dense_vjp(&mut program, f, made);
    let expected = run(&program, gradient, args.clone(), &options()).ok()?.result;
    Some(Case { program, first, gradient, args, expected })
}

/// Whether the error changes what a gradient gives, or stops it; `None`: it changes nothing of the program.
fn is_found(case: &Case, error: Mutation) -> Option<bool> {
    let (wrong, pieces) = mutated(&case.program, case.first, error);
    if pieces == 0 {
        return None;
    }
    let out = run(&wrong, case.gradient, case.args.clone(), &options());
    Some(out.map_or(true, |out| !near(&case.expected, &out.result, 1e-9)))
}

#[test]
fn every_wrong_rule_is_found() {
    let mut pairs = 0;
    let mut surviving = Vec::new();
    let mut seen = vec![0; Mutation::ALL.len()];
    for algorithm in all() {
        let mut open: Vec<(usize, Mutation, bool)> =
            Mutation::ALL.iter().enumerate().map(|(k, m)| (k, *m, false)).collect();
        for seed in 0..PROGRAMS {
            let Some(case) = case(seed, algorithm) else { continue };
            open.retain_mut(|(k, error, applies)| match is_found(&case, *error) {
                Some(true) => {
                    pairs += 1;
                    seen[*k] += 1;
                    false
                }
                found => {
                    *applies |= found.is_some();
                    true
                }
            });
            if open.iter().all(|(_, _, applies)| !applies) && seed > 40 {
                break;
            }
        }
        let survived: Vec<Mutation> = open.iter().filter(|(_, _, applies)| *applies).map(|o| o.1).collect();
        let pairs = survived.into_iter().map(|error| (algorithm.id, error));
        surviving.extend(pairs.filter(|pair| !EQUIVALENT.contains(pair)));
    }
    assert!(surviving.is_empty(), "{surviving:?} are not found");
    for (error, seen) in Mutation::ALL.iter().zip(&seen) {
        assert!(*seen > 0, "{error:?} is in no algorithm");
    }
    println!("{} errors, {pairs} with an algorithm", Mutation::ALL.len());
}
