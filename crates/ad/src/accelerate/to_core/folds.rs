//! Sums, folds and scans of inner rows: a reduction or scan of core for each row.
//!
//! Rules:
//! ```text
//! sum        \i. reduce (+) 0 (row i);   truth values: false
//! foldl      \i. f (e, reduce f (row i)), and e of an empty row
//! fold1      \i. reduce f (row i); an empty row stops the program
//! scanl      e, f (e, s_0), f (e, s_1) ..  where s = scan f row
//! scanr      the same from the other end
//! scanl1     scan f row
//! ```
//!
//! Guarantee: a first value that is the neutral element is not combined.

use super::delayed::{COSTLY, Pull};
use super::operators::{Operator, Order};
use super::{INDEX, Lower};
use crate::accelerate::language::Fun;
use pullback_base::Symbol;
use pullback_core::{Atom, Exp as Core, Lam, Soac, Type, Var};
use pullback_prim::{Op, Scalar};

/// What makes an operator, for each reduction a new one.
pub(super) type Make<'f, S> = &'f mut dyn FnMut(&mut S) -> Operator;
/// What is made of an inner row and its size.
type Row<'f, S> = &'f mut dyn FnMut(&mut S, Vec<Atom>, Atom) -> Vec<Atom>;

impl Lower<'_, '_> {
    // [accelerate_to_core.sum]  \i. reduce (+) 0 (row i)
    pub(super) fn sum(&mut self, p: Pull) -> Pull {
        let (outer, _) = split(&p);
        let scalars = p.ty.scalars();
        let numbers: Vec<bool> = scalars.iter().map(|s| *s != Scalar::Bool).collect();
        Pull::delayed(p.ty.clone(), outer, COSTLY, move |this, ix| {
            let sums = this.folded(&p, ix, &numbers, &mut |this| this.addition(&scalars, &numbers));
            filled(&numbers, sums, scalars.iter().map(|s| Atom::Const(s.zero())).collect())
        })
    }
    /// The addition of those leaves that are chosen.
    pub(super) fn addition(&mut self, scalars: &[Scalar], chosen: &[bool]) -> Operator {
        let all: Vec<(Op, Scalar)> = scalars.iter().map(|s| (Op::Add, *s)).collect();
        self.plain(&kept(all, chosen))
    }
    /// The chosen leaves of an inner row combined; with a component that says whether there is a value, if the operator has one.
    fn folded(&mut self, p: &Pull, ix: &[Atom], chosen: &[bool], operator: Make<'_, Self>) -> Vec<Atom> {
        match p.unfolded() {
            // [accelerate_to_core.flat]  of a row that is a reshaped array: a reduction for each dimension
            Some(q) => self.nested(&q.dims[ix.len()..], operator, &mut Vec::new(), &mut |this, i| {
                kept(this.element(&q, &[ix, i].concat()), chosen)
            }),
            None => {
                let row = kept(self.row(p, ix), chosen);
                let operator = operator(self);
                let row = self.with_flags(&operator, inner(p), row);
                self.reduced(operator, inner(p), row)
            }
        }
    }
    /// What a body gives for all indices of these dimensions, combined in their order; of no dimension itself.
    pub(super) fn nested(
        &mut self,
        dims: &[Atom],
        operator: Make<'_, Self>,
        outer: &mut Vec<Atom>,
        body: &mut dyn FnMut(&mut Self, &[Atom]) -> Vec<Atom>,
    ) -> Vec<Atom> {
        let Some((n, rest)) = dims.split_first() else { return body(self, outer) };
        let row = self.nest(&[*n], &mut |this, i| {
            outer.extend(i);
            let one = this.nested(rest, operator, outer, body);
            outer.pop();
            one
        });
        let operator = operator(self);
        let row = if rest.is_empty() { self.with_flags(&operator, *n, row) } else { row };
        self.reduced(operator, *n, row)
    }
    fn reduced(&mut self, operator: Operator, width: Atom, arrays: Vec<Atom>) -> Vec<Atom> {
        let Operator { lam, neutral, is_commutative, .. } = operator;
        if neutral.is_empty() {
            return Vec::new();
        }
        let soac = Soac::Reduce { width, lam, neutral, arrays, commutative: is_commutative };
        self.b.emit_all(Core::Soac(soac), "folded").into_iter().map(Atom::from).collect()
    }
    /// All prefixes of a row combined, without such a component.
    fn scanned(&mut self, operator: &Operator, width: Atom, row: Vec<Atom>) -> Vec<Atom> {
        if row.is_empty() {
            return row;
        }
        let arrays = self.with_flags(operator, width, row);
        let (lam, neutral) = (operator.lam.clone(), operator.neutral.clone());
        let soac = Soac::Scan { width, lam, neutral, arrays };
        let all = self.b.emit_all(Core::Soac(soac), "scanned").into_iter().map(Atom::from);
        all.skip(usize::from(operator.is_lifted)).collect()
    }
    fn with_flags(&mut self, operator: &Operator, width: Atom, row: Vec<Atom>) -> Vec<Atom> {
        if !operator.is_lifted {
            return row;
        }
        let flags = self.b.emit(Core::Replicate(vec![width], Atom::bool(true)), "there");
        [vec![flags], row].concat()
    }

