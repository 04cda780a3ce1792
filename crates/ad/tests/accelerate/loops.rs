//! Loops of core in Idealised Accelerate, and reductions and scans by operators that read what changes. Expected numbers are calculated by hand.

use super::translated::{derived, f, fs, refused, results, sum, truth};
use pullback_core::Value;
use pullback_prim::ScalarValue;

/// x (1 + 2) (2 + 2): each iteration reads an element.
#[test]
fn a_loop_that_reads_an_element_in_each_iteration() {
    let text = "fun f(x: f64, a: []f64): f64 {
        let n: i64 = size(a, 0)
        let y: f64 = loop (s: f64 = x) for i: i64 < n {
            let v: f64 = a[i]
            let w: f64 = add.f64(v, 2.0f64)
            let t: f64 = mul.f64(s, w)
            in t
        }
        in y
    }";
    let found = results(text, &[f(5.0), fs(&[1.0, 2.0]), f(1.0)]);
    assert_eq!(found, [f(60.0), f(12.0), fs(&[20.0, 15.0])]);
    assert_eq!(results(text, &[f(5.0), fs(&[]), f(1.0)]), [f(5.0), f(1.0), fs(&[])]);
}

/// x^(2^n); a negative number of iterations is none. The counter may have another type.
#[test]
fn a_loop_over_a_number() {
    let text = "fun f(x: f64, n: i64): f64 {
        let y: f64 = loop (s: f64 = x) for i: i64 < n { let t: f64 = mul.f64(s, s) in t }
        in y
    }";
    for text in [text, &text.replace("n: i64", "n: i32").replace("i: i64", "i: i32")] {
        let n = |k: i64| {
            if text.contains("i32") { Value::Scalar(ScalarValue::I32(k as i32)) } else { Value::i64(k) }
        };
        assert_eq!(results(text, &[f(3.0), n(2), f(1.0)]), [f(81.0), f(108.0)]);
        assert_eq!(results(text, &[f(3.0), n(0), f(1.0)]), [f(3.0), f(1.0)]);
        assert_eq!(results(text, &[f(3.0), n(-2), f(1.0)]), [f(3.0), f(1.0)]);
    }
}

/// In each row: s becomes s x + k i, where k is computed in the row. Of x the number is (((x) x + 0) x + k) with k = 2 x.
#[test]
fn a_loop_in_a_nest() {
    let text = format!(
        "fun f(a: []f64, m: i64): f64 {{
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) {{
                let k: f64 = mul.f64(2.0f64, x)
                let y: f64 = loop (s: f64 = x) for i: i64 < m {{
                    let c: f64 = convert.i64.f64(i)
                    let u: f64 = mul.f64(s, x)
                    let w: f64 = mul.f64(k, c)
                    let t: f64 = add.f64(u, w)
                    in t
                }}
                let z: f64 = mul.f64(y, k)
                in z
            }}
            {}
            in r
        }}",
        sum("r", "n", "ys")
    );
    // (x^3 + 2 x) 2 x = 2 x^4 + 4 x^2 after two iterations; the derivative is 8 x^3 + 8 x.
    let found = results(&text, &[fs(&[1.0, 2.0]), Value::i64(2), f(1.0)]);
    assert_eq!(found, [f(6.0 + 48.0), fs(&[16.0, 80.0])]);
    assert_eq!(results(&text, &[fs(&[3.0]), Value::i64(0), f(1.0)]), [f(18.0), fs(&[12.0])]);
}

/// The state is a number, a place and a truth value: while it is true, the number is multiplied by the element there, else it is added; places go backwards.
#[test]
fn states_of_several_types_say_where_arrays_are_read() {
    let text = "fun f(a: []f64, is: []i64): f64, i64 {
        let n: i64 = size(a, 0)
        let last: i64 = sub.i64(n, 1i64)
        let y: f64, last_k: i64, last_b: bool = loop (s: f64 = 1.0f64, k: i64 = last, b: bool = true) for i: i64 < n {
            let v: f64 = a[k]
            let t: f64 = if b { let p: f64 = mul.f64(s, v) in p } else { let q: f64 = add.f64(s, v) in q }
            let j: i64 = is[k]
            let c: bool = not.bool(b)
            in t, j, c
        }
        in y, last_k
    }";
    // The places 2, 1, 0: (1 * 5 + 3) * 2.
    let found = results(text, &[fs(&[2.0, 3.0, 5.0]), Value::i64s(&[0, 0, 1]), f(1.0)]);
    assert_eq!(found, [f(16.0), Value::i64(0), fs(&[8.0, 2.0, 2.0])]);
    // The places 2, 2, 2: (x + x) x... (1 * 5 + 5) * 5, which is x^2 + x^2 at 5.
    let found = results(text, &[fs(&[2.0, 3.0, 5.0]), Value::i64s(&[0, 0, 2]), f(1.0)]);
    assert_eq!(found, [f(50.0), Value::i64(2), fs(&[0.0, 0.0, 20.0])]);
}

