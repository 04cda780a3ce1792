//! Calls that become pairs of functions: recursion, values against dual numbers, cost by counting steps, size of code.

use crate::common;

use crate::common::{add_vjp, adjoint, first, mismatch, parse, run, twice, twice_with};
use pullback_ad::fast_chad::{Config, cotangents_with};
use pullback_core::{Lam, Value};

fn f(x: f64) -> Value {
    Value::f64(x)
}
fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
fn n(x: i64) -> Value {
    Value::i64(x)
}
fn floats(n: usize) -> Value {
    fs(&(0..n).map(|i| (i as f64 * 0.37).sin() * 0.5).collect::<Vec<f64>>())
}
/// Right, and right twice.
fn right(text: &str, args: &[Value]) {
    adjoint(text, args.to_vec());
    twice(text, args.to_vec());
}

const POWER: &str = "fun power(x: f64, k: i64): f64 {
    let done: bool = le.i64(k, 0i64)
    let r: f64 = if done { in 1.0f64 } else {
        let less: i64 = sub.i64(k, 1i64)
        let p: f64 = call power(x, less)
        let q: f64 = mul.f64(x, p)
        in q
    }
    in r
}";

#[test]
fn a_power() {
    right(POWER, &[f(1.3), n(5)]);
    right(POWER, &[f(1.3), n(0)]);
    // d x^5 / dx at 2
    assert_eq!(common::gradient(POWER, &[f(2.0), n(5)], &[f(1.0)]), [f(80.0)]);
}

const MUTUAL: &str = "fun f(x: f64, y: f64, k: i64): f64, f64 {
    let done: bool = le.i64(k, 0i64)
    let r: f64, s: f64 = if done { in x, y } else {
        let less: i64 = sub.i64(k, 1i64)
        let a: f64 = sin.f64(x)
        let b: f64 = call g(a, y, less)
        let c: f64 = mul.f64(b, y)
        in c, b
    }
    in r, s
}
fun g(x1: f64, y1: f64, k1: i64): f64 {
    let a1: f64 = mul.f64(x1, y1)
    let b1: f64, unused: f64 = call f(a1, x1, k1)
    let c1: f64 = add.f64(a1, b1)
    in c1
}";

#[test]
fn mutual_recursion_with_results_that_nobody_uses() {
    right(MUTUAL, &[f(0.7), f(1.1), n(4)]);
    right(MUTUAL, &[f(0.7), f(1.1), n(1)]);
}

/// Only one argument is active, then the other.
#[test]
fn uses_of_one_function_that_differ() {
    let text = "fun f(x: f64, k: i64): f64 {
        let a: f64, a1: f64 = call g(x, 2.0f64, k)
        let b: f64, b1: f64 = call g(3.0f64, x, k)
        let c: f64, c1: f64 = call g(x, x, k)
        let d: f64 = mul.f64(a, b1)
        let e: f64 = add.f64(c, d)
        in e
    }
    fun g(x2: f64, y2: f64, k2: i64): f64, f64 {
        let done: bool = le.i64(k2, 0i64)
        let r: f64, s: f64 = if done { in x2, y2 } else {
            let less: i64 = sub.i64(k2, 1i64)
            let m: f64 = mul.f64(x2, y2)
            let p: f64, q: f64 = call g(y2, m, less)
            in p, q
        }
        in r, s
    }";
    right(text, &[f(0.8), n(3)]);
    right(text, &[f(0.8), n(0)]);
}

