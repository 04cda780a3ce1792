//! Dead code: programs before and after in `tests/prune.core`; the light variant; renaming and uses.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::SourceMap;
use pullback_core::prune::{Options, prune_program, prune_stms};
use pullback_core::usage::{last_uses, use_counts};
use pullback_core::{Atom, FunId, Program, Rules, Var, check, print, read};

fn load(text: &str) -> Program {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    let program = read(file, text).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    check(&program, Rules::SURFACE).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}

/// Hints aside: statements made by pruning have hints of their own.
fn shape(program: &Program) -> String {
    let mut program = program.clone();
    program.vars.iter_mut().for_each(|i| i.hint = "x".into());
    print(&program)
}

#[test]
fn pruned_programs_are_as_written() {
    let text = include_str!("prune.core");
    let mut count = 0;
    for case in text.split("// === ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (before, after) = rest.split_once("// --->").unwrap();
        let mut program = load(before);
        prune_program(&mut program);
        check(&program, Rules::SURFACE).unwrap_or_else(|e| panic!("{name}: {e}\n{}", print(&program)));
        assert_eq!(shape(&program), shape(&load(after)), "{name}\n{}", print(&program));
        let once = print(&program);
        prune_program(&mut program);
        assert_eq!(print(&program), once, "{name}: a second time");
        count += 1;
    }
    assert_eq!(count, 20);
}

fn var(program: &Program, hint: &str) -> Var {
    let mut found = program.vars.iter_enumerated().filter(|(_, i)| i.hint.as_str() == hint);
    let (v, _) = found.next().unwrap_or_else(|| panic!("no {hint}"));
    assert!(found.next().is_none(), "two {hint}");
    v
}

const LIGHT: &str = "fun f(x: f64, c: bool, p: acc f64): f64 {
  let u: () = assert(c, \"no\")
  let a: f64 = sin.f64(x)
  let w: () = add_to(p, [], a)
  let b: f64 = cos.f64(x)
  let d: f64 = add.f64(b, b)
  in d
}";

#[test]
fn the_light_variant_says_what_is_needed_for_some_values() {
    let program = load(LIGHT);
    let stms = program.funs.iter().next().unwrap().body.stms.clone();
    let left = |hint: &str, asserts: bool, dead: bool| {
        let dead_accs = if dead { [var(&program, "p")].into() } else { [].into() };
        let results: Vec<Atom> = if hint.is_empty() { vec![] } else { vec![var(&program, hint).into()] };
        let mut scratch = program.clone();
        let kept = prune_stms(&mut scratch, stms.clone(), &results, &Options { asserts, dead_accs });
        kept.iter().map(|s| program.vars[s.pat[0]].hint.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(left("b", true, false), ["u", "a", "w", "b"]);
    assert_eq!(left("b", false, false), ["a", "w", "b"]);
    assert_eq!(left("b", true, true), ["u", "b"]);
    assert_eq!(left("d", false, true), ["b", "d"]);
    assert_eq!(left("", false, true), [""; 0]);
}

#[test]
fn uses_are_counted_and_the_last_one_known() {
    let program = load(
        "fun f(x: f64, y: f64, n: i64): f64 {
  let a: f64 = mul.f64(x, x)
  let b: f64 = loop (s: f64 = a) for i: i64 < n {
    let t: f64 = add.f64(s, y)
    in t
  }
  let c: f64 = add.f64(a, b)
  in c
}",
    );
    let body = &program.funs.iter().next().unwrap().body;
    let counts = use_counts(body);
    let count = |hint: &str| counts.get(&var(&program, hint)).copied().unwrap_or(0);
    assert_eq!([count("x"), count("y"), count("a"), count("s"), count("i"), count("c")], [2, 1, 2, 1, 0, 1]);
    let last = last_uses(body);
    let names = |k: usize| last[k].iter().map(|v| program.vars[*v].hint.to_string()).collect::<Vec<_>>();
    assert_eq!(names(0), ["x"]);
    assert_eq!(names(1), ["y", "n"]);
    assert_eq!(names(2), ["a", "b"]);
}

#[test]
fn copies_bind_nothing_that_was_bound_before() {
    let text = include_str!("programs/zoo.core");
    let mut program = load(text);
    let ids: Vec<FunId> = program.funs.ids().collect();
    for id in ids {
        let before = program.vars.len();
        let body = program.funs[id].body.clone();
        let copy = pullback_core::rename::copy_body(&mut program, &body, &Default::default());
        let bound = pullback_core::traverse::bound_vars(&body);
        let fresh = pullback_core::traverse::bound_vars(&copy);
        assert_eq!(bound.len(), fresh.len());
        assert_eq!(program.vars.len(), before + bound.len());
        assert!(bound.is_disjoint(&fresh));
        let free = pullback_core::traverse::free_vars(&body);
        assert_eq!(free, pullback_core::traverse::free_vars(&copy));
        let params: std::collections::BTreeSet<_> = program.funs[id].params.iter().copied().collect();
        assert!(free.is_subset(&params));
    }
}
