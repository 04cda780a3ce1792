//! What the generated code looks like: its size, where accumulators and matches appear, what is not there.
//!
//! Code size (claim K7 of the Fast CHAD notes): linear in the program, over families of programs that double in size.

use crate::common::{Numbers, add_vjp, first, mismatch, parse, run};
use pullback_ad::fast_chad::{Accumulate, Config, Variant};
use pullback_core::Value;
use pullback_core::metrics::{Metrics, body_metrics};

/// Sizes of a function and of its derivative.
fn metrics(text: &str, config: &Config) -> (Metrics, Metrics) {
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, config).expect("supported");
    (body_metrics(&program.funs[f].body), body_metrics(&program.funs[id].body))
}

fn ratios(program: impl Fn(usize) -> String) -> Vec<f64> {
    let ratio = |k: usize| {
        let (source, derived) = metrics(&program(k), &Config::default());
        derived.size as f64 / source.size as f64
    };
    [2, 4, 8, 16].into_iter().map(ratio).collect()
}

fn linear(name: &str, program: impl Fn(usize) -> String) {
    let ratios = ratios(program);
    assert!(ratios[3] <= 1.25 * ratios[1], "{name}: code grows faster than the program: {ratios:?}");
}

/// Of programs that get deeper: a stored value is a result of every map or loop around it, so one column per level is
/// allowed, but no second copy of a level's code.
fn linear_per_level(name: &str, program: impl Fn(usize) -> String) {
    let ratios = ratios(program);
    assert!(
        ratios[3] <= 1.7 * ratios[2] && ratios[3] <= 12.0,
        "{name}: code grows faster than the program times its depth: {ratios:?}"
    );
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(line).collect::<Vec<_>>().join("\n")
}

/// CE16: index statements in both arms of nested branches; what the arms contribute is padded, not multiplied.
#[test]
fn code_is_linear_in_nested_branches_that_read_an_array() {
    fn level(k: usize) -> String {
        if k == 0 {
            return "let z0: f64 = a[0i64]".into();
        }
        format!(
            "let c{k}: bool = lt.f64(s, {k}.0f64)
            let z{k}: f64 = if c{k} {{
                {}
                let p{k}: f64 = a[{k}i64]
                let t{k}: f64 = mul.f64(z{}, p{k})
                in t{k}
            }} else {{
                let q{k}: f64 = a[{k}i64]
                let u{k}: f64 = a[0i64]
                let r{k}: f64 = mul.f64(q{k}, u{k})
                in r{k}
            }}",
            level(k - 1),
            k - 1
        )
    }
    linear("nested branches", |k| format!("fun f(a: []f64, s: f64): f64 {{ {} in z{k} }}", level(k)));
}

#[test]
fn code_is_linear_in_branches_in_a_row() {
    linear("branches in a row", |n| {
        let branch = |k: usize| {
            format!(
                "let c{k}: bool = lt.f64(s{0}, 1.0f64)
                let r{k}: f64 = if c{k} {{ let p{k}: f64 = a[{k}i64] in p{k} }} else {{ let q{k}: f64 = a[0i64] in q{k} }}
                let s{k}: f64 = mul.f64(s{0}, r{k})",
                k - 1
            )
        };
        format!("fun f(a: []f64, s0: f64): f64 {{ {} in s{n} }}", lines(n, branch))
    });
}

/// CE17: nested maps, each followed by constant indices into its result. Re-running the elements hit must not copy the
/// inner maps once per index and level.
#[test]
fn code_is_linear_in_nested_maps_of_which_single_elements_are_used() {
    fn level(k: usize, depth: usize) -> String {
        if k == depth {
            return format!("let v{k}: f64 = mul.f64(x{k}, x{k})");
        }
        let j = k + 1;
        format!(
            "let m{j}: []f64 = map 3i64 [a] (y{j}: f64) {{
                let x{j}: f64 = mul.f64(x{k}, y{j})
                {}
                in v{j}
            }}
            let h{j}: f64 = m{j}[0i64]
            let g{j}: f64 = m{j}[1i64]
            let w{j}: f64 = m{j}[2i64]
            let e{j}: f64 = add.f64(h{j}, g{j})
            let v{k}: f64 = add.f64(e{j}, w{j})",
            level(j, depth)
        )
    }
    linear_per_level("nested maps", |depth| {
        format!("fun f(a: []f64, x0: f64): f64 {{ {} in v0 }}", level(0, depth))
    });
}

