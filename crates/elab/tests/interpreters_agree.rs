//! A lambda program means the same in the lambda interpreter and, lowered, in the core interpreter: same values, same
//! kinds of errors, same messages.

#[path = "../../interp/tests/lambda_cases/mod.rs"]
mod lambda_cases;

use lambda_cases::{Case, cases};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::Value;
use pullback_interp::{core, lambda};
use pullback_lambda::read::read;

/// The leaves of products, in order: the parameters and results of lowered functions.
fn leaves(values: &[Value]) -> Vec<Value> {
    let mut out = Vec::new();
    for value in values {
        match value {
            Value::Tuple(items) => out.extend(leaves(items)),
            other => out.push(other.clone()),
        }
    }
    out
}

/// Empty arrays of one rank agree: inner sizes of a result of no iterations are known as far as an interpreter looks.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.count() == 0 && b.count() == 0 => {
            a.shape.len() == b.shape.len()
        }
        (a, b) => a == b,
    }
}

fn both(case: &Case, seed: Option<u64>) -> Result<(), String> {
    let program = read(case.text, None).map_err(|e| format!("{e:?}"))?;
    let main = program.funs.ids().find(|f| program.funs[*f].name.as_str() == "main").ok_or("no main")?;
    let options = lambda::Options { schedule_seed: seed, ..lambda::Options::default() };
    let direct = lambda::run(&program, main, case.args.clone(), &options).map(|o| leaves(&[o.result]));
    let lowered = pullback_elab::lower::lower(&program).map_err(|e| format!("{e:?}"))?;
    pullback_core::check(&lowered, pullback_core::check::Rules::SURFACE).map_err(|e| format!("{e:?}"))?;
    let main = lowered.funs.ids().find(|f| lowered.funs[*f].name.as_str() == "main").ok_or("no core main")?;
    let options = core::Options { schedule_seed: seed, ..core::Options::default() };
    let through = core::run(&lowered, main, leaves(&case.args), &options).map(|o| o.results);
    let agree = direct.is_ok() == case.expected.is_ok()
        && match (&direct, &through) {
            (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Err(a), Err(b)) => errors_agree(a, b, seed),
            _ => false,
        };
    if agree { Ok(()) } else { Err(format!("lambda: {direct:?}\ncore: {through:?}")) }
}

fn errors_agree(a: &RuntimeError, b: &RuntimeError, seed: Option<u64>) -> bool {
    // A schedule may meet another of several errors first; limits say where they were met.
    a.kind == b.kind && (a.message == b.message || seed.is_some() || a.kind == RuntimeErrorKind::Limit)
}

#[test]
fn on_programs_of_every_construct() {
    let mut failures = Vec::new();
    let cases = cases();
    for case in &cases {
        for seed in [None, Some(5)] {
            if let Err(e) = both(case, seed) {
                failures.push(format!("{} ({seed:?}):\n{e}", case.name));
            }
        }
    }
    assert!(cases.len() > 80, "{} programs", cases.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
