//! A loop as several loops: fission, and sums turned inside out.
//!
//! A loop in any order whose parts want different schedules becomes one loop for each: sums of long rows with lanes along the row, then
//! functions of the sums with lanes across rows. What the first part leaves for the second is kept in memory, one element
//! for each iteration; what is cheap (places, elements of memory that nobody writes) is computed again.
//!
//! `for j { sum over i of x[i][j] }` becomes `for i { for j { y[j] += x[i][j] } }`, where elements for neighbours `j` lie side by side: rows are
//! read as they lie, several of them together (`jam`), and threads share them.
//!
//! Assumes loops in any order. Guarantees the same values, but for the order of the sums that are turned. Whether it gains is for others to decide.

use super::lanes::{self, Loop};
use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::uses::{Uses, sets_first};
use super::work::Work;
use crate::ir::{Block, Fold, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::lower::with_mark;
use crate::walk::size;
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeSet;

/// Bodies with more instructions, or more loops side by side, are left alone: to try takes long.
const LARGE: usize = 200;

/// Loops become several where that is expected to cost less.
pub(super) const STEP: Step = Step {
    name: "fission",
    optional: true,
    parts: &[],
    does: "makes several loops of one, and turns sums inside out, where that is expected to cost less",
    assumes: "loops in any order; addresses have one register each",
    guarantees: "the same values, but for the order of sums that are turned",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let mut s = w.scheduler(&body);
    w.f.body = s.split(body);
    w.done(s);
    true
}

impl Scheduler<'_> {
    /// Loops that no other loop in any order is around, as several where that should cost less.
    fn split(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            let Ins::For { i, from, to, body, order: Order::Any(folds) } = &ins else {
                for inner in ins.blocks_mut() {
                    *inner = self.split(std::mem::take(inner));
                }
                out.push(ins);
                continue;
            };
            if self.parts.contains(i) {
                out.push(ins);
                continue;
            }
            let l = lanes::Loop { i: *i, from: *from, to: *to, body, folds };
            let roots = &self.roots;
            let others = alternatives(&l, &mut self.regs, &|r| roots.get(r).copied().flatten());
            let mut best = None;
            if !others.is_empty() {
                let mut least = self.tried(std::slice::from_ref(&ins), &[]);
                for (code, regs) in others {
                    let cost = self.tried(&code, &regs);
                    if cost < least {
                        (least, best) = (cost, Some((code, regs)));
                    }
                }
            }
            match best {
                None => out.push(ins),
                Some((code, regs)) => {
                    self.learn(&code, &regs);
                    out.extend(self.split(code));
                }
            }
        }
        out
    }
}

/// Other ways to write a loop, with the registers that they add.
pub(super) fn alternatives(
    l: &Loop<'_>,
    regs: &mut IndexVec<Reg, RegInfo>,
    root: &dyn Fn(Reg) -> Option<Reg>,
) -> Vec<(Block, Vec<RegInfo>)> {
    let body = without_mark(l.body);
    let is_loop = |ins: &Ins| matches!(ins, Ins::For { .. });
    if !body.iter().any(is_loop) || size(body) > LARGE {
        return Vec::new();
    }
    let given = regs.len();
    let mut s = Split { l, regs, root, written: written(body, root) };
    let mut out = Vec::new();
    for k in (1..=body.len()).filter(|k| is_loop(&body[k - 1])) {
        if let Some((before, first, second)) = s.at(body, k) {
            out.push((before.iter().chain([&first, &second]).cloned().collect(), s.added(given)));
            if let Some(turned) = s.inside_out(&first) {
                let code = before.into_iter().chain(turned).chain([second]).collect();
                out.push((code, s.added(given)));
            }
        }
        s.regs.truncate(given);
    }
    let (i, from, to, body, order) = (l.i, l.from, l.to, l.body.clone(), Order::Any(l.folds.to_vec()));
    if let Some(code) = s.inside_out(&Ins::For { i, from, to, body, order }) {
        out.push((code, s.added(given)));
    }
    s.regs.truncate(given);
    out
}

