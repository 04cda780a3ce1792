//! `permute`: elements of an array sent to places of another one.
//!
//! Rules:
//! ```text
//! turned     where the index is that of the source in any order, and the sizes are the same: no array is made
//! moved      where the index function can be turned around (`inverse`): no array is made
//! summed     where the function adds floats, the index is some components of that of the source, the outermost first: the target and a sum for each of its elements
//! add        where the function adds floats: an accumulator with the target, and an addition for each element of the source
//! scalar     the same to a target of rank 0: the target and a sum
//! general    any other function: a histogram of core, on pairs (is there a value, value) so that there is a neutral element
//! ```
//!
//! Guarantee: with `add` the source is not put in memory. A place outside of the target stops the program where the predicate holds.

use super::delayed::{COSTLY, Pull};
use super::folds::{Make, filled, kept};
use super::operators::{Component, Order};
use super::{INDEX, Lower};
use crate::accelerate::language::Fun;
use pullback_base::Symbol;
use pullback_core::{Atom, Exp as Core, Lam, Soac, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

impl Lower<'_, '_> {
    // [accelerate_to_core.permute]  d with d[s] := c (d[s], u[i]) for each i, where f i = (true, s)
    pub(super) fn permute(&mut self, c: &Fun, d: Pull, f: &Fun, p: Pull) -> Pull {
        if let Some(order) = self.turned(f, &d, &p) {
            return self.turn(c, d, f, p, order);
        }
        if let Some(moved) = self.moved(c, &d, f, &p) {
            return moved;
        }
        let added = self.added(c);
        if let Some((added, order)) = added.as_ref().zip(self.kept_dims(f, &d, &p)) {
            return self.summed(added.clone(), d, p, order);
        }
        let (d, p) = (&d, &p);
        let target = self.store(d);
        let leaves = match added {
            _ if target.is_empty() => {
                // Only checks are left.
                self.nest(&p.dims, &mut |this, ix| {
                    this.place(f, ix, &d.dims);
                    Vec::new()
                });
                target
            }
            Some(added) if d.dims.is_empty() => self.added_up(&added, target, f, p),
            Some(added) => self.accumulated(&added, d, target, f, p),
            None => self.histogram(c, d, &target, f, p),
        };
        Pull::in_memory(d.ty.clone(), d.dims.clone(), leaves)
    }
    // [accelerate_to_core.permute_turned]  \j. if goes i then c (d ! j, u ! i) else d ! j, where j is i in another order
    fn turn(&mut self, c: &Fun, d: Pull, f: &Fun, p: Pull, order: Vec<usize>) -> Pull {
        let own = self.cost(&c.body).saturating_add(self.cost(&f.body)).saturating_add(1);
        let cost = own.saturating_add(d.cost()).saturating_add(p.cost());
        let (c, f) = (c.clone(), f.clone());
        Pull::delayed(d.ty.clone(), d.dims.clone(), cost, move |this, to| {
            let mut from = to.to_vec();
            for (k, i) in order.iter().zip(to) {
                from[*k] = *i;
            }
            let goes = this.apply(&f, from.clone())[0];
            let x = this.element(&d, to);
            this.combined_if(goes, &c, &x, (&p, &from))
        })
    }
    /// `if goes then c (x, u ! from) else x`
    pub(super) fn combined_if(
        &mut self,
        goes: Atom,
        c: &Fun,
        x: &[Atom],
        (p, from): (&Pull, &[Atom]),
    ) -> Vec<Atom> {
        let combine = &mut |this: &mut Self| {
            let y = this.element(p, from);
            this.apply(c, [x, &y].concat())
        };
        self.branch(goes, combine, &mut |_| x.to_vec())
    }
    /// The dimension of the source for each one of the target, where each element has a place of its own.
    fn turned(&mut self, f: &Fun, d: &Pull, p: &Pull) -> Option<Vec<usize>> {
        let (_, order) = self.chosen_dims(f, d, p)?;
        (order.len() == p.dims.len()).then_some(order)
    }
    /// The same where each element goes somewhere, and elements that have a place in common are those of one outer index.
    fn kept_dims(&mut self, f: &Fun, d: &Pull, p: &Pull) -> Option<Vec<usize>> {
        let (goes, order) = self.chosen_dims(f, d, p)?;
        (goes == Atom::bool(true) && order.first() == Some(&0)).then_some(order)
    }
    /// Whether an element goes somewhere; the dimension of the source for each one of the target, if these are different ones of the same sizes.
    fn chosen_dims(&mut self, f: &Fun, d: &Pull, p: &Pull) -> Option<(Atom, Vec<usize>)> {
        let ix = self.counters(&p.dims);
        self.b.open();
        let place = self.apply(f, ix.clone());
        self.b.close(Vec::new());
        let dim = |i: &Atom| ix.iter().position(|j| j == i);
        let order: Vec<usize> = place[1..].iter().map(dim).collect::<Option<_>>()?;
        let is_once = (0..order.len()).all(|k| !order[..k].contains(&order[k]));
        let fits = order.iter().zip(&d.dims).all(|(k, n)| p.dims[*k] == *n);
        (is_once && fits).then(|| (place[0], order))
    }
    // [accelerate_to_core.permute_summed]  \j. d ! j + the sum of u ! i over those i whose components are j
    fn summed(&mut self, added: Vec<bool>, d: Pull, p: Pull, order: Vec<usize>) -> Pull {
        let scalars = p.ty.scalars();
        let rest: Vec<usize> = (0..p.dims.len()).filter(|k| !order.contains(k)).collect();
        let sizes: Vec<Atom> = rest.iter().map(|k| p.dims[*k]).collect();
        Pull::delayed(d.ty.clone(), d.dims.clone(), COSTLY, move |this, to| {
            let target = this.element(&d, to);
            let add: Make<'_, Lower<'_, '_>> = &mut |this| this.addition(&scalars, &added);
            let sums = this.nested(&sizes, add, &mut Vec::new(), &mut |this, inner| {
                let mut from = vec![Atom::i64(0); p.dims.len()];
                order.iter().zip(to).chain(rest.iter().zip(inner)).for_each(|(k, i)| from[*k] = *i);
                kept(this.element(&p, &from), &added)
            });
            let targets = kept(target.clone(), &added);
            let sums = targets.into_iter().zip(sums).map(|(d, sum)| this.added_to(d, sum, true)).collect();
            filled(&added, sums, target)
        })
    }
    /// For each leaf whether it is added; the others, which are no floats, stay those of the target. `None`: the function does something else.
    fn added(&mut self, c: &Fun) -> Option<Vec<bool>> {
        let scalars = c.body.ty().scalars();
        let each = self.components(c)?.into_iter().zip(scalars).map(|(component, s)| match component {
            Component::Op(Op::Add, _) if s.is_float() => Some(true),
            Component::First if !s.is_float() => Some(false),
            Component::Op(..) | Component::First => None,
        });
        each.collect()
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
                let nowhere = self.prim(Prim::Op(Op::Not, Scalar::Bool), vec![goes]);
                let fine = self.op2(Op::Or, Scalar::Bool, nowhere, inside);
                let message = Symbol::new("permute sends an element outside of its target");
                self.b.emit(Core::Assert(fine, message, Vec::new()), "inside");
            }
        }
        (goes, at)
    }
    /// The target and a value; a sum is no negative zero.
    fn added_to(&mut self, d: Atom, value: Atom, is_sum: bool) -> Atom {
        match d {
            Atom::Const(c) if is_sum && c.is_float_zero() => value,
            _ => self.b.op2(Op::Add, d, value),
        }
    }
    /// The first index, or -1 where the element goes nowhere.
    fn or_nowhere(&mut self, goes: Atom, i: Atom) -> Atom {
        let select = Prim::Op(Op::Select, INDEX);
        self.prim(select, vec![goes, i, Atom::i64(-1)])
    }

    // [accelerate_to_core.permute_scalar]  d + sum of (if goes then u ! i else 0)
    fn added_up(&mut self, added: &[bool], target: Vec<Atom>, f: &Fun, p: &Pull) -> Vec<Atom> {
        let scalars = p.ty.scalars();
        let sums = self.nested(
            &p.dims,
            &mut |this| this.addition(&scalars, added),
            &mut Vec::new(),
            &mut |this, ix| {
                let (goes, _) = this.place(f, ix, &[]);
                let values = kept(this.element(p, ix), added);
                let sent = |x: Atom| {
                    let scalar = this.b.scalar(x);
                    this.prim(Prim::Op(Op::Select, scalar), vec![goes, x, Atom::Const(scalar.zero())])
                };
                values.into_iter().map(sent).collect()
            },
        );
        let targets = kept(target.clone(), added);
        let sums =
            targets.into_iter().zip(sums).map(|(d, sum)| self.added_to(d, sum, !p.dims.is_empty())).collect();
        filled(added, sums, target)
    }

    // [accelerate_to_core.permute_add]  an accumulator with the target
    fn accumulated(&mut self, added: &[bool], d: &Pull, target: Vec<Atom>, f: &Fun, p: &Pull) -> Vec<Atom> {
        let targets = kept(target.clone(), added);
        if targets.is_empty() {
            return target;
        }
        let types: Vec<_> = targets.iter().map(|a| Type::acc(self.b.ty(*a))).collect();
        let accs: Vec<_> = types.into_iter().map(|t| self.b.fresh(t, "acc")).collect();
        self.b.open();
        self.nest(&p.dims, &mut |this, ix| {
            let (goes, mut at) = this.place(f, ix, &d.dims);
            let values = kept(this.element(p, ix), added);
            at[0] = this.or_nowhere(goes, at[0]);
            let add =
                |(acc, x): (&Var, Atom)| this.b.emit(Core::AccAdd((*acc).into(), at.clone(), x), "done");
            accs.iter().zip(values).map(add).collect()
        });
        let body = self.b.close(Vec::new());
        let lam = Lam { params: accs, body };
        let sums = self.b.emit_all(Core::WithAcc(targets, lam), "sent");
        filled(added, sums.into_iter().map(Atom::from).collect(), target)
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
