//! Loops that follow each other, over the same elements in far memory, in blocks of elements: what one leaves for the next is still near.
//!
//! ```text
//! for i { m[i] = f x[i] };  for i { y[i] = g m[i - 1] }   =>   for blocks { for i of the block { m[i] = .. };  for i of the block { y[i] = .. } }
//! ```
//!
//! Loops can be joined ([`join`]) only where each iteration keeps to its own element. Stages of a step in time read their neighbours. If each of them reaches a
//! fixed number of elements to both sides, blocks keep the order: in block `b` stage `k` runs its iterations from `b * BLOCK - after[k]` on, so that an iteration of an
//! earlier stage which it reads, or whose reads it would overwrite, is not in a later block.
//!
//! The iterations are cut into parts, which threads share. A part leaves out the iterations at its ends that need, or are needed by, iterations of its neighbours:
//! `after[k]` at its end, `before[k]` at its beginning. They are run when all parts are done, *seams* between parts, stage by stage.
//!
//! Memory that only these loops use is not made: a part has a window on it, of a block and what is reached before it. Before each further block the window moves; at both ends of a
//! part what a seam needs of it is kept.
//!
//! Code between the loops that reads the first elements only runs in the first block.
//!
//! Where the loops are nests, rows take the place of elements: an iteration has a row of an array, and what its inner loops reach is in that row and in those around it.
//! How many rows a block has depends on how long they are expected to be.
//!
//! Assumes, as for [`join`], that different allocations and arguments do not overlap, or are only read. Guarantees: the same values bit for bit. Which of several
//! errors a program stops with may change. How many parts there are depends on sizes only.
//!
//! Source: skewed and split tiling of loops over stencils (M. Wolf, M. Lam, A data locality optimizing algorithm, PLDI 1991; S. Krishnamoorthy and others, Effective automatic
//! parallelization of stencil computations, PLDI 2007), for the stages of one step.
//!
//! [`join`]: super::join

mod code;
mod time_tiling;

use super::Options;
use super::added::{defined, reads, way};
use super::pipeline::Step;
use super::scheduler::{Expected, Scheduler};
use super::uses::Uses;
use super::work::Work;
use crate::ir::{Block, Function, Ins, Operand, Order, Reg, Ty};
use crate::walk::{size, walk};
use pullback_base::index::{IdMap, IdSet};
use pullback_prim::Op;

/// How many elements or rows a block has, and how many blocks a part at least; with bounds at multiples of so many.
#[derive(Clone, Copy)]
struct Sizes {
    block: i64,
    part: i64,
    align: i64,
    /// How many more than the margins of its stages a block has to have.
    more: i64,
}

impl Sizes {
    /// The next bound from here on.
    fn aligned(&self, n: i64) -> i64 {
        (n + self.align - 1) / self.align * self.align
    }
}

/// A loop takes some tens of nanoseconds to start, and a block of a dozen arrays should be in a first-level cache.
const LARGE: Sizes = Sizes { block: 384, part: 24, align: 8, more: 2 * FIRST };
/// Where no memory is near: so tests see several blocks and parts.
const SMALL: Sizes = Sizes { block: 16, part: 2, align: 1, more: 2 * FIRST };
/// The same for rows.
const FEW: Sizes = Sizes { block: 5, part: 2, align: 1, more: 0 };
/// So many elements of each array a block of rows has, if that is at least so many rows, which should stay in a thread's part of the last cache.
const ROWS: i64 = 16384;
const LEAST_ROWS: i64 = 8;
/// How many rows a block has if it is not known how long they are.
const UNKNOWN_ROWS: i64 = 16;
/// The elements of all arrays in a block take at most this many times what is near.
const BLOCK: i64 = 128;
/// The fewest blocks of rows of a part, so that seams are a small part of all.
const BLOCKS: i64 = 2;
/// Rows that are expected to be shorter may lie side by side in lanes.
const SHORT: i64 = 16;
/// So many rows further at most.
const REACH: i64 = 2;
/// Loops that use this many times what is near leave each other far memory.
const FAR: i64 = 8;
/// Nests that do: a row is much work for what it takes from a cache, so only what leaves the last one counts (decision 51).
const FAR_OF_NESTS: i64 = 512;
/// The most parts.
const PARTS: i64 = 64;
/// Code between loops may read so many elements.
const FIRST: i64 = 4;
/// Groups with more instructions are left alone: they are there several times then.
const INSTRUCTIONS: usize = 1500;

