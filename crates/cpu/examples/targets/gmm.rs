//! Gaussian mixture: the sums over the points of the gradient of the log likelihood, points across lanes.
//!
//! Per block of points: transpose the rows, then for every component y = x - mu, z = Q y, beta; softmax over components;
//! then the sums R_k, S_k = sum r z and G_k = sum r z y^T. Private arrays are interleaved: element j of all lanes lies side
//! by side. Sizes are known at run time only.

use crate::run::{Memory, Table, filled, room, time};
use crate::text::{Style, Text, V, WIDE};
use pullback_maths::Function;
use pullback_testkit::problems::uniform;

/// How sums over points are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sums {
    /// Every lane has accumulators of its own in memory; they are added up at the end.
    PerLane,
    /// The lanes of each product are added up at once.
    Horizontal,
    /// Strips of so many blocks: all of them forward, then component by component with accumulators per lane.
    PerLaneByStrips(usize),
    /// Strips; each sum is kept in a register over the strip, in tiles of rows and columns.
    Tiles(usize, usize, usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) style: Style,
    pub(crate) sums: Sums,
    /// Skip the products with the zeros above the diagonal.
    pub(crate) triangular: bool,
}

pub(crate) const POINTERS: &[&str] = &[
    "x", "weight", "mu", "q", "g", "rz", "r", "value", "xs", "ys", "zs", "betas", "lanes_g", "lanes_rz",
    "lanes_r",
];
pub(crate) const SIZES: &[&str] = &["n", "d", "k"];

struct Kernel {
    variant: Variant,
    lanes: usize,
    vector: String,
    /// d * lanes, d * d
    dw: V,
    dd: V,
}

pub(crate) fn text(variant: Variant) -> String {
    let mut t = Text::new(variant.style);
    let lanes = variant.style.lanes;
    let vector = t.vector();
    let dw = t.imul("%d", &lanes.to_string());
    let dd = t.imul("%d", "%d");
    let kernel = Kernel { variant, lanes, vector, dw, dd };
    kernel.write(&mut t);
    t.module(POINTERS, SIZES)
}

impl Kernel {
    fn at(&self, t: &mut Text, element: &str) -> V {
        t.imul(element, &self.lanes.to_string())
    }

    fn write(&self, t: &mut Text) {
        let zero = t.constant(0.0);
        let value = t.variable(&self.vector, &zero);
        let kd = t.imul("%k", "%d");
        let kdd = t.imul("%k", &self.dd);
        for (memory, count) in [("%lanes_g", &kdd), ("%lanes_rz", &kd), ("%lanes_r", &"%k".to_owned())] {
            t.each("0", count, 1, |t, i| {
                let at = self.at(t, i);
                let zero = t.constant(0.0);
                t.store_lanes(&zero, memory, &at);
            });
        }
        for (memory, count) in [("%g", &kdd), ("%rz", &kd), ("%r", &"%k".to_owned())] {
            t.each("0", count, 1, |t, i| t.store("0.0", memory, i));
        }
        match self.variant.sums {
            Sums::PerLane | Sums::Horizontal => t.each("0", "%n", self.lanes, |t, first| {
                self.forward(t, first, "0", &value);
                t.each("0", "%k", 1, |t, k| self.accumulate(t, k, "0"));
            }),
            Sums::PerLaneByStrips(blocks) => self.strips(t, blocks, &value, |t, used| {
                t.each("0", "%k", 1, |t, k| t.each("0", used, 1, |t, s| self.accumulate(t, k, s)));
            }),
            Sums::Tiles(blocks, rows, columns) => self.strips(t, blocks, &value, |t, used| {
                t.each("0", "%k", 1, |t, k| self.tiles(t, k, used, rows, columns));
            }),
        }
        for (from, to, count) in
            [("%lanes_g", "%g", &kdd), ("%lanes_rz", "%rz", &kd), ("%lanes_r", "%r", &"%k".to_owned())]
        {
            t.each("0", count, 1, |t, i| {
                let at = self.at(t, i);
                let all = t.load_lanes(from, &at);
                let sum = t.sum(&all);
                let old = t.load(to, i);
                let sum = t.line(&format!("fadd double {sum}, {old}"));
                t.store(&sum, to, i);
            });
        }
        let all = t.get(&self.vector, &value);
        let sum = t.sum(&all);
        t.store(&sum, "%value", "0");
    }

