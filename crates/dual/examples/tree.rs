//! A likelihood over a tree of any shape, fitted on all processors: `cargo run --release -p pullback-dual --example tree`.
//!
//! Six species descend from one ancestor; a trait such as body size wanders along the branches of their family tree (Brownian motion), and
//! each species is measured a few times with an error. What is not known: how fast the trait wanders, how large the error is, where the
//! ancestor was, and how long each branch is. The likelihood is a recursion over the tree (Felsenstein's pruning), in which each inner
//! node combines the estimates of its children; the children are computed in parallel. The tree is an ordinary `enum`, and so is
//! its gradient.

#![allow(clippy::print_stdout, reason = "an example")]

use pullback_dual::parallel::{self, Parallel};
use pullback_dual::{Differentiable, Real};

/// A family tree whose branches have lengths of type `S`, as logarithms, so that any number is a length.
#[derive(Clone, Debug, Differentiable)]
enum Tree<S> {
    Species {
        #[differentiable(constant)]
        name: &'static str,
        branch: S,
        #[differentiable(constant)]
        measured: Vec<f64>,
    },
    Split {
        branch: S,
        left: Box<Tree<S>>,
        right: Box<Tree<S>>,
    },
}

/// All that is fitted.
#[derive(Clone, Debug, Differentiable)]
struct Model<S> {
    tree: Tree<S>,
    /// Logarithms of the variance that a branch of length 1 adds, and of the variance of a measurement.
    rate: S,
    error: S,
    /// The trait of the ancestor.
    ancestor: S,
}

/// What a part of the tree says about the trait at its top: an estimate with its variance, and the logarithm of the likelihood so far.
#[derive(Clone, Copy)]
struct Message<S> {
    mean: S,
    variance: S,
    log_likelihood: S,
}

/// The logarithm of the normal density of a difference.
fn log_normal<S: Real>(difference: S, variance: S) -> S {
    (difference * difference / variance + variance.ln() + (2.0 * std::f64::consts::PI).ln()) * -0.5
}

/// Combines two independent estimates of one number.
fn combine<S: Real>(a: Message<S>, b: Message<S>) -> Message<S> {
    let sum = a.variance + b.variance;
    Message {
        mean: (a.mean * b.variance + b.mean * a.variance) / sum,
        variance: a.variance * b.variance / sum,
        log_likelihood: a.log_likelihood + b.log_likelihood + log_normal(a.mean - b.mean, sum),
    }
}

fn up<S: Parallel + Real>(tree: &Tree<S>, rate: S, error: S) -> Message<S> {
    let (message, branch) = match tree {
        Tree::Species { branch, measured, .. } => {
            let one = |x: &f64| Message { mean: S::from_f64(*x), variance: error, log_likelihood: S::zero() };
            let all = measured.iter().map(one).reduce(combine);
            (all.expect("every species is measured"), *branch)
        }
        Tree::Split { branch, left, right } => {
            let (left, right) = S::join(|| up(left, rate, error), || up(right, rate, error));
            (combine(left, right), *branch)
        }
    };
    Message { variance: message.variance + rate * branch.exp(), ..message }
}

/// Minus the logarithm of the posterior; lengths, rate and error are near 1 before anything is measured.
fn loss<S: Parallel + Real>(model: &Model<S>) -> S {
    fn prior<S: Real>(tree: &Tree<S>) -> S {
        match tree {
            Tree::Species { branch, .. } => *branch * *branch,
            Tree::Split { branch, left, right } => *branch * *branch + prior(left) + prior(right),
        }
    }
    let top = up(&model.tree, model.rate.exp(), model.error.exp());
    let fit = top.log_likelihood + log_normal(top.mean - model.ancestor, top.variance);
    (prior(&model.tree) + model.rate * model.rate + model.error * model.error) * 0.5 - fit
}

fn species(name: &'static str, measured: &[f64]) -> Tree<f64> {
    Tree::Species { name, branch: 0.0, measured: measured.to_vec() }
}

fn split(left: Tree<f64>, right: Tree<f64>) -> Tree<f64> {
    Tree::Split { branch: 0.0, left: Box::new(left), right: Box::new(right) }
}

/// A step against the gradient: the walk of the derive macro pairs the numbers of two models.
fn step(model: &Model<f64>, gradient: &Model<f64>, size: f64) -> Model<f64> {
    let mut moved = Vec::new();
    let paired = model.zip::<f64, _>(gradient, &mut |x, d| moved.push(x - size * d));
    paired.expect("a gradient has the shape of its model");
    let mut at = moved.into_iter();
    model.map(&mut |x| at.next().unwrap_or(*x))
}

fn square(gradient: &Model<f64>) -> f64 {
    let mut sum = 0.0;
    gradient.map(&mut |d: &f64| {
        sum += d * d;
        *d
    });
    sum
}

fn show(tree: &Tree<f64>, gradient: &Tree<f64>, depth: usize) {
    let line = |what: String, branch: f64, d: f64| {
        println!("{:<24}{:>8.3}   {d:>10.1e}", format!("{:1$}{what}", "", 2 * depth), branch.exp());
    };
    match (tree, gradient) {
        (Tree::Species { name, branch, measured }, Tree::Species { branch: d, .. }) => {
            let mean = measured.iter().sum::<f64>() / measured.len() as f64;
            line(format!("{name} ({mean:.1})"), *branch, *d);
        }
        (Tree::Split { branch, left, right }, Tree::Split { branch: d, left: dl, right: dr }) => {
            line("+".into(), *branch, *d);
            show(left, dl, depth + 1);
            show(right, dr, depth + 1);
        }
        _ => {}
    }
}

fn main() {
    let tree = split(
        split(
            species("mouse", &[1.2, 1.4]),
            split(species("rat", &[2.1, 2.3, 2.2]), species("squirrel", &[2.4])),
        ),
        split(
            species("cat", &[4.0, 4.4]),
            split(species("wolf", &[6.1, 5.9]), species("bear", &[8.8, 9.3, 9.0])),
        ),
    );
    let mut model = Model { tree, rate: 0.0, error: 0.0, ancestor: 0.0 };
    let mut size = 0.1;
    println!("step   minus log posterior   length of the gradient");
    for i in 0.. {
        let (value, gradient) = parallel::value_and_grad(|m| loss(m), &model);
        let length = square(&gradient).sqrt();
        if length < 1e-6 || i == 2000 {
            println!("{i:>4}   {value:>19.8}   {length:>22.2e}");
            println!(
                "\nrate {:.3}, error {:.4}, ancestor {:.3}\n",
                model.rate.exp(),
                model.error.exp(),
                model.ancestor
            );
            println!("tree (measured)           length   derivative");
            show(&model.tree, &gradient.tree, 0);
            return;
        }
        if i % 100 == 0 || i == 10 {
            println!("{i:>4}   {value:>19.8}   {length:>22.2e}");
        }
        // Longer steps while they help enough, shorter ones until they do (Armijo).
        size *= 2.0;
        let enough = |size: f64| loss(&step(&model, &gradient, size)) <= value - 0.3 * size * length * length;
        while !enough(size) && size > 1e-12 {
            size *= 0.5;
        }
        model = step(&model, &gradient, size);
    }
}
