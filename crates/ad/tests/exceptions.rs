//! What would be an exception of the cost claim without locations.
//!
//! Functions that overwrite an array and hand on a part of it to a call that overwrites it, or overwrite several elements of the part at once: the part
//! would be copied.
//!
//! And an array that a branch makes in one arm (so that the branch is no mere
//! choice of names), used in a small map of the same iteration. What the map adds would go to an array of zeros as large as
//! the array, per iteration.

use crate::common::{add_vjp, first, mismatch, parse, run};
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
fn cost(text: &str, n: usize, scale: f64, config: &Config) -> (f64, u64) {
    let floats = |phase: f64| {
        let at = |i: usize| (i as f64 * 0.37 + phase).sin() * scale;
        Value::f64s(&(0..n).map(at).collect::<Vec<f64>>())
    };
    let args = [Value::i64(n as i64), floats(0.0), floats(1.0)];
    assert_eq!(mismatch(text, &args, config), None);
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, config).expect("supported");
    let (_, plain) = run(&program, f, &args);
    let (_, derived) = run(&program, id, &[&args[..], &[Value::f64(1.0)]].concat());
    (derived.work as f64 / plain.work as f64, derived.zero_cells)
}

/// The state stays below 0.9, so the program never pays for the new array.
const SMALL: f64 = 0.01;

#[test]
fn a_new_or_chosen_array_in_a_small_map_costs_a_constant() {
    let text = program(MAP);
    let both = |config: &Config| (cost(&text, 16, SMALL, config), cost(&text, 128, SMALL, config));
    let (small, large) = both(&Config::default());
    assert!(large.0 <= 1.1 * small.0, "{small:?} {large:?}");
    assert!(
        large.1 <= 3 * 128,
        "the gradients of the two inputs, and of the array that is never made: {large:?}"
    );
    let (small, large) = both(&Config { locations: false, ..Config::default() });
    assert!(large.0 > 3.0 * small.0, "{small:?} {large:?}");
    assert!((128 * 128..129 * 128 + 256).contains(&large.1), "one array of zeros per iteration: {large:?}");
}

#[test]
fn the_same_array_without_the_map_costs_a_constant() {
    let text = program("let t: f64 = d[i]");
    let (small, large) =
        (cost(&text, 16, SMALL, &Config::default()), cost(&text, 128, SMALL, &Config::default()));
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
fn gradients_are_right_in_both_arms() {
    for read in [MAP, "let t: f64 = d[i]"] {
        cost(&program(read), 20, 0.5, &Config::default());
    }
}

/// One call of many overwrites an element; the others hand on `w` instead.
#[test]
fn functions_that_overwrite_what_they_are_given_or_hand_on_a_name_cost_a_constant() {
    let text = "fun go(n: i64, i: i64, s: f64, v: []f64, w: []f64): f64, []f64 {
        let more: bool = lt.i64(i, n)
        let t: f64, u: []f64 = if more {
            let e: f64 = v[i]
            let s1: f64 = add.f64(s, e)
            let j: i64 = add.i64(i, 1i64)
            let half: i64 = div.i64(n, 2i64)
            let once: bool = eq.i64(i, half)
            let v1: []f64 = if once { let z: []f64 = update(v, [0i64], s1) in z } else { in w }
            let s2: f64, v2: []f64 = call go(n, j, s1, v1, w)
            in s2, v2
        } else { in s, v }
        in t, u
    }
    fun f(count: i64, x: []f64, y: []f64): f64 {
        let s9: f64, v9: []f64 = call go(count, 0i64, 0.0f64, x, y)
        in s9
    }";
    costs_a_constant(text, |n| n as f64 - 1.0);
}

/// Each call overwrites the array backwards.
const CALLS: &str = "fun f(count: i64, y: []f64, z: []f64): f64 {
        let s9: f64, v9: []f64 = call go(count, 0i64, 0.0f64, y, z)
        let e0: f64 = z[0i64]
        let e1: f64 = v9[0i64]
        let a: f64 = sub.f64(s9, e0)
        let b: f64 = mul.f64(a, e1)
        let c: f64 = add.f64(b, b)
        in c
    }
    fun go(n: i64, i: i64, s: f64, v: []f64, w: []f64): f64, []f64 {
        let more: bool = lt.i64(i, n)
        let t: f64, u: []f64 = if more {
            let e: f64 = w[i]
            let s1: f64 = add.f64(s, e)
            let j: i64 = add.i64(i, 1i64)
            let last: i64 = sub.i64(n, 1i64)
            let back: []f64 = slice(v, last, n, -1i64)
            let v1: []f64 = update(back, [0i64], 0.5f64)
            let s2: f64, v2: []f64 = call go(n, j, s1, v1, w)
            in s2, v2
        } else { in s, v }
        in t, u
    }";

