//! Jacobians, Hessians, Gauss-Newton and `--check-nan` from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn pullback(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pullback"))
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .output()
        .expect("the program starts")
}

fn json(args: &[&str]) -> serde_json::Value {
    let out = pullback(&[args, &["--json"]].concat());
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

fn fails(args: &[&str]) -> String {
    let out = pullback(args);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{args:?}: {text}");
    text
}

fn program(name: &str, text: &str) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("program.fut");
    std::fs::write(&file, text).expect("a file");
    let file = file.display().to_string();
    (folder, file)
}

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    match value {
        serde_json::Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => other.as_f64().into_iter().collect(),
    }
}

/// x0^2 y + sum of x: gradient (2 x0 y + 1, 1, x0^2), Hessian [[2 y, 0, 2 x0], [0, 0, 0], [2 x0, 0, 0]].
const CUBIC: &str = "entry main [n] (x: [n]f64) (y: f64) : f64 = x[0] * x[0] * y + f64.sum x";
/// (x0 y, x0 + x1, y): Jacobian [[y, 0, x0], [1, 1, 0], [0, 0, 1]].
const RESIDUALS: &str = "entry main [n] (x: [n]f64) (y: f64) : ([2]f64, f64) = ([x[0] * y, x[0] + x[1]], y)";
const POINT: [&str; 4] = ["--arg", "x=[2.0,5.0]", "--arg", "y=3.0"];

