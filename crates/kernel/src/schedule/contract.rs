//! Contractions: nests of loops that take sums of products, recognised by the loops that the parts of a product depend on.
//!
//! A nest of loops in any order ends in a sum of products `a * b`, or in additions of them to memory. Each loop is one of
//!
//! - *contracted*: the place of the result does not depend on it;
//! - a *row*: of the factors only one depends on it, or a *column*: only the other one does;
//! - of the *batch*: both factors depend on it, or none.
//!
//! How a factor is computed from the counters does not matter: it is an element of memory at any place, or a function of such. It is
//! computed once for each element and laid out for the tiles (`tile`), and what is done with each sum is done at the
//! end. So transposed factors, loops in any order, several contracted loops, and functions before and after need no rules of their own.
//!
//! Not taken: a product whose factors both depend on a row and a column, three factors of which no product of two splits the
//! loops, bounds that depend on a row or column (triangles: these nests are left to lanes and jam), and whatever
//! stands in a loop besides. A loop that does more than a contraction is split before and after it (`split`).
//!
//! Assumes loops in any order of a function without lanes. Guarantees the same values, but for the order of the sums; a
//! different one of several errors may stop the program. A nest is rewritten where its sizes are expected to be large; the
//! nest as it was runs for the sizes that turn out to be small.

use super::cost::Costs;
use super::distribution;
use super::lanes;
use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::skewed_tiling::is_nest;
use super::tile;
use super::work::Work;
use crate::ir::{Block, Fold, Ins, Operand, Order, Reg, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

/// Puts sums of products in tiles for registers and caches.
pub(super) const STEP: Step = Step {
    name: "tiling",
    optional: true,
    parts: &[],
    does: "puts sums of products in tiles for registers and caches",
    assumes: "loops in any order, none in lanes",
    guarantees: "the same values, but for the order of sums",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    w.each_version(|w| {
        let body = w.take_body();
        let mut s = w.scheduler(&body);
        w.f.body = s.contract(body);
        w.done(s);
    });
    true
}

/// A loop of a nest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) i: Reg,
    pub(super) from: Operand,
    pub(super) to: Operand,
}

/// Loops of a nest, one bit for each.
pub(super) type Set = u64;

/// What is done with a sum.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// These instructions read the register.
    Then(Reg, Block),
    /// It is added here.
    Add { pointer: Operand, index: Operand },
}

/// A perfect nest.
#[derive(Debug)]
pub(super) struct Nest {
    /// From the outermost one.
    pub(super) loops: Vec<Level>,
    /// What is computed in the loops before the product, in order.
    pub(super) made: Block,
    pub(super) factors: [Operand; 2],
    pub(super) ty: Ty,
    pub(super) end: End,
    /// The contracted loops.
    pub(super) contracted: Set,
    /// The loops that a register depends on; none: not in the map.
    depends: IdMap<Reg, Set>,
}

/// What the loops of a nest are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Roles {
    /// The loop over rows, and which factor depends on it.
    pub(super) row: (usize, usize),
    /// The loop over columns: their results should lie side by side.
    pub(super) column: usize,
    pub(super) contracted: Vec<usize>,
    /// All others.
    pub(super) batch: Vec<usize>,
}

/// The set with one loop.
pub(super) fn one(l: usize) -> Set {
    1 << l
}

