//! Sizes of core as polynomials over the sizes that are at hand: two sizes with one polynomial are equal in every run that does not stop.
//!
//! Integers that are sums, differences and products of sizes are known as such, in inner bodies too; so a body may make an array of `2 n + 1` elements.

use super::forms::{Result, integer};
use super::{FromCore, Part};
use crate::accelerate::language::{AVar, ArrTy, Exp, Ty, made};
pub(super) use crate::bulk::sizes::{Size, SizeVar};
use pullback_base::index::IdMap;
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Builder, Exp as Core, Stm, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// A size that is at hand.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Base {
    /// An integer.
    Value(Var),
    /// A dimension of an array.
    Dimension(Var, usize),
    /// A dimension of an array of the language, in a branch: core has no name for it.
    Array(AVar, usize),
}

/// The sizes that are at hand, and the integers that are known as sizes.
#[derive(Debug, Default)]
pub(super) struct Known {
    bases: Vec<Base>,
    vars: BTreeMap<Base, SizeVar>,
    integers: IdMap<Var, Size>,
}

impl Known {
    fn base(&mut self, base: Base) -> Size {
        let next = SizeVar::at(self.bases.len());
        let var = *self.vars.entry(base.clone()).or_insert(next);
        if var == next {
            self.bases.push(base);
        }
        Size::var(var)
    }
}

impl FromCore<'_> {
    /// The names of the dimensions of an array.
    fn names_of(&self, v: Var) -> Vec<Dim> {
        let known = self.shapes.of(v);
        let dim = |k: usize| known.get(k).copied().unwrap_or(Dim::Size(v, k));
        (0..self.program.vars[v].ty.rank()).map(dim).collect()
    }

    /// The sizes of an array.
    pub(super) fn dims_of(&mut self, v: Var) -> Result<Vec<Size>> {
        self.names_of(v).into_iter().enumerate().map(|(k, d)| self.size(d, Some((v, k)))).collect()
    }

    /// A size by its name; one without a name is this dimension.
    fn size(&mut self, d: Dim, dimension: Option<(Var, usize)>) -> Result<Size> {
        match (self.shapes.called(d), dimension) {
            (Dim::Const(n), _) => Ok(Size::constant(n.max(0))),
            (Dim::Value(n), _) => match self.as_size(n.into()) {
                Some(n) => Ok(n),
                None => self.refuse("a size that an inner body computes"),
            },
            (Dim::Size(w, j), _) if self.is_at_hand(w) => Ok(self.known.base(Base::Dimension(w, j))),
            (Dim::Size(w, j), _) => match self.parts.get(&w) {
                Some(Part::Array(view)) if view.prefix.len() + j < self.dims[&view.array].len() => {
                    let n = self.dims[&view.array][view.prefix.len() + j].clone();
                    Ok(dimension.map_or(n.clone(), |at| self.at_hand_outside(n, at)))
                }
                _ => self.refuse("a size that an inner body computes"),
            },
            (Dim::Unknown, Some((v, k))) if self.is_at_hand(v) => Ok(self.known.base(Base::Dimension(v, k))),
            (Dim::Unknown, _) => self.refuse("a size that an inner body computes"),
        }
    }

    /// The size, or the dimension itself, if it is at hand and the size is one of an array in a branch.
    pub(super) fn at_hand_outside(&mut self, n: Size, (v, k): (Var, usize)) -> Size {
        if self.is_of_branch(&n) && self.is_at_hand(v) { self.known.base(Base::Dimension(v, k)) } else { n }
    }
    fn is_of_branch(&self, n: &Size) -> bool {
        n.vars().any(|v| matches!(self.known.bases[v.0 as usize], Base::Array(..)))
    }

    /// The number of elements that an operation has.
    pub(super) fn width(&mut self, n: Atom) -> Result<Size> {
        self.size(self.shapes.name(n), None)
    }

    /// The size that an integer is known to be.
    fn as_size(&mut self, a: Atom) -> Option<Size> {
        match a {
            Atom::Const(c) => (c.scalar() == Scalar::I64).then(|| Size::constant(c.as_i64())),
            Atom::Var(v) => match self.known.integers.get(&v) {
                Some(n) => Some(n.clone()),
                None => self.is_at_hand(v).then(|| self.known.base(Base::Value(v))),
            },
        }
    }

    /// Remembers that an integer is a size.
    pub(super) fn learn_size(&mut self, stm: &Stm) {
        let size = match &stm.exp {
            Core::Atom(a) if self.program.atom_type(*a).scalar() == Some(Scalar::I64) => self.as_size(*a),
            Core::Prim(Prim::Op(op, Scalar::I64), args) => self.arithmetic(*op, args),
            Core::Size(..) => self.width(stm.pat[0].into()).ok(),
            _ => None,
        };
        match size {
            Some(size) => self.known.integers.insert(stm.pat[0], size),
            // A loop that is written out comes by more than once.
            None => self.known.integers.remove(&stm.pat[0]),
        };
    }

    /// Says that an integer is this number, in the iteration of a loop that is written out.
    pub(super) fn integer_is(&mut self, v: Var, n: i64) {
        self.known.integers.insert(v, Size::constant(n));
    }

    fn arithmetic(&mut self, op: Op, args: &[Atom]) -> Option<Size> {
        let [a, b] = args else { return None };
        let (a, b) = (self.as_size(*a)?, self.as_size(*b)?);
        Size::combined(op, &a, &b)
    }

    /// The sizes of what a conditional of arrays gives: those that core names, and those of the array itself.
    pub(super) fn dims_of_branch(&mut self, v: Var, a: &AVar) -> Vec<Size> {
        let names = self.names_of(v).into_iter().enumerate();
        let size = |(k, d)| {
            self.size(d, Some((v, k))).unwrap_or_else(|_| self.known.base(Base::Array(a.clone(), k)))
        };
        names.map(size).collect()
    }

    /// A size as an expression that may stand where the array is in scope, if it is one of an array in a branch; else anywhere.
    pub(super) fn size_exp(&mut self, n: &Size) -> Exp {
        if let Some(n) = n.as_constant() {
            return Exp::i64(n.max(0));
        }
        if self.is_of_branch(n) {
            return self.polynomial(n);
        }
        let a = match self.size_vars.get(n) {
            Some(a) => a.clone(),
            None => {
                let a = self.names.fresh("n", ArrTy::Array(Ty::Scalar(Scalar::I64), 0));
                self.dims.insert(a.clone(), Vec::new());
                self.constant.insert(a.clone());
                self.free.push((a.clone(), super::Free::Size(n.clone())));
                self.size_vars.insert(n.clone(), a.clone());
                a
            }
        };
        made(Exp::index(&a, Exp::tuple(Vec::new())))
    }

    fn polynomial(&mut self, n: &Size) -> Exp {
        if let Some(v) = n.as_var()
            && let Base::Array(a, k) = &self.known.bases[v.0 as usize]
        {
            return made(Exp::shape(a)).proj(*k);
        }
        let products: Vec<(i64, Vec<SizeVar>)> = n.products().map(|(c, vs)| (c, vs.to_vec())).collect();
        let product = |(factor, vars): (i64, Vec<SizeVar>)| {
            vars.iter().fold(Exp::i64(factor), |x, v| {
                let y = self.size_exp(&Size::var(*v));
                integer(Op::Mul, &x, &y)
            })
        };
        let sum = products.into_iter().map(product).reduce(|x, y| integer(Op::Add, &x, &y));
        integer(Op::Max, &sum.unwrap_or_else(|| Exp::i64(0)), &Exp::i64(0))
    }
}

