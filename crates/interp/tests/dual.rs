//! The oracle against derivatives known by hand and against differences.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::builders::{build, i, vars, vec_f64};
use pullback_base::index::Index;
use pullback_core::{Atom, Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Program, Soac, Type, Value, View};
use pullback_interp::core::{Compiled, Options, run};
use pullback_interp::dual::{Jacobian, central_difference, directional, inner, jacobian, jvp, perturb};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

fn close(x: &[f64], y: &[f64], tolerance: f64) {
    assert_eq!(x.len(), y.len());
    for (x, y) in x.iter().zip(y) {
        assert!((x - y).abs() <= tolerance * (1.0 + x.abs()), "{x} is not {y}");
    }
}
/// Compares the Jacobian with differences in every direction, under several schedules, and returns it.
fn checked(program: &Program, fun: FunId, args: &[Value]) -> Jacobian {
    let options = Options::default();
    let out = jacobian(program, fun, args, &options).unwrap();
    let code = Compiled::new(program);
    let plain = code.run(fun, args, &options).unwrap();
    assert_eq!(plain.results, out.results);
    for (k, column) in out.columns.iter().enumerate() {
        let mut direction = vec![0.0; out.columns.len()];
        direction[k] = 1.0;
        let slope = central_difference(&code, fun, args, &direction, 1e-3, &options).unwrap().unwrap();
        close(column, &slope, 1e-8);
        let shuffled = Options { schedule_seed: Some(k as u64), ..options };
        close(column, &directional(&code, fun, args, &direction, &shuffled).unwrap().tangent, 1e-12);
    }
    out
}

#[test]
fn reductions_scans_and_indexed_writes() {
    let args = [Value::f64s(&[1.5, -2.0, 0.5, 3.0]), Value::i64s(&[1, 0, 1, 9])];
    let params = [("xs", vec_f64()), ("is", Type::array(Type::I64))];
    let (program, fun) =
        build(&params, vec![Type::F64, vec_f64(), vec_f64(), vec_f64(), Type::F64], |b, p| {
            let (n, xs, is): (Atom, Atom, Atom) = (i(4), p[0].into(), p[1].into());
            let operator = |b: &mut Builder<'_>, op: Op| {
                b.lam(&[Type::F64, Type::F64], "x", |b, p| vec![b.op2(op, p[0].into(), p[1].into())])
            };
            let one = vec![Atom::f64(1.0)];
            let lam = operator(b, Op::Mul);
            let product =
                Soac::Reduce { width: n, lam, neutral: one.clone(), arrays: vec![xs], commutative: true };
            let product = b.emit(Exp::Soac(product), "p");
            let lam = operator(b, Op::Mul);
            let scan =
                b.emit(Exp::Soac(Soac::Scan { width: n, lam, neutral: one.clone(), arrays: vec![xs] }), "s");
            let lam = operator(b, Op::Mul);
            let dst = b.slice(xs, i(1), i(2), i(1));
            let hist =
                Soac::Hist { width: n, lam, neutral: one, dst: vec![dst], indices: is, values: vec![scan] };
            let hist = b.emit(Exp::Soac(hist), "h");
            let squares = b.map(n, &[xs], |b, q| vec![b.op2(Op::Mul, q[0].into(), q[0].into())]);
            let scatter = Soac::Scatter { width: n, dst: squares[0].into(), indices: is, values: scan };
            let scatter = b.emit(Exp::Soac(scatter), "w");
            let lam = operator(b, Op::Max);
            let low = vec![Atom::f64(f64::NEG_INFINITY)];
            let max = Soac::Reduce { width: n, lam, neutral: low, arrays: vec![scatter], commutative: true };
            let max = b.emit(Exp::Soac(max), "m");
            vec![product, scan, hist, scatter, max]
        });
    let out = checked(&program, fun, &args);
    assert_eq!(out.columns[0][0], -2.0 * 0.5 * 3.0);
    assert_eq!(out.kinks, 0);
}

