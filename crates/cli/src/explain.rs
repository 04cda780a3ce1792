//! `pullback explain`: source statement | rule | result.
//!
//! Every variable that an algorithm makes records the rule that made it and the source variable whose statement the rule
//! was applied to. This groups the differentiated program by that record.

use crate::Failure;
use crate::args::{DerivativeKind, ExplainArgs};
use crate::commands::{failed, load};
use crate::output::say;
use pullback_core::traverse::for_each_stm;
use pullback_core::{Program, Stm};
use pullback_driver::{Kind, Session};
use std::collections::BTreeMap;

/// `pullback explain`
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let session = load(&args.file, args.algorithm.ad.as_deref(), true)?;
    let entry = session.entry(args.entry.as_deref()).map_err(|d| failed(&session, &d))?;
    let wrt = args.wrt.parse();
    let selected = session.select(&entry, &wrt).map_err(|d| failed(&session, &d))?;
    let kind = match args.mode {
        DerivativeKind::Vjp => Kind::Vjp,
        DerivativeKind::Jvp => Kind::Jvp,
    };
    let mut after: Option<Program> = None;
    let mut watch = |name: &'static str, program: &Program| {
        if name == "differentiate" {
            after = Some(program.clone());
        }
    };
    session.derivative(&entry, kind, &selected, &mut watch).map_err(|d| failed(&session, &d))?;
    if let Some(after) = after {
        print_table(&session, &after);
    }
    Ok(())
}

/// A rule tag and the statements it made.
type Group = (String, Vec<String>);

fn print_table(session: &Session, after: &Program) {
    // By source place: the rules applied there and the statements they made, in order of the program.
    let mut rows: BTreeMap<Option<(u32, u32)>, Vec<Group>> = BTreeMap::new();
    let names = pullback_core::print::Names::of(after);
    for fun in after.funs.iter() {
        for_each_stm(&fun.body, &mut |stm: &Stm| {
            let origin = &after.vars[stm.pat[0]].origin;
            let Some((tag, _)) = origin.rule else { return };
            let key = origin.span.map(|s| (s.start, s.end));
            let line = statement(after, &names, stm);
            let groups = rows.entry(key).or_default();
            match groups.iter_mut().find(|g| g.0 == tag) {
                Some(group) => group.1.push(line),
                None => groups.push((tag.to_string(), vec![line])),
            }
        });
    }
    let span = |key: &(u32, u32)| {
        let file = after.vars.iter().filter_map(|v| v.origin.span).find(|s| (s.start, s.end) == *key);
        file.map_or_else(String::new, |s| {
            let text = session.sources.snippet(s).split_whitespace().collect::<Vec<_>>().join(" ");
            let (line, _) = session.sources.line_column(s.file, s.start);
            let cut: String = text.chars().take(34).collect();
            format!("{line:>4}  {cut}")
        })
    };
    say(&format!("{:<40} | {:<24} | result", "source (line)", "rule"));
    say(&format!("{:-<40}-+-{:-<24}-+-{:-<40}", "", "", ""));
    for (key, groups) in &rows {
        let mut source = key.as_ref().map_or_else(|| "      (made by a rule)".to_string(), span);
        for (tag, lines) in groups {
            let mut rule = tag.as_str();
            for line in lines {
                say(&format!("{source:<40} | {rule:<24} | {line}"));
                source = String::new();
                rule = "";
            }
        }
    }
}

/// One statement on one line: nested bodies are cut to `…`.
fn statement(program: &Program, names: &pullback_core::print::Names, stm: &Stm) -> String {
    let text =
        pullback_core::print::print_stm(program, names, stm, pullback_core::print::PrintOptions::default());
    let first = text.lines().next().unwrap_or("").trim().to_string();
    if text.lines().count() > 1 { format!("{first} …") } else { first }
}
