//! Sets of numbers, each kept once: equal sets have equal names, and unions are remembered.

use std::collections::BTreeMap;

/// The name of a set.
pub(super) type Set = u32;
/// The set without elements.
pub(super) const EMPTY: Set = 0;

/// All sets that have been made.
pub(super) struct Sets {
    all: Vec<Box<[u32]>>,
    names: BTreeMap<Box<[u32]>, Set>,
    unions: BTreeMap<(Set, Set), Set>,
    /// Elements that were touched to make them.
    pub(super) work: u64,
}

impl Sets {
    pub(super) fn new() -> Sets {
        let nothing: Box<[u32]> = Box::default();
        let names = BTreeMap::from([(nothing.clone(), EMPTY)]);
        Sets { all: vec![nothing], names, unions: BTreeMap::new(), work: 0 }
    }
    /// The set of these elements.
    pub(super) fn of(&mut self, mut items: Vec<u32>) -> Set {
        items.sort_unstable();
        items.dedup();
        self.work += items.len() as u64;
        if let Some(name) = self.names.get(&items[..]) {
            return *name;
        }
        let name = self.all.len() as Set;
        let items: Box<[u32]> = items.into();
        self.all.push(items.clone());
        self.names.insert(items, name);
        name
    }
    pub(super) fn items(&self, set: Set) -> &[u32] {
        &self.all[set as usize]
    }
    pub(super) fn has(&self, set: Set, x: u32) -> bool {
        self.items(set).binary_search(&x).is_ok()
    }
    pub(super) fn with(&mut self, set: Set, x: u32) -> Set {
        let one = self.of(vec![x]);
        self.union(set, one)
    }
    pub(super) fn union(&mut self, a: Set, b: Set) -> Set {
        if a == b || b == EMPTY {
            return a;
        }
        if a == EMPTY {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(name) = self.unions.get(&key) {
            return *name;
        }
        let items = self.items(a).iter().chain(self.items(b)).copied().collect();
        let name = self.of(items);
        self.unions.insert(key, name);
        name
    }
    /// What `f` makes of the elements; the set itself where it changes none.
    pub(super) fn map(&mut self, set: Set, f: impl Fn(u32) -> u32) -> Set {
        self.work += self.items(set).len() as u64;
        if self.items(set).iter().all(|x| f(*x) == *x) {
            return set;
        }
        let items = self.items(set).iter().map(|x| f(*x)).collect();
        self.of(items)
    }
}
