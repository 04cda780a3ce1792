//! Array operations without functions.

use super::code::{Arg, Elem, SliceCode};
use super::machine::{Machine, Res, fail, internal, wrong};
use super::num::{Domain, Num};
use super::shapes::Known;
use super::value::{Arr, Charge, Data, Meter, Shape, Val, element_bytes, show_shape};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{Shaped, count_elements};
use pullback_prim::Scalar;
use std::rc::Rc;

/// Number of elements of a shape; an error if there are too many to count.
pub(crate) fn elements_of(sizes: &[usize]) -> Res<usize> {
    if sizes.contains(&0) {
        return Ok(0);
    }
    sizes.iter().try_fold(1usize, |n, &m| n.checked_mul(m)).filter(|&n| n <= isize::MAX as usize).ok_or_else(
        || {
            let message = format!("an array of shape {} has too many elements", show_shape(sizes));
            fail(RuntimeErrorKind::Limit, message)
        },
    )
}

/// Rows of several arrays together: a size is an `i64`, also that of an array without elements.
pub(crate) fn count_rows(mut rows: impl Iterator<Item = usize>) -> Res<usize> {
    let all = rows.try_fold(0usize, usize::checked_add).filter(|n| *n <= isize::MAX as usize);
    all.ok_or_else(|| fail(RuntimeErrorKind::Limit, "concat: there are too many rows to count"))
}

/// Memory for `n` elements, accounted before it is allocated.
pub(crate) fn allocate<D: Domain>(
    meter: &Rc<Meter>,
    kind: Option<Scalar>,
    n: usize,
) -> Res<(Data<D>, Charge)> {
    let charge = meter.charge(element_bytes(kind) * n as u128)?;
    Ok((Data::with_capacity(kind, n), charge))
}

pub(crate) fn out_of_bounds(ix: &[i64], shape: &[usize]) -> Box<RuntimeError> {
    let message = match (ix, shape) {
        ([i], [n]) => format!("index {i} is out of bounds for an array of size {n}"),
        ([i], _) => format!("index {i} is out of bounds for an array of shape {}", show_shape(shape)),
        _ => {
            let ix: Vec<String> = ix.iter().map(i64::to_string).collect();
            format!("index [{}] is out of bounds for an array of shape {}", ix.join(", "), show_shape(shape))
        }
    };
    fail(RuntimeErrorKind::OutOfBounds, message)
}

pub(crate) fn mismatch(what: &str, left: &[usize], right: &[usize]) -> Box<RuntimeError> {
    let message = format!("{what}: shapes {} and {} differ", show_shape(left), show_shape(right));
    fail(RuntimeErrorKind::ShapeMismatch, message)
}

/// An error unless arrays of these shapes have as many elements.
pub(crate) fn same_count(old: &[usize], new: &[usize]) -> Res<()> {
    if elements_of(new)? == elements_of(old)? {
        return Ok(());
    }
    let message = format!(
        "reshape: {} has {} elements, {} has {}",
        show_shape(old),
        elements_of(old)?,
        show_shape(new),
        elements_of(new)?
    );
    Err(fail(RuntimeErrorKind::ShapeMismatch, message))
}

/// Whether two shapes agree. Empty arrays of one rank always do: the inner sizes of an empty result are not known.
pub(crate) fn agree(left: &[usize], right: &[usize]) -> bool {
    left == right || (left.len() == right.len() && left.contains(&0) && right.contains(&0))
}

/// Gathers the results of iterations into an array.
pub(crate) struct Collector<D: Domain> {
    elem: Elem,
    /// Number of iterations, if known before.
    width: Option<usize>,
    /// Shape of the elements, known after the first.
    inner: Option<Shape>,
    data: Data<D>,
    charge: Option<Charge>,
    meter: Rc<Meter>,
}

