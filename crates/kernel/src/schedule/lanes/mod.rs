//! A loop with its iterations side by side.
//!
//! Every register of the body is *uniform* (the same in all lanes), *affine* (an `i64` that grows by the same step from lane to lane: it
//! stays a scalar, that of the first lane) or *varying* (one of lanes). A pointer is affine, or has an index in lanes, or points to
//! memory that each lane has for itself: element `j` of lane `l` is at `j * lanes + l`, so that lanes lie side by side.
//! Branches on lanes become masks; loops whose bounds are lanes run to the largest one.
//!
//! Registers that are set more than once are taken to be scalars until a value of lanes is found; then the work starts again
//! with that knowledge.
//!
//! Assumes a loop whose order is [`Order::Any`]. Gives nothing up: what cannot stand side by side is refused ([`No`]): calls, pointers that
//! differ in memory, allocations of a size that differs.

mod memory;

use self::memory::{Filled, Place, private_memory};
use super::ranges::{Asked, Ranges};
use super::row_layout::Uses;
use crate::ir::{Block, Fold, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::walk::size;
use pullback_base::Table;
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::cell::LazyCell;

/// Why a loop keeps its iterations one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum No {
    /// Its body is on lanes already.
    Lanes,
    Call,
    /// A pointer that is not the same in all lanes, and not linear.
    Pointer,
    /// Memory of a size that is not the same in all lanes.
    Size,
    /// All lanes write one place.
    Place,
    /// Interleaved memory is used in another way than row by row.
    Rows,
    /// Its iterations are parts for threads.
    Parts,
}

/// What a register is.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The same in all lanes.
    Uniform,
    /// It grows by this from lane to lane; the register holds that of the first lane.
    Affine(Operand),
    /// Another value in each: these lanes.
    Varying(Reg),
    /// A pointer: in lane `l` the register, plus `stride * l`, plus the index. If private, counted in columns of lanes.
    Pointer { stride: Operand, index: Option<Operand>, private: bool },
    /// A pointer into interleaved memory before the row is chosen; the number of elements of a row.
    Rows(Operand),
}

/// A loop in any order.
pub(super) struct Loop<'a> {
    pub(super) i: Reg,
    pub(super) from: Operand,
    pub(super) to: Operand,
    pub(super) body: &'a Block,
    pub(super) folds: &'a [Fold],
}

/// What is known about registers of the function.
pub(super) struct Known<'a> {
    /// How often each is set.
    pub(super) defined: &'a IndexVec<Reg, usize>,
    /// The memory that a pointer points into.
    pub(super) root: &'a dyn Fn(Reg) -> Option<Reg>,
    /// Memory in which rows of so many elements lie interleaved: element `j` of row `i` at
    /// `(i / lanes * row + j) * lanes + i % lanes`.
    pub(super) rows: &'a IdMap<Reg, Operand>,
    /// Pointers that are offsets: pointer, index, type.
    pub(super) offsets: &'a super::added::Offsets,
    pub(super) ranges: &'a Ranges,
    /// Whether rows are filled near ([`super::share::PACKING`]).
    pub(super) fills: bool,
}

/// The loop with its iterations side by side. `lanes`: how many.
pub(super) fn side_by_side(
    l: &Loop<'_>,
    lanes: usize,
    regs: &mut IndexVec<Reg, RegInfo>,
    known: &Known<'_>,
) -> Result<Block, No> {
    let defined = known.defined;
    // Asked for by few loops: where loops are tried at each level of a nest, the body is not looked through for all of them.
    let uses = LazyCell::new(|| Uses::of(l.body, known.root));
    let mut varying: IdSet<Reg> = l.folds.iter().flat_map(|f| f.state.iter().copied()).collect();
    let registers = size(l.body);
    loop {
        let before = regs.len();
        let mut shapes = Table::with_room(registers);
        known.rows.iter().for_each(|(r, row)| {
            shapes.insert(*r, Shape::Rows(*row));
        });
        let mut v = Vector {
            known,
            counter: (l.i, l.from),
            products: Table::new(),
            lanes: lanes as i64,
            regs,
            defined,
            is_read_often: &|row| uses.is_read_often(row),
            is_filled_and_read_often: &|row| {
                if known.fills { uses.is_filled_and_read_often(row) } else { None }
            },
            filled: Vec::new(),
            varying: &mut varying,
            again: false,
            shapes,
            of_lanes: Table::with_room(registers),
            made: Vec::new(),
            number: None,
            blocks: vec![Vec::new()],
            mask: None,
            asked: Asked::new(),
        };
        let out = v.whole(l)?;
        if !v.again {
            return Ok(out);
        }
        regs.truncate(before);
    }
}

