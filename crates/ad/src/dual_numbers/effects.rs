//! Computations with mutable arrays, one after the other. No rules.

use pullback_lambda::{Builder, Exp, Term, Type, Var};

/// `return ()`
pub(super) fn unit(b: &mut Builder<'_>) -> Term {
    let unit = b.unit();
    b.term(Exp::IoReturn(unit))
}

/// `m >> n`
pub(super) fn then(b: &mut Builder<'_>, m: Term, n: Term) -> Term {
    bound(b, "_", m, |_, _| n)
}

/// `m >>= \x. k x`
pub(super) fn bound(
    b: &mut Builder<'_>,
    hint: &str,
    m: Term,
    k: impl FnOnce(&mut Builder<'_>, Var) -> Term,
) -> Term {
    let result = if let Type::Io(t) = m.ty() { Type::clone(t) } else { Type::unit() };
    let rest = b.lam(hint, result, k);
    b.term(Exp::IoBind(m, rest))
}

/// `m >> return ()`
pub(super) fn silent(b: &mut Builder<'_>, m: Term) -> Term {
    let end = unit(b);
    then(b, m, end)
}
