//! Lanes as machine code, and what it may change about floats.

#![allow(unsafe_code, reason = "compiled code is called with words")]

use crate::common;

use crate::common::*;
use pullback_cpu::{Executable, Options};
use pullback_kernel::{Function, Ins, Module, Ty};
use pullback_llvm::{Floats, text};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::conformance::float;

#[test]
fn random_functions_of_lanes_do_what_the_reference_executor_does() {
    common::conformance::random_functions_of_lanes_do_what_the_reference_executor_does(
        &common::make,
        &[2, 4, 8, 16],
        &|w| vec![0, 1, w - 1, w, w + 1, 3 * w + 5],
        12,
    );
}

fn strict() -> Options {
    let text = text::Options { floats: Floats::Strict, ..text::Options::default() };
    Options { text, ..Options::default() }
}

/// A module of one function with so many lanes.
fn with_lanes(lanes: usize, f: Function) -> Module {
    Module { lanes, ..module([f]) }
}

/// Calls `f` of a module with addresses of arrays, and numbers.
fn call(executable: &Executable, args: &[u64], results: usize) -> Vec<u64> {
    let f = executable.function("f").expect("it is there");
    let mut out = vec![0; results];
    // SAFETY: every test gives arguments of the types of its function.
    unsafe { executable.session().call_words(f, args, &mut out, None) }.expect("no error");
    out
}

fn address<T>(xs: &mut [T]) -> u64 {
    xs.as_mut_ptr().expose_provenance() as u64
}

/// `1e16 + 1` is `1e16`. One after the other the sum is 1; halves with each other give `(1e16 - 1e16) + (1 + 1)`. Three of four
/// lanes: the last one counts as zero, so `(1e16 - 1e16) + (1 + 0)`.
#[test]
fn folds_take_halves_of_the_lanes_together_and_lanes_that_are_not_active_count_as_nothing() {
    let f = function("f", &[PTR, I64], |regs, p| {
        let (i, x) = (regs.add(I64), regs.add(Ty::Lanes(Scalar::F64, 4)));
        let (total, sum) = (regs.add(F64), regs.add(F64));
        let prim = Prim::Op(Op::Add, Scalar::F64);
        let (pointer, index) = (p[0].into(), i.into());
        let body = vec![
            Ins::LoadLanes { to: x, pointer, index, stride: int(1), mask: None },
            Ins::FoldLanes { to: sum, prim, neutral: ScalarValue::F64(0.0), from: x.into(), mask: None },
            of_floats(total, Op::Add, total, sum),
        ];
        let code = vec![
            Ins::Set { to: total, value: float(0.0) },
            Ins::Lanes { i, from: int(0), to: p[1].into(), lanes: 4, body },
        ];
        (vec![total], code)
    });
    let module = with_lanes(4, f);
    let mut xs = [1e16, 1.0, -1e16, 1.0, f64::NAN];
    for executable in executables(&module, Options::default()) {
        for (n, expected) in [(0, 0.0), (3, 1.0), (4, 2.0)] {
            assert_eq!(call(&executable, &[address(&mut xs), n], 1), floats(&[expected]));
        }
    }
}

/// Ones in all lanes, of which those that are active are counted.
#[test]
fn a_fold_counts_the_active_lanes() {
    let f = |lanes: usize| {
        function("f", &[I64], |regs, p| {
            let (i, ones) = (regs.add(I64), regs.add(Ty::Lanes(Scalar::I64, lanes)));
            let (total, sum) = (regs.add(I64), regs.add(I64));
            let (prim, neutral) = (Prim::Op(Op::Add, Scalar::I64), ScalarValue::I64(0));
            let body = vec![
                Ins::FoldLanes { to: sum, prim, neutral, from: ones.into(), mask: None },
                of_ints(total, Op::Add, total, sum),
            ];
            let code = vec![
                Ins::Set { to: total, value: int(0) },
                Ins::Set { to: ones, value: int(1) },
                Ins::Lanes { i, from: int(0), to: p[0].into(), lanes, body },
            ];
            (vec![total], code)
        })
    };
    for lanes in [2, 4, 8, 16] {
        for executable in executables(&with_lanes(lanes, f(lanes)), Options::default()) {
            for n in [0, 1, lanes as u64 - 1, lanes as u64, 3 * lanes as u64 + 5] {
                assert_eq!(call(&executable, &[n], 1), [n], "{lanes} lanes");
            }
        }
    }
}

