//! Equal values get one register.
//!
//! The lowering computes strides where it needs them. Here a primitive or pointer that has been computed before, in this
//! block or one around it, is replaced by that register; instructions nobody needs are dropped. Then equal strides are equal
//! operands, which the scheduler compares. What follows from constants is worked out, and branches on it, and loops without iterations, are gone. So are loops that do nothing, and states that a loop takes together
//! for nobody.
//!
//! A branch that asks again what an earlier one asked (the way back of a derivative asks what the way there did) has what the
//! same arm computed before. Since that makes registers which are set on some ways only, it is for code that is not
//! rewritten any more: [`Reach::Code`]. There too, what a block has loaded is not loaded again before something is written: products of small
//! matrices that are written out load each element once for each row or column of the other. Blocks inside load anew, so that what is cut
//! at loops (`pieces` of the machine code) has no more to hand over.
//!
//! Only registers that are set once, and what has been checked is not checked again. Guarantees: the same values and messages.

mod constants;

use super::pipeline::Step;
use super::registers::registers;
use super::uses::writes;
use super::work::Work;
use crate::ir::{Block, Fold, Function, Ins, Operand, Order, Reg, RegInfo, Ty};
use constants::constant;
use pullback_base::Table;
use pullback_base::index::{IdTable, IndexVec};
use pullback_prim::{Prim, Scalar, ScalarValue};

/// What is looked at.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reach {
    /// Integers, truth values and pointers: what places are computed from.
    Places,
    /// Floats too, and what the same arm of an earlier branch computed.
    Code,
}

/// Gives equal places, sizes and conditions one register (value numbering of integers and pointers).
pub(super) const ADDRESSES: Step = Step {
    name: "address-numbering",
    optional: true,
    parts: &[],
    does: "gives equal places, sizes and conditions one register (value numbering of integers and pointers)",
    assumes: "nothing",
    guarantees: "the same values and messages; no dead arms, empty loops or states that nobody asked for",
    keeps: false,
    run: |w| run(w, Reach::Places),
};

/// Gives equal values one register, floats too, and what the same arm of an earlier branch computed.
pub(super) const CODE: Step = Step {
    name: "value-numbering",
    optional: true,
    parts: &[],
    does: "gives equal values one register, floats too, and what the same arm of an earlier branch computed",
    assumes: "code that no pass rewrites any more",
    guarantees: "the same values and messages",
    keeps: false,
    run: |w| run(w, Reach::Code),
};

fn run(w: &mut Work<'_>, reach: Reach) -> bool {
    let body = w.take_body();
    w.f.body = numbered_as(&w.f, body, reach);
    true
}

/// A body with equal places in one register.
pub(super) fn numbered(f: &Function, body: Block) -> Block {
    numbered_as(f, body, Reach::Places)
}

fn numbered_as(f: &Function, body: Block, reach: Reach) -> Block {
    let (defined, _) = registers(f, &body);
    number(body, reach, (&defined, &f.regs), &f.results)
}

/// Rewrites the body of a function; `defined`: how often each register is set; `results`: registers read at its end.
fn number(
    body: Block,
    reach: Reach,
    (defined, regs): (&IndexVec<Reg, usize>, &IndexVec<Reg, RegInfo>),
    results: &[Reg],
) -> Block {
    let mut n = Numbers {
        reach,
        defined,
        regs,
        results,
        known: Table::new(),
        added: Vec::new(),
        arms: Vec::new(),
        facts: Vec::new(),
        here: 0,
        lanes: None,
        loaded: Table::new(),
        same: IdTable::new(),
    };
    let mut body = n.block(body);
    let mut needed = Needed::default();
    needed.extend(results.iter().map(|r| (*r, ())));
    // Backwards: what an instruction reads is needed if the instruction is.
    while need(&body, &mut needed) {}
    keep(&mut body, &needed);
    body
}

/// Registers whose values are needed.
type Needed = IdTable<Reg, ()>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// With up to so many arguments; null stands for none.
    Prim(Prim, Ty, [Word; 3]),
    /// Also how much room there is: whoever reads on there counts on it.
    Offset(Word, Word, Ty, Option<Word>),
    /// The counter of the loop of lanes around it too: it says which lanes are active.
    Fold(Prim, Word, Word, Option<Reg>),
    /// That a condition, in these lanes, does not hold.
    Passed(Reg, Option<Reg>),
    /// From where, at which index; for lanes their stride and mask; as what.
    Load(Word, Word, Option<(Word, Option<Word>)>, Ty),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Word {
    Reg(Reg),
    /// Its bits.
    Const(Scalar, u64),
    Null,
}

