//! Machine code on disk and libLLVM under bad conditions: whatever they are, results are right, and `doctor` says what is wrong.
//! Where no LLVM is found, these tests say so and check nothing.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pullback");

/// A run whose machine code is kept below this folder.
fn command(cache: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env("XDG_CACHE_HOME", cache).env_remove("PULLBACK_LLVM");
    command
}

const RUN: [&str; 10] = [
    "run",
    "examples/lse.fut",
    "--entry",
    "primal",
    "--arg",
    "x=[1.0,2.0,3.0]",
    "--json",
    "--quiet",
    "--backend",
    "llvm",
];

/// ln (e + e^2 + e^3), calculated with 20 digits by another tool.
const EXPECTED: f64 = 3.407_605_964_444_38;

fn right(out: &Output) {
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}{errors}");
    let json: Json = serde_json::from_str(&text).expect("JSON");
    let result = json["result"].as_f64().expect("a number");
    assert!((result - EXPECTED).abs() < 1e-14, "{result}");
    assert!(errors.is_empty(), "nothing needs to be said: {errors}");
}

fn run(cache: &Path) {
    right(&command(cache).args(RUN).output().expect("it starts"));
}

fn doctor(command: &mut Command) -> String {
    let out = command.arg("doctor").output().expect("it starts");
    assert!(out.status.success());
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A new folder, if there is an LLVM.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let _ = std::fs::remove_file(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let there = !doctor(&mut command(&folder)).contains("llvm: not there");
    if !there {
        eprintln!("skipped: no LLVM is found");
    }
    there.then_some(folder)
}

/// The files with this ending that a run has kept.
fn kept(cache: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(cache.join("pullback")) else { return Vec::new() };
    entries
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == ending))
        .collect()
}

#[test]
fn damaged_and_foreign_files_are_replaced() {
    let Some(cache) = folder("cache-damaged") else { return };
    run(&cache);
    let files = kept(&cache, "object");
    let [file] = files.as_slice() else { panic!("one program is kept: {files:?}") };
    let whole = std::fs::read(file).expect("the object");
    let middle = whole.len() - whole.len() / 4;
    let mut flipped = whole.clone();
    flipped[middle] ^= 0x10;
    let damages: [&[u8]; 4] = [&whole[..middle], &flipped, b"", b"something else altogether"];
    for damaged in damages {
        std::fs::write(file, damaged).expect("written");
        run(&cache);
        assert_eq!(std::fs::read(file).expect("the object"), whole, "the file is whole again");
    }
    // A folder in its place cannot be replaced.
    std::fs::remove_file(file).expect("removed");
    std::fs::create_dir_all(file.join("inside")).expect("a folder");
    run(&cache);
    assert_eq!(kept(&cache, "part"), [] as [PathBuf; 0]);
}

#[test]
fn without_the_cache_nothing_is_written() {
    let Some(cache) = folder("cache-none") else { return };
    right(&command(&cache).args(RUN).arg("--no-cache").output().expect("it starts"));
    assert_eq!(kept(&cache, "object"), [] as [PathBuf; 0]);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_done_without() {
    let Some(cache) = folder("cache-file") else { return };
    let file = cache.join("file");
    std::fs::write(&file, "a file, no folder").expect("written");
    run(&file);
    let text = doctor(&mut command(&file));
    assert!(text.contains("machine code is not kept") && text.contains("XDG_CACHE_HOME"), "{text}");
    if cfg!(target_os = "linux") {
        // Nobody may make files there, whatever their rights.
        run(Path::new("/proc"));
        assert!(doctor(&mut command(Path::new("/proc"))).contains("machine code is not kept"));
    }
    assert!(doctor(&mut command(&cache)).contains("machine code is kept"));
}

/// No file may have more than a few blocks: as where a disk is full.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_nothing_and_leaves_nothing_behind() {
    let Some(cache) = folder("cache-full") else { return };
    let limited = |arguments: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", PROGRAM]).args(arguments);
        shell.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        shell.env("XDG_CACHE_HOME", &cache).env_remove("PULLBACK_LLVM").output().expect("it starts")
    };
    right(&limited(&RUN));
    assert_eq!(kept(&cache, "object"), [] as [PathBuf; 0]);
    assert_eq!(kept(&cache, "part"), [] as [PathBuf; 0]);
    // Results are written whole or not at all.
    let program = cache.join("many.fut");
    std::fs::write(&program, "entry main (n: i64) : []i64 = iota n").expect("written");
    let (program, result) = (program.display().to_string(), cache.join("result.txt").display().to_string());
    let out = limited(&["run", &program, "--arg", "n=10000", "--output", &result]);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot write"), "{text}");
    let left: Vec<_> = std::fs::read_dir(&cache).expect("a folder").filter_map(|e| e.ok()).collect();
    assert_eq!(left.len(), 2, "the program and the folder of machine code: {left:?}");
    run(&cache);
    assert_eq!(kept(&cache, "object").len(), 1);
}

fn start(cache: &Path) -> Child {
    command(cache).args(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[test]
fn processes_that_compile_the_same_program_at_once_do_not_disturb_each_other() {
    let Some(cache) = folder("cache-together") else { return };
    let all: Vec<Child> = (0..4).map(|_| start(&cache)).collect();
    for child in all {
        right(&child.wait_with_output().expect("it ends"));
    }
    assert_eq!((kept(&cache, "object").len(), kept(&cache, "part").len()), (1, 0));
}

#[test]
fn a_process_that_is_killed_does_no_harm() {
    let Some(cache) = folder("cache-killed") else { return };
    for delay in [5, 20, 40, 60, 80, 100, 120, 140] {
        let mut child = start(&cache);
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().expect("killed");
        child.wait().expect("it ends");
        for object in kept(&cache, "object") {
            let bytes = std::fs::read(&object).expect("an object");
            assert!(bytes.starts_with(b"pullback object"), "whole or not at all");
        }
    }
    run(&cache);
    assert_eq!(kept(&cache, "object").len(), 1);
}

/// Compiled code is asked for, or left to be chosen, with a file in the place of libLLVM.
fn with_library(path: &str, what_is_said: &str) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache-library");
    let with = || {
        let mut out = command(&cache);
        out.env("PULLBACK_LLVM", path);
        out
    };
    let asked = with().args(RUN).output().expect("it starts");
    let text = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(3), "{text}");
    for part in [path, what_is_said, "--backend interp", "pullback doctor"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let chosen = [&RUN[..8], &["--backend", "auto"]].concat();
    right(&with().args(chosen).output().expect("it starts"));
    let text = doctor(&mut with());
    for part in [path, what_is_said, "PULLBACK_LLVM", "llvm: not there"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn what_is_no_libllvm_is_named_and_done_without() {
    with_library("/nowhere/libLLVM.so", "was not opened");
    let text = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libLLVM.so.text");
    std::fs::write(&text, "INPUT(libLLVM.so.22.1)\n".repeat(100)).expect("a file");
    with_library(&text.display().to_string(), "was not opened");
    let others = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6"];
    match others.into_iter().find(|p| Path::new(p).exists()) {
        Some(other) => with_library(other, "no libLLVM with its C interface"),
        None => eprintln!("skipped: no other library to try"),
    }
}
