//! Arrays that nobody needs any more give their memory; those that somebody needs do not.

use crate::common::counted::{allocations, copies, count, operation};
use crate::common::{parse, results};
use pullback_core::Value;
use pullback_kernel::{lower, print};
use pullback_prim::{Op, Scalar};

/// How often memory is asked for, and copied.
fn memory(text: &str) -> (usize, usize) {
    let (program, f) = parse(text);
    let module = lower(&program, f).expect("native").0;
    (count(&module, allocations), count(&module, copies))
}

fn check(text: &str, args: &[Value], expected: &[Value]) {
    let program = parse(text);
    for (part, lanes) in [(64, 0), (64, 2), (1, 8)] {
        assert_eq!(results(&program, args, part, lanes), expected, "{lanes} lanes: {text}");
    }
}

/// `ys = a + 1`, then `zs`; `rest`: what is made of them.
fn two_maps(second: &str, rest: &str) -> String {
    format!(
        "fun f(a: []f64): []f64, f64 {{
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) {{ let y: f64 = add.f64(x, 1.0f64) in y }}
            let zs: []f64 = {second}
            {rest}
            in zs, r
        }}"
    )
}

#[test]
fn a_map_writes_over_its_operand_if_nobody_needs_it() {
    let args = [Value::f64s(&[1.0, 2.0, 3.0])];
    let twice = "map n [ys] (x: f64) { let y: f64 = mul.f64(x, 2.0f64) in y }";
    let nothing = "let r: f64 = zs[0i64]";
    let later = "let r: f64 = ys[0i64]";
    let shifted = "map n [ys] (x: f64) { let first: f64 = ys[0i64] let y: f64 = mul.f64(x, first) in y }";
    let both = "map n [ys, ys] (x: f64, w: f64) { let y: f64 = mul.f64(x, w) in y }";
    let doubled = Value::f64s(&[4.0, 6.0, 8.0]);
    for (what, rest, allocations, zs, r) in [
        (twice, nothing, 1, doubled.clone(), 4.0),
        (twice, later, 2, doubled.clone(), 2.0),
        (shifted, nothing, 2, doubled, 4.0),
        (both, nothing, 2, Value::f64s(&[4.0, 9.0, 16.0]), 4.0),
    ] {
        let text = two_maps(what, rest);
        assert_eq!(memory(&text), (allocations, 0), "{text}");
        check(&text, &args, &[zs, Value::f64(r)]);
    }
}

/// A map is lowered as several where one of its results is a sum that is better taken the other way round. Nobody needs `u` after the map, and each of two other
/// results could lie in its memory.
#[test]
fn parts_of_a_map_do_not_write_over_what_other_parts_read() {
    let text = "fun f(a: [][]f64, b: [][]f64, y: []f64): []f64, []f64, [][]f64 {
        let n: i64 = size(a, 0)
        let m: i64 = size(a, 1)
        let p: i64 = size(b, 1)
        let k: i64 = size(b, 0)
        let same: bool = eq.i64(k, n)
        let ok: () = assert(same, \"sizes\", k, n)
        let u: []f64 = map m [y] (x: f64) { let s: f64 = add.f64(x, 1.0f64) in s }
        let columns: [][]f64 = rearrange([1, 0], a)
        let bs: [][]f64 = rearrange([1, 0], b)
        let v: []f64, w: []f64, zs: [][]f64 = map m [columns, u] (column: []f64, x: f64) {
            let row: []f64 = map p [bs] (q: []f64) {
                let z: f64 = map_reduce_comm n [0.0f64] [column, q] (g: f64, h: f64) {
                    let gh: f64 = mul.f64(g, h)
                    in gh
                } with (l: f64, r: f64) { let s: f64 = add.f64(l, r) in s }
                in z
            }
            let sum: f64 = reduce_comm n [0.0f64] [column] (l: f64, r: f64) { let s: f64 = add.f64(l, r) in s }
            let scaled: f64 = mul.f64(sum, x)
            let tripled: f64 = mul.f64(x, 3.0f64)
            in scaled, tripled, row
        }
        in v, w, zs
    }";
    let args = [
        Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        Value::f64_array(&[2, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, 1.0]),
        Value::f64s(&[1.0, 2.0]),
    ];
    let (v, w) = (Value::f64s(&[8.0, 18.0]), Value::f64s(&[6.0, 9.0]));
    check(text, &args, &[v, w, Value::f64_array(&[2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 8.0])]);
}

