//! Every instruction on scalars, in modules written by hand.

use super::*;
use pullback_base::RuntimeErrorKind;
use pullback_base::index::Index;
use pullback_kernel::{Message, Order, Text};

/// Calls the function `f` of a module.
pub fn call(executable: &dyn Executable, args: &[u64], results: usize) -> Result<Vec<u64>, RuntimeError> {
    let f = executable.function("f").expect("it is there");
    let mut out = vec![0; results];
    // SAFETY: every test gives arguments of the types of its function.
    unsafe { executable.session().call(f, args, &mut out, None) }.map(|()| out)
}

/// Compares the results of the function `f` of a module.
fn check(make: Make<'_>, module: &Module, args: &[u64], expected: &[u64]) {
    for executable in make(module, Setup::default()) {
        let found = call(&*executable, args, expected.len()).expect("no error");
        assert_eq!(found, expected, "{}", executable.name());
    }
}

fn address<T>(xs: &mut [T]) -> u64 {
    xs.as_mut_ptr().expose_provenance() as u64
}

/// The first function of a module.
pub fn first() -> FunctionId {
    Index::new(0)
}

/// As its name says.
pub fn a_loop_adds_the_elements_of_a_vector(make: Make<'_>) {
    let sum = function("f", &[PTR, I64], |regs, p| {
        let (i, total, x) = (regs.add(I64), regs.add(F64), regs.add(F64));
        let body = vec![
            Ins::Load { to: x, pointer: p[0].into(), index: i.into() },
            of_floats(total, Op::Add, total, x),
        ];
        let code = vec![
            Ins::Set { to: total, value: float(0.0) },
            Ins::For { i, from: int(0), to: p[1].into(), body, order: Order::Given },
        ];
        (vec![total], code)
    });
    let module = module([sum]);
    let mut xs = [1.5, 2.0, -4.25, 8.0];
    for (n, expected) in [(0, 0.0), (1, 1.5), (4, 7.25)] {
        check(make, &module, &[address(&mut xs), n], &floats(&[expected]));
    }
}

/// As its name says.
pub fn a_loop_of_no_iterations_does_nothing_and_bounds_are_read_before_it(make: Make<'_>) {
    let f = function("f", &[I64, I64], |regs, p| {
        let (i, count) = (regs.add(I64), regs.add(I64));
        let body = vec![of_ints(count, Op::Add, count, int(1)), of_ints(p[1], Op::Add, p[1], int(5))];
        let code = vec![
            Ins::Set { to: count, value: int(0) },
            Ins::For { i, from: p[0].into(), to: p[1].into(), body, order: Order::Given },
        ];
        (vec![count, p[1]], code)
    });
    let module = module([f]);
    check(make, &module, &[2, 5], &[3, 20]);
    check(make, &module, &[5, 5], &[0, 5]);
    check(make, &module, &[0, (-3i64) as u64], &[0, (-3i64) as u64]);
}

