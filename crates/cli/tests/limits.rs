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
    args.extend(["--json", "--report", "--backend", "interp"]);
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

/// Sizes that no machine has: what is said names the bytes and the operation, whatever runs the program, and nothing is written.
#[test]
fn more_memory_than_there_is_is_an_error_with_a_place() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits-memory");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("large.fut");
    let text = "\
entry filled (n: i64) : []f64 = replicate n 1.0
entry square (n: i64) : [][]f64 = replicate n (replicate n 1.0)
entry roots (n: i64) : []f64 =
  map (\\i -> f64.sqrt (f64.i64 i)) (iota n)
";
    std::fs::write(&file, text).expect("written");
    let (file, result) = (file.display().to_string(), folder.join("result.npy"));
    // 2^32 numbers are 32 GiB; 2^62 are 2^65 bytes; the square of 2^32 has more elements than can be counted.
    let cases = [
        ("filled", "4294967296", "34359738368 more bytes", "large.fut:1:33"),
        ("filled", "4611686018427387904", "36893488147419103232 more bytes", "large.fut:1:33"),
        ("square", "100000", "80000000000 more bytes", "large.fut:2:35"),
        ("square", "4294967296", "[4294967296][4294967296] has too many elements", "large.fut:2:35"),
        ("roots", "4294967296", "34359738368 more bytes", "large.fut:4:"),
    ];
    let doctor = json(&["doctor", "--json"]);
    let compiled: &[&str] =
        if doctor["llvm"] == true { &["interp", "vm", "llvm", "auto"] } else { &["interp", "vm", "auto"] };
    for (entry, n, what, place) in cases {
        for backend in compiled {
            let n = format!("n={n}");
            let output = result.display().to_string();
            let args =
                ["run", &file, "--entry", entry, "--arg", &n, "--backend", backend, "--output", &output];
            let text = fails(&args);
            for part in ["E0601", what, place] {
                assert!(text.contains(part), "{entry} {n} {backend}: {part} is missing in {text}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is written");
}

/// A limit above what the machine has is no permission to use it up.
#[test]
fn too_many_calls_are_an_error_with_the_place_of_a_call() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("program.fut").display().to_string();
    let program = "def even (n: i64) (x: f64) : f64 = if n == 0 then x else
  odd (n - 1) (x + 1)
def odd (n: i64) (x: f64) : f64 = if n == 0 then -x else
  even (n - 1) (x * 2)
def down (n: i64) (x: f64) : f64 = if n == 0 then x else
  down (n - 1) x + x
entry mutual (n: i64) (x: f64) : f64 =
  even n x
entry itself (n: i64) (x: f64) : f64 =
  down n x
";
    std::fs::write(&file, program).expect("a file");
    // Only the interpreter counts the entry point, which is not recursive: there the call that is one too many is that of `odd`.
    for (entry, places) in
        [("mutual", ["program.fut:2:3", "program.fut:4:3"]), ("itself", ["program.fut:6:3"; 2])]
    {
        for backend in ["interp", "vm", "auto"] {
            let arguments = ["--arg", "n=1000000", "--arg", "x=1.0", "--backend", backend];
            let text = fails(&[&["run", &file, "--entry", entry], &arguments[..]].concat());
            assert!(text.contains("more than 10000 calls are open"), "{entry} {backend}: {text}");
            let place = places[usize::from(backend != "interp")];
            assert!(text.contains(place), "{entry} {backend}: {text}");
        }
    }
}

#[test]
fn the_limit_is_never_more_than_the_machine_has() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits-machine");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("filled.fut");
    std::fs::write(&file, "entry main (n: i64) : []f64 = replicate n 1.0\n").expect("written");
    let file = file.display().to_string();
    for backend in ["interp", "vm", "auto"] {
        // 32 TiB under a limit of 64 TiB.
        let args =
            ["run", &file, "--arg", "n=4398046511104", "--memory-limit", "67108864", "--backend", backend];
        if cfg!(target_os = "linux") {
            let text = fails(&args);
            assert!(text.contains("35184372088832 more bytes") && text.contains("this machine"), "{text}");
        }
        let within =
            |limit| ["run", &file, "--arg", "n=1000000", "--memory-limit", limit, "--backend", backend];
        for limit in ["4", "4096KiB", "4MiB"] {
            let text = fails(&within(limit));
            assert!(text.contains("8000000 more bytes") && text.contains("--memory-limit"), "{text}");
        }
        for limit in ["20", "20MiB"] {
            assert!(pullback(&within(limit)).status.success(), "{limit}");
        }
        let text = String::from_utf8_lossy(&pullback(&within("3 elephants")).stderr).into_owned();
        assert!(text.contains("is no unit of memory"), "{text}");
    }
}

/// A long loop over a small grid: its tape of 20 MB would leave the caches, so blocks of it run again where nothing else is asked for.
#[test]
fn a_long_loop_over_a_small_grid_keeps_blocks() {
    let text = std::fs::read_to_string(root().join("benches/programs/stencil.fut")).expect("a program");
    assert!(text.contains("loop u for"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let cell = |i: u32| (f64::from(i) * 0.7).sin();
    let rows: Vec<Vec<f64>> = (0..60).map(|i| (0..60).map(|j| cell(60 * i + j)).collect()).collect();
    let input = folder.join("grid.json");
    std::fs::write(&input, serde_json::json!({ "u": rows, "steps": 700 }).to_string()).expect("written");
    let run = |attribute: &str, backend: &str| {
        let program = folder.join(format!("grid{}.fut", attribute.len()));
        std::fs::write(&program, text.replace("loop u for", &format!("{attribute} loop u for")))
            .expect("written");
        let [program, input] = [&program, &input].map(|p| p.to_str().expect("a path"));
        let args = [
            "run",
            program,
            "--entry",
            "gradient",
            "--input",
            input,
            "--json",
            "--report",
            "--backend",
            backend,
        ];
        let report = json(&args);
        (report["result"].clone(), report["cost"]["peak_tape_bytes"].as_u64().expect("bytes"))
    };
    for backend in ["vm", "llvm"] {
        let (expected, all) = run("#[tape(all)]", backend);
        let (result, blocks) = run("", backend);
        assert!(all > 700 * 60 * 60 * 8, "{backend}: {all}");
        assert!(blocks < 3 << 20, "{backend}: {blocks}");
        assert_eq!(result, expected, "{backend}");
    }
}
