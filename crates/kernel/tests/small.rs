//! Code before lanes are chosen: memory of a known number of elements, checks of places, and what is computed twice.

#[path = "common/text.rs"]
mod text;

use crate::common::counted::{allocations, checks, count, in_lanes, inside, loops, operation};
use pullback_core::{FunId, Program, Type, Value};
use pullback_driver::{Session, Settings};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Ins, Module, Operand, lower, print};
use pullback_prim::{Op, Scalar};
use text::parse;

/// The function `f` of a program, optimised.
fn compiled(text: &str) -> (Program, FunId) {
    let session = Session::compile("test.fut", text, Settings::default()).expect("it compiles");
    let entry = session.entry(Some("f")).expect("it has the entry point");
    let ready = session.primal(&entry).expect("it is ready");
    (ready.program.clone(), ready.fun)
}

/// Kernel IR in so many lanes.
fn scheduled((program, f): &(Program, FunId), lanes: usize) -> (Module, FunctionId) {
    let (mut module, id) = lower(program, *f).expect("native");
    let model = Model { block: 0.0, lane: 0.0, apart: 0.01, ..Model::machine(8) };
    schedule(&mut module, &schedule::Options::new(lanes, model));
    (module, id)
}

/// How many instructions of a kind are in loops of lanes, of which there is one or more, or behind the first one in its block.
fn inside_lanes(module: &Module, is: impl Fn(&Ins) -> bool) -> usize {
    let f = module.functions.iter().find(|f| f.body.iter().any(in_lanes)).expect("a loop of lanes");
    let first = f.body.iter().position(in_lanes).expect("a loop of lanes");
    inside(&f.body[first..], is)
}

/// What a program gives or says at its end: by the interpreter, and as kernel IR in two and eight lanes.
fn outcomes(program: &(Program, FunId), args: &[Value]) -> [Result<Vec<Value>, String>; 3] {
    let of_lanes = |lanes: usize| {
        let (module, id) = scheduled(program, lanes);
        let f = &program.0.funs[program.1];
        let mut memory = Memory::new(1 << 24);
        let mut words: Vec<Word> = Vec::new();
        for (p, value) in f.params.iter().zip(args) {
            to_words(&mut memory, value, &program.0.vars[*p].ty, &mut words).expect("arguments");
        }
        let options = run::Options { steps: 1_000_000, backwards: false };
        let words =
            run(&module, id, &words, &mut memory, options).map_err(|e| format!("{:?}: {e}", e.kind))?;
        let mut words = words.into_iter();
        let read = |t: &Type| from_words(&memory, t, &mut words).expect("results");
        Ok(f.results.iter().map(read).collect())
    };
    let expected = Compiled::new(&program.0).run(program.1, args, &Options::default());
    let expected = expected.map(|o| o.results).map_err(|e| format!("{:?}: {e}", e.kind));
    [expected, of_lanes(2), of_lanes(8)]
}

fn agree(program: &(Program, FunId), args: &[Value]) -> Result<Vec<Value>, String> {
    let [expected, two, eight] = outcomes(program, args);
    assert_eq!(two, expected, "2 lanes");
    assert_eq!(eight, expected, "8 lanes");
    expected
}

