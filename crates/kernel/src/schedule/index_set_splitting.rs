//! Loops are cut where what they ask at their borders is settled.
//!
//! ```text
//! for i in 0 .. n { if i == 0 { x = b } else { x = a[i - 1] };  y[i] = x }
//!     =>   for i in 1 .. n { y[i] = a[i - 1] };  for i in 0 .. 1 { if i == 0 { .. } else { .. };  y[i] = x }
//! ```
//!
//! The first and last cells of a grid are not like the others, and programs ask in each cell which it is. A comparison of the counter
//! with a number near one of its ends has one answer in all iterations but a few. The loop becomes one in which the answers are known (branches on
//! them, and checks of places that they make superfluous, are gone), and one over the iterations at the borders, as it was, one after the other.
//!
//! Assumes loops in any order that begin at a constant. Sums of a counter and small numbers do not overflow where loops end below
//! [`FAR`]; a loop that does not is all border. Guarantees the same values, but for the order in which folds take their elements together: the borders
//! come last.
//!
//! Source: splitting of index sets (M. Griebl, P. Feautrier, C. Lengauer, Int. J. Parallel Programming 28, 2000), for borders of a few iterations.

use super::distribution::rename;
use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::skewed_tiling::is_nest;
use super::uses::Uses;
use super::work::Work;
use crate::ir::{Block, Fold, Ins, Operand, Order, Reg, Ty};
use crate::lower::truth;
use crate::lower::{NEAR, is_near};
use crate::walk::{size, walk};
use pullback_base::index::IdMap;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// A border has at most so many iterations.
const BORDER: i64 = 8;
/// Loops that are expected to run less often are left alone: their borders would be much of them.
const LONG: f64 = 48.0;
/// So many rows, or more, are cut if they are long.
const FEW: f64 = 8.0;
/// Bodies with more instructions are left alone: they are there twice then.
const LARGE: usize = 400;
/// Counters below this are as whole numbers are when numbers near zero are added.
const FAR: i64 = 1 << 59;

/// Cuts loops where their counter settles what branches ask.
pub(super) const STEP: Step = Step {
    name: "index-set-splitting",
    optional: true,
    parts: &[],
    does: "cuts loops where their counter settles what branches ask",
    assumes: "loops in any order; addresses have one register each",
    guarantees: "the same values, but for the order of folds",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let mut s = w.scheduler(&body);
    let (body, is_cut) = cut(&mut s, body);
    w.done(s);
    w.f.body = body;
    is_cut
}

/// Cuts the loops of a block, the outer ones first; what is at a border is not cut again. Gives the block, and whether a loop was cut.
fn cut(s: &mut Scheduler<'_>, block: Block) -> (Block, bool) {
    let mut c = Cut { s, is_cut: false };
    let block = c.block(block);
    (block, c.is_cut)
}

struct Cut<'a, 'b> {
    s: &'a mut Scheduler<'b>,
    is_cut: bool,
}

/// A loop in any order.
struct Loop {
    i: Reg,
    from: Operand,
    to: Operand,
    body: Block,
    folds: Vec<Fold>,
}

/// What the iterations that are not at a border know, and where they begin and end: from `first` on, and without the last `left`.
struct Middle {
    first: i64,
    left: i64,
    /// What no counter reaches; the last ones are before it.
    end: Operand,
    /// Comparisons that are settled. Each is made once.
    answers: Known,
}

/// Truth values that registers hold.
type Known = IdMap<Reg, bool>;