#[test]
fn code_is_linear_in_nested_loops_and_maps() {
    fn level(k: usize, depth: usize) -> String {
        if k == depth {
            return format!("let v{k}: f64 = sin.f64(x{k})");
        }
        let j = k + 1;
        let body = level(j, depth);
        if k.is_multiple_of(2) {
            format!(
                "let v{k}: f64 = loop (x{j}: f64 = x{k}) for i{j}: i64 < 2i64 {{
                    let b{j}: f64 = a[i{j}]
                    {body}
                    let o{j}: f64 = mul.f64(v{j}, b{j})
                    in o{j}
                }}"
            )
        } else {
            format!(
                "let m{j}: []f64 = map 2i64 [a] (y{j}: f64) {{
                    let x{j}: f64 = mul.f64(x{k}, y{j})
                    {body}
                    in v{j}
                }}
                let v{k}: f64 = reduce 2i64 [0.0f64] [m{j}] (p{j}: f64, q{j}: f64) {{
                    let r{j}: f64 = add.f64(p{j}, q{j})
                    in r{j}
                }}"
            )
        }
    }
    linear_per_level("loops and maps", |depth| {
        format!("fun f(a: []f64, x0: f64): f64 {{ {} in v0 }}", level(0, depth))
    });
}

/// Selective accumulation: scalars, products, indices, branches and updates outside maps and loops merge values.
#[test]
fn straight_line_code_opens_no_accumulator() {
    let text = "fun f(a: []f64, x: f64): f64 {
        let p: f64 = a[0i64]
        let q: f64 = a[2i64]
        let t: (f64, f64) = tuple(p, x)
        let u: f64 = proj(t, 0)
        let v: f64 = mul.f64(u, q)
        let c: bool = lt.f64(v, x)
        let r: f64 = if c { let s: f64 = a[1i64] in s } else { let w: f64 = mul.f64(q, x) in w }
        let b: []f64 = update(a, [1i64], r)
        let y: f64 = b[1i64]
        let z: f64 = mul.f64(y, r)
        in z
    }";
    let (_, derived) = metrics(text, &Config::default());
    assert_eq!(
        derived.count("withacc"),
        1,
        "only where the few entries become the array that the caller wants"
    );
    assert_eq!(derived.count("replicate"), 1);
    assert_eq!(derived.count("match"), 0, "sparsity is known statically");
    assert_eq!(mismatch(text, &[Value::f64s(&[0.3, 0.5, 0.7]), Value::f64(0.9)], &Config::default()), None);
}

/// A random program without control flow: scalars `s..`, arrays of four elements `a..`, a pair per statement of pairs.
fn straight_line(seed: u64) -> String {
    let mut random = Numbers(seed);
    let mut below = move |n: usize| ((random.next() + 1.0) / 2.0 * n as f64) as usize % n;
    let (mut scalars, mut arrays) = (1, 1);
    let mut lines = String::new();
    for k in 0..12 {
        let (s, t, a) = (below(scalars), below(scalars), below(arrays));
        let place = if below(3) == 0 { "i".into() } else { format!("{}i64", below(4)) };
        let (new_s, new_a) = (scalars, arrays);
        lines += &match below(9) {
            0 => format!("let s{new_s}: f64 = mul.f64(s{s}, s{t})\n"),
            1 => format!("let s{new_s}: f64 = sin.f64(s{s})\n"),
            2 | 3 => format!("let s{new_s}: f64 = a{a}[{place}]\n"),
            4 => format!(
                "let p{k}: (f64, f64) = tuple(s{s}, s{t})\nlet s{new_s}: f64 = proj(p{k}, {})\n",
                below(2)
            ),
            5 => format!("let c{k}: []f64 = slice(a{a}, 1i64, 2i64, 1i64)\nlet s{new_s}: f64 = c{k}[1i64]\n"),
            6 => format!("let a{new_a}: []f64 = update(a{a}, [{place}], s{s})\n"),
            7 => format!("let a{new_a}: []f64 = reverse(a{a})\n"),
            _ => format!("let a{new_a}: []f64 = rotate(a{a}, 1i64)\n"),
        };
        if lines.contains(&format!("let s{new_s}:")) {
            scalars += 1;
        } else {
            arrays += 1;
        }
    }
    let (s, a) = (scalars - 1, arrays - 1);
    if below(2) == 0 {
        format!("fun f(s0: f64, a0: []f64, i: i64): f64 {{ {lines} in s{s} }}")
    } else {
        format!("fun f(s0: f64, a0: []f64, i: i64): f64, []f64 {{ {lines} in s{s}, a{a} }}")
    }
}

/// What is there and what is not is known while straight-line code is transformed: no option, no branch and no loop.
#[test]
fn straight_line_code_has_no_branches_backwards() {
    for seed in 0..300 {
        let text = straight_line(seed);
        let (_, derived) = metrics(&text, &Config::default());
        for construct in ["if", "match", "inject", "loop"] {
            assert_eq!(derived.count(construct), 0, "{construct} in the derivative of\n{text}");
        }
        let args = [Value::f64(0.7), Value::f64s(&[0.1, 0.2, 0.3, 0.4]), Value::i64(2)];
        assert_eq!(mismatch(&text, &args, &Config::default()), None, "{text}");
    }
}

