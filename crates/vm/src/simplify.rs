//! Less to do for the same: what has been computed is not computed again, what has been checked is not checked again, and what
//! nobody reads is dropped.
//!
//! Every register has the number of its value at each place of the text; equal numbers are equal values. A primitive of the same
//! values as an earlier one, in this block or one around it, gives the same value. A register that loops and branches set has
//! a new value at their start and behind them. (The schedule numbers registers that are set once; here all of them are, so that
//! states of loops count, and what became equal by putting loops into lanes.)

use crate::uses::{Counts, mentioned, reads};
use pullback_abi::word;
use pullback_base::Table;
use pullback_base::index::{IdTable, IndexVec};
use pullback_kernel::{Block, Function, Ins, Operand, Order, Reg, Ty, walk};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::BTreeSet;

/// Simplifies a function.
pub(crate) fn simplify(f: &mut Function) {
    in_given_order(&mut f.body);
    let counts = Counts::of(f);
    let single = |r: Reg| counts.sets[r] == 1 && !f.results.contains(&r);
    let single = f.regs.ids().map(single).collect();
    let mut n = Numbers {
        f: &*f,
        single,
        values: IndexVec::new(),
        next: 0,
        constants: Table::new(),
        constant_of: Table::new(),
        known: Table::new(),
        log: Vec::new(),
        negated: Table::new(),
        same: IdTable::new(),
    };
    for _ in f.regs.iter() {
        let value = n.new_value();
        n.values.push(value);
    }
    let body = n.block(f.body.clone());
    f.body = body;
    without_unread(f);
}

/// Executors of this kind run iterations as they come: what is known about the order is dropped with what it reads.
fn in_given_order(block: &mut Block) {
    for ins in block {
        if let Ins::For { order, .. } = ins {
            *order = Order::Given;
        }
        ins.blocks_mut().into_iter().for_each(in_given_order);
    }
}

/// The number of a value.
type Value = u32;

/// What gives a value, or is done: equal keys are the same.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// A primitive; whether its result is in lanes.
    Prim(Prim, Vec<Value>, bool),
    Offset(Value, Value, Ty),
    /// The condition has been found not to hold.
    Fail(Value),
}

struct Numbers<'a> {
    f: &'a Function,
    /// Registers that are set once and are no results.
    single: IndexVec<Reg, bool>,
    values: IndexVec<Reg, Value>,
    next: Value,
    constants: Table<(Option<Scalar>, u64), Value>,
    constant_of: Table<Value, Operand>,
    /// What has been computed, in the blocks that are open: its value, and the register that got it.
    known: Table<Key, (Value, Option<Reg>)>,
    /// The keys in the order in which they became known.
    log: Vec<Key>,
    /// Of truth values that are the contrary of another one: that one, and its value.
    negated: Table<Value, (Operand, Value)>,
    /// Registers that are not set any more, and those that hold the same.
    same: IdTable<Reg, Reg>,
}

