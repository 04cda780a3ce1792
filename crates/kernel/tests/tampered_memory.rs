//! Deliberate errors in code that the compiler made: the verifier has an alarm wherever the checking executor finds a register that is not set, or
//! memory that was given back.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/numbers.rs"]
mod numbers;

use crate::common::tampering::{Counts, total};
use numbers::Numbers;
use pullback_base::RuntimeErrorKind;
use pullback_base::index::Index;
use pullback_core::{Type, Value};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::schedule;
use pullback_kernel::values::to_words;
use pullback_kernel::verify::verify;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty, lower};
use pullback_testkit::kernels::{Item, runs_of_seed};
use pullback_testkit::native::Run;
use pullback_testkit::{number, on_all_processors};

/// A deliberate error at one place of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Error {
    /// An instruction that sets a register is gone.
    DropSet,
    /// The same for one that allocates.
    DropAlloc,
    /// The same for a mark.
    DropMark,
    /// Memory is given back where the block around begins, or as soon as the mark is set.
    ReleaseEarly,
    /// Another mark is released.
    SwapMarks,
    /// Each iteration of a loop gives back what it made.
    ReleaseStates,
    /// An arm of a branch gives back all that the function has made.
    ReleaseInArm,
    /// A register has another type.
    OtherType,
    /// Elements have another type where they are used.
    OtherElements,
    /// A loop has the counter of the loop around.
    SameCounter,
    /// One arm of a branch does nothing.
    EmptyArm,
    /// A loop in any order sets a state that no fold has.
    DropFold,
    /// Operands change places with others of the same type.
    OtherPointer,
}

impl Error {
    const ALL: [Error; 13] = [
        Error::DropSet,
        Error::DropAlloc,
        Error::DropMark,
        Error::ReleaseEarly,
        Error::SwapMarks,
        Error::ReleaseStates,
        Error::ReleaseInArm,
        Error::OtherType,
        Error::OtherElements,
        Error::SameCounter,
        Error::EmptyArm,
        Error::DropFold,
        Error::OtherPointer,
    ];
    /// Whether code with the error always breaks a rule.
    fn is_sure(self) -> bool {
        self == Error::SameCounter
    }
}

/// All blocks of a function, one after the other.
fn each_block(block: &mut Block, f: &mut dyn FnMut(&mut Block)) {
    f(block);
    for ins in block {
        ins.blocks_mut().into_iter().for_each(|inside| each_block(inside, f));
    }
}

/// Makes the error at a place that the numbers choose; whether there is one.
fn make(error: Error, f: &mut Function, numbers: &mut Numbers) -> bool {
    let mut body = std::mem::take(&mut f.body);
    // Count the places, then take one.
    let mut places = 0;
    each_block(&mut body.clone(), &mut |block| places += places_in(error, block, f).len());
    let mut chosen = if places == 0 { usize::MAX } else { numbers.below(places) };
    let mut done = false;
    each_block(&mut body, &mut |block| {
        let here = places_in(error, block, f);
        if done {
            return;
        }
        match here.get(chosen) {
            Some(at) => {
                change(error, block, *at, f, numbers);
                done = true;
            }
            None => chosen = chosen.saturating_sub(here.len()),
        }
    });
    f.body = body;
    if let (Error::ReleaseInArm, true) = (error, done) {
        let height = f.regs.push(RegInfo::new(Ty::Pointer, "tampered"));
        each_block(&mut f.body, &mut |block| {
            for ins in block {
                if let Ins::Release { mark } = ins
                    && *mark == Operand::Null
                {
                    *mark = height.into();
                }
            }
        });
        f.body.insert(0, Ins::Mark { to: height });
    }
    done
}

/// Where in a block the error can be made.
fn places_in(error: Error, block: &Block, f: &Function) -> Vec<usize> {
    let is_place = |ins: &Ins| match (error, ins) {
        (Error::DropSet, ins) => ins.only_sets(),
        (Error::DropAlloc, Ins::Alloc { .. }) => true,
        (Error::DropMark, Ins::Mark { .. }) => true,
        (Error::ReleaseEarly | Error::SwapMarks, Ins::Release { .. }) => true,
        (Error::ReleaseStates, Ins::For { body, .. } | Ins::While { body, .. }) => {
            !matches!(body.first(), Some(Ins::Mark { .. }))
                && body.iter().any(|ins| matches!(ins, Ins::Alloc { .. } | Ins::Call { .. }))
        }
        (Error::ReleaseInArm | Error::EmptyArm, Ins::If { then, .. }) => !then.is_empty(),
        (Error::OtherType, ins) => {
            ins.sets().first().is_some_and(|r| f.regs[*r].ty != Ty::Pointer) && ins.only_sets()
        }
        (Error::OtherElements, Ins::Store { .. } | Ins::Load { .. } | Ins::Alloc { .. }) => true,
        (Error::SameCounter, Ins::For { body, .. }) => body.iter().any(|ins| matches!(ins, Ins::For { .. })),
        (Error::DropFold, Ins::For { order: Order::Any(folds), .. }) => !folds.is_empty(),
        (Error::OtherPointer, Ins::Load { .. } | Ins::Store { .. } | Ins::Copy { .. }) => true,
        _ => false,
    };
    block.iter().enumerate().filter(|(_, ins)| is_place(ins)).map(|(k, _)| k).collect()
}

