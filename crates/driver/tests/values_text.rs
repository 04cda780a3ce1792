//! Values as text: read, written, malformed.

use pullback_driver::values::text::{read, write};

#[test]
fn scalars_keep_type_and_value() {
    for text in ["1i32", "-2i8", "3u64", "1.5f64", "-0.25f32", "true", "f64.nan", "-f32.inf"] {
        let data = read(text).expect(text);
        assert_eq!(write(&data), text);
    }
}

#[test]
fn a_negative_number_of_an_unsigned_type_is_the_one_with_its_bits() {
    for (text, value) in
        [("-1u32", "4294967295u32"), ("-128u8", "128u8"), ("-1u64", "18446744073709551615u64")]
    {
        assert_eq!(write(&read(text).expect(text)), value);
    }
}

#[test]
fn structures_are_read_and_written() {
    let text = "{a = [1i64, 2i64], b = (#some 1.5f64, #none), c = empty([0][3]f64)}";
    assert_eq!(write(&read(text).expect("a value")), text);
}

#[test]
fn malformed_values_are_errors_with_a_line() {
    for text in ["[1, 2", "(1", "{a 1}", "1 2", "", "300u8", "x", "empty([2]f64)", "#some [", "\n\n]"] {
        assert!(read(text).is_err(), "{text}");
    }
    assert!(read("[1,\n2,,]").is_err_and(|e| e.message.contains("line 2")));
    assert!(read(&"[".repeat(100_000)).is_err());
    for text in [
        "18446744073709551616",
        "-9223372036854775809",
        "256u8",
        "128i8",
        "-129u8",
        "18446744073709551616u64",
    ] {
        let e = read(text).expect_err(text);
        assert!(e.message.contains("an integer in the range of its type"), "{text}: {}", e.message);
    }
}
