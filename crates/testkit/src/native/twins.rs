//! Programs that are the same but for rounding.
//!
//! - In double precision: a second opinion where sums in single precision differ. Some thousand numbers of one size, added one after
//!   the other as the interpreter does, err by more than [`ROUNDING`](super::ROUNDING) for single precision allows; in lanes, which
//!   is a sum of shorter sums, they err less.
//! - With functions that err in their last bit, as those of executors may: a loop such as `x = sin(3 * x)` makes of one last bit
//!   another number, even where it forgets a last bit of its first `x`.

use pullback_base::FileId;
use pullback_base::index::Index;
use pullback_core::{Array, Buffer, FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_prim::ScalarValue;
use std::sync::Arc;

/// What the program gives where all of its floats are doubles: `None` if it has none of single precision, or stops.
pub fn run_in_double(program: &Program, fun: FunId, args: &[Value], options: &Options) -> Option<Vec<Value>> {
    let text = pullback_core::print(program);
    let doubles = text.contains("f32").then(|| text.replace("f32", "f64"))?;
    let doubles = pullback_core::read(FileId::new(0), &doubles).ok()?;
    let args: Vec<Value> = args.iter().map(widened).collect();
    Compiled::new(&doubles).run(fun, &args, options).ok().map(|out| out.results)
}

/// The program with the results of functions wrong in their last bit, or one beside it. `None`: it has no functions.
pub fn disturbed(program: &Program) -> Option<Program> {
    let (mut text, mut fresh) = (String::new(), program.vars.len());
    let printed = pullback_core::print(program);
    for line in printed.lines() {
        let called = line.split_once(": f64 = ").filter(|(_, exp)| calls_function(exp));
        match called.and_then(|(name, exp)| Some((name.split_once("let ")?, exp))) {
            Some(((space, name), exp)) => {
                fresh += 1;
                let factor = 1.0 + f64::EPSILON;
                text += &format!("{space}let exact_{fresh}: f64 = {exp}\n");
                text += &format!("{space}let {name}: f64 = mul.f64(exact_{fresh}, {factor:?}f64)\n");
            }
            None => text += &format!("{line}\n"),
        }
    }
    (fresh > program.vars.len()).then(|| pullback_core::read(FileId::new(0), &text).ok())?
}

/// Whether it is a call of a function that is not rounded as arithmetic is.
fn calls_function(exp: &str) -> bool {
    const FUNCTIONS: &str = "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan atan2 asinh acosh \
        atanh pow cbrt hypot erf erfc lgamma gamma";
    exp.split_once(".f64(").is_some_and(|(name, _)| FUNCTIONS.split_whitespace().any(|f| f == name))
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
