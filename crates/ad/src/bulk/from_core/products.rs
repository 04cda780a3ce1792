//! Functions whose arguments or results are products, as functions of their components: products are taken apart before the translation, and put together after it.
//!
//! Judgement: `\x -> y` with `x : (t, u)` and `y : (v, w)` becomes `\x_1 x_2 -> y_1 y_2`, with `x = (x_1, x_2)` first and `y_k = proj y k` last. Its derivative `\x_1 x_2 y_1_bar y_2_bar -> .. x_1_bar x_2_bar`
//! becomes `\x y_bar -> .. (x_1_bar, x_2_bar)`, with `x_k = proj x k` and `y_k_bar = proj y_bar k` first.
//!
//! Guarantees: components without derivatives are unit in a cotangent, as [`pullback_core::Program::cotangent`] says.
//!
//! Not supported: arrays of products, and components of sum types; the translation refuses them.

use pullback_core::{Atom, Body, Builder, Exp, Lam, Program, Type, Var};
use std::collections::VecDeque;

/// A function of components.
pub(super) struct Apart {
    /// The function; its results that have no floats are those of the whole, others are taken apart.
    pub(super) lam: Lam,
    /// The components that derivatives are wanted of.
    pub(super) wanted: Vec<bool>,
    /// The parameters and results of the whole, and what is wanted of it.
    params: Vec<Var>,
    results: Vec<Atom>,
    whole: Vec<bool>,
}

impl Apart {
    // [bulk.products]  x = (x_1, x_2) first, y_k = proj y k last
    /// The function of the components of those products that vary. Cost: the number of components.
    pub(super) fn new(program: &mut Program, lam: Lam, wanted: &[bool]) -> Apart {
        let (mut params, mut of_params) = (Vec::new(), Vec::new());
        let Lam { params: whole_params, body } = lam;
        let mut b = Builder::new(program);
        for (x, is_wanted) in whole_params.iter().zip(wanted) {
            let ty = b.ty((*x).into());
            if !is_wanted || !is_product(b.program, &ty) {
                params.push(*x);
                of_params.push(*is_wanted);
                continue;
            }
            b.origin = b.program.vars[*x].origin.clone();
            let mut parts: VecDeque<Atom> = VecDeque::new();
            for part in components(&ty) {
                let x = b.fresh(part, "x");
                parts.push_back(x.into());
                params.push(x);
                of_params.push(true);
            }
            let all = together(&mut b, &ty, &mut parts);
            b.emit_to(vec![*x], Exp::Atom(all));
        }
        let before = b.finish();
        let mut b = Builder::new(program);
        let (mut results, whole_results) = (Vec::new(), body.result.clone());
        for y in &whole_results {
            let ty = b.ty(*y);
            match is_product(b.program, &ty) {
                true => {
                    b.origin = y.var().map_or_else(|| b.origin.clone(), |v| b.program.vars[v].origin.clone());
                    apart(&mut b, *y, &ty, &mut results);
                }
                false => results.push(*y),
            }
        }
        let stms = before.into_iter().chain(body.stms).chain(b.finish()).collect();
        let lam = Lam { params, body: Body { stms, result: results } };
        Apart { lam, wanted: of_params, params: whole_params, results: whole_results, whole: wanted.to_vec() }
    }

    // [bulk.products]  x_k = proj x k and y_k_bar = proj y_bar k first, (x_1_bar, x_2_bar) last
    /// The derivative of the whole, for that of the function of its components.
    pub(super) fn together(self, program: &mut Program, derivative: Lam) -> Lam {
        let Lam { params: taken, body } = derivative;
        let (mut taken, mut params) = (taken.into_iter(), Vec::new());
        let mut b = Builder::new(program);
        for (x, is_wanted) in self.params.iter().zip(&self.whole) {
            let ty = b.ty((*x).into());
            if !is_wanted || !is_product(b.program, &ty) {
                params.extend(taken.next());
                continue;
            }
            let whole = b.fresh(ty.clone(), "x");
            params.push(whole);
            for part in every(&mut b, whole.into(), &ty) {
                taken.next().into_iter().for_each(|x| b.emit_to(vec![x], Exp::Atom(part)));
            }
        }
        for y in &self.results {
            let ty = b.ty(*y);
            if !is_product(b.program, &ty) {
                params.extend(b.program.is_active(&ty).then(|| taken.next()).flatten());
                continue;
            }
            b.program.add_cotangent_types(&ty);
            let Ok(Some(bar)) = b.program.cotangent(&ty) else { unreachable!("it has floats") };
            let whole = b.fresh(bar, "y_bar");
            params.push(whole);
            let mut parts = Vec::new();
            apart(&mut b, whole.into(), &ty, &mut parts);
            parts.into_iter().zip(&mut taken).for_each(|(part, c)| b.emit_to(vec![c], Exp::Atom(part)));
        }
        let before = b.finish();
        let mut b = Builder::new(program);
        let mut bars: VecDeque<Atom> = body.result[self.lam.body.result.len()..].to_vec().into();
        let mut result = self.results;
        for (x, is_wanted) in self.params.iter().zip(&self.whole) {
            let ty = b.ty((*x).into());
            if *is_wanted && b.program.is_active(&ty) {
                result.push(cotangent(&mut b, &ty, &mut bars));
            }
        }
        let stms = before.into_iter().chain(body.stms).chain(b.finish()).collect();
        Lam { params, body: Body { stms, result } }
    }
}

/// Whether it is a product that varies.
fn is_product(program: &Program, ty: &Type) -> bool {
    matches!(ty, Type::Tuple(_)) && program.is_active(ty)
}

fn components(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Tuple(ts) => ts.iter().flat_map(components).collect(),
        _ => vec![ty.clone()],
    }
}

/// The product of these components.
fn together(b: &mut Builder<'_>, ty: &Type, parts: &mut VecDeque<Atom>) -> Atom {
    match ty {
        Type::Tuple(ts) => {
            let items = ts.iter().map(|t| together(b, t, parts)).collect();
            b.emit(Exp::Tuple(items), "x")
        }
        _ => parts.pop_front().unwrap_or_else(|| unreachable!("a component for each")),
    }
}

/// All components.
fn every(b: &mut Builder<'_>, a: Atom, ty: &Type) -> Vec<Atom> {
    let Type::Tuple(ts) = ty else { return vec![a] };
    let mut all = Vec::new();
    for (k, t) in ts.iter().enumerate() {
        let part = b.emit(Exp::Proj(a, k), "x");
        all.extend(every(b, part, t));
    }
    all
}

/// The components that have floats, of a value of this type or of its cotangent.
fn apart(b: &mut Builder<'_>, a: Atom, ty: &Type, parts: &mut Vec<Atom>) {
    let Type::Tuple(ts) = ty else { return parts.push(a) };
    for (k, t) in ts.iter().enumerate() {
        if b.program.is_active(t) {
            let part = b.emit(Exp::Proj(a, k), "y");
            apart(b, part, t, parts);
        }
    }
}

/// The cotangent of a value of this type; unit for what has no floats.
fn cotangent(b: &mut Builder<'_>, ty: &Type, bars: &mut VecDeque<Atom>) -> Atom {
    match ty {
        _ if !b.program.is_active(ty) => b.emit(Exp::Tuple(Vec::new()), "unit"),
        Type::Tuple(ts) => {
            let items = ts.iter().map(|t| cotangent(b, t, bars)).collect();
            b.emit(Exp::Tuple(items), "x_bar")
        }
        _ => bars.pop_front().unwrap_or_else(|| unreachable!("a cotangent for each component")),
    }
}