impl Nest {
    pub(super) fn depends(&self, a: Operand) -> Set {
        a.as_reg().and_then(|r| self.depends.get(&r).copied()).unwrap_or(0)
    }
    /// The loops that an instruction depends on.
    pub(super) fn depends_ins(&self, ins: &Ins) -> Set {
        let mut out = 0;
        ins.reads(&mut |a| out |= self.depends(a));
        out
    }
    fn bounds(&self, l: usize) -> Set {
        self.depends(self.loops[l].from) | self.depends(self.loops[l].to)
    }
    /// By how much a place moves from one iteration of a loop to the next. `None`: not by something that is the same in all.
    fn step(&self, a: Operand, l: usize) -> Option<Operand> {
        if a == self.loops[l].i.into() {
            return Some(Operand::i64(1));
        }
        if self.depends(a) & one(l) == 0 {
            return Some(Operand::i64(0));
        }
        let made = self.made.iter().find(|ins| ins.sets().iter().any(|r| a == (*r).into()))?;
        let is_zero = |x: Operand| x.as_i64() == Some(0);
        match made {
            Ins::Prim { prim: Prim::Op(Op::Add, Scalar::I64), args, .. } => {
                let (x, y) = (self.step(args[0], l)?, self.step(args[1], l)?);
                if is_zero(x) { Some(y) } else { is_zero(y).then_some(x) }
            }
            Ins::Offset { pointer, index, .. } => {
                let (x, y) = (self.step(*pointer, l)?, self.step(*index, l)?);
                if is_zero(x) { Some(y) } else { is_zero(y).then_some(x) }
            }
            Ins::Prim { prim: Prim::Op(Op::Mul, Scalar::I64), args, .. } => {
                let by = |i: Operand, n: Operand| {
                    let alone = self.step(i, l)?.as_i64() == Some(1) && self.depends(n) == 0;
                    alone.then_some(n)
                };
                by(args[0], args[1]).or_else(|| by(args[1], args[0]))
            }
            _ => None,
        }
    }
    /// The place where a result goes: pointer and index.
    fn place(&self) -> Option<(Operand, Operand)> {
        match &self.end {
            End::Add { pointer, index } => Some((*pointer, *index)),
            End::Then(_, then) => then.iter().find_map(|ins| match ins {
                Ins::Store { pointer, index, .. } | Ins::Accumulate { pointer, index, .. } => {
                    Some((*pointer, *index))
                }
                _ => None,
            }),
        }
    }
    fn step_of_place(&self, l: usize) -> Option<Operand> {
        let (pointer, index) = self.place()?;
        let (x, y) = (self.step(pointer, l)?, self.step(index, l)?);
        if x.as_i64() == Some(0) { Some(y) } else { (y.as_i64() == Some(0)).then_some(x) }
    }
    /// Whether no two iterations of the loops over rows and columns have one place: rows lie `n` apart, columns are the first `n`.
    pub(super) fn is_apart(&self, roles: &Roles) -> bool {
        let (row, column) = (roles.row.0, self.loops[roles.column]);
        self.step_of_place(roles.column).and_then(Operand::as_i64) == Some(1)
            && self.step_of_place(row) == Some(column.to)
            && column.from.as_i64() == Some(0)
    }
    /// What the loops are; `None`: it is no contraction, or not one of a box. `trips`: how often a loop is expected to run.
    fn roles(&self, trips: &dyn Fn(usize) -> f64) -> Option<Roles> {
        let all = 0..self.loops.len();
        let factors = self.factors.map(|a| self.depends(a));
        let is_contracted = |l: &usize| self.contracted & one(*l) != 0;
        let of = |k: usize| {
            let only = factors[k] & !factors[1 - k];
            all.clone().filter(move |l| only & one(*l) != 0 && self.contracted & one(*l) == 0)
        };
        let contracted: Vec<usize> = all.clone().filter(is_contracted).collect();
        let summed = factors[0] & factors[1] & self.contracted;
        if summed == 0 || all.clone().any(|l| self.bounds(l) != 0) {
            return None;
        }
        let mut best: Option<(bool, f64, Roles)> = None;
        for k in [0, 1] {
            for row in of(k) {
                for column in of(1 - k) {
                    let near = self.step_of_place(column).and_then(Operand::as_i64) == Some(1);
                    let size = trips(row) * trips(column);
                    let better = |(n, s, _): &(bool, f64, Roles)| size > *s || (size == *s && near && !n);
                    if best.as_ref().is_none_or(better) {
                        let outside = |l: &usize| !is_contracted(l) && *l != row && *l != column;
                        let batch = all.clone().filter(outside).collect();
                        let contracted = contracted.clone();
                        best = Some((near, size, Roles { row: (row, k), column, contracted, batch }));
                    }
                }
            }
        }
        best.map(|(_, _, roles)| roles)
    }
}

