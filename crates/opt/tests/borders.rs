//! Comparisons at borders, all of them: counters, sizes and numbers, each a few elements further or back, in axes of all short
//! lengths. What `simplify` knows of a comparison, and the conditions that `guard_elimination` leaves out, change no value.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use crate::common::load;
use pullback_core::{FunId, Program, Rules, Value, check, print};
use pullback_interp::core::{Options, run};
use pullback_opt::{Ctx, GUARD_ELIMINATION, PRUNE, SIMPLIFY};
use std::fmt::Write;

const LENGTHS: [i64; 5] = [0, 1, 2, 3, 5];
const OPS: [&str; 4] = ["lt", "le", "eq", "ne"];

/// The results for an axis of this length.
fn values(program: &Program, n: i64) -> Vec<Value> {
    let id: FunId = program.funs.ids().next().unwrap();
    run(program, id, vec![Value::i64(n)], &Options::default()).unwrap().results
}

/// The things that are compared, by name: statements that bind them, and the name of the last.
fn things() -> Vec<(String, String)> {
    let mut out = Vec::new();
    for base in ["i", "n"] {
        out.push((String::new(), base.to_string()));
        for c in [-2, -1, 1, 2] {
            let name = format!("{base}{}{}", if c < 0 { "m" } else { "p" }, i64::abs(c));
            let how = if c < 0 {
                format!("sub.i64({base}, {}i64)", -c)
            } else {
                format!("add.i64({base}, {c}i64)")
            };
            out.push((format!("let {name}: i64 = {how}\n"), name));
        }
    }
    out.extend([-1, 0, 1, 2].map(|c| (String::new(), format!("{c}i64"))));
    out
}

/// A size that is a parameter, or that the text states.
fn sizes() -> impl Iterator<Item = Option<i64>> {
    std::iter::once(None).chain(LENGTHS.map(Some))
}

/// How the text makes the size `n` of the parameter `k`.
fn stated(size: Option<i64>) -> String {
    let n = size.map_or("k".to_string(), |n| format!("{n}i64"));
    format!("let n: i64 = add.i64({n}, 0i64)\nlet is: []i64 = iota(n)\n")
}

/// The programs have the same values for all lengths that the size allows.
fn compare(before: &Program, after: &Program, size: Option<i64>, what: &str) {
    check(after, Rules::SURFACE).unwrap();
    for n in LENGTHS.into_iter().filter(|n| size.is_none_or(|size| size == *n)) {
        assert!(values(before, n) == values(after, n), "{n} elements, {what}\n{}", print(after));
    }
}

#[test]
fn what_is_known_of_comparisons_is_so() {
    let things = things();
    let bind: String = things.iter().map(|(bind, _)| bind.as_str()).collect();
    let (mut known, mut all) = (0, 0);
    for size in sizes() {
        let (mut body, mut names, mut types) = (bind.clone(), Vec::new(), Vec::new());
        for (_, x) in &things {
            for (_, y) in &things {
                for op in OPS {
                    let name = format!("c{}", names.len());
                    writeln!(body, "let {name}: bool = {op}.i64({x}, {y})").unwrap();
                    types.push("[]bool".to_string());
                    names.push(name);
                }
            }
        }
        let outer: Vec<String> = (0..names.len()).map(|k| format!("r{k}")).collect();
        let pat: Vec<String> = outer.iter().map(|r| format!("{r}: []bool")).collect();
        let text = format!(
            "fun f(k: i64): {} {{\n{}let {} = map n [is] (i: i64) {{\n{body}in {}\n}}\nin {}\n}}\n",
            types.join(", "),
            stated(size),
            pat.join(", "),
            names.join(", "),
            outer.join(", ")
        );
        let before = load(&text);
        let mut after = before.clone();
        [&SIMPLIFY, &PRUNE].iter().for_each(|p| (p.run)(&mut after, &Ctx::default()));
        compare(&before, &after, size, "comparisons");
        let left = print(&after)
            .lines()
            .filter(|l| OPS.iter().any(|op| l.contains(&format!("= {op}.i64("))))
            .count();
        known += names.len() - left;
        all += names.len();
    }
    // With an axis of no elements nothing is compared.
    assert!(known > all / 2, "{known} of {all}");
}

