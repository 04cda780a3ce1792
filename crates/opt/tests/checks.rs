//! Checks of what can stop a program: nothing that stops is lost, and what cannot stop has none.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::RuntimeErrorKind;
use pullback_core::traverse::for_each_stm;
use pullback_core::{Array, Buffer, Exp, FunId, Program, Value, check::Rules, check::check, print, read};
use pullback_interp::core::{Options, run};
use pullback_opt::{
    CSE, Ctx, DEAD_ARGUMENT_ELIMINATION, FUSE, HOIST, PRUNE, Pass, SETTLE_CHECKS, SIMPLIFY, UNROLL,
    keep_all_checks, keep_checks,
};
use pullback_testkit::rng::Rng;
use pullback_testkit::{number, on_all_processors};
use std::fmt::Write;

fn parse(text: &str) -> Program {
    let mut sources = pullback_base::SourceMap::new();
    let file = sources.add("test.core", text);
    read(file, text).unwrap_or_else(|d| panic!("{}\n{text}", d.render(&sources)))
}

fn checks(program: &Program) -> usize {
    let mut count = 0;
    for fun in program.funs.iter() {
        for_each_stm(&fun.body, &mut |s| count += usize::from(matches!(s.exp, Exp::Check(..))));
    }
    count
}

/// Integer expressions, conditions and operations that may stop, in nested loops and branches.
struct Generator {
    rng: Rng,
    text: String,
    names: usize,
    /// Integers in scope.
    numbers: Vec<String>,
    indent: usize,
}