#[test]
fn loops_accumulators_and_calls() {
    let args = [Value::f64s(&[0.3, 0.7, -0.2]), Value::f64(1.2)];
    let (program, fun) = build(
        &[("xs", vec_f64()), ("c", Type::F64)],
        vec![Type::F64, vec_f64(), vec_f64(), Type::F64],
        |b, p| {
            let (xs, c): (Atom, Atom) = (p[0].into(), p[1].into());
            let s = b.fresh(Type::F64, "s");
            let condition = b.scope(|b| vec![b.op2(Op::Lt, s.into(), Atom::f64(20.0))]);
            let body = b.scope(|b| {
                let t = b.op2(Op::Mul, s.into(), c);
                let t = b.op2(Op::Add, t, Atom::f64(1.0));
                vec![t, s.into()]
            });
            let form = LoopForm::While(condition);
            let params = vec![(s, c)];
            let l = Loop { params, form, body, collect: 1, attrs: LoopAttrs::default() };
            let w = b.emit_all(Exp::Loop(l), "w");
            let f = b.for_loop(i(3), &[xs], |b, k, s| {
                let x = b.index(s[0].into(), &[k.into()]);
                let y = b.op1(Op::Sin, x);
                let y = b.op2(Op::Mul, y, c);
                vec![b.emit(Exp::Update(s[0].into(), vec![k.into()], y), "a")]
            });
            let acc = b.with_acc(&[xs, c], |b, acc| {
                let v = b.emit(Exp::AccView(acc[0].into(), View::Reverse), "v");
                let is = b.emit(Exp::Iota(i(3)), "is");
                b.map(i(3), &[is, xs], |b, q| {
                    let y = b.op2(Op::Mul, q[1].into(), q[1].into());
                    b.emit(Exp::AccAdd(v, vec![q[0].into()], y), "u");
                    vec![b.emit(Exp::AccAdd(acc[1].into(), vec![], y), "u")]
                });
                vec![]
            });
            vec![w[0].into(), f[0].into(), acc[0].into(), acc[1].into()]
        },
    );
    let out = checked(&program, fun, &args);
    // Column of xs[0]: acc[0][2] and acc[1] get 2 * 0.3.
    close(&out.columns[0][4..], &[1.0, 0.0, 0.6, 0.6], 1e-14);
}

#[test]
fn recursion_and_sums_carry_tangents() {
    let option = Type::option(Type::F64);
    let (program, fun) = build(
        &[("x", Type::F64), ("o", option.clone()), ("n", Type::I64)],
        vec![Type::F64, option.clone()],
        |b, p| {
            let c = b.op2(Op::Le, p[2].into(), i(0));
            let stop = b.scope(|b| {
                let y = b.match_(p[1].into(), |b, k, q| {
                    vec![if k == 0 { p[0].into() } else { b.op2(Op::Mul, q[0].into(), p[0].into()) }]
                });
                let o = b.emit(Exp::Inject(option.clone(), 1, vec![y[0].into()]), "o");
                vec![y[0].into(), o]
            });
            let go = b.scope(|b| {
                let m = b.op2(Op::Sub, p[2].into(), i(1));
                let y = b.op2(Op::Mul, p[0].into(), p[0].into());
                let pat = vec![b.fresh(Type::F64, "r"), b.fresh(option.clone(), "r")];
                b.emit_to(pat.clone(), Exp::Call(Index::new(0), vec![y, p[1].into(), m]));
                vars(pat)
            });
            let pat = vec![b.fresh(Type::F64, "r"), b.fresh(option.clone(), "r")];
            b.emit_to(pat.clone(), Exp::If(c, stop, go));
            vars(pat)
        },
    );
    let some = |k: usize, x: f64| Value::Sum(k, vec![Value::f64(x)].into());
    let args = [Value::f64(1.5), some(1, 2.0), Value::i64(2)];
    checked(&program, fun, &args);
    // x^4 * o: tangents 4 x^3 o dx + x^4 do. Tangents of sums number their alternatives one higher.
    let out = jvp(&program, fun, &args, &[Value::f64(1.0), some(2, 10.0)], &Options::default()).unwrap();
    let slope = 4.0 * 3.375 * 2.0 + 10.0 * 5.0625;
    assert_eq!(out.tangents, [Value::f64(slope), some(2, slope)]);
    let zero = Value::Sum(0, vec![].into());
    let out = jvp(&program, fun, &args, &[Value::f64(1.0), zero], &Options::default()).unwrap();
    assert_eq!(out.tangents[0], Value::f64(27.0));
}

