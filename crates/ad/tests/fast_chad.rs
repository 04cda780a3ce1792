//! Fast CHAD construct by construct: the dot-product identity with the interpreter's own dual numbers.

use crate::common;

use crate::common::{adjoint, gradient, twice};
use pullback_core::Value;

fn f(x: f64) -> Value {
    Value::f64(x)
}
fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
fn n(x: i64) -> Value {
    Value::i64(x)
}
fn is(xs: &[i64]) -> Value {
    Value::i64s(xs)
}

#[test]
fn scalars_and_products() {
    let text = "fun f(x: f64, y: f64): f64, (f64, f64) {
        let a: f64 = mul.f64(x, y)
        let b: f64 = sin.f64(a)
        let t: (f64, f64) = tuple(b, x)
        let u: f64 = proj(t, 0)
        let v: f64 = proj(t, 1)
        let c: f64 = div.f64(u, v)
        let d: f64 = sub.f64(c, y)
        let w: (f64, f64) = tuple(d, a)
        in d, w
    }";
    adjoint(text, vec![f(1.3), f(0.7)]);
}

#[test]
fn a_gradient_by_hand() {
    let text = "fun f(x: f64, y: f64): f64 {
        let a: f64 = mul.f64(x, y)
        let b: f64 = add.f64(a, x)
        in b
    }";
    assert_eq!(gradient(text, &[f(2.0), f(5.0)], &[f(3.0)]), vec![f(18.0), f(6.0)]);
}

#[test]
fn an_unused_argument_has_a_zero_cotangent_of_its_shape() {
    let text = "fun f(x: f64, a: []f64): f64 { in x }";
    assert_eq!(gradient(text, &[f(2.0), fs(&[1.0, 2.0])], &[f(3.0)]), vec![f(3.0), fs(&[0.0, 0.0])]);
}

#[test]
fn branches_join_hot_entries() {
    let text = "fun f(a: []f64, c: bool, x: f64): f64 {
        let p: f64 = a[1i64]
        let r: f64, s: f64 = if c {
            let q: f64 = a[0i64]
            let t: f64 = a[2i64]
            let u: f64 = mul.f64(q, t)
            let v: f64 = sin.f64(x)
            in u, v
        } else {
            let q2: f64 = a[2i64]
            in q2, q2
        }
        let z: f64 = mul.f64(r, p)
        let w: f64 = mul.f64(z, s)
        in w
    }";
    for c in [true, false] {
        let c = Value::Scalar(pullback_prim::ScalarValue::Bool(c));
        adjoint(text, vec![fs(&[0.5, 1.5, -0.3]), c, f(0.8)]);
    }
}

