//! Random source programs whose functions have reverse rules of their own, each the true derivative.
//!
//! A function is a few operations in a row on one or two numbers, on them for each element of an array, or on an array and a number.
//! Its rule is written down by reverse mode over that row. What the rule knows of the run comes to it in one of three ways: it is
//! computed again from the argument (`with_rule`), it is part of the result (`with_vjp`), or it is on the tape
//! (`with_vjp_tape`). Later functions call earlier ones, whose derivatives their rules ask for by `vjp`.
//!
//! The main function uses them in straight-line code, loops, branches, maps and under derivatives. The same program without the
//! rules means the same, so all derivatives of both, of every order and in every mode, are equal. Every number stays near 1,
//! for products are taken of sines; nothing has kinks but branches.

use crate::rng::Rng;
use std::fmt::Write;

/// A program, with and without rules.
#[derive(Clone, Debug)]
pub struct OwnRules {
    /// With rules.
    pub with: String,
    /// Without.
    pub without: String,
    /// How many functions are made with each of `with_rule`, `with_vjp` and `with_vjp_tape`.
    pub made: [usize; 3],
}

/// The program of a seed. Its function `main` takes two numbers and an array of numbers.
pub fn own_rules(seed: u64) -> OwnRules {
    let mut g = Generator { rng: Rng::new(seed), functions: Vec::new(), made: [0; 3] };
    let (mut with, mut without) = (String::new(), String::new());
    for k in 0..g.rng.range(2, 4) {
        let [rule, plain] = g.function(k);
        with += &rule;
        without += &plain;
    }
    let main = g.main();
    with += &main;
    without += &main;
    OwnRules { with, without, made: g.made }
}

/// What a function takes and gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number for so many numbers.
    Scalars(usize),
    /// The sum over an array of an operation on its elements.
    Sum,
    /// An array for an array and a number.
    Elements,
}

struct Generator {
    rng: Rng,
    /// The functions there are, by number.
    functions: Vec<Form>,
    made: [usize; 3],
}

/// An operation. Operands are numbers of values: those of the inputs, then those of the operations.
#[derive(Clone, Copy)]
enum Operation {
    Add(usize, usize),
    Sub(usize, usize),
    /// Of the sines.
    Mul(usize, usize),
    Scale(f64, usize),
    Sin(usize),
    /// `1 / (2 + x^2)`
    Bell(usize),
    /// A function of one number.
    Call(usize, usize),
}

/// Operations in a row; the last one is the result.
struct Row {
    inputs: usize,
    operations: Vec<Operation>,
}

impl Row {
    /// The name of a value: `x0`, `x1`, then `t0`, `t1`, ..
    fn name(&self, value: usize) -> String {
        if value < self.inputs { format!("x{value}") } else { format!("t{}", value - self.inputs) }
    }
    fn values(&self) -> usize {
        self.inputs + self.operations.len()
    }
    fn result(&self) -> String {
        self.name(self.values() - 1)
    }
    fn lets(&self) -> String {
        let n = |v: &usize| self.name(*v);
        let mut out = String::new();
        for (k, operation) in self.operations.iter().enumerate() {
            let text = match operation {
                Operation::Add(a, b) => format!("{} + {}", n(a), n(b)),
                Operation::Sub(a, b) => format!("{} - {}", n(a), n(b)),
                Operation::Mul(a, b) => format!("f64.sin {} * f64.sin {}", n(a), n(b)),
                Operation::Scale(c, a) => format!("({c:?}) * {}", n(a)),
                Operation::Sin(a) => format!("f64.sin {}", n(a)),
                Operation::Bell(a) => format!("1 / (2 + {} * {})", n(a), n(a)),
                Operation::Call(f, a) => format!("h{f} {}", n(a)),
            };
            let _ = write!(out, "let t{k} = {text} ");
        }
        out
    }
    /// Statements that bind the cotangents `d0`, `d1`, .. of the inputs from those of some values, which are given as text.
    fn reverse(&self, seeds: &[(usize, String)]) -> String {
        let mut bars: Vec<Vec<String>> = vec![Vec::new(); self.values()];
        seeds.iter().for_each(|(value, seed)| bars[*value].push(seed.clone()));
        let mut out = String::new();
        let sum = |terms: &[String]| if terms.is_empty() { "0f64".into() } else { terms.join(" + ") };
        for (k, operation) in self.operations.iter().enumerate().rev() {
            let at = self.inputs + k;
            let _ = write!(out, "let b{k} = {} ", sum(&bars[at]));
            let (b, t, n) = (format!("b{k}"), self.name(at), |v: &usize| self.name(*v));
            let mut add = |v: &usize, text: String| bars[*v].push(text);
            match operation {
                Operation::Add(x, y) => {
                    add(x, b.clone());
                    add(y, b);
                }
                Operation::Sub(x, y) => {
                    add(x, b.clone());
                    add(y, format!("(-{b})"));
                }
                Operation::Mul(x, y) => {
                    add(x, format!("{b} * f64.cos {} * f64.sin {}", n(x), n(y)));
                    add(y, format!("{b} * f64.sin {} * f64.cos {}", n(x), n(y)));
                }
                Operation::Scale(c, x) => add(x, format!("({c:?}) * {b}")),
                Operation::Sin(x) => add(x, format!("{b} * f64.cos {}", n(x))),
                Operation::Bell(x) => add(x, format!("{b} * (-2 * {} * {t} * {t})", n(x))),
                Operation::Call(f, x) => add(x, format!("vjp h{f} {} {b}", n(x))),
            }
        }
        for (k, terms) in bars[..self.inputs].iter().enumerate() {
            let _ = write!(out, "let d{k} = {} ", sum(terms));
        }
        out
    }
    /// The inputs or their cotangents as a pattern or a tuple.
    fn inputs(&self, letter: char) -> String {
        let names: Vec<String> = (0..self.inputs).map(|k| format!("{letter}{k}")).collect();
        tuple(&names)
    }
}

