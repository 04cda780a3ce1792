//! Programs as text.

use pullback_base::SourceMap;
use pullback_core::{Program, Rules, check, read};

/// A program that is well formed.
pub(crate) fn load(text: &str) -> Program {
    let mut sources = SourceMap::new();
    let file = sources.add("text", text);
    let program = read(file, text).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    check(&program, Rules::SURFACE).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}
