//! Small programs and their gradients through every version of LLVM from 15 to 22 that is found. The others are counted.

#![allow(unsafe_code, reason = "compiled code is called; the block says why it may be")]

use pullback_core::{Type, Value};
use pullback_cpu::{Executable, Level, Options};
use pullback_driver::{Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options as Interpreter;
use pullback_kernel::lower;
use pullback_llvm::{Llvm, load::candidates};
use pullback_testkit::problems::PROBLEMS;
use std::path::PathBuf;

/// What `Llvm` says that a version is known to work.
const VERSIONS: std::ops::RangeInclusive<u32> = 15..=22;

/// A library of this version.
fn library(version: u32) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| {
        Llvm::open(path).is_ok_and(|l| l.found().version.split('.').next() == Some(&version.to_string()))
    };
    candidates().into_iter().find(is_it)
}

/// Programs with the arguments to run them on.
fn programs() -> Vec<(String, Ready, Vec<Value>)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out = Vec::new();
    for problem in PROBLEMS.iter().filter(|p| ["hello", "lse", "kmeans", "det", "saddle"].contains(&p.name)) {
        let text = std::fs::read_to_string(root.join(problem.file)).expect(problem.file);
        let session = Session::compile(problem.file, &text, Settings::default()).expect(problem.name);
        let entry = session.entry(Some(problem.entry)).expect(problem.name);
        let selected = session.select(&entry, &Wrt::parse(problem.wrt)).expect(problem.name);
        let args = (problem.args)(9);
        let primal = session.primal(&entry).expect(problem.name);
        let gradient = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect(problem.name);
        let results = primal.interpret(&args, &Interpreter::default()).expect(problem.name).results;
        out.push((problem.name.to_string(), primal, args.clone()));
        // The results themselves are cotangents as good as any.
        out.push((
            format!("gradient of {}", problem.name),
            gradient,
            args.into_iter().chain(results).collect(),
        ));
    }
    out
}

/// Equal up to rounding.
fn near(found: &[Value], expected: &[Value]) -> bool {
    let (found, expected): (Vec<f64>, Vec<f64>) =
        (found.iter().flat_map(Value::floats).collect(), expected.iter().flat_map(Value::floats).collect());
    let largest = expected.iter().fold(1.0, |l: f64, x| l.max(x.abs()));
    found.len() == expected.len()
        && found.iter().zip(&expected).all(|(f, e)| (f - e).abs() <= 1e-12 * largest)
}

#[test]
fn every_version_that_is_found_runs_small_programs() {
    let programs = programs();
    assert_eq!(programs.len(), 10);
    let mut missing = Vec::new();
    for version in VERSIONS {
        let Some(path) = library(version) else {
            missing.push(version);
            continue;
        };
        for (name, ready, args) in &programs {
            let what = format!("{name} by LLVM {version}");
            let expected = ready.interpret(args, &Interpreter::default()).expect(name).results;
            let (module, function) = lower(&ready.program, ready.fun).expect(name);
            let fun = &ready.program.funs[ready.fun];
            let types: Vec<Type> = fun.params.iter().map(|p| ready.program.vars[*p].ty.clone()).collect();
            let given: Vec<(&Type, &Value)> = types.iter().zip(args).collect();
            for level in [Level::O0, Level::O1, Level::O3] {
                let options = Options { library: Some(path.clone()), level, ..Options::default() };
                let executable = Executable::new(&module, &options).expect(&what);
                let found = executable.session().call(function, &given, &fun.results, None).expect(&what);
                assert!(near(&found.results, &expected), "{what}: {:?}, not {expected:?}", found.results);
            }
        }
        eprintln!("LLVM {version}: {} programs", programs.len());
    }
    if !missing.is_empty() {
        eprintln!("skipped: {} versions of LLVM are not here: {missing:?}", missing.len());
    }
}

/// A loop over slots: the passes have names that not every version knows.
#[test]
fn every_version_that_is_found_compiles_texts() {
    let sum = "define i64 @sum(i64 %n) {
entry:
  %i = alloca i64
  %s = alloca i64
  store i64 0, ptr %i
  store i64 0, ptr %s
  br label %head
head:
  %k = load i64, ptr %i
  %more = icmp slt i64 %k, %n
  br i1 %more, label %inside, label %done
inside:
  %before = load i64, ptr %s
  %after = add i64 %before, %k
  store i64 %after, ptr %s
  %next = add i64 %k, 1
  store i64 %next, ptr %i
  br label %head
done:
  %all = load i64, ptr %s
  ret i64 %all
}
";
    let found: Vec<PathBuf> = VERSIONS.filter_map(library).collect();
    assert!(!found.is_empty(), "no version was found");
    for path in found {
        let llvm = Llvm::open(&path).expect("it was opened before");
        let object = llvm.compile(sum, Level::O3).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let linked = llvm.link(&[object], &[]).expect("it needs nothing");
        let address = linked.address("sum").expect("it is there");
        // SAFETY: the text defines a function of this type, and the code is there until `linked` is dropped.
        let sum = unsafe { std::mem::transmute::<usize, extern "C" fn(i64) -> i64>(address) };
        assert_eq!([sum(0), sum(1), sum(11)], [0, 0, 55], "{}", path.display());
    }
}
