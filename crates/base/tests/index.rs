//! Tables keyed by ids.

use pullback_base::index::{IdTable, Index, SharedVec};

pullback_base::index_type! {
    struct Id
}

fn items(v: &SharedVec<Id, String>) -> Vec<&str> {
    v.iter().map(String::as_str).collect()
}

fn two() -> SharedVec<Id, String> {
    let mut v = SharedVec::new();
    for x in ["a", "b"] {
        v.push(x.to_string());
    }
    v.share();
    v
}

#[test]
fn a_clone_and_its_origin_go_on_apart() {
    let mut one = two();
    let mut other = one.clone();
    assert_eq!(one.push("c".to_string()), Id::new(2));
    assert_eq!(other.push("d".to_string()), Id::new(2));
    other[Id::new(0)] = "e".to_string();
    assert_eq!(items(&one), ["a", "b", "c"]);
    assert_eq!(items(&other), ["e", "b", "d"]);
    one.share();
    assert_eq!(items(&one), ["a", "b", "c"]);
    assert_eq!(items(&other), ["e", "b", "d"]);
}

#[test]
fn what_is_shared_and_what_is_not_is_one_vector() {
    let mut v = two();
    v.push("c".to_string());
    assert_eq!((v.len(), v[Id::new(1)].as_str(), v[Id::new(2)].as_str()), (3, "b", "c"));
    assert_eq!(v.get(Id::new(3)), None);
    assert_eq!(v.ids().count(), 3);
    v[Id::new(2)].push('!');
    v.iter_mut().for_each(|x| x.push('?'));
    assert_eq!(items(&v), ["a?", "b?", "c!?"]);
    let mut same = SharedVec::new();
    v.iter().for_each(|x| {
        same.push(x.clone());
    });
    assert_eq!(v, same);
    same.push("d".to_string());
    assert_ne!(v, same);
}

#[test]
fn ids_behind_the_end_are_given_out_again() {
    for count in 0..4 {
        let mut v = two();
        v.push("c".to_string());
        let other = v.clone();
        v.truncate(count);
        assert_eq!(items(&v), ["a", "b", "c"][..count.min(3)]);
        assert_eq!(v.push("x".to_string()), Id::new(count.min(3)));
        assert_eq!(items(&other), ["a", "b", "c"]);
    }
}

#[test]
fn a_table_knows_what_was_put_in_last() {
    let mut table = IdTable::new();
    assert_eq!(table.insert(Id::new(5), 1), None);
    assert_eq!(table.insert(Id::new(5), 2), Some(1));
    *table.place(Id::new(1)) = Some(3);
    assert_eq!(
        (table.get(Id::new(5)), table.get(Id::new(1)), table.get(Id::new(9))),
        (Some(&2), Some(&3), None)
    );
    assert_eq!((table.remove(Id::new(5)), table.remove(Id::new(9))), (Some(2), None));
    assert!(!table.contains(Id::new(5)) && table.contains(Id::new(1)));
}