fn tuple(items: &[String]) -> String {
    match items {
        [one] => one.clone(),
        _ => format!("({})", items.join(", ")),
    }
}

impl Generator {
    fn row(&mut self, inputs: usize) -> Row {
        let mut row = Row { inputs, operations: Vec::new() };
        let callees: Vec<usize> =
            (0..self.functions.len()).filter(|k| self.functions[*k] == Form::Scalars(1)).collect();
        for k in 0..self.rng.range(2, 5) {
            // The inputs first, so that all have influence, then mostly what is new.
            let last = row.values() - 1;
            let a = if k < inputs { k } else { last };
            let b = self.rng.below(row.values());
            row.operations.push(match self.rng.below(8) {
                0 => Operation::Add(a, b),
                1 => Operation::Sub(b, a),
                2 | 3 => Operation::Mul(a, b),
                4 => Operation::Scale((self.rng.signed() * 8.0).round() / 8.0 + 0.25, a),
                5 => Operation::Bell(a),
                6 if !callees.is_empty() => Operation::Call(*self.rng.choose(&callees), a),
                _ => Operation::Sin(a),
            });
        }
        row
    }

    /// Definition number `k`, with and without its rule.
    fn function(&mut self, k: usize) -> [String; 2] {
        let form = match self.rng.below(6) {
            // One that others can call.
            _ if k == 0 => Form::Scalars(1),
            0 => Form::Sum,
            1 => Form::Elements,
            2 | 3 => Form::Scalars(2),
            _ => Form::Scalars(1),
        };
        let kind = self.rng.below(3);
        self.made[kind] += 1;
        let out = match form {
            Form::Scalars(inputs) => self.scalars(inputs, kind),
            Form::Sum => self.arrays(1, kind),
            Form::Elements => self.arrays(2, kind),
        };
        self.functions.push(form);
        let (parameter, result) = match form {
            Form::Scalars(1) => ("f64", "f64"),
            Form::Scalars(_) => ("(f64, f64)", "f64"),
            Form::Sum => ("[n]f64", "f64"),
            Form::Elements => ("([n]f64, f64)", "[n]f64"),
        };
        let size = if parameter.contains("[n]") { " [n]" } else { "" };
        out.map(|body| format!("def h{k}{size} (a: {parameter}) : {result} = {body}\n"))
    }

    fn scalars(&mut self, inputs: usize, kind: usize) -> [String; 2] {
        let row = self.row(inputs);
        let (x, d, lets, result) = (row.inputs('x'), row.inputs('d'), row.lets(), row.result());
        let last = row.values() - 1;
        let rule = match kind {
            0 => {
                let reverse = row.reverse(&[(last, "bar".into())]);
                format!("with_rule (\\{x} -> {lets}in {result}) (\\{x} bar -> {lets}{reverse}in {d}) a")
            }
            1 => {
                // All values are results, and have cotangents.
                let names: Vec<String> = (0..last).map(|v| row.name(v)).collect();
                let bars: Vec<String> = (0..last).map(|v| format!("bar{v}")).collect();
                let seeds: Vec<(usize, String)> =
                    bars.iter().cloned().chain(["bar".to_string()]).enumerate().collect();
                let (names, bars) = (tuple(&names), tuple(&bars));
                let reverse = row.reverse(&seeds);
                format!(
                    "(with_vjp (\\{x} -> {lets}in ({result}, {names})) (\\({result}, {names}) (bar, {bars}) -> {reverse}in {d}) a).0"
                )
            }
            _ => {
                let mut names: Vec<String> = (0..=last).map(|v| row.name(v)).collect();
                names.push("7i64".into());
                let tape = names.join(", ");
                names.pop();
                let pattern = format!("{}, _", names.join(", "));
                let reverse = row.reverse(&[(last, "bar".into())]);
                format!(
                    "with_vjp_tape (\\{x} -> {lets}in (({tape}), {result})) (\\(({pattern}), bar) -> {reverse}in {d}) a"
                )
            }
        };
        [rule, format!("let {x} = a {lets}in {result}")]
    }

