//! Bulk dual numbers on random programs: where they do not refuse one, the properties hold.

use pullback_ad::Algorithm;
use pullback_ad::bulk::from_core::{ALGORITHM, vjp};
use pullback_ad::bulk::interpreted::ALGORITHMS;
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_core::{Type, Value};
use pullback_cpu::Level;
use pullback_interp::core::{Compiled, Options};
use pullback_prim::Scalar;
use pullback_testkit::draws::draws;
use pullback_testkit::flat::random_cotangent;
use pullback_testkit::generate::Config;
use pullback_testkit::native::soak::many;
use pullback_testkit::native::{Programs, Way};
use pullback_testkit::properties::{Property, case_of_seed, reverse_program};
use pullback_testkit::rng::Rng;
use pullback_testkit::soak::soak_with;

#[test]
fn bulk_dual_numbers_are_right_or_refuse() {
    // Usually 0.59 and 0.054 are taken. Of the second kind more are drawn, so that chance does not come below its share.
    for (name, config, drawn, least) in
        [("bulk", Config::bulk(), 150, 0.5), ("bulk anything", Config::default(), 400, 0.01)]
    {
        let report = soak_with(draws(name, (drawn, 600), 4), &config, &Property::OF_A_DERIVATIVE, &vjp);
        println!("{}", report.render());
        assert!(report.failures.is_empty(), "{}", report.render());
        let held = report.holds(Property::Adjoint) as f64;
        assert!(held >= least * report.programs as f64, "too many are refused:\n{}", report.render());
    }
}

/// The algorithms whose delta terms are made while a program runs: they refuse what `bulk` refuses and products as arguments and results, which
/// entry points never have; and they have its cotangents.
#[test]
fn delta_terms_at_run_time_have_the_cotangents_of_the_symbolic_pass() {
    let mut all = draws("bulk at run time", (60, 300), 2);
    let (mut tried, mut drawn) = (0, 0);
    for seed in &mut all {
        drawn += 1;
        let mut case = case_of_seed(seed, &Config::bulk());
        differentiate(&mut case.program, &Choice::default()).expect("derivatives inside of it");
        let main = &case.program.funs[case.main];
        let wanted = vec![true; main.params.len()];
        let types = main.params.iter().map(|p| &case.program.vars[*p].ty).chain(&main.results);
        let has_products =
            types.into_iter().any(|t| matches!(t, Type::Tuple(_)) && case.program.is_active(t));
        let symbolic = reverse_program(&case, &vjp);
        for algorithm in ALGORITHMS {
            let made = algorithm.derivative(&case.program, case.main, &wanted);
            let is_taken = symbolic.is_ok() && (made.is_ok() || !has_products);
            let why = made.as_ref().err();
            assert_eq!(made.is_ok(), is_taken, "{} on seed {seed}: {why:?}", algorithm.id);
            let (Ok(made), Ok((program, fun))) = (made, &symbolic) else { continue };
            let options = Options::default();
            let (first, read) = made.first();
            let Ok(read) = Compiled::new(first).run(read, &case.args, &options) else { continue };
            let mut rng = Rng::new(seed);
            let results = &case.program.funs[case.main].results;
            let pairs = read.results.iter().zip(results);
            let active = pairs.map(|(v, t)| random_cotangent(v, case.program.is_active(t), &mut rng));
            let cotangents: Vec<Value> = active.flatten().collect();
            let all = [case.args.as_slice(), &cotangents].concat();
            let expected = Compiled::new(program).run(*fun, &all, &options).expect("as the function").results;
            let found = made.after(read.results.clone(), &cotangents).unwrap_or_else(|e| panic!("{e:?}"));
            let found = [found.results, found.cotangents].concat();
            let floats = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
            let (found, expected) = (floats(&found), floats(&expected));
            // The scalar evaluator adds cotangents in double precision.
            let single = case.program.vars.iter().any(|v| v.ty.base().scalar() == Some(Scalar::F32));
            let tolerance = if single { 2e-3 } else { 1e-8 };
            let close = |(x, y): (&f64, &f64)| {
                (x - y).abs() <= tolerance * (1.0 + y.abs()) || x == y || !x.is_finite() || !y.is_finite()
            };
            let same = found.len() == expected.len() && found.iter().zip(&expected).all(close);
            assert!(same, "{} on seed {seed}: {found:?} {expected:?}", algorithm.id);
            tried += 1;
        }
    }
    // Each program that is taken runs twice.
    assert!(10 * tried >= 9 * drawn, "of {drawn} programs {tried} runs were compared");
}

/// As machine code and on the vm the gradients are those of the interpreter, where they are those of Fast CHAD.
#[test]
fn bulk_dual_numbers_are_native() {
    // Usually 0.69 of the programs are taken, each as it is and optimised.
    gradients_are_native(ALGORITHM, (40, 400), 1.0);
}

/// The same of an algorithm; of each program so many runs are compared, in the mean.
#[allow(clippy::print_stdout, reason = "a test shows what it counted")]
pub(crate) fn gradients_are_native(by: Algorithm, programs: (u64, u64), least: f64) {
    let mut seeds = draws(by.id, programs, 5);
    let ways = |seed: u64, k: usize| Way::in_turn(seed, k, Some(Level::O1));
    let counts = many(&Programs::translated(by), &mut seeds, &ways);
    println!("{}", counts.render());
    let failures: Vec<String> =
        counts.failures.iter().take(4).map(|(seed, text)| format!("{seed}: {text}")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let compared = counts.compared();
    assert!(
        compared as f64 > least * seeds.drawn() as f64,
        "too few were compared: {compared} of {}",
        seeds.drawn()
    );
    assert!(counts.of("unstable") * 10 <= compared, "too many decide nothing");
}
