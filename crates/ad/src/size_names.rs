//! Sizes of a function by name, for algorithms that translate core into a language with shapes.
//!
//! Core names sizes ([`pullback_core::shapes`]). Here two names that core has checked to be equal, outside of inner bodies, are one: by an assertion, or because one operation has one width.

use pullback_base::index::IdMap;
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::{Atom, Body, Exp, Lam, Program, Soac, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;

/// The names of sizes of a function.
#[derive(Debug)]
pub(crate) struct SizeNames {
    shapes: Shapes,
    /// The first is called the second.
    equal: BTreeMap<Dim, Dim>,
}

impl SizeNames {
    /// Those of a function. Cost: as [`shapes`].
    pub(crate) fn new(program: &Program, lam: &Lam) -> SizeNames {
        let shapes = shapes(program, &lam.params, &lam.body);
        let mut names = SizeNames { shapes, equal: BTreeMap::new() };
        names.learn_equal(&lam.body);
        names
    }
    /// The dimensions of an array, as core names them.
    pub(crate) fn of(&self, v: Var) -> &[Dim] {
        self.shapes.of(v)
    }
    /// An integer as a size, as core names it.
    pub(crate) fn name(&self, a: Atom) -> Dim {
        self.shapes.name(a)
    }
    /// The name of a size, after what is known to be equal.
    pub(crate) fn called(&self, d: Dim) -> Dim {
        std::iter::successors(Some(d), |d| self.equal.get(d).copied()).last().unwrap_or(d)
    }

    /// Sizes that are asserted to be equal are one, and so are the width of an operation and the sizes of its arrays.
    fn learn_equal(&mut self, body: &Body) {
        let mut comparisons: IdMap<Var, (Atom, Atom)> = IdMap::new();
        for stm in &body.stms {
            match &stm.exp {
                Exp::Prim(Prim::Op(Op::Eq, Scalar::I64), args) => {
                    comparisons.insert(stm.pat[0], (args[0], args[1]));
                }
                Exp::Assert(condition, ..) => {
                    let Some((a, b)) = condition.var().and_then(|c| comparisons.get(&c)).copied() else {
                        continue;
                    };
                    let (a, b) = (self.shapes.name(a), self.shapes.name(b));
                    self.learn(a, b);
                }
                Exp::Size(Atom::Var(a), k) if self.shapes.of(*a).is_empty() => {
                    self.learn(Dim::Size(*a, *k), self.shapes.name(stm.pat[0].into()));
                }
                Exp::Soac(
                    Soac::Map { width, arrays, .. }
                    | Soac::Reduce { width, arrays, .. }
                    | Soac::Scan { width, arrays, .. },
                ) => {
                    let width = self.shapes.name(*width);
                    for v in arrays.iter().filter_map(|a| a.var()) {
                        let known = self.shapes.of(v).first().copied().filter(|d| *d != Dim::Unknown);
                        self.learn(known.unwrap_or(Dim::Size(v, 0)), width);
                    }
                }
                _ => {}
            }
        }
    }

    fn learn(&mut self, a: Dim, b: Dim) {
        let (a, b) = (self.called(a), self.called(b));
        // A number is best, then a size that was there before.
        let rank = |d: Dim| match d {
            Dim::Const(_) => (0, None),
            Dim::Size(v, _) => (1, Some(v)),
            Dim::Value(v) => (2, Some(v)),
            Dim::Unknown => (3, None),
        };
        let (kept, other) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
        if a != b && !matches!(other, Dim::Const(_) | Dim::Unknown) {
            self.equal.insert(other, kept);
        }
    }
}