/// As its name says.
pub fn nested_loops_multiply_matrices(make: Make<'_>) {
    // c[i * n + j] = sum over k of a[i * n + k] * b[k * n + j]
    let f = function("f", &[PTR, PTR, PTR, I64], |regs, p| {
        let (i, j, k) = (regs.add(I64), regs.add(I64), regs.add(I64));
        let (ia, ib, ic) = (regs.add(I64), regs.add(I64), regs.add(I64));
        let (x, y, sum) = (regs.add(F64), regs.add(F64), regs.add(F64));
        let inner = vec![
            of_ints(ia, Op::Mul, i, p[3]),
            of_ints(ia, Op::Add, ia, k),
            of_ints(ib, Op::Mul, k, p[3]),
            of_ints(ib, Op::Add, ib, j),
            Ins::Load { to: x, pointer: p[0].into(), index: ia.into() },
            Ins::Load { to: y, pointer: p[1].into(), index: ib.into() },
            of_floats(x, Op::Mul, x, y),
            of_floats(sum, Op::Add, sum, x),
        ];
        let middle = vec![
            Ins::Set { to: sum, value: float(0.0) },
            Ins::For { i: k, from: int(0), to: p[3].into(), body: inner, order: Order::Given },
            of_ints(ic, Op::Mul, i, p[3]),
            of_ints(ic, Op::Add, ic, j),
            Ins::Store { pointer: p[2].into(), index: ic.into(), value: sum.into(), ty: F64 },
        ];
        let outer = vec![Ins::For { i: j, from: int(0), to: p[3].into(), body: middle, order: Order::Given }];
        (vec![], vec![Ins::For { i, from: int(0), to: p[3].into(), body: outer, order: Order::Given }])
    });
    let n = 37;
    let mut a: Vec<f64> = (0..n * n).map(|k| (k % 11) as f64 - 4.0).collect();
    let mut b: Vec<f64> = (0..n * n).map(|k| (k % 7) as f64 * 0.5).collect();
    let mut expected = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            expected[i * n + j] = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
        }
    }
    for executable in make(&module([f]), Setup::default()) {
        let mut c = vec![f64::NAN; n * n];
        let args = [address(&mut a), address(&mut b), address(&mut c), n as u64];
        call(&*executable, &args, 0).expect("no error");
        assert_eq!(c, expected);
    }
}

/// As its name says.
pub fn while_and_if_count_the_steps_of_collatz(make: Make<'_>) {
    let f = function("f", &[I64], |regs, p| {
        let (n, steps, rest, go, odd) = (p[0], regs.add(I64), regs.add(I64), regs.add(BOOL), regs.add(BOOL));
        let code = vec![
            Ins::Set { to: steps, value: int(0) },
            Ins::While {
                condition: vec![of_ints(go, Op::Ne, n, int(1))],
                test: go.into(),
                body: vec![
                    of_ints(rest, Op::Rem, n, int(2)),
                    of_ints(odd, Op::Eq, rest, int(1)),
                    Ins::If {
                        condition: odd.into(),
                        then: vec![of_ints(n, Op::Mul, n, int(3)), of_ints(n, Op::Add, n, int(1))],
                        otherwise: vec![of_ints(n, Op::Quot, n, int(2))],
                    },
                    of_ints(steps, Op::Add, steps, int(1)),
                ],
            },
        ];
        (vec![steps], code)
    });
    let module = module([f]);
    // 27 takes 111 steps (sequence A006577 of the OEIS).
    check(make, &module, &[1], &[0]);
    check(make, &module, &[27], &[111]);
}

/// Stores, loads, copies and fills with elements of every type.
/// As its name says.
pub fn memory_holds_elements_of_every_type(make: Make<'_>) {
    for s in Scalar::ALL {
        let t = Ty::Scalar(s);
        let (x, y, zero) = (s.from_f64(3.0), s.from_i64(-1), s.zero());
        let f = function("f", &[t], |regs, p| {
            let (a, b, moved) = (regs.add(PTR), regs.add(PTR), regs.add(PTR));
            let loaded: Vec<_> = (0..5).map(|_| regs.add(t)).collect();
            let fill =
                |pointer: Operand, count, value| Ins::Fill { pointer, count: int(count), value, ty: t };
            let load =
                |k: usize, pointer: Operand, index| Ins::Load { to: loaded[k], pointer, index: int(index) };
            let code = vec![
                Ins::Alloc { to: a, count: int(9), ty: t },
                Ins::Alloc { to: b, count: int(9), ty: t },
                fill(b.into(), 9, Operand::Const(y)),
                fill(a.into(), 9, Operand::Const(zero)),
                Ins::Offset { to: moved, pointer: a.into(), index: int(2), ty: t, room: None },
                fill(moved.into(), 3, p[0].into()),
                fill(a.into(), 0, Operand::Const(y)),
                Ins::Store { pointer: moved.into(), index: int(3), value: Operand::Const(x), ty: t },
                Ins::Copy { to: b.into(), from: moved.into(), count: int(4), ty: t },
                // a = 0 0 p p p x 0 0 0, b = p p p x y y y y y
                load(0, b.into(), 2),
                load(1, b.into(), 3),
                load(2, b.into(), 4),
                load(3, a.into(), 1),
                load(4, a.into(), 4),
            ];
            (loaded, code)
        });
        let word = |x: ScalarValue| match x {
            ScalarValue::F32(x) => u64::from(x.to_bits()),
            ScalarValue::F64(x) => x.to_bits(),
            x => x.as_i64() as u64,
        };
        let p = s.from_f64(1.0);
        check(make, &module([f]), &[word(p)], &[word(p), word(x), word(y), word(zero), word(p)]);
    }
}

