//! Loops over the same iterations become one loop where they may, and stay two where they may not.

#[path = "common/text.rs"]
mod text;

use crate::common::counted::{allocations, count, in_lanes, loops};
use pullback_core::{Type, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{Ins, Module, lower, print};
use text::parse;

/// What `f` gives, or says: by the interpreter, and as kernel IR with loops joined; and that in two lanes.
fn outcome(text: &str, near: Option<i64>, args: &[Value]) -> (Result<Vec<Value>, String>, Module) {
    let (program, f) = parse(text);
    let expected = Compiled::new(&program).run(f, args, &Options::default());
    let expected = expected.map(|o| o.results).map_err(|e| format!("{:?}: {e}", e.kind));
    let mut code = Module::default();
    for lanes in [8, 2] {
        let (mut module, id) = lower(&program, f).expect("native");
        let model = Model { block: 0.0, lane: 0.0, apart: 0.01, near, ..Model::machine(8) };
        schedule(&mut module, &schedule::Options::new(lanes, model));
        let mut memory = Memory::new(1 << 22);
        let mut words: Vec<Word> = Vec::new();
        for (p, value) in program.funs[f].params.iter().zip(args) {
            to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
        }
        let options = run::Options { steps: 1_000_000, backwards: false };
        let found = run(&module, id, &words, &mut memory, options).map_err(|e| format!("{:?}: {e}", e.kind));
        let found = found.map(|words| {
            let mut words = words.into_iter();
            let read = |t: &Type| from_words(&memory, t, &mut words).expect("results");
            program.funs[f].results.iter().map(read).collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{lanes} lanes\n{}", print(&module));
        code = module;
    }
    (expected, code)
}

/// The loops that no other loop is around, and the memory that is asked for outside and inside of them.
fn counted(code: &Module) -> (usize, usize, usize) {
    let of =
        |is: &dyn Fn(&Ins) -> bool| code.functions.iter().flat_map(|f| &f.body).filter(|ins| is(ins)).count();
    let top = of(&allocations);
    (of(&|ins| loops(ins) || in_lanes(ins)), top, count(code, allocations) - top)
}

/// `a` from the rows of `xs`, numbers that are whole so that any order of sums gives the same; `rest` makes the results of it.
fn program(results: &str, a: &str, rest: &str) -> String {
    format!(
        "fun f(xs: [][]f64, ks: []i64): {results} {{
            let n: i64 = size(xs, 0)
            let m: i64 = size(xs, 1)
            let is: []i64 = iota(n)
            {a}
            {rest}
        }}"
    )
}

/// A number for each row.
const NUMBERS: &str =
    "let a: []f64 = map n [xs] (ar: []f64) { let ax: f64 = ar[0i64] let ay: f64 = mul.f64(ax, ax) in ay }";
/// A row for each row.
const ROWS: &str = "let a: [][]f64 = map n [xs] (ar: []f64) {
    let as: []f64 = map m [ar] (ax: f64) { let ay: f64 = mul.f64(ax, ax) in ay } in as }";

fn args(rows: usize, columns: usize) -> Vec<Value> {
    let numbers: Vec<f64> = (0..rows * columns).map(|k| ((k * 7) % 11) as f64 - 4.0).collect();
    let keys: Vec<i64> = (0..rows as i64).map(|k| (k * 5 + 1) % columns as i64).collect();
    vec![Value::f64_array(&[rows, columns], &numbers), Value::i64s(&keys)]
}

/// Loops outside, and memory outside and inside, for a text; values are compared for some sizes.
fn shape(text: &str) -> (usize, usize, usize) {
    [(1, 1), (7, 3), (16, 2), (33, 5)].map(|(n, m)| counted(&outcome(text, Some(0), &args(n, m)).1))[0]
}

#[test]
fn what_one_number_is_left_of_is_a_register() {
    let rest = "let b: []i64 = map n [a] (x: f64) { let y: i64 = convert.f64.i64(x) in y } in b";
    let text = program("[]i64", NUMBERS, rest);
    assert_eq!(shape(&text), (1, 1, 0));
    // Not where the executor has no use for it, nor where it is not known how large the memory is.
    assert_eq!(counted(&outcome(&text, None, &args(7, 3)).1), (2, 2, 0));
    assert_eq!(counted(&outcome(&text, Some(1), &args(7, 3)).1), (2, 2, 0));
}

