//! Reverse mode for one thread: run a function on a tape, then walk the tape backwards.

use crate::brand::call;
use crate::error::{caught, expect, stop};
use crate::memory::Buffer;
use crate::tape::{Limit, PART, Row, Tape};
use crate::{Differentiable, Error, Function, Scalar, Var};

/// The gradient of a function of one result, with the shape of its argument.
///
/// The closure gets the argument with numbers that record themselves. Cost: a small multiple of the function's, whatever the number of
/// variables; memory: 32 bytes for each operation on two numbers of type `f64` that depend on it.
///
/// ```
/// use pullback_dual::grad;
///
/// assert_eq!(grad(|x| x * x, &3.0), 6.0);
/// assert_eq!(grad(|(x, y)| x * y + y.sin(), &(2.0, 0.0)), (0.0, 3.0));
///
/// let xs = vec![1.0, 2.0, 3.0];
/// assert_eq!(grad(|xs| xs.iter().map(|x| x * x).sum(), &xs), [2.0, 4.0, 6.0]);
/// # use pullback_dual::Scalar;
/// ```
///
/// Panics if there is no memory for the tape; [`Settings`] has calls that give an error instead.
#[inline]
pub fn grad<S, X, F>(f: F, x: &X) -> X::With<S>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Var<'t, S>,
{
    value_and_grad(f, x).1
}

/// The value and the gradient.
///
/// ```
/// use pullback_dual::value_and_grad;
///
/// let (value, gradient) = value_and_grad(|[x, y]| x * y, &[3.0, 4.0]);
/// assert_eq!((value, gradient), (12.0, [4.0, 3.0]));
/// ```
#[inline]
pub fn value_and_grad<S, X, F>(f: F, x: &X) -> (S, X::With<S>)
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Var<'t, S>,
{
    let outcome = expect(Settings::new().value_and_grad(f, x));
    (outcome.value, outcome.gradient)
}

/// How a tape is kept.
///
/// ```
/// use pullback_dual::{Error, Settings};
///
/// let settings = Settings::new().tape_limit(1 << 20);
/// let outcome = settings.value_and_grad(
///     |&[x, z]| {
///         let mut y = x;
///         loop {
///             y *= z;
///         }
///     },
///     &[1.0, 1.0],
/// );
/// assert!(matches!(outcome, Err(Error::TapeLimit { limit: 1048576, .. })));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    limit: usize,
}

/// A value, its gradient, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<S, G> {
    /// The value of the function.
    pub value: S,
    /// The gradient, of the argument's shape.
    pub gradient: G,
    /// What was recorded.
    pub report: Report,
}

/// What a run recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows of the tape: one for each operation on two numbers that depend on inputs, but for those of a checkpoint. Operations on
    /// one number, also several in a row, make none.
    pub rows: usize,
    /// Bytes of the tape, in whole blocks.
    pub tape_bytes: usize,
    /// Bytes of the cotangents, which the reverse pass needs beside the tape.
    pub cotangent_bytes: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