impl From<Operand> for Word {
    fn from(a: Operand) -> Word {
        match a {
            Operand::Reg(r) => Word::Reg(r),
            Operand::Const(c) => {
                let bits = match c {
                    ScalarValue::F32(x) => x.to_bits().into(),
                    ScalarValue::F64(x) => x.to_bits(),
                    _ => c.as_i64() as u64,
                };
                Word::Const(c.scalar(), bits)
            }
            Operand::Null => Word::Null,
        }
    }
}

/// What the arm of a branch computed: the condition, whether it is the arm where it holds, the values.
struct Arm {
    condition: Reg,
    holds: bool,
    values: Vec<(Key, Reg)>,
}

struct Numbers<'a> {
    reach: Reach,
    defined: &'a IndexVec<Reg, usize>,
    regs: &'a IndexVec<Reg, RegInfo>,
    results: &'a [Reg],
    /// What has been computed, in the blocks that are open.
    known: Table<Key, Reg>,
    /// The same in order.
    added: Vec<(Key, Reg)>,
    /// Arms of branches of the blocks that are open.
    arms: Vec<Arm>,
    /// What conditions are in the arms around.
    facts: Vec<(Reg, bool)>,
    /// The first of `arms` that is in the innermost block.
    here: usize,
    /// The counter of the loop of lanes around.
    lanes: Option<Reg>,
    /// What has been loaded in the innermost block since something was written.
    loaded: Table<Key, Reg>,
    same: IdTable<Reg, Operand>,
}