impl Scheduler<'_> {
    /// The block with contractions in tiles.
    pub(super) fn contract(&mut self, block: Block) -> Block {
        let has_tiles = self.options.model.tiles.iter().all(|least| least.is_finite());
        if !has_tiles {
            return block;
        }
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            if let Some(code) = self.contraction(&ins).or_else(|| self.apart(&ins)) {
                out.extend(code);
                continue;
            }
            for inner in ins.blocks_mut() {
                *inner = self.contract(std::mem::take(inner));
            }
            out.push(ins);
        }
        out
    }
    /// A nest in tiles, if that is worth it.
    fn contraction(&mut self, ins: &Ins) -> Option<Block> {
        let (nest, roles) = self.recognised(ins)?;
        // A batch outside of the rest stays where it is.
        if roles.batch.first() == Some(&0) {
            return None;
        }
        let tiles = tile::Tiles::of(self.options.model, self.options.lanes, nest.ty)?;
        let tiled = tile::tiled(&nest, &roles, tiles, &mut self.regs);
        self.catch_up();
        let (mut before, condition, then) = tiled?;
        before.push(Ins::If { condition, then, otherwise: vec![ins.clone()] });
        Some(before)
    }
    fn recognised(&self, ins: &Ins) -> Option<(Nest, Roles)> {
        let nest = nest(ins, &self.defined, &|r| self.roots.get(r).copied().flatten())?;
        let costs = Costs { model: self.options.model, regs: &self.regs, sizes: &self.sizes };
        let trips = |l: usize| costs.trips(nest.loops[l].from, nest.loops[l].to);
        let roles = nest.roles(&trips)?;
        let sum: f64 = roles.contracted.iter().map(|l| trips(*l)).product();
        let sizes = [trips(roles.row.0), trips(roles.column), sum];
        let all = [sizes[0], sizes[1], sizes[2], sizes.iter().product()];
        all.iter().zip(self.options.model.tiles).all(|(n, least)| *n >= least).then_some((nest, roles))
    }
    /// A loop with a contraction among other things, as a loop for it and loops for what is before and after.
    fn apart(&mut self, ins: &Ins) -> Option<Block> {
        let Ins::For { body, order: Order::Any(_), .. } = ins else { return None };
        let holds_loops = |ins: &Ins| matches!(ins, Ins::For { body, .. } if is_nest(body));
        let places: Vec<usize> = (0..body.len()).filter(|k| holds_loops(&body[*k])).collect();
        if body.len() < 2 {
            return None;
        }
        for k in places {
            let given = self.regs.len();
            if let Some((mut before, parts)) = self.three(ins, k) {
                let middle = parts.iter().position(|p| self.recognised(p).is_some());
                if let Some(middle) = middle {
                    for (n, part) in parts.into_iter().enumerate() {
                        let code = if n == middle { self.contraction(&part) } else { None };
                        before.extend(code.unwrap_or_else(|| self.contract(vec![part])));
                    }
                    return Some(before);
                }
            }
            self.forget(given);
        }
        None
    }
    /// A loop as loops of what comes before instruction `k` of its body, that one, and what comes after.
    fn three(&mut self, ins: &Ins, k: usize) -> Option<(Block, Vec<Ins>)> {
        let Ins::For { body, .. } = ins else { return None };
        let first = (0..k).rev().find(|p| !is_plain(&body[*p], &self.defined)).map(|p| p + 1);
        let (mut before, mut parts, mut rest) = (Vec::new(), Vec::new(), ins.clone());
        if let Some(at) = first {
            let (b, head, tail) = self.in_two(&rest, at)?;
            before.extend(b);
            parts.push(head);
            rest = tail;
        }
        let Ins::For { body: left, .. } = &rest else { return None };
        let after = body.len() - k - 1;
        if after > 0 {
            let at = left.len() - after;
            let (b, head, tail) = self.in_two(&rest, at)?;
            before.extend(b);
            parts.extend([head, tail]);
        } else {
            parts.push(rest);
        }
        (parts.len() > 1).then_some((before, parts))
    }
    fn in_two(&mut self, ins: &Ins, at: usize) -> Option<(Block, Ins, Ins)> {
        let Ins::For { i, from, to, body, order: Order::Any(folds) } = ins else { return None };
        let l = lanes::Loop { i: *i, from: *from, to: *to, body, folds };
        let (given, roots) = (self.regs.len(), &self.roots);
        let root = |r: Reg| roots.get(r).copied().flatten();
        let (before, first, second) = distribution::in_two(&l, &mut self.regs, &root, at)?;
        let added: Vec<_> = self.regs.iter().skip(given).cloned().collect();
        self.regs.truncate(given);
        let all: Block = before.iter().chain([&first, &second]).cloned().collect();
        self.learn(&all, &added);
        Some((before, first, second))
    }
    /// Drops registers from this one on.
    fn forget(&mut self, given: usize) {
        self.regs.truncate(given);
        self.defined.truncate(given);
        self.roots.truncate(given);
    }
}

