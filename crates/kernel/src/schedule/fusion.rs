//! Loops over the same iterations as one loop, so that what one leaves for the other is still in a cache, or a register.
//!
//! ```text
//! for i { m[i] = f i };  other things;  for j { g (m[j]) }   =>   for i { m[i] = f i;  g (m[i]) };  other things
//! ```
//!
//! Two loops in any order with equal bounds are joined if whatever one writes and the other uses is used row by row: iteration
//! `i` of both reaches row `i` only ([`places`]). What stands between them is computed before both if it needs nothing of
//! the first loop, and after both if the second needs nothing of it. Memory that no one else uses then becomes a row that each
//! iteration makes ([`own`]), and what is left of one element a register ([`small`]).
//!
//! Only where the second loop reads what the first one writes, this is expected to be larger than a near cache, and the joined loops
//! are not expected to cost much more: what is near in a cache is read as fast from two loops, and joined bodies need more registers.
//! All pairs are joined and looked at together, since a schedule has to be made for that; if they do not pay, one by one.
//!
//! Guarantees: the same values, but for the order of [`Ins::Accumulate`]. Which of several errors a program stops with may change; memory is
//! asked for earlier, or less of it.
//!
//! [`own`]: super::own
//! [`small`]: super::small

use super::distribution::without_mark;
use super::pipeline::Step;
use super::places::{Access, Kind, Places};
use super::scheduler::{Expected, Scheduler};
use super::uses::Uses;
use super::work::Work;
use super::{Options, added, array_contraction, row_layout, scalar_replacement, share};
use crate::ir::{Block, Fold, Function, Ins, Operand, Order, Reg, RegInfo};
use crate::lower::with_mark;
use crate::walk::{size, walk};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use std::collections::BTreeSet;

/// Results may be larger where that joins loops (decision 45).
pub(super) const LARGER_RESULTS: &str = "larger-results";

/// The joined loop may be expected to take this much of the time of the two: what far memory takes is not in the model of costs.
pub(super) const TOLERANCE: f64 = 1.15;
/// Loops with more instructions between them and inside are left alone.
const LARGE: usize = 2000;
/// So many pairs of loops of a function are joined at most.
const MOST: usize = 32;
/// So many of them one at a time, if all together do not pay.
const ALONE: usize = 8;

/// Joins loops over the same iterations, and contracts arrays that only these use to rows.
pub(super) const STEP: Step = Step {
    name: "fusion",
    optional: true,
    parts: &[LARGER_RESULTS],
    does: "joins loops over the same iterations, and contracts arrays that only these use to rows",
    assumes: "loops in any order, none in lanes; addresses have one register each",
    guarantees: "the same values, but for the order of additions",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    w.each_version(|w| {
        let body = w.take_body();
        w.f.body = join(body, (w.options, &w.expected), &mut w.f, &mut w.owned);
    });
    true
}

/// The body of a function with loops joined; `expected`: what its arguments are expected to be. Memory that became rows of
/// iterations is added to `owned`.
fn join(
    mut body: Block,
    (options, expected): (&Options, &Expected<'_>),
    f: &mut Function,
    owned: &mut BTreeSet<Reg>,
) -> Block {
    let Some(near) = options.model.near else { return body };
    // Two loops would look better than they are with what the first leaves filled near, and still written to far memory.
    let options = &without(options, share::PACKING);
    let (mut most, mut tried) = (MOST, BTreeSet::new());
    while tried.len() < most.max(ALONE) {
        let s = Scheduler::new(options, f, &body, expected);
        let sizes = s.sizes;
        f.regs = s.regs;
        let (code, pairs) = joined(&body, f, &sizes, (options.most, near), (most, &tried));
        if pairs.is_empty() {
            break;
        }
        let (code, rows) = array_contraction::own_rows(code, f);
        let code = if rows.is_empty() { code } else { scalar_replacement::small(f, code) };
        let is_theirs = |ins: &&Ins| {
            let inside = added::defined(std::slice::from_ref(*ins));
            pairs.iter().any(|(i, j)| inside.contains(i) || inside.contains(j))
        };
        let cost = |body: &Block, f: &mut Function| {
            let mut s = Scheduler::new(options, f, body, expected);
            let theirs = body.iter().filter(is_theirs);
            let cost: f64 = theirs.map(|ins| s.tried(std::slice::from_ref(ins), &[])).sum();
            f.regs = s.regs;
            cost
        };
        if near == 0 || cost(&code, f) <= TOLERANCE * cost(&body, f) {
            owned.extend(rows);
            body = code;
        } else if pairs.len() > 1 {
            // Then one pair at a time.
            most = 1;
            continue;
        }
        tried.extend(pairs);
    }
    body
}

fn without(options: &Options, name: &'static str) -> Options {
    let mut options = options.clone();
    options.without.push(name);
    options
}

/// Counters of two loops.
type Counters = (Reg, Reg);

/// The body with so many pairs of loops joined, and their counters; none of those that were tried.
fn joined(
    body: &Block,
    f: &mut Function,
    sizes: &IdMap<Reg, i64>,
    (lanes, near): (usize, i64),
    (most, tried): (usize, &BTreeSet<Counters>),
) -> (Block, BTreeSet<Counters>) {
    let (mut body, mut pairs) = (body.clone(), BTreeSet::new());
    while pairs.len() < most {
        let places = Places::of(f, &body);
        let mut j = Join { places: &places, sizes, regs: &mut f.regs, near, lanes, tried };
        let Some((counters, code)) = j.first(&body, false) else { break };
        pairs.insert(counters);
        body = code;
    }
    (body, pairs)
}

struct Join<'a> {
    places: &'a Places,
    /// What registers are expected to hold.
    sizes: &'a IdMap<Reg, i64>,
    regs: &'a mut IndexVec<Reg, RegInfo>,
    near: i64,
    /// How many iterations may run side by side.
    lanes: usize,
    /// Pairs that stay two.
    tried: &'a BTreeSet<Counters>,
}

