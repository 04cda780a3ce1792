//! Log-sum-exp: its gradient, in three passes over the numbers.

use crate::run::{Table, filled, room, time};
use crate::text::{Style, Text, WIDE};
use pullback_maths::Function;
use pullback_testkit::problems::uniform;

pub(crate) const POINTERS: &[&str] = &["x", "out", "value"];
pub(crate) const SIZES: &[&str] = &["n"];

/// With `again`, exponentials are made twice instead of being kept.
pub(crate) fn text(style: Style, again: bool) -> String {
    let mut t = Text::new(style);
    let vector = t.vector();
    let low = t.constant(f64::NEG_INFINITY);
    let top = t.variable(&vector, &low);
    t.each("0", "%n", style.lanes, |t, i| {
        let x = t.load_lanes("%x", i);
        let old = t.get(&vector, &top);
        let new = t.max(&old, &x);
        t.set(&vector, &top, &new);
    });
    let top = t.get(&vector, &top);
    let top = t.largest(&top);
    let top = t.splat(&top);
    let zero = t.constant(0.0);
    let sum = t.variable(&vector, &zero);
    let exponential = |t: &mut Text, i: &str| {
        let x = t.load_lanes("%x", i);
        let x = t.sub(&x, &top);
        t.call(Function::Exp, &x)
    };
    t.each("0", "%n", style.lanes, |t, i| {
        let e = exponential(t, i);
        if !again {
            t.store_lanes(&e, "%out", i);
        }
        let old = t.get(&vector, &sum);
        let new = t.add(&old, &e);
        t.set(&vector, &sum, &new);
    });
    let sum = t.get(&vector, &sum);
    let sum = t.sum(&sum);
    t.store(&sum, "%value", "0");
    let inverse = t.line(&format!("fdiv double 1.0, {sum}"));
    let inverse = t.splat(&inverse);
    t.each("0", "%n", style.lanes, |t, i| {
        let e = if again { exponential(t, i) } else { t.load_lanes("%out", i) };
        let g = t.mul(&e, &inverse);
        t.store_lanes(&g, "%out", i);
    });
    t.module(POINTERS, SIZES)
}

/// All variants.
pub(crate) fn table() {
    for n in [12_800, 1_280_000] {
        let table = Table::new("lse", &[n], 30);
        let lanes = |lanes: usize| Style { lanes, ..WIDE };
        let variants = [
            ("scalar text, any order and contraction", lanes(1), false),
            ("4 lanes", Style { width: 256, ..lanes(4) }, false),
            ("8 lanes", WIDE, false),
            ("32 lanes", lanes(32), false),
            ("8 lanes, exponentials made twice", WIDE, true),
            ("32 lanes, exponentials made twice", lanes(32), true),
        ];
        for (name, style, again) in variants {
            let mut memory = [filled(&uniform(103, n)), room(n), room(1)];
            let best = time(&text(style, again), &mut memory, &[n], 30);
            table.row(name, best, memory[1].read());
        }
    }
}
