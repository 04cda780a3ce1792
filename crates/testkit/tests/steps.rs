//! What gradients of the benchmark problems cost: a small constant times the objective, at every size.

use pullback_driver::Settings;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::steps::{measure, measure_elimination};
use std::path::Path;

/// The gradient of a scalar function needs at most about three times the steps of a scalar program (each product has two
/// partial products); four leaves room for cotangents of data that are added.
const BOUND: f64 = 4.0;

#[test]
fn a_gradient_costs_a_small_constant_times_the_objective() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = Vec::new();
    for problem in PROBLEMS {
        let ratio = |size| measure(&root, problem, size, &Settings::default()).map(|m| m.ratio());
        match (ratio(16), ratio(64)) {
            (Ok(small), Ok(big)) if big <= small * 1.1 && big <= BOUND => {}
            other => wrong.push(format!("{}: {other:?}", problem.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How many hundredths of the steps elimination may add. A row of `k` numbers is added in `k` steps, but as a sum over the
/// points of a map it is handed out, visited and added in `3 k`: that is the case in `ht`, which adds little else (28 of the
/// hundred since sizes have one name, which made both sides cheaper, the one without elimination more).
const PRICE: u64 = 28;

#[test]
fn elimination_of_accumulators_costs_little() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = Vec::new();
    for problem in PROBLEMS {
        match measure_elimination(&root, problem, 32) {
            Ok([with, without]) if with.work * 100 <= without.work * (100 + PRICE) => {}
            other => wrong.push(format!("{}: {other:?}", problem.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