#[test]
fn the_jacobian_names_its_rows_and_columns_and_both_modes_agree() {
    let (folder, file) = program("jacobian", RESIDUALS);
    let expected = [3.0, 0.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    for mode in ["auto", "forward", "reverse"] {
        let out = json(&[&["jacobian", &file, "--mode", mode], &POINT[..]].concat());
        assert_eq!(numbers(&out["jacobian"]), expected, "{mode}");
        assert_eq!(out["row_blocks"][0]["name"], "0");
        assert_eq!(out["column_blocks"][0]["shape"], serde_json::json!([2]));
    }
    let out = json(&[&["jacobian", &file, "--wrt", "y"], &POINT[..]].concat());
    assert_eq!(numbers(&out["jacobian"]), [2.0, 0.0, 1.0]);
    let csv = folder.join("jacobian.csv").display().to_string();
    assert!(pullback(&[&["jacobian", &file, "--output", &csv], &POINT[..]].concat()).status.success());
    assert_eq!(std::fs::read_to_string(&csv).expect("written"), "3.0,0.0,2.0\n1.0,1.0,0.0\n0.0,0.0,1.0\n");
    let files: Vec<_> = std::fs::read_dir(&folder).expect("a folder").collect();
    assert_eq!(files.len(), 2, "nothing but the program and the result is left");
}

/// y0 x^3 through a list, which takes one direction at a time: gradient (3 x^2 y0, x^3), Hessian [[6 x y0, 3 x^2], [3 x^2, 0]].
const LIST: &str = "type list = #nil | #cons f64 list
def copies (k: i64) (x: f64) : list = if k <= 0 then #nil else #cons x (copies (k - 1) x)
def product (l: list) : f64 = match l case #nil -> 1 case #cons x rest -> x * product rest
entry main (x: f64) (y: [1]f64) : f64 = y[0] * product (copies 3 x)";

#[test]
fn matrices_are_computed_one_direction_after_the_other_where_an_algorithm_does_not_take_many() {
    let (_, file) = program("list", LIST);
    let at = ["--arg", "x=2.0", "--arg", "y=[5.0]"];
    for mode in ["forward", "reverse"] {
        let out = json(&[&["jacobian", &file, "--mode", mode], &at[..]].concat());
        assert_eq!(numbers(&out["jacobian"]), [60.0, 8.0], "{mode}");
    }
    let out = json(&[&["hessian", &file], &at[..]].concat());
    assert_eq!(numbers(&out["hessian"]), [60.0, 12.0, 12.0, 0.0]);
    let out = json(&[&["gauss-newton", &file], &at[..]].concat());
    assert_eq!(numbers(&out["gauss_newton"]), [3600.0, 480.0, 480.0, 64.0]);
}

/// y (x0^3 + x1^3): Hessian [[6 x0 y, 0, 3 x0^2], [0, 6 x1 y, 3 x1^2], [3 x0^2, 3 x1^2, 0]]; and the Jacobian of (x0 y, x1 y, (x0 + x1) y). Forward mode goes over the derivative, which is an ordinary function.
#[test]
fn matrices_by_bulk_dual_numbers() {
    let (_, cubes) = program(
        "bulk_hessian",
        "entry main [n] (x: [n]f64) (y: f64) : f64 = f64.sum (map (\\a -> a * a * a * y) x)",
    );
    let (_, products) = program(
        "bulk_jacobian",
        "entry main [n] (x: [n]f64) (y: f64) : ([n]f64, f64) = (map (\\a -> a * y) x, f64.sum x * y)",
    );
    for backend in ["interp", "vm"] {
        let of = |command: &str, file: &str, more: &[&str]| {
            json(&[&[command, file, "--ad", "bulk", "--backend", backend], &POINT[..], more].concat())
        };
        let hessian = of("hessian", &cubes, &[]);
        assert_eq!(
            numbers(&hessian["hessian"]),
            [36.0, 0.0, 12.0, 0.0, 90.0, 75.0, 12.0, 75.0, 0.0],
            "{backend}"
        );
        let product = of("hvp", &cubes, &["--direction", "x=[1.0,-1.0]"]);
        assert_eq!(numbers(&product["hvp"]["x"]), [36.0, -90.0], "{backend}");
        assert_eq!(numbers(&product["hvp"]["y"]), [12.0 - 75.0], "{backend}");
        let jacobian = of("jacobian", &products, &["--mode", "reverse"]);
        assert_eq!(
            numbers(&jacobian["jacobian"]),
            [3.0, 0.0, 2.0, 0.0, 3.0, 5.0, 3.0, 3.0, 7.0],
            "{backend}"
        );
    }
}

#[test]
fn the_hessian_and_its_product() {
    let (folder, file) = program("hessian", CUBIC);
    let out = json(&[&["hessian", &file], &POINT[..]].concat());
    assert_eq!(numbers(&out["hessian"]), [6.0, 0.0, 4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    let out = json(&[&["hessian", &file, "--wrt", "x"], &POINT[..]].concat());
    assert_eq!(numbers(&out["hessian"]), [6.0, 0.0, 0.0, 0.0]);
    let out = json(&[&["hvp", &file, "--direction", "x=[1.0,7.0]"], &POINT[..]].concat());
    assert_eq!(out["result"], 19.0);
    assert_eq!(numbers(&out["gradient"]["x"]), [13.0, 1.0]);
    assert_eq!(numbers(&out["gradient"]["y"]), [4.0]);
    assert_eq!(numbers(&out["hvp"]["x"]), [6.0, 0.0]);
    assert_eq!(numbers(&out["hvp"]["y"]), [4.0]);
    let path = folder.join("hvp.json").display().to_string();
    let args =
        [&["hvp", &file, "--direction", "y=0.5", "--wrt", "y", "--output", &path], &POINT[..]].concat();
    assert!(pullback(&args).status.success());
    let written: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("written")).expect("JSON");
    assert_eq!(numbers(&written["hvp"]["y"]), [0.0]);
}

#[test]
fn gauss_newton_gives_the_matrix_or_its_product() {
    let (_, file) = program("gauss_newton", RESIDUALS);
    let out = json(&[&["gauss-newton", &file], &POINT[..]].concat());
    assert_eq!(numbers(&out["gauss_newton"]), [10.0, 1.0, 6.0, 1.0, 1.0, 0.0, 6.0, 0.0, 5.0]);
    let out = json(&[&["gauss-newton", &file, "--direction", "x=[1.0,0.0]"], &POINT[..]].concat());
    assert_eq!(numbers(&out["tangent"]["0"]), [3.0, 1.0]);
    assert_eq!(numbers(&out["tangent"]["1"]), [0.0]);
    assert_eq!(numbers(&out["gauss_newton"]["x"]), [10.0, 1.0]);
    assert_eq!(numbers(&out["gauss_newton"]["y"]), [6.0]);
}

#[test]
fn shapes_and_names_that_do_not_fit_are_told() {
    let (_, file) = program("wrong", CUBIC);
    let text = fails(&[&["hvp", &file, "--direction", "x=[1.0]"], &POINT[..]].concat());
    assert!(text.contains("direction for `x` is [1]f64, the argument [2]f64"), "{text}");
    let text = fails(&[&["hvp", &file, "--direction", "z=1.0"], &POINT[..]].concat());
    assert!(text.contains("`z`") && text.contains("x, y"), "{text}");
    let text = fails(&[&["hvp", &file, "--direction", "y=1.0", "--direction", "y=2.0"], &POINT[..]].concat());
    assert!(text.contains("twice"), "{text}");
    let (_, file) = program("wrong_residuals", RESIDUALS);
    let text = fails(&[&["hessian", &file], &POINT[..]].concat());
    assert!(text.contains("scalar float") && text.contains("gauss-newton"), "{text}");
    let (_, file) = program("wrong_cotangent", "entry main [n] (x: [n]f64) : [n]f64 = map (\\a -> a * a) x");
    let text = fails(&["vjp", &file, "--arg", "x=[1.0,2.0]", "--cotangent", "[1.0,2.0,3.0]"]);
    assert!(text.contains("cotangent has shape [3], the result [2]"), "{text}");
}

#[test]
fn errors_are_json_too() {
    let (_, file) = program("json_errors", CUBIC);
    let out = pullback(&[&["hvp", &file, "--direction", "x=[1.0]", "--json"], &POINT[..]].concat());
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(report["ok"], false);
    assert_eq!(report["diagnostics"][0]["code"], "E0501");
}

#[test]
fn the_first_operation_that_is_not_finite_is_shown() {
    let text = "entry value (x: f64) : f64 =\n  let y = f64.log x\n  in y + 1.0\nentry norm (x: f64) (y: f64) : f64 =\n  f64.sqrt (x * x + y * y)\n";
    let (_, file) = program("nan", text);
    let message = fails(&["run", &file, "--entry", "value", "--arg", "x=0.0", "--check-nan"]);
    for part in
        ["E0602", "program.fut:2:", "log(0.0) = -inf", "let y = f64.log x", "^", "hint: the logarithm"]
    {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    let origin = ["--entry", "norm", "--arg", "x=0.0", "--arg", "y=0.0"];
    assert!(pullback(&[&["run", &file], &origin[..], &["--check-nan"]].concat()).status.success());
    for command in ["grad", "vjp"] {
        let message = fails(&[&[command, &file], &origin[..], &["--check-nan"]].concat());
        for part in
            ["program.fut:5:", "derivative of this operation", "fast_chad.prim", "f64.sqrt", "let safe ="]
        {
            assert!(message.contains(part), "{command}: {part} is missing in {message}");
        }
    }
    let message = fails(&[&["jvp", &file, "--tangent", "x=1.0"], &origin[..], &["--check-nan"]].concat());
    assert!(message.contains("forward.prim"), "{message}");
    let out = pullback(&[&["grad", &file], &origin[..], &["--check-nan", "--json"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(report["diagnostics"][0]["code"], "E0602");
    assert_eq!(report["diagnostics"][0]["place"]["line"], 5);
    // Without the option the run goes on, as the floating point standard says.
    assert!(pullback(&[&["grad", &file], &origin[..]].concat()).status.success());
}
