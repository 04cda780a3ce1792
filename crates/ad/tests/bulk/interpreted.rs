//! Delta terms that are made while a program runs: `bulk-scalar` and `bulk-tape` on functions of core.

use super::from_core::{f, fs};
use super::generate::{Indices, scalar_program, seeds};
use super::translated::to_core;
use crate::common::{add_bulk, first, parse, run};
use pullback_ad::bulk::interpreted::{ALGORITHMS, Derivative, Run, find};
use pullback_ad::bulk::to_core::function;
use pullback_base::RuntimeErrorKind;
use pullback_core::check::{Rules, check};
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::Options;

fn derivative(id: &str, program: &Program, main: FunId) -> Derivative {
    let algorithm = find(id).expect("an algorithm");
    let wanted = vec![true; program.funs[main].params.len()];
    let made = algorithm.derivative(program, main, &wanted).unwrap_or_else(|e| panic!("{id}: {e}"));
    if let Err(e) = check(made.first().0, Rules::NO_AD) {
        panic!("{id}: {e}");
    }
    made
}
fn of(id: &str, program: &Program, main: FunId, args: &[Value], cotangents: &[Value]) -> Run {
    let made = derivative(id, program, main);
    let (first, fun) = made.first();
    let read = pullback_interp::core::run(first, fun, args.to_vec(), &Options::default());
    let read = read.unwrap_or_else(|e| panic!("{id}: {e:?}")).results;
    made.after(read, cotangents).unwrap_or_else(|e| panic!("{id}: {e:?}"))
}

const DOT: &str = "fun f(a: []f64, b: []f64): f64 {
    let n: i64 = size(a, 0)
    let m: i64 = size(b, 0)
    let same: bool = eq.i64(n, m)
    let u: () = assert(same, \"two sizes\")
    let p: []f64 = map n [a, b] (x: f64, y: f64) { let t: f64 = mul.f64(x, y) in t }
    let s: f64 = reduce n [0.0f64] [p] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
    in s
}";

/// T3 and claims C4 and C5, on a function of core: a node for each number, or for each array. Per element two inputs, two factors, their sum and its `Share`, less what the sum of all has one less of.
#[test]
fn nodes_are_of_numbers_or_of_arrays() {
    let program = parse(DOT);
    let main = first(&program);
    let nodes = |id: &str, n: usize| {
        let (a, b): (Vec<f64>, Vec<f64>) = (0..n).map(|k| (k as f64 + 0.5, 2.0 - k as f64)).unzip();
        let r = of(id, &program, main, &[fs(&a), fs(&b)], &[f(2.0)]);
        let twice = |xs: &[f64]| fs(&xs.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
        assert_eq!(r.cotangents, [twice(&b), twice(&a)], "{id}");
        assert_eq!(r.results, [f(a.iter().zip(&b).map(|(x, y)| x * y).sum())], "{id}");
        r.nodes
    };
    let scalar = [10, 20, 40].map(|n| nodes("bulk-scalar", n));
    assert_eq!([scalar[1] - scalar[0], scalar[2] - scalar[1]], [70, 140]);
    let tape = [1, 10, 40].map(|n| nodes("bulk-tape", n));
    assert!(tape.iter().all(|n| *n == tape[0]) && tape[0] < 20, "{tape:?}");
}

/// Several results, of which one does not vary; a parameter that nothing depends on; arrays without elements.
#[test]
fn constants_and_several_results() {
    let text = "fun f(x: f64, a: []f64, unused: []f64, k: i64): f64, f64, []f64 {
        let n: i64 = size(a, 0)
        let y: f64 = mul.f64(x, x)
        let c: f64 = f64.i64(k)
        let b: []f64 = map n [a] (t: f64) { let u: f64 = mul.f64(t, x) in u }
        in y, c, b
    }";
    let program = parse(&text.replace("f64.i64(k)", "convert.i64.f64(k)"));
    let main = first(&program);
    for algorithm in ALGORITHMS {
        let of = |a: &[f64], c: &[f64]| {
            let args = [f(3.0), fs(a), fs(&[7.0]), Value::i64(5)];
            of(algorithm.id, &program, main, &args, &[f(2.0), f(1.0), fs(c)])
        };
        let r = of(&[1.0, -2.0], &[0.5, 10.0]);
        assert_eq!(r.results, [f(9.0), f(5.0), fs(&[3.0, -6.0])], "{}", algorithm.id);
        assert_eq!(r.cotangents, [f(12.0 + 0.5 - 20.0), fs(&[1.5, 30.0]), fs(&[0.0])], "{}", algorithm.id);
        let r = of(&[], &[]);
        assert_eq!(r.cotangents, [f(12.0), fs(&[]), fs(&[0.0])], "{}", algorithm.id);
    }
}

