//! Descriptors of cotangents: sums and joins of them.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_ad::internals::{Desc, Entry, array, as_hot, full, hot, join, maybe, sum};
use pullback_core::{Program, Type};
use pullback_prim::Scalar;

fn real() -> Desc {
    Desc::Real(Scalar::F64)
}

#[test]
fn a_possibly_absent_array_is_not_the_lattice_join() {
    // Footnote 28 of the thesis: T A + S (T (T R)) keeps the inner array optional.
    let s = Desc::Array(Box::new(Desc::Absent));
    let t = maybe(array(array(real())));
    let expected = array(maybe(array(real())));
    assert_eq!(sum(&s, &t, true, true), expected);
}

#[test]
fn hot_entries_concatenate_in_sums_and_overlay_in_joins() {
    let one = hot(Desc::Absent, vec![Entry { maybe: false, payload: real() }]);
    let (_, entries) = as_hot(&sum(&one, &one, true, true));
    assert_eq!(entries.len(), 2);
    let (_, entries) = as_hot(&join(&one, &one));
    assert_eq!(entries.len(), 1);
    let (_, entries) = as_hot(&join(&one, &Desc::Absent));
    assert!(entries[0].maybe, "padding");
}

#[test]
fn the_full_descriptor_packs_to_the_cotangent_type() {
    let p = Program::default();
    let ty = Type::tuple([
        Type::I64,
        Type::array(Type::sum([("a", vec![Type::F64, Type::BOOL]), ("b", vec![Type::array(Type::F64)])])),
    ]);
    assert_eq!(Some(full(&p, &ty).unwrap().value_type()), p.cotangent(&ty).unwrap());
}
