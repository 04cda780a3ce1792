//! What operations ask: the check that stops a program where the operation has no value.

use pullback_core::{Atom, Check, Exp};

/// An argument of a check.
pub(super) enum Part {
    /// An operand.
    Operand(Atom),
    /// A size of an array.
    Size(Atom, usize),
}

/// The check of an operation with its arguments, where it has one. `rank`: of an array.
pub(super) fn asked(exp: &Exp, rank: impl Fn(Atom) -> usize) -> Option<(Check, Vec<Part>)> {
    let operands = |atoms: &[Atom]| atoms.iter().map(|a| Part::Operand(*a)).collect::<Vec<_>>();
    let sizes = |a: Atom, count: usize| (0..count).map(move |d| Part::Size(a, d));
    let with = |mut parts: Vec<Part>, a: Atom, count: usize| {
        parts.extend(sizes(a, count));
        parts
    };
    Some(match exp {
        Exp::Index(a, ix) | Exp::Update(a, ix, _) if !ix.is_empty() => {
            (Check::Index(ix.len()), with(operands(ix), *a, rank(*a)))
        }
        Exp::Slice(a, s) | Exp::UpdateSlice(a, s, _) => {
            (Check::Slice, with(operands(&[s.start, s.len, s.stride]), *a, 1))
        }
        Exp::Gather(a, is) => (Check::Gather, with(operands(&[*is]), *a, rank(*a))),
        Exp::Prim(prim, args) if prim.may_stop() => (Check::Prim(*prim), operands(args)),
        Exp::Iota(n) => (Check::Sizes, operands(&[*n])),
        Exp::Replicate(shape, _) => (Check::Sizes, operands(shape)),
        Exp::Reshape { shape, from, array } => {
            (Check::Reshape(*from), sizes(*array, *from).chain(operands(shape)).collect())
        }
        _ => return None,
    })
}
