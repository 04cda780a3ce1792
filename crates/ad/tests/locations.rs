//! Loops and branches that hand on names of arrays: the derivative costs a constant times the program.
//!
//! The programs are the eighteen of the design note on locations (section 7): carried inputs, choices, rows, exchanges, arrays made or
//! overwritten now and then, in loops, nests, maps. With dense cotangents for carried arrays most of their derivatives cost an
//! array per iteration. (More than 500 lines: a list of programs.)

use crate::common;

use crate::common::{add_vjp, first, mismatch, parse, run, twice};
use pullback_ad::fast_chad::{Config, Tape};
use pullback_core::Value;

/// A program, and the shapes of its float arguments after the number of iterations.
struct Program {
    name: &'static str,
    text: String,
    shapes: fn(usize) -> Vec<Vec<usize>>,
    /// Whether its cost grows although locations are not used.
    grows: bool,
}

fn two(n: usize) -> Vec<Vec<usize>> {
    vec![vec![n], vec![n]]
}
fn one(n: usize) -> Vec<Vec<usize>> {
    vec![vec![n]]
}
fn four_rows(n: usize) -> Vec<Vec<usize>> {
    vec![vec![4, n]]
}
fn root(n: usize) -> usize {
    (n as f64).sqrt() as usize
}
fn lanes(n: usize) -> Vec<Vec<usize>> {
    vec![vec![root(n), 4 * root(n)]]
}
fn squares(n: usize) -> Vec<Vec<usize>> {
    vec![vec![root(n), root(n)], vec![root(n), root(n)]]
}
fn eight(_: usize) -> Vec<Vec<usize>> {
    vec![vec![8], vec![8]]
}

/// A loop over `state` with this body, and what is returned.
fn with_loop(params: &str, state: &str, body: &str, result: &str) -> String {
    format!(
        "fun f(n: i64, {params}): f64 {{
            {state} {{
                {body}
            }}
            {result}
        }}"
    )
}

const VECTORS: &str = "x: []f64, w: []f64";
const EVEN: &str = "let m: i64 = mod.i64(i, 2i64)\nlet c: bool = eq.i64(m, 0i64)";

/// The sum of a map of one lane that reads `v` at `i`, squared.
const LANE: &str = "let at: []i64 = array(i): i64
    let lane: []f64 = map 1i64 [at] (k: i64) {
        let z: f64 = v[k]
        let z2: f64 = mul.f64(z, z)
        in z2
    }
    let e: f64 = reduce 1i64 [0.0f64] [lane] (p: f64, q: f64) { let pq: f64 = add.f64(p, q) in pq }";

/// A condition that holds where `i mod k` is `at`.
fn every(k: &str, at: &str) -> String {
    format!("let m: i64 = mod.i64(i, {k})\nlet c: bool = eq.i64(m, {at})")
}

const ONE_STATE: &str = "let s9: f64, v9: []f64 = loop (s: f64 = 0.3f64, v: []f64 = x) for i: i64 < n";
const TWO_STATES: &str =
    "let s9: f64, u9: []f64, v9: []f64 = loop (s: f64 = 0.3f64, u: []f64 = x, v: []f64 = w) for i: i64 < n";
const TANH_OF_SUM: &str = "let e: f64 = v[i]\nlet s0: f64 = add.f64(s, e)\nlet s1: f64 = tanh.f64(s0)";