#[test]
fn a_row_that_is_left_is_made_by_each_iteration() {
    let rest = "let b: []f64 = map n [a] (r: []f64) {
            let first: f64 = r[0i64]
            let s: f64 = reduce m [0.0f64] [r] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
            let u: f64 = mul.f64(s, first)
            in u }
        in b";
    assert_eq!(shape(&program("[]f64", ROWS, rest)), (1, 1, 1));
}

#[test]
fn memory_that_is_used_later_stays_whole() {
    let rest = "let b: []i64 = map n [a] (x: f64) { let y: i64 = convert.f64.i64(x) in y } in a, b";
    assert_eq!(shape(&program("[]f64, []i64", NUMBERS, rest)), (1, 2, 0));
    let later = "let b: []i64 = map n [a] (x: f64) { let y: i64 = convert.f64.i64(x) in y }
        let z: f64 = a[0i64]
        in b, z";
    assert_eq!(shape(&program("[]i64, f64", NUMBERS, later)), (1, 2, 0));
}

#[test]
fn loops_that_read_what_other_iterations_write_stay_apart() {
    let turned = "let last: i64 = sub.i64(n, 1i64)
        let b: []i64 = map n [is, a] (i: i64, x: f64) {
            let k: i64 = sub.i64(last, i)
            let w: f64 = a[k]
            let t: f64 = sub.f64(w, x)
            let y: i64 = convert.f64.i64(t)
            in y }
        in b";
    assert_eq!(shape(&program("[]i64", NUMBERS, turned)), (2, 2, 0));
    // The first of all rows.
    let first = "let b: []i64 = map n [a] (r: []f64) {
            let w: f64 = a[0i64, 0i64]
            let x: f64 = r[0i64]
            let t: f64 = sub.f64(w, x)
            let y: i64 = convert.f64.i64(t)
            in y }
        in b";
    assert_eq!(shape(&program("[]i64", ROWS, first)).0, 2);
}

/// An element of a row at a place that depends on data: it is in the row, but nothing here shows that.
#[test]
fn places_that_cannot_be_shown_to_be_in_a_row_stay_apart() {
    let gathered = "let b: []f64 = map n [a, ks] (r: []f64, k: i64) { let y: f64 = r[k] in y } in b";
    assert_eq!(shape(&program("[]f64", ROWS, gathered)).0, 2);
}

/// A matrix as one row, with a window that goes on in the next row of the matrix, or begins in another one.
#[test]
fn flat_places_may_be_in_the_next_row() {
    for (factor, more, loops) in
        [("1i64", "0i64", 1), ("1i64", "1i64", 2), ("1i64", "m", 2), ("2i64", "0i64", 2)]
    {
        let rest = format!(
            "let nm: i64 = mul.i64(n, m)
            let flat: []f64 = reshape([nm], 2, a)
            let row: i64 = mul.i64(m, {factor})
            let b: []f64 = map n [is] (i: i64) {{
                let t: i64 = mul.i64(i, row)
                let u: i64 = add.i64(t, {more})
                let inside: bool = lt.i64(u, nm)
                let y: f64 = if inside {{ let w: f64 = flat[u] in w }} else {{ in 0.0f64 }}
                in y }}
            in b"
        );
        assert_eq!(shape(&program("[]f64", ROWS, &rest)).0, loops, "{factor} {more}");
    }
}

#[test]
fn folds_of_both_loops_are_kept_and_what_needs_a_fold_comes_after_it() {
    let folds = "let s: f64 = reduce n [0.0f64] [a] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
        let top: f64 = reduce n [-f64.inf] [a] (v: f64, w: f64) { let u: f64 = max.f64(v, w) in u }
        in s, top";
    let (loops, top, _) = shape(&program("f64, f64", NUMBERS, folds));
    assert_eq!((loops, top), (1, 0));
    let shares = "let s: f64 = reduce n [0.0f64] [a] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
        let b: []i64 = map n [a] (x: f64) { let v: f64 = sub.f64(x, s) let y: i64 = convert.f64.i64(v) in y }
        in b";
    assert_eq!(shape(&program("[]i64", NUMBERS, shares)), (2, 2, 0));
}

