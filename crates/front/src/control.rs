//! Conditionals, matches, loops, ranges, array literals, indexing and in-place updates.

use crate::checker::Checker;
use crate::size;
use crate::typed::*;
use crate::unify::{Kind, ScalarSet};
use pullback_base::{Code, Label, Span};
use pullback_prim::Scalar;
use pullback_syntax::ast;
use std::sync::Arc;

/// What drives a loop, without the expression that was typed before the state was in scope.
enum Driver {
    For(VarId),
    ForIn(Pattern),
    While(Exp),
}

/// One typed iteration of a loop.
struct Round {
    state: Pattern,
    driver: Driver,
    body: Exp,
    /// The type of the state after any number of iterations.
    ty: Type,
    /// Whether sizes of the state may differ between iterations.
    changed: bool,
}

impl<'a> Checker<'a> {
    pub(crate) fn conditional(&mut self, c: &ast::Expr, a: &ast::Expr, b: &ast::Expr, span: Span) -> Exp {
        let c = self.infer(c);
        self.expect(&Type::Scalar(Scalar::Bool), &c.ty, c.span, "the condition");
        let (a, b) = (self.infer(a), self.infer(b));
        let ty = self.branch(&a.ty.clone(), &b, a.span, "the else branch");
        Checker::exp(ExpKind::If(Box::new(c), Box::new(a), Box::new(b)), ty, span)
    }

    /// The common type of branches; sizes may differ.
    fn branch(&mut self, first: &Type, other: &Exp, first_span: Span, what: &str) -> Type {
        match self.metas.unify(first, &other.ty, true) {
            Ok(()) => self.metas.join(first, &other.ty),
            Err(m) => {
                self.mismatch(m, first, &other.ty, other.span, what);
                if let Some(d) = self.diagnostics.last_mut() {
                    d.labels.push(Label { span: first_span, text: "the first branch is here".into() });
                }
                Type::Error
            }
        }
    }

    pub(crate) fn match_cases(&mut self, x: &ast::Expr, cases: &[ast::Case], span: Span) -> Exp {
        let x = self.infer(x);
        let mut arms: Vec<(Pattern, Exp)> = Vec::new();
        let mut ty: Option<(Type, Span)> = None;
        for case in cases {
            let mark = self.mark();
            let pattern = self.pattern(&case.pattern);
            self.expect(&x.ty, &pattern.ty, pattern.span, "this pattern");
            let body = self.infer(&case.body);
            let gone = self.leave(mark);
            let own = self.escape(&body.ty, &gone);
            ty = Some(match ty {
                None => (own, body.span),
                Some((first, at)) => (self.branch(&first, &body, at, "this case"), at),
            });
            arms.push((pattern, body));
        }
        let ty = ty.map_or_else(|| self.metas.any(span), |(t, _)| t);
        Checker::exp(ExpKind::Match(Box::new(x), arms), ty, span)
    }

    pub(crate) fn loop_exp(
        &mut self,
        sizes: &[ast::Name],
        pattern: &ast::Pattern,
        initial: Option<&ast::Expr>,
        form: &ast::LoopForm,
        body: &ast::Expr,
        span: Span,
    ) -> Exp {
        if let Some(name) = sizes.first() {
            self.error(Code::Unsupported, name.span, "size parameters of loops are not supported yet")
                .hints
                .push("leave the size out: sizes of the loop state are tested where they are used".into());
            return Checker::error_exp(span);
        }
        let initial = match initial {
            Some(e) => self.infer(e),
            None => {
                let e = pattern_exp(pattern);
                self.infer(&e)
            }
        };
        // The bound and the array of `for` do not see the state.
        let driver = match form {
            ast::LoopForm::For(_, e) | ast::LoopForm::ForIn(_, e) => Some(self.infer(e)),
            ast::LoopForm::While(_) => None,
        };
        let reported = self.diagnostics.len();
        let mut round = self.round(pattern, &initial.ty, initial.span, form, driver.as_ref(), body);
        if round.changed {
            // The sizes of the state change from round to round: once more, with those sizes unknown. Nested loops
            // would double the work each time, so deep inside all run-time checks are kept instead.
            if self.repeats < 3 {
                self.diagnostics.truncate(reported);
                self.repeats += 1;
                let ty = self.metas.join(&round.state.ty, &round.body.ty);
                round = self.round(pattern, &ty, initial.span, form, driver.as_ref(), body);
                self.repeats -= 1;
            } else {
                self.all_checks = true;
            }
            round.ty = self.metas.join(&round.state.ty, &round.ty);
        }
        let form = match (round.driver, driver) {
            (Driver::For(var), Some(bound)) => LoopForm::For(var, bound),
            (Driver::ForIn(p), Some(array)) => LoopForm::ForIn(p, array),
            (Driver::While(c), _) => LoopForm::While(c),
            (Driver::For(_) | Driver::ForIn(_), None) => LoopForm::While(Checker::error_exp(span)),
        };
        let whole = Loop { pattern: round.state, initial, form, body: round.body };
        Checker::exp(ExpKind::Loop(Box::new(whole)), round.ty, span)
    }

