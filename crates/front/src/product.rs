//! Records and their fields, type ascription, and size expressions.

use crate::checker::{Checker, PENDING_FIELD, nearest};
use crate::operator::prim_value;
use crate::typed::*;
use crate::types::AnySize;
use crate::unify::{Kind, component};
use pullback_base::{Code, Span, Symbol};
use pullback_prim::{Op, Prim, Scalar};
use pullback_syntax::ast;

impl<'a> Checker<'a> {
    pub(crate) fn record_exp(&mut self, fields: &[ast::FieldExpr], span: Span) -> Exp {
        let mut out: Vec<(Symbol, Exp)> = Vec::new();
        for field in fields {
            let value = match &field.value {
                Some(e) => self.infer(e),
                None => self.plain_name(&field.name.text, field.name.span),
            };
            if out.iter().any(|(n, _)| *n == field.name.text) {
                self.error(
                    Code::DuplicateName,
                    field.name.span,
                    format!("field {} occurs twice", field.name.text),
                )
                .hints
                .push("remove one of them".into());
            } else {
                out.push((field.name.text.clone(), value));
            }
        }
        let ty = crate::types::record(out.iter().map(|(n, e)| (n.clone(), e.ty.clone())).collect());
        let kind = if out.is_empty() { ExpKind::Tuple(vec![]) } else { ExpKind::Record(out) };
        Checker::exp(kind, ty, span)
    }

    /// `x.field`.
    pub(crate) fn project(&mut self, x: Exp, field: &ast::Name, span: Span) -> Exp {
        let Some((number, ty)) = self.field(&x.ty, field) else { return Checker::error_exp(span) };
        Checker::exp(ExpKind::Project(Box::new(x), number), ty, span)
    }

    /// The (pending) number and the type of a field.
    fn field(&mut self, record: &Type, field: &ast::Name) -> Option<(usize, Type)> {
        let record = self.metas.shallow(record);
        if let Some((i, t)) = component(&record, &field.text) {
            return Some((i, t));
        }
        match record {
            Type::Meta(_) => {
                let ty = self.metas.any(field.span);
                let kind = Kind::Record(vec![(field.text.clone(), ty.clone())]);
                if let Err(m) = self.metas.require(&kind, &record, false) {
                    self.mismatch(m, &record, &record, field.span, "this value");
                    return None;
                }
                self.fields.push(field.text.clone());
                Some((PENDING_FIELD + self.fields.len() - 1, ty))
            }
            Type::Error => None,
            Type::Record(ref fields) => {
                let near = nearest(field.text.as_str(), fields.iter().map(|(n, _)| n.as_str()));
                let ty = self.show(&record);
                let d = self.error(
                    Code::TypeMismatch,
                    field.span,
                    format!("there is no field {} in {ty}", field.text),
                );
                d.hints.push(
                    near.map_or("check the name of the field".into(), |n| format!("did you mean {n}?")),
                );
                None
            }
            Type::Scalar(_)
            | Type::Array(..)
            | Type::Tuple(_)
            | Type::Sum(_)
            | Type::Fun(..)
            | Type::Param(..)
            | Type::Named(..) => {
                let ty = self.show(&record);
                self.error(
                    Code::TypeMismatch,
                    field.span,
                    format!("there is no field {} in {ty}", field.text),
                )
                .hints
                .push("components of tuples are .0, .1 and so on; fields of arrays need `map (.x)`".into());
                None
            }
        }
    }

    pub(crate) fn project_section(&mut self, path: &[ast::Name], span: Span) -> Exp {
        let ty = self.metas.any(span);
        let x = self.fresh_pattern("x", ty.clone(), span);
        let mut body = self.var_exp(&x);
        for field in path {
            body = self.project(body, field, span);
        }
        let ty = Type::fun(ty, body.ty.clone());
        Checker::exp(ExpKind::Lambda(vec![x], Box::new(body)), ty, span)
    }

    pub(crate) fn update_field(
        &mut self,
        x: &ast::Expr,
        path: &[ast::Name],
        value: &ast::Expr,
        span: Span,
    ) -> Exp {
        let x = self.infer(x);
        let value = self.infer(value);
        let mut ty = x.ty.clone();
        let mut numbers = Vec::new();
        for field in path {
            let Some((number, t)) = self.field(&ty, field) else { return Checker::error_exp(span) };
            numbers.push(number);
            ty = t;
        }
        self.expect(&ty, &value.ty, value.span, "the new value of the field");
        let ty = x.ty.clone();
        Checker::exp(ExpKind::RecordUpdate(Box::new(x), numbers, Box::new(value)), ty, span)
    }

