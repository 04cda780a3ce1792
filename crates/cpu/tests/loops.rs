//! Loops that are cut into strips, between which it is polled for cancellation.

#![allow(unsafe_code, reason = "compiled code is called with words")]

use crate::common::*;
use pullback_base::RuntimeErrorKind;
use pullback_cpu::Options;
use pullback_kernel::{Ins, Module, Order, Ty};
use pullback_prim::{Op, Scalar};
use std::sync::atomic::AtomicBool;

#[test]
fn a_loop_alone_can_be_cancelled_and_has_all_its_iterations() {
    // How many iterations there are, by a sum of 3 k + 1 that wraps around; k counts from 0.
    let alone = function("f", &[I64, I64], |regs, p| {
        let (i, k, sum, term) = (regs.add(I64), regs.add(I64), regs.add(I64), regs.add(I64));
        let body = vec![
            of_ints(term, Op::Mul, k, int(3)),
            of_ints(term, Op::Xor, term, sum),
            of_ints(sum, Op::Add, sum, term),
            of_ints(k, Op::Add, k, int(1)),
        ];
        let code = vec![
            Ins::Set { to: k, value: int(0) },
            Ins::Set { to: sum, value: int(0) },
            Ins::For { i, from: p[0].into(), to: p[1].into(), body, order: Order::Given },
        ];
        (vec![k, sum], code)
    });
    let expected = |count: i64| (0..count).fold(0i64, |sum, k| sum.wrapping_add((3 * k) ^ sum));
    for executable in executables(&module([alone]), Options::default()) {
        let mut session = executable.session();
        let mut run = |from: i64, to: i64, cancel: &AtomicBool| {
            let mut out = [0, 0];
            // SAFETY: the arguments are numbers.
            let done =
                unsafe { session.call_words(first(), &[from as u64, to as u64], &mut out, Some(cancel)) };
            done.map(|()| out.map(|word| word as i64))
        };
        let never = AtomicBool::new(false);
        for count in [0, 1, 7, 65_535, 65_536, 65_537, 131_072, 131_073, 300_000] {
            for from in [0, -5, i64::MIN, i64::MAX - count] {
                let out = run(from, from + count, &never).expect("no error");
                assert_eq!(out, [count, expected(count)], "{count} from {from}");
            }
        }
        for (from, to) in [(1, 0), (i64::MAX, i64::MIN), (0, i64::MIN), (i64::MAX, 0)] {
            assert_eq!(run(from, to, &never).expect("no error"), [0, 0]);
        }
        let flag = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                flag.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            run(i64::MIN, i64::MAX, &flag)
        });
        assert_eq!(result.expect_err("cancelled").kind, RuntimeErrorKind::Cancelled);
        // A short loop does not ask.
        assert_eq!(run(0, 8, &AtomicBool::new(true)).expect("no error"), [8, expected(8)]);
    }
}

#[test]
fn lanes_alone_can_be_cancelled_and_have_all_their_iterations() {
    // The sum of the numbers of the iterations.
    let sum = |lanes: usize| {
        function("f", &[I64, I64, PTR], |regs, p| {
            let (i, k) = (regs.add(I64), regs.add(Ty::Lanes(Scalar::I64, lanes)));
            let body = vec![
                Ins::LaneNumber { to: k },
                of_ints(k, Op::Add, k, i),
                Ins::AccumulateLanes {
                    pointer: p[2].into(),
                    index: int(0),
                    stride: int(0),
                    value: k.into(),
                    ty: I64,
                    mask: None,
                    atomic: false,
                },
            ];
            (vec![], vec![Ins::Lanes { i, from: p[0].into(), to: p[1].into(), lanes, body }])
        })
    };
    // Also a number of lanes that strips are no multiple of.
    let modules = [6, 8].map(|lanes| Module { lanes, ..module([sum(lanes)]) });
    for executable in modules.iter().flat_map(|m| executables(m, Options::default())) {
        let mut session = executable.session();
        let mut run = |from: i64, to: i64, cancel: &AtomicBool| {
            let mut out = [0i64];
            let args = [from as u64, to as u64, out.as_mut_ptr() as u64];
            // SAFETY: two numbers and a place for one.
            unsafe { session.call_words(first(), &args, &mut [], Some(cancel)) }.map(|()| out[0])
        };
        let never = AtomicBool::new(false);
        for count in [0, 1, 7, 8, 9, 65_535, 65_536, 65_537, 131_072, 131_080, 131_089] {
            for from in [0, -5] {
                let expected = count * from + count * (count - 1) / 2;
                assert_eq!(run(from, from + count, &never), Ok(expected), "{count} from {from}");
            }
        }
        let flag = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                flag.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            run(0, i64::MAX, &flag)
        });
        assert_eq!(result.expect_err("cancelled").kind, RuntimeErrorKind::Cancelled);
    }
}