#[allow(clippy::too_many_lines, reason = "a list of programs")]
fn programs() -> Vec<Program> {
    let program = |name, text, shapes, grows| Program { name, text, shapes, grows };
    let read = "let e: f64 = v[i]\nlet e2: f64 = mul.f64(e, e)\nlet s1: f64 = add.f64(s, e2)";
    let choose = "let v1: []f64 = if c { in w } else { in v }";
    vec![
        program(
            "carry",
            with_loop(
                VECTORS,
                ONE_STATE,
                "let e: f64 = v[i]\nlet s1: f64 = add.f64(s, e)\nin s1, w",
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "choice",
            with_loop(VECTORS, ONE_STATE, &format!("{read}\n{EVEN}\n{choose}\nin s1, v1"), "in s9"),
            two,
            true,
        ),
        program(
            "rows",
                "fun f(n: i64, xs: [][]f64): f64 {
                    let r0: []f64 = xs[0i64]
                    let s9: f64, r9: []f64 = loop (s: f64 = 0.0f64, r: []f64 = r0) for i: i64 < n {
                        let a: f64 = r[0i64]
                        let b: f64 = r[1i64]
                        let ab: f64 = mul.f64(a, b)
                        let s1: f64 = add.f64(s, ab)
                        let k: i64 = mod.i64(i, 4i64)
                        let r1: []f64 = xs[k]
                        in s1, r1
                    }
                    in s9
                }"
                .to_string(),
            four_rows,
            true,
        ),
        program(
            "swap",
            with_loop(
                VECTORS,
                TWO_STATES,
                "let e: f64 = u[i]\nlet t: f64 = mul.f64(e, s)\nlet s1: f64 = sin.f64(t)\nin s1, v, u",
                "in s9",
            ),
            two,
            false,
        ),
        program(
            "take-over",
            with_loop(
                VECTORS,
                "let s9: f64, u9: []f64, v9: []f64 = loop (s: f64 = 0.0f64, u: []f64 = x, v: []f64 = x) for i: i64 < n",
                &format!(
                    "let e: f64 = u[i]
                    let d: f64 = v[i]
                    let t: f64 = mul.f64(e, d)
                    let s1: f64 = add.f64(s, t)
                    {}
                    let v1: []f64 = if c {{ in w }} else {{ in u }}
                    in s1, v, v1",
                    every("3i64", "0i64")
                ),
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "sometimes",
            with_loop(
                VECTORS,
                &format!(
                    "let nf: f64 = convert.i64.f64(n)\nlet rf: f64 = sqrt.f64(nf)\nlet k: i64 = convert.f64.i64(rf)\nlet l: i64 = sub.i64(k, 1i64)\n{ONE_STATE}"
                ),
                &format!(
                    "{TANH_OF_SUM}
                    {}
                    let v1: []f64 = if c {{
                        let f: []f64 = map n [v] (p: f64) {{ let ps: f64 = mul.f64(p, s1) let r: f64 = sin.f64(ps) in r }}
                        in f
                    }} else {{
                        let m5: i64 = mod.i64(i, 5i64)
                        let c5: bool = eq.i64(m5, 0i64)
                        let g: []f64 = if c5 {{ in w }} else {{ in v }}
                        in g
                    }}
                    in s1, v1",
                    every("k", "l")
                ),
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "once",
            with_loop(
                "x: []f64",
                &format!("let half: i64 = div.i64(n, 2i64)\n{ONE_STATE}"),
                &format!(
                    "{TANH_OF_SUM}
                    let c: bool = eq.i64(i, half)
                    let v1: []f64 = if c {{ let f: []f64 = update(v, [0i64], s1) in f }} else {{ in v }}
                    in s1, v1"
                ),
                "in s9",
            ),
            one,
            false,
        ),
        program(
            "nested",
            with_loop(
                VECTORS,
                ONE_STATE,
                "let s1: f64, v1: []f64 = loop (r: f64 = s, u: []f64 = w) for j: i64 < 2i64 {
                    let e: f64 = u[i]
                    let t: f64 = add.f64(r, e)
                    let r1: f64 = sin.f64(t)
                    let m: i64 = mod.i64(j, 2i64)
                    let c: bool = eq.i64(m, 0i64)
                    let u1: []f64 = if c { in v } else { in u }
                    in r1, u1
                }
                in s1, v1",
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "a map of loops over rows",
            "fun f(n0: i64, xs: [][]f64): f64 {
                let n: i64 = size(xs, 0)
                let is: []i64 = iota(n)
                let ys: []f64 = map n [is] (k: i64) {
                    let r0: []f64 = xs[k]
                    let s9: f64, r9: []f64 = loop (s: f64 = 0.0f64, r: []f64 = r0) for i: i64 < n {
                        let e: f64 = r[k]
                        let e2: f64 = mul.f64(e, e)
                        let s1: f64 = add.f64(s, e2)
                        let r1: []f64 = xs[i]
                        in s1, r1
                    }
                    in s9
                }
                let y: f64 = reduce n [0.0f64] [ys] (p: f64, q: f64) { let pq: f64 = add.f64(p, q) in pq }
                in y
            }"
            .into(),
            lanes,
            true,
        ),
        program(
            "read in a map",
            with_loop(
                VECTORS,
                ONE_STATE,
                &format!("{LANE}\nlet s1: f64 = add.f64(s, e)\n{EVEN}\n{choose}\nin s1, v1"),
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "while",
            with_loop(
                VECTORS,
                "let k9: i64, s9: f64, v9: []f64 = loop (i: i64 = 0i64, s: f64 = 0.0f64, v: []f64 = x) while { let go: bool = lt.i64(i, n) in go }",
                &format!(
                    "let e: f64 = v[i]\nlet s1: f64 = add.f64(s, e)\nlet k: i64 = add.i64(i, 1i64)\n{EVEN}\n{choose}\nin k, s1, v1"
                ),
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "after",
            with_loop(
                VECTORS,
                ONE_STATE,
                &format!(
                    "let e: f64 = v[i]\nlet s1: f64 = add.f64(s, e)\n{}\n{choose}\nin s1, v1",
                    every("3i64", "0i64")
                ),
                "let z: f64 = reduce n [0.0f64] [v9] (p: f64, q: f64) { let pq: f64 = add.f64(p, q) in pq }
                let e9: f64 = v9[1i64]
                let t: f64 = add.f64(s9, z)
                let y: f64 = mul.f64(t, e9)
                in y",
            ),
            two,
            true,
        ),
        program(
            "matrix",
            "fun f(n: i64, xs: [][]f64, ws: [][]f64): f64 {
                let k: i64 = size(xs, 0)
                let s9: f64, v9: [][]f64 = loop (s: f64 = 0.0f64, v: [][]f64 = xs) for i: i64 < n {
                    let at: i64 = mod.i64(i, k)
                    let r: []f64 = v[at]
                    let e: f64 = r[at]
                    let s1: f64 = add.f64(s, e)
                    let m: i64 = mod.i64(i, 2i64)
                    let c: bool = eq.i64(m, 0i64)
                    let v1: [][]f64 = if c { in ws } else { in v }
                    in s1, v1
                }
                in s9
            }"
            .into(),
            squares,
            true,
        ),
        program(
            "window",
            with_loop(
                VECTORS,
                TWO_STATES,
                "let t: []f64 = map 8i64 [v] (p: f64) { let ps: f64 = mul.f64(p, s) in ps }
                let j: i64 = mod.i64(i, 8i64)
                let a: f64 = u[j]
                let b: f64 = v[j]
                let ab: f64 = add.f64(a, b)
                let s1: f64 = tanh.f64(ab)
                in s1, v, t",
                "in s9",
            ),
            eight,
            false,
        ),
        program(
            "a new array once, inside of an iteration",
            with_loop(
                VECTORS,
                "let half: i64 = div.i64(n, 2i64)\nlet s9: f64 = loop (s: f64 = 0.2f64) for i: i64 < n",
                &format!(
                    "let c: bool = eq.i64(i, half)
                    let v: []f64 = if c {{ let f: []f64 = update(w, [0i64], s) in f }} else {{ in x }}
                    {LANE}
                    let t: f64 = add.f64(s, e)
                    let s1: f64 = sin.f64(t)
                    in s1"
                ),
                "in s9",
            ),
            two,
            true,
        ),
        program(
            "overwrite",
            with_loop(
                VECTORS,
                &format!("let k: i64 = div.i64(n, 4i64)\nlet l: i64 = sub.i64(k, 1i64)\n{ONE_STATE}"),
                &format!(
                    "{TANH_OF_SUM}
                    {}
                    let v1: []f64 = if c {{ in w }} else {{ let f: []f64 = update(v, [i], s1) in f }}
                    in s1, v1",
                    every("k", "l")
                ),
                "let e9: f64 = v9[2i64]\nlet y: f64 = add.f64(s9, e9)\nin y",
            ),
            two,
            false,
        ),
        program(
            "in place and exchanged",
            with_loop(
                VECTORS,
                TWO_STATES,
                "let a: f64 = v[i]
                let b: f64 = u[i]
                let sa: f64 = add.f64(s, a)
                let sab: f64 = mul.f64(sa, b)
                let s1: f64 = tanh.f64(sab)
                let u1: []f64 = update(u, [i], s1)
                in s1, v, u1",
                "let e9: f64 = v9[2i64]\nlet y: f64 = add.f64(s9, e9)\nin y",
            ),
            two,
            false,
        ),
        program(
            "shared",
            with_loop(
                VECTORS,
                TWO_STATES,
                &format!(
                    "let t: []f64 = map n [u] (p: f64) {{ let ps: f64 = add.f64(p, s) let r: f64 = sin.f64(ps) in r }}
                    let a: f64 = v[i]
                    let b: f64 = u[i]
                    let ab: f64 = sub.f64(a, b)
                    let s1: f64 = tanh.f64(ab)
                    {EVEN}
                    let u1: []f64 = if c {{ in t }} else {{ in u }}
                    let v1: []f64 = if c {{ in t }} else {{ let f: []f64 = update(v, [i], s1) in f }}
                    in s1, u1, v1"
                ),
                "let a9: f64 = u9[2i64]\nlet b9: f64 = v9[3i64]\nlet ab9: f64 = mul.f64(a9, b9)\nlet y: f64 = add.f64(s9, ab9)\nin y",
            ),
            two,
            false,
        ),
        // Not of the note: the state is a constant, and a function of an operation reads it or an array from outside.
        program(
            "constant or input",
            with_loop(
                VECTORS,
                "let x0: []f64 = replicate([n], 0.3f64)
                let s9: f64, u9: []f64, i9: i64 = loop (s: f64 = 0.3f64, u: []f64 = x0, i: i64 = 0i64) while {
                    let more: bool = lt.i64(i, n)
                    in more
                }",
                &format!(
                    "let c: bool = lt.f64(s, 0.5f64)
                    let v: []f64 = if c {{ in w }} else {{ in u }}
                    {LANE}
                    let se: f64 = add.f64(s, e)
                    let s1: f64 = sin.f64(se)
                    let i1: i64 = add.i64(i, 1i64)
                    in s1, u, i1"
                ),
                "let e9: f64 = u9[2i64]\nlet y: f64 = mul.f64(s9, e9)\nin y",
            ),
            two,
            false,
        ),
        // Not of the note: a loop in the loop takes an array and goes on with one of a single element.
        program(
            "few in place of many",
            with_loop(
                VECTORS,
                ONE_STATE,
                "let e: f64 = v[i]
                let u9: []f64 = loop (u: []f64 = v) for j: i64 < 2i64 {
                    let h: f64 = u[0i64]
                    let h2: f64 = mul.f64(h, e)
                    let few: []f64 = array(h2): f64
                    in few
                }
                let d: f64 = u9[0i64]
                let t: f64 = add.f64(s, d)
                let s1: f64 = sin.f64(t)
                in s1, v",
                "in s9",
            ),
            two,
            true,
        ),
    ]
}

fn args(p: &Program, n: usize) -> Vec<Value> {
    let mut out = vec![Value::i64(n as i64)];
    for (k, shape) in (p.shapes)(n).iter().enumerate() {
        let count: usize = shape.iter().product();
        let at = |i: usize| 0.1 + ((7 * i + 3 * k) % 11) as f64 / 11.0;
        out.push(Value::f64_array(shape, &(0..count).map(at).collect::<Vec<f64>>()));
    }
    out
}

/// Steps of the derivative over steps of the program.
fn ratio(p: &Program, n: usize, config: &Config) -> f64 {
    let mut program = parse(&p.text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, config).expect("supported");
    let args = args(p, n);
    let (_, plain) = run(&program, f, &args);
    let (_, derived) = run(&program, id, &[&args[..], &[Value::f64(1.0)]].concat());
    derived.work as f64 / plain.work as f64
}

const SIZES: [usize; 4] = [16, 64, 256, 1024];

#[test]
fn the_derivatives_of_loops_over_names_cost_a_constant_factor() {
    for tape in [Tape::Cut, Tape::Store, Tape::Recompute] {
        let config = Config { tape, ..Config::default() };
        for p in programs() {
            let ratios: Vec<f64> = SIZES.iter().map(|&n| ratio(&p, n, &config)).collect();
            println!("{:<42} {tape:?} {ratios:.2?}", p.name);
            // In small programs the parts of lower order count.
            assert!(ratios[3] <= 1.04 * ratios[2], "{}: {ratios:?}", p.name);
        }
    }
}

/// What they would cost with a dense cotangent for every carried array.
#[test]
fn without_locations_they_grow() {
    let config = Config { locations: false, ..Config::default() };
    let mut flat = Vec::new();
    for p in programs().iter().filter(|p| p.grows) {
        let (small, large) = (ratio(p, 16, &config), ratio(p, 1024, &config));
        if large < 1.5 * small {
            flat.push((p.name, small, large));
        }
    }
    assert!(flat.is_empty(), "{flat:?}");
}

#[test]
fn their_derivatives_are_those_of_forward_mode() {
    for tape in [Tape::Cut, Tape::Store, Tape::Recompute] {
        for locations in [true, false] {
            let config = Config { tape, locations, ..Config::default() };
            for p in programs() {
                for n in [16, 36] {
                    assert_eq!(mismatch(&p.text, &args(&p, n), &config), None, "{} {config:?}", p.name);
                }
            }
        }
    }
}

#[test]
fn their_second_derivatives_are_those_of_forward_mode() {
    for p in programs() {
        println!("{}", p.name);
        twice(&p.text, args(&p, 9));
    }
}

/// A program that chooses between what is made in an arm of a branch (beside a name from outside) and an array that nobody paid for.
fn partly_made(reads: &str) -> String {
    format!(
        "fun f(n: i64, x: []f64, w: []f64): f64 {{
            let x0: f64 = x[0i64]
            let w0: f64 = w[0i64]
            let c: bool = lt.f64(x0, w0)
            let d: bool = lt.f64(0.0f64, w0)
            let a: []f64, b: []f64 = if c {{
                let m: []f64 = map n [x] (h: f64) {{ let h1: f64 = sin.f64(h) in h1 }}
                in x, m
            }} else {{ in w, x }}
            let u: []f64 = update(x, [1i64], w0)
            let pick: []f64 = if d {{ in b }} else {{ in u }}
            {reads}
            let a2: f64 = a[2i64]
            let y: f64 = mul.f64(s, a2)
            in y
        }}"
    )
}

