//! Functions that call themselves and hand on names of arrays: the derivative costs a constant times the program.
//!
//! Gradients are given in closed form, by hand; and compared with forward mode, first and second order.

use crate::common::{add_vjp, mismatch, parse, run, twice};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;

/// The gradient at a size and arguments.
type Gradient = fn(usize, &[Vec<f64>]) -> Vec<Vec<f64>>;

/// A program: `f`, and the functions that it calls.
struct Program {
    name: &'static str,
    text: String,
    /// Shapes of the float arguments after the number of calls.
    shapes: fn(usize) -> Vec<Vec<usize>>,
    /// The gradient with respect to each float argument, flat, by hand: `x` are the arguments.
    gradient: Gradient,
    /// Whether its cost grows where functions return arrays.
    grows: bool,
}

fn two(n: usize) -> Vec<Vec<usize>> {
    vec![vec![n], vec![n]]
}
fn four_rows(n: usize) -> Vec<Vec<usize>> {
    vec![vec![4, n]]
}
fn hot(n: usize, entries: impl IntoIterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut out = vec![0.0; n];
    entries.into_iter().for_each(|(k, x)| out[k] += x);
    out
}

/// A function `name` that does `body` while the counter is below `n`, and then returns `last`. `body` ends in a call.
fn function(name: &str, results: &str, params: &str, body: &str, last: &str) -> String {
    let types = results.replace("s:", "").replace("v:", "").replace("u:", "");
    let patterns: Vec<String> = types.split(", ").enumerate().map(|(k, t)| format!("r{k}: {t}")).collect();
    let names: Vec<String> = (0..patterns.len()).map(|k| format!("r{k}")).collect();
    let text = format!(
        "fun {name}(n: i64, i: i64, s: f64, {params}): {types} {{
            let more: bool = lt.i64(i, n)
            let {} = if more {{
                let j: i64 = add.i64(i, 1i64)
                {body}
            }} else {{ in {last} }}
            in {}
        }}\n",
        patterns.join(", "),
        names.join(", ")
    );
    renamed(name, &text)
}

/// Variables have one name in the whole text: those of this function end in the function's name.
fn renamed(name: &str, text: &str) -> String {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let words: Vec<&str> = text.split_inclusive(|c| !is_letter(c)).collect();
    let stem = |w: &str| w.trim_end_matches(|c| !is_letter(c)).to_string();
    let bound: Vec<String> =
        words.iter().filter(|w| w.ends_with(':') && w.len() > 1).map(|w| stem(w)).collect();
    let word = |w: &&str| match stem(w) {
        v if bound.contains(&v) => format!("{v}_{name}{}", &w[v.len()..]),
        _ => w.to_string(),
    };
    words.iter().map(word).collect()
}

/// The main function: it calls `go` with these arrays, and `after` makes `y` of what comes back.
fn main(params: &str, results: &str, arrays: &str, after: &str) -> String {
    let text = format!(
        "fun f(n: i64, {params}): f64 {{
            let {results} = call go(n, 0i64, 0.0f64, {arrays})
            {after}
            in y
        }}"
    );
    renamed("f", &text)
}

const VECTORS: &str = "x: []f64, w: []f64";
const STATES: &str = "v: []f64, w: []f64";
const ONE: &str = "f64, []f64";
const ONE_RESULT: &str = "y: f64, r: []f64";
const SUM: &str = "let e: f64 = v[i]\nlet s1: f64 = add.f64(s, e)";
const EVEN: &str = "let m: i64 = mod.i64(i, 2i64)\nlet c: bool = eq.i64(m, 0i64)";

fn carry(name: &str, calls: &str) -> String {
    let body = format!("{SUM}\nlet a: f64, b: []f64 = call {calls}(n, j, s1, w, w)\nin a, b");
    function(name, ONE, STATES, &body, "s, v")
}

