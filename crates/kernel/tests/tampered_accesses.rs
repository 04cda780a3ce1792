//! Deliberate errors in indices, sizes, bounds of loops and checks. Where a run then uses an element that is not there, a claim of the module is not shown.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/numbers.rs"]
mod numbers;

use crate::common::tampering::{Counts, total};
use numbers::Numbers;
use pullback_base::RuntimeErrorKind;
use pullback_base::index::{Index, IndexVec};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::values::to_words;
use pullback_kernel::verify::bounds::look;
use pullback_kernel::verify::verify;
use pullback_kernel::{Block, FunctionId, Ins, Module, Operand, Reg, RegInfo, Ty, lower};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::kernels::runs_of_seed;
use pullback_testkit::native::Run;
use pullback_testkit::{number, on_all_processors};

/// A deliberate error at one place of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Error {
    /// The next element is used.
    Next,
    /// The element before is used.
    Before,
    /// A pointer is moved by one element more.
    Moved,
    /// One element more is copied or filled.
    Longer,
    /// Memory is allocated for one element less.
    Shorter,
    /// A loop has one iteration more.
    OneMore,
    /// A loop begins one iteration earlier.
    Earlier,
    /// The program does not stop.
    LostCheck,
    /// A number that is compared is one too large.
    OtherBound,
    /// A number that is compared is another one of the same comparison or check.
    Swapped,
    /// A number that is handed on to a function or to behind a block is one too large.
    OtherSize,
    /// A product has another factor twice.
    OtherFactor,
}

const ALL: [Error; 12] = [
    Error::Next,
    Error::Before,
    Error::Moved,
    Error::Longer,
    Error::Shorter,
    Error::OneMore,
    Error::Earlier,
    Error::LostCheck,
    Error::OtherBound,
    Error::Swapped,
    Error::OtherSize,
    Error::OtherFactor,
];

/// All blocks of a function, one after the other.
fn each_block(block: &mut Block, f: &mut dyn FnMut(&mut Block)) {
    f(block);
    for ins in block {
        ins.blocks_mut().into_iter().for_each(|inside| each_block(inside, f));
    }
}

