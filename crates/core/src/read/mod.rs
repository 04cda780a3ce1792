//! Reads the text form of core; the grammar is in [`mod@crate::print`].
//!
//! `read(print(p)) == renumber(p)`, but for origins: a variable read from text has the place of its first binding as
//! its origin. Names in the text may be any words; `x_3` and `x` both give the hint `x`. Scopes, types and unique binding
//! are left to the checker, so that it can be tested from text; a name that is bound nowhere is an error here.
//!
//! Never panics. Errors are diagnostics with the place. Bodies and types may nest [`MAX_DEPTH`] deep.

mod exp;
mod lex;

use crate::check::MAX_DEPTH;
use crate::ir::{Atom, Body, Entry, EntryType, Fun, FunId, Lam, Origin, Program, Stm, TypeDef, Var, VarInfo};
use crate::print::renumber;
use crate::types::{Type, TypeId, Variant};
use lex::{Token, lex};
use pullback_base::index::Index;
use pullback_base::{Code, Diagnostic, FileId, Span, Symbol};
use pullback_prim::{Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};

type Read<T> = Result<T, Diagnostic>;

/// Reads a program. `file` is where spans point.
pub fn read(file: FileId, text: &str) -> Result<Program, Diagnostic> {
    let tokens = lex(file, text)?;
    let mut reader = Reader {
        tokens,
        at: 0,
        depth: 0,
        program: Program::default(),
        vars: BTreeMap::new(),
        bound: BTreeSet::new(),
        first_use: BTreeMap::new(),
        types: BTreeMap::new(),
        funs: BTreeMap::new(),
    };
    reader.declare();
    reader.program()?;
    // Names without a binding have no type; everything after this point relies on types.
    for (var, span) in &reader.first_use {
        if !reader.bound.contains(var) {
            let name = reader.vars.iter().find(|(_, v)| *v == var).map_or("?", |(n, _)| n.as_str());
            return Err(Diagnostic::error(Code::UnknownName, *span, format!("`{name}` is bound nowhere")));
        }
    }
    Ok(renumber(&reader.program))
}

struct Reader {
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
    program: Program,
    vars: BTreeMap<String, Var>,
    bound: BTreeSet<Var>,
    first_use: BTreeMap<Var, Span>,
    types: BTreeMap<String, TypeId>,
    funs: BTreeMap<String, FunId>,
}

/// Words that are neither variables nor names without quotes.
pub(crate) const RESERVED: &[&str] = &[
    "type",
    "fun",
    "entry",
    "interface",
    "let",
    "in",
    "case",
    "else",
    "for",
    "while",
    "collect",
    "true",
    "false",
];