/// As its name says.
pub fn memory_holds_pointers(make: Make<'_>) {
    let f = function("f", &[PTR, PTR], |regs, p| {
        let (table, inner, x) = (regs.add(PTR), regs.add(PTR), regs.add(F64));
        let code = vec![
            Ins::Alloc { to: table, count: int(3), ty: PTR },
            Ins::Fill { pointer: table.into(), count: int(3), value: Operand::Null, ty: PTR },
            Ins::Store { pointer: table.into(), index: int(1), value: p[0].into(), ty: PTR },
            Ins::Store { pointer: table.into(), index: int(2), value: p[1].into(), ty: PTR },
            Ins::Load { to: inner, pointer: table.into(), index: int(1) },
            Ins::Load { to: x, pointer: inner.into(), index: int(0) },
            Ins::Load { to: inner, pointer: table.into(), index: int(0) },
        ];
        (vec![x, inner], code)
    });
    let (mut x, mut y) = ([2.5], [7.0]);
    check(make, &module([f]), &[address(&mut x), address(&mut y)], &[2.5f64.to_bits(), 0]);
}

/// Results: the two addresses, and how far they are apart.
fn two_allocations(release: bool) -> Function {
    function("f", &[I64, I64], |regs, p| {
        let (mark, a, b) = (regs.add(PTR), regs.add(PTR), regs.add(PTR));
        let mut code = vec![Ins::Mark { to: mark }, Ins::Alloc { to: a, count: p[0].into(), ty: F64 }];
        if release {
            code.push(Ins::Release { mark: mark.into() });
        }
        code.push(Ins::Alloc { to: b, count: p[1].into(), ty: F64 });
        (vec![a, b], code)
    })
}

/// As its name says.
pub fn allocations_are_aligned_and_do_not_overlap_until_they_are_released(make: Make<'_>) {
    for executable in make(&module([two_allocations(false)]), Setup::default()) {
        for n in [0, 1, 8, 9, 1000] {
            let out = call(&*executable, &[n, 5], 2).expect("no error");
            assert_eq!((out[0] % 64, out[1] % 64), (0, 0));
            assert_eq!(out[1] - out[0], (8 * n).next_multiple_of(64));
        }
    }
    for executable in make(&module([two_allocations(true)]), Setup::default()) {
        let mut session = executable.session();
        let mut out = [0; 2];
        // SAFETY: the arguments are numbers.
        unsafe { session.call(first(), &[1000, 5], &mut out, None) }.expect("no error");
        assert_eq!(out[0], out[1]);
        // 8000 bytes is a multiple of 64; the second allocation takes 64.
        assert_eq!(session.peak_bytes(), 8000);
        // SAFETY: as above.
        unsafe { session.call(first(), &[0, 5], &mut out, None) }.expect("no error");
        assert_eq!(session.peak_bytes(), 64);
    }
}

