//! Conditions on counters become bounds of loops.
//!
//! Where iterations of a loop do nothing unless its counter compares in some way with what the loop does not change, the loop
//! runs through the others only:
//!
//! ```text
//! for j in from .. to { c = j <= i;  if c { x = a[j] * b[j] } else { x = 0 };  s = s + x }
//!     =>   for j in from .. max (min (to - 1, i) + 1, from) { x = a[j] * b[j];  s = s + x }
//! ```
//!
//! So a product with a triangular matrix, written with a condition, takes half of the time. An iteration does nothing if, with
//! the condition false, it computes what nobody reads outside and leaves every state as it is ([`Loop::is_idle`]): it writes no
//! memory, adds nothing, and cannot stop the program. A sum that takes a zero in is as it was, to the bit: it begins with +0
//! and sums that do are never -0. Additions of zero to memory stay, since it may hold -0.
//!
//! A comparison bounds a counter if it is linear in it with factor 1 or -1 ([`Limit`]). Counters of loops that begin near 0
//! are taken to be less than 2^59, which no run reaches: sums of few of them do not overflow, so they may change sides. Other numbers may be
//! anything. Assumes bounds of loops that are not negative. Guarantees that bounds are in order.
//!
//! Source: guards as iteration domains, as in polyhedral code generation; here for one counter at a time.
//!
//! One piece of more than 500 lines: what is idle, what a comparison says, and the new bounds are three questions about one loop.

use crate::ir::{Block, Ins, Operand, Order, Reg, RegInfo, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// The body of a function with narrower loops; `results`: the registers that it is for.
pub(super) fn narrow(body: Block, results: &[Reg], regs: &mut IndexVec<Reg, RegInfo>) -> Block {
    let mut n = Narrow { regs, uses: Uses::default(), definitions: IdMap::new(), counters: IdSet::new() };
    n.uses.block(&body, 1);
    results.iter().for_each(|r| n.uses.read(*r, 1));
    define(&body, &mut n.definitions);
    n.definitions.retain(|r, _| n.uses.sets(*r) == 1);
    n.block(body)
}

/// How often registers are read and set.
#[derive(Default)]
struct Uses {
    reads: IdMap<Reg, isize>,
    sets: IdMap<Reg, isize>,
}

impl Uses {
    fn read(&mut self, r: Reg, times: isize) {
        *self.reads.entry(r).or_default() += times;
    }
    /// Counts a block so many times.
    fn block(&mut self, block: &[Ins], times: isize) {
        for ins in block {
            ins.reads(&mut |a| a.as_reg().into_iter().for_each(|r| self.read(r, times)));
            ins.sets().iter().for_each(|&r| *self.sets.entry(r).or_default() += times);
            ins.blocks().into_iter().for_each(|b| self.block(b, times));
        }
    }
    fn reads(&self, r: Reg) -> isize {
        self.reads.get(&r).copied().unwrap_or(0)
    }
    fn sets(&self, r: Reg) -> isize {
        self.sets.get(&r).copied().unwrap_or(0)
    }
}

/// Registers that primitives compute.
fn define(block: &Block, out: &mut IdMap<Reg, (Prim, Vec<Operand>)>) {
    for ins in block {
        if let Ins::Prim { to, prim, args } = ins {
            out.insert(*to, (*prim, args.clone()));
        }
        ins.blocks().into_iter().for_each(|b| define(b, out));
    }
}

struct Narrow<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    /// Of the function.
    uses: Uses,
    /// Registers that are set once, by a primitive.
    definitions: IdMap<Reg, (Prim, Vec<Operand>)>,
    /// Counters of the loops around that begin near 0.
    counters: IdSet<Reg>,
}

/// Numbers up to this may be added to counters.
pub(crate) const NEAR: i64 = 1 << 31;
/// Other numbers are compared with sums of counters as if they were no farther from 0 than this.
const FAR: i64 = 1 << 62;

/// Whether a number is at most [`NEAR`] in magnitude, which the least integer has, too.
pub(crate) fn is_near(number: i64) -> bool {
    number.unsigned_abs() <= NEAR.unsigned_abs()
}

/// Sums of counters and numbers have at most so many terms.
const TERMS: usize = 4;

