//! The features of the production reverse mode and the tests that show them: a table for the book, and a check that every
//! test in it exists.

use crate::checklist_rows::ROWS;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A feature and its tests. A test is `FILE::FUNCTION`, or a file of the suite.
pub(crate) struct Row {
    feature: &'static str,
    shown: &'static str,
    tests: &'static [&'static str],
}

pub(crate) const fn row(feature: &'static str, shown: &'static str, tests: &'static [&'static str]) -> Row {
    Row { feature, shown, tests }
}

const AD: &str = "crates/ad/tests/fast_chad.rs";

/// Where the table is.
pub(crate) const FILE: &str = "docs/book/checklist.md";

/// The table as Markdown.
pub(crate) fn table() -> String {
    let mut out = String::from(
        "# What the production reverse mode does, and the tests that show it\n\n\
         Made by `cargo xtask coverage` from `xtask/src/checklist_rows.rs`; `cargo xtask tidy` checks that every test exists. \
         Random programs (`crates/testkit/tests/random.rs`) show all of it together.\n\n\
         | feature | what is shown | tests |\n|---|---|---|\n",
    );
    for row in ROWS {
        let tests: Vec<String> = row.tests.iter().map(|t| format!("`{}`", full(t))).collect();
        let tests = if tests.is_empty() { "open".to_string() } else { tests.join(", ") };
        let _ = writeln!(out, "| {} | {} | {tests} |", row.feature, row.shown);
    }
    out
}

/// `:name` stands for a test of the file that goes construct by construct.
fn full(test: &str) -> String {
    match test.strip_prefix(':') {
        Some(name) => format!("{AD}::{name}"),
        None => test.to_string(),
    }
}

/// Tests that the table names and that do not exist.
pub(crate) fn missing(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for test in ROWS.iter().flat_map(|row| row.tests) {
        let test = full(test);
        let (file, name) = test.split_once("::").unwrap_or((&test, ""));
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        // A test of a list has its name as a string.
        let there = text.contains(&format!("fn {name}(")) || text.contains(&format!("\"{name}\""));
        if text.is_empty() || (!name.is_empty() && !there) {
            out.push(format!("{FILE} names the test {test}, which does not exist"));
        }
    }
    out
}
