//! Limits of memory: runs that are sure to need more than there is stop before they begin, and what cannot run with limited tapes says why.

use pullback_base::RuntimeErrorKind;
use pullback_core::Value;
use pullback_driver::{Backend, Kind, Session, Settings, Wrt};
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

/// Cotangents of values with alternatives, on tapes under a limit.
#[test]
fn cotangents_of_sums_are_added_natively() {
    let text = "
    type t = #a f64 | #b f64 f64
    entry main [n] (x: [n]f64) : f64 =
      let ts : [n]t = map (\\p -> if p > 0 then #a p else #b p p) x
      in f64.sum (map (\\v -> loop w = v for j < n do match ts[j] case #a p -> p * w case #b p q -> p * q + w) x)";
    let mut session = Session::compile("sums.fut", text, Settings::default()).expect("compiles");
    session.settings.choice.tape_limit = Some(1 << 20);
    let entry = session.entry(None).expect("an entry point");
    let wanted = session.select(&entry, &Wrt::default()).expect("selected");
    for backend in [Backend::Interp, Backend::Vm] {
        session.settings.backend = backend;
        let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).expect("a gradient");
        let args = [Value::f64s(&[2.0, -1.0, 3.0]), Value::f64(1.0)];
        let out = ready.run(&args, &Options::default()).expect("runs").results;
        // Each x becomes (x x1 + x2^2) x3; with their sum S = 4 that is x3 (x1 S + 3 x2^2) = 33, by x1 x3 (S + x1), by x2 x3 (x1 + 6 x2), by x3
        // x1 S + 3 x2^2 + x3 x1.
        assert_eq!(out[0], Value::f64(33.0), "{backend:?}");
        assert_eq!(out[1], Value::f64s(&[18.0, -12.0, 17.0]), "{backend:?}");
    }
}
