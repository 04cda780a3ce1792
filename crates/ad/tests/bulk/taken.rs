//! What the algorithm `bulk` takes beyond the chapter, by hand: each program has to be taken, not only to be right where it is. And its place among other derivatives.

use super::from_core::{derived, f, fs, results};
use super::translated::checked;
use crate::common::{add_vjp, first, mismatch_of, parse, run};
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_ad::fast_chad::Config;
use pullback_core::{Array, Buffer, Value};

fn integers(shape: &[usize], xs: &[i64]) -> Value {
    Value::Array(Array::new(shape.to_vec(), Buffer::I64(xs.to_vec())))
}

const HISTOGRAM: &str = "let z: []f64 = hist k [0.0f64] [d] is [b] (u: f64, v: f64) {
    let w: f64 = add.f64(u, v) in w
}";

/// What is sent outside is dropped, so it has no cotangent; what was there before keeps its own.
#[test]
fn histograms_by_sum() {
    let text = format!(
        "fun f(d: []f64, is: []i64, a: []f64): []f64 {{
            let k: i64 = size(is, 0)
            let b: []f64 = map k [a] (x: f64) {{ let y: f64 = mul.f64(x, x) in y }}
            {HISTOGRAM}
            in z
        }}"
    );
    let (d, a) = (fs(&[0.5, 2.0, 5.0]), fs(&[1.0, 2.0, 3.0, -1.0, 9.0]));
    let args = [d, integers(&[5], &[1, 7, 0, 1, -1]), a, fs(&[1.0, 10.0, 100.0])];
    let wanted = [fs(&[9.5, 4.0, 5.0]), fs(&[1.0, 10.0, 100.0]), fs(&[20.0, 0.0, 6.0, -20.0, 0.0])];
    assert_eq!(results(&text, &args), wanted);
}

/// A histogram for each row, of which all start from the same array: its cotangent is the sum over the rows.
#[test]
fn histograms_of_rows() {
    let text = format!(
        "fun f(d: []f64, iss: [][]i64, a: [][]f64): [][]f64 {{
            let n: i64 = size(a, 0)
            let zs: [][]f64 = map n [iss, a] (is: []i64, b: []f64) {{
                let k: i64 = size(b, 0)
                {HISTOGRAM}
                in z
            }}
            in zs
        }}"
    );
    let places = integers(&[2, 3], &[0, 0, 1, 1, 2, -1]);
    let a = Value::f64_array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y_bar = Value::f64_array(&[2, 2], &[1.0, 2.0, 10.0, 20.0]);
    let found = results(&text, &[fs(&[0.5, 0.25]), places, a, y_bar]);
    let a_bar = Value::f64_array(&[2, 3], &[1.0, 1.0, 2.0, 20.0, 0.0, 0.0]);
    assert_eq!(found, [Value::f64_array(&[2, 2], &[3.5, 3.25, 0.5, 4.25]), fs(&[11.0, 22.0]), a_bar]);
}

/// `a_3 a_1, a_1 a_2, a_0 .. a_3` backwards. Each cotangent is a power of two, so sums tell which ones they are of.
#[test]
fn slices_and_concatenations() {
    let text = "fun f(a: []f64): []f64 {
        let s: []f64 = slice(a, 3i64, 2i64, -2i64)
        let t: []f64 = slice(a, 1i64, 2i64, 1i64)
        let c: []f64 = concat(s, t, a)
        let r: []f64 = reverse(c)
        in r
    }";
    let y_bar = [128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0];
    let found = results(text, &[fs(&[0.5, 1.5, 2.5, 3.5]), fs(&y_bar)]);
    let value = [3.5, 2.5, 1.5, 0.5, 2.5, 1.5, 1.5, 3.5];
    assert_eq!(found, [fs(&value), fs(&[16.0, 2.0 + 4.0 + 32.0, 8.0 + 64.0, 1.0 + 128.0])]);
}

/// An element that is written over has no cotangent; what is written has.
#[test]
fn updates_of_elements_and_slices() {
    let text = "fun f(a: []f64, x: f64, b: []f64, i: i64): []f64 {
        let u: []f64 = update(a, [i], x)
        let v: []f64 = update_slice(u, 0i64, 2i64, 3i64, b)
        in v
    }";
    let args = [fs(&[1.0, 2.0, 3.0, 4.0, 5.0]), f(9.0), fs(&[7.0, 8.0]), Value::i64(2)];
    let y_bar = fs(&[1.0, 2.0, 4.0, 8.0, 16.0]);
    let found = results(text, &[&args[..], &[y_bar]].concat());
    let wanted = [fs(&[7.0, 2.0, 9.0, 8.0, 5.0]), fs(&[0.0, 2.0, 0.0, 0.0, 16.0]), f(4.0), fs(&[1.0, 8.0])];
    assert_eq!(found, wanted);
}