#[allow(clippy::too_many_lines, reason = "a list of programs")]
fn programs() -> Vec<Program> {
    vec![
        // x0 + w1 + .. + w(n-1).
        Program {
            name: "carry",
            text: carry("go", "go") + &main(VECTORS, ONE_RESULT, "x, w", ""),
            shapes: two,
            gradient: |n, _| vec![hot(n, [(0, 1.0)]), hot(n, (1..n).map(|k| (k, 1.0)))],
            grows: true,
        },
        // The same by two functions that call each other.
        Program {
            name: "mutual",
            text: carry("go", "back") + &carry("back", "go") + &main(VECTORS, ONE_RESULT, "x, w", ""),
            shapes: two,
            gradient: |n, _| vec![hot(n, [(0, 1.0)]), hot(n, (1..n).map(|k| (k, 1.0)))],
            grows: true,
        },
        // The state is w after even counters, for good: x0^2 + w1^2 + .. + w(n-1)^2.
        Program {
            name: "choice",
            text: function(
                "go",
                ONE,
                STATES,
                &format!(
                    "let e: f64 = v[i]\nlet e2: f64 = mul.f64(e, e)\nlet s1: f64 = add.f64(s, e2)\n{EVEN}
                    let v1: []f64 = if c {{ in w }} else {{ in v }}
                    let a: f64, b: []f64 = call go(n, j, s1, v1, w)
                    in a, b"
                ),
                "s, v",
            ) + &main(VECTORS, ONE_RESULT, "x, w", ""),
            shapes: two,
            gradient: |n, x| {
                let of_w = (1..n).map(|k| (k, 2.0 * x[1][k]));
                vec![hot(n, [(0, 2.0 * x[0][0])]), hot(n, of_w)]
            },
            grows: true,
        },
        // The row before, of four: row 0, then rows 0, 1, 2, 3, 0 ..; of each the product of its first two elements.
        Program {
            name: "rows",
            text: function(
                "go",
                ONE,
                "v: []f64, rows: [][]f64",
                "let e: f64 = v[0i64]\nlet e2: f64 = v[1i64]\nlet p: f64 = mul.f64(e, e2)\nlet s1: f64 = add.f64(s, p)
                let k: i64 = mod.i64(i, 4i64)\nlet row: []f64 = rows[k]
                let a: f64, b: []f64 = call go(n, j, s1, row, rows)
                in a, b",
                "s, v",
            ) + &main("rows: [][]f64", ONE_RESULT, "row, rows", "").replace(
                "let y_f",
                "let row_f: []f64 = rows_f[0i64]\nlet y_f",
            ).replace("(n_f, 0i64, 0.0f64, row,", "(n_f, 0i64, 0.0f64, row_f,"),
            shapes: four_rows,
            gradient: |n, x| {
                let mut out = vec![0.0; 4 * n];
                for i in 0..n {
                    let row = if i == 0 { 0 } else { (i - 1) % 4 };
                    out[row * n] += x[0][row * n + 1];
                    out[row * n + 1] += x[0][row * n];
                }
                vec![out]
            },
            grows: true,
        },
        // Two arrays change places and come back changed (n is even): the sum of x at even places and w at odd ones, and x1 w0.
        Program {
            name: "swap",
            text: function(
                "go",
                "f64, []f64, []f64",
                STATES,
                &format!("{SUM}\nlet a: f64, b: []f64, d: []f64 = call go(n, j, s1, w, v)\nin a, b, d"),
                "s, v, w",
            ) + &main(
                VECTORS,
                "t: f64, p: []f64, q: []f64",
                "x, w",
                "let p1: f64 = p[1i64]\nlet q0: f64 = q[0i64]\nlet pq: f64 = mul.f64(p1, q0)\nlet y: f64 = add.f64(t, pq)",
            ),
            shapes: two,
            gradient: |n, x| {
                let of = |odd: usize| (0..n).filter(move |k| k % 2 == odd).map(|k| (k, 1.0));
                vec![
                    hot(n, of(0).chain([(1, x[1][0])])),
                    hot(n, of(1).chain([(0, x[0][1])])),
                ]
            },
            grows: false,
        },
        // What comes back is w. Each call reads an element of it, the caller all: s = x0 + 2 (w1 + ..) + w0 and the sum of w^2.
        Program {
            name: "read after",
            text: function(
                "go",
                ONE,
                STATES,
                &format!(
                    "{SUM}\nlet a: f64, b: []f64 = call go(n, j, s1, w, w)
                    let h: f64 = b[i]\nlet a1: f64 = add.f64(a, h)\nin a1, b"
                ),
                "s, v",
            ) + &main(
                VECTORS,
                "t: f64, r: []f64",
                "x, w",
                "let sq: []f64 = map n [r] (p: f64) { let pp: f64 = mul.f64(p, p) in pp }
                let all: f64 = reduce n [0.0f64] [sq] (g: f64, h: f64) { let gh: f64 = add.f64(g, h) in gh }
                let y: f64 = add.f64(t, all)",
            ),
            shapes: two,
            gradient: |n, x| {
                let of_w = (0..n).map(|k| (k, 2.0 * x[1][k] + if k == 0 { 1.0 } else { 2.0 }));
                vec![hot(n, [(0, 1.0)]), hot(n, of_w)]
            },
            grows: true,
        },
        // The first call makes an array 2 w + .., the others hand it on: x0 + 2 (w1 + .. + w(n-1)).
        Program {
            name: "made once",
            text: function(
                "go",
                ONE,
                STATES,
                &format!(
                    "{SUM}\nlet c: bool = eq.i64(i, 0i64)
                    let v1: []f64 = if c {{
                        let z: []f64 = map n [w] (p: f64) {{ let p2: f64 = mul.f64(p, 2.0f64) in p2 }}
                        in z
                    }} else {{ in v }}
                    let a: f64, b: []f64 = call go(n, j, s1, v1, w)\nin a, b"
                ),
                "s, v",
            ) + &main(VECTORS, ONE_RESULT, "x, w", ""),
            shapes: two,
            gradient: |n, _| vec![hot(n, [(0, 1.0)]), hot(n, (1..n).map(|k| (k, 2.0)))],
            grows: false,
        },
        // Three lanes of the first program, each scaled by its number plus one: six times its gradient.
        Program {
            name: "in a map",
            text: carry("go", "go")
                + &renamed(
                    "f",
                    "fun f(n: i64, x: []f64, w: []f64): f64 {
                        let lanes: []i64 = iota(3i64)
                        let ys: []f64 = map 3i64 [lanes] (k: i64) {
                            let t: f64, r: []f64 = call go(n, 0i64, 0.0f64, x, w)
                            let k1: i64 = add.i64(k, 1i64)
                            let kf: f64 = convert.i64.f64(k1)
                            let tk: f64 = mul.f64(t, kf)
                            in tk
                        }
                        let y: f64 = reduce 3i64 [0.0f64] [ys] (g: f64, h: f64) { let gh: f64 = add.f64(g, h) in gh }
                        in y
                    }",
                ),
            shapes: two,
            gradient: |n, _| vec![hot(n, [(0, 6.0)]), hot(n, (1..n).map(|k| (k, 6.0)))],
            grows: true,
        },
        // The state is in a sum: none first, then w.
        Program {
            name: "option",
            text: function(
                "go",
                "f64, (#none | #some []f64)",
                "o: (#none | #some []f64), x: []f64, w: []f64",
                "let e: f64 = match o
                    case () { let e0: f64 = x[i] in e0 }
                    case (v: []f64) { let e1: f64 = v[i] in e1 }
                let s1: f64 = add.f64(s, e)
                let o1: (#none | #some []f64) = inject(1, w): (#none | #some []f64)
                let a: f64, b: (#none | #some []f64) = call go(n, j, s1, o1, x, w)
                in a, b",
                "s, o",
            ) + &main(
                VECTORS,
                "y: f64, r: (#none | #some []f64)",
                "none, x, w",
                "",
            )
            .replace("let y_f", "let none_f: (#none | #some []f64) = inject(0): (#none | #some []f64)\nlet y_f")
            .replace("0.0f64, none,", "0.0f64, none_f,"),
            shapes: two,
            gradient: |n, _| vec![hot(n, [(0, 1.0)]), hot(n, (1..n).map(|k| (k, 1.0)))],
            grows: true,
        },
        // A loop in the function carries names: w read twice in each call, x never.
        Program {
            name: "loop inside",
            text: function(
                "go",
                "f64",
                VECTORS,
                "let s1: f64, v1: []f64 = loop (t: f64 = s, v: []f64 = x) for k: i64 < 3i64 {
                    let e: f64 = v[i]
                    let t1: f64 = add.f64(t, e)
                    in t1, w
                }
                let a: f64 = call go(n, j, s1, x, w)
                in a",
                "s",
            ) + &main(VECTORS, "y: f64", "x, w", ""),
            shapes: two,
            gradient: |n, _| vec![vec![1.0; n], vec![2.0; n]],
            grows: true,
        },
    ]
}