#[test]
fn functions_that_hand_on_parts_of_what_they_overwrote_cost_a_constant() {
    costs_a_constant(CALLS, |n| n as f64 - 1.0);
}

/// Each call overwrites an element of what comes back, backwards.
#[test]
fn functions_that_overwrite_parts_of_what_they_get_back_cost_a_constant() {
    let text = CALLS
        .replace("v1: []f64 = update(back, [0i64], 0.5f64)", "v1: []f64 = update(v, [0i64], 0.5f64)")
        .replace("let back: []f64 = slice(v, last, n, -1i64)\n", "")
        .replace(
            "in s2, v2",
            "let back: []f64 = slice(v2, last, n, -1i64)
            let v3: []f64 = update(back, [0i64], 0.5f64)
            in s2, v3",
        );
    assert!(text.contains("slice(v2") && !text.contains("slice(v,"));
    costs_a_constant(&text, |n| n as f64 - 1.0);
}

/// Each call hands on what a loop chooses, its first state or a part of another argument, and overwrites what it gets back.
#[test]
fn functions_that_overwrite_what_a_loop_chose_among_arguments_cost_a_constant() {
    let text = "fun go(n: i64, i: i64, s: f64, v: []f64, first: []f64, wide: []f64): f64, []f64 {
        let more: bool = lt.i64(i, n)
        let t: f64, u: []f64 = if more {
            let e: f64 = v[i]
            let s1: f64 = add.f64(s, e)
            let j: i64 = add.i64(i, 1i64)
            let v1: []f64 = loop (u1: []f64 = first) for k: i64 < 2i64 {
                let last: i64 = sub.i64(n, 1i64)
                let u2: []f64 = slice(wide, last, n, -1i64)
                let u3: []f64 = slice(u2, last, n, -1i64)
                in u3
            }
            let s2: f64, v2: []f64 = call go(n, j, s1, v1, first, wide)
            let v3: []f64 = update(v2, [i], 0.5f64)
            let size: i64 = size(v3, 0)
            let end: i64 = sub.i64(size, 1i64)
            let back: []f64 = slice(v3, end, size, -1i64)
            in s2, back
        } else { in s, v }
        in t, u
    }
    fun f(count: i64, y: []f64, z: []f64): f64 {
        let s9: f64, v9: []f64 = call go(count, 0i64, 0.0f64, z, y, z)
        let e0: f64 = z[0i64]
        let a: f64 = sub.f64(s9, e0)
        in a
    }";
    costs_a_constant(text, |n| n as f64 - 1.0);
}

/// Each call overwrites an array, exchanges it with another one, and returns one of the two that it gets back for both.
#[test]
fn functions_that_hand_on_what_they_overwrote_and_forget_it_cost_a_constant() {
    let text = "fun go(n: i64, i: i64, s: f64, v: []f64, w: []f64, from: []f64): f64, []f64, []f64 {
        let more: bool = lt.i64(i, n)
        let t: f64, u: []f64, x: []f64 = if more {
            let e: f64 = from[i]
            let s1: f64 = add.f64(s, e)
            let j: i64 = add.i64(i, 1i64)
            let v1: []f64 = update(v, [0i64], 0.5f64)
            let s2: f64, a: []f64, b: []f64 = call go(n, j, s1, w, v1, from)
            let c: f64 = b[0i64]
            let d: f64 = add.f64(c, 0.5f64)
            let s3: f64 = mul.f64(s2, d)
            in s3, a, a
        } else { in s, v, w }
        in t, u, x
    }
    fun f(count: i64, y: []f64, z: []f64): f64 {
        let fixed: []f64 = replicate([count], 0.3f64)
        let s9: f64, v9: []f64, w9: []f64 = call go(count, 0i64, 0.0f64, y, fixed, z)
        let e0: f64 = z[0i64]
        let e1: f64 = v9[0i64]
        let e2: f64 = w9[0i64]
        let p: f64 = sub.f64(s9, e0)
        let q: f64 = add.f64(e1, e2)
        let r: f64 = mul.f64(p, q)
        in r
    }";
    costs_a_constant(text, |n| n as f64 - 1.0);
    // What is handed on is the result of a branch or of a loop.
    let branch = "let even: bool = eq.f64(e, 0.0f64) let w1: []f64 = if even { in w } else { in w }";
    let repeated = "let w1: []f64 = loop (w2: []f64 = w) for k: i64 < i { in w2 }";
    for merge in [branch, repeated] {
        let text = text.replace("let v1", &format!("{merge} let v1")).replace("s1, w, v1", "s1, w1, v1");
        costs_a_constant(&text, |n| n as f64 - 1.0);
    }
}

