//! Comparisons at borders, all of them: counters, sizes and numbers, each a few elements further or back, in axes of all short
//! lengths. What `simplify` knows of a comparison, and the conditions that `unguard` leaves out, change no value.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::SourceMap;
use pullback_core::{FunId, Program, Rules, Value, check, print, read};
use pullback_interp::core::{Options, run};
use pullback_opt::{Ctx, PRUNE, SIMPLIFY, UNGUARD};
use std::fmt::Write;

const LENGTHS: [i64; 5] = [0, 1, 2, 3, 5];
const OPS: [&str; 4] = ["lt", "le", "eq", "ne"];

fn load(text: &str) -> Program {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    let program = read(file, text).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    check(&program, Rules::SURFACE).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}

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
        let stated = size.map_or("add.i64(k, 0i64)".to_string(), |n| format!("add.i64({n}i64, 0i64)"));
        let outer: Vec<String> = (0..names.len()).map(|k| format!("r{k}")).collect();
        let pat: Vec<String> = outer.iter().map(|r| format!("{r}: []bool")).collect();
        let text = format!(
            "fun f(k: i64): {} {{\nlet n: i64 = {stated}\nlet is: []i64 = iota(n)\n\
             let {} = map n [is] (i: i64) {{\n{body}in {}\n}}\nin {}\n}}\n",
            types.join(", "),
            pat.join(", "),
            names.join(", "),
            outer.join(", ")
        );
        let before = load(&text);
        let mut after = before.clone();
        [&SIMPLIFY, &PRUNE].iter().for_each(|p| (p.run)(&mut after, &Ctx::default()));
        check(&after, Rules::SURFACE).unwrap();
        for n in LENGTHS.into_iter().filter(|n| size.is_none_or(|size| size == *n)) {
            assert!(values(&before, n) == values(&after, n), "{n} elements");
        }
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

#[test]
fn additions_without_their_conditions_add_the_same() {
    let things = things();
    let bind: String = things.iter().map(|(bind, _)| bind.as_str()).collect();
    let (mut gone, mut all) = (0, 0);
    for size in sizes() {
        for connective in ["and", "or", "not", ""] {
            for (at, (_, place)) in things.iter().enumerate().take(5) {
                for holds in [true, false] {
                    // One accumulator for each condition; the additions differ.
                    let (mut body, mut count) = (bind.clone(), 0);
                    for (_, x) in &things {
                        for (k, (_, y)) in things.iter().enumerate() {
                            let op = OPS[(count + at) % OPS.len()];
                            writeln!(body, "let a{count}: bool = {op}.i64({x}, {y})").unwrap();
                            let other = &things[(k + 3) % things.len()].1;
                            writeln!(body, "let b{count}: bool = lt.i64({other}, 0i64)").unwrap();
                            let c = match connective {
                                "" => format!("a{count}"),
                                "not" => {
                                    writeln!(body, "let c{count}: bool = not.bool(a{count})").unwrap();
                                    format!("c{count}")
                                }
                                op => {
                                    writeln!(body, "let c{count}: bool = {op}.bool(a{count}, b{count})")
                                        .unwrap();
                                    format!("c{count}")
                                }
                            };
                            let add = format!(
                                "let v{count}: f64 = add.f64(w, 1.0f64)\nlet d{count}: () = add_to(acc, [{count}i64, {place}], v{count})\nin 0i64"
                            );
                            let (yes, no) =
                                if holds { (add.as_str(), "in 0i64") } else { ("in 0i64", add.as_str()) };
                            writeln!(body, "let e{count}: i64 = if {c} {{\n{yes}\n}} else {{\n{no}\n}}")
                                .unwrap();
                            count += 1;
                        }
                    }
                    let stated =
                        size.map_or("add.i64(k, 0i64)".to_string(), |n| format!("add.i64({n}i64, 0i64)"));
                    let text = format!(
                        "fun f(k: i64): [][]f64 {{\nlet n: i64 = {stated}\nlet is: []i64 = iota(n)\n\
                         let zeros: [][]f64 = replicate([{count}i64, n], 0.0f64)\n\
                         let sum: [][]f64 = withacc [zeros] (acc: acc [][]f64) {{\n\
                         let u: []f64 = map n [is] (i: i64) {{\nlet w: f64 = convert.i64.f64(i)\n{body}in w\n}}\nin\n}}\nin sum\n}}\n"
                    );
                    let before = load(&text);
                    let mut after = before.clone();
                    // The size that the text states is known when it has been put in its places.
                    (SIMPLIFY.run)(&mut after, &Ctx::default());
                    let conditions = |p: &Program| print(p).matches("= if ").count();
                    let between = conditions(&after);
                    (UNGUARD.run)(&mut after, &Ctx::default());
                    check(&after, Rules::SURFACE).unwrap();
                    gone += between - conditions(&after);
                    all += between;
                    for n in LENGTHS.into_iter().filter(|n| size.is_none_or(|size| size == *n)) {
                        assert!(
                            values(&before, n) == values(&after, n),
                            "{n} elements, {connective}, {place}, {holds}\n{}",
                            print(&after)
                        );
                    }
                }
            }
        }
    }
    assert!(gone * 20 > all, "{gone} of {all}");
}