#[test]
fn nested_derivatives_do_not_confuse_perturbations() {
    // x * d/dy (x + y): its derivative in x is 1, and 2 if the two perturbations are confused.
    let (program, fun) = build(&[("x", Type::F64)], vec![Type::F64], |b, p| {
        let x: Atom = p[0].into();
        let lam = b.lam(&[Type::F64], "y", |b, q| vec![b.op2(Op::Add, x, q[0].into())]);
        let (args, tangents) = (vec![Atom::f64(1.0)], vec![Atom::f64(1.0)]);
        let d = b.emit_all(Exp::Jvp { lam, args, tangents, seeds: None, algorithm: None }, "d");
        vec![b.op2(Op::Mul, x, d[1].into())]
    });
    let out = jacobian(&program, fun, &[Value::f64(1.0)], &Options::default()).unwrap();
    assert_eq!(out.columns, [[1.0]]);
}

#[test]
fn third_derivatives_through_reverse_and_forward() {
    // f = sin(x y): jvp of the x component of vjp of f, then the Jacobian of that.
    let (program, fun) = build(&[("x", Type::F64), ("y", Type::F64)], vec![Type::F64], |b, p| {
        let outer = b.lam(&[Type::F64, Type::F64], "q", |b, q| {
            let f = b.lam(&[Type::F64, Type::F64], "r", |b, r| {
                let t = b.op2(Op::Mul, r[0].into(), r[1].into());
                vec![b.op1(Op::Sin, t)]
            });
            let args = vec![q[0].into(), q[1].into()];
            let v = Exp::Vjp { lam: f, args, cotangents: vec![Atom::f64(1.0)], seeds: None, algorithm: None };
            vec![b.emit_all(v, "v")[1].into()]
        });
        let args = vec![p[0].into(), p[1].into()];
        let tangents = vec![Atom::f64(1.0), Atom::f64(0.0)];
        let d = b.emit_all(Exp::Jvp { lam: outer, args, tangents, seeds: None, algorithm: None }, "d");
        vec![d[1].into()]
    });
    let (x, y) = (0.4f64, 1.3f64);
    let out = checked(&program, fun, &[Value::f64(x), Value::f64(y)]);
    let (s, c) = (x * y).sin_cos();
    assert!((out.results[0].floats()[0] + y * y * s).abs() < 1e-14);
    close(&[out.columns[0][0], out.columns[1][0]], &[-y * y * y * c, -2.0 * y * s - y * y * x * c], 1e-13);
}

#[test]
fn reverse_mode_is_the_transpose() {
    let (program, fun) =
        build(&[("xs", vec_f64()), ("ys_bar", vec_f64())], vec![vec_f64(), vec_f64()], |b, p| {
            let lam = b.lam(&[vec_f64()], "v", |b, q| {
                let add = b.lam(&[Type::F64, Type::F64], "x", |b, r| {
                    let t = b.op2(Op::Mul, r[0].into(), r[1].into());
                    vec![b.op2(Op::Add, t, r[1].into())]
                });
                let scan = Soac::Scan {
                    width: i(3),
                    lam: add,
                    neutral: vec![Atom::f64(0.0)],
                    arrays: vec![q[0].into()],
                };
                vec![b.emit(Exp::Soac(scan), "s")]
            });
            let (args, cotangents) = (vec![p[0].into()], vec![p[1].into()]);
            vars(b.emit_all(Exp::Vjp { lam, args, cotangents, seeds: None, algorithm: None }, "v"))
        });
    let (forward, fun_forward) = build(&[("xs", vec_f64())], vec![vec_f64()], |b, q| {
        let add = b.lam(&[Type::F64, Type::F64], "x", |b, r| {
            let t = b.op2(Op::Mul, r[0].into(), r[1].into());
            vec![b.op2(Op::Add, t, r[1].into())]
        });
        let neutral = vec![Atom::f64(0.0)];
        let scan = Soac::Scan { width: i(3), lam: add, neutral, arrays: vec![q[0].into()] };
        vec![b.emit(Exp::Soac(scan), "s")]
    });
    let (xs, bar) = ([0.5, 1.5, -0.7], [1.0, -2.0, 0.25]);
    let out = run(&program, fun, vec![Value::f64s(&xs), Value::f64s(&bar)], &Options::default()).unwrap();
    let matrix = jacobian(&forward, fun_forward, &[Value::f64s(&xs)], &Options::default()).unwrap();
    close(&out.results[1].floats(), &matrix.pull_back(&bar), 1e-14);
    let dot = [0.1, 0.2, 0.3];
    let left = inner(&matrix.push_forward(&dot), &bar);
    assert!((left - inner(&dot, &matrix.pull_back(&bar))).abs() < 1e-14);
}

