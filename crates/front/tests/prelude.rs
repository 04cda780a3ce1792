//! The part of the prelude that a program needs.

use pullback_base::SourceMap;
use pullback_front::check_program;
use pullback_syntax::{PRELUDE, PRELUDE_NAME, parse, prelude_of};

/// The names of the prelude after what programs of these texts cannot reach is gone; it must be a program itself.
fn names(texts: &[&str]) -> Vec<String> {
    let left = prelude_of(texts.iter().copied());
    assert_eq!(left.len(), PRELUDE.len());
    let mut sources = SourceMap::new();
    let file = sources.add(PRELUDE_NAME, PRELUDE);
    let (program, wrong) = parse(file, &left);
    assert!(wrong.is_empty(), "{texts:?}: {wrong:?}");
    let none = sources.add("none.fut", "");
    let (typed, wrong) = check_program(&program, &parse(none, "").0);
    let messages: Vec<String> = wrong.iter().map(|d| d.render(&sources)).collect();
    assert!(messages.is_empty(), "{texts:?}: {}", messages.join("\n"));
    for def in typed.defs.iter() {
        assert_eq!(
            sources.snippet(def.span).trim_matches(['(', ')']),
            def.name.as_str().trim_matches(['(', ')'])
        );
    }
    typed.defs.iter().map(|d| d.name.to_string()).collect()
}

#[test]
fn a_text_without_names_needs_operators_only() {
    let left = names(&["entry main (x: f64) : f64 = x * 2"]);
    assert!(left.iter().all(|n| !n.chars().any(char::is_alphanumeric)), "{left:?}");
}

#[test]
fn what_a_definition_uses_is_there_too() {
    let left = names(&["def least = sort"]);
    for name in ["sort", "argsort"] {
        assert!(left.iter().any(|n| n == name), "{name} of {left:?}");
    }
    assert!(!left.iter().any(|n| n == "filter"), "{left:?}");
    let member = names(&["entry main [n] (xs: [n]f64) = f64.sort xs"]);
    assert!(member.iter().any(|n| n == "f64_sort"), "{member:?}");
    let file = names(&["", "def a = partition"]);
    assert!(file.iter().any(|n| n == "map2"), "{file:?}");
}

/// Every definition, alone with what it uses, is a program: nothing that is used is missed.
#[test]
fn every_definition_can_stand_alone() {
    let all: Vec<String> =
        PRELUDE.lines().filter_map(|l| l.strip_prefix("def ")).map(str::to_string).collect();
    assert!(all.len() > 60, "{} definitions", all.len());
    for line in all {
        let name = line.split([' ', '(']).find(|w| !w.is_empty()).unwrap_or_default();
        let left = names(&[name]);
        if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            assert!(left.iter().any(|n| n == name), "{name} of {left:?}");
        }
    }
}