/// A short loop that chooses by its counter what it stores is written out in a loop of lanes: each lane stores a row. Where it is the only
/// loop it stays.
#[test]
fn loops_that_choose_by_their_counter_are_written_out() {
    let rows = compiled(
        "entry f [n] (xs: [n]i64): [n][7]i32 =
           map (\\x -> tabulate 7 (\\j -> i32.i64 (if j < 3 then 5 * x + j else if j < 5 then x else x - j))) xs",
    );
    let (module, _) = scheduled(&rows, 8);
    let seven = Operand::i64(7);
    let at = |ins: &Ins, k: i64| match ins {
        Ins::StoreLanes { index, stride, .. } => (*index, *stride) == (Operand::i64(k), seven),
        _ => false,
    };
    for k in 0..7 {
        assert_eq!(inside_lanes(&module, |ins| at(ins, k)), 1, "{k}\n{}", print(&module));
    }
    let xs: Vec<i64> = (0..19).map(|k| k * k % 13).collect();
    agree(&rows, &[Value::i64s(&xs)]).expect("no error");
    let row = compiled("entry f (x: i64): [7]i64 = tabulate 7 (\\j -> if j < 3 then 5 * x + j else x - j)");
    let (module, _) = scheduled(&row, 8);
    let six = Operand::i64(6);
    let last = |ins: &Ins| match ins {
        Ins::Load { index, .. } | Ins::Store { index, .. } => *index == six,
        Ins::LoadLanes { index, .. } | Ins::StoreLanes { index, .. } => *index == six,
        _ => false,
    };
    assert_eq!(count(&module, last), 0, "{}", print(&module));
    agree(&row, &[Value::i64(3)]).expect("no error");
}

/// A row of five from three numbers of its own, and what is asked of its counter.
#[test]
fn small_rows_are_registers_and_their_loops_are_written_out() {
    let program = compiled(
        "entry f [n] (x: [n]f64) : [n][5]f64 =
           tabulate n (\\i ->
             let v = [x[i], 2 * x[i], 3 * x[i]]
             in tabulate 5 (\\j -> if j < 3 then v[j] else x[i] + f64.i64 j))",
    );
    let module = scheduled(&program, 8).0;
    for is in [allocations, loops, checks] {
        assert_eq!(inside_lanes(&module, is), 0, "{}", print(&module));
    }
    let xs: Vec<f64> = (0..11).map(f64::from).collect();
    let rows: Vec<f64> = xs.iter().flat_map(|x| [*x, 2.0 * x, 3.0 * x, x + 3.0, x + 4.0]).collect();
    assert_eq!(agree(&program, &[Value::f64s(&xs)]), Ok(vec![Value::f64_array(&[11, 5], &rows)]));
}

/// Loops in loops, and sums into the elements: a product of matrices of three rows.
#[test]
fn small_products_need_no_memory() {
    let program = compiled(
        "entry f [n] (x: [n]f64) : [n]f64 =
           map (\\v ->
             let a = [[v, 1, 2], [3, v, 5], [6, 7, v]]
             let b = [[1, v, 0], [0, 1, v], [v, 0, 1]]
             let c = tabulate 3 (\\i -> tabulate 3 (\\j -> f64.sum (tabulate 3 (\\k -> a[i, k] * b[k, j]))))
             in c[0, 0] + 10 * c[1, 2] + 100 * c[2, 1]) x",
    );
    let module = scheduled(&program, 8).0;
    assert_eq!(inside_lanes(&module, allocations), 0, "{}", print(&module));
    assert_eq!(count(&module, allocations), 1, "of the result: {}", print(&module));
    // c00 = v + 2v, c12 = v v + 5, c21 = 6 v + 7.
    let xs: Vec<f64> = (-4..7).map(f64::from).collect();
    let sums = xs.iter().map(|v| 3.0 * v + 10.0 * (v * v + 5.0) + 100.0 * (6.0 * v + 7.0));
    let sums: Vec<f64> = sums.collect();
    assert_eq!(agree(&program, &[Value::f64s(&xs)]), Ok(vec![Value::f64s(&sums)]));
}

/// What is chosen by a number that is not known stays in memory.
#[test]
fn an_element_that_is_chosen_later_is_loaded() {
    let program = compiled(
        "entry f [n] (x: [n]f64) (k: [n]i64) : [n]f64 =
           tabulate n (\\i -> let v = [x[i], 2 * x[i], 3 * x[i]] in v[k[i]])",
    );
    let args = |k: [i64; 3]| [Value::f64s(&[1.0, 10.0, 100.0]), Value::i64s(&k)];
    assert_eq!(agree(&program, &args([2, 0, 1])), Ok(vec![Value::f64s(&[3.0, 10.0, 200.0])]));
    let said = agree(&program, &args([2, 3, 1])).expect_err("3 is no index");
    assert!(said.contains("index 3 is out of bounds"), "{said}");
}