/// What is stored before a release does not come after what is stored later in the same place.
pub fn released_and_reused() -> Module {
    let f = function("f", &[I64], |regs, p| {
        let (mark, a, b) = (regs.add(PTR), regs.add(PTR), regs.add(PTR));
        let (i, sum, x, y) = (regs.add(I64), regs.add(I64), regs.add(I64), regs.add(I64));
        let store = |pointer: Operand, index: i64, value: Operand| Ins::Store {
            pointer,
            index: int(index),
            value,
            ty: I64,
        };
        let body = vec![
            Ins::Release { mark: mark.into() },
            Ins::Alloc { to: a, count: int(2), ty: I64 },
            store(a.into(), 0, i.into()),
            Ins::Load { to: x, pointer: a.into(), index: int(0) },
            of_ints(sum, Op::Add, sum, x),
            Ins::Release { mark: mark.into() },
            Ins::Alloc { to: b, count: int(2), ty: I64 },
            of_ints(y, Op::Add, i, int(100)),
            store(b.into(), 0, y.into()),
        ];
        let code = vec![
            Ins::Mark { to: mark },
            Ins::Set { to: sum, value: int(0) },
            // At least one iteration, which the lines below need.
            Ins::For { i, from: int(0), to: p[0].into(), body, order: Order::Given },
            Ins::Load { to: y, pointer: b.into(), index: int(0) },
        ];
        (vec![sum, y], code)
    });
    module([f])
}

/// As its name says.
pub fn a_release_keeps_accesses_in_order(make: Make<'_>) {
    check(make, &released_and_reused(), &[10], &[45, 109]);
}

/// As its name says.
pub fn too_much_memory_is_a_limit(make: Make<'_>) {
    let setup = Setup { memory: 6400, ..Setup::default() };
    for executable in make(&module([two_allocations(false)]), setup) {
        let message = |n: i64, m: i64| {
            let e = call(&*executable, &[n as u64, m as u64], 2).expect_err("too much");
            assert_eq!(e.kind, RuntimeErrorKind::Limit);
            e.message
        };
        assert!(call(&*executable, &[400, 400], 2).is_ok());
        assert_eq!(
            message(400, 401),
            "out of memory: 3208 more bytes are needed, 3200 are in use, the limit is 6400"
        );
        // 2^61 elements of 8 bytes: the number of bytes is too large for a word.
        assert_eq!(
            message(1 << 61, 1),
            "out of memory: 18446744073709551616 more bytes are needed, 0 are in use, the limit is 6400"
        );
        // The largest number of bytes, which would be 0 when rounded up.
        assert_eq!(
            message((1 << 61) - 1, 1),
            "out of memory: 18446744073709551608 more bytes are needed, 0 are in use, the limit is 6400"
        );
        assert!(call(&*executable, &[400, 400], 2).is_ok());
    }
}

/// `f(i, n)` stops if `i` is negative or not below `n`.
pub fn checked() -> Module {
    let f = function("f", &[I64, I64], |regs, p| {
        let (bad, twice) = (regs.add(BOOL), regs.add(I64));
        let fail = |message: usize| Ins::Fail {
            condition: bad.into(),
            message: pullback_base::index::Index::new(message),
            values: vec![p[0].into(), p[1].into()],
        };
        let code = vec![
            of_ints(bad, Op::Le, p[1], p[0]),
            fail(0),
            of_ints(bad, Op::Lt, p[0], int(0)),
            fail(1),
            of_ints(twice, Op::Mul, p[0], int(2)),
        ];
        (vec![twice], code)
    });
    let mut module = module([f]);
    let kind = RuntimeErrorKind::OutOfBounds;
    module.messages.push(Message { kind, text: Text::Index(1), span: None });
    let (kind, text) = (RuntimeErrorKind::NegativeSize, Text::Plain("{} of {} is negative".to_string()));
    module.messages.push(Message { kind, text, span: None });
    module
}

/// As its name says.
pub fn a_failure_says_what_its_message_says(make: Make<'_>) {
    for executable in make(&checked(), Setup::default()) {
        let fails = |i: i64, n: u64| {
            let e = call(&*executable, &[i as u64, n], 1).expect_err("out of range");
            (e.kind, e.message)
        };
        let text = "index 7 is out of bounds for an array of size 3".to_string();
        assert_eq!(fails(7, 3), (RuntimeErrorKind::OutOfBounds, text));
        assert_eq!(fails(-1, 3), (RuntimeErrorKind::NegativeSize, "-1 of 3 is negative".to_string()));
        assert_eq!(call(&*executable, &[2, 3], 1), Ok(vec![4]));
    }
}

