//! What gradients of the benchmark problems cost: a small constant times the objective, at every size.

use pullback_driver::Settings;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::steps::{SIZE, measure, measure_elimination, table};
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

/// The table of the book is true: a derivative that takes more steps is noticed, and one that takes fewer is written down, so that
/// the next one is compared with it. Counts are the same on every machine.
#[test]
fn the_table_of_the_book_has_the_steps_that_are_counted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/book/steps.md")).expect("the page is there");
    let table = table(&root, SIZE);
    let wrong: Vec<String> = differences(&page, &table);
    assert!(
        wrong.is_empty(),
        "{}\nwhere more steps are meant, and where fewer are taken: `cargo xtask steps`",
        wrong.join("\n")
    );
}

/// The lines of the table in a page that are others in a new table.
fn differences(page: &str, table: &str) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|l| l.starts_with('|')).map(str::to_string).collect()
    };
    let (old, new) = (lines(page), lines(table));
    let mut wrong: Vec<String> =
        old.iter().filter(|l| !new.contains(l)).map(|l| format!("in the book: {l}")).collect();
    wrong.extend(new.iter().filter(|l| !old.contains(l)).map(|l| format!("counted:     {l}")));
    wrong
}

#[test]
fn a_line_with_another_count_is_another_line() {
    let (page, more) = ("# Title\n\n| hello | 3 |\n| gmm | 5 |\n", "| hello | 3 |\n| gmm | 6 |\n");
    assert!(differences(page, &more.replace('6', "5")).is_empty());
    assert_eq!(differences(page, more), ["in the book: | gmm | 5 |", "counted:     | gmm | 6 |"]);
    assert_eq!(differences(page, "| hello | 3 |\n"), ["in the book: | gmm | 5 |"]);
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