/// Each call returns one array twice, backwards or not.
#[test]
fn functions_that_return_parts_of_one_array_cost_a_constant() {
    let text = CALLS
        .replace("f64, []f64 {", "f64, []f64, []f64 {")
        .replace("let t: f64, u: []f64 = if", "let t: f64, u: []f64, x: []f64 = if")
        .replace("let s2: f64, v2: []f64 = call", "let s2: f64, v2: []f64, v3: []f64 = call")
        .replace("in s2, v2", "in s2, v2, v2")
        .replace("in s, v }", "in s, v, v }")
        .replace("in t, u\n", "in t, u, x\n")
        .replace("let s9: f64, v9: []f64 =", "let s9: f64, v9: []f64, v8: []f64 =");
    for text in [text.replace("update(back,", "update(v,"), text] {
        costs_a_constant(&text, |n| n as f64 - 1.0);
    }
}

/// Each call overwrites several elements at once, by whatever operation.
#[test]
fn functions_that_overwrite_several_elements_of_parts_cost_a_constant() {
    for text in several(CALLS) {
        let (small, large) =
            (cost(&text, 16, 0.2, &Config::default()).0, cost(&text, 128, 0.2, &Config::default()).0);
        assert!(large <= 1.1 * small, "{small} {large}\n{text}");
    }
}

/// Each call overwrites a row of a matrix that may be a transposed one, and an element of what comes back.
#[test]
fn functions_that_overwrite_rows_of_what_may_be_transposed_cost_a_constant() {
    let text = "fun f(count: i64, y: []f64, z: []f64): f64 {
        let half: [][]f64 = replicate([count, 4i64], 0.5f64)
        let y0: f64 = y[0i64]
        let rows: [][]f64 = replicate([4i64, count], y0)
        let s9: f64, m9: [][]f64 = call go(count, 0i64, 0.0f64, rows, z, half)
        let e: f64 = m9[0i64, 1i64]
        let r: f64 = mul.f64(s9, e)
        in r
    }
    fun go(n: i64, i: i64, s: f64, m: [][]f64, x: []f64, columns: [][]f64): f64, [][]f64 {
        let more: bool = lt.i64(i, n)
        let t: f64, u: [][]f64 = if more {
            let b: f64 = x[i]
            let s1: f64 = add.f64(s, b)
            let k: i64 = mod.i64(i, 4i64)
            let m1: [][]f64 = update(m, [k], x)
            let c: f64 = m1[k, i]
            let s2: f64 = add.f64(s1, c)
            let turned: [][]f64 = rearrange([1, 0], columns)
            let j: i64 = add.i64(i, 1i64)
            let s3: f64, back: [][]f64 = call go(n, j, s2, turned, x, columns)
            let d: f64 = back[1i64, i]
            let s4: f64 = add.f64(s3, d)
            let m2: [][]f64 = update(back, [k, i], s)
            let m3: [][]f64 = slice(m2, 3i64, 4i64, -1i64)
            in s4, m3
        } else { in s, m }
        in t, u
    }";
    let (small, large) =
        (cost(text, 16, 0.2, &Config::default()).0, cost(text, 128, 0.2, &Config::default()).0);
    assert!(large <= 1.1 * small, "{small} {large}");
}

#[test]
fn loops_that_overwrite_parts_of_what_they_made_cost_a_constant() {
    costs_a_constant(BACKWARDS, |n| n as f64 - 1.0);
}

/// Each iteration overwrites several elements at once, by whatever operation.
#[test]
fn loops_that_overwrite_several_elements_of_parts_cost_a_constant() {
    let [one, scattered, added, several] = several(BACKWARDS);
    // The array as two columns, and as one again.
    let unflattened = BACKWARDS
        .replace("let back: []f64 = slice(v0, last, n, -1i64)", "let m: i64 = div.i64(n, 2i64) let rows: [][]f64 = reshape([m, 2i64], 1, v0)")
        .replace(
            "let v1: []f64 = update(back, [0i64], 0.5f64)",
            "let two: []f64 = replicate([2i64], s1) let r1: [][]f64 = update(rows, [0i64], two) let v1: []f64 = reshape([n], 2, r1)",
        );
    for text in [&one, &scattered, &added, &several, &unflattened, COLUMNS] {
        let (small, large) =
            (cost(text, 16, 0.2, &Config::default()).0, cost(text, 128, 0.2, &Config::default()).0);
        assert!(large <= 1.1 * small, "{small} {large}\n{text}");
    }
}

/// The program with several elements overwritten at once instead of one.
fn several(text: &str) -> [String; 4] {
    let hist = |result: &str| format!("hist 1i64 [0.0f64] [back] at [half] (p: f64, q: f64) {{ {result} }}");
    let operations = [
        "update_slice(back, 0i64, 1i64, 1i64, half)".into(),
        "scatter(1i64, back, at, half)".into(),
        hist("let r: f64 = add.f64(p, q) in r"),
        hist("let r: f64 = mul.f64(p, q) let o: f64 = add.f64(p, q) let g: f64 = add.f64(r, o) in g"),
    ];
    operations.map(|operation| {
        let some = "let half: []f64 = replicate([1i64], s1)
            let at: []i64 = array(0i64): i64
            let last:";
        let text = text.replace("let last:", some);
        text.replace("update(back, [0i64], 0.5f64)", &operation)
    })
}

