//! Data types: shapes of gradients, walks of the derive macro, errors about shapes.

use crate::common::close;
use pullback_dual::{Differentiable, Error, Real, Scalar, grad, jvp, value_and_grad, vjp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Everything that the macro knows.
#[derive(Clone, Debug, PartialEq, Differentiable)]
struct Model<S, const N: usize> {
    scale: S,
    weights: [Vec<S>; N],
    named: BTreeMap<String, (S, usize)>,
    tree: Option<Box<Tree<S>>>,
    pairs: Vec<(Box<S>, Box<[S; 2]>)>,
    shared: Arc<S>,
    queue: VecDeque<S>,
    unit: Unit<S>,
    #[differentiable(constant)]
    data: Vec<f64>,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Differentiable)]
enum Tree<S> {
    Leaf,
    Value(S),
    Node { left: Box<Tree<S>>, weight: S, right: Box<Tree<S>> },
    Many(Vec<Tree<S>>),
}

#[derive(Clone, Debug, PartialEq, Differentiable)]
struct Unit<S>(S);

#[derive(Clone, Debug, PartialEq, Differentiable)]
#[differentiable(scalar = S)]
struct Tagged<K: Clone, S>
where
    K: PartialEq,
{
    #[differentiable(constant)]
    key: K,
    value: S,
}

fn total<S: Scalar>(tree: &Tree<S>) -> S {
    match tree {
        Tree::Leaf => S::zero(),
        Tree::Value(x) => *x,
        Tree::Node { left, weight, right } => *weight * (total(left) + total(right)),
        Tree::Many(all) => all.iter().map(total).product(),
    }
}

fn model<S: Real>(m: &Model<S, 2>) -> S {
    let sums: S = m.weights.iter().flatten().zip(&m.data).map(|(w, d)| *w * *d).sum();
    let named: S = m.named.values().map(|(x, n)| *x * *n as f64).sum();
    let tree = m.tree.as_deref().map_or(S::zero(), total);
    let pairs: S = m.pairs.iter().map(|(a, b)| **a * b[0] * b[1]).sum();
    m.scale * (sums + named) + tree + pairs + *m.shared * 100.0 + m.queue[1] * 1000.0 + m.unit.0 * 7.0
}

fn example() -> Model<f64, 2> {
    let leaf = |x| Box::new(Tree::Value(x));
    Model {
        scale: 2.0,
        weights: [vec![1.0, 2.0], vec![3.0]],
        named: [("a".to_string(), (5.0, 3)), ("b".to_string(), (6.0, 4))].into(),
        tree: Some(Box::new(Tree::Node {
            left: leaf(1.0),
            weight: 3.0,
            right: Box::new(Tree::Many(vec![Tree::Value(2.0), Tree::Value(5.0), Tree::Value(1.0)])),
        })),
        pairs: vec![(Box::new(2.0), Box::new([3.0, 4.0]))],
        shared: Arc::new(1.0),
        queue: [8.0, 9.0].into(),
        unit: Unit(1.0),
        data: vec![10.0, 20.0, 30.0],
        name: "model".into(),
    }
}

#[test]
fn a_gradient_has_the_shape_of_the_value() {
    let (value, g) = value_and_grad(|m| model(m), &example());
    // By hand: 2 (10 + 40 + 90 + 15 + 24) + 3 (1 + 10) + 24 + 100 + 9000 + 7.
    assert_eq!(value, 358.0 + 33.0 + 24.0 + 100.0 + 9000.0 + 7.0);
    let leaf = |x| Box::new(Tree::Value(x));
    let expected = Model {
        scale: 179.0,
        weights: [vec![20.0, 40.0], vec![60.0]],
        named: [("a".to_string(), (6.0, 3)), ("b".to_string(), (8.0, 4))].into(),
        tree: Some(Box::new(Tree::Node {
            left: leaf(3.0),
            weight: 11.0,
            right: Box::new(Tree::Many(vec![Tree::Value(15.0), Tree::Value(6.0), Tree::Value(30.0)])),
        })),
        pairs: vec![(Box::new(12.0), Box::new([8.0, 6.0]))],
        shared: Arc::new(100.0),
        queue: [0.0, 1000.0].into(),
        unit: Unit(7.0),
        data: vec![10.0, 20.0, 30.0],
        name: "model".into(),
    };
    assert_eq!(g, expected);
}

