//! Array operations without functions: arithmetic on strides where that will do, loops where it will not.

use super::aliasing::Roots;
use super::rep::{ArrayRep, Leaf, Rep};
use super::{Lower, Res, Val};
use crate::ir::{Ins, Operand, Order, Text};
use pullback_base::RuntimeErrorKind;
use pullback_base::index::IdSet;
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Shaped, SliceDim, Type, Var};
use pullback_prim::{Op, Scalar};

impl Lower<'_> {
    /// Whether an index is known to be in range.
    pub(super) fn in_range(&self, i: Atom, operand: Operand, size: Operand, dim: Option<Dim>) -> bool {
        let size = match dim.map(|d| self.called(d)) {
            Some(Dim::Const(n)) => Some(n),
            _ => size.as_i64(),
        };
        if let (Some(i), Some(n)) = (operand.as_i64(), size) {
            return (0..n).contains(&i);
        }
        match (i, dim) {
            (Atom::Var(v), Some(d)) => self.below.get(&v).is_some_and(|n| self.called(*n) == self.called(d)),
            _ => false,
        }
    }
    /// Whether the index is outside.
    pub(super) fn outside(&mut self, i: Operand, size: Operand) -> Operand {
        let low = self.op(Op::Lt, Scalar::I64, &[i, Operand::i64(0)]);
        let high = self.op(Op::Le, Scalar::I64, &[size, i]);
        self.either(low, high)
    }
    /// Stops the program if leading indices are out of bounds.
    fn check_index(&mut self, array: Atom, rep: &ArrayRep, ix: &[Atom], operands: &[Operand]) {
        let dims = array.var().map_or(Vec::new(), |v| self.shapes.of(v).to_vec());
        self.check_indices((ix, operands), &rep.dims, &dims);
    }
    /// The same for an array of this shape, whose sizes have these names.
    pub(super) fn check_indices(
        &mut self,
        (ix, operands): (&[Atom], &[Operand]),
        shape: &[Operand],
        dims: &[Dim],
    ) {
        let mut bad = Operand::bool(false);
        for (k, (i, operand)) in ix.iter().zip(operands).enumerate() {
            if !self.in_range(*i, *operand, shape[k], dims.get(k).copied()) {
                let outside = self.outside(*operand, shape[k]);
                bad = self.either(bad, outside);
            }
        }
        let values = operands.iter().chain(shape).copied().collect();
        self.fail(bad, RuntimeErrorKind::OutOfBounds, Text::Index(ix.len()), values);
    }
    pub(super) fn index(&mut self, a: Atom, ix: &[Atom]) -> Res<Val> {
        let (array, operands) = (self.array(a), self.scalars(ix));
        self.check_index(a, &array, ix, &operands);
        let ty = self.atom_type(a);
        let ty = ty.peel(ix.len()).cloned().unwrap_or(ty);
        let rep = self.element(&array, &operands, &ty)?;
        let roots = if let Type::Scalar(_) = ty { Roots::new() } else { self.owners.of(a.var()) };
        Ok(Val { rep, roots })
    }

    /// Stops the program if a slice is out of bounds of a dimension.
    pub(super) fn check_slice(&mut self, s: &SliceDim, n: Operand) -> (Operand, Operand, Operand) {
        let (start, stride) = (self.scalar(s.start), self.scalar(s.stride));
        let len = self.size(s.len);
        let (zero, one) = (Operand::i64(0), Operand::i64(1));
        let some = self.op(Op::Lt, Scalar::I64, &[zero, len]);
        let first_out = self.outside(start, n);
        // How many steps there is room for on the side of the array to which the slice goes.
        let forward = self.op(Op::Lt, Scalar::I64, &[zero, stride]);
        let last = self.sub(n, one);
        let ahead = self.sub(last, start);
        let room = self.op(Op::Select, Scalar::I64, &[forward, ahead, start]);
        let back = self.op(Op::Max, Scalar::I64, &[stride, Operand::i64(-(1 << 62))]);
        let back = self.op(Op::Sub, Scalar::I64, &[zero, back]);
        let step = self.op(Op::Select, Scalar::I64, &[forward, stride, back]);
        let whole = self.op(Op::Max, Scalar::I64, &[step, one]);
        let most = if whole == one { room } else { self.op(Op::Quot, Scalar::I64, &[room, whole]) };
        let steps = self.sub(len, one);
        let moves = self.op(Op::Ne, Scalar::I64, &[stride, zero]);
        let far = self.op(Op::Lt, Scalar::I64, &[most, steps]);
        let far = self.both(moves, far);
        let out = self.either(first_out, far);
        let bad = self.both(some, out);
        self.fail(bad, RuntimeErrorKind::OutOfBounds, Text::Slice, vec![len, start, stride, n]);
        (start, len, stride)
    }
    /// The part of an array that a slice in range selects.
    pub(super) fn sliced(
        &mut self,
        a: &ArrayRep,
        (start, len, stride): (Operand, Operand, Operand),
    ) -> ArrayRep {
        let p = self.mul(start, a.strides[0]);
        let leaves = a.leaves.iter().map(|leaf| self.moved(*leaf, p, None)).collect();
        let (mut dims, mut strides) = (a.dims.clone(), a.strides.clone());
        dims[0] = len;
        strides[0] = self.mul(strides[0], stride);
        ArrayRep { dims, strides, leaves, packed: a.packed && stride.as_i64() == Some(1) }
    }
    pub(super) fn slice(&mut self, a: Atom, s: &SliceDim) -> Val {
        let (array, roots) = (self.array(a), self.owners.of(a.var()));
        let span = self.check_slice(s, array.dims[0]);
        let slice = self.sliced(&array, span);
        // In steps of none there may be more elements than the array has.
        if span.2.as_i64().is_none_or(|stride| stride == 0) {
            self.check_elements(&slice.dims);
        }
        Val { rep: Rep::Array(slice), roots }
    }

    /// The array, to be overwritten: itself if nobody else looks at it, else a copy.
    pub(super) fn writable(&mut self, pat: &[Var], a: Atom, others: &[Atom]) -> Res<(ArrayRep, Roots)> {
        let array = self.whole_array(a);
        let others: IdSet<Var> = others.iter().filter_map(|o| o.var()).collect();
        if array.is_writable() && a.var().is_some_and(|v| self.owners.may_write(v, &others)) {
            return Ok((array, self.owners.of(a.var())));
        }
        let elem = self.atom_type(a).base().clone();
        let to = self.array_for(pat.first().copied(), array.dims.clone(), &elem)?;
        self.copy(&to, &array)?;
        let mut roots = self.owners.fresh();
        if super::rep::has_boxes(&elem) {
            roots.extend(self.owners.of(a.var()));
        }
        Ok((to, roots))
    }
    /// A value that is written into an array: a copy if it is a part of that array.
    fn apart(&mut self, value: Atom, from: &Roots) -> Res<Val> {
        let val = self.whole(value);
        if let Rep::Array(a) = &val.rep
            && !val.roots.is_disjoint(from)
        {
            let elem = self.atom_type(value).base().clone();
            let rep = Rep::Array(self.copied(a, &elem)?);
            return Ok(Val { rep, roots: self.owners.fresh() });
        }
        Ok(val)
    }
    pub(super) fn update(&mut self, pat: &[Var], a: Atom, ix: &[Atom], value: Atom) -> Res<Val> {
        let (array, operands) = (self.form(a), self.scalars(ix));
        self.check_index(a, &array, ix, &operands);
        let roots = self.owners.of(a.var());
        let new = self.apart(value, &roots)?;
        if let Rep::Array(part) = &new.rep
            && !self.is_part(value, (a, ix.len()))
        {
            self.check_shapes(Shaped::Part.words(), &array.dims[ix.len()..], &part.dims);
        }
        let (to, mut roots) = self.writable(pat, a, &[])?;
        let ty = self.atom_type(value);
        self.store(&to, &operands, &new.rep, &ty)?;
        if super::rep::has_boxes(&ty) {
            roots.extend(new.roots);
        }
        Ok(Val { rep: Rep::Array(to), roots })
    }
    pub(super) fn update_slice(&mut self, pat: &[Var], a: Atom, s: &SliceDim, value: Atom) -> Res<Val> {
        let array = self.form(a);
        let span = self.check_slice(s, array.dims[0]);
        let roots = self.owners.of(a.var());
        let new = self.apart(value, &roots)?;
        let Rep::Array(part) = &new.rep else { panic!("expected an array") };
        let mut expected = array.dims.clone();
        expected[0] = span.1;
        let mut names = self.names(a);
        names[0] = self.shapes.name(s.len);
        if !self.same_sizes(&names, &self.names(value)) {
            self.check_shapes(Shaped::Slice.words(), &expected, &part.dims);
        }
        let (to, mut roots) = self.writable(pat, a, &[])?;
        let place = self.sliced(&to, span);
        self.copy(&place, part)?;
        roots.extend(new.roots.iter().copied().filter(|_| super::rep::has_boxes(&self.atom_type(value))));
        Ok(Val { rep: Rep::Array(to), roots })
    }
    pub(super) fn gather(&mut self, pat: &[Var], a: Atom, is: Atom) -> Res<Val> {
        let (array, indices) = (self.form(a), self.form(is));
        let ty = self.atom_type(a);
        let mut dims = array.dims.clone();
        dims[0] = indices.dims[0];
        let to = self.array_for(pat.first().copied(), dims, ty.base())?;
        let row = ty.peel(1).cloned().unwrap_or(ty.clone());
        let safe = match (indices.leaves[0], self.outer(is)) {
            (Leaf::Count { start }, Some(n)) => start.as_i64() == Some(0) && self.outer(a) == Some(n),
            _ => false,
        };
        self.count(indices.dims[0], Order::Any(Vec::new()), |s, k| {
            let indices = s.array(is);
            let p = s.position(&indices, &[k]);
            let i = s.load_leaf(indices.leaves[0], p);
            if !safe {
                s.check_row(i, &array.dims);
            }
            let array = s.array(a);
            let value = s.element(&array, &[i], &row)?;
            s.store(&to, &[k], &value, &row)
        })?;
        let mut roots = self.owners.fresh();
        if super::rep::has_boxes(ty.base()) {
            roots.extend(self.owners.of(a.var()));
        }
        Ok(Val { rep: Rep::Array(to), roots })
    }
    /// Stops the program if there is no row of this number in an array of this shape.
    pub(super) fn check_row(&mut self, i: Operand, shape: &[Operand]) {
        let bad = self.outside(i, shape[0]);
        let values = std::iter::once(i).chain(shape.iter().copied()).collect();
        self.fail(bad, RuntimeErrorKind::OutOfBounds, Text::Index(1), values);
    }
    /// The name of an array's outer size.
    fn outer(&self, a: Atom) -> Option<Dim> {
        a.var().and_then(|v| self.shapes.of(v).first().copied())
    }
    pub(super) fn literal(&mut self, pat: &[Var], elem: &Type, items: &[Atom]) -> Res<Val> {
        let mut dims = vec![Operand::i64(items.len() as i64)];
        match items.first() {
            Some(a) if elem.rank() > 0 => dims.extend(self.form(*a).dims),
            Some(_) => {}
            None => dims.extend(std::iter::repeat_n(Operand::i64(0), elem.rank())),
        }
        let to = self.array_for(pat.first().copied(), dims.clone(), elem.base())?;
        let mut roots = self.owners.fresh();
        for (k, a) in items.iter().enumerate() {
            let value = self.val(*a);
            if let Rep::Array(part) = &value.rep
                && !self.is_part(*a, (items[0], 0))
            {
                self.check_shapes(Shaped::Row.words(), &dims[1..], &part.dims);
            }
            self.store(&to, &[Operand::i64(k as i64)], &value.rep, elem)?;
            if super::rep::has_boxes(elem.base()) {
                roots.extend(value.roots);
            }
        }
        Ok(Val { rep: Rep::Array(to), roots })
    }
    pub(super) fn replicate(&mut self, shape: &[Atom], a: Atom) -> Res<Val> {
        let mut dims: Vec<Operand> = shape.iter().map(|n| self.size(*n)).collect();
        let value = self.val(a);
        let mut strides = vec![Operand::i64(0); dims.len()];
        let rep = match value.rep {
            Rep::Array(inner) => {
                dims.extend(inner.dims);
                strides.extend(inner.strides);
                let packed = inner.leaves.iter().all(|l| matches!(l, Leaf::Same { .. }));
                ArrayRep { dims, strides, leaves: inner.leaves, packed }
            }
            rep => {
                let ty = self.atom_type(a);
                let types = super::rep::words(self.program, &ty)?;
                let values = self.flatten(&rep, &ty)?;
                let leaves = values.into_iter().zip(types).map(|(value, ty)| Leaf::Same { value, ty });
                ArrayRep { dims, strides, leaves: leaves.collect(), packed: true }
            }
        };
        self.check_elements(&rep.dims);
        Ok(Val { rep: Rep::Array(rep), roots: value.roots })
    }
    pub(super) fn rearranged(&mut self, perm: &[usize], a: &ArrayRep) -> ArrayRep {
        let at = |k: usize| perm.get(k).copied().unwrap_or(k);
        let identity = (0..a.rank()).all(|k| at(k) == k);
        let packed = a.packed && (identity || a.leaves.iter().all(|l| matches!(l, Leaf::Same { .. })));
        ArrayRep {
            dims: (0..a.rank()).map(|k| a.dims[at(k)]).collect(),
            strides: (0..a.rank()).map(|k| a.strides[at(k)]).collect(),
            leaves: a.leaves.clone(),
            packed,
        }
    }
    pub(super) fn rearrange(&mut self, perm: &[usize], a: Atom) -> Val {
        let (array, roots) = (self.array(a), self.owners.of(a.var()));
        Val { rep: Rep::Array(self.rearranged(perm, &array)), roots }
    }
    pub(super) fn reversed(&mut self, a: &ArrayRep) -> ArrayRep {
        let last = self.sub(a.dims[0], Operand::i64(1));
        let p = self.mul(last, a.strides[0]);
        let leaves = a.leaves.iter().map(|leaf| self.moved(*leaf, p, None)).collect();
        let mut strides = a.strides.clone();
        strides[0] = self.mul(strides[0], Operand::i64(-1));
        let packed = a.leaves.iter().all(|l| matches!(l, Leaf::Same { .. }));
        let leaves: Vec<Leaf> = leaves;
        ArrayRep { dims: a.dims.clone(), strides, leaves, packed: packed && a.packed }
    }
    pub(super) fn reshape(&mut self, shape: &[Atom], from: usize, a: Atom) -> Res<Val> {
        let sizes: Vec<Operand> = shape.iter().map(|n| self.size(*n)).collect();
        let Val { rep: Rep::Array(array), roots } = self.val(a) else { panic!("expected an array") };
        let same = array.dims[..from] == sizes[..] || (from == shape.len() && self.has_sizes(a, shape));
        if !same {
            self.check_reshape(&array, from, &sizes);
        }
        let dims: Vec<Operand> = sizes.iter().chain(&array.dims[from..]).copied().collect();
        if same {
            return Ok(Val { rep: Rep::Array(ArrayRep { dims, ..array }), roots });
        }
        let elem = self.atom_type(a).base().clone();
        let (array, roots) = if array.packed {
            (array, roots)
        } else {
            let to = self.array_for(None, array.dims.clone(), &elem)?;
            self.copy(&to, &array)?;
            let mut fresh = self.owners.fresh();
            if super::rep::has_boxes(&elem) {
                fresh.extend(roots);
            }
            (to, fresh)
        };
        let strides = self.row_major(&dims);
        Ok(Val { rep: Rep::Array(ArrayRep { dims, strides, leaves: array.leaves, packed: true }), roots })
    }
    pub(super) fn rotate(&mut self, pat: &[Var], a: Atom, k: Atom) -> Res<Val> {
        let (array, k) = (self.array(a), self.scalar(k));
        let ty = self.atom_type(a);
        let to = self.array_for(pat.first().copied(), array.dims.clone(), ty.base())?;
        let n = array.dims[0];
        let some = self.op(Op::Lt, Scalar::I64, &[Operand::i64(0), n]);
        let (then, ()) = self.block(|s| {
            let shift = s.op(Op::Mod, Scalar::I64, &[k, n]);
            let rest = s.sub(n, shift);
            let one = Operand::i64(1);
            let (tail, head) =
                (s.sliced(&array, (shift, rest, one)), s.sliced(&to, (Operand::i64(0), rest, one)));
            s.copy(&head, &tail)?;
            let (start, end) =
                (s.sliced(&array, (Operand::i64(0), shift, one)), s.sliced(&to, (rest, shift, one)));
            s.copy(&end, &start)
        })?;
        self.emit(Ins::If { condition: some, then, otherwise: Vec::new() });
        let mut roots = self.owners.fresh();
        if super::rep::has_boxes(ty.base()) {
            roots.extend(self.owners.of(a.var()));
        }
        Ok(Val { rep: Rep::Array(to), roots })
    }
}
