//! Tests of the crates with `unsafe` code under checkers that need a nightly toolchain: Miri (undefined behaviour, as far as no
//! loaded library is called), the thread sanitizer (accesses without order), the address sanitizer (memory, also that of
//! compiled code's callers). What is not installed is counted as skipped.
//!
//! To install what it wants: `rustup toolchain install nightly --component miri --component rust-src`.

use anyhow::{Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// One run of a checker.
struct Check {
    name: &'static str,
    checker: Checker,
    /// What is tested, as arguments of `cargo test`.
    tests: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq)]
enum Checker {
    Miri,
    /// With a standard library that is watched too: else what it orders would not be seen.
    Thread,
    Address,
}

const CHECKS: &[Check] = &[
    Check {
        name: "pool under Miri",
        checker: Checker::Miri,
        tests: &["--package", "pullback-pool", "--lib", "--test", "launches"],
    },
    Check {
        name: "pool under the thread sanitizer",
        checker: Checker::Thread,
        tests: &["--package", "pullback-pool", "--lib", "--test", "launches"],
    },
    Check {
        name: "pool under the address sanitizer",
        checker: Checker::Address,
        tests: &["--package", "pullback-pool", "--lib", "--test", "launches", "--test", "fork"],
    },
    Check {
        name: "vector functions under the address sanitizer",
        checker: Checker::Address,
        tests: &["--package", "pullback-maths", "--test", "it", "special::"],
    },
    Check {
        name: "derivatives of Rust code under Miri",
        checker: Checker::Miri,
        tests: &["--package", "pullback-dual", "--lib", "--test", "it", "--", "tests::", "values::"],
    },
    Check {
        name: "derivatives of Rust code under the thread sanitizer",
        checker: Checker::Thread,
        tests: &["--package", "pullback-dual", "--test", "it", "parallel::"],
    },
    Check {
        name: "derivatives of Rust code under the address sanitizer",
        checker: Checker::Address,
        tests: &[
            "--package",
            "pullback-dual",
            "--lib",
            "--test",
            "it",
            "--",
            "tests::",
            "reverse::",
            "values::",
            "parallel::",
        ],
    },
    Check {
        name: "kernels of the vm under Miri",
        checker: Checker::Miri,
        tests: &["--package", "pullback-vm", "--test", "it", "kernels::"],
    },
    Check {
        name: "vm under the address sanitizer",
        checker: Checker::Address,
        tests: &["--package", "pullback-vm", "--test", "it", "--", "kernels::", "instructions::"],
    },
    Check {
        name: "values of calls under Miri",
        checker: Checker::Miri,
        tests: &["--package", "pullback-abi", "--test", "it"],
    },
    Check {
        name: "values of calls under the address sanitizer",
        checker: Checker::Address,
        tests: &["--package", "pullback-abi", "--test", "it"],
    },
    Check {
        name: "calls of compiled code under the address sanitizer",
        checker: Checker::Address,
        tests: &["--package", "pullback-cpu", "--test", "it", "--", "instructions::", "primitives::"],
    },
];

/// Checks that name a program of tests or a module of tests that is not there: they would run nothing.
pub(crate) fn broken(root: &Path, broken: &mut Vec<String>) {
    for check in CHECKS {
        let package = check.tests.iter().find_map(|word| word.strip_prefix("pullback-")).unwrap_or_default();
        let folder = root.join("crates").join(package);
        let has = |file: String| folder.join(file).is_file();
        let programs = check.tests.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1]);
        let modules = check.tests.iter().filter_map(|word| word.strip_suffix("::"));
        let missing = programs
            .filter(|name| !(has(format!("tests/{name}.rs")) || *name == "it" && has("tests/main.rs".into())))
            .chain(modules.filter(|name| ["tests", "src"].iter().all(|at| !has(format!("{at}/{name}.rs")))));
        for name in missing {
            broken.push(format!("xtask/src/sanitize.rs: {}: {package} has no tests `{name}`", check.name));
        }
    }
}

/// Runs the checks whose names contain all the words, and says how many passed, failed and were skipped.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for check in CHECKS.iter().filter(|c| words.iter().all(|w| c.name.contains(w))) {
        if let Some(why) = missing(check.checker) {
            eprintln!("skipped: {}: {why}", check.name);
            skipped += 1;
            continue;
        }
        eprintln!("== {}", check.name);
        if command(root, check)?.status()?.success() {
            passed += 1;
        } else {
            eprintln!("failed: {}", check.name);
            failed += 1;
        }
    }
    eprintln!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 {
        bail!("a checker found something; it is printed above");
    }
    Ok(())
}

/// A program of the nightly toolchain. What the toolchain that runs this task has set is not for it.
fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", program]);
    for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    command
}

/// What a program of the nightly toolchain prints, if it is there and succeeds.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let out = nightly(program).args(args).stderr(Stdio::null()).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The kind of machine that the nightly toolchain makes programs for.
fn host() -> Option<String> {
    let version = output("rustc", &["-vV"])?;
    version.lines().find_map(|l| l.strip_prefix("host: ")).map(str::to_string)
}

/// What a checker needs and is not installed.
fn missing(checker: Checker) -> Option<&'static str> {
    if host().is_none() {
        return Some("no nightly toolchain");
    }
    let has_source = || {
        let root = output("rustc", &["--print", "sysroot"]).unwrap_or_default();
        Path::new(root.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").is_file()
    };
    match checker {
        Checker::Miri if output("cargo", &["miri", "--version"]).is_none() => Some("no Miri"),
        Checker::Miri | Checker::Thread if !has_source() => Some("no source of the standard library"),
        Checker::Miri | Checker::Thread | Checker::Address => None,
    }
}

fn command(root: &Path, check: &Check) -> Result<Command> {
    let Some(host) = host() else { bail!("no nightly toolchain") };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let mut command = nightly("cargo");
    command.current_dir(root);
    match check.checker {
        Checker::Miri => {
            // The pool of the process has threads when the process ends.
            command.env("MIRIFLAGS", "-Zmiri-ignore-leaks").env("CARGO_TARGET_DIR", target.join("miri"));
            command.args(["miri", "test"]);
        }
        Checker::Thread => {
            command.env("RUSTFLAGS", "-Zsanitizer=thread").env("CARGO_TARGET_DIR", target.join("thread"));
            command.args(["test", "-Zbuild-std", "--target", &host]);
        }
        Checker::Address => {
            // A loaded LLVM keeps memory for its next use.
            command.env("ASAN_OPTIONS", "detect_leaks=0");
            command.env("RUSTFLAGS", "-Zsanitizer=address").env("CARGO_TARGET_DIR", target.join("address"));
            command.args(["test", "--target", &host]);
        }
    }
    command.arg("--quiet").args(check.tests);
    Ok(command)
}
