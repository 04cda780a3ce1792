//! Sums: following a value that is a product of a sum and other things to what is summed.

use super::{Binding, Definition, Delayed, Dim, Env, Id};
use pullback_core::{Atom, Body, Exp, Soac, Var};
use pullback_prim::{Op, Prim, Scalar};

/// `factors * sum over dim of element`, with its sign.
pub(in crate::accumulators) struct Sum {
    pub(in crate::accumulators) dim: Dim,
    pub(in crate::accumulators) element: Id,
    pub(in crate::accumulators) factors: Vec<Id>,
    pub(in crate::accumulators) negative: bool,
    /// What the reduction binds.
    pub(in crate::accumulators) result: Var,
}

impl Delayed<'_> {
    /// The value of the nest at these indices as a linear function of a sum of numbers; the sum gets a dimension.
    pub(in crate::accumulators) fn linear(&mut self, a: Atom, env: Env, index: &[Id]) -> Option<Sum> {
        let v = a.var().filter(|v| !self.available.contains(*v))?;
        self.budget = self.budget.checked_sub(1)?;
        let env = self.owner(v, env);
        match self.instances[env].binds.get(&v).cloned() {
            Some(Binding::Element(array, from, i)) => {
                let whole: Vec<Id> = std::iter::once(i).chain(index.iter().copied()).collect();
                return self.linear(array, from, &whole);
            }
            Some(Binding::Scalar(_) | Binding::Opaque) => return None,
            None => {}
        }
        let Definition::Result(exp, k) = self.definitions.open(v)? else { return None };
        match exp {
            Exp::Atom(a) => self.linear(*a, env, index),
            Exp::Prim(Prim::Op(Op::Neg, s), args) if s.is_float() => {
                let sum = self.linear(args[0], env, index)?;
                Some(Sum { negative: !sum.negative, ..sum })
            }
            Exp::Prim(Prim::Op(Op::Mul, s), args) if s.is_float() => {
                let of = |values: &mut Self, x: Atom, y: Atom| {
                    let mut sum = values.linear(x, env, index)?;
                    sum.factors.push(values.element(y, env, &[])?);
                    Some(sum)
                };
                of(self, args[0], args[1]).or_else(|| of(self, args[1], args[0]))
            }
            Exp::Soac(Soac::Map { width, lam, arrays }) => {
                let (first, rest) = index.split_first()?;
                let inner = self.enter(*width, lam, arrays, env, *first);
                self.linear(*lam.body.result.get(k)?, inner, rest)
            }
            Exp::Soac(Soac::Reduce { width, lam, neutral, arrays, commutative: _ }) => {
                let ([zero], [array]) = (&neutral[..], &arrays[..]) else { return None };
                let is_zero = matches!(zero, Atom::Const(c) if c.is_float_zero());
                (is_zero && adds(&lam.params, &lam.body) && index.is_empty()).then_some(())?;
                self.summed(*width, *array, env, v)
            }
            exp => {
                let (array, whole) = self.through(exp, env, index)?;
                self.linear(array, env, &whole)
            }
        }
    }
    fn summed(&mut self, width: Atom, array: Atom, env: Env, result: Var) -> Option<Sum> {
        let width = self.element(width, env, &[])?;
        (self.dims[width].is_empty() && self.is_safe(width)).then_some(())?;
        let dim = self.widths.len();
        let place = self.dim(dim);
        self.widths.push(width);
        self.full.insert(dim);
        match self.element(array, env, &[place]) {
            Some(element) => Some(Sum { dim, element, factors: Vec::new(), negative: false, result }),
            None => {
                self.widths.pop();
                self.full.remove(&dim);
                None
            }
        }
    }
}

/// Whether a function adds its two parameters.
fn adds(params: &[Var], body: &Body) -> bool {
    let ([x, y], [stm], [Atom::Var(result)]) = (params, &body.stms[..], &body.result[..]) else {
        return false;
    };
    let both = [[Atom::Var(*x), Atom::Var(*y)], [Atom::Var(*y), Atom::Var(*x)]];
    let is_sum = |args: &[Atom]| both.iter().any(|b| b == args);
    stm.pat[..] == [*result]
        && matches!(&stm.exp, Exp::Prim(Prim::Op(Op::Add, s), args) if *s != Scalar::Bool && is_sum(args))
}
