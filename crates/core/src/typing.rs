//! The result types of expressions, computed from the types of their operands.
//!
//! Used by the builder (to record types) and by the checker (to compare them). Assumes well-formed operands where it
//! must; where they are not, it returns an error text and never panics.

use crate::ir::{Atom, Body, Exp, FusedForm, Lam, LoopForm, Program, Soac, View};
use crate::types::{Type, Variant};
use pullback_prim::Scalar;

/// The error text of an ill-typed expression.
pub type TypeError = String;

impl Program {
    /// The type of an atom.
    pub fn atom_type(&self, atom: Atom) -> Type {
        match atom {
            Atom::Var(v) => self.vars[v].ty.clone(),
            Atom::Const(c) => Type::Scalar(c.scalar()),
        }
    }
    /// The types of the results of a body.
    pub fn body_types(&self, body: &Body) -> Vec<Type> {
        body.result.iter().map(|&a| self.atom_type(a)).collect()
    }
    /// The alternatives of a sum type, looking through names.
    pub fn variants<'a>(&'a self, ty: &'a Type) -> Option<&'a [Variant]> {
        match ty {
            Type::Sum(vs) => Some(vs),
            Type::Named(id) => self.types.get(*id).map(|d| d.variants.as_slice()),
            Type::Scalar(_) | Type::Tuple(_) | Type::Array(_) | Type::Acc(_) => None,
        }
    }
}

/// The types of the results of `exp`.
pub fn result_types(p: &Program, exp: &Exp) -> Result<Vec<Type>, TypeError> {
    let ty = |a: &Atom| p.atom_type(*a);
    let tys = |atoms: &[Atom]| atoms.iter().map(ty).collect::<Vec<_>>();
    let elem = |a: &Atom| match ty(a) {
        Type::Array(t) => Ok(Type::clone(&t)),
        t => Err(format!("expected an array, found {t:?}")),
    };
    let peel = |t: Type, n: usize| {
        t.peel(n).cloned().ok_or_else(|| format!("{n} indices into a value of type {t:?}"))
    };
    let one = |t: Type| Ok(vec![t]);
    match exp {
        Exp::Atom(a) | Exp::StopGradient(a) => one(ty(a)),
        Exp::Prim(prim, _) => one(prim.result().into()),
        Exp::Tuple(items) => one(Type::tuple(tys(items))),
        Exp::Proj(a, i) => match ty(a) {
            Type::Tuple(ts) if *i < ts.len() => one(ts[*i].clone()),
            t => Err(format!("no component {i} in {t:?}")),
        },
        Exp::Inject(t, _, _) => one(t.clone()),
        Exp::Match(_, arms) => match arms.first() {
            Some(arm) => Ok(p.body_types(&arm.body)),
            None => Err("match without arms".into()),
        },
        Exp::If(_, then, _) => Ok(p.body_types(then)),
        Exp::Loop(l) => {
            let state: Vec<Type> = l.params.iter().map(|(v, _)| p.vars[*v].ty.clone()).collect();
            let stacked = l.body.result.iter().skip(state.len()).map(|a| Type::array(ty(a)));
            let count = match l.form {
                LoopForm::While(_) if l.collect > 0 => Some(Type::I64),
                LoopForm::While(_) | LoopForm::For { .. } => None,
            };
            Ok(state.iter().cloned().chain(stacked).chain(count).collect())
        }
        Exp::Call(f, _) => match p.funs.get(*f) {
            Some(f) => Ok(f.results.clone()),
            None => Err("call of an unknown function".into()),
        },
        Exp::ArrayLit(t, _) => one(Type::array(t.clone())),
        Exp::Index(a, ix) => one(peel(ty(a), ix.len())?),
        Exp::Slice(a, _) | Exp::Reverse(a) | Exp::Rotate(a, _) | Exp::Gather(a, _) => {
            one(Type::array(elem(a)?))
        }
        Exp::Update(a, _, _) | Exp::UpdateSlice(a, _, _) => one(ty(a)),
        Exp::Size(a, _) => elem(a).and_then(|_| one(Type::I64)),
        Exp::Iota(_) => one(Type::array(Type::I64)),
        Exp::Replicate(shape, a) => one(Type::array_of_rank(ty(a), shape.len())),
        Exp::Rearrange(_, a) => one(ty(a)),
        Exp::Reshape { shape, from, array } => one(Type::array_of_rank(peel(ty(array), *from)?, shape.len())),
        Exp::Concat(arrays) => match arrays.first() {
            Some(a) => one(ty(a)),
            None => Err("concat of nothing".into()),
        },
        Exp::Soac(soac) => Ok(match soac {
            Soac::Map { lam, .. } => p.body_types(&lam.body).into_iter().map(Type::array).collect(),
            Soac::Reduce { neutral, .. } => tys(neutral),
            Soac::Scan { neutral, .. } => tys(neutral).into_iter().map(Type::array).collect(),
            Soac::Fused { form, pre, neutral, .. } => {
                let combined = tys(neutral).into_iter().map(|t| match form {
                    FusedForm::Reduce { .. } => t,
                    FusedForm::Scan => Type::array(t),
                });
                let others = p.body_types(&pre.body).into_iter().skip(neutral.len()).map(Type::array);
                combined.chain(others).collect()
            }
            Soac::Hist { dst, .. } => tys(dst),
            Soac::Scatter { dst, .. } => vec![ty(dst)],
        }),
        Exp::WithAcc(inits, lam) => Ok(tys(inits).into_iter().chain(p.body_types(&lam.body)).collect()),
        Exp::AccView(acc, view) => match ty(acc) {
            Type::Acc(t) => one(Type::acc(view_type(&t, view)?)),
            t => Err(format!("expected an accumulator, found {t:?}")),
        },
        Exp::AccAdd(..) | Exp::Assert(..) | Exp::Check(..) => one(Type::unit()),
        Exp::Plus(a, _) => one(ty(a)),
        Exp::Vjp { lam, args, seeds, .. } => {
            let mut ts = p.body_types(&lam.body);
            ts.extend(directions(active(p, &tys(args))?, *seeds));
            Ok(ts)
        }
        Exp::Jvp { lam, seeds, .. } => {
            let mut ts = p.body_types(&lam.body);
            ts.extend(directions(active(p, &ts.clone())?, *seeds));
            Ok(ts)
        }
        Exp::Custom { primal, .. } => Ok(lam_results(p, primal)),
        Exp::Marked(_, body) => Ok(p.body_types(body)),
        Exp::Par(bodies) => Ok(bodies.iter().flat_map(|b| p.body_types(b)).collect()),
    }
}