/// The next state of `t` lies in the memory of the state `s`, which has a next state of its own.
#[test]
fn a_state_that_was_written_over_is_put_aside() {
    let text = "fun f(a: []f64, b: []f64): []f64, []f64 {
        let n: i64 = size(a, 0)
        let k: []f64, l: []f64 = loop (s: []f64 = a, t: []f64 = b) for i: i64 < 3i64 {
            let u: []f64 = map n [t] (x: f64) { let y: f64 = add.f64(x, 100.0f64) in y }
            let v: []f64 = map n [s] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            in u, v
        }
        in k, l }";
    let args = [Value::f64s(&[1.0, 2.0]), Value::f64s(&[10.0, 20.0])];
    // s, t: (1, 10), (110, 2), (102, 111), (211, 103).
    check(text, &args, &[Value::f64s(&[211.0, 221.0]), Value::f64s(&[103.0, 104.0])]);
}

#[test]
fn an_update_in_one_arm_of_a_branch_is_in_place() {
    let text = "fun f(a: []f64, i: i64): []f64 {
        let n: i64 = size(a, 0)
        let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
        let some: bool = le.i64(0i64, i)
        let zs: []f64 = if some { let u: []f64 = update(ys, [i], 7.0f64) in u } else { in ys }
        in zs }";
    assert_eq!(memory(text), (1, 0));
    for (i, expected) in [(-1, [2.0, 3.0, 4.0]), (1, [2.0, 7.0, 4.0])] {
        check(text, &[Value::f64s(&[1.0, 2.0, 3.0]), Value::i64(i)], &[Value::f64s(&expected)]);
    }
}

/// Two states that begin with the same array do not share its memory.
#[test]
fn equal_neutral_elements_are_two_states() {
    for operation in ["scan", "reduce"] {
        let ty = if operation == "scan" { "[][]i64" } else { "[]i64" };
        let text = format!(
            "fun f(a: [][]i64, b: [][]i64): {ty}, {ty} {{
                let n: i64 = size(a, 0)
                let e: []i64 = array(0i64, 0i64): i64
                let one: []i64 = map 2i64 [e] (x: i64) {{ let y: i64 = mul.i64(x, 5i64) in y }}
                let r: {ty}, s: {ty} = {operation} n [one, one] [a, b] (p: []i64, q: []i64, v: []i64, w: []i64) {{
                    let k: []i64 = map 2i64 [p, v] (c: i64, d: i64) {{ let y: i64 = add.i64(c, d) in y }}
                    let l: []i64 = map 2i64 [q, w] (c: i64, d: i64) {{ let y: i64 = add.i64(c, d) in y }}
                    in k, l
                }}
                in r, s }}"
        );
        let rows = |xs: &[i64]| {
            Value::Array(pullback_core::Array::new(
                vec![xs.len() / 2, 2],
                pullback_core::Buffer::I64(xs.to_vec()),
            ))
        };
        let args = [rows(&[1, 2, 3, 4]), rows(&[10, 20, 30, 40])];
        let expected = if operation == "scan" {
            [rows(&[1, 2, 4, 6]), rows(&[10, 20, 40, 60])]
        } else {
            [Value::i64s(&[4, 6]), Value::i64s(&[40, 60])]
        };
        check(&text, &args, &expected);
    }
}

/// The operator makes `c` of the element that it takes in and does not need any more, but the element is collected too.
#[test]
fn elements_that_are_collected_are_not_written_over() {
    let text = |operation: &str| {
        format!(
            "fun f(xs: [][]f64): {kind}[]f64, [][]f64 {{
                let n: i64 = size(xs, 0)
                let zeros: []f64 = replicate([2i64], 0.0f64)
                let all: {kind}[]f64, ys: [][]f64 = {operation} n [zeros] [xs] (r: []f64) {{
                    let q: []f64 = map 2i64 [r] (x: f64) {{ let y: f64 = mul.f64(x, 2.0f64) in y }}
                    in q, q
                }} with (a: []f64, b: []f64) {{
                    let c: []f64 = map 2i64 [b] (u: f64) {{ let v: f64 = neg.f64(u) in v }}
                    let d: []f64 = map 2i64 [a, c] (s: f64, t: f64) {{ let w: f64 = sub.f64(s, t) in w }}
                    in d
                }}
                in all, ys
            }}",
            kind = if operation == "map_scan" { "[]" } else { "" }
        )
    };
    let xs = Value::f64_array(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let doubled = Value::f64_array(&[3, 2], &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    check(&text("map_reduce"), std::slice::from_ref(&xs), &[Value::f64s(&[18.0, 24.0]), doubled.clone()]);
    let prefixes = Value::f64_array(&[3, 2], &[2.0, 4.0, 8.0, 12.0, 18.0, 24.0]);
    check(&text("map_scan"), &[xs], &[prefixes, doubled]);
}

/// The condition of a loop does not need its states afterwards; the body does.
#[test]
fn a_condition_does_not_write_over_the_state() {
    let text = "fun f(a: []f64): []f64 {
        let n: i64 = size(a, 0)
        let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 0.0f64) in y }
        let r: []f64 = loop (s: []f64 = ys) while {
            let t: []f64 = update(s, [0i64], 5.0f64)
            let x0: f64 = t[0i64]
            let x1: f64 = t[1i64]
            let sum: f64 = add.f64(x0, x1)
            let go: bool = lt.f64(sum, 20.0f64)
            in go
        } {
            let next: []f64 = map n [s] (u: f64) { let v: f64 = mul.f64(u, 2.0f64) in v }
            in next
        }
        in r
    }";
    check(text, &[Value::f64s(&[1.0, 3.0])], &[Value::f64s(&[8.0, 24.0])]);
}

