//! A prepared call allocates nothing in the steady state: of small programs, of those with tapes in loops, with large results, on several threads. This is a program of its own, so that it can count.

#![allow(unsafe_code, reason = "an allocator that counts and passes everything on")]

use pullback_core::Value;
use pullback_cpu::{Argument, Place};
use pullback_driver::{Kind, Session, Settings, Wrt};
use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TEXT: &str = "
def norm [n] (xs: [n]f64) : f64 = f64.sqrt (f64.sum (map (\\x -> x * x) xs))
entry loss [n][m] (a: [n][m]f64) (x: [m]f64) : f64 =
  norm (map (\\row -> f64.sum (map2 (*) row x)) a)
";

/// One test, so that no other thread of the tests allocates while it counts.
#[test]
fn a_prepared_call_allocates_nothing() {
    small_arrays();
    for case in CASES {
        for threads in [1, 2] {
            steady(case, threads);
        }
    }
}

fn small_arrays() {
    let session = Session::compile("loss.fut", TEXT, Settings::default()).expect("a program");
    let entry = session.entry(None).expect("an entry point");
    let selected = session.select(&entry, &Wrt::parse("")).expect("all");
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect("a gradient");
    let mut prepared = match ready.prepare(&[], 1 << 30) {
        Ok(prepared) => prepared,
        Err(d) => return eprintln!("skipped: {}", d.message),
    };
    // The norm of (3, 4) is 5, and its gradient is (0.6, 0.8).
    let (a, x) = ([1.0, 2.0, 0.0, 2.0], [-1.0, 2.0]);
    let (mut value, mut a_bar, mut x_bar) = (0.0, [0.0; 4], [0.0; 2]);
    let (mut of_a, mut of_x) = ([0; 2], [0; 1]);
    let args = |seed| [Argument::array(&a, &[2, 2]), Argument::array(&x, &[2]), Argument::scalar(seed)];
    let mut call = |seed: f64| {
        let mut places = [
            Place::scalar(&mut value),
            Place::array(&mut a_bar, &mut of_a),
            Place::array(&mut x_bar, &mut of_x),
        ];
        prepared.call(&args(seed), &mut places, None)
    };
    call(1.0).expect("it runs");
    let before = COUNT.load(Ordering::Relaxed);
    for k in 0..1000 {
        call(f64::from(k)).expect("it runs");
    }
    let allocations = COUNT.load(Ordering::Relaxed) - before;
    assert_eq!(allocations, 0, "in 1000 calls");
    // Nor does one whose results stay where they were made.
    let mut view = |seed: f64| {
        let args = args(seed);
        let mut views = prepared.view(&args, None).expect("it runs");
        let value: Option<f64> = views.next().and_then(|v| v.scalar());
        let first = views.next().and_then(|v| v.array::<f64>()).map(|(elements, _)| elements[0]);
        (value, first, views.len())
    };
    view(1.0);
    let before = COUNT.load(Ordering::Relaxed);
    for k in 0..1000 {
        let (value, first, left) = view(f64::from(k));
        assert_eq!((value, left), (Some(5.0), 1));
        assert!(first.is_some_and(|x| (x + 0.6 * f64::from(k)).abs() < 1e-10), "{first:?}");
    }
    assert_eq!(COUNT.load(Ordering::Relaxed) - before, 0, "in 1000 calls with views");
    // The last seed was 999.
    let near = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        let all = found.iter().zip(expected).all(|(f, e)| (f - 999.0 * e).abs() < 1e-10);
        assert!(all, "{found:?}, expected 999 times {expected:?}");
    };
    assert_eq!((value, of_a, of_x), (5.0, [2, 2], [2]));
    near(&a_bar, &[-0.6, 1.2, -0.8, 1.6]);
    near(&x_bar, &[0.6, 2.8]);
    // The same matrix by columns, in every second number: a copy, whose memory is kept.
    let columns = [1.0, 9.0, 0.0, 9.0, 2.0, 9.0, 2.0, 9.0];
    let transposed = Argument::strided(&columns, 0, &[2, 2], &[2, 4]);
    let args = [transposed, Argument::array(&x, &[2]), Argument::scalar(1.0)];
    let mut call = |places: &mut [Place<'_>]| prepared.call(&args, places, None).expect("it runs");
    let mut places =
        [Place::scalar(&mut value), Place::array(&mut a_bar, &mut of_a), Place::array(&mut x_bar, &mut of_x)];
    call(&mut places);
    let before = COUNT.load(Ordering::Relaxed);
    (0..1000).for_each(|_| call(&mut places));
    assert_eq!(COUNT.load(Ordering::Relaxed) - before, 0, "in 1000 calls with copies");
    let close =
        |found: &[f64], expected: &[f64]| found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12);
    assert_eq!(value, 5.0);
    assert!(close(&a_bar, &[-0.6, 1.2, -0.8, 1.6]) && close(&x_bar, &[0.6, 2.8]), "{a_bar:?} {x_bar:?}");
    let before = COUNT.load(Ordering::Relaxed);
    std::hint::black_box(Box::new(1));
    assert!(COUNT.load(Ordering::Relaxed) > before, "allocations are counted");
}

