//! What is not supported is told with its name, its place and what to do instead; never a silent zero.

use crate::common::{first, parse};
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
fn accumulators_chosen_after_additions() {
    let text = "fun main(z: [][]f64, c: bool, x: []f64): [][]f64 {
        let r: [][]f64 = withacc [z] (acc: acc [][]f64) {
            let one: acc []f64 = view_index(acc, [0i64])
            let part: acc []f64 = if c { in one } else {
                let y: []f64, k: i64 = withacc [x] (other: acc []f64) {
                    let v: () = add_to(acc, [0i64, 0i64], 1.0f64)
                    in 1i64
                }
                let two: acc []f64 = view_index(acc, [k])
                in two
            }
            let u: () = add_to(part, [], x)
            in
        }
        in r
    }";
    told(text, "fast_chad", "chosen in a branch after additions", "part", "add before the branch");
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

/// The pass `differentiate` takes fused operations apart everywhere; the algorithms alone only in the function they are
/// given.
#[test]
fn fused_operations_in_called_functions() {
    for (word, tail) in [("map_reduce", "0.0f64"), ("map_scan", "0.0f64")] {
        let result = if word == "map_scan" { "[]f64" } else { "f64" };
        let text = format!(
            "fun squares(n: i64, a: []f64): {result} {{
                let y: {result} = {word} n [{tail}] [a] (x: f64) {{ let s: f64 = mul.f64(x, x) in s }}
                    with (p: f64, q: f64) {{ let r: f64 = add.f64(p, q) in r }}
                in y
            }}
            fun main(n2: i64, b: []f64): {result} {{ let z: {result} = call squares(n2, b) in z }}"
        );
        for id in ["fast_chad", "forward"] {
            told(&text, id, "a fused operation in a called function", "y", "before the pass `fuse`");
        }
        let vjp = format!(
            "{text} fun outer(n3: i64, c: []f64, d: {result}): {result}, []f64 {{
                let e: {result}, g: []f64 = vjp [c] [d] (h: []f64) {{ let k: {result} = call main(n3, h) in k }}
                in e, g
            }}"
        );
        differentiate(&mut parse(&vjp), &Choice::default()).expect("taken apart before");
    }
}

#[test]
fn many_tangents_of_recursive_values() {
    let text = "type list = #end | #more f64 list
    fun main(x: f64, dots: []f64): f64, []f64 {
        let y: f64, d: []f64 = jvp seeds 2i64 [x] [dots] (a: f64) {
            let end: list = inject(0): list
            let one: list = inject(1, a, end): list
            let b: f64 = match one case () { in 0.0f64 } case (c: f64, rest: list) { let e: f64 = mul.f64(c, c) in e }
            in b
        }
        in y, d
    }";
    let mut program = parse(text);
    let error = differentiate(&mut program, &Choice::default()).expect_err("not supported");
    assert_eq!(error.algorithm, "forward");
    assert!(error.construct.contains("a recursive type that holds floats, in many directions"), "{error}");
    assert!(error.help.contains("map a jvp over them"), "{}", error.help);
    let span = error.span.expect("a place");
    let marked = &text[span.start as usize..span.end as usize];
    assert_eq!(marked, "end", "the value is marked");
    // The advice works: one direction is supported.
    let single =
        text.replace("seeds 2i64 ", "").replace("dots: []f64", "dots: f64").replace("d: []f64", "d: f64");
    let single = single.replace("): f64, []f64", "): f64, f64");
    differentiate(&mut parse(&single), &Choice::default()).expect("one direction");
}

/// Every place of the sources that refuses something has its test in this file: whoever adds one must come here.
#[test]
fn every_refusal_is_tested() {
    // The file, and what each refusal in it says; those that both modes share are said twice.
    const REFUSALS: &[(&str, &[&str])] = &[
        ("src/differentiate.rs", &["no {mode}-mode algorithm has that name"]),
        (
            "src/fast_chad/reverse.rs",
            &[
                "a derivative that was not expanded before",
                "that captures the differentiated variable",
                "a fused operation in a called function",
            ],
        ),
        (
            "src/fast_chad/accumulators.rs",
            &["a part of an accumulator that is chosen in a branch after additions with results"],
        ),
        (
            "src/forward/mod.rs",
            &[
                "a value of a recursive type that holds floats, in many directions at once",
                "a derivative that was not expanded before",
            ],
        ),
        ("src/forward/soacs.rs", &["a fused operation in a called function"]),
    ];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = 0;
    let mut folders = vec![root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source file");
            // Calls and values, not the definitions and the type.
            let calls = text.matches("unsupported(").count() - text.matches("fn unsupported(").count();
            let values = text.matches("Unsupported { algorithm: \"").count();
            let name = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
            let listed = REFUSALS.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, says)| says);
            let own = usize::from(text.contains("fn unsupported(")) * values;
            assert_eq!(calls + values - own, listed.len(), "{name} refuses what has no test here");
            for says in listed {
                assert!(text.contains(says), "{name} does not say `{says}`");
            }
            found += listed.len();
        }
    }
    assert_eq!(found, 8);
}
