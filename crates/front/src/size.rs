//! Arithmetic of sizes: polynomials in normal form, and what can be said of two sizes without running the program.

use crate::typed::{Polynomial, Size, SizeAtom, VarId};
use pullback_base::index::IdSet;
use std::sync::Arc;

/// What is known about the equality of two sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Equality {
    /// Equal in every run.
    Equal,
    /// Different, or so unrelated that the program must say with `:>` that they are equal.
    Clash,
    /// Only a run can tell.
    Undecided,
}

/// The size as a polynomial; none if it is unknown.
pub(crate) fn polynomial(size: &Size) -> Option<Polynomial> {
    let term = |atoms: Vec<SizeAtom>, k: i64| Some(Polynomial::from([(atoms, k)]));
    match size {
        Size::Const(0) => Some(Polynomial::new()),
        Size::Const(k) => term(vec![], *k),
        Size::Var(v, name) => term(vec![SizeAtom::Var(*v, name.clone())], 1),
        Size::Def(d, name) => term(vec![SizeAtom::Def(*d, name.clone())], 1),
        Size::Expression(p) => Some((**p).clone()),
        Size::Unknown(_) | Size::Meta(_) => None,
    }
}

/// The size that a polynomial is, in the simplest form.
pub(crate) fn from_polynomial(p: Polynomial) -> Size {
    if p.is_empty() {
        return Size::Const(0);
    }
    if let (1, Some((atoms, k))) = (p.len(), p.first_key_value()) {
        match (atoms.as_slice(), k) {
            ([], k) => return Size::Const(*k),
            ([SizeAtom::Var(v, name)], 1) => return Size::Var(*v, name.clone()),
            ([SizeAtom::Def(d, name)], 1) => return Size::Def(*d, name.clone()),
            _ => {}
        }
    }
    Size::Expression(Arc::new(p))
}

fn add_term(p: &mut Polynomial, atoms: Vec<SizeAtom>, k: i64) {
    let entry = p.entry(atoms.clone()).or_insert(0);
    *entry = entry.wrapping_add(k);
    if *entry == 0 {
        p.remove(&atoms);
    }
}

/// Whether a size mentions a variable with the property.
pub(crate) fn mentions(size: &Size, property: impl Fn(VarId) -> bool) -> bool {
    match size {
        Size::Var(v, _) => property(*v),
        Size::Expression(p) => p.keys().flatten().any(|a| match a {
            SizeAtom::Var(v, _) => property(*v),
            SizeAtom::Def(..) => false,
        }),
        Size::Const(_) | Size::Def(..) | Size::Unknown(_) | Size::Meta(_) => false,
    }
}

/// `a + factor * b`; none if one of them is unknown.
pub(crate) fn add(a: &Size, b: &Size, factor: i64) -> Option<Size> {
    let mut p = polynomial(a)?;
    for (atoms, k) in polynomial(b)? {
        add_term(&mut p, atoms, k.wrapping_mul(factor));
    }
    // Longer sums are of no use as sizes, and chains of them would make checking slow.
    if p.len() > 64 {
        return None;
    }
    Some(from_polynomial(p))
}

/// `a * b`; none if one of them is unknown or the product would be large.
pub(crate) fn multiply(a: &Size, b: &Size) -> Option<Size> {
    let (a, b) = (polynomial(a)?, polynomial(b)?);
    // Products of long sums are of no use as sizes and would make checking slow.
    if a.len() * b.len() > 64 || a.keys().chain(b.keys()).any(|atoms| atoms.len() > 8) {
        return None;
    }
    let mut p = Polynomial::new();
    for (x, i) in &a {
        for (y, j) in &b {
            let mut atoms: Vec<SizeAtom> = x.iter().chain(y).cloned().collect();
            atoms.sort();
            add_term(&mut p, atoms, i.wrapping_mul(*j));
        }
    }
    Some(from_polynomial(p))
}

/// `a / k` where every term divides; none otherwise.
pub(crate) fn divide(a: &Size, k: i64) -> Option<Size> {
    let p = polynomial(a)?;
    let parts = p.into_iter().map(|(atoms, c)| (k != 0 && k != -1 && c % k == 0).then(|| (atoms, c / k)));
    parts.collect::<Option<Polynomial>>().map(from_polynomial)
}

/// Compares two sizes of which none is a meta. `rigid` holds the variables that stand for any size the caller likes.
pub(crate) fn compare(a: &Size, b: &Size, rigid: &IdSet<VarId>) -> Equality {
    if a == b {
        return Equality::Equal;
    }
    if let Some(Size::Const(_)) = add(a, b, -1) {
        return Equality::Clash;
    }
    let fixed = |s: &Size| match s {
        Size::Const(_) => true,
        Size::Var(v, _) => rigid.contains(v),
        Size::Def(..) | Size::Expression(_) | Size::Unknown(_) | Size::Meta(_) => false,
    };
    if fixed(a) && fixed(b) { Equality::Clash } else { Equality::Undecided }
}

/// The size as a user writes it; unknown and implicit sizes are the empty text.
pub(crate) fn show(size: &Size) -> String {
    match size {
        Size::Const(k) => k.to_string(),
        Size::Var(_, name) if name.as_str().starts_with('?') => String::new(),
        Size::Var(_, name) | Size::Def(_, name) => name.to_string(),
        Size::Expression(p) => show_polynomial(p),
        Size::Unknown(_) | Size::Meta(_) => String::new(),
    }
}

fn show_polynomial(p: &Polynomial) -> String {
    // Constant last, as people write it.
    let mut terms: Vec<(&Vec<SizeAtom>, &i64)> = p.iter().collect();
    terms.sort_by_key(|(atoms, k)| (atoms.is_empty(), **k < 0));
    let mut out = String::new();
    for (atoms, k) in terms {
        let sign = match (out.is_empty(), *k < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        out += sign;
        let mut factors: Vec<String> = Vec::new();
        if k.unsigned_abs() != 1 || atoms.is_empty() {
            factors.push(k.unsigned_abs().to_string());
        }
        factors.extend(atoms.iter().map(|a| match a {
            SizeAtom::Var(_, name) | SizeAtom::Def(_, name) => name.to_string(),
        }));
        out += &factors.join(" * ");
    }
    out
}
