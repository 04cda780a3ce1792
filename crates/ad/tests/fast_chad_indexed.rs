//! Indexed writes and reads: histograms by kind of operator, scatters of rows, gathers. Values against the interpreter's
//! dual numbers, some by hand.

use crate::common::{adjoint, gradient};
use pullback_core::Value;

fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
fn rows(n: usize, m: usize, xs: &[f64]) -> Value {
    Value::f64_array(&[n, m], xs)
}
fn n(x: i64) -> Value {
    Value::i64(x)
}
fn is(xs: &[i64]) -> Value {
    Value::i64s(xs)
}

/// A histogram of scalars with this operator; the results are used nonlinearly.
fn scalars(op: &str, neutral: &str) -> String {
    format!(
        "fun f(n: i64, dst: []f64, is: []i64, a: []f64): []f64 {{
            let z: []f64 = hist n [{neutral}] [dst] is [a] (u: f64, v: f64) {{ {op} in w }}
            in z
        }}"
    )
}

#[test]
fn minimum_and_maximum_of_bins() {
    for (op, neutral) in [("min", "f64.inf"), ("max", "-f64.inf")] {
        let text = scalars(&format!("let w: f64 = {op}.f64(u, v)"), neutral);
        let a = fs(&[4.0, 0.5, -2.0, 3.0, 0.25, 9.0, -2.5]);
        adjoint(&text, vec![n(7), fs(&[1.0, 0.0, 2.0, 7.0]), is(&[0, 1, 0, 9, 1, 2, 0]), a]);
        adjoint(&text, vec![n(0), fs(&[1.0, 0.0]), is(&[]), fs(&[])]);
        adjoint(&text, vec![n(2), fs(&[]), is(&[0, -1]), fs(&[1.0, 2.0])]);
    }
}

#[test]
fn at_ties_the_destination_wins_and_then_the_smallest_index() {
    let text = scalars("let w: f64 = max.f64(u, v)", "-f64.inf");
    let args = [n(5), fs(&[1.0, 0.0, 5.0]), is(&[0, 1, 1, 2, 0]), fs(&[1.0, 3.0, 3.0, 4.0, 0.5])];
    // Bin 0: the destination ties with value 0. Bin 1: values 1 and 2 tie. Bin 2: the destination is larger.
    let bars = gradient(&text, &args, &[fs(&[10.0, 20.0, 30.0])]);
    assert_eq!(bars, vec![fs(&[10.0, 0.0, 30.0]), fs(&[0.0, 20.0, 0.0, 0.0, 0.0])]);
    adjoint(&text, args.to_vec());
}

