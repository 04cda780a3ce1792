//! What registers hold, as sums, tests and places, at each point of a walk over the code.
//!
//! A register that a loop sets is something new in each iteration, and after the loop; so is one that two arms set to different values. Everything has the number of
//! the moment when it was made: what was made before a loop is the same in all of its iterations.
//!
//! Registers hold words, which wrap round ([`Words`]): whoever compares places of an order believes that sums do not; whoever looks at bounds asks.
//!
//! The file is long, and one piece: what an instruction gives and what a test teaches are said in the same values.

use super::numbers::Numbers;
use super::sums::{Atom, Sum};
use crate::ir::{Function, Ins, Operand, Reg, Ty};
use pullback_base::index::IndexVec;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// So many places around each other are kept of a pointer.
const ROOMS: usize = 6;
/// So many ways are kept on which a pointer has got its value.
const WAYS: usize = 8;
/// So many pairs of tests are looked at for a question: the last ones.
const PAIRS: usize = 8;
/// A product of floats is at most so many times the product.
const ROUNDED: f64 = 1.0 + 1e-12;

/// What a register holds.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::verify) enum Value {
    /// It was not set, or is of no use here.
    Unknown,
    Number(Rc<Sum>),
    /// A float that is this product, up to rounding.
    Real(Rc<Sum>),
    Test(Rc<Test>),
    Pointer(Rc<Place>),
}

/// A truth value.
#[derive(Debug, PartialEq)]
pub(in crate::verify) enum Test {
    /// What it depends on is not known.
    Some(Atom),
    Known(bool),
    /// `eq`, `ne`, `lt` or `le` of two sums.
    Compared(Op, Sum, Sum),
    /// A product is, up to rounding, above this number.
    Above(Sum, f64),
    Not(Rc<Test>),
    Both(Rc<Test>, Rc<Test>),
    Either(Rc<Test>, Rc<Test>),
}

/// Where a pointer points: so many bytes from a base on.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::verify) struct Place {
    pub(in crate::verify) base: Atom,
    pub(in crate::verify) offset: Sum,
    /// Places that it is in, the innermost last.
    pub(in crate::verify) rooms: Vec<Span>,
}

/// Bytes: from where on, counted from a base, and how many.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::verify) struct Span {
    pub(in crate::verify) from: Sum,
    pub(in crate::verify) length: Sum,
}

impl Place {
    /// This place, if its base is at that one.
    fn moved(&self, base: &Place) -> Option<Place> {
        let inner = self.rooms.iter().map(|room| room.moved(&base.offset));
        let rooms = base.rooms.iter().cloned().map(Some).chain(inner).collect::<Option<_>>()?;
        Some(Place { base: base.base, offset: base.offset.plus(&self.offset, 1)?, rooms })
    }
}

impl Span {
    /// The span so many bytes further on.
    fn moved(&self, by: &Sum) -> Option<Span> {
        Some(Span { from: self.from.plus(by, 1)?, length: self.length.clone() })
    }
}

/// How words are told from whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Words {
    /// Sums do not wrap round, and what counts elements is made of extents.
    Believed,
    /// It is asked. What is not shown to be a word is a number of its own where it is compared.
    Asked,
}

/// What the registers of a function hold at a point.
pub(in crate::verify) struct Values<'a> {
    f: &'a Function,
    words: Words,
    /// Pairs of tests of which one does not hold; those that mention an atom.
    pairs: Vec<(Rc<Test>, Rc<Test>)>,
    paired: BTreeMap<Atom, Vec<usize>>,
    pub(in crate::verify) numbers: Numbers,
    holds: IndexVec<Reg, Value>,
    /// What registers held before, since the outermost branch began.
    log: Vec<(Reg, Value)>,
    branches: usize,
    /// What pointers were on two ways, by their base after these.
    joined: BTreeMap<Atom, [Rc<Place>; 2]>,
    /// Numbers that are another one where a number is above zero.
    chosen: BTreeMap<Atom, (Atom, Rc<Sum>)>,
    /// Bases of memory that the function makes, and the registers of that.
    made: BTreeMap<Atom, Reg>,
    /// Bases that are nowhere.
    nowhere: BTreeSet<Atom>,
}

impl Test {
    /// Adds the atoms of the sums that are compared.
    fn mention(&self, out: &mut Vec<Atom>) {
        match self {
            Test::Some(_) | Test::Known(_) => {}
            Test::Compared(_, a, b) => out.extend(a.atoms().into_iter().chain(b.atoms())),
            Test::Above(sum, _) => out.extend(sum.atoms()),
            Test::Not(test) => test.mention(out),
            Test::Both(a, b) | Test::Either(a, b) => {
                a.mention(out);
                b.mention(out);
            }
        }
    }
}