impl<D: Domain> Collector<D> {
    pub(crate) fn new(meter: &Rc<Meter>, elem: Elem, width: Option<usize>) -> Collector<D> {
        let data = Data::with_capacity(elem.kind, 0);
        Collector { elem, width, inner: None, data, charge: None, meter: meter.clone() }
    }
    fn first(&mut self, inner: &[usize]) -> Res<()> {
        let n = elements_of(&Shape::with_outer(self.width.unwrap_or(0), inner))?;
        let (data, charge) = allocate(&self.meter, self.elem.kind, n)?;
        self.data = data;
        self.charge = Some(charge);
        self.inner = Some(Shape::new(inner));
        Ok(())
    }
    /// Adds the next element; returns how many array elements were written beyond one.
    #[inline]
    pub(crate) fn push(&mut self, value: Val<D>) -> Res<u64> {
        let touched = match value {
            Val::Arr(a) => {
                match &self.inner {
                    None => self.first(&a.shape)?,
                    Some(inner) if agree(inner, &a.shape) => {}
                    Some(inner) => return Err(mismatch(Shaped::Row.words(), inner, &a.shape)),
                }
                let n = a.count();
                self.grow(n)?;
                self.data.extend(&a.data.data, a.offset, n)?;
                n
            }
            value => {
                if self.inner.is_none() {
                    self.first(&[])?;
                }
                self.grow(1)?;
                self.data.push(value)?;
                0
            }
        };
        Ok(touched as u64)
    }
    #[inline]
    fn grow(&mut self, n: usize) -> Res<()> {
        if self.width.is_none()
            && let Some(charge) = &mut self.charge
        {
            charge.grow(element_bytes(self.elem.kind) * n as u128)?;
        }
        Ok(())
    }
    /// Says what elements would be like if there are none.
    pub(crate) fn expect(&mut self, known: &Known) -> Res<()> {
        if self.inner.is_none() && self.elem.rank > 0 {
            self.first(&known.shape(self.elem.rank))?;
        }
        Ok(())
    }
    /// The array of the `n` elements pushed.
    pub(crate) fn finish(mut self, n: usize) -> Res<Val<D>> {
        if self.inner.is_none() {
            self.first(&vec![0; self.elem.rank])?;
        }
        match (self.inner, self.charge) {
            (Some(inner), Some(charge)) => {
                let shape = Shape::with_outer(n, &inner);
                if count_elements(&shape) != self.data.len() {
                    return Err(internal("a collected array of the wrong size"));
                }
                Ok(Val::Arr(Arr::new(shape, self.data, charge)))
            }
            _ => Err(internal("a collector without a shape")),
        }
    }
}

/// A slice in range: its elements are `start`, `start + stride`, ...
#[derive(Clone, Copy)]
pub(crate) struct Span1 {
    pub(crate) start: i64,
    pub(crate) len: usize,
    pub(crate) stride: i64,
}

