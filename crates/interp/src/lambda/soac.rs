//! Second-order array operations. Each iteration costs one step and what the function costs.

use super::machine::Machine;
use super::sizes;
use super::value::{Arr, Collector, Val};
use crate::core::arrays::mismatch;
use crate::core::machine::{Res, fail, internal};
use crate::core::soac::log2;
use pullback_base::RuntimeErrorKind;
use pullback_lambda::{Soac, Term};
use std::collections::BTreeMap;

impl Machine<'_> {
    /// The value of `t`, which is this operation.
    pub(super) fn soac(&mut self, soac: &Soac, t: &Term) -> Res<Val> {
        self.step(1)?;
        match soac {
            Soac::Map { f, arrays } => {
                let f = self.eval(f)?;
                let arrays = arrays.iter().map(|t| self.eval(t)?.array()).collect::<Res<Vec<_>>>()?;
                let n = same_size(&arrays)?;
                let rows = self.in_parallel(n, |m, i| {
                    m.step(1)?;
                    let mut result = f.clone();
                    for a in &arrays {
                        let row = a.part(&m.meter, 1, i)?;
                        result = m.apply(&result, row)?;
                    }
                    Ok(result)
                })?;
                let element = Self::element_type(t)?;
                let mut out = Collector::new(&self.meter, element, Some(n))?;
                if n == 0 && sizes::matter(element) {
                    out.suppose(&sizes::of_result(self.code, &f, &arrays));
                }
                for row in rows {
                    let touched = out.push(row)?;
                    self.tick(touched)?;
                }
                out.finish().map(Val::Arr)
            }
            Soac::Reduce { op, neutral, array, commutative } => {
                let op = self.eval(op)?;
                let neutral = self.eval(neutral)?;
                let array = self.eval(array)?.array()?;
                self.reduce(&op, neutral, &array, *commutative)
            }
            Soac::Scan { op, neutral, array } => {
                let op = self.eval(op)?;
                let neutral = self.eval(neutral)?;
                let array = self.eval(array)?.array()?;
                let mut out = Collector::new(&self.meter, Self::element_type(t)?, Some(array.outer()?))?;
                if array.outer()? == 0 {
                    out.see(&neutral)?;
                }
                self.scan(&op, neutral, &array, out)
            }
            Soac::Hist { op, neutral, dst, indices, values } => {
                let op = self.eval(op)?;
                let neutral = self.eval(neutral)?;
                let early = self.unless_written(t, dst)?;
                let indices = self.index_vector(indices)?;
                let values = self.eval(values)?.array()?;
                let dst = self.written(early, dst)?;
                self.hist(&op, &neutral, dst, &indices, &values)
            }
            Soac::Scatter { dst, indices, values } => {
                let early = self.unless_written(t, dst)?;
                let indices = self.index_vector(indices)?;
                let values = self.eval(values)?.array()?;
                let mut dst = self.written(early, dst)?;
                if indices.len() != values.outer()? {
                    return Err(mismatch("scatter", &[indices.len()], &values.shape[..1]));
                }
                self.tick(values.leaves())?;
                self.own(&mut dst)?;
                for (k, &i) in indices.iter().enumerate() {
                    // In order of positions, so the highest one wins.
                    if i >= 0 && (i as u64) < dst.outer()? as u64 {
                        let value = values.part(&self.meter, 1, k)?;
                        dst.write("scatter", 1, i as usize, &value)?;
                    }
                }
                Ok(Val::Arr(dst))
            }
        }
    }

    /// `op a b`, one step and what the operator costs.
    fn combine(&mut self, op: &Val, a: Val, b: Val) -> Res<Val> {
        self.step(1)?;
        self.operators += 1;
        let done = self.apply(op, a).and_then(|partial| self.apply(&partial, b));
        self.operators -= 1;
        done
    }
    /// Runs the applications of a reduction; the span is that of a balanced tree of the longest of them.
    fn tree<R>(
        &mut self,
        n: usize,
        passes: u64,
        f: impl FnOnce(&mut Self, &mut dyn FnMut(&mut Self)) -> Res<R>,
    ) -> Res<R> {
        let start = self.counts.span;
        let mut longest = start;
        let result = f(self, &mut |m: &mut Self| {
            longest = longest.max(std::mem::replace(&mut m.counts.span, start));
        })?;
        let once = longest - start;
        self.counts.span = start + passes * log2(n.saturating_add(1)) * once.max(1);
        Ok(result)
    }
    fn reduce(&mut self, op: &Val, neutral: Val, array: &Arr, commutative: bool) -> Res<Val> {
        let n = array.outer()?;
        self.tree(n, 1, |m, join| {
            if m.schedule.is_some() && n > 0 {
                let _charge = m.meter.charge(8 * n as u128)?;
                let order = match &mut m.schedule {
                    Some(s) if commutative => s.order(n),
                    _ => (0..n).collect(),
                };
                let total = m.bracketed(op, array, &order, join)?;
                let total = m.combine(op, neutral, total)?;
                join(m);
                return Ok(total);
            }
            let mut total = neutral;
            for i in 0..n {
                let row = array.part(&m.meter, 1, i)?;
                total = m.combine(op, total, row)?;
                join(m);
            }
            Ok(total)
        })
    }
    /// Some bracketing of the rows in this order (not empty). Depth: logarithmic, since each part has a quarter at least.
    fn bracketed(
        &mut self,
        op: &Val,
        array: &Arr,
        order: &[usize],
        join: &mut dyn FnMut(&mut Self),
    ) -> Res<Val> {
        match order {
            [] => Err(internal("a reduction of nothing")),
            [i] => array.part(&self.meter, 1, *i),
            _ => {
                let n = order.len();
                let quarter = n / 4;
                let at = match &mut self.schedule {
                    Some(s) => (quarter + s.below(n - 2 * quarter)).clamp(1, n - 1),
                    None => n / 2,
                };
                let left = self.bracketed(op, array, &order[..at], join)?;
                let right = self.bracketed(op, array, &order[at..], join)?;
                let out = self.combine(op, left, right)?;
                join(self);
                Ok(out)
            }
        }
    }
    fn scan(&mut self, op: &Val, neutral: Val, array: &Arr, mut out: Collector) -> Res<Val> {
        let n = array.outer()?;
        let simulated = self.schedule.is_some();
        let ends = match &mut self.schedule {
            Some(s) => s.blocks(n),
            None => vec![n],
        };
        self.tree(n, 2, |m, join| {
            let mut carry = neutral;
            let mut start = 0;
            for end in ends {
                // Each block by itself, then what came before it on top.
                let before = carry.clone();
                let mut local = None;
                for i in start..end {
                    let row = array.part(&m.meter, 1, i)?;
                    if simulated {
                        let sum = match local.take() {
                            None => row,
                            Some(sum) => m.combine(op, sum, row)?,
                        };
                        local = Some(sum.clone());
                        carry = m.combine(op, before.clone(), sum)?;
                    } else {
                        carry = m.combine(op, carry, row)?;
                    }
                    let touched = out.push(carry.clone())?;
                    m.tick(touched)?;
                    join(m);
                }
                start = end;
            }
            Ok(())
        })?;
        out.finish().map(Val::Arr)
    }
    fn hist(&mut self, op: &Val, neutral: &Val, mut dst: Arr, indices: &[i64], values: &Arr) -> Res<Val> {
        let n = indices.len();
        if values.outer()? != n {
            return Err(mismatch("reduce_by_index", &[n], &values.shape[..1]));
        }
        let buckets = dst.outer()?;
        let inside = |j: i64| (0..buckets as i128).contains(&i128::from(j));
        let ends = match &mut self.schedule {
            Some(s) => s.blocks(n),
            None => Vec::new(),
        };
        self.own(&mut dst)?;
        self.tree(n, 1, |m, join| {
            if m.schedule.is_none() {
                for (i, &j) in indices.iter().enumerate() {
                    m.tick(1)?;
                    if inside(j) {
                        let value = values.part(&m.meter, 1, i)?;
                        m.hist_one(op, &mut dst, j as usize, value)?;
                        join(m);
                    }
                }
            }
            let mut start = 0;
            for end in ends {
                // Each block gathers from the neutral element, then it is merged.
                let mut local: BTreeMap<usize, Val> = BTreeMap::new();
                for (i, &j) in indices.iter().enumerate().take(end).skip(start) {
                    m.tick(1)?;
                    if inside(j) {
                        let j = j as usize;
                        let old = local.remove(&j).unwrap_or_else(|| neutral.clone());
                        let value = values.part(&m.meter, 1, i)?;
                        let new = m.combine(op, old, value)?;
                        join(m);
                        local.insert(j, new);
                    }
                }
                for (j, value) in local {
                    m.hist_one(op, &mut dst, j, value)?;
                    join(m);
                }
                start = end;
            }
            Ok(Val::Arr(dst))
        })
    }
    fn hist_one(&mut self, op: &Val, dst: &mut Arr, j: usize, value: Val) -> Res<()> {
        // A copy of its own: the destination must stay unshared to be written.
        let old = dst.pick(&self.meter, 1, &[1], &[j])?.part(&self.meter, 1, 0)?;
        let new = self.combine(op, old, value)?;
        self.tick(new.leaves())?;
        dst.write("reduce_by_index", 1, j, &new)
    }
}

/// The common outer size of arrays.
fn same_size(arrays: &[Arr]) -> Res<usize> {
    let n = arrays.first().ok_or_else(|| internal("map over nothing"))?.outer()?;
    for a in arrays {
        if a.outer()? != n {
            let message = format!("arrays of sizes {n} and {} are combined", a.outer()?);
            return Err(fail(RuntimeErrorKind::ShapeMismatch, message));
        }
    }
    Ok(n)
}
