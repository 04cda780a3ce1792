//! Derivatives of code that runs on several threads, by fork and join.
//!
//! Source: `T` 3.10 of the thesis on dual-numbers reverse AD. A function that is generic over [`Parallel`] forks by
//! [`Parallel::join`], [`Parallel::map`] or [`Parallel::sum`] wherever its data allow it. The derivative has the same shape:
//! where the function forked its reverse pass joins, and where it joined the reverse pass forks. Threads are those of the library `rayon`;
//! who wants another number of them calls from inside a pool of his own (`rayon::ThreadPool::install`).
//!
//! ```
//! use pullback_dual::parallel::{Parallel, grad};
//!
//! fn product<S: Parallel>(xs: &[S]) -> S {
//!     if let [x] = xs {
//!         return *x;
//!     }
//!     let (left, right) = xs.split_at(xs.len() / 2);
//!     let (left, right) = S::join(|| product(left), || product(right));
//!     left * right
//! }
//! assert_eq!(grad(|xs| product(xs), &[1.0, 2.0, 3.0, 4.0]), [24.0, 12.0, 8.0, 6.0]);
//! ```
//!
//! Results are the same on any number of threads, to the last bit: contributions to a number from several branches are added in the
//! order of the branches. [`Settings::relaxed`] lets threads add as they come.
//!
//! What the design rests on:
//! - *Tasks*. Each branch of a fork is a task with a tape of its own, so recording needs no synchronisation. A number knows its
//!   task and its index there (a compound id). A task's own sections between forks are the *jobs* of the thesis; they are kept
//!   apart by the positions of the forks on its tape.
//! - *Imports*. A number of another task that is used gets an index in the task that uses it. Its cotangent is collected there, and
//!   handed over once: before the reverse pass goes into the task that it came from.
//! - *Edges*. Handing over needs no atomic operation if the target belongs to the same task or to a task inside of it, since these run
//!   on one thread at a time; only an edge that leaves the branch does.

mod sweep;
mod task;
mod var;

pub use var::Var;

use crate::brand::call;
use crate::cell::Cell as _;
use crate::error::{caught, expect};
use crate::{Differentiable, Dual, Error, Float, Scalar};
use task::{Session, detached, join};

/// A [`Scalar`] that threads can share, with which functions fork.
///
/// ```
/// use pullback_dual::parallel::Parallel;
///
/// // Plain numbers fork too.
/// assert_eq!(f64::join(|| 1.0 + 1.0, || 2.0 * 2.0), (2.0, 4.0));
/// ```
pub trait Parallel: Scalar + Send + Sync {
    /// Runs both, side by side if a thread is free. Forks may be nested to any depth, in the function and in its reverse pass: stacks grow.
    ///
    /// Cost: about a microsecond, and memory for each recorded branch until the gradient is there: 600 bytes if it does little, 1.5 to 2 KB for tens of
    /// operations.
    fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send;

    /// Applies `f` to all items, `grain` of them on one thread. Smaller grains spread better; each costs about a microsecond.
    ///
    /// ```
    /// use pullback_dual::parallel::Parallel;
    ///
    /// assert_eq!(f64::map(&[1.0, 2.0, 3.0], 1, |x| x * x), [1.0, 4.0, 9.0]);
    /// ```
    fn map<T, R, F>(items: &[T], grain: usize, f: F) -> Vec<R>
    where
        T: Sync,
        R: Send,
        F: Fn(&T) -> R + Sync,
    {
        halves::<Self, _, _>(items, grain, &|few| few.iter().map(&f).collect(), &|mut left: Vec<R>, right| {
            left.extend(right);
            left
        })
    }

    /// The sum of `f` over all items, `grain` of them on one thread, the rest by halves.
    ///
    /// ```
    /// use pullback_dual::parallel::{Parallel, grad};
    ///
    /// let g = grad(|&w| Parallel::sum(&[1.0, 2.0, 3.0], 1, |x| w * *x), &5.0);
    /// assert_eq!(g, 6.0);
    /// ```
    fn sum<T, F>(items: &[T], grain: usize, f: F) -> Self
    where
        T: Sync,
        F: Fn(&T) -> Self + Sync,
    {
        halves::<Self, _, _>(items, grain, &|few| few.iter().map(&f).sum(), &|left: Self, right| left + right)
    }
}

