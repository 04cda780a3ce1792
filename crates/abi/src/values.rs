//! Values of core as words, and back.
//!
//! A scalar is one word. A product is its parts, a sum is the number of its alternative and then the fields of all
//! alternatives, those of the others being zero. An array of rank `r` has, for each word of its base type, the address of
//! elements of that word; then `r` sizes; then `r` strides in elements.

#![allow(unsafe_code, reason = "results of calls are read from memory; each block says why they may be")]

use crate::stop;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{Array, Buffer, Type, Value, count_elements};
use pullback_kernel::Ty;
use pullback_prim::{Scalar, ScalarValue};
use std::convert::identity;
use std::sync::Arc;

fn internal(message: impl Into<String>) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Internal, message)
}

/// The types of the words of a type.
fn leaves(ty: &Type, out: &mut Vec<Ty>) -> Result<(), RuntimeError> {
    match ty {
        Type::Scalar(s) => out.push(Ty::Scalar(*s)),
        Type::Tuple(ts) => ts.iter().try_for_each(|t| leaves(t, out))?,
        Type::Sum(variants) => {
            out.push(Ty::I64);
            variants.iter().flat_map(|v| &v.fields).try_for_each(|t| leaves(t, out))?;
        }
        Type::Array(_) => {
            let elements = width(ty.base())?;
            out.extend(std::iter::repeat_n(Ty::Pointer, elements));
            out.extend(std::iter::repeat_n(Ty::I64, 2 * ty.rank()));
        }
        Type::Named(_) | Type::Acc(_) => return Err(internal(format!("{ty:?} has no words"))),
    }
    Ok(())
}

/// The number of words of a type.
pub fn width(ty: &Type) -> Result<usize, RuntimeError> {
    let mut out = Vec::new();
    leaves(ty, &mut out)?;
    Ok(out.len())
}

/// A scalar as a word.
pub fn word(x: ScalarValue) -> u64 {
    match x {
        ScalarValue::F32(x) => x.to_bits().into(),
        ScalarValue::F64(x) => x.to_bits(),
        _ => x.as_i64() as u64,
    }
}

/// A word as a scalar.
pub fn scalar(s: Scalar, word: u64) -> ScalarValue {
    match s {
        Scalar::F32 => ScalarValue::F32(f32::from_bits(word as u32)),
        Scalar::F64 => ScalarValue::F64(f64::from_bits(word)),
        Scalar::U64 => ScalarValue::U64(word),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32 => s.from_i64(word as i64),
    }
}

/// Words of arguments, and the memory that some of them point to. Others point into the values they were made from.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The words, in order.
    pub words: Vec<u64>,
    kept: Vec<Vec<u64>>,
}

/// For every word of arguments, what it is if it is a size: a dimension of an array or an `i64`.
pub fn sizes(args: &[(&Type, &Value)]) -> Vec<Option<i64>> {
    let mut out = Vec::new();
    for (ty, value) in args {
        push_sizes(ty, value, &mut out);
    }
    out
}

fn push_sizes(ty: &Type, value: &Value, out: &mut Vec<Option<i64>>) {
    match (ty, value) {
        (Type::Scalar(_), Value::Scalar(ScalarValue::I64(n))) => out.push(Some(*n)),
        (Type::Tuple(ts), Value::Tuple(vs)) => ts.iter().zip(vs).for_each(|(t, v)| push_sizes(t, v, out)),
        (Type::Array(_), Value::Array(a)) => {
            let pointers = width(ty).unwrap_or(0).saturating_sub(2 * a.shape.len());
            out.extend(std::iter::repeat_n(None, pointers));
            out.extend(a.shape.iter().map(|n| i64::try_from(*n).ok()));
            out.extend(a.shape.iter().map(|_| None));
        }
        _ => out.extend(std::iter::repeat_n(None, width(ty).unwrap_or(0))),
    }
}

impl Arguments {
    /// Appends a value.
    pub fn push(&mut self, ty: &Type, value: &Value) -> Result<(), RuntimeError> {
        match (ty, value) {
            (Type::Scalar(s), Value::Scalar(x)) if x.scalar() == *s => self.words.push(word(*x)),
            (Type::Tuple(ts), Value::Tuple(vs)) if ts.len() == vs.len() => {
                ts.iter().zip(vs).try_for_each(|(t, v)| self.push(t, v))?;
            }
            (Type::Sum(variants), Value::Sum(k, fields)) => {
                self.words.push(*k as u64);
                for (j, variant) in variants.iter().enumerate() {
                    if j != *k {
                        for t in &variant.fields {
                            let zeros = width(t)?;
                            self.words.extend(std::iter::repeat_n(0, zeros));
                        }
                    } else if variant.fields.len() == fields.len() {
                        variant.fields.iter().zip(fields.iter()).try_for_each(|(t, v)| self.push(t, v))?;
                    } else {
                        return Err(internal("a sum with other fields than its type"));
                    }
                }
            }
            (Type::Array(_), Value::Array(a)) if a.shape.len() == ty.rank() => {
                self.push_array(ty.base(), a)?
            }
            _ => return Err(internal(format!("an argument is not of type {ty:?}"))),
        }
        Ok(())
    }

