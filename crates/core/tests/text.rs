//! Text form and reader invert each other; the reader survives any text.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::{Code, SourceMap};
use pullback_core::{Program, Rules, check, print, read, renumber};

const ZOO: &str = include_str!("programs/zoo.core");
const GMM: &str = include_str!("programs/gmm_reverse.core");

fn load(text: &str) -> Program {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    read(file, text).unwrap_or_else(|d| panic!("{}", d.render(&sources)))
}

fn without_origins(mut program: Program) -> Program {
    for info in program.vars.iter_mut() {
        info.origin = Default::default();
    }
    program
}

#[test]
fn printing_and_reading_invert_each_other() {
    for text in [ZOO, GMM] {
        let program = load(text);
        check(&program, Rules::SURFACE).unwrap_or_else(|e| panic!("{e}"));
        let printed = print(&program);
        let again = load(&printed);
        assert_eq!(without_origins(again.clone()), without_origins(renumber(&program)));
        assert_eq!(print(&again), printed);
        assert_eq!(renumber(&again), again, "numbered in order already");
    }
}

#[test]
fn the_zoo_has_every_construct() {
    let metrics = pullback_core::metrics::metrics(&load(ZOO));
    for name in [
        "atom",
        "add.f64",
        "convert.f64.i64",
        "tuple",
        "proj",
        "inject",
        "match",
        "if",
        "loop",
        "call",
        "array",
        "index",
        "slice",
        "update",
        "update_slice",
        "gather",
        "size",
        "iota",
        "replicate",
        "rearrange",
        "reshape",
        "concat",
        "reverse",
        "rotate",
        "map",
        "reduce",
        "scan",
        "hist",
        "scatter",
        "withacc",
        "view",
        "add_to",
        "plus",
        "vjp",
        "jvp",
        "custom",
        "marked",
        "stop_gradient",
        "par",
        "assert",
        "check",
    ] {
        assert!(metrics.count(name) > 0, "no {name}");
    }
}

#[test]
fn the_text_does_not_depend_on_how_the_program_was_made() {
    let program = load(ZOO);
    let mut copied = program.clone();
    for id in program.funs.ids() {
        let lam = pullback_core::Lam {
            params: program.funs[id].params.clone(),
            body: program.funs[id].body.clone(),
        };
        let copy = pullback_core::rename::copy_lam(&mut copied, &lam, &Default::default());
        copied.funs[id].params = copy.params;
        copied.funs[id].body = copy.body;
    }
    assert!(copied.vars.len() > program.vars.len());
    check(&copied, Rules::SURFACE).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(print(&copied), print(&program));
}

fn code(text: &str) -> (Code, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    match read(file, text) {
        Ok(p) => panic!("accepted: {}", print(&p)),
        Err(d) => (d.code, d.render(&sources)),
    }
}

#[test]
fn malformed_text_is_a_diagnostic_with_a_place() {
    let cases = [
        ("fun f(x: f64): f64 {\n  in y\n}", Code::UnknownName, "`y` is bound nowhere"),
        ("fun f(x: f64): f64 {\n  in x", Code::Syntax, "found the end of the text"),
        ("fun f(x: f63): f64 {\n  in x }", Code::UnknownName, "no type `f63` is defined"),
        ("fun f(x: f64): f64 { let y: f64 = frob(x) in y }", Code::Syntax, "expected an operation of core"),
        ("fun f(x: f64): f64 { let y: f64 = add.f65(x, x) in y }", Code::Syntax, "a primitive of the table"),
        ("fun f(x: f64): f64 { let y: f64 = exp.i64(x) in y }", Code::Syntax, "a primitive of the table"),
        (
            "fun f(x: f64): f64 { let y: f64 = call g(x) in y }",
            Code::UnknownName,
            "no function `g` is defined",
        ),
        ("fun f(x: f64): f64 { in 3 }", Code::Syntax, "a number with a type"),
        ("fun f(x: f64): f64 { in 300u8 }", Code::Syntax, "a number with a type"),
        ("fun f(x: f64): f64 { let y: f64 = proj(x, 1i64) in y }", Code::Syntax, "a number without a type"),
        (
            "fun f(x: f64): f64 { let x: i64 = 1i64 in x }",
            Code::DuplicateName,
            "bound before with another type",
        ),
        ("fun f(): { in }\nfun f(): { in }", Code::DuplicateName, "a second function of this name"),
        ("type t = #a\ntype t = #b", Code::DuplicateName, "a second type of this name"),
        ("fun f(x: f64): f64 { in x; }", Code::Lexical, "has no meaning"),
        ("fun f(x: f64): f64 { let u: () = assert(x, \"no end) in x }", Code::Lexical, "has no end"),
        ("fun f(x: f64): f64 { let u: () = assert(x, \"\\q\") in x }", Code::Lexical, "escape"),
        ("let", Code::Syntax, "expected `type`, `fun` or `entry`"),
        ("fun f(let: f64): f64 { in let }", Code::Syntax, "expected a variable, found `let`"),
    ];
    for (text, expected, message) in cases {
        let (found, shown) = code(text);
        assert_eq!(found, expected, "{shown}");
        assert!(shown.contains(message), "expected {message:?} in {shown}");
        assert!(shown.contains("--> text:"), "no place: {shown}");
    }
}

