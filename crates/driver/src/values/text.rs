//! Futhark's text values: `[1.5, 2.0]`, `(1, true)`, `{x = 1i32}`, `#some 2`, `empty([0][3]f64)`, `f64.nan`.
//!
//! Source: the text value format of the Futhark manual, with records and sums in the syntax of the source language.

use super::{Data, InputError, MAX_DEPTH, nested};
use pullback_core::{Array, Buffer};
use pullback_prim::{Scalar, ScalarValue};

/// Reads one value that fills the whole text (comments `-- ..` and white space aside).
pub fn read(text: &str) -> Result<Data, InputError> {
    let mut values = read_all(text)?;
    match (values.pop(), values.is_empty()) {
        (Some(v), true) => Ok(v),
        (None, _) => Err(InputError::new("no value in the text")),
        (Some(_), false) => Err(InputError::new("more than one value in the text")),
    }
}

/// Reads the values of a text, one after the other.
pub fn read_all(text: &str) -> Result<Vec<Data>, InputError> {
    let mut p = Parser { text, at: 0 };
    let mut out = Vec::new();
    p.space();
    while p.at < text.len() {
        out.push(p.value(0)?);
        p.space();
    }
    Ok(out)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("--") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }
    fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }
    fn expect(&mut self, c: char) -> Result<(), InputError> {
        if self.eat(c) { Ok(()) } else { Err(self.error(&format!("expected `{c}`"))) }
    }
    fn error(&self, message: &str) -> InputError {
        let line = self.text[..self.at].matches('\n').count() + 1;
        let near: String = self.rest().chars().take(20).collect();
        let near = if near.is_empty() { "the end".to_string() } else { format!("`{near}`") };
        InputError::new(format!("line {line}: {message} at {near}"))
    }
    fn word(&mut self) -> &'t str {
        let start = self.at;
        let more = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-' | '\'');
        let mut previous = ' ';
        for c in self.text[start..].chars() {
            // A sign belongs to a word only at its start or after an exponent.
            let sign = matches!(c, '+' | '-') && !matches!(previous, ' ' | 'e' | 'E' | 'p' | 'P');
            if !more(c) || sign {
                break;
            }
            previous = c;
            self.at += c.len_utf8();
        }
        &self.text[start..self.at]
    }
    fn items(&mut self, close: char, depth: usize) -> Result<Vec<Data>, InputError> {
        let mut items = Vec::new();
        while !self.eat(close) {
            if !items.is_empty() {
                self.expect(',')?;
                if self.eat(close) {
                    break;
                }
            }
            items.push(self.value(depth + 1)?);
        }
        Ok(items)
    }
    fn value(&mut self, depth: usize) -> Result<Data, InputError> {
        if depth > MAX_DEPTH {
            return Err(self.error("the value is nested too deeply"));
        }
        if self.eat('[') {
            return Ok(Data::List(self.items(']', depth)?));
        }
        if self.eat('(') {
            let mut items = self.items(')', depth)?;
            return Ok(if items.len() == 1 { items.remove(0) } else { Data::Tuple(items) });
        }
        if self.eat('{') {
            return self.record(depth);
        }
        if self.eat('#') {
            let tag = self.word().to_string();
            let mut payload = Vec::new();
            loop {
                self.space();
                match self.peek() {
                    None | Some(',' | ')' | ']' | '}') => return Ok(Data::Tagged(tag, payload)),
                    Some(_) => payload.push(self.value(depth + 1)?),
                }
            }
        }
        let start = self.at;
        let word = self.word().to_string();
        if word == "empty" {
            return self.empty();
        }
        scalar(&word).map(Data::Scalar).map_err(|expected| {
            self.at = start;
            self.error(expected)
        })
    }
    fn record(&mut self, depth: usize) -> Result<Data, InputError> {
        let mut fields = Vec::new();
        while !self.eat('}') {
            if !fields.is_empty() {
                self.expect(',')?;
            }
            self.space();
            let name = self.word().to_string();
            self.expect('=')?;
            fields.push((name, self.value(depth + 1)?));
        }
        Ok(Data::Record(fields))
    }
    fn empty(&mut self) -> Result<Data, InputError> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while self.eat('[') {
            self.space();
            let n = self.word().trim_end_matches("i64").parse();
            shape.push(n.map_err(|_| self.error("expected a size"))?);
            self.expect(']')?;
        }
        self.space();
        let s = Scalar::from_name(self.word()).ok_or_else(|| self.error("expected a scalar type"))?;
        self.expect(')')?;
        if shape.iter().all(|&n: &usize| n > 0) {
            return Err(self.error("an empty array has a dimension of size 0"));
        }
        Ok(Data::Dense(Array::new(shape, Buffer::with_capacity(Some(s), 0))))
    }
}

