//! What is measured: problems at several sizes, with inputs as GradBench sends them and the work that no program can avoid.
//!
//! Inputs are of the generator of the golden numbers, so that every tool and every day gets the same ones.

use pullback_testkit::problems::uniform;
use serde_json::{Value as Json, json};

/// A problem at one size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workload {
    /// The problem's name in the suite, or that of a small program.
    pub(crate) problem: &'static str,
    /// What grows along its series of sizes; empty: sizes of all shapes.
    pub(crate) series: &'static str,
    /// Its sizes, as people write them: `d10 k25 n1000`.
    pub(crate) name: String,
    /// The function and its derivatives, or several of equal standing.
    pub(crate) functions: Vec<Function>,
    /// What grows with the size: elementary operations of the function.
    pub(crate) work: f64,
    /// What it computes with.
    pub(crate) float: Float,
    /// What all functions are run on.
    pub(crate) input: Json,
}

/// A function of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// Its name in the problem's module.
    pub(crate) name: &'static str,
    /// Whether it is a derivative of the first function.
    pub(crate) is_derivative: bool,
    /// What it cannot avoid; zeros where nobody has counted.
    pub(crate) least: Work,
}

/// Work, to be compared with a machine's rates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Sums and products of floats, counted one by one.
    pub(crate) flops: f64,
    /// Bytes of arguments and results.
    pub(crate) bytes: f64,
}

/// A type of floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Float {
    /// `f64`
    #[default]
    Double,
    /// `f32`
    Single,
}

/// A function that is no derivative, whose work nobody has counted.
pub(crate) fn function(name: &'static str) -> Function {
    primal(name, 0.0, 0.0)
}

/// A function that is no derivative and cannot avoid so many operations and bytes.
pub(crate) fn primal(name: &'static str, flops: f64, bytes: f64) -> Function {
    Function { name, is_derivative: false, least: Work { flops, bytes } }
}

/// A derivative that cannot avoid so many operations and bytes.
pub(crate) fn derivative(name: &'static str, flops: f64, bytes: f64) -> Function {
    Function { name, is_derivative: true, least: Work { flops, bytes } }
}

pub(crate) fn rows(xs: &[f64], width: usize) -> Vec<&[f64]> {
    xs.chunks(width.max(1)).collect()
}

/// As many lists as asked for, also where they are empty.
fn lists(xs: &[f64], count: usize, width: usize) -> Json {
    (0..count).map(|i| json!(xs[i * width..(i + 1) * width])).collect()
}

/// `n` numbers between `-by` and `by`.
pub(crate) fn symmetric(s: u32, n: usize, by: f64) -> Vec<f64> {
    uniform(s, n).into_iter().map(|x| by * (2.0 * x - 1.0)).collect()
}

pub(crate) fn gmm(d: usize, k: usize, n: usize) -> Workload {
    let t = d * (d - 1) / 2;
    let (nk, d_) = ((n * k) as f64, d as f64);
    Workload {
        problem: "gmm",
        name: format!("d{d} k{k} n{n}"),
        work: nk * d_ * (d_ + 1.0),
        functions: vec![
            // A triangle of products and sums for z, whose squares are added up.
            primal(
                "objective",
                nk * (d_ * (d_ + 1.0) + 3.0 * d_),
                8.0 * (n * d + k * (1 + 2 * d + t)) as f64,
            ),
            // And one for the cotangent of Q.
            derivative(
                "jacobian",
                nk * (2.0 * d_ * (d_ + 1.0) + 5.0 * d_),
                8.0 * (n * d + 2 * k * (1 + 2 * d + t)) as f64,
            ),
        ],
        input: json!({"d": d, "k": k, "n": n, "m": 0, "gamma": 1.0, "x": lists(&symmetric(1, n * d, 2.0), n, d),
            "alpha": symmetric(2, k, 1.0), "mu": lists(&uniform(3, k * d), k, d), "q": lists(&symmetric(4, k * d, 0.5), k, d),
            "l": lists(&symmetric(5, k * t, 0.5), k, t)}),
        ..Workload::default()
    }
}

