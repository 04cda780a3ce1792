//! Patterns.

use super::Parser;
use crate::ast::{Literal, Pattern, PatternKind};
use crate::lexer::TokenKind;

const HINT: &str = "a pattern is a name, `_`, `(p, q)`, `{field = p}`, `#tag p`, or a literal";

impl Parser<'_> {
    /// A pattern with optional type, as after `let`.
    pub(super) fn pattern(&mut self) -> Pattern {
        self.pattern_with(true)
    }

    /// A pattern of a `case`: its type ends before `->`.
    pub(super) fn case_pattern(&mut self) -> Pattern {
        self.pattern_with(false)
    }

    fn pattern_with(&mut self, function_types: bool) -> Pattern {
        let start = self.span();
        if !self.enter_type() {
            self.leave_type();
            return Pattern::new(PatternKind::Error, start);
        }
        let result = if *self.peek() == TokenKind::AttributeOpen {
            let attribute = self.attribute();
            let inner = self.pattern_with(function_types);
            self.make_pattern(PatternKind::Attributed(attribute, Box::new(inner)), self.since(start))
        } else {
            let inner = self.pattern_application();
            if self.eat(&TokenKind::Colon) {
                let of = if function_types { self.type_expr() } else { self.type_term() };
                self.make_pattern(PatternKind::Ascription(Box::new(inner), of), self.since(start))
            } else {
                inner
            }
        };
        self.leave_type();
        result
    }

    /// `#tag p q`, or an atom.
    fn pattern_application(&mut self) -> Pattern {
        if *self.peek() != TokenKind::Constructor {
            return self.pattern_atom();
        }
        let start = self.span();
        let name = self.constructor_name();
        let mut parts = Vec::new();
        while self.starts_pattern_atom() {
            parts.push(self.pattern_atom());
        }
        self.make_pattern(PatternKind::Constructor(name, parts), self.since(start))
    }

    pub(super) fn starts_pattern_atom(&self) -> bool {
        match self.peek() {
            TokenKind::Ident
            | TokenKind::Constructor
            | TokenKind::LeftParen
            | TokenKind::LeftBrace
            | TokenKind::Int(..)
            | TokenKind::Float(..)
            | TokenKind::Char(_)
            | TokenKind::True
            | TokenKind::False => true,
            TokenKind::Operator => self.text_at(0) == "-",
            _ => false,
        }
    }

    fn pattern_literal(&mut self) -> Option<Literal> {
        let literal = match *self.peek() {
            TokenKind::Int(value, suffix) => Literal::Int(value, suffix),
            TokenKind::Float(value, suffix) => Literal::Float(value, suffix),
            TokenKind::Char(value) => Literal::Char(value),
            TokenKind::True => Literal::Bool(true),
            TokenKind::False => Literal::Bool(false),
            _ => return None,
        };
        self.advance();
        Some(literal)
    }

    /// A pattern that may follow another without brackets.
    pub(super) fn pattern_atom(&mut self) -> Pattern {
        let start = self.span();
        if let Some(literal) = self.pattern_literal() {
            return self.make_pattern(PatternKind::Literal(literal), start);
        }
        if let Some(name) = self.parenthesised_operator() {
            return self.make_pattern(PatternKind::Name(name), self.since(start));
        }
        match self.peek() {
            TokenKind::Ident => {
                let name = self.take_name();
                let kind =
                    if name.text.as_str() == "_" { PatternKind::Wildcard } else { PatternKind::Name(name) };
                self.make_pattern(kind, start)
            }
            TokenKind::Constructor => {
                let name = self.constructor_name();
                self.make_pattern(PatternKind::Constructor(name, Vec::new()), start)
            }
            TokenKind::Operator if self.text_at(0) == "-" => {
                self.advance();
                match self.pattern_literal() {
                    Some(literal @ (Literal::Int(..) | Literal::Float(..))) => {
                        self.make_pattern(PatternKind::NegatedLiteral(literal), self.since(start))
                    }
                    _ => {
                        self.unexpected("a number after `-`", HINT);
                        Pattern::new(PatternKind::Error, start)
                    }
                }
            }
            TokenKind::LeftParen => self.pattern_tuple(),
            TokenKind::LeftBrace => self.pattern_record(),
            _ => {
                self.unexpected("a pattern", HINT);
                Pattern::new(PatternKind::Error, start)
            }
        }
    }

    fn pattern_tuple(&mut self) -> Pattern {
        let open = self.span();
        self.advance();
        if self.eat(&TokenKind::RightParen) {
            return self.make_pattern(PatternKind::Tuple(Vec::new()), self.since(open));
        }
        let first = self.pattern();
        if *self.peek() != TokenKind::Comma {
            self.close(&TokenKind::RightParen, ")", open);
            return first;
        }
        let mut parts = vec![first];
        while self.eat(&TokenKind::Comma) {
            parts.push(self.pattern());
        }
        self.close(&TokenKind::RightParen, ")", open);
        self.make_pattern(PatternKind::Tuple(parts), self.since(open))
    }

    fn pattern_record(&mut self) -> Pattern {
        let open = self.span();
        self.advance();
        let mut fields = Vec::new();
        while !self.gave_up && *self.peek() != TokenKind::RightBrace {
            let name = self.field_name();
            let field_start = name.span;
            let inner = if self.eat(&TokenKind::Equals) {
                Some(self.pattern())
            } else if self.eat(&TokenKind::Colon) {
                // `{x: t}` binds `x` and gives its type.
                let of = self.type_expr();
                let variable = Pattern::new(PatternKind::Name(name.clone()), field_start);
                let kind = PatternKind::Ascription(Box::new(variable), of);
                Some(self.make_pattern(kind, self.since(field_start)))
            } else {
                None
            };
            fields.push((name, inner));
            if !self.eat(&TokenKind::Comma) {
                break;
            }
        }
        self.close(&TokenKind::RightBrace, "}", open);
        self.make_pattern(PatternKind::Record(fields), self.since(open))
    }
}