/// Before the loop, with the message of its first iteration that fails.
#[test]
fn checks_of_moved_counters_are_before_their_loop() {
    let program = compiled("entry f (a: []f64) (n: i64) (k: i64) : []f64 = tabulate n (\\i -> a[i + k] * 2)");
    let module = scheduled(&program, 8).0;
    assert_eq!(inside_lanes(&module, checks), 0, "{}", print(&module));
    let run =
        |n: i64, k: i64| agree(&program, &[Value::f64s(&[1.0, 2.0, 3.0, 4.0]), Value::i64(n), Value::i64(k)]);
    assert_eq!(run(3, 1), Ok(vec![Value::f64s(&[4.0, 6.0, 8.0])]));
    assert_eq!(run(0, 9), Ok(vec![Value::f64s(&[])]));
    for (n, k, index) in
        [(3, 2, "4"), (3, 7, "7"), (3, -1, "-1"), (9, -3, "-3"), (2, i64::MAX, &i64::MAX.to_string())]
    {
        let said = run(n, k).expect_err("an index is outside");
        assert!(said.contains(&format!("index {index} is out of bounds")), "{n} from {k}: {said}");
    }
}

/// What only some iterations ask is left where it is.
#[test]
fn checks_under_a_condition_stay_there() {
    let program = compiled(
        "entry f [n] (a: []f64) (x: [n]f64) : [n]f64 = tabulate n (\\i -> if x[i] > 0 then a[i] else 0)",
    );
    let run = |x: &[f64]| agree(&program, &[Value::f64s(&[1.0, 2.0]), Value::f64s(x)]);
    assert_eq!(run(&[1.0, 1.0, -1.0, -1.0]), Ok(vec![Value::f64s(&[1.0, 2.0, 0.0, 0.0])]));
    let said = run(&[1.0, -1.0, -1.0, 1.0]).expect_err("3 is no index");
    assert!(said.contains("index 3 is out of bounds"), "{said}");
}

/// The second branch has what the first one computed, in the same arm only.
#[test]
fn a_branch_asked_again_computes_nothing_again() {
    let text = |second: &str| {
        format!(
            "fun f(x: f64): f64 {{
                let c: bool = lt.f64(0.0f64, x)
                let y: f64 = if c {{ let e: f64 = exp.f64(x) in e }} else {{ in x }}
                let w: f64 = add.f64(y, 1.0f64)
                let z: f64 = if c {second}
                let s: f64 = add.f64(w, z)
                in s
            }}"
        )
    };
    let again = "{ let e: f64 = exp.f64(x) let m: f64 = mul.f64(e, w) in m } else { in w }";
    let other = "{ in w } else { let e: f64 = exp.f64(x) let m: f64 = mul.f64(e, w) in m }";
    for (second, times) in [(again, 1), (other, 2)] {
        let program = parse(&text(second));
        let module = scheduled(&program, 2).0;
        let found = count(&module, operation(Op::Exp, Scalar::F64));
        assert_eq!(found, times, "{}", print(&module));
        for x in [1.0, 0.0, -2.0] {
            assert!(agree(&program, &[Value::f64(x)]).is_ok());
        }
    }
}

