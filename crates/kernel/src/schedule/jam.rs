//! Several iterations of a loop together: unroll and jam.
//!
//! Where the body of a loop has loops inside that work on lanes, so many iterations run these together: what is the same in
//! all of them (a vector of the other operand) is loaded once, their sums are independent of each other and stay in registers,
//! and what they add to one place is added up first. With the loop over rows outside and columns in lanes that is the register
//! tile of a matrix product; with lanes along rows, several sums of rows at once; in lanes across points, several centres at once.
//!
//! Between the inner loops the iterations run one after the other. So what an iteration leaves in a register for the next must
//! be read and set between two inner loops; and a loop with an order must not write memory. What is left over of the iterations runs
//! one by one. A loop that always runs a few times, such as one over three coordinates, can run whole.
//!
//! Guarantees: the same values, but for the order of [`Ins::Accumulate`] and its kind. How many iterations, if any: by cost, and by the
//! vector registers that the innermost loops keep; where they neither share a load nor have sums that wait for each other there is
//! nothing to gain but the start of loops of lanes: two at most, and none in lanes.

use super::cost::{Costs, Model};
use super::pipeline::Step;
use super::uses::{Uses, sets_first, writes};
use super::work::Work;
use crate::ir::{Block, Fold, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::walk::{size, walk};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

/// Runs several iterations of a loop around lanes together.
pub(super) const STEP: Step = Step {
    name: "unroll-and-jam",
    optional: true,
    parts: &[],
    does: "runs several iterations of a loop around lanes together",
    assumes: "loops are in lanes",
    guarantees: "the same values, but for the order of additions",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let uses = Uses::of_function(&w.f);
    let body = w.take_body();
    let machine = (w.options.model, w.options.lanes);
    w.f.body = block(body, &mut w.f.regs, uses, machine, &mut w.sizes);
    true
}

/// Numbers of iterations that are tried.
const COPIES: [usize; 3] = [8, 4, 2];

/// Loops that always run at most so often may run whole: there is no loop any more, and the one around it has its turn.
const WHOLE: usize = 8;

/// More instructions are not made of a loop: compiling them takes longer than it gains.
const LARGE: usize = 400;

/// Less than this part of the cost has to be left.
const GAIN: f64 = 0.95;

/// Vector registers that the innermost loops need for what they do not keep, at least.
const SPARE: usize = 4;

/// Jams loops of a block. `uses`: of the whole function. `sizes`: what registers are expected to hold.
pub(super) fn block(
    block: Block,
    regs: &mut IndexVec<Reg, RegInfo>,
    uses: Uses,
    (model, lanes): (Model, usize),
    sizes: &mut IdMap<Reg, i64>,
) -> Block {
    Jam { regs, model, lanes, sizes, uses, active: 1.0 }.block(block).0
}

struct Jam<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    model: Model,
    lanes: usize,
    sizes: &'a mut IdMap<Reg, i64>,
    /// Uses in the whole function as it was.
    uses: Uses,
    /// How many lanes are active.
    active: f64,
}

/// A loop whose iterations may run together.
struct Loop<'a> {
    i: Reg,
    from: Operand,
    to: Operand,
    body: &'a Block,
    order: &'a Order,
}

impl Loop<'_> {
    /// How often it runs, if that is always the same.
    fn count(&self) -> Option<usize> {
        usize::try_from(self.to.as_i64()?.checked_sub(self.from.as_i64()?)?).ok()
    }
}

