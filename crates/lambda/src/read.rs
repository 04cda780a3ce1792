//! The reader of the text form of lambda programs: inverts [`crate::print::print`].
//!
//! Reads what the printer prints, and the same by hand: names of variables may be any identifiers and may shadow
//! others, `--` starts a comment. The result is well typed (the builder computes every type) but not yet checked: run
//! `check` on it.

use crate::builder::Builder;
use crate::lex::{Token, TokenKind, lex};
use crate::term::{
    Derivative, Entry, EntryType, Exp, FunId, Loop, LoopAttrs, LoopForm, Mark, Program, Seeds, SliceDim,
    Soac, TapePolicy, Term, Var,
};
use crate::types::{Type, TypeId, Variant};
use pullback_base::index::Index;
use pullback_base::{Code, Diagnostic, FileId, Span, Symbol};
use pullback_prim::{Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEYWORDS: &[&str] = &[
    "type",
    "def",
    "entry",
    "signature",
    "let",
    "in",
    "fun",
    "lin",
    "if",
    "then",
    "else",
    "match",
    "loop",
    "for",
    "while",
    "do",
    "true",
    "false",
    "undefined",
];

/// Whether a name has a meaning of its own in the text form.
pub(crate) fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

/// Reads a program. Positions in it and in errors are those of the text, if it is a file of a source map.
///
/// # Errors
/// One error for text that is no program; or all type errors found in a text that is.
pub fn read(text: &str, file: Option<FileId>) -> Result<Program, Vec<Diagnostic>> {
    let fail = |Failure { span, message, code }: Failure| {
        let mut d = Diagnostic::global(code, message);
        d.span = file.map(|f| Span::new(f, span.0, span.1));
        vec![d]
    };
    let tokens = lex(text)
        .map_err(|(at, message)| fail(Failure { span: (at, at + 1), message, code: Code::Lexical }))?;
    let mut program = Program::default();
    let mut reader = Reader {
        tokens,
        at: 0,
        builder: Builder::new(&mut program),
        file,
        scope: BTreeMap::new(),
        funs: BTreeMap::new(),
        type_count: 0,
        depth: 0,
    };
    let result = reader.program();
    let errors = std::mem::take(&mut reader.builder.errors);
    result.map_err(fail)?;
    if errors.is_empty() {
        return Ok(program);
    }
    Err(errors
        .into_iter()
        .map(|(span, message)| {
            let mut d = Diagnostic::global(Code::TypeMismatch, message);
            d.span = span;
            d
        })
        .collect())
}

struct Failure {
    span: (usize, usize),
    message: String,
    code: Code,
}

type Read<T> = Result<T, Failure>;

struct Reader<'t, 'p> {
    tokens: Vec<Token<'t>>,
    at: usize,
    builder: Builder<'p>,
    file: Option<FileId>,
    scope: BTreeMap<&'t str, Vec<Var>>,
    funs: BTreeMap<String, FunId>,
    type_count: usize,
    depth: usize,
}

impl<'t> Reader<'t, '_> {
    fn peek(&self) -> Token<'t> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }
    fn ahead(&self, n: usize) -> Token<'t> {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }
    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }
    fn fail<T>(&self, message: impl Into<String>) -> Read<T> {
        let t = self.peek();
        Err(Failure { span: (t.start, t.start + t.text.len()), message: message.into(), code: Code::Syntax })
    }
    fn is(&self, text: &str) -> bool {
        let t = self.peek();
        t.text == text && t.kind != TokenKind::Text
    }
    fn eat(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, text: &str) -> Read<()> {
        if self.eat(text) {
            Ok(())
        } else {
            self.fail(format!("expected `{text}`, found `{}`", self.peek().text))
        }
    }
    /// Items up to `close`, separated by commas; a trailing comma is allowed and reported.
    fn separated<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<(Vec<T>, bool)> {
        let mut items = Vec::new();
        let mut trailing = false;
        while !self.eat(close) {
            items.push(item(self)?);
            trailing = self.eat(",");
            if !trailing {
                self.expect(close)?;
                break;
            }
        }
        Ok((items, trailing))
    }
    fn name(&mut self) -> Read<Symbol> {
        let t = self.peek();
        match t.kind {
            TokenKind::Word if !is_keyword(t.text) => {
                self.at += 1;
                Ok(t.text.into())
            }
            TokenKind::Text => self.text(),
            _ => self.fail(format!("expected a name, found `{}`", t.text)),
        }
    }
    fn text(&mut self) -> Read<Symbol> {
        let t = self.peek();
        if t.kind != TokenKind::Text {
            return self.fail(format!("expected a text between quotes, found `{}`", t.text));
        }
        match crate::lex::unescape(t.text) {
            Some(s) => {
                self.at += 1;
                Ok(s.into())
            }
            None => self.fail("a text with an unknown escape"),
        }
    }
    fn number<N: std::str::FromStr>(&mut self) -> Read<N> {
        let t = self.peek();
        match t.text.parse() {
            Ok(n) if t.kind == TokenKind::Number => {
                self.at += 1;
                Ok(n)
            }
            _ => self.fail(format!("expected a number, found `{}`", t.text)),
        }
    }

    fn program(&mut self) -> Read<()> {
        self.type_count = (0..self.tokens.len().saturating_sub(1))
            .filter(|&i| self.tokens[i].text == "type" && self.tokens[i].kind == TokenKind::Word)
            .count();
        while self.eat("type") {
            self.expect("$")?;
            let number: usize = self.number()?;
            if number != self.builder.program.types.len() {
                return self.fail("types are numbered from 0 in order");
            }
            let name = self.name()?;
            let id = self.builder.declare_type(name.as_str());
            self.expect("=")?;
            let Type::Sum(variants) = self.ty()? else {
                return self.fail("a type of the type table is a sum");
            };
            self.builder.define_type(id, variants.to_vec());
        }
        let mut bodies = Vec::new();
        while self.peek().kind != TokenKind::End {
            bodies.push(self.header()?);
            while !(self.is("def") || self.is("entry") || self.peek().kind == TokenKind::End) {
                self.at += 1;
            }
        }
        for (id, names, body) in bodies {
            self.at = body;
            if self.eat("undefined") {
                continue;
            }
            let params = self.builder.params(id);
            names.iter().zip(&params).for_each(|(name, &v)| self.scope.entry(name).or_default().push(v));
            let term = self.term()?;
            names.iter().for_each(|name| self.leave(name));
            self.builder.define(id, term);
            if !(self.is("def") || self.is("entry") || self.peek().kind == TokenKind::End) {
                return self.fail(format!("unexpected `{}` after a definition", self.peek().text));
            }
        }
        Ok(())
    }
    /// Declares a function; gives the names of its parameters and the position of its body.
    fn header(&mut self) -> Read<(FunId, Vec<&'t str>, usize)> {
        let entry = self.is("entry");
        if !self.eat("def") && !self.eat("entry") {
            return self.fail(format!("expected a definition, found `{}`", self.peek().text));
        }
        self.position();
        let name = self.name()?;
        self.expect("(")?;
        let (params, _) = self.separated(")", |r| {
            let word = r.word()?;
            r.expect(":")?;
            Ok((word, r.ty()?))
        })?;
        self.expect(":")?;
        let result = self.ty()?;
        let signature = if entry { Some(self.signature()?) } else { None };
        self.expect("=")?;
        let hinted: Vec<(&str, Type)> = params.iter().map(|(word, t)| (hint(word), t.clone())).collect();
        let id = self.builder.declare(name.as_str(), &hinted, result, signature);
        if self.funs.insert(name.to_string(), id).is_some() {
            return self.fail(format!("two functions are called {name}"));
        }
        Ok((id, params.iter().map(|p| p.0).collect(), self.at))
    }
    fn signature(&mut self) -> Read<Entry> {
        self.expect("signature")?;
        self.expect("(")?;
        let (params, _) = self.separated(")", |r| {
            let name = r.name()?;
            r.expect(":")?;
            Ok((name, r.entry_type()?))
        })?;
        self.expect(":")?;
        Ok(Entry { params, result: self.entry_type()? })
    }
    fn entry_type(&mut self) -> Read<EntryType> {
        self.nested(Self::entry_type_inner)
    }
    fn entry_type_inner(&mut self) -> Read<EntryType> {
        if self.eat("[") {
            let size = match self.peek().kind {
                TokenKind::Number => Some(self.next().text.into()),
                _ if self.is("]") => None,
                _ => Some(self.name()?),
            };
            self.expect("]")?;
            return Ok(EntryType::Array(size, Box::new(self.entry_type()?)));
        }
        if self.eat("(") {
            let (mut items, trailing) = self.separated(")", Self::entry_type)?;
            return Ok(match items.pop() {
                Some(only) if items.is_empty() && !trailing => only,
                last => EntryType::Tuple(items.into_iter().chain(last).collect()),
            });
        }
        if self.eat("record") {
            self.expect("(")?;
            let (fields, _) = self.separated(")", |r| {
                let name = r.name()?;
                r.expect(":")?;
                Ok((name, r.entry_type()?))
            })?;
            return Ok(EntryType::Record(fields));
        }
        if self.is("{") {
            return Ok(EntryType::Sum(self.variants(Self::entry_type)?));
        }
        match Scalar::from_name(self.peek().text) {
            Some(s) => {
                self.at += 1;
                Ok(EntryType::Scalar(s))
            }
            None => self.fail(format!("expected a type, found `{}`", self.peek().text)),
        }
    }
    /// `{#name type type | ..}`.
    fn variants<T>(&mut self, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<(Symbol, Vec<T>)>> {
        self.expect("{")?;
        let mut variants = Vec::new();
        while !self.eat("}") {
            if !variants.is_empty() {
                self.expect("|")?;
            }
            self.expect("#")?;
            let name = self.name()?;
            let mut fields = Vec::new();
            while !self.is("|") && !self.is("}") {
                fields.push(item(self)?);
            }
            variants.push((name, fields));
        }
        Ok(variants)
    }
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth > crate::MAX_DEPTH {
            let start = self.peek().start;
            let message = "nested too deeply".to_string();
            return Err(Failure { span: (start, start + 1), message, code: Code::TooDeep });
        }
        self.depth += 1;
        let result = crate::with_stack(|| f(self));
        self.depth -= 1;
        result
    }
    fn ty(&mut self) -> Read<Type> {
        self.nested(Self::ty_inner)
    }
    fn ty_inner(&mut self) -> Read<Type> {
        if self.eat("[") {
            self.expect("]")?;
            return Ok(Type::array(self.ty()?));
        }
        if self.eat("(") {
            let (items, trailing) = self.separated(")", Self::ty)?;
            return Ok(match items.as_slice() {
                [only] if !trailing => only.clone(),
                _ => Type::tuple(items),
            });
        }
        if self.eat("<") {
            let a = self.ty()?;
            let linear = self.eat("-o");
            if !linear {
                self.expect("->")?;
            }
            let b = self.ty()?;
            self.expect(">")?;
            return Ok(if linear { Type::linear(a, b) } else { Type::fun(a, b) });
        }
        if self.is("{") {
            let variants = self.variants(Self::ty)?;
            return Ok(Type::Sum(
                variants.into_iter().map(|(name, fields)| Variant { name, fields }).collect(),
            ));
        }
        if self.eat("$") {
            let number: usize = self.number()?;
            if number >= self.type_count {
                return self.fail(format!("there is no type ${number}"));
            }
            return Ok(Type::Named(TypeId::new(number)));
        }
        let word = self.peek().text;
        if let Some(s) = Scalar::from_name(word) {
            self.at += 1;
            return Ok(s.into());
        }
        let one = |f: fn(Arc<Type>) -> Type| Some(f);
        let wrap = match word {
            "staged" => one(Type::Staged),
            "bag" => one(Type::Bag),
            "map" => one(Type::Map),
            "io" => one(Type::Io),
            "mut" => one(Type::MutArray),
            _ => None,
        };
        if let Some(wrap) = wrap {
            self.at += 1;
            self.expect("(")?;
            let t = self.ty()?;
            self.expect(")")?;
            return Ok(wrap(Arc::new(t)));
        }
        match word {
            "sparse" | "oneof" => {
                self.at += 1;
                self.expect("(")?;
                let (items, _) = self.separated(")", Self::ty)?;
                Ok(if word == "sparse" {
                    Type::SparseTuple(items.into())
                } else {
                    Type::SparseSum(items.into())
                })
            }
            "evm" => {
                self.at += 1;
                self.expect("[")?;
                let (env, _) = self.separated("]", Self::ty)?;
                self.expect("(")?;
                let t = self.ty()?;
                self.expect(")")?;
                Ok(Type::evm(env, t))
            }
            _ => self.fail(format!("expected a type, found `{word}`")),
        }
    }

    fn word(&mut self) -> Read<&'t str> {
        let t = self.peek();
        if t.kind == TokenKind::Word && !is_keyword(t.text) {
            self.at += 1;
            Ok(t.text)
        } else {
            self.fail(format!("expected a variable, found `{}`", t.text))
        }
    }
    /// Makes the position of the next token the position of what is built.
    fn position(&mut self) {
        let t = self.peek();
        self.builder.span = self.file.map(|f| Span::new(f, t.start, t.start + t.text.len()));
    }
    fn enter(&mut self, word: &'t str, ty: Type) -> Var {
        let v = self.builder.fresh(ty, hint(word));
        self.scope.entry(word).or_default().push(v);
        v
    }
    fn leave(&mut self, word: &str) {
        if let Some(vars) = self.scope.get_mut(word) {
            vars.pop();
        }
    }
    fn make(&mut self, span: Option<Span>, exp: Exp) -> Term {
        self.builder.span = span;
        self.builder.term(exp)
    }

    /// A term, as far to the right as possible. Chains of `let` use no stack.
    fn term(&mut self) -> Read<Term> {
        let mut lets = Vec::new();
        loop {
            self.position();
            let span = self.builder.span;
            if !self.eat("let") {
                break;
            }
            let word = self.word()?;
            self.expect("=")?;
            let value = self.nested(Self::term)?;
            self.expect("in")?;
            self.builder.span = span;
            let v = self.enter(word, value.ty().clone());
            lets.push((word, v, value, span));
        }
        let mut body = self.nested(Self::open_term)?;
        while let Some((word, v, value, span)) = lets.pop() {
            self.leave(word);
            body = self.make(span, Exp::Let(v, value, body));
        }
        Ok(body)
    }
    fn open_term(&mut self) -> Read<Term> {
        let span = self.builder.span;
        if self.is("fun") || self.is("lin") {
            let linear = self.next().text == "lin";
            let word = self.word()?;
            self.expect(":")?;
            let ty = self.ty()?;
            self.expect("->")?;
            let v = self.enter(word, ty);
            let body = self.term()?;
            self.leave(word);
            return Ok(self.make(span, if linear { Exp::LinearLam(v, body) } else { Exp::Lam(v, body) }));
        }
        if self.eat("if") {
            let c = self.term()?;
            self.expect("then")?;
            let a = self.term()?;
            self.expect("else")?;
            let b = self.term()?;
            return Ok(self.make(span, Exp::If(c, a, b)));
        }
        if self.eat("loop") {
            return self.loop_(span);
        }
        self.postfix_term()
    }
    fn loop_(&mut self, span: Option<Span>) -> Read<Term> {
        let mut attrs = LoopAttrs::default();
        if self.eat("[") {
            self.separated("]", |r| {
                match r.next().text {
                    "stripmine" => attrs.stripmine = Some(r.number()?),
                    "bound" => attrs.bound = Some(r.number()?),
                    "tape" => {
                        attrs.tape = Some(match r.next().text {
                            "all" => TapePolicy::All,
                            "carry" => TapePolicy::Carry,
                            "sqrt" => TapePolicy::Sqrt,
                            "revolve" => TapePolicy::Revolve(r.number()?),
                            _ => return r.fail("unknown tape policy"),
                        });
                    }
                    _ => return r.fail("unknown loop attribute"),
                }
                Ok(())
            })?;
        }
        let word = self.word()?;
        self.expect("=")?;
        let init = self.term()?;
        if self.eat("for") {
            let counter = self.word()?;
            self.expect("<")?;
            let n = self.term()?;
            self.expect("do")?;
            let i = self.enter(counter, n.ty().clone());
            let state = self.enter(word, init.ty().clone());
            let body = self.term()?;
            self.leave(word);
            self.leave(counter);
            return Ok(
                self.make(span, Exp::Loop(Loop { state, init, form: LoopForm::For(i, n), body, attrs }))
            );
        }
        self.expect("while")?;
        let state = self.enter(word, init.ty().clone());
        let c = self.term()?;
        self.expect("do")?;
        let body = self.term()?;
        self.leave(word);
        Ok(self.make(span, Exp::Loop(Loop { state, init, form: LoopForm::While(c), body, attrs })))
    }
    /// A term followed by components and arguments.
    fn postfix_term(&mut self) -> Read<Term> {
        let span = self.builder.span;
        let mut t = self.closed_term()?;
        loop {
            if self.is(".") && self.ahead(1).kind == TokenKind::Number {
                self.at += 1;
                let i = self.number()?;
                t = self.make(span, Exp::Proj(t, i));
            } else if self.eat("(") {
                let a = self.term()?;
                self.expect(")")?;
                t = self.make(span, Exp::App(t, a));
            } else {
                return Ok(t);
            }
        }
    }
    fn args(&mut self) -> Read<Vec<Term>> {
        self.expect("(")?;
        Ok(self.separated(")", Self::term)?.0)
    }
    fn closed_term(&mut self) -> Read<Term> {
        let span = self.builder.span;
        if self.eat("(") {
            let (mut items, trailing) = self.separated(")", Self::term)?;
            return Ok(match items.pop() {
                Some(only) if items.is_empty() && !trailing => only,
                last => {
                    items.extend(last);
                    self.make(span, Exp::Tuple(items))
                }
            });
        }
        if self.eat("@") {
            let name = self.name()?;
            let Some(&f) = self.funs.get(name.as_str()) else {
                return self.fail(format!("there is no function {name}"));
            };
            let args = self.args()?;
            return Ok(self.make(span, Exp::Call(f, args)));
        }
        if self.eat("match") {
            return self.match_(span);
        }
        if let Some(c) = self.constant()? {
            return Ok(self.make(span, Exp::Const(c)));
        }
        let word = self.word()?;
        if self.is(".") && self.ahead(1).kind == TokenKind::Word {
            let mut name = word.to_string();
            while self.is(".") && self.ahead(1).kind == TokenKind::Word {
                self.at += 1;
                name = format!("{name}.{}", self.next().text);
            }
            let Some(prim) = Prim::from_name(&name) else { return self.fail(format!("no primitive {name}")) };
            let args = self.args()?;
            return Ok(self.make(span, Exp::Prim(prim, args)));
        }
        if let Some(&v) = self.scope.get(word).and_then(|vars| vars.last()) {
            return Ok(self.make(span, Exp::Var(v)));
        }
        let exp = self.operation(word)?;
        Ok(self.make(span, exp))
    }
    fn constant(&mut self) -> Read<Option<ScalarValue>> {
        let t = self.peek();
        let c = match (t.kind, t.text) {
            (_, "true") => Some(ScalarValue::Bool(true)),
            (_, "false") => Some(ScalarValue::Bool(false)),
            (TokenKind::Number, text) => match crate::lex::number(text) {
                Some(c) => Some(c),
                None => {
                    return self
                        .fail(format!("`{text}` is no constant: a number needs a type suffix in range"));
                }
            },
            (TokenKind::Word, "f32" | "f64" | "-f32" | "-f64") => {
                self.at += 1;
                self.expect(".")?;
                let sign = if t.text.starts_with('-') { -1.0 } else { 1.0 };
                let x = match self.peek().text {
                    "nan" => f64::NAN,
                    "inf" => sign * f64::INFINITY,
                    other => return self.fail(format!("no constant {other}")),
                };
                Scalar::from_name(t.text.trim_start_matches('-')).map(|s| s.from_f64(x))
            }
            _ => None,
        };
        self.at += usize::from(c.is_some());
        Ok(c)
    }
    fn match_(&mut self, span: Option<Span>) -> Read<Term> {
        let x = self.term()?;
        self.expect("{")?;
        let variants: Vec<Variant> = match self.builder.program.variants(x.ty()) {
            Some(vs) => vs.to_vec(),
            None => return self.fail(format!("match on a value of type {}", x.ty())),
        };
        let mut arms = Vec::new();
        for v in &variants {
            if !arms.is_empty() {
                self.expect("|")?;
            }
            self.expect("#")?;
            let name = self.name()?;
            if name != v.name {
                return self.fail(format!("expected the arm of #{}, found #{name}", v.name));
            }
            let words = v.fields.iter().map(|_| self.word()).collect::<Read<Vec<_>>>()?;
            let params = words.iter().zip(&v.fields).map(|(w, t)| self.enter(w, t.clone())).collect();
            self.expect("->")?;
            let body = self.term()?;
            words.iter().for_each(|w| self.leave(w));
            arms.push(crate::term::Arm { params, body });
        }
        self.expect("}")?;
        Ok(self.make(span, Exp::Match(x, arms)))
    }

    /// `[` item `,` .. `]`, if there is one.
    fn statics<T>(&mut self, item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.expect("[")?;
        Ok(self.separated("]", item)?.0)
    }
    fn static_number(&mut self) -> Read<usize> {
        self.expect("[")?;
        let n = self.number()?;
        self.expect("]")?;
        Ok(n)
    }
    fn static_type(&mut self) -> Read<Type> {
        self.expect("[")?;
        let t = self.ty()?;
        self.expect("]")?;
        Ok(t)
    }
    fn static_type_and_number(&mut self) -> Read<(Type, usize)> {
        self.expect("[")?;
        let t = self.ty()?;
        self.expect(",")?;
        let n = self.number()?;
        self.expect("]")?;
        Ok((t, n))
    }
    fn static_text(&mut self) -> Read<Symbol> {
        self.expect("[")?;
        let s = self.text()?;
        self.expect("]")?;
        Ok(s)
    }
    fn fixed<const N: usize>(&mut self) -> Read<[Term; N]> {
        let args = self.args()?;
        let found = args.len();
        match args.try_into() {
            Ok(args) => Ok(args),
            Err(_) => self.fail(format!("expected {N} operands, found {found}")),
        }
    }
    /// Operands of which the first `n` and the last `m` are single.
    fn around(&mut self, n: usize, m: usize) -> Read<(Vec<Term>, Vec<Term>, Vec<Term>)> {
        let mut args = self.args()?;
        if args.len() < n + m {
            return self.fail(format!("expected at least {} operands, found {}", n + m, args.len()));
        }
        let last = args.split_off(args.len() - m);
        let middle = args.split_off(n);
        Ok((args, middle, last))
    }
    fn derivative(&mut self, seeds: Seeds) -> Read<Derivative> {
        let algorithm = if self.is("[") { Some(self.static_text()?) } else { None };
        let [f, arg, seed] = self.fixed()?;
        Ok(Derivative { f, arg, seed, seeds, algorithm })
    }

    /// An operation after its word.
    fn operation(&mut self, word: &str) -> Read<Exp> {
        Ok(match word {
            "inject" => {
                let (t, k) = self.static_type_and_number()?;
                Exp::Inject(t, k, self.args()?)
            }
            "array" => {
                let t = self.static_type()?;
                Exp::ArrayLit(t, self.args()?)
            }
            "index" => {
                let (mut first, ix, _) = self.around(1, 0)?;
                Exp::Index(first.remove(0), ix)
            }
            "slice" => {
                let [a, start, len, stride] = self.fixed()?;
                Exp::Slice(a, SliceDim { start, len, stride })
            }
            "update" => {
                let (mut first, ix, mut last) = self.around(1, 1)?;
                Exp::Update(first.remove(0), ix, last.remove(0))
            }
            "update_slice" => {
                let [a, start, len, stride, v] = self.fixed()?;
                Exp::UpdateSlice(a, SliceDim { start, len, stride }, v)
            }
            "gather" => self.fixed().map(|[a, ix]| Exp::Gather(a, ix))?,
            "size" => {
                let d = self.static_number()?;
                self.fixed().map(|[a]| Exp::Size(a, d))?
            }
            "iota" => self.fixed().map(|[n]| Exp::Iota(n))?,
            "replicate" => self.fixed().map(|[n, v]| Exp::Replicate(n, v))?,
            "rearrange" => {
                let perm = self.statics(Self::number)?;
                self.fixed().map(|[a]| Exp::Rearrange(perm, a))?
            }
            "reshape" => {
                let from = self.static_number()?;
                let (_, shape, mut last) = self.around(0, 1)?;
                Exp::Reshape { shape, from, array: last.remove(0) }
            }
            "concat" => Exp::Concat(self.args()?),
            "sign" => self.fixed().map(|[a]| Exp::Sign(a))?,
            "reverse" => self.fixed().map(|[a]| Exp::Reverse(a))?,
            "rotate" => self.fixed().map(|[k, a]| Exp::Rotate(k, a))?,
            "zip" => Exp::Zip(self.args()?),
            "unzip" => self.fixed().map(|[a]| Exp::Unzip(a))?,
            "map" => {
                let (mut first, arrays, _) = self.around(1, 0)?;
                Exp::Soac(Soac::Map { f: first.remove(0), arrays })
            }
            "reduce" | "reduce_comm" => {
                let commutative = word == "reduce_comm";
                self.fixed()
                    .map(|[op, neutral, array]| Exp::Soac(Soac::Reduce { op, neutral, array, commutative }))?
            }
            "scan" => {
                self.fixed().map(|[op, neutral, array]| Exp::Soac(Soac::Scan { op, neutral, array }))?
            }
            "hist" => self.fixed().map(|[op, neutral, dst, indices, values]| {
                Exp::Soac(Soac::Hist { op, neutral, dst, indices, values })
            })?,
            "scatter" => self
                .fixed()
                .map(|[dst, indices, values]| Exp::Soac(Soac::Scatter { dst, indices, values }))?,
            "assert" => {
                let message = self.static_text()?;
                self.fixed().map(|[condition, body]| Exp::Assert { condition, message, body })?
            }
            "same_size" => {
                let message = self.static_text()?;
                self.fixed().map(|[left, right, body]| Exp::SameSize { left, right, message, body })?
            }
            "vjp" => Exp::Vjp(self.derivative(Seeds::One)?),
            "jvp" => Exp::Jvp(self.derivative(Seeds::One)?),
            "mjp" => Exp::Vjp(self.derivative(Seeds::Many)?),
            "jmp" => Exp::Jvp(self.derivative(Seeds::Many)?),
            "custom" | "custom_tape" => {
                let tape = word == "custom_tape";
                self.fixed().map(|[f, rule, arg]| Exp::Custom { f, rule, arg, tape })?
            }
            "recompute" => self.fixed().map(|[t]| Exp::Marked(Mark::Recompute, t))?,
            "store" => self.fixed().map(|[t]| Exp::Marked(Mark::Store, t))?,
            "stop_gradient" => self.fixed().map(|[t]| Exp::StopGradient(t))?,
            "par" => Exp::Par(self.args()?),
            _ => self.target_operation(word)?,
        })
    }
    fn target_operation(&mut self, word: &str) -> Read<Exp> {
        Ok(match word {
            "lapp" => self.fixed().map(|[f, a]| Exp::LinearApp(f, a))?,
            "zero" => {
                let t = self.static_type()?;
                self.fixed().map(|[]| Exp::Zero(t))?
            }
            "plus" => self.fixed().map(|[a, b]| Exp::Plus(a, b))?,
            "lpair" => Exp::SparseTuple(self.args()?),
            "lproj" => {
                let i = self.static_number()?;
                self.fixed().map(|[t]| Exp::SparseProj(t, i))?
            }
            "linj" => {
                let (t, k) = self.static_type_and_number()?;
                self.fixed().map(|[x]| Exp::SparseInject(t, k, x))?
            }
            "lcast" => {
                let k = self.static_number()?;
                self.fixed().map(|[t]| Exp::SparseCast(t, k))?
            }
            "bag_one" => self.fixed().map(|[i, t]| Exp::BagOne(i, t))?,
            "bag_array" => self.fixed().map(|[ix, ts]| Exp::BagArray(ix, ts))?,
            "bag_scatter" => self.fixed().map(|[n, bag]| Exp::BagScatter(n, bag))?,
            "evm_return" => {
                let env = self.statics(Self::ty)?;
                self.fixed().map(|[t]| Exp::EvmReturn(env.into(), t))?
            }
            "evm_bind" => self.fixed().map(|[m, k]| Exp::EvmBind(m, k))?,
            "evm_add" => {
                let cell = self.static_number()?;
                let env: Arc<[Type]> = self.statics(Self::ty)?.into();
                self.fixed().map(|[value]| Exp::EvmAdd { env, cell, value })?
            }
            "evm_scope" => self.fixed().map(|[z, m]| Exp::EvmScope(z, m))?,
            "evm_run" => self.fixed().map(|[m, e]| Exp::EvmRun(m, e))?,
            "evm_par" => Exp::EvmPar(self.args()?),
            "evm_sequence" => {
                let env: Arc<[Type]> = self.statics(Self::ty)?.into();
                self.fixed().map(|[ms]| Exp::EvmSequence(env, ms))?
            }
            "staged_cotangent" => self.fixed().map(|[t]| Exp::StagedCotangent(t))?,
            "staged_call" => self.fixed().map(|[i, f, a]| Exp::StagedCall(i, f, a))?,
            "staged_resolve" => self.fixed().map(|[t]| Exp::StagedResolve(t))?,
            "map_empty" => {
                let t = self.static_type()?;
                self.fixed().map(|[]| Exp::MapEmpty(t))?
            }
            "map_insert" => {
                self.fixed().map(|[combine, map, key, value]| Exp::MapInsert { combine, map, key, value })?
            }
            "map_lookup" => self.fixed().map(|[m, k]| Exp::MapLookup(m, k))?,
            "map_pop_max" => self.fixed().map(|[m]| Exp::MapPopMax(m))?,
            "io_return" => self.fixed().map(|[t]| Exp::IoReturn(t))?,
            "io_bind" => self.fixed().map(|[m, k]| Exp::IoBind(m, k))?,
            "io_run" => self.fixed().map(|[m]| Exp::IoRun(m))?,
            "io_par" => Exp::IoPar(self.args()?),
            "mut_new" => self.fixed().map(|[n, v]| Exp::MutNew(n, v))?,
            "mut_get" => self.fixed().map(|[a, i]| Exp::MutGet(a, i))?,
            "mut_set" => self.fixed().map(|[a, i, v]| Exp::MutSet(a, i, v))?,
            "mut_modify" => self.fixed().map(|[a, i, f]| Exp::MutModify(a, i, f))?,
            "mut_push" => self.fixed().map(|[a, v]| Exp::MutPush(a, v))?,
            "mut_size" => self.fixed().map(|[a]| Exp::MutSize(a))?,
            "mut_freeze" => self.fixed().map(|[a]| Exp::MutFreeze(a))?,
            _ => return self.fail(format!("neither a variable in scope nor an operation: `{word}`")),
        })
    }
}

/// The name of a variable without the number that the printer gave it.
fn hint(word: &str) -> &str {
    match word.rsplit_once('_') {
        Some((hint, number)) if !hint.is_empty() && number.chars().all(|c| c.is_ascii_digit()) => hint,
        _ => word,
    }
}
