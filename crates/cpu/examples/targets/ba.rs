//! Bundle adjustment: the two Jacobian rows of every observation, observations across lanes.
//!
//! Reverse mode by hand for each component, as in `benches/baseline/ba.c`. What varies is how rows of cameras and points come
//! into lanes, and how the 30 numbers of an observation leave them.

use crate::lane::Lane;
use crate::run::{Table, filled, room, time};
use crate::text::{Style, Text, V, WIDE};
use pullback_maths::Function;
use pullback_testkit::problems::uniform;
use std::cell::RefCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// An instruction gathers.
    Gather,
    /// Scalar loads, put into lanes.
    Scalars,
    /// Rows as vectors, transposed in registers.
    Transpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// An instruction scatters.
    Scatter,
    /// Lanes are taken out and stored one by one.
    Scalars,
    /// Interleaved to private memory, then copied row by row.
    Copy,
    /// Transposed in registers, stored as vectors.
    Transpose,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) style: Style,
    pub(crate) input: Input,
    pub(crate) output: Output,
}

pub(crate) const POINTERS: &[&str] = &["cams", "points", "weights", "feats", "obs", "out", "private"];
pub(crate) const SIZES: &[&str] = &["p"];
const WIDTH: usize = 30;

pub(crate) fn text(variant: Variant) -> String {
    let mut t = Text::new(variant.style);
    let lanes = variant.style.lanes;
    t.each("0", "%p", lanes, |t, first| {
        let twice = t.imul(first, "2");
        let cameras = rows(t, variant, "%cams", 11, &twice);
        let next = t.iadd(&twice, "1");
        let points = rows(t, variant, "%points", 3, &next);
        let w = t.load_lanes("%weights", first);
        let feat: Vec<V> = (0..2)
            .map(|c| {
                let from = t.iadd(&twice, &c.to_string());
                t.gather("%feats", &from, "2")
            })
            .collect();
        let out = observation(t, &cameras, &points, &w, &feat);
        store(t, variant, first, &out);
    });
    t.module(POINTERS, SIZES)
}

/// Element j of the row that every lane names in `obs[2 i + which]`.
fn rows(t: &mut Text, variant: Variant, memory: &str, width: usize, from: &str) -> Vec<V> {
    let lanes = variant.style.lanes;
    // The numbers of the rows, as integers.
    let bases: Vec<V> = (0..lanes)
        .map(|w| {
            let at = t.iadd(from, &(2 * w).to_string());
            let at = t.line(&format!("getelementptr i64, ptr %obs, i64 {at}"));
            let row = t.line(&format!("load i64, ptr {at}"));
            t.imul(&row, &width.to_string())
        })
        .collect();
    if lanes == 1 {
        return (0..width)
            .map(|j| {
                let at = t.iadd(&bases[0], &j.to_string());
                t.load(memory, &at)
            })
            .collect();
    }
    let vector = t.vector();
    match variant.input {
        Input::Gather => {
            let mut all = "poison".to_owned();
            for (w, base) in bases.iter().enumerate() {
                all = t.line(&format!("insertelement <{lanes} x i64> {all}, i64 {base}, i64 {w}"));
            }
            (0..width)
                .map(|j| {
                    let at = t.at(memory, &j.to_string());
                    t.gather_at(&at, &all)
                })
                .collect()
        }
        Input::Scalars => (0..width)
            .map(|j| {
                let mut all = "poison".to_owned();
                for (w, base) in bases.iter().enumerate() {
                    let at = t.iadd(base, &j.to_string());
                    let x = t.load(memory, &at);
                    all = t.line(&format!("insertelement {vector} {all}, double {x}, i64 {w}"));
                }
                all
            })
            .collect(),
        Input::Transpose => {
            let mut columns = Vec::new();
            for start in (0..width).step_by(8) {
                let count = (width - start).min(8);
                let group: Vec<V> = bases.iter().map(|base| part(t, memory, base, start, count)).collect();
                columns.extend(transpose(t, &group).into_iter().take(count));
            }
            columns
        }
    }
}

