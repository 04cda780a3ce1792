//! Tokens of the text form of lambda programs.

use pullback_prim::{Scalar, ScalarValue};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    Word,
    Number,
    /// Between quotes; the quotes belong to the token.
    Text,
    Sign,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'t str,
    pub(crate) start: usize,
}

/// The tokens of a text, the last of kind `End`. Err: position and message.
pub(crate) fn lex(text: &str) -> Result<Vec<Token<'_>>, (usize, String)> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let c = bytes[at];
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let after_dot = tokens.last().is_some_and(|t| t.text == ".");
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let (kind, len) = match c {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => (TokenKind::Word, word_len(rest)),
            b'0'..=b'9' if after_dot => {
                (TokenKind::Number, rest.bytes().take_while(u8::is_ascii_digit).count())
            }
            b'0'..=b'9' => (TokenKind::Number, number_len(rest)),
            b'-' if next.is_ascii_digit() => (TokenKind::Number, 1 + number_len(&rest[1..])),
            b'-' if next == b'f' => (TokenKind::Word, 1 + word_len(&rest[1..])),
            b'-' if next == b'>' || next == b'o' => (TokenKind::Sign, 2),
            b'"' => (TokenKind::Text, text_len(rest).ok_or((at, "a text without its end".to_string()))?),
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b',' | b':' | b'.' | b'=' | b'#'
            | b'|' | b'@' | b'$' => (TokenKind::Sign, 1),
            _ => {
                let found: String = rest.chars().take(1).collect();
                return Err((at, format!("unexpected character `{found}`")));
            }
        };
        tokens.push(Token { kind, text: &rest[..len], start: at });
        at += len;
    }
    tokens.push(Token { kind: TokenKind::End, text: "", start: text.len() });
    Ok(tokens)
}

fn word_len(rest: &str) -> usize {
    rest.bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'_' || *c == b'\'').count()
}

/// Digits, fraction, exponent, type suffix.
fn number_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut len = digits(0);
    if bytes.get(len) == Some(&b'.') && bytes.get(len + 1).is_some_and(u8::is_ascii_digit) {
        len += 1 + digits(len + 1);
    }
    if bytes.get(len) == Some(&b'e') {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'-' | b'+')));
        if bytes.get(len + 1 + sign).is_some_and(u8::is_ascii_digit) {
            len += 1 + sign + digits(len + 1 + sign);
        }
    }
    len + word_len(&rest[len..])
}

fn text_len(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(i + 1),
            _ => {}
        }
    }
    None
}

/// The text between quotes, without the escapes that `{:?}` writes.
pub(crate) fn unescape(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            'u' => {
                let code: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                out.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
            }
            c => out.push(c),
        }
    }
    Some(out)
}

/// The constant that a number with a type suffix denotes.
pub(crate) fn number(text: &str) -> Option<ScalarValue> {
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