/// A loop that overwrites a column of a matrix of four rows, as a row of the transposed.
const COLUMNS: &str = "fun f(n: i64, y: []f64, z: []f64): f64 {
        let m: i64 = div.i64(n, 4i64)
        let first: [][]f64 = reshape([4i64, m], 1, z)
        let s: f64, last: [][]f64 = loop (s0: f64 = 0.0f64, m0: [][]f64 = first) for i: i64 < n {
            let e: f64 = z[i]
            let s1: f64 = add.f64(s0, e)
            let columns: [][]f64 = rearrange([1, 0], m0)
            let four: []f64 = replicate([4i64], s1)
            let j: i64 = mod.i64(i, m)
            let c1: [][]f64 = update(columns, [j], four)
            let m1: [][]f64 = rearrange([1, 0], c1)
            in s1, m1
        }
        let a: f64 = last[1i64, 0i64]
        let b: f64 = last[3i64, 1i64]
        let t: f64 = mul.f64(a, b)
        let w: f64 = mul.f64(t, s)
        in w
    }";

/// A loop that overwrites an element of the array backwards.
const BACKWARDS: &str = "fun f(n: i64, y: []f64, z: []f64): f64 {
        let s: f64, v: []f64 = loop (s0: f64 = 0.0f64, v0: []f64 = z) for i: i64 < n {
            let e: f64 = z[i]
            let s1: f64 = add.f64(s0, e)
            let last: i64 = sub.i64(n, 1i64)
            let back: []f64 = slice(v0, last, n, -1i64)
            let v1: []f64 = update(back, [0i64], 0.5f64)
            in s1, v1
        }
        let e0: f64 = z[0i64]
        let e1: f64 = v[0i64]
        let t: f64 = sub.f64(s, e0)
        let u: f64 = mul.f64(t, e1)
        let w: f64 = add.f64(u, u)
        in w
    }";

/// A map of one lane reads `x` in even calls, and an array of constants in others.
#[test]
fn functions_that_choose_between_an_input_and_a_constant_cost_a_constant() {
    let text = format!(
        "fun go(n: i64, i: i64, s: f64, a: []f64, v: []f64, fx: []f64): f64 {{
        let more: bool = lt.i64(i, n)
        let r: f64 = if more {{
            let h: i64 = mod.i64(i, 2i64)
            let even: bool = eq.i64(h, 0i64)
            let d: []f64 = if even {{ in a }} else {{ in v }}
            {MAP}
            let s1: f64 = add.f64(s, t)
            let j: i64 = add.i64(i, 1i64)
            let s2: f64 = call go(n, j, s1, a, fx, fx)
            in s2
        }} else {{ in s }}
        in r
    }}
    fun f(count: i64, y: []f64, z: []f64): f64 {{
        let fixed: []f64 = replicate([count], 0.5f64)
        let s9: f64 = call go(count, 1i64, 0.0f64, z, y, fixed)
        in s9
    }}"
    );
    costs_a_constant(&text, |n| ((n - 1) / 2) as f64);
}

/// The ratio of work does not grow from the smaller size to the larger one.
fn costs_a_constant(text: &str, sum: impl Fn(usize) -> f64) {
    let (small, large) = ratios(text, sum);
    assert!(large <= 1.1 * small, "{small} {large}\n{text}");
}

/// Work of the derivative over that of the program at two sizes. The gradient with respect to the last input is 0 at its first element
/// and adds up to `sum`.
fn ratios(text: &str, sum: impl Fn(usize) -> f64) -> (f64, f64) {
    let ratio = |n: usize| {
        let mut program = parse(text);
        let f = program.funs.ids().find(|f| program.funs[*f].name.as_str() == "f").expect("a function");
        let floats = || Value::f64s(&(0..n).map(|i| (i as f64 * 0.37).sin()).collect::<Vec<f64>>());
        let args = [Value::i64(n as i64), floats(), floats()];
        let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
        let (_, plain) = run(&program, f, &args);
        let (out, derived) = run(&program, id, &[&args[..], &[Value::f64(1.0)]].concat());
        assert_eq!(out.len(), 3);
        let of_w = out[2].floats();
        assert_eq!((of_w[0], of_w[1..].iter().sum::<f64>()), (0.0, sum(n)), "by hand");
        derived.work as f64 / plain.work as f64
    };
    (ratio(16), ratio(128))
}