/// A loop in any order.
struct Loop<'b> {
    /// Which instruction of a block it is.
    at: usize,
    i: Reg,
    body: &'b Block,
    folds: &'b [Fold],
    bounds: [Operand; 2],
    /// What bounds are products of.
    factors: [Vec<Operand>; 2],
    /// What it uses, if that is known.
    used: Option<Vec<Access>>,
}

fn is_in_any_order(ins: &Ins) -> bool {
    matches!(ins, Ins::For { order: Order::Any(_), .. })
}

impl Join<'_> {
    /// Two loops as one, of those that are to be, and the block with that; those inside first. `inside`: whether the block
    /// belongs to a loop in any order.
    fn first(&mut self, block: &Block, inside: bool) -> Option<(Counters, Block)> {
        for (k, ins) in block.iter().enumerate() {
            let within = inside || is_in_any_order(ins);
            for (n, inner) in ins.blocks().into_iter().enumerate() {
                if let Some((counters, joined)) = self.first(inner, within) {
                    let mut out = block.clone();
                    out[k].blocks_mut().into_iter().skip(n).take(1).for_each(|b| *b = joined.clone());
                    return Some((counters, out));
                }
            }
        }
        let loops = self.loops(block);
        for (k, first) in loops.iter().enumerate() {
            for second in &loops[k + 1..] {
                if self.tried.contains(&(first.i, second.i)) {
                    continue;
                }
                if let Some(code) = self.pair(&block[first.at..=second.at], first, second, inside) {
                    let code = block[..first.at].iter().cloned().chain(code);
                    let code = code.chain(block[second.at + 1..].iter().cloned()).collect();
                    return Some(((first.i, second.i), code));
                }
            }
        }
        None
    }
    fn loops<'b>(&self, block: &'b Block) -> Vec<Loop<'b>> {
        let of = |(at, ins): (usize, &'b Ins)| match ins {
            Ins::For { i, from, to, body, order: Order::Any(folds) } => {
                let bounds = [*from, *to];
                let factors = bounds.map(|a| self.places.factors(a));
                let used = self.places.used(body, Some(*i));
                Some(Loop { at, i: *i, body, folds, bounds, factors, used })
            }
            _ => None,
        };
        block.iter().enumerate().filter_map(of).collect()
    }
    /// The first and the last instruction, two loops, as one, with what stands between them.
    fn pair(&mut self, block: &[Ins], first: &Loop<'_>, second: &Loop<'_>, inside: bool) -> Option<Block> {
        let equal = first.bounds == second.bounds || first.factors == second.factors;
        equal.then_some(())?;
        let (of_first, of_second) = (first.used.as_ref()?, second.used.as_ref()?);
        // Lanes have a row each.
        let copies = if inside { self.lanes as i64 } else { 1 };
        let is_far =
            |root: Reg| self.places.bytes(root, self.sizes).unwrap_or(0).saturating_mul(copies) >= self.near;
        let reads = |root: Reg| of_second.iter().any(|r| r.kind == Kind::Read && r.root == root);
        let mut written = of_first.iter().filter(|w| w.kind == Kind::Write).map(|w| w.root);
        written.any(|root| reads(root) && is_far(root)).then_some(())?;
        of_first.iter().all(|x| of_second.iter().all(|y| self.meet(x, y))).then_some(())?;
        (size(block) <= LARGE).then_some(())?;
        // An iteration that may not end must not be before another one that stops the program.
        (!has_while(second.body)).then_some(())?;
        let (mut code, after) = self.around(block, second, of_second)?;
        code.push(together(first, second, self.regs));
        code.extend(after);
        Some(code)
    }
    /// Whether an iteration that does both uses no more than two that do one each.
    fn meet(&self, x: &Access, y: &Access) -> bool {
        let adds = x.kind == Kind::Add || y.kind == Kind::Add;
        let is_one = |(a, b)| self.places.factors(a) == self.places.factors(b);
        let same_row = !adds && x.row.zip(y.row).is_some_and(is_one);
        are_apart(x, y) || same_row
    }

    /// What stands between the first and the last instruction, two loops: what can be done before both, and the rest, which can
    /// be done after both. `None`: some of it is neither.
    fn around(&self, block: &[Ins], second: &Loop<'_>, of_second: &[Access]) -> Option<(Block, Block)> {
        let [one, between @ .., two] = block else { return None };
        let states: IdSet<Reg> = second.folds.iter().flat_map(|f| f.state.iter().copied()).collect();
        let mut late: IdSet<Reg> = Uses::of(std::slice::from_ref(one)).set().into_iter().collect();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut made = IdSet::new();
        for ins in between {
            if self.is_early(ins, &late, &states, &made, &after)? {
                made.extend(if let Ins::Alloc { to, .. } = ins { Some(*to) } else { None });
                before.push(ins.clone());
            } else {
                late.extend(Uses::of(std::slice::from_ref(ins)).set());
                after.push(ins.clone());
            }
        }
        // The second loop needs nothing of what is to come after it, nor of the first but memory, nor do they need anything of it.
        let mut free = true;
        row_layout::mentioned(std::slice::from_ref(two), &mut |r| free &= !late.contains(&r));
        states.iter().for_each(|r| free &= !late.contains(r));
        let set: IdSet<Reg> = Uses::of(std::slice::from_ref(two)).set().into_iter().chain(states).collect();
        row_layout::mentioned(&after, &mut |r| free &= !set.contains(&r));
        row_layout::mentioned(std::slice::from_ref(one), &mut |r| free &= !set.contains(&r));
        let used = self.places.used(&after, None)?;
        free &= used.iter().all(|x| of_second.iter().all(|y| are_apart(x, y)));
        free.then_some((before, after))
    }
    /// Whether an instruction after the first loop can be done before it. `late`: registers that are set by the loop, or after both loops;
    /// `states`: what the second loop takes together; `made`: memory that is allocated before both; `after`: what is to be done after both.
    /// `None`: it has to stay between the loops.
    fn is_early(
        &self,
        ins: &Ins,
        late: &IdSet<Reg>,
        states: &IdSet<Reg>,
        made: &IdSet<Reg>,
        after: &Block,
    ) -> Option<bool> {
        let mut known = true;
        ins.reads(&mut |a| known &= a.as_reg().is_none_or(|r| !late.contains(&r)));
        let single = |r: &Reg| self.places.defined.get(*r) == Some(&1);
        Some(match ins {
            Ins::Prim { to, .. } | Ins::Offset { to, .. } | Ins::Alloc { to, .. } => known && single(to),
            Ins::Set { to, .. } => known && (single(to) || states.contains(to) && !late.contains(to)),
            // What comes after a check may rely on it; on one in a block inside only what is there.
            Ins::Fail { .. } => known.then_some(true)?,
            Ins::Fill { pointer, .. } => {
                let root = self.places.root(*pointer)?;
                let used = self.places.used(after, None)?;
                known && made.contains(&root) && used.iter().all(|x| x.root != root)
            }
            Ins::Mark { .. } | Ins::Release { .. } | Ins::Call { .. } | Ins::Chunks { .. } => return None,
            _ => false,
        })
    }
}