impl Jam<'_> {
    /// The block, and whether a loop in it was jammed, and is still there.
    fn block(&mut self, block: Block) -> (Block, bool) {
        let mut out = Vec::with_capacity(block.len());
        let mut any = false;
        for mut ins in block {
            let outer = self.active;
            if let Ins::Lanes { lanes, .. } = &ins {
                self.active = *lanes as f64;
            }
            let mut inside = false;
            for inner in ins.blocks_mut() {
                let (block, jammed) = self.block(std::mem::take(inner));
                *inner = block;
                inside |= jammed;
            }
            self.active = outer;
            let code = if inside { None } else { self.best(&ins) };
            match code {
                Some((code, whole)) => {
                    any |= !whole;
                    out.extend(code);
                }
                None => {
                    any |= inside;
                    out.push(ins);
                }
            }
        }
        (out, any)
    }
    fn costs(&self) -> Costs<'_> {
        Costs { model: self.model, regs: self.regs, sizes: self.sizes }
    }
    /// The loop with so many iterations together as cost least, and whether that is all of them; `None`: as it is.
    fn best(&mut self, ins: &Ins) -> Option<(Block, bool)> {
        let Ins::For { i, from, to, body, order } = ins else { return None };
        let tiled = self.active == 1.0 && is_tiled(body);
        if self.model.registers == 0 || tiled || !body.iter().any(|ins| is_inner(ins, self.regs)) {
            return None;
        }
        let l = Loop { i: *i, from: *from, to: *to, body, order };
        let trips = self.costs().trips(*from, *to);
        let given = self.regs.len();
        let mut least = trips * (self.costs().block(body, self.active) + 1.0);
        let mut best = None;
        let all = l.count().filter(|n| (2..=WHOLE).contains(n));
        for copies in all.into_iter().chain(COPIES.into_iter().filter(|n| Some(*n) != all)) {
            let n = copies as f64;
            if trips < n || size(body) * copies > LARGE {
                continue;
            }
            if let Some((_, together)) = self.together(&l, copies) {
                let (groups, left) = ((trips / n).floor(), trips % n);
                let main = self.costs().block(&together, self.active) + 1.0;
                let rest = self.costs().block(body, self.active) + 1.0;
                let cost = groups * main + left * rest + 8.0;
                // Outside of lanes two share the start of loops of lanes.
                let starts = self.active == 1.0 && copies == 2;
                let shares = starts || loads(&together) < copies * loads(body);
                if cost < GAIN * least
                    && (shares || self.sums(body))
                    && fits(&together, self.regs, self.model, self.lanes)
                {
                    (least, best) = (cost, Some(copies));
                }
            }
            self.regs.truncate(given);
        }
        let copies = best?;
        let (group, together) = self.together(&l, copies)?;
        Some(if all == Some(copies) {
            let first = Ins::Set { to: group, value: Operand::i64(0) };
            ([first].into_iter().chain(together).collect(), true)
        } else {
            (self.loops(&l, copies, (group, together)), false)
        })
    }
    /// Whether a loop inside hands something in lanes from one iteration to the next: sums that wait for each other.
    fn sums(&self, block: &Block) -> bool {
        block.iter().any(|ins| {
            let inner = ins.blocks();
            let waits = |b: &Block| {
                let sets = Uses::of(b);
                read_first(b, self.regs).iter().any(|r| sets.sets(*r) > 0)
            };
            is_inner(ins, self.regs) && inner.iter().any(|b| waits(b)) || inner.iter().any(|b| self.sums(b))
        })
    }
    fn int(&mut self, out: &mut Block, op: Op, args: [Operand; 2]) -> Operand {
        let to = self.regs.push(RegInfo::new(Ty::I64, "t"));
        out.push(Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: args.to_vec() });
        to.into()
    }
    /// The loop over groups of iterations, whose body it is given, and the loop over those that are left.
    fn loops(&mut self, l: &Loop<'_>, copies: usize, (group, together): (Reg, Block)) -> Block {
        let mut out = Vec::new();
        let copies = Operand::i64(copies as i64);
        let n = self.int(&mut out, Op::Sub, [l.to, l.from]);
        let n = self.int(&mut out, Op::Max, [n, Operand::i64(0)]);
        let groups = self.int(&mut out, Op::Quot, [n, copies]);
        let done = self.int(&mut out, Op::Mul, [groups, copies]);
        let done = self.int(&mut out, Op::Add, [l.from, done]);
        let costs = self.costs();
        if let (Some(from), Some(to), Some(copies)) = (costs.size(l.from), costs.size(l.to), copies.as_i64())
        {
            let count = to.saturating_sub(from).max(0) / copies;
            self.sizes.extend(groups.as_reg().map(|r| (r, count)));
            self.sizes.extend(done.as_reg().map(|r| (r, from.saturating_add(count * copies))));
        }
        // The states of folds go on in the second loop: no longer their neutral elements.
        let order = match l.order {
            Order::Any(folds) if folds.is_empty() => Order::Any(Vec::new()),
            Order::Any(_) | Order::Given => Order::Given,
        };
        let from = Operand::i64(0);
        out.push(Ins::For { i: group, from, to: groups, body: together, order: order.clone() });
        out.push(Ins::For { i: l.i, from: done, to: l.to, body: l.body.clone(), order });
        out
    }
    /// So many iterations together: the number of the group, and the body. `None`: they cannot be, or no loop is shared.
    fn together(&mut self, l: &Loop<'_>, copies: usize) -> Option<(Reg, Block)> {
        if *l.order == Order::Given && l.body.iter().any(writes) {
            return None;
        }
        let inside = Uses::of(l.body);
        let carried = inside.set().into_iter().filter(|r| !self.is_private(*r, l, &inside)).collect();
        let mut out = Vec::new();
        let group = self.regs.push(RegInfo::new(Ty::I64, "group"));
        let first = self.int(&mut out, Op::Mul, [group.into(), Operand::i64(copies as i64)]);
        let first = self.int(&mut out, Op::Add, [l.from, first]);
        let mut names = vec![IdMap::new(); copies];
        for (k, names) in names.iter_mut().enumerate() {
            let i = match k {
                0 => first,
                _ => self.int(&mut out, Op::Add, [first, Operand::i64(k as i64)]),
            };
            names.insert(l.i, i.as_reg()?);
        }
        let regs = &mut *self.regs;
        let mut c = Copies { regs, counter: l.i, inside, carried, shared: IdSet::new(), names, jammed: 0 };
        let body = c.block(l.body)?;
        (c.jammed > 0).then_some(())?;
        // Lanes that are not active keep what they held before: something.
        let mut fresh = Vec::new();
        for names in &c.names[1..] {
            for (r, name) in names {
                if let Ty::Lanes(s, _) = c.regs[*name].ty
                    && c.inside.sets(*r) > 1
                {
                    fresh.push(Ins::Set { to: *name, value: Operand::Const(s.zero()) });
                }
            }
        }
        fresh.sort_by(|a, b| a.sets().cmp(b.sets()));
        out.extend(fresh);
        out.extend(body);
        Some((group, out))
    }
    /// Whether a register that the body sets means nothing to another iteration, or after the loop.
    fn is_private(&self, r: Reg, l: &Loop<'_>, inside: &Uses) -> bool {
        let read_outside = self.uses.reads(r) > inside.reads(r);
        !read_outside && (self.uses.sets(r) == 1 || sets_first(l.body, r) == Some(true))
    }
}

