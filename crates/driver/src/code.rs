//! What a function is compiled to, as text: kernel IR before, between and after the passes of scheduling, LLVM IR, assembly.

use crate::backend::{HINT, lowered, sizes};
use crate::session::{Ready, deep};
use pullback_base::{Code, Diagnostic};
use pullback_core::Value;
use pullback_kernel::schedule::When;
use pullback_kernel::schedule::{self, Record};
pub use pullback_kernel::schedule::{Outcome, PIPELINE, optional};
use pullback_kernel::{FunctionId, Module, print, print_whole, read, size};
use pullback_llvm::{Level, Llvm, Machine, emit, text};
use std::time::Instant;

/// A stage of compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Kernel IR.
    Kernel,
    /// Kernel IR with loops in lanes and in parts for threads.
    Lanes,
    /// LLVM IR, as it is given to LLVM.
    Llvm,
    /// Assembly of this machine.
    Assembly,
}

/// How kernel IR is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people: without types that follow, and names of messages.
    Short,
    /// With all that a module holds, as [`one_pass`] reads it.
    Whole,
}

impl Form {
    fn print(self, module: &Module) -> String {
        match self {
            Form::Short => print(module),
            Form::Whole => print_whole(module),
        }
    }
}

/// What a function is compiled to, as text, with loops chosen for the sizes of these arguments, or of the first ones; where there
/// are none, for sizes that are not known. `without`: passes of scheduling that are left out. Errors: as for running compiled code.
pub fn code_text(
    ready: &Ready,
    (stage, form): (Stage, Form),
    args: &[Value],
    without: &[&'static str],
) -> Result<String, Diagnostic> {
    let (module, function) = deep(|| lowered(ready)).map_err(|d| *d)?;
    let found = Llvm::find();
    let machine = found.as_ref().map_or(Machine::Generic, |llvm| llvm.instructions());
    let options = text::Options { floats: ready.floats, machine, ..text::Options::default() };
    let scheduling = as_run(ready, function, args, without);
    let in_lanes = || pullback_cpu::scheduled(&module, machine, &scheduling);
    match stage {
        Stage::Kernel => Ok(form.print(&module)),
        Stage::Lanes => Ok(form.print(&in_lanes())),
        Stage::Llvm => Ok(emit(&in_lanes(), &options).text),
        Stage::Assembly => {
            let emitted = emit(&in_lanes(), &options);
            let made = found.and_then(|llvm| llvm.assembly(&emitted.text, Level::O3));
            made.map_err(|e| Diagnostic::global(Code::Unsupported, format!("no native code: {e}")).hint(HINT))
        }
    }
}

/// How code is made for a run with these arguments.
fn as_run(
    ready: &Ready,
    function: FunctionId,
    args: &[Value],
    without: &[&'static str],
) -> pullback_cpu::Options {
    let (sizes, without) = (sizes(ready, function, args), without.to_vec());
    pullback_cpu::Options { sizes, without, ..pullback_cpu::Options::default() }
}

/// What each pass of scheduling does to a function, as it does for machine code.
#[derive(Clone, Debug)]
pub struct Passes {
    lowered: Module,
    options: schedule::Options,
    records: Vec<Record>,
}

impl Passes {
    /// Lowers and schedules; arguments and `without` as for [`code_text`]. Errors: as for running compiled code.
    pub fn new(ready: &Ready, args: &[Value], without: &[&'static str]) -> Result<Passes, Diagnostic> {
        let (lowered, function) = deep(|| lowered(ready)).map_err(|d| *d)?;
        let machine = Llvm::find().as_ref().map_or(Machine::Generic, |llvm| llvm.instructions());
        let options = pullback_cpu::scheduling(machine, &as_run(ready, function, args, without));
        let start = Instant::now();
        let records = schedule::trace(&lowered, &options, &|| start.elapsed());
        Ok(Passes { lowered, options, records })
    }
    /// The code after a row of [`PIPELINE`], as text.
    pub fn after(&self, row: usize, form: Form) -> String {
        form.print(&schedule::after(&self.lowered, &self.options, &self.records, row))
    }
    /// For each row: whether a function was changed, or all were left out; instructions after it; seconds.
    pub fn table(&self) -> Vec<(Outcome, usize, f64)> {
        let of_row = |row: usize| {
            let of: Vec<&Record> = self.records.iter().filter(|r| r.row == row).collect();
            let outcome =
                [Outcome::Changed, Outcome::Same].into_iter().find(|o| of.iter().any(|r| r.outcome == *o));
            let module = schedule::after(&self.lowered, &self.options, &self.records, row);
            let instructions = module.functions.iter().map(|f| size(&f.body)).sum();
            let seconds = of.iter().map(|r| r.time.as_secs_f64()).sum();
            (outcome.unwrap_or(Outcome::LeftOut), instructions, seconds)
        };
        (0..PIPELINE.len()).map(of_row).collect()
    }
}

/// Runs the pass of a row of [`PIPELINE`] on kernel text, as it does for machine code. A line `// becomes` ends the text, so that cases of
/// passes can be given as they are. Errors: a text that is none, or breaks a rule of kernel IR.
pub fn one_pass(text: &str, row: usize) -> Result<String, Diagnostic> {
    let wrong = |message: String| Diagnostic::global(Code::Input, message);
    let text = text.split_once("\n// becomes\n").map_or(text, |(before, _)| before);
    let mut module = read(text).map_err(|e| wrong(format!("not kernel text: {e}")))?;
    if let Some(alarm) = pullback_kernel::verify::verify(&module).alarms.first() {
        return Err(wrong(format!("the kernel text breaks a rule: {alarm}")));
    }
    let machine = Llvm::find().as_ref().map_or(Machine::Generic, |llvm| llvm.instructions());
    let options = pullback_cpu::scheduling(machine, &pullback_cpu::Options::default());
    schedule::only(&mut module, &options, &[row]);
    Ok(print_whole(&module))
}

/// The row of [`PIPELINE`] with this number, from 1, or the last one with a pass of this name.
pub fn row(wanted: &str) -> Option<usize> {
    let number = wanted.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    number.filter(|row| *row < PIPELINE.len()).or(schedule::row_named(wanted))
}

/// The passes of scheduling in order: what each does, assumes and guarantees, and which can be left out.
pub fn pipeline_text() -> String {
    let mut out = String::new();
    for (k, row) in PIPELINE.iter().enumerate() {
        let step = row.step;
        let when = match row.when {
            When::Always => "",
            When::Changed => " (where the passes before changed something)",
            When::Parts => " (also in the functions of parts)",
        };
        out += &format!("{:>2} {}{when}\n     {}\n", k + 1, step.name, step.does);
        out += &format!("     assumes {}; guarantees {}\n", step.assumes, step.guarantees);
    }
    out + &format!("--without can leave out {}\n", optional().join(", "))
}
