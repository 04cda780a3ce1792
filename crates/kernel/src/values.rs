//! Values of core as words, and back.

use crate::ir::Ty;
use crate::run::{Fingerprint, Memory, Pointer, Word};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::value::{Array, Buffer};
use pullback_core::{Type, Value, count_elements};
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

fn wrong(what: impl Into<String>) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::Internal, what)
}

/// The words of a value; arrays go into memory.
pub fn to_words(
    memory: &mut Memory,
    value: &Value,
    ty: &Type,
    out: &mut Vec<Word>,
) -> Result<(), RuntimeError> {
    match (value, ty) {
        (Value::Scalar(x), _) => out.push(Word::Scalar(*x)),
        (Value::Tuple(items), Type::Tuple(types)) => {
            for (item, t) in items.iter().zip(types.iter()) {
                to_words(memory, item, t, out)?;
            }
        }
        (Value::Sum(k, fields), Type::Sum(variants)) => {
            out.push(Word::Scalar(ScalarValue::I64(*k as i64)));
            for (alternative, variant) in variants.iter().enumerate() {
                for (f, t) in variant.fields.iter().enumerate() {
                    match fields.get(f) {
                        Some(field) if alternative == *k => to_words(memory, field, t, out)?,
                        _ => out.extend(nothing(t)),
                    }
                }
            }
        }
        (Value::Array(a), Type::Array(_)) => {
            let base = ty.base();
            let leaves = types(base);
            let mut columns: Vec<Vec<Word>> = vec![Vec::new(); leaves.len()];
            for element in a.elements() {
                let mut words = Vec::new();
                to_words(memory, &element, base, &mut words)?;
                for (column, word) in columns.iter_mut().zip(words) {
                    column.push(word);
                }
            }
            for (column, ty) in columns.into_iter().zip(leaves) {
                out.push(Word::Pointer(memory.put(ty, column)));
            }
            let sizes: Vec<i64> = a.shape.iter().map(|n| *n as i64).collect();
            out.extend(sizes.iter().map(|n| Word::Scalar(ScalarValue::I64(*n))));
            let strides = (0..sizes.len()).map(|k| count_elements(&a.shape[k + 1..]) as i64);
            out.extend(strides.map(|n| Word::Scalar(ScalarValue::I64(n))));
        }
        (value, ty) => return Err(wrong(format!("{value:?} is not of type {ty:?}"))),
    }
    Ok(())
}

/// The types of the words of a value (of a type without recursion).
fn types(ty: &Type) -> Vec<Ty> {
    match ty {
        Type::Scalar(s) => vec![Ty::Scalar(*s)],
        Type::Tuple(items) => items.iter().flat_map(types).collect(),
        Type::Sum(variants) => {
            let fields = variants.iter().flat_map(|v| &v.fields).flat_map(types);
            std::iter::once(Ty::I64).chain(fields).collect()
        }
        Type::Array(_) => {
            let mut out = vec![Ty::Pointer; types(ty.base()).len()];
            out.extend(vec![Ty::I64; 2 * ty.rank()]);
            out
        }
        Type::Named(_) | Type::Acc(_) => Vec::new(),
    }
}

fn nothing(ty: &Type) -> Vec<Word> {
    let zero = |t: Ty| match t {
        Ty::Scalar(s) | Ty::Lanes(s, _) => Word::Scalar(s.zero()),
        Ty::Pointer => Word::Pointer(Pointer::NULL),
    };
    types(ty).into_iter().map(zero).collect()
}

/// The value with these words.
pub fn from_words(
    memory: &Memory,
    ty: &Type,
    words: &mut dyn Iterator<Item = Word>,
) -> Result<Value, RuntimeError> {
    built(&|p, at| memory.get(p, at), ty, words)
}

/// The value with these words, where each float is its fingerprint ([`Fingerprint::as_float`]).
pub fn fingerprints(
    memory: &Memory,
    ty: &Type,
    words: impl IntoIterator<Item = (Word, Fingerprint)>,
) -> Result<Value, RuntimeError> {
    let instead = |(word, print): (Word, Fingerprint)| match word {
        Word::Scalar(x) => Word::Scalar(print.as_float(x.scalar()).unwrap_or(x)),
        Word::Pointer(_) => word,
    };
    let element = |p, at| Ok(instead((memory.get(p, at)?, memory.fingerprint(p, at)?)));
    built(&element, ty, &mut words.into_iter().map(instead))
}

/// The value with these words; `element` reads memory.
fn built(
    element: &dyn Fn(Pointer, i64) -> Result<Word, RuntimeError>,
    ty: &Type,
    words: &mut dyn Iterator<Item = Word>,
) -> Result<Value, RuntimeError> {
    let mut next = || words.next().ok_or_else(|| wrong("too few words"));
    let scalar = |w: Word| match w {
        Word::Scalar(x) => Ok(x),
        Word::Pointer(_) => Err(wrong("a pointer where a scalar is needed")),
    };
    Ok(match ty {
        Type::Scalar(_) => Value::Scalar(scalar(next()?)?),
        Type::Tuple(items) => {
            Value::Tuple(items.iter().map(|t| built(element, t, words)).collect::<Result<_, _>>()?)
        }
        Type::Sum(variants) => {
            let tag = scalar(next()?)?.as_i64();
            let mut chosen = Vec::new();
            for (k, v) in variants.iter().enumerate() {
                for t in &v.fields {
                    if k as i64 == tag {
                        chosen.push(built(element, t, words)?);
                    } else {
                        for _ in types(t) {
                            words.next();
                        }
                    }
                }
            }
            Value::Sum(tag as usize, Arc::new(chosen))
        }
        Type::Array(_) => array(element, ty, words)?,
        Type::Named(_) | Type::Acc(_) => return Err(wrong("a value without words")),
    })
}

fn array(
    element: &dyn Fn(Pointer, i64) -> Result<Word, RuntimeError>,
    ty: &Type,
    words: &mut dyn Iterator<Item = Word>,
) -> Result<Value, RuntimeError> {
    let base = ty.base();
    let mut pointers = Vec::new();
    for _ in types(base) {
        match words.next() {
            Some(Word::Pointer(p)) => pointers.push(p),
            _ => return Err(wrong("a pointer is missing")),
        }
    }
    let mut number = || match words.next() {
        Some(Word::Scalar(x)) if x.scalar() == Scalar::I64 => Ok(x.as_i64()),
        _ => Err(wrong("a size is missing")),
    };
    let dims = (0..ty.rank()).map(|_| number()).collect::<Result<Vec<i64>, _>>()?;
    let strides = (0..ty.rank()).map(|_| number()).collect::<Result<Vec<i64>, _>>()?;
    let shape = dims.iter().map(|n| usize::try_from(*n).map_err(|_| wrong("a negative size")));
    let shape = shape.collect::<Result<Vec<usize>, _>>()?;
    let count = count_elements(&shape);
    let mut buffer = Buffer::with_capacity(base.scalar(), count);
    for flat in 0..count {
        let (mut rest, mut at) = (flat as i64, 0);
        for (n, stride) in dims.iter().zip(&strides).rev() {
            at += rest % n * stride;
            rest /= n;
        }
        let words: Vec<Word> = pointers.iter().map(|p| element(*p, at)).collect::<Result<_, _>>()?;
        buffer.push(built(element, base, &mut words.into_iter())?);
    }
    Ok(Value::Array(Array::new(shape, buffer)))
}
