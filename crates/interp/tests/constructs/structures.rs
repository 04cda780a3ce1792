//! Accumulators, empty arrays, values in arrays, derivatives inside programs, frames and depth.

use super::*;

/// The shapes of values; none for those that are no arrays.
fn shapes(values: &[Value]) -> Vec<Vec<usize>> {
    let shape = |value: &Value| match value {
        Value::Array(a) => a.shape.clone(),
        _ => vec![],
    };
    values.iter().map(shape).collect()
}

#[test]
fn accumulators_and_views() {
    let out = results(
        &[("a", vec_f64()), ("m", mat_f64()), ("xs", vec_f64())],
        vec![vec_f64(), mat_f64(), Type::F64],
        vec![Value::f64s(&[0.0; 4]), matrix(2, 3), Value::f64s(&[1., 2., 3.])],
        |b, p| {
            let xs: Atom = p[2].into();
            let inits = [p[0].into(), p[1].into(), Atom::f64(0.5)];
            vars(b.with_acc(&inits, |b, acc| {
                let (a, m, s): (Atom, Atom, Atom) = (acc[0].into(), acc[1].into(), acc[2].into());
                let is = b.emit(Exp::Iota(i(3)), "is");
                b.map(i(3), &[is, xs], |b, q| {
                    // Twice the position: 0, 2, and 4, which is out of range and ignored.
                    let k = b.op2(Op::Mul, q[0].into(), i(2));
                    b.emit(Exp::AccAdd(a, vec![k], q[1].into()), "u");
                    b.emit(Exp::AccAdd(a, vec![i(-1)], q[1].into()), "u");
                    vec![b.emit(Exp::AccAdd(s, vec![], q[1].into()), "u")]
                });
                let reversed = b.emit(Exp::AccView(a, View::Reverse), "v");
                b.emit(Exp::AccAdd(reversed, vec![i(0)], Atom::f64(100.0)), "u");
                let t = b.emit(Exp::AccView(m, View::Rearrange(vec![1, 0])), "t");
                let flat = b.emit(Exp::AccView(t, View::Reshape { shape: vec![i(6)], from: 2 }), "f");
                let rot = b.emit(Exp::AccView(flat, View::Rotate(i(1))), "r");
                // Element 1 of the transposed matrix in row-major order is m[1][0].
                b.emit(Exp::AccAdd(rot, vec![i(0)], Atom::f64(1000.0)), "u");
                let row = b.emit(Exp::AccView(m, View::Index(vec![i(0)])), "row");
                let part = b.emit(Exp::AccView(row, View::Slice(slice(2, 2, -2))), "part");
                let two = b.emit(Exp::ArrayLit(Type::F64, vec![Atom::f64(0.25), Atom::f64(0.5)]), "two");
                b.emit(Exp::AccAdd(part, vec![], two), "u");
                let nowhere = b.emit(Exp::AccView(m, View::Index(vec![i(2)])), "no");
                b.emit(Exp::AccAdd(nowhere, vec![i(0)], Atom::f64(7.0)), "u");
                b.emit(Exp::AccAdd(m, vec![i(1)], xs), "u");
                vec![]
            }))
        },
    );
    assert_eq!(out[0], Value::f64s(&[1., 0., 2., 100.]));
    assert_eq!(out[1], Value::f64_array(&[2, 3], &[0.5, 1., 2.25, 1004., 6., 8.]));
    assert_eq!(out[2], Value::f64(6.5));
}

#[test]
fn accumulators_of_products_and_sums() {
    let option = Type::option(vec_f64());
    let pair = Type::tuple(vec![vec_f64(), option.clone()]);
    let out = results(&[("x", vec_f64())], vec![pair], vec![Value::f64s(&[1., 2.])], |b, p| {
        let none = b.emit(Exp::Inject(option.clone(), 0, vec![]), "none");
        let init = b.emit(Exp::Tuple(vec![p[0].into(), none]), "init");
        vars(b.with_acc(&[init], |b, acc| {
            let first = b.emit(Exp::AccView(acc[0].into(), View::Proj(0)), "first");
            let second = b.emit(Exp::AccView(acc[0].into(), View::Proj(1)), "second");
            let some = b.emit(Exp::Inject(option.clone(), 1, vec![p[0].into()]), "some");
            b.emit(Exp::AccAdd(first, vec![i(1)], Atom::f64(10.0)), "u");
            b.emit(Exp::AccAdd(second, vec![], some), "u");
            b.emit(Exp::AccAdd(second, vec![], some), "u");
            vec![]
        }))
    });
    let twice = Value::Sum(1, vec![Value::f64s(&[2., 4.])].into());
    assert_eq!(out[0], Value::Tuple(vec![Value::f64s(&[1., 12.]), twice]));
}

