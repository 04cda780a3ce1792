//! Sizes of core as polynomials, and values that are at hand as inputs, whose sizes are those.
//!
//! Core names sizes ([`pullback_core::shapes`]). A name that is at hand becomes a variable, or the polynomial that its integer is known to be; a name of an inner body is a size of something that was
//! translated, or is refused.
//!
//! Guarantees: two sizes with one polynomial are equal in every run that does not stop, up to the first size that is zero; a number of elements is not negative where something is made.

use super::{FromCore, Part, forms};
use crate::bulk::a_core::{Term, Ty};
use crate::bulk::sizes::{Size, SizeVar};
use crate::bulk::to_core::Known;
use crate::contract::Unsupported;
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Type, Var};
use pullback_prim::{Prim, Scalar};

impl FromCore<'_> {
    /// The name of a size, after what is known to be equal.
    pub(super) fn called(&self, d: Dim) -> Dim {
        self.shapes.called(d)
    }

    /// A value that is at hand, as an input.
    pub(super) fn input(&mut self, v: Var) -> Result<Term, Unsupported> {
        let ty = &self.program.vars[v].ty;
        let Some(scalar) = ty.base().scalar().filter(|_| self.is_at_hand(v)) else {
            let kind = match ty.base() {
                Type::Sum(_) | Type::Named(_) => "a value of a sum type",
                Type::Tuple(_) => "a product, as a whole",
                Type::Acc(_) => "an accumulator",
                Type::Array(_) | Type::Scalar(_) => "what a body binds that has no form here",
            };
            return self.refuse(kind);
        };
        let known = self.shapes.of(v).to_vec();
        let mut shape = Vec::new();
        for k in 0..ty.rank() {
            let dim = self.called(known.get(k).copied().unwrap_or(Dim::Size(v, k)));
            shape.push(match dim {
                Dim::Unknown => self.size_var(Dim::Size(v, k)),
                Dim::Size(w, _) if w == v => self.size_var(dim),
                // A size of an array that exists is not negative.
                Dim::Value(n) if self.is_at_hand(n) && self.as_size(n.into()).is_none() => self.size_var(dim),
                _ => self.dim(dim)?,
            });
        }
        let variable = self.names.fresh(self.program.vars[v].hint.as_str(), Ty::new(shape, scalar));
        let t = Term::var(&variable);
        self.inputs.push((variable, v));
        self.parts.insert(v, Part::Array(t.clone()));
        Ok(t)
    }

    pub(super) fn new_size(&mut self, known: Known) -> SizeVar {
        self.sizes.push(known);
        SizeVar::at(self.sizes.len() - 1)
    }

    pub(super) fn size_var(&mut self, d: Dim) -> Size {
        let known = match d {
            Dim::Size(v, k) => Known::Dimension(v.into(), k),
            Dim::Value(v) => Known::Integer(v.into()),
            Dim::Const(n) => return Size::constant(n.max(0)),
            Dim::Unknown => unreachable!("a size with a name"),
        };
        if let Some(v) = self.size_vars.get(&d) {
            return Size::var(*v);
        }
        let v = self.new_size(known);
        self.size_vars.insert(d, v);
        Size::var(v)
    }

    /// The size, if an integer is known to be one.
    pub(super) fn as_size(&self, a: Atom) -> Option<Size> {
        match a {
            Atom::Const(c) => (c.scalar() == Scalar::I64).then(|| Size::constant(c.as_i64())),
            Atom::Var(v) => match self.parts.get(&v)? {
                Part::Array(t) => forms::known_size(t),
                Part::Tuple(_) | Part::AtHand => None,
            },
        }
    }

    /// The size that sums and products of sizes are.
    pub(super) fn size_of(&self, prim: Prim, args: &[Atom]) -> Option<Size> {
        let Prim::Op(op, Scalar::I64) = prim else { return None };
        let [a, b] = args else { return None };
        let (a, b) = (self.as_size(*a)?, self.as_size(*b)?);
        Size::combined(op, &a, &b)
    }

    /// A dimension as a size.
    pub(super) fn dim(&mut self, d: Dim) -> Result<Size, Unsupported> {
        const DIFFERENT: &str = "a size that is computed in an inner body";
        match self.called(d) {
            Dim::Const(n) => Ok(Size::constant(n.max(0))),
            Dim::Unknown => self.refuse("an array of arrays of different sizes"),
            d @ Dim::Size(v, k) => match self.parts.get(&v) {
                Some(Part::Array(t)) => match t.ty().shape.get(k) {
                    Some(n) => Ok(n.clone()),
                    None => self.refuse(DIFFERENT),
                },
                _ if self.is_at_hand(v) => Ok(self.size_var(d)),
                _ => self.refuse(DIFFERENT),
            },
            d @ Dim::Value(v) => match self.as_size(v.into()) {
                Some(n) => Ok(n),
                None if !self.is_at_hand(v) => self.refuse(DIFFERENT),
                // Where it is not chosen, the number may be anything.
                None if self.branches > 0 && !self.size_vars.contains_key(&d) => {
                    self.refuse("a number of elements that is an integer, in a branch")
                }
                None => Ok(self.size_var(d)),
            },
        }
    }

    /// The number of elements of something that is made here.
    pub(super) fn width(&mut self, n: Atom) -> Result<Size, Unsupported> {
        let size = self.dim(self.shapes.name(n))?;
        if size.is_never_negative() || self.is_outside() {
            return Ok(size);
        }
        if let Some(v) = self.at_least_zero.get(&size) {
            return Ok(Size::var(*v));
        }
        let v = self.new_size(Known::AtLeastZero(size.clone()));
        self.at_least_zero.insert(size, v);
        Ok(Size::var(v))
    }

    pub(super) fn widths(&mut self, shape: &[Atom]) -> Result<Vec<Size>, Unsupported> {
        shape.iter().map(|n| self.width(*n)).collect()
    }
}
