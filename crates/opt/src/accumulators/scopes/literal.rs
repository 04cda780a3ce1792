//! A vector of zeros of known length, to which numbers are added at known places and in the body of the scope itself, is
//! the array of the sums: what a record of scalars or a short vector receives as its cotangent.
//!
//! Guarantees fewer steps: a literal costs what the zeros cost, and a sum costs no more than an addition in place.

use crate::effects::mentions;
use pullback_core::{Atom, Body, Builder, Exp, Program, Stm, Type, Var};
use pullback_prim::{Op, ScalarValue};

/// How many elements a literal may have.
const LIMIT: i64 = 64;

/// The terms of each of the `length` elements; `None` if the accumulator is used in another way. What is added out of
/// range is nowhere.
pub(super) fn elements(body: &Body, acc: Var, length: i64) -> Option<Vec<Vec<Atom>>> {
    (0..=LIMIT).contains(&length).then_some(())?;
    let mut out = vec![Vec::new(); length as usize];
    for stm in &body.stms {
        match &stm.exp {
            Exp::AccAdd(Atom::Var(a), ix, v) if *a == acc => {
                let [Atom::Const(ScalarValue::I64(i))] = ix[..] else { return None };
                if let Some(terms) = usize::try_from(i).ok().and_then(|i| out.get_mut(i)) {
                    terms.push(*v);
                }
            }
            exp if mentions(exp, &|v| v == acc) => return None,
            _ => {}
        }
    }
    Some(out)
}

/// Binds `v` to the array of these sums.
pub(super) fn write(program: &mut Program, v: Var, elements: &[Vec<Atom>], out: &mut Vec<Stm>) {
    let Type::Array(elem) = program.vars[v].ty.clone() else { return };
    let Some(zero) = elem.scalar().map(|s| Atom::Const(s.zero())) else { return };
    let mut b = Builder::new(program);
    b.origin = b.program.vars[v].origin.clone();
    let sum = |b: &mut Builder<'_>, terms: &Vec<Atom>| {
        let sum = terms.iter().copied().reduce(|x, y| b.op2(Op::Add, x, y));
        sum.unwrap_or(zero)
    };
    let items: Vec<Atom> = elements.iter().map(|terms| sum(&mut b, terms)).collect();
    b.emit_to(vec![v], Exp::ArrayLit(Type::clone(&elem), items));
    out.extend(b.finish());
}
