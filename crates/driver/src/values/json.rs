//! JSON: records by field name, tuples and arrays as arrays, sums as `{"tag": payload}`.
//!
//! Source: RFC 8259; the conventions are those of the language reference. A sum with no payload is `{"tag": []}` (also
//! read from the string `"tag"`), one value stands for itself, several are an array. JSON has no NaN or infinity: they
//! are written as `null`, and [`write()`] says how many there were.

use super::{Data, InputError, nested};
use pullback_core::EntryType;
use pullback_prim::{Scalar, ScalarValue};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// Reads a value; `ty` tells records from sums.
pub fn read(ty: &EntryType, text: &str) -> Result<Data, InputError> {
    let Strict(json) = serde_json::from_str(text).map_err(|e| InputError::new(format!("not JSON: {e}")))?;
    Ok(from_json(ty, json))
}

/// A value in whose objects no name comes twice.
// Tests compare it with what `serde_json` reads.
#[doc(hidden)]
#[derive(Debug)]
pub struct Strict(pub Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Strict, D::Error> {
        from.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::from(n))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(Json::from(n))
    }
    fn visit_f64<E>(self, x: f64) -> Result<Json, E> {
        Ok(Json::from(x))
    }
    fn visit_str<E>(self, s: &str) -> Result<Json, E> {
        Ok(Json::from(s))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::Array(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if all.contains_key(&name) {
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            let Strict(value) = fields.next_value()?;
            all.insert(name, value);
        }
        Ok(Json::Object(all))
    }
}

/// The value as seen from its type.
pub fn from_json(ty: &EntryType, json: Json) -> Data {
    match (ty, json) {
        (_, Json::Null) => Data::Null,
        (_, Json::Bool(b)) => Data::Scalar(ScalarValue::Bool(b)),
        (_, Json::Number(n)) => Data::Scalar(number(&n)),
        (EntryType::Array(_, t), Json::Array(items)) => {
            Data::List(items.into_iter().map(|j| from_json(t, j)).collect())
        }
        (EntryType::Tuple(ts), Json::Array(items)) if ts.len() == items.len() => {
            Data::Tuple(ts.iter().zip(items).map(|(t, j)| from_json(t, j)).collect())
        }
        (_, Json::Array(items)) => {
            let any = EntryType::Tuple(Vec::new());
            Data::List(items.into_iter().map(|j| from_json(&any, j)).collect())
        }
        (EntryType::Sum(_), Json::String(tag)) => {
            Data::Tagged(tag.trim_start_matches('#').to_string(), Vec::new())
        }
        (_, Json::String(s)) => Data::Tagged(s, Vec::new()),
        (EntryType::Sum(vs), Json::Object(fields)) if fields.len() == 1 => {
            let mut fields = fields.into_iter();
            let (tag, payload) = fields.next().unwrap_or_default();
            // The source language writes `#tag`; both forms are read.
            let tag = tag.trim_start_matches('#').to_string();
            let types = vs.iter().find(|(n, _)| n.as_str() == tag).map(|v| v.1.clone()).unwrap_or_default();
            let payload = match (types.as_slice(), payload) {
                ([t], j) => vec![from_json(t, j)],
                (ts, Json::Array(items)) if ts.len() == items.len() => {
                    ts.iter().zip(items).map(|(t, j)| from_json(t, j)).collect()
                }
                (_, j) => vec![from_json(&EntryType::Tuple(Vec::new()), j)],
            };
            Data::Tagged(tag, payload)
        }
        (EntryType::Record(fs), Json::Object(fields)) => {
            let any = EntryType::Tuple(Vec::new());
            let field = |(name, j): (String, Json)| {
                let t = fs.iter().find(|(n, _)| n.as_str() == name).map_or(&any, |f| &f.1);
                let data = from_json(t, j);
                (name, data)
            };
            Data::Record(fields.into_iter().map(field).collect())
        }
        (_, Json::Object(fields)) => {
            let any = EntryType::Tuple(Vec::new());
            Data::Record(fields.into_iter().map(|(n, j)| (n, from_json(&any, j))).collect())
        }
    }
}

fn number(n: &Number) -> ScalarValue {
    if let Some(x) = n.as_i64() {
        ScalarValue::I64(x)
    } else if let Some(x) = n.as_u64() {
        ScalarValue::U64(x)
    } else {
        ScalarValue::F64(n.as_f64().unwrap_or(f64::NAN))
    }
}

/// The JSON of a value, and how many NaNs and infinities became `null`.
pub fn write(data: &Data) -> (Json, usize) {
    let mut lost = 0;
    let json = to_json(data, &mut lost);
    (json, lost)
}

fn to_json(data: &Data, lost: &mut usize) -> Json {
    match data {
        Data::Null => Json::Null,
        Data::Scalar(s) => scalar_json(*s, lost),
        Data::List(items) | Data::Tuple(items) => {
            Json::Array(items.iter().map(|d| to_json(d, lost)).collect())
        }
        Data::Record(fields) => {
            let map: Map<String, Json> = fields.iter().map(|(n, d)| (n.clone(), to_json(d, lost))).collect();
            Json::Object(map)
        }
        Data::Tagged(tag, payload) => {
            let value = match payload.as_slice() {
                [one] => to_json(one, lost),
                many => Json::Array(many.iter().map(|d| to_json(d, lost)).collect()),
            };
            Json::Object(Map::from_iter([(tag.clone(), value)]))
        }
        Data::Dense(a) => to_json(&nested(a, &a.shape, 0), lost),
    }
}

fn scalar_json(s: ScalarValue, lost: &mut usize) -> Json {
    match s {
        ScalarValue::Bool(b) => Json::Bool(b),
        ScalarValue::U64(x) => Json::Number(x.into()),
        // The shortest text of an f32 is shorter than that of the same number as f64.
        ScalarValue::F32(x) if x.is_finite() => {
            let shortest: f64 = x.to_string().parse().unwrap_or(f64::from(x));
            Number::from_f64(shortest).map_or(Json::Null, Json::Number)
        }
        _ if s.scalar() == Scalar::F64 || s.scalar() == Scalar::F32 => match Number::from_f64(s.as_f64()) {
            Some(n) => Json::Number(n),
            None => {
                *lost += 1;
                Json::Null
            }
        },
        _ => Json::Number(s.as_i64().into()),
    }
}
