//! What gradients of the benchmark problems cost: a small constant times the objective, at every size.

use pullback_driver::Settings;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::steps::measure;
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
