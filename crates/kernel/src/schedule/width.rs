//! How many lanes each loop has.
//!
//! More lanes than a register of the machine holds are several registers for one name: what is the same in all lanes is loaded once
//! for all of them, loops inside are tested once, sums have as many independent parts (decision 12). They pay where much of
//! the time goes, as long as the registers of the body do not have to be kept in memory and the last block is not mostly empty. Elsewhere they only
//! make code longer. Memory that is interleaved has one number of lanes, so loops that share some do too.
//!
//! Assumes loops with the fewest lanes, as they were chosen; guarantees that the same loops are chosen again.

use super::cost::{Costs, TRIPS};
use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::work::Work;
use crate::ir::{Block, Ins, Operand, Reg, RegInfo};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::Scalar;

/// Chooses how many lanes each loop has.
pub(super) const STEP: Step = Step {
    name: "vector-width",
    optional: true,
    parts: &[],
    does: "chooses how many lanes each loop has",
    assumes: "it is known which memory is interleaved",
    guarantees: "the code stays; the choice is known to the passes behind",
    keeps: true,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    if w.options.most <= w.options.lanes {
        return false;
    }
    let body = w.take_body();
    let mut s = w.scheduler(&body);
    s.choose_widths(&body);
    w.f.body = body;
    w.keep(s);
    false
}

/// The part of the expected time of a function from which on a loop is worth more lanes.
const SHARE: f64 = 0.1;

/// How much longer a loop may become since its last block is not full.
const UNUSED: f64 = 1.1;

/// The lanes of loops.
pub(super) struct Widths {
    fewest: usize,
    /// The expected cost of the function.
    pub(super) total: f64,
    /// By the counter of the loop.
    loops: IdMap<Reg, usize>,
    /// By the register of interleaved memory.
    memory: IdMap<Reg, usize>,
}

impl Widths {
    /// The lanes of the loop with this counter; `None`: its iterations run one after the other.
    pub(super) fn of_loop(&self, i: Reg) -> Option<usize> {
        self.loops.get(&i).copied()
    }
    /// How many lanes interleaved memory has.
    pub(super) fn of_memory(&self, memory: Reg) -> usize {
        self.memory.get(&memory).copied().unwrap_or(self.fewest)
    }
}

/// A loop in lanes.
struct Loop {
    i: Reg,
    wish: Wish,
    /// Interleaved memory that it uses.
    uses: Vec<Reg>,
}

/// What would be good for a loop.
#[derive(Clone, Copy, PartialEq)]
struct Wish {
    /// The most lanes that registers and the number of iterations allow.
    lanes: usize,
    /// Its part of the expected time of the function.
    share: f64,
}

impl Wish {
    fn and(self, other: Wish) -> Wish {
        Wish { lanes: self.lanes.min(other.lanes), share: self.share.max(other.share) }
    }
}