impl Narrow<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            let counter = match &ins {
                Ins::For { i, from, .. } if from.as_i64().is_some_and(is_near) => Some(*i),
                _ => None,
            };
            self.counters.extend(counter);
            for inner in ins.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            while let Some(limit) = self.limit(&ins) {
                let given = out.len();
                self.uses.block(std::slice::from_ref(&ins), -1);
                ins = self.narrowed(ins, &limit, &mut out);
                self.uses.block(&out[given..], 1);
                self.uses.block(std::slice::from_ref(&ins), 1);
                self.forget_conditions(&mut ins);
            }
            counter.iter().for_each(|i| {
                self.counters.remove(i);
            });
            out.push(ins);
        }
        out
    }

    /// Drops the conditions that nobody asks any more.
    fn forget_conditions(&mut self, ins: &mut Ins) {
        let Ins::For { body, .. } = ins else { return };
        let uses = &mut self.uses;
        body.retain(|ins| match ins {
            Ins::Set { to, value: Operand::Const(ScalarValue::Bool(_)) }
                if self.definitions.contains_key(to) && uses.reads(*to) == 0 =>
            {
                uses.block(std::slice::from_ref(ins), -1);
                false
            }
            _ => true,
        });
    }

    /// A comparison that has to hold, or not, for iterations of a loop to do something.
    fn limit(&self, ins: &Ins) -> Option<Limit> {
        let Ins::For { i, body, order, .. } = ins else { return None };
        self.counters.contains(i).then_some(())?;
        let mut inside = Uses::default();
        inside.block(body, 1);
        let l = Loop { narrow: self, i: *i, order, inside };
        body.iter().find_map(|ins| {
            let Ins::Prim { to, prim, args } = ins else { return None };
            [true, false].into_iter().find_map(|holds| {
                let limit = l.compared((*to, holds), *prim, args)?;
                let mut known = assumed(*to, !holds);
                l.is_idle(body, &mut known).then_some(limit)
            })
        })
    }

    /// The loop up to a limit; `out`: what stands in front of it.
    fn narrowed(&mut self, ins: Ins, limit: &Limit, out: &mut Block) -> Ins {
        let Ins::For { i, from, to, body, order } = ins else { return ins };
        let at = self.place(limit, out);
        let one = Operand::i64(1);
        let mut op = |op, a, b| {
            let r = self.regs.push(RegInfo::new(Ty::I64, "bound"));
            out.push(Ins::Prim { to: r, prim: Prim::Op(op, Scalar::I64), args: vec![a, b] });
            Operand::Reg(r)
        };
        // After `min (to - 1, ..)` one more cannot overflow.
        let last = |op: &mut dyn FnMut(Op, Operand, Operand) -> Operand, at| {
            let top = op(Op::Sub, to, one);
            let last = op(Op::Min, top, at);
            op(Op::Add, last, one)
        };
        let (mut low, mut high) = (from, to);
        match limit.side {
            Side::Below => high = op(Op::Min, to, at),
            Side::UpTo => high = last(&mut op, at),
            Side::From => low = op(Op::Max, from, at),
            Side::Above => {
                low = last(&mut op, at);
                low = op(Op::Max, from, low);
            }
            Side::At => {
                low = op(Op::Max, from, at);
                high = last(&mut op, at);
            }
        }
        high = op(Op::Max, high, low);
        let mut known = assumed(limit.condition, limit.holds);
        let body = self.taken(body, &mut known);
        Ins::For { i, from: low, to: high, body, order }
    }

    /// A block without the branches of which it is known whether they are taken.
    fn taken(&self, block: Block, known: &mut Known) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            match ins {
                Ins::Prim { to, prim, ref args } if self.definitions.contains_key(&to) => {
                    if let Some(x) = held(known, prim, args) {
                        known.insert(to, Value::Const(ScalarValue::Bool(x)));
                    }
                    if let Some(Value::Const(c)) = known.get(&to) {
                        ins = Ins::Set { to, value: Operand::Const(*c) };
                    }
                    out.push(ins);
                }
                Ins::If { condition, then, otherwise } => match value(known, condition) {
                    Some(Value::Const(c)) => {
                        out.extend(self.taken(if c.is_true() { then } else { otherwise }, known));
                    }
                    _ => {
                        let then = self.taken(then, &mut known.clone());
                        let otherwise = self.taken(otherwise, &mut known.clone());
                        out.push(Ins::If { condition, then, otherwise });
                    }
                },
                mut ins => {
                    for inner in ins.blocks_mut() {
                        *inner = self.taken(std::mem::take(inner), &mut known.clone());
                    }
                    out.push(ins);
                }
            }
        }
        out
    }

    /// The number that the counter is compared with.
    fn place(&mut self, limit: &Limit, out: &mut Block) -> Operand {
        let mut op = |op, a: Operand, b: Operand| {
            if op == Op::Add && a.as_i64() == Some(0) {
                return b;
            }
            let r = self.regs.push(RegInfo::new(Ty::I64, "limit"));
            out.push(Ins::Prim { to: r, prim: Prim::Op(op, Scalar::I64), args: vec![a, b] });
            Operand::Reg(r)
        };
        let Sum { terms, number, .. } = &limit.sum;
        let mut at = limit.other;
        if terms.is_empty() && *number == 0 && !limit.negative {
            return at;
        }
        if at.as_i64().is_none_or(|k| k.unsigned_abs() > FAR.unsigned_abs()) {
            at = op(Op::Max, at, Operand::i64(-FAR));
            at = op(Op::Min, at, Operand::i64(FAR));
        }
        // `at - sum`, or `sum - at`.
        let (plus, minus) = if limit.negative { (Op::Add, Op::Sub) } else { (Op::Sub, Op::Add) };
        let mut total = match (limit.negative, at.as_i64()) {
            (false, _) => at,
            (true, Some(k)) => Operand::i64(-k),
            (true, None) => op(Op::Sub, Operand::i64(0), at),
        };
        for (x, sign) in terms {
            total = op(if *sign > 0 { plus } else { minus }, total, *x);
        }
        if *number != 0 {
            total = op(plus, total, Operand::i64(*number));
        }
        total
    }
}