fn args(p: &Program, n: usize) -> Vec<Value> {
    let floats = |k: usize, shape: &Vec<usize>| {
        let at = |i: usize| (i as f64 * 0.37 + k as f64).sin();
        Value::f64_array(shape, &(0..shape.iter().product()).map(at).collect::<Vec<f64>>())
    };
    let arrays = (p.shapes)(n);
    let arrays = arrays.iter().enumerate().map(|(k, shape)| floats(k, shape));
    std::iter::once(Value::i64(n as i64)).chain(arrays).collect()
}

/// Work of the derivative over that of the program; the gradient is as given.
fn ratio(p: &Program, n: usize, config: &Config) -> f64 {
    let mut program = parse(&p.text);
    let f = program.funs.ids().last().expect("a function");
    let args = args(p, n);
    let id = add_vjp(&mut program, f, config).expect("supported");
    let (_, plain) = run(&program, f, &args);
    let (out, derived) = run(&program, id, &[&args[..], &[Value::f64(1.0)]].concat());
    let given: Vec<Vec<f64>> = args[1..].iter().map(Value::floats).collect();
    for (bar, by_hand) in out[1..].iter().zip((p.gradient)(n, &given)) {
        let bar = bar.floats();
        let close = bar.iter().zip(&by_hand).all(|(a, b)| (a - b).abs() < 1e-12 * (n as f64));
        assert!(bar.len() == by_hand.len() && close, "{} at {n}: {bar:?}, by hand {by_hand:?}", p.name);
    }
    derived.work as f64 / plain.work as f64
}