/// What stands between two loops is done before them, after them, or keeps them apart.
#[test]
fn checks_between_loops() {
    let text = |check: &str| {
        let rest = format!(
            "let s: f64 = reduce n [0.0f64] [a] (p: f64, q: f64) {{ let t: f64 = add.f64(p, q) in t }}
            let ok: bool = {check}
            let checked: () = assert(ok, \"too much\", n)
            let b: []i64 = map n [a] (x: f64) {{ let y: i64 = convert.f64.i64(x) in y }}
            in b, s"
        );
        program("[]i64, f64", NUMBERS, &rest)
    };
    let early = text("lt.i64(n, 10i64)");
    assert_eq!(counted(&outcome(&early, Some(0), &args(7, 3)).1).0, 1);
    assert!(outcome(&early, Some(0), &args(33, 3)).0.is_err());
    let late = text("lt.f64(s, 200.0f64)");
    assert_eq!(counted(&outcome(&late, Some(0), &args(7, 3)).1).0, 2);
    assert!(outcome(&late, Some(0), &args(33, 3)).0.is_err());
}

#[test]
fn loops_with_other_bounds_stay_apart() {
    let rest = "let less: i64 = sub.i64(n, 1i64)
        let js: []i64 = iota(less)
        let b: []i64 = map less [js] (j: i64) { let x: f64 = a[j] let y: i64 = convert.f64.i64(x) in y }
        in b";
    assert_eq!(shape(&program("[]i64", NUMBERS, rest)), (2, 2, 0));
}

/// Both loops add to one array; a third reads that.
#[test]
fn loops_may_add_to_the_same_memory_but_not_read_it() {
    let add = "let zeros: []f64 = replicate([m], 0.0f64)
        let h: []f64, d: []f64 = withacc [zeros] (acc: acc []f64) {
            let b: []f64 = map n [a, ks] (x: f64, k: i64) {
                let u: () = add_to(acc, [k], x)
                let y: f64 = add.f64(x, 1.0f64)
                in y }
            let c: []f64 = map n [b, ks] (v: f64, l: i64) {
                let w: () = add_to(acc, [0i64], v)
                let z: f64 = add.f64(v, 1.0f64)
                in z }
            in c
        }";
    let (_, code) =
        outcome(&program("[]f64, []f64", NUMBERS, &format!("{add} in h, d")), Some(0), &args(9, 4));
    assert_eq!(counted(&code).0, 1, "{}", print(&code));
    let read = "let e: []i64 = map n [d] (r: f64) {
            let first: f64 = h[0i64]
            let s: f64 = add.f64(r, first)
            let t: i64 = convert.f64.i64(s)
            in t }
        in e";
    let (_, code) = outcome(&program("[]i64", NUMBERS, &format!("{add} {read}")), Some(0), &args(9, 4));
    assert_eq!(counted(&code).0, 2, "{}", print(&code));
}

/// Sizes that are not the same operand, but compared at the start: rows of both are shown to be in range.
#[test]
fn sizes_that_were_compared_are_equal() {
    let text = |check: &str| {
        format!(
            "fun f(xs: [][]f64, ks: []i64): []f64 {{
                let n: i64 = size(xs, 0)
                let m: i64 = size(xs, 1)
                let l: i64 = size(ks, 0)
                {check}
                {ROWS}
                let is: []i64 = iota(l)
                let b: []f64 = map l [is] (i: i64) {{ let y: f64 = a[i, 0i64] in y }}
                in b
            }}"
        )
    };
    let compared = text("let same: bool = eq.i64(n, l) let checked: () = assert(same, \"equal\", n)");
    assert_eq!(shape(&compared).0, 1);
    // A size stands for what is made of it, not the other way round.
    for sides in ["nl, l", "l, nl"] {
        let product = "let one: i64 = size(xs, 1) let nl: i64 = mul.i64(l, one)";
        let check = format!("let same: bool = eq.i64({sides}) let checked: () = assert(same, \"equal\", n)");
        assert_eq!(shape(&text(&format!("{product} {check}"))).0, 2);
    }
    assert_eq!(shape(&text("")).0, 2);
}

/// An iteration of the second loop that does not end must not come before one of the first that stops the program.
#[test]
fn loops_that_may_not_end_stay_apart() {
    let text = "fun f(xs: [][]f64, ks: []i64): []i64 {
            let n: i64 = size(xs, 0)
            let is: []i64 = iota(n)
            let a: []i64 = map n [ks] (k: i64) {
                let ok: bool = lt.i64(k, 1000i64)
                let checked: () = assert(ok, \"too much\")
                in k }
            let b: []i64 = map n [a] (k: i64) {
                let last: i64 = loop (s: i64 = k) while { let go: bool = ne.i64(s, 0i64) in go } { in s }
                in last }
            in b
        }";
    let mut keys = vec![1; 17];
    keys[16] = 1000;
    let args = [Value::f64_array(&[17, 1], &[0.0; 17]), Value::i64s(&keys)];
    let (found, code) = outcome(text, Some(0), &args);
    assert!(found.is_err(), "{}", print(&code));
}
