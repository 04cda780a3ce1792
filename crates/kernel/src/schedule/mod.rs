//! Which loops run side by side.
//!
//! Place in the pipeline: after the lowering, before an executor. The passes are rows of a table ([`PIPELINE`]): before lanes are chosen, nests are rewritten so that
//! more of them can be; of any nest of loops that allow any order, the one is chosen whose iterations side by side are expected to cost
//! least (`cost`); the loops around it stay loops, those inside it too, but run for all lanes at once (`lanes`).
//!
//! Guarantees: the values of the module before, but for the order in which floats are added and multiplied by loops that
//! declare that any order will do ([`crate::Fold`], [`crate::Ins::Accumulate`]); which of several errors a program stops with
//! may change.

mod added;
mod array_contraction;
mod bounds_check_hoisting;
mod chunks;
mod contract;
mod cost;
mod distribution;
mod fusion;
mod index_set_splitting;
pub(crate) mod jam;
mod lanes;
mod layout_selection;
mod pipeline;
mod places;
mod ranges;
mod register_promotion;
mod registers;
mod renumber;
mod room;
mod row_layout;
mod scalar_replacement;
mod scheduler;
mod share;
mod skewed_tiling;
mod tile;
mod uses;
mod value_numbering;
mod versions;
mod watch;
mod width;
mod work;

use crate::ir::{FunctionId, Module};
use crate::verify::Fallback;
pub use chunks::without_chunks;
pub use cost::Model;
pub use pipeline::{Outcome, PIPELINE, Record, Row, Step, When};
pub(crate) use scalar_replacement::ELEMENTS as SMALL;
use std::time::Duration;
use watch::Watch;

/// How loops are scheduled.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many iterations run side by side: a power of two.
    pub lanes: usize,
    /// In loops that much of the time is expected to go into, at most so many: as many as registers and the number of iterations
    /// allow. A power of two.
    pub most: usize,
    /// What the executor takes.
    pub model: Model,
    /// Loops are split into parts that threads can share, each of so much work ([`Model`]); `None`: they are not.
    pub grain: Option<f64>,
    /// Parts may add to memory at the same time where copies of it would cost too much: the order of sums of floats is not fixed.
    pub relaxed: bool,
    /// What the arguments of functions are expected to be, if they are sizes. Only the choice of loops depends on it.
    pub sizes: Vec<(FunctionId, Vec<Option<i64>>)>,
    /// What is left out, by name ([`optional`]): nothing, but for tests and to see what a pass does.
    pub without: Vec<&'static str>,
}

impl Options {
    /// So many lanes in all loops, no parts for threads, nothing known about sizes.
    pub fn new(lanes: usize, model: Model) -> Options {
        let (most, grain, relaxed) = (lanes, None, false);
        Options { lanes, most, model, grain, relaxed, sizes: Vec::new(), without: Vec::new() }
    }
    fn does(&self, name: &str) -> bool {
        !self.without.contains(&name)
    }
}

/// What can be left out: passes, and parts of passes. No value depends on them, but for the order of sums.
pub fn optional() -> Vec<&'static str> {
    let mut names = Vec::new();
    for Row { step, .. } in PIPELINE {
        for name in step.optional.then_some(step.name).into_iter().chain(step.parts.iter().copied()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The last row of [`PIPELINE`] with a pass of this name.
pub fn row_named(name: &str) -> Option<usize> {
    PIPELINE.iter().rposition(|row| row.step.name == name)
}

/// Puts loops of all functions into lanes. The module has none yet. If the verifier has an alarm on what came of it, the module stays as it was
/// ([`Fallback::AsLowered`]). Cost: the size of the module, times the depth of its nests.
///
/// # Panics
/// In builds with debug assertions, if the verifier has an alarm after one of the passes: an internal error.
pub fn schedule(module: &mut Module, options: &Options) {
    *module = schedule_unproved(std::mem::take(module), options).proved();
}

/// The same, before the verifier has been asked: to look whether the code is known already. To be run only if it is, or else when it is proved.
///
/// # Panics
/// As [`schedule`], after each pass.
pub fn schedule_unproved(before: Module, options: &Options) -> Unproved {
    let mut made = before.clone();
    let mut watch = Watch::new(&before, options);
    pipeline::run(&mut made, PIPELINE, options, &mut watch, None);
    Unproved { before, made, watch }
}

/// A module with loops in lanes about which the verifier has not been asked.
#[derive(Debug)]
pub struct Unproved {
    before: Module,
    made: Module,
    watch: Watch,
}

impl Unproved {
    /// The module.
    pub fn module(&self) -> &Module {
        &self.made
    }
    /// The module, or the one before if the verifier has an alarm ([`Fallback::AsLowered`]).
    ///
    /// # Panics
    /// As [`schedule`].
    pub fn proved(self) -> Module {
        let Unproved { mut before, made, watch } = self;
        if watch.has_alarm(&made) {
            before.fallbacks.push(Fallback::AsLowered);
            return before;
        }
        made
    }
}

/// What each pass does to a module, function by function. `clock`: the time since some moment. Cost: that of [`schedule`], and a copy of the function for each pass.
///
/// # Panics
/// As [`schedule`].
pub fn trace(module: &Module, options: &Options, clock: &dyn Fn() -> Duration) -> Vec<Record> {
    let mut module = module.clone();
    let mut watch = Watch::new(&module, options);
    let mut recorder = pipeline::Recorder { clock, records: Vec::new() };
    pipeline::run(&mut module, PIPELINE, options, &mut watch, Some(&mut recorder));
    recorder.records
}

/// The module as it is after a row of [`PIPELINE`], if these are the records of it.
pub fn after(module: &Module, options: &Options, records: &[Record], row: usize) -> Module {
    pipeline::after(module, options.lanes.max(options.most), records, row)
}

/// Runs the passes of some rows of [`PIPELINE`] on a module, one after the other; a number that is none of a row is left out.
///
/// # Panics
/// As [`schedule`].
pub fn only(module: &mut Module, options: &Options, rows: &[usize]) {
    let rows = rows.iter().filter_map(|row| PIPELINE.get(*row));
    let rows: Vec<Row> = rows.map(|row| Row { when: row.when.alone(), ..*row }).collect();
    let mut watch = Watch::new(module, options);
    pipeline::run(module, &rows, options, &mut watch, None);
}