#[test]
fn products_with_no_one_and_two_zeros() {
    let text = scalars("let w: f64 = mul.f64(v, u)", "1.0f64");
    let indices = is(&[0, 1, 0, 2, 2, 1, 7, 3]);
    let a = fs(&[2.0, 0.0, 3.0, 0.0, 0.0, 5.0, 11.0, -4.0]);
    let args = [n(8), fs(&[10.0, 20.0, 30.0, 0.0, 50.0]), indices, a];
    // Bin 0: no zero, 10·2·3. Bin 1: one zero, 20·0·5. Bin 2: two zeros. Bin 3: the destination is zero. Bin 4: empty.
    let bars = gradient(&text, &args, &[fs(&[1.0, 1.0, 1.0, 1.0, 1.0])]);
    assert_eq!(bars[0], fs(&[6.0, 0.0, 0.0, -4.0, 1.0]));
    assert_eq!(bars[1], fs(&[30.0, 100.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
    adjoint(&text, args.to_vec());
}

#[test]
fn products_that_leave_the_range_keep_their_digits() {
    let text = scalars("let w: f64 = mul.f64(u, v)", "1.0f64");
    // The product of the first two values is 1e-320, that of the last two infinite.
    let args = [n(4), fs(&[1e300, 1e-300]), is(&[0, 0, 1, 1]), fs(&[1e-160, 1e-160, 1e200, 1e200])];
    let bars = gradient(&text, &args, &[fs(&[1.0, 1.0])]);
    let near = |x: f64, y: f64| (x / y - 1.0).abs() < 1e-12;
    let Value::Array(a) = &bars[1] else { panic!("an array") };
    let got: Vec<f64> =
        a.elements().map(|v| if let Value::Scalar(s) = v { s.as_f64() } else { f64::NAN }).collect();
    assert!(near(got[0], 1e140) && near(got[2], 1e-100), "{got:?}");
}

#[test]
fn histograms_in_general() {
    // x + y + 0.3 x y is associative with neutral element 0.
    let op = "let p: f64 = mul.f64(u, v) let q: f64 = mul.f64(p, 0.3f64) let s: f64 = add.f64(u, v) let w: f64 = add.f64(s, q)";
    let text = scalars(op, "0.0f64");
    let a = fs(&[4.0, 0.5, -2.0, 3.0, 0.25, 9.0, -2.5, 0.125]);
    adjoint(&text, vec![n(8), fs(&[1.0, 0.0, 2.0, 7.0, 1.5]), is(&[3, 1, 0, 9, 1, 3, 0, 3]), a]);
    adjoint(&text, vec![n(0), fs(&[1.0, 0.0]), is(&[]), fs(&[])]);
    adjoint(&text, vec![n(2), fs(&[]), is(&[0, -1]), fs(&[1.0, 2.0])]);
    adjoint(&text, vec![n(2), fs(&[2.0]), is(&[-1, 5]), fs(&[1.0, 2.0])]);
}

#[test]
fn histograms_of_pairs_that_do_not_commute() {
    // Composition of x -> a x + b.
    let text = "fun f(n: i64, p: []f64, q: []f64, is: []i64, a: []f64, b: []f64): []f64, []f64 {
        let y: []f64, z: []f64 = hist n [1.0f64, 0.0f64] [p, q] is [a, b] (s: f64, t: f64, u: f64, v: f64) {
            let x: f64 = mul.f64(s, u)
            let m: f64 = mul.f64(u, t)
            let r: f64 = add.f64(m, v)
            in x, r
        }
        in y, z
    }";
    let a = fs(&[4.0, 0.5, -2.0, 3.0, 0.25, 9.0, -2.5, 0.125]);
    let b = fs(&[1.0, 1.5, -1.0, 2.0, 0.75, 0.3, -0.5, 1.25]);
    let (p, q) = (fs(&[1.0, 0.5, 2.0]), fs(&[0.1, 0.2, 0.3]));
    adjoint(text, vec![n(8), p, q, is(&[2, 1, 2, 9, 1, 2, -3, 2]), a, b]);
}

#[test]
fn histograms_of_rows() {
    for (op, neutral) in [("add", "0.0f64"), ("mul", "1.0f64"), ("max", "-100.0f64")] {
        let text = format!(
            "fun f(n: i64, dst: [][]f64, is: []i64, a: [][]f64): [][]f64 {{
                let e: []f64 = replicate([2i64], {neutral})
                let z: [][]f64 = hist n [e] [dst] is [a] (u: []f64, v: []f64) {{
                    let w: []f64 = map 2i64 [u, v] (x: f64, y: f64) {{ let r: f64 = {op}.f64(x, y) in r }}
                    in w
                }}
                in z
            }}"
        );
        let dst = rows(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let a = rows(4, 2, &[0.5, 7.0, 1.5, 2.5, 9.0, 0.1, 3.0, 8.0]);
        adjoint(&text, vec![n(4), dst, is(&[0, 2, 0, 7]), a]);
        adjoint(&text, vec![n(0), rows(3, 2, &[1.0; 6]), is(&[]), rows(0, 2, &[])]);
        adjoint(&text, vec![n(1), rows(0, 2, &[]), is(&[0]), rows(1, 2, &[1.0, 2.0])]);
    }
}

#[test]
fn histograms_of_matrices_as_elements() {
    // Products of 2 x 2 matrices, as rows of four: a general operator on arrays.
    let text = "fun f(n: i64, dst: [][]f64, is: []i64, a: [][]f64): [][]f64 {
        let e: []f64 = array(1.0f64, 0.0f64, 0.0f64, 1.0f64): f64
        let z: [][]f64 = hist n [e] [dst] is [a] (u: []f64, v: []f64) {
            let u0: f64 = u[0i64] let u1: f64 = u[1i64] let u2: f64 = u[2i64] let u3: f64 = u[3i64]
            let v0: f64 = v[0i64] let v1: f64 = v[1i64] let v2: f64 = v[2i64] let v3: f64 = v[3i64]
            let a0: f64 = mul.f64(u0, v0) let b0: f64 = mul.f64(u1, v2) let c0: f64 = add.f64(a0, b0)
            let a1: f64 = mul.f64(u0, v1) let b1: f64 = mul.f64(u1, v3) let c1: f64 = add.f64(a1, b1)
            let a2: f64 = mul.f64(u2, v0) let b2: f64 = mul.f64(u3, v2) let c2: f64 = add.f64(a2, b2)
            let a3: f64 = mul.f64(u2, v1) let b3: f64 = mul.f64(u3, v3) let c3: f64 = add.f64(a3, b3)
            let w: []f64 = array(c0, c1, c2, c3): f64
            in w
        }
        in z
    }";
    let numbers = |k: usize| (0..4 * k).map(|i| (i as f64 * 0.7).sin()).collect::<Vec<_>>();
    adjoint(text, vec![n(5), rows(2, 4, &numbers(2)), is(&[1, 0, 1, -1, 1]), rows(5, 4, &numbers(5))]);
}

