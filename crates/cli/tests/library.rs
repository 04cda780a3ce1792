//! Shared libraries: a C program calls an objective and its gradient. Where there is no LLVM, linker or C compiler, these tests
//! say so and check nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn pullback(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pullback"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A new folder, if a library can be made and used here.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let no_llvm = text(&pullback(&["doctor"]).stdout).contains("llvm: not there");
    let has_cc = Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success());
    if no_llvm || !has_cc {
        eprintln!("skipped: no LLVM or no C compiler is found");
        return None;
    }
    Some(folder)
}

/// A C program in the folder that is compiled against the library, and what it prints. `more` are arguments for the compiler.
fn run_c(folder: &Path, main: &str, more: &[&str]) -> String {
    std::fs::write(folder.join("main.c"), main).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "main", "main.c"]);
    let out = compiler.args(more).current_dir(folder).output().expect("cc");
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = Command::new("./main").current_dir(folder).output().expect("it starts");
    assert!(out.status.success(), "{:?} {}{}", out.status, text(&out.stdout), text(&out.stderr));
    text(&out.stdout)
}

const DYNAMIC: [&str; 4] = ["-L.", "-lmodel", "-lm", "-Wl,-rpath,."];

const PROGRAM: &str = "\
entry objective [n][m] (points: [n][m]f64) (weights: [n]f32) (params: {centre: [m]f64, scale: f64}) (k: i64) : f64 =
  let far (p: [m]f64) = f64.sum (map2 (\\x c -> f64.exp (params.scale * (x - c) ** 2)) p params.centre)
  let all = map2 (\\p w -> far p * f64.f32 w) points weights
  in f64.sum all + points[k, 0]
";

/// Writes the program and makes its library.
fn make(folder: &Path, program: &str, more: &[&str]) {
    let file = folder.join("model.fut");
    std::fs::write(&file, program).expect("written");
    let (file, output) = (file.display().to_string(), folder.join("model").display().to_string());
    let out = pullback(&[&["compile", &file, "--library", "-o", &output], more].concat());
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
}

const MAIN: &str = r#"
#include "model.h"
#include <stdio.h>
int main(void) {
  double points[6] = {0.5, 1.0, -0.25, 0.75, 0.125, 2.0};
  float weights[3] = {1.0f, 0.5f, 2.0f};
  double centre[2] = {0.25, 0.5}, scale = -0.5, y, value, scale_bar, centre_bar[2], small[1];
  int64_t shape[1];
  model_handle *handle = model_new(1 << 24);
  int code = model_objective(handle, 3, 2, points, weights, centre, scale, 1, &y);
  printf("%d %.17g [%s]\n", code, y, model_last_error(handle));
  for (int i = 0; i < 1000; i++) {
    code = model_objective_vjp(handle, 3, 2, points, weights, centre, scale, 1, 1.0, &value,
                               centre_bar, 2, shape, &scale_bar);
  }
  printf("%d %.17g %.17g %.17g %.17g %d\n", code, value, centre_bar[0], centre_bar[1], scale_bar, (int)shape[0]);
  code = model_objective(handle, 3, 2, points, weights, centre, scale, 3, &y);
  printf("%d %s\n", code, model_last_error(handle));
  code = model_objective(handle, 3, 2, NULL, weights, centre, scale, 1, &y);
  printf("%d %s\n", code, model_last_error(handle));
  code = model_objective(handle, -3, 2, points, weights, centre, scale, 1, &y);
  printf("%d %s\n", code, model_last_error(handle));
  code = model_objective(handle, (int64_t)1 << 62, 4, points, weights, centre, scale, 1, &y);
  printf("%d %s\n", code, model_last_error(handle));
  y = 7;
  code = model_objective_vjp(handle, 3, 2, points, weights, centre, scale, 1, 1.0, &y,
                             small, 1, shape, &scale_bar);
  printf("%d %s %g %d\n", code, model_last_error(handle), y, (int)shape[0]);
  model_free(handle);
  handle = model_new(64);
  code = model_objective_vjp(handle, 3, 2, points, weights, centre, scale, 1, 1.0, &value,
                             centre_bar, 2, NULL, &scale_bar);
  printf("%d %s\n", code, model_last_error(handle));
  model_free(handle);
  model_free(NULL);
  return 0;
}
"#;

