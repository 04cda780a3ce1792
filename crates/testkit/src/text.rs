//! Values as text, the way suite files write them.
//!
//! Numbers, `true`/`false`, arrays `[..]`, tuples `(..)`, sums `#k payload..` by the number of the alternative. Numbers take
//! their type from where they are used; [`value`] reads what [`show`] prints, given the type.

use pullback_core::{Array, Buffer, Program, Type, Value};
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

/// The text of a value.
pub fn show(value: &Value) -> String {
    match value {
        Value::Scalar(s) => scalar(*s),
        Value::Tuple(vs) => format!("({})", vs.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Sum(k, vs) => {
            let fields: Vec<String> = vs.iter().map(show).collect();
            format!("#{k}({})", fields.join(", "))
        }
        Value::Array(a) => array(a, &a.shape, 0).0,
        Value::Acc(k) => format!("acc {k}"),
    }
}

fn scalar(s: ScalarValue) -> String {
    match s {
        ScalarValue::F64(x) => float(x),
        ScalarValue::F32(x) => float(x.into()),
        ScalarValue::Bool(x) => x.to_string(),
        ScalarValue::U64(x) => x.to_string(),
        _ => s.as_i64().to_string(),
    }
}

fn float(x: f64) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 { "inf".into() } else { "-inf".into() }
    } else {
        format!("{x:?}")
    }
}

fn array(a: &Array, shape: &[usize], at: usize) -> (String, usize) {
    match shape.split_first() {
        None => (show(&a.element(at)), at + 1),
        Some((n, rest)) => {
            let mut at = at;
            let mut parts = Vec::new();
            for _ in 0..*n {
                let (text, next) = array(a, rest, at);
                parts.push(text);
                at = next;
            }
            (format!("[{}]", parts.join(", ")), at)
        }
    }
}

/// A parsed text before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A number, truth value or one of `nan`, `inf`, `-inf`.
    Word(String),
    /// `[..]`
    Array(Vec<Tree>),
    /// `(..)`
    Tuple(Vec<Tree>),
    /// `#k` or `#name` and payload.
    Sum(String, Vec<Tree>),
}

/// The trees in a line of text, separated by blanks.
pub fn trees(text: &str) -> Result<Vec<Tree>, String> {
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    let mut out = Vec::new();
    loop {
        blanks(&chars, &mut at);
        if at == chars.len() {
            return Ok(out);
        }
        out.push(tree(&chars, &mut at)?);
    }
}

fn blanks(chars: &[char], at: &mut usize) {
    while chars.get(*at).is_some_and(|c| c.is_whitespace()) {
        *at += 1;
    }
}

fn tree(chars: &[char], at: &mut usize) -> Result<Tree, String> {
    blanks(chars, at);
    match chars.get(*at) {
        Some('[') => Ok(Tree::Array(list(chars, at, ']')?)),
        Some('(') => Ok(Tree::Tuple(list(chars, at, ')')?)),
        Some('#') => {
            *at += 1;
            let name = word(chars, at);
            let fields = if chars.get(*at) == Some(&'(') { list(chars, at, ')')? } else { Vec::new() };
            Ok(Tree::Sum(name, fields))
        }
        Some(_) => {
            let w = word(chars, at);
            if w.is_empty() { Err(format!("unexpected `{}`", chars[*at])) } else { Ok(Tree::Word(w)) }
        }
        None => Err("the text ends in the middle of a value".into()),
    }
}

fn word(chars: &[char], at: &mut usize) -> String {
    let start = *at;
    while chars.get(*at).is_some_and(|c| !c.is_whitespace() && !"[](),#".contains(*c)) {
        *at += 1;
    }
    chars[start..*at].iter().collect()
}

fn list(chars: &[char], at: &mut usize, end: char) -> Result<Vec<Tree>, String> {
    *at += 1;
    let mut out = Vec::new();
    loop {
        blanks(chars, at);
        match chars.get(*at) {
            Some(c) if *c == end => {
                *at += 1;
                return Ok(out);
            }
            Some(',') => *at += 1,
            Some(_) => out.push(tree(chars, at)?),
            None => return Err(format!("`{end}` is missing")),
        }
    }
}

