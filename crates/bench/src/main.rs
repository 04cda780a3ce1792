//! Benchmarks of the GradBench problems and of small programs, through the suite's protocol: our own command at several numbers of threads, and any
//! other tool, on the same inputs, in turns. `cargo xtask bench --help`.
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

mod accelerate;
mod cliffs;
mod costs;
mod inputs;
mod page;
mod plots;
mod programs;
mod results;
mod sizes;
mod tools;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use inputs::{Float, Work, Workload};
use pullback_driver::files::write_whole;
use results::{Results, Row, Times, time};
use sizes::Extent;
use std::path::{Path, PathBuf};
use tools::Tool;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    about = "Times of the GradBench problems, of small programs, and of their derivatives, with plots",
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  cargo xtask bench --quick                                   a minute
  cargo xtask bench --html bench.html --json bench.json       all problems at several sizes, one thread and two
  cargo xtask bench gmm lstm --full --threads 1               the suite's sizes of two problems
  cargo xtask bench --growth --html growth.html               sizes in between: how cost grows, and whether there is a cliff
  cargo xtask bench lse --tool 'other=python3 other_tool.py'  beside another tool of the suite
  cargo xtask bench compare before.json after.json
  cargo xtask bench accelerate --twice                        the experiments of the Accelerate thesis: an hour"
)]
struct Cli {
    #[command(subcommand)]
    task: Option<Task>,
    /// The problems; all if none is named.
    problems: Vec<String>,
    /// One small size of each problem.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The sizes of the suite too, which take many minutes and gigabytes.
    #[arg(long)]
    full: bool,
    /// Instead, series of sizes that no table has along each dimension, to see how cost grows.
    #[arg(long, conflicts_with_all = ["quick", "full"])]
    growth: bool,
    /// Numbers of threads of our own tool, separated by commas.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2")]
    threads: Vec<std::num::NonZeroUsize>,
    /// Another tool of the protocol, as NAME=COMMAND; it is run on the same inputs in turns with ours.
    #[arg(long = "tool", value_name = "NAME=COMMAND")]
    tools: Vec<String>,
    /// Our own tool, if not the command beside this program.
    #[arg(long, value_name = "COMMAND")]
    ours: Option<String>,
    /// Start the tools anew for each workload: what has been compiled for other sizes is not there.
    #[arg(long)]
    fresh: bool,
    /// For how long each function of each workload is run by each tool, in seconds.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// In how many turns.
    #[arg(long, default_value_t = 3)]
    turns: u32,
    /// Write the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with tables and plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Compare two result files: the second's times over the first's.
    Compare {
        /// The results before.
        before: PathBuf,
        /// The results after.
        after: PathBuf,
    },
    /// The experiments of the thesis on reverse AD for Accelerate, and their page of the book.
    Accelerate(accelerate::Options),
    /// One case of them, in this process.
    #[command(hide = true)]
    AccelerateCase(accelerate::Case),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match &cli.task {
        None => problems(&cli),
        Some(Task::Compare { before, after }) => {
            println!("{}", results::compare(&Results::read(before)?, &Results::read(after)?));
            Ok(())
        }
        Some(Task::Accelerate(options)) => accelerate::run(options),
        Some(Task::AccelerateCase(case)) => {
            println!("{}", case.measure()?);
            Ok(())
        }
    }
}

/// Measures the problems.
fn problems(cli: &Cli) -> Result<()> {
    let extent = match (cli.quick, cli.full, cli.growth) {
        (true, _, _) => Extent::Quick,
        (_, true, _) => Extent::Full,
        (_, _, true) => Extent::Growth,
        _ => Extent::Usual,
    };
    if !(cli.seconds.is_finite() && cli.seconds >= 0.0) || cli.turns == 0 {
        bail!("--seconds takes a number that is not negative, --turns one that is not zero");
    }
    let workloads = sizes::workloads(&cli.problems, extent);
    if let Some(name) = cli.problems.iter().find(|p| !workloads.iter().any(|w| w.problem == *p)) {
        bail!("no problem `{name}`");
    }
    let commands = commands(cli)?;
    let start =
        || commands.iter().map(|(name, command)| Tool::start(name, command)).collect::<Result<Vec<_>>>();
    let mut tools = start()?;
    let mut results = Results { machine: machine(), tools: commands.clone(), ..Results::default() };
    results.rates = costs::rates()?;
    let mut counter = costs::Counter::default();
    let mut counted = Vec::new();
    let bar = ProgressBar::new(workloads.len() as u64).with_style(
        ProgressStyle::with_template("{pos}/{len} {bar:30} {elapsed} {msg}")
            .context("the progress display")?,
    );
    println!("{}", heading());
    for (at, planned) in workloads.iter().enumerate() {
        bar.set_message(planned.problem);
        let workload = (planned.make)();
        bar.set_message(format!("{} {}", workload.problem, workload.name));
        if cli.fresh && at > 0 {
            tools = start()?;
        }
        define(&mut tools, &workload, &mut results);
        let input = workload.input.to_string();
        for k in 0..workload.functions.len() {
            let rows = measure(&mut tools, &workload, &input, k, cli);
            for row in rows {
                bar.suspend(|| println!("{}", line(&row)));
                results.rows.push(row);
            }
            counted.extend(counter.count(&workload, workload.functions[k].name).ok());
        }
        bar.inc(1);
        // What has been measured is not lost if a later workload ends badly.
        write(cli, &results, &counted)?;
    }
    bar.finish_and_clear();
    print!("{}", cliffs::text(&results, &counted));
    let shown = [&cli.json, &cli.html].into_iter().flatten().map(|p| p.display().to_string());
    shown.for_each(|p| println!("wrote {p}"));
    Ok(())
}

