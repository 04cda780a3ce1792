//! When a version of code is made for other sizes, and which one a call takes.

use pullback_base::Diagnostic;
use pullback_driver::{MOST, Versions, distance};

/// The words of arguments that are sizes.
type Sizes = Vec<Option<i64>>;

fn sizes(n: i64, m: i64) -> Sizes {
    vec![None, Some(n), Some(m)]
}
fn call(versions: &Versions<i64>, n: i64, m: i64) -> i64 {
    *versions.for_call(&sizes(n, m), || Ok(n)).as_ref().expect("it is made")
}

#[test]
fn a_version_is_made_at_the_second_call_that_is_far_larger() {
    let versions = Versions::default();
    assert_eq!(call(&versions, 2, 1000), 2);
    assert_eq!(call(&versions, 15, 3), 2, "near, and smaller");
    assert_eq!(call(&versions, 16, 1000), 2, "the first time");
    assert_eq!(call(&versions, 1000, 1), 2, "far from the last one");
    assert_eq!(call(&versions, 2000, 1), 2000);
    assert_eq!(call(&versions, 1, 1000), 2, "the first version stays");
    assert_eq!(call(&versions, 900, 2), 2000);
    assert_eq!(call(&versions, 2000, 100), 2000, "far from both, nearest to the last");
}

#[test]
fn there_is_an_end_to_versions() {
    let versions = Versions::default();
    for k in 0..10 {
        let n = 1 << (4 * k);
        let made = versions.for_calls(&sizes(n, 5), || Ok(n));
        let expected = if k < MOST { n } else { 1 << (4 * (MOST - 1)) };
        assert_eq!(made.as_ref().ok(), Some(&expected));
    }
    assert_eq!(call(&versions, 0, 5), 1);
}

#[test]
fn what_cannot_be_made_is_not_tried_again() {
    let versions = Versions::<i64>::default();
    let fails = || Err(Box::new(Diagnostic::global(pullback_base::Code::Unsupported, "no")));
    assert!(versions.for_calls(&sizes(1, 1), fails).is_err());
    assert!(versions.for_calls(&sizes(1 << 20, 1), || Ok(1)).is_err());
    assert!(versions.first().is_some_and(Result::is_err));
}

#[test]
fn distances_are_those_of_the_place_that_grows_most() {
    assert_eq!(distance(&vec![None, Some(3)], &vec![Some(100), Some(4)]), 1);
    assert_eq!(distance(&vec![Some(-5), Some(i64::MAX)], &vec![Some(0), Some(1)]), 0);
    assert_eq!(distance(&vec![Some(0), Some(8)], &vec![Some(i64::MAX), Some(9)]), 62);
    assert_eq!(distance(&Vec::new(), &vec![Some(1)]), 0);
}