/// What is changed at a place.
enum Place<'a> {
    /// So much is added to a number.
    Number(i64, &'a mut Operand),
    /// Two operands change places.
    Order(&'a mut [Operand]),
    /// The second operand is the first one, too.
    Twice(&'a mut [Operand]),
    /// A check is gone.
    Check(&'a mut Operand),
}

/// The place of the error in an instruction, if it can be made there.
fn place<'a>(error: Error, ins: &'a mut Ins, regs: &IndexVec<Reg, RegInfo>) -> Option<Place<'a>> {
    let is_number = |a: &Operand| match a {
        Operand::Reg(r) => regs[*r].ty == Ty::I64,
        Operand::Const(c) => matches!(c, ScalarValue::I64(_)),
        Operand::Null => false,
    };
    let sets_number = matches!(ins, Ins::Set { to, .. } if regs[*to].ty == Ty::I64);
    Some(match (error, ins) {
        (
            Error::Next | Error::Before,
            Ins::Load { index, .. } | Ins::Store { index, .. } | Ins::Accumulate { index, .. },
        ) => Place::Number(if error == Error::Next { 1 } else { -1 }, index),
        (Error::Moved, Ins::Offset { index, .. }) => Place::Number(1, index),
        (Error::Longer, Ins::Copy { count, .. } | Ins::Fill { count, .. }) => Place::Number(1, count),
        (Error::Shorter, Ins::Alloc { count, .. }) => Place::Number(-1, count),
        (Error::OneMore, Ins::For { to, .. }) => Place::Number(1, to),
        (Error::Earlier, Ins::For { from, .. }) => Place::Number(-1, from),
        (
            Error::OtherBound,
            Ins::Prim { prim: Prim::Op(Op::Lt | Op::Le | Op::Ne | Op::Eq, Scalar::I64), args, .. },
        ) => Place::Number(1, &mut args[0]),
        (Error::OtherSize, Ins::Call { args, .. }) => {
            let size = args.iter().position(is_number)?;
            Place::Number(1, &mut args[size])
        }
        (Error::OtherSize, Ins::Set { value, .. }) => Place::Number(1, sets_number.then_some(value)?),
        (Error::Swapped, Ins::Prim { prim: Prim::Op(Op::Lt | Op::Le, Scalar::I64), args, .. }) => {
            Place::Order(args)
        }
        (Error::OtherFactor, Ins::Prim { prim: Prim::Op(Op::Mul, Scalar::I64), args, .. }) => {
            Place::Twice(args)
        }
        (Error::LostCheck, Ins::Fail { condition: condition @ Operand::Reg(_), .. }) => {
            Place::Check(condition)
        }
        _ => return None,
    })
}

/// Makes the error at an instruction of a block.
fn change(error: Error, block: &mut Block, at: usize, regs: &mut IndexVec<Reg, RegInfo>) {
    match place(error, &mut block[at], regs) {
        Some(Place::Number(by, operand)) => {
            let to = regs.push(RegInfo::new(Ty::I64, "tampered"));
            let args = vec![std::mem::replace(operand, to.into()), Operand::i64(by)];
            block.insert(at, Ins::Prim { to, prim: Prim::Op(Op::Add, Scalar::I64), args });
        }
        Some(Place::Order(args)) => args.swap(0, 1),
        Some(Place::Twice(args)) => args[0] = args[1],
        Some(Place::Check(condition)) => *condition = Operand::bool(false),
        None => {}
    }
}

/// The module with the error at a place that the numbers choose; `None`: there is none.
fn tampered(error: Error, module: &Module, numbers: &mut Numbers) -> Option<Module> {
    let mut wrong = module.clone();
    let id = FunctionId::new(numbers.below(module.functions.len()));
    let f = &mut wrong.functions[id];
    let regs = &mut f.regs;
    let mut places = 0;
    each_block(&mut f.body, &mut |block| {
        places += block.iter_mut().filter_map(|ins| place(error, ins, regs)).count();
    });
    let mut left = numbers.below(places.max(1));
    each_block(&mut f.body, &mut |block| {
        let here: Vec<usize> =
            (0..block.len()).filter(|at| place(error, &mut block[*at], regs).is_some()).collect();
        if let Some(at) = here.get(left) {
            change(error, block, *at, regs);
        }
        left = left.wrapping_sub(here.len());
    });
    (places > 0).then_some(wrong)
}

/// Whether a run uses an element that is not there, or makes memory of less than no elements.
fn leaves_memory(run_of: &Run, (module, id): (&Module, FunctionId)) -> Option<String> {
    let params = &run_of.program.funs[run_of.fun].params;
    run_of.args.iter().find_map(|args| {
        let (mut memory, mut words): (Memory, Vec<Word>) = (Memory::new(1 << 20), Vec::new());
        for (p, value) in params.iter().zip(args) {
            to_words(&mut memory, value, &run_of.program.vars[*p].ty, &mut words).ok()?;
        }
        let options = run::Options { steps: 300_000, backwards: false };
        let go = std::panic::AssertUnwindSafe(|| run(module, id, &words, &mut memory, options));
        let stopped = std::panic::catch_unwind(go).ok()?.err()?;
        let is_outside = ["outside memory", "a negative number of elements"];
        let is_meant = |e: &str| is_outside.iter().any(|text| e.contains(text));
        (stopped.kind == RuntimeErrorKind::Internal && is_meant(&stopped.message)).then_some(stopped.message)
    })
}

fn tamper(seed: u64) -> (Counts<Error>, Vec<String>) {
    let (mut counts, mut missed) = (Counts::new(), Vec::new());
    for (k, run_of) in runs_of_seed(seed).iter().enumerate() {
        let Ok((module, id)) = lower(&run_of.program, run_of.fun) else { continue };
        // (Of a module with claims that are not shown, nothing is said.)
        if !look(&module).not_shown.is_empty() {
            continue;
        }
        for (n, error) in ALL.into_iter().enumerate() {
            let mut numbers = Numbers(seed * 1_000 + k as u64 * 50 + n as u64);
            for _ in 0..3 {
                let Some(wrong) = tampered(error, &module, &mut numbers) else { continue };
                let seen = !look(&wrong).not_shown.is_empty() || !verify(&wrong).alarms.is_empty();
                let found = leaves_memory(run_of, (&wrong, id));
                let count = counts.entry(error).or_default();
                count[0] += 1;
                count[1] += usize::from(seen);
                count[2] += usize::from(found.is_some());
                if let (Some(found), false) = (found, seen) {
                    missed.push(format!("{error:?} in {}: {found}", run_of.what));
                }
            }
        }
    }
    (counts, missed)
}

#[test]
fn elements_that_are_not_there_are_not_shown() {
    let (count, seed) = (number("TAMPERED", 30), number("SEED", 0));
    let total = total(on_all_processors(seed..seed + count, tamper), "a run");
    // Many of the others are no errors: a check that is lost or moved may not have been needed.
    for error in ALL {
        let [made, seen, _] = total.get(&error).copied().unwrap_or_default();
        assert!(made > 0 && 25 * seen >= made, "{error:?}: made {made} times, {seen} seen");
    }
    let found: usize = total.values().map(|[.., found]| found).sum();
    assert!(found > 100, "{found} are found by a run");
}
