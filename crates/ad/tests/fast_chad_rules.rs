//! Small programs, each with the rule that it is named for: their derivatives are those of the interpreter's dual numbers.

use crate::common::{add_vjp, bulk_mismatch, first, mismatch, parse, run};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;

fn f(x: f64) -> Value {
    Value::f64(x)
}
fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}

/// The derivative of a program agrees.
fn holds(text: &str, args: &[Value]) {
    if let Some(reason) = mismatch(text, args, &Config::default()).or_else(|| bulk_mismatch(text, args)) {
        panic!("{reason}");
    }
}

#[test]
fn a_difference() {
    holds("fun f(x: f64, y: f64): f64 { let z: f64 = sub.f64(x, y) in z }", &[f(1.0), f(2.0)]);
}

#[test]
fn a_quotient() {
    holds("fun f(x: f64, y: f64): f64 { let z: f64 = div.f64(x, y) in z }", &[f(1.0), f(2.0)]);
}

#[test]
fn contributions_of_different_form() {
    holds(
        "fun f(a: []f64): f64, []f64 { let z: f64 = a[0i64] let b: []f64 = reverse(a) in z, b }",
        &[fs(&[1.0, 2.0])],
    );
}

/// Two components, so that the Jacobians of iterations do not commute.
#[test]
fn iterations_that_do_not_commute() {
    holds(
        "fun f(x: f64, y: f64): f64, f64 {
            let p: f64, q: f64 = loop (s: f64 = x, t: f64 = y) for i: i64 < 3i64 {
                let u: f64 = mul.f64(s, t)
                let v: f64 = sin.f64(s)
                in u, v
            }
            in p, q
        }",
        &[f(0.7), f(1.3)],
    );
}

#[test]
fn the_state_of_a_loop() {
    holds(
        "fun f(x: f64): f64 {
            let y: f64 = loop (s: f64 = x) for i: i64 < 3i64 { let t: f64 = sin.f64(s) in t }
            in y
        }",
        &[f(0.7)],
    );
}

#[test]
fn a_free_scalar_of_a_loop() {
    holds(
        "fun f(x: f64, c: f64): f64 {
            let y: f64 = loop (s: f64 = x) for i: i64 < 3i64 { let t: f64 = mul.f64(s, c) in t }
            in y
        }",
        &[f(0.7), f(0.9)],
    );
}

#[test]
fn a_free_scalar_of_a_map() {
    holds(
        "fun f(a: []f64, c: f64): []f64 {
            let y: []f64 = map 2i64 [a] (s: f64) { let t: f64 = mul.f64(s, c) in t }
            in y
        }",
        &[fs(&[0.7, 2.0]), f(0.9)],
    );
}

#[test]
fn an_array_that_a_map_and_others_read() {
    holds(
        "fun f(a: []f64, is: []i64): []f64, f64 {
            let y: []f64 = map 2i64 [is] (i: i64) { let t: f64 = a[i] let s: f64 = sin.f64(t) in s }
            let z: f64 = a[1i64]
            in y, z
        }",
        &[fs(&[0.7, 2.0]), Value::i64s(&[1, 1])],
    );
}

#[test]
fn an_element_that_is_overwritten() {
    holds(
        "fun f(a: []f64, x: f64): []f64 { let y: []f64 = update(a, [1i64], x) in y }",
        &[fs(&[0.7, 2.0]), f(0.5)],
    );
}

#[test]
fn scattered_values_that_meet() {
    holds(
        "fun f(a: []f64, is: []i64, b: []f64): []f64 { let y: []f64 = scatter(3i64, a, is, b) in y }",
        &[fs(&[0.7, 2.0]), Value::i64s(&[1, 5, 1]), fs(&[1.0, 2.0, 3.0])],
    );
}

