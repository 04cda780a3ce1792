//! What code is expected to cost, to choose between schedules. The unit is a cheap scalar instruction. Only ratios count.

use crate::ir::{Block, Ins, Operand, Order, Reg, RegInfo};
use pullback_base::index::{IdMap, IndexVec};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// What an executor takes for kinds of instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// A cheap instruction on lanes, whatever their number.
    pub block: f64,
    /// More for each active lane.
    pub lane: f64,
    /// A load or store at places that are not neighbours, for each active lane.
    pub apart: f64,
    /// How many registers of [`super::Options::lanes`] lanes the executor has at hand.
    pub registers: usize,
    /// The fewest rows, columns, elements of a sum, and products in all of a contraction that is put in tiles.
    pub tiles: [f64; 4],
    /// Memory of fewer bytes is in a near cache: loops are joined for more, even if that costs a little; with 0 whatever it costs.
    /// `None`: loops are not joined.
    pub near: Option<i64>,
}

impl Model {
    /// Machine code, with registers of `width` lanes.
    pub fn machine(width: usize) -> Model {
        let registers = if width < 8 { 16 } else { 32 };
        Model { block: 0.0, lane: 1.0 / width as f64, apart: 1.0, registers, tiles: TILES, near: Some(NEAR) }
    }
    /// An interpreter that runs each instruction over a block.
    pub fn interpreter() -> Model {
        Model { block: 4.0, lane: 0.05, apart: 0.3, registers: 0, tiles: [f64::INFINITY; 4], near: None }
    }
}

/// Every element that is laid out has to be used often: by as many columns, or rows.
const TILES: [f64; 4] = [32.0, 32.0, 16.0, 65536.0];

/// Most of a first-level cache.
const NEAR: i64 = 32 << 10;

/// How often a loop is taken to run if nothing is known.
pub(super) const TRIPS: f64 = 24.0;

/// What it takes to start a loop of lanes: bounds, masks of the last block.
const START: f64 = 15.0;

/// The same for bounds that are numbers.
const START_KNOWN: f64 = 4.0;

pub(super) struct Costs<'a> {
    pub(super) model: Model,
    pub(super) regs: &'a IndexVec<Reg, RegInfo>,
    /// What sizes are expected to be.
    pub(super) sizes: &'a IdMap<Reg, i64>,
}

