//! The last step for a definition: every open decision of its tree is made.
//!
//! Literals get the value at their type, operators their scalar type, projections and alternatives their numbers,
//! indices their conversion to `i64`; matches are tested for completeness.

use crate::checker::{Checker, PENDING_FIELD};
use crate::intrinsics::Intrinsic;
use crate::operator::prim_value;
use crate::size;
use crate::typed::*;
use crate::unify::component;
use pullback_base::index::Index;
use pullback_base::{Code, Span, Symbol};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::sync::Arc;

impl<'a> Checker<'a> {
    /// The type with nothing open: unknown types are unit, unknown sizes are known at run time. Binders stay.
    pub(crate) fn final_type(&mut self, ty: &Type) -> Type {
        let zonked = self.metas.zonk(ty);
        let mut binders = Vec::new();
        self.close_type(&zonked, &mut binders)
    }

    fn close_type(&mut self, ty: &Type, binders: &mut Vec<SizeMetaId>) -> Type {
        match ty {
            Type::Array(s, t) => {
                let s = match s {
                    Size::Meta(m) if !binders.contains(m) => self.metas.unknown(),
                    s => s.clone(),
                };
                Type::Array(s, Arc::new(self.close_type(t, binders)))
            }
            Type::Tuple(ts) => Type::Tuple(ts.iter().map(|t| self.close_type(t, binders)).collect()),
            Type::Record(fs) => {
                Type::Record(fs.iter().map(|(n, t)| (n.clone(), self.close_type(t, binders))).collect())
            }
            Type::Sum(vs) => Type::Sum(
                vs.iter()
                    .map(|(n, ts)| (n.clone(), ts.iter().map(|t| self.close_type(t, binders)).collect()))
                    .collect(),
            ),
            Type::Fun(b, p, r) => {
                let p = self.close_type(p, binders);
                binders.extend(b.as_ref().map(|b| b.id));
                let r = self.close_type(r, binders);
                if b.is_some() {
                    binders.pop();
                }
                Type::Fun(b.clone(), Arc::new(p), Arc::new(r))
            }
            Type::Meta(_) => Type::unit(),
            t @ (Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Error) => t.clone(),
        }
    }

    /// Finishes a function; `own` is the definition it is, for its recursive uses.
    pub(crate) fn finish_function(&mut self, f: &mut Function, own: Option<DefId>) {
        f.params.iter_mut().for_each(|p| self.finish_pattern(p));
        f.checks.iter_mut().for_each(|c| self.finish(&mut c.expected));
        f.result = self.final_type(&f.result);
        if own.is_some() {
            self.own_params = f.type_params.clone();
        }
        self.finish(&mut f.body);
    }

    fn finish_pattern(&mut self, p: &mut Pattern) {
        p.ty = self.final_type(&p.ty);
        match &mut p.kind {
            PatternKind::Wildcard | PatternKind::Var(_) => {}
            PatternKind::Literal(value) => *value = self.value_at(*value, &p.ty, p.span),
            PatternKind::Tuple(ps) => ps.iter_mut().for_each(|p| self.finish_pattern(p)),
            PatternKind::Record(fs) => fs.iter_mut().for_each(|(_, p)| self.finish_pattern(p)),
            PatternKind::Construct(name, number, ps) => {
                if let Some((k, _)) = self.metas.alternative(&p.ty, name) {
                    *number = k;
                }
                ps.iter_mut().for_each(|p| self.finish_pattern(p));
            }
        }
    }

    /// The value of a literal at its type.
    fn value_at(&mut self, value: ScalarValue, ty: &Type, span: Span) -> ScalarValue {
        let Type::Scalar(s) = ty else { return value };
        if value.scalar() == *s {
            return value;
        }
        let mut misfit = |text: String| {
            self.error(Code::TypeMismatch, span, format!("{text} does not fit {s}"))
                .hints
                .push("give it a wider type with a suffix, as in 1i64".into());
        };
        match value {
            ScalarValue::U64(k) => {
                if s.is_float() {
                    return if *s == Scalar::F32 {
                        ScalarValue::F32(k as f32)
                    } else {
                        ScalarValue::F64(k as f64)
                    };
                }
                let greatest = match s.bytes() {
                    1 => u64::from(u8::MAX),
                    2 => u64::from(u16::MAX),
                    4 => u64::from(u32::MAX),
                    _ => u64::MAX,
                };
                let greatest = if s.is_signed() { greatest / 2 } else { greatest };
                if k > greatest && *s != Scalar::Bool {
                    misfit(k.to_string());
                }
                s.from_i64(k as i64)
            }
            ScalarValue::I64(k) => {
                let fits = s.is_float() || *s == Scalar::Bool || s.from_i64(k).as_i64() == k;
                if !fits || (*s == Scalar::U64 && k < 0) {
                    misfit(k.to_string());
                }
                s.from_i64(k)
            }
            ScalarValue::F64(x) if *s == Scalar::F32 => {
                if x.is_finite() && (x as f32).is_infinite() {
                    misfit(format!("{x:e}"));
                }
                ScalarValue::F32(x as f32)
            }
            value => value,
        }
    }

