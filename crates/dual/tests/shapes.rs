//! Cotangents and directions of random data types: each number meets its own, whatever the order of iteration; another shape is an error.

#![expect(clippy::disallowed_types, reason = "hash maps of users are what is tested")]

use crate::common::{Random, count};
use pullback_dual::{Differentiable, Error, Scalar, Var, hvp, jvp, vjp};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::rc::Rc;

/// Maps with another seed iterate in another order, the same one in every run of the test.
#[derive(Clone, Debug, Default)]
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// A number with a name, by which the test knows it.
#[derive(Clone, Debug, Differentiable)]
struct Leaf<S> {
    #[differentiable(constant)]
    name: u64,
    value: S,
}

/// Data of any shape.
#[derive(Clone, Debug, Differentiable)]
enum Data<S> {
    Nothing,
    Number(Leaf<S>),
    Maybe(Option<Rc<Data<S>>>),
    MaybeBoxed(Option<Box<Data<S>>>),
    List(Vec<Data<S>>),
    Boxes(Vec<(Box<Data<S>>, u8)>),
    Queue(VecDeque<Data<S>>),
    Two((Box<Data<S>>, Box<Data<S>>)),
    Three(Box<[Data<S>; 3]>),
    Hashed(HashMap<u32, Data<S>, Seeded>),
    Sorted(BTreeMap<String, Data<S>>),
    Record {
        first: Box<Data<S>>,
        flag: bool,
        second: Rc<Data<S>>,
    },
    /// As `Record`, but for its name.
    Other {
        first: Box<Data<S>>,
        flag: bool,
        second: Rc<Data<S>>,
    },
}

/// Data whose shape depends on `shape` only. Entries of maps are put in, in an order of `order`, after others that are removed again.
fn build<S>(shape: u64, depth: u32, order: &mut Random, leaf: &mut impl FnMut(u64) -> S) -> Data<S> {
    let mut random = Random(shape);
    let kind = if depth == 0 { random.below(2) } else { 2 + random.below(11) };
    let mut child = |seed: u64, order: &mut Random| build(seed, depth - 1, order, leaf);
    let mut seeds = |n: usize| (0..n).map(|_| random.next()).collect::<Vec<u64>>();
    match kind {
        0 => Data::Nothing,
        1 => Data::Number(Leaf { name: shape, value: leaf(shape) }),
        2 | 3 => {
            let some = seeds(2);
            let inner = (some[0] % 4 > 0).then(|| child(some[1], order));
            if kind == 2 { Data::Maybe(inner.map(Rc::new)) } else { Data::MaybeBoxed(inner.map(Box::new)) }
        }
        4 => Data::List(seeds((shape % 4) as usize).into_iter().map(|s| child(s, order)).collect()),
        5 => Data::Boxes(
            seeds((shape % 3) as usize).into_iter().map(|s| (Box::new(child(s, order)), 1)).collect(),
        ),
        6 => Data::Queue(seeds((shape % 3) as usize).into_iter().map(|s| child(s, order)).collect()),
        7 => {
            let two = seeds(2);
            Data::Two((Box::new(child(two[0], order)), Box::new(child(two[1], order))))
        }
        8 => Data::Three(Box::new([0, 1, 2].map(|_| child(seeds(1)[0], order)))),
        9 => Data::Hashed(entries(&seeds((shape % 9) as usize), order, &mut child)),
        10 => {
            let entries = entries(&seeds((shape % 4) as usize), order, &mut child);
            Data::Sorted(entries.into_iter().map(|(k, x)| (k.to_string(), x)).collect())
        }
        _ => {
            let two = seeds(2);
            let (first, second) = (Box::new(child(two[0], order)), Rc::new(child(two[1], order)));
            let flag = kind == 11;
            if flag { Data::Record { first, flag, second } } else { Data::Other { first, flag, second } }
        }
    }
}

/// A map with a key for each seed, filled in an order of `order`, in a table of some size.
fn entries<S>(
    seeds: &[u64],
    order: &mut Random,
    child: &mut impl FnMut(u64, &mut Random) -> Data<S>,
) -> HashMap<u32, Data<S>, Seeded> {
    let mut all: Vec<(u32, Data<S>)> = seeds
        .iter()
        .enumerate()
        .map(|(i, s)| ((s % 1000) as u32 * 16 + i as u32, child(*s, order)))
        .collect();
    let mut map = HashMap::with_capacity_and_hasher(order.below(64), Seeded(order.next()));
    while !all.is_empty() {
        let (key, value) = all.swap_remove(order.below(all.len()));
        map.insert(key + 1_000_000, Data::Nothing);
        map.insert(key, value);
    }
    map.retain(|key, _| *key < 1_000_000);
    map
}

