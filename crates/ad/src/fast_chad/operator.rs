//! Operators of reduce, scan and histogram: what they are, and applying them.
//!
//! Source: Schenck et al., SC 2022, section IV (special operators). Assumes checked lambdas of two groups of parameters.
//! Guarantees: an operator is called an addition, a minimum or a maximum only if it is exactly that, component by component.

use pullback_core::rename::{Subst, copy_applied};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Builder, Exp, Lam, LoopForm, Soac, Var};
use pullback_prim::{Op, Prim};

/// What an operator does to a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Add,
    Min,
    Max,
    Other,
}

/// The kind of each component of an operator.
pub(crate) fn kinds(lam: &Lam) -> Vec<Kind> {
    let count = lam.params.len() / 2;
    let kind = |k: usize| -> Kind {
        let pair = [lam.params[k], lam.params[count + k]];
        let Some(Atom::Var(result)) = lam.body.result.get(k).copied() else { return Kind::Other };
        let Some(stm) = lam.body.stms.iter().find(|s| s.pat == [result]) else { return Kind::Other };
        operation(&stm.exp, pair)
    };
    (0..lam.body.result.len()).map(kind).collect()
}

/// The kind of `exp` as an operator on the two variables.
fn operation(exp: &Exp, [x, y]: [Var; 2]) -> Kind {
    let is_pair = |args: &[Atom]| args == [x.into(), y.into()] || args == [y.into(), x.into()];
    match exp {
        Exp::Prim(Prim::Op(op, s), args) if is_pair(args) && s.is_float() => match op {
            Op::Add => Kind::Add,
            Op::Min => Kind::Min,
            Op::Max => Kind::Max,
            _ => Kind::Other,
        },
        Exp::Plus(a, b) if is_pair(&[*a, *b]) => Kind::Add,
        // An operator on arrays that adds elementwise is an addition.
        Exp::Soac(Soac::Map { lam, arrays, .. }) if is_pair(arrays) => match kinds(lam)[..] {
            [Kind::Add] => Kind::Add,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// Whether the derivative does not depend on how an associative operator is bracketed. At a kink it may: `min` and `max`
/// give everything to their first argument on a tie, and other brackets have other ties.
pub(crate) fn is_smooth(body: &Body) -> bool {
    let mut smooth = true;
    for_each_stm(body, &mut |stm| {
        smooth &= match &stm.exp {
            Exp::If(..) | Exp::Match(..) => false,
            Exp::Prim(Prim::Op(op, s), _) => {
                !s.is_float()
                    || !matches!(
                        op,
                        Op::Abs
                            | Op::Sgn
                            | Op::Min
                            | Op::Max
                            | Op::Floor
                            | Op::Ceil
                            | Op::Round
                            | Op::Trunc
                            | Op::Mod
                            | Op::Rem
                            | Op::Quot
                            | Op::Pow
                            | Op::Hypot
                            | Op::Select
                    )
            }
            Exp::Loop(l) => matches!(l.form, LoopForm::For { .. }),
            _ => true,
        };
    });
    smooth
}
/// Emits a copy of the operator applied to arguments; returns its results.
pub(crate) fn applied(b: &mut Builder<'_>, lam: &Lam, args: &[Atom]) -> Vec<Atom> {
    let Body { stms, result } = copy_applied(b.program, lam, args, &Subst::new());
    for stm in stms {
        b.emit_stm(stm);
    }
    result
}
