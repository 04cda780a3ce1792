//! Loads, stores and allocations of a loop with its iterations side by side.

use super::{No, Res, Shape, Vector, is_zero};
use crate::ir::{Ins, Operand, Order, Reg, Ty};
use pullback_prim::{Op, Scalar};

/// A place in memory for each lane.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) pointer: Operand,
    pub(super) index: Operand,
    pub(super) stride: Operand,
    /// Whether it is the same for all lanes.
    pub(super) same: bool,
}

/// A row that a loop fills where lanes lie side by side, and that is copied to its place then.
pub(super) struct Filled {
    /// The counter of the loop.
    pub(super) by: Reg,
    pub(super) memory: Reg,
    pub(super) row: Reg,
    pub(super) count: Operand,
    pub(super) ty: Ty,
}

/// Memory of a lane's own.
pub(super) fn private_memory() -> Shape {
    Shape::Pointer { stride: Operand::i64(1), index: None, private: true }
}

impl Vector<'_> {
    /// So many elements for each lane. Not more than there can be.
    pub(super) fn columns(&mut self, count: Operand) -> Operand {
        let most = Operand::i64(1 << 50);
        let count = match count.as_i64() {
            Some(n) => Operand::i64(n.min(1 << 50)),
            None => self.op(Op::Min, Scalar::I64, &[count, most]),
        };
        self.mul(count, Operand::i64(self.lanes))
    }
    /// A pointer; if it was computed outside of the loop and points into interleaved memory, computed again from the memory.
    fn inside(&mut self, pointer: Operand) -> Res<Operand> {
        let Operand::Reg(r) = pointer else { return Ok(pointer) };
        let outside = !self.shapes.contains(&r);
        let into = (self.known.root)(r).is_some_and(|root| self.known.rows.contains_key(&root));
        if !(outside && into) {
            return Ok(pointer);
        }
        let (base, index, ty) = *self.known.offsets.get(&r).ok_or(No::Rows)?;
        let base = self.inside(base)?;
        let (by, shape) = self.moved(base, index)?;
        let to = self.reg(Ty::Pointer, "part");
        self.emit(Ins::Offset { to, pointer: base, index: by, ty, room: None });
        self.shapes.insert(to, shape);
        Ok(to.into())
    }
    /// A pointer moved by an index: by how much the scalar pointer moves, and the shape then.
    fn moved(&mut self, pointer: Operand, index: Operand) -> Res<(Operand, Shape)> {
        let (mut stride, mut at, private) = match self.shape(pointer) {
            Shape::Uniform => (Operand::i64(0), None, false),
            Shape::Pointer { stride, index, private } => (stride, index, private),
            Shape::Rows(row) => return self.in_rows(row, index),
            Shape::Affine(_) | Shape::Varying(_) => return Err(No::Pointer),
        };
        let width = Operand::i64(if private { self.lanes } else { 1 });
        let mut by = Operand::i64(0);
        match self.shape(index) {
            Shape::Uniform => by = self.mul(index, width),
            Shape::Affine(step) => {
                by = self.mul(index, width);
                let step = self.mul(step, width);
                stride = self.add(stride, step);
            }
            Shape::Varying(r) => {
                let more = self.mul(r.into(), width);
                at = Some(at.map_or(more, |a| self.add(a, more)));
            }
            Shape::Pointer { .. } | Shape::Rows(_) => return Err(No::Pointer),
        }
        if at.is_none() && is_zero(stride) && !private {
            return Ok((by, Shape::Uniform));
        }
        Ok((by, Shape::Pointer { stride, index: at, private }))
    }
    /// In interleaved memory: the row of the lane is chosen by the counter of the loop, at any time; what is added before and after that
    /// has to stay in the row ([`Vector::stays`]). A slice of the rows begins in the middle of a block: it is refused.
    fn in_rows(&mut self, row: Operand, index: Operand) -> Res<(Operand, Shape)> {
        let is_row = index.as_reg().is_some_and(|r| self.products.get(&r) == Some(&row));
        match self.shape(index) {
            Shape::Uniform => Ok((self.mul(index, Operand::i64(self.lanes)), Shape::Rows(row))),
            Shape::Affine(_) if is_row && is_zero(self.counter.1) => Ok((index, private_memory())),
            _ => Err(No::Rows),
        }
    }
    /// Whether places of interleaved memory, so many from an index on, are in the row of the lane. Refused: those of other rows, and
    /// where that cannot be shown.
    fn stays(&self, pointer: Operand, index: Operand, count: Operand) -> Res<()> {
        let Some(root) = pointer.as_reg().and_then(self.known.root) else { return Ok(()) };
        let Some(row) = self.known.rows.get(&root) else { return Ok(()) };
        let way = crate::schedule::added::way(pointer, root, self.known.offsets).ok_or(No::Rows)?;
        let mut terms: Vec<Operand> =
            [index].into_iter().chain(way.into_iter().map(|(index, _)| index)).collect();
        let is_row = |a: &Operand| a.as_reg().is_some_and(|r| self.products.get(&r) == Some(row));
        let chosen = terms.iter().position(is_row).ok_or(No::Rows)?;
        terms.remove(chosen);
        let stays = self.known.ranges.is_in_row(&terms, count, *row, &self.asked);
        if stays { Ok(()) } else { Err(No::Rows) }
    }
    pub(super) fn place(&mut self, pointer: Operand, index: Operand) -> Res<Place> {
        self.stays(pointer, index, Operand::i64(1))?;
        let pointer = self.inside(pointer)?;
        let (here, shape) = self.moved(pointer, index)?;
        match shape {
            Shape::Pointer { stride, index, private: _ } => {
                let index = index.map_or(here, |a| self.add(a, here));
                Ok(Place { pointer, index, stride, same: false })
            }
            Shape::Rows(_) => Err(No::Rows),
            _ => Ok(Place { pointer, index: here, stride: Operand::i64(0), same: true }),
        }
    }
    pub(super) fn load(&mut self, to: Reg, pointer: Operand, index: Operand) -> Res<()> {
        let place = self.place(pointer, index)?;
        if place.same {
            return self.define_same(to, Shape::Uniform, |to| Ins::Load { to, pointer, index });
        }
        if self.ty(to.into()) == Ty::Pointer {
            return Err(No::Pointer);
        }
        let mask = self.mask;
        let Place { pointer, index, stride, .. } = place;
        self.define(to, |v, to| v.emit(Ins::LoadLanes { to, pointer, index, stride, mask }))
    }
    pub(super) fn offset(
        &mut self,
        to: Reg,
        pointer: Operand,
        index: Operand,
        ty: Ty,
        room: Option<Operand>,
    ) -> Res<()> {
        if !self.is_single(to) {
            return Err(No::Pointer);
        }
        let pointer = self.inside(pointer)?;
        let (by, shape) = self.moved(pointer, index)?;
        let apart = match shape {
            Shape::Pointer { stride, index, private: false } => {
                index.is_some() || !matches!(stride.as_i64(), Some(0 | 1))
            }
            _ => false,
        };
        let worth = apart && self.mask.is_none();
        let filled = if worth { (self.is_filled_and_read_often)(to) } else { None };
        let fills_it = |(by, count): &(Reg, Operand)| room == Some(*count) && self.is_single(*by);
        let filled = filled.filter(fills_it).map(|(by, _)| by);
        let often = worth && (filled.is_some() || (self.is_read_often)(to));
        let room = room.filter(|room| often && self.is_same(*room));
        let Some(room) = room else {
            self.emit(Ins::Offset { to, pointer, index: by, ty, room: None });
            self.shapes.insert(to, shape);
            return Ok(());
        };
        // The row of each lane is copied to where lanes lie side by side; or filled there, and copied to its place after that.
        let row = self.reg(Ty::Pointer, "row");
        self.emit(Ins::Offset { to: row, pointer, index: by, ty, room: None });
        self.shapes.insert(row, shape);
        let memory = self.reg(Ty::Pointer, "packed");
        let count = self.columns(room);
        self.emit(Ins::Alloc { to: memory, count, ty });
        self.shapes.insert(memory, private_memory());
        match filled {
            Some(by) => self.filled.push(Filled { by, memory, row, count: room, ty }),
            None => self.copy(memory.into(), row.into(), room, ty)?,
        }
        let (pointer, index) = (memory.into(), Operand::i64(0));
        self.emit(Ins::Offset { to, pointer, index, ty, room: None });
        self.shapes.insert(to, private_memory());
        Ok(())
    }
    pub(super) fn fill(&mut self, pointer: Operand, count: Operand, value: Operand, ty: Ty) -> Res<()> {
        self.stays(pointer, Operand::i64(0), count)?;
        let pointer = self.inside(pointer)?;
        let shape = self.shape(pointer);
        if let Shape::Pointer { private: true, index: None, stride } = shape
            && stride.as_i64() == Some(1)
            && self.is_same(count)
            && self.is_same(value)
            && self.mask.is_none()
        {
            let count = self.columns(count);
            self.emit(Ins::Fill { pointer, count, value, ty });
            return Ok(());
        }
        self.every(count, &mut |v, j| v.ins(&Ins::Store { pointer, index: j, value, ty }))
    }
    pub(super) fn copy(&mut self, to: Operand, from: Operand, count: Operand, ty: Ty) -> Res<()> {
        self.stays(to, Operand::i64(0), count)?;
        self.stays(from, Operand::i64(0), count)?;
        let (to, from) = (self.inside(to)?, self.inside(from)?);
        let whole = |s: Shape| match s {
            Shape::Pointer { private: true, index: None, stride } => stride.as_i64() == Some(1),
            _ => false,
        };
        if whole(self.shape(to)) && whole(self.shape(from)) && self.is_same(count) && self.mask.is_none() {
            let count = self.columns(count);
            self.emit(Ins::Copy { to, from, count, ty });
            return Ok(());
        }
        let s = ty.scalar().ok_or(No::Pointer)?;
        self.every(count, &mut |v, j| {
            let x = v.reg(Ty::Scalar(s), "x");
            v.ins(&Ins::Load { to: x, pointer: from, index: j })?;
            v.ins(&Ins::Store { pointer: to, index: j, value: x.into(), ty })
        })
    }
    /// A loop from 0 up to `count`.
    fn every(&mut self, count: Operand, f: &mut dyn FnMut(&mut Self, Operand) -> Res<()>) -> Res<()> {
        let j = self.reg(Ty::I64, "j");
        self.counted(j, Operand::i64(0), count, Order::Given, &mut |v, j| {
            v.asked.push((j, count));
            f(v, j)
        })
    }
}