#[test]
fn sums_with_payload() {
    let text = "fun f(x: f64, a: []f64): f64 {
        let c: bool = lt.f64(x, 1.0f64)
        let z: (#one f64 i64 | #many []f64 f64) = if c {
            let y: f64 = sin.f64(x)
            let s: (#one f64 i64 | #many []f64 f64) = inject(0, y, 3i64): (#one f64 i64 | #many []f64 f64)
            in s
        } else {
            let s2: (#one f64 i64 | #many []f64 f64) = inject(1, a, x): (#one f64 i64 | #many []f64 f64)
            in s2
        }
        let r: f64 = match z
            case (p: f64, k: i64) { let q: f64 = mul.f64(p, p) in q }
            case (b: []f64, p2: f64) {
                let q2: f64 = b[1i64]
                let u: f64 = mul.f64(p2, q2)
                in u
            }
        in r
    }";
    adjoint(text, vec![f(0.5), fs(&[1.0, 2.0])]);
    adjoint(text, vec![f(1.5), fs(&[1.0, 2.0])]);
}

#[test]
fn sums_as_arguments_and_results() {
    let text = "fun f(z: (#one f64 i64 | #many []f64 f64), w: f64): (#one f64 i64 | #many []f64 f64), f64 {
        let r: (#one f64 i64 | #many []f64 f64), t: f64 = match z
            case (p: f64, k: i64) {
                let q: f64 = mul.f64(p, w)
                let s: (#one f64 i64 | #many []f64 f64) = inject(0, q, k): (#one f64 i64 | #many []f64 f64)
                in s, p
            }
            case (b: []f64, p2: f64) {
                let q2: f64 = b[1i64]
                in z, q2
            }
        in r, t
    }";
    let one = Value::Sum(0, vec![f(2.0), n(4)].into());
    let many = Value::Sum(1, vec![fs(&[1.0, 2.0, 3.0]), f(0.5)].into());
    adjoint(text, vec![one, f(0.3)]);
    adjoint(text, vec![many, f(0.3)]);
}

#[test]
fn maps_with_free_variables_and_several_results() {
    let text = "fun f(n: i64, a: []f64, b: []f64, c: f64): []f64, f64 {
        let is: []i64 = iota(n)
        let x: []f64, y: []f64 = map n [a, is] (p: f64, i: i64) {
            let q: f64 = b[i]
            let r: f64 = mul.f64(p, q)
            let s: f64 = mul.f64(r, c)
            let t: f64 = sin.f64(s)
            in s, t
        }
        let z: f64 = reduce n [0.0f64] [y] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
        in x, z
    }";
    adjoint(text, vec![n(3), fs(&[0.5, 1.5, -0.3]), fs(&[0.1, 0.2, 0.3]), f(1.1)]);
    adjoint(text, vec![n(0), fs(&[]), fs(&[0.1]), f(1.1)]);
}

#[test]
fn nested_maps_over_matrices() {
    let text = "fun f(n: i64, m: i64, a: [][]f64, b: []f64): []f64 {
        let y: []f64 = map n [a] (row: []f64) {
            let ps: []f64 = map m [row, b] (x: f64, z: f64) { let p: f64 = mul.f64(x, z) in p }
            let s: f64 = reduce m [0.0f64] [ps] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
            let first: f64 = row[0i64]
            let t: f64 = mul.f64(s, first)
            in t
        }
        in y
    }";
    let a = Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25]);
    adjoint(text, vec![n(2), n(3), a, fs(&[0.3, 0.7, -0.2])]);
    // No rows: the cotangent still has three columns.
    let empty = Value::f64_array(&[0, 3], &[]);
    let args = [n(0), n(3), empty.clone(), fs(&[0.3, 0.7, -0.2])];
    assert_eq!(gradient(text, &args, &[fs(&[])])[0], empty);
}

#[test]
fn matrix_product_by_indices() {
    let text = "fun f(n: i64, a: [][]f64, b: [][]f64): [][]f64 {
        let is: []i64 = iota(n)
        let c: [][]f64 = map n [is] (i: i64) {
            let r: []f64 = map n [is] (j: i64) {
                let ps: []f64 = map n [is] (k: i64) {
                    let x: f64 = a[i, k]
                    let y: f64 = b[k, j]
                    let p: f64 = mul.f64(x, y)
                    in p
                }
                let s: f64 = reduce n [0.0f64] [ps] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
                in s
            }
            in r
        }
        in c
    }";
    let a = Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 0.5]);
    let b = Value::f64_array(&[2, 2], &[0.3, -2.0, 1.0, 0.1]);
    adjoint(text, vec![n(2), a, b]);
}

#[test]
fn a_row_of_a_local_matrix() {
    let text = "fun f(n: i64, x: f64): f64 {
        let is: []i64 = iota(n)
        let a: [][]f64 = map n [is] (i: i64) {
            let g: f64 = convert.i64.f64(i)
            let r: []f64 = map n [is] (j: i64) {
                let h: f64 = convert.i64.f64(j)
                let u: f64 = mul.f64(h, x)
                let v: f64 = add.f64(u, g)
                let w: f64 = sin.f64(v)
                in w
            }
            in r
        }
        let row: []f64 = a[1i64]
        let p: f64 = row[2i64]
        let q: f64 = a[0i64, 1i64]
        let r2: f64 = mul.f64(p, q)
        in r2
    }";
    adjoint(text, vec![n(3), f(0.4)]);
}

#[test]
fn reductions() {
    for op in ["add", "mul", "min", "max"] {
        let neutral = match op {
            "add" => "0.0f64",
            "mul" => "1.0f64",
            "min" => "f64.inf",
            _ => "-f64.inf",
        };
        let text = format!(
            "fun f(n: i64, a: []f64, c: f64): f64 {{
            let b: []f64 = map n [a] (x: f64) {{ let y: f64 = mul.f64(x, c) in y }}
            let z: f64 = reduce n [{neutral}] [b] (u: f64, v: f64) {{ let w: f64 = {op}.f64(u, v) in w }}
            in z
        }}"
        );
        for a in
            [&[][..], &[2.0], &[1.0, -2.0, 0.5], &[0.0, 3.0, 2.0], &[0.0, 3.0, 0.0], &[1.0, 3.0, 3.0, 1.0]]
        {
            adjoint(&text, vec![n(a.len() as i64), fs(a), f(1.5)]);
        }
    }
}

