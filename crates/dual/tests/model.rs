//! Cells that threads add to, under a model checker, which tries the schedules and the values that the memory model allows.
//!
//! The source of the cells is compiled a second time here, with the checker's atomic types in place of the standard library's. The shape is
//! that of the reverse pass: branches add to a number of the task that forked, and that task reads it when they have joined.

#![allow(unreachable_pub, reason = "the library makes it public")]

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[path = "../src/cell.rs"]
mod cell;

use atomic::{AtomicU32, AtomicU64};
use cell::Cell;
use loom::sync::Arc;
use loom::thread;

/// Two branches run `add`, then the task that forked adds 1 and reads.
fn fork<F: Copy + 'static, C: Cell<F> + 'static>(
    add: fn(&C, F),
    of: fn(u8) -> F,
    seen: impl Fn(F) + Sync + Send + 'static,
) {
    loom::model(move || {
        let cell = Arc::new(C::zero());
        let branches = [2, 4].map(|x| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || add(&cell, of(x)))
        });
        branches.into_iter().for_each(|b| b.join().expect("no panic"));
        add(&cell, of(1));
        seen(cell.get());
    });
}

#[test]
fn no_contribution_of_parallel_branches_is_lost() {
    fork::<f64, AtomicU64>(|c, x| c.add(x), f64::from, |sum| assert_eq!(sum, 7.0));
    fork::<f32, AtomicU32>(|c, x| c.add(x), f32::from, |sum| assert_eq!(sum, 7.0));
}

#[test]
#[should_panic(expected = "lost")]
fn the_checker_sees_that_adding_without_exchange_loses_some() {
    fork::<f64, AtomicU64>(|c, x| c.set(c.get() + x), f64::from, |sum| assert!(sum == 7.0, "lost: {sum}"));
}