/// It works in the same memory every time: all times together would need more than there is.
#[test]
fn a_condition_gives_its_memory_back() {
    let text = "fun f(a: []f64): i64 {
        let k: i64 = loop (i: i64 = 0i64) while {
            let t: []f64 = update(a, [0i64], 5.0f64)
            let x0: f64 = t[0i64]
            let below: bool = lt.i64(i, 3000i64)
            let five: bool = eq.f64(x0, 5.0f64)
            let go: bool = and.bool(below, five)
            in go
        } {
            let next: i64 = add.i64(i, 1i64)
            in next
        }
        in k
    }";
    check(text, &[Value::f64s(&[1.0; 4096])], &[Value::i64(3000)]);
}

/// The test of a loop, where scheduling finds that it is another register: one condition of two always holds, or the same was
/// asked before.
#[test]
fn tests_of_loops_have_other_names() {
    let text = "fun f(n: i64, a: []f64): i64, f64 {
        let zero: i64 = mod.i64(0i64, 5i64)
        let below: bool = lt.i64(zero, n)
        let k: i64 = loop (i: i64 = 0i64) while {
            let more: bool = lt.i64(i, n)
            let five: i64 = mod.i64(0i64, 5i64)
            let x: f64 = convert.i64.f64(five)
            let small: bool = lt.f64(x, 0.9f64)
            let go: bool = and.bool(more, small)
            in go
        } {
            let next: i64 = add.i64(i, 1i64)
            in next
        }
        let s: f64 = loop (s0: f64 = 1.0f64) while {
            let zero2: i64 = mod.i64(0i64, 7i64)
            let some: bool = lt.i64(n, zero2)
            in some
        } {
            let s1: f64 = a[0i64]
            in s1
        }
        let t: f64 = if below { in s } else { in 2.0f64 }
        in k, t
    }";
    check(text, &[Value::i64(3), Value::f64s(&[5.0])], &[Value::i64(3), Value::f64(1.0)]);
}

