//! Text to tokens.
//!
//! Assumes nothing about the text. Guarantees: the tokens are in order, do not overlap, and end with one
//! [`TokenKind::Eof`]; every piece of text that is no token gives a diagnostic and is left out. Time O(text).

use crate::ast::{Liftedness, Suffix};
use pullback_base::{Code, Diagnostic, FileId, Span};

/// The reserved words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Assert,
    Case,
    Def,
    Do,
    Else,
    Entry,
    For,
    If,
    In,
    Let,
    Loop,
    Match,
    Then,
    Type,
    While,
    With,
    /// A word of Futhark's module language: `module`, `open`, `import`, `local`, `include`, `val`.
    Import,
    Module,
}

/// The kinds of token. Names and operators have their text in the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Ident,
    Keyword(Keyword),
    True,
    False,
    Operator,
    Int(u64, Option<Suffix>),
    Float(f64, Option<Suffix>),
    Char(u8),
    String(Vec<u8>),
    /// `'a`; the name starts after the quote and the mark.
    TypeVariable(Liftedness),
    /// `#tag`.
    Constructor,
    /// `#[`.
    AttributeOpen,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Dot,
    DotDot,
    Ellipsis,
    UpTo,
    DownTo,
    Colon,
    ColonGreater,
    Equals,
    Arrow,
    Backslash,
    Backquote,
    Question,
    Tilde,
    Eof,
}

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether it is the first thing on its line, without indentation.
    pub(crate) at_line_start: bool,
}

/// Splits a text into tokens.
pub(crate) fn lex(file: FileId, text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { file, text, bytes: text.as_bytes(), at: 0, tokens: vec![], diagnostics: vec![] };
    while lexer.skip_blank() {
        lexer.token();
    }
    let end = text.len();
    lexer.tokens.push(Token { kind: TokenKind::Eof, start: end, end, at_line_start: true });
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
}

fn is_operator_byte(byte: u8) -> bool {
    matches!(byte, b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'!' | b'>' | b'<' | b'|' | b'&' | b'^' | b'.')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'\''
}