/// The types of the results of a lambda.
pub fn lam_results(p: &Program, lam: &Lam) -> Vec<Type> {
    p.body_types(&lam.body)
}

/// The cotangent types of those types that have one, in order.
pub fn active(p: &Program, types: &[Type]) -> Result<Vec<Type>, TypeError> {
    let cts = types.iter().map(|t| p.cotangent(t));
    let cts = cts.collect::<Result<Vec<_>, _>>();
    Ok(cts
        .map_err(|_| {
            "a recursive sum type with floats whose cotangent type is not in the type table".to_string()
        })?
        .into_iter()
        .flatten()
        .collect())
}

/// The types of tangents or cotangents: one of each, or so many stacked.
pub fn directions(types: Vec<Type>, seeds: Option<Atom>) -> Vec<Type> {
    if seeds.is_none() { types } else { types.iter().map(Type::stacked).collect() }
}

/// The type of a part of a value of type `t`.
pub fn view_type(t: &Type, view: &View) -> Result<Type, TypeError> {
    let fail = || format!("no such view of {t:?}");
    match view {
        View::Index(ix) => t.peel(ix.len()).cloned().ok_or_else(fail),
        View::Proj(i) => match t {
            Type::Tuple(ts) => ts.get(*i).cloned().ok_or_else(fail),
            Type::Scalar(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => Err(fail()),
        },
        View::Slice(_) | View::Rearrange(_) | View::Reverse | View::Rotate(_) => {
            if t.rank() > 0 {
                Ok(t.clone())
            } else {
                Err(fail())
            }
        }
        View::Reshape { shape, from } => {
            Ok(Type::array_of_rank(t.peel(*from).cloned().ok_or_else(fail)?, shape.len()))
        }
    }
}

/// The scalar type of an atom, if it is a scalar.
pub fn scalar_of(p: &Program, a: Atom) -> Option<Scalar> {
    p.atom_type(a).scalar()
}
