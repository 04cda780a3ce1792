//! The vm with every instruction set of this processor.

#![allow(unsafe_code, reason = "bytecode is called with words")]

use pullback_base::RuntimeError;
use pullback_kernel::{FunctionId, Ins, Module, Operand, Order, Reg, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::conformance;
use pullback_vm::{Executable, Functions, Limits, Machine, Options};
use std::sync::atomic::AtomicBool;

/// Bytecode, as the tests of all executors take it.
struct Translated(Executable);
struct Running<'a>(pullback_vm::Session<'a>);

impl conformance::Executable for Translated {
    fn name(&self) -> String {
        self.0.options().machine.name().to_string()
    }
    fn function(&self, name: &str) -> Option<FunctionId> {
        self.0.function(name)
    }
    fn session(&self) -> Box<dyn conformance::Session + '_> {
        Box::new(Running(self.0.session()))
    }
}

impl conformance::Session for Running<'_> {
    unsafe fn call(
        &mut self,
        function: FunctionId,
        args: &[u64],
        results: &mut [u64],
        cancel: Option<&AtomicBool>,
    ) -> Result<(), RuntimeError> {
        let work = cancel.is_none().then_some(WORK);
        // SAFETY: the conditions are the same.
        unsafe { self.0.call_words(function, args, results, Limits { cancel, work }) }
    }
    fn peak_bytes(&mut self) -> u64 {
        self.0.peak_bytes()
    }
}

/// How much a call may do: code that is translated wrongly may not end.
const WORK: u64 = 1 << 28;

/// The instruction sets of this processor.
pub(crate) fn machines() -> impl Iterator<Item = Machine> {
    Machine::ALL.into_iter().filter(|m| m.is_there())
}

/// Translates a module for every instruction set.
pub(crate) fn make(module: &Module, setup: conformance::Setup) -> conformance::Executables<'_> {
    let functions = match setup.functions {
        conformance::Functions::Own => Functions::Lanes,
        conformance::Functions::Table => Functions::Table,
    };
    let options = move |machine| Options {
        machine,
        functions,
        memory_limit: setup.memory,
        call_depth_limit: setup.calls,
        poison: true,
    };
    Box::new(machines().map(move |m| Box::new(Translated(Executable::new(module, &options(m)))) as _))
}

/// A function of one block of lanes; `p`: its arguments, `i`: the counter of the block.
fn of_lanes(
    params: &[Ty],
    body: impl FnOnce(&mut conformance::Regs, &[Reg], Reg) -> Vec<Ins>,
    lanes: usize,
) -> Module {
    let mut module = conformance::module([conformance::function("f", params, |regs, p| {
        let i = regs.add(Ty::I64);
        let body = body(regs, p, i);
        let from = Operand::i64(0);
        (Vec::new(), vec![Ins::Lanes { i, from, to: p[0].into(), lanes, body }])
    })]);
    module.lanes = lanes;
    module
}

fn load(to: Reg, pointer: Reg, i: Reg) -> Ins {
    Ins::LoadLanes { to, pointer: pointer.into(), index: i.into(), stride: Operand::i64(1), mask: None }
}
fn store(pointer: Reg, i: Reg, value: Reg) -> Ins {
    let (pointer, index, value) = (pointer.into(), i.into(), value.into());
    let ty = Ty::Scalar(Scalar::F64);
    Ins::StoreLanes { pointer, index, stride: Operand::i64(1), value, ty, mask: None }
}
fn prim(to: Reg, op: Op, s: Scalar, args: Vec<Operand>) -> Ins {
    Ins::Prim { to, prim: Prim::Op(op, s), args }
}
fn float(x: f64) -> Operand {
    Operand::Const(ScalarValue::F64(x))
}

