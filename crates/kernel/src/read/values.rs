//! Types, operands, facts and messages of kernel text.

use super::lex::Token;
use super::{Read, ReadError, Reader, id};
use crate::ir::{Facts, Message, Operand, Reg, Shape, Site, Sweep, Text, Ty};
use crate::lower::CONSTRUCTS;
use pullback_base::index::Index;
use pullback_base::{FileId, RuntimeErrorKind, Span};
use pullback_prim::{Scalar, ScalarValue};

/// All kinds of messages.
const KINDS: [RuntimeErrorKind; 10] = [
    RuntimeErrorKind::OutOfBounds,
    RuntimeErrorKind::ShapeMismatch,
    RuntimeErrorKind::DivisionByZero,
    RuntimeErrorKind::AssertFailed,
    RuntimeErrorKind::EmptyReduction,
    RuntimeErrorKind::NegativeSize,
    RuntimeErrorKind::NotFinite,
    RuntimeErrorKind::Limit,
    RuntimeErrorKind::Cancelled,
    RuntimeErrorKind::Internal,
];

impl Reader {
    // Numbers

    /// A number without a suffix.
    fn plain<T: std::str::FromStr>(&mut self, what: &str) -> Read<T> {
        let found = if let Token::Number(digits) = self.peek() { digits.parse().ok() } else { None };
        let Some(number) = found else { return self.expected(what) };
        self.at += 1;
        Ok(number)
    }
    pub(super) fn count(&mut self) -> Read<usize> {
        self.plain("a count")
    }
    fn word(&mut self, what: &str) -> Read<String> {
        let Token::Word(word) = self.peek() else { return self.expected(what) };
        let word = word.clone();
        self.at += 1;
        Ok(word)
    }
    fn string(&mut self) -> Read<String> {
        let Token::Text(text) = self.peek() else { return self.expected("a string") };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }
    /// `file:start..end`
    pub(super) fn span(&mut self) -> Read<Span> {
        let found = if let Token::Number(digits) = self.peek() { id(digits) } else { None };
        let Some(file) = found else { return self.expected("the number of a file") };
        self.at += 1;
        self.expect(':')?;
        let start = self.plain("the first byte")?;
        self.expect_token(&Token::Dots)?;
        Ok(Span { file: FileId::new(file), start, end: self.plain("the last byte")? })
    }

    // Types

    fn scalar(&mut self) -> Read<Scalar> {
        let found = if let Token::Word(word) = self.peek() { Scalar::from_name(word) } else { None };
        let Some(scalar) = found else { return self.expected("a scalar type") };
        self.at += 1;
        Ok(scalar)
    }
    pub(super) fn ty(&mut self) -> Read<Ty> {
        if self.eat_word("pointer") {
            return Ok(Ty::Pointer);
        }
        if !matches!(self.peek(), Token::Number(_)) {
            return Ok(Ty::Scalar(self.scalar()?));
        }
        let lanes = self.count()?;
        self.expect_word("lanes")?;
        self.expect_word("of")?;
        Ok(Ty::Lanes(self.scalar()?, lanes))
    }

    // Operands

