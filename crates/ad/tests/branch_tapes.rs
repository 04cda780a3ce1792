//! Whole arrays that only a branch reads: the bytes on the tape follow how often the branch is taken, not how often it is
//! reached (program CE13 of the Fast CHAD notes). Iterations below `taken` take the branch.

use crate::common::{add_vjp, first, mismatch, parse, run};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;

/// Iterations that reach the branch, and elements of the array that it reads.
const REACHED: usize = 40;
const SIZE: usize = 100;

/// Bytes per iteration without the branch: the place, scalars and empty slots of boxes, a row of a box with its reference.
const PER_ITERATION: u64 = 200;
/// An array on the tape is in a box (16 bytes) to which an element of the tape (16) refers.
const ARRAY: u64 = 8 * SIZE as u64 + 32;

fn floats(n: usize) -> Value {
    Value::f64s(&(0..n).map(|i| 0.1 + (i as f64 * 0.37).sin() * 0.5).collect::<Vec<f64>>())
}

fn args(taken: usize) -> Vec<Value> {
    let size = |k: usize| Value::i64(k as i64);
    vec![size(REACHED), size(SIZE), size(taken), floats(SIZE)]
}

/// The most bytes on tapes while the gradient is computed.
fn tape_bytes(text: &str, taken: usize) -> u64 {
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    let all = [args(taken), vec![Value::f64(1.0)]].concat();
    run(&program, id, &all).1.peak_tape_bytes
}

/// The gradient is right, and what it stores is `arrays` arrays for each time the branch is taken.
fn follows(name: &str, text: &str, arrays: u64) {
    for taken in [0, 3, REACHED] {
        assert_eq!(mismatch(text, &args(taken), &Config::default()), None, "{name}, taken {taken} times");
    }
    let none = tape_bytes(text, 0);
    assert!(none <= REACHED as u64 * PER_ITERATION, "{name}: {none} bytes although it is never taken");
    for taken in [1, 2, 4, 8, 16, REACHED] {
        let bytes = tape_bytes(text, taken) - none;
        let wanted = taken as u64 * arrays * ARRAY;
        let slack = wanted / 10;
        assert!(
            (wanted - slack..=wanted + slack).contains(&bytes),
            "{name}, taken {taken} times: {bytes} bytes, not about {wanted}"
        );
    }
}

/// The sum of squares of `xs`, as `r`: its reverse reads `xs` as a whole.
fn squares(xs: &str) -> String {
    format!(
        "let q: []f64 = map m [{xs}] (z: f64) {{ let w: f64 = mul.f64(z, z) in w }}
        let r: f64 = reduce m [0.0f64] [q] (g: f64, h: f64) {{ let k: f64 = add.f64(g, h) in k }}"
    )
}

#[test]
fn an_array_that_the_loop_changes_in_place() {
    let text = format!(
        "fun f(n: i64, m: i64, taken: i64, a: []f64): f64 {{
            let total: f64, last: []f64 = loop (s: f64 = 0.0f64, c: []f64 = a) for i: i64 < n {{
                let x: f64 = c[i]
                let y: f64 = sin.f64(x)
                let d: []f64 = update(c, [i], y)
                let rare: bool = lt.i64(i, taken)
                let t: f64 = if rare {{ {} in r }} else {{ in y }}
                let u: f64 = add.f64(s, t)
                in u, d
            }}
            let e: f64 = last[0i64]
            let v: f64 = add.f64(total, e)
            in v
        }}",
        squares("d")
    );
    follows("changed in place", &text, 1);
}

#[test]
fn an_array_that_each_iteration_makes() {
    let text = format!(
        "fun f(n: i64, m: i64, taken: i64, a: []f64): f64 {{
            let total: f64 = loop (s: f64 = 0.5f64) for i: i64 < n {{
                let d: []f64 = map m [a] (x: f64) {{ let o: f64 = add.f64(x, s) in o }}
                let rare: bool = lt.i64(i, taken)
                let t: f64 = if rare {{ {} in r }} else {{ let p: f64 = d[0i64] in p }}
                let u: f64 = sin.f64(t)
                in u
            }}
            in total
        }}",
        squares("d")
    );
    follows("made by each iteration", &text, 1);
}