/// A loop as the loop up to instruction `k` of its body, and the loop from there, with what comes before them.
pub(super) fn in_two(
    l: &Loop<'_>,
    regs: &mut IndexVec<Reg, RegInfo>,
    root: &dyn Fn(Reg) -> Option<Reg>,
    k: usize,
) -> Option<(Block, Ins, Ins)> {
    Split { l, regs, root, written: written(l.body, root) }.at(l.body, k)
}

/// A body without the mark and release around it.
pub(super) fn without_mark(body: &[Ins]) -> &[Ins] {
    match body {
        [Ins::Mark { to }, inner @ .., Ins::Release { mark }] if *mark == Operand::Reg(*to) => inner,
        _ => body,
    }
}

/// The memory that a block writes; `None`: some that is not known.
fn written(block: &[Ins], root: &dyn Fn(Reg) -> Option<Reg>) -> Option<IdSet<Reg>> {
    let mut out = IdSet::new();
    for ins in block {
        let pointer = match ins {
            Ins::Store { pointer, .. } | Ins::Accumulate { pointer, .. } | Ins::Fill { pointer, .. } => {
                Some(*pointer)
            }
            Ins::Copy { to, .. } => Some(*to),
            Ins::Call { .. } | Ins::Chunks { .. } => return None,
            _ => None,
        };
        if let Some(pointer) = pointer {
            out.insert(pointer.as_reg().and_then(root)?);
        }
        for inner in ins.blocks() {
            out.extend(written(inner, root)?);
        }
    }
    Some(out)
}

struct Split<'a> {
    l: &'a Loop<'a>,
    regs: &'a mut IndexVec<Reg, RegInfo>,
    root: &'a dyn Fn(Reg) -> Option<Reg>,
    /// The memory that the body writes; `None`: some that is not known.
    written: Option<IdSet<Reg>>,
}

