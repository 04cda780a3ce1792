//! Which problems at which sizes: those of the suite and of the tables, and series of sizes in between that show how cost grows.

use crate::inputs::{
    Float, Workload, ba, derivative, det, function, gmm, ht, kmeans, llsq, lse, lstm, nested, ode,
};
use crate::programs::{dot, logreg, matvec, mlp, mlp_of, mult, neural, particles, rotate, stencil};
use serde_json::json;

/// How many sizes of each problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One or two small ones: seconds.
    Quick,
    /// Four or more: minutes.
    Usual,
    /// Those of the suite's defaults too that fit into 24 GiB.
    Full,
    /// Sizes that no table has, four or more along each dimension.
    Growth,
}

/// A workload that is made when it is wanted: inputs are large.
pub(crate) struct Planned {
    /// The problem's name.
    pub(crate) problem: &'static str,
    /// Makes it.
    pub(crate) make: Box<dyn Fn() -> Workload>,
}

/// The workloads of the problems with these names (none: of all).
pub(crate) fn workloads(problems: &[String], extent: Extent) -> Vec<Planned> {
    let mut out = Vec::new();
    match extent {
        Extent::Growth => growth(&mut out),
        extent => {
            let mut add = |problem, least: Extent, make: Box<dyn Fn() -> Workload>| {
                if least as u8 <= extent as u8 {
                    out.push(Planned { problem, make });
                }
            };
            suite(&mut add);
            small(&mut add);
        }
    }
    out.retain(|w| problems.is_empty() || problems.iter().any(|p| p == w.problem));
    out
}

/// The problem at a size at which the interpreter can count its steps in a moment; nothing for problems of one small size.
pub(crate) fn counted(problem: &str) -> Option<Workload> {
    Some(match problem {
        "gmm" => gmm(4, 5, 200),
        "ba" => ba(5, 60, 200),
        "ht" => ht(20, 544),
        "lstm" => lstm(2, 64),
        "kmeans" => kmeans(10, 500, 8),
        "llsq" => llsq(500, 16),
        "lse" => lse(1000),
        "ode" => ode(100, 20),
        "det" => det(5),
        "logreg" => logreg(500, 10),
        "mlp" => mlp_of(Float::Double, [40, 30, 20, 10], 8),
        "mlp_f32" => mlp_of(Float::Single, [40, 30, 20, 10], 8),
        "stencil" => stencil(16, 10),
        "matvec" => matvec(100),
        "dot" => dot(1000),
        "neural" => neural(50),
        "particles" => particles(4, 200),
        _ => return None,
    })
}

/// Takes a problem's name, the smallest extent that it is part of, and what makes it.
type Add<'a> = dyn FnMut(&'static str, Extent, Box<dyn Fn() -> Workload>) + 'a;

