//! Core programs as text, run by the reference executor of kernel IR.

pub(crate) mod claims;
pub(crate) mod counted;
pub(crate) mod tampering;
mod text;

use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::{FunId, Program, Value};
use pullback_driver::{Session, Settings};
use pullback_kernel::run::{self, Memory, Word, run_with_ghosts};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Ghosts, Module, lower_with_ghosts, lower_with_parts};
#[allow(unused_imports, reason = "not all tests use it")]
pub(crate) use text::parse;

/// The results with parts of at least so many elements, in so many lanes (0: none, and loops in any order from their end).
#[allow(dead_code, reason = "not all tests use it")]
pub(crate) fn results(program: &(Program, FunId), args: &[Value], part: i64, lanes: usize) -> Vec<Value> {
    let model = Model { block: 0.0, lane: 0.0, apart: 0.01, registers: 8, tiles: [1.0; 4], near: Some(0) };
    results_with(program, args, part, lanes, model)
}

/// The same, with another model of costs.
pub(crate) fn results_with(
    program: &(Program, FunId),
    args: &[Value],
    part: i64,
    lanes: usize,
    model: Model,
) -> Vec<Value> {
    if lanes == 0 {
        let (module, id, ghosts) = lower_with_ghosts(&program.0, program.1, part).expect("native");
        return results_of((&program.0, program.1), (&module, id, &ghosts), args, (STEPS, true))
            .expect("it runs");
    }
    let (mut module, id) = lower_with_parts(&program.0, program.1, part).expect("native");
    let (most, grain, relaxed) = (2 * lanes, Some(2.0), false);
    schedule(
        &mut module,
        &schedule::Options { lanes, most, model, grain, relaxed, sizes: Vec::new(), without: Vec::new() },
    );
    results_from(program, (&module, id), args, false)
}

/// The results of a function, as kernel IR; `backwards`: loops in any order run from their end.
pub(crate) fn results_from(
    (program, f): &(Program, FunId),
    (module, id): (&Module, FunctionId),
    args: &[Value],
    backwards: bool,
) -> Vec<Value> {
    let code = (module, id, &Ghosts::default());
    results_of((program, *f), code, args, (STEPS, backwards)).expect("it runs")
}

const STEPS: u64 = 400_000_000;
/// Elements of memory: less than programs of a few thousand copies take that give none back.
const ELEMENTS: usize = 1 << 22;

/// The results of a function of code with events, in so many steps.
fn results_of(
    (program, f): (&Program, FunId),
    (module, id, ghosts): (&Module, FunctionId, &Ghosts),
    args: &[Value],
    (steps, backwards): (u64, bool),
) -> Result<Vec<Value>, RuntimeError> {
    let mut memory = Memory::new(ELEMENTS);
    let mut words: Vec<Word> = Vec::new();
    for (p, value) in program.funs[f].params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps, backwards };
    let results = run_with_ghosts((module, ghosts), id, &words, &mut memory, options)?;
    let mut words = results.into_iter();
    program.funs[f].results.iter().map(|t| from_words(&memory, t, &mut words)).collect()
}

/// What the executor finds wrong in a run of code with events. Values are not looked at, nor whether the program stops.
pub(crate) fn alarm_in(
    program: (&Program, FunId),
    code: (&Module, FunctionId, &Ghosts),
    args: &[Value],
    how: (u64, bool),
) -> Option<String> {
    let e = results_of(program, code, args, how).err()?;
    (e.kind == RuntimeErrorKind::Internal).then_some(e.message)
}

/// The entry point of a program.
pub(crate) fn compiled(text: &str) -> (Program, FunId) {
    let session = Session::compile("text.fut", text, Settings::default());
    let session = session.unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    let entry = session.entry(None).expect("an entry");
    let ready = session.primal(&entry).expect("derivatives");
    (ready.program.clone(), ready.fun)
}