    fn push_array(&mut self, base: &Type, a: &Array) -> Result<(), RuntimeError> {
        match (base, &*a.data) {
            (_, Buffer::Boxed(items)) => self.push_boxed(base, &items[a.offset..][..a.count()])?,
            (Type::Scalar(s), data) if data.scalar() == Some(*s) => {
                self.words.push(address(data, a.offset) as u64);
            }
            _ => return Err(internal(format!("an argument is not an array of {base:?}"))),
        }
        self.words.extend(a.shape.iter().map(|n| *n as u64));
        let mut strides = vec![1u64; a.shape.len()];
        for k in (1..a.shape.len()).rev() {
            strides[k - 1] = strides[k].wrapping_mul(a.shape[k] as u64);
        }
        self.words.extend(strides);
        Ok(())
    }

    /// One array for each word of the elements.
    fn push_boxed(&mut self, base: &Type, items: &[Value]) -> Result<(), RuntimeError> {
        let mut types = Vec::new();
        leaves(base, &mut types)?;
        let mut columns = vec![Vec::new(); types.len()];
        let start = self.words.len();
        for item in items {
            self.push(base, item)?;
            for ((column, t), word) in columns.iter_mut().zip(&types).zip(self.words.drain(start..)) {
                column.extend_from_slice(&word.to_le_bytes()[..t.bytes()]);
            }
        }
        for column in columns {
            // In words, so that every element is aligned.
            let words: Vec<u64> = column.chunks(8).map(from_bytes).collect();
            self.words.push(words.as_ptr().expose_provenance() as u64);
            self.kept.push(words);
        }
        Ok(())
    }
}