impl Generator {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * self.indent);
    }
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }
    fn operand(&mut self) -> String {
        if self.rng.chance(0.25) {
            format!("{}i64", self.rng.range(0, 4) as i64 - 1)
        } else {
            // The newest are the counters.
            let last = self.numbers.len() - 1;
            let k = if self.rng.chance(0.6) {
                last - self.rng.below(4.min(last + 1))
            } else {
                self.rng.below(last + 1)
            };
            self.numbers[k].clone()
        }
    }
    /// A number, perhaps computed here.
    fn number(&mut self) -> String {
        let (a, b) = (self.operand(), self.operand());
        let size = self.rng.choose(&["n", "m", "p"]).to_string();
        let text = match self.rng.below(12) {
            0 | 1 => format!("add.i64({a}, {b})"),
            2 => format!("sub.i64({a}, {b})"),
            3 => format!("mul.i64({a}, 2i64)"),
            4 => format!("max.i64({a}, 0i64)"),
            5 => format!("min.i64({a}, {b})"),
            6 => {
                let last = self.bound("i64", &format!("sub.i64({size}, 1i64)"));
                format!("min.i64({a}, {last})")
            }
            7 => format!("mod.i64({a}, {})", self.rng.choose(&["2i64", "3i64", &size])),
            8 => format!("div.i64({a}, {})", self.rng.choose(&["2i64", "3i64"])),
            9 => {
                let last = self.bound("i64", &format!("sub.i64({size}, 1i64)"));
                format!("sub.i64({last}, {a})")
            }
            _ => return a,
        };
        self.bound("i64", &text)
    }
    fn bound(&mut self, ty: &str, text: &str) -> String {
        let name = self.name();
        self.line(&format!("let {name}: {ty} = {text}"));
        if ty == "i64" {
            self.numbers.push(name.clone());
        }
        name
    }
    fn condition(&mut self) -> String {
        let (a, b) = (self.number(), self.number());
        let word = *self.rng.choose(&["lt", "le", "eq", "ne", "lt"]);
        let one = self.bound("bool", &format!("{word}.i64({a}, {b})"));
        match self.rng.below(4) {
            0 => self.bound("bool", &format!("not.bool({one})")),
            1 => {
                let size = self.rng.choose(&["n", "m", "p"]).to_string();
                let other = self.bound("bool", &format!("lt.i64({a}, {size})"));
                let word = *self.rng.choose(&["and", "or"]);
                self.bound("bool", &format!("{word}.bool({one}, {other})"))
            }
            _ => one,
        }
    }
    /// A number that may not exist.
    fn risky(&mut self) -> String {
        let (i, j) = (self.number(), self.number());
        match self.rng.below(16) {
            0..=3 => {
                let x = self.bound("f64", &format!("a[{i}]"));
                self.bound("i64", &format!("convert.f64.i64({x})"))
            }
            4 | 5 => {
                let x = self.bound("f64", &format!("b[{i}, {j}]"));
                self.bound("i64", &format!("convert.f64.i64({x})"))
            }
            6 => {
                let s = self.bound("[]f64", &format!("slice(a, {i}, {j}, 1i64)"));
                self.bound("i64", &format!("size({s}, 0)"))
            }
            7 => self.bound("i64", &format!("quot.i64({i}, {j})")),
            8 => {
                let s = self.bound("[]i64", &format!("iota({i})"));
                self.bound("i64", &format!("size({s}, 0)"))
            }
            9 => {
                let s = self.bound("[]f64", &format!("update(a, [{i}], 1.0f64)"));
                self.bound("i64", &format!("size({s}, 0)"))
            }
            10 => {
                let s = self.bound("[][]f64", &format!("reshape([{i}, {j}], 1, a)"));
                self.bound("i64", &format!("size({s}, 1)"))
            }
            11 => self.bound("i64", &format!("is[{i}]")),
            // Shapes that may not agree.
            12 => {
                let rows = self.bound("[][]f64", &format!("reshape([{i}, {j}], 1, a)"));
                let both = self.bound("[][]f64", &format!("concat(b, {rows})"));
                self.bound("i64", &format!("size({both}, 0)"))
            }
            13 => {
                let rows = self.bound("[][]f64", &format!("reshape([{i}, {j}], 1, a)"));
                let count = self.bound("i64", &format!("size({rows}, 0)"));
                let places = self.bound("[]i64", &format!("iota({count})"));
                let all = self.bound("[][]f64", &format!("scatter({count}, b, {places}, {rows})"));
                self.bound("i64", &format!("size({all}, 0)"))
            }
            14 => {
                let row = self.bound("[]f64", &format!("slice(a, {i}, {j}, 1i64)"));
                let all = self.bound("[][]f64", &format!("update(b, [0i64], {row})"));
                self.bound("i64", &format!("size({all}, 0)"))
            }
            _ => {
                let row = self.bound("[]f64", &format!("slice(a, 0i64, {i}, 1i64)"));
                let last = self.bound("[]f64", &format!("update_slice(a, 0i64, {j}, 1i64, {row})"));
                let rows = self.bound("[][]f64", &format!("array({row}, {last}): []f64"));
                self.bound("i64", &format!("size({rows}, 0)"))
            }
        }
    }
    /// Statements, and a number that depends on some of them.
    fn body(&mut self, depth: usize) -> String {
        let scope = self.numbers.len();
        let mut results = vec!["0i64".to_string()];
        for _ in 0..self.rng.range(1, 3) {
            let found = match self.rng.below(5) {
                0 if depth > 0 => self.branch(depth),
                1 if depth > 0 => self.counted(depth),
                2 if depth > 0 => self.mapped(depth),
                _ => self.risky(),
            };
            // Often nobody needs it.
            if self.rng.chance(0.4) {
                results.push(found);
            }
        }
        let mut sum = results[0].clone();
        for r in &results[1..] {
            sum = self.bound("i64", &format!("add.i64({sum}, {r})"));
        }
        self.numbers.truncate(scope);
        sum
    }
    fn inner(&mut self, depth: usize) {
        self.indent += 1;
        let result = self.body(depth - 1);
        self.line(&format!("in {result}"));
        self.indent -= 1;
    }
    fn branch(&mut self, depth: usize) -> String {
        let (c, name) = (self.condition(), self.name());
        self.line(&format!("let {name}: i64 = if {c} {{"));
        self.inner(depth);
        self.line("} else {");
        self.inner(depth);
        self.line("}");
        self.numbers.push(name.clone());
        name
    }
    fn counted(&mut self, depth: usize) -> String {
        let bound = self.bound_of_loop();
        let (name, state, i) = (self.name(), self.name(), self.name());
        self.line(&format!("let {name}: i64 = loop ({state}: i64 = 0i64) for {i}: i64 < {bound} {{"));
        let scope = self.numbers.len();
        self.numbers.push(i);
        self.indent += 1;
        let result = self.body(depth - 1);
        let next = self.name();
        self.line(&format!("let {next}: i64 = add.i64({state}, {result})"));
        self.line(&format!("in {next}"));
        self.indent -= 1;
        self.line("}");
        self.numbers.truncate(scope);
        self.numbers.push(name.clone());
        name
    }
    fn mapped(&mut self, depth: usize) -> String {
        let (name, x) = (self.name(), self.name());
        let (width, array) = if self.rng.chance(0.7) {
            let size = self.rng.choose(&["n", "m", "p"]).to_string();
            let array = self.bound("[]i64", &format!("iota({size})"));
            (size, array)
        } else {
            ("q".into(), "is".into())
        };
        self.line(&format!("let {name}: []i64 = map {width} [{array}] ({x}: i64) {{"));
        let scope = self.numbers.len();
        self.numbers.push(x);
        self.inner(depth);
        self.line("}");
        self.numbers.truncate(scope);
        self.bound("i64", &format!("size({name}, 0)"))
    }
    fn bound_of_loop(&mut self) -> String {
        let size = self.rng.choose(&["n", "m", "p", "k"]).to_string();
        match self.rng.below(4) {
            0 => self.bound("i64", &format!("sub.i64({size}, 1i64)")),
            1 => self.bound("i64", &format!("add.i64({size}, 1i64)")),
            _ => size,
        }
    }
}