/// Additions at one place under every comparison: each to a row of its own, in the arm for `holds`.
struct Additions {
    size: Option<i64>,
    connective: &'static str,
    /// The number of the thing that is the place.
    at: usize,
    holds: bool,
}

impl Additions {
    fn all() -> impl Iterator<Item = Additions> {
        let connectives = || ["and", "or", "not", ""].into_iter();
        let places = |size, connective| (0..5).map(move |at| (size, connective, at));
        let all = sizes().flat_map(move |size| connectives().flat_map(move |c| places(size, c)));
        all.flat_map(|(size, connective, at)| {
            [true, false].map(|holds| Additions { size, connective, at, holds })
        })
    }
    fn text(&self) -> String {
        let things = things();
        let mut body: String = things.iter().map(|(bind, _)| bind.as_str()).collect();
        let mut count = 0;
        for (_, x) in &things {
            for (k, (_, y)) in things.iter().enumerate() {
                let other = &things[(k + 3) % things.len()].1;
                body += &self.addition(count, (x, y, other), &things[self.at].1);
                count += 1;
            }
        }
        let stated = stated(self.size);
        format!(
            "fun f(k: i64): [][]f64 {{\n{stated}let zeros: [][]f64 = replicate([{count}i64, n], 0.0f64)\n\
             let sum: [][]f64 = withacc [zeros] (acc: acc [][]f64) {{\n\
             let u: []f64 = map n [is] (i: i64) {{\nlet w: f64 = convert.i64.f64(i)\n{body}in w\n}}\nin\n}}\nin sum\n}}\n"
        )
    }
    /// One of them, number `n`, under a comparison of `x` and `y` and one of `other` and zero.
    fn addition(&self, n: usize, (x, y, other): (&str, &str, &str), place: &str) -> String {
        let op = OPS[(n + self.at) % OPS.len()];
        // The condition, and what it is made by.
        let (c, made) = match self.connective {
            "" => (format!("a{n}"), String::new()),
            "not" => (format!("c{n}"), format!("let c{n}: bool = not.bool(a{n})\n")),
            both => (format!("c{n}"), format!("let c{n}: bool = {both}.bool(a{n}, b{n})\n")),
        };
        let add = format!(
            "let v{n}: f64 = add.f64(w, 1.0f64)\nlet d{n}: () = add_to(acc, [{n}i64, {place}], v{n})\nin 0i64"
        );
        let (yes, no) = if self.holds { (add.as_str(), "in 0i64") } else { ("in 0i64", add.as_str()) };
        format!(
            "let a{n}: bool = {op}.i64({x}, {y})\nlet b{n}: bool = lt.i64({other}, 0i64)\n{made}\
             let e{n}: i64 = if {c} {{\n{yes}\n}} else {{\n{no}\n}}\n"
        )
    }
}

#[test]
fn additions_without_their_conditions_add_the_same() {
    let conditions = |p: &Program| print(p).matches("= if ").count();
    let (mut gone, mut all) = (0, 0);
    for additions in Additions::all() {
        let before = load(&additions.text());
        let mut after = before.clone();
        // The size that the text states is known when it has been put in its places.
        (SIMPLIFY.run)(&mut after, &Ctx::default());
        let between = conditions(&after);
        (GUARD_ELIMINATION.run)(&mut after, &Ctx::default());
        let Additions { size, connective, at, holds } = additions;
        compare(&before, &after, size, &format!("{connective:?}, place {at}, {holds}"));
        gone += between - conditions(&after);
        all += between;
    }
    assert!(gone * 20 > all, "{gone} of {all}");
}
