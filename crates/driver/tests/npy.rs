//! NumPy's files: headers as the format describes them, elements by hand, and everything that is no such file.

use pullback_core::{Array, Buffer, Value};
use pullback_driver::values::{Data, npy};

/// A file with this header, in this version, and these elements.
fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

fn array(bytes: &[u8]) -> Array {
    match npy::read(bytes) {
        Ok(Data::Dense(array)) => array,
        other => panic!("{other:?}"),
    }
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    Value::Array(array(bytes)).floats()
}

fn refusal(bytes: &[u8]) -> String {
    npy::read(bytes).expect_err("it is refused").to_string()
}

#[test]
fn elements_of_every_type_and_order() {
    let bytes = |items: &[f64]| items.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    for version in [1, 2, 3] {
        let text = header("<f8", "False", "(2, 3)");
        let found = array(&file(version, &text, &bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
        assert_eq!(found.shape, [2, 3]);
        assert_eq!(Value::Array(found).floats(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
    let by_columns = file(1, &header("<f8", "True", "(2, 3)"), &bytes(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    assert_eq!(floats(&by_columns), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let big_end = file(1, &header(">f8", "False", "(1,)"), &[0x40, 0x04, 0, 0, 0, 0, 0, 0]);
    assert_eq!(floats(&big_end), [2.5]);
    let integers = array(&file(1, &header("<i2", "False", "(3,)"), &[1, 0, 0xff, 0xff, 0, 0x80]));
    assert_eq!(*integers.data, Buffer::I16(vec![1, -1, -32768]));
    let truths = array(&file(1, &header("|b1", "False", "(2,)"), &[0, 1]));
    assert_eq!(*truths.data, Buffer::Bool(vec![false, true]));
    // Older files: double quotes, letters behind long numbers, another order of keys, no comma at the end.
    let older = "{\"shape\": (2L,), \"fortran_order\": False, \"descr\": \"|u1\"}";
    assert_eq!(*array(&file(1, older, &[7, 255])).data, Buffer::U8(vec![7, 255]));
    let none = array(&file(1, &header("<f8", "False", "(0, 4)"), &[]));
    assert_eq!(none.shape, [0, 4]);
    let scalar = npy::read(&file(1, &header("<f4", "False", "()"), &1.5f32.to_le_bytes()));
    assert!(matches!(scalar, Ok(Data::Scalar(x)) if x.as_f64() == 1.5), "{scalar:?}");
}

/// IEEE 754, binary16: one sign, five bits of exponent with bias 15, ten of the fraction.
#[test]
fn half_floats_are_exact() {
    let rows: [(u16, f64); 9] = [
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x3555, 0.333_251_953_125),
        (0x7bff, 65_504.0),
        (0x0400, 0.000_061_035_156_25),
        (0x03ff, 1023.0 / 16_777_216.0),
        (0x0001, 1.0 / 16_777_216.0),
        (0x8001, -1.0 / 16_777_216.0),
        (0xfc00, f64::NEG_INFINITY),
    ];
    let bytes: Vec<u8> = rows.iter().flat_map(|(bits, _)| bits.to_le_bytes()).collect();
    let found = floats(&file(1, &header("<f2", "False", "(9,)"), &bytes));
    assert_eq!(found, rows.map(|(_, value)| value));
    let odd = floats(&file(1, &header("<f2", "False", "(2,)"), &[0, 0x80, 0, 0x7e]));
    assert!(odd[0] == 0.0 && odd[0].is_sign_negative() && odd[1].is_nan(), "{odd:?}");
}

#[test]
fn every_cut_and_every_wrong_byte_ends_soon() {
    let whole = file(1, &header("<f8", "False", "(2,)"), &[0; 16]);
    for end in 0..whole.len() {
        let text = refusal(&whole[..end]);
        assert!(text.contains("npy file"), "{end}: {text}");
    }
    // No claim is believed: memory is reserved for what is there.
    for at in 0..whole.len() - 16 {
        for byte in [0, b' ', b'(', b')', b'9', b'{', b'}', b'\'', b',', 0x80, 0xff] {
            let mut wrong = whole.clone();
            wrong[at] = byte;
            if let Ok(Data::Dense(array)) = npy::read(&wrong) {
                assert!(array.data.len() <= 16, "{at}, {byte}: {:?}", array.shape);
            }
        }
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let shaped = |shape: &str| refusal(&file(1, &header("<f8", "False", shape), &[0; 16]));
    let rows = [
        (refusal(b"PK\x03\x04"), "does not begin as one"),
        (refusal(&file(9, "{}", &[])), "version"),
        (refusal(&file(1, "{'descr': '<f8'}", &[])), "no key `fortran_order`"),
        (refusal(&file(1, &header("<c16", "False", "(1,)"), &[0; 16])), "element type c16"),
        (refusal(&file(1, "{'descr': [('a', '<f8')], }", &[])), "arrays of records"),
        (shaped("(3,)"), "ends after 2 of 3 elements"),
        (shaped("(1000000000000,)"), "more than it holds"),
        (shaped("(9223372036854775808,)"), "below 2^63"),
        (shaped("(99999999999999999999,)"), "below 2^63"),
        (shaped("(4294967296, 4294967296, 4294967296)"), "more than it holds"),
        (shaped("(-1,)"), "below 2^63"),
        (shaped("2"), "lacks a `(`"),
    ];
    for (text, part) in rows {
        assert!(text.contains(part), "`{text}` does not say `{part}`");
    }
}

/// The bytes that the format asks for, and the way back.
#[test]
fn what_is_written_is_read_again() {
    let shapes: [&[usize]; 4] = [&[6], &[2, 3], &[0], &[3, 1, 2]];
    for shape in shapes {
        let count: usize = shape.iter().product();
        let buffers = [
            Buffer::F64((0..count).map(|k| k as f64 / 3.0).collect()),
            Buffer::F32((0..count).map(|k| k as f32 / 3.0).collect()),
            Buffer::I64((0..count).map(|k| i64::MIN + k as i64).collect()),
            Buffer::I8((0..count).map(|k| -(k as i8)).collect()),
            Buffer::U64((0..count).map(|k| u64::MAX - k as u64).collect()),
            Buffer::U16((0..count).map(|k| 65_535 - k as u16).collect()),
            Buffer::Bool((0..count).map(|k| k % 2 == 1).collect()),
        ];
        for buffer in buffers {
            let written =
                npy::write(&Data::Dense(Array::new(shape.to_vec(), buffer.clone()))).expect("numbers");
            let length = usize::from(u16::from_le_bytes([written[8], written[9]]));
            assert!((10 + length).is_multiple_of(64) && written[9 + length] == b'\n', "{shape:?}");
            let found = array(&written);
            assert_eq!((&found.shape[..], &*found.data), (shape, &buffer));
        }
    }
    let one = npy::write(&Data::Dense(Array::new(vec![1], Buffer::F64(vec![0.5])))).expect("a number");
    let text = String::from_utf8_lossy(&one[10..]).into_owned();
    assert!(text.starts_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"), "{text}");
}
