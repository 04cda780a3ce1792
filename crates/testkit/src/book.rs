//! Blocks of the book that Pullback writes itself.
//!
//! After a `futhark` block with one entry point, a block that starts with ` ```text explain ` holds the table of
//! `pullback explain` for it, one that starts with ` ```text core PASS ` the derivative after that pass; `jvp` at the end asks for
//! forward mode. ` ```text explain NAME ` shows what the algorithm of this name makes, ` ```text costs 1.5 2 ` what the gradient at these numbers costs by each
//! algorithm of CHAD (` ```text costs dual 1.5 2 `: of dual numbers and delta terms), ` ```text price ` what the gradients of the benchmark's problems cost by two algorithms, ` ```text growth dual ` how
//! costs grow by all stages of dual numbers; ` ```text compared steps ` and ` ```text compared bytes ` what the gradients of these problems cost by all algorithms; ` ```text explain bulk WORD ` is the part of this explanation whose title has the word; ` ```text passes ` lists the passes of scheduling; ` ```rust rule TAG ` shows the code under that tag. Everything else is left as it is. The text is equal whenever the programs and the rules are.

use crate::stages;
use pullback_ad::chad;
use pullback_ad::on_lambda::OnLambda;
use pullback_core::Value;
use pullback_core::print::print;
use pullback_driver::explain::explain;
use pullback_driver::{EntryPoint, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options;
use std::path::Path;

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
            ["text", "explain", name] if is_reverse(name) => {
                block = table(&program, Kind::Vjp, Some(name))?;
            }
            ["text", "explain", name, word] if is_reverse(name) => {
                block = part(&table(&program, Kind::Vjp, Some(name))?, word)?;
            }
            ["text", "compared", "steps"] => block = crate::compared::steps()?,
            ["text", "compared", "bytes"] => block = crate::compared::bytes()?,
            ["text", "price"] => block = crate::chad::price::table(),
            ["text", "costs", "dual", numbers @ ..] => block = costs(&program, numbers, stages::all())?,
            ["text", "costs", numbers @ ..] => block = costs(&program, numbers, chad::ON_LAMBDA.iter())?,
            ["text", "passes"] => block = pullback_driver::code::pipeline_text(),
            ["text", "growth", "dual"] => block = growth(stages::all())?,
            ["rust", "rule", tag] => block = rule(tag)?,
            ["text", "explain", rest @ ..] => block = table(&program, kind(rest)?, None)?,
            ["text", "core", pass, rest @ ..] => block = core(&program, pass, kind(rest)?)?,
            _ => {}
        }
        out += &block;
        out += "```\n";
    }
    Ok(out)
}

/// Whether this is an algorithm for reverse derivatives.
fn is_reverse(name: &str) -> bool {
    pullback_driver::reverse_algorithms().iter().any(|a| a.id == name)
}

/// The part of a text whose first line has this word. Parts are apart by empty lines.
fn part(text: &str, word: &str) -> Result<String, String> {
    let titled = |part: &&str| part.lines().next().is_some_and(|title| title.contains(word));
    let found =
        text.split("\n\n").find(titled).ok_or_else(|| format!("a block asks for the part `{word}`"))?;
    Ok(found.trim_end().to_string() + "\n")
}

fn kind(rest: &[&str]) -> Result<Kind, String> {
    match rest {
        [] => Ok(Kind::Vjp),
        ["jvp"] => Ok(Kind::Jvp),
        other => Err(format!("a block asks for `{}`", other.join(" "))),
    }
}

/// The function under a tag in the code of dual numbers or of delta terms, as it stands there.
fn rule(tag: &str) -> Result<String, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ad/src");
    for folder in ["dual_numbers", "dual_numbers/forward", "delta"] {
        for file in std::fs::read_dir(sources.join(folder)).map_err(|e| e.to_string())?.flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            let mut lines = text.lines().skip_while(|l| !l.contains(&format!("// [{tag}]")));
            let Some(first) = lines.next() else { continue };
            let indent = first.len() - first.trim_start().len();
            let mut out = String::new();
            for line in std::iter::once(first).chain(lines) {
                out += line.get(indent..).unwrap_or_default();
                out.push('\n');
                if line.trim() == "}" && line.len() == indent + 1 {
                    return Ok(out);
                }
            }
        }
    }
    Err(format!("a block asks for the rule `{tag}`"))
}

