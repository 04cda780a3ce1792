//! `--tape-limit` and `--check-nan` from outside, on the examples.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pullback(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pullback"))
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .current_dir(root())
        .output()
        .expect("the program starts")
}

fn json(args: &[&str]) -> serde_json::Value {
    let out = pullback(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// Fails with exit code 1; gives what it says.
fn fails(args: &[&str]) -> String {
    let out = pullback(args);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{args:?}: {text}");
    text
}

/// The gradient of a differential equation after 60 steps. The state of its loop is an array of three numbers.
const STEPS: [&str; 8] =
    ["run", "examples/ode.fut", "--entry", "gradient", "--arg", "x=[0.7,0.2,0.1]", "--arg", "s=60"];

struct Run {
    gradient: Vec<f64>,
    work: u64,
    tape: u64,
}

fn limited(limit: Option<u64>) -> Run {
    let limit = limit.map(|l| l.to_string());
    let mut args = STEPS.to_vec();
    args.extend(["--json", "--report"]);
    if let Some(limit) = &limit {
        args.extend(["--tape-limit", limit]);
    }
    let report = json(&args);
    let count = |name: &str| report["cost"][name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    Run {
        gradient: serde_json::from_value(report["result"].clone()).expect("numbers"),
        work: count("work"),
        tape: count("peak_tape_bytes"),
    }
}

#[test]
fn a_limit_that_is_large_enough_changes_nothing() {
    let free = limited(None);
    assert!(free.tape >= 60 * 3 * 8, "every state is stored: {}", free.tape);
    let fits = limited(Some(1 << 20));
    assert_eq!(fits.gradient, free.gradient);
    assert!(fits.tape <= 1 << 20);
    let units = [&STEPS[..], &["--json", "--tape-limit", "1MiB"]].concat();
    let gradient: Vec<f64> = serde_json::from_value(json(&units)["result"].clone()).expect("numbers");
    assert_eq!(gradient, free.gradient, "limits have units");
}

#[test]
fn under_a_smaller_limit_iterations_run_again() {
    let free = limited(None);
    let mut work = free.work;
    for part in [2, 4, 8] {
        let limit = free.tape / part;
        let small = limited(Some(limit));
        assert_eq!(small.gradient, free.gradient, "a {part}th");
        assert!(small.tape <= limit, "{} bytes with a limit of {limit}", small.tape);
        assert!(small.work > work, "less memory is more work: {} steps after {work}", small.work);
        work = small.work;
    }
}

#[test]
fn a_limit_that_is_too_small_says_what_is_needed() {
    let needed = |limit: &str| -> u64 {
        let text = fails(&[&STEPS[..], &["--tape-limit", limit]].concat());
        for part in ["needs at least", "give a larger --tape-limit", "ode.fut:9:"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        let (_, after) = text.split_once("needs at least ").expect("a number");
        after.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let least = needed("1");
    assert_eq!(needed(&(least - 1).to_string()), least);
    let enough = limited(Some(least));
    assert_eq!(enough.gradient, limited(None).gradient);
    assert!(enough.tape <= least);
    let text =
        String::from_utf8_lossy(&pullback(&[&STEPS[..], &["--tape-limit", "3 elephants"]].concat()).stderr)
            .into_owned();
    assert!(text.contains("is no unit of memory"), "{text}");
}

/// The gradient by the command `vjp` obeys the limit too.
#[test]
fn the_limit_holds_for_derivatives_that_commands_ask_for() {
    let base = ["vjp", "examples/ode.fut", "--entry", "primal", "--arg", "x=[0.7,0.2,0.1]", "--arg", "s=60"];
    let seed = ["--cotangent", "[0.0,0.0,1.0]"];
    let free = json(&[&base[..], &seed, &["--json"]].concat());
    let small = json(&[&base[..], &seed, &["--json", "--tape-limit", "2K"]].concat());
    assert_eq!(free["cotangents"], small["cotangents"]);
    let text = fails(&[&base[..], &seed, &["--tape-limit", "10"]].concat());
    assert!(text.contains("needs at least"), "{text}");
}

/// No steps: the step is 2 / 0.
#[test]
fn the_first_operation_that_is_not_finite_in_an_example_is_shown() {
    let base = ["run", "examples/ode.fut", "--entry", "primal", "--arg", "x=[0.7,0.2,0.1]", "--arg", "s=0"];
    let text = fails(&[&base[..], &["--check-nan"]].concat());
    for part in ["E0602", "ode.fut:7:", "inf"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(pullback(&base).status.success(), "infinities alone are no error");
}
