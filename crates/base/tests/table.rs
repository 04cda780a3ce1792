//! Hashed tables.

use pullback_base::Table;
use std::collections::BTreeMap;

/// A small generator of numbers: the same sequence in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn a_table_holds_what_an_ordered_map_holds() {
    let (mut table, mut map) = (Table::new(), BTreeMap::new());
    let mut numbers = Numbers(1);
    for step in 0..20_000 {
        let key = (numbers.below(20) as u8, vec![numbers.below(3), numbers.below(5)], numbers.below(2) == 0);
        match numbers.below(5) {
            3 => assert_eq!(table.get_mut(&key).map(|t| *t += step), map.get_mut(&key).map(|t| *t += step)),
            0 => assert_eq!(table.remove(&key), map.remove(&key)),
            1 => assert_eq!(table.or_insert_with(key.clone(), || step), map.entry(key).or_insert(step)),
            2 => assert_eq!(table.insert(key.clone(), step), map.insert(key, step)),
            _ => assert_eq!((table.get(&key), table.contains(&key)), (map.get(&key), map.contains_key(&key))),
        }
        assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
    }
    assert!(map.len() > 100, "{} keys", map.len());
}

#[test]
fn texts_are_found_by_their_letters() {
    let mut table: Table<String, usize> = Table::new();
    let words = ["", "a", "b", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab", "baaaaaaaa"];
    for (k, word) in words.iter().enumerate() {
        assert_eq!(table.insert((*word).to_string(), k), None);
    }
    for (k, word) in words.iter().enumerate() {
        assert_eq!(table.get(*word), Some(&k));
    }
}