#[test]
fn a_c_program_gets_value_gradient_and_messages() {
    let Some(folder) = folder("library-values") else { return };
    make(&folder, PROGRAM, &["--derivative", "vjp", "--wrt", "params", "--object"]);
    let said = run_c(&folder, MAIN, &DYNAMIC);
    let lines: Vec<&str> = said.lines().collect();

    // What the interpreter finds.
    let file = folder.join("model.fut").display().to_string();
    let params = "params={centre = [0.25, 0.5], scale = -0.5}";
    let points = "points=[[0.5, 1.0], [-0.25, 0.75], [0.125, 2.0]]";
    let weights = "weights=[1.0f32, 0.5f32, 2.0f32]";
    let args = [
        "grad",
        &file,
        "--arg",
        points,
        "--arg",
        weights,
        "--arg",
        params,
        "--arg",
        "k=1",
        "--wrt",
        "params",
        "--backend",
        "interp",
        "--json",
    ];
    let out = pullback(&args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let gradient = &json["gradient"];
    let expected = [
        &json["objective"],
        &gradient["params.centre"][0],
        &gradient["params.centre"][1],
        &gradient["params.scale"],
    ]
    .map(|x| x.as_f64().expect("a number"));
    let numbers =
        |line: &str| -> Vec<f64> { line.split(' ').filter_map(|w| w.parse::<f64>().ok()).collect() };
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() <= 1e-14 * expected.abs().max(1.0), "{found}, expected {expected}");
    };
    assert!(lines[0].ends_with("[]"), "no message where nothing is wrong: {said}");
    near(numbers(lines[0])[1], expected[0]);
    let found = numbers(lines[1]);
    assert_eq!((found[0], found[5]), (0.0, 2.0));
    found[1..5].iter().zip(expected).for_each(|(f, e)| near(*f, e));

    assert!(lines[2].starts_with("1 ") && lines[2].contains("model.fut:4:20: index"), "{said}");
    assert!(lines[2].contains("3") && lines[2].contains("is out of bounds for an array of"), "{said}");
    assert_eq!(lines[3], "9 the argument points is NULL");
    assert_eq!(lines[4], "9 the argument n is negative: -3");
    assert_eq!(lines[5], "9 the argument points has too many elements");
    assert_eq!(
        lines[6],
        "10 params_centre_bar has the shape [2]: 2 elements, params_centre_bar_capacity is 1 7 2"
    );
    assert!(lines[7].starts_with("7 ") && lines[7].contains("out of memory: "), "{said}");
    assert!(lines[7].contains("the limit is 64") && lines[7].contains("model.fut:"), "{said}");

    // The same code as an object, and nothing but the C library beside it.
    let library = folder.join("libmodel.so");
    if library.exists() {
        std::fs::remove_file(&library).expect("removed");
    }
    assert_eq!(run_c(&folder, MAIN, &["model.o", "-lm"]), said);
    // Nothing is lost or touched outside, says a checker of the compiler, where it has one.
    let checked = ["-fsanitize=address,undefined", "-g", "model.o", "-lm"];
    std::fs::write(folder.join("probe.c"), "int main(void) { return 0; }").expect("written");
    let mut probe = Command::new("cc");
    probe.args(["-fsanitize=address,undefined", "-o", "probe", "probe.c"]).current_dir(&folder);
    if probe.output().is_ok_and(|o| o.status.success()) {
        assert_eq!(run_c(&folder, MAIN, &checked), said);
    } else {
        eprintln!("skipped: the C compiler has no address sanitizer");
    }
}

