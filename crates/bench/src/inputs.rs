//! What is measured: problems at several sizes, with inputs as GradBench sends them and the work that no program can avoid.
//!
//! Inputs are of the generator of the golden numbers, so that every tool and every day gets the same ones.

use pullback_testkit::problems::uniform;
use serde_json::{Value as Json, json};

/// A problem at one size.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// The problem's name in the suite.
    pub(crate) problem: &'static str,
    /// Its sizes, as people write them: `d10 k25 n1000`.
    pub(crate) name: String,
    /// The function, and its derivative; or several of equal standing.
    pub(crate) functions: &'static [&'static str],
    /// What grows with the size: elementary operations of the function.
    pub(crate) work: f64,
    /// What the derivative cannot avoid.
    pub(crate) least: Work,
    /// What both are run on.
    pub(crate) input: Json,
}

/// Work, to be compared with a machine's rates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Sums and products of floats, counted one by one.
    pub(crate) flops: f64,
    /// Bytes of arguments and results.
    pub(crate) bytes: f64,
}

/// How many sizes of each problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// One or two small ones: seconds.
    Quick,
    /// Four or more: minutes.
    Usual,
    /// Those of the suite's defaults that fit into 24 GiB.
    Full,
}

fn rows(xs: &[f64], width: usize) -> Vec<&[f64]> {
    xs.chunks(width.max(1)).collect()
}

/// As many lists as asked for, also where they are empty.
fn lists(xs: &[f64], count: usize, width: usize) -> Json {
    (0..count).map(|i| json!(xs[i * width..(i + 1) * width])).collect()
}

fn scaled(s: u32, n: usize, by: f64) -> Vec<f64> {
    uniform(s, n).into_iter().map(|x| by * (2.0 * x - 1.0)).collect()
}

fn gmm(d: usize, k: usize, n: usize) -> Workload {
    let t = d * (d - 1) / 2;
    let (nk, d_) = ((n * k) as f64, d as f64);
    Workload {
        problem: "gmm",
        name: format!("d{d} k{k} n{n}"),
        functions: &["objective", "jacobian"],
        work: nk * d_ * (d_ + 1.0),
        // A triangle of products and sums for z, and one for the cotangent of Q.
        least: Work {
            flops: nk * (2.0 * d_ * (d_ + 1.0) + 5.0 * d_),
            bytes: 8.0 * (n * d + 2 * k * (1 + 2 * d + t)) as f64,
        },
        input: json!({"d": d, "k": k, "n": n, "m": 0, "gamma": 1.0, "x": lists(&scaled(1, n * d, 2.0), n, d),
            "alpha": scaled(2, k, 1.0), "mu": lists(&uniform(3, k * d), k, d), "q": lists(&scaled(4, k * d, 0.5), k, d),
            "l": lists(&scaled(5, k * t, 0.5), k, t)}),
    }
}

fn ba(n: usize, m: usize, p: usize) -> Workload {
    let p_ = p as f64;
    Workload {
        problem: "ba",
        name: format!("n{n} m{m} p{p}"),
        functions: &["objective", "jacobian"],
        work: 75.0 * p_,
        // 75 operations before the rows, 120 for each of the two; 31 numbers with their columns are written.
        least: Work { flops: 315.0 * p_, bytes: (31.0 * 12.0 + 3.0 * 4.0 + 5.0 * 8.0) * p_ },
        input: json!({"n": n, "m": m, "p": p, "w": 0.417022, "x": [7.203245, 0.001144, 3.023326],
            "feat": [271.760969, 834.209256],
            "cam": [-0.758453, -1.109613, -0.845551, 34.556073, 39.676747, 53.881673, 419.194514, 5.864426, -8.518870,
                    0.087812, 0.002739]}),
    }
}

