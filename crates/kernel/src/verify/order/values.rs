//! What registers hold, as sums, tests and places, at each point of a walk over the code.
//!
//! A register that a loop sets is something new in each iteration, and after the loop; so is one that two arms set to different values. Everything has the number of
//! the moment when it was made: what was made before a loop is the same in all of its iterations.

use super::numbers::Numbers;
use super::sums::{Atom, Sum};
use crate::ir::{Function, Ins, Operand, Reg, Ty};
use pullback_base::index::IndexVec;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::rc::Rc;

/// So many places around each other are kept of a pointer.
const ROOMS: usize = 6;

/// What a register holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// It was not set, or is of no use here.
    Unknown,
    Number(Rc<Sum>),
    Test(Rc<Test>),
    Pointer(Rc<Place>),
}

/// A truth value.
#[derive(Debug, PartialEq)]
pub(super) enum Test {
    /// What it depends on is not known.
    Some(Atom),
    Known(bool),
    /// `eq`, `ne`, `lt` or `le` of two sums.
    Compared(Op, Sum, Sum),
    Not(Rc<Test>),
    Both(Rc<Test>, Rc<Test>),
    Either(Rc<Test>, Rc<Test>),
}

/// Where a pointer points: so many bytes from a base on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) base: Atom,
    pub(super) offset: Sum,
    /// Places that it is in, the innermost last.
    pub(super) rooms: Vec<Span>,
}

/// Bytes: from where on, counted from a base, and how many.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) from: Sum,
    pub(super) length: Sum,
}