#[test]
fn a_branch_with_a_name_and_a_new_array_is_a_name_in_part() {
    let lane = format!("let i: i64 = 3i64\n{}\nlet s: f64 = add.f64(e, x0)", LANE.replace("v[k]", "pick[k]"));
    // More elements than are kept apart.
    let mut many = "let s0: f64 = mul.f64(x0, w0)\n".to_string();
    for k in 0..40 {
        let at = k % 5;
        many += &format!(
            "let e{k}: f64 = pick[{at}i64]\nlet p{k}: f64 = sin.f64(e{k})\nlet s{}: f64 = add.f64(s{k}, p{k})\n",
            k + 1
        );
    }
    many += "let s: f64 = add.f64(s40, x0)";
    let turned = "let r: []f64 = reverse(pick)\nlet t: []f64 = rotate(r, 1i64)\nlet t0: f64 = t[0i64]\nlet at: []i64 = iota(2i64)
        let g: []f64 = map 2i64 [at] (k: i64) { let q: f64 = t[k] let q2: f64 = mul.f64(q, q) in q2 }
        let g0: f64 = g[0i64]\nlet s: f64 = mul.f64(g0, t0)";
    for reads in [&lane, &many, turned] {
        for (first, second) in [(0.1, 0.4), (0.4, 0.1), (0.1, -0.4), (-0.1, -0.4)] {
            let floats = |first: f64| Value::f64s(&[first, 0.3, -0.2, 0.7, 0.9]);
            common::adjoint(&partly_made(reads), vec![Value::i64(5), floats(first), floats(second)]);
        }
    }
}

