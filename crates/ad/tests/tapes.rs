//! What is stored for the reverse sweep, value by value, and the exact code of small derivatives.
//!
//! Both are derived by hand. The reverse sweep of a body may read: what is bound around the body, the inputs of a map, the
//! counter of a loop; all other names of the forward body that it mentions are its save list (`reads`, the list under
//! `Tape::Store`). The partials decide which names those are: sums and differences read nothing, a product reads the other
//! factor, `sin` its argument, `exp` and `tanh` their result, a quotient its denominator and its result. What remains on
//! the tape by default (`kept`) is the cheapest cut: storing a float costs 8, running a statement again 2 and its
//! operation (1, for `exp`, `tanh`, `sin` 8; reading an element 2), whole arrays are dearer than everything else, and
//! loops and operations of unknown extent never run again.

use crate::common::{add_vjp, first, mismatch, parse};
use pullback_ad::fast_chad::{Config, Tape};
use pullback_base::Symbol;
use pullback_base::index::IndexVec;
use pullback_core::print::print;
use pullback_core::prune::prune_body;
use pullback_core::rename::{Subst, substitute_body};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Exp, Program, Soac, Stm, Value, Var};

/// A program with the names on its tape: the construct that stores a value, then the value.
struct Case {
    name: &'static str,
    text: &'static str,
    reads: &'static [&'static str],
    kept: &'static [&'static str],
    args: fn() -> Vec<Value>,
}

fn f(x: f64) -> Value {
    Value::f64(x)
}
fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
fn n(x: i64) -> Value {
    Value::i64(x)
}
fn matrix() -> Value {
    Value::f64_array(&[3, 2], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
}

const T1: &str = "fun main(a: f64): f64 {
    let m: f64 = mul.f64(2.0f64, a)
    let b: (f64, f64) = tuple(a, m)
    let x: f64 = proj(b, 0)
    let y: f64 = proj(b, 1)
    let r: f64 = add.f64(x, y)
    in r
}";

const T2: &str = "fun main(k: i64, a: []f64): []f64 {
    let is: []i64 = iota(k)
    let y: []f64 = map k [is] (i: i64) {
        let z: f64 = a[i]
        let w: f64 = mul.f64(2.0f64, z)
        let s: f64 = add.f64(z, w)
        in s
    }
    in y
}";

const RECURRENCE: &str = "fun main(n: i64, a: []f64): f64 {
    let b: []f64 = loop (xs: []f64 = a) for i: i64 < n {
        let x: f64 = xs[i]
        let s: f64 = sin.f64(x)
        let j: i64 = add.i64(i, 1i64)
        let c: []f64 = update(xs, [j], s)
        in c
    }
    let r: f64 = b[n]
    in r
}";