/// What was loaded stays what it was when the place is written to, before the register of the loop is set.
#[test]
fn what_was_loaded_outlives_a_store_to_its_place() {
    let lanes = 8;
    let f = function("f", &[PTR, I64], |regs, p| {
        let (i, sum) = (regs.add(I64), regs.add(F64));
        let [x, y, kept] = [(); 3].map(|()| regs.add(Ty::Lanes(Scalar::F64, lanes)));
        let (pointer, index, stride, mask, ty) = (p[0].into(), i.into(), int(1), None, F64);
        let body = vec![
            Ins::LoadLanes { to: x, pointer, index, stride, mask },
            Ins::StoreLanes { pointer, index, stride, value: float(0.0), ty, mask },
            Ins::Set { to: kept, value: x.into() },
            Ins::LoadLanes { to: y, pointer, index, stride, mask },
            of_floats(x, Op::Add, kept, y),
            Ins::Set { to: kept, value: x.into() },
        ];
        let prim = Prim::Op(Op::Add, Scalar::F64);
        let neutral = ScalarValue::F64(0.0);
        let code = vec![
            Ins::Set { to: kept, value: float(0.0) },
            Ins::Lanes { i, from: int(0), to: p[1].into(), lanes, body },
            Ins::FoldLanes { to: sum, prim, neutral, from: kept.into(), mask: None },
        ];
        (vec![sum], code)
    });
    for executable in executables(&with_lanes(lanes, f), Options::default()) {
        for n in [1, 3, 7, 8] {
            let mut xs: Vec<f64> = (1..=8).map(f64::from).collect();
            let expected: f64 = xs[..n].iter().sum();
            assert_eq!(call(&executable, &[address(&mut xs), n as u64], 1), floats(&[expected]), "{n} lanes");
            assert!(xs[..n].iter().all(|x| *x == 0.0));
        }
    }
}

/// The sum of squares by a loop of 4 lanes that keeps the squares and one of 16 that adds them up, in one function.
#[test]
fn loops_of_one_function_have_different_numbers_of_lanes() {
    let f = function("f", &[PTR, I64], |regs, p| {
        let (i, j, x, y) = (
            regs.add(I64),
            regs.add(I64),
            regs.add(Ty::Lanes(Scalar::F64, 4)),
            regs.add(Ty::Lanes(Scalar::F64, 16)),
        );
        let (sum, total) = (regs.add(Ty::Lanes(Scalar::F64, 16)), regs.add(F64));
        let (pointer, stride, mask, ty) = (p[0].into(), int(1), None, F64);
        let squares = vec![
            Ins::LoadLanes { to: x, pointer, index: i.into(), stride, mask },
            of_floats(x, Op::Mul, x, x),
            Ins::StoreLanes { pointer, index: i.into(), stride, value: x.into(), ty, mask },
        ];
        let sums = vec![
            Ins::LoadLanes { to: y, pointer, index: j.into(), stride, mask },
            Ins::Prim { to: y, prim: Prim::Op(Op::Exp, Scalar::F64), args: vec![y.into()] },
            Ins::Prim { to: y, prim: Prim::Op(Op::Log, Scalar::F64), args: vec![y.into()] },
            Ins::Prim { to: y, prim: Prim::Op(Op::Round, Scalar::F64), args: vec![y.into()] },
            Ins::Prim { to: sum, prim: Prim::Op(Op::Add, Scalar::F64), args: vec![sum.into(), y.into()] },
            Ins::Set { to: sum, value: sum.into() },
        ];
        let prim = Prim::Op(Op::Add, Scalar::F64);
        let code = vec![
            Ins::Set { to: sum, value: float(0.0) },
            Ins::Lanes { i, from: int(0), to: p[1].into(), lanes: 4, body: squares },
            Ins::Lanes { i: j, from: int(0), to: int(16), lanes: 16, body: sums },
            Ins::FoldLanes { to: total, prim, neutral: ScalarValue::F64(0.0), from: sum.into(), mask: None },
        ];
        (vec![total], code)
    });
    for executable in executables(&with_lanes(16, f), Options::default()) {
        let mut xs: Vec<f64> = (0..16).map(|k| f64::from(k % 5)).collect();
        // Three times 0 + 1 + 4 + 9 + 16, and 0: the logarithm of the exponential rounded is the number itself.
        assert_eq!(call(&executable, &[address(&mut xs), 16], 1), floats(&[90.0]));
    }
}

