//! Array operations without functions.

use super::machine::{Machine, checked_size};
use super::uses::written;
use super::value::{Arr, Collector, Elems, Num, Store, Val, wrong};
use crate::core::arrays::{
    agree, count_rows, elements_of, mismatch, out_of_bounds, rotated, row_major, strided,
};
use crate::core::machine::{Res, fail, internal};
use crate::core::value::show_shape;
use pullback_base::RuntimeErrorKind;
use pullback_core::count_elements;
use pullback_lambda::{Exp, SliceDim, Term};

/// A slice in range: its elements are `start`, `start + stride`, ...
struct Span1 {
    start: i64,
    len: usize,
    stride: i64,
}

impl Span1 {
    fn rows(&self) -> Vec<usize> {
        (0..self.len).map(|k| (self.start + k as i64 * self.stride) as usize).collect()
    }
}

impl Machine<'_> {
    /// The value of an array operation.
    pub(super) fn array(&mut self, t: &Term) -> Res<Val> {
        self.step(1)?;
        match t.exp() {
            Exp::ArrayLit(elem, items) => {
                let mut out = Collector::new(&self.meter, elem, Some(items.len()))?;
                for item in items {
                    let value = self.eval(item)?;
                    let touched = out.push(value)?;
                    self.tick(1 + touched)?;
                }
                out.finish().map(Val::Arr)
            }
            Exp::Index(a, ix) => {
                let a = self.eval(a)?.array()?;
                let ix = self.indices_of(ix)?;
                let at = flat(&a, &ix)?;
                a.part(&self.meter, ix.len(), at)
            }
            Exp::Slice(a, d) => self.slice(a, d),
            Exp::Update(a, ix, v) => {
                let early = self.unless_written(t, a)?;
                let ix = self.indices_of(ix)?;
                let value = self.eval(v)?;
                let mut a = self.written(early, a)?;
                let at = flat(&a, &ix)?;
                self.tick(value_leaves(&value))?;
                self.own(&mut a)?;
                a.write("update of a part of an array", ix.len(), at, &value)?;
                Ok(Val::Arr(a))
            }
            Exp::UpdateSlice(a, d, v) => self.update_slice(t, a, d, v),
            Exp::Gather(a, ix) => {
                let a = self.eval(a)?.array()?;
                let indices = self.index_vector(ix)?;
                let n = a.outer()?;
                let mut rows = Vec::with_capacity(indices.len());
                for i in indices {
                    if i < 0 || i as u64 >= n as u64 {
                        return Err(out_of_bounds(&[i], &a.shape));
                    }
                    rows.push(i as usize);
                }
                let n = rows.len();
                self.picked(&a, 1, &[n], &rows)
            }
            Exp::Size(a, dim) => {
                let a = self.eval(a)?.array()?;
                let n = a.shape.get(*dim).ok_or_else(|| internal("no such dimension"))?;
                Ok(Val::i64(*n as i64))
            }
            Exp::Iota(n) => {
                let n = self.size(n)?;
                let _charge = self.meter.charge(8 * n as u128)?;
                self.tick(n as u64)?;
                let store = Store::Flat(pullback_core::Buffer::I64((0..n as i64).collect()));
                drop(_charge);
                Ok(Val::Arr(Arr::from_store(&self.meter, &[n], store)?))
            }
            Exp::Replicate(n, v) => self.replicate(n, v),
            Exp::Rearrange(perm, a) => self.rearrange(perm, a),
            Exp::Reshape { shape, from, array } => self.reshape(shape, *from, array),
            Exp::Concat(ts) => self.concat(ts),
            Exp::Reverse(a) => {
                let a = self.eval(a)?.array()?;
                if a.count() == 0 {
                    return Ok(Val::Arr(a));
                }
                let n = a.outer()?;
                let rows: Vec<usize> = (0..n).rev().collect();
                self.picked(&a, 1, &[n], &rows)
            }
            Exp::Rotate(k, a) => {
                let k = self.i64(k)?;
                let a = self.eval(a)?.array()?;
                if a.count() == 0 {
                    return Ok(Val::Arr(a));
                }
                let n = a.outer()?;
                let rows: Vec<usize> = rotated(n, k).collect();
                self.picked(&a, 1, &[n], &rows)
            }
            Exp::Zip(ts) => {
                let arrays = ts.iter().map(|t| self.eval(t)?.array()).collect::<Res<Vec<_>>>()?;
                let first = arrays.first().ok_or_else(|| internal("zip of nothing"))?.outer()?;
                for a in &arrays {
                    if a.outer()? != first {
                        let message = format!(
                            "zip of arrays of different sizes: sizes {first} and {} differ",
                            a.outer()?
                        );
                        return Err(fail(RuntimeErrorKind::ShapeMismatch, message));
                    }
                }
                let shape = crate::core::value::Shape::new(&[first]);
                Ok(Val::Arr(Arr { shape, elems: Elems::Product(arrays) }))
            }
            Exp::Unzip(a) => match self.eval(a)?.array()?.elems {
                Elems::Product(parts) => self.tuple(parts.into_iter().map(Val::Arr).collect()),
                Elems::Cells { .. } => Err(internal("unzip of an array that is not of products")),
            },
            _ => Err(internal("not an array operation")),
        }
    }

    fn indices_of(&mut self, ix: &[Term]) -> Res<Vec<i64>> {
        ix.iter().map(|t| self.i64(t)).collect()
    }
    /// The elements of a vector of indices.
    pub(super) fn index_vector(&mut self, t: &Term) -> Res<Vec<i64>> {
        let a = self.eval(t)?.array()?;
        (0..a.count())
            .map(|i| match a.part(&self.meter, a.shape.len(), i)? {
                Val::Num(Num::I64(x)) => Ok(x),
                other => Err(wrong("an index", &other)),
            })
            .collect()
    }
    /// Makes the array the only owner of its elements; copying costs them.
    pub(super) fn own(&mut self, a: &mut Arr) -> Res<()> {
        let copied = a.own(&self.meter)?;
        self.counts.copied_cells += copied;
        self.tick(copied)
    }
    fn picked(&mut self, a: &Arr, k: usize, outer: &[usize], rows: &[usize]) -> Res<Val> {
        let out = a.pick(&self.meter, k, outer, rows)?;
        self.tick(out.leaves())?;
        Ok(Val::Arr(out))
    }
    /// The value of an array that an operation writes, unless it is to be evaluated after the other operands.
    pub(super) fn unless_written(&mut self, t: &Term, a: &Term) -> Res<Option<Arr>> {
        if written(t.exp()).is_some() { Ok(None) } else { Ok(Some(self.eval(a)?.array()?)) }
    }
    /// The array that an operation writes, after its other operands.
    pub(super) fn written(&mut self, early: Option<Arr>, a: &Term) -> Res<Arr> {
        match early {
            Some(a) => Ok(a),
            None => self.eval(a)?.array(),
        }
    }
    /// Start, length and stride of a slice.
    fn slice_numbers(&mut self, d: &SliceDim) -> Res<[i64; 3]> {
        Ok([self.i64(&d.start)?, self.i64(&d.len)?, self.i64(&d.stride)?])
    }
    fn slice(&mut self, a: &Term, d: &SliceDim) -> Res<Val> {
        let a = self.eval(a)?.array()?;
        let span = span1(self.slice_numbers(d)?, a.outer()?)?;
        if span.len <= 1 || span.stride == 1 {
            let from = if span.len == 0 { 0 } else { span.start as usize };
            return Ok(Val::Arr(window(a, from, span.len)));
        }
        // A view in the model, whatever its stride.
        Ok(Val::Arr(a.pick(&self.meter, 1, &[span.len], &span.rows())?))
    }
    fn update_slice(&mut self, t: &Term, a: &Term, d: &SliceDim, v: &Term) -> Res<Val> {
        let early = self.unless_written(t, a)?;
        let numbers = self.slice_numbers(d)?;
        let value = self.eval(v)?.array()?;
        let mut a = self.written(early, a)?;
        let span = span1(numbers, a.outer()?)?;
        let expected: Vec<usize> = std::iter::once(span.len).chain(a.shape[1..].iter().copied()).collect();
        if !agree(&expected, &value.shape) {
            return Err(mismatch("update of a slice", &expected, &value.shape));
        }
        self.tick(value.leaves())?;
        if value.count() == 0 {
            return Ok(Val::Arr(a));
        }
        self.own(&mut a)?;
        for (k, row) in span.rows().into_iter().enumerate() {
            let part = value.part(&self.meter, 1, k)?;
            a.write("update of a slice", 1, row, &part)?;
        }
        Ok(Val::Arr(a))
    }
    fn replicate(&mut self, n: &Term, v: &Term) -> Res<Val> {
        let elem = v.ty();
        let n = self.i64(n)?;
        let value = self.eval(v)?;
        let n = checked_size(n)?;
        if matches!(&value, Val::Num(x) if x.scalar().is_float() && x.primal().as_f64() == 0.0) {
            self.counts.zero_cells += n as u64;
        }
        let mut out = Collector::new(&self.meter, elem, Some(n))?;
        out.see(&value)?;
        // Before the work is done, so that limits stop a huge one.
        self.tick((n as u64).saturating_mul(value_leaves(&value)))?;
        for _ in 0..n {
            out.push(value.clone())?;
        }
        out.finish().map(Val::Arr)
    }
    fn rearrange(&mut self, perm: &[usize], a: &Term) -> Res<Val> {
        let a = self.eval(a)?.array()?;
        let k = perm.len();
        if k > a.shape.len() || perm.iter().any(|&d| d >= k) {
            return Err(internal("a permutation of other dimensions"));
        }
        let strides = row_major(&a.shape[..k]);
        let shape: Vec<usize> = perm.iter().map(|&d| a.shape[d]).collect();
        let strides: Vec<usize> = perm.iter().map(|&d| strides[d]).collect();
        let at: Vec<usize> = strided(&shape, &strides, 0).collect();
        Ok(Val::Arr(a.pick(&self.meter, k, &shape, &at)?))
    }
    fn reshape(&mut self, shape: &[Term], from: usize, a: &Term) -> Res<Val> {
        let sizes = self.indices_of(shape)?;
        let a = self.eval(a)?.array()?;
        let sizes = sizes.into_iter().map(checked_size).collect::<Res<Vec<_>>>()?;
        if from > a.shape.len() {
            return Err(internal("a reshape of more dimensions than there are"));
        }
        let old = &a.shape[..from];
        if elements_of(&sizes)? != elements_of(old)? {
            let message = format!(
                "reshape: {} has {} elements, {} has {}",
                show_shape(old),
                elements_of(old)?,
                show_shape(&sizes),
                elements_of(&sizes)?
            );
            return Err(fail(RuntimeErrorKind::ShapeMismatch, message));
        }
        Ok(Val::Arr(a.reshaped(from, &sizes)))
    }
    fn concat(&mut self, ts: &[Term]) -> Res<Val> {
        let arrays = ts.iter().map(|t| self.eval(t)?.array()).collect::<Res<Vec<_>>>()?;
        let first = ts.first().ok_or_else(|| internal("concat of nothing"))?;
        // An empty array says nothing about inner sizes if another one is not empty.
        let Some(model) = arrays.iter().find(|a| a.shape.first() != Some(&0)).or(arrays.first()) else {
            return Err(internal("concat of nothing"));
        };
        for a in &arrays {
            if a.outer()? > 0 && !agree(&a.shape[1..], &model.shape[1..]) {
                return Err(mismatch("concat", &model.shape[1..], &a.shape[1..]));
            }
        }
        let total = count_rows(arrays.iter().map(|a| a.shape[0]))?;
        if total == 0 {
            return Ok(Val::Arr(model.clone()));
        }
        let mut out = Collector::new(&self.meter, Self::element_type(first)?, Some(total))?;
        for a in &arrays {
            self.tick(a.leaves())?;
            for i in 0..a.outer()? {
                out.push(a.part(&self.meter, 1, i)?)?;
            }
        }
        out.finish().map(Val::Arr)
    }
}

