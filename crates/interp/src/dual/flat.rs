//! Values as flat vectors of floats, and differences.

use crate::core::{Compiled, Options};
use pullback_base::RuntimeError;
use pullback_core::{Array, Buffer, FunId, Value};
use pullback_prim::ScalarValue;
use std::sync::Arc;

/// Number of floats inside.
pub fn count_floats(values: &[Value]) -> usize {
    values.iter().map(|v| v.floats().len()).sum()
}

/// The inner product.
pub fn inner(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The value with its floats replaced, in the order of [`Value::floats`]; those that the source lacks stay.
pub fn with_floats(value: &Value, floats: &mut dyn Iterator<Item = f64>) -> Value {
    let mut all = |vs: &[Value]| vs.iter().map(|v| with_floats(v, floats)).collect::<Vec<_>>();
    match value {
        Value::Scalar(ScalarValue::F64(x)) => Value::f64(floats.next().unwrap_or(*x)),
        Value::Scalar(ScalarValue::F32(x)) => {
            Value::Scalar(ScalarValue::F32(floats.next().map_or(*x, |y| y as f32)))
        }
        Value::Scalar(_) | Value::Acc(_) => value.clone(),
        Value::Tuple(vs) => Value::Tuple(all(vs)),
        Value::Sum(k, vs) => Value::Sum(*k, Arc::new(all(vs))),
        Value::Array(a) => {
            let range = a.offset..a.offset + a.count();
            let data = match &*a.data {
                Buffer::F64(v) => Buffer::F64(v[range].iter().map(|x| floats.next().unwrap_or(*x)).collect()),
                Buffer::F32(v) => {
                    Buffer::F32(v[range].iter().map(|x| floats.next().map_or(*x, |y| y as f32)).collect())
                }
                Buffer::Boxed(v) => Buffer::Boxed(all(&v[range])),
                _ => return value.clone(),
            };
            Value::Array(Array::new(a.shape.clone(), data))
        }
    }
}

/// The arguments moved by `step` times a flat direction.
pub fn perturb(args: &[Value], direction: &[f64], step: f64) -> Vec<Value> {
    let mut direction = direction.iter();
    let mut moved = |value: &Value| {
        let floats = value.floats().into_iter();
        let floats: Vec<f64> = floats
            .map(|x| direction.next().map_or(x, |d| if *d == 0.0 { x } else { x + step * d }))
            .collect();
        with_floats(value, &mut floats.into_iter())
    };
    args.iter().map(&mut moved).collect()
}

/// The derivative in a flat direction by central differences with one Richardson extrapolation: the error is of fourth
/// order in the step. Results whose number of floats changes with the arguments have no such derivative: `None`.
///
/// Errors: as [`Compiled::run`].
pub fn central_difference(
    code: &Compiled<'_>,
    fun: FunId,
    args: &[Value],
    direction: &[f64],
    step: f64,
    options: &Options<'_>,
) -> Result<Option<Vec<f64>>, RuntimeError> {
    let at = |h: f64| -> Result<Vec<f64>, RuntimeError> {
        let outcome = code.run(fun, &perturb(args, direction, h), options)?;
        Ok(outcome.results.iter().flat_map(Value::floats).collect())
    };
    let (far_left, left) = (at(-step)?, at(-step / 2.0)?);
    let (right, far_right) = (at(step / 2.0)?, at(step)?);
    let n = left.len();
    if [far_left.len(), right.len(), far_right.len()].iter().any(|&m| m != n) {
        return Ok(None);
    }
    let slope = |i: usize| {
        let near = (right[i] - left[i]) / step;
        let far = (far_right[i] - far_left[i]) / (2.0 * step);
        (4.0 * near - far) / 3.0
    };
    Ok(Some((0..n).map(slope).collect()))
}
