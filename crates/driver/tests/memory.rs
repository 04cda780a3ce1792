//! Runs that are sure to need more memory than there is stop before they begin.

use pullback_base::RuntimeErrorKind;
use pullback_core::Value;
use pullback_driver::{Backend, Session, Settings};
use pullback_interp::core::Options;

/// Hours of work, then two arrays of `m` numbers.
const SOURCE: &str = "
    entry main (n: i64) (m: i64) (x: f64) : ([]f64, []f64) =
      let y = loop y = x for _i < n do loop z = y for _j < n do 0.5 * z + 1.0
      let a = map (\\i -> f64.i64 i * y) (iota m)
      in (a, scan (+) 0 a)";

#[test]
fn what_is_sure_not_to_fit_stops_first() {
    for backend in [Backend::Vm, Backend::Llvm, Backend::Auto] {
        let settings = Settings { backend, ..Settings::default() };
        let session = Session::compile("memory.fut", SOURCE, settings).expect("compiles");
        let ready = session.primal(&session.entry(None).expect("an entry point")).expect("supported");
        let run = |n: i64, m: i64| {
            let options = Options { memory_limit: 1 << 20, ..Options::default() };
            ready.run(&[Value::i64(n), Value::i64(m), Value::f64(1.0)], &options)
        };
        let error = run(1 << 40, 100_000).expect_err("too much");
        assert_eq!(error.kind, RuntimeErrorKind::Limit, "{backend:?}: {error}");
        if backend == Backend::Llvm && error.message.starts_with("no native code") {
            eprintln!("skipped: {error}");
            continue;
        }
        // One of the two arrays fits.
        let expected = "out of memory: 800000 more bytes are needed, 800000 are in use, the limit is 1048576";
        assert_eq!(error.message, expected, "{backend:?}");
        assert!(error.span.is_some() && error.hint.is_some(), "{backend:?}: {error:?}");
        let fine = run(3, 1000).expect("runs");
        assert_eq!(fine.results.len(), 2, "{backend:?}");
    }
}