/// Changes the shape at a place that `random` picks, or at one after it. Whether there was one.
fn spoil(data: &mut Data<f64>, at: &mut usize, random: &mut Random) -> bool {
    let mut inside = |children: Vec<&mut Data<f64>>, random: &mut Random| {
        children.into_iter().any(|child| spoil(child, at, random))
    };
    let done = match data {
        Data::Nothing | Data::Number(_) | Data::Maybe(None) | Data::MaybeBoxed(None) => false,
        Data::Maybe(Some(x)) => inside(Rc::get_mut(x).into_iter().collect(), random),
        Data::MaybeBoxed(Some(x)) => inside(vec![x], random),
        Data::List(all) => inside(all.iter_mut().collect(), random),
        Data::Boxes(all) => inside(all.iter_mut().map(|(x, _)| &mut **x).collect(), random),
        Data::Queue(all) => inside(all.iter_mut().collect(), random),
        Data::Two((a, b)) => inside(vec![a, b], random),
        Data::Three(all) => inside(all.iter_mut().collect(), random),
        Data::Hashed(all) => inside(all.values_mut().collect(), random),
        Data::Sorted(all) => inside(all.values_mut().collect(), random),
        Data::Record { first, second, .. } | Data::Other { first, second, .. } => {
            let second = Rc::get_mut(second).into_iter();
            inside(std::iter::once(&mut **first).chain(second).collect(), random)
        }
    };
    if done {
        return true;
    }
    if *at > 0 {
        *at -= 1;
        return false;
    }
    let number = || Data::Number(Leaf { name: 0, value: 1.0 });
    match data {
        Data::Nothing => *data = [Data::List(Vec::new()), number()][random.below(2)].clone(),
        Data::Number(_) => *data = [Data::Nothing, Data::List(vec![number()])][random.below(2)].clone(),
        Data::Maybe(x) => *x = x.is_none().then(|| Rc::new(Data::Nothing)),
        Data::MaybeBoxed(x) => *x = x.is_none().then(|| Box::new(Data::Nothing)),
        Data::List(all) if random.below(2) == 0 => all.push(Data::Nothing),
        Data::List(all) => *all = vec![number(); all.len() + 1],
        Data::Boxes(all) => all.push((Box::new(number()), 1)),
        Data::Queue(all) if all.is_empty() => all.push_back(number()),
        Data::Queue(all) => {
            all.pop_back();
        }
        // As many numbers, of which one was in one list and now is in the other: the sum of lengths says nothing.
        Data::Two((a, b)) => {
            (**a, **b) = (Data::Two((a.clone(), b.clone())), Data::Nothing);
        }
        Data::Three(all) => {
            let [a, b, c] = (**all).clone();
            *data = Data::List(vec![a, b, c]);
        }
        // Another key, and as many.
        Data::Hashed(all) => match all.keys().copied().next() {
            Some(key) if random.below(2) == 0 => {
                let value = all.remove(&key).unwrap_or(Data::Nothing);
                all.insert(key + 999_999, value);
            }
            _ => {
                all.insert(2_000_000, number());
            }
        },
        Data::Sorted(all) => match all.pop_first() {
            Some((key, value)) => {
                all.insert(key + "'", value);
            }
            None => {
                all.insert(String::new(), Data::Nothing);
            }
        },
        Data::Record { first, flag, second } => {
            *data = Data::Other { first: first.clone(), flag: *flag, second: second.clone() };
        }
        Data::Other { first, flag, second } => {
            *data = Data::Record { first: first.clone(), flag: *flag, second: second.clone() };
        }
    }
    true
}

/// A number between -1 and 1 that depends on the name only.
fn weight(name: u64, salt: u64) -> f64 {
    Random(name ^ salt).number()
}

const VARIABLES: usize = 5;

/// Each number of the result is a variable times a weight, both by its name.
fn program<S: Scalar>(seed: u64, order: &mut Random, x: &[S]) -> Data<S> {
    build(seed, 4, order, &mut |name| x[name as usize % VARIABLES] * S::from_f64(weight(name, 1)))
}

