//! Values outside the program: what users write and read, in every format.
//!
//! [`Data`] is a value as text formats see it; [`encode`] turns it into the flattened core values of an entry point's
//! parameter, [`decode`] back. Formats: [`json`], [`text`] (Futhark's text values), [`csv`](csv_format), [`npy`].

pub mod csv_format;
pub mod json;
pub mod npy;
pub mod text;

use pullback_base::Symbol;
use pullback_core::{Array, Buffer, EntryType, Value, count_elements};
use pullback_prim::{Scalar, ScalarValue};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Deepest nesting of a value that is read.
pub const MAX_DEPTH: usize = 200;

/// A value as formats see it.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A scalar; numbers without a suffix are `i64` or `f64` and fit any type that can hold them.
    Scalar(ScalarValue),
    /// Absent (`null` in JSON): read as NaN where a float is expected.
    Null,
    /// An array, or a tuple where the format does not distinguish them.
    List(Vec<Data>),
    /// A tuple.
    Tuple(Vec<Data>),
    /// A record.
    Record(Vec<(String, Data)>),
    /// A value of a sum type.
    Tagged(String, Vec<Data>),
    /// An array of scalars of any rank, kept flat. An empty one keeps its shape.
    Dense(Array),
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputError {
    /// Where in the value: `params[3].alpha`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl InputError {
    /// An error at the root of a value.
    pub fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }
    fn within(mut self, step: &str) -> Self {
        self.path = format!("{step}{}", self.path);
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "at {}: {}", self.path.trim_start_matches('.'), self.message)
        }
    }
}
impl std::error::Error for InputError {}

/// The sizes that the names in array types stand for, found while values are read.
pub type Sizes = BTreeMap<Symbol, (usize, String)>;

