//! Which functions go through the pipeline.
#![allow(clippy::unwrap_used, reason = "tests")]

use pullback_core::Value;
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;

/// `power` calls itself, so that its calls stay; `twice` is replaced by its body.
const TEXT: &str = "
def twice (x: f64) : f64 = x + x
def power (x: f64) (n: i64) : f64 = if n == 0 then 1.0 else x * power x (n - 1)
entry f (x: f64) : f64 = twice (power x 3)
entry g (x: f64) : f64 = twice x
";

#[test]
fn functions_that_nothing_calls_any_more_are_dropped() {
    let session = Session::compile("functions.fut", TEXT, Settings::default()).unwrap();
    let entry = session.entry(Some("g")).unwrap();
    let wanted = session.select(&entry, &Wrt::parse("")).unwrap();
    let mut after = Vec::new();
    let mut watch = |step: &'static str, p: &pullback_core::Program| after.push((step, p.funs.len()));
    let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut watch).unwrap();
    // The derivative and the entry point that it calls; then the derivative alone.
    assert_eq!(after[..2], [("lower", 2), ("inline", 1)]);
    assert_eq!(ready.program.funs.len(), 1);
    let out = ready.interpret(&[Value::f64(5.0), Value::f64(1.0)], &Options::default()).unwrap();
    // 5 + 5, and the derivative of x + x.
    assert_eq!(out.results, [Value::f64(10.0), Value::f64(2.0)]);
}

#[test]
fn functions_that_are_still_called_stay() {
    let session = Session::compile("functions.fut", TEXT, Settings::default()).unwrap();
    let entry = session.entry(Some("f")).unwrap();
    let ready = session.primal(&entry).unwrap();
    let names: Vec<&str> = ready.program.funs.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"f"), "{names:?}");
    let out = ready.interpret(&[Value::f64(2.0)], &Options::default()).unwrap();
    // 2 (2 * 2 * 2)
    assert_eq!(out.results, [Value::f64(16.0)]);
}
