//! Compiled code from the command line. Where no LLVM is found, these tests say so and check the refusal instead.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn pullback(args: &[&str], library: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pullback"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    if let Some(path) = library {
        command.env("PULLBACK_LLVM", path);
    }
    command.output().expect("the program starts")
}

fn stdout(args: &[&str]) -> String {
    let out = pullback(args, None);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// Whether there is an LLVM.
fn compiles() -> bool {
    let report: Json = serde_json::from_str(&stdout(&["doctor", "--json"])).expect("JSON");
    let there = report["llvm"] == true;
    if !there {
        eprintln!("skipped: no LLVM is found");
    }
    there
}

const IRIS: [&str; 6] =
    ["--input", "examples/data/gmm_iris.json", "--arg", "x=@examples/data/iris.csv", "--wrt", "params"];

fn gradient(backend: &str) -> Json {
    let mut args = vec!["grad", "examples/gmm.fut", "--json", "--backend", backend];
    args.extend(IRIS);
    serde_json::from_str(&stdout(&args)).expect("JSON")
}

/// Equal, but that numbers may differ by this part of the largest one beside them: compiled code has other functions, and
/// rounds a product with a sum once. A sum over the 150 rows errs by a few hundred units in the last place at most.
const ROUNDING: f64 = 1e-12;

fn near(a: &Json, b: &Json) -> bool {
    fn largest(x: &Json) -> f64 {
        match x {
            Json::Array(xs) => xs.iter().map(largest).fold(0.0, f64::max),
            _ => x.as_f64().map_or(0.0, f64::abs),
        }
    }
    fn within(a: &Json, b: &Json, size: f64) -> bool {
        match (a, b) {
            (Json::Number(x), Json::Number(y)) => {
                let (x, y) = (x.as_f64().expect("a number"), y.as_f64().expect("a number"));
                (x - y).abs() <= ROUNDING * size
            }
            (Json::Array(xs), Json::Array(ys)) => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| within(x, y, size))
            }
            (Json::Object(xs), Json::Object(_)) => xs.iter().all(|(key, x)| near(x, &b[key])),
            _ => a == b,
        }
    }
    within(a, b, largest(a))
}

#[test]
fn executors_give_the_same_results() {
    let interpreted = gradient("interp");
    let objective = &interpreted["objective"];
    assert!(objective.as_f64().is_some_and(|x| x < -400.0), "{objective}");
    let on_vm = gradient("vm");
    assert!(near(&interpreted, &on_vm), "{interpreted}\n{on_vm}");
    assert_eq!(on_vm, gradient("auto"), "the run is short");
    if compiles() {
        let compiled = gradient("llvm");
        assert!(near(&interpreted, &compiled), "{interpreted}\n{compiled}");
    }
}

#[test]
fn errors_of_compiled_programs_have_place_and_values() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("outside.fut");
    std::fs::write(&file, "entry main (xs: []f64) (i: i64) : f64 = xs[i] + 1\n").expect("a file");
    let file = file.display().to_string();
    let run = |backend| {
        let out =
            pullback(&["run", &file, "--arg", "xs=[1.0,2.0]", "--arg", "i=5", "--backend", backend], None);
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let interpreted = run("interp");
    assert!(interpreted.contains("index 5 is out of bounds for an array of size 2"), "{interpreted}");
    assert_eq!(interpreted, run("vm"));
    if compiles() {
        assert_eq!(interpreted, run("llvm"));
    }
}

#[test]
fn the_stages_of_compiling_are_shown() {
    let kernel = stdout(&["code", "examples/kmeans.fut", "--entry", "cost"]);
    assert!(kernel.contains("for i_") && kernel.contains("min.f64"), "{kernel}");
    let reverse =
        stdout(&["code", "examples/lse.fut", "--entry", "primal", "--derivative", "vjp", "--stage", "llvm"]);
    assert!(reverse.contains("define"), "{reverse}");
    if compiles() {
        let assembly = stdout(&["code", "examples/lse.fut", "--entry", "primal", "--stage", "assembly"]);
        assert!(assembly.contains(".text"), "{assembly}");
    }
}

