//! Conditions on counters as bounds of loops: against plain Rust that asks in every iteration, for all kinds of comparisons and
//! for numbers at the ends of their range; how many steps are left; and what must not become a bound.

use crate::common::counted::{branches, count, named};
use crate::common::{parse, results};
use pullback_core::{FunId, Program, Value};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::values::to_words;
use pullback_kernel::{lower, print};

/// Whether some loop has got bounds of its own.
fn is_narrowed((program, f): &(Program, FunId)) -> bool {
    !named(&lower(program, *f).expect("native").0, "bound").is_empty()
}

/// How the sides of a comparison are computed and called in core text, what they are, whether they bound `j`.
type Sides = (&'static str, &'static str, fn(i64, i64, i64) -> (i64, i64), bool);

const SIDES: [Sides; 9] = [
    ("", "j, i", |i, j, _| (j, i), true),
    ("let l: i64 = add.i64(i, 1i64) let r: i64 = sub.i64(j, 2i64)", "l, r", |i, j, _| (i + 1, j - 2), true),
    ("let l: i64 = add.i64(i, j)", "l, 3i64", |i, j, _| (i + j, 3), true),
    ("let s: i64 = sub.i64(i, j) let l: i64 = add.i64(s, 1i64)", "l, 1i64", |i, j, _| (i - j + 1, 1), true),
    ("", "j, k", |_, j, k| (j, k), true),
    ("let r: i64 = sub.i64(i, j)", "k, r", |i, j, k| (k, i - j), true),
    ("let s: i64 = add.i64(j, i) let l: i64 = sub.i64(s, 1i64)", "l, k", |i, j, k| (j + i - 1, k), true),
    // Twice the counter, and sums that may overflow: not bounds, but the same values.
    ("let l: i64 = add.i64(j, j)", "l, i", |i, j, _| (2 * j, i), false),
    ("let l: i64 = add.i64(j, k)", "l, i", |i, j, k| (j.wrapping_add(k), i), false),
];

#[test]
fn bounds_are_what_conditions_say() {
    let ks = [i64::MIN, i64::MIN + 1, -(1 << 62) - 1, -3, -1, 0, 1, 2, 3, 5, 1 << 62, i64::MAX - 1, i64::MAX];
    for (sides, names, of, bounds) in SIDES {
        for (op, holds) in
            [("lt", i64::lt as fn(&i64, &i64) -> bool), ("le", i64::le), ("eq", i64::eq), ("ne", i64::ne)]
        {
            for swapped in [false, true] {
                let (then, otherwise) = ("let t: i64 = add.i64(j, 7i64) in t", "in 0i64");
                let (then, otherwise) = if swapped { (otherwise, then) } else { (then, otherwise) };
                let text = format!(
                    "fun f(m: i64, n: i64, k: i64): []i64 {{
                        let is: []i64 = iota(m)
                        let js: []i64 = iota(n)
                        let out: []i64 = map m [is] (i: i64) {{
                            let sum: i64 = map_reduce_comm n [0i64] [js] (j: i64) {{
                                {sides}
                                let c: bool = {op}.i64({names})
                                let x: i64 = if c {{ {then} }} else {{ {otherwise} }}
                                in x
                            }} with (p: i64, q: i64) {{ let y: i64 = add.i64(p, q) in y }}
                            in sum
                        }}
                        in out }}"
                );
                let program = parse(&text);
                // All but one point is not an interval.
                let interval = if op == "ne" { swapped } else { op != "eq" || !swapped };
                assert_eq!(is_narrowed(&program), bounds && interval, "{text}");
                for (m, n) in [(0, 3), (1, 0), (2, 1), (4, 3), (3, 6)] {
                    for k in ks {
                        let sum = |i: i64| {
                            let here = |j: &i64| {
                                let (l, r) = of(i, *j, k);
                                holds(&l, &r) != swapped
                            };
                            (0..n).filter(here).map(|j| j + 7).sum::<i64>()
                        };
                        let expected = vec![Value::i64s(&(0..m).map(sum).collect::<Vec<_>>())];
                        for lanes in [0, 2] {
                            let args = [Value::i64(m), Value::i64(n), Value::i64(k)];
                            let found = results(&program, &args, 64, lanes);
                            assert_eq!(found, expected, "m {m}, n {n}, k {k}, {lanes} lanes\n{text}");
                        }
                    }
                }
            }
        }
    }
}

/// A sum of `then` or `otherwise`, from `neutral`.
fn sum_of(neutral: &str, then: &str, otherwise: &str) -> (Program, FunId) {
    parse(&format!(
        "fun f(n: i64, k: i64): f64 {{
            let js: []i64 = iota(n)
            let sum: f64 = map_reduce_comm n [{neutral}] [js] (j: i64) {{
                let c: bool = lt.i64(j, k)
                let x: f64 = if c {{ in {then} }} else {{ in {otherwise} }}
                in x
            }} with (p: f64, q: f64) {{ let y: f64 = add.f64(p, q) in y }}
            in sum }}"
    ))
}

