//! Operators of folds and scans: core wants a neutral element of each.
//!
//! Rules:
//! ```text
//! plain      \(x, y). op x y, componentwise, for an op of the table with a neutral element
//! lifted     any other: on pairs (is there a value, value), where (false, zeros) is neutral
//! ```
//!
//! Operators are recognised by what they do to two values, not by how they are written.
//!
//! Difference from the meaning of the language: a plain operator takes its neutral element with the others. So a row of negative zeros has the sum zero, and `max` of a row
//! of nothing but NaN is minus infinity, as it is for reductions of core.
//!
//! Guarantee: a lifted operator is associative where the operator is; it is commutative where the operator is.

use super::Lower;
use crate::accelerate::language::Fun;
use pullback_core::{Atom, Exp as Core, Lam, Type, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// An operator as core takes it.
pub(super) struct Operator {
    pub(super) lam: Lam,
    pub(super) neutral: Vec<Atom>,
    /// Whether the first component says that there is a value.
    pub(super) is_lifted: bool,
    pub(super) is_commutative: bool,
}

/// What a function of two values does with a leaf of them.
pub(super) enum Component {
    /// An operation with a neutral element; all such are commutative.
    Op(Op, Scalar),
    /// The leaf of the first value.
    First,
}

/// The order of the arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// `f (x, y)`
    Forward,
    /// `f (y, x)`
    Backward,
}

impl Lower<'_, '_> {
    /// The operator with a neutral element.
    pub(super) fn operator(&mut self, f: &Fun, order: Order) -> Operator {
        match self.operations(f) {
            Some(ops) => self.plain(&ops),
            None => self.lifted(f, order),
        }
    }
    /// What a function of two values gives for each leaf, if that is an operation on this leaf of both, or this leaf of the first one.
    pub(super) fn components(&mut self, f: &Fun) -> Option<Vec<Component>> {
        let scalars = f.body.ty().scalars();
        let mut fresh =
            || -> Vec<Atom> { scalars.iter().map(|s| self.b.fresh(Type::Scalar(*s), "x").into()).collect() };
        let (xs, ys) = (fresh(), fresh());
        self.b.open();
        let results = self.apply(f, [xs.clone(), ys.clone()].concat());
        let body = self.b.close(Vec::new());
        let each = results.iter().zip(xs.iter().zip(&ys)).map(|(a, (x, y))| {
            if a == x {
                return Some(Component::First);
            }
            let stm = body.stms.iter().find(|s| s.pat.iter().any(|v| Atom::from(*v) == *a))?;
            match &stm.exp {
                Core::Prim(Prim::Op(op, scalar), args) if args[..] == [*x, *y] || args[..] == [*y, *x] => {
                    neutral_of(*op, *scalar).map(|_| Component::Op(*op, *scalar))
                }
                _ => None,
            }
        });
        each.collect()
    }
    /// The operations of an operator that is plain.
    fn operations(&mut self, f: &Fun) -> Option<Vec<(Op, Scalar)>> {
        let op = |c| match c {
            Component::Op(op, scalar) => Some((op, scalar)),
            Component::First => None,
        };
        self.components(f)?.into_iter().map(op).collect()
    }
    /// The neutral element of an operator that is plain.
    pub(super) fn neutral(&mut self, f: &Fun) -> Option<Vec<Atom>> {
        self.operations(f)?.iter().map(|(op, s)| neutral_of(*op, *s).map(Atom::Const)).collect()
    }
    // [accelerate_to_core.plain]  op x y, for each leaf
    pub(super) fn plain(&mut self, ops: &[(Op, Scalar)]) -> Operator {
        let scalars: Vec<Type> = ops.iter().map(|(_, s)| Type::Scalar(*s)).collect();
        let types = [scalars.clone(), scalars].concat();
        let lam = self.b.lam(&types, "x", |b, p| {
            let (xs, ys) = p.split_at(ops.len());
            xs.iter().zip(ys).zip(ops).map(|((x, y), (op, _))| b.op2(*op, (*x).into(), (*y).into())).collect()
        });
        let neutral = ops.iter().filter_map(|(op, s)| neutral_of(*op, *s)).map(Atom::Const).collect();
        Operator { lam, neutral, is_lifted: false, is_commutative: true }
    }
    // [accelerate_to_core.lifted]  (b, x) (c, y)  =>  (b or c, if b then (if c then f (x, y) else x) else y)
    fn lifted(&mut self, f: &Fun, order: Order) -> Operator {
        let scalars = f.body.ty().scalars();
        let types: Vec<Type> =
            std::iter::once(Scalar::Bool).chain(scalars.iter().copied()).map(Type::Scalar).collect();
        let mut fresh = || -> Vec<Var> { types.iter().map(|t| self.b.fresh(t.clone(), "x")).collect() };
        let (left, right) = (fresh(), fresh());
        let atoms = |vs: &[Var]| -> (Atom, Vec<Atom>) {
            (vs[0].into(), vs[1..].iter().map(|v| Atom::from(*v)).collect())
        };
        let ((b, x), (c, y)) = (atoms(&left), atoms(&right));
        let arguments = match order {
            Order::Forward => [x.clone(), y.clone()].concat(),
            Order::Backward => [y.clone(), x.clone()].concat(),
        };
        self.b.open();
        let either = self.op2(Op::Or, Scalar::Bool, b, c);
        let value = self.branch(
            b,
            &mut |this| this.branch(c, &mut |this| this.apply(f, arguments.clone()), &mut |_| x.clone()),
            &mut |_| y.clone(),
        );
        let body = self.b.close([vec![either], value].concat());
        let zeros = scalars.iter().map(|s| Atom::Const(s.zero()));
        let neutral = std::iter::once(Atom::bool(false)).chain(zeros).collect();
        Operator {
            lam: Lam { params: [left, right].concat(), body },
            neutral,
            is_lifted: true,
            is_commutative: false,
        }
    }
}

/// The neutral element of an operation, if it has one.
fn neutral_of(op: Op, s: Scalar) -> Option<ScalarValue> {
    match op {
        Op::Add => Some(s.zero()),
        Op::Mul => Some(s.one()),
        Op::Max | Op::MaxFirst => Some(s.least()),
        Op::Min | Op::MinFirst => Some(s.greatest()),
        Op::And if s == Scalar::Bool => Some(s.one()),
        Op::Or if s == Scalar::Bool => Some(s.zero()),
        _ => None,
    }
}
