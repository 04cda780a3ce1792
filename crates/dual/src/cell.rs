//! Cells that several threads may add to.
//!
//! The thread that reverses a task owns its cells; it reads and writes them without any order. Threads that meet at one cell, because
//! an edge leaves their branch, add by compare and exchange. Orders between threads come from the ends of branches alone, so
//! relaxed operations are enough; `tests/model.rs` tries the schedules.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};

/// A number as bits that can be exchanged.
pub trait Cell<F>: Send + Sync {
    /// A cell with the value 0.
    fn zero() -> Self;
    /// The value, as this thread knows it.
    fn get(&self) -> F;
    /// Sets the value: only by the thread that owns the cell.
    fn set(&self, x: F);
    /// Adds, whoever else does.
    fn add(&self, x: F);
}

macro_rules! cell {
    ($cell:ty, $float:ty) => {
        impl Cell<$float> for $cell {
            #[inline(always)]
            fn zero() -> $cell {
                <$cell>::new(0)
            }
            #[inline(always)]
            fn get(&self) -> $float {
                <$float>::from_bits(self.load(Ordering::Relaxed))
            }
            #[inline(always)]
            fn set(&self, x: $float) {
                self.store(x.to_bits(), Ordering::Relaxed);
            }
            fn add(&self, x: $float) {
                let mut old = self.load(Ordering::Relaxed);
                loop {
                    let new = (<$float>::from_bits(old) + x).to_bits();
                    match self.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return,
                        Err(now) => old = now,
                    }
                }
            }
        }
    };
}

cell!(AtomicU64, f64);
cell!(AtomicU32, f32);
