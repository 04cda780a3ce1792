//! Checks of places go before the loops that make them.
//!
//! A loop asks in each iteration whether its counter, perhaps moved by a number, is an index of an array. If its first and its last
//! number are, all are, and if one of them is not, the loop stops the program. So one question before the loop does.
//!
//! Assumes numbers that grow by one in each iteration, compared with what does not vary. Only what every iteration asks is moved, before
//! anything in the body that may not end. Guarantees: the same values; a program stops with the message of the first
//! iteration that fails, but perhaps before what came earlier in that loop.

use super::pipeline::Step;
use super::registers::registers;
use super::uses::Uses;
use super::work::Work;
use crate::ir::{Block, Ins, Operand, Reg, RegInfo, Ty};
use pullback_base::index::{IdMap, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

/// Moves checks of places out of the loops that make them.
pub(super) const STEP: Step = Step {
    name: "check-motion",
    optional: true,
    parts: &[],
    does: "moves checks of places out of the loops that make them",
    assumes: "counters that grow by one",
    guarantees: "the same values; the message of the first iteration that fails",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let (defined, _) = registers(&w.f, &body);
    w.f.body = hoisted(body, &defined, &mut w.f.regs);
    true
}

/// Moves checks out of all loops of a block. `defined`: how often registers are set.
pub(super) fn hoisted(
    block: Block,
    defined: &IndexVec<Reg, usize>,
    regs: &mut IndexVec<Reg, RegInfo>,
) -> Block {
    let mut out = Vec::with_capacity(block.len());
    for mut ins in block {
        for inner in ins.blocks_mut() {
            *inner = hoisted(std::mem::take(inner), defined, regs);
        }
        if let Ins::For { i, from, to, body, .. } = &mut ins {
            let inside = Uses::of(body);
            let mut loop_ = Loop { i: *i, from: *from, to: *to, inside, defined, made: IdMap::new(), regs };
            *body = loop_.body(std::mem::take(body), &mut out);
        }
        out.push(ins);
    }
    out
}

struct Loop<'a> {
    i: Reg,
    from: Operand,
    to: Operand,
    /// Uses in the body.
    inside: Uses,
    defined: &'a IndexVec<Reg, usize>,
    /// The primitives of integers and truth values that the body begins with.
    made: IdMap<Reg, (Op, Vec<Operand>)>,
    regs: &'a mut IndexVec<Reg, RegInfo>,
}

/// A number that is the counter plus something, and when it fails.
#[derive(Default)]
struct Check {
    number: Option<Operand>,
    /// It fails below these.
    least: Vec<Operand>,
    /// It fails from these on.
    ends: Vec<Operand>,
}

impl Loop<'_> {
    fn body(&mut self, body: Block, before: &mut Block) -> Block {
        let (mut out, mut reached) = (Vec::with_capacity(body.len()), true);
        for ins in body {
            match &ins {
                Ins::Prim { to, prim: Prim::Op(op, Scalar::I64 | Scalar::Bool), args }
                    if self.defined.get(*to) == Some(&1) =>
                {
                    self.made.insert(*to, (*op, args.clone()));
                }
                Ins::Fail { condition, message, values } if reached => {
                    let mut check = Check::default();
                    if self.asks(*condition, &mut check)
                        && let Some(ends) = self.before(&check, values, before)
                    {
                        let (condition, values) = ends;
                        before.push(Ins::Fail { condition, message: *message, values });
                        continue;
                    }
                }
                _ => reached = reached && !may_not_end(&ins),
            }
            out.push(ins);
        }
        out
    }
    /// Whether an operand is the same in all iterations.
    fn is_same(&self, a: Operand) -> bool {
        a.as_reg().is_none_or(|r| r != self.i && self.inside.sets(r) == 0)
    }
    /// What is added to the counter, if the operand is that.
    fn plus(&self, a: Operand) -> Option<Operand> {
        let r = a.as_reg()?;
        if r == self.i {
            return Some(Operand::i64(0));
        }
        match self.made.get(&r)? {
            (Op::Add, args) if args[0] == self.i.into() => Some(args[1]),
            (Op::Add, args) if args[1] == self.i.into() => Some(args[0]),
            _ => None,
        }
        .filter(|more| self.is_same(*more))
    }
    /// Takes a condition apart; whether it is understood.
    fn asks(&self, condition: Operand, check: &mut Check) -> bool {
        let Some((op, args)) = condition.as_reg().and_then(|r| self.made.get(&r)) else { return false };
        let (op, a, b) = match args[..] {
            [a, b] => (*op, a, b),
            _ => return false,
        };
        let (number, other, list) = match op {
            Op::Or => return self.asks(a, check) && self.asks(b, check),
            Op::Lt => (a, b, &mut check.least),
            Op::Le => (b, a, &mut check.ends),
            _ => return false,
        };
        list.push(other);
        let one = *check.number.get_or_insert(number);
        one == number && self.is_same(other) && self.plus(number).is_some()
    }
    fn op(&mut self, out: &mut Block, op: Op, s: Scalar, args: &[Operand]) -> Operand {
        let prim = Prim::Op(op, s);
        let to = self.regs.push(RegInfo::new(Ty::Scalar(prim.result()), "t"));
        out.push(Ins::Prim { to, prim, args: args.to_vec() });
        to.into()
    }
    /// Whether an iteration fails, and the values of its message. `None`: they are not known here.
    fn before(
        &mut self,
        check: &Check,
        values: &[Operand],
        out: &mut Block,
    ) -> Option<(Operand, Vec<Operand>)> {
        let number = check.number?;
        let more = self.plus(number)?;
        values.iter().all(|v| *v == number || self.is_same(*v)).then_some(())?;
        let int = Scalar::I64;
        let last = self.op(out, Op::Sub, int, &[self.to, Operand::i64(1)]);
        let (mut low, mut high) = (self.from, last);
        let mut bad = Vec::new();
        if more != Operand::i64(0) {
            low = self.op(out, Op::Add, int, &[low, more]);
            high = self.op(out, Op::Add, int, &[high, more]);
            // The numbers begin again below zero in between.
            bad.push(self.op(out, Op::Lt, int, &[high, low]));
        }
        // The first number that fails.
        let mut first = low;
        for end in &check.ends {
            bad.push(self.op(out, Op::Le, int, &[*end, high]));
            first = self.op(out, Op::Max, int, &[low, *end]);
        }
        for least in &check.least {
            let below = self.op(out, Op::Lt, int, &[low, *least]);
            first = self.op(out, Op::Select, int, &[below, low, first]);
            bad.push(below);
        }
        let any = bad.into_iter().reduce(|a, b| self.op(out, Op::Or, Scalar::Bool, &[a, b]))?;
        let some = self.op(out, Op::Lt, int, &[self.from, self.to]);
        let fails = self.op(out, Op::And, Scalar::Bool, &[some, any]);
        Some((fails, values.iter().map(|v| if *v == number { first } else { *v }).collect()))
    }
}

/// Whether an instruction may run for ever, or stop the program in a way of its own.
fn may_not_end(ins: &Ins) -> bool {
    matches!(ins, Ins::While { .. } | Ins::Call { .. } | Ins::Chunks { .. })
        || ins.blocks().into_iter().flatten().any(may_not_end)
}