/// `count` numbers of a row as eight lanes.
fn part(t: &mut Text, memory: &str, base: &str, start: usize, count: usize) -> V {
    let at = t.iadd(base, &start.to_string());
    let at = t.at(memory, &at);
    if count == 8 {
        return t.line(&format!("load <8 x double>, ptr {at}, align 8"));
    }
    t.declare("declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)".to_owned());
    let mask = mask(count);
    t.line(&format!(
        "call <8 x double> @llvm.masked.load.v8f64.p0(ptr {at}, i32 8, <8 x i1> {mask}, <8 x double> zeroinitializer)"
    ))
}

fn mask(count: usize) -> String {
    let bits: Vec<&str> = (0..8).map(|i| if i < count { "i1 true" } else { "i1 false" }).collect();
    format!("<{}>", bits.join(", "))
}

/// Eight rows of eight to eight columns, in three rounds of shuffles.
pub(crate) fn transpose(t: &mut Text, rows: &[V]) -> Vec<V> {
    let mut all = rows.to_vec();
    assert_eq!(all.len(), 8);
    for distance in [4, 2, 1] {
        // Exchange the halves of blocks `distance` apart.
        let mut next = all.clone();
        for a in 0..8 {
            if a & distance != 0 {
                continue;
            }
            let b = a + distance;
            let pick = |high: bool| {
                let list: Vec<String> = (0..8)
                    .map(|i| {
                        let from_b = i & distance != 0;
                        let index = match (high, from_b) {
                            (false, false) => i,
                            (false, true) => 8 + i - distance,
                            (true, false) => i + distance,
                            (true, true) => 8 + i,
                        };
                        format!("i32 {index}")
                    })
                    .collect();
                format!("<8 x i32> <{}>", list.join(", "))
            };
            let shuffle = |t: &mut Text, picks: String| {
                t.line(&format!("shufflevector <8 x double> {}, <8 x double> {}, {picks}", all[a], all[b]))
            };
            next[a] = shuffle(t, pick(false));
            next[b] = shuffle(t, pick(true));
        }
        all = next;
    }
    all
}

fn observation(t: &mut Text, cam: &[V], point: &[V], w: &V, feat: &[V]) -> Vec<V> {
    let style = t.style;
    let cell = RefCell::new(std::mem::replace(t, Text::new(style)));
    let out = rows_of(&cell, cam, point, w, feat);
    *t = cell.into_inner();
    out
}

