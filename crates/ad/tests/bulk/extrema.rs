//! The algorithm `bulk` on reductions by minimum and maximum: which element gets the cotangent, by hand and as Fast CHAD has it.

use super::from_core::{f, fs, results};
use super::translated::checked;
use crate::common::{add_bulk, add_vjp, first, mismatch_of, parse, run};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;

fn reduced(name: &str, op: &str, n: &str, z: &str, of: &str) -> String {
    format!(
        "let {name}: f64 = reduce {n} [{z}] [{of}] ({name}1: f64, {name}2: f64) {{
            let {name}3: f64 = {op}.f64({name}1, {name}2) in {name}3
        }}"
    )
}

/// Binds `y`, the logarithm of the sum of the exponentials of `x`, of `n` numbers, so that it does not overflow.
fn log_sum_exp(n: &str, x: &str) -> String {
    format!(
        "{}
        let e: []f64 = map {n} [{x}] (v: f64) {{
            let d: f64 = sub.f64(v, m)
            let t: f64 = exp.f64(d)
            in t
        }}
        {}
        let l: f64 = log.f64(s)
        let y: f64 = add.f64(m, l)",
        reduced("m", "max", n, "-f64.inf", x),
        reduced("s", "add", n, "0.0f64", "e")
    )
}

fn assert_close(found: &Value, wanted: &[f64]) {
    let found = found.floats();
    let same = found.iter().zip(wanted).all(|(x, y)| (x - y).abs() <= 1e-14 * (1.0 + y.abs()));
    assert!(same && found.len() == wanted.len(), "{found:?}, and not {wanted:?}");
}

/// The gradient is the softmax: of the logarithms of 1, 2 and 5 it is 1/8, 2/8 and 5/8, and adding 1,000 to all of them changes nothing.
#[test]
fn a_logarithm_of_a_sum_of_exponentials_that_does_not_overflow() {
    let text = format!("fun f(x: []f64): f64 {{ let n: i64 = size(x, 0) {} in y }}", log_sum_exp("n", "x"));
    let logs = [0.0, 2f64.ln(), 5f64.ln()];
    for shift in [0.0, 1024.0] {
        let found = results(&text, &[fs(&logs.map(|x| x + shift)), f(2.0)]);
        assert_close(&found[0], &[8f64.ln() + shift]);
        let found = found[1].floats();
        for (g, wanted) in found.iter().zip([0.25, 0.5, 1.25]) {
            assert!((g - wanted).abs() < 1e-12, "{found:?}");
        }
    }
}

/// The first of equal elements gets all, also of -0 and 0; elements that are no numbers get nothing.
#[test]
fn the_first_of_equal_elements_is_chosen() {
    let gradient = |op: &str, x: &[f64]| {
        let lowest = if op == "max" { "-f64.inf" } else { "f64.inf" };
        let text = format!(
            "fun f(x: []f64): f64 {{ let n: i64 = size(x, 0) {} in y }}",
            reduced("y", op, "n", lowest, "x")
        );
        results(&text, &[fs(x), f(2.0)])
    };
    assert_eq!(gradient("max", &[3.0, 1.0, 3.0]), [f(3.0), fs(&[2.0, 0.0, 0.0])]);
    assert_eq!(gradient("min", &[1.0, 3.0, 1.0]), [f(1.0), fs(&[2.0, 0.0, 0.0])]);
    assert_eq!(gradient("max", &[1.0, 2.0, 4.0]), [f(4.0), fs(&[0.0, 0.0, 2.0])]);
    assert_eq!(gradient("max", &[-0.0, 0.0])[1], fs(&[2.0, 0.0]));
    assert_eq!(gradient("min", &[0.0, -0.0])[1], fs(&[2.0, 0.0]));
    assert_eq!(gradient("max", &[f64::NAN, 1.0, f64::NAN, 1.0]), [f(1.0), fs(&[0.0, 2.0, 0.0, 0.0])]);
    assert_eq!(gradient("max", &[f64::NAN])[1], fs(&[0.0]));
    assert_eq!(gradient("max", &[]), [f(f64::NEG_INFINITY), fs(&[])]);
    // What the reduction starts from comes first.
    assert_eq!(gradient("min", &[f64::INFINITY])[1], fs(&[0.0]));
}