impl Numbers<'_> {
    fn new_value(&mut self) -> Value {
        self.next += 1;
        self.next
    }
    fn value(&mut self, a: Operand) -> Value {
        let key = match a {
            Operand::Reg(r) => return self.values[r],
            Operand::Const(c) => (Some(c.scalar()), word(c)),
            Operand::Null => (None, 0),
        };
        if let Some(value) = self.constants.get(&key) {
            return *value;
        }
        let value = self.new_value();
        self.constants.insert(key, value);
        self.constant_of.insert(value, a);
        value
    }
    /// What to read instead.
    fn read(&self, a: Operand) -> Operand {
        let Operand::Reg(r) = a else { return a };
        let r = self.same.get(r).copied().unwrap_or(r);
        self.constant_of.get(&self.values[r]).copied().unwrap_or(Operand::Reg(r))
    }
    /// Registers that are set in blocks hold something new.
    fn forget(&mut self, blocks: &[&Block]) {
        let mut set = Vec::new();
        blocks.iter().for_each(|b| walk(b, &mut |ins| set.extend(ins.sets())));
        for r in set {
            self.values[r] = self.new_value();
        }
    }
    fn block(&mut self, block: Block) -> Block {
        let open = self.log.len();
        let mut out = Vec::with_capacity(block.len());
        for ins in block {
            out.extend(self.ins(ins));
        }
        self.close(open);
        out
    }
    /// What has become known since is not known any more.
    fn close(&mut self, open: usize) {
        for key in self.log.drain(open..) {
            self.known.remove(&key);
        }
    }
    fn inside(&mut self, block: &mut Block) {
        *block = self.block(std::mem::take(block));
    }
    fn ins(&mut self, mut ins: Ins) -> Option<Ins> {
        if !matches!(ins, Ins::While { .. }) {
            ins.reads_mut(&mut |a| *a = self.read(*a));
        }
        match &mut ins {
            Ins::For { i, body, .. } | Ins::Lanes { i, body, .. } => {
                let i = *i;
                self.forget(&[body]);
                self.values[i] = self.new_value();
                self.inside(body);
                self.forget(&[body]);
                self.values[i] = self.new_value();
            }
            Ins::While { condition, test, body } => {
                self.forget(&[condition, body]);
                // What the condition computes is known in the body.
                let open = self.log.len();
                let before = std::mem::take(condition);
                for ins in before {
                    condition.extend(self.ins(ins));
                }
                *test = self.read(*test);
                self.inside(body);
                self.close(open);
                self.forget(&[condition, body]);
            }
            Ins::If { then, otherwise, .. } => {
                let mut before = Vec::new();
                walk(then, &mut |ins| before.extend(ins.sets().iter().map(|r| (*r, self.values[*r]))));
                self.inside(then);
                before.into_iter().for_each(|(r, value)| self.values[r] = value);
                self.inside(otherwise);
                self.forget(&[then, otherwise]);
            }
            Ins::Fail { condition, .. } => {
                if *condition == Operand::bool(false) {
                    return None;
                }
                let key = Key::Fail(self.value(*condition));
                if self.known.contains(&key) {
                    return None;
                }
                self.know(key, 0, None);
            }
            Ins::Set { to, value } => {
                let (to, value) = (*to, self.value(*value));
                self.values[to] = value;
            }
            Ins::Prim { to, prim, args } => {
                let (to, prim) = (*to, *prim);
                if let Some(value) = self.folded(prim, args) {
                    self.values[to] = self.value(value);
                    return Some(Ins::Set { to, value });
                }
                let key = Key::Prim(
                    prim,
                    args.iter().map(|a| self.value(*a)).collect(),
                    self.f.regs[to].ty.is_lanes(),
                );
                let negated =
                    (prim == Prim::Op(Op::Not, Scalar::Bool)).then(|| (args[0], self.value(args[0])));
                let out = self.computed(to, key, ins);
                if let Some(other) = negated {
                    self.negated.insert(self.values[to], other);
                }
                return out;
            }
            Ins::Offset { to, pointer, index, ty, .. } => {
                let (to, key) = (*to, Key::Offset(self.value(*pointer), self.value(*index), *ty));
                return self.computed(to, key, ins);
            }
            _ => {
                for &r in ins.sets() {
                    self.values[r] = self.new_value();
                }
            }
        }
        Some(ins)
    }
    fn know(&mut self, key: Key, value: Value, holder: Option<Reg>) {
        self.log.push(key.clone());
        self.known.insert(key, (value, holder));
    }
    /// An instruction that gives `to` what the key says.
    fn computed(&mut self, to: Reg, key: Key, ins: Ins) -> Option<Ins> {
        let Some((value, holder)) = self.known.get(&key).copied() else {
            let value = self.new_value();
            self.values[to] = value;
            self.know(key, value, Some(to));
            return Some(ins);
        };
        self.values[to] = value;
        match holder {
            Some(h) if h != to && self.single[h] && self.single[to] => {
                self.same.insert(to, h);
                None
            }
            Some(h) if h != to && self.values[h] == value => Some(Ins::Set { to, value: h.into() }),
            _ => Some(ins),
        }
    }
    /// An operand with the value of a primitive, if that is one of its arguments or a constant. May exchange arguments.
    fn folded(&mut self, prim: Prim, args: &mut [Operand]) -> Option<Operand> {
        match (prim, args) {
            (Prim::Op(Op::Select, _), [condition, x, y]) => {
                let value = self.value(*condition);
                if let Some((other, then)) = self.negated.get(&value).copied()
                    && self.value(other) == then
                {
                    *condition = other;
                    std::mem::swap(x, y);
                }
                match condition {
                    Operand::Const(ScalarValue::Bool(c)) => Some(if *c { *x } else { *y }),
                    _ => (self.value(*x) == self.value(*y)).then_some(*x),
                }
            }
            (Prim::Op(op @ (Op::And | Op::Or), Scalar::Bool), [x, y]) => {
                let neutral = Operand::bool(op == Op::And);
                let absorbs = Operand::bool(op == Op::Or);
                match (*x, *y) {
                    (x, y) if x == absorbs || y == absorbs => Some(absorbs),
                    (x, y) if x == neutral => Some(y),
                    (x, y) if y == neutral => Some(x),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Drops what sets registers that nobody reads, or that are set again before they are read.
fn without_unread(f: &mut Function) {
    let mut counts = Counts::of(f);
    let mut body = std::mem::take(&mut f.body);
    while drop_unread(&mut body, &mut counts) {}
    f.body = body;
}

/// Whether there was something to drop.
fn drop_unread(block: &mut Block, counts: &mut Counts) -> bool {
    let mut found = false;
    // Registers that are set further down before they are read.
    let mut set_again: BTreeSet<Reg> = BTreeSet::new();
    let mut kept = Vec::with_capacity(block.len());
    while let Some(mut ins) = block.pop() {
        if ins.only_sets() && ins.sets().iter().all(|r| counts.reads[*r] == 0 || set_again.contains(r)) {
            reads(&ins, &mut |r| counts.reads[r] -= 1);
            found = true;
            continue;
        }
        let inner = ins.blocks_mut();
        if inner.is_empty() {
            set_again.extend(ins.sets());
            reads(&ins, &mut |r| {
                set_again.remove(&r);
            });
        } else {
            for b in inner {
                found |= drop_unread(b, counts);
            }
            mentioned(&ins, &mut |r| {
                set_again.remove(&r);
            });
        }
        kept.push(ins);
    }
    kept.reverse();
    *block = kept;
    found
}
