//! Implementations of `Differentiable` by hand: what does more than put numbers in their places is told, wherever it stands.

use crate::common::panics;
use pullback_dual::{
    Differentiable, Dual, Error, Scalar, Second, Var, gradient_forward, hessian, hvp, jacobian,
    jacobian_forward, jvp, value_and_grad, vjp,
};
use std::collections::BTreeMap;

/// What an implementation does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(usize)]
enum Fault {
    None,
    /// It returns a function of what its function gives.
    Scales,
    Negates,
    AddsZero,
    AddsInPlace,
    Squares,
    /// It makes a row of two numbers.
    Multiplies,
    Sums,
    TakesRoot,
    Stops,
    Compares,
    LooksAtValue,
    /// It hands a number to its function that it computed before.
    HandsProduct,
    /// It calls its function twice for one number.
    CallsTwice,
    /// It leaves out a number in one of the two.
    MapsOne,
    ZipsOne,
    /// Its two walks have another order.
    ZipsBackwards,
    /// It puts the numbers in other places.
    Swaps,
    /// Its `zip` refuses what its `map` gives.
    ZipRefuses,
}

const FAULTS: [Fault; 18] = {
    use Fault::*;
    [
        Scales,
        Negates,
        AddsZero,
        AddsInPlace,
        Squares,
        Multiplies,
        Sums,
        TakesRoot,
        Stops,
        Compares,
        LooksAtValue,
        HandsProduct,
        CallsTwice,
        MapsOne,
        ZipsOne,
        ZipsBackwards,
        Swaps,
        ZipRefuses,
    ]
};

/// Two numbers, with an implementation by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair<S> {
    a: S,
    b: S,
    fault: Fault,
}

impl<S: Scalar> Differentiable<S> for Pair<S> {
    type With<T: Scalar> = Pair<T>;
    fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Pair<T> {
        let Pair { a, b, fault } = self;
        let pair = |a, b| Pair { a, b, fault: *fault };
        let two = || T::from_f64(2.0);
        match fault {
            Fault::None | Fault::ZipsOne | Fault::ZipsBackwards | Fault::ZipRefuses => pair(f(a), f(b)),
            Fault::Scales => pair(f(a) * two(), f(b)),
            Fault::Negates => pair(f(a), -f(b)),
            Fault::AddsZero => pair(f(a), f(b) + T::zero()),
            Fault::AddsInPlace => {
                let mut a = f(a);
                a += T::one();
                pair(a, f(b))
            }
            Fault::Squares => {
                let a = f(a);
                pair(a * a, f(b))
            }
            Fault::Multiplies => {
                let (a, b) = (f(a), f(b));
                pair(a * b, b)
            }
            Fault::Sums => {
                let b = f(b);
                pair([f(a), b].into_iter().sum(), b)
            }
            Fault::TakesRoot => pair(f(a).sqrt(), f(b)),
            Fault::Stops => pair(f(a), f(b).stop_gradient()),
            Fault::Compares => {
                let (a, b) = (f(a), f(b));
                if a < b { pair(a, b) } else { pair(b, a) }
            }
            Fault::LooksAtValue => {
                let a = f(a);
                pair(T::constant(a.value()), f(b))
            }
            Fault::HandsProduct => pair(f(&(*a * *b)), f(b)),
            Fault::CallsTwice => {
                let _ = f(a);
                pair(f(a), f(b))
            }
            Fault::MapsOne => pair(f(a), T::zero()),
            Fault::Swaps => {
                let (a, b) = (f(a), f(b));
                pair(b, a)
            }
        }
    }
    fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Pair<T>, f: &mut F) -> Result<(), Error> {
        match self.fault {
            Fault::ZipsOne => f(&self.a, &other.a),
            Fault::ZipsBackwards => {
                f(&self.b, &other.b);
                f(&self.a, &other.a);
            }
            Fault::ZipRefuses => return Err(pullback_dual::mismatch("nothing", "something")),
            _ => {
                f(&self.a, &other.a);
                f(&self.b, &other.b);
            }
        }
        Ok(())
    }
}

/// Where a pair may stand.
#[derive(Clone, Debug, PartialEq, Differentiable)]
enum Place<S: Scalar> {
    Bare(Pair<S>),
    List(S, Vec<Pair<S>>),
    Boxed(Option<Box<Place<S>>>),
    Tuple((S, Pair<S>, [Pair<S>; 2])),
    Map(BTreeMap<u8, Option<Pair<S>>>),
}

fn places(pair: Pair<f64>) -> [Place<f64>; 5] {
    let good = Pair { fault: Fault::None, ..pair };
    let list = Place::List(0.5, vec![good, pair, good]);
    [
        Place::Bare(pair),
        list.clone(),
        Place::Boxed(Some(Box::new(list))),
        Place::Tuple((0.5, good, [good, pair])),
        Place::Map([(1, None), (2, Some(good)), (3, Some(pair))].into()),
    ]
}

/// A function whose gradient has another number in each place.
fn function<S: Scalar>(place: &Place<S>) -> S {
    let pair = |p: &Pair<S>| p.a * p.b * p.b;
    match place {
        Place::Bare(p) => pair(p),
        Place::List(s, all) => *s * all.iter().fold(S::one(), |product, p| product * pair(p)),
        Place::Boxed(inner) => inner.as_ref().map_or(S::zero(), |p| function(p)),
        Place::Tuple((s, p, [q, r])) => *s * pair(p) * pair(q) * pair(r),
        Place::Map(all) => all.values().flatten().map(pair).sum(),
    }
}

