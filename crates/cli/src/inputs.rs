//! Arguments of entry points, from options and files.

use crate::Failure;
use crate::args::{InputArgs, WrtArgs};
use pullback_core::{EntryType, Value};
use pullback_driver::values::{Data, InputError, csv_format, encode_all, json, npy, text, type_text};
use pullback_driver::{EntryPoint, Wrt};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

impl WrtArgs {
    /// The selection that the option asks for; without it, everything with floats.
    pub(crate) fn parse(&self) -> Wrt {
        self.wrt.as_deref().map(Wrt::parse).unwrap_or_default()
    }
}

/// The core values of all arguments, in order. Checks names, types, shapes and that sizes with one name agree.
pub(crate) fn arguments(entry: &EntryPoint, inputs: &InputArgs) -> Result<Vec<Value>, Failure> {
    values(entry, &inputs.args, &inputs.input)
}

/// The same from single arguments and files.
pub(crate) fn values(entry: &EntryPoint, args: &[String], files: &[String]) -> Result<Vec<Value>, Failure> {
    let params = &entry.entry.params;
    let mut given: BTreeMap<String, Data> = BTreeMap::new();
    for file in files {
        input_file(entry, file, &mut given)?;
    }
    let mut written = BTreeSet::new();
    for arg in args {
        let (name, value) = split(arg)?;
        if !written.insert(name) {
            return Err(Failure::input(format!("--arg gives `{name}` twice")));
        }
        let Some((_, ty)) = params.iter().find(|(n, _)| n.as_str() == name) else {
            return Err(unknown(entry, name));
        };
        given.insert(name.to_string(), read_value(ty, value, name)?);
    }
    let mut all = Vec::new();
    for (name, ty) in params {
        let Some(data) = given.get(name.as_str()) else {
            let ty = type_text(ty);
            return Err(Failure::input(format!(
                "argument `{name}` of type {ty} is missing\n  hint: give it with --arg {name}=VALUE or --arg {name}=@FILE, or with --input FILE.json"
            )));
        };
        all.push(data);
    }
    encode_all(params, &all).map_err(|(name, e)| at(name.as_str(), &e))
}

/// The same; none where nothing is given.
pub(crate) fn values_if_given(
    entry: &EntryPoint,
    args: &[String],
    files: &[String],
) -> Result<Vec<Value>, Failure> {
    if args.is_empty() && files.is_empty() { Ok(Vec::new()) } else { values(entry, args, files) }
}

fn at(name: &str, e: &InputError) -> Failure {
    Failure::input(format!("argument `{name}`: {e}"))
}

fn unknown(entry: &EntryPoint, name: &str) -> Failure {
    let known: Vec<String> =
        entry.entry.params.iter().map(|(n, t)| format!("{n}: {}", type_text(t))).collect();
    Failure::input(format!(
        "`{}` has no argument `{name}`; its arguments are {}",
        entry.name,
        known.join(", ")
    ))
}

/// `NAME=VALUE` taken apart.
pub(crate) fn split(arg: &str) -> Result<(&str, &str), Failure> {
    arg.split_once('=')
        .map(|(n, v)| (n.trim(), v.trim()))
        .ok_or_else(|| Failure::input(format!("`{arg}` is not of the form NAME=VALUE or NAME=@FILE")))
}

/// A value written on the command line, or in the file after `@`.
pub(crate) fn read_value(ty: &EntryType, written: &str, name: &str) -> Result<Data, Failure> {
    let data = match written.strip_prefix('@') {
        Some(file) => read_file(ty, Path::new(file)),
        None => text::read(written).map_err(|e| e.to_string()),
    };
    data.map_err(|e| Failure::input(format!("argument `{name}`: {e}")))
}

fn read_file(ty: &EntryType, path: &Path) -> Result<Data, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let as_text = || std::str::from_utf8(&bytes).map_err(|e| format!("{shown} is not UTF-8 text: {e}"));
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let within = |e: InputError| format!("{shown}: {e}");
    match ending {
        "json" => json::read(ty, as_text()?).map_err(within),
        "csv" => {
            let mut rank = 0;
            let mut t = ty;
            while let EntryType::Array(_, element) = t {
                rank += 1;
                t = element;
            }
            csv_format::read(as_text()?, rank).map_err(within)
        }
        "npy" => npy::read(&bytes).map_err(within),
        "txt" | "in" | "data" | "" => text::read(as_text()?).map_err(within),
        other => Err(format!("{shown}: unknown ending .{other}; there are .json .csv .npy .txt")),
    }
}

/// A file with several arguments: a JSON object by name, or text values in order.
fn input_file(entry: &EntryPoint, file: &str, given: &mut BTreeMap<String, Data>) -> Result<(), Failure> {
    let params = &entry.entry.params;
    let text = if file == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|e| Failure::input(format!("cannot read standard input: {e}")))?;
        text
    } else {
        std::fs::read_to_string(file).map_err(|e| Failure::input(format!("cannot read {file}: {e}")))?
    };
    let shown = if file == "-" { "standard input" } else { file };
    let is_json = file.ends_with(".json") || (file == "-" && text.trim_start().starts_with('{'));
    if is_json {
        let record = EntryType::Record(params.clone());
        let data = json::read(&record, &text).map_err(|e| Failure::input(format!("{shown}: {e}")))?;
        let Data::Record(fields) = data else {
            return Err(Failure::input(format!(
                "{shown}: expected a JSON object with one field per argument"
            )));
        };
        for (name, data) in fields {
            if !params.iter().any(|(n, _)| n.as_str() == name) {
                return Err(unknown(entry, &name));
            }
            given.insert(name, data);
        }
        return Ok(());
    }
    let values = text::read_all(&text).map_err(|e| Failure::input(format!("{shown}: {e}")))?;
    let free: Vec<String> =
        params.iter().map(|(n, _)| n.to_string()).filter(|n| !given.contains_key(n)).collect();
    if values.len() > free.len() {
        let message =
            format!("{shown} holds {} values for {} arguments without one", values.len(), free.len());
        return Err(Failure::input(message));
    }
    given.extend(free.into_iter().zip(values));
    Ok(())
}
