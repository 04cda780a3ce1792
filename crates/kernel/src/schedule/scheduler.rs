//! Which loops of a nest run in lanes: of all loops in any order, those whose iterations side by side are expected to cost least.
//!
//! A [`Scheduler`] holds what is known of a function while passes look at the cost of code that they might make: how often registers are set, where
//! pointers point into, what sizes are expected.
//!
//! Guarantees: the same values, but for the order in which folds take their elements together.

use super::cost::{self, Costs};
use super::registers::{find_roots, registers};
use super::{Options, added, jam, lanes, ranges, share, uses, width};
use crate::ir::{Block, Function, Ins, Operand, Order, Reg, RegInfo, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::Prim;

/// Copies of fewer elements are loops of lanes where they are made again and again, not calls.
const SHORT: i64 = 128;

/// What registers of a function are expected to hold.
pub(super) struct Expected<'a> {
    /// Its parameters, if that is known.
    pub(super) args: &'a [Option<i64>],
    pub(super) counters: Vec<(Reg, i64)>,
    /// Counters of loops over parts, which are for threads only.
    pub(super) parts: IdSet<Reg>,
}

impl<'a> Expected<'a> {
    /// Parameters that are expected to be this.
    pub(super) fn of(args: &'a [Option<i64>]) -> Expected<'a> {
        Expected { args, counters: Vec::new(), parts: IdSet::new() }
    }
}

pub(super) struct Scheduler<'a> {
    pub(super) options: &'a Options,
    pub(super) regs: IndexVec<Reg, RegInfo>,
    /// How often each register of the function before is set.
    pub(super) defined: IndexVec<Reg, usize>,
    /// The memory that a pointer points into: the register of an argument or allocation.
    pub(super) roots: IndexVec<Reg, Option<Reg>>,
    /// Pointers that are offsets: pointer, index, type.
    pub(super) offsets: added::Offsets,
    pub(super) ranges: ranges::Ranges,
    /// What registers are expected to hold.
    pub(super) sizes: IdMap<Reg, i64>,
    /// Interleaved memory: see [`lanes::Known::rows`].
    pub(super) rows: IdMap<Reg, Operand>,
    /// Which loops have been chosen, if they have.
    pub(super) widths: Option<width::Widths>,
    /// How many loops, with iterations one after the other, are around.
    pub(super) depth: usize,
    /// Loops that are not put in lanes.
    pub(super) parts: IdSet<Reg>,
}

