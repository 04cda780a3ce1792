//! Second-order array operations.

use super::arrays::{Collector, agree, mismatch};
use super::code::{Arg, Elem, HistCode, LamCode};
use super::machine::{Machine, Res, fail, internal};
use super::num::Domain;
use super::shapes::Known;
use super::value::{Arr, Val};
use pullback_base::RuntimeErrorKind;
use std::rc::Rc;

/// Depth of a balanced tree with `n` leaves.
pub(crate) fn log2(n: usize) -> u64 {
    u64::from(usize::BITS - n.saturating_sub(1).leading_zeros())
}

impl<D: Domain> Machine<'_, D> {
    /// The array arguments of a SOAC, all of the given width.
    pub(super) fn inputs(&mut self, width: usize, arrays: &[Arg]) -> Res<Vec<Arr<D>>> {
        let arrays = arrays.iter().map(|&a| self.take_array(a)).collect::<Res<Vec<_>>>()?;
        for a in &arrays {
            if a.shape[0] != width {
                let message = format!("arrays of sizes {width} and {} are combined", a.shape[0]);
                return Err(fail(RuntimeErrorKind::ShapeMismatch, message));
            }
        }
        Ok(arrays)
    }
    #[inline]
    pub(super) fn push_rows(&mut self, arrays: &[Arr<D>], i: usize) {
        for a in arrays {
            let value = a.row(i);
            self.stack.push(value);
        }
    }

    pub(crate) fn map(&mut self, width: Arg, lam: &LamCode, arrays: &[Arg], elems: &[Elem]) -> Res<()> {
        let n = self.size(width)?;
        let arrays = self.inputs(n, arrays)?;
        let mut out: Vec<Collector<D>> =
            elems.iter().map(|&e| Collector::new(&self.meter, e, Some(n))).collect();
        let mut fork = self.fork();
        if self.schedule.is_some() {
            let rows = self.map_shuffled(n, lam, &arrays, &mut fork)?;
            for row in rows {
                for (collector, value) in out.iter_mut().zip(row) {
                    let touched = collector.push(value)?;
                    self.tick(touched)?;
                }
            }
        } else {
            for i in 0..n {
                self.tick(1)?;
                self.push_rows(&arrays, i);
                self.apply(lam)?;
                for collector in out.iter_mut().rev() {
                    let value = self.pop()?;
                    let touched = collector.push(value)?;
                    self.tick(touched)?;
                }
                self.join(&mut fork);
            }
        }
        self.joined(fork);
        if n == 0 && elems.iter().any(|e| e.rank > 0) {
            let rows: Vec<Known> = arrays.iter().map(|a| Known::row(&a.shape)).collect();
            let known = self.guess(&lam.params, &rows, &lam.body);
            for (collector, known) in out.iter_mut().zip(&known) {
                collector.expect(known)?;
            }
        }
        for collector in out {
            let array = collector.finish(n)?;
            self.stack.push(array);
        }
        Ok(())
    }
    fn map_shuffled(
        &mut self,
        n: usize,
        lam: &LamCode,
        arrays: &[Arr<D>],
        fork: &mut super::machine::Fork,
    ) -> Res<Vec<Vec<Val<D>>>> {
        // Accounted like the indices and the result slots of the schedule, so that a huge width is an error.
        let _charge = self.meter.charge(32 * n as u128)?;
        let order = self.schedule.as_mut().map(|s| s.order(n)).unwrap_or_default();
        let mut rows: Vec<Vec<Val<D>>> = vec![Vec::new(); n];
        let bottom = self.stack.len();
        for i in order {
            self.tick(1)?;
            self.push_rows(arrays, i);
            self.apply(lam)?;
            rows[i] = self.stack.split_off(bottom);
            self.join(fork);
        }
        Ok(rows)
    }

    /// Applies the operator of a reduction to two groups of values.
    fn combine(&mut self, lam: &LamCode, left: Vec<Val<D>>, right: Vec<Val<D>>) -> Res<Vec<Val<D>>> {
        let bottom = self.stack.len();
        self.stack.extend(left);
        self.stack.extend(right);
        self.apply_operator(lam)?;
        Ok(self.stack.split_off(bottom))
    }
    fn row(&self, arrays: &[Arr<D>], i: usize) -> Vec<Val<D>> {
        arrays.iter().map(|a| a.row(i)).collect()
    }

    pub(crate) fn reduce(
        &mut self,
        width: Arg,
        lam: &LamCode,
        neutral: &[Arg],
        arrays: &[Arg],
        commutative: bool,
    ) -> Res<()> {
        let n = self.size(width)?;
        let neutral = self.take_all(neutral);
        let arrays = self.inputs(n, arrays)?;
        self.reduce_arrays(n, lam, neutral, &arrays, commutative)
    }
    pub(super) fn reduce_arrays(
        &mut self,
        n: usize,
        lam: &LamCode,
        neutral: Vec<Val<D>>,
        arrays: &[Arr<D>],
        commutative: bool,
    ) -> Res<()> {
        let mut fork = self.fork();
        if self.schedule.is_some() && n > 0 {
            let _charge = self.meter.charge(8 * n as u128)?;
            let order = match &mut self.schedule {
                Some(s) if commutative => s.order(n),
                _ => (0..n).collect(),
            };
            let tree = self.bracketed(lam, arrays, &order, &mut fork)?;
            let total = self.combine(lam, neutral, tree)?;
            self.stack.extend(total);
            self.join(&mut fork);
        } else {
            self.stack.extend(neutral);
            for i in 0..n {
                self.tick(1)?;
                self.push_rows(arrays, i);
                self.apply_operator(lam)?;
                self.join(&mut fork);
            }
        }
        self.joined_tree(fork, n, 1);
        Ok(())
    }
    /// The span of a tree of applications, each as long as the longest.
    pub(super) fn joined_tree(&mut self, fork: super::machine::Fork, n: usize, passes: u64) {
        let start = self.counts.span;
        self.joined(fork);
        let once = self.counts.span - start;
        self.counts.span = start + passes * log2(n.saturating_add(1)) * once.max(1);
    }
    /// Some bracketing of the rows in this order (not empty). Depth: logarithmic, since each part has a quarter at least.
    fn bracketed(
        &mut self,
        lam: &LamCode,
        arrays: &[Arr<D>],
        order: &[usize],
        fork: &mut super::machine::Fork,
    ) -> Res<Vec<Val<D>>> {
        self.tick(1)?;
        match order {
            [] => Ok(Vec::new()),
            [i] => Ok(self.row(arrays, *i)),
            _ => {
                let n = order.len();
                let quarter = n / 4;
                let at = match &mut self.schedule {
                    Some(s) => (quarter + s.below(n - 2 * quarter)).clamp(1, n - 1),
                    None => n / 2,
                };
                let left = self.bracketed(lam, arrays, &order[..at], fork)?;
                let right = self.bracketed(lam, arrays, &order[at..], fork)?;
                let out = self.combine(lam, left, right)?;
                self.join(fork);
                Ok(out)
            }
        }
    }

    pub(crate) fn scan(
        &mut self,
        width: Arg,
        lam: &LamCode,
        neutral: &[Arg],
        arrays: &[Arg],
        elems: &[Elem],
    ) -> Res<()> {
        let n = self.size(width)?;
        let carry = self.take_all(neutral);
        let arrays = self.inputs(n, arrays)?;
        self.scan_arrays(n, lam, carry, &arrays, elems)
    }
    pub(super) fn scan_arrays(
        &mut self,
        n: usize,
        lam: &LamCode,
        mut carry: Vec<Val<D>>,
        arrays: &[Arr<D>],
        elems: &[Elem],
    ) -> Res<()> {
        let mut out: Vec<Collector<D>> =
            elems.iter().map(|&e| Collector::new(&self.meter, e, Some(n))).collect();
        for (collector, value) in out.iter_mut().zip(&carry) {
            if let (0, Val::Arr(a)) = (n, value) {
                collector.expect(&Known::array(&a.shape))?;
            }
        }
        let mut fork = self.fork();
        if let Some(schedule) = &mut self.schedule {
            let ends = schedule.blocks(n);
            self.scan_blocks(lam, carry, arrays, &ends, &mut out, &mut fork)?;
        } else {
            let bottom = self.stack.len();
            self.stack.append(&mut carry);
            for i in 0..n {
                self.push_rows(arrays, i);
                self.apply_operator(lam)?;
                self.tick(1)?;
                for (k, collector) in out.iter_mut().enumerate() {
                    let value = self.stack.get(bottom + k).cloned();
                    let value = value.ok_or_else(|| internal("an operator with too few results"))?;
                    let touched = collector.push(value)?;
                    self.tick(touched)?;
                }
                self.join(&mut fork);
            }
            self.stack.truncate(bottom);
        }
        self.joined_tree(fork, n, 2);
        for collector in out {
            let array = collector.finish(n)?;
            self.stack.push(array);
        }
        Ok(())
    }
    /// A scan under a simulated schedule: each block by itself, then what came before it on top.
    fn scan_blocks(
        &mut self,
        lam: &LamCode,
        mut carry: Vec<Val<D>>,
        arrays: &[Arr<D>],
        ends: &[usize],
        out: &mut [Collector<D>],
        fork: &mut super::machine::Fork,
    ) -> Res<()> {
        let mut start = 0;
        for &end in ends {
            let before = carry.clone();
            let mut local = self.row(arrays, start);
            for i in start..end {
                if i > start {
                    let row = self.row(arrays, i);
                    local = self.combine(lam, local, row)?;
                }
                carry = self.combine(lam, before.clone(), local.clone())?;
                self.emit_row(out, &carry)?;
                self.join(fork);
            }
            start = end;
        }
        Ok(())
    }
    fn emit_row(&mut self, out: &mut [Collector<D>], row: &[Val<D>]) -> Res<()> {
        self.tick(1)?;
        for (collector, value) in out.iter_mut().zip(row) {
            let touched = collector.push(value.clone())?;
            self.tick(touched)?;
        }
        Ok(())
    }

    pub(crate) fn hist(&mut self, hist: &HistCode) -> Res<()> {
        let n = self.size(hist.width)?;
        let neutral = self.take_all(&hist.neutral);
        let mut dst = hist.dst.iter().map(|&a| self.take_array(a)).collect::<Res<Vec<_>>>()?;
        let indices = self.indices(hist.indices)?;
        let values = self.inputs(n, &hist.values)?;
        if indices.len() != n {
            return Err(mismatch("reduce_by_index", &[indices.len()], &[n]));
        }
        let buckets = dst.first().map_or(0, |d| d.shape[0]);
        if let Some(other) = dst.iter().find(|d| d.shape[0] != buckets) {
            return Err(mismatch("reduce_by_index", &dst[0].shape[..1], &other.shape[..1]));
        }
        let mut fork = self.fork();
        let ends = match &mut self.schedule {
            Some(s) => s.blocks(n),
            None => vec![n],
        };
        let simulated = self.schedule.is_some();
        let mut start = 0;
        for end in ends {
            if simulated {
                self.hist_block(hist, &neutral, &mut dst, &indices, &values, start..end, &mut fork)?;
            } else {
                for (i, &j) in indices.iter().enumerate() {
                    self.tick(1)?;
                    if j >= 0 && (j as u64) < buckets as u64 {
                        let value = self.row(&values, i);
                        self.hist_one(&hist.lam, &mut dst, j as usize, value)?;
                        self.join(&mut fork);
                    }
                }
            }
            start = end;
        }
        self.joined_tree(fork, n, 1);
        self.stack.extend(dst.into_iter().map(Val::Arr));
        Ok(())
    }
    /// A block of a simulated schedule: gathered from the neutral element, then merged.
    #[allow(clippy::too_many_arguments, reason = "the state of one histogram")]
    fn hist_block(
        &mut self,
        hist: &HistCode,
        neutral: &[Val<D>],
        dst: &mut [Arr<D>],
        indices: &[i64],
        values: &[Arr<D>],
        range: std::ops::Range<usize>,
        fork: &mut super::machine::Fork,
    ) -> Res<()> {
        let buckets = dst.first().map_or(0, |d| d.shape[0]);
        let mut local: std::collections::BTreeMap<usize, Vec<Val<D>>> = std::collections::BTreeMap::new();
        for i in range {
            self.tick(1)?;
            let j = indices[i];
            if j >= 0 && (j as u64) < buckets as u64 {
                let old = local.remove(&(j as usize)).unwrap_or_else(|| neutral.to_vec());
                let value = self.row(values, i);
                let new = self.combine(&hist.lam, old, value)?;
                self.join(fork);
                local.insert(j as usize, new);
            }
        }
        for (j, value) in local {
            self.hist_one(&hist.lam, dst, j, value)?;
            self.join(fork);
        }
        Ok(())
    }
    fn hist_one(&mut self, lam: &LamCode, dst: &mut [Arr<D>], j: usize, value: Vec<Val<D>>) -> Res<()> {
        let old: Vec<Val<D>> = dst
            .iter()
            .map(|d| match d.row(j) {
                // A row of its own: the destination must stay unshared to be written.
                Val::Arr(row) => row.copied(&self.meter).map(Val::Arr),
                scalar => Ok(scalar),
            })
            .collect::<Res<_>>()?;
        let new = self.combine(lam, old, value)?;
        for (d, value) in dst.iter_mut().zip(new) {
            self.write_row(d, j, value)?;
        }
        Ok(())
    }
    fn write_row(&mut self, array: &mut Arr<D>, j: usize, value: Val<D>) -> Res<()> {
        if !array.is_owned() {
            *array = self.own(array.clone())?;
        }
        match value {
            Val::Arr(value) => {
                if !agree(&array.shape[1..], &value.shape) {
                    return Err(mismatch("reduce_by_index", &array.shape[1..], &value.shape));
                }
                let n = value.count();
                self.tick(n as u64)?;
                let value =
                    if Rc::ptr_eq(&array.data, &value.data) { value.copied(&self.meter)? } else { value };
                let (data, offset) = array.data_mut()?;
                data.copy(offset + j * n, &value.data.data, value.offset, n)
            }
            value => {
                let (data, offset) = array.data_mut()?;
                data.set(offset + j, value)
            }
        }
    }
}