impl Numbers<'_> {
    fn block(&mut self, block: Block) -> Block {
        self.values(block).0
    }
    /// A block, and what it computes.
    fn values(&mut self, block: Block) -> (Block, Vec<(Key, Reg)>) {
        let (open, outer) = (self.added.len(), self.here);
        let loaded = std::mem::take(&mut self.loaded);
        self.here = self.arms.len();
        let mut out = Vec::with_capacity(block.len());
        self.all(block, &mut out);
        self.arms.truncate(self.here);
        self.here = outer;
        self.loaded = loaded;
        let values = self.added.split_off(open);
        for (key, _) in &values {
            self.known.remove(key);
        }
        (out, values)
    }
    fn all(&mut self, block: Block, out: &mut Block) {
        for ins in block {
            self.ins(ins, out);
        }
    }
    fn learn(&mut self, key: Key, r: Reg) {
        if let Key::Load(..) = key {
            self.loaded.insert(key, r);
        } else if !self.known.contains(&key) {
            self.known.insert(key, r);
            self.added.push((key, r));
        }
    }
    fn is_fixed(&self, a: Operand) -> bool {
        match a {
            Operand::Reg(r) => self.defined[r] == 1,
            Operand::Const(_) | Operand::Null => true,
        }
    }
    /// Reads what stands for other registers.
    fn rename(&self, a: &mut Operand) {
        if let Operand::Reg(r) = a
            && let Some(other) = self.same.get(*r)
        {
            *a = *other;
        }
    }
    fn ins(&mut self, mut ins: Ins, out: &mut Block) {
        ins.reads_mut(&mut |a| self.rename(a));
        match ins {
            Ins::If { condition: Operand::Const(c), then, otherwise } => {
                return self.all(if c.is_true() { then } else { otherwise }, out);
            }
            Ins::Fail { condition: Operand::Const(c), .. } if !c.is_true() => return,
            Ins::For { from, to, .. } if is_empty(from, to) => return,
            Ins::Fail { condition: Operand::Reg(r), .. } if self.defined[r] == 1 => {
                let key = Key::Passed(r, self.lanes);
                if !self.known.contains(&key) {
                    self.learn(key, r);
                    out.push(ins);
                }
                return;
            }
            // An arm in which the condition is known is in an arm of the same condition.
            Ins::If { condition, then, otherwise } if self.fact(condition).is_some() => {
                let holds = self.fact(condition) == Some(true);
                return self.all(if holds { then } else { otherwise }, out);
            }
            Ins::If { condition, then, otherwise } => {
                let (then, otherwise) = self.branch(condition, then, otherwise);
                let ins = Ins::If { condition, then, otherwise };
                self.forget(&ins);
                return out.push(ins);
            }
            _ => {}
        }
        let outer = self.lanes;
        if let Ins::Lanes { i, .. } = &ins {
            self.lanes = Some(*i);
        }
        for block in ins.blocks_mut() {
            *block = self.block(std::mem::take(block));
        }
        self.lanes = outer;
        self.forget(&ins);
        // The test is read after the block that computes it.
        if let Ins::While { test, .. } = &mut ins {
            self.rename(test);
        }
        match self.value(&ins) {
            Some((to, Value::Known(a))) => {
                self.same.insert(to, a);
                if self.results.contains(&to) {
                    out.push(Ins::Set { to, value: a });
                }
            }
            Some((to, Value::New(key))) => {
                self.learn(key, to);
                out.push(ins);
            }
            None => out.push(ins),
        }
    }
    /// What has been loaded, an instruction may write over.
    fn forget(&mut self, ins: &Ins) {
        if writes(ins) {
            self.loaded = Table::new();
        }
    }
    fn branch(&mut self, condition: Operand, then: Block, otherwise: Block) -> (Block, Block) {
        let asked = condition.as_reg().filter(|_| self.reach == Reach::Code && self.is_fixed(condition));
        let Some(condition) = asked else { return (self.block(then), self.block(otherwise)) };
        (self.arm(condition, true, then), self.arm(condition, false, otherwise))
    }
    /// What a condition is in the arms around.
    fn fact(&self, condition: Operand) -> Option<bool> {
        let condition = condition.as_reg()?;
        self.facts.iter().find(|(c, _)| *c == condition).map(|(_, holds)| *holds)
    }
    /// The arm of a branch, with what the same arm of earlier branches computed.
    fn arm(&mut self, condition: Reg, holds: bool, block: Block) -> Block {
        let open = self.added.len();
        for k in 0..self.arms.len() {
            let arm = &mut self.arms[k];
            if arm.condition == condition && arm.holds == holds {
                // What is found in this block is in the new arm from now on.
                let take = k >= self.here;
                let values = if take { std::mem::take(&mut arm.values) } else { arm.values.clone() };
                values.into_iter().for_each(|(key, r)| self.learn(key, r));
            }
        }
        self.facts.push((condition, holds));
        let (out, mut values) = self.values(block);
        self.facts.pop();
        let before = self.added.split_off(open);
        for (key, _) in &before {
            self.known.remove(key);
        }
        values.extend(before);
        // Nobody comes from an arm that always stops.
        if !out.iter().any(Ins::always_stops) {
            self.arms.push(Arm { condition, holds, values });
        }
        out
    }

    /// What an instruction computes, and for which register, if it is one that can be taken for another.
    fn value(&self, ins: &Ins) -> Option<(Reg, Value)> {
        let (to, key) = match ins {
            Ins::Prim { to, prim, args } if self.is_looked_at(prim.result()) => {
                if let Some(a) = constant(*prim, args, self.regs[*to].ty) {
                    // (What it is may be another number later.)
                    let stays = self.is_fixed((*to).into()) && self.is_fixed(a);
                    return stays.then_some((*to, Value::Known(a)));
                }
                let mut words = [Word::Null; 3];
                let places = words.get_mut(..args.len())?;
                places.iter_mut().zip(args).for_each(|(word, a)| *word = (*a).into());
                (*to, Key::Prim(*prim, self.regs[*to].ty, words))
            }
            Ins::Offset { to, pointer, index, ty, room } => {
                (*to, Key::Offset((*pointer).into(), (*index).into(), *ty, room.map(Word::from)))
            }
            Ins::FoldLanes { to, prim, neutral, from, mask: None } if self.reach == Reach::Code => {
                (*to, Key::Fold(*prim, Operand::Const(*neutral).into(), (*from).into(), self.lanes))
            }
            Ins::Load { to, pointer, index } if self.reach == Reach::Code => {
                (*to, Key::Load((*pointer).into(), (*index).into(), None, self.regs[*to].ty))
            }
            Ins::LoadLanes { to, pointer, index, stride, mask } if self.reach == Reach::Code => {
                let lanes = Some(((*stride).into(), mask.map(Word::from)));
                (*to, Key::Load((*pointer).into(), (*index).into(), lanes, self.regs[*to].ty))
            }
            Ins::Set { to, value }
                if self.defined[*to] == 1 && self.is_fixed(*value) && self.is_alike(*to, *value) =>
            {
                return Some((*to, Value::Known(*value)));
            }
            _ => return None,
        };
        let mut fixed = self.is_fixed(to.into());
        ins.reads(&mut |a| fixed &= self.is_fixed(a));
        let table = if matches!(key, Key::Load(..)) { &self.loaded } else { &self.known };
        let known = table.get(&key).copied();
        fixed.then(|| (to, known.map_or(Value::New(key), |r| Value::Known(r.into()))))
    }
    fn is_looked_at(&self, s: Scalar) -> bool {
        self.reach == Reach::Code || !s.is_float()
    }
    /// Whether a register is of the type of what it is set to.
    fn is_alike(&self, to: Reg, value: Operand) -> bool {
        match value {
            Operand::Reg(r) => self.regs[r].ty == self.regs[to].ty,
            Operand::Const(_) => !self.regs[to].ty.is_lanes(),
            Operand::Null => true,
        }
    }
}