impl Reader {
    // Tokens

    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.0)
    }
    fn span(&self) -> Span {
        let last = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens[last].1
    }
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }
    fn fail<T>(&self, expected: &str) -> Read<T> {
        let message = format!("expected {expected}, found {}", self.peek().describe());
        Err(Diagnostic::error(Code::Syntax, self.span(), message))
    }
    fn is(&self, sign: char) -> bool {
        *self.peek() == Token::Sign(sign)
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }
    fn eat(&mut self, sign: char) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, sign: char) -> Read<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(&format!("`{sign}`")) }
    }
    fn expect_word(&mut self, word: &str) -> Read<()> {
        if self.eat_word(word) { Ok(()) } else { self.fail(&format!("`{word}`")) }
    }
    /// Items with commas between them (one more is allowed at the end) up to the closing sign, which is consumed.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut out = Vec::new();
        loop {
            if self.eat(close) {
                return Ok(out);
            }
            out.push(item(self)?);
            if !self.eat(',') {
                self.expect(close)?;
                return Ok(out);
            }
        }
    }
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("this nests more than {MAX_DEPTH} deep");
            return Err(Diagnostic::error(Code::TooDeep, self.span(), message));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }

    // Names

    /// Numbers types and functions in the order of their definitions, so that uses may come first.
    fn declare(&mut self) {
        for k in 0..self.tokens.len() {
            let Token::Word(keyword) = &self.tokens[k].0 else { continue };
            let Some((Token::Word(name) | Token::Text(name), _)) = self.tokens.get(k + 1) else { continue };
            if keyword == "type" {
                let next = TypeId::new(self.types.len());
                self.types.entry(name.clone()).or_insert(next);
            } else if keyword == "fun" || keyword == "entry" {
                let next = FunId::new(self.funs.len());
                self.funs.entry(name.clone()).or_insert(next);
            }
        }
    }
    fn name(&mut self) -> Read<Symbol> {
        match self.peek().clone() {
            Token::Word(w) if !RESERVED.contains(&w.as_str()) => {
                self.at += 1;
                Ok(w.into())
            }
            Token::Text(t) => {
                self.at += 1;
                Ok(t.into())
            }
            _ => self.fail("a name"),
        }
    }
    fn variable(&mut self) -> Read<(Var, Span)> {
        let span = self.span();
        let Token::Word(word) = self.peek().clone() else { return self.fail("a variable") };
        if RESERVED.contains(&word.as_str()) {
            return self.fail("a variable");
        }
        self.at += 1;
        if let Some(v) = self.vars.get(&word) {
            return Ok((*v, span));
        }
        let hint = match word.rsplit_once('_') {
            Some((hint, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => hint,
            _ => &word,
        };
        let v = self.program.vars.push(VarInfo {
            ty: Type::unit(),
            hint: hint.into(),
            origin: Origin::default(),
        });
        self.vars.insert(word, v);
        Ok((v, span))
    }
    fn used(&mut self) -> Read<Var> {
        let (v, span) = self.variable()?;
        self.first_use.entry(v).or_insert(span);
        Ok(v)
    }
    fn binder(&mut self) -> Read<Var> {
        let (v, span) = self.variable()?;
        self.expect(':')?;
        let ty = self.ty()?;
        let first = self.bound.insert(v);
        let info = &mut self.program.vars[v];
        if first {
            info.ty = ty;
            info.origin.span = Some(span);
        } else if info.ty != ty {
            return Err(Diagnostic::error(Code::DuplicateName, span, "bound before with another type"));
        }
        Ok(v)
    }

    // Program

    fn program(&mut self) -> Read<()> {
        loop {
            let span = self.span();
            let duplicate = |what: &str| {
                Err(Diagnostic::error(Code::DuplicateName, span, format!("a second {what} of this name")))
            };
            if self.eat_word("type") {
                let name = self.name()?;
                self.expect('=')?;
                if self.types.get(name.as_str()).map(|t| t.index()) != Some(self.program.types.len()) {
                    return duplicate("type");
                }
                let variants = self.alternatives()?;
                self.program.types.push(TypeDef { name, variants });
            } else if self.is_word("fun") || self.is_word("entry") {
                let entry = self.is_word("entry");
                self.at += 1;
                let fun = self.fun(entry)?;
                if self.funs.get(fun.name.as_str()).map(|f| f.index()) != Some(self.program.funs.len()) {
                    return duplicate("function");
                }
                self.program.funs.push(fun);
            } else if *self.peek() == Token::End {
                return Ok(());
            } else {
                return self.fail("`type`, `fun` or `entry`");
            }
        }
    }
    fn fun(&mut self, entry: bool) -> Read<Fun> {
        let name = self.name()?;
        let entry = if entry { Some(self.interface()?) } else { None };
        self.expect('(')?;
        let params = self.list(')', Self::binder)?;
        self.expect(':')?;
        let mut results = Vec::new();
        while !self.is('{') {
            results.push(self.ty()?);
            if !self.eat(',') {
                break;
            }
        }
        let body = self.body()?;
        Ok(Fun { name, params, body, results, entry })
    }
    fn interface(&mut self) -> Read<Entry> {
        self.expect_word("interface")?;
        self.expect('(')?;
        let params = self.list(')', |me| {
            let name = me.name()?;
            me.expect(':')?;
            Ok((name, me.entry_type()?))
        })?;
        if self.next() != Token::Arrow {
            self.at -= 1;
            return self.fail("`->`");
        }
        Ok(Entry { params, result: self.entry_type()? })
    }
    fn body(&mut self) -> Read<Body> {
        self.deeper(|me| {
            me.expect('{')?;
            let mut stms = Vec::new();
            while me.eat_word("let") {
                let mut pat = vec![me.binder()?];
                while me.eat(',') {
                    pat.push(me.binder()?);
                }
                me.expect('=')?;
                stms.push(Stm { pat, exp: me.exp()? });
            }
            me.expect_word("in")?;
            let result = me.list('}', Self::atom)?;
            Ok(Body { stms, result })
        })
    }
    fn lam(&mut self) -> Read<Lam> {
        self.expect('(')?;
        let params = self.list(')', Self::binder)?;
        Ok(Lam { params, body: self.body()? })
    }

    // Types

    fn ty(&mut self) -> Read<Type> {
        self.deeper(|me| {
            if me.eat('[') {
                me.expect(']')?;
                return Ok(Type::array(me.ty()?));
            }
            if me.eat('(') {
                if me.is('#') {
                    let variants = me.alternatives()?;
                    me.expect(')')?;
                    return Ok(Type::Sum(variants.into()));
                }
                return Ok(Type::tuple(me.list(')', Self::ty)?));
            }
            if me.eat_word("acc") {
                return Ok(Type::acc(me.ty()?));
            }
            if let Token::Word(w) = me.peek()
                && let Some(s) = Scalar::from_name(w)
            {
                me.at += 1;
                return Ok(Type::Scalar(s));
            }
            let span = me.span();
            if !matches!(me.peek(), Token::Word(_) | Token::Text(_)) {
                return me.fail("a type");
            }
            let name = me.name()?;
            match me.types.get(name.as_str()) {
                Some(id) => Ok(Type::Named(*id)),
                None => {
                    Err(Diagnostic::error(Code::UnknownName, span, format!("no type `{name}` is defined")))
                }
            }
        })
    }
    fn starts_type(&self) -> bool {
        match self.peek() {
            Token::Sign(c) => matches!(c, '[' | '('),
            Token::Word(w) => !RESERVED.contains(&w.as_str()),
            Token::Text(_) => true,
            Token::Number(_) | Token::Arrow | Token::End => false,
        }
    }
    /// `#a t t | #b`; a lone `#` is the sum of nothing.
    fn alternatives(&mut self) -> Read<Vec<Variant>> {
        let mut out = Vec::new();
        loop {
            self.expect('#')?;
            if out.is_empty() && !matches!(self.peek(), Token::Word(_) | Token::Text(_)) {
                return Ok(out);
            }
            let name = self.name()?;
            let mut fields = Vec::new();
            while self.starts_type() {
                fields.push(self.ty()?);
            }
            out.push(Variant { name, fields });
            if !self.eat('|') {
                return Ok(out);
            }
        }
    }
    fn entry_type(&mut self) -> Read<EntryType> {
        self.deeper(|me| {
            if me.eat('[') {
                let size = match me.peek().clone() {
                    Token::Sign(']') => None,
                    Token::Number(n) if n.bytes().all(|b| b.is_ascii_digit()) => {
                        me.at += 1;
                        Some(Symbol::from(n))
                    }
                    _ => Some(me.name()?),
                };
                me.expect(']')?;
                return Ok(EntryType::Array(size, Box::new(me.entry_type()?)));
            }
            if me.eat('{') {
                let fields = me.list('}', |me| {
                    let name = me.name()?;
                    me.expect(':')?;
                    Ok((name, me.entry_type()?))
                })?;
                return Ok(EntryType::Record(fields));
            }
            if me.eat('(') {
                if me.is('#') {
                    let sum = me.entry_alternatives()?;
                    me.expect(')')?;
                    return Ok(EntryType::Sum(sum));
                }
                return Ok(EntryType::Tuple(me.list(')', Self::entry_type)?));
            }
            if let Token::Word(w) = me.peek()
                && let Some(s) = Scalar::from_name(w)
            {
                me.at += 1;
                return Ok(EntryType::Scalar(s));
            }
            me.fail("the type of a parameter or result")
        })
    }
    fn entry_alternatives(&mut self) -> Read<Vec<(Symbol, Vec<EntryType>)>> {
        let mut out = Vec::new();
        loop {
            self.expect('#')?;
            if out.is_empty() && self.is(')') {
                return Ok(out);
            }
            let name = self.name()?;
            let mut fields = Vec::new();
            while self.starts_type() || self.is('{') {
                fields.push(self.entry_type()?);
            }
            out.push((name, fields));
            if !self.eat('|') {
                return Ok(out);
            }
        }
    }

    // Atoms

    fn atom(&mut self) -> Read<Atom> {
        match self.peek().clone() {
            Token::Number(text) => {
                let Some(c) = constant(&text) else { return self.fail("a number with a type (`2i64`)") };
                self.at += 1;
                Ok(Atom::Const(c))
            }
            Token::Sign('-') => {
                self.at += 1;
                let word = self.next();
                match word {
                    Token::Word(w) if w == "f64.inf" => Ok(Atom::f64(f64::NEG_INFINITY)),
                    Token::Word(w) if w == "f32.inf" => Ok(Atom::Const(ScalarValue::F32(f32::NEG_INFINITY))),
                    _ => {
                        self.at -= 1;
                        self.fail("`f64.inf` or `f32.inf`")
                    }
                }
            }
            Token::Word(w) => match w.as_str() {
                "true" | "false" => {
                    self.at += 1;
                    Ok(Atom::bool(w == "true"))
                }
                "f64.inf" | "f32.inf" | "f64.nan" | "f32.nan" => {
                    self.at += 1;
                    self.special(&w)
                }
                _ => Ok(Atom::Var(self.used()?)),
            },
            Token::Text(_) | Token::Sign(_) | Token::Arrow | Token::End => {
                self.fail("a variable or a constant")
            }
        }
    }
    fn special(&mut self, word: &str) -> Read<Atom> {
        let value = match word {
            "f64.inf" => ScalarValue::F64(f64::INFINITY),
            "f32.inf" => ScalarValue::F32(f32::INFINITY),
            nan if self.eat('(') => {
                let bits = self.number()?;
                self.expect(')')?;
                match u32::try_from(bits) {
                    _ if nan == "f64.nan" => ScalarValue::F64(f64::from_bits(bits)),
                    Ok(bits) => ScalarValue::F32(f32::from_bits(bits)),
                    Err(_) => return self.fail("the bits of an `f32`"),
                }
            }
            "f64.nan" => ScalarValue::F64(f64::NAN),
            _ => ScalarValue::F32(f32::NAN),
        };
        Ok(Atom::Const(value))
    }
    fn bracketed(&mut self) -> Read<Vec<Atom>> {
        self.expect('[')?;
        self.list(']', Self::atom)
    }
    /// A number without a suffix.
    fn number(&mut self) -> Read<u64> {
        if let Token::Number(text) = self.peek()
            && let Ok(n) = text.parse()
        {
            self.at += 1;
            return Ok(n);
        }
        self.fail("a number without a type (`2`)")
    }
    fn index(&mut self) -> Read<usize> {
        let number = self.number()?;
        match u32::try_from(number) {
            Ok(n) => Ok(n as usize),
            Err(_) => {
                self.at -= 1;
                self.fail("a smaller number")
            }
        }
    }
}

/// A number with a type suffix.
fn constant(text: &str) -> Option<ScalarValue> {
    let scalar = Scalar::ALL.into_iter().find(|s| *s != Scalar::Bool && text.ends_with(s.name()))?;
    let digits = text.strip_suffix(scalar.name())?;
    Some(match scalar {
        Scalar::F32 => ScalarValue::F32(digits.parse().ok()?),
        Scalar::F64 => ScalarValue::F64(digits.parse().ok()?),
        Scalar::I8 => ScalarValue::I8(digits.parse().ok()?),
        Scalar::I16 => ScalarValue::I16(digits.parse().ok()?),
        Scalar::I32 => ScalarValue::I32(digits.parse().ok()?),
        Scalar::I64 => ScalarValue::I64(digits.parse().ok()?),
        Scalar::U8 => ScalarValue::U8(digits.parse().ok()?),
        Scalar::U16 => ScalarValue::U16(digits.parse().ok()?),
        Scalar::U32 => ScalarValue::U32(digits.parse().ok()?),
        Scalar::U64 => ScalarValue::U64(digits.parse().ok()?),
        Scalar::Bool => return None,
    })
}