/// A cotangent of another shape, and values of another function, are errors; what stops the function stops its derivative.
#[test]
fn what_does_not_fit_is_an_error() {
    let program = parse(DOT);
    let main = first(&program);
    for algorithm in ALGORITHMS {
        let made = derivative(algorithm.id, &program, main);
        let (first, fun) = made.first();
        let run = |args: &[Value]| pullback_interp::core::run(first, fun, args.to_vec(), &Options::default());
        let read = run(&[fs(&[1.0, 2.0]), fs(&[3.0, 4.0])]).expect("runs").results;
        let wrong = made.after(read.clone(), &[fs(&[1.0, 1.0])]).expect_err("two numbers for one");
        assert_eq!(wrong.kind, RuntimeErrorKind::ShapeMismatch);
        let wrong = made.after(read[1..].to_vec(), &[f(1.0)]).expect_err("one value less");
        assert_eq!(wrong.kind, RuntimeErrorKind::Internal);
        let stopped = run(&[fs(&[1.0, 2.0]), fs(&[3.0])]).expect_err("two sizes");
        assert_eq!(stopped.kind, RuntimeErrorKind::AssertFailed);
    }
}

/// A sum of many numbers is no deep term.
#[test]
fn long_sums_need_no_deep_stack() {
    let program = parse(DOT);
    let main = first(&program);
    let xs = fs(&vec![1.0; 200_000]);
    let r = of("bulk-scalar", &program, main, &[xs.clone(), xs.clone()], &[f(1.0)]);
    assert_eq!((r.results, r.cotangents), (vec![f(200_000.0)], vec![xs.clone(), xs]));
}

/// Random functions: the gradients of the symbolic pass; what that refuses is refused.
#[test]
fn random_functions_have_the_gradients_of_the_symbolic_pass() {
    let mut tried = 0;
    for (seed, indices) in seeds(60).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = scalar_program(seed, indices);
        let mut core = Program::default();
        let Ok(main) = function(&mut core, &source, "f") else { continue };
        let Ok(g) = add_bulk(&mut core, main) else {
            let wanted = vec![true; core.funs[main].params.len()];
            assert!(ALGORITHMS.iter().all(|a| a.derivative(&core, main, &wanted).is_err()), "seed {seed}");
            continue;
        };
        let args: Vec<Value> = arguments.iter().map(to_core).collect();
        let symbolic = run(&core, g, &[&args[..], &[f(1.5)]].concat()).0;
        let floats = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
        let wanted = floats(&symbolic);
        for algorithm in ALGORITHMS {
            let r = of(algorithm.id, &core, main, &args, &[f(1.5)]);
            let found = floats(&[r.results, r.cotangents].concat());
            let same = found.iter().zip(&wanted).all(|(x, y)| (x - y).abs() <= 1e-9 * (1.0 + y.abs()));
            assert!(same && found.len() == wanted.len(), "seed {seed}: {found:?} {wanted:?}\n{source}");
        }
        tried += 1;
    }
    assert!(tried > 35, "{tried}");
}
