//! Values of core become words, and come back from them.

#![allow(unsafe_code, reason = "words are those of values that are alive")]

use pullback_abi::{Arguments, Room, from_words, width};
use pullback_core::{Array, Buffer, Type, Value};
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

fn room() -> Room {
    Room { in_use: 0, limit: 1 << 20 }
}

#[test]
fn results_for_which_there_is_no_room_are_refused_before_they_are_read() {
    let x = 1.5f64;
    let address = std::ptr::from_ref(&x).expose_provenance() as u64;
    // One number seen as many, as a replicated array is.
    let view = |n: u64, m: u64| [address, n, m, 0, 0];
    let matrix = Type::array_of_rank(Type::F64, 2);
    let read = |words: [u64; 5], limit: u64| {
        let mut room = Room { in_use: 100, limit };
        // SAFETY: all elements are the number above.
        unsafe { from_words(&matrix, &mut words.as_slice(), &mut room) }
    };
    assert!(read(view(3, 4), 196).is_ok());
    let refused = |words, limit| read(words, limit).expect_err("too much").message;
    let text = "out of memory: 96 more bytes are needed, 100 are in use, the limit is 195";
    assert_eq!(refused(view(3, 4), 195), text);
    let text = refused(view(1 << 40, 1 << 40), 1 << 34);
    assert!(text.contains(&format!("{} more bytes", 1u128 << 83)), "{text}");
    assert!(read(view(1 << 40, 0), 200).is_ok(), "empty");
}

fn sum(tag: usize, fields: Vec<Value>) -> Value {
    Value::Sum(tag, Arc::new(fields))
}

fn round_trip(ty: &Type, value: &Value) -> Value {
    let mut given = Arguments::default();
    given.push(ty, value).expect("a value of the type");
    assert_eq!(given.words.len(), width(ty).expect("words"));
    let mut words = given.words.as_slice();
    // SAFETY: the words were just made from a value that is alive.
    let out = unsafe { from_words(ty, &mut words, &mut room()) }.expect("a value");
    assert!(words.is_empty());
    out
}

#[test]
fn values_of_all_kinds_come_back() {
    let bools = Value::Array(Array::new(vec![2, 2], Buffer::Bool(vec![true, false, false, true])));
    let small = Value::Scalar(ScalarValue::I8(-3));
    let tuple = Type::tuple([Type::array_of_rank(Type::BOOL, 2), Type::Scalar(Scalar::I8), Type::F32]);
    let value = Value::Tuple(vec![bools, small, Value::Scalar(ScalarValue::F32(1.5))]);
    assert_eq!(round_trip(&tuple, &value), value);

    let option =
        Type::sum([("none", vec![]), ("one", vec![Type::F64]), ("all", vec![Type::array(Type::I64)])]);
    for value in [sum(0, vec![]), sum(1, vec![Value::f64(2.5)]), sum(2, vec![Value::i64s(&[4, 5])])] {
        assert_eq!(round_trip(&option, &value), value);
    }

    let items = vec![sum(2, vec![Value::i64s(&[1, 2, 3])]), sum(0, vec![]), sum(1, vec![Value::f64(-0.5)])];
    let array = Value::Array(Array::new(vec![3, 1], Buffer::Boxed(items)));
    assert_eq!(round_trip(&Type::array_of_rank(option, 2), &array), array);
}

#[test]
fn words_are_laid_out_as_the_lowering_reads_them() {
    let mut given = Arguments::default();
    let matrix = Value::f64_array(&[2, 3], &[0.0; 6]);
    given.push(&Type::array_of_rank(Type::F64, 2), &matrix).expect("a matrix");
    // An address, then sizes, then strides.
    assert_eq!(given.words[1..], [2, 3, 3, 1]);
    let mut given = Arguments::default();
    given.push(&Type::option(Type::F64), &sum(0, vec![])).expect("a sum");
    assert_eq!(given.words, [0, 0]);
}

#[test]
fn results_are_read_at_any_strides() {
    let numbers: Vec<i64> = (0..12).collect();
    // The transposition of a 3 by 4 matrix, and every second element backwards from the last.
    let start = numbers.as_ptr().expose_provenance() as u64;
    let words = [start, 4, 3, 1, 4, start + 8 * 11, 3, (-2i64) as u64];
    let mut rest = words.as_slice();
    let matrix = Type::array_of_rank(Type::I64, 2);
    // SAFETY: the elements at these strides are those of `numbers`.
    let (a, b) = unsafe {
        (
            from_words(&matrix, &mut rest, &mut room()),
            from_words(&Type::array(Type::I64), &mut rest, &mut room()),
        )
    };
    let expected = vec![0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11];
    assert_eq!(a, Ok(Value::Array(Array::new(vec![4, 3], Buffer::I64(expected)))));
    assert_eq!(b, Ok(Value::i64s(&[11, 9, 7])));
}

#[test]
fn a_value_of_another_type_is_an_error() {
    let mut given = Arguments::default();
    assert!(given.push(&Type::F64, &Value::i64(1)).is_err());
    assert!(given.push(&Type::array(Type::F64), &Value::i64s(&[1])).is_err());
    assert!(given.push(&Type::array_of_rank(Type::F64, 2), &Value::f64s(&[1.0])).is_err());
    assert!(given.push(&Type::acc(Type::F64), &Value::f64(1.0)).is_err());
}