#[test]
fn the_second_arm_of_a_branch() {
    holds(
        "fun f(x: f64): f64 {
            let c: bool = lt.f64(x, 0.0f64)
            let y: f64 = if c { let t: f64 = sin.f64(x) in t } else { let u: f64 = cos.f64(x) in u }
            in y
        }",
        &[f(0.5)],
    );
}

#[test]
fn the_payload_of_a_sum() {
    holds(
        "fun f(x: f64): f64 {
            let z: (#a f64 | #b) = inject(0, x): (#a f64 | #b)
            let y: f64 = match z case (p: f64) { let q: f64 = sin.f64(p) in q } case () { in 0.0f64 }
            in y
        }",
        &[f(0.5)],
    );
}

#[test]
fn a_reversed_array() {
    holds("fun f(a: []f64): []f64 { let y: []f64 = reverse(a) in y }", &[fs(&[0.7, 2.0])]);
}

#[test]
fn a_rotated_array() {
    holds("fun f(a: []f64): []f64 { let y: []f64 = rotate(a, 1i64) in y }", &[fs(&[0.7, 2.0, 3.0])]);
}

#[test]
fn arrays_one_after_the_other() {
    holds(
        "fun f(a: []f64, b: []f64): []f64 { let y: []f64 = concat(a, b) in y }",
        &[fs(&[0.7, 2.0]), fs(&[3.0, 5.0])],
    );
}

#[test]
fn copies_of_a_scalar() {
    holds("fun f(x: f64): []f64 { let y: []f64 = replicate([3i64], x) in y }", &[f(0.7)]);
}

#[test]
fn prefix_sums() {
    holds(
        "fun f(a: []f64): []f64 {
            let y: []f64 = scan 3i64 [0.0f64] [a] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 2.0, 3.0])],
    );
}

#[test]
fn a_reduction_in_general() {
    holds(
        "fun f(a: []f64): f64 {
            let y: f64 = reduce 3i64 [0.0f64] [a] (u: f64, v: f64) {
                let w: f64 = mul.f64(u, v)
                let s: f64 = add.f64(u, v)
                let z: f64 = add.f64(s, w)
                in z
            }
            in y
        }",
        &[fs(&[0.7, 2.0, 3.0])],
    );
}

#[test]
fn a_product() {
    holds(
        "fun f(a: []f64): f64 {
            let y: f64 = reduce 3i64 [1.0f64] [a] (u: f64, v: f64) { let w: f64 = mul.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.2, 3.0])],
    );
}

#[test]
fn a_scan_with_a_free_scalar() {
    holds(
        "fun f(a: []f64, c: f64): []f64 {
            let y: []f64 = scan 3i64 [1.0f64] [a] (u: f64, v: f64) {
                let w: f64 = mul.f64(u, v)
                let z: f64 = mul.f64(w, c)
                in z
            }
            in y
        }",
        &[fs(&[0.7, 0.2, 3.0]), f(0.9)],
    );
}

#[test]
fn a_scan_of_pairs() {
    holds(
        "fun f(a: []f64, b: []f64): []f64, []f64 {
            let y: []f64, z: []f64 = scan 3i64 [0.0f64, 0.0f64] [a, b]
                (p1: f64, s1: f64, p2: f64, s2: f64) {
                let t: f64 = mul.f64(s1, s2)
                let u: f64 = add.f64(p1, p2)
                let p: f64 = add.f64(t, u)
                let s: f64 = add.f64(s1, s2)
                in p, s
            }
            in y, z
        }",
        &[fs(&[0.7, 0.2, 3.0]), fs(&[0.9, 2.0, 0.3])],
    );
}

#[test]
fn a_scan_of_rows() {
    holds(
        "fun f(a: [][]f64, e: []f64): [][]f64 {
            let y: [][]f64 = scan 4i64 [e] [a] (u: []f64, v: []f64) {
                let p: f64 = u[0i64]
                let q: f64 = v[0i64]
                let r: f64 = mul.f64(p, q)
                let w: []f64 = array(r): f64
                in w
            }
            in y
        }",
        &[Value::f64_array(&[4, 1], &[0.7, 0.2, 3.0, 0.4]), fs(&[1.0])],
    );
}

