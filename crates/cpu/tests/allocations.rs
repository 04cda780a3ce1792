//! A prepared call allocates nothing in the steady state. This is a program of its own, so that it can count.

#![allow(unsafe_code, reason = "an allocator that counts and passes everything on")]

use pullback_cpu::{Argument, Place};
use pullback_driver::{Kind, Session, Settings, Wrt};
use std::alloc::{GlobalAlloc, Layout, System};
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

#[test]
fn a_prepared_call_allocates_nothing() {
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
    let before = COUNT.load(Ordering::Relaxed);
    std::hint::black_box(Box::new(1));
    assert!(COUNT.load(Ordering::Relaxed) > before, "allocations are counted");
}