struct Vector<'a> {
    known: &'a Known<'a>,
    lanes: i64,
    /// The counter of the loop, and from where it counts.
    counter: (Reg, Operand),
    /// Registers that are the counter times this.
    products: Table<Reg, Operand>,
    regs: &'a mut IndexVec<Reg, RegInfo>,
    defined: &'a IndexVec<Reg, usize>,
    /// Whether a row is only read, and elements of it more than once.
    is_read_often: &'a dyn Fn(Reg) -> bool,
    /// See [`Uses::is_filled_and_read_often`].
    is_filled_and_read_often: &'a dyn Fn(Reg) -> Option<(Reg, Operand)>,
    /// Rows that will be filled.
    filled: Vec<Filled>,
    /// Registers that are set more than once and hold lanes.
    varying: &'a mut IdSet<Reg>,
    /// Whether one of them was taken for a scalar.
    again: bool,
    shapes: Table<Reg, Shape>,
    of_lanes: Table<Reg, Reg>,
    /// The lanes of registers that are set under a mask, and the states of folds.
    made: Vec<Reg>,
    number: Option<Reg>,
    /// Open blocks.
    blocks: Vec<Block>,
    /// Where the present instructions count; `None`: everywhere.
    mask: Option<Operand>,
    /// What is known about numbers here, in this block and those around it.
    asked: Asked,
}

type Res<T> = Result<T, No>;

fn is_zero(a: Operand) -> bool {
    a.as_i64() == Some(0)
}

