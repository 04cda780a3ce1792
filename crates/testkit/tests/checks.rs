//! The table of run-time checks is that of the interpreter, and every row has a program that all executors stop. (The programs are run by the suite.)

use pullback_testkit::checks::{Row, places, rows};
use pullback_testkit::suite;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The source files of a folder, by name.
fn sources(folder: &str) -> Vec<(String, String)> {
    let files = std::fs::read_dir(root().join(folder)).expect("a folder").flatten().map(|e| e.path());
    let files = files.filter(|p| p.extension().is_some_and(|e| e == "rs"));
    let named = |p: PathBuf| {
        (
            p.file_name().expect("a name").to_string_lossy().into(),
            std::fs::read_to_string(&p).expect("a text"),
        )
    };
    files.map(named).collect()
}

fn table() -> Vec<Row> {
    let page = std::fs::read_to_string(root().join("docs/book/checks.md")).expect("the page");
    rows(&page).expect("a table")
}

#[test]
fn the_table_has_every_check_of_the_interpreter() {
    let files = sources("crates/interp/src/core");
    let found = places(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let listed: Vec<_> = table().into_iter().map(|row| row.place).collect();
    let set: BTreeSet<_> = listed.iter().cloned().collect();
    let missing: Vec<_> = found.difference(&set).map(|(at, check)| format!("| `{at}` | {check} |")).collect();
    let gone: Vec<_> = set.difference(&found).collect();
    assert!(missing.is_empty(), "docs/book/checks.md lacks rows:\n{}", missing.join("\n"));
    assert!(gone.is_empty(), "docs/book/checks.md has rows of checks that are gone: {gone:?}");
    assert_eq!(listed.len(), set.len(), "a row twice");
    assert!(found.len() > 60, "{}", found.len());
}

#[test]
fn checks_of_compiled_code_are_where_the_table_says() {
    let files = sources("crates/kernel/src/lower");
    for row in table() {
        for native in &row.native {
            let (file, function) = native.split_once(' ').expect("a file and a function");
            let text = files.iter().find(|(name, _)| name == file).map_or("", |(_, text)| text.as_str());
            assert!(text.contains(&format!("fn {function}(")), "{:?}: there is no {native}", row.place);
        }
    }
}

#[test]
fn every_row_has_its_programs() {
    let text = std::fs::read_to_string(root().join("suite/errors/checks.md")).expect("the suite");
    let cases = suite::parse(&text).expect("cases");
    assert!(cases.iter().all(|c| c.lines.contains_key("error")));
    let there: BTreeSet<String> = cases.into_iter().map(|c| c.name).collect();
    let used: BTreeSet<String> = table().into_iter().flat_map(|row| row.cases).collect();
    assert_eq!(used, there);
}

/// The test above can fail: checks are found however they are written, and words in comments are none.
#[test]
fn places_are_found_in_sources() {
    let text = "
        impl Machine {
            // self.size(n) elements_of(x)
            pub(crate) fn first(&self) -> Res<()> {
                let n = self.size(a)?;
                Err(fail(
                    RuntimeErrorKind::Limit,
                    \"text\",
                ))
            }
            fn second(&self) -> Res<()> {
                (0..n).for_each(|i| drop(mismatch(\"rows\", a, b)));
                Err(fail(RuntimeErrorKind::Internal, \"ours\"))
            }
        }
        pub fn third() { detail(x) }";
    let found: Vec<_> = places([("a.rs", text), ("shapes.rs", text)]).into_iter().collect();
    let expected =
        [("a.rs first", "Limit"), ("a.rs first", "negative size"), ("a.rs second", "shapes: rows")];
    assert_eq!(found, expected.map(|(at, check)| (at.to_string(), check.to_string())));
    assert!(rows("| `a.rs first` | Limit | none | `x` |").is_err(), "no reason");
    assert!(rows("| `a.rs first` | Limit | it cannot occur there | `x` |").is_ok());
}