    // [accelerate_to_core.foldl]  \i. f (e, reduce f (row i))
    pub(super) fn foldl(&mut self, f: &Fun, e: Vec<Atom>, p: Pull) -> Pull {
        let (outer, _) = split(&p);
        let f = f.clone();
        let all = vec![true; e.len()];
        Pull::delayed(p.ty.clone(), outer, COSTLY, move |this, ix| {
            let mut found = this.folded(&p, ix, &all, &mut |this| this.operator(&f, Order::Forward));
            match this.neutral(&f) {
                // A neutral first value is not combined.
                Some(neutral) if e == neutral => found,
                Some(_) => this.apply(&f, [e.clone(), found].concat()),
                None => {
                    let rest = found.split_off(1);
                    let with_first = [e.clone(), rest].concat();
                    this.branch(found[0], &mut |this| this.apply(&f, with_first.clone()), &mut |_| e.clone())
                }
            }
        })
    }

    // [accelerate_to_core.fold1]  \i. reduce f (row i); an empty row stops the program
    pub(super) fn fold1(&mut self, f: &Fun, p: Pull) -> Pull {
        let (outer, width) = split(&p);
        let f = f.clone();
        let all = vec![true; p.ty.scalars().len()];
        Pull::delayed(p.ty.clone(), outer, COSTLY, move |this, ix| {
            let is_there = this.op2(Op::Lt, INDEX, Atom::i64(0), width);
            if is_there != Atom::bool(true) {
                let message = Symbol::new("fold1 of an empty array");
                this.b.emit(Core::Assert(is_there, message, Vec::new()), "there");
            }
            let found = this.folded(&p, ix, &all, &mut |this| this.operator(&f, Order::Forward));
            found.into_iter().skip(usize::from(this.neutral(&f).is_none())).collect()
        })
    }

    // [accelerate_to_core.scanl]  e, f (e, s_0), f (e, s_1) ..
    pub(super) fn scanl(&mut self, f: &Fun, e: &[Atom], p: &Pull) -> Pull {
        self.rows(p, Some(1), &mut |this, row, width| {
            let operator = this.operator(f, Order::Forward);
            let all = this.scanned(&operator, width, row);
            let all = this
                .combined(&operator, e, width, all, &mut |this, x| this.apply(f, [e.to_vec(), x].concat()));
            this.joined_rows(e, all, Order::Forward)
        })
    }
    // [accelerate_to_core.scanr]  .. f (s_1, e), f (s_0, e), e
    pub(super) fn scanr(&mut self, f: &Fun, e: &[Atom], p: &Pull) -> Pull {
        self.rows(p, Some(1), &mut |this, row, width| {
            let operator = this.operator(f, Order::Backward);
            let row = this.reversed(row);
            let all = this.scanned(&operator, width, row);
            let all = this.reversed(all);
            let all = this
                .combined(&operator, e, width, all, &mut |this, x| this.apply(f, [x, e.to_vec()].concat()));
            this.joined_rows(e, all, Order::Backward)
        })
    }
    // [accelerate_to_core.scanl1]  s_0, s_1 ..
    pub(super) fn scanl1(&mut self, f: &Fun, p: &Pull) -> Pull {
        self.rows(p, None, &mut |this, row, width| {
            let operator = this.operator(f, Order::Forward);
            this.scanned(&operator, width, row)
        })
    }

