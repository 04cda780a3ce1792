//! Operators: built-in ones by the primitive table, sections, negation.

use crate::checker::Checker;
use crate::intrinsics::Intrinsic;
use crate::typed::*;
use crate::unify::{Kind, Mismatch, ScalarSet};
use pullback_base::{Code, Span};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_syntax::ast;
use std::sync::Arc;

/// How an operator is built from the primitive table.
pub(crate) enum Builtin {
    /// A primitive on operands of one type; with its arguments swapped if set.
    Prim { op: Op, operands: ScalarSet, swapped: bool },
    /// `==`, or `!=` if negated.
    Equality { negated: bool },
    /// `&&`
    And,
    /// `||`
    Or,
}

pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    let numbers = ScalarSet::numbers();
    let integers = ScalarSet::integers();
    let ordered = ScalarSet::of(|_| true);
    let prim = |op, operands| Some(Builtin::Prim { op, operands, swapped: false });
    match name {
        "+" => prim(Op::Add, numbers),
        "-" => prim(Op::Sub, numbers),
        "*" => prim(Op::Mul, numbers),
        "/" => prim(Op::Div, numbers),
        "%" => prim(Op::Mod, numbers),
        "**" => prim(Op::Pow, numbers),
        "//" => prim(Op::Quot, integers),
        "%%" => prim(Op::Rem, integers),
        "&" => prim(Op::And, integers),
        "|" => prim(Op::Or, integers),
        "^" => prim(Op::Xor, integers),
        "<<" => prim(Op::Shl, integers),
        ">>" => prim(Op::Shr, integers),
        "<" => prim(Op::Lt, ordered),
        "<=" => prim(Op::Le, ordered),
        ">" => Some(Builtin::Prim { op: Op::Lt, operands: ordered, swapped: true }),
        ">=" => Some(Builtin::Prim { op: Op::Le, operands: ordered, swapped: true }),
        "==" => Some(Builtin::Equality { negated: false }),
        "!=" => Some(Builtin::Equality { negated: true }),
        "&&" => Some(Builtin::And),
        "||" => Some(Builtin::Or),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// What an operator name means here: a user's function, or something built in.
    fn operator_function(&mut self, op: &ast::Operator) -> Exp {
        self.name(&op.name)
    }

    pub(crate) fn is_builtin(&self, op: &ast::Operator) -> bool {
        let text = &op.name.name.text;
        op.name.qualifiers.is_empty() && self.local(text).is_none() && !self.is_users(text)
    }

    pub(crate) fn binary(&mut self, op: &ast::Operator, a: &ast::Expr, b: &ast::Expr, span: Span) -> Exp {
        let text = op.name.name.text.as_str();
        if self.is_builtin(op) {
            if let Some(built) = builtin(text) {
                let a = self.infer(a);
                let b = self.infer(b);
                return self.builtin_call(&built, text, None, a, b, span);
            }
            if text == "|>" || text == "<|" {
                let (x, y) = (self.infer(a), self.infer(b));
                let (f, x) = if text == "|>" { (y, x) } else { (x, y) };
                return self.apply(f, vec![x], span);
            }
        }
        let f = self.operator_function(op);
        let arguments = vec![self.infer(a), self.infer(b)];
        self.apply(f, arguments, span)
    }

    fn builtin_call(
        &mut self,
        built: &Builtin,
        name: &str,
        at: Option<Type>,
        a: Exp,
        b: Exp,
        span: Span,
    ) -> Exp {
        let boolean = Type::Scalar(Scalar::Bool);
        match built {
            Builtin::And | Builtin::Or => {
                self.expect(&boolean, &a.ty, a.span, &format!("the left operand of {name}"));
                self.expect(&boolean, &b.ty, b.span, &format!("the right operand of {name}"));
                let literal = |v: bool| {
                    Box::new(Checker::exp(
                        ExpKind::Literal(ScalarValue::Bool(v)),
                        Type::Scalar(Scalar::Bool),
                        span,
                    ))
                };
                let kind = match built {
                    Builtin::And => ExpKind::If(Box::new(a), Box::new(b), literal(false)),
                    _ => ExpKind::If(Box::new(a), literal(true), Box::new(b)),
                };
                Checker::exp(kind, boolean, span)
            }
            Builtin::Prim { op, operands, swapped } => {
                let kind = Kind::Scalar(*operands);
                let operand = self.operands(kind, at, &a, &b, name, span);
                let result = if matches!(op, Op::Lt | Op::Le) { boolean } else { operand.clone() };
                let f = operator(*op, operand, result.clone(), span);
                let arguments = if *swapped { vec![b, a] } else { vec![a, b] };
                Checker::exp(ExpKind::Apply(Box::new(f), arguments), result, span)
            }
            Builtin::Equality { negated } => {
                let operand = self.operands(Kind::Equality, at, &a, &b, name, span);
                let f = operator(Op::Eq, operand, boolean.clone(), span);
                let equal = Checker::exp(ExpKind::Apply(Box::new(f), vec![a, b]), boolean.clone(), span);
                if !negated {
                    return equal;
                }
                let not = prim_value(Prim::Op(Op::Not, Scalar::Bool), span);
                Checker::exp(ExpKind::Apply(Box::new(not), vec![equal]), boolean, span)
            }
        }
    }

    /// The common type of two operands.
    fn operands(&mut self, kind: Kind, at: Option<Type>, a: &Exp, b: &Exp, name: &str, span: Span) -> Type {
        let operand = match at {
            Some(t) => t,
            None => self.of_kind(kind.clone(), span),
        };
        let left = self.operand(&kind, &operand, a, &format!("the left operand of {name}"));
        if !left {
            return Type::Error;
        }
        match self.metas.unify(&operand, &b.ty, false) {
            Ok(()) => operand,
            Err(m) => {
                // When both operands are wrong for the operator, the common type is not what matters.
                if let (Err(Mismatch::Kind(words, ty)), true) =
                    (self.metas.require(&kind, &b.ty, false), true)
                {
                    let (ty, words) = (self.show(&ty), words.to_string());
                    self.error(
                        Code::TypeMismatch,
                        b.span,
                        format!("the right operand of {name} has type {ty}, which is not {words}"),
                    )
                    .hints
                    .push(elementwise_hint(&ty, name));
                } else {
                    self.mismatch(m, &operand, &b.ty, b.span, &format!("the right operand of {name}"));
                }
                Type::Error
            }
        }
    }

    fn operand(&mut self, kind: &Kind, operand: &Type, e: &Exp, what: &str) -> bool {
        if let Err(Mismatch::Kind(words, ty)) = self.metas.require(kind, &e.ty, false) {
            let ty = self.show(&ty);
            let name = what.rsplit(' ').next().unwrap_or("").to_string();
            self.error(Code::TypeMismatch, e.span, format!("{what} has type {ty}, which is not {words}"))
                .hints
                .push(elementwise_hint(&ty, &name));
            return false;
        }
        self.expect(operand, &e.ty, e.span, what)
    }

    /// An operator as a function value.
    pub(crate) fn operator_value(&mut self, name: &str, at: Option<Type>, span: Span) -> Exp {
        let Some(built) = builtin(name) else { return Checker::error_exp(span) };
        let boolean = Type::Scalar(Scalar::Bool);
        let operand = match (&built, at) {
            (Builtin::And | Builtin::Or, _) => boolean.clone(),
            (Builtin::Prim { operands, .. }, Some(t)) => {
                let kind = Kind::Scalar(*operands);
                if let Err(Mismatch::Kind(words, ty)) = self.metas.require(&kind, &t, false) {
                    let ty = self.show(&ty);
                    self.error(
                        Code::UnknownName,
                        span,
                        format!("the module {ty} has no {name}: {ty} is not {words}"),
                    )
                    .hints
                    .push("use the operator of another module".into());
                }
                t
            }
            (Builtin::Equality { .. }, Some(t)) => t,
            (Builtin::Prim { operands, .. }, None) => self.of_kind(Kind::Scalar(*operands), span),
            (Builtin::Equality { .. }, None) => self.of_kind(Kind::Equality, span),
        };
        if let Builtin::Prim { op, swapped: false, .. } = built {
            let result = if matches!(op, Op::Lt | Op::Le) { boolean } else { operand.clone() };
            return operator(op, operand, result, span);
        }
        if let Builtin::Equality { negated: false } = built {
            return operator(Op::Eq, operand, boolean, span);
        }
        let x = self.fresh_pattern("x", operand.clone(), span);
        let y = self.fresh_pattern("y", operand.clone(), span);
        let (a, b) = (self.var_exp(&x), self.var_exp(&y));
        let body = self.builtin_call(&built, name, Some(operand.clone()), a, b, span);
        let ty = Type::fun(operand.clone(), Type::fun(operand, body.ty.clone()));
        Checker::exp(ExpKind::Lambda(vec![x, y], Box::new(body)), ty, span)
    }

    pub(crate) fn negate(&mut self, x: &ast::Expr, span: Span) -> Exp {
        if let ast::ExprKind::Literal(literal @ (ast::Literal::Int(..) | ast::Literal::Float(..))) = &x.kind {
            return self.literal(literal, true, span);
        }
        let x = self.infer(x);
        self.unary(Op::Neg, ScalarSet::numbers(), x, "the operand of -", span)
    }

    pub(crate) fn not(&mut self, x: &ast::Expr, span: Span) -> Exp {
        let x = self.infer(x);
        self.unary(Op::Not, ScalarSet::with_negation(), x, "the operand of !", span)
    }

    fn unary(&mut self, op: Op, set: ScalarSet, x: Exp, what: &str, span: Span) -> Exp {
        let kind = Kind::Scalar(set);
        let operand = self.of_kind(kind.clone(), span);
        if !self.operand(&kind, &operand, &x, what) {
            return Checker::error_exp(span);
        }
        let ty = Type::fun(operand.clone(), operand.clone());
        let f = ExpKind::Intrinsic(Intrinsic::Prim(Prim::Op(op, Scalar::Bool)), vec![operand.clone()]);
        let f = Checker::exp(f, ty, span);
        Checker::exp(ExpKind::Apply(Box::new(f), vec![x]), operand, span)
    }

    pub(crate) fn left_section(&mut self, x: &ast::Expr, op: &ast::Operator, span: Span) -> Exp {
        let f = self.section_operator(op);
        let x = self.infer(x);
        self.apply(f, vec![x], span)
    }

    /// `(op x)` is `let y = x in \z -> z op y`.
    pub(crate) fn right_section(&mut self, op: &ast::Operator, x: &ast::Expr, span: Span) -> Exp {
        let f = self.section_operator(op);
        let x = self.infer(x);
        let y = self.fresh_pattern("y", x.ty.clone(), x.span);
        let ty = self.metas.any(span);
        let z = self.fresh_pattern("z", ty.clone(), span);
        let (first, second) = (self.var_exp(&z), self.var_exp(&y));
        let body = self.apply(f, vec![first, second], span);
        let ty = Type::fun(ty, body.ty.clone());
        let function = Checker::exp(ExpKind::Lambda(vec![z], Box::new(body)), ty.clone(), span);
        let binding = Binding::Value(Let { pattern: y, value: x, sizes: vec![] });
        Checker::exp(ExpKind::Let(vec![binding], Box::new(function)), ty, span)
    }

    fn section_operator(&mut self, op: &ast::Operator) -> Exp {
        let text = op.name.name.text.as_str();
        if self.is_builtin(op) && builtin(text).is_some() {
            return self.operator_value(text, None, op.name.span);
        }
        self.operator_function(op)
    }
}