/// As its name says.
pub fn a_failure_in_a_called_function_stops_its_callers(make: Make<'_>) {
    let mut module = checked();
    let mut g = function("g", &[I64], |regs, p| {
        let (i, x, sum) = (regs.add(I64), regs.add(I64), regs.add(I64));
        let body = vec![
            Ins::Call { to: vec![x], function: first(), args: vec![i.into(), p[0].into()] },
            of_ints(sum, Op::Add, sum, x),
        ];
        let code = vec![
            Ins::Set { to: sum, value: int(0) },
            Ins::For { i, from: int(0), to: int(5), body, order: Order::Given },
        ];
        (vec![sum], code)
    });
    // The names are of no matter to calls by number.
    std::mem::swap(&mut g.name, &mut module.functions[first()].name);
    module.functions.push(g);
    for executable in make(&module, Setup::default()) {
        // 2 * (0 + 1 + 2 + 3 + 4)
        assert_eq!(call(&*executable, &[5], 1), Ok(vec![20]));
        let e = call(&*executable, &[3], 1).expect_err("3 is out of range");
        assert_eq!(e.message, "index 3 is out of bounds for an array of size 3");
    }
}

/// `f(n) = n = 0 ? 0 : 1 + f(n - 1)`, with values of all kinds as arguments and results.
fn recursive() -> Module {
    let types = [I64, F64, BOOL, Ty::Scalar(Scalar::I8), Ty::Scalar(Scalar::F32), PTR];
    module([function("f", &types, |regs, p| {
        let (is_zero, less, depth) = (regs.add(BOOL), regs.add(I64), regs.add(I64));
        let others: Vec<_> = types[1..].iter().map(|t| regs.add(*t)).collect();
        let to: Vec<_> = [depth].into_iter().chain(others).collect();
        let given = std::iter::once(less).chain(p[1..].iter().copied()).map(Operand::Reg).collect();
        let mut base: Vec<Ins> =
            to[1..].iter().zip(&p[1..]).map(|(to, p)| Ins::Set { to: *to, value: (*p).into() }).collect();
        base.push(Ins::Set { to: depth, value: int(0) });
        let code = vec![
            of_ints(is_zero, Op::Eq, p[0], int(0)),
            Ins::If {
                condition: is_zero.into(),
                then: base,
                otherwise: vec![
                    of_ints(less, Op::Sub, p[0], int(1)),
                    Ins::Call { to: to.clone(), function: first(), args: given },
                    of_ints(depth, Op::Add, depth, int(1)),
                ],
            },
        ];
        (to, code)
    })])
}

/// As its name says.
pub fn functions_call_themselves_up_to_a_limit(make: Make<'_>) {
    let rest = [1.5f64.to_bits(), 1, (-3i64) as u64, u64::from(2.5f32.to_bits()), 64];
    let with = |n: u64| -> Vec<u64> { [n].into_iter().chain(rest).collect() };
    for executable in make(&recursive(), Setup::default()) {
        assert_eq!(call(&*executable, &with(9_999), 6), Ok(with(9_999)));
        let e = call(&*executable, &with(10_000), 6).expect_err("too many calls");
        assert_eq!((e.kind, &*e.message), (RuntimeErrorKind::Limit, "more than 10000 calls are open (in f)"));
        assert_eq!(call(&*executable, &with(9_999), 6), Ok(with(9_999)));
    }
    // More calls than a stack can hold.
    let setup = Setup { calls: u64::MAX, ..Setup::default() };
    for executable in make(&recursive(), setup) {
        match call(&*executable, &with(1 << 40), 6) {
            Err(e) => assert!(e.message.starts_with("the stack is full: "), "{e}"),
            // Optimisation may have made a loop of it.
            Ok(out) => assert_eq!(out, with(1 << 40)),
        }
    }
}

