//! Forward mode against the interpreter's independent dual numbers, construct by construct, and its cost.

use pullback_ad::differentiate::{Choice, differentiate};
use pullback_base::SourceMap;
use pullback_core::check::{Rules, check};
use pullback_core::{Atom, Builder, Exp, FunId, Program, Type, Value, Var, read, typing};
use pullback_interp::core::Options;
use pullback_prim::{Op, Prim};

fn parse(text: &str) -> Program {
    let mut sources = SourceMap::new();
    let file = sources.add("test.core", text);
    let program = read(file, text);
    program.unwrap_or_else(|d| panic!("{}", d.render(&sources)))
}

/// Adds `\xs x_dots -> ys y_dots` for the first function and expands it.
fn with_jvp(program: &Program) -> (Program, FunId) {
    let mut program = program.clone();
    let f = program.funs.ids().next().expect("a function");
    let fun = program.funs[f].clone();
    let params: Vec<Type> = fun.params.iter().map(|&p| program.vars[p].ty.clone()).collect();
    let dots = typing::active(&program, &params).expect("cotangent types");
    let y_dots = typing::active(&program, &fun.results).expect("cotangent types");
    let signature: Vec<(&str, Type)> = params.iter().chain(&dots).map(|t| ("x", t.clone())).collect();
    let results = fun.results.iter().cloned().chain(y_dots).collect();
    let id = Builder::function(&mut program, "derivative", &signature, results, |b, vars| {
        let (xs, x_dots) = vars.split_at(params.len());
        let lam = b.lam(&params, "x", |b, inner| {
            let args = inner.iter().map(|&v| v.into()).collect();
            b.emit_all(Exp::Call(f, args), "y").into_iter().map(Atom::Var).collect()
        });
        let atoms = |vs: &[Var]| vs.iter().map(|&v| Atom::Var(v)).collect::<Vec<_>>();
        let exp = Exp::Jvp { lam, args: atoms(xs), tangents: atoms(x_dots), seeds: None, algorithm: None };
        b.emit_all(exp, "r").into_iter().map(Atom::Var).collect()
    });
    check(&program, Rules::SURFACE).expect("well-formed before");
    differentiate(&mut program, &Choice::default()).expect("supported");
    check(&program, Rules::NO_AD).expect("well-formed after");
    (program, id)
}

fn agrees(text: &str, args: Vec<Value>, tangents: Vec<Value>) -> Vec<f64> {
    let program = parse(text);
    let f = program.funs.ids().next().expect("a function");
    let (derived, id) = with_jvp(&program);
    let all: Vec<Value> = args.iter().chain(&tangents).cloned().collect();
    let ours = pullback_interp::core::run(&derived, id, all, &Options::default()).expect("runs");
    let oracle =
        pullback_interp::dual::jvp(&program, f, &args, &tangents, &Options::default()).expect("runs");
    let (values, dots) = ours.results.split_at(oracle.results.len());
    assert_eq!(values, oracle.results, "primal results are bit-equal");
    let flat = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
    let (mine, theirs) = (flat(dots), flat(&oracle.tangents));
    assert_eq!(mine.len(), theirs.len());
    for (a, b) in mine.iter().zip(&theirs) {
        assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{mine:?} {theirs:?}");
    }
    mine
}

#[test]
fn products_of_scalars() {
    let text = "fun f(x: f64, y: f64): f64 {
        let a: f64 = mul.f64(x, y)
        let b: f64 = sin.f64(a)
        let c: f64 = add.f64(b, x)
        in c
    }";
    let dots = agrees(text, vec![Value::f64(2.0), Value::f64(3.0)], vec![Value::f64(1.0), Value::f64(0.0)]);
    assert!((dots[0] - (6f64.cos() * 3.0 + 1.0)).abs() < 1e-12);
}

/// The derivatives of `x * exp y` along constant directions: `exp y` and `x * exp y`. A zero of a direction makes no operations.
#[test]
fn constant_zeros_of_a_direction_are_no_tangents() {
    let along = |dx: &str, dy: &str| {
        let text = format!(
            "fun f(x: f64, y: f64, t: f64): f64 {{
                let r: f64, d: f64 = jvp [x, y] [{dx}, {dy}] (a: f64, b: f64) {{
                    let e: f64 = exp.f64(b)
                    let p: f64 = mul.f64(a, e)
                    in p
                }}
                in d
            }}"
        );
        let mut program = parse(&text);
        differentiate(&mut program, &Choice::default()).expect("supported");
        check(&program, Rules::NO_AD).expect("well-formed after");
        let f = program.funs.ids().next().expect("a function");
        let products = program.funs[f].body.stms.iter();
        let is_product = |exp: &Exp| matches!(exp, Exp::Prim(Prim::Op(Op::Mul | Op::StrongMul, _), _));
        let products = products.filter(|stm| is_product(&stm.exp)).count();
        let args = [2.0, 0.5, 0.0].map(Value::f64).to_vec();
        let out = pullback_interp::core::run(&program, f, args, &Options::default()).expect("runs");
        (out.results[0].floats()[0], products)
    };
    let e = 0.5f64.exp();
    let (both, all) = along("1.0f64", "t");
    assert_eq!(both, e);
    let (of_x, few) = along("1.0f64", "0.0f64");
    assert_eq!(of_x, e);
    assert!(few < all, "{few} {all}");
    assert_eq!(along("-0.0f64", "1.0f64").0, 2.0 * e);
    // The product itself is left.
    assert_eq!(along("0.0f64", "0.0f64"), (0.0, 1));
}