/// Whether it is a loop that works on lanes.
fn is_inner(ins: &Ins, regs: &IndexVec<Reg, RegInfo>) -> bool {
    fn on_lanes(block: &Block, regs: &IndexVec<Reg, RegInfo>) -> bool {
        block.iter().any(|ins| {
            ins.sets().iter().any(|r| regs[*r].ty.is_lanes())
                || ins.blocks().into_iter().any(|b| on_lanes(b, regs))
        })
    }
    match ins {
        Ins::Lanes { .. } => true,
        Ins::For { body, .. } => on_lanes(body, regs),
        _ => false,
    }
}

/// Whether there are lanes in memory outside of loops of lanes: tiles of a contraction, which fill the registers.
fn is_tiled(block: &Block) -> bool {
    block.iter().any(|ins| match ins {
        Ins::LoadLanes { .. } => true,
        Ins::Lanes { .. } => false,
        _ => ins.blocks().into_iter().any(is_tiled),
    })
}

/// How many loads are inside.
fn loads(block: &Block) -> usize {
    let mut count = 0;
    walk(block, &mut |ins| count += usize::from(matches!(ins, Ins::Load { .. } | Ins::LoadLanes { .. })));
    count
}

/// Whether what the innermost loops of a block keep, with what is read more than once, fits into the vector registers, each of
/// so many lanes.
pub fn fits(block: &Block, regs: &IndexVec<Reg, RegInfo>, model: Model, lanes: usize) -> bool {
    block.iter().all(|ins| {
        let inner = ins.blocks();
        let is_innermost = inner.iter().all(|b| b.iter().all(|x| x.blocks().is_empty()));
        if !(is_innermost && is_inner(ins, regs)) {
            return inner.into_iter().all(|b| fits(b, regs, model, lanes));
        }
        let registers = |of: fn(&Block, &IndexVec<Reg, RegInfo>) -> usize| {
            let all: usize = ins.blocks().into_iter().map(|b| of(b, regs)).sum();
            all.div_ceil(lanes.max(1))
        };
        // Beside what is shared, a number that all lanes have.
        registers(kept) + SPARE.max(registers(shared) + 1) <= model.registers
    })
}

