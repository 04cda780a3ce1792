//! Functions whose parameters and results are products, as functions of the components; and their derivatives as those of the products. For
//! algorithms with a language of their own that has no products.
//!
//! Rules:
//! ```text
//! parameter   p : (t_1, .., t_n)       p_1 : t_1, .. and, in the body, p = (p_1, ..)
//! result      a : (t_1, .., t_n)       a.1, ..
//! proj        (a_1, .., a_n).k         a_k, wherever the product is at hand
//! cotangent   of a product             the product of the cotangents; () for a component without one
//! ```
//!
//! Guarantees: components without derivatives are unit in a cotangent, as [`pullback_core::Program::cotangent`] says.
//!
//! Not supported: arrays of products, and products of alternatives.

use crate::translation::place;
use pullback_base::index::IdMap;
use pullback_core::{Atom, Body, Builder, Exp, Lam, Origin, Program, Stm, Type, Var};

/// Which products are taken apart: the others stay whole, with all that is in them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apart {
    /// All of them, and projections are followed: for a language where no product is the value of a variable.
    All,
    /// Results that vary, and parameters that vary and are wanted: for a translation that follows projections itself.
    Varying,
}

impl Apart {
    fn takes(self, program: &Program, ty: &Type, is_wanted: bool) -> bool {
        matches!(ty, Type::Tuple(_)) && (self == Apart::All || is_wanted && program.is_active(ty))
    }
}

/// The function of the components, and which of its parameters are wanted. Cost: the size of the function.
pub(crate) fn taken_apart(
    program: &mut Program,
    which: Apart,
    lam: Lam,
    wanted: &[bool],
) -> (Lam, Vec<bool>) {
    let Lam { params, body } = lam;
    let (mut leaves, mut of_leaves) = (Vec::new(), Vec::new());
    let mut b = Builder::new(program);
    for (p, is_wanted) in params.into_iter().zip(wanted) {
        b.origin = b.program.vars[p].origin.clone();
        if which.takes(b.program, &b.program.vars[p].ty, *is_wanted) {
            parameter(&mut b, p, &mut leaves);
        } else {
            leaves.push(p);
        }
        of_leaves.resize(leaves.len(), *is_wanted);
    }
    body.stms.into_iter().for_each(|stm| b.emit_stm(stm));
    let mut results = Vec::new();
    for a in body.result {
        if which.takes(b.program, &b.ty(a), true) {
            components(&mut b, a, &mut results);
        } else {
            results.push(a);
        }
    }
    let mut body = Body { stms: b.finish(), result: results };
    if which == Apart::All {
        project(&mut body, &mut IdMap::new());
    }
    (Lam { params: leaves, body }, of_leaves)
}