fn program(seed: u64) -> String {
    let numbers = ["n", "m", "p", "q", "k", "l"].map(str::to_string).to_vec();
    let mut g = Generator { rng: Rng::new(seed), text: String::new(), names: 0, numbers, indent: 1 };
    g.text += "fun f(a: []f64, b: [][]f64, is: []i64, k: i64, l: i64): i64 {\n";
    for text in ["n: i64 = size(a, 0)", "m: i64 = size(b, 0)", "p: i64 = size(b, 1)", "q: i64 = size(is, 0)"]
    {
        g.line(&format!("let {text}"));
    }
    let result = g.body(3);
    g.line(&format!("in {result}"));
    g.text + "}\n"
}

fn arguments(rng: &mut Rng) -> Vec<Value> {
    let (n, m, p, q) = (rng.below(4), rng.range(1, 3), rng.range(1, 3), rng.below(4));
    let array = |shape: Vec<usize>| {
        let count = shape.iter().product();
        Value::Array(Array::new(shape, Buffer::F64((0..count).map(|k| k as f64).collect())))
    };
    let mut integer = || rng.range(0, 6) as i64 - 2;
    let is: Vec<i64> = (0..q).map(|_| integer()).collect();
    vec![array(vec![n]), array(vec![m, p]), Value::i64s(&is), Value::i64(integer()), Value::i64(integer())]
}

fn end(program: &Program, args: &[Value]) -> Result<Vec<Value>, RuntimeErrorKind> {
    let f = program.funs.ids().next().unwrap();
    run(program, f, args.to_vec(), &Options::default()).map(|o| o.results).map_err(|e| e.kind)
}

/// Programs with all checks, through passes, end as the program does as it is written.
#[test]
fn no_error_is_lost() {
    let passes: [&Pass; 16] = [
        &SIMPLIFY,
        &UNROLL,
        &CSE,
        &HOIST,
        &CSE,
        &SIMPLIFY,
        &SETTLE_CHECKS,
        &PRUNE,
        &FUSE,
        &SIMPLIFY,
        &HOIST,
        &CSE,
        &DEAD_ARGUMENT_ELIMINATION,
        &PRUNE,
        &SETTLE_CHECKS,
        &PRUNE,
    ];
    let (first, count) = (number("SEED", 0), number("COUNT", 400));
    let one = |seed: u64| {
        let text = program(seed);
        let plain = parse(&text);
        check(&plain, Rules::NO_AD).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let mut kept = plain.clone();
        keep_all_checks(&mut kept);
        let all = checks(&kept);
        let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
        for pass in passes {
            (pass.run)(&mut kept, &ctx);
            check(&kept, Rules::NO_AD).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}", pass.name));
        }
        let mut rng = Rng::new(seed ^ 77);
        let (mut stopped, mut ended) = (0, 0);
        for _ in 0..40 {
            let args = arguments(&mut rng);
            let (expected, found) = (end(&plain, &args), end(&kept, &args));
            // (Where several things stop, another one may be met first.)
            let is_same = match (&expected, &found) {
                (Ok(a), Ok(b)) => a == b,
                (a, b) => a.is_err() == b.is_err(),
            };
            assert!(
                is_same,
                "seed {seed}: {expected:?}, then {found:?} at {args:?}\n{text}\n{}",
                print(&kept)
            );
            *(if expected.is_err() { &mut stopped } else { &mut ended }) += 1;
        }
        (all, checks(&kept), stopped, ended)
    };
    let all = on_all_processors(first..first + count, one);
    let sum = all.iter().fold((0, 0, 0, 0), |s, x| (s.0 + x.0, s.1 + x.1, s.2 + x.2, s.3 + x.3));
    println!("checks, checks that stay, runs that stop, runs that do not: {sum:?}");
    let (made, stay, stopped, ended) = sum;
    assert!(stay * 10 < made * 8 && stay > 0, "{made} checks, {stay} of them stay");
    assert!(stopped.min(ended) as u64 > 3 * count, "{stopped} runs stop, {ended} do not");
}

/// So many checks are left in a program with this body.
fn left(body: &str) -> usize {
    let text = format!(
        "fun f(a: []f64, b: [][]f64, k: i64): f64 {{
            let n: i64 = size(a, 0)
            let m: i64 = size(b, 0)
            let p: i64 = size(b, 1)
            {body}
        }}"
    );
    let mut program = parse(&text);
    keep_all_checks(&mut program);
    let ctx = Ctx { derivatives_done: false, ..Ctx::default() };
    for pass in [&SIMPLIFY, &CSE, &SIMPLIFY, &SETTLE_CHECKS, &PRUNE] {
        (pass.run)(&mut program, &ctx);
    }
    checks(&program)
}

