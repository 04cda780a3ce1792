//! How much memory a call takes at least, from the sizes of its arguments: known before it runs.
//!
//! A run that is sure to need more memory than there is should not stop after an hour. The instructions that decide over memory
//! are carried out with what is known: numbers that follow from sizes. What depends on data counts as nothing, and so does memory
//! of a few floats that no argument decides over: it may become registers.
//!
//! Assumes: the module is not scheduled; schedules take as much or more, but for memory that iterations of loops make for themselves
//! then ([`Plan::as_scheduled`]). Guarantees: a call that goes through takes at least
//! [`Plan::least`] bytes, and one for which [`Plan::check`] finds a shortage stops there, or before for another reason.

use crate::ir::{Block, Facts, Function, FunctionId, Ins, Module, Operand, Reg, Ty};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet};
use pullback_prim::{Scalar, ScalarValue};

/// Memory is taken in multiples of so many bytes.
const ALIGNMENT: u64 = 64;

/// Memory of so many floats may become registers.
const MAYBE_REGISTERS: u64 = crate::schedule::SMALL as u64;

/// What of a function decides over memory.
#[derive(Clone, Debug)]
pub struct Plan {
    id: FunctionId,
    params: Vec<Reg>,
    body: Block,
    places: IdMap<Reg, Span>,
    tapes: IdSet<Reg>,
    /// Conditions that schedules may decide otherwise.
    choices: IdSet<Reg>,
    /// Memory that is not asked for as it was lowered.
    owned: IdSet<Reg>,
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// All of them.
    pub all: u64,
    /// Those of tapes, where reverse mode keeps what it needs again.
    pub tapes: u64,
}

/// An allocation that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// So many elements.
    pub count: u64,
    /// Bytes of an element.
    pub size: u64,
    /// Bytes that are in use then, at least.
    pub in_use: u64,
    /// The operation of the program that asks for it.
    pub span: Option<Span>,
}

impl Plan {
    /// The plan of a function of a module as it was lowered. Cost: that of copying it.
    pub fn new(module: &Module, id: FunctionId) -> Plan {
        let f: &Function = &module.functions[id];
        let with = |holds: fn(&Facts) -> bool| f.regs.ids().filter(|r| holds(&f.regs[*r].facts)).collect();
        Plan {
            id,
            params: f.params.clone(),
            body: deciding(&f.body),
            places: f.regs.iter_enumerated().filter_map(|(r, info)| Some((r, info.facts.place?))).collect(),
            tapes: with(|facts| facts.tape),
            choices: with(|facts| facts.choice),
            owned: IdSet::new(),
        }
    }
    /// The same for the module as it was scheduled: what iterations make for themselves, some of it at one time, counts as nothing.
    #[must_use]
    pub fn as_scheduled(mut self, module: &Module) -> Plan {
        let regs = &module.functions[self.id].regs;
        self.owned.extend(regs.iter().filter_map(|r| r.facts.owned));
        self
    }

    /// The most bytes that are sure to be in use at one time. `args`: the numbers among the words of the arguments that are sizes.
    pub fn least(&self, args: &[Option<i64>]) -> Bytes {
        let most = Bytes { all: u64::MAX, tapes: u64::MAX };
        self.check(args, u64::MAX).unwrap_or(most)
    }

    /// The same, of a call that may take so many bytes. Errors: the first allocation that is sure not to fit.
    pub fn check(&self, args: &[Option<i64>], limit: u64) -> Result<Bytes, Shortage> {
        self.run(args, limit).map(|run| run.peak)
    }

    fn run(&self, args: &[Option<i64>], limit: u64) -> Result<Run<'_>, Shortage> {
        let given = self.params.iter().zip(args).filter_map(|(r, n)| Some((*r, ScalarValue::I64((*n)?))));
        let mut run = Run {
            plan: self,
            limit,
            known: given.collect(),
            fixed: IdSet::new(),
            marks: IdMap::new(),
            in_use: Bytes::default(),
            peak: Bytes::default(),
        };
        run.block(&self.body)?;
        Ok(run)
    }
}

/// The instructions of a block that numbers and memory depend on.
fn deciding(block: &Block) -> Block {
    let keep = |ins: &Ins| match ins {
        Ins::Prim { .. } | Ins::Set { .. } | Ins::Alloc { .. } | Ins::Mark { .. } | Ins::Release { .. } => {
            Some(ins.clone())
        }
        Ins::Fail { .. } => Some(ins.clone()),
        // What they set is not known afterwards.
        Ins::Load { .. } | Ins::Call { .. } => Some(ins.clone()),
        ins => {
            let mut ins = ins.clone();
            let blocks = ins.blocks_mut();
            let has_blocks = !blocks.is_empty();
            blocks.into_iter().for_each(|b| *b = deciding(b));
            has_blocks.then_some(ins)
        }
    };
    block.iter().filter_map(keep).collect()
}

/// Whether the rest of a block is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoesOn,
    Stops,
}

#[derive(Clone)]
struct Run<'a> {
    plan: &'a Plan,
    limit: u64,
    /// What registers are known to hold.
    known: IdMap<Reg, ScalarValue>,
    /// Registers whose values follow from constants alone.
    fixed: IdSet<Reg>,
    marks: IdMap<Reg, Bytes>,
    in_use: Bytes,
    peak: Bytes,
}