impl Split<'_> {
    /// The registers from this one on.
    fn added(&self, given: usize) -> Vec<RegInfo> {
        self.regs.iter().skip(given).cloned().collect()
    }
    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.regs.push(RegInfo::new(ty, hint))
    }
    fn int(&mut self, out: &mut Block, op: Op, args: [Operand; 2]) -> Operand {
        let to = self.reg(Ty::I64, "t");
        out.push(Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: args.to_vec() });
        to.into()
    }
    /// Registers with other names.
    fn fresh(&mut self, old: impl IntoIterator<Item = Reg>) -> IdMap<Reg, Reg> {
        let mut out = IdMap::new();
        for r in old {
            out.insert(r, self.regs.push(self.regs[r].clone()));
        }
        out
    }

    /// The loop up to instruction `k` of its body, and the loop from there, with what comes before them.
    fn at(&mut self, body: &[Ins], k: usize) -> Option<(Block, Ins, Ins)> {
        let (head, tail) = body.split_at(k);
        let has_height = |ins: &Ins| matches!(ins, Ins::Mark { .. } | Ins::Release { .. });
        if tail.is_empty() || body.iter().any(has_height) {
            return None;
        }
        let (in_head, in_tail) = (Uses::of(head), Uses::of(tail));
        let (mut first_folds, mut second_folds) = (Vec::new(), Vec::new());
        for fold in self.l.folds {
            let inside = |uses: &Uses| fold.state.iter().any(|r| uses.mentions(*r));
            match (inside(&in_head), inside(&in_tail)) {
                (true, true) => return None,
                (true, false) => first_folds.push(fold.clone()),
                (false, _) => second_folds.push(fold.clone()),
            }
        }
        let is_state = |r: Reg| self.l.folds.iter().any(|f| f.state.contains(&r));
        let crosses = |r: &Reg| in_tail.reads(*r) > 0 && !is_state(*r) && sets_first(tail, *r) != Some(true);
        let mut crossing: Vec<Reg> = in_head.set().into_iter().filter(crosses).collect();
        crossing.sort();
        let mut again = BTreeSet::new();
        crossing.retain(|r| {
            let mut more = again.clone();
            let can = self.is_made_again(head, &in_head, *r, &mut more);
            if can {
                again = more;
            }
            !can
        });
        if crossing.iter().any(|r| !matches!(self.regs[*r].ty, Ty::Scalar(_))) {
            return None;
        }
        let repeated: Block = again.iter().map(|p| head[*p].clone()).collect();
        let set_again = repeated.iter().flat_map(Ins::sets);
        let names = self.fresh(set_again.copied().chain(crossing.iter().copied()).chain([self.l.i]));

        let (mut before, mut first, mut second) = (Vec::new(), Vec::new(), repeated);
        let n = self.int(&mut before, Op::Sub, [self.l.to, self.l.from]);
        let n = self.int(&mut before, Op::Max, [n, Operand::i64(0)]);
        let zero = self.l.from.as_i64() == Some(0);
        let i = self.l.i.into();
        let (mut at, mut place) = (i, i);
        if !zero && !crossing.is_empty() {
            at = self.int(&mut first, Op::Sub, [i, self.l.from]);
            place = self.int(&mut second, Op::Sub, [i, self.l.from]);
        }
        first.extend_from_slice(head);
        for r in &crossing {
            let ty = self.regs[*r].ty;
            let to = self.reg(Ty::Pointer, "kept");
            before.push(Ins::Alloc { to, count: n, ty });
            first.push(Ins::Store { pointer: to.into(), index: at, value: (*r).into(), ty });
            second.push(Ins::Load { to: *r, pointer: to.into(), index: place });
        }
        second.extend_from_slice(tail);
        rename(&mut second, &names);
        let first = with_mark(first, self.regs);
        let second = with_mark(second, self.regs);
        let Loop { i, from, to, .. } = *self.l;
        let first = Ins::For { i, from, to, body: first, order: Order::Any(first_folds) };
        let i = names[&i];
        let second = Ins::For { i, from, to, body: second, order: Order::Any(second_folds) };
        Some((before, first, second))
    }
    /// Whether a register can be set once more by instructions of the block, which are added to `again` by their position: cheap
    /// ones, and loads from memory that is not written.
    fn is_made_again(&self, head: &[Ins], uses: &Uses, r: Reg, again: &mut BTreeSet<usize>) -> bool {
        if uses.sets(r) == 0 {
            return true;
        }
        let Some(p) = head.iter().position(|ins| ins.sets().contains(&r)) else { return false };
        if again.contains(&p) {
            return true;
        }
        let cheap = match &head[p] {
            Ins::Prim { prim: Prim::Op(op, _), .. } => {
                op.row().cost <= 1 && !matches!(op, Op::Div | Op::Mod | Op::Quot | Op::Rem)
            }
            ins => self.is_fixed_load(ins) || matches!(ins, Ins::Offset { .. } | Ins::Set { .. }),
        };
        let mut can = cheap && uses.sets(r) == 1;
        head[p].reads(&mut |a| {
            can = can && a.as_reg().is_none_or(|r| self.is_made_again(head, uses, r, again));
        });
        can && again.insert(p)
    }
    /// Whether it loads from memory that the body does not write.
    fn is_fixed_load(&self, ins: &Ins) -> bool {
        let Ins::Load { pointer: Operand::Reg(r), .. } = ins else { return false };
        let Some(written) = &self.written else { return false };
        (self.root)(*r).is_some_and(|root| !written.contains(&root))
    }

    /// A loop over sums whose results are stored, as a loop of additions to the results.
    fn inside_out(&mut self, outer: &Ins) -> Option<Block> {
        let Ins::For { i: j, from, to, body, order: Order::Any(folds) } = outer else { return None };
        let [pre @ .., inner, Ins::Store { pointer, index, value: Operand::Reg(sum), ty }] =
            without_mark(body)
        else {
            return None;
        };
        let Ins::For { i, from: low, to: high, body: inner, order: Order::Any(inner_folds) } = inner else {
            return None;
        };
        let uses = Uses::of(body);
        let outside = |a: Operand| a.as_reg().is_none_or(|r| r != *j && uses.sets(r) == 0);
        if !folds.is_empty() || !outside(*low) || !outside(*high) {
            return None;
        }
        let (value, made) = summed(inner, inner_folds, *sum)?;
        let neutral = Operand::Const(ty.scalar()?.zero());
        let starts = |ins: &Ins| *ins == Ins::Set { to: *sum, value: neutral };
        (pre.iter().filter(|ins| starts(ins)).count() == 1).then_some(())?;
        let pre: Block = pre.iter().filter(|ins| !starts(ins)).cloned().collect();
        let plain = |ins: &Ins| {
            let pure = matches!(ins, Ins::Prim { .. } | Ins::Offset { .. } | Ins::Set { .. });
            (pure || self.is_fixed_load(ins)) && ins.sets().iter().all(|r| *r != *sum && uses.sets(*r) == 1)
        };
        pre.iter().chain(&made).all(plain).then_some(())?;

        let names = self.fresh(pre.iter().flat_map(Ins::sets).copied().chain([*j]));
        let mut clear = pre.clone();
        clear.push(Ins::Store { pointer: *pointer, index: *index, value: neutral, ty: *ty });
        rename(&mut clear, &names);
        let any = || Order::Any(Vec::new());
        let clear = Ins::For { i: names[j], from: *from, to: *to, body: clear, order: any() };
        let mut add = pre;
        add.extend(made);
        add.push(Ins::Accumulate { pointer: *pointer, index: *index, value, ty: *ty, atomic: false });
        let add = Ins::For { i: *j, from: *from, to: *to, body: add, order: any() };
        Some(vec![clear, Ins::For { i: *i, from: *low, to: *high, body: vec![add], order: any() }])
    }
}