impl<'a> Values<'a> {
    pub(in crate::verify) fn new(f: &'a Function, words: Words) -> Values<'a> {
        Values {
            f,
            words,
            pairs: Vec::new(),
            paired: BTreeMap::new(),
            numbers: Numbers::default(),
            holds: f.regs.iter().map(|_| Value::Unknown).collect(),
            log: Vec::new(),
            branches: 0,
            joined: BTreeMap::new(),
            chosen: BTreeMap::new(),
            made: BTreeMap::new(),
            nowhere: BTreeSet::new(),
        }
    }
    pub(in crate::verify) fn set(&mut self, r: Reg, value: Value) {
        let before = std::mem::replace(&mut self.holds[r], value);
        if self.branches > 0 {
            self.log.push((r, before));
        }
    }
    /// Something new.
    pub(in crate::verify) fn renew(&mut self, r: Reg) {
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
    /// Whether a register has been set.
    pub(in crate::verify) fn is_set(&self, r: Reg) -> bool {
        self.holds[r] != Value::Unknown
    }
    /// The word that an operand is.
    pub(in crate::verify) fn word(&mut self, a: Operand) -> Sum {
        let sum = self.number(a);
        if self.words == Words::Asked { self.numbers.word(&sum) } else { Sum::clone(&sum) }
    }
    /// The number that an operand is, whatever multiple of the number of words is taken from it.
    pub(in crate::verify) fn number(&mut self, a: Operand) -> Rc<Sum> {
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
    pub(in crate::verify) fn test(&mut self, a: Operand) -> Rc<Test> {
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
    pub(in crate::verify) fn place(&mut self, a: Operand) -> Rc<Place> {
        let found = match a {
            Operand::Reg(r) => self.held(r),
            Operand::Const(_) | Operand::Null => Value::Unknown,
        };
        let found = if let Value::Unknown = found { self.pointer() } else { found };
        match found {
            Value::Pointer(place) => {
                if a == Operand::Null {
                    self.nowhere.insert(place.base);
                }
                place
            }
            _ => Rc::new(Place { base: self.numbers.fresh(), offset: Sum::default(), rooms: Vec::new() }),
        }
    }
    /// The register that memory is in which the function makes, by its base.
    pub(in crate::verify) fn maker(&self, base: Atom) -> Option<Reg> {
        self.made.get(&base).copied()
    }
    /// Where a place and a span there are, on each way on which the base has got its value since there were so many atoms.
    pub(in crate::verify) fn ways(
        &self,
        place: &Place,
        span: Option<&Span>,
        since: u32,
    ) -> Vec<(Place, Option<Span>)> {
        let with_span = |at: Place| {
            let by = at.offset.minus(&place.offset);
            let span = by.zip(span).and_then(|(by, span)| span.moved(&by));
            (at, span)
        };
        self.places(place, since).into_iter().map(with_span).collect()
    }
    fn places(&self, place: &Place, since: u32) -> Vec<Place> {
        let (mut out, mut open) = (Vec::new(), vec![place.clone()]);
        while let Some(place) = open.pop() {
            let is_split = place.base >= since && open.len() + out.len() < WAYS;
            let ways = self.joined.get(&place.base).filter(|_| is_split);
            let moved = |ways: &[Rc<Place>; 2]| {
                ways.iter().map(|base| place.moved(base)).collect::<Option<Vec<Place>>>()
            };
            match ways.and_then(moved) {
                Some(places) => open.extend(places),
                None if self.nowhere.contains(&place.base) => {}
                None => out.push(place),
            }
        }
        out
    }
    /// So many bytes as elements of a type take.
    pub(in crate::verify) fn bytes(&mut self, count: &Sum, ty: Ty) -> Sum {
        let bytes = count.times_constant(ty.bytes() as i64);
        bytes.unwrap_or_else(|| Sum::atom(self.numbers.fresh()))
    }
    pub(in crate::verify) fn sum(&mut self, a: &Sum, b: &Sum) -> Sum {
        a.plus(b, 1).unwrap_or_else(|| Sum::atom(self.numbers.fresh()))
    }

    // --- instructions ---

    /// An instruction that has no blocks inside.
    pub(in crate::verify) fn instruction(&mut self, ins: &Ins) {
        match ins {
            Ins::Set { to, value } => {
                let value = match self.f.regs[*to].ty {
                    Ty::I64 => Value::Number(self.number(*value)),
                    Ty::BOOL => Value::Test(self.test(*value)),
                    Ty::Pointer => Value::Pointer(self.place(*value)),
                    Ty::Scalar(Scalar::F64) => {
                        value.as_reg().map_or(Value::Unknown, |r| self.holds[r].clone())
                    }
                    Ty::Scalar(_) | Ty::Lanes(..) => Value::Unknown,
                };
                self.set(*to, value);
            }
            Ins::Prim { to, prim: Prim::Convert(Scalar::I64, Scalar::F64), args }
                if self.words == Words::Asked && self.f.regs[*to].ty == Ty::Scalar(Scalar::F64) =>
            {
                let value = Value::Real(Rc::new(self.word(args[0])));
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
                self.counts(*count);
                self.renew(*to);
                let base = self.place((*to).into()).base;
                self.made.insert(base, *to);
            }
            Ins::Fill { count, .. } | Ins::Copy { count, .. } => self.counts(*count),
            Ins::Fail { condition, .. } => {
                let test = self.test(*condition);
                self.learn(&test, false);
            }
            _ => ins.sets().iter().for_each(|r| self.renew(*r)),
        }
    }
    /// An operand is a number of elements.
    fn counts(&mut self, count: Operand) {
        if self.words == Words::Believed {
            let count = self.number(count);
            self.numbers.is_count(&count);
        }
    }
    fn offset(&mut self, pointer: Operand, index: Operand, ty: Ty, room: Option<Operand>) -> Place {
        let (from, index) = (self.place(pointer), self.number(index));
        let by = self.bytes(&index, ty);
        let mut place = Place::clone(&from);
        place.offset = self.sum(&from.offset, &by);
        if let Some(room) = room {
            self.counts(room);
            let room = self.word(room);
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
            (Scalar::F64, Ty::Scalar(Scalar::F64)) if op == Op::Mul => {
                self.reals(args).and_then(|[a, b]| a.times(&b)).map(|p| Value::Real(Rc::new(p)))
            }
            (Scalar::F64, Ty::BOOL) if op == Op::Lt => {
                self.is_above(args).map(|test| Value::Test(Rc::new(test)))
            }
            (Scalar::Bool, Ty::BOOL) => self.logic(op, args).map(|test| Value::Test(Rc::new(test))),
            _ => None,
        };
        made.unwrap_or_else(|| self.anything(self.f.regs[to].ty))
    }
    fn arithmetic(&mut self, op: Op, args: &[Operand]) -> Option<Sum> {
        if op == Op::Select {
            return self.select(args);
        }
        let numbers: Vec<Rc<Sum>> = args.iter().map(|a| self.number(*a)).collect();
        self.numbers.work += numbers.iter().map(|a| a.terms().len() as u64).sum::<u64>();
        let sum = match (op, &numbers[..]) {
            (Op::Add, [a, b]) => a.plus(b, 1),
            (Op::Sub, [a, b]) => a.minus(b),
            (Op::Mul, [a, b]) => self.product(a, b),
            (Op::Neg, [a]) => a.times_constant(-1),
            _ => return self.operation(op, args),
        }?;
        // What may wrap round is of use only if it is made of sizes and counters: in a product, which may be asked about later.
        let is_kept =
            self.words == Words::Believed || self.numbers.has_naturals(&sum) || self.numbers.is_word(&sum);
        Some(if is_kept {
            sum
        } else {
            Sum::atom(self.numbers.operation(op, numbers.iter().map(|a| Sum::clone(a)).collect()))
        })
    }
    fn operation(&mut self, op: Op, args: &[Operand]) -> Option<Sum> {
        let mut args: Vec<Sum> = args.iter().map(|a| self.word(*a)).collect();
        if let (Op::Min | Op::Max, [a, b]) = (op, &args[..])
            && let Some(larger) = self.numbers.larger(a, b)
        {
            return Some(args.swap_remove(if op == Op::Max { larger } else { 1 - larger }));
        }
        match (op, args.len()) {
            // In one order.
            (Op::Min | Op::Max | Op::And | Op::Or | Op::Xor, 2) => args.sort(),
            (Op::Mod | Op::Rem | Op::Div | Op::Quot | Op::Shl | Op::Shr, 2) => {}
            _ => return None,
        }
        Some(Sum::atom(self.numbers.operation(op, args)))
    }
    fn reals(&self, args: &[Operand]) -> Option<[Rc<Sum>; 2]> {
        let real = |a: &Operand| match a {
            Operand::Reg(r) => match &self.holds[*r] {
                Value::Real(sum) => Some(sum.clone()),
                _ => None,
            },
            // (Whole numbers that a float is exactly.)
            Operand::Const(ScalarValue::F64(x)) if x.abs() < 1e15 && x.fract() == 0.0 => {
                Some(Rc::new(Sum::constant(*x as i64)))
            }
            _ => None,
        };
        let [a, b] = args else { return None };
        Some([real(a)?, real(b)?])
    }
    /// Whether a product is above a constant.
    fn is_above(&self, args: &[Operand]) -> Option<Test> {
        let [Operand::Const(ScalarValue::F64(most)), Operand::Reg(r)] = args else { return None };
        let Value::Real(sum) = &self.holds[*r] else { return None };
        Some(Test::Above(Sum::clone(sum), *most))
    }
    fn comparison(&mut self, op: Op, args: &[Operand]) -> Option<Test> {
        let (Op::Eq | Op::Ne | Op::Lt | Op::Le, [a, b]) = (op, args) else { return None };
        Some(Test::Compared(op, self.word(*a), self.word(*b)))
    }
    fn logic(&mut self, op: Op, args: &[Operand]) -> Option<Test> {
        match (op, args) {
            (Op::Not, [a]) => Some(Test::Not(self.test(*a))),
            (Op::And, [a, b]) => Some(Test::Both(self.test(*a), self.test(*b))),
            (Op::Or, [a, b]) => Some(Test::Either(self.test(*a), self.test(*b))),
            _ => None,
        }
    }

    /// The product of two sums. `n * if 0 < n { a } else { b }` is `n * a`, if `n` is not negative: rows are as long as it is said where there are rows.
    fn product(&mut self, a: &Sum, b: &Sum) -> Option<Sum> {
        let mut product = a.times(b)?;
        for x in product.atoms() {
            if let Some((n, then)) = self.chosen.get(&x)
                && let Some((times, rest)) = product.split(x)
                && times.terms().iter().all(|(factors, _)| factors.contains(n))
                && self.numbers.least(*n).is_some_and(|least| least >= 0)
                && let Some(chosen) = times.times(then).and_then(|p| p.plus(&rest, 1))
            {
                product = chosen;
            }
        }
        Some(product)
    }
    /// One of two numbers.
    fn select(&mut self, args: &[Operand]) -> Option<Sum> {
        let [condition, then, otherwise] = args else { return None };
        let (then, otherwise) = (self.word(*then), self.word(*otherwise));
        if then == otherwise {
            return Some(then);
        }
        let x = self.numbers.fresh();
        let least = [&then, &otherwise].map(|sum| self.numbers.least_of(sum));
        if let [Some(a), Some(b)] = least {
            self.numbers.at_least(x, a.min(b));
        }
        if let Test::Compared(Op::Lt, zero, n) = &*self.test(*condition)
            && let (true, Some(n)) = (zero.is_zero(), n.as_atom())
        {
            self.chosen.insert(x, (n, Rc::new(then)));
        }
        Some(Sum::atom(x))
    }

    // --- what is known where a test has been made ---

    /// From here on a test has this value.
    pub(in crate::verify) fn learn(&mut self, test: &Test, holds: bool) {
        self.numbers.work += 1;
        match (test, holds) {
            (Test::Some(_) | Test::Known(_) | Test::Above(_, _), true)
            | (Test::Some(_) | Test::Known(_), false) => {}
            (Test::Above(sum, most), false) => self.numbers.is_small(sum, (most * ROUNDED) as i128),
            (Test::Not(test), _) => self.learn(test, !holds),
            (Test::Both(a, b), true) | (Test::Either(a, b), false) => {
                self.learn(a, holds);
                self.learn(b, holds);
            }
            (Test::Both(a, b), false) => self.pair(a, b),
            (Test::Either(..), true) => {}
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
    /// One of two tests does not hold.
    fn pair(&mut self, a: &Rc<Test>, b: &Rc<Test>) {
        if self.words == Words::Believed {
            return;
        }
        let mut atoms = Vec::new();
        a.mention(&mut atoms);
        b.mention(&mut atoms);
        atoms.sort_unstable();
        atoms.dedup();
        self.numbers.work += atoms.len() as u64;
        atoms.into_iter().for_each(|x| self.paired.entry(x).or_default().push(self.pairs.len()));
        self.pairs.push((a.clone(), b.clone()));
    }
    /// Whether something that mentions these sums is shown; if not, whether it is with what follows from tests of which one does not hold.
    pub(in crate::verify) fn is_shown(
        &mut self,
        about: &[&Sum],
        mut shown: impl FnMut(&mut Numbers) -> bool,
    ) -> bool {
        if shown(&mut self.numbers) {
            return true;
        }
        let atoms: Vec<Atom> = about.iter().flat_map(|sum| self.numbers.normal(sum).atoms()).collect();
        let of =
            |x: &Atom| self.paired.get(x).into_iter().flat_map(|all| all.iter().rev().take(PAIRS).copied());
        let mut pairs: Vec<usize> = atoms.iter().flat_map(of).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let (begin, mut is_new) = (self.begin(), false);
        for k in pairs.into_iter().rev().take(PAIRS) {
            let (a, b) = self.pairs[k].clone();
            self.numbers.work += 1;
            let other = if self.holds_surely(&a) { Some(b) } else { self.holds_surely(&b).then_some(a) };
            if let Some(other) = other {
                self.learn(&other, false);
                // (What was computed before it was known that nothing wraps round.)
                let mut atoms = Vec::new();
                other.mention(&mut atoms);
                atoms.into_iter().for_each(|x| self.numbers.settle(x));
                self.learn(&other, false);
                is_new = true;
            }
        }
        let is_shown = is_new && shown(&mut self.numbers);
        self.end(begin);
        is_shown
    }
    /// Whether it is known that a test holds.
    fn holds_surely(&mut self, test: &Test) -> bool {
        let n = &mut self.numbers;
        let mut is_below = |a: &Sum, b: &Sum| a.plus_constant(1).is_some_and(|a| n.is_at_most(&a, b));
        match test {
            Test::Known(holds) => *holds,
            Test::Compared(Op::Lt, a, b) => is_below(a, b),
            Test::Compared(Op::Le, a, b) => n.is_at_most(a, b),
            Test::Compared(Op::Ne, a, b) => is_below(a, b) || is_below(b, a),
            Test::Both(a, b) => self.holds_surely(a) && self.holds_surely(b),
            Test::Either(a, b) => self.holds_surely(a) || self.holds_surely(b),
            Test::Compared(..) | Test::Some(_) | Test::Above(..) | Test::Not(_) => false,
        }
    }
    /// The beginning of a block: what is learned from here on can be forgotten.
    pub(in crate::verify) fn begin(&self) -> (usize, usize) {
        (self.numbers.begin(), self.pairs.len())
    }
    /// The end of the block that began there.
    pub(in crate::verify) fn end(&mut self, (begin, pairs): (usize, usize)) {
        self.numbers.end(begin);
        while self.pairs.len() > pairs {
            let Some((a, b)) = self.pairs.pop() else { break };
            let mut atoms = Vec::new();
            a.mention(&mut atoms);
            b.mention(&mut atoms);
            for x in atoms {
                if let Some(all) = self.paired.get_mut(&x).filter(|all| all.last() == Some(&self.pairs.len()))
                {
                    all.pop();
                }
            }
        }
    }
    pub(in crate::verify) fn is_at_most(&mut self, a: &Sum, b: &Sum) {
        b.minus(a).iter().for_each(|difference| self.numbers.is_not_negative(difference));
    }
    pub(in crate::verify) fn is_below(&mut self, a: &Sum, b: &Sum) {
        let difference = b.minus(a).and_then(|d| d.plus_constant(-1));
        difference.iter().for_each(|difference| self.numbers.is_not_negative(difference));
    }

    /// In its loop, a counter goes from a number up to another one.
    pub(in crate::verify) fn counts_up(&mut self, i: Reg, from: &Sum, to: &Sum) -> Rc<Sum> {
        let counter = self.number(i.into());
        self.is_at_most(from, &counter);
        self.is_below(from, to);
        self.is_below(&counter, to);
        counter
    }

    // --- branches ---

    /// The beginning of an arm.
    pub(in crate::verify) fn open(&mut self) -> usize {
        self.branches += 1;
        self.log.len()
    }
    /// The end of the arm that began there: what it set is as it was; what it had set.
    pub(in crate::verify) fn close(&mut self, begin: usize) -> Vec<(Reg, Value)> {
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
    pub(in crate::verify) fn meet(&mut self, then: Vec<(Reg, Value)>, otherwise: Vec<(Reg, Value)>) {
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
            } else if let (Value::Number(a), Value::Number(b)) = (&x, &y)
                && self.words == Words::Asked
                && self.numbers.normal(a) == self.numbers.normal(b)
            {
                self.set(r, x);
            } else {
                self.renew(r);
                if let (Value::Pointer(x), Value::Pointer(y)) = (x, y) {
                    let base = self.place(r.into()).base;
                    self.joined.insert(base, [x, y]);
                }
            }
        }
    }
    /// What is held where one arm does not come to its end.
    pub(in crate::verify) fn take(&mut self, values: Vec<(Reg, Value)>) {
        values.into_iter().for_each(|(r, value)| self.set(r, value));
    }
}