/// Several steps of a loop over them run in each block (decision 52).
const TIME_TILING: &str = "time-tiling";

/// Runs loops that follow each other in blocks of elements, several steps of a loop over them in each block.
pub(super) const STEP: Step = Step {
    name: "blocking",
    optional: true,
    parts: &[TIME_TILING],
    does: "runs loops that follow each other in blocks of elements, several steps of a loop over them in each block",
    assumes: "loops in any order whose iterations reach few neighbours",
    guarantees: "the same values bit for bit",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    w.f.body = in_blocks(body, w.options, &mut w.expected, &mut w.f);
    true
}

/// A body with loops in blocks; what counters of blocks are expected to be is added to `expected`.
fn in_blocks(body: Block, options: &Options, expected: &mut Expected<'_>, f: &mut Function) -> Block {
    let Some(near) = options.model.near else { return body };
    let uses = Uses::within(f, &body);
    let mut s = Scheduler::new(options, f, &body, expected);
    let joined = joined_pointers(&body, &s);
    let made = Made::default();
    let mut blocks = Blocks { s: &mut s, uses, joined, near, made };
    let body = blocks.block(body);
    let made = blocks.made;
    expected.counters.extend(made.counters);
    expected.parts.extend(made.parts);
    f.regs = s.regs;
    body
}

struct Blocks<'a, 'b> {
    s: &'a mut Scheduler<'b>,
    uses: Uses,
    /// Pointers that branches or iterations set, with the memory that they may point to.
    joined: IdMap<Reg, IdSet<Reg>>,
    near: i64,
    made: Made,
}

#[derive(Default)]
struct Made {
    /// Counters, and what they are expected to be.
    counters: Vec<(Reg, i64)>,
    /// Counters of parts.
    parts: Vec<Reg>,
}

/// Pointers that are set at several places to others that are known.
fn joined_pointers(body: &Block, s: &Scheduler<'_>) -> IdMap<Reg, IdSet<Reg>> {
    // (Arguments are set by the caller too.)
    let is_argument = |r: Reg| s.roots.get(r).copied().flatten().is_some();
    let several =
        |r: Reg| s.regs[r].ty == Ty::Pointer && s.defined.get(r).is_some_and(|n| *n > 1) && !is_argument(r);
    let mut all: IdMap<Reg, Option<IdSet<Reg>>> = IdMap::new();
    walk(body, &mut |ins| {
        for &to in ins.sets().iter().filter(|r| several(**r)) {
            let root = match ins {
                Ins::Set { value: Operand::Reg(from), .. } => s.roots.get(*from).copied().flatten(),
                _ => None,
            };
            let known = all.entry(to).or_insert_with(|| Some(IdSet::new()));
            match (root, known.as_mut()) {
                (Some(root), Some(roots)) => {
                    roots.insert(root);
                }
                _ => *known = None,
            }
        }
    });
    all.into_iter().filter_map(|(r, roots)| Some((r, roots?))).collect()
}

/// A use of memory by an iteration, or by code that runs once.
#[derive(Clone, Debug, PartialEq)]
struct Access {
    root: Reg,
    /// What is added to the root, but for numbers and rows.
    base: Vec<Operand>,
    /// The elements that an iteration has: one, or a row.
    row: Operand,
    place: Place,
    writes: bool,
    ty: Ty,
}

/// Which elements or rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// From so many further than that of the iteration to so many further.
    Beside(i64, i64),
    /// That of a number.
    Fixed(i64),
    Unknown,
}

/// A loop of a group, or code that reads first elements.
struct Stage {
    /// The counter of a loop.
    i: Option<Reg>,
    /// Whether it has rows.
    is_nest: bool,
    body: Block,
    accesses: Vec<Access>,
    /// Iterations that are left out at the end of a part, and run so much later in blocks.
    after: i64,
    /// Iterations that are left out at the beginning of a part.
    before: i64,
}

/// Loops in blocks.
struct Group {
    /// Up to where in the block of instructions.
    end: usize,
    to: Operand,
    sizes: Sizes,
    /// What is done before all stages, and after.
    early: Block,
    stages: Vec<Stage>,
    late: Block,
}

