//! What a piece of a function takes and gives.

use pullback_base::index::{IdMap, IdSet};
use pullback_kernel::{Block, Fold, Function, Ins, Order, Reg, walk};
use std::collections::BTreeSet;

/// How often a function mentions its registers.
#[derive(Default)]
pub(super) struct Uses {
    reads: IdMap<Reg, usize>,
    sets: IdMap<Reg, usize>,
    /// What makes registers of lanes, as far as it can be done again.
    lanes: IdMap<Reg, Ins>,
}

/// A piece makes so many registers of lanes again at most.
const AGAIN: usize = 8;

/// What a piece takes and gives.
pub(super) struct Interface {
    /// Registers whose value it needs.
    pub(super) params: Vec<Reg>,
    /// Registers that it sets and whose value others need.
    pub(super) results: Vec<Reg>,
    /// Instructions that it needs too: what they set cannot be passed.
    pub(super) before: Block,
}

impl Uses {
    /// Those of a function with this body.
    pub(super) fn new(f: &Function, body: &Block) -> Uses {
        let mut out = Uses::default();
        body.iter().for_each(|ins| out.add(ins));
        f.params.iter().for_each(|r| *out.sets.entry(*r).or_default() += 1);
        f.results.iter().for_each(|r| *out.reads.entry(*r).or_default() += 1);
        out.find_lanes(f, body);
        out
    }
    fn find_lanes(&mut self, f: &Function, block: &Block) {
        let is_once = |r: Reg| self.sets.get(&r) == Some(&1);
        let is_lanes = |r: Reg| f.regs[r].ty.is_lanes();
        walk(block, &mut |ins| {
            if let Ins::LaneNumber { to } | Ins::Set { to, .. } | Ins::Prim { to, .. } = ins {
                let mut is_fixed = is_lanes(*to) && is_once(*to);
                ins.reads(&mut |a| is_fixed &= a.as_reg().is_none_or(|r| is_lanes(r) && is_once(r)));
                if is_fixed {
                    self.lanes.insert(*to, ins.clone());
                }
            }
        });
    }
    /// What makes a register of lanes, and those that it needs, where it has not been made.
    fn again(&self, r: Reg, out: &mut Block) -> Option<()> {
        if out.iter().any(|ins| ins.sets().contains(&r)) {
            return Some(());
        }
        let ins = self.lanes.get(&r)?;
        let mut needed = Vec::new();
        ins.reads(&mut |a| needed.extend(a.as_reg()));
        needed.into_iter().try_for_each(|r| self.again(r, out))?;
        out.push(ins.clone());
        (out.len() <= AGAIN).then_some(())
    }
    /// An instruction more, with those inside.
    pub(super) fn add(&mut self, ins: &Ins) {
        walk(std::slice::from_ref(ins), &mut |ins| {
            reads(ins, &mut |r| *self.reads.entry(r).or_default() += 1);
            ins.sets().iter().for_each(|r| *self.sets.entry(*r).or_default() += 1);
        });
    }
    /// An instruction less.
    pub(super) fn remove(&mut self, ins: &Ins) {
        let inside = Uses::of(std::slice::from_ref(ins));
        let less = |from: &mut IdMap<Reg, usize>, by: IdMap<Reg, usize>| {
            for (r, n) in by {
                from.entry(r).and_modify(|m| *m -= n);
            }
        };
        less(&mut self.reads, inside.reads);
        less(&mut self.sets, inside.sets);
    }
    fn of(block: &[Ins]) -> Uses {
        let mut out = Uses::default();
        block.iter().for_each(|ins| out.add(ins));
        out
    }
}