    pub(super) fn operand(&mut self) -> Read<Operand> {
        if self.is_register() {
            return Ok(Operand::Reg(self.used()?));
        }
        if self.eat_word("null") {
            return Ok(Operand::Null);
        }
        match self.peek() {
            Token::Word(_) | Token::Number(_) | Token::Sign('-') => Ok(Operand::Const(self.constant()?)),
            Token::Text(_) | Token::Sign(_) | Token::Dots | Token::Arrow | Token::End => {
                self.expected("an operand")
            }
        }
    }
    pub(super) fn operands(&mut self) -> Read<Vec<Operand>> {
        self.listed(Self::operand)
    }
    /// Whether a constant that is a word is next.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self.peek(), Token::Word(word)
            if matches!(word.as_str(), "true" | "false") || float(word).is_some())
    }
    pub(super) fn constant(&mut self) -> Read<ScalarValue> {
        let start = self.position();
        let is_negative = self.eat('-');
        let token = self.peek().clone();
        let found = match &token {
            Token::Number(digits) if !is_negative => number(digits),
            Token::Word(word) if word == "true" && !is_negative => Some(true.into()),
            Token::Word(word) if word == "false" && !is_negative => Some(false.into()),
            Token::Word(word) => match float(word) {
                Some((scalar, "inf")) => {
                    let x = if is_negative { f64::NEG_INFINITY } else { f64::INFINITY };
                    Some(scalar.from_f64(x))
                }
                Some((Scalar::F32, "nan")) if !is_negative => Some(f32::NAN.into()),
                Some((Scalar::F64, "nan")) if !is_negative => Some(f64::NAN.into()),
                Some((scalar, "bits")) if !is_negative => {
                    self.at += 1;
                    return self.bits(scalar);
                }
                _ => None,
            },
            _ => None,
        };
        let Some(constant) = found else {
            let what = format!("expected a constant, found {}", token.describe());
            return Err(ReadError::at(start, what));
        };
        self.at += 1;
        Ok(constant)
    }
    /// The bits of a float, in parentheses.
    fn bits(&mut self, scalar: Scalar) -> Read<ScalarValue> {
        self.expect('(')?;
        let digits = if let Token::Number(word) = self.peek() { word.strip_prefix("0x") } else { None };
        let is_plain = |d: &&str| d.bytes().all(|b| b.is_ascii_hexdigit());
        let bits = digits.filter(is_plain).and_then(|d| u64::from_str_radix(d, 16).ok());
        let value = match (scalar, bits) {
            (Scalar::F32, Some(bits)) => u32::try_from(bits).ok().map(|b| f32::from_bits(b).into()),
            (_, bits) => bits.map(|b| f64::from_bits(b).into()),
        };
        let Some(value) = value else { return self.expected(&format!("the bits of an {scalar}")) };
        self.at += 1;
        self.expect(')')?;
        Ok(value)
    }

    // Facts

    /// Facts in brackets.
    pub(super) fn facts(&mut self) -> Read<Facts> {
        self.expect('[')?;
        let mut facts = Facts::default();
        self.list(']', |r| r.fact(&mut facts))?;
        Ok(facts)
    }
    fn fact(&mut self, facts: &mut Facts) -> Read<()> {
        if self.eat_word("tape") {
            facts.tape = true;
        } else if self.eat_word("owned") {
            facts.owned = Some(Reg::new(self.count()?));
        } else if self.eat_word("choice") {
            facts.choice = true;
        } else if self.eat_word("at") {
            facts.place = Some(self.span()?);
        } else if self.eat_word("for") {
            facts.site = Some(Box::new(self.site()?));
        } else if self.eat_word("array") {
            facts.array = Some(Box::new(self.shape()?));
        } else {
            return self.expected("`tape`, `owned`, `choice`, `at`, `for` or `array`");
        }
        Ok(())
    }
    fn shape(&mut self) -> Read<Shape> {
        self.expect_word("of")?;
        let ty = self.ty()?;
        self.expect('[')?;
        let sizes = self.list(']', |r| {
            if !r.is_register() {
                return r.operand();
            }
            let start = r.position();
            let (hint, reg) = r.register()?;
            r.sizes.push((start, hint, reg));
            Ok(Operand::Reg(reg))
        })?;
        Ok(Shape { ty, sizes })
    }
    fn site(&mut self) -> Read<Site> {
        let start = self.position();
        let name = self.string()?;
        let Some(construct) = CONSTRUCTS.into_iter().find(|c| *c == name) else {
            return Err(ReadError::at(start, format!("there is no construct {name:?}")));
        };
        let sweep = if self.eat_word("primal") {
            Sweep::Primal
        } else if self.eat_word("reverse") {
            Sweep::Reverse
        } else if self.eat_word("both") {
            Sweep::Both
        } else {
            return self.expected("`primal`, `reverse` or `both`");
        };
        let span = if matches!(self.peek(), Token::Number(_)) { Some(self.span()?) } else { None };
        Ok(Site { span, construct, sweep })
    }

    // Messages

    /// The number of a message.
    pub(super) fn message_number(&mut self) -> Read<usize> {
        let found = if let Token::Word(word) = self.peek() { word.strip_prefix("message_") } else { None };
        let Some(number) = found.and_then(id) else { return self.expected("a message") };
        self.at += 1;
        Ok(number)
    }
    pub(super) fn message(&mut self) -> Read<Message> {
        let (start, next) = (self.position(), self.module.messages.len());
        if self.message_number()? != next {
            return Err(ReadError::at(start, format!("the next message is message_{next}")));
        }
        self.expect(':')?;
        let start = self.position();
        let name = self.word("a kind of messages")?;
        let Some(kind) = KINDS.into_iter().find(|kind| format!("{kind:?}") == name) else {
            return Err(ReadError::at(start, format!("there is no kind of messages {name:?}")));
        };
        let text = self.text()?;
        let span = if self.eat_word("at") { Some(self.span()?) } else { None };
        Ok(Message { kind, text, span })
    }
    fn text(&mut self) -> Read<Text> {
        let start = self.position();
        match self.word("a text")?.as_str() {
            "plain" => Ok(Text::Plain(self.string()?)),
            "index" => Ok(Text::Index(self.count()?)),
            "shapes" => Ok(Text::Shapes(self.string()?, self.count()?)),
            "slice" => Ok(Text::Slice),
            "reshape" => Ok(Text::Reshape(self.count()?)),
            word => {
                let message =
                    format!("expected `plain`, `index`, `shapes`, `slice` or `reshape`, found `{word}`");
                Err(ReadError::at(start, message))
            }
        }
    }
}

/// The type of a float that is a word, and what it is: `f64.nan`.
fn float(word: &str) -> Option<(Scalar, &str)> {
    let (scalar, what) = word.split_once('.')?;
    let scalar = Scalar::from_name(scalar).filter(|s| s.is_float())?;
    matches!(what, "nan" | "inf" | "bits").then_some((scalar, what))
}

/// A number with its suffix.
fn number(word: &str) -> Option<ScalarValue> {
    let (digits, suffix) = word.split_at(word.find(['f', 'i', 'u'])?);
    match Scalar::from_name(suffix)? {
        Scalar::F32 => digits.parse::<f32>().ok().filter(|x| x.is_finite()).map(Into::into),
        Scalar::F64 => digits.parse::<f64>().ok().filter(|x| x.is_finite()).map(Into::into),
        Scalar::I8 => digits.parse::<i8>().ok().map(Into::into),
        Scalar::I16 => digits.parse::<i16>().ok().map(Into::into),
        Scalar::I32 => digits.parse::<i32>().ok().map(Into::into),
        Scalar::I64 => digits.parse::<i64>().ok().map(Into::into),
        Scalar::U8 => digits.parse::<u8>().ok().map(Into::into),
        Scalar::U16 => digits.parse::<u16>().ok().map(Into::into),
        Scalar::U32 => digits.parse::<u32>().ok().map(Into::into),
        Scalar::U64 => digits.parse::<u64>().ok().map(Into::into),
        Scalar::Bool => None,
    }
}
