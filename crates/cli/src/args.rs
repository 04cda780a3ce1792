//! The command line's grammar and help texts.

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use pullback_driver::{About, Backend, Floats, Language, Status};
use std::path::PathBuf;

/// A parallel functional array language with first-class reverse-mode automatic differentiation.
#[derive(Debug, Parser)]
#[command(
    name = "pullback",
    version,
    after_help = "\
Examples:
  pullback run examples/kmeans.fut --entry cost --arg points=@points.csv --arg 'centroids=[[0.0, 1.0]]'
  pullback grad examples/gmm.fut --input examples/data/gmm_iris.json --arg x=@examples/data/iris.csv --check
  pullback check model.fut
Every command explains itself: pullback grad --help"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an entry point and print its result.
    #[command(after_help = "\
Examples:
  pullback run ode.fut --entry primal --arg x=[0.7,0.2,0.1] --arg s=5
  pullback run gmm.fut --input start.json --arg x=@iris.csv --json
  pullback run model.fut --input args.json --output result.npy")]
    Run(RunArgs),
    /// Check a program: types, sizes, diagnostics. Prints the entry points.
    #[command(after_help = "Example:\n  pullback check model.fut")]
    Check(CheckArgs),
    /// Value and gradient of an entry point with a scalar result.
    #[command(after_help = "\
Examples:
  pullback grad gmm.fut --input start.json --arg x=@iris.csv --wrt params
  pullback grad gmm.fut --input start.json --arg x=@iris.csv --wrt params,-params.l     freeze one field
  pullback grad gmm.fut --input start.json --arg x=@iris.csv --check                    and check it
  pullback grad gmm.fut --input start.json --arg x=@iris.csv --json --output grad.json")]
    Grad(GradArgs),
    /// Reverse derivative: one cotangent for the result, cotangents of the arguments.
    #[command(after_help = "\
Example:
  pullback vjp ode.fut --entry primal --arg x=[0.7,0.2] --arg s=5 --cotangent [0.0,1.0]")]
    Vjp(VjpArgs),
    /// Forward derivative: a tangent for the arguments, the tangent of the result.
    #[command(after_help = "\
Example:
  pullback jvp ode.fut --entry primal --arg x=[0.7,0.2] --arg s=5 --tangent x=[1.0,0.0]")]
    Jvp(JvpArgs),
    /// The dense Jacobian, one row per number of the result, one column per number of the chosen arguments.
    #[command(after_help = "\
Example:
  pullback jacobian ode.fut --entry primal --arg x=[0.7,0.2,0.1] --arg s=5")]
    Jacobian(JacobianArgs),
    /// The dense Hessian of an entry point with a scalar result, by forward over reverse.
    #[command(after_help = "\
Examples:
  pullback hessian examples/saddle.fut --arg x=1.0 --arg y=2.0
  pullback hessian model.fut --input start.json --wrt params --output hessian.npy")]
    Hessian(MatrixArgs),
    /// The Hessian of an entry point with a scalar result, times a direction; also its gradient.
    #[command(after_help = "\
Example:
  pullback hvp model.fut --arg x=[0.7,0.2] --direction x=[1.0,0.0]")]
    Hvp(ProductArgs),
    /// The Gauss-Newton matrix (Jacobian transposed times Jacobian), or its product with a direction.
    #[command(after_help = "\
Examples:
  pullback gauss-newton residuals.fut --arg x=[0.7,0.2]                              the matrix
  pullback gauss-newton residuals.fut --arg x=[0.7,0.2] --direction x=[1.0,0.0]      its product")]
    GaussNewton(GaussNewtonArgs),
    /// Check derivatives against forward mode and against central differences.
    #[command(after_help = "Example:\n  pullback gradcheck gmm.fut --input start.json --arg x=@iris.csv")]
    Gradcheck(GradcheckArgs),
    /// Print the intermediate language after any pass, or run one pass on its text.
    #[command(after_help = "\
Examples:
  pullback core model.fut                        after the whole pipeline
  pullback core model.fut --after lower          as lowered from the source
  pullback core model.fut --derivative vjp       the reverse derivative of the entry point
  pullback core --print-pipeline
  pullback core program.core --pass simplify     one pass on text")]
    Core(CoreArgs),
    /// Print what an entry point or its derivative is compiled to.
    #[command(after_help = "\