/// A function whose last branch gives a value that lies in none of its memory gives that memory back: the calls of the map
/// together would need more than there is. The other results are numbers from that memory.
#[test]
fn a_call_that_drops_what_it_made_gives_its_memory_back() {
    let text = "type list = #nil | #cons (#tape []f64) list
    fun f(a: []f64): f64 {
        let is: []i64 = iota(3000i64)
        let ls: []list, xs: []f64 = map 3000i64 [is] (i: i64) {
            let j: i64 = mod.i64(i, 3i64)
            let small: bool = lt.i64(i, 2990i64)
            let l: list, x: f64 = call g(a, j, small)
            in l, x
        }
        let s: f64 = loop (s0: f64 = 0.0f64) for k: i64 < 3000i64 {
            let m: list = ls[k]
            let y: f64 = match m
                case () { in 0.5f64 }
                case (box: (#tape []f64), rest: list) {
                    let inside: []f64 = match box case (b: []f64) { in b }
                    let z: f64 = inside[1i64]
                    in z
                }
            let x0: f64 = xs[k]
            let t: f64 = add.f64(x0, y)
            let s1: f64 = add.f64(s0, t)
            in s1
        }
        in s
    }
    fun g(a1: []f64, j1: i64, small1: bool): list, f64 {
        let t1: []f64 = update(a1, [1i64], 5.0f64)
        let x1: f64 = t1[j1]
        let box1: (#tape []f64) = inject(0, t1): (#tape []f64)
        let r1: list = if small1 {
            let nil: list = inject(0): list
            in nil
        } else {
            let nil2: list = inject(0): list
            let some: list = inject(1, box1, nil2): list
            in some
        }
        in r1, x1
    }";
    let mut args = vec![2.0; 4096];
    args[0] = 1.0;
    // 1000 times 1, 5 and 2; 0.5 from all but ten, of which each gives 5.
    let sum = 1000.0 * (1.0 + 5.0 + 2.0) + 0.5 * 2990.0 + 50.0;
    check(text, &[Value::f64s(&args)], &[Value::f64(sum)]);
}

/// An array of cases that a loop fills points to an array from before it, which is not written over after it while somebody reads the cases.
#[test]
fn what_the_cases_of_a_state_hold_is_kept() {
    let text = "fun f(a: []f64): f64, f64 {
        let n: i64 = size(a, 0)
        let r: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
        let none: (#none | #some []f64) = inject(0): (#none | #some []f64)
        let nothing: [](#none | #some []f64) = replicate([2i64], none)
        let all: [](#none | #some []f64) = loop (s: [](#none | #some []f64) = nothing) for i: i64 < 2i64 {
            let e: (#none | #some []f64) = inject(1, r): (#none | #some []f64)
            let t: [](#none | #some []f64) = update(s, [i], e)
            in t
        }
        let over: []f64 = update(r, [0i64], 100.0f64)
        let z: f64 = over[0i64]
        let first: (#none | #some []f64) = all[0i64]
        let k: f64 = match first case () { in 0.0f64 } case (q: []f64) { let q_0: f64 = q[0i64] in q_0 }
        in k, z
    }";
    check(text, &[Value::f64s(&[1.0, 2.0])], &[Value::f64(2.0), Value::f64(100.0)]);
}

/// A sum of arrays of cases points to what one of them holds, where the other is zero.
#[test]
fn what_the_cases_of_a_sum_hold_is_kept() {
    let text = "fun f(a: []f64): f64, f64 {
        let n: i64 = size(a, 0)
        let none: (#none | #some []f64) = inject(0): (#none | #some []f64)
        let nothing: [](#none | #some []f64) = replicate([2i64], none)
        let some: [](#none | #some []f64) = map 2i64 [] () {
            let r: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
            let e: (#none | #some []f64) = inject(1, r): (#none | #some []f64)
            in e
        }
        let both: [](#none | #some []f64) = plus(nothing, some)
        let second: (#none | #some []f64) = some[1i64]
        let z: f64 = match second case () { in 0.0f64 } case (p: []f64) {
            let over: []f64 = update(p, [0i64], 100.0f64)
            let p_0: f64 = over[0i64]
            in p_0
        }
        let mine: (#none | #some []f64) = both[1i64]
        let k: f64 = match mine case () { in 0.0f64 } case (q: []f64) { let q_0: f64 = q[0i64] in q_0 }
        in k, z
    }";
    check(text, &[Value::f64s(&[1.0, 2.0])], &[Value::f64(2.0), Value::f64(100.0)]);
}

/// Parallel bodies use what the others use, and their results are needed after all of them.
#[test]
fn parallel_bodies_do_not_write_over_what_others_use() {
    let text = "fun f(a: []f64): []f64, []f64, []f64 {
        let n: i64 = size(a, 0)
        let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
        let zs: []f64 = map n [a] (w: f64) { let z: f64 = add.f64(w, 2.0f64) in z }
        let p: []f64, q: []f64, r: []f64 = par {
            let us: []f64 = update(ys, [0i64], 7.0f64)
            in us
        } {
            let vs: []f64 = map n [ys, zs] (s: f64, t: f64) { let v: f64 = add.f64(s, t) in v }
            in zs
        } {
            let ws: []f64 = update(zs, [1i64], 9.0f64)
            let x0: f64 = ys[0i64]
            let xs: []f64 = update(ws, [0i64], x0)
            in xs
        }
        in p, q, r
    }";
    let expected = [Value::f64s(&[7.0, 3.0]), Value::f64s(&[3.0, 4.0]), Value::f64s(&[2.0, 9.0])];
    check(text, &[Value::f64s(&[1.0, 2.0])], &expected);
}

/// `ys = a + 1` and `zs = 2 a`, then what is made of them, with these results.
fn two_parts(rest: &str, types: &str, results: &str) -> String {
    format!(
        "fun f(a: []f64): {types} {{
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) {{ let y: f64 = add.f64(x, 1.0f64) in y }}
            let zs: []f64 = map n [a] (v: f64) {{ let z: f64 = mul.f64(v, 2.0f64) in z }}
            {rest}
            in {results}
        }}"
    )
}

#[test]
fn parts_of_a_concatenation_are_made_in_it() {
    let one = |xs: &[f64]| vec![Value::f64s(xs)];
    let two = |xs: &[f64], ys: &[f64]| vec![Value::f64s(xs), Value::f64s(ys)];
    let (whole, both) = ("let c: []f64 = concat(ys, zs)", "[]f64, []f64");
    let doubled = "let n2: i64 = mul.i64(n, 2i64)
        let m: [][]f64 = map n [a] (u: f64) { let r: []f64 = array(u, u): f64 in r }
        let rs: []f64 = reshape([n2], 2, m)
        let c: []f64 = concat(rs, ys)";
    for (rest, types, results, (allocations, copies), expected) in [
        (whole.to_string(), "[]f64", "c", (1, 0), one(&[2.0, 3.0, 2.0, 4.0])),
        // The rows of `m`, and `zs`, which is not in the result, need none of their own.
        (doubled.to_string(), "[]f64", "c", (2, 0), one(&[1.0, 1.0, 2.0, 2.0, 2.0, 3.0])),
        // A part is a part of one whole, once.
        ("let c: []f64 = concat(ys, ys)".to_string(), "[]f64", "c", (2, 1), one(&[2.0, 3.0, 2.0, 3.0])),
        (
            format!("{whole} let d: []f64 = concat(zs, c)"),
            "[]f64",
            "d",
            (2, 2),
            one(&[2.0, 4.0, 2.0, 3.0, 2.0, 4.0]),
        ),
        // What is not made here is copied.
        ("let c: []f64 = concat(a, zs)".to_string(), "[]f64", "c", (2, 1), one(&[1.0, 2.0, 2.0, 4.0])),
        // Nobody writes over a part while the whole is needed, nor over the whole while a part is.
        (
            format!("{whole} let d: []f64 = update(ys, [0i64], 9.0f64)"),
            both,
            "c, d",
            (2, 1),
            two(&[2.0, 3.0, 2.0, 4.0], &[9.0, 3.0]),
        ),
        (
            format!("{whole} let d: []f64 = update(c, [3i64], 9.0f64)"),
            both,
            "d, zs",
            (2, 1),
            two(&[2.0, 3.0, 2.0, 9.0], &[2.0, 4.0]),
        ),
        (
            format!("{whole} let d: []f64 = update(c, [3i64], 9.0f64)"),
            "[]f64",
            "d",
            (1, 0),
            one(&[2.0, 3.0, 2.0, 9.0]),
        ),
        (
            format!("{whole} let d: []f64 = map n [ys] (p: f64) {{ let q: f64 = neg.f64(p) in q }}"),
            both,
            "c, d",
            (2, 0),
            two(&[2.0, 3.0, 2.0, 4.0], &[-2.0, -3.0]),
        ),
    ] {
        let text = two_parts(&rest, types, results);
        assert_eq!(memory(&text), (allocations, copies), "{text}");
        check(&text, &[Value::f64s(&[1.0, 2.0])], &expected);
    }
}

/// The sizes of the other part are known only after the first part is made: that one is copied.
#[test]
fn a_concatenation_of_sizes_that_are_computed_later() {
    let text = "fun f(a: []f64): []f64 {
        let n: i64 = size(a, 0)
        let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
        let s: f64 = ys[1i64]
        let k: i64 = convert.f64.i64(s)
        let is: []i64 = iota(k)
        let zs: []f64 = map k [is] (i: i64) { let z: f64 = convert.i64.f64(i) in z }
        let c: []f64 = concat(ys, zs)
        in c
    }";
    assert_eq!(memory(text), (2, 1));
    check(text, &[Value::f64s(&[1.0, 2.0])], &[Value::f64s(&[2.0, 3.0, 0.0, 1.0, 2.0])]);
}

/// The sizes of the other part are computed after the first part is made, from what was there before: they are computed first.
#[test]
fn a_concatenation_of_sizes_that_can_be_computed_before() {
    let text = "fun f(a: []f64): []f64 {
        let n: i64 = size(a, 0)
        let ys: []f64 = map n [a] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }
        let m: i64 = add.i64(n, 1i64)
        let k: i64 = sub.i64(m, 2i64)
        let is: []i64 = iota(k)
        let zs: []f64 = map k [is] (i: i64) {
            let j: i64 = mul.i64(i, m) let z: f64 = convert.i64.f64(j) in z }
        let c: []f64 = concat(ys, zs)
        in c
    }";
    assert_eq!(memory(text), (1, 0));
    check(text, &[Value::f64s(&[1.0, 2.0, 4.0])], &[Value::f64s(&[2.0, 3.0, 5.0, 0.0, 4.0])]);
    // A number that may stop the program is computed in its place.
    let text = text.replace("sub.i64(m, 2i64)", "quot.i64(m, n)");
    assert_eq!(memory(&text), (2, 1));
    check(&text, &[Value::f64s(&[1.0, 2.0])], &[Value::f64s(&[2.0, 3.0, 0.0])]);
}

/// Rows of numbers of elements that are there in the text: the parts are made in the rows.
#[test]
fn parts_of_rows_are_made_in_the_rows() {
    let text = |zs: &str, shape: &str, concat: &str| {
        format!(
            "fun f(a: []f64): [][]f64 {{
                let n: i64 = size(a, 0)
                let two: []i64 = iota(2i64)
                let three: []i64 = iota(3i64)
                let m: [][]f64 = map n [a] (x: f64) {{
                    let ys: []f64 = map 2i64 [two] (i: i64) {{
                        let y: f64 = convert.i64.f64(i) let w: f64 = add.f64(x, y) in w }}
                    let zs: {shape} = {zs}
                    let c: []f64 = {concat}
                    in c
                }}
                in m
            }}"
        )
    };
    let map = "map 3i64 [three] (j: i64) { let z: f64 = convert.i64.f64(j) let v: f64 = mul.f64(x, z) in v }";
    let rows = Value::f64_array(&[2, 5], &[1.0, 2.0, 0.0, 1.0, 2.0, 2.0, 3.0, 0.0, 2.0, 4.0]);
    let both = text(map, "[]f64", "concat(ys, zs)");
    assert_eq!(memory(&both), (1, 0), "{both}");
    check(&both, &[Value::f64s(&[1.0, 2.0])], &[rows]);
    // Twice the same part: one of them is copied.
    let twice = text(map, "[]f64", "concat(ys, zs, ys)");
    let rows = Value::f64_array(&[1, 7], &[1.0, 2.0, 0.0, 1.0, 2.0, 1.0, 2.0]);
    assert_eq!(memory(&twice).1, 1, "{twice}");
    check(&twice, &[Value::f64s(&[1.0])], &[rows]);
}

/// Parts whose rows are not known to be as long as each other are not made where the whole is asked for: what is too long would be
/// written behind it before anybody compares.
#[test]
#[should_panic(expected = "ShapeMismatch")]
fn parts_of_other_rows_stop_the_program() {
    let text = "fun f(a: []f64, n: i64, k: i64): [][][]f64 {
        let m: i64 = size(a, 0)
        let ns: []i64 = iota(n)
        let ks: []i64 = iota(k)
        let two: []i64 = iota(2i64)
        let all: [][][]f64 = map m [a] (x: f64) {
            let ys: [][]f64 = map 2i64 [two] (i: i64) {
                let r: []f64 = map n [ns] (j: i64) { let z: f64 = convert.i64.f64(j) let v: f64 = add.f64(x, z) in v } in r }
            let zs: [][]f64 = map 2i64 [two] (i2: i64) {
                let s: []f64 = map k [ks] (j2: i64) { let z2: f64 = convert.i64.f64(j2) let v2: f64 = mul.f64(x, z2) in v2 } in s }
            let c: [][]f64 = concat(ys, zs)
            in c
        }
        in all
    }";
    let rows = Value::f64_array(&[1, 4, 2], &[1.0, 2.0, 1.0, 2.0, 0.0, 1.0, 0.0, 1.0]);
    check(text, &[Value::f64s(&[1.0]), Value::i64(2), Value::i64(2)], &[rows]);
    results(&parse(text), &[Value::f64s(&[1.0]), Value::i64(1), Value::i64(100)], 64, 0);
}

/// Five elements and less than none are not four: nothing is made in a place that is too small for it.
fn five_and(count: &str) {
    let text = format!(
        "fun f(a: []f64, n: i64): [][]f64 {{
            let m: i64 = size(a, 0)
            let five: []i64 = iota(5i64)
            let all: [][]f64 = map m [a] (x: f64) {{
                let ys: []f64 = map 5i64 [five] (i: i64) {{
                    let z: f64 = convert.i64.f64(i) let v: f64 = add.f64(x, z) in v }}
                let zs: []f64 = replicate([{count}], x)
                let c: []f64 = concat(ys, zs)
                in c
            }}
            in all
        }}"
    );
    results(&parse(&text), &[Value::f64s(&[1.0]), Value::i64(-1)], 64, 0);
}
#[test]
#[should_panic(expected = "NegativeSize")]
fn a_part_of_less_than_no_elements_stops_the_program() {
    five_and("-1i64");
}
#[test]
#[should_panic(expected = "NegativeSize")]
fn a_part_of_as_many_elements_as_an_argument_says_stops_the_program() {
    five_and("n");
}