#[test]
fn a_reduction_with_a_tuple_operator() {
    // Composition of affine functions, and then something with a free variable in the operator.
    let closed = "fun f(n: i64, a: []f64, b: []f64): f64, f64 {
        let p: f64, q: f64 = reduce n [1.0f64, 0.0f64] [a, b] (a1: f64, b1: f64, a2: f64, b2: f64) {
            let x: f64 = mul.f64(a1, a2)
            let y: f64 = mul.f64(b1, a2)
            let z: f64 = add.f64(y, b2)
            in x, z
        }
        in p, q
    }";
    let free = "fun f(n: i64, a: []f64, c: f64): f64 {
        let p: f64 = reduce n [1.0f64] [a] (x: f64, y: f64) {
            let z: f64 = mul.f64(x, y)
            let w: f64 = mul.f64(z, c)
            in w
        }
        in p
    }";
    for k in 0..4 {
        let a: Vec<f64> = (0..k).map(|i| 0.7 + f64::from(i)).collect();
        adjoint(closed, vec![n(k.into()), fs(&a), fs(&a)]);
        adjoint(free, vec![n(k.into()), fs(&a), f(0.9)]);
    }
}

#[test]
fn a_sum_of_rows() {
    let text = "fun f(n: i64, m: i64, a: [][]f64, z: []f64): []f64 {
        let p: []f64 = reduce n [z] [a] (x: []f64, y: []f64) {
            let s: []f64 = map m [x, y] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
            in s
        }
        in p
    }";
    let a = Value::f64_array(&[3, 2], &[1.0, 2.0, 3.0, 0.5, 7.0, -1.0]);
    adjoint(text, vec![n(3), n(2), a, fs(&[0.0, 0.0])]);
}

#[test]
fn scans() {
    for op in ["add", "mul", "max"] {
        let text = format!(
            "fun f(n: i64, a: []f64): []f64 {{
            let z: []f64 = scan n [0.5f64] [a] (u: f64, v: f64) {{ let w: f64 = {op}.f64(u, v) in w }}
            in z
        }}"
        );
        for a in [&[][..], &[2.0], &[1.0, -2.0, 0.5, 4.0]] {
            adjoint(&text, vec![n(a.len() as i64), fs(a)]);
        }
    }
}

#[test]
fn histograms_and_scatters() {
    for op in ["add", "mul", "max"] {
        let text = format!(
            "fun f(n: i64, dst: []f64, is: []i64, a: []f64): []f64 {{
            let z: []f64 = hist n [0.0f64] [dst] is [a] (u: f64, v: f64) {{ let w: f64 = {op}.f64(u, v) in w }}
            in z
        }}"
        );
        let is = is(&[1, 7, 0, 1, -1]);
        adjoint(&text, vec![n(5), fs(&[0.3, 2.0, 5.0]), is, fs(&[1.5, 2.5, 3.5, -1.0, 9.0])]);
    }
    let text = "fun f(n: i64, dst: []f64, is: []i64, a: []f64): []f64 {
        let z: []f64 = scatter(n, dst, is, a)
        in z
    }";
    adjoint(text, vec![n(5), fs(&[0.3, 2.0, 5.0]), is(&[1, 7, 0, 1, -1]), fs(&[1.5, 2.5, 3.5, -1.0, 9.0])]);
}

#[test]
fn loops_with_scalars_and_free_variables() {
    let text = "fun f(n: i64, x: f64, c: f64, a: []f64): f64, f64 {
        let y: f64, z: f64 = loop (s: f64 = x, t: f64 = 1.0f64) for i: i64 < n {
            let u: f64 = mul.f64(s, c)
            let v: f64 = sin.f64(u)
            let p: f64 = a[i]
            let q: f64 = mul.f64(v, p)
            let w: f64 = add.f64(t, q)
            in q, w
        }
        in y, z
    }";
    for k in 0..4 {
        adjoint(text, vec![n(k), f(0.7), f(1.3), fs(&[0.5, -0.25, 2.0])]);
    }
}

#[test]
fn loops_with_arrays_updated_in_place() {
    let text = "fun f(n: i64, a: []f64): []f64 {
        let m: i64 = sub.i64(n, 1i64)
        let y: []f64 = loop (b: []f64 = a) for i: i64 < m {
            let x: f64 = b[i]
            let s: f64 = sin.f64(x)
            let j: i64 = add.i64(i, 1i64)
            let z: f64 = b[j]
            let w: f64 = mul.f64(z, s)
            let c: []f64 = update(b, [j], w)
            in c
        }
        in y
    }";
    for a in [&[0.3][..], &[0.3, 0.6], &[0.3, 0.6, 1.2, -2.0]] {
        adjoint(text, vec![n(a.len() as i64), fs(a)]);
    }
}