impl Vector<'_> {
    // --- instructions ---

    fn emit(&mut self, ins: Ins) {
        self.blocks.last_mut().expect("an open block").push(ins);
    }
    fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<(Block, T)> {
        self.blocks.push(Vec::new());
        let asked = self.asked.len();
        let out = f(self);
        self.asked.truncate(asked);
        let block = self.blocks.pop().unwrap_or_default();
        Ok((block, out?))
    }
    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.regs.push(RegInfo::new(ty, hint))
    }
    /// The type of the lanes of a scalar.
    fn wide(&self, s: Scalar) -> Ty {
        Ty::Lanes(s, self.lanes as usize)
    }
    fn ty(&self, a: Operand) -> Ty {
        match a {
            Operand::Reg(r) => self.regs[r].ty,
            Operand::Const(c) => Ty::Scalar(c.scalar()),
            Operand::Null => Ty::Pointer,
        }
    }
    /// A primitive of scalars or of lanes.
    fn prim(&mut self, prim: Prim, args: &[Operand]) -> Operand {
        let lanes = args.iter().any(|a| self.ty(*a).is_lanes());
        let result = prim.result();
        let to = self.reg(if lanes { self.wide(result) } else { Ty::Scalar(result) }, "t");
        self.emit(Ins::Prim { to, prim, args: args.to_vec() });
        to.into()
    }
    fn op(&mut self, op: Op, s: Scalar, args: &[Operand]) -> Operand {
        self.prim(Prim::Op(op, s), args)
    }
    fn add(&mut self, a: Operand, b: Operand) -> Operand {
        match (a.as_i64(), b.as_i64()) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(x), Some(y)) => Operand::i64(x.wrapping_add(y)),
            _ => self.op(Op::Add, Scalar::I64, &[a, b]),
        }
    }
    fn sub(&mut self, a: Operand, b: Operand) -> Operand {
        match (a.as_i64(), b.as_i64()) {
            (_, Some(0)) => a,
            (Some(x), Some(y)) => Operand::i64(x.wrapping_sub(y)),
            _ => self.op(Op::Sub, Scalar::I64, &[a, b]),
        }
    }
    fn mul(&mut self, a: Operand, b: Operand) -> Operand {
        match (a.as_i64(), b.as_i64()) {
            (Some(0), _) | (_, Some(0)) => Operand::i64(0),
            (Some(1), _) => b,
            (_, Some(1)) => a,
            (Some(x), Some(y)) => Operand::i64(x.wrapping_mul(y)),
            _ => self.op(Op::Mul, Scalar::I64, &[a, b]),
        }
    }
    fn both(&mut self, mask: Option<Operand>, b: Operand) -> Operand {
        match mask {
            None => b,
            Some(a) => self.op(Op::And, Scalar::Bool, &[a, b]),
        }
    }
    /// Whether a mask holds anywhere.
    fn any(&mut self, mask: Operand) -> Operand {
        let to = self.reg(Ty::BOOL, "any");
        let prim = Prim::Op(Op::Or, Scalar::Bool);
        self.emit(Ins::FoldLanes { to, prim, neutral: ScalarValue::Bool(false), from: mask, mask: None });
        to.into()
    }

    // --- shapes ---

    fn shape(&self, a: Operand) -> Shape {
        match a {
            Operand::Reg(r) => self.shapes.get(&r).copied().unwrap_or(Shape::Uniform),
            Operand::Const(_) | Operand::Null => Shape::Uniform,
        }
    }
    fn is_same(&self, a: Operand) -> bool {
        matches!(self.shape(a), Shape::Uniform)
    }
    /// The operand for an instruction on lanes.
    fn value(&mut self, a: Operand) -> Operand {
        match self.shape(a) {
            Shape::Uniform | Shape::Pointer { .. } | Shape::Rows(_) => a,
            Shape::Varying(r) => r.into(),
            Shape::Affine(stride) => {
                let number = self.number.expect("numbers of the lanes").into();
                let steps = self.mul(number, stride);
                self.add(steps, a)
            }
        }
    }
    /// The lanes that hold a register.
    fn lanes_of(&mut self, r: Reg) -> Reg {
        if let Some(lanes) = self.of_lanes.get(&r) {
            return *lanes;
        }
        let info = self.regs[r].clone();
        let s = info.ty.scalar().expect("scalars have lanes");
        let lanes = self.reg(self.wide(s), &info.hint);
        self.of_lanes.insert(r, lanes);
        lanes
    }
    fn is_single(&self, r: Reg) -> bool {
        self.defined.get(r).is_none_or(|n| *n == 1)
    }
    /// Notes that a register that is set more than once holds lanes.
    fn found(&mut self, r: Reg) {
        if self.varying.insert(r) {
            self.again = true;
        }
    }

    // --- the loop ---

    fn whole(&mut self, l: &Loop<'_>) -> Res<Block> {
        let mut states = Vec::new();
        for fold in l.folds {
            for (state, neutral) in fold.state.iter().zip(&fold.neutral) {
                let lanes = self.lanes_of(*state);
                self.shapes.insert(*state, Shape::Varying(lanes));
                self.emit(Ins::Set { to: lanes, value: *neutral });
                states.push(lanes);
            }
        }
        let number = self.reg(self.wide(Scalar::I64), "lane");
        self.emit(Ins::LaneNumber { to: number });
        self.number = Some(number);
        self.shapes.insert(l.i, Shape::Affine(Operand::i64(1)));
        let (mut body, ()) = self.block(|v| v.all(l.body))?;
        let zero = |r: Reg, v: &Self| {
            let s = v.regs[r].ty.scalar().unwrap_or(Scalar::Bool);
            Ins::Set { to: r, value: Operand::Const(s.zero()) }
        };
        let first: Block = self.made.iter().filter(|r| !states.contains(r)).map(|r| zero(*r, self)).collect();
        body.splice(0..0, first);
        let body = self.with_mark(body);
        self.emit(Ins::Lanes { i: l.i, from: l.from, to: l.to, lanes: self.lanes as usize, body });
        for fold in l.folds {
            self.folded(fold, l);
        }
        Ok(self.blocks.pop().unwrap_or_default())
    }
    /// Takes the lanes of states together.
    fn folded(&mut self, fold: &Fold, l: &Loop<'_>) {
        if let Some(prims) = apart(fold) {
            for ((state, prim), neutral) in fold.state.iter().zip(prims).zip(&fold.neutral) {
                let from = self.lanes_of(*state).into();
                let neutral = match neutral {
                    Operand::Const(c) => *c,
                    // All lanes are active here.
                    _ => prim.result().zero(),
                };
                self.emit(Ins::FoldLanes { to: *state, prim, neutral, from, mask: None });
            }
            return;
        }
        // Through memory: first the lane 0, then the others.
        let mark = self.reg(Ty::Pointer, "mark");
        self.emit(Ins::Mark { to: mark });
        let (count, one) = (Operand::i64(self.lanes), Operand::i64(1));
        let mut columns = Vec::new();
        for state in &fold.state {
            let ty = self.regs[*state].ty;
            let to = self.reg(Ty::Pointer, "lanes");
            self.emit(Ins::Alloc { to, count, ty });
            let (pointer, value) = (to.into(), self.lanes_of(*state).into());
            let index = Operand::i64(0);
            self.emit(Ins::StoreLanes { pointer, index, stride: one, value, ty, mask: None });
            columns.push(pointer);
        }
        // Lanes without elements hold the neutral element, which is left out if nothing else is there.
        let trips = self.sub(l.to, l.from);
        let some = self.op(Op::Max, Scalar::I64, &[trips, one]);
        let count = self.op(Op::Min, Scalar::I64, &[some, count]);
        let together = super::chunks::together(fold, &columns, count, self.regs);
        together.into_iter().for_each(|ins| self.emit(ins));
        self.emit(Ins::Release { mark: mark.into() });
    }

    /// The body of a loop, giving back what it allocates: no memory of an iteration outlives it here.
    fn with_mark(&mut self, body: Block) -> Block {
        crate::lower::with_mark(body, self.regs)
    }

    fn all(&mut self, block: &Block) -> Res<()> {
        block.iter().try_for_each(|ins| self.ins(ins))
    }

    fn ins(&mut self, ins: &Ins) -> Res<()> {
        match ins {
            Ins::Set { to, value } => self.set(*to, *value),
            Ins::Prim { to, prim, args } => self.primitive(*to, *prim, args),
            Ins::Load { to, pointer, index } => self.load(*to, *pointer, *index),
            Ins::Store { pointer, index, value, ty } => {
                let place = self.place(*pointer, *index)?;
                if place.same || *ty == Ty::Pointer {
                    return Err(No::Place);
                }
                let (value, mask) = (self.value(*value), self.mask);
                let Place { pointer, index, stride, .. } = place;
                self.emit(Ins::StoreLanes { pointer, index, stride, value, ty: *ty, mask });
                Ok(())
            }
            Ins::Accumulate { pointer, index, value, ty, atomic } => {
                let Place { pointer, index, stride, .. } = self.place(*pointer, *index)?;
                let (value, mask) = (self.value(*value), self.mask);
                let (ty, atomic) = (*ty, *atomic);
                self.emit(Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, atomic });
                Ok(())
            }
            Ins::Offset { to, pointer, index, ty, room } => self.offset(*to, *pointer, *index, *ty, *room),
            Ins::Alloc { to, count, ty } => {
                if !self.is_same(*count) || *ty == Ty::Pointer || !self.is_single(*to) {
                    return Err(if *ty == Ty::Pointer { No::Pointer } else { No::Size });
                }
                let count = self.columns(*count);
                self.emit(Ins::Alloc { to: *to, count, ty: *ty });
                self.shapes.insert(*to, private_memory());
                Ok(())
            }
            Ins::Mark { .. } | Ins::Release { .. } => {
                self.emit(ins.clone());
                Ok(())
            }
            Ins::Fill { pointer, count, value, ty } => self.fill(*pointer, *count, *value, *ty),
            Ins::Copy { to, from, count, ty } => self.copy(*to, *from, *count, *ty),
            Ins::For { i, from, to, body, order } => self.for_loop((*i, *from, *to), body, order),
            Ins::While { condition, test, body } => self.while_loop(condition, *test, body),
            Ins::If { condition, then, otherwise } => self.branch(*condition, then, otherwise),
            Ins::Fail { condition, message, values } => {
                let asked = self.known.ranges.asked(*condition);
                let differs = !self.is_same(*condition) || values.iter().any(|v| !self.is_same(*v));
                let mut at = self.value(*condition);
                if (differs || self.mask.is_some()) && !self.ty(at).is_lanes() {
                    let all = self.reg(self.wide(Scalar::Bool), "fails");
                    self.emit(Ins::Set { to: all, value: at });
                    at = all.into();
                }
                let condition = if self.ty(at).is_lanes() { self.both(self.mask, at) } else { at };
                let values = values.iter().map(|v| self.value(*v)).collect();
                self.emit(Ins::Fail { condition, message: *message, values });
                self.asked.extend(asked);
                Ok(())
            }
            Ins::Call { .. } | Ins::Chunks { .. } | Ins::Clock { .. } => Err(No::Call),
            Ins::Lanes { .. }
            | Ins::LaneNumber { .. }
            | Ins::LoadLanes { .. }
            | Ins::StoreLanes { .. }
            | Ins::AccumulateLanes { .. }
            | Ins::FoldLanes { .. }
            | Ins::Lane { .. } => Err(No::Lanes),
        }
    }

    fn set(&mut self, to: Reg, value: Operand) -> Res<()> {
        let shape = self.shape(value);
        if self.is_single(to) && !self.varying.contains(&to) {
            // The value of lanes may change later, a scalar is copied anyhow.
            match shape {
                Shape::Varying(from) => {
                    let lanes = self.lanes_of(to);
                    self.emit(Ins::Set { to: lanes, value: from.into() });
                    self.shapes.insert(to, Shape::Varying(lanes));
                }
                shape => {
                    self.emit(Ins::Set { to, value });
                    self.shapes.insert(to, shape);
                }
            }
            return Ok(());
        }
        if self.ty(to.into()) == Ty::Pointer {
            return match shape {
                Shape::Uniform if self.mask.is_none() => {
                    self.emit(Ins::Set { to, value });
                    Ok(())
                }
                _ => Err(No::Pointer),
            };
        }
        if !self.varying.contains(&to) {
            if self.mask.is_none() && matches!(shape, Shape::Uniform) {
                self.emit(Ins::Set { to, value });
                return Ok(());
            }
            self.found(to);
        }
        let lanes = self.lanes_of(to);
        self.shapes.insert(to, Shape::Varying(lanes));
        if !self.made.contains(&lanes) {
            self.made.push(lanes);
        }
        let mut value = self.value(value);
        if let Some(mask) = self.mask {
            let s = self.ty(value).scalar().expect("scalars have lanes");
            value = self.op(Op::Select, s, &[mask, value, lanes.into()]);
        }
        self.emit(Ins::Set { to: lanes, value });
        Ok(())
    }

    /// Sets a register that an instruction makes new lanes for.
    fn define(&mut self, to: Reg, f: impl FnOnce(&mut Self, Reg)) -> Res<()> {
        if self.is_single(to) && !self.varying.contains(&to) {
            let lanes = self.lanes_of(to);
            self.shapes.insert(to, Shape::Varying(lanes));
            f(self, lanes);
            return Ok(());
        }
        let (s, hint) = (self.ty(to.into()).scalar().ok_or(No::Pointer)?, self.regs[to].hint.clone());
        let fresh = self.reg(Ty::Scalar(s), &hint);
        let lanes = self.reg(self.wide(s), &hint);
        f(self, lanes);
        self.shapes.insert(fresh, Shape::Varying(lanes));
        self.set(to, fresh.into())
    }
    /// Sets a register by an instruction on scalars.
    fn define_same(&mut self, to: Reg, shape: Shape, f: impl FnOnce(Reg) -> Ins) -> Res<()> {
        if self.is_single(to) && !self.varying.contains(&to) {
            self.emit(f(to));
            self.shapes.insert(to, shape);
            return Ok(());
        }
        let info = self.regs[to].clone();
        let fresh = self.reg(info.ty, &info.hint);
        self.emit(f(fresh));
        self.shapes.insert(fresh, shape);
        self.set(to, fresh.into())
    }

    fn primitive(&mut self, to: Reg, prim: Prim, args: &[Operand]) -> Res<()> {
        let shapes: Vec<Shape> = args.iter().map(|a| self.shape(*a)).collect();
        if shapes.iter().all(|s| matches!(s, Shape::Uniform)) {
            return self.define_same(to, Shape::Uniform, |to| Ins::Prim { to, prim, args: args.to_vec() });
        }
        let step = |s: Shape| match s {
            Shape::Uniform => Some(Operand::i64(0)),
            Shape::Affine(step) => Some(step),
            Shape::Varying(_) | Shape::Pointer { .. } | Shape::Rows(_) => None,
        };
        if let (Prim::Op(op, Scalar::I64), [a, b]) = (prim, &shapes[..])
            && let (Some(x), Some(y)) = (step(*a), step(*b))
        {
            let stride = match (op, a, b) {
                (Op::Add, ..) => Some(self.add(x, y)),
                (Op::Sub, ..) => Some(self.sub(x, y)),
                (Op::Mul, _, Shape::Uniform) => Some(self.mul(x, args[1])),
                (Op::Mul, Shape::Uniform, _) => Some(self.mul(y, args[0])),
                _ => None,
            };
            if let Some(stride) = stride {
                if op == Op::Mul && self.is_single(to) {
                    let (i, by) =
                        if matches!(a, Shape::Uniform) { (args[1], args[0]) } else { (args[0], args[1]) };
                    if i == self.counter.0.into() {
                        self.products.insert(to, by);
                    }
                }
                let shape = if is_zero(stride) { Shape::Uniform } else { Shape::Affine(stride) };
                return self.define_same(to, shape, |to| Ins::Prim { to, prim, args: args.to_vec() });
            }
        }
        let args: Vec<Operand> = args.iter().map(|a| self.value(*a)).collect();
        self.define(to, |v, to| v.emit(Ins::Prim { to, prim, args }))
    }

    // --- control ---

    fn for_loop(&mut self, (i, from, to): (Reg, Operand, Operand), body: &Block, order: &Order) -> Res<()> {
        if self.is_same(from) {
            let order = match order {
                Order::Any(folds) if folds.is_empty() => Order::Any(Vec::new()),
                Order::Any(_) | Order::Given => Order::Given,
            };
            self.counted(i, from, to, order, &mut |v, _| v.all(body))?;
            let done: Vec<Filled> = self.filled.extract_if(.., |f| f.by == i).collect();
            return done.iter().try_for_each(|f| self.copy(f.row.into(), f.memory.into(), f.count, f.ty));
        }
        // Each lane has its own counter.
        let counter = self.lanes_of(i);
        self.made.push(counter);
        let start = self.value(from);
        self.emit(Ins::Set { to: counter, value: start });
        self.shapes.insert(i, Shape::Varying(counter));
        let outer = self.mask;
        let runs = self.reg(self.wide(Scalar::Bool), "runs");
        let (condition, test) = self.block(|v| {
            let to = v.value(to);
            let below = v.op(Op::Lt, Scalar::I64, &[counter.into(), to]);
            let below = v.both(outer, below);
            v.emit(Ins::Set { to: runs, value: below });
            Ok(v.any(runs.into()))
        })?;
        let (body, ()) = self.block(|v| {
            v.mask = Some(runs.into());
            v.all(body)?;
            let next = v.op(Op::Add, Scalar::I64, &[counter.into(), Operand::i64(1)]);
            v.emit(Ins::Set { to: counter, value: next });
            Ok(())
        })?;
        self.mask = outer;
        let body = self.with_mark(body);
        self.emit(Ins::While { condition, test, body });
        Ok(())
    }
    /// A loop whose counter is the same in all lanes.
    fn counted(
        &mut self,
        i: Reg,
        from: Operand,
        to: Operand,
        order: Order,
        f: &mut dyn FnMut(&mut Self, Operand) -> Res<()>,
    ) -> Res<()> {
        self.shapes.insert(i, Shape::Uniform);
        let outer = self.mask;
        let (last, limit) = if self.is_same(to) {
            (to, None)
        } else {
            let limit = self.value(to);
            let last = self.reg(Ty::I64, "last");
            let prim = Prim::Op(Op::Max, Scalar::I64);
            let neutral = ScalarValue::I64(i64::MIN);
            self.emit(Ins::FoldLanes { to: last, prim, neutral, from: limit, mask: outer });
            (last.into(), Some(limit))
        };
        let (body, ()) = self.block(|v| {
            if let Some(limit) = limit {
                let below = v.op(Op::Lt, Scalar::I64, &[i.into(), limit]);
                v.mask = Some(v.both(outer, below));
            }
            f(v, i.into())
        })?;
        self.mask = outer;
        let body = self.with_mark(body);
        self.emit(Ins::For { i, from, to: last, body, order });
        Ok(())
    }
    fn while_loop(&mut self, condition: &Block, test: Operand, body: &Block) -> Res<()> {
        let (first, ()) = self.block(|v| v.all(condition))?;
        if self.is_same(test) {
            let (body, ()) = self.block(|v| v.all(body))?;
            let body = self.with_mark(body);
            self.emit(Ins::While { condition: first, test, body });
            return Ok(());
        }
        // Lanes stop one after the other.
        let outer = self.mask;
        let runs = self.reg(self.wide(Scalar::Bool), "runs");
        self.emit(Ins::Set { to: runs, value: outer.unwrap_or(Operand::bool(true)) });
        self.mask = Some(runs.into());
        let (condition, test) = self.block(|v| {
            v.all(condition)?;
            let test = v.value(test);
            let still = v.op(Op::And, Scalar::Bool, &[runs.into(), test]);
            v.emit(Ins::Set { to: runs, value: still });
            Ok(v.any(runs.into()))
        })?;
        let (body, ()) = self.block(|v| v.all(body))?;
        let body = self.with_mark(body);
        self.mask = outer;
        self.emit(Ins::While { condition, test, body });
        Ok(())
    }
    fn branch(&mut self, condition: Operand, then: &Block, otherwise: &Block) -> Res<()> {
        let (holds, fails) = (self.known.ranges.asked_by(condition), self.known.ranges.asked(condition));
        if self.is_same(condition) {
            let (then, ()) = self.block(|v| v.knowing(holds, then))?;
            let (otherwise, ()) = self.block(|v| v.knowing(fails, otherwise))?;
            self.emit(Ins::If { condition, then, otherwise });
            return Ok(());
        }
        let yes = self.value(condition);
        self.arm(yes, holds, then)?;
        if !otherwise.is_empty() {
            let no = self.op(Op::Not, Scalar::Bool, &[yes]);
            self.arm(no, fails, otherwise)?;
        }
        Ok(())
    }
    /// An arm of a branch: its instructions where the condition holds, and what is known there.
    fn arm(&mut self, condition: Operand, asked: Option<(Operand, Operand)>, block: &Block) -> Res<()> {
        let outer = self.mask;
        let mask = self.both(outer, condition);
        self.mask = Some(mask);
        let before = self.asked.len();
        let done = if is_cheap(block) {
            self.knowing(asked, block)
        } else {
            let any = self.any(mask);
            let inner = self.block(|v| v.knowing(asked, block));
            inner.map(|(then, ())| self.emit(Ins::If { condition: any, then, otherwise: Vec::new() }))
        };
        self.mask = outer;
        self.asked.truncate(before);
        done
    }
    fn knowing(&mut self, asked: Option<(Operand, Operand)>, block: &Block) -> Res<()> {
        self.asked.extend(asked);
        self.all(block)
    }
}

/// The primitives of a fold whose states have nothing to do with each other.
pub(super) fn apart(fold: &Fold) -> Option<Vec<Prim>> {
    let prim = |k: usize| {
        fold.combine.iter().find_map(|ins| match ins {
            Ins::Prim { to, prim, args }
                if fold.out[k] == Operand::Reg(*to)
                    && args[..] == [fold.left[k].into(), fold.right[k].into()] =>
            {
                Some(*prim)
            }
            _ => None,
        })
    };
    (0..fold.state.len()).map(prim).collect()
}

/// Whether all lanes may run the block, whether they need it or not: it is short and cannot stop the program.
fn is_cheap(block: &Block) -> bool {
    block.len() <= 8
        && block.iter().all(|ins| match ins {
            Ins::Set { .. } => true,
            Ins::Prim { prim, .. } => !prim.may_stop(),
            _ => false,
        })
}