impl Run<'_> {
    fn value(&self, a: Operand) -> Option<ScalarValue> {
        match a {
            Operand::Const(c) => Some(c),
            Operand::Reg(r) => self.known.get(&r).copied(),
            Operand::Null => None,
        }
    }
    fn number(&self, a: Operand) -> Option<i64> {
        match self.value(a)? {
            ScalarValue::I64(n) => Some(n),
            _ => None,
        }
    }
    fn truth(&self, a: Operand) -> Option<bool> {
        match self.value(a)? {
            ScalarValue::Bool(b) => Some(b),
            _ => None,
        }
    }
    /// Whether no argument decides over a value.
    fn is_fixed(&self, a: Operand) -> bool {
        a.as_reg().is_none_or(|r| self.fixed.contains(&r))
    }
    fn learn(&mut self, to: Reg, value: Option<ScalarValue>, fixed: bool) {
        if fixed {
            self.fixed.insert(to);
        } else {
            self.fixed.remove(&to);
        }
        match value {
            Some(value) => self.known.insert(to, value),
            None => self.known.remove(&to),
        };
    }
    fn forget(&mut self, block: &Block) {
        let mut set = IdSet::new();
        sets(block, &mut set);
        set.into_iter().for_each(|r| {
            self.known.remove(&r);
            self.fixed.remove(&r);
        });
    }

    fn block(&mut self, block: &Block) -> Result<Then, Shortage> {
        for ins in block {
            if self.ins(ins)? == Then::Stops {
                return Ok(Then::Stops);
            }
        }
        Ok(Then::GoesOn)
    }

    fn ins(&mut self, ins: &Ins) -> Result<Then, Shortage> {
        match ins {
            Ins::Prim { to, prim, args } => {
                let fixed = args.iter().all(|a| self.is_fixed(*a));
                let args: Option<Vec<ScalarValue>> = args.iter().map(|a| self.value(*a)).collect();
                let value = args.and_then(|args| prim.eval(&args).ok());
                self.learn(*to, value.filter(|_| !self.plan.choices.contains(to)), fixed);
            }
            Ins::Set { to, value } => self.learn(*to, self.value(*value), self.is_fixed(*value)),
            Ins::Alloc { to, .. } if self.plan.owned.contains(to) => {}
            Ins::Alloc { to, count, ty } => {
                let small = self.is_fixed(*count) && ty.scalar().is_some_and(Scalar::is_float);
                let counted = |n: &u64| !small || *n > MAYBE_REGISTERS;
                let count = self.number(*count).and_then(|n| u64::try_from(n).ok()).filter(counted);
                if let Some(count) = count {
                    self.take(*to, count, *ty)?;
                }
            }
            Ins::Mark { to } => {
                self.marks.insert(*to, self.in_use);
            }
            Ins::Release { mark } => {
                if let Some(height) = mark.as_reg().and_then(|r| self.marks.get(&r)) {
                    self.in_use = lesser(self.in_use, *height);
                }
            }
            Ins::Fail { condition, .. } if self.truth(*condition) == Some(true) => return Ok(Then::Stops),
            Ins::If { condition, then, otherwise } => match self.truth(*condition) {
                Some(true) => return self.block(then),
                Some(false) => return self.block(otherwise),
                None => self.either(then, otherwise)?,
            },
            Ins::For { from, to, body, .. } => {
                self.forget(body);
                // One iteration, of which the counter is not known.
                if let (Some(from), Some(to)) = (self.number(*from), self.number(*to))
                    && from < to
                    && self.block(body)? == Then::Stops
                {
                    return Ok(Then::Stops);
                }
                self.forget(body);
            }
            Ins::While { condition, body, .. } => {
                self.forget(condition);
                self.forget(body);
                if self.block(condition)? == Then::Stops {
                    return Ok(Then::Stops);
                }
                self.forget(condition);
            }
            ins => ins.sets().iter().for_each(|&r| self.learn(r, None, false)),
        }
        Ok(Then::GoesOn)
    }

    fn take(&mut self, to: Reg, count: u64, ty: Ty) -> Result<(), Shortage> {
        let size = ty.bytes() as u64;
        let bytes = count.checked_mul(size).and_then(|n| n.checked_next_multiple_of(ALIGNMENT));
        match bytes.and_then(|n| n.checked_add(self.in_use.all)) {
            Some(used) if used <= self.limit => {
                if self.plan.tapes.contains(&to) {
                    self.in_use.tapes += used - self.in_use.all;
                }
                self.in_use.all = used;
                self.peak.all = self.peak.all.max(used);
                self.peak.tapes = self.peak.tapes.max(self.in_use.tapes);
                Ok(())
            }
            _ => {
                let span = self.plan.places.get(&to).copied();
                Err(Shortage { count, size, in_use: self.in_use.all, span })
            }
        }
    }

    /// One of two blocks: what both are sure to take.
    fn either(&mut self, then: &Block, otherwise: &Block) -> Result<(), Shortage> {
        let mut ended: Option<(Bytes, Bytes)> = None;
        let (mut stops, mut shortage) = (false, None);
        for block in [then, otherwise] {
            let mut side = self.clone();
            match side.block(block) {
                Ok(Then::GoesOn) => {
                    let (in_use, peak) = ended.unwrap_or((side.in_use, side.peak));
                    ended = Some((lesser(in_use, side.in_use), lesser(peak, side.peak)));
                }
                Ok(Then::Stops) => stops = true,
                Err(s) => shortage = Some(s),
            }
        }
        match (ended, shortage) {
            (Some((in_use, peak)), _) => (self.in_use, self.peak) = (in_use, peak),
            (None, Some(shortage)) if !stops => return Err(shortage),
            (None, _) => {}
        }
        self.forget(then);
        self.forget(otherwise);
        Ok(())
    }
}

fn lesser(a: Bytes, b: Bytes) -> Bytes {
    Bytes { all: a.all.min(b.all), tapes: a.tapes.min(b.tapes) }
}

fn sets(block: &Block, out: &mut IdSet<Reg>) {
    for ins in block {
        out.extend(ins.sets());
        ins.blocks().into_iter().for_each(|b| sets(b, out));
    }
}
