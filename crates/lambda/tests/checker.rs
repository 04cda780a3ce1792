//! Each rule of the checker refuses a program that breaks it, and texts that are no programs are errors.

#![allow(clippy::unwrap_used, reason = "a failure of a test")]

use pullback_base::Code;
use pullback_lambda::check::check;
use pullback_lambda::read::read;
use pullback_lambda::{Builder, Exp, Program, Type, Var};

fn refused(build: impl FnOnce(&mut Builder<'_>, Var) -> pullback_lambda::Term, expected: &str) {
    let mut program = Program::default();
    let mut b = Builder::new(&mut program);
    let f = b.declare("f", &[("x", Type::F64)], Type::F64, None);
    let x = b.params(f)[0];
    let body = build(&mut b, x);
    b.define(f, body);
    let errors = check(&program).expect_err(expected);
    assert!(errors.iter().any(|e| e.message.contains(expected)), "{expected}: {errors:?}");
}

#[test]
fn a_variable_is_bound_once() {
    refused(
        |b, x| {
            let (value, body) = (b.f64(1.0), b.var(x));
            b.term(Exp::Let(x, value, body))
        },
        "bound twice",
    );
}

#[test]
fn a_variable_is_used_in_its_scope() {
    refused(
        |b, _| {
            let v = b.fresh(Type::F64, "v");
            b.var(v)
        },
        "outside its scope",
    );
    refused(
        |b, x| {
            let mut inner = x;
            let value = b.var(x);
            let t = b.let_("v", value, |b, v| {
                inner = v;
                b.var(v)
            });
            let escaped = b.var(inner);
            b.op2(pullback_prim::Op::Add, t, escaped)
        },
        "outside its scope",
    );
}

#[test]
fn types_agree() {
    refused(
        |b, x| {
            let (x, one) = (b.var(x), b.i64(1));
            b.op2(pullback_prim::Op::Add, x, one)
        },
        "add.f64",
    );
    refused(|b, _| b.i64(1), "returns i64");
    refused(
        |b, x| {
            let (x, i) = (b.var(x), b.i64(0));
            b.index(x, vec![i])
        },
        "1 indices into type f64",
    );
}

fn linear(body: &str) -> Result<(), Vec<pullback_base::Diagnostic>> {
    let text = format!("def f (x: f64, g: <f64 -o f64>): <(f64, f64) -o f64> = lin z: (f64, f64) -> {body}");
    check(&read(&text, None).unwrap_or_else(|e| panic!("{body}: {e:?}")))
}

#[test]
fn linear_bodies_are_linear() {
    for body in [
        "z.0",
        "zero[f64]()",
        "plus(z.0, z.1)",
        "mul.f64(x, z.1)",
        "lapp(g, add.f64(z.0, mul.f64(z.1, mul.f64(x, x))))",
        "let w = z.1 in if lt.f64(x, 0.0f64) then w else zero[f64]()",
        "div.f64(z.0, x)",
    ] {
        assert_eq!(linear(body), Ok(()), "{body}");
    }
    for body in [
        "x",
        "1.0f64",
        "mul.f64(z.0, z.1)",
        "add.f64(z.0, 1.0f64)",
        "div.f64(x, z.0)",
        "sin.f64(z.0)",
        "if lt.f64(z.0, 0.0f64) then z.0 else zero[f64]()",
        "let w = z.0 in mul.f64(w, z.1)",
    ] {
        let errors = linear(body).expect_err(body);
        assert!(errors[0].message.contains("not linear"), "{body}: {errors:?}");
    }
}

#[test]
fn entry_points_take_data() {
    let text = "entry f (g: <f64 -> f64>): f64 signature (g: f64): f64 = g(1.0f64)";
    assert!(check(&read(text, None).unwrap()).unwrap_err()[0].message.contains("signature"));
    let text = "def f (x: f64): f64 = undefined";
    assert!(check(&read(text, None).unwrap()).unwrap_err()[0].message.contains("no body"));
}

#[test]
fn texts_that_are_no_programs_are_errors() {
    for (text, code) in [
        ("def f (x: f64): f64 = y", Code::Syntax),
        ("def f (x: f64): f64 = add.f64(x", Code::Syntax),
        ("def f (x: f64): f64 = add.i99(x)", Code::Syntax),
        ("def f (x: f64): f64 = 300i8", Code::Syntax),
        ("def f (x: $0): f64 = x", Code::Syntax),
        ("def f (x: f64): f64 = x def f (y: f64): f64 = y", Code::Syntax),
        ("def f (x: f64): f64 = x x", Code::Syntax),
        ("def f (x: f64): i64 = x", Code::TypeMismatch),
        ("def f (x: f64): f64 = index(x, 1i64)", Code::TypeMismatch),
        ("def f (x: f64): f64 = ~", Code::Lexical),
        ("def f (x: f64): f64 = \"a", Code::Lexical),
        ("garbage", Code::Syntax),
    ] {
        let errors = read(text, None).expect_err(text);
        assert_eq!(errors[0].code, code, "{text}: {errors:?}");
    }
    let deep = format!("def f (x: f64): f64 = {}x{}", "(".repeat(150_000), ")".repeat(150_000));
    assert_eq!(read(&deep, None).unwrap_err()[0].code, Code::TooDeep);
}
