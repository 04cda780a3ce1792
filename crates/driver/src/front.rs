//! From source text to lowered core: parse, check types, elaborate, lower. Stops at the first stage with errors.

use crate::imports::{self, Reader};
use pullback_base::{Diagnostic, Severity, SourceMap};
use pullback_core::Program;
use pullback_front::File;
use pullback_lambda::Program as Lambda;
use pullback_syntax::{PRELUDE, PRELUDE_NAME, prelude_of};

/// A source program in both intermediate languages.
#[derive(Debug)]
pub struct Lowered {
    /// Higher-order.
    pub lambda: Lambda,
    /// First-order.
    pub core: Program,
}

/// Compiles a source text to lambda and core; `name` is how messages call it, and the path from which its imports are found, which `read`
/// reads. Without a program there is at least one error. Every diagnostic says what to do next.
pub fn lower_source(
    sources: &mut SourceMap,
    name: &str,
    text: &str,
    read: &mut Reader<'_>,
) -> (Option<Lowered>, Vec<Diagnostic>) {
    let (program, mut diagnostics) = stages(sources, name, text, read);
    for d in diagnostics.iter_mut().filter(|d| d.hints.is_empty()) {
        d.hints.push(d.code.advice().to_string());
    }
    shorten(&mut diagnostics);
    (program, diagnostics)
}

/// So many messages at most are shown: a text that a program wrote may break one rule a thousand times. (Of taste: a few screens.)
const SHOWN: usize = 100;

/// Leaves out what nobody will read, and says so. Errors are kept before warnings, and our own mistakes before all others.
fn shorten(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() <= SHOWN {
        return;
    }
    diagnostics.sort_by_key(|d| (d.severity != Severity::Error, std::cmp::Reverse(d.code.fault())));
    let left_out = diagnostics.split_off(SHOWN);
    let message = format!("{} more messages are not shown; this is the first of them", left_out.len());
    let first = &left_out[0];
    let note = Diagnostic { severity: Severity::Warning, message, ..first.clone() };
    diagnostics.push(note.hint("correct the others, and look again"));
}

fn stages(
    sources: &mut SourceMap,
    name: &str,
    text: &str,
    read: &mut Reader<'_>,
) -> (Option<Lowered>, Vec<Diagnostic>) {
    let prelude = sources.add(PRELUDE_NAME, PRELUDE);
    let (loaded, mut diagnostics) = imports::load(sources, (name, text), read);
    if has_errors(&diagnostics) {
        return (None, diagnostics);
    }
    let files: Vec<File<'_>> =
        loaded.iter().map(|f| File { program: &f.program, imports: f.imports.clone() }).collect();
    let check = |text: &str| {
        let (program, mut wrong) = pullback_syntax::parse(prelude, text);
        let (typed, more) = pullback_front::check_files(&program, &files);
        wrong.extend(more);
        (typed, wrong)
    };
    let texts = sources.files().filter(|f| *f != prelude).map(|f| sources.text(f));
    let (mut typed, mut found) = check(&prelude_of(texts));
    if has_errors(&found) {
        // Messages may suggest any name of the prelude.
        (typed, found) = check(PRELUDE);
    }
    diagnostics.extend(found);
    if has_errors(&diagnostics) {
        return (None, diagnostics);
    }
    let lowered = pullback_elab::elaborate(&typed).and_then(|lambda| {
        let core = pullback_elab::lower(&lambda)?;
        Ok(Lowered { lambda, core })
    });
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