/// A function `loss` of an array `x`, an integer and scalars, whose gradient by `x` is called.
struct Case {
    name: &'static str,
    /// Beside `x` and `k`: so many scalars, `COEFFICIENTS` in the text.
    scalars: usize,
    body: &'static str,
    n: usize,
    k: i64,
}

const CASES: &[Case] = &[
    Case {
        name: "a tape of a loop over arrays",
        scalars: 0,
        body: "f64.sum (loop y = x for _i < k do map2 (\\a b -> f64.sin (a + 0.3 * b)) y (rotate 1 y))",
        n: 20_000,
        k: 12,
    },
    Case {
        name: "a tape of a loop over scalars",
        scalars: 0,
        body: "loop s = 0.5 for i < n do f64.sin (s + x[i] * f64.i64 k)",
        n: 500,
        k: 2,
    },
    Case {
        name: "tapes that grow",
        scalars: 0,
        body: "f64.sum (map (\\a -> loop y = a while y < f64.i64 k do y + 0.5 + 0.4 * f64.sin (y * a)) x)",
        n: 20_000,
        k: 20,
    },
    Case {
        name: "a large result",
        scalars: 0,
        body: "f64.sum (map (\\a -> f64.exp (-a * a) * f64.i64 k) x)",
        n: 1 << 20,
        k: 3,
    },
    Case {
        name: "parts of loops with many numbers from outside",
        scalars: 80,
        body: "f64.sum (map (\\a -> f64.sin (COEFFICIENTS) * f64.i64 k) x)",
        n: 20_000,
        k: 2,
    },
];

/// Calls of a round that is counted, by the size of the array: about as many numbers in each.
fn calls(n: usize) -> usize {
    (400_000 / n).clamp(4, 200)
}

/// A round without allocations is looked for in so many: a thread that first takes part late makes its workspace then.
const ROUNDS: usize = 8;

/// Whether some round of calls allocates nothing.
fn is_steady_in(n: usize, what: &mut dyn FnMut()) -> bool {
    let mut round = || {
        let before = COUNT.load(Ordering::Relaxed);
        (0..calls(n)).for_each(|_| what());
        COUNT.load(Ordering::Relaxed) - before
    };
    (0..ROUNDS).any(|_| round() == 0)
}

/// Fails if every round of calls allocates.
fn steady(case: &Case, threads: usize) {
    let scalars: String = (0..case.scalars).map(|k| format!(" (c{k}: f64)")).collect();
    // A polynomial, by Horner's rule.
    let polynomial = (0..case.scalars).fold("0.0".to_string(), |inner, k| format!("c{k} + a * ({inner})"));
    let body = case.body.replace("COEFFICIENTS", &polynomial);
    let text = format!("entry loss [n] (x: [n]f64) (k: i64){scalars} : f64 =\n  {body}\n");
    let settings = Settings { threads: NonZeroUsize::new(threads), ..Settings::default() };
    let session = Session::compile("loss.fut", &text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
    let entry = session.entry(None).expect("an entry point");
    let selected = session.select(&entry, &Wrt::parse("x")).expect("x");
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect("a gradient");
    let x: Vec<f64> = (0..case.n).map(|i| ((i * 37) % 101) as f64 / 101.0).collect();
    let coefficients: Vec<f64> = (0..case.scalars).map(|k| 1.0 / (k + 1) as f64).collect();
    let values = [Value::f64s(&x), Value::i64(case.k)].into_iter();
    let values = values.chain(coefficients.iter().map(|c| Value::f64(*c))).chain([Value::f64(1.0)]);
    let mut prepared = match ready.prepare(&values.collect::<Vec<_>>(), 1 << 30) {
        Ok(prepared) => prepared,
        Err(d) => return eprintln!("skipped: {}", d.message),
    };
    let shape = [case.n];
    let args = [Argument::array(&x, &shape), Argument::scalar(case.k)].into_iter();
    let args: Vec<Argument<'_>> = args
        .chain(coefficients.iter().map(|c| Argument::scalar(*c)))
        .chain([Argument::scalar(1.0)])
        .collect();
    let (mut value, mut x_bar, mut of_x) = (0.0, vec![0.0; case.n], [0; 1]);
    let mut call = |value: &mut f64, x_bar: &mut [f64]| {
        let mut places = [Place::scalar(value), Place::array(x_bar, &mut of_x)];
        prepared.call(&args, &mut places, None).expect("it runs");
    };
    call(&mut value, &mut x_bar);
    assert!(value.is_finite() && x_bar.iter().all(|x| x.is_finite()) && x_bar.iter().any(|x| *x != 0.0));
    let (first, first_bar) = (value, x_bar.clone());
    let is_steady = is_steady_in(case.n, &mut || call(&mut value, &mut x_bar));
    assert!(is_steady, "{}, {threads} threads: every round of calls allocates", case.name);
    assert!(value == first && x_bar == first_bar, "{}, {threads} threads: not the same again", case.name);
    let is_steady = is_steady_in(case.n, &mut || {
        let mut views = prepared.view(&args, None).expect("it runs");
        assert_eq!(views.next().and_then(|v| v.scalar::<f64>()), Some(first));
    });
    assert!(is_steady, "{}, {threads} threads: every round of views allocates", case.name);
}