/// The lanes of registers that a block without loops reads before it sets them: sums, and what does not vary.
fn kept(block: &Block, regs: &IndexVec<Reg, RegInfo>) -> usize {
    read_first(block, regs).into_iter().filter_map(|r| regs[r].ty.lanes()).sum()
}

/// The lanes of registers that a block without loops sets for more than one instruction: at most so many wait for the next one.
pub fn shared(block: &Block, regs: &IndexVec<Reg, RegInfo>) -> usize {
    let (mut left, mut set): (IdMap<Reg, usize>, IdSet<Reg>) = (IdMap::new(), IdSet::new());
    for ins in block {
        lanes_read(ins, regs).intersection(&set).for_each(|r| *left.entry(*r).or_insert(0) += 1);
        set.extend(ins.sets());
    }
    let kept = read_first(block, regs);
    left.retain(|r, readers| *readers > 1 && !kept.contains(r));
    let (mut here, mut most) = (0, 0);
    let lanes = |r: &Reg| regs[*r].ty.lanes().unwrap_or(0);
    for ins in block {
        for r in lanes_read(ins, regs) {
            if let Some(readers) = left.get_mut(&r) {
                *readers -= 1;
                if *readers == 0 {
                    left.remove(&r);
                    here -= lanes(&r);
                }
            }
        }
        here += ins.sets().iter().filter(|r| left.contains_key(*r)).map(lanes).sum::<usize>();
        most = most.max(here);
    }
    most
}

/// The registers of lanes that an instruction reads.
fn lanes_read(ins: &Ins, regs: &IndexVec<Reg, RegInfo>) -> IdSet<Reg> {
    let mut out = IdSet::new();
    ins.reads(&mut |a| out.extend(a.as_reg().filter(|r| regs[*r].ty.is_lanes())));
    out
}

/// The registers of lanes that a block itself reads before it sets them.
fn read_first(block: &Block, regs: &IndexVec<Reg, RegInfo>) -> IdSet<Reg> {
    let (mut set, mut out): (IdSet<Reg>, IdSet<Reg>) = (IdSet::new(), IdSet::new());
    for ins in block {
        out.extend(lanes_read(ins, regs).difference(&set));
        set.extend(ins.sets());
    }
    out
}

/// Copies of a body, one for each iteration of a group.
struct Copies<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    /// The counter of the loop.
    counter: Reg,
    /// Uses in the body.
    inside: Uses,
    /// Registers by which an iteration gives something to the next, or to what follows.
    carried: IdSet<Reg>,
    /// Registers of the body that hold the same in all copies: there is one.
    shared: IdSet<Reg>,
    /// The registers of each copy.
    names: Vec<IdMap<Reg, Reg>>,
    /// Loops that the copies share.
    jammed: usize,
}

