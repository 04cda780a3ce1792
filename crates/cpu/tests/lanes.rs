//! Lanes as machine code.

mod common;

#[test]
fn random_functions_of_lanes_do_what_the_reference_executor_does() {
    common::conformance::random_functions_of_lanes_do_what_the_reference_executor_does(
        &common::make,
        &[2, 4, 8, 16],
        &|w| vec![0, 1, w - 1, w, w + 1, 3 * w + 5],
        12,
    );
}