/// Reads an element per call.
const SUM: &str = "fun f(a: []f64, k: i64): f64 {
    let done: bool = le.i64(k, 0i64)
    let r: f64 = if done { in 0.0f64 } else {
        let less: i64 = sub.i64(k, 1i64)
        let x: f64 = a[less]
        let y: f64 = mul.f64(x, x)
        let rest: f64 = call f(a, less)
        let s: f64 = sin.f64(rest)
        let z: f64 = add.f64(y, s)
        in z
    }
    in r
}";
/// A tree of calls over a range.
const RANGE: &str = "fun f(a: []f64, low: i64, high: i64): f64 {
    let width: i64 = sub.i64(high, low)
    let leaf: bool = le.i64(width, 1i64)
    let r: f64 = if leaf {
        let x: f64 = a[low]
        in x
    } else {
        let half: i64 = div.i64(width, 2i64)
        let middle: i64 = add.i64(low, half)
        let left: f64 = call f(a, low, middle)
        let right: f64 = call f(a, middle, high)
        let p: f64 = mul.f64(left, right)
        let s: f64 = add.f64(p, left)
        in s
    }
    in r
}";
/// A tree of calls on halves of an array.
const HALVES: &str = "fun f(a: []f64): f64 {
    let n: i64 = size(a, 0)
    let leaf: bool = le.i64(n, 1i64)
    let r: f64 = if leaf {
        let x: f64 = a[0i64]
        in x
    } else {
        let half: i64 = div.i64(n, 2i64)
        let rest: i64 = sub.i64(n, half)
        let front: []f64 = slice(a, 0i64, half, 1i64)
        let back: []f64 = slice(a, half, rest, 1i64)
        let left: f64 = call f(front)
        let right: f64 = call f(back)
        let p: f64 = mul.f64(left, right)
        let s: f64 = add.f64(p, left)
        in s
    }
    in r
}";
/// Updates an element per call and returns the array.
const UPDATES: &str = "fun f(a: []f64, k: i64): []f64 {
    let done: bool = le.i64(k, 0i64)
    let r: []f64 = if done { in a } else {
        let less: i64 = sub.i64(k, 1i64)
        let x: f64 = a[less]
        let y: f64 = mul.f64(x, x)
        let b: []f64 = update(a, [less], y)
        let c: []f64 = call f(b, less)
        in c
    }
    in r
}";
/// Updates and reads, returns a number.
const CONSUMES: &str = "fun f(a: []f64, k: i64): f64 {
    let done: bool = le.i64(k, 0i64)
    let r: f64 = if done { in 1.0f64 } else {
        let less: i64 = sub.i64(k, 1i64)
        let x: f64 = a[less]
        let y: f64 = sin.f64(x)
        let b: []f64 = update(a, [less], y)
        let z: f64 = b[k]
        let c: f64 = call f(b, less)
        let w: f64 = mul.f64(z, c)
        let v: f64 = add.f64(w, x)
        in v
    }
    in r
}";
/// Calls itself inside a map.
const MAPPED: &str = "fun f(a: []f64, low: i64, high: i64): f64 {
    let width: i64 = sub.i64(high, low)
    let leaf: bool = le.i64(width, 1i64)
    let r: f64 = if leaf {
        let x: f64 = a[low]
        in x
    } else {
        let half: i64 = div.i64(width, 2i64)
        let middle: i64 = add.i64(low, half)
        let is: []i64 = iota(2i64)
        let parts: []f64 = map 2i64 [is] (i: i64) {
            let second: bool = eq.i64(i, 1i64)
            let l: i64 = select.i64(second, middle, low)
            let h: i64 = select.i64(second, high, middle)
            let part: f64 = call f(a, l, h)
            let s: f64 = sin.f64(part)
            in s
        }
        let sum: f64 = reduce 2i64 [0.0f64] [parts] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
        in sum
    }
    in r
}";
/// A loop around the call, and arrays made by it.
const LOOPED: &str = "fun f(a: []f64, k: i64): f64 {
    let n: i64 = size(a, 0)
    let done: bool = le.i64(k, 0i64)
    let r: f64 = if done {
        let x: f64 = a[0i64]
        in x
    } else {
        let less: i64 = sub.i64(k, 1i64)
        let b: []f64 = map n [a] (x1: f64) { let y1: f64 = sin.f64(x1) in y1 }
        let s: f64 = loop (s0: f64 = 1.0f64) for i: i64 < 2i64 {
            let p: f64 = call f(b, less)
            let q: f64 = a[i]
            let t: f64 = mul.f64(p, q)
            let s1: f64 = add.f64(s0, t)
            in s1
        }
        in s
    }
    in r
}";