#[test]
fn tangents_have_the_shape_of_the_value_too() {
    let x = example();
    let (value, tangent): (f64, f64) = jvp(|m| model(m), &x, &x).unwrap();
    // Along itself, a sum of powers: each term times its degree.
    let degree_two = 358.0 + 3.0;
    close(tangent, 2.0 * degree_two + 4.0 * 30.0 + 3.0 * 24.0 + 100.0 + 9000.0 + 7.0);
    assert_eq!(value, 9522.0);
}

#[test]
fn directions_and_cotangents_of_other_shapes_are_errors() {
    let tree = Tree::Many(vec![Tree::Value(1.0), Tree::Leaf]);
    let wrong = [
        Tree::Leaf,
        Tree::Many(vec![Tree::Value(1.0)]),
        Tree::Many(vec![Tree::Value(1.0), Tree::Value(2.0)]),
    ];
    for direction in wrong {
        let result: Result<(f64, f64), Error> = jvp(|t| total(t), &tree, &direction);
        let Err(Error::Mismatch { what }) = result else { panic!("{result:?}") };
        assert!(what.starts_with("expected"), "{what}");
    }
    let mut other = example();
    other.named.remove("a");
    assert!(jvp::<f64, _, f64, _>(|m| model(m), &example(), &other).is_err());
    other = example();
    other.tree = None;
    assert!(jvp::<f64, _, f64, _>(|m| model(m), &example(), &other).is_err());
    other = example();
    other.pairs.clear();
    assert!(jvp::<f64, _, f64, _>(|m| model(m), &example(), &other).is_err());
}

#[test]
fn results_may_be_data_types() {
    let (y, pullback): (Tagged<&str, f64>, _) = vjp(
        |x: &Tagged<&str, _>| Tagged { key: x.key, value: x.value * x.value },
        &Tagged { key: "k", value: 3.0 },
    );
    assert_eq!(y, Tagged { key: "k", value: 9.0 });
    assert_eq!(
        pullback.call(&Tagged { key: "other", value: 2.0 }).unwrap(),
        Tagged { key: "k", value: 12.0 }
    );
}

#[test]
#[expect(clippy::disallowed_types, reason = "hash maps of users are walked too")]
fn hash_maps_keep_their_keys() {
    let map: std::collections::HashMap<usize, f64> = (0..100).map(|i| (i, i as f64)).collect();
    let g = grad(|m| m.iter().map(|(k, x)| *x * *x * *k as f64).sum(), &map);
    assert!((0..100).all(|i| g[&i] == 2.0 * (i * i) as f64));
}

#[test]
fn options_and_empty_collections() {
    assert_eq!(grad(|x| x.map_or(Scalar::zero(), |x| x * 2.0), &Some(1.0)), Some(2.0));
    assert_eq!(grad::<f64, _, _>(|x| x.map_or(Scalar::zero(), |x| x * 2.0), &None::<f64>), None);
    let xs: [f64; 0] = [];
    assert_eq!(grad(|xs| Scalar::total(xs), &xs[..]), Vec::<f64>::new());
}

/// Weird sums of the reference implementation's tests: the variant of the gradient is that of the value.
#[test]
fn the_variant_decides() {
    #[derive(Debug, PartialEq, Differentiable)]
    enum Weird<S> {
        One(S, i64, S),
        Two((i64, S)),
    }
    fn f<S: Real>(w: &Weird<S>) -> S {
        match w {
            Weird::One(x, i, y) => *x * *y * *i as f64,
            Weird::Two((i, x)) => *x + *i as f64,
        }
    }
    assert_eq!(grad(|w| f(w), &Weird::One(2.0, 3, 5.0)), Weird::One(15.0, 3, 6.0));
    assert_eq!(grad(|w| f(w), &Weird::Two((4, 5.0))), Weird::Two((4, 1.0)));
}
