//! The passes of scheduling as data, and the one function that runs them.
//!
//! The verifier looks at a function after each pass in builds with debug assertions, and at the whole module after the last in all ([`Watch`]).

use super::chunks::Made;
use super::watch::Watch;
use super::work::Work;
use super::{
    Options, bounds_check_hoisting, contract, distribution, fusion, index_set_splitting, jam,
    layout_selection, register_promotion, renumber, room, scalar_replacement, share, skewed_tiling,
    value_numbering, versions, width,
};
use crate::ir::{Function, FunctionId, Module};
use pullback_base::index::Index;
use std::time::Duration;

/// A pass over one function.
pub struct Step {
    /// Its name, the word of the field.
    pub name: &'static str,
    /// It can be left out ([`Options::without`]); else what follows needs it.
    pub optional: bool,
    /// Parts of it that can be left out.
    pub parts: &'static [&'static str],
    /// What it does, in a line.
    pub does: &'static str,
    /// What it may assume of the code.
    pub assumes: &'static str,
    /// What holds of the code that it gives.
    pub guarantees: &'static str,
    /// What is known of the code before ([`Work::kept`]) stays true of the code after.
    pub(super) keeps: bool,
    /// Runs it. `false`: the code is the same, and the verifier is not asked.
    pub(super) run: fn(&mut Work<'_>) -> bool,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// When a row of the table runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// On each function.
    Always,
    /// On a function that the rows before changed, from the last that always runs on.
    Changed,
    /// On each function and the functions of its parts.
    Parts,
}

impl When {
    /// The same for a row that nothing is before.
    pub(super) fn alone(self) -> When {
        match self {
            When::Changed => When::Always,
            other => other,
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The pass.
    pub step: &'static Step,
    /// When it runs.
    pub when: When,
}

const fn on_each(step: &'static Step) -> Row {
    Row { step, when: When::Always }
}
const fn if_changed(step: &'static Step) -> Row {
    Row { step, when: When::Changed }
}
const fn on_parts(step: &'static Step) -> Row {
    Row { step, when: When::Parts }
}

/// From lowered code to loops in lanes and parts.
pub const PIPELINE: &[Row] = &[
    on_each(&scalar_replacement::STEP), // loops over three numbers are no loops
    on_each(&bounds_check_hoisting::STEP), // a loop that may stop is not in any order
    on_each(&value_numbering::ADDRESSES), // equal sizes are equal operands
    on_each(&versions::CHOOSE),         // nests look as they will run
    on_each(&contract::STEP),           // before their loops are joined with others
    on_each(&fusion::STEP),             // what one loop leaves for another is near
    on_each(&versions::SETTLE),         // when it is known what was joined
    on_each(&skewed_tiling::STEP),      // what could not be joined
    on_each(&index_set_splitting::STEP), // branches on counters would be masks in lanes
    if_changed(&bounds_check_hoisting::STEP), // what branches hid is there for all iterations
    if_changed(&value_numbering::ADDRESSES),
    on_each(&distribution::STEP),         // parts of a loop that want other lanes
    on_each(&value_numbering::ADDRESSES), // what parts compute again
    on_each(&layout_selection::STEP),     // rows that lanes reach side by side
    on_each(&width::STEP),                // when it is known which loops are in lanes
    on_each(&room::STEP),                 // as wide as the lanes
    on_each(&share::STEP),
    on_parts(&jam::STEP),                // loops around lanes
    on_parts(&register_promotion::STEP), // sums that were jammed
    on_parts(&value_numbering::CODE),    // nothing is rewritten any more
    on_parts(&renumber::STEP),           // nothing is declared any more
];

/// What a pass did to a function.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its row in [`PIPELINE`].
    pub row: usize,
    /// What came of it.
    pub outcome: Outcome,
    /// The time that it took.
    pub time: Duration,
    /// The functions that it left: the one that it ran on, and those that it made.
    pub functions: Vec<(FunctionId, Function)>,
}

/// What came of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The code is another one.
    Changed,
    /// The code is the same.
    Same,
    /// It did not run.
    LeftOut,
}

/// Sees what passes do.
pub(super) struct Recorder<'a> {
    /// The time since some moment: this crate has no clock.
    pub(super) clock: &'a dyn Fn() -> Duration,
    pub(super) records: Vec<Record>,
}