#[test]
fn plus_of_cotangents() {
    let option = Type::option(Type::F64);
    let ty = Type::tuple(vec![Type::I64, vec_f64(), option.clone(), option.clone()]);
    let some = |x: f64| Value::Sum(1, vec![Value::f64(x)].into());
    let none = || Value::Sum(0, vec![].into());
    let value = |n, xs: &[f64], a, b| Value::Tuple(vec![Value::i64(n), Value::f64s(xs), a, b]);
    let args = vec![value(1, &[1., 2.], some(1.5), none()), value(5, &[10., 20.], some(2.5), some(4.0))];
    let out = results(&[("x", ty.clone()), ("y", ty.clone())], vec![ty], args, |b, p| {
        vec![b.emit(Exp::Plus(p[0].into(), p[1].into()), "z")]
    });
    assert_eq!(out[0], value(1, &[11., 22.], some(4.0), some(4.0)));
    let e = error(
        &[("x", vec_f64()), ("y", vec_f64())],
        vec![Value::f64s(&[1.]), Value::f64s(&[1., 2.])],
        |b, p| {
            b.emit(Exp::Plus(p[0].into(), p[1].into()), "z");
            vec![b.emit(Exp::Tuple(vec![]), "u")]
        },
    );
    assert_eq!(
        e,
        (RuntimeErrorKind::ShapeMismatch, "addition of cotangents: shapes [1] and [2] differ".into())
    );
}

#[test]
fn empty_arrays_everywhere() {
    let out = results(
        &[("xs", vec_f64()), ("m", mat_f64())],
        vec![mat_f64(), Type::F64, vec_f64(), vec_f64(), mat_f64(), mat_f64(), mat_f64(), vec_f64()],
        vec![Value::f64s(&[]), Value::f64_array(&[0, 3], &[])],
        |b, p| {
            let (xs, m): (Atom, Atom) = (p[0].into(), p[1].into());
            let rows = b.map(i(0), &[xs], |b, q| vec![b.emit(Exp::Replicate(vec![i(3)], q[0].into()), "r")]);
            let sum = b.sum(i(0), xs);
            let lam =
                b.lam(&[Type::F64, Type::F64], "x", |b, q| vec![b.op2(Op::Add, q[0].into(), q[1].into())]);
            let scan = Soac::Scan { width: i(0), lam, neutral: vec![Atom::f64(0.0)], arrays: vec![xs] };
            let scan = b.emit(Exp::Soac(scan), "s");
            let rev = b.emit(Exp::Reverse(xs), "r");
            let rot = b.emit(Exp::Rotate(m, i(5)), "rot");
            let t = b.emit(Exp::Rearrange(vec![1, 0], m), "t");
            let c = b.emit(Exp::Concat(vec![rows[0].into(), m]), "c");
            let s = b.slice(xs, i(0), i(0), i(-1));
            vec![rows[0].into(), sum, scan, rev, rot, t, c, s]
        },
    );
    assert_eq!(
        shapes(&out),
        [vec![0, 3], vec![], vec![0], vec![0], vec![0, 3], vec![3, 0], vec![0, 3], vec![0]]
    );
    assert_eq!(out[1], Value::f64(0.0));
}

