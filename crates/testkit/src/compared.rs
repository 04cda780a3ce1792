//! All reverse algorithms on all problems, counted: which problems they take, and how often the program's steps and memory value and gradient take.

use crate::chad::price::{Prepared, prepared};
use crate::problems::{PROBLEMS, Problem};
use pullback_ad::accelerate::from_core::{RECOMPUTE, STORE};
use pullback_ad::bulk::from_core;
use pullback_ad::chad::d_arrays;
use pullback_ad::dual_numbers::f_taping;
use pullback_ad::fast_chad;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::Value;
use pullback_driver::Ready;
use pullback_interp::core::{Counts, Options};

/// The size of all problems.
const SIZE: usize = 4;

/// The most steps that are waited for.
const LIMIT: u64 = 4_000_000;

/// The algorithms that the table of steps leaves out: those of CHAD that take no arrays, and delta terms that are not shared.
const LEFT_OUT: [&str; 10] = [
    "chad",
    "chad-sparse",
    "chad-accumulating",
    "chad-accumulating-map",
    "chad-accumulating-cells",
    "chad-closures",
    "delta-direct",
    "delta-vectors",
    "delta-changes",
    "delta-inwards",
];

/// How much gradients may differ, relative to 1 and to the number.
const TOLERANCE: f64 = 1e-8;

/// The problems but those that have derivatives inside: there the program alone costs as much as its derivatives.
fn problems() -> impl Iterator<Item = &'static Problem> {
    PROBLEMS.iter().filter(|p| !matches!(p.name, "particle" | "saddle"))
}

/// Steps of value and gradient over steps of the program: a row for each algorithm, a column for each problem. `-`: not taken; `more`: too many steps.
///
/// # Errors
/// Two algorithms with different gradients, or a program that does not run.
pub fn steps() -> Result<String, String> {
    let all = pullback_driver::reverse_algorithms();
    let algorithms: Vec<&str> = all.iter().map(|a| a.id).filter(|id| !LEFT_OUT.contains(id)).collect();
    table(&algorithms, false, &|counts| counts.work)
}

/// The most bytes that are live at one time, in the same way; what an algorithm on lambda makes is lowered to core, whose interpreter counts bytes. A program on numbers alone has none, and no column.
///
/// # Errors
/// As [`steps`].
pub fn bytes() -> Result<String, String> {
    let algorithms = [
        fast_chad::ALGORITHM.id,
        from_core::ALGORITHM.id,
        STORE.id,
        RECOMPUTE.id,
        d_arrays::ID,
        f_taping::ID,
    ];
    table(&algorithms, true, &|counts| counts.peak_bytes)
}

fn table(algorithms: &[&str], is_lowered: bool, count: &dyn Fn(&Counts) -> u64) -> Result<String, String> {
    let mut lines: Vec<String> =
        std::iter::once("").chain(algorithms.iter().copied()).map(|a| format!("{a:<20}")).collect();
    for problem in problems() {
        let mut made = prepared(problem, SIZE);
        if count(&made.primal.counts) == 0 {
            continue;
        }
        made.session.settings.lowered = is_lowered;
        let mut expected = None;
        lines[0] += &format!(" {:>8}", short(problem.name));
        for (line, algorithm) in lines[1..].iter_mut().zip(algorithms) {
            let cell = cell(&mut made, algorithm, &mut expected, count);
            *line +=
                &format!(" {:>8}", cell.map_err(|why| format!("{} by {algorithm}: {why}", problem.name))?);
        }
    }
    Ok(lines.iter().map(|line| line.trim_end().to_string() + "\n").collect())
}

/// The first word of a name.
fn short(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

/// `expected`: the value and gradient by the first algorithm that takes the problem.
fn cell(
    made: &mut Prepared,
    algorithm: &str,
    expected: &mut Option<Vec<f64>>,
    count: &dyn Fn(&Counts) -> u64,
) -> Result<String, String> {
    made.session.settings.choice.reverse = Some(algorithm.into());
    let Ok(ready) = made.derivative() else { return Ok("-".into()) };
    let options = Options { work_limit: LIMIT, ..Options::default() };
    let both = program(made, &ready, &options)
        .and_then(|plain| Ok((plain, ready.interpret(&made.seeded, &options)?)));
    let (plain, derived) = match both {
        Ok(both) => both,
        Err(e) if e.kind == RuntimeErrorKind::Limit => return Ok("more".into()),
        Err(e) => return Err(e.to_string()),
    };
    let found: Vec<f64> = derived.results.iter().flat_map(Value::floats).collect();
    let expected = expected.get_or_insert_with(|| found.clone());
    let close = |(x, y): (&f64, &f64)| (x - y).abs() <= TOLERANCE * (1.0 + y.abs());
    if found.len() != expected.len() || !found.iter().zip(expected.iter()).all(close) {
        return Err(format!("another gradient: {found:?}, not {expected:?}"));
    }
    Ok(format!("{:.1}", count(&derived.counts) as f64 / count(&plain) as f64))
}

/// The counts of the program alone, where its derivative is counted.
fn program(made: &Prepared, ready: &Ready, options: &Options<'_>) -> Result<Counts, RuntimeError> {
    match &ready.on_lambda {
        Some(derivative) => Ok(derivative.run_primal(&made.args, options)?.counts),
        None => Ok(made.primal.counts),
    }
}
