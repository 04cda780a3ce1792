//! CSV: a table of numbers as an array of rank 2, or a single column or row as one of rank 1.
//!
//! Source: RFC 4180. A first line in which no field is a number is a header and is skipped.

use super::{Data, InputError, text};
use pullback_core::{Array, Buffer, Value};
use pullback_prim::{Scalar, ScalarValue};

/// Reads a table. `rank` is the rank wanted: 2 keeps rows and columns, 1 wants a single row or column.
pub fn read(text: &str, rank: usize) -> Result<Data, InputError> {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(csv::Trim::All).comment(Some(b'#'));
    let mut reader = builder.from_reader(text.as_bytes());
    let (mut rows, mut columns, mut has_names) = (0, 0, false);
    let mut buffer = Buffer::with_capacity(Some(Scalar::F64), 0);
    for (line, record) in reader.records().enumerate() {
        let record = record.map_err(|e| InputError::new(format!("not CSV: {e}")))?;
        let fields: Vec<Option<f64>> = record.iter().map(field).collect();
        if line == 0 && fields.iter().all(Option::is_none) {
            has_names = true;
            continue;
        }
        if rows > 0 && fields.len() != columns {
            let message =
                format!("line {}: {} fields, the lines before have {columns}", line + 1, fields.len());
            return Err(InputError::new(message));
        }
        (rows, columns) = (rows + 1, fields.len());
        for (k, x) in fields.into_iter().enumerate() {
            let Some(x) = x else {
                let shown = &record[k];
                return Err(InputError::new(format!(
                    "line {}, field {}: `{shown}` is no number",
                    line + 1,
                    k + 1
                )));
            };
            buffer.push(Value::Scalar(ScalarValue::F64(x)));
        }
    }
    if rows == 0 && has_names {
        return Err(InputError::new(
            "no numbers: the only line is taken for the names of columns (fields are separated by commas)",
        ));
    }
    match rank {
        2 => Ok(Data::Dense(Array::new(vec![rows, columns], buffer))),
        1 if rows == 1 || columns <= 1 => Ok(Data::Dense(Array::new(vec![rows * columns], buffer))),
        _ => Err(InputError::new(format!(
            "a table of {rows} rows and {columns} columns is no array of rank {rank}"
        ))),
    }
}

fn field(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// The table of an array of rank 1 (a column) or 2; other values are an error.
pub fn write(data: &Data) -> Result<String, InputError> {
    let Data::Dense(a) = data else {
        return Err(InputError::new("only an array of numbers can be written as CSV"));
    };
    let columns = match a.shape.as_slice() {
        [_] => 1,
        [_, columns] => *columns,
        shape => return Err(InputError::new(format!("an array of rank {} is no table", shape.len()))),
    };
    let mut out = String::new();
    for (i, x) in a.elements().enumerate() {
        if let Value::Scalar(x) = x {
            let shown = if x.scalar().is_float() { format!("{:?}", x.as_f64()) } else { untyped(x) };
            out += &shown;
        }
        out.push(if (i + 1) % columns == 0 { '\n' } else { ',' });
    }
    Ok(out)
}

fn untyped(x: ScalarValue) -> String {
    let shown = text::write(&Data::Scalar(x));
    shown.trim_end_matches(x.scalar().name()).to_string()
}
