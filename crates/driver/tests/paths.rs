//! Paths of imports are compared without detours.

use pullback_driver::imports::normal;
use std::path::Path;

#[test]
fn paths_are_compared_without_detours() {
    let is = |path: &str, expected: &str| assert_eq!(normal(Path::new(path)), Path::new(expected));
    is("a/../b", "b");
    is("./a/./b/../c", "a/c");
    is("../../a", "../../a");
    is("a/../../b", "../b");
    is("/a/../b", "/b");
}
