//! Several steps in each block: what a loop over steps leaves for the next one is still near.
//!
//! ```text
//! for t { for i { v[t + 1, i] = f v[t, i - 1] } }   =>   for rounds { for blocks { for t of the round { for i of the block, behind by t { .. } } } }
//! ```
//!
//! The stages of a step, for several iterations of the loop around them, are stages of one group: in block `b` stage `k` of step `s` runs its iterations from
//! `b * BLOCK - after[k] - s * after` on, and a part leaves out `after[k] + s * after` iterations at its end and `before[k] + s * before` at its beginning.
//!
//! States are in turn in several places, and tapes have one for each step: what is added to the memory is a number that depends on the step, times the elements of a
//! place. Two uses are either in the same place or in none in common, and count as if they were in the same one.
//!
//! Only for nests: a block of a vector is so short that several loops over it for each step cost more than they save (decision 52).
//!
//! Memory of one step, which only its stages use, is a window for each of the steps of a round.
//!
//! Assumes that what a place has room for is all that a pointer to its beginning reaches, which holds for states and elements of arrays. The rest is as for [`super`].

use super::code::{Steps, Window, is_window};
use super::{Access, Blocks, Group, Place, Sizes, Stage, is_nest, whole_loop};
use crate::ir::{Block, Ins, Operand, Order, Reg};
use crate::lower::with_mark;
use crate::schedule::added::defined;
use crate::schedule::distribution::without_mark;
use pullback_base::index::IdSet;
use pullback_prim::Op;

/// The most steps of a round.
const MOST: i64 = 4;
/// The fewest blocks of a part, so that seams, which are longer with each step, are a small part of all.
const BLOCKS: i64 = 8;

/// What a step sets.
struct Inside(IdSet<Reg>);

impl Inside {
    fn sets(&self, a: Operand) -> bool {
        a.as_reg().is_some_and(|r| self.0.contains(&r))
    }
}

impl Blocks<'_, '_> {
    /// The loop with several steps in each block, if it is one over steps, and that pays.
    pub(super) fn steps(&mut self, ins: &Ins) -> Option<Block> {
        let Ins::For { i: t, from, to, body, order: Order::Given } = ins else { return None };
        self.s.options.does(super::TIME_TILING).then_some(())?;
        let body = without_mark(body);
        let first = body.iter().position(|ins| matches!(ins, Ins::For { .. }))?;
        let (early, loops) = body.split_at(first);
        let is_early = |ins: &Ins| match ins {
            Ins::Prim { to, .. } | Ins::Offset { to, .. } | Ins::Alloc { to, .. } | Ins::Set { to, .. } => {
                self.s.defined.get(*to) == Some(&1)
            }
            ins => matches!(ins, Ins::Fail { .. }),
        };
        let is_some = self.s.costs().size(*to).is_none_or(|n| n > 1);
        let of_nests = whole_loop(&loops[0]).is_some_and(|(_, _, body)| is_nest(body));
        if from.as_i64() != Some(0) || !is_some || !of_nests || !early.iter().all(is_early) {
            return None;
        }
        let group = self.gathered(loops).filter(|group| group.end == loops.len() && group.late.is_empty())?;
        let mut inside = defined(body);
        inside.insert(*t);
        let inside = Inside(inside);
        let accesses = || group.stages.iter().flat_map(|stage| &stage.accesses);
        if inside.sets(group.to) || accesses().any(|a| inside.sets(a.row)) {
            return None;
        }
        let Group { to: n, mut sizes, early: between, mut stages, .. } = group;
        let mut early: Block = early.iter().cloned().chain(between).collect();
        let moved = self.sink(&mut early, &mut stages, &Block::new());
        let windows = self.windows((&stages, &moved), &sizes, (&Block::new(), &early));
        early.retain(|ins| !is_window(ins, &windows));
        if early.iter().any(|ins| matches!(ins, Ins::Alloc { .. })) {
            return None;
        }
        let (before, after) = self.margins_of_steps(&stages, &windows, &inside, &sizes)?;
        self.steps_pay(&stages, &windows, (n, &sizes)).then_some(())?;
        let reach = windows.first().map_or(0, |w| w.reach);
        let margin = stages.iter().map(|stage| stage.before.max(stage.after)).max()?;
        let room = 2 * margin.max(reach) + MOST * (before + after) + sizes.more;
        sizes.block = sizes.aligned(sizes.block.max(room + 1));
        sizes.part = sizes.part.max(BLOCKS);
        Some(self.rounds(stages, windows, (n, sizes), ((*t, *to), early), (before, after)))
    }