/// A primitive as a function value.
pub(crate) fn prim_value(prim: Prim, span: Span) -> Exp {
    let (operand, arity) = match prim {
        Prim::Convert(from, _) => (from, 1),
        Prim::Op(op, s) => (s, arity(op)),
    };
    let mut ty = Type::Scalar(prim.result());
    for _ in 0..arity {
        ty = Type::Fun(None, Arc::new(Type::Scalar(operand)), Arc::new(ty));
    }
    Exp { kind: ExpKind::Intrinsic(Intrinsic::Prim(prim), vec![]), ty, span }
}

fn arity(op: Op) -> usize {
    match op {
        Op::Neg
        | Op::Abs
        | Op::Sgn
        | Op::Sqrt
        | Op::Cbrt
        | Op::Exp
        | Op::Expm1
        | Op::Log
        | Op::Log2
        | Op::Log10
        | Op::Log1p
        | Op::Sin
        | Op::Cos
        | Op::Tan
        | Op::Asin
        | Op::Acos
        | Op::Atan
        | Op::Sinh
        | Op::Cosh
        | Op::Tanh
        | Op::Asinh
        | Op::Acosh
        | Op::Atanh
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::Erf
        | Op::Erfc
        | Op::Lgamma
        | Op::Gamma
        | Op::Digamma
        | Op::IsNan
        | Op::IsInf
        | Op::Not => 1,
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::Mod
        | Op::Quot
        | Op::Rem
        | Op::Pow
        | Op::Min
        | Op::Max
        | Op::MinFirst
        | Op::MaxFirst
        | Op::StrongMul
        | Op::MutualMul
        | Op::Atan2
        | Op::Hypot
        | Op::Polygamma
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Shr
        | Op::Eq
        | Op::Ne
        | Op::Lt
        | Op::Le => 2,
        Op::Select => 3,
    }
}

/// An operator whose scalar type is decided later.
fn operator(op: Op, operand: Type, result: Type, span: Span) -> Exp {
    let ty = Type::fun(operand.clone(), Type::fun(operand.clone(), result));
    let kind = ExpKind::Intrinsic(Intrinsic::Prim(Prim::Op(op, Scalar::Bool)), vec![operand]);
    Exp { kind, ty, span }
}

fn elementwise_hint(ty: &str, name: &str) -> String {
    if ty.starts_with('[') {
        format!("operators work on single numbers: use `map2 ({name}) xs ys` for arrays")
    } else {
        "check the types of both operands".into()
    }
}