#[test]
fn loops_carry_tangents_and_collect() {
    let text = "fun f(x: f64, n: i64): f64, []f64 {
        let y: f64, ys: []f64 = loop (s: f64 = 1.0f64) for i: i64 < n collect 1 {
            let t1: f64 = mul.f64(s, x)
            let u2: f64 = mul.f64(t1, t1)
            in t1, u2
        }
        in y, ys
    }";
    for n in 0..4 {
        let dots = agrees(text, vec![Value::f64(1.5), Value::i64(n)], vec![Value::f64(1.0)]);
        let expected = if n == 0 { 0.0 } else { n as f64 * 1.5f64.powi(n as i32 - 1) };
        assert!((dots[0] - expected).abs() < 1e-12);
    }
}

#[test]
fn reductions_use_the_dual_operator() {
    let text = "fun f(xs: []f64): f64, f64, []f64 {
        let n: i64 = size(xs, 0)
        let p: f64 = reduce n [1.0f64] [xs] (a1: f64, b2: f64) {
            let c3: f64 = mul.f64(a1, b2)
            in c3
        }
        let m: f64 = reduce n [-f64.inf] [xs] (a4: f64, b5: f64) {
            let c6: f64 = max.f64(a4, b5)
            in c6
        }
        let s: []f64 = scan n [0.0f64] [xs] (a7: f64, b8: f64) {
            let c9: f64 = add.f64(a7, b8)
            in c9
        }
        in p, m, s
    }";
    let dots = agrees(text, vec![Value::f64s(&[2.0, 0.0, 5.0])], vec![Value::f64s(&[1.0, 1.0, 1.0])]);
    assert_eq!(dots, [10.0, 1.0, 1.0, 2.0, 3.0]);
}

#[test]
fn sums_match_their_tangents() {
    let text = "fun f(c: bool, x: f64): f64 {
        let o: (#none | #some f64) = if c {
            let a1: (#none | #some f64) = inject(1, x): (#none | #some f64)
            in a1
        } else {
            let a2: (#none | #some f64) = inject(0): (#none | #some f64)
            in a2
        }
        let r: f64 = match o case () {
            in 7.0f64
        } case (v3: f64) {
            let w4: f64 = mul.f64(v3, v3)
            in w4
        }
        in r
    }";
    let yes = Value::Scalar(pullback_prim::ScalarValue::Bool(true));
    let no = Value::Scalar(pullback_prim::ScalarValue::Bool(false));
    assert_eq!(agrees(text, vec![yes, Value::f64(3.0)], vec![Value::f64(1.0)]), [6.0]);
    assert_eq!(agrees(text, vec![no, Value::f64(3.0)], vec![Value::f64(1.0)]), [0.0]);
}

#[test]
fn recursive_functions_have_recursive_derivatives() {
    let text = "fun power(x: f64, n: i64): f64 {
        let done: bool = le.i64(n, 0i64)
        let r: f64 = if done {
            in 1.0f64
        } else {
            let m1: i64 = sub.i64(n, 1i64)
            let p2: f64 = call power(x, m1)
            let q3: f64 = mul.f64(x, p2)
            in q3
        }
        in r
    }";
    let dots = agrees(text, vec![Value::f64(2.0), Value::i64(5)], vec![Value::f64(1.0)]);
    assert_eq!(dots, [80.0]);
}

#[test]
fn the_work_ratio_does_not_grow() {
    let text = "fun f(xs: []f64): f64 {
        let n: i64 = size(xs, 0)
        let ys: []f64 = map n [xs] (x1: f64) {
            let i2: i64 = convert.f64.i64(x1)
            let a3: f64 = xs[i2]
            let b4: f64 = mul.f64(a3, x1)
            in b4
        }
        let s: f64 = reduce n [0.0f64] [ys] (a5: f64, b6: f64) {
            let c7: f64 = add.f64(a5, b6)
            in c7
        }
        in s
    }";
    let program = parse(text);
    let f = program.funs.ids().next().expect("a function");
    let (derived, id) = with_jvp(&program);
    let ratio = |n: usize| {
        let xs = Value::f64s(&(0..n).map(|i| i as f64).collect::<Vec<_>>());
        let options = Options::default();
        let primal =
            pullback_interp::core::run(&program, f, vec![xs.clone()], &options).expect("runs").counts.work;
        let both = pullback_interp::core::run(&derived, id, vec![xs.clone(), xs], &options)
            .expect("runs")
            .counts
            .work;
        both as f64 / primal as f64
    };
    assert!(ratio(256) <= 1.1 * ratio(16), "{} {}", ratio(16), ratio(256));
}