fn cross<'a>(a: &[Lane<'a>], b: &[Lane<'a>]) -> Vec<Lane<'a>> {
    [(1, 2), (2, 0), (0, 1)].iter().map(|(i, j)| &a[*i] * &b[*j] - &a[*j] * &b[*i]).collect()
}
fn dot<'a>(a: &[Lane<'a>], b: &[Lane<'a>]) -> Lane<'a> {
    &a[0] * &b[0] + &a[1] * &b[1] + &a[2] * &b[2]
}

fn rows_of(cell: &RefCell<Text>, cam: &[V], point: &[V], w: &V, feat: &[V]) -> Vec<V> {
    let lane = |v: &V| Lane::new(cell, v.clone());
    let cam: Vec<Lane> = cam.iter().map(lane).collect();
    let point: Vec<Lane> = point.iter().map(lane).collect();
    let w = lane(w);
    let feat: Vec<Lane> = feat.iter().map(lane).collect();
    let (zero, one) = (w.constant(0.0), w.constant(1.0));
    let two = w.constant(2.0);

    let r = &cam[0..3];
    let x: Vec<Lane> = (0..3).map(|j| &point[j] - &cam[3 + j]).collect();
    let squared = &r[0] * &r[0] + &r[1] * &r[1] + &r[2] * &r[2];
    let turns = cell.borrow_mut().compare("une", &squared.name, &zero.name);
    let angle = squared.or(&turns, &one).sqrt();
    let inverse = &one / &angle;
    let scale = inverse.or(&turns, &zero);
    let sn = angle.call(Function::Sin).or(&turns, &one);
    let cs = angle.call(Function::Cos).or(&turns, &one);
    let a: Vec<Lane> = (0..3).map(|j| &r[j] * &scale).collect();
    let turned = cross(&a, &x);
    let along = dot(&a, &x);
    let u = &one - &cs;
    let y: Vec<Lane> = (0..3).map(|j| &cs * &x[j] + &sn * &turned[j] + &u * &along * &a[j]).collect();
    let by_angle: Vec<Lane> = (0..3).map(|j| &cs * &turned[j] + &sn * (&along * &a[j] - &x[j])).collect();
    let depth = &one / &y[2];
    let p = [&y[0] * &depth, &y[1] * &depth];
    let s = &p[0] * &p[0] + &p[1] * &p[1];
    let (f, k1, k2) = (&cam[6], &cam[9], &cam[10]);
    let distortion = &one + &s * (k1 + &s * k2);
    let fd = f * &distortion * &depth;
    let fd1 = &two * f * (k1 + &two * k2 * &s) * &depth;
    let mut out = Vec::new();
    for c in 0..2 {
        let direct = |k: usize| if k == c { fd.clone() } else { zero.clone() };
        let b0 = direct(0) + &fd1 * &p[c] * &p[0];
        let b1 = direct(1) + &fd1 * &p[c] * &p[1];
        let b2 = -(&b0 * &p[0] + &b1 * &p[1]);
        let b = [b0, b1, b2];
        let ab = dot(&a, &b);
        let xb = cross(&x, &b);
        let v: Vec<Lane> = (0..3).map(|j| &sn * &xb[j] + &u * (&along * &b[j] + &ab * &x[j])).collect();
        let av = dot(&a, &v);
        let bt = dot(&b, &by_angle);
        for j in 0..3 {
            out.push(&w * (&a[j] * &bt + (&v[j] - &a[j] * &av) * &inverse));
        }
        let ba = cross(&b, &a);
        let dx: Vec<Lane> = (0..3).map(|j| &w * (&cs * &b[j] + &sn * &ba[j] + &u * &ab * &a[j])).collect();
        out.extend(dx.iter().map(|d| -d));
        out.push(&w * &distortion * &p[c]);
        out.push(if c == 0 { w.clone() } else { zero.clone() });
        out.push(if c == 1 { w.clone() } else { zero.clone() });
        let radial = &w * f * &p[c] * &s;
        out.push(radial.clone());
        out.push(&radial * &s);
        out.extend(dx);
        out.push(f * &distortion * &p[c] + &cam[7 + c] - &feat[c]);
    }
    out.into_iter().map(|l| l.name).collect()
}

fn store(t: &mut Text, variant: Variant, first: &str, out: &[V]) {
    let lanes = variant.style.lanes;
    let vector = t.vector();
    let start = t.imul(first, &WIDTH.to_string());
    if lanes == 1 {
        for (j, x) in out.iter().enumerate() {
            let at = t.iadd(&start, &j.to_string());
            t.store(x, "%out", &at);
        }
        return;
    }
    match variant.output {
        Output::Scatter => {
            let ty = format!("<{lanes} x ptr>");
            t.declare(format!(
                "declare void @llvm.masked.scatter.v{lanes}f64.v{lanes}p0({vector}, {ty}, i32, <{lanes} x i1>)"
            ));
            let steps: Vec<_> = (0..lanes).map(|w| format!("i64 {}", w * WIDTH)).collect();
            let all = format!("<{}>", vec!["i1 true"; lanes].join(", "));
            for (j, x) in out.iter().enumerate() {
                let at = t.iadd(&start, &j.to_string());
                let at = t.at("%out", &at);
                let at = t
                    .line(&format!("getelementptr double, ptr {at}, <{lanes} x i64> <{}>", steps.join(", ")));
                t.raw(&format!(
                    "call void @llvm.masked.scatter.v{lanes}f64.v{lanes}p0({vector} {x}, {ty} {at}, i32 8, <{lanes} x i1> {all})"
                ));
            }
        }
        Output::Scalars => {
            for (j, x) in out.iter().enumerate() {
                for w in 0..lanes {
                    let one = t.line(&format!("extractelement {vector} {x}, i64 {w}"));
                    let at = t.iadd(&start, &(w * WIDTH + j).to_string());
                    t.store(&one, "%out", &at);
                }
            }
        }
        Output::Copy => {
            for (j, x) in out.iter().enumerate() {
                t.store_lanes(x, "%private", &(j * lanes).to_string());
            }
            t.each("0", &lanes.to_string(), 1, |t, w| {
                let to = t.imul(w, &WIDTH.to_string());
                let to = t.iadd(&start, &to);
                t.each("0", &WIDTH.to_string(), 1, |t, j| {
                    let from = t.imul(j, &lanes.to_string());
                    let from = t.iadd(&from, w);
                    let x = t.load("%private", &from);
                    let to = t.iadd(&to, j);
                    t.store(&x, "%out", &to);
                });
            });
        }
        Output::Transpose => {
            t.declare(
                "declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)".to_owned(),
            );
            for block in 0..lanes / 8 {
                let parts: Vec<V> = out
                    .iter()
                    .map(|x| {
                        if lanes == 8 {
                            return x.clone();
                        }
                        let list: Vec<_> = (0..8).map(|i| format!("i32 {}", 8 * block + i)).collect();
                        t.line(&format!(
                            "shufflevector {vector} {x}, {vector} poison, <8 x i32> <{}>",
                            list.join(", ")
                        ))
                    })
                    .collect();
                for from in (0..WIDTH).step_by(8) {
                    let count = (WIDTH - from).min(8);
                    let mut group: Vec<V> = parts[from..from + count].to_vec();
                    group.resize(8, "zeroinitializer".to_owned());
                    for (w, row) in transpose(t, &group).iter().enumerate() {
                        let at = t.iadd(&start, &((8 * block + w) * WIDTH + from).to_string());
                        let at = t.at("%out", &at);
                        if count == 8 {
                            t.raw(&format!("store <8 x double> {row}, ptr {at}, align 8"));
                        } else {
                            let mask = mask(count);
                            t.raw(&format!(
                                "call void @llvm.masked.store.v8f64.p0(<8 x double> {row}, ptr {at}, i32 8, <8 x i1> {mask})"
                            ));
                        }
                    }
                }
            }
        }
    }
}

/// All variants.
pub(crate) fn table() {
    let sizes = [49, 7776, 31_840];
    let table = Table::new("ba", &sizes, 100);
    let [n, m, p] = sizes;
    let near = [0.2, -0.1, 0.3, 0.1, 0.2, -5.0, 400.0, 5.0, -8.0, 0.01, 0.002];
    let cameras: Vec<f64> = (0..n).flat_map(|c| near.map(|x| x * (1.0 + 0.01 * c as f64))).collect();
    let observed: Vec<f64> = (0..p).flat_map(|i| [i % n, i % m]).map(|i| f64::from_bits(i as u64)).collect();
    let wide = Style { reassociate: false, ..WIDE };
    let lanes = |lanes: usize| Style { lanes, ..wide };
    let variants = [
        ("scalar text, contraction", lanes(1), Input::Scalars, Output::Scalars),
        (
            "4 lanes, scalar loads, scalar stores",
            Style { width: 256, ..lanes(4) },
            Input::Scalars,
            Output::Scalars,
        ),
        ("8 lanes, scalar loads, scalar stores", wide, Input::Scalars, Output::Scalars),
        ("8 lanes, scalar loads, transposed", wide, Input::Scalars, Output::Transpose),
        (
            "8 lanes, scalar loads, transposed, no contraction",
            Style { contract: false, ..wide },
            Input::Scalars,
            Output::Transpose,
        ),
        ("8 lanes, scalar loads, copied from private memory", wide, Input::Scalars, Output::Copy),
        ("8 lanes, transposed, transposed", wide, Input::Transpose, Output::Transpose),
        ("8 lanes, gathered, transposed", wide, Input::Gather, Output::Transpose),
        ("8 lanes, gathered, scattered", wide, Input::Gather, Output::Scatter),
        ("16 lanes, scalar loads, transposed", lanes(16), Input::Scalars, Output::Transpose),
        ("32 lanes, scalar loads, transposed", lanes(32), Input::Scalars, Output::Transpose),
    ];
    for (name, style, input, output) in variants {
        let mut memory = [
            filled(&cameras),
            filled(&uniform(21, 3 * m)),
            filled(&uniform(22, p)),
            filled(&uniform(23, 2 * p)),
            filled(&observed),
            room(30 * p),
            room(30 * 32),
        ];
        let best = time(&text(Variant { style, input, output }), &mut memory, &[p], 100);
        let weights = uniform(22, p).into_iter().map(|w| -2.0 * w);
        let found: Vec<f64> = memory[5].read().iter().copied().chain(weights).collect();
        table.row(name, best, &found);
    }
}