    /// Types one iteration whose state has the given type at its start.
    fn round(
        &mut self,
        pattern: &ast::Pattern,
        start: &Type,
        start_span: Span,
        form: &ast::LoopForm,
        driver: Option<&Exp>,
        body: &ast::Expr,
    ) -> Round {
        let mark = self.mark();
        let state = self.pattern(pattern);
        self.must_fit(&state);
        let before = self.metas.undecided;
        if let Err(m) = self.metas.unify(&state.ty, start, true) {
            self.mismatch(m, &state.ty, start, start_span, "the first state of the loop");
        }
        // Sizes annotated in the pattern are taken on trust, so later checks must stay.
        self.all_checks |= self.metas.undecided > before;
        let driver = self.driver(form, driver);
        let body = self.infer(body);
        let before = self.metas.undecided;
        if let Err(m) = self.metas.unify(&state.ty, &body.ty, true) {
            self.mismatch(m, &state.ty, &body.ty, body.span, "the next state of the loop");
        }
        let changed = self.metas.undecided > before;
        let gone = self.leave(mark);
        let ty = if changed { self.metas.join(&state.ty, &body.ty) } else { state.ty.clone() };
        let ty = self.escape(&ty, &gone);
        Round { state, driver, body, ty, changed }
    }

    fn driver(&mut self, form: &ast::LoopForm, driver: Option<&Exp>) -> Driver {
        match (form, driver) {
            (ast::LoopForm::For(name, _), Some(bound)) => {
                let kind = Kind::Scalar(ScalarSet::integers());
                let integer = self.of_kind(kind, bound.span);
                self.expect(&integer, &bound.ty, bound.span, "the bound of the loop");
                let var = self.new_var(name.text.as_str(), bound.ty.clone(), name.span);
                self.bring(&name.text, var);
                Driver::For(var)
            }
            (ast::LoopForm::ForIn(p, _), Some(array)) => {
                let element = self.metas.any(array.span);
                let wanted = Type::array(Size::Meta(self.metas.fresh_size()), element.clone());
                self.expect(&wanted, &array.ty, array.span, "the array of the loop");
                let p = self.pattern(p);
                self.must_fit(&p);
                self.expect(&element, &p.ty, p.span, "the element pattern");
                Driver::ForIn(p)
            }
            (ast::LoopForm::While(c), _) => {
                let c = self.infer(c);
                self.expect(&Type::Scalar(Scalar::Bool), &c.ty, c.span, "the condition of the loop");
                Driver::While(c)
            }
            (ast::LoopForm::For(_, e) | ast::LoopForm::ForIn(_, e), None) => {
                Driver::While(Checker::error_exp(e.span))
            }
        }
    }

    pub(crate) fn range(
        &mut self,
        start: &ast::Expr,
        second: Option<&ast::Expr>,
        end: &ast::Expr,
        kind: ast::RangeEnd,
        span: Span,
    ) -> Exp {
        let ty = self.of_kind(Kind::Scalar(ScalarSet::integers()), span);
        let start = self.infer(start);
        self.expect(&ty, &start.ty, start.span, "the start of the range");
        let second = second.map(|e| self.infer(e));
        if let Some(e) = &second {
            self.expect(&ty, &e.ty, e.span, "the second element of the range");
        }
        let end = self.infer(end);
        self.expect(&ty, &end.ty, end.span, "the end of the range");
        let kind = match kind {
            ast::RangeEnd::Inclusive => RangeKind::Inclusive,
            ast::RangeEnd::UpToExclusive => RangeKind::UpTo,
            ast::RangeEnd::DownToExclusive => RangeKind::DownTo,
        };
        let size = self.range_size(&start, second.as_ref(), &end, kind);
        let size = size.unwrap_or_else(|| self.metas.unknown());
        let array = Type::array(size, ty);
        Checker::exp(ExpKind::Range(Box::new(Range { start, second, end, kind })), array, span)
    }