pub(crate) fn ba(n: usize, m: usize, p: usize) -> Workload {
    let p_ = p as f64;
    Workload {
        problem: "ba",
        name: format!("n{n} m{m} p{p}"),
        work: 75.0 * p_,
        functions: vec![
            // An observation, its feature and its weight are read, three errors written.
            primal("objective", 75.0 * p_, (5.0 + 3.0) * 8.0 * p_),
            // 75 operations before the rows, 120 for each of the two; 31 numbers with their columns are written.
            derivative("jacobian", 315.0 * p_, (31.0 * 12.0 + 3.0 * 4.0 + 5.0 * 8.0) * p_),
        ],
        input: json!({"n": n, "m": m, "p": p, "w": 0.417022, "x": [7.203245, 0.001144, 3.023326],
            "feat": [271.760969, 834.209256],
            "cam": [-0.758453, -1.109613, -0.845551, 34.556073, 39.676747, 53.881673, 419.194514, 5.864426, -8.518870,
                    0.087812, 0.002739]}),
        ..Workload::default()
    }
}

pub(crate) fn lstm(l: usize, c: usize) -> Workload {
    let b = 14;
    let cells = (l * c * b) as f64;
    Workload {
        problem: "lstm",
        name: format!("l{l} c{c}"),
        work: 20.0 * cells,
        functions: vec![
            primal("objective", 20.0 * cells, 8.0 * (c * b) as f64),
            // Four gates and two states forward, and about twice that backward; functions count as one.
            derivative("jacobian", 60.0 * cells, 8.0 * (c * b) as f64),
        ],
        input: json!({"main_params": rows(&uniform(1, 8 * l * b), 4 * b), "extra_params": rows(&uniform(2, 3 * b), b),
            "state": rows(&uniform(3, 2 * l * b), b),
            "sequence": rows(&uniform(4, c * b).iter().map(|x| x.round()).collect::<Vec<_>>(), b)}),
        ..Workload::default()
    }
}

pub(crate) fn kmeans(k: usize, n: usize, d: usize) -> Workload {
    let points = uniform(1, n * d);
    let work = 3.0 * (n * k * d) as f64;
    Workload {
        problem: "kmeans",
        name: format!("k{k} n{n} d{d}"),
        work,
        functions: vec![
            primal("cost", work, 8.0 * (n * d + k * d) as f64),
            derivative("dir", work, 8.0 * (n * d + 2 * k * d) as f64),
        ],
        input: json!({"points": rows(&points, d), "centroids": rows(&points[(n - k) * d..], d)}),
        ..Workload::default()
    }
}

pub(crate) fn llsq(n: usize, m: usize) -> Workload {
    let nm = (n * m) as f64;
    Workload {
        problem: "llsq",
        name: format!("n{n} m{m}"),
        work: 2.0 * nm,
        functions: vec![
            primal("primal", 2.0 * nm, 8.0 * m as f64),
            // A polynomial forward, and powers times residuals backward.
            derivative("gradient", 5.0 * nm, 16.0 * m as f64),
        ],
        input: json!({"x": uniform(1, m), "n": n}),
        ..Workload::default()
    }
}

pub(crate) fn lse(n: usize) -> Workload {
    let n_ = n as f64;
    Workload {
        problem: "lse",
        name: format!("n{n}"),
        work: 3.0 * n_,
        functions: vec![primal("primal", 3.0 * n_, 8.0 * n_), derivative("gradient", 4.0 * n_, 16.0 * n_)],
        input: json!({"x": uniform(1, n)}),
        ..Workload::default()
    }
}

pub(crate) fn ode(n: usize, s: usize) -> Workload {
    let steps = (n * s) as f64;
    Workload {
        problem: "ode",
        name: format!("n{n} s{s}"),
        work: 17.0 * steps,
        functions: vec![
            primal("primal", 17.0 * steps, 16.0 * n as f64),
            derivative("gradient", 3.0 * 17.0 * steps, 16.0 * n as f64),
        ],
        input: json!({"x": uniform(1, n), "s": s}),
        ..Workload::default()
    }
}