/// A number of the text: decimal, `nan`, `inf`, or a fraction `1/3` (so that expectations can be exact).
pub fn number(word: &str) -> Option<f64> {
    match word {
        "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => match word.split_once('/') {
            Some((a, b)) => Some(a.parse::<f64>().ok()? / b.parse::<f64>().ok()?),
            None => word.parse().ok(),
        },
    }
}

/// The value of a tree at a type.
pub fn value(program: &Program, tree: &Tree, ty: &Type) -> Result<Value, String> {
    let wrong = || Err(format!("{tree:?} is no value of type {ty:?}"));
    match (ty, tree) {
        (Type::Scalar(s), Tree::Word(w)) => Ok(Value::Scalar(scalar_value(w, *s)?)),
        (Type::Tuple(ts), Tree::Tuple(vs)) if ts.len() == vs.len() => {
            let items = ts.iter().zip(vs).map(|(t, v)| value(program, v, t));
            Ok(Value::Tuple(items.collect::<Result<_, _>>()?))
        }
        (Type::Sum(_) | Type::Named(_), Tree::Sum(name, fields)) => {
            let Some(variants) = program.variants(ty) else { return wrong() };
            let by_name = variants.iter().position(|v| v.name.as_str() == name);
            let Some(k) = by_name.or_else(|| name.parse().ok()).filter(|k| *k < variants.len()) else {
                return wrong();
            };
            if variants[k].fields.len() != fields.len() {
                return wrong();
            }
            let items = variants[k].fields.iter().zip(fields).map(|(t, v)| value(program, v, t));
            Ok(Value::Sum(k, Arc::new(items.collect::<Result<_, _>>()?)))
        }
        (Type::Array(_), Tree::Array(_)) => {
            let mut shape = Vec::new();
            measure(tree, ty.rank(), &mut shape);
            let mut buffer = Buffer::with_capacity(ty.base().scalar(), shape.iter().product());
            fill(program, tree, ty, &shape, &mut buffer)?;
            Ok(Value::Array(Array::new(shape, buffer)))
        }
        _ => wrong(),
    }
}

fn measure(tree: &Tree, rank: usize, shape: &mut Vec<usize>) {
    if rank == 0 {
        return;
    }
    let items: &[Tree] = if let Tree::Array(items) = tree { items } else { &[] };
    shape.push(items.len());
    match items.first() {
        Some(first) => measure(first, rank - 1, shape),
        None => shape.extend(std::iter::repeat_n(0, rank - 1)),
    }
}

fn fill(
    program: &Program,
    tree: &Tree,
    ty: &Type,
    shape: &[usize],
    buffer: &mut Buffer,
) -> Result<(), String> {
    match (ty, tree, shape.split_first()) {
        (Type::Array(element), Tree::Array(items), Some((n, rest))) if items.len() == *n => {
            items.iter().try_for_each(|item| fill(program, item, element, rest, buffer))
        }
        (Type::Array(_), _, _) => Err(format!("an irregular array: {tree:?}")),
        _ => {
            buffer.push(value(program, tree, ty)?);
            Ok(())
        }
    }
}

fn scalar_value(w: &str, s: Scalar) -> Result<ScalarValue, String> {
    let wrong = || format!("`{w}` is no {s}");
    if s == Scalar::Bool {
        return w.parse().map(ScalarValue::Bool).map_err(|_| wrong());
    }
    if s.is_float() {
        return number(w).map(|x| s.from_f64(x)).ok_or_else(wrong);
    }
    if s == Scalar::U64 {
        return w.parse().map(ScalarValue::U64).map_err(|_| wrong());
    }
    let x: i64 = w.parse().map_err(|_| wrong())?;
    let v = s.from_i64(x);
    if v.as_i64() == x { Ok(v) } else { Err(wrong()) }
}