/// The problems of GradBench.
fn suite(add: &mut Add<'_>) {
    use Extent::{Full, Quick, Usual};
    let hello = || Workload {
        problem: "hello",
        name: "one number".to_string(),
        functions: vec![function("square"), derivative("double", 0.0, 0.0)],
        work: 1.0,
        input: json!(1.0),
        ..Workload::default()
    };
    add("hello", Quick, Box::new(hello));
    for (d, k, n, extent) in [
        (2, 5, 1000, Quick),
        (10, 25, 1000, Quick),
        (20, 25, 1000, Usual),
        (32, 25, 1000, Usual),
        (64, 25, 1000, Usual),
        (64, 100, 1000, Full),
        (32, 25, 10000, Full),
    ] {
        add("gmm", extent, Box::new(move || gmm(d, k, n)));
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
        add("ba", extent, Box::new(move || ba(n, m, p)));
    }
    for (n, vertices, extent) in [
        (100, 544, Quick),
        (200, 544, Usual),
        (800, 544, Usual),
        (3200, 544, Usual),
        (800, 10000, Full),
        (100_000, 10000, Full),
    ] {
        add("ht", extent, Box::new(move || ht(n, vertices)));
    }
    for (l, c, extent) in [
        (2, 1024, Quick),
        (4, 1024, Usual),
        (2, 4096, Usual),
        (6, 4096, Usual),
        (2, 8192, Full),
        (6, 8192, Full),
    ] {
        add("lstm", extent, Box::new(move || lstm(l, c)));
    }
    for (k, n, d, extent) in [
        (10, 1000, 8, Quick),
        (100, 1000, 8, Usual),
        (100, 10000, 8, Usual),
        (64, 10000, 32, Usual),
        (100, 10000, 16, Usual),
        (1000, 10000, 16, Usual),
    ] {
        add("kmeans", extent, Box::new(move || kmeans(k, n, d)));
    }
    for (n, extent) in [(16, Quick), (128, Usual), (1024, Usual), (4096, Usual), (16392, Usual)] {
        add("llsq", extent, Box::new(move || llsq(n, 128)));
    }
    for (n, extent) in
        [(2500, Quick), (20_000, Usual), (160_000, Usual), (640_000, Usual), (1_280_000, Usual)]
    {
        add("lse", extent, Box::new(move || lse(n)));
    }
    for (n, s, extent) in [
        (1000, 1, Quick),
        (1000, 10, Usual),
        (1000, 100, Usual),
        (10000, 100, Usual),
        (100_000, 10, Usual),
        (100_000, 100, Full),
    ] {
        add("ode", extent, Box::new(move || ode(n, s)));
    }
    for (l, extent) in [(5, Quick), (6, Usual), (7, Usual), (8, Usual), (9, Full), (10, Full), (11, Full)] {
        add("det", extent, Box::new(move || det(l)));
    }
    add("particle", Quick, Box::new(|| nested("particle", 29651.0, json!({"w": 0}))));
    add("saddle", Quick, Box::new(|| nested("saddle", 26350.0, json!({"start": [1, 1]}))));
}

/// The small programs.
fn small(add: &mut Add<'_>) {
    use Extent::{Quick, Usual};
    for (n, d, extent) in [(1000, 10, Quick), (1000, 100, Usual), (10000, 100, Usual), (30_000, 100, Usual)] {
        add("logreg", extent, Box::new(move || logreg(n, d)));
    }
    for (batch, extent) in [(8, Quick), (32, Usual), (128, Usual), (512, Usual)] {
        add("mlp", extent, Box::new(move || mlp(Float::Double, batch)));
        add("mlp_f32", extent, Box::new(move || mlp(Float::Single, batch)));
    }
    for (n, steps, extent) in
        [(16, 10, Quick), (128, 100, Usual), (128, 1000, Usual), (512, 100, Usual), (1024, 50, Usual)]
    {
        add("stencil", extent, Box::new(move || stencil(n, steps)));
    }
    for (n, extent) in [(32, Quick), (100, Usual), (320, Usual), (1000, Usual)] {
        add("matvec", extent, Box::new(move || matvec(n)));
    }
    add("mult", Quick, Box::new(mult));
    for (n, extent) in [(1000, Quick), (10_000, Usual), (100_000, Usual), (1_000_000, Usual)] {
        add("dot", extent, Box::new(move || dot(n)));
    }
    add("rotate", Quick, Box::new(rotate));
    for (n, extent) in [(50, Quick), (100, Usual), (200, Usual), (400, Usual)] {
        add("neural", extent, Box::new(move || neural(n)));
    }
    for (steps, extent) in [(1000, Quick), (2000, Usual), (5000, Usual), (10_000, Usual)] {
        add("particles", extent, Box::new(move || particles(4, steps)));
    }
}

