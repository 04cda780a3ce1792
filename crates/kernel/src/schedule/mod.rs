//! Which loops run side by side.
//!
//! Place in the pipeline: after the lowering, before an executor. Of a nest of loops that allow any order, the one is chosen whose
//! iterations side by side are expected to cost least ([`cost`]); the loops around it stay loops, those inside it too, but run
//! for all lanes at once ([`lanes`]).
//!
//! Guarantees: the values of the module before, but for the order in which floats are added and multiplied by loops that
//! declare that any order will do ([`crate::Fold`], [`crate::Ins::Accumulate`]); which of several errors a program stops with
//! may change.

mod cost;
mod lanes;
mod rows;

use crate::ir::{Block, Function, Ins, Module, Operand, Order, Reg, RegInfo, Ty};
use cost::Costs;
pub use cost::Model;
use pullback_base::index::IndexVec;

/// How loops are scheduled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How many iterations run side by side: a power of two.
    pub lanes: usize,
    /// What the executor takes.
    pub model: Model,
}

/// Puts loops of all functions into lanes. The module has none yet. Cost: the size of the module, times the depth of its nests.
pub fn schedule(module: &mut Module, options: &Options) {
    module.lanes = options.lanes;
    for f in module.functions.iter_mut() {
        let body = std::mem::take(&mut f.body);
        let (defined, roots) = registers(f, &body);
        let mut s = Scheduler { options, regs: &mut f.regs, defined, roots };
        f.body = s.block(body);
    }
}

struct Scheduler<'a> {
    options: &'a Options,
    regs: &'a mut IndexVec<Reg, RegInfo>,
    /// How often each register of the function before is set.
    defined: IndexVec<Reg, usize>,
    /// The memory that a pointer points into: the register of an argument or allocation.
    roots: IndexVec<Reg, Option<Reg>>,
}

impl Scheduler<'_> {
    fn block(&mut self, block: Block) -> Block {
        block.into_iter().flat_map(|ins| self.ins(ins)).collect()
    }
    fn cost(&self, block: &Block) -> f64 {
        Costs { model: self.options.model, lanes: self.options.lanes, regs: self.regs }.of(block)
    }
    fn ins(&mut self, ins: Ins) -> Block {
        match ins {
            Ins::For { i, from, to, body, order } => self.for_loop(i, from, to, body, order),
            Ins::While { condition, test, body } => {
                vec![Ins::While { condition: self.block(condition), test, body: self.block(body) }]
            }
            Ins::If { condition, then, otherwise } => {
                vec![Ins::If { condition, then: self.block(then), otherwise: self.block(otherwise) }]
            }
            other => vec![other],
        }
    }
    fn for_loop(&mut self, i: Reg, from: Operand, to: Operand, body: Block, order: Order) -> Block {
        let wide = match &order {
            Order::Any(folds) => {
                let l = lanes::Loop { i, from, to, body: &body, folds };
                let roots = &self.roots;
                let root = |r: Reg| roots.get(r).copied().flatten();
                lanes::side_by_side(&l, self.options.lanes, self.regs, &self.defined, &root).ok()
            }
            Order::Given => None,
        };
        let loop_with = |body| vec![Ins::For { i, from, to, body, order: order.clone() }];
        let Some(wide) = wide else {
            return loop_with(self.block(body));
        };
        let plain = loop_with(self.block(body.clone()));
        let (wide_cost, plain_cost) = (self.cost(&wide), self.cost(&plain));
        if plain_cost <= wide_cost { plain } else { wide }
    }
}

/// How often each register is set, and where pointers that are set once point into.
fn registers(f: &Function, body: &Block) -> (IndexVec<Reg, usize>, IndexVec<Reg, Option<Reg>>) {
    let mut defined = IndexVec::new();
    let mut roots = IndexVec::new();
    for _ in f.regs.iter() {
        defined.push(0);
        roots.push(None);
    }
    for p in &f.params {
        defined[*p] += 1;
        if f.regs[*p].ty == Ty::Pointer {
            roots[*p] = Some(*p);
        }
    }
    count(body, &mut defined);
    find_roots(body, &defined, &mut roots);
    (defined, roots)
}

fn count(block: &Block, defined: &mut IndexVec<Reg, usize>) {
    for ins in block {
        for to in ins.sets() {
            defined[to] += 1;
        }
        ins.blocks().into_iter().for_each(|b| count(b, defined));
    }
}

fn find_roots(block: &Block, defined: &IndexVec<Reg, usize>, roots: &mut IndexVec<Reg, Option<Reg>>) {
    for ins in block {
        match ins {
            Ins::Alloc { to, .. } if defined[*to] == 1 => roots[*to] = Some(*to),
            Ins::Offset { to, pointer: Operand::Reg(from), .. }
            | Ins::Set { to, value: Operand::Reg(from) }
                if defined[*to] == 1 =>
            {
                roots[*to] = roots[*from];
            }
            _ => {}
        }
        ins.blocks().into_iter().for_each(|b| find_roots(b, defined, roots));
    }
}
