//! Numbers that record themselves, on the task that the thread runs.

#![allow(unsafe_code, reason = "a number points to its task, which the brand keeps alive")]

use super::Parallel;
use super::task::{CURRENT, Event, Task, fork};
use crate::lifted::lifted;
use crate::scalar::same_length;
use crate::tape::{Call, Reverse, Row};
use crate::{Custom, Float, Function, Scalar};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// A number of parallel reverse mode. Threads may share it; what is computed from it is recorded by the branch that computes it.
///
/// The lifetime is a brand, as with [`Var`](crate::Var):
///
/// ```compile_fail,E0521
/// let mut kept = None;
/// pullback_dual::parallel::grad(|x| { kept = Some(*x); x * x }, &3.0); // x may not leave
/// ```
///
/// What types cannot say is checked when it runs: branches do not see each other's numbers before the fork ends, and threads that are not
/// forked by [`Parallel`] cannot record.
///
/// ```should_panic
/// use pullback_dual::parallel::grad;
/// grad(|&x| { std::thread::scope(|s| s.spawn(|| x * x).join()).unwrap(); x }, &3.0);
/// ```
pub struct Var<'t, F: Float = f64> {
    value: F,
    /// 0 for constants.
    index: u32,
    /// Null for constants.
    task: *const Task<F>,
    brand: PhantomData<fn(&'t ()) -> &'t ()>,
}

// SAFETY: a number is plain data but for the pointer, of whose target only the fields that are for all threads are used, unless the
// thread runs that task.
unsafe impl<F: Float> Send for Var<'_, F> {}
// SAFETY: as above.
unsafe impl<F: Float> Sync for Var<'_, F> {}

impl<F: Float> Clone for Var<'_, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Float> Copy for Var<'_, F> {}

impl<F: Float> fmt::Debug for Var<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, f)
    }
}
impl<F: Float> fmt::Display for Var<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value, f)
    }
}

impl<'t, S: Float> Var<'t, S> {
    /// A constant.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Var { value, index: 0, task: ptr::null(), brand: PhantomData }
    }
    /// The plain number.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// Whether the value depends on no input.
    #[inline(always)]
    pub fn is_constant(&self) -> bool {
        self.task.is_null()
    }
    #[inline(always)]
    pub(super) fn on(task: &Task<S>, value: S, index: u32) -> Self {
        Var { value, index, task, brand: PhantomData }
    }
    #[inline(always)]
    pub(super) fn raw(&self) -> (*const Task<S>, u32) {
        (self.task, self.index)
    }
    /// Where the cotangent will be: a task, none for constants, and an index.
    pub(super) fn place(&self) -> Option<(*const Task<S>, u32)> {
        if self.is_constant() { None } else { Some((self.task, self.index)) }
    }
    #[inline(always)]
    fn unary(self, value: S, d: S) -> Self {
        if self.is_constant() {
            return Self::lift(value);
        }
        if self.task.cast() != CURRENT.get() {
            return self.far(Self::lift(value), value, d, S::zero());
        }
        // SAFETY: the brand keeps the run alive, and this thread runs the task.
        let task = unsafe { &*self.task };
        let row = Row { parents: [self.index, 0], partials: [d, S::zero()] };
        Self::on(task, value, task.tape.push(row))
    }
    #[inline(always)]
    fn binary(self, other: Self, value: S, da: S, db: S) -> Self {
        let current = CURRENT.get().cast::<Task<S>>();
        let here = |x: &Self| x.is_constant() || ptr::eq(x.task, current);
        if !(here(&self) && here(&other)) {
            return self.far(other, value, da, db);
        }
        if self.is_constant() && other.is_constant() {
            return Self::lift(value);
        }
        // SAFETY: one of the numbers belongs to the current task, which therefore is a live task with this type of numbers, and this
        // thread runs it.
        let task = unsafe { &*current };
        let row = Row { parents: [self.index, other.index], partials: [da, db] };
        Self::on(task, value, task.tape.push(row))
    }
    /// A row whose arguments come from elsewhere.
    #[cold]
    #[inline(never)]
    fn far(self, other: Self, value: S, da: S, db: S) -> Self {
        let from = if self.is_constant() { other.task } else { self.task };
        if from.is_null() {
            return Self::lift(value);
        }
        let task = Task::recorder(from);
        let parents = [task.local(&self), task.local(&other)];
        Self::on(task, value, task.tape.push(Row { parents, partials: [da, db] }))
    }
    /// The task that records what depends on these, none if all are constant.
    fn recorder<'a>(mut xs: impl Iterator<Item = Self>) -> Option<&'a Task<S>> {
        xs.find(|x| !x.is_constant()).map(|x| Task::recorder(x.task))
    }
    /// One value with any number of parents.
    fn many(value: S, parents: impl Iterator<Item = (Self, S)> + Clone) -> Self {
        let Some(task) = Self::recorder(parents.clone().map(|(x, _)| x)) else { return Self::lift(value) };
        // Imports are rows too, and come before.
        let parents: Vec<(u32, S)> =
            parents.filter(|(x, _)| !x.is_constant()).map(|(x, d)| (task.local(&x), d)).collect();
        Self::on(task, value, task.tape.push_all(parents.into_iter()))
    }
    /// Outputs whose reverse is not rows.
    fn call(xs: &[Self], outputs: Vec<S>, reverse: Reverse<S>) -> Vec<Self> {
        let Some(task) = Self::recorder(xs.iter().copied()) else {
            return outputs.into_iter().map(Self::lift).collect();
        };
        let inputs = xs.iter().map(|x| (task.local(x), x.value)).collect();
        let first = task.tape.len() as u32;
        let ys = outputs.iter().map(|y| Self::on(task, *y, task.tape.push_empty())).collect();
        task.tape.event_at(first, Event::Call(Call { inputs, first, outputs, reverse }));
        ys
    }
}