/// Filled, written in part and added to twice at every place: 7 + x + 0, 5 + x + x, 7 + x + exp (x + x).
#[test]
fn small_memory_is_filled_written_and_added_to() {
    let program = parse(
        "fun f(n: i64, xs: []f64): []f64 {
            let out: []f64 = map n [xs] (x: f64) {
                let all: []f64 = replicate([3i64], 7.0f64)
                let some: []f64 = update(all, [1i64], 5.0f64)
                let sums: []f64 = withacc [some] (acc: acc []f64) {
                    let all_x: f64 = loop (s: f64 = 0.0f64) for j: i64 < 3i64 {
                        let one: () = add_to(acc, [j], x)
                        let early: bool = lt.i64(j, 2i64)
                        let y: f64 = if early { in s } else { let z: f64 = exp.f64(s) in z }
                        let two: () = add_to(acc, [j], y)
                        let more: f64 = add.f64(s, x)
                        in more
                    }
                    in
                }
                let a: f64 = sums[0i64]
                let b: f64 = sums[1i64]
                let c: f64 = sums[2i64]
                let b2: f64 = mul.f64(b, 100.0f64)
                let c2: f64 = mul.f64(c, 10000.0f64)
                let ab: f64 = add.f64(a, b2)
                let abc: f64 = add.f64(ab, c2)
                in abc
            }
            in out
        }",
    );
    let module = scheduled(&program, 8).0;
    assert_eq!(inside_lanes(&module, allocations), 0, "{}", print(&module));
    assert_eq!(count(&module, allocations), 1, "of the result: {}", print(&module));
    let xs: Vec<f64> = (0..11).map(|k| f64::from(k) / 8.0).collect();
    let all = |x: &f64| (7.0 + x) + 100.0 * (5.0 + x + x) + 10000.0 * (7.0 + x + (x + x).exp());
    let found = agree(&program, &[Value::i64(11), Value::f64s(&xs)]).expect("numbers").remove(0).floats();
    assert!(found.iter().zip(&xs).all(|(y, x)| (y - all(x)).abs() <= 1e-9 * y.abs()), "{found:?}");
    assert_eq!(found.len(), xs.len());
}

/// States of loops are not numbered, zero minus a number is its negative, and two checks are two.
#[test]
fn what_varies_is_computed_again() {
    let fibonacci = compiled("entry f (n: i64) : i64 = (loop (a, b) = (0, 1) for _i < n do (b, a + b)).0");
    for (n, expected) in [(0, 0), (1, 1), (2, 1), (10, 55)] {
        assert_eq!(agree(&fibonacci, &[Value::i64(n)]), Ok(vec![Value::i64(expected)]));
    }
    let negative = parse("fun f(n: i64): i64 { let m: i64 = sub.i64(0i64, n) in m }");
    assert_eq!(agree(&negative, &[Value::i64(3)]), Ok(vec![Value::i64(-3)]));
    let two =
        compiled("entry f [n] (a: []f64) (b: []f64) (k: [n]i64) : [n]f64 = map (\\i -> a[i] + b[i + 1]) k");
    let run = |k: &[i64]| agree(&two, &[Value::f64s(&[1.0, 2.0]), Value::f64s(&[3.0, 4.0]), Value::i64s(k)]);
    assert_eq!(run(&[0, 0]), Ok(vec![Value::f64s(&[5.0, 5.0])]));
    let said = run(&[0, 1]).expect_err("2 is no index");
    assert!(said.contains("index 2 is out of bounds"), "{said}");
}

/// Two loops over an array without elements.
#[test]
fn loops_that_never_run_are_gone() {
    let program = parse(
        "fun f(x: f64): f64, []f64 {
            let is: []i64 = iota(0i64)
            let a: []f64 = map 0i64 [is] (i: i64) { let y: f64 = convert.i64.f64(i) in y }
            let s: f64 = reduce 0i64 [0.0f64] [a] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
            let u: f64 = add.f64(s, x)
            in u, a
        }",
    );
    let module = scheduled(&program, 8).0;
    assert_eq!(count(&module, |ins| loops(ins) || in_lanes(ins)), 0, "{}", print(&module));
    let empty = Value::f64_array(&[0], &[]);
    assert_eq!(agree(&program, &[Value::f64(2.0)]), Ok(vec![Value::f64(2.0), empty]));
}
