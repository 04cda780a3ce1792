//! Values as JSON: names that come twice, and what `serde_json` makes of the same text.

use pullback_core::EntryType;
use pullback_driver::values::json::{Strict, read};
use pullback_prim::Scalar;
use serde_json::Value as Json;

#[test]
fn a_name_that_comes_twice_is_an_error() {
    let scalar = || EntryType::Scalar(Scalar::F64);
    let inner = EntryType::Record(vec![("b".into(), scalar())]);
    let ty = EntryType::Record(vec![
        ("a".into(), EntryType::Array(None, Box::new(inner))),
        ("c".into(), scalar()),
    ]);
    assert!(read(&ty, r#"{"a": [{"b": 1.0}, {"b": -2}], "c": 18446744073709551615}"#).is_ok());
    for (text, name) in [
        (r#"{"a": [], "c": 1.0, "c": 2.0}"#, "`c`"),
        (r#"{"a": [{"b": 1.0}, {"b": 1.0, "b": 1.0}], "c": 1.0}"#, "`b`"),
    ] {
        let e = read(&ty, text).expect_err(text);
        assert!(e.to_string().contains(name) && e.to_string().contains("twice"), "{e}");
    }
}
#[test]
fn numbers_and_texts_are_those_of_serde_json() {
    let text = r#"[0, -1, 9223372036854775807, 18446744073709551615, 1e300, 0.1, 1e400, "x\n", true, null, {"k": [{}]}]"#;
    let huge = serde_json::from_str::<Json>(text);
    let strict = serde_json::from_str::<Strict>(text);
    assert_eq!(huge.is_err(), strict.is_err());
    let text = text.replace("1e400, ", "");
    let plain: Json = serde_json::from_str(&text).expect("JSON");
    let Strict(strict) = serde_json::from_str(&text).expect("JSON");
    assert_eq!(plain, strict);
}
