//! How much a workspace takes, and which one a store gives.

use pullback_abi::{Workspace, Workspaces};

#[test]
fn a_workspace_to_spare_takes_no_more_than_it_may_where_the_system_refuses() {
    assert_eq!(Workspace::with_room(1 << 20, 1 << 21).asked(), 1 << 21);
    assert_eq!(Workspace::with_room(1 << 21, 1 << 20).asked(), 1 << 21);
    let refused = Workspace::with_room(1 << 20, 1 << 62);
    assert_eq!((refused.asked(), refused.bytes()), (1 << 20, 1 << 20));
}

#[test]
fn a_store_gives_what_was_used_most_and_keeps_nothing_that_is_too_small() {
    let store = Workspaces::default();
    let used = |asked, touched| {
        let mut w = Workspace::new(asked);
        w.touch(touched);
        w
    };
    for (asked, touched) in [(1 << 20, 5), (1 << 21, 7), (1 << 21, 9)] {
        store.give(used(asked, touched));
    }
    assert_eq!(store.touched(), 9);
    assert_eq!(store.take(1 << 20).map(|w| w.touched()), Some(9));
    // The smallest one goes, the other one is taken.
    assert_eq!(store.take(1 << 21).map(|w| w.touched()), Some(7));
    assert!(store.take(0).is_none());
    store.give(used(1 << 20, 5));
    assert!(store.take(1 << 22).is_none());
    assert_eq!(store.touched(), 0);
}