/// Where a counter has to be.
#[derive(Clone, Copy)]
enum Side {
    Below,
    UpTo,
    At,
    From,
    Above,
}

impl Side {
    /// With the sides of the comparison exchanged.
    fn mirrored(self) -> Side {
        match self {
            Side::Below => Side::Above,
            Side::UpTo => Side::From,
            Side::At => Side::At,
            Side::From => Side::UpTo,
            Side::Above => Side::Below,
        }
    }
}

/// The iterations in which a comparison holds, or does not: those on a side of `other - sum`, if negative of `sum - other` (the
/// sum without the counter).
struct Limit {
    /// The register that says whether the comparison holds.
    condition: Reg,
    /// Whether it has to.
    holds: bool,
    side: Side,
    other: Operand,
    sum: Sum,
    negative: bool,
}

/// `factor * counter + terms + number`; the terms are counters of loops around.
#[derive(Clone, Default)]
struct Sum {
    factor: i64,
    terms: Vec<(Operand, i64)>,
    number: i64,
}

impl Sum {
    fn plus(mut self, other: &Sum, sign: i64) -> Option<Sum> {
        self.factor += sign * other.factor;
        self.number += sign * other.number;
        self.terms.extend(other.terms.iter().map(|(x, s)| (*x, sign * s)));
        (self.terms.len() <= TERMS && is_near(self.number) && self.factor.unsigned_abs() <= 2).then_some(self)
    }
}

/// What is known of a register.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    Const(ScalarValue),
    /// It holds what the state held at the beginning of the iteration.
    State(Reg),
}

type Known = IdMap<Reg, Value>;

fn assumed(condition: Reg, holds: bool) -> Known {
    Known::from([(condition, Value::Const(ScalarValue::Bool(holds)))])
}

fn value(known: &Known, a: Operand) -> Option<Value> {
    match a {
        Operand::Const(c) => Some(Value::Const(c)),
        Operand::Reg(r) => known.get(&r).copied(),
        Operand::Null => None,
    }
}

/// A truth value that follows from others that are known here.
fn held(known: &Known, prim: Prim, args: &[Operand]) -> Option<bool> {
    truth(prim, args, |a| match value(known, a)? {
        Value::Const(ScalarValue::Bool(x)) => Some(x),
        _ => None,
    })
}

