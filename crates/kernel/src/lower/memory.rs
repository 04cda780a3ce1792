//! Loads, stores, copies and new arrays.

use super::rep::{AccRep, ArrayRep, Leaf, Rep, arrays, kinds, unfolded, words};
use super::{Lower, Res};
use crate::ir::{Ins, Operand, Order, Ty};
use pullback_base::index::Index;
use pullback_core::{Type, TypeId, Var};

/// The value of a word of an alternative that is not there.
pub(super) fn absent(ty: Ty) -> Operand {
    match ty {
        Ty::Scalar(s) | Ty::Lanes(s, _) => Operand::Const(s.zero()),
        Ty::Pointer => Operand::Null,
    }
}

impl Lower<'_> {
    /// The words of a value. Arrays are packed first: whoever takes words may count on it.
    pub(super) fn flatten(&mut self, rep: &Rep, ty: &Type) -> Res<Vec<Operand>> {
        let mut out = Vec::new();
        self.push_flat(rep, ty, &mut out)?;
        Ok(out)
    }
    fn push_flat(&mut self, rep: &Rep, ty: &Type, out: &mut Vec<Operand>) -> Res<()> {
        match (rep, ty) {
            (Rep::Scalar(x), _) => out.push(*x),
            (Rep::Tuple(items), Type::Tuple(types)) => {
                for (item, t) in items.iter().zip(types.iter()) {
                    self.push_flat(item, t, out)?;
                }
            }
            (Rep::Tuple(items), Type::Acc(inner)) => {
                if let Type::Tuple(types) = &**inner {
                    for (item, t) in items.iter().zip(types.iter()) {
                        self.push_flat(item, &Type::acc(t.clone()), out)?;
                    }
                }
            }
            (Rep::Sum(tag, variants), Type::Sum(types)) => {
                out.push(*tag);
                for (fields, variant) in variants.iter().zip(types.iter()) {
                    for (field, t) in fields.iter().zip(&variant.fields) {
                        self.push_flat(field, t, out)?;
                    }
                }
            }
            (Rep::Array(a), _) => {
                let a = self.pack(a, ty.base())?;
                push_array(&a, out);
            }
            (Rep::Acc(a), _) => {
                push_array(&a.array, out);
                for (within, n) in a.within.iter().zip(&a.array.dims) {
                    let (low, high) = within.unwrap_or((Operand::i64(0), *n));
                    out.extend([low, high]);
                }
                out.push(a.there);
            }
            (Rep::Record(_, pointers), _) => out.extend(pointers),
            (rep, ty) => panic!("{rep:?} is not of type {ty:?}"),
        }
        Ok(())
    }
    /// The value with these words.
    pub(super) fn unflatten(&mut self, ty: &Type, from: &mut dyn Iterator<Item = Operand>) -> Res<Rep> {
        let next = |from: &mut dyn Iterator<Item = Operand>| from.next().expect("a word for each part");
        Ok(match ty {
            Type::Scalar(_) => Rep::Scalar(next(from)),
            Type::Tuple(items) => {
                Rep::Tuple(items.iter().map(|t| self.unflatten(t, from)).collect::<Res<_>>()?)
            }
            Type::Sum(variants) => {
                let tag = next(from);
                let mut all = Vec::new();
                for v in variants.iter() {
                    all.push(v.fields.iter().map(|t| self.unflatten(t, from)).collect::<Res<_>>()?);
                }
                Rep::Sum(tag, all)
            }
            Type::Array(_) => {
                let leaves = words(self.program, ty.base())?;
                let leaves = leaves.into_iter().map(|ty| Leaf::Memory { pointer: next(from), ty }).collect();
                let dims: Vec<Operand> = (0..ty.rank()).map(|_| next(from)).collect();
                for _ in 0..ty.rank() {
                    next(from);
                }
                let strides = self.row_major(&dims);
                Rep::Array(ArrayRep { dims, strides, leaves, packed: true })
            }
            Type::Acc(inner) => match &**inner {
                Type::Tuple(items) => {
                    let items = items.iter().map(|t| self.unflatten(&Type::acc(t.clone()), from));
                    Rep::Tuple(items.collect::<Res<_>>()?)
                }
                inner => {
                    let leaves = words(self.program, inner.base())?;
                    let leaves =
                        leaves.into_iter().map(|ty| Leaf::Memory { pointer: next(from), ty }).collect();
                    let dims = (0..inner.rank()).map(|_| next(from)).collect();
                    let strides = (0..inner.rank()).map(|_| next(from)).collect();
                    let within = (0..inner.rank()).map(|_| Some((next(from), next(from)))).collect();
                    let array = ArrayRep { dims, strides, leaves, packed: false };
                    Rep::Acc(AccRep { array, there: next(from), within })
                }
            },
            Type::Named(id) => {
                let pointers = kinds(self.program, *id).iter().map(|_| next(from)).collect();
                Rep::Record(*id, pointers)
            }
        })
    }
    /// Notes which of the registers that were made from a number on point to arrays; they are words of a value.
    pub(super) fn note_arrays(&mut self, ty: &Type, words: &[Operand], from: usize) -> Res<()> {
        for (pointer, shape) in arrays(self.program, ty, words)? {
            if let Some(r) = pointer.as_reg().filter(|r| r.index() >= from) {
                self.regs[r].facts.array = Some(Box::new(shape));
            }
        }
        Ok(())
    }
    /// A new record that holds a value of the sum that a recursive type stands for.
    pub(super) fn fold(&mut self, id: TypeId, sum: &Rep) -> Res<Rep> {
        let ty = unfolded(self.program, id);
        let (values, types) = (self.flatten(sum, &ty)?, words(self.program, &ty)?);
        let mut pointers = Vec::new();
        for kind in kinds(self.program, id) {
            let here: Vec<Operand> =
                values.iter().zip(&types).filter(|(_, t)| **t == kind).map(|(v, _)| *v).collect();
            let to = self.alloc(Operand::i64(here.len() as i64), kind, "record");
            for (k, value) in here.into_iter().enumerate() {
                let index = Operand::i64(k as i64);
                self.emit(Ins::Store { pointer: to.into(), index, value, ty: kind });
            }
            pointers.push(to.into());
        }
        Ok(Rep::Record(id, pointers))
    }
    /// The sum in a record.
    pub(super) fn unfold(&mut self, id: TypeId, pointers: &[Operand]) -> Res<Rep> {
        let ty = unfolded(self.program, id);
        let kinds = kinds(self.program, id);
        let (mut at, before) = (vec![0; kinds.len()], self.regs.len());
        let mut values = Vec::new();
        for t in words(self.program, &ty)? {
            let kind = kinds.iter().position(|k| *k == t).expect("a kind for each word");
            let to = self.reg(t, "field");
            self.emit(Ins::Load { to, pointer: pointers[kind], index: Operand::i64(at[kind]) });
            at[kind] += 1;
            values.push(Operand::Reg(to));
        }
        self.note_arrays(&ty, &values, before)?;
        self.unflatten(&ty, &mut values.into_iter())
    }

    pub(super) fn row_major(&mut self, dims: &[Operand]) -> Vec<Operand> {
        let mut strides = vec![Operand::i64(1); dims.len()];
        for k in (1..dims.len()).rev() {
            strides[k - 1] = self.mul(strides[k], dims[k]);
        }
        strides
    }
    /// Memory for an array. The sizes are not negative.
    pub(super) fn new_array(&mut self, dims: Vec<Operand>, elem: &Type) -> Res<ArrayRep> {
        let leaves = words(self.program, elem)?;
        self.check_elements(&dims);
        let strides = self.row_major(&dims);
        let count = match dims.first() {
            None => Operand::i64(1),
            Some(n) => self.mul(*n, strides[0]),
        };
        let leaves = leaves.into_iter().map(|ty| {
            let to = self.alloc(count, ty, "memory");
            Leaf::Memory { pointer: to.into(), ty }
        });
        let leaves = leaves.collect();
        Ok(ArrayRep { dims, strides, leaves, packed: true })
    }
    /// Memory for the array of a variable: where it is wanted, else new.
    pub(super) fn array_for(&mut self, v: Option<Var>, dims: Vec<Operand>, elem: &Type) -> Res<ArrayRep> {
        match v.and_then(|v| self.wanted.remove(&v)) {
            Some(place) => Ok(place),
            None => self.new_array(dims, elem),
        }
    }

    /// The position of leading indices, in elements.
    pub(super) fn position(&mut self, array: &ArrayRep, ix: &[Operand]) -> Operand {
        let mut p = Operand::i64(0);
        for (i, stride) in ix.iter().zip(&array.strides) {
            let step = self.mul(*i, *stride);
            p = self.add(p, step);
        }
        p
    }
    /// The part of an array at leading indices in range.
    pub(super) fn part(&mut self, array: &ArrayRep, ix: &[Operand]) -> ArrayRep {
        let room = array.packed.then(|| ix.len().checked_sub(1).map(|k| array.strides[k])).flatten();
        self.part_with(array, ix, room)
    }
    /// The same at leading indices that are in range if a condition holds. Else the part is not there, and has no room.
    pub(super) fn part_if(&mut self, there: Operand, array: &ArrayRep, ix: &[Operand]) -> ArrayRep {
        if there == Operand::bool(true) { self.part(array, ix) } else { self.part_with(array, ix, None) }
    }
    fn part_with(&mut self, array: &ArrayRep, ix: &[Operand], room: Option<Operand>) -> ArrayRep {
        let p = self.position(array, ix);
        let leaves = array.leaves.iter().map(|leaf| self.moved(*leaf, p, room)).collect();
        ArrayRep {
            dims: array.dims[ix.len()..].to_vec(),
            strides: array.strides[ix.len()..].to_vec(),
            leaves,
            packed: array.packed,
        }
    }
    /// The leaf seen from another position, from which on there are `room` elements, if that is known.
    pub(super) fn moved(&mut self, leaf: Leaf, p: Operand, room: Option<Operand>) -> Leaf {
        match leaf {
            Leaf::Memory { pointer, ty } if p.as_i64() != Some(0) => {
                let to = self.reg(Ty::Pointer, "part");
                self.emit(Ins::Offset { to, pointer, index: p, ty, room });
                if matches!(pointer, Operand::Reg(whole) if self.in_turn.contains(&whole)) {
                    self.in_turn.insert(to);
                }
                Leaf::Memory { pointer: to.into(), ty }
            }
            Leaf::Count { start } => Leaf::Count { start: self.add(start, p) },
            Leaf::Memory { .. } | Leaf::Same { .. } => leaf,
        }
    }
    pub(super) fn load_leaf(&mut self, leaf: Leaf, p: Operand) -> Operand {
        match leaf {
            Leaf::Memory { pointer, ty } => {
                let to = self.reg(ty, "x");
                self.emit(Ins::Load { to, pointer, index: p });
                to.into()
            }
            Leaf::Count { start } => self.add(start, p),
            Leaf::Same { value, ty: _ } => value,
        }
    }
    /// The element or part of this type at leading indices in range.
    pub(super) fn element(&mut self, array: &ArrayRep, ix: &[Operand], ty: &Type) -> Res<Rep> {
        if let Type::Array(_) = ty {
            return Ok(Rep::Array(self.part(array, ix)));
        }
        let p = self.position(array, ix);
        let before = self.regs.len();
        let words: Vec<Operand> = array.leaves.iter().map(|leaf| self.load_leaf(*leaf, p)).collect();
        self.note_arrays(ty, &words, before)?;
        self.unflatten(ty, &mut words.into_iter())
    }
    /// Writes an element or part of this type at leading indices in range. The array is in memory.
    pub(super) fn store(&mut self, array: &ArrayRep, ix: &[Operand], value: &Rep, ty: &Type) -> Res<()> {
        if let Rep::Array(value) = value {
            let to = self.part(array, ix);
            return self.copy(&to, value);
        }
        let words = self.flatten(value, ty)?;
        let index = self.position(array, ix);
        for (leaf, value) in array.leaves.iter().zip(words) {
            if let Leaf::Memory { pointer, ty } = *leaf {
                self.emit(Ins::Store { pointer, index, value, ty });
            }
        }
        Ok(())
    }
    /// Copies all elements. Both have the same sizes; `to` is in memory.
    pub(super) fn copy(&mut self, to: &ArrayRep, from: &ArrayRep) -> Res<()> {
        if to.same_place(from) {
            return Ok(());
        }
        let mut slow = Vec::new();
        for (target, source) in to.leaves.iter().zip(&from.leaves) {
            let Leaf::Memory { pointer, ty } = *target else { continue };
            match *source {
                Leaf::Memory { pointer: from_pointer, .. } if to.packed && from.packed => {
                    let count = self.product(&to.dims);
                    self.emit(Ins::Copy { to: pointer, from: from_pointer, count, ty });
                }
                Leaf::Same { value, .. } if to.packed => {
                    let count = self.product(&to.dims);
                    self.emit(Ins::Fill { pointer, count, value, ty });
                }
                source => slow.push((pointer, ty, source)),
            }
        }
        if slow.is_empty() {
            return Ok(());
        }
        let places = [to.strides.clone(), from.strides.clone()];
        self.every(&to.dims.clone(), &places, &mut Vec::new(), &mut |s, at| {
            for (pointer, ty, source) in &slow {
                let value = s.load_leaf(*source, at[1]);
                s.emit(Ins::Store { pointer: *pointer, index: at[0], value, ty: *ty });
            }
            Ok(())
        })
    }
    /// Runs `f` at every index of a shape, with the positions under each list of strides. The order does not matter to `f`.
    pub(super) fn every(
        &mut self,
        dims: &[Operand],
        strides: &[Vec<Operand>],
        at: &mut Vec<Operand>,
        f: &mut dyn FnMut(&mut Self, &[Operand]) -> Res<()>,
    ) -> Res<()> {
        self.every_in(&Order::Any(Vec::new()), dims, strides, at, f)
    }
    /// The same in an order.
    pub(super) fn every_in(
        &mut self,
        order: &Order,
        dims: &[Operand],
        strides: &[Vec<Operand>],
        at: &mut Vec<Operand>,
        f: &mut dyn FnMut(&mut Self, &[Operand]) -> Res<()>,
    ) -> Res<()> {
        if at.is_empty() {
            at.resize(strides.len(), Operand::i64(0));
        }
        let depth = strides.first().map_or(0, Vec::len) - dims.len();
        let Some((n, rest)) = dims.split_first() else { return f(self, at) };
        let base = at.clone();
        self.count(*n, order.clone(), |s, i| {
            let mut here: Vec<Operand> = Vec::with_capacity(base.len());
            for (b, strides) in base.iter().zip(strides) {
                let step = s.mul(i, strides[depth]);
                here.push(s.add(*b, step));
            }
            s.every_in(order, rest, strides, &mut here, f)
        })
    }
    /// The same elements in memory, in row-major order.
    pub(super) fn pack(&mut self, array: &ArrayRep, elem: &Type) -> Res<ArrayRep> {
        if array.packed && array.in_memory() { Ok(array.clone()) } else { self.copied(array, elem) }
    }
    /// A copy.
    pub(super) fn copied(&mut self, array: &ArrayRep, elem: &Type) -> Res<ArrayRep> {
        let to = self.new_array(array.dims.clone(), elem)?;
        self.copy(&to, array)?;
        Ok(to)
    }
}

fn push_array(a: &ArrayRep, out: &mut Vec<Operand>) {
    for leaf in &a.leaves {
        if let Leaf::Memory { pointer, .. } = leaf {
            out.push(*pointer);
        }
    }
    out.extend(&a.dims);
    out.extend(&a.strides);
}
