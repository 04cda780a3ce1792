//! Memory that the last branch of a function gives back.
//!
//! An arm that needs nothing of what the function has made begins with all of that memory free: a call that gives up its tape takes no
//! room, and calls in such an arm lie one upon the other no higher than they need.
//!
//! Decided on instructions, whatever values are: neither the arm nor anything after the branch mentions a pointer that was set before
//! it. Parameters do not count: memory of the caller holds no pointers to memory of the function, since nobody writes pointers there.
//! An arm that does need something may end in a branch of its own, of which the same is asked.
//! Cost: linear in the function.

use crate::ir::{Block, Ins, Reg, RegInfo, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};

/// The body of a function with these parameters, where arms of its last branch give back what nobody needs. `events`: registers that are set to say
/// something, which needs nothing.
pub(super) fn give_back(
    mut body: Block,
    params: &[Reg],
    events: &IdSet<Reg>,
    regs: &mut IndexVec<Reg, RegInfo>,
) -> Block {
    let height = regs.push(RegInfo::new(Ty::Pointer, "mark"));
    let params = params.iter().copied().collect();
    let (levels, later) = (IdMap::new(), IdSet::new());
    let mut search = Search { regs, params, events, height, levels, later, found: false };
    search.block(&mut body, 0, Around { needed: NONE, takes: false });
    if search.found {
        body.insert(0, Ins::Mark { to: height });
    }
    body
}

/// Deeper than any branch.
const NONE: usize = usize::MAX;

struct Search<'a> {
    regs: &'a IndexVec<Reg, RegInfo>,
    params: IdSet<Reg>,
    events: &'a IdSet<Reg>,
    height: Reg,
    /// Pointers that are set on the way to the last branch: by how many branches are around.
    levels: IdMap<Reg, usize>,
    /// Pointers that are mentioned after a branch.
    later: IdSet<Reg>,
    found: bool,
}

/// What is known of the code around a block.
#[derive(Clone, Copy)]
struct Around {
    /// The lowest level that is mentioned after the block.
    needed: usize,
    /// Whether memory is taken before it.
    takes: bool,
}

impl Search<'_> {
    /// Looks at the last branch of a block inside of so many branches. The lowest level that the block mentions.
    fn block(&mut self, block: &mut Block, depth: usize, around: Around) -> usize {
        let last = block.iter().rposition(|ins| matches!(ins, Ins::If { .. })).unwrap_or(block.len());
        let (before, rest) = block.split_at_mut(last);
        let mut lowest = self.mentioned(before);
        let Some((Ins::If { then, otherwise, .. }, after)) = rest.split_first_mut() else { return lowest };
        let behind = self.mentioned(after);
        lowest = lowest.min(behind);
        let mut needed = around.needed.min(behind);
        let mut later = std::mem::take(&mut self.later);
        self.each_pointer(after, &mut |r| {
            later.insert(r);
        });
        self.later = later;
        for ins in before.iter() {
            needed = needed.min(self.set(ins, depth));
        }
        let takes = around.takes || before.iter().any(takes_memory);
        for arm in [then, otherwise] {
            let inside = self.block(arm, depth + 1, Around { needed, takes });
            if takes && needed > depth && inside > depth {
                arm.insert(0, Ins::Release { mark: self.height.into() });
                self.found = true;
            }
            lowest = lowest.min(inside);
        }
        lowest
    }
    /// The lowest level of a pointer that is mentioned.
    fn mentioned(&self, block: &[Ins]) -> usize {
        let mut lowest = NONE;
        self.each_pointer(block, &mut |r| {
            lowest = lowest.min(self.levels.get(&r).copied().unwrap_or(NONE));
        });
        lowest
    }
    /// Notes the pointers that are set. The level, if one of them is mentioned later.
    fn set(&mut self, ins: &Ins, level: usize) -> usize {
        let mut needed = NONE;
        for r in ins.sets().iter().filter(|r| self.regs[**r].ty == Ty::Pointer && !self.params.contains(r)) {
            self.levels.insert(*r, level);
            if self.later.contains(r) {
                needed = level;
            }
        }
        let inside = ins.blocks().into_iter().flatten();
        inside.fold(needed, |needed, ins| needed.min(self.set(ins, level)))
    }
    /// Calls `f` with every pointer that a block reads.
    fn each_pointer(&self, block: &[Ins], f: &mut dyn FnMut(Reg)) {
        let is_pointer = |r: &Reg| self.regs[*r].ty == Ty::Pointer;
        for ins in block {
            if !ins.sets().iter().any(|r| self.events.contains(r)) {
                ins.reads(&mut |a| a.as_reg().filter(is_pointer).into_iter().for_each(&mut *f));
            }
            ins.blocks().into_iter().for_each(|inside| self.each_pointer(inside, f));
        }
    }
}

fn takes_memory(ins: &Ins) -> bool {
    let takes = matches!(ins, Ins::Alloc { .. } | Ins::Call { .. });
    takes || ins.blocks().into_iter().flatten().any(takes_memory)
}
