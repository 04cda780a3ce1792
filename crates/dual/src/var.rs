//! Numbers that record themselves on a tape, for one thread.

#![allow(unsafe_code, reason = "a number points to its tape, which the brand keeps alive; see `Var::tape`")]

use crate::lifted::{by_twos, lifted};
use crate::tape::{Call, Input, Row, Tape};
use crate::{Custom, Float, Function, Scalar};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// A number of reverse mode: its value, and where on the tape it was computed. Only functions such as [`grad`](crate::grad) make
/// them. Constants are not on the tape.
///
/// The lifetime is a brand: it belongs to one call, so that numbers of different calls cannot meet and none can leave its call.
///
/// ```compile_fail,E0521
/// let mut kept = None;
/// pullback_dual::grad(|x| { kept = Some(*x); x * x }, &3.0); // x may not leave
/// ```
/// ```compile_fail
/// use pullback_dual::grad;
/// grad(|&x| { grad(|&y| x * y, &2.0); x }, &3.0); // numbers of two calls
/// ```
/// ```compile_fail,E0277
/// use pullback_dual::grad;
/// // Threads that are not forked by `parallel` cannot record.
/// grad(|&x| { std::thread::scope(|s| { s.spawn(|| x * x).join(); }); x }, &3.0);
/// ```
pub struct Var<'t, S = f64> {
    value: S,
    /// The derivative with respect to what the row computed; of no meaning for constants.
    factor: S,
    /// 0 for constants.
    index: u32,
    /// Null for constants.
    tape: *const Tape<S>,
    brand: PhantomData<Cell<&'t ()>>,
}

impl<S: Copy> Clone for Var<'_, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Copy> Copy for Var<'_, S> {}

impl<S: fmt::Debug> fmt::Debug for Var<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
impl<S: fmt::Display> fmt::Display for Var<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<'t, S: Scalar> Var<'t, S> {
    /// A number one level below, as a constant of this level. So the variable of an outer derivative can be used in an inner one.
    ///
    /// ```
    /// use pullback_dual::{Var, grad};
    ///
    /// // d/dx (x * d/dy (x + y)) = 1, at any x and y.
    /// let d = grad(|&x| x * grad(|y| Var::lift(x) + y, &x), &1.0);
    /// assert_eq!(d, 1.0);
    /// ```
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Var { value, factor: S::one(), index: 0, tape: ptr::null(), brand: PhantomData }
    }
    /// The number one level below.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// Whether the value depends on no input.
    #[inline(always)]
    pub fn is_constant(&self) -> bool {
        self.index == 0
    }
    /// Where on the tape it is, and its derivative with respect to what is there.
    #[inline(always)]
    pub(crate) fn place(&self) -> (usize, S) {
        (self.index as usize, self.factor)
    }
    #[inline(always)]
    pub(crate) fn on(tape: &Tape<S>, value: S, index: u32) -> Self {
        Var { value, factor: S::one(), index, tape, brand: PhantomData }
    }
    /// The tape, if it is no constant.
    #[inline(always)]
    fn tape(&self) -> Option<&Tape<S>> {
        // SAFETY: numbers of the brand 't are made for one tape, by `on`, and handed to a closure that works for every 't. So they live no
        // longer than that closure's call, and the tape outlives it. They cannot be sent to other threads.
        unsafe { self.tape.as_ref() }
    }
    lifted!(@rows S);
    /// A function of one number, with its derivative with respect to what the row computed.
    #[inline(always)]
    fn with_factor(self, value: S, factor: S) -> Self {
        if self.is_constant() || factor.value().is_moderate() {
            return Var { value, factor, ..self };
        }
        match self.tape() {
            None => Self::lift(value),
            Some(tape) => Self::on(tape, value, extreme(tape, self.index, factor)),
        }
    }
    /// A function of two numbers, with its derivatives with respect to what their rows computed.
    #[inline(always)]
    fn joined(self, other: Self, value: S, [da, db]: [S; 2]) -> Self {
        // Two numbers of one row.
        if self.index == other.index && (da + db).value().is_moderate() {
            return Var { value, factor: da + db, ..self };
        }
        match self.tape() {
            None => Self::lift(value),
            Some(tape) => {
                let row = Row { parents: [self.index, other.index], partials: [da, db] };
                Self::on(tape, value, tape.push(row))
            }
        }
    }
    /// One value with any number of parents, given by twos, each with the derivative with respect to it.
    fn many(value: S, parents: impl Iterator<Item = [(Self, S); 2]> + Clone) -> Self {
        let Some(known) = parents.clone().flatten().find(|(x, _)| !x.is_constant()) else {
            return Self::lift(value);
        };
        let Some(tape) = known.0.tape() else { return Self::lift(value) };
        let rows = parents.map(|[(a, da), (b, db)]| Row {
            parents: [a.index, b.index],
            partials: [da.chain_mul(a.factor), db.chain_mul(b.factor)],
        });
        Self::on(tape, value, tape.push_all(rows))
    }
    /// Outputs whose reverse is not rows.
    fn call(xs: &[Self], outputs: Vec<S>, reverse: crate::tape::Reverse<S>) -> Vec<Self> {
        let Some(tape) = xs.iter().find_map(Self::tape) else {
            return outputs.into_iter().map(Self::lift).collect();
        };
        let first = tape.len() as u32;
        let ys: Vec<Self> = outputs.iter().map(|y| Self::on(tape, *y, tape.push_empty())).collect();
        let inputs = xs.iter().map(|x| Input { value: x.value, index: x.index, factor: x.factor }).collect();
        // The event is met when the outputs' rows are below it, so it is put before them.
        tape.event_at(first, Call { inputs, first, outputs, reverse });
        ys
    }
}

/// A row of one parent, with a partial derivative that may not be kept as a factor.
#[cold]
#[inline(never)]
pub(crate) fn extreme<S: Scalar, E>(tape: &Tape<S, E>, index: u32, partial: S) -> u32 {
    tape.push(Row { parents: [index, 0], partials: [partial, S::zero()] })
}

lifted!(@constants ['t, S: Scalar] Var<'t, S>, S, f64);
lifted!(@constants ['t, S: Scalar] Var<'t, S>, S, f32);
lifted!(['t, S: Scalar] Var<'t, S>, S, {
    lifted!(@recorded S);
    fn with_partials(value: Self::Float, partials: &[(Self, Self::Float)]) -> Self {
        let parts: Vec<(S, Self::Float)> = partials.iter().map(|(x, d)| (x.value, *d)).collect();
        let value = S::with_partials(value, &parts);
        Self::many(value, by_twos(partials, |(x, d)| (*x, S::constant(*d))))
    }
    fn custom<R: Custom>(rule: &R, xs: &[Self]) -> Vec<Self> {
        let plain: Vec<S> = xs.iter().map(|x| x.value).collect();
        let rule = rule.clone();
        let outputs = S::custom(&rule, &plain);
        Self::call(xs, outputs, Box::new(move |_, x, y, y_bar| rule.vjp(x, y, y_bar)))
    }
    fn checkpoint<F: Function>(f: &F, xs: &[Self]) -> Vec<Self> {
        let plain: Vec<S> = xs.iter().map(|x| x.value).collect();
        let f = f.clone();
        let outputs = S::checkpoint(&f, &plain);
        Self::call(xs, outputs, Box::new(move |limit, x, _, y_bar| crate::reverse::rerun(&f, limit, x, y_bar)))
    }
});
