//! The derivatives at kinks that the book promises (`docs/book/kinks.md`), row by row; and that the book has these rows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use pullback_prim::{Op, Prim, Scalar, eval_partial};

/// The partial derivatives at a point, in double precision.
fn partials(op: Op, point: &[f64]) -> Vec<f64> {
    let prim = Prim::Op(op, Scalar::F64);
    let args: Vec<_> = point.iter().map(|&x| Scalar::F64.from_f64(x)).collect();
    let result = prim.eval(&args).unwrap();
    prim.partials().unwrap().iter().map(|p| eval_partial(p, &args, result).unwrap()).collect()
}

const BOOK: &str = include_str!("../../../docs/book/kinks.md");

/// The convention, stated by hand: the row of the book, a primitive, a point, and its partial derivatives there.
const ROWS: &[(&str, Op, &[f64], &[f64])] = &[
    ("`abs x` at `x = 0` * | 0 |", Op::Abs, &[0.0], &[0.0]),
    ("`sgn x` * | 0 everywhere |", Op::Sgn, &[0.0], &[0.0]),
    ("`sgn x` * | 0 everywhere |", Op::Sgn, &[-2.0], &[0.0]),
    ("| 0 everywhere, also at the jumps |", Op::Floor, &[3.0], &[0.0]),
    ("| 0 everywhere, also at the jumps |", Op::Ceil, &[3.0], &[0.0]),
    ("| 0 everywhere, also at the jumps |", Op::Round, &[2.5], &[0.0]),
    ("| 0 everywhere, also at the jumps |", Op::Trunc, &[-1.0], &[0.0]),
    ("`min x y`, `max x y` at `x = y` * | half to each argument |", Op::Min, &[2.0, 2.0], &[0.5, 0.5]),
    ("`min x y`, `max x y` at `x = y` * | half to each argument |", Op::Max, &[2.0, 2.0], &[0.5, 0.5]),
    ("`min x y`, `max x y` at `x = y` * | half to each argument |", Op::Max, &[0.0, -0.0], &[0.5, 0.5]),
    (
        "in the operator of a reduction, scan or histogram * | everything to the first argument |",
        Op::MinFirst,
        &[2.0, 2.0],
        &[1.0, 0.0],
    ),
    (
        "in the operator of a reduction, scan or histogram * | everything to the first argument |",
        Op::MaxFirst,
        &[2.0, 2.0],
        &[1.0, 0.0],
    ),
    ("one is NaN * | everything to the other one", Op::Min, &[f64::NAN, 2.0], &[0.0, 1.0]),
    ("one is NaN * | everything to the other one", Op::Max, &[2.0, f64::NAN], &[1.0, 0.0]),
    ("`sqrt x` at `x = 0` * | infinity |", Op::Sqrt, &[0.0], &[f64::INFINITY]),
    ("`hypot x y` at the origin * | 0, 0 |", Op::Hypot, &[0.0, 0.0], &[0.0, 0.0]),
    ("`x ** y` at `x = 0`, `y = 0`, with respect to `x` * | 0 |", Op::Pow, &[0.0, 0.0], &[0.0]),
    ("`x ** y` at `x = 0`, with respect to `y` * | 0 |", Op::Pow, &[0.0, 2.0], &[0.0, 0.0]),
];

#[test]
fn the_table_keeps_what_the_book_promises() {
    for (row, op, point, expected) in ROWS {
        let found = partials(*op, point);
        assert_eq!(&found[..expected.len()], *expected, "{op:?} at {point:?}: {row}");
    }
}

#[test]
fn the_book_has_every_row_that_is_tested_and_no_other() {
    for (row, ..) in ROWS {
        assert!(BOOK.contains(row), "no such row: {row}");
    }
    for line in BOOK.lines().filter(|l| l.starts_with('|') && l.contains(" * |")) {
        assert!(ROWS.iter().any(|(row, ..)| line.contains(row)), "not tested: {line}");
    }
}