/// The initial element takes part: it wins ties, and where there is no number. Fast CHAD agrees.
#[test]
fn the_initial_element_may_win() {
    let nan = f64::NAN;
    for (op, z, x, z_bar, x_bar) in [
        ("max", 5.0, &[][..], 1.0, &[][..]),
        ("max", 5.0, &[1.0, 2.0], 1.0, &[0.0, 0.0]),
        ("max", 2.0, &[1.0, 2.0], 1.0, &[0.0, 0.0]),
        ("max", 1.0, &[1.0, 2.0], 0.0, &[0.0, 1.0]),
        ("max", nan, &[nan, 2.0, 2.0], 0.0, &[0.0, 1.0, 0.0]),
        ("max", 5.0, &[nan, nan], 1.0, &[0.0, 0.0]),
        ("max", nan, &[nan], 1.0, &[0.0]),
        ("min", 5.0, &[6.0], 1.0, &[0.0]),
        ("min", 5.0, &[6.0, 4.0, 4.0], 0.0, &[0.0, 1.0, 0.0]),
        ("min", 4.0, &[6.0, 4.0], 1.0, &[0.0, 0.0]),
    ] {
        let text = format!(
            "fun f(z: f64, x: []f64): f64 {{ let n: i64 = size(x, 0) {} in y }}",
            reduced("y", op, "n", "z", "x")
        );
        let args = [f(z), fs(x), f(1.0)];
        assert_eq!(results(&text, &args)[1..], [f(z_bar), fs(x_bar)], "{op} {z} {x:?}");
        let mut program = parse(&text);
        let main = first(&program);
        let chad = add_vjp(&mut program, main, &Config::default()).expect("supported");
        assert_eq!(run(&program, chad, &args).0[1..], [f(z_bar), fs(x_bar)], "{op} {z} {x:?}");
    }
}

const LOWEST_OF_ROWS: &str = "fun f(a: [][]f64): []f64 {
    let n: i64 = size(a, 0)
    let y: []f64 = map n [a] (row: []f64) {
        let k: i64 = size(row, 0)
        let s: f64 = reduce k [f64.inf] [row] (s1: f64, s2: f64) { let s3: f64 = min.f64(s1, s2) in s3 }
        let t: f64 = mul.f64(s, s)
        in t
    }
    in y
}";

/// The squares of the smallest elements of rows; of rows without elements too.
#[test]
fn the_smallest_elements_of_rows() {
    let a = Value::f64_array(&[2, 3], &[3.0, 1.0, 2.0, 5.0, 6.0, 5.0]);
    let found = results(LOWEST_OF_ROWS, &[a, fs(&[1.0, 10.0])]);
    assert_eq!(found, [fs(&[1.0, 25.0]), Value::f64_array(&[2, 3], &[0.0, 2.0, 0.0, 100.0, 0.0, 0.0])]);
    let none = Value::f64_array(&[0, 3], &[]);
    assert_eq!(results(LOWEST_OF_ROWS, &[none.clone(), fs(&[])]), [fs(&[]), none]);
    let empty = Value::f64_array(&[2, 0], &[]);
    let infinite = fs(&[f64::INFINITY, f64::INFINITY]);
    assert_eq!(results(LOWEST_OF_ROWS, &[empty.clone(), fs(&[1.0, 1.0])]), [infinite, empty]);
}

/// Of an array that a map makes of an argument of the map: the largest of `x_i w_j`, where `w` is `(1, -2)`, is `x_i` or `-2 x_i`.
#[test]
fn an_array_that_a_map_makes() {
    let text = format!(
        "fun f(x: []f64, w: []f64): []f64 {{
            let n: i64 = size(x, 0)
            let k: i64 = size(w, 0)
            let y: []f64 = map n [x] (v: f64) {{
                let p: []f64 = map k [w] (u: f64) {{ let t: f64 = mul.f64(v, u) in t }}
                {}
                in s
            }}
            in y
        }}",
        reduced("s", "max", "k", "-f64.inf", "p")
    );
    let found = results(&text, &[fs(&[3.0, -1.0]), fs(&[1.0, -2.0]), fs(&[1.0, 10.0])]);
    assert_eq!(found, [fs(&[3.0, 2.0]), fs(&[1.0, -20.0]), fs(&[3.0, -10.0])]);
}

