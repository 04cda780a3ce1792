//! Messages of functions of libraries as formats for `snprintf`.

use pullback_base::RuntimeErrorKind;
use pullback_kernel::{Message, Text};
use pullback_llvm::internals::{Format, Value, formats};

fn of(text: Text, count: usize) -> (Format, Option<Format>) {
    formats(&Message { kind: RuntimeErrorKind::Internal, text, span: None }, count)
}

#[test]
fn messages_become_formats() {
    let (format, _) = of(Text::Plain("100% of {} and {}".into()), 2);
    assert_eq!(format.text, "100%% of %lld and %lld");
    assert_eq!(format.values, [Value::One(0), Value::One(1)]);
    let (format, _) = of(Text::Index(2), 4);
    assert_eq!(format.text, "index [%lld, %lld] is out of bounds for an array of shape [%lld][%lld]");
    let (format, _) = of(Text::Index(1), 2);
    assert_eq!(format.text, "index %lld is out of bounds for an array of size %lld");
    let (format, _) = of(Text::Shapes("map".into(), 1), 2);
    assert_eq!(format.text, "map: shapes [%lld] and [%lld] differ");
}

#[test]
fn values_may_be_read_out_of_order_and_multiplied() {
    let (usual, at_one) = of(Text::Slice, 4);
    assert_eq!(
        usual.text,
        "a slice of %lld elements from index %lld in steps of %lld is out of bounds for an array of size %lld"
    );
    let at_one = at_one.expect("another format for steps of one");
    assert_eq!(
        at_one.text,
        "a slice of %lld elements from index %lld is out of bounds for an array of size %lld"
    );
    assert_eq!(at_one.values, [Value::One(0), Value::One(1), Value::One(3)]);
    let (format, _) = of(Text::Reshape(1), 3);
    assert_eq!(format.text, "reshape: [%lld] has %lld elements, [%lld][%lld] has %lld");
    assert_eq!(format.values[1], Value::Product(0..1));
    assert_eq!(format.values[4], Value::Product(1..3));
}