#[test]
fn deep_text_is_refused() {
    let n = 100_000;
    let types = format!("fun f(x: {}f64): f64 {{ in x }}", "[]".repeat(n));
    let products = format!("fun f(x: {}f64{}): f64 {{ in x }}", "(".repeat(n), ")".repeat(n));
    let bodies = format!("fun f(x: f64): f64 {}", "{ let y: f64 = recompute ".repeat(n));
    let interface = format!("entry f interface (x: {}f64", "[]".repeat(n));
    for text in [types, products, bodies, interface] {
        assert_eq!(code(&text).0, Code::TooDeep);
    }
}

#[test]
fn the_checker_limits_depth() {
    let mut program = Program::default();
    let f = pullback_core::Builder::function(&mut program, "f", &[], vec![], |_, _| vec![]);
    let mut body = pullback_core::Body::default();
    for _ in 0..2 * pullback_core::check::MAX_DEPTH {
        let pat = vec![program.vars.push(pullback_core::VarInfo {
            ty: pullback_core::Type::BOOL,
            hint: "x".into(),
            origin: Default::default(),
        })];
        let result = vec![pat[0].into()];
        let exp = pullback_core::Exp::Marked(pullback_core::Mark::Store, body);
        body = pullback_core::Body { stms: vec![pullback_core::Stm { pat, exp }], result };
        if program.vars.len() == 1 {
            body.stms[0].exp = pullback_core::Exp::Atom(pullback_core::Atom::bool(true));
        }
    }
    body.result.clear();
    program.funs[f].body = body;
    let error = check(&program, Rules::SURFACE).unwrap_err();
    assert!(error.to_string().contains("nested at most"), "{error}");
}

/// Every text with one character removed, doubled or replaced: an error or a program, which the checker can judge.
#[test]
fn damaged_text_never_panics() {
    let chars: Vec<char> = ZOO.chars().collect();
    let mut accepted = 0;
    let mut refused = 0;
    for k in (0..chars.len()).step_by(7) {
        for change in 0..3 {
            let mut damaged = chars.clone();
            match change {
                0 => drop(damaged.remove(k)),
                1 => damaged.insert(k, chars[k]),
                _ => damaged[k] = chars[(k * 31 + 17) % chars.len()],
            }
            let text: String = damaged.into_iter().collect();
            let mut sources = SourceMap::new();
            let file = sources.add("text", &text);
            match read(file, &text) {
                Err(d) => {
                    assert!(d.span.is_some());
                    refused += 1;
                }
                Ok(program) => {
                    accepted += usize::from(check(&program, Rules::SURFACE).is_ok());
                    refused += usize::from(check(&program, Rules::SURFACE).is_err());
                }
            }
        }
    }
    assert!(accepted > 100 && refused > 500, "{accepted} accepted, {refused} refused");
}
