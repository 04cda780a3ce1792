//! Values with numbers inside: what functions take and give, and what gradients look like.

use crate::{Error, Scalar};
use std::collections::{BTreeMap, VecDeque};

/// A value that holds numbers of type `S`: a number, a structure of such values, or something without numbers.
///
/// A gradient has the shape of the value: the same lengths, keys and variants, with a cotangent in place of each number; what is no
/// number is copied. Where two values of one shape meet (a direction, a cotangent of a result), numbers belong together by their places, and
/// those of maps by their keys, in whatever order they come. `#[derive(Differentiable)]` implements the trait for structs and enums that are generic over their numbers:
///
/// ```
/// use pullback_dual::{Differentiable, Scalar, grad};
///
/// #[derive(Clone, Debug, PartialEq, Differentiable)]
/// enum Shape<S> {
///     Circle { radius: S },
///     Polygon(Vec<(S, S)>),
///     Named(String, Option<Box<Shape<S>>>),
/// }
///
/// fn area<S: Scalar>(shape: &Shape<S>) -> S {
///     match shape {
///         Shape::Circle { radius } => S::from_f64(3.0) * *radius * *radius,
///         Shape::Polygon(_) | Shape::Named(_, None) => S::zero(),
///         Shape::Named(_, Some(shape)) => area(shape),
///     }
/// }
///
/// let sun = Shape::Named("sun".into(), Some(Box::new(Shape::Circle { radius: 2.0 })));
/// let gradient = grad(|shape| area(&shape), &sun);
/// assert_eq!(gradient, Shape::Named("sun".into(), Some(Box::new(Shape::Circle { radius: 12.0 }))));
/// ```
///
/// An implementation by hand puts numbers in places and does nothing else. Whatever it computes in `map` would be taken for a part of the
/// data, so functions that differentiate try it first, and panic with its name if it computes, or if `map` and `zip` disagree:
///
/// ```should_panic
/// use pullback_dual::{Differentiable, Error, Scalar, grad};
///
/// struct Positive<S>(S);
/// impl<S: Scalar> Differentiable<S> for Positive<S> {
///     type With<T: Scalar> = Positive<T>;
///     fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Positive<T> {
///         Positive(f(&self.0).exp()) // belongs into the function that is differentiated
///     }
///     fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Positive<T>, f: &mut F) -> Result<(), Error> {
///         f(&self.0, &other.0);
///         Ok(())
///     }
/// }
/// grad(|xs| xs[0].0 * xs[1].0, &vec![Positive(0.0), Positive(1.0)]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to hold numbers of type `{S}`",
    label = "not differentiable",
    note = "numbers, arrays, tuples, `Vec`, `Option`, maps and discrete types are; your own types by `#[derive(Differentiable)]`, generic over \
            their numbers (`struct P<S> {{ x: S }}`)",
    note = "a `Box` is inside of types with `#[derive(Differentiable)]` only",
    note = "a field that is data, not a variable, is left out by `#[differentiable(constant)]`"
)]
pub trait Differentiable<S> {
    /// The same value with numbers of another type.
    type With<T: Scalar>;
    /// Replaces the numbers, each by what `f` gives for it, in an order that depends on the value only.
    fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T>;
    /// Visits the numbers, in the order of `map`, together with those of a value of the same shape. An error if the shapes differ; what was
    /// visited before stays visited.
    fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error>;
    /// Panics if `map` does more than to put numbers in their places, or if `zip` visits others: only implementations by hand can. Those
    /// of the library and of the macro ask what they hold.
    #[doc(hidden)]
    fn verify(&self)
    where
        S: Scalar,
    {
        crate::probe::verify(self);
    }
}

impl<S: Scalar> Differentiable<S> for S {
    type With<T: Scalar> = T;
    #[inline(always)]
    fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> T {
        f(self)
    }
    #[inline(always)]
    fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &T, f: &mut F) -> Result<(), Error> {
        f(self, other);
        Ok(())
    }
    #[inline(always)]
    fn verify(&self) {}
}

/// An error about shapes. For implementations of [`Differentiable`] by hand.
pub fn mismatch(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::Mismatch { what: format!("expected {expected}, found {found}") }
}

fn zip_all<'a, S, T, A, F>(
    xs: impl ExactSizeIterator<Item = &'a A>,
    ys: impl ExactSizeIterator<Item = &'a A::With<T>>,
    f: &mut F,
) -> Result<(), Error>
where
    T: Scalar,
    A: Differentiable<S> + 'a,
    A::With<T>: 'a,
    F: FnMut(&S, &T),
{
    if xs.len() != ys.len() {
        return Err(mismatch(format_args!("{} elements", xs.len()), ys.len()));
    }
    for (x, y) in xs.zip(ys) {
        x.zip(y, f)?;
    }
    Ok(())
}

fn zip_entries<'a, S, T, K, A, F>(
    entries: impl ExactSizeIterator<Item = (&'a K, &'a A)>,
    others: usize,
    other: impl Fn(&K) -> Option<&'a A::With<T>>,
    f: &mut F,
) -> Result<(), Error>
where
    T: Scalar,
    K: 'a,
    A: Differentiable<S> + 'a,
    A::With<T>: 'a,
    F: FnMut(&S, &T),
{
    if entries.len() != others {
        return Err(mismatch(format_args!("a map of {}", entries.len()), others));
    }
    for (k, x) in entries {
        x.zip(other(k).ok_or_else(|| mismatch("the keys of the value", "other keys"))?, f)?;
    }
    Ok(())
}