#[test]
fn sizes_inside_empty_results_are_found_where_possible() {
    let cube = Type::array(mat_f64());
    let out = results(
        &[("m", mat_f64()), ("k", Type::I64)],
        vec![mat_f64(), cube, mat_f64(), mat_f64(), mat_f64()],
        vec![Value::f64_array(&[0, 3], &[]), Value::i64(4)],
        |b, p| {
            let (m, k): (Atom, Atom) = (p[0].into(), p[1].into());
            // Rows of an empty matrix, twice as long, mapped.
            let long = b.map(i(0), &[m], |b, q| {
                let two = b.emit(Exp::Concat(vec![q[0].into(), q[0].into()]), "two");
                vars(b.map(i(6), &[two], |b, r| vec![b.op1(Op::Sin, r[0].into())]))
            });
            // A size computed from outside, under a branch and a call-free loop.
            let deep = b.map(i(0), &[m], |b, q| {
                let n = b.op2(Op::Add, k, i(1));
                let x = b.index(q[0].into(), &[i(0)]);
                let c = b.op2(Op::Lt, x, Atom::f64(0.0));
                let row = b.if_(
                    c,
                    |b| vec![b.emit(Exp::Replicate(vec![n], x), "row")],
                    |b| vec![b.emit(Exp::Replicate(vec![n], Atom::f64(1.0)), "row")],
                );
                let l = b.for_loop(i(2), &[row[0].into()], |_, _, s| vec![s[0].into(), s[0].into()]);
                vec![l[1].into()]
            });
            // A size that depends on the element: unknown.
            let unknown = b.map(i(0), &[m], |b, q| {
                let x = b.index(q[0].into(), &[i(0)]);
                let n = b.convert(x, Scalar::I64);
                vec![b.emit(Exp::Replicate(vec![n], x), "row")]
            });
            let tape = b.for_loop(i(0), &[long[0].into()], |b, _, s| {
                vec![s[0].into(), b.emit(Exp::Replicate(vec![k], Atom::f64(0.0)), "row")]
            });
            let t = b.emit(Exp::Rearrange(vec![1, 0], tape[1].into()), "t");
            vec![long[0].into(), deep[0].into(), unknown[0].into(), tape[1].into(), t]
        },
    );
    assert_eq!(shapes(&out), [vec![0, 6], vec![0, 2, 5], vec![0, 0], vec![0, 4], vec![4, 0]]);
}

fn list_type(program: &mut Program) -> Type {
    let id = program.types.push(TypeDef { name: "list".into(), variants: vec![] });
    let list = Type::Named(id);
    program.types[id].variants = vec![
        Variant { name: "nil".into(), fields: vec![] },
        Variant { name: "cons".into(), fields: vec![Type::F64, list.clone()] },
    ];
    list
}

#[test]
fn deep_values_are_dropped_without_recursion() {
    let mut program = Program::default();
    let list = list_type(&mut program);
    let fun = Builder::function(&mut program, "deep", &[("n", Type::I64)], vec![list.clone()], |b, p| {
        let nil = b.emit(Exp::Inject(list.clone(), 0, vec![]), "nil");
        vars(b.for_loop(p[0].into(), &[nil], |b, _, s| {
            vec![b.emit(Exp::Inject(list.clone(), 1, vec![Atom::f64(1.0), s[0].into()]), "cons")]
        }))
    });
    let out = run(&program, fun, vec![Value::i64(1_900)], &Options::default()).unwrap();
    assert_eq!(out.results[0].floats().len(), 1_900);
    let e = run(&program, fun, vec![Value::i64(1_000_000)], &Options::default()).unwrap_err();
    assert_eq!(
        (e.kind, &*e.message),
        (RuntimeErrorKind::Limit, "a result is nested more than 2000 levels deep")
    );
}

#[test]
fn arrays_of_sums() {
    let option = Type::option(Type::F64);
    let ty = Type::array(option.clone());
    let out = results(&[("n", Type::I64)], vec![ty, Type::F64], vec![Value::i64(4)], |b, p| {
        let is = b.emit(Exp::Iota(p[0].into()), "is");
        let opts = b.map(p[0].into(), &[is], |b, q| {
            let c = b.op2(Op::Lt, q[0].into(), i(2));
            let x = b.convert(q[0].into(), Scalar::F64);
            let r = b.if_(
                c,
                |b| vec![b.emit(Exp::Inject(option.clone(), 0, vec![]), "o")],
                |b| vec![b.emit(Exp::Inject(option.clone(), 1, vec![x]), "o")],
            );
            vars(r)
        });
        let o: Atom = opts[0].into();
        let three = b.index(o, &[i(3)]);
        let o = b.emit(Exp::Update(o, vec![i(0)], three), "o");
        let xs = b.map(p[0].into(), &[o], |b, q| {
            let r = b.match_(q[0].into(), |_, k, f| vec![if k == 0 { Atom::f64(0.5) } else { f[0].into() }]);
            vars(r)
        });
        let sum = b.sum(p[0].into(), xs[0].into());
        vec![o, sum]
    });
    let some = |x: f64| Value::Sum(1, vec![Value::f64(x)].into());
    let boxed = Buffer::Boxed(vec![some(3.0), Value::Sum(0, vec![].into()), some(2.0), some(3.0)]);
    assert_eq!(out, [Value::Array(Array::new(vec![4], boxed)), Value::f64(8.5)]);
}