impl Copies<'_> {
    /// A block that the copies run together. `None`: it takes memory, or hands something on, in a way that is not understood.
    fn block(&mut self, block: &[Ins]) -> Option<Block> {
        if let [first @ Ins::Mark { to }, inner @ .., last @ Ins::Release { mark }] = block
            && *mark == Operand::Reg(*to)
        {
            self.shared.insert(*to);
            let inner = self.block(inner)?;
            return Some([first.clone()].into_iter().chain(inner).chain([last.clone()]).collect());
        }
        if block.iter().any(|ins| matches!(ins, Ins::Mark { .. } | Ins::Release { .. })) {
            return None;
        }
        let (mut out, mut start, mut touched) = (Vec::new(), 0, IdSet::new());
        for (k, ins) in block.iter().enumerate() {
            if self.is_jammed(ins) {
                self.one_by_one(&block[start..k], &mut touched, &mut out)?;
                let loop_ = self.jammed(ins)?;
                out.push(loop_);
                start = k + 1;
            } else if self.can_be_shared(ins) {
                self.shared.extend(ins.sets());
            }
        }
        self.one_by_one(&block[start..], &mut touched, &mut out)?;
        Some(out)
    }
    fn is_same(&self, a: Operand) -> bool {
        match a {
            Operand::Reg(r) => r != self.counter && (self.inside.sets(r) == 0 || self.shared.contains(&r)),
            Operand::Const(_) | Operand::Null => true,
        }
    }
    fn reads_same(&self, ins: &Ins) -> bool {
        let mut same = true;
        ins.reads(&mut |a| same &= self.is_same(a));
        same
    }
    /// Whether it does the same in all copies, and once is enough. Loads too: what is at one place for all iterations is written
    /// by none, or there is one.
    fn can_be_shared(&self, ins: &Ins) -> bool {
        let single = |r: &Reg| self.inside.sets(*r) == 1 && !self.carried.contains(r);
        ins.only_sets() && ins.sets().iter().all(single) && self.reads_same(ins)
    }
    /// Whether it is a loop that all copies run together.
    fn is_jammed(&self, ins: &Ins) -> bool {
        let (Ins::For { from, to, .. } | Ins::Lanes { from, to, .. }) = ins else { return false };
        let uses = Uses::of(std::slice::from_ref(ins));
        let carried = self.carried.iter().any(|r| uses.mentions(*r));
        self.is_same(*from) && self.is_same(*to) && !carried && is_inner(ins, self.regs)
    }
    fn jammed(&mut self, ins: &Ins) -> Option<Ins> {
        self.jammed += 1;
        Some(match ins {
            Ins::For { i, from, to, body, order } => {
                self.shared.insert(*i);
                let body = self.block(body)?;
                let order = match order {
                    Order::Given => Order::Given,
                    Order::Any(folds) => {
                        let copies = 0..self.names.len();
                        Order::Any(copies.flat_map(|k| self.folds(folds, k)).collect())
                    }
                };
                Ins::For { i: *i, from: *from, to: *to, body, order }
            }
            Ins::Lanes { i, from, to, lanes, body } => {
                self.shared.insert(*i);
                Ins::Lanes { i: *i, from: *from, to: *to, lanes: *lanes, body: self.block(body)? }
            }
            _ => return None,
        })
    }
    /// All of the instructions for the first copy, then for the second, and so on. `touched`: what was carried before.
    fn one_by_one(&mut self, run: &[Ins], touched: &mut IdSet<Reg>, out: &mut Block) -> Option<()> {
        let uses = Uses::of(run);
        let here: Vec<Reg> = self.carried.iter().copied().filter(|r| uses.mentions(*r)).collect();
        here.into_iter().all(|r| touched.insert(r)).then_some(())?;
        let last = self.names.len() - 1;
        for k in 0..=last {
            for ins in run {
                let sets = ins.sets();
                let shared = !sets.is_empty() && sets.iter().all(|r| self.shared.contains(r));
                if shared {
                    out.extend((k == 0).then(|| ins.clone()));
                } else if self.is_one_place(ins) {
                    if k == last {
                        self.added(ins, out);
                    }
                } else {
                    let mut ins = ins.clone();
                    self.rename(&mut ins, k);
                    out.push(ins);
                }
            }
        }
        Some(())
    }
    /// Whether all copies add to one place, and halves of them can be added first.
    fn is_one_place(&self, ins: &Ins) -> bool {
        if !self.names.len().is_power_of_two() {
            return false;
        }
        match ins {
            Ins::Accumulate { pointer, index, .. } => self.is_same(*pointer) && self.is_same(*index),
            Ins::AccumulateLanes { pointer, index, stride, mask, .. } => {
                [*pointer, *index, *stride].into_iter().chain(*mask).all(|a| self.is_same(a))
            }
            _ => false,
        }
    }
    /// Adds what the copies add, halves with each other, as their number is a power of two.
    fn added(&mut self, ins: &Ins, out: &mut Block) {
        let mut ins = ins.clone();
        let (Ins::Accumulate { value, ty, .. } | Ins::AccumulateLanes { value, ty, .. }) = &mut ins else {
            return;
        };
        let (Some(s), before) = (ty.scalar(), *value) else { return };
        let mut values: Vec<Operand> = (0..self.names.len()).map(|k| self.operand(before, k)).collect();
        while values.len() > 1 {
            let half = values.len() / 2;
            for k in 0..half {
                let args = vec![values[k], values[k + half]];
                let lanes = args.iter().find_map(|a| self.regs[a.as_reg()?].ty.lanes());
                let ty = lanes.map_or(Ty::Scalar(s), |lanes| Ty::Lanes(s, lanes));
                let to = self.regs.push(RegInfo::new(ty, "sum"));
                out.push(Ins::Prim { to, prim: Prim::Op(Op::Add, s), args });
                values[k] = to.into();
            }
            values.truncate(half);
        }
        *value = values[0];
        out.push(ins);
    }

    // --- names ---

    fn name(&mut self, r: Reg, k: usize) -> Reg {
        if self.is_same(r.into()) || self.carried.contains(&r) {
            return r;
        }
        if let Some(name) = self.names[k].get(&r) {
            return *name;
        }
        let name = if k == 0 { r } else { self.regs.push(self.regs[r].clone()) };
        self.names[k].insert(r, name);
        name
    }
    fn operand(&mut self, a: Operand, k: usize) -> Operand {
        a.as_reg().map_or(a, |r| self.name(r, k).into())
    }
    fn rename(&mut self, ins: &mut Ins, k: usize) {
        if let Ins::For { order: Order::Any(folds), .. } = ins {
            *folds = self.folds(folds, k);
        }
        // The operations of folds have their names already.
        let order = match ins {
            Ins::For { order, .. } => std::mem::take(order),
            _ => Order::Given,
        };
        ins.reads_mut(&mut |a| *a = self.operand(*a, k));
        ins.sets_mut().iter_mut().for_each(|r| *r = self.name(*r, k));
        if let Ins::For { order: place, .. } = ins {
            *place = order;
        }
        for block in ins.blocks_mut() {
            block.iter_mut().for_each(|ins| self.rename(ins, k));
        }
    }
    fn folds(&mut self, folds: &[Fold], k: usize) -> Vec<Fold> {
        let mut out = folds.to_vec();
        for fold in &mut out {
            for r in fold.state.iter_mut().chain(&mut fold.left).chain(&mut fold.right) {
                *r = self.name(*r, k);
            }
            for a in fold.neutral.iter_mut().chain(&mut fold.out) {
                *a = self.operand(*a, k);
            }
            fold.combine.iter_mut().for_each(|ins| self.rename(ins, k));
        }
        out
    }
}
