//! Programs that are the same but for rounding.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::FileId;
use pullback_base::index::Index;
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_prim::ScalarValue;
use pullback_testkit::native::twins::{disturbed, run_in_double};

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
    let double = run_in_double(&program, fun, &[x], &Options::default()).unwrap();
    let exact = 20000.0 * f64::from(0.1f32);
    assert!((of(&double[0]) - exact).abs() < 1e-9 * exact);
    assert!((of(&single.results[0]) - exact).abs() > 1e-5 * exact);
}

#[test]
fn disturbed_functions_are_wrong_in_the_last_bit() {
    let text = "fun main(x: f64): f64, f64 {
  let s: f64 = sin.f64(x)
  let t: f64 = mul.f64(x, x)
  in s, t
}
";
    let program = pullback_core::read(FileId::new(0), text).unwrap();
    let of = |program: &Program| {
        let out = Compiled::new(program).run(FunId::new(0), &[Value::f64(0.3)], &Options::default());
        out.unwrap().results.iter().flat_map(Value::floats).collect::<Vec<_>>()
    };
    let (exact, other) = (of(&program), of(&disturbed(&program).unwrap()));
    assert!(other[0] > exact[0] && other[0] - exact[0] < 3e-16 * exact[0]);
    assert_eq!(other[1], exact[1]);
}

#[test]
fn programs_of_doubles_need_no_second_opinion() {
    let program = pullback_core::read(FileId::new(0), &SUM.replace("f32", "f64")).unwrap();
    assert_eq!(run_in_double(&program, FunId::new(0), &[Value::f64(0.1)], &Options::default()), None);
}
