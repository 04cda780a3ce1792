//! Failures of one kind, whatever their numbers.

use pullback_testkit::shrink::kind_of;

#[test]
fn errors_of_other_kinds_or_texts_are_other_failures() {
    let of = |text: &str| kind_of(text);
    let index = "the derivative stopped: OutOfBounds: index 3 is outside of 0 .. 2";
    assert_eq!(of(index), of("the derivative stopped: OutOfBounds: index 12 is outside of 0 .. 1"));
    assert_ne!(of(index), of("the program stopped: OutOfBounds: index 3 is outside of 0 .. 2"));
    assert_ne!(of(index), of("the derivative stopped: Internal: expected a scalar"));
    assert_ne!(
        of("the derivative stopped: Internal: expected a scalar"),
        of("the derivative stopped: Internal: expected an array")
    );
    assert_eq!(of("tangent 3 of forward mode: 1e-3"), of("tangent 4 of forward mode: 2.5"));
}
