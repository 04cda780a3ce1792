//! Code for several sizes: versions for sizes far from each other, all of them right for every size.

use pullback_core::Value;
use pullback_driver::{Backend, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options;

const TEXT: &str = "entry main [n] [m] (a: [n][m]f64) (x: [m]f64) : f64 =
  f64.sum (map (\\row -> let s = f64.sum (map2 (*) row x) in f64.tanh s) a)";

fn gradient(backend: Backend) -> Ready {
    let session = Session::compile("rows.fut", TEXT, Settings { backend, ..Settings::default() });
    let session = session.expect("it compiles");
    let entry = session.entry(None).expect("the entry point");
    let selected = session.select(&entry, &Wrt::parse("")).expect("all");
    session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect("a gradient")
}

fn args(n: usize, m: usize) -> Vec<Value> {
    let number = |k: usize| ((k * 37 + 11) % 64) as f64 / 64.0 - 0.5;
    let a: Vec<f64> = (0..n * m).map(|k| number(k) / m as f64).collect();
    let x: Vec<f64> = (0..m).map(|j| number(7 * j)).collect();
    vec![Value::f64_array(&[n, m], &a), Value::f64s(&x), Value::f64(1.5)]
}

/// Sizes of several kinds, in an order in which each is near one and far from others.
const SIZES: [(usize, usize); 8] =
    [(1, 3000), (3000, 1), (2, 2500), (60, 60), (2500, 3), (1, 1), (700, 900), (70, 50)];

fn are_right(ready: &Ready) {
    for (n, m) in SIZES {
        let args = args(n, m);
        let expected = ready.interpret(&args, &Options::default()).expect("it runs").results;
        let found = ready.run(&args, &Options::default()).expect("it runs").results;
        for (a, b) in expected.iter().zip(&found) {
            let (a, b) = (a.floats(), b.floats());
            assert_eq!(a.len(), b.len());
            let size = a.iter().fold(1e-3, |s: f64, x| s.max(x.abs()));
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * size), "{n} rows of {m}");
        }
    }
}

#[test]
fn versions_on_the_vm_are_right_for_all_sizes() {
    let ready = gradient(Backend::Vm);
    let version = |n, m| std::ptr::from_ref(ready.vm(&args(n, m)).expect("native"));
    let wide = version(1, 3000);
    assert_ne!(wide, version(3000, 1), "far");
    assert_eq!(wide, version(3, 2000), "near");
    are_right(&ready);
}

#[test]
fn versions_of_machine_code_are_right_for_all_sizes() {
    let ready = gradient(Backend::Llvm);
    let version = |n, m| ready.native(&args(n, m)).map(std::ptr::from_ref);
    let Ok(wide) = version(1, 3000) else {
        println!("skipped: no LLVM");
        return;
    };
    let high = version(3000, 1).expect("as before");
    assert_ne!(wide, high, "far");
    assert_eq!(wide, version(3, 2000).expect("as before"), "near");
    for (n, m) in SIZES {
        version(n, m).expect("as before");
    }
    assert_eq!(high, version(2000, 3).expect("as before"), "what is made stays");
    are_right(&ready);
}

/// Also where each call chooses for itself.
#[test]
fn any_sizes_may_follow_each_other() {
    are_right(&gradient(Backend::Auto));
}
