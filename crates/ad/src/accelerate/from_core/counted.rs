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
use crate::iterations::iterations;
use pullback_core::{Builder, Exp as Core, Lam, Loop, LoopForm, Program, Stm, Type, Var};

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
                let n = iterations(&mut b, &l, |_, stms| stms);
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
