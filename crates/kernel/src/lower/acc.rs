//! Accumulators: memory that is added to.
//!
//! Floats are added by one instruction, in any order. What has alternatives is loaded, added ([`super::plus`]) and stored: the alternative zero is what
//! the other is. Then memory points to what was added, so that stays as it is from there on, iterations that add keep their memory, and
//! come in their order ([`Lower::added`]).

use super::aliasing::Roots;
use super::gather::only_adds_arrays;
use super::memory::absent;
use super::rep::{AccRep, ArrayRep, Leaf, Rep, has_boxes, unfolded, words};
use super::{Lower, Res, Val};
use crate::ir::{Ins, Operand, Order, Reg};
use pullback_base::index::IdSet;
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Lam, SliceDim, Type, Var, View};
use pullback_prim::{Op, Scalar};

/// How what was set apart goes back to its accumulator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Back {
    /// In the same order.
    Same,
    /// Element `i` to element `(i + k) mod n`.
    Rotated(Operand),
}

/// What is said of additions.
pub(super) const PART: &str = "addition into an accumulator";

/// A part of an accumulator that was set apart, to be added when the body ends in which that was done.
pub(super) struct Deferred {
    array: ArrayRep,
    to: AccRep,
    /// The type of the array.
    ty: Type,
    back: Back,
    /// Whether it was set apart: where that was in a branch.
    pub(super) ran: Option<Operand>,
}

impl Deferred {
    /// The registers that the addition reads.
    pub(super) fn registers(&self) -> Vec<Reg> {
        let mut operands = vec![self.to.there];
        operands.extend(self.to.within.iter().flatten().flat_map(|(low, high)| [*low, *high]));
        if let Back::Rotated(by) = self.back {
            operands.push(by);
        }
        for array in [&self.array, &self.to.array] {
            operands.extend(array.dims.iter().chain(&array.strides));
            operands.extend(array.leaves.iter().map(|leaf| match leaf {
                Leaf::Memory { pointer: a, .. } | Leaf::Count { start: a } | Leaf::Same { value: a, .. } => {
                    *a
                }
            }));
        }
        operands.into_iter().filter_map(Operand::as_reg).collect()
    }
}

/// Whether values of this type have alternatives in them: they are added by more than one instruction.
fn has_alternatives(ty: &Type) -> bool {
    match ty {
        Type::Scalar(_) | Type::Acc(_) => false,
        Type::Array(_) => has_alternatives(ty.base()),
        Type::Tuple(items) => items.iter().any(has_alternatives),
        Type::Sum(_) | Type::Named(_) => true,
    }
}