/// Two results of one branch that stand for names of their own.
#[test]
fn a_branch_with_two_results_is_two_names() {
    for (z, far) in [("b", "g"), ("g", "b")] {
        let text = format!(
            "fun f(n: i64, x: []f64, w: []f64): f64 {{
                let x0: f64 = x[0i64]
                let w0: f64 = w[0i64]
                let c: bool = lt.f64(x0, w0)
                let d: bool = lt.f64(0.0f64, w0)
                let u: []f64 = update(x, [1i64], w0)
                let v: []f64 = update(w, [1i64], x0)
                let ru: []f64 = reverse(u)
                let rv: []f64 = rotate(v, 1i64)
                let b: []f64, g: []f64 = if c {{ in u, rv }} else {{ in v, ru }}
                let pick: []f64 = if d {{ in {z} }} else {{ in {far} }}
                let i: i64 = 3i64
                {}
                in e
            }}",
            LANE.replace("v[k]", "pick[k]")
        );
        for (first, second) in [(0.1, 0.4), (0.4, 0.1), (0.1, -0.4), (-0.1, -0.4)] {
            let floats = |first: f64| Value::f64s(&[first, 0.3, -0.2, 0.7, 0.9]);
            common::adjoint(&text, vec![Value::i64(5), floats(first), floats(second)]);
        }
    }
}