/// Each pass of scheduling can be looked at, left out by name, and run on kernel text; the last one leaves what `--stage lanes` shows.
#[test]
fn passes_of_scheduling_are_shown() {
    let code = |more: &[&str]| {
        stdout(&[&["code", "examples/kmeans.fut", "--entry", "cost", "--derivative", "vjp"], more].concat())
    };
    let pipeline = stdout(&["code", "--print-pipeline"]);
    let names: Vec<&str> = pipeline
        .lines()
        .filter(|l| !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().nth(1))
        .collect();
    assert!(names.len() > 15 && names.contains(&"index-set-splitting"), "{pipeline}");
    let (first, last) = (code(&["--after", "1"]), code(&["--after", names[names.len() - 2]]));
    assert!(last == code(&["--stage", "lanes"]), "{last}");
    assert_ne!(first, last);
    let passes = code(&["--passes"]);
    assert_eq!(passes.lines().count(), names.len(), "{passes}");
    assert!(passes.contains("vectorisation            changed"), "{passes}");
    let narrow = code(&["--stage", "lanes", "--without", "unroll-and-jam", "--without", "vector-width"]);
    assert_ne!(narrow, last);
    let left_out = code(&["--passes", "--without", "fission"]);
    assert!(left_out.contains("fission                  left out"), "{left_out}");

    let file = std::env::temp_dir().join(format!("pullback-pass-{}.kernel", std::process::id()));
    let row = |name: &str| (names.iter().position(|n| *n == name).expect("a pass") + 1).to_string();
    std::fs::write(&file, code(&["--whole", "--after", &row("vectorisation")])).expect("a file");
    let jammed = stdout(&["code", &file.display().to_string(), "--pass", "unroll-and-jam"]);
    assert!(jammed.contains("lanes"), "{jammed}");
    let text = "function twice(n_0: i64) -> (y_1: i64) {\n  a_2: i64 = add.i64(n_0, 1i64)\n  b_3: i64 = add.i64(n_0, 1i64)\n  y_1 = mul.i64(a_2, b_3)\n}\n";
    std::fs::write(&file, text).expect("a file");
    let name = file.display().to_string();
    let numbered = stdout(&["code", &name, "--pass", "address-numbering"]);
    assert!(numbered.contains("mul.i64(a_2, a_2)"), "{numbered}");
    std::fs::write(&file, format!("{text}// becomes\n{numbered}")).expect("a file");
    assert_eq!(stdout(&["code", &name, "--pass", "address-numbering"]), numbered);
    let refused = |args: &[&str], part: &str| {
        let out = pullback(&[&["code"], args].concat(), None);
        let said = String::from_utf8_lossy(&out.stderr).to_string();
        assert!(out.status.code() == Some(1) && said.contains(part), "{args:?}: {said}");
    };
    std::fs::write(&file, text.replace("a_2: i64", "a_2: f64")).expect("a file");
    refused(&[&name, "--pass", "tiling"], "breaks a rule");
    std::fs::write(&file, "function").expect("a file");
    refused(&[&name, "--pass", "tiling"], "not kernel text");
    std::fs::remove_file(&file).expect("it is there");
    refused(&[&name, "--pass", "tiling"], "cannot read");
    refused(&[&name, "--passes"], "is kernel text: --pass NAME");
    refused(&["examples/kmeans.fut", "--after", "tile"], "no pass `tile`; there are scalar-replacement,");
    refused(&["examples/kmeans.fut", "--after", "0"], "no pass `0`");
    // Passes that stand in several rows are named once.
    let said = pullback(&["code", "examples/kmeans.fut", "--after", "tile"], None).stderr;
    let said = String::from_utf8_lossy(&said).to_string();
    assert!(said.matches("address-numbering").count() == 1, "{said}");
    refused(&["examples/kmeans.fut", "--without", "tiling"], "add --stage lanes");
    refused(&["examples/kmeans.fut", "--without", "padding"], "what follows needs this pass");
}

/// One row of a thousand numbers, or a thousand rows of one: lanes are along the longer side.
#[test]
fn loops_are_shown_for_the_sizes_of_arguments() {
    let file = std::env::temp_dir().join(format!("pullback-sizes-{}.fut", std::process::id()));
    let text = "entry sums [n] [m] (a: [n][m]f64) : [n]f64 = map (\\row -> f64.sum (map f64.exp row)) a\n";
    std::fs::write(&file, text).expect("a file");
    let name = file.display().to_string();
    let long = vec!["1.0"; 1000].join(",");
    let tall = vec!["[1.0]"; 1000].join(",");
    let (wide, high) = (format!("a=[[{long}]]"), format!("a=[{tall}]"));
    let lanes = |arg: &str| stdout(&["code", &name, "--stage", "lanes", "--arg", arg]);
    assert_ne!(lanes(&wide), lanes(&high));
    let bad = pullback(&["code", &name, "--arg", "b=1"], None);
    assert!(!bad.status.success() && String::from_utf8_lossy(&bad.stderr).contains("no argument `b`"));
    std::fs::remove_file(&file).expect("it is there");
}

/// What `--report` says about a run.
fn report(more: &[&str]) -> Json {
    let args = ["run", "examples/lse.fut", "--entry", "primal", "--arg", "x=[1.0,2.0]", "--json", "--report"];
    serde_json::from_str(&stdout(&[&args[..], more].concat())).expect("JSON")
}