/// Whether it only computes something, or stops the program.
fn is_plain(ins: &Ins, defined: &IndexVec<Reg, usize>) -> bool {
    let pure = matches!(ins, Ins::Set { .. } | Ins::Prim { .. } | Ins::Offset { .. } | Ins::Load { .. });
    let once = ins.sets().iter().all(|r| defined.get(*r).is_none_or(|n| *n == 1));
    matches!(ins, Ins::Fail { .. }) || (pure && once)
}

/// Reads a loop as a nest that ends in a sum of products.
fn nest(ins: &Ins, defined: &IndexVec<Reg, usize>, root: &dyn Fn(Reg) -> Option<Reg>) -> Option<Nest> {
    let (mut loops, mut made) = (Vec::new(), Vec::new());
    let mut at = ins;
    let (value, end, outside) = loop {
        let Ins::For { i, from, to, body, order: Order::Any(folds) } = at else { return None };
        folds.is_empty().then_some(())?;
        loops.push(Level { i: *i, from: *from, to: *to });
        let is_inner = |ins: &Ins| matches!(ins, Ins::For { .. } | Ins::Accumulate { .. });
        let k = body.iter().position(is_inner)?;
        let (head, inner, tail) = (&body[..k], &body[k], &body[k + 1..]);
        match inner {
            Ins::Accumulate { pointer, index, value, .. } => {
                plain(head, &[], defined, &mut made)?;
                tail.is_empty().then_some(())?;
                break (*value, End::Add { pointer: *pointer, index: *index }, None);
            }
            Ins::For { order: Order::Any(folds), .. } if folds.is_empty() && tail.is_empty() => {
                plain(head, &[], defined, &mut made)?;
                at = inner;
            }
            _ => {
                let outside = loops.len();
                let (value, state) = sum(head, inner, defined, (&mut loops, &mut made))?;
                break (value, End::Then(state, tail.to_vec()), Some(outside));
            }
        }
    };
    (loops.len() < 60).then_some(())?;
    let mut depends: IdMap<Reg, Set> = loops.iter().enumerate().map(|(l, x)| (x.i, one(l))).collect();
    for ins in &made {
        let mut here = 0;
        ins.reads(&mut |a| here |= a.as_reg().and_then(|r| depends.get(&r).copied()).unwrap_or(0));
        depends.extend(ins.sets().iter().copied().map(|r| (r, here)));
    }
    let product = made.iter().find(|ins| ins.sets().iter().any(|r| value == (*r).into()))?;
    let Ins::Prim { prim: Prim::Op(Op::Mul, s), args, .. } = product else { return None };
    s.is_float().then_some(())?;
    let (factors, ty) = ([args[0], args[1]], Ty::Scalar(*s));
    let mut nest = Nest { loops, made, factors, ty, end, contracted: 0, depends };
    let all = one(nest.loops.len()) - 1;
    nest.contracted = match (outside, &nest.end) {
        (Some(outside), _) => all & !(one(outside) - 1),
        (None, End::Add { pointer, index }) => all & !(nest.depends(*pointer) | nest.depends(*index)),
        (None, End::Then(..)) => return None,
    };
    nest.is_sound(defined, root).then_some(nest)
}

/// Takes over what is computed before an inner loop, but for the starts of sums; `None`: something else is done there.
fn plain(head: &[Ins], starts: &[Reg], defined: &IndexVec<Reg, usize>, made: &mut Block) -> Option<()> {
    for ins in head {
        match ins {
            Ins::Set { to, .. } if starts.contains(to) => {}
            _ => {
                is_plain(ins, defined).then_some(())?;
                made.push(ins.clone());
            }
        }
    }
    Some(())
}

