//! The features of the algorithms and the tests that show them: tables for the book, and a check that every test in them exists.

use crate::{accelerate_rows, bulk_rows, chad_rows, checklist_rows, dual_rows};
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

/// A table of the book.
pub(crate) struct Page {
    /// Where it is.
    pub(crate) file: &'static str,
    title: &'static str,
    source: &'static str,
    /// What shows all of it.
    together: &'static str,
    /// The file of the tests that rows name by `:name`.
    tests: &'static str,
    rows: &'static [Row],
    /// More tables, each under a title.
    more: &'static [(&'static str, &'static [Row])],
}

/// The tables.
pub(crate) const PAGES: &[Page] = &[
    Page {
        file: "docs/book/checklist.md",
        title: "What the production reverse mode does, and the tests that show it",
        source: "xtask/src/checklist_rows.rs",
        together: "Random programs (`crates/testkit/tests/random.rs`) show all of it together.",
        tests: "crates/ad/tests/fast_chad.rs",
        rows: checklist_rows::ROWS,
        more: &[],
    },
    Page {
        file: "docs/book/chad-checklist.md",
        title: "What CHAD and Efficient CHAD do, and the tests that show it",
        source: "xtask/src/chad_rows.rs",
        together: "The algorithms are in `crates/ad/src/chad`, in the order of the chapters.",
        tests: "crates/testkit/tests/chad.rs",
        rows: chad_rows::ROWS,
        more: &[],
    },
    Page {
        file: "docs/book/dual-checklist.md",
        title: "What dual-numbers reverse AD does, in the language and in Rust, and the tests that show it",
        source: "xtask/src/dual_rows.rs",
        together: "The stages are in `crates/ad/src/dual_numbers`, delta terms in `crates/ad/src/delta`, the library for Rust in `crates/dual`.",
        tests: "crates/testkit/tests/dual_numbers.rs",
        rows: dual_rows::ROWS,
        more: &[],
    },
    Page {
        file: "docs/book/bulk-checklist.md",
        title: "What bulk dual numbers do, and the tests that show it",
        source: "xtask/src/bulk_rows.rs",
        together: "The algorithm is in `crates/ad/src/bulk`; numbers are sections of the thesis (`bulk-dual-numbers.md`). Primed rules are ours.",
        tests: "crates/ad/tests/bulk/claims.rs",
        rows: bulk_rows::ROWS,
        more: &[("Claims of the chapter, and programs that show them", bulk_rows::CLAIMS)],
    },
    Page {
        file: "docs/book/accelerate-checklist.md",
        title: "What reverse AD for Accelerate does, and the tests that show it",
        source: "xtask/src/accelerate_rows.rs",
        together: "The algorithm is in `crates/ad/src/accelerate`; numbers are sections of the MSc thesis (`accelerate.md`).",
        tests: "crates/ad/tests/accelerate/laws.rs",
        rows: accelerate_rows::ROWS,
        more: &[],
    },
];

impl Page {
    /// The table as Markdown.
    pub(crate) fn table(&self) -> String {
        let mut out = format!(
            "# {}\n\nMade by `cargo xtask coverage` from `{}`; `cargo xtask tidy` checks that every test exists. {}\n\n",
            self.title, self.source, self.together
        );
        self.add_rows(&mut out, "feature", self.rows);
        for (title, rows) in self.more {
            let _ = write!(out, "\n## {title}\n\n");
            self.add_rows(&mut out, "claim or program", rows);
        }
        out
    }

    fn add_rows(&self, out: &mut String, first: &str, rows: &[Row]) {
        let _ = writeln!(out, "| {first} | what is shown | tests |\n|---|---|---|");
        for row in rows {
            let tests: Vec<String> = row.tests.iter().map(|t| format!("`{}`", self.full(t))).collect();
            let tests = if tests.is_empty() { "open".to_string() } else { tests.join(", ") };
            let _ = writeln!(out, "| {} | {} | {tests} |", row.feature, row.shown);
        }
    }

    /// `:name` stands for a test of the page's file.
    fn full(&self, test: &str) -> String {
        match test.strip_prefix(':') {
            Some(name) => format!("{}::{name}", self.tests),
            None => test.to_string(),
        }
    }

    /// Tests that the table names and that do not exist.
    fn missing(&self, root: &Path, out: &mut Vec<String>) {
        let all = self.rows.iter().chain(self.more.iter().flat_map(|(_, rows)| *rows));
        for test in all.flat_map(|row| row.tests) {
            let test = self.full(test);
            let (file, name) = test.split_once("::").unwrap_or((&test, ""));
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            // A test of a list has its name as a string.
            let there = text.contains(&format!("fn {name}(")) || text.contains(&format!("\"{name}\""));
            if text.is_empty() || (!name.is_empty() && !there) {
                out.push(format!("{} names the test {test}, which does not exist", self.file));
            }
        }
    }
}

/// Tests that the tables name and that do not exist.
pub(crate) fn missing(root: &Path) -> Vec<String> {
    let mut out = Vec::new();
    PAGES.iter().for_each(|page| page.missing(root, &mut out));
    out
}