macro_rules! sequence {
    ($([$($generics:tt)*] $type:ty => $with:ty;)*) => { $(
        impl<S, A: Differentiable<S>, $($generics)*> Differentiable<S> for $type {
            type With<T: Scalar> = $with;
            fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
                self.iter().map(|x| x.map(f)).collect()
            }
            fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
                zip_all(self.iter(), other.iter(), f)
            }
            #[inline]
            fn verify(&self)
            where
                S: Scalar,
            {
                self.iter().for_each(A::verify);
            }
        }
    )* };
}

sequence! {
    [] Vec<A> => Vec<A::With<T>>;
    [] [A] => Vec<A::With<T>>;
    [] VecDeque<A> => VecDeque<A::With<T>>;
}

impl<S, A: Differentiable<S>, const N: usize> Differentiable<S> for [A; N] {
    type With<T: Scalar> = [A::With<T>; N];
    #[inline]
    fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
        std::array::from_fn(|i| self[i].map(f))
    }
    #[inline]
    fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
        zip_all(self.iter(), other.iter(), f)
    }
    #[inline]
    fn verify(&self)
    where
        S: Scalar,
    {
        self.iter().for_each(A::verify);
    }
}

impl<S, A: Differentiable<S>> Differentiable<S> for Option<A> {
    type With<T: Scalar> = Option<A::With<T>>;
    fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
        self.as_ref().map(|x| x.map(f))
    }
    fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
        match (self, other) {
            (None, None) => Ok(()),
            (Some(x), Some(y)) => x.zip(y, f),
            (None, Some(_)) => Err(mismatch("None", "Some")),
            (Some(_), None) => Err(mismatch("Some", "None")),
        }
    }
    #[inline]
    fn verify(&self)
    where
        S: Scalar,
    {
        self.iter().for_each(A::verify);
    }
}

macro_rules! pointer {
    ($($pointer:ident)*) => { $(
        impl<S, A: Differentiable<S>> Differentiable<S> for $pointer<A> {
            type With<T: Scalar> = $pointer<A::With<T>>;
            #[inline]
            fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
                $pointer::new((**self).map(f))
            }
            #[inline]
            fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
                (**self).zip(other, f)
            }
            #[inline]
            fn verify(&self)
            where
                S: Scalar,
            {
                (**self).verify();
            }
        }
    )* };
}

use std::rc::Rc;
use std::sync::Arc;
// What is shared before is a value for each owner afterwards.
pointer!(Rc Arc);

macro_rules! tuple {
    ($($name:ident $place:tt)+) => {
        impl<S, $($name: Differentiable<S>),+> Differentiable<S> for ($($name,)+) {
            type With<T: Scalar> = ($($name::With<T>,)+);
            #[inline]
            fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
                ($(self.$place.map(f),)+)
            }
            #[inline]
            fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
                $(self.$place.zip(&other.$place, f)?;)+
                Ok(())
            }
            #[inline]
            fn verify(&self)
            where
                S: Scalar,
            {
                $(self.$place.verify();)+
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0 B 1);
tuple!(A 0 B 1 C 2);
tuple!(A 0 B 1 C 2 D 3);
tuple!(A 0 B 1 C 2 D 3 E 4);
tuple!(A 0 B 1 C 2 D 3 E 4 G 5);
tuple!(A 0 B 1 C 2 D 3 E 4 G 5 H 6);
tuple!(A 0 B 1 C 2 D 3 E 4 G 5 H 6 I 7);

impl<S, K: Clone + Ord, A: Differentiable<S>> Differentiable<S> for BTreeMap<K, A> {
    type With<T: Scalar> = BTreeMap<K, A::With<T>>;
    fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
        self.iter().map(|(k, x)| (k.clone(), x.map(f))).collect()
    }
    fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
        zip_entries(self.iter(), other.len(), |k| other.get(k), f)
    }
    fn verify(&self)
    where
        S: Scalar,
    {
        self.values().for_each(A::verify);
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "a user's map keeps its type; no result depends on the order of its keys"
)]
mod hash {
    use super::{Differentiable, zip_entries};
    use crate::{Error, Scalar};
    use std::collections::HashMap;
    use std::hash::{BuildHasher, Hash};

    impl<S, K, A, H> Differentiable<S> for HashMap<K, A, H>
    where
        K: Clone + Eq + Hash,
        A: Differentiable<S>,
        H: BuildHasher + Clone,
    {
        type With<T: Scalar> = HashMap<K, A::With<T>, H>;
        fn map<T: Scalar, F: FnMut(&S) -> T>(&self, f: &mut F) -> Self::With<T> {
            let mut out = HashMap::with_capacity_and_hasher(self.len(), self.hasher().clone());
            out.extend(self.iter().map(|(k, x)| (k.clone(), x.map(f))));
            out
        }
        fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, other: &Self::With<T>, f: &mut F) -> Result<(), Error> {
            zip_entries(self.iter(), other.len(), |k| other.get(k), f)
        }
        fn verify(&self)
        where
            S: Scalar,
        {
            self.values().for_each(A::verify);
        }
    }
}

macro_rules! discrete {
    ($($type:ty)*) => { $(
        /// Holds no numbers of which there are derivatives: copied.
        impl<S> Differentiable<S> for $type {
            type With<T: Scalar> = $type;
            #[inline(always)]
            fn map<T: Scalar, F: FnMut(&S) -> T>(&self, _f: &mut F) -> $type {
                self.clone()
            }
            #[inline(always)]
            fn zip<T: Scalar, F: FnMut(&S, &T)>(&self, _other: &$type, _f: &mut F) -> Result<(), Error> {
                Ok(())
            }
            #[inline(always)]
            fn verify(&self) {}
        }
    )* };
}

discrete!(() bool char String u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
