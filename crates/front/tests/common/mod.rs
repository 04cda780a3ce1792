//! What the tests of this crate share.
#![allow(dead_code, unused_qualifications, unreachable_pub, reason = "each test file uses a part")]

use pullback_base::{Code, Diagnostic, Severity, SourceMap};
use pullback_front::{check_program, type_text, typed};

/// A checked program with its source.
pub struct Checked {
    pub sources: SourceMap,
    pub program: typed::Program,
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses and checks a program after the prelude.
pub fn check(text: &str) -> Checked {
    let mut sources = SourceMap::new();
    let prelude = sources.add("prelude.fut", pullback_syntax::prelude::PRELUDE);
    let (prelude, wrong) = pullback_syntax::parser::parse(prelude, pullback_syntax::prelude::PRELUDE);
    assert!(wrong.is_empty(), "prelude: {wrong:?}");
    let file = sources.add("test.fut", text);
    let (user, mut diagnostics) = pullback_syntax::parser::parse(file, text);
    let (program, more) = check_program(&prelude, &user);
    diagnostics.extend(more);
    Checked { sources, program, diagnostics }
}

impl Checked {
    /// All messages.
    pub fn messages(&self) -> String {
        self.diagnostics.iter().map(|d| d.render(&self.sources)).collect::<Vec<_>>().join("\n")
    }
    /// The errors as code and text under the span.
    pub fn errors(&self) -> Vec<(Code, String)> {
        self.diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .map(|d| (d.code, d.span.map_or(String::new(), |s| self.sources.snippet(s).to_string())))
            .collect()
    }
    /// The type of the user's definition `name`.
    pub fn type_of(&self, name: &str) -> String {
        let def = self.program.defs.iter().rev().find(|d| !d.prelude && d.name.as_str() == name);
        def.map_or(format!("no definition {name}"), |d| type_text(&d.ty))
    }
    /// The user's definition `name`.
    pub fn def(&self, name: &str) -> &typed::Def {
        let def = self.program.defs.iter().rev().find(|d| !d.prelude && d.name.as_str() == name);
        def.unwrap_or_else(|| panic!("no definition {name}"))
    }
}
