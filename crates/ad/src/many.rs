//! Derivatives in many directions at once (Jacobians), from a derivative in one.
//!
//! Source: T. Smeding, PhD thesis, section 7.4 (the reverse sweep D2 reads the forward sweep D0 by name), with the split made
//!   by dependence: what does not depend on a direction is the same for all of them.
//! Judgement: `\xs ds -> ys es` becomes `\xs dss -> let D0 in ys, map (\ds -> D2 in es) dss`.
//! Assumes a derivative as [`crate::contract`] describes it. Guarantees: statements that do not depend on the directions run
//!   once, whatever the number of directions; for reverse mode that is the whole forward sweep with everything it stores.
//!   Stacks have the form of `Type::stacked`.

use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Builder, Exp, Lam, Program, Soac, Stm, Type, Var, rename};

/// `\xs dss -> ys ess` from `\xs ds -> ys es`, for `seeds` directions; `arguments` is the number of `xs`, `results` of `ys`.
pub fn separate(
    program: &mut Program,
    derivative: Lam,
    arguments: usize,
    results: usize,
    seeds: Atom,
) -> Lam {
    let mut params = derivative.params;
    let directions = params.split_off(arguments);
    let mut result = derivative.body.result;
    let derivatives = result.split_off(results);
    let (once, each) = split(derivative.body.stms, &directions);
    let mut b = Builder::new(program);
    b.open();
    for stm in once {
        b.emit_stm(stm);
    }
    let types: Vec<Type> = directions.iter().map(|&d| b.ty(d.into())).collect();
    let stacks: Vec<Var> = types.iter().map(|t| b.fresh(t.stacked(), "seeds")).collect();
    if !derivatives.is_empty() {
        let stacks: Vec<Atom> = stacks.iter().map(|&s| s.into()).collect();
        let stacked = map_stacked(&mut b, seeds, &stacks, |b, parts| {
            let subst: IdMap<Var, Atom> = directions.iter().copied().zip(parts.iter().copied()).collect();
            let mut body = Body { stms: each, result: derivatives };
            rename::substitute_body(&mut body, &subst);
            body.stms.into_iter().for_each(|s| b.emit_stm(s));
            body.result
        });
        result.extend(stacked);
    }
    params.extend(stacks);
    let body = b.close(result);
    Lam { params, body }
}

/// The statements that do not depend on the variables, and those that do; each in their order.
fn split(stms: Vec<Stm>, variables: &[Var]) -> (Vec<Stm>, Vec<Stm>) {
    let mut dependent: IdSet<Var> = variables.iter().copied().collect();
    stms.into_iter().partition(|stm| {
        let depends = free_vars_exp(&stm.exp).iter().any(|v| dependent.contains(v));
        if depends {
            dependent.extend(stm.pat.iter().copied());
        }
        !depends
    })
}

/// A `map` over `width` stacked values; the closure gets an element of each, and its results come back stacked.
pub(crate) fn map_stacked(
    b: &mut Builder<'_>,
    width: Atom,
    stacks: &[Atom],
    f: impl FnOnce(&mut Builder<'_>, &[Atom]) -> Vec<Atom>,
) -> Vec<Atom> {
    let types: Vec<Type> = stacks.iter().map(|&s| b.ty(s)).collect();
    let mut arrays = Vec::new();
    stacks.iter().for_each(|&s| leaves(b, s, &mut arrays));
    if arrays.is_empty() {
        arrays.push(b.emit(Exp::Iota(width), "is"));
    }
    let elements: Vec<Type> = arrays.iter().map(|&a| b.elem(a)).collect();
    let mut result_types = Vec::new();
    let lam = b.lam(&elements, "seed", |b, params| {
        let mut rest = params.iter().map(|&v| v.into());
        let parts: Vec<Atom> = types.iter().map(|t| whole(b, t, &mut rest)).collect();
        let results = f(b, &parts);
        result_types = results.iter().map(|&r| b.ty(r)).collect();
        let mut atoms = Vec::new();
        results.iter().for_each(|&r| leaves(b, r, &mut atoms));
        atoms
    });
    let columns = if lam.body.result.is_empty() {
        Vec::new()
    } else {
        b.emit_all(Exp::Soac(Soac::Map { width, lam, arrays }), "stack")
    };
    let mut columns = columns.into_iter().map(Atom::Var);
    result_types.iter().map(|t| whole(b, t, &mut columns)).collect()
}

/// The components of a value, down to what is no product.
fn leaves(b: &mut Builder<'_>, a: Atom, out: &mut Vec<Atom>) {
    let Type::Tuple(items) = b.ty(a) else { return out.push(a) };
    for i in 0..items.len() {
        let part = b.emit(Exp::Proj(a, i), "part");
        leaves(b, part, out);
    }
}

/// The value of a type with the products of `ty` from its leaves.
fn whole(b: &mut Builder<'_>, ty: &Type, leaves: &mut dyn Iterator<Item = Atom>) -> Atom {
    match ty {
        Type::Tuple(items) => {
            let items = items.iter().map(|t| whole(b, t, leaves)).collect();
            b.emit(Exp::Tuple(items), "whole")
        }
        Type::Scalar(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => {
            leaves.next().expect("as many leaves as the type has")
        }
    }
}
