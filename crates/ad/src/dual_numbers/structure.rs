//! Values of any shape, for all stages: the types of cotangents, one-hot cotangents, zeros, the same value with other scalars. No rules.

use crate::chad::{component, payload, refuse};
use crate::contract::Unsupported;
use pullback_base::Span;
use pullback_lambda::{Arm, Builder, Exp, Term, Type, Var, Variant};
use pullback_prim::Scalar;

type Res<T> = Result<T, Unsupported>;

/// The types of the cotangents of arguments and results:
/// ```text
/// d[f64] = f64     d[f32] = f32     d[another scalar] = ()     d[(ts)] = (d[ts])     d[[]t] = []d[t]     d[#c1 ts | ..] = oneof(d[ts], ..)
/// ```
pub(super) fn cotangent(id: &'static str, t: &Type, span: Option<Span>) -> Res<Type> {
    match t {
        Type::Scalar(s) => Ok(if s.is_float() { t.clone() } else { Type::unit() }),
        Type::Tuple(ts) => {
            Ok(Type::tuple(ts.iter().map(|t| cotangent(id, t, span)).collect::<Res<Vec<Type>>>()?))
        }
        Type::Array(t) => Ok(Type::array(cotangent(id, t, span)?)),
        Type::Sum(variants) => {
            let parts = variants.iter().map(|v| cotangent(id, &payload(v), span));
            Ok(Type::SparseSum(parts.collect::<Res<Vec<Type>>>()?.into()))
        }
        Type::Named(_) => refuse(id, "an argument or result of a recursive type", span),
        t => refuse(id, &format!("an argument or result of type {t}"), span),
    }
}

/// `<0, .., z, .., 0>`, a product of these cotangents.
pub(super) fn one_hot(b: &mut Builder<'_>, bars: &[Type], k: usize, z: Term) -> Term {
    let parts = bars.iter().enumerate();
    let parts = parts.map(|(i, bar)| if i == k { z.clone() } else { b.term(Exp::Zero(bar.clone())) });
    let parts = parts.collect();
    b.tuple(parts)
}

/// The zero cotangent of a value of type `t`, which has a cotangent, with its sizes.
pub(super) fn zeros(b: &mut Builder<'_>, x: Var, t: &Type) -> Term {
    match t {
        Type::Array(element) => {
            let e = b.fresh(Type::clone(element), "e");
            let body = zeros(b, e, element);
            let each = b.term(Exp::Lam(e, body));
            let x = b.var(x);
            b.map(each, vec![x])
        }
        Type::Tuple(ts) => {
            let parts = ts.iter().enumerate().map(|(i, t)| {
                let part = component(b, x, i);
                let v = b.fresh(part.ty().clone(), "p");
                let zeros = zeros(b, v, t);
                b.term(Exp::Let(v, part, zeros))
            });
            let parts = parts.collect();
            b.tuple(parts)
        }
        t => {
            let bar = cotangent("", t, None).unwrap_or(Type::unit());
            b.term(Exp::Zero(bar))
        }
    }
}

/// A value of type `t`, scalars of which stand with something else in `x`, with what `scalar` makes of them.
///
/// Errors: functions and values of recursive types.
pub(super) fn rebuilt(
    id: &'static str,
    b: &mut Builder<'_>,
    x: Var,
    t: &Type,
    scalar: &mut dyn FnMut(&mut Builder<'_>, Var, Scalar) -> Term,
) -> Res<Term> {
    match t {
        Type::Scalar(s) => Ok(scalar(b, x, *s)),
        Type::Tuple(ts) => {
            let mut parts = Vec::new();
            for (i, t) in ts.iter().enumerate() {
                let part = component(b, x, i);
                let v = b.fresh(part.ty().clone(), "p");
                let body = rebuilt(id, b, v, t, scalar)?;
                parts.push(b.term(Exp::Let(v, part, body)));
            }
            Ok(b.tuple(parts))
        }
        Type::Array(t) => {
            let element = match &b.program.vars[x].ty {
                Type::Array(element) => Type::clone(element),
                other => other.clone(),
            };
            let e = b.fresh(element, "e");
            let body = rebuilt(id, b, e, t, scalar)?;
            let each = b.term(Exp::Lam(e, body));
            let x = b.var(x);
            Ok(b.map(each, vec![x]))
        }
        Type::Sum(variants) => {
            let mut arms = Vec::new();
            let mut made = Vec::new();
            for (k, v) in variants.iter().enumerate() {
                let from = b.program.variants(&b.program.vars[x].ty).unwrap_or_default();
                let types = from.get(k).map(|v| v.fields.clone()).unwrap_or_default();
                let params: Vec<Var> = types.into_iter().map(|t| b.fresh(t, "x")).collect();
                let fields = params.iter().zip(&v.fields).map(|(x, t)| rebuilt(id, b, *x, t, scalar));
                let fields = fields.collect::<Res<Vec<Term>>>()?;
                let types = fields.iter().map(|e| e.ty().clone()).collect();
                made.push(Variant { name: v.name.clone(), fields: types });
                arms.push((params, fields));
            }
            let ty = Type::Sum(made.into());
            let arms = arms.into_iter().enumerate().map(|(k, (params, fields))| Arm {
                params,
                body: b.term(Exp::Inject(ty.clone(), k, fields)),
            });
            let arms = arms.collect();
            let x = b.var(x);
            Ok(b.term(Exp::Match(x, arms)))
        }
        t => refuse(id, &format!("a value of type {t}"), None),
    }
}

/// Whether values of the type hold functions, or may.
pub(super) fn mentions_function(t: &Type) -> bool {
    match t {
        Type::Fun(..) | Type::Named(_) => true,
        Type::Tuple(ts) => ts.iter().any(mentions_function),
        Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).any(mentions_function),
        Type::Array(t) => mentions_function(t),
        _ => false,
    }
}
