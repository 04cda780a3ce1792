//! Outputs of the algorithms' chapters, written by hand: the checker accepts them, reader and printer invert each other on
//! them, and the interpreter computes the derivatives that were worked out on paper.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use pullback_core::Value;
use pullback_interp::lambda::{Counts, Options, run};
use pullback_lambda::Program;
use pullback_lambda::check::check;
use pullback_lambda::print::print;
use pullback_lambda::read::read;
use std::sync::Arc;

fn program(text: &str) -> Program {
    let program = read(text, None).unwrap_or_else(|e| panic!("{e:#?}"));
    check(&program).unwrap_or_else(|e| panic!("{e:#?}"));
    let printed = print(&program);
    let again = read(&printed, None).unwrap_or_else(|e| panic!("{e:#?}\n{printed}"));
    assert_eq!(print(&again), printed);
    program
}

fn call(program: &Program, name: &str, args: &[Value]) -> (Value, Counts) {
    let fun = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == name).unwrap().0;
    let outcome = run(program, fun, args.to_vec(), &Options::default()).unwrap();
    (outcome.result, outcome.counts)
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "{found:?} instead of {expected:?}");
    }
}

const POINTS: [f64; 5] = [-3.0, -0.5, 0.0, 1.25, 7.0];

#[test]
fn efficient_chad_of_a_let() {
    let p = program(include_str!("programs/chad_let.lambda"));
    for x in POINTS {
        for d in [1.0, -2.5] {
            let (result, _) = call(&p, "main", &[Value::f64(x), Value::f64(d)]);
            close(&result.floats(), &[x * x + x, (2.0 * x + 1.0) * d]);
        }
    }
    // Counted by hand. Source: let 1, mul 2 + 2 variables, add 2 + 2 variables.
    let (_, counts) = call(&p, "source", &[Value::f64(3.0)]);
    assert_eq!(counts.work, 9);
    // The derivative: 18 for each of the two operations, 3 for y = a.0, 2 for the other lets, 6 for the result. Its
    // backpropagator: 26, of which 16 in that of the sum. Running: 2 for the run over one cell, 1 for the outer bind, 7 for
    // the scope, 29 to build the backpropagation of the product, 6 to run it. Around: call 2, .1 and .1 and run 3,
    // application 1, d 1, initial 1.
    let initial = Value::Tuple(vec![Value::f64(0.0)]);
    let (result, counts) = call(&p, "gradient", &[Value::f64(3.0), Value::f64(1.0), initial]);
    assert_eq!(result.floats(), [7.0]);
    let (forward, backward, monad) = (18 + 3 + 18 + 2 + 6, 26, 2 + 1 + 7 + 29 + 6);
    assert_eq!(counts.work, forward + backward + monad + 8);
    // The theorem of the thesis (6.10.4), with potentials 1 for the cotangent and for the cell before and after.
    assert!(forward + backward + monad - 1 - 1 + 1 - 1 <= 34 * 9);
}

#[test]
fn efficient_chad_of_pairs() {
    let p = program(include_str!("programs/chad_pair.lambda"));
    for a in POINTS {
        let (result, _) = call(&p, "main", &[Value::f64(a), Value::f64(1.5)]);
        close(&result.floats(), &[3.0 * a, 4.5]);
        let (source, _) = call(&p, "source", &[Value::f64(a)]);
        close(&source.floats(), &[3.0 * a]);
    }
}

#[test]
fn efficient_chad_of_a_sum() {
    let p = program(include_str!("programs/chad_case.lambda"));
    let sum = |k: usize, x: f64| Value::Sum(k, Arc::new(vec![Value::f64(x)]));
    for x in POINTS {
        let (w, d) = (1.5, 0.75);
        // x * w, by the first alternative; the cotangent of x is of that alternative.
        let (result, _) = call(&p, "main", &[sum(0, x), Value::f64(w), Value::f64(d)]);
        assert_eq!(result, Value::Tuple(vec![Value::f64(x * w), Value::f64(d * x), sum(1, d * w)]));
        // sin x, by the second; w gets nothing.
        let (result, _) = call(&p, "main", &[sum(1, x), Value::f64(w), Value::f64(d)]);
        let Value::Tuple(items) = &result else { panic!("{result:?}") };
        assert!(matches!(&items[2], Value::Sum(2, _)), "{result:?}");
        close(&result.floats(), &[x.sin(), 0.0, d * x.cos()]);
    }
}

#[test]
fn staged_dual_numbers() {
    let p = program(include_str!("programs/staged.lambda"));
    for x in POINTS {
        for y in POINTS {
            let d = 0.5;
            let (result, _) = call(&p, "main", &[Value::f64(x), Value::f64(y), Value::f64(d)]);
            close(&result.floats(), &[x * (x + y), d * (2.0 * x + y), d * x]);
            let (source, _) = call(&p, "source", &[Value::f64(x), Value::f64(y)]);
            close(&source.floats(), &[x * (x + y)]);
        }
    }
}

#[test]
fn staged_calls_of_one_function_become_one() {
    let p = program(include_str!("programs/staged_sharing.lambda"));
    let work = |n: i64| {
        let (result, counts) = call(&p, "main", &[Value::f64(3.0), Value::i64(n), Value::f64(1.0)]);
        let power = 2f64.powi(n as i32);
        assert_eq!(result.floats(), [3.0 * power, power]);
        counts.work
    };
    // n doublings: without factoring there would be 2^n calls; with it each more doubling costs the same.
    let step = work(21) - work(20);
    assert!(work(50) <= work(20) + 30 * (step + 5), "{} {} {}", work(20), work(21), work(50));
}