#[test]
fn an_array_of_the_function_of_a_map() {
    let text = format!(
        "fun f(n: i64, m: i64, taken: i64, a: []f64): f64 {{
            let is: []i64 = iota(n)
            let ts: []f64 = map n [is] (i: i64) {{
                let f: f64 = convert.i64.f64(i)
                let d: []f64 = scan m [0.0f64] [a] (x: f64, y: f64) {{ let o: f64 = add.f64(x, y) in o }}
                let rare: bool = lt.i64(i, taken)
                let t: f64 = if rare {{ {} in r }} else {{ let p: f64 = d[0i64] in p }}
                let u: f64 = mul.f64(t, f)
                in u
            }}
            let total: f64 = reduce n [0.0f64] [ts] (p2: f64, q2: f64) {{ let r2: f64 = add.f64(p2, q2) in r2 }}
            in total
        }}",
        squares("d")
    );
    follows("in a map", &text, 1);
}

#[test]
fn an_array_that_two_nested_branches_read() {
    let text = format!(
        "fun f(n: i64, m: i64, taken: i64, a: []f64): f64 {{
            let total: f64, last: []f64 = loop (s: f64 = 0.5f64, c: []f64 = a) for i: i64 < n {{
                let d: []f64 = update(c, [i], s)
                let rare: bool = lt.i64(i, taken)
                let t: f64 = if rare {{
                    let often: bool = lt.f64(s, 1000.0f64)
                    let t2: f64 = if often {{ {} in r }} else {{ in s }}
                    in t2
                }} else {{ let p: f64 = d[0i64] in p }}
                let u: f64 = sin.f64(t)
                in u, d
            }}
            in total
        }}",
        squares("d")
    );
    follows("nested branches", &text, 1);
}

#[test]
fn what_an_arm_makes_itself() {
    let text = format!(
        "fun f(n: i64, m: i64, taken: i64, a: []f64): f64 {{
            let total: f64 = loop (s: f64 = 0.5f64) for i: i64 < n {{
                let rare: bool = lt.i64(i, taken)
                let choice: (#none | #some f64) = if rare {{
                    let y: (#none | #some f64) = inject(1, s): (#none | #some f64) in y
                }} else {{
                    let y2: (#none | #some f64) = inject(0): (#none | #some f64) in y2
                }}
                let t: f64 = match choice
                    case () {{ in s }}
                    case (p: f64) {{
                        let d: []f64 = map m [a] (x: f64) {{ let e: f64 = mul.f64(x, p) let o: f64 = exp.f64(e) in o }}
                        {}
                        in r
                    }}
                let u: f64 = sin.f64(t)
                in u
            }}
            in total
        }}",
        squares("d")
    );
    // The sum of squares reads `d`, which is also the result that `exp` reads; the map stores it for that.
    follows("in an arm of a match", &text, 2);
}

/// Only one arm is taken: what the arms save shares results of the forward branch, as far as the types agree.
#[test]
fn arms_share_slots() {
    let text = "fun f(c: bool, m: i64, a: []f64): f64 {
        let t: f64 = if c {
            let q: []f64 = map m [a] (z: f64) { let w: f64 = exp.f64(z) in w }
            let r: f64 = reduce m [0.0f64] [q] (g: f64, h: f64) { let k: f64 = add.f64(g, h) in k }
            in r
        } else {
            let q2: []f64 = map m [a] (z2: f64) { let w2: f64 = sqrt.f64(z2) in w2 }
            let r2: f64 = reduce m [0.0f64] [q2] (g2: f64, h2: f64) { let k2: f64 = add.f64(g2, h2) in k2 }
            let e2: f64 = exp.f64(r2)
            in e2
        }
        in t
    }";
    let xs = Value::f64s(&[0.3, 1.5, 2.0]);
    for c in [true, false] {
        let all = [Value::Scalar(pullback_prim::ScalarValue::Bool(c)), Value::i64(3), xs.clone()];
        assert_eq!(mismatch(text, &all, &Config::default()), None, "arm {c}");
    }
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    let branches = program.funs[id].body.stms.iter().filter(|s| matches!(s.exp, pullback_core::Exp::If(..)));
    let tapes = branches.flat_map(|s| &s.pat).map(|v| &program.vars[*v]).filter(|v| v.origin.is_tape());
    let ranks: Vec<usize> = tapes.map(|v| v.ty.rank()).collect();
    // The array that `exp` or `sqrt` made, and the number that the second arm's `exp` made.
    assert_eq!(ranks, [1, 0]);
}
