//! k-means: the gradient of the cost in the centroids, points across lanes.
//!
//! The nearest centroid of every lane, then the row of the winner gets 2 (c - x): an accumulation at an index that differs
//! from lane to lane.

use crate::run::{Table, filled, room, time};
use crate::text::{Style, Text, V, WIDE};
use pullback_testkit::problems::uniform;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The points of a block are transposed into private memory, once.
    Packed,
    /// Every use loads the elements of all lanes one by one.
    Strided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Winner {
    /// For each lane, a loop over the row, which LLVM makes vectors of.
    Rows,
    /// For each element, all lanes one by one.
    Scalars,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) style: Style,
    pub(crate) input: Input,
    pub(crate) winner: Winner,
}

pub(crate) const POINTERS: &[&str] = &["points", "centroids", "out", "xs"];
pub(crate) const SIZES: &[&str] = &["n", "k", "d"];

pub(crate) fn text(variant: Variant) -> String {
    let mut t = Text::new(variant.style);
    let lanes = variant.style.lanes;
    let (vector, count) = (t.vector(), lanes.to_string());
    let integers = t.integers();
    let kd = t.imul("%k", "%d");
    t.each("0", &kd, 1, |t, i| t.store("0.0", "%out", i));
    t.each("0", "%n", lanes, |t, first| {
        let start = t.imul(first, "%d");
        if variant.input == Input::Packed {
            t.each("0", "%d", 1, |t, j| {
                let from = t.iadd(&start, j);
                let x = t.strided("%points", &from, "%d");
                let at = t.imul(j, &count);
                t.store_lanes(&x, "%xs", &at);
            });
        }
        let high = t.constant(f64::INFINITY);
        let least = t.variable(&vector, &high);
        let zeros = t.integer(0);
        let nearest = t.variable(&integers, &zeros);
        t.each("0", "%k", 1, |t, c| {
            let zero = t.constant(0.0);
            let distance = t.variable(&vector, &zero);
            let row = t.imul(c, "%d");
            t.each("0", "%d", 1, |t, j| {
                let x = match variant.input {
                    Input::Packed => {
                        let at = t.imul(j, &count);
                        t.load_lanes("%xs", &at)
                    }
                    Input::Strided => {
                        let from = t.iadd(&start, j);
                        t.strided("%points", &from, "%d")
                    }
                };
                let at = t.iadd(&row, j);
                let c = t.load("%centroids", &at);
                let c = t.splat(&c);
                let away = t.sub(&c, &x);
                let old = t.get(&vector, &distance);
                let new = t.mul_add(&away, &away, &old);
                t.set(&vector, &distance, &new);
            });
            let distance = t.get(&vector, &distance);
            let old = t.get(&vector, &least);
            let is_less = t.compare("olt", &distance, &old);
            let new = t.select(&is_less, &distance, &old);
            t.set(&vector, &least, &new);
            let old = t.get(&integers, &nearest);
            let all = t.splat_integer(c);
            let new = t.select_integers(&is_less, &all, &old);
            t.set(&integers, &nearest, &new);
        });
        let nearest = t.get(&integers, &nearest);
        let rows: Vec<V> = (0..lanes)
            .map(|w| {
                let one = match lanes {
                    1 => nearest.clone(),
                    _ => t.line(&format!("extractelement {integers} {nearest}, i64 {w}")),
                };
                t.imul(&one, "%d")
            })
            .collect();
        let add = |t: &mut Text, w: usize, j: &str| {
            let at = t.iadd(&rows[w], j);
            let c = t.load("%centroids", &at);
            let from = t.imul(&w.to_string(), "%d");
            let from = t.iadd(&start, &from);
            let from = t.iadd(&from, j);
            let x = t.load("%points", &from);
            let away = t.line(&format!("fsub double {c}, {x}"));
            let twice = t.line(&format!("fmul double {away}, 2.0"));
            let old = t.load("%out", &at);
            let new = t.line(&format!("fadd double {old}, {twice}"));
            t.store(&new, "%out", &at);
        };
        match variant.winner {
            Winner::Rows => (0..lanes).for_each(|w| t.each("0", "%d", 1, |t, j| add(t, w, j))),
            Winner::Scalars => t.each("0", "%d", 1, |t, j| (0..lanes).for_each(|w| add(t, w, j))),
        }
    });
    t.module(POINTERS, SIZES)
}

/// All variants.
pub(crate) fn table() {
    let sizes = [9984, 64, 32];
    let table = Table::new("kmeans", &sizes, 60);
    let [n, k, d] = sizes;
    let symmetric = |s: u32, n: usize| -> Vec<f64> { uniform(s, n).iter().map(|x| 2.0 * x - 1.0).collect() };
    let lanes = |lanes: usize| Style { lanes, ..WIDE };
    let strict = Style { lanes: 1, contract: false, reassociate: false, ..WIDE };
    let variants = [
        ("scalar text, strict", strict, Input::Strided, Winner::Rows),
        ("scalar text, any order and contraction", lanes(1), Input::Strided, Winner::Rows),
        ("4 lanes, packed, rows", Style { width: 256, ..lanes(4) }, Input::Packed, Winner::Rows),
        ("8 lanes, strided, rows", WIDE, Input::Strided, Winner::Rows),
        ("8 lanes, packed, rows", WIDE, Input::Packed, Winner::Rows),
        ("8 lanes, packed, scalars", WIDE, Input::Packed, Winner::Scalars),
        (
            "8 lanes, packed, rows, no contraction",
            Style { contract: false, ..WIDE },
            Input::Packed,
            Winner::Rows,
        ),
        ("16 lanes, packed, rows", lanes(16), Input::Packed, Winner::Rows),
        ("32 lanes, packed, rows", lanes(32), Input::Packed, Winner::Rows),
        ("32 lanes, packed, scalars", lanes(32), Input::Packed, Winner::Scalars),
        ("64 lanes, packed, rows", lanes(64), Input::Packed, Winner::Rows),
        (
            "64 lanes, packed, rows, no contraction",
            Style { contract: false, ..lanes(64) },
            Input::Packed,
            Winner::Rows,
        ),
    ];
    for (name, style, input, winner) in variants {
        let mut memory = [
            filled(&symmetric(11, n * d)),
            filled(&symmetric(12, k * d)),
            room(k * d),
            room(d * style.lanes),
        ];
        let best = time(&text(Variant { style, input, winner }), &mut memory, &[n, k, d], 60);
        table.row(name, best, memory[2].read());
    }
}
