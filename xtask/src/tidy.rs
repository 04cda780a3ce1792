//! The rules of the house that a machine can check.

use crate::coverage::{Treatment, tables, treatment};
use anyhow::Result;
use pullback_ad::contract::{ALGORITHMS, CONSTRUCTS};
use pullback_base::Code;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What the header of an AD algorithm says, in this order.
const HEADER: &[&str] = &[
    "//! Source:",
    "//! Judgement:",
    "//! Types:",
    "//! Notation:",
    "//! Rules:",
    "//! Differences from the paper:",
    "//! Guarantee:",
    "//! Not supported:",
];

/// A longer file cannot be read in one sitting.
const LONGEST_FILE: usize = 900;

/// All broken rules, one line each.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    edges(root, &mut broken)?;
    headers(root, &mut broken)?;
    coverage(&mut broken);
    generated(root, &mut broken);
    broken.extend(crate::checklist::missing(root));
    error_pages(root, &mut broken);
    libraries(root, &mut broken)?;
    decisions(root, &mut broken)?;
    sources(root, &mut broken)?;
    tests(root, &mut broken)?;
    examples(root, &mut broken)?;
    crate::mutants::broken(root, &mut broken)?;
    crate::sanitize::broken(root, &mut broken);
    Ok(broken)
}

/// The `[dependencies]` of a manifest, not the dev-dependencies.
fn dependencies(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|l| l.trim() != "[dependencies]").skip(1);
    let lines = lines.take_while(|l| !l.starts_with('['));
    lines
        .filter_map(|l| l.split(['.', ' ', '=']).next())
        .filter(|n| !n.is_empty() && !n.starts_with('#'))
        .collect()
}

/// The rows of the table of crates in `ARCHITECTURE.md`: a crate, and those that it may use.
fn allowed(architecture: &str) -> BTreeMap<&str, Vec<&str>> {
    let rows = architecture.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ").collect();
        let [name, .., uses] = cells[..] else { return None };
        let uses = uses.split(", ").filter(|name| *name != "–").collect();
        Some((name.strip_suffix('`')?, uses))
    });
    rows.collect()
}

/// A crate depends on those that its row in the table names, and on those that they may use; and none on itself.
fn edges(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let allowed = allowed(&architecture);
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !allowed.contains_key(&name[..]) {
            broken.push(format!("crates/{name} has no row in the table of ARCHITECTURE.md"));
            continue;
        }
        let mut reached: Vec<&str> = allowed[&name[..]].clone();
        let mut next = 0;
        while let Some(other) = reached.get(next).copied() {
            next += 1;
            match allowed.get(other) {
                None => broken.push(format!(
                    "the row of `{name}` in ARCHITECTURE.md leads to `{other}`, which is no crate"
                )),
                Some(more) => {
                    reached.extend(more.iter().filter(|m| !reached.contains(m)).copied().collect::<Vec<_>>())
                }
            }
        }
        if reached.contains(&&name[..]) {
            broken.push(format!("by the table of ARCHITECTURE.md, crates/{name} uses itself"));
        }
        let own = dependencies(&manifest).into_iter().filter_map(|d| d.strip_prefix("pullback-"));
        for used in own.filter(|used| !reached.contains(used)) {
            broken.push(format!(
                "crates/{name} depends on crates/{used}: the table of ARCHITECTURE.md does not allow it"
            ));
        }
    }
    Ok(())
}

/// Every algorithm has the header: the steps `a_..rs`, `b_..rs` of a folder, where there are any, else its `mod.rs`.
fn headers(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for algorithm in fs::read_dir(root.join("crates/ad/src"))? {
        let folder = algorithm?.path();
        if !folder.join("mod.rs").is_file() {
            continue;
        }
        let files = fs::read_dir(&folder)?.map(|f| Ok(f?.path())).collect::<Result<Vec<_>>>()?;
        let is_step = |f: &PathBuf| {
            let name = f.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            name.as_bytes().get(1) == Some(&b'_')
        };
        let mut steps: Vec<PathBuf> = files.into_iter().filter(is_step).collect();
        steps.sort();
        if steps.is_empty() {
            steps.push(folder.join("mod.rs"));
        }
        for file in steps {
            let text = fs::read_to_string(&file)?;
            let mut at = 0;
            for part in HEADER {
                match text[at..].find(part) {
                    Some(found) => at += found,
                    None => {
                        broken.push(format!("{}: the header lacks `{part}` (in this order)", file.display()));
                    }
                }
            }
        }
    }
    Ok(())
}

fn coverage(broken: &mut Vec<String>) {
    for algorithm in ALGORITHMS {
        for construct in CONSTRUCTS {
            if treatment(algorithm, construct) == Treatment::Missing {
                let id = algorithm.id;
                broken.push(format!(
                    "{id}: neither a rule tag [{id}.{construct}] nor listed under `Not supported:`"
                ));
            }
        }
    }
}

fn generated(root: &Path, broken: &mut Vec<String>) {
    for (file, text) in tables() {
        if fs::read_to_string(root.join(file)).ok().as_deref() != Some(text.as_str()) {
            broken.push(format!("{file} is out of date: run `cargo xtask coverage`"));
        }
    }
}

fn error_pages(root: &Path, broken: &mut Vec<String>) {
    for code in Code::ALL {
        let file = format!("docs/book/errors/{}.md", code.as_str());
        if !root.join(&file).is_file() {
            broken.push(format!("{file} is missing"));
        }
    }
}