/// What a loop adds up, and the instructions that make it, if it takes the sum of one value.
pub(super) fn summed(body: &[Ins], folds: &[Fold], sum: Reg) -> Option<(Operand, Block)> {
    let [fold] = folds else { return None };
    let [made @ .., last] = body else { return None };
    let Ins::Set { to, value: Operand::Reg(next) } = last else { return None };
    let [Prim::Op(Op::Add, s)] = super::lanes::apart(fold)?[..] else { return None };
    (fold.state == [sum] && *to == sum && s.is_float()).then_some(())?;
    let at = made.iter().position(|ins| ins.sets().contains(next))?;
    let Ins::Prim { prim, args, .. } = &made[at] else { return None };
    let value = match args[..] {
        [a, b] if a == sum.into() => b,
        [a, b] if b == sum.into() => a,
        _ => return None,
    };
    let made: Block = made.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, ins)| ins.clone()).collect();
    let uses = Uses::of(&made);
    let alone = !uses.mentions(sum) && !uses.mentions(*next) && value != sum.into();
    (alone && *prim == Prim::Op(Op::Add, s)).then_some((value, made))
}

/// Gives registers other names.
pub(super) fn rename(block: &mut [Ins], names: &IdMap<Reg, Reg>) {
    rename_as(block, &|r| names.get(&r).copied().unwrap_or(r));
}

/// Gives registers the names that this says.
pub(super) fn rename_as(block: &mut [Ins], name: &dyn Fn(Reg) -> Reg) {
    for ins in block {
        ins.reads_mut(&mut |a| {
            if let Operand::Reg(r) = a {
                *r = name(*r);
            }
        });
        rename_set(ins, name);
        ins.blocks_mut().into_iter().for_each(|b| rename_as(b, name));
    }
}

/// The same for what an instruction sets, and what its folds set: a loop reads what its folds read.
fn rename_set(ins: &mut Ins, name: &dyn Fn(Reg) -> Reg) {
    ins.sets_mut().iter_mut().for_each(|r| *r = name(*r));
    if let Ins::For { order: Order::Any(folds), .. } = ins {
        for fold in folds {
            let all = fold.state.iter_mut().chain(&mut fold.left).chain(&mut fold.right);
            all.for_each(|r| *r = name(*r));
            rename_all_set(&mut fold.combine, name);
        }
    }
}

fn rename_all_set(block: &mut [Ins], name: &dyn Fn(Reg) -> Reg) {
    for ins in block {
        rename_set(ins, name);
        ins.blocks_mut().into_iter().for_each(|b| rename_all_set(b, name));
    }
}