    /// Finishes an expression.
    pub(crate) fn finish(&mut self, e: &mut Exp) {
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || self.finish_here(e));
    }

    fn finish_here(&mut self, e: &mut Exp) {
        e.ty = self.final_type(&e.ty);
        let span = e.span;
        match &mut e.kind {
            ExpKind::Literal(value) => *value = self.value_at(*value, &e.ty, span),
            ExpKind::Var(_, types) => self.finish_types(types),
            ExpKind::Def(id, types) => {
                self.finish_types(types);
                if types.is_empty() && Some(*id) == self.current {
                    // A recursive use inside its own definition is at the definition's own parameters.
                    let own = self.own_params.iter().map(|p| Type::Param(*p, Symbol::new("t")));
                    *types = own.collect();
                }
            }
            ExpKind::Intrinsic(..) => self.finish_intrinsic(e),
            ExpKind::Tuple(es) | ExpKind::Array(es) => es.iter_mut().for_each(|e| self.finish(e)),
            ExpKind::Record(fs) => fs.iter_mut().for_each(|(_, e)| self.finish(e)),
            ExpKind::Construct(name, number, payload) => {
                if let Some((k, _)) = self.metas.alternative(&e.ty, name) {
                    *number = k;
                }
                payload.iter_mut().for_each(|e| self.finish(e));
            }
            ExpKind::Project(x, number) => {
                self.finish(x);
                *number = self.component_number(&x.ty, *number);
            }
            ExpKind::RecordUpdate(x, path, value) => {
                self.finish(x);
                self.finish(value);
                let mut ty = x.ty.clone();
                for number in path {
                    *number = self.component_number(&ty, *number);
                    ty = component_type(&ty, *number);
                }
            }
            ExpKind::Apply(..) => self.finish_apply(e),
            ExpKind::Lambda(params, body) => {
                params.iter_mut().for_each(|p| self.finish_pattern(p));
                self.finish(body);
            }
            ExpKind::Let(bindings, body) => {
                bindings.iter_mut().for_each(|b| self.finish_binding(b));
                self.finish(body);
            }
            ExpKind::If(a, b, c) => [a, b, c].into_iter().for_each(|e| self.finish(e)),
            ExpKind::Match(x, arms) => {
                self.finish(x);
                for (p, body) in arms.iter_mut() {
                    self.finish_pattern(p);
                    self.finish(body);
                }
                let patterns: Vec<&Pattern> = arms.iter().map(|(p, _)| p).collect();
                crate::complete::check(&self.metas, &patterns, &x.ty, span, &mut self.diagnostics);
            }
            ExpKind::Loop(l) => {
                self.finish_pattern(&mut l.pattern);
                self.finish(&mut l.initial);
                match &mut l.form {
                    LoopForm::For(_, e) | LoopForm::While(e) => self.finish(e),
                    LoopForm::ForIn(p, e) => {
                        self.finish_pattern(p);
                        self.finish(e);
                    }
                }
                self.finish(&mut l.body);
            }
            ExpKind::Index(x, dims) => {
                self.finish(x);
                dims.iter_mut().for_each(|d| self.finish_dim(d));
            }
            ExpKind::With(x, dims, value) => {
                self.finish(x);
                dims.iter_mut().for_each(|d| self.finish_dim(d));
                self.finish(value);
            }
            ExpKind::Range(r) => {
                self.finish(&mut r.start);
                r.second.iter_mut().for_each(|e| self.finish(e));
                self.finish(&mut r.end);
            }
            ExpKind::Coerce(x, checks) => {
                self.finish(x);
                checks.iter_mut().for_each(|c| self.finish(&mut c.expected));
            }
            ExpKind::Attributed(_, x) => self.finish(x),
            ExpKind::Assert(c, x) => {
                self.finish(c);
                self.finish(x);
            }
            ExpKind::Error => {}
        }
    }

    fn finish_types(&mut self, types: &mut [Type]) {
        types.iter_mut().for_each(|t| *t = self.final_type(t));
    }

    fn finish_binding(&mut self, b: &mut Binding) {
        match b {
            Binding::Value(l) => {
                self.finish_pattern(&mut l.pattern);
                self.finish(&mut l.value);
            }
            Binding::Fun(l) => self.finish_function(&mut l.fun, None),
        }
    }

    fn finish_dim(&mut self, d: &mut DimIndex) {
        match d {
            DimIndex::At(e) => self.finish_index(e),
            DimIndex::Slice(a, b, c) => {
                [a, b, c].into_iter().flatten().for_each(|e| self.finish_index(e));
            }
        }
    }

    fn finish_index(&mut self, e: &mut Exp) {
        self.finish(e);
        if let Type::Scalar(s) = e.ty
            && s != Scalar::I64
            && s.is_integer()
        {
            let inner = std::mem::replace(e, Checker::error_exp(e.span));
            let span = inner.span;
            let convert = prim_value(Prim::Convert(s, Scalar::I64), span);
            *e = Exp {
                kind: ExpKind::Apply(Box::new(convert), vec![inner]),
                ty: Type::Scalar(Scalar::I64),
                span,
            };
        }
    }

    fn finish_apply(&mut self, e: &mut Exp) {
        let ExpKind::Apply(f, arguments) = &mut e.kind else { return };
        self.finish(f);
        arguments.iter_mut().for_each(|a| self.finish(a));
        if let ExpKind::Apply(inner, first) = &mut f.kind {
            let mut all = std::mem::take(first);
            all.append(arguments);
            let inner = std::mem::replace(&mut **inner, Checker::error_exp(e.span));
            e.kind = ExpKind::Apply(Box::new(inner), all);
        }
    }

    fn finish_intrinsic(&mut self, e: &mut Exp) {
        let span = e.span;
        let ExpKind::Intrinsic(intrinsic, types) = &mut e.kind else { return };
        self.finish_types(types);
        match (*intrinsic, types.as_slice()) {
            (Intrinsic::Prim(Prim::Op(op, _)), [Type::Scalar(s)]) => {
                *intrinsic = Intrinsic::Prim(Prim::Op(op, *s));
                types.clear();
            }
            (Intrinsic::Prim(Prim::Op(Op::Eq, _)), [_]) => *intrinsic = Intrinsic::Equal,
            // Reported when the operand was found not to be a scalar.
            (Intrinsic::Prim(_), [_]) => e.kind = ExpKind::Error,
            (Intrinsic::Unflatten, [_]) => self.finish_unflatten(e, span),
            _ => {}
        }
    }

    /// `unflatten` becomes a call with the sizes of its result.
    fn finish_unflatten(&mut self, e: &mut Exp, span: Span) {
        let Type::Fun(_, flat, r) = &e.ty else { return };
        let (Type::Array(flat, _), Type::Array(n, rest)) = (&**flat, &**r) else { return };
        let Type::Array(m, _) = &**rest else { return };
        let (n, m) = self.unflattened(flat, n, m, span);
        let (Some(n), Some(m)) = (self.size_exp(&n, span), self.size_exp(&m, span)) else {
            self.error(Code::Ambiguous, span, "the sizes of the result of unflatten are not known")
                .hints
                .push("annotate the result: `unflatten xs :> [n][m]t`".into());
            e.kind = ExpKind::Error;
            return;
        };
        let kind = std::mem::replace(&mut e.kind, ExpKind::Error);
        let size = Type::Scalar(Scalar::I64);
        let whole = Type::fun(size.clone(), Type::fun(size, e.ty.clone()));
        let f = Exp { kind, ty: whole, span };
        e.kind = ExpKind::Apply(Box::new(f), vec![n, m]);
    }

    /// The sizes of an unflattened array; those that no use decides are the factors of the flat size as written.
    fn unflattened(&self, flat: &Size, n: &Size, m: &Size, span: Span) -> (Size, Size) {
        // A size that was inferred from a later use may mention variables that are not yet in scope here.
        let vars = self.unflattens.iter().find(|(s, _)| *s == span).map_or(0, |(_, vars)| *vars);
        let later = |s: &Size| size::mentions(s, |v| v.index() >= vars);
        let known = |s: &Size| !matches!(s, Size::Unknown(_) | Size::Meta(_)) && !later(s);
        let hidden = |s: &Size| if later(s) { Size::Unknown(0) } else { s.clone() };
        let (n, m) = (&hidden(n), &hidden(m));
        let Some((x, y)) = self.factors(flat) else { return (n.clone(), m.clone()) };
        match (known(n), known(m)) {
            (true, true) => (n.clone(), m.clone()),
            (false, false) => (x, y),
            (true, false) if *n == x => (x, y),
            (true, false) if *n == y => (y, x),
            (false, true) if *m == y => (x, y),
            (false, true) if *m == x => (y, x),
            (true, false) | (false, true) => (n.clone(), m.clone()),
        }
    }

    fn component_number(&self, ty: &Type, number: usize) -> usize {
        if number < PENDING_FIELD {
            return number;
        }
        let name = self.fields.get(number - PENDING_FIELD);
        name.and_then(|n| component(ty, n)).map_or(0, |(i, _)| i)
    }
}

fn component_type(ty: &Type, number: usize) -> Type {
    match ty {
        Type::Tuple(ts) => ts.get(number).cloned(),
        Type::Record(fs) => fs.get(number).map(|(_, t)| t.clone()),
        Type::Scalar(_)
        | Type::Array(..)
        | Type::Sum(_)
        | Type::Fun(..)
        | Type::Param(..)
        | Type::Named(..)
        | Type::Meta(_)
        | Type::Error => None,
    }
    .unwrap_or(Type::Error)
}