impl Settings {
    /// No limit.
    pub const fn new() -> Settings {
        Settings { limit: usize::MAX }
    }
    /// The most bytes that the tape may take, together with those of checkpoints that are run again. The function, or the reverse pass, is
    /// stopped by unwinding where it would take more, so a program that is compiled with `panic = "abort"` ends there.
    pub const fn tape_limit(self, bytes: usize) -> Settings {
        Settings { limit: bytes }
    }
    /// The value, the gradient, and what they cost. Errors: the limit (of checkpoints that are run again too), no memory. Panics of the
    /// function go on to the caller.
    #[inline]
    pub fn value_and_grad<S, X, F>(self, f: F, x: &X) -> Result<Outcome<S, X::With<S>>, Error>
    where
        S: Scalar,
        X: Differentiable<S> + ?Sized,
        F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Var<'t, S>,
    {
        caught(|| {
            let tape = Tape::new(Limit::own(self.limit));
            let (place, value) = call(inputs(x, &tape), f, |y| (y.place(), y.primal()));
            let adjoint = swept(&tape, [(place, S::one())]);
            Outcome {
                value,
                gradient: rebuild(x, &adjoint, 0),
                report: Report {
                    rows: tape.row_count(),
                    tape_bytes: tape.bytes(),
                    cotangent_bytes: adjoint.bytes(),
                },
            }
        })
    }
    /// As [`vjp`]. Errors: the limit, no memory. The limit holds for the calls of the pullback too.
    pub fn vjp<'x, S, X, Y, F>(self, f: F, x: &'x X) -> Result<(Y, Pullback<'x, S, X, Y>), Error>
    where
        S: Scalar,
        X: Differentiable<S> + ?Sized,
        Y: Differentiable<S, With<S> = Y>,
        F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Y::With<Var<'t, S>>,
        for<'t> Y::With<Var<'t, S>>: Differentiable<Var<'t, S>, With<S> = Y>,
    {
        caught(|| {
            let tape = Tape::new(Limit::own(self.limit));
            let mut outputs = Vec::new();
            let (value, kept, fits) = call(inputs(x, &tape), f, |y| {
                y.verify();
                let values = || y.map(&mut |y: &Var<'_, S>| y.primal());
                let (value, kept): (Y, Y) = (values(), values());
                // In the order of the kept value, in which it will meet cotangents.
                let fits = kept.zip(&y, &mut |_, y: &Var<'_, S>| outputs.push(y.place()));
                (value, kept, fits)
            });
            fits.map(|()| (value, Pullback { tape, x, value: kept, outputs }))
        })?
    }
}

/// The value of a function of any result, and its pullback: what takes a cotangent of the result to one of the argument.
///
/// The type of the result must be stated, since the closure's own result is of another type. The pullback keeps a second copy of the
/// value, whose shape its cotangents must have.
///
/// ```
/// use pullback_dual::vjp;
///
/// let (y, pullback): ((f64, f64), _) = vjp(|[a, b]| (a * b, a / b), &[6.0, 2.0]);
/// assert_eq!(y, (12.0, 3.0));
/// assert_eq!(pullback.call(&(1.0, 0.0)).unwrap(), [2.0, 6.0]);
/// assert_eq!(pullback.call(&(0.0, 1.0)).unwrap(), [0.5, -1.5]);
/// ```
pub fn vjp<'x, S, X, Y, F>(f: F, x: &'x X) -> (Y, Pullback<'x, S, X, Y>)
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    Y: Differentiable<S, With<S> = Y>,
    F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Y::With<Var<'t, S>>,
    for<'t> Y::With<Var<'t, S>>: Differentiable<Var<'t, S>, With<S> = Y>,
{
    expect(Settings::new().vjp(f, x))
}

/// The reverse half of a function at a point. It can be called any number of times. Made by [`vjp`].
pub struct Pullback<'x, S: Scalar, X: ?Sized, Y> {
    tape: Tape<S>,
    x: &'x X,
    /// The shape that cotangents must have.
    value: Y,
    /// Where its numbers are, in its own order, with the derivatives with respect to what is there.
    outputs: Vec<(usize, S)>,
}

impl<S, X, Y> Pullback<'_, S, X, Y>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    Y: Differentiable<S, With<S> = Y>,
{
    /// The cotangent of the argument for a cotangent of the result. Numbers belong together by their places in the data, those of maps by
    /// their keys; what is no number is not looked at.
    ///
    /// Errors: a cotangent of another shape (another length, key or variant, anywhere in it), the limit of
    /// [`tape_limit`](Settings::tape_limit) in a checkpoint that is run again, no memory. Cost: about that of the function.
    pub fn call(&self, cotangent: &Y) -> Result<X::With<S>, Error> {
        let mut seeds = Vec::with_capacity(self.outputs.len());
        self.value.zip(cotangent, &mut |_, d: &S| seeds.push(*d))?;
        caught(|| {
            let adjoint = swept(&self.tape, self.outputs.iter().copied().zip(seeds));
            rebuild(self.x, &adjoint, 0)
        })
    }
    /// What was recorded.
    pub fn report(&self) -> Report {
        Report {
            rows: self.tape.row_count(),
            tape_bytes: self.tape.bytes(),
            cotangent_bytes: self.tape.len() * size_of::<S>(),
        }
    }
}

/// The values of a function with a list of results, and the gradient of each: the rows of its Jacobian.
///
/// The function runs once; four rows share a walk over its tape. Where there are fewer variables than results,
/// [`jacobian_forward`](crate::jacobian_forward) is cheaper.
///
/// ```
/// use pullback_dual::jacobian;
///
/// let (y, rows) = jacobian(|&[a, b]| vec![a * b, a + b, b], &[2.0, 5.0]);
/// assert_eq!(y, [10.0, 7.0, 5.0]);
/// assert_eq!(rows, [[5.0, 2.0], [1.0, 1.0], [0.0, 1.0]]);
/// ```
pub fn jacobian<S, X, F>(f: F, x: &X) -> (Vec<S>, Vec<X::With<S>>)
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Vec<Var<'t, S>>,
{
    let result = caught(|| {
        let tape = Tape::new(Limit::own(usize::MAX));
        let outputs: Vec<((usize, S), S)> =
            call(inputs(x, &tape), f, |y| y.iter().map(|y| (y.place(), y.primal())).collect());
        let mut rows = Vec::with_capacity(outputs.len());
        for block in outputs.chunks(LANES) {
            if let [(place, _)] = block {
                rows.push(rebuild(x, &swept(&tape, [(*place, S::one())]), 0));
                continue;
            }
            let mut adjoint = adjoints::<S, LANES>(&tape);
            for (lane, ((index, factor), _)) in block.iter().enumerate() {
                adjoint[*index][lane] = *factor;
            }
            sweep(&tape, &mut adjoint);
            rows.extend((0..block.len()).map(|lane| rebuild(x, &adjoint, lane)));
        }
        (outputs.into_iter().map(|(_, y)| y).collect(), rows)
    });
    expect(result)
}

/// Rows of a Jacobian that share a walk.
const LANES: usize = 4;

/// Inputs on a tape.
#[inline]
pub(crate) fn inputs<'t, S, X>(x: &X, tape: &Tape<S>) -> X::With<Var<'t, S>>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
{
    x.verify();
    x.map(&mut |x| Var::on(tape, *x, tape.input()))
}

/// A gradient of the shape of `x` from the adjoints of its numbers, which have the indices from 1.
#[inline]
pub(crate) fn rebuild<S, X, const K: usize>(x: &X, adjoint: &[[S; K]], lane: usize) -> X::With<S>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
{
    let mut index = 0;
    x.map(&mut |_| {
        index += 1;
        adjoint[index][lane]
    })
}

/// A cotangent of zero for every index.
#[inline]
fn adjoints<S: Scalar, const K: usize>(tape: &Tape<S>) -> Buffer<[S; K]> {
    match Buffer::new(tape.len(), || [S::zero(); K]) {
        Some(buffer) => buffer,
        None => stop(Error::OutOfMemory { rows: tape.row_count() }),
    }
}

/// The reverse pass: every row hands its cotangent to its parents, from the last to the first.
#[inline]
fn sweep<S: Scalar, const K: usize>(tape: &Tape<S>, adjoint: &mut [[S; K]]) {
    let mut walk = tape.walk();
    // A run of rows may lie in two blocks.
    let mut carried = [S::zero(); K];
    for (position, call) in tape.events().iter().rev() {
        while let Some((first, rows)) = walk.piece(*position) {
            sweep_rows(first, rows, adjoint, &mut carried);
        }
        (0..K).for_each(|lane| {
            let mut added = Vec::new();
            call.run(&tape.rest(), |i| adjoint[i][lane], |i, d| added.push((i, d)));
            added.into_iter().for_each(|(i, d)| adjoint[i][lane] += d);
        });
    }
    while let Some((first, rows)) = walk.piece(0) {
        sweep_rows(first, rows, adjoint, &mut carried);
    }
}

#[inline]
fn sweep_rows<S: Scalar, const K: usize>(
    first: usize,
    rows: &[Row<S>],
    adjoint: &mut [[S; K]],
    carried: &mut [S; K],
) {
    let mut d = *carried;
    for (offset, row) in rows.iter().enumerate().rev() {
        let [a, b] = row.parents;
        if a & PART == 0 {
            d = adjoint[first + offset];
        }
        if d.iter().all(S::is_inert) {
            continue;
        }
        for (lane, d) in d.iter().enumerate() {
            // What an output does not depend on is left alone: its partial derivatives may be infinite.
            adjoint[(a & !PART) as usize][lane] += d.strong_mul(row.partials[0]);
            adjoint[b as usize][lane] += d.strong_mul(row.partials[1]);
        }
    }
    *carried = d;
}

/// The adjoints of all indices for these cotangents of outputs.
#[inline]
fn swept<S: Scalar>(tape: &Tape<S>, outputs: impl IntoIterator<Item = ((usize, S), S)>) -> Buffer<[S; 1]> {
    let mut adjoint = adjoints::<S, 1>(tape);
    for ((index, factor), d) in outputs {
        adjoint[index][0] += d.chain_mul(factor);
    }
    sweep(tape, &mut adjoint);
    adjoint
}

/// The adjoints of all numbers of which there are inputs, in order, for a cotangent of one.
pub(crate) fn backward<S: Scalar>(tape: &Tape<S>, place: (usize, S)) -> Vec<S> {
    let adjoint = swept(tape, [(place, S::one())]);
    (1..=tape.input_count()).map(|i| adjoint[i][0]).collect()
}

/// The cotangents of the inputs of a checkpoint, which is run again on a tape within the limit.
pub(crate) fn rerun<S: Scalar, F: Function>(f: &F, limit: &Limit, x: &[S], y_bar: &[S]) -> Vec<S> {
    let tape = Tape::new(limit.clone());
    let y: Vec<Var<'_, S>> = f.call(&inputs(x, &tape));
    assert!(
        y.len() == y_bar.len(),
        "a checkpoint gave {} outputs, then {}: it must be a function",
        y_bar.len(),
        y.len()
    );
    let adjoint = swept(&tape, y.iter().map(Var::place).zip(y_bar.iter().copied()));
    rebuild(x, &adjoint, 0)
}