/// The pointer points nowhere, and no lane is active.
#[test]
fn memory_is_not_touched_where_a_mask_holds_nowhere() {
    for stride in [0, 1, -1, 3] {
        let f = function("f", &[PTR, BOOL, I64], |regs, p| {
            let (i, never) = (regs.add(I64), regs.add(Ty::Lanes(Scalar::Bool, 8)));
            let (x, y) = (regs.add(Ty::Lanes(Scalar::F64, 8)), regs.add(Ty::Lanes(Scalar::F64, 8)));
            let (pointer, index, stride) = (p[0].into(), i.into(), int(stride));
            let (mask, ty) = (Some(never.into()), F64);
            let body = vec![
                Ins::Set { to: never, value: p[1].into() },
                Ins::LoadLanes { to: x, pointer, index, stride, mask },
                Ins::Prim { to: y, prim: Prim::Op(Op::Add, Scalar::F64), args: vec![x.into(), float(1.0)] },
                Ins::StoreLanes { pointer, index, stride, value: y.into(), ty, mask },
                Ins::AccumulateLanes { pointer, index, stride, value: float(1.0), ty, mask, atomic: false },
            ];
            (vec![], vec![Ins::Lanes { i, from: int(0), to: p[2].into(), lanes: 8, body }])
        });
        for executable in executables(&with_lanes(8, f), Options::default()) {
            call(&executable, &[0, 0, 21], 0);
        }
    }
}

/// LLVM 22 writes the whole wide integer where a masked store of a narrow one has a constant mask with one lane.
#[test]
fn masked_stores_of_narrow_integers_keep_to_their_lanes() {
    for lanes in [2, 4, 8, 16] {
        for to in [Scalar::I8, Scalar::U16, Scalar::I32] {
            let f = function("f", &[PTR, PTR], |regs, p| {
                let (i, x) = (regs.add(I64), regs.add(Ty::Lanes(Scalar::I64, lanes)));
                let y = regs.add(Ty::Lanes(to, lanes));
                let (index, stride) = (i.into(), int(1));
                let prim = Prim::Convert(Scalar::I64, to);
                let body = vec![
                    Ins::LoadLanes { to: x, pointer: p[0].into(), index, stride, mask: None },
                    Ins::Prim { to: y, prim, args: vec![x.into()] },
                    Ins::StoreLanes {
                        pointer: p[1].into(),
                        index,
                        stride,
                        value: y.into(),
                        ty: Ty::Scalar(to),
                        mask: None,
                    },
                ];
                (vec![], vec![Ins::Lanes { i, from: int(0), to: int(1), lanes, body }])
            });
            for executable in executables(&with_lanes(lanes, f.clone()), Options::default()) {
                let mut from = [0x0123_4567_89AB_CDEFu64];
                let mut into = [0xFFu8; 8];
                call(&executable, &[address(&mut from), address(&mut into)], 0);
                let mut expected = [0xFF; 8];
                expected[..to.bytes()].copy_from_slice(&from[0].to_le_bytes()[..to.bytes()]);
                assert_eq!(into, expected, "{lanes} lanes of {to:?}");
            }
        }
    }
}