#[test]
fn names_that_functions_hand_on_cost_a_constant() {
    for p in programs() {
        let ratios = [16, 64, 256, 1024].map(|n| ratio(&p, n, &Config::default()));
        println!("{:12} {}", p.name, ratios.map(|r| format!("{r:.2}")).join(" "));
        assert!(ratios[3] <= 1.05 * ratios[0], "{}: {ratios:?}", p.name);
    }
}

#[test]
fn without_locations_they_cost_their_size_per_call() {
    let config = Config { locations: false, ..Config::default() };
    for p in programs() {
        let (small, large) = (ratio(&p, 16, &config), ratio(&p, 256, &config));
        assert_eq!(large > 3.0 * small, p.grows, "{}: {small} {large}", p.name);
    }
}

/// Functions that are too large to stand for their calls.
#[test]
fn functions_that_are_not_inlined_cost_a_constant() {
    let text = renamed(
        "last",
        "fun last(n: i64, i: i64, v: []f64, w: []f64): []f64 {
            let m: i64 = mod.i64(i, 2i64)
            let c: bool = eq.i64(m, 0i64)
            let r: []f64 = if c { in v } else { in w }
            in r
        }
        ",
    ) + &renamed(
        "f",
        "fun f(n: i64, x: []f64, w: []f64): f64 {
            let y: f64 = loop (s: f64 = 0.0f64) for i: i64 < n {
                let v: []f64 = call last(n, i, x, w)
                let e: f64 = v[i]
                let s1: f64 = add.f64(s, e)
                in s1
            }
            in y
        }",
    );
    // x at even places and w at odd ones.
    let gradient = |n: usize, _: &[Vec<f64>]| {
        let of = |odd: usize| (0..n).filter(move |k| k % 2 == odd).map(|k| (k, 1.0));
        vec![hot(n, of(0)), hot(n, of(1))]
    };
    let p = Program { name: "not inlined", text, shapes: two, gradient, grows: true };
    for (locations, flat) in [(true, true), (false, false)] {
        let config = Config { max_inlined: 0, locations, ..Config::default() };
        let (small, large) = (ratio(&p, 16, &config), ratio(&p, 256, &config));
        println!("{} {small:.2} {large:.2}", p.name);
        assert_eq!(large <= 1.05 * small, flat, "{small} {large}");
    }
}