    fn strips(&self, t: &mut Text, blocks: usize, value: &str, back: impl FnOnce(&mut Text, &str)) {
        let step = blocks * self.lanes;
        t.each("0", "%n", step, |t, first| {
            let left = t.isub("%n", first);
            let some = t.idiv(&left, &self.lanes.to_string());
            let few = t.line(&format!("icmp slt i64 {some}, {blocks}"));
            let used = t.line(&format!("select i1 {few}, i64 {some}, i64 {blocks}"));
            t.each("0", &used, 1, |t, s| {
                let at = self.at(t, s);
                let first = t.iadd(first, &at);
                self.forward(t, &first, s, value);
            });
            back(t, &used);
        });
    }

    /// Element `i` of component `k` of block `s`, in numbers.
    fn private(&self, t: &mut Text, s: &str, k: &str) -> V {
        let a = t.imul(s, "%k");
        let a = t.iadd(&a, k);
        t.imul(&a, &self.dw)
    }
    fn columns(&self, t: &mut Text, i: &str) -> V {
        if self.variant.triangular { t.iadd(i, "1") } else { "%d".to_owned() }
    }

    fn forward(&self, t: &mut Text, first: &str, s: &str, value: &str) {
        let lanes = self.lanes.to_string();
        let start = t.imul(first, "%d");
        t.each("0", "%d", 1, |t, j| {
            let from = t.iadd(&start, j);
            let x = t.gather("%x", &from, "%d");
            let at = self.at(t, j);
            t.store_lanes(&x, "%xs", &at);
        });
        let low = t.constant(f64::NEG_INFINITY);
        let top = t.variable(&self.vector, &low);
        let first_beta = t.imul(s, "%k");
        t.each("0", "%k", 1, |t, k| {
            let private = self.private(t, s, k);
            let kd = t.imul(k, "%d");
            t.each("0", "%d", 1, |t, j| {
                let at = t.imul(j, &lanes);
                let x = t.load_lanes("%xs", &at);
                let from = t.iadd(&kd, j);
                let m = t.load("%mu", &from);
                let m = t.splat(&m);
                let y = t.sub(&x, &m);
                let to = t.iadd(&private, &at);
                t.store_lanes(&y, "%ys", &to);
            });
            let zero = t.constant(0.0);
            let squares = t.variable(&self.vector, &zero);
            let factor = t.imul(k, &self.dd);
            t.each("0", "%d", 1, |t, i| {
                let zero = t.constant(0.0);
                let z = t.variable(&self.vector, &zero);
                let row = t.imul(i, "%d");
                let row = t.iadd(&factor, &row);
                let end = self.columns(t, i);
                t.each("0", &end, 1, |t, j| {
                    let from = t.iadd(&row, j);
                    let q = t.load("%q", &from);
                    let q = t.splat(&q);
                    let at = t.imul(j, &lanes);
                    let at = t.iadd(&private, &at);
                    let y = t.load_lanes("%ys", &at);
                    let old = t.get(&self.vector, &z);
                    let new = t.mul_add(&q, &y, &old);
                    t.set(&self.vector, &z, &new);
                });
                let z = t.get(&self.vector, &z);
                let at = t.imul(i, &lanes);
                let at = t.iadd(&private, &at);
                t.store_lanes(&z, "%zs", &at);
                let old = t.get(&self.vector, &squares);
                let new = t.mul_add(&z, &z, &old);
                t.set(&self.vector, &squares, &new);
            });
            let weight = t.load("%weight", k);
            let weight = t.splat(&weight);
            let squares = t.get(&self.vector, &squares);
            let half = t.constant(0.5);
            let beta = t.mul_sub(&half, &squares, &weight);
            let at = t.iadd(&first_beta, k);
            let at = t.imul(&at, &lanes);
            t.store_lanes(&beta, "%betas", &at);
            let old = t.get(&self.vector, &top);
            let new = t.max(&old, &beta);
            t.set(&self.vector, &top, &new);
        });
        let zero = t.constant(0.0);
        let sum = t.variable(&self.vector, &zero);
        let highest = t.get(&self.vector, &top);
        t.each("0", "%k", 1, |t, k| {
            let at = t.iadd(&first_beta, k);
            let at = t.imul(&at, &lanes);
            let beta = t.load_lanes("%betas", &at);
            let shifted = t.sub(&beta, &highest);
            let e = t.call(Function::Exp, &shifted);
            t.store_lanes(&e, "%betas", &at);
            let old = t.get(&self.vector, &sum);
            let new = t.add(&old, &e);
            t.set(&self.vector, &sum, &new);
        });
        let sum = t.get(&self.vector, &sum);
        let log = t.call(Function::Log, &sum);
        let all = t.get(&self.vector, value);
        let all = t.add(&all, &log);
        let all = t.add(&all, &highest);
        t.set(&self.vector, value, &all);
        let one = t.constant(1.0);
        let inverse = t.div(&one, &sum);
        t.each("0", "%k", 1, |t, k| {
            let at = t.iadd(&first_beta, k);
            let at = t.imul(&at, &lanes);
            let e = t.load_lanes("%betas", &at);
            let r = t.mul(&e, &inverse);
            t.store_lanes(&r, "%betas", &at);
        });
    }