impl Cut<'_, '_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for ins in block {
            match ins {
                // What is at a border of a loop over parts is much, and threads do not share it.
                Ins::For { i, from, to, body, order: Order::Any(folds) } if !self.s.parts.contains(&i) => {
                    self.loop_(Loop { i, from, to, body, folds }, &mut out);
                }
                mut ins => {
                    for inner in ins.blocks_mut() {
                        *inner = self.block(std::mem::take(inner));
                    }
                    out.push(ins);
                }
            }
        }
        out
    }
    fn loop_(&mut self, mut l: Loop, out: &mut Block) {
        let cut = self.middle(&l).map(|m| {
            let body = settled(l.body.clone(), &m.answers, &mut m.answers.clone());
            (m, body)
        });
        // In a nest, what hangs on one thing less may be settled in the loops inside; elsewhere the branch would stay.
        let asks = if is_nest(&l.body) { questions } else { branches };
        match cut {
            Some((m, body)) if asks(&body) < asks(&l.body) => self.pieces(l, &m, body, out),
            _ => {
                l.body = self.block(l.body);
                let Loop { i, from, to, body, folds } = l;
                out.push(Ins::For { i, from, to, body, order: Order::Any(folds) });
            }
        }
    }

    /// The iterations in which comparisons are settled, if the others are few.
    fn middle(&self, l: &Loop) -> Option<Middle> {
        let begin = self.begin(l.from).filter(|k| (0..=NEAR).contains(k))?;
        // Where no memory is near all loops are cut that can be: so tests see short ones.
        let least = if self.s.options.model.near == Some(0) { 0.0 } else { LONG };
        // Rows may be few, but long. (Where they are very few, those at the borders are much of what threads share.)
        let trips = self.s.costs().trips(l.from, l.to);
        let inner = if trips >= FEW { self.inside(&l.body) } else { 1.0 };
        let long = trips * inner >= least;
        (long && branches(&l.body) > 0 && size(&l.body) <= LARGE).then_some(())?;
        // A loop over a block ends at the smaller of two numbers: at the end of all blocks, if not before.
        let ends = match self.s.ranges.op(l.to) {
            Some((Op::Min, [_, whole])) => vec![l.to, *whole],
            _ => vec![l.to],
        };
        ends.into_iter().find_map(|end| self.middle_before(l, begin, end))
    }
    /// How often the longest of the loops in a body is expected to run; 1 without any.
    fn inside(&self, body: &Block) -> f64 {
        let trips = body.iter().filter_map(|ins| match ins {
            Ins::For { from, to, .. } => Some(self.s.costs().trips(*from, *to)),
            _ => None,
        });
        trips.fold(1.0, f64::max)
    }
    fn middle_before(&self, l: &Loop, begin: i64, to: Operand) -> Option<Middle> {
        let not_negative = self.not_negative(to);
        let sums = Sums { s: self.s, i: l.i, end: self.without_numbers(not_negative) };
        let end = sums.of(not_negative)?;
        let mut m = Middle { first: begin, left: 0, end: to, answers: Known::new() };
        walk(&l.body, &mut |ins| {
            let Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args } = ins else { return };
            let settled =
                sums.compared(*op, args).and_then(|(c, mirrored)| c.settled(*op, mirrored, begin, end));
            let Some((first, left, answer)) = settled else { return };
            if self.s.defined.get(*to) == Some(&1) {
                m.first = m.first.max(first);
                m.left = m.left.max(left);
                m.answers.insert(*to, answer);
            }
        });
        (m.first > begin || m.left > 0).then_some(m)
    }
    /// A number that no counter is below.
    fn begin(&self, from: Operand) -> Option<i64> {
        from.as_i64().or_else(|| match self.s.ranges.op(from) {
            Some((Op::Max, [a, b])) => a.as_i64().or(b.as_i64()),
            _ => None,
        })
    }
    /// An end without the test whether it is negative: a loop that runs has an end above its beginning, which is not.
    fn not_negative(&self, to: Operand) -> Operand {
        match self.s.ranges.op(to) {
            Some((Op::Max, [a, zero])) if zero.as_i64() == Some(0) => *a,
            Some((Op::Max, [zero, a])) if zero.as_i64() == Some(0) => *a,
            _ => to,
        }
    }
    /// What numbers are added to.
    fn without_numbers(&self, mut a: Operand) -> Operand {
        loop {
            a = self.s.ranges.one_of(a);
            a = match self.s.ranges.op(a) {
                Some((Op::Add | Op::Sub, [x, n])) if n.as_i64().is_some() => *x,
                Some((Op::Add, [n, x])) if n.as_i64().is_some() => *x,
                _ => return a,
            };
        }
    }

    /// The loop as the middle, with this body, and the borders.
    fn pieces(&mut self, l: Loop, m: &Middle, body: Block, out: &mut Block) {
        let begin = self.begin(l.from) == Some(m.first);
        let mut first = Operand::i64(m.first);
        if l.from.as_i64().is_none() {
            first = if begin { l.from } else { self.int(out, Op::Max, [l.from, first]) };
        }
        // Where the middle ends, and the border after it begins.
        let (mut high, mut after) = (l.to, l.to);
        let near = self.int(out, Op::Le, [l.to, Operand::i64(FAR)]);
        if m.left > 0 {
            high = self.int(out, Op::Sub, [m.end, Operand::i64(m.left)]);
            if m.end != l.to {
                high = self.int(out, Op::Min, [high, l.to]);
            }
        }
        high = self.select(out, near, high, first);
        high = self.int(out, Op::Max, [high, first]);
        let before = self.int(out, Op::Min, [first, l.to]);
        after = self.int(out, Op::Min, [high, after]);
        let Loop { i, from, to, body: whole, folds } = l;
        let states: Vec<Reg> = folds.iter().flat_map(|f| f.state.iter().copied()).collect();
        let body = self.block(body);
        out.push(Ins::For { i, from: first, to: high, body, order: Order::Any(folds) });
        // A border has no folds: what it adds is added to what the middle left.
        let (i, body) = self.copy(i, whole, &states);
        let border = |from, to| vec![Ins::For { i, from, to, body, order: Order::Given }];
        if m.left == 0 && !begin {
            // All of it, where the loop ends too far away.
            let end = self.select(out, near, before, to);
            out.extend(border(from, end));
        } else if begin {
            out.extend(border(after, to));
        } else {
            let side = self.s.reg(Ty::I64, "side");
            let mut both = Vec::new();
            let is_first = self.int(&mut both, Op::Eq, [side.into(), Operand::i64(0)]);
            let low = self.select(&mut both, is_first, from, after);
            let end = self.select(&mut both, is_first, before, to);
            both.extend(border(low, end));
            let (from, to) = (Operand::i64(0), Operand::i64(2));
            out.push(Ins::For { i: side, from, to, body: both, order: Order::Given });
        }
    }
    /// A body with other registers, but for these.
    fn copy(&mut self, i: Reg, mut body: Block, states: &[Reg]) -> (Reg, Block) {
        let set = Uses::of(&body).set().into_iter().chain([i]).filter(|r| !states.contains(r));
        let names = self.s.other_names(set);
        self.is_cut |= !names.is_empty();
        rename(&mut body, &names);
        (names[&i], body)
    }
    fn int(&mut self, out: &mut Block, op: Op, args: [Operand; 2]) -> Operand {
        self.s.prim(out, Prim::Op(op, Scalar::I64), &args, "border")
    }
    fn select(&mut self, out: &mut Block, condition: Operand, a: Operand, b: Operand) -> Operand {
        self.s.prim(out, Prim::Op(Op::Select, Scalar::I64), &[condition, a, b], "border")
    }
}