#[test]
fn work_and_span_of_parallel_operations() {
    let (program, fun) = build(&[("xs", vec_f64())], vec![Type::F64], |b, p| {
        let n = b.size(p[0].into(), 0);
        let ys = b.map(n, &[p[0].into()], |b, q| {
            let y = b.op2(Op::Mul, q[0].into(), q[0].into());
            vec![b.op1(Op::Sin, y)]
        });
        vec![b.sum(n, ys[0].into())]
    });
    let out = run(&program, fun, vec![Value::f64s(&[0.1; 1024])], &Options::default()).unwrap();
    // size, map statement, 1024 * (iteration + 2 statements), reduce statement, 1024 * (iteration + 1 statement).
    assert_eq!(out.counts.work, 2 + 1024 * 3 + 1 + 1024 * 2);
    // size, map + 2, reduce + a tree of depth 11 (1024 values and the neutral element).
    assert_eq!(out.counts.span, 1 + 1 + 2 + 1 + 11);
}

#[test]
fn shadowed_uses_in_loops_keep_outer_arrays() {
    // The outer array is read in every iteration although the loop is its last use.
    let out =
        results(&[("a", vec_f64())], vec![Type::F64, vec_f64()], vec![Value::f64s(&[1., 2., 3.])], |b, p| {
            let a = b.emit(Exp::Update(p[0].into(), vec![i(0)], Atom::f64(4.0)), "a");
            let s = b.for_loop(i(3), &[Atom::f64(0.0), a], |b, k, s| {
                let x = b.index(a, &[k.into()]);
                let next = b.op2(Op::Add, s[0].into(), x);
                let c = b.emit(Exp::Update(s[1].into(), vec![k.into()], Atom::f64(0.0)), "c");
                vec![next, c]
            });
            vars(s)
        });
    assert_eq!(out, [Value::f64(9.0), Value::f64s(&[0., 0., 0.])]);
}

#[test]
fn one_variable_may_be_the_first_state_and_the_number_of_iterations_of_a_loop() {
    let out = results(&[("n", Type::I64)], vec![Type::I64], vec![Value::i64(3)], |b, p| {
        let n: Atom = p[0].into();
        vars(b.for_loop(n, &[n], |b, k, s| vec![b.op2(Op::Add, s[0].into(), k.into())]))
    });
    // 3 + 0 + 1 + 2
    assert_eq!(out, [Value::i64(6)]);
}

#[test]
fn one_variable_may_be_the_index_and_the_value_of_an_accumulation() {
    let out = results(&[("k", Type::I64)], vec![vec_i64()], vec![Value::i64(1)], |b, p| {
        let k: Atom = p[0].into();
        let init = b.emit(Exp::Replicate(vec![i(3)], i(7)), "init");
        vars(b.with_acc(&[init], |b, acc| {
            b.emit(Exp::AccAdd(acc[0].into(), vec![k], k), "done");
            Vec::new()
        }))
    });
    let Value::Array(a) = &out[0] else { panic!("an array") };
    // Integers do not add: the first one stays.
    assert_eq!(a.elements().collect::<Vec<_>>(), [Value::i64(7), Value::i64(7), Value::i64(7)]);
}

