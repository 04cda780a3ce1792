//! `pullback profile` from the command line: constructs, lines and counts; times are never asked.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Line 4 runs once for each of the five iterations of line 3.
const TEXT: &str = "-- A loop, and a sum.
entry main [n] (x: [n]f64) (k: i64) : f64 =
  let y = loop y = x for i < k do
    map (\\a -> f64.tanh a * 0.5) (rotate 1 y)
  in f64.sum (map (\\a -> if a < 1 then a * a else 2 * a) y)
";

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder is there");
    path
}

fn pullback(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pullback"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.args(args).output().expect("the program starts")
}

fn stdout(args: &[&str]) -> String {
    let out = pullback(args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

const X: &str = "x=[0.5,1.5,-1.0,0.25,2.0,0.125]";

fn counts(json: &Json) -> Vec<(String, String, u64, u64)> {
    let rows = json["rows"].as_array().expect("rows");
    let row = |r: &Json| {
        let (construct, sweep) = (r["construct"].as_str(), r["sweep"].as_str());
        let text = |s: Option<&str>| s.expect("a word").to_string();
        (
            text(construct),
            text(sweep),
            r["place"]["line"].as_u64().unwrap_or(0),
            r["runs"].as_u64().unwrap_or(0),
        )
    };
    rows.iter().map(row).filter(|r| r.3 > 0).collect()
}

#[test]
fn json_has_each_construct_with_its_line_and_count() {
    let path = file("profile_json.fut", TEXT);
    let path = path.to_str().expect("a path");
    let text =
        stdout(&["profile", path, "--arg", X, "--arg", "k=5", "--backend", "vm", "--json", "--runs", "2"]);
    let json: Json = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["executor"], &json["runs"]), (&Json::from("vm"), &Json::from(2)));
    let rows = counts(&json);
    let has = |construct: &str, line, count| {
        rows.iter().any(|r| (r.0.as_str(), r.2, r.3) == (construct, line, count) && r.1 == "primal")
    };
    assert!(has("whole call", 0, 1), "{rows:?}");
    assert!(has("loop", 3, 1), "{rows:?}");
    assert!(has("map", 4, 5), "{rows:?}");
    assert!(rows.iter().filter(|r| r.2 == 4).all(|r| r.3 == 5), "{rows:?}");
    assert!(json["rows"].as_array().expect("rows").iter().any(|r| r["place"]["file"] == path));
}

#[test]
fn the_derivative_has_both_sweeps() {
    let path = file("profile_vjp.fut", TEXT);
    let path = path.to_str().expect("a path");
    let args = [
        "profile",
        path,
        "--arg",
        X,
        "--arg",
        "k=5",
        "--backend",
        "vm",
        "--json",
        "--derivative",
        "vjp",
        "--runs",
        "1",
    ];
    let json: Json = serde_json::from_str(&stdout(&args)).expect("JSON");
    let rows = counts(&json);
    for sweep in ["primal", "reverse"] {
        assert!(rows.iter().any(|r| r.1 == sweep && r.2 == 4 && r.3 == 5), "{sweep}: {rows:?}");
    }
    let tapes: u64 =
        json["rows"].as_array().expect("rows").iter().filter_map(|r| r["tape_bytes"].as_u64()).sum();
    // Six doubles of five iterations.
    assert!(tapes >= 240, "{tapes}");
}

/// The tags of a page, which are closed in order.
fn tags(page: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for piece in page.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "text is escaped: {text}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or("");
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            open.push(name);
            all.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn the_page_is_whole_and_needs_nothing_else() {
    let program = file("profile_page.fut", TEXT);
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile_page.html");
    let (program, path) = (program.to_str().expect("a path"), page.to_str().expect("a path"));
    let text = stdout(&[
        "profile",
        program,
        "--arg",
        X,
        "--arg",
        "k=5",
        "--backend",
        "vm",
        "--derivative",
        "vjp",
        "--html",
        path,
    ]);
    assert!(text.contains("profile_page.fut:4:") && text.contains("without clocks"), "{text}");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let tags = tags(&page);
    let number = |name: &str| tags.iter().filter(|t| **t == name).count();
    assert!(number("rect") + page.matches("<rect").count() > 3, "{page}");
    assert_eq!((number("script"), number("link"), number("img")), (0, 0, 0));
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("if a &lt; 1"), "the source is shown, escaped");
}

#[test]
fn what_has_no_profile_is_refused_with_the_exit_code_of_its_kind() {
    let path = file("profile_refused.fut", TEXT);
    let path = path.to_str().expect("a path");
    let with = |more: &[&str]| {
        let args: Vec<&str> =
            ["profile", path, "--arg", X, "--arg", "k=5"].iter().chain(more).copied().collect();
        let out = pullback(&args);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for (more, code, word) in [
        (&["--backend", "interp"][..], 1, "interpreter"),
        (&["--check-nan"], 1, "interpreter"),
        (&["--runs", "0"], 2, "runs"),
        (&["--derivative", "jvp"], 2, "derivative"),
        (&["--derivative", "vjp", "--wrt", "nothing"], 1, "nothing"),
        (&["--html", "/no/such/folder/page.html"], 1, "cannot write"),
    ] {
        let (found, text) = with(more);
        assert_eq!(found, Some(code), "{more:?}: {text}");
        assert!(text.contains(word), "{more:?}: {text}");
    }
}

#[test]
fn machine_code_that_cannot_be_made_is_not_supported_and_too_little_memory_says_what_to_do() {
    let path = file("profile_missing.fut", TEXT);
    let path = path.to_str().expect("a path");
    let args = ["profile", path, "--arg", X, "--arg", "k=5"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_pullback"));
    command.env("PULLBACK_LLVM", "/no/such/libLLVM.so").args(args).args(["--backend", "llvm"]);
    let out = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{text}");
    assert!(text.contains("no native code"), "{text}");
    let more = ["--backend", "vm", "--memory-limit", "0"];
    let out = pullback(&args.iter().chain(&more).copied().collect::<Vec<_>>());
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("out of memory") && text.contains("--memory-limit"), "{text}");
}

#[test]
fn an_error_of_the_program_is_its_own() {
    let text = "entry main (x: []f64) (i: i64) : f64 = f64.sum (map (\\a -> a * x[i]) x)\n";
    let path = file("profile_stops.fut", text);
    let out =
        pullback(&["profile", path.to_str().expect("a path"), "--arg", X, "--arg", "i=9", "--backend", "vm"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("index 9 is out of bounds"), "{text}");
}
