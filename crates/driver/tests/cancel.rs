//! A run that another thread cancels, and the same function run again.

use pullback_base::RuntimeErrorKind;
use pullback_core::Value;
use pullback_driver::{Backend, Session, Settings};
use pullback_interp::core::Options;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// `n * n` steps of `y <- y / 2 + 1`, whose limit is 2.
const SOURCE: &str = "
    entry main (n: i64) (x: f64) : []f64 =
      let y = loop y = x for _i < n do loop z = y for _j < n do 0.5 * z + 1.0
      in [y, y - 2.0]";

#[test]
fn a_cancelled_function_can_be_run_again() {
    for backend in [Backend::Interp, Backend::Llvm, Backend::Auto] {
        let settings = Settings { backend, ..Settings::default() };
        let session = Session::compile("cancel.fut", SOURCE, settings).expect("compiles");
        let ready = session.primal(&session.entry(None).expect("an entry point")).expect("supported");
        let run = |n: i64, cancel: &AtomicBool| {
            let options = Options { cancel: Some(cancel), ..Options::default() };
            ready.run(&[Value::i64(n), Value::f64(1.0)], &options)
        };
        for _ in 0..3 {
            let flag = AtomicBool::new(false);
            let result = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(100));
                    flag.store(true, Ordering::Relaxed);
                });
                // A minute at least.
                run(1 << 18, &flag)
            });
            let error = result.expect_err("cancelled");
            if backend == Backend::Llvm && error.kind == RuntimeErrorKind::Limit {
                eprintln!("skipped: {error}");
                break;
            }
            assert_eq!(error.kind, RuntimeErrorKind::Cancelled, "{backend:?}: {error}");
            let again = run(8, &AtomicBool::new(false)).expect("runs");
            // 1.5, 1.75, ..: the distance from 2 is halved 64 times.
            assert_eq!(again.results[0].floats(), [2.0, 0.0], "{backend:?}");
            let first = run(1, &AtomicBool::new(false)).expect("runs");
            assert_eq!(first.results[0].floats(), [1.5, -0.5], "{backend:?}");
        }
    }
}
