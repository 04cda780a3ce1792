//! What statement code is made for: its construct, and which sweep of a derivative it belongs to.

use crate::ir::{Site, Sweep};
use pullback_base::Span;
use pullback_core::{Exp, FusedForm, Program, Soac, Stm};

/// The site of a statement at a place.
pub(super) fn site(program: &Program, stm: &Stm, span: Option<Span>) -> Site {
    let is_reverse = |v: &pullback_core::Var| {
        let origin = &program.vars[*v].origin;
        origin.rule.is_some() && !origin.is_tape()
    };
    let reverse = stm.pat.iter().filter(|v| is_reverse(v)).count();
    let sweep = match reverse {
        0 => Sweep::Primal,
        n if n == stm.pat.len() => Sweep::Reverse,
        _ => Sweep::Both,
    };
    Site { span, construct: construct(&stm.exp), sweep }
}

/// All names of constructs: those of [`construct`].
pub(crate) const CONSTRUCTS: [&str; 21] = [
    "map",
    "reduce",
    "map and reduce",
    "map and scan",
    "scan",
    "reduce_by_index",
    "scatter",
    "loop",
    "if",
    "match",
    "call",
    "update",
    "gather",
    "array",
    "replicate",
    "concat",
    "rotate",
    "copy",
    "accumulator",
    "addition",
    "expression",
];

/// The name of a construct, as the source language has it where it does.
fn construct(exp: &Exp) -> &'static str {
    match exp {
        Exp::Soac(Soac::Map { .. }) => "map",
        Exp::Soac(Soac::Reduce { .. }) => "reduce",
        Exp::Soac(Soac::Fused { form: FusedForm::Reduce { .. }, .. }) => "map and reduce",
        Exp::Soac(Soac::Fused { .. }) => "map and scan",
        Exp::Soac(Soac::Scan { .. }) => "scan",
        Exp::Soac(Soac::Hist { .. }) => "reduce_by_index",
        Exp::Soac(Soac::Scatter { .. }) => "scatter",
        Exp::Loop(_) => "loop",
        Exp::If(..) => "if",
        Exp::Match(..) => "match",
        Exp::Call(..) => "call",
        Exp::Update(..) | Exp::UpdateSlice(..) => "update",
        Exp::Gather(..) => "gather",
        Exp::ArrayLit(..) => "array",
        Exp::Replicate(..) => "replicate",
        Exp::Concat(_) => "concat",
        Exp::Rotate(..) => "rotate",
        Exp::Reshape { .. } | Exp::Rearrange(..) | Exp::Reverse(_) => "copy",
        Exp::WithAcc(..) => "accumulator",
        Exp::AccAdd(..) | Exp::Plus(..) => "addition",
        Exp::Atom(_)
        | Exp::StopGradient(_)
        | Exp::Prim(..)
        | Exp::Tuple(_)
        | Exp::Proj(..)
        | Exp::Inject(..)
        | Exp::Index(..)
        | Exp::Slice(..)
        | Exp::Size(..)
        | Exp::Iota(_)
        | Exp::AccView(..)
        | Exp::Custom { .. }
        | Exp::Marked(..)
        | Exp::Par(_)
        | Exp::Assert(..)
        | Exp::Check(..)
        | Exp::Vjp { .. }
        | Exp::Jvp { .. } => "expression",
    }
}
