//! Values of any shape, for all stages: the types of cotangents, one-hot cotangents, zeros, types with other numbers; what is added to arrays; loops. No rules.

use crate::chad::{component, payload, refuse};
use crate::contract::Unsupported;
use pullback_base::Span;
use pullback_base::index::IdMap;
use pullback_lambda::{Builder, Exp, Loop, LoopAttrs, LoopForm, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, ScalarValue};

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

/// What becomes of numbers and of functions in a type.
pub(super) struct Parts<'a> {
    /// Of `f64` or `f32`.
    pub(super) number: &'a dyn Fn(&Type) -> Type,
    /// Of a function, the argument and result of which have been mapped.
    pub(super) function: &'a dyn Fn(Type, Type) -> Type,
}

impl Parts<'_> {
    /// The type with other numbers and functions. Recursive types get twins, which `twins` remembers.
    pub(super) fn mapped(&self, b: &mut Builder<'_>, twins: &mut IdMap<TypeId, TypeId>, t: &Type) -> Type {
        match t {
            Type::Scalar(s) if s.is_float() => (self.number)(t),
            Type::Tuple(ts) => {
                Type::tuple(ts.iter().map(|t| self.mapped(b, twins, t)).collect::<Vec<Type>>())
            }
            Type::Sum(vs) => Type::Sum(self.variants(b, twins, vs).into()),
            Type::Array(t) => Type::array(self.mapped(b, twins, t)),
            Type::Fun(x, y) => {
                let (x, y) = (self.mapped(b, twins, x), self.mapped(b, twins, y));
                (self.function)(x, y)
            }
            Type::Named(id) => {
                if let Some(twin) = twins.get(id) {
                    return Type::Named(*twin);
                }
                let def = b.program.types[*id].clone();
                let count = b.program.types.len();
                let twin = b.declare_type(&format!("{}_dual_{count}", def.name));
                twins.insert(*id, twin);
                let variants = self.variants(b, twins, &def.variants);
                b.define_type(twin, variants);
                Type::Named(twin)
            }
            t => t.clone(),
        }
    }
    fn variants(
        &self,
        b: &mut Builder<'_>,
        twins: &mut IdMap<TypeId, TypeId>,
        variants: &[Variant],
    ) -> Vec<Variant> {
        let mapped = variants.iter().map(|v| Variant {
            name: v.name.clone(),
            fields: v.fields.iter().map(|t| self.mapped(b, twins, t)).collect(),
        });
        mapped.collect()
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

/// `a with [i] = a[i] + z`
pub(crate) fn added(b: &mut Builder<'_>, a: Var, i: Term, z: Term) -> Term {
    // Two terms for one variable: it is written in place at the last of them.
    let (read, written) = (b.var(a), b.var(a));
    let old = b.index(read, vec![i.clone()]);
    let sum = b.op2(Op::Add, old, z);
    b.term(Exp::Update(written, vec![i], sum))
}

/// `loop p = (true, init ..) while p.0 do body p`, where `body` makes a [`flagged`] product.
pub(crate) fn until(
    b: &mut Builder<'_>,
    init: Vec<Term>,
    body: impl FnOnce(&mut Builder<'_>, Var) -> Term,
) -> Term {
    let init = flagged(b, true, init);
    let state = b.fresh(init.ty().clone(), "p");
    let form = LoopForm::While(component(b, state, 0));
    let body = body(b, state);
    b.term(Exp::Loop(Loop { state, init, form, body, attrs: LoopAttrs::default() }))
}

/// `(go, next ..)`
pub(crate) fn flagged(b: &mut Builder<'_>, go: bool, mut next: Vec<Term>) -> Term {
    next.insert(0, b.constant(ScalarValue::Bool(go)));
    b.tuple(next)
}

/// Whether values of the type have sizes of their own: arrays, outside of sums.
pub(super) fn has_sizes(t: &Type) -> bool {
    match t {
        Type::Array(_) => true,
        Type::Tuple(ts) => ts.iter().any(has_sizes),
        _ => false,
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