pub(crate) fn det(l: usize) -> Workload {
    let factorial: f64 = (1..=l).map(|i| i as f64).product();
    let work = 2.0 * 1.718 * factorial;
    Workload {
        problem: "det",
        name: format!("l{l}"),
        work,
        functions: vec![
            primal("primal", work, 8.0 * (l * l) as f64),
            derivative("gradient", 3.0 * work, 16.0 * (l * l) as f64),
        ],
        input: json!({"A": uniform(1, l * l), "ell": l}),
        ..Workload::default()
    }
}

/// A made-up hand: five fingers of four bones, a wrist and a forearm; every vertex has four bones.
pub(crate) fn ht(n: usize, vertices: usize) -> Workload {
    let bones = 22;
    let parents: Vec<i64> = (0..22)
        .map(|b| {
            if b == 0 {
                -1
            } else if b == 21 || b % 4 == 1 {
                0
            } else {
                b - 1
            }
        })
        .collect();
    let matrices = |s: u32| -> Json {
        let noise = symmetric(s, bones * 12, 0.1);
        let one = |b: usize| -> Json {
            let cell = |i: usize, j: usize| {
                f64::from(u8::from(i == j)) + if i < 3 { noise[12 * b + 4 * i + j] } else { 0.0 }
            };
            (0..4).map(|i| (0..4).map(|j| json!(cell(i, j))).collect::<Json>()).collect()
        };
        (0..bones).map(one).collect()
    };
    let places = symmetric(3, 3 * vertices, 1.0);
    let position = |v: usize| json!([places[3 * v], places[3 * v + 1], places[3 * v + 2], 1.0]);
    let weight = |v: usize| -> Json {
        (0..bones).map(|b| json!(if (b + 22 - v % 22) % 22 < 4 { 0.25 } else { 0.0 })).collect()
    };
    let triangles: Json =
        (0..1084).map(|t| json!([t % vertices, (7 * t + 1) % vertices, (13 * t + 2) % vertices])).collect();
    let us = uniform(5, 2 * n).into_iter().map(|u| 0.5 * u).collect::<Vec<_>>();
    let correspondences: Vec<usize> = (0..n).map(|i| (31 * i) % 1084).collect();
    let n_ = n as f64;
    Workload {
        problem: "ht",
        name: format!("complicated n{n} v{vertices}"),
        work: n_ * 3.0 * (4.0 * 24.0 + 20.0),
        functions: vec![
            // A point, its two numbers and its triangle are read, three differences written.
            primal("objective", n_ * 3.0 * (4.0 * 24.0 + 20.0), 8.0 * 9.0 * n_),
            // Three vertices of four bones for each point; a finger's parameters touch the points of that finger only.
            derivative("jacobian", n_ * 3.0 * 4.0 * 24.0 * 12.0, 8.0 * 84.0 * n_),
        ],
        input: json!({"theta": symmetric(6, 26, 0.3), "us": rows(&us, 2), "data": {
            "correspondences": correspondences, "points": rows(&symmetric(4, 3 * n, 1.0), 3), "model": {
                "bone_count": bones, "bone_names": vec!["bone"; bones], "parents": parents, "is_mirrored": false,
                "base_relatives": matrices(1), "inverse_base_absolutes": matrices(2), "triangles": triangles,
                "base_positions": (0..vertices).map(position).collect::<Json>(),
                "weights": (0..vertices).map(weight).collect::<Json>()}}}),
        ..Workload::default()
    }
}

/// Problems of one size and four functions.
pub(crate) fn nested(problem: &'static str, work: f64, input: Json) -> Workload {
    let functions = ["rr", "ff", "fr", "rf"].map(function).to_vec();
    Workload { problem, name: "default".to_string(), functions, work, input, ..Workload::default() }
}
