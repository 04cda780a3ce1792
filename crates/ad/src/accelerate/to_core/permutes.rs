//! `permute`: elements of an array sent to places of another one.
//!
//! Rules:
//! ```text
//! add        where the function adds floats: an accumulator with the target, and an addition for each element of the source
//! scalar     the same to a target of rank 0: the target and a sum
//! general    any other function: a histogram of core, on pairs (is there a value, value) so that there is a neutral element
//! ```
//!
//! Guarantee: with `add` the source is not put in memory. A place outside of the target stops the program where the predicate holds.

use super::delayed::Pull;
use super::operators::{Order, at_leaf, leaf, leaves};
use super::{INDEX, Lower};
use crate::accelerate::language::{Fun, Ty};
use pullback_base::Symbol;
use pullback_core::{Atom, Exp as Core, Soac};
use pullback_prim::{Op, Scalar};

impl Lower<'_, '_> {
    // [accelerate_to_core.permute]  d with d[s] := c (d[s], u[i]) for each i, where f i = (true, s)
    pub(super) fn permute(&mut self, c: &Fun, d: &Pull, f: &Fun, p: &Pull) -> Pull {
        let target = self.store(d);
        let leaves = match added(c) {
            _ if target.is_empty() => {
                // Only checks are left.
                self.nest(&p.dims, &mut |this, ix| {
                    this.place(f, ix, &d.dims);
                    Vec::new()
                });
                target
            }
            Some(added) if d.dims.is_empty() => self.added_up(&added, &target, f, p),
            Some(added) => self.accumulated(&added, d, &target, f, p),
            None => self.histogram(c, d, &target, f, p),
        };
        Pull::in_memory(d.ty.clone(), d.dims.clone(), leaves)
    }
    /// Whether an element goes somewhere, and where; a place outside of the target stops the program.
    fn place(&mut self, f: &Fun, ix: &[Atom], dims: &[Atom]) -> (Atom, Vec<Atom>) {
        let mut place = self.apply(f, ix.to_vec());
        let at = place.split_off(1);
        let goes = place[0];
        if goes == Atom::bool(true) {
            self.check_index(&at, dims);
        } else if goes != Atom::bool(false) {
            let mut inside = Atom::bool(true);
            for (i, n) in at.iter().zip(dims) {
                let low = self.op2(Op::Le, INDEX, Atom::i64(0), *i);
                let high = self.op2(Op::Lt, INDEX, *i, *n);
                let both = self.op2(Op::And, Scalar::Bool, low, high);
                inside = self.op2(Op::And, Scalar::Bool, inside, both);
            }
            if inside != Atom::bool(true) {
                let nowhere = self.prim(pullback_prim::Prim::Op(Op::Not, Scalar::Bool), vec![goes]);
                let fine = self.op2(Op::Or, Scalar::Bool, nowhere, inside);
                let message = Symbol::new("permute sends an element outside of its target");
                self.b.emit(Core::Assert(fine, message, Vec::new()), "inside");
            }
        }
        (goes, at)
    }
    /// The first index, or -1 where the element goes nowhere.
    fn or_nowhere(&mut self, goes: Atom, i: Atom) -> Atom {
        let select = pullback_prim::Prim::Op(Op::Select, INDEX);
        self.prim(select, vec![goes, i, Atom::i64(-1)])
    }

    // [accelerate_to_core.permute_scalar]  d + sum of (if goes then u ! i else 0)
    fn added_up(&mut self, added: &[bool], target: &[Atom], f: &Fun, p: &Pull) -> Vec<Atom> {
        let ty = Ty::Tuple(
            p.ty.scalars().into_iter().zip(added).filter(|(_, a)| **a).map(|(s, _)| Ty::Scalar(s)).collect(),
        );
        let mut sums = self
            .total(&p.dims, &ty, &mut Vec::new(), &mut |this, ix| {
                let (goes, _) = this.place(f, ix, &[]);
                let values = kept(this.element(p, ix), added);
                let zero = |this: &mut Self, x: Atom| {
                    let s = this.b.scalar(x);
                    let select = pullback_prim::Prim::Op(Op::Select, s);
                    this.prim(select, vec![goes, x, Atom::Const(s.zero())])
                };
                values.into_iter().map(|x| zero(this, x)).collect()
            })
            .into_iter();
        let each = target.iter().zip(added);
        each.map(|(d, is_added)| match is_added.then(|| sums.next()).flatten() {
            Some(sum) => self.b.op2(Op::Add, *d, sum),
            None => *d,
        })
        .collect()
    }
    /// The sum of what a body gives for all indices.
    fn total(
        &mut self,
        dims: &[Atom],
        ty: &Ty,
        outer: &mut Vec<Atom>,
        body: &mut dyn FnMut(&mut Self, &[Atom]) -> Vec<Atom>,
    ) -> Vec<Atom> {
        let Some((n, rest)) = dims.split_first() else { return body(self, outer) };
        let columns = self.nest(&[*n], &mut |this, ix| {
            outer.extend(ix);
            let sum = this.total(rest, ty, outer, body);
            outer.pop();
            sum
        });
        self.sum_of(*n, ty, columns)
    }

