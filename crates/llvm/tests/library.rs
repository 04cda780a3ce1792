//! Constants of libraries, and the numbers of their statuses.

use pullback_llvm::library::{STATUSES, constant};

#[test]
fn texts_are_constants_with_their_zero() {
    assert_eq!(constant("a", "x\"\n"), "@a = private unnamed_addr constant [4 x i8] c\"x\\22\\0A\\00\"\n");
}

#[test]
fn statuses_are_numbered_in_order() {
    assert!(STATUSES.iter().enumerate().all(|(k, s)| s.code == k as i32));
}
