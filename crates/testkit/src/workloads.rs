//! The workloads whose times are compared with C written by hand: programs, inputs of any size, and how much work they are.
//!
//! `benches/baseline` has the same workloads under the same names, with the same inputs: both sides use the generator
//! [`uniform`]. Results are flat: the value, then the derivatives in the order of the parameters.

use crate::problems::uniform;
use pullback_core::{Array, Buffer, Value};

/// A program with inputs, and its name in `benches/baseline`.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The name on both sides.
    pub name: &'static str,
    /// The file, from the root of the repository.
    pub file: &'static str,
    /// The entry point.
    pub entry: &'static str,
    /// What to differentiate in, as `--wrt` takes it; `None`: the entry point gives derivatives itself.
    pub wrt: Option<&'static str>,
    /// What the sizes are.
    pub size_names: &'static [&'static str],
    /// The sizes of the table.
    pub sizes: &'static [usize],
    /// Sizes at which both sides are compared in tests: awkward ones.
    pub small: &'static [&'static [usize]],
    /// Inputs of these sizes, one value per leaf parameter.
    pub args: fn(&[usize]) -> Vec<Value>,
    /// The work that no program can avoid.
    pub work: fn(&[f64]) -> Work,
}

/// What a machine's rates are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Sums and products of floats, counted one by one.
    pub flops: f64,
    /// Calls of exp, log, tanh, sin, cos.
    pub calls: f64,
    /// Bytes of inputs, tapes and results that go through memory.
    pub bytes: f64,
}

/// All of them, in the order of the table.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "gmm",
        file: "examples/gmm.fut",
        entry: "objective",
        wrt: Some("params"),
        size_names: &["n", "d", "k"],
        sizes: &[1000, 10, 25],
        small: &[&[1, 1, 1], &[7, 2, 3], &[65, 3, 5], &[130, 5, 2]],
        args: gmm,
        // y, z and its square; r z and its sum; r z y^T: triangles of d(d+1)/2 products and sums, twice.
        work: |s| Work {
            flops: s[0] * s[2] * (2.0 * s[1] * (s[1] + 1.0) + 5.0 * s[1]),
            calls: s[0] * s[2],
            bytes: 8.0 * s[0] * s[1],
        },
    },
    Workload {
        name: "ba",
        file: "examples/ba.fut",
        entry: "jacobian",
        wrt: None,
        size_names: &["n", "m", "p"],
        sizes: &[49, 7776, 31843],
        small: &[&[1, 1, 1], &[2, 5, 9], &[3, 10, 131]],
        args: ba,
        // Counted in the C program: 75 operations before the rows, 120 for each of the two.
        work: |s| Work { flops: 315.0 * s[2], calls: 2.0 * s[2], bytes: 8.0 * (31.0 + 14.0 + 5.0) * s[2] },
    },
    Workload {
        name: "lstm",
        file: "examples/lstm.fut",
        entry: "objective",
        wrt: Some("main_params,extra_params"),
        size_names: &["l", "c", "b"],
        sizes: &[2, 1024, 14],
        small: &[&[1, 2, 1], &[2, 9, 5], &[3, 17, 14]],
        args: lstm,
        // 11 operations forward and 47 back per cell; four gates and the cell; seven numbers of tape, written and read.
        work: |s| Work {
            flops: s[0] * s[1] * s[2] * 58.0,
            calls: s[1] * s[2] * (5.0 * s[0] + 1.0),
            bytes: 2.0 * 8.0 * 7.0 * s[0] * s[1] * s[2],
        },
    },
    Workload {
        name: "kmeans",
        file: "examples/kmeans.fut",
        entry: "cost",
        wrt: Some("centroids"),
        size_names: &["n", "k", "d"],
        sizes: &[10_000, 64, 32],
        small: &[&[1, 1, 1], &[9, 2, 3], &[131, 5, 4]],
        args: kmeans,
        work: kmeans_work,
    },
    Workload {
        name: "kmeans_direction",
        file: "examples/kmeans.fut",
        entry: "direction",
        wrt: None,
        size_names: &["n", "k", "d"],
        sizes: &[10_000, 64, 32],
        small: &[&[9, 1, 1], &[64, 2, 3], &[131, 3, 4]],
        args: kmeans,
        work: kmeans_work,
    },
    Workload {
        name: "logreg",
        file: "examples/logreg.fut",
        entry: "loss",
        wrt: Some("w"),
        size_names: &["n", "d"],
        sizes: &[10_000, 100],
        small: &[&[1, 1], &[33, 7], &[130, 9]],
        args: logreg,
        work: |s| Work { flops: 4.0 * s[0] * s[1], calls: 2.0 * s[0], bytes: 8.0 * s[0] * (s[1] + 1.0) },
    },
    Workload {
        name: "lse",
        file: "examples/lse.fut",
        entry: "primal",
        wrt: Some("x"),
        size_names: &["n"],
        sizes: &[1_280_000],
        small: &[&[1], &[7], &[65], &[2500]],
        args: |s| vec![array(103, &[s[0]])],
        // Read for the maximum; read and written for the exponentials; read and written for the quotients.
        work: |s| Work { flops: 4.0 * s[0], calls: s[0], bytes: 8.0 * 5.0 * s[0] },
    },
    Workload {
        name: "stencil",
        file: "benches/programs/stencil.fut",
        entry: "loss",
        wrt: Some("u"),
        size_names: &["N", "T"],
        sizes: &[512, 100],
        small: &[&[3, 1], &[9, 7], &[16, 10]],
        args: |s| vec![symmetric(50, &[s[0], s[0]]), Value::i64(s[1] as i64)],
        // One number of tape per cell and step, written and read.
        work: |s| Work {
            flops: 18.0 * s[0] * s[0] * s[1],
            calls: 0.0,
            bytes: 2.0 * 8.0 * s[0] * s[0] * s[1],
        },
    },
];