    /// An array in memory whose inner rows are made of those of another, so much longer.
    fn rows(&mut self, p: &Pull, longer: Option<i64>, body: Row<'_, Self>) -> Pull {
        let (outer, width) = split(p);
        let size = match longer {
            Some(n) => self.size(Op::Add, width, Atom::i64(n)),
            None => width,
        };
        let leaves = self.nest(&outer, &mut |this, ix| {
            let row = this.row(p, ix);
            body(this, row, width)
        });
        Pull::in_memory(p.ty.clone(), [outer, vec![size]].concat(), leaves)
    }
    fn reversed(&mut self, row: Vec<Atom>) -> Vec<Atom> {
        row.into_iter().map(|a| self.b.emit(Core::Reverse(a), "reversed")).collect()
    }
    /// The first value combined with each element, unless it is neutral.
    fn combined(
        &mut self,
        operator: &Operator,
        e: &[Atom],
        width: Atom,
        all: Vec<Atom>,
        combine: &mut dyn FnMut(&mut Self, Vec<Atom>) -> Vec<Atom>,
    ) -> Vec<Atom> {
        if all.is_empty() || (!operator.is_lifted && e == operator.neutral) {
            return all;
        }
        let params: Vec<Var> = all
            .iter()
            .map(|a| {
                let ty = self.b.elem(*a);
                self.b.fresh(ty, "x")
            })
            .collect();
        self.b.open();
        let result = combine(self, params.iter().map(|v| Atom::from(*v)).collect());
        let body = self.b.close(result);
        let map = Core::Soac(Soac::Map { width, lam: Lam { params, body }, arrays: all });
        self.b.emit_all(map, "ys").into_iter().map(Atom::from).collect()
    }
    /// A row with the first value before it, or after it.
    fn joined_rows(&mut self, e: &[Atom], all: Vec<Atom>, order: Order) -> Vec<Atom> {
        let pairs = e.iter().zip(all);
        pairs
            .map(|(e, row)| {
                let ty: Type = self.b.ty(*e);
                let one = self.b.emit(Core::ArrayLit(ty, vec![*e]), "one");
                let parts = match order {
                    Order::Forward => vec![one, row],
                    Order::Backward => vec![row, one],
                };
                self.b.emit(Core::Concat(parts), "all")
            })
            .collect()
    }
}

/// The outer sizes, and the inner one.
pub(super) fn split(p: &Pull) -> (Vec<Atom>, Atom) {
    match p.dims.split_last() {
        Some((width, outer)) => (outer.to_vec(), *width),
        None => unreachable!("an array of rank 0 has no rows: the type says so"),
    }
}
fn inner(p: &Pull) -> Atom {
    split(p).1
}

/// What is chosen.
pub(super) fn kept<T>(all: Vec<T>, chosen: &[bool]) -> Vec<T> {
    all.into_iter().zip(chosen).filter(|(_, is_chosen)| **is_chosen).map(|(x, _)| x).collect()
}
/// What was chosen in its places, among the others.
pub(super) fn filled(chosen: &[bool], found: Vec<Atom>, others: Vec<Atom>) -> Vec<Atom> {
    let mut found = found.into_iter();
    let each = others.into_iter().zip(chosen);
    each.map(|(x, is_chosen)| is_chosen.then(|| found.next()).flatten().unwrap_or(x)).collect()
}
