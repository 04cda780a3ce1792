//! Loops that ask at their borders are cut there. Which comparisons are settled, and the values of programs with few and many iterations: those of the interpreter,
//! in every bit where nothing is added up in another order.

use crate::common;
use crate::common::compiled;
#[path = "common/scheduled.rs"]
mod scheduled;

use pullback_core::{FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::to_words;
use pullback_kernel::{lower, print};
use scheduled::{code, model, numbers};

fn is_cut(program: &(Program, FunId)) -> bool {
    let text = |without: &[&'static str]| print(&code(program, model(), None, without));
    text(&[]) != text(&["index-set-splitting"])
}

/// The program with arrays of these numbers of elements, in two lanes and in eight, against the interpreter.
fn compare(text: &str, program: &(Program, FunId), shapes: &[Vec<usize>]) {
    let interpreted = Compiled::new(&program.0);
    for shape in shapes {
        let args = [Value::f64_array(shape, &numbers(shape.iter().product()))];
        let expected = interpreted.run(program.1, &args, &Options::default()).expect("it runs").results;
        for lanes in [2, 8] {
            let found = common::results_with(program, &args, 1 << 20, lanes, model());
            assert_eq!(found, expected, "{shape:?}, {lanes} lanes\n{text}");
        }
    }
}

fn lengths() -> Vec<Vec<usize>> {
    [0, 1, 2, 3, 7, 9, 10, 18, 50].map(|n| vec![n]).to_vec()
}

/// Whether the loop over an array is cut in which an element is another one where a condition holds.
fn condition_cuts(condition: &str) -> bool {
    let text = format!(
        "entry main [n] (xs: [n]f64) : [n]f64 =
           tabulate n (\\i -> if {condition} then xs[i] * 2 else xs[i] + f64.i64 i)"
    );
    let program = compiled(&text);
    compare(&text, &program, &lengths());
    is_cut(&program)
}

#[test]
fn conditions_near_an_end_are_settled() {
    let near = [
        "i == 0",
        "i == 1",
        "i == 8",
        "0 == i",
        "i != 0",
        "i < 1",
        "i < 8",
        "i <= 2",
        "3 > i",
        "1 < i",
        "i >= 4",
        "i - 1 < 3",
        "i + 2 < 5",
        "4 - i > 1",
        "4 - i == 2",
        "i == n - 1",
        "i + 1 == n",
        "n - i == 1",
        "n - 1 - i == 0",
        "i != n - 3",
        "i < n - 1",
        "i + 1 < n",
        "i <= n - 2",
        "n - 4 <= i",
        "n - 4 < i",
        "n - 1 - i < 2",
        "i == i64.min (n - 1) n",
        "i == 0 || i == n - 1",
        "i == 3 || i >= n - 5",
        "0 < i && i < n - 1",
        "i < 1 && xs[i] > 0",
        "!(i < 2 || n - 2 < i)",
    ];
    for condition in near {
        assert!(condition_cuts(condition), "{condition}");
    }
}

#[test]
fn conditions_far_from_both_ends_are_not() {
    let far = [
        "i < 10",
        "i == 9",
        "i < n - 9",
        "i == n - 10",
        "i < n / 2",
        "i % 2 == 0",
        "i + i < 3",
        "xs[i] > 0",
        "i64.f64 xs[i] < 1",
    ];
    for condition in far {
        assert!(!condition_cuts(condition), "{condition}");
    }
}

/// Programs whose loops are cut, with a row or a matrix.
#[test]
fn programs_that_ask_at_borders_have_the_values_of_the_interpreter() {
    let rows = [
        // What a border reads, and what the others read, is there for all sizes.
        "tabulate n (\\i -> if i == 0 then xs[n - 1] else xs[i - 1])",
        "tabulate n (\\i -> if i == 0 || i == n - 1 then xs[i] else xs[i - 1] + xs[i + 1])",
        "tabulate n (\\i -> if i == 0 then xs[i] else if i == n - 1 then xs[i] * 3 else xs[i - 1] * xs[i + 1])",
        // Sums: the borders come last.
        "f64.sum (tabulate n (\\i -> if i == 0 then xs[0] else xs[i] * xs[i - 1]))",
        "f64.maximum (tabulate n (\\i -> if i < 2 then xs[i] * 3 else xs[i - 2] - xs[i]))",
        "(f64.sum (map2 (\\i x -> if i == n - 1 then 8 * x else x) (iota n) xs), f64.product (map2 (\\i x -> if i == 0 then 2 else f64.min 1 x) (iota n) xs))",
        // A truth value that changes, and loops whose end is not the same for all.
        "tabulate n (\\i -> let b = loop b = i == 0 for _j < i do !b in if b then 1 else if i == 0 then 7 else xs[i - 1])",
        "tabulate n (\\i -> let b = loop b = i < 2 while b do (xs[i] > 9 && i == 0) in if b then 1 else if i < 2 then 7 else xs[i - 2])",
        "tabulate n (\\i -> let (b, s) = loop (b, s) = (i == n - 1, 0) for j < i do (j == 1, if b then s + 1 else s + xs[j]) in if b then s else if i == n - 1 then 7 else s + xs[i + 1])",
        "tabulate n (\\i -> f64.sum (tabulate n (\\j -> if j == 0 || i == 0 then xs[i] else xs[j - 1] * xs[i - 1])))",
        "loop xs for _t < 5 do tabulate n (\\i -> if i == 0 then xs[0] else xs[i] + 0.5 * xs[i - 1])",
        // Memory of an iteration of its own.
        "tabulate n (\\i -> let r = tabulate 3 (\\k -> if i == 0 then 1 else xs[i - 1] * f64.i64 k) in loop s = 0 for k < 3 do s * 0.5 + r[k] * r[2 - k])",
    ];
    for body in rows {
        let text = format!("entry main [n] (xs: [n]f64) = {body}");
        let program = compiled(&text);
        assert!(is_cut(&program), "{text}");
        let from = usize::from(body.contains("maximum"));
        compare(&text, &program, &lengths()[from..]);
    }
    let loss = "def loss [n] [m] (u: [n][m]f64) : f64 =
        let around i j = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        let cell i j = if i == 0 || j == 0 || i == n - 1 || j == m - 1 then u[i, j] else u[i, j] * around i j
        in f64.sum (flatten (tabulate_2d n m cell))
        ";
    for entry in
        ["entry main [n] [m] (u: [n][m]f64) = loss u", "entry main [n] [m] (u: [n][m]f64) = vjp loss u 1"]
    {
        let text = format!("{loss}{entry}");
        let program = compiled(&text);
        assert!(is_cut(&program), "{text}");
        let sizes = [(0, 3), (1, 1), (1, 5), (2, 2), (3, 3), (4, 9), (9, 4), (17, 11), (3, 50), (50, 3)];
        compare(&text, &program, &sizes.map(|(n, m)| vec![n, m]));
    }
}

#[test]
fn a_program_that_stops_at_a_border_stops() {
    for (body, n) in [
        ("tabulate n (\\i -> if i == 0 then xs[n] else xs[i - 1])", 20),
        ("tabulate n (\\i -> if i == 0 then xs[i - 1] else xs[i])", 20),
        ("tabulate n (\\i -> if i == n - 1 then xs[i + 1] else xs[i])", 20),
        ("tabulate n (\\i -> if i == 0 then xs[0] else xs[i - 2])", 20),
    ] {
        let text = format!("entry main [n] (xs: [n]f64) : [n]f64 = {body}");
        let (program, f) = compiled(&text);
        let args = [Value::f64_array(&[n], &numbers(n))];
        let e = Compiled::new(&program).run(f, &args, &Options::default()).expect_err("it stops");
        let (mut module, id) = lower(&program, f).expect("native");
        schedule(&mut module, &schedule::Options::new(8, model()));
        let mut memory = Memory::new(1 << 20);
        let mut words: Vec<Word> = Vec::new();
        let ty = &program.vars[program.funs[f].params[0]].ty;
        to_words(&mut memory, &args[0], ty, &mut words).expect("arguments");
        let options = run::Options { steps: 1_000_000, backwards: false };
        let found = run(&module, id, &words, &mut memory, options).expect_err("it stops");
        assert_eq!((found.kind, found.message), (e.kind, e.message), "{text}");
    }
}

#[test]
fn short_loops_are_left_alone() {
    let program = compiled(
        "entry main [n] (xs: [n]f64) : [n]f64 = tabulate n (\\i -> if i == 0 then 1 else xs[i - 1])",
    );
    let cut = |n: Option<i64>| {
        let model = Model::machine(8);
        print(&code(&program, model, n, &[])) != print(&code(&program, model, n, &["index-set-splitting"]))
    };
    assert_eq!(
        [None, Some(5), Some(40), Some(60), Some(1 << 20)].map(cut),
        [false, false, false, true, true]
    );
}
