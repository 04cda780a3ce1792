//! What is not supported is told with its name, its place and what to do instead; never a silent zero.

mod common;

use common::{first, parse};
use pullback_ad::contract::{ALGORITHMS, Algorithm, Unsupported};
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_core::Lam;

/// The error of an algorithm on the last function of a program.
fn refused(text: &str, id: &str) -> Unsupported {
    let mut program = parse(text);
    let main = program.funs.ids().last().expect("a function");
    let fun = program.funs[main].clone();
    let algorithm: &Algorithm = ALGORITHMS.iter().find(|a| a.id == id).expect("an algorithm");
    let wanted = vec![true; fun.params.len()];
    let lam = Lam { params: fun.params, body: fun.body };
    let error = (algorithm.transform)(&mut program, &lam, &wanted).expect_err("not supported");
    assert_eq!(error.algorithm, id);
    error
}

/// The error names the construct, marks the place (a part of the text) and gives this advice.
fn told(text: &str, id: &str, construct: &str, place: &str, help: &str) {
    let error = refused(text, id);
    assert!(error.construct.contains(construct), "{id}: {}", error.construct);
    assert!(error.help.contains(help), "{id}: {}", error.help);
    let span = error.span.unwrap_or_else(|| panic!("{id}: {construct} has no place"));
    let marked = &text[span.start as usize..span.end as usize];
    assert!(marked.contains(place), "{id}: the place of {construct} is `{marked}`");
    let d = error.to_diagnostic();
    assert_eq!(d.hints.first(), Some(&error.help));
    assert!(d.message.contains(construct) && d.span == error.span);
}

#[test]
fn rules_that_capture_what_is_differentiated() {
    let text = "fun main(x: f64, c: f64): f64 {
        let y: f64 = custom [x] (a: f64) { let b: f64 = mul.f64(a, c) in b }
            (a2: f64, bar: f64) { let d: f64 = mul.f64(bar, c) in d }
        in y
    }";
    told(text, "fast_chad", "captures the differentiated variable `c`", "y", "argument");
}

#[test]
fn accumulators_chosen_in_a_branch() {
    let text = "fun main(z: [][]f64, c: bool, x: []f64): [][]f64 {
        let r: [][]f64 = withacc [z] (acc: acc [][]f64) {
            let one: acc []f64 = view_index(acc, [0i64])
            let part: acc []f64 = if c { in one } else {
                let two: acc []f64 = view_index(acc, [1i64])
                in two
            }
            let u: () = add_to(part, [], x)
            in
        }
        in r
    }";
    told(
        text,
        "fast_chad",
        "a choice between an accumulator and a view",
        "part",
        "make the view before the branch",
    );
}

#[test]
fn derivatives_that_were_not_expanded() {
    for word in ["vjp", "jvp"] {
        let text = format!(
            "fun main(x: f64): f64 {{
                let y: f64, d: f64 = {word} [x] [1.0f64] (a: f64) {{ let b: f64 = mul.f64(a, a) in b }}
                in d
            }}"
        );
        for id in ["fast_chad", "forward"] {
            told(&text, id, "not expanded before", "y", "the pass `differentiate`");
        }
    }
}

#[test]
fn names_of_algorithms_that_do_not_exist() {
    let text = "fun main(x: f64): f64 {
        let y: f64, d: f64 = vjp #[ad(magic)] [x] [1.0f64] (a: f64) { let b: f64 = mul.f64(a, a) in b }
        in d
    }";
    let mut program = parse(text);
    assert_eq!(program.funs[first(&program)].params.len(), 1);
    let error = differentiate(&mut program, &Choice::default()).expect_err("no such algorithm");
    assert!(error.construct.contains("`magic`"), "{error}");
    assert!(error.help.contains("fast_chad") && !error.help.contains("forward"), "{}", error.help);
    assert!(error.span.is_some());
}