#[test]
fn reports_say_what_ran_and_what_compiling_took() {
    let interpreted = report(&["--backend", "interp"]);
    assert_eq!(interpreted["run"]["executor"], "interp");
    assert!(interpreted["cost"]["work"].as_u64().is_some_and(|n| n > 0));
    let stages = |report: &Json| {
        let stages = report["run"]["stages"].as_object().expect("stages");
        assert!(stages.values().all(|s| s.as_f64().is_some_and(|s| s > 0.0)), "{report}");
        stages.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(stages(&interpreted), "front end optimise differentiate");
    assert_eq!(interpreted["run"]["from_cache"], Json::Null);
    let on_vm = report(&["--no-cache"]);
    assert_eq!(on_vm["run"]["executor"], "vm", "the run is short");
    assert_eq!(stages(&on_vm), "front end optimise differentiate lower schedule translate");
    assert!(on_vm["run"]["compiler"].as_str().is_some_and(|c| c.starts_with("kernels for ")), "{on_vm}");
    assert!(on_vm["cost"]["peak_bytes"].is_u64());
    if compiles() {
        let llvm = ["--backend", "llvm"];
        report(&llvm);
        let compiled = report(&llvm);
        assert_eq!(stages(&compiled), "front end optimise differentiate lower LLVM");
        let run = &compiled["run"];
        assert_eq!((&run["executor"], &run["from_cache"]), (&"llvm".into(), &true.into()), "{run}");
        assert!(run["run_seconds"].as_f64().is_some_and(|s| s > 0.0), "{run}");
        assert_eq!(compiled["cost"]["work"], Json::Null, "steps are not counted");
        assert!(compiled["cost"]["peak_bytes"].is_u64());
        let compiled = report(&["--backend", "llvm", "--no-cache"]);
        assert_eq!(compiled["run"]["from_cache"], false);
        let mut args = vec!["grad", "examples/gmm.fut", "--report", "--backend", "llvm"];
        args.extend(IRIS);
        let text = stdout(&args);
        for part in ["bytes of workspace", "run by llvm", "compiling: ", "LLVM ", "ratio of time"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}

#[test]
fn a_missing_library_is_an_error_where_it_is_asked_for_and_no_matter_elsewhere() {
    let nowhere = Some("/nowhere/libLLVM.so");
    let args = ["run", "examples/lse.fut", "--entry", "primal", "--arg", "x=[1.0,2.0]", "--backend"];
    let with = |backend| pullback(&[&args[..], &[backend]].concat(), nowhere);
    assert!(with("auto").status.success());
    let asked = with("llvm");
    let text = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(3), "{text}");
    assert!(text.contains("/nowhere/libLLVM.so") && text.contains("--backend interp"), "{text}");
    let doctor = pullback(&["doctor"], nowhere);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.status.success() && text.contains("llvm: not there"), "{text}");
}

#[test]
fn relaxed_sums_are_right_on_several_threads() {
    let file = format!("{}/indexed.fut", env!("CARGO_TARGET_TMPDIR"));
    let text = "entry value (n: i64) (x: [4000]f64) : f64 =
          f64.sum (map (\\k -> let y = x[k * 17 % 4000] in y * y) (iota n))";
    std::fs::write(&file, text).expect("it can be written");
    let numbers: Vec<&str> = (0..4000).map(|j| if j % 3 == 0 { "1.0" } else { "-2.0" }).collect();
    let x = format!("x=[{}]", numbers.join(","));
    let run = |options: &[&str]| {
        let mut args = vec![
            "grad",
            &file,
            "--wrt",
            "x",
            "--arg",
            "n=400000",
            "--arg",
            &x,
            "--json",
            "--backend",
            "llvm",
        ];
        args.extend(options);
        let all: Json = serde_json::from_str(&stdout(&args)).expect("JSON");
        all["gradient"].to_string()
    };
    if !compiles() {
        return;
    }
    // Each element is read a hundred times; whole numbers have the same sum in every order.
    let relaxed = run(&["--relaxed", "--threads", "2"]);
    assert_eq!(relaxed, run(&["--threads", "1"]));
    assert!(relaxed.contains("200.0,-400.0,-400.0"), "{relaxed}");
}

#[test]
fn what_machine_code_may_change_about_floats_is_chosen_by_options() {
    let code = |options: &[&str]| {
        let mut args = vec!["code", "examples/kmeans.fut", "--entry", "cost", "--stage", "llvm"];
        args.extend(options);
        stdout(&args)
    };
    assert!(code(&[]).contains("fmul contract double"));
    assert!(code(&["--fast-math"]).contains("fmul fast double"));
    let strict = code(&["--no-contract"]);
    assert!(strict.contains("fmul double") && !strict.contains("contract"), "{strict}");
    let both = pullback(&["code", "examples/kmeans.fut", "--no-contract", "--fast-math"], None);
    assert!(!both.status.success());
}
