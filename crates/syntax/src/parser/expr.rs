//! Expressions.
//!
//! Levels, from loosest to tightest: `:` and `:>`; ranges; infix operators by [`precedence`]; prefix `-` and `!`;
//! application; `.field` and `[index]`.

use super::Parser;
use crate::ast::{
    Case, DimIndex, Expr, ExprKind, FieldExpr, LetBinding, LetKind, Literal, LoopForm, Operator, QualName,
    RangeEnd, Type, is_scalar_module,
};
use crate::lexer::{Keyword, TokenKind};
use pullback_base::Span;

const QUOTED: u32 = 1;
const WITH: u32 = 2;
const PIPE_RIGHT: u32 = 3;
const PIPE_LEFT: u32 = 4;
const HINT: &str = "an expression is a name, a literal, an application `f x`, `(...)`, `[...]`, `{...}`, `let`, `if`, `match`, `loop`, `\\x -> ...`";

/// How tightly an operator binds: that of the longest built-in operator it begins with, as in Futhark.
fn precedence(operator: &str) -> u32 {
    match operator.get(..2).unwrap_or("") {
        "|>" => return PIPE_RIGHT,
        "<|" => return PIPE_LEFT,
        "||" => return 5,
        "&&" => return 6,
        "<=" | ">=" | "==" | "!=" => return 7,
        "<<" | ">>" => return 9,
        "//" | "%%" => return 11,
        "**" => return 12,
        _ => {}
    }
    match operator.as_bytes().first() {
        Some(b'<' | b'>' | b'!' | b'=') => 7,
        Some(b'&' | b'^' | b'|') => 8,
        Some(b'+' | b'-') => 10,
        _ => 11,
    }
}