impl<D: Domain> Machine<'_, D> {
    /// The flat position of leading indices of `array`, all in range.
    #[inline]
    pub(crate) fn flat(&self, shape: &[usize], ix: &[Arg]) -> Res<usize> {
        let mut flat = 0;
        if ix.len() > shape.len() {
            return Err(internal("more indices than dimensions"));
        }
        for (&a, &n) in ix.iter().zip(shape) {
            let i = self.i64(a)?;
            if i < 0 || i as u64 >= n as u64 {
                let ix = ix.iter().map(|&a| self.i64(a)).collect::<Res<Vec<_>>>()?;
                return Err(out_of_bounds(&ix, shape));
            }
            flat = flat * n + i as usize;
        }
        Ok(flat)
    }
    pub(crate) fn index(&mut self, a: Arg, ix: &[Arg]) -> Res<Val<D>> {
        let array = self.array(a)?;
        let flat = self.flat(&array.shape, ix)?;
        let part = array.part(ix.len(), flat);
        self.release(a);
        Ok(part)
    }
    /// Makes the array the only owner of its buffer; copying costs its elements.
    pub(crate) fn own(&mut self, array: Arr<D>) -> Res<Arr<D>> {
        if array.is_owned() {
            return Ok(array);
        }
        let n = array.count() as u64;
        self.counts.copied_cells += n;
        self.tick(n)?;
        array.copied(&self.meter)
    }
    pub(crate) fn update(&mut self, a: Arg, ix: &[Arg], v: Arg) -> Res<Val<D>> {
        let flat = {
            let array = self.array(a)?;
            self.flat(&array.shape, ix)?
        };
        let mut array = self.take_array(a)?;
        let value = self.take(v);
        match value {
            Val::Arr(value) => {
                let inner = &array.shape[ix.len()..];
                if !agree(inner, &value.shape) {
                    return Err(mismatch(Shaped::Part.words(), inner, &value.shape));
                }
                let n = value.count();
                self.tick(n as u64)?;
                self.write(array, flat * n, value)
            }
            value => {
                if ix.len() != array.shape.len() {
                    return Err(wrong("an array", &value));
                }
                array = self.own(array)?;
                let (data, offset) = array.data_mut()?;
                data.set(offset + flat, value)?;
                Ok(Val::Arr(array))
            }
        }
    }
    /// Overwrites consecutive elements.
    fn write(&mut self, array: Arr<D>, at: usize, mut value: Arr<D>) -> Res<Val<D>> {
        if Rc::ptr_eq(&array.data, &value.data) {
            // A part of the array itself: copied first, so that the array may be the only owner again.
            value = value.copied(&self.meter)?;
        }
        let mut array = self.own(array)?;
        let (data, offset) = array.data_mut()?;
        data.copy(offset + at, &value.data.data, value.offset, value.count())?;
        Ok(Val::Arr(array))
    }
    /// A slice of a dimension of size `n`, checked.
    pub(crate) fn span1(&self, s: &SliceCode, n: usize) -> Res<Span1> {
        let (start, stride) = (self.i64(s.start)?, self.i64(s.stride)?);
        let len = self.size(s.len)?;
        if len > 0 {
            let last = i128::from(start) + (len as i128 - 1) * i128::from(stride);
            let inside = |i: i128| (0..n as i128).contains(&i);
            if !inside(start.into()) || !inside(last) {
                let step = if stride == 1 { String::new() } else { format!(" in steps of {stride}") };
                let message = format!(
                    "a slice of {len} elements from index {start}{step} is out of bounds for an array of size {n}"
                );
                return Err(fail(RuntimeErrorKind::OutOfBounds, message));
            }
        }
        Ok(Span1 { start, len, stride })
    }
    pub(crate) fn slice(&mut self, a: Arg, s: &SliceCode) -> Res<Val<D>> {
        let span = self.span1(s, self.array(a)?.shape[0])?;
        let array = self.take_array(a)?;
        let inner = count_elements(&array.shape[1..]);
        let shape = Shape::with_outer(span.len, &array.shape[1..]);
        if span.len <= 1 || span.stride == 1 {
            let from = if span.len == 0 { 0 } else { span.start as usize * inner };
            return Ok(Val::Arr(Arr { shape, offset: array.offset + from, data: array.data }));
        }
        let rows = (0..span.len).map(|k| (span.start + k as i64 * span.stride) as usize);
        let (data, charge) = self.rows(&array, &shape, rows)?;
        Ok(Val::Arr(Arr::view(shape, data, charge, &array)))
    }
    /// A new array of some rows of an array.
    fn pick_rows(&mut self, array: &Arr<D>, shape: Shape, rows: impl Iterator<Item = usize>) -> Res<Arr<D>> {
        let (data, charge) = self.rows(array, &shape, rows)?;
        Ok(Arr::new(shape, data, charge))
    }
    fn rows(
        &self,
        array: &Arr<D>,
        shape: &[usize],
        rows: impl Iterator<Item = usize>,
    ) -> Res<(Data<D>, Charge)> {
        let inner = count_elements(&array.shape[1..]);
        let (mut data, charge) = allocate(&self.meter, array.kind(), elements_of(shape)?)?;
        let (from, all) = (array.offset, &array.data.data);
        if inner == 1 {
            data.extend_at(all, rows.map(|r| from + r))?;
        } else if inner > 0 {
            for r in rows {
                data.extend(all, from + r * inner, inner)?;
            }
        }
        Ok((data, charge))
    }
    pub(crate) fn update_slice(&mut self, a: Arg, s: &SliceCode, v: Arg) -> Res<Val<D>> {
        let span = self.span1(s, self.array(a)?.shape[0])?;
        let array = self.take_array(a)?;
        let value = self.take_array(v)?;
        let expected = Shape::with_outer(span.len, &array.shape[1..]);
        if !agree(&expected, &value.shape) {
            return Err(mismatch(Shaped::Slice.words(), &expected, &value.shape));
        }
        let n = value.count();
        self.tick(n as u64)?;
        let inner = count_elements(&array.shape[1..]);
        if n == 0 {
            return Ok(Val::Arr(array));
        }
        if span.stride == 1 || span.len == 1 {
            return self.write(array, span.start as usize * inner, value);
        }
        let value = if Rc::ptr_eq(&array.data, &value.data) { value.copied(&self.meter)? } else { value };
        let mut array = self.own(array)?;
        let (data, offset) = array.data_mut()?;
        for k in 0..span.len {
            let row = (span.start + k as i64 * span.stride) as usize;
            data.copy(offset + row * inner, &value.data.data, value.offset + k * inner, inner)?;
        }
        Ok(Val::Arr(array))
    }
    pub(crate) fn gather(&mut self, a: Arg, ix: Arg) -> Res<Val<D>> {
        // In the order of the operands, since the last occurrence of a variable is the one that moves it.
        let array = self.take_array(a)?;
        let indices = self.indices(ix)?;
        let n = array.shape[0];
        let mut rows = Vec::with_capacity(indices.len());
        for i in indices {
            if i < 0 || i as u64 >= n as u64 {
                return Err(out_of_bounds(&[i], &array.shape));
            }
            rows.push(i as usize);
        }
        let shape = Shape::with_outer(rows.len(), &array.shape[1..]);
        self.tick(elements_of(&shape)? as u64)?;
        Ok(Val::Arr(self.pick_rows(&array, shape, rows.into_iter())?))
    }
    /// A vector of indices; the operand is released.
    pub(crate) fn indices(&mut self, ix: Arg) -> Res<Vec<i64>> {
        let array = self.array(ix)?;
        if array.shape.len() != 1 {
            return Err(internal("indices that are no vector"));
        }
        let range = array.offset..array.offset + array.count();
        let out = match &array.data.data {
            Data::I64(v) => v[range].to_vec(),
            _ => array_of_integers(array)?,
        };
        self.release(ix);
        Ok(out)
    }
    pub(crate) fn iota(&mut self, n: Arg) -> Res<Val<D>> {
        let n = self.size(n)?;
        let (_, charge) = allocate::<D>(&self.meter, Some(Scalar::I64), n)?;
        self.tick(n as u64)?;
        Ok(Val::Arr(Arr::new(Shape::new(&[n]), Data::I64((0..n as i64).collect()), charge)))
    }
    pub(crate) fn array_lit(&mut self, elem: Elem, items: &[Arg]) -> Res<Val<D>> {
        let mut collector = Collector::new(&self.meter, elem, Some(items.len()));
        for &item in items {
            let value = self.take(item);
            let touched = collector.push(value)?;
            self.tick(1 + touched)?;
        }
        collector.finish(items.len())
    }
    pub(crate) fn replicate(&mut self, elem: Elem, shape: &[Arg], a: Arg) -> Res<Val<D>> {
        let mut sizes = shape.iter().map(|&n| self.size(n)).collect::<Res<Vec<_>>>()?;
        let value = self.take(a);
        if let Val::Arr(a) = &value {
            sizes.extend_from_slice(&a.shape);
        }
        let n = elements_of(&sizes)?;
        if is_zero(&value) {
            self.counts.zero_cells += n as u64;
        }
        let (mut data, charge) = allocate(&self.meter, elem.kind, n)?;
        self.tick(n as u64)?;
        match value {
            Val::Arr(a) => {
                let size = a.count();
                for _ in 0..n.checked_div(size).unwrap_or(0) {
                    data.extend(&a.data.data, a.offset, size)?;
                }
            }
            value => data.push_many(value, n)?,
        }
        Ok(Val::Arr(Arr::new(Shape::new(&sizes), data, charge)))
    }
    pub(crate) fn rearrange(&mut self, perm: &[usize], a: Arg) -> Res<Val<D>> {
        let array = self.take_array(a)?;
        let rank = array.shape.len();
        let full: Vec<usize> = perm.iter().copied().chain(perm.len()..rank).collect();
        if full.len() != rank || perm.iter().any(|&d| d >= rank) {
            return Err(internal("a permutation of other dimensions"));
        }
        if full.iter().enumerate().all(|(i, &d)| i == d) {
            return Ok(Val::Arr(array));
        }
        let strides = row_major(&array.shape);
        let shape: Vec<usize> = full.iter().map(|&d| array.shape[d]).collect();
        let strides: Vec<usize> = full.iter().map(|&d| strides[d]).collect();
        let (mut data, charge) = allocate(&self.meter, array.kind(), array.count())?;
        data.extend_at(&array.data.data, strided(&shape, &strides, array.offset))?;
        Ok(Val::Arr(Arr::view(Shape::new(&shape), data, charge, &array)))
    }
    pub(crate) fn reshape(&mut self, shape: &[Arg], from: usize, a: Arg) -> Res<Val<D>> {
        let mut sizes = shape.iter().map(|&n| self.size(n)).collect::<Res<Vec<_>>>()?;
        let array = self.take_array(a)?;
        if from > array.shape.len() {
            return Err(internal("a reshape of more dimensions than there are"));
        }
        let (old, inner) = array.shape.split_at(from);
        same_count(old, &sizes)?;
        sizes.extend_from_slice(inner);
        Ok(Val::Arr(Arr { shape: Shape::new(&sizes), offset: array.offset, data: array.data }))
    }
    pub(crate) fn concat(&mut self, arrays: &[Arg]) -> Res<Val<D>> {
        let arrays = arrays.iter().map(|&a| self.take_array(a)).collect::<Res<Vec<_>>>()?;
        // An empty array says nothing about inner sizes if another one is not empty.
        let Some(model) = arrays.iter().find(|a| a.shape[0] > 0).or(arrays.first()) else {
            return Err(internal("concat of nothing"));
        };
        for a in &arrays {
            if a.shape[0] > 0 && !agree(&a.shape[1..], &model.shape[1..]) {
                return Err(mismatch(Shaped::Joined.words(), &model.shape[1..], &a.shape[1..]));
            }
        }
        let outer = count_rows(arrays.iter().map(|a| a.shape[0]))?;
        let shape = Shape::with_outer(outer, &model.shape[1..]);
        let (mut data, charge) = allocate(&self.meter, model.kind(), elements_of(&shape)?)?;
        for a in &arrays {
            self.tick(a.count() as u64)?;
            data.extend(&a.data.data, a.offset, a.count())?;
        }
        Ok(Val::Arr(Arr::new(shape, data, charge)))
    }
    pub(crate) fn reverse(&mut self, a: Arg) -> Res<Val<D>> {
        let array = self.take_array(a)?;
        self.tick(array.count() as u64)?;
        let shape = array.shape.clone();
        let rows = (0..array.shape[0]).rev();
        Ok(Val::Arr(self.pick_rows(&array, shape, rows)?))
    }
    pub(crate) fn rotate(&mut self, a: Arg, k: Arg) -> Res<Val<D>> {
        let k = self.i64(k)?;
        let array = self.take_array(a)?;
        self.tick(array.count() as u64)?;
        let shape = array.shape.clone();
        let rows = rotated(array.shape[0], k);
        Ok(Val::Arr(self.pick_rows(&array, shape, rows)?))
    }
    pub(crate) fn scatter(&mut self, width: Arg, dst: Arg, indices: Arg, values: Arg) -> Res<Val<D>> {
        let width = self.size(width)?;
        let dst = self.take_array(dst)?;
        let indices = self.indices(indices)?;
        let mut values = self.take_array(values)?;
        if indices.len() != width || values.shape[0] != width {
            return Err(mismatch("scatter", &[indices.len()], &values.shape[..1]));
        }
        // Where `dst` has no rows nothing is written, and the sizes of its rows may not be known.
        if width > 0 && dst.shape[0] > 0 && !agree(&dst.shape[1..], &values.shape[1..]) {
            return Err(mismatch("scatter", &dst.shape[1..], &values.shape[1..]));
        }
        let inner = count_elements(&dst.shape[1..]);
        self.tick(width as u64 * inner.max(1) as u64)?;
        if Rc::ptr_eq(&dst.data, &values.data) {
            values = values.copied(&self.meter)?;
        }
        let n = dst.shape[0] as u64;
        let mut dst = self.own(dst)?;
        let (data, offset) = dst.data_mut()?;
        for (k, &i) in indices.iter().enumerate() {
            // In order of positions, so the highest one wins.
            if i >= 0 && (i as u64) < n {
                data.copy(offset + i as usize * inner, &values.data.data, values.offset + k * inner, inner)?;
            }
        }
        Ok(Val::Arr(dst))
    }
}