fn keyword(text: &str) -> TokenKind {
    let keyword = match text {
        "true" => return TokenKind::True,
        "false" => return TokenKind::False,
        "assert" => Keyword::Assert,
        "case" => Keyword::Case,
        "def" => Keyword::Def,
        "do" => Keyword::Do,
        "else" => Keyword::Else,
        "entry" => Keyword::Entry,
        "for" => Keyword::For,
        "if" => Keyword::If,
        "in" => Keyword::In,
        "let" => Keyword::Let,
        "loop" => Keyword::Loop,
        "match" => Keyword::Match,
        "then" => Keyword::Then,
        "type" => Keyword::Type,
        "while" => Keyword::While,
        "with" => Keyword::With,
        "import" => Keyword::Import,
        "module" | "open" | "local" | "include" | "val" => Keyword::Module,
        _ => return TokenKind::Ident,
    };
    TokenKind::Keyword(keyword)
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&mut self, start: usize, message: String, hint: &str) {
        let span = Span::new(self.file, start, self.at.max(start));
        self.diagnostics.push(Diagnostic::error(Code::Lexical, span, message).hint(hint));
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        let at_line_start = start == 0 || self.bytes[start - 1] == b'\n';
        self.tokens.push(Token { kind, start, end: self.at, at_line_start });
    }

    fn take(&mut self, kind: TokenKind, length: usize) {
        let start = self.at;
        self.at += length;
        self.push(kind, start);
    }

    /// Skips white space and comments; whether something is left.
    fn skip_blank(&mut self) -> bool {
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'-' if self.byte(1) == b'-' => {
                    while self.at < self.bytes.len() && self.byte(0) != b'\n' {
                        self.at += 1;
                    }
                }
                _ => return true,
            }
        }
        false
    }

    fn token(&mut self) {
        let start = self.at;
        match self.byte(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.skip_name();
                let kind = keyword(&self.text[start..self.at]);
                self.push(kind, start);
            }
            b'0'..=b'9' => self.number(),
            b'(' => self.take(TokenKind::LeftParen, 1),
            b')' => self.take(TokenKind::RightParen, 1),
            b'[' => self.take(TokenKind::LeftBracket, 1),
            b']' => self.take(TokenKind::RightBracket, 1),
            b'{' => self.take(TokenKind::LeftBrace, 1),
            b'}' => self.take(TokenKind::RightBrace, 1),
            b',' => self.take(TokenKind::Comma, 1),
            b'\\' => self.take(TokenKind::Backslash, 1),
            b'`' => self.take(TokenKind::Backquote, 1),
            b'?' => self.take(TokenKind::Question, 1),
            b'~' => self.take(TokenKind::Tilde, 1),
            b':' if self.byte(1) == b'>' => self.take(TokenKind::ColonGreater, 2),
            b':' => self.take(TokenKind::Colon, 1),
            b'.' => self.dots(),
            b'#' => self.hash(),
            b'\'' => self.quote(),
            b'"' => self.string(),
            b'-' if self.byte(1) == b'>' => self.take(TokenKind::Arrow, 2),
            byte if is_operator_byte(byte) => {
                while is_operator_byte(self.byte(0)) {
                    self.at += 1;
                }
                let kind =
                    if &self.text[start..self.at] == "=" { TokenKind::Equals } else { TokenKind::Operator };
                self.push(kind, start);
            }
            _ => self.unknown(),
        }
    }

    fn skip_name(&mut self) {
        while is_name_byte(self.byte(0)) {
            self.at += 1;
        }
    }

    /// One diagnostic for a run of characters that begin no token.
    fn unknown(&mut self) {
        let start = self.at;
        let known = |c: char| c.is_ascii_graphic() || c.is_ascii_whitespace();
        let rest = &self.text[start..];
        // An ASCII character that begins no token (`$`, `@`, `;`, a control character) stands alone in its message.
        let length = rest
            .find(known)
            .filter(|&n| n > 0)
            .or_else(|| if rest.starts_with(known) { rest.chars().next().map(char::len_utf8) } else { None });
        self.at = start + length.unwrap_or(rest.len());
        let shown: String = self.text[start..self.at].chars().take(20).flat_map(char::escape_debug).collect();
        self.error(
            start,
            format!("`{shown}` is no token of the language"),
            "remove it; outside comments and strings only ASCII letters, digits and the usual signs may stand",
        );
    }

    fn dots(&mut self) {
        let (kind, length) = match (self.byte(1), self.byte(2)) {
            (b'.', b'.') => (TokenKind::Ellipsis, 3),
            (b'.', b'<') => (TokenKind::UpTo, 3),
            (b'.', b'>') => (TokenKind::DownTo, 3),
            (b'.', _) => (TokenKind::DotDot, 2),
            _ => (TokenKind::Dot, 1),
        };
        self.take(kind, length);
    }

    fn hash(&mut self) {
        let start = self.at;
        if self.byte(1) == b'[' {
            return self.take(TokenKind::AttributeOpen, 2);
        }
        self.at += 1;
        self.skip_name();
        if self.at == start + 1 {
            self.error(
                start,
                "`#` without a name".to_string(),
                "write a constructor as `#name` and an attribute as `#[name]`",
            );
        } else {
            self.push(TokenKind::Constructor, start);
        }
    }

    /// `'c'` or a type variable.
    fn quote(&mut self) {
        let start = self.at;
        if let Some((value, length)) = self.character(1)
            && self.byte(1 + length) == b'\''
        {
            self.at += length + 2;
            return self.push(TokenKind::Char(value), start);
        }
        let liftedness = match self.byte(1) {
            b'~' => Liftedness::SizeLifted,
            b'^' => Liftedness::Lifted,
            _ => Liftedness::Unlifted,
        };
        self.at += if liftedness == Liftedness::Unlifted { 1 } else { 2 };
        let name = self.at;
        self.skip_name();
        if self.at == name {
            self.error(
                start,
                "a quote that begins neither a character nor a type variable".to_string(),
                "write a character as 'c' (one byte) and a type variable as 'name",
            );
        } else {
            self.push(TokenKind::TypeVariable(liftedness), start);
        }
    }

    /// The possibly escaped one-byte character at a distance, and its length in the text.
    fn character(&self, ahead: usize) -> Option<(u8, usize)> {
        match self.byte(ahead) {
            0 | b'\n' | b'\'' => None,
            b'\\' => {
                let value = match self.byte(ahead + 1) {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'0' => 0,
                    b'\\' => b'\\',
                    b'\'' => b'\'',
                    b'"' => b'"',
                    _ => return None,
                };
                Some((value, 2))
            }
            byte if byte.is_ascii() => Some((byte, 1)),
            _ => None,
        }
    }

    fn string(&mut self) {
        let start = self.at;
        let mut value = Vec::new();
        self.at += 1;
        loop {
            if self.at >= self.bytes.len() || self.byte(0) == b'\n' {
                self.error(
                    start,
                    "this string does not end on its line".to_string(),
                    "add the closing quotation mark",
                );
                break;
            }
            if self.byte(0) == b'"' {
                self.at += 1;
                break;
            }
            match self.character(0) {
                Some((byte, length)) => {
                    value.push(byte);
                    self.at += length;
                }
                None if self.byte(0) == b'\\' => {
                    let from = self.at;
                    self.at += 1;
                    self.error(from, "an unknown escape".to_string(), r#"known are \n \t \r \0 \\ \' \""#);
                }
                None => {
                    value.push(self.byte(0));
                    self.at += 1;
                }
            }
        }
        self.push(TokenKind::String(value), start);
    }

    fn digits(&mut self, radix: u32) -> String {
        let start = self.at;
        while (self.byte(0) as char).is_digit(radix) || self.byte(0) == b'_' {
            self.at += 1;
        }
        self.text[start..self.at].chars().filter(|&c| c != '_').collect()
    }

    fn number(&mut self) {
        let start = self.at;
        let after_dot =
            self.tokens.last().is_some_and(|t| t.kind == TokenKind::Dot && t.end == start && t.start < start);
        if after_dot {
            // `x.0.1` projects twice; no fraction may begin here.
            let digits = self.digits(10);
            return self.integer(&digits, 10, None, start);
        }
        let radix = match (self.byte(0), self.byte(1)) {
            (b'0', b'x' | b'X') => 16,
            (b'0', b'b' | b'B') => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
        }
        let whole = self.digits(radix);
        if radix == 16 && (matches!(self.byte(0), b'p' | b'P') || self.fraction_follows(16)) {
            return self.hex_float(&whole, start);
        }
        let mut decimal = whole.clone();
        let mut is_float = false;
        if radix == 10 {
            if self.fraction_follows(10) {
                is_float = true;
                self.at += 1;
                decimal = format!("{decimal}.{}", self.digits(10));
            }
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
                is_float = true;
                let sign_text = if sign == 1 { (self.byte(1) as char).to_string() } else { String::new() };
                self.at += 1 + sign;
                decimal = format!("{decimal}e{sign_text}{}", self.digits(10));
            }
        }
        let suffix = self.suffix(start);
        if is_float || (radix == 10 && suffix.is_some_and(is_float_suffix)) {
            // A decimal numeral always parses; infinity for one beyond the range, as in IEEE rounding.
            self.float(decimal.parse().unwrap_or(f64::NAN), suffix, start);
        } else {
            self.integer(&whole, radix, suffix, start);
        }
    }

    fn fraction_follows(&self, radix: u32) -> bool {
        self.byte(0) == b'.' && (self.byte(1) as char).is_digit(radix)
    }

    fn hex_float(&mut self, whole: &str, start: usize) {
        let mut value = 0.0f64;
        let add = |value: &mut f64, digits: &str| {
            for c in digits.chars() {
                *value = *value * 16.0 + f64::from(c.to_digit(16).unwrap_or(0));
            }
        };
        add(&mut value, whole);
        let mut exponent = 0i32;
        if self.byte(0) == b'.' {
            self.at += 1;
            let fraction = self.digits(16);
            add(&mut value, &fraction);
            exponent -= 4 * i32::try_from(fraction.len()).unwrap_or(i32::MAX / 8).min(i32::MAX / 8);
        }
        if matches!(self.byte(0), b'p' | b'P') {
            self.at += 1;
            let negative = self.byte(0) == b'-';
            if matches!(self.byte(0), b'+' | b'-') {
                self.at += 1;
            }
            let power: i32 = self.digits(10).parse().unwrap_or(0);
            let power = power.min(100_000);
            exponent += if negative { -power } else { power };
        }
        let suffix = self.suffix(start);
        self.float(value * f64::powi(2.0, exponent), suffix, start);
    }

    /// The letters right after a number.
    fn suffix(&mut self, start: usize) -> Option<Suffix> {
        let from = self.at;
        self.skip_name();
        let text = &self.text[from..self.at];
        if text.is_empty() {
            return None;
        }
        let suffix = Suffix::from_text(text);
        if suffix.is_none() {
            let shown: String = text.chars().take(20).collect();
            self.error(
                start,
                format!("`{shown}` after a number is no type"),
                "put a space before a name; the suffixes are i8..i64, u8..u64, f16, f32, f64",
            );
        }
        suffix
    }

    fn float(&mut self, value: f64, suffix: Option<Suffix>, start: usize) {
        if suffix.is_some_and(|s| !is_float_suffix(s)) {
            self.error(
                start,
                "a number with a fraction or exponent has an integer suffix".to_string(),
                "use f32 or f64, or write the number without fraction",
            );
        }
        let suffix = suffix.filter(|&s| is_float_suffix(s));
        self.push(TokenKind::Float(value, suffix), start);
    }

    fn integer(&mut self, digits: &str, radix: u32, suffix: Option<Suffix>, start: usize) {
        let value = u64::from_str_radix(digits, radix).unwrap_or_else(|_| {
            let (message, hint) = if digits.is_empty() {
                ("a number without digits", "write at least one digit after the prefix")
            } else {
                ("this integer does not fit in 64 bits", "the greatest is 18446744073709551615u64")
            };
            self.error(start, message.to_string(), hint);
            0
        });
        self.push(TokenKind::Int(value, suffix), start);
    }
}

fn is_float_suffix(suffix: Suffix) -> bool {
    matches!(suffix, Suffix::F16 | Suffix::F32 | Suffix::F64)
}