fn libraries(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let decision = fs::read_to_string(root.join("docs/decisions/0002-libraries.md"))?;
    let lines = manifest.lines().skip_while(|l| l.trim() != "[workspace.dependencies]").skip(1);
    for line in lines.take_while(|l| !l.starts_with('[')) {
        let name = line.split([' ', '=']).next().unwrap_or("");
        let ours = name.starts_with("pullback") || name.is_empty() || name.starts_with('#');
        if !ours && !decision.contains(&format!("`{name}`")) {
            broken.push(format!("library {name} has no row in docs/decisions/0002-libraries.md"));
        }
    }
    Ok(())
}

/// Every decision has a row in the index, and every row a file.
fn decisions(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    const INDEX: &str = "docs/decisions/README.md";
    let index = fs::read_to_string(root.join(INDEX))?;
    let rows = index.lines().filter(|line| line.starts_with("| ["));
    let mut rows: Vec<&str> = rows.filter_map(|line| line.split(['(', ')']).nth(1)).collect();
    for file in fs::read_dir(root.join("docs/decisions"))? {
        let name = file?.file_name().to_string_lossy().into_owned();
        let count = rows.len();
        rows.retain(|row| *row != name);
        if name != "README.md" && count - rows.len() != 1 {
            broken.push(format!("docs/decisions/{name} has {} rows in {INDEX}", count - rows.len()));
        }
    }
    broken.extend(rows.iter().map(|row| format!("{INDEX}: {row} is no decision")));
    Ok(())
}

fn sources(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        rust_files(&root.join(folder), &mut files)?;
    }
    files.sort();
    // Deliberate errors are patches, or put in from outside by the test kit.
    let hook = |name: &str, text: &str| {
        let is_rule =
            name.starts_with("crates/") && name.contains("/src/") && !name.starts_with("crates/testkit/");
        is_rule && ["Mutation", "mutation::", "\"mutations\""].iter().any(|word| text.contains(word))
    };
    // Written apart, so that this file does not match itself.
    let stubs = ["todo", "unimplemented"].map(|w| format!("{w}!("));
    let ignored = format!("#[{}", "ignore");
    for file in files {
        let text = fs::read_to_string(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if stubs.iter().any(|s| text.contains(s)) {
            broken.push(format!("{name}: a stub"));
        }
        if hook(&name, &text) {
            broken
                .push(format!("{name}: a rule that mentions a deliberate error; write a patch in mutants/"));
        }
        if text.contains(&ignored) {
            broken.push(format!("{name}: an ignored test; assert what holds today instead"));
        }
        if text.lines().count() > LONGEST_FILE {
            broken.push(format!("{name}: {} lines, more than {LONGEST_FILE}", text.lines().count()));
        }
        let is_test = name.contains("/tests/") || name.contains("/bin/");
        if !is_test && !text.starts_with("//!") {
            broken.push(format!("{name}: no module header"));
        }
    }
    Ok(())
}

/// Where the integration tests of a crate are one program, a file that nobody names would not run.
fn tests(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let main = folder.join("tests/main.rs");
        let Ok(main) = fs::read_to_string(&main) else { continue };
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        for file in fs::read_dir(folder.join("tests"))? {
            let path = file?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            // A folder with `main.rs` would be a program of its own.
            let is_test = path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").exists();
            if !is_test || name == "main" {
                continue;
            }
            let own = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            if own == main.lines().any(|line| line == format!("mod {name};")) {
                let path = path.strip_prefix(root).unwrap_or(&path).display();
                broken.push(format!(
                    "{path} is a module of tests/main.rs, or a [[test]] of its own, with the reason, in Cargo.toml: one of both"
                ));
            }
        }
    }
    Ok(())
}

/// A crate without examples in its documentation says `doctest = false`: looking for them takes longer than many tests.
fn examples(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        if !folder.join("src/lib.rs").is_file() {
            continue;
        }
        let mut files = Vec::new();
        rust_files(&folder.join("src"), &mut files)?;
        let texts = files.iter().map(fs::read_to_string).collect::<std::io::Result<Vec<_>>>()?;
        let some = texts.iter().any(|text| has_example(text));
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        if some == manifest.contains("doctest = false") {
            let folder = folder.strip_prefix(root).unwrap_or(&folder).display();
            let which = if some {
                "has examples, which `doctest = false` skips"
            } else {
                "has no examples: `doctest = false`"
            };
            broken.push(format!("{folder} {which} (`[lib]` in Cargo.toml)"));
        }
    }
    Ok(())
}
/// Whether a comment of documentation has a block of Rust.
fn has_example(text: &str) -> bool {
    let comments = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
    });
    let mut inside = false;
    for tag in comments.filter_map(|line| line.trim().strip_prefix("```")) {
        let is_rust = ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&tag);
        if !inside && is_rust {
            return true;
        }
        inside = !inside;
    }
    false
}

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
            rust_files(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_of_the_house_hold() {
        let broken = super::check(&crate::root()).expect("readable sources");
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn examples_are_blocks_of_rust() {
        assert!(super::has_example("//! ```text\n//! a\n//! ```\n    /// ```\n    /// f();\n    /// ```\n"));
        assert!(!super::has_example("//! ```text\n//! a\n//! ```\nlet s = \"```\";\n"));
    }

    #[test]
    fn a_forbidden_edge_is_seen() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\npullback-opt.workspace = true\n\n[dev-dependencies]\na = 1\n";
        assert_eq!(super::dependencies(manifest), ["pullback-opt"]);
    }
}