/// Reads a loop that takes a sum, or sums of sums: the value that is summed, and the register with the sum.
fn sum(
    head: &[Ins],
    inner: &Ins,
    defined: &IndexVec<Reg, usize>,
    (loops, made): (&mut Vec<Level>, &mut Block),
) -> Option<(Operand, Reg)> {
    let Ins::For { i, from, to, body, order: Order::Any(folds) } = inner else { return None };
    let [Fold { state, .. }] = &folds[..] else { return None };
    let &[state] = &state[..] else { return None };
    let starts = |ins: &&Ins| matches!(ins, Ins::Set { to, .. } if *to == state);
    let [Ins::Set { value: Operand::Const(zero), .. }] = head.iter().filter(starts).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    (zero.as_f64() == 0.0).then_some(())?;
    plain(head, &[state], defined, made)?;
    loops.push(Level { i: *i, from: *from, to: *to });
    let (value, body) = distribution::summed(body, folds, state)?;
    match body.iter().position(|ins| matches!(ins, Ins::For { .. })) {
        None => plain(&body, &[], defined, made)?,
        Some(k) => {
            (k + 1 == body.len()).then_some(())?;
            let (inside, inner) = sum(&body[..k], &body[k], defined, (loops, made))?;
            return (value == inner.into()).then_some((inside, state));
        }
    }
    Some((value, state))
}

impl Nest {
    /// Whether factors can be computed before everything else: nothing is written that they read, all that is computed is computed once,
    /// and each check of the program belongs to a factor or to a result.
    fn is_sound(&self, defined: &IndexVec<Reg, usize>, root: &dyn Fn(Reg) -> Option<Reg>) -> bool {
        let root_of = |a: Operand| a.as_reg().and_then(root);
        let written: Option<IdSet<Reg>> = match &self.end {
            End::Add { pointer, .. } => root_of(*pointer).map(|r| [r].into_iter().collect()),
            End::Then(_, then) => {
                let pointers = then.iter().filter_map(|ins| match ins {
                    Ins::Store { pointer, .. } | Ins::Accumulate { pointer, .. } => Some(root_of(*pointer)),
                    _ => None,
                });
                pointers.collect()
            }
        };
        let Some(written) = written else { return false };
        let kept = |ins: &Ins| match ins {
            Ins::Load { pointer, .. } => root_of(*pointer).is_some_and(|r| !written.contains(&r)),
            _ => true,
        };
        let state = if let End::Then(state, _) = &self.end { Some(*state) } else { None };
        let own = |ins: &Ins| {
            let mut own = true;
            ins.reads(&mut |a| own &= a.as_reg().is_none_or(|r| state != Some(r)));
            own
        };
        let then_is_plain = match &self.end {
            End::Add { .. } => true,
            End::Then(_, then) => then.iter().all(|ins| {
                is_plain(ins, defined) || matches!(ins, Ins::Store { .. } | Ins::Accumulate { .. })
            }),
        };
        let [a, b] = self.factors.map(|x| self.depends(x) | self.contracted);
        let results = !self.contracted;
        let checks = self.made.iter().filter(|ins| matches!(ins, Ins::Fail { .. }));
        let mut covered = checks.map(|ins| self.depends_ins(ins));
        let everywhere = |d: Set| [a, b, results].iter().any(|of| d & !of == 0);
        then_is_plain && self.made.iter().all(|ins| kept(ins) && own(ins)) && covered.all(everywhere)
    }
    /// The registers that are needed for some values.
    pub(super) fn needed(&self, values: &[Operand]) -> IdSet<Reg> {
        let mut out: IdSet<Reg> = values.iter().filter_map(|a| a.as_reg()).collect();
        for ins in self.made.iter().rev() {
            if ins.sets().iter().any(|r| out.contains(r)) {
                ins.reads(&mut |a| out.extend(a.as_reg()));
            }
        }
        out
    }
    /// What is read after a sum.
    pub(super) fn used_after(&self) -> Vec<Operand> {
        let mut out = Vec::new();
        match &self.end {
            End::Add { pointer, index } => out.extend([*pointer, *index]),
            End::Then(_, then) => then.iter().for_each(|ins| ins.reads(&mut |a| out.push(a))),
        }
        out
    }
}