/// A sum from -0 is +0 as soon as a +0 is taken in.
#[test]
fn zeros_keep_their_signs() {
    for neutral in [0.0f64, -0.0] {
        for then in [0.0f64, -0.0, 1.0] {
            for otherwise in [0.0f64, -0.0] {
                let text = |x: f64| format!("{x:?}f64");
                let program = sum_of(&text(neutral), &text(then), &text(otherwise));
                for (n, k) in [(0, 0), (3, 0), (3, 1), (3, 3)] {
                    let terms = (0..n).map(|j| if j < k { then } else { otherwise });
                    let expected: f64 = terms.fold(neutral, |s, x| s + x);
                    let found = results(&program, &[Value::i64(n), Value::i64(k)], 64, 0);
                    let found = found[0].floats()[0];
                    let same = found.to_bits() == expected.to_bits();
                    assert!(
                        same,
                        "{found:?}, not {expected:?}: from {neutral:?}, {then:?} or {otherwise:?}, {k} of {n}"
                    );
                }
            }
        }
    }
    assert!(is_narrowed(&sum_of("0.0f64", "1.0f64", "0.0f64")));
    assert!(!is_narrowed(&sum_of("-0.0f64", "1.0f64", "0.0f64")));
    assert!(
        !is_narrowed(&sum_of("0.0f64", "0.0f64", "1.0f64"))
            || !is_narrowed(&sum_of("0.0f64", "2.0f64", "1.0f64"))
    );
}

/// How many steps a run takes: the least limit under which it does not stop.
fn steps((program, f): &(Program, FunId), args: &[Value]) -> u64 {
    let (module, id) = lower(program, *f).expect("native");
    let fits = |steps: u64| {
        let mut memory = Memory::new(1 << 24);
        let mut words: Vec<Word> = Vec::new();
        for (p, value) in program.funs[*f].params.iter().zip(args) {
            to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
        }
        run(&module, id, &words, &mut memory, run::Options { steps, backwards: false }).is_ok()
    };
    let (mut low, mut high) = (0u64, 1 << 30);
    assert!(fits(high), "it runs");
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

/// A matrix times a vector; `term` has `i`, `j`, `x` and `y`.
fn product(term: &str) -> (Program, FunId) {
    parse(&format!(
        "fun f(a: [][]f64, v: []f64): []f64 {{
            let n: i64 = size(a, 0)
            let m: i64 = size(a, 1)
            let is: []i64 = iota(n)
            let js: []i64 = iota(m)
            let out: []f64 = map n [is, a] (i: i64, row: []f64) {{
                let sum: f64 = map_reduce_comm m [0.0f64] [js, row, v] (j: i64, x: f64, y: f64) {{ {term} }}
                    with (p: f64, q: f64) {{ let z: f64 = add.f64(p, q) in z }}
                in sum
            }}
            in out }}"
    ))
}

/// Of 64 x 64 products, 64 * 65 / 2 are left.
#[test]
fn a_triangular_product_takes_half_of_the_steps() {
    let dense = product("let t: f64 = mul.f64(x, y) in t");
    let triangular = product(
        "let c: bool = le.i64(j, i) let t: f64 = if c { let u: f64 = mul.f64(x, y) in u } else { in 0.0f64 } in t",
    );
    let numbers = |n: usize| (0..n).map(|k| (k % 13) as f64 - 6.0).collect::<Vec<f64>>();
    let (a, v) = (numbers(64 * 64), numbers(64));
    let args = [Value::f64_array(&[64, 64], &a), Value::f64_array(&[64], &v)];
    let expected: Vec<f64> = (0..64).map(|i| (0..=i).map(|j| a[i * 64 + j] * v[j]).sum()).collect();
    for lanes in [0, 2, 8] {
        assert_eq!(results(&triangular, &args, 64, lanes), vec![Value::f64_array(&[64], &expected)]);
    }
    // An iteration is two loads, a product, a sum, and at most three instructions that hand numbers on.
    let (all, half) = (steps(&dense, &args), steps(&triangular, &args));
    assert!(all > 4096 * 4 && half < 2080 * 7, "{half} of {all} steps");
    // The only condition that is left is in the bounds.
    let module = lower(&triangular.0, triangular.1).expect("native").0;
    assert!(is_narrowed(&triangular) && count(&module, branches) == 0, "{}", print(&module));
}

/// What stops the program does so whatever the condition says.
#[test]
fn what_may_stop_the_program_is_not_left_out() {
    let read = |outside: &str, inside: &str| {
        parse(&format!(
            "fun f(a: []f64, n: i64, k: i64): f64 {{
                let js: []i64 = iota(n)
                let sum: f64 = map_reduce_comm n [0.0f64] [js] (j: i64) {{
                    {outside}
                    let c: bool = lt.i64(j, k)
                    let x: f64 = if c {{ {inside} in y }} else {{ in 0.0f64 }}
                    in x
                }} with (p: f64, q: f64) {{ let z: f64 = add.f64(p, q) in z }}
                in sum }}"
        ))
    };
    let element = "let y: f64 = a[j]";
    let args = [Value::f64_array(&[2], &[3.0, 4.0]), Value::i64(5), Value::i64(2)];
    let stops = |program: &(Program, FunId)| {
        let (module, id) = lower(&program.0, program.1).expect("native");
        let mut memory = Memory::new(1 << 20);
        let mut words: Vec<Word> = Vec::new();
        for (p, value) in program.0.funs[program.1].params.iter().zip(&args) {
            to_words(&mut memory, value, &program.0.vars[*p].ty, &mut words).expect("arguments");
        }
        run(&module, id, &words, &mut memory, run::Options { steps: 1 << 20, backwards: false }).is_err()
    };
    let (outside, inside) = (read(element, ""), read("", element));
    assert!(stops(&outside) && !is_narrowed(&outside));
    assert!(!stops(&inside) && is_narrowed(&inside));
    assert_eq!(results(&inside, &args, 64, 0), vec![Value::f64(7.0)]);
}
