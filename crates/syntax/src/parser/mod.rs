//! Tokens to syntax tree: recursive descent, with operator precedence for infix expressions.
//!
//! Assumes nothing about the text. Guarantees: never fails or panics; a declaration with a mistake gives one
//! diagnostic and the parser goes on at the next declaration (a missing closing bracket before a word that cannot
//! stand in the bracket is reported and supplied); the depth of recursion is at most [`MAX_DEPTH`] and the height
//! of trees at most [`ast::MAX_HEIGHT`]. Time O(tokens).
//!
//! How recovery works: after the first mistake in a declaration the parser *gives up* on it; from then on it sees
//! the end of the file at every look, so that every function returns at once, until `Parser::resume`.

mod expr;
mod pattern;
mod types;

use crate::ast::{
    self, Attribute, AttributeArgument, Declaration, Expr, ExprKind, Import, Liftedness, Name, Pattern,
    PatternKind, Program, QualName, Type, TypeDeclaration, TypeKind, TypeParam, ValueDeclaration, ValueKind,
};
use crate::lexer::{Keyword, Token, TokenKind, lex};
use pullback_base::{Code, Diagnostic, FileId, Span, Symbol};

/// The greatest depth of nested brackets, conditionals, lambdas and so on.
pub const MAX_DEPTH: u32 = 10_000;
/// The greatest depth of nested types, patterns and attributes.
pub const MAX_TYPE_DEPTH: u32 = 256;

/// At most this many diagnostics are given for one text.
const MAX_DIAGNOSTICS: usize = 100;

/// Parses a source file. Never fails: what is wrong is in the diagnostics, and the declarations it concerns hold
/// `Error` nodes. The tree should be used further only if there are no diagnostics of severity error.
pub fn parse(file: FileId, text: &str) -> (Program, Vec<Diagnostic>) {
    if u32::try_from(text.len()).is_err() {
        let message = "a source file of more than 4 GiB cannot be read";
        let diagnostic = Diagnostic::global(Code::Lexical, message).hint("split the file");
        return (Program { imports: Vec::new(), declarations: Vec::new() }, vec![diagnostic]);
    }
    let (tokens, diagnostics) = lex(file, text);
    let mut parser =
        Parser { file, text, tokens, at: 0, depth: 0, type_depth: 0, gave_up: false, diagnostics };
    let program = parser.program();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|d| d.span.map_or(0, |s| s.start));
    diagnostics.truncate(MAX_DIAGNOSTICS);
    (program, diagnostics)
}

/// The state of the parser.
pub(crate) struct Parser<'a> {
    file: FileId,
    text: &'a str,
    /// Ends with `Eof`.
    tokens: Vec<Token>,
    /// The next token; always a valid position.
    at: usize,
    depth: u32,
    /// The same of types, patterns and attributes.
    type_depth: u32,
    gave_up: bool,
    diagnostics: Vec<Diagnostic>,
}

/// What a token is called in a message.
fn describe(kind: &TokenKind, text: &str) -> String {
    match kind {
        TokenKind::Eof => "the end of the file".to_string(),
        _ => {
            let shown: String = text.chars().take(30).collect();
            format!("`{shown}`")
        }
    }
}

impl<'a> Parser<'a> {
    // ---- tokens

    fn token(&self, ahead: usize) -> &Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn peek_at(&self, ahead: usize) -> &TokenKind {
        if self.gave_up { &TokenKind::Eof } else { &self.token(ahead).kind }
    }

    fn peek(&self) -> &TokenKind {
        self.peek_at(0)
    }