fn change(error: Error, block: &mut Block, at: usize, f: &mut Function, numbers: &mut Numbers) {
    match (error, &mut block[at]) {
        (Error::DropSet | Error::DropAlloc | Error::DropMark, _) => {
            block.remove(at);
        }
        (Error::ReleaseEarly, Ins::Release { mark }) => {
            let mark = *mark;
            let set = block.iter().position(|ins| matches!(ins, Ins::Mark { to } if mark == (*to).into()));
            let release = block.remove(at);
            let from = set.map_or(0, |k| k + 1).min(at);
            block.insert(from + numbers.below(at - from + 1), release);
        }
        (Error::SwapMarks, Ins::Release { mark }) => {
            let marks = pointers(f, &|hint| hint.contains("mark"));
            *mark = marks[numbers.below(marks.len())].into();
        }
        (Error::ReleaseStates, Ins::For { body, .. } | Ins::While { body, .. }) => {
            let to = f.regs.push(RegInfo::new(Ty::Pointer, "mark"));
            body.insert(0, Ins::Mark { to });
            body.push(Ins::Release { mark: to.into() });
        }
        // (The mark is set once the function is put together.)
        (Error::ReleaseInArm, Ins::If { then, .. }) => then.insert(0, Ins::Release { mark: Operand::Null }),
        (Error::EmptyArm, Ins::If { then, .. }) => then.clear(),
        (Error::OtherType, ins) => {
            let r = ins.sets()[0];
            let ty = &mut f.regs[r].ty;
            *ty = if *ty == Ty::I64 { Ty::BOOL } else { Ty::I64 };
        }
        (Error::OtherElements, Ins::Store { ty, .. } | Ins::Alloc { ty, .. }) => {
            *ty = if *ty == Ty::I64 { Ty::BOOL } else { Ty::I64 };
        }
        (Error::OtherElements, Ins::Load { to, .. }) => {
            let ty = if f.regs[*to].ty == Ty::I64 { Ty::BOOL } else { Ty::I64 };
            *to = f.regs.push(RegInfo::new(ty, "tampered"));
        }
        (Error::SameCounter, Ins::For { i: outer, body, .. }) => {
            let outer = *outer;
            if let Some(Ins::For { i, .. }) = body.iter_mut().find(|ins| matches!(ins, Ins::For { .. })) {
                *i = outer;
            }
        }
        (Error::DropFold, Ins::For { order: Order::Any(folds), .. }) => _ = folds.pop(),
        (
            Error::OtherPointer,
            Ins::Load { pointer, .. } | Ins::Store { pointer, .. } | Ins::Copy { from: pointer, .. },
        ) => {
            let all = pointers(f, &|_| true);
            *pointer = all[numbers.below(all.len())].into();
        }
        _ => {}
    }
}

fn pointers(f: &Function, is_meant: &dyn Fn(&str) -> bool) -> Vec<Reg> {
    f.regs
        .iter_enumerated()
        .filter(|(_, info)| info.ty == Ty::Pointer && is_meant(&info.hint))
        .map(|(r, _)| r)
        .collect()
}

/// What the checking executor finds in a run; `None`: nothing, or something else than what is proved.
fn found(run_of: &Run, (module, id): (&Module, FunctionId), args: &[Value]) -> Option<String> {
    let mut memory = Memory::new(1 << 20);
    let mut words: Vec<Word> = Vec::new();
    let params = run_of.program.funs[run_of.fun].params.iter();
    let types: Vec<&Type> = params.map(|p| &run_of.program.vars[*p].ty).collect();
    for (ty, value) in types.iter().zip(args) {
        to_words(&mut memory, value, ty, &mut words).ok()?;
    }
    let options = run::Options { steps: 2_000_000, backwards: false };
    let e = run(module, id, &words, &mut memory, options).err()?;
    let proved = ["is not set", "given back", "is needed", "is one of lanes", "is no i64"];
    let is_proved =
        e.kind == RuntimeErrorKind::Internal && proved.iter().any(|text| e.message.contains(text));
    is_proved.then_some(e.message)
}

/// Makes errors in the functions of a seed.
fn tamper(seed: u64) -> (Counts<Error>, Vec<String>) {
    let (mut counts, mut missed) = (Counts::new(), Vec::new());
    for (k, run_of) in runs_of_seed(seed).iter().enumerate() {
        let Ok((mut module, id)) = lower(&run_of.program, run_of.fun) else { continue };
        if k % 2 == 1 {
            let item = Item::of(run_of);
            let [.., (_, options)] = item.ways(id);
            schedule(&mut module, &options);
        }
        for (n, error) in Error::ALL.into_iter().enumerate() {
            let mut numbers = Numbers(seed * 1_000 + k as u64 * 50 + n as u64);
            for _ in 0..2 {
                let mut wrong = module.clone();
                let at = FunctionId::new(numbers.below(wrong.functions.len()));
                if !make(error, &mut wrong.functions[at], &mut numbers) {
                    continue;
                }
                let alarmed = !verify(&wrong).alarms.is_empty();
                let run = std::panic::AssertUnwindSafe(|| found(run_of, (&wrong, id), &run_of.args[0]));
                let fault = std::panic::catch_unwind(run).unwrap_or(None);
                let count = counts.entry(error).or_default();
                count[0] += 1;
                count[1] += usize::from(alarmed);
                count[2] += usize::from(fault.is_some());
                let wrongly_silent =
                    if error.is_sure() { Some("it breaks a rule".to_string()) } else { fault };
                if let (false, Some(fault)) = (alarmed, wrongly_silent) {
                    missed.push(format!("{error:?} in {}: {fault}", run_of.what));
                }
            }
        }
    }
    (counts, missed)
}

#[test]
fn what_the_executor_finds_the_verifier_has_seen() {
    let (count, seed) = (number("TAMPERED", 20), number("SEED", 0));
    let total = total(on_all_processors(seed..seed + count, tamper), "a run");
    for error in Error::ALL {
        let [made, seen, _] = total.get(&error).copied().unwrap_or_default();
        assert!(made > 0 && 3 * seen >= made, "{error:?}: made {made} times, {seen} with an alarm");
    }
}
