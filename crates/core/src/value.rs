//! Values of core programs: flat typed buffers with shapes.

use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A scalar.
    Scalar(ScalarValue),
    /// A product.
    Tuple(Vec<Value>),
    /// A value of a sum type: alternative and payload.
    Sum(usize, Arc<Vec<Value>>),
    /// An array.
    Array(Array),
    /// An accumulator handle of a running interpreter.
    Acc(usize),
}

/// A regular array: row-major elements `offset .. offset + product(shape)` of a shared buffer.
#[derive(Clone, Debug)]
pub struct Array {
    /// Sizes, outermost first; at least one.
    pub shape: Vec<usize>,
    /// First element.
    pub offset: usize,
    /// The elements, possibly of a larger array.
    pub data: Arc<Buffer>,
}

/// Elements of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "one per scalar type")]
pub enum Buffer {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
    /// Elements that are no scalars (sums).
    Boxed(Vec<Value>),
}

/// Runs `$body` with `$v` bound to the vector inside any scalar buffer; `$boxed` for boxed ones.
#[macro_export]
macro_rules! each_buffer {
    ($buffer:expr, $v:ident => $body:expr) => {
        match $buffer {
            $crate::value::Buffer::F32($v) => $body,
            $crate::value::Buffer::F64($v) => $body,
            $crate::value::Buffer::I8($v) => $body,
            $crate::value::Buffer::I16($v) => $body,
            $crate::value::Buffer::I32($v) => $body,
            $crate::value::Buffer::I64($v) => $body,
            $crate::value::Buffer::U8($v) => $body,
            $crate::value::Buffer::U16($v) => $body,
            $crate::value::Buffer::U32($v) => $body,
            $crate::value::Buffer::U64($v) => $body,
            $crate::value::Buffer::Bool($v) => $body,
            $crate::value::Buffer::Boxed($v) => $body,
        }
    };
}

impl Buffer {
    /// An empty buffer for elements of a scalar type (`None`: boxed elements) with room for `capacity` of them.
    pub fn with_capacity(scalar: Option<Scalar>, capacity: usize) -> Buffer {
        match scalar {
            Some(Scalar::F32) => Buffer::F32(Vec::with_capacity(capacity)),
            Some(Scalar::F64) => Buffer::F64(Vec::with_capacity(capacity)),
            Some(Scalar::I8) => Buffer::I8(Vec::with_capacity(capacity)),
            Some(Scalar::I16) => Buffer::I16(Vec::with_capacity(capacity)),
            Some(Scalar::I32) => Buffer::I32(Vec::with_capacity(capacity)),
            Some(Scalar::I64) => Buffer::I64(Vec::with_capacity(capacity)),
            Some(Scalar::U8) => Buffer::U8(Vec::with_capacity(capacity)),
            Some(Scalar::U16) => Buffer::U16(Vec::with_capacity(capacity)),
            Some(Scalar::U32) => Buffer::U32(Vec::with_capacity(capacity)),
            Some(Scalar::U64) => Buffer::U64(Vec::with_capacity(capacity)),
            Some(Scalar::Bool) => Buffer::Bool(Vec::with_capacity(capacity)),
            None => Buffer::Boxed(Vec::with_capacity(capacity)),
        }
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        each_buffer!(self, v => v.len())
    }
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The scalar type of the elements; `None` if boxed.
    pub fn scalar(&self) -> Option<Scalar> {
        Some(match self {
            Buffer::F32(_) => Scalar::F32,
            Buffer::F64(_) => Scalar::F64,
            Buffer::I8(_) => Scalar::I8,
            Buffer::I16(_) => Scalar::I16,
            Buffer::I32(_) => Scalar::I32,
            Buffer::I64(_) => Scalar::I64,
            Buffer::U8(_) => Scalar::U8,
            Buffer::U16(_) => Scalar::U16,
            Buffer::U32(_) => Scalar::U32,
            Buffer::U64(_) => Scalar::U64,
            Buffer::Bool(_) => Scalar::Bool,
            Buffer::Boxed(_) => return None,
        })
    }
    /// Element `i`; panics if there is none.
    pub fn get(&self, i: usize) -> Value {
        Value::Scalar(match self {
            Buffer::F32(v) => ScalarValue::F32(v[i]),
            Buffer::F64(v) => ScalarValue::F64(v[i]),
            Buffer::I8(v) => ScalarValue::I8(v[i]),
            Buffer::I16(v) => ScalarValue::I16(v[i]),
            Buffer::I32(v) => ScalarValue::I32(v[i]),
            Buffer::I64(v) => ScalarValue::I64(v[i]),
            Buffer::U8(v) => ScalarValue::U8(v[i]),
            Buffer::U16(v) => ScalarValue::U16(v[i]),
            Buffer::U32(v) => ScalarValue::U32(v[i]),
            Buffer::U64(v) => ScalarValue::U64(v[i]),
            Buffer::Bool(v) => ScalarValue::Bool(v[i]),
            Buffer::Boxed(v) => return v[i].clone(),
        })
    }
    /// Replaces element `i`; panics if the types differ.
    pub fn set(&mut self, i: usize, value: Value) {
        match (self, value) {
            (Buffer::F32(v), Value::Scalar(ScalarValue::F32(x))) => v[i] = x,
            (Buffer::F64(v), Value::Scalar(ScalarValue::F64(x))) => v[i] = x,
            (Buffer::I8(v), Value::Scalar(ScalarValue::I8(x))) => v[i] = x,
            (Buffer::I16(v), Value::Scalar(ScalarValue::I16(x))) => v[i] = x,
            (Buffer::I32(v), Value::Scalar(ScalarValue::I32(x))) => v[i] = x,
            (Buffer::I64(v), Value::Scalar(ScalarValue::I64(x))) => v[i] = x,
            (Buffer::U8(v), Value::Scalar(ScalarValue::U8(x))) => v[i] = x,
            (Buffer::U16(v), Value::Scalar(ScalarValue::U16(x))) => v[i] = x,
            (Buffer::U32(v), Value::Scalar(ScalarValue::U32(x))) => v[i] = x,
            (Buffer::U64(v), Value::Scalar(ScalarValue::U64(x))) => v[i] = x,
            (Buffer::Bool(v), Value::Scalar(ScalarValue::Bool(x))) => v[i] = x,
            (Buffer::Boxed(v), x) => v[i] = x,
            (b, x) => panic!("{x:?} into a buffer of {:?}", b.scalar()),
        }
    }
    /// Appends an element; panics if the types differ.
    pub fn push(&mut self, value: Value) {
        match (self, value) {
            (Buffer::F32(v), Value::Scalar(ScalarValue::F32(x))) => v.push(x),
            (Buffer::F64(v), Value::Scalar(ScalarValue::F64(x))) => v.push(x),
            (Buffer::I8(v), Value::Scalar(ScalarValue::I8(x))) => v.push(x),
            (Buffer::I16(v), Value::Scalar(ScalarValue::I16(x))) => v.push(x),
            (Buffer::I32(v), Value::Scalar(ScalarValue::I32(x))) => v.push(x),
            (Buffer::I64(v), Value::Scalar(ScalarValue::I64(x))) => v.push(x),
            (Buffer::U8(v), Value::Scalar(ScalarValue::U8(x))) => v.push(x),
            (Buffer::U16(v), Value::Scalar(ScalarValue::U16(x))) => v.push(x),
            (Buffer::U32(v), Value::Scalar(ScalarValue::U32(x))) => v.push(x),
            (Buffer::U64(v), Value::Scalar(ScalarValue::U64(x))) => v.push(x),
            (Buffer::Bool(v), Value::Scalar(ScalarValue::Bool(x))) => v.push(x),
            (Buffer::Boxed(v), x) => v.push(x),
            (b, x) => panic!("{x:?} into a buffer of {:?}", b.scalar()),
        }
    }
}