/// `sum_j x_j^2 x_(n-1-j)`, as `s`.
const CUBES: &str = "let n: i64 = size(z, 0)
    let is: []i64 = iota(n)
    let last: i64 = sub.i64(n, 1i64)
    let p: []f64 = map n [z, is] (x: f64, i: i64) {
        let j: i64 = sub.i64(last, i)
        let y: f64 = z[j]
        let t: f64 = mul.f64(x, x)
        let u: f64 = mul.f64(t, y)
        in u
    }
    let s: f64 = reduce n [0.0f64] [p] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }";

/// The product of the Hessian with a direction `v`: by forward mode of the gradient, by the gradient of forward mode, and by the gradient of the gradient's product with `v`. By hand it is
/// `2 v_j x_(n-1-j) + 2 (x_j + x_(n-1-j)) v_(n-1-j)`.
#[test]
fn second_derivatives_in_three_ways() {
    let gradient = |of: &str| {
        format!("let y: f64, g: []f64 = vjp #[ad(bulk)] [{of}] [1.0f64] (z: []f64) {{ {CUBES} in s }}")
    };
    let forward_over =
        format!("let g2: []f64, h: []f64 = jvp [a] [v] (b: []f64) {{ {} in g }}", gradient("b"));
    let over_forward = format!(
        "let y: f64, h: []f64 = vjp #[ad(bulk)] [a] [1.0f64] (b: []f64) {{
            let q: f64, d: f64 = jvp [b] [v] (z: []f64) {{ {CUBES} in s }}
            in d
        }}"
    );
    let over_itself = format!(
        "let y2: f64, h: []f64 = vjp #[ad(bulk)] [a] [1.0f64] (b: []f64) {{
            {}
            let m: i64 = size(v, 0)
            let k: i64 = size(b, 0)
            let same: bool = eq.i64(m, k)
            let u2: () = assert(same, \"two sizes\")
            let gv: []f64 = map k [g, v] (x2: f64, w: f64) {{ let r: f64 = mul.f64(x2, w) in r }}
            let d: f64 = reduce k [0.0f64] [gv] (d1: f64, d2: f64) {{ let d3: f64 = add.f64(d1, d2) in d3 }}
            in d
        }}",
        gradient("b")
    );
    for way in [forward_over, over_forward, over_itself] {
        let text = format!("fun main(a: []f64, v: []f64): []f64 {{ {way} in h }}");
        let mut program = parse(&text);
        differentiate(&mut program, &Choice::default()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        checked(&program);
        let main = first(&program);
        let found = run(&program, main, &[fs(&[1.0, 2.0, 5.0]), fs(&[1.0, -1.0, 2.0])]).0;
        assert_eq!(found, [fs(&[34.0, -12.0, 16.0])], "{text}");
    }
}

/// The square of the largest element, at a place that a reduction of pairs finds. The place does not vary, so the function computes it, by any operator; and the number beside it is not asked for.
#[test]
fn the_place_of_the_largest_element() {
    let text = "fun f(a: []f64): f64 {
        let m: i64 = size(a, 0)
        let is: []i64 = iota(m)
        let x: f64, k: i64 = reduce m [-f64.inf, -1i64] [a, is] (p: f64, i: i64, q: f64, j: i64) {
            let c: bool = lt.f64(p, q)
            let r: f64 = if c { in q } else { in p }
            let l: i64 = if c { in j } else { in i }
            in r, l
        }
        let z: f64 = a[k]
        let t: f64 = mul.f64(z, z)
        in t
    }";
    let found = results(text, &[fs(&[3.0, 5.0, 5.0, 2.0]), f(10.0)]);
    assert_eq!(found, [f(25.0), fs(&[0.0, 100.0, 0.0, 0.0])]);
}