/// So often a counter, so often the end of its loop, and a number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sum {
    counter: i64,
    end: i64,
    number: i64,
}

/// Sums of the counter of a loop, its end and numbers.
struct Sums<'a, 'b> {
    s: &'a Scheduler<'b>,
    i: Reg,
    end: Operand,
}

impl Sums<'_, '_> {
    fn of(&self, a: Operand) -> Option<Sum> {
        let a = self.s.ranges.one_of(a);
        if let Some(number) = a.as_i64() {
            return is_near(number).then_some(Sum { counter: 0, end: 0, number });
        }
        if a == Operand::Reg(self.i) {
            return Some(Sum { counter: 1, end: 0, number: 0 });
        }
        if a == self.end {
            return Some(Sum { counter: 0, end: 1, number: 0 });
        }
        let (op, [a, b]) = self.s.ranges.op(a)? else { return None };
        let (a, b) = (self.of(*a)?, self.of(*b)?);
        match op {
            Op::Add => a.plus(b, 1),
            Op::Sub => a.plus(b, -1),
            Op::Min | Op::Max => {
                let d = a.plus(b, -1)?;
                let less = d.number <= 0;
                (d.counter == 0 && d.end == 0).then_some(if less == (op == Op::Min) { a } else { b })
            }
            _ => None,
        }
    }
    /// The number that the counter is compared with, and whether it is on the right.
    fn compared(&self, op: Op, args: &[Operand]) -> Option<(Sum, bool)> {
        let (true, [a, b]) = (matches!(op, Op::Lt | Op::Le | Op::Eq | Op::Ne), args) else { return None };
        let d = self.of(*a)?.plus(self.of(*b)?, -1)?;
        let other = |sign: i64| Sum { counter: 0, end: -sign * d.end, number: -sign * d.number };
        match d.counter {
            1 => Some((other(1), false)),
            -1 => Some((other(-1), true)),
            _ => None,
        }
    }
}

