//! Integers that are a variable and a small number: places beside a counter, sizes but for a few elements.

use pullback_core::{Atom, Exp, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// How large the number may be. Nothing counts to 2^59, so that a counter and a few such numbers do not overflow.
const NEAR: i64 = 1 << 40;

/// A number, or a variable and a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beside {
    pub(crate) base: Option<Var>,
    pub(crate) number: i64,
}

/// What an integer of 64 bits is, as far as one step of its computation tells: `def` gives the expressions of variables. `None`:
/// the number is not small.
pub(crate) fn beside<'a>(a: Atom, def: impl Fn(Var) -> Option<&'a Exp>) -> Option<Beside> {
    let small = |c: ScalarValue| Some(c.as_i64()).filter(|c| (-NEAR..=NEAR).contains(c));
    let v = match a {
        Atom::Const(c) => return Some(Beside { base: None, number: small(c)? }),
        Atom::Var(v) => v,
    };
    let moved = match def(v) {
        Some(Exp::Prim(Prim::Op(op, Scalar::I64), args)) => match (op, &args[..]) {
            (Op::Add, [Atom::Var(v), Atom::Const(c)] | [Atom::Const(c), Atom::Var(v)]) => {
                small(*c).map(|c| (*v, c))
            }
            (Op::Sub, [Atom::Var(v), Atom::Const(c)]) => small(*c).map(|c| (*v, -c)),
            _ => None,
        },
        _ => None,
    };
    let (v, number) = moved.unwrap_or((v, 0));
    Some(Beside { base: Some(v), number })
}
