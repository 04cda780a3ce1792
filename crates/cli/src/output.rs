//! What commands print and write.

use crate::Failure;
use pullback_driver::files::write_whole;
use pullback_driver::values::{Data, csv_format, json, npy, text};
use std::path::Path;

/// Writes a file whole or not at all.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes, crate::interrupt::Unfinished::new)
        .map_err(|e| Failure::input(format!("cannot write {}: {e}", path.display())))
}

/// Writes a value in the format that the file's ending names.
pub(crate) fn write_value(path: &Path, data: &Data) -> Result<(), Failure> {
    let wrong = |e: pullback_driver::values::InputError| {
        Failure::input(format!("cannot write {}: {e}", path.display()))
    };
    let bytes = match path.extension().and_then(|e| e.to_str()).unwrap_or("") {
        "json" => {
            let (value, lost) = json::write(data);
            note_lost(lost);
            format!("{value}\n").into_bytes()
        }
        "csv" => csv_format::write(data).map_err(wrong)?.into_bytes(),
        "npy" => npy::write(data).map_err(wrong)?,
        "txt" | "out" | "" => format!("{}\n", text::write(data)).into_bytes(),
        other => {
            return Err(Failure::input(format!("unknown ending .{other}; there are .json .csv .npy .txt")));
        }
    };
    write_file(path, &bytes)
}

/// Says on standard error how many numbers JSON could not carry.
pub(crate) fn note_lost(lost: usize) {
    if lost > 0 {
        eprintln!("note: {lost} NaN or infinite values are written as null, because JSON has none");
    }
}

/// Prints a line on standard output; a closed pipe is a normal end.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(0);
    }
}

/// A value for people: whole if it is short, else its shape, norm and first entries.
pub(crate) fn summary(data: &Data) -> String {
    let whole = text::write(data);
    if whole.chars().count() <= 400 {
        return whole;
    }
    match data {
        Data::Dense(a) => {
            let shape: String = a.shape.iter().map(|n| format!("[{n}]")).collect();
            let scalar = a.data.scalar().map_or("", |s| s.name());
            let shown = |i: usize| match a.element(i) {
                pullback_core::Value::Scalar(s) => number(s),
                _ => "…".into(),
            };
            // The first and the last few: of a history, where it started and where it ended.
            let count = a.count();
            let first: Vec<String> = (0..count.min(6)).map(shown).collect();
            let last: Vec<String> = (count.saturating_sub(2).max(first.len())..count).map(shown).collect();
            let floats: Vec<f64> = pullback_core::Value::Array(a.clone()).floats();
            let norm =
                if floats.is_empty() { String::new() } else { format!(", norm {:.6e}", norm(&floats)) };
            format!("{shape}{scalar}: [{}, …, {}]{norm}", first.join(", "), last.join(", "))
        }
        Data::Tuple(items) => items.iter().map(|d| format!("\n  {}", summary(d))).collect(),
        Data::Record(fields) => fields.iter().map(|(n, d)| format!("\n  {n} = {}", summary(d))).collect(),
        Data::List(_) | Data::Scalar(_) | Data::Null | Data::Tagged(..) => {
            whole.chars().take(400).chain("…".chars()).collect()
        }
    }
}

/// A number as people read it.
pub(crate) fn number(s: pullback_prim::ScalarValue) -> String {
    if s.scalar().is_float() { format!("{:?}", s.as_f64()) } else { s.to_string() }
}

/// The Euclidean norm.
pub(crate) fn norm(xs: &[f64]) -> f64 {
    xs.iter().fold(0.0, |sum, x| sum + x * x).sqrt()
}
