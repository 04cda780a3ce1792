//! Many directions at once: stacked derivatives, with the forward sweep run once.

use crate::common::{first, parse, run};
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::Counts;

/// A program whose primal is dear (a loop of `m` rounds that no derivative needs again) and whose derivative is cheap.
const DEAR: &str = "
fun weight(rounds: i64, factor: f64): f64 {
    let w: f64 = loop (s: f64 = 0.5f64) for i: i64 < rounds {
        let turned: f64 = cos.f64(s)
        in turned
    }
    let weighted: f64 = mul.f64(w, factor)
    in weighted
}
";

fn expanded(text: &str) -> (Program, FunId) {
    let mut program = parse(text);
    let main = program.funs.ids().last().expect("a function");
    differentiate(&mut program, &Choice::default()).expect("supported");
    if let Err(e) = pullback_core::check::check(&program, pullback_core::check::Rules::NO_AD) {
        panic!("{}\n{}", e.to_diagnostic().message, pullback_core::print::print(&program));
    }
    (program, main)
}

fn results(text: &str, args: &[Value]) -> (Vec<Value>, Counts) {
    let (program, main) = expanded(text);
    run(&program, main, args)
}

#[test]
fn the_primal_runs_once_however_many_seeds_there_are() {
    for (mode, params) in [("vjp", "ybars"), ("jvp", "xdots")] {
        let text = format!(
            "{DEAR}
            fun main(m: i64, k: i64, x: f64, {params}: []f64): f64, []f64 {{
                let y: f64, d: []f64 = {mode} seeds k [x] [{params}] (z: f64) {{
                    let r: f64 = call weight(m, z)
                    in r
                }}
                in y, d
            }}"
        );
        let work = |m: i64, k: usize| {
            let seeds = Value::f64s(&vec![2.0; k]);
            let (out, counts) =
                results(&text, &[Value::i64(m), Value::i64(k as i64), Value::f64(3.0), seeds]);
            assert_eq!(out[1].floats().len(), k);
            counts.work
        };
        let primal = work(1000, 0) - work(0, 0);
        assert!(primal >= 2000, "{mode}: the loop is part of the primal: {primal}");
        for k in [1, 4, 16] {
            assert_eq!(work(1000, k) - work(0, k), primal, "{mode}: the primal with {k} seeds");
        }
        // Cost = primal + k * reverse: the same for every further seed.
        let (a, b, c) = (work(10, 2), work(10, 4), work(10, 6));
        assert_eq!(c - b, b - a, "{mode}");
        assert!(b - a < 40, "{mode}: a seed costs {}", (b - a) / 2);
    }
}

#[test]
fn the_tape_of_a_loop_is_made_once_and_read_for_every_seed() {
    let text = |one: bool| {
        let (seeds, ty) = if one { ("", "f64") } else { ("seeds k", "[]f64") };
        format!(
            "fun main(n: i64, k: i64, x: f64, ybars: {ty}): f64, {ty} {{
                let y: f64, d: {ty} = vjp {seeds} [x] [ybars] (z: f64) {{
                    let w: f64 = loop (s: f64 = z) for i: i64 < n {{
                        let t: f64 = sin.f64(s)
                        in t
                    }}
                    in w
                }}
                in y, d
            }}"
        )
    };
    let work = |n: i64, k: usize| {
        let args = [Value::i64(n), Value::i64(k as i64), Value::f64(0.5), Value::f64s(&vec![1.0; k])];
        results(&text(false), &args).1.work
    };
    let alone = |n: i64| {
        results(&text(true), &[Value::i64(n), Value::i64(1), Value::f64(0.5), Value::f64(1.0)]).1.work
    };
    // The slope in n of the forward sweep, of one seed, and of a single derivative: forward + one reverse.
    let forward = work(200, 0) - work(100, 0);
    let seed = (work(200, 3) - work(100, 3) - forward) / 3;
    assert_eq!(forward + seed, alone(200) - alone(100));
    assert_eq!(work(200, 8) - work(100, 8), forward + 8 * seed);
}

#[test]
fn stacked_cotangents_are_rows_of_the_jacobian() {
    // y = (x0 * x1, sin x0): rows (x1, x0) and (cos x0, 0).
    let text = "fun main(x: []f64, ybars: [][]f64): []f64, [][]f64 {
        let y: []f64, d: [][]f64 = vjp seeds 2i64 [x] [ybars] (z: []f64) {
            let a: f64 = z[0i64]
            let b: f64 = z[1i64]
            let p: f64 = mul.f64(a, b)
            let s: f64 = sin.f64(a)
            let r: []f64 = array(p, s): f64
            in r
        }
        in y, d
    }";
    let args = [Value::f64s(&[0.5, 3.0]), Value::f64_array(&[2, 2], &[1.0, 0.0, 0.0, 1.0])];
    let (out, _) = results(text, &args);
    assert_eq!(out[1], Value::f64_array(&[2, 2], &[3.0, 0.5, 0.5_f64.cos(), 0.0]));
}

