//! The tables of the book that come from the code: algorithm by construct, and the primitives.

use anyhow::Result;
use pullback_ad::contract::{ALGORITHMS, Algorithm, Bound, CONSTRUCTS, Language, Mode, Status, algorithms};
use std::fmt::Write as _;
use std::path::Path;

/// The tables and their files.
pub(crate) fn tables() -> Vec<(&'static str, String)> {
    let features = crate::checklist::PAGES.iter().map(|page| (page.file, page.table()));
    let own = [
        ("docs/book/coverage.md", coverage_table()),
        ("docs/book/primitives.md", pullback_prim::book::table_as_markdown()),
    ];
    features.chain(own).collect()
}

/// Rewrites the files.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (file, text) in tables() {
        std::fs::write(root.join(file), text)?;
    }
    Ok(())
}

/// How an algorithm treats a construct.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// A rule has its tag.
    Rule,
    /// Listed under `Not supported`.
    NotSupported,
    /// Neither: a mistake.
    Missing,
}

/// What the sources of an algorithm say about a construct.
pub(crate) fn treatment(algorithm: &Algorithm, construct: &str) -> Treatment {
    // Variants have the rules of what they are variants of.
    let id = algorithm.id.split('-').next().unwrap_or(algorithm.id);
    let tag = format!("// [{id}.{construct}]");
    // Several tags may share a line: `// [forward.size] [forward.iota] discrete`.
    let shared = format!("] [{id}.{construct}]");
    if algorithm.sources.iter().any(|s| s.contains(&tag) || s.contains(&shared)) {
        return Treatment::Rule;
    }
    let listed = algorithm.sources.iter().filter_map(|s| not_supported(s));
    if listed
        .into_iter()
        .any(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == construct))
    {
        Treatment::NotSupported
    } else {
        Treatment::Missing
    }
}

/// The text after `Not supported:` in a module header.
fn not_supported(source: &str) -> Option<&str> {
    let start = source.find("//! Not supported:")?;
    let rest = &source[start..];
    Some(&rest[..rest.find("\n\n").unwrap_or(rest.len())])
}

fn coverage_table() -> String {
    let mut out = String::from(
        "# Which algorithm covers which construct\n\n\
         Made by `cargo xtask coverage` from the rule tags in the sources. `yes`: there is a rule with this tag; `no`: listed\n\
         as not supported, and answered with an error that names the construct and its place.\n\n",
    );
    let names: Vec<&str> = ALGORITHMS.iter().map(|a| a.id).collect();
    let _ = writeln!(out, "| construct | {} |", names.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(names.len()));
    for construct in CONSTRUCTS {
        let cells = ALGORITHMS.iter().map(|a| match treatment(a, construct) {
            Treatment::Rule => "yes",
            Treatment::NotSupported => "no",
            Treatment::Missing => "?",
        });
        let _ = writeln!(out, "| {construct} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    out += "\n# The algorithms\n\nThose on *core* differentiate functions anywhere in a program, on every executor. Those on *lambda* are chosen by `--ad` for an entry point, and run in the reference interpreter, or, but for\nthose with maps and mutable arrays, as compiled code (`chad-comparison.md`, `dual-numbers.md`; the headers of their files in `crates/ad/src` say what they cover). Those on the *fragment* of bulk dual numbers are chosen by `--ad` for an entry point, too; they make delta terms while they run, in the reference interpreter. *Bound*: the work of value and derivative over that of the program.\n\n\
            | name | what | from | language | mode | bound | status |\n|---|---|---|---|---|---|---|\n";
    for a in algorithms() {
        let language = match a.language {
            Language::Core => "core",
            Language::Lambda => "lambda",
            Language::Fragment => "fragment",
        };
        let mode = match a.mode {
            Mode::Forward => "forward",
            Mode::Reverse => "reverse",
        };
        let bound = match a.bound {
            Bound::Constant => "a constant",
            Bound::PerDepth => "a constant per nesting",
            Bound::None => "none",
        };
        let status = match a.status {
            Status::Default => "default",
            Status::Selectable => "selectable",
            Status::Didactic => "a step of a derivation",
        };
        let (id, title, citation) = (a.id, a.title, a.citation);
        let _ = writeln!(out, "| `{id}` | {title} | {citation} | {language} | {mode} | {bound} | {status} |");
    }
    out
}
