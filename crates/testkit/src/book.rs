//! Blocks of the book that Pullback writes itself.
//!
//! After a `futhark` block with one entry point, a block that starts with ` ```text explain ` holds the table of
//! `pullback explain` for it, one that starts with ` ```text core PASS ` the derivative after that pass; `jvp` at the end asks for
//! forward mode. Everything else is left as it is. The text is equal whenever the programs and the rules are.

use pullback_core::print::print;
use pullback_driver::explain::explain;
use pullback_driver::{Kind, Session, Settings, Wrt};

/// The page with its generated blocks written anew. `Err`: a program of the page does not compile, or a block asks for
/// something that does not exist.
pub fn regenerate(page: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut program = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let mut block = String::new();
        for line in lines.by_ref().take_while(|l| *l != "```") {
            block += line;
            block.push('\n');
        }
        let words: Vec<&str> = info.split_whitespace().collect();
        match words.as_slice() {
            ["futhark"] => program.clone_from(&block),
            ["text", "explain", rest @ ..] => block = table(&program, kind(rest)?)?,
            ["text", "core", pass, rest @ ..] => block = core(&program, pass, kind(rest)?)?,
            _ => {}
        }
        out += &block;
        out += "```\n";
    }
    Ok(out)
}

fn kind(rest: &[&str]) -> Result<Kind, String> {
    match rest {
        [] => Ok(Kind::Vjp),
        ["jvp"] => Ok(Kind::Jvp),
        other => Err(format!("a block asks for `{}`", other.join(" "))),
    }
}

fn table(program: &str, kind: Kind) -> Result<String, String> {
    let session = session(program)?;
    let shown = |d: pullback_base::Diagnostic| d.render(&session.sources);
    let entry = session.entry(None).map_err(shown)?;
    let selected = session.select(&entry, &Wrt::default()).map_err(shown)?;
    explain(&session, &entry, kind, &selected).map_err(shown)
}

fn core(program: &str, pass: &str, kind: Kind) -> Result<String, String> {
    let session = session(program)?;
    let shown = |d: pullback_base::Diagnostic| d.render(&session.sources);
    let entry = session.entry(None).map_err(shown)?;
    let selected = session.select(&entry, &Wrt::default()).map_err(shown)?;
    let mut found = None;
    let mut watch = |name: &'static str, program: &pullback_core::Program| {
        if name == pass {
            found = Some(print(program));
        }
    };
    session.derivative(&entry, kind, &selected, &mut watch).map_err(shown)?;
    found.ok_or_else(|| format!("a block asks for the pass `{pass}`"))
}

fn session(program: &str) -> Result<Session, String> {
    Session::compile("program.fut", program, Settings::default()).map_err(|failed| failed.render())
}