/// Where a choice in a map over nothing has another alternative without an array, the sizes are those of the one with an array.
#[test]
fn arrays_that_are_not_there_have_no_sizes() {
    let text = "fun f(n: i64, x: []f64): [][][]f64 {
        let whole: [][]f64 = replicate([2i64, 3i64], 0.5f64)
        let x0: f64 = x[0i64]
        let rep: [][]f64 = update(whole, [0i64, 1i64], x0)
        let s1: [][]f64, kept: [](#a [][]f64 | #b) = loop (s: [][]f64 = rep) for i: i64 < n collect 1 {
            let none: (#a [][]f64 | #b) = inject(1): (#a [][]f64 | #b)
            in s, none
        }
        let ys: [][][]f64 = map n [kept] (z: (#a [][]f64 | #b)) {
            let r: [][]f64 = match z
                case (p: [][]f64) { in p }
                case () { in s1 }
            in r
        }
        in ys
    }";
    for n in [0, 2] {
        common::adjoint(text, vec![Value::i64(n), Value::f64s(&[0.3, 0.7])]);
    }
}

/// What a name stands for is looked up once, not once for each way that leads to it.
#[test]
fn many_exchanges_one_after_the_other_take_no_longer_than_their_text() {
    let mut text = "fun f(n: i64, x: []f64, w: []f64): f64 {\nlet u0: []f64 = update(x, [0i64], 0.5f64)\nlet v0: []f64 = update(w, [1i64], 0.25f64)\n"
        .to_string();
    for k in 0..64 {
        let next = k + 1;
        text += &format!(
            "let e{k}: f64 = x[{}i64]\nlet c{k}: bool = lt.f64(e{k}, 0.5f64)
            let u{next}: []f64, v{next}: []f64 = if c{k} {{ in v{k}, u{k} }} else {{ in u{k}, v{k} }}\n",
            k % 5
        );
    }
    text += "let i: i64 = 2i64\n";
    text += &LANE.replace("v[k]", "u64[k]");
    text += "\nlet f: f64 = v64[3i64]\nlet y: f64 = mul.f64(e, f)\nin y }";
    let floats = |first: f64| Value::f64s(&[first, 0.3, -0.2, 0.7, 0.9]);
    let args = vec![Value::i64(5), floats(0.1), floats(0.4)];
    assert_eq!(mismatch(&text, &args, &Config::default()), None);
}
