//! What is known where a scope stands: which arrays are zeros, and how long they are.
//!
//! Definitions hold wherever a variable is in scope; what an assertion says holds for what comes after it in its body.

use pullback_base::index::IdMap;
use pullback_core::{Atom, Exp, Stm, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

#[derive(Default)]
pub(super) struct Facts {
    /// Arrays of zeros, and the length of those whose only size is a known number.
    zeros: IdMap<Var, Option<i64>>,
    /// What a condition compares.
    equations: IdMap<Var, (Var, i64)>,
    /// Sizes that were asserted to be a number.
    known: Vec<(Var, i64)>,
}

impl Facts {
    /// What a statement says about the ones after it.
    pub(super) fn note(&mut self, stm: &Stm) {
        match &stm.exp {
            Exp::Replicate(shape, Atom::Const(c)) if c.scalar().is_float() && c.as_f64() == 0.0 => {
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
        a.var().is_some_and(|v| self.zeros.contains_key(&v))
    }
    /// The length of a vector of zeros.
    pub(super) fn length_of_zeros(&self, a: Atom) -> Option<i64> {
        *self.zeros.get(&a.var()?)?
    }
}