fn counted(bound: &str, body: &str) -> String {
    format!(
        "let r: f64 = loop (s: f64 = 0.0f64) for i: i64 < {bound} {{ {body} let t: f64 = add.f64(s, x) in t }}
         in r"
    )
}

#[test]
fn what_is_known_needs_no_check() {
    // A counter, moved inwards, mirrored, clamped, in steps, and where a condition says so.
    assert_eq!(left(&counted("n", "let x: f64 = a[i]")), 0);
    assert_eq!(
        left(&counted("n", "let l: i64 = sub.i64(n, 1i64) let j: i64 = sub.i64(l, i) let x: f64 = a[j]")),
        0
    );
    let less = "let l: i64 = sub.i64(n, 1i64)";
    let shifted = counted("l", "let j: i64 = add.i64(i, 1i64) let x: f64 = a[j]");
    assert_eq!(left(&format!("{less} {shifted}")), 0);
    assert_eq!(
        left(&counted(
            "m",
            "let j: i64 = min.i64(i, 0i64) let h: i64 = max.i64(j, 0i64) let x: f64 = b[i, h]"
        )),
        1
    );
    let guarded = "let c: bool = lt.i64(0i64, i)
        let x: f64 = if c { let j: i64 = sub.i64(i, 1i64) let y: f64 = a[j] in y } else { in 0.0f64 }";
    assert_eq!(left(&counted("n", guarded)), 0);
    let border = "let l: i64 = sub.i64(n, 1i64) let c: bool = eq.i64(i, 0i64) let d: bool = eq.i64(i, l)
        let e: bool = or.bool(c, d)
        let x: f64 = if e { in 0.0f64 } else {
            let j: i64 = sub.i64(i, 1i64) let h: i64 = add.i64(i, 1i64)
            let y: f64 = a[j] let z: f64 = a[h] let w: f64 = add.f64(y, z) in w }";
    assert_eq!(left(&counted("n", border)), 0);
    let ring = "let j: i64 = add.i64(i, 1i64) let h: i64 = mod.i64(j, n) let x: f64 = a[h]";
    assert_eq!(left(&counted("n", ring)), 0);
    let half = "let j: i64 = div.i64(i, 2i64) let x: f64 = a[j]";
    assert_eq!(left(&counted("n", half)), 0);
    // A check says what holds after it.
    let twice = "let j: i64 = add.i64(i, k) let y: f64 = a[j] let h: i64 = sub.i64(j, 0i64) let z: f64 = a[h]
        let x: f64 = add.f64(y, z)";
    assert_eq!(left(&counted("n", twice)), 1);
}

#[test]
fn what_is_not_known_is_checked() {
    assert_eq!(left(&counted("k", "let x: f64 = a[i]")), 1);
    assert_eq!(left(&counted("n", "let j: i64 = add.i64(i, 1i64) let x: f64 = a[j]")), 1);
    assert_eq!(left(&counted("m", "let x: f64 = a[i]")), 1);
    assert_eq!(left(&counted("n", "let j: i64 = sub.i64(i, 1i64) let x: f64 = a[j]")), 1);
    let wrong_side = "let c: bool = lt.i64(0i64, i)
        let x: f64 = if c { in 0.0f64 } else { let j: i64 = sub.i64(i, 1i64) let y: f64 = a[j] in y }";
    assert_eq!(left(&counted("n", wrong_side)), 1);
}

/// Only what is differentiated has checks, and what it calls.
#[test]
fn checks_are_kept_in_differentiated_functions() {
    let text = "fun g(x: f64, i: i64, d: i64): f64 {
            let c: bool = le.i64(d, 0i64)
            let y: f64 = if c { in x } else {
                let e: i64 = sub.i64(d, 1i64)
                let q: i64 = quot.i64(d, i)
                let z: f64 = call g(x, i, e)
                in z
            }
            in y
        }
        fun h(a: []f64, i: i64): f64 { let b: f64 = a[i] in b }
        fun f(a: []f64, i: i64): f64, f64 {
            let here: f64 = a[i]
            let u: f64, u_bar: f64 = vjp [here] [1.0f64] (x: f64) {
                let there: f64 = a[i]
                let v: f64 = call g(x, i, 2i64)
                in v
            }
            in u, u_bar
        }";
    let mut program = parse(text);
    keep_checks(&mut program, &Ctx::default());
    let of = |k: usize| {
        let mut count = 0;
        let id: FunId = program.funs.ids().nth(k).unwrap();
        for_each_stm(&program.funs[id].body, &mut |s| count += usize::from(matches!(s.exp, Exp::Check(..))));
        count
    };
    assert_eq!([of(0), of(1), of(2)], [1, 0, 1]);
}