/// How often the program's steps value and gradient take, at two sizes each of three programs.
fn growth(algorithms: impl Iterator<Item = &'static OnLambda>) -> Result<String, String> {
    let shared = |n: usize| {
        let lets: String = (1..=n).map(|k| format!(" let x{k} = x{0} + x{0}", k - 1)).collect();
        (format!("entry f (x0: f64): f64 ={lets} in x{n}"), vec![Value::f64(1.0)])
    };
    let numbers = |n: usize| Value::f64s(&(0..n).map(|k| k as f64 / 8.0).collect::<Vec<f64>>());
    let squares = |n: usize| {
        let text = "entry f [n] (a: [n]f64): f64 = f64.sum (map (\\x -> x * x) a)".to_string();
        (text, vec![numbers(n)])
    };
    let steps = |n: usize| {
        let text = "entry f (x: f64) (n: i64): f64 = loop y = x for _i < n do y * 0.5 + x".to_string();
        (text, vec![Value::f64(1.0), Value::i64(n as i64)])
    };
    let columns = [shared(5), shared(15), squares(20), squares(320), steps(20), steps(320)];
    let mut out =
        format!("{:<16} {:>15} {:>23} {:>23}\n{:<16}", "", "values shared", "sum of squares", "loop", "");
    for size in [5, 15, 20, 320, 20, 320] {
        out += &format!(" {size:>11}");
    }
    out.push('\n');
    for algorithm in algorithms {
        let mut line = format!("{:<16}", algorithm.id);
        for (text, args) in &columns {
            let cell = match times(text, args, algorithm)? {
                Some(ratio) => format!("{ratio:.1}"),
                None => "-".into(),
            };
            line += &format!(" {cell:>11}");
        }
        out += &(line + "\n");
    }
    Ok(out)
}

/// The most steps that are waited for.
const LIMIT: u64 = 20_000_000;

/// How often the program's steps value and gradient take; `None`: too many.
fn times(text: &str, args: &[Value], algorithm: &OnLambda) -> Result<Option<f64>, String> {
    let ready = derivative(text, algorithm)?;
    let Some(derivative) = &ready.on_lambda else { return Err("an algorithm of another kind".into()) };
    let options = Options { work_limit: LIMIT, ..Options::default() };
    match derivative.costs(args, &[Value::f64(1.0)], &options) {
        Ok(costs) => Ok(Some(costs.whole() as f64 / costs.program as f64)),
        Err(e) if e.kind == pullback_base::RuntimeErrorKind::Limit => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

/// Steps of the program, and of the parts of its gradient by each algorithm.
fn costs(
    program: &str,
    numbers: &[&str],
    algorithms: impl Iterator<Item = &'static OnLambda>,
) -> Result<String, String> {
    let numbers = numbers.iter().map(|x| x.parse().map(Value::f64).map_err(|e| format!("{x}: {e}")));
    let args = numbers.collect::<Result<Vec<Value>, String>>()?;
    let one = [Value::f64(1.0)];
    let options = Options::default();
    let mut rows = String::new();
    for algorithm in algorithms {
        let ready = derivative(program, algorithm)?;
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
    let (session, entry, selected) = opened(program, algorithm)?;
    explain(&session, &entry, kind, &selected).map_err(|d| d.render(&session.sources))
}

fn core(program: &str, pass: &str, kind: Kind) -> Result<String, String> {
    let (session, entry, selected) = opened(program, None)?;
    let mut found = None;
    let mut watch = |name: &'static str, program: &pullback_core::Program| {
        if name == pass {
            found = Some(print(program));
        }
    };
    session.derivative(&entry, kind, &selected, &mut watch).map_err(|d| d.render(&session.sources))?;
    found.ok_or_else(|| format!("a block asks for the pass `{pass}`"))
}

/// The gradient of the program's only entry point by an algorithm.
fn derivative(program: &str, algorithm: &OnLambda) -> Result<Ready, String> {
    let (session, entry, selected) = opened(program, Some(algorithm.id))?;
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {});
    ready.map_err(|d| d.render(&session.sources))
}

/// The program, its only entry point, and which parameters count; derivatives are by this algorithm, or by the one that is chosen where none is named.
fn opened(program: &str, algorithm: Option<&str>) -> Result<(Session, EntryPoint, Vec<bool>), String> {
    let mut settings = Settings::default();
    settings.choice.reverse = algorithm.map(Into::into);
    let session = Session::compile("program.fut", program, settings).map_err(|failed| failed.render())?;
    let shown = |d: pullback_base::Diagnostic| d.render(&session.sources);
    let entry = session.entry(None).map_err(shown)?;
    let selected = session.select(&entry, &Wrt::default()).map_err(shown)?;
    Ok((session, entry, selected))
}