/// Runs passes on all functions of a module.
pub(super) fn run(
    module: &mut Module,
    rows: &[Row],
    options: &Options,
    watch: &mut Watch,
    mut recorder: Option<&mut Recorder<'_>>,
) {
    module.lanes = options.lanes.max(options.most);
    forget(module);
    let mut made = Made::after(module.functions.len());
    for id in module.functions.ids() {
        let args = options.sizes.iter().find(|(f, _)| *f == id).map_or(&[][..], |(_, sizes)| sizes);
        let f = std::mem::take(&mut module.functions[id]);
        let there = made.functions.len();
        let mut runner = Runner {
            w: Work::new(f, options, args, &mut made),
            id,
            watch,
            recorder: recorder.as_deref_mut(),
        };
        runner.each(rows, |when| when != When::Parts);
        runner.each(rows, |when| when == When::Parts);
        for part in there..runner.w.made.functions.len() {
            runner.part(rows, part);
        }
        module.functions[id] = runner.w.f;
    }
    for f in made.functions {
        module.functions.push(f);
    }
}

/// Sizes of arrays are those of lowered code: passes make copies of registers, and move what sets them.
fn forget(module: &mut Module) {
    for f in module.functions.iter_mut() {
        f.regs.iter_mut().for_each(|info| info.facts.array = None);
    }
}

/// Runs rows on a function.
struct Runner<'r, 'a, 'c> {
    w: Work<'a>,
    id: FunctionId,
    watch: &'r mut Watch,
    recorder: Option<&'r mut Recorder<'c>>,
}

impl Runner<'_, '_, '_> {
    fn each(&mut self, rows: &[Row], is_due: impl Fn(When) -> bool) {
        let mut changed = false;
        for (k, row) in rows.iter().enumerate().filter(|(_, row)| is_due(row.when)) {
            let is_asked = !row.step.optional || self.w.options.does(row.step.name);
            let follows = row.when == When::Changed;
            let did = self.row(k, row.step, is_asked && (changed || !follows));
            changed = did || (follows && changed);
        }
    }
    /// Runs one, or leaves it out; whether it may have changed anything.
    fn row(&mut self, k: usize, step: &Step, runs: bool) -> bool {
        let there = self.w.made.functions.len();
        // Who asks for the body of before: the recorder, and a build that does not take the word of passes.
        let before = (self.recorder.is_some() || cfg!(debug_assertions)).then(|| self.w.f.body.clone());
        let started = self.recorder.as_ref().map(|r| (r.clock)());
        let did = runs && (step.run)(&mut self.w);
        let time = self.recorder.as_ref().zip(started).map(|(r, started)| (r.clock)() - started);
        if !step.keeps {
            self.w.kept = None;
        }
        let is_same = before.is_none_or(|body| body == self.w.f.body);
        debug_assert!(did || is_same, "`{}` says `false`, but the code is another one", step.name);
        if let Some(time) = time {
            self.record(k, (runs, is_same), there, time);
        }
        if did {
            self.watch.parts(step.name, &self.w.made.functions);
            let watch = &*self.watch;
            self.w.each_version(|w| watch.function(step.name, &w.f));
        }
        did
    }
    fn record(&mut self, row: usize, (runs, is_same): (bool, bool), there: usize, time: Duration) {
        let Some(recorder) = &mut self.recorder else { return };
        let outcome = match (runs, is_same) {
            (false, _) => Outcome::LeftOut,
            (true, false) => Outcome::Changed,
            (true, true) => Outcome::Same,
        };
        let made = &self.w.made;
        let more = (there..made.functions.len()).map(|k| (made.id(k), made.functions[k].clone()));
        let functions = std::iter::once((self.id, self.w.f.clone())).chain(more).collect();
        recorder.records.push(Record { row, outcome, time, functions });
    }
    /// Runs the rows for parts on a function that was made of one.
    fn part(&mut self, rows: &[Row], part: usize) {
        let whole = std::mem::replace(&mut self.id, self.w.made.id(part));
        std::mem::swap(&mut self.w.f, &mut self.w.made.functions[part]);
        self.each(rows, |when| when == When::Parts);
        std::mem::swap(&mut self.w.f, &mut self.w.made.functions[part]);
        self.id = whole;
    }
}

/// What records say that a module was after a row of the table.
pub(super) fn after(module: &Module, lanes: usize, records: &[Record], row: usize) -> Module {
    let mut module = module.clone();
    module.lanes = lanes;
    forget(&mut module);
    for (id, f) in records.iter().filter(|r| r.row <= row).flat_map(|r| &r.functions) {
        if id.index() < module.functions.len() {
            module.functions[*id] = f.clone();
        } else {
            module.functions.push(f.clone());
        }
    }
    module
}
