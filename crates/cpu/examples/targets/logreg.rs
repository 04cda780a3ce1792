//! Logistic regression: loss and gradient. The rows are long and next to each other in memory, so lanes may go across either loop.
//!
//! Across rows, the elements of a row come into lanes with a stride; along rows, they come as vectors, and scores of several rows
//! are put together for the functions.

use crate::ba::transpose;
use crate::run::{Table, filled, room, time};
use crate::text::{Style, Text, V, WIDE};
use pullback_maths::Function;
use pullback_testkit::problems::uniform;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Lanes across rows; every use loads the elements of all rows.
    Across,
    /// Lanes across rows, packed once for a block by scalar loads.
    Packed,
    /// Lanes across rows, packed once for a block of eight by transposing eight columns at a time.
    Transposed,
    /// Blocks of eight rows, lanes along them, so many rows in one loop; the functions have the eight rows in lanes.
    Along(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) style: Style,
    pub(crate) order: Order,
}

pub(crate) const POINTERS: &[&str] = &["x", "y", "w", "gradient", "value", "packed", "scores"];
pub(crate) const SIZES: &[&str] = &["n", "d"];

pub(crate) fn text(variant: Variant) -> String {
    let mut t = Text::new(variant.style);
    let vector = t.vector();
    let zero = t.constant(0.0);
    let losses = t.variable(&vector, &zero);
    t.each("0", "%d", 1, |t, j| t.store("0.0", "%gradient", j));
    t.each("0", "%n", variant.style.lanes, |t, first| match variant.order {
        Order::Along(together) => along(t, together, first, &losses),
        _ => across(t, variant, first, &losses),
    });
    let all = t.get(&vector, &losses);
    let all = t.sum(&all);
    t.store(&all, "%value", "0");
    t.module(POINTERS, SIZES)
}

/// Adds the losses of a block of rows to a variable; what the block contributes to the derivative in their scores.
fn losses(t: &mut Text, z: &str, first: &str, losses: &str) -> V {
    let vector = t.vector();
    let y = t.load_lanes("%y", first);
    let (one, zero) = (t.constant(1.0), t.constant(0.0));
    let opposite = t.neg(z);
    let size = t.max(z, &opposite);
    let size = t.neg(&size);
    let e = t.call(Function::Exp, &size);
    let log = t.call(Function::Log1p, &e);
    let positive = t.max(z, &zero);
    let loss = t.add(&positive, &log);
    let loss = t.mul_sub(z, &y, &loss);
    let old = t.get(&vector, losses);
    let new = t.add(&old, &loss);
    t.set(&vector, losses, &new);
    let below = t.add(&one, &e);
    let part = t.div(&one, &below);
    let rest = t.sub(&one, &part);
    let is_negative = t.compare("olt", z, &zero);
    let share = t.select(&is_negative, &rest, &part);
    t.sub(&share, &y)
}

fn across(t: &mut Text, variant: Variant, first: &str, total: &str) {
    let (lanes, vector) = (variant.style.lanes.to_string(), t.vector());
    let start = t.imul(first, "%d");
    match variant.order {
        Order::Packed => t.each("0", "%d", 1, |t, j| {
            let from = t.iadd(&start, j);
            let x = t.strided("%x", &from, "%d");
            let to = t.imul(j, &lanes);
            t.store_lanes(&x, "%packed", &to);
        }),
        Order::Transposed => {
            let rest = t.line("srem i64 %d, 8");
            let whole = t.isub("%d", &rest);
            t.each("0", &whole, 8, |t, j| {
                let rows: Vec<V> = (0..8)
                    .map(|r| {
                        let row = t.imul(&r.to_string(), "%d");
                        let from = t.iadd(&start, &row);
                        let from = t.iadd(&from, j);
                        t.load_lanes("%x", &from)
                    })
                    .collect();
                for (column, x) in transpose(t, &rows).iter().enumerate() {
                    let to = t.iadd(j, &column.to_string());
                    let to = t.imul(&to, &lanes);
                    t.store_lanes(x, "%packed", &to);
                }
            });
            t.each(&whole, "%d", 1, |t, j| {
                let from = t.iadd(&start, j);
                let x = t.strided("%x", &from, "%d");
                let to = t.imul(j, &lanes);
                t.store_lanes(&x, "%packed", &to);
            });
        }
        Order::Across | Order::Along(_) => {}
    }
    let element = |t: &mut Text, j: &str| match variant.order {
        Order::Across => {
            let from = t.iadd(&start, j);
            t.strided("%x", &from, "%d")
        }
        _ => {
            let at = t.imul(j, &lanes);
            t.load_lanes("%packed", &at)
        }
    };
    let zero = t.constant(0.0);
    let z = t.variable(&vector, &zero);
    t.each("0", "%d", 1, |t, j| {
        let x = element(t, j);
        let w = t.load("%w", j);
        let w = t.splat(&w);
        let old = t.get(&vector, &z);
        let new = t.mul_add(&x, &w, &old);
        t.set(&vector, &z, &new);
    });
    let z = t.get(&vector, &z);
    let off = losses(t, &z, first, total);
    t.each("0", "%d", 1, |t, j| {
        let x = element(t, j);
        let product = t.mul(&x, &off);
        let sum = t.sum(&product);
        let old = t.load("%gradient", j);
        let new = t.line(&format!("fadd reassoc double {old}, {sum}"));
        t.store(&new, "%gradient", j);
    });
}

