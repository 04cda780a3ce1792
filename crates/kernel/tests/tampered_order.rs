//! Deliberate errors in the order of loops and in the places that their iterations use. Where a run from the end gives other values, the verifier has an alarm, or the
//! claim of the loop is not shown.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/numbers.rs"]
mod numbers;

use crate::common::tampering::{Counts, total};
use numbers::Numbers;
use pullback_base::index::Index;
use pullback_core::Value;
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::verify::order::look;
use pullback_kernel::verify::verify;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty, lower};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::kernels::runs_of_seed;
use pullback_testkit::native::{Run, near};
use pullback_testkit::{number, on_all_processors};

/// A deliberate error at one place of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Error {
    /// A loop in given order is one in any order.
    AnyOrder,
    /// In a loop in any order, the element behind the one that a counter counts is read.
    NextRead,
    /// The same is written.
    NextWritten,
    /// In a loop in any order, what it writes is read instead.
    OtherBase,
    /// The rows of all iterations, which are written, are the first one.
    LostRow,
}

const ALL: [Error; 5] =
    [Error::AnyOrder, Error::NextRead, Error::NextWritten, Error::OtherBase, Error::LostRow];

/// What is around an instruction, inside of a loop in any order.
#[derive(Clone, Default)]
struct Around {
    /// Counters of the loops, from that one on.
    counters: Vec<Reg>,
    /// What the body of the loop writes, and all that it sets.
    written: Vec<Operand>,
    set: Vec<Reg>,
    /// Numbers that are its counter times something.
    rows: Vec<Reg>,
    /// What stores go through.
    stored: Vec<Operand>,
}

impl Around {
    /// Of the body of a loop in any order.
    fn of(i: Reg, body: &Block) -> Around {
        let mut around = Around { counters: vec![i], ..Around::default() };
        pullback_kernel::walk(body, &mut |ins| {
            around.set.extend(ins.sets());
            if let Ins::Store { pointer, .. } = ins {
                around.stored.push(*pointer);
            }
            match ins {
                Ins::Store { pointer, ty: Ty::Scalar(Scalar::F64), .. } => around.written.push(*pointer),
                Ins::Prim { to, prim: Prim::Op(Op::Mul, Scalar::I64), args } if args.contains(&i.into()) => {
                    around.rows.push(*to);
                }
                _ => {}
            }
        });
        let set = &around.set;
        around.written.retain(|p| p.as_reg().is_some_and(|p| !set.contains(&p)));
        around
    }
}

impl Around {
    /// Inside of a loop in given order.
    fn and(&self, i: Reg) -> Around {
        let mut inside = self.clone();
        if !inside.counters.is_empty() {
            inside.counters.push(i);
        }
        inside
    }
}

/// A walk that makes an error at the place of a number.
struct Tamper {
    error: Error,
    /// Places to pass before.
    left: usize,
    places: usize,
    regs: pullback_base::index::IndexVec<Reg, RegInfo>,
}

impl Tamper {
    /// Whether this is the place.
    fn is_here(&mut self) -> bool {
        self.places += 1;
        self.places == self.left + 1
    }
    fn block(&mut self, block: &mut Block, around: &Around) {
        let mut at = 0;
        while at < block.len() {
            self.instruction(block, at, around);
            match &mut block[at] {
                Ins::For { i, from, to, body, order } => {
                    let is_single = from.as_i64() == Some(0) && to.as_i64() == Some(1);
                    let inside = match order {
                        Order::Any(_) if is_single => Around::default(),
                        Order::Any(_) => Around::of(*i, body),
                        Order::Given => around.and(*i),
                    };
                    self.block(body, &inside);
                }
                // (Code that never runs is left as it is.)
                Ins::Fail { condition: Operand::Const(ScalarValue::Bool(true)), .. } => return,
                Ins::If { condition: Operand::Const(ScalarValue::Bool(holds)), then, otherwise } => {
                    self.block(if *holds { then } else { otherwise }, around);
                }
                ins => ins.blocks_mut().into_iter().for_each(|b| self.block(b, around)),
            }
            at += 1;
        }
    }
    fn instruction(&mut self, block: &mut Block, at: usize, around: &Around) {
        let counts = |index: &Operand| around.counters.iter().any(|i| *index == (*i).into());
        match (self.error, &mut block[at]) {
            (Error::AnyOrder, Ins::For { order: order @ Order::Given, .. }) if self.is_here() => {
                *order = Order::Any(Vec::new());
            }
            (Error::NextRead, Ins::Load { index, .. }) | (Error::NextWritten, Ins::Store { index, .. })
                if counts(index) && self.is_here() =>
            {
                let next = self.regs.push(RegInfo::new(Ty::I64, "tampered"));
                let args = vec![std::mem::replace(index, next.into()), Operand::i64(1)];
                block.insert(at, Ins::Prim { to: next, prim: Prim::Op(Op::Add, Scalar::I64), args });
            }
            (Error::OtherBase, Ins::Load { to, pointer, .. })
                if self.regs[*to].ty == Ty::Scalar(Scalar::F64)
                    && around.written.iter().any(|p| p != pointer)
                    && self.is_here() =>
            {
                *pointer = *around.written.iter().find(|p| *p != pointer).expect("another one");
            }
            (Error::LostRow, Ins::Offset { to, pointer, index, .. })
                if around.stored.contains(&(*to).into())
                    && index.as_reg().is_some_and(|r| around.rows.contains(&r))
                    && pointer.as_reg().is_some_and(|p| !around.set.contains(&p))
                    && self.is_here() =>
            {
                *index = Operand::i64(0);
            }
            _ => {}
        }
    }
}

