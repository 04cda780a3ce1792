//! What a program and its derivative cost as its data grow, in steps of the interpreter.

use super::build::{args, program};
use super::terms::Term;
use crate::flat::cotangent_floats;
use crate::properties::{Case, Property, Reverse, Subject, Verdict};
use pullback_core::check::{Rules, check};
use pullback_core::metrics::metrics;
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_interp::dual::{count_floats, directional};

/// The sizes that are compared, smallest first: as many as it takes until the ratio does not grow from one to the next. (At other sizes
/// other branches are taken, and the parts of a program whose cost is more than proportional outgrow the others slowly.) The last is
/// for those that are in doubt: what grows like the square root of the size, or faster, is not.
pub const SIZES: [usize; 5] = [32, 128, 512, 2048, 8192];
/// The size at which gradients are compared with forward mode.
const SMALL: usize = 6;
/// From one of the sizes to the next, the ratio of work may grow by this factor: the cost of the inputs, in proportion less at the larger size, falls.
const MOST: f64 = 1.1;

/// A first derivative of at most so many statements and operands is differentiated again, since what is larger may take minutes
/// (decision 67). A choice: of 241 random recursive programs with one or two arrays nine in ten are below 4,400. Those above 13,000 took
/// more than ten seconds on one of two cores.
const TWICE_UP_TO: usize = 10_000;

/// What came of a term.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Derivatives right, ratios flat.
    Flat(Vec<f64>),
    /// The same, without a second derivative: the first one is too large.
    Large(Vec<f64>),
    /// The ratio of work grows.
    Grows(Vec<f64>),
    /// The derivative is wrong, or stops.
    Wrong(String),
}

/// Derives a term; compares its gradient, its second derivative in reverse over reverse, and its cost.
pub fn examine(term: &Term, reverse: Reverse<'_>) -> Outcome {
    let (program, main) = program(term);
    let (growing, smooth, empties) = (Vec::new(), true, false);
    let case = Case { program, main, args: args(SMALL), growing, seed: 2, smooth, empties };
    let run = std::panic::AssertUnwindSafe(|| {
        let subject = Subject::new(&case, reverse);
        let derived = subject.derived().map_err(|e| e.to_string())?;
        let is_large = metrics(&derived.0).size > TWICE_UP_TO;
        if !is_large && let Verdict::Fails(text) = Property::Symmetric.check_on(&subject) {
            return Err(format!("the second derivative: {text}"));
        }
        Ok((is_large, right_and_ratios(&case, derived)?))
    });
    match std::panic::catch_unwind(run) {
        Err(_) => Outcome::Wrong("panic".into()),
        Ok(Err(text)) => Outcome::Wrong(text),
        Ok(Ok((_, ratios))) if grows(&ratios) => Outcome::Grows(ratios),
        Ok(Ok((true, ratios))) => Outcome::Large(ratios),
        Ok(Ok((false, ratios))) => Outcome::Flat(ratios),
    }
}

/// Whether the ratio grew in the last step, and the derivative is dearer than the program, of which it may leave out a part.
fn grows(ratios: &[f64]) -> bool {
    matches!(ratios, [.., a, b] if *b > MOST * a && *b > 1.0)
}

fn right_and_ratios(case: &Case, (derived, id): &(Program, FunId)) -> Result<Vec<f64>, String> {
    check(derived, Rules::NO_AD).map_err(|e| e.to_string())?;
    let (plain, code) = (Compiled::new(&case.program), Compiled::new(derived));
    let options = Options { work_limit: 400_000_000, ..Options::default() };
    let run = |args: &[Value]| {
        let primal = plain.run(case.main, args, &options).map_err(|e| e.to_string())?;
        let all: Vec<Value> = args.iter().cloned().chain([Value::f64(1.0)]).collect();
        let out = code.run(*id, &all, &options).map_err(|e| e.to_string())?;
        if primal.results[0] != out.results[0] {
            return Err(format!("the result is {:?}, not {:?}", out.results[0], primal.results[0]));
        }
        Ok((primal.counts.work as f64, out))
    };
    let (_, out) = run(&case.args)?;
    let floats = case.args.iter().filter(|v| !v.floats().is_empty());
    let mut gradient = Vec::new();
    for (v, bar) in floats.zip(&out.results[1..]) {
        gradient.extend(cotangent_floats(v, bar)?);
    }
    let u: Vec<f64> = (0..count_floats(&case.args)).map(|k| (k as f64 * 0.7 + 0.3).cos()).collect();
    let forward = directional(&plain, case.main, &case.args, &u, &options).map_err(|e| e.to_string())?;
    let forward: f64 = forward.tangent.iter().sum();
    let reverse: f64 = gradient.iter().zip(&u).map(|(g, u)| g * u).sum();
    let size: f64 = gradient.iter().zip(&u).map(|(g, u)| (g * u).abs()).sum();
    if gradient.len() != u.len() || (forward - reverse).abs() > 1e-9 * (1.0 + size) {
        return Err(format!("forward mode gives {forward}, reverse mode {reverse}"));
    }
    let mut ratios = Vec::new();
    for n in SIZES {
        let no_doubt = ratios.len() + 1 == SIZES.len() && matches!(ratios[..], [.., a, b] if b >= 2.0 * a);
        if ratios.len() > 1 && (!grows(&ratios) || no_doubt) {
            break;
        }
        let (primal, out) = run(&args(n)).map_err(|e| format!("{e}; ratios before: {ratios:?}"))?;
        ratios.push(out.counts.work as f64 / primal);
    }
    Ok(ratios)
}