Examples:
  pullback code model.fut                                     structured loops over memory
  pullback code model.fut --derivative vjp --stage llvm       LLVM IR of the reverse derivative
  pullback code model.fut --stage lanes --arg points=@p.csv   loops as chosen for the sizes of these arguments
  pullback code model.fut --stage assembly
  pullback code model.fut --passes                            what each pass of scheduling changes, and its time
  pullback code model.fut --after fusion                      the loops after one of them
  pullback code model.fut --stage lanes --without tiling      the loops without one of them
  pullback code --print-pipeline
  pullback code model.fut --after 8 --whole > loops.kernel    kernel text that can be read again
  pullback code loops.kernel --pass index-set-splitting       one pass on kernel text")]
    Code(CodeArgs),
    /// Show where the time of a run goes: time and bytes of each construct, for the program and its derivative, with advice.
    #[command(after_help = "\
Examples:
  pullback profile model.fut --input args.json                                 the program itself
  pullback profile model.fut --input args.json --derivative vjp --wrt params   and its gradient
  pullback profile model.fut --input args.json --html model.html               as a picture
  pullback profile model.fut --input args.json --backend vm --json")]
    Profile(ProfileArgs),
    /// Compile ahead of running: into the cache, or to a shared library for C programs.
    #[command(after_help = "\
Examples:
  pullback compile model.fut --derivative vjp                              later runs and gradients need not compile
  pullback compile model.fut --derivative vjp --library -o out/model       out/libmodel.so and out/model.h
  pullback compile kmeans.fut --entry cost --derivative vjp --wrt centroids --library --object -o kmeans

A C program calls what the header declares:
  model_handle *handle = model_new(0);
  if (model_objective(handle, n, xs, &y) != MODEL_OK) puts(model_last_error(handle));
  model_free(handle);
and is linked with
  cc main.c -Lout -lmodel -lm -Wl,-rpath,out        or, with --object, cc main.c out/model.o -lm")]
    Compile(CompileArgs),
    /// Say which executors are there, and which one is used.
    #[command(after_help = "\
Examples:
  pullback doctor
  PULLBACK_LLVM=/usr/lib/llvm-19/lib/libLLVM.so pullback doctor")]
    Doctor {
        /// Print machine-readable JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what differentiation made of each source statement: statement | rule | result. Of `bulk` and `accelerate` their steps, too; of the algorithms before `fast_chad`, what they make.
    #[command(after_help = "\
Examples:
  pullback explain model.fut --mode vjp
  pullback explain model.fut --ad bulk                             every step of bulk dual numbers
  pullback explain model.fut --ad accelerate                       the function and its gradient as array programs
  pullback explain model.fut --ad chad-accumulating                the program that Efficient CHAD makes
  pullback explain model.fut --ad chad --arg x=1.5 --arg y=2.0     and what it costs at these arguments")]
    Explain(ExplainArgs),
    /// Speak the GradBench protocol: messages on standard input, answers on standard output, one line of JSON each.
    #[command(after_help = "\
Examples:
  gradbench run --eval 'gradbench eval gmm' --tool 'pullback gradbench'      with the suite
  echo '{\"id\": 0, \"kind\": \"define\", \"module\": \"lse\"}' | pullback gradbench
  pullback gradbench --program mlp=mlp.fut                                   a module of your own too
The problems are hello, gmm, ba, ht, lstm, kmeans, llsq, lse, ode, det, particle and saddle.")]
    Gradbench(GradbenchArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  pullback completions bash > ~/.local/share/bash-completion/completions/pullback"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether the command is to answer in JSON, errors included. `check` reports errors of the program itself.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Command::Run(a) => a.program.json,
            Command::Grad(a) => a.program.json,
            Command::Vjp(a) => a.program.json,
            Command::Jvp(a) => a.program.json,
            Command::Jacobian(a) => a.program.json,
            Command::Hessian(a) => a.program.json,
            Command::Hvp(a) => a.program.json,
            Command::GaussNewton(a) => a.program.json,
            Command::Gradcheck(a) => a.program.json,
            Command::Profile(a) => a.program.json,
            Command::Check(_)
            | Command::Core(_)
            | Command::Code(_)
            | Command::Compile(_)
            | Command::Doctor { .. }
            | Command::Explain(_)
            | Command::Gradbench(_)
            | Command::Completions { .. } => false,
        }
    }
}

