//! The small programs beside the suite: their files, inputs (those of the golden numbers, of any size) and unavoidable work.

use crate::inputs::{Float, Workload, derivative, function, primal, rows, symmetric};
use pullback_testkit::problems::uniform;
use serde_json::{Value as Json, json};
use std::path::Path;

/// Modules by name, each with its program, from the root of the repository.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("logreg", "examples/logreg.fut"),
    ("mlp", "benches/programs/mlp.fut"),
    ("mlp_f32", "benches/programs/mlp_f32.fut"),
    ("stencil", "benches/programs/stencil.fut"),
    ("matvec", "benches/programs/matvec.fut"),
    ("mult", "benches/programs/mult.fut"),
    ("dot", "benches/programs/dot.fut"),
    ("rotate", "benches/programs/rotate.fut"),
    ("neural", "benches/programs/neural.fut"),
    ("particles", "benches/programs/particles.fut"),
];

/// The file of a small program; nothing for other problems.
pub(crate) fn path(problem: &str) -> Option<String> {
    let (_, file) = PROGRAMS.iter().find(|(name, _)| *name == problem)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    Some(root.join(file).display().to_string())
}

pub(crate) fn logreg(n: usize, d: usize) -> Workload {
    let nd = (n * d) as f64;
    let w: Vec<f64> = symmetric(6, d, 0.1);
    let labels: Vec<f64> = uniform(7, n).into_iter().map(|x| f64::from(u8::from(x < 0.5))).collect();
    let bytes = 8.0 * nd;
    Workload {
        problem: "logreg",
        name: format!("n{n} d{d}"),
        // A product with X and one with its transpose; with a direction, one product more. X is read once.
        functions: vec![
            primal("loss", 2.0 * nd, bytes),
            derivative("gradient", 4.0 * nd, bytes),
            derivative("hessian_vector", 6.0 * nd, bytes),
        ],
        work: 2.0 * nd,
        input: json!({"x": rows(&symmetric(5, n * d, 1.0), d), "y": labels, "w": w, "s": symmetric(8, d, 1.0)}),
        ..Workload::default()
    }
}

/// Layers 784, 300, 100 and 10; in single precision as module `mlp_f32`.
pub(crate) fn mlp(float: Float, batch: usize) -> Workload {
    Workload { name: format!("batch {batch}"), ..mlp_of(float, [784, 300, 100, 10], batch) }
}

/// Layers of these sizes.
pub(crate) fn mlp_of(float: Float, sizes: [usize; 4], batch: usize) -> Workload {
    let mut net = serde_json::Map::new();
    let (mut products, mut inner, mut weights_and_biases) = (0, 0, 0);
    for k in 0..3 {
        let (n, m) = (sizes[k], sizes[k + 1]);
        let weights = symmetric(20 + k as u32, n * m, 1.0 / (n as f64).sqrt());
        net.insert(format!("w{k}"), json!(rows(&weights, n)));
        net.insert(format!("b{k}"), json!(symmetric(30 + k as u32, m, 0.1)));
        products += batch * n * m;
        inner += if k > 0 { batch * n * m } else { 0 };
        weights_and_biases += (n + 1) * m;
    }
    let numbers = |each: usize| (batch * sizes[0] + each * weights_and_biases) as f64;
    let labels: Vec<i64> = uniform(41, batch).into_iter().map(|x| (10.0 * x) as i64).collect();
    let x = uniform(40, batch * sizes[0]);
    // The function's products, those for the weights, and those for what the layers after the first are given.
    let flops = 2.0 * (2 * products + inner) as f64;
    let (problem, size) = match float {
        Float::Double => ("mlp", 8.0),
        Float::Single => ("mlp_f32", 4.0),
    };
    Workload {
        problem,
        name: format!("batch {batch}, layers {}", sizes.map(|n| n.to_string()).join(" ")),
        functions: vec![
            primal("loss", 2.0 * products as f64, size * numbers(1)),
            derivative("gradient", flops, size * numbers(2)),
        ],
        work: 2.0 * products as f64,
        float,
        input: json!({"net": net, "x": rows(&x, sizes[0]), "labels": labels}),
        ..Workload::default()
    }
}