/// A truth value that follows from others, of which `known` knows some.
pub(crate) fn truth(prim: Prim, args: &[Operand], known: impl Fn(Operand) -> Option<bool>) -> Option<bool> {
    let of = |k: usize| known(args[k]);
    match prim {
        Prim::Op(Op::Not, Scalar::Bool) => Some(!of(0)?),
        Prim::Op(Op::And, Scalar::Bool) => match (of(0), of(1)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Prim::Op(Op::Or, Scalar::Bool) => match (of(0), of(1)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A loop, seen from its body.
struct Loop<'a> {
    narrow: &'a Narrow<'a>,
    i: Reg,
    order: &'a Order,
    /// How often its body reads and sets registers.
    inside: Uses,
}

impl Loop<'_> {
    /// The comparison, that has to hold or not, as a limit of the counter.
    fn compared(&self, (condition, holds): (Reg, bool), prim: Prim, args: &[Operand]) -> Option<Limit> {
        self.narrow.definitions.contains_key(&condition).then_some(())?;
        let Prim::Op(op, Scalar::I64) = prim else { return None };
        let side = match (op, holds) {
            (Op::Lt, true) => Side::Below,
            (Op::Le, true) => Side::UpTo,
            (Op::Lt, false) => Side::From,
            (Op::Le, false) => Side::Above,
            (Op::Eq, true) | (Op::Ne, false) => Side::At,
            _ => return None,
        };
        let [left, right] = args[..] else { return None };
        let (sum_of_left, sum_of_right) = (self.sum(left), self.sum(right));
        let difference = sum_of_left.as_ref().zip(sum_of_right.as_ref());
        // The sum is on this side of the other number.
        let (sum, side, other) = match difference.and_then(|(l, r)| l.clone().plus(r, -1)) {
            Some(sum) => (sum, side, Operand::i64(0)),
            None => match (sum_of_left, sum_of_right) {
                (Some(sum), _) if self.is_fixed(right) => (sum, side, right),
                (_, Some(sum)) if self.is_fixed(left) => (sum, side.mirrored(), left),
                _ => return None,
            },
        };
        match sum.factor {
            1 => Some(Limit { condition, holds, side, other, sum, negative: false }),
            -1 => Some(Limit { condition, holds, side: side.mirrored(), other, sum, negative: true }),
            _ => None,
        }
    }
    /// The operand as a sum of counters and small numbers.
    fn sum(&self, a: Operand) -> Option<Sum> {
        if let Some(number) = a.as_i64() {
            return is_near(number).then(|| Sum { number, ..Sum::default() });
        }
        let r = a.as_reg()?;
        if r == self.i {
            return Some(Sum { factor: 1, ..Sum::default() });
        }
        if self.narrow.counters.contains(&r) {
            return Some(Sum { terms: vec![(a, 1)], ..Sum::default() });
        }
        match self.narrow.definitions.get(&r)? {
            (Prim::Op(Op::Add, Scalar::I64), args) => self.sum(args[0])?.plus(&self.sum(args[1])?, 1),
            (Prim::Op(Op::Sub, Scalar::I64), args) => self.sum(args[0])?.plus(&self.sum(args[1])?, -1),
            _ => None,
        }
    }
    fn is_fixed(&self, a: Operand) -> bool {
        a.as_reg().is_none_or(|r| r != self.i && self.inside.sets(r) == 0)
    }
    /// Whether a register holds nothing from one iteration to the next, nor after the loop.
    fn is_local(&self, r: Reg) -> bool {
        let all = &self.narrow.uses;
        self.inside.sets(r) == all.sets(r) && self.inside.reads(r) == all.reads(r)
    }

    /// Whether the block computes what nobody reads outside, and leaves the states as they are.
    fn is_idle(&self, block: &Block, known: &mut Known) -> bool {
        block.iter().all(|ins| self.does_nothing(ins, known))
    }
    fn does_nothing(&self, ins: &Ins, known: &mut Known) -> bool {
        match ins {
            Ins::Set { to, value: a } => {
                let held =
                    value(known, *a).or_else(|| a.as_reg().filter(|r| !self.is_local(*r)).map(Value::State));
                self.holds(*to, held, known)
            }
            // What is assumed.
            Ins::Prim { to, .. } if known.contains_key(to) && self.narrow.definitions.contains_key(to) => {
                true
            }
            Ins::Prim { to, prim, args } => {
                let held = held(known, *prim, args).map(|x| Value::Const(ScalarValue::Bool(x)));
                let held = held.or_else(|| self.unchanged(*prim, args, known).map(Value::State));
                self.holds(*to, held, known)
            }
            Ins::Load { to, .. } | Ins::Offset { to, .. } | Ins::Alloc { to, .. } | Ins::Mark { to } => {
                self.holds(*to, None, known)
            }
            Ins::Release { .. } => true,
            Ins::For { i, body, .. } => {
                forget(body, known);
                self.holds(*i, None, known) && self.is_idle(body, &mut known.clone())
            }
            Ins::If { condition, then, otherwise } => match value(known, *condition) {
                Some(Value::Const(c)) => self.is_idle(if c.is_true() { then } else { otherwise }, known),
                _ => {
                    let idle = |block| self.is_idle(block, &mut known.clone());
                    let both = idle(then) && idle(otherwise);
                    forget(then, known);
                    forget(otherwise, known);
                    both
                }
            },
            Ins::Store { .. }
            | Ins::Accumulate { .. }
            | Ins::Fill { .. }
            | Ins::Copy { .. }
            | Ins::While { .. }
            | Ins::Fail { .. }
            | Ins::Call { .. }
            | Ins::Chunks { .. }
            | Ins::Clock { .. }
            | Ins::Lanes { .. }
            | Ins::LaneNumber { .. }
            | Ins::LoadLanes { .. }
            | Ins::StoreLanes { .. }
            | Ins::AccumulateLanes { .. }
            | Ins::FoldLanes { .. }
            | Ins::Lane { .. } => false,
        }
    }
    /// A register is set to this: if it is a state, it must be what it was.
    fn holds(&self, to: Reg, held: Option<Value>, known: &mut Known) -> bool {
        if !self.is_local(to) {
            return held == Some(Value::State(to));
        }
        match held {
            Some(held) => known.insert(to, held),
            None => known.remove(&to),
        };
        true
    }
    /// The state that a primitive gives as it is: the other argument is neutral.
    fn unchanged(&self, prim: Prim, args: &[Operand], known: &Known) -> Option<Reg> {
        let [a, b] = args[..] else { return None };
        let state = |x: Operand| {
            let r = x.as_reg()?;
            match known.get(&r) {
                Some(Value::State(s)) => Some(*s),
                Some(Value::Const(_)) => None,
                None => (!self.is_local(r)).then_some(r),
            }
        };
        let constant = |x: Operand| match value(known, x)? {
            Value::Const(c) => Some(c),
            Value::State(_) => None,
        };
        let neutral = |s: Reg, c: ScalarValue| self.is_neutral(prim, s, c).then_some(s);
        let right = state(a).zip(constant(b)).and_then(|(s, c)| neutral(s, c));
        right.or_else(|| state(b).zip(constant(a)).and_then(|(s, c)| neutral(s, c)))
    }
    fn is_neutral(&self, prim: Prim, state: Reg, c: ScalarValue) -> bool {
        let Prim::Op(op, s) = prim else { return false };
        match op {
            Op::Add if s.is_float() => {
                c.is_float_zero() && (c.as_f64().is_sign_negative() || self.is_positive_sum(state))
            }
            Op::Add if s.is_integer() => c.as_i64() == 0,
            Op::Mul if s.is_float() => c.as_f64() == 1.0,
            Op::Mul if s.is_integer() => c.as_i64() == 1,
            Op::And if s == Scalar::Bool => c.is_true(),
            Op::Or if s == Scalar::Bool => !c.is_true(),
            _ => false,
        }
    }
    /// Whether the state is a sum that begins with +0: so it is never -0.
    fn is_positive_sum(&self, state: Reg) -> bool {
        let Order::Any(folds) = self.order else { return false };
        folds.iter().any(|fold| {
            let Some(k) = fold.state.iter().position(|s| *s == state) else { return false };
            let zero = matches!(fold.neutral[k], Operand::Const(c) if c.is_float_zero() && c.as_f64().is_sign_positive());
            let sides = [fold.left[k].into(), fold.right[k].into()];
            let adds = |ins: &Ins| match ins {
                Ins::Prim { to, prim: Prim::Op(Op::Add, s), args } => {
                    s.is_float() && args[..] == sides && fold.out[k] == Operand::Reg(*to)
                }
                _ => false,
            };
            zero && fold.combine.iter().any(adds)
        })
    }
}

/// Nothing is known of the registers that a block sets.
fn forget(block: &Block, known: &mut Known) {
    for ins in block {
        ins.sets().iter().for_each(|r| {
            known.remove(r);
        });
        ins.blocks().into_iter().for_each(|b| forget(b, known));
    }
}
