//! One objective as a program of the language, as plain Rust, and as Rust on several threads: equal gradients.

use pullback::dual::parallel::{self, Parallel};
use pullback::dual::{Differentiable, Real, value_and_grad};
use pullback::{Program, Value};

const PROGRAM: &str = "
    -- Logistic regression with a penalty.
    entry loss [n] [d] (xs: [n][d]f64) (ys: [n]f64) (w: [d]f64) (b: f64) : f64 =
      let score (x: [d]f64) = f64.sum (map2 (*) x w) + b
      let point (x: [d]f64) (y: f64) = let z = score x in f64.log (1 + f64.exp z) - y * z
      in f64.sum (map2 point xs ys) + 0.5 * f64.sum (map (\\w -> w * w) w)
";

#[derive(Clone, Debug, Differentiable)]
#[differentiable(crate = pullback::dual)]
struct Model<S> {
    weights: Vec<S>,
    bias: S,
}

fn point<S: Real>(model: &Model<S>, x: &[f64], y: f64) -> S {
    let z = model.weights.iter().zip(x).map(|(w, x)| *w * *x).sum::<S>() + model.bias;
    (z.exp() + 1.0).ln() - z * y
}

fn penalty<S: Real>(model: &Model<S>) -> S {
    S::dot(&model.weights, &model.weights) * 0.5
}

#[test]
fn rust_and_the_language_give_the_same_gradient() {
    let xs: Vec<f64> = (0..60).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let ys: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
    let model = Model { weights: vec![0.3, -0.2, 0.1], bias: 0.05 };

    let program = Program::compile(PROGRAM).unwrap();
    let args = [
        Value::f64_array(&[20, 3], &xs),
        Value::f64s(&ys),
        Value::f64s(&model.weights),
        Value::f64(model.bias),
    ];
    let theirs = program.gradient("loss", "w", &args).unwrap();
    let bias = program.gradient("loss", "b", &args).unwrap();

    let points: Vec<(&[f64], f64)> = xs.chunks(3).zip(ys.iter().copied()).collect();
    let (value, ours) = value_and_grad(
        |m| points.iter().map(|(x, y)| point(m, x, *y)).sum::<pullback::dual::Var<'_>>() + penalty(m),
        &model,
    );
    let (parallel_value, parallel_ours) = parallel::value_and_grad(
        |m| Parallel::sum(&points, 4, |(x, y)| point(m, x, *y)) + penalty(m),
        &model,
    );

    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{a} and {b}");
    close(value, theirs.value);
    close(parallel_value, theirs.value);
    for gradient in [&ours, &parallel_ours] {
        let weights = theirs.parts[0].1.floats();
        assert_eq!(gradient.weights.len(), weights.len());
        gradient.weights.iter().zip(weights).for_each(|(a, b)| close(*a, b));
        close(gradient.bias, bias.parts[0].1.floats()[0]);
    }
}