fn array_of_integers<D: Domain>(array: &Arr<D>) -> Res<Vec<i64>> {
    (0..array.count())
        .map(|i| match array.element(i) {
            Val::Num(x) if x.scalar().is_integer() => Ok(x.primal().as_i64()),
            other => Err(wrong("an index", &other)),
        })
        .collect()
}

fn is_zero<D: Domain>(value: &Val<D>) -> bool {
    match value {
        Val::Num(Num::F64(x)) => D::primal64(x) == 0.0,
        Val::Num(Num::F32(x)) => D::primal32(x) == 0.0,
        Val::Num(_) | Val::Unit | Val::Tuple(_) | Val::Sum(..) | Val::Arr(_) | Val::Acc(_) | Val::Gone => {
            false
        }
    }
}

/// Distances of neighbours in each dimension of a row-major array.
pub(crate) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].wrapping_mul(shape[d]);
    }
    strides
}

/// The positions of all elements, in row-major order of `shape`, of a part with these strides. Arithmetic wraps.
pub(crate) fn strided(
    shape: &[usize],
    strides: &[usize],
    offset: usize,
) -> impl Iterator<Item = usize> + use<> {
    let (shape, strides) = (shape.to_vec(), strides.to_vec());
    let mut ix = vec![0; shape.len()];
    let mut at = offset;
    let n = count_elements(&shape);
    (0..n).map(move |_| {
        let here = at;
        for d in (0..shape.len()).rev() {
            ix[d] += 1;
            at = at.wrapping_add(strides[d]);
            if ix[d] < shape[d] {
                break;
            }
            at = at.wrapping_sub(strides[d].wrapping_mul(shape[d]));
            ix[d] = 0;
        }
        here
    })
}

/// The positions `k, k + 1, ..` modulo `n`.
pub(crate) fn rotated(n: usize, k: i64) -> impl Iterator<Item = usize> {
    let k = if n == 0 { 0 } else { i128::from(k).rem_euclid(n as i128) as usize };
    (k..n).chain(0..k)
}