/// Rows that are put together in a loop; and wholes in a loop's state.
#[test]
fn concatenations_in_loops() {
    let text = "fun f(a: []f64): [][]f64, []f64 {
        let n: i64 = size(a, 0)
        let two: []i64 = iota(2i64)
        let three: []i64 = iota(3i64)
        let m: [][]f64 = map n [a] (x: f64) {
            let ys: []f64 = map 2i64 [two] (i: i64) { let y: f64 = convert.i64.f64(i) let w: f64 = add.f64(x, y) in w }
            let zs: []f64 = map 3i64 [three] (j: i64) { let z: f64 = convert.i64.f64(j) let v: f64 = mul.f64(x, z) in v }
            let c: []f64 = concat(ys, zs)
            in c
        }
        let s: []f64 = loop (s: []f64 = a) for k: i64 < 2i64 {
            let p: i64 = size(s, 0)
            let us: []f64 = map p [s] (q: f64) { let u: f64 = neg.f64(q) in u }
            let ts: []f64 = map p [s] (o: f64) { let t: f64 = add.f64(o, o) in t }
            let d: []f64 = concat(us, ts)
            in d
        }
        in m, s
    }";
    let rows = Value::f64_array(&[2, 5], &[1.0, 2.0, 0.0, 1.0, 2.0, 2.0, 3.0, 0.0, 2.0, 4.0]);
    let state = Value::f64s(&[1.0, 2.0, -2.0, -4.0, -2.0, -4.0, 4.0, 8.0]);
    check(text, &[Value::f64s(&[1.0, 2.0])], &[rows, state]);
}

