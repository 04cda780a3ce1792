//! What is known where a scope stands: which arrays are zeros, how long they are, which parts of others are, and which
//! indices differ.
//!
//! Definitions hold wherever a variable is in scope; what an assertion says holds for what comes after it in its body.

use pullback_base::index::{IdMap, IdTable};
use pullback_core::{Atom, Body, Exp, Stm, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

#[derive(Default)]
pub(super) struct Facts {
    /// Arrays of zeros, and the length of those whose only size is a known number.
    zeros: IdMap<Var, Option<i64>>,
    /// What a condition compares.
    equations: IdMap<Var, (Var, i64)>,
    /// Sizes that were asserted to be a number.
    known: Vec<(Var, i64)>,
    /// Arrays that are others with zeros at one place.
    cleared: IdMap<Var, (Atom, Vec<Atom>)>,
    /// Sums of a number and a constant.
    shifted: IdMap<Var, (Var, i64)>,
    /// How often variables are mentioned.
    uses: IdTable<Var, u32>,
}

impl Facts {
    /// At the beginning of a function.
    pub(super) fn of(body: &Body) -> Facts {
        let mut facts = Facts::default();
        facts.count(body);
        facts
    }
    fn count(&mut self, body: &Body) {
        let mut mention = |a: Atom| {
            if let Atom::Var(v) = a {
                *self.uses.place(v).get_or_insert(0) += 1;
            }
        };
        body.result.iter().for_each(|a| mention(*a));
        body.stms.iter().for_each(|s| s.exp.for_each_atom(&mut mention));
        for scope in body.stms.iter().flat_map(|s| s.exp.bodies()) {
            self.count(scope.body);
        }
    }
    /// What a statement says about the ones after it.
    pub(super) fn note(&mut self, stm: &Stm) {
        match &stm.exp {
            Exp::Replicate(shape, Atom::Const(c)) if c.is_float_zero() => {
                let length = match shape[..] {
                    [n] => self.number(n),
                    _ => None,
                };
                self.zeros.extend(stm.pat.iter().map(|v| (*v, length)));
            }
            Exp::Prim(Prim::Op(Op::Eq, Scalar::I64), args) => {
                if let [Atom::Var(v), Atom::Const(c)] | [Atom::Const(c), Atom::Var(v)] = args[..] {
                    self.equations.extend(stm.pat.iter().map(|e| (*e, (v, c.as_i64()))));
                }
            }
            Exp::Update(array, ix, z) if self.is_zero(*z) => {
                self.cleared.insert(stm.pat[0], (*array, ix.clone()));
            }
            Exp::Prim(Prim::Op(Op::Add, Scalar::I64), args) => {
                if let [Atom::Var(v), Atom::Const(c)] | [Atom::Const(c), Atom::Var(v)] = args[..] {
                    self.shifted.insert(stm.pat[0], (v, c.as_i64()));
                }
            }
            Exp::Assert(Atom::Var(c), ..) => self.known.extend(self.equations.get(c).copied()),
            _ => {}
        }
    }
    fn number(&self, a: Atom) -> Option<i64> {
        match a {
            Atom::Const(ScalarValue::I64(n)) => Some(n),
            Atom::Const(_) => None,
            Atom::Var(v) => self.known.iter().find(|k| k.0 == v).map(|k| k.1),
        }
    }
    /// The body that begins is left again with [`Facts::leave`].
    pub(super) fn enter(&self) -> usize {
        self.known.len()
    }
    pub(super) fn leave(&mut self, entered: usize) {
        self.known.truncate(entered);
    }
    pub(super) fn is_zero(&self, a: Atom) -> bool {
        match a {
            Atom::Var(v) => self.zeros.contains_key(&v),
            Atom::Const(c) => c.is_float_zero(),
        }
    }
    /// The array that this one is, but for zeros at a place.
    pub(super) fn cleared(&self, a: Atom) -> Option<(Atom, &[Atom])> {
        let (before, place) = self.cleared.get(&a.var()?)?;
        Some((*before, place))
    }
    pub(super) fn is_used_once(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.uses.get(v) == Some(&1))
    }
    /// Whether the parts at these places have no element in common.
    pub(super) fn differ(&self, one: &[Atom], other: &[Atom]) -> bool {
        let distance = |a: Atom| match a {
            Atom::Const(c) => (None, c.as_i64()),
            Atom::Var(v) => self.shifted.get(&v).map_or((Some(v), 0), |(base, k)| (Some(*base), *k)),
        };
        one.iter().zip(other).any(|(a, b)| {
            let ((x, j), (y, k)) = (distance(*a), distance(*b));
            x == y && j != k
        })
    }
    /// The length of a vector of zeros.
    pub(super) fn length_of_zeros(&self, a: Atom) -> Option<i64> {
        *self.zeros.get(&a.var()?)?
    }
}