#[test]
fn histograms_with_free_variables_or_kinks_are_loops() {
    let text = "fun f(n: i64, c: f64, dst: []f64, is: []i64, a: []f64): []f64 {
        let z: []f64 = hist n [0.0f64] [dst] is [a] (u: f64, v: f64) {
            let p: f64 = mul.f64(u, v)
            let q: f64 = mul.f64(p, c)
            let s: f64 = add.f64(u, v)
            let w: f64 = add.f64(s, q)
            in w
        }
        in z
    }";
    let a = fs(&[4.0, 0.5, -2.0, 3.0]);
    adjoint(text, vec![n(4), Value::f64(0.3), fs(&[1.0, 2.0]), is(&[0, 1, 0, 9]), a.clone()]);
    let op = "let c: bool = lt.f64(u, v) let w: f64 = if c { in v } else { in u }";
    adjoint(&scalars(op, "-f64.inf"), vec![n(4), fs(&[1.0, 2.0]), is(&[0, 1, 0, 9]), a]);
}

#[test]
fn histograms_of_pairs_component_by_component() {
    let text = "fun f(n: i64, p: []f64, q: []f64, r: []i64, is: []i64, a: []f64, b: []f64, c: []i64): []f64, []f64, []i64 {
        let y: []f64, z: []f64, k: []i64 =
          hist n [0.0f64, f64.inf, 0i64] [p, q, r] is [a, b, c] (s: f64, t: f64, i: i64, u: f64, v: f64, j: i64) {
            let x: f64 = add.f64(s, u)
            let m: f64 = min.f64(t, v)
            let l: i64 = add.i64(i, j)
            in x, m, l
        }
        in y, z, k
    }";
    let (p, q) = (fs(&[1.0, 0.5]), fs(&[0.1, 0.2]));
    let b = fs(&[1.0, -1.5, -1.0]);
    adjoint(text, vec![n(3), p, q, is(&[7, 8]), is(&[0, 1, 0]), fs(&[4.0, 0.5, -2.0]), b, is(&[1, 1, 1])]);
}