/// The largest of some `e (x_k, a_ik)` for each `i`. A row of what is no number has none, nor has an empty row: their place is -1, where nothing is read.
#[test]
fn rows_without_a_largest_element() {
    let text = |e: &str| {
        format!(
            "fun f(x: []f64, a: [][]f64): []f64 {{
                let k: i64 = size(x, 0)
                let n: i64 = size(a, 0)
                let y: []f64 = map n [a] (row: []f64) {{
                    let m: i64 = size(row, 0)
                    let same: bool = eq.i64(k, m)
                    let u: () = assert(same, \"two sizes\")
                    let p: []f64 = map k [x, row] (v: f64, w: f64) {{
                        let t: f64 = mul.f64(v, w)
                        {e}
                        in e
                    }}
                    {}
                    in s
                }}
                in y
            }}",
            reduced("s", "max", "k", "-f64.inf", "p")
        )
    };
    let nan = f64::NAN;
    let (x, a) = (fs(&[0.5, 1.0]), Value::f64_array(&[2, 2], &[nan, nan, 3.0, 0.25]));
    let (sin, cos) = (1.5f64.sin(), 1.5f64.cos());
    let outer = (0.5 * sin).cos();
    for (e, x_bar, a_bar) in [
        ("let e: f64 = neg.f64(t)", [0.0, -0.25], [0.0, -1.0]),
        ("let e: f64 = sin.f64(t)", [3.0 * cos, 0.0], [0.5 * cos, 0.0]),
        (
            "let q: f64 = sin.f64(t) let r: f64 = mul.f64(q, v) let e: f64 = sin.f64(r)",
            [outer * (sin + 0.5 * 3.0 * cos), 0.0],
            [outer * 0.5 * 0.5 * cos, 0.0],
        ),
    ] {
        let found = results(&text(e), &[x.clone(), a.clone(), fs(&[1.0, 2.0])]);
        assert_close(&found[1], &x_bar.map(|slope| 2.0 * slope));
        assert_close(&found[2], &[0.0, 0.0, 2.0 * a_bar[0], 2.0 * a_bar[1]]);
        let empty = Value::f64_array(&[2, 0], &[]);
        let found = results(&text(e), &[fs(&[]), empty.clone(), fs(&[1.0, 2.0])]);
        assert_eq!(found[1..], [fs(&[]), empty], "{e}");
    }
}

/// The logarithm of the likelihood of points `x`, for centres with weights: `sum_i log (sum_k exp (w_k - (x_i - c_k)^2))`.
fn mixture() -> String {
    format!(
        "fun f(w: []f64, c: []f64, x: []f64): f64 {{
            let k: i64 = size(w, 0)
            let k2: i64 = size(c, 0)
            let same: bool = eq.i64(k, k2)
            let u: () = assert(same, \"two sizes\")
            let n: i64 = size(x, 0)
            let ys: []f64 = map n [x] (p: f64) {{
                let q: []f64 = map k [w, c] (a: f64, b: f64) {{
                    let away: f64 = sub.f64(p, b)
                    let square: f64 = mul.f64(away, away)
                    let r: f64 = sub.f64(a, square)
                    in r
                }}
                {}
                in y
            }}
            {}
            in all
        }}",
        log_sum_exp("k", "q"),
        reduced("all", "add", "n", "0.0f64", "ys")
    )
}

/// One point at 0, centres at 1 and -1, weights 0 and log 3: shares of 1/4 and 3/4, so centres get `2 (x - c)` times these, and the point the opposite sum.
#[test]
fn a_mixture_of_gaussians() {
    let text = mixture();
    let found = results(&text, &[fs(&[0.0, 3f64.ln()]), fs(&[1.0, -1.0]), fs(&[0.0]), f(1.0)]);
    assert_close(&found[0], &[4f64.ln() - 1.0]);
    assert_close(&found[1], &[0.25, 0.75]);
    assert_close(&found[2], &[-0.5, 1.5]);
    assert_close(&found[3], &[-1.0]);
    let mut program = parse(&text);
    let main = first(&program);
    let g = add_bulk(&mut program, main).expect("supported");
    checked(&program);
    let x = [0.5, -1.5, 2.0, 0.25, -0.75];
    let args = [fs(&[0.3, -0.2, 0.1]), fs(&[1.0, -1.0, 0.4]), fs(&x)];
    assert_eq!(mismatch_of(&program, main, g, &args), None);
    let chad = add_vjp(&mut program, main, &Config::default()).expect("supported");
    let all = [&args[..], &[f(1.0)]].concat();
    let (ours, theirs) = (run(&program, g, &all).0, run(&program, chad, &all).0);
    ours.iter().zip(&theirs).for_each(|(a, b)| assert_close(a, &b.floats()));
}

/// Steps grow as those of the function, in the number of points and in that of centres.
#[test]
fn work_of_a_mixture_grows_as_that_of_the_function() {
    let mut program = parse(&mixture());
    let main = first(&program);
    let g = add_bulk(&mut program, main).expect("supported");
    let ratio = |k: usize, n: usize| {
        let args = [fs(&vec![0.5; k]), fs(&vec![0.25; k]), fs(&vec![1.0; n])];
        let plain = run(&program, main, &args).1.work;
        let both = run(&program, g, &[&args[..], &[f(1.0)]].concat()).1.work;
        both as f64 / plain as f64
    };
    let (small, large) = (ratio(8, 8), ratio(40, 40));
    assert!(large < small * 1.2 && large < 30.0, "{small} {large}");
}