    fn range_size(&mut self, start: &Exp, second: Option<&Exp>, end: &Exp, kind: RangeKind) -> Option<Size> {
        // With a step, or in another type than `i64`, the size is not simply a difference.
        if second.is_some() || self.metas.shallow(&end.ty) != Type::Scalar(Scalar::I64) {
            return None;
        }
        let (a, b) = (self.size_value(start)?, self.size_value(end)?);
        let difference = match kind {
            RangeKind::UpTo => size::add(&b, &a, -1)?,
            RangeKind::Inclusive => size::add(&size::add(&b, &a, -1)?, &Size::Const(1), 1)?,
            RangeKind::DownTo => size::add(&a, &b, -1)?,
        };
        match difference {
            Size::Const(k) => Some(Size::Const(k.max(0))),
            known => Some(known),
        }
    }

    pub(crate) fn array(&mut self, es: &[ast::Expr], span: Span) -> Exp {
        let element = self.metas.any(span);
        let mut elements: Vec<Exp> = Vec::new();
        for e in es {
            let e = self.infer(e);
            if !self.expect(&element, &e.ty, e.span, "this element")
                && let (Some(d), Some(first)) = (self.diagnostics.last_mut(), elements.first())
            {
                d.labels.push(Label { span: first.span, text: "the first element is here".into() });
            }
            elements.push(e);
        }
        let ty = Type::array(Size::Const(elements.len() as i64), element);
        Checker::exp(ExpKind::Array(elements), ty, span)
    }

    /// `x[dims]`.
    pub(crate) fn index(&mut self, x: Exp, dims: &[ast::DimIndex], span: Span) -> Exp {
        let Some((dims, ty)) = self.dimensions_of(&x, dims) else { return Checker::error_exp(span) };
        Checker::exp(ExpKind::Index(Box::new(x), dims), ty, span)
    }

    /// `x with [dims] = value`.
    pub(crate) fn update_index(
        &mut self,
        x: Exp,
        dims: &[ast::DimIndex],
        value: &ast::Expr,
        span: Span,
    ) -> Exp {
        let found = self.dimensions_of(&x, dims);
        let value = self.infer(value);
        let Some((dims, part)) = found else { return Checker::error_exp(span) };
        self.expect(&part, &value.ty, value.span, "the new value");
        let ty = x.ty.clone();
        Checker::exp(ExpKind::With(Box::new(x), dims, Box::new(value)), ty, span)
    }

    /// Types indices and slices against an array, and the type of what they select.
    fn dimensions_of(&mut self, x: &Exp, dims: &[ast::DimIndex]) -> Option<(Vec<DimIndex>, Type)> {
        let mut out = Vec::new();
        let mut kept: Vec<Size> = Vec::new();
        let mut ty = x.ty.clone();
        let mut failed = false;
        for dim in dims {
            let (size, element) = match self.metas.shallow(&ty) {
                Type::Array(s, t) => (s, (*t).clone()),
                m @ Type::Meta(_) => {
                    let element = self.metas.any(x.span);
                    let size = Size::Meta(self.metas.fresh_size());
                    let wanted = Type::array(size.clone(), element.clone());
                    failed |= !self.expect(&wanted, &m, x.span, "the indexed value");
                    (size, element)
                }
                Type::Error => (Size::Const(0), Type::Error),
                other @ (Type::Scalar(_)
                | Type::Tuple(_)
                | Type::Record(_)
                | Type::Sum(_)
                | Type::Fun(..)
                | Type::Param(..)
                | Type::Named(..)) => {
                    let (whole, part) = (self.show(&x.ty), self.show(&other));
                    let span = dim_span(dim);
                    let message = if out.is_empty() {
                        format!("a value of type {whole} cannot be indexed")
                    } else {
                        format!("too many indices: {whole} has {} dimensions, then comes {part}", out.len())
                    };
                    self.error(Code::TypeMismatch, span, message)
                        .hints
                        .push("only arrays are indexed".into());
                    return None;
                }
            };
            let (dim, size) = self.dimension(dim, &size);
            kept.extend(size);
            out.push(dim);
            ty = element;
        }
        let ty = kept.into_iter().rev().fold(ty, |t, s| Type::Array(s, Arc::new(t)));
        (!failed).then_some((out, ty))
    }

