//! The command line `pullback`.
//!
//! Errors go to standard error with the source line and a hint, with `--json` also to standard output as
//! `{"ok": false, "diagnostics": [..]}`; exit codes: 0 success, 1 the program or input is wrong,
//! 2 the command line is wrong, 3 not supported yet, 4 a bug in Pullback, 130 stopped by Ctrl-C.

mod args;
mod code;
mod commands;
mod compile;
mod explain;
mod gradbench;
mod inputs;
mod interrupt;
mod matrices;
mod output;
mod profile;
mod profile_page;
mod progress;
mod report;

use args::{Cli, Command};
use clap::Parser;
use pullback_base::Fault;
use serde_json::{Value as Json, json};
use std::process::ExitCode;

/// What a command ends with when it cannot do its work.
struct Failure {
    fault: Fault,
    message: String,
    /// The same for `--json`: a list of diagnostics.
    report: Vec<Json>,
}

impl Failure {
    fn new(fault: Fault, message: impl Into<String>) -> Failure {
        Failure { fault, message: message.into(), report: Vec::new() }
    }
    fn input(message: impl Into<String>) -> Failure {
        let message = message.into();
        let report =
            vec![json!({"code": "E0501", "error": true, "message": message, "place": null, "hints": []})];
        Failure { report, ..Failure::new(Fault::Program, format!("error[E0501]: {message}")) }
    }
    fn code(&self) -> u8 {
        match self.fault {
            Fault::Program => 1,
            Fault::Unsupported => 3,
            Fault::Bug => 4,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let wants_json = cli.command.wants_json();
    interrupt::listen();
    let result = run_deep(move || match cli.command {
        Command::Run(c) => commands::run(&c),
        Command::Check(c) => commands::check(&c),
        Command::Grad(c) => commands::grad(&c),
        Command::Vjp(c) => commands::vjp(&c),
        Command::Jvp(c) => commands::jvp(&c),
        Command::Jacobian(c) => matrices::jacobian(&c),
        Command::Hessian(c) => matrices::hessian(&c),
        Command::Hvp(c) => matrices::hvp(&c),
        Command::GaussNewton(c) => matrices::gauss_newton(&c),
        Command::Gradcheck(c) => commands::gradcheck(&c),
        Command::Core(c) => commands::core(&c),
        Command::Profile(c) => profile::profile(&c),
        Command::Code(c) => code::code(&c),
        Command::Compile(c) => compile::compile(&c),
        Command::Doctor { json } => {
            code::doctor(json);
            Ok(())
        }
        Command::Explain(c) => explain::explain(&c),
        Command::Gradbench(c) => gradbench::gradbench(&c),
        Command::Completions { shell } => {
            args::completions(shell);
            Ok(())
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.code();
            let (failure, code) = interrupt::stopped().unwrap_or((failure, code));
            eprint!("{}", failure.message);
            if !failure.message.ends_with('\n') {
                eprintln!();
            }
            if wants_json && !failure.report.is_empty() {
                output::say(&format!("{:#}", json!({"ok": false, "diagnostics": failure.report})));
            }
            ExitCode::from(code)
        }
    }
}

/// Runs the command on a thread with room for deep recursion, and turns a panic, which is always a bug, into a failure.
fn run_deep(work: impl FnOnce() -> Result<(), Failure> + Send + 'static) -> Result<(), Failure> {
    std::panic::set_hook(Box::new(|_| {}));
    let thread = std::thread::Builder::new().stack_size(512 << 20).spawn(work);
    let thread = thread.map_err(|e| Failure::new(Fault::Program, format!("cannot start a thread: {e}")))?;
    thread.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
        Err(Failure::new(
            Fault::Bug,
            format!("bug in pullback[E0901]: {text}\n  hint: please report it with the program and the command line"),
        ))
    })
}