#[test]
fn arrays_that_are_read() {
    right(SUM, &[floats(4), n(4)]);
    right(RANGE, &[floats(7), n(0), n(7)]);
    right(HALVES, &[floats(5)]);
    right(MAPPED, &[floats(5), n(0), n(5)]);
    right(LOOPED, &[floats(3), n(3)]);
}

#[test]
fn arrays_that_are_updated() {
    right(UPDATES, &[floats(4), n(3)]);
    right(UPDATES, &[floats(4), n(0)]);
    right(CONSUMES, &[floats(5), n(4)]);
}

#[test]
fn the_work_ratio_of_recursive_functions_is_flat() {
    type Arguments = fn(usize) -> Vec<Value>;
    let families: [(&str, &str, Arguments); 6] = [
        ("sum", SUM, |k| vec![floats(k), n(k as i64)]),
        ("range", RANGE, |k| vec![floats(k), n(0), n(k as i64)]),
        ("halves", HALVES, |k| vec![floats(k)]),
        ("updates", UPDATES, |k| vec![floats(k), n(k as i64)]),
        ("consumes", CONSUMES, |k| vec![floats(k + 1), n(k as i64)]),
        ("mapped", MAPPED, |k| vec![floats(k), n(0), n(k as i64)]),
    ];
    for (name, text, args) in families {
        let mut program = parse(text);
        let f = first(&program);
        let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
        let ratio = |size: usize| {
            let args = args(size);
            let (results, plain) = run(&program, f, &args);
            let bars = results.iter().map(|v| match v {
                Value::Array(a) => Value::f64_array(&a.shape, &vec![1.0; a.count()]),
                _ => Value::f64(1.0),
            });
            let all: Vec<Value> = args.iter().cloned().chain(bars).collect();
            run(&program, id, &all).1.work as f64 / plain.work as f64
        };
        let ratios: Vec<f64> = [16, 64, 256].map(ratio).to_vec();
        assert!(ratios[2] <= ratios[0] * 1.1 && ratios[2] <= 6.0, "{name}: {ratios:?}");
    }
}

/// A tree with a leaf on one side of every call.
const COMB: &str = "fun f(a: []f64, low: i64, high: i64): f64 {
    let width: i64 = sub.i64(high, low)
    let leaf: bool = le.i64(width, 1i64)
    let r: f64 = if leaf {
        let x: f64 = a[low]
        let s0: f64 = sin.f64(x)
        in s0
    } else {
        let middle: i64 = add.i64(low, 1i64)
        let left: f64 = call f(a, low, middle)
        let right: f64 = call f(a, middle, high)
        let p: f64 = mul.f64(left, right)
        let s: f64 = add.f64(p, left)
        in s
    }
    in r
}";
/// A tree of calls with three branches, by a loop.
const THREES: &str = "fun f(a: []f64, low: i64, high: i64): f64 {
    let width: i64 = sub.i64(high, low)
    let leaf: bool = le.i64(width, 1i64)
    let r: f64 = if leaf {
        let x: f64 = a[low]
        in x
    } else {
        let more: i64 = add.i64(width, 2i64)
        let third: i64 = div.i64(more, 3i64)
        let sum: f64 = loop (s0: f64 = 1.0f64) for i: i64 < 3i64 {
            let from: i64 = mul.i64(i, third)
            let start: i64 = add.i64(low, from)
            let next: i64 = add.i64(start, third)
            let l: i64 = min.i64(start, high)
            let h: i64 = min.i64(next, high)
            let some: bool = lt.i64(l, h)
            let s1: f64 = if some {
                let part: f64 = call f(a, l, h)
                let p: f64 = mul.f64(part, s0)
                let q: f64 = add.f64(p, part)
                in q
            } else { in s0 }
            in s1
        }
        in sum
    }
    in r
}";