    /// One index, and the size that is left if it is a slice.
    fn dimension(&mut self, dim: &ast::DimIndex, size: &Size) -> (DimIndex, Option<Size>) {
        match dim {
            ast::DimIndex::Fix(e) => (DimIndex::At(self.index_value(e, "an index")), None),
            ast::DimIndex::Slice { from, to, stride, .. } => {
                let from = from.as_ref().map(|e| self.index_value(e, "the start of a slice"));
                let to = to.as_ref().map(|e| self.index_value(e, "the end of a slice"));
                let stride = stride.as_ref().map(|e| self.index_value(e, "the stride of a slice"));
                let left =
                    if stride.is_some() { None } else { self.slice_size(from.as_ref(), to.as_ref(), size) };
                let left = left.unwrap_or_else(|| self.metas.unknown());
                (DimIndex::Slice(from, to, stride), Some(left))
            }
        }
    }

    fn slice_size(&mut self, from: Option<&Exp>, to: Option<&Exp>, whole: &Size) -> Option<Size> {
        let start = match from {
            Some(e) => self.size_value(e)?,
            None => Size::Const(0),
        };
        let end = match to {
            Some(e) => self.size_value(e)?,
            None => self.metas.size(whole),
        };
        if from.is_none() && to.is_none() {
            return Some(end);
        }
        // Negative ends are an error at run time; no size is claimed for them.
        match size::add(&end, &start, -1)? {
            Size::Const(k) if k < 0 => None,
            known => Some(known),
        }
    }

    fn index_value(&mut self, e: &ast::Expr, what: &str) -> Exp {
        let e = self.infer(e);
        let integer = self.of_kind(Kind::Scalar(ScalarSet::integers()), e.span);
        self.expect(&integer, &e.ty, e.span, what);
        // A literal index is an `i64`, not the default `i32`.
        if let ExpKind::Literal(_) = e.kind
            && let Type::Meta(_) = self.metas.shallow(&e.ty)
        {
            self.expect(&Type::Scalar(Scalar::I64), &e.ty, e.span, what);
        }
        e
    }

    pub(crate) fn index_section(&mut self, dims: &[ast::DimIndex], span: Span) -> Exp {
        let ty = self.metas.any(span);
        let x = self.fresh_pattern("x", ty.clone(), span);
        let value = self.var_exp(&x);
        let body = self.index(value, dims, span);
        let ty = Type::fun(ty, body.ty.clone());
        Checker::exp(ExpKind::Lambda(vec![x], Box::new(body)), ty, span)
    }
}

fn dim_span(dim: &ast::DimIndex) -> Span {
    match dim {
        ast::DimIndex::Fix(e) => e.span,
        ast::DimIndex::Slice { span, .. } => *span,
    }
}

/// The expression that a pattern of names reads like.
fn pattern_exp(p: &ast::Pattern) -> ast::Expr {
    let kind = match &p.kind {
        ast::PatternKind::Name(name) => {
            let name = ast::QualName { qualifiers: vec![], name: name.clone(), span: name.span };
            ast::ExprKind::Var(name)
        }
        ast::PatternKind::Tuple(ps) => ast::ExprKind::Tuple(ps.iter().map(pattern_exp).collect()),
        ast::PatternKind::Record(fields) => ast::ExprKind::Record(
            fields
                .iter()
                .map(|(name, p)| ast::FieldExpr { name: name.clone(), value: p.as_ref().map(pattern_exp) })
                .collect(),
        ),
        ast::PatternKind::Ascription(p, _) | ast::PatternKind::Attributed(_, p) => return pattern_exp(p),
        ast::PatternKind::Literal(literal) => ast::ExprKind::Literal(literal.clone()),
        ast::PatternKind::Wildcard
        | ast::PatternKind::Constructor(..)
        | ast::PatternKind::NegatedLiteral(_)
        | ast::PatternKind::Error => ast::ExprKind::Error,
    };
    ast::Expr::new(kind, p.span)
}
