//! Calls that are repeated for their time: each gives what a single run gives, on every executor.

use pullback_core::{Array, Buffer, Value};
use pullback_driver::{Backend, Session, Settings, backend};
use pullback_interp::core::Options;
use std::time::Duration;

const TEXT: &str = "
entry f [n] (xs: [n]f64) (k: i64) (b: bool) : (f64, [n]f64, []i32, bool, [n]f64) =
  let ys = map (\\x -> if b then x * x else x) xs
  in (f64.sum ys, ys, tabulate k i32.i64, !b, xs)
";

fn executors() -> Vec<Backend> {
    let mut out = vec![Backend::Interp, Backend::Vm, Backend::Auto];
    if backend::libraries().iter().any(|l| l.usable.is_ok()) {
        out.push(Backend::Llvm);
    } else {
        eprintln!("skipped: no LLVM");
    }
    out
}

#[test]
fn every_call_gives_what_one_run_gives() {
    for executor in executors() {
        let settings = Settings { backend: executor, ..Settings::default() };
        let session = Session::compile("f.fut", TEXT, settings).unwrap_or_else(|e| panic!("{}", e.render()));
        let entry = session.entry(None).unwrap_or_else(|d| panic!("{}", d.message));
        let ready = session.primal(&entry).unwrap_or_else(|d| panic!("{}", d.message));
        // A part of a larger array, too.
        let whole = Array::new(vec![3, 2], Buffer::F64(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        for xs in [Value::f64s(&[1.5, -2.0]), whole.at(&[1]), Value::f64s(&[])] {
            let args = [xs, Value::i64(3), Value::Scalar(pullback_prim::ScalarValue::Bool(true))];
            let once =
                ready.run(&args, &Options::default()).unwrap_or_else(|e| panic!("{}", e.message)).results;
            ready.warm(&args).unwrap_or_else(|d| panic!("{}", d.message));
            for calls in [1, 2, 5] {
                let mut times: Vec<Duration> = Vec::new();
                let results = ready.repeat(&args, &Options::default(), &mut |time| {
                    times.push(time);
                    times.len() < calls
                });
                assert_eq!(results.unwrap_or_else(|e| panic!("{}", e.message)), once, "{executor:?}");
                assert_eq!(times.len(), calls);
            }
        }
    }
}

#[test]
fn what_stops_a_call_stops_them_all() {
    for executor in executors() {
        let settings = Settings { backend: executor, ..Settings::default() };
        let text = "entry f [n] (xs: [n]f64) (i: i64) = xs[i]";
        let session = Session::compile("f.fut", text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
        let entry = session.entry(None).unwrap_or_else(|d| panic!("{}", d.message));
        let ready = session.primal(&entry).unwrap_or_else(|d| panic!("{}", d.message));
        let mut calls = 0;
        let out = ready.repeat(&[Value::f64s(&[1.0]), Value::i64(1)], &Options::default(), &mut |_| {
            calls += 1;
            true
        });
        assert!(out.is_err());
        assert_eq!(calls, 0, "{executor:?}");
    }
}