fn from_bytes(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// The address of an element of scalars.
fn address(data: &Buffer, offset: usize) -> usize {
    match data {
        Buffer::F32(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::F64(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::I8(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::I16(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::I32(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::I64(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::U8(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::U16(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::U32(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::U64(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::Bool(v) => v[offset..].as_ptr().expose_provenance(),
        Buffer::Boxed(v) => v[offset..].as_ptr().expose_provenance(),
    }
}

/// Memory that values may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes in use.
    pub in_use: u64,
    /// At most so many.
    pub limit: u64,
}

impl Room {
    /// Takes memory for so many elements of so many bytes.
    pub(crate) fn take(&mut self, count: u128, bytes: usize) -> Result<(), RuntimeError> {
        let bytes = count.saturating_mul(bytes as u128);
        let all = u128::from(self.in_use).saturating_add(bytes);
        if all > u128::from(self.limit) {
            return Err(stop::no_room(bytes, self));
        }
        // Not above the limit.
        self.in_use = all as u64;
        Ok(())
    }
}

/// The number of elements of a shape, which may be more than there can be.
fn count_of(shape: &[usize]) -> u128 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1u128, |n, m| n.saturating_mul(*m as u128))
}

/// The first words as a value; they are taken off.
///
/// # Errors
/// `Limit` if there is no room for the elements of arrays; `Internal` if there are too few words.
///
/// # Safety
/// The words are those of a value of this type, and the memory that they point to is alive.
pub unsafe fn from_words(ty: &Type, words: &mut &[u64], room: &mut Room) -> Result<Value, RuntimeError> {
    let mut take = |n: usize| -> Result<&[u64], RuntimeError> {
        let (first, rest) = words.split_at_checked(n).ok_or_else(|| internal("a result without words"))?;
        *words = rest;
        Ok(first)
    };
    match ty {
        Type::Scalar(s) => Ok(Value::Scalar(scalar(*s, take(1)?[0]))),
        Type::Tuple(ts) => {
            // SAFETY: the words of a product are those of its parts.
            let parts = ts.iter().map(|t| unsafe { from_words(t, words, room) });
            Ok(Value::Tuple(parts.collect::<Result<_, _>>()?))
        }
        Type::Sum(variants) => {
            let tag = take(1)?[0] as usize;
            let mut fields = Vec::new();
            for (k, variant) in variants.iter().enumerate() {
                for t in &variant.fields {
                    if k == tag {
                        // SAFETY: these are the fields that the value has.
                        fields.push(unsafe { from_words(t, words, room)? });
                    } else {
                        let skipped = width(t)?;
                        *words = words.get(skipped..).unwrap_or_default();
                    }
                }
            }
            Ok(Value::Sum(tag, Arc::new(fields)))
        }
        Type::Array(_) => {
            let base = ty.base();
            let mut types = Vec::new();
            leaves(base, &mut types)?;
            let pointers = take(types.len())?.to_vec();
            let shape: Vec<usize> = take(ty.rank())?.iter().map(|n| *n as usize).collect();
            let strides: Vec<isize> = take(ty.rank())?.iter().map(|n| *n as isize).collect();
            // SAFETY: the elements at these strides from these addresses are alive.
            let data = unsafe {
                match base {
                    Type::Scalar(s) => {
                        room.take(count_of(&shape), s.bytes())?;
                        read(*s, pointers[0], &shape, &strides)
                    }
                    _ => boxed(base, &types, &pointers, (&shape, &strides), room)?,
                }
            };
            Ok(Value::Array(Array::new(shape, data)))
        }
        Type::Named(_) | Type::Acc(_) => Err(internal(format!("a result of type {ty:?}"))),
    }
}

/// Elements that are no scalars.
///
/// # Safety
/// As for [`from_words`].
unsafe fn boxed(
    base: &Type,
    types: &[Ty],
    pointers: &[u64],
    (shape, strides): (&[usize], &[isize]),
    room: &mut Room,
) -> Result<Buffer, RuntimeError> {
    let in_words = types.iter().map(|t| t.bytes()).sum::<usize>();
    room.take(count_of(shape), in_words + size_of::<Value>())?;
    let count = count_elements(shape);
    let mut columns = Vec::with_capacity(types.len());
    for (t, p) in types.iter().zip(pointers) {
        let scalar = match t {
            Ty::Scalar(s) | Ty::Lanes(s, _) => *s,
            Ty::Pointer => Scalar::U64,
        };
        // SAFETY: each word of the elements has memory of this shape.
        columns.push(unsafe { read(scalar, *p, shape, strides) });
    }
    let mut items = Vec::with_capacity(count);
    for i in 0..count {
        let words: Vec<u64> = columns
            .iter()
            .map(|column| match column.get(i) {
                Value::Scalar(x) => word(x),
                _ => 0,
            })
            .collect();
        // SAFETY: the words of element `i`.
        items.push(unsafe { from_words(base, &mut words.as_slice(), room)? });
    }
    Ok(Buffer::Boxed(items))
}

/// Scalars in row-major order.
///
/// # Safety
/// There are elements of this type at these strides from the address, if the shape has any.
pub(crate) unsafe fn read(s: Scalar, address: u64, shape: &[usize], strides: &[isize]) -> Buffer {
    macro_rules! buffer {
        ($($scalar:ident $variant:ident $t:ty, $from:expr;)*) => {
            match s {
                $(Scalar::$scalar => {
                    let mut out: Vec<$t> = Vec::with_capacity(count_elements(shape));
                    let from = std::ptr::with_exposed_provenance::<$t>(address as usize);
                    if !shape.contains(&0) {
                        // SAFETY: by the condition of this function.
                        unsafe { gather(from, shape, strides, &mut out) };
                    }
                    Buffer::$variant($from(out))
                })*
            }
        };
    }
    buffer! {
        F32 F32 f32, identity;
        F64 F64 f64, identity;
        I8 I8 i8, identity;
        I16 I16 i16, identity;
        I32 I32 i32, identity;
        I64 I64 i64, identity;
        U8 U8 u8, identity;
        U16 U16 u16, identity;
        U32 U32 u32, identity;
        U64 U64 u64, identity;
        Bool Bool u8, truth_values;
    }
}

/// Bytes as truth values.
fn truth_values(bytes: Vec<u8>) -> Vec<bool> {
    bytes.into_iter().map(|b| b != 0).collect()
}

/// # Safety
/// As for [`read`], and no size is 0.
unsafe fn gather<T: Copy>(from: *const T, shape: &[usize], strides: &[isize], out: &mut Vec<T>) {
    // SAFETY: only addresses of elements are read, by the condition.
    unsafe {
        match (shape, strides) {
            ([], _) | (_, []) => out.push(*from),
            ([n], [1]) => out.extend_from_slice(std::slice::from_raw_parts(from, *n)),
            ([n, shape @ ..], [step, strides @ ..]) => {
                for i in 0..*n {
                    gather(from.offset(i as isize * step), shape, strides, out);
                }
            }
        }
    }
}
