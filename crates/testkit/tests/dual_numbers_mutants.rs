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
use pullback_testkit::on_all_processors;
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

/// The errors in what an algorithm makes that are found, and those that are not.
fn found_in(algorithm: &OnLambda) -> (Vec<Mutation>, Vec<Mutation>) {
    let mut found = Vec::new();
    let mut open: Vec<(Mutation, bool)> = Mutation::ALL.iter().map(|m| (*m, false)).collect();
    for seed in 0..PROGRAMS {
        let Some(case) = case(seed, algorithm) else { continue };
        open.retain_mut(|(error, applies)| {
            let is_found = is_found(&case, *error);
            *applies |= is_found.is_some();
            found.extend((is_found == Some(true)).then_some(*error));
            is_found != Some(true)
        });
        if open.iter().all(|(_, applies)| !applies) && seed > 40 {
            break;
        }
    }
    (found, open.into_iter().filter(|(_, applies)| *applies).map(|(error, _)| error).collect())
}

#[test]
fn every_wrong_rule_is_found() {
    let of_all = on_all_processors(all(), |algorithm| (algorithm.id, found_in(algorithm)));
    let surviving = of_all.iter().flat_map(|(id, (_, survived))| survived.iter().map(|error| (*id, *error)));
    let surviving: Vec<_> = surviving.filter(|pair| !EQUIVALENT.contains(pair)).collect();
    assert!(surviving.is_empty(), "{surviving:?} are not found");
    let found: Vec<Mutation> = of_all.iter().flat_map(|(_, (found, _))| found).copied().collect();
    for error in Mutation::ALL {
        assert!(found.contains(error), "{error:?} is in no algorithm");
    }
    println!("{} errors, {} with an algorithm", Mutation::ALL.len(), found.len());
}
