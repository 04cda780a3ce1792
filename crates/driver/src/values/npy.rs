//! NumPy's `.npy`: dense arrays of numbers and booleans.
//!
//! Source: NumPy's format specification (NEP 1; versions 1, 2 and 3 of the header).

use super::{Data, InputError};
use pullback_core::{Array, Buffer, Value};
use pullback_prim::{Scalar, ScalarValue};

/// What stands at the beginning of every file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// Reads an array; rank 0 gives a scalar. Half floats become `f32`, which has them all.
///
/// Errors: what is wrong with the file, before memory is reserved for its elements. Cost: the size of the file.
pub fn read(bytes: &[u8]) -> Result<Data, InputError> {
    let bad = |why: String| InputError::new(format!("not an npy file: {why}"));
    let (header, elements) = parts(bytes).map_err(|why| bad(why.to_string()))?;
    let Header { descr, fortran, shape } = Parser { rest: header }.header().map_err(bad)?;
    let count = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    // (No element takes less than a byte.)
    let Some(count) = count.filter(|n| *n <= elements.len()) else {
        return Err(InputError::new(format!("the npy file claims shape {shape:?}, more than it holds")));
    };
    let buffer = buffer(&descr, elements, count)?;
    if shape.is_empty() {
        return match buffer.get(0) {
            Value::Scalar(s) => Ok(Data::Scalar(s)),
            _ => Err(InputError::new("not an npy file of scalars")),
        };
    }
    let fortran = fortran && shape.len() > 1;
    Ok(Data::Dense(if fortran { from_column_major(&shape, &buffer) } else { Array::new(shape, buffer) }))
}

/// The text of the header, and the bytes of the elements.
fn parts(bytes: &[u8]) -> Result<(&str, &[u8]), &'static str> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as one")?;
    let (version, rest) = rest.split_at_checked(2).ok_or("it ends in the header")?;
    // The length of the header has two bytes in version 1, four since version 2.
    let size = match version[0] {
        1 => 2,
        2 | 3 => 4,
        _ => return Err("its version is none of 1, 2 and 3"),
    };
    let (length, rest) = rest.split_at_checked(size).ok_or("it ends in the header")?;
    let length = length.iter().rev().fold(0usize, |n, byte| n << 8 | usize::from(*byte));
    let (header, elements) = rest.split_at_checked(length).ok_or("it ends in the header")?;
    Ok((std::str::from_utf8(header).map_err(|_| "its header is no text")?, elements))
}

/// The elements of a type such as `<f8`: byte order, kind, bytes.
fn buffer(descr: &str, elements: &[u8], count: usize) -> Result<Buffer, InputError> {
    let (swap, kind) = match descr.split_at_checked(1) {
        Some(("<" | "=" | "|", kind)) => (false, kind),
        Some((">", kind)) => (true, kind),
        _ => (false, descr),
    };
    macro_rules! numbers {
        ($buffer:ident, $number:ty) => {
            Buffer::$buffer(items(elements, count, swap)?.map(<$number>::from_le_bytes).collect())
        };
    }
    Ok(match kind {
        "f8" => numbers!(F64, f64),
        "f4" => numbers!(F32, f32),
        "f2" => Buffer::F32(items(elements, count, swap)?.map(|b| half(u16::from_le_bytes(b))).collect()),
        "i8" => numbers!(I64, i64),
        "i4" => numbers!(I32, i32),
        "i2" => numbers!(I16, i16),
        "i1" => numbers!(I8, i8),
        "u8" => numbers!(U64, u64),
        "u4" => numbers!(U32, u32),
        "u2" => numbers!(U16, u16),
        "u1" => numbers!(U8, u8),
        "b1" => Buffer::Bool(items(elements, count, swap)?.map(|[byte]| byte != 0).collect()),
        other => return Err(InputError::new(format!("npy element type {other} is not one of f i u b"))),
    })
}

/// So many elements of `N` bytes, the least significant byte first.
fn items<const N: usize>(
    elements: &[u8],
    count: usize,
    swap: bool,
) -> Result<impl Iterator<Item = [u8; N]>, InputError> {
    let (items, _) = elements.as_chunks::<N>();
    let items = items.get(..count).ok_or_else(|| {
        InputError::new(format!("the npy file ends after {} of {count} elements", items.len()))
    })?;
    Ok(items.iter().map(move |item| {
        let mut item = *item;
        if swap {
            item.reverse();
        }
        item
    }))
}

/// A half float (IEEE 754 binary16) as the equal `f32`.
fn half(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let (sign, exponent, fraction) = (bits >> 15 << 31, bits >> 10 & 0x1f, bits & 0x3ff);
    match exponent {
        // Fractions of the smallest: 2^-24.
        0 => f32::from_bits(sign | (fraction as f32 * 2f32.powi(-24)).to_bits()),
        0x1f => f32::from_bits(sign | 0xff << 23 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13),
    }
}