    /// `memory[element] += x`, per lane or at once over the lanes.
    fn add_to(&self, t: &mut Text, name: &str, element: &str, x: &str) {
        if self.variant.sums == Sums::Horizontal {
            let sum = t.sum(x);
            let memory = format!("%{name}");
            let old = t.load(&memory, element);
            let new = t.line(&format!("fadd reassoc double {sum}, {old}"));
            t.store(&new, &memory, element);
        } else {
            let memory = format!("%lanes_{name}");
            let at = self.at(t, element);
            let old = t.load_lanes(&memory, &at);
            let new = t.add(&old, x);
            t.store_lanes(&new, &memory, &at);
        }
    }

    fn weight(&self, t: &mut Text, k: &str, s: &str) -> V {
        let beta = t.imul(s, "%k");
        let beta = t.iadd(&beta, k);
        let beta = self.at(t, &beta);
        t.load_lanes("%betas", &beta)
    }

    fn accumulate(&self, t: &mut Text, k: &str, s: &str) {
        let lanes = self.lanes.to_string();
        let r = self.weight(t, k, s);
        self.add_to(t, "r", k, &r);
        let private = self.private(t, s, k);
        let kd = t.imul(k, "%d");
        let g = t.imul(k, &self.dd);
        t.each("0", "%d", 1, |t, i| {
            let at = t.imul(i, &lanes);
            let at = t.iadd(&private, &at);
            let z = t.load_lanes("%zs", &at);
            let rz = t.mul(&r, &z);
            let to = t.iadd(&kd, i);
            self.add_to(t, "rz", &to, &rz);
            let row = t.imul(i, "%d");
            let row = t.iadd(&g, &row);
            let end = self.columns(t, i);
            t.each("0", &end, 1, |t, j| {
                let at = t.imul(j, &lanes);
                let at = t.iadd(&private, &at);
                let y = t.load_lanes("%ys", &at);
                let product = t.mul(&rz, &y);
                let to = t.iadd(&row, j);
                self.add_to(t, "g", &to, &product);
            });
        });
    }