/// The accumulation into a component of a part of an array goes straight to its place.
#[test]
fn an_index_inside_a_map_is_one_accumulation() {
    let text = "fun f(n: i64, a: [][]f64, is: []i64): []f64 {
        let y: []f64 = map n [is] (i: i64) {
            let row: []f64 = a[i]
            let x: f64 = row[0i64]
            let z: f64 = mul.f64(x, x)
            in z
        }
        in y
    }";
    let (_, derived) = metrics(text, &Config::default());
    assert_eq!(derived.count("withacc"), 1);
    assert_eq!(derived.count("add_to"), 1);
    assert_eq!(derived.count("replicate"), 1, "one array of zeros, opened for the whole map");
    let one_hot = Config { variant: Variant::OneHot, ..Config::default() };
    assert!(metrics(text, &one_hot).1.count("replicate") > 1, "the didactic rule makes zeros per index");
}

/// Free scalars of a map are returned and summed; on request they get accumulators like arrays. (All programs of
/// `fast_chad` have the same gradients either way: `common::adjoint`.)
#[test]
fn free_scalars_are_summed_or_accumulated() {
    let text = "fun f(n: i64, a: []f64, c: f64): []f64 {
        let y: []f64 = map n [a] (x: f64) { let z: f64 = mul.f64(x, c) in z }
        in y
    }";
    let count = |accumulate: Accumulate| {
        let (_, derived) = metrics(text, &Config { accumulate, ..Config::default() });
        (derived.count("withacc"), derived.count("reduce"))
    };
    assert_eq!(count(Accumulate::ArraysAndSums), (0, 1));
    assert_eq!(count(Accumulate::Everything), (1, 0));
}

#[test]
fn what_does_not_depend_on_an_input_has_no_reverse_code() {
    let text = "fun f(n: i64, a: []i64): i64 {
        let y: []i64 = map n [a] (x: i64) { let z: i64 = mul.i64(x, x) in z }
        let s: i64 = reduce n [0i64] [y] (p: i64, q: i64) { let r: i64 = add.i64(p, q) in r }
        let t: i64 = loop (u: i64 = s) for i: i64 < n { let v: i64 = add.i64(u, i) in v }
        in t
    }";
    let (source, derived) = metrics(text, &Config::default());
    assert_eq!(derived, source, "integers have no cotangents");
    let beside = "fun f(n: i64, x: f64): f64 {
        let c: []f64 = replicate([n], 2.0f64)
        let y: []f64 = map n [c] (d: f64) { let z: f64 = sin.f64(d) in z }
        let s: f64 = reduce n [0.0f64] [y] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
        let t: f64 = mul.f64(s, x)
        in t
    }";
    let (_, derived) = metrics(beside, &Config::default());
    assert_eq!((derived.count("map"), derived.count("reduce")), (1, 1), "constants are not differentiated");
}

fn ratio(text: &str, args: Vec<Value>) -> f64 {
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    let (_, plain) = run(&program, f, &args);
    let all: Vec<Value> = args.into_iter().chain([Value::f64(1.0)]).collect();
    run(&program, id, &all).1.work as f64 / plain.work as f64
}

/// CE10: a matrix of which n scalars are read. As an input, its gradient has n * n numbers, so the ratio grows; produced
/// by the program, its production pays.
#[test]
fn a_sparsely_read_matrix_costs_its_size_only_if_it_is_an_input() {
    let read = "let is: []i64 = iota(n)
        let d: []f64 = map n [is] (i: i64) { let line: []f64 = m[i] let g: f64 = line[i] let h: f64 = mul.f64(g, g) in h }
        let s: f64 = reduce n [0.0f64] [d] (p: f64, q: f64) { let r: f64 = add.f64(p, q) in r }
        in s";
    let input = format!("fun f(n: i64, m: [][]f64): f64 {{ {read} }}");
    let made = format!(
        "fun f(n: i64, a: []f64): f64 {{
            let m: [][]f64 = map n [a] (x: f64) {{
                let row: []f64 = map n [a] (y: f64) {{ let z: f64 = mul.f64(x, y) in z }}
                in row
            }}
            {read}
        }}"
    );
    let at = |n: usize| {
        let numbers = |k: usize| (0..k).map(|i| 0.1 + i as f64 * 0.01).collect::<Vec<f64>>();
        let size = Value::i64(n as i64);
        (
            ratio(&input, vec![size.clone(), Value::f64_array(&[n, n], &numbers(n * n))]),
            ratio(&made, vec![size, Value::f64s(&numbers(n))]),
        )
    };
    let (small, large) = (at(16), at(128));
    assert!(large.0 > 3.0 * small.0, "the size of the input: {small:?} {large:?}");
    assert!(large.1 <= 1.1 * small.1, "paid for by the program: {small:?} {large:?}");
}