/// Work, and most bytes in use, of the derivative, with `kept` calls.
fn costs(text: &str, n: i64, kept: i64) -> (f64, f64) {
    let mut program = parse(text);
    let f = first(&program);
    let config = Config { kept_calls: kept, ..Config::default() };
    let id = add_vjp(&mut program, f, &config).expect("supported");
    let small = fs(&(0..n).map(|i| (i as f64 * 0.37).sin() * 0.01).collect::<Vec<f64>>());
    let counts = run(&program, id, &[small, Value::i64(0), Value::i64(n), Value::f64(1.0)]).1;
    (counts.work as f64, counts.peak_bytes as f64)
}

/// Tapes of calls take little memory where calls branch, and no call runs more than twice, however deep it is.
#[test]
fn tapes_of_branching_recursion_are_given_up() {
    for (name, text) in [("range", RANGE), ("mapped", MAPPED), ("threes", THREES), ("comb", COMB)] {
        let ratio = |n: i64| costs(text, n, 8).0 / costs(text, n, -1).0;
        let ratios = [ratio(160), ratio(640), ratio(2560)];
        assert!(ratios[2] <= 3.0 && ratios[2] <= 1.02 * ratios[1], "{name}: {ratios:?}");
    }
    for (name, text) in [("range", RANGE), ("mapped", MAPPED), ("threes", THREES)] {
        let (all, few) = (costs(text, 640, -1).1, costs(text, 640, 8).1);
        assert!(few < 0.4 * all, "{name}: {few} of {all} bytes");
    }
    // What fits is kept: counting is the only cost.
    let (all, small) = (costs(RANGE, 300, -1), costs(RANGE, 300, 100_000));
    assert!(small.0 < 1.6 * all.0, "{small:?} {all:?}");
}

/// Arguments that somebody writes to later are not kept: they would have to be copied.
#[test]
fn arguments_that_are_written_to_are_not_kept() {
    let text = "fun main(given: []f64, n: i64): f64 {
        let b: []f64 = loop (b0: []f64 = given) for i: i64 < n {
            let end: i64 = min.i64(n, 4i64)
            let y: f64 = call f(b0, 0i64, end)
            let b1: []f64 = update(b0, [i], y)
            in b1
        }
        let z: f64 = b[1i64]
        in z
    }";
    let range = format!("{text}\n{RANGE}");
    right(&range, &[floats(6), n(6)]);
    let ratio = |k: i64| {
        let mut program = parse(&range);
        let main = first(&program);
        let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
        let args = [floats(k as usize), n(k)];
        let plain = run(&program, main, &args).1.work as f64;
        run(&program, id, &[args[0].clone(), args[1].clone(), f(1.0)]).1.work as f64 / plain
    };
    let (few, many) = (ratio(32), ratio(512));
    assert!(many <= 1.2 * few, "{few} {many}");
    let names = |text: &str| {
        let mut program = parse(text);
        let f = first(&program);
        add_vjp(&mut program, f, &Config::default()).expect("supported");
        program.funs.iter().filter(|f| f.name.as_str().ends_with("_count")).count()
    };
    assert_eq!([names(&range), names(RANGE), names(CONSUMES), names(SUM)], [0, 1, 0, 0]);
}

/// A sum over calls with weights, as in an expansion: affine in what the calls give. An argument's cotangent is returned, that of
/// the array is accumulated.
const WEIGHTED: &str = "fun f(a: []f64, low: i64, high: i64, x: f64): f64 {
    let width: i64 = sub.i64(high, low)
    let leaf: bool = le.i64(width, 1i64)
    let r: f64 = if leaf {
        let e: f64 = a[low]
        let s0: f64 = mul.f64(e, x)
        in s0
    } else {
        let half: i64 = div.i64(width, 2i64)
        let middle: i64 = add.i64(low, half)
        let is: []i64 = iota(2i64)
        let parts: []f64 = map 2i64 [is] (i: i64) {
            let second: bool = eq.i64(i, 1i64)
            let l: i64 = select.i64(second, middle, low)
            let h: i64 = select.i64(second, high, middle)
            let y: f64 = sin.f64(x)
            let part: f64 = call f(a, l, h, y)
            let less: f64 = sub.f64(x, part)
            let weight: f64 = a[l]
            let w: f64 = mul.f64(less, weight)
            let chosen: f64 = select.f64(second, w, part)
            let d: f64 = div.f64(chosen, 3.0f64)
            in d
        }
        let sum: f64 = reduce 2i64 [0.0f64] [parts] (u: f64, v: f64) { let w1: f64 = add.f64(u, v) in w1 }
        let more: f64 = call f(a, low, middle, x)
        let total: f64 = add.f64(sum, more)
        in total
    }
    in r
}";