/// Sizes as atoms, each emitted once.
pub(super) struct Sizes<'b, 'p> {
    pub(super) b: &'b mut Builder<'p>,
    known: &'b Known,
    atoms: BTreeMap<Size, Atom>,
}

impl<'b, 'p> Sizes<'b, 'p> {
    pub(super) fn new(b: &'b mut Builder<'p>, known: &'b Known) -> Sizes<'b, 'p> {
        Sizes { b, known, atoms: BTreeMap::new() }
    }
    pub(super) fn atom(&mut self, n: &Size) -> Atom {
        if let Some(n) = n.as_constant() {
            return Atom::i64(n.max(0));
        }
        if let Some(a) = self.atoms.get(n) {
            return *a;
        }
        let a = self.polynomial(n);
        // An integer may be negative, where a loop does not run.
        let may_be_negative = |v: SizeVar| matches!(self.known.bases[v.0 as usize], Base::Value(_));
        let is_size = n.is_never_negative() && !n.vars().any(may_be_negative);
        let a = if is_size { a } else { self.b.op2(Op::Max, a, Atom::i64(0)) };
        self.atoms.insert(n.clone(), a);
        a
    }
    fn integer(&mut self, v: SizeVar) -> Atom {
        match self.known.bases[v.0 as usize].clone() {
            Base::Value(v) if self.b.scalar(v.into()) == Scalar::I64 => v.into(),
            Base::Value(v) => self.b.convert(v.into(), Scalar::I64),
            Base::Dimension(..) if self.atoms.contains_key(&Size::var(v)) => self.atoms[&Size::var(v)],
            Base::Dimension(w, k) => {
                let a = self.b.size(w.into(), k);
                self.atoms.insert(Size::var(v), a);
                a
            }
            Base::Array(..) => unreachable!("a size of an array in a branch is read there only"),
        }
    }
    fn polynomial(&mut self, n: &Size) -> Atom {
        let mut sum = None;
        let products: Vec<(i64, Vec<SizeVar>)> = n.products().map(|(c, vs)| (c, vs.to_vec())).collect();
        for (factor, vars) in products {
            let product = vars.iter().fold(Atom::i64(factor), |x, v| {
                let y = self.integer(*v);
                if x == Atom::i64(1) { y } else { self.b.op2(Op::Mul, x, y) }
            });
            sum = Some(sum.map_or(product, |sum| self.b.op2(Op::Add, sum, product)));
        }
        sum.unwrap_or(Atom::i64(0))
    }
}