#[test]
fn mutable_array_dual_numbers() {
    let p = program(include_str!("programs/mutable_arrays.lambda"));
    for x in POINTS {
        for y in POINTS {
            let (z, d) = (x * y, -1.5);
            let (result, _) = call(&p, "main", &[Value::f64(x), Value::f64(y), Value::f64(d)]);
            let slope = d * (z.sin() + z * z.cos());
            close(&result.floats(), &[z * z.sin(), slope * y, slope * x]);
            let (source, _) = call(&p, "source", &[Value::f64(x), Value::f64(y)]);
            close(&source.floats(), &[z * z.sin()]);
        }
    }
}

/// Rows of the table of golden costs (thesis 6.10.4, its evaluator and its transformation), for terms whose primitives take
/// one argument here as there: parameters and their values, transformed term, cotangent, initial cells, the three costs, the
/// final cells.
#[test]
fn golden_costs_of_efficient_chad() {
    let one = |x: f64| Value::f64(x);
    let some = |items: &[f64]| Value::Sum(1, Arc::new(items.iter().map(|x| one(*x)).collect()));
    let zero = || Value::Sum(0, Arc::default());
    let cells = |items: Vec<Value>| Value::Tuple(items);
    let x = "(x, fun d: f64 -> evm_add[0][f64](d))";
    let pair = format!(
        "(let p = ({x}, {x}) in ((p.0.0, p.1.0), fun d: sparse(f64, f64) ->
           let b = p.1.1(lproj[1](d)) in evm_bind(p.0.1(lproj[0](d)), fun u: () -> b)))"
    );
    let first = "(let p = (x, fun d: sparse(f64, f64) -> evm_add[0][sparse(f64, f64)](d)) in
                  (p.0.0, fun d: f64 -> p.1(lpair(d, zero[f64]()))))";
    let neg =
        format!("(let p = {x} in (neg.f64(p.0), fun d: f64 -> p.1(let a = p.0 in let e = d in neg.f64(e))))");
    let left = format!(
        "(let p = {x} in (inject[{{#l f64 | #r}}, 0](p.0), fun d: oneof(f64, ()) -> p.1(lcast[0](d))))"
    );
    struct Row<'a> {
        term: &'a str,
        x: (&'a str, Value),
        d: (&'a str, Value),
        cells: (&'a str, Value),
        costs: [u64; 3],
        out: Value,
    }
    let f64_cell = || ("(f64,)", cells(vec![one(0.0)]));
    let rows = [
        Row {
            term: "((), fun d: () -> evm_return[](()))",
            x: ("f64", one(1.0)),
            d: ("()", cells(vec![])),
            cells: ("()", cells(vec![])),
            costs: [3, 2, 2],
            out: cells(vec![]),
        },
        Row {
            term: "(x, fun d: f64 -> evm_add[1][f64, f64, f64](d))",
            x: ("f64", one(1.0)),
            d: ("f64", one(1.0)),
            cells: ("(f64, f64, f64)", cells(vec![one(0.0), one(0.0), one(0.0)])),
            costs: [3, 2, 6],
            out: cells(vec![one(0.0), one(1.0), one(0.0)]),
        },
        Row {
            term: "(x, fun d: sparse(f64, f64) -> evm_add[0][sparse(f64, f64)](d))",
            x: ("(f64, f64)", cells(vec![one(1.0), one(1.0)])),
            d: ("sparse(f64, f64)", some(&[1.0, 2.0])),
            cells: ("(sparse(f64, f64),)", cells(vec![some(&[5.0, 6.0])])),
            costs: [3, 2, 6],
            out: cells(vec![some(&[6.0, 8.0])]),
        },
        Row {
            term: &pair,
            x: ("f64", one(2.0)),
            d: ("sparse(f64, f64)", some(&[1.0, 10.0])),
            cells: f64_cell(),
            costs: [18, 20, 8],
            out: cells(vec![one(11.0)]),
        },
        Row {
            term: &pair,
            x: ("f64", one(2.0)),
            d: ("sparse(f64, f64)", zero()),
            cells: f64_cell(),
            costs: [18, 22, 8],
            out: cells(vec![one(0.0)]),
        },
        Row {
            term: first,
            x: ("(f64, f64)", cells(vec![one(1.0), one(2.0)])),
            d: ("f64", one(1.0)),
            cells: ("(sparse(f64, f64),)", cells(vec![zero()])),
            costs: [10, 9, 4],
            out: cells(vec![some(&[1.0, 0.0])]),
        },
        Row {
            term: &neg,
            x: ("f64", one(1.0)),
            d: ("f64", one(1.0)),
            cells: f64_cell(),
            costs: [10, 12, 4],
            out: cells(vec![one(-1.0)]),
        },
        Row {
            term: &left,
            x: ("f64", one(1.0)),
            d: ("oneof(f64, ())", Value::Sum(1, Arc::new(vec![one(3.0)]))),
            cells: f64_cell(),
            costs: [10, 7, 4],
            out: cells(vec![one(3.0)]),
        },
    ];
    for row in rows {
        let (x, d, cells) = (row.x.0, row.d.0, row.cells.0);
        let text = format!("def f (x: {x}, c: {d}, e: {cells}): {cells} = evm_run({}.1(c), e).1", row.term);
        let p = program(&text);
        let (result, counts) = call(&p, "f", &[row.x.1, row.d.1, row.cells.1]);
        assert_eq!(result, row.out, "{text}");
        // Around: `.1` twice, run, application, cotangent, cells.
        assert_eq!(counts.work, 6 + row.costs.iter().sum::<u64>(), "{text}");
    }
}
