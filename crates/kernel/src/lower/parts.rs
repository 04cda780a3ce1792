//! A reduction in parts: contiguous parts of the elements are taken together each by itself, then their results in order.
//!
//! Right for every associative operator. Done where no loop is around the reduction, so that parts can run side by side or on
//! threads; how many there are depends on the number of elements only. Not done for states whose shape is not fixed, or that
//! hold pointers: those are taken together one element after the other.

use super::aliasing::Roots;
use super::combine::Combine;
use super::loops::{Collector, Place, Slots, Trip};
use super::rep::{ArrayRep, Rep, has_boxes};
use super::state::Cell;
use super::{Lower, Res, Val};
use crate::ir::{Ins, Operand, Order, Ty};
use pullback_base::index::IdSet;
use pullback_core::{Type, Var};
use pullback_prim::{Op, Scalar};

/// The most parts. Not a power of two: parts of long arrays would start at addresses that caches tell apart badly.
const MOST: i64 = 1023;

impl Lower<'_> {
    /// The results of a reduction of `n` elements; nothing if it cannot be done in parts. `collectors`: where what the elements
    /// are made with is kept too; `users`: what the bodies mention.
    pub(super) fn combined_in_parts(
        &mut self,
        c: &Combine<'_>,
        n: Operand,
        collectors: &[Collector],
        users: &IdSet<Var>,
    ) -> Res<Option<Vec<Val>>> {
        let states = &c.lam.params[..c.neutral.len()];
        let types: Vec<Type> = states.iter().map(|p| self.ty(*p).clone()).collect();
        let stays = |x: &Collector| has_boxes(&x.elem) || matches!(x.place, Place::Late(..));
        let plain = |(p, ty): (&Var, &Type)| match ty {
            Type::Scalar(_) => true,
            Type::Array(_) => self.is_fixed(*p) && !has_boxes(ty),
            _ => false,
        };
        let fits = states.iter().zip(&types).all(plain) && !collectors.iter().any(stays);
        if !fits || !self.owners.is_outermost() || n.as_i64().is_some_and(|n| n < 2 * self.part) {
            return Ok(None);
        }
        let (size, count) = self.sizes_of_parts(n);
        let mut totals = Vec::new();
        for (a, ty) in c.neutral.iter().zip(&types) {
            let inner = if let Rep::Array(a) = self.rep(*a) { a.dims } else { Vec::new() };
            let dims = std::iter::once(count).chain(inner).collect();
            totals.push(self.new_array(dims, ty.base())?);
        }
        let whole: Vec<(Type, ArrayRep)> = types.into_iter().zip(totals).collect();
        self.owners.enter();
        let part = self.reg(Ty::I64, "part");
        let (body, adds) = self.adding(|s| {
            s.block(|s| {
                let from = s.op(Op::Mul, Scalar::I64, &[part.into(), size]);
                let left = s.sub(n, from);
                let length = s.op(Op::Min, Scalar::I64, &[left, size]);
                let state = s.taken_together(c, Trip::Part { from, length }, collectors, users)?;
                for ((ty, total), val) in whole.iter().zip(state) {
                    s.store(total, &[part.into()], &val.rep, ty)?;
                }
                Ok(())
            })
        });
        let (body, ()) = body?;
        let body = if adds == Some(true) { body } else { self.with_mark(body) };
        let order = if adds.is_some() { Order::Given } else { Order::Any(Vec::new()) };
        self.emit(Ins::For { i: part, from: Operand::i64(0), to: count, body, order });
        self.owners.leave();
        self.totals_together(c, count, &whole).map(Some)
    }

    /// How many elements a part has, and how many parts there are, at least one; the last may have fewer elements.
    fn sizes_of_parts(&mut self, n: Operand) -> (Operand, Operand) {
        let one = Operand::i64(1);
        let wanted = self.op(Op::Quot, Scalar::I64, &[n, Operand::i64(self.part)]);
        let wanted = self.op(Op::Min, Scalar::I64, &[wanted, Operand::i64(MOST)]);
        let wanted = self.op(Op::Max, Scalar::I64, &[wanted, one]);
        let size = self.quotient_above(n, wanted);
        let size = self.op(Op::Max, Scalar::I64, &[size, one]);
        let count = self.quotient_above(n, size);
        (size, self.op(Op::Max, Scalar::I64, &[count, one]))
    }
    /// The quotient of `n`, not negative, and `by`, rounded up.
    fn quotient_above(&mut self, n: Operand, by: Operand) -> Operand {
        let more = self.sub(by, Operand::i64(1));
        let sum = self.add(n, more);
        self.op(Op::Quot, Scalar::I64, &[sum, by])
    }

    /// The elements of a part taken together, in the frame of the loop over the parts.
    fn taken_together(
        &mut self,
        c: &Combine<'_>,
        part: Trip,
        collectors: &[Collector],
        users: &IdSet<Var>,
    ) -> Res<Vec<Val>> {
        let cells = self.cells_of(c, users)?;
        self.owners.enter();
        let seen = cells.iter().map(|cell| self.seen(cell)).collect::<Res<Vec<_>>>()?;
        let mut iteration = |s: &mut Self, i: Operand, state: Vec<Val>, slots: &Slots| {
            s.taken_in(c, collectors, i, state, slots)
        };
        let (out, _, _) = self.iterate(part, &cells, collectors, seen, Order::Given, &mut iteration)?;
        Ok(out)
    }

    /// The results of the parts taken together: those after the first are taken into it.
    fn totals_together(
        &mut self,
        c: &Combine<'_>,
        count: Operand,
        totals: &[(Type, ArrayRep)],
    ) -> Res<Vec<Val>> {
        let mut cells = Vec::new();
        for (ty, total) in totals {
            cells.push(match self.element(total, &[Operand::i64(0)], ty)? {
                Rep::Array(first) => Cell::Buffer(ty.clone(), first, self.owners.fresh()),
                first => self.word_cell(&first, ty, &Roots::new())?,
            });
        }
        self.owners.enter();
        let seen = cells.iter().map(|cell| self.seen(cell)).collect::<Res<Vec<_>>>()?;
        let mut iteration = |s: &mut Self, part: Operand, state: Vec<Val>, _: &Slots| {
            let mut args = state;
            for (ty, total) in totals {
                let rep = s.element(total, &[part], ty)?;
                let roots = s.owners.foreign();
                args.push(Val { rep, roots });
            }
            Ok((s.apply(c.lam, args)?, Vec::new()))
        };
        let one = Operand::i64(1);
        let others = Trip::Part { from: one, length: self.sub(count, one) };
        let (out, _, _) = self.iterate(others, &cells, &[], seen, Order::Given, &mut iteration)?;
        Ok(out)
    }
}