/// Products of the largest element of each row, of what stands beside it, and of another element at its place; the smallest ones of negated rows are the same. The first one of equal elements is taken, and what
/// the reduction starts from only where no element is larger: of a row of what is no number, of an empty one, and of one whose elements are smaller.
#[test]
fn what_stands_beside_the_best_elements() {
    let text = |start: &str, compared: &str, is_one: bool| {
        let chosen = if is_one {
            "let r: f64, s: f64, l: i64 = if c { in q, v, j } else { in p, u, i }"
        } else {
            "let r: f64 = select.f64(c, q, p)
            let s: f64 = if c { in v } else { in u }
            let l: i64 = select.i64(c, j, i)"
        };
        format!(
            "fun f(a: [][]f64, b: [][]f64, z: f64): []f64 {{
                let n: i64 = size(a, 0)
                let ys: []f64 = map n [a, b] (row: []f64, beside: []f64) {{
                    let m: i64 = size(row, 0)
                    let is: []i64 = iota(m)
                    let x: f64, y: f64, k: i64 = reduce m [{start}, z, -1i64] [row, beside, is] (p: f64, u: f64, i: i64, q: f64, v: f64, j: i64) {{
                        let c: bool = lt.f64({compared})
                        {chosen}
                        in r, s, l
                    }}
                    let none: bool = lt.i64(k, 0i64)
                    let w: f64 = if none {{ in 1.0f64 }} else {{ let e: f64 = row[k] in e }}
                    let xy: f64 = mul.f64(x, y)
                    let t: f64 = mul.f64(xy, w)
                    in t
                }}
                in ys
            }}"
        )
    };
    let nan = f64::NAN;
    let sign = |s: f64| {
        Value::f64_array(
            &[4, 3],
            &[3.0, 5.0, 5.0, nan, 2.0, 1.0, -9.0, -8.0, -7.0, nan, nan, nan].map(|x| s * x),
        )
    };
    let b = Value::f64_array(&[4, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
    let y_bar = fs(&[1.0, 10.0, 100.0, 1000.0]);
    for (start, compared, s) in [("-4.0f64", "p, q", 1.0), ("4.0f64", "q, p", -1.0)] {
        for is_one in [true, false] {
            let found = results(&text(start, compared, is_one), &[sign(s), b.clone(), f(0.5), y_bar.clone()]);
            // x y w is x^2 y where an element is the best one, and -4 z or 4 z where there is none.
            assert_eq!(found[0], fs(&[50.0, 20.0, s * -2.0, s * -2.0]));
            let mut a_bar = [0.0; 12];
            (a_bar[1], a_bar[4]) = (s * 2.0 * 5.0 * 2.0, s * 10.0 * 2.0 * 2.0 * 5.0);
            let mut b_bar = [0.0; 12];
            (b_bar[1], b_bar[4]) = (25.0, 10.0 * 4.0);
            assert_eq!(found[1], Value::f64_array(&[4, 3], &a_bar), "{start} {compared}");
            assert_eq!(found[2], Value::f64_array(&[4, 3], &b_bar), "{start} {compared}");
            assert_eq!(found[3], f(s * -4.0 * 1100.0), "{start} {compared}");
        }
    }
    let empty = || Value::f64_array(&[2, 0], &[]);
    let found = results(&text("-4.0f64", "p, q", true), &[empty(), empty(), f(0.5), fs(&[1.0, 10.0])]);
    assert_eq!(found, [fs(&[-2.0, -2.0]), empty(), empty(), f(-44.0)]);
}

/// Two comparisons, each for a component: what stands beside the largest element is another one than the largest of the others.
#[test]
fn two_comparisons_choose_apart() {
    let text = "fun f(a: []f64, b: []f64): f64, f64 {
        let n: i64 = size(a, 0)
        let x: f64, y: f64 = reduce n [-f64.inf, -f64.inf] [a, b] (p: f64, u: f64, q: f64, v: f64) {
            let c: bool = lt.f64(p, q)
            let d: bool = lt.f64(u, v)
            let r: f64 = if c { in q } else { in p }
            let s: f64 = if d { in v } else { in u }
            in r, s
        }
        in x, y
    }";
    let found = results(text, &[fs(&[1.0, 3.0, 2.0]), fs(&[5.0, 4.0, 6.0]), f(1.0), f(10.0)]);
    assert_eq!(found, [f(3.0), f(6.0), fs(&[0.0, 1.0, 0.0]), fs(&[0.0, 0.0, 10.0])]);
}

fn product(parts: &[Value]) -> Value {
    Value::Tuple(parts.to_vec())
}

/// Arguments and results that are products, in each other, with components that have no derivative: `((a s c, k), a)` with the sum `s` of `b`. A cotangent of a component without derivative is unit.
#[test]
fn arguments_and_results_that_are_products() {
    let text = "fun f(x: ((f64, i64), []f64), c: f64): ((f64, i64), f64) {
        let p: (f64, i64) = proj(x, 0)
        let a: f64 = proj(p, 0)
        let k: i64 = proj(p, 1)
        let b: []f64 = proj(x, 1)
        let n: i64 = size(b, 0)
        let s: f64 = reduce n [0.0f64] [b] (s1: f64, s2: f64) { let s3: f64 = add.f64(s1, s2) in s3 }
        let t: f64 = mul.f64(a, s)
        let u: f64 = mul.f64(t, c)
        let q: (f64, i64) = tuple(u, k)
        let r: ((f64, i64), f64) = tuple(q, a)
        in r
    }";
    let x = product(&[product(&[f(3.0), Value::i64(7)]), fs(&[2.0, 3.0])]);
    let unit = product(&[]);
    let y_bar = product(&[product(&[f(10.0), unit.clone()]), f(1000.0)]);
    let args = [x, f(2.0), y_bar];
    let value = product(&[product(&[f(30.0), Value::i64(7)]), f(3.0)]);
    // By a: 10 s c + 1000; by each of b: 10 a c; by c: 10 a s.
    let x_bar = product(&[product(&[f(1100.0), unit]), fs(&[60.0, 60.0])]);
    assert_eq!(results(text, &args), [value, x_bar, f(150.0)]);
    let (mut program, main, g) = derived(text);
    assert_eq!(mismatch_of(&program, main, g, &args[..2]), None);
    let chad = add_vjp(&mut program, main, &Config::default()).expect("supported");
    assert_eq!(run(&program, g, &args).0, run(&program, chad, &args).0);
}