#[test]
fn while_loops_count_for_themselves() {
    let text = "fun f(x: f64, c: f64): f64 {
        let y: f64 = loop (s: f64 = x) while { let go: bool = lt.f64(s, 10.0f64) in go } {
            let t: f64 = mul.f64(s, c)
            let u: f64 = add.f64(t, 1.0f64)
            in u
        }
        in y
    }";
    for x in [20.0, 9.0, 0.5] {
        adjoint(text, vec![f(x), f(1.4)]);
    }
}

#[test]
fn loops_that_collect() {
    let text = "fun f(x: f64, n: i64): f64, []f64 {
        let y: f64, ys: []f64 = loop (s: f64 = x) for i: i64 < n collect 1 {
            let t: f64 = mul.f64(s, x)
            let u: f64 = sin.f64(t)
            in t, u
        }
        in y, ys
    }";
    for k in 0..4 {
        adjoint(text, vec![f(1.5), n(k)]);
    }
}

#[test]
fn a_loop_with_a_narrow_counter_in_a_map() {
    let text = "fun f(n: i64, a: []f64): []f64 {
        let y: []f64 = map n [a] (x: f64) {
            let m: i32 = convert.f64.i32(x)
            let z: f64 = loop (s: f64 = x) for i: i32 < m {
                let g: f64 = convert.i32.f64(i)
                let t: f64 = mul.f64(s, g)
                let u: f64 = add.f64(t, x)
                in u
            }
            in z
        }
        in y
    }";
    adjoint(text, vec![n(3), fs(&[0.5, 3.5, 2.0])]);
}

#[test]
fn maps_and_branches_inside_loops() {
    let text = "fun f(n: i64, a: []f64, b: []f64): []f64 {
        let y: []f64 = loop (c: []f64 = a) for i: i64 < n {
            let x: f64 = b[i]
            let small: bool = lt.f64(x, 1.0f64)
            let d: []f64 = if small {
                let r: []f64 = map n [c] (u: f64) { let v: f64 = mul.f64(u, x) in v }
                in r
            } else {
                let r2: []f64 = update(c, [i], x)
                in r2
            }
            in d
        }
        in y
    }";
    adjoint(text, vec![n(3), fs(&[0.5, 3.5, 2.0]), fs(&[0.5, 1.5, 0.2])]);
}

#[test]
fn slices_and_shapes() {
    let text = "fun f(a: []f64, b: [][]f64, x: f64): []f64, [][]f64, []f64 {
        let s: []f64 = slice(a, 3i64, 2i64, -2i64)
        let t: []f64 = slice(a, 1i64, 2i64, 1i64)
        let c: []f64 = concat(s, t, a)
        let r: []f64 = reverse(c)
        let o: []f64 = rotate(r, 3i64)
        let tr: [][]f64 = rearrange([1, 0], b)
        let fl: []f64 = reshape([6i64], 2, b)
        let g: []f64 = replicate([3i64], x)
        let u: []f64 = update_slice(fl, 1i64, 3i64, 2i64, g)
        let rp: [][]f64 = replicate([2i64], a)
        let q: [][]f64 = concat(rp, rp)
        let last: []f64 = q[3i64]
        let w: []f64 = concat(u, last)
        in o, tr, w
    }";
    let b = Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25]);
    adjoint(text, vec![fs(&[0.5, 3.5, 2.0, 1.0]), b, f(0.3)]);
}

#[test]
fn gathers_literals_and_element_wise_updates() {
    let text = "fun f(a: []f64, is: []i64, x: f64, y: f64): []f64, f64 {
        let g: []f64 = gather(a, is)
        let l: []f64 = array(x, y, x): f64
        let u: []f64 = update(l, [1i64], x)
        let v: f64 = u[1i64]
        let w: f64 = u[2i64]
        let z: f64 = mul.f64(v, w)
        let p: f64 = l[1i64]
        let q: f64 = mul.f64(z, p)
        in g, q
    }";
    adjoint(text, vec![fs(&[0.5, 3.5, 2.0]), is(&[2, 0, 2]), f(0.3), f(0.8)]);
}