/// The function with the error at a place that the numbers choose; `None`: there is none.
fn tampered(error: Error, f: &Function, numbers: &mut Numbers) -> Option<Function> {
    let go = |left: usize| {
        let mut t = Tamper { error, left, places: 0, regs: f.regs.clone() };
        let mut body = f.body.clone();
        t.block(&mut body, &Around::default());
        (t.places, Function { body, regs: t.regs, ..f.clone() })
    };
    let (places, _) = go(usize::MAX - 1);
    (places > 0).then(|| go(numbers.below(places)).1)
}

/// What a function gives; `None`: it stops.
fn results(run_of: &Run, (module, id): (&Module, FunctionId), backwards: bool) -> Option<Vec<Value>> {
    let (mut memory, mut words): (Memory, Vec<Word>) = (Memory::new(1 << 20), Vec::new());
    let function = &run_of.program.funs[run_of.fun];
    // The last arguments are the largest.
    for (p, value) in function.params.iter().zip(run_of.args.last()?) {
        to_words(&mut memory, value, &run_of.program.vars[*p].ty, &mut words).ok()?;
    }
    let options = run::Options { steps: 500_000, backwards };
    let mut words = run(module, id, &words, &mut memory, options).ok()?.into_iter();
    function.results.iter().map(|t| from_words(&memory, t, &mut words).ok()).collect()
}

/// Whether code gives other values if loops in any order run from their end.
fn order_matters(run_of: &Run, module: (&Module, FunctionId)) -> bool {
    let go = |backwards| {
        let run = std::panic::AssertUnwindSafe(|| results(run_of, module, backwards));
        std::panic::catch_unwind(run).unwrap_or(None)
    };
    let (forwards, backwards) = (go(false), go(true));
    forwards.zip(backwards).is_some_and(|(a, b)| !a.iter().zip(&b).all(|(a, b)| near(a, b, 1e-6)))
}

fn tamper(seed: u64) -> (Counts<Error>, Vec<String>) {
    let (mut counts, mut missed) = (Counts::new(), Vec::new());
    for (k, run_of) in runs_of_seed(seed).iter().enumerate() {
        let Ok((module, id)) = lower(&run_of.program, run_of.fun) else { continue };
        if order_matters(run_of, (&module, id)) {
            // Rounding decides a branch.
            continue;
        }
        let before = look(&module).open.len();
        for (n, error) in ALL.into_iter().enumerate() {
            let mut numbers = Numbers(seed * 1_000 + k as u64 * 50 + n as u64);
            for _ in 0..3 {
                let at = FunctionId::new(numbers.below(module.functions.len()));
                let Some(f) = tampered(error, &module.functions[at], &mut numbers) else { continue };
                let mut wrong = module.clone();
                wrong.functions[at] = f;
                let seen = look(&wrong).open.len() > before || !verify(&wrong).alarms.is_empty();
                let matters = order_matters(run_of, (&wrong, id));
                let count = counts.entry(error).or_default();
                count[0] += 1;
                count[1] += usize::from(seen);
                count[2] += usize::from(matters);
                if matters && !seen {
                    missed
                        .push(format!("{error:?} in {}, function {}", run_of.what, wrong.functions[at].name));
                }
            }
        }
    }
    (counts, missed)
}

#[test]
fn orders_that_matter_are_not_shown() {
    let (count, seed) = (number("TAMPERED", 15), number("SEED", 0));
    let total = total(on_all_processors(seed..seed + count, tamper), "running backwards");
    // Many of the others are no errors: what is read is not written, a loop could go in any order.
    for error in ALL {
        let [made, seen, _] = total.get(&error).copied().unwrap_or_default();
        let least = if error == Error::LostRow { made } else { made / 25 };
        assert!(made > 0 && seen >= least, "{error:?}: made {made} times, {seen} seen");
    }
    let found: usize = total.values().map(|[.., found]| found).sum();
    assert!(found > 15, "{found} are found by running backwards");
}
