//! How many iterations a `while` loop has, by a run that counts them.
//!
//! Rule:
//! ```text
//! loop (x = a) while c { body }     =>  let (_, n) = loop ((x, k) = (a, 0)) while c { body, k + 1 }
//! ```
//!
//! Cost: that of the loop.

use pullback_core::rename::{Subst, copy_exp};
use pullback_core::{Atom, Builder, Exp, Loop, LoopAttrs, Program, Stm, Type};
use pullback_prim::Op;

/// Emits the loop that counts; `kept` gives those statements of its body that are needed for that.
///
/// Cost: the size of the loop.
pub(crate) fn iterations(
    b: &mut Builder<'_>,
    l: &Loop,
    kept: impl FnOnce(&Program, Vec<Stm>) -> Vec<Stm>,
) -> Atom {
    let copy = copy_exp(b.program, &Exp::Loop(l.clone()), &Subst::new());
    let Exp::Loop(mut count) = copy else { unreachable!("a copy of a loop") };
    count.attrs = LoopAttrs::default();
    let k = b.fresh(Type::I64, "k");
    let stms = kept(b.program, std::mem::take(&mut count.body.stms));
    b.open();
    stms.into_iter().for_each(|stm| b.emit_stm(stm));
    let next = b.op2(Op::Add, k.into(), Atom::i64(1));
    let mut result = std::mem::take(&mut count.body.result);
    result.push(next);
    count.body = b.close(result);
    count.params.push((k, Atom::i64(0)));
    let all = b.emit_all(Exp::Loop(count), "x");
    all.last().map_or(Atom::i64(0), |n| Atom::from(*n))
}
