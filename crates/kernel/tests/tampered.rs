//! Errors that are put into scheduled code change values: what compares the code of a schedule with the interpreter can fail.

#[path = "common/scheduled.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod scheduled;

use crate::common::compiled;
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Module, lower, print};
use pullback_testkit::tampered::Error;
use scheduled::numbers;

/// What code gives; `None`: it stops.
fn results(
    (program, f): &(Program, FunId),
    (module, id): (&Module, FunctionId),
    args: &[Value],
) -> Option<Vec<Value>> {
    let (mut memory, mut words): (Memory, Vec<Word>) = (Memory::new(1 << 22), Vec::new());
    for (p, value) in program.funs[*f].params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 1_000_000, backwards: false };
    let mut words = run(module, id, &words, &mut memory, options).ok()?.into_iter();
    program.funs[*f].results.iter().map(|t| from_words(&memory, t, &mut words).ok()).collect()
}

/// Of the errors of a kind that scheduled code can have: how many there are, and how many are noticed.
fn noticed(program: &(Program, FunId), args: &[Value], lanes: usize, error: Error) -> (usize, usize) {
    let (mut module, id) = lower(&program.0, program.1).expect("native");
    let model = Model { block: 0.0, lane: 0.0, apart: 0.01, near: Some(0), ..Model::machine(8) };
    schedule(&mut module, &schedule::Options::new(lanes, model));
    let expected = Compiled::new(&program.0).run(program.1, args, &Options::default());
    let expected = expected.expect("it runs").results;
    assert_eq!(results(program, (&module, id), args).as_ref(), Some(&expected), "{}", print(&module));
    let (mut all, mut found) = (0, 0);
    loop {
        let mut wrong = module.clone();
        if !error.put(&mut wrong.functions[id].body, all) {
            return (all, found);
        }
        all += 1;
        found += usize::from(results(program, (&wrong, id), args).as_ref() != Some(&expected));
    }
}

#[test]
fn errors_in_scheduled_code_are_noticed() {
    let xs = Value::f64_array(&[67], &numbers(67));
    let places = Value::i64s(&(0..67).map(|k| k * k % 9).collect::<Vec<i64>>());
    let texts = [
        // Borders.
        "entry main [n] (xs: [n]f64) (ks: [n]i64) : [n]f64 =
           tabulate n (\\i -> if i <= 1 then xs[i] else if i < n - 1 then xs[i - 1] - xs[i + 1] else xs[0])",
        // Stages that read their neighbours.
        "entry main [n] (xs: [n]f64) (ks: [n]i64) : [n]f64 =
           let a = tabulate n (\\i -> if i < 1 then xs[i] else xs[i] - xs[i - 1])
           in tabulate n (\\i -> if i < n - 1 then a[i] - a[i + 1] else a[i])",
        // Loops that are joined, and a sum.
        "entry main [n] (xs: [n]f64) (ks: [n]i64) : ([n]f64, f64) =
           let ys = map (\\x -> x * x - 0.5) xs in (ys, f64.sum (map2 (*) ys xs))",
        // Small rows.
        "entry main [n] (xs: [n]f64) (ks: [n]i64) : [n][5]f64 =
           map (\\x -> let r = tabulate 5 (\\j -> x - f64.i64 j) in map (\\y -> y - r[1]) r) xs",
        // What is added to elements.
        "entry main [n] (xs: [n]f64) (ks: [n]i64) : [n]f64 =
           vjp (\\xs -> f64.sum (map (\\k -> if k < 4 then xs[k] * xs[k] else 2 - xs[k]) ks)) xs 1",
    ];
    // Some change nothing: what stands in arms that these arguments do not take, comparisons whose sides are never equal.
    let shares = [0.9, 0.9, 0.5, 0.1, 0.5];
    for (error, least) in Error::ALL.into_iter().zip(shares) {
        let (mut all, mut found) = (0, 0);
        for text in texts {
            let program = compiled(text);
            for lanes in [1, 4] {
                let (a, f) = noticed(&program, &[xs.clone(), places.clone()], lanes, error);
                (all, found) = (all + a, found + f);
            }
        }
        println!("{error:?}: {found} of {all}");
        assert!(found as f64 > least * all as f64, "{error:?}: {found} of {all} are noticed");
    }
}
