//! The reverse of a Gaussian mixture written by hand as core text (`crates/core/tests/programs`) computes the gradient.
//!
//! Expected values are derived by hand. With weights `w(i, k) = exp t(i, k) / sum_c exp t(i, c)` and `z = x[i] - mu[k]`:
//! `alpha_bar[k] = sum_i w`, `mu_bar[k] = sum_i w Q'Q z`, `Q_bar[k] = -sum_i w (Q z) z'`.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::SourceMap;
use pullback_core::{Program, Rules, Value, check, read};
use pullback_interp::core::{Options, run};

fn load() -> Program {
    let text = include_str!("../../core/tests/programs/gmm_reverse.core");
    let mut sources = SourceMap::new();
    let file = sources.add("gmm_reverse.core", text);
    let program = read(file, text).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    check(&program, Rules::NO_AD).unwrap_or_else(|e| panic!("{e}"));
    program
}

struct Case {
    alpha: Vec<f64>,
    mu: Vec<f64>,
    q: Vec<f64>,
    x: Vec<f64>,
    dims: usize,
    l_bar: f64,
}

impl Case {
    fn args(&self) -> Vec<Value> {
        let (k, d) = (self.alpha.len(), self.dims);
        vec![
            Value::f64s(&self.alpha),
            Value::f64_array(&[k, d], &self.mu),
            Value::f64_array(&[k, d, d], &self.q),
            Value::f64_array(&[self.x.len() / d, d], &self.x),
            Value::f64(self.l_bar),
        ]
    }
    fn run(&self, seed: Option<u64>) -> Vec<Vec<f64>> {
        let program = load();
        let main = program.funs.ids().next().unwrap();
        let options = Options { schedule_seed: seed, ..Options::default() };
        let outcome = run(&program, main, self.args(), &options).unwrap();
        outcome.results.iter().map(Value::floats).collect()
    }
    /// The objective alone, written in Rust.
    fn objective(&self) -> f64 {
        let d = self.dims;
        let exponent = |i: usize, k: usize| {
            let z: Vec<f64> = (0..d).map(|j| self.x[i * d + j] - self.mu[k * d + j]).collect();
            let row = |r: usize| (0..d).map(|j| self.q[(k * d + r) * d + j] * z[j]).sum::<f64>();
            self.alpha[k] - 0.5 * (0..d).map(|r| row(r).powi(2)).sum::<f64>()
        };
        (0..self.x.len() / d)
            .map(|i| (0..self.alpha.len()).map(|k| exponent(i, k).exp()).sum::<f64>().ln())
            .sum()
    }
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= 1e-14 * e.abs().max(1.0), "{found:?} is not {expected:?}");
    }
}

/// Two components, mirror images, and two points on the mirror: all weights are one half.
/// `Q = diag(1, 2)`; z of the points is (-1, 0), (-1, 2) for the first component and (1, 0), (1, 2) for the second.
#[test]
fn mirrored_components() {
    let case = Case {
        alpha: vec![0.25, 0.25],
        mu: vec![1.0, 0.0, -1.0, 0.0],
        q: vec![1.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 2.0],
        x: vec![0.0, 0.0, 0.0, 2.0],
        dims: 2,
        l_bar: 1.0,
    };
    for seed in [None, Some(1), Some(2)] {
        let results = case.run(seed);
        // -0.5 * 1 and -0.5 * 17, and log 2 for each point
        close(&results[0], &[2.0 * 2.0_f64.ln() + 2.0 * 0.25 - 9.0]);
        close(&results[1], &[1.0, 1.0]);
        close(&results[2], &[-1.0, 4.0, 1.0, 4.0]);
        close(&results[3], &[-1.0, 1.0, 2.0, -4.0, -1.0, -1.0, -2.0, -4.0]);
    }
}

/// One dimension, weights 1/4 and 3/4, cotangent 8: `t = (1/2 - 1/2, log 3)`.
#[test]
fn unequal_weights_and_a_cotangent() {
    let case = Case {
        alpha: vec![0.5, 3.0_f64.ln()],
        mu: vec![4.0, 5.0],
        q: vec![1.0, 7.0],
        x: vec![5.0],
        dims: 1,
        l_bar: 8.0,
    };
    let results = case.run(None);
    close(&results[0], &[4.0_f64.ln()]);
    close(&results[1], &[2.0, 6.0]);
    close(&results[2], &[2.0, 0.0]);
    close(&results[3], &[-2.0, 0.0]);
}

/// Everything against central differences of the objective in Rust, at a point without structure.
#[test]
fn differences_agree() {
    let mut case = Case {
        alpha: vec![0.3, -0.2, 0.1],
        mu: vec![0.5, -0.4, 0.2, 0.9, -0.7, 0.1],
        q: vec![0.9, 0.2, -0.3, 1.1, 1.2, -0.1, 0.4, 0.8, 0.7, 0.3, 0.5, 1.3],
        x: vec![0.1, 0.2, -0.6, 0.8, 1.1, -0.9, 0.4, 0.7],
        dims: 2,
        l_bar: 1.0,
    };
    let results = case.run(None);
    close(&results[0], &[case.objective()]);
    let step = 1e-5;
    for which in 0..3 {
        for (i, &found) in results[which + 1].iter().enumerate() {
            let mut at = |h: f64| {
                let list = [&mut case.alpha, &mut case.mu, &mut case.q];
                list.into_iter().nth(which).unwrap()[i] += h;
                let value = case.objective();
                let list = [&mut case.alpha, &mut case.mu, &mut case.q];
                list.into_iter().nth(which).unwrap()[i] -= h;
                value
            };
            let difference = (at(step) - at(-step)) / (2.0 * step);
            assert!((found - difference).abs() < 1e-8, "argument {which}, entry {i}: {found}, {difference}");
        }
    }
}
