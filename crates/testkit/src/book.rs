//! Blocks of the book that Pullback writes itself.
//!
//! After a `futhark` block with one entry point, a block that starts with ` ```text explain ` holds the table of
//! `pullback explain` for it, one that starts with ` ```text core PASS ` the derivative after that pass; `jvp` at the end asks for
//! forward mode. ` ```text explain NAME ` shows what the algorithm of this name makes, ` ```text costs 1.5 2 ` what the gradient at these numbers costs by each
//! algorithm on lambda, ` ```text price ` what the gradients of the benchmark's problems cost by two algorithms. Everything else is left as it is. The text is equal whenever the programs and the rules are.

use pullback_ad::chad::ON_LAMBDA;
use pullback_core::Value;
use pullback_core::print::print;
use pullback_driver::explain::explain;
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;

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
            ["text", "explain", name] if ON_LAMBDA.iter().any(|a| a.id == *name) => {
                block = table(&program, Kind::Vjp, Some(name))?;
            }
            ["text", "price"] => block = crate::chad::price::table(),
            ["text", "costs", numbers @ ..] => block = costs(&program, numbers)?,
            ["text", "explain", rest @ ..] => block = table(&program, kind(rest)?, None)?,
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

/// Steps of the program, and of the parts of its gradient by each algorithm.
fn costs(program: &str, numbers: &[&str]) -> Result<String, String> {
    let numbers = numbers.iter().map(|x| x.parse().map(Value::f64).map_err(|e| format!("{x}: {e}")));
    let args = numbers.collect::<Result<Vec<Value>, String>>()?;
    let one = [Value::f64(1.0)];
    let options = Options::default();
    let mut rows = String::new();
    for algorithm in ON_LAMBDA {
        let mut session = session(program)?;
        session.settings.choice.reverse = Some(algorithm.id.into());
        let shown = |d: pullback_base::Diagnostic| d.render(&session.sources);
        let entry = session.entry(None).map_err(shown)?;
        let selected = session.select(&entry, &Wrt::default()).map_err(shown)?;
        let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).map_err(shown)?;
        let Some(derivative) = &ready.on_lambda else { return Err("an algorithm of another kind".into()) };
        let costs = derivative.costs(&args, &one, &options).map_err(|e| e.to_string())?;
        if rows.is_empty() {
            let seeded: Vec<Value> = args.iter().chain(&one).cloned().collect();
            let out = ready.interpret(&seeded, &options).map_err(|e| e.to_string())?;
            let (steps, gradient) = (costs.program, numbers_text(&out.results[1..]));
            rows = format!("the program: {steps} steps; the gradient: {gradient}\n\n");
            rows += &format!(
                "{:<24} {:>7} {:>15} {:>5} {:>6}\n",
                "", "forward", "backpropagator", "both", "times"
            );
        }
        let (forward, backward, whole) = (costs.forward, costs.backward, costs.whole());
        let ratio = whole as f64 / costs.program as f64;
        rows += &format!("{:<24} {forward:>7} {backward:>15} {whole:>5} {ratio:>6.1}\n", algorithm.id);
    }
    Ok(rows)
}

fn numbers_text(values: &[Value]) -> String {
    let numbers: Vec<String> = values.iter().flat_map(Value::floats).map(|x| format!("{x}")).collect();
    numbers.join(", ")
}

fn table(program: &str, kind: Kind, algorithm: Option<&str>) -> Result<String, String> {
    let mut session = session(program)?;
    session.settings.choice.reverse = algorithm.map(Into::into);
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