#[test]
fn updates_of_rows() {
    let text = "fun f(b: [][]f64, a: []f64, x: f64): [][]f64 {
        let c: [][]f64 = update(b, [1i64], a)
        let d: [][]f64 = update(c, [0i64, 2i64], x)
        in d
    }";
    let b = Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25]);
    adjoint(text, vec![b, fs(&[0.5, 3.5, 2.0]), f(0.3)]);
}

#[test]
fn the_sparse_map_touches_the_winner() {
    let text = "fun f(n: i64, a: []f64, c: []f64): f64 {
        let d: []f64 = map n [a] (x: f64) {
            let y: f64 = c[0i64]
            let z: f64 = sub.f64(x, y)
            let w: f64 = mul.f64(z, z)
            in w
        }
        let m: f64 = reduce n [f64.inf] [d] (u: f64, v: f64) { let w2: f64 = min.f64(u, v) in w2 }
        let k: f64 = d[1i64]
        let r: f64 = mul.f64(m, k)
        in r
    }";
    adjoint(text, vec![n(3), fs(&[0.5, 3.5, 2.0]), fs(&[1.7])]);
    let text = "fun f(n: i64, a: []f64, c: []f64): f64 {
        let d: []f64 = map n [a] (x: f64) { let y: f64 = c[0i64] let z: f64 = sub.f64(x, y) in z }
        let m: f64 = reduce n [f64.inf] [d] (u: f64, v: f64) { let w2: f64 = min.f64(u, v) in w2 }
        in m
    }";
    adjoint(text, vec![n(3), fs(&[0.5, -3.5, 2.0]), fs(&[1.7])]);
    adjoint(text, vec![n(0), fs(&[]), fs(&[1.7])]);
}

#[test]
fn accumulators_in_the_source() {
    let text = "fun f(n: i64, a: []f64, is: []i64, z: []f64): []f64, f64 {
        let r: []f64, k: f64 = withacc [z] (acc: acc []f64) {
            let done: []bool = map n [a, is] (x: f64, i: i64) {
                let s: f64 = sin.f64(x)
                let u: () = add_to(acc, [i], s)
                let v: acc f64 = view_index(acc, [0i64])
                let w: () = add_to(v, [], x)
                in true
            }
            let y: f64 = a[0i64]
            let q: f64 = mul.f64(y, y)
            in q
        }
        in r, k
    }";
    adjoint(text, vec![n(4), fs(&[0.5, 3.5, 2.0, 0.1]), is(&[1, -1, 1, 0]), fs(&[1.0, 2.0])]);
}

/// A view out of range takes what is added and adds it to nothing.
#[test]
fn views_of_accumulators_out_of_range() {
    let text = "fun f(k: i64, a: []f64, z: [][]f64): [][]f64 {
        let r: [][]f64 = withacc [z] (acc: acc [][]f64) {
            let row: acc []f64 = view_index(acc, [k])
            let part: acc []f64 = view_slice(row, 1i64, 2i64, 1i64)
            let s: []f64 = map 2i64 [a] (x: f64) { let y: f64 = sin.f64(x) in y }
            let u: () = add_to(part, [], s)
            let first: bool = lt.i64(k, 1i64)
            let turned: acc []f64 = view_reverse(row)
            let chosen: acc []f64 = if first {
                in turned
            } else {
                in row
            }
            let one: f64 = a[0i64]
            let w: () = add_to(chosen, [2i64], one)
            in
        }
        in r
    }";
    for k in [0, 1, -1, 2] {
        adjoint(
            text,
            vec![n(k), fs(&[0.5, 3.5]), Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])],
        );
    }
}

#[test]
fn marks_calls_par_and_stop_gradient() {
    let text = "fun f(x: f64, y: f64, a: []f64): f64, f64 {
        let p: f64, q: []f64 = recompute {
            let s: f64 = mul.f64(x, y)
            let t: f64 = sin.f64(s)
            let c: bool = lt.f64(t, 2.0f64)
            let k: () = assert(c, \"sin\")
            let b: []f64 = update(a, [0i64], t)
            in t, b
        }
        let u: f64 = store { let s2: f64 = cos.f64(p) in s2 }
        let v: f64 = call g(u, x)
        let w: f64 = stop_gradient(v)
        let b2: f64 = q[0i64]
        let m: f64 = mul.f64(w, b2)
        let k2: f64, l: f64 = par { let s3: f64 = mul.f64(m, x) in s3 } { let s4: f64 = mul.f64(v, v) in s4 }
        in k2, l
    }
    fun g(x2: f64, y2: f64): f64 { let z: f64 = pow.f64(x2, y2) in z }";
    // The oracle agrees with a derivative of zero for what stop_gradient hides.
    adjoint(text, vec![f(0.4), f(0.9), fs(&[1.0, 2.0])]);
}

