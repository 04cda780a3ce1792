//! Patterns: names they bind, types, and whether they can fail.

use crate::checker::Checker;
use crate::typed::*;
use crate::types::AnySize;
use crate::unify::{Kind, ScalarSet};
use pullback_base::{Code, Label, Span, Symbol};
use pullback_prim::{Scalar, ScalarValue};
use pullback_syntax::ast;
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Types a pattern and brings its names into scope.
    pub(crate) fn pattern(&mut self, p: &ast::Pattern) -> Pattern {
        let mut seen = BTreeMap::new();
        self.pattern_in(p, &mut seen)
    }
    /// As [`Checker::pattern`] for several patterns whose names must differ.
    pub(crate) fn patterns(&mut self, ps: &[ast::Pattern]) -> Vec<Pattern> {
        let mut seen = BTreeMap::new();
        ps.iter().map(|p| self.pattern_in(p, &mut seen)).collect()
    }

    fn bind_name(&mut self, name: &ast::Name, ty: Type, seen: &mut BTreeMap<Symbol, Span>) -> VarId {
        if let Some(first) = seen.insert(name.text.clone(), name.span) {
            self.error(
                Code::DuplicateName,
                name.span,
                format!("{} is bound twice in one pattern", name.text),
            )
            .labels
            .push(Label { span: first, text: "first bound here".into() });
        }
        let var = self.new_var(name.text.as_str(), ty, name.span);
        self.bring(&name.text, var);
        var
    }

    fn pattern_in(&mut self, p: &ast::Pattern, seen: &mut BTreeMap<Symbol, Span>) -> Pattern {
        let span = p.span;
        let (kind, ty) = match &p.kind {
            ast::PatternKind::Wildcard | ast::PatternKind::Error => {
                (PatternKind::Wildcard, self.metas.any(span))
            }
            ast::PatternKind::Name(name) => {
                let ty = self.metas.any(span);
                (PatternKind::Var(self.bind_name(name, ty.clone(), seen)), ty)
            }
            ast::PatternKind::Tuple(ps) => {
                let ps: Vec<Pattern> = ps.iter().map(|p| self.pattern_in(p, seen)).collect();
                let ty = Type::Tuple(ps.iter().map(|p| p.ty.clone()).collect());
                (PatternKind::Tuple(ps), ty)
            }
            ast::PatternKind::Record(fields) => return self.record_pattern(fields, span, seen),
            ast::PatternKind::Ascription(inner, ty) => {
                let wanted = self.type_of(ty, AnySize::Infer);
                let mut inner = self.pattern_in(inner, seen);
                self.expect(&wanted, &inner.ty, ty.span, "this pattern");
                inner.ty = wanted.clone();
                // The declared type is the better one to show: it has the names that the user chose for sizes.
                if let PatternKind::Var(v) = inner.kind {
                    self.program.vars[v].ty = wanted;
                }
                return inner;
            }
            ast::PatternKind::Constructor(name, ps) => {
                let ps: Vec<Pattern> = ps.iter().map(|p| self.pattern_in(p, seen)).collect();
                let payload = ps.iter().map(|p| p.ty.clone()).collect();
                let ty = self.of_kind(Kind::Sum(vec![(name.text.clone(), payload)]), span);
                (PatternKind::Construct(name.text.clone(), 0, ps), ty)
            }
            ast::PatternKind::Literal(literal) => self.literal_pattern(literal, false, span),
            ast::PatternKind::NegatedLiteral(literal) => self.literal_pattern(literal, true, span),
            ast::PatternKind::Attributed(_, inner) => return self.pattern_in(inner, seen),
        };
        Pattern { kind, ty, span }
    }

    fn record_pattern(
        &mut self,
        fields: &[(ast::Name, Option<ast::Pattern>)],
        span: Span,
        seen: &mut BTreeMap<Symbol, Span>,
    ) -> Pattern {
        let mut out: Vec<(Symbol, Pattern)> = Vec::new();
        for (name, p) in fields {
            let p = match p {
                Some(p) => self.pattern_in(p, seen),
                None => {
                    let ty = self.metas.any(name.span);
                    let var = self.bind_name(name, ty.clone(), seen);
                    Pattern { kind: PatternKind::Var(var), ty, span: name.span }
                }
            };
            if out.iter().any(|(n, _)| *n == name.text) {
                self.error(Code::DuplicateName, name.span, format!("field {} occurs twice", name.text))
                    .hints
                    .push("remove one of them".into());
            } else {
                out.push((name.text.clone(), p));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        // A record pattern names all fields, as in Futhark.
        let ty = crate::types::record(out.iter().map(|(n, p)| (n.clone(), p.ty.clone())).collect());
        let kind = if out.is_empty() { PatternKind::Tuple(vec![]) } else { PatternKind::Record(out) };
        Pattern { kind, ty, span }
    }

    fn literal_pattern(&mut self, literal: &ast::Literal, negative: bool, span: Span) -> (PatternKind, Type) {
        let e = self.literal(literal, negative, span);
        let ty = e.ty.clone();
        match e.kind {
            ExpKind::Literal(value) => (PatternKind::Literal(value), ty),
            ExpKind::Array(_) => {
                self.error(Code::Pattern, span, "a pattern cannot be a string")
                    .hints
                    .push("compare with `==`".into());
                (PatternKind::Wildcard, ty)
            }
            _ => (PatternKind::Wildcard, ty),
        }
    }

    /// A literal: its value in the widest type of its kind; the value is converted when its type is known.
    pub(crate) fn literal(&mut self, literal: &ast::Literal, negative: bool, span: Span) -> Exp {
        let (value, suffix, set) = match literal {
            ast::Literal::Int(k, suffix) => {
                let written = suffix.as_ref().and_then(|s| Scalar::from_name(s.as_str()));
                let value = match (written, negative, 0i64.checked_sub_unsigned(*k)) {
                    // With a suffix it wraps round, as in Futhark.
                    (Some(s), ..) if s.is_integer() => {
                        let k = *k as i64;
                        s.from_i64(if negative { k.wrapping_neg() } else { k })
                    }
                    (_, false, _) => ScalarValue::U64(*k),
                    (_, true, Some(k)) => ScalarValue::I64(k),
                    (_, true, None) => {
                        self.error(Code::TypeMismatch, span, format!("-{k} does not fit any integer type"))
                            .hints
                            .push("write it as a float: add `.0`".into());
                        ScalarValue::I64(0)
                    }
                };
                (value, *suffix, ScalarSet::numbers())
            }
            ast::Literal::Float(x, suffix) => {
                (ScalarValue::F64(if negative { -x } else { *x }), *suffix, ScalarSet::floats())
            }
            ast::Literal::Bool(b) => {
                let kind = ExpKind::Literal(ScalarValue::Bool(*b));
                return Checker::exp(kind, Type::Scalar(Scalar::Bool), span);
            }
            ast::Literal::Char(c) => {
                return Checker::exp(ExpKind::Literal(ScalarValue::U8(*c)), Type::Scalar(Scalar::U8), span);
            }
            ast::Literal::String(bytes) => {
                let element = |b: &u8| {
                    Checker::exp(ExpKind::Literal(ScalarValue::U8(*b)), Type::Scalar(Scalar::U8), span)
                };
                let elements: Vec<Exp> = bytes.iter().map(element).collect();
                let ty = Type::array(Size::Const(elements.len() as i64), Type::Scalar(Scalar::U8));
                return Checker::exp(ExpKind::Array(elements), ty, span);
            }
        };
        let ty = match suffix {
            None => self.of_kind(Kind::Scalar(set), span),
            Some(s) => match Scalar::from_name(s.as_str()) {
                Some(s) => Type::Scalar(s),
                None => {
                    self.error(Code::Unsupported, span, "the type f16 is not supported yet")
                        .hints
                        .push("use f32".into());
                    Type::Error
                }
            },
        };
        Checker::exp(ExpKind::Literal(value), ty, span)
    }

    /// Reports a pattern that can fail where it must not.
    pub(crate) fn must_fit(&mut self, p: &Pattern) {
        match &p.kind {
            PatternKind::Wildcard | PatternKind::Var(_) => {}
            PatternKind::Tuple(ps) => ps.iter().for_each(|p| self.must_fit(p)),
            PatternKind::Record(fs) => fs.iter().for_each(|(_, p)| self.must_fit(p)),
            PatternKind::Literal(_) => self.refutable(p.span, "a literal"),
            PatternKind::Construct(name, _, ps) => {
                // The only alternative of its type always fits.
                let ty = self.metas.shallow(&p.ty);
                if self.metas.alternatives(&ty).is_none_or(|vs| vs.len() != 1) {
                    self.refutable(p.span, &format!("#{name}"));
                }
                ps.iter().for_each(|p| self.must_fit(p));
            }
        }
    }
    fn refutable(&mut self, span: Span, what: &str) {
        self.error(Code::Pattern, span, format!("a pattern that may not fit is not allowed here: {what}"))
            .hints
            .push("use `match`".into());
    }
}