/// What is left of each iteration: the state before it, and something that does not depend on the state.
#[test]
fn loops_that_collect() {
    let text = "fun f(x: f64, a: []f64): f64, []f64, []f64 {
        let n: i64 = size(a, 0)
        let y: f64, ss: []f64, qs: []f64 = loop (s: f64 = x) for i: i64 < n collect 2 {
            let v: f64 = a[i]
            let t: f64 = mul.f64(s, v)
            let q: f64 = mul.f64(v, v)
            in t, s, q
        }
        in y, ss, qs
    }";
    let seeds = [f(1.0), fs(&[10.0, 100.0]), fs(&[0.5, 0.25])];
    let found = results(text, &[&[f(2.0), fs(&[3.0, 5.0])], &seeds[..]].concat());
    // y = x a b, ss = x, x a, qs = a^2, b^2.
    let values = [f(30.0), fs(&[2.0, 6.0]), fs(&[9.0, 25.0])];
    let slopes = [f(15.0 + 10.0 + 300.0), fs(&[10.0 + 200.0 + 3.0, 6.0 + 2.5])];
    assert_eq!(found, [&values[..], &slopes].concat());
}

/// A branch of numbers, with a loop in it, outside of all bodies.
#[test]
fn a_loop_in_a_branch() {
    let text = "fun f(x: f64, n: i64, c: bool): f64 {
        let y: f64 = if c {
            let z: f64 = loop (s: f64 = x) for i: i64 < n { let t: f64 = mul.f64(s, x) in t }
            in z
        } else {
            let w: f64 = mul.f64(x, 2.0f64)
            in w
        }
        in y
    }";
    assert_eq!(results(text, &[f(3.0), Value::i64(2), truth(true), f(1.0)]), [f(27.0), f(27.0)]);
    assert_eq!(results(text, &[f(3.0), Value::i64(2), truth(false), f(1.0)]), [f(6.0), f(2.0)]);
}

/// A sum of all elements so far inside of the body does not depend on the state.
#[test]
fn array_operations_of_a_body_are_moved_out() {
    let text = format!(
        "fun f(x: f64, a: []f64): f64 {{
            let n: i64 = size(a, 0)
            let y: f64 = loop (s: f64 = x) for i: i64 < n {{
                let v: f64 = a[i]
                let ws: []f64 = map n [a] (w: f64) {{ let p: f64 = mul.f64(w, v) in p }}
                {}
                let t: f64 = mul.f64(s, q)
                in t
            }}
            in y
        }}",
        sum("q", "n", "ws")
    );
    // x (a (a + b)) (b (a + b)) = x a b (a + b)^2
    let found = results(&text, &[f(1.0), fs(&[2.0, 3.0]), f(1.0)]);
    assert_eq!(found, [f(150.0), f(150.0), fs(&[75.0 + 60.0, 50.0 + 60.0])]);
}

/// x + y + k x y has the neutral element 0. Of two elements it is a + b + k a b; k is a number of the row.
#[test]
fn operators_that_read_what_changes() {
    let operator = |k: &str| {
        format!(
            "(x: f64, y: f64) {{
                let p: f64 = mul.f64(x, y)
                let q: f64 = mul.f64(p, {k})
                let u: f64 = add.f64(x, y)
                let t: f64 = add.f64(u, q)
                in t
            }}"
        )
    };
    let reduced = format!(
        "fun f(ks: []f64, a: []f64): []f64 {{
            let n: i64 = size(a, 0)
            let m: i64 = size(ks, 0)
            let ys: []f64 = map m [ks] (k: f64) {{
                let r: f64 = reduce n [0.0f64] [a] {}
                in r
            }}
            in ys
        }}",
        operator("k")
    );
    let args = [fs(&[2.0, 3.0]), fs(&[5.0, 7.0]), fs(&[1.0, 10.0])];
    let found = results(&reduced, &args);
    // a + b + k a b: the slopes are a b; 1 + k b, 1 + k a.
    let slopes = [fs(&[35.0, 350.0]), fs(&[15.0 + 220.0, 11.0 + 160.0])];
    assert_eq!(found, [&[fs(&[82.0, 117.0])], &slopes[..]].concat());
    let scanned =
        reduced.replace("let r: f64 = reduce", "let r: []f64 = scan").replace("): []f64 {", "): [][]f64 {");
    let scanned = scanned.replace("ys: []f64", "ys: [][]f64");
    let seed = Value::f64_array(&[2, 2], &[100.0, 1.0, 0.0, 10.0]);
    let found = results(&scanned, &[args[0].clone(), args[1].clone(), seed]);
    let values = Value::f64_array(&[2, 2], &[5.0, 82.0, 5.0, 117.0]);
    assert_eq!(found, [values, fs(&[35.0, 350.0]), fs(&[100.0 + 235.0, 171.0])]);
    // An element of an array that varies: the language itself makes a loop.
    let text = format!(
        "fun f(b: []f64, a: []f64): f64 {{
            let n: i64 = size(a, 0)
            let r: f64 = reduce n [0.0f64] [a] {}
            in r
        }}",
        operator("k").replace("let p:", "let k: f64 = b[1i64]\n let p:")
    );
    let found = results(&text, &[fs(&[9.0, 2.0]), fs(&[5.0, 7.0]), f(1.0)]);
    assert_eq!(found, [f(82.0), fs(&[0.0, 35.0]), fs(&[15.0, 11.0])]);
}