#[test]
fn running_minima() {
    holds(
        "fun f(a: []f64): []f64 {
            let y: []f64 = scan 3i64 [f64.inf] [a] (u: f64, v: f64) { let w: f64 = min.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.9, 0.3])],
    );
}

#[test]
fn running_products() {
    holds(
        "fun f(a: []f64): []f64 {
            let y: []f64 = scan 3i64 [1.0f64] [a] (u: f64, v: f64) { let w: f64 = mul.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.9, 0.3])],
    );
}

#[test]
fn a_minimum() {
    holds(
        "fun f(a: []f64): f64 {
            let y: f64 = reduce 3i64 [f64.inf] [a] (u: f64, v: f64) { let w: f64 = min.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.2, 3.0])],
    );
}

#[test]
fn one_element_of_a_map() {
    holds(
        "fun f(a: []f64): f64 {
            let b: []f64 = map 3i64 [a] (x: f64) { let s: f64 = sin.f64(x) in s }
            let y: f64 = b[2i64]
            in y
        }",
        &[fs(&[0.7, 0.2, 3.0])],
    );
}

#[test]
fn a_loop_with_snapshots() {
    holds(
        "fun f(n: i64, x: f64): f64 { let y: f64 = loop #[tape(revolve(3))] (s: f64 = x) for i: i64 < n { \
         let t: f64 = mul.f64(s, s) in t } in y }",
        &[Value::i64(7), f(0.9)],
    );
}

#[test]
fn a_loop_in_blocks() {
    holds(
        "fun f(n: i64, x: f64): f64 { let y: f64 = loop #[stripmine(2)] (s: f64 = x) for i: i64 < n { \
         let k: f64 = convert.i64.f64(i) let t: f64 = mul.f64(s, k) in t } in y }",
        &[Value::i64(3), f(0.9)],
    );
}

#[test]
fn sums_by_bin() {
    holds(
        "fun f(d: []f64, is: []i64, a: []f64): []f64 {
            let y: []f64 = hist 3i64 [0.0f64] [d] is [a] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.2]), Value::i64s(&[1, 0, 5]), fs(&[1.0, 2.0, 3.0])],
    );
}

#[test]
fn minima_by_bin() {
    holds(
        "fun f(d: []f64, is: []i64, a: []f64): []f64 {
            let y: []f64 = hist 3i64 [f64.inf] [d] is [a] (u: f64, v: f64) { let w: f64 = min.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.2]), Value::i64s(&[1, 0, 5]), fs(&[0.1, 2.0, 3.0])],
    );
}

#[test]
fn products_by_bin() {
    holds(
        "fun f(d: []f64, is: []i64, a: []f64): []f64 {
            let y: []f64 = hist 3i64 [1.0f64] [d] is [a] (u: f64, v: f64) { let w: f64 = mul.f64(u, v) in w }
            in y
        }",
        &[fs(&[0.7, 0.2]), Value::i64s(&[1, 0, 5]), fs(&[1.5, 2.0, 3.0])],
    );
}

#[test]
fn an_operator_by_bin() {
    holds(
        "fun f(d: []f64, is: []i64, a: []f64): []f64 {
            let y: []f64 = hist 4i64 [0.0f64] [d] is [a] (u: f64, v: f64) {
                let p: f64 = mul.f64(u, v)
                let s: f64 = add.f64(u, v)
                let w: f64 = add.f64(s, p)
                in w
            }
            in y
        }",
        &[fs(&[0.7, 0.2]), Value::i64s(&[1, 0, 5, 0]), fs(&[1.5, 2.0, 3.0, 0.5])],
    );
}

#[test]
fn an_element_gathered_twice() {
    holds(
        "fun f(a: []f64, is: []i64): []f64 { let y: []f64 = gather(a, is) in y }",
        &[fs(&[0.7, 0.2]), Value::i64s(&[1, 1])],
    );
}

