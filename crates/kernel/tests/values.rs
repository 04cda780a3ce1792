//! Values are proved to be there when they are read, without running code: on all programs of the repository and nearly all random ones; and wherever a run
//! of wrong code finds a variable that was written over, the proof has an alarm.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/numbers.rs"]
mod numbers;

use crate::common::alarm_in;
use crate::common::tampering::{Counts, total};
use crate::ghosts::{Step, alarm_of, code_of};
use numbers::Numbers;
use pullback_base::index::Index;
use pullback_kernel::verify::values::look;
use pullback_kernel::verify::{order, verify};
use pullback_kernel::{Block, FunctionId, Ghosts, Ins, Module, Operand, Reg, Ty, lower_with_ghosts, size};
use pullback_testkit::draws::draws;
use pullback_testkit::kernels::{Item, of_repository, of_seed, runs_of_seed};
use pullback_testkit::native::Run;
use pullback_testkit::{number, on_all_processors};

// --- programs ---

/// What was looked at.
#[derive(Default)]
struct Seen {
    modules: usize,
    instructions: usize,
    work: u64,
    /// Modules with alarms.
    open: Vec<Vec<String>>,
}

impl Seen {
    fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Seen {
        let mut seen = Seen::default();
        for item in items {
            let Ok((module, _, ghosts)) = lower_with_ghosts(&item.program, item.fun, 64) else { continue };
            let values = look(&module, &ghosts);
            seen.modules += 1;
            seen.instructions += module.functions.iter().map(|f| size(&f.body)).sum::<usize>();
            seen.work += values.work;
            if !values.alarms.is_empty() {
                seen.open.push(values.alarms.iter().map(|a| format!("{}: {a}", item.what)).collect());
            }
        }
        seen
    }
    fn and(mut self, other: Seen) -> Seen {
        self.modules += other.modules;
        self.instructions += other.instructions;
        self.work += other.work;
        self.open.extend(other.open);
        self
    }
    fn all(all: Vec<Seen>) -> Seen {
        let seen = all.into_iter().fold(Seen::default(), Seen::and);
        println!(
            "{} modules of {} instructions, work {}: {} with alarms, {} of these",
            seen.modules,
            seen.instructions,
            seen.work,
            seen.open.len(),
            seen.open.iter().map(Vec::len).sum::<usize>()
        );
        seen.open.iter().for_each(|alarms| println!("  {} of {}", alarms.len(), alarms[0]));
        seen
    }
}

#[test]
fn values_of_programs_of_the_repository_are_there() {
    let seen = Seen::all(on_all_processors(of_repository(), |item| Seen::of([item])));
    assert!(seen.open.is_empty() && seen.modules > 900, "{:?}", seen.open);
}

#[test]
fn values_of_random_programs_are_there() {
    let mut seeds = draws("values", (20, 60), 6);
    let seen = Seen::all(on_all_processors(&mut seeds, |seed| Seen::of(&of_seed(seed))));
    // At most one module of a thousand. (Two unlucky seeds are not counted: up to four modules of one have the same alarm.)
    assert!(seen.open.len() <= 6 + seen.modules / 1000, "{:?}", seen.open);
}

/// Seeds whose programs had false alarms, for what the proof had to learn.
#[test]
fn values_that_were_doubted_are_there() {
    let seeds = [
        ("an array of no rows", 30000011),
        ("rows are as long as it is chosen, where there are rows", 40000632),
        ("memory without elements", 40001049),
        ("a row of one memory or another, chosen by a branch", 40001019),
        ("an arm that no run comes into", 40001383),
    ];
    let seen = Seen::all(on_all_processors(seeds, |(_, seed)| Seen::of(&of_seed(seed))));
    assert!(seen.open.is_empty() && seen.modules > 20, "{:?}", seen.open);
}

// --- small functions ---

/// A step; those that hold others hold so many at most.
fn step(numbers: &mut Numbers, depth: usize) -> Step {
    let steps = |numbers: &mut Numbers, most: usize| {
        (0..numbers.below(most + 1)).map(|_| step(numbers, depth - 1)).collect::<Vec<_>>()
    };
    match numbers.below(if depth > 0 { 18 } else { 15 }) {
        0..=2 => Step::Write(numbers.below(2) as i64),
        3 | 4 => Step::Load(numbers.below(2) as i64),
        5 => Step::Bind('a'),
        6 => Step::Bind('b'),
        7 => Step::Read('a'),
        8 => Step::Read('b'),
        9 => Step::Check,
        10 => Step::Own,
        11 => Step::Moved,
        12 => Step::Stored,
        13 => Step::Other,
        14 => Step::Swap,
        15 | 16 => Step::Twice(steps(numbers, 5)),
        _ => Step::Either(steps(numbers, 4), steps(numbers, 3)),
    }
}