#[test]
fn scatters_of_rows() {
    let text = "fun f(n: i64, dst: [][]f64, is: []i64, a: [][]f64): [][]f64 {
        let z: [][]f64 = scatter(n, dst, is, a)
        in z
    }";
    let dst = rows(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let a = rows(4, 2, &[0.5, 7.0, 1.5, 2.5, 9.0, 0.1, 3.0, 8.0]);
    let args = [n(4), dst, is(&[2, 0, 2, 5]), a];
    let bars = gradient(text, &args, &[rows(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    assert_eq!(bars[0], rows(3, 2, &[0.0, 0.0, 3.0, 4.0, 0.0, 0.0]));
    assert_eq!(bars[1], rows(4, 2, &[0.0, 0.0, 1.0, 2.0, 5.0, 6.0, 0.0, 0.0]));
    adjoint(text, args.to_vec());
    adjoint(text, vec![n(0), rows(3, 2, &[1.0; 6]), is(&[]), rows(0, 2, &[])]);
}

#[test]
fn scatters_of_sums() {
    let text = "fun f(n: i64, x: f64, is: []i64, a: []f64): [](#u f64 | #v []f64 f64) {
        let p: (#u f64 | #v []f64 f64) = inject(0, x): (#u f64 | #v []f64 f64)
        let dst: [](#u f64 | #v []f64 f64) = replicate([3i64], p)
        let vs: [](#u f64 | #v []f64 f64) = map n [a] (y: f64) {
            let q: (#u f64 | #v []f64 f64) = inject(1, a, y): (#u f64 | #v []f64 f64)
            in q
        }
        let z: [](#u f64 | #v []f64 f64) = scatter(n, dst, is, vs)
        in z
    }";
    adjoint(text, vec![n(4), Value::f64(0.5), is(&[2, 0, 2, 5]), fs(&[0.5, 7.0, 1.5, 2.5])]);
}

#[test]
fn scatters_by_indices_that_differ() {
    let text = "fun f(n: i64, k: i64, dst: []f64, a: []f64): []f64 {
        let i0: []i64 = iota(n)
        let i1: []i64 = map n [i0] (i: i64) { let j: i64 = sub.i64(k, i) in j }
        let i2: []i64 = reverse(i1)
        let i3: []i64 = rotate(i2, 1i64)
        let z: []f64 = scatter(n, dst, i3, a)
        in z
    }";
    adjoint(text, vec![n(4), n(2), fs(&[1.0, 2.0, 3.0, 4.0, 5.0]), fs(&[0.5, 7.0, 1.5, 2.5])]);
}

#[test]
fn gathers_of_scalars_and_rows() {
    let text = "fun f(n: i64, a: [][]f64, b: []f64, is: []i64): [][]f64, []f64, f64, []f64 {
        let y: [][]f64 = gather(a, is)
        let z: []f64 = map n [is] (i: i64) { let x: f64 = b[i] in x }
        let u: f64 = b[1i64]
        let v: []f64 = gather(b, is)
        let w: f64 = v[2i64]
        in y, z, w, b
    }";
    let a = rows(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    adjoint(text, vec![n(4), a.clone(), fs(&[0.5, 7.0, 1.5]), is(&[2, 0, 2, 1])]);
    adjoint(
        "fun f(a: [][]f64, is: []i64): [][]f64 { let y: [][]f64 = gather(a, is) in y }",
        vec![a, is(&[])],
    );
}

#[test]
fn a_gather_by_hand() {
    let text = "fun f(b: []f64, is: []i64): []f64 { let y: []f64 = gather(b, is) in y }";
    let args = [fs(&[0.5, 7.0, 1.5]), is(&[2, 0, 2, 2])];
    let bars = gradient(text, &args, &[fs(&[1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(bars, vec![fs(&[2.0, 0.0, 8.0])]);
}

#[test]
fn indexed_writes_in_loops_of_few_and_many_elements() {
    for width in [1, 2, 9, 40] {
        let text = "fun f(n: i64, dst: []f64, is: []i64, a: []f64): []f64 {
            let y: []f64 = loop (d: []f64 = dst) for t: i64 < 3i64 {
                let e: []f64 = hist n [1.0f64] [d] is [a] (u: f64, v: f64) { let w: f64 = mul.f64(u, v) in w }
                let g: []f64 = hist n [f64.inf] [e] is [a] (u1: f64, v1: f64) { let w1: f64 = min.f64(u1, v1) in w1 }
                let s: []f64 = map n [a] (x: f64) { let q: f64 = sin.f64(x) in q }
                let h: []f64 = scatter(n, g, is, s)
                let k: []f64 = hist n [0.0f64] [h] is [a] (u2: f64, v2: f64) {
                    let p: f64 = mul.f64(u2, v2)
                    let m: f64 = mul.f64(p, 0.3f64)
                    let r: f64 = add.f64(u2, v2)
                    let w2: f64 = add.f64(r, m)
                    in w2
                }
                in k
            }
            in y
        }";
        let dst: Vec<f64> = (0..20).map(|i| 0.5 + 0.03 * f64::from(i)).collect();
        let a: Vec<f64> = (0..width).map(|i| 0.9 + 0.07 * ((i * 5 % 11) as f64)).collect();
        let indices: Vec<i64> = (0..width).map(|i| (i * 7) % 23).collect();
        adjoint(text, vec![n(width), fs(&dst), is(&indices), fs(&a)]);
    }
}
