//! Ctrl-C, for every executor. Whether a program has an end is known by its text; how fast it stops is bounded generously,
//! since other tests run at the same time.

#![cfg(unix)]
#![allow(unsafe_code, reason = "signals are sent; see the block")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Years of loops.
const ENDLESS: &str = "\
entry endless (x: f64) : f64 =
  loop y = x for i < 1000000000000 do
    loop z = y for j < 1000 do 0.5 * z + f64.i64 (i + j)
";

fn program(name: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, ENDLESS).expect("a file");
    file
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pullback"))
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn interrupt(child: &Child) {
    let process = libc::pid_t::try_from(child.id()).expect("a process number");
    // SAFETY: the child is ours and has not been waited for.
    assert_eq!(unsafe { libc::kill(process, libc::SIGINT) }, 0);
}

/// Exit status, standard output and standard error of a process that ends soon.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if start.elapsed() > Duration::from_secs(10) {
            child.kill().expect("killed");
            panic!("still running");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    eprintln!("ended after {:?}", start.elapsed());
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    (status.code(), out, err)
}

/// Long enough to be past the start of the process, mostly also past compiling.
const RUNNING: Duration = Duration::from_millis(1200);

#[test]
fn ctrl_c_stops_every_executor_and_leaves_no_output() {
    let file = program("endless.fut");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a folder");
    let output = folder.join("result.json");
    let all: Vec<(&str, Child)> = ["interp", "llvm", "vm", "auto"]
        .map(|backend| {
            let file = file.to_str().expect("text");
            let output = output.to_str().expect("text");
            let args = ["run", file, "--arg", "x=1.0", "--backend", backend, "--output", output];
            (backend, start(&args))
        })
        .into();
    std::thread::sleep(RUNNING);
    for (backend, mut child) in all {
        if backend == "llvm" && child.try_wait().expect("a status").is_some() {
            let (status, _, err) = end(child);
            assert!(status == Some(1) && err.contains("no native code"), "{err}");
            eprintln!("skipped: no LLVM is found");
            continue;
        }
        interrupt(&child);
        let (status, out, err) = end(child);
        assert_eq!((status, out.as_str(), err.as_str()), (Some(130), "", "stopped by Ctrl-C\n"), "{backend}");
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0, "{backend}");
    }
}

#[test]
fn a_stopped_run_says_so_in_json() {
    let file = program("endless_json.fut");
    let args = ["run", file.to_str().expect("text"), "--arg", "x=1.0", "--backend", "interp", "--json"];
    let child = start(&args);
    std::thread::sleep(RUNNING);
    interrupt(&child);
    let (status, out, _) = end(child);
    assert_eq!(status, Some(130));
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["ok"], false);
    assert_eq!(report["diagnostics"][0]["message"], "stopped by Ctrl-C");
}

#[test]
fn ctrl_c_while_a_program_is_read_ends_the_command() {
    // A pipe that nobody writes to: the command waits for its text.
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("silent.fut");
    let _ = std::fs::remove_file(&file);
    let name = std::ffi::CString::new(file.to_str().expect("text")).expect("a path");
    // SAFETY: the path ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let child = start(&["check", file.to_str().expect("text")]);
    std::thread::sleep(RUNNING / 2);
    interrupt(&child);
    let (status, out, err) = end(child);
    assert_eq!((status, out.as_str(), err.as_str()), (Some(130), "", "stopped by Ctrl-C\n"));
}
