//! Code for several sizes.
//!
//! Code is right for arguments of all sizes, but its loops are chosen for those of the call that it was made for: lanes along a
//! long dimension, or along none. A call that is far larger in some dimension than what any version was made for takes the
//! nearest version the first time; the second time, a version is made for its sizes.
//!
//! Guarantees: at most [`MOST`] versions, none of which goes away; which one a call takes follows from the sizes of the calls
//! before it, not from time; may be used from many threads.

use pullback_base::Diagnostic;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most versions.
pub const MOST: usize = 4;

/// A size is far from a smaller one if it is so many times as large, as a power of two.
const FAR: u32 = 3;

/// What is known about the words of arguments: those that are sizes.
pub(crate) type Sizes = Vec<Option<i64>>;

type Made<T> = Result<T, Box<Diagnostic>>;

/// Versions of a function.
#[derive(Debug)]
pub struct Versions<T> {
    /// In the order in which they were made.
    made: [OnceLock<Version<T>>; MOST],
    /// The sizes of the last call that no version was near to.
    far: Mutex<Option<Sizes>>,
}

#[derive(Debug)]
struct Version<T> {
    sizes: Sizes,
    made: Made<T>,
}

impl<T> Default for Versions<T> {
    fn default() -> Self {
        Versions { made: Default::default(), far: Mutex::default() }
    }
}

impl<T> Versions<T> {
    /// The version that was made first.
    pub fn first(&self) -> Option<&Made<T>> {
        self.made.first().and_then(OnceLock::get).map(|v| &v.made)
    }
    /// The version for a call.
    pub fn for_call(&self, sizes: &Sizes, make: impl FnOnce() -> Made<T>) -> &Made<T> {
        match self.nearest(sizes) {
            None => self.add(sizes, make),
            Some((v, distance)) if distance < FAR || v.made.is_err() => &v.made,
            Some((v, _)) => {
                let mut far = self.far.lock().unwrap_or_else(PoisonError::into_inner);
                if far.as_ref().is_some_and(|far| distance(far, sizes) < FAR) {
                    drop(far);
                    return self.add(sizes, make);
                }
                *far = Some(sizes.clone());
                &v.made
            }
        }
    }
    /// The version for many calls: one of its own, if none is near.
    pub fn for_calls(&self, sizes: &Sizes, make: impl FnOnce() -> Made<T>) -> &Made<T> {
        match self.nearest(sizes) {
            Some((v, distance)) if distance < FAR || v.made.is_err() => &v.made,
            _ => self.add(sizes, make),
        }
    }
    /// The version of the nearest sizes, and how far they are.
    fn nearest(&self, sizes: &Sizes) -> Option<(&Version<T>, u32)> {
        let all = self.made.iter().filter_map(OnceLock::get);
        all.map(|v| (v, distance(&v.sizes, sizes))).min_by_key(|(_, distance)| *distance)
    }
    /// One version more, if there is room, or else the nearest one.
    fn add(&self, sizes: &Sizes, make: impl FnOnce() -> Made<T>) -> &Made<T> {
        let free = self.made.iter().find(|slot| slot.get().is_none());
        // Another thread may be quicker, with sizes of its own.
        let make = || Version { sizes: sizes.clone(), made: make() };
        match free {
            Some(slot) => &slot.get_or_init(make).made,
            None => {
                let (v, _) = self.nearest(sizes).expect("there is no room, so there is a version");
                &v.made
            }
        }
    }
}

/// How much larger the second sizes are than those of the first: the largest quotient at one place, as a power of two. Sizes below
/// 1 count as 1; what is not known is near.
pub fn distance(from: &Sizes, to: &Sizes) -> u32 {
    let power = |n: i64| u64::try_from(n.max(1)).map_or(0, u64::ilog2);
    let known = from.iter().zip(to).filter_map(|(a, b)| Some(power((*b)?).saturating_sub(power((*a)?))));
    known.max().unwrap_or(0)
}