/// The program and which of its entry points.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// The program, a `.fut` file.
    pub(crate) file: PathBuf,
    /// The entry point; needed if there are several and none is called main or objective.
    #[arg(long, short)]
    pub(crate) entry: Option<String>,
    /// Print machine-readable JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) algorithm: AlgorithmArgs,
    /// The most memory that loops may use to remember values for reverse derivatives, as 4096, 64KiB, 10MiB or 2GiB: a
    /// loop that would need more runs iterations again. The loops of the program share it.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) tape_limit: Option<u64>,
    /// Run the program as lowered, without optimisation.
    #[arg(long)]
    pub(crate) no_optimise: bool,
    /// What runs the program. The results do not depend on it, but for rounding.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) backend: BackendName,
    /// Neither use machine code that an earlier run kept, nor keep any.
    #[arg(long)]
    pub(crate) no_cache: bool,
    #[command(flatten)]
    pub(crate) floats: FloatArgs,
    /// How many threads run the parts of long loops in machine code; the results do not depend on it. Default: those of the
    /// machine.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
    /// Threads may add to the same memory at the same time where copies of it for each of them would cost too much, as in sums
    /// over many indices into a large array: faster there, but the last bits then differ from run to run.
    #[arg(long)]
    pub(crate) relaxed: bool,
}

/// What machine code may change about floating point. By default a product and a sum may be rounded once.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FloatArgs {
    /// Machine code rounds every operation, and keeps the order of all sums that are not in lanes.
    #[arg(long)]
    pub(crate) no_contract: bool,
    /// Machine code may do float operations in any order, and gives anything where NaN, infinities or signs of zeros matter.
    #[arg(long, conflicts_with = "no_contract")]
    pub(crate) fast_math: bool,
}

impl FloatArgs {
    pub(crate) fn policy(self) -> Floats {
        match (self.no_contract, self.fast_math) {
            (true, _) => Floats::Strict,
            (false, true) => Floats::Fast,
            (false, false) => Floats::Contract,
        }
    }
}

/// An executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// The vm; LLVM for long runs, if it is there.
    Auto,
    /// The interpreter of blocks of lanes, which is ready at once and needs nothing.
    Vm,
    /// Machine code made by LLVM (see `pullback doctor`).
    Llvm,
    /// The reference interpreter, which counts steps.
    Interp,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Backend {
        match name {
            BackendName::Auto => Backend::Auto,
            BackendName::Vm => Backend::Vm,
            BackendName::Llvm => Backend::Llvm,
            BackendName::Interp => Backend::Interp,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct GradbenchArgs {
    /// What runs the programs.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) backend: BackendName,
    /// How many threads run the parts of long loops in machine code. Default: those of the machine.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
    /// Neither use machine code that an earlier run kept, nor keep any.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// One more module beside the problems of the suite: its functions are the entry points of this program.
    #[arg(long = "program", value_name = "NAME=FILE", value_parser = named_file)]
    pub(crate) programs: Vec<(String, String)>,
}

/// A name and a file.
fn named_file(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err("it is not of the form NAME=FILE".into()),
    }
}

/// Which algorithm differentiates, and how.
#[derive(Debug, Args)]
pub(crate) struct AlgorithmArgs {
    #[arg(long, value_name = "NAME", help = algorithms())]
    pub(crate) ad: Option<String>,
    /// Derivatives multiply as IEEE numbers do: zero times an infinite partial derivative is NaN. By default a tangent or
    /// cotangent that is exactly zero stops there, so that what was not taken spoils nothing (docs/book/kinks.md).
    #[arg(long)]
    pub(crate) ieee_partials: bool,
}

/// The help of `--ad`, from the tables of algorithms.
fn algorithms() -> String {
    let all = pullback_driver::reverse_algorithms();
    let names = |is: &dyn Fn(&About) -> bool| {
        all.iter().filter(|a| is(a)).map(|a| a.id).collect::<Vec<_>>().join(", ")
    };
    format!(
        "The algorithm for reverse derivatives; {} if none is given. Functions of arrays have {}, too: bulk if the states of a loop are all floats, accelerate without long loops. The steps before fast_chad are {}: what they make runs in the reference interpreter, or compiled with --backend vm or llvm (docs/book/chad-comparison.md). Steps before bulk are {}: they make delta terms while they run, in the reference interpreter",
        names(&|a| a.status == Status::Default),
        names(&|a| a.language == Language::Core && a.status != Status::Default),
        names(&|a| a.language == Language::Lambda),
        names(&|a| a.language == Language::Fragment)
    )
}

/// What a derivative is taken with respect to.
#[derive(Debug, Args)]
pub(crate) struct WrtArgs {
    /// What to differentiate with respect to: arguments and record fields, separated by commas; `-NAME` freezes one.
    #[arg(long, value_name = "PATHS", allow_hyphen_values = true)]
    pub(crate) wrt: Option<String>,
}

/// A number of bytes with a unit, or of MiB.
fn mebibytes(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let with_unit = if is_number { format!("{text}MiB") } else { text.to_string() };
    bytes(&with_unit)
}

/// A number of bytes with a unit.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        other => return Err(format!("`{other}` is no unit of memory: write B, KiB, MiB or GiB")),
    };
    let number: u64 = digits.trim().parse().map_err(|_| format!("`{digits}` is not a number of bytes"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too much"))
}

/// Argument values.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// One argument: NAME=VALUE in Futhark's text format, or NAME=@FILE (.json, .csv, .npy, .txt).
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
    /// All arguments, or some: a JSON object by argument name, or Futhark text values in order; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<String>,
    /// Stop when the program holds more memory than this, as 256MiB or 2GiB; a number alone is in MiB.
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = mebibytes)]
    pub(crate) memory_limit: u64,
    /// Run parallel operations in an order drawn from this seed, to see that results do not depend on it.
    #[arg(long, value_name = "SEED")]
    pub(crate) schedule: Option<u64>,
    /// Stop at the first operation that makes a NaN or an infinity out of finite numbers, and show it.
    #[arg(long)]
    pub(crate) check_nan: bool,
    /// No progress display.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    /// Write the result to a file; the ending chooses the format (.json, .csv, .npy, .txt).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print what the run cost, what ran it, and what compiling took.
    #[arg(long)]
    pub(crate) report: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The program.
    pub(crate) file: PathBuf,
    /// Print machine-readable JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GradArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// Also check the gradient (see `pullback gradcheck`).
    #[arg(long)]
    pub(crate) check: bool,
    /// How many of the largest entries to show.
    #[arg(long, default_value_t = 5)]
    pub(crate) top: usize,
    /// Write value and gradient to a JSON file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print what primal and derivative cost, what ran them, and what compiling took.
    #[arg(long)]
    pub(crate) report: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VjpArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// The cotangent of the result, as a value or @FILE; default: ones.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) cotangent: Option<String>,
    /// Write the result to a JSON file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct JvpArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    /// The tangent of an argument, NAME=VALUE or NAME=@FILE; arguments without one are constant.
    #[arg(long = "tangent", value_name = "NAME=VALUE", required = true)]
    pub(crate) tangents: Vec<String>,
    /// Write the result to a JSON file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How a Jacobian is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JacobianMode {
    /// Whichever needs fewer passes.
    Auto,
    /// One pass per column.
    Forward,
    /// One pass per row.
    Reverse,
}