/// The type as the user would write it.
pub fn type_text(ty: &EntryType) -> String {
    match ty {
        EntryType::Scalar(s) => s.to_string(),
        EntryType::Array(n, t) => {
            format!("[{}]{}", n.as_ref().map_or("", |n| n.as_str()), type_text(t))
        }
        EntryType::Tuple(ts) => format!("({})", ts.iter().map(type_text).collect::<Vec<_>>().join(", ")),
        EntryType::Record(fs) => {
            let fields: Vec<String> = fs.iter().map(|(n, t)| format!("{n}: {}", type_text(t))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        EntryType::Sum(vs) => {
            let alternative = |(n, ts): &(Symbol, Vec<EntryType>)| {
                ts.iter().fold(format!("#{n}"), |s, t| format!("{s} {}", type_text(t)))
            };
            vs.iter().map(alternative).collect::<Vec<_>>().join(" | ")
        }
    }
}

/// How many core values a value of this type is.
pub fn leaf_count(ty: &EntryType) -> usize {
    match ty {
        EntryType::Scalar(_) | EntryType::Sum(_) => 1,
        EntryType::Array(_, t) => leaf_count(t),
        EntryType::Tuple(ts) => ts.iter().map(leaf_count).sum(),
        EntryType::Record(fs) => fs.iter().map(|(_, t)| leaf_count(t)).sum(),
    }
}

/// The core values of `data` as a value of type `ty`. `sizes` collects what named sizes stand for and is checked
/// against what is known already; `what` names the value in messages.
pub fn encode(ty: &EntryType, data: &Data, sizes: &mut Sizes, what: &str) -> Result<Vec<Value>, InputError> {
    let mut out = Vec::new();
    encode_into(ty, data, sizes, what, &mut out)?;
    Ok(out)
}

/// The core values of all arguments of an entry point, one for each parameter. An array without rows has the inner sizes that any of the
/// arguments says.
///
/// # Errors
/// The name of the parameter, and what is wrong with its argument. Cost: linear in the arguments.
pub fn encode_all(
    params: &[(Symbol, EntryType)],
    given: &[&Data],
) -> Result<Vec<Value>, (Symbol, InputError)> {
    let mut sizes = Sizes::new();
    let mut one = |((name, ty), data): (&(Symbol, EntryType), &&Data)| {
        encode(ty, data, &mut sizes, name.as_str()).map_err(|e| (name.clone(), e))
    };
    let mut all = params.iter().zip(given).map(&mut one).collect::<Result<Vec<_>, _>>()?;
    for (values, argument) in all.iter_mut().zip(params.iter().zip(given)) {
        if values.iter().any(has_no_rows) {
            *values = one(argument)?;
        }
    }
    Ok(all.concat())
}

/// A direction as large as the value that it belongs to: an array without rows, as `[]` is written, has the inner sizes of that.
pub fn as_large_as(direction: Value, value: &Value) -> Value {
    match (direction, value) {
        (Value::Array(mut d), Value::Array(v))
            if d.shape.first() == Some(&0)
                && v.shape.first() == Some(&0)
                && d.shape.len() == v.shape.len() =>
        {
            d.shape = v.shape.clone();
            Value::Array(d)
        }
        (direction, _) => direction,
    }
}

/// Whether there is an array without elements in a value.
fn has_no_rows(value: &Value) -> bool {
    match value {
        Value::Array(a) if a.count() == 0 => true,
        Value::Array(a) => matches!(&*a.data, Buffer::Boxed(items) if items.iter().any(has_no_rows)),
        Value::Tuple(items) => items.iter().any(has_no_rows),
        Value::Sum(_, items) => items.iter().any(has_no_rows),
        Value::Scalar(_) | Value::Acc(_) => false,
    }
}

fn encode_into(
    ty: &EntryType,
    data: &Data,
    sizes: &mut Sizes,
    what: &str,
    out: &mut Vec<Value>,
) -> Result<(), InputError> {
    let mismatch = || Err(InputError::new(format!("expected {}, found {}", type_text(ty), describe(data))));
    match (ty, data) {
        (EntryType::Scalar(s), _) => {
            out.push(Value::Scalar(scalar(*s, data)?));
            Ok(())
        }
        (EntryType::Array(..), Data::List(items)) => encode_array(ty, items, sizes, what, out),
        (EntryType::Array(..), Data::Dense(array)) => encode_dense(ty, array, sizes, what, out),
        (EntryType::Tuple(ts), Data::Tuple(items) | Data::List(items)) if ts.len() == items.len() => {
            let pairs = ts.iter().zip(items).enumerate();
            for (i, (t, d)) in pairs {
                encode_into(t, d, sizes, what, out).map_err(|e| e.within(&format!(".{i}")))?;
            }
            Ok(())
        }
        (EntryType::Record(fs), Data::Record(given)) => {
            if let Some((name, _)) = given.iter().find(|(n, _)| !fs.iter().any(|(f, _)| f.as_str() == n)) {
                let known: Vec<&str> = fs.iter().map(|(f, _)| f.as_str()).collect();
                let known = known.join(", ");
                return Err(InputError::new(format!("unknown field `{name}`; the fields are {known}")));
            }
            for (name, t) in fs {
                let Some((_, d)) = given.iter().find(|(n, _)| n == name.as_str()) else {
                    return Err(InputError::new(format!(
                        "field `{name}` of type {} is missing",
                        type_text(t)
                    )));
                };
                encode_into(t, d, sizes, what, out).map_err(|e| e.within(&format!(".{name}")))?;
            }
            Ok(())
        }
        (EntryType::Sum(vs), Data::Tagged(tag, payload)) => {
            let Some(k) = vs.iter().position(|(n, _)| n.as_str() == tag) else {
                let known: Vec<String> = vs.iter().map(|(n, _)| format!("#{n}")).collect();
                let known = known.join(", ");
                return Err(InputError::new(format!("unknown alternative #{tag}; there are {known}")));
            };
            let fields = &vs[k].1;
            if fields.len() != payload.len() {
                let (want, got) = (fields.len(), payload.len());
                return Err(InputError::new(format!("#{tag} takes {want} values, found {got}")));
            }
            let mut values = Vec::new();
            for (t, d) in fields.iter().zip(payload) {
                encode_into(t, d, sizes, what, &mut values).map_err(|e| e.within(&format!(".#{tag}")))?;
            }
            out.push(Value::Sum(k, Arc::new(values)));
            Ok(())
        }
        (EntryType::Array(..) | EntryType::Tuple(_) | EntryType::Record(_) | EntryType::Sum(_), _) => {
            mismatch()
        }
    }
}

fn describe(data: &Data) -> String {
    match data {
        Data::Scalar(s) => {
            format!("the {} {s}", if s.scalar() == Scalar::Bool { "truth value" } else { "number" })
        }
        Data::Null => "null".into(),
        Data::List(xs) => format!("a list of {}", xs.len()),
        Data::Tuple(xs) => format!("a tuple of {}", xs.len()),
        Data::Record(fs) => {
            format!("a record with fields {}", fs.iter().map(|f| f.0.as_str()).collect::<Vec<_>>().join(", "))
        }
        Data::Tagged(tag, _) => format!("#{tag}"),
        Data::Dense(a) => {
            let shape: String = a.shape.iter().map(|n| format!("[{n}]")).collect();
            format!("an array {shape}{}", a.data.scalar().map_or("?".into(), |s| s.to_string()))
        }
    }
}

/// The scalar as a value of type `to`; integers must be in range, floats round.
fn scalar(to: Scalar, data: &Data) -> Result<ScalarValue, InputError> {
    let x = match data {
        Data::Scalar(x) => *x,
        Data::Null if to.is_float() => return Ok(to.from_f64(f64::NAN)),
        Data::Null | Data::List(_) | Data::Tuple(_) | Data::Record(_) | Data::Tagged(..) | Data::Dense(_) => {
            return Err(InputError::new(format!("expected {to}, found {}", describe(data))));
        }
    };
    let from = x.scalar();
    let wrong = |why: &str| Err(InputError::new(format!("{x} {why} {to}")));
    match (from, to) {
        _ if from == to => Ok(x),
        (Scalar::Bool, _) | (_, Scalar::Bool) => wrong("is no value of type"),
        _ if to.is_float() => Ok(match x {
            ScalarValue::U64(x) => to.from_f64(x as f64),
            _ if from.is_float() => to.from_f64(x.as_f64()),
            _ => to.from_i64(x.as_i64()),
        }),
        _ if from.is_float() => wrong("is a float, expected"),
        (Scalar::U64, _) if x.as_i64() < 0 => wrong("is out of range for"),
        (_, Scalar::U64) if x.as_i64() < 0 => wrong("is out of range for"),
        _ if to.from_i64(x.as_i64()).as_i64() != x.as_i64() => wrong("is out of range for"),
        _ => Ok(to.from_i64(x.as_i64())),
    }
}

fn note_size(name: &Option<Symbol>, n: usize, sizes: &mut Sizes, what: &str) -> Result<(), InputError> {
    let Some(name) = name else { return Ok(()) };
    if let Ok(constant) = name.as_str().parse::<usize>() {
        return if constant == n {
            Ok(())
        } else {
            Err(InputError::new(format!("expected an array of size {constant}, found size {n}")))
        };
    }
    match sizes.get(name) {
        Some((m, origin)) if *m != n => {
            Err(InputError::new(format!("size {name} is {n} here but {m} in `{origin}`")))
        }
        Some(_) => Ok(()),
        None => {
            sizes.insert(name.clone(), (n, what.to_string()));
            Ok(())
        }
    }
}

/// The number of array dimensions and the scalar type, if `ty` is an array of scalars.
fn dense_type(ty: &EntryType) -> Option<(usize, Scalar)> {
    match ty {
        EntryType::Scalar(s) => Some((0, *s)),
        EntryType::Array(_, t) => dense_type(t).map(|(n, s)| (n + 1, s)),
        EntryType::Tuple(_) | EntryType::Record(_) | EntryType::Sum(_) => None,
    }
}

/// The sizes that an array has where the value shows none, since there are no rows: constants and sizes that are known, or 0.
fn implied(ty: &EntryType, sizes: &Sizes) -> Vec<usize> {
    let mut out = Vec::new();
    let mut t = ty;
    while let EntryType::Array(name, element) = t {
        out.push(implied_size(name, sizes));
        t = element;
    }
    out
}

fn implied_size(name: &Option<Symbol>, sizes: &Sizes) -> usize {
    let size = name.as_ref().and_then(|name| {
        let known = || sizes.get(name).map(|(n, _)| *n);
        name.as_str().parse().ok().or_else(known)
    });
    size.unwrap_or(0)
}

fn encode_array(
    ty: &EntryType,
    items: &[Data],
    sizes: &mut Sizes,
    what: &str,
    out: &mut Vec<Value>,
) -> Result<(), InputError> {
    let EntryType::Array(name, element) = ty else {
        return Err(InputError::new("expected an array type"));
    };
    note_size(name, items.len(), sizes, what)?;
    if let Some((rank, s)) = dense_type(ty) {
        let mut shape = vec![None; rank];
        let mut buffer = Buffer::with_capacity(Some(s), items.len());
        fill(ty, items, s, &mut shape, &mut buffer, sizes, what)?;
        let shape =
            shape.into_iter().zip(implied(ty, sizes)).map(|(n, implied)| n.unwrap_or(implied)).collect();
        out.push(Value::Array(Array::new(shape, buffer)));
        return Ok(());
    }
    let mut columns: Vec<Vec<Value>> = vec![Vec::with_capacity(items.len()); leaf_count(element)];
    for (i, d) in items.iter().enumerate() {
        let values = encode(element, d, sizes, what).map_err(|e| e.within(&format!("[{i}]")))?;
        for (column, v) in columns.iter_mut().zip(values) {
            column.push(v);
        }
    }
    let leaves = leaf_types(element, sizes);
    for (column, (shape, s)) in columns.into_iter().zip(leaves) {
        out.push(stack(column, shape, s)?);
    }
    Ok(())
}

/// The shape that is implied and the scalar type (`None`: boxed) of each core value of a value of this type.
fn leaf_types(ty: &EntryType, sizes: &Sizes) -> Vec<(Vec<usize>, Option<Scalar>)> {
    match ty {
        EntryType::Scalar(s) => vec![(Vec::new(), Some(*s))],
        EntryType::Sum(_) => vec![(Vec::new(), None)],
        EntryType::Array(name, t) => {
            let n = implied_size(name, sizes);
            let inside = leaf_types(t, sizes).into_iter();
            inside.map(|(shape, s)| (std::iter::once(n).chain(shape).collect(), s)).collect()
        }
        EntryType::Tuple(ts) => ts.iter().flat_map(|t| leaf_types(t, sizes)).collect(),
        EntryType::Record(fs) => fs.iter().flat_map(|(_, t)| leaf_types(t, sizes)).collect(),
    }
}

/// One array of values of equal shape; of no values, which would have this shape.
fn stack(values: Vec<Value>, implied: Vec<usize>, s: Option<Scalar>) -> Result<Value, InputError> {
    let mut shape = vec![values.len()];
    let inner = match values.first() {
        Some(Value::Array(a)) => a.shape.clone(),
        Some(Value::Scalar(_) | Value::Sum(..) | Value::Tuple(_) | Value::Acc(_)) => Vec::new(),
        None => implied,
    };
    shape.extend(&inner);
    let mut buffer = Buffer::with_capacity(s, values.len());
    for (i, v) in values.into_iter().enumerate() {
        match v {
            Value::Array(a) if a.shape == inner => a.elements().for_each(|x| buffer.push(x)),
            Value::Array(a) => {
                let message = format!("irregular array: element {i} has shape {:?}, not {inner:?}", a.shape);
                return Err(InputError::new(message));
            }
            scalar => buffer.push(scalar),
        }
    }
    Ok(Value::Array(Array::new(shape, buffer)))
}

fn fill(
    ty: &EntryType,
    items: &[Data],
    s: Scalar,
    shape: &mut [Option<usize>],
    buffer: &mut Buffer,
    sizes: &mut Sizes,
    what: &str,
) -> Result<(), InputError> {
    let (EntryType::Array(name, element), Some((n, rest))) = (ty, shape.split_first_mut()) else {
        return Err(InputError::new("expected an array type"));
    };
    note_size(name, items.len(), sizes, what)?;
    match n {
        Some(n) if *n != items.len() => {
            let message = format!("irregular array: a row of size {} beside one of size {n}", items.len());
            return Err(InputError::new(message));
        }
        _ => *n = Some(items.len()),
    }
    for (i, d) in items.iter().enumerate() {
        let step = |e: InputError| e.within(&format!("[{i}]"));
        match (&**element, d) {
            (EntryType::Scalar(_), _) => buffer.push(Value::Scalar(scalar(s, d).map_err(step)?)),
            (_, Data::List(inner)) => {
                fill(element, inner, s, rest, buffer, sizes, what).map_err(step)?;
            }
            _ => {
                let message = format!("expected {}, found {}", type_text(element), describe(d));
                return Err(step(InputError::new(message)));
            }
        }
    }
    Ok(())
}

fn encode_dense(
    ty: &EntryType,
    array: &Array,
    sizes: &mut Sizes,
    what: &str,
    out: &mut Vec<Value>,
) -> Result<(), InputError> {
    let found = describe(&Data::Dense(array.clone()));
    let Some((rank, s)) = dense_type(ty).filter(|(rank, _)| *rank == array.shape.len()) else {
        return Err(InputError::new(format!("expected {}, found {found}", type_text(ty))));
    };
    let mut t = ty;
    for &n in &array.shape {
        if let EntryType::Array(name, element) = t {
            note_size(name, n, sizes, what)?;
            t = element;
        }
    }
    if array.data.scalar() == Some(s) {
        out.push(Value::Array(array.clone()));
        return Ok(());
    }
    let mut buffer = Buffer::with_capacity(Some(s), array.count());
    for (i, x) in array.elements().enumerate() {
        let Value::Scalar(x) = x else {
            return Err(InputError::new(format!("expected numbers, found {found}")));
        };
        let x = scalar(s, &Data::Scalar(x)).map_err(|e| e.within(&format!("[element {i}]")))?;
        buffer.push(Value::Scalar(x));
    }
    debug_assert_eq!(rank, array.shape.len());
    out.push(Value::Array(Array::new(array.shape.clone(), buffer)));
    Ok(())
}

/// The value of type `ty` that these core values are. Arrays of scalars stay dense.
pub fn decode(ty: &EntryType, values: &[Value]) -> Data {
    let mut values = values.iter();
    decode_from(ty, &mut values)
}

fn decode_from<'v>(ty: &EntryType, values: &mut impl Iterator<Item = &'v Value>) -> Data {
    match ty {
        EntryType::Scalar(_) => match values.next() {
            Some(Value::Scalar(s)) => Data::Scalar(*s),
            // A discrete part of a cotangent is the unit value.
            Some(Value::Tuple(_) | Value::Sum(..) | Value::Array(_) | Value::Acc(_)) | None => Data::Null,
        },
        EntryType::Tuple(ts) => Data::Tuple(ts.iter().map(|t| decode_from(t, values)).collect()),
        EntryType::Record(fs) => {
            Data::Record(fs.iter().map(|(n, t)| (n.to_string(), decode_from(t, values))).collect())
        }
        EntryType::Sum(vs) => match values.next() {
            Some(Value::Sum(k, payload)) => {
                let mut fields = payload.iter();
                let (name, types) = &vs[*k];
                let payload = types.iter().map(|t| decode_from(t, &mut fields)).collect();
                Data::Tagged(name.to_string(), payload)
            }
            Some(Value::Scalar(_) | Value::Tuple(_) | Value::Array(_) | Value::Acc(_)) | None => Data::Null,
        },
        EntryType::Array(_, element) => {
            let columns: Vec<&Value> = values.take(leaf_count(element)).collect();
            if dense_type(ty).is_some()
                && let Some(Value::Array(a)) = columns.first()
            {
                return Data::Dense(a.clone());
            }
            let length = match columns.first() {
                Some(Value::Array(a)) => a.shape[0],
                _ => 0,
            };
            let row = |i: usize| -> Data {
                let row: Vec<Value> = columns
                    .iter()
                    .map(|c| match c {
                        Value::Array(a) => a.at(&[i]),
                        other => Value::clone(other),
                    })
                    .collect();
                decode(element, &row)
            };
            Data::List((0..length).map(row).collect())
        }
    }
}

/// A dense array as nested lists, for formats that print them; rank 0 gives the scalar.
pub fn nested(array: &Array, shape: &[usize], offset: usize) -> Data {
    match shape.split_first() {
        None => match array.element(offset) {
            Value::Scalar(s) => Data::Scalar(s),
            _ => Data::Null,
        },
        Some((&n, rest)) => {
            let size = count_elements(rest);
            Data::List((0..n).map(|i| nested(array, rest, offset + i * size)).collect())
        }
    }
}