/// A way to differentiate.
type Way<'a> = (&'static str, Box<dyn Fn() + 'a>);

/// The ways to differentiate at a place.
fn ways(x: &Place<f64>) -> Vec<Way<'_>> {
    vec![
        ("value_and_grad", Box::new(|| _ = value_and_grad(|x| function(x), x))),
        ("vjp", Box::new(|| _ = vjp::<f64, _, f64, _>(|x| function(x), x))),
        ("jacobian", Box::new(|| _ = jacobian(|x| vec![function(x)], x))),
        ("jvp", Box::new(|| _ = jvp::<f64, _, f64, _>(|x| function(x), x, x))),
        (
            "gradient_forward",
            Box::new(|| {
                _ = gradient_forward::<2, _, _, _>(|x: &Place<Dual<'_, f64, 2>>| function(x), x);
            }),
        ),
        ("jacobian_forward", Box::new(|| _ = jacobian_forward(|x| vec![function(x)], x))),
        ("hvp", Box::new(|| _ = hvp(|x| function(x), x, x))),
        ("hessian", Box::new(|| _ = hessian(|x: &Place<Second<'_, f64, 4>>| function(x), x))),
        #[cfg(feature = "parallel")]
        ("parallel", Box::new(|| _ = pullback_dual::parallel::value_and_grad(|x| function(x), x))),
        (
            "result of vjp",
            Box::new(|| {
                _ = vjp::<f64, _, Place<f64>, _>(|&z: &Var<'_>| x.map(&mut |x| z * *x), &1.0);
            }),
        ),
        (
            "result of jvp",
            Box::new(|| {
                _ = jvp::<f64, _, Place<f64>, _>(|&z: &Dual<'_>| x.map(&mut |x| z * *x), &1.0, &1.0);
            }),
        ),
    ]
}

#[test]
fn every_fault_is_told_in_every_place_by_every_way() {
    let mut told = 0;
    for fault in FAULTS {
        for place in places(Pair { a: 2.0, b: 3.0, fault }) {
            for (way, run) in ways(&place) {
                // What maps the plain numbers of the place to make a result computes in the function, as any function may.
                let text = panics(|| {
                    run();
                    panic!("{fault:?} is not noticed by {way} at {place:?}")
                });
                assert!(
                    text.contains("`Differentiable` for") && text.contains("Pair<"),
                    "{fault:?}, {way}: {text}"
                );
                told += 1;
            }
        }
    }
    assert_eq!(told, FAULTS.len() * 5 * ways(&places(Pair { a: 2.0, b: 3.0, fault: Fault::None })[0]).len());
}

#[test]
fn what_does_as_it_should_has_the_gradient_of_what_is_derived() {
    for place in places(Pair { a: 2.0, b: 3.0, fault: Fault::None }) {
        for (_, run) in ways(&place) {
            run();
        }
    }
    let good = |a, b| Pair { a, b, fault: Fault::None };
    let x = Place::List(0.5, vec![good(2.0, 3.0), good(5.0, 7.0)]);
    let (value, gradient) = value_and_grad(|x| function(x), &x);
    // s a b^2 c d^2.
    assert_eq!(value, 0.5 * 18.0 * 245.0);
    let by_hand =
        vec![good(0.5 * 9.0 * 245.0, 0.5 * 12.0 * 245.0), good(0.5 * 18.0 * 49.0, 0.5 * 18.0 * 70.0)];
    assert_eq!(gradient, Place::List(18.0 * 245.0, by_hand));
}

/// The everyday form: a parameter that must be positive, kept as its logarithm, computed while it is mapped.
#[test]
fn a_parameter_that_is_made_positive_while_it_is_mapped() {
    struct Positive<S>(S);
    impl<S: Scalar> Differentiable<S> for Positive<S> {
        type With<T: Scalar> = Positive<T>;
        fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Positive<T> {
            Positive(f(&self.0).exp())
        }
        fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Positive<T>, f: &mut F) -> Result<(), Error> {
            f(&self.0, &other.0);
            Ok(())
        }
    }
    let xs = vec![Positive(0.0), Positive(1.0)];
    let text = panics(|| value_and_grad(|xs| xs[0].0 * xs[1].0, &xs));
    assert!(text.contains("exp") && text.contains("Positive<"), "{text}");
}

/// Constants may be put where no number of the value belongs: the rest of a symmetric matrix, for example.
#[test]
fn constants_are_no_computation() {
    struct Triangle<S>([[S; 2]; 2]);
    impl<S: Scalar> Differentiable<S> for Triangle<S> {
        type With<T: Scalar> = Triangle<T>;
        fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Triangle<T> {
            Triangle([[f(&self.0[0][0]), T::zero()], [f(&self.0[1][0]), f(&self.0[1][1])]])
        }
        fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Triangle<T>, f: &mut F) -> Result<(), Error> {
            for (i, j) in [(0, 0), (1, 0), (1, 1)] {
                f(&self.0[i][j], &other.0[i][j]);
            }
            Ok(())
        }
    }
    let l = Triangle([[2.0, 0.0], [3.0, 5.0]]);
    let (value, gradient) = value_and_grad(|l| l.0[0][0] * l.0[1][1] + l.0[1][0] * l.0[0][1], &l);
    assert_eq!((value, gradient.0), (10.0, [[5.0, 0.0], [0.0, 2.0]]));
}
