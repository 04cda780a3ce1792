//! Fused array operations: `pre` on each element, then a reduction or scan of its first results.
//!
//! Left to right, an element is made and combined in one iteration, and the values to combine are never stored. Under a
//! simulated schedule the operation is a `map` and then its second part, which is what it means.

use super::arrays::Collector;
use super::code::FusedCode;
use super::machine::{Machine, Res, internal};
use super::num::Domain;
use super::shapes::Known;
use super::soac::log2;
use super::value::{Arr, Val};
use pullback_core::FusedForm;

impl<D: Domain> Machine<'_, D> {
    pub(crate) fn fused(&mut self, f: &FusedCode) -> Res<()> {
        if self.schedule.is_some() { self.fused_apart(f) } else { self.fused_in_order(f) }
    }

    fn fused_apart(&mut self, f: &FusedCode) -> Res<()> {
        let n = self.size(f.width)?;
        let count = f.neutral.len();
        let bottom = self.stack.len();
        self.map(f.width, &f.pre, &f.arrays, &f.elems)?;
        let mut columns = self.stack.split_off(bottom);
        let others = columns.split_off(count.min(columns.len()));
        let array = |v: Val<D>| match v {
            Val::Arr(a) => Ok(a),
            other => Err(super::machine::wrong("an array", &other)),
        };
        let arrays: Vec<Arr<D>> = columns.into_iter().map(array).collect::<Res<_>>()?;
        let neutral = self.take_all(&f.neutral);
        match f.form {
            FusedForm::Reduce { commutative } => {
                self.reduce_arrays(n, &f.lam, neutral, &arrays, commutative)?;
            }
            FusedForm::Scan => self.scan_arrays(n, &f.lam, neutral, &arrays, &f.elems[..count])?,
        }
        self.stack.extend(others);
        Ok(())
    }

    fn fused_in_order(&mut self, f: &FusedCode) -> Res<()> {
        let n = self.size(f.width)?;
        let neutral = self.take_all(&f.neutral);
        let arrays = self.inputs(n, &f.arrays)?;
        let count = neutral.len();
        let scan = f.form == FusedForm::Scan;
        let mut out: Vec<Collector<D>> =
            f.elems.iter().map(|&e| Collector::new(&self.meter, e, Some(n))).collect();
        if n == 0 {
            let rows: Vec<Known> = arrays.iter().map(|a| Known::row(&a.shape)).collect();
            let mut known = self.guess(&f.pre.params, &rows, &f.pre.body);
            for (k, value) in known.iter_mut().zip(&neutral) {
                if let Val::Arr(a) = value {
                    *k = Known::array(&a.shape);
                }
            }
            for (collector, known) in out.iter_mut().zip(&known) {
                collector.expect(known)?;
            }
        }
        let bottom = self.stack.len();
        self.stack.extend(neutral);
        let start = self.counts.span;
        let (mut longest_pre, mut longest_lam) = (0, 1);
        for i in 0..n {
            self.tick(1)?;
            self.push_rows(&arrays, i);
            self.apply(&f.pre)?;
            longest_pre = longest_pre.max(self.counts.span - start);
            self.counts.span = start;
            for collector in out.iter_mut().skip(count).rev() {
                let value = self.pop()?;
                let touched = collector.push(value)?;
                self.tick(touched)?;
            }
            self.apply_operator(&f.lam)?;
            if scan {
                for (k, collector) in out.iter_mut().take(count).enumerate() {
                    let value = self.stack.get(bottom + k).cloned();
                    let value = value.ok_or_else(|| internal("an operator with too few results"))?;
                    let touched = collector.push(value)?;
                    self.tick(touched)?;
                }
            }
            longest_lam = longest_lam.max(self.counts.span - start);
            self.counts.span = start;
        }
        // All elements are made at the same time, then combined by a tree.
        let passes = if scan { 2 } else { 1 };
        self.counts.span = start + longest_pre + passes * log2(n.saturating_add(1)) * longest_lam;
        let mut out = out.into_iter();
        if scan {
            self.stack.truncate(bottom);
        } else {
            out.by_ref().take(count).for_each(drop);
        }
        for collector in out {
            let array = collector.finish(n)?;
            self.stack.push(array);
        }
        Ok(())
    }
}