pub(crate) fn stencil(n: usize, steps: usize) -> Workload {
    let cells = (n * n) as f64;
    let work = 9.0 * cells * steps as f64;
    Workload {
        problem: "stencil",
        name: format!("{n} x {n}, {steps} steps"),
        functions: vec![primal("loss", work, 8.0 * cells), derivative("gradient", 2.0 * work, 16.0 * cells)],
        work,
        input: json!({"u": rows(&symmetric(50, n * n, 1.0), n), "steps": steps}),
        ..Workload::default()
    }
}

pub(crate) fn matvec(n: usize) -> Workload {
    let cells = (n * n) as f64;
    Workload {
        problem: "matvec",
        name: format!("{n} x {n}"),
        functions: vec![
            primal("squares", 2.0 * cells, 8.0 * cells),
            derivative("gradient", 5.0 * cells, 16.0 * cells),
        ],
        work: 2.0 * cells,
        input: json!({"a": rows(&symmetric(3, n * n, 1.0), n), "v": symmetric(4, n, 1.0)}),
        ..Workload::default()
    }
}

pub(crate) fn mult() -> Workload {
    Workload {
        problem: "mult",
        name: "two numbers".to_string(),
        functions: vec![function("mult"), derivative("gradient", 0.0, 0.0)],
        work: 1.0,
        input: json!({"x": 3.0, "y": 4.0}),
        ..Workload::default()
    }
}

pub(crate) fn dot(n: usize) -> Workload {
    let n_ = n as f64;
    Workload {
        problem: "dot",
        name: format!("n{n}"),
        functions: vec![primal("dot", 2.0 * n_, 16.0 * n_), derivative("gradient", 2.0 * n_, 32.0 * n_)],
        work: 2.0 * n_,
        input: json!({"a": symmetric(1, n, 1.0), "b": symmetric(2, n, 1.0)}),
        ..Workload::default()
    }
}

pub(crate) fn rotate() -> Workload {
    Workload {
        problem: "rotate",
        name: "a vector".to_string(),
        functions: vec![function("rotate_vec"), derivative("jacobian", 0.0, 0.0)],
        work: 40.0,
        input: json!({"v": {"x": 1, "y": 2, "z": 3}, "q": {"x": 4, "y": 5, "z": 6, "w": 7}}),
        ..Workload::default()
    }
}

/// Layers n to 2 n and back.
pub(crate) fn neural(n: usize) -> Workload {
    let matrix = |m: usize, n: usize| -> Json {
        (0..m).map(|i| (0..n).map(|j| json!(((i + j) as f64).sin())).collect::<Json>()).collect()
    };
    let vector = |n: usize| -> Vec<f64> { (0..n).map(|i| (0.41 * i as f64).sin()).collect() };
    let cells = 4.0 * (n * n) as f64;
    Workload {
        problem: "neural",
        name: format!("n{n}"),
        functions: vec![
            primal("total", 2.0 * cells, 8.0 * cells),
            derivative("gradient", 6.0 * cells, 16.0 * cells),
        ],
        work: 2.0 * cells,
        input: json!({"first": {"weights": matrix(2 * n, n), "bias": vector(2 * n)},
            "second": {"weights": matrix(n, 2 * n), "bias": vector(n)}, "x": vector(n)}),
        ..Workload::default()
    }
}

pub(crate) fn particles(n: usize, steps: usize) -> Workload {
    let one = |i: usize| json!({"px": 0.5 * (i + 1) as f64, "py": 0.1, "vx": 1.0, "vy": 1.0});
    let work = 12.0 * (n * steps) as f64;
    Workload {
        problem: "particles",
        name: format!("n{n}, {steps} steps"),
        functions: vec![
            primal("product", work, 32.0 * n as f64),
            derivative("gradient", 2.0 * work, 64.0 * n as f64),
        ],
        work,
        input: json!({"particles": (0..n).map(one).collect::<Json>(), "steps": steps}),
        ..Workload::default()
    }
}
