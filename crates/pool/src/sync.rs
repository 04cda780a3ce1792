//! What the protocol needs from the standard library. The test of the protocol puts the model checker's types in its place.

#![allow(
    unsafe_code,
    reason = "the cell hands out pointers, which its users read and write by the rules they state"
)]

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::park;

use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A cell whose content is reached through pointers, so that a checker can watch it.
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Nothing that a lock of this crate guards can be left half changed by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until it is told. May also return at other times.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// How long a thread asks again before it sleeps: many times what a launch costs, so that launches that follow each other
/// find the workers awake, and short against a time slice.
const PATIENCE: Duration = Duration::from_micros(60);

/// Pauses between two looks at the clock.
const PAUSES: u32 = 64;

/// Asking again for a while.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    pauses: u32,
    since: Option<Instant>,
}

impl Spin {
    /// A short pause; false if it is time to sleep.
    pub(crate) fn pause(&mut self) -> bool {
        std::hint::spin_loop();
        self.pauses += 1;
        if !self.pauses.is_multiple_of(PAUSES) {
            return true;
        }
        // Perhaps what is waited for is to be done on this processor.
        std::thread::yield_now();
        let now = Instant::now();
        now - *self.since.get_or_insert(now) < PATIENCE
    }
}
