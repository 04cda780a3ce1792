//! Functions whose parameters and results are products, as functions of the components; and their derivatives as those of the products.
//!
//! Rules:
//! ```text
//! parameter   p : (t_1, .., t_n)       p_1 : t_1, .. and, in the body, p = (p_1, ..)
//! result      a : (t_1, .., t_n)       a.1, ..
//! proj        (a_1, .., a_n).k         a_k, wherever the product is at hand
//! adjoint     of a product             the product of the adjoints; () for a component without one
//! ```
//!
//! Not supported: arrays of products, and products of alternatives.

use crate::translation::place;
use pullback_base::index::IdMap;
use pullback_core::{Atom, Body, Builder, Exp as Core, Lam, Origin, Program, Stm, Type, Var};

/// The function of the components, and which of its parameters are wanted.
// [accelerate.products]
pub(super) fn taken_apart(program: &mut Program, lam: Lam, wanted: &[bool]) -> (Lam, Vec<bool>) {
    let Lam { params, body } = lam;
    let (mut leaves, mut of_leaves) = (Vec::new(), Vec::new());
    let mut b = Builder::new(program);
    for (p, is_wanted) in params.into_iter().zip(wanted) {
        b.origin = b.program.vars[p].origin.clone();
        parameter(&mut b, p, &mut leaves);
        of_leaves.resize(leaves.len(), *is_wanted);
    }
    body.stms.into_iter().for_each(|stm| b.emit_stm(stm));
    let mut results = Vec::new();
    body.result.into_iter().for_each(|a| components(&mut b, a, &mut results));
    let mut body = Body { stms: b.finish(), result: results };
    project(&mut body, &mut IdMap::new());
    (Lam { params: leaves, body }, of_leaves)
}

/// The derivative of a function, from that of its components.
// [accelerate.products]
pub(super) fn put_back(program: &mut Program, of: &Lam, wanted: &[bool], derived: Lam) -> Lam {
    let span = place(program, of);
    let params: Vec<Type> = of.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let results: Vec<Type> = of.body.result.iter().map(|a| program.atom_type(*a)).collect();
    if params.iter().chain(&results).all(|t| !matches!(t, Type::Tuple(_))) {
        return derived;
    }
    let mut b = Builder::new(program);
    b.origin = Origin { span, rule: Some(("accelerate.products", None)) };
    let mut leaves = derived.params.into_iter();
    let mut all = Vec::new();
    for t in &params {
        all.push(given(&mut b, t, t, &mut leaves));
    }
    for t in results.iter().filter(|t| b.program.is_active(t)).cloned().collect::<Vec<_>>() {
        b.program.add_cotangent_types(&t);
        let Ok(Some(bar)) = b.program.cotangent(&t) else { unreachable!("it is active") };
        all.push(given(&mut b, &t, &bar, &mut leaves));
    }
    derived.body.stms.into_iter().for_each(|stm| b.emit_stm(stm));
    let mut atoms = derived.body.result.into_iter();
    let mut out: Vec<Atom> = results.iter().map(|t| value(&mut b, t, &mut atoms)).collect();
    for (t, _) in params.iter().zip(wanted).filter(|(_, w)| **w) {
        if b.program.is_active(t) {
            out.push(adjoint(&mut b, t, &mut atoms));
        }
    }
    Lam { params: all, body: Body { stms: b.finish(), result: out } }
}

/// The leaves of a parameter, and the parameter as the product of them.
fn parameter(b: &mut Builder<'_>, p: Var, leaves: &mut Vec<Var>) {
    let Type::Tuple(ts) = b.program.vars[p].ty.clone() else { return leaves.push(p) };
    let hint = b.program.vars[p].hint.clone();
    let mut parts = Vec::new();
    for t in ts.iter() {
        let part = b.fresh(t.clone(), hint.as_str());
        parameter(b, part, leaves);
        parts.push(part.into());
    }
    b.emit_to(vec![p], Core::Tuple(parts));
}

fn components(b: &mut Builder<'_>, a: Atom, out: &mut Vec<Atom>) {
    let Type::Tuple(ts) = b.ty(a) else { return out.push(a) };
    for k in 0..ts.len() {
        let part = b.emit(Core::Proj(a, k), "part");
        components(b, part, out);
    }
}

/// Components of products that are written out, for projections of them.
fn project(body: &mut Body, known: &mut IdMap<Var, Vec<Atom>>) {
    for Stm { pat, exp } in &mut body.stms {
        match exp {
            Core::Tuple(parts) => {
                known.insert(pat[0], parts.clone());
            }
            Core::Proj(Atom::Var(p), k) => {
                if let Some(part) = known.get(p).map(|parts| parts[*k]) {
                    // The component may be a product, too.
                    if let Some(parts) = part.var().and_then(|v| known.get(&v)).cloned() {
                        known.insert(pat[0], parts);
                    }
                    *exp = Core::Atom(part);
                }
            }
            _ => exp.bodies_mut().into_iter().for_each(|scope| project(scope.body, known)),
        }
    }
}

/// A parameter of this type, of which `derived` takes the components that have a type: those of `of` that are active, if it is an adjoint.
fn given(b: &mut Builder<'_>, of: &Type, ty: &Type, leaves: &mut dyn Iterator<Item = Var>) -> Var {
    if !matches!(of, Type::Tuple(_)) {
        return leaves.next().unwrap_or_else(|| unreachable!("a parameter for each leaf"));
    }
    let p = b.fresh(ty.clone(), "p");
    split(b, p.into(), (of, ty), leaves);
    p
}

fn split(b: &mut Builder<'_>, a: Atom, (of, ty): (&Type, &Type), leaves: &mut dyn Iterator<Item = Var>) {
    let (Type::Tuple(ts), Type::Tuple(us)) = (of, ty) else { unreachable!("a product") };
    for (k, (t, u)) in ts.iter().zip(us.iter()).enumerate() {
        let is_left_out = t != u && !b.program.is_active(t);
        match t {
            _ if is_left_out => {}
            Type::Tuple(_) => {
                let part = b.emit(Core::Proj(a, k), "part");
                split(b, part, (t, u), leaves);
            }
            _ => {
                let leaf = leaves.next().unwrap_or_else(|| unreachable!("a parameter for each leaf"));
                b.emit_to(vec![leaf], Core::Proj(a, k));
            }
        }
    }
}

/// A result, from its leaves.
fn value(b: &mut Builder<'_>, ty: &Type, atoms: &mut dyn Iterator<Item = Atom>) -> Atom {
    match ty {
        Type::Tuple(ts) => {
            let parts = ts.iter().map(|t| value(b, t, atoms)).collect();
            b.emit(Core::Tuple(parts), "y")
        }
        _ => atoms.next().unwrap_or_else(|| unreachable!("a result for each leaf")),
    }
}

/// The adjoint of a parameter that is active, from those of its leaves.
fn adjoint(b: &mut Builder<'_>, ty: &Type, atoms: &mut dyn Iterator<Item = Atom>) -> Atom {
    match ty {
        _ if !b.program.is_active(ty) => b.emit(Core::Tuple(Vec::new()), "none"),
        Type::Tuple(ts) => {
            let parts = ts.iter().map(|t| adjoint(b, t, atoms)).collect();
            b.emit(Core::Tuple(parts), "x_bar")
        }
        _ => atoms.next().unwrap_or_else(|| unreachable!("an adjoint for each leaf")),
    }
}