#[test]
fn a_rule_of_ones_own() {
    let text = "fun f(x: f64, n: i64): f64 {
        let y: f64 = mul.f64(x, 3.0f64)
        let z: f64 = custom [y, n] (a: f64, k: i64) { let b: f64 = mul.f64(a, a) in b }
            (a2: f64, k2: i64, r2: f64, bar: f64) { let c: f64 = mul.f64(bar, 100.0f64) in c }
        in z
    }";
    assert_eq!(gradient(text, &[f(2.0), n(1)], &[f(1.0)]), vec![f(300.0)]);
}

#[test]
fn a_captured_variable_that_is_differentiated_is_named() {
    let text = "fun f(x: f64, scale: f64): f64 {
        let z: f64 = custom [x] (a: f64) { let b: f64 = mul.f64(a, scale) in b }
            (a2: f64, r2: f64, bar: f64) { in bar }
        in z
    }";
    let reason = common::mismatch(text, &[f(2.0), f(1.0)], &Default::default()).expect("refused");
    assert!(reason.contains("captures the differentiated variable `scale`"), "{reason}");
}

#[test]
fn mixed_precision() {
    let text = "fun f(x: f32, y: f64): f64 {
        let z: f64 = convert.f32.f64(x)
        let w: f64 = mul.f64(z, y)
        in w
    }";
    adjoint(text, vec![Value::Scalar(pullback_prim::ScalarValue::F32(1.5)), f(0.25)]);
}

#[test]
fn second_derivatives_of_straight_line_code_and_branches() {
    let text = "fun f(a: []f64, x: f64): f64 {
        let p: f64 = a[1i64]
        let c: bool = lt.f64(x, 1.0f64)
        let r: f64 = if c {
            let q: f64 = a[0i64]
            let t: f64 = mul.f64(q, p)
            let u: f64 = mul.f64(t, x)
            in u
        } else {
            let q2: f64 = a[2i64]
            let t2: f64 = mul.f64(q2, q2)
            in t2
        }
        let z: f64 = mul.f64(r, p)
        in z
    }";
    twice(text, vec![fs(&[0.5, 1.5, -0.3]), f(0.8)]);
    twice(text, vec![fs(&[0.5, 1.5, -0.3]), f(1.8)]);
}

#[test]
fn second_derivatives_of_maps_and_reductions() {
    let text = "fun f(n: i64, a: []f64, b: []f64, c: f64): f64 {
        let is: []i64 = iota(n)
        let y: []f64 = map n [a, is] (p: f64, i: i64) {
            let q: f64 = b[i]
            let r: f64 = mul.f64(p, q)
            let s: f64 = mul.f64(r, c)
            let t: f64 = sin.f64(s)
            in t
        }
        let z: f64 = reduce n [0.0f64] [y] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
        let m: f64 = reduce n [1.0f64] [y] (u2: f64, v2: f64) { let w2: f64 = mul.f64(u2, v2) in w2 }
        let k: f64 = reduce n [-f64.inf] [y] (u3: f64, v3: f64) { let w3: f64 = max.f64(u3, v3) in w3 }
        let zm: f64 = mul.f64(z, m)
        let zk: f64 = mul.f64(zm, k)
        in zk
    }";
    twice(text, vec![n(3), fs(&[0.5, 1.5, -0.3]), fs(&[0.1, 0.2, 0.3]), f(1.1)]);
}

#[test]
fn second_derivatives_of_matrix_products() {
    let text = "fun f(n: i64, a: [][]f64, b: [][]f64): f64 {
        let is: []i64 = iota(n)
        let rows: []f64 = map n [a] (row: []f64) {
            let r: []f64 = map n [is] (j: i64) {
                let ps: []f64 = map n [row, is] (x: f64, k: i64) {
                    let y: f64 = b[k, j]
                    let p: f64 = mul.f64(x, y)
                    let q: f64 = mul.f64(p, p)
                    in q
                }
                let s: f64 = reduce n [0.0f64] [ps] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
                in s
            }
            let t: f64 = reduce n [0.0f64] [r] (u2: f64, v2: f64) { let w2: f64 = add.f64(u2, v2) in w2 }
            let tt: f64 = sin.f64(t)
            in tt
        }
        let z: f64 = reduce n [0.0f64] [rows] (u3: f64, v3: f64) { let w3: f64 = add.f64(u3, v3) in w3 }
        in z
    }";
    let a = Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 0.5]);
    let b = Value::f64_array(&[2, 2], &[0.3, -2.0, 1.0, 0.1]);
    twice(text, vec![n(2), a, b]);
}