fn lstm(l: usize, c: usize) -> Workload {
    let b = 14;
    let cells = (l * c * b) as f64;
    Workload {
        problem: "lstm",
        name: format!("l{l} c{c}"),
        functions: &["objective", "jacobian"],
        work: 20.0 * cells,
        // Four gates and two states forward, and about twice that backward; functions count as one.
        least: Work { flops: 60.0 * cells, bytes: 8.0 * (c * b) as f64 },
        input: json!({"main_params": rows(&uniform(1, 8 * l * b), 4 * b), "extra_params": rows(&uniform(2, 3 * b), b),
            "state": rows(&uniform(3, 2 * l * b), b),
            "sequence": rows(&uniform(4, c * b).iter().map(|x| x.round()).collect::<Vec<_>>(), b)}),
    }
}

fn kmeans(k: usize, n: usize, d: usize) -> Workload {
    let points = uniform(1, n * d);
    let work = 3.0 * (n * k * d) as f64;
    Workload {
        problem: "kmeans",
        name: format!("k{k} n{n} d{d}"),
        functions: &["cost", "dir"],
        work,
        least: Work { flops: work, bytes: 8.0 * (n * d + 2 * k * d) as f64 },
        input: json!({"points": rows(&points, d), "centroids": rows(&points[(n - k) * d..], d)}),
    }
}

fn llsq(n: usize, m: usize) -> Workload {
    let nm = (n * m) as f64;
    Workload {
        problem: "llsq",
        name: format!("n{n} m{m}"),
        functions: &["primal", "gradient"],
        work: 2.0 * nm,
        // A polynomial forward, and powers times residuals backward.
        least: Work { flops: 5.0 * nm, bytes: 16.0 * m as f64 },
        input: json!({"x": uniform(1, m), "n": n}),
    }
}

fn lse(n: usize) -> Workload {
    let n_ = n as f64;
    Workload {
        problem: "lse",
        name: format!("n{n}"),
        functions: &["primal", "gradient"],
        work: 3.0 * n_,
        least: Work { flops: 4.0 * n_, bytes: 16.0 * n_ },
        input: json!({"x": uniform(1, n)}),
    }
}

fn ode(n: usize, s: usize) -> Workload {
    let steps = (n * s) as f64;
    Workload {
        problem: "ode",
        name: format!("n{n} s{s}"),
        functions: &["primal", "gradient"],
        work: 17.0 * steps,
        least: Work { flops: 3.0 * 17.0 * steps, bytes: 16.0 * n as f64 },
        input: json!({"x": uniform(1, n), "s": s}),
    }
}

fn det(l: usize) -> Workload {
    let factorial: f64 = (1..=l).map(|i| i as f64).product();
    let work = 2.0 * 1.718 * factorial;
    Workload {
        problem: "det",
        name: format!("l{l}"),
        functions: &["primal", "gradient"],
        work,
        least: Work { flops: 3.0 * work, bytes: 16.0 * (l * l) as f64 },
        input: json!({"A": uniform(1, l * l), "ell": l}),
    }
}

/// A made-up hand: five fingers of four bones, a wrist and a forearm; every vertex has four bones.
fn ht(n: usize, vertices: usize) -> Workload {
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
        let noise = scaled(s, bones * 12, 0.1);
        let one = |b: usize| -> Json {
            let cell = |i: usize, j: usize| {
                f64::from(u8::from(i == j)) + if i < 3 { noise[12 * b + 4 * i + j] } else { 0.0 }
            };
            (0..4).map(|i| (0..4).map(|j| json!(cell(i, j))).collect::<Json>()).collect()
        };
        (0..bones).map(one).collect()
    };
    let places = scaled(3, 3 * vertices, 1.0);
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
        functions: &["objective", "jacobian"],
        work: n_ * 3.0 * (4.0 * 24.0 + 20.0),
        // Three vertices of four bones for each point; a finger's parameters touch the points of that finger only.
        least: Work { flops: n_ * 3.0 * 4.0 * 24.0 * 12.0, bytes: 8.0 * 84.0 * n_ },
        input: json!({"theta": scaled(6, 26, 0.3), "us": rows(&us, 2), "data": {
            "correspondences": correspondences, "points": rows(&scaled(4, 3 * n, 1.0), 3), "model": {
                "bone_count": bones, "bone_names": vec!["bone"; bones], "parents": parents, "is_mirrored": false,
                "base_relatives": matrices(1), "inverse_base_absolutes": matrices(2), "triangles": triangles,
                "base_positions": (0..vertices).map(position).collect::<Json>(),
                "weights": (0..vertices).map(weight).collect::<Json>()}}}),
    }
}