/// The tail of a row is masked.
fn along(t: &mut Text, together: usize, first: &str, total: &str) {
    let (lanes, vector) = (t.style.lanes, t.vector());
    let start = t.imul(first, "%d");
    let rows: Vec<V> = (0..lanes)
        .map(|r| {
            let row = t.imul(&r.to_string(), "%d");
            let at = t.iadd(&start, &row);
            t.at("%x", &at)
        })
        .collect();
    let load = |t: &mut Text, memory: &str, j: &str, mask: &str| {
        let at = t.at(memory, j);
        t.declare(format!(
            "declare {vector} @llvm.masked.load.v{lanes}f64.p0(ptr, i32, <{lanes} x i1>, {vector})"
        ));
        t.line(&format!(
            "call {vector} @llvm.masked.load.v{lanes}f64.p0(ptr {at}, i32 8, <{lanes} x i1> {mask}, {vector} zeroinitializer)"
        ))
    };
    let mask = |t: &mut Text, j: &str| {
        let left = t.isub("%d", j);
        let left = t.splat_integer(&left);
        let numbers: Vec<_> = (0..lanes).map(|w| format!("i64 {w}")).collect();
        t.line(&format!("icmp slt <{lanes} x i64> <{}>, {left}", numbers.join(", ")))
    };
    let zero = t.constant(0.0);
    let scores: Vec<V> = rows.iter().map(|_| t.variable(&vector, &zero)).collect();
    for (rows, scores) in rows.chunks(together).zip(scores.chunks(together)) {
        t.each("0", "%d", lanes, |t, j| {
            let mask = mask(t, j);
            let w = load(t, "%w", j, &mask);
            for (row, score) in rows.iter().zip(scores) {
                let x = load(t, row, j, &mask);
                let old = t.get(&vector, score);
                let new = t.mul_add(&x, &w, &old);
                t.set(&vector, score, &new);
            }
        });
    }
    for (r, score) in scores.iter().enumerate() {
        let all = t.get(&vector, score);
        let sum = t.sum(&all);
        t.store(&sum, "%scores", &r.to_string());
    }
    let z = t.load_lanes("%scores", "0");
    let off = losses(t, &z, first, total);
    t.store_lanes(&off, "%scores", "0");
    let off: Vec<V> = (0..lanes)
        .map(|r| {
            let one = t.load("%scores", &r.to_string());
            t.splat(&one)
        })
        .collect();
    for (rows, off) in rows.chunks(together).zip(off.chunks(together)) {
        t.each("0", "%d", lanes, |t, j| {
            let mask = mask(t, j);
            let mut sum = load(t, "%gradient", j, &mask);
            for (row, off) in rows.iter().zip(off) {
                let x = load(t, row, j, &mask);
                sum = t.mul_add(&x, off, &sum);
            }
            let at = t.at("%gradient", j);
            t.declare(format!("declare void @llvm.masked.store.v{lanes}f64.p0({vector}, ptr, i32, <{lanes} x i1>)"));
            t.raw(&format!(
                "call void @llvm.masked.store.v{lanes}f64.p0({vector} {sum}, ptr {at}, i32 8, <{lanes} x i1> {mask})"
            ));
        });
    }
}

/// All variants.
pub(crate) fn table() {
    let sizes = [9984, 100];
    let table = Table::new("logreg", &sizes, 60);
    let [n, d] = sizes;
    let x: Vec<f64> = uniform(5, n * d).iter().map(|x| 2.0 * x - 1.0).collect();
    let y: Vec<f64> = uniform(7, n).iter().map(|x| if *x < 0.5 { 1.0 } else { 0.0 }).collect();
    let w: Vec<f64> = uniform(6, d).iter().map(|x| 0.1 * (2.0 * x - 1.0)).collect();
    let lanes = |lanes: usize| Style { lanes, ..WIDE };
    let variants = [
        ("scalar text, any order and contraction", lanes(1), Order::Across),
        ("8 lanes across rows, strided", WIDE, Order::Across),
        ("8 lanes across rows, packed by scalar loads", WIDE, Order::Packed),
        ("8 lanes across rows, packed by transposing", WIDE, Order::Transposed),
        ("32 lanes across rows, strided", lanes(32), Order::Across),
        ("32 lanes across rows, packed by scalar loads", lanes(32), Order::Packed),
        ("8 lanes along rows, one by one", WIDE, Order::Along(1)),
        ("8 lanes along rows, 2 together", WIDE, Order::Along(2)),
        ("8 lanes along rows, 4 together", WIDE, Order::Along(4)),
        ("8 lanes along rows, 8 together", WIDE, Order::Along(8)),
        (
            "8 lanes along rows, 8 together, no contraction",
            Style { contract: false, ..WIDE },
            Order::Along(8),
        ),
    ];
    for (name, style, order) in variants {
        let mut memory =
            [filled(&x), filled(&y), filled(&w), room(d), room(1), room(d * style.lanes), room(style.lanes)];
        let best = time(&text(Variant { style, order }), &mut memory, &[n, d], 60);
        let found: Vec<f64> =
            memory[3].read().iter().zip(&w).map(|(g, w)| g / n as f64 + 0.001 * w).collect();
        table.row(name, best, &found);
    }
}
