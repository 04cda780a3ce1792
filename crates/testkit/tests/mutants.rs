//! Deliberate rule errors are found by the properties; a pure waste of work is found by the cost property and by no other.

use pullback_ad::fast_chad::{Config, Mutation, Variant, vjp, vjp_with};
use pullback_testkit::properties::{Property, Stop, Verdict, case_of_seed, many_with};
use pullback_testkit::{generate, on_all_processors};

/// How many random programs a mutant may survive.
const PROGRAMS: u64 = 2_000;

/// The first seed on which one of the properties fails under a configuration.
fn killed_by(config: &Config, properties: &[Property], programs: u64) -> Option<(u64, Property)> {
    let generator = generate::Config::default();
    (0..programs).find_map(|seed| {
        let case = case_of_seed(seed, &generator);
        properties.iter().copied().find_map(|p| {
            let run = std::panic::AssertUnwindSafe(|| p.check(&case, &|q, l, w| vjp_with(q, l, w, config)));
            // A mutant that makes the transformation panic is found too.
            let verdict = std::panic::catch_unwind(run).unwrap_or(Verdict::Fails("panic".into()));
            matches!(verdict, Verdict::Fails(_)).then_some((seed, p))
        })
    })
}

/// The production algorithm with an error. An error of function pairs shows only where calls are not inlined.
fn mutant(mutation: Mutation) -> Config {
    let production = Config { mutation: Some(mutation), ..Config::default() };
    match mutation {
        Mutation::CallResultLost | Mutation::CallAccumulatorLost => Config { max_inlined: 0, ..production },
        _ => production,
    }
}

#[test]
fn every_wrong_rule_is_found() {
    let properties = [Property::Adjoint, Property::Checkpoints];
    // Random programs have no loop under a limit that adds to an accumulator of theirs; a program of its own finds this
    // error (`crates/ad/tests/fast_chad_mutations.rs`).
    let found = |m: &&Mutation| **m != Mutation::EffectsTwice;
    let mutations: Vec<Mutation> = Mutation::ALL.iter().filter(found).copied().collect();
    assert!(mutations.len() >= 40, "the list of deliberate errors is short");
    let survives = |mutation: Mutation| {
        let killed = killed_by(&mutant(mutation), &properties, PROGRAMS);
        let Some((seed, property)) = killed else { return Some(mutation) };
        println!("{mutation:?}: {} at seed {seed}", property.name());
        None
    };
    let survivors: Vec<Mutation> = on_all_processors(mutations, survives).into_iter().flatten().collect();
    assert!(survivors.is_empty(), "not found in {PROGRAMS} programs: {survivors:?}");
}

#[test]
fn errors_of_many_directions_are_found() {
    let generator = generate::Config::default();
    for &mutation in pullback_ad::many::Mutation::ALL {
        let found = (0..400).find(|&seed| {
            let case = case_of_seed(seed, &generator);
            let run = std::panic::AssertUnwindSafe(|| many_with(&case, &vjp, Some(mutation)));
            std::panic::catch_unwind(run).map_or(true, |check| matches!(check, Err(Stop::Fail(_))))
        });
        assert!(found.is_some(), "{mutation:?} is not found in 400 programs");
        println!("{mutation:?}: at seed {found:?}");
    }
}

#[test]
fn waste_is_found_by_cost_only() {
    let one_hot = Config { variant: Variant::OneHot, ..Config::default() };
    let values = [Property::Primal, Property::Adjoint, Property::Linear];
    assert_eq!(killed_by(&one_hot, &values, 150), None, "the one-hot rule is right, only dear");
    let found = killed_by(&one_hot, &[Property::Cost], PROGRAMS);
    println!("{found:?}");
    assert!(found.is_some(), "{PROGRAMS} programs do not show that an array of zeros per index is too dear");
}