/// What a loop collects of its states may lie, the first time, where the first state does: that memory is kept. In a loop around it,
/// where that is memory of the state that the next iteration writes over, it is copied.
#[test]
fn the_first_state_is_kept_where_it_is_collected() {
    let tape = |first: &str| {
        format!(
            "let first: (f64, []f64) = tuple(0.5f64, {first})
            let s: (f64, []f64), t: [](#t []f64) = loop (u: (f64, []f64) = first) for k: i64 < n collect 1 {{
                let x: []f64 = proj(u, 1)
                let z: []f64 = map 1i64 [x] (p: f64) {{ let q: f64 = add.f64(p, 10.0f64) in q }}
                let next: (f64, []f64) = tuple(0.5f64, z)
                let e: (#t []f64) = inject(0, x): (#t []f64)
                in next, e
            }}
            let e0: (#t []f64) = t[0i64]"
        )
    };
    let (ys, ys_tape) =
        ("let ys: []f64 = map n [a] (y: f64) { let v: f64 = add.f64(y, 1.0f64) in v }", tape("ys"));
    let once = format!(
        "fun f(a: []f64): []f64, []f64 {{
            let n: i64 = size(a, 0)
            {ys}
            {ys_tape}
            let ms: []f64 = map n [ys] (m: f64) {{ let o: f64 = neg.f64(m) in o }}
            let r: []f64 = match e0 case (w: []f64) {{ in w }}
            in ms, r
        }}"
    );
    check(&once, &[Value::f64s(&[1.0])], &[Value::f64s(&[-2.0]), Value::f64s(&[2.0])]);
    let inner = tape("state");
    let nested = format!(
        "fun f(a: []f64): []f64, []f64, []f64 {{
            let n: i64 = size(a, 0)
            {ys}
            let end: []f64, all: [](#t []f64) = loop (state: []f64 = ys) for j: i64 < 2i64 collect 1 {{
                {inner}
                let ms: []f64 = map n [state] (m: f64) {{ let o: f64 = mul.f64(m, 3.0f64) in o }}
                in ms, e0
            }}
            let one: (#t []f64) = all[0i64]
            let two: (#t []f64) = all[1i64]
            let r: []f64 = match one case (w: []f64) {{ in w }}
            let l: []f64 = match two case (h: []f64) {{ in h }}
            in end, r, l
        }}"
    );
    let expected = [18.0, 2.0, 6.0].map(|x| Value::f64s(&[x]));
    check(&nested, &[Value::f64s(&[1.0])], &expected);
}