const CASES: &[Case] = &[
    // Straight-line code keeps names alive; there is no tape.
    Case { name: "two lets", text: T1, reads: &[], kept: &[], args: || vec![f(0.3)] },
    // The index is an input of the map, 2 a constant, a sum reads nothing, so nobody reads `z`.
    Case {
        name: "a map that reads an array",
        text: T2,
        reads: &[],
        kept: &[],
        args: || vec![n(2), fs(&[0.3, 0.4, 0.5])],
    },
    // `update` reads its place `j`, `sin` reads `x`; not the array. `j` is the counter plus 1: cheaper to add (3) than to
    // store (8). Reading `xs[i]` again would need the old array, of which later iterations overwrite elements.
    Case {
        name: "an array filled in place",
        text: RECURRENCE,
        reads: &["loop: x", "loop: j"],
        kept: &["loop: x"],
        args: || vec![n(3), fs(&[0.3, 0.4, 0.5, 0.6])],
    },
    // Sums only: the reverse loop reads its counter.
    Case {
        name: "a sum",
        text: "fun main(n: i64, a: []f64): f64 {
            let y: f64 = loop (s: f64 = 0.0f64) for i: i64 < n {
                let x: f64 = a[i]
                let t: f64 = add.f64(s, x)
                in t
            }
            in y
        }",
        reads: &[],
        kept: &[],
        args: || vec![n(3), fs(&[0.3, 0.4, 0.5])],
    },
    // A product with a constant reads the constant, `d` the other factor `k`, which is the counter again (3).
    Case {
        name: "products with constants",
        text: "fun main(n: i64, x: f64, c: f64): f64 {
            let y: f64 = loop (s: f64 = x) for i: i64 < n {
                let t: f64 = mul.f64(3.0f64, s)
                let u: f64 = sub.f64(t, c)
                let k: f64 = convert.i64.f64(i)
                let d: f64 = mul.f64(k, u)
                let v: f64 = div.f64(d, 4.0f64)
                in v
            }
            in y
        }",
        reads: &["loop: k"],
        kept: &[],
        args: || vec![n(3), f(0.3), f(0.4)],
    },
    // `exp` reads its result. Running one again costs 10, more than storing 8.
    Case {
        name: "a chain of exponentials",
        text: "fun main(n: i64, a: []f64): []f64 {
            let ys: []f64 = map n [a] (x: f64) {
                let y: f64 = exp.f64(x)
                let z: f64 = exp.f64(y)
                let w: f64 = exp.f64(z)
                in w
            }
            in ys
        }",
        reads: &["map: y", "map: z", "map: w"],
        kept: &["map: y", "map: z", "map: w"],
        args: || vec![n(2), fs(&[-0.3, 0.1])],
    },
    // Each product reads its factor. From the input `x` each is one more multiplication (3).
    Case {
        name: "a chain of squares",
        text: "fun main(n: i64, a: []f64): []f64 {
            let ys: []f64 = map n [a] (x: f64) {
                let y: f64 = mul.f64(x, x)
                let z: f64 = mul.f64(y, y)
                let w: f64 = mul.f64(z, z)
                in w
            }
            in ys
        }",
        reads: &["map: y", "map: z"],
        kept: &[],
        args: || vec![n(2), fs(&[0.3, 0.9])],
    },
    // The exponential is stored, and the product is made from it again.
    Case {
        name: "an exponential, then squares",
        text: "fun main(n: i64, a: []f64): []f64 {
            let ys: []f64 = map n [a] (x: f64) {
                let y: f64 = exp.f64(x)
                let z: f64 = mul.f64(y, y)
                let w: f64 = mul.f64(z, z)
                in w
            }
            in ys
        }",
        reads: &["map: y", "map: z"],
        kept: &["map: y"],
        args: || vec![n(2), fs(&[0.3, 0.9])],
    },
    // A quotient reads its result and its denominator, which is outside. To divide again the old state would be needed
    // (8, and 3 for the division): storing the result costs 8.
    Case {
        name: "quotients",
        text: "fun main(n: i64, x: f64, c: f64): f64 {
            let y: f64 = loop (s: f64 = x) for i: i64 < n { let q: f64 = div.f64(s, c) in q }
            in y
        }",
        reads: &["loop: q"],
        kept: &["loop: q"],
        args: || vec![n(3), f(0.3), f(1.4)],
    },
    // The reverse of the branch tests `c` again; its first arm reads `u` (the square) and `s` (the sine), the second
    // nothing. The comparison is cheap given `s` (3), the sine is not (10).
    Case {
        name: "a branch",
        text: "fun main(n: i64, x: f64): f64 {
            let y: f64 = loop (s: f64 = x) for i: i64 < n {
                let c: bool = lt.f64(s, 0.4f64)
                let t: f64 = if c {
                    let u: f64 = sin.f64(s)
                    let v: f64 = mul.f64(u, u)
                    in v
                } else {
                    let w: f64 = sub.f64(s, 0.1f64)
                    in w
                }
                in t
            }
            in y
        }",
        reads: &["loop: c", "loop: s", "loop: if: u"],
        kept: &["loop: s", "loop: if: u"],
        args: || vec![n(3), f(0.5)],
    },
    // Only the inner loop has something to store; the state of the outer loop is the inner loop's first one.
    Case {
        name: "nested loops",
        text: "fun main(n: i64, x: f64): f64 {
            let y: f64 = loop (s: f64 = x) for i: i64 < n {
                let z: f64 = loop (q: f64 = s) for j: i64 < i { let t: f64 = sin.f64(q) in t }
                in z
            }
            in y
        }",
        reads: &["loop: loop: q"],
        kept: &["loop: loop: q"],
        args: || vec![n(4), f(0.5)],
    },
    // `sin` reads the sum `s`. The products are inside the sum, which reads nothing; their factors are an input (a row)
    // and an array from outside.
    Case {
        name: "a map of reductions",
        text: "fun main(n: i64, m: i64, a: [][]f64, x: []f64): []f64 {
            let ys: []f64 = map n [a] (row: []f64) {
                let ps: []f64 = map m [row, x] (p: f64, q: f64) { let r: f64 = mul.f64(p, q) in r }
                let s: f64 = reduce m [0.0f64] [ps] (u: f64, v: f64) { let w: f64 = add.f64(u, v) in w }
                let t: f64 = sin.f64(s)
                in t
            }
            in ys
        }",
        reads: &["map: s"],
        kept: &["map: s"],
        args: || vec![n(3), n(2), matrix(), fs(&[0.3, 0.9])],
    },
    // The reverse map of a step reads its inputs `x`, `h`, `c` again (so the loop keeps them), the gates `f` and `g` as
    // results of `tanh` and `f` as a factor, and the new state `h2` as a result of `tanh`. `c2`, `p`, `q`, `fc` are sums
    // and products of those: not read. `x` is a row of an array that stays: found again by its index.
    Case {
        name: "a recurrent network",
        text: "fun main(n: i64, k: i64, xs: [][]f64, u: []f64, w: []f64, h0: []f64, c0: []f64): []f64 {
            let hn: []f64, cn: []f64 = loop (h: []f64 = h0, c: []f64 = c0) for t: i64 < n {
                let x: []f64 = xs[t]
                let hs: []f64, cs: []f64 = map k [x, h, c, u, w] (xt: f64, ht: f64, ct: f64, ut: f64, wt: f64) {
                    let p: f64 = mul.f64(ut, xt)
                    let q: f64 = mul.f64(wt, ht)
                    let f: f64 = tanh.f64(p)
                    let g: f64 = tanh.f64(q)
                    let fc: f64 = mul.f64(f, ct)
                    let c2: f64 = add.f64(fc, g)
                    let h2: f64 = tanh.f64(c2)
                    in h2, c2
                }
                in hs, cs
            }
            in hn
        }",
        reads: &["loop: x", "loop: h", "loop: c", "loop: map: f", "loop: map: g", "loop: map: h2"],
        kept: &["loop: h", "loop: c", "loop: map: f", "loop: map: g", "loop: map: h2"],
        args: || {
            let pair = |a, b| fs(&[a, b]);
            vec![n(3), n(2), matrix(), pair(0.7, -0.2), pair(0.4, 0.8), pair(0.1, 0.2), pair(-0.3, 0.5)]
        },
    },
    // The condition of the loop is not read backwards: the number of iterations is known.
    Case {
        name: "a while loop",
        text: "fun main(x: f64): f64 {
            let y: f64 = loop (s: f64 = x) while { let c: bool = lt.f64(s, 9.0f64) in c } {
                let t: f64 = mul.f64(s, s)
                in t
            }
            in y
        }",
        reads: &["loop: s"],
        kept: &["loop: s"],
        args: || vec![f(1.5)],
    },
];