impl Sum {
    fn plus(self, other: Sum, sign: i64) -> Option<Sum> {
        let counter = self.counter + sign * other.counter;
        let end = self.end + sign * other.end;
        let number = self.number + sign * other.number;
        let few = counter.unsigned_abs() <= 1 && end.unsigned_abs() <= 1 && is_near(number);
        few.then_some(Sum { counter, end, number })
    }
    /// Where a comparison of the counter with this number has one answer: from which counter on, without how many at the end, and the answer. The counter begins
    /// at `begin` and ends before `end`; `mirrored`: it is on the right. `None`: not in all but a few iterations.
    fn settled(self, op: Op, mirrored: bool, begin: i64, end: Sum) -> Option<(i64, i64, bool)> {
        // The first counter after the change: `i < c` ends at `c`, `i <= c` after it; `c < i` begins after `c`, `c <= i` at it.
        let after = match op {
            Op::Lt => i64::from(mirrored),
            Op::Le => i64::from(!mirrored),
            _ => 1,
        };
        let d = self.plus(end, -1)?;
        if d.end == 0 && d.number >= -BORDER {
            // Near the end, or beyond: what is said before the change.
            let before = match op {
                Op::Eq | Op::Ne => 0,
                _ => after,
            };
            let answer = match op {
                Op::Lt | Op::Le => !mirrored,
                _ => op == Op::Ne,
            };
            return Some((begin, (-(d.number + before)).max(0), answer));
        }
        if self.end == 0 && self.number - begin <= BORDER {
            let answer = match op {
                Op::Lt | Op::Le => mirrored,
                _ => op == Op::Ne,
            };
            return Some(((self.number + after).max(begin), 0, answer));
        }
        None
    }
}

/// The number of branches.
fn branches(block: &Block) -> usize {
    let mut count = 0;
    walk(block, &mut |ins| count += usize::from(matches!(ins, Ins::If { .. })));
    count
}

/// The number of branches, and of truth values that hang on two others.
fn questions(block: &Block) -> usize {
    let mut count = branches(block);
    walk(block, &mut |ins| {
        if let Ins::Prim { prim: Prim::Op(Op::And | Op::Or, Scalar::Bool), args, .. } = ins {
            count += usize::from(args.iter().all(|a| a.as_reg().is_some()));
        }
    });
    count
}

/// A block with what follows from answers, and from other truth values that are known at its beginning.
fn settled(block: Block, answers: &Known, known: &mut Known) -> Block {
    let mut out = Vec::with_capacity(block.len());
    for mut ins in block {
        // Its test is read after blocks inside.
        if matches!(ins, Ins::While { .. }) {
            forget(&ins, answers, known);
        }
        ins.reads_mut(&mut |a| {
            if let Some(x) = a.as_reg().and_then(|r| known.get(&r)) {
                *a = Operand::bool(*x);
            }
        });
        match ins {
            Ins::Prim { to, .. } if answers.contains_key(&to) => {}
            Ins::If { condition: Operand::Const(c), then, otherwise } => {
                out.extend(settled(if c.is_true() { then } else { otherwise }, answers, known));
            }
            mut ins => {
                forget(&ins, answers, known);
                for inner in ins.blocks_mut() {
                    *inner = settled(std::mem::take(inner), answers, &mut known.clone());
                }
                if let Some((to, x)) = set_to(&ins) {
                    known.insert(to, x);
                }
                out.push(ins);
            }
        }
    }
    out
}
/// Nothing is known of the registers that an instruction sets, also inside, but for answers.
fn forget(ins: &Ins, answers: &Known, known: &mut Known) {
    walk(std::slice::from_ref(ins), &mut |ins| {
        for r in ins.sets().iter().filter(|r| !answers.contains_key(r)) {
            known.remove(r);
        }
    });
}
/// The truth value that an instruction sets a register to, if that follows from constants.
fn set_to(ins: &Ins) -> Option<(Reg, bool)> {
    let constant = |a: Operand| match a {
        Operand::Const(ScalarValue::Bool(x)) => Some(x),
        _ => None,
    };
    match ins {
        Ins::Set { to, value } => Some((*to, constant(*value)?)),
        Ins::Prim { to, prim, args } => Some((*to, truth(*prim, args, constant)?)),
        _ => None,
    }
}
