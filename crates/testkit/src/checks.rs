//! The table of run-time checks, `docs/book/checks.md`: for every place in the reference interpreter that can stop a run, the check of
//! compiled code, and a program of the suite that shows it.
//!
//! Places are found in the sources: a function that makes an error, or calls one that only makes errors, or asks a question that may end in
//! one. Internal errors are left out: they are of programs that core's checker refuses.

use pullback_core::Shaped;
use std::collections::BTreeSet;

/// A place: file and function, and what is checked there.
pub type Place = (String, String);

/// Calls that may stop a run, and what they check.
const ASKS: [(&str, &str); 9] = [
    ("self.size(", "negative size"),
    ("elements_of(", "number of elements"),
    ("count_rows(", "number of rows"),
    ("self.inputs(", "widths"),
    ("self.flat(", "index"),
    ("out_of_bounds(", "index"),
    ("self.span1(", "slice"),
    ("prim_error(", "primitive"),
    (".charge(", "memory"),
];
/// Calls that stop it, with their first argument.
const STOPS: [&str; 3] = ["fail(", "mismatch(", "RuntimeError::new("];

/// The places in source files, given by name and text. Tests are no places, nor is what follows sizes without running a program.
pub fn places<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeSet<Place> {
    let mut out = BTreeSet::new();
    for (file, text) in files.into_iter().filter(|(file, _)| !["tests.rs", "shapes.rs"].contains(file)) {
        for (function, body) in functions(text) {
            let asked =
                ASKS.iter().filter(|(call, _)| body.contains(call)).map(|(_, check)| (*check).to_string());
            let stopped = STOPS.iter().flat_map(|call| firsts(&body, call));
            out.extend(asked.chain(stopped).map(|check| (format!("{file} {function}"), check)));
        }
    }
    out
}

/// The functions of a file with their bodies, without comments; a closure belongs to the function around it.
fn functions(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
        let is_head = |words: &str| {
            words.split(' ').all(|w| ["pub", "pub(crate)", "pub(super)", "fn", ""].contains(&w))
        };
        match line.trim_start().split_once("fn ") {
            Some((before, after)) if is_head(before) => {
                let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
                out.push((after[..end].to_string(), after[end..].to_string()));
            }
            _ => out.last_mut().into_iter().for_each(|(_, body)| *body += line.trim_start()),
        }
    }
    out
}

/// What a call in a body is given first, for each such call: the kind of an error, or what shapes are for.
fn firsts(body: &str, call: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (at, _) in body.match_indices(call) {
        let is_whole = !body[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let first = body[at + call.len()..].split([',', ')']).next().unwrap_or_default();
        let check = match first.strip_prefix("RuntimeErrorKind::") {
            Some("Internal") => None,
            Some(kind) => Some(kind.to_string()),
            None => {
                let named = first.strip_prefix("Shaped::").and_then(|name| name.strip_suffix(".words("));
                let shaped =
                    named.and_then(|name| Shaped::ALL.into_iter().find(|s| format!("{s:?}") == name));
                let what = shaped.map(Shaped::words).or(first.strip_prefix('"'));
                what.map(|what| format!("shapes: {}", what.trim_end_matches('"')))
            }
        };
        out.extend(check.filter(|_| is_whole));
    }
    out
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The place in the interpreter.
    pub place: Place,
    /// Files and functions of the lowering, `sizes.rs check_elements`; none if the case cannot occur there.
    pub native: Vec<String>,
    /// Cases of the suite; none if there is a reason.
    pub cases: Vec<String>,
}

/// The rows of the page. A row is `| file function | check | file function, .. | case, .. |` with names in backquotes.
///
/// # Errors
/// A row without a check of compiled code and without a reason, or with neither cases nor a reason: what is in its last two columns that is no name.
pub fn rows(page: &str) -> Result<Vec<Row>, String> {
    let mut out = Vec::new();
    for line in page.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [place, check, native, cases] = cells[..] else { return Err(format!("four columns: {line}")) };
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>();
        let row = Row {
            place: (names(place).concat(), check.to_string()),
            native: names(native),
            cases: names(cases),
        };
        let says = |cell: &str| cell.split_whitespace().count() > 2;
        if row.native.is_empty() && !says(native) || row.cases.is_empty() && !says(cases) {
            return Err(format!("a reason is missing: {line}"));
        }
        out.push(row);
    }
    Ok(out)
}
