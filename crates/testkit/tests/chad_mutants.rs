//! Every deliberate error in what Efficient CHAD makes is found by the properties of `chad.rs`: wrong results by comparison with dual numbers, wasted work by
//! the exact cost.

use pullback_ad::chad::c_accumulating::Shape;
use pullback_testkit::chad::direct::derive;
use pullback_testkit::chad::measure::measure_with;
use pullback_testkit::chad::mutants::Mutation;
use pullback_testkit::chad::shrink::{nodes, shrink};
use pullback_testkit::chad::terms::{Language, case};
use pullback_testkit::chad::{Case, dense};

/// How many random terms an error may survive.
const TERMS: u64 = 1_000;

/// Value and cotangents of a case, with an error; `None`: it stops.
fn result(case: &Case, error: Option<Mutation>) -> Option<Vec<f64>> {
    let run = std::panic::AssertUnwindSafe(|| measure_with(case, Shape::Figure, error));
    let measured = std::panic::catch_unwind(run).ok()?.ok()?;
    let mut out = measured.value.floats();
    case.args.iter().zip(&measured.cells).for_each(|(v, d)| dense(v, d, &mut out));
    Some(out)
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(x, y)| x == y || x.is_nan() || y.is_nan() || (x - y).abs() <= 1e-9 * y.abs())
}

#[test]
fn every_wrong_rule_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    for error in Mutation::WRONG {
        let is_wrong = |case: &Case| match (result(case, None), result(case, Some(*error))) {
            (Some(right), Some(wrong)) => !same(&wrong, &right),
            (right, _) => right.is_some(),
        };
        let cases = (0..TERMS).filter_map(|seed| case(seed, false, Language::Wide).map(|case| (seed, case)));
        let found = cases.into_iter().find(|(_, case)| is_wrong(case));
        let Some((seed, case)) = found else { panic!("{error:?} is not found in {TERMS} terms") };
        let small = shrink(&case, &mut |case| is_wrong(case));
        let size = nodes(&small.program, small.f);
        println!("{error:?}: at seed {seed}, {} nodes, then {size}", nodes(&case.program, case.f));
        assert!(is_wrong(&small) && size <= 16, "{error:?}: {size} nodes");
    }
}

#[test]
fn waste_is_found_by_the_exact_cost_and_by_nothing_else() {
    for error in Mutation::WASTEFUL {
        let mut found = None;
        for seed in 0..TERMS / 4 {
            let Some(case) = case(seed, false, Language::Thesis) else { continue };
            let derived = derive(&case);
            // Some waste is exponential: more steps than are allowed.
            let Ok(wasteful) = measure_with(&case, Shape::Agda, Some(*error)) else {
                found = found.or(Some(seed));
                continue;
            };
            let floats = |cells: &[pullback_core::Value]| {
                let mut out = Vec::new();
                case.args.iter().zip(cells).for_each(|(v, d)| dense(v, d, &mut out));
                out
            };
            assert!(
                same(&floats(&wasteful.cells), &floats(&derived.cells)),
                "{error:?} gives other results at seed {seed}"
            );
            if wasteful.amortised != derived.amortised && found.is_none() {
                found = Some(seed);
            }
        }
        println!("{error:?}: at seed {found:?}");
        assert!(found.is_some(), "{error:?} is not found in {TERMS} terms");
    }
}