lifted!(@constants ['t] Var<'t, f64>, f64, f64);
lifted!(@constants ['t] Var<'t, f32>, f32, f32);
lifted!(['t, S: Float] Var<'t, S>, S, {
    fn total(xs: &[Self]) -> Self {
        let value = xs.iter().map(|x| x.value).sum();
        Self::many(value, xs.iter().map(|x| (*x, S::one())))
    }
    fn dot(xs: &[Self], ys: &[Self]) -> Self {
        same_length(xs.len(), ys.len());
        let pairs = xs.iter().zip(ys);
        let value = pairs.clone().fold(S::zero(), |sum, (x, y)| sum + x.value * y.value);
        Self::many(value, pairs.flat_map(|(x, y)| [(*x, y.value), (*y, x.value)]))
    }
    fn with_partials(value: S, partials: &[(Self, S)]) -> Self {
        Self::many(value, partials.iter().copied())
    }
    fn custom<R: Custom>(rule: &R, xs: &[Self]) -> Vec<Self> {
        let plain: Vec<S> = xs.iter().map(|x| x.value).collect();
        let rule = rule.clone();
        let outputs = rule.value(&plain);
        Self::call(xs, outputs, Box::new(move |x, y, y_bar| rule.vjp(x, y, y_bar)))
    }
    fn checkpoint<C: Function>(f: &C, xs: &[Self]) -> Vec<Self> {
        let plain: Vec<S> = xs.iter().map(|x| x.value).collect();
        let f = f.clone();
        let outputs = f.call(&plain);
        Self::call(xs, outputs, Box::new(move |x, _, y_bar| crate::reverse::rerun(&f, x, y_bar)))
    }
    #[inline(always)]
    fn is_inert(&self) -> bool {
        self.is_constant() && self.value.is_inert()
    }
});

impl<S: Float> Parallel for Var<'_, S> {
    fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        fork::<S, A, B, RA, RB>(a, b)
    }
}
