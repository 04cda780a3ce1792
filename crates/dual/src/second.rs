//! Second derivatives: forward mode over reverse mode.

use crate::brand::call;
use crate::error::{caught, expect};
use crate::reverse::backward;
use crate::tape::{Limit, Tape};
use crate::{Differentiable, Dual, Error, Scalar, Var};

/// A number of forward over reverse mode with `N` directions: what the closures of [`hessian`] and [`hvp`] compute with.
pub type Second<'t, S = f64, const N: usize = 1> = Var<'t, Dual<'t, S, N>>;

/// Directions that share a run in [`hessian`].
const DIRECTIONS: usize = 4;

/// The value, the gradient, and the product of the Hessian with a direction of the argument's shape.
///
/// Errors: a direction of another shape. Cost: a small multiple of the function's, whatever the number of variables.
///
/// ```
/// use pullback_dual::hvp;
///
/// let (value, gradient, product) = hvp(|[x, y]| x * x * y, &[3.0, 5.0], &[1.0, 0.0])?;
/// assert_eq!((value, gradient, product), (45.0, [30.0, 9.0], [10.0, 6.0]));
/// # Ok::<(), pullback_dual::Error>(())
/// ```
#[expect(clippy::type_complexity, reason = "three results, of which the first is used as often as the last")]
pub fn hvp<S, X, F>(f: F, x: &X, direction: &X::With<S>) -> Result<(S, X::With<S>, X::With<S>), Error>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnOnce(&'t X::With<Second<'t, S>>) -> Second<'t, S>,
{
    x.verify();
    // The directed numbers are listed: the closure's argument is made from `x` in one step.
    let mut numbers = Vec::new();
    let mut directions = Vec::new();
    x.zip::<S, _>(direction, &mut |x, d| {
        numbers.push(*x);
        directions.push(*d);
    })?;
    caught(|| {
        let tape = Tape::new(Limit::own(usize::MAX));
        let mut at = numbers.iter().zip(&directions);
        let input = x.map(&mut |x| {
            let d = at.next().map_or(S::zero(), |(_, d)| *d);
            Var::on(&tape, Dual::new(*x, [d]), tape.input())
        });
        let (place, value) = call(input, f, |y| (y.place(), y.primal().primal()));
        let gradient = backward(&tape, place);
        let part = |pick: fn(&Dual<'_, S>) -> S| {
            let mut at = gradient.iter();
            x.map(&mut |_| at.next().map_or(S::zero(), pick))
        };
        (value, part(|d| d.primal()), part(|d| d.tangent()[0]))
    })
}

/// The Hessian: for each number of the argument, in order, the derivative of the gradient along it. Four rows share a run of the function.
///
/// ```
/// use pullback_dual::hessian;
///
/// // x^2 + 3 x y
/// assert_eq!(hessian(|[x, y]| x * x + x * y * 3.0, &[2.0, 5.0]), [[2.0, 3.0], [3.0, 0.0]]);
/// ```
pub fn hessian<S, X, F>(mut f: F, x: &X) -> Vec<Vec<S>>
where
    S: Scalar,
    X: Differentiable<S> + ?Sized,
    F: for<'t> FnMut(&'t X::With<Second<'t, S, DIRECTIONS>>) -> Second<'t, S, DIRECTIONS>,
{
    let mut rows: Vec<Vec<S>> = Vec::new();
    loop {
        let from = rows.len();
        let result = caught(|| {
            let tape = Tape::new(Limit::own(usize::MAX));
            if from == 0 {
                x.verify();
            }
            let mut index = 0;
            let input = x.map(&mut |x| {
                let one = |lane| if from + lane == index { S::one() } else { S::zero() };
                let number = Dual::new(*x, std::array::from_fn(one));
                index += 1;
                Var::on(&tape, number, tape.input())
            });
            let last = call(input, &mut f, |y| y.place());
            let gradient = backward(&tape, last);
            let lanes = 0..DIRECTIONS.min(index - from);
            rows.extend(lanes.map(|lane| gradient.iter().map(|d| d.tangent()[lane]).collect()));
            index
        });
        if rows.len() == expect(result) {
            return rows;
        }
    }
}