    fn text_at(&self, ahead: usize) -> &'a str {
        let token = self.token(ahead);
        &self.text[token.start..token.end]
    }

    fn span(&self) -> Span {
        let token = self.token(0);
        Span::new(self.file, token.start, token.end)
    }

    /// The end of the last token taken, as an empty span.
    fn last_span(&self) -> Span {
        let token = &self.tokens[self.at.saturating_sub(1)];
        Span::new(self.file, token.start, token.end)
    }

    /// From `start` to the end of the last token taken.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn advance(&mut self) {
        if !self.gave_up && self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn at_keyword(&self, keyword: Keyword) -> bool {
        *self.peek() == TokenKind::Keyword(keyword)
    }

    fn eat(&mut self, kind: &TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.advance();
        }
        found
    }

    fn at_operator(&self, text: &str) -> bool {
        *self.peek() == TokenKind::Operator && self.text_at(0) == text
    }

    /// Whether the token at a distance follows the one before it without a space.
    fn adjacent(&self, ahead: usize) -> bool {
        let position = self.at + ahead;
        position > 0
            && position < self.tokens.len()
            && self.tokens[position - 1].end == self.tokens[position].start
    }

    // ---- mistakes

    /// Reports a mistake and gives up on the declaration. The first one of a declaration counts.
    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        if !self.gave_up {
            self.diagnostics.push(Diagnostic::error(code, span, message).hint(hint));
            self.gave_up = true;
        }
    }

    fn unexpected(&mut self, wanted: &str, hint: &str) {
        let found = describe(&self.token(0).kind, self.text_at(0));
        let span = self.span();
        self.error(Code::Syntax, span, format!("expected {wanted}, found {found}"), hint);
    }

    fn expect(&mut self, kind: &TokenKind, wanted: &str, hint: &str) {
        if !self.eat(kind) {
            self.unexpected(wanted, hint);
        }
    }

    /// The bracket that closes one opened at `open`. A missing one is supplied where a word stands that can never
    /// stand inside brackets.
    fn close(&mut self, kind: &TokenKind, sign: &str, open: Span) {
        if self.eat(kind) || self.gave_up {
            return;
        }
        let found = describe(&self.token(0).kind, self.text_at(0));
        let diagnostic =
            Diagnostic::error(Code::Syntax, self.span(), format!("expected `{sign}`, found {found}"))
                .label(open, "the bracket opened here is not closed")
                .hint(format!("add `{sign}`, or an operator or comma if something is missing"));
        self.diagnostics.push(diagnostic);
        let supply = match self.peek() {
            TokenKind::Keyword(word) => !matches!(word, Keyword::If | Keyword::Loop | Keyword::Match),
            TokenKind::Eof => true,
            _ => self.at_declaration(),
        };
        if !supply {
            self.gave_up = true;
        }
    }

    /// One level deeper; `false` if that is too deep (reported).
    fn enter(&mut self) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.too_deep(self.span(), MAX_DEPTH);
        }
        !self.gave_up
    }

    /// The same in a type, a pattern or an attribute.
    fn enter_type(&mut self) -> bool {
        self.type_depth += 1;
        if self.type_depth > MAX_TYPE_DEPTH {
            self.too_deep(self.span(), MAX_TYPE_DEPTH);
        }
        !self.gave_up
    }

    /// Does work of one level with enough stack, whatever thread the caller is on: a level takes up to 16 KiB in
    /// unoptimised builds.
    fn with_stack<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        stacker::maybe_grow(128 << 10, 1 << 20, || work(self))
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn leave_type(&mut self) {
        self.type_depth -= 1;
    }

    fn too_deep(&mut self, span: Span, most: u32) {
        let message = format!("nested more than {most} levels deep");
        self.error(Code::TooDeep, span, message, "name inner parts with `let`, or split the function");
    }

    // ---- nodes

    fn make(&mut self, kind: ExprKind, span: Span) -> Expr {
        let node = Expr::new(kind, span);
        if node.height <= ast::MAX_HEIGHT {
            return node;
        }
        self.too_deep(span, ast::MAX_HEIGHT);
        Expr::new(ExprKind::Error, span)
    }

    fn make_type(&mut self, kind: TypeKind, span: Span) -> Type {
        let node = Type::new(kind, span);
        if node.height <= ast::MAX_TYPE_HEIGHT {
            return node;
        }
        self.too_deep(span, ast::MAX_TYPE_HEIGHT);
        Type::new(TypeKind::Error, span)
    }

    fn make_pattern(&mut self, kind: PatternKind, span: Span) -> Pattern {
        let node = Pattern::new(kind, span);
        if node.height <= ast::MAX_TYPE_HEIGHT {
            return node;
        }
        self.too_deep(span, ast::MAX_TYPE_HEIGHT);
        Pattern::new(PatternKind::Error, span)
    }

    // ---- names

    /// The current token as a name.
    fn take_name(&mut self) -> Name {
        let name = Name { text: Symbol::new(self.text_at(0)), span: self.span() };
        self.advance();
        name
    }

    fn name(&mut self, wanted: &str, hint: &str) -> Name {
        if *self.peek() == TokenKind::Ident && self.text_at(0) != "_" {
            return self.take_name();
        }
        self.unexpected(wanted, hint);
        Name { text: Symbol::new("_"), span: self.span() }
    }

    /// A field: a name or a number.
    fn field_name(&mut self) -> Name {
        if let TokenKind::Int(_, None) = self.peek() {
            return self.take_name();
        }
        self.name("the name of a field", "fields are names, or numbers for tuples: `r.x`, `p.0`")
    }

    fn plain(name: Name) -> QualName {
        let span = name.span;
        QualName { qualifiers: Vec::new(), name, span }
    }

    /// A constructor token as a name without `#`.
    fn constructor_name(&mut self) -> Name {
        let name = Name { text: Symbol::new(&self.text_at(0)[1..]), span: self.span() };
        self.advance();
        name
    }

    /// `[n]` in a list of parameters, a loop or a `let`: brackets around one plain name.
    fn at_size_binder(&self) -> bool {
        *self.peek() == TokenKind::LeftBracket
            && *self.peek_at(1) == TokenKind::Ident
            && *self.peek_at(2) == TokenKind::RightBracket
    }

    fn size_binders(&mut self) -> Vec<Name> {
        let mut names = Vec::new();
        while self.at_size_binder() {
            self.advance();
            names.push(self.take_name());
            self.advance();
        }
        names
    }

    // ---- declarations

    fn at_declaration(&self) -> bool {
        let token = self.token(0);
        match token.kind {
            TokenKind::Keyword(
                Keyword::Def | Keyword::Entry | Keyword::Type | Keyword::Module | Keyword::Import,
            )
            | TokenKind::Eof => true,
            TokenKind::Keyword(Keyword::Let) | TokenKind::AttributeOpen => token.at_line_start,
            _ => false,
        }
    }

    fn program(&mut self) -> Program {
        let (mut imports, mut declarations) = (Vec::new(), Vec::new());
        while self.at + 1 < self.tokens.len() {
            let start = self.at;
            if *self.peek() == TokenKind::Keyword(Keyword::Import) {
                imports.extend(self.import(declarations.is_empty()));
            } else if let Some(declaration) = self.declaration() {
                declarations.push(declaration);
            }
            // A complete expression is never followed by `let`, so one at any column begins a declaration.
            let next = self.at_declaration()
                || matches!(self.peek(), TokenKind::Keyword(Keyword::Let) | TokenKind::AttributeOpen);
            if !self.gave_up && !next {
                self.unexpected(
                    "an operator or the next declaration",
                    "a closing bracket too many, or an operator, `in` or `def` missing before it?",
                );
            }
            if self.gave_up {
                self.resume(start);
            }
        }
        Program { imports, declarations }
    }

    /// Goes to the next declaration after a mistake in the one that began at token `start`.
    fn resume(&mut self, start: usize) {
        self.at = self.at.max(start + 1).min(self.tokens.len() - 1);
        while !self.at_declaration() {
            self.at += 1;
        }
        self.gave_up = false;
        self.depth = 0;
    }

    /// `import "path"`; `is_first`: no declaration stands before it.
    fn import(&mut self, is_first: bool) -> Option<Import> {
        let start = self.span();
        self.advance();
        let path = match self.peek() {
            TokenKind::String(text) => String::from_utf8_lossy(text).into_owned(),
            _ => {
                let hint = "write the path of a file without its ending, as in `import \"lib/distances\"`";
                self.unexpected("a path in quotes", hint);
                return None;
            }
        };
        self.advance();
        let span = self.since(start);
        if !is_first {
            let message = "an import after a declaration";
            self.error(Code::Syntax, span, message.to_string(), "imports come first in a file");
            return None;
        }
        Some(Import { path, span })
    }

    fn declaration(&mut self) -> Option<Declaration> {
        let start = self.span();
        let mut attributes = Vec::new();
        while *self.peek() == TokenKind::AttributeOpen {
            attributes.push(self.attribute());
        }
        match self.peek() {
            TokenKind::Keyword(Keyword::Def | Keyword::Let) => {
                self.advance();
                Some(Declaration::Value(self.value_declaration(ValueKind::Def, attributes, start)))
            }
            TokenKind::Keyword(Keyword::Entry) => {
                self.advance();
                Some(Declaration::Value(self.value_declaration(ValueKind::Entry, attributes, start)))
            }
            TokenKind::Keyword(Keyword::Type) => {
                self.advance();
                Some(Declaration::Type(self.type_declaration(attributes, start)))
            }
            TokenKind::Keyword(Keyword::Module) => {
                let span = self.span();
                let word = self.text_at(0);
                self.error(
                    Code::Unsupported,
                    span,
                    format!("`{word}`: modules are not supported"),
                    "define functions, and `import` files that define them; the scalar modules (`f64.exp`, ...) are always there",
                );
                None
            }
            _ => {
                self.unexpected(
                    "a declaration",
                    "a program is a sequence of `def`, `entry` and `type` declarations",
                );
                None
            }
        }
    }

    fn value_declaration(
        &mut self,
        kind: ValueKind,
        attributes: Vec<Attribute>,
        start: Span,
    ) -> ValueDeclaration {
        let (name, infix) = self.declared_name();
        let type_params = if infix.is_empty() { self.type_params() } else { Vec::new() };
        let mut params = infix;
        self.params(&mut params);
        let return_type = if self.eat(&TokenKind::Colon) { Some(self.type_expr()) } else { None };
        self.expect(
            &TokenKind::Equals,
            "`=`",
            "a definition is `def name (parameter: type) ... : type = expression`",
        );
        let body = self.expr();
        ValueDeclaration {
            kind,
            attributes,
            name,
            type_params,
            params,
            return_type,
            body,
            span: self.since(start),
        }
    }

    /// The declared name, and the two parameters if it was declared infix (`def (x: t) +^ (y: t) = ...`).
    fn declared_name(&mut self) -> (Name, Vec<Pattern>) {
        if let Some(name) = self.parenthesised_operator() {
            return (name, Vec::new());
        }
        let infix = *self.peek() == TokenKind::LeftParen
            || (*self.peek() == TokenKind::Ident && *self.peek_at(1) == TokenKind::Operator);
        if !infix {
            let hint =
                "a name is letters, digits, `_` and `'`; an operator stands in parentheses: `def (+^) x y`";
            return (self.name("the name to define", hint), Vec::new());
        }
        let left = self.pattern_atom();
        let name = if *self.peek() == TokenKind::Operator {
            self.take_name()
        } else {
            self.unexpected("an operator", "`def` is followed by a name, or by `(operator)`");
            Name { text: Symbol::new("_"), span: self.span() }
        };
        let right = self.pattern_atom();
        (name, vec![left, right])
    }

    /// `(+)`: an operator used as a name.
    fn parenthesised_operator(&mut self) -> Option<Name> {
        if *self.peek() != TokenKind::LeftParen
            || *self.peek_at(1) != TokenKind::Operator
            || *self.peek_at(2) != TokenKind::RightParen
        {
            return None;
        }
        self.advance();
        let name = self.take_name();
        self.advance();
        Some(name)
    }

    fn type_params(&mut self) -> Vec<TypeParam> {
        let mut params = Vec::new();
        loop {
            if self.at_size_binder() {
                self.advance();
                params.push(TypeParam::Size(self.take_name()));
                self.advance();
            } else if let TokenKind::TypeVariable(liftedness) = *self.peek() {
                params.push(TypeParam::Type(self.type_variable(liftedness), liftedness));
            } else {
                return params;
            }
        }
    }

    fn type_variable(&mut self, liftedness: Liftedness) -> Name {
        let skip = if liftedness == Liftedness::Unlifted { 1 } else { 2 };
        let name = Name { text: Symbol::new(&self.text_at(0)[skip..]), span: self.span() };
        self.advance();
        name
    }

    /// Value parameters up to `:`, `=` or `->`.
    fn params(&mut self, params: &mut Vec<Pattern>) {
        while self.starts_pattern_atom() {
            params.push(self.pattern_atom());
        }
    }

    fn type_declaration(&mut self, attributes: Vec<Attribute>, start: Span) -> TypeDeclaration {
        let liftedness = if self.eat(&TokenKind::Tilde) {
            Liftedness::SizeLifted
        } else if self.at_operator("^") {
            self.advance();
            Liftedness::Lifted
        } else {
            Liftedness::Unlifted
        };
        let name = self.name("the name of the type", "a type is declared as `type name = definition`");
        let params = self.type_params();
        self.expect(&TokenKind::Equals, "`=`", "a type is declared as `type name [n] 'a = definition`");
        let definition = self.type_expr();
        TypeDeclaration { attributes, name, params, definition, liftedness, span: self.since(start) }
    }

    // ---- attributes

    fn attribute(&mut self) -> Attribute {
        let open = self.span();
        self.advance();
        let mut attribute = self.attribute_body();
        self.close(&TokenKind::RightBracket, "]", open);
        attribute.span = self.since(open);
        attribute
    }

    fn attribute_body(&mut self) -> Attribute {
        let start = self.span();
        let name = self.name("the name of an attribute", "an attribute is `#[name]` or `#[name(argument)]`");
        let mut arguments = Vec::new();
        let open = self.span();
        if self.enter_type() {
            if self.eat(&TokenKind::LeftParen) {
                while !self.gave_up && *self.peek() != TokenKind::RightParen {
                    arguments.push(self.attribute_argument());
                    if !self.eat(&TokenKind::Comma) {
                        break;
                    }
                }
                self.close(&TokenKind::RightParen, ")", open);
            } else {
                // `revolve 3`: an argument without brackets.
                while let TokenKind::Int(..) | TokenKind::Ident = self.peek() {
                    arguments.push(self.attribute_argument());
                }
            }
        }
        self.leave_type();
        Attribute { name, arguments, span: self.since(start) }
    }

    fn attribute_argument(&mut self) -> AttributeArgument {
        if let TokenKind::Int(value, _) = *self.peek() {
            let span = self.span();
            self.advance();
            return AttributeArgument::Int(value, span);
        }
        AttributeArgument::Nested(self.attribute_body())
    }
}