impl Lower<'_> {
    pub(super) fn with_acc(&mut self, pat: &[Var], inits: &[Atom], lam: &Lam) -> Res<Vec<Val>> {
        let users = free_vars_lam(lam);
        let mut accs = Vec::new();
        for (k, init) in inits.iter().enumerate() {
            let ty = self.atom_type(*init);
            let others = inits.iter().enumerate().filter(|(j, _)| *j != k).filter_map(|(_, a)| a.var());
            let others: IdSet<Var> = users.iter().copied().chain(others).collect();
            accs.push((self.opened(pat.get(k).copied(), *init, &ty, &others)?, ty));
        }
        if let [((Rep::Acc(acc), _), _)] = &accs[..]
            && only_adds_arrays(lam, acc.array.rank(), self)
        {
            self.gathered(lam, &acc.clone())?;
            return accs
                .into_iter()
                .map(|((rep, roots), ty)| Ok(Val { rep: self.closed(&rep, &ty)?, roots }))
                .collect();
        }
        let names: Vec<Roots> = accs
            .iter()
            .map(|(_, ty)| if has_alternatives(ty) { self.owners.fresh() } else { Roots::new() })
            .collect();
        let args = accs
            .iter()
            .zip(&names)
            .map(|(((rep, _), _), name)| Val { rep: rep.clone(), roots: name.clone() });
        let results = self.apply(lam, args.collect())?;
        // Nobody adds to them any more.
        names.iter().flatten().for_each(|name| {
            self.added.remove(name);
        });
        let mut out = Vec::new();
        for ((rep, mut roots), ty) in accs {
            if has_boxes(&ty) {
                roots.extend(self.owners.foreign());
            }
            out.push(Val { rep: self.closed(&rep, &ty)?, roots });
        }
        out.extend(results);
        Ok(out)
    }
    /// An accumulator that starts with a value.
    fn opened(&mut self, v: Option<Var>, init: Atom, ty: &Type, others: &IdSet<Var>) -> Res<(Rep, Roots)> {
        let val = self.val(init);
        let free = init.var().is_some_and(|v| self.owners.may_write(v, others));
        if has_boxes(ty) {
            self.owners.keep(&val.roots);
        }
        match (&val.rep, ty) {
            (Rep::Array(a), _) => {
                let take = a.is_writable() && free;
                let (array, roots) = if take {
                    self.note_used(&val.rep);
                    self.note_made(&val.rep);
                    (a.clone(), val.roots)
                } else {
                    let to = self.array_for(v, a.dims.clone(), ty.base())?;
                    self.copy(&to, a)?;
                    (to, self.owners.fresh())
                };
                Ok((Rep::Acc(AccRep::whole(array)), roots))
            }
            (rep, ty) => Ok((self.cells(rep, ty)?, Roots::new())),
        }
    }
    /// Accumulators for what is no array: cells of memory.
    fn cells(&mut self, rep: &Rep, ty: &Type) -> Res<Rep> {
        match (rep, ty) {
            (Rep::Tuple(items), Type::Tuple(types)) => {
                let cells = items.iter().zip(types.iter()).map(|(i, t)| self.cells(i, t));
                Ok(Rep::Tuple(cells.collect::<Res<_>>()?))
            }
            _ => {
                let dims = match rep {
                    Rep::Array(a) => a.dims.clone(),
                    _ => Vec::new(),
                };
                let array = self.new_array(dims, ty.base())?;
                self.store(&array, &[], rep, ty)?;
                Ok(Rep::Acc(AccRep::whole(array)))
            }
        }
    }
    /// What an accumulator holds at the end.
    fn closed(&mut self, rep: &Rep, ty: &Type) -> Res<Rep> {
        match (rep, ty) {
            (Rep::Acc(a), Type::Array(_)) => Ok(Rep::Array(a.array.clone())),
            (Rep::Acc(a), _) => self.element(&a.array.clone(), &[], ty),
            (Rep::Tuple(items), Type::Tuple(types)) => {
                let items = items.iter().zip(types.iter()).map(|(i, t)| self.closed(i, t));
                Ok(Rep::Tuple(items.collect::<Res<_>>()?))
            }
            (rep, _) => panic!("expected an accumulator, found {rep:?}"),
        }
    }

    pub(super) fn acc_view(&mut self, acc: Atom, view: &View) -> Res<Rep> {
        let a = match self.rep(acc) {
            Rep::Acc(a) => a,
            Rep::Tuple(items) => match view {
                View::Proj(i) => return Ok(items[*i].clone()),
                _ => panic!("a view of a product of accumulators"),
            },
            rep => panic!("expected an accumulator, found {rep:?}"),
        };
        Ok(Rep::Acc(match view {
            View::Index(ix) => {
                let operands = self.scalars(ix);
                let there = self.inside(acc, &a, ix, &operands);
                let array = self.part_if(there, &a.array, &operands);
                AccRep { array, there, within: a.within[ix.len()..].to_vec() }
            }
            View::Slice(s) => self.slice_view(&a, s),
            View::Proj(_) => panic!("a component of an array accumulator"),
            View::Rearrange(perm) => {
                let at = |k: usize| perm.get(k).copied().unwrap_or(k);
                let within = (0..a.within.len()).map(|k| a.within[at(k)]).collect();
                AccRep { array: self.rearranged(perm, &a.array), there: a.there, within }
            }
            View::Reshape { shape, from } => self.reshape_view(acc, &a, shape, *from)?,
            View::Reverse => {
                let n = a.array.dims[0];
                let mut within = a.within.clone();
                if let Some((low, high)) = within[0] {
                    within[0] = Some((self.sub(n, high), self.sub(n, low)));
                }
                AccRep { array: self.reversed(&a.array), there: a.there, within }
            }
            View::Rotate(k) => {
                let k = self.scalar(*k);
                self.set_apart(acc, a, Back::Rotated(k))?
            }
        }))
    }
    /// A slice of an accumulator. Elements outside are ignored.
    fn slice_view(&mut self, a: &AccRep, s: &SliceDim) -> AccRep {
        if self.is_reversal(a, s) {
            return AccRep { array: self.reversed(&a.array), ..a.clone() };
        }
        let (start, len, stride) = (self.scalar(s.start), self.size(s.len), self.scalar(s.stride));
        let (zero, one) = (Operand::i64(0), Operand::i64(1));
        let (first, end) = a.within[0].unwrap_or((zero, a.array.dims[0]));
        // Element e of the slice is there if first <= start + e * stride < end.
        let forward = self.op(Op::Le, Scalar::I64, &[zero, stride]);
        let back = self.op(Op::Sub, Scalar::I64, &[zero, stride]);
        let step = self.op(Op::Select, Scalar::I64, &[forward, stride, back]);
        let step = self.op(Op::Max, Scalar::I64, &[step, one]);
        let (below, last) = (self.sub(start, first), self.sub(end, one));
        let above = self.sub(last, start);
        let before = self.op(Op::Select, Scalar::I64, &[forward, below, above]);
        let after = self.op(Op::Select, Scalar::I64, &[forward, above, below]);
        let over = |lower: &mut Self, x: Operand| match step.as_i64() {
            Some(1) => x,
            _ => lower.op(Op::Div, Scalar::I64, &[x, step]),
        };
        let skipped = over(self, before);
        let low = self.op(Op::Sub, Scalar::I64, &[zero, skipped]);
        let low = self.op(Op::Max, Scalar::I64, &[low, zero]);
        let reached = over(self, after);
        let high = self.add(reached, one);
        let mut high = self.op(Op::Min, Scalar::I64, &[high, len]);
        let mut there = a.there;
        if stride.as_i64() != Some(1) {
            // Without a step all elements are one.
            let still = self.op(Op::Eq, Scalar::I64, &[stride, zero]);
            high = self.op(Op::Select, Scalar::I64, &[still, len, high]);
            let inside = self.between(start, (first, end));
            let moves = self.not(still);
            let fine = self.either(moves, inside);
            there = self.both(there, fine);
        }
        let mut within = a.within.clone();
        within[0] = Some((low, high));
        AccRep { array: self.sliced(&a.array, (start, len, stride)), there, within }
    }
    /// Whether the slice is everything from the last element to the first, as loops leave it that read from the first to the last.
    fn is_reversal(&mut self, a: &AccRep, s: &SliceDim) -> bool {
        let last = s.start.var().and_then(|v| self.last.get(&v).copied());
        let ends_there = last.is_some_and(|n| self.called(n) == self.called(self.shapes.name(s.len)));
        let back = s.stride == Atom::i64(-1);
        back && ends_there && a.within[0].is_none() && self.scalar(s.len) == a.array.dims[0]
    }
    pub(super) fn between(&mut self, i: Operand, (low, high): (Operand, Operand)) -> Operand {
        let from = self.op(Op::Le, Scalar::I64, &[low, i]);
        let to = self.op(Op::Lt, Scalar::I64, &[i, high]);
        self.both(from, to)
    }
    fn reshape_view(&mut self, acc: Atom, a: &AccRep, shape: &[Atom], from: usize) -> Res<AccRep> {
        let sizes: Vec<Operand> = shape.iter().map(|n| self.size(*n)).collect();
        if !self.has_sizes(acc, shape) {
            self.check_reshape(&a.array, from, &sizes);
        }
        let dims: Vec<Operand> = sizes.iter().chain(&a.array.dims[from..]).copied().collect();
        let gaps = a.within[..from].iter().any(Option::is_some) || (!a.array.packed && from > 1);
        if gaps {
            let apart = self.set_apart(acc, a.clone(), Back::Same)?;
            let strides = self.row_major(&dims);
            let array = ArrayRep { dims, strides, ..apart.array };
            return Ok(AccRep::whole(array));
        }
        // Without gaps among the leading dimensions, the last of them has the step of all.
        let step = a.array.strides[..from].last().copied().unwrap_or(Operand::i64(1));
        let mut strides = vec![step; sizes.len()];
        for k in (1..sizes.len()).rev() {
            strides[k - 1] = self.mul(strides[k], sizes[k]);
        }
        strides.extend(&a.array.strides[from..]);
        let within = vec![None; sizes.len()].into_iter().chain(a.within[from..].iter().copied()).collect();
        Ok(AccRep { array: ArrayRep { dims, strides, ..a.array.clone() }, there: a.there, within })
    }
    /// Zeros that are added to instead, and added to the accumulator when the body ends.
    fn set_apart(&mut self, acc: Atom, to: AccRep, back: Back) -> Res<AccRep> {
        let ty = match self.atom_type(acc) {
            Type::Acc(t) => Type::clone(&t),
            t => t,
        };
        let array = self.new_array(to.array.dims.clone(), ty.base())?;
        let zero = self.zero(ty.base())?;
        let count = self.product(&array.dims);
        for (leaf, value) in array.leaves.iter().zip(zero) {
            if let Leaf::Memory { pointer, ty } = *leaf {
                self.emit(Ins::Fill { pointer, count, value, ty });
            }
        }
        self.deferred.push(Deferred { array: array.clone(), to, ty, back, ran: None });
        Ok(AccRep::whole(array))
    }
    /// The words of the zero of a type without arrays outside of alternatives: of those the first is zero.
    fn zero(&mut self, ty: &Type) -> Res<Vec<Operand>> {
        if let Type::Named(id) = ty {
            let words = self.zero(&unfolded(self.program, *id))?;
            let sum = self.unflatten(&unfolded(self.program, *id), &mut words.into_iter())?;
            let record = self.fold(*id, &sum)?;
            return self.flatten(&record, ty);
        }
        Ok(words(self.program, ty)?.into_iter().map(absent).collect())
    }
    /// Adds what was set apart in this body to where it belongs.
    pub(super) fn add_deferred(&mut self, from: usize) -> Res<()> {
        for deferred in self.deferred.split_off(from).into_iter().rev() {
            let (block, ()) = self.block(|s| s.add_back(&deferred))?;
            match deferred.ran {
                None => block.into_iter().for_each(|ins| self.emit(ins)),
                Some(ran) => self.emit(Ins::If { condition: ran, then: block, otherwise: Vec::new() }),
            }
        }
        Ok(())
    }
    fn add_back(&mut self, Deferred { array, to, ty, back, .. }: &Deferred) -> Res<()> {
        let Back::Rotated(k) = *back else { return self.add_there(to, &Rep::Array(array.clone()), ty) };
        let n = array.dims[0];
        let some = self.op(Op::Lt, Scalar::I64, &[Operand::i64(0), n]);
        let (then, ()) = self.block(|s| {
            let shift = s.op(Op::Mod, Scalar::I64, &[k, n]);
            let rest = s.sub(n, shift);
            let (zero, one) = (Operand::i64(0), Operand::i64(1));
            // Element i of the view is element (i + k) mod n.
            for (view, own, len) in [(zero, shift, rest), (rest, zero, shift)] {
                let part = s.sliced(array, (view, len, one));
                let place = s.part_of_acc(to, own, len);
                s.add_there(&place, &Rep::Array(part), ty)?;
            }
            Ok(())
        })?;
        self.emit(Ins::If { condition: some, then, otherwise: Vec::new() });
        Ok(())
    }
    /// Rows `start .. start + len` of an accumulator, all in range.
    fn part_of_acc(&mut self, a: &AccRep, start: Operand, len: Operand) -> AccRep {
        let mut within = a.within.clone();
        if let Some((low, high)) = within[0] {
            let (low, high) = (self.sub(low, start), self.sub(high, start));
            let low = self.op(Op::Max, Scalar::I64, &[low, Operand::i64(0)]);
            within[0] = Some((low, self.op(Op::Min, Scalar::I64, &[high, len])));
        }
        let array = self.sliced(&a.array, (start, len, Operand::i64(1)));
        AccRep { array, there: a.there, within }
    }
    /// Whether an accumulator is there and the indices are in range.
    fn inside(&mut self, acc: Atom, a: &AccRep, ix: &[Atom], operands: &[Operand]) -> Operand {
        let dims = acc.var().map_or(Vec::new(), |v| self.shapes.of(v).to_vec());
        let mut all = a.there;
        for (k, (i, operand)) in ix.iter().zip(operands).enumerate() {
            let n = a.array.dims[k];
            let known = a.within[k].is_none() && self.in_range(*i, *operand, n, dims.get(k).copied());
            if !known {
                let inside = self.between(*operand, a.within[k].unwrap_or((Operand::i64(0), n)));
                all = self.both(all, inside);
            }
        }
        all
    }
    pub(super) fn acc_add(&mut self, acc: Atom, ix: &[Atom], value: Atom) -> Res<()> {
        let (rep, ty, val) = (self.rep(acc), self.atom_type(value), self.atom(value));
        if has_boxes(&ty) {
            self.owners.keep(&self.owners.of(value.var()));
        }
        self.adds_to(acc, &ty);
        if let Rep::Tuple(_) = rep {
            return self.add_parts(&rep, &val, &ty);
        }
        let Rep::Acc(a) = rep else { panic!("expected an accumulator") };
        let operands = self.scalars(ix);
        let there = self.inside(acc, &a, ix, &operands);
        let array = self.part_if(there, &a.array, &operands);
        let part = AccRep { array, there, within: a.within[ix.len()..].to_vec() };
        if let Rep::Array(added) = &val
            && !self.is_part(value, (acc, ix.len()))
        {
            self.check_shapes_if(part.there, PART, (&part.array.dims, &added.dims));
        }
        self.add_there(&part, &val, &ty)
    }
    /// Notes that values of this type are added to an accumulator.
    pub(super) fn adds_to(&mut self, acc: Atom, ty: &Type) {
        if has_alternatives(ty) {
            for root in self.owners.of(acc.var()) {
                *self.added.entry(root).or_default() |= has_boxes(ty);
            }
        }
    }
    /// What a body of a loop adds to accumulators from outside of it, of values with alternatives: `None` if nothing, else whether they
    /// point to memory.
    pub(super) fn adding<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> (T, Option<bool>) {
        let before = std::mem::take(&mut self.added);
        let out = body(self);
        let keeps = self.added.values().copied().reduce(|a, b| a || b);
        for (root, points) in before {
            *self.added.entry(root).or_default() |= points;
        }
        (out, keeps)
    }
    /// Adds what is there.
    fn add_there(&mut self, a: &AccRep, value: &Rep, ty: &Type) -> Res<()> {
        let (then, ()) = self.block(|s| {
            let (mut to, mut value) = (a.array.clone(), value.clone());
            for (k, within) in a.within.iter().enumerate() {
                if let (Some((low, high)), Rep::Array(v)) = (within, &value) {
                    let len = s.sub(*high, *low);
                    let len = s.op(Op::Max, Scalar::I64, &[len, Operand::i64(0)]);
                    to = s.clipped(&to, k, *low, len);
                    value = Rep::Array(s.clipped(v, k, *low, len));
                }
            }
            s.add_to(&to, &value, ty)
        })?;
        if a.there == Operand::bool(true) {
            then.into_iter().for_each(|ins| self.emit(ins));
        } else {
            self.emit(Ins::If { condition: a.there, then, otherwise: Vec::new() });
        }
        Ok(())
    }
    /// The elements `low .. low + len` of dimension `k`.
    fn clipped(&mut self, a: &ArrayRep, k: usize, low: Operand, len: Operand) -> ArrayRep {
        let p = self.mul(low, a.strides[k]);
        let leaves = a.leaves.iter().map(|leaf| self.moved(*leaf, p, None)).collect();
        let mut dims = a.dims.clone();
        dims[k] = len;
        ArrayRep { dims, strides: a.strides.clone(), leaves, packed: false }
    }
    fn add_parts(&mut self, acc: &Rep, value: &Rep, ty: &Type) -> Res<()> {
        match (acc, value, ty) {
            (Rep::Tuple(accs), Rep::Tuple(items), Type::Tuple(types)) => {
                for ((a, v), t) in accs.iter().zip(items).zip(types.iter()) {
                    self.add_parts(a, v, t)?;
                }
                Ok(())
            }
            (Rep::Acc(a), value, ty) => {
                if let Rep::Array(added) = value {
                    self.check_shapes_if(a.there, PART, (&a.array.dims, &added.dims));
                }
                self.add_there(&a.clone(), value, ty)
            }
            (rep, ..) => panic!("expected an accumulator, found {rep:?}"),
        }
    }
    pub(super) fn add_to(&mut self, to: &ArrayRep, value: &Rep, ty: &Type) -> Res<()> {
        let (to, elem) = (to.clone(), ty.base());
        match value {
            Rep::Array(v) => {
                let v = v.clone();
                let strides = [to.strides.clone(), v.strides.clone()];
                // Elements of a view may be one element, which instructions that add know.
                let order = if has_alternatives(elem) { Order::Given } else { Order::Any(Vec::new()) };
                self.every_in(&order, &to.dims.clone(), &strides, &mut Vec::new(), &mut |s, at| {
                    let words = v.leaves.iter().map(|l| s.load_leaf(*l, at[1])).collect();
                    s.add_words(&to, at[0], words, elem)
                })
            }
            value => {
                let words = self.flatten(value, ty)?;
                self.add_words(&to, Operand::i64(0), words, elem)
            }
        }
    }
    /// Adds the words of an element at a position.
    fn add_words(&mut self, to: &ArrayRep, index: Operand, words: Vec<Operand>, elem: &Type) -> Res<()> {
        if !has_alternatives(elem) {
            self.accumulate(to, index, words);
            return Ok(());
        }
        let value = self.unflatten(elem, &mut words.into_iter())?;
        let old: Vec<Operand> = to.leaves.iter().map(|leaf| self.load_leaf(*leaf, index)).collect();
        let old = self.unflatten(elem, &mut old.into_iter())?;
        let sum = self.plus_values(&old, &value, elem)?;
        let sum = self.flatten(&sum, elem)?;
        for (leaf, value) in to.leaves.iter().zip(sum) {
            if let Leaf::Memory { pointer, ty } = *leaf {
                self.emit(Ins::Store { pointer, index, value, ty });
            }
        }
        Ok(())
    }
    /// Adds the floats among the words of an element at a position.
    fn accumulate(&mut self, to: &ArrayRep, index: Operand, words: Vec<Operand>) {
        for (leaf, value) in to.leaves.iter().zip(words) {
            if let Leaf::Memory { pointer, ty } = *leaf
                && ty.scalar().is_some_and(Scalar::is_float)
            {
                self.emit(Ins::Accumulate { pointer, index, value, ty, atomic: false });
            }
        }
    }
}