/// `common` takes the first function: the text with `f` before the others.
fn with_main_first(text: &str) -> String {
    let at = text.find("fun f(").expect("a main function");
    format!("{}\n{}", &text[at..], &text[..at])
}

#[test]
fn their_derivatives_are_those_of_forward_mode() {
    for locations in [true, false] {
        let config = Config { locations, ..Config::default() };
        for p in programs() {
            for n in [2, 7] {
                let text = with_main_first(&p.text);
                assert_eq!(mismatch(&text, &args(&p, n), &config), None, "{} {locations}", p.name);
            }
        }
    }
}

#[test]
fn their_second_derivatives_are_those_of_forward_mode() {
    for p in programs() {
        println!("{}", p.name);
        twice(&with_main_first(&p.text), args(&p, 6));
    }
}

/// Three results may be one array that a deeper call makes. It stands beside the first of them; the others say so.
#[test]
fn three_results_in_one_array() {
    let text = "fun f(count: i64, y: []f64, z: []f64): f64 {
        let s9: f64, v9: []f64, w9: []f64, x9: []f64 = call go(count, 0i64, 0.1f64, y, z, y, y)
        let e1: f64 = v9[0i64]
        let e2: f64 = w9[0i64]
        let p: f64 = add.f64(e1, e2)
        let r: f64 = mul.f64(s9, p)
        in r
    }
    fun go(n: i64, i: i64, s: f64, a: []f64, b: []f64, c: []f64, x: []f64): f64, []f64, []f64, []f64 {
        let more: bool = lt.i64(i, n)
        let t: f64, u: []f64, v: []f64, w: []f64 = if more {
            let m: []f64 = map n [x] (g: f64) { let g1: f64 = add.f64(g, s) let g2: f64 = sin.f64(g1) in g2 }
            let small: bool = lt.f64(s, 0.5f64)
            let d: []f64 = if small { in m } else { in b }
            let e: f64 = d[i]
            let q: f64 = mul.f64(e, e)
            let s0: f64 = add.f64(s, q)
            let s1: f64 = sin.f64(s0)
            let j: i64 = add.i64(i, 1i64)
            let s2: f64, a2: []f64, b2: []f64, c2: []f64 = call go(n, j, s1, b, d, b, x)
            let a3: f64 = a2[i]
            let b3: f64 = b2[i]
            let c3: f64 = c2[i]
            let s3: f64 = add.f64(s2, a3)
            let s4: f64 = mul.f64(s3, b3)
            let s5: f64 = add.f64(s4, c3)
            in s5, a2, b2, c2
        } else { in s, a, b, c }
        in t, u, v, w
    }";
    for n in [3, 4, 5, 6, 7, 12] {
        let floats = |phase: f64| -> Vec<f64> {
            (0..n).map(|i| 0.4 * (f64::from(i) * 0.37 + phase).sin() + 0.05).collect()
        };
        let args = [Value::i64(i64::from(n)), Value::f64s(&floats(0.0)), Value::f64s(&floats(1.0))];
        assert_eq!(mismatch(text, &args, &Config::default()), None, "{n}");
    }
}