#[test]
fn stacked_tangents_are_columns_of_the_jacobian_also_at_maps_reductions_and_updates() {
    // y = (sum of squares, x with its first element squared).
    let text = "fun main(n: i64, x: []f64, xdots: [][]f64): f64, []f64, []f64, [][]f64 {
        let y: f64, z: []f64, d: []f64, e: [][]f64 = jvp seeds 3i64 [x] [xdots] (x1: []f64) {
            let q: []f64 = map n [x1] (u: f64) { let v: f64 = mul.f64(u, u) in v }
            let s: f64 = reduce n [0.0f64] [q] (u1: f64, v1: f64) { let w: f64 = add.f64(u1, v1) in w }
            let h: f64 = q[0i64]
            let r: []f64 = update(x1, [0i64], h)
            in s, r
        }
        in y, z, d, e
    }";
    let x = [0.5, 3.0];
    let dots = [1.0, 0.0, 0.0, 1.0, 2.0, -1.0];
    let args = [Value::i64(2), Value::f64s(&x), Value::f64_array(&[3, 2], &dots)];
    let (out, _) = results(text, &args);
    assert_eq!(out[2], Value::f64s(&[1.0, 6.0, -4.0]));
    assert_eq!(out[3], Value::f64_array(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0]));
}

#[test]
fn without_seeds_there_is_the_result_and_an_empty_stack_of_the_right_shape() {
    for (mode, size) in [("vjp", 3), ("jvp", 3)] {
        let text = format!(
            "fun main(n: i64, k: i64, x: []f64, seeds1: [][]f64): []f64, [][]f64 {{
                let y: []f64, d: [][]f64 = {mode} seeds k [x] [seeds1] (x1: []f64) {{
                    let q: []f64 = map n [x1] (u: f64) {{ let v: f64 = mul.f64(u, u) in v }}
                    in q
                }}
                in y, d
            }}"
        );
        let none = Value::f64_array(&[0, 0], &[]);
        let args = [Value::i64(3), Value::i64(0), Value::f64s(&[1.0, 2.0, 3.0]), none];
        let (out, _) = results(&text, &args);
        assert_eq!(out[0], Value::f64s(&[1.0, 4.0, 9.0]), "{mode}");
        assert_eq!(out[1], Value::f64_array(&[0, size], &[]), "{mode}");
    }
}

#[test]
fn a_stack_of_empty_arrays_has_an_element_per_seed() {
    // Sizes of what comes out of a sum are not known without running the function of the map.
    for form in ["vjp", "jvp"] {
        let text = format!(
            "fun main(n: i64, x: []f64, seeds1: [][]f64): []f64, [][]f64 {{
                let y: []f64, d: [][]f64 = {form} seeds 2i64 [x] [seeds1] (x1: []f64) {{
                    let q: []f64 = map n [x1] (u: f64) {{
                        let w: (#w f64 f64) = inject(0, u, u): (#w f64 f64)
                        let v: f64 = match w
                            case (v1: f64, v2: f64) {{ in v2 }}
                        in v
                    }}
                    in q
                }}
                in y, d
            }}"
        );
        let none = Value::f64_array(&[2, 0], &[]);
        let (out, _) = results(&text, &[Value::i64(0), Value::f64s(&[]), none.clone()]);
        assert_eq!(out, [Value::f64s(&[]), none], "{form}");
    }
}