/// Problems of one size and four functions.
fn nested(problem: &'static str, work: f64, input: Json) -> Workload {
    let functions = &["rr", "ff", "fr", "rf"];
    Workload { problem, name: "default".to_string(), functions, work, least: Work::default(), input }
}

/// The workloads of the problems with these names (none: of all).
pub(crate) fn workloads(problems: &[String], extent: Extent) -> Vec<Workload> {
    let wanted = |name: &str| problems.is_empty() || problems.iter().any(|p| p == name);
    let mut out = Vec::new();
    let mut add = |name: &str, least: Extent, make: &dyn Fn() -> Workload| {
        if wanted(name) && extent >= least {
            out.push(make());
        }
    };
    use Extent::{Full, Quick, Usual};
    add("hello", Quick, &|| Workload {
        problem: "hello",
        name: "one number".to_string(),
        functions: &["square", "double"],
        work: 1.0,
        least: Work::default(),
        input: json!(1.0),
    });
    for (d, k, n, extent) in [
        (2, 5, 1000, Quick),
        (10, 25, 1000, Quick),
        (20, 25, 1000, Usual),
        (32, 25, 1000, Usual),
        (64, 25, 1000, Usual),
        (64, 100, 1000, Full),
        (32, 25, 10000, Full),
    ] {
        add("gmm", extent, &|| gmm(d, k, n));
    }
    for (n, m, p, extent) in [
        (49, 7776, 31843, Quick),
        (21, 11315, 36455, Full),
        (161, 48126, 182_072, Usual),
        (257, 65132, 225_911, Usual),
        (88, 64298, 383_937, Usual),
        (1723, 156_502, 678_718, Full),
        (356, 226_730, 1_255_268, Full),
    ] {
        add("ba", extent, &|| ba(n, m, p));
    }
    for (n, vertices, extent) in [
        (100, 544, Quick),
        (200, 544, Usual),
        (800, 544, Usual),
        (3200, 544, Usual),
        (800, 10000, Full),
        (100_000, 10000, Full),
    ] {
        add("ht", extent, &|| ht(n, vertices));
    }
    for (l, c, extent) in [
        (2, 1024, Quick),
        (4, 1024, Usual),
        (2, 4096, Usual),
        (6, 4096, Usual),
        (2, 8192, Full),
        (6, 8192, Full),
    ] {
        add("lstm", extent, &|| lstm(l, c));
    }
    for (k, n, d, extent) in [
        (10, 1000, 8, Quick),
        (100, 1000, 8, Usual),
        (100, 10000, 8, Usual),
        (100, 10000, 16, Usual),
        (1000, 10000, 16, Usual),
    ] {
        add("kmeans", extent, &|| kmeans(k, n, d));
    }
    for (n, extent) in [(16, Quick), (128, Usual), (1024, Usual), (4096, Usual), (16392, Usual)] {
        add("llsq", extent, &|| llsq(n, 128));
    }
    for (n, extent) in
        [(2500, Quick), (20_000, Usual), (160_000, Usual), (640_000, Usual), (1_280_000, Usual)]
    {
        add("lse", extent, &|| lse(n));
    }
    for (n, s, extent) in [
        (1000, 1, Quick),
        (1000, 10, Usual),
        (1000, 100, Usual),
        (10000, 100, Usual),
        (100_000, 10, Usual),
        (100_000, 100, Full),
    ] {
        add("ode", extent, &|| ode(n, s));
    }
    for (l, extent) in [(5, Quick), (6, Usual), (7, Usual), (8, Usual), (9, Full), (10, Full), (11, Full)] {
        add("det", extent, &|| det(l));
    }
    add("particle", Quick, &|| nested("particle", 29651.0, json!({"w": 0})));
    add("saddle", Quick, &|| nested("saddle", 26350.0, json!({"start": [1, 1]})));
    out
}
