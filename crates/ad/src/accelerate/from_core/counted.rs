//! `while` loops outside of all inner bodies, as loops over a number: the loop runs once to count its iterations.
//!
//! Rule, where a state is active:
//! ```text
//! loop (x = a) while c { body }     =>  let (_, n) = loop ((x, k) = (a, 0)) while c { body, k + 1 }    loop (x = a) for i < n { body }
//! ```
//!
//! Source: as in Fast CHAD, for loops whose iterations have to be numbered. The count is an integer that is at hand: so it has no derivative.
//!
//! Cost: the loop runs once more. Not supported: `while` loops that collect, and those in inner bodies.

use crate::activity::active_variables;
use pullback_core::rename::{Subst, copy_exp};
use pullback_core::{Atom, Builder, Exp as Core, Lam, Loop, LoopAttrs, LoopForm, Program, Stm, Type, Var};
use pullback_prim::Op;

/// The function with such loops. Cost: the size of the function.
// [accelerate.loop.while]
pub(super) fn counted(program: &mut Program, lam: Lam, wanted: &[Var]) -> Lam {
    let active = active_variables(program, &lam, wanted);
    let Lam { params, mut body } = lam;
    let mut b = Builder::new(program);
    for Stm { pat, exp } in std::mem::take(&mut body.stms) {
        b.origin = b.program.vars[pat[0]].origin.clone();
        match exp {
            Core::Loop(l) if is_open(&l) && pat.iter().any(|v| active.contains(v)) => {
                let n = iterations(&mut b, &l);
                let form = LoopForm::For { i: b.fresh(Type::I64, "i"), n };
                b.emit_to(pat, Core::Loop(Loop { form, ..l }));
            }
            exp => b.emit_to(pat, exp),
        }
    }
    body.stms = b.finish();
    Lam { params, body }
}

fn is_open(l: &Loop) -> bool {
    matches!(l.form, LoopForm::While(_)) && l.collect == 0
}

/// How many iterations a `while` loop has.
fn iterations(b: &mut Builder<'_>, l: &Loop) -> Atom {
    let copy = copy_exp(b.program, &Core::Loop(l.clone()), &Subst::new());
    let Core::Loop(mut count) = copy else { unreachable!("a copy of a loop") };
    count.attrs = LoopAttrs::default();
    let k = b.fresh(Type::I64, "k");
    b.open();
    let next = b.op2(Op::Add, k.into(), Atom::i64(1));
    let one_more = b.close(vec![next]);
    count.body.stms.extend(one_more.stms);
    count.body.result.extend(one_more.result);
    count.params.push((k, Atom::i64(0)));
    let all = b.emit_all(Core::Loop(count), "count");
    all.last().map_or(Atom::i64(0), |n| Atom::from(*n))
}