enum Value {
    /// It is there already.
    Known(Operand),
    New(Key),
}

/// Whether a loop runs no iteration, whatever the sizes are.
fn is_empty(from: Operand, to: Operand) -> bool {
    from.as_i64().zip(to.as_i64()).is_some_and(|(from, to)| from >= to)
}

/// Whether an instruction does something besides setting its register and running the blocks inside.
fn has_effect(ins: &Ins) -> bool {
    !matches!(
        ins,
        Ins::Set { .. }
            | Ins::Prim { .. }
            | Ins::Offset { .. }
            | Ins::Load { .. }
            | Ins::For { .. }
            | Ins::Lanes { .. }
            | Ins::If { .. }
    )
}
/// Notes what a block needs; whether something is new.
fn need(block: &Block, needed: &mut Needed) -> bool {
    let mut new = false;
    for ins in block.iter().rev() {
        for inner in ins.blocks().into_iter().rev() {
            new |= need(inner, needed);
        }
        if !is_needed(ins, needed) {
            continue;
        }
        let mut add = |a: Operand| new |= a.as_reg().is_some_and(|r| needed.insert(r, ()).is_none());
        match ins {
            Ins::For { from, to, order, .. } => {
                [*from, *to].into_iter().for_each(add);
                if let Order::Any(folds) = order {
                    folds.iter().for_each(|fold| new |= need_of_fold(fold, needed));
                }
            }
            _ => ins.reads(&mut add),
        }
    }
    new
}
/// Notes what a loop needs to take the states together that are needed, other states too.
fn need_of_fold(fold: &Fold, needed: &mut Needed) -> bool {
    let mut new = false;
    for k in 0..fold.state.len() {
        if needed.contains(fold.state[k]) {
            for r in [fold.out[k], fold.neutral[k]].iter().filter_map(|a| a.as_reg()) {
                new |= needed.insert(r, ()).is_none();
            }
        }
    }
    new |= need(&fold.combine, needed);
    for (k, state) in fold.state.iter().enumerate() {
        if needed.contains(fold.left[k]) || needed.contains(fold.right[k]) {
            new |= needed.insert(*state, ()).is_none();
        }
    }
    new
}

fn is_needed(ins: &Ins, needed: &Needed) -> bool {
    let inside = || ins.blocks().into_iter().flatten().any(|ins| is_needed(ins, needed));
    has_effect(ins) || (ins.sets().iter().any(|r| needed.contains(*r)) && ins.blocks().is_empty()) || inside()
}

/// Drops what is not needed: loops that do nothing, and states of folds that nobody asks for.
fn keep(block: &mut Block, needed: &Needed) {
    block.retain_mut(|ins| {
        ins.blocks_mut().into_iter().for_each(|inner| keep(inner, needed));
        if let Ins::For { order: Order::Any(folds), .. } = ins {
            folds.iter_mut().for_each(|fold| keep_of_fold(fold, needed));
            folds.retain(|fold| !fold.state.is_empty());
        }
        has_effect(ins)
            || !ins.blocks().into_iter().all(|inner| inner.is_empty())
            || (ins.blocks().is_empty() && ins.sets().iter().any(|r| needed.contains(*r)))
    });
}

fn keep_of_fold(fold: &mut Fold, needed: &Needed) {
    keep(&mut fold.combine, needed);
    let stays: Vec<bool> = fold.state.iter().map(|r| needed.contains(*r)).collect();
    for regs in [&mut fold.state, &mut fold.left, &mut fold.right] {
        let mut stays = stays.iter();
        regs.retain(|_| stays.next() == Some(&true));
    }
    for operands in [&mut fold.neutral, &mut fold.out] {
        let mut stays = stays.iter();
        operands.retain(|_| stays.next() == Some(&true));
    }
}
