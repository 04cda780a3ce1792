//! The command line from outside: what a user types, what it prints, how it ends, what it leaves behind.

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

fn stdout(args: &[&str]) -> String {
    let out = pullback(args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// Fails with this exit code; gives what it says.
fn fails(args: &[&str], code: i32) -> String {
    let out = pullback(args);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
    assert!(!text.is_empty());
    text
}

/// A folder for one test's files.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn write(folder: &Path, name: &str, text: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

const IRIS: [&str; 4] = ["--input", "examples/data/gmm_iris.json", "--arg", "x=@examples/data/iris.csv"];

#[test]
fn the_main_command_gives_objective_gradient_and_verdict() {
    let text = stdout(&[&["grad", "examples/gmm.fut"], &IRIS[..], &["--wrt", "params", "--check"]].concat());
    assert!(text.starts_with("objective = -432.9490270846"), "{text}");
    for part in ["params.alpha", "params.mu", "params.q", "params.l", "largest entries", "gradcheck passed"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(!text.contains("gamma"), "only params were asked for: {text}");
}

#[cfg(unix)]
#[test]
fn an_output_that_is_no_file_is_written_into() {
    let folder = scratch("no-file");
    let program = write(&folder, "p.fut", b"entry twice (x: f64) : f64 = 2 * x\n");
    let output = folder.join("out.json");
    // By a link, so that a mistake costs a link.
    std::os::unix::fs::symlink("/dev/stdout", &output).expect("a link");
    let text =
        stdout(&["run", &program, "--arg", "x=1.25", "--json", "--output", &output.display().to_string()]);
    assert!(text.starts_with("2.5\n") && text.len() > 4, "{text}");
    assert!(std::fs::symlink_metadata(&output).expect("there").is_symlink());
}

#[test]
fn json_output_is_json_and_freezing_works() {
    let text = stdout(
        &[&["grad", "examples/gmm.fut"], &IRIS[..], &["--wrt", "params,-params.l", "--json"]].concat(),
    );
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let gradient = json["gradient"].as_object().expect("an object");
    assert_eq!(gradient.keys().collect::<Vec<_>>(), ["params.alpha", "params.mu", "params.q"]);
    assert_eq!(gradient["params.mu"].as_array().map(Vec::len), Some(3));
}

#[test]
fn the_objective_rises_under_gradient_ascent() {
    let args = ["run", "examples/gmm.fut", "--entry", "fit", "--input", "examples/data/fit_iris.json"];
    let text = stdout(&[&args[..], &["--arg", "x=@examples/data/iris.csv", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let history: Vec<f64> =
        json["result"][0].as_array().expect("a history").iter().filter_map(|x| x.as_f64()).collect();
    assert_eq!(history.len(), 31);
    assert!(history.windows(2).all(|w| w[1] > w[0]), "{history:?}");
}

#[test]
fn values_go_through_every_format() {
    let folder = scratch("formats");
    let program = write(
        &folder,
        "scale.fut",
        b"entry main [n] [m] (a: [n][m]f64) (s: f64) : [n][m]f64 = map (map (* s)) a",
    );
    let csv = write(&folder, "a.csv", b"p,q,r\n1,2,3\n4,5,6\n");
    let npy = folder.join("b.npy").display().to_string();
    let json = folder.join("c.json").display().to_string();
    let back = folder.join("d.csv").display().to_string();
    stdout(&["run", &program, "--arg", &format!("a=@{csv}"), "--arg", "s=2", "--output", &npy]);
    stdout(&["run", &program, "--arg", &format!("a=@{npy}"), "--arg", "s=0.5", "--output", &json]);
    stdout(&["run", &program, "--arg", &format!("a=@{json}"), "--arg", "s=1", "--output", &back]);
    assert_eq!(std::fs::read_to_string(&back).expect("written"), "1.0,2.0,3.0\n4.0,5.0,6.0\n");
    let text = stdout(&["run", &program, "--arg", "a=[[1.0, f64.nan], [f64.inf, -0.0]]", "--arg", "s=1"]);
    assert_eq!(text.trim(), "[[1.0f64, f64.nan], [f64.inf, -0.0f64]]");
}

#[test]
fn jvp_vjp_and_jacobian_agree() {
    let base = ["examples/ode.fut", "--entry", "primal", "--arg", "x=[0.7,0.2,0.1]", "--arg", "s=5"];
    let jacobian = |mode: &str| -> Vec<Vec<f64>> {
        let text = stdout(&[&["jacobian"], &base[..], &["--mode", mode, "--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        serde_json::from_value(json["jacobian"].clone()).expect("a matrix")
    };
    let (forward, reverse) = (jacobian("forward"), jacobian("reverse"));
    for (a, b) in forward.iter().flatten().zip(reverse.iter().flatten()) {
        assert!((a - b).abs() < 1e-12, "{forward:?} {reverse:?}");
    }
    let text = stdout(&[&["vjp"], &base[..], &["--cotangent", "[0.0,0.0,1.0]", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let row: Vec<f64> = serde_json::from_value(json["cotangents"]["x"].clone()).expect("numbers");
    assert_eq!(row.len(), 3);
    assert!(row.iter().zip(&reverse[2]).all(|(a, b)| (a - b).abs() < 1e-15));
    let text = stdout(&[&["jvp"], &base[..], &["--tangent", "x=[1.0,0.0,0.0]", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let column: Vec<f64> = serde_json::from_value(json["tangents"]["result"].clone()).expect("numbers");
    assert!(column.iter().zip(&forward).all(|(a, row)| (a - row[0]).abs() < 1e-15));
}

/// A root at 0 that is not taken, in the program's own derivative: the result is a number, or NaN where plain products are asked for.
#[test]
fn zero_times_infinity_is_nan_only_where_it_is_asked_for() {
    let folder = scratch("ieee-partials");
    let text = "def f (x: f64) : f64 = let s = f64.sqrt x in if x > 0 then s else 2 * x
entry slope (x: f64) : f64 = vjp f x 1
entry value (x: f64) : f64 = f x
";
    let program = write(&folder, "p.fut", text.as_bytes());
    let slope = |extra: &[&str]| {
        stdout(&[&["run", &program, "--entry", "slope", "--arg", "x=0.0"], extra].concat()).trim().to_string()
    };
    let cotangent = |extra: &[&str]| {
        let base = ["vjp", &program, "--entry", "value", "--arg", "x=0.0", "--cotangent", "1.0", "--json"];
        let json: serde_json::Value =
            serde_json::from_str(&stdout(&[&base[..], extra].concat())).expect("JSON");
        json["cotangents"]["x"].clone()
    };
    for way in [["--backend", "interp"], ["--backend", "vm"], ["--backend", "auto"]] {
        assert_eq!(slope(&way), "2.0f64", "{way:?}");
        assert_eq!(slope(&[&way[..], &["--ieee-partials"]].concat()), "f64.nan", "{way:?}");
    }
    for way in
        [["--ad", "fast_chad"], ["--ad", "chad-arrays"], ["--ad", "dual-taping"], ["--ad", "delta-let"]]
    {
        assert_eq!(cotangent(&way), 2.0, "{way:?}");
        // Delta terms of what is not taken are not evaluated: nothing is multiplied.
        let plain = cotangent(&[&way[..], &["--ieee-partials"]].concat());
        assert_eq!(plain.is_f64(), way[1] == "delta-let", "{way:?}: {plain}");
    }
}

#[test]
fn directions_without_rows_have_the_columns_of_their_argument() {
    let folder = scratch("no_rows");
    let text = b"entry main [n][m] (b: [m]f64) (a: [n][m]f64) : f64 = f64.sum b + f64.sum (flatten a)";
    let file = write(&folder, "no_rows.fut", text);
    let base = [file.as_str(), "--arg", "b=[1.0,2.0]", "--arg", "a=[]", "--json"];
    let tangent = stdout(&[&["jvp"], &base[..], &["--tangent", "a=[]"]].concat());
    assert!(tangent.contains("3.0"), "{tangent}");
    stdout(&[&["hvp"], &base[..], &["--direction", "a=[]", "--direction", "b=[1.0,0.0]"]].concat());
}

#[test]
fn core_and_explain_show_the_inside() {
    let text = stdout(&["core", "--print-pipeline"]);
    assert!(text.contains("differentiate") && text.contains("simplify"));
    let lowered = stdout(&["core", "examples/lse.fut", "--entry", "primal", "--after", "lower"]);
    assert!(lowered.contains("entry") && lowered.contains("reduce"));
    let folder = scratch("core");
    let file = write(&folder, "lse.core", lowered.as_bytes());
    let simplified = stdout(&["core", &file, "--pass", "simplify"]);
    assert!(simplified.contains("reduce"));
    let reverse = stdout(&["core", "examples/lse.fut", "--entry", "primal", "--derivative", "vjp"]);
    assert!(!reverse.contains("vjp ["), "{reverse}");
    let table = stdout(&["explain", "examples/lse.fut", "--entry", "primal"]);
    assert!(table.contains("fast_chad.map") && table.contains("fast_chad.reduce"), "{table}");
}

/// The function with `build1`, the rules, bulk operations, the reverse pass, and last the table; long runs are cut.
#[test]
fn explain_shows_the_steps_of_bulk_dual_numbers() {
    let folder = scratch("explain_bulk");
    let text = b"entry main [n] (a: [n]f64): f64 = f64.sum (map (\\i -> a[i] * a[n - 1 - i]) (iota n))";
    let program = write(&folder, "convolution.fut", text);
    let steps = stdout(&["explain", &program, "--ad", "bulk"]);
    let parts = [
        "The function, in the fragment",
        "size n0 = dimension 0 of a",
        "(build1 (n0)",
        "The bulk-operation transformation",
        "\n  B5 ",
        "    ~> (mul.f64 (build1 (n0)",
        "The function, in bulk operations",
        "(gather [n0] a",
        "The symbolic reverse pass",
        "the cotangent of r",
        "(scatter [n0]",
        "as a function of core",
        "| bulk.lambda",
    ];
    let mut rest = steps.as_str();
    for part in parts {
        let (_, after) =
            rest.split_once(part).unwrap_or_else(|| panic!("no `{part}` in\n{rest}\nof\n{steps}"));
        rest = after;
    }
    assert!(!steps.contains("more\n"), "{steps}");
    for other in [&["explain", &program][..], &["explain", &program, "--ad", "bulk", "--mode", "jvp"]] {
        assert!(!stdout(other).contains("build1"), "{other:?}");
    }
    let twice = b"entry main (x: f64): f64 = x * vjp (\\(v: f64) -> v * v * v) x 1.0";
    let steps = stdout(&["explain", &write(&folder, "twice.fut", twice), "--ad", "bulk"]);
    assert_eq!(steps.matches("The function, in the fragment").count(), 2, "inner and outer: {steps}");
    assert_eq!(steps.matches("as a function of core").count(), 1, "{steps}");
    let sums: String = (0..60).map(|k| format!(" + f64.sum (map (\\x -> {k} * x * x) a)")).collect();
    let long = write(&folder, "long.fut", format!("entry main [n] (a: [n]f64): f64 = a[0]{sums}").as_bytes());
    let steps = stdout(&["explain", &long, "--ad", "bulk"]);
    let rules = steps.lines().filter(|line| line.starts_with("    ~> ")).count();
    let said = steps.lines().find(|line| line.starts_with("  and ") && line.ends_with(" more")).expect("cut");
    let more: usize = said.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    assert!(steps.contains(&format!("(rules applied: {})", rules + more)), "{rules} and {said}");
}

/// The same gradient with delta terms that are made at run time; they are counted, and not compiled.
#[test]
fn delta_terms_of_bulk_dual_numbers() {
    let folder = scratch("bulk_tape");
    let text = b"entry main [n] (a: [n]f64): f64 = f64.sum (map (\\i -> a[i] * a[n - 1 - i]) (iota n))";
    let program = write(&folder, "convolution.fut", text);
    let grad = ["grad", &program, "--arg", "a=[1.0, 2.0, 3.0, 5.0]"];
    let wanted = stdout(&grad);
    assert!(wanted.contains("1.000000000000000e1") && wanted.contains("6.000000000000000e0"), "{wanted}");
    for id in ["bulk-scalar", "bulk-tape"] {
        assert_eq!(stdout(&[&grad[..], &["--ad", id]].concat()), wanted, "{id}");
        let text = fails(&[&grad[..], &["--ad", id, "--backend", "vm"]].concat(), 3);
        assert!(
            text.contains(id) && text.contains("--backend interp") && text.contains("--ad bulk"),
            "{text}"
        );
        let hessian = fails(&["hessian", &program, "--arg", "a=[1.0, 2.0]", "--ad", id], 3);
        assert!(hessian.contains(id) && hessian.contains("one cotangent"), "{hessian}");
        let explained = stdout(&["explain", &program, "--ad", id, "--arg", "a=[1.0, 2.0, 3.0, 5.0]"]);
        assert!(
            explained.contains("(build1 (n0)") && explained.contains("nodes of delta terms"),
            "{explained}"
        );
        assert_eq!(explained.contains("The function, in bulk operations"), id == "bulk-tape", "{explained}");
    }
    let inner = b"entry main (x: f64): f64 = vjp (\\y -> y * y * y) x 1";
    let program = write(&folder, "inner.fut", inner);
    let gradient = stdout(&["grad", &program, "--arg", "x=2.0", "--ad", "bulk-tape"]);
    assert!(gradient.contains("1.200000000000000e1"), "{gradient}");
    let text = fails(&["explain", &program, "--mode", "jvp", "--ad", "bulk-tape"], 3);
    assert!(text.contains("bulk-tape") && text.contains("entry point"), "{text}");
}

#[test]
fn programs_that_are_wrong_end_with_one_and_say_where() {
    let folder = scratch("wrong");
    let program = write(&folder, "wrong.fut", b"entry main (x: f64) : f64 =\n  x + y\n");
    let text = fails(&["check", &program], 1);
    assert!(text.contains("E0201") && text.contains("wrong.fut:2:7") && text.contains("hint"), "{text}");
    let out = pullback(&["check", &program, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON also for errors");
    assert_eq!(json["diagnostics"][0]["place"]["line"], 2);
    let stops = write(&folder, "stops.fut", b"entry main (i: i64) : f64 = [1.0, 2.0][i]\n");
    let text = fails(&["run", &stops, "--arg", "i=7"], 1);
    assert!(text.contains('7') && text.contains('2') && text.contains("stops.fut:1:"), "{text}");
}

#[test]
fn unsupported_programs_end_with_three() {
    let folder = scratch("unsupported");
    let text = b"entry main (x: f64) (c: f64) : f64 = with_rule (\\y -> y * c) (\\_ bar -> bar * c) x";
    let program = write(&folder, "captures.fut", text);
    let text = fails(&["grad", &program, "--arg", "x=1.0", "--arg", "c=2.0"], 3);
    assert!(text.contains("E0401") && text.contains("not supported yet"), "{text}");
    assert!(text.contains("`c`") && text.contains("argument"), "{text}");
}

#[test]
fn malformed_inputs_are_refused_and_nothing_is_written() {
    let folder = scratch("inputs");
    let text = b"entry main [n] (a: [n]f64) (b: [n]f64) (k: i8) : f64 = f64.sum (map2 (*) a b) * f64.i8 k";
    let program = write(&folder, "dot.fut", text);
    let output = folder.join("out.json").display().to_string();
    let bad_json = write(&folder, "bad.json", b"{\"a\": [1.0, ");
    let ragged = write(&folder, "ragged.json", b"{\"a\": [[1.0], [1.0, 2.0]], \"b\": [1.0], \"k\": 1}");
    let unknown = write(&folder, "unknown.json", b"{\"q\": 1}");
    let bad_npy = write(&folder, "bad.npy", b"\x93NUMPY\x01\x00 nonsense");
    let huge_npy = write(
        &folder,
        "huge.npy",
        b"\x93NUMPY\x01\x00\x56\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }                \n",
    );
    let bad_csv = write(&folder, "bad.csv", b"1,2\n3\n");
    let binary = write(&folder, "binary.json", b"\xff\xfe\x00");
    let good = ["--arg", "a=[1.0,2.0]", "--arg", "b=[1.0,2.0]", "--arg", "k=1"];
    let wrong: Vec<Vec<String>> = [
        vec!["--arg", "a=[1.0]"],
        vec!["--arg", "a=[1.0,2.0]", "--arg", "b=[1.0,2.0,3.0]", "--arg", "k=1"],
        vec!["--arg", "a=[1.0,2.0]", "--arg", "b=[1.0,2.0]", "--arg", "k=300"],
        vec!["--arg", "a=[1.0,2.0]", "--arg", "b=[1.0,2.0]", "--arg", "k=1.5"],
        vec!["--arg", "a=[[1.0]]", "--arg", "b=[1.0]", "--arg", "k=1"],
        vec!["--arg", "a=[true]", "--arg", "b=[1.0]", "--arg", "k=1"],
        vec!["--arg", "a=1.0", "--arg", "b=[1.0]", "--arg", "k=1"],
        vec!["--arg", "a=[1.0", "--arg", "b=[1.0]", "--arg", "k=1"],
        vec!["--arg", "nonsense"],
        vec!["--arg", "q=1"],
        vec!["--arg", "a=@missing.json"],
        vec!["--arg", "a=@dot.weird"],
        vec!["--input", "missing.json"],
        vec!["--input", &bad_json],
        vec!["--input", &ragged],
        vec!["--input", &unknown],
        vec!["--input", &binary],
    ]
    .into_iter()
    .map(|v| v.into_iter().map(String::from).collect())
    .chain([&bad_npy, &huge_npy, &bad_csv].map(|f| vec!["--arg".to_string(), format!("a=@{f}")]))
    .collect();
    for case in &wrong {
        let mut args = vec!["run", program.as_str(), "--output", output.as_str()];
        args.extend(case.iter().map(String::as_str));
        let text = fails(&args, 1);
        assert!(text.contains("E0501"), "{case:?}: {text}");
        assert!(!Path::new(&output).exists(), "{case:?} wrote its output");
    }
    let mut args = vec!["run", program.as_str(), "--output", output.as_str()];
    args.extend(good);
    stdout(&args);
    assert!(Path::new(&output).exists());
    // A failing run leaves the old output alone, and no temporary file.
    let before = std::fs::read(&output).expect("written");
    let stop = ["run", program.as_str(), "--output", output.as_str(), "--arg", "a=[1.0]"];
    fails(&stop, 1);
    assert_eq!(std::fs::read(&output).expect("still there"), before);
    let left = std::fs::read_dir(&folder).expect("a folder").filter_map(Result::ok);
    assert!(left.into_iter().all(|f| !f.file_name().to_string_lossy().ends_with(".tmp")));
    fails(
        &[
            "run",
            &program,
            "--output",
            "/nonexistent/folder/x.json",
            "--arg",
            "a=[1.0]",
            "--arg",
            "b=[1.0]",
            "--arg",
            "k=1",
        ],
        1,
    );
}

#[test]
fn gradcheck_knows_the_precision_of_the_program() {
    let folder = scratch("single");
    let text = b"entry main [n] (a: [n]f32) : f32 = f32.sum (map (\\x -> f32.sin x * x) a)";
    let program = write(&folder, "single.fut", text);
    let report = stdout(&["gradcheck", &program, "--arg", "a=[0.5, 1.5, -2.0]"]);
    assert!(report.contains("gradcheck passed"), "{report}");
}

#[test]
fn gradcheck_says_what_it_cannot_compare() {
    let folder = scratch("nothing");
    let program = write(
        &folder,
        "nothing.fut",
        b"entry above (x: f64) : bool = x > 0
entry same (x: f64) : f64 = x",
    );
    let text = fails(&["gradcheck", &program, "--entry", "above", "--arg", "x=1.0"], 3);
    assert!(text.contains("no floats"), "{text}");
    let text = fails(&["gradcheck", &program, "--entry", "same", "--arg", "x=f64.nan"], 1);
    assert!(text.contains("NaN"), "{text}");
}

/// A line without numbers is taken for names; alone it is no empty table.
#[test]
fn a_table_of_names_only_is_an_error() {
    let folder = scratch("names");
    let program = write(&folder, "sum.fut", b"entry main (a: [][]f64) : f64 = f64.sum (flatten a)");
    let table = write(&folder, "a.csv", b"1;2\n");
    let text = fails(&["run", &program, "--arg", &format!("a=@{table}")], 1);
    assert!(text.contains("names of columns"), "{text}");
}

#[test]
fn every_command_explains_itself() {
    for command in
        ["run", "check", "grad", "vjp", "jvp", "jacobian", "gradcheck", "core", "explain", "completions"]
    {
        let text = stdout(&[command, "--help"]);
        assert!(text.contains("Example"), "{command}: {text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&["completions", shell]).contains("gradcheck"));
    }
}

#[test]
fn two_entry_points_need_a_choice() {
    let text = fails(&["run", "examples/kmeans.fut"], 1);
    assert!(text.contains("--entry") && text.contains("cost") && text.contains("direction"), "{text}");
    let text = fails(&["run", "examples/kmeans.fut", "--entry", "costs"], 1);
    assert!(text.contains("E0306"), "{text}");
}

/// The algorithms on lambda are chosen by name; they give what `fast_chad` gives, and say what they do not do.
#[test]
fn algorithms_on_lambda_by_name() {
    let folder = scratch("on_lambda");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let scalars = file(
        "scalars.fut",
        "type shape = #circle f64 | #box f64 f64
         def area (s: shape): f64 = match s case #circle r -> 3.0 * r * r case #box a b -> a * b
         def twice (f: f64 -> f64) (x: f64): f64 = f (f x)
         entry main (x: f64) (p: {a: f64, b: f64}) (k: i64): f64 =
           let y = if x < 2.0 then x * x else f64.sin x
           let s = if p.a > 0 then #circle (x * p.b) else #box x y
           in y + twice (\\z -> z * p.a + x) (area s) * f64.i64 k",
    );
    let arrays = file(
        "arrays.fut",
        "def sq (x: f64) = x * x
         entry main [n] (a: [n](f64, f64)) (is: [n]i64) (w: f64): f64 =
           let b = map (\\(x, y) -> x * y + sq w) a
           in f64.sum (map (\\i -> b[i] * b[0]) is) + f64.maximum b",
    );
    let at = ["--arg", "x=1.5", "--arg", "p={a = 0.5, b = 2.0}", "--arg", "k=3"];
    let gradient = |file: &str, name: &str, at: &[&str]| {
        let args = [&["grad", file, "--ad", name, "--json", "--check"], at].concat();
        let text = stdout(&args);
        // Steps and differences by rounding apart, the text is the same.
        text.split("\"gradcheck\"").next().expect("a part").to_string()
    };
    let expected = gradient(&scalars, "fast_chad", &at);
    assert!(expected.contains("\"objective\": 29.25"), "{expected}");
    let recursive = [
        "chad-accumulating",
        "chad-accumulating-map",
        "chad-accumulating-cells",
        "chad-arrays",
        "chad-closures",
    ];
    for name in ["chad", "chad-sparse"].into_iter().chain(recursive) {
        assert_eq!(gradient(&scalars, name, &at), expected, "{name}");
        assert!(stdout(&["explain", &scalars, "--ad", name]).contains("def main_inlined_"), "{name}");
        let help = stdout(&["grad", "--help"]);
        assert!(help.contains(name), "{name} in the help");
    }
    let scalar_at = at;
    let at = ["--arg", "a=[(1.0, 2.0), (3.0, 4.5)]", "--arg", "is=[1, 0]", "--arg", "w=0.5"];
    assert_eq!(gradient(&arrays, "chad-arrays", &at), gradient(&arrays, "fast_chad", &at));
    let only = [&["grad", &arrays, "--ad", "chad-arrays", "--json", "--wrt", "w"], &at[..]].concat();
    assert!(!stdout(&only).contains("\"a."), "only what is asked for");

    let refused = |args: &[&str], parts: &[&str]| {
        let said = fails(args, 3);
        for part in parts {
            assert!(said.contains(part), "{args:?}: {said}");
        }
    };
    refused(
        &[&["grad", &arrays, "--ad", "chad-accumulating"], &at[..]].concat(),
        &["an operation on arrays", "arrays.fut:", "`chad-arrays` does"],
    );
    refused(
        &[&["grad", &arrays, "--ad", "chad-arrays", "--tape-limit", "1000"], &at[..]].concat(),
        &["keeps no tapes", "leave out --tape-limit"],
    );
    refused(
        &[
            &["profile", &arrays, "--derivative", "vjp", "--ad", "chad-arrays", "--tape-limit", "1000"],
            &at[..],
        ]
        .concat(),
        &["keeps no tapes", "leave out --tape-limit"],
    );
    // Compiled, where core has what they use.
    let compiled = ["grad", &arrays, "--ad", "chad-arrays", "--backend", "vm", "--json", "--check"];
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&[&compiled[..], &at[..]].concat())).expect("JSON");
    assert_eq!(json["gradcheck"]["passed"], true, "{json}");
    refused(
        &[&["grad", &scalars, "--ad", "chad-sparse", "--backend", "vm"], &scalar_at[..]].concat(),
        &["a map cannot be compiled", "use --backend interp"],
    );
    refused(
        &[&["hessian", &arrays, "--ad", "chad-arrays"], &at[..]].concat(),
        &["one cotangent", "leave out --ad"],
    );
    for command in ["code", "core"] {
        let text = stdout(&[command, &arrays, "--ad", "chad-arrays", "--derivative", "vjp"]);
        assert!(text.contains("spread"), "{command}: {text}");
    }
    let profiled = stdout(
        &[&["profile", &arrays, "--ad", "chad-arrays", "--derivative", "vjp", "--json"], &at[..]].concat(),
    );
    assert!(profiled.contains("\"seconds\"") || profiled.contains("milliseconds"), "{profiled}");
    let looping = file(
        "looping.fut",
        "entry main (x: f64) (n: i64): f64 =
           let (y, _) = loop (y, k) = (x, 0i32) while k < 3 do (y * x, k + 1)
           in loop z = y for i < n do z * y + f64.i64 i",
    );
    let at = ["--arg", "x=1.5", "--arg", "n=3"];
    for name in recursive {
        assert_eq!(gradient(&looping, name, &at), gradient(&looping, "fast_chad", &at), "{name}");
    }
    refused(&[&["grad", &looping, "--ad", "chad"], &at[..]].concat(), &["a loop", "looping.fut:2"]);
    let inside = file(
        "inside.fut",
        "def f (n: i64) (x: f64): f64 = if n == 0 then x else f (n - 1) (f64.sum (scan (+) 0 [x, x]))
         entry main (x: f64): f64 = let a = x * x in let b = a + 1 in f 3 b",
    );
    refused(&["grad", &inside, "--ad", "chad-arrays", "--arg", "x=1.0"], &["a scan", "inside.fut:1"]);
    let sum = file("sum.fut", "entry main (x: #a f64 | #b): f64 = match x case #a y -> y * y case #b -> 1.0");
    refused(&["grad", &sum, "--ad", "chad", "--arg", "x=#a 2.0"], &["a value of a sum type (`x`)"]);
    assert!(fails(&["grad", &scalars, "--ad", "chat"], 1).contains(
        "there are fast_chad, bulk, accelerate, accelerate-store, accelerate-recompute, bulk-scalar"
    ));
}

/// Costs of the program and of its derivative are counted alike, whatever the algorithm; only the interpreter of core looks for NaN.
#[test]
fn costs_of_algorithms_on_lambda() {
    let folder = scratch("costs_on_lambda");
    let program = write(&folder, "square.fut", b"entry main (x: f64): f64 = x * x");
    let grad = ["grad", &program, "--arg", "x=3.0", "--report", "--ad", "chad-accumulating"];
    let report = stdout(&grad);
    // The product 2, its arguments 1 each.
    assert!(report.contains("objective: work 4 steps") && report.contains("ratio of work"), "{report}");
    let json = stdout(&[&grad[..], &["--json"]].concat());
    assert!(json.contains("\"work\": 4"), "{json}");
    // The forward pass is counted by hand in the tests of the driver.
    let explained = stdout(&["explain", &program, "--ad", "chad-accumulating", "--arg", "x=3.0"]);
    let line = |text: &str, what: &str| -> u64 {
        let line = text.lines().find(|l| l.trim_start().starts_with(what)).expect(what);
        line.split_whitespace().last().and_then(|n| n.parse().ok()).expect("a number")
    };
    assert!(explained.contains("def main_inlined_vjp"), "{explained}");
    assert_eq!((line(&explained, "the program"), line(&explained, "forward pass")), (4, 21));
    let sum = line(&explained, "forward pass") + line(&explained, "backpropagator");
    assert_eq!(line(&explained, "value and derivative"), sum);
    let explained = stdout(&["explain", &program, "--arg", "x=3.0"]);
    assert!(explained.contains("fast_chad.prim"), "{explained}");
    assert!(line(&explained, "value and derivative") > line(&explained, "the program"));
    assert!(!stdout(&["explain", &program, "--ad", "chad"]).contains("steps"));
    let said = fails(&[&grad[..], &["--check-nan"]].concat(), 3);
    assert!(said.contains("without looking for NaN") && said.contains("leave out"), "{said}");
    assert!(fails(&["explain", &program, "--ad", "chad", "--arg", "y=3.0"], 1).contains("`y`"));
}