    /// One input: the sum over an array. Two: an array, and a number that all elements share.
    fn arrays(&mut self, inputs: usize, kind: usize) -> [String; 2] {
        let row = self.row(inputs);
        let (lets, result) = (row.lets(), row.result());
        let last = row.values() - 1;
        let all = if inputs == 1 { "xs" } else { "(xs, x1)" };
        let values = format!("map (\\x0 -> {lets}in {result}) xs");
        let value = if inputs == 1 { format!("f64.sum ({values})") } else { values };
        // The derivatives of the operation at each element.
        let slopes =
            format!("map (\\x0 -> {lets}{}in {}) xs", row.reverse(&[(last, "1f64".into())]), row.inputs('d'));
        // What the rule makes of them.
        let bars = match inputs {
            1 => "map (\\d0 -> bar * d0) ds".to_string(),
            _ => "(map2 (\\b (d0, _) -> b * d0) bar ds, f64.sum (map2 (\\b (_, d1) -> b * d1) bar ds))"
                .to_string(),
        };
        let rule = match kind {
            0 => format!("with_rule (\\{all} -> {value}) (\\{all} bar -> let ds = {slopes} in {bars}) a"),
            1 => {
                // The argument is a part of the result.
                let inside = match inputs {
                    1 => format!("let ds = {slopes} in map2 (\\b p -> b + p) ({bars}) passed"),
                    _ => format!(
                        "let ds = {slopes} let (us, u) = {bars} let (ps, p) = passed in (map2 (+) us ps, u + p)"
                    ),
                };
                format!(
                    "(with_vjp (\\{all} -> ({value}, {all})) (\\(_, {all}) (bar, passed) -> {inside}) a).0"
                )
            }
            _ => format!("with_vjp_tape (\\{all} -> ({slopes}, {value})) (\\(ds, bar) -> {bars}) a"),
        };
        [rule, format!("let {all} = a in {value}")]
    }

    /// A call of one of the functions, whose value is a number: of this number, and of others in scope.
    fn call(&mut self, a: &str, scope: &[String]) -> String {
        let f = self.rng.below(self.functions.len());
        let b = self.rng.choose(scope).clone();
        match self.functions[f] {
            Form::Scalars(1) => format!("h{f} {a}"),
            Form::Scalars(_) => format!("h{f} ({a}, {b})"),
            Form::Sum => format!("h{f} (map (\\e -> e * {a}) zs)"),
            Form::Elements => format!("f64.sum (h{f} (map (\\e -> e + {b}) zs, {a}))"),
        }
    }
    fn main(&mut self) -> String {
        let mut out = String::from("entry main [n] (x: f64) (y: f64) (zs: [n]f64) : (f64, f64) =\n");
        let mut scope = vec!["x".to_string(), "y".to_string()];
        let statements = self.rng.range(2, 4);
        for k in 0..statements {
            let a = self.rng.choose(&scope).clone();
            let (one, other) = (self.call(&a, &scope), self.call(&a, &scope));
            let text = match self.rng.below(9) {
                0 => format!("f64.sin {a} * {one}"),
                1 => format!("if {a} > 0.1 then {one} else {other} * {a}"),
                2 => format!("loop s = {a} for _i < 2 do f64.sin (s + {})", self.call("s", &scope)),
                3 => format!("f64.sum (map (\\z -> z * {}) zs)", self.call("z", &scope)),
                4 => format!("vjp (\\q -> f64.sin ({})) {a} 1", self.call("q", &scope)),
                5 => format!("jvp (\\q -> f64.sin ({})) {a} 1", self.call("q", &scope)),
                _ => format!("{one} + f64.cos ({other})"),
            };
            let _ = writeln!(out, "  let v{k} = {text}");
            scope.push(format!("v{k}"));
        }
        let last = format!("v{}", statements - 1);
        let first = self.call(&last, &scope);
        let _ = writeln!(out, "  in ({first}, {last})");
        out
    }
}
