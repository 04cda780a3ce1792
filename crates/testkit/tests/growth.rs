//! Work of the derivative over work of the program does not grow with the size of the data, family by family; and the
//! didactic one-hot rule fails the same test, so the test can fail.

use pullback_ad::fast_chad::{Config, Variant, vjp, vjp_with};
use pullback_testkit::cost::{FAMILIES, is_flat, ratios};

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
