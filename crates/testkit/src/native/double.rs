//! The same program in double precision: a second opinion where sums in single precision differ. Some thousand numbers of one
//! size, added one after the other as the interpreter does, err by more than [`ROUNDING`](super::ROUNDING) for single precision
//! allows; in lanes, which is a sum of shorter sums, they err less.

use pullback_base::FileId;
use pullback_base::index::Index;
use pullback_core::{Array, Buffer, FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_prim::ScalarValue;
use std::sync::Arc;

/// What the program gives where all of its floats are doubles: `None` if it has none of single precision, or stops.
pub(super) fn run(program: &Program, fun: FunId, args: &[Value], options: &Options) -> Option<Vec<Value>> {
    let text = pullback_core::print(program);
    let doubles = text.contains("f32").then(|| text.replace("f32", "f64"))?;
    let doubles = pullback_core::read(FileId::new(0), &doubles).ok()?;
    let args: Vec<Value> = args.iter().map(widened).collect();
    Compiled::new(&doubles).run(fun, &args, options).ok().map(|out| out.results)
}

/// Numbers of single precision as doubles.
fn widened(value: &Value) -> Value {
    let all = |vs: &[Value]| vs.iter().map(widened).collect();
    match value {
        Value::Scalar(ScalarValue::F32(x)) => Value::f64(f64::from(*x)),
        Value::Scalar(_) | Value::Acc(_) => value.clone(),
        Value::Tuple(vs) => Value::Tuple(all(vs)),
        Value::Sum(k, vs) => Value::Sum(*k, Arc::new(all(vs))),
        Value::Array(a) => {
            let range = a.offset..a.offset + a.count();
            let data = match &*a.data {
                Buffer::F32(v) => Buffer::F64(v[range].iter().map(|x| f64::from(*x)).collect()),
                Buffer::Boxed(v) => Buffer::Boxed(all(&v[range])),
                _ => return value.clone(),
            };
            Value::Array(Array::new(a.shape.clone(), data))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "fun main(x: f32): f32 {
  let xs: []f32 = replicate([20000i64], x)
  let sum: f32 = reduce 20000i64 [0.0f32] [xs] (a: f32, b: f32) {
    let t: f32 = add.f32(a, b)
    in t
  }
  in sum
}
";

    #[test]
    fn sums_of_single_precision_are_exact() {
        let program = pullback_core::read(FileId::new(0), SUM).unwrap();
        let (fun, x) = (FunId::new(0), Value::Scalar(ScalarValue::F32(0.1)));
        let of = |result: &Value| result.floats()[0];
        let single = Compiled::new(&program).run(fun, std::slice::from_ref(&x), &Options::default()).unwrap();
        let double = run(&program, fun, &[x], &Options::default()).unwrap();
        let exact = 20000.0 * f64::from(0.1f32);
        assert!((of(&double[0]) - exact).abs() < 1e-9 * exact);
        assert!((of(&single.results[0]) - exact).abs() > 1e-5 * exact);
    }

    #[test]
    fn programs_of_doubles_need_no_second_opinion() {
        let program = pullback_core::read(FileId::new(0), &SUM.replace("f32", "f64")).unwrap();
        assert_eq!(run(&program, FunId::new(0), &[Value::f64(0.1)], &Options::default()), None);
    }
}