#[test]
fn second_derivatives_of_loops() {
    let text = "fun f(n: i64, x: f64, c: f64, a: []f64): f64, []f64 {
        let y: f64, z: []f64 = loop (s: f64 = x, t: []f64 = a) for i: i64 < n {
            let u: f64 = mul.f64(s, c)
            let v: f64 = sin.f64(u)
            let p: f64 = t[i]
            let q: f64 = mul.f64(v, p)
            let r: f64 = mul.f64(q, q)
            let w: []f64 = update(t, [i], r)
            in q, w
        }
        in y, z
    }";
    for k in 0..4 {
        twice(text, vec![n(k), f(0.7), f(1.3), fs(&[0.5, -0.25, 2.0])]);
    }
}

#[test]
fn second_derivatives_of_while_loops_with_arrays_in_bodies() {
    let text = "fun f(m: i64, a: []f64): []f64 {
        let y: []f64, k: f64 = loop (b: []f64 = a, s: f64 = 0.0f64) while { let go: bool = lt.f64(s, 1.0f64) in go } {
            let c: []f64 = map m [b] (x: f64) { let z: f64 = mul.f64(x, x) in z }
            let t: f64 = reduce m [0.0f64] [c] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
            let st: f64 = add.f64(s, t)
            in c, st
        }
        in y
    }";
    twice(text, vec![n(3), fs(&[0.7, 0.5, 0.9])]);
    twice(text, vec![n(3), fs(&[1.7, 0.5, 0.9])]);
}

#[test]
fn second_derivatives_of_sums() {
    let text = "fun f(x: f64, a: []f64): f64 {
        let c: bool = lt.f64(x, 1.0f64)
        let z: (#one f64 i64 | #many []f64 f64) = if c {
            let y: f64 = sin.f64(x)
            let s: (#one f64 i64 | #many []f64 f64) = inject(0, y, 3i64): (#one f64 i64 | #many []f64 f64)
            in s
        } else {
            let s2: (#one f64 i64 | #many []f64 f64) = inject(1, a, x): (#one f64 i64 | #many []f64 f64)
            in s2
        }
        let r: f64 = match z
            case (p: f64, k: i64) { let q: f64 = mul.f64(p, p) in q }
            case (b: []f64, p2: f64) {
                let q2: f64 = b[1i64]
                let u: f64 = mul.f64(p2, q2)
                let v: f64 = mul.f64(u, u)
                in v
            }
        in r
    }";
    twice(text, vec![f(0.5), fs(&[1.0, 2.0])]);
    twice(text, vec![f(1.5), fs(&[1.0, 2.0])]);
}

#[test]
fn second_derivatives_of_shapes_scans_and_histograms() {
    let text = "fun f(a: []f64, b: [][]f64, is: []i64, x: f64): []f64 {
        let s: []f64 = slice(a, 3i64, 2i64, -2i64)
        let c: []f64 = concat(s, a)
        let r: []f64 = reverse(c)
        let o: []f64 = rotate(r, 3i64)
        let fl: []f64 = reshape([6i64], 2, b)
        let g: []f64 = replicate([3i64], x)
        let u: []f64 = update_slice(fl, 1i64, 3i64, 2i64, g)
        let m: []f64 = map 6i64 [u, o] (p: f64, q: f64) { let t: f64 = mul.f64(p, q) let v: f64 = mul.f64(t, p) in v }
        let k: []f64 = scan 6i64 [0.0f64] [m] (u2: f64, v2: f64) { let w2: f64 = add.f64(u2, v2) in w2 }
        let e: []f64 = scan 6i64 [1.0f64] [m] (u3: f64, v3: f64) { let w3: f64 = mul.f64(u3, v3) in w3 }
        let h: []f64 = hist 6i64 [0.0f64] [k] is [e] (u4: f64, v4: f64) { let w4: f64 = add.f64(u4, v4) in w4 }
        let j: []f64 = scatter(6i64, h, is, m)
        let i: []f64 = gather(j, is)
        in i
    }";
    let b = Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 0.5, -1.0, 0.25]);
    twice(text, vec![fs(&[0.5, 3.5, 2.0, 1.0]), b, is(&[0, 2, 2, 5, 1, 4]), f(0.3)]);
}