/// What `few` gives for up to `grain` items, put together by `both` where there are more: side by side for the two halves.
fn halves<S: Parallel, T: Sync, R: Send>(
    items: &[T],
    grain: usize,
    few: &(impl Fn(&[T]) -> R + Sync),
    both: &(impl Fn(R, R) -> R + Sync),
) -> R {
    if items.len() <= grain.max(1) {
        return few(items);
    }
    let (left, right) = items.split_at(items.len() / 2);
    let (left, right) =
        S::join(|| halves::<S, T, R>(left, grain, few, both), || halves::<S, T, R>(right, grain, few, both));
    both(left, right)
}

macro_rules! plain {
    ($float:ident) => {
        impl Parallel for $float {
            fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
            where
                A: FnOnce() -> RA + Send,
                B: FnOnce() -> RB + Send,
                RA: Send,
                RB: Send,
            {
                detached(|| join(a, b))
            }
        }
    };
}
plain!(f64);
plain!(f32);

/// Tangents go with their numbers.
impl<S: Parallel, const N: usize> Parallel for Dual<'_, S, N> {
    fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        S::join(a, b)
    }
}

/// The gradient of a function that may fork. See [`grad`](crate::grad).
pub fn grad<S, X, F>(f: F, x: &X) -> X::With<S>
where
    S: Float,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Var<'t, S>,
{
    value_and_grad(f, x).1
}

/// The value and the gradient of a function that may fork.
///
/// ```
/// use pullback_dual::parallel::{Parallel, Var, value_and_grad};
///
/// let (value, gradient) = value_and_grad(
///     |&[x, y]| {
///         let (a, b) = <Var>::join(|| x * y * x, || y + y + x);
///         a + b
///     },
///     &[2.0, 3.0],
/// );
/// assert_eq!((value, gradient), (20.0, [13.0, 6.0]));
/// ```
pub fn value_and_grad<S, X, F>(f: F, x: &X) -> (S, X::With<S>)
where
    S: Float,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Var<'t, S>,
{
    let outcome = expect(Settings::new().value_and_grad(f, x));
    (outcome.value, outcome.gradient)
}

/// How a parallel derivative is made.
///
/// ```
/// use pullback_dual::parallel::{Parallel, Settings};
///
/// let outcome = Settings::new().relaxed().value_and_grad(
///     |&w| Parallel::sum(&[1.0, 2.0, 3.0, 4.0], 1, |x| w * *x),
///     &5.0,
/// );
/// let outcome = outcome?;
/// assert_eq!((outcome.value, outcome.gradient), (50.0, 10.0));
/// assert_eq!(outcome.report.tasks, 1 + 3 * 2);
/// # Ok::<(), pullback_dual::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    limit: usize,
    relaxed: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
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

/// What a parallel run recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks: the function and every branch of every fork.
    pub tasks: usize,
    /// Rows on all tapes, imports among them.
    pub rows: usize,
    /// Numbers that tasks took from others.
    pub imports: usize,
    /// Bytes of all tapes, in whole blocks.
    pub tape_bytes: usize,
    /// Bytes of the cotangents.
    pub cotangent_bytes: usize,
}

impl Settings {
    /// No limit, results that do not depend on the threads.
    pub const fn new() -> Settings {
        Settings { limit: usize::MAX, relaxed: false }
    }
    /// Lets threads add to one number as they come: less memory where branches share many numbers, and gradients whose last bits depend
    /// on the schedule.
    pub const fn relaxed(self) -> Settings {
        Settings { relaxed: true, ..self }
    }
    /// The most bytes that all tapes of a run may take together, those of checkpoints that are run again too. See
    /// [`Settings::tape_limit`](crate::Settings::tape_limit).
    pub const fn tape_limit(self, bytes: usize) -> Settings {
        Settings { limit: bytes, ..self }
    }
    /// The value, the gradient, and what they cost. Errors: the limit, no memory. Panics of the function, on whatever thread, go on
    /// to the caller.
    pub fn value_and_grad<S, X, F>(self, f: F, x: &X) -> Result<Outcome<S, X::With<S>>, Error>
    where
        S: Float,
        X: Differentiable<S> + ?Sized,
        F: for<'t> FnOnce(&'t X::With<Var<'t, S>>) -> Var<'t, S>,
    {
        caught(|| {
            let session = Session::new(self.limit);
            let root = session.root();
            x.verify();
            let input = x.map(&mut |x| root.input(*x));
            let (place, value) = session.run(|| call(input, f, |y| (y.place(), y.primal())));
            sweep::reverse(&session, place, self.relaxed);
            let (cotangents, mut index) = (root.cotangents(), 0);
            let gradient = x.map(&mut |_| {
                index += 1;
                cotangents[index].get()
            });
            Outcome { value, gradient, report: session.report() }
        })
    }
}