/// What instructions need as a function of their own, where `all` is what the function around mentions. `None` if they cannot be
/// one, since they take or give lanes. `is_kept`: registers that lie in memory between the instructions that mention them.
pub(super) fn interface(
    block: &[Ins],
    f: &Function,
    all: &Uses,
    is_kept: &dyn Fn(Reg) -> bool,
) -> Option<Interface> {
    let inside = Uses::of(block);
    let count = |of: &IdMap<Reg, usize>, r: &Reg| of.get(r).copied().unwrap_or(0);
    let is_read_elsewhere = |r: &Reg| count(&all.reads, r) > count(&inside.reads, r);
    let is_lanes = |r: &Reg| f.regs[*r].ty.is_lanes() && !is_kept(*r);
    let mut walk = Walk::default();
    block.iter().for_each(|ins| _ = walk.ins(ins));
    let (lanes, mut params): (Vec<Reg>, Vec<Reg>) = walk.order.iter().copied().partition(is_lanes);
    let mut before = Vec::new();
    lanes.iter().try_for_each(|r| all.again(*r, &mut before))?;
    let results = inside.sets.keys().filter(|r| is_read_elsewhere(r) || walk.needed.contains(r));
    let results: Vec<Reg> = results.copied().collect();
    // Where it may leave a register as it was, it needs what that was.
    let kept = results.iter().filter(|r| !walk.set.contains(r) && !walk.needed.contains(r));
    params.extend(kept);
    let passes = !params.iter().chain(&results).any(is_lanes);
    passes.then_some(Interface { params, results, before })
}

/// What is read before it is set.
#[derive(Default)]
pub(super) struct Walk {
    /// Registers that are set whatever happens.
    pub(super) set: IdSet<Reg>,
    pub(super) needed: BTreeSet<Reg>,
    /// The same in the order of the reads.
    order: Vec<Reg>,
}

impl Walk {
    fn read(&mut self, r: Reg) {
        if !self.set.contains(&r) && self.needed.insert(r) {
            self.order.push(r);
        }
    }
    /// Gives what is set in it for sure and was not before.
    fn block(&mut self, block: &Block) -> Vec<Reg> {
        block.iter().flat_map(|ins| self.ins(ins)).collect()
    }
    fn forget(&mut self, new: &[Reg]) {
        new.iter().for_each(|r| _ = self.set.remove(r));
    }
    pub(super) fn ins(&mut self, ins: &Ins) -> Vec<Reg> {
        match ins {
            Ins::While { condition, test, body } => {
                let new = self.block(condition);
                test.as_reg().into_iter().for_each(|r| self.read(r));
                let inside = self.block(body);
                self.forget(&inside);
                return new;
            }
            _ => reads(ins, &mut |r| self.read(r)),
        }
        let sets = ins.sets().iter().copied();
        let new: Vec<Reg> = sets.filter(|r| self.set.insert(*r)).collect();
        match ins {
            Ins::For { body, .. } | Ins::Lanes { body, .. } => {
                // It may run not at all.
                let inside = self.block(body);
                self.forget(&inside);
                self.forget(&new);
                Vec::new()
            }
            Ins::If { then, otherwise, .. } => {
                let yes = self.block(then);
                self.forget(&yes);
                let no = self.block(otherwise);
                self.forget(&no);
                let both: Vec<Reg> = no.into_iter().filter(|r| yes.contains(r)).collect();
                self.set.extend(&both);
                both
            }
            _ => new,
        }
    }
}

/// What an instruction reads itself. Registers of how states of folds are combined are not those of the loop.
fn reads(ins: &Ins, f: &mut dyn FnMut(Reg)) {
    let mut own = IdSet::new();
    if let Ins::For { order: Order::Any(folds), .. } = ins {
        folds.iter().for_each(|fold| registers(fold, &mut own));
    }
    ins.reads(&mut |a| a.as_reg().filter(|r| !own.contains(r)).into_iter().for_each(&mut *f));
}

/// The registers that a fold sets where states are combined.
fn registers(fold: &Fold, out: &mut IdSet<Reg>) {
    out.extend(fold.left.iter().chain(&fold.right));
    walk(&fold.combine, &mut |ins| out.extend(ins.sets()));
}
