//! Typed indices and vectors keyed by them.

use std::marker::PhantomData;

/// A type that stands for a position in an [`IndexVec`].
pub trait Index: Copy + Eq + Ord + std::hash::Hash + std::fmt::Debug {
    /// The id at position `index`.
    fn new(index: usize) -> Self;
    /// The position of this id.
    fn index(self) -> usize;
}

/// Declares a `Copy` id type of four bytes with a niche, so that `Option<Id>` is four bytes too.
#[macro_export]
macro_rules! index_type {
    ($(#[$meta:meta])* $vis:vis struct $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name(std::num::NonZeroU32);

        impl $crate::index::Index for $name {
            fn new(index: usize) -> Self {
                let raw = u32::try_from(index + 1).ok().and_then(std::num::NonZeroU32::new);
                Self(raw.expect("fewer than 2^32 - 1 ids of one kind"))
            }
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}#{}", stringify!($name), self.0.get() - 1)
            }
        }
    };
}

/// A vector indexed by ids of type `I`.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    marker: PhantomData<I>,
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self { items: Vec::new(), marker: PhantomData }
    }
}

impl<I: Index, T> IndexVec<I, T> {
    /// The empty vector.
    pub fn new() -> Self {
        Self::default()
    }
    /// Appends an item and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::new(self.items.len());
        self.items.push(item);
        id
    }
    /// Keeps the first `count` items: ids that were given out since are given out again.
    pub fn truncate(&mut self, count: usize) {
        self.items.truncate(count);
    }
    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The item at `id`, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }
    /// All items, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
    /// All items, in order, mutable.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
    /// Pairs of id and item, in order.
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (I::new(i), t))
    }
}

impl<I: Index, T> std::ops::Index<I> for IndexVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}
impl<I: Index, T> std::ops::IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// A partial map keyed by ids, iterated in id order.
pub type IdMap<I, T> = std::collections::BTreeMap<I, T>;
/// A set of ids, iterated in id order.
pub type IdSet<I> = std::collections::BTreeSet<I>;
