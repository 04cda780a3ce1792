//! The protocol by itself: who takes what, and that no worker is needed.

use crate::protocol::Shared;
use std::panic::catch_unwind;

#[test]
fn the_caller_takes_its_own_chunks_from_the_front_and_others_from_the_back_and_needs_no_worker() {
    let shared = Shared::new(3);
    let mut order = Vec::new();
    shared.hold().expect("nobody has it").launch((), 10, 3, |chunk| order.push(chunk), |_| {});
    // The ranges are 0..3, 3..6 and 6..10.
    assert_eq!(order, [0, 1, 2, 5, 4, 3, 9, 8, 7, 6]);
}

#[test]
fn a_launch_that_panics_leaves_the_lock_free_and_its_other_chunks_are_dropped() {
    let shared = Shared::new(2);
    let launch = || shared.hold().expect("nobody has it").launch((), 4, 2, |_| panic!("a chunk"), |_| {});
    catch_unwind(launch).expect_err("a panic");
    let mut order = Vec::new();
    shared.hold().expect("nobody has it").launch((), 3, 2, |chunk| order.push(chunk), |_| {});
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn one_thread_at_a_time_has_the_launch_lock() {
    let shared = Shared::<()>::new(2);
    let held = shared.hold();
    assert!(held.is_some());
    // Whoever does not get it does not give it back either.
    assert!(shared.hold().is_none() && shared.hold().is_none());
    drop(held);
    assert!(shared.hold().is_some());
}
