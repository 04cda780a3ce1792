//! The documented exceptions of the cost claim: where the derivative does cost more than a constant times the program.
//!
//! An array that a branch makes in one arm (so that the branch is no mere choice of names), used in a small map of the same
//! iteration: what the map adds goes to an array of zeros as large as the array, per iteration. If a cure comes, this
//! test must change with the claim in the header of `fast_chad`.

mod common;

use common::{add_vjp, first, mismatch, parse, run};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;

const MAP: &str = "let one: []i64 = array(i): i64
    let m: []f64 = map 1i64 [one] (k: i64) { let x: f64 = d[k] in x }
    let t: f64 = reduce 1i64 [0.0f64] [m] (p: f64, q: f64) { let w: f64 = add.f64(p, q) in w }";

/// A loop whose branch gives `a`, or else a new array; `read` makes `t` of it.
fn program(read: &str) -> String {
    format!(
        "fun f(n: i64, a: []f64, b: []f64): f64 {{
            let y: f64 = loop (s: f64 = 0.0f64) for i: i64 < n {{
                let c: bool = lt.f64(s, 0.9f64)
                let d: []f64 = if c {{ in a }} else {{ let e: []f64 = update(b, [0i64], s) in e }}
                {read}
                let u: f64 = add.f64(s, t)
                let v: f64 = sin.f64(u)
                in v
            }}
            in y
        }}"
    )
}

/// Work of the derivative over that of the program, and the zeros made.
fn cost(text: &str, n: usize, scale: f64) -> (f64, u64) {
    let floats = |phase: f64| {
        let at = |i: usize| (i as f64 * 0.37 + phase).sin() * scale;
        Value::f64s(&(0..n).map(at).collect::<Vec<f64>>())
    };
    let args = [Value::i64(n as i64), floats(0.0), floats(1.0)];
    assert_eq!(mismatch(text, &args, &Config::default()), None);
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    let (_, plain) = run(&program, f, &args);
    let (_, derived) = run(&program, id, &[&args[..], &[Value::f64(1.0)]].concat());
    (derived.work as f64 / plain.work as f64, derived.zero_cells)
}

/// The state stays below 0.9, so the program never pays for the new array.
const SMALL: f64 = 0.01;

#[test]
fn a_new_or_chosen_array_in_a_small_map_costs_its_size_per_iteration() {
    let text = program(MAP);
    let (small, large) = (cost(&text, 16, SMALL), cost(&text, 128, SMALL));
    assert!(large.0 > 3.0 * small.0, "no exception any more: {small:?} {large:?}");
    assert!((128 * 128..129 * 128 + 256).contains(&large.1), "one array of zeros per iteration: {large:?}");
}

#[test]
fn the_same_array_without_the_map_costs_a_constant() {
    let text = program("let t: f64 = d[i]");
    let (small, large) = (cost(&text, 16, SMALL), cost(&text, 128, SMALL));
    assert!(large.0 <= 1.1 * small.0, "{small:?} {large:?}");
    assert!(large.1 <= 2 * 128, "the gradients of the two inputs: {large:?}");
}

/// A choice of names alone is no exception, since the accumulator is chosen likewise (views); without that it is one.
#[test]
fn views_of_accumulators_are_what_makes_a_choice_of_arrays_cheap() {
    let text = program(MAP).replace("{ let e: []f64 = update(b, [0i64], s) in e }", "{ in b }");
    assert!(!text.contains("update"));
    let ratio = |n: usize, views: bool| {
        let mut program = parse(&text);
        let f = first(&program);
        let config = Config { views, ..Config::default() };
        let id = add_vjp(&mut program, f, &config).expect("supported");
        let floats = || Value::f64s(&(0..n).map(|i| (i as f64 * 0.37).sin() * 0.5).collect::<Vec<f64>>());
        let args = [Value::i64(n as i64), floats(), floats()];
        assert_eq!(mismatch(&text, &args, &config), None);
        let (_, plain) = run(&program, f, &args);
        let (_, derived) = run(&program, id, &[&args[..], &[Value::f64(1.0)]].concat());
        derived.work as f64 / plain.work as f64
    };
    assert!(ratio(128, true) <= 1.1 * ratio(16, true), "{} {}", ratio(16, true), ratio(128, true));
    assert!(ratio(128, false) > 3.0 * ratio(16, false), "{} {}", ratio(16, false), ratio(128, false));
}

/// With larger numbers both arms are taken.
#[test]
fn gradients_of_the_exception_are_right_in_both_arms() {
    for read in [MAP, "let t: f64 = d[i]"] {
        cost(&program(read), 20, 0.5);
    }
}