/// Squares of all elements, n times; sums of the neighbours on a ring, with the number of the iteration as a factor.
#[test]
fn loops_of_arrays() {
    let text = "fun f(a: []f64, n: i64): []f64 {
        let m: i64 = size(a, 0)
        let y: []f64 = loop (s: []f64 = a) for i: i64 < n {
            let t: []f64 = map m [s] (x: f64) { let u: f64 = mul.f64(x, x) in u }
            in t
        }
        in y
    }";
    let args = |n: i64| [fs(&[2.0, 3.0]), Value::i64(n), fs(&[1.0, 10.0])];
    assert_eq!(results(text, &args(2)), [fs(&[16.0, 81.0]), fs(&[32.0, 1080.0])]);
    assert_eq!(results(text, &args(0)), [fs(&[2.0, 3.0]), fs(&[1.0, 10.0])]);
    assert_eq!(results(text, &args(-1)), [fs(&[2.0, 3.0]), fs(&[1.0, 10.0])]);
    let ring = format!(
        "fun f(a: []f64, w: []f64): f64 {{
            let m: i64 = size(a, 0)
            let n: i64 = size(w, 0)
            let y: []f64, last_z: f64 = loop (s: []f64 = a, z: f64 = 0.0f64) for i: i64 < n {{
                let v: f64 = w[i]
                let t: []f64 = rotate(s, 1i64)
                let p: []f64 = map m [s, t] (e: f64, g: f64) {{
                    let q: f64 = add.f64(e, g)
                    let u: f64 = mul.f64(q, v)
                    in u
                }}
                let k: f64 = a[0i64]
                let zz: f64 = add.f64(z, k)
                in p, zz
            }}
            {}
            let r: f64 = add.f64(total, last_z)
            in r
        }}",
        sum("total", "m", "y")
    );
    // The sum of all doubles, and is multiplied by w: (2 w0) (2 w1) (a0 + a1 + a2) + 2 a0.
    let found = results(&ring, &[fs(&[1.0, 2.0, 4.0]), fs(&[3.0, 5.0]), f(1.0)]);
    assert_eq!(found, [f(422.0), fs(&[62.0, 60.0, 60.0]), fs(&[140.0, 84.0])]);
}

/// The state is a number, and the body makes an array of it: s becomes the sum of the s a[j].
#[test]
fn array_operations_on_a_state() {
    let text = format!(
        "fun f(x: f64, a: []f64): f64 {{
            let n: i64 = size(a, 0)
            let y: f64 = loop (s: f64 = x) for i: i64 < n {{
                let b: []f64 = map n [a] (v: f64) {{ let u: f64 = mul.f64(v, s) in u }}
                {}
                in t
            }}
            in y
        }}",
        sum("t", "n", "b")
    );
    // x (a + b)^2
    assert_eq!(results(&text, &[f(3.0), fs(&[2.0, 5.0]), f(1.0)]), [f(147.0), f(49.0), fs(&[42.0, 42.0])]);
}

