//! Work of the derivative over work of the program does not grow with the size of the data, family by family; and the
//! didactic one-hot rule fails the same test, so the test can fail.

use pullback_ad::fast_chad::{Config, Variant, vjp, vjp_with};
use pullback_testkit::cost::{FAMILIES, is_flat, ratios};
use pullback_testkit::draws::{draws, share, some_of};
use pullback_testkit::growth::draw::{draw, draw_recursive};
use pullback_testkit::growth::measure::Outcome;
use pullback_testkit::growth::search::{every, search};
use pullback_testkit::growth::terms::Frame;
use pullback_testkit::number;

/// The largest programs of the enumeration, in terms. `cargo xtask soak growth` examines all of them.
const LARGEST: usize = 4;

#[test]
fn production_rules_are_flat_on_every_family() {
    let mut wrong = Vec::new();
    for family in FAMILIES {
        match ratios(family, 256, &vjp) {
            Ok(r) if is_flat(&r) => {}
            other => wrong.push(format!("{} ({}): {other:?}", family.name, family.exposes)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_one_hot_rule_grows() {
    let config = Config { variant: Variant::OneHot, ..Config::default() };
    let mut wrong = Vec::new();
    for family in FAMILIES.iter().filter(|f| f.grows_one_hot) {
        let r = ratios(family, 256, &|p, l, w| vjp_with(p, l, w, &config));
        if r.as_ref().map_or(true, |r| is_flat(r)) {
            wrong.push(format!("{}: {r:?}", family.name));
        }
    }
    assert!(wrong.is_empty(), "flat although every index costs an array:\n{}", wrong.join("\n"));
}

/// A share of all small programs whose loops carry names of arrays; `STEP=1` takes all.
#[test]
fn small_loop_programs_are_flat() {
    let step = number("STEP", 23_971) as usize;
    let terms = every(LARGEST, step, share(step));
    let found = search(terms, &vjp);
    println!("{}", found.render());
    assert!(found.count * step > 99_500 && found.failures.is_empty(), "{}", found.render());
}

/// The same where functions call themselves or each other instead of loops.
#[test]
fn small_recursive_programs_are_flat() {
    let largest = number("LARGEST", LARGEST as u64 - 1) as usize;
    let mut terms = every(largest, 1, 0);
    terms.retain(|term| matches!(term.frame, Frame::Calls(_)));
    let (terms, step) = some_of(terms, 2_797);
    let found = search(terms, &vjp);
    println!("{}", found.render());
    assert!(found.count > 10_000 / step && found.failures.is_empty(), "{}", found.render());
}

#[test]
fn larger_random_loop_programs_are_flat() {
    let found = search(draws("growth", (70, 500), 4).map(draw), &vjp);
    assert!(found.failures.is_empty(), "{}", found.render());
}

/// Functions that call themselves: they overwrite what they are given and what they get back, hand on parts of it, and overwrite several
/// elements at once.
#[test]
fn larger_random_recursive_programs_are_flat() {
    let terms = draws("growth of recursion", (25, 500), 5).map(draw_recursive);
    let found = search(terms, &vjp);
    println!("{}", found.render());
    assert!(found.failures.is_empty(), "{}", found.render());
}

/// The enumeration has more than 50,000 programs, and without locations it finds many that grow.
#[test]
fn the_search_finds_growth() {
    let all = every(LARGEST, 1, 0);
    println!("{} programs; with fewer terms {:?}", all.len(), [1, 2, 3].map(|n| every(n, 1, 0).len()));
    assert!(all.len() > 50_000, "{}", all.len());
    let config = Config { locations: false, ..Config::default() };
    let (few, _) = some_of(all, 29_989);
    let found = search(few, &|p, l, w| vjp_with(p, l, w, &config));
    let grown = found.failures.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Grows(_))).count();
    println!("{grown} of {} grow", found.count);
    assert!(10 * grown > found.count, "{grown} of {}", found.count);
}
