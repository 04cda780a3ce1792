//! Types.

use super::Parser;
use crate::ast::{ExprKind, Name, SizeExpr, Type, TypeArgument, TypeKind, is_scalar_module};
use crate::lexer::TokenKind;

const HINT: &str = "a type is a name, `[n]t`, `(a, b)`, `{x: a}`, `a -> b`, `#tag a | #other`, `*t`";

impl Parser<'_> {
    /// A type, functions included.
    pub(super) fn type_expr(&mut self) -> Type {
        let start = self.span();
        if !self.enter_type() {
            self.leave_type();
            return Type::new(TypeKind::Error, start);
        }
        let result = self.with_stack(Self::type_expr_inner);
        self.leave_type();
        result
    }

    fn type_expr_inner(&mut self) -> Type {
        let start = self.span();
        if self.eat(&TokenKind::Question) {
            let names = self.size_binders();
            if names.is_empty() {
                self.unexpected("`[n]` after `?`", "an existential size is written `?[n].[n]t`");
            }
            self.expect(&TokenKind::Dot, "`.`", "an existential size is written `?[n].[n]t`");
            let body = self.type_expr();
            return self.make_type(TypeKind::Exists(names, Box::new(body)), self.since(start));
        }
        let (param, from) = self.function_parameter();
        if !self.eat(&TokenKind::Arrow) {
            if param.is_some() {
                self.unexpected("`->`", "a named parameter belongs to a function type: `(x: a) -> b`");
            }
            return from;
        }
        let to = self.type_expr();
        let kind = TypeKind::Function { param, from: Box::new(from), to: Box::new(to) };
        self.make_type(kind, self.since(start))
    }

    /// What stands before `->`: `(x: a)` or a plain type.
    fn function_parameter(&mut self) -> (Option<Name>, Type) {
        let named = *self.peek() == TokenKind::LeftParen
            && *self.peek_at(1) == TokenKind::Ident
            && *self.peek_at(2) == TokenKind::Colon;
        if !named {
            return (None, self.type_term());
        }
        let open = self.span();
        self.advance();
        let name = self.take_name();
        self.advance();
        let from = self.type_expr();
        self.close(&TokenKind::RightParen, ")", open);
        (Some(name), from)
    }

    /// A type that is no function, unless in parentheses.
    pub(super) fn type_term(&mut self) -> Type {
        let start = self.span();
        if !self.enter_type() {
            self.leave_type();
            return Type::new(TypeKind::Error, start);
        }
        let result = match self.peek() {
            TokenKind::Operator if self.text_at(0) == "*" => {
                self.advance();
                let inner = self.type_term();
                self.make_type(TypeKind::Unique(Box::new(inner)), self.since(start))
            }
            TokenKind::LeftBracket => {
                let size = self.type_size();
                let element = self.type_term();
                self.make_type(TypeKind::Array(size, Box::new(element)), self.since(start))
            }
            TokenKind::Constructor => self.type_sum(),
            TokenKind::Ident => self.type_application(),
            _ => self.type_atom(),
        };
        self.leave_type();
        result
    }

    /// `[n]` or `[]`.
    fn type_size(&mut self) -> SizeExpr {
        let open = self.span();
        self.advance();
        if self.eat(&TokenKind::RightBracket) {
            return SizeExpr::Any(self.since(open));
        }
        let size = self.expr_without_ascription();
        self.close(&TokenKind::RightBracket, "]", open);
        if let ExprKind::Error = size.kind {
            return SizeExpr::Any(self.since(open));
        }
        SizeExpr::Exp(Box::new(size))
    }

    fn type_sum(&mut self) -> Type {
        let start = self.span();
        let mut tags = Vec::new();
        while *self.peek() == TokenKind::Constructor {
            let name = self.constructor_name();
            let mut payload = Vec::new();
            while self.starts_type_atom() {
                payload.push(self.sum_payload());
            }
            tags.push((name, payload));
            if !self.at_operator("|") {
                break;
            }
            self.advance();
            if *self.peek() != TokenKind::Constructor {
                self.unexpected("a constructor", "a sum type is `#tag a | #other b c`");
            }
        }
        self.make_type(TypeKind::Sum(tags), self.since(start))
    }

    /// A payload of a constructor: an atom, or an array of such.
    fn sum_payload(&mut self) -> Type {
        let start = self.span();
        if *self.peek() != TokenKind::LeftBracket {
            return self.type_atom();
        }
        if !self.enter_type() {
            self.leave_type();
            return Type::new(TypeKind::Error, start);
        }
        let size = self.type_size();
        let element = self.sum_payload();
        self.leave_type();
        self.make_type(TypeKind::Array(size, Box::new(element)), self.since(start))
    }

    fn starts_type_atom(&self) -> bool {
        matches!(
            self.peek(),
            TokenKind::Ident | TokenKind::LeftParen | TokenKind::LeftBrace | TokenKind::LeftBracket
        )
    }

    /// A named type with its arguments.
    fn type_application(&mut self) -> Type {
        let start = self.span();
        let name = self.take_name();
        let scalar = is_scalar_module(name.text.as_str());
        let name = Self::plain(name);
        let mut arguments = Vec::new();
        while !scalar && self.starts_type_atom() {
            arguments.push(if *self.peek() == TokenKind::LeftBracket {
                TypeArgument::Size(self.type_size())
            } else {
                TypeArgument::Type(self.type_atom())
            });
        }
        let kind =
            if arguments.is_empty() { TypeKind::Named(name) } else { TypeKind::Apply(name, arguments) };
        self.make_type(kind, self.since(start))
    }

    /// A name, or a type in brackets.
    fn type_atom(&mut self) -> Type {
        let start = self.span();
        match self.peek() {
            TokenKind::Ident => {
                let name = self.take_name();
                self.make_type(TypeKind::Named(Self::plain(name)), start)
            }
            TokenKind::LeftParen => {
                self.advance();
                if self.eat(&TokenKind::RightParen) {
                    return self.make_type(TypeKind::Tuple(Vec::new()), self.since(start));
                }
                let first = self.type_expr();
                if *self.peek() != TokenKind::Comma {
                    self.close(&TokenKind::RightParen, ")", start);
                    return first;
                }
                let mut parts = vec![first];
                while self.eat(&TokenKind::Comma) {
                    parts.push(self.type_expr());
                }
                self.close(&TokenKind::RightParen, ")", start);
                self.make_type(TypeKind::Tuple(parts), self.since(start))
            }
            TokenKind::LeftBrace => {
                self.advance();
                let mut fields = Vec::new();
                while !self.gave_up && *self.peek() != TokenKind::RightBrace {
                    let name = self.field_name();
                    self.expect(&TokenKind::Colon, "`:`", "a record type is `{name: type, ...}`");
                    fields.push((name, self.type_expr()));
                    if !self.eat(&TokenKind::Comma) {
                        break;
                    }
                }
                self.close(&TokenKind::RightBrace, "}", start);
                self.make_type(TypeKind::Record(fields), self.since(start))
            }
            _ => {
                self.unexpected("a type", HINT);
                Type::new(TypeKind::Error, start)
            }
        }
    }
}