/// Along each dimension of each problem, steps of about three.
fn growth(out: &mut Vec<Planned>) {
    let mut along =
        |problem: &'static str, series: &'static str, sizes: &[usize], make: fn(usize) -> Workload| {
            for size in sizes.iter().copied() {
                let make = move || Workload { series, ..make(size) };
                out.push(Planned { problem, make: Box::new(make) });
            }
        };
    along("gmm", "n", &[300, 800, 2500, 7000, 20_000], |n| gmm(10, 25, n));
    along("gmm", "d", &[3, 6, 12, 24, 48, 90], |d| gmm(d, 25, 500));
    along("gmm", "k", &[6, 15, 40, 110, 300], |k| gmm(10, k, 500));
    along("ba", "p", &[5000, 15_000, 45_000, 130_000, 400_000], |p| ba(p / 800, p / 4, p));
    along("ht", "n", &[50, 150, 450, 1400, 4000, 12_000], |n| ht(n, 544));
    along("lstm", "c", &[300, 800, 2500, 7000, 20_000], |c| lstm(2, c));
    along("lstm", "l", &[1, 3, 5, 8], |l| lstm(l, 1500));
    along("kmeans", "n", &[700, 2000, 6000, 20_000, 60_000], |n| kmeans(50, n, 10));
    along("kmeans", "k", &[15, 40, 120, 350, 900], |k| kmeans(k, 3000, 10));
    along("kmeans", "d", &[3, 7, 15, 33, 70], |d| kmeans(50, 3000, d));
    along("llsq", "n", &[50, 200, 700, 2500, 9000, 30_000], |n| llsq(n, 128));
    along("llsq", "m", &[10, 30, 90, 270], |m| llsq(2000, m));
    along("lse", "n", &[1000, 6000, 50_000, 300_000, 900_000, 4_000_000], lse);
    along("ode", "n", &[300, 1500, 7000, 35_000, 150_000], |n| ode(n, 20));
    along("ode", "s", &[5, 15, 50, 150, 500], |s| ode(2000, s));
    along("det", "l", &[4, 5, 6, 7, 8], det);
    along("logreg", "n", &[300, 1000, 3000, 9000, 30_000], |n| logreg(n, 100));
    along("logreg", "d", &[5, 17, 50, 150, 450], |d| logreg(3000, d));
    along("mlp", "batch", &[12, 40, 100, 300, 700], |b| mlp(Float::Double, b));
    along("mlp_f32", "batch", &[12, 40, 100, 300, 700], |b| mlp(Float::Single, b));
    along("stencil", "cells", &[20, 60, 150, 400, 900], |n| stencil(n, 20));
    along("stencil", "steps", &[10, 40, 150, 600, 2000], |s| stencil(100, s));
    along("matvec", "cells", &[30, 100, 300, 900, 2200], matvec);
    along("dot", "n", &[300, 3000, 30_000, 300_000, 3_000_000], dot);
    along("neural", "n", &[20, 70, 150, 350, 800], neural);
    along("particles", "steps", &[500, 1500, 5000, 15_000], |s| particles(4, s));
    along("particles", "n", &[3, 10, 30, 100, 300], |n| particles(n, 1000));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_series_has_four_sizes_that_grow() {
        // Names and orders only: inputs are large.
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        workloads(&[], Extent::Growth).iter().for_each(|w| *counts.entry(w.problem).or_default() += 1);
        assert!(counts.values().all(|n| *n >= 4), "{counts:?}");
        let mut before: Option<Workload> = None;
        for w in workloads(&["det".into(), "llsq".into(), "matvec".into()], Extent::Growth) {
            let w = (w.make)();
            if let Some(b) = before.filter(|b| (b.problem, b.series) == (w.problem, w.series)) {
                let grows = w.work / b.work;
                assert!((1.5..=12.0).contains(&grows), "{} {}: {grows} times the work", w.problem, w.name);
            }
            before = Some(w);
        }
    }

    #[test]
    fn larger_extents_have_what_smaller_ones_have() {
        let count = |extent| workloads(&[], extent).len();
        assert!(count(Extent::Quick) < count(Extent::Usual) && count(Extent::Usual) < count(Extent::Full));
        let named = workloads(&["mlp".into()], Extent::Quick);
        assert!(named.len() == 1 && named[0].problem == "mlp");
    }
}
