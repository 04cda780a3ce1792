//! Typed indices and vectors keyed by them.

use std::marker::PhantomData;
use std::sync::Arc;

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

impl<I: Index, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self { items: items.into_iter().collect(), marker: PhantomData }
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

/// A vector indexed by ids of type `I` whose clones share what they have in common: a clone costs what was appended since the
/// last one, or nothing.
#[derive(Clone, Debug)]
pub struct SharedVec<I, T> {
    shared: Arc<Vec<T>>,
    /// What comes after what is shared.
    own: Vec<T>,
    marker: PhantomData<I>,
}

impl<I, T> Default for SharedVec<I, T> {
    fn default() -> Self {
        Self { shared: Arc::default(), own: Vec::new(), marker: PhantomData }
    }
}

impl<I: Index, T: Clone> SharedVec<I, T> {
    /// The empty vector.
    pub fn new() -> Self {
        Self::default()
    }
    /// Appends an item and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::new(self.len());
        self.own.push(item);
        id
    }
    /// From now on clones share what is there now.
    pub fn share(&mut self) {
        let own = std::mem::take(&mut self.own);
        if !own.is_empty() {
            Arc::make_mut(&mut self.shared).extend(own);
        }
    }
    /// Keeps the first `count` items: ids that were given out since are given out again.
    pub fn truncate(&mut self, count: usize) {
        if count < self.shared.len() {
            Arc::make_mut(&mut self.shared).truncate(count);
        }
        self.own.truncate(count.saturating_sub(self.shared.len()));
    }
    /// Number of items.
    pub fn len(&self) -> usize {
        self.shared.len() + self.own.len()
    }
    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The item at `id`, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        let index = id.index();
        self.shared.get(index).or_else(|| self.own.get(index - self.shared.len()))
    }
    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.len()).map(I::new)
    }
    /// All items, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.shared.iter().chain(&self.own)
    }
    /// All items, in order, mutable.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        Arc::make_mut(&mut self.shared).iter_mut().chain(&mut self.own)
    }
    /// Pairs of id and item, in order.
    pub fn iter_enumerated(&self) -> impl Iterator<Item = (I, &T)> {
        self.iter().enumerate().map(|(i, t)| (I::new(i), t))
    }
}

impl<I: Index, T: Clone + PartialEq> PartialEq for SharedVec<I, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl<I: Index, T: Clone> std::ops::Index<I> for SharedVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        let index = id.index();
        self.shared.get(index).unwrap_or_else(|| &self.own[index - self.shared.len()])
    }
}
impl<I: Index, T: Clone> std::ops::IndexMut<I> for SharedVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        match id.index().checked_sub(self.shared.len()) {
            Some(index) => &mut self.own[index],
            None => &mut Arc::make_mut(&mut self.shared)[id.index()],
        }
    }
}

/// A partial map keyed by ids for what is asked at every step of a walk over a whole function: access takes constant time, and
/// there is a place for each id up to the highest one in it. It cannot be iterated.
#[derive(Clone, Debug, PartialEq)]
pub struct IdTable<I, T> {
    items: Vec<Option<T>>,
    marker: PhantomData<I>,
}

impl<I, T> Default for IdTable<I, T> {
    fn default() -> Self {
        Self { items: Vec::new(), marker: PhantomData }
    }
}

impl<I: Index, T> IdTable<I, T> {
    /// The empty table.
    pub fn new() -> Self {
        Self::default()
    }
    /// The empty table, with places for so many ids.
    pub fn with_room(ids: usize) -> Self {
        let mut items = Vec::new();
        items.resize_with(ids, || None);
        Self { items, marker: PhantomData }
    }
    /// What is known of `id`.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())?.as_ref()
    }
    /// The same, to be changed.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())?.as_mut()
    }
    /// Whether something is known of `id`.
    pub fn contains(&self, id: I) -> bool {
        self.get(id).is_some()
    }
    /// The place of `id`.
    pub fn place(&mut self, id: I) -> &mut Option<T> {
        if self.items.len() <= id.index() {
            self.items.resize_with(id.index() + 1, || None);
        }
        &mut self.items[id.index()]
    }
    /// Puts a value at `id`; returns the old one.
    pub fn insert(&mut self, id: I, item: T) -> Option<T> {
        self.place(id).replace(item)
    }
    /// Takes the value at `id` out.
    pub fn remove(&mut self, id: I) -> Option<T> {
        self.items.get_mut(id.index())?.take()
    }
    /// Removes all values.
    pub fn clear(&mut self) {
        self.items.clear();
    }
}

impl<I: Index, T> Extend<(I, T)> for IdTable<I, T> {
    fn extend<A: IntoIterator<Item = (I, T)>>(&mut self, items: A) {
        for (id, item) in items {
            self.insert(id, item);
        }
    }
}

/// A partial map keyed by ids, iterated in id order.
pub type IdMap<I, T> = std::collections::BTreeMap<I, T>;
/// A set of ids, iterated in id order.
pub type IdSet<I> = std::collections::BTreeSet<I>;