    /// How much later than the one before a step has to run, and how much more it has to leave out at the beginning of a part.
    fn margins_of_steps(
        &self,
        stages: &[Stage],
        windows: &[Window],
        inside: &Inside,
        sizes: &Sizes,
    ) -> Option<(i64, i64)> {
        let (mut before, mut after) = (0i64, 0i64);
        let mut handed_on = false;
        let uses = || stages.iter().flat_map(|s| s.accesses.iter().map(move |a| (s, a)));
        for ((first, x), (then, y)) in uses().flat_map(|x| uses().map(move |y| (x, y))) {
            let is_window = windows.iter().any(|w| w.root == x.root);
            if !(x.writes || y.writes) || !self.may_meet(x.root, y.root) || is_window {
                continue;
            }
            let is_same = x.root == y.root && x.row == y.row;
            (is_same && self.place_of(x, inside)? == self.place_of(y, inside)?).then_some(())?;
            let (Place::Beside(first_x, last_x), Place::Beside(first_y, last_y)) = (x.place, y.place) else {
                return None;
            };
            handed_on |= x.writes && !y.writes;
            after = after.max(first.after + last_y - first_x - then.after);
            before = before.max(first.before + last_x - first_y - then.before);
        }
        handed_on.then(|| (sizes.aligned(before), sizes.aligned(after)))
    }
    /// What is added to the memory in each step: the same, or a number of the step times this.
    fn place_of(&self, a: &Access, inside: &Inside) -> Option<(Vec<Operand>, Option<Operand>)> {
        if !a.base.iter().any(|term| inside.sets(*term)) {
            return Some((a.base.clone(), None));
        }
        let [term] = a.base[..] else { return None };
        let Some((Op::Mul, [a, b])) = self.s.ranges.op(term) else { return None };
        let size = [a, b].into_iter().find(|a| !inside.sets(**a))?;
        Some((Vec::new(), Some(self.s.ranges.one_of(*size))))
    }
    /// Whether a step leaves the next one more than is near.
    fn steps_pay(&self, stages: &[Stage], windows: &[Window], (n, sizes): (Operand, &Sizes)) -> bool {
        let mut places: Vec<&Access> = Vec::new();
        for access in stages.iter().flat_map(|stage| &stage.accesses) {
            let is_far = matches!(access.place, Place::Beside(..));
            let is_window = windows.iter().any(|w| w.root == access.root);
            let is_seen = places.iter().any(|a| a.root == access.root && a.base == access.base);
            if is_far && !is_window && !is_seen {
                places.push(access);
            }
        }
        let each = places.iter().fold(0i64, |sum, a| sum.saturating_add(self.bytes_of_row(a)));
        self.is_far(each, n, stages, sizes)
    }

    /// The loop over rounds.
    fn rounds(
        &mut self,
        mut stages: Vec<Stage>,
        windows: Vec<Window>,
        (n, sizes): (Operand, Sizes),
        ((t, end), early): ((Reg, Operand), Block),
        (before, after): (i64, i64),
    ) -> Block {
        let most = Operand::i64(MOST);
        let mut out = Block::new();
        self.made.counters.push((t, 0));
        let some = self.int(&mut out, Op::Max, [end, Operand::i64(1)]);
        let last = self.int(&mut out, Op::Sub, [some, Operand::i64(1)]);
        let rounds = self.int(&mut out, Op::Div, [last, most]);
        let rounds = self.int(&mut out, Op::Add, [rounds, Operand::i64(1)]);
        let i = self.counter("round", 0);
        let mut body = Block::new();
        let from = self.int(&mut body, Op::Mul, [i.into(), most]);
        let to = self.int(&mut body, Op::Add, [from, most]);
        let to = self.int(&mut body, Op::Min, [to, end]);
        let steps = Steps { t, early, from, to, most: MOST, after, before };
        let mut layout = self.layout(windows, (n, sizes), Some(steps), &mut out);
        self.parts(&mut stages, &mut layout, &mut body);
        out.push(Ins::For { i, from: Operand::i64(0), to: rounds, body, order: Order::Given });
        with_mark(out, &mut self.s.regs)
    }
}
