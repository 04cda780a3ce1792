//! What differentiation made of a program: source place | rule | result, line by line.
//!
//! Every variable records the source place it comes from, and the rule that made it if a rule of differentiation did. The
//! table is the text of the derivative before operations are fused, with that record on its left. Lines without a rule belong to
//! the forward sweep: they are the program's own statements (and what the tape adds to them). Of algorithms with a language of their own, which have one rule, the steps
//! that lead to it stand before the table.

use crate::derive::Kind;
use crate::gradcheck::filled;
use crate::pipeline::Step;
use crate::session::{EntryPoint, Session};
use crate::{accelerate_steps, bulk_steps};
use pullback_base::{Code, Diagnostic, Span};
use pullback_core::print::{Names, PrintOptions, print_function};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Origin, Program, Value};
use pullback_interp::core::Options;
use std::collections::BTreeMap;

/// Widths of the first two columns.
const SOURCE: usize = 36;
const RULE: usize = 18;

/// The table for a derivative of an entry point with respect to the selected parameters; of an algorithm on lambda the text of what it makes.
pub fn explain(
    session: &Session,
    entry: &EntryPoint,
    kind: Kind,
    selected: &[bool],
) -> Result<String, Diagnostic> {
    // Cleaned up, but not fused: a fused operation is the work of several rules.
    let mut shown: Option<Program> = None;
    let mut fused = false;
    let (mut before, mut is_expanded) = (None, false);
    let mut watch = |pass: &'static str, program: &Program| {
        is_expanded |= pass == Step::Differentiate.name();
        if !is_expanded {
            before = Some(program.clone());
        }
        fused |= pass == "fuse";
        if !fused {
            shown = Some(program.clone());
        }
    };
    let ready = session.derivative(entry, kind, selected, &mut watch)?;
    if let Some(derivative) = &ready.on_lambda {
        return Ok(derivative.text());
    }
    if let Some(derivative) = &ready.on_fragment {
        return Ok(bulk_steps::interpreted(derivative.derivative()));
    }
    let program = shown.as_ref().unwrap_or(&ready.program);
    let text = print_function(program, ready.fun, PrintOptions::default());
    let origins = origins(program, &Names::of_function(program, ready.fun));
    let choice = &session.settings.choice;
    let steps = |p: Program| bulk_steps::text(&p, choice) + &accelerate_steps::text(&p, choice);
    let mut out = before.map_or_else(String::new, steps);
    out += &row("source (line)", "rule", "result");
    out += &row(&"-".repeat(SOURCE), &"-".repeat(RULE), &"-".repeat(40));
    let mut last: Option<(String, String)> = None;
    for line in text.lines() {
        let origin = bound_name(line).and_then(|name| origins.get(name));
        let Some(origin) = origin else {
            out += &row("", "", line);
            continue;
        };
        let source = origin.span.map_or_else(String::new, |s| place(session, s));
        let rule = origin.rule.map_or("forward", |r| r.0).to_string();
        // What repeats is said once.
        let new = last.as_ref() != Some(&(source.clone(), rule.clone()));
        let (a, b) = if new { (source.as_str(), rule.as_str()) } else { ("", "") };
        out += &row(a, b, line);
        last = Some((source, rule));
    }
    Ok(out)
}

/// What a derivative of an entry point costs at these arguments, in steps of the reference interpreter; all directions are ones. Of an algorithm on
/// lambda also what its parts cost, in the cost model of CHAD.
///
/// Errors: arguments and results of sum type, constructs without derivative, and whatever stops the program.
pub fn costs(
    session: &Session,
    entry: &EntryPoint,
    kind: Kind,
    selected: &[bool],
    args: &[Value],
) -> Result<String, Diagnostic> {
    let stopped = |e: pullback_base::RuntimeError| e.to_diagnostic();
    let options = Options::default();
    let ready = session.derivative(entry, kind, selected, &mut |_, _| {})?;
    let primal = session.primal_beside(entry, &ready)?.interpret(args, &options).map_err(stopped)?;
    let along: Vec<Option<Value>> = if kind.is_reverse() {
        let active = entry.result_types.iter().map(|t| session.lowered().is_active(t));
        primal.results.iter().zip(active).filter(|(_, a)| *a).map(|(v, _)| filled(v, 1.0)).collect()
    } else {
        args.iter().zip(selected).filter(|(_, s)| **s).map(|(v, _)| filled(v, 1.0)).collect()
    };
    let along = along.into_iter().collect::<Option<Vec<Value>>>().ok_or_else(|| {
        let message = "the cost of a derivative along a value of sum type";
        Diagnostic::global(Code::Unsupported, message).hint("explain it without arguments")
    })?;
    let mut rows = vec![("the program".to_string(), primal.counts.work)];
    let whole = match &ready.on_lambda {
        Some(derivative) => {
            let costs = derivative.costs(args, &along, &options).map_err(stopped)?;
            rows.push(("forward pass".into(), costs.forward));
            rows.push(("backpropagator".into(), costs.backward));
            costs.whole()
        }
        None => {
            let all: Vec<Value> = args.iter().chain(&along).cloned().collect();
            if let Some(derivative) = &ready.on_fragment {
                let (_, run) = derivative.run_counted(&all, &options).map_err(stopped)?;
                rows.push(("nodes of delta terms".into(), run.nodes));
                rows.push(("nodes evaluated".into(), run.evals));
                rows.push(("elements touched".into(), run.touched));
            }
            ready.interpret(&all, &options).map_err(stopped)?.counts.work
        }
    };
    rows.push(("value and derivative".into(), whole));
    let mut out = "steps at these arguments\n".to_string();
    for (what, steps) in rows {
        out += &format!("  {what:<22} {steps:>10}\n");
    }
    let ratio = whole as f64 / primal.counts.work.max(1) as f64;
    Ok(out + &format!("  {:<22} {ratio:>10.1}\n", "times the program"))
}

fn row(source: &str, rule: &str, result: &str) -> String {
    let pad = |text: &str, width: usize| {
        let length = text.chars().count();
        if length > width {
            let shown: String = text.chars().take(width - 1).collect();
            return shown + "…";
        }
        text.to_string() + &" ".repeat(width - length)
    };
    format!("{} | {} | {result}", pad(source, SOURCE), pad(rule, RULE)).trim_end().to_string() + "\n"
}

/// `12  f64.sin x`, and for functions of the prelude its name before.
fn place(session: &Session, span: Span) -> String {
    let snippet = session.sources.snippet(span).split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, _) = session.sources.line_column(span.file, span.start);
    let file = session.sources.name(span.file);
    if session.is_prelude(span.file) {
        format!("{file}:{line}  {snippet}")
    } else {
        format!("{line:>3}  {snippet}")
    }
}

/// The printed name of the first variable that a line binds: every statement has a line of its own.
fn bound_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("let ")?;
    rest.split([':', ' ', ',']).next()
}

fn origins<'p>(program: &'p Program, names: &Names) -> BTreeMap<String, &'p Origin> {
    let mut out = BTreeMap::new();
    for fun in program.funs.iter() {
        for_each_stm(&fun.body, &mut |stm| {
            if let Some(&v) = stm.pat.first().filter(|v| names.knows(**v)) {
                out.insert(names.name(program, v), &program.vars[v].origin);
            }
        });
    }
    out
}