#[derive(Debug, Args)]
pub(crate) struct JacobianArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// How to compute it.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) mode: JacobianMode,
    /// Write the matrix to a file (.json, .csv, .npy).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// Write the matrix to a file (.json, .csv, .npy).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ProductArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// The direction for an argument or field, NAME=VALUE or NAME=@FILE; the others stay where they are.
    #[arg(long = "direction", value_name = "NAME=VALUE", required = true)]
    pub(crate) directions: Vec<String>,
    /// Write the result to a JSON file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GaussNewtonArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// The direction for an argument or field, NAME=VALUE or NAME=@FILE; without any, the whole matrix.
    #[arg(long = "direction", value_name = "NAME=VALUE")]
    pub(crate) directions: Vec<String>,
    /// Write the matrix to a file (.json, .csv, .npy), or the product to a JSON file.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GradcheckArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
}

/// What of an entry point is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profiled {
    /// The entry point itself.
    None,
    /// Its reverse derivative, with ones as the cotangent.
    Vjp,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// What is run.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) derivative: Profiled,
    /// How many runs are measured; the one in the middle is shown.
    #[arg(long, value_name = "N", default_value = "11")]
    pub(crate) runs: std::num::NonZeroUsize,
    /// Write a picture to an HTML file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Which derivative of an entry point to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DerivativeKind {
    /// Reverse.
    Vjp,
    /// Forward.
    Jvp,
}