#[test]
fn other_loops_are_refused() {
    let branch = "fun f(a: []f64, n: i64): []f64 {
        let m: i64 = size(a, 0)
        let ys: []f64 = map m [a] (v: f64) {
            let c: bool = lt.f64(v, 0.0f64)
            let r: f64 = if c {
                let y: []f64 = loop (s: []f64 = a) for i: i64 < n {
                    let t: []f64 = map m [s] (x: f64) { let u: f64 = mul.f64(x, v) in u }
                    in t
                }
                let z: f64 = y[0i64]
                in z
            } else { in v }
            in r
        }
        in ys
    }";
    assert_eq!(refused(branch), "an array operation in a branch of an inner body");
    let until = "fun f(a: []f64): []f64 {
        let m: i64 = size(a, 0)
        let ys: []f64 = map m [a] (x: f64) {
            let y: f64 = loop (s: f64 = x) while { let c: bool = lt.f64(s, 9.0f64) in c } {
                let t: f64 = mul.f64(s, s)
                in t
            }
            in y
        }
        in ys
    }";
    assert_eq!(refused(until), "a `while` loop in an inner body, or one that collects");
    let operator = "fun f(a: []f64, n: i64): f64 {
        let m: i64 = size(a, 0)
        let r: f64 = reduce m [0.0f64] [a] (x: f64, y: f64) {
            let is: []i64 = iota(n)
            let b: []f64 = map n [is] (i: i64) { let u: f64 = max.f64(x, y) in u }
            let t: f64 = b[0i64]
            in t
        }
        in r
    }";
    assert_eq!(refused(operator), "an array operation on the state of a loop, or on operands of an operator");
}

/// In each iteration k of a nest: squares of all elements of a, n times, and the last one added to a number that begins as k.
#[test]
fn loops_of_arrays_in_a_nest() {
    let text = "fun f(a: []f64, n: i64): [][]f64, []f64 {
        let m: i64 = size(a, 0)
        let ys: [][]f64, zs: []f64 = map m [a] (v: f64) {
            let y: []f64, z: f64 = loop (s: []f64 = a, p: f64 = v) for i: i64 < n {
                let t: []f64 = map m [s] (x: f64) { let u: f64 = mul.f64(x, x) in u }
                let l: f64 = t[1i64]
                let q: f64 = add.f64(p, l)
                in t, q
            }
            in y, z
        }
        in ys, zs
    }";
    let of = |xs: [f64; 4]| Value::f64_array(&[2, 2], &xs);
    let seeds = [of([1.0, 10.0, 100.0, 1000.0]), fs(&[1.0, 2.0])];
    let at = |n: i64| results(text, &[&[fs(&[2.0, 3.0]), Value::i64(n)], &seeds[..]].concat());
    // Squares 4 and 9; by a_0 twice 2 (1 + 100), by a_1 twice 3 (10 + 1000 + 1 + 2); and of the numbers themselves 1 and 2.
    assert_eq!(at(1), [of([4.0, 9.0, 4.0, 9.0]), fs(&[11.0, 12.0]), fs(&[405.0, 6080.0])]);
    assert_eq!(at(0), [of([2.0, 3.0, 2.0, 3.0]), fs(&[2.0, 3.0]), fs(&[102.0, 1012.0])]);
    // Fourth powers 16 and 81: 4 8 101 + 1, and 4 27 (1010 + 3) + 2 3 3 + 2.
    assert_eq!(at(2), [of([16.0, 81.0, 16.0, 81.0]), fs(&[92.0, 93.0]), fs(&[3233.0, 109424.0])]);
}

/// The loop reads a number of the nest around its own, which the outer body reads after it. With k = j = 2 v an element is
/// (a_1 k) (k + a_0 k) w + k = 4 a_1 (1 + a_0) v^2 w + 2 v.
#[test]
fn a_loop_of_arrays_in_a_nest_in_a_nest() {
    let text = "fun f(a: []f64, n: i64): [][]f64 {
        let m: i64 = size(a, 0)
        let ys: [][]f64 = map m [a] (v: f64) {
            let k: f64 = mul.f64(v, 2.0f64)
            let j: f64 = add.f64(v, v)
            let zs: []f64 = map m [a] (w: f64) {
                let y: []f64, z: f64 = loop (s: []f64 = a, p: f64 = k) for i: i64 < n {
                    let t: []f64 = map m [s] (x: f64) { let u: f64 = mul.f64(x, j) in u }
                    let l: f64 = t[0i64]
                    let q: f64 = add.f64(p, l)
                    in t, q
                }
                let e: f64 = y[1i64]
                let d: f64 = mul.f64(e, z)
                let r: f64 = mul.f64(d, w)
                in r
            }
            let ks: []f64 = map m [zs] (g: f64) { let h: f64 = add.f64(g, j) in h }
            in ks
        }
        in ys
    }";
    let of = |xs: [f64; 4]| Value::f64_array(&[2, 2], &xs);
    let found = results(text, &[fs(&[2.0, 3.0]), Value::i64(1), of([1.0; 4])]);
    // The sum is 4 a_1 (1 + a_0) (a_0^2 + a_1^2) (a_0 + a_1) + 4 (a_0 + a_1).
    assert_eq!(found, [of([292.0, 436.0, 654.0, 978.0]), fs(&[1972.0, 2332.0])]);
}