/// As its name says.
pub fn calls_that_have_ended_are_not_open(make: Make<'_>) {
    let mut module = recursive();
    let types: Vec<Ty> =
        module.functions[first()].params.iter().map(|p| module.functions[first()].regs[*p].ty).collect();
    module.functions.push(function("g", &types, |regs, p| {
        let i = regs.add(I64);
        let to: Vec<_> = types.iter().map(|t| regs.add(*t)).collect();
        let args = p.iter().map(|r| (*r).into()).collect();
        let body = vec![Ins::Call { to: to.clone(), function: first(), args }];
        (to, vec![Ins::For { i, from: int(0), to: int(5000), body, order: Order::Given }])
    }));
    let args = [7, 1.5f64.to_bits(), 1, 3, u64::from(2.5f32.to_bits()), 64];
    for executable in make(&module, Setup::default()) {
        let g = executable.function("g").expect("it is there");
        let mut out = [0; 6];
        // SAFETY: the arguments are of the types of the parameters.
        unsafe { executable.session().call(g, &args, &mut out, None) }.expect("no error");
        assert_eq!(out, args);
    }
}

/// As its name says.
pub fn a_call_can_be_cancelled_and_its_session_be_used_again(make: Make<'_>) {
    // Loops that would take years.
    let forever = function("f", &[I64], |regs, p| {
        let (i, j, k, go) = (regs.add(I64), regs.add(I64), regs.add(I64), regs.add(BOOL));
        let inner = vec![of_ints(k, Op::Xor, k, j), of_ints(k, Op::Mul, k, int(3))];
        let code = vec![
            Ins::Set { to: k, value: int(1) },
            Ins::If {
                condition: Operand::bool(true),
                then: vec![
                    of_ints(go, Op::Eq, p[0], int(0)),
                    Ins::If {
                        condition: go.into(),
                        then: vec![Ins::While {
                            condition: vec![of_ints(k, Op::Mul, k, int(5)), of_ints(go, Op::Ne, k, int(0))],
                            test: go.into(),
                            body: vec![],
                        }],
                        otherwise: vec![Ins::For {
                            i,
                            from: int(0),
                            to: int(i64::MAX),
                            body: vec![Ins::For {
                                i: j,
                                from: int(0),
                                to: p[0].into(),
                                body: inner,
                                order: Order::Given,
                            }],
                            order: Order::Given,
                        }],
                    },
                ],
                otherwise: vec![],
            },
        ];
        (vec![k], code)
    });
    let triple = function("triple", &[I64], |regs, p| {
        let to = regs.add(I64);
        (vec![to], vec![of_ints(to, Op::Mul, p[0], int(3))])
    });
    for executable in make(&module([forever, triple]), Setup::default()) {
        let triple = executable.function("triple").expect("it is there");
        let mut session = executable.session();
        for n in [0, 3] {
            let flag = AtomicBool::new(false);
            let result = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    flag.store(true, std::sync::atomic::Ordering::Relaxed);
                });
                // SAFETY: the argument is a number.
                unsafe { session.call(first(), &[n], &mut [0], Some(&flag)) }
            });
            assert_eq!(result.expect_err("cancelled").kind, RuntimeErrorKind::Cancelled);
            let mut out = [0];
            // SAFETY: the argument is a number.
            unsafe { session.call(triple, &[14], &mut out, None) }.expect("the session is usable");
            assert_eq!(out, [42]);
        }
    }
}

/// As its name says.
pub fn an_executable_is_called_from_many_threads(make: Make<'_>) {
    for executable in make(&module([two_allocations(false)]), Setup::default()) {
        std::thread::scope(|scope| {
            for n in 0..8 {
                let executable = &executable;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let out = call(&**executable, &[n, n], 2).expect("no error");
                        assert_eq!(out[1] - out[0], (8 * n).next_multiple_of(64));
                    }
                });
            }
        });
    }
}
