//! Ill-formed programs: `tests/check/*.core`, cases separated by `// === name`. `//!` names the expected message and
//! stands on the line of the statement at fault; `//-` is a message about a whole function.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::SourceMap;
use pullback_core::{Rules, check, read};
use std::path::Path;

fn cases(text: &str) -> Vec<(String, String)> {
    text.split("// === ")
        .skip(1)
        .map(|case| {
            let (name, rest) = case.split_once('\n').unwrap_or((case, ""));
            (name.to_string(), rest.to_string())
        })
        .collect()
}

#[test]
fn ill_formed_programs_are_rejected_with_the_message_at_its_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let mut count = 0;
    let mut failures = Vec::new();
    for path in files {
        for (name, text) in cases(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            let label = format!("{} / {name}", path.file_name().unwrap().to_string_lossy());
            if let Err(e) = one(&text) {
                failures.push(format!("{label}: {e}"));
            }
        }
    }
    assert!(count >= 60, "only {count} cases were found");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn one(text: &str) -> Result<(), String> {
    let mut sources = SourceMap::new();
    let file = sources.add("case", text);
    let program = read(file, text).map_err(|d| format!("does not read: {}", d.render(&sources)))?;
    let rules = if text.contains("rules: no ad") { Rules::NO_AD } else { Rules::SURFACE };
    let Err(error) = check(&program, rules) else { return Err("accepted".into()) };
    let shown = error.to_string();
    let expectations = text.matches("//! ").count() + text.matches("//- ").count();
    if expectations != 1 {
        return Err(format!("{expectations} expectations"));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some((_, expected)) = line.split_once("//! ") {
            let Some(span) = error.span else { return Err(format!("no place: {shown}")) };
            let found = sources.line_column(file, span.start).0;
            if found != number + 1 {
                return Err(format!("at line {found} and not {}: {shown}", number + 1));
            }
            if !shown.contains(expected) {
                return Err(format!("expected the message {expected:?}, found {shown:?}"));
            }
        }
        if let Some((_, expected)) = line.split_once("//- ")
            && !shown.contains(expected)
        {
            return Err(format!("expected the message {expected:?}, found {shown:?}"));
        }
    }
    Ok(())
}