/// What a run finds of small functions with loops and branches, the proof has seen. What it says beyond that is counted.
#[test]
fn what_runs_of_small_functions_find_is_seen() {
    let (count, seed) = (number("SMALL", 40_000), number("SEED", 0));
    let of_part = |part: u64| {
        let (mut wrong, mut right, mut silent, mut missed) = (0, 0, 0, Vec::new());
        for k in (part * 1_000..).take(1_000) {
            let mut numbers = Numbers(seed + k);
            let steps: Vec<Step> = (0..4 + numbers.below(9)).map(|_| step(&mut numbers, 2)).collect();
            let (module, ghosts) = code_of(&steps);
            if !verify(&module).alarms.is_empty() {
                continue;
            }
            let alarms = look(&module, &ghosts).alarms;
            let found = [true, false].map(|argument| alarm_of((&module, &ghosts), argument));
            match found.into_iter().flatten().next() {
                Some(text) if text.contains("was written over") => {
                    wrong += 1;
                    if alarms.is_empty() {
                        missed.push(format!("{steps:?}: {text}"));
                    }
                }
                Some(_) => {}
                None => {
                    right += 1;
                    silent += usize::from(alarms.is_empty());
                }
            }
        }
        (wrong, right, silent, missed)
    };
    let all = on_all_processors(0..count.div_ceil(1_000), of_part);
    let wrong: usize = all.iter().map(|(wrong, ..)| wrong).sum();
    let right: usize = all.iter().map(|(_, right, ..)| right).sum();
    let silent: usize = all.iter().map(|(_, _, silent, _)| silent).sum();
    let missed: Vec<&String> = all.iter().flat_map(|(.., missed)| missed).collect();
    println!("{wrong} wrong functions, {right} right ones; of these {silent} without an alarm");
    assert!(missed.is_empty(), "{} without an alarm, such as {}", missed.len(), missed[0]);
    assert!(count < 10_000 || wrong > 1_000 && 2 * silent > right, "{wrong}, {right}, {silent}");
}

// --- deliberate errors in code that the compiler made ---

/// A deliberate error at one place of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Error {
    /// Memory that is copied is used itself.
    NoCopy,
    /// What is asked for lies in other memory.
    Shared,
    /// An instruction comes before the one that it followed.
    Earlier,
    /// A store goes to where another pointer points.
    OtherPointer,
}

impl Error {
    const ALL: [Error; 4] = [Error::NoCopy, Error::Shared, Error::Earlier, Error::OtherPointer];
}

fn each_block(block: &mut Block, f: &mut dyn FnMut(&mut Block)) {
    f(block);
    for ins in block {
        ins.blocks_mut().into_iter().for_each(|inside| each_block(inside, f));
    }
}

/// Where in a block the error can be made.
fn places_in(error: Error, block: &Block, ghosts: &dyn Fn(Reg) -> bool) -> Vec<usize> {
    let plain = |ins: &Ins| ins.blocks().is_empty() && !ins.sets().iter().any(|r| ghosts(*r));
    let is_place = |k: &usize| match (error, &block[*k]) {
        (Error::NoCopy, Ins::Copy { .. }) => true,
        (Error::Shared, Ins::Alloc { .. }) => true,
        (Error::Earlier, ins) => *k > 0 && plain(ins) && !ins.only_sets(),
        (Error::OtherPointer, Ins::Store { .. }) => true,
        _ => false,
    };
    (0..block.len()).filter(is_place).collect()
}