#[test]
fn arrays_come_back_whole_whatever_their_strides() {
    let Some(folder) = folder("library-arrays") else { return };
    let program = "\
entry main [n][m] (a: [n][m]f64) (mask: [n]bool) (b: i8) : ([m][n]f64, [n]bool, i64, []i64) =
  (transpose a, map (\\b -> !b) mask, n * m + i64.i8 b, filter (> 2) (iota m))
entry down (n: i64) : i64 = let (k, _) = loop (k, s) = (n, 0i64) while k > 10 do (k - 7, s + k) in k / (n - 5)
";
    make(&folder, program, &["--entry", "main", "--entry", "down"]);
    let main = r#"
#include "model.h"
#include <stdio.h>
int main(void) {
  double a[6] = {1, 2, 3, 4, 5, 6}, t[6];
  bool mask[2] = {true, false}, not_mask[2];
  int64_t count, shape[2], some[4], some_shape;
  model_handle *handle = model_new(0);
  int code = model_main(handle, 2, 3, a, mask, -4, t, 6, shape, not_mask, 2, NULL, &count, some, 4, &some_shape);
  printf("%d %d %d:", code, (int)shape[0], (int)shape[1]);
  for (int i = 0; i < 6; i++) printf(" %g", t[i]);
  printf(" %d %d %d %d\n", not_mask[0], not_mask[1], (int)count, (int)some_shape);
  code = model_main(handle, 0, 0, NULL, NULL, 0, NULL, 0, shape, NULL, 0, NULL, &count, NULL, 0, NULL);
  printf("%d %d %d\n", code, (int)shape[0], (int)count);
  code = model_down(handle, 5, &count);
  printf("%d %s\n", code, model_last_error(handle));
  model_cancel(handle);
  code = model_down(handle, 1000000, &count);
  printf("%d %s\n", code, model_last_error(handle));
  code = model_down(handle, 25, &count);
  printf("%d %d\n", code, (int)count);
  printf("%d\n", model_down(NULL, 25, &count));
  model_free(handle);
  return 0;
}
"#;
    let said = run_c(&folder, main, &DYNAMIC);
    let lines: Vec<&str> = said.lines().collect();
    // Transposed by hand; 2 * 3 - 4; no number of 0, 1, 2 is above 2.
    assert_eq!(lines[0], "0 3 2: 1 4 2 5 3 6 0 1 2 0");
    assert_eq!(lines[1], "0 0 0");
    assert!(lines[2].starts_with("3 ") && lines[2].contains("model.fut:3:"), "{said}");
    assert_eq!(lines[3], "8 cancelled");
    // 25, 18, 11, 4; 4 / 20.
    assert_eq!(lines[4..], ["0 0", "9"]);
    let header = std::fs::read_to_string(folder.join("model.h")).expect("a header");
    for part in
        ["Threads:", "MODEL_CAPACITY = 10", "int64_t n,", "const double *a, /* [n][m] */", "extern \"C\""]
    {
        assert!(header.contains(part), "{part} is missing in {header}");
    }
}

#[test]
fn what_cannot_be_made_is_said_and_nothing_is_written() {
    let Some(folder) = folder("library-errors") else { return };
    let file = folder.join("model.fut");
    std::fs::write(
        &file,
        "type t = #none | #some f64\nentry main (x: t) : f64 = match x case #none -> 0 case #some y -> y",
    )
    .expect("written");
    let file = file.display().to_string();
    let output = folder.join("model").display().to_string();
    let fails = |args: &[&str], code: i32, part: &str| {
        let out = pullback(&[&["compile", &file], args].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{part} is missing in {said}");
    };
    fails(&["--library", "-o", &output], 3, "`x` has type");
    fails(&["--library", "-o", "/nowhere/model"], 1, "there is no folder /nowhere");
    fails(&["--library", "-o", "my-model"], 1, "my_model would do");
    fails(&["--library"], 2, "--output");
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is written");
}

#[test]
fn without_a_linker_what_to_install_is_said() {
    let Some(folder) = folder("library-linker") else { return };
    let doctor: serde_json::Value =
        serde_json::from_slice(&pullback(&["doctor", "--json"]).stdout).expect("JSON");
    let used = doctor["libraries"].as_array().expect("libraries").iter().find(|l| l["used"] == true);
    let library = used.and_then(|l| l["path"].as_str()).expect("a path");
    std::fs::write(folder.join("model.fut"), "entry main (x: f64) : f64 = x * x").expect("written");
    let out = Command::new(env!("CARGO_BIN_EXE_pullback"))
        .args(["compile", "model.fut", "--library", "-o", "model"])
        .current_dir(&folder)
        .env("PULLBACK_LLVM", Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(library))
        .env("RUSTUP_HOME", &folder)
        .env("PATH", &folder)
        .output()
        .expect("it starts");
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    for part in ["no linker can be used", "cc: ", "rustup", "gcc"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is written");
}

#[test]
fn compiling_ahead_fills_the_cache() {
    let Some(folder) = folder("library-warm") else { return };
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_pullback"))
            .env("XDG_CACHE_HOME", &folder)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .args(args)
            .output()
            .expect("it starts");
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let compile =
        ["compile", "examples/lse.fut", "--entry", "primal", "--derivative", "vjp", "--arg", "x=[1.0]"];
    let said = run(&compile);
    assert!(said.contains("primal is compiled") && said.contains("Vjp of primal is compiled"), "{said}");
    assert!(said.contains("differentiate ") && said.contains("LLVM "), "the stages: {said}");
    assert!(run(&compile).contains("Vjp of primal was there already"));
    let report =
        ["run", "examples/lse.fut", "--entry", "primal", "--arg", "x=[1.0]", "--backend", "llvm", "--report"];
    assert!(run(&report).contains("from an earlier run"));
}