/// Row `i` is at `7 + i * stride`, its element `c` is `100 i + c`; what is between rows stays. The second half of a row is stored through a
/// pointer of its own. With one register for all elements each store comes before the next element is made.
#[test]
fn rows_that_lanes_write_whole() {
    let several = [(4, 3), (4, 4), (4, 7), (8, 7), (8, 8), (8, 15), (8, 30), (16, 15)];
    let one = [(4, 7), (8, 15)].map(|(lanes, count)| (lanes, count, true));
    for (lanes, count, one_register) in
        several.map(|(lanes, count)| (lanes, count, false)).into_iter().chain(one)
    {
        let (half, stride) = (count / 2, count + 2);
        let f = function("f", &[PTR, I64], |regs, p| {
            let (i, number) = (regs.add(I64), regs.add(Ty::Lanes(Scalar::I64, lanes)));
            let (at, part, second) = (regs.add(I64), regs.add(PTR), regs.add(PTR));
            let mut value = || regs.add(Ty::Lanes(Scalar::I64, lanes));
            let one = value();
            let mut elements = vec![one];
            elements.extend((1..count).map(|_| if one_register { one } else { value() }));
            let offset = |to, pointer, index| Ins::Offset { to, pointer, index, ty: I64, room: None };
            let mut body = vec![
                Ins::LaneNumber { to: number },
                Ins::Prim {
                    to: number,
                    prim: Prim::Op(Op::Add, Scalar::I64),
                    args: vec![number.into(), i.into()],
                },
                Ins::Prim {
                    to: one,
                    prim: Prim::Op(Op::Mul, Scalar::I64),
                    args: vec![number.into(), int(100)],
                },
                Ins::Prim { to: at, prim: Prim::Op(Op::Mul, Scalar::I64), args: vec![i.into(), int(stride)] },
                offset(part, p[0].into(), at.into()),
            ];
            let (mut stores, mut before) = (Vec::new(), one);
            for (c, element) in elements.into_iter().enumerate() {
                if c > 0 {
                    let prim = Prim::Op(Op::Add, Scalar::I64);
                    let next = Ins::Prim { to: element, prim, args: vec![before.into(), int(1)] };
                    if one_register { stores.push(next) } else { body.push(next) }
                }
                before = element;
                let c = c as i64;
                if c == half {
                    stores.push(offset(second, part.into(), int(half)));
                }
                let (pointer, index) = if c < half { (part, c) } else { (second, c - half) };
                let (pointer, index, stride) = (pointer.into(), int(index + 7), int(stride));
                stores.push(Ins::StoreLanes {
                    pointer,
                    index,
                    stride,
                    value: element.into(),
                    ty: I64,
                    mask: None,
                });
            }
            body.extend(stores);
            (vec![], vec![Ins::Lanes { i, from: int(0), to: p[1].into(), lanes, body }])
        });
        for executable in executables(&with_lanes(lanes, f), Options::default()) {
            for n in [0, 1, lanes, 2 * lanes + 3] {
                let mut found = vec![-1i64; 7 + n * stride as usize];
                call(&executable, &[address(&mut found), n as u64], 0);
                let element =
                    |k: usize| match k.checked_sub(7).map(|k| (k as i64 / stride, k as i64 % stride)) {
                        Some((row, c)) if c < count => 100 * row + c,
                        _ => -1,
                    };
                let expected: Vec<i64> = (0..found.len()).map(element).collect();
                assert_eq!(found, expected, "{n} rows of {count}, {lanes} lanes");
            }
        }
    }
}

/// With `e = 2^-30`, `(1 + e) * (1 - e) - 1` is `-e^2`, or 0 if the product is rounded first.
#[test]
fn strict_code_rounds_products_before_they_are_added() {
    let f = function("f", &[F64, F64], |regs, p| {
        let (product, sum) = (regs.add(F64), regs.add(F64));
        let code =
            vec![of_floats(product, Op::Mul, p[0], p[1]), of_floats(sum, Op::Sub, product, float(1.0))];
        (vec![sum], code)
    });
    let module = module([f]);
    let e = f64::from_bits((1023 - 30) << 52);
    let args = floats(&[1.0 + e, 1.0 - e]);
    for executable in executables(&module, strict()) {
        assert_eq!(call(&executable, &args, 1), floats(&[0.0]));
    }
    for executable in executables(&module, Options::default()) {
        let found = f64::from_bits(call(&executable, &args, 1)[0]);
        assert!(found == 0.0 || found == -e * e, "{found}");
    }
}