#[test]
fn derivatives_inside_programs() {
    let out = results(
        &[("x", Type::F64), ("xs", vec_f64())],
        vec![Type::F64, Type::F64, Type::F64, vec_f64()],
        vec![Value::f64(2.0), Value::f64s(&[1., 2., 3.])],
        |b, p| {
            let cube = |b: &mut Builder<'_>| -> Lam {
                b.lam(&[Type::F64], "x", |b, q| {
                    let y = b.op2(Op::Mul, q[0].into(), q[0].into());
                    vec![b.op2(Op::Mul, y, q[0].into())]
                })
            };
            let lam = cube(b);
            let j = b.emit_all(
                Exp::Jvp {
                    lam,
                    args: vec![p[0].into()],
                    tangents: vec![Atom::f64(1.0)],
                    seeds: None,
                    algorithm: None,
                },
                "j",
            );
            let xs: Atom = p[1].into();
            let x: Atom = p[0].into();
            let lam = b.lam(&[vec_f64()], "v", |b, q| {
                let ys = b.map(i(3), &[q[0].into(), xs], |b, r| {
                    let t = b.op2(Op::Mul, r[0].into(), r[1].into());
                    vec![b.op2(Op::Mul, t, x)]
                });
                vec![b.sum(i(3), ys[0].into())]
            });
            let v = b.emit_all(
                Exp::Vjp {
                    lam,
                    args: vec![xs],
                    cotangents: vec![Atom::f64(10.0)],
                    seeds: None,
                    algorithm: None,
                },
                "v",
            );
            vec![j[0].into(), j[1].into(), v[0].into(), v[1].into()]
        },
    );
    assert_eq!(out, [Value::f64(8.0), Value::f64(12.0), Value::f64(28.0), Value::f64s(&[20., 40., 60.])]);
}

#[test]
fn arguments_of_wrong_types_are_refused() {
    let (program, fun) = loop_of_updates();
    for args in [vec![], vec![Value::f64(1.0)], vec![Value::i64s(&[1])]] {
        assert_eq!(
            run(&program, fun, args, &Options::default()).unwrap_err().kind,
            RuntimeErrorKind::Internal
        );
    }
    let code = Compiled::new(&program);
    assert!(code.run(fun, &[Value::i64(3)], &Options::default()).is_ok());
}

#[test]
fn one_array_in_several_operands() {
    let ints = || vec![Value::i64s(&[2, 0, 1])];
    let run1 = |f: fn(&mut Builder<'_>, Atom) -> Vec<Atom>| {
        results(&[("a", vec_i64())], vec![vec_i64()], ints(), |b, p| {
            // A value of the program, so that it is used up here.
            let a = b.emit(Exp::Concat(vec![p[0].into()]), "a");
            f(b, a)
        })
        .remove(0)
    };
    let gathered = run1(|b, a| vec![b.emit(Exp::Gather(a, a), "r")]);
    assert_eq!(gathered, Value::i64s(&[1, 2, 0]));
    let scattered = run1(|b, a| {
        vec![b.emit(Exp::Soac(Soac::Scatter { width: i(3), dst: a, indices: a, values: a }), "r")]
    });
    assert_eq!(scattered, Value::i64s(&[0, 1, 2]));
    let updated = run1(|b, a| vec![b.emit(Exp::UpdateSlice(a, slice(2, 3, -1), a), "r")]);
    assert_eq!(updated, Value::i64s(&[1, 0, 2]));
    let mapped = run1(|b, a| {
        vars(b.map(i(3), &[a, a], |b, q| {
            let x = b.index(a, &[q[0].into()]);
            vec![b.op2(Op::Add, x, q[1].into())]
        }))
    });
    assert_eq!(mapped, Value::i64s(&[3, 2, 1]));
    let counted = run1(|b, a| {
        let lam = b.lam(&[Type::I64, Type::I64], "x", |b, q| vec![b.op2(Op::Add, q[0].into(), q[1].into())]);
        let (neutral, dst, values) = (vec![i(0)], vec![a], vec![a]);
        vec![b.emit(Exp::Soac(Soac::Hist { width: i(3), lam, neutral, dst, indices: a, values }), "r")]
    });
    assert_eq!(counted, Value::i64s(&[2, 1, 3]));
    let floats =
        results(&[("a", vec_f64())], vec![vec_f64(), Type::F64], vec![Value::f64s(&[1., 2.])], |b, p| {
            let a = b.emit(Exp::Concat(vec![p[0].into(), p[0].into()]), "a");
            let a = b.emit(Exp::Plus(a, a), "a");
            vars(b.with_acc(&[a], |b, acc| {
                b.emit(Exp::AccAdd(acc[0].into(), vec![], a), "u");
                vec![b.index(a, &[i(1)])]
            }))
        });
    assert_eq!(floats, [Value::f64s(&[4., 8., 4., 8.]), Value::f64(4.0)]);
}

