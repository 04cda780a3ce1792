//! The rules of the protocol: one line for each line, whatever comes.

use pullback_driver::{Backend, Settings};
use pullback_gradbench::Tool;
use pullback_gradbench::message::Runs;
use pullback_gradbench::programs::PROBLEMS;
use pullback_interp::core::Options;
use serde_json::{Value as Json, json};
use std::io::{self, Write};

fn tool() -> Tool<'static> {
    Tool::new(Settings { backend: Backend::Vm, ..Settings::default() }, Options::default())
}

/// The answers to lines, read as JSON.
fn answers(lines: &[&str]) -> Vec<Json> {
    let (text, mut out) = (lines.join("\n"), Vec::new());
    tool().serve(&mut text.as_bytes(), &mut out).expect("memory can be written to");
    let text = String::from_utf8(out).expect("text");
    text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

const DEFINE: &str = r#"{"id":1,"kind":"define","module":"lse"}"#;

/// The answer to an evaluation, after the problem was defined.
fn evaluation(function: &str, input: &str) -> Json {
    let message = format!(
        r#"{{"id":4,"kind":"evaluate","module":"lse","function":"{function}","input":{input},"description":"x"}}"#
    );
    let mut found = answers(&[DEFINE, &message]);
    assert_eq!(found.len(), 2);
    found.remove(1)
}

fn error(answer: &Json) -> &str {
    assert_eq!(answer["success"], json!(false), "{answer}");
    assert!(answer.get("output").is_none(), "{answer}");
    answer["error"].as_str().expect("a text")
}

#[test]
fn every_line_is_answered_with_its_id() {
    let found = answers(&[
        r#"{"id":0,"kind":"start","eval":"lse","config":{}}"#,
        r#"{"id":"one","kind":"analysis","of":0,"valid":true}"#,
        r#"{"id":2,"kind":"something new","more":[1,2]}"#,
        r#"{"id":3,"kind":"evaluate","module":"lse","function":"primal","input":{"x":[0.5]}}"#,
        "",
        DEFINE,
    ]);
    let expected = [json!({"id": 0, "tool": "pullback"}), json!({"id": "one"}), json!({"id": 2})];
    assert_eq!(found[..3], expected);
    assert_eq!(found[3], json!({"id": 3, "success": false, "error": "module lse not defined"}));
    assert_eq!((&found[4]["id"], &found[4]["success"]), (&json!(1), &json!(true)));
    assert_eq!(found.len(), 5);
}

#[test]
fn every_problem_can_be_defined_and_no_other() {
    let names =
        ["hello", "gmm", "ba", "ht", "lstm", "kmeans", "llsq", "lse", "ode", "det", "particle", "saddle"];
    assert_eq!(PROBLEMS.iter().map(|(n, _)| *n).collect::<Vec<_>>(), names);
    for name in names {
        let message = json!({"id": 1, "kind": "define", "module": name}).to_string();
        assert_eq!(answers(&[&message])[0]["success"], json!(true), "{name}");
    }
    let message = json!({"id": 1, "kind": "define", "module": "lda"}).to_string();
    assert!(error(&answers(&[&message])[0]).starts_with("no module `lda`; there are hello, gmm"));
}

#[test]
fn there_is_a_time_for_each_run() {
    let answer = evaluation("primal", r#"{"x":[0,0],"min_runs":5,"min_seconds":0}"#);
    assert!((answer["output"].as_f64().expect("a number") - 2f64.ln()).abs() < 1e-15);
    let timings = answer["timings"].as_array().expect("a list");
    let names: Vec<&str> = timings.iter().map(|t| t["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["prepare", "evaluate", "evaluate", "evaluate", "evaluate", "evaluate"]);
    assert!(timings.iter().all(|t| t["nanoseconds"].is_u64()));
    // One run without the fields, and as many as the time needs.
    let count = |input| {
        let answer = evaluation("gradient", input);
        let times = answer["timings"].as_array().expect("a list").iter().skip(1);
        let times: Vec<u64> = times.map(|t| t["nanoseconds"].as_u64().expect("a time")).collect();
        (times.len(), times.iter().sum::<u64>())
    };
    assert_eq!(count(r#"{"x":[1.5]}"#).0, 1);
    let (runs, total) = count(r#"{"x":[1.5],"min_seconds":0.01}"#);
    assert!(runs > 1 && total >= 10_000_000, "{runs} runs of together {total} ns");
}

#[test]
fn wrong_inputs_are_refused_with_the_reason() {
    for (function, input, reason) in [
        ("objective", r#"{"x":[0.5]}"#, "no function `objective`; there are gradient, primal"),
        ("primal", "{}", "the input has no field `x` of type [n]f64"),
        ("primal", r#"{"x":0.5}"#, "the input's field `x`: expected [n]f64, found the number 0.5"),
        ("primal", r#"{"x":["a"]}"#, "the input's field `x`"),
        ("primal", r#"{"x":[0.5],"min_runs":0}"#, "min_runs is 0"),
        ("primal", r#"{"x":[0.5],"min_runs":1.5}"#, "min_runs is 1.5"),
        ("primal", r#"{"x":[0.5],"min_seconds":-1}"#, "min_seconds is -1"),
        ("primal", r#"{"x":[0.5],"min_seconds":"1"}"#, "min_seconds is \"1\""),
        ("primal", r#"{"x":[]}"#, "NaN or infinite"),
        ("primal", r#"{"x":[null]}"#, "NaN or infinite"),
    ] {
        let answer = evaluation(function, input);
        assert!(error(&answer).contains(reason), "{input}: {answer}");
        assert_eq!(answer["id"], json!(4));
    }
}

/// Arrays whose types fit and whose sizes contradict each other.
#[test]
fn arrays_of_other_models_are_refused() {
    let lstm = |rows: usize, width: usize, states: usize| {
        let (main, extra, state) = (vec![vec![1.0; width]; rows], [[1.0]; 3], vec![[1.0]; states]);
        json!({"main_params": main, "extra_params": extra, "state": state, "sequence": [[1.0], [0.0]]})
    };
    let gmm = |below: usize| {
        let l = [vec![1.0; below]];
        json!({"x": [[1.0, 2.0]], "gamma": 1.0, "m": 0, "alpha": [1.0], "mu": [[1.0, 2.0]], "q": [[1.0, 2.0]],
               "l": l})
    };
    for (module, input, fits) in [
        ("lstm", lstm(2, 4, 2), true),
        ("lstm", lstm(3, 4, 3), false),
        ("lstm", lstm(2, 5, 2), false),
        ("lstm", lstm(2, 4, 6), false),
        ("gmm", gmm(1), true),
        ("gmm", gmm(0), false),
        ("gmm", gmm(3), false),
    ] {
        for function in ["objective", "jacobian"] {
            let define = json!({"id": 1, "kind": "define", "module": module}).to_string();
            let evaluate =
                json!({"id": 2, "kind": "evaluate", "module": module, "function": function, "input": input});
            let found = answers(&[&define, &evaluate.to_string()]);
            assert_eq!(found[1]["success"], json!(fits), "{module} {function} {input}: {}", found[1]);
            if !fits {
                assert!(error(&found[1]).contains("assert"), "{}", found[1]);
            }
        }
    }
}

#[test]
fn what_is_no_message_is_answered_too() {
    for line in
        ["nonsense", "[]", "{\"id\":1}", "{\"id\":1,\"kind\":3}", "{\"id\":1,\"kind\":\"define\"}", "\u{1}"]
    {
        error(&answers(&[line])[0]);
    }
    // A number that is none: the rest says whose answer it is.
    let input =
        r#"{ "id" : "seven", "kind":"evaluate","module":"lse","function":"primal","input":{"x":[1e400]}}"#;
    let found = answers(&[input]);
    assert!(error(&found[0]).contains("not JSON"), "{}", found[0]);
    assert_eq!(found[0]["id"], json!("seven"));
    // Lists within lists: the reader stops before the stack does.
    let deep = format!("{{\"id\":1,\"kind\":\"start\",\"config\":{}", "[".repeat(1_000_000));
    error(&answers(&[&deep])[0]);
}

#[test]
fn a_reader_that_has_gone_is_an_end() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(tool().serve(&mut DEFINE.as_bytes(), &mut Gone).is_ok());
}

#[test]
fn runs_are_counted_and_added_up() {
    use std::time::Duration;
    let runs = Runs::of(&json!({"min_runs": 2, "min_seconds": 0.5})).expect("right fields");
    let second = Duration::from_secs(1);
    assert!(!runs.are_met_by(&[second], second), "too few");
    assert!(!runs.are_met_by(&[Duration::ZERO; 3], Duration::ZERO), "too short");
    assert!(runs.are_met_by(&[second; 2], 2 * second));
    assert_eq!(Runs::of(&json!(1.0)), Ok(Runs { least: 1, seconds: 0.0 }));
}

#[test]
fn programs_of_files_are_modules_too() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/programs");
    let file = |name: &str| folder.join(name).display().to_string();
    let programs = [("dot", file("dot.fut")), ("lse", file("nothing.fut"))];
    let mut tool = tool().with_programs(programs.map(|(name, path)| (name.to_string(), path)));
    let mut ask = |message: Json| -> Json {
        serde_json::from_str(&tool.reply(message.to_string().as_bytes())).expect("JSON")
    };
    assert_eq!(ask(json!({"id": 1, "kind": "define", "module": "dot"}))["success"], json!(true));
    let input = json!({"a": [1, 2, 3], "b": [3, 5, 7], "more": "is left alone"});
    let found =
        ask(json!({"id": 2, "kind": "evaluate", "module": "dot", "function": "gradient", "input": input}));
    // 1 * 3 + 2 * 5 + 3 * 7, and each list is the other's derivative.
    assert_eq!(found["output"], json!([34.0, [[3.0, 5.0, 7.0], [1.0, 2.0, 3.0]]]));
    let hidden = ask(json!({"id": 3, "kind": "define", "module": "lse"}));
    assert!(error(&hidden).starts_with("cannot read "), "{hidden}");
    assert_eq!(ask(json!({"id": 4, "kind": "define", "module": "hello"}))["success"], json!(true));
}
