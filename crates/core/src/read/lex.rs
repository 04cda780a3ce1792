//! Tokens of the text form of core.

use pullback_base::{Code, Diagnostic, FileId, Span};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word: letters, digits, `_`, `'` and `.`, not starting with a digit.
    Word(String),
    /// A number with its sign and suffix, as written.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// Any other character that has a meaning.
    Sign(char),
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
            Token::Arrow => "`->`".into(),
            Token::End => "the end of the text".into(),
        }
    }
}

/// All tokens with their spans; the last one is [`Token::End`].
pub(super) fn lex(file: FileId, text: &str) -> Result<Vec<(Token, Span)>, Diagnostic> {
    let mut out = Vec::new();
    let mut lexer = Lexer { file, text, at: 0 };
    loop {
        lexer.skip();
        let start = lexer.at;
        let token = lexer.token()?;
        let end = token == Token::End;
        out.push((token, Span::new(file, start, lexer.at)));
        if end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    fn take_while(&mut self, f: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !f(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
    fn skip(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest().starts_with("//") {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }
    fn fail<T>(&self, start: usize, message: impl Into<String>) -> Result<T, Diagnostic> {
        Err(Diagnostic::error(Code::Lexical, Span::new(self.file, start, self.at), message))
    }

    fn token(&mut self) -> Result<Token, Diagnostic> {
        let Some(c) = self.peek() else { return Ok(Token::End) };
        let rest = self.rest();
        if rest.starts_with("->") {
            self.at += 2;
            return Ok(Token::Arrow);
        }
        let negative = c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if c.is_ascii_digit() || negative {
            return Ok(Token::Number(self.number()));
        }
        if c.is_ascii_alphabetic() || c == '_' {
            let word = self.take_while(|c| c.is_ascii_alphanumeric() || "_'.".contains(c));
            return Ok(Token::Word(word.to_string()));
        }
        if c == '"' {
            return self.string();
        }
        let start = self.at;
        self.at += c.len_utf8();
        if "(){}[],:=<#|-".contains(c) {
            return Ok(Token::Sign(c));
        }
        self.fail(start, format!("the character {c:?} has no meaning in core text"))
    }

    fn number(&mut self) -> String {
        let start = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
        }
        let digits = |c: char| c.is_ascii_digit();
        self.take_while(digits);
        if self.peek() == Some('.') {
            self.at += 1;
            self.take_while(digits);
        }
        if self.peek() == Some('e') {
            self.at += 1;
            if matches!(self.peek(), Some('-' | '+')) {
                self.at += 1;
            }
            self.take_while(digits);
        }
        self.take_while(|c| c.is_ascii_alphanumeric());
        self.text.get(start..self.at).unwrap_or("").to_string()
    }

    fn string(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(c) = self.peek() else { return self.fail(start, "this string has no end") };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(Token::Text(out)),
                '\\' => match self.escape() {
                    Some(c) => out.push(c),
                    None => return self.fail(start, "this string holds an unknown escape sequence"),
                },
                c => out.push(c),
            }
        }
    }
    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        match c {
            'n' => Some('\n'),
            't' => Some('\t'),
            '"' | '\\' => Some(c),
            'u' => {
                let digits = self.rest().strip_prefix('{')?.split('}').next()?;
                self.at += digits.len() + 2;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
            }
            _ => None,
        }
    }
}