/// The values that the tape variables bound by a function's own statements hold.
fn stored(program: &Program, body: &Body) -> Vec<String> {
    let mut out = Vec::new();
    for (at, stm) in body.stms.iter().enumerate() {
        for (k, &v) in stm.pat.iter().enumerate().filter(|(_, v)| program.vars[**v].origin.is_tape()) {
            let read = body.stms[at + 1..].iter().any(|s| free_vars_exp(&s.exp).contains(&v));
            assert!(read, "nobody reads what {} holds\n{}", held(program, stm, k), print(program));
            out.push(held(program, stm, k));
        }
    }
    out
}

/// What result `k` of a statement holds.
fn held(program: &Program, stm: &Stm, k: usize) -> String {
    let inner = |body: &Body| body.result[k].var().map(|v| source(program, body, v));
    match &stm.exp {
        Exp::Loop(l) => format!("loop: {}", inner(&l.body).expect("a variable")),
        Exp::Soac(Soac::Map { lam, .. }) => format!("map: {}", inner(&lam.body).expect("a variable")),
        Exp::If(_, x, y) => {
            let filled = [x, y].into_iter().filter_map(inner).find(|name| name != "hole");
            format!("if: {}", filled.expect("an arm fills the slot"))
        }
        other => panic!("a tape made by {other:?}"),
    }
}