/// The derivative of a function, from that of its components; `rule` is where its statements come from. Cost: the number of components.
pub(crate) fn put_back(
    program: &mut Program,
    (which, rule): (Apart, &'static str),
    (of, wanted): (&Lam, &[bool]),
    derived: Lam,
) -> Lam {
    let span = place(program, of);
    let params: Vec<Type> = of.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let results: Vec<Type> = of.body.result.iter().map(|a| program.atom_type(*a)).collect();
    let of_params: Vec<bool> =
        params.iter().zip(wanted).map(|(t, is_wanted)| which.takes(program, t, *is_wanted)).collect();
    let of_results: Vec<bool> = results.iter().map(|t| which.takes(program, t, true)).collect();
    if !of_params.iter().chain(&of_results).any(|is_apart| *is_apart) {
        return derived;
    }
    let mut b = Builder::new(program);
    b.origin = Origin { span, rule: Some((rule, None)) };
    let mut leaves = derived.params.into_iter();
    let mut all = Vec::new();
    for (t, is_apart) in params.iter().zip(&of_params) {
        all.push(if *is_apart { given(&mut b, t, t, &mut leaves) } else { next(&mut leaves) });
    }
    for (t, is_apart) in results.iter().zip(&of_results) {
        if !b.program.is_active(t) {
            continue;
        }
        if !is_apart {
            all.push(next(&mut leaves));
            continue;
        }
        b.program.add_cotangent_types(t);
        let Ok(Some(bar)) = b.program.cotangent(t) else { unreachable!("it is active") };
        all.push(given(&mut b, t, &bar, &mut leaves));
    }
    derived.body.stms.into_iter().for_each(|stm| b.emit_stm(stm));
    let mut atoms = derived.body.result.into_iter();
    let mut out = Vec::new();
    for (t, is_apart) in results.iter().zip(&of_results) {
        out.push(if *is_apart { value(&mut b, t, &mut atoms) } else { next(&mut atoms) });
    }
    for ((t, is_wanted), is_apart) in params.iter().zip(wanted).zip(&of_params) {
        if *is_wanted && b.program.is_active(t) {
            out.push(if *is_apart { cotangent(&mut b, t, &mut atoms) } else { next(&mut atoms) });
        }
    }
    Lam { params: all, body: Body { stms: b.finish(), result: out } }
}

/// What the derivative of the components has for the next leaf.
fn next<T>(leaves: &mut dyn Iterator<Item = T>) -> T {
    leaves.next().unwrap_or_else(|| unreachable!("one for each leaf"))
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
    b.emit_to(vec![p], Exp::Tuple(parts));
}

fn components(b: &mut Builder<'_>, a: Atom, out: &mut Vec<Atom>) {
    let Type::Tuple(ts) = b.ty(a) else { return out.push(a) };
    for k in 0..ts.len() {
        let part = b.emit(Exp::Proj(a, k), "part");
        components(b, part, out);
    }
}

/// Components of products that are written out, for projections of them.
fn project(body: &mut Body, known: &mut IdMap<Var, Vec<Atom>>) {
    for Stm { pat, exp } in &mut body.stms {
        match exp {
            Exp::Tuple(parts) => {
                known.insert(pat[0], parts.clone());
            }
            Exp::Proj(Atom::Var(p), k) => {
                if let Some(part) = known.get(p).map(|parts| parts[*k]) {
                    // The component may be a product, too.
                    if let Some(parts) = part.var().and_then(|v| known.get(&v)).cloned() {
                        known.insert(pat[0], parts);
                    }
                    *exp = Exp::Atom(part);
                }
            }
            _ => exp.bodies_mut().into_iter().for_each(|scope| project(scope.body, known)),
        }
    }
}

/// A parameter of this type, of which `derived` takes the components that have a type: those of `of` that are active, if it is a cotangent.
fn given(b: &mut Builder<'_>, of: &Type, ty: &Type, leaves: &mut dyn Iterator<Item = Var>) -> Var {
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
                let part = b.emit(Exp::Proj(a, k), "part");
                split(b, part, (t, u), leaves);
            }
            _ => {
                b.emit_to(vec![next(leaves)], Exp::Proj(a, k));
            }
        }
    }
}

/// A result, from its leaves.
fn value(b: &mut Builder<'_>, ty: &Type, atoms: &mut dyn Iterator<Item = Atom>) -> Atom {
    match ty {
        Type::Tuple(ts) => {
            let parts = ts.iter().map(|t| value(b, t, atoms)).collect();
            b.emit(Exp::Tuple(parts), "y")
        }
        _ => next(atoms),
    }
}

/// The cotangent of a parameter that is active, from those of its leaves.
fn cotangent(b: &mut Builder<'_>, ty: &Type, atoms: &mut dyn Iterator<Item = Atom>) -> Atom {
    match ty {
        _ if !b.program.is_active(ty) => b.emit(Exp::Tuple(Vec::new()), "none"),
        Type::Tuple(ts) => {
            let parts = ts.iter().map(|t| cotangent(b, t, atoms)).collect();
            b.emit(Exp::Tuple(parts), "x_bar")
        }
        _ => next(atoms),
    }
}
