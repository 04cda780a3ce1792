//! Sets of numbers, each kept once: equal sets have equal names, and unions are remembered.

use pullback_base::table::Table;

/// The name of a set.
pub(super) type Set = u32;
/// The set without elements.
pub(super) const EMPTY: Set = 0;

/// All sets that have been made.
pub(super) struct Sets {
    all: Vec<Box<[u32]>>,
    names: Table<Box<[u32]>, Set>,
    /// For each element the set of it alone, once that was made.
    ones: Vec<Set>,
    unions: Table<(Set, Set), Set>,
    /// Elements that were touched to make them.
    pub(super) work: u64,
}

impl Sets {
    pub(super) fn new() -> Sets {
        let nothing: Box<[u32]> = Box::default();
        let mut names = Table::new();
        names.insert(nothing.clone(), EMPTY);
        Sets { all: vec![nothing], names, ones: Vec::new(), unions: Table::new(), work: 0 }
    }
    /// The set of these elements.
    pub(super) fn of(&mut self, mut items: Vec<u32>) -> Set {
        items.sort_unstable();
        items.dedup();
        self.in_order(items)
    }
    /// The set of elements that are in order, each once.
    fn in_order(&mut self, items: Vec<u32>) -> Set {
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
    /// The set of one element.
    pub(super) fn one(&mut self, x: u32) -> Set {
        let at = x as usize;
        if self.ones.len() <= at {
            self.ones.resize(at + 1, EMPTY);
        }
        if self.ones[at] == EMPTY {
            self.ones[at] = self.in_order(vec![x]);
        }
        self.ones[at]
    }
    pub(super) fn items(&self, set: Set) -> &[u32] {
        &self.all[set as usize]
    }
    pub(super) fn has(&self, set: Set, x: u32) -> bool {
        self.items(set).binary_search(&x).is_ok()
    }
    pub(super) fn with(&mut self, set: Set, x: u32) -> Set {
        let one = self.one(x);
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
        let items = merged(self.items(a), self.items(b));
        let name = self.in_order(items);
        self.unions.insert(key, name);
        name
    }
    /// The union of many: each that occurs is walked once, and no union of some of them gets a name.
    pub(super) fn union_of(&mut self, mut sets: Vec<Set>) -> Set {
        sets.sort_unstable();
        sets.dedup();
        if sets.len() <= 2 {
            return sets.into_iter().fold(EMPTY, |all, set| self.union(all, set));
        }
        let items: Vec<u32> = sets.iter().flat_map(|set| self.items(*set)).copied().collect();
        self.work += items.len() as u64;
        self.of(items)
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

/// The elements of either, in order.
fn merged(mut a: &[u32], mut b: &[u32]) -> Vec<u32> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    while let ([x, rest @ ..], [y, others @ ..]) = (a, b) {
        out.push(*x.min(y));
        (a, b) = (if x <= y { rest } else { a }, if y <= x { others } else { b });
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    out
}
