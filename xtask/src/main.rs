//! Repository tasks: `cargo xtask tidy | coverage | steps | book | benchmarks [WORKLOAD..] | bench [OPTION..] | soak [COUNT [SEED]] |
//! sanitize [WORD..] | mutants [WORD..]`.

mod accelerate_rows;
mod bulk_rows;
mod chad_rows;
mod checklist;
mod checklist_rows;
mod coverage;
mod dual_rows;
mod mutants;
mod sanitize;
mod tidy;

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::Command;

const HELP: &str = "\
cargo xtask TASK

  tidy               check the rules of the house; non-zero exit and a list if one is broken
  coverage           rewrite docs/book/coverage.md and docs/book/primitives.md from the code
  steps              rewrite docs/book/steps.md: what gradients cost, counted by the interpreter
  book               rewrite the generated blocks of docs/book: the worked examples
  benchmarks [W..]   print the table of docs/benchmarks/README.md: our derivatives against C by hand (gcc)
  bench [OPTION..]   times of all problems and small programs, with plots: see cargo xtask bench --help
  soak [N [SEED]]    run all random properties on N programs (default 50000)
  soak native [N [SEED [O0|O1|O3|vm [usual|endings|NAME]]]]
                     run N programs (default 20000) and their gradients through LLVM (at O3) and the vm; endings: programs
                     that end in branches, with second derivatives too; without N hostile sizes too
  soak hostile [N [SEED]]
                     run N programs (default 50000) with hostile sizes and rows that do not match, each in a process that may crash
  soak native-shrink SEED [O0|O1|O3|vm [usual|endings|NAME]]
                     print a small program that fails there as the one of the seed does
  sanitize [W..]     run the tests of unsafe code under Miri and sanitizers (those whose names have the words)
  mutants [W..]      build each deliberate error of the folder mutants in a scratch copy: its test must fail
                     (those whose names have the words)
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => {
            let broken = tidy::check(&root())?;
            if !broken.is_empty() {
                bail!("{} rules of the house are broken:\n{}", broken.len(), broken.join("\n"));
            }
            Ok(())
        }
        ["coverage"] => coverage::write(&root()),
        ["steps"] => steps(),
        ["book"] => book(),
        ["benchmarks", rest @ ..] => benchmarks(rest),
        ["bench", rest @ ..] => bench(rest),
        ["soak", "hostile", rest @ ..] => random("hostile", rest),
        ["soak", "native"] => random("soak", &["native"]).and(random("hostile", &[])),
        ["soak"] => random("soak", &["50000"]),
        ["soak", rest @ ..] => random("soak", rest),
        ["sanitize", words @ ..] => sanitize::run(&root(), words),
        ["mutants", words @ ..] => mutants::run(&root(), words),
        _ => {
            eprint!("{HELP}");
            bail!("unknown task");
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text above the table of costs.
const STEPS: &str = "\
# What a gradient costs

Steps of the reference interpreter: one per statement, per loop test, per element that a bulk operation touches, per number added into an accumulator. *Ratio*: steps of
objective and gradient together over steps of the objective alone. The inputs are synthetic; the sizes small. Written by `cargo xtask steps`, from the optimised programs. A test
counts again and fails at any other number, a smaller one too: then the table is to be written anew, so that what has been gained is not lost unseen.

";

fn steps() -> Result<()> {
    let output = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", "pullback-testkit", "--bin", "steps"])
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        bail!("the costs could not be counted:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::write(
        root().join("docs/book/steps.md"),
        format!("{STEPS}{}", String::from_utf8(output.stdout)?),
    )?;
    Ok(())
}

fn book() -> Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "pullback-testkit", "--bin", "book"])
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("a page of the book could not be written; the message above names it");
    }
    Ok(())
}

fn benchmarks(names: &[&str]) -> Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", "pullback-cpu", "--example", "benchmarks", "--"])
        .args(names)
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("the benchmarks failed");
    }
    Ok(())
}

/// The command is built first: it is what is measured.
fn bench(args: &[&str]) -> Result<()> {
    let build = ["build", "--release", "--quiet", "--package", "pullback-cli", "--package", "pullback-bench"];
    let run = ["run", "--release", "--quiet", "--package", "pullback-bench", "--"];
    for (what, args) in [(&build[..], &[][..]), (&run[..], args)] {
        // Paths in the options are those of the caller.
        let status = Command::new("cargo").args(what).args(args).status()?;
        if !status.success() {
            bail!("the benchmarks failed");
        }
    }
    Ok(())
}

/// Runs one of the programs that run random ones.
fn random(program: &str, args: &[&str]) -> Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--release", "--package", "pullback-testkit", "--bin", program, "--"])
        .args(args)
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("the soak run found failures; they are printed above with seed and program");
    }
    Ok(())
}