impl Scheduler<'_> {
    /// Chooses loops, with the interleaved memory that has been chosen, and their lanes.
    pub(super) fn choose_widths(&mut self, body: &Block) {
        let given = self.regs.len();
        let out = self.block(body.clone());
        let mut loops = Vec::new();
        let total = self.cost(&out);
        self.find_loops(&out, 1.0, total, &mut loops);
        self.regs.truncate(given);
        // Loops that share interleaved memory have as many lanes as suit all of them: until all agree.
        let mut memory: IdMap<Reg, Wish> = IdMap::new();
        loop {
            let before = memory.clone();
            for l in &mut loops {
                l.wish = l.uses.iter().filter_map(|m| memory.get(m)).fold(l.wish, |a, b| a.and(*b));
                memory.extend(l.uses.iter().map(|m| (*m, l.wish)));
            }
            if memory == before {
                break;
            }
        }
        let fewest = self.options.lanes;
        let lanes = |wish: Wish| if wish.share < SHARE { fewest } else { wish.lanes };
        let mut widths = Widths { fewest, total, loops: IdMap::new(), memory: IdMap::new() };
        widths.loops.extend(loops.iter().map(|l| (l.i, lanes(l.wish))));
        widths.memory.extend(memory.iter().map(|(m, wish)| (*m, lanes(*wish))));
        self.widths = Some(widths);
    }
    fn find_loops(&self, block: &Block, times: f64, total: f64, out: &mut Vec<Loop>) {
        let costs = self.costs();
        for ins in block {
            let times = match ins {
                Ins::Lanes { i, from, to, body, .. } => {
                    let share = times * costs.of(&vec![ins.clone()]) / total;
                    let wish = Wish { lanes: self.wanted(&costs, (*from, *to), body), share };
                    let mut uses = IdSet::new();
                    super::row_layout::mentioned(body, &mut |r| {
                        let root = self.roots.get(r).copied().flatten();
                        uses.extend(root.filter(|root| self.rows.contains_key(root)));
                    });
                    let mut uses: Vec<Reg> = uses.into_iter().collect();
                    uses.sort();
                    out.push(Loop { i: *i, wish, uses });
                    continue;
                }
                Ins::For { from, to, .. } => times * costs.trips(*from, *to),
                Ins::While { .. } => times * TRIPS,
                _ => times,
            };
            ins.blocks().into_iter().for_each(|b| self.find_loops(b, times, total, out));
        }
    }
    fn wanted(&self, costs: &Costs<'_>, (from, to): (Operand, Operand), body: &Block) -> usize {
        let fewest = self.options.lanes;
        let needed = pressure(body, &self.regs);
        let n = costs.trips(from, to);
        let steps = |lanes: usize| (n / lanes as f64).ceil() * lanes as f64;
        let fits = |lanes: &usize| {
            needed * (lanes / fewest) <= self.options.model.registers
                && steps(*lanes) <= UNUSED * steps(fewest)
        };
        let more = std::iter::successors(Some(2 * fewest), |lanes| Some(2 * lanes));
        more.take_while(|lanes| *lanes <= self.options.most).filter(fits).last().unwrap_or(fewest)
    }
}

/// The most registers of lanes that are needed at the same time in a block, its branches included, of those that it mentions: the block inside
/// a loop that needs most. Values that only pass through a loop can wait in memory.
fn pressure(block: &Block, regs: &IndexVec<Reg, RegInfo>) -> usize {
    let mut live = IdSet::new();
    let (here, inside) = (needed(block, regs, &mut live), inner(block));
    // What a block has at its start comes from the round before, or from outside.
    let again = needed(block, regs, &mut live);
    inside.into_iter().map(|b| pressure(b, regs)).fold(here.max(again), usize::max)
}

/// The bodies of loops in a block.
fn inner(block: &Block) -> Vec<&Block> {
    let of = |ins: &'_ Ins| matches!(ins, Ins::If { .. });
    let mut out = Vec::new();
    for ins in block {
        for b in ins.blocks() {
            if of(ins) {
                out.extend(inner(b));
            } else {
                out.push(b);
            }
        }
    }
    out
}

/// Backwards through a block; `live`: what is needed after it, then before it.
fn needed(block: &Block, regs: &IndexVec<Reg, RegInfo>, live: &mut IdSet<Reg>) -> usize {
    // Truth values have registers of their own.
    let counts = |r: &Reg| regs[*r].ty.is_lanes() && regs[*r].ty.scalar() != Some(Scalar::Bool);
    let mut most = live.len();
    for ins in block.iter().rev() {
        if matches!(ins, Ins::If { .. }) {
            let after: Vec<Reg> = live.iter().copied().collect();
            for b in ins.blocks() {
                most = most.max(needed(b, regs, live));
                live.extend(after.iter().copied());
            }
        }
        for &r in ins.sets() {
            live.remove(&r);
        }
        ins.reads(&mut |a| live.extend(a.as_reg().filter(counts)));
        most = most.max(live.len());
    }
    most
}
