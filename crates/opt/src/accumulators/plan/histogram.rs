//! E3: indices that no axis has to itself become one histogram over values and indices, after the scope of the
//! accumulator. If the accumulator started as zeros, nothing else is added and no place is met twice, a scatter does.

use super::{Plan, at, at_mut, extent};
use crate::accumulators::delayed::{Dim, Id, Node, OUTSIDE};
use crate::accumulators::index::{Affine, Polynomial, is_injective, polynomial};
use crate::accumulators::nest::Nest;
use pullback_core::{Atom, Builder, Exp, Program, Soac, Type, VarInfo};
use pullback_prim::{Op, Scalar};

/// How the values of a histogram are written.
pub(super) struct Update {
    scalar: Scalar,
    /// No place is written twice, and every place held zero.
    distinct: bool,
}

impl Plan<'_> {
    /// E3: values and indices leave the nest and the scope; a histogram adds them to what the scope returns.
    pub(super) fn histogram(
        &mut self,
        work: &mut Program,
        element: Id,
        coordinates: &[Id],
        affine: &[Option<Affine>],
    ) -> Option<()> {
        let (key, kept) = self.key(coordinates)?;
        // Rows that are there under a condition only would be values of a sum type, kept for every point.
        (kept.is_empty() || self.guards.is_empty()).then_some(())?;
        let distinct = self.site.alone && self.is_zero() && self.is_injective(affine);
        let keys: Vec<Dim> = (0..self.values.widths.len()).filter(|d| !kept.contains(d)).collect();
        let element_scalar = self.values.program.vars[self.root].ty.clone();
        let Type::Acc(ty) = element_scalar else { return None };
        let scalar = ty.base().scalar()?;
        let (parts, shapes) = self.hand_out(work, &[key, element])?;
        let mut b = Builder::new(work);
        b.origin = self.values.program.vars[self.site.done].origin.clone();
        let given = self.extents(&mut b)?;
        let mut nest = Nest {
            values: &mut self.values,
            loops: keys.iter().chain(&kept).copied().collect(),
            kept: keys.len() + kept.len(),
            shapes: &shapes,
            given: given.clone(),
        };
        let mut values = nest.emit(&mut b, parts[1])?;
        let mut known = given.clone();
        let mut nest =
            Nest { values: &mut self.values, loops: keys.clone(), kept: keys.len(), shapes: &shapes, given };
        let mut indices = nest.emit(&mut b, parts[0])?;
        let width = extent(&mut nest, &mut b, &keys, &mut known)?;
        if keys.len() > 1 {
            let from = keys.len();
            values = b.emit(Exp::Reshape { shape: vec![width], from, array: values }, "vs");
            indices = b.emit(Exp::Reshape { shape: vec![width], from, array: indices }, "is");
        }
        let stms = b.finish();
        self.insert(work, stms);
        self.after_scope(work, width, indices, values, &Update { scalar, distinct })
    }

    /// The index of a histogram and the dimensions of its rows: the outer axis is the key, each of the others is covered by a
    /// dimension.
    pub(super) fn key(&mut self, coordinates: &[Id]) -> Option<(Id, Vec<Dim>)> {
        let mut kept: Vec<Dim> = Vec::new();
        let mut axes = coordinates.len();
        while let Some(axis) = axes.checked_sub(1)
            && let Node::Dim(d) = *self.values.node(coordinates[axis])
        {
            let size = self.values.size(self.init, OUTSIDE, axis)?;
            let used = coordinates[..axis].iter().any(|c| self.values.dims(*c).contains(&d));
            if used || !self.values.same(size, self.values.widths[d]) {
                break;
            }
            kept.insert(0, d);
            axes = axis;
        }
        let (first, others) = coordinates[..axes].split_first()?;
        // Several keys would each have to be compared with their sizes, at every point: an accumulator is cheaper.
        others.is_empty().then_some((*first, kept))
    }
    /// Whether the accumulator starts as zeros.
    pub(super) fn is_zero(&self) -> bool {
        let Some(Exp::Replicate(_, Atom::Const(c))) = self.init.var().and_then(|v| self.values.expression(v))
        else {
            return false;
        };
        c.as_f64() == 0.0
    }
    /// Whether no two additions go to the same place.
    pub(super) fn is_injective(&self, coordinates: &[Option<Affine>]) -> bool {
        let Some(coordinates) = coordinates.iter().cloned().collect::<Option<Vec<Affine>>>() else {
            return false;
        };
        let extents: Vec<Polynomial> =
            self.values.widths.iter().map(|w| polynomial(&self.values, *w)).collect();
        is_injective(&coordinates, &self.values.full, &|d| extents[d].clone())
    }

    /// Makes the histogram of what the scope returns.
    pub(super) fn after_scope(
        &self,
        work: &mut Program,
        count: Atom,
        is: Atom,
        vs: Atom,
        update: &Update,
    ) -> Option<()> {
        let id = self.function;
        let entry = self.site.path[self.site.root].0;
        let types = [work.atom_type(count), work.atom_type(is), work.atom_type(vs)];
        let origin = work.vars[self.site.done].origin.clone();
        let [n, is_out, vs_out] =
            types.map(|ty| work.vars.push(VarInfo { ty, hint: "vs".into(), origin: origin.clone() }));
        let holder = at(&work.funs[id].body, &self.site.path[..self.site.root]);
        let old = holder.stms[entry].pat[self.site.number];
        let info = work.vars[old].clone();
        let row = info.ty.peel(1)?.clone();
        let zero = Atom::Const(update.scalar.zero());
        let fresh = work.vars.push(info);
        let mut b = Builder::new(work);
        b.origin = origin;
        let dst = Atom::Var(fresh);
        let (width, indices, values) = (n.into(), is_out.into(), vs_out.into());
        let soac = if update.distinct {
            Soac::Scatter { width, dst, indices, values }
        } else {
            let lam = b.lam(&[row.clone(), row.clone()], "x", |b, p| {
                vec![match &row {
                    Type::Scalar(_) => b.op2(Op::Add, p[0].into(), p[1].into()),
                    _ => b.emit(Exp::Plus(p[0].into(), p[1].into()), "t"),
                }]
            });
            let neutral = if row.rank() == 0 {
                zero
            } else {
                let shape = (1..=row.rank()).map(|d| b.size(dst, d)).collect();
                b.emit(Exp::Replicate(shape, zero), "zeros")
            };
            Soac::Hist { width, lam, neutral: vec![neutral], dst: vec![dst], indices, values: vec![values] }
        };
        b.emit_to(vec![old], Exp::Soac(soac));
        let after = b.finish();
        let holder = at_mut(&mut work.funs[id].body, &self.site.path[..self.site.root]);
        let scope = &mut holder.stms[entry];
        let Exp::WithAcc(_, lam) = &mut scope.exp else { return None };
        lam.body.result.extend([count, is, vs]);
        scope.pat[self.site.number] = fresh;
        scope.pat.extend([n, is_out, vs_out]);
        holder.stms.splice(entry + 1..entry + 1, after);
        Some(())
    }
}