    // ---- ascription ----

    pub(crate) fn ascription(&mut self, x: &ast::Expr, ty: &ast::Type, always: bool, span: Span) -> Exp {
        let x = self.infer(x);
        let wanted = self.type_of(ty, AnySize::Infer);
        // Before unification: sizes that are inferred need no test.
        let asked = self.metas.zonk(&wanted);
        let before = self.metas.undecided;
        let agreed = match self.metas.unify(&wanted, &x.ty, always) {
            Ok(()) => true,
            Err(m) => {
                self.mismatch(m, &wanted, &x.ty, x.span, "this expression");
                false
            }
        };
        if !agreed {
            return Checker::exp(ExpKind::Error, wanted, span);
        }
        let undecided = always || self.metas.undecided > before;
        self.coerce(x, &wanted, &asked, undecided, ty.span, span)
    }

    /// The value at the wanted type, with the tests that `asked` (the type as annotated) needs if sizes are undecided.
    pub(crate) fn coerce(
        &mut self,
        x: Exp,
        wanted: &Type,
        asked: &Type,
        undecided: bool,
        place: Span,
        span: Span,
    ) -> Exp {
        let mut checks = Vec::new();
        if undecided {
            self.size_checks(asked, Root::Value, place, &mut checks);
        }
        if checks.is_empty() {
            let mut x = x;
            x.ty = wanted.clone();
            return x;
        }
        Checker::exp(ExpKind::Coerce(Box::new(x), checks), wanted.clone(), span)
    }

    /// One test for each dimension of a type that has a computable size.
    pub(crate) fn size_checks(&mut self, ty: &Type, root: Root, span: Span, out: &mut Vec<SizeCheck>) {
        let mut dimensions = Vec::new();
        crate::binding::dimensions(&self.metas, ty, &mut vec![], &mut dimensions);
        for (steps, size) in dimensions {
            if let Some(expected) = self.size_exp(&size, span) {
                out.push(SizeCheck { place: Place { root, steps }, expected, span });
            }
        }
    }

    /// An expression for a size that has a value at run time.
    pub(crate) fn size_exp(&mut self, size: &Size, span: Span) -> Option<Exp> {
        let ty = Type::Scalar(Scalar::I64);
        match self.metas.size(size) {
            Size::Const(k) => Some(Checker::i64_literal(k, span)),
            Size::Var(v, name) => {
                if name.as_str().starts_with('?') {
                    return None;
                }
                self.value_uses.insert(v);
                Some(Checker::exp(ExpKind::Var(v, vec![]), ty, span))
            }
            Size::Def(d, _) => Some(Checker::exp(ExpKind::Def(d, vec![]), ty, span)),
            Size::Expression(p) => self.polynomial_exp(&p, span),
            Size::Unknown(_) | Size::Meta(_) => None,
        }
    }

    fn polynomial_exp(&mut self, p: &Polynomial, span: Span) -> Option<Exp> {
        let call = |op: Op, a: Exp, b: Exp| {
            let f = prim_value(Prim::Op(op, Scalar::I64), span);
            Checker::exp(ExpKind::Apply(Box::new(f), vec![a, b]), Type::Scalar(Scalar::I64), span)
        };
        let mut sum: Option<Exp> = None;
        for (atoms, k) in p {
            let mut product = (*k != 1 || atoms.is_empty()).then(|| Checker::i64_literal(*k, span));
            for atom in atoms {
                let factor = match atom {
                    SizeAtom::Var(v, name) => self.size_exp(&Size::Var(*v, name.clone()), span)?,
                    SizeAtom::Def(d, name) => self.size_exp(&Size::Def(*d, name.clone()), span)?,
                };
                product = Some(match product {
                    Some(x) => call(Op::Mul, x, factor),
                    None => factor,
                });
            }
            let term = product?;
            sum = Some(match sum {
                Some(x) => call(Op::Add, x, term),
                None => term,
            });
        }
        sum
    }
}