/// Makes the error at a place that the numbers choose; whether there is one.
fn make(error: Error, (module, ghosts): (&mut Module, &Ghosts), numbers: &mut Numbers) -> bool {
    let id = FunctionId::new(numbers.below(module.functions.len()));
    let f = &mut module.functions[id];
    let is_event = |r: Reg| ghosts.of(id, r).is_some();
    let regs = f.regs.clone();
    let pointers: Vec<Reg> = regs.ids().filter(|r| regs[*r].ty == Ty::Pointer && !is_event(*r)).collect();
    let mut places = 0;
    each_block(&mut f.body, &mut |block| places += places_in(error, block, &is_event).len());
    let Some(mut chosen) = (places > 0).then(|| numbers.below(places)) else { return false };
    let mut is_made = false;
    each_block(&mut f.body, &mut |block| {
        let here = places_in(error, block, &is_event);
        match here.get(chosen) {
            Some(at) if !is_made => {
                let near = pointers.len().min(12);
                // One of the registers that were made before.
                let before = |r: Reg| {
                    pointers.iter().filter(|p| **p < r).rev().take(near).copied().collect::<Vec<_>>()
                };
                is_made = change(error, block, *at, &before, numbers);
                chosen = usize::MAX;
            }
            _ => chosen = chosen.saturating_sub(here.len()),
        }
    });
    is_made
}

fn change(
    error: Error,
    block: &mut Block,
    at: usize,
    before: &dyn Fn(Reg) -> Vec<Reg>,
    numbers: &mut Numbers,
) -> bool {
    let mut other = |r: Reg| {
        let all = before(r);
        (!all.is_empty()).then(|| all[numbers.below(all.len())])
    };
    match (error, &mut block[at]) {
        (Error::NoCopy, Ins::Copy { to: Operand::Reg(to), from, .. }) => {
            let set = Ins::Set { to: *to, value: *from };
            block[at] = set;
            true
        }
        (Error::Shared, Ins::Alloc { to, .. }) => {
            let to = *to;
            let Some(value) = other(to) else { return false };
            block[at] = Ins::Set { to, value: value.into() };
            true
        }
        (Error::Earlier, _) => {
            block.swap(at - 1, at);
            true
        }
        (Error::OtherPointer, Ins::Store { pointer: Operand::Reg(r), .. }) => {
            let Some(value) = other(*r) else { return false };
            *r = value;
            true
        }
        _ => false,
    }
}

fn tamper(seed: u64) -> (Counts<Error>, Vec<String>) {
    let (mut counts, mut missed) = (Counts::new(), Vec::new());
    for (k, run) in runs_of_seed(seed).iter().enumerate() {
        let Ok((module, id, ghosts)) = lower_with_ghosts(&run.program, run.fun, 64) else { continue };
        if module.functions.iter().map(|f| size(&f.body)).sum::<usize>() > 4_000 {
            continue;
        }
        let open = order::look(&module).open.len();
        for (n, error) in Error::ALL.into_iter().enumerate() {
            let mut numbers = Numbers(seed * 1_000 + k as u64 * 10 + n as u64);
            for _ in 0..3 {
                let mut wrong = module.clone();
                if !make(error, (&mut wrong, &ghosts), &mut numbers) {
                    continue;
                }
                let found = found(run, (&wrong, id, &ghosts));
                let count = counts.entry(error).or_default();
                count[0] += 1;
                count[2] += usize::from(found.is_some());
                let is_seen = !look(&wrong, &ghosts).alarms.is_empty();
                count[1] += usize::from(is_seen);
                let Some(text) = found.filter(|_| !is_seen) else { continue };
                // Level 2 believes the other two proofs.
                if verify(&wrong).alarms.is_empty() && order::look(&wrong).open.len() <= open {
                    missed.push(format!("{error:?} in {}: {text}", run.what));
                }
            }
        }
    }
    (counts, missed)
}

/// A variable that a run reads after it was written over.
fn found(run: &Run, code: (&Module, FunctionId, &Ghosts)) -> Option<String> {
    let find = || alarm_in((&run.program, run.fun), code, &run.args[0], (300_000, false));
    let text = std::panic::catch_unwind(std::panic::AssertUnwindSafe(find)).unwrap_or(None)?;
    text.contains("was written over").then_some(text)
}

#[test]
fn what_runs_of_tampered_code_find_is_seen() {
    let (count, seed) = (number("TAMPERED", 24), number("SEED", 0));
    let total = total(on_all_processors(seed..seed + count, tamper), "a run");
    let found: usize = total.values().map(|[_, _, found]| found).sum();
    assert!(count < 20 || found > 20, "{found} found by runs");
}