impl Blocks<'_, '_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Block::with_capacity(block.len());
        let mut rest = &block[..];
        while let Some((ins, others)) = rest.split_first() {
            if let Some(group) = self.group(rest) {
                rest = &rest[group.end..];
                self.emit(group, &mut out);
                continue;
            }
            if let Some(code) = self.steps(ins) {
                out.extend(code);
                rest = others;
                continue;
            }
            let mut ins = ins.clone();
            if !matches!(ins, Ins::For { order: Order::Any(_), .. }) {
                for inner in ins.blocks_mut() {
                    *inner = self.block(std::mem::take(inner));
                }
            }
            out.push(ins);
            rest = others;
        }
        out
    }

    /// The loops from the first instruction on that are run in blocks.
    fn group(&self, block: &[Ins]) -> Option<Group> {
        self.gathered(block).filter(|group| self.pays(group))
    }
    /// The loops from the first instruction on that can be.
    fn gathered(&self, block: &[Ins]) -> Option<Group> {
        let (i, to, body) = whole_loop(block.first()?)?;
        let stage = self.stage(Some(i), body)?;
        let (sizes, is_nest) = (self.sizes(&stage), stage.is_nest);
        let mut group = Group { end: 1, to, sizes, early: Vec::new(), stages: vec![stage], late: Vec::new() };
        let mut late: IdSet<Reg> = IdSet::new();
        // What stands behind the last loop so far, and is needed only if there is another one.
        let (mut early, mut points, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ins) in block.iter().enumerate().skip(1) {
            let mut known = true;
            reads(std::slice::from_ref(ins), &mut |r| known &= !late.contains(&r));
            let once = |r: &Reg| self.s.defined.get(*r) == Some(&1);
            match ins {
                Ins::For { .. } => {
                    let Some((i, end, body)) = whole_loop(ins).filter(|_| known) else { break };
                    let Some(stage) = self.stage(Some(i), body).filter(|s| end == to && s.is_nest == is_nest)
                    else {
                        break;
                    };
                    let stages: Vec<&Stage> = group.stages.iter().chain(&points).collect();
                    let Some((before, after)) = self.margins(&stages, &stage, &sizes) else { break };
                    group.stages.append(&mut points);
                    group.stages.push(Stage { before, after, ..stage });
                    group.early.append(&mut early);
                    group.late.append(&mut behind);
                    group.end = at + 1;
                }
                Ins::Prim { to, .. }
                | Ins::Offset { to, .. }
                | Ins::Alloc { to, .. }
                | Ins::Set { to, .. }
                    if known && once(to) =>
                {
                    early.push(ins.clone());
                }
                Ins::Fail { .. } if known => early.push(ins.clone()),
                Ins::Prim { to, .. } if once(to) => {
                    late.insert(*to);
                    behind.push(ins.clone());
                }
                Ins::If { .. } | Ins::Load { .. } if known && !is_nest => {
                    let stage = self.stage(None, std::slice::from_ref(ins));
                    let first = |a: &Access| matches!(a.place, Place::Fixed(0..=FIRST));
                    let Some(stage) = stage.filter(|s| s.accesses.iter().all(first)) else { break };
                    let stages: Vec<&Stage> = group.stages.iter().chain(&points).collect();
                    if self.margins(&stages, &stage, &sizes).is_none() {
                        break;
                    }
                    let inside = Uses::of(&stage.body);
                    let sets = inside.set();
                    // In the block its registers are others, which hold nothing of before.
                    let is_new = |r: &Reg| self.uses.sets(*r) == inside.sets(*r);
                    let is_number = |r: &Reg| matches!(self.s.regs[*r].ty, Ty::Scalar(_));
                    if !sets.iter().all(|r| is_new(r) && is_number(r)) {
                        break;
                    }
                    late.extend(sets);
                    points.push(stage);
                }
                _ => break,
            }
        }
        Some(group)
    }

    /// Whether loops in blocks leave each other more than is near.
    fn pays(&self, group: &Group) -> bool {
        let mut bytes: IdMap<Reg, i64> = IdMap::new();
        let mut handed_on = false;
        let mut written: IdSet<Reg> = IdSet::new();
        for stage in &group.stages {
            handed_on |=
                stage.i.is_some() && stage.accesses.iter().any(|a| !a.writes && written.contains(&a.root));
            written.extend(stage.accesses.iter().filter(|a| a.writes).map(|a| a.root));
            let beside = stage.accesses.iter().filter(|a| matches!(a.place, Place::Beside(..)));
            bytes.extend(beside.map(|a| (a.root, self.bytes_of_row(a))));
        }
        let each = bytes.values().fold(0i64, |sum, n| sum.saturating_add(*n));
        handed_on && self.is_far(each, group.to, &group.stages, &group.sizes)
    }
    /// What an iteration has of an array.
    fn bytes_of_row(&self, a: &Access) -> i64 {
        self.s.costs().size(a.row).unwrap_or(1).saturating_mul(a.ty.bytes() as i64)
    }
    /// Whether so many iterations, with so many bytes each, use more than is near, and are not too much code.
    fn is_far(&self, each: i64, n: Operand, stages: &[Stage], sizes: &Sizes) -> bool {
        let is_more = |n: i64, times: i64| n.saturating_mul(each) >= self.near.saturating_mul(times);
        let n = self.s.costs().size(n);
        // Rows of which a block does not stay near gain nothing.
        let is_nest = stages.iter().any(|s| s.is_nest);
        let times = if is_nest { FAR_OF_NESTS } else { FAR };
        let far = n.is_some_and(|n| is_more(n, times)) && !(is_nest && is_more(sizes.block, BLOCK));
        let small = stages.iter().map(|s| size(&s.body)).sum::<usize>() <= INSTRUCTIONS;
        (far || self.near == 0) && small
    }

    /// A stage, if it is known which memory it uses and how.
    fn stage(&self, i: Option<Reg>, body: &[Ins]) -> Option<Stage> {
        let mut accesses: Vec<Access> = Vec::new();
        let mut known = true;
        let is_nest = is_nest(body);
        let inside = if is_nest { defined(body) } else { IdSet::new() };
        walk(body, &mut |ins| {
            let mut add = |pointer: Operand, index: Operand, writes, ty| {
                let access = match i.filter(|_| is_nest) {
                    Some(i) => self.row_access(i, &inside, (pointer, index), ty),
                    None => self.access(i, (pointer, index), ty),
                };
                let Some(access) = access else {
                    known = false;
                    return;
                };
                let access = Access { writes, ..access };
                if !accesses.contains(&access) {
                    accesses.push(access);
                }
            };
            match ins {
                Ins::Load { to, pointer, index } => add(*pointer, *index, false, self.s.regs[*to].ty),
                Ins::Store { pointer, index, ty, .. } | Ins::Accumulate { pointer, index, ty, .. } => {
                    add(*pointer, *index, true, *ty);
                    if matches!(ins, Ins::Accumulate { .. }) {
                        add(*pointer, *index, false, *ty);
                    }
                }
                Ins::Set { .. } | Ins::Prim { .. } | Ins::If { .. } | Ins::Fail { .. } => {}
                Ins::Offset { .. } if is_nest => {}
                Ins::For { order, .. } => {
                    known &= matches!(order, Order::Given)
                        || matches!(order, Order::Any(folds) if folds.is_empty());
                }
                _ => known = false,
            }
        });
        known.then(|| Stage { i, is_nest, body: body.to_vec(), accesses, after: 0, before: 0 })
    }
    fn root(&self, pointer: Operand) -> Option<Reg> {
        let joined = pointer.as_reg().filter(|r| self.joined.contains_key(r));
        joined.or_else(|| self.s.roots.get(pointer.as_reg()?).copied().flatten())
    }
    fn access(&self, i: Option<Reg>, (pointer, index): (Operand, Operand), ty: Ty) -> Option<Access> {
        let root = self.root(pointer)?;
        let mut place = self.place(i, index);
        let mut base = Vec::new();
        for (index, of) in way(pointer, root, &self.s.offsets)? {
            (of == ty).then_some(())?;
            match (index.as_i64(), &mut place) {
                (Some(n), Place::Fixed(d)) => *d = d.checked_add(n)?,
                (Some(n), Place::Beside(first, last)) => {
                    (*first, *last) = (first.checked_add(n)?, last.checked_add(n)?);
                }
                _ => base.push(index),
            }
        }
        Some(Access { root, base, row: Operand::i64(1), place, writes: false, ty })
    }
    /// The same in a nest, whose instructions set the registers in `inside`: one term is the counter times a row, which the others do not leave far behind.
    fn row_access(
        &self,
        i: Reg,
        inside: &IdSet<Reg>,
        (pointer, index): (Operand, Operand),
        ty: Ty,
    ) -> Option<Access> {
        let root = self.root(pointer)?;
        let (mut terms, mut further) = (Vec::new(), Vec::new());
        self.s.ranges.terms(index, &mut terms);
        for (index, of) in way(pointer, root, &self.s.offsets)? {
            (of == ty).then_some(())?;
            self.s.ranges.terms(index, &mut further);
        }
        let row_of = |terms: &mut Vec<Operand>| {
            let found = |(k, t): (usize, &Operand)| Some((k, self.row_term(*t, i)?));
            let (k, row) = terms.iter().enumerate().find_map(found)?;
            terms.remove(k);
            Some(row)
        };
        let (row, d) = row_of(&mut terms).or_else(|| row_of(&mut further))?;
        let row = self.s.ranges.one_of(row);
        let is_outside = |a: &Operand| a.as_reg().is_none_or(|r| !inside.contains(&r));
        is_outside(&row).then_some(())?;
        let (base, near): (Vec<_>, Vec<_>) =
            further.into_iter().partition(|t| is_outside(t) && !self.s.ranges.is_multiple(*t, row));
        terms.extend(near);
        let (first, last) = self.s.ranges.rows(&terms, row, REACH)?;
        Some(Access { root, base, row, place: Place::Beside(first + d, last + d), writes: false, ty })
    }
    /// A counter and a number, times the elements of a row: these, and the number.
    fn row_term(&self, term: Operand, i: Reg) -> Option<(Operand, i64)> {
        let beside = |a: Operand| match self.place(Some(i), a) {
            Place::Beside(d, _) => Some(d),
            _ => None,
        };
        match self.s.ranges.op(term) {
            Some((Op::Mul, [a, b])) => beside(*a).map(|d| (*b, d)).or_else(|| beside(*b).map(|d| (*a, d))),
            _ => beside(term).map(|d| (Operand::i64(1), d)),
        }
    }
    /// How large blocks of a stage are, and of those with it.
    fn sizes(&self, stage: &Stage) -> Sizes {
        if !stage.is_nest {
            return if self.near == 0 { SMALL } else { LARGE };
        }
        if self.near == 0 {
            return FEW;
        }
        let row = stage.accesses.iter().filter_map(|a| self.s.costs().size(a.row)).max();
        let row = row.map_or(ROWS / UNKNOWN_ROWS, |row| row.max(1));
        let block = (ROWS / row).clamp(LEAST_ROWS, LARGE.block);
        let part = (LARGE.block * LARGE.part / row.saturating_mul(block)).max(BLOCKS);
        Sizes { block, part, align: if row < SHORT { LARGE.align } else { 1 }, more: 0 }
    }
    fn place(&self, i: Option<Reg>, index: Operand) -> Place {
        let (mut at, mut d) = (self.s.ranges.one_of(index), 0i64);
        loop {
            if let Some(n) = at.as_i64() {
                return d.checked_add(n).map_or(Place::Unknown, Place::Fixed);
            }
            if at.as_reg() == i {
                return Place::Beside(d, d);
            }
            let (more, of) = match self.s.ranges.op(at) {
                Some((Op::Add, [a, n])) if n.as_i64().is_some() => (n.as_i64(), *a),
                Some((Op::Add, [n, a])) if n.as_i64().is_some() => (n.as_i64(), *a),
                Some((Op::Sub, [a, n])) if n.as_i64().is_some() => {
                    (n.as_i64().and_then(i64::checked_neg), *a)
                }
                _ => return Place::Unknown,
            };
            match more
                .and_then(|n| d.checked_add(n))
                .filter(|d| d.unsigned_abs() < LARGE.block.unsigned_abs())
            {
                Some(sum) => (d, at) = (sum, self.s.ranges.one_of(of)),
                None => return Place::Unknown,
            }
        }
    }

    /// How many iterations of a stage have to be left out at the beginning and at the end of a part because of the stages before it.
    fn margins(&self, earlier: &[&Stage], stage: &Stage, sizes: &Sizes) -> Option<(i64, i64)> {
        let (mut before, mut after) = (0i64, 0i64);
        for first in earlier {
            for (x, y) in first.accesses.iter().flat_map(|x| stage.accesses.iter().map(move |y| (x, y))) {
                if !(x.writes || y.writes) || !self.may_meet(x.root, y.root) {
                    continue;
                }
                if x.root == y.root && self.are_apart(&x.base, &y.base) {
                    continue;
                }
                (x.root == y.root && x.base == y.base && x.row == y.row).then_some(())?;
                match (x.place, y.place) {
                    (Place::Beside(first_x, last_x), Place::Beside(first_y, last_y)) => {
                        after = after.max(first.after + last_y - first_x);
                        before = before.max(first.before + last_x - first_y);
                    }
                    // What runs once does so in the first block, before later stages, and after what earlier ones do for the first elements.
                    (Place::Fixed(0..=FIRST), Place::Beside(..) | Place::Fixed(0..=FIRST))
                        if first.i.is_none() => {}
                    (Place::Beside(d, _), Place::Fixed(0..=FIRST)) if stage.i.is_none() && d >= -FIRST => {}
                    _ => return None,
                }
            }
        }
        let (before, after) = (sizes.aligned(before), sizes.aligned(after));
        // A block has room for both, and for the first elements.
        (2 * before.max(after) + sizes.more < sizes.block).then_some((before, after))
    }
    /// Whether two pointers may point to the same memory.
    fn may_meet(&self, x: Reg, y: Reg) -> bool {
        let of = |r: Reg| self.joined.get(&r).cloned().unwrap_or_else(|| IdSet::from([r]));
        x == y || !of(x).is_disjoint(&of(y))
    }
    /// Whether two places are different ones of several of the same size that a counter goes round: so many places further than the
    /// counter, times the elements of a place.
    fn are_apart(&self, x: &[Operand], y: &[Operand]) -> bool {
        let ([x], [y]) = (x, y) else { return false };
        let (Some((Op::Mul, [a, n])), Some((Op::Mul, [b, m]))) = (self.s.ranges.op(*x), self.s.ranges.op(*y))
        else {
            return false;
        };
        // The counter, how many places further, and how many places there are.
        let round = |a: Operand| {
            let (i, places) = match self.s.ranges.op(a)? {
                (Op::And, [i, one]) if one.as_i64() == Some(1) => (*i, 2),
                (Op::Rem, [i, places]) => (*i, places.as_i64()?),
                _ => return None,
            };
            match self.s.ranges.op(i) {
                Some((Op::Add, [i, more])) => Some((*i, more.as_i64()?, places)),
                _ => Some((i, 0, places)),
            }
        };
        let are_others = round(*a).zip(round(*b)).is_some_and(|((i, x, k), (j, y, l))| {
            let small = |x: i64| (0..k).contains(&x) && k <= MOST_PLACES;
            i == j && k == l && x != y && small(x) && small(y)
        });
        n == m && are_others
    }
}

/// More places than a counter goes round: sums of it and such numbers do not overflow.
const MOST_PLACES: i64 = 64;

/// Counter, end and body of a loop in any order from zero on that takes nothing together.
fn whole_loop(ins: &Ins) -> Option<(Reg, Operand, &Block)> {
    match ins {
        Ins::For { i, from, to, body, order: Order::Any(folds) } if folds.is_empty() => {
            (from.as_i64() == Some(0)).then_some((*i, *to, body))
        }
        _ => None,
    }
}

/// Whether an iteration has loops of its own.
pub(super) fn is_nest(body: &[Ins]) -> bool {
    body.iter().any(|ins| matches!(ins, Ins::For { .. }))
}

/// The memory that instructions allocate, and of what.
fn allocated<'a>(block: impl Iterator<Item = &'a Ins>) -> impl Iterator<Item = (Reg, Ty)> {
    block.filter_map(|ins| if let Ins::Alloc { to, ty, .. } = *ins { Some((to, ty)) } else { None })
}
