//! Cotangents as flat vectors of floats, aligned with the floats of the value they belong to.

use crate::rng::Rng;
use pullback_core::{Array, Buffer, Value};
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

/// A random cotangent of a value: the same structure, sums one alternative higher, units for discrete parts; `None` for
/// a value whose type has no cotangent. `active` says whether the type holds floats.
pub fn random_cotangent(value: &Value, active: bool, rng: &mut Rng) -> Option<Value> {
    active.then(|| cotangent(value, &mut || rng.signed()))
}

/// The zero cotangent of a value, dense.
pub fn zero_cotangent(value: &Value) -> Value {
    cotangent(value, &mut || 0.0)
}

fn cotangent(value: &Value, next: &mut dyn FnMut() -> f64) -> Value {
    let unit = || Value::Tuple(Vec::new());
    match value {
        Value::Scalar(ScalarValue::F64(_)) => Value::f64(next()),
        Value::Scalar(ScalarValue::F32(_)) => Value::Scalar(ScalarValue::F32(next() as f32)),
        Value::Scalar(_) | Value::Acc(_) => unit(),
        Value::Tuple(items) => Value::Tuple(items.iter().map(|v| cotangent(v, next)).collect()),
        Value::Sum(k, fields) => {
            Value::Sum(k + 1, Arc::new(fields.iter().map(|v| cotangent(v, next)).collect()))
        }
        Value::Array(a) => {
            let scalar = a.data.scalar();
            if scalar.is_some_and(|s| !s.is_float()) {
                return unit();
            }
            let mut data = Buffer::with_capacity(scalar, a.count());
            for element in a.elements() {
                data.push(cotangent(&element, next));
            }
            Value::Array(Array::new(a.shape.clone(), data))
        }
    }
}

/// The floats of a cotangent in the order of the floats of its value; `#none` stands for zeros.
/// `Err`: the cotangent does not have the structure of the value.
pub fn cotangent_floats(value: &Value, cotangent: &Value) -> Result<Vec<f64>, String> {
    let mut out = Vec::new();
    push_floats(value, cotangent, &mut out)?;
    Ok(out)
}

fn push_floats(value: &Value, cotangent: &Value, out: &mut Vec<f64>) -> Result<(), String> {
    let wrong = || Err(format!("the cotangent {cotangent:?} does not fit the value {value:?}"));
    match (value, cotangent) {
        (Value::Scalar(s), c) if s.scalar().is_float() => match c {
            Value::Scalar(c) if c.scalar() == s.scalar() => {
                out.push(c.as_f64());
                Ok(())
            }
            _ => wrong(),
        },
        (Value::Scalar(_) | Value::Acc(_), _) => Ok(()),
        (Value::Tuple(vs), Value::Tuple(cs)) => {
            // A component that is wholly discrete has unit for a cotangent; so has a tuple of them.
            if cs.is_empty() && vs.iter().all(|v| v.floats().is_empty()) {
                return Ok(());
            }
            if vs.len() != cs.len() {
                return wrong();
            }
            vs.iter().zip(cs).try_for_each(|(v, c)| push_floats(v, c, out))
        }
        (Value::Sum(..), Value::Sum(0, _)) => {
            out.extend(value.floats().iter().map(|_| 0.0));
            Ok(())
        }
        (Value::Sum(k, vs), Value::Sum(j, cs)) if *j == k + 1 && vs.len() == cs.len() => {
            vs.iter().zip(cs.iter()).try_for_each(|(v, c)| push_floats(v, c, out))
        }
        // A wholly discrete sum.
        (Value::Sum(..), Value::Tuple(cs)) if cs.is_empty() && value.floats().is_empty() => Ok(()),
        (Value::Array(a), Value::Array(c)) => {
            // The sizes of the inner dimensions of an empty array are not kept everywhere.
            if a.shape != c.shape && a.count() + c.count() > 0 {
                return Err(format!("the cotangent has shape {:?}, the value {:?}", c.shape, a.shape));
            }
            a.elements().zip(c.elements()).try_for_each(|(v, c)| push_floats(&v, &c, out))
        }
        (Value::Array(_), Value::Tuple(cs)) if cs.is_empty() && value.floats().is_empty() => Ok(()),
        _ => wrong(),
    }
}

/// Whether a value holds `f32` numbers.
pub fn has_single(value: &Value) -> bool {
    match value {
        Value::Scalar(s) => s.scalar() == Scalar::F32,
        Value::Tuple(vs) => vs.iter().any(has_single),
        Value::Sum(_, vs) => vs.iter().any(has_single),
        Value::Array(a) => a.data.scalar() == Some(Scalar::F32) || a.elements().any(|v| has_single(&v)),
        Value::Acc(_) => false,
    }
}