fn array(seed: u32, shape: &[usize]) -> Value {
    Value::f64_array(shape, &uniform(seed, shape.iter().product()))
}

/// Numbers in [-1, 1).
fn symmetric(seed: u32, shape: &[usize]) -> Value {
    let numbers: Vec<f64> = uniform(seed, shape.iter().product()).iter().map(|x| 2.0 * x - 1.0).collect();
    Value::f64_array(shape, &numbers)
}

fn gmm(sizes: &[usize]) -> Vec<Value> {
    let &[n, d, k] = sizes else { panic!("gmm has three sizes") };
    let parameters =
        [array(12, &[k]), array(13, &[k, d]), array(14, &[k, d]), array(15, &[k, d * (d - 1) / 2])];
    [array(11, &[n, d]), Value::f64(1.0), Value::i64(0)].into_iter().chain(parameters).collect()
}

fn ba(sizes: &[usize]) -> Vec<Value> {
    let &[n, m, p] = sizes else { panic!("ba has three sizes") };
    let camera = |c: usize| {
        let near = [0.2, -0.1, 0.3, 0.1, 0.2, -5.0, 400.0, 5.0, -8.0, 0.01, 0.002];
        near.map(|x| x * (1.0 + 0.01 * c as f64))
    };
    let cameras: Vec<f64> = (0..n).flat_map(camera).collect();
    let observed: Vec<i64> = (0..p).flat_map(|i| [(i % n) as i64, (i % m) as i64]).collect();
    vec![
        Value::f64_array(&[n, 11], &cameras),
        array(21, &[m, 3]),
        array(22, &[p]),
        array(23, &[p, 2]),
        Value::Array(Array::new(vec![p, 2], Buffer::I64(observed))),
    ]
}

fn lstm(sizes: &[usize]) -> Vec<Value> {
    let &[layers, c, b] = sizes else { panic!("lstm has three sizes") };
    let bits: Vec<f64> = uniform(44, c * b).into_iter().map(|x| if x < 0.5 { 0.0 } else { 1.0 }).collect();
    vec![
        array(41, &[2 * layers, 4 * b]),
        array(42, &[3, b]),
        array(43, &[2 * layers, b]),
        Value::f64_array(&[c, b], &bits),
    ]
}

fn kmeans(sizes: &[usize]) -> Vec<Value> {
    let &[n, k, d] = sizes else { panic!("k-means has three sizes") };
    vec![symmetric(11, &[n, d]), symmetric(12, &[k, d])]
}

/// A difference, its square and the sum.
fn kmeans_work(s: &[f64]) -> Work {
    Work { flops: 3.0 * s[0] * s[1] * s[2], calls: 0.0, bytes: 8.0 * s[0] * s[2] }
}

fn logreg(sizes: &[usize]) -> Vec<Value> {
    let &[n, d] = sizes else { panic!("logistic regression has two sizes") };
    let labels: Vec<f64> = uniform(7, n).into_iter().map(|x| if x < 0.5 { 1.0 } else { 0.0 }).collect();
    let weights: Vec<f64> = uniform(6, d).into_iter().map(|x| 0.1 * (2.0 * x - 1.0)).collect();
    vec![symmetric(5, &[n, d]), Value::f64s(&labels), Value::f64s(&weights)]
}
