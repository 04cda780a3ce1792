//! Meaning, errors and step counts of every construct.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod structures;

use crate::builders::{build, i, vars, vec_f64};
use pullback_base::{RuntimeError, RuntimeErrorKind, SourceMap, Span};
use pullback_core::{
    Array, Atom, Body, Buffer, Builder, Exp, Fun, FunId, Lam, Loop, LoopAttrs, LoopForm, Mark, Origin,
    Program, SliceDim, Soac, Stm, Type, TypeDef, Value, Var, VarInfo, Variant, View,
};
use pullback_interp::core::{Compiled, Options, Outcome, run};
use pullback_prim::{Op, Scalar, ScalarValue};
use std::sync::atomic::AtomicBool;

fn vec_i64() -> Type {
    Type::array(Type::I64)
}
fn mat_f64() -> Type {
    Type::array(vec_f64())
}

fn try_run(
    params: &[(&str, Type)],
    results: Vec<Type>,
    args: Vec<Value>,
    f: impl FnOnce(&mut Builder<'_>, &[Var]) -> Vec<Atom>,
) -> Result<Outcome, RuntimeError> {
    let (program, fun) = build(params, results, f);
    let plain = run(&program, fun, args.clone(), &Options::default());
    // Every test is also a test of simulated schedules: same results and same kinds of errors.
    for seed in 0..3 {
        let other =
            run(&program, fun, args.clone(), &Options { schedule_seed: Some(seed), ..Options::default() });
        match (&plain, &other) {
            (Ok(a), Ok(b)) => {
                for (a, b) in a.results.iter().zip(&b.results) {
                    let (x, y) = (a.floats(), b.floats());
                    assert_eq!(x.len(), y.len());
                    for (x, y) in x.iter().zip(&y) {
                        assert!((x - y).abs() <= 1e-12 * (1.0 + x.abs()), "{x} {y}");
                    }
                    if x.is_empty() {
                        assert_eq!(a, b);
                    }
                }
            }
            (Err(a), Err(b)) => assert_eq!(a.kind, b.kind),
            (a, b) => panic!("schedule {seed}: {a:?} against {b:?}"),
        }
    }
    plain
}
fn results(
    params: &[(&str, Type)],
    result: Vec<Type>,
    args: Vec<Value>,
    f: impl FnOnce(&mut Builder<'_>, &[Var]) -> Vec<Atom>,
) -> Vec<Value> {
    try_run(params, result, args, f).unwrap().results
}
fn error(
    params: &[(&str, Type)],
    args: Vec<Value>,
    f: impl FnOnce(&mut Builder<'_>, &[Var]) -> Vec<Atom>,
) -> (RuntimeErrorKind, String) {
    let e = try_run(params, vec![Type::unit()], args, f).unwrap_err();
    (e.kind, e.message)
}
fn slice(start: i64, len: i64, stride: i64) -> SliceDim {
    SliceDim { start: i(start), len: i(len), stride: i(stride) }
}
fn matrix(rows: usize, columns: usize) -> Value {
    let xs: Vec<f64> = (0..rows * columns).map(|k| k as f64).collect();
    Value::f64_array(&[rows, columns], &xs)
}

#[test]
fn scalars_products_and_sums() {
    let option = Type::option(Type::F64);
    let out = results(
        &[("x", Type::F64), ("n", Type::I64)],
        vec![Type::F64, Type::tuple(vec![Type::F64, Type::I64]), option.clone(), Type::unit()],
        vec![Value::f64(2.5), Value::i64(4)],
        |b, p| {
            let t = b.emit(Exp::Tuple(vec![p[0].into(), p[1].into()]), "t");
            let x = b.emit(Exp::Proj(t, 0), "x");
            let y = b.op2(Op::Mul, x, x);
            let s = b.emit(Exp::Inject(option, 1, vec![y]), "s");
            let z =
                b.match_(s, |_, k, payload| vec![if k == 0 { Atom::f64(0.0) } else { payload[0].into() }]);
            let u = b.emit(Exp::Tuple(vec![]), "u");
            vec![z[0].into(), t, s, u]
        },
    );
    assert_eq!(
        out,
        [
            Value::f64(6.25),
            Value::Tuple(vec![Value::f64(2.5), Value::i64(4)]),
            Value::Sum(1, vec![Value::f64(6.25)].into()),
            Value::Tuple(vec![]),
        ]
    );
}

#[test]
fn shape_operations() {
    let out = results(
        &[("a", mat_f64())],
        vec![
            vec_f64(),
            Type::F64,
            mat_f64(),
            mat_f64(),
            mat_f64(),
            mat_f64(),
            vec_f64(),
            mat_f64(),
            mat_f64(),
        ],
        vec![matrix(2, 3)],
        |b, p| {
            let a = p[0].into();
            let row = b.index(a, &[i(1)]);
            let x = b.index(a, &[i(1), i(2)]);
            let t = b.emit(Exp::Rearrange(vec![1, 0], a), "t");
            let s = b.slice(t, i(2), i(2), i(-2));
            let c = b.emit(Exp::Concat(vec![a, a]), "c");
            let r = b.emit(Exp::Reverse(a), "r");
            let flat = b.emit(Exp::Reshape { shape: vec![i(6)], from: 2, array: a }, "flat");
            let rot = b.emit(Exp::Rotate(flat, i(-2)), "rot");
            let deep = b.emit(Exp::Reshape { shape: vec![i(3), i(2)], from: 1, array: rot }, "deep");
            let ix = b.emit(Exp::ArrayLit(Type::I64, vec![i(1), i(1), i(0)]), "ix");
            let g = b.emit(Exp::Gather(a, ix), "g");
            vec![row, x, t, s, c, r, rot, deep, g]
        },
    );
    assert_eq!(out[0], Value::f64s(&[3.0, 4.0, 5.0]));
    assert_eq!(out[1], Value::f64(5.0));
    assert_eq!(out[2], Value::f64_array(&[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    assert_eq!(out[3], Value::f64_array(&[2, 2], &[2.0, 5.0, 0.0, 3.0]));
    assert_eq!(out[4].floats().len(), 12);
    assert_eq!(out[5], Value::f64_array(&[2, 3], &[3.0, 4.0, 5.0, 0.0, 1.0, 2.0]));
    assert_eq!(out[6], Value::f64s(&[4.0, 5.0, 0.0, 1.0, 2.0, 3.0]));
    assert_eq!(out[7], Value::f64_array(&[3, 2], &[4.0, 5.0, 0.0, 1.0, 2.0, 3.0]));
    assert_eq!(out[8], Value::f64_array(&[3, 3], &[3.0, 4.0, 5.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0]));
}

#[test]
fn rearrange_of_three_dimensions_follows_the_permutation() {
    let xs: Vec<f64> = (0..24).map(f64::from).collect();
    let ty = Type::array(mat_f64());
    let args = vec![Value::f64_array(&[2, 3, 4], &xs)];
    let out = results(&[("a", ty.clone())], vec![ty], args, |b, p| {
        vec![b.emit(Exp::Rearrange(vec![2, 0, 1], p[0].into()), "t")]
    });
    let Value::Array(a) = &out[0] else { panic!() };
    assert_eq!(a.shape, [4, 2, 3]);
    for j in 0..4 {
        for k in 0..2 {
            for l in 0..3 {
                assert_eq!(a.at(&[j, k, l]), Value::f64((k * 12 + l * 4 + j) as f64));
            }
        }
    }
}

#[test]
fn updates_keep_the_old_array_where_it_is_used() {
    let out = results(
        &[("a", vec_f64())],
        vec![vec_f64(), vec_f64(), vec_f64()],
        vec![Value::f64s(&[1., 2., 3.])],
        |b, p| {
            let new = b.emit(Exp::Update(p[0].into(), vec![i(1)], Atom::f64(9.0)), "b");
            let tail = b.slice(new, i(1), i(2), i(1));
            let c = b.emit(Exp::UpdateSlice(new, slice(0, 2, 1), tail), "c");
            vec![p[0].into(), new, c]
        },
    );
    assert_eq!(out, [Value::f64s(&[1., 2., 3.]), Value::f64s(&[1., 9., 3.]), Value::f64s(&[9., 3., 3.])]);
    let out = results(&[("a", mat_f64())], vec![mat_f64()], vec![matrix(3, 2)], |b, p| {
        let row = b.index(p[0].into(), &[i(0)]);
        let a = b.emit(Exp::Update(p[0].into(), vec![i(2)], row), "a");
        let two = b.slice(a, i(0), i(2), i(1));
        vec![b.emit(Exp::UpdateSlice(a, slice(2, 2, -1), two), "a")]
    });
    assert_eq!(out[0], Value::f64_array(&[3, 2], &[0., 1., 2., 3., 0., 1.]));
}

#[test]
fn second_order_operations() {
    let out = results(
        &[("xs", vec_f64()), ("is", vec_i64())],
        vec![vec_f64(), Type::F64, vec_f64(), vec_f64(), vec_f64()],
        vec![Value::f64s(&[1., 2., 3., 4.]), Value::i64s(&[1, -1, 1, 7])],
        |b, p| {
            let (n, xs, is) = (i(4), p[0].into(), p[1].into());
            let ys = b.map(n, &[xs], |b, x| vec![b.op2(Op::Mul, x[0].into(), x[0].into())]);
            let sum = b.sum(n, ys[0].into());
            let add = |b: &mut Builder<'_>| {
                b.lam(&[Type::F64, Type::F64], "x", |b, p| vec![b.op2(Op::Add, p[0].into(), p[1].into())])
            };
            let lam = add(b);
            let neutral = vec![Atom::f64(0.0)];
            let scan = Soac::Scan { width: n, lam, neutral: neutral.clone(), arrays: vec![xs] };
            let scan = b.emit(Exp::Soac(scan), "scan");
            let lam = add(b);
            let dst = b.emit(Exp::ArrayLit(Type::F64, vec![Atom::f64(10.0), Atom::f64(20.0)]), "dst");
            let (dst, values) = (vec![dst], vec![xs]);
            let hist = Soac::Hist { width: n, lam, neutral, dst, indices: is, values };
            let hist = b.emit(Exp::Soac(hist), "hist");
            let dst = b.emit(Exp::Replicate(vec![i(3)], Atom::f64(0.0)), "dst");
            let scatter = Soac::Scatter { width: n, dst, indices: is, values: xs };
            let scatter = b.emit(Exp::Soac(scatter), "scatter");
            vec![ys[0].into(), sum, scan, hist, scatter]
        },
    );
    assert_eq!(
        out,
        [
            Value::f64s(&[1., 4., 9., 16.]),
            Value::f64(30.0),
            Value::f64s(&[1., 3., 6., 10.]),
            Value::f64s(&[10., 24.]),
            Value::f64s(&[0., 3., 0.]),
        ]
    );
}

#[test]
fn a_reduction_that_is_not_commutative_keeps_its_order() {
    // Composition of affine maps x -> a x + c, as two arrays.
    let out = results(
        &[("a", vec_f64()), ("c", vec_f64())],
        vec![Type::F64, Type::F64],
        vec![Value::f64s(&[2., 3., 5., 7., 1., 2.]), Value::f64s(&[1., 2., 3., 4., 5., 6.])],
        |b, p| {
            let lam = b.lam(&[Type::F64, Type::F64, Type::F64, Type::F64], "q", |b, q| {
                let [a1, c1, a2, c2] = [q[0].into(), q[1].into(), q[2].into(), q[3].into()];
                let a = b.op2(Op::Mul, a1, a2);
                let t = b.op2(Op::Mul, c1, a2);
                vec![a, b.op2(Op::Add, t, c2)]
            });
            let neutral = vec![Atom::f64(1.0), Atom::f64(0.0)];
            let arrays = vec![p[0].into(), p[1].into()];
            vars(b.emit_all(
                Exp::Soac(Soac::Reduce { width: i(6), lam, neutral, arrays, commutative: false }),
                "r",
            ))
        },
    );
    let (mut a, mut c) = (1.0, 0.0);
    for (x, y) in [2., 3., 5., 7., 1., 2.].into_iter().zip([1., 2., 3., 4., 5., 6.]) {
        (a, c) = (a * x, c * x + y);
    }
    assert_eq!(out, [Value::f64(a), Value::f64(c)]);
}

#[test]
fn loops_collect_and_count() {
    let (program, fun) =
        build(&[("n", Type::I64)], vec![Type::I64, vec_i64(), Type::I64, vec_i64(), Type::I64], |b, p| {
            let f = b.for_loop(p[0].into(), &[i(1)], |b, k, s| {
                let next = b.op2(Op::Add, s[0].into(), k.into());
                vec![next, s[0].into()]
            });
            let s = b.fresh(Type::I64, "s");
            let condition = b.scope(|b| vec![b.op2(Op::Lt, s.into(), i(40))]);
            let body = b.scope(|b| {
                let next = b.op2(Op::Mul, s.into(), i(3));
                vec![next, s.into()]
            });
            let l = Loop {
                params: vec![(s, i(2))],
                form: LoopForm::While(condition),
                body,
                collect: 1,
                attrs: LoopAttrs::default(),
            };
            let w = b.emit_all(Exp::Loop(l), "w");
            vars([f, w].concat())
        });
    let out = run(&program, fun, vec![Value::i64(4)], &Options::default()).unwrap();
    assert_eq!(
        out.results,
        [Value::i64(7), Value::i64s(&[1, 1, 2, 4]), Value::i64(54), Value::i64s(&[2, 6, 18]), Value::i64(3)]
    );
    assert_eq!(out.counts.flops, 4 + 4 + 3);
    // for: 1 + 4 * (test + body); while: 1 + 4 tests with one statement each + 3 bodies.
    assert_eq!(out.counts.work, 1 + 4 * 2 + 1 + 4 * 2 + 3);
    assert_eq!(out.counts.span, out.counts.work);
    // No iteration, also for a negative count.
    let out = run(&program, fun, vec![Value::i64(-2)], &Options::default()).unwrap();
    assert_eq!(out.results[..2], [Value::i64(1), Value::i64s(&[])]);
}

#[test]
fn conditionals_marks_par_and_custom() {
    let out = results(&[("x", Type::F64)], vec![Type::F64; 4], vec![Value::f64(3.0)], |b, p| {
        let x: Atom = p[0].into();
        let c = b.op2(Op::Lt, x, Atom::f64(2.0));
        let r = b.if_(c, |_| vec![Atom::f64(1.0)], |b| vec![b.op2(Op::Add, x, x)]);
        let body = b.scope(|b| vec![b.op2(Op::Mul, x, x)]);
        let m = b.emit(Exp::Marked(Mark::Recompute, body), "m");
        let bodies = vec![b.scope(|_| vec![x]), b.scope(|b| vec![b.op1(Op::Neg, x)])];
        let both = b.emit_all(Exp::Par(bodies), "both");
        let primal = b.lam(&[Type::F64], "x", |b, q| vec![b.op2(Op::Mul, q[0].into(), Atom::f64(2.0))]);
        let rule = b.lam(&[Type::F64, Type::F64, Type::F64], "x", |_, q| vec![q[2].into()]);
        let y = b.emit(Exp::Custom { primal, rule, args: vec![both[1].into()], tape: 0 }, "y");
        let y = b.emit(Exp::StopGradient(y), "y");
        vec![r[0].into(), m, both[0].into(), y]
    });
    assert_eq!(out, [Value::f64(6.0), Value::f64(9.0), Value::f64(3.0), Value::f64(-6.0)]);
}

/// A function `fact` that calls itself.
fn factorial() -> (Program, FunId) {
    build(&[("n", Type::I64)], vec![Type::I64], |b, p| {
        let c = b.op2(Op::Le, p[0].into(), i(0));
        let one = b.scope(|_| vec![i(1)]);
        let rec = b.scope(|b| {
            let m = b.op2(Op::Sub, p[0].into(), i(1));
            let pat = vec![b.fresh(Type::I64, "r")];
            // The function being built has the next id, the first of the program.
            b.emit_to(pat.clone(), Exp::Call(pullback_base::index::Index::new(0), vec![m]));
            vec![b.op2(Op::Mul, p[0].into(), pat[0].into())]
        });
        let pat = vec![b.fresh(Type::I64, "r")];
        b.emit_to(pat.clone(), Exp::If(c, one, rec));
        vars(pat)
    })
}

#[test]
fn recursion_and_its_limit() {
    let (program, fun) = factorial();
    let out = run(&program, fun, vec![Value::i64(10)], &Options::default()).unwrap();
    assert_eq!(out.results, [Value::i64(3_628_800)]);
    let deep = run(&program, fun, vec![Value::i64(9_000)], &Options::default());
    assert!(deep.is_ok());
    let e = run(&program, fun, vec![Value::i64(20_000)], &Options::default()).unwrap_err();
    assert_eq!((e.kind, &*e.message), (RuntimeErrorKind::Limit, "more than 10000 calls are open (in main)"));
}

#[test]
fn errors_have_kinds_values_and_positions() {
    use RuntimeErrorKind as K;
    let xs = || vec![Value::f64s(&[1., 2., 3.])];
    let p1: &[(&str, Type)] = &[("a", vec_f64())];
    let unit = |b: &mut Builder<'_>| b.emit(Exp::Tuple(vec![]), "u");
    let index = |k: i64| {
        move |b: &mut Builder<'_>, p: &[Var]| {
            b.index(p[0].into(), &[i(k)]);
            vec![unit(b)]
        }
    };
    assert_eq!(
        error(p1, xs(), index(7)),
        (K::OutOfBounds, "index 7 is out of bounds for an array of size 3".into())
    );
    assert_eq!(error(p1, xs(), index(-1)).0, K::OutOfBounds);
    let out = error(&[("a", mat_f64())], vec![matrix(2, 3)], |b, p| {
        b.index(p[0].into(), &[i(1), i(3)]);
        vec![unit(b)]
    });
    assert_eq!(out, (K::OutOfBounds, "index [1, 3] is out of bounds for an array of shape [2][3]".into()));
    let out = error(p1, xs(), |b, p| {
        b.emit(Exp::Update(p[0].into(), vec![i(3)], Atom::f64(0.0)), "b");
        vec![unit(b)]
    });
    assert_eq!(out, (K::OutOfBounds, "index 3 is out of bounds for an array of size 3".into()));
    let out = error(p1, xs(), |b, p| {
        b.slice(p[0].into(), i(2), i(2), i(1));
        vec![unit(b)]
    });
    let text = "a slice of 2 elements from index 2 is out of bounds for an array of size 3";
    assert_eq!(out, (K::OutOfBounds, text.into()));
    let out = error(p1, xs(), |b, p| {
        b.slice(p[0].into(), i(0), i(-1), i(1));
        vec![unit(b)]
    });
    assert_eq!(out, (K::NegativeSize, "-1 is not the size of an array".into()));
    let out = error(&[("n", Type::I64)], vec![Value::i64(5)], |b, p| {
        let zero = b.op2(Op::Sub, p[0].into(), p[0].into());
        b.op2(Op::Div, p[0].into(), zero);
        vec![unit(b)]
    });
    assert_eq!(out, (K::DivisionByZero, "division of 5 by zero".into()));
    let out = error(&[], vec![], |b, _| {
        vec![b.emit(Exp::Assert(Atom::bool(false), "n > 0".into(), Vec::new()), "u")]
    });
    assert_eq!(out, (K::AssertFailed, "assertion failed: n > 0".into()));
    let out = error(p1, xs(), |b, p| {
        b.emit(Exp::Reshape { shape: vec![i(2), i(2)], from: 1, array: p[0].into() }, "r");
        vec![unit(b)]
    });
    assert_eq!(out, (K::ShapeMismatch, "reshape: [3] has 3 elements, [2][2] has 4".into()));
    let out = error(p1, xs(), |b, p| {
        let n = b.emit(Exp::Iota(i(2)), "n");
        b.map(i(2), &[n, p[0].into()], |_, q| vec![q[1].into()]);
        vec![unit(b)]
    });
    assert_eq!(out, (K::ShapeMismatch, "arrays of sizes 2 and 3 are combined".into()));
    let out = error(&[], vec![], |b, _| {
        let n = b.emit(Exp::Iota(i(4)), "n");
        b.map(i(4), &[n], |b, q| vec![b.emit(Exp::Iota(q[0].into()), "row")]);
        vec![unit(b)]
    });
    assert_eq!(out, (K::ShapeMismatch, "irregular array: shapes [0] and [1] differ".into()));
    let out = error(p1, xs(), |b, p| {
        let m = b.emit(Exp::ArrayLit(Type::I64, vec![i(0), i(3)]), "m");
        b.emit(Exp::Gather(p[0].into(), m), "g");
        vec![unit(b)]
    });
    assert_eq!(out, (K::OutOfBounds, "index 3 is out of bounds for an array of size 3".into()));
}

#[test]
fn an_error_points_at_the_nearest_statement_with_a_position() {
    let mut sources = SourceMap::new();
    let file = sources.add("test.fut", "0123456789");
    let (program, fun) = build(&[("a", vec_f64())], vec![vec_f64()], |b, p| {
        b.origin.span = Some(Span::new(file, 2, 5));
        let n = b.emit(Exp::Iota(i(9)), "n");
        let array: Atom = p[0].into();
        let lam = b.lam(&[Type::I64], "i", |b, q| {
            b.origin.span = None;
            vec![b.index(array, &[q[0].into()])]
        });
        b.origin.span = Some(Span::new(file, 6, 8));
        vec![b.emit(Exp::Soac(Soac::Map { width: i(9), lam, arrays: vec![n] }), "r")]
    });
    let e = run(&program, fun, vec![Value::f64s(&[0.0])], &Options::default()).unwrap_err();
    assert_eq!(e.span, Some(Span::new(file, 6, 8)));
    assert_eq!(e.message, "index 1 is out of bounds for an array of size 1");
}

#[test]
fn huge_sizes_and_limits_are_errors() {
    let iota = |n: i64| try_run(&[], vec![vec_i64()], vec![], move |b, _| vec![b.emit(Exp::Iota(i(n)), "n")]);
    assert_eq!(iota(1_000_000_000_000_000_000).unwrap_err().kind, RuntimeErrorKind::Limit);
    assert_eq!(iota(-1).unwrap_err().kind, RuntimeErrorKind::NegativeSize);
    let huge = try_run(&[], vec![Type::array(mat_f64())], vec![], |b, _| {
        let shape = vec![i(i64::MAX), i(i64::MAX), i(16)];
        vec![b.emit(Exp::Replicate(shape, Atom::f64(1.0)), "n")]
    });
    assert_eq!(huge.unwrap_err().kind, RuntimeErrorKind::Limit);
    // A product with a zero is empty, however large the other sizes.
    let empty = try_run(&[], vec![Type::array(mat_f64())], vec![], |b, _| {
        let shape = vec![i(i64::MAX), i(0), i(i64::MAX)];
        vec![b.emit(Exp::Replicate(shape, Atom::f64(1.0)), "n")]
    });
    assert_eq!(empty.unwrap().results[0].floats().len(), 0);
    let wide = try_run(&[], vec![vec_i64()], vec![], |b, _| {
        let width = i(1_000_000_000_000_000);
        let lam = b.lam(&[], "x", |_, _| vec![i(1)]);
        vec![b.emit(Exp::Soac(Soac::Map { width, lam, arrays: vec![] }), "n")]
    });
    assert_eq!(wide.unwrap_err().kind, RuntimeErrorKind::Limit);
}

#[test]
fn work_limit_cancel_and_progress() {
    let (program, fun) = build(&[("n", Type::I64)], vec![Type::I64], |b, p| {
        vars(b.for_loop(p[0].into(), &[i(0)], |b, k, s| vec![b.op2(Op::Add, s[0].into(), k.into())]))
    });
    let args = vec![Value::i64(i64::MAX)];
    let limited = Options { work_limit: 100_000, ..Options::default() };
    let e = run(&program, fun, args.clone(), &limited).unwrap_err();
    assert_eq!((e.kind, &*e.message), (RuntimeErrorKind::Limit, "the limit of 100000 steps is reached"));
    let cancel = AtomicBool::new(true);
    let cancelled = Options { cancel: Some(&cancel), ..Options::default() };
    assert_eq!(run(&program, fun, args.clone(), &cancelled).unwrap_err().kind, RuntimeErrorKind::Cancelled);
    let seen = std::cell::Cell::new(0);
    let watch = |work| seen.set(work);
    let watched = Options { progress: Some(&watch), ..limited };
    run(&program, fun, args, &watched).unwrap_err();
    assert!(seen.get() > 0);
}

fn loop_of_updates() -> (Program, FunId) {
    build(&[("n", Type::I64)], vec![vec_f64()], |b, p| {
        let a = b.emit(Exp::Replicate(vec![p[0].into()], Atom::f64(0.0)), "a");
        vars(b.for_loop(p[0].into(), &[a], |b, k, s| {
            let x = b.index(s[0].into(), &[k.into()]);
            let y = b.op2(Op::Add, x, Atom::f64(1.0));
            vec![b.emit(Exp::Update(s[0].into(), vec![k.into()], y), "a")]
        }))
    })
}

#[test]
fn an_update_at_the_last_use_is_in_place() {
    let (program, fun) = loop_of_updates();
    let out = run(&program, fun, vec![Value::i64(200_000)], &Options::default()).unwrap();
    assert_eq!(out.counts.copied_cells, 0);
    assert_eq!(out.counts.work, 2 + 200_000 + 4 * 200_000);
    assert_eq!(out.counts.peak_bytes, 8 * 200_000);
    assert_eq!(out.counts.zero_cells, 200_000);
    assert_eq!(out.results[0].floats(), vec![1.0; 200_000]);
}

#[test]
fn without_writes_in_place_every_write_copies() {
    let (program, fun) = loop_of_updates();
    let copying = Options { in_place: false, ..Options::default() };
    let out = run(&program, fun, vec![Value::i64(20)], &copying).unwrap();
    assert_eq!(out.counts.copied_cells, 20 * 20);
    assert_eq!(out.results[0].floats(), vec![1.0; 20]);
}

#[test]
fn an_argument_that_is_used_again_is_copied_once() {
    let (program, fun) = build(&[("a", vec_f64())], vec![vec_f64(), vec_f64()], |b, p| {
        let x = b.emit(Exp::Update(p[0].into(), vec![i(0)], Atom::f64(5.0)), "x");
        let y = b.emit(Exp::Update(x, vec![i(1)], Atom::f64(6.0)), "y");
        vec![p[0].into(), y]
    });
    let out = run(&program, fun, vec![Value::f64s(&[1.0; 50])], &Options::default()).unwrap();
    assert_eq!(out.counts.copied_cells, 50);
    assert_eq!(out.counts.work, 2 + 50);
    assert_eq!(out.results[1].floats()[..3], [5.0, 6.0, 1.0]);
}

#[test]
fn a_branch_that_does_not_use_an_array_frees_it() {
    // In the other branch the array is updated in place, also under a row view that died before.
    let (program, fun) = build(&[("c", Type::BOOL)], vec![mat_f64()], |b, p| {
        let a = b.emit(Exp::Replicate(vec![i(3), i(4)], Atom::f64(1.0)), "a");
        let row = b.index(a, &[i(1)]);
        let x = b.index(row, &[i(0)]);
        let a2 = a;
        let r = b.if_(
            p[0].into(),
            |b| vec![b.emit(Exp::Update(a2, vec![i(0), i(0)], x), "b")],
            |b| vec![b.emit(Exp::Replicate(vec![i(3), i(4)], Atom::f64(2.0)), "b")],
        );
        vars(r)
    });
    let yes = run(&program, fun, vec![Value::Scalar(ScalarValue::Bool(true))], &Options::default()).unwrap();
    assert_eq!(yes.counts.copied_cells, 0);
    let no = run(&program, fun, vec![Value::Scalar(ScalarValue::Bool(false))], &Options::default()).unwrap();
    assert_eq!(no.counts.peak_bytes, 8 * 12);
}