/// The cotangent that gives each number another weight, and the gradient by hand: the sum over the names.
fn cotangent(seed: u64, order: &mut Random) -> (Data<f64>, [f64; VARIABLES], usize) {
    let (mut gradient, mut numbers) = ([0.0; VARIABLES], 0);
    let cotangent = build(seed, 4, order, &mut |name| {
        gradient[name as usize % VARIABLES] += weight(name, 1) * weight(name, 2);
        numbers += 1;
        weight(name, 2)
    });
    (cotangent, gradient, numbers)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + b.abs())
}

#[test]
fn cotangents_meet_their_own_numbers_in_any_order() {
    let mut numbers = 0;
    for seed in 0..count(500) {
        let mut order = Random(seed ^ 0x5a5a);
        let x = [0.3, -0.7, 1.1, 0.2, 2.0];
        let (_, pullback): (Data<f64>, _) = vjp(|x: &[Var<'_>; 5]| program(seed, &mut order, x), &x);
        let mut order = Random(seed ^ 0xa5a5);
        for _ in 0..2 {
            let (cotangent, expected, n) = cotangent(seed, &mut order);
            let found = pullback.call(&cotangent).expect("the same shape");
            let right = found.iter().zip(&expected).all(|(a, b)| near(*a, *b));
            assert!(right, "seed {seed}: {found:?}, by hand {expected:?}");
            numbers += n;
        }
    }
    assert!(numbers as u64 > 2 * count(500), "{numbers} numbers: too few to say anything");
}

/// The sum of the numbers, each times a weight that its name has: independent of any order.
fn weighed<S: Scalar>(data: &Data<S>) -> S {
    let pair = |a: &Data<S>, b: &Data<S>| weighed(a) + weighed(b);
    match data {
        Data::Nothing | Data::Maybe(None) | Data::MaybeBoxed(None) => S::zero(),
        Data::Number(leaf) => leaf.value * leaf.value * S::from_f64(weight(leaf.name, 1)),
        Data::Maybe(Some(x)) => weighed(x),
        Data::MaybeBoxed(Some(x)) => weighed(x),
        Data::List(all) => all.iter().map(weighed).sum(),
        Data::Boxes(all) => all.iter().map(|(x, _)| weighed(x)).sum(),
        Data::Queue(all) => all.iter().map(weighed).sum(),
        Data::Two((a, b)) => pair(a, b),
        Data::Three(all) => all.iter().map(weighed).sum(),
        Data::Hashed(all) => all.values().map(weighed).sum(),
        Data::Sorted(all) => all.values().map(weighed).sum(),
        Data::Record { first, second, .. } | Data::Other { first, second, .. } => pair(first, second),
    }
}

/// The same for directions of arguments: tangents, and products with the Hessian.
#[test]
fn directions_meet_their_own_numbers_in_any_order() {
    for seed in 0..count(500) {
        let mut order = Random(seed ^ 0x3c3c);
        let mut expected = 0.0;
        let x = build(seed, 4, &mut order, &mut |name| weight(name, 3));
        let direction = build(seed, 4, &mut order, &mut |name| {
            expected += 2.0 * weight(name, 1) * weight(name, 2) * weight(name, 3);
            weight(name, 2)
        });
        let (_, tangent): (f64, f64) = jvp(|x| weighed(x), &x, &direction).expect("the same shape");
        assert!(near(tangent, expected), "seed {seed}: {tangent}, by hand {expected}");
        let (_, gradient, product) = hvp(|x| weighed(x), &x, &direction).expect("the same shape");
        // Of the gradient and of the product each number is known by its name.
        assert!(near(
            weighed(&gradient),
            weighed_by_hand(seed, |name| 2.0 * weight(name, 1) * weight(name, 3))
        ));
        assert!(near(
            weighed(&product),
            weighed_by_hand(seed, |name| 2.0 * weight(name, 1) * weight(name, 2))
        ));
    }
}

/// [`weighed`] of the data that have these numbers, without data.
fn weighed_by_hand(seed: u64, number: impl Fn(u64) -> f64) -> f64 {
    let mut sum = 0.0;
    build(seed, 4, &mut Random(0), &mut |name| sum += weight(name, 1) * number(name) * number(name));
    sum
}

#[test]
fn other_shapes_are_errors() {
    let mut spoiled = 0;
    for seed in 0..count(500) {
        let mut order = Random(seed ^ 0x1234);
        let x = [0.3, -0.7, 1.1, 0.2, 2.0];
        let (value, pullback): (Data<f64>, _) = vjp(|x: &[Var<'_>; 5]| program(seed, &mut order, x), &x);
        for _ in 0..4 {
            let mut at = order.below(12);
            let mut wrong = build(seed, 4, &mut order, &mut |name| weight(name, 2));
            let mut other = wrong.clone();
            if !spoil(&mut wrong, &mut at, &mut order) {
                at = 0;
                std::mem::swap(&mut wrong, &mut other);
                assert!(spoil(&mut wrong, &mut at, &mut order));
            }
            spoiled += 1;
            let result = pullback.call(&wrong);
            let Err(Error::Mismatch { what }) = result else {
                panic!("seed {seed}: {result:?} for the cotangent {wrong:?} of {value:?}")
            };
            assert!(what.starts_with("expected"), "{what}");
            let result: Result<(f64, f64), Error> = jvp(|x| weighed(x), &value, &wrong);
            assert!(matches!(result, Err(Error::Mismatch { .. })), "seed {seed}: {result:?}");
            let result = hvp(|x| weighed(x), &value, &wrong);
            assert!(matches!(result, Err(Error::Mismatch { .. })), "seed {seed}");
        }
        pullback.call(&value).expect("the same shape");
    }
    assert_eq!(spoiled, 4 * count(500));
}

/// The program that showed the fault: a map of eight keys, 200 times.
#[test]
fn eight_keys_have_their_own_cotangents() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let keys: Vec<u64> = (0..8).map(|_| random.next()).collect();
        let x: Vec<f64> = (0..8).map(|_| random.number()).collect();
        let (_, pullback): (HashMap<u64, f64, Seeded>, _) = vjp(
            |x: &Vec<Var<'_>>| {
                let mut map = HashMap::with_hasher(Seeded(seed));
                map.extend(keys.iter().copied().zip(x.iter().map(|x| x * x)));
                map
            },
            &x,
        );
        let cotangent = keys.iter().rev().map(|k| (*k, (k % 100) as f64)).collect();
        let expected: Vec<f64> = keys.iter().zip(&x).map(|(k, x)| 2.0 * x * (k % 100) as f64).collect();
        assert_eq!(pullback.call(&cotangent).expect("the same keys"), expected, "seed {seed}");
    }
}

/// Five shapes with as many numbers as the value has.
#[test]
fn as_many_numbers_are_not_the_same_shape() {
    type Lists = (Vec<f64>, Vec<f64>);
    let (_, lists): (Lists, _) = vjp(|&[a, b, c]| (vec![a, b], vec![c]), &[1.0, 2.0, 3.0]);
    assert!(matches!(lists.call(&(vec![1.0], vec![2.0, 3.0])), Err(Error::Mismatch { .. })));
    assert_eq!(lists.call(&(vec![1.0, 2.0], vec![3.0])), Ok([1.0, 2.0, 3.0]));

    let map = |keys: [&'static str; 2]| BTreeMap::from(keys.map(|k| (k.to_string(), 1.0)));
    let (_, sorted): (BTreeMap<String, f64>, _) =
        vjp(|&[a, b]| BTreeMap::from([("x".to_string(), a), ("y".to_string(), b)]), &[1.0, 2.0]);
    assert!(matches!(sorted.call(&map(["x", "z"])), Err(Error::Mismatch { .. })));
    assert_eq!(sorted.call(&map(["y", "x"])), Ok([1.0, 1.0]));

    let (_, options): ([Option<f64>; 2], _) = vjp(|&a| [Some(a), None], &1.0);
    assert!(matches!(options.call(&[None, Some(1.0)]), Err(Error::Mismatch { .. })));

    let leaf = |value| Data::Number(Leaf { name: 0, value });
    let (_, variants): (Data<f64>, _) = vjp(|&a: &Var<'_>| Data::Number(Leaf { name: 0, value: a }), &1.0);
    assert!(matches!(variants.call(&Data::List(vec![leaf(1.0)])), Err(Error::Mismatch { .. })));

    let (_, nested): (Vec<Vec<f64>>, _) = vjp(|&[a, b]| vec![vec![a], vec![b], vec![]], &[1.0, 2.0]);
    assert!(matches!(nested.call(&vec![vec![], vec![1.0], vec![2.0]]), Err(Error::Mismatch { .. })));
}
