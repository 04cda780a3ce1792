//! Maps for keys that are looked up at every step of a pass.
#![allow(clippy::disallowed_types, reason = "this is where a hashed map is made one that cannot be iterated")]

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A partial map whose keys are hashed, in the same way in every process. It cannot be iterated, so that the order of hashes
/// gets into no result. Access takes constant time unless somebody makes keys on purpose whose hashes are equal.
#[derive(Clone, Debug)]
pub struct Table<K, T> {
    items: HashMap<K, T, BuildHasherDefault<Words>>,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Self { items: HashMap::default() }
    }
}

impl<K: Eq + Hash, T> Table<K, T> {
    /// The empty table.
    pub fn new() -> Self {
        Self::default()
    }
    /// The empty table, with room for so many keys.
    pub fn with_room(keys: usize) -> Self {
        Self { items: HashMap::with_capacity_and_hasher(keys, BuildHasherDefault::default()) }
    }
    /// What is known of `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        self.items.get(key)
    }
    /// The same, to be changed.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut T>
    where
        K: Borrow<Q>,
    {
        self.items.get_mut(key)
    }
    /// Whether something is known of `key`.
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.items.contains_key(key)
    }
    /// Puts a value at `key`; returns the old one.
    pub fn insert(&mut self, key: K, item: T) -> Option<T> {
        self.items.insert(key, item)
    }
    /// The value at `key`, which is made if there is none.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> T) -> &mut T {
        self.items.entry(key).or_insert_with(make)
    }
    /// Takes the value at `key` out.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.items.remove(key)
    }
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Words multiplied by an odd number and rotated, one after the other. Source: the hash of the Rust compiler's own tables.
#[derive(Clone, Debug, Default)]
struct Words(u64);

impl Hasher for Words {
    fn finish(&self) -> u64 {
        // The high bits depend on all of the input; tables take the low ones too.
        self.0.rotate_left(26)
    }
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
    fn write_u8(&mut self, x: u8) {
        self.write_u64(x.into());
    }
    fn write_u32(&mut self, x: u32) {
        self.write_u64(x.into());
    }
    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }
    fn write_isize(&mut self, x: isize) {
        self.write_u64(x.cast_unsigned() as u64);
    }
}