    /// The sums of one component over a strip, `rows` times `columns` of them in registers at a time.
    fn tiles(&self, t: &mut Text, k: &str, used: &str, rows: usize, columns: usize) {
        let lanes = self.lanes.to_string();
        let g = t.imul(k, &self.dd);
        let kd = t.imul(k, "%d");
        // r z once, and the small sums.
        t.each("0", used, 1, |t, s| {
            let r = self.weight(t, k, s);
            self.add_to(t, "r", k, &r);
            let private = self.private(t, s, k);
            t.each("0", "%d", 1, |t, i| {
                let at = t.imul(i, &lanes);
                let at = t.iadd(&private, &at);
                let z = t.load_lanes("%zs", &at);
                let rz = t.mul(&r, &z);
                t.store_lanes(&rz, "%zs", &at);
                let to = t.iadd(&kd, i);
                self.add_to(t, "rz", &to, &rz);
            });
        });
        t.each("0", "%d", rows, |t, i| {
            let end = if self.variant.triangular { t.iadd(i, &rows.to_string()) } else { "%d".to_owned() };
            t.each("0", &end, columns, |t, j| {
                let zero = t.constant(0.0);
                let sums: Vec<Vec<V>> = (0..rows)
                    .map(|_| (0..columns).map(|_| t.variable(&self.vector, &zero)).collect())
                    .collect();
                t.each("0", used, 1, |t, s| {
                    let private = self.private(t, s, k);
                    let element = |t: &mut Text, memory: &str, i: &str, plus: usize| {
                        let i = t.iadd(i, &plus.to_string());
                        let at = t.imul(&i, &lanes);
                        let at = t.iadd(&private, &at);
                        t.load_lanes(memory, &at)
                    };
                    let z: Vec<V> = (0..rows).map(|a| element(t, "%zs", i, a)).collect();
                    let y: Vec<V> = (0..columns).map(|b| element(t, "%ys", j, b)).collect();
                    for (sums, z) in sums.iter().zip(&z) {
                        for (sum, y) in sums.iter().zip(&y) {
                            let old = t.get(&self.vector, sum);
                            let new = t.mul_add(z, y, &old);
                            t.set(&self.vector, sum, &new);
                        }
                    }
                });
                for (a, sums) in sums.iter().enumerate() {
                    let i = t.iadd(i, &a.to_string());
                    let row = t.imul(&i, "%d");
                    let row = t.iadd(&g, &row);
                    for (b, sum) in sums.iter().enumerate() {
                        let to = t.iadd(&row, j);
                        let to = t.iadd(&to, &b.to_string());
                        let all = t.get(&self.vector, sum);
                        let sum = t.sum(&all);
                        let old = t.load("%g", &to);
                        let new = t.line(&format!("fadd reassoc double {sum}, {old}"));
                        t.store(&new, "%g", &to);
                    }
                }
            });
        });
    }
}

/// All variants.
pub(crate) fn table() {
    let (n, d, k) = (1024usize, 10usize, 25usize);
    let table = Table::new("gmm", &[n, d, k], 300);
    let inputs = Inputs::new(n, d, k);
    let lanes = |lanes: usize| Style { lanes, ..WIDE };
    let strict = Style { lanes: 1, contract: false, reassociate: false, ..WIDE };
    use Sums::{Horizontal, PerLane, PerLaneByStrips, Tiles};
    let variants = [
        ("scalar text, strict", strict, PerLane, true),
        ("scalar text, any order and contraction", lanes(1), PerLane, true),
        ("4 lanes, sums per lane", Style { width: 256, ..lanes(4) }, PerLane, true),
        ("8 lanes, sums per lane", WIDE, PerLane, true),
        ("8 lanes, sums per lane, no contraction", Style { contract: false, ..WIDE }, PerLane, true),
        ("8 lanes, sums per lane, zeros multiplied too", WIDE, PerLane, false),
        ("16 lanes, sums per lane", lanes(16), PerLane, true),
        ("32 lanes, sums per lane", lanes(32), PerLane, true),
        ("64 lanes, sums per lane", lanes(64), PerLane, true),
        ("8 lanes, horizontal sums", WIDE, Horizontal, true),
        ("16 lanes, horizontal sums", lanes(16), Horizontal, true),
        ("32 lanes, horizontal sums", lanes(32), Horizontal, true),
        (
            "32 lanes, horizontal sums, no contraction",
            Style { contract: false, ..lanes(32) },
            Horizontal,
            true,
        ),
        ("32 lanes, horizontal sums, zeros multiplied too", lanes(32), Horizontal, false),
        ("64 lanes, horizontal sums", lanes(64), Horizontal, true),
        ("8 lanes, strips of 8 blocks, sums per lane", WIDE, PerLaneByStrips(8), true),
        ("8 lanes, strips of 8 blocks, sums in registers", WIDE, Tiles(8, 1, 1), true),
        ("8 lanes, strips of 8 blocks, tiles 2 x 2 in registers", WIDE, Tiles(8, 2, 2), true),
        ("8 lanes, all blocks, tiles 2 x 2 in registers", WIDE, Tiles(128, 2, 2), true),
        ("32 lanes, strips of 2 blocks, sums in registers", lanes(32), Tiles(2, 1, 1), true),
        ("32 lanes, strips of 2 blocks, tiles 2 x 2 in registers", lanes(32), Tiles(2, 2, 2), true),
    ];
    for (name, style, sums, triangular) in variants {
        let mut memory = inputs.memory(style.lanes);
        let best = time(&text(Variant { style, sums, triangular }), &mut memory, &[n, d, k], 300);
        table.row(name, best, &inputs.gradient(&memory));
    }
}