impl Parser<'_> {
    fn error_expr(&self) -> Expr {
        Expr::new(ExprKind::Error, self.span())
    }

    /// Any expression.
    pub(super) fn expr(&mut self) -> Expr {
        if !self.enter() {
            self.leave();
            return self.error_expr();
        }
        let start = self.span();
        let mut result = self.with_stack(Self::range);
        loop {
            if self.eat(&TokenKind::Colon) {
                let of = self.type_expr();
                result = self.make(ExprKind::Ascription(Box::new(result), of), self.since(start));
            } else if self.eat(&TokenKind::ColonGreater) {
                let of = self.type_expr();
                result = self.make(ExprKind::Coercion(Box::new(result), of), self.since(start));
            } else {
                break;
            }
        }
        self.leave();
        result
    }

    /// An expression that a colon ends: in slices and sizes.
    pub(super) fn expr_without_ascription(&mut self) -> Expr {
        if !self.enter() {
            self.leave();
            return self.error_expr();
        }
        let result = self.with_stack(Self::range);
        self.leave();
        result
    }

    fn boxed_expr(&mut self) -> Box<Expr> {
        Box::new(self.expr())
    }

    fn range_end(&mut self) -> Option<RangeEnd> {
        let kind = match self.peek() {
            TokenKind::Ellipsis => RangeEnd::Inclusive,
            TokenKind::UpTo => RangeEnd::UpToExclusive,
            TokenKind::DownTo => RangeEnd::DownToExclusive,
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    fn range(&mut self) -> Expr {
        let start_span = self.span();
        let start = self.infix(QUOTED);
        let second = if self.eat(&TokenKind::DotDot) { Some(Box::new(self.infix(QUOTED))) } else { None };
        let Some(kind) = self.range_end() else {
            if second.is_some() {
                self.unexpected(
                    "`...`, `..<` or `..>`",
                    "a range with a step is `first..second...last`, `first..second..<end` or `first..second..>end`",
                );
            }
            return start;
        };
        let end = Box::new(self.infix(QUOTED));
        self.make(ExprKind::Range { start: Box::new(start), second, end, kind }, self.since(start_span))
    }

    /// The infix operator at the next token and how tightly it binds.
    fn infix_operator(&self) -> Option<u32> {
        match self.peek() {
            // `(x +)` ends here: a section.
            TokenKind::Operator if *self.peek_at(1) == TokenKind::RightParen => None,
            TokenKind::Operator => Some(precedence(self.text_at(0))),
            TokenKind::Backquote if self.quoted_section_ends_at(1) => None,
            TokenKind::Backquote => Some(QUOTED),
            TokenKind::Keyword(Keyword::With) => Some(WITH),
            _ => None,
        }
    }

    /// Whether the tokens from a distance on are ``name` )``.
    fn quoted_section_ends_at(&self, ahead: usize) -> bool {
        let mut at = ahead;
        while *self.peek_at(at) == TokenKind::Ident && *self.peek_at(at + 1) == TokenKind::Dot {
            at += 2;
        }
        *self.peek_at(at) == TokenKind::Ident
            && *self.peek_at(at + 1) == TokenKind::Backquote
            && *self.peek_at(at + 2) == TokenKind::RightParen
    }

    fn operator(&mut self) -> Operator {
        if *self.peek() == TokenKind::Operator {
            return Operator { name: Self::plain(self.take_name()), quoted: false };
        }
        self.advance();
        let name = self.qualified_name();
        self.expect(
            &TokenKind::Backquote,
            "a back-quote",
            "a function used as an operator stands between back-quotes",
        );
        Operator { name, quoted: true }
    }

    fn qualified_name(&mut self) -> QualName {
        let hint = "a qualified name is `module.name`";
        let first = self.name("a name", hint);
        if !is_scalar_module(first.text.as_str())
            || *self.peek() != TokenKind::Dot
            || !matches!(self.peek_at(1), TokenKind::Ident | TokenKind::Keyword(_))
        {
            return Self::plain(first);
        }
        self.advance();
        let name = self.take_name();
        let span = first.span.to(name.span);
        QualName { qualifiers: vec![first], name, span }
    }

    /// Operands and infix operators that bind at least as tightly as `least`.
    fn infix(&mut self, least: u32) -> Expr {
        let start = self.span();
        let mut left = self.prefix();
        while let Some(level) = self.infix_operator() {
            if level < least {
                break;
            }
            left = if level == WITH {
                self.update(left, start)
            } else {
                let operator = self.operator();
                let right = if level == PIPE_LEFT {
                    let deep_enough = self.enter();
                    let right =
                        if deep_enough { self.with_stack(|p| p.infix(level)) } else { self.error_expr() };
                    self.leave();
                    right
                } else {
                    self.infix(level + 1)
                };
                let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
                self.make(kind, self.since(start))
            };
        }
        left
    }

    /// `with [i] = v` or `with x.y = v` after `left`.
    fn update(&mut self, left: Expr, start: Span) -> Expr {
        self.advance();
        let hint = "an update is `array with [i] = value` or `record with field = value`";
        if *self.peek() == TokenKind::LeftBracket {
            let indices = self.indices();
            self.expect(&TokenKind::Equals, "`=`", hint);
            let value = Box::new(self.infix(WITH + 1));
            return self.make(ExprKind::UpdateIndex(Box::new(left), indices, value), self.since(start));
        }
        let mut path = vec![self.field_name()];
        while self.eat(&TokenKind::Dot) {
            path.push(self.field_name());
        }
        self.expect(&TokenKind::Equals, "`=`", hint);
        let value = Box::new(self.infix(WITH + 1));
        self.make(ExprKind::UpdateField(Box::new(left), path, value), self.since(start))
    }

    fn prefix(&mut self) -> Expr {
        let start = self.span();
        match self.peek() {
            TokenKind::Operator if matches!(self.text_at(0), "-" | "!") => {
                let negate = self.text_at(0) == "-";
                self.advance();
                let inner =
                    Box::new(if self.enter() { self.with_stack(Self::prefix) } else { self.error_expr() });
                self.leave();
                let kind = if negate { ExprKind::Negate(inner) } else { ExprKind::Not(inner) };
                self.make(kind, self.since(start))
            }
            TokenKind::Backslash => self.lambda(),
            TokenKind::AttributeOpen => {
                let attribute = self.attribute();
                let inner = self.boxed_expr();
                self.make(ExprKind::Attributed(attribute, inner), self.since(start))
            }
            TokenKind::Keyword(Keyword::Let) => self.let_chain(),
            TokenKind::Keyword(Keyword::If) => self.conditional(),
            TokenKind::Keyword(Keyword::Match) => self.match_expr(),
            TokenKind::Keyword(Keyword::Loop) => self.loop_expr(),
            TokenKind::Keyword(Keyword::Assert) => {
                self.advance();
                let condition = Box::new(self.atom_or_error());
                let inner = Box::new(self.atom_or_error());
                self.make(ExprKind::Assert(condition, inner), self.since(start))
            }
            _ => self.application(),
        }
    }

    fn lambda(&mut self) -> Expr {
        let start = self.span();
        self.advance();
        let mut params = Vec::new();
        self.params(&mut params);
        if params.is_empty() {
            self.unexpected("a parameter", "a lambda is `\\x y -> expression`");
        }
        let return_type = if self.eat(&TokenKind::Colon) { Some(self.type_term()) } else { None };
        self.expect(&TokenKind::Arrow, "`->`", "a lambda is `\\x y -> expression`");
        let body = self.boxed_expr();
        self.make(ExprKind::Lambda { params, return_type, body }, self.since(start))
    }

    /// `if c then a else if ..`: a chain of any length takes no stack.
    fn conditional(&mut self) -> Expr {
        let hint = "a conditional is `if condition then a else b`; both branches are needed";
        let mut cases = Vec::new();
        while self.at_keyword(Keyword::If) && !self.gave_up {
            let start = self.span();
            self.advance();
            let condition = self.boxed_expr();
            self.expect(&TokenKind::Keyword(Keyword::Then), "`then`", hint);
            let yes = self.boxed_expr();
            self.expect(&TokenKind::Keyword(Keyword::Else), "`else`", hint);
            cases.push((start, condition, yes));
        }
        let last = self.expr();
        let make = |no, (start, condition, yes)| {
            let span = self.since(start);
            self.make(ExprKind::If(condition, yes, Box::new(no)), span)
        };
        cases.into_iter().rev().fold(last, make)
    }

    fn match_expr(&mut self) -> Expr {
        let start = self.span();
        let hint = "a match is `match e case pattern -> result case ...`";
        self.advance();
        let scrutinee = self.boxed_expr();
        let mut cases = Vec::new();
        while self.at_keyword(Keyword::Case) {
            let case_start = self.span();
            self.advance();
            let pattern = self.case_pattern();
            self.expect(&TokenKind::Arrow, "`->`", hint);
            let body = self.expr();
            cases.push(Case { pattern, body, span: self.since(case_start) });
        }
        if cases.is_empty() {
            self.unexpected("`case`", hint);
        }
        self.make(ExprKind::Match(scrutinee, cases), self.since(start))
    }

    fn loop_expr(&mut self) -> Expr {
        let start = self.span();
        let hint = "a loop is `loop state = start for i < n do next`, `... for x in xs do ...` or `... while c do ...`";
        self.advance();
        let sizes = self.size_binders();
        let pattern = Box::new(self.pattern());
        let initial = if self.eat(&TokenKind::Equals) { Some(self.boxed_expr()) } else { None };
        let form = if self.eat(&TokenKind::Keyword(Keyword::While)) {
            LoopForm::While(self.boxed_expr())
        } else {
            self.expect(&TokenKind::Keyword(Keyword::For), "`for` or `while`", hint);
            if *self.peek() == TokenKind::Ident && *self.peek_at(1) == TokenKind::Operator {
                let name = self.take_name();
                if !self.at_operator("<") {
                    self.unexpected("`<`", hint);
                }
                self.advance();
                LoopForm::For(name, self.boxed_expr())
            } else {
                let element = self.pattern();
                self.expect(&TokenKind::Keyword(Keyword::In), "`in` or `<`", hint);
                LoopForm::ForIn(element, self.boxed_expr())
            }
        };
        self.expect(&TokenKind::Keyword(Keyword::Do), "`do`", hint);
        let body = self.boxed_expr();
        self.make(ExprKind::Loop { sizes, pattern, initial, form, body }, self.since(start))
    }

    fn let_chain(&mut self) -> Expr {
        let start = self.span();
        let mut bindings = Vec::new();
        while self.at_keyword(Keyword::Let) {
            bindings.push(self.let_binding());
            self.eat(&TokenKind::Keyword(Keyword::In));
        }
        if !self.gave_up && !self.after_in() {
            self.unexpected("`in` or another `let`", "a chain of `let` bindings ends with `in result`");
        }
        let body = self.boxed_expr();
        self.make(ExprKind::Let(bindings, body), self.since(start))
    }

    fn after_in(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].kind == TokenKind::Keyword(Keyword::In)
    }

    fn let_binding(&mut self) -> LetBinding {
        let start = self.span();
        self.advance();
        let hint = "a binding is `let pattern = value` or `let f x y = value`";
        let sizes = self.size_binders();
        let operator = if sizes.is_empty() { self.parenthesised_operator() } else { None };
        let named = sizes.is_empty() && *self.peek() == TokenKind::Ident && self.text_at(0) != "_";
        let kind = if let Some(name) = operator {
            self.local_function(name)
        } else if named && *self.peek_at(1) == TokenKind::LeftBracket && self.adjacent(1) {
            let name = self.take_name();
            let indices = self.indices();
            self.expect(
                &TokenKind::Equals,
                "`=`",
                "an update is `let a[i] = value`; a size parameter needs a space before it",
            );
            LetKind::Update { name, indices, value: self.expr() }
        } else if named && !matches!(self.peek_at(1), TokenKind::Equals | TokenKind::Colon) {
            let name = self.take_name();
            self.local_function(name)
        } else {
            let pattern = self.pattern();
            self.expect(&TokenKind::Equals, "`=`", hint);
            LetKind::Pattern { sizes, pattern, value: self.expr() }
        };
        LetBinding { kind, span: self.since(start) }
    }

    fn local_function(&mut self, name: crate::ast::Name) -> LetKind {
        let type_params = self.type_params();
        let mut params = Vec::new();
        self.params(&mut params);
        if params.is_empty() {
            self.unexpected(
                "`=` or a parameter",
                "a binding is `let pattern = value` or `let f x y = value`",
            );
        }
        let return_type: Option<Type> =
            if self.eat(&TokenKind::Colon) { Some(self.type_expr()) } else { None };
        self.expect(&TokenKind::Equals, "`=`", "a local function is `let f x y = value`");
        LetKind::Function { name, type_params, params, return_type, body: self.expr() }
    }

    // ---- application and atoms

    fn starts_atom(&self) -> bool {
        matches!(
            self.peek(),
            TokenKind::Ident
                | TokenKind::True
                | TokenKind::False
                | TokenKind::Int(..)
                | TokenKind::Float(..)
                | TokenKind::Char(_)
                | TokenKind::String(_)
                | TokenKind::Constructor
                | TokenKind::LeftParen
                | TokenKind::LeftBracket
                | TokenKind::LeftBrace
        )
    }

    fn application(&mut self) -> Expr {
        let start = self.span();
        let function = self.atom_or_error();
        let mut arguments = Vec::new();
        while self.starts_atom() {
            arguments.push(self.postfix_atom());
        }
        if arguments.is_empty() {
            return function;
        }
        let is_bare_constructor = matches!(&function.kind, ExprKind::Constructor(_, parts) if parts.is_empty())
            && function.span.start == start.start;
        if is_bare_constructor && let ExprKind::Constructor(name, _) = &function.kind {
            return self.make(ExprKind::Constructor(name.clone(), arguments), self.since(start));
        }
        self.make(ExprKind::Apply(Box::new(function), arguments), self.since(start))
    }

    fn atom_or_error(&mut self) -> Expr {
        if self.starts_atom() {
            return self.postfix_atom();
        }
        self.unexpected("an expression", HINT);
        self.error_expr()
    }

    /// An atom with the projections and indices right after it.
    fn postfix_atom(&mut self) -> Expr {
        let start = self.span();
        let bare_constructor = *self.peek() == TokenKind::Constructor;
        let mut result = self.atom();
        if bare_constructor {
            return result;
        }
        loop {
            match self.peek() {
                TokenKind::LeftBracket if self.adjacent(0) => {
                    let indices = self.indices();
                    result = self.make(ExprKind::Index(Box::new(result), indices), self.since(start));
                }
                TokenKind::Dot if self.adjacent(0) && *self.peek_at(1) != TokenKind::LeftBracket => {
                    self.advance();
                    let field = self.field_name();
                    result = self.make(ExprKind::Project(Box::new(result), field), self.since(start));
                }
                _ => return result,
            }
        }
    }

    /// `[i, j:k]` with its brackets.
    fn indices(&mut self) -> Vec<DimIndex> {
        let open = self.span();
        self.advance();
        let mut indices = Vec::new();
        loop {
            indices.push(self.dim_index());
            if !self.eat(&TokenKind::Comma) {
                break;
            }
        }
        self.close(&TokenKind::RightBracket, "]", open);
        indices
    }

    fn dim_index(&mut self) -> DimIndex {
        let start = self.span();
        let ends = |p: &Self| {
            matches!(p.peek(), TokenKind::Colon | TokenKind::Comma | TokenKind::RightBracket | TokenKind::Eof)
        };
        let from = if *self.peek() == TokenKind::Colon { None } else { Some(self.expr_without_ascription()) };
        if *self.peek() != TokenKind::Colon
            && let Some(index) = from
        {
            return DimIndex::Fix(index);
        }
        self.eat(&TokenKind::Colon);
        let to = if ends(self) { None } else { Some(self.expr_without_ascription()) };
        let mut stride = None;
        if self.eat(&TokenKind::Colon) && !ends(self) {
            stride = Some(self.expr_without_ascription());
        }
        DimIndex::Slice { from, to, stride, span: self.since(start) }
    }

    fn atom(&mut self) -> Expr {
        let start = self.span();
        let literal = match self.peek() {
            TokenKind::Int(value, suffix) => Literal::Int(*value, *suffix),
            TokenKind::Float(value, suffix) => Literal::Float(*value, *suffix),
            TokenKind::Char(value) => Literal::Char(*value),
            TokenKind::String(value) => Literal::String(value.clone()),
            TokenKind::True => Literal::Bool(true),
            TokenKind::False => Literal::Bool(false),
            TokenKind::Ident => {
                let name = self.qualified_name();
                let span = name.span;
                if name.name.text.as_str() == "_" {
                    self.unexpected_wildcard(span);
                }
                return self.make(ExprKind::Var(name), span);
            }
            TokenKind::Constructor => {
                let name = self.constructor_name();
                return self.make(ExprKind::Constructor(name, Vec::new()), start);
            }
            TokenKind::LeftParen => return self.parenthesised(),
            TokenKind::LeftBracket => {
                self.advance();
                let mut elements = Vec::new();
                if *self.peek() != TokenKind::RightBracket {
                    elements.push(self.expr());
                    while self.eat(&TokenKind::Comma) {
                        elements.push(self.expr());
                    }
                }
                self.close(&TokenKind::RightBracket, "]", start);
                return self.make(ExprKind::Array(elements), self.since(start));
            }
            TokenKind::LeftBrace => return self.record(),
            _ => {
                self.unexpected("an expression", HINT);
                return self.error_expr();
            }
        };
        self.advance();
        self.make(ExprKind::Literal(literal), start)
    }

    fn unexpected_wildcard(&mut self, span: Span) {
        self.error(
            pullback_base::Code::Syntax,
            span,
            "`_` is no value",
            "`_` stands in patterns only; give the value a name",
        );
    }

    fn record(&mut self) -> Expr {
        let start = self.span();
        self.advance();
        let mut fields = Vec::new();
        while !self.gave_up && *self.peek() != TokenKind::RightBrace {
            let name = self.field_name();
            let value = if self.eat(&TokenKind::Equals) { Some(self.expr()) } else { None };
            fields.push(FieldExpr { name, value });
            if !self.eat(&TokenKind::Comma) {
                break;
            }
        }
        self.close(&TokenKind::RightBrace, "}", start);
        self.make(ExprKind::Record(fields), self.since(start))
    }

    /// `()`, `(e)`, `(a, b)`, operators in parentheses, and sections.
    fn parenthesised(&mut self) -> Expr {
        let start = self.span();
        if let Some(name) = self.parenthesised_operator() {
            let span = self.since(start);
            return self.make(ExprKind::Var(Self::plain(name)), span);
        }
        self.advance();
        match self.peek() {
            TokenKind::RightParen => {
                self.advance();
                self.make(ExprKind::Tuple(Vec::new()), self.since(start))
            }
            TokenKind::Dot => self.path_section(start),
            TokenKind::Operator if !matches!(self.text_at(0), "-" | "!") => self.right_section(start),
            TokenKind::Backquote => self.right_section(start),
            TokenKind::Ident
                if *self.peek_at(1) == TokenKind::Dot && *self.peek_at(2) == TokenKind::Operator =>
            {
                let module = self.take_name();
                self.advance();
                let name = self.take_name();
                self.close(&TokenKind::RightParen, ")", start);
                let span = self.since(start);
                self.make(ExprKind::Var(QualName { qualifiers: vec![module], name, span }), span)
            }
            _ => self.group(start),
        }
    }

    fn right_section(&mut self, open: Span) -> Expr {
        let operator = self.operator();
        if operator.quoted && self.eat(&TokenKind::RightParen) {
            return self.make(ExprKind::Var(operator.name), self.since(open));
        }
        let operand = Box::new(self.expr_without_ascription());
        self.close(&TokenKind::RightParen, ")", open);
        self.make(ExprKind::RightSection(operator, operand), self.since(open))
    }

    /// `.x.y)` or `.[i])`.
    fn path_section(&mut self, open: Span) -> Expr {
        let kind = if *self.peek_at(1) == TokenKind::LeftBracket {
            self.advance();
            ExprKind::IndexSection(self.indices())
        } else {
            let mut path = Vec::new();
            while self.eat(&TokenKind::Dot) {
                path.push(self.field_name());
            }
            ExprKind::ProjectSection(path)
        };
        self.close(&TokenKind::RightParen, ")", open);
        self.make(kind, self.since(open))
    }

    /// After `(`: an expression with what may follow it.
    fn group(&mut self, open: Span) -> Expr {
        let first = self.expr();
        match self.peek() {
            TokenKind::Comma => {
                let mut parts = vec![first];
                while self.eat(&TokenKind::Comma) {
                    parts.push(self.expr());
                }
                self.close(&TokenKind::RightParen, ")", open);
                self.make(ExprKind::Tuple(parts), self.since(open))
            }
            TokenKind::Operator | TokenKind::Backquote => {
                let operator = self.operator();
                self.close(&TokenKind::RightParen, ")", open);
                self.make(ExprKind::LeftSection(Box::new(first), operator), self.since(open))
            }
            _ => {
                self.close(&TokenKind::RightParen, ")", open);
                let mut inner = first;
                inner.span = self.since(open);
                inner
            }
        }
    }
}
