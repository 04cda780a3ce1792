//! NumPy's `.npy`: dense arrays of numbers and booleans.
//!
//! Source: NumPy format specification (NEP 1), through the library `npyz`.

use super::{Data, InputError};
use pullback_core::{Array, Buffer, Value};
use pullback_prim::{Scalar, ScalarValue};

/// Reads an array; rank 0 gives a scalar.
pub fn read(bytes: &[u8]) -> Result<Data, InputError> {
    let bad = |e: std::io::Error| InputError::new(format!("not an npy file: {e}"));
    let file = npyz::NpyFile::new(bytes).map_err(bad)?;
    let shape: Vec<usize> = file.shape().iter().map(|&n| n as usize).collect();
    let count = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    if count.is_none_or(|n| n > bytes.len()) {
        return Err(InputError::new(format!("the npy file claims shape {shape:?}, more than it holds")));
    }
    let fortran = file.order() == npyz::Order::Fortran && shape.len() > 1;
    let dtype = file.dtype().descr();
    let kind = dtype.trim_matches('\'').trim_start_matches(['<', '=', '|', '>']).to_string();
    let buffer = match kind.as_str() {
        "f8" => Buffer::F64(file.into_vec().map_err(bad)?),
        "f4" => Buffer::F32(file.into_vec().map_err(bad)?),
        "i8" => Buffer::I64(file.into_vec().map_err(bad)?),
        "i4" => Buffer::I32(file.into_vec().map_err(bad)?),
        "i2" => Buffer::I16(file.into_vec().map_err(bad)?),
        "i1" => Buffer::I8(file.into_vec().map_err(bad)?),
        "u8" => Buffer::U64(file.into_vec().map_err(bad)?),
        "u4" => Buffer::U32(file.into_vec().map_err(bad)?),
        "u2" => Buffer::U16(file.into_vec().map_err(bad)?),
        "u1" => Buffer::U8(file.into_vec().map_err(bad)?),
        "b1" => Buffer::Bool(file.into_vec().map_err(bad)?),
        other => return Err(InputError::new(format!("npy element type {other} is not one of f i u b"))),
    };
    if shape.is_empty() {
        return match buffer.get(0) {
            Value::Scalar(s) => Ok(Data::Scalar(s)),
            _ => Err(InputError::new("not an npy file of scalars")),
        };
    }
    Ok(Data::Dense(if fortran { from_column_major(&shape, &buffer) } else { Array::new(shape, buffer) }))
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
    let shape: Vec<u64> = array.shape.iter().map(|&n| n as u64).collect();
    let scalars = array.elements().filter_map(|v| match v {
        Value::Scalar(s) => Some(s),
        _ => None,
    });
    let float = |x: ScalarValue| x.as_f64();
    let integer = |x: ScalarValue| x.as_i64();
    match array.data.scalar() {
        Some(Scalar::F64) => dump(&shape, scalars.map(float)),
        Some(Scalar::F32) => dump(&shape, scalars.map(|x| float(x) as f32)),
        Some(Scalar::I64) => dump(&shape, scalars.map(integer)),
        Some(Scalar::I32) => dump(&shape, scalars.map(|x| integer(x) as i32)),
        Some(Scalar::I16) => dump(&shape, scalars.map(|x| integer(x) as i16)),
        Some(Scalar::I8) => dump(&shape, scalars.map(|x| integer(x) as i8)),
        Some(Scalar::U64) => dump(&shape, scalars.map(|x| integer(x) as u64)),
        Some(Scalar::U32) => dump(&shape, scalars.map(|x| integer(x) as u32)),
        Some(Scalar::U16) => dump(&shape, scalars.map(|x| integer(x) as u16)),
        Some(Scalar::U8) => dump(&shape, scalars.map(|x| integer(x) as u8)),
        Some(Scalar::Bool) => dump(&shape, scalars.map(ScalarValue::is_true)),
        None => Err(InputError::new("only arrays of numbers can be written as npy")),
    }
}

fn dump<T: npyz::AutoSerialize>(
    shape: &[u64],
    items: impl Iterator<Item = T>,
) -> Result<Vec<u8>, InputError> {
    use npyz::WriterBuilder;
    let bad = |e: std::io::Error| InputError::new(format!("cannot write npy: {e}"));
    let mut bytes = Vec::new();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().map_err(bad)?;
    writer.extend(items).map_err(bad)?;
    writer.finish().map_err(bad)?;
    Ok(bytes)
}