/// What the registers of a function hold at a point.
pub(super) struct Values<'a> {
    f: &'a Function,
    pub(super) numbers: Numbers,
    holds: IndexVec<Reg, Value>,
    /// What registers held before, since the outermost branch began.
    log: Vec<(Reg, Value)>,
    branches: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(f: &'a Function) -> Values<'a> {
        let holds = f.regs.iter().map(|_| Value::Unknown).collect();
        Values { f, numbers: Numbers::default(), holds, log: Vec::new(), branches: 0 }
    }
    pub(super) fn set(&mut self, r: Reg, value: Value) {
        let before = std::mem::replace(&mut self.holds[r], value);
        if self.branches > 0 {
            self.log.push((r, before));
        }
    }
    /// Something new.
    pub(super) fn renew(&mut self, r: Reg) {
        let value = self.anything(self.f.regs[r].ty);
        self.set(r, value);
    }
    fn anything(&mut self, ty: Ty) -> Value {
        match ty {
            Ty::Pointer => self.pointer(),
            Ty::I64 => Value::Number(Rc::new(Sum::atom(self.numbers.fresh()))),
            Ty::BOOL => Value::Test(Rc::new(Test::Some(self.numbers.fresh()))),
            Ty::Scalar(_) | Ty::Lanes(..) => Value::Unknown,
        }
    }
    fn pointer(&mut self) -> Value {
        let base = self.numbers.fresh();
        Value::Pointer(Rc::new(Place { base, offset: Sum::default(), rooms: Vec::new() }))
    }
    fn held(&mut self, r: Reg) -> Value {
        if self.holds[r] == Value::Unknown {
            self.renew(r);
        }
        self.holds[r].clone()
    }
    /// The number that an operand is.
    pub(super) fn number(&mut self, a: Operand) -> Rc<Sum> {
        let found = match a {
            Operand::Reg(r) => self.held(r),
            Operand::Const(ScalarValue::I64(n)) => Value::Number(Rc::new(Sum::constant(n))),
            Operand::Const(_) | Operand::Null => Value::Unknown,
        };
        match found {
            Value::Number(sum) => sum,
            _ => Rc::new(Sum::atom(self.numbers.fresh())),
        }
    }
    pub(super) fn test(&mut self, a: Operand) -> Rc<Test> {
        let found = match a {
            Operand::Reg(r) => self.held(r),
            Operand::Const(ScalarValue::Bool(x)) => Value::Test(Rc::new(Test::Known(x))),
            Operand::Const(_) | Operand::Null => Value::Unknown,
        };
        match found {
            Value::Test(test) => test,
            _ => Rc::new(Test::Some(self.numbers.fresh())),
        }
    }
    pub(super) fn place(&mut self, a: Operand) -> Rc<Place> {
        let found = match a {
            Operand::Reg(r) => self.held(r),
            Operand::Const(_) | Operand::Null => Value::Unknown,
        };
        let found = if let Value::Unknown = found { self.pointer() } else { found };
        match found {
            Value::Pointer(place) => place,
            _ => Rc::new(Place { base: self.numbers.fresh(), offset: Sum::default(), rooms: Vec::new() }),
        }
    }
    /// So many bytes as elements of a type take.
    pub(super) fn bytes(&mut self, count: &Sum, ty: Ty) -> Sum {
        let bytes = count.times_constant(ty.bytes() as i64);
        bytes.unwrap_or_else(|| Sum::atom(self.numbers.fresh()))
    }
    pub(super) fn sum(&mut self, a: &Sum, b: &Sum) -> Sum {
        a.plus(b, 1).unwrap_or_else(|| Sum::atom(self.numbers.fresh()))
    }

    // --- instructions ---

    /// An instruction that has no blocks inside.
    pub(super) fn instruction(&mut self, ins: &Ins) {
        match ins {
            Ins::Set { to, value } => {
                let value = match self.f.regs[*to].ty {
                    Ty::I64 => Value::Number(self.number(*value)),
                    Ty::BOOL => Value::Test(self.test(*value)),
                    Ty::Pointer => Value::Pointer(self.place(*value)),
                    Ty::Scalar(_) | Ty::Lanes(..) => Value::Unknown,
                };
                self.set(*to, value);
            }
            Ins::Prim { to, prim: Prim::Op(op, scalar), args } if !self.f.regs[*to].ty.is_lanes() => {
                let value = self.primitive(*to, (*op, *scalar), args);
                self.set(*to, value);
            }
            Ins::Offset { to, pointer, index, ty, room } => {
                let place = self.offset(*pointer, *index, *ty, *room);
                self.set(*to, Value::Pointer(Rc::new(place)));
            }
            Ins::Alloc { to, count, .. } => {
                let count = self.number(*count);
                self.numbers.is_count(&count);
                self.renew(*to);
            }
            Ins::Fill { count, .. } | Ins::Copy { count, .. } => {
                let count = self.number(*count);
                self.numbers.is_count(&count);
            }
            Ins::Fail { condition, .. } => {
                let test = self.test(*condition);
                self.learn(&test, false);
            }
            _ => ins.sets().iter().for_each(|r| self.renew(*r)),
        }
    }
    fn offset(&mut self, pointer: Operand, index: Operand, ty: Ty, room: Option<Operand>) -> Place {
        let (from, index) = (self.place(pointer), self.number(index));
        let by = self.bytes(&index, ty);
        let mut place = Place::clone(&from);
        place.offset = self.sum(&from.offset, &by);
        if let Some(room) = room {
            let room = self.number(room);
            self.numbers.is_count(&room);
            let length = self.bytes(&room, ty);
            place.rooms.push(Span { from: place.offset.clone(), length });
            if place.rooms.len() > ROOMS {
                place.rooms.remove(0);
            }
        }
        place
    }
    fn primitive(&mut self, to: Reg, (op, scalar): (Op, Scalar), args: &[Operand]) -> Value {
        let made = match (scalar, self.f.regs[to].ty) {
            (Scalar::I64, Ty::I64) => self.arithmetic(op, args).map(|sum| Value::Number(Rc::new(sum))),
            (Scalar::I64, Ty::BOOL) => self.comparison(op, args).map(|test| Value::Test(Rc::new(test))),
            (Scalar::Bool, Ty::BOOL) => self.logic(op, args).map(|test| Value::Test(Rc::new(test))),
            _ => None,
        };
        made.unwrap_or_else(|| self.anything(self.f.regs[to].ty))
    }
    fn arithmetic(&mut self, op: Op, args: &[Operand]) -> Option<Sum> {
        let args: Vec<Rc<Sum>> =
            if op == Op::Select { return None } else { args.iter().map(|a| self.number(*a)).collect() };
        self.numbers.work += args.iter().map(|a| a.terms().len() as u64).sum::<u64>();
        match (op, &args[..]) {
            (Op::Add, [a, b]) => a.plus(b, 1),
            (Op::Sub, [a, b]) => a.minus(b),
            (Op::Mul, [a, b]) => a.times(b),
            (Op::Neg, [a]) => a.times_constant(-1),
            (Op::Min | Op::Max | Op::And | Op::Or | Op::Xor, [a, b]) => {
                // In one order.
                let mut args = vec![Sum::clone(a), Sum::clone(b)];
                args.sort();
                Some(Sum::atom(self.numbers.operation(op, args)))
            }
            (Op::Mod | Op::Rem | Op::Div | Op::Quot | Op::Shl | Op::Shr, [a, b]) => {
                Some(Sum::atom(self.numbers.operation(op, vec![Sum::clone(a), Sum::clone(b)])))
            }
            _ => None,
        }
    }
    fn comparison(&mut self, op: Op, args: &[Operand]) -> Option<Test> {
        let (Op::Eq | Op::Ne | Op::Lt | Op::Le, [a, b]) = (op, args) else { return None };
        let (a, b) = (self.number(*a), self.number(*b));
        Some(Test::Compared(op, Sum::clone(&a), Sum::clone(&b)))
    }
    fn logic(&mut self, op: Op, args: &[Operand]) -> Option<Test> {
        match (op, args) {
            (Op::Not, [a]) => Some(Test::Not(self.test(*a))),
            (Op::And, [a, b]) => Some(Test::Both(self.test(*a), self.test(*b))),
            (Op::Or, [a, b]) => Some(Test::Either(self.test(*a), self.test(*b))),
            _ => None,
        }
    }

    // --- what is known where a test has been made ---

    /// From here on a test has this value.
    pub(super) fn learn(&mut self, test: &Test, holds: bool) {
        self.numbers.work += 1;
        match (test, holds) {
            (Test::Some(_) | Test::Known(_), _) => {}
            (Test::Not(test), _) => self.learn(test, !holds),
            (Test::Both(a, b), true) | (Test::Either(a, b), false) => {
                self.learn(a, holds);
                self.learn(b, holds);
            }
            (Test::Both(..), false) | (Test::Either(..), true) => {}
            (Test::Compared(op, a, b), _) => match (op, holds) {
                (Op::Eq, true) | (Op::Ne, false) => self.numbers.are_equal(a, b),
                (Op::Eq, false) | (Op::Ne, true) => self.numbers.differ(a, b),
                (Op::Lt, true) => self.is_below(a, b),
                (Op::Lt, false) => self.is_at_most(b, a),
                (Op::Le, true) => self.is_at_most(a, b),
                (Op::Le, false) => self.is_below(b, a),
                _ => {}
            },
        }
    }
    pub(super) fn is_at_most(&mut self, a: &Sum, b: &Sum) {
        b.minus(a).iter().for_each(|difference| self.numbers.is_not_negative(difference));
    }
    pub(super) fn is_below(&mut self, a: &Sum, b: &Sum) {
        let difference = b.minus(a).and_then(|d| d.plus_constant(-1));
        difference.iter().for_each(|difference| self.numbers.is_not_negative(difference));
    }

    // --- branches ---

    /// The beginning of an arm.
    pub(super) fn open(&mut self) -> usize {
        self.branches += 1;
        self.log.len()
    }
    /// The end of the arm that began there: what it set is as it was; what it had set.
    pub(super) fn close(&mut self, begin: usize) -> Vec<(Reg, Value)> {
        self.branches -= 1;
        let mut out = Vec::new();
        while self.log.len() > begin {
            if let Some((r, before)) = self.log.pop() {
                out.push((r, std::mem::replace(&mut self.holds[r], before)));
            }
        }
        // The last of each register was taken first.
        self.numbers.work += out.len() as u64;
        out.sort_by_key(|(r, _)| *r);
        out.dedup_by_key(|(r, _)| *r);
        out
    }
    /// What is held after two arms.
    pub(super) fn meet(&mut self, then: Vec<(Reg, Value)>, otherwise: Vec<(Reg, Value)>) {
        let (mut a, mut b) = (then.into_iter().peekable(), otherwise.into_iter().peekable());
        loop {
            let r = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some((r, _)), None) | (None, Some((r, _))) => *r,
                (Some((r, _)), Some((q, _))) => *r.min(q),
            };
            let value = |arm: &mut std::iter::Peekable<std::vec::IntoIter<(Reg, Value)>>| {
                arm.next_if(|(q, _)| *q == r).map_or_else(|| self.holds[r].clone(), |(_, value)| value)
            };
            let (x, y) = (value(&mut a), value(&mut b));
            if x == y {
                self.set(r, x);
            } else {
                self.renew(r);
            }
        }
    }
    /// What is held where one arm does not come to its end.
    pub(super) fn take(&mut self, values: Vec<(Reg, Value)>) {
        values.into_iter().for_each(|(r, value)| self.set(r, value));
    }
}