fn has_while(block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |ins| found |= matches!(ins, Ins::While { .. }));
    found
}

/// Whether two uses do not meet, whatever the order.
fn are_apart(x: &Access, y: &Access) -> bool {
    let kinds = [x.kind, y.kind];
    let may_swap = kinds == [Kind::Read; 2] || kinds == [Kind::Add; 2];
    x.root != y.root || may_swap
}

/// The bodies one after the other; what they allocate is given back at the end of both.
fn together(first: &Loop<'_>, second: &Loop<'_>, regs: &mut IndexVec<Reg, RegInfo>) -> Ins {
    let mut body = without_mark(second.body).to_vec();
    rename(&mut body, &IdMap::from([(second.i, first.i)]));
    let body = without_mark(first.body).iter().cloned().chain(body).collect();
    let folds = first.folds.iter().chain(second.folds).cloned().collect();
    let body = with_mark(body, regs);
    let [from, to] = first.bounds;
    Ins::For { i: first.i, from, to, body, order: Order::Any(folds) }
}

fn rename(block: &mut Block, names: &IdMap<Reg, Reg>) {
    for ins in block {
        ins.reads_mut(&mut |a| {
            if let Operand::Reg(r) = a
                && let Some(name) = names.get(r)
            {
                *r = *name;
            }
        });
        ins.blocks_mut().into_iter().for_each(|b| rename(b, names));
    }
}