#[test]
fn rows_are_scattered_to_no_rows_of_any_size() {
    let scattered = |rows: usize| {
        let args = vec![Value::f64_array(&[rows, 0], &[]), Value::f64_array(&[2, 1], &[5.0, 6.0])];
        try_run(&[("dst", mat_f64()), ("rows", mat_f64())], vec![mat_f64()], args, |b, p| {
            let dst = b.emit(Exp::Concat(vec![p[0].into()]), "dst");
            let is = b.emit(Exp::Iota(i(2)), "is");
            let scatter = Soac::Scatter { width: i(2), dst, indices: is, values: p[1].into() };
            vec![b.emit(Exp::Soac(scatter), "r")]
        })
    };
    let Value::Array(none) = scattered(0).unwrap().results.remove(0) else { panic!("an array") };
    assert_eq!(none.shape[0], 0);
    assert_eq!(scattered(3).unwrap_err().kind, RuntimeErrorKind::ShapeMismatch);
}

#[test]
fn recursive_calls_have_frames_of_their_own() {
    // After the inner call returns, the outer frame still has its array.
    let (program, fun) = build(&[("a", vec_i64()), ("n", Type::I64)], vec![Type::I64], |b, p| {
        let c = b.op2(Op::Le, p[1].into(), i(0));
        let stop = b.scope(|b| vec![b.index(p[0].into(), &[i(0)])]);
        let go = b.scope(|b| {
            let m = b.op2(Op::Sub, p[1].into(), i(1));
            let next = b.emit(Exp::Update(p[0].into(), vec![i(0)], m), "next");
            let pat = vec![b.fresh(Type::I64, "r")];
            b.emit_to(pat.clone(), Exp::Call(pullback_base::index::Index::new(0), vec![next, m]));
            let x = b.index(p[0].into(), &[i(0)]);
            vec![b.op2(Op::Add, x, pat[0].into())]
        });
        let pat = vec![b.fresh(Type::I64, "r")];
        b.emit_to(pat.clone(), Exp::If(c, stop, go));
        vars(pat)
    });
    let out = run(&program, fun, vec![Value::i64s(&[10]), Value::i64(3)], &Options::default()).unwrap();
    // 10 + 2 + 1 + 0.
    assert_eq!(out.results, [Value::i64(13)]);
}

#[test]
fn loop_tapes_of_rows_and_irregular_tapes() {
    let collect = |f: fn(&mut Builder<'_>, Var) -> Atom| {
        try_run(&[], vec![Type::I64, Type::array(vec_i64())], vec![], |b, _| {
            vars(b.for_loop(i(3), &[i(0)], |b, k, s| {
                let row = f(b, k);
                vec![s[0].into(), row]
            }))
        })
    };
    let regular = collect(|b, k| b.emit(Exp::Replicate(vec![i(2)], k.into()), "row")).unwrap();
    let expected = Array::new(vec![3, 2], Buffer::I64(vec![0, 0, 1, 1, 2, 2]));
    assert_eq!(regular.results[1], Value::Array(expected));
    let e = collect(|b, k| b.emit(Exp::Iota(k.into()), "row")).unwrap_err();
    assert_eq!(e.kind, RuntimeErrorKind::ShapeMismatch);
}

#[test]
fn deeply_nested_bodies_run() {
    let mut program = Program::default();
    let var = |program: &mut Program| {
        let info = VarInfo { ty: Type::I64, hint: "x".into(), origin: Origin::default() };
        program.vars.push(info)
    };
    let p = var(&mut program);
    let mut body = Body { stms: vec![], result: vec![p.into()] };
    for _ in 0..20_000 {
        let v = var(&mut program);
        let other = Body { stms: vec![], result: vec![i(0)] };
        let exp = Exp::If(Atom::bool(true), body, other);
        body = Body { stms: vec![Stm { pat: vec![v], exp }], result: vec![v.into()] };
    }
    let fun = Fun { name: "deep".into(), params: vec![p], body, results: vec![Type::I64], entry: None };
    let fun = program.funs.push(fun);
    let out = run(&program, fun, vec![Value::i64(5)], &Options::default()).unwrap();
    assert_eq!(out.results, [Value::i64(5)]);
    assert_eq!(out.counts.work, 20_000);
    // Dropping the program itself is not what is tested here.
    std::mem::forget(program);
}