#[test]
fn tangents_of_empty_arrays_inside_sums_are_found() {
    // The payload of the first alternative is an array of n elements.
    let text = "fun main(n: i64, x: []f64, dots: [][]f64): i64, i64 {
        let s: (#a []f64 | #b f64), d: [](#none | #a []f64 | #b f64) = jvp seeds 2i64 [x] [dots] (x1: []f64) {
            let q: []f64 = map n [x1] (u: f64) {
                let w: (#w f64 f64) = inject(0, u, u): (#w f64 f64)
                let v: f64 = match w
                    case (v1: f64, v2: f64) { in v2 }
                in v
            }
            let s1: (#a []f64 | #b f64) = inject(0, q): (#a []f64 | #b f64)
            in s1
        }
        let k: i64 = size(d, 0)
        let e: (#none | #a []f64 | #b f64) = d[1i64]
        let m: i64 = match e
            case () { in -1i64 }
            case (p: []f64) { let pn: i64 = size(p, 0) in pn }
            case (p1: f64) { in -2i64 }
        in k, m
    }";
    for n in [0, 3] {
        let x = vec![1.0; n];
        let dots = Value::f64_array(&[2, n], &vec![1.0; 2 * n]);
        let (out, _) = results(text, &[Value::i64(n as i64), Value::f64s(&x), dots]);
        assert_eq!(out, [Value::i64(2), Value::i64(n as i64)]);
    }
}

#[test]
fn many_seeds_inside_a_derivative_are_differentiated_again() {
    // g(x) = sum of both rows of the Jacobian product of (x^3, sin x) with seeds 1 and 2 for the first, 0 and 1 for the second:
    // 3 x^2 + 2 * 3 x^2 + cos x; its derivative is 18 x - sin x.
    for (mode, inner) in [("vjp", "vjp"), ("jvp", "vjp"), ("vjp", "jvp"), ("jvp", "jvp")] {
        let body = if inner == "vjp" {
            "let p: f64, q: f64, d: []f64 = vjp seeds 2i64 [z] [us, vs] (w: f64) {
                let w2: f64 = mul.f64(w, w)
                let w3: f64 = mul.f64(w2, w)
                let w4: f64 = sin.f64(w)
                in w3, w4
            }
            let a0: f64 = d[0i64]
            let a1: f64 = d[1i64]
            let r: f64 = add.f64(a0, a1)"
        } else {
            "let p: f64, q: f64, d: []f64, e: []f64 = jvp seeds 2i64 [z] [ts] (w: f64) {
                let w2: f64 = mul.f64(w, w)
                let w3: f64 = mul.f64(w2, w)
                let w4: f64 = sin.f64(w)
                in w3, w4
            }
            let a0: f64 = d[0i64]
            let a1: f64 = d[1i64]
            let a2: f64 = e[0i64]
            let a3: f64 = add.f64(a0, a1)
            let r: f64 = add.f64(a2, a3)"
        };
        let text = format!(
            "fun main(x: f64, us: []f64, vs: []f64, ts: []f64): f64, f64 {{
                let y: f64, g: f64 = {mode} [x] [1.0f64] (z: f64) {{
                    {body}
                    in r
                }}
                in y, g
            }}"
        );
        let x = 0.7;
        let us = Value::f64s(&[1.0, 2.0]);
        let args = [Value::f64(x), us.clone(), Value::f64s(&[0.0, 1.0]), us];
        let (out, _) = results(&text, &args);
        let (value, slope) = (out[0].floats()[0], out[1].floats()[0]);
        assert!((value - (9.0 * x * x + x.cos())).abs() < 1e-12, "{mode} of {inner}: {value}");
        assert!((slope - (18.0 * x - x.sin())).abs() < 1e-12, "{mode} of {inner}: {slope}");
    }
}

#[test]
fn recursive_functions_take_many_tangents() {
    let text = "fun power(base: f64, n: i64): f64 {
        let c: bool = le.i64(n, 0i64)
        let r: f64 = if c { in 1.0f64 } else {
            let m: i64 = sub.i64(n, 1i64)
            let p: f64 = call power(base, m)
            let q: f64 = mul.f64(base, p)
            in q
        }
        in r
    }
    fun main(x: f64, xdots: []f64): f64, []f64 {
        let y: f64, d: []f64 = jvp seeds 2i64 [x] [xdots] (z: f64) {
            let r1: f64 = call power(z, 3i64)
            in r1
        }
        in y, d
    }";
    let (out, _) = results(text, &[Value::f64(2.0), Value::f64s(&[1.0, -0.5])]);
    assert_eq!(out, [Value::f64(8.0), Value::f64s(&[12.0, -6.0])]);
}

#[test]
fn the_oracle_of_the_interpreter_takes_many_directions_too() {
    let text = "fun main(x: []f64, ybars: []f64): f64, [][]f64 {
        let y: f64, d: [][]f64 = vjp seeds 2i64 [x] [ybars] (z: []f64) {
            let a: f64 = z[0i64]
            let b: f64 = z[1i64]
            let p: f64 = mul.f64(a, b)
            in p
        }
        in y, d
    }";
    let program = parse(text);
    let args = [Value::f64s(&[2.0, 3.0]), Value::f64s(&[1.0, 10.0])];
    let (out, _) = run(&program, first(&program), &args);
    assert_eq!(out, [Value::f64(6.0), Value::f64_array(&[2, 2], &[3.0, 2.0, 30.0, 20.0])]);
}