impl From<DerivativeKind> for pullback_driver::Kind {
    fn from(kind: DerivativeKind) -> Self {
        match kind {
            DerivativeKind::Vjp => Self::Vjp,
            DerivativeKind::Jvp => Self::Jvp,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CoreArgs {
    /// A `.fut` program, or a `.core` text with --pass.
    pub(crate) file: Option<PathBuf>,
    /// The entry point.
    #[arg(long, short)]
    pub(crate) entry: Option<String>,
    /// Show the program after this pass (see --print-pipeline); default: the last.
    #[arg(long, value_name = "PASS")]
    pub(crate) after: Option<String>,
    /// Show a derivative of the entry point instead of the entry point.
    #[arg(long, value_enum)]
    pub(crate) derivative: Option<DerivativeKind>,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// Run this one pass on the text of a core program.
    #[arg(long, value_name = "PASS")]
    pub(crate) pass: Option<String>,
    /// List the passes in order.
    #[arg(long)]
    pub(crate) print_pipeline: bool,
    #[command(flatten)]
    pub(crate) algorithm: AlgorithmArgs,
}

/// A stage of compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StageName {
    /// Kernel IR: structured loops over registers and memory.
    Kernel,
    /// Kernel IR with loops in lanes, and in parts for threads.
    Lanes,
    /// LLVM IR, as it is given to LLVM.
    Llvm,
    /// Assembly of this machine.
    Assembly,
}

#[derive(Debug, Args)]
pub(crate) struct CodeArgs {
    /// The program, or kernel text with --pass.
    #[arg(required_unless_present = "print_pipeline")]
    pub(crate) file: Option<PathBuf>,
    /// The entry point.
    #[arg(long, short)]
    pub(crate) entry: Option<String>,
    /// The code of a derivative instead of that of the entry point.
    #[arg(long, value_enum)]
    pub(crate) derivative: Option<DerivativeKind>,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// Which code.
    #[arg(long, value_enum, default_value = "kernel")]
    pub(crate) stage: StageName,
    /// Show kernel IR after this pass of scheduling: its name, or its number in --print-pipeline.
    #[arg(long, value_name = "PASS", conflicts_with = "stage")]
    pub(crate) after: Option<String>,
    /// Leave a pass of scheduling out; may be given more than once.
    #[arg(long, value_name = "PASS")]
    pub(crate) without: Vec<String>,
    /// Print kernel IR with all that it holds, as --pass reads it.
    #[arg(long)]
    pub(crate) whole: bool,
    /// Show what each pass of scheduling changes in this program, and its time.
    #[arg(long, conflicts_with_all = ["stage", "after"])]
    pub(crate) passes: bool,
    /// Run this one pass of scheduling on kernel text.
    #[arg(long, value_name = "PASS", conflicts_with_all = ["stage", "after", "without", "passes"])]
    pub(crate) pass: Option<String>,
    /// List the passes of scheduling in order.
    #[arg(long, exclusive = true)]
    pub(crate) print_pipeline: bool,
    /// Arguments as in runs: loops are chosen for their sizes, as they are there. Without any, for sizes that are not known.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
    /// The same from files, as for `run`.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<String>,
    #[command(flatten)]
    pub(crate) algorithm: AlgorithmArgs,
    #[command(flatten)]
    pub(crate) floats: FloatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// The program.
    pub(crate) file: PathBuf,
    /// An entry point; may be given more than once.
    #[arg(long, short)]
    pub(crate) entry: Vec<String>,
    /// Also a derivative of each; may be given more than once.
    #[arg(long, value_enum)]
    pub(crate) derivative: Vec<DerivativeKind>,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// Arguments as in later runs: loops are chosen for their sizes, so that those runs find their code.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
    /// The same from files, as for `run`.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<String>,
    /// Make a shared library and its header, for C programs.
    #[arg(long, requires = "output")]
    pub(crate) library: bool,
    /// Also make an object for static linking.
    #[arg(long, requires = "library")]
    pub(crate) object: bool,
    /// The name of the library, with its folder: FOLDER/NAME makes FOLDER/libNAME.so and FOLDER/NAME.h.
    #[arg(long, short, value_name = "NAME", requires = "library")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) algorithm: AlgorithmArgs,
    #[command(flatten)]
    pub(crate) floats: FloatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The program.
    pub(crate) file: PathBuf,
    /// The entry point.
    #[arg(long, short)]
    pub(crate) entry: Option<String>,
    /// Which derivative.
    #[arg(long, value_enum, default_value = "vjp")]
    pub(crate) mode: DerivativeKind,
    #[command(flatten)]
    pub(crate) wrt: WrtArgs,
    /// Arguments as in runs: also count what the program and the derivative cost there, in steps of the reference interpreter.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
    /// The same from files, as for `run`.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<String>,
    #[command(flatten)]
    pub(crate) algorithm: AlgorithmArgs,
}

/// Prints the completion script.
pub(crate) fn completions(shell: clap_complete::Shell) {
    clap_complete::generate(shell, &mut Cli::command(), "pullback", &mut std::io::stdout());
}