impl Costs<'_> {
    /// What a scalar is expected to be.
    pub(super) fn size(&self, a: Operand) -> Option<i64> {
        a.as_i64().or_else(|| self.sizes.get(&a.as_reg()?).copied())
    }
    pub(super) fn trips(&self, from: Operand, to: Operand) -> f64 {
        match (self.size(from), self.size(to)) {
            (Some(from), Some(to)) => to.saturating_sub(from).max(0) as f64,
            _ => TRIPS,
        }
    }
    /// The cost of a block outside of lanes.
    pub(super) fn of(&self, block: &Block) -> f64 {
        self.block(block, 1.0)
    }
    /// The cost of a block where so many lanes are active; 1 outside of lanes.
    pub(super) fn block(&self, block: &Block, active: f64) -> f64 {
        block.iter().map(|ins| self.ins(ins, active)).sum()
    }
    fn is_lanes(&self, a: Operand) -> bool {
        matches!(a, Operand::Reg(r) if self.regs[r].ty.is_lanes())
    }
    /// The cost of an instruction for so many active lanes; 1 outside of lanes.
    pub(super) fn ins(&self, ins: &Ins, active: f64) -> f64 {
        self.around(ins, active, &mut |block, active| self.block(block, active))
    }
    /// The same, where somebody else knows what each block inside costs.
    pub(super) fn around(&self, ins: &Ins, active: f64, inside: &mut dyn FnMut(&Block, f64) -> f64) -> f64 {
        // Outside of loops of lanes all lanes are active.
        let own = |r: Reg| self.regs[r].ty.lanes().map_or(1.0, |lanes| lanes as f64);
        let active = ins.sets().iter().fold(active, |n, r| n.max(if active == 1.0 { own(*r) } else { 1.0 }));
        let wide = self.model.block + self.model.lane * active;
        let apart = self.model.block + self.model.apart * active;
        match ins {
            Ins::Set { to, .. } => {
                if self.is_lanes((*to).into()) {
                    0.5 * wide
                } else {
                    0.3
                }
            }
            Ins::Prim { to, prim, .. } => work(*prim) * if self.is_lanes((*to).into()) { wide } else { 1.0 },
            Ins::Load { .. } | Ins::Store { .. } | Ins::Offset { .. } | Ins::Lane { .. } => 1.0,
            Ins::Accumulate { .. } => 4.0,
            Ins::LoadLanes { index, stride, .. } | Ins::StoreLanes { index, stride, .. } => {
                let near = stride.as_i64() == Some(1) && !self.is_lanes(*index);
                if near { wide } else { apart }
            }
            Ins::AccumulateLanes { index, stride, .. } => match stride.as_i64() {
                Some(0) if !self.is_lanes(*index) => 3.0 * wide + 4.0,
                Some(1) if !self.is_lanes(*index) => 2.0 * wide,
                _ => 3.0 * apart,
            },
            Ins::FoldLanes { .. } => 2.0 * wide + 2.0,
            Ins::LaneNumber { .. } => 0.0,
            Ins::Alloc { .. } | Ins::Mark { .. } | Ins::Release { .. } | Ins::Clock { .. } => 4.0,
            Ins::Fill { count, .. } | Ins::Copy { count, .. } => {
                5.0 + 0.25 * self.trips(Operand::i64(0), *count)
            }
            Ins::For { from, to, body, order, .. } => {
                // A sum waits for the one before.
                let waits: usize = match order {
                    Order::Any(folds) => folds.iter().map(|f| f.state.len()).sum(),
                    Order::Given => 0,
                };
                self.trips(*from, *to) * (inside(body, active) + 1.0 + 3.0 * waits as f64)
            }
            Ins::Lanes { from, to, lanes, body, .. } => {
                let n = self.trips(*from, *to);
                let width = *lanes as f64;
                let blocks = (n / width).ceil();
                let is_known = from.as_i64().is_some() && to.as_i64().is_some();
                let start = if is_known { START_KNOWN } else { START };
                start + blocks * (inside(body, n.min(width)) + 2.0)
            }
            Ins::While { condition, body, .. } => TRIPS * (inside(condition, active) + inside(body, active)),
            Ins::If { then, otherwise, .. } => 2.0 + 0.6 * (inside(then, active) + inside(otherwise, active)),
            Ins::Fail { .. } => 1.0,
            Ins::Call { .. } | Ins::Chunks { .. } => 100.0,
        }
    }
}

/// Sizes that follow from expected ones.
pub(super) fn follow(block: &Block, defined: &IndexVec<Reg, usize>, sizes: &mut IdMap<Reg, i64>) {
    for ins in block {
        let known = |a: &Operand| a.as_i64().or_else(|| sizes.get(&a.as_reg()?).copied());
        let value = match ins {
            Ins::Set { value, .. } => known(value),
            // Where it is not known what is chosen: what is no constant, as in sizes of arrays that may be empty.
            Ins::Prim { prim: Prim::Op(Op::Select, Scalar::I64), args, .. } => match args[1].as_i64() {
                None => known(&args[1]),
                Some(_) => known(&args[2]),
            },
            Ins::Prim { prim: prim @ Prim::Op(_, Scalar::I64), args, .. } => {
                let args: Option<Vec<i64>> = args.iter().map(known).collect();
                let values = args.map(|args| args.into_iter().map(ScalarValue::I64).collect::<Vec<_>>());
                match values.map(|values| prim.eval(&values)) {
                    Some(Ok(ScalarValue::I64(n))) => Some(n),
                    _ => None,
                }
            }
            _ => None,
        };
        if let (Some(n), [to]) = (value, ins.sets())
            && defined[*to] == 1
        {
            sizes.insert(*to, n);
        }
        ins.blocks().into_iter().for_each(|b| follow(b, defined, sizes));
    }
}

fn work(prim: Prim) -> f64 {
    match prim {
        Prim::Convert(..) => 1.0,
        Prim::Op(op, s) => match op {
            Op::Div | Op::Mod | Op::Quot | Op::Rem if s.is_integer() => 10.0,
            Op::Div | Op::Sqrt => 5.0,
            op => op.row().cost as f64,
        },
    }
}