/// Sums and maxima beside each other, of which only the maximum has a cotangent that is not zero; the second result of a map of two.
#[test]
fn sums_and_maxima_of_one_reduction() {
    let text = "fun f(a: []f64, b: []f64): f64, f64 {
        let n: i64 = size(a, 0)
        let m: i64 = size(b, 0)
        let same: bool = eq.i64(n, m)
        let u: () = assert(same, \"two sizes\")
        let s: f64, t: f64 = reduce n [0.0f64, 1.0f64] [a, b] (p1: f64, p2: f64, q1: f64, q2: f64) {
            let r1: f64 = add.f64(p1, q1)
            let r2: f64 = max.f64(p2, q2)
            in r1, r2
        }
        in s, t
    }";
    let found = results(text, &[fs(&[1.0, 2.0]), fs(&[3.0, 4.0]), f(1.0), f(10.0)]);
    assert_eq!(found, [f(3.0), f(4.0), fs(&[1.0, 1.0]), fs(&[0.0, 10.0])]);
}

/// Integers have no derivative: the element at the largest index of each row, squared.
#[test]
fn the_largest_integers_of_rows() {
    let text = "fun f(a: []f64, ks: [][]i64): []f64 {
        let n: i64 = size(ks, 0)
        let y: []f64 = map n [ks] (row: []i64) {
            let m: i64 = size(row, 0)
            let k: i64 = reduce m [0i64] [row] (k1: i64, k2: i64) { let k3: i64 = max.i64(k1, k2) in k3 }
            let x: f64 = a[k]
            let t: f64 = mul.f64(x, x)
            in t
        }
        in y
    }";
    let mut program = parse(text);
    let main = first(&program);
    let g = add_bulk(&mut program, main).expect("supported");
    checked(&program);
    for (rows, a_bar) in
        [(vec![1, 2, 2, 0, 1, 0], [0.0, 40.0, 6.0]), (vec![-1, -1, -1, 0, 2, 2], [2.0, 0.0, 60.0])]
    {
        let mut data = pullback_core::Buffer::with_capacity(Some(pullback_prim::Scalar::I64), rows.len());
        rows.iter().for_each(|k| data.push(Value::i64(*k)));
        let ks = Value::Array(pullback_core::Array::new(vec![2, 3], data));
        let found = run(&program, g, &[fs(&[1.0, 2.0, 3.0]), ks, fs(&[1.0, 10.0])]).0;
        assert_eq!(found[1], fs(&a_bar), "{rows:?}");
    }
}

/// The derivative is a function of core, which Fast CHAD differentiates again.
#[test]
fn derivatives_of_maxima_are_differentiated_again() {
    let a = Value::f64_array(&[2, 3], &[0.5, -1.0, 2.0, 0.25, 1.5, -0.75]);
    let args = [a, fs(&[1.5, -0.5])];
    let mut program = parse(LOWEST_OF_ROWS);
    let main = first(&program);
    let g = add_bulk(&mut program, main).expect("supported");
    let again = add_vjp(&mut program, g, &Config::default()).expect("supported");
    assert_eq!(mismatch_of(&program, g, again, &args), None);
}

/// The operator that `argMax` is in core is known again, in maps too: of each row `x^2 w_k`, where `x` is its largest element, and `k` the first place of it.
#[test]
fn places_of_largest_elements_are_known_again() {
    let text = "fun f(a: [][]f64, w: []f64): []f64 {
        let n: i64 = size(a, 0)
        let y: []f64 = map n [a] (row: []f64) {
            let m: i64 = size(row, 0)
            let is: []i64 = iota(m)
            let x: f64, k: i64 = reduce m [-f64.inf, -1i64] [row, is] (p: f64, i: i64, q: f64, j: i64) {
                let b: f64 = max.f64(p, q)
                let c: bool = eq.f64(p, b)
                let l: i64 = select.i64(c, i, 9223372036854775807i64)
                let d: bool = eq.f64(q, b)
                let r: i64 = select.i64(d, j, 9223372036854775807i64)
                let s: i64 = min.i64(l, r)
                in b, s
            }
            let v: f64 = w[k]
            let t: f64 = mul.f64(x, x)
            let u: f64 = mul.f64(t, v)
            in u
        }
        in y
    }";
    let a = Value::f64_array(&[2, 3], &[3.0, 7.0, 7.0, 5.0, 2.0, 4.0]);
    let found = results(text, &[a, fs(&[10.0, 100.0, 1000.0]), fs(&[1.0, 2.0])]);
    let a_bar = Value::f64_array(&[2, 3], &[0.0, 1400.0, 0.0, 200.0, 0.0, 0.0]);
    assert_eq!(found, [fs(&[4900.0, 250.0]), a_bar, fs(&[50.0, 49.0, 0.0])]);
}