#[test]
fn a_recursive_function_of_a_scalar() {
    holds(
        "fun f(x: f64, k: i64): f64 {
            let c: bool = le.i64(k, 0i64)
            let y: f64 = if c { in x } else {
                let l: i64 = sub.i64(k, 1i64)
                let s: f64 = sin.f64(x)
                let r: f64 = call f(s, l)
                in r
            }
            in y
        }",
        &[f(0.7), Value::i64(2)],
    );
}

#[test]
fn a_recursive_function_of_an_array() {
    holds(
        "fun f(a: []f64, k: i64): f64 {
            let c: bool = le.i64(k, 0i64)
            let y: f64 = if c { in 0.0f64 } else {
                let l: i64 = sub.i64(k, 1i64)
                let x: f64 = a[l]
                let r: f64 = call f(a, l)
                let s: f64 = add.f64(r, x)
                in s
            }
            in y
        }",
        &[fs(&[0.7, 0.2]), Value::i64(2)],
    );
}

/// `x` is read again in the reverse map; the elements differ.
#[test]
fn elements_that_are_read_again() {
    holds(
        "fun f(a: []f64, is: []i64): []f64 {
            let y: []f64 = map 2i64 [is] (i: i64) {
                let x: f64 = a[i]
                let z: f64 = mul.f64(x, x)
                in z
            }
            in y
        }",
        &[fs(&[0.7, 2.0]), Value::i64s(&[0, 1])],
    );
}

#[test]
fn a_loop_that_reads_by_its_counter() {
    holds(
        "fun f(a: []f64): f64 {
            let z: f64 = a[0i64]
            let w: f64 = loop (s: f64 = z) for i: i64 < 3i64 {
                let b: f64 = a[i]
                let u: f64 = mul.f64(s, b)
                in u
            }
            in w
        }",
        &[fs(&[0.7, 2.0, 3.0])],
    );
}

#[test]
fn a_loop_in_an_arm() {
    holds(
        "fun f(x: f64, n: i64): f64 {
            let c: bool = lt.f64(x, 1.0f64)
            let y: f64 = if c {
                let t: f64 = loop (s: f64 = x) for i: i64 < n { let u: f64 = sin.f64(s) in u }
                let v: f64 = mul.f64(t, t)
                in v
            } else { in x }
            in y
        }",
        &[f(0.7), Value::i64(2)],
    );
}

/// A limit runs the first iteration once more.
#[test]
fn a_loop_under_a_limit_that_adds() {
    holds(
        "fun f(x: f64): []f64, f64 {
            let z: []f64 = array(0.0f64): f64
            let r: []f64, y: f64 = withacc [z] (acc: acc []f64) {
                let y1: f64 = loop #[tape(limit(40))] (s: f64 = x) for i: i64 < 9i64 {
                    let t: f64 = sin.f64(s)
                    let done: () = add_to(acc, [0i64], t)
                    in t
                }
                in y1
            }
            in r, y
        }",
        &[f(0.7)],
    );
}

/// A limit in a map: five tapes are alive together. Everything would be at least 5 · 100 · 8 bytes.
const LIMITED: &str = "fun f(n: i64, a: []f64): []f64 {
    let y: []f64 = map 5i64 [a] (x: f64) {
        let z: f64 = loop #[tape(limit(3000))] (s: f64 = x) for i: i64 < n { let t: f64 = sin.f64(s) in t }
        in z
    }
    in y
}";

#[test]
fn a_limit_in_a_map_is_shared() {
    let mut program = parse(LIMITED);
    let main = first(&program);
    let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
    let a = fs(&[0.1, 0.2, 0.3, 0.4, 0.5]);
    let bytes = run(&program, id, &[Value::i64(100), a, fs(&[1.0; 5])]).1.peak_tape_bytes;
    assert!(bytes <= 3000, "{bytes}");
}
