//! What is at hand is not made again, by counts of allocations. This is a program of its own, so that it can count.

#![allow(unsafe_code, reason = "an allocator that counts and passes everything on")]

use pullback_ad::bulk::a_core::{Exp, Names, Program, Term, Ty, Var};
use pullback_ad::bulk::d_arrays::vjp;
use pullback_ad::bulk::partials::Zeros;
use pullback_ad::bulk::sizes::Size;
use pullback_ad::bulk::values::Tensor;
use pullback_prim::{Op, Prim, Scalar};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

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

fn term(exp: Exp) -> Term {
    Term::new(exp).unwrap_or_else(|why| panic!("{why}"))
}

/// `y_1 = tr x`, `y_k = tr y_(k-1)` so often; the sum of the elements at (0, 1) of all of them. An `index` of the reverse pass asks for the shape of each `y_k`.
fn turned(times: usize) -> Program {
    let mut names = Names::default();
    let ty = Ty::new(vec![Size::constant(2), Size::constant(2)], Scalar::F64);
    let x = names.fresh("x", ty.clone());
    let ys: Vec<Var> = (0..times).map(|_| names.fresh("y", ty.clone())).collect();
    let element = |y: &Var| term(Exp::Index(Term::var(y), vec![Term::i64(0), Term::i64(1)]));
    let add = |t: Term, u: Term| term(Exp::Op(Prim::Op(Op::Add, Scalar::F64), vec![t, u]));
    let sum = ys.iter().map(element).reduce(add).unwrap_or_else(|| panic!("some"));
    let before = std::iter::once(&x).chain(&ys).map(Term::var).collect::<Vec<_>>();
    let each = ys.iter().zip(before).rev();
    let body = each.fold(sum, |body, (y, before)| {
        term(Exp::Let(y.clone(), term(Exp::Transpose(vec![1, 0], before)), body))
    });
    Program { sizes: Vec::new(), inputs: vec![x], body, names }
}

/// Claim C9: the shape of a delta term is at hand. If a shape were computed from what is inside of a term, a chain of twice as many terms would take four times the work.
///
/// One test, so that no other thread of the tests allocates while it counts.
#[test]
fn shapes_of_delta_terms_are_not_computed_again() {
    let counted = |times: usize| {
        let (program, x) = (turned(times), Tensor::f64s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
        let before = COUNT.load(Ordering::Relaxed);
        let found = vjp(&program, &[x], &Tensor::f64s(&[], &[1.0]), Zeros::Stop);
        let count = COUNT.load(Ordering::Relaxed) - before;
        // Half of them are turned, where the element at (0, 1) is that at (1, 0).
        let half = times as f64 / 2.0;
        let found = found.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(found.inputs, [Some(Tensor::f64s(&[2, 2], &[0.0, half, half, 0.0]))]);
        count as f64
    };
    let [few, more, many] = [64, 128, 256].map(counted);
    assert!((many - more) < 1.1 * 2.0 * (more - few), "{few} {more} {many}");
}
