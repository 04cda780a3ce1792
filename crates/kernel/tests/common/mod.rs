//! Core programs as text, run by the reference executor of kernel IR.

pub(crate) mod counted;
mod text;

use pullback_core::{FunId, Program, Value};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Module, lower_with_parts};
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
    let (mut module, id) = lower_with_parts(&program.0, program.1, part).expect("native");
    if lanes > 0 {
        let (most, grain, relaxed) = (2 * lanes, Some(2.0), false);
        schedule(
            &mut module,
            &schedule::Options { lanes, most, model, grain, relaxed, sizes: Vec::new(), without: Vec::new() },
        );
    }
    results_from(program, (&module, id), args, lanes == 0)
}

/// The results of a function, as kernel IR; `backwards`: loops in any order run from their end.
pub(crate) fn results_from(
    (program, f): &(Program, FunId),
    (module, id): (&Module, FunctionId),
    args: &[Value],
    backwards: bool,
) -> Vec<Value> {
    let mut memory = Memory::new(1 << 26);
    let mut words: Vec<Word> = Vec::new();
    for (p, value) in program.funs[*f].params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 400_000_000, backwards };
    let mut words = run(module, id, &words, &mut memory, options).expect("it runs").into_iter();
    let types = &program.funs[*f].results;
    types.iter().map(|t| from_words(&memory, t, &mut words).expect("results")).collect()
}
