//! Tokens of kernel text.

use super::{Position, Read, ReadError};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Letters, digits, `_` and `'`, not starting with a digit; a `.` inside stands before a letter.
    Word(String),
    /// A number with its sign and suffix, as written.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// A character that has a meaning.
    Sign(char),
    /// `..`
    Dots,
    /// `->`
    Arrow,
    /// The end.
    End,
}

impl Token {
    /// How messages call it.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(w) | Token::Number(w) => format!("`{w}`"),
            Token::Text(t) => format!("the string {t:?}"),
            Token::Sign(c) => format!("`{c}`"),
            Token::Dots => "`..`".to_string(),
            Token::Arrow => "`->`".to_string(),
            Token::End => "the end of the text".to_string(),
        }
    }
}

/// All tokens with their places; the last one is [`Token::End`].
pub(super) fn lex(text: &str) -> Read<Vec<(Token, Position)>> {
    let mut out = Vec::new();
    let mut lexer = Lexer { rest: text, position: Position { line: 1, column: 1 } };
    loop {
        lexer.skip();
        let start = lexer.position;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        out.push((token, start));
        if is_end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.position = match c {
            '\n' => Position { line: self.position.line + 1, column: 1 },
            _ => Position { column: self.position.column + 1, ..self.position },
        };
        Some(c)
    }
    fn take_while(&mut self, f: impl Fn(char) -> bool) -> &'a str {
        let before = self.rest;
        while self.peek().is_some_and(&f) {
            self.next();
        }
        before.get(..before.len() - self.rest.len()).unwrap_or("")
    }
    /// White space and comments.
    fn skip(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest.starts_with("//") {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }
    fn token(&mut self) -> Read<Token> {
        let start = self.position;
        let Some(c) = self.peek() else { return Ok(Token::End) };
        let after = |c: fn(char) -> bool| self.rest.chars().nth(1).is_some_and(c);
        if c.is_ascii_digit() || c == '-' && after(|c| c.is_ascii_digit()) {
            return Ok(Token::Number(self.number()));
        }
        if c.is_ascii_alphabetic() || c == '_' {
            return Ok(Token::Word(self.word()));
        }
        if c == '"' {
            return self.string();
        }
        self.next();
        match (c, self.peek()) {
            ('-', Some('>')) => {
                self.next();
                Ok(Token::Arrow)
            }
            ('.', Some('.')) => {
                self.next();
                Ok(Token::Dots)
            }
            _ if "(){}[],:=#+-*".contains(c) => Ok(Token::Sign(c)),
            _ => Err(ReadError::at(start, format!("the character {c:?} has no meaning in kernel text"))),
        }
    }
    fn word(&mut self) -> String {
        let mut out = String::new();
        loop {
            out += self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '\'');
            let mut next = self.rest.chars();
            if next.next() != Some('.') || !next.next().is_some_and(|c| c.is_ascii_alphabetic()) {
                return out;
            }
            out.extend(self.next());
        }
    }
    /// A sign, digits, a fraction, an exponent, a suffix; or digits to the base of 16 after `0x`.
    fn number(&mut self) -> String {
        let mut out = String::new();
        if self.peek() == Some('-') {
            out.extend(self.next());
        }
        let digits = |c: char| c.is_ascii_digit();
        out += self.take_while(digits);
        let mut next = self.rest.chars();
        if next.next() == Some('.') && next.next().is_some_and(digits) {
            out.extend(self.next());
            out += self.take_while(digits);
        }
        if self.peek() == Some('e') {
            out.extend(self.next());
            if matches!(self.peek(), Some('-' | '+')) {
                out.extend(self.next());
            }
        }
        out + self.take_while(|c| c.is_ascii_alphanumeric())
    }
    fn string(&mut self) -> Read<Token> {
        let start = self.position;
        let mut out = String::new();
        self.next();
        loop {
            match self.next() {
                Some('"') => return Ok(Token::Text(out)),
                Some('\\') => match self.escape() {
                    Some(c) => out.push(c),
                    None => return Err(ReadError::at(start, "this string holds an unknown escape sequence")),
                },
                Some(c) => out.push(c),
                None => return Err(ReadError::at(start, "this string has no end")),
            }
        }
    }
    fn escape(&mut self) -> Option<char> {
        match self.next()? {
            'n' => Some('\n'),
            c @ ('"' | '\\') => Some(c),
            'u' => {
                (self.next() == Some('{')).then_some(())?;
                let digits = self.take_while(|c| c.is_ascii_hexdigit());
                (self.next() == Some('}')).then_some(())?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
            }
            _ => None,
        }
    }
}
