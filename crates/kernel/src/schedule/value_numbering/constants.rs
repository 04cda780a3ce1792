//! Primitives that follow from constants.

use crate::ir::{Operand, Ty};
use pullback_prim::{Op, Prim, Scalar};

/// What a primitive of integers or truth values gives, if that follows from constants.
pub(super) fn constant(prim: Prim, args: &[Operand], ty: Ty) -> Option<Operand> {
    match (prim, args) {
        _ if ty.is_lanes() => return None,
        (Prim::Op(Op::Select, _), [Operand::Const(c), a, b]) => {
            return Some(if c.is_true() { *a } else { *b });
        }
        _ if prim.result().is_float() => return None,
        _ => {}
    }
    let value = |a: &Operand| match a {
        Operand::Const(c) if !c.scalar().is_float() => Some(*c),
        _ => None,
    };
    if let Some(values) = args.iter().map(value).collect::<Option<Vec<_>>>() {
        return prim.eval(&values).ok().map(Operand::Const);
    }
    let (op, a, b) = match (prim, args) {
        (Prim::Op(op, _), [a, b]) => (op, *a, *b),
        _ => return None,
    };
    let is = |a: Operand, x: i64| value(&a).is_some_and(|c| c.as_i64() == x);
    match op {
        Op::Add | Op::Or if is(a, 0) => Some(b),
        Op::Add | Op::Or | Op::Sub if is(b, 0) => Some(a),
        Op::Mul if is(a, 1) => Some(b),
        Op::Mul if is(b, 1) => Some(a),
        Op::And if prim.result() == Scalar::Bool && is(a, 1) => Some(b),
        Op::And if prim.result() == Scalar::Bool && is(b, 1) => Some(a),
        _ => None,
    }
}
