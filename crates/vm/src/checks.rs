//! Checks of indices that count from lane to lane: `k + lane < 0` or `n <= k + lane` in some lane is one comparison of two words.
//!
//! Found before the translation, so that what only the check reads is not computed at all.

use crate::uses::{Counts, reads};
use pullback_kernel::{Function, Ins, Operand, Reg, walk};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// A check that fails unless `0 <= from + lane < size` in all lanes, or in those where a mask holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    pub(crate) from: Operand,
    pub(crate) size: Operand,
    pub(crate) mask: Option<Operand>,
}

/// What is known about checks of a function.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// By the condition.
    pub(crate) outside: BTreeMap<Reg, Outside>,
    /// Lanes that count, from this.
    pub(crate) counting: BTreeMap<Reg, Operand>,
    /// Registers that need not be set.
    pub(crate) unused: BTreeSet<Reg>,
}

impl Checks {
    /// Those of a function; `numbers`: registers of lane numbers that are only added to scalars.
    pub(crate) fn of(f: &Function, numbers: &BTreeSet<Reg>, counts: &Counts) -> Checks {
        let mut checks = Checks::default();
        if numbers.is_empty() {
            return checks;
        }
        let is_lanes = |a: Operand| a.as_reg().is_some_and(|r| f.regs[r].ty.is_lanes());
        let once = |a: Operand| a.as_reg().is_none_or(|r| counts.sets[r] == 1);
        let mut made: BTreeMap<Reg, &Ins> = BTreeMap::new();
        let mut read: BTreeMap<Reg, u32> = BTreeMap::new();
        walk(&f.body, &mut |ins| match ins {
            Ins::Prim { to, prim, args } if counts.sets[*to] == 1 && f.regs[*to].ty.is_lanes() => {
                made.insert(*to, ins);
                if let (Prim::Op(Op::Add, Scalar::I64), [a, b]) = (prim, &args[..]) {
                    let number = |x: &Operand| x.as_reg().is_some_and(|r| numbers.contains(&r));
                    let from = if number(a) { *b } else { *a };
                    if (number(a) || number(b)) && !is_lanes(from) && once(from) {
                        checks.counting.insert(*to, from);
                    }
                }
            }
            Ins::Fail { condition: Operand::Reg(c), values, .. } if is_lanes((*c).into()) => {
                let Some((outside, parts)) = checks.outside_of(*c, &made, counts) else { return };
                if is_lanes(outside.size) || !once(outside.size) {
                    return;
                }
                if outside.mask.is_some_and(|m| !is_lanes(m) || !once(m)) {
                    return;
                }
                checks.outside.insert(*c, outside);
                checks.unused.extend(parts);
                // The values are computed where the check fails.
                let counting = values.iter().filter_map(|v| v.as_reg());
                for r in counting.filter(|r| checks.counting.contains_key(r)) {
                    *read.entry(r).or_default() += 1;
                }
            }
            _ => {}
        });
        for r in &checks.unused {
            reads(made[r], &mut |r| *read.entry(r).or_default() += 1);
        }
        let all = |(r, _): &(&Reg, &Operand)| read.get(r) == Some(&counts.reads[**r]);
        let unused: Vec<Reg> = checks.counting.iter().filter(all).map(|(r, _)| *r).collect();
        checks.unused.extend(unused);
        checks
    }

    /// The check, and the registers that nobody else reads, if a condition is one.
    fn outside_of(
        &self,
        condition: Reg,
        made: &BTreeMap<Reg, &Ins>,
        counts: &Counts,
    ) -> Option<(Outside, Vec<Reg>)> {
        let prim = |r: Reg, wanted: Prim| match made.get(&r)? {
            Ins::Prim { prim, args, .. } if *prim == wanted && counts.reads[r] == 1 => {
                Some((*args.first()?, *args.get(1)?))
            }
            _ => None,
        };
        if let Some((a, b)) = prim(condition, Prim::Op(Op::And, Scalar::Bool)) {
            let within = |c: Operand, mask: Operand| {
                let (outside, mut parts) = self.outside_of(c.as_reg()?, made, counts)?;
                parts.push(condition);
                outside.mask.is_none().then_some((Outside { mask: Some(mask), ..outside }, parts))
            };
            return within(b, a).or_else(|| within(a, b));
        }
        let (a, b) = prim(condition, Prim::Op(Op::Or, Scalar::Bool))?;
        let (a, b) = (a.as_reg()?, b.as_reg()?);
        let (low, zero) = prim(a, Prim::Op(Op::Lt, Scalar::I64))?;
        let (size, high) = prim(b, Prim::Op(Op::Le, Scalar::I64))?;
        let from = *self.counting.get(&low.as_reg()?)?;
        let same = self.counting.get(&high.as_reg()?) == Some(&from);
        let outside = Outside { from, size, mask: None };
        (same && zero.as_i64() == Some(0)).then_some((outside, vec![condition, a, b]))
    }
}