/// The number of elements of an array with these sizes. Where there is none, the product of the other sizes may be no number.
pub fn count_elements(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n, m| n.wrapping_mul(*m))
}

impl Array {
    /// An array that owns its buffer; panics if the shape does not fit.
    pub fn new(shape: Vec<usize>, data: Buffer) -> Array {
        assert_eq!(count_elements(&shape), data.len(), "shape and number of elements");
        Array { shape, offset: 0, data: Arc::new(data) }
    }
    /// Number of elements.
    pub fn count(&self) -> usize {
        count_elements(&self.shape)
    }
    /// Element `i` in row-major order.
    pub fn element(&self, i: usize) -> Value {
        self.data.get(self.offset + i)
    }
    /// All elements in row-major order.
    pub fn elements(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.count()).map(|i| self.element(i))
    }
    /// The sub-array or element at leading indices in range: no copy.
    pub fn at(&self, ix: &[usize]) -> Value {
        let (outer, inner) = self.shape.split_at(ix.len());
        let size = count_elements(inner);
        let flat = ix.iter().zip(outer).fold(0, |acc, (i, n)| acc * n + i);
        if inner.is_empty() {
            self.element(flat)
        } else {
            let offset = self.offset + flat * size;
            Value::Array(Array { shape: inner.to_vec(), offset, data: self.data.clone() })
        }
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.data.scalar() == other.data.scalar()
            && self.elements().eq(other.elements())
    }
}

impl Value {
    /// An `f64`.
    pub fn f64(x: f64) -> Value {
        Value::Scalar(ScalarValue::F64(x))
    }
    /// An `i64`.
    pub fn i64(x: i64) -> Value {
        Value::Scalar(ScalarValue::I64(x))
    }
    /// A vector of `f64`.
    pub fn f64s(xs: &[f64]) -> Value {
        Value::Array(Array::new(vec![xs.len()], Buffer::F64(xs.to_vec())))
    }
    /// An array of `f64` of any shape; panics if the shape does not fit.
    pub fn f64_array(shape: &[usize], xs: &[f64]) -> Value {
        Value::Array(Array::new(shape.to_vec(), Buffer::F64(xs.to_vec())))
    }
    /// A vector of `i64`.
    pub fn i64s(xs: &[i64]) -> Value {
        Value::Array(Array::new(vec![xs.len()], Buffer::I64(xs.to_vec())))
    }
    /// Every float inside, depth first, as `f64`.
    pub fn floats(&self) -> Vec<f64> {
        let mut out = Vec::new();
        self.push_floats(&mut out);
        out
    }
    fn push_floats(&self, out: &mut Vec<f64>) {
        match self {
            Value::Scalar(s) if s.scalar().is_float() => out.push(s.as_f64()),
            Value::Scalar(_) | Value::Acc(_) => {}
            Value::Tuple(vs) => vs.iter().for_each(|v| v.push_floats(out)),
            Value::Sum(_, vs) => vs.iter().for_each(|v| v.push_floats(out)),
            Value::Array(a) => a.elements().for_each(|v| v.push_floats(out)),
        }
    }
}