/// Names of the functions that a derivative adds.
fn functions(text: &str, config: &Config) -> Vec<String> {
    let mut program = parse(text);
    let f = first(&program);
    add_vjp(&mut program, f, config).expect("supported");
    program.funs.iter().map(|f| f.name.to_string()).collect()
}

/// Where the cotangents of results of calls do not depend on these results, and nowhere else.
#[test]
fn calls_of_affine_functions_are_reversed_where_they_run() {
    right(WEIGHTED, &[floats(5), n(0), n(5), f(0.7)]);
    right(WEIGHTED, &[floats(1), n(0), n(1), f(0.7)]);
    let made = |text: &str| functions(text, &Config::default()).iter().any(|f| f.ends_with("_now"));
    assert!(made(WEIGHTED));
    for text in [RANGE, MAPPED, COMB, THREES, SUM, HALVES, MUTUAL] {
        assert!(!made(text), "{text}");
    }
    let kept = Config { kept_calls: -1, ..Config::default() };
    assert!(!functions(WEIGHTED, &kept).iter().any(|f| f.ends_with("_now")));
    let twice = Config { at_once: false, ..Config::default() };
    assert!(!functions(WEIGHTED, &twice).iter().any(|f| f.ends_with("_now")));
}

/// The cotangents alone: no call runs twice, no tape is made, and the work is less than with tapes of all calls.
#[test]
fn a_gradient_alone_of_an_affine_function_has_no_tape() {
    let costs = |k: i64, kept: i64| {
        let call = "fun main(b: []f64, from: i64, to: i64, t: f64): f64 { let out: f64 = call f(b, from, to, t) in out }";
        let mut program = parse(&format!("{call}\n{WEIGHTED}"));
        let main = first(&program);
        let config = Config { kept_calls: kept, ..Config::default() };
        let fun = program.funs[main].clone();
        let lam = Lam { params: fun.params, body: fun.body };
        let derived = cotangents_with(&mut program, &lam, &[true; 4], &config).expect("supported");
        let id = common::add_function(&mut program, "gradient", derived);
        let args = [floats(k as usize), n(0), n(k), f(0.7)];
        let plain = run(&program, main, &args).1.work as f64;
        let counts = run(&program, id, &[&args[..], &[f(1.0)]].concat()).1;
        (counts.work as f64 / plain, counts.peak_bytes as f64)
    };
    let (few, many, all) = (costs(16, 1024), costs(256, 1024), costs(256, -1));
    assert!(many.0 <= 1.05 * few.0 && many.0 < 0.9 * all.0, "{few:?} {many:?} {all:?}");
    assert!(many.1 < 0.1 * all.1, "{many:?} {all:?}");
}

/// Function number `k` calls number `k - 1` twice.
fn doublings(depth: usize) -> String {
    let mut text = String::new();
    for k in (0..=depth).rev() {
        text += &match k {
            0 => "fun f0(x0: f64): f64 { let y0: f64 = sin.f64(x0) in y0 }\n".to_string(),
            _ => format!(
                "fun f{k}(x{k}: f64): f64 {{
                    let a{k}: f64 = call f{0}(x{k})
                    let b{k}: f64 = call f{0}(a{k})
                    let c{k}: f64 = mul.f64(a{k}, b{k})
                    in c{k}
                }}\n",
                k - 1
            ),
        };
    }
    text
}