/// A state that two places hold in turn is no place for what is collected by pointer, whole or by rows: it is copied.
#[test]
fn states_in_turn_are_kept_where_they_are_collected() {
    let next = "let z: []f64 = map n [u] (p: f64) { let q: f64 = add.f64(p, 1.0f64) in q }
                let e: (#t []f64) = inject(0, z): (#t []f64)";
    let whole = format!(
        "fun f(a: []f64): []f64, []f64 {{
            let n: i64 = size(a, 0)
            let s: []f64, t: [](#t []f64) = loop (u: []f64 = a) for k: i64 < 3i64 collect 1 {{
                {next}
                in z, e
            }}
            let e0: (#t []f64) = t[0i64]
            let r: []f64 = match e0 case (w: []f64) {{ in w }}
            in s, r
        }}"
    );
    let ends = |x: f64| Value::f64s(&[x, x + 1.0]);
    check(&whole, &[ends(1.0)], &[ends(4.0), ends(2.0)]);
    let rows = format!(
        "fun f(a: [][]f64): [][]f64, []f64 {{
            let m: i64 = size(a, 0)
            let n: i64 = size(a, 1)
            let s: [][]f64, t: [][](#t []f64) = loop (x: [][]f64 = a) for k: i64 < 3i64 collect 1 {{
                let zs: [][]f64, es: [](#t []f64) = map m [x] (u: []f64) {{
                    {next}
                    in z, e
                }}
                in zs, es
            }}
            let e0: [](#t []f64) = t[0i64]
            let e1: (#t []f64) = e0[1i64]
            let r: []f64 = match e1 case (w: []f64) {{ in w }}
            in s, r
        }}"
    );
    let matrix = |x: f64| Value::f64_array(&[2, 2], &[x, x + 1.0, x + 2.0, x + 3.0]);
    check(&rows, &[matrix(1.0)], &[matrix(4.0), ends(4.0)]);
}