/// Names and commands: ours with each number of threads, then the others.
fn commands(cli: &Cli) -> Result<Vec<(String, String)>> {
    let ours = match &cli.ours {
        Some(command) => command.clone(),
        None => {
            let here = std::env::current_exe().context("where this program is")?;
            let path = here.with_file_name("pullback");
            if !path.exists() {
                bail!("there is no `{}`: build it, or say --ours COMMAND", path.display());
            }
            let names = programs::PROGRAMS.iter().filter_map(|(name, _)| Some((name, programs::path(name)?)));
            let programs: String = names.map(|(name, path)| format!(" --program '{name}={path}'")).collect();
            format!("'{}' gradbench --no-cache{programs}", path.display())
        }
    };
    let mut out = Vec::new();
    for n in &cli.threads {
        let name = if n.get() == 1 { "one thread".to_string() } else { format!("{n} threads") };
        out.push((name, format!("{ours} --threads {n}")));
    }
    for tool in &cli.tools {
        let Some((name, command)) = tool.split_once('=') else {
            bail!("`{tool}` is not of the form NAME=COMMAND")
        };
        out.push((name.to_string(), command.to_string()));
    }
    Ok(out)
}

/// What this machine calls itself.
fn machine() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = about.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split(':').nth(1));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{}, {cores} threads", name.map_or("unknown processor", str::trim))
}

/// A tool that does not have the problem says so once more when it is asked to run it.
fn define(tools: &mut [Tool], w: &Workload, results: &mut Results) {
    for tool in tools {
        if let Ok(Some(seconds)) = tool.define(w.problem, w.series) {
            results.defined.push((tool.name.clone(), w.problem.to_string(), seconds));
        }
    }
}

/// What a tool has done so far.
#[derive(Clone, Debug, Default)]
struct Measured {
    /// Seconds of each run.
    runs: Vec<f64>,
    /// Seconds before the first.
    before: f64,
    /// All numbers of the first result.
    output: Vec<f64>,
}

/// The most runs of one turn, roughly.
const MOST_RUNS: f64 = 1e5;

/// Runs a function by all tools in turns, on the workload's input as text.
fn measure(tools: &mut [Tool], w: &Workload, input: &str, k: usize, cli: &Cli) -> Vec<Row> {
    let function = w.functions[k];
    let Work { flops, bytes } = function.least;
    let seconds = cli.seconds / f64::from(cli.turns);
    let mut found: Vec<Result<Measured, String>> = tools.iter().map(|_| Ok(Measured::default())).collect();
    // A first turn is short: the times of too many runs would fill messages of megabytes.
    for turn in 0..=cli.turns {
        for (tool, found) in tools.iter_mut().zip(&mut found) {
            let Ok(measured) = found else { continue };
            let longest = measured.runs.iter().copied().fold(f64::INFINITY, f64::min) * MOST_RUNS;
            let seconds = seconds.min(if turn == 0 { 1e-3 } else { longest });
            match tool.evaluate(w.problem, function.name, input, seconds) {
                Ok(answer) => {
                    if measured.runs.is_empty() {
                        measured.before = answer.before;
                        measured.output = tools::numbers(&answer.output);
                    }
                    measured.runs.extend(answer.runs);
                }
                Err(e) => *found = Err(format!("{e:#}")),
            }
        }
    }
    let first = found.first().and_then(|f| f.as_ref().ok()).map(|f| f.output.clone());
    let row = |(tool, found): (&Tool, Result<Measured, String>)| Row {
        problem: w.problem.to_string(),
        series: w.series.to_string(),
        workload: w.name.clone(),
        function: function.name.to_string(),
        tool: tool.name.clone(),
        work: w.work,
        least: (flops, bytes),
        is_single: w.float == Float::Single,
        is_derivative: function.is_derivative,
        outcome: found.map(|m| {
            let off = first.as_ref().map_or(f64::INFINITY, |f| tools::difference(f, &m.output));
            Times::of(&m.runs, m.before, off)
        }),
    };
    tools.iter().zip(found).map(row).collect()
}

fn heading() -> String {
    format!(
        "{:<9} {:<26} {:<14} {:<12} {:>12} {:>12} {:>12} {:>8} {:>12} {:>8}",
        "problem", "workload", "function", "tool", "least", "median", "first", "runs", "compiling", "off"
    )
}

fn line(row: &Row) -> String {
    let head = format!("{:<9} {:<26} {:<14} {:<12}", row.problem, row.workload, row.function, row.tool);
    match &row.outcome {
        Ok(t) => format!(
            "{head} {:>12} {:>12} {:>12} {:>8} {:>12} {:>8.0e}",
            time(t.least),
            time(t.median),
            time(t.first),
            t.runs,
            time(t.before),
            t.off
        ),
        Err(e) => format!("{head} failed: {}", e.lines().next().unwrap_or_default()),
    }
}

fn write(cli: &Cli, results: &Results, counted: &[costs::Costs]) -> Result<()> {
    if let Some(path) = &cli.json {
        let mut all = results.to_json();
        all["costs"] = costs::to_json(counted);
        costs::add_step_ratios(&mut all, results, counted);
        save(path, &format!("{all:#}\n"))?;
    }
    if let Some(path) = &cli.html {
        save(path, &page::page(results, counted)?)?;
    }
    Ok(())
}

/// Writes a file that is never there in part.
fn save(path: &Path, text: &str) -> Result<()> {
    write_whole(path, text.as_bytes(), |_| ()).with_context(|| format!("cannot write {}", path.display()))
}