#[test]
fn code_stays_linear_in_the_program() {
    let size = |depth: usize, config: &Config| {
        let mut program = parse(&doublings(depth));
        let f = first(&program);
        let g = add_vjp(&mut program, f, config).expect("supported");
        add_vjp(&mut program, g, config).expect("supported twice");
        let mut count = 0;
        for fun in program.funs.iter() {
            pullback_core::traverse::for_each_stm(&fun.body, &mut |_| count += 1);
        }
        count
    };
    let pairs_only = Config { max_inlined: 0, ..Config::default() };
    let (ten, forty) = (size(10, &pairs_only), size(40, &pairs_only));
    assert!(forty <= 5 * ten, "{ten} {forty}");
    assert!(size(40, &Config::default()) <= 200_000);
}

#[test]
fn pairs_and_inlining_agree() {
    let pairs_only = Config { max_inlined: 0, ..Config::default() };
    let text = doublings(3);
    assert_eq!(mismatch(&text, &[f(0.7)], &pairs_only), None);
    twice_with(&text, vec![f(0.7)], &pairs_only);
    // Sums, products and booleans as arguments and results; an array under a sum.
    let text = "fun f(x: f64, c: bool, a: []f64): f64, (#a f64 | #b []f64) {
        let t: (f64, bool) = tuple(x, c)
        let u: (#a f64 | #b []f64), v: (f64, bool) = call g(t, a)
        let w: f64 = proj(v, 0)
        let y: f64 = match u
            case (p: f64) { let q: f64 = mul.f64(p, w) in q }
            case (b: []f64) { let r: f64 = b[1i64] in r }
        in y, u
    }
    fun g(t1: (f64, bool), a1: []f64): (#a f64 | #b []f64), (f64, bool) {
        let x1: f64 = proj(t1, 0)
        let c1: bool = proj(t1, 1)
        let s: f64 = sin.f64(x1)
        let u0: (#a f64 | #b []f64) = if c1 {
            let u1: (#a f64 | #b []f64) = inject(0, s): (#a f64 | #b []f64)
            in u1
        } else {
            let u2: (#a f64 | #b []f64) = inject(1, a1): (#a f64 | #b []f64)
            in u2
        }
        let v1: (f64, bool) = tuple(s, c1)
        in u0, v1
    }";
    for c in [true, false] {
        let args = vec![f(0.7), Value::Scalar(pullback_prim::ScalarValue::Bool(c)), fs(&[1.0, 2.0])];
        assert_eq!(mismatch(text, &args, &pairs_only), None);
        twice_with(text, args, &pairs_only);
    }
}

/// Trees: their nodes hold numbers, sub-trees, and an array here and there.
const TREE: &str = "type tree = #leaf f64 | #node f64 tree tree | #many []f64
fun main(x: f64, a: []f64, k: i64): f64 {
    let t: tree = call grow(x, a, k)
    let y: f64 = call fold(t, x)
    let z: f64 = call fold(t, 1.0f64)
    let w: f64 = mul.f64(y, z)
    in w
}
fun grow(x1: f64, a1: []f64, k1: i64): tree {
    let done: bool = le.i64(k1, 0i64)
    let t1: tree = if done {
        let odd: bool = lt.i64(k1, 0i64)
        let t2: tree = if odd {
            let m: tree = inject(2, a1): tree
            in m
        } else {
            let l: tree = inject(0, x1): tree
            in l
        }
        in t2
    } else {
        let one: i64 = sub.i64(k1, 1i64)
        let two: i64 = sub.i64(k1, 2i64)
        let s: f64 = sin.f64(x1)
        let left: tree = call grow(s, a1, one)
        let c: f64 = cos.f64(x1)
        let right: tree = call grow(c, a1, two)
        let n: tree = inject(1, x1, left, right): tree
        in n
    }
    in t1
}
fun fold(t3: tree, x3: f64): f64 {
    let r: f64 = match t3
        case (v: f64) { let p: f64 = mul.f64(v, x3) in p }
        case (u: f64, left3: tree, right3: tree) {
            let f1: f64 = call fold(left3, x3)
            let f2: f64 = call fold(right3, u)
            let f3: f64 = mul.f64(f1, f2)
            let f4: f64 = add.f64(f3, u)
            in f4
        }
        case (b: []f64) { let e: f64 = b[1i64] let h: f64 = mul.f64(e, x3) in h }
    in r
}";

#[test]
fn trees() {
    for k in [0, -1, 1, 3] {
        right(TREE, &[f(0.7), fs(&[0.3, 0.9]), n(k)]);
        // The trees are in an inlined function.
        let outer =
            "fun outer(x9: f64, a9: []f64, k9: i64): f64 { let y9: f64 = call main(x9, a9, k9) in y9 }";
        let (types, funs) = TREE.split_at(TREE.find("fun").expect("a function"));
        right(&format!("{types}{outer}{funs}"), &[f(0.7), fs(&[0.3, 0.9]), n(k)]);
    }
}

#[test]
fn the_work_ratio_of_trees_is_flat() {
    let mut program = parse(TREE);
    let f0 = first(&program);
    let id = add_vjp(&mut program, f0, &Config::default()).expect("supported");
    let ratio = |k: i64| {
        let args = [f(0.7), fs(&[0.3, 0.9]), n(k)];
        let (_, plain) = run(&program, f0, &args);
        let (_, derived) = run(&program, id, &[args.to_vec(), vec![f(1.0)]].concat());
        derived.work as f64 / plain.work as f64
    };
    let ratios = [4, 8, 12].map(ratio);
    assert!(ratios[2] <= ratios[0] * 1.1 && ratios[2] <= 6.0, "{ratios:?}");
}

/// Padding of an entry that only the other arm has, below a sum, once became an array of length 0 (random program 1824).
#[test]
fn padding_below_a_sum_has_no_shape() {
    let text = "fun main(p0: []f64): f64 {
        let n0: i64 = size(p0, 0)
        let e: []f64 = replicate([0i64], 0.5f64)
        let u: []f64, v: []f64 = call helper(0i64, e, p0)
        let y: f64 = reduce n0 [0.0f64] [v] (x0: f64, x1: f64) { let x2: f64 = add.f64(x0, x1) in x2 }
        in y
    }
    fun helper(k: i64, a: []f64, b: []f64): []f64, []f64 {
        let done: bool = le.i64(k, 0i64)
        let r: []f64, s: []f64 = if done { in a, b } else {
            let rows: [][]f64 = map 1i64 [] () {
                let x: f64 = b[0i64]
                let c: []f64 = replicate([0i64], x)
                let d: []f64 = map 1i64 [c] (z: f64) { let z1: f64 = sin.f64(z) in z1 }
                in d
            }
            let g: []f64 = rows[2i64]
            let h: []f64 = g
            let t: []f64, w: []f64 = call helper(0i64, g, h)
            in t, w
        }
        in r, s
    }";
    right(text, &[fs(&[0.3])]);
}

#[test]
fn a_limit_in_a_function_called_from_a_map_is_that_of_a_call() {
    // The width of the map is a variable of the caller, which the function does not know.
    let text = "fun main(n: i64, a: []f64): []f64 {
        let y: []f64 = map n [a] (x: f64) { let z: f64 = call slow(x, 3i64) in z }
        in y
    }
    fun slow(x1: f64, k: i64): f64 {
        let done: bool = le.i64(k, 0i64)
        let r: f64 = if done { in x1 } else {
            let s: f64 = loop #[tape(limit(1000))] (s1: f64 = x1) for i: i64 < k { let t: f64 = sin.f64(s1) in t }
            let less: i64 = sub.i64(k, 1i64)
            let p: f64 = call slow(s, less)
            in p
        }
        in r
    }";
    right(text, &[n(4), floats(4)]);
}