/// The scalar that a word denotes, or what was expected in its place.
fn scalar(word: &str) -> Result<ScalarValue, &'static str> {
    const VALUE: &str = "expected a value";
    const SMALLER: &str = "expected an integer in the range of its type (a float has a point or an exponent)";
    match word {
        "true" => return Ok(ScalarValue::Bool(true)),
        "false" => return Ok(ScalarValue::Bool(false)),
        _ => {}
    }
    let (negative, magnitude) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    for (s, name) in [(Scalar::F64, "f64"), (Scalar::F32, "f32")] {
        match magnitude.strip_prefix(name) {
            Some(".nan") => return Ok(s.from_f64(f64::NAN)),
            Some(".inf") => return Ok(s.from_f64(sign * f64::INFINITY)),
            _ => {}
        }
    }
    if !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(VALUE);
    }
    let suffix =
        Scalar::ALL.into_iter().filter(|s| *s != Scalar::Bool).find(|s| magnitude.ends_with(s.name()));
    let digits = suffix.map_or(magnitude, |s| &magnitude[..magnitude.len() - s.name().len()]);
    let digits = digits.replace('_', "");
    let hex = digits.strip_prefix("0x").map(|d| i128::from_str_radix(d, 16));
    let binary = digits.strip_prefix("0b").map(|d| i128::from_str_radix(d, 2));
    let integer = hex.or(binary).unwrap_or_else(|| digits.parse::<i128>()).ok();
    let integer = integer.map(|x| if negative { -x } else { x });
    match (suffix, integer) {
        (Some(s), Some(x)) if s.is_integer() => {
            // `-1u32` is the number with these bits, as in Futhark; what no bits of the type stand for is refused.
            let value = s.from_i64(x as i64);
            let bits = 8 * s.bytes() as u32;
            let (least, most) = (-(1i128 << (bits - 1)), (1i128 << bits) - 1);
            let most = if s.is_signed() { most >> 1 } else { most };
            if (least..=most).contains(&x) { Ok(value) } else { Err(SMALLER) }
        }
        (None, Some(x)) => match (i64::try_from(x), u64::try_from(x)) {
            (Ok(x), _) => Ok(ScalarValue::I64(x)),
            (_, Ok(x)) => Ok(ScalarValue::U64(x)),
            _ => Err(SMALLER),
        },
        (Some(Scalar::F32), _) => {
            digits.parse::<f32>().map(|x| ScalarValue::F32(x * sign as f32)).map_err(|_| VALUE)
        }
        (Some(Scalar::F64) | None, _) => {
            digits.parse::<f64>().map(|x| ScalarValue::F64(x * sign)).map_err(|_| VALUE)
        }
        _ => Err(VALUE),
    }
}

/// The text of a value, without line breaks.
pub fn write(data: &Data) -> String {
    match data {
        Data::Null => "()".into(),
        Data::Scalar(s) => s.to_string(),
        Data::List(items) => format!("[{}]", join(items)),
        Data::Tuple(items) => format!("({})", join(items)),
        Data::Record(fields) => {
            let fields: Vec<String> = fields.iter().map(|(n, d)| format!("{n} = {}", write(d))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Data::Tagged(tag, payload) => payload.iter().fold(format!("#{tag}"), |s, d| {
            // A payload that is itself a sum with payload needs parentheses to be read back.
            let text = write(d);
            if matches!(d, Data::Tagged(_, p) if !p.is_empty()) {
                format!("{s} ({text})")
            } else {
                format!("{s} {text}")
            }
        }),
        Data::Dense(a) if a.count() == 0 => {
            let shape: String = a.shape.iter().map(|n| format!("[{n}]")).collect();
            format!("empty({shape}{})", a.data.scalar().map_or("i32", Scalar::name))
        }
        Data::Dense(a) => write(&nested(a, &a.shape, 0)),
    }
}

fn join(items: &[Data]) -> String {
    items.iter().map(write).collect::<Vec<_>>().join(", ")
}
