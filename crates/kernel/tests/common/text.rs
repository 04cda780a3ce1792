//! Core programs as text.

use pullback_core::{FunId, Program};

/// The program of a text, and its first function.
#[allow(dead_code, reason = "not all tests use it")]
pub(crate) fn parse(text: &str) -> (Program, FunId) {
    let mut sources = pullback_base::SourceMap::new();
    let id = sources.add("test.core", text);
    let program = pullback_core::read::read(id, text).expect("a program");
    let f = program.funs.ids().next().expect("a function");
    (program, f)
}