/// A state that maps make of the one before, element by element, has one place; others have two in turn.
#[test]
fn states_made_element_by_element_have_one_place() {
    let add = |from: &str, to: &str, x: &str| {
        format!(
            "let {to}: []f64 = map n [{from}] ({x}: f64) {{ let {x}1: f64 = add.f64({x}, 1.0f64) in {x}1 }}"
        )
    };
    // The second half of a sum of the state and an array that lives longer.
    let with = "let t: []f64 = map n [v, s] (x: f64, y: f64) { let z: f64 = add.f64(x, y) in z }";
    // The last element is the first of the state.
    let turned = "let is: []i64 = iota(n)
        let t: []f64 = map n [is] (i1: i64) { let j: i64 = sub.i64(n, i1) let k: i64 = sub.i64(j, 1i64) let x: f64 = s[k] in x }";
    let read_later = |made: String| format!("{made} let x9: f64 = s[0i64] let u9: f64 = add.f64(u, x9)");
    let kept = "let u9: f64 = add.f64(u, 1.0f64)";
    let cases = [
        (format!("{} {kept}", add("s", "t", "x")), 1, [4.0, 8.0, 10.0], 3.0),
        (format!("{} {} {kept}", add("s", "m", "x"), add("m", "t", "y")), 1, [7.0, 11.0, 13.0], 3.0),
        (format!("{with} {kept}"), 1, [4.0, 8.0, 10.0], 3.0),
        (format!("{turned} {kept}"), 2, [7.0, 5.0, 1.0], 3.0),
        (read_later(add("s", "t", "x")), 2, [4.0, 8.0, 10.0], 6.0),
    ];
    for (made, places, expected, sum) in cases {
        let text = format!(
            "fun f(xs: []f64, v: []f64, steps: i64): []f64, f64 {{
                let n: i64 = size(xs, 0)
                let last: []f64, all: f64 = loop (s: []f64 = xs, u: f64 = 0.0f64) for i: i64 < steps {{
                    {made}
                    in t, u9
                }}
                in last, all
            }}"
        );
        let (program, f) = parse(&text);
        let module = lower(&program, f).expect("native").0;
        // (The places take turns by the last bit of a counter.)
        let found = if count(&module, operation(Op::And, Scalar::I64)) > 0 { 2 } else { 1 };
        assert_eq!(found, places, "{}", print(&module));
        assert_eq!(count(&module, copies), 1, "of the argument: {}", print(&module));
        let args = [Value::f64s(&[1.0, 5.0, 7.0]), Value::f64s(&[1.0, 1.0, 1.0]), Value::i64(3)];
        check(&text, &args, &[Value::f64s(&expected), Value::f64(sum)]);
    }
}