/// A slice of a dimension of size `n`, checked.
fn span1([start, len, stride]: [i64; 3], n: usize) -> Res<Span1> {
    let len = checked_size(len)?;
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

/// Leaves written when the value becomes an element; at least one.
fn value_leaves(value: &Val) -> u64 {
    value.leaves().max(1)
}

/// `len` rows from row `from`: no copy.
fn window(a: Arr, from: usize, len: usize) -> Arr {
    let mut sizes = a.shape.to_vec();
    let row = sizes.get(1..).map_or(1, count_elements);
    if let Some(n) = sizes.first_mut() {
        *n = len;
    }
    let elems = match a.elems {
        Elems::Cells { offset, data } => Elems::Cells { offset: offset + from * row, data },
        Elems::Product(parts) => Elems::Product(parts.into_iter().map(|p| window(p, from, len)).collect()),
    };
    Arr { shape: crate::core::value::Shape::new(&sizes), elems }
}

/// The flat position of leading indices, all in range.
fn flat(a: &Arr, ix: &[i64]) -> Res<usize> {
    if ix.len() > a.shape.len() {
        return Err(internal("more indices than dimensions"));
    }
    let mut at = 0;
    for (&i, &n) in ix.iter().zip(&*a.shape) {
        if i < 0 || i as u64 >= n as u64 {
            return Err(out_of_bounds(ix, &a.shape));
        }
        at = at * n + i as usize;
    }
    Ok(at)
}