    // [accelerate_to_core.permute_add]  an accumulator with the target
    fn accumulated(&mut self, added: &[bool], d: &Pull, target: &[Atom], f: &Fun, p: &Pull) -> Vec<Atom> {
        let targets = kept(target.to_vec(), added);
        if targets.is_empty() {
            return target.to_vec();
        }
        let types: Vec<_> = targets.iter().map(|a| pullback_core::Type::acc(self.b.ty(*a))).collect();
        let accs: Vec<_> = types.into_iter().map(|t| self.b.fresh(t, "acc")).collect();
        self.b.open();
        self.nest(&p.dims, &mut |this, ix| {
            let (goes, mut at) = this.place(f, ix, &d.dims);
            let values = kept(this.element(p, ix), added);
            at[0] = this.or_nowhere(goes, at[0]);
            let add = |(acc, x): (&pullback_core::Var, Atom)| {
                this.b.emit(Core::AccAdd((*acc).into(), at.clone(), x), "done")
            };
            accs.iter().zip(values).map(add).collect()
        });
        let body = self.b.close(Vec::new());
        let lam = pullback_core::Lam { params: accs, body };
        let mut sums = self.b.emit_all(Core::WithAcc(targets, lam), "sent").into_iter();
        let each = target.iter().zip(added);
        each.map(|(d, is_added)| match is_added.then(|| sums.next()).flatten() {
            Some(sum) => sum.into(),
            None => *d,
        })
        .collect()
    }

    // [accelerate_to_core.permute_general]  a histogram on the flat target
    fn histogram(&mut self, c: &Fun, d: &Pull, target: &[Atom], f: &Fun, p: &Pull) -> Vec<Atom> {
        let operator = self.operator(c, Order::Forward);
        let size = self.product(&d.dims);
        let width = self.product(&p.dims);
        let mut columns = self.nest(&p.dims, &mut |this, ix| {
            let (goes, at) = this.place(f, ix, &d.dims);
            let number = this.number(&at, &d.dims);
            let number = this.or_nowhere(goes, number);
            [vec![number], this.element(p, ix)].concat()
        });
        for column in &mut columns {
            *column = self.flattened(*column, width, p.dims.len());
        }
        let indices = columns[0];
        let mut values = columns.split_off(1);
        let mut dst: Vec<Atom> = target.iter().map(|a| self.flattened(*a, size, d.dims.len())).collect();
        if operator.is_lifted {
            let flags = |this: &mut Self, n| this.b.emit(Core::Replicate(vec![n], Atom::bool(true)), "there");
            values.insert(0, flags(self, width));
            dst.insert(0, flags(self, size));
        }
        let soac = Soac::Hist { width, lam: operator.lam, neutral: operator.neutral, dst, indices, values };
        let all = self.b.emit_all(Core::Soac(soac), "sent").into_iter().map(Atom::from);
        let all: Vec<Atom> = all.skip(usize::from(operator.is_lifted)).collect();
        all.into_iter()
            .map(|a| match d.dims.len() {
                0 => self.b.index(a, &[Atom::i64(0)]),
                1 => a,
                _ => self.b.emit(Core::Reshape { shape: d.dims.clone(), from: 1, array: a }, "sent"),
            })
            .collect()
    }
    fn flattened(&mut self, array: Atom, size: Atom, rank: usize) -> Atom {
        match rank {
            0 => {
                let ty = self.b.ty(array);
                self.b.emit(Core::ArrayLit(ty, vec![array]), "one")
            }
            1 => array,
            _ => self.b.emit(Core::Reshape { shape: vec![size], from: rank, array }, "flat"),
        }
    }
}

fn kept(atoms: Vec<Atom>, which: &[bool]) -> Vec<Atom> {
    atoms.into_iter().zip(which).filter(|(_, k)| **k).map(|(a, _)| a).collect()
}

/// For each leaf whether it is added; the others, which are no floats, stay those of the target. `None`: the function does something else.
fn added(c: &Fun) -> Option<Vec<bool>> {
    let all = leaves(&c.body)?;
    let count = all.len();
    let each = all.iter().enumerate().map(|(k, e)| {
        let is_float = e.ty().is_continuous();
        match at_leaf(e, &c.param, k, count) {
            Some((Op::Add, _)) if is_float => Some(true),
            _ if !is_float && leaf(e, &c.param) == Some(k) => Some(false),
            _ => None,
        }
    });
    each.collect()
}
