//! Numbers that record themselves, on the task that the thread runs.

#![allow(unsafe_code, reason = "a number points to its task, which the brand keeps alive")]

use super::Parallel;
use super::task::{CURRENT, Event, Task, fork};
use crate::lifted::{by_twos, lifted};
use crate::tape::{Call, Input, Reverse, Row};
use crate::var::extreme;
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
/// grad(|&[x, y]| { std::thread::scope(|s| s.spawn(|| x * y).join()).unwrap(); x }, &[3.0, 4.0]);
/// ```
pub struct Var<'t, F: Float = f64> {
    value: F,
    /// The derivative with respect to what the row computed; of no meaning for constants.
    factor: F,
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
        Var { value, factor: S::one(), index: 0, task: ptr::null(), brand: PhantomData }
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
        Var { value, factor: S::one(), index, task, brand: PhantomData }
    }
    /// Where the cotangent will be: a task, none for constants, and an index; and the derivative with respect to what is there.
    pub(super) fn place(&self) -> Option<(*const Task<S>, u32, S)> {
        if self.is_constant() { None } else { Some((self.task, self.index, self.factor)) }
    }
    lifted!(@rows S);
    /// A function of one number, with its derivative with respect to what the row computed.
    #[inline(always)]
    fn with_factor(self, value: S, factor: S) -> Self {
        if self.is_constant() || factor.is_moderate() {
            return Var { value, factor, ..self };
        }
        let task = Task::recorder(self.task);
        Self::on(task, value, extreme(&task.tape, task.local(self.task, self.index), factor))
    }
    /// A function of two numbers, with its derivatives with respect to what their rows computed.
    #[inline(always)]
    fn joined(self, other: Self, value: S, partials: [S; 2]) -> Self {
        let same_task = ptr::eq(self.task, other.task);
        // Two numbers of one row.
        if self.index == other.index && same_task && (partials[0] + partials[1]).is_moderate() {
            return Var { value, factor: partials[0] + partials[1], ..self };
        }
        if !(same_task && self.task.cast() == CURRENT.get()) {
            let (task, parents) = far([(self.task, self.index), (other.task, other.index)]);
            return Self::on(task, value, task.tape.push(Row { parents, partials }));
        }
        // SAFETY: the brand keeps the run alive, and this thread runs the task.
        let task = unsafe { &*self.task };
        Self::on(task, value, task.tape.push(Row { parents: [self.index, other.index], partials }))
    }
    /// The task that records what depends on these, none if all are constant.
    fn recorder<'a>(mut xs: impl Iterator<Item = Self>) -> Option<&'a Task<S>> {
        xs.find(|x| !x.is_constant()).map(|x| Task::recorder(x.task))
    }
    /// One value with any number of parents, given by twos, each with the derivative with respect to it.
    fn many(value: S, parents: impl Iterator<Item = [(Self, S); 2]> + Clone) -> Self {
        let Some(task) = Self::recorder(parents.clone().flatten().map(|(x, _)| x)) else {
            return Self::lift(value);
        };
        // Imports are rows too, and come before.
        let rows = parents.map(|[(a, da), (b, db)]| Row {
            parents: [task.local(a.task, a.index), task.local(b.task, b.index)],
            partials: [da.chain_mul(a.factor), db.chain_mul(b.factor)],
        });
        let rows: Vec<Row<S>> = rows.collect();
        Self::on(task, value, task.tape.push_all(rows.into_iter()))
    }
    /// Outputs whose reverse is not rows.
    fn call(xs: &[Self], outputs: Vec<S>, reverse: Reverse<S>) -> Vec<Self> {
        let Some(task) = Self::recorder(xs.iter().copied()) else {
            return outputs.into_iter().map(Self::lift).collect();
        };
        let inputs = xs
            .iter()
            .map(|x| Input { value: x.value, index: task.local(x.task, x.index), factor: x.factor })
            .collect();
        let first = task.tape.len() as u32;
        let ys = outputs.iter().map(|y| Self::on(task, *y, task.tape.push_empty())).collect();
        task.tape.event_at(first, Event::Call(Box::new(Call { inputs, first, outputs, reverse })));
        ys
    }
}

/// The task that records, and the indices there of numbers of which one at least comes from elsewhere.
#[cold]
#[inline(never)]
fn far<'a, S: Float>(numbers: [(*const Task<S>, u32); 2]) -> (&'a Task<S>, [u32; 2]) {
    let task = Task::recorder(numbers[0].0);
    (task, numbers.map(|(from, index)| task.local(from, index)))
}

lifted!(@constants ['t] Var<'t, f64>, f64, f64);
lifted!(@constants ['t] Var<'t, f32>, f32, f32);
lifted!(['t, S: Float] Var<'t, S>, S, {
    lifted!(@recorded S);
    fn with_partials(value: S, partials: &[(Self, S)]) -> Self {
        Self::many(value, by_twos(partials, |x| *x))
    }
    fn custom<R: Custom>(rule: &R, xs: &[Self]) -> Vec<Self> {
        let plain: Vec<S> = xs.iter().map(|x| x.value).collect();
        let rule = rule.clone();
        let outputs = rule.value(&plain);
        Self::call(xs, outputs, Box::new(move |_, x, y, y_bar| rule.vjp(x, y, y_bar)))
    }
    fn checkpoint<C: Function>(f: &C, xs: &[Self]) -> Vec<Self> {
        let plain: Vec<S> = xs.iter().map(|x| x.value).collect();
        let f = f.clone();
        let outputs = f.call(&plain);
        Self::call(xs, outputs, Box::new(move |limit, x, _, y_bar| crate::reverse::rerun(&f, limit, x, y_bar)))
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