/// The name of a value, through boxes.
fn source(program: &Program, body: &Body, v: Var) -> String {
    let bound = body.stms.iter().find_map(|s| Some((s, s.pat.iter().position(|&p| p == v)?)));
    match bound {
        Some((Stm { exp: Exp::Inject(_, _, inside), .. }, _)) if program.vars[v].origin.is_tape() => {
            source(program, body, inside[0].var().expect("a variable"))
        }
        // Of a part of a larger array a copy is stored.
        Some((Stm { exp: Exp::Gather(Atom::Var(whole), _), .. }, _)) => source(program, body, *whole),
        Some((stm, k)) if program.vars[v].origin.is_tape() => held(program, stm, k),
        _ => program.vars[v].hint.to_string(),
    }
}

/// The program and its derivative, the last function.
fn derived(text: &str, config: &Config) -> Program {
    let mut program = parse(text);
    let f = first(&program);
    add_vjp(&mut program, f, config).expect("supported");
    program
}

/// Nothing is pruned here, so a value that is stored in vain is in the list.
fn tape(text: &str, tape: Tape) -> Vec<String> {
    let program = derived(text, &Config { tape, near: false, ..Config::default() });
    let mut names = stored(&program, &program.funs.iter().last().expect("a derivative").body);
    names.sort();
    names
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

#[test]
fn save_lists_hold_what_the_reverse_sweep_reads() {
    for case in CASES {
        assert_eq!(tape(case.text, Tape::Store), sorted(case.reads), "{}: what is read", case.name);
    }
}

#[test]
fn the_cut_keeps_what_is_dear_to_make_again() {
    for case in CASES {
        assert_eq!(tape(case.text, Tape::Cut), sorted(case.kept), "{}: what is kept", case.name);
    }
}

#[test]
fn gradients_with_these_tapes_are_right() {
    for case in CASES {
        for tape in [Tape::Store, Tape::Cut] {
            let wrong = mismatch(case.text, &(case.args)(), &Config { tape, ..Config::default() });
            assert_eq!(wrong, None, "{}", case.name);
        }
    }
}

/// Other names for the same value are replaced by it.
fn without_aliases(body: &mut Body) {
    let alias = |stm: &Stm| match (&stm.pat[..], &stm.exp) {
        ([v], Exp::Atom(a)) => Some((*v, *a)),
        _ => None,
    };
    while let Some((at, (v, a))) = body.stms.iter().enumerate().find_map(|(k, s)| Some((k, alias(s)?))) {
        body.stms.remove(at);
        substitute_body(body, &[(v, a)].into_iter().collect::<Subst>());
    }
    for stm in &mut body.stms {
        stm.exp.bodies_mut().into_iter().for_each(|scope| without_aliases(scope.body));
    }
}

/// The text of the last function of a program, in which all variables have the same name (and different numbers).
fn anonymous(mut program: Program) -> String {
    program.vars.iter_mut().for_each(|v| v.hint = Symbol::new("v"));
    let last = program.funs.iter().last().expect("a function").clone();
    program.funs = IndexVec::new();
    program.funs.push(last);
    print(&program)
}

/// The derivative of a program is this function, up to names.
fn code(text: &str, expected: &str) {
    let mut program = derived(text, &Config::default());
    let last = program.funs.ids().last().expect("a derivative");
    let mut body = std::mem::take(&mut program.funs[last].body);
    prune_body(&mut program, &mut body);
    without_aliases(&mut body);
    program.funs[last].body = body;
    let (found, expected) = (anonymous(program), anonymous(parse(expected)));
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

/// The pair exists in the forward sweep only by name; its cotangent is two floats. No scope, no tape, and the product with
/// the cotangent of 2 is not there.
#[test]
fn the_code_of_two_lets() {
    code(
        T1,
        "fun main_vjp(a: f64, d: f64): f64, f64 {
            let m: f64 = mul.f64(2.0f64, a)
            let r: f64 = add.f64(a, m)
            let u: f64 = mul.f64(2.0f64, d)
            let a_bar: f64 = add.f64(d, u)
            in r, a_bar
        }",
    );
}

/// Length, index, 2 and `z` are not stored: one accumulation per element, whose place is an input of the map.
#[test]
fn the_code_of_a_map_that_reads_an_array() {
    code(
        T2,
        "fun main_vjp(k: i64, a: []f64, ds: []f64): []f64, []f64 {
            let n: i64 = size(a, 0)
            let is: []i64 = iota(k)
            let y: []f64 = map k [is] (i: i64) {
                let z: f64 = a[i]
                let w: f64 = mul.f64(2.0f64, z)
                let s: f64 = add.f64(z, w)
                in s
            }
            let zeros: []f64 = replicate([n], 0.0f64)
            let a_bar: []f64 = withacc [zeros] (a_acc: acc []f64) {
                let nothing: []bool = map k [is, ds] (j: i64, d: f64) {
                    let t: f64 = mul.f64(2.0f64, d)
                    let u: f64 = add.f64(d, t)
                    let done: () = add_to(a_acc, [j], u)
                    in false
                }
                in
            }
            in y, a_bar
        }",
    );
}