impl<'a> Scheduler<'a> {
    pub(super) fn new(
        options: &'a Options,
        f: &mut Function,
        body: &Block,
        expected: &Expected<'_>,
    ) -> Scheduler<'a> {
        let (defined, roots) = registers(f, body);
        let mut sizes = IdMap::new();
        sizes.extend(f.params.iter().zip(expected.args).filter_map(|(r, n)| Some((*r, (*n)?))));
        sizes.extend(expected.counters.iter().copied());
        cost::follow(body, &defined, &mut sizes);
        let (_, offsets) = added::pointers(body, &defined, &f.regs);
        let regs = std::mem::take(&mut f.regs);
        let ranges = ranges::Ranges::of(body, &defined);
        let (rows, widths, depth, parts) = (IdMap::new(), None, 0, expected.parts.clone());
        Scheduler { options, regs, defined, roots, offsets, ranges, sizes, rows, widths, depth, parts }
    }
    /// What a block is expected to cost when it is scheduled. `added`: the registers that it has more.
    pub(super) fn tried(&mut self, block: &[Ins], added: &[RegInfo]) -> f64 {
        let (given, sizes) = (self.regs.len(), self.sizes.clone());
        self.learn(block, added);
        let code = self.block(block.to_vec());
        let (uses, machine) = (uses::Uses::of(&code), (self.options.model, self.options.lanes));
        let code = jam::block(code, &mut self.regs, uses, machine, &mut self.sizes);
        let cost = self.cost(&code);
        self.sizes = sizes;
        self.regs.truncate(given);
        self.defined.truncate(given);
        self.roots.truncate(given);
        cost
    }
    /// Of registers that other code has made since, nothing is known: not how often they are set, and not where they point.
    pub(super) fn catch_up(&mut self) {
        for _ in self.defined.len()..self.regs.len() {
            self.defined.push(0);
        }
        for _ in self.roots.len()..self.regs.len() {
            self.roots.push(None);
        }
    }
    /// Takes registers over that were added for a block; each is set once.
    pub(super) fn learn(&mut self, block: &[Ins], added: &[RegInfo]) {
        self.catch_up();
        for info in added {
            self.regs.push(info.clone());
            self.defined.push(1);
            self.roots.push(None);
        }
        find_roots(block, &self.defined, &mut self.roots);
    }
    /// A register that is set once.
    pub(super) fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.catch_up();
        self.defined.push(1);
        self.regs.push(RegInfo::new(ty, hint))
    }
    /// The value of a primitive, in a new register.
    pub(super) fn prim(&mut self, out: &mut Block, prim: Prim, args: &[Operand], hint: &str) -> Operand {
        let to = self.reg(Ty::Scalar(prim.result()), hint);
        out.push(Ins::Prim { to, prim, args: args.to_vec() });
        to.into()
    }
    /// Other registers for these.
    pub(super) fn other_names(&mut self, set: impl IntoIterator<Item = Reg>) -> IdMap<Reg, Reg> {
        self.catch_up();
        let mut names = IdMap::new();
        for r in set {
            let (info, times) = (self.regs[r].clone(), self.defined[r]);
            let copy = self.regs.push(info);
            self.defined.push(times);
            names.insert(r, copy);
        }
        names
    }
    pub(super) fn block(&mut self, block: Block) -> Block {
        block.into_iter().flat_map(|ins| self.ins(ins)).collect()
    }
    pub(super) fn costs(&self) -> Costs<'_> {
        Costs { model: self.options.model, regs: &self.regs, sizes: &self.sizes }
    }
    pub(super) fn cost(&self, block: &Block) -> f64 {
        self.costs().of(block)
    }
    pub(super) fn ins(&mut self, ins: Ins) -> Block {
        match ins {
            Ins::For { i, from, to, body, order } => self.for_loop(i, from, to, body, order),
            Ins::While { condition, test, body } => {
                self.depth += 1;
                let (condition, body) = (self.block(condition), self.block(body));
                self.depth -= 1;
                vec![Ins::While { condition, test, body }]
            }
            Ins::If { condition, then, otherwise } => {
                vec![Ins::If { condition, then: self.block(then), otherwise: self.block(otherwise) }]
            }
            Ins::Copy { count, ty, .. } | Ins::Fill { count, ty, .. } if self.is_short(count, ty) => {
                self.in_lanes(&ins).unwrap_or_else(|| vec![ins])
            }
            other => vec![other],
        }
    }
    /// Whether a copy of so many elements is worth a loop of lanes.
    pub(super) fn is_short(&self, count: Operand, ty: Ty) -> bool {
        let machine = self.options.model.registers > 0;
        let few = self.costs().size(count).is_some_and(|n| n <= SHORT);
        machine && self.depth > 0 && few && ty.scalar().is_some()
    }
    /// A copy as a loop of lanes.
    pub(super) fn in_lanes(&mut self, ins: &Ins) -> Option<Block> {
        let (to, value, count, ty) = match *ins {
            Ins::Copy { to, from, count, ty } => (to, Err(from), count, ty),
            Ins::Fill { pointer, count, value, ty } => (pointer, Ok(value), count, ty),
            _ => return None,
        };
        let i = self.regs.push(RegInfo::new(Ty::I64, "i"));
        let index = i.into();
        let mut body = Vec::new();
        let value = value.unwrap_or_else(|pointer| {
            let to = self.regs.push(RegInfo::new(ty, "x"));
            body.push(Ins::Load { to, pointer, index });
            to.into()
        });
        body.push(Ins::Store { pointer: to, index, value, ty });
        let l = lanes::Loop { i, from: Operand::i64(0), to: count, body: &body, folds: &[] };
        self.side_by_side(&l, self.options.lanes).ok()
    }
    pub(super) fn side_by_side(&mut self, l: &lanes::Loop<'_>, lanes: usize) -> Result<Block, lanes::No> {
        if self.parts.contains(&l.i) {
            return Err(lanes::No::Parts);
        }
        let roots = &self.roots;
        let root = |r: Reg| roots.get(r).copied().flatten();
        let (defined, rows, offsets) = (&self.defined, &self.rows, &self.offsets);
        let fills = self.options.does(share::PACKING);
        let known = lanes::Known { defined, root: &root, rows, offsets, ranges: &self.ranges, fills };
        lanes::side_by_side(l, lanes, &mut self.regs, &known)
    }
    pub(super) fn for_loop(
        &mut self,
        i: Reg,
        from: Operand,
        to: Operand,
        body: Block,
        order: Order,
    ) -> Block {
        let lanes = match &self.widths {
            Some(widths) => widths.of_loop(i),
            None => Some(self.options.lanes),
        };
        let wide = match (&order, lanes) {
            (Order::Any(folds), Some(lanes)) => {
                let l = lanes::Loop { i, from, to, body: &body, folds };
                let wide = self.side_by_side(&l, lanes);
                if self.widths.is_some() {
                    return wide.unwrap_or_else(|no| panic!("{no:?}: the loop was in lanes before"));
                }
                wide.ok()
            }
            _ => None,
        };
        self.depth += 1;
        let body = self.block(body);
        self.depth -= 1;
        let plain = vec![Ins::For { i, from, to, body, order }];
        let Some(wide) = wide else { return plain };
        let (wide_cost, plain_cost) = (self.cost(&wide), self.cost(&plain));
        if plain_cost <= wide_cost { plain } else { wide }
    }
}
