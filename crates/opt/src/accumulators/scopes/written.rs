//! Additions at places that were set to zero before are writes: the cotangent of a loop state whose parts are read and
//! written anew in every iteration.
//!
//! ```text
//! x1 = x0 with [i] = zeros;  with_acc [x1] { acc[i] += v }      =>      x0 with [i] = v
//! ```
//!
//! Assumes that the first value is a chain of such writes. What was written is in range, so reading and writing there
//! cannot stop the program; of two places that may be the same one, the second is read before it is written. Guarantees
//! no more steps than the additions where places are known to differ.

use super::Facts;
use crate::effects::mentions;
use pullback_core::{Atom, Body, Builder, Exp, Program, Stm, Type, Var};
use pullback_prim::Op;

/// A place and what is added there.
pub(super) type Write = (Vec<Atom>, Atom);

/// The first value that is still needed and the additions, in their order; `None` if the accumulator is used in another
/// way, or a place was not set to zero.
pub(super) fn writes(body: &Body, acc: Var, init: Atom, facts: &Facts) -> Option<(Atom, Vec<Write>)> {
    let mut out: Vec<Write> = Vec::new();
    for stm in &body.stms {
        match &stm.exp {
            Exp::AccAdd(Atom::Var(a), ix, v) if *a == acc => {
                is_cleared(init, ix, facts).then_some(())?;
                out.push((ix.clone(), *v));
            }
            exp if mentions(exp, &|v| v == acc) => return None,
            _ => {}
        }
    }
    // A part that is written now without being read need not have been cleared, if nobody else has seen that.
    let mut first = init;
    while let Some((before, ix)) = facts.cleared(first)
        && facts.is_used_once(first)
        && out.iter().position(|(place, _)| place == ix).is_some_and(|k| is_fresh(&out, k, facts))
    {
        first = before;
    }
    Some((first, out))
}

/// Whether one of the writes that made the array set this place to zero; the others have set theirs.
fn is_cleared(array: Atom, place: &[Atom], facts: &Facts) -> bool {
    let mut array = array;
    while let Some((before, ix)) = facts.cleared(array) {
        if ix == place {
            return true;
        }
        array = before;
    }
    false
}

/// Whether none of the earlier additions may have been at the same place.
fn is_fresh(writes: &[Write], k: usize, facts: &Facts) -> bool {
    writes[..k].iter().all(|(other, _)| facts.differ(&writes[k].0, other))
}

/// Binds `v` to the array with these writes.
pub(super) fn write(
    program: &mut Program,
    v: Var,
    first: Atom,
    writes: &[Write],
    facts: &Facts,
    out: &mut Vec<Stm>,
) {
    let mut b = Builder::new(program);
    b.origin = b.program.vars[v].origin.clone();
    let mut array = first;
    for (k, (ix, value)) in writes.iter().enumerate() {
        let new = if is_fresh(writes, k, facts) {
            *value
        } else {
            let old = b.index(array, ix);
            match b.ty(*value) {
                Type::Scalar(_) => b.op2(Op::Add, old, *value),
                _ => b.emit(Exp::Plus(old, *value), "t"),
            }
        };
        let exp = Exp::Update(array, ix.clone(), new);
        if k + 1 == writes.len() {
            b.emit_to(vec![v], exp);
        } else {
            array = b.emit(exp, "x_bar");
        }
    }
    out.extend(b.finish());
}