/// One scalar per iteration is stored. An iteration backwards takes the cotangent at `i + 1`, leaves zero there, and adds at
/// `i`: a constant number of steps.
#[test]
fn the_code_of_an_array_filled_in_place() {
    code(
        RECURRENCE,
        "fun main_vjp(n: i64, a: []f64, d: f64): f64, []f64 {
            let b: []f64, tape: []f64 = loop (xs: []f64 = a) for i: i64 < n collect 1 {
                let x: f64 = xs[i]
                let s: f64 = sin.f64(x)
                let j: i64 = add.i64(i, 1i64)
                let c: []f64 = update(xs, [j], s)
                in c, x
            }
            let size: i64 = size(b, 0)
            let r: f64 = b[n]
            let zeros: []f64 = replicate([size], 0.0f64)
            let b_bar: []f64 = withacc [zeros] (b_acc: acc []f64) {
                let done: () = add_to(b_acc, [n], d)
                in
            }
            let a_bar: []f64 = loop (c_bar: []f64 = b_bar) for k: i64 < n {
                let last: i64 = sub.i64(n, 1i64)
                let i2: i64 = sub.i64(last, k)
                let x2: f64 = tape[i2]
                let j2: i64 = add.i64(i2, 1i64)
                let s_bar: f64 = c_bar[j2]
                let zeroed: []f64 = update(c_bar, [j2], 0.0f64)
                let slope: f64 = cos.f64(x2)
                let x_bar: f64 = mul.f64(slope, s_bar)
                let xs_bar: []f64 = withacc [zeroed] (xs_acc: acc []f64) {
                    let added: () = add_to(xs_acc, [i2], x_bar)
                    in
                }
                in xs_bar
            }
            in r, a_bar
        }",
    );
}