struct Inputs {
    n: usize,
    d: usize,
    k: usize,
    alpha: Vec<f64>,
    q: Vec<f64>,
    l: Vec<f64>,
    /// Q of every component, with the zeros.
    factor: Vec<f64>,
}

impl Inputs {
    fn new(n: usize, d: usize, k: usize) -> Inputs {
        let (alpha, q, l) = (uniform(12, k), uniform(14, k * d), uniform(15, k * d * (d - 1) / 2));
        let mut factor = vec![0.0; k * d * d];
        for (c, at, i, j) in cells(d, k) {
            factor[(c * d + i) * d + j] = if i == j { q[c * d + j].exp() } else { l[at] };
        }
        Inputs { n, d, k, alpha, q, l, factor }
    }

    fn memory(&self, lanes: usize) -> Vec<Memory> {
        let Inputs { n, d, k, .. } = *self;
        let log_det = |c: usize| self.q[c * d..][..d].iter().sum::<f64>();
        let weight: Vec<f64> = (0..k).map(|c| self.alpha[c] + log_det(c)).collect();
        // Private memory of all blocks that a strip may have.
        let strip = n / 8 * k * lanes;
        vec![
            filled(&uniform(11, n * d)),
            filled(&weight),
            filled(&uniform(13, k * d)),
            filled(&self.factor),
            room(k * d * d),
            room(k * d),
            room(k),
            room(1),
            room(d * lanes),
            room(strip * d),
            room(strip * d),
            room(strip),
            room(k * d * d * lanes),
            room(k * d * lanes),
            room(k * lanes),
        ]
    }

    /// The gradient from the sums, as in `benches/baseline/gmm.c`, with gamma 1 and m 0.
    fn gradient(&self, memory: &[Memory]) -> Vec<f64> {
        let Inputs { n, d, k, .. } = *self;
        let (g, rz, r) = (memory[4].read(), memory[5].read(), memory[6].read());
        let total: f64 = self.alpha.iter().map(|a| a.exp()).sum();
        let mut out: Vec<f64> = (0..k).map(|c| r[c] - n as f64 * self.alpha[c].exp() / total).collect();
        for c in 0..k {
            let column =
                |j: usize| (j..d).map(|i| self.factor[(c * d + i) * d + j] * rz[c * d + i]).sum::<f64>();
            out.extend((0..d).map(column));
        }
        for c in 0..k {
            let e = |j: usize| self.q[c * d + j].exp();
            out.extend((0..d).map(|j| r[c] - e(j) * g[(c * d + j) * d + j] - e(j) * e(j)));
        }
        let below = cells(d, k).into_iter().filter(|(_, _, i, j)| i != j);
        out.extend(below.map(|(c, at, i, j)| -g[(c * d + i) * d + j] - self.l[at]));
        out
    }
}

/// Component, place in l, row and column of every cell of the triangles, by columns.
fn cells(d: usize, k: usize) -> Vec<(usize, usize, usize, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    for c in 0..k {
        for j in 0..d {
            for i in j..d {
                out.push((c, at, i, j));
                at += usize::from(i != j);
            }
        }
    }
    out
}
