//! Scalar rules. Each line of [`identity`] holds for all values, NaN, infinities and both zeros included.

use super::Simplifier;
use pullback_core::{Atom, Exp};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

impl Simplifier<'_> {
    /// The atom that the primitive's value is known to be.
    pub(super) fn scalar(&self, prim: Prim, args: &[Atom]) -> Option<Atom> {
        if let Some(value) = fold(prim, args) {
            return Some(Atom::Const(value));
        }
        match prim {
            Prim::Convert(from, to) if from == to => Some(args[0]),
            Prim::Convert(..) => None,
            Prim::Op(Op::Neg | Op::Not, _) => match self.def(args[0]) {
                Some(Exp::Prim(inner, inner_args)) if *inner == prim => Some(inner_args[0]),
                _ => None,
            },
            Prim::Op(Op::Eq, _) if args[1] == Atom::f64(0.0) && self.is_never_zero(args[0]) => {
                Some(Atom::bool(false))
            }
            Prim::Op(op @ (Op::Lt | Op::Le | Op::Eq | Op::Ne), Scalar::I64) => {
                let known = self.compared(op, args[0], args[1]).map(Atom::bool);
                known.or_else(|| identity(op, Scalar::I64, args))
            }
            Prim::Op(op, s) => identity(op, s, args),
        }
    }

    /// The cheaper primitive with the same value: products stop at no zero that another constant is.
    pub(super) fn weakened(&self, prim: Prim, args: &[Atom]) -> Option<Exp> {
        let product = |op, s, x, y| Some(Exp::Prim(Prim::Op(op, s), vec![x, y]));
        match (prim, args) {
            (Prim::Op(Op::StrongMul, s), &[x, y]) if is_nonzero(x) => product(Op::Mul, s, x, y),
            (Prim::Op(Op::MutualMul, s), &[x, y]) if is_nonzero(x) => product(Op::StrongMul, s, y, x),
            (Prim::Op(Op::MutualMul, s), &[x, y]) if is_nonzero(y) => product(Op::StrongMul, s, x, y),
            _ => None,
        }
    }

    /// Whether a float is an absolute value and a positive number more. Derivatives of powers ask this of their exponents.
    fn is_never_zero(&self, a: Atom) -> bool {
        let Some(Exp::Prim(Prim::Op(Op::Add, s), terms)) = self.def(a) else { return false };
        let [size, Atom::Const(more)] = terms.as_slice() else { return false };
        s.is_float()
            && more.as_f64() > 0.0
            && matches!(self.def(*size), Some(Exp::Prim(Prim::Op(Op::Abs, _), _)))
    }
}

/// The value of a primitive of constants. Not where it is NaN (its bits are not fixed by IEEE) or an error.
fn fold(prim: Prim, args: &[Atom]) -> Option<ScalarValue> {
    let constants: Option<Vec<ScalarValue>> = args
        .iter()
        .map(|a| match a {
            Atom::Const(c) => Some(*c),
            Atom::Var(_) => None,
        })
        .collect();
    let value = prim.eval(&constants?).ok()?;
    let is_nan = value.scalar().is_float() && value.as_f64().is_nan();
    (!is_nan).then_some(value)
}

/// Whether it is known to be a zero of either sign.
fn is_zero(a: Atom) -> bool {
    matches!(a, Atom::Const(c) if c.as_f64() == 0.0)
}

/// Whether it is a constant other than zero.
fn is_nonzero(a: Atom) -> bool {
    matches!(a, Atom::Const(c) if c.as_f64() != 0.0)
}

fn identity(op: Op, s: Scalar, args: &[Atom]) -> Option<Atom> {
    if op == Op::Select {
        return select(s, args);
    }
    let [x, y] = args else { return None };
    let (x, y) = (*x, *y);
    let one = Atom::Const(s.one());
    let zero = Atom::Const(s.zero());
    if s.is_float() {
        let minus_zero = Atom::Const(s.from_f64(-0.0));
        return match op {
            Op::Mul | Op::Div if y == one => Some(x),
            Op::Mul if x == one => Some(y),
            Op::StrongMul if is_zero(x) => Some(zero),
            Op::MutualMul if is_zero(x) || is_zero(y) => Some(zero),
            // `x + 0` is not `x` for minus zero; these are.
            Op::Add if y == minus_zero => Some(x),
            Op::Add if x == minus_zero => Some(y),
            Op::Sub if y == zero => Some(x),
            _ => None,
        };
    }
    let constant = |b: bool| Some(Atom::bool(b));
    match op {
        Op::Eq | Op::Le if x == y => return constant(true),
        Op::Ne | Op::Lt if x == y => return constant(false),
        _ => {}
    }
    if s == Scalar::Bool {
        let (yes, no) = (Atom::bool(true), Atom::bool(false));
        return match op {
            Op::And if x == yes || x == y => Some(y),
            Op::And if y == yes => Some(x),
            Op::And if x == no || y == no => Some(no),
            Op::Or if x == no || x == y => Some(y),
            Op::Or if y == no => Some(x),
            Op::Or if x == yes || y == yes => Some(yes),
            Op::Xor | Op::Ne if y == no => Some(x),
            Op::Xor | Op::Ne if x == no => Some(y),
            Op::Eq if y == yes => Some(x),
            Op::Eq if x == yes => Some(y),
            _ => None,
        };
    }
    match op {
        Op::Mul | Op::Div | Op::Quot if y == one => Some(x),
        Op::Mul if x == one => Some(y),
        Op::Mul if x == zero || y == zero => Some(zero),
        Op::Mod | Op::Rem if y == one => Some(zero),
        Op::Add | Op::Or | Op::Xor if x == zero => Some(y),
        Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::Shr if y == zero => Some(x),
        Op::Sub | Op::Xor if x == y => Some(zero),
        Op::And if x == zero || y == zero => Some(zero),
        Op::And | Op::Or | Op::Min | Op::Max if x == y => Some(x),
        _ => None,
    }
}

fn select(s: Scalar, args: &[Atom]) -> Option<Atom> {
    let [c, x, y] = args else { return None };
    match c {
        Atom::Const(c) => Some(if c.is_true() { *x } else { *y }),
        Atom::Var(_) if x == y => Some(*x),
        Atom::Var(_) if s == Scalar::Bool && *x == Atom::bool(true) && *y == Atom::bool(false) => Some(*c),
        Atom::Var(_) => None,
    }
}