/// What a header says.
#[derive(Default)]
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// The header: a dictionary as Python writes it, `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn header(mut self) -> Result<Header, String> {
        let mut header = Header::default();
        let mut seen: Vec<&str> = Vec::new();
        self.expect("{")?;
        while !self.takes("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" => header.descr = self.string()?.to_string(),
                "fortran_order" => header.fortran = self.truth()?,
                "shape" => header.shape = self.shape()?,
                other => return Err(format!("its header has a key `{}`", other.escape_debug())),
            }
            if seen.contains(&key) {
                return Err(format!("its header has the key `{key}` twice"));
            }
            seen.push(key);
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        match ["descr", "fortran_order", "shape"].iter().find(|key| !seen.contains(key)) {
            Some(key) => Err(format!("its header has no key `{key}`")),
            None if self.rest.trim().is_empty() => Ok(header),
            None => Err("its header goes on behind the dictionary".into()),
        }
    }
    fn takes(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }
    fn expect(&mut self, token: &str) -> Result<(), String> {
        let found = self.takes(token);
        if found { Ok(()) } else { Err(format!("its header lacks a `{token}`")) }
    }
    fn string(&mut self) -> Result<&'t str, String> {
        let quote = ["'", "\""].into_iter().find(|quote| self.takes(quote));
        let quote = quote
            .ok_or("its header has something else where a text should be (arrays of records are not read)")?;
        let (text, rest) = self.rest.split_once(quote).ok_or("a text of its header does not end")?;
        self.rest = rest;
        Ok(text)
    }
    fn truth(&mut self) -> Result<bool, String> {
        match (self.takes("True"), self.takes("False")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err("its order is neither True nor False".into()),
        }
    }
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.takes(")") {
            self.rest = self.rest.trim_start();
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at(digits);
            let size = number.parse::<i64>().ok().and_then(|n| usize::try_from(n).ok());
            shape.push(size.ok_or("a size of its shape is no number below 2^63")?);
            self.rest = rest;
            // (Python 2 wrote long numbers with this letter.)
            self.takes("L");
            if !self.takes(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }
}

fn from_column_major(shape: &[usize], buffer: &Buffer) -> Array {
    let mut out = Buffer::with_capacity(buffer.scalar(), buffer.len());
    for i in 0..buffer.len() {
        // The row-major position i as indices, then as a column-major position.
        let (mut rest, mut at) = (i, 0);
        let mut stride = buffer.len();
        for &n in shape.iter().rev() {
            stride /= n;
            at += (rest % n) * stride;
            rest /= n;
        }
        out.push(buffer.get(at));
    }
    Array::new(shape.to_vec(), out)
}

/// The bytes of an array or scalar; other values are an error.
pub fn write(data: &Data) -> Result<Vec<u8>, InputError> {
    let array = match data {
        Data::Dense(a) => a.clone(),
        Data::Scalar(s) => {
            let mut buffer = Buffer::with_capacity(Some(s.scalar()), 1);
            buffer.push(Value::Scalar(*s));
            Array { shape: Vec::new(), offset: 0, data: std::sync::Arc::new(buffer) }
        }
        Data::Null | Data::List(_) | Data::Tuple(_) | Data::Record(_) | Data::Tagged(..) => {
            return Err(InputError::new("only numbers and arrays of numbers can be written as npy"));
        }
    };
    let kind = match array.data.scalar() {
        Some(Scalar::F64) => "<f8",
        Some(Scalar::F32) => "<f4",
        Some(Scalar::I64) => "<i8",
        Some(Scalar::I32) => "<i4",
        Some(Scalar::I16) => "<i2",
        Some(Scalar::I8) => "|i1",
        Some(Scalar::U64) => "<u8",
        Some(Scalar::U32) => "<u4",
        Some(Scalar::U16) => "<u2",
        Some(Scalar::U8) => "|u1",
        Some(Scalar::Bool) => "|b1",
        None => return Err(InputError::new("only arrays of numbers can be written as npy")),
    };
    let mut bytes = beginning(kind, &array.shape);
    for value in array.elements() {
        if let Value::Scalar(x) = value {
            append(&mut bytes, x);
        }
    }
    Ok(bytes)
}

/// All of a file that stands before its elements. (A header of version 1 has room for arrays of a thousand dimensions.)
fn beginning(kind: &str, shape: &[usize]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    // A tuple of one number has a comma, others do not.
    let sizes = if shape.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = MAGIC.len() + 4;
    while !(before + header.len() + 1).is_multiple_of(ALIGNMENT) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = [MAGIC, &[1, 0]].concat();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes
}

fn append(bytes: &mut Vec<u8>, x: ScalarValue) {
    match x.scalar() {
        Scalar::F64 => bytes.extend(x.as_f64().to_le_bytes()),
        Scalar::F32 => bytes.extend((x.as_f64() as f32).to_le_bytes()),
        Scalar::Bool => bytes.push(u8::from(x.is_true())),
        // Two's complement: the low bytes are those of the smaller type.
        integer => bytes.extend(&x.as_i64().to_le_bytes()[..integer.bytes()]),
    }
}