#[test]
fn second_derivatives_through_chosen_accumulators() {
    let text = "fun f(n: i64, a: []f64, b: []f64): f64 {
        let y: f64 = loop (s: f64 = 0.1f64) for i: i64 < n {
            let c: bool = lt.f64(s, 0.5f64)
            let d: []f64 = if c { in a } else { in b }
            let one: []i64 = array(i, i): i64
            let m: []f64 = map 2i64 [one] (k: i64) { let x: f64 = d[k] let xx: f64 = mul.f64(x, x) in xx }
            let t: f64 = reduce 2i64 [0.0f64] [m] (p: f64, q: f64) { let w: f64 = add.f64(p, q) in w }
            let u: f64 = add.f64(s, t)
            let v: f64 = sin.f64(u)
            in v
        }
        in y
    }";
    twice(text, vec![n(4), fs(&[0.3, -0.5, 0.7, 1.1]), fs(&[0.2, 0.4, -0.9, 0.6])]);
    forward_over_reverse(text, vec![n(4), fs(&[0.3, -0.5, 0.7, 1.1]), fs(&[0.2, 0.4, -0.9, 0.6])]);
}

/// The part is made in the arm, or in one arm only.
#[test]
fn parts_of_accumulators_chosen_in_branches() {
    for (then, otherwise) in
        [("part(0i64)", "part(1i64)"), ("whole", "part(1i64)"), ("part(i)", "part(2i64)")]
    {
        let arm = |name: &str, what: &str| match what.strip_prefix("part") {
            Some(at) => format!(
                "let {name}: i64 = add.i64{} let {name}2: acc []f64 = view_index(acc, [{name}]) in {name}2",
                at.replace(')', ", 0i64)")
            ),
            None => "in one".to_string(),
        };
        let text = format!(
            "fun f(z: [][]f64, c: bool, i: i64, x: []f64): [][]f64 {{
                let r: [][]f64 = withacc [z] (acc: acc [][]f64) {{
                    let one: acc []f64 = view_index(acc, [0i64])
                    let part: acc []f64 = if c {{ {} }} else {{ {} }}
                    let u: () = add_to(part, [], x)
                    in
                }}
                in r
            }}",
            arm("j", then),
            arm("k", otherwise)
        );
        let z = Value::f64_array(&[3, 2], &[0.3, -0.5, 0.7, 1.1, 0.2, 0.4]);
        for c in [true, false] {
            let args =
                [z.clone(), Value::Scalar(pullback_prim::ScalarValue::Bool(c)), n(1), fs(&[0.6, -0.9])];
            assert_eq!(common::mismatch(&text, &args, &Default::default()), None, "{then} {otherwise} {c}");
        }
    }
}

/// Forward mode of the derivative agrees with the interpreter's dual numbers run on it.
fn forward_over_reverse(text: &str, args: Vec<Value>) {
    let mut program = common::parse(text);
    let f = common::first(&program);
    let g = common::add_vjp(&mut program, f, &Default::default()).expect("supported");
    let (results, _) = common::run(&program, f, &args);
    let mut r = common::Numbers(3);
    let types = program.funs[f].results.clone();
    let bars = types.iter().zip(&results).filter_map(|(t, v)| common::direction(&program, t, v, &mut r));
    let all: Vec<Value> = args.into_iter().chain(bars).collect();
    let fun = program.funs[g].clone();
    let params: Vec<_> = fun.params.iter().map(|&p| program.vars[p].ty.clone()).collect();
    let dots: Vec<Value> =
        params.iter().zip(&all).filter_map(|(t, v)| common::direction(&program, t, v, &mut r)).collect();
    let lam = pullback_core::Lam { params: fun.params, body: fun.body };
    let wanted = vec![true; lam.params.len()];
    let lam = pullback_ad::forward::jvp(&mut program, &lam, &wanted).expect("supported");
    let h = common::add_function(&mut program, "jvp", lam);
    let with_dots: Vec<Value> = all.iter().chain(&dots).cloned().collect();
    let (ours, _) = common::run(&program, h, &with_dots);
    let oracle = pullback_interp::dual::jvp(&program, g, &all, &dots, &Default::default()).expect("runs");
    let floats = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
    let (mine, theirs) = (floats(&ours[oracle.results.len()..]), floats(&oracle.tangents));
    assert_eq!(mine.len(), theirs.len());
    for (x, y) in mine.iter().zip(&theirs) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{mine:?} {theirs:?}");
    }
}