/// x, x^2, x^4 .. until 9 is passed; of arrays until the first element is.
#[test]
fn while_loops_run_once_to_be_counted() {
    let text = "fun f(x: f64): f64 {
        let y: f64 = loop (s: f64 = x) while { let c: bool = lt.f64(s, 9.0f64) in c } {
            let t: f64 = mul.f64(s, s)
            in t
        }
        in y
    }";
    assert_eq!(results(text, &[f(2.0), f(1.0)]), [f(16.0), f(32.0)]);
    assert_eq!(results(text, &[f(10.0), f(1.0)]), [f(10.0), f(1.0)]);
    let arrays = "fun f(a: []f64): []f64, i64 {
        let n: i64 = size(a, 0)
        let y: []f64, k: i64 = loop (s: []f64 = a, i: i64 = 0i64) while {
            let v: f64 = s[0i64]
            let c: bool = lt.f64(v, 9.0f64)
            in c
        } {
            let t: []f64 = map n [s] (x: f64) { let u: f64 = mul.f64(x, x) in u }
            let j: i64 = add.i64(i, 3i64)
            in t, j
        }
        in y, k
    }";
    let found = results(arrays, &[fs(&[2.0, 3.0]), fs(&[1.0, 10.0])]);
    assert_eq!(found, [fs(&[16.0, 81.0]), Value::i64(6), fs(&[32.0, 1080.0])]);
}

/// The derivative has loops itself, which have derivatives.
#[test]
fn derivatives_of_loops_are_differentiated_again() {
    let text = "fun f(x: f64, n: i64): f64 {
        let y: f64 = loop (s: f64 = x) for i: i64 < n { let t: f64 = mul.f64(s, s) in t }
        in y
    }";
    let (mut program, _, g) = derived(text, 0).expect("taken");
    let fun = program.funs[g].clone();
    let lam = pullback_core::Lam { params: fun.params, body: fun.body };
    let again =
        (pullback_ad::accelerate::from_core::ALGORITHM.transform)(&mut program, &lam, &[true, false, true]);
    let again = again.unwrap_or_else(|e| panic!("{e}"));
    let again = crate::common::add_function(&mut program, "again", again);
    let args = [f(2.0), Value::i64(2), f(3.0), f(0.0), f(1.0)];
    let out = pullback_interp::core::run(&program, again, args.to_vec(), &Default::default());
    // x^4 and 4 x^3 y_bar; of the second one 12 x^2 y_bar, and 4 x^3.
    assert_eq!(out.expect("runs").results, [f(16.0), f(96.0), f(144.0), f(32.0)]);
}

/// Products of columns: of [[1, 2], [3, 5]] they are [[1, 2], [3, 10]].
#[test]
fn scans_of_rows() {
    let text = "fun f(a: [][]f64): [][]f64 {
        let n: i64 = size(a, 0)
        let m: i64 = size(a, 1)
        let one: []f64 = replicate([m], 1.0f64)
        let ys: [][]f64 = scan n [one] [a] (x: []f64, y: []f64) {
            let p: []f64 = map m [x, y] (u: f64, v: f64) { let w: f64 = mul.f64(u, v) in w }
            in p
        }
        in ys
    }";
    let of = |xs: [f64; 4]| Value::f64_array(&[2, 2], &xs);
    let found = results(text, &[of([1.0, 2.0, 3.0, 5.0]), of([1.0, 10.0, 100.0, 1000.0])]);
    assert_eq!(found, [of([1.0, 2.0, 3.0, 10.0]), of([301.0, 5010.0, 100.0, 2000.0])]);
}

/// An element beyond the end is not read where a branch says so: the sum of a[i + 1] while there is one, times s.
#[test]
fn reads_of_branches_stay_in_branches() {
    let text = "fun f(a: []f64): f64 {
        let n: i64 = size(a, 0)
        let y: f64 = loop (s: f64 = 2.0f64) for i: i64 < n {
            let j: i64 = add.i64(i, 1i64)
            let c: bool = lt.i64(j, n)
            let t: f64 = if c {
                let v: f64 = a[j]
                let p: f64 = mul.f64(s, v)
                in p
            } else { in s }
            in t
        }
        in y
    }";
    let found = results(text, &[fs(&[9.0, 3.0, 5.0]), f(1.0)]);
    assert_eq!(found, [f(30.0), fs(&[0.0, 10.0, 6.0])]);
}
