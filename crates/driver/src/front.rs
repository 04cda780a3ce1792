//! From source text to lowered core: parse, check types, elaborate, lower. Stops at the first stage with errors.

use pullback_base::{Diagnostic, Severity, SourceMap};
use pullback_core::Program;
use pullback_syntax::{PRELUDE, PRELUDE_NAME};

/// Compiles a source text to core; `name` is how messages call it. Without a program there is at least one error. Every
/// diagnostic says what to do next.
pub fn lower_source(sources: &mut SourceMap, name: &str, text: &str) -> (Option<Program>, Vec<Diagnostic>) {
    let (program, mut diagnostics) = stages(sources, name, text);
    for d in diagnostics.iter_mut().filter(|d| d.hints.is_empty()) {
        d.hints.push(d.code.advice().to_string());
    }
    (program, diagnostics)
}

fn stages(sources: &mut SourceMap, name: &str, text: &str) -> (Option<Program>, Vec<Diagnostic>) {
    let prelude_file = sources.add(PRELUDE_NAME, PRELUDE);
    let file = sources.add(name, text);
    let (prelude, mut diagnostics) = pullback_syntax::parse(prelude_file, PRELUDE);
    let (user, more) = pullback_syntax::parse(file, text);
    diagnostics.extend(more);
    if has_errors(&diagnostics) {
        return (None, diagnostics);
    }
    let (typed, more) = pullback_front::check_program(&prelude, &user);
    diagnostics.extend(more);
    if has_errors(&diagnostics) {
        return (None, diagnostics);
    }
    let lowered = pullback_elab::elaborate(&typed).and_then(|lambda| pullback_elab::lower(&lambda));
    match lowered {
        Ok(program) => (Some(program), diagnostics),
        Err(more) => {
            diagnostics.extend(more);
            (None, diagnostics)
        }
    }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}