#[test]
fn single_precision_and_conversions() {
    let (program, fun) = build(&[("x", Type::F32)], vec![Type::F64, Type::I64, Type::F64], |b, p| {
        let y = b.op2(Op::Mul, p[0].into(), p[0].into());
        let z = b.emit(Exp::Prim(Prim::Convert(Scalar::F32, Scalar::F64), vec![y]), "z");
        let n = b.convert(z, Scalar::I64);
        let m = b.convert(n, Scalar::F64);
        vec![z, n, m]
    });
    let x = Value::Scalar(ScalarValue::F32(1.1));
    let out = jacobian(&program, fun, std::slice::from_ref(&x), &Options::default()).unwrap();
    assert_eq!(out.columns, [[2.0 * f64::from(1.1f32), 0.0]]);
    assert_eq!(out.results[0], Value::f64(f64::from(1.1f32 * 1.1f32)));
    let tangent = Value::Scalar(ScalarValue::F32(1.0));
    let out = jvp(&program, fun, &[x], &[tangent], &Options::default()).unwrap();
    // An integer result has no tangent; a float made from it has a zero one.
    assert_eq!(out.tangents, [Value::f64(2.0 * f64::from(1.1f32)), Value::f64(0.0)]);
}

#[test]
fn kinks_are_noticed() {
    let run_at = |op: Op, x: f64, y: f64| {
        let (program, fun) = build(&[("x", Type::F64), ("y", Type::F64)], vec![Type::F64], |b, p| {
            let m = b.op2(op, p[0].into(), p[1].into());
            vec![b.op1(Op::Abs, m)]
        });
        jacobian(&program, fun, &[Value::f64(x), Value::f64(y)], &Options::default()).unwrap()
    };
    assert_eq!(run_at(Op::Min, 1.0, 2.0).kinks, 0);
    assert_eq!(run_at(Op::Min, 1.0, 1.0).kinks, 1);
    assert_eq!(run_at(Op::Sub, 1.0, 1.0).kinks, 1);
    assert_eq!(run_at(Op::Sub, 1.0, 1.0).columns, [[0.0], [0.0]]);
    // Ties: half of the derivative to each argument, or all of it to the first one.
    assert_eq!(run_at(Op::Max, 1.0, 1.0).columns, [[0.5], [0.5]]);
    assert_eq!(run_at(Op::MaxFirst, 1.0, 1.0).columns, [[1.0], [0.0]]);
}

#[test]
fn stopped_gradients_and_custom_rules() {
    let (program, fun) = build(&[("x", Type::F64)], vec![Type::F64, Type::F64], |b, p| {
        let x: Atom = p[0].into();
        let s = b.emit(Exp::StopGradient(x), "s");
        let y = b.op2(Op::Mul, x, s);
        let primal = b.lam(&[Type::F64], "x", |b, q| vec![b.op2(Op::Mul, q[0].into(), q[0].into())]);
        let rule = b.lam(&[Type::F64, Type::F64, Type::F64], "x", |_, _| vec![Atom::f64(100.0)]);
        let z = b.emit(Exp::Custom { primal, rule, args: vec![x], tape: 0 }, "z");
        vec![y, z]
    });
    let out = jacobian(&program, fun, &[Value::f64(3.0)], &Options::default()).unwrap();
    assert_eq!(out.columns, [[3.0, 6.0]]);
}

#[test]
fn perturbed_arguments() {
    let args = [Value::Tuple(vec![Value::f64(1.0), Value::i64(7)]), Value::f64s(&[2.0, 3.0])];
    let moved = perturb(&args, &[1.0, 0.0, -2.0], 0.5);
    assert_eq!(moved, [Value::Tuple(vec![Value::f64(1.5), Value::i64(7)]), Value::f64s(&[2.0, 2.0])]);
}

#[test]
fn a_direction_of_zero_makes_no_nan() {
    let (program, fun) = build(&[("x", Type::F64), ("y", Type::F64)], vec![Type::F64], |b, p| {
        let r = b.op1(Op::Sqrt, p[0].into());
        vec![b.op2(Op::Add, r, p[1].into())]
    });
    let code = Compiled::new(&program);
    let at = [Value::f64(0.0), Value::f64(1.0)];
    let out = directional(&code, fun, &at, &[0.0, 1.0], &Options::default()).unwrap();
    assert_eq!(out.tangent, [1.0]);
    let out = directional(&code, fun, &at, &[1.0, 1.0], &Options::default()).unwrap();
    assert_eq!((out.tangent, out.kinks), (vec![f64::INFINITY], 1));
}
