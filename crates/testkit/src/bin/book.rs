//! `book`: rewrites the generated blocks of the pages of the book.

#![allow(clippy::print_stderr, reason = "a program that says what went wrong")]

use pullback_testkit::book::regenerate;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book");
    let pages = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path());
    for page in pages.filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let written = std::fs::read_to_string(&page)
            .map_err(|e| e.to_string())
            .and_then(|old| regenerate(&old).map(|new| (old, new)))
            .and_then(|(old, new)| {
                if old == new { Ok(()) } else { std::fs::write(&page, new).map_err(|e| e.to_string()) }
            });
        if let Err(e) = written {
            eprintln!("{}: {e}", page.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