/// `f(n, a, b) = n * a + b`: a loop reads a register that is set again behind it.
pub(crate) fn what_a_loop_reads_is_not_dropped(make: conformance::Make<'_>) {
    let module = conformance::module([conformance::function("f", &[Ty::I64; 3], |regs, p| {
        let (i, s, sum) = (regs.add(Ty::I64), regs.add(Ty::I64), regs.add(Ty::I64));
        let add = |x: Reg| conformance::of_ints(sum, Op::Add, sum, x);
        let (from, order) = (Operand::i64(0), Order::Given);
        let code = vec![
            Ins::Set { to: sum, value: Operand::i64(0) },
            Ins::Set { to: s, value: p[1].into() },
            Ins::For { i, from, to: p[0].into(), body: vec![add(s)], order },
            Ins::Set { to: s, value: p[2].into() },
            add(s),
        ];
        (vec![sum], code)
    })]);
    for executable in make(&module, conformance::Setup::default()) {
        assert_eq!(conformance::call(&*executable, &[3, 10, 7], 1), Ok(vec![37]), "{}", executable.name());
    }
}

/// `f(n, p, q)`: `p = 2 p, q = p + 1`, where the second one means `p` as it was.
pub(crate) fn lanes_are_read_before_their_memory_changes(make: conformance::Make<'_>) {
    let lanes = 16;
    let module = of_lanes(
        &[Ty::I64, Ty::Pointer, Ty::Pointer],
        |regs, p, i| {
            let mut new = || regs.add(Ty::Lanes(Scalar::F64, lanes));
            let (x, twice, more) = (new(), new(), new());
            vec![
                load(x, p[1], i),
                prim(twice, Op::Mul, Scalar::F64, vec![x.into(), float(2.0)]),
                store(p[1], i, twice),
                prim(more, Op::Add, Scalar::F64, vec![x.into(), float(1.0)]),
                store(p[2], i, more),
            ]
        },
        lanes,
    );
    for executable in make(&module, conformance::Setup::default()) {
        for n in [1u64, 7, 16, 20, 32] {
            let mut p: Vec<f64> = (0..n).map(|k| k as f64).collect();
            let mut q = vec![0.0; p.len()];
            let args = [n, p.as_mut_ptr() as u64, q.as_mut_ptr() as u64];
            conformance::call(&*executable, &args, 0).expect("nothing can fail");
            let expected = |f: fn(f64) -> f64| (0..n).map(|k| f(k as f64)).collect::<Vec<f64>>();
            assert_eq!((p, q), (expected(|x| 2.0 * x), expected(|x| x + 1.0)), "{} {n}", executable.name());
        }
    }
}

/// `f(n, p, q)`: `q[0]` = the sum of those elements of `p` that are less than 3, of one block.
pub(crate) fn a_fold_leaves_out_what_its_mask_leaves_out(make: conformance::Make<'_>) {
    let lanes = 16;
    let module = of_lanes(
        &[Ty::I64, Ty::Pointer, Ty::Pointer],
        |regs, p, i| {
            let (x, m) = (regs.add(Ty::Lanes(Scalar::F64, lanes)), regs.add(Ty::Lanes(Scalar::Bool, lanes)));
            let sum = regs.add(Ty::Scalar(Scalar::F64));
            let (fold, neutral) = (Prim::Op(Op::Add, Scalar::F64), ScalarValue::F64(-0.0));
            let (pointer, index, ty) = (p[2].into(), Operand::i64(0), Ty::Scalar(Scalar::F64));
            vec![
                load(x, p[1], i),
                prim(m, Op::Lt, Scalar::F64, vec![x.into(), float(3.0)]),
                Ins::FoldLanes { to: sum, prim: fold, neutral, from: x.into(), mask: Some(m.into()) },
                Ins::Store { pointer, index, value: sum.into(), ty },
            ]
        },
        lanes,
    );
    for executable in make(&module, conformance::Setup::default()) {
        for n in [1u64, 2, 3, 7, 9, 16] {
            let p: Vec<f64> = (0..n).map(|k| (k % 5) as f64).collect();
            let mut q = [f64::NAN];
            let args = [n, p.as_ptr() as u64, q.as_mut_ptr() as u64];
            conformance::call(&*executable, &args, 0).expect("nothing can fail");
            let expected: f64 = p.iter().filter(|x| **x < 3.0).sum();
            assert_eq!(q, [expected], "{} {n}", executable.name());
        }
    }
}
